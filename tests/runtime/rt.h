/* rt.h - what the tests of the runtime share: contexts that keep their log, programs from text,
 * tensors in one line.
 *
 *     rt_open(&r, 2);  dsopt_program *p = rt_program(&r, "sgd", NULL);
 *     dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, w, g, 1, (int64_t[]){n});
 *     dsopt_optimizer *o = rt_optimizer(&r, p, &t, 1);  rt_step(&r, o);  rt_close(&r);
 */
#ifndef TESTS_RUNTIME_RT_H
#define TESTS_RUNTIME_RT_H
#include "../check.h"
#include "runtime/dsopt.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct Rt {
    dsopt_context *ctx;
    char log[4096];
    int lines;
} Rt;

static inline void rt_log(void *user, dsopt_log_level level, const char *line)
{
    Rt *r = (Rt *)user;
    (void)level;
    size_t n = strlen(r->log);
    snprintf(r->log + n, sizeof r->log - n, "%s\n", line);
    r->lines++;
}

/* The backend of a test: $DSOPT_TEST_BACKEND, or "c". */
static inline const char *rt_backend(void)
{
    const char *b = getenv("DSOPT_TEST_BACKEND");
    return b ? b : "c";
}

/* `r` must not move while it is open. */
static inline void rt_open_with(Rt *r, const char *backend, const char *isa, int threads)
{
    *r = (Rt){0};
    dsopt_config c = {.size = sizeof c,
                      .backend = backend,
                      .isa = isa,
                      .threads = threads,
                      .log = rt_log,
                      .log_user = r};
    REQUIRE(dsopt_context_create(&c, &r->ctx) == DSOPT_OK, "%s", dsopt_error_message(NULL));
}

static inline void rt_open(Rt *r, int threads)
{
    rt_open_with(r, rt_backend(), NULL, threads);
}

static inline void rt_close(Rt *r)
{
    dsopt_context_destroy(r->ctx);
}

static inline dsopt_program *rt_program(Rt *r, const char *name, const char *defines)
{
    dsopt_program *p;
    dsopt_program_options o = {.size = sizeof o, .defines = defines};
    REQUIRE(dsopt_program_load(r->ctx, name, &o, &p) == DSOPT_OK, "%s: %s", name,
            dsopt_error_message(r->ctx));
    return p;
}

static inline dsopt_program *rt_text(Rt *r, const char *text)
{
    dsopt_program *p;
    REQUIRE(dsopt_program_compile(r->ctx, text, "test.opt", NULL, &p) == DSOPT_OK, "%s",
            dsopt_error_message(r->ctx));
    return p;
}

static inline dsopt_tensor rt_tensor(const char *name, const char *group, dsopt_dtype dtype,
                                     void *p, const void *g, int ndim, const int64_t *shape)
{
    return (dsopt_tensor){.size = sizeof(dsopt_tensor),
                          .name = name,
                          .group = group,
                          .ndim = ndim,
                          .shape = shape,
                          .param = p,
                          .grad = g,
                          .dtype = dtype};
}

/* Creates, and releases the program: the optimizer holds it. */
static inline dsopt_optimizer *rt_optimizer(Rt *r, dsopt_program *p, const dsopt_tensor *t,
                                            size_t n)
{
    dsopt_optimizer *o;
    REQUIRE(dsopt_optimizer_create(r->ctx, p, t, n, &o) == DSOPT_OK, "%s",
            dsopt_error_message(r->ctx));
    dsopt_program_release(p);
    return o;
}

static inline void rt_set(Rt *r, dsopt_optimizer *o, const char *group, const char *path, double v)
{
    REQUIRE(dsopt_set(o, group, path, v) == DSOPT_OK, "%s", dsopt_error_message(r->ctx));
}

/* Accumulate and step; the outcome. */
static inline dsopt_report rt_step(Rt *r, dsopt_optimizer *o)
{
    dsopt_report rep = {.size = sizeof rep};
    REQUIRE(dsopt_accumulate(o, 1) == DSOPT_OK, "%s", dsopt_error_message(r->ctx));
    REQUIRE(dsopt_step(o) == DSOPT_OK, "%s", dsopt_error_message(r->ctx));
    REQUIRE(dsopt_report_read(o, &rep, DSOPT_LATEST) == DSOPT_OK, "%s",
            dsopt_error_message(r->ctx));
    return rep;
}

/* One scalar of a state. */
static inline double rt_state(Rt *r, dsopt_optimizer *o, const char *tensor, const char *path)
{
    size_t i;
    double v;
    REQUIRE(dsopt_state_find(o, tensor, path, &i) == DSOPT_OK, "%s", dsopt_error_message(r->ctx));
    REQUIRE(dsopt_state_read(o, i, DSOPT_F64, &v, 1) == DSOPT_OK, "%s",
            dsopt_error_message(r->ctx));
    return v;
}

/* A call that must fail with `status` and a message that contains `text`. */
#define RT_FAILS(ctx, call, status, text)                                                          \
    do {                                                                                           \
        dsopt_status got_ = (call);                                                                \
        const char *m_ = dsopt_error_message(ctx);                                                 \
        CHECK(got_ == (status), "%s, message '%s'", dsopt_status_name(got_), m_);                  \
        CHECK(strstr(m_, (text)) != NULL, "message is '%s', wanted '%s' in it", m_, (text));       \
    } while (0)

static inline uint16_t rt_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return f != f ? 0x7fc0 : (uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}

static inline float rt_from_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* A deterministic stream of values in (-1, 1). */
static inline float rt_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (float)((double)((int64_t)(z ^ z >> 31) >> 11) * 0x1p-52);
}
#endif
