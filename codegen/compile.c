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

/* One entry point; NULL: the step. */
static IrModule *lower(Arena *a, DiagSink *d, const Rule *rule, const FrontendOptions *o,
                       const char *entry, const Wanted *w)
{
    LowerOptions lower = {.compute_f64 = o->compute_f64,
                          .entry = entry,
                          .guard_gradients = w->guard_gradients && !entry};
    IrModule *m = ir_lower(a, d, rule, &lower);
    if (!m) return NULL;
    StrBuf why = {.arena = a};
    IrModule *out = ir_run_passes(a, m, w->dump_after, w->dump, &why);
    if (!out)
        diag_report(d, DIAG_INTERNAL, rule->item->name.span, why.text ? why.text : "a pass failed");
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
    bool step = !o->entry || !strcmp(o->entry, "step");
    IrModule *m = lower(a, d, rule, o, step ? NULL : o->entry, w);
    if (!w->modules || !m) return m;
    w->modules->m = ARENA_ARRAY(a, IrModule *, rule->nentries + 1);
    w->modules->m[w->modules->n++] = m;
    for (size_t i = 0; step && !o->entry && i < rule->nentries; i++) {
        IrModule *entry = lower(a, d, rule, o, rule->entries[i].name, w);
        if (!entry) return NULL;
        w->modules->m[w->modules->n++] = entry;
    }
    return m;
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
