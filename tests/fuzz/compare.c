/* compare.c - one case on all backends, through the public API: after every step and every run of an
 * entry point the same bits of parameters, states and exports as the interpreter has.
 *
 *   in:  a case
 *   out: CASE_SAME; or what differs: "c avx2, 2 threads: step 1, state one.base.m3 of gamma [7] is
 *        0x1p-3, not 0x1.8p-3"
 *
 * Which NaN a result is, is not specified: all are equal here. A run that fails where the
 * interpreter's fails in the same way, with the same status, is equal, too.
 */
#include "codegen/codegen.h"
#include "rules.h"
#include "tests/check.h"
#include <math.h>
#include <string.h>

bool compare_cc;

typedef struct Side {
    const char *backend, *isa;
    int threads;
    dsopt_context *ctx;
    bool missing;
} Side;
static Side sides[] = {{.backend = "interp", .threads = 1},
                       {.backend = "c", .isa = "sse2", .threads = 1},
                       {.backend = "c", .threads = 2},
                       {.backend = "c", .isa = "avx2", .threads = 1},
                       {.backend = "c", .isa = "avx512", .threads = 2},
                       {.backend = "cc", .threads = 2}};

/* ---- what a run leaves ----------------------------------------------------------------------- */

typedef struct Segment {
    const char *what;
    size_t begin;
} Segment;
typedef struct Trace {
    Arena *a;
    double *v;
    size_t n, cap;
    Segment *segments;
    size_t nsegments, segments_cap;
} Trace;

static void begin_segment(Trace *t, const char *what)
{
    Segment s = {what, t->n};
    ARENA_PUSH(t->a, t->segments, t->nsegments, t->segments_cap, s);
}

static void put(Trace *t, double v)
{
    ARENA_PUSH(t->a, t->v, t->n, t->cap, v);
}

typedef struct Run {
    Arena *a;
    const FuzzCase *c;
    Side *side;
    dsopt_program *program;
    dsopt_optimizer *opt;
    char *p[CASE_TENSORS], *g[CASE_TENSORS], *other[CASE_TENSORS];
    Trace trace;
    const char *broken;
} Run;

static const DType internal[] = {
    [DSOPT_F32] = DT_F32, [DSOPT_F64] = DT_F64, [DSOPT_F16] = DT_F16, [DSOPT_BF16] = DT_BF16};

static int64_t numel(const CaseTensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim; d++) n *= t->shape[d];
    return n;
}

static void record_states(Run *r, const char *when)
{
    Trace *t = &r->trace;
    for (size_t i = 0; i < dsopt_state_count(r->opt); i++) {
        dsopt_state_info info = {.size = sizeof info};
        dsopt_state_info_read(r->opt, i, &info);
        begin_segment(t, arena_printf(r->a, "%s, state %s of %s", when, info.path,
                                      info.tensor < 0 ? "all" : r->c->t[info.tensor].name));
        double *values = ARENA_ARRAY(r->a, double, info.count + 1);
        if (dsopt_state_read(r->opt, i, DSOPT_F64, values, info.count) != DSOPT_OK)
            r->broken = arena_strdup(r->a, dsopt_error_message(r->side->ctx));
        for (int64_t k = 0; k < info.count; k++) put(t, values[k]);
    }
}

static void record(Run *r, const char *when)
{
    Trace *t = &r->trace;
    for (int i = 0; i < r->c->ntensors; i++) {
        const CaseTensor *x = &r->c->t[i];
        begin_segment(t, arena_printf(r->a, "%s, p of %s", when, x->name));
        for (int64_t k = 0; k < numel(x); k++) put(t, elem_get(r->p[i], internal[x->dtype], k));
    }
    record_states(r, when);
    for (size_t i = 0; i < dsopt_export_count(r->opt); i++) {
        dsopt_export_info info = {.size = sizeof info};
        double values[CASE_TENSORS + 8] = {0};
        dsopt_export_info_read(r->opt, i, &info);
        begin_segment(t, arena_printf(r->a, "%s, export %s", when, info.name));
        if (dsopt_export_read(r->opt, i, values, info.count) != DSOPT_OK)
            r->broken = arena_strdup(r->a, dsopt_error_message(r->side->ctx));
        for (int64_t k = 0; k < info.count; k++) put(t, values[k]);
    }
}

/* Whether a call did what it may: what it may not, ends the run. */
static bool went(Run *r, dsopt_status s, const char *what)
{
    begin_segment(&r->trace, what);
    put(&r->trace, s);
    bool may = s == DSOPT_OK || s == DSOPT_WRONG_MODE || s == DSOPT_NO_NEW_GRADS;
    if (s == DSOPT_INVALID_ARGUMENT) /* an entry point of gradients where there are none */
        may = strstr(dsopt_error_message(r->side->ctx), "has a gradient") != NULL;
    if (!may)
        r->broken = arena_printf(r->a, "%s: %s: %s", what, dsopt_status_name(s),
                                 dsopt_error_message(r->side->ctx));
    return !r->broken;
}

/* ---- values ---------------------------------------------------------------------------------- */

static double random_unit(uint64_t *state)
{
    return (double)below(state, 1u << 24) * 0x1p-23 - 1;
}

static void fill(char *at, dsopt_dtype d, int64_t n, double scale, bool special, uint64_t state)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e-45, 3e38, -1e-40};
    for (int64_t i = 0; i < n; i++) {
        double v = scale * random_unit(&state);
        if (special && below(&state, 40) == 0) v = odd[below(&state, FUZZ_COUNT(odd))];
        elem_set(at, internal[d], i, (double)(float)v);
    }
}

static uint32_t decide(const FuzzCase *c, uint64_t step, uint64_t what, uint32_t n)
{
    uint64_t state = c->seed ^ (step * 1000003 + what * 7919);
    below(&state, 2);
    return below(&state, n);
}

/* Some hyperparameters of some groups, where their ranges admit it. */
static void set_hypers(Run *r)
{
    for (size_t i = 0; i < dsopt_hyper_count(r->opt); i++) {
        dsopt_hyper_info info = {.size = sizeof info};
        dsopt_hyper_info_read(r->opt, i, &info);
        uint64_t state = r->c->seed + i;
        if (below(&state, 3) == 0) dsopt_set(r->opt, info.group, info.path, random_unit(&state));
    }
    for (size_t i = 0; i < dsopt_input_count(r->opt); i++)
        dsopt_set_input(r->opt, dsopt_input_name(r->opt, i), 0.7);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static char *buffer(Run *r, int64_t n, int misaligned)
{
    char *at = arena_alloc(r->a, (size_t)n * 4 + 128);
    return at + (64 - (uintptr_t)at % 64) % 64 + misaligned;
}

static bool create(Run *r)
{
    dsopt_tensor t[CASE_TENSORS];
    for (int i = 0; i < r->c->ntensors; i++) {
        const CaseTensor *x = &r->c->t[i];
        int64_t n = numel(x);
        r->p[i] = buffer(r, n, x->misaligned);
        r->g[i] = buffer(r, n, x->misaligned);
        r->other[i] = buffer(r, n, 4);
        fill(r->p[i], x->dtype, n, 1, false, r->c->seed + (uint64_t)i);
        t[i] = (dsopt_tensor){.size = sizeof *t,
                              .name = x->name,
                              .group = x->group,
                              .ndim = x->ndim,
                              .shape = x->shape,
                              .param = r->p[i],
                              .grad = r->g[i],
                              .dtype = x->dtype,
                              .grad_dtype = x->grad};
    }
    return went(r, dsopt_optimizer_create(r->side->ctx, r->program, t, (size_t)r->c->ntensors, &r->opt),
                "create");
}

static void gradients(Run *r, uint64_t step)
{
    for (int i = 0; i < r->c->ntensors; i++) {
        const CaseTensor *x = &r->c->t[i];
        uint64_t state = r->c->seed * 31 + step * 1000 + (uint64_t)i;
        bool special = r->c->special && decide(r->c, step, 99, 2);
        fill(r->g[i], x->grad, numel(x), step == 1 ? 1e-3 : 0.5, special, state);
        fill(r->other[i], x->grad, numel(x), 0.5, special, state + 500);
        bool absent = decide(r->c, step, (uint64_t)i, 5) == 0;
        went(r, dsopt_bind_gradient(r->opt, (size_t)i, absent ? NULL : r->g[i]), "bind");
    }
}

static void entries(Run *r, uint64_t step)
{
    for (size_t e = 0; e < dsopt_program_entry_count(r->program) && !r->broken; e++) {
        const char *name = dsopt_program_entry_name(r->program, e);
        uint32_t how = decide(r->c, step, 200 + e, 4);
        const char *when = arena_printf(r->a, "after step %d, %s", (int)step - 1, name);
        if (how > 1) continue;
        dsopt_status s = dsopt_run_with(r->opt, name, (const void *const *)r->other,
                                        (size_t)r->c->ntensors);
        if (how == 0 || s == DSOPT_INVALID_ARGUMENT) s = dsopt_run(r->opt, name);
        if (went(r, s, when)) record(r, when);
    }
}

static void run(Run *r)
{
    r->trace.a = r->a;
    if (!create(r)) return;
    set_hypers(r);
    for (uint64_t step = 0; step < (uint64_t)r->c->steps && !r->broken; step++) {
        const char *when = arena_printf(r->a, "step %d", (int)step);
        dsopt_report report = {.size = sizeof report};
        gradients(r, step);
        entries(r, step);
        if (!r->broken) went(r, dsopt_accumulate(r->opt, 1), "accumulate");
        if (!r->broken) went(r, dsopt_step(r->opt), when);
        dsopt_report_read(r->opt, &report, DSOPT_LATEST);
        begin_segment(&r->trace, arena_printf(r->a, "%s, its result", when));
        put(&r->trace, report.result);
        record(r, when);
    }
    dsopt_optimizer_destroy(r->opt);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static double finite_values, all_values;

double case_finite_share(void)
{
    return all_values ? finite_values / all_values : 0;
}

static bool open_side(Side *s)
{
    if (s->ctx) return true;
    if (s->missing || (strcmp(s->backend, "cc") == 0 && !compare_cc)) return false;
    dsopt_config config = {.size = sizeof config,
                           .backend = s->backend,
                           .isa = s->isa,
                           .threads = s->threads,
                           .seed = 5};
    if (dsopt_context_create(&config, &s->ctx) == DSOPT_OK) return true;
    printf("not compared: %s\n", dsopt_error_message(NULL));
    s->missing = true;
    return false;
}

void compare_close(void)
{
    for (size_t i = 0; i < FUZZ_COUNT(sides); i++) {
        dsopt_context_destroy(sides[i].ctx);
        sides[i].ctx = NULL;
    }
}

static bool same_value(double x, double y)
{
    return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

/* False, and where it is, if two runs differ. */
static bool same_trace(const Trace *want, const Trace *got, StrBuf *said)
{
    size_t n = want->n < got->n ? want->n : got->n, i = 0;
    while (i < n && same_value(want->v[i], got->v[i])) i++;
    if (i == n && want->n == got->n) return true;
    size_t k = 0;
    while (k + 1 < want->nsegments && want->segments[k + 1].begin <= i) k++;
    sb_printf(said, "%s [%zu] is ", want->segments[k].what, i - want->segments[k].begin);
    sb_printf(said, i < got->n ? "%a" : "not there", i < got->n ? got->v[i] : 0);
    sb_printf(said, i < want->n ? ", not %a" : ", not missing", i < want->n ? want->v[i] : 0);
    return false;
}

static CaseResult compile(const FuzzCase *c, dsopt_program **out, StrBuf *said)
{
    dsopt_program_options o = {.size = sizeof o, .rule = c->rule, .storage = c->storage};
    Side *s = &sides[0];
    REQUIRE(open_side(s), "no interpreter");
    dsopt_status st = dsopt_program_compile(s->ctx, c->text, "case.opt", &o, out);
    if (st == DSOPT_OK) return CASE_SAME;
    sb_printf(said, "%s: %s", dsopt_status_name(st), dsopt_error_message(s->ctx));
    bool refused = st == DSOPT_INVALID_PROGRAM || st == DSOPT_INVALID_ARGUMENT;
    return refused && !strstr(said->text, "internal error") ? CASE_REFUSED : CASE_BROKEN;
}

CaseResult case_compare(Arena *a, const FuzzCase *c, StrBuf *said)
{
    dsopt_program *program = NULL;
    Run runs[FUZZ_COUNT(sides)] = {0};
    sb_puts(said, "");
    CaseResult result = compile(c, &program, said);
    for (size_t i = 0; i < FUZZ_COUNT(sides) && result == CASE_SAME; i++) {
        Run *r = &runs[i];
        if (!open_side(&sides[i])) continue;
        *r = (Run){.a = a, .c = c, .side = &sides[i], .program = program};
        run(r);
        const char *who = arena_printf(a, "%s %s, %d threads", sides[i].backend,
                                       sides[i].isa ? sides[i].isa : "", sides[i].threads);
        if (r->broken) {
            sb_printf(said, "%s: %s", who, r->broken);
            result = CASE_BROKEN;
        } else if (i > 0) {
            StrBuf where = {.arena = a};
            if (!same_trace(&runs[0].trace, &r->trace, &where)) {
                sb_printf(said, "%s: %s", who, where.text);
                result = CASE_DIFFERS;
            }
        }
    }
    for (size_t k = 0; k < runs[0].trace.n; k++) finite_values += isfinite(runs[0].trace.v[k]) != 0;
    all_values += (double)runs[0].trace.n;
    dsopt_program_release(program);
    return result;
}
