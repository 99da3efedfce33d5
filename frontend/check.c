/* check.c - from a parsed file to one checked rule.
 *
 * frontend_check picks the rule that is wanted and checks it; then it checks everything else of the
 * file that was asked for, so that one run reports all mistakes. What was imported is checked where
 * it is used.
 *
 *     optimizer sgd { hyper lr = 0.1;  p -= lr * g }
 *  -> Rule {name "sgd", hypers {sgd.lr}, body {WRITE p := SUB(p, MUL(lr, g))}}
 */
#include "check.h"
#include <setjmp.h>
#include <string.h>

Diag *check_noted(Checker *c, Diag *d)
{
    for (const CallFrame *f = c->x.calls; f; f = f->up) {
        bool here = f->at.begin == d->span.begin && f->at.end == d->span.end;
        if (f->at.begin && !here) /* none: the function is checked by itself */
            diag_note(c->diags, d, f->at, "in this call of '%s'", f->fn->name.text);
    }
    return d;
}

bool check_muted(const Checker *c, DiagCode code)
{
    if (!c->rule->item->broken) return false;
    switch (code) {
    case DIAG_UNKNOWN_NAME:
    case DIAG_UNKNOWN_FUNCTION:
    case DIAG_UNKNOWN_TRANSFORM:
    case DIAG_UNKNOWN_RATE:
    case DIAG_ASSIGN_TARGET:
    case DIAG_FN_ARGS:
    case DIAG_ARG_UNKNOWN:
    case DIAG_ARG_TWICE:
    case DIAG_OUT_OF_RANGE:
    case DIAG_RANGE_EMPTY:
    case DIAG_NOT_NUMBER:
    case DIAG_NOT_TRUTH:
    case DIAG_ARMS_DIFFER:
    case DIAG_NARROW:
    case DIAG_WHEN_RATE:
    case DIAG_REDUCE_COARSE:
    case DIAG_UNSUPPORTED: return false;
    default: return true;
    }
}

bool check_may_be_lost(const Checker *c, Name word, bool in_file)
{
    return (in_file ? c->mistakes : c->rule->item->broken) && ast_name_count(c->ast, word.text) > 1;
}

void check_word(Checker *c, Words *w, const char *word)
{
    ARENA_PUSH(c->arena, w->list, w->n, w->cap, word);
}

void check_did_you_mean(Checker *c, Diag *d, const char *word, const Words *w)
{
    const char *close = diag_suggest(word, w->list, w->n);
    if (close) diag_hint(c->diags, d, "did you mean '%s'?", close);
}

void check_unsupported(Checker *c, Span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *what = arena_vprintf(c->arena, fmt, ap);
    va_end(ap);
    REPORT(c, DIAG_UNSUPPORTED, at, what);
}

/* ---- what a whole rule must satisfy --------------------------------------------------------- */

/* Whether a value stays what it is written as, whatever the options make constant. Trees share
 * nodes: what has more than *left of them is said to be none. */
static bool is_literal(const Expr *e, int *left)
{
    bool yes = --*left >= 0 && (e->kind == EX_NUMBER || e->kind == EX_OP || e->kind == EX_COND ||
                                (e->kind == EX_NAME && e->sym->kind == SYM_GIVEN && e->is_const));
    for (int i = 0; i < e->nargs && yes; i++) yes = is_literal(e->args[i], left);
    return yes;
}

static void check_whole(Checker *c)
{
    const Item *item = c->rule->item;
    if (item->kind == IT_OPTIMIZER && !c->p_live) {
        Diag *d = REPORT(c, DIAG_NEVER_WRITES_P, item->name.span, item->name.text);
        diag_hint(c->diags, d, "a step is written 'p -= lr * g'");
    }
    for (size_t i = 0; i < c->ndeclared; i++) { /* an array is read where one element is */
        const Symbol *s = c->declared[i];
        if (!s->array) continue;
        s->array->read |= s->read;
        s->array->written |= s->written;
    }
    for (size_t i = 0; i < c->ndeclared; i++) {
        Symbol *s = c->declared[i];
        if (s->array) s->read = s->array->read, s->written = s->array->written;
        if (s->kind == SYM_HYPER) {
            if (!s->read) REPORT(c, DIAG_HYPER_UNUSED, s->span, s->name);
            continue;
        }
        if (s->dtype == DT_COUNT) continue;
        int left = 1000;
        if (!s->written && (!s->value || is_literal(s->value, &left))) {
            Diag *d = REPORT(c, DIAG_STATE_CONSTANT, s->span, s->name);
            diag_hint(c->diags, d, "write it ('%s := …'), or make it a hyperparameter", s->name);
        } else if (!s->read)
            REPORT(c, DIAG_STATE_UNREAD, s->span, s->name);
    }
    for (size_t i = 0; i < c->rule->ninputs; i++) {
        const Symbol *s = c->rule->inputs[i];
        if (!s->read) REPORT(c, DIAG_INPUT_UNUSED, s->span, s->name);
    }
}

/* What was reported before: an import that was refused would have defined names that are not
 * known; after syntax errors, items are missing or were read in part. */
static void note_mistakes(Checker *c)
{
    for (size_t i = 0; i < c->diags->n; i++) {
        const Diag *d = &c->diags->items[i];
        if (d->severity != DIAG_ERROR || d->code >= DIAG_UNKNOWN_NAME) continue;
        c->mistakes = true;
        c->imports_failed |= d->code <= DIAG_IMPORT_DEEP;
    }
}

/* What a transform of stage direction rewrites when it is checked by itself. */
static Symbol *some_direction(Checker *c, const Item *item)
{
    Symbol *u = symbol_new(c, SYM_DIRECTION, (Name){c->word_u, item->name.span});
    u->rate = RATE_ELEMENT;
    u->dtype = u->storage = c->options->compute_f64 ? DT_F64 : DT_F32;
    return u;
}

/* Every way through the arms becomes a body of each entry point. */
static void check_ways(Checker *c)
{
    const Rule *r = c->rule;
    ShapePath *paths;
    if (c->nshapes < 6) return; /* 2^5 + 1 at most */
    size_t most = shape_paths(c->arena, r->body, NULL, &paths);
    for (size_t i = 0; i < r->nentries && most <= RULE_MAX_PATHS; i++)
        most = shape_paths(c->arena, r->body, r->entries[i].body, &paths);
    if (most > RULE_MAX_PATHS)
        REPORT(c, DIAG_TOO_MANY_WAYS, r->item->name.span, r->name, (int)RULE_MAX_PATHS);
}

/* Checks an optimizer, or a transform by itself, as a rule of its own; wanted: it is the one that
 * is to be compiled. */
static Rule *check_rule(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o, Item *item,
                        bool wanted)
{
    Checker c = {.arena = a, .diags = d, .ast = ast, .options = o, .wanted = wanted};
    note_mistakes(&c);
    c.rule = ARENA_NEW(a, Rule);
    c.rule->name = item->name.text;
    c.rule->item = item;
    c.rule->body = c.out = ARENA_NEW(a, Block);
    c.define_used = ARENA_ARRAY(a, bool, o->ndefines + 1);
    check_given_symbols(&c);
    check_name_length(&c, item->name);
    Instance inst = {.item = item, .path = item->name.text};
    c.x.inst = &inst;
    UseArgs args;
    bool applied = ast->app && wanted;
    if (applied) use_application(&c, &inst, &args);
    if (item->stage == STAGE_DIRECTION) inst.direction = some_direction(&c, item);
    check_instance(&c, item, applied ? &args : NULL);
    if (!c.murky && !c.too_long && !item->broken) check_whole(&c);
    if (!item->broken) check_defines(&c);
    check_ways(&c);
    return c.rule;
}

/* Checks a function's body by itself, for mistakes that hold whatever its arguments are. */
static uint32_t check_function(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o,
                               Item *fn)
{
    Checker c = {.arena = a, .diags = d, .ast = ast, .options = o};
    note_mistakes(&c);
    c.is_function = true; /* what is too long is said where it is used */
    Instance inst = {.item = fn, .path = fn->name.text};
    c.rule = ARENA_NEW(a, Rule);
    c.rule->name = fn->name.text;
    c.rule->item = fn;
    c.x.inst = &inst;
    check_given_symbols(&c);
    Expr **args = ARENA_ARRAY(a, Expr *, fn->nparams + 1);
    for (size_t i = 0; i < fn->nparams; i++) {
        if (fn->params[i].init) continue; /* its default stands for it */
        args[i] = ARENA_NEW(a, Expr);
        *args[i] = (Expr){.kind = EX_BAD, .span = fn->params[i].name.span};
    }
    expand_fn(&c, fn, args, (Span){0, 0});
    return c.nops;
}

/* ---- the file ------------------------------------------------------------------------------- */

bool item_is_own(const DiagSink *d, const Ast *ast, const Item *item)
{
    const SourceFile *f = source_file(d->sources, item->span.begin);
    return !f || f == &d->sources->files[ast->file];
}

bool item_stands_alone(const Item *item)
{
    bool yes = item->kind == IT_OPTIMIZER;
    for (size_t i = 0; i < item->nparams; i++)
        yes = yes && (!decl_is_rule(&item->params[i]) || item->params[i].init);
    return yes;
}

/* The optimizer that `o` or the application names; else the file's last that can run by itself. */
static Item *pick_rule(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o)
{
    Item *last = NULL, *last_imported = NULL, *named = NULL, *wrapper = NULL;
    const char *wanted = ast->app ? ast->app->name.text : ast->applied ? NULL : o->rule;
    const char **words = ARENA_ARRAY(a, const char *, ast->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < ast->n; i++) {
        Item *item = ast->items[i];
        if (item->kind != IT_OPTIMIZER) continue;
        words[n++] = item->name.text;
        bool here = item_is_own(d, ast, item);
        if (item_stands_alone(item))
            *(here ? &last : &last_imported) = item;
        else if (here)
            wrapper = item;
        if (wanted && strcmp(item->name.text, wanted) == 0) named = item;
    }
    if (wanted && !named) {
        const char *close = diag_suggest(wanted, words, n);
        Span at = ast->app ? ast->app->name.span : (Span){0, 0};
        Diag *x = diag_report(d, DIAG_UNKNOWN_RULE, at, wanted);
        if (close) diag_hint(d, x, "did you mean '%s'?", close);
        return NULL;
    }
    return wanted ? named : last ? last : wrapper ? wrapper : last_imported;
}

static void refuse_item(DiagSink *d, Arena *a, const Item *item)
{
    const char *what = item->kind == IT_SCALER        ? "scaler"
                       : item->kind == IT_ACCUMULATOR ? "accumulator"
                       : item->kind == IT_RECIPE      ? "recipe"
                                                      : NULL;
    if (what)
        diag_report(d, DIAG_UNSUPPORTED, item->name.span,
                    arena_printf(a, "%s '%s'", what, item->name.text));
}

/* What a file without an optimizer has is run in one. */
static void no_rule(DiagSink *d, const Ast *ast)
{
    Diag *x = diag_report(d, DIAG_NO_RULE, (Span){0, 0}, d->sources->files[ast->file].name);
    for (size_t i = 0; i < ast->n; i++) {
        const Item *item = ast->items[i];
        bool transform = item->kind == IT_TRANSFORM;
        if ((!transform && item->kind != IT_SCHEDULE) || !item_is_own(d, ast, item)) continue;
        diag_hint(d, x,
                  transform ? "a transform acts in a rule: --rule 'sgd { use %s }'"
                            : "a hyperparameter follows a schedule: --rule 'sgd(lr = %s(…))'",
                  item->name.text);
        return;
    }
}

static Rule *check_all(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o,
                       bool need_rule)
{
    FrontendOptions plain = *o; /* program options belong to the rule that was asked for */
    plain.ndefines = 0;
    int before = d->nerrors;
    for (size_t i = 0; i < ast->n; i++) refuse_item(d, a, ast->items[i]);
    Item *picked = pick_rule(a, d, ast, o);
    if (!picked && need_rule && d->nerrors == before) no_rule(d, ast);
    Rule *rule = picked ? check_rule(a, d, ast, o, picked, need_rule) : NULL;
    int64_t left =
        16 *
        (int64_t)CHECK_MAX_OPS; /* functions that double each other make little text much work */
    for (size_t i = 0; i < ast->n && left > CHECK_MAX_OPS; i++) {
        Item *item = ast->items[i];
        if (item == picked || !item_is_own(d, ast, item)) continue;
        if (item->kind == IT_OPTIMIZER || item->kind == IT_TRANSFORM)
            left -= check_rule(a, d, ast, &plain, item, false)->nexprs;
        else if (item->kind == IT_FN || item->kind == IT_SCHEDULE)
            left -= check_function(a, d, ast, &plain, item);
    }
    return d->nerrors == before ? rule : NULL;
}

/* Runs check_all with a place to go for arenas that have none; NULL when memory runs out. */
static Rule *check_guarded(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o,
                           bool need_rule)
{
    static const FrontendOptions none;
    Arena *arenas[2] = {a, d->arena};
    jmp_buf out, *saved[2] = {a->oom, d->arena->oom};
    Rule *volatile rule = NULL;
    if (setjmp(out) == 0) {
        for (int i = 0; i < 2; i++)
            if (!arenas[i]->oom) arenas[i]->oom = &out;
        rule = check_all(a, d, ast, o ? o : &none, need_rule);
    }
    for (int i = 1; i >= 0; i--) arenas[i]->oom = saved[i];
    return rule;
}

Rule *frontend_check(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o)
{
    return check_guarded(a, d, ast, o, true);
}

bool frontend_check_file(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o)
{
    int before = d->nerrors;
    check_guarded(a, d, ast, o, false);
    return d->nerrors == before;
}
