/* compile.c - the whole way from source text to an optimised module.
 *
 * Requires a sink whose source set has the file. Ensures that every failure is a message in the
 * sink.
 *
 *     int f = source_add(&sources, "sgd.opt", text, strlen(text));
 *     IrModule *m = compile_source(&arena, &sink, f, &(FrontendOptions){0}, true);
 *     plan_make(&arena, m);
 */
#include "compile.h"
#include <string.h>

typedef struct Wanted {
    bool guard_gradients, rule_optional;
    const char *dump_after;
    StrBuf *dump;
    Modules *modules; /* all entry points, if one is not asked for */
} Wanted;

/* Whether there is something to run without being told what: not where the file's own optimizers
 * are all around others. */
static bool has_optimizer(const DiagSink *d, const Ast *ast)
{
    bool imported = false, wrapper = false;
    for (size_t i = 0; i < ast->n; i++) {
        const Item *item = ast->items[i];
        bool alone = item_stands_alone(item), own = item_is_own(d, ast, item);
        if (alone && own) return true;
        imported |= alone;
        wrapper |= own && item->kind == IT_OPTIMIZER;
    }
    return imported && !wrapper;
}

/* Whether the rule has the entry point that was asked for. */
static bool has_entry(DiagSink *d, const Rule *rule, const char *entry)
{
    const char **names = ARENA_ARRAY(d->arena, const char *, rule->nentries + 1);
    for (size_t i = 0; i < rule->nentries; i++) {
        names[i] = rule->entries[i].name;
        if (entry && !strcmp(names[i], entry)) return true;
    }
    if (!entry || !strcmp(entry, "step")) return true;
    Diag *x = diag_report(d, DIAG_UNKNOWN_ENTRY, rule->item->name.span, rule->name, entry);
    const char *near = diag_suggest(entry, names, rule->nentries);
    if (near) diag_hint(d, x, "did you mean '%s'?", near);
    return false;
}

bool compile_modules(Arena *a, DiagSink *d, const Rule *rule, const LowerOptions *o, IrModule **m,
                     StrBuf *why)
{
    for (size_t i = 0; i <= rule->nentries; i++) {
        LowerOptions one = *o;
        one.entry = i ? rule->entries[i - 1].name : NULL;
        one.guard_gradients = o->guard_gradients && !i;
        m[i] = ir_lower(a, d, rule, &one);
        if (!m[i] || !ir_verify(m[i], why)) return false;
    }
    if (rule->nentries) ir_drop_shared(a, m, rule->nentries + 1);
    return true;
}

static void internal(DiagSink *d, const Rule *rule, const StrBuf *why)
{
    diag_report(d, DIAG_INTERNAL, rule->item->name.span, why->text ? why->text : "a pass failed");
}

static IrModule *optimise(Arena *a, DiagSink *d, const Rule *rule, IrModule *m, const Wanted *w)
{
    StrBuf why = {.arena = a};
    IrModule *out = ir_run_passes(a, m, w->dump_after, w->dump, &why);
    if (!out) internal(d, rule, &why);
    if (out) lint_module(d, out);
    return out;
}

static IrModule *compile(Arena *a, DiagSink *d, int file, const FrontendOptions *o, const Wanted *w)
{
    Ast ast = {0};
    bool parsed = frontend_parse(a, d, file, o, &ast);
    if (!parsed || (w->rule_optional && !o->rule && !has_optimizer(d, &ast))) {
        frontend_check_file(a, d, &ast, o); /* after syntax errors, too: all mistakes in one run */
        return NULL;
    }
    Rule *rule = frontend_check(a, d, &ast, o);
    if (!rule || !has_entry(d, rule, o->entry)) return NULL;
    IrModule **m = ARENA_ARRAY(a, IrModule *, rule->nentries + 1);
    LowerOptions lower = {.compute_f64 = o->compute_f64, .guard_gradients = w->guard_gradients};
    StrBuf why = {.arena = a};
    if (!compile_modules(a, d, rule, &lower, m, &why)) {
        if (why.len) internal(d, rule, &why);
        return NULL;
    }
    size_t first = 0, n = w->modules && !o->entry ? rule->nentries + 1 : 1;
    for (size_t i = 0; o->entry && i < rule->nentries; i++)
        if (!strcmp(rule->entries[i].name, o->entry)) first = i + 1;
    for (size_t i = first; i < first + n; i++)
        if (!(m[i] = optimise(a, d, rule, m[i], w))) return NULL;
    if (w->modules) *w->modules = (Modules){m + first, n};
    return m[first];
}

/* With a place to go for arenas that have none. */
static IrModule *guarded(Arena *a, DiagSink *d, int file, const FrontendOptions *o, const Wanted *w)
{
    static const FrontendOptions none;
    Arena *arenas[3] = {a, d->arena, d->sources->arena};
    jmp_buf out, *saved[3];
    IrModule *volatile m = NULL;
    for (int i = 0; i < 3; i++) saved[i] = arenas[i]->oom;
    if (setjmp(out) == 0) {
        for (int i = 0; i < 3; i++)
            if (!arenas[i]->oom) arenas[i]->oom = &out;
        m = compile(a, d, file, o ? o : &none, w);
    }
    for (int i = 2; i >= 0; i--) arenas[i]->oom = saved[i];
    return m;
}

IrModule *compile_source_dump(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                              bool guard_gradients, const char *dump_after, StrBuf *dump)
{
    Wanted w = {.guard_gradients = guard_gradients, .dump_after = dump_after, .dump = dump};
    return guarded(a, d, file, o, &w);
}

IrModule *compile_source(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                         bool guard_gradients)
{
    return compile_source_dump(a, d, file, o, guard_gradients, NULL, NULL);
}

bool compile_entries(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                     bool guard_gradients, Modules *out)
{
    *out = (Modules){0};
    Wanted w = {.guard_gradients = guard_gradients, .modules = out};
    return guarded(a, d, file, o, &w) != NULL;
}

bool check_source(Arena *a, DiagSink *d, int file, const FrontendOptions *o)
{
    int before = d->nerrors;
    guarded(a, d, file, o, &(Wanted){.rule_optional = true});
    return d->nerrors == before;
}
