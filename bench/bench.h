/* bench.h - what the parts of bench_step share: a case, its contestants, and the statistics of
 * paired rounds.
 *
 *     case    adamw f32, 2 threads, 1 tensor of 1048576
 *     rounds  every contestant in turn, 30 times and more:
 *             libtcc 0.526 ns, gcc 0.619 ns, ratio 0.85 [0.84, 0.86]
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct BenchRule {
    const char *label;   /* "sgd-momentum" */
    const char *name;    /* standard library name */
    const char *defines; /* as dsopt_program_options.defines, or NULL */
    const char *torch;   /* how bench_torch.py calls it; NULL: torch has none */
    const char *text;    /* a rule of the benchmark's own; NULL: the standard library's */
    bool matrix;         /* tensors are square matrices */
    int bytes_read;      /* per element, where the plan's count is not what moves; 0: the plan's */
} BenchRule;

typedef struct BenchCase {
    const BenchRule *rule;
    const char *dtype; /* "f32", "bf16": p, g and states */
    int threads;
    int64_t tensors, elements;     /* elements: of all tensors together */
    int64_t shape[4];              /* of a tensor */
    int ndim;
    int bytes_read, bytes_written; /* per element, by the plan */
    bool elementwise;              /* the rule has one sweep, and nothing is reduced in it */
} BenchCase;

/* One way to take the step. run() takes n steps and returns their time in nanoseconds. */
typedef struct Contestant Contestant;
struct Contestant {
    const char *name; /* "libtcc", "gcc", "stream", "torch-fused", "torch-foreach" */
    double (*run)(Contestant *c, int n);
    void (*close)(Contestant *c);
    void *self;
    double *ns; /* per round, per step */
};

/* Each returns false and says why on stderr where the contestant cannot take part. */
bool open_dsopt(Contestant *c, const char *name, const char *backend, const BenchCase *bc);
bool open_stream(Contestant *c, const BenchCase *bc);
bool open_torch(Contestant *c, const char *name, const char *python, const BenchCase *bc);

double bench_now(void);                /* nanoseconds */
double bench_median(double *v, int n); /* sorts v */
/* Median of the paired ratios a[i]/b[i], and its 95 % interval from the order statistics of the
 * sign test. */
void bench_ratio(const double *a, const double *b, int n, double *median, double *lo, double *hi);
/* Of the step's plan: bytes per element, and whether the rule is element-wise; false: the rule does
 * not compile. */
bool bench_plan(BenchCase *bc);
/* The optimizers of the standard library, with matrices for those that go by shape; `*count` of
 * them. */
BenchRule *bench_stdlib(size_t *count);
/* Time from source to first step, and of its parts. */
void bench_latency(bool csv);
#endif
