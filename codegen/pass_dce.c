/* pass_dce.c - keeps what a step is for: stores to p, to exports, to the counts t and s, and the
 * skip verdict, and what they need.
 *
 * Requires and ensures a verified module. A state's store is live only where a live value loads the
 * state: so one that reaches neither p nor an export except through itself goes, and so does one
 * that is written but never read. Slots of dropped states, properties and results go with them;
 * hyperparameters and inputs stay, since users set them by name, and so does all that the modules
 * of a rule's entry points share. A result that one body needs keeps all that feed it. A body that
 * is left without vectors is flat.
 *
 *     state m; m := b*m + g; p -= lr*g    ->    no slot m, and neither load nor store of it
 */
#include "ir_impl.h"

IrModule *pass_dce(Arena *a, const IrModule *m);

typedef struct Live {
    const IrModule *m;
    bool **ins, **store; /* per body; `select` is number nbodies */
    bool *used;          /* per slot: loaded, or a result of a live reduction, in any body */
    bool grew;           /* a slot became used */
} Live;

static void mark(Live *l, uint32_t body, IrRef ref)
{
    if (ref != IR_NONE) l->ins[body][ref] = true;
}

static void use(Live *l, uint32_t slot)
{
    if (!l->used[slot]) l->used[slot] = l->grew = true;
}

/* Marks from the live instructions and stores of one body, users before operands. */
static void sweep(Live *l, uint32_t body)
{
    const IrModule *m = l->m;
    const IrBody *b = body < m->nbodies ? &m->bodies[body] : m->select;
    for (uint32_t i = 0; i < b->nstores; i++) {
        const IrStore *s = &b->stores[i];
        bool needed = m->slots[s->slot].kind != SLOT_STATE || s->slot < m->nshared;
        if (needed || l->used[s->slot]) l->store[body][i] = true;
        if (!l->store[body][i]) continue;
        mark(l, body, s->value);
        mark(l, body, s->guard);
    }
    mark(l, body, b->noskip);
    for (IrRef r = b->n; r-- > 0;) {
        const Ins *i = &b->ins[r];
        if (ir_is_joint(i) && l->used[i->lit.slot]) mark(l, body, r);
        if (!l->ins[body][r]) continue;
        for (int k = 0; k < 3; k++) mark(l, body, i->arg[k]);
        if (i->op == IR_LOAD || ir_is_reduce(i)) use(l, i->lit.slot);
    }
}

/* Whether a slot is still of use. */
static bool keeps(const Live *l, uint32_t slot)
{
    SlotKind kind = l->m->slots[slot].kind;
    if (slot < l->m->nshared) return true;
    bool dies = kind == SLOT_STATE || kind == SLOT_PROP || kind == SLOT_RESULT;
    return !dies || l->used[slot];
}

/* Views decide how a body reduces; one without vectors reduces as all flat ones do. */
static void flatten(const IrModule *m, IrBody *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (rate_is_vector(b->ins[i].rate)) return;
    for (uint32_t i = 0; i < b->nstores; i++)
        if (rate_is_vector(m->slots[b->stores[i].slot].rate)) return;
    b->view = VIEW_FLAT;
}

IrModule *pass_dce(Arena *a, const IrModule *m)
{
    Live l = {.m = m};
    uint32_t n = m->nbodies + (m->select != NULL);
    l.used = ARENA_ARRAY(a, bool, m->nslots + 1);
    l.ins = ARENA_ARRAY(a, bool *, n + 1);
    l.store = ARENA_ARRAY(a, bool *, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const IrBody *b = i < m->nbodies ? &m->bodies[i] : m->select;
        l.ins[i] = ARENA_ARRAY(a, bool, b->n + 1);
        l.store[i] = ARENA_ARRAY(a, bool, b->nstores + 1);
    }
    do {
        l.grew = false;
        for (uint32_t i = 0; i < n; i++) sweep(&l, i);
    } while (l.grew);
    bool *slots = ARENA_ARRAY(a, bool, m->nslots + 1);
    for (uint32_t i = 0; i < m->nslots; i++) slots[i] = keeps(&l, i);
    IrModule *to = ir_rebuild(a, m, slots, l.ins, l.store);
    for (uint32_t i = 0; i < to->nbodies; i++) flatten(to, &to->bodies[i]);
    return to;
}
