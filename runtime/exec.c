/* exec.c - what happens inside a step: the plan executor, and the interpreter behind the same door.
 *
 * Requires up-to-date tables (tables_update) and at least one tensor that takes part. The plan
 * executor runs, phase by phase, scalar programs on the calling thread, kernels over rows on the
 * pool, and joins partial results in the fixed tree; then the commit programs. It allocates nothing
 * and cannot fail. Guards decide every store, so that a skipped step runs through and moves
 * nothing.
 *
 *     LAMB: phase 0: rows 0 … 99 | 100 … 199 -> partial -> norm; phases 1, 2;
 *           commit t, s, grad_norm
 */
#include "internal.h"

/* ---- scalar programs ------------------------------------------------------------------------- */

static void run_program(dsopt_optimizer *opt, DsScalarFn fn, Level level)
{
    double *global = opt->x.global;
    switch (level) {
    case LEVEL_GLOBAL: fn(global, NULL, NULL, NULL); break;
    case LEVEL_GROUP:
        for (uint32_t g = 0; g < opt->ngroups; g++)
            if (opt->groups[g].active) fn(global, opt->groups[g].block, NULL, NULL);
        break;
    case LEVEL_CLASS:
        for (size_t c = 0; c < opt->nclasses; c++) {
            double **u = opt->tensor_rows[opt->class_rep[c]].u;
            fn(global, u[LEVEL_GROUP], u[LEVEL_CLASS], NULL);
        }
        break;
    default:
        for (size_t a = 0; a < opt->nactive; a++) {
            double **u = opt->tensor_rows[opt->active[a]].u;
            fn(global, u[LEVEL_GROUP], u[LEVEL_CLASS], u[LEVEL_TENSOR]);
        }
        break;
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct Sweep {
    dsopt_optimizer *opt;
    int phase;
    DsArgs args;
} Sweep;

static void run_rows(const Sweep *s, size_t begin, size_t end, void *scratch)
{
    const dsopt_optimizer *opt = s->opt;
    for (size_t v = 0; v < opt->nvariants; v++) {
        const OptVariant *ov = &opt->variants[v];
        size_t b = begin > ov->row_begin ? begin : ov->row_begin,
               e = end < ov->row_end ? end : ov->row_end;
        int k = ov->kernel_of_phase[s->phase];
        if (b < e && k >= 0) ov->built->code.kernels[k](&s->args, (int64_t)b, (int64_t)e, scratch);
    }
}

/* Own share first, then what others have left. */
static void sweep_job(void *arg, int worker, void *scratch)
{
    const Sweep *s = arg;
    unsigned fp = fpenv_enter();
    int nshares = s->opt->nshares;
    for (int i = 0; i < nshares; i++) {
        Share *share = &s->opt->shares[(worker + i) % nshares];
        for (size_t r; (r = atomic_fetch_add_explicit(&share->next, share->batch,
                                                      memory_order_relaxed)) < share->end;) {
            size_t end = r + share->batch < share->end ? r + share->batch : share->end;
            run_rows(s, r, end, scratch);
        }
    }
    fpenv_leave(fp);
}

static bool phase_has_kernels(const dsopt_optimizer *opt, int phase)
{
    for (size_t v = 0; v < opt->nvariants; v++)
        if (opt->variants[v].kernel_of_phase[phase] >= 0 &&
            opt->variants[v].row_begin < opt->variants[v].row_end)
            return true;
    return false;
}

static void run_kernels(dsopt_optimizer *opt, int phase)
{
    if (!phase_has_kernels(opt, phase)) return;
    Sweep s = {.opt = opt,
               .phase = phase,
               .args = {.rows = opt->rows,
                        .tensors = opt->tensor_rows,
                        .partial = opt->partial,
                        .npartial = opt->npartial[phase]}};
    if (opt->nshares == 1) {
        run_rows(&s, 0, opt->nrows, pool_scratch(opt->ctx->pool, 0));
        return;
    }
    for (int w = 0; w < opt->nshares; w++) {
        size_t rows = opt->split[w + 1] - opt->split[w], batch = rows / 16;
        opt->shares[w].end = opt->split[w + 1];
        opt->shares[w].batch = batch < 1 ? 1 : batch > 32 ? 32 : batch;
        atomic_store_explicit(&opt->shares[w].next, opt->split[w], memory_order_relaxed);
    }
    pool_run(opt->ctx->pool, opt->nshares, opt->brief, sweep_job, &s);
}

/* ---- reductions ------------------------------------------------------------------------------ */

static const double *place_of(const dsopt_optimizer *opt, uint32_t live, Place p)
{
    return &opt->tensor_rows[live].u[p.level][p.index];
}

static bool takes_part(const dsopt_optimizer *opt, uint32_t live, const PlanReduce *r)
{
    return r->guard.level == LEVEL_NONE || *place_of(opt, live, r->guard) != 0;
}

static double join_rows(const dsopt_optimizer *opt, const LiveTensor *l, const PlanReduce *r,
                        ReduceOp op)
{
    size_t stride = (size_t)opt->npartial[r->phase];
    const double *v = opt->partial + l->row * stride + r->partial;
    return l->nrows == 1 ? *v : reduce_tree(op, v, l->nrows, stride, NULL);
}

/* Per tensor: over its rows. Global: over the tensors too, in byte order of their names, those that
 * take no part missing. */
static void join_kernel(dsopt_optimizer *opt, const PlanReduce *r, ReduceOp op)
{
    if (r->result.level == LEVEL_TENSOR) {
        for (size_t a = 0; a < opt->nactive; a++) {
            uint32_t i = opt->active[a];
            bool in = takes_part(opt, i, r);
            opt->tensor_rows[i].u[LEVEL_TENSOR][r->result.index] =
                in ? join_rows(opt, &opt->live[i], r, op) : reduce_identity(op);
        }
        return;
    }
    for (size_t k = 0; k < opt->x.ntensors; k++) {
        uint32_t i = opt->by_rank[k];
        opt->present[k] = opt->x.tensors[i].active && takes_part(opt, i, r);
        if (opt->present[k]) opt->roots[k] = join_rows(opt, &opt->live[i], r, op);
    }
    opt->x.global[r->result.index] = reduce_tree(op, opt->roots, opt->x.ntensors, 1, opt->present);
}

/* One value per tensor: a vector over the tensors in byte order of names, reduced as a tensor of
 * that length is. */
static void join_scalars(dsopt_optimizer *opt, const PlanReduce *r, ReduceOp op)
{
    size_t n = opt->x.ntensors;
    double *x = opt->roots, *y = r->arg2.level == LEVEL_NONE ? NULL : opt->roots + n;
    for (size_t k = 0; k < n; k++) {
        uint32_t i = opt->by_rank[k];
        opt->present[k] = opt->x.tensors[i].active && takes_part(opt, i, r);
        if (!opt->present[k]) continue;
        x[k] = *place_of(opt, i, r->arg);
        if (y) y[k] = *place_of(opt, i, r->arg2);
    }
    opt->x.global[r->result.index] = reduce_vector(op, x, y, n, opt->present);
}

/* A value that is the same for all elements of a tensor, reduced over them. */
static void join_uniform(dsopt_optimizer *opt, const PlanReduce *r, ReduceOp op)
{
    for (size_t a = 0; a < opt->nactive; a++) {
        uint32_t i = opt->active[a];
        double x[DS_CHUNK], y[DS_CHUNK], *chunk = opt->partial;
        double vx = *place_of(opt, i, r->arg),
               vy = r->arg2.level == LEVEL_NONE ? 0 : *place_of(opt, i, r->arg2);
        for (int k = 0; k < DS_CHUNK; k++) {
            x[k] = vx;
            y[k] = vy;
        }
        int64_t numel = opt->x.tensors[i].numel;
        size_t n = opt->live[i].nrows;
        double whole = n > 1 ? reduce_chunk(op, x, y, DS_CHUNK, NULL) : 0;
        for (size_t c = 0; c + 1 < n; c++) chunk[c] = whole;
        chunk[n - 1] = reduce_chunk(op, x, y, (size_t)(numel - (int64_t)(n - 1) * DS_CHUNK), NULL);
        opt->tensor_rows[i].u[LEVEL_TENSOR][r->result.index] =
            takes_part(opt, i, r) ? reduce_tree(op, chunk, n, 1, NULL) : reduce_identity(op);
    }
}

/* Those of kernels first: join_uniform makes use of the memory of the rows' results. */
static void join_phase(dsopt_optimizer *opt, int phase)
{
    for (int scalars = 0; scalars < 2; scalars++) {
        for (uint32_t i = 0; i < opt->plan->nreduces; i++) {
            const PlanReduce *r = &opt->plan->reduces[i];
            if (r->phase != phase || r->of_scalars != (scalars == 1)) continue;
            ReduceOp op = (ReduceOp)(opt->m->bodies[r->body].ins[r->ins].op - IR_RED);
            if (!r->of_scalars)
                join_kernel(opt, r, op);
            else if (r->result.level == LEVEL_TENSOR)
                join_uniform(opt, r, op);
            else
                join_scalars(opt, r, op);
        }
    }
}

/* ---- executors ------------------------------------------------------------------------------- */

ExecOutcome exec_plan(dsopt_optimizer *opt)
{
    const Plan *plan = opt->plan;
    unsigned fp = fpenv_enter();
    uint32_t next = 0;
    for (int phase = 0; phase <= plan->nphases; phase++) {
        for (; next < plan->nprograms && plan->programs[next].phase == phase; next++)
            run_program(opt, opt->programs->code.programs[next], plan->programs[next].level);
        run_kernels(opt, phase);
        join_phase(opt, phase);
    }
    for (uint32_t i = 0; i < plan->ncommit; i++)
        run_program(opt, opt->programs->code.commit[i], plan->commit[i].level);
    fpenv_leave(fp);
    return EXEC_DONE;
}

ExecOutcome exec_interp(dsopt_optimizer *opt)
{
    unsigned fp = fpenv_enter();
    bool done = interp_step(opt->m, &opt->x);
    fpenv_leave(fp);
    return done ? EXEC_DONE : EXEC_NOTHING_WRITTEN;
}
