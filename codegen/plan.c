/* plan.c - phases, levels, places and scalar programs of a module: everything of a plan that does
 * not depend on storage.
 *
 * Requires: a verified module. Ensures: phase(v) = max over operands a of phase(a) + (a is a
 * reduction); a reduction that nothing needs at once rides in the phase where it costs the fewest
 * bytes (f32 storage assumed), later before earlier among equals; those that decide a skip ride as
 * early as they can. Every scalar value is computed by exactly one program, that of its phase and
 * level, and has a place if any other program, kernel or reduction reads it. A plan is
 * deterministic.
 *
 *     lamb, clipped:  %1 = sumsq[all] %0 rides in phase 0, sumsq(p) and sumsq(u) in phase 1;
 *                     s0_class: 1 - b1^t, …; s1_group: the clip factor; s2_tensor: the trust ratio;
 *                     commit: t, grad_norm, s
 */
#include "plan_internal.h"
#include <string.h>

enum { MAX_RIDES = 256 }; /* combinations of phases of movable reductions that are compared */

typedef struct PlanWork {
    Arena *a;
    Plan *p;
    const IrModule *m;
    const IrBody *b;
    uint32_t body;
    bool *live;
    bool *verdict; /* what the skip verdict depends on */
    int *phase;
    long budget;
    int *wish; /* per reduction: the phase wanted for it (at least its earliest) */
} PlanWork;

static bool of_scalars(const IrBody *b, const Ins *ins)
{
    return !plan_is_element(b, ins->arg[0]) && !plan_is_element(b, ins->arg[1]);
}

static void mark(bool *set, IrRef ref)
{
    if (ref != IR_NONE) set[ref] = true;
}

/* Closes a set of values over operands; operands come before users. */
static void close_over_operands(const IrBody *b, bool *set)
{
    for (uint32_t i = b->n; i-- > 0;) {
        for (int k = 0; set[i] && k < 3; k++) mark(set, b->ins[i].arg[k]);
    }
}

static void find_live(PlanWork *w)
{
    const IrBody *b = w->b;
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (plan_is_false(b, b->stores[i].guard)) continue;
        mark(w->live, b->stores[i].value);
        mark(w->live, b->stores[i].guard);
        if (w->m->slots[b->stores[i].slot].kind == SLOT_SKIP) mark(w->verdict, b->stores[i].value);
    }
    close_over_operands(b, w->live);
    mark(w->verdict, b->noskip);
    close_over_operands(b, w->verdict);
}

/* Computes phases from the wishes; returns the number of phases that have kernels or reductions. */
static int forward(PlanWork *w)
{
    const IrBody *b = w->b;
    int n = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        w->phase[i] = -1;
        if (!w->live[i]) continue;
        int ph = 0;
        for (int k = 0; k < 3; k++) {
            int r = plan_ready(b, w->phase, ins->arg[k]);
            ph = r > ph ? r : ph;
        }
        if (ir_is_reduce(ins) && w->wish[i] > ph) ph = w->wish[i];
        w->phase[i] = ph;
        if ((ir_is_reduce(ins) || rate_is_elementwise(ins->rate)) && ph + 1 > n) n = ph + 1;
    }
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (!plan_is_element_store(w->m, b, &b->stores[i])) continue;
        int v = plan_ready(b, w->phase, b->stores[i].value);
        int g = plan_ready(b, w->phase, b->stores[i].guard);
        int ph = v > g ? v : g;
        n = ph + 1 > n ? ph + 1 : n;
    }
    return n;
}

static BodyPhases body_phases(PlanWork *w, int nphases)
{
    return (BodyPhases){w->m, w->b, w->live, w->phase, nphases, &w->budget};
}

/* Tries the phases of all movable reductions, in f32; keeps the cheapest wishes, later ones among
 * equals. */
static int choose_rides(PlanWork *w)
{
    const IrBody *b = w->b;
    int nphases = forward(w);
    if (nphases == 1) return nphases;
    uint32_t movable[32], n = 0;
    int first[32], best_wish[32], combos = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        if (!w->live[i] || !ir_is_reduce(&b->ins[i]) || w->verdict[i] || of_scalars(b, &b->ins[i]))
            continue;
        int choices = nphases - w->phase[i];
        if (choices < 2) continue;
        if (n == 32 || combos > MAX_RIDES / choices) break; /* the rest ride as early as they can */
        combos *= choices;
        best_wish[n] = first[n] = w->phase[i];
        movable[n++] = i;
    }
    DType storage[w->m->nelem + 1];
    for (uint32_t s = 0; s < w->m->nelem; s++) storage[s] = w->m->compute_f64 ? DT_F64 : DT_F32;
    int best = -1;
    for (int c = 0; n > 0 && c < combos && (best < 0 || w->budget > 0); c++) {
        for (uint32_t k = 0, rest = (uint32_t)c; k < n; k++) {
            uint32_t choices = (uint32_t)(nphases - first[k]);
            w->wish[movable[k]] = first[k] + (int)(rest % choices);
            rest /= choices;
        }
        if (forward(w) > nphases) continue;
        bool kept = true;
        for (uint32_t k = 0; k < n; k++) kept = kept && w->phase[movable[k]] == w->wish[movable[k]];
        Sweeps s;
        BodyPhases bp = body_phases(w, nphases);
        if (!kept || !sweep_search(w->a, &bp, storage, false, false, &s)) continue;
        if (best < 0 || s.bytes <= best) {
            best = s.bytes;
            for (uint32_t k = 0; k < n; k++) best_wish[k] = w->wish[movable[k]];
        }
    }
    for (uint32_t k = 0; k < n; k++) w->wish[movable[k]] = best_wish[k];
    forward(w);
    return nphases;
}

/* The coarsest block that a scalar value can live in. */
static uint8_t level_of(const PlanWork *w, const uint8_t *level, const Ins *ins)
{
    if (rate_is_elementwise(ins->rate)) return LEVEL_NONE;
    if (ins->rate == RATE_GLOBAL) return LEVEL_GLOBAL;
    if (ins->rate == RATE_GROUP) return LEVEL_GROUP;
    if (ir_is_reduce(ins)) return LEVEL_TENSOR;
    if (ins->op == IR_LOAD)
        return w->m->slots[ins->lit.slot].kind == SLOT_COUNT ? LEVEL_CLASS : LEVEL_TENSOR;
    uint8_t l = LEVEL_GROUP;
    for (int k = 0; k < ir_arity(ins); k++) l = level[ins->arg[k]] > l ? level[ins->arg[k]] : l;
    return l;
}

static bool is_computed(const Ins *ins)
{
    return ins->op != IR_CONST && ins->op != IR_LOAD && !ir_is_reduce(ins);
}

/* Marks the scalar values that others than their own program read. */
static void find_crossing(const PlanWork *w, const uint8_t *level, bool *crosses)
{
    const IrBody *b = w->b;
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        for (int k = 0; w->live[i] && k < 3; k++) {
            IrRef x = ins->arg[k];
            if (x == IR_NONE || plan_is_element(b, x)) continue;
            bool same = !ir_is_reduce(ins) && w->phase[x] == w->phase[i] && level[x] == level[i];
            if (!same) crosses[x] = true;
        }
    }
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (plan_is_false(b, b->stores[i].guard)) continue;
        if (!plan_is_element(b, b->stores[i].value)) crosses[b->stores[i].value] = true;
        if (b->stores[i].guard != IR_NONE) crosses[b->stores[i].guard] = true;
    }
}

static void assign_places(PlanWork *w)
{
    const IrBody *b = w->b;
    uint8_t *level = w->p->level[w->body];
    Place *place = w->p->place[w->body];
    bool *crosses = ARENA_ARRAY(w->a, bool, b->n + 1);
    find_crossing(w, level, crosses);
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        place[i] = (Place){LEVEL_NONE, 0};
        if (!w->live[i]) continue;
        if (ir_is_reduce(ins)) {
            const Slot *s = &w->m->slots[ins->lit.slot];
            place[i] = (Place){s->level, s->index};
            for (int k = 0; k < ir_arity(ins) && of_scalars(b, ins); k++) {
                IrRef x = ins->arg[k];
                if (b->ins[x].op == IR_CONST && place[x].level == LEVEL_NONE)
                    place[x] = (Place){LEVEL_TENSOR, w->p->block_size[LEVEL_TENSOR]++};
            }
        } else if (crosses[i] && is_computed(ins) && level[i] != LEVEL_NONE) {
            place[i] = (Place){level[i], w->p->block_size[level[i]]++};
        }
    }
}

Place plan_place(const Plan *p, uint32_t body, IrRef ref)
{
    if (ref == IR_NONE) return (Place){LEVEL_NONE, 0};
    const Ins *ins = &p->m->bodies[body].ins[ref];
    if (ins->op == IR_LOAD) {
        const Slot *s = &p->m->slots[ins->lit.slot];
        /* The count of a tensor's steps is read from its class: the same for all tensors there. */
        if (s->kind == SLOT_COUNT && s->rate == RATE_TENSOR) return (Place){LEVEL_CLASS, 0};
        return rate_is_elementwise(s->rate) ? (Place){LEVEL_NONE, 0} : (Place){s->level, s->index};
    }
    return p->place[body][ref];
}

static Place where(const PlanWork *w, IrRef ref)
{
    return plan_place(w->p, w->body, ref);
}

static void list_reduces(PlanWork *w, uint32_t *columns, size_t *cap)
{
    const IrBody *b = w->b;
    Plan *p = w->p;
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        if (!w->live[i] || !ir_is_reduce(ins)) continue;
        bool scalars = of_scalars(b, ins);
        IrRef guard = plan_is_true(b, ins->arg[2]) ? IR_NONE : ins->arg[2];
        PlanReduce r = {
            .body = w->body,
            .ins = i,
            .phase = w->phase[i],
            .of_scalars = scalars,
            .arg = scalars ? where(w, ins->arg[0]) : (Place){LEVEL_NONE, 0},
            .arg2 = scalars && ir_arity(ins) == 2 ? where(w, ins->arg[1]) : (Place){LEVEL_NONE, 0},
            .guard = where(w, guard),
            .result = where(w, i),
            .partial = scalars ? 0 : columns[w->phase[i]]++,
        };
        ARENA_PUSH(w->a, p->reduces, p->nreduces, *cap, r);
    }
}

/* The program of one phase and level, if it has anything to do. */
static void add_program(PlanWork *w, int phase, uint8_t level, size_t *cap)
{
    const IrBody *b = w->b;
    ScalarProgram sp = {.phase = phase, .level = (Level)level, .body = w->body};
    sp.vals = ARENA_ARRAY(w->a, IrRef, b->n + 1);
    for (uint32_t i = 0; i < b->n; i++) {
        Place at = w->p->place[w->body][i];
        bool placed_const = b->ins[i].op == IR_CONST && at.level == level && phase == 0;
        bool computed =
            is_computed(&b->ins[i]) && w->p->level[w->body][i] == level && w->phase[i] == phase;
        if (w->live[i] && (computed || placed_const)) sp.vals[sp.nvals++] = i;
    }
    if (sp.nvals) ARENA_PUSH(w->a, w->p->programs, w->p->nprograms, *cap, sp);
}

static void add_commit(PlanWork *w, uint8_t level, size_t *cap)
{
    const IrBody *b = w->b;
    ScalarProgram sp = {.phase = w->p->nphases + 1, .level = (Level)level, .body = w->body};
    sp.stores = ARENA_ARRAY(w->a, uint32_t, b->nstores + 1);
    for (uint32_t i = 0; i < b->nstores; i++) {
        const Slot *s = &w->m->slots[b->stores[i].slot];
        if (!rate_is_elementwise(s->rate) && s->level == level &&
            !plan_is_false(b, b->stores[i].guard))
            sp.stores[sp.nstores++] = i;
    }
    if (sp.nstores) ARENA_PUSH(w->a, w->p->commit, w->p->ncommit, *cap, sp);
}

static void find_skip(PlanWork *w)
{
    const IrBody *b = w->b;
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (w->m->slots[b->stores[i].slot].kind != SLOT_SKIP) continue;
        w->p->skip = where(w, b->stores[i].value);
        w->p->skip_phase = plan_ready(b, w->phase, b->stores[i].value);
    }
}

static void plan_body(PlanWork *w)
{
    const IrBody *b = w->b;
    w->live = ARENA_ARRAY(w->a, bool, b->n + 1);
    w->verdict = ARENA_ARRAY(w->a, bool, b->n + 1);
    w->wish = ARENA_ARRAY(w->a, int, b->n + 1);
    w->phase = w->p->phase[w->body] = ARENA_ARRAY(w->a, int, b->n + 1);
    w->p->place[w->body] = ARENA_ARRAY(w->a, Place, b->n + 1);
    uint8_t *level = w->p->level[w->body] = ARENA_ARRAY(w->a, uint8_t, b->n + 1);
    find_live(w);
    int nphases = choose_rides(w);
    if (nphases > w->p->nphases) w->p->nphases = nphases;
    for (uint32_t i = 0; i < b->n; i++) level[i] = level_of(w, level, &b->ins[i]);
    assign_places(w);
    find_skip(w);
}

Plan *plan_make(Arena *a, const IrModule *m)
{
    Plan *p = ARENA_NEW(a, Plan);
    p->arena = a;
    p->m = m;
    p->nphases = 1;
    p->skip = (Place){LEVEL_NONE, 0};
    p->phase = ARENA_ARRAY(a, int *, m->nbodies + 1);
    p->place = ARENA_ARRAY(a, Place *, m->nbodies + 1);
    p->level = ARENA_ARRAY(a, uint8_t *, m->nbodies + 1);
    for (int l = 0; l < LEVEL_COUNT; l++) p->block_size[l] = m->nlevel[l];
    if (p->block_size[LEVEL_CLASS] == 0) p->block_size[LEVEL_CLASS] = 1; /* t */
    PlanWork *w = ARENA_ARRAY(a, PlanWork, m->nbodies + 1);
    for (uint32_t i = 0; i < m->nbodies; i++) {
        w[i] = (PlanWork){
            .a = a, .p = p, .m = m, .b = &m->bodies[i], .body = i, .budget = PLAN_BUDGET};
        plan_body(&w[i]);
    }
    size_t cap = 0, commit_cap = 0, reduce_cap = 0;
    for (uint32_t i = 0; i < m->nbodies; i++) {
        uint32_t *columns = ARENA_ARRAY(a, uint32_t, p->nphases + 1);
        list_reduces(&w[i], columns, &reduce_cap);
    }
    for (int phase = 0; phase <= p->nphases; phase++) {
        for (uint8_t l = 0; l < LEVEL_COUNT; l++) {
            for (uint32_t i = 0; i < m->nbodies; i++) add_program(&w[i], phase, l, &cap);
        }
    }
    for (uint8_t l = LEVEL_COUNT; l-- > 0;) {
        for (uint32_t i = 0; i < m->nbodies; i++) add_commit(&w[i], l, &commit_cap);
    }
    return p;
}
