/* entries.c - what a rule has besides the step: entry points, inputs, arrays, states of all rates,
 * draws; on the interpreter and on tile code.
 *
 *   in:  rule with `on eval` and `on train`; run eval, then step
 *   out: DSOPT_WRONG_MODE; after train the step is applied
 */
#include "rt.h"

static Rt rt;
static const char *backend;
static int threads;

static void open_seeded(uint64_t seed)
{
    rt = (Rt){0};
    dsopt_config c = {.size = sizeof c,
                      .backend = backend,
                      .threads = threads,
                      .seed = seed,
                      .log = rt_log,
                      .log_user = &rt};
    REQUIRE(dsopt_context_create(&c, &rt.ctx) == DSOPT_OK, "%s", dsopt_error_message(NULL));
}

static dsopt_status run(dsopt_optimizer *o, const char *entry)
{
    dsopt_status st = dsopt_run(o, entry);
    CHECK(st == DSOPT_OK, "run %s: %s", entry, dsopt_error_message(rt.ctx));
    return st;
}

/* ---- eval and train -------------------------------------------------------------------------- */

static const char modes_text[] = "optimizer x {\n  hyper lr = 0.5\n  state z = p\n"
                                 "  z -= lr * g\n  p := lerp(z, p, 0.5)\n  n = norm[all](g)\n"
                                 "  export n as grad_norm\n"
                                 "  on eval { p := p + (z - p) * 2 }\n"
                                 "  on train { p := z + (z - p) }\n}\n";

static void modes(void)
{
    float p[3] = {1, 2, 3}, g[3] = {1, 1, 1}, q[1] = {8};
    double norm;
    open_seeded(0);
    dsopt_program *prog = rt_text(&rt, modes_text);
    CHECK(dsopt_program_entry_count(prog) == 2 &&
              strcmp(dsopt_program_entry_name(prog, 0), "eval") == 0 &&
              strcmp(dsopt_program_entry_name(prog, 1), "train") == 0 &&
              !dsopt_program_entry_name(prog, 2) && dsopt_program_entry_count(NULL) == 0,
          "entry points by number");
    dsopt_tensor t[2] = {rt_tensor("p", NULL, DSOPT_F32, p, g, 1, (int64_t[]){3}),
                         rt_tensor("q", NULL, DSOPT_F32, q, NULL, 1, (int64_t[]){1})};
    dsopt_optimizer *o = rt_optimizer(&rt, prog, t, 2);
    run(o, "train"); /* where it is already: nothing happens */
    CHECK(p[0] == 1 && q[0] == 8, "train in training mode: %g", (double)p[0]);
    rt_step(&rt, o); /* z 0.5 1.5 2.5, p 0.75 1.75 2.75 */
    CHECK(p[0] == 0.75f && p[2] == 2.75f && q[0] == 8, "step: %g", (double)p[0]);
    run(o, "eval"); /* p 0.25 1.25 2.25; q is initialised: z = 8 */
    CHECK(p[0] == 0.25f && p[2] == 2.25f && q[0] == 8, "eval: %g %g", (double)p[0], (double)q[0]);
    CHECK(rt_state(&rt, o, "q", "z") == 8, "eval initialises what does not read g");
    run(o, "eval");
    CHECK(p[0] == 0.25f, "eval twice: %g", (double)p[0]);
    CHECK(rt_state(&rt, o, "p", "t") == 1 && rt_state(&rt, o, "q", "t") == 0 &&
              rt_state(&rt, o, NULL, "s") == 1,
          "an entry point is no step");
    dsopt_report r = {.size = sizeof r};
    CHECK(dsopt_report_read(o, &r, DSOPT_LATEST) == DSOPT_OK && r.result == DSOPT_STEP_APPLIED &&
              r.step == 1 && fabs(r.grad_norm - sqrt(3)) < 1e-15,
          "the report is the step's: norm %g", r.grad_norm);
    CHECK(dsopt_report_export(o, "grad_norm", &norm) == DSOPT_OK && norm == r.grad_norm,
          "exports of the step stay");
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_WRONG_MODE, "run 'train'");
    CHECK(p[0] == 0.25f, "a refused step moves nothing");
    run(o, "train");
    CHECK(p[0] == 0.75f && p[2] == 2.75f, "train: %g", (double)p[0]);
    CHECK(dsopt_step(o) == DSOPT_OK && rt_state(&rt, o, "p", "t") == 2, "%s",
          dsopt_error_message(rt.ctx));
    RT_FAILS(rt.ctx, dsopt_run(o, "evil"), DSOPT_UNKNOWN_NAME, "did you mean 'eval'");
    RT_FAILS(rt.ctx, dsopt_run(o, "perturb"), DSOPT_UNKNOWN_NAME, "it has eval, train");
    RT_FAILS(rt.ctx, dsopt_run(o, "step"), DSOPT_INVALID_ARGUMENT, "dsopt_step");
    RT_FAILS(rt.ctx, dsopt_run(o, NULL), DSOPT_INVALID_ARGUMENT, "no entry point");
    RT_FAILS(rt.ctx, dsopt_run_with(o, "eval", (const void *[]){g, NULL}, 2),
             DSOPT_INVALID_ARGUMENT, "takes no buffers");
    CHECK(dsopt_run(NULL, "eval") == DSOPT_INVALID_ARGUMENT, "NULL");
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

/* ---- what is not state ----------------------------------------------------------------------- */

/* Of the states none is kept that no entry point needs: one that reaches neither p nor an export
 * (nor what says whether it has begun), one that is written before it is read. What only an entry
 * point reads is kept, though the step writes it first. */
static void dead_states(void)
{
    float p[2] = {1, 2}, g[2] = {1, 2};
    open_seeded(0);
    dsopt_program *prog =
        rt_text(&rt, "optimizer x {\n  state m = 0, dead = p, k: group = s_, self = 0\n"
                     "  hyper s_ = 1\n  state first = 0, last = 0\n"
                     "  m += g\n  dead += m\n  k += 1\n  self := self * dead + g\n"
                     "  first := 2 * g\n  last := m + first\n  p -= m + first\n"
                     "  on back { p += last;  q = self + dead;  self := q }\n"
                     "  on lose { dead := p }\n}\n");
    dsopt_tensor t = rt_tensor("p", "grp", DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(&rt, prog, &t, 1);
    static const char *const kept[] = {"grp.x.m", "grp.x.last", "grp.x.t", "x.s"};
    CHECK(dsopt_state_count(o) == 4, "%zu states", dsopt_state_count(o));
    for (size_t i = 0; i < 4 && i < dsopt_state_count(o); i++) {
        dsopt_state_info info = {.size = sizeof info};
        CHECK(dsopt_state_info_read(o, i, &info) == DSOPT_OK && !strcmp(info.path, kept[i]), "%s",
              info.path);
    }
    rt_step(&rt, o);
    CHECK(p[0] == -2 && p[1] == -4, "step: %g %g", (double)p[0], (double)p[1]);
    run(o, "lose");
    run(o, "back");
    CHECK(p[0] == 1 && p[1] == 2, "back: %g %g", (double)p[0], (double)p[1]);
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

/* ---- on NAME(x) ------------------------------------------------------------------------------ */

static void buffers(void)
{
    static const char text[] =
        "optimizer x {\n  hyper lr = 1, rho = 2\n  state e = 0, h: tensor = 0\n"
        "  p -= lr * (g + e)\n  export h\n"
        "  on perturb(x) { e := rho * x\n p += e\n h := h + sum(x) }\n"
        "  on count { h := h + 100 }\n}\n";
    float p[2][5000], g[2][5000], x[2][5000];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 5000; i++) {
            p[k][i] = (float)i;
            g[k][i] = (float)(k + 1);
            x[k][i] = -1;
        }
    open_seeded(0);
    dsopt_tensor t[2] = {rt_tensor("a", NULL, DSOPT_F32, p[0], g[0], 1, (int64_t[]){5000}),
                         rt_tensor("b", "other", DSOPT_F32, p[1], NULL, 1, (int64_t[]){5000})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, text), t, 2);
    run(o, "perturb"); /* the gradients are x */
    CHECK(p[0][7] == 9 && p[1][7] == 7, "%g %g", (double)p[0][7], (double)p[1][7]);
    CHECK(rt_state(&rt, o, "a", "h") == 5000 && rt_state(&rt, o, "b", "h") == 0, "sum");
    CHECK(dsopt_run_with(o, "perturb", (const void *[]){NULL, x[1]}, 2) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    CHECK(p[0][7] == 9 && p[1][7] == 5, "%g %g", (double)p[0][7], (double)p[1][7]);
    CHECK(rt_state(&rt, o, "a", "h") == 5000 && rt_state(&rt, o, "b", "h") == -5000, "sum");
    run(o, "count"); /* all, with or without a gradient */
    CHECK(rt_state(&rt, o, "a", "h") == 5100 && rt_state(&rt, o, "b", "h") == -4900, "count");
    rt_step(&rt, o); /* a alone: 9 - (1 + 2) */
    CHECK(p[0][7] == 6 && p[1][7] == 5, "%g %g", (double)p[0][7], (double)p[1][7]);
    CHECK(rt_state(&rt, o, "a", "t") == 1 && rt_state(&rt, o, "b", "t") == 0, "t");
    RT_FAILS(rt.ctx, dsopt_run_with(o, "perturb", (const void *[]){x[0]}, 1),
             DSOPT_INVALID_ARGUMENT, "1 buffers for 'on perturb', but there are 2 tensors");
    RT_FAILS(rt.ctx, dsopt_run_with(o, "perturb", (const void *[]){x[0], &p[0][4999]}, 2),
             DSOPT_INVALID_TENSOR, "share memory");
    RT_FAILS(rt.ctx, dsopt_run_with(o, "perturb", (const void *[]){NULL, NULL}, 2),
             DSOPT_INVALID_ARGUMENT, "no tensor with elements has a buffer");
    CHECK(dsopt_bind_gradient(o, 0, &p[1][3]) == DSOPT_OK, "bind");
    RT_FAILS(rt.ctx, dsopt_run(o, "perturb"), DSOPT_INVALID_TENSOR, "share memory");
    CHECK(dsopt_bind_gradient(o, 0, NULL) == DSOPT_OK, "bind");
    RT_FAILS(rt.ctx, dsopt_run(o, "perturb"), DSOPT_INVALID_ARGUMENT, "has a gradient");
    CHECK(p[0][7] == 6 && p[1][7] == 5, "what is refused moves nothing");
    CHECK(dsopt_bind_gradient(o, 0, &p[1][3]) == DSOPT_OK, "bind");
    run(o, "count"); /* the gradient that overlaps is not read by these two */
    CHECK(dsopt_run_with(o, "perturb", (const void *[]){NULL, x[1]}, 2) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    CHECK(p[0][7] == 6 && p[1][7] == 3, "%g %g", (double)p[0][7], (double)p[1][7]);
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_INVALID_TENSOR, "share memory");
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static void inputs(void)
{
    static const char text[] = "optimizer x {\n  input loss\n  input extra\n  p -= loss * g\n"
                               "  on other { p := extra }\n}\n";
    float p[2] = {1, 2}, g[2] = {1, 1};
    double v;
    dsopt_handle h;
    open_seeded(0);
    dsopt_tensor t = rt_tensor("p", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, text), &t, 1);
    CHECK(dsopt_input_count(o) == 2 && strcmp(dsopt_input_name(o, 0), "loss") == 0 &&
              strcmp(dsopt_input_name(o, 1), "extra") == 0 && !dsopt_input_name(o, 2),
          "inputs by number");
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NOT_SET, "the input 'loss'");
    CHECK(p[0] == 1, "moved");
    RT_FAILS(rt.ctx, dsopt_set_input(o, "lost", 1), DSOPT_UNKNOWN_NAME, "did you mean 'loss'");
    CHECK(dsopt_set_input(o, "loss", 0.5) == DSOPT_OK && dsopt_step(o) == DSOPT_OK && p[0] == 0.5f,
          "%s", dsopt_error_message(rt.ctx));
    RT_FAILS(rt.ctx, dsopt_run(o, "other"), DSOPT_NOT_SET, "the input 'extra'");
    CHECK(dsopt_input_find(o, "extra", &h) == DSOPT_OK && dsopt_handle_set(o, h, -3) == DSOPT_OK &&
              dsopt_handle_get(o, h, &v) == DSOPT_OK && v == -3,
          "by handle");
    run(o, "other");
    CHECK(p[0] == -3 && p[1] == -3, "%g", (double)p[0]);
    CHECK(dsopt_set_input(o, "loss", NAN) == DSOPT_OK, "any number");
    rt_step(&rt, o);
    CHECK(isnan(p[0]), "%g", (double)p[0]);
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "loss", 1), DSOPT_UNKNOWN_NAME, "no hyperparameter 'loss'");
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void arrays(void)
{
    static const char text[] =
        "optimizer x {\n  const hyper K = 3\n  hyper lr = 1\n"
        "  hyper beta[K] = [0, 0.5, 0.25] in [0, 1)\n  state b[K] = 0\n"
        "  repeat i in 0..K { b[i] := beta[i] * b[i] + g\n p -= lr * b[i] }\n}\n";
    float p[1] = {0}, g[1] = {1};
    double v;
    open_seeded(0);
    dsopt_tensor t = rt_tensor("p", "one", DSOPT_F32, p, g, 1, (int64_t[]){1});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, text), &t, 1);
    rt_step(&rt, o);
    rt_step(&rt, o);
    CHECK(rt_state(&rt, o, "p", "b[0]") == 1 && rt_state(&rt, o, "p", "b[1]") == 1.5 &&
              rt_state(&rt, o, "p", "x.b[2]") == 1.25,
          "states by name");
    CHECK(dsopt_get(o, NULL, "beta[2]", &v) == DSOPT_OK && v == 0.25, "beta[2] = %g", v);
    rt_set(&rt, o, "one", "beta[0]", 0.125);
    CHECK(dsopt_set_array(o, NULL, "beta", (double[]){0.5, 0, 0.75}, 3) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    CHECK(dsopt_get(o, "one", "x.beta[2]", &v) == DSOPT_OK && v == 0.75, "beta[2] = %g", v);
    RT_FAILS(rt.ctx, dsopt_set_array(o, NULL, "beta", (double[]){0, 0, 1}, 3), DSOPT_OUT_OF_RANGE,
             "beta[2] = 1 is outside");
    CHECK(dsopt_get(o, NULL, "beta[0]", &v) == DSOPT_OK && v == 0.5, "none is set: %g", v);
    RT_FAILS(rt.ctx, dsopt_set_array(o, NULL, "beta", (double[]){0, 0}, 2), DSOPT_INVALID_ARGUMENT,
             "beta has 3 elements, not 2");
    RT_FAILS(rt.ctx, dsopt_set_array(o, NULL, "lr", (double[]){0}, 1), DSOPT_UNKNOWN_NAME,
             "no array of hyperparameters 'lr'");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "beta", 0), DSOPT_UNKNOWN_NAME, "no hyperparameter 'beta'");
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

/* ---- states of every rate -------------------------------------------------------------------- */

static const char all_text[] =
    "optimizer x {\n  hyper lr = 0.1\n  state m = 0, k: tensor = 0, w: group = 1, W: global = 2\n"
    "  m := lerp(g, m, 0.9)\n  k := k + mean(g)\n  w := w + sum[group](g*g)\n"
    "  W := W + max[all](abs(g))\n  u = m + 0.01 * normal()\n"
    "  shape [.., r, c] {\n    state R: row = 0, C: col = 0, M: matrix = 1\n"
    "    R := lerp(mean[row](g*g), R, 0.5)\n    C := lerp(mean[col](g*g), C, 0.5)\n"
    "    M := M + sum[matrix](g)\n    p -= lr * u / (sqrt(R * C) + M * M + 1e-3)\n  } else {\n"
    "    state B: block 100 = 0\n    B := lerp(rms[block 100](g), B, 0.5)\n"
    "    p -= lr * (u / (B + 1e-3) + k)\n  }\n"
    "  p -= lr * g / (w + W)\n  export W\n  export w as of_group\n  export k as of_tensor\n}\n";

enum { N = 5 };
static const struct {
    const char *name, *group;
    int ndim;
    int64_t shape[3];
} all_tensors[N] = {{"w", "two", 2, {40, 300}},
                    {"conv", "one", 3, {3, 7, 130}},
                    {"bias", "two", 1, {333}},
                    {"scalar", "one", 0, {0}},
                    {"empty", "one", 2, {0, 3}}};

typedef struct All {
    float p[N][12000], g[N][12000];
    dsopt_optimizer *o;
} All;

/* Tensors in the order given, or backwards. */
static void open_all(All *a, bool backwards)
{
    dsopt_tensor t[N];
    for (int k = 0; k < N; k++) {
        int at = backwards ? N - 1 - k : k;
        for (int i = 0; i < 12000; i++) a->p[k][i] = (float)(i % 17) * 0.1f + (float)k;
        t[at] = rt_tensor(all_tensors[k].name, all_tensors[k].group, DSOPT_F32, a->p[k], a->g[k],
                          all_tensors[k].ndim, all_tensors[k].shape);
    }
    a->o = rt_optimizer(&rt, rt_text(&rt, all_text), t, N);
}

static void step_all(All *a, int number)
{
    for (int k = 0; k < N; k++) {
        uint64_t seed = (uint64_t)(100 * number + k);
        for (int i = 0; i < 12000; i++) a->g[k][i] = rt_random(&seed);
    }
    rt_step(&rt, a->o);
}

static void state_is(All *a, const char *tensor, const char *name, const char *rate, int64_t count,
                     int ndim, dsopt_dtype dtype)
{
    size_t i;
    dsopt_state_info info = {.size = sizeof info};
    REQUIRE(dsopt_state_find(a->o, tensor, name, &i) == DSOPT_OK &&
                dsopt_state_info_read(a->o, i, &info) == DSOPT_OK,
            "%s", dsopt_error_message(rt.ctx));
    CHECK(strcmp(info.rate, rate) == 0 && info.count == count && info.ndim == ndim &&
              info.dtype == dtype && (ndim < 2 || info.dims[0] * info.dims[1] == count),
          "%s of %s: %lld values over %s, %d dims, %s", name, tensor ? tensor : "all",
          (long long)info.count, info.rate, info.ndim, dsopt_dtype_name(info.dtype));
}

static void rates(void)
{
    static All a;
    double v[N];
    size_t i;
    open_seeded(1);
    open_all(&a, false);
    step_all(&a, 1);
    state_is(&a, "w", "R", "row", 40, 1, DSOPT_F32);
    state_is(&a, "w", "C", "col", 300, 1, DSOPT_F32);
    state_is(&a, "w", "M", "matrix", 1, 1, DSOPT_F64);
    state_is(&a, "conv", "R", "row", 21, 2, DSOPT_F32);
    state_is(&a, "conv", "C", "col", 390, 2, DSOPT_F32);
    state_is(&a, "conv", "M", "matrix", 3, 1, DSOPT_F64);
    state_is(&a, "bias", "B", "block", 4, 1, DSOPT_F32);
    state_is(&a, "scalar", "B", "block", 1, 1, DSOPT_F32);
    state_is(&a, "scalar", "m", "element", 1, 1, DSOPT_F32);
    state_is(&a, "empty", "R", "row", 0, 1, DSOPT_F32);
    state_is(&a, "bias", "k", "tensor", 1, 0, DSOPT_F64);
    state_is(&a, NULL, "one.x.w", "group", 1, 0, DSOPT_F64);
    state_is(&a, NULL, "W", "global", 1, 0, DSOPT_F64);
    RT_FAILS(rt.ctx, dsopt_state_find(a.o, "w", "B", &i), DSOPT_UNKNOWN_NAME,
             "no state 'B' of tensor 'w' (there are");
    RT_FAILS(rt.ctx, dsopt_state_find(a.o, "bias", "R", &i), DSOPT_UNKNOWN_NAME, "no state 'R'");
    double w[2], R[40], sum = 0, of_row = 0;
    for (int k = 0; k < 300; k++) of_row += (double)a.g[0][k] * (double)a.g[0][k];
    REQUIRE(dsopt_state_find(a.o, "w", "R", &i) == DSOPT_OK &&
                dsopt_state_read(a.o, i, DSOPT_F64, R, 40) == DSOPT_OK,
            "%s", dsopt_error_message(rt.ctx));
    CHECK(fabs(R[0] - 0.5 * of_row / 300) < 1e-6, "R[0] = %g", R[0]);
    for (int k = 0; k < 2; k++) {
        const char *const paths[] = {"one.x.w", "two.x.w"};
        w[k] = rt_state(&rt, a.o, NULL, paths[k]);
    }
    for (int k = 0; k < 12000; k++) sum += (double)a.g[0][k] * (double)a.g[0][k];
    for (int k = 0; k < 333; k++) sum += (double)a.g[2][k] * (double)a.g[2][k];
    CHECK(fabs(w[1] - 1 - sum) < 1e-6 * sum, "two.x.w = %g, not %g", w[1], 1 + sum);
    REQUIRE(dsopt_export_count(a.o) == 3, "exports");
    REQUIRE(dsopt_export_read(a.o, 1, v, 2) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(v[0] == w[0] && v[1] == w[1], "export of groups: %g %g", v[0], v[1]);
    REQUIRE(dsopt_export_read(a.o, 2, v, N) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(v[2] == rt_state(&rt, a.o, "bias", "k") && isnan(v[4]), "export of tensors: %g", v[2]);
    dsopt_optimizer_destroy(a.o);
    rt_close(&rt);
}

static void copy(All *from, All *to)
{
    static double values[12000];
    for (size_t i = 0; i < dsopt_state_count(from->o); i++) {
        dsopt_state_info info = {.size = sizeof info};
        size_t k;
        REQUIRE(dsopt_state_info_read(from->o, i, &info) == DSOPT_OK, "info");
        const char *tensor =
            info.tensor < 0 ? NULL : dsopt_tensor_name(from->o, (size_t)info.tensor);
        REQUIRE(dsopt_state_read(from->o, i, DSOPT_DTYPE_DEFAULT, values, info.count) == DSOPT_OK &&
                    dsopt_state_find(to->o, tensor, info.path, &k) == DSOPT_OK &&
                    dsopt_state_write(to->o, k, DSOPT_DTYPE_DEFAULT, values, info.count) ==
                        DSOPT_OK,
                "%s: %s", info.path, dsopt_error_message(rt.ctx));
    }
    memcpy(to->p, from->p, sizeof to->p);
}

/* Draws included: they depend on seed, name and t alone. */
static void resume(void)
{
    static All a, b;
    open_seeded(7);
    open_all(&a, false);
    for (int s = 0; s < 3; s++) step_all(&a, s);
    open_all(&b, true);
    copy(&a, &b);
    for (int s = 3; s < 5; s++) {
        step_all(&a, s);
        step_all(&b, s);
    }
    CHECK(memcmp(a.p, b.p, sizeof a.p) == 0, "a resumed run has other bits");
    for (size_t i = 0; i < dsopt_state_count(a.o); i++) {
        dsopt_state_info info = {.size = sizeof info};
        size_t k;
        static double x[12000], y[12000];
        REQUIRE(dsopt_state_info_read(a.o, i, &info) == DSOPT_OK, "info");
        const char *tensor = info.tensor < 0 ? NULL : dsopt_tensor_name(a.o, (size_t)info.tensor);
        REQUIRE(dsopt_state_find(b.o, tensor, info.path, &k) == DSOPT_OK, "find");
        REQUIRE(dsopt_state_read(a.o, i, DSOPT_F64, x, info.count) == DSOPT_OK &&
                    dsopt_state_read(b.o, k, DSOPT_F64, y, info.count) == DSOPT_OK,
                "read");
        CHECK(memcmp(x, y, sizeof *x * (size_t)info.count) == 0, "state %s of %s", info.path,
              tensor ? tensor : "all");
    }
    dsopt_optimizer_destroy(a.o);
    dsopt_optimizer_destroy(b.o);
    rt_close(&rt);
}

/* ---- draws ----------------------------------------------------------------------------------- */

static void drawn(uint64_t seed, const char *name, int steps, float *out, size_t n)
{
    static float g[6000];
    memset(out, 0, n * sizeof *out);
    open_seeded(seed);
    dsopt_tensor t = rt_tensor(name, NULL, DSOPT_F32, out, g, 1, (int64_t[]){(int64_t)n});
    dsopt_optimizer *o = rt_optimizer(
        &rt,
        rt_text(&rt, "optimizer x {\n  p := normal() + 0 * g\n  on again { p := normal() }\n}\n"),
        &t, 1);
    for (int s = 0; s < steps; s++) rt_step(&rt, o);
    if (steps == 0) run(o, "again");
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

static void draws(void)
{
    enum { D = 6000 };
    static float a[D], b[D];
    drawn(1, "w", 1, a, D);
    double mean = 0, square = 0;
    for (int i = 0; i < D; i++) {
        mean += (double)a[i] / D;
        square += (double)a[i] * (double)a[i] / D;
    }
    CHECK(fabs(mean) < 0.05 && fabs(square - 1) < 0.08, "mean %g, of squares %g", mean, square);
    drawn(1, "w", 1, b, D);
    CHECK(memcmp(a, b, sizeof a) == 0, "the same seed, name and t draw the same");
    drawn(1, "w", 1, b, 100);
    CHECK(memcmp(a, b, 100 * sizeof *a) == 0, "a value depends on its index, not on the length");
    const struct {
        uint64_t seed;
        const char *name;
        int steps;
    } other[] = {{2, "w", 1}, {1, "v", 1}, {1, "w", 2}, {1, "w", 0}};
    for (size_t k = 0; k < 4; k++) {
        drawn(other[k].seed, other[k].name, other[k].steps, b, D);
        int same = 0;
        for (int i = 0; i < D; i++) same += a[i] == b[i];
        CHECK(same < 5, "seed, name, t or entry point %zu: %d values are the same", k, same);
    }
}

/* ---- refused --------------------------------------------------------------------------------- */

static void refused(void)
{
    static const char text[] = "optimizer x {\n  state B: block (numel / (numel - 10)) = 0\n"
                               "  B := mean[block (numel / (numel - 10))](g)\n  p -= B * g\n}\n";
    float p[10] = {0}, g[10] = {0};
    dsopt_optimizer *o;
    dsopt_program *prog;
    open_seeded(0);
    prog = rt_text(&rt, text);
    dsopt_tensor t = rt_tensor("odd", NULL, DSOPT_F32, p, g, 1, (int64_t[]){10});
    RT_FAILS(rt.ctx, dsopt_optimizer_create(rt.ctx, prog, &t, 1, &o), DSOPT_INVALID_TENSOR,
             "tensor 'odd': 'x' would see it in blocks of inf elements");
    t.shape = (int64_t[]){9};
    CHECK(dsopt_optimizer_create(rt.ctx, prog, &t, 1, &o) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    dsopt_optimizer_destroy(o);
    dsopt_program_release(prog);
    rt_close(&rt);
}

/* ---- names ----------------------------------------------------------------------------------- */

static const char names_text[] = "optimizer n {\n  k = name ~ \"^emb\" ? 2 : name == \"head\" ? 3 : 1\n"
                                 "  p -= k * g\n"
                                 "  on back { when name !~ \"d$\" { p := 0 } }\n}\n";

/* What a rule asks about a tensor's name, in the step and in an entry point. */
static void names(void)
{
    static const char *const called[4] = {"emb.w", "head", "x.emb", "head.b"};
    static const int64_t one[1] = {1};
    static const float after[4] = {6, 5, 7, 7}, back[4] = {0, 5, 0, 0};
    float p[4] = {8, 8, 8, 8}, g[4] = {1, 1, 1, 1};
    dsopt_tensor t[4];
    open_seeded(0);
    for (int i = 0; i < 4; i++)
        t[i] = rt_tensor(called[i], NULL, DSOPT_F32, &p[i], &g[i], 1, one);
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, names_text), t, 4);
    rt_step(&rt, o);
    for (int i = 0; i < 4; i++) CHECK(p[i] == after[i], "%s: %g", called[i], (double)p[i]);
    run(o, "back");
    for (int i = 0; i < 4; i++) CHECK(p[i] == back[i], "%s: back %g", called[i], (double)p[i]);
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

static const char arms_text[] =
    "optimizer n {\n  shape [.., r, c] when name !~ \"^emb\" { x = sum[row](g) }\n"
    "  else shape [.., r, c] when name == \"emb.x\" { x = sum[col](g) }\n  else { x = 0.5 }\n"
    "  p -= x\n}\n";

/* The arm that a tensor takes by its name: sums of rows, of columns, or neither. */
static void name_arms(void)
{
    static const char *const called[4] = {"emb.w", "emb.x", "w.emb", "emb"};
    static const int64_t shape[2] = {2, 3};
    static const float after[4][6] = {{-0.5F, -0.5F, -0.5F, -0.5F, -0.5F, -0.5F},
                                      {-5, -7, -9, -5, -7, -9},
                                      {-6, -6, -6, -15, -15, -15},
                                      {-0.5F, -0.5F, -0.5F, -0.5F, -0.5F, -0.5F}};
    float p[4][6] = {{0}}, g[4][6];
    dsopt_tensor t[4];
    open_seeded(0);
    for (int i = 0; i < 24; i++) g[i / 6][i % 6] = (float)(i % 6 + 1);
    for (int i = 0; i < 4; i++) t[i] = rt_tensor(called[i], NULL, DSOPT_F32, p[i], g[i], 2, shape);
    dsopt_optimizer *o = rt_optimizer(&rt, rt_text(&rt, arms_text), t, 4);
    rt_step(&rt, o);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++)
            CHECK(p[i][k] == after[i][k], "%s[%d]: %g", called[i], k, (double)p[i][k]);
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

int main(void)
{
    static const char *const backends[] = {"interp", "c", "c"};
    for (int k = 0; k < 3; k++) {
        backend = backends[k];
        threads = k == 2 ? 2 : 1;
        modes();
        dead_states();
        buffers();
        inputs();
        arrays();
        rates();
        resume();
        draws();
        names();
        name_arms();
        refused();
    }
    return check_done();
}
