/* swap.c - the averages that rules of the library keep for evaluation: `swap` exchanges them with
 * the parameters, twice is nothing, and what lies between is the average as C computes it.
 *
 *     weight_ema(sgd), 5 steps;  dsopt_run(o, "swap")   ->   p is decay*avg + (1 - decay)*p of them
 */
#include "rt.h"

enum { N = 3, STEPS = 5 };

/* Steps of SGD with rate 0.5, and how the average goes on from step to step. */
typedef float Average(float avg, float p, int t);

static float moving(float avg, float p, int t)
{
    const float keep = 0.75f, take = 0.25f;
    return t == 1 ? p : keep * avg + take * p;
}

static float late(float avg, float p, int t)
{
    const double mu = t - 2 > 1 ? 1.0 / (t - 2) : 1; /* t0 = 1 */
    return mu == 1 ? p : avg + (float)mu * (p - avg);
}

static void check_rule(const char *rule, const char *set, double value, Average *average)
{
    Rt r;
    rt_open(&r, 1);
    dsopt_program *prog;
    dsopt_program_options po = {.size = sizeof po, .rule = rule};
    REQUIRE(dsopt_program_load(r.ctx, "sgd", &po, &prog) == DSOPT_OK, "%s",
            dsopt_error_message(r.ctx));
    float p[N] = {1, -2, 3}, g[N] = {0}, want[N], avg[N] = {0}, kept[N];
    memcpy(want, p, sizeof p);
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){N});
    dsopt_optimizer *o = rt_optimizer(&r, prog, &t, 1);
    rt_set(&r, o, NULL, "lr", 0.5);
    rt_set(&r, o, NULL, set, value);
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < N; i++) {
            g[i] = (float)((step * 7 + i * 5) % 11 - 5);
            want[i] -= 0.5f * g[i];
            avg[i] = average(avg[i], want[i], step);
        }
        REQUIRE(dsopt_accumulate(o, 1) == DSOPT_OK && dsopt_step(o) == DSOPT_OK, "%s",
                dsopt_error_message(r.ctx));
    }
    CHECK(memcmp(p, want, sizeof p) == 0, "%s: p", rule);
    memcpy(kept, p, sizeof p);
    REQUIRE(dsopt_run(o, "swap") == DSOPT_OK, "%s", dsopt_error_message(r.ctx));
    for (int i = 0; i < N; i++) CHECK(p[i] == avg[i], "%s: %a for %a", rule, p[i], avg[i]);
    REQUIRE(dsopt_run(o, "swap") == DSOPT_OK, "%s", dsopt_error_message(r.ctx));
    CHECK(memcmp(p, kept, sizeof p) == 0, "%s: twice", rule);
    dsopt_optimizer_destroy(o);
    rt_close(&r);
}

int main(void)
{
    check_rule("weight_ema(sgd)", "decay", 0.75, moving);
    check_rule("asgd(lambd = 0)", "t0", 1, late);
    return check_done();
}
