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
#include "emit.h"
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
    int nphases;
    int *slot_phase;           /* per slot: the phase of a joint reduction, by the latest feeder */
    const uint32_t *slot_uses; /* per slot: how many bodies feed it */
} PlanWork;

static ReduceFrom reduce_from(const IrBody *b, const Ins *ins)
{
    Rate rate = ir_args_rate(b, ins);
    return rate_is_element(rate)  ? FROM_ELEMENTS
           : rate_is_vector(rate) ? FROM_VECTOR
                                  : FROM_SCALARS;
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
    w->live = ARENA_ARRAY(w->a, bool, b->n + 1);
    w->verdict = ARENA_ARRAY(w->a, bool, b->n + 1);
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

/* A joint reduction that one body needs is fed by all that have it. */
static void share_live(PlanWork *w, uint32_t n)
{
    const IrModule *m = w->m;
    bool *needed = ARENA_ARRAY(w->a, bool, m->nslots + 1);
    for (bool changed = n > 1; changed;) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            const IrBody *b = w[i].b;
            for (uint32_t r = 0; r < b->n; r++) {
                if (!ir_is_joint(&b->ins[r]) || w[i].live[r] == needed[b->ins[r].lit.slot])
                    continue;
                changed = needed[b->ins[r].lit.slot] = w[i].live[r] = true;
            }
            close_over_operands(b, w[i].live);
        }
    }
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
        if (ir_is_joint(ins) && w->slot_phase[ins->lit.slot] > ph)
            ph = w->slot_phase[ins->lit.slot];
        w->phase[i] = ph;
        if ((ir_is_reduce(ins) || rate_is_element(ins->rate)) && ph + 1 > n) n = ph + 1;
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

/* Phases of all bodies, those of joint reductions agreed upon. */
static void forward_all(PlanWork *w, uint32_t n)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < n; i++) {
            w[i].nphases = forward(&w[i]);
            for (uint32_t r = 0; r < w[i].b->n; r++) {
                const Ins *ins = &w[i].b->ins[r];
                if (!w[i].live[r] || !ir_is_joint(ins) ||
                    w[i].phase[r] <= w->slot_phase[ins->lit.slot])
                    continue;
                w->slot_phase[ins->lit.slot] = w[i].phase[r];
                changed = true;
            }
        }
    }
}

/* Whether this body's joint reductions are where the others expect them. */
static bool keeps_appointments(const PlanWork *w)
{
    for (uint32_t r = 0; r < w->b->n; r++) {
        const Ins *ins = &w->b->ins[r];
        if (w->live[r] && ir_is_joint(ins) && w->slot_uses[ins->lit.slot] > 1 &&
            w->phase[r] != w->slot_phase[ins->lit.slot])
            return false;
    }
    return true;
}

static BodyPhases body_phases(PlanWork *w, int nphases)
{
    return (BodyPhases){w->m, w->b, w->live, w->phase, nphases, &w->budget};
}

static bool is_movable(const PlanWork *w, uint32_t r)
{
    const Ins *ins = &w->b->ins[r];
    if (!w->live[r] || !ir_is_reduce(ins) || w->verdict[r]) return false;
    if (ir_is_joint(ins) && w->slot_uses[ins->lit.slot] > 1) return false;
    return reduce_from(w->b, ins) == FROM_ELEMENTS;
}

/* Tries the phases of all movable reductions, in f32; keeps the cheapest wishes, later ones among
 * equals. Joint reductions stay where all bodies can feed them. */
static void choose_rides(PlanWork *w)
{
    const IrBody *b = w->b;
    int nphases = w->nphases;
    if (nphases == 1) return;
    uint32_t movable[32], n = 0;
    int first[32], best_wish[32], combos = 1;
    for (uint32_t i = 0; i < b->n; i++) {
        if (!is_movable(w, i)) continue;
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
        bool kept = keeps_appointments(w);
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
    w->nphases = forward(w);
}

/* The coarsest block that a scalar value can live in. */
static uint8_t level_of(const PlanWork *w, const uint8_t *level, const Ins *ins)
{
    if (!rate_is_scalar(ins->rate)) return LEVEL_NONE;
    if (ins->rate == RATE_GLOBAL) return LEVEL_GLOBAL;
    if (ins->rate == RATE_GROUP) return LEVEL_GROUP;
    if (ir_is_reduce(ins)) return LEVEL_TENSOR;
    if (ins->op == IR_LOAD)
        return ir_is_clock(&w->m->slots[ins->lit.slot]) ? LEVEL_CLASS : LEVEL_TENSOR;
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
            if (x == IR_NONE || !rate_is_scalar(b->ins[x].rate)) continue;
            bool same = !ir_is_reduce(ins) && w->phase[x] == w->phase[i] && level[x] == level[i];
            if (!same) crosses[x] = true;
        }
    }
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (plan_is_false(b, b->stores[i].guard)) continue;
        if (rate_is_scalar(b->ins[b->stores[i].value].rate)) crosses[b->stores[i].value] = true;
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
            if (rate_is_scalar(ins->rate)) place[i] = (Place){s->level, s->index};
            for (int k = 0; k < ir_arity(ins) && reduce_from(b, ins) != FROM_ELEMENTS; k++) {
                IrRef x = ins->arg[k];
                if (b->ins[x].op == IR_CONST && place[x].level == LEVEL_NONE)
                    place[x] = (Place){LEVEL_GLOBAL, w->p->block_size[LEVEL_GLOBAL]++};
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
        if (ir_is_clock(s)) return (Place){LEVEL_CLASS, 0};
        return rate_is_scalar(s->rate) ? (Place){s->level, s->index} : (Place){LEVEL_NONE, 0};
    }
    return p->place[body][ref];
}

static Place where(const PlanWork *w, IrRef ref)
{
    return plan_place(w->p, w->body, ref);
}

/* ---- vectors -------------------------------------------------------------------------------- */

/* Marks the computed vector values that others than their own program read. */
static void find_vector_crossing(const PlanWork *w, bool *crosses)
{
    const IrBody *b = w->b;
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        for (int k = 0; w->live[i] && k < ir_arity(ins); k++) {
            IrRef x = ins->arg[k];
            if (!plan_is_vector(b, x)) continue;
            bool same =
                !ir_is_reduce(ins) && ins->rate == b->ins[x].rate && w->phase[x] == w->phase[i];
            if (!same) crosses[x] = true;
        }
    }
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (!plan_is_false(b, b->stores[i].guard) && plan_is_vector(b, b->stores[i].value))
            crosses[b->stores[i].value] = true;
    }
}

static void assign_vectors(PlanWork *w)
{
    const IrBody *b = w->b;
    Plan *p = w->p;
    uint32_t *vector = p->vector[w->body], *n = &p->nvectors[w->body];
    bool *crosses = ARENA_ARRAY(w->a, bool, b->n + 1);
    size_t cap = 0;
    find_vector_crossing(w, crosses);
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        vector[i] = UINT32_MAX;
        if (!w->live[i] || !rate_is_vector(ins->rate)) continue;
        if (ins->op == IR_LOAD) {
            vector[i] = w->m->slots[ins->lit.slot].index;
        } else if (ir_is_reduce(ins) || crosses[i]) {
            bool reduce = ir_is_reduce(ins);
            PlanVector v = {.rate = ins->rate,
                            .dtype = reduce ? DT_F64 : (DType)ins->dtype,
                            .partials = reduce && ins->rate != RATE_MATRIX,
                            .ref = i,
                            .index = vector[i] = w->m->nelem + *n};
            ARENA_PUSH(w->a, p->vectors[w->body], *n, cap, v);
        }
    }
}

/* How values of this kind lie in memory. */
static DType vector_type(const PlanWork *w, IrRef ref)
{
    const Ins *ins = &w->b->ins[ref];
    return ir_is_reduce(ins) ? DT_F64 : (DType)ins->dtype;
}

static void add_vprogram(PlanWork *w, int phase, Rate rate, size_t *cap)
{
    const IrBody *b = w->b;
    VectorProgram vp = {.phase = phase, .rate = rate, .body = w->body};
    vp.vals = ARENA_ARRAY(w->a, IrRef, b->n + 1);
    vp.keeps = ARENA_ARRAY(w->a, IrRef, b->n + 1);
    for (uint32_t i = 0; i < b->n; i++) {
        if (!w->live[i] || b->ins[i].rate != rate || w->phase[i] != phase ||
            !is_computed(&b->ins[i]))
            continue;
        vp.vals[vp.nvals++] = i;
        if (w->p->vector[w->body][i] != UINT32_MAX) vp.keeps[vp.nkeeps++] = i;
    }
    if (vp.nkeeps) ARENA_PUSH(w->a, w->p->vprograms, w->p->nvprograms, *cap, vp);
}

static void add_vcommit(PlanWork *w, Rate rate, size_t *cap)
{
    const IrBody *b = w->b;
    VectorProgram vp = {.phase = w->p->nphases + 1, .rate = rate, .body = w->body};
    vp.stores = ARENA_ARRAY(w->a, uint32_t, b->nstores + 1);
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (w->m->slots[b->stores[i].slot].rate == rate && !plan_is_false(b, b->stores[i].guard))
            vp.stores[vp.nstores++] = i;
    }
    if (vp.nstores) ARENA_PUSH(w->a, w->p->vcommit, w->p->nvcommit, *cap, vp);
}

/* ---- reductions ----------------------------------------------------------------------------- */

static PlanReduce plan_reduce(PlanWork *w, uint32_t i, uint32_t *columns)
{
    const IrBody *b = w->b;
    const Ins *ins = &b->ins[i];
    ReduceFrom from = reduce_from(b, ins);
    IrRef guard = plan_is_true(b, ins->arg[2]) ? IR_NONE : ins->arg[2];
    bool two = ir_arity(ins) == 2, vectors = from == FROM_VECTOR;
    PlanReduce r = {.body = w->body,
                    .ins = i,
                    .phase = w->phase[i],
                    .from = from,
                    .rate = ins->rate,
                    .arg_rate = ir_args_rate(b, ins),
                    .arg = {LEVEL_NONE, 0},
                    .arg2 = {LEVEL_NONE, 0},
                    .vec = UINT32_MAX,
                    .vec2 = UINT32_MAX,
                    .guard = where(w, guard),
                    .result = where(w, i),
                    .result_vec = w->p->vector[w->body][i]};
    if (from == FROM_ELEMENTS) {
        bool column = rate_is_scalar(ins->rate) || ins->rate == RATE_MATRIX;
        r.partial = column ? columns[r.phase]++ : 0;
        return r;
    }
    r.arg = where(w, ins->arg[0]);
    if (two) r.arg2 = where(w, ins->arg[1]);
    if (vectors) {
        r.vec = w->p->vector[w->body][ins->arg[0]];
        r.vec_type = vector_type(w, ins->arg[0]);
        r.vec_rate = b->ins[ins->arg[0]].rate;
    }
    if (vectors && two) {
        r.vec2 = w->p->vector[w->body][ins->arg[1]];
        r.vec2_type = vector_type(w, ins->arg[1]);
        r.vec2_rate = b->ins[ins->arg[1]].rate;
    }
    return r;
}

/* Those of one slot stand together. */
static void insert_reduce(PlanWork *w, PlanReduce r, size_t *cap)
{
    Plan *p = w->p;
    uint32_t at = p->nreduces, slot = w->b->ins[r.ins].lit.slot;
    for (uint32_t i = 0; i < p->nreduces && w->slot_uses[slot] > 1; i++) {
        const PlanReduce *other = &p->reduces[i];
        if (w->m->bodies[other->body].ins[other->ins].lit.slot == slot) at = i + 1;
    }
    ARENA_PUSH(w->a, p->reduces, p->nreduces, *cap, r);
    memmove(&p->reduces[at + 1], &p->reduces[at], (p->nreduces - 1 - at) * sizeof r);
    p->reduces[at] = r;
}

static void list_reduces(PlanWork *w, size_t *cap)
{
    uint32_t *columns = ARENA_ARRAY(w->a, uint32_t, w->p->nphases + 1);
    for (uint32_t i = 0; i < w->b->n; i++) {
        if (w->live[i] && ir_is_reduce(&w->b->ins[i]))
            insert_reduce(w, plan_reduce(w, i, columns), cap);
    }
}

/* ---- programs ------------------------------------------------------------------------------- */

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
        if (rate_is_scalar(s->rate) && s->level == level && !plan_is_false(b, b->stores[i].guard))
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

/* A vector value that only later vector programs of its rate read is computed there: it needs no
 * vector of its own. */
static void sink_vectors(PlanWork *w)
{
    const IrBody *b = w->b;
    int *wanted = ARENA_ARRAY(w->a, int, b->n + 1); /* phase + 1 of the first use; 0: none */
    for (uint32_t i = b->n; i-- > 0;) {
        const Ins *ins = &b->ins[i];
        if (!w->live[i]) continue;
        if (rate_is_vector(ins->rate) && is_computed(ins) && wanted[i] > 0)
            w->phase[i] = wanted[i] - 1;
        for (int k = 0; k < ir_arity(ins); k++) {
            IrRef x = ins->arg[k];
            bool same = rate_is_vector(ins->rate) && ins->rate == b->ins[x].rate;
            int at = 1 + (same || ir_is_reduce(ins) ? w->phase[i] : w->phase[x]);
            if (!wanted[x] || at < wanted[x]) wanted[x] = at;
        }
    }
}

static void plan_body(PlanWork *w)
{
    const IrBody *b = w->b;
    w->p->place[w->body] = ARENA_ARRAY(w->a, Place, b->n + 1);
    w->p->vector[w->body] = ARENA_ARRAY(w->a, uint32_t, b->n + 1);
    uint8_t *level = w->p->level[w->body] = ARENA_ARRAY(w->a, uint8_t, b->n + 1);
    choose_rides(w);
    sink_vectors(w);
    w->p->body_phases[w->body] = w->nphases;
    if (w->nphases > w->p->nphases) w->p->nphases = w->nphases;
    for (uint32_t i = 0; i < b->n; i++) level[i] = level_of(w, level, &b->ins[i]);
    assign_places(w);
    assign_vectors(w);
    find_skip(w);
}

static void plan_programs(PlanWork *w, uint32_t n)
{
    static const Rate rates[] = {RATE_MATRIX, RATE_ROW, RATE_COL, RATE_BLOCK};
    size_t cap = 0, commit_cap = 0, reduce_cap = 0, vcap = 0, vcommit_cap = 0;
    int nphases = w->p->nphases;
    for (uint32_t i = 0; i < n; i++) list_reduces(&w[i], &reduce_cap);
    for (int phase = 0; phase <= nphases; phase++) {
        for (uint8_t l = 0; l < LEVEL_COUNT; l++) {
            for (uint32_t i = 0; i < n; i++) add_program(&w[i], phase, l, &cap);
        }
        for (int r = 0; r < 4; r++) {
            for (uint32_t i = 0; i < n; i++) add_vprogram(&w[i], phase, rates[r], &vcap);
        }
    }
    for (int r = 4; r-- > 0;) {
        for (uint32_t i = 0; i < n; i++) add_vcommit(&w[i], rates[r], &vcommit_cap);
    }
    for (uint8_t l = LEVEL_COUNT; l-- > 0;) {
        for (uint32_t i = 0; i < n; i++) add_commit(&w[i], l, &commit_cap);
    }
}

static uint32_t *count_feeders(Arena *a, const IrModule *m)
{
    uint32_t *uses = ARENA_ARRAY(a, uint32_t, m->nslots + 1),
             *last = ARENA_ARRAY(a, uint32_t, m->nslots + 1);
    for (uint32_t i = 0; i < m->nbodies; i++) {
        for (uint32_t r = 0; r < m->bodies[i].n; r++) {
            const Ins *ins = &m->bodies[i].ins[r];
            if (!ir_is_reduce(ins) || last[ins->lit.slot] == i + 1) continue;
            last[ins->lit.slot] = i + 1;
            uses[ins->lit.slot]++;
        }
    }
    return uses;
}

Plan *plan_make(Arena *a, const IrModule *m)
{
    Plan *p = ARENA_NEW(a, Plan);
    uint32_t n = m->nbodies;
    p->arena = a;
    p->m = m;
    p->nphases = 1;
    p->skip = (Place){LEVEL_NONE, 0};
    p->body_phases = ARENA_ARRAY(a, int, n + 1);
    p->phase = ARENA_ARRAY(a, int *, n + 1);
    p->place = ARENA_ARRAY(a, Place *, n + 1);
    p->level = ARENA_ARRAY(a, uint8_t *, n + 1);
    p->vectors = ARENA_ARRAY(a, PlanVector *, n + 1);
    p->nvectors = ARENA_ARRAY(a, uint32_t, n + 1);
    p->vector = ARENA_ARRAY(a, uint32_t *, n + 1);
    for (int l = 0; l < LEVEL_COUNT; l++) p->block_size[l] = m->nlevel[l];
    if (p->block_size[LEVEL_CLASS] == 0) p->block_size[LEVEL_CLASS] = 1; /* t */
    PlanWork *w = ARENA_ARRAY(a, PlanWork, n + 1);
    int *slot_phase = ARENA_ARRAY(a, int, m->nslots + 1);
    const uint32_t *slot_uses = count_feeders(a, m);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = (PlanWork){.a = a,
                          .p = p,
                          .m = m,
                          .b = &m->bodies[i],
                          .body = i,
                          .budget = PLAN_BUDGET,
                          .slot_phase = slot_phase,
                          .slot_uses = slot_uses};
        w[i].phase = p->phase[i] = ARENA_ARRAY(a, int, w[i].b->n + 1);
        w[i].wish = ARENA_ARRAY(a, int, w[i].b->n + 1);
        find_live(&w[i]);
    }
    share_live(w, n);
    forward_all(w, n);
    for (uint32_t i = 0; i < n; i++) plan_body(&w[i]);
    plan_programs(w, n);
    emit_names(p);
    return p;
}
