/* inside.c - what only the inside shows: the floating-point environment of a step, executors that
 * fail, and the fixed tree over tensors in order of their names.
 *
 *   in:  flush-to-zero and round-up set, p = 0, g = 2^-149
 *   out: p = -2^-149 all the same, and both settings are back after the step
 */
#include "rt.h"
#include "runtime/internal.h"
#include <fenv.h>
#include <locale.h>
#include <stdlib.h>
#include <unistd.h>
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

/* ---- calls that compute outside of a step ---------------------------------------------------- */

/* Constants that are folded, options, initial values, a default of others, small numbers in and
 * out: everything but the step itself runs in `strange` surroundings. */
static void outside_run(bool strange, double out[12])
{
    static const char text[] = "optimizer o {\n"
                               "  hyper lr = 0.1, tiny = 1e-310 in (0, inf), c = 1, d = c / 3\n"
                               "  state m = 1e-40, k: tensor = 1e-310 * 3\n"
                               "  m := m + g * (1e-20 * 1e-20) + (0.1 + 0.2) * lr\n"
                               "  k := k + tiny + d\n"
                               "  export k\n"
                               "  p -= m / 3 + lr * 1e-45 + exp(-0.3) * g + c\n}\n";
    unsigned csr = _mm_getcsr();
    float p[3] = {0, 1, 1e-40f}, g[3] = {1e-3f, 1, 1e-40f}, narrow[3] = {1e-41f, 0x1p-149f, 0.1f};
    double wide[3] = {0};
    size_t at = 0;
    memset(out, 0, 12 * sizeof *out);
    dsopt_program *prog = NULL;
    dsopt_optimizer *o = NULL;
    dsopt_program_options options = {.size = sizeof options, .defines = "c=0.3"};
    rt_open(&rt, 1);
    if (strange) {
        fesetround(FE_UPWARD);
        _mm_setcsr(_mm_getcsr() | 0x8040); /* FTZ and DAZ, as -ffast-math sets them */
    }
    unsigned odd = _mm_getcsr();
    dsopt_status st = dsopt_program_compile(rt.ctx, text, "o.opt", &options, &prog);
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){3});
    if (!st) st = dsopt_optimizer_create(rt.ctx, prog, &t, 1, &o);
    if (!st) st = dsopt_set(o, NULL, "tiny", 0x1p-1070);
    if (!st) st = dsopt_get(o, NULL, "tiny", &out[0]);
    if (!st) st = dsopt_accumulate(o, 1);
    if (!st) st = dsopt_step(o);
    if (!st) st = dsopt_state_find(o, "w", "m", &at);
    if (!st) st = dsopt_state_read(o, at, DSOPT_F64, wide, 3);
    for (int i = 0; i < 3; i++) out[1 + i] = wide[i];
    if (!st) st = dsopt_state_write(o, at, DSOPT_F32, narrow, 3);
    if (!st) st = dsopt_state_read(o, at, DSOPT_F64, &out[4], 3);
    if (!st) st = dsopt_state_write(o, at, DSOPT_F64, wide, 3);
    if (!st) st = dsopt_export_read(o, 0, &out[7], 1);
    unsigned left = _mm_getcsr();
    int rounding = fegetround();
    fesetround(FE_TONEAREST);
    _mm_setcsr(csr);
    CHECK(st == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(!strange || ((left | 0x3f) == (odd | 0x3f) && rounding == FE_UPWARD),
          "the caller's settings: %x, were %x; rounding %d", left, odd, rounding);
    for (int i = 0; i < 3; i++) out[8 + i] = p[i];
    out[11] = 0;
    dsopt_optimizer_destroy(o);
    dsopt_program_release(prog);
    rt_close(&rt);
}

/* A locale with a decimal comma, made where the system has none. */
static bool comma_locale(char folder[32])
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (setlocale(LC_ALL, names[i])) return true;
    char command[160];
    strcpy(folder, "/tmp/dsopt-locale-XXXXXX");
    if (!mkdtemp(folder)) return false;
    snprintf(command, sizeof command,
             "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    if (system(command) < 0) return false;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, names[0]) != NULL;
}

static void outside(void)
{
    double usual[12], strange[12];
    char folder[32] = "", command[64];
    outside_run(false, usual);
    outside_run(true, strange);
    for (int i = 0; i < 12; i++)
        CHECK(memcmp(&usual[i], &strange[i], 8) == 0, "number %d: %a, usually %a", i, strange[i],
              usual[i]);
    CHECK(usual[0] == 0x1p-1070 && usual[4] == (double)1e-41f, "%a %a", usual[0], usual[4]);
    if (comma_locale(folder)) {
        outside_run(false, strange);
        CHECK(memcmp(usual, strange, sizeof usual) == 0, "other numbers under a decimal comma");
        CHECK(localeconv()->decimal_point[0] == ',', "the caller's locale is gone");
    } else {
        printf("no locale with a decimal comma here: not tested\n");
    }
    setlocale(LC_ALL, "C");
    if (*folder) {
        snprintf(command, sizeof command, "rm -rf %s", folder);
        CHECK(system(command) == 0, "%s stays", folder);
    }
}

/* ---- executors that fail --------------------------------------------------------------------- */

static ExecOutcome fails_early(dsopt_optimizer *opt, OptEntry *e)
{
    (void)opt, (void)e;
    return EXEC_NOTHING_WRITTEN;
}

static ExecOutcome fails_late(dsopt_optimizer *opt, OptEntry *e)
{
    (void)opt, (void)e;
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
    ExecOutcome (*real)(dsopt_optimizer *, OptEntry *) = o->exec;
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
    if (a->entries[0].plan) {
        CHECK(a->entries[0].nvariants == 1 &&
                  a->entries[0].variants[0].built == b->entries[0].variants[0].built &&
                  a->entries[0].programs == b->entries[0].programs,
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
    outside();
    poison();
    tree_by_names();
    cache();
    return check_done();
}
