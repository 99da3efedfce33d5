/* pass_dce.c - keeps what a step is for: stores to p, to exports, to the counts t and s, and the
 * skip verdict, and what they need.
 *
 * Requires and ensures a verified module. A state's store is live only where a live value loads the
 * state: so one that reaches neither p nor an export except through itself goes, and so does one
 * that is written but never read. Slots of dropped states, properties and results go with them;
 * hyperparameters stay, since users set them by name.
 *
 *     state m; m := b*m + g; p -= lr*g    ->    no slot m, and neither load nor store of it
 */
#include "ir_impl.h"

IrModule *pass_dce(Arena *a, const IrModule *m);

typedef struct Live {
    const IrModule *m;
    bool **ins, **store; /* per body */
    bool *loaded;        /* per slot: by a live value, in any body */
    bool grew;           /* a slot became loaded */
} Live;

static void mark(Live *l, uint32_t body, IrRef ref)
{
    if (ref != IR_NONE) l->ins[body][ref] = true;
}

/* Marks from the live instructions and stores of one body, users before operands. */
static void sweep(Live *l, uint32_t body)
{
    const IrBody *b = &l->m->bodies[body];
    for (uint32_t i = 0; i < b->nstores; i++) {
        const IrStore *s = &b->stores[i];
        if (l->m->slots[s->slot].kind != SLOT_STATE || l->loaded[s->slot]) l->store[body][i] = true;
        if (!l->store[body][i]) continue;
        mark(l, body, s->value);
        mark(l, body, s->guard);
    }
    mark(l, body, b->noskip);
    for (IrRef r = b->n; r-- > 0;) {
        const Ins *i = &b->ins[r];
        if (!l->ins[body][r]) continue;
        for (int k = 0; k < 3; k++) mark(l, body, i->arg[k]);
        if (i->op == IR_LOAD && !l->loaded[i->lit.slot]) l->loaded[i->lit.slot] = l->grew = true;
    }
}

/* Whether a slot is still of use. */
static bool keeps(const Live *l, uint32_t slot)
{
    const IrModule *m = l->m;
    SlotKind kind = m->slots[slot].kind;
    if (kind == SLOT_STATE || kind == SLOT_PROP) return l->loaded[slot];
    if (kind != SLOT_RESULT) return true;
    for (uint32_t i = 0; i < m->nbodies; i++) {
        const IrBody *b = &m->bodies[i];
        for (IrRef r = 0; r < b->n; r++) {
            if (l->ins[i][r] && ir_is_reduce(&b->ins[r]) && b->ins[r].lit.slot == slot) return true;
        }
    }
    return false;
}

IrModule *pass_dce(Arena *a, const IrModule *m)
{
    Live l = {.m = m};
    l.loaded = ARENA_ARRAY(a, bool, m->nslots + 1);
    l.ins = ARENA_ARRAY(a, bool *, m->nbodies + 1);
    l.store = ARENA_ARRAY(a, bool *, m->nbodies + 1);
    for (uint32_t i = 0; i < m->nbodies; i++) {
        l.ins[i] = ARENA_ARRAY(a, bool, m->bodies[i].n + 1);
        l.store[i] = ARENA_ARRAY(a, bool, m->bodies[i].nstores + 1);
    }
    do {
        l.grew = false;
        for (uint32_t i = 0; i < m->nbodies; i++) sweep(&l, i);
    } while (l.grew);
    bool *slots = ARENA_ARRAY(a, bool, m->nslots + 1);
    for (uint32_t i = 0; i < m->nslots; i++) slots[i] = keeps(&l, i);
    return ir_rebuild(a, m, slots, l.ins, l.store);
}
