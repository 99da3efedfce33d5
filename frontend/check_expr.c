/* check_expr.c - gives every expression a type: truth value or number, and the rate at which it
 * varies.
 *
 * Requires a parsed expression and a context; ensures a checked node (EX_BAD after a message).
 * Operands of a reported expression are still checked, so that one run shows all mistakes, and
 * nothing is said about a node that contains a broken one.
 *
 *     lr * u   ->   MUL(NAME lr f64.group, NAME u f32.element) f32.element
 */
#include "check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool check_budget(Checker *c)
{
    if (c->nops < CHECK_MAX_OPS) {
        c->nops++;
        return true;
    }
    if (!c->too_long && !c->is_function)
        REPORT(c, DIAG_TOO_MANY_OPS, c->rule->item->name.span, c->rule->name, (int)CHECK_MAX_OPS);
    c->too_long = true;
    return false;
}

bool check_slots(Checker *c, int n)
{
    if (c->nslots + (uint32_t)n <= CHECK_MAX_SLOTS) {
        c->nslots += (uint32_t)n;
        return true;
    }
    if (!c->too_long && !c->is_function)
        REPORT(c, DIAG_TOO_MANY_SLOTS, c->rule->item->name.span, c->rule->name,
               (int)CHECK_MAX_SLOTS);
    c->too_long = true;
    return false;
}

Expr *expr_new(Checker *c, ExprKind kind, Span span)
{
    Expr *e = ARENA_NEW(c->arena, Expr);
    e->kind = check_budget(c) ? kind : EX_BAD;
    e->span = span;
    e->id = c->rule->nexprs++;
    e->depth = 1;
    return e;
}

void expr_set_type(Checker *c, Expr *e, bool truth, Rate rate)
{
    bool f32 = rate_is_elementwise(rate) && !c->options->compute_f64;
    e->dtype = truth ? DT_BOOL : f32 ? DT_F32 : DT_F64;
    e->rate = rate;
}

static Expr *bad_expr(Checker *c, Span span)
{
    Expr *e = ARENA_NEW(c->arena, Expr);
    *e = (Expr){.kind = EX_BAD, .span = span, .id = c->rule->nexprs++};
    return e;
}

/* A node over checked operands; broken where one of them is, or where it becomes too deep. */
static Expr *node(Checker *c, ExprKind kind, Span span, int n, Expr *const *args)
{
    Expr *e = expr_new(c, kind, span);
    e->args = ARENA_ARRAY(c->arena, Expr *, n);
    e->nargs = n;
    for (int i = 0; i < n; i++) {
        e->args[i] = args[i];
        if (args[i]->depth >= e->depth) e->depth = args[i]->depth + 1;
        if (expr_bad(args[i])) e->kind = EX_BAD;
    }
    if (e->kind != EX_BAD && e->depth > CHECK_MAX_DEPTH) {
        REPORT(c, DIAG_TOO_NESTED, span, (int)CHECK_MAX_DEPTH);
        e->kind = EX_BAD;
    }
    return e;
}

/* A scalar that meets elements is rounded to f32. */
static void warn_narrow(Checker *c, const Expr *e)
{
    bool hyper = e->kind == EX_NAME && e->sym->kind == SYM_HYPER && !e->is_const;
    const Expr *x = hyper && e->sym->value ? e->sym->value : e;
    float f = (float)x->cval;
    bool known = x->is_const && !rate_is_elementwise(e->rate) && !expr_truth(e);
    if (!known || x->cval == 0 || !isfinite(x->cval) || (f != 0 && isfinite(f))) return;
    if (c->x.dead || c->options->compute_f64) return;
    REPORT(c, DIAG_NARROW_F32, e->span, x->cval, hyper ? ", the default," : "",
           f == 0 ? "0" : "infinite");
}

/* `false and x`, `true or x` are known, and so is what is left of the others: options fold. */
static Expr *short_circuit(Op op, Expr *x, Expr *y)
{
    Expr *known = x->is_const ? x : y, *other = x->is_const ? y : x;
    bool decided = (known->cval != 0) == (op == OP_OR);
    return decided ? known : other;
}

Expr *expr_op(Checker *c, Op op, Span span, Expr *x, Expr *y, Expr *z)
{
    Expr *args[3] = {x, y, z};
    int n = op_info[op].arity;
    bool logic = (op == OP_AND || op == OP_OR) && !expr_bad(x) && !expr_bad(y);
    if (logic && (x->is_const || y->is_const)) return short_circuit(op, x, y);
    Expr *e = node(c, EX_OP, span, n, args);
    if (expr_bad(e)) return e;
    e->op = op;
    Rate rate = RATE_GLOBAL;
    bool constant = true;
    double v[3] = {0, 0, 0};
    for (int i = 0; i < n; i++) {
        rate = rate_join(rate, args[i]->rate);
        constant = constant && args[i]->is_const;
        v[i] = args[i]->cval;
    }
    expr_set_type(c, e, op_info[op].types == CMP || op_info[op].types == LOGIC, rate);
    for (int i = 0; i < n && rate_is_elementwise(rate); i++) warn_narrow(c, args[i]);
    e->is_const = constant && !rate_is_elementwise(rate) && fold_op(op, v[0], v[1], v[2], &e->cval);
    return e;
}

Expr *expr_cond(Checker *c, Span span, Expr *cond, Expr *then, Expr *otherwise)
{
    Expr *args[3] = {cond, then, otherwise};
    Expr *e = node(c, EX_COND, span, 3, args);
    if (expr_bad(e)) return e;
    Rate rate = rate_join(cond->rate, rate_join(then->rate, otherwise->rate));
    expr_set_type(c, e, expr_truth(then), rate);
    for (int i = 1; i < 3 && rate_is_elementwise(rate); i++) warn_narrow(c, args[i]);
    const Expr *taken = cond->cval != 0 ? then : otherwise;
    e->is_const = cond->is_const && taken->is_const && !rate_is_elementwise(rate);
    e->cval = taken->cval;
    return e;
}

Expr *expr_number(Checker *c, Span span, double value)
{
    Expr *x = expr_new(c, EX_NUMBER, span);
    x->num = x->cval = value;
    x->is_const = true;
    expr_set_type(c, x, false, RATE_GLOBAL);
    return x;
}

Expr *check_number(Checker *c, const Expr *e)
{
    Expr *x = check_expr(c, e);
    if (expr_bad(x) || !expr_truth(x)) return x;
    Diag *d = REPORT(c, DIAG_NOT_NUMBER, e->span, "this");
    diag_hint(c->diags, d, "write '… ? 1 : 0'");
    return bad_expr(c, e->span);
}

Expr *check_condition(Checker *c, const Expr *e)
{
    Expr *x = check_expr(c, e);
    if (expr_bad(x) || expr_truth(x)) return x;
    Diag *d = REPORT(c, DIAG_NOT_TRUTH, e->span, "a condition");
    diag_hint(c->diags, d, "compare it: '… != 0'");
    return bad_expr(c, e->span);
}

static bool operand_fits(Checker *c, Op op, const Expr *source, const Expr *x)
{
    bool want_truth = op_info[op].types == LOGIC;
    if (expr_bad(x) || expr_truth(x) == want_truth) return true;
    const char *what = arena_printf(c->arena, "an operand of '%s'",
                                    op == OP_NEG   ? "-"
                                    : op == OP_POW ? "^"
                                                   : op_info[op].spelling);
    if (want_truth) {
        Diag *d = REPORT(c, DIAG_NOT_TRUTH, source->span, what);
        diag_hint(c->diags, d, "compare it: '… != 0'");
    } else {
        Diag *d = REPORT(c, DIAG_NOT_NUMBER, source->span, what);
        diag_hint(c->diags, d, "%s",
                  op_info[op].types == CMP ? "truth values are combined with 'and', 'or' and 'not'"
                                           : "write '… ? 1 : 0'");
    }
    return false;
}

static Expr *check_op(Checker *c, const Expr *e)
{
    Expr *args[3] = {NULL, NULL, NULL}, *text = check_text_op(c, e);
    bool fits = true;
    if (text) return text;
    for (int i = 0; i < e->nargs; i++) { /* as many as the op has: build.c */
        args[i] = check_expr(c, e->args[i]);
        fits = operand_fits(c, e->op, e->args[i], args[i]) && fits;
    }
    if (!fits) return bad_expr(c, e->span);
    bool trig = e->op == OP_SIN || e->op == OP_COS;
    if (trig && !expr_bad(args[0]) && rate_is_elementwise(args[0]->rate)) {
        Diag *d = REPORT(c, DIAG_F64_ONLY, e->args[0]->span, op_info[e->op].spelling,
                         rate_name(args[0]->rate));
        diag_hint(c->diags, d, "it is there for schedules and group values, in f64");
        return bad_expr(c, e->span);
    }
    return expr_op(c, e->op, e->span, args[0], args[1], args[2]);
}

static Expr *check_cond(Checker *c, const Expr *e)
{
    Expr *cond = check_condition(c, e->args[0]);
    bool dead = c->x.dead, known = !expr_bad(cond) && cond->is_const;
    c->x.dead = dead || (known && cond->cval == 0);
    Expr *then = check_expr(c, e->args[1]);
    c->x.dead = dead || (known && cond->cval != 0);
    Expr *otherwise = check_expr(c, e->args[2]);
    c->x.dead = dead;
    if (!expr_bad(then) && !expr_bad(otherwise) && expr_truth(then) != expr_truth(otherwise)) {
        REPORT(c, DIAG_ARMS_DIFFER, e->span, "'? :'");
        return bad_expr(c, e->span);
    }
    return expr_cond(c, e->span, cond, then, otherwise);
}

static const struct {
    Rate rate;
    const char *what;
} scopes[] = {
    [SCOPE_TENSOR] = {RATE_TENSOR, "a tensor"}, [SCOPE_ROW] = {RATE_ROW, "a row"},
    [SCOPE_COL] = {RATE_COL, "a column"},       [SCOPE_MATRIX] = {RATE_MATRIX, "a matrix"},
    [SCOPE_BLOCK] = {RATE_BLOCK, "a block"},    [SCOPE_GROUP] = {RATE_GROUP, "a group"},
    [SCOPE_ALL] = {RATE_GLOBAL, "all tensors"},
};

/* Whether the scope may stand here, and a value of the rate has one value or more within it. */
static bool scope_fits(Checker *c, const Expr *e, Rate rate)
{
    Rate scope = scopes[e->scope].rate;
    const char *name = arena_printf(c->arena, "'[%s]'", scope_kind_name(e->scope));
    if (scope & AXIS_MATRIX && !check_in_arm(c, e->span, name)) return false;
    if (scope & AXIS_BLOCK && !check_block_size(c, e->scope_size, e->span)) return false;
    if (rate_within(scope, rate)) return true;
    Diag *d = REPORT(c, DIAG_REDUCE_COARSE, e->span, reduce_kind_name(e->reduce),
                     scopes[e->scope].what, rate_name(rate));
    diag_hint(c->diags, d, "use the value itself");
    return false;
}

static Expr *check_reduce(Checker *c, const Expr *e)
{
    bool truth = e->reduce == RK_ANY || e->reduce == RK_ALL || e->reduce == RK_COUNT;
    Expr *args[2] = {NULL, NULL};
    bool fits = true;
    Rate rate = RATE_GLOBAL;
    for (int i = 0; i < e->nargs; i++) {
        Expr *x = check_expr(c, e->args[i]);
        if (expr_bad(x)) fits = false;
        if (!expr_bad(x) && expr_truth(x) != truth) {
            const char *what =
                arena_printf(c->arena, "the operand of '%s'", reduce_kind_name(e->reduce));
            Diag *d = REPORT(c, truth ? DIAG_NOT_TRUTH : DIAG_NOT_NUMBER, e->args[i]->span, what);
            diag_hint(c->diags, d, "%s",
                      truth ? "compare it: '… != 0'" : "'count' counts truth values");
            fits = false;
        }
        args[i] = x;
        rate = rate_join(rate, x->rate);
    }
    if (!fits || !scope_fits(c, e, rate)) return bad_expr(c, e->span);
    if (!check_slots(c, 2)) return bad_expr(c, e->span); /* a mean may count, too */
    Expr *out = node(c, EX_REDUCE, e->span, e->nargs, args);
    out->reduce = e->reduce;
    out->scope = e->scope;
    expr_set_type(c, out, e->reduce == RK_ANY || e->reduce == RK_ALL,
                  scopes[e->scope].rate);
    return out;
}

/* normal() uniform() rademacher(): a value per element; each place in the rule draws its own. */
static Expr *check_draw(Checker *c, const Expr *e)
{
    Expr *out = expr_new(c, EX_DRAW, e->span);
    out->draw = strcmp(e->name.text, "normal") == 0    ? DRAW_NORMAL
                : strcmp(e->name.text, "uniform") == 0 ? DRAW_UNIFORM
                                                       : DRAW_RADEMACHER;
    out->name = e->name;
    out->num = c->ndraws++;
    expr_set_type(c, out, false, RATE_ELEMENT);
    return out;
}

static Expr *check_kind(Checker *c, const Expr *e)
{
    switch (e->kind) {
    case EX_NUMBER: return expr_number(c, e->span, e->num);
    case EX_NAME: return check_name(c, e);
    case EX_OLD: return e->nargs ? array_read(c, e, check_old_symbol) : check_old(c, e);
    case EX_OP: return check_op(c, e);
    case EX_CALL: return expand_call(c, e);
    case EX_REDUCE: return check_reduce(c, e);
    case EX_COND: return check_cond(c, e);
    case EX_STRING: check_text_here(c, e->span); break;
    case EX_INDEX: return array_read(c, e, check_symbol);
    case EX_LIST: return check_list(c, e);
    case EX_MATCH: return check_match(c, e);
    case EX_MATMUL: check_unsupported(c, e->span, "'@', the matrix product"); break;
    case EX_DRAW: return check_draw(c, e);
    case EX_BAD: break;
    }
    return bad_expr(c, e->span);
}

static Expr *check_any(Checker *c, const Expr *e)
{
    if (!e) return bad_expr(c, (Span){0, 0}); /* lost to a syntax error */
    if (c->too_long) return bad_expr(c, e->span);
    if (c->x.depth >= CHECK_MAX_DEPTH) {
        REPORT(c, DIAG_TOO_NESTED, e->span, (int)CHECK_MAX_DEPTH);
        return bad_expr(c, e->span);
    }
    c->x.depth++;
    Expr *x = check_kind(c, e);
    c->x.depth--;
    return x;
}

Expr *check_argument(Checker *c, const Expr *e)
{
    const Symbol *s = e && e->kind == EX_NAME ? check_lookup(c, e->name) : NULL;
    if (!s || s->kind != SYM_ARRAY) return check_any(c, e);
    Expr *out = expr_new(c, EX_LIST, e->span);
    out->args = ARENA_ARRAY(c->arena, Expr *, s->nelems);
    for (int i = 0; i < s->nelems; i++) {
        out->args[out->nargs++] = check_symbol(c, s->elems[i], e->span);
        if (expr_bad(out->args[i])) out->kind = EX_BAD;
    }
    if (s->nelems == 0) out->kind = EX_BAD; /* its size was reported */
    return out;
}

Expr *check_expr(Checker *c, const Expr *e)
{
    Expr *x = check_any(c, e);
    if (x->kind != EX_LIST) return x;
    Diag *d = REPORT(c, DIAG_LIST_HERE, e->span);
    diag_hint(c->diags, d, "lists are arguments of piecewise, interp, functions and schedules");
    return bad_expr(c, e->span);
}
