/* expand.c - puts functions and transforms in place: a call becomes the function's checked value, a
 * use becomes a block of its own.
 *
 * A function sees its parameters, pi, inf and functions; each argument is checked once and shared
 * by all places that read it. A transform's state and hyperparameters live under the use path.
 *
 *     lerp(g, m, b1)     ->   ADD(MUL(b1, m), MUL(SUB(1, b1), g))
 *     use clip(1, 0)     ->   SCOPE "clip" { LET n = norm[all](g); … }, hyper "lamb.clip.limit"
 */
#include "check.h"
#include "parse.h"
#include <string.h>

/* ---- items and arguments -------------------------------------------------------------------- */

static bool is_function(const Item *i)
{
    return i->kind == IT_FN || i->kind == IT_SCHEDULE;
}

static Item *find_item(const Checker *c, bool function, const char *name)
{
    for (size_t i = 0; i < c->ast->n; i++) {
        Item *item = c->ast->items[i];
        if (item->kind == IT_IMPORT || is_function(item) != function) continue;
        if (item->name.text == name) return item; /* interned */
    }
    return NULL;
}

static int param_index(Checker *c, const Item *item, Name name)
{
    for (size_t i = 0; i < item->nparams; i++)
        if (strcmp(item->params[i].name.text, name.text) == 0) return (int)i;
    Words w = {0};
    for (size_t i = 0; i < item->nparams; i++) check_word(c, &w, item->params[i].name.text);
    Diag *d = REPORT(c, DIAG_ARG_UNKNOWN, name.span, item->name.text, name.text);
    if (diag_suggest(name.text, w.list, w.n)) {
        check_did_you_mean(c, d, name.text, &w);
        return -1;
    }
    StrBuf all = {.arena = c->arena};
    for (size_t i = 0; i < w.n; i++) sb_printf(&all, "%s%s", i ? ", " : "", w.list[i]);
    diag_hint(c->diags, d, w.n ? "it has %s" : "it has none", all.text);
    return -1;
}

/* Arguments as written, by parameter; NULL where not given. */
static Expr **match_args(Checker *c, const Item *item, Span at, Expr **args, const Name *names,
                         int nargs)
{
    Expr **by_param = ARENA_ARRAY(c->arena, Expr *, item->nparams + 1);
    int n = (int)item->nparams;
    for (int i = 0; i < nargs; i++) {
        bool named = names && names[i].text;
        if (!named && i >= n) {
            Diag *d = REPORT(c, DIAG_FN_ARGS, at, item->name.text, n, n == 1 ? "" : "s", nargs);
            diag_note(c->diags, d, item->name.span, "declared here");
            break;
        }
        int k = named ? param_index(c, item, names[i]) : i;
        if (k < 0) continue;
        if (by_param[k])
            REPORT(c, DIAG_ARG_TWICE, args[i]->span, item->params[k].name.text);
        else
            by_param[k] = args[i];
    }
    return by_param;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* How what other languages have as a function is written here; NULL: not known. */
static const char *usual_function(const char *word)
{
    static const char *const usual[][2] = {
        {"sqr", "x^2, or x * x"},
        {"square", "x^2, or x * x"},
        {"where", "c ? a : b"},
        {"select", "c ? a : b"},
        {"maximum", "max(a, b)"},
        {"minimum", "min(a, b)"},
        {"fmax", "max(a, b)"},
        {"fmin", "min(a, b)"},
        {"fabs", "abs(x)"},
        {"clip", "clamp(x, lo, hi)"},
        {"ceil", "-floor(-x)"},
        {"ln", "log(x)"},
        {"reciprocal", "1 / x"},
        {"isfinite", "finite(x)"},
        {"isnan", "x != x"},
        {"norm2", "norm(x)"},
        {"l2norm", "norm(x)"},
        {"l2_norm", "norm(x)"},
        {"global_norm", "norm[all](g)"},
        {"square_sum", "dot(x, x)"},
        {"average", "mean(x)"},
        {"len", "numel"},
        {"size", "numel"},
        {"ema", "lerp(g, m, b): b * m + (1 - b) * g"},
        {"mix", "lerp(a, b, w): w * b + (1 - w) * a"},
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (strcmp(word, usual[i][0]) == 0) return usual[i][1];
    return NULL;
}

static void unknown_function(Checker *c, Name name)
{
    if (c->imports_failed || name_lost(name) || check_may_be_lost(c, name, true)) return;
    Diag *d = REPORT(c, DIAG_UNKNOWN_FUNCTION, name.span, name.text);
    if (!diag_is_kept(d)) return;
    static const char *const more[] = {"lerp", "clamp", "old", "sum", "mean", "norm",
                                       "rms",  "dot",   "any", "all", "count"};
    Words w = {0};
    for (int i = 0; i < OP_COUNT_; i++) {
        char first = op_info[i].spelling[0];
        if (first >= 'a' && first <= 'z') check_word(c, &w, op_info[i].spelling);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) check_word(c, &w, more[i]);
    for (size_t i = 0; i < c->ast->n; i++)
        if (is_function(c->ast->items[i])) check_word(c, &w, c->ast->items[i]->name.text);
    const char *usual = usual_function(name.text);
    if (usual)
        diag_hint(c->diags, d, "write %s", usual);
    else
        check_did_you_mean(c, d, name.text, &w);
    if (find_item(c, false, name.text))
        diag_hint(c->diags, d, "transforms are put in place by 'use %s'", name.text);
}

/* Checks the arguments of a call whose function is not known, for the mistakes inside them. */
static Expr *check_args_only(Checker *c, const Expr *e)
{
    for (int i = 0; i < e->nargs; i++) check_expr(c, e->args[i]);
    return expr_new(c, EX_BAD, e->span);
}

/* Functions of the language that are written with others of it. */
static Expr *composite(Checker *c, const Expr *e)
{
    Expr *a[3]; /* as many as there are: build.c */
    bool fits = true;
    for (int i = 0; i < 3; i++) {
        a[i] = check_number(c, e->args[i]);
        fits = fits && !expr_bad(a[i]);
    }
    if (!fits) return expr_new(c, EX_BAD, e->span);
    if (strcmp(e->name.text, "clamp") == 0)
        return expr_op(c, OP_MIN, e->span, expr_op(c, OP_MAX, e->span, a[0], a[1], NULL), a[2],
                       NULL);
    Expr *one = expr_number(c, e->span, 1);
    Expr *rest = expr_op(c, OP_SUB, e->span, one, a[2], NULL);
    Expr *left = expr_op(c, OP_MUL, e->span, a[2], a[1], NULL);
    return expr_op(c, OP_ADD, e->span, left, expr_op(c, OP_MUL, e->span, rest, a[0], NULL), NULL);
}

static bool calls_itself(Checker *c, const Item *fn, Span at)
{
    for (const CallFrame *f = c->x.calls; f; f = f->up) {
        if (f->fn != fn) continue;
        REPORT(c, DIAG_RECURSION, at, fn->name.text);
        return true;
    }
    return false;
}

/* Binds parameters to checked arguments in the function's scope (the context is the function's
 * already). */
static void bind_params(Checker *c, const Item *fn, Expr **values, Span at)
{
    for (size_t i = 0; i < fn->nparams; i++) {
        const Decl *p = &fn->params[i];
        if (!values[i] && p->init) values[i] = check_expr(c, p->init);
        if (!values[i]) {
            Diag *d = REPORT(c, DIAG_ARG_MISSING, at, p->name.text, fn->name.text);
            diag_note(c->diags, d, p->name.span, "declared here");
            values[i] = expr_new(c, EX_BAD, at);
        }
        if (check_new_name(c, p->name)) scope_bind(c, c->x.scope, p->name, NULL, values[i]);
    }
}

Expr *expand_fn(Checker *c, const Item *fn, Expr **values, Span at)
{
    Context here = c->x;
    CallFrame frame = {here.calls, fn, at};
    c->x.calls = &frame;
    c->x.names = NAMES_FN;
    c->x.scope = ARENA_NEW(c->arena, Scope);
    bind_params(c, fn, values, at);
    for (size_t i = 0; fn->body && i < fn->body->n; i++) {
        const Stmt *s = fn->body->stmts[i];
        Expr *v = check_expr(c, s->value);
        if (check_new_name(c, s->name)) scope_bind(c, c->x.scope, s->name, NULL, v);
    }
    Expr *out = check_expr(c, fn->value);
    c->x = here;
    return out;
}

Expr *expand_call(Checker *c, const Expr *e)
{
    const char *name = e->name.text;
    if (strcmp(name, "lerp") == 0 || strcmp(name, "clamp") == 0) return composite(c, e);
    const Item *fn = find_item(c, true, name);
    if (!fn && builtin_function(name)) {
        check_unsupported(c, e->name.span, "function '%s'", name);
        return check_args_only(c, e);
    }
    if (!fn) {
        unknown_function(c, e->name);
        return check_args_only(c, e);
    }
    if (fn->broken) return check_args_only(c, e);
    if (fn->kind == IT_SCHEDULE) {
        check_unsupported(c, e->name.span, "schedule '%s'", name);
        return check_args_only(c, e);
    }
    if (calls_itself(c, fn, e->name.span)) return check_args_only(c, e);
    Expr **given = match_args(c, fn, e->span, e->args, e->arg_names, e->nargs);
    for (size_t i = 0; i < fn->nparams; i++)
        if (given[i]) given[i] = check_expr(c, given[i]);
    return expand_fn(c, fn, given, e->span);
}

/* ---- use ------------------------------------------------------------------------------------ */

static const char *item_what(const Item *i)
{
    switch (i->kind) {
    case IT_SCALER: return "a scaler";
    case IT_ACCUMULATOR: return "an accumulator";
    case IT_RECIPE: return "a recipe";
    default: return "an optimizer";
    }
}

static Item *find_transform(Checker *c, Name name)
{
    if (name_lost(name)) return NULL;
    Item *item = find_item(c, false, name.text);
    if (item ? item->broken : c->imports_failed || check_may_be_lost(c, name, true)) return NULL;
    if (!item) {
        for (size_t i = 0; i < c->rule->item->nparams;
             i++) /* a rule taken as a parameter: refused where it is declared */
            if (strcmp(c->rule->item->params[i].name.text, name.text) == 0) return NULL;
        Diag *d = REPORT(c, DIAG_UNKNOWN_TRANSFORM, name.span, name.text);
        if (!diag_is_kept(d)) return NULL;
        Words w = {0};
        for (size_t i = 0; i < c->ast->n; i++)
            if (c->ast->items[i]->kind == IT_TRANSFORM)
                check_word(c, &w, c->ast->items[i]->name.text);
        check_did_you_mean(c, d, name.text, &w);
        size_t len;
        if (stdlib_text(name.text, &len))
            diag_hint(c->diags, d, "import \"%s.opt\" at the top of the file", name.text);
        return NULL;
    }
    if (item->kind == IT_OPTIMIZER) {
        check_unsupported(c, name.span, "a rule inside of a rule");
        return NULL;
    }
    if (item->kind != IT_TRANSFORM) {
        REPORT(c, DIAG_WRONG_KIND, name.span, name.text, item_what(item));
        return NULL;
    }
    if (item->stage != STAGE_GRADIENT) {
        check_unsupported(c, name.span, "a transform of the %s",
                          item->stage == STAGE_DIRECTION ? "direction" : "parameter (stage apply)");
        return NULL;
    }
    return item;
}

/* The use path's own part; two uses under one name are refused. */
static bool claim_path(Checker *c, const Stmt *s, Name name)
{
    Instance *inst = c->x.inst;
    for (struct UsedPath *u = inst->used; u; u = u->next) {
        if (strcmp(u->name, name.text) != 0) continue;
        Diag *d = REPORT(c, DIAG_USE_TWICE, name.span, name.text);
        diag_note(c->diags, d, u->span, "used here");
        diag_hint(c->diags, d, "label one of them: 'use %s(…) as %s2'", s->app->name.text,
                  s->app->name.text);
        return false;
    }
    struct UsedPath *u = ARENA_NEW(c->arena, struct UsedPath);
    *u = (struct UsedPath){inst->used, name.text, name.span};
    inst->used = u;
    return true;
}

void expand_use(Checker *c, const Stmt *s)
{
    const App *app = s->app;
    const Item *item = find_transform(c, app->name);
    if (!item) {
        c->murky = true;
        return;
    }
    for (const Instance *i = c->x.inst; i; i = i->parent) {
        if (i->item != item) continue;
        REPORT(c, DIAG_RECURSION, app->name.span, item->name.text);
        return;
    }
    Name segment = s->name.text ? s->name : app->name;
    if (!claim_path(c, s, segment)) return;
    Expr **args = match_args(c, item, app->span, app->args, app->arg_names, app->nargs);

    Context here = c->x;
    Block *out = c->out;
    Stmt *scope = stmt_new(c, ST_SCOPE, s->span);
    scope->name = segment;
    scope->body = c->out = ARENA_NEW(c->arena, Block);
    Instance *inst = ARENA_NEW(c->arena, Instance);
    inst->parent = here.inst;
    inst->item = (Item *)item;
    inst->path = arena_printf(c->arena, "%s.%s", here.inst->path, segment.text);
    c->x.inst = inst;
    Context at = here;
    at.scope = here.inst->scope;
    check_instance(c, item, args, &at);
    c->x = here;
    c->out = out;
    stmt_emit(c, scope);
}
