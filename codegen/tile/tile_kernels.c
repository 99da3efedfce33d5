/* tile_kernels.c - the tile operators of one ISA level: compiled once per level, with DS_TILE_LEVEL
 * naming it.
 *
 * Requires: -O3 -fno-trapping-math -fno-math-errno -ffp-contract=off and the level's own flags:
 * loops are plain C that the compiler turns into vector code. Ensures: the same bits at every
 * level, those of the scalar expressions of ops.def.
 *
 *     TILE(axpby, F, (S0, V0, S1, V1), ADD(MUL(S0, V0), MUL(S1, V1)))
 *     ->  static void t_axpby(long n, float *out, float S0, const float *p_V0, float S1, …)
 *         { for (long i = 0; i < n; i++) { …; out[i] = S0 * V0 + S1 * V1; } }
 */
#include "codegen/abi.h"
#include "codegen/fn.h"
#include "codegen/tile/tile.h"
#include "codegen/tile/tile_map.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

/* Inputs and outputs of a call are the same memory or disjoint: iterations are independent. */
#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
/* Short loops that become vectors only if they are not unrolled before. */
#ifdef __clang__
#define ROLLED INDEPENDENT
#else
#define ROLLED INDEPENDENT _Pragma("GCC unroll 1")
#endif
#define INLINE static inline __attribute__((always_inline, unused))

/* ---- the operators of ops.def as functions of floats ----------------------------------------- */

#define FN(name) ds_##name##f
#define OP(E, name, spelling, arity, types, expr) SCALAR_##arity##_##types(E, expr)
#define SCALAR(E, type, params, expr)                                                              \
    INLINE type E params                                                                           \
    {                                                                                              \
        return expr;                                                                               \
    }
#define SCALAR_1_NUM(E, expr) SCALAR(E, float, (float a), expr)
#define SCALAR_2_NUM(E, expr) SCALAR(E, float, (float a, float b), expr)
#define SCALAR_3_NUM(E, expr) SCALAR(E, float, (float a, float b, float c), expr)
#define SCALAR_1_CMP(E, expr) SCALAR(E, int, (float a), expr)
#define SCALAR_2_CMP(E, expr) SCALAR(E, int, (float a, float b), expr)
#define SCALAR_1_LOGIC(E, expr) SCALAR(E, int, (int a), expr)
#define SCALAR_2_LOGIC(E, expr) SCALAR(E, int, (int a, int b), expr)
#define SCALAR_3_SELECT(E, expr)                                                                   \
    SCALAR(select_float, float, (int a, float b, float c), expr)                                   \
    SCALAR(select_int, int, (int a, int b, int c), expr)
#include "frontend/ops.def"
#define SELECT(a, b, c) _Generic((b), float : select_float, int : select_int)(a, b, c)

#define REDUCE(E, name, arity, types, identity, combine, merge)                                    \
    INLINE double combine_##E(double a, double x, double y)                                        \
    {                                                                                              \
        (void)y;                                                                                   \
        return combine;                                                                            \
    }                                                                                              \
    INLINE double merge_##E(double a, double b)                                                    \
    {                                                                                              \
        return merge;                                                                              \
    }                                                                                              \
    INLINE double identity_##E(void)                                                               \
    {                                                                                              \
        return identity;                                                                           \
    }
#include "frontend/ops.def"

/* ---- what tile.def adds to them -------------------------------------------------------------- */

/* x / d, correctly rounded, for the square root x of a float and r = 1 / d: Markstein's theorem, as
 * the quotient of a root and a d of DIVIDES is a normal number or 0. What is not (0, inf, NaN) has
 * its quotient in x * r, and the corrected one is not above 0. */
#ifdef __FMA__
#define FAST_DIVISION 1
INLINE float divide_root(float x, float d, float r)
{
    float q = x * r;
    float better = __builtin_fmaf(__builtin_fmaf(-q, d, x), r, q);
    return __builtin_fabsf(better) > 0 ? better : q;
}
#else
#define FAST_DIVISION 0
INLINE float divide_root(float x, float d, float r)
{
    (void)r;
    return x / d;
}
#endif
#define DIVIDES(d) (FAST_DIVISION && (d) > 0x1p-40f && (d) < 0x1p40f)
#define DIVS(x, d) (fast ? divide_root(x, d, R_##d) : (x) / (d))
INLINE float SQ(float x)
{
    return MUL(x, x);
}
#define O1(x) (T1 = (x))
#define O2(x) (T2 = (x))
#define O3(x) (T3 = (x))
#define WITH(x, y) ((void)(x), (y))

/* Floats at any address: a caller's memory need not even be aligned to its elements. */
typedef float AnyFloat __attribute__((aligned(1)));
typedef double AnyDouble __attribute__((aligned(1)));
typedef unsigned short AnyHalf __attribute__((aligned(1))); /* the bits of a bf16 or f16 */

/* Params as declared (P_), read at an iteration's start (L_), written at its end (W_), prepared
 * before the loop (Q_), and what must hold for division by multiplication (D_). */
#define P_V0 const AnyFloat *p_V0
#define L_V0 const float V0 = p_V0[i];
#define W_V0
#define Q_V0
#define D_V0
#define P_V1 const AnyFloat *p_V1
#define L_V1 const float V1 = p_V1[i];
#define W_V1
#define Q_V1
#define D_V1
#define P_V2 const AnyFloat *p_V2
#define L_V2 const float V2 = p_V2[i];
#define W_V2
#define Q_V2
#define D_V2
#define P_V3 const AnyFloat *p_V3
#define L_V3 const float V3 = p_V3[i];
#define W_V3
#define Q_V3
#define D_V3
#define P_V4 const AnyFloat *p_V4
#define L_V4 const float V4 = p_V4[i];
#define W_V4
#define Q_V4
#define D_V4
#define P_V5 const AnyFloat *p_V5
#define L_V5 const float V5 = p_V5[i];
#define W_V5
#define Q_V5
#define D_V5
#define P_B0 const int *p_B0
#define L_B0 const int B0 = p_B0[i];
#define W_B0
#define Q_B0
#define D_B0
#define P_B1 const int *p_B1
#define L_B1 const int B1 = p_B1[i];
#define W_B1
#define Q_B1
#define D_B1
#define P_B2 const int *p_B2
#define L_B2 const int B2 = p_B2[i];
#define W_B2
#define Q_B2
#define D_B2
#define P_S0 float S0
#define L_S0
#define W_S0
#define Q_S0
#define D_S0
#define P_S1 float S1
#define L_S1
#define W_S1
#define Q_S1
#define D_S1
#define P_S2 float S2
#define L_S2
#define W_S2
#define Q_S2
#define D_S2
#define P_S3 float S3
#define L_S3
#define W_S3
#define Q_S3
#define D_S3
#define P_S4 float S4
#define L_S4
#define W_S4
#define Q_S4
#define D_S4
#define P_S5 float S5
#define L_S5
#define W_S5
#define Q_S5
#define D_S5
#define P_S6 float S6
#define L_S6
#define W_S6
#define Q_S6
#define D_S6
#define P_S7 float S7
#define L_S7
#define W_S7
#define Q_S7
#define D_S7
#define P_C0 int C0
#define L_C0
#define W_C0
#define Q_C0
#define D_C0
#define P_C1 int C1
#define L_C1
#define W_C1
#define Q_C1
#define D_C1
#define P_D0 float D0
#define L_D0
#define W_D0
#define Q_D0 const float R_D0 = 1 / D0;
#define D_D0 &&DIVIDES(D0)
#define P_D1 float D1
#define L_D1
#define W_D1
#define Q_D1 const float R_D1 = 1 / D1;
#define D_D1 &&DIVIDES(D1)
#define P_O1 AnyFloat *p_O1
#define L_O1 float T1;
#define W_O1 p_O1[i] = T1;
#define Q_O1
#define D_O1
#define P_O2 AnyFloat *p_O2
#define L_O2 float T2;
#define W_O2 p_O2[i] = T2;
#define Q_O2
#define D_O2
#define P_O3 AnyFloat *p_O3
#define L_O3 float T3;
#define W_O3 p_O3[i] = T3;
#define Q_O3
#define D_O3
#define A_V0 p_V0
#define A_V1 p_V1
#define A_V2 p_V2
#define A_V3 p_V3
#define A_V4 p_V4
#define A_V5 p_V5
#define A_B0 p_B0
#define A_B1 p_B1
#define A_B2 p_B2
#define A_S0 S0
#define A_S1 S1
#define A_S2 S2
#define A_S3 S3
#define A_S4 S4
#define A_S5 S5
#define A_S6 S6
#define A_S7 S7
#define A_C0 C0
#define A_C1 C1

/* The same, `at` elements on. */
#define T_V0 p_V0 + at
#define T_V1 p_V1 + at
#define T_V2 p_V2 + at
#define T_V3 p_V3 + at
#define T_B0 p_B0 + at
#define T_S0 S0
#define T_S1 S1

#define TYPE_F float
#define TYPE_B int
#define OUT_F AnyFloat
#define OUT_B int

#define LOOP(type, params, expr, how)                                                              \
    INDEPENDENT for (long i = 0; i < n; i++)                                                       \
    {                                                                                              \
        enum { fast = how };                                                                       \
        TILE_EACH(L_, params)                                                                      \
        const TYPE_##type result = expr;                                                           \
        TILE_EACH(W_, params)                                                                      \
        out[i] = result;                                                                           \
    }
#define TILE(name, type, params, expr)                                                             \
    static void t_##name(long n, OUT_##type *out, TILE_LIST(P_, params))                           \
    {                                                                                              \
        TILE_EACH(Q_, params)                                                                      \
        if (1 TILE_EACH(D_, params)) {                                                             \
            LOOP(type, params, expr, FAST_DIVISION)                                                \
        } else {                                                                                   \
            LOOP(type, params, expr, 0)                                                            \
        }                                                                                          \
    }

/* Lane i mod 128 takes element i. One row of 128 after the other: reading several at a time would
 * save loads of accumulators, but memory is read at a third of its speed then. Whole rows have a
 * loop of their own, whose length the compiler knows: it reads memory as fast as it can be read. */
#define LANES(params, x, y, reduction, count)                                                      \
    INDEPENDENT for (long j = 0; j < (count); j++)                                                 \
    {                                                                                              \
        const long i = at + j;                                                                     \
        TILE_EACH(L_, params)                                                                      \
        lanes[j] = combine_##reduction(lanes[j], (double)(x), (double)(y));                        \
    }
#define TILE_RED(name, reduction, params, x, y)                                                    \
    static void r_##name(long n, double *lanes, TILE_LIST(P_, params))                             \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        long at = 0;                                                                               \
        for (; at + DS_LANES <= n; at += DS_LANES) {                                               \
            LANES(params, x, y, reduction, DS_LANES)                                               \
        }                                                                                          \
        LANES(params, x, y, reduction, n - at)                                                     \
    }                                                                                              \
    ROWS(name, reduction, params, x, y)                                                            \
    COLS(name, reduction, params, x, y)                                                            \
    MATS(name, reduction, params, x, y)
/* Rows of w elements. What a row does not reach of its 128 lanes folds to nothing: the first Q lanes
 * take the first Q elements, Q being a power of two that is at most w; what comes after them is
 * folded onto them if Q lanes are all that there are after the first fold, else it is taken by the
 * lanes again. */
#define ROWS(name, reduction, params, x, y)                                                        \
    INLINE void rows_##name(long m, const long w, const long Q, AnyDouble *out,                    \
                            TILE_LIST(P_, params))                                                 \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        for (long r = 0, from = 0; r < m; r++, from += w) {                                        \
            double lanes[DS_LANES];                                                                \
            INDEPENDENT for (long j = 0; j < Q; j++)                                               \
            {                                                                                      \
                const long i = from + j;                                                           \
                TILE_EACH(L_, params)                                                              \
                lanes[j] =                                                                         \
                    combine_##reduction(identity_##reduction(), (double)(x), (double)(y));         \
            }                                                                                      \
            if (Q == DS_LANES) {                                                                   \
                long at = from + Q;                                                                \
                for (; at + Q <= from + w; at += Q) {                                              \
                    LANES(params, x, y, reduction, Q)                                              \
                }                                                                                  \
                LANES(params, x, y, reduction, from + w - at)                                      \
            }                                                                                      \
            for (long j = 0; Q < DS_LANES && j < (Q <= 8 ? Q : w - Q); j++) {                      \
                if (Q <= 8 && j >= w - Q) continue;                                                \
                const long i = from + Q + j;                                                       \
                TILE_EACH(L_, params)                                                              \
                const double next =                                                                \
                    combine_##reduction(identity_##reduction(), (double)(x), (double)(y));         \
                lanes[j] = merge_##reduction(lanes[j], next);                                      \
            }                                                                                      \
            for (long half = Q / 2; half > 0; half /= 2)                                           \
                for (long j = 0; j < half; j++)                                                    \
                    lanes[j] = merge_##reduction(lanes[j], lanes[j + half]);                       \
            out[r] = lanes[0];                                                                     \
        }                                                                                          \
    }                                                                                              \
    /* P >= w lanes, of which those from w on hold the identity. Returns where rows are left. */   \
    INLINE long padded_##name(long n, const long w, const long P, AnyDouble *out,                  \
                              TILE_LIST(P_, params))                                               \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        long from = 0;                                                                             \
        for (; from + P <= n; from += w) {                                                         \
            double lanes[DS_LANES];                                                                \
            ROLLED for     (long j = 0; j < P; j++)                                               \
            {                                                                                      \
                const long i = from + j;                                                           \
                TILE_EACH(L_, params)                                                              \
                const double first =                                                               \
                    combine_##reduction(identity_##reduction(), (double)(x), (double)(y));         \
                lanes[j] = j < w ? first : identity_##reduction();                                 \
            }                                                                                      \
            for (long half = P / 2; half > 0; half /= 2)                                           \
                for (long j = 0; j < half; j++)                                                    \
                    lanes[j] = merge_##reduction(lanes[j], lanes[j + half]);                       \
            *out++ = lanes[0];                                                                     \
        }                                                                                          \
        return from;                                                                               \
    }                                                                                              \
    static void some_##name(long m, long w, AnyDouble *out, TILE_LIST(P_, params))                 \
    {                                                                                              \
        const long at = w <= 4 || w == 9 ? 0                                                       \
                        : w <= 8         ? padded_##name(m * w, w, 8, out, TILE_LIST(A_, params))  \
                        : w < 16         ? padded_##name(m * w, w, 16, out, TILE_LIST(A_, params)) \
                        : w == 16        ? 0                                                       \
                        : w < 32         ? padded_##name(m * w, w, 32, out, TILE_LIST(A_, params)) \
                        : w == 32        ? 0                                                       \
                        : w < 64         ? padded_##name(m * w, w, 64, out, TILE_LIST(A_, params)) \
                                         : 0;                                                      \
        m -= at / w;                                                                               \
        out += at / w;                                                                             \
        switch (w) {                                                                               \
        case 1: rows_##name(m, 1, 1, out, TILE_LIST(A_, params)); break;                           \
        case 2: rows_##name(m, 2, 2, out, TILE_LIST(A_, params)); break;                           \
        case 3: rows_##name(m, 3, 2, out, TILE_LIST(A_, params)); break;                           \
        case 4: rows_##name(m, 4, 4, out, TILE_LIST(A_, params)); break;                           \
        case 9: rows_##name(m, 9, 8, out, TILE_LIST(A_, params)); break;                           \
        case 16: rows_##name(m, 16, 16, out, TILE_LIST(A_, params)); break;                        \
        default:                                                                                   \
            if (w < 8)                                                                             \
                rows_##name(m, w, 4, out, TILE_LIST(T_, params));                                  \
            else if (w < 16)                                                                       \
                rows_##name(m, w, 8, out, TILE_LIST(T_, params));                                  \
            else if (w < 32)                                                                       \
                rows_##name(m, w, 16, out, TILE_LIST(T_, params));                                 \
            else if (w < 64)                                                                       \
                rows_##name(m, w, 32, out, TILE_LIST(T_, params));                                 \
            else if (w < DS_LANES)                                                                 \
                rows_##name(m, w, 64, out, TILE_LIST(T_, params));                                 \
            else                                                                                   \
                rows_##name(m, w, DS_LANES, out, TILE_LIST(T_, params));                           \
        }                                                                                          \
    }                                                                                              \
    static void w_##name(long n, long w, AnyDouble *out, TILE_LIST(P_, params))                    \
    {                                                                                              \
        const long m = n / w, at = m * w;                                                          \
        some_##name(m, w, out, TILE_LIST(A_, params));                                             \
        if (at < n) some_##name(1, n - at, out + m, TILE_LIST(T_, params));                        \
    }
/* Columns of rows of w elements. Few of them are kept in registers: P of them, of which those from
 * w on are dropped. */
#define COLS(name, reduction, params, x, y)                                                        \
    INLINE long cols_##name(long n, const long w, const long P, AnyDouble *acc,                    \
                            TILE_LIST(P_, params))                                                 \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        double a[16] = {0};                                                                        \
        long from = 0;                                                                             \
        for (long j = 0; j < w; j++) a[j] = acc[j];                                                \
        for (; from + P <= n; from += w) {                                                         \
            INDEPENDENT for (long j = 0; j < P; j++)                                               \
            {                                                                                      \
                const long i = from + j;                                                           \
                TILE_EACH(L_, params)                                                              \
                a[j] = combine_##reduction(a[j], (double)(x), (double)(y));                        \
            }                                                                                      \
        }                                                                                          \
        for (long j = 0; j < w; j++) acc[j] = a[j];                                                \
        return from;                                                                               \
    }                                                                                              \
    static void c_##name(long n, long w, AnyDouble *acc, TILE_LIST(P_, params))                    \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        long from = w == 1   ? cols_##name(n, 1, 1, acc, TILE_LIST(A_, params))                    \
                    : w == 2 ? cols_##name(n, 2, 2, acc, TILE_LIST(A_, params))                    \
                    : w == 3 ? cols_##name(n, 3, 3, acc, TILE_LIST(A_, params))                    \
                    : w == 4 ? cols_##name(n, 4, 4, acc, TILE_LIST(A_, params))                    \
                    : w <= 8 ? cols_##name(n, w, 8, acc, TILE_LIST(A_, params))                    \
                    : w <= 16 ? cols_##name(n, w, 16, acc, TILE_LIST(A_, params))                  \
                             : 0;                                                                  \
        for (; from < n; from += w) {                                                              \
            const long width = n - from < w ? n - from : w;                                        \
            INDEPENDENT for (long j = 0; j < width; j++)                                           \
            {                                                                                      \
                const long i = from + j;                                                           \
                TILE_EACH(L_, params)                                                              \
                acc[j] = combine_##reduction(acc[j], (double)(x), (double)(y));                    \
            }                                                                                      \
        }                                                                                          \
    }
/* Whole matrices of s elements, with columns of their own. */
#define MATS(name, reduction, params, x, y)                                                        \
    INLINE void mats_##name(long n, const long s, const long w, AnyDouble *out,                    \
                            TILE_LIST(P_, params))                                                 \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        for (long from = 0; from < n; from += s, out += w) {                                       \
            double a[DS_PACK];                                                                     \
            INDEPENDENT for (long j = 0; j < w; j++)                                               \
            {                                                                                      \
                const long i = from + j;                                                           \
                TILE_EACH(L_, params)                                                              \
                a[j] = combine_##reduction(identity_##reduction(), (double)(x), (double)(y));      \
            }                                                                                      \
            for (long at = from + w; at < from + s; at += w) {                                     \
                INDEPENDENT for (long j = 0; j < w; j++)                                           \
                {                                                                                  \
                    const long i = at + j;                                                         \
                    TILE_EACH(L_, params)                                                          \
                    a[j] = combine_##reduction(a[j], (double)(x), (double)(y));                    \
                }                                                                                  \
            }                                                                                      \
            for (long j = 0; j < w; j++) out[j] = a[j];                                            \
        }                                                                                          \
    }                                                                                              \
    static void m_##name(long n, long s, long w, AnyDouble *out, TILE_LIST(P_, params))            \
    {                                                                                              \
        if (s == 1)                                                                                \
            mats_##name(n, 1, 1, out, TILE_LIST(A_, params));                                      \
        else if (w == 1)                                                                           \
            mats_##name(n, s, 1, out, TILE_LIST(A_, params));                                      \
        else if (w == 2)                                                                           \
            mats_##name(n, s, 2, out, TILE_LIST(A_, params));                                      \
        else if (w == 4)                                                                           \
            mats_##name(n, s, 4, out, TILE_LIST(A_, params));                                      \
        else if (s == 9 && w == 3)                                                                 \
            mats_##name(n, 9, 3, out, TILE_LIST(A_, params));                                      \
        else if (s == 25 && w == 5)                                                                \
            mats_##name(n, 25, 5, out, TILE_LIST(A_, params));                                     \
        else if (s == 49 && w == 7)                                                                \
            mats_##name(n, 49, 7, out, TILE_LIST(A_, params));                                     \
        else                                                                                       \
            mats_##name(n, s, w, out, TILE_LIST(A_, params));                                      \
    }
/* Of bools only how many are true counts. */
INLINE double flags_ANY(double a, long ones, long n)
{
    return a > 0 || (ones > 0 && n > 0);
}
INLINE double flags_ALL(double a, long ones, long n)
{
    return a * (ones == n);
}
INLINE double flags_COUNT(double a, long ones, long n)
{
    return n > 0 ? a + (double)ones : a;
}
#define TILE_FLAGS(name, reduction, params, x)                                                     \
    static void r_##name(long n, double *lanes, TILE_LIST(P_, params))                             \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        int ones = 0;                                                                              \
        for (long i = 0; i < n; i++) {                                                             \
            TILE_EACH(L_, params)                                                                  \
            ones += (x);                                                                           \
        }                                                                                          \
        lanes[0] = flags_##reduction(lanes[0], ones, n);                                           \
    }                                                                                              \
    static void w_##name(long n, long w, AnyDouble *out, TILE_LIST(P_, params))                    \
    {                                                                                              \
        enum { fast = 0 };                                                                         \
        for (long from = 0; from < n; from += w) {                                                 \
            const long end = n - from < w ? n : from + w;                                          \
            int ones = 0;                                                                          \
            for (long i = from; i < end; i++) {                                                    \
                TILE_EACH(L_, params)                                                              \
                ones += (x);                                                                       \
            }                                                                                      \
            *out++ = flags_##reduction(identity_##reduction(), ones, end - from);                  \
        }                                                                                          \
    }                                                                                              \
    COLS(name, reduction, params, x, 0)                                                            \
    MATS(name, reduction, params, x, 0)
#include "codegen/tile/tile.def"

/* ---- storage and the rest -------------------------------------------------------------------- */

#define CONVERT(name, out_type, in_type, function)                                                 \
    static void name(long n, out_type *out, const in_type *in)                                     \
    {                                                                                              \
        INDEPENDENT for (long i = 0; i < n; i++) out[i] = function(in[i]);                         \
    }
CONVERT(load_bf16, AnyFloat, AnyHalf, ds_f32_from_bf16)
CONVERT(store_bf16, AnyHalf, AnyFloat, ds_bf16_from_f32)
#ifdef __F16C__
/* The instructions round and overflow as ds_f16_from_f32 does; only what they make of NaN is not
 * canonical. */
static void load_f16(long n, AnyFloat *out, const AnyHalf *in)
{
    long i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps((float *)(out + i),
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + i))));
    for (; i < n; i++) out[i] = ds_f32_from_f16(in[i]);
}
static void store_f16(long n, AnyHalf *out, const AnyFloat *in)
{
    const __m128i canonical = _mm_set1_epi16(0x7e00), infinity = _mm_set1_epi16(0x7c00);
    long i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i h =
            _mm256_cvtps_ph(_mm256_loadu_ps((const float *)(in + i)), _MM_FROUND_TO_NEAREST_INT);
        __m128i size = _mm_and_si128(h, _mm_set1_epi16(0x7fff));
        h = _mm_blendv_epi8(h, canonical, _mm_cmpgt_epi16(size, infinity));
        _mm_storeu_si128((__m128i *)(out + i), h);
    }
    for (; i < n; i++) out[i] = ds_f16_from_f32(in[i]);
}
#else
CONVERT(load_f16, AnyFloat, AnyHalf, ds_f32_from_f16)
CONVERT(store_f16, AnyHalf, AnyFloat, ds_f16_from_f32)
#endif

#define DRAW(name)                                                                                 \
    static void name(long n, AnyFloat *out, double lo, double hi, unsigned site, long first)       \
    {                                                                                              \
        for (long i = 0; i < n; i++) out[i] = ds_##name##f(lo, hi, site, (ds_u64)(first + i));     \
    }
DRAW(normal)
DRAW(uniform)
DRAW(rademacher)

/* ---- vectors --------------------------------------------------------------------------------- */

#define SPREAD(suffix, type, vec_type, get)                                                          \
    /* Of P >= w values that are written the next row's take the place of those from w on. */      \
    INLINE long rows_over##suffix(long n, const long w, const long P, type *out,                   \
                                  const vec_type *vec)                                             \
    {                                                                                              \
        long r = 0;                                                                                \
        for (; r * w + P <= n; r++) {                                                              \
            const type one = get(vec[r]);                                                          \
            INDEPENDENT for (long j = 0; j < P; j++) out[r * w + j] = one;                         \
        }                                                                                          \
        return r;                                                                                  \
    }                                                                                              \
    static void spread_row##suffix(long n, long w, type *out, const vec_type *vec)                 \
    {                                                                                              \
        long r = w == 1    ? rows_over##suffix(n, 1, 1, out, vec)                                  \
                 : w == 2  ? rows_over##suffix(n, 2, 2, out, vec)                                  \
                 : w == 3  ? rows_over##suffix(n, 3, 3, out, vec)                                  \
                 : w <= 4  ? rows_over##suffix(n, 4, 4, out, vec)                                  \
                 : w <= 8  ? rows_over##suffix(n, w, 8, out, vec)                                  \
                 : w <= 16 ? rows_over##suffix(n, w, 16, out, vec)                                 \
                           : 0;                                                                    \
        for (; r * w < n; r++) {                                                                   \
            const long width = n - r * w < w ? n - r * w : w;                                      \
            const type one = get(vec[r]);                                                          \
            INDEPENDENT for (long j = 0; j < width; j++) out[r * w + j] = one;                     \
        }                                                                                          \
    }                                                                                              \
    static void spread_col##suffix(long n, long w, type *out, const vec_type *vec)                 \
    {                                                                                              \
        for (long from = 0; from < n; from += w) {                                                 \
            const long width = n - from < w ? n - from : w;                                        \
            INDEPENDENT for (long j = 0; j < width; j++) out[from + j] = get(vec[j]);                   \
        }                                                                                          \
    }                                                                                              \
    INLINE void cols_of##suffix(long n, const long s, const long w, type *out, const vec_type *vec)\
    {                                                                                              \
        for (long from = 0; from < n; from += s, vec += w) {                                       \
            for (long at = from; at < from + s; at += w) {                                         \
                INDEPENDENT for (long j = 0; j < w; j++) out[at + j] = get(vec[j]);                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    INLINE void cols_over##suffix(long n, const long s, const long w, const long P, type *out,     \
                                  const vec_type *vec)                                             \
    {                                                                                              \
        const vec_type *end = vec + n / s * w;                                                     \
        long from = 0;                                                                             \
        for (; from + s + P <= n && vec + P <= end; from += s, vec += w) {                         \
            type some[16];                                                                         \
            for (long j = 0; j < P; j++) some[j] = get(vec[j]);                                    \
            for (long at = from; at < from + s; at += w) {                                         \
                INDEPENDENT for (long j = 0; j < P; j++) out[at + j] = some[j];                    \
            }                                                                                      \
        }                                                                                          \
        cols_of##suffix(n - from, s, w, out + from, vec);                                          \
    }                                                                                              \
    static void spread_mat##suffix(long n, long s, long w, type *out, const vec_type *vec)         \
    {                                                                                              \
        if (s == 1)                                                                                \
            cols_of##suffix(n, 1, 1, out, vec);                                                    \
        else if (s == 9 && w == 3)                                                                 \
            cols_over##suffix(n, 9, 3, 4, out, vec);                                               \
        else if (w == 2)                                                                           \
            cols_over##suffix(n, s, 2, 2, out, vec);                                               \
        else if (w <= 4)                                                                           \
            cols_over##suffix(n, s, w, 4, out, vec);                                               \
        else if (w <= 8)                                                                           \
            cols_over##suffix(n, s, w, 8, out, vec);                                               \
        else if (w <= 16)                                                                          \
            cols_over##suffix(n, s, w, 16, out, vec);                                              \
        else                                                                                       \
            cols_of##suffix(n, s, w, out, vec);                                                    \
    }
#define AS_IT_IS(x) (x)
#define IS_TRUE(x) ((x) != 0)
SPREAD(, AnyFloat, AnyFloat, AS_IT_IS)
SPREAD(_b, int, unsigned char, IS_TRUE)
SPREAD(_d, int, AnyDouble, IS_TRUE)

CONVERT(copy_d, AnyDouble, AnyDouble, AS_IT_IS)
CONVERT(widen, AnyDouble, AnyFloat, (double))
CONVERT(narrow, AnyFloat, AnyDouble, (float))
CONVERT(bytes, unsigned char, int, IS_TRUE)

#define WIDE_NUM AnyDouble
#define WIDE_CMP int
#define WIDE_SELECT AnyDouble
#define CHOICE_NUM AnyDouble
#define CHOICE_CMP AnyDouble
#define CHOICE_SELECT int
#define TILE_WIDE(E, types)                                                                        \
    static void wide_##E(long n, WIDE_##types *out, const CHOICE_##types *a, const AnyDouble *b,   \
                         const AnyDouble *c)                                                       \
    {                                                                                              \
        INDEPENDENT for (long i = 0; i < n; i++) out[i] = fn64_##E(a[i], b[i], c[i]);              \
    }
#include "codegen/tile/wide.def"

static void fill_d(long n, AnyDouble *out, double v)
{
    for (long i = 0; i < n; i++) out[i] = v;
}

static void lanes(double *lanes, double v)
{
    for (int j = 0; j < DS_LANES; j++) lanes[j] = v;
}

/* The lanes' own tree: reduce_fold_lanes, inlined; and the aligned tree over n values. Both write
 * over what they take. */
#define REDUCE(E, name, arity, types, identity, combine, merge)                                    \
    static double fold_##E(double *lanes)                                                          \
    {                                                                                              \
        for (int half = DS_LANES / 2; half > 0; half /= 2) {                                       \
            INDEPENDENT for (int j = 0; j < half; j++)                                             \
            {                                                                                      \
                const double a = lanes[j], b = lanes[j + half];                                    \
                lanes[j] = merge;                                                                  \
            }                                                                                      \
        }                                                                                          \
        return lanes[0];                                                                           \
    }                                                                                              \
    static double tree_##E(long n, AnyDouble *v)                                                   \
    {                                                                                              \
        for (long pairs; n > 1; n -= pairs) {                                                      \
            pairs = n / 2;                                                                         \
            INDEPENDENT for (long i = 0; i < pairs; i++)                                           \
            {                                                                                      \
                const double a = v[2 * i], b = v[2 * i + 1];                                       \
                v[i] = merge;                                                                      \
            }                                                                                      \
            if (n % 2) v[pairs] = v[n - 1];                                                        \
        }                                                                                          \
        return v[0];                                                                               \
    }
#include "frontend/ops.def"

#define TABLE_(level) tile_table_##level
#define TABLE(level) TABLE_(level)
const TileTable TABLE(DS_TILE_LEVEL) = {{
#define TILE(name, type, params, expr) [TILE_##name] = (TileFn)t_##name,
#define TILE_RED(name, reduction, params, x, y)                                                    \
    [TILE_RED_##name] = (TileFn)r_##name, [TILE_ROW_##name] = (TileFn)w_##name,                    \
    [TILE_COL_##name] = (TileFn)c_##name, [TILE_MAT_##name] = (TileFn)m_##name,
#include "codegen/tile/tile.def"
#define REDUCE(E, name, arity, types, identity, combine, merge)                                    \
    [TILE_FOLD_##E] = (TileFn)fold_##E, [TILE_TREE_##E] = (TileFn)tree_##E,
#include "frontend/ops.def"
    [TILE_LOAD_F16] = (TileFn)load_f16,
    [TILE_LOAD_BF16] = (TileFn)load_bf16,
    [TILE_STORE_F16] = (TileFn)store_f16,
    [TILE_STORE_BF16] = (TileFn)store_bf16,
    [TILE_NORMAL] = (TileFn)normal,
    [TILE_UNIFORM] = (TileFn)uniform,
    [TILE_RADEMACHER] = (TileFn)rademacher,
    [TILE_LANES] = (TileFn)lanes,
    [TILE_SPREAD_ROW] = (TileFn)spread_row,
    [TILE_SPREAD_COL] = (TileFn)spread_col,
    [TILE_SPREAD_MAT] = (TileFn)spread_mat,
    [TILE_SPREAD_ROW_B] = (TileFn)spread_row_b,
    [TILE_SPREAD_COL_B] = (TileFn)spread_col_b,
    [TILE_SPREAD_MAT_B] = (TileFn)spread_mat_b,
    [TILE_SPREAD_ROW_D] = (TileFn)spread_row_d,
    [TILE_SPREAD_COL_D] = (TileFn)spread_col_d,
    [TILE_SPREAD_MAT_D] = (TileFn)spread_mat_d,
    [TILE_FILL_D] = (TileFn)fill_d,
    [TILE_COPY_D] = (TileFn)copy_d,
    [TILE_WIDEN] = (TileFn)widen,
    [TILE_NARROW] = (TileFn)narrow,
    [TILE_BYTES] = (TileFn)bytes,
#define TILE_WIDE(E, types) [TILE_WIDE_##E] = (TileFn)wide_##E,
#include "codegen/tile/wide.def"
}};
