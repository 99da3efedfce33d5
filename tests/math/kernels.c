/* The rows of kernels.def compiled at one level (LEVEL: o0, sse2, avx2, …), one object each.
 *
 *   in:  -DLEVEL=avx2 -O3 -mavx2 -mfma
 *   out: const Kernel kernels_avx2[], in the order of kernels.def */
#include "codegen/math/ds_math.h"
#include "tests/math/math_test.h"

#define ROW(name, inputs, in, out, expression)                                                     \
    static void run_##name(long n, const void *pa, const void *pb, void *po)                       \
    {                                                                                              \
        const in *a = pa, *b = pb;                                                                 \
        out *restrict o = po;                                                                      \
        (void)b;                                                                                   \
        for (long i = 0; i < n; i++) o[i] = expression;                                            \
    }
#include "tests/math/kernels.def"
#undef ROW

#define PASTE(a, b) a##b
#define TABLE(level) PASTE(kernels_, level)
#define ROW(name, inputs, in, out, expression) run_##name,
const Kernel TABLE(LEVEL)[] = {
#include "tests/math/kernels.def"
};
