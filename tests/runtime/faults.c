/* faults.c - faults that optimizer software in use has had, and that this one must not have. One
 * test each: `rt_faults NN`.
 *
 *   in:  rt_faults 03        bf16, g = [1, +inf]
 *   out: SKIPPED_OVERFLOW; p, m, v and t keep their bits
 */
#include "rt.h"

static Rt rt;

static dsopt_optimizer *one(const char *rule, const char *defines, dsopt_dtype dtype, void *p,
                            const void *g, int64_t n)
{
    dsopt_tensor t = rt_tensor("w", NULL, dtype, p, g, 1, &n);
    return rt_optimizer(&rt, rt_program(&rt, rule, defines), &t, 1);
}

/* A step without overflow is applied and changes p. */
static void fault_02(void)
{
    uint16_t p[4], g[4];
    for (int i = 0; i < 4; i++) {
        p[i] = rt_bf16(1);
        g[i] = rt_bf16(0.5f);
    }
    dsopt_optimizer *o = one("adamw", NULL, DSOPT_BF16, p, g, 4);
    rt_set(&rt, o, NULL, "lr", 0.1);
    for (int s = 0; s < 3; s++) {
        uint16_t before = p[0];
        dsopt_report r = rt_step(&rt, o);
        CHECK(r.result == DSOPT_STEP_APPLIED, "%s", dsopt_result_name(r.result));
        CHECK(p[0] != before && p[3] == p[0], "step %d did not change p", s);
    }
    dsopt_optimizer_destroy(o);
}

/* One infinity in 16 bits: skipped before anything is written. */
static void fault_03(void)
{
    uint16_t p[2] = {rt_bf16(1), rt_bf16(2)}, g[2] = {rt_bf16(1), rt_bf16(1)};
    float q[3] = {1, 2, 3}, gq[3] = {1, 1, 1};
    dsopt_tensor t[2] = {rt_tensor("w", NULL, DSOPT_BF16, p, g, 1, (int64_t[]){2}),
                         rt_tensor("q", NULL, DSOPT_F32, q, gq, 1, (int64_t[]){3})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), t, 2);
    rt_step(&rt, o);
    float m[2][2][2], before_q[3];
    uint16_t before[2];
    memcpy(before, p, sizeof p);
    memcpy(before_q, q, sizeof q);
    const float bad[3] = {INFINITY, -INFINITY, NAN};
    for (int k = 0; k < 3; k++) {
        g[1] = rt_bf16(bad[k]);
        for (int after = 0; after < 2; after++) {
            if (after) {
                dsopt_report r = rt_step(&rt, o);
                CHECK(r.result == DSOPT_STEP_SKIPPED_OVERFLOW && r.bad_tensor == 0 &&
                          r.bad_index == 1 && r.bad_rank == 0 && r.step == 1,
                      "%s tensor %lld index %lld", dsopt_result_name(r.result),
                      (long long)r.bad_tensor, (long long)r.bad_index);
                CHECK(strstr(r.reason, "'w'") && strstr(r.reason, "element 1"), "%s", r.reason);
            }
            for (int s = 0; s < 2; s++) {
                size_t i;
                CHECK(dsopt_state_find(o, "w", s ? "v" : "m", &i) == DSOPT_OK, "find");
                CHECK(dsopt_state_read(o, i, DSOPT_F32, m[after][s], 2) == DSOPT_OK, "read");
            }
        }
        CHECK(memcmp(before, p, sizeof p) == 0 && memcmp(before_q, q, sizeof q) == 0, "p moved");
        CHECK(memcmp(m[0], m[1], sizeof m[0]) == 0, "a state moved");
        CHECK(rt_state(&rt, o, "w", "t") == 1 && rt_state(&rt, o, "q", "t") == 1 &&
                  rt_state(&rt, o, NULL, "s") == 1,
              "a clock moved");
    }
    CHECK(strstr(rt.log, "not updating") && strstr(rt.log, "'w' is"), "the log: '%s'", rt.log);
    g[1] = rt_bf16(1);
    CHECK(rt_step(&rt, o).result == DSOPT_STEP_APPLIED && isfinite(rt_from_bf16(p[1])),
          "it goes on after a skip");
    /* f32 gradients are not guarded: what is infinite there arrives. */
    gq[0] = INFINITY;
    CHECK(rt_step(&rt, o).result == DSOPT_STEP_APPLIED, "f32 is not guarded");
    dsopt_optimizer_destroy(o);
}

/* All zero in f16, eps 1e-8 (0 in f16): the update is 0, not 0/0. */
static void fault_05(void)
{
    uint16_t p[5] = {0}, g[5] = {0};
    dsopt_program *prog;
    dsopt_program_options opt = {.size = sizeof opt, .storage = "m=f16,v=f16"};
    REQUIRE(dsopt_program_load(rt.ctx, "adamw", &opt, &prog) == DSOPT_OK, "%s",
            dsopt_error_message(rt.ctx));
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F16, p, g, 1, (int64_t[]){5});
    dsopt_optimizer *o = rt_optimizer(&rt, prog, &t, 1);
    for (int s = 0; s < 3; s++) CHECK(rt_step(&rt, o).result == DSOPT_STEP_APPLIED, "applied");
    for (int i = 0; i < 5; i++) CHECK(p[i] == 0, "p[%d] = 0x%04x", i, p[i]);
    dsopt_optimizer_destroy(o);
}

static const char clipped[] = "import \"clip_global_norm.opt\"\n"
                              "optimizer clipped {\n"
                              "  use clip_global_norm(limit = 1)\n"
                              "  hyper lr = 1\n"
                              "  p -= lr * g\n"
                              "}\n";

/* f16 gradient 300, whose square is no f16: clipped to 1. */
static void fault_06(void)
{
    uint16_t g[1] = {0x5cb0}; /* 300 */
    float p[1] = {0};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){1});
    t.grad_dtype = DSOPT_F16;
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, clipped), &t, 1);
    dsopt_report r = rt_step(&rt, o);
    CHECK(r.result == DSOPT_STEP_APPLIED && r.grad_norm == 300, "norm %g", r.grad_norm);
    CHECK(fabsf(p[0] + 1) < 1e-6f, "p = %g", (double)p[0]);
    dsopt_optimizer_destroy(o);
}

/* A norm that is not finite is what it is, never a number in disguise. */
static void fault_07(void)
{
    float p[2] = {1, 1}, g[2] = {NAN, 1};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, clipped), &t, 1);
    CHECK(isnan(rt_step(&rt, o).grad_norm), "norm of NaN");
    g[0] = INFINITY;
    CHECK(rt_step(&rt, o).grad_norm == INFINITY, "norm of infinity");
    dsopt_optimizer_destroy(o);
}

/* All gradients 0 under clipping: applied, moments decay. */
static void fault_08(void)
{
    float p[3] = {1, 2, 3}, g[3] = {1, 1, 1}, m[2][3];
    size_t i;
    dsopt_optimizer *o = one("lamb", NULL, DSOPT_F32, p, g, 3);
    rt_step(&rt, o);
    CHECK(dsopt_state_find(o, "w", "m", &i) == DSOPT_OK &&
              dsopt_state_read(o, i, DSOPT_F32, m[0], 3) == DSOPT_OK,
          "m");
    memset(g, 0, sizeof g);
    dsopt_report r = rt_step(&rt, o);
    CHECK(r.result == DSOPT_STEP_APPLIED && r.grad_norm == 0, "%s, norm %g",
          dsopt_result_name(r.result), r.grad_norm);
    CHECK(dsopt_state_read(o, i, DSOPT_F32, m[1], 3) == DSOPT_OK && m[1][0] == 0.9f * m[0][0] &&
              m[1][0] != 0,
          "m %g -> %g", (double)m[0][0], (double)m[1][0]);
    for (int k = 0; k < 3; k++) CHECK(isfinite(p[k]), "p[%d] = %g", k, (double)p[k]);
    dsopt_optimizer_destroy(o);
}

/* Creation moves nothing; the first applied step uses t = 1. */
static void fault_13(void)
{
    float p[2] = {1, 2}, g[2] = {4, -4};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(
        &rt,
        rt_text(
            &rt,
            "optimizer clock {\n state seen = 0\n seen := t + 0 * g\n p -= (t + 10 * s) * g\n}\n"),
        &t, 1);
    CHECK(p[0] == 1 && p[1] == 2 && rt_state(&rt, o, "w", "t") == 0 &&
              rt_state(&rt, o, NULL, "s") == 0,
          "creation moved something");
    rt_step(&rt, o);
    CHECK(p[0] == 1 - 4 && p[1] == 2 + 4, "t was not 1, or s not 0: p = %g", (double)p[0]);
    CHECK(rt_state(&rt, o, "w", "t") == 1 && rt_state(&rt, o, NULL, "s") == 1,
          "clocks after one step");
    dsopt_optimizer_destroy(o);
}

/* One tensor in three parts: the same bits of p as in one. */
static void fault_14(void)
{
    enum { N = 9000 };
    static float p[2][N], g[N];
    static const int64_t part[4] = {0, 4096, 4099, N};
    uint64_t seed = 14;
    for (int i = 0; i < N; i++) p[0][i] = p[1][i] = rt_random(&seed);
    dsopt_optimizer *whole = one("adamw", NULL, DSOPT_F32, p[0], g, N);
    dsopt_tensor t[3];
    int64_t n[3];
    for (int k = 0; k < 3; k++) {
        n[k] = part[k + 1] - part[k];
        t[k] = rt_tensor((const char *[]){"a", "b", "c"}[k], NULL, DSOPT_F32, p[1] + part[k],
                         g + part[k], 1, &n[k]);
    }
    dsopt_optimizer *parts = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), t, 3);
    for (int s = 0; s < 4; s++) {
        for (int i = 0; i < N; i++) g[i] = rt_random(&seed);
        rt_step(&rt, whole);
        rt_step(&rt, parts);
    }
    CHECK(memcmp(p[0], p[1], sizeof p[0]) == 0, "parts and whole differ");
    dsopt_optimizer_destroy(whole);
    dsopt_optimizer_destroy(parts);
}

/* Gradients scaled by anything but the optimizer's scale are refused. */
static void fault_15(void)
{
    float p[1] = {1}, g[1] = {65536};
    dsopt_optimizer *o = one("sgd", NULL, DSOPT_F32, p, g, 1);
    RT_FAILS(rt.ctx, dsopt_accumulate(o, 65536), DSOPT_SCALE_MISMATCH, "scale 65536");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NO_NEW_GRADS, "dsopt_accumulate");
    CHECK(p[0] == 1, "p moved to %g", (double)p[0]);
    dsopt_optimizer_destroy(o);
}

/* Empty tensors of every shape, and an empty one among many: all others are updated. */
static void fault_16(void)
{
    static float p[1000], g[1000];
    for (int i = 0; i < 1000; i++) {
        p[i] = 1;
        g[i] = 1;
    }
    dsopt_tensor t[4] = {rt_tensor("a", NULL, DSOPT_F32, NULL, NULL, 2, (int64_t[]){1000, 0}),
                         rt_tensor("b", NULL, DSOPT_F32, NULL, NULL, 1, (int64_t[]){0}),
                         rt_tensor("c", NULL, DSOPT_F32, NULL, NULL, 2, (int64_t[]){0, 5}),
                         rt_tensor("d", NULL, DSOPT_F32, NULL, NULL, 3, (int64_t[]){5, 0, 5})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), t, 4);
    CHECK(rt_step(&rt, o).result == DSOPT_STEP_NO_GRADS, "only empty tensors");
    dsopt_optimizer_destroy(o);

    enum { N = 40 };
    dsopt_tensor many[N];
    char names[N][8];
    for (int k = 0; k < N; k++) {
        static const int64_t twenty[1] = {20}, none[1] = {0};
        snprintf(names[k], sizeof names[k], "t%d", k);
        many[k] = rt_tensor(names[k], NULL, DSOPT_F32, k == 36 ? NULL : p + 20 * k,
                            k == 36 ? NULL : g + 20 * k, 1, k == 36 ? none : twenty);
    }
    o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), many, N);
    dsopt_report r = rt_step(&rt, o);
    CHECK(r.tensors == N - 1, "%lld tensors took part", (long long)r.tensors);
    for (int i = 0; i < 800; i++) CHECK(p[i] != 1 || i / 20 == 36, "element %d did not move", i);
    dsopt_optimizer_destroy(o);
}

/* An empty tensor under LAMB leaves all trust ratios and the global norm finite. */
static void fault_17(void)
{
    float p[4] = {1, 2, 3, 4}, g[4] = {1, 1, 1, 1};
    dsopt_tensor t[3] = {rt_tensor("a", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2}),
                         rt_tensor("b", NULL, DSOPT_F32, NULL, NULL, 2, (int64_t[]){0, 3}),
                         rt_tensor("c", NULL, DSOPT_F32, p + 2, g + 2, 1, (int64_t[]){2})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "lamb", NULL), t, 3);
    for (int s = 0; s < 3; s++) CHECK(rt_step(&rt, o).grad_norm == 2, "norm");
    for (int i = 0; i < 4; i++)
        CHECK(isfinite(p[i]) && p[i] != i + 1, "p[%d] = %g", i, (double)p[i]);
    dsopt_optimizer_destroy(o);
}

/* 3 x 1000: all 3000 elements move. */
static void fault_18(void)
{
    static float p[3000], g[3000];
    for (int i = 0; i < 3000; i++) {
        p[i] = 0;
        g[i] = 1;
    }
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 2, (int64_t[]){3, 1000});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "lion", NULL), &t, 1);
    rt_step(&rt, o);
    for (int i = 0; i < 3000; i++) CHECK(p[i] == -1e-4f, "p[%d] = %g", i, (double)p[i]);
    dsopt_optimizer_destroy(o);
}

/* Lion: g = 0, m = 0 moves nothing; g = 0.5 moves by exactly -lr; head and tail alike. */
static void fault_19(void)
{
    float p[19], g[19] = {0};
    for (int i = 0; i < 19; i++) p[i] = 0;
    dsopt_optimizer *o = one("lion", NULL, DSOPT_F32, p, g, 19);
    rt_set(&rt, o, NULL, "lr", 0.25);
    rt_step(&rt, o);
    for (int i = 0; i < 19; i++) CHECK(p[i] == 0, "p[%d] = %g", i, (double)p[i]);
    for (int i = 0; i < 19; i++) g[i] = 0.5f;
    rt_step(&rt, o);
    for (int i = 0; i < 19; i++) CHECK(p[i] == -0.25f, "p[%d] = %g", i, (double)p[i]);
    dsopt_optimizer_destroy(o);
}

/* The same buffer twice, or overlapping ranges: both tensors are named. */
static void fault_20(void)
{
    float p[8] = {0}, g[8] = {0};
    dsopt_program *prog = rt_program(&rt, "sgd", NULL);
    dsopt_optimizer *o;
    dsopt_tensor t[2] = {rt_tensor("tied.a", NULL, DSOPT_F32, p, g, 1, (int64_t[]){4}),
                         rt_tensor("tied.b", NULL, DSOPT_F32, p, g + 4, 1, (int64_t[]){4})};
    for (int k = 0; k < 4; k++) {
        t[1].param = p + k;
        RT_FAILS(rt.ctx, dsopt_optimizer_create(rt.ctx, prog, t, 2, &o), DSOPT_INVALID_TENSOR,
                 "'tied.a'");
        CHECK(strstr(dsopt_error_message(rt.ctx), "'tied.b'"), "%s", dsopt_error_message(rt.ctx));
    }
    dsopt_program_release(prog);
}

/* Groups with elements, without, and with again: no crash, and hyperparameters stay with their
 * groups. */
static void fault_21(void)
{
    float p[4] = {0}, g[4] = {1, 1, 1, 1};
    dsopt_tensor t[3] = {rt_tensor("a", "A", DSOPT_F32, p, g, 1, (int64_t[]){2}),
                         rt_tensor("e", "empty", DSOPT_F32, NULL, NULL, 1, (int64_t[]){0}),
                         rt_tensor("b", "B", DSOPT_F32, p + 2, g + 2, 1, (int64_t[]){2})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "sgd", NULL), t, 3);
    rt_set(&rt, o, "A", "lr", 0.5);
    rt_set(&rt, o, "empty", "lr", 100);
    rt_set(&rt, o, "B", "lr", 0.25);
    rt_step(&rt, o);
    CHECK(p[0] == -0.5f && p[1] == -0.5f && p[2] == -0.25f && p[3] == -0.25f, "%g %g %g %g",
          (double)p[0], (double)p[1], (double)p[2], (double)p[3]);
    dsopt_optimizer_destroy(o);
}

/* A strided view is refused, never copied. */
static void fault_23(void)
{
    float p[20] = {0};
    dsopt_program *prog = rt_program(&rt, "sgd", NULL);
    dsopt_optimizer *o;
    dsopt_tensor t = rt_tensor("view", NULL, DSOPT_F32, p, NULL, 2, (int64_t[]){5, 2});
    t.strides = (int64_t[]){4, 1};
    RT_FAILS(rt.ctx, dsopt_optimizer_create(rt.ctx, prog, &t, 1, &o), DSOPT_INVALID_TENSOR,
             "tensor 'view': stride 4 of dimension 0");
    dsopt_program_release(prog);
}

/* A gradient at step 1 and none at step 2: the tensor keeps its bits, and its t stands. */
static void fault_24(void)
{
    float p[2] = {1, 1}, q[2] = {1, 1}, g[2] = {1, 1}, gq[2] = {1, 1}, m[2][2];
    dsopt_tensor t[2] = {rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2}),
                         rt_tensor("q", NULL, DSOPT_F32, q, gq, 1, (int64_t[]){2})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), t, 2);
    size_t i;
    rt_step(&rt, o);
    CHECK(dsopt_state_find(o, "w", "m", &i) == DSOPT_OK &&
              dsopt_state_read(o, i, DSOPT_F32, m[0], 2) == DSOPT_OK,
          "m");
    CHECK(dsopt_bind_gradient(o, 0, NULL) == DSOPT_OK, "unbind");
    float before = p[0], before_q = q[0];
    g[0] = g[1] = NAN; /* what lies there is never read */
    dsopt_report r = rt_step(&rt, o);
    CHECK(r.tensors == 1 && p[0] == before && p[1] == before && q[0] != before_q,
          "w moved, or q did not");
    CHECK(dsopt_state_read(o, i, DSOPT_F32, m[1], 2) == DSOPT_OK &&
              memcmp(m[0], m[1], sizeof m[0]) == 0,
          "m moved");
    CHECK(rt_state(&rt, o, "w", "t") == 1 && rt_state(&rt, o, "q", "t") == 2 &&
              rt_state(&rt, o, NULL, "s") == 2,
          "clocks");
    g[0] = g[1] = 1;
    CHECK(dsopt_bind_gradient(o, 0, g) == DSOPT_OK, "bind");
    rt_step(&rt, o);
    CHECK(rt_state(&rt, o, "w", "t") == 2 && rt_state(&rt, o, "q", "t") == 3 && p[0] != before,
          "it goes on");
    dsopt_optimizer_destroy(o);
}

/* A skip decides before it writes: a NaN in the last of many chunks leaves the first ones alone. */
static void fault_30(void)
{
    enum { N = 50000 };
    static uint16_t p[N], before[N], g[N];
    for (int i = 0; i < N; i++) {
        p[i] = before[i] = rt_bf16((float)i);
        g[i] = rt_bf16(1);
    }
    dsopt_optimizer *o = one("lamb", NULL, DSOPT_BF16, p, g, N);
    g[N - 1] = 0x7fc0;
    dsopt_report r = rt_step(&rt, o);
    CHECK(r.result == DSOPT_STEP_SKIPPED_OVERFLOW && r.bad_index == N - 1, "%s at %lld",
          dsopt_result_name(r.result), (long long)r.bad_index);
    CHECK(memcmp(p, before, sizeof p) == 0, "p moved");
    g[N - 1] = rt_bf16(1);
    CHECK(rt_step(&rt, o).result == DSOPT_STEP_APPLIED && memcmp(p, before, sizeof p) != 0,
          "applied afterwards");
    dsopt_optimizer_destroy(o);
}

static const struct {
    int number;
    void (*run)(void);
} faults[] = {{2, fault_02},  {3, fault_03},  {5, fault_05},  {6, fault_06},  {7, fault_07},
              {8, fault_08},  {13, fault_13}, {14, fault_14}, {15, fault_15}, {16, fault_16},
              {17, fault_17}, {18, fault_18}, {19, fault_19}, {20, fault_20}, {21, fault_21},
              {23, fault_23}, {24, fault_24}, {30, fault_30}};

int main(int argc, char **argv)
{
    int wanted = argc > 1 ? atoi(argv[1]) : 0;
    for (int threads = 1; threads <= 2; threads++) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            if (wanted && faults[i].number != wanted) continue;
            rt_open(&rt, threads);
            faults[i].run();
            rt_close(&rt);
        }
    }
    return check_done();
}
