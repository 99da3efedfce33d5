/* expand_list.c - lists, and the functions that take them: a choice or a line between the values
 * around x.
 *
 * Requires lists of numbers of any rate; bounds that are constant, or are so by default, ascend
 * (others must: what descends then picks some value, the same everywhere). Ensures a tree of selects as deep as the logarithm of
 * the list's length, over nodes shared with the list.
 *
 *     piecewise(s, [100, 200], [a, b, c])   ->   100 <= s ? (200 <= s ? c : b) : a
 *     interp(x, [0, 10], [a, b])            ->   10 <= x ? b : x < 0 ? a : a + (b - a)/10 * x
 */
#include "check.h"
#include <string.h>

Expr *check_list(Checker *c, const Expr *e)
{
    Expr *out = expr_new(c, EX_LIST, e->span);
    out->args = ARENA_ARRAY(c->arena, Expr *, e->nargs);
    out->nargs = e->nargs;
    for (int i = 0; i < e->nargs; i++) {
        out->args[i] = check_number(c, e->args[i]);
        if (expr_bad(out->args[i])) out->kind = EX_BAD;
    }
    return out;
}

/* An argument that must be a list; EX_BAD after a message. */
static Expr *list_argument(Checker *c, const Expr *call, int k)
{
    Expr *x = check_argument(c, call->args[k]);
    if (expr_bad(x) || x->kind == EX_LIST) return x;
    Diag *d = REPORT(c, DIAG_NOT_A_LIST, call->args[k]->span, k == 1 ? "second" : "third",
                     call->name.text);
    diag_hint(c->diags, d, "write '[a, b, …]'");
    return expr_new(c, EX_BAD, call->span);
}

/* What stands there unless the host sets something else. */
static const Expr *by_default(const Expr *e)
{
    bool hyper = e->kind == EX_NAME && e->sym->kind == SYM_HYPER;
    return hyper && !e->is_const && e->sym->value ? e->sym->value : e;
}

static bool ascends(Checker *c, const Expr *call, const Expr *list)
{
    for (int i = 1; i < list->nargs; i++) {
        const Expr *a = by_default(list->args[i - 1]), *b = by_default(list->args[i]);
        if (!a->is_const || !b->is_const || a->cval <= b->cval) continue;
        REPORT(c, DIAG_TABLE_ORDER, b->span, call->name.text, b->cval, a->cval);
        return false;
    }
    return true;
}

static Expr *op2(Checker *c, Op op, Span at, Expr *a, Expr *b)
{
    return expr_op(c, op, at, a, b, NULL);
}

/* values[i], where i of the n bounds are <= x. */
static Expr *choose(Checker *c, Span at, Expr *x, Expr *const *bounds, Expr *const *values, int n)
{
    if (n == 0) return values[0];
    int middle = n / 2;
    Expr *low = choose(c, at, x, bounds, values, middle);
    Expr *high = choose(c, at, x, bounds + middle + 1, values + middle + 1, n - middle - 1);
    return expr_cond(c, at, op2(c, OP_LE, at, bounds[middle], x), high, low);
}

/* From point i to the next: y0 + (y1 - y0) / (x1 - x0) * (x - x0), as numpy.interp has it. */
static Expr *segment(Checker *c, Span at, Expr *x, Expr *const *xs, Expr *const *ys)
{
    Expr *slope =
        op2(c, OP_DIV, at, op2(c, OP_SUB, at, ys[1], ys[0]), op2(c, OP_SUB, at, xs[1], xs[0]));
    return op2(c, OP_ADD, at, ys[0], op2(c, OP_MUL, at, slope, op2(c, OP_SUB, at, x, xs[0])));
}

static Expr *interpolate(Checker *c, Span at, Expr *x, const Expr *xs, const Expr *ys)
{
    int n = xs->nargs;
    if (n == 1) return ys->args[0];
    Expr **lines = ARENA_ARRAY(c->arena, Expr *, n);
    for (int i = 0; i + 1 < n; i++) lines[i] = segment(c, at, x, xs->args + i, ys->args + i);
    /* NaN takes the first line, and stays NaN. */
    lines[0] = expr_cond(c, at, op2(c, OP_LT, at, x, xs->args[0]), ys->args[0], lines[0]);
    lines[n - 1] = ys->args[n - 1];
    return choose(c, at, x, xs->args + 1, lines, n - 1);
}

Expr *expand_table(Checker *c, const Expr *e)
{
    Expr *x = check_number(c, e->args[0]), *xs = list_argument(c, e, 1),
         *ys = list_argument(c, e, 2);
    bool piecewise = strcmp(e->name.text, "piecewise") == 0;
    if (expr_bad(x) || expr_bad(xs) || expr_bad(ys)) return expr_new(c, EX_BAD, e->span);
    int want = xs->nargs + piecewise;
    if (ys->nargs != want) {
        Diag *d = REPORT(c, DIAG_TABLE_LENGTH, e->span, e->name.text, xs->nargs,
                         piecewise ? "bound" : "point", xs->nargs == 1 ? "" : "s", want,
                         want == 1 ? "" : "s", ys->nargs);
        diag_hint(c->diags, d, "%s",
                  piecewise ? "one value before the first bound, and one from each bound on"
                            : "one value at each point");
        return expr_new(c, EX_BAD, e->span);
    }
    if (!ascends(c, e, xs)) return expr_new(c, EX_BAD, e->span);
    return piecewise ? choose(c, e->span, x, xs->args, ys->args, xs->nargs)
                     : interpolate(c, e->span, x, xs, ys);
}
