/* lint.c - what a module does at its first step with a gradient of zero: a warning where NaN or
 * infinity reaches a store.
 *
 * Requires a verified module whose hyperparameters have defaults; one tensor of one element (so that
 * vectors have one value, too), p = 1, g = 0, inputs and draws 1, nothing applied yet. Ensures at most one message: the first operation that makes a value
 * not finite out of finite ones, on the way to a store.
 *
 *     p -= m / sqrt(v)   ->   W104 '/' gives NaN at the first step with a gradient of 0, …
 */
#include "compile.h"
#include "reduce.h"
#include <math.h>
#include <string.h>

static double first_value(const Slot *s)
{
    switch (s->kind) {
    case SLOT_PARAM:
    case SLOT_INPUT: return 1;
    case SLOT_HYPER: return s->has_default ? s->def : NAN;
    case SLOT_STATE: return s->init;
    case SLOT_PROP: return strcmp(s->name, "gbits") == 0 ? 32 : 1;
    default: return 0;
    }
}

static double evaluate(const IrModule *m, const Ins *i, const double *v)
{
    double x[3] = {0, 0, 0};
    for (int k = 0; k < 3; k++)
        if (i->arg[k] != IR_NONE) x[k] = v[i->arg[k]];
    if (i->op == IR_CONST) return i->lit.num;
    if (i->op == IR_LOAD) return first_value(&m->slots[i->lit.slot]);
    if (i->op == IR_ROUND) return (float)x[0];
    if (i->op == IR_NORMAL || i->op == IR_UNIFORM || i->op == IR_RADEMACHER) return 1;
    if (!ir_is_reduce(i))
        return ir_eval((Op)i->op, i->dtype == DT_F64, x[0], x[1], x[2]); /* exact for comparisons */
    ReduceOp op = (ReduceOp)(i->op - IR_RED);
    double acc = reduce_identity(op);
    if (i->arg[2] != IR_NONE && x[2] == 0) return acc;
    return reduce_step(op, acc, x[0], x[1]);
}

/* The instruction that made `from` what it is: not finite, its operands finite. IR_NONE: it came in
 * so. */
static IrRef culprit(const IrBody *b, const double *v, IrRef from)
{
    IrRef at = from;
    for (;;) {
        const Ins *i = &b->ins[at];
        IrRef next = IR_NONE;
        for (int k = 0; k < ir_arity(i); k++)
            if (!isfinite(v[i->arg[k]]) && (next == IR_NONE || i->arg[k] < next)) next = i->arg[k];
        if (next == IR_NONE) return i->op == IR_LOAD || i->op == IR_CONST ? IR_NONE : at;
        at = next;
    }
}

static bool complete(const IrModule *m)
{
    for (uint32_t i = 0; i < m->nslots; i++)
        if (m->slots[i].kind == SLOT_HYPER && !m->slots[i].has_default && !m->slots[i].derived)
            return false;
    return true;
}

void lint_module(DiagSink *d, const IrModule *m)
{
    if (!complete(m)) return;
    for (uint32_t k = 0; k < m->nbodies; k++) {
        const IrBody *b = &m->bodies[k];
        double *v = ARENA_ARRAY(m->arena, double, b->n + 1);
        for (uint32_t i = 0; i < b->n; i++) v[i] = evaluate(m, &b->ins[i], v);
        for (uint32_t i = 0; i < b->nstores; i++) {
            const IrStore *s = &b->stores[i];
            if (isfinite(v[s->value]) || (s->guard != IR_NONE && v[s->guard] == 0)) continue;
            IrRef at = culprit(b, v, s->value);
            if (at == IR_NONE) continue;
            const Ins *ins = &b->ins[at];
            const char *op = ir_is_reduce(ins)   ? "reduction"
                             : ins->op == IR_DIV ? "/"
                                                 : ir_op_name(ins->op);
            Diag *w = diag_report(d, DIAG_NOT_FINITE, b->loc[at], op,
                                  isnan(v[at]) ? "NaN" : "infinity", m->slots[s->slot].name);
            diag_hint(d, w, "guard it, or add an eps");
            return;
        }
    }
}

/* ---- storage -------------------------------------------------------------------------------- */

/* Ops through which a square stays one. */
static bool keeps_square(int op)
{
    return op == IR_MUL || op == IR_ADD || op == IR_SUB || op == IR_DIV || op == IR_FMA ||
           op == IR_ABS || op == IR_NEG || op == IR_MIN || op == IR_MAX || op == IR_SELECT;
}

/* Whether a square goes into the value: g*g, or x^2, on the way through sums, products, choices. */
static bool holds_square(Arena *a, const IrBody *b, IrRef value)
{
    bool *part = ARENA_ARRAY(a, bool, b->n + 1);
    part[value] = true;
    for (IrRef r = value + 1; r-- > 0;) {
        const Ins *i = &b->ins[r];
        if (!part[r] || !rate_is_elementwise(i->rate)) continue;
        const Ins *y = i->op == IR_POW ? &b->ins[i->arg[1]] : NULL;
        bool square =
            i->op == IR_MUL ? i->arg[0] == i->arg[1] : y && y->op == IR_CONST && y->lit.num == 2;
        if (square) return true;
        for (int k = 0; keeps_square(i->op) && k < ir_arity(i); k++) part[i->arg[k]] = true;
    }
    return false;
}

void lint_storage(DiagSink *d, const IrModule *m, const DType *storage)
{
    for (uint32_t k = 0; k < m->nbodies; k++) {
        const IrBody *b = &m->bodies[k];
        for (uint32_t i = 0; i < b->nstores; i++) {
            const Slot *s = &m->slots[b->stores[i].slot];
            if (s->kind != SLOT_STATE || !rate_is_element(s->rate)) continue;
            if (storage[s->index] != DT_F16) continue;
            if (!holds_square(m->arena, b, b->stores[i].value)) continue;
            Diag *w = diag_report(d, DIAG_F16_SQUARE, s->loc, s->name);
            diag_hint(d, w, "store it as bf16 or f32");
        }
    }
}
