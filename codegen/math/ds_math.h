/*
 * ds_math.h: elementary functions with the same bits on every compiler and device.
 *
 * What: exp, log, tanh, pow, rsqrt, cbrt, sigmoid, softplus, atan2, floor and remainder in f32 and
 * f64, sin and cos for scalars, exact conversions between f32 and the 16-bit storage types, and
 * counter-based draws. Every function is one fixed sequence of f64 + - * / sqrt, integer operations
 * and selects; no fma, no tables, no libm, no branches (but ds_powc's loop, and sin and cos), so
 * compilers turn loops over them into vector code.
 *
 * Requires: IEEE binary32 and binary64, round to nearest, no flush to zero (conversions do not
 * mind), no excess precision, and no contraction or reassociation by the compiler:
 *   gcc, clang  -ffp-contract=off and none of -ffast-math; -fno-math-errno -fno-trapping-math
 *               for vector code
 *   CUDA        --fmad=false --prec-div=true --prec-sqrt=true --ftz=false
 *   libtcc      as it is; the host gives it the symbols sqrt and sqrtf
 * It is C99 and C++, includes nothing, keeps no state, sets no errno; flags are unspecified.
 *
 * Ensures: f32 functions of one argument are correctly rounded on all 2^32 inputs (but ds_sinf and
 * ds_cosf: the f64 value, rounded); ds_powf is within 0.5001 ulp, correctly rounded (ties included)
 * for the exponents 2, 3, -1, 1/2, 1/4; ds_atan2f is within 0.5001 ulp, too; f64 forms are within 4
 * ulp over the whole range (seen over millions of points: exp 1.0, log 2.0, tanh 2.6, rsqrt 1.5,
 * pow 1.2; over 131072 points: cbrt 0.7, sigmoid 1.9, softplus 1.5, atan2 1.9, sin and cos 2.2; of
 * the last place where results are subnormal).
 * C99 Annex F decides special cases. A NaN is a NaN, its sign and payload are not specified;
 * conversions write one canonical NaN. tests/math holds the proof and the golden hashes.
 *
 * The text is cut at the lines "section NAME needs A B" by emitters that embed only what they use.
 *
 *   for (i = 0; i < n; i++) y[i] = ds_expf(x[i]);         e^x, correctly rounded
 *   m = ds_f32_from_bf16(h); h = ds_bf16_from_f32(m);     exact; nearest even
 *   c = 1 - ds_powc(beta2, t);                            by squaring, as t is integral
 */
#ifndef DS_MATH_H
#define DS_MATH_H

#ifdef __FAST_MATH__
#error "ds_math.h needs IEEE arithmetic: compile without -ffast-math"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0
#error "ds_math.h needs arithmetic without excess precision: compile with -msse2 -mfpmath=sse"
#endif

//@ section base needs
#ifndef DS_BASE
#define DS_BASE
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif
typedef unsigned short ds_u16;
typedef unsigned int ds_u32;
typedef unsigned long long ds_u64;
#ifdef __CUDACC__
#define DS_FN static __device__ __forceinline__
#define DS_SQRT(x) __dsqrt_rn(x)
#define DS_SQRTF(x) __fsqrt_rn(x)
/* clang-format off */
DS_FN ds_u64 ds_bits(double x) { return (ds_u64)__double_as_longlong(x); }
DS_FN double ds_from(ds_u64 u) { return __longlong_as_double((long long)u); }
DS_FN ds_u32 ds_bitsf(float x) { return __float_as_uint(x); }
DS_FN float ds_fromf(ds_u32 u) { return __uint_as_float(u); }
#else
#define DS_FN static inline
#ifdef __TINYC__
double sqrt(double);
float sqrtf(float);
#define DS_SQRT(x) sqrt(x)
#define DS_SQRTF(x) sqrtf(x)
#else
#define DS_SQRT(x) __builtin_sqrt(x)
#define DS_SQRTF(x) __builtin_sqrtf(x)
#endif
DS_FN ds_u64 ds_bits(double x) { union { double d; ds_u64 u; } v; v.d = x; return v.u; }
DS_FN double ds_from(ds_u64 u) { union { double d; ds_u64 u; } v; v.u = u; return v.d; }
DS_FN ds_u32 ds_bitsf(float x) { union { float f; ds_u32 u; } v; v.f = x; return v.u; }
DS_FN float ds_fromf(ds_u32 u) { union { float f; ds_u32 u; } v; v.u = u; return v.f; }
/* clang-format on */
#endif
#define DS_SIGN 0x8000000000000000ull
#define DS_INF ds_from(0x7ff0000000000000ull)
#define DS_NAN ds_from(0x7ff8000000000000ull)
#define DS_INFF ds_fromf(0x7f800000u)
#define DS_NANF ds_fromf(0x7fc00000u)
#define DS_HEAD26 0xfffffffff8000000ull /* keeps 26 significant bits of a double */
#endif

//@ section kexp needs base
/* e^r - 1 for |r| <= 0.3466. Sollya: fpminimax(exp(x), [|2,...,11|], [|D...|],
   [-0.3466,0.3466], relative, floating, 1+x); error 2^-57.8 of e^r, 2^-54.1 of e^r - 1. */
DS_FN double ds_k_expm1(double r)
{
    double r2 = r * r, r4 = r2 * r2;
    double a = 0x1.000000000000ap-1 + r * 0x1.55555555554fep-3;
    double b = 0x1.55555555506bcp-5 + r * 0x1.1111111126b36p-7;
    double c = 0x1.6c16c18477082p-10 + r * 0x1.a01a012fee98bp-13;
    double d = 0x1.a019995efb56cp-16 + r * 0x1.71df18ef7a9d3p-19;
    double e = 0x1.28adfccab85d4p-22 + r * 0x1.ad92e88f87de4p-26;
    return r + r2 * ((a + r2 * b) + r4 * ((c + r2 * d) + r4 * e));
}
/* The integer n next to x / ln 2, kept in the low bits of the double 1.5 * 2^52 + n. */
DS_FN double ds_k_near(double x)
{
    return x * 0x1.71547652b82fep0 + 0x1.8p52;
}
/* 2^n for -1022 <= n <= 1023, from ds_k_near's value. */
DS_FN double ds_k_two(double near)
{
    return ds_from((ds_bits(near) << 52) + 0x3ff0000000000000ull);
}
/* x + lo - n ln 2; x - n * head is exact for |n| < 2^11. */
DS_FN double ds_k_less(double x, double lo, double n)
{
    return (x - n * 0x1.62e42fefa38p-1) + (lo - n * 0x1.ef35793c7673p-45);
}

//@ section klog needs base
/* log of x's fraction is 2 atanh(q), q = (m - 1) / (m + 1), m in [sqrt(1/2), sqrt 2); this is R
   in 2 atanh(q) = 2q + q w (2/3 + w R), w = q^2 <= 0.029438. Sollya: fpminimax of
   (2 atanh(sqrt x) / sqrt x - 2 - x 2/3) / x^2, degree 6, [|D...|], [1b-60,0.029438], absolute,
   floating; error 2^-62.8 of the logarithm. */
DS_FN double ds_k_atanh(double w)
{
    double w2 = w * w;
    double a = 0x1.999999999999fp-2 + w * 0x1.249249248e2ep-2;
    double b = 0x1.c71c71d84p-3 + w * 0x1.745d09c52b0d1p-3;
    double c = 0x1.3b18c30e0dfa7p-3 + w * 0x1.10178f0dc5a58p-3;
    return a + w2 * (b + w2 * (c + w2 * 0x1.0884ab9117ca1p-3));
}
/* x = 2^e m for a positive normal x; from ds_k_top(x), its bits less those of about sqrt(1/2). */
DS_FN ds_u64 ds_k_top(double x)
{
    return ds_bits(x) + 0x00095f6200000000ull;
}
DS_FN double ds_k_exponent(ds_u64 top)
{
    return ds_from((top >> 52) | 0x4330000000000000ull) - 0x1.00000000003ffp52;
}
DS_FN double ds_k_fraction(ds_u64 top)
{
    return ds_from((top & 0x000fffffffffffffull) + 0x3fe6a09e00000000ull);
}

//@ section klogf needs klog
/* log x = result + *lo within 2^-59 of it, |*lo| below 1% of the result, for x a positive finite
   f32: the 24 bits of m leave room for an exact remainder of the division. */
DS_FN double ds_k_logf(double x, double *lo)
{
    ds_u64 top = ds_k_top(x);
    double e = ds_k_exponent(top), m = ds_k_fraction(top);
    double f = m - 1.0, g = m + 1.0, rc = 1.0 / g, q = f * rc;
    double s = ds_from(ds_bits(q) & 0xfffffffffe000000ull), t = (f - s * g) * rc;
    double w = q * q, p = w * (0x1.5555555555555p-1 + w * ds_k_atanh(w));
    double a = e * 0x1.62e42feep-1, b = s + s, h = a + b;
    *lo = (b - (h - a)) + ((t + t) + (q * p + e * 0x1.a39ef35793c76p-33));
    return h;
}

//@ section klog1p needs klog
/* log(1 + e + c) = result + *lo for 0 <= e <= 1 and c the rounding error of e, as ds_k_logf: the
   fraction q is s, of 26 bits, and t. */
DS_FN double ds_k_log1p(double e, double c, double *lo)
{
    double big = e > 0.41421356 ? 1.0 : 0.0, f = e - big, f0 = c + (e - (f + big));
    double two = 2.0 + 2.0 * big, g = two + f, g0 = f - (g - two), rc = 1.0 / g, q = f * rc;
    double g1 = ds_from(ds_bits(g) & DS_HEAD26), g2 = g - g1;
    double s = ds_from(ds_bits(q) & DS_HEAD26);
    double t = (((f - s * g1) - s * g2) + (f0 - s * (g0 + f0))) * rc;
    double w = q * q, p = w * (0x1.5555555555555p-1 + w * ds_k_atanh(w));
    double a = big * 0x1.62e42fefa38p-1, b = s + s, h = a + b;
    *lo = (b - (h - a)) + ((t + t) + (q * p + big * 0x1.ef35793c7673p-45));
    return h;
}

//@ section kcbrt needs base
/* The cube root of a positive normal x. A third of the exponent, and a line for the fraction, are
   off by a factor in [0.9097,1.0992] of its cube; a polynomial, Sollya: fpminimax(x^(-1/3), 4,
   [|D...|], [0.9097,1.0992], relative, floating), leaves 2^-24; so much is kept that t * t is
   exact, and a step of Newton's follows. */
DS_FN double ds_k_cbrt(double x)
{
    ds_u32 third = (ds_u32)(ds_bits(x) >> 32) / 3u + 715094163u;
    double t = ds_from((ds_u64)third << 32), r = t * t * (t / x), r2 = r * r;
    double a = 0x1.df62cbaf65965p0 + r * -0x1.df293e6a22313p0;
    double b = 0x1.9a0ec1896fa0cp0 + r * -0x1.7dafaade7be59p-1;
    t = t * (a + r2 * (b + r2 * 0x1.247c3394bbb5ap-3));
    t = ds_from((ds_bits(t) + 0x40000000ull) & 0xffffffff80000000ull);
    r = x / (t * t);
    return t + t * ((r - t) / (t + t + r));
}

//@ section expf needs kexp
DS_FN float ds_expf(float v)
{
    float c = v > 90.0f ? 90.0f : v;
    double x = c < -105.0f ? -105.0f : c;
    double k = ds_k_near(x), sc = ds_k_two(k);
    return (float)(sc + sc * ds_k_expm1(ds_k_less(x, 0.0, k - 0x1.8p52)));
}

//@ section logf needs klogf
DS_FN float ds_logf(float v)
{
    double lo, h = ds_k_logf((double)v, &lo), r = h + lo, d = lo - (r - h);
    /* Round to odd, so that rounding to f32 does not see a false tie. */
    ds_u64 u = ds_bits(r);
    float y = (float)ds_from((u - ((u ^ ds_bits(d)) >> 63)) | 1);
    y = v > 0.0f ? y : v == 0.0f ? -DS_INFF : DS_NANF;
    return v == DS_INFF ? v : y;
}

//@ section tanhf needs kexp
DS_FN float ds_tanhf(float v)
{
    ds_u32 sign = ds_bitsf(v) & 0x80000000u;
    float a = ds_fromf(ds_bitsf(v) & 0x7fffffffu), c = a > 10.0f ? 10.0f : a;
    double x = (double)c + (double)c, k = ds_k_near(x), sc = ds_k_two(k);
    double e = (sc - 1.0) + sc * ds_k_expm1(ds_k_less(x, 0.0, k - 0x1.8p52)); /* e^2x - 1 */
    return ds_fromf(ds_bitsf((float)(e / (e + 2.0))) | sign);
}

//@ section cbrtf needs kcbrt
DS_FN float ds_cbrtf(float v)
{
    ds_u32 sign = ds_bitsf(v) & 0x80000000u;
    float a = ds_fromf(ds_bitsf(v) & 0x7fffffffu);
    float r = (float)ds_k_cbrt((double)a);
    r = a > 0.0f ? r : a;
    r = a < DS_INFF ? r : a;
    return ds_fromf(ds_bitsf(r) | sign);
}

//@ section sigmoidf needs kexp
DS_FN float ds_sigmoidf(float v)
{
    float c = v > 40.0f ? 40.0f : v;
    double x = c < -105.0f ? -105.0f : c, k = ds_k_near(x), sc = ds_k_two(k);
    double m = sc * ds_k_expm1(ds_k_less(x, 0.0, k - 0x1.8p52));
    double e = sc + m, n = (sc - 1.0) + m; /* e^x and e^x - 1 */
    /* From -1 on 1/2 + (e^x - 1) / (2 (e^x + 1)), to odd: near 0 it is next to ties. */
    double d = 0.5 * n / (n + 2.0), h = 0.5 + d, t = d - (h - 0.5);
    ds_u64 u = ds_bits(h);
    u = ((u - (ds_bits(t) >> 63)) | 1);
    u = t == 0.0 ? ds_bits(h) : u;
    return (float)(x < -1.0 ? e / (1.0 + e) : ds_from(u));
}

//@ section softplusf needs kexp klog1p
DS_FN float ds_softplusf(float v)
{
    float b = ds_fromf(ds_bitsf(v) & 0x7fffffffu), c = b > 110.0f ? 110.0f : b;
    double x = -(double)c, k = ds_k_near(x), sc = ds_k_two(k);
    double m = sc * ds_k_expm1(ds_k_less(x, 0.0, k - 0x1.8p52)), e = sc + m;
    double lo, h = ds_k_log1p(e, (sc - e) + m, &lo), p = v < 0.0f ? 0.0 : (double)v;
    double a = p + h, d = a - p, r;
    ds_u64 u;
    /* p + h + lo to odd, so that rounding to f32 does not see a false tie. */
    lo = ((p - (a - d)) + (h - d)) + lo;
    r = a + lo;
    u = ds_bits(r);
    u = (u - (ds_bits(lo - (r - a)) >> 63)) | 1;
    return v < DS_INFF ? (float)ds_from(u) : v;
}

//@ section powf needs kexp klogf
DS_FN float ds_powf(float x, float y)
{
    ds_u32 sign = ds_bitsf(x) & 0x80000000u;
    float ax = ds_fromf(ds_bitsf(x) & 0x7fffffffu), ay = ds_fromf(ds_bitsf(y) & 0x7fffffffu);
    float half = ay * 0.5f, i = (ay + 0x1p23f) - 0x1p23f, j = (half + 0x1p23f) - 0x1p23f;
    float c = y > 0x1p100f ? 0x1p100f : y, yc = c < -0x1p100f ? -0x1p100f : c, w, zs, zf, r, ri, rn;
    double lo, h = ds_k_logf((double)ax, &lo), k, sc;
    /* y log x: an exact product of 24 by 28 bits, and the rest. */
    double lh = ds_from(ds_bits(h + lo) & 0xfffffffffe000000ull);
    double zh = (double)yc * lh, zl = (double)yc * ((h - lh) + lo);
    k = ds_k_near(zh);
    sc = ds_k_two(k);
    r = (float)(sc + sc * ds_k_expm1(ds_k_less(zh, zl, k - 0x1.8p52)));
    /* r means nothing where the result overflows or vanishes, nor for x = 0, inf, NaN. */
    w = ax == 0.0f ? -DS_INFF : ax;
    zs = yc * w;
    zf = (float)zh;
    zf = ax < DS_INFF ? zf : zs;
    zf = ax > 0.0f ? zf : zs;
    r = zf > 89.0f ? DS_INFF : r;
    r = zf < -105.0f ? 0.0f : r;
    r = zf == zf ? r : zf;
    /* ri for integral y, odd or even; rn for the others. */
    ri = ds_fromf(ds_bitsf(r) | sign);
    ri = j == half ? r : ri;
    ri = ay < 0x1p24f ? ri : r;
    rn = x < 0.0f ? DS_NANF : r;
    rn = ax < DS_INFF ? rn : r;
    r = i == ay ? ri : rn;
    r = ay < 0x1p23f ? r : ri;
    r = y == 0.0f ? 1.0f : r;
    return x == 1.0f ? 1.0f : r;
}

//@ section powfc needs base
/* ds_powf(x, y) for the constants y = 2, 3, -1, 1/2, 1/4: the same bits, cheaper. */
DS_FN float ds_powf_2(float x)
{
    return x * x;
}
DS_FN float ds_powf_3(float x)
{
    return (float)((double)x * (double)x * (double)x);
}
DS_FN float ds_powf_m1(float x)
{
    return 1.0f / x;
}
DS_FN float ds_powf_half(float x)
{
    float r = DS_SQRTF(x) + 0.0f; /* -0 gives +0 */
    return x == -DS_INFF ? DS_INFF : r;
}
DS_FN float ds_powf_quarter(float x)
{
    float r = (float)(DS_SQRT(DS_SQRT((double)x)) + 0.0);
    return x == -DS_INFF ? DS_INFF : r;
}

//@ section rsqrtf needs base
DS_FN float ds_rsqrtf(float x)
{
    return (float)(1.0 / DS_SQRT((double)x));
}

//@ section floorf needs base
DS_FN float ds_floorf(float x)
{
    ds_u32 u = ds_bitsf(x), sign = u & 0x80000000u;
    float a = ds_fromf(u & 0x7fffffffu), b = (a + 0x1p23f) - 0x1p23f;
    float r = ds_fromf(ds_bitsf(b) | sign), d = r - 1.0f;
    r = r > x ? d : r;
    return a < 0x1p23f ? ds_fromf(ds_bitsf(r) | sign) : x;
}

//@ section modf2 needs floorf
/* The language's a % b: a - b floor(a / b), each operation rounded. */
DS_FN float ds_modf2(float a, float b)
{
    float q = ds_floorf(a / b), p = b * q;
    return a - p;
}

//@ section conv needs base
DS_FN ds_u16 ds_bf16_from_f32(float x)
{
    ds_u32 u = ds_bitsf(x), r = (u + (0x7fffu + ((u >> 16) & 1u))) >> 16;
    return (ds_u16)((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : r);
}
DS_FN float ds_f32_from_bf16(ds_u16 h)
{
    ds_u32 u = (ds_u32)h << 16;
    return ds_fromf((u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u);
}
DS_FN ds_u16 ds_f16_from_f32(float x)
{
    ds_u32 u = ds_bitsf(x), a = u & 0x7fffffffu, sign = (u >> 16) & 0x8000u;
    ds_u32 r = (a + (0xc8000fffu + ((a >> 13) & 1u))) >> 13;
    /* f16 subnormals: multiples of 2^-24, the last place of 0.5. */
    ds_u32 s = ds_bitsf(ds_fromf(a) + 0.5f) - 0x3f000000u;
    r = a < 0x38800000u ? s : r;
    r = a >= 0x477ff000u ? 0x7c00u : r;
    r |= sign;
    return (ds_u16)(a > 0x7f800000u ? 0x7e00u : r);
}
DS_FN float ds_f32_from_f16(ds_u16 h)
{
    ds_u32 a = ((ds_u32)h & 0x7fffu) << 13, sign = ((ds_u32)h & 0x8000u) << 16;
    ds_u32 s = ds_bitsf(ds_fromf(a + 0x38800000u) - 0x1p-14f);
    ds_u32 r = a + 0x38000000u;
    r = a < 0x00800000u ? s : r;
    r = a >= 0x0f800000u ? 0x7f800000u : r;
    r |= sign;
    return ds_fromf(a > 0x0f800000u ? 0x7fc00000u : r);
}

//@ section kscale needs kexp
/* v 2^n for |n| <= 2044, in two steps so that only the last one can be inexact. */
DS_FN double ds_k_scale(double v, double n)
{
    double a = n * 0.5 + 0x1.8p52, b = (n - (a - 0x1.8p52)) + 0x1.8p52;
    return v * ds_k_two(a) * ds_k_two(b);
}

//@ section exp needs kscale
DS_FN double ds_exp(double v)
{
    double c = v > 720.0 ? 720.0 : v, x = c < -760.0 ? -760.0 : c;
    double n = ds_k_near(x) - 0x1.8p52;
    return ds_k_scale(1.0 + ds_k_expm1(ds_k_less(x, 0.0, n)), n);
}

//@ section log needs klog
DS_FN double ds_log(double v)
{
    double small = v < 0x1p-1022 ? 1.0 : 0.0, x = v < 0x1p-1022 ? v * 0x1p54 : v;
    ds_u64 top = ds_k_top(x);
    double e = ds_k_exponent(top) - small * 54.0, m = ds_k_fraction(top);
    double q = (m - 1.0) / (m + 1.0), w = q * q;
    double p = w * (0x1.5555555555555p-1 + w * ds_k_atanh(w));
    double r = e * 0x1.62e42fefa38p-1 + ((q + q) + (q * p + e * 0x1.ef35793c7673p-45));
    r = v > 0.0 ? r : v == 0.0 ? -DS_INF : DS_NAN;
    return v == DS_INF ? v : r;
}

//@ section tanh needs kexp
DS_FN double ds_tanh(double v)
{
    ds_u64 sign = ds_bits(v) & DS_SIGN;
    double a = ds_from(ds_bits(v) & ~DS_SIGN), c = a > 22.0 ? 22.0 : a;
    double x = c + c, k = ds_k_near(x), sc = ds_k_two(k);
    double e = (sc - 1.0) + sc * ds_k_expm1(ds_k_less(x, 0.0, k - 0x1.8p52));
    return ds_from(ds_bits(e / (e + 2.0)) | sign);
}

//@ section pow needs kscale klog
DS_FN double ds_pow(double vx, double vy)
{
    double ax = ds_from(ds_bits(vx) & ~DS_SIGN), y = vy, ay = ds_from(ds_bits(vy) & ~DS_SIGN);
    double small = ax < 0x1p-1022 ? 1.0 : 0.0;
    ds_u64 top = ds_k_top(ax < 0x1p-1022 ? ax * 0x1p54 : ax);
    double e = ds_k_exponent(top) - small * 54.0, f = ds_k_fraction(top) - 1.0;
    /* q = f / (2 + f) as s + t, s of 26 bits: s * g1 and s * g2 are exact. */
    double g = f + 2.0, g0 = f - (g - 2.0), g1 = ds_from(ds_bits(g) & DS_HEAD26), g2 = g - g1;
    double rc = 1.0 / g, s = ds_from(ds_bits(f * rc) & DS_HEAD26);
    double t = (((f - s * g1) - s * g2) - s * g0) * rc;
    /* log m = 2 (s + t) (1 + w/3 + w^2 R/2); w/3 in two parts, the rest in one. */
    double wh = s * s, wl = (s + s + t) * t, w = wh + wl, w1 = ds_from(ds_bits(wh) & DS_HEAD26);
    double p = w1 * 0x1.555555p-2;
    double c = w1 * 0x1.5555555555555p-28 +
               (((wh - w1) + wl) * 0x1.5555555555555p-2 + w * w * (0.5 * ds_k_atanh(w)));
    double ph = ds_from(ds_bits(p + c) & DS_HEAD26), pl = (p - ph) + c;
    double a = e * 0x1.62e42fefa38p-1, b = s + s, h = a + b, b2 = b * ph, h2 = h + b2;
    double lo = (b - (h - a)) + (b2 - (h2 - h)) +
                (((t + t) + ((t + t) * ph + (b + t + t) * pl)) + e * 0x1.ef35793c7673p-45);
    double lh = ds_from(ds_bits(h2 + lo) & DS_HEAD26), ll = (h2 - lh) + lo;
    double y1, big = y < 0.0 ? -1e4 : 1e4, zh, zl, n, r, i, j, neg;
    y = y > 0x1p70 ? 0x1p70 : y;
    y = y < -0x1p70 ? -0x1p70 : y;
    y1 = ds_from(ds_bits(y) & DS_HEAD26);
    zh = y1 * lh;
    zl = y1 * ll + (y - y1) * (lh + ll);
    zh = ax == 0.0 ? -big : zh;
    zh = ax == DS_INF ? big : zh;
    zh = ax == ax ? zh : ax;
    zh = zh > 720.0 ? 720.0 : zh;
    zh = zh < -760.0 ? -760.0 : zh;
    zl = zl > 1.0 ? 1.0 : zl;
    zl = zl < -1.0 ? -1.0 : zl;
    n = ds_k_near(zh) - 0x1.8p52;
    r = ds_k_scale(1.0 + ds_k_expm1(ds_k_less(zh, zl, n)), n);
    /* i, j: |y| and |y|/2 rounded to integers; y is odd when the first is exact alone. */
    i = ay < 0x1p52 ? (ay + 0x1p52) - 0x1p52 : ay;
    j = ay < 0x1p53 ? (ay * 0.5 + 0x1p52) - 0x1p52 : ay * 0.5;
    neg = ds_from(ds_bits(r) | (ds_bits(vx) & DS_SIGN));
    r = vx < 0.0 ? (vx == -DS_INF || i == ay ? r : DS_NAN) : r;
    r = i == ay && j != ay * 0.5 ? neg : r;
    r = vy == 0.0 ? 1.0 : r;
    return vx == 1.0 ? 1.0 : r;
}

//@ section cbrt needs kcbrt
DS_FN double ds_cbrt(double v)
{
    ds_u64 sign = ds_bits(v) & DS_SIGN;
    double a = ds_from(ds_bits(v) & ~DS_SIGN), small = a < 0x1p-1022 ? 0x1p-18 : 1.0;
    double r = ds_k_cbrt(a < 0x1p-1022 ? a * 0x1p54 : a) * small;
    r = a > 0.0 ? r : a;
    r = a < DS_INF ? r : a;
    return ds_from(ds_bits(r) | sign);
}

//@ section sigmoid needs exp
DS_FN double ds_sigmoid(double x)
{
    double e = ds_exp(-ds_from(ds_bits(x) & ~DS_SIGN)), d = 1.0 + e;
    return (x < 0.0 ? e : 1.0) / d;
}

//@ section softplus needs exp klog1p
DS_FN double ds_softplus(double x)
{
    double e = ds_exp(-ds_from(ds_bits(x) & ~DS_SIGN)), lo, h = ds_k_log1p(e, 0.0, &lo), l = h + lo;
    l = e < 0x1p-54 ? e : l;
    return (x < 0.0 ? 0.0 : x) + l;
}

//@ section atan2 needs base
/* The angle of (x, y). With 0 <= n <= m the sizes of both, atan(n / m) is atan(n / m) or, above
   sqrt 2 - 1, pi/4 + atan((n - m) / (n + m)). Sollya: fpminimax of (atan(sqrt z) / sqrt z - 1) / z,
   degree 10, [|D...|], [1b-40,0.1717], absolute, floating; error 2^-57.4 of atan. */
DS_FN double ds_atan2(double y, double x)
{
    double ax = ds_from(ds_bits(x) & ~DS_SIGN), ay = ds_from(ds_bits(y) & ~DS_SIGN);
    double turned = ay > ax ? 1.0 : 0.0, m = ay > ax ? ay : ax, n = ay > ax ? ax : ay;
    double scale = m > 0x1p1000 ? 0x1p-100 : m < 0x1p-900 ? 0x1p120 : 1.0;
    double step, q, z, z2, a, b, c, d, e, f, k, s, r;
    /* Infinities: n is one only where both are. */
    n = m == DS_INF ? (n == DS_INF ? 1.0 : 0.0) : n;
    m = m == DS_INF ? 1.0 : m;
    m = m == 0.0 ? 1.0 : m;
    n = n * scale;
    m = m * scale;
    step = n > 0.41421356 * m ? 1.0 : 0.0;
    q = (n - step * m) / (m + step * n);
    z = q * q;
    z2 = z * z;
    a = -0x1.5555555555555p-2 + z * 0x1.999999999944bp-3;
    b = -0x1.249249243f3d5p-3 + z * 0x1.c71c7189d0e78p-4;
    c = -0x1.745d0bc5f91d2p-4 + z * 0x1.3b126f7e1d73ap-4;
    d = -0x1.10fb142a71e79p-4 + z * 0x1.dfefe11b00ef8p-5;
    e = -0x1.a0c7695107958p-5 + z * 0x1.41dc6b0fe2f97p-5;
    f = z2 * z2;
    r = (a + z2 * b) + f * ((c + z2 * d) + f * (e + z2 * -0x1.3b4568fdda966p-6));
    /* k quarters of pi, plus or minus atan q. */
    k = turned > 0.0 ? 2.0 - step : step;
    s = turned > 0.0 ? -1.0 : 1.0;
    k = ds_bits(x) >> 63 ? 4.0 - k : k;
    s = ds_bits(x) >> 63 ? -s : s;
    r = k * 0x1.921fb54442d18p-1 + (s * q + (s * (q * (z * r)) + k * 0x1.1a62633145c07p-55));
    r = ds_from(ds_bits(r) | (ds_bits(y) & DS_SIGN));
    r = x == x ? r : DS_NAN;
    return y == y ? r : DS_NAN;
}

//@ section atan2f needs atan2
DS_FN float ds_atan2f(float y, float x)
{
    return (float)ds_atan2((double)y, (double)x);
}

//@ section floor needs base
DS_FN double ds_floor(double x)
{
    ds_u64 u = ds_bits(x), sign = u & DS_SIGN;
    double a = ds_from(u & ~DS_SIGN), b = (a + 0x1p52) - 0x1p52;
    double r = ds_from(ds_bits(b) | sign), d = r - 1.0;
    r = r > x ? d : r;
    return a < 0x1p52 ? ds_from(ds_bits(r) | sign) : x;
}

//@ section mod needs floor
DS_FN double ds_mod(double a, double b)
{
    double q = ds_floor(a / b), p = b * q;
    return a - p;
}

//@ section powc needs pow floor
/* The language's x ^ y at f64 rate: integral |y| < 2^53 by squaring from the lowest bit. */
DS_FN double ds_powc(double x, double y)
{
    double a = ds_from(ds_bits(y) & ~DS_SIGN), r = 1.0;
    long long n;
    if (!(a < 0x1p53) || ds_floor(a) != a) return ds_pow(x, y);
    for (n = (long long)a; n > 0; n >>= 1) {
        if (n & 1) r = r * x;
        x = x * x;
    }
    return y < 0.0 ? 1.0 / r : r;
}

//@ section rsqrt needs base
DS_FN double ds_rsqrt(double x)
{
    return 1.0 / DS_SQRT(x);
}
//@ section kcircle needs base
/* sin y / y and cos y for |y| <= 0.7854, in z = y^2. Sollya: fpminimax of (sin(sqrt z) / sqrt z -
   1) / z and of (cos(sqrt z) - 1 + z/2) / z^2 on [0,0.617], degree 5, [|D...|], absolute,
   floating; errors 2^-56 of sin y, 2^-59.9 of cos y. */
DS_FN double ds_k_sin(double y)
{
    double z = y * y, z2 = z * z;
    double a = -0x1.5555555555555p-3 + z * 0x1.1111111110c83p-7;
    double b = -0x1.a01a019ea130ap-13 + z * 0x1.71de37b1ca273p-19;
    double c = -0x1.ae60210233a95p-26 + z * 0x1.5e118e8484eeep-33;
    return y + y * (z * (a + z2 * (b + z2 * c)));
}
DS_FN double ds_k_cos(double y)
{
    double z = y * y, z2 = z * z, h = z * 0.5, w = 1.0 - h;
    double a = 0x1.5555555555555p-5 + z * -0x1.6c16c16c168ccp-10;
    double b = 0x1.a01a019f38afap-16 + z * -0x1.27e4fa036d38fp-22;
    double c = 0x1.1eeb58509df39p-29 + z * -0x1.9073d444493acp-37;
    return w + (((1.0 - w) - h) + z2 * (a + z2 * (b + z2 * c)));
}

//@ section trig needs kcircle
/* x = (4n + quarter) pi/2 + y, |y| <= pi/4, for a finite x > pi/4: Payne and Hanek's reduction. x is m 2^e
   for an integer m below 2^53; of 2/pi the bits that make whole turns are left out and the next 192
   taken, which leaves 2^-75 of the smallest |y| that there is. */
DS_FN double ds_k_reduce(double x, ds_u32 *quarter)
{
    const ds_u32 bits[39] = {
        0u,          0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
        0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu,
        0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u,
        0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu,
        0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u,
        0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u};
    ds_u64 u = ds_bits(x), m = (u & 0x000fffffffffffffull) | 0x0010000000000000ull;
    ds_u64 m0 = m & 0xffffffffull, m1 = m >> 32, mask = 0xffffffffull, carry = 0, flip;
    /* Words of 2/pi 2^-64 from bit e + 62 on, then their product with m, modulo 1. */
    ds_u32 from = (ds_u32)((u >> 52) & 0x7ffu) - 1013u, shift = from & 31u, k[7], p[6];
    double y;
    int i;
    for (i = 0; i < 6; i++) {
        ds_u64 pair = ((ds_u64)bits[(from >> 5) + i] << 32) | bits[(from >> 5) + i + 1];
        k[i] = (ds_u32)((pair << shift) >> 32);
    }
    k[6] = 0;
    for (i = 5; i >= 0; i--) {
        ds_u64 a = m0 * k[i], b = m1 * k[i + 1], s = (a & mask) + (b & mask) + carry;
        p[i] = (ds_u32)s;
        carry = (s >> 32) + (a >> 32) + (b >> 32);
    }
    /* Two bits of quarters; the rest is a fraction of one, or lacks that much of the next. */
    *quarter = (p[0] >> 30) + ((p[0] >> 29) & 1u);
    flip = p[0] & 0x20000000u ? mask : 0;
    y = 0.0;
    for (i = 3; i >= 0; i--) {
        ds_u64 word = ((((ds_u64)p[i] << 32 | p[i + 1]) >> 30) & mask) ^ flip;
        y = (y + (ds_from(word | 0x4330000000000000ull) - 0x1p52)) * 0x1p-32;
    }
    y = y * 0x1.921fb54442d18p0;
    return flip ? -y : y;
}
/* sin x for turn 0, cos x for turn 1. */
DS_FN double ds_k_trig(double x, ds_u32 turn)
{
    double a = ds_from(ds_bits(x) & ~DS_SIGN), y = a;
    ds_u32 quarter = 0;
    if (!(a < DS_INF)) return DS_NAN;
    if (a > 0x1.921fb54442d18p-1) y = ds_k_reduce(a, &quarter);
    quarter = quarter + turn;
    y = quarter & 1u ? ds_k_cos(y) : ds_k_sin(y);
    if (ds_bits(x) >> 63 && !turn) quarter = quarter + 2u;
    return quarter & 2u ? -y : y;
}

//@ section sin needs trig
DS_FN double ds_sin(double x)
{
    return ds_k_trig(x, 0);
}

//@ section sinf needs sin
DS_FN float ds_sinf(float x)
{
    return (float)ds_sin((double)x);
}

//@ section cos needs trig
DS_FN double ds_cos(double x)
{
    return ds_k_trig(x, 1);
}

//@ section cosf needs cos
DS_FN float ds_cosf(float x)
{
    return (float)ds_cos((double)x);
}

//@ section philox needs base
/* Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): the counter of four words becomes four random
   ones. */
DS_FN void ds_k_round(ds_u32 *x, ds_u32 k0, ds_u32 k1)
{
    ds_u64 p = 0xd2511f53ull * x[0], q = 0xcd9e8d57ull * x[2];
    x[0] = (ds_u32)(q >> 32) ^ x[1] ^ k0;
    x[2] = (ds_u32)(p >> 32) ^ x[3] ^ k1;
    x[1] = (ds_u32)q;
    x[3] = (ds_u32)p;
}
DS_FN void ds_philox(ds_u32 *x, ds_u32 k0, ds_u32 k1)
{
    ds_k_round(x, k0, k1);
    ds_k_round(x, k0 + 0x9e3779b9u, k1 + 0xbb67ae85u);
    ds_k_round(x, k0 + 0x3c6ef372u, k1 + 0x76cf5d0au);
    ds_k_round(x, k0 + 0xdaa66d2bu, k1 + 0x32370b8fu);
    ds_k_round(x, k0 + 0x78dde6e4u, k1 + 0xed9eba14u);
    ds_k_round(x, k0 + 0x1715609du, k1 + 0xa9066899u);
    ds_k_round(x, k0 + 0xb54cda56u, k1 + 0x646e171eu);
    ds_k_round(x, k0 + 0x5384540fu, k1 + 0x1fd5c5a3u);
    ds_k_round(x, k0 + 0xf1bbcdc8u, k1 + 0xdb3d7428u);
    ds_k_round(x, k0 + 0x8ff34781u, k1 + 0x96a522adu);
}
/* The words of an element: lo and hi are the halves of the key as integral doubles below 2^32. */
DS_FN void ds_k_draw(ds_u32 *x, double lo, double hi, ds_u32 site, ds_u64 index)
{
    x[0] = (ds_u32)index;
    x[1] = (ds_u32)(index >> 32);
    x[2] = site;
    x[3] = 0;
    ds_philox(x, (ds_u32)ds_bits(lo + 0x1p52), (ds_u32)ds_bits(hi + 0x1p52));
}

//@ section uniform needs philox
/* A multiple of 2^-24 in [0, 1): the same number in f32 and f64. */
DS_FN double ds_uniform(double lo, double hi, ds_u32 site, ds_u64 index)
{
    ds_u32 w[4];
    ds_k_draw(w, lo, hi, site, index);
    return ds_from(((ds_u64)(w[0] >> 8) << 28) | 0x3ff0000000000000ull) - 1.0;
}

//@ section uniformf needs philox
DS_FN float ds_uniformf(double lo, double hi, ds_u32 site, ds_u64 index)
{
    ds_u32 w[4];
    ds_k_draw(w, lo, hi, site, index);
    return (float)(int)(w[0] >> 8) * 0x1p-24f;
}

//@ section rademacher needs philox
/* 1 or -1. */
DS_FN double ds_rademacher(double lo, double hi, ds_u32 site, ds_u64 index)
{
    ds_u32 w[4];
    ds_k_draw(w, lo, hi, site, index);
    return ds_from(((ds_u64)(w[0] >> 31) << 63) | 0x3ff0000000000000ull);
}

//@ section rademacherf needs philox
DS_FN float ds_rademacherf(double lo, double hi, ds_u32 site, ds_u64 index)
{
    ds_u32 w[4];
    ds_k_draw(w, lo, hi, site, index);
    return ds_fromf((w[0] & 0x80000000u) | 0x3f800000u);
}

//@ section normal needs philox log kcircle
/* Box and Muller: the cosine of a turn of 54 bits times sqrt(-2 log of 52 bits in (0, 1]); at most
   8.49 in size. The turn is quarter + f, |f| <= 1/2, so its reduction is exact. */
DS_FN double ds_normal(double lo, double hi, ds_u32 site, ds_u64 index)
{
    ds_u32 w[4], quarter;
    ds_u64 r, f;
    double u, y, c, s, z, v;
    ds_k_draw(w, lo, hi, site, index);
    r = ((ds_u64)w[0] << 20) | (w[1] >> 12);
    f = ((ds_u64)(w[2] << 2) << 20) | (w[3] >> 10);
    u = (ds_from(r | 0x4330000000000000ull) - 0x1.ffffffffffffep51) * 0x1p-52;
    y = (ds_from(f | 0x3ff0000000000000ull) - 1.5) * 0x1.921fb54442d18p0;
    c = ds_k_cos(y);
    s = ds_k_sin(y);
    z = DS_SQRT(-2.0 * ds_log(u));
    quarter = w[2] >> 30;
    v = quarter & 1u ? s : c;
    return z * ds_from(ds_bits(v) ^ ((ds_u64)((quarter + 1u) & 2u) << 62));
}

//@ section normalf needs normal
DS_FN float ds_normalf(double lo, double hi, ds_u32 site, ds_u64 index)
{
    return (float)ds_normal(lo, hi, site, index);
}
//@ section end needs
#endif
