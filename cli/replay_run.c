/* replay_run.c - runs a rule over recorded gradients through the C API; see replay.h. */
#include "replay.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Run {
    Arena *arena;
    const Vec *v;
    const ReplaySetup *s;
    StrBuf *err;
    bool f64;
    void **param; /* per tensor, in the precision of the run */
    void **grad;
    dsopt_context *ctx;
    dsopt_program *prog;
    dsopt_optimizer *opt;
} Run;

static bool api(Run *r, dsopt_status st, const char *doing)
{
    if (st == DSOPT_OK) return true;
    const char *why = dsopt_error_message(r->ctx);
    sb_printf(r->err, "%s: %s", doing, why && *why ? why : dsopt_status_text(st));
    return false;
}

static void put(const Run *r, void *dst, const double *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (r->f64)
            ((double *)dst)[i] = src[i];
        else
            ((float *)dst)[i] = (float)src[i];
    }
}

static double *get(const Run *r, const void *src, int64_t n)
{
    double *out = ARENA_ARRAY(r->arena, double, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = r->f64 ? ((const double *)src)[i] : ((const float *)src)[i];
    return out;
}

static bool create(Run *r)
{
    const ReplaySetup *s = r->s;
    const Vec *v = r->v;
    dsopt_config config = {.size = sizeof config,
                           .threads = s->threads ? s->threads : 1,
                           .backend = s->backend,
                           .isa = s->isa};
    if (!api(r, dsopt_context_create(&config, &r->ctx), "context")) return false;
    dsopt_program_options po = {.size = sizeof po,
                                .defines = s->defines,
                                .include_dirs = s->include_dirs,
                                .rule = s->which,
                                .compute = r->f64 ? "f64" : NULL};
    dsopt_status st = s->text ? dsopt_program_compile(r->ctx, s->text, "<replay>", &po, &r->prog)
                              : dsopt_program_load(r->ctx, s->rule, &po, &r->prog);
    if (!api(r, st, s->rule)) return false;
    dsopt_tensor *t = ARENA_ARRAY(r->arena, dsopt_tensor, v->ntensors);
    r->param = ARENA_ARRAY(r->arena, void *, v->ntensors);
    r->grad = ARENA_ARRAY(r->arena, void *, v->ntensors);
    for (size_t i = 0; i < v->ntensors; i++) {
        const VecTensor *x = &v->tensors[i];
        r->param[i] = ARENA_ARRAY(r->arena, double, x->numel + 1);
        r->grad[i] = ARENA_ARRAY(r->arena, double, x->numel + 1);
        put(r, r->param[i], x->p[0], x->numel);
        dsopt_dtype d = r->f64 ? DSOPT_F64 : DSOPT_F32;
        t[i] = (dsopt_tensor){.size = sizeof *t,
                              .name = vec_given_name(v, x),
                              .ndim = x->ndim,
                              .shape = x->shape,
                              .param = r->param[i],
                              .grad = r->grad[i],
                              .dtype = d,
                              .grad_dtype = d};
    }
    return api(r, dsopt_optimizer_create(r->ctx, r->prog, t, v->ntensors, &r->opt), "optimizer");
}

static bool set_hypers(Run *r)
{
    for (size_t i = 0; i < r->s->nhypers; i++) {
        const ReplayHyper *h = &r->s->hypers[i];
        dsopt_status st = dsopt_set(r->opt, NULL, h->name, h->value);
        if (st == DSOPT_UNKNOWN_NAME && h->if_present) continue;
        if (!api(r, st, arena_printf(r->arena, "setting %s", h->name))) return false;
    }
    return true;
}

/* "lr_7" and "beta1_7" of the file set lr and b1 before step 7, "value_7" the input loss. */
static bool set_scheduled(Run *r, int step)
{
    if (r->v->is_schedule) return true;
    static const char *const scheduled[][2] = {{"lr", "lr"}, {"beta1", "b1"}, {"beta2", "b2"}};
    for (size_t i = 0; i < sizeof scheduled / sizeof *scheduled; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s_%d", scheduled[i][0], step);
        const VecScalar *x = vec_scalar(r->v, name);
        if (x && !api(r, dsopt_set(r->opt, NULL, scheduled[i][1], x->value), name)) return false;
    }
    const VecScalar *loss = vec_scalar(r->v, arena_printf(r->arena, "value_%d", step));
    return !loss || api(r, dsopt_set_input(r->opt, "loss", loss->value), "input loss");
}

static bool run_step(Run *r, int step, ReplayResult *out)
{
    for (size_t i = 0; i < r->v->ntensors; i++) {
        const VecTensor *x = &r->v->tensors[i];
        if (x->g[step]) put(r, r->grad[i], x->g[step], x->numel);
        if (!api(r, dsopt_bind_gradient(r->opt, i, x->g[step] ? r->grad[i] : NULL), x->name))
            return false;
    }
    const char *what = arena_printf(r->arena, "step %d", step);
    if (!set_scheduled(r, step) || !api(r, dsopt_accumulate(r->opt, 1), what) ||
        !api(r, dsopt_step(r->opt), what))
        return false;
    for (size_t i = 0; i < r->v->ntensors; i++)
        out->p[i][step] = get(r, r->param[i], r->v->tensors[i].numel);
    out->grad_norm[step] = NAN;
    dsopt_report report = {.size = sizeof report};
    if (!api(r, dsopt_report_read(r->opt, &report, DSOPT_LATEST), what)) return false;
    out->grad_norm[step] = report.grad_norm;
    return true;
}

static bool has_state(Run *r, const char *tensor, const char *name, int64_t count)
{
    size_t at;
    dsopt_state_info info = {.size = sizeof info};
    return dsopt_state_find(r->opt, tensor, name, &at) == DSOPT_OK &&
           dsopt_state_info_read(r->opt, at, &info) == DSOPT_OK && info.count == count;
}

static bool read_global(Run *r, const ReplayState *s, double *out)
{
    size_t at;
    const char *what = arena_printf(r->arena, "state %s", s->ours);
    return api(r, dsopt_state_find(r->opt, NULL, s->ours, &at), what) &&
           api(r, dsopt_state_read(r->opt, at, DSOPT_F64, out, 1), what);
}

static bool read_states(Run *r, ReplayResult *out)
{
    for (size_t k = 0; k < r->s->nstates; k++)
        if (r->s->states[k].global && !read_global(r, &r->s->states[k], &out->global[k]))
            return false;
    for (size_t i = 0; i < r->v->ntensors; i++) {
        const VecTensor *x = &r->v->tensors[i];
        for (size_t k = 0; k < r->s->nstates; k++) {
            const VecState *theirs = NULL;
            for (size_t j = 0; j < x->nstates; j++)
                if (!strcmp(x->states[j].slot, r->s->states[k].theirs)) theirs = &x->states[j];
            size_t at;
            if (!theirs || !strncmp(r->s->states[k].ours, "on ", 3)) continue;
            if (r->s->states[k].if_present &&
                !has_state(r, vec_given_name(r->v, x), r->s->states[k].ours, theirs->n))
                continue;
            const char *what =
                arena_printf(r->arena, "state %s of %s", r->s->states[k].ours, x->name);
            if (!api(r,
                     dsopt_state_find(r->opt, vec_given_name(r->v, x), r->s->states[k].ours, &at),
                     what))
                return false;
            double *v = ARENA_ARRAY(r->arena, double, theirs->n);
            if (!api(r, dsopt_state_read(r->opt, at, DSOPT_F64, v, theirs->n), what)) return false;
            for (int64_t e = 0; r->s->states[k].negated && e < theirs->n; e++) v[e] = -v[e];
            out->state[i][k] = v;
        }
    }
    return true;
}

/* A state that is "on ENTRY" of ours is p after that entry point, which is run last. */
static bool run_entries(Run *r, ReplayResult *out)
{
    for (size_t k = 0; k < r->s->nstates; k++) {
        const ReplayState *s = &r->s->states[k];
        if (strncmp(s->ours, "on ", 3)) continue;
        if (!api(r, dsopt_run(r->opt, s->ours + 3), s->ours)) return false;
        for (size_t i = 0; i < r->v->ntensors; i++)
            for (size_t j = 0; j < r->v->tensors[i].nstates; j++)
                if (!strcmp(r->v->tensors[i].states[j].slot, s->theirs))
                    out->state[i][k] = get(r, r->param[i], r->v->tensors[i].numel);
    }
    return true;
}

bool replay_run(Arena *a, const Vec *v, const ReplaySetup *s, ReplayResult *out, StrBuf *err)
{
    Run r = {
        .arena = a, .v = v, .s = s, .err = err, .f64 = s->compute && !strcmp(s->compute, "f64")};
    out->p = ARENA_ARRAY(a, double **, v->ntensors);
    out->state = ARENA_ARRAY(a, double **, v->ntensors);
    out->grad_norm = ARENA_ARRAY(a, double, v->steps + 1);
    out->global = ARENA_ARRAY(a, double, s->nstates + 1);
    for (size_t i = 0; i < v->ntensors; i++) {
        out->p[i] = ARENA_ARRAY(a, double *, v->steps + 1);
        out->p[i][0] = v->tensors[i].p[0];
        out->state[i] = ARENA_ARRAY(a, double *, s->nstates + 1);
    }
    bool ok = create(&r) && set_hypers(&r);
    for (int t = 1; ok && t <= v->steps; t++) ok = run_step(&r, t, out);
    ok = ok && read_states(&r, out) && run_entries(&r, out);
    dsopt_optimizer_destroy(r.opt);
    dsopt_program_release(r.prog);
    dsopt_context_destroy(r.ctx);
    return ok;
}
