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

void bench_ratio(const double *a, const double *b, int n, double *median, double *lo, double *hi)
{
    double *r = malloc(sizeof *r * (size_t)n);
    *median = *lo = *hi = NAN;
    if (!r) return;
    for (int i = 0; i < n; i++) r[i] = a[i] / b[i];
    *median = bench_median(r, n);
    /* the normal approximation of the binomial with p = 1/2 */
    int k = (int)floor(n / 2.0 - 1.96 * sqrt(n) / 2);
    if (k < 0) k = 0;
    *lo = r[k];
    *hi = r[n - 1 - k];
    free(r);
}
