/* ir_fold.c - operations whose result is known when they are emitted.
 *
 * Every rule holds bit for bit for all inputs, infinities, NaNs, subnormals and both zeros included
 * (which NaN comes out is not specified). So x + 0 (which turns -0 into 0), x * 0 and x - x stay. A
 * result may have a narrower rate than the operands had. Constants fold in f64 or f32, as their
 * type says, through the rows of ops.def, to infinities and NaNs, too.
 *
 *     mul x 1 -> x          select true a b -> a    pow x 2 -> mul x x
 *     not (eq a b) -> ne a b    div 1 0 -> inf
 */
#include "fn.h"
#include "ir_impl.h"
#include <math.h>

double ir_eval(Op op, bool f64, double a, double b, double c)
{
    switch (op) {
#define EVAL_NUM(f, T) f((T)a, (T)b, (T)c)
#define EVAL_CMP(f, T) f((T)a, (T)b, (T)c)
#define EVAL_LOGIC(f, T) f(a != 0, b != 0, c != 0)
#define EVAL_SELECT(f, T) f(a != 0, (T)b, (T)c)
#define OP(ENUM, name, spelling, arity, types, expr)                                               \
    case OP_##ENUM:                                                                                \
        return f64 ? (double)EVAL_##types(fn64_##ENUM, double)                                     \
                   : (double)EVAL_##types(fn32_##ENUM, float);
#include "frontend/ops.def"
    case OP_COUNT_: break;
    }
    return NAN;
}

static const Ins *ins(const IrBuilder *b, IrRef r)
{
    return &b->b->ins[r];
}

static bool is_const(const IrBuilder *b, IrRef r)
{
    return ins(b, r)->op == IR_CONST;
}

/* Whether r is the constant v; 0 and -0 differ. */
static bool is_num(const IrBuilder *b, IrRef r, double v)
{
    return is_const(b, r) && ins(b, r)->lit.num == v && !signbit(ins(b, r)->lit.num) == !signbit(v);
}

static IrRef fold_constants(IrBuilder *b, Op op, const IrRef arg[3])
{
    double v[3] = {0};
    int n = op_info[op].arity;
    for (int k = 0; k < n; k++) {
        if (!is_const(b, arg[k])) return IR_NONE;
        v[k] = ins(b, arg[k])->lit.num;
    }
    OpType types = op_info[op].types;
    DType d = (DType)ins(b, arg[types == SELECT ? 1 : 0])->dtype;
    double r = ir_eval(op, d == DT_F64, v[0], v[1], v[2]);
    return ir_const_typed(b, types == CMP || types == LOGIC ? DT_BOOL : d, r);
}

static IrRef fold_arithmetic(IrBuilder *b, Op op, IrRef x, IrRef y)
{
    switch (op) {
    case OP_ADD:
        if (is_num(b, y, -0.0)) return x;
        return is_num(b, x, -0.0) ? y : IR_NONE;
    case OP_SUB: return is_num(b, y, 0.0) ? x : IR_NONE;
    case OP_MUL:
        if (is_num(b, y, 1)) return x;
        return is_num(b, x, 1) ? y : IR_NONE;
    case OP_DIV: return is_num(b, y, 1) ? x : IR_NONE;
    case OP_POW:
        /* What both ds_powf and ds_powc compute for these exponents; tests/ir and tests/math
         * compare the bits. */
        if (is_num(b, y, 1)) return x;
        if (is_num(b, y, 2)) return ir_op(b, OP_MUL, x, x, IR_NONE);
        if (is_num(b, y, -1)) return ir_op(b, OP_DIV, ir_const(b, 1), x, IR_NONE);
        if (!is_num(b, y, 0) && !is_num(b, y, -0.0)) return IR_NONE;
        return ir_const_typed(b, (DType)ins(b, x)->dtype, 1);
    case OP_MIN:
    case OP_MAX: return x == y ? x : IR_NONE;
    default: return IR_NONE;
    }
}

static IrRef fold_unary(IrBuilder *b, Op op, IrRef x)
{
    const Ins *i = ins(b, x);
    switch (op) {
    case OP_NEG: return i->op == IR_NEG ? i->arg[0] : IR_NONE;
    case OP_ABS:
        if (i->op == IR_ABS) return x;
        return i->op == IR_NEG ? ir_op(b, OP_ABS, i->arg[0], IR_NONE, IR_NONE) : IR_NONE;
    case OP_FLOOR: return i->op == IR_FLOOR ? x : IR_NONE;
    case OP_F32: return i->dtype == DT_F32 || i->op == IR_F32 ? x : IR_NONE;
    case OP_NOT:
        if (i->op == IR_NOT) return i->arg[0];
        if (i->op == IR_EQ) return ir_op(b, OP_NE, i->arg[0], i->arg[1], IR_NONE);
        return i->op == IR_NE ? ir_op(b, OP_EQ, i->arg[0], i->arg[1], IR_NONE) : IR_NONE;
    default: return IR_NONE;
    }
}

static IrRef fold_logic(IrBuilder *b, Op op, IrRef x, IrRef y)
{
    if (x == y) return x;
    bool stays = op == OP_AND; /* the constant that leaves the other operand */
    if (is_const(b, x)) return (ins(b, x)->lit.num != 0) == stays ? y : x;
    if (is_const(b, y)) return (ins(b, y)->lit.num != 0) == stays ? x : y;
    return IR_NONE;
}

static IrRef fold_select(IrBuilder *b, IrRef c, IrRef x, IrRef y)
{
    if (is_const(b, c)) return ins(b, c)->lit.num != 0 ? x : y;
    if (x == y) return x;
    if (ins(b, x)->dtype == DT_BOOL) { /* so that no backend selects between truth values */
        IrRef yes = ir_op(b, OP_AND, c, x, IR_NONE);
        IrRef no = ir_op(b, OP_AND, ir_op(b, OP_NOT, c, IR_NONE, IR_NONE), y, IR_NONE);
        return ir_op(b, OP_OR, yes, no, IR_NONE);
    }
    return ins(b, c)->op == IR_NOT ? ir_op(b, OP_SELECT, ins(b, c)->arg[0], y, x) : IR_NONE;
}

IrRef ir_fold(IrBuilder *b, Op op, const IrRef arg[3])
{
    if (op == OP_SELECT) return fold_select(b, arg[0], arg[1], arg[2]);
    IrRef r = fold_constants(b, op, arg);
    if (r != IR_NONE) return r;
    if (op == OP_AND || op == OP_OR) return fold_logic(b, op, arg[0], arg[1]);
    if ((op == OP_LT || op == OP_GT) && arg[0] == arg[1]) return ir_const_bool(b, false);
    if (op_info[op].arity == 1) return fold_unary(b, op, arg[0]);
    return op_info[op].arity == 2 ? fold_arithmetic(b, op, arg[0], arg[1]) : IR_NONE;
}
