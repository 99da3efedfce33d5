/* interp.c - one step, straight from the IR: the meaning that every backend must reproduce bit for
 * bit.
 *
 * Requires a verified module, an ExecState that fits it, and the floating-point environment of a
 * step (round to nearest, no flush to zero). Instructions are evaluated in order, each for all
 * tensors before the next, so a reduction over all tensors needs no phases; one that several bodies
 * feed waits until its operands are done in each. Vectors and elements are arrays (float, double or
 * bytes), freed after their last use; scalars are f64, one per level. Nothing is written before
 * everything is computed.
 *
 *     %2:f32.element = mul %1 %0    for each active tensor: out[i] = lr * g[i] in f32
 *     store p %3 if %4              after the last instruction, where %4 holds
 */
#include "abi.h"
#include "fn.h"
#include "interp_impl.h"
#include <stdlib.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

static void *resize(const Run *r, void *p, size_t n)
{
    const Allocator *a = r->arena.alloc;
    if (a && a->realloc) return a->realloc(a->user, p, n);
    if (n) return realloc(p, n);
    free(p);
    return NULL;
}

static void *new_array(Run *r, size_t n, DType dtype)
{
    void *p = n > SIZE_MAX / 16 ? NULL : resize(r, NULL, (n ? n : 1) * map_size(dtype));
    if (!p) longjmp(r->oom, 1);
    return p;
}

void *run_temp(Run *r, size_t n, DType dtype)
{
    void *p = new_array(r, n, dtype);
    r->temp[r->ntemps++] = p;
    return p;
}

void run_drop(Run *r, int mark)
{
    while (r->ntemps > mark) resize(r, r->temp[--r->ntemps], 0);
}

static void free_arrays(Run *r, Val *v)
{
    for (size_t t = 0; v->array && t < r->x->ntensors; t++) {
        if (v->array[t]) resize(r, v->array[t], 0);
        v->array[t] = NULL;
    }
}

static void free_run(Run *r)
{
    run_drop(r, 0);
    for (uint32_t b = 0; r->val && b < r->m->nbodies; b++) {
        for (uint32_t i = 0; r->val[b] && i < r->m->bodies[b].n; i++) free_arrays(r, &r->val[b][i]);
    }
    arena_free(&r->arena);
}

/* ---- who runs -------------------------------------------------------------------------------- */

static bool runs(const Run *r, uint32_t body, size_t tensor)
{
    const ExecTensor *t = &r->x->tensors[tensor];
    return t->active && t->numel > 0 && t->body == body;
}

/* Bodies that run get their values, counted by use. */
static void new_values(Run *r, uint32_t body)
{
    const IrBody *b = &r->m->bodies[body];
    Val *v = r->val[body] = ARENA_ARRAY(&r->arena, Val, b->n + 1);
    for (IrRef i = 0; i < b->n; i++) {
        for (int k = 0; k < 3; k++)
            if (b->ins[i].arg[k] != IR_NONE) v[b->ins[i].arg[k]].uses++;
        if (ir_is_joint(&b->ins[i])) r->waits[b->ins[i].lit.slot]++;
    }
    for (uint32_t i = 0; i < b->nstores; i++) v[b->stores[i].value].uses++;
}

static void find_who_runs(Run *r)
{
    const ExecState *x = r->x;
    const IrModule *m = r->m;
    r->val = ARENA_ARRAY(&r->arena, Val *, m->nbodies + 1);
    r->group_runs = ARENA_ARRAY(&r->arena, bool *, m->nbodies + 1);
    r->feeder = ARENA_ARRAY(&r->arena, IrRef *, m->nbodies + 1);
    r->waits = ARENA_ARRAY(&r->arena, uint32_t, m->nslots + 1);
    r->result = ARENA_ARRAY(&r->arena, double *, m->nslots + 1);
    for (uint32_t b = 0; b < m->nbodies; b++) {
        r->group_runs[b] = ARENA_ARRAY(&r->arena, bool, x->ngroups + 1);
        r->feeder[b] = ARENA_ARRAY(&r->arena, IrRef, m->nslots + 1);
        memset(r->feeder[b], 0xff, m->nslots * sizeof **r->feeder);
        for (IrRef i = 0; i < m->bodies[b].n; i++) {
            const Ins *ins = &m->bodies[b].ins[i];
            if (ir_is_joint(ins)) r->feeder[b][ins->lit.slot] = i;
        }
    }
    for (size_t t = 0; t < x->ntensors; t++) {
        uint32_t body = x->tensors[t].body;
        if (!runs(r, body, t)) continue;
        if (!r->val[body]) new_values(r, body);
        r->group_runs[body][x->tensors[t].group] = true;
    }
}

static Level level_of(Rate rate)
{
    return rate & ~RATE_GROUP ? LEVEL_TENSOR : rate ? LEVEL_GROUP : LEVEL_GLOBAL;
}

static size_t sites_of(const Run *r, Level level)
{
    return level == LEVEL_TENSOR ? r->x->ntensors : level == LEVEL_GROUP ? r->x->ngroups : 1;
}

bool run_site(const Run *r, uint32_t body, Level level, size_t k, Site *out)
{
    if (level == LEVEL_GLOBAL) {
        *out = (Site){0, 0};
        return true;
    }
    if (level == LEVEL_GROUP) {
        *out = (Site){k, 0};
        return r->group_runs[body][k];
    }
    *out = (Site){r->x->tensors[k].group, k};
    return runs(r, body, k);
}

static size_t site_index(Level level, Site s)
{
    return level == LEVEL_TENSOR ? s.tensor : level == LEVEL_GROUP ? s.group : 0;
}

static double *block_at(const Run *r, Level level, Site s)
{
    if (level == LEVEL_TENSOR) return r->x->tensors[s.tensor].block;
    return level == LEVEL_GROUP ? r->x->group[s.group] : r->x->global;
}

/* ---- values ---------------------------------------------------------------------------------- */

double run_scalar(const Run *r, uint32_t body, IrRef ref, Site s)
{
    Level level = level_of(r->m->bodies[body].ins[ref].rate);
    return r->val[body][ref].scalar[site_index(level, s)];
}

bool run_guard(const Run *r, uint32_t body, IrRef guard, Site s)
{
    return guard == IR_NONE || run_scalar(r, body, guard, s) != 0;
}

/* Where in a vector of rate `from` the value for index i of a vector of rate `to` (or of the
 * elements) is. */
static int64_t index_in(const ExecTensor *t, Rate from, Rate to, int64_t i)
{
    if (to == RATE_ROW) return i / t->rows; /* of its matrix */
    if (to == RATE_COL) return i / t->cols;
    int64_t matrix = i / (t->rows * t->cols);
    if (from == RATE_MATRIX) return matrix;
    return from == RATE_COL ? matrix * t->cols + i % t->cols : i / t->cols;
}

void run_operand(Run *r, uint32_t body, IrRef ref, Site s, Rate rate, MapArg *out)
{
    const Ins *i = &r->m->bodies[body].ins[ref];
    DType dtype = (DType)i->dtype;
    if (rate_is_scalar(i->rate)) {
        map_arg_scalar(out, dtype, run_scalar(r, body, ref, s));
        return;
    }
    *out = (MapArg){.at = r->val[body][ref].array[s.tensor], .stride = 1, .dtype = dtype};
    if (i->rate == rate) return;
    const ExecTensor *t = &r->x->tensors[s.tensor];
    int64_t n = exec_count(t, rate);
    char *spread = run_temp(r, (size_t)n, dtype);
    size_t size = map_size(dtype);
    for (int64_t k = 0; k < n; k++)
        memcpy(spread + (size_t)k * size,
               (const char *)out->at + (size_t)index_in(t, i->rate, rate, k) * size, size);
    out->at = spread;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static double eval_scalar(Run *r, uint32_t body, const Ins *i, Site s)
{
    if (i->op == IR_CONST) return i->lit.num;
    if (i->op == IR_LOAD) {
        const Slot *slot = &r->m->slots[i->lit.slot];
        return block_at(r, level_of(slot->rate), s)[slot->index];
    }
    if (i->op == IR_ROUND) return (double)(float)run_scalar(r, body, i->arg[0], s);
    if (ir_is_joint(i)) return r->result[i->lit.slot][i->rate == RATE_GLOBAL ? 0 : s.group];
    if (ir_is_reduce(i)) return reduce_to_tensor(r, body, i, s);
    double v[3] = {0};
    for (int k = 0; k < ir_arity(i); k++) v[k] = run_scalar(r, body, i->arg[k], s);
    return ir_eval((Op)i->op, true, v[0], v[1], v[2]);
}

static void eval_draw(Run *r, uint32_t body, const Ins *i, Site s, size_t n, void *out)
{
    double lo = run_scalar(r, body, i->arg[0], s), hi = run_scalar(r, body, i->arg[1], s);
    uint32_t site = i->lit.slot;
    float *f = out;
    double *d = out;
    bool f64 = i->dtype == DT_F64;
    for (size_t k = 0; k < n; k++) {
        if (i->op == IR_NORMAL)
            f64 ? (d[k] = ds_normal(lo, hi, site, k)) : (f[k] = ds_normalf(lo, hi, site, k));
        else if (i->op == IR_UNIFORM)
            f64 ? (d[k] = ds_uniform(lo, hi, site, k)) : (f[k] = ds_uniformf(lo, hi, site, k));
        else
            f64 ? (d[k] = ds_rademacher(lo, hi, site, k))
                : (f[k] = ds_rademacherf(lo, hi, site, k));
    }
}

static void eval_map(Run *r, uint32_t body, const Ins *i, Site s, size_t n, void *out)
{
    MapArg arg[3];
    int mark = r->ntemps;
    bool f64 = false;
    for (int k = 0; k < 3; k++) {
        if (k < ir_arity(i))
            run_operand(r, body, i->arg[k], s, i->rate, &arg[k]);
        else
            map_arg_scalar(&arg[k], DT_F64, 0);
        f64 |= k < ir_arity(i) && arg[k].dtype == DT_F64;
    }
    if (i->op == IR_ROUND)
        for (size_t k = 0; k < n; k++) ((float *)out)[k] = (float)map_arg_get(&arg[0], k);
    else
        map_apply((Op)i->op, f64, n, out, arg);
    run_drop(r, mark);
}

static void *eval_array(Run *r, uint32_t body, IrRef ref, Site s)
{
    const Ins *i = &r->m->bodies[body].ins[ref];
    const ExecTensor *t = &r->x->tensors[s.tensor];
    size_t n = (size_t)exec_count(t, i->rate);
    void *out = r->val[body][ref].array[s.tensor] = new_array(r, n, (DType)i->dtype);
    if (i->op == IR_LOAD) {
        uint32_t elem = r->m->slots[i->lit.slot].index;
        map_load(t->ptr[elem], t->storage[elem], n, (DType)i->dtype, out);
    } else if (ir_is_reduce(i)) {
        reduce_to_vector(r, body, i, s, out);
    } else if (ir_is_draw(i)) {
        eval_draw(r, body, i, s, n, out);
    } else {
        eval_map(r, body, i, s, n, out);
    }
    return out;
}

/* The result of a reduction across tensors, for all bodies that feed it. */
static void eval_result(Run *r, uint32_t slot)
{
    size_t n = r->m->slots[slot].rate == RATE_GLOBAL ? 1 : r->x->ngroups;
    r->result[slot] = ARENA_ARRAY(&r->arena, double, n + 1);
    for (size_t g = 0; g < n; g++) {
        bool any = n == 1 && r->m->slots[slot].rate == RATE_GLOBAL;
        for (uint32_t b = 0; b < r->m->nbodies; b++)
            any |= r->feeder[b][slot] != IR_NONE && r->group_runs[b][g];
        if (any) r->result[slot][g] = reduce_across(r, slot, g);
    }
}

static void eval_ins(Run *r, uint32_t body, IrRef ref)
{
    const Ins *i = &r->m->bodies[body].ins[ref];
    Val *v = &r->val[body][ref];
    bool array = !rate_is_scalar(i->rate);
    Level level = array ? LEVEL_TENSOR : level_of(i->rate);
    size_t n = sites_of(r, level);
    if (array)
        v->array = ARENA_ARRAY(&r->arena, void *, n);
    else
        v->scalar = ARENA_ARRAY(&r->arena, double, n);
    for (size_t k = 0; k < n; k++) {
        Site s;
        if (!run_site(r, body, level, k, &s)) continue;
        if (array)
            eval_array(r, body, ref, s);
        else
            v->scalar[k] = eval_scalar(r, body, i, s);
    }
}

/* Whether the instruction can be evaluated: its operands are done, and if other bodies feed its
 * result, theirs. */
static bool ready(Run *r, uint32_t body, IrRef ref)
{
    const Ins *i = &r->m->bodies[body].ins[ref];
    Val *v = r->val[body];
    for (int k = 0; k < 3; k++)
        if (i->arg[k] != IR_NONE && !v[i->arg[k]].done) return false;
    if (!ir_is_joint(i)) return true;
    if (!v[ref].arrived) r->waits[i->lit.slot]--;
    v[ref].arrived = true;
    if (r->waits[i->lit.slot] > 0) return false;
    if (!r->result[i->lit.slot]) eval_result(r, i->lit.slot);
    return true;
}

/* Evaluates what is ready, in order; returns how many instructions are left. */
static uint32_t advance(Run *r, uint32_t body)
{
    const IrBody *b = &r->m->bodies[body];
    Val *v = r->val[body];
    uint32_t left = 0;
    for (IrRef i = 0; i < b->n; i++) {
        if (v[i].done) continue;
        if (!ready(r, body, i)) {
            left++;
            continue;
        }
        eval_ins(r, body, i);
        v[i].done = true;
        if (v[i].uses == 0) free_arrays(r, &v[i]);
        for (int k = 0; k < 3; k++) {
            IrRef arg = b->ins[i].arg[k];
            if (arg != IR_NONE && --v[arg].uses == 0) free_arrays(r, &v[arg]);
        }
    }
    return left;
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* Slots of groups and of the whole are written by the first body that runs there. */
static bool commits(const Run *r, uint32_t body, Level level, size_t k)
{
    for (uint32_t b = 0; b < body && level != LEVEL_TENSOR; b++)
        if (r->val[b] && (level == LEVEL_GLOBAL || r->group_runs[b][k])) return false;
    return true;
}

/* Allocates nothing: some of the step is written already. */
static void store_array(Run *r, uint32_t body, const IrStore *st, Site s)
{
    const Slot *slot = &r->m->slots[st->slot];
    const ExecTensor *t = &r->x->tensors[s.tensor];
    void *to = t->ptr[slot->index];
    DType storage = t->storage[slot->index];
    Rate rate = r->m->bodies[body].ins[st->value].rate;
    int64_t n = exec_count(t, slot->rate);
    MapArg v;
    run_operand(r, body, st->value, s, rate, &v);
    if (rate_is_scalar(rate) || rate == slot->rate) {
        map_store(to, storage, (size_t)n, &v);
        return;
    }
    for (int64_t k = 0; k < n; k++)
        elem_set(to, storage, k, map_arg_get(&v, (size_t)index_in(t, rate, slot->rate, k)));
}

static void store(Run *r, uint32_t body, const IrStore *st)
{
    const Slot *slot = &r->m->slots[st->slot];
    bool array = !rate_is_scalar(slot->rate);
    Level level = array ? LEVEL_TENSOR : level_of(slot->rate);
    for (size_t k = 0; k < sites_of(r, level); k++) {
        Site s;
        if (!run_site(r, body, level, k, &s) || !commits(r, body, level, k)) continue;
        if (!run_guard(r, body, st->guard, s)) continue;
        if (array) {
            store_array(r, body, st, s);
        } else {
            double v = run_scalar(r, body, st->value, s);
            block_at(r, level, s)[slot->index] = slot->storage == DT_F32 ? (double)(float)v : v;
        }
    }
}

bool interp_step(const IrModule *m, ExecState *x)
{
    Run run = {.m = m, .x = x}, *r = &run;
    run.arena.alloc = m->arena->alloc;
    run.arena.oom = &run.oom;
    if (setjmp(run.oom)) {
        free_run(r);
        return false;
    }
    find_who_runs(r);
    for (uint32_t left = 1; left;) {
        left = 0;
        for (uint32_t b = 0; b < m->nbodies; b++)
            if (r->val[b]) left += advance(r, b);
    }
    for (uint32_t b = 0; b < m->nbodies; b++) {
        for (uint32_t i = 0; r->val[b] && i < m->bodies[b].nstores; i++)
            store(r, b, &m->bodies[b].stores[i]);
    }
    free_run(r);
    return true;
}
