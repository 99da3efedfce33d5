/* What the tests of ds_math.h share: the kernels' table, their inputs and the hash of outputs.
 *
 *   in:  input_fill(IN_POWF, 0, 256, a, b); kernels_avx2[KERNEL_powf](256, a, b, out);
 *   out: h = hash_add(h, KERNEL_powf, 256, out), the same bits at every level */
#ifndef DSOPT_TESTS_MATH_TEST_H
#define DSOPT_TESTS_MATH_TEST_H

#include <stddef.h>
#include <stdint.h>

typedef void (*Kernel)(long n, const void *a, const void *b, void *out);

enum KernelName {
#define ROW(name, inputs, in, out, expression) KERNEL_##name,
#include "tests/math/kernels.def"
#undef ROW
    KERNEL_COUNT
};

typedef enum Inputs {
    IN_F32,
    IN_U16,
    IN_POWF,
    IN_MODF,
    IN_EXP,
    IN_LOG,
    IN_POW,
    IN_POWC,
    IN_MOD,
    IN_KEY,
    IN_TRIG,
    IN_ATAN2,
    IN_ATAN2F
} Inputs;

enum { BLOCK = 4096 }; /* elements of one call of a kernel; arrays hold BLOCK doubles */

typedef struct KernelInfo {
    const char *name;
    Inputs inputs;
    int out_size;
} KernelInfo;

extern const KernelInfo kernel_info[KERNEL_COUNT];

/* How many inputs there are: a quick run's, or all (of pseudo-random ones, many). */
uint64_t input_count(Inputs inputs, int all);
/* Writes inputs `first` to `first` + n - 1 of the run; b is left alone if there is one argument. */
void input_fill(Inputs inputs, int all, uint64_t first, long n, void *a, void *b);

/* Whether they are pairs of floats. */
int inputs_are_f32(Inputs inputs);

/* FNV-1a over the words of the output, NaNs made one. Starts from HASH_START. */
#define HASH_START 0xcbf29ce484222325u
uint64_t hash_add(uint64_t hash, const KernelInfo *info, long n, const void *out);

/* Bits of numbers; a counter made random. */
uint64_t mix64(uint64_t counter);
float float_of(uint32_t bits);
double double_of(uint64_t bits);
uint32_t bits_of_float(float x);
uint64_t bits_of_double(double x);

#endif
