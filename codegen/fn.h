/* fn.h - the rows of ops.def as C functions, for the parts that compute here: folding and the
 * interpreter.
 *
 * Requires round to nearest, no flush to zero, -ffp-contract=off, FLT_EVAL_METHOD 0. Ensures:
 * fn32_X and fn64_X compute what row X says, in f32 and f64; truth values are ints 0 and 1.
 * Functions named by rows that ds_math.h has no need to write are here, too: they are exact, or
 * single IEEE operations.
 *
 *     OP(MIN, "min", …, a < b || a != a ? a : b)
 *  -> float fn32_MIN(float a, float b, float c);   double fn64_MIN(double a, double b, double c);
 */
#ifndef CODEGEN_FN_H
#define CODEGEN_FN_H
#include "codegen/math/ds_math.h"
#include <float.h>

#if FLT_EVAL_METHOD != 0
#error "f32 must be computed in f32: build with -msse2 -mfpmath=sse"
#endif

static inline float ds_absf(float x)
{
    return __builtin_fabsf(x);
}
static inline double ds_abs(double x)
{
    return __builtin_fabs(x);
}
static inline float ds_sqrtf(float x)
{
    return __builtin_sqrtf(x);
}
static inline double ds_sqrt(double x)
{
    return __builtin_sqrt(x);
}
static inline float ds_fmaf(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
static inline double ds_fma(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}
static inline float ds_powcf(float x, float y)
{
    return ds_powf(x, y);
}

/* Operands and result of a row by the way its dtypes combine; T is float or double. */
#define FN_UNUSED __attribute__((unused))
#define FN_ARGS_NUM(T) T a, FN_UNUSED T b, FN_UNUSED T c
#define FN_ARGS_CMP(T) T a, FN_UNUSED T b, FN_UNUSED T c
#define FN_ARGS_LOGIC(T) int a, FN_UNUSED int b, FN_UNUSED int c
#define FN_ARGS_SELECT(T) int a, T b, T c
#define FN_RESULT_NUM(T) T
#define FN_RESULT_CMP(T) int
#define FN_RESULT_LOGIC(T) int
#define FN_RESULT_SELECT(T) T

#define FN(x) ds_##x##f
#define OP(ENUM, name, spelling, arity, types, expr)                                               \
    static inline FN_RESULT_##types(float) fn32_##ENUM(FN_ARGS_##types(float))                     \
    {                                                                                              \
        return expr;                                                                               \
    }
#include "frontend/ops.def"
#undef FN
#define FN(x) ds_##x
#define OP(ENUM, name, spelling, arity, types, expr)                                               \
    static inline FN_RESULT_##types(double) fn64_##ENUM(FN_ARGS_##types(double))                   \
    {                                                                                              \
        return expr;                                                                               \
    }
#include "frontend/ops.def"
#undef FN
#endif
