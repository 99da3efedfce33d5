/* pass_dce.c - keeps what a step is for: stores to p, to exports, to the counts t and s, and the
 * skip verdict, and what they need.
 *
 * Requires and ensures a verified module. A state's store is live only where a live value loads the
 * state: so one that reaches neither p nor an export except through itself goes, and so does one
 * that is written but never read. Slots of dropped states, properties and results go with them;
 * hyperparameters and inputs stay, since users set them by name, and so does all that the modules
 * of a rule's entry points share: what none of them needs is dropped from all of them together,
 * before the passes (ir_drop_shared). A result that one body needs keeps all that feed it. A body
 * that is left without vectors is flat.
 *
 *     state m; m := b*m + g; p -= lr*g    ->    no slot m, and neither load nor store of it
 */
#include "ir_impl.h"
#include <string.h>

IrModule *pass_dce(Arena *a, const IrModule *m);

typedef struct Live {
    const IrModule *m;
    bool **ins, **store; /* per body; `select` is number nbodies */
    bool *used;          /* per slot: loaded, or a result of a live reduction, in any body */
    bool grew;           /* a slot became used */
    bool together; /* beside all modules that share its slots: `used` speaks for all of them */
} Live;

static void mark(Live *l, uint32_t body, IrRef ref)
{
    if (ref != IR_NONE) l->ins[body][ref] = true;
}

static void use(Live *l, uint32_t slot)
{
    if (!l->used[slot]) l->used[slot] = l->grew = true;
}

/* What is kept for the sake of those who load it: states, and whether they have begun. */
static bool is_kept_for_loads(const Live *l, uint32_t slot)
{
    const Slot *s = &l->m->slots[slot];
    if (slot < l->m->nshared && !l->together) return false;
    if (s->kind == SLOT_STATE) return true;
    return s->kind == SLOT_COUNT && (!strcmp(s->name, "init") || !strcmp(s->name, "group_init"));
}

/* Marks from the live instructions and stores of one body, users before operands. */
static void sweep(Live *l, uint32_t body)
{
    const IrModule *m = l->m;
    const IrBody *b = body < m->nbodies ? &m->bodies[body] : m->select;
    for (uint32_t i = 0; i < b->nstores; i++) {
        const IrStore *s = &b->stores[i];
        if (!is_kept_for_loads(l, s->slot) || l->used[s->slot]) l->store[body][i] = true;
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
    if (is_kept_for_loads(l, slot)) return l->used[slot];
    bool dies = slot >= l->m->nshared && (kind == SLOT_PROP || kind == SLOT_RESULT);
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

static Live live_new(Arena *a, const IrModule *m)
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
    return l;
}

static void sweep_all(Live *l)
{
    uint32_t n = l->m->nbodies + (l->m->select != NULL);
    do {
        l->grew = false;
        for (uint32_t i = 0; i < n; i++) sweep(l, i);
    } while (l->grew);
}

static IrModule *rebuild(Arena *a, const Live *l)
{
    bool *slots = ARENA_ARRAY(a, bool, l->m->nslots + 1);
    for (uint32_t i = 0; i < l->m->nslots; i++) slots[i] = keeps(l, i);
    IrModule *to = ir_rebuild(a, l->m, slots, l->ins, l->store);
    for (uint32_t i = 0; i < to->nbodies; i++) flatten(to, &to->bodies[i]);
    return to;
}

IrModule *pass_dce(Arena *a, const IrModule *m)
{
    Live l = live_new(a, m);
    sweep_all(&l);
    return rebuild(a, &l);
}

void ir_drop_shared(Arena *a, IrModule **m, size_t n)
{
    Live *l = ARENA_ARRAY(a, Live, n);
    bool grew = true;
    for (size_t i = 0; i < n; i++) l[i] = live_new(a, m[i]), l[i].together = true;
    while (grew) {
        grew = false;
        for (size_t i = 0; i < n; i++) {
            sweep_all(&l[i]);
            for (uint32_t k = 0; k < m[i]->nshared; k++)
                for (size_t j = 0; j < n && l[i].used[k]; j++)
                    if (!l[j].used[k]) l[j].used[k] = grew = true;
        }
    }
    for (size_t i = 0; i < n; i++) m[i] = rebuild(a, &l[i]);
}
