/* lower_expr.c - values: names, operations, choices, reductions, draws.
 *
 * Requires checked expressions. The types that the checker gave decide what is rounded, and along
 * which axes a reduction counts, whatever constants have made of a value since. Nodes may be shared:
 * within a statement each is lowered once.
 *
 *     mean[row](g*g)   ->   %3:f64.row = sum %2 -> r0;  %5:f64.row = div %3 %4 (cols);
 *                           %6:f32.row = round %5
 */
#include "lower.h"
#include <string.h>

/* (c and a) or (not c and b). Here as elsewhere, one call that emits per statement: arguments have
 * no order in C, and the text of a module must not depend on the compiler. */
static IrRef choose_truth(Lower *l, IrRef c, IrRef a, IrRef b)
{
    IrRef x = lower_op2(l, OP_AND, c, a), no = lower_op1(l, OP_NOT, c);
    IrRef y = lower_op2(l, OP_AND, no, b);
    return lower_op2(l, OP_OR, x, y);
}

IrRef lower_choose(Lower *l, IrRef c, IrRef a, IrRef b)
{
    if (a == b) return a;
    if (lower_ins(l, a)->dtype != DT_BOOL) return ir_op(&l->b, OP_SELECT, c, a, b);
    return choose_truth(l, c, a, b);
}

/* ---- symbols -------------------------------------------------------------------------------- */

/* A default that uses other hypers holds until the hyper is set: its slot is NaN until then (ir.h,
 * Slot.derived). */
static IrRef hyper_value(Lower *l, Symbol *s)
{
    if (s->is_const) return ir_const(&l->b, s->cval);
    IrRef set = ir_load(&l->b, l->slot[s->id]);
    if (!s->derived) return set;
    IrRef otherwise = lower_expr(l, s->value), is_set = lower_op2(l, OP_EQ, set, set);
    return lower_choose(l, is_set, set, otherwise);
}

static IrRef rest_of_first(Lower *l)
{
    IrRef numel = lower_property(l, "numel"), first = lower_property(l, "first");
    return lower_op2(l, OP_DIV, numel, first);
}

/* The number of this step; in other entry points, of the steps so far. */
static IrRef clock_t(Lower *l)
{
    IrRef applied = ir_load(&l->b, l->t_slot);
    if (l->at) return applied;
    IrRef one = ir_const(&l->b, 1);
    return lower_op2(l, OP_ADD, applied, one);
}

static IrRef given_value(Lower *l, const Symbol *s)
{
    switch (s->given) {
    case GIVEN_T: return clock_t(l);
    case GIVEN_S: return ir_load(&l->b, l->s_slot);
    case GIVEN_PI:
    case GIVEN_INF: return ir_const(&l->b, s->cval);
    case GIVEN_ROWS:
    case GIVEN_COLS:
    case GIVEN_NUMEL:
    case GIVEN_NDIM: return lower_property(l, s->name);
    case GIVEN_LEAD: return lower_property(l, "first");
    case GIVEN_REST: return rest_of_first(l);
    case GIVEN_FIRST: return l->first_g;
    default: return l->value[s->id];
    }
}

static IrRef symbol_value(Lower *l, Symbol *s)
{
    if (l->selecting && s->kind == SYM_LET) return lower_expr(l, s->value);
    switch (s->kind) {
    case SYM_HYPER: return hyper_value(l, s);
    case SYM_GIVEN: return given_value(l, s);
    case SYM_INPUT: return ir_load(&l->b, l->slot[s->id]);
    default: return l->value[s->id];
    }
}

/* ---- operations ----------------------------------------------------------------------------- */

static IrRef lower_op(Lower *l, const Expr *e)
{
    IrRef x[3] = {IR_NONE, IR_NONE, IR_NONE};
    Rate operands = RATE_GLOBAL;
    for (int i = 0; i < e->nargs; i++) {
        x[i] = lower_expr(l, e->args[i]);
        operands = rate_join(operands, e->args[i]->rate);
    }
    if (rate_is_elementwise(operands) && op_info[e->op].types != LOGIC)
        for (int i = 0; i < e->nargs; i++) x[i] = ir_round(&l->b, x[i]);
    return ir_op(&l->b, e->op, x[0], x[1], x[2]);
}

static IrRef lower_cond(Lower *l, const Expr *e)
{
    bool element = rate_is_elementwise(e->rate) && e->dtype != DT_BOOL;
    IrRef x;
    if (e->args[0]->is_const) {
        x = lower_expr(l, e->args[0]->cval != 0 ? e->args[1] : e->args[2]);
        return element ? ir_round(&l->b, x) : x;
    }
    IrRef c = lower_expr(l, e->args[0]);
    x = lower_expr(l, e->args[1]);
    IrRef y = lower_expr(l, e->args[2]);
    if (element) x = ir_round(&l->b, x), y = ir_round(&l->b, y);
    return lower_choose(l, c, x, y);
}

static IrRef lower_match(Lower *l, const Expr *e)
{
    IrRef x = lower_name_test(l, &l->rule->names[(size_t)e->num]), zero = ir_const(&l->b, 0);
    return lower_op2(l, e->negated ? OP_EQ : OP_NE, x, zero);
}

static IrRef lower_draw(Lower *l, const Expr *e)
{
    static const IrOp ops[] = {[DRAW_NORMAL] = IR_NORMAL,
                               [DRAW_UNIFORM] = IR_UNIFORM,
                               [DRAW_RADEMACHER] = IR_RADEMACHER};
    IrRef lo = lower_property(l, "draw_lo"), hi = lower_property(l, "draw_hi");
    return ir_draw(&l->b, ops[e->draw], lo, hi, (uint32_t)e->num);
}

/* ---- reductions ----------------------------------------------------------------------------- */

void lower_see(Lower *l, Rate rate)
{
    if (!rate_is_vector(rate)) return;
    if (rate & AXIS_BLOCK)
        l->view = VIEW_BLOCK;
    else if (l->dims)
        l->view = shape_of_first(l->dims) ? VIEW_FIRST : VIEW_MATRIX;
}

static const Rate scope_rates[] = {
    [SCOPE_TENSOR] = RATE_TENSOR, [SCOPE_ROW] = RATE_ROW,     [SCOPE_COL] = RATE_COL,
    [SCOPE_MATRIX] = RATE_MATRIX, [SCOPE_BLOCK] = RATE_BLOCK, [SCOPE_GROUP] = RATE_GROUP,
    [SCOPE_ALL] = RATE_GLOBAL,
};

/* What is reduced to GROUP and GLOBAL goes by the statement's number, so that all bodies feed one
 * result; `part` tells a mean's count from its sum. */
static IrRef reduce(Lower *l, const Expr *e, ReduceOp op, IrRef x, IrRef y, Rate scope, int part)
{
    enum { PART_GUARD = 15 };
    uint64_t key = ((uint64_t)e->id + 1) << 16 | (uint64_t)l->reduced[e->id] << 4;
    Rate rate = lower_ins(l, x)->rate;
    if (y != IR_NONE) rate = rate_join(rate, lower_ins(l, y)->rate);
    IrRef guard = l->guard;
    /* Of values of groups: those of the groups in which it holds for some tensor. */
    if (guard != IR_NONE && rate_within(rate, RATE_GROUP) &&
        !rate_within(lower_ins(l, guard)->rate, RATE_GROUP))
        guard = ir_reduce_keyed(&l->b, RED_ANY, guard, IR_NONE, IR_NONE, RATE_GROUP, key | PART_GUARD);
    return ir_reduce_keyed(&l->b, op, x, y, guard, scope, key | (uint64_t)part);
}

/* One value within the scope: what the reduction makes of it alone. */
static IrRef reduce_one(Lower *l, ReduceKind kind, IrRef x, IrRef y)
{
    IrRef zero = ir_const(&l->b, 0), one = ir_const(&l->b, 1);
    switch (kind) {
    case RK_SUM:
    case RK_MEAN: return lower_op2(l, OP_ADD, zero, x);
    case RK_NORM:
    case RK_RMS:
        if (rate_is_elementwise(lower_ins(l, x)->rate)) return lower_op1(l, OP_ABS, x);
        return lower_op1(l, OP_SQRT, lower_op2(l, OP_MUL, x, x));
    case RK_DOT: return lower_op2(l, OP_ADD, zero, lower_op2(l, OP_MUL, x, y));
    case RK_COUNT: return lower_choose(l, x, one, zero);
    default: return x;
    }
}

/* n equal values, of vectors that a body has folded, or does not have. */
static IrRef reduce_equal(Lower *l, ReduceKind kind, IrRef x, IrRef y, IrRef n)
{
    IrRef zero = ir_const(&l->b, 0);
    if (lower_ins(l, x)->dtype == DT_F32) x = lower_op1(l, OP_F32, x);
    if (y != IR_NONE && lower_ins(l, y)->dtype == DT_F32) y = lower_op1(l, OP_F32, y);
    switch (kind) {
    case RK_SUM: return lower_op2(l, OP_MUL, x, n);
    case RK_NORM: {
        IrRef square = lower_op2(l, OP_MUL, x, x);
        return lower_op1(l, OP_SQRT, lower_op2(l, OP_MUL, square, n));
    }
    case RK_RMS: return lower_op1(l, OP_ABS, x);
    case RK_DOT: {
        IrRef product = lower_op2(l, OP_MUL, x, y);
        return lower_op2(l, OP_MUL, product, n);
    }
    case RK_COUNT: return lower_choose(l, x, n, zero);
    default: return x; /* mean max min any all */
    }
}

typedef struct Dims {
    IrRef rows, cols, mats;
} Dims;

static Dims dims(Lower *l)
{
    Dims d;
    bool first = l->view == VIEW_FIRST;
    d.rows = lower_property(l, first ? "first" : "rows");
    d.cols = first ? rest_of_first(l) : lower_property(l, "cols");
    d.mats = first ? ir_const(&l->b, 1) : lower_property(l, "mats");
    return d;
}

/* How many values of a rate a tensor has. */
static IrRef count_in_tensor(Lower *l, Rate rate)
{
    IrRef numel = lower_property(l, "numel");
    if (rate_is_element(rate)) return numel;
    if (rate & AXIS_BLOCK) {
        IrRef blocks = lower_op2(l, OP_DIV, numel, ir_load(&l->b, l->block_slot));
        IrRef down = lower_op1(l, OP_FLOOR, lower_op1(l, OP_NEG, blocks));
        return lower_op1(l, OP_NEG, down);
    }
    if (rate_is_scalar(rate)) return ir_const(&l->b, 1);
    Dims d = dims(l);
    if (rate & AXIS_ROW) return lower_op2(l, OP_MUL, d.mats, d.rows);
    return rate & AXIS_COL ? lower_op2(l, OP_MUL, d.mats, d.cols) : d.mats;
}

static IrRef count_in_matrix(Lower *l, Rate rate)
{
    Dims d = dims(l);
    if (rate_is_element(rate)) return lower_op2(l, OP_MUL, d.rows, d.cols);
    return rate & AXIS_ROW ? d.rows : d.cols;
}

/* A truth value that holds, and varies as x does. */
static IrRef every(Lower *l, IrRef x)
{
    IrRef zero = ir_const(&l->b, 0);
    IrRef c = lower_ins(l, x)->dtype == DT_BOOL ? x : lower_op2(l, OP_GE, x, zero);
    IrRef no = lower_op1(l, OP_NOT, c);
    return lower_op2(l, OP_OR, c, no);
}

/* How many values a mean is over: x is one of them, `rate` the rate at which they are counted. */
static IrRef population(Lower *l, const Expr *e, IrRef x, Rate rate, Rate scope)
{
    if (scope == RATE_BLOCK) return reduce(l, e, RED_COUNT, every(l, x), IR_NONE, scope, 1);
    if (scope & AXIS_ROW) return dims(l).cols;
    if (scope & AXIS_COL) return dims(l).rows;
    if (scope & AXIS_MATRIX) return count_in_matrix(l, rate);
    if (scope == RATE_TENSOR) return count_in_tensor(l, rate);
    if (rate == RATE_GROUP) return reduce(l, e, RED_COUNT, every(l, x), IR_NONE, scope, 1);
    if (rate == RATE_TENSOR) {
        IrRef applied = ir_load(&l->b, l->t_slot), zero = ir_const(&l->b, 0);
        IrRef tensors = lower_op2(l, OP_GE, applied, zero);
        return reduce(l, e, RED_COUNT, tensors, IR_NONE, scope, 1);
    }
    bool all = scope == RATE_GLOBAL && l->guard == IR_NONE && !l->arms;
    if (all && rate_is_element(rate)) return lower_property(l, "numel_all");
    IrRef n = count_in_tensor(l, rate); /* [r, ..] has one matrix: a constant */
    return reduce(l, e, RED_SUM, ir_spread(&l->b, n, RATE_TENSOR), IR_NONE, scope, 1);
}

/* Makes x vary as its type says, where a constant or an arm made it coarser. */
static IrRef as_typed(Lower *l, IrRef x, IrRef y, Rate rate, Rate scope)
{
    Rate now = lower_ins(l, x)->rate;
    if (y != IR_NONE) now = rate_join(now, lower_ins(l, y)->rate);
    if (rate_within(rate, now)) return x;
    if (scope == RATE_TENSOR && rate_is_scalar(now)) return x; /* taken once per element */
    return ir_spread(&l->b, x, rate);
}

static IrRef finish(Lower *l, const Expr *e, IrRef r, IrRef x, Rate rate, Rate scope)
{
    bool mean = e->reduce == RK_MEAN || e->reduce == RK_RMS;
    if (mean) {
        IrRef n = population(l, e, x, rate, scope);
        r = lower_op2(l, OP_DIV, r, n);
    }
    return e->reduce == RK_NORM || e->reduce == RK_RMS ? lower_op1(l, OP_SQRT, r) : r;
}

static IrRef lower_reduce(Lower *l, const Expr *e)
{
    static const ReduceOp ops[] = {
        [RK_SUM] = RED_SUM,    [RK_MEAN] = RED_SUM,   [RK_MAX] = RED_RMAX, [RK_MIN] = RED_RMIN,
        [RK_NORM] = RED_SUMSQ, [RK_RMS] = RED_SUMSQ,  [RK_DOT] = RED_DOT,  [RK_ANY] = RED_ANY,
        [RK_ALL] = RED_ALL,    [RK_COUNT] = RED_COUNT};
    Rate scope = scope_rates[e->scope], rate = RATE_GLOBAL, now = RATE_GLOBAL;
    IrRef x[2] = {IR_NONE, IR_NONE};
    for (int i = 0; i < e->nargs; i++) rate = rate_join(rate, e->args[i]->rate);
    for (int i = 0; i < e->nargs; i++) {
        x[i] = lower_expr(l, e->args[i]);
        bool round = rate_is_elementwise(rate) && e->args[i]->dtype != DT_BOOL;
        if (round) x[i] = ir_round(&l->b, x[i]);
        now = rate_join(now, lower_ins(l, x[i])->rate);
    }
    lower_see(l, scope);
    bool round = rate_is_elementwise(scope) && e->dtype != DT_BOOL;
    if (rate == scope) {
        IrRef r = reduce_one(l, e->reduce, x[0], x[1]);
        return round ? ir_round(&l->b, r) : r;
    }
    if (rate_is_vector(rate) && rate_is_scalar(now)) {
        if (scope & AXIS_MATRIX)
            return reduce_equal(l, e->reduce, x[0], x[1], count_in_matrix(l, rate));
        if (scope == RATE_TENSOR)
            return reduce_equal(l, e->reduce, x[0], x[1], count_in_tensor(l, rate));
        if (l->view == VIEW_FLAT) l->view = rate & AXIS_BLOCK ? VIEW_BLOCK : VIEW_MATRIX;
    }
    x[0] = as_typed(l, x[0], x[1], rate, scope);
    IrRef r = reduce(l, e, ops[e->reduce], x[0], x[1], scope, 0);
    r = finish(l, e, r, x[0], rate, scope);
    if (l->reduced[e->id] < UINT8_MAX) l->reduced[e->id]++;
    return round ? ir_round(&l->b, r) : r;
}

/* ---- expressions ---------------------------------------------------------------------------- */

static IrRef lower_kind(Lower *l, const Expr *e)
{
    switch (e->kind) {
    case EX_NUMBER: return ir_const(&l->b, e->num);
    case EX_NAME: return symbol_value(l, e->sym);
    case EX_OLD: return e->sym == l->rule->g ? l->entry_g : l->entry[e->sym->id];
    case EX_OP: return lower_op(l, e);
    case EX_COND: return lower_cond(l, e);
    case EX_REDUCE: return lower_reduce(l, e);
    case EX_DRAW: return lower_draw(l, e);
    case EX_MATCH: return lower_match(l, e);
    default: l->overflow = true; return ir_const(&l->b, 0); /* check leaves no other */
    }
}

IrRef lower_expr(Lower *l, const Expr *e)
{
    if (l->b.b->n > IR_MAX_INS - 64 || l->m->nslots > IR_MAX_SLOTS - 8) l->overflow = true;
    if (l->overflow) return ir_const(&l->b, 0);
    if (l->memo_of[e->id] == l->statement) return l->memo[e->id];
    Span before = l->b.loc;
    l->b.loc = e->span;
    IrRef x = lower_kind(l, e);
    l->b.loc = before;
    l->memo[e->id] = x;
    l->memo_of[e->id] = l->statement;
    return x;
}

IrRef lower_value(Lower *l, const Expr *e)
{
    l->statement++;
    return lower_expr(l, e);
}
