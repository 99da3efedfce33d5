/* wrappers.c - wrappers of the standard library through the API, with entry points: each is driven
 * as a program would, against the same arithmetic in double.
 *
 *     sam(sgd):  perturb with g moves p to p0 + rho*g/|g|;  the step goes back, then sgd
 */
#include "rt.h"

enum { N = 5000, M = 37 };
static float w[N], b[M], gw[N], gb[M];
static double w0[N], b0[M];

static dsopt_optimizer *make(Rt *r, const char *name, const char *rule)
{
    uint64_t seed = 7;
    for (int i = 0; i < N; i++) w0[i] = w[i] = rt_random(&seed);
    for (int i = 0; i < M; i++) b0[i] = b[i] = rt_random(&seed);
    dsopt_program *p;
    dsopt_program_options po = {.size = sizeof po, .rule = rule};
    REQUIRE(dsopt_program_load(r->ctx, name, &po, &p) == DSOPT_OK, "%s",
            dsopt_error_message(r->ctx));
    dsopt_tensor t[2] = {rt_tensor("w", NULL, DSOPT_F32, w, gw, 2, (int64_t[]){N / 50, 50}),
                         rt_tensor("b", NULL, DSOPT_F32, b, gb, 1, (int64_t[]){M})};
    return rt_optimizer(r, p, t, 2);
}

static void gradients(uint64_t seed)
{
    for (int i = 0; i < N; i++) gw[i] = rt_random(&seed);
    for (int i = 0; i < M; i++) gb[i] = rt_random(&seed);
}

static double norm_of_gradients(void)
{
    double sum = 0;
    for (int i = 0; i < N; i++) sum += (double)gw[i] * gw[i];
    for (int i = 0; i < M; i++) sum += (double)gb[i] * gb[i];
    return sqrt(sum);
}

static void entry(Rt *r, dsopt_optimizer *o, const char *name)
{
    REQUIRE(dsopt_run(o, name) == DSOPT_OK, "%s: %s", name, dsopt_error_message(r->ctx));
}

static bool near(double ours, double theirs)
{
    return fabs(ours - theirs) <= 4e-7 * fmax(1, fabs(theirs));
}

static void sam(const char *backend)
{
    Rt r;
    rt_open_with(&r, backend, NULL, 2);
    dsopt_optimizer *o = make(&r, "sam", "sam(sgd)");
    rt_set(&r, o, NULL, "rho", 0.5);
    rt_set(&r, o, NULL, "lr", 0.1);
    for (int step = 0; step < 3; step++) {
        gradients(100 + (uint64_t)step);
        if (step != 1) { /* the second step has no perturbation before it */
            double n = norm_of_gradients();
            entry(&r, o, "perturb");
            for (int i = 0; i < N; i++)
                CHECK(near(w[i], w0[i] + 0.5 * gw[i] / n), "perturbed w[%d]", i);
            for (int i = 0; i < M; i++)
                CHECK(near(b[i], b0[i] + 0.5 * gb[i] / n), "perturbed b[%d]", i);
            gradients(200 + (uint64_t)step);
        }
        rt_step(&r, o);
        for (int i = 0; i < N; i++) {
            CHECK(near(w[i], w0[i] - 0.1 * gw[i]), "step %d: w[%d]", step, i);
            w0[i] = w[i];
        }
        for (int i = 0; i < M; i++) {
            CHECK(near(b[i], b0[i] - 0.1 * gb[i]), "step %d: b[%d]", step, i);
            b0[i] = b[i];
        }
    }
    dsopt_optimizer_destroy(o);
    rt_close(&r);
}

/* The average of every second place from the third on; swapped in, and out again. */
static void swa(const char *backend)
{
    Rt r;
    rt_open_with(&r, backend, NULL, 1);
    dsopt_optimizer *o = make(&r, "swa", "swa(sgd, first = 3, every = 2)");
    static double sum[N];
    memset(sum, 0, sizeof sum);
    rt_set(&r, o, NULL, "lr", 0.05);
    for (int step = 1; step <= 8; step++) {
        gradients((uint64_t)step);
        rt_step(&r, o);
        for (int i = 0; i < N && step >= 3 && step % 2; i++) sum[i] += w[i];
    }
    static float last[N];
    memcpy(last, w, sizeof w);
    entry(&r, o, "swap");
    for (int i = 0; i < N; i++) CHECK(near(w[i], sum[i] / 3), "average w[%d]", i);
    entry(&r, o, "swap");
    CHECK(memcmp(last, w, sizeof w) == 0, "swapped twice");
    dsopt_optimizer_destroy(o);
    rt_close(&r);
}

int main(void)
{
    static const char *const backends[] = {"interp", "c"};
    for (int i = 0; i < 2; i++) {
        sam(backends[i]);
        swa(backends[i]);
    }
    return check_done();
}
