/* expand.c - puts functions in place: a call becomes the function's checked value; and which
 * argument is which parameter's, for calls and uses (use.c).
 *
 * A function sees its parameters, pi, inf and functions, a schedule `s`, too; each argument is
 * checked once and shared by all places that read it.
 *
 *     lerp(g, m, b1)     ->   ADD(MUL(b1, m), MUL(SUB(1, b1), g))
 */
#include "check.h"
#include "parse.h"
#include <string.h>

/* ---- items and arguments -------------------------------------------------------------------- */

static bool is_function(const Item *i)
{
    return i->kind == IT_FN || i->kind == IT_SCHEDULE;
}

Item *expand_find(const Checker *c, bool function, const char *name)
{
    for (size_t i = 0; i < c->ast->n; i++) {
        Item *item = c->ast->items[i];
        if (item->kind == IT_IMPORT || is_function(item) != function) continue;
        if (item->name.text == name) return item; /* interned */
    }
    return NULL;
}

/* Parameters, then for a rule or transform the hyperparameters of its block; NULL past the last. */
static const Decl *argument(const Item *item, size_t i)
{
    if (i < item->nparams) return &item->params[i];
    i -= item->nparams;
    for (size_t k = 0; !is_function(item) && k < item->body->n; k++) {
        const Stmt *s = item->body->stmts[k];
        if (s->kind != ST_HYPER) continue;
        if (i < s->ndecls) return &s->decls[i];
        i -= s->ndecls;
    }
    return NULL;
}

static int argument_index(Checker *c, const Item *item, Name name)
{
    Words w = {0};
    const Decl *d;
    for (size_t i = 0; (d = argument(item, i)) != NULL; i++) {
        if (strcmp(d->name.text, name.text) == 0) return (int)i;
        check_word(c, &w, d->name.text);
    }
    Diag *x = REPORT(c, DIAG_ARG_UNKNOWN, name.span, item->name.text, name.text);
    if (diag_suggest(name.text, w.list, w.n)) {
        check_did_you_mean(c, x, name.text, &w);
        return -1;
    }
    StrBuf all = {.arena = c->arena};
    for (size_t i = 0; i < w.n; i++) sb_printf(&all, "%s%s", i ? ", " : "", w.list[i]);
    diag_hint(c->diags, x, w.n ? "it has %s" : "it has none", all.text);
    return -1;
}

Expr **expand_args(Checker *c, const Item *item, Span at, Expr **args, const Name *names, int nargs)
{
    size_t all = 0;
    while (argument(item, all)) all++;
    Expr **by_param = ARENA_ARRAY(c->arena, Expr *, all + 1);
    int n = (int)item->nparams;
    for (int i = 0; i < nargs; i++) {
        bool named = names && names[i].text;
        if (!named && i >= n) {
            Diag *d = REPORT(c, DIAG_FN_ARGS, at, item->name.text, n, n == 1 ? "" : "s", nargs);
            diag_note(c->diags, d, item->name.span, "declared here");
            if (n < (int)all)
                diag_hint(c->diags, d, "hyperparameters of its block are named: '%s = …'",
                          argument(item, (size_t)n)->name.text);
            break;
        }
        int k = named ? argument_index(c, item, names[i]) : i;
        if (k < 0) continue;
        if (by_param[k])
            REPORT(c, DIAG_ARG_TWICE, args[i]->span, argument(item, (size_t)k)->name.text);
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

/* Whether the standard library's file of schedules has one of this name. */
static bool is_library_schedule(Checker *c, const char *name)
{
    size_t len;
    const char *text = stdlib_text("schedules", &len);
    return text && strstr(text, arena_printf(c->arena, "\nschedule %s(", name));
}

static void unknown_function(Checker *c, Name name)
{
    if (c->imports_failed || name_lost(name) || check_may_be_lost(c, name, true)) return;
    Diag *d = REPORT(c, DIAG_UNKNOWN_FUNCTION, name.span, name.text);
    if (!diag_is_kept(d)) return;
    static const char *const more[] = {"lerp", "clamp", "piecewise", "interp", "old",
                                       "sum",  "mean",  "norm",      "rms",    "dot",
                                       "any",  "all",   "count"};
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
    if (expand_find(c, false, name.text))
        diag_hint(c->diags, d, "transforms are put in place by 'use %s'", name.text);
    if (is_library_schedule(c, name.text))
        diag_hint(c->diags, d, "import \"schedules.opt\" at the top of the file");
}

/* Checks the arguments of a call whose function is not known, for the mistakes inside them. */
static Expr *check_args_only(Checker *c, const Expr *e)
{
    for (int i = 0; i < e->nargs; i++) check_argument(c, e->args[i]);
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
        if (!values[i] && p->init) values[i] = check_argument(c, p->init);
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
    c->x.names = fn->kind == IT_SCHEDULE ? NAMES_SCHEDULE : NAMES_FN;
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
    if (strcmp(name, "piecewise") == 0 || strcmp(name, "interp") == 0) return expand_table(c, e);
    const Item *fn = expand_find(c, true, name);
    if (!fn) {
        unknown_function(c, e->name);
        return check_args_only(c, e);
    }
    if (fn->broken) return check_args_only(c, e);
    if (calls_itself(c, fn, e->name.span)) return check_args_only(c, e);
    Expr **given = expand_args(c, fn, e->span, e->args, e->arg_names, e->nargs);
    for (size_t i = 0; i < fn->nparams; i++)
        if (given[i]) given[i] = check_argument(c, given[i]);
    return expand_fn(c, fn, given, e->span);
}
