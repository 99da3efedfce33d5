/* Draws: Philox against the published vectors, the distributions by moments and by
 * Kolmogorov-Smirnov, and that what should matter does.
 *
 *   in:  a million ds_normal(lo, hi, site, 0 … 999999) of each of a few keys
 *   out: mean 0, variance 1, kurtosis 3, distance from the normal distribution below 1.95 / sqrt n
 *
 * Everything is fixed, so that a bound once met is met always. */
#include "codegen/math/ds_math.h"
#include "tests/check.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1000000 };

/* Random123's kat_vectors, philox4x32 with 10 rounds. */
static void check_philox(void)
{
    static const struct {
        ds_u32 counter[4], key[2], words[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        ds_u32 x[4];
        memcpy(x, known[i].counter, sizeof x);
        ds_philox(x, known[i].key[0], known[i].key[1]);
        CHECK(memcmp(x, known[i].words, sizeof x) == 0, "vector %zu: %08x %08x %08x %08x", i, x[0],
              x[1], x[2], x[3]);
    }
    /* The key's halves and the index come through unharmed. */
    ds_u32 want[4] = {0x9abcdef0, 0x12345678, 7, 0}, got[4];
    ds_philox(want, 0xffffffff, 0x80000001);
    ds_k_draw(got, 4294967295.0, 2147483649.0, 7, 0x123456789abcdef0);
    CHECK(memcmp(got, want, sizeof got) == 0, "counter");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

static double uniform_cdf(double x)
{
    return x;
}

/* v: N draws, sorted by this. D sqrt(n) exceeds 1.95 once in a thousand. */
static void check_distribution(const char *what, double *v, double (*cdf)(double), double mean,
                               double variance, double kurtosis)
{
    double m1 = 0, m2 = 0, m4 = 0, distance = 0, root = sqrt((double)N);
    for (int i = 0; i < N; i++) m1 += v[i];
    m1 /= N;
    for (int i = 0; i < N; i++) {
        double d = (v[i] - mean) * (v[i] - mean);
        m2 += d;
        m4 += d * d;
    }
    m2 /= N;
    m4 /= N;
    qsort(v, N, sizeof *v, by_value);
    for (int i = 0; i < N; i++) {
        double at = cdf(v[i]);
        distance = fmax(distance, fmax(at - (double)i / N, (double)(i + 1) / N - at));
    }
    CHECK(fabs(m1 - mean) < 4 * sqrt(variance) / root, "%s: mean %g", what, m1);
    CHECK(fabs(m2 - variance) < 6 * variance / root, "%s: variance %g", what, m2);
    CHECK(fabs(m4 / (m2 * m2) - kurtosis) < 40 / root, "%s: kurtosis %g", what, m4 / (m2 * m2));
    CHECK(distance * root < 1.95, "%s: distance %g", what, distance * root);
}

static double correlation(const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < N; i++) sum += a[i] * b[i];
    return sum / N;
}

int main(void)
{
    static double v[N], w[N];
    static const double keys[][2] = {{0, 0}, {1, 0}, {0, 1}, {4294967295.0, 4294967295.0}};
    check_philox();
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        double lo = keys[k][0], hi = keys[k][1], sum = 0, worst = 0;
        for (int i = 0; i < N; i++) {
            v[i] = ds_normal(lo, hi, 1, (ds_u64)i << (k * 10));
            worst = fmax(worst, fabs(v[i]));
            if ((float)v[i] != ds_normalf(lo, hi, 1, (ds_u64)i << (k * 10)))
                CHECK(0, "normal %d of key %zu: f32 is not f64 rounded", i, k);
        }
        CHECK(worst > 4.5 && worst < 8.5, "the largest of a million is %g", worst);
        check_distribution("normal", v, normal_cdf, 0, 1, 3);
        for (int i = 0; i < N; i++) {
            v[i] = ds_uniform(lo, hi, 1, (ds_u64)i);
            if (v[i] != (double)ds_uniformf(lo, hi, 1, (ds_u64)i) || !(v[i] >= 0 && v[i] < 1))
                CHECK(0, "uniform %d of key %zu: %a", i, k, v[i]);
        }
        check_distribution("uniform", v, uniform_cdf, 0.5, 1.0 / 12, 1.8);
        for (int i = 0; i < N; i++) {
            double r = ds_rademacher(lo, hi, 1, (ds_u64)i);
            sum += r;
            if (fabs(r) != 1 || (float)r != ds_rademacherf(lo, hi, 1, (ds_u64)i))
                CHECK(0, "rademacher %d of key %zu: %g", i, k, r);
        }
        CHECK(fabs(sum) < 4 * sqrt((double)N), "rademacher: sum %g", sum);
    }
    /* Another site, half of a key or element: another draw. */
    for (int i = 0; i < N; i++) v[i] = ds_normal(5, 6, 0, (ds_u64)i);
    for (int other = 0; other < 4; other++) {
        for (int i = 0; i < N; i++)
            w[i] =
                ds_normal(5 + (other == 0), 6 + (other == 1), other == 2, (ds_u64)i + (other == 3));
        CHECK(fabs(correlation(v, w)) < 4 / sqrt((double)N), "correlation with other %d: %g", other,
              correlation(v, w));
    }
    return check_done();
}
