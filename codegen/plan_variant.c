/* plan_variant.c - the kernels of one body under one storage: the cheapest sweeps (plan_sweep.c),
 * written down.
 *
 * Requires: a plan, and one dtype per element slot. Ensures: kernels in order of phase, values in
 * order of the body, so operands come first; a phase without element work has no kernel. `why` says
 * what the choice cost against the others, one line each.
 *
 *     plan_variant(a, lamb, 0, {f32, f32, f32, f32})
 *         phase 0: load g | reduce                    4 bytes
 *         phase 1: load g m v p | store m v | reduce  24
 *         phase 2: reload m v, load p | store p       16
 */
#include "plan_internal.h"
#include <string.h>

typedef struct Writer {
    Arena *a;
    const Plan *p;
    const IrBody *b;
    Variant *v;
    const Sweeps *w;
} Writer;

static void write_values(const Writer *x, int phase, Kernel *k)
{
    const SweepKernel *sk = &x->w->kernels[phase];
    k->vals = ARENA_ARRAY(x->a, KernelValue, x->b->n + 1);
    for (uint32_t i = 0; i < x->b->n; i++) {
        if (!sk->how[i]) continue;
        ValueHow how = (ValueHow)(sk->how[i] - 1);
        uint32_t elem =
            how == VAL_TEMP ? plan_first_temp(x->p, x->v->body) + sk->from[i] : sk->from[i];
        k->vals[k->nvals++] = (KernelValue){i, how, how == VAL_COMPUTE ? 0 : elem};
    }
}

static void write_stores(const Writer *x, int phase, Kernel *k)
{
    const IrBody *b = x->b;
    k->stores = ARENA_ARRAY(x->a, KernelStore, b->nstores + x->w->ntemps + 1);
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (x->w->store_phase[i] != phase) continue;
        IrRef guard = plan_is_true(b, b->stores[i].guard) ? IR_NONE : b->stores[i].guard;
        uint32_t elem = x->p->m->slots[b->stores[i].slot].index;
        k->stores[k->nstores++] = (KernelStore){elem, b->stores[i].value, guard};
    }
    for (uint32_t i = 0; i < x->w->ntemps; i++) {
        if (x->w->temp_phase[i] == phase)
            k->stores[k->nstores++] =
                (KernelStore){plan_first_temp(x->p, x->v->body) + i, x->w->temps[i], IR_NONE};
    }
}

static void write_reduces(const Writer *x, int phase, Kernel *k)
{
    k->reduces = ARENA_ARRAY(x->a, uint32_t, x->p->nreduces + 1);
    for (uint32_t i = 0; i < x->p->nreduces; i++) {
        const PlanReduce *r = &x->p->reduces[i];
        if (r->body == x->v->body && r->phase == phase && r->from == FROM_ELEMENTS)
            k->reduces[k->nreduces++] = i;
    }
}

/* "not chosen: all stores in the last phase, 48 bytes per element", if that is another choice. */
static void compare(StrBuf *out, const Sweeps *w, const Sweeps *other, const char *what)
{
    bool same = other->ntemps == w->ntemps && memcmp(other->store_phase, w->store_phase,
                                                     w->nstores * sizeof *w->store_phase) == 0;
    if (!same) sb_printf(out, "not chosen: %s, %d bytes per element\n", what, other->bytes);
}

static void explain_choice(const Writer *x, const BodyPhases *bp, StrBuf *out)
{
    Sweeps late, plain;
    if (bp->nphases == 1) {
        sb_puts(out, "one sweep: nothing waits for a reduction\n");
        return;
    }
    if (sweep_search(x->a, bp, x->v->storage, true, true, &late))
        compare(out, x->w, &late, "all stores in the last phase");
    if (x->w->ntemps && sweep_search(x->a, bp, x->v->storage, false, true, &plain))
        compare(out, x->w, &plain, "without temporaries");
    for (uint32_t i = 0; i < x->b->nstores; i++) {
        const Slot *s = &x->p->m->slots[x->b->stores[i].slot];
        IrRef value = x->b->stores[i].value;
        IrRef guard = plan_is_true(x->b, x->b->stores[i].guard) ? IR_NONE : x->b->stores[i].guard;
        if (x->w->store_phase[i] < bp->nphases - 1 || !plan_is_element(x->b, value) ||
            bp->phase[value] == bp->nphases - 1 ||
            plan_ready(x->b, bp->phase, guard) == bp->nphases - 1)
            continue;
        bool exact = x->v->storage[s->index] == (DType)x->b->ins[value].dtype;
        sb_printf(out, "%s is stored in the last phase: %s\n", s->name,
                  exact ? "earlier phases need what it held, or save nothing by storing it"
                        : "its storage rounds it, and a later phase needs the exact value");
    }
}

Variant *plan_variant(Arena *a, const Plan *p, uint32_t body, const DType *storage)
{
    const IrModule *m = p->m;
    const IrBody *b = &m->bodies[body];
    Variant *v = ARENA_NEW(a, Variant);
    v->body = body;
    v->storage = ARENA_ARRAY(a, DType, m->nelem + 1);
    memcpy(v->storage, storage, m->nelem * sizeof *storage);
    bool *live = ARENA_ARRAY(a, bool, b->n + 1);
    for (uint32_t i = 0; i < b->n; i++) live[i] = p->phase[body][i] >= 0;
    long budget = PLAN_BUDGET;
    BodyPhases bp = {m, b, live, p->phase[body], p->body_phases[body], &budget};
    Sweeps w;
    if (!sweep_search(a, &bp, storage, false, false, &w)) return NULL;
    v->ntemps = w.ntemps;
    v->kernels = ARENA_ARRAY(a, Kernel, bp.nphases);
    Writer x = {a, p, b, v, &w};
    for (int ph = 0; ph < bp.nphases; ph++) {
        Kernel k = {.phase = ph,
                    .bytes_read = w.kernels[ph].read,
                    .bytes_written = w.kernels[ph].written,
                    .flops = w.kernels[ph].flops};
        write_values(&x, ph, &k);
        write_stores(&x, ph, &k);
        write_reduces(&x, ph, &k);
        if (k.nvals || k.nstores || k.nreduces) v->kernels[v->nkernels++] = k;
    }
    StrBuf why = {.arena = a};
    explain_choice(&x, &bp, &why);
    v->why = why.text ? why.text : "";
    return v;
}
