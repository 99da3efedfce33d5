/* interp.c - one step, straight from the IR: the meaning that every backend must reproduce bit for
 * bit.
 *
 * Requires a verified module, an ExecState that fits it, and the floating-point environment of a
 * step (round to nearest, no flush to zero). Instructions are evaluated in order, each for all
 * tensors before the next, so a reduction over all tensors needs no phases. Element values are
 * arrays of float (double under compute f64), freed after their last use; scalars are f64, one per
 * level. Nothing is written before everything is computed.
 *
 *     %2:f32.element = mul %1 %0    for each active tensor: out[i] = lr * g[i] in f32
 *     store p %3 if %4              after the last instruction, where %4 holds
 */
#include "abi.h"
#include "interp_map.h"
#include "plan.h"
#include "reduce.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* The values of one instruction. */
typedef struct Val {
    double *scalar; /* one, one per group, or one per tensor; f32 exactly, bools 0 or 1 */
    void **elem;    /* one array per tensor; NULL where not active or freed */
} Val;

typedef struct Run {
    const IrModule *m;
    ExecState *x;
    Arena arena; /* scalars and bookkeeping */
    jmp_buf oom;
    Val **val;         /* [body][ref] */
    uint32_t *rank;    /* of each tensor, by name among those of its body that are not empty */
    uint32_t *nranks;  /* per body */
    bool **group_runs; /* [body][group]: has an active tensor */
    bool *body_runs;
} Run;

/* Where a value of some rate is looked at: a tensor and its group, or a group, or the whole. */
typedef struct Site {
    size_t group, tensor;
} Site;

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
    void *p = n > SIZE_MAX / 8 ? NULL : resize(r, NULL, n * map_size(dtype));
    if (!p) longjmp(r->oom, 1);
    return p;
}

static void free_arrays(Run *r, Val *v)
{
    for (size_t t = 0; v->elem && t < r->x->ntensors; t++) {
        if (v->elem[t]) resize(r, v->elem[t], 0);
        v->elem[t] = NULL;
    }
}

static void free_run(Run *r)
{
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

static void find_who_runs(Run *r)
{
    const ExecState *x = r->x;
    uint32_t nb = r->m->nbodies;
    r->rank = ARENA_ARRAY(&r->arena, uint32_t, x->ntensors + 1);
    r->nranks = ARENA_ARRAY(&r->arena, uint32_t, nb + 1);
    r->body_runs = ARENA_ARRAY(&r->arena, bool, nb + 1);
    r->group_runs = ARENA_ARRAY(&r->arena, bool *, nb + 1);
    for (uint32_t b = 0; b < nb; b++)
        r->group_runs[b] = ARENA_ARRAY(&r->arena, bool, x->ngroups + 1);
    for (size_t k = 0; k < x->ntensors; k++) {
        size_t t = x->by_name[k];
        uint32_t body = x->tensors[t].body;
        if (x->tensors[t].numel <= 0) continue;
        r->rank[t] = r->nranks[body]++;
        if (!runs(r, body, t)) continue;
        r->body_runs[body] = true;
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

/* The k-th site of a level; false if nothing runs there. */
static bool site_at(const Run *r, uint32_t body, Level level, size_t k, Site *out)
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

static double scalar_at(const Run *r, uint32_t body, IrRef ref, Site s)
{
    Level level = level_of(r->m->bodies[body].ins[ref].rate);
    return r->val[body][ref].scalar[site_index(level, s)];
}

static bool guard_holds(const Run *r, uint32_t body, IrRef guard, Site s)
{
    return guard == IR_NONE || scalar_at(r, body, guard, s) != 0;
}

static void operand_at(const Run *r, uint32_t body, IrRef ref, Site s, MapArg *out)
{
    const Ins *i = &r->m->bodies[body].ins[ref];
    if (rate_is_elementwise(i->rate))
        *out =
            (MapArg){.at = r->val[body][ref].elem[s.tensor], .stride = 1, .dtype = (DType)i->dtype};
    else
        map_arg_scalar(out, (DType)i->dtype, scalar_at(r, body, ref, s));
}

static void operands_at(const Run *r, uint32_t body, const Ins *i, Site s, MapArg out[3])
{
    for (int k = 0; k < 3; k++) {
        if (k < ir_arity(i))
            operand_at(r, body, i->arg[k], s, &out[k]);
        else
            map_arg_scalar(&out[k], DT_F64, 0);
    }
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Over the elements of one tensor. */
static double reduce_tensor(Run *r, uint32_t body, const Ins *i, Site s)
{
    ReduceOp op = (ReduceOp)(i->op - IR_RED);
    size_t n = (size_t)r->x->tensors[s.tensor].numel, nchunks = (n + DS_CHUNK - 1) / DS_CHUNK;
    double *chunks = new_array(r, nchunks, DT_F64), x[DS_CHUNK], y[DS_CHUNK];
    MapArg arg[3];
    operands_at(r, body, i, s, arg);
    bool two = ir_arity(i) > 1;
    for (size_t c = 0; c < nchunks; c++) {
        size_t first = c * DS_CHUNK, count = n - first < DS_CHUNK ? n - first : DS_CHUNK;
        for (size_t k = 0; k < count; k++) {
            x[k] = map_arg_get(&arg[0], first + k);
            y[k] = two ? map_arg_get(&arg[1], first + k) : 0;
        }
        chunks[c] = reduce_chunk(op, x, two ? y : NULL, count, NULL);
    }
    double root = reduce_tree(op, chunks, nchunks, 1, NULL);
    resize(r, chunks, 0);
    return root;
}

/* Over all tensors of the body: of their elements, or of one value each. */
static double reduce_all(Run *r, uint32_t body, const Ins *i)
{
    ReduceOp op = (ReduceOp)(i->op - IR_RED);
    size_t n = r->nranks[body];
    double *x = ARENA_ARRAY(&r->arena, double, n + 1), *y = ARENA_ARRAY(&r->arena, double, n + 1);
    unsigned char *present = arena_alloc(&r->arena, n + 1);
    Rate rate = RATE_GLOBAL;
    for (int k = 0; k < ir_arity(i); k++)
        rate = rate_join(rate, r->m->bodies[body].ins[i->arg[k]].rate);
    bool elements = rate_is_elementwise(rate);
    for (size_t t = 0; t < r->x->ntensors; t++) {
        Site s;
        if (!site_at(r, body, LEVEL_TENSOR, t, &s) || !guard_holds(r, body, i->arg[2], s)) continue;
        uint32_t rank = r->rank[t];
        present[rank] = 1;
        x[rank] = elements ? reduce_tensor(r, body, i, s) : scalar_at(r, body, i->arg[0], s);
        if (!elements && ir_arity(i) > 1) y[rank] = scalar_at(r, body, i->arg[1], s);
    }
    if (elements) return reduce_tree(op, x, n, 1, present);
    return reduce_vector(op, x, ir_arity(i) > 1 ? y : NULL, n, present);
}

/* ---- instructions ---------------------------------------------------------------------------- */

static double eval_scalar(Run *r, uint32_t body, const Ins *i, Site s)
{
    if (i->op == IR_CONST) return i->lit.num;
    if (i->op == IR_LOAD) {
        const Slot *slot = &r->m->slots[i->lit.slot];
        return block_at(r, level_of(slot->rate), s)[slot->index];
    }
    if (i->op == IR_ROUND) return (double)(float)scalar_at(r, body, i->arg[0], s);
    if (ir_is_reduce(i)) {
        if (i->rate == RATE_GLOBAL) return reduce_all(r, body, i);
        if (guard_holds(r, body, i->arg[2], s)) return reduce_tensor(r, body, i, s);
        return reduce_identity((ReduceOp)(i->op - IR_RED));
    }
    double v[3] = {0};
    for (int k = 0; k < ir_arity(i); k++) v[k] = scalar_at(r, body, i->arg[k], s);
    return ir_eval((Op)i->op, true, v[0], v[1], v[2]);
}

static void *eval_elements(Run *r, uint32_t body, const Ins *i, Site s)
{
    const ExecTensor *t = &r->x->tensors[s.tensor];
    size_t n = (size_t)t->numel;
    void *out = new_array(r, n, (DType)i->dtype);
    if (i->op == IR_LOAD) {
        uint32_t elem = r->m->slots[i->lit.slot].index;
        map_load(t->ptr[elem], t->storage[elem], n, (DType)i->dtype, out);
        return out;
    }
    MapArg arg[3];
    operands_at(r, body, i, s, arg);
    map_apply((Op)i->op, r->m->compute_f64, n, out, arg);
    return out;
}

static void eval_ins(Run *r, uint32_t body, IrRef ref)
{
    const Ins *i = &r->m->bodies[body].ins[ref];
    Val *v = &r->val[body][ref];
    bool elements = rate_is_elementwise(i->rate);
    Level level = elements ? LEVEL_TENSOR : level_of(i->rate);
    size_t n = sites_of(r, level);
    if (elements)
        v->elem = ARENA_ARRAY(&r->arena, void *, n);
    else
        v->scalar = ARENA_ARRAY(&r->arena, double, n);
    for (size_t k = 0; k < n; k++) {
        Site s;
        if (!site_at(r, body, level, k, &s)) continue;
        if (elements)
            v->elem[k] = eval_elements(r, body, i, s);
        else
            v->scalar[k] = eval_scalar(r, body, i, s);
    }
}

/* The last instruction that uses each value; n where a store does. */
static IrRef *last_uses(Run *r, const IrBody *b)
{
    IrRef *last = ARENA_ARRAY(&r->arena, IrRef, b->n + 1);
    for (IrRef i = 0; i < b->n; i++) {
        last[i] = i;
        for (int k = 0; k < 3; k++)
            if (b->ins[i].arg[k] != IR_NONE) last[b->ins[i].arg[k]] = i;
    }
    for (uint32_t i = 0; i < b->nstores; i++) last[b->stores[i].value] = b->n;
    return last;
}

static void eval_body(Run *r, uint32_t body)
{
    const IrBody *b = &r->m->bodies[body];
    IrRef *last = last_uses(r, b);
    for (IrRef i = 0; i < b->n; i++) {
        eval_ins(r, body, i);
        if (last[i] == i) free_arrays(r, &r->val[body][i]);
        for (int k = 0; k < 3; k++) {
            IrRef arg = b->ins[i].arg[k];
            if (arg != IR_NONE && last[arg] == i) free_arrays(r, &r->val[body][arg]);
        }
    }
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void store(Run *r, uint32_t body, const IrStore *st)
{
    const Slot *slot = &r->m->slots[st->slot];
    bool elements = rate_is_elementwise(slot->rate);
    Level level = elements ? LEVEL_TENSOR : level_of(slot->rate);
    for (size_t k = 0; k < sites_of(r, level); k++) {
        Site s;
        if (!site_at(r, body, level, k, &s) || !guard_holds(r, body, st->guard, s)) continue;
        if (elements) {
            const ExecTensor *t = &r->x->tensors[k];
            MapArg v;
            operand_at(r, body, st->value, s, &v);
            map_store(t->ptr[slot->index], t->storage[slot->index], (size_t)t->numel, &v);
        } else {
            double v = scalar_at(r, body, st->value, s);
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
    r->val = ARENA_ARRAY(&r->arena, Val *, m->nbodies + 1);
    for (uint32_t b = 0; b < m->nbodies; b++) {
        if (!r->body_runs[b]) continue;
        r->val[b] = ARENA_ARRAY(&r->arena, Val, m->bodies[b].n + 1);
        eval_body(r, b);
    }
    for (uint32_t b = 0; b < m->nbodies; b++) {
        for (uint32_t i = 0; r->body_runs[b] && i < m->bodies[b].nstores; i++)
            store(r, b, &m->bodies[b].stores[i]);
    }
    free_run(r);
    return true;
}
