/* exec.c - what happens inside a step, or a run of an entry point: the plan executor, and the
 * interpreter behind the same door.
 *
 * Requires up-to-date tables (tables_update) and at least one tensor that takes part. The plan
 * executor runs, phase by phase, scalar programs on the calling thread, programs of vectors and
 * kernels over rows on the pool, and joins partial results in the fixed tree (join.c); then the
 * commit programs. What a program computes for all tensors, or for a group, it computes for those
 * that run its body; the first body of them stores it. It allocates nothing and cannot fail. Guards
 * decide every store, so that a skipped step runs through and moves nothing.
 *
 *     LAMB: phase 0: rows 0 … 99 | 100 … 199 -> partial -> norm; phases 1, 2;
 *           commit t, s, grad_norm
 */
#include "internal.h"

/* ---- scalar programs ------------------------------------------------------------------------- */

static void run_groups(dsopt_optimizer *opt, OptEntry *e, DsScalarFn fn, uint32_t body, bool commit)
{
    for (uint32_t g = 0; g < opt->ngroups; g++)
        if (commit ? e->group_first[g] == body : e->bodies[body].groups[g])
            fn(opt->global, opt->group[g], NULL, NULL);
}

static void run_program(dsopt_optimizer *opt, OptEntry *e, DsScalarFn fn, const ScalarProgram *p,
                        bool commit)
{
    const BodyRun *b = &e->bodies[p->body];
    if (b->begin == b->end) return;
    switch (p->level) {
    case LEVEL_GLOBAL:
        if (!commit || e->first_body == p->body) fn(opt->global, NULL, NULL, NULL);
        break;
    case LEVEL_GROUP: run_groups(opt, e, fn, p->body, commit); break;
    case LEVEL_CLASS:
        for (size_t c = 0; c < e->nclasses; c++) {
            uint32_t rep = e->class_rep[c];
            double **u = e->tensor_rows[rep].u;
            if (e->x.tensors[rep].body == p->body)
                fn(opt->global, u[LEVEL_GROUP], u[LEVEL_CLASS], NULL);
        }
        break;
    default:
        for (size_t a = b->begin; a < b->end; a++) {
            double **u = e->tensor_rows[e->active[a]].u;
            fn(opt->global, u[LEVEL_GROUP], u[LEVEL_CLASS], u[LEVEL_TENSOR]);
        }
        break;
    }
}

/* ---- programs of vectors --------------------------------------------------------------------- */

enum { VECTOR_ROWS_ALONE = 8 }; /* so few are not worth waking anyone */

typedef struct VectorSweep {
    DsVectorFn fn;
    DsArgs args;
    size_t end, batch;
    atomic_size_t next;
} VectorSweep;

static void vector_job(void *arg, int worker, void *scratch)
{
    (void)worker, (void)scratch;
    VectorSweep *s = arg;
    unsigned fp = fpenv_enter();
    for (size_t r; (r = atomic_fetch_add(&s->next, s->batch)) < s->end;)
        s->fn(&s->args, (int64_t)r, (int64_t)(r + s->batch < s->end ? r + s->batch : s->end));
    fpenv_leave(fp);
}

static void run_vectors(dsopt_optimizer *opt, OptEntry *e, DsVectorFn fn, const VectorProgram *p)
{
    const BodyRun *b = &e->bodies[p->body];
    VectorKind k = vector_kind(p->rate);
    size_t n = b->vector_end[k] - b->vector_begin[k];
    VectorSweep s = {.fn = fn,
                     .args = {.rows = e->vector_rows, .tensors = e->tensor_rows},
                     .end = b->vector_end[k],
                     .batch = n / 64 + 1};
    atomic_init(&s.next, b->vector_begin[k]);
    if (n == 0) return;
    if (n <= VECTOR_ROWS_ALONE)
        fn(&s.args, (int64_t)b->vector_begin[k], (int64_t)b->vector_end[k]);
    else
        pool_run(opt->ctx->pool, pool_threads(opt->ctx->pool), e->brief, vector_job, &s);
}

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct Sweep {
    OptEntry *e;
    int phase;
    DsArgs args;
} Sweep;

static void run_rows(const Sweep *s, size_t begin, size_t end, void *scratch)
{
    const OptEntry *e = s->e;
    for (size_t v = 0; v < e->nvariants; v++) {
        const OptVariant *ov = &e->variants[v];
        size_t b = begin > ov->row_begin ? begin : ov->row_begin,
               last = end < ov->row_end ? end : ov->row_end;
        int k = ov->kernel_of_phase[s->phase];
        if (b < last && k >= 0)
            ov->built->code.kernels[k](&s->args, (int64_t)b, (int64_t)last, scratch);
    }
}

/* Own share first, then what others have left. */
static void sweep_job(void *arg, int worker, void *scratch)
{
    const Sweep *s = arg;
    unsigned fp = fpenv_enter();
    int nshares = s->e->nshares;
    for (int i = 0; i < nshares; i++) {
        Share *share = &s->e->shares[(worker + i) % nshares];
        for (size_t r; (r = atomic_fetch_add_explicit(&share->next, share->batch,
                                                      memory_order_relaxed)) < share->end;) {
            size_t end = r + share->batch < share->end ? r + share->batch : share->end;
            run_rows(s, r, end, scratch);
        }
    }
    fpenv_leave(fp);
}

static bool phase_has_kernels(const OptEntry *e, int phase)
{
    for (size_t v = 0; v < e->nvariants; v++)
        if (e->variants[v].kernel_of_phase[phase] >= 0 &&
            e->variants[v].row_begin < e->variants[v].row_end)
            return true;
    return false;
}

static void run_kernels(dsopt_optimizer *opt, OptEntry *e, int phase)
{
    if (!phase_has_kernels(e, phase)) return;
    Sweep s = {.e = e,
               .phase = phase,
               .args = {.rows = e->rows,
                        .tensors = e->tensor_rows,
                        .partial = e->partial,
                        .npartial = e->npartial[phase]}};
    if (e->nshares == 1) {
        run_rows(&s, 0, e->nrows, pool_scratch(opt->ctx->pool, 0));
        return;
    }
    for (int w = 0; w < e->nshares; w++) {
        size_t rows = e->split[w + 1] - e->split[w], batch = rows / 16;
        e->shares[w].end = e->split[w + 1];
        e->shares[w].batch = batch < 1 ? 1 : batch > 32 ? 32 : batch;
        atomic_store_explicit(&e->shares[w].next, e->split[w], memory_order_relaxed);
    }
    pool_run(opt->ctx->pool, e->nshares, e->brief, sweep_job, &s);
}

/* ---- executors ------------------------------------------------------------------------------- */

ExecOutcome exec_plan(dsopt_optimizer *opt, OptEntry *e)
{
    const Plan *plan = e->plan;
    const BuiltScalars *code = &e->programs->code;
    unsigned fp = fpenv_enter();
    uint32_t next = 0, vector = 0;
    for (int phase = 0; phase <= plan->nphases; phase++) {
        for (; next < plan->nprograms && plan->programs[next].phase == phase; next++)
            run_program(opt, e, code->programs[next], &plan->programs[next], false);
        for (; vector < plan->nvprograms && plan->vprograms[vector].phase == phase; vector++)
            run_vectors(opt, e, code->vprograms[vector], &plan->vprograms[vector]);
        run_kernels(opt, e, phase);
        join_phase(opt, e, phase);
    }
    for (uint32_t i = 0; i < plan->nvcommit; i++)
        run_vectors(opt, e, code->vcommit[i], &plan->vcommit[i]);
    for (uint32_t i = 0; i < plan->ncommit; i++)
        run_program(opt, e, code->commit[i], &plan->commit[i], true);
    fpenv_leave(fp);
    return EXEC_DONE;
}

ExecOutcome exec_interp(dsopt_optimizer *opt, OptEntry *e)
{
    (void)opt;
    unsigned fp = fpenv_enter();
    bool done = interp_step(e->m, &e->x);
    fpenv_leave(fp);
    return done ? EXEC_DONE : EXEC_NOTHING_WRITTEN;
}
