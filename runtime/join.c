/* join.c - where partial results meet, after a phase's kernels and programs: in the fixed tree
 * (codegen/reduce.h, docs/numerics.md).
 *
 * Requires that everything that feeds the phase's reductions is there. What a result is made of
 * does not depend on threads: they take whole results, or whole columns of results.
 *
 *     sum[col]: tiles of 16 rows, [tile][cols]  ->  merged by pairs, in place
 *     sum[all] in two bodies: a value per tensor, in byte order of names, whatever body it runs
 */
#include "internal.h"
#include <string.h>

static const double *place_of(const OptEntry *e, uint32_t live, Place p)
{
    return &e->tensor_rows[live].u[p.level][p.index];
}

static ReduceOp op_of(const OptEntry *e, const PlanReduce *r)
{
    return (ReduceOp)(e->m->bodies[r->body].ins[r->ins].op - IR_RED);
}

static bool takes_part(const OptEntry *e, uint32_t live, const PlanReduce *r)
{
    return r->guard.level == LEVEL_NONE || *place_of(e, live, r->guard) != 0;
}

/* ---- one tensor ------------------------------------------------------------------------------ */

/* `n` of the tensor's rows from `first` on. */
static double join_rows(const OptEntry *e, const LiveTensor *l, const PlanReduce *r, ReduceOp op,
                        size_t first, size_t n)
{
    size_t stride = (size_t)e->npartial[r->phase];
    const double *v = e->partial + (l->row + first) * stride + r->partial;
    return n == 1 ? *v : reduce_tree(op, v, n, stride, NULL);
}

/* One argument of a reduction of vectors. */
typedef struct VectorArg {
    const void *at; /* NULL: `value`, of all */
    DType type;
    size_t each; /* so many indices share a value: those of a matrix; else 1 */
    double value;
} VectorArg;
typedef struct VectorArgs {
    VectorArg x, y;
    size_t first; /* of the vector */
} VectorArgs;

static VectorArg vector_arg(const OptEntry *e, uint32_t live, const PlanReduce *r, uint32_t vec,
                            DType type, Rate rate, Place place)
{
    const ViewDims *d = &e->live[live].dims;
    if (vec == UINT32_MAX) return (VectorArg){.value = *place_of(e, live, place)};
    bool shared = rate == RATE_MATRIX && r->arg_rate != RATE_MATRIX;
    int64_t each = shared ? view_length(d, r->arg_rate) / d->mats : 1;
    return (VectorArg){.at = e->tensor_rows[live].ptr[vec], .type = type, .each = (size_t)each};
}

static void fill_arg(const VectorArg *a, size_t first, size_t count, double *out)
{
    const float *f32 = a->at;
    if (a->at && a->type == DT_F32 && a->each <= 1) {
        for (size_t i = 0; i < count; i++) out[i] = (double)f32[first + i];
        return;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = a->each > 1 ? (first + i) / a->each : first + i;
        out[i] = !a->at              ? a->value
                 : a->type == DT_F32 ? (double)f32[k]
                 : a->type == DT_F64 ? ((const double *)a->at)[k]
                                     : (double)((const unsigned char *)a->at)[k];
    }
}

static void fill_args(const void *arg, size_t first, size_t count, double *x, double *y)
{
    const VectorArgs *a = arg;
    fill_arg(&a->x, a->first + first, count, x);
    fill_arg(&a->y, a->first + first, count, y);
}

/* Part [first, first + n) of a vector. */
static double join_vector(const OptEntry *e, uint32_t live, const PlanReduce *r, ReduceOp op,
                          size_t first, size_t n)
{
    VectorArgs a = {.first = first};
    a.x = vector_arg(e, live, r, r->vec, r->vec_type, r->vec_rate, r->arg);
    if (reduce_info[op].arity > 1)
        a.y = vector_arg(e, live, r, r->vec2, r->vec2_type, r->vec2_rate, r->arg2);
    return reduce_filled(op, n, fill_args, &a);
}

/* Matrices [first, end) of a vector of which each has `length` values. */
static void join_vectors(const OptEntry *e, uint32_t live, const PlanReduce *r, ReduceOp op,
                         size_t first, size_t end, size_t length, double *to)
{
    double x[DS_CHUNK], y[DS_CHUNK];
    bool two = reduce_info[op].arity > 1;
    VectorArgs a = {.x = vector_arg(e, live, r, r->vec, r->vec_type, r->vec_rate, r->arg)};
    if (two) a.y = vector_arg(e, live, r, r->vec2, r->vec2_type, r->vec2_rate, r->arg2);
    for (size_t n; first < end; first += n) {
        n = end - first < DS_CHUNK / length ? end - first : DS_CHUNK / length;
        fill_arg(&a.x, first * length, n * length, x);
        if (two) fill_arg(&a.y, first * length, n * length, y);
        reduce_runs(op, x, two ? y : NULL, length, n, to + first);
    }
}

static double join_tensor(const OptEntry *e, uint32_t live, const PlanReduce *r, ReduceOp op)
{
    const LiveTensor *l = &e->live[live];
    if (r->from == FROM_VECTOR)
        return join_vector(e, live, r, op, 0, (size_t)view_length(&l->dims, r->arg_rate));
    return join_rows(e, l, r, op, 0, l->nrows);
}

/* ---- over tensors ---------------------------------------------------------------------------- */

/* PlanReduces of one result: each for the tensors of its body. */
typedef struct Feeders {
    const PlanReduce *r;
    uint32_t n;
    ReduceOp op;
} Feeders;

static const PlanReduce *feeder_of(const Feeders *f, uint32_t body)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->r[i].body == body) return &f->r[i];
    return NULL;
}

/* Tensors order[0 … n) in byte order of their names; those that take no part are missing. */
static double join_tensors(OptEntry *e, const Feeders *f, const uint32_t *order, size_t n)
{
    bool scalars = f->r->from == FROM_SCALARS, two = reduce_info[f->op].arity > 1;
    double *x = e->roots, *y = e->roots + e->x.ntensors;
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        uint32_t i = order[k];
        const PlanReduce *r = feeder_of(f, e->x.tensors[i].body);
        if (!r) continue;
        e->present[at] = e->x.tensors[i].active && takes_part(e, i, r);
        if (e->present[at]) x[at] = scalars ? *place_of(e, i, r->arg) : join_tensor(e, i, r, f->op);
        if (e->present[at] && scalars && two) y[at] = *place_of(e, i, r->arg2);
        at++;
    }
    return scalars ? reduce_vector(f->op, x, two ? y : NULL, at, e->present)
                   : reduce_tree(f->op, x, at, 1, e->present);
}

/* One value per group, as the first body says that runs there. */
static double join_groups(dsopt_optimizer *opt, OptEntry *e, const Feeders *f)
{
    bool two = reduce_info[f->op].arity > 1;
    double *x = e->roots, *y = e->roots + opt->ngroups;
    for (uint32_t g = 0; g < opt->ngroups; g++) {
        const double *u[2] = {opt->global, opt->group[g]};
        const PlanReduce *r = NULL;
        for (uint32_t i = 0; i < f->n && !r; i++)
            if (e->bodies[f->r[i].body].groups[g]) r = &f->r[i];
        e->present[g] =
            r && (r->guard.level == LEVEL_NONE || u[r->guard.level][r->guard.index] != 0);
        if (e->present[g]) x[g] = u[r->arg.level][r->arg.index];
        if (e->present[g] && two) y[g] = u[r->arg2.level][r->arg2.index];
    }
    return reduce_vector(f->op, x, two ? y : NULL, opt->ngroups, e->present);
}

static bool is_of_groups(const PlanReduce *r)
{
    return r->rate == RATE_GLOBAL && r->arg_rate == RATE_GROUP;
}

static void join_coarse(dsopt_optimizer *opt, OptEntry *e, const Feeders *f)
{
    const Place *to = &f->r->result;
    if (to->level == LEVEL_GLOBAL) {
        opt->global[to->index] = is_of_groups(f->r)
                                     ? join_groups(opt, e, f)
                                     : join_tensors(e, f, opt->by_rank, opt->nlive);
        return;
    }
    for (uint32_t g = 0; g < opt->ngroups; g++) {
        uint32_t begin = opt->group_begin[g], end = opt->group_begin[g + 1];
        if (e->group_first[g] != UINT32_MAX)
            opt->group[g][to->index] = join_tensors(e, f, opt->by_group + begin, end - begin);
    }
}

/* ---- within tensors -------------------------------------------------------------------------- */

/* n times the same value, in lanes: those of the remainder have taken it once more. */
static double reduce_same(ReduceOp op, double x, double y, int64_t n)
{
    double lanes[DS_LANES], least = reduce_identity(op);
    for (int64_t k = 0; k < n / DS_LANES; k++) least = reduce_step(op, least, x, y);
    double most = reduce_step(op, least, x, y);
    for (int j = 0; j < DS_LANES; j++) lanes[j] = j < n % DS_LANES ? most : least;
    return reduce_fold_lanes(op, lanes);
}

/* The aligned tree over n > 0 equal leaves: a whole subtree for each bit of n. */
static double tree_of_same(ReduceOp op, double leaf, int64_t n)
{
    while (n % 2 == 0) {
        leaf = reduce_merge(op, leaf, leaf);
        n /= 2;
    }
    double root = leaf;
    while (n /= 2) {
        leaf = reduce_merge(op, leaf, leaf);
        if (n % 2) root = reduce_merge(op, leaf, root);
    }
    return root;
}

/* A value that is the same for all elements of a tensor, reduced over them. */
static double join_uniform(OptEntry *e, uint32_t i, const PlanReduce *r, ReduceOp op)
{
    const LiveTensor *l = &e->live[i];
    const DsRow *rows = e->rows + l->row;
    double x = *place_of(e, i, r->arg),
           y = r->arg2.level == LEVEL_NONE ? 0 : *place_of(e, i, r->arg2);
    if (l->dims.packs > 1)
        return tree_of_same(op, reduce_same(op, x, y, l->dims.rows * l->dims.cols), l->dims.mats);
    double *part = e->partial; /* of rows whose results are joined by now */
    for (size_t k = 0; k < l->nrows; k++) {
        int64_t n = (rows[k].runs - 1) * rows[k].count + rows[k].last;
        bool again = k > 0 && n == (rows[k - 1].runs - 1) * rows[k - 1].count + rows[k - 1].last;
        part[k] = again ? part[k - 1] : reduce_same(op, x, y, n);
    }
    return reduce_tree(op, part, l->nrows, 1, NULL);
}

static void join_each(OptEntry *e, const PlanReduce *r, ReduceOp op)
{
    const BodyRun *b = &e->bodies[r->body];
    for (size_t a = b->begin; a < b->end; a++) {
        uint32_t i = e->active[a];
        double *to = &e->tensor_rows[i].u[LEVEL_TENSOR][r->result.index];
        *to = !takes_part(e, i, r)      ? reduce_identity(op)
              : r->from == FROM_SCALARS ? join_uniform(e, i, r, op)
                                        : join_tensor(e, i, r, op);
    }
}

/* ---- vectors --------------------------------------------------------------------------------- */

enum { SLICE = 256, UNITS_ALONE = 8 };

/* Arrays at, at + step, … meet in the aligned tree, in place; the first is the result. */
static void join_arrays(ReduceOp op, double *at, size_t count, size_t step, size_t n)
{
    for (size_t w = 1; w < count; w *= 2)
        for (size_t k = 0; k + w < count; k += 2 * w)
            reduce_merge_array(op, at + k * step, at + (k + w) * step, n);
}

static size_t units_of(const OptEntry *e, uint32_t live, const PlanReduce *r)
{
    const ViewDims *d = &e->live[live].dims;
    int64_t n = r->rate & AXIS_COL                  ? d->cols
                : r->rate & (AXIS_ROW | AXIS_BLOCK) ? d->mats * d->rows
                                                    : d->mats;
    return (size_t)((n + SLICE - 1) / SLICE);
}

static size_t part_of(size_t n, size_t first)
{
    return n - first < SLICE ? n - first : SLICE;
}

static void join_matrices(const OptEntry *e, uint32_t live, const PlanReduce *r, ReduceOp op,
                          size_t first, double *to)
{
    const LiveTensor *l = &e->live[live];
    const ViewDims *d = &l->dims;
    if (r->from != FROM_VECTOR && d->packs > 1) return; /* the kernel's are the results */
    size_t end = first + part_of((size_t)d->mats, first),
           length = r->from == FROM_VECTOR ? (size_t)(view_length(d, r->arg_rate) / d->mats)
                                           : (size_t)(d->tiles * d->strips);
    if (r->from == FROM_VECTOR && length <= DS_CHUNK) {
        join_vectors(e, live, r, op, first, end, length, to);
        return;
    }
    for (size_t m = first; m < end; m++)
        to[m] = r->from == FROM_VECTOR ? join_vector(e, live, r, op, m * length, length)
                                       : join_rows(e, l, r, op, m * length, length);
}

static void join_columns(const ViewDims *d, ReduceOp op, size_t first, double *to)
{
    size_t cols = (size_t)d->cols, tiles = (size_t)d->tiles, n = part_of(cols, first);
    if (tiles == 1) return;
    for (size_t m = 0; m < (size_t)d->mats; m++) {
        double *from = to + m * tiles * cols + first;
        join_arrays(op, from, tiles, cols, n);
        /* Its place lies among partial results of matrices before it, which are not needed any
         * more. */
        if (m * cols + first != m * tiles * cols + first)
            memcpy(to + m * cols + first, from, n * sizeof *to);
    }
}

/* Unit k of a tensor's result: SLICE of its matrices, rows, or columns. */
static void join_unit(const OptEntry *e, uint32_t live, const PlanReduce *r, ReduceOp op, size_t k)
{
    const ViewDims *d = &e->live[live].dims;
    double *to = e->tensor_rows[live].ptr[r->result_vec];
    size_t first = k * SLICE, length = (size_t)view_length(d, r->rate);
    if (!takes_part(e, live, r)) {
        if (r->rate & AXIS_COL) { /* the slice of every matrix */
            for (size_t m = 0; m < (size_t)d->mats; m++)
                for (size_t c = first; c < first + part_of((size_t)d->cols, first); c++)
                    to[m * (size_t)d->cols + c] = reduce_identity(op);
        } else {
            for (size_t i = first; i < first + part_of(length, first); i++)
                to[i] = reduce_identity(op);
        }
    } else if (r->rate & AXIS_COL) {
        join_columns(d, op, first, to);
    } else if (r->rate & (AXIS_ROW | AXIS_BLOCK)) {
        join_arrays(op, to + first, (size_t)d->strips, length, part_of(length, first));
    } else {
        join_matrices(e, live, r, op, first, to);
    }
}

typedef struct Units {
    const OptEntry *e;
    const PlanReduce *r;
    ReduceOp op;
    atomic_size_t next;
} Units;

static void units_job(void *arg, int worker, void *scratch)
{
    (void)worker, (void)scratch;
    Units *u = arg;
    const OptEntry *e = u->e;
    const BodyRun *b = &e->bodies[u->r->body];
    unsigned fp = fpenv_enter();
    size_t mine = atomic_fetch_add(&u->next, 1), at = 0;
    for (size_t a = b->begin; a < b->end; a++) {
        size_t n = units_of(e, e->active[a], u->r);
        for (; mine < at + n; mine = atomic_fetch_add(&u->next, 1))
            join_unit(e, e->active[a], u->r, u->op, mine - at);
        at += n;
    }
    fpenv_leave(fp);
}

static void join_wide(dsopt_optimizer *opt, OptEntry *e, const PlanReduce *r, ReduceOp op)
{
    const BodyRun *b = &e->bodies[r->body];
    Units u = {.e = e, .r = r, .op = op};
    size_t n = 0;
    for (size_t a = b->begin; a < b->end; a++) n += units_of(e, e->active[a], r);
    if (n == 0) return;
    int threads = n <= UNITS_ALONE ? 1 : pool_threads(opt->ctx->pool);
    pool_run(opt->ctx->pool, threads, e->brief, units_job, &u);
}

/* ---- a phase --------------------------------------------------------------------------------- */

static uint32_t slot_of(const OptEntry *e, const PlanReduce *r)
{
    return e->m->bodies[r->body].ins[r->ins].lit.slot;
}

/* Those of kernels first: join_uniform makes use of the memory of the rows' results. */
void join_phase(dsopt_optimizer *opt, OptEntry *e, int phase)
{
    const Plan *plan = e->plan;
    for (int scalars = 0; scalars < 2; scalars++)
        for (uint32_t i = 0, n; i < plan->nreduces; i += n) {
            const PlanReduce *r = &plan->reduces[i];
            for (n = 1; i + n < plan->nreduces && slot_of(e, &r[n]) == slot_of(e, r); n++)
                ;
            if (r->phase != phase || (r->from == FROM_SCALARS) != (scalars == 1)) continue;
            Feeders f = {.r = r, .n = n, .op = op_of(e, r)};
            if (rate_is_vector(r->rate))
                join_wide(opt, e, r, f.op);
            else if (r->result.level == LEVEL_TENSOR)
                join_each(e, r, f.op);
            else
                join_coarse(opt, e, &f);
        }
}
