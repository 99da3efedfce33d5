/* plan_sweep.c - which sweep over memory loads, computes and stores what: the search for the fewest
 * bytes per element.
 *
 * Requires: phases of one body (plan.c). Ensures: every element store and reduction happens in
 * exactly one phase, not before its value and guard are known; a value that a phase needs is loaded
 * from a slot not stored in an earlier phase, reloaded from a slot that an earlier phase stored and
 * that holds it exactly, read from an f32 temporary, or computed from such. Storing everything in
 * the last phase is always possible, so there is always a plan. The search tries all phases of all
 * stores (earliest and last only where that is too many), and for each adds temporaries one by one
 * while they save bytes.
 *
 *     lamb, f32:     phase 1 stores m, v; phase 2 reloads them and computes the direction again
 *     lamb, bf16 m:  a stored m is not the m' that the direction needs: phase 1 leaves the
 *                    direction in a temporary, phase 2 reads it
 */
#include "plan_internal.h"
#include <limits.h>
#include <string.h>

enum { MAX_COMBINATIONS = 1024, IMPOSSIBLE = 1 << 20 };

/* A value that a slot holds exactly after its store, unless the step is skipped. */
typedef struct Held {
    uint32_t store;
    uint32_t elem;
    IrRef value;
} Held;

typedef struct Search {
    Arena *a;
    const BodyPhases *bp;
    const IrBody *b;
    const DType *storage;
    Held *held;
    uint32_t nheld;
    size_t held_cap;
    int *stored_by_elem; /* [elem] the store of an element slot, -1 */
    IrRef *candidates;   /* for temporaries */
} Search;

static const Slot *slot_of(const Search *s, uint32_t store)
{
    return &s->bp->m->slots[s->b->stores[store].slot];
}

/* ---- what slots hold after their stores ----------------------------------------------------- */

/* The guard without its conjunct `noskip`: IR_NONE if nothing else is left. */
static IrRef without_noskip(const IrBody *b, IrRef guard)
{
    if (plan_is_true(b, guard) || guard == b->noskip) return IR_NONE;
    const Ins *ins = &b->ins[guard];
    if (ins->op == IR_AND && ins->arg[0] == b->noskip) return without_noskip(b, ins->arg[1]);
    if (ins->op == IR_AND && ins->arg[1] == b->noskip) return without_noskip(b, ins->arg[0]);
    return guard;
}

static bool is_load_of(const IrBody *b, IrRef ref, uint32_t slot)
{
    return b->ins[ref].op == IR_LOAD && b->ins[ref].lit.slot == slot;
}

static void hold(Search *s, uint32_t store, IrRef value)
{
    Held h = {store, slot_of(s, store)->index, value};
    if (plan_is_element(s->b, value) && s->nheld < 255)
        ARENA_PUSH(s->a, s->held, s->nheld, s->held_cap, h);
}

/* A skipped step runs through all phases, and its exports are what they would be in an applied one;
 * but its slots hold what they held. So where an export depends on what kernels compute after the
 * verdict, nothing is reloaded. */
static bool reloads_reach_exports(const Search *s)
{
    const IrBody *b = s->b;
    if (b->noskip == IR_NONE) return false;
    int verdict = plan_ready(b, s->bp->phase, b->noskip);
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (slot_of(s, i)->kind == SLOT_EXPORT &&
            plan_ready(b, s->bp->phase, b->stores[i].value) > verdict + 1)
            return true;
    }
    return false;
}

static void find_held(Search *s)
{
    const IrBody *b = s->b;
    if (reloads_reach_exports(s)) return;
    for (uint32_t i = 0; i < b->nstores; i++) {
        const IrStore *st = &b->stores[i];
        if (!plan_is_element_store(s->bp->m, b, st) || !plan_is_element(b, st->value)) continue;
        if (s->storage[slot_of(s, i)->index] != (DType)b->ins[st->value].dtype)
            continue; /* rounded by its storage */
        IrRef guard = without_noskip(b, st->guard);
        if (guard == IR_NONE) hold(s, i, st->value);
        /* Under a guard the slot holds select(guard, value, what it held). */
        for (uint32_t r = 0; guard != IR_NONE && r < b->n; r++) {
            const Ins *sel = &b->ins[r];
            if (s->bp->live[r] && sel->op == IR_SELECT && sel->arg[0] == guard &&
                is_load_of(b, sel->arg[2], st->slot) &&
                (sel->arg[1] == st->value || r == st->value))
                hold(s, i, r);
        }
    }
}

/* ---- the cost of one choice ----------------------------------------------------------------- */

typedef struct Kernelizer {
    const Search *s;
    Sweeps *w;
    int phase;
    uint64_t dropped; /* held values that this kernel computes although a slot has them */
    SweepKernel *k;
    uint64_t read_elems[4]; /* bit set over element slots and temporaries */
    int impossible;
} Kernelizer;

static void read_slot(Kernelizer *z, uint32_t elem, int bytes)
{
    uint32_t bit = elem & 255;
    if (z->read_elems[bit / 64] >> (bit % 64) & 1) return;
    z->read_elems[bit / 64] |= 1ull << (bit % 64);
    z->k->read += bytes;
}

static bool provide_load(Kernelizer *z, IrRef ref)
{
    const Search *s = z->s;
    const Ins *ins = &s->b->ins[ref];
    const Slot *slot = &s->bp->m->slots[ins->lit.slot];
    int store = s->stored_by_elem[slot->index];
    if (store >= 0 && z->w->store_phase[store] < z->phase) return false;
    z->k->how[ref] = 1 + VAL_LOAD;
    z->k->from[ref] = (uint16_t)slot->index;
    read_slot(z, slot->index, dtype_size(s->storage[slot->index]));
    return true;
}

static bool provide_reload(Kernelizer *z, IrRef ref)
{
    const Search *s = z->s;
    for (uint32_t i = 0; i < s->nheld; i++) {
        const Held *h = &s->held[i];
        if (h->value != ref || z->w->store_phase[h->store] >= z->phase ||
            (i < 64 && z->dropped >> i & 1))
            continue;
        z->k->how[ref] = 1 + VAL_RELOAD;
        z->k->from[ref] = (uint16_t)h->elem;
        read_slot(z, h->elem, dtype_size(s->storage[h->elem]));
        return true;
    }
    return false;
}

static bool provide_temp(Kernelizer *z, IrRef ref)
{
    for (uint32_t i = 0; i < z->w->ntemps; i++) {
        if (z->w->temps[i] != ref || z->w->temp_phase[i] < 0 || z->w->temp_phase[i] >= z->phase)
            continue;
        z->k->how[ref] = 1 + VAL_TEMP;
        z->k->from[ref] = (uint16_t)i;
        read_slot(z, z->s->bp->m->nelem + i, 4);
        return true;
    }
    return false;
}

enum { NEEDED = 255 }; /* in SweepKernel.how: wanted, and not yet decided how */

static void need(Kernelizer *z, IrRef ref)
{
    if (plan_is_element(z->s->b, ref) && !z->k->how[ref]) z->k->how[ref] = NEEDED;
}

/* Makes an element value available in the kernel, and says how. */
static void provide(Kernelizer *z, IrRef ref)
{
    const Ins *ins = &z->s->b->ins[ref];
    if (ins->op == IR_LOAD && provide_load(z, ref)) return;
    if (provide_reload(z, ref) || provide_temp(z, ref)) return;
    if (ins->op == IR_LOAD) {
        z->k->how[ref] = 0;
        z->impossible++;
        return;
    }
    z->k->how[ref] = 1 + VAL_COMPUTE;
    z->k->flops++;
    for (int k = 0; k < ir_arity(ins); k++) need(z, ins->arg[k]);
}

static void need_roots(Kernelizer *z)
{
    const Search *s = z->s;
    const IrBody *b = s->b;
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        if (!s->bp->live[i] || !ir_is_reduce(ins) || s->bp->phase[i] != z->phase) continue;
        z->k->flops += plan_is_element(b, ins->arg[0]);
        for (int k = 0; k < ir_arity(ins); k++) need(z, ins->arg[k]);
    }
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (z->w->store_phase[i] != z->phase) continue;
        z->k->written += dtype_size(s->storage[slot_of(s, i)->index]);
        need(z, b->stores[i].value);
    }
}

static Kernelizer kernelize(const Search *s, Sweeps *w, int phase, uint64_t dropped)
{
    SweepKernel *k = &w->kernels[phase];
    memset(k->how, 0, s->b->n);
    k->read = k->written = k->flops = 0;
    Kernelizer z = {.s = s, .w = w, .phase = phase, .dropped = dropped, .k = k};
    need_roots(&z);
    for (uint32_t i = s->b->n; i-- > 0;) { /* users come after their operands */
        if (k->how[i] == NEEDED) provide(&z, i);
    }
    *s->bp->budget -= s->b->n;
    return z;
}

/* Bytes for values that cannot be had; many of them must not overflow. */
static int penalty(int impossible)
{
    return (impossible < 1000 ? impossible : 1000) * IMPOSSIBLE;
}

/* Prices the choice in w (phases of stores, temporaries) and fills its kernels; each phase drops
 * reloads that do not pay. */
static int price(const Search *s, Sweeps *w)
{
    int impossible = 0;
    w->bytes = w->flops = w->sweeps = 0;
    for (uint32_t i = 0; i < w->ntemps; i++) w->temp_phase[i] = -1;
    for (int ph = 0; ph < s->bp->nphases; ph++) {
        uint64_t dropped = 0;
        Kernelizer z = kernelize(s, w, ph, dropped);
        for (uint32_t i = 0; i < s->nheld && i < 64; i++) {
            if (w->store_phase[s->held[i].store] >= ph) continue;
            int before = w->kernels[ph].read + penalty(z.impossible);
            Kernelizer t = kernelize(s, w, ph, dropped | 1ull << i);
            if (w->kernels[ph].read + penalty(t.impossible) < before) {
                dropped |= 1ull << i;
                z = t;
            } else {
                z = kernelize(s, w, ph, dropped);
            }
        }
        impossible += z.impossible;
        for (uint32_t i = 0; i < w->ntemps; i++) {
            uint8_t how = w->kernels[ph].how[w->temps[i]];
            if (w->temp_phase[i] < 0 && (how == 1 + VAL_COMPUTE || how == 1 + VAL_LOAD))
                w->temp_phase[i] = ph;
        }
        w->bytes += w->kernels[ph].read + w->kernels[ph].written;
        w->sweeps += w->kernels[ph].read + w->kernels[ph].written > 0;
        w->flops += w->kernels[ph].flops;
    }
    for (uint32_t i = 0; i < w->ntemps; i++) {
        if (w->temp_phase[i] >= 0) {
            w->kernels[w->temp_phase[i]].written += 4;
            w->bytes += 4;
        }
    }
    w->bytes += penalty(impossible);
    return w->bytes;
}

static bool better(const Sweeps *x, const Sweeps *y)
{
    if (x->bytes != y->bytes) return x->bytes < y->bytes;
    if (x->sweeps != y->sweeps) return x->sweeps < y->sweeps;
    if (x->ntemps != y->ntemps) return x->ntemps < y->ntemps;
    return x->flops < y->flops;
}

/* Copies the choice, not the kernels, which are priced again when wanted. */
static void keep(Sweeps *to, const Sweeps *from)
{
    SweepKernel *kernels = to->kernels;
    int *store_phase = to->store_phase;
    if (store_phase != from->store_phase)
        memcpy(store_phase, from->store_phase, from->nstores * sizeof *store_phase);
    *to = *from;
    to->kernels = kernels;
    to->store_phase = store_phase;
}

/* Whether more than one kernel of w makes this value anew: a temporary could spare that. */
static bool is_repeated(const Search *s, const Sweeps *w, IrRef ref)
{
    int times = 0;
    for (int ph = 0; ph < s->bp->nphases; ph++) {
        uint8_t how = w->kernels[ph].how[ref];
        times += how == 1 + VAL_COMPUTE || how == 1 + VAL_LOAD;
    }
    return times > 1;
}

static uint32_t find_candidates(const Search *s, const Sweeps *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->b->n; i++) {
        if (s->b->ins[i].dtype == DT_F32 && is_repeated(s, w, i)) s->candidates[n++] = i;
    }
    return n;
}

/* Adds the temporaries that save bytes (or make w possible), one by one. */
static void add_temps(const Search *s, Sweeps *w)
{
    price(s, w);
    while (w->ntemps < PLAN_MAX_TEMPS) {
        Sweeps best;
        bool found = false;
        memset(&best, 0, sizeof best);
        uint32_t n = find_candidates(s, w);
        for (uint32_t i = 0; i<n && * s->bp->budget> 0; i++) {
            Sweeps t = *w;
            t.temps[t.ntemps++] = s->candidates[i];
            price(s, &t);
            if (t.bytes < w->bytes && (!found || better(&t, &best))) {
                best = t;
                found = true;
            }
        }
        if (!found) break;
        keep(w, &best);
        price(s, w);
    }
    price(s, w);
}

/* ---- the search ----------------------------------------------------------------------------- */

/* First phase of a store; -1: not one of the sweeps. */
static int earliest(const Search *s, uint32_t store)
{
    const IrStore *st = &s->b->stores[store];
    if (!plan_is_element_store(s->bp->m, s->b, st)) return -1;
    int v = plan_ready(s->b, s->bp->phase, st->value);
    int g = plan_is_true(s->b, st->guard) ? 0 : plan_ready(s->b, s->bp->phase, st->guard);
    return v > g ? v : g;
}

/* Tries combination after combination; `step` is 1, or jumps from a store's first phase to the
 * last. */
static void try_all(const Search *s, const int *first, bool ends_only, bool no_temps, Sweeps *w,
                    Sweeps *best)
{
    int last = s->bp->nphases - 1;
    uint32_t n = s->b->nstores;
    for (;;) {
        w->ntemps = 0;
        if (no_temps)
            price(s, w);
        else
            add_temps(s, w);
        if (better(w, best)) keep(best, w);
        uint32_t i = 0;
        for (; i < n; i++) {
            if (first[i] < 0 || first[i] == last) continue;
            if (w->store_phase[i] < last) {
                w->store_phase[i] = ends_only ? last : w->store_phase[i] + 1;
                break;
            }
            w->store_phase[i] = first[i];
        }
        if (i == n || *s->bp->budget <= 0) return;
    }
}

static SweepKernel *kernels_new(Arena *a, const BodyPhases *bp)
{
    SweepKernel *k = ARENA_ARRAY(a, SweepKernel, bp->nphases);
    for (int i = 0; i < bp->nphases; i++) {
        k[i].how = ARENA_ARRAY(a, uint8_t, bp->b->n + 1);
        k[i].from = ARENA_ARRAY(a, uint16_t, bp->b->n + 1);
    }
    return k;
}

bool sweep_search(Arena *a, const BodyPhases *bp, const DType *storage, bool no_early,
                  bool no_temps, Sweeps *out)
{
    const IrBody *b = bp->b;
    Search s = {.a = a, .bp = bp, .b = b, .storage = storage};
    if (bp->m->nelem + PLAN_MAX_TEMPS > UINT16_MAX) return false;
    s.stored_by_elem = ARENA_ARRAY(a, int, bp->m->nelem + 1);
    for (uint32_t i = 0; i < bp->m->nelem; i++) s.stored_by_elem[i] = -1;
    Sweeps w = {.kernels = kernels_new(a, bp),
                .store_phase = ARENA_ARRAY(a, int, b->nstores + 1),
                .nstores = b->nstores};
    *out = w;
    out->store_phase = ARENA_ARRAY(a, int, b->nstores + 1);
    int *first = ARENA_ARRAY(a, int, b->nstores + 1);
    double combinations = 1, ends = 1;
    for (uint32_t i = 0; i < b->nstores; i++) {
        first[i] = earliest(&s, i);
        w.store_phase[i] = first[i] < 0 ? -1 : bp->nphases - 1;
        if (first[i] < 0) continue;
        s.stored_by_elem[slot_of(&s, i)->index] = (int)i;
        combinations *= bp->nphases - first[i];
        ends *= first[i] < bp->nphases - 1 ? 2 : 1;
    }
    find_held(&s);
    s.candidates = ARENA_ARRAY(a, IrRef, b->n + 1);
    out->bytes = INT_MAX;
    no_temps = no_temps || no_early || bp->nphases == 1;
    if (no_temps)
        price(&s, &w);
    else
        add_temps(&s, &w);
    keep(out, &w);
    if (!no_early && bp->nphases > 1 &&
        (combinations <= MAX_COMBINATIONS || ends <= MAX_COMBINATIONS)) {
        for (uint32_t i = 0; i < b->nstores; i++) w.store_phase[i] = first[i];
        try_all(&s, first, combinations > MAX_COMBINATIONS, no_temps, &w, out);
    }
    price(&s, out);
    return out->bytes < IMPOSSIBLE;
}
