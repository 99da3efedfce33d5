/* bench_stats.c - time, medians, and paired ratios with their intervals. */
#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <time.h>

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* How many of n sorted values to leave out at either end, so that the median lies beyond it in at
 * most 2.5 of 100 cases: by the binomial distribution with p = 1/2. Under 6 values: none. */
static int interval_rank(int n)
{
    int k = -1;
    for (double beyond = 0; beyond <= 0.025; k++)
        beyond += exp(lgamma(n + 1) - lgamma(k + 2) - lgamma(n - k) - n * log(2));
    return k > 0 ? k - 1 : 0;
}

void bench_ratio(const double *a, const double *b, int n, double *median, double *lo, double *hi)
{
    double *r = malloc(sizeof *r * (size_t)n);
    *median = *lo = *hi = NAN;
    if (!r) return;
    for (int i = 0; i < n; i++) r[i] = a[i] / b[i];
    *median = bench_median(r, n);
    int k = interval_rank(n);
    *lo = r[k];
    *hi = r[n - 1 - k];
    free(r);
}
