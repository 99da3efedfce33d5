/* ir_rebuild.c - emits a module again through the builder, all of it or what a pass keeps.
 *
 * Requires a verified module; what is kept needs only what is kept. Ensures a verified module in
 * which each reduction counts what it counted before, and each result slot has the bodies that fed
 * it.
 *
 *     %3 = mul %2 %1 (const 1); store p %3    ->    store p %2
 */
#include "ir_impl.h"

typedef struct Rebuild {
    const IrModule *from;
    IrModule *to;
    uint32_t *slot; /* new number of each slot, IR_NONE: dropped */
    IrRef *ref;     /* of one body */
} Rebuild;

static IrRef renamed(const Rebuild *r, IrRef x)
{
    return x == IR_NONE ? IR_NONE : r->ref[x];
}

/* What a reduction counts is decided by its argument's rate: one that folded to something coarser is
 * spread out again. */
static IrRef spread(IrBuilder *b, const IrBody *old, const Ins *i, IrRef x, IrRef y)
{
    Rate was = ir_args_rate(old, i), now = b->b->ins[x].rate;
    if (y != IR_NONE) now = rate_join(now, b->b->ins[y].rate);
    bool per_element = i->rate == RATE_TENSOR && rate_is_scalar(now) &&
                       (rate_is_scalar(was) || rate_is_element(was));
    return per_element ? x : ir_spread(b, x, was);
}

static IrRef rebuild_ins(const Rebuild *r, IrBuilder *b, const IrBody *old, const Ins *i)
{
    if (i->op == IR_CONST) return ir_const_typed(b, (DType)i->dtype, i->lit.num);
    if (i->op == IR_LOAD) return ir_load(b, r->slot[i->lit.slot]);
    IrRef x = renamed(r, i->arg[0]), y = renamed(r, i->arg[1]), z = renamed(r, i->arg[2]);
    if (i->op == IR_ROUND) return ir_round(b, x);
    if (ir_is_draw(i)) return ir_draw(b, (IrOp)i->op, x, y, i->lit.slot);
    if (!ir_is_reduce(i)) return ir_op(b, (Op)i->op, x, y, z);
    x = spread(b, old, i, x, y);
    return ir_reduce_into(b, (ReduceOp)(i->op - IR_RED), x, y, z, i->rate, r->slot[i->lit.slot]);
}

static void rebuild_body(Rebuild *r, IrBody *body, const IrBody *old, const bool *keep,
                         const bool *keep_store)
{
    IrBuilder b;
    body->view = old->view;
    ir_builder_init(&b, r->to, body);
    b.all_stores = r->from->nbodies > 1;
    r->ref = ARENA_ARRAY(r->to->arena, IrRef, old->n + 1);
    for (uint32_t i = 0; i < old->n; i++) {
        b.loc = old->loc[i];
        r->ref[i] = !keep || keep[i] ? rebuild_ins(r, &b, old, &old->ins[i]) : IR_NONE;
    }
    body->noskip = renamed(r, old->noskip);
    if (body->noskip != IR_NONE) {
        const Ins *i = &body->ins[body->noskip];
        if (i->op == IR_CONST && i->lit.num != 0) body->noskip = IR_NONE;
    }
    for (uint32_t i = 0; i < old->nstores; i++) {
        const IrStore *s = &old->stores[i];
        if (keep_store && !keep_store[i]) continue;
        b.loc = s->loc;
        ir_store(&b, r->slot[s->slot], renamed(r, s->value), renamed(r, s->guard));
    }
}

static void rebuild_slots(Rebuild *r, const bool *keep)
{
    const IrModule *m = r->from;
    r->slot = ARENA_ARRAY(r->to->arena, uint32_t, m->nslots + 1);
    for (uint32_t i = 0; i < m->nslots; i++) {
        r->slot[i] = IR_NONE;
        if (keep && !keep[i]) continue;
        Slot s = m->slots[i];
        /* In a module of several bodies each result keeps the bodies that feed it: equal reductions
         * of one body may be different ones in the next. */
        bool apart = s.kind == SLOT_RESULT && m->nbodies > 1 &&
                     (s.rate == RATE_GLOBAL || s.rate == RATE_GROUP);
        s.key = apart ? i + 1 : 0;
        r->slot[i] = ir_slot_add(r->to, s);
        if (i < m->nshared) r->to->nshared = r->to->nslots;
    }
}

IrModule *ir_rebuild(Arena *a, const IrModule *m, const bool *keep_slot, bool *const *keep,
                     bool *const *keep_store)
{
    Rebuild r = {.from = m, .to = ir_module_new(a, m->name, m->compute_f64)};
    r.to->sources = m->sources;
    rebuild_slots(&r, keep_slot);
    uint32_t n = m->nbodies;
    if (m->select)
        rebuild_body(&r, ir_select_new(r.to, m->select->rule), m->select, keep ? keep[n] : NULL,
                     keep_store ? keep_store[n] : NULL);
    for (uint32_t i = 0; i < n; i++) {
        const IrBody *old = &m->bodies[i];
        rebuild_body(&r, ir_body_new(r.to, old->rule, old->entry), old, keep ? keep[i] : NULL,
                     keep_store ? keep_store[i] : NULL);
    }
    return r.to;
}
