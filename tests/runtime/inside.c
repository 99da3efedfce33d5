/* inside.c - what only the inside shows: the floating-point environment of a step, executors that
 * fail, and the fixed tree over tensors in order of their names.
 *
 *   in:  flush-to-zero and round-up set, p = 0, g = 2^-149
 *   out: p = -2^-149 all the same, and both settings are back after the step
 */
#include "rt.h"
#include "runtime/internal.h"
#include <fenv.h>
#include <xmmintrin.h>

static Rt rt;

static void environment(void)
{
    static float p[2][9000], g[9000];
    for (int threads = 1; threads <= 2; threads++) {
        for (int strange = 0; strange < 2; strange++) {
            unsigned before = _mm_getcsr();
            /* FTZ, DAZ, round up, and every exception unmasked. */
            unsigned odd = (before | 0x8040 | 0x4000) & ~0x1f80u & ~0x3fu;
            if (strange) _mm_setcsr(odd);
            rt_open(&rt, threads); /* workers inherit it */
            _mm_setcsr(before);
            for (int i = 0; i < 9000; i++) {
                p[strange][i] = i % 3 ? 0x1p-140f : 1;
                g[i] = i % 2 ? 0x1p-149f : 1e-8f;
            }
            g[7] = INFINITY;
            g[8] = NAN;
            dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p[strange], g, 1, (int64_t[]){9000});
            dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), &t, 1);
            rt_set(&rt, o, NULL, "lr", 1e-3);
            REQUIRE(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
            if (strange) _mm_setcsr(odd);
            dsopt_status st = dsopt_step(o);
            unsigned after = _mm_getcsr();
            _mm_setcsr(before);
            CHECK(st == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
            if (strange) CHECK(after == odd, "MXCSR is %x, was %x", after, odd);
            dsopt_optimizer_destroy(o);
            rt_close(&rt);
        }
        for (int i = 0; i < 9000; i++)
            CHECK(memcmp(&p[0][i], &p[1][i], 4) == 0 || (isnan(p[0][i]) && isnan(p[1][i])),
                  "element %d: %a, %a", i, (double)p[0][i], (double)p[1][i]);
    }
}

/* ---- executors that fail --------------------------------------------------------------------- */

static ExecOutcome fails_early(dsopt_optimizer *opt)
{
    (void)opt;
    return EXEC_NOTHING_WRITTEN;
}

static ExecOutcome fails_late(dsopt_optimizer *opt)
{
    (void)opt;
    return EXEC_HALF_DONE;
}

static void poison(void)
{
    float p[2] = {1, 2}, g[2] = {1, 1};
    double v;
    size_t i;
    rt_open(&rt, 1);
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), &t, 1);
    ExecOutcome (*real)(dsopt_optimizer *) = o->exec;
    o->exec = fails_early;
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_OUT_OF_MEMORY, "memory");
    o->exec = real;
    CHECK(dsopt_step(o) == DSOPT_OK && p[0] != 1, "a step that wrote nothing can be tried again");
    o->exec = fails_late;
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_POISONED, "can only be destroyed");
    o->exec = real;
    dsopt_report r = {.size = sizeof r};
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_POISONED, "can only be destroyed");
    RT_FAILS(rt.ctx, dsopt_accumulate(o, 1), DSOPT_POISONED, "can only be destroyed");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "lr", 1), DSOPT_POISONED, "can only be destroyed");
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "lr", &v), DSOPT_POISONED, "can only be destroyed");
    RT_FAILS(rt.ctx, dsopt_bind_gradient(o, 0, NULL), DSOPT_POISONED, "can only be destroyed");
    RT_FAILS(rt.ctx, dsopt_report_read(o, &r, DSOPT_LATEST), DSOPT_POISONED,
             "can only be destroyed");
    RT_FAILS(rt.ctx, dsopt_state_find(o, "w", "m", &i), DSOPT_POISONED, "can only be destroyed");
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

/* ---- the tree over tensors ------------------------------------------------------------------- */

/* One value per tensor, so that the norm's tree is over tensors alone; the order in which they are
 * given does not matter. */
static void tree_by_names(void)
{
    enum { N = 37 };
    static const char text[] = "optimizer x {\n hyper lr = 0\n n = sum[all](g)\n m = "
                               "sum[all](sum(g))\n k = count[all](g > 0)\n"
                               " p -= lr * g * (n + m + k)\n export n\n export m\n export k\n}\n";
    char names[N][8];
    float p[N], g[N];
    double leaves[N];
    unsigned char present[N];
    uint64_t seed = 3;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "t%02d", i);
        p[i] = 0;
        g[i] = ldexpf(rt_random(&seed), i % 7 * 10 - 30);
    }
    for (int order = 0; order < 3; order++) {
        dsopt_tensor t[N];
        for (int i = 0; i < N; i++) {
            int at = order == 0 ? i : order == 1 ? N - 1 - i : i * 17 % N;
            bool none = at % 5 == 2;
            t[i] = rt_tensor(names[at], at % 2 ? "odd" : "even", DSOPT_F32, &p[at],
                             none ? NULL : &g[at], 0, NULL);
            leaves[at] = g[at];
            present[at] = !none;
        }
        double n = 0, m = 0, k = 0, count = 0;
        for (int i = 0; i < N; i++) count += present[i] && g[i] > 0;
        rt_open(&rt, 2);
        dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, text), t, N);
        rt_step(&rt, o);
        CHECK(dsopt_report_export(o, "n", &n) == DSOPT_OK &&
                  dsopt_report_export(o, "m", &m) == DSOPT_OK &&
                  dsopt_report_export(o, "k", &k) == DSOPT_OK,
              "%s", dsopt_error_message(rt.ctx));
        double tree = reduce_tree(RED_SUM, leaves, N, 1, present),
               vector = reduce_vector(RED_SUM, leaves, NULL, N, present);
        CHECK(n == tree, "order %d: %a, the tree gives %a", order, n, tree);
        CHECK(m == vector, "order %d: %a, the vector gives %a", order, m, vector);
        CHECK(k == count, "order %d: %g of %g", order, k, count);
        dsopt_optimizer_destroy(o);
        rt_close(&rt);
    }
}

/* Programs are built once, whoever asks. */
static void cache(void)
{
    float p[2] = {1, 2}, q[2] = {1, 2};
    rt_open(&rt, 1);
    dsopt_program *prog = rt_program(&rt, "adamw", NULL);
    dsopt_tensor t[2] = {rt_tensor("w", NULL, DSOPT_F32, p, NULL, 1, (int64_t[]){2}),
                         rt_tensor("v", NULL, DSOPT_F32, q, NULL, 1, (int64_t[]){2})};
    dsopt_optimizer *a, *b;
    Rt other;
    rt_open(&other, 1);
    REQUIRE(dsopt_optimizer_create(rt.ctx, prog, t, 2, &a) == DSOPT_OK, "%s",
            dsopt_error_message(rt.ctx));
    REQUIRE(dsopt_optimizer_create(other.ctx, prog, t, 1, &b) == DSOPT_OK, "%s",
            dsopt_error_message(other.ctx));
    if (a->plan) {
        CHECK(a->nvariants == 1 && a->variants[0].built == b->variants[0].built &&
                  a->programs == b->programs,
              "built twice");
        CHECK(prog->modules[0].nvariants == 1 && !prog->modules[1].m, "more was made than needed");
    }
    dsopt_optimizer_destroy(a);
    dsopt_optimizer_destroy(b);
    dsopt_program_release(prog);
    rt_close(&other);
    rt_close(&rt);
}

int main(void)
{
    environment();
    poison();
    tree_by_names();
    cache();
    return check_done();
}
