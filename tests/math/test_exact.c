/* ds_math.h against MPFR: correct rounding of f32 functions, ulp bounds of the others.
 *
 *   test_exact expf quick      every 65,537th input
 *   test_exact expf all        all 2^32 inputs
 *   out: expf: 4294967296 inputs, 31895 decided by MPFR, 0 mismatches
 *
 * A one-argument f32 function is screened with libm's f64 function, whose error is far below 4 ulp:
 * where the neighbourhood of 4 ulp rounds to one f32 that one is right, elsewhere MPFR decides. */
#include "codegen/math/ds_math.h"
#include "tests/check.h"
#include "tests/math/math_test.h"
#include <math.h>
#include <mpfr.h>
#include <string.h>

enum { PRECISION = 256 };
typedef int (*Mpfr1)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
typedef int (*Mpfr2)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);

static mpfr_t arg_x, arg_y, exact, scratch;

/* --- One-argument f32 functions: correctly rounded --- */

/* Rounded twice, but 256 bits never round to a tie that is none. */
static float exact_f32(Mpfr1 function, float x)
{
    mpfr_set_flt(arg_x, x, MPFR_RNDN);
    function(exact, arg_x, MPFR_RNDN);
    return mpfr_get_flt(exact, MPFR_RNDN);
}

/* Whether all doubles within 4 ulp of y round to one f32. */
static int is_clear(double y)
{
    if (!(fabs(y) > 0x1p-900) || fabs(y) > 0x1p900)
        return 1; /* NaN, or far from every f32 that is not 0 or infinite */
    uint64_t bits = bits_of_double(y);
    return (float)double_of(bits - 4) == (float)double_of(bits + 4);
}

static double screen_rsqrt(double x)
{
    return 1 / sqrt(x);
}

/* glibc's cbrt is off by almost 4 ulp. */
static double screen_cbrt(double x)
{
    return (double)cbrtl((long double)x);
}

static double screen_sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double screen_softplus(double x)
{
    return x < 0 ? log1p(exp(x)) : x + log1p(exp(-x));
}

static int exact_sigmoid(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round)
{
    mpfr_neg(result, x, round);
    mpfr_exp(result, result, round);
    mpfr_add_ui(result, result, 1, round);
    return mpfr_ui_div(result, 1, result, round);
}

static int exact_softplus(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round)
{
    mpfr_abs(result, x, round);
    mpfr_neg(result, result, round);
    mpfr_exp(result, result, round);
    mpfr_log1p(result, result, round);
    return mpfr_signbit(x) ? 0 : mpfr_add(result, result, x, round);
}

typedef struct Function1 {
    const char *name;
    void (*kernel)(const float *, float *);
    double (*screen)(double);
    Mpfr1 exact;
} Function1;

#define KERNEL1(name)                                                                              \
    static void kernel_##name(const float *a, float *restrict o)                                   \
    {                                                                                              \
        for (int i = 0; i < BLOCK; i++) o[i] = ds_##name(a[i]);                                    \
    }
KERNEL1(expf)
KERNEL1(logf)
KERNEL1(tanhf)
KERNEL1(rsqrtf)
KERNEL1(cbrtf)
KERNEL1(sigmoidf)
KERNEL1(softplusf)

static const Function1 functions1[] = {
    {"expf", kernel_expf, exp, mpfr_exp},
    {"logf", kernel_logf, log, mpfr_log},
    {"tanhf", kernel_tanhf, tanh, mpfr_tanh},
    {"rsqrtf", kernel_rsqrtf, screen_rsqrt, mpfr_rec_sqrt},
    {"cbrtf", kernel_cbrtf, screen_cbrt, mpfr_cbrt},
    {"sigmoidf", kernel_sigmoidf, screen_sigmoid, exact_sigmoid},
    {"softplusf", kernel_softplusf, screen_softplus, exact_softplus},
};

static int same_f32(float a, float b)
{
    return (a != a && b != b) || bits_of_float(a) == bits_of_float(b);
}

static void check_function1(const Function1 *f, int all)
{
    static float in[BLOCK], out[BLOCK];
    uint64_t count = input_count(IN_F32, all), decided = 0, mismatches = 0;
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(IN_F32, all, i, BLOCK, in, NULL);
        f->kernel(in, out);
        for (int k = 0; k < BLOCK; k++) {
            double screen = f->screen(in[k]);
            float want = (float)screen;
            if (!is_clear(screen)) {
                decided++;
                want = exact_f32(f->exact, in[k]);
            }
            if (!same_f32(out[k], want) && mismatches++ < 10)
                CHECK(0, "%s(%a) = %a, not %a", f->name, in[k], out[k], want);
        }
    }
    CHECK(mismatches == 0, "%s: %lu mismatches", f->name, (unsigned long)mismatches);
    printf("%s: %lu inputs, %lu decided by MPFR, %lu mismatches\n", f->name, (unsigned long)count,
           (unsigned long)decided, (unsigned long)mismatches);
}

/* --- Error bounds --- */

/* |got - exact| in units of the last place of a format with `bits` bits and least exponent `emin`
 * (of the last place); huge when one is NaN or infinite and the other is not. */
static double ulp_error(double got, double want, int bits, int emin)
{
    if (got != got || want != want) return got != got && want != want ? 0 : INFINITY;
    if (isinf(got) || isinf(want)) return got == want ? 0 : INFINITY;
    if (got == 0 && want == 0) return signbit(got) == signbit(want) ? 0 : INFINITY;
    int exponent;
    frexp(want, &exponent);
    exponent = exponent - bits < emin || want == 0 ? emin : exponent - bits;
    mpfr_sub_d(scratch, exact, got, MPFR_RNDN);
    mpfr_mul_2si(scratch, scratch, -exponent, MPFR_RNDN);
    return fabs(mpfr_get_d(scratch, MPFR_RNDU));
}

static double pow_f32(double x, double y)
{
    return ds_powf((float)x, (float)y);
}

static double atan2_f32(double y, double x)
{
    return ds_atan2f((float)y, (float)x);
}

typedef struct Bound {
    const char *name;
    Inputs inputs;
    double (*function1)(double);
    double (*function2)(double, double);
    Mpfr1 exact1;
    Mpfr2 exact2;
    double ulps;
} Bound;

/* A function may be inlined; one of a table is called. */
#define F64_1(name)                                                                                \
    static double f64_##name(double x)                                                             \
    {                                                                                              \
        return ds_##name(x);                                                                       \
    }
#define F64_2(name)                                                                                \
    static double f64_##name(double x, double y)                                                   \
    {                                                                                              \
        return ds_##name(x, y);                                                                    \
    }
F64_1(exp)
F64_1(log)
F64_1(tanh)
F64_1(rsqrt)
F64_1(cbrt)
F64_1(sigmoid)
F64_1(softplus)
F64_1(sin)
F64_1(cos)
F64_2(pow)
F64_2(atan2)

/* IEEE's rSqrt(-0) is -inf, MPFR's is +inf. */
static int exact_rsqrt(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round)
{
    mpfr_sqrt(result, x, round);
    return mpfr_ui_div(result, 1, result, round);
}

static const Bound bounds[] = {
    {"exp", IN_EXP, f64_exp, NULL, mpfr_exp, NULL, 4},
    {"log", IN_LOG, f64_log, NULL, mpfr_log, NULL, 4},
    {"tanh", IN_EXP, f64_tanh, NULL, mpfr_tanh, NULL, 4},
    {"rsqrt", IN_LOG, f64_rsqrt, NULL, exact_rsqrt, NULL, 4},
    {"cbrt", IN_LOG, f64_cbrt, NULL, mpfr_cbrt, NULL, 4},
    {"sigmoid", IN_EXP, f64_sigmoid, NULL, exact_sigmoid, NULL, 4},
    {"softplus", IN_EXP, f64_softplus, NULL, exact_softplus, NULL, 4},
    {"sin", IN_TRIG, f64_sin, NULL, mpfr_sin, NULL, 4},
    {"cos", IN_TRIG, f64_cos, NULL, mpfr_cos, NULL, 4},
    {"pow", IN_POW, NULL, f64_pow, NULL, mpfr_pow, 4},
    {"powf", IN_POWF, NULL, pow_f32, NULL, mpfr_pow, 0.5001},
    {"atan2", IN_ATAN2, NULL, f64_atan2, NULL, mpfr_atan2, 4},
    {"atan2f", IN_ATAN2F, NULL, atan2_f32, NULL, mpfr_atan2, 0.5001},
};

static void check_bound(const Bound *b, int all)
{
    static double x[BLOCK], y[BLOCK];
    static float xf[BLOCK], yf[BLOCK];
    uint64_t count = all ? 1 << 23 : 1 << 17;
    double worst = 0, worst_x = 0, worst_y = 0;
    int f32 = inputs_are_f32(b->inputs);
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(b->inputs, all, i, BLOCK, f32 ? (void *)xf : x, f32 ? (void *)yf : y);
        for (int k = 0; k < BLOCK; k++) {
            double p = f32 ? xf[k] : x[k], q = f32 ? yf[k] : y[k];
            double got = b->function1 ? b->function1(p) : b->function2(p, q);
            mpfr_set_d(arg_x, p, MPFR_RNDN);
            mpfr_set_d(arg_y, q, MPFR_RNDN);
            if (b->function1)
                b->exact1(exact, arg_x, MPFR_RNDN);
            else
                b->exact2(exact, arg_x, arg_y, MPFR_RNDN);
            double want = f32 ? mpfr_get_flt(exact, MPFR_RNDN) : mpfr_get_d(exact, MPFR_RNDN);
            double error = ulp_error(got, want, f32 ? 24 : 53, f32 ? -149 : -1074);
            if (error > worst) {
                worst = error;
                worst_x = p;
                worst_y = q;
            }
        }
    }
    CHECK(worst < b->ulps, "%s: %g ulp at %a, %a", b->name, worst, worst_x, worst_y);
    printf("%s: %lu inputs, at most %.6g ulp (%a, %a)\n", b->name, (unsigned long)count, worst,
           worst_x, worst_y);
}

/* --- Constant exponents give pow's bits --- */

/* powf of a block with one exponent, and what is meant to have its bits. */
typedef struct Constant {
    float y;
    void (*kernel)(const float *, float *);
} Constant;

KERNEL1(powf_2)
KERNEL1(powf_3)
KERNEL1(powf_m1)
KERNEL1(powf_half)
KERNEL1(powf_quarter)

static const Constant constants[] = {
    {2, kernel_powf_2},       {3, kernel_powf_3},           {-1, kernel_powf_m1},
    {0.5f, kernel_powf_half}, {0.25f, kernel_powf_quarter},
};

static void check_powf_constants(int all)
{
    static float in[BLOCK], general[BLOCK], special[BLOCK];
    uint64_t count = input_count(IN_F32, all), mismatches = 0;
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(IN_F32, all, i, BLOCK, in, NULL);
        for (size_t c = 0; c < sizeof constants / sizeof *constants; c++) {
            for (int k = 0; k < BLOCK; k++) general[k] = ds_powf(in[k], constants[c].y);
            constants[c].kernel(in, special);
            for (int k = 0; k < BLOCK; k++) {
                if (!same_f32(general[k], special[k]) && mismatches++ < 10)
                    CHECK(0, "powf(%a, %g) = %a, specially %a", in[k], constants[c].y, general[k],
                          special[k]);
            }
        }
    }
    CHECK(mismatches == 0, "%lu mismatches", (unsigned long)mismatches);
    printf("powf constants: %lu inputs, %lu mismatches\n", (unsigned long)count,
           (unsigned long)mismatches);
}

/* --- floor and remainder: exact, or each operation rounded --- */

static void check_floor(int all)
{
    static float a[BLOCK], b[BLOCK];
    static double x[BLOCK], y[BLOCK];
    uint64_t count = input_count(IN_F32, all), wrong = 0;
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(IN_F32, all, i, BLOCK, a, NULL);
        for (int k = 0; k < BLOCK; k++) wrong += !same_f32(ds_floorf(a[k]), floorf(a[k]));
    }
    CHECK(wrong == 0, "floorf: %lu mismatches", (unsigned long)wrong);
    count = input_count(IN_MOD, all);
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(IN_MODF, all, i, BLOCK, a, b);
        input_fill(IN_MOD, all, i, BLOCK, x, y);
        for (int k = 0; k < BLOCK; k++) {
            float qf = floorf(a[k] / b[k]) * b[k];
            double q = floor(x[k] / y[k]) * y[k], f = ds_floor(x[k]), r = ds_mod(x[k], y[k]);
            wrong += !same_f32(ds_modf2(a[k], b[k]), a[k] - qf);
            wrong += bits_of_double(f) != bits_of_double(floor(x[k])) && f == f;
            wrong +=
                bits_of_double(r) != bits_of_double(x[k] - q) && (r == r || x[k] - q == x[k] - q);
        }
        input_fill(IN_EXP, all, i, BLOCK, x, y);
        for (int k = 0; k < BLOCK; k++) {
            double f = ds_floor(x[k]), want = floor(x[k]);
            wrong += bits_of_double(f) != bits_of_double(want) && (f == f || want == want);
        }
    }
    CHECK(wrong == 0, "floor and remainder: %lu mismatches", (unsigned long)wrong);
    printf("floor and remainder: %lu mismatches\n", (unsigned long)wrong);
}

/* --- powc: the language's x ^ y --- */

/* By recursion from the top: x^n is (x^2)^(n/2), times x if n is odd; the factors meet in the order
 * of the exponent's bits, lowest first, as `product`. */
static double by_squaring(double product, double x, uint64_t n)
{
    if (n == 0) return product;
    return by_squaring(n % 2 ? product * x : product, x * x, n / 2);
}

static void check_powc(int all)
{
    static double x[BLOCK], y[BLOCK];
    uint64_t count = input_count(IN_POWC, all), integral = 0, wrong = 0;
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(IN_POWC, all, i, BLOCK, x, y);
        for (int k = 0; k < BLOCK; k++) {
            double got = ds_powc(x[k], y[k]), want;
            if (fabs(y[k]) < 0x1p53 && y[k] == floor(y[k])) {
                integral++;
                want = by_squaring(1, x[k], (uint64_t)fabs(y[k]));
                want = y[k] < 0 ? 1 / want : want;
            } else {
                want = ds_pow(x[k], y[k]);
            }
            wrong += bits_of_double(got) != bits_of_double(want) && (got == got || want == want);
        }
    }
    CHECK(wrong == 0, "powc: %lu mismatches", (unsigned long)wrong);
    CHECK(integral > count / 2, "only %lu integral exponents", (unsigned long)integral);
    CHECK(ds_powc(3, 5) == 243 && ds_powc(2, -10) == 0x1p-10 && ds_powc(-2, 3) == -8,
          "small powers");
    CHECK(ds_powc(NAN, 0) == 1 && ds_powc(0, -3) == INFINITY, "edges");
    CHECK(ds_powc(0.9, 3) == 0.9 * (0.9 * 0.9), "lowest bit first");
    printf("powc: %lu integral exponents, %lu mismatches\n", (unsigned long)integral,
           (unsigned long)wrong);
}

/* --- C99 Annex F --- */

typedef struct Case2 {
    double x, y, result;
} Case2;

/* Of atan2: y, x and the quarters of pi. */
static const Case2 atan2_cases[] = {
    {0.0, 0.0, 0.0},
    {-0.0, 0.0, -0.0},
    {0.0, -0.0, 4},
    {-0.0, -0.0, -4},
    {0.0, 1, 0.0},
    {-0.0, 1, -0.0},
    {0.0, -1, 4},
    {-0.0, -1, -4},
    {1, 0.0, 2},
    {-1, 0.0, -2},
    {1, -0.0, 2},
    {-1, -0.0, -2},
    {1, 1, 1},
    {1, -1, 3},
    {-1, 1, -1},
    {-1, -1, -3},
    {1, INFINITY, 0.0},
    {-1, INFINITY, -0.0},
    {1, -INFINITY, 4},
    {-1, -INFINITY, -4},
    {INFINITY, 1, 2},
    {-INFINITY, -1, -2},
    {INFINITY, INFINITY, 1},
    {INFINITY, -INFINITY, 3},
    {-INFINITY, INFINITY, -1},
    {-INFINITY, -INFINITY, -3},
    {NAN, 1, NAN},
    {1, NAN, NAN},
    {INFINITY, NAN, NAN},
};

static const Case2 pow_cases[] = {
    {0.0, -3, INFINITY},
    {-0.0, -3, -INFINITY},
    {0.0, -2, INFINITY},
    {-0.0, -2, INFINITY},
    {-0.0, -0.5, INFINITY},
    {0.0, -INFINITY, INFINITY},
    {-0.0, -INFINITY, INFINITY},
    {0.0, 3, 0.0},
    {-0.0, 3, -0.0},
    {0.0, 2, 0.0},
    {-0.0, 2, 0.0},
    {-0.0, 0.5, 0.0},
    {-0.0, INFINITY, 0.0},
    {-1, INFINITY, 1},
    {-1, -INFINITY, 1},
    {1, 5.5, 1},
    {1, NAN, 1},
    {1, INFINITY, 1},
    {5.5, 0.0, 1},
    {NAN, 0.0, 1},
    {NAN, -0.0, 1},
    {INFINITY, 0.0, 1},
    {0.0, 0.0, 1},
    {-2, 0.5, NAN},
    {-2, -1.5, NAN},
    {0.5, -INFINITY, INFINITY},
    {-0.5, -INFINITY, INFINITY},
    {2, -INFINITY, 0.0},
    {-2, -INFINITY, 0.0},
    {0.5, INFINITY, 0.0},
    {2, INFINITY, INFINITY},
    {-INFINITY, -3, -0.0},
    {-INFINITY, -2, 0.0},
    {-INFINITY, -2.5, 0.0},
    {-INFINITY, 3, -INFINITY},
    {-INFINITY, 2, INFINITY},
    {-INFINITY, 2.5, INFINITY},
    {INFINITY, -0.5, 0.0},
    {INFINITY, 0.5, INFINITY},
    {NAN, 1, NAN},
    {2, NAN, NAN},
    {-2, 3, -8},
    {-2, 0x1p30, INFINITY},
    {-2, -0x1.8p30, 0.0},
    {-1, 0x1.fffffep23, -1},
    {-1, 0x1p24, 1},
    {-1, 0x1p100, 1},
    {-1, 0x1.000002p22, NAN},
    {-1, 0x1.000004p22, -1},
    {-1, 0x1.000002p23, -1},
    {-1, 0x1.000004p23, 1},
    {INFINITY, -INFINITY, 0.0},
};

static int same_f64(double a, double b)
{
    return (a != a && b != b) || bits_of_double(a) == bits_of_double(b);
}

/* Where rounding the logarithm to f64 first would round it to a false tie. */
static const float hard_logf[] = {0x1.827a74p-7f, 0x1.2f1fd6p+3f, 0x1.bacb4ap+25f, 0x1.b121a6p+76f,
                                  0x1.6351d8p+95f};

/* Powers that are ties between two f32. */
static void check_ties(void)
{
    int ties = 0;
    for (int x = 3; x < 8192; x += 2) {
        double exact_power = (double)x * x;
        for (int y = 2; exact_power < 0x1p25; y++, exact_power *= x) {
            float got = ds_powf((float)x, (float)y);
            ties += exact_power > 0x1p24;
            CHECK(got == (float)exact_power, "%d ^ %d = %a", x, y, got);
        }
    }
    CHECK(ties > 800, "only %d ties", ties);
}

static void check_special(void)
{
    check_ties();
    for (size_t i = 0; i < sizeof hard_logf / sizeof *hard_logf; i++) {
        float want = exact_f32(mpfr_log, hard_logf[i]);
        CHECK(ds_logf(hard_logf[i]) == want, "logf(%a)", hard_logf[i]);
    }
    for (size_t i = 0; i < sizeof pow_cases / sizeof *pow_cases; i++) {
        Case2 c = pow_cases[i];
        double y = c.y;
        CHECK(same_f64(ds_pow(c.x, y), c.result), "pow(%a, %a) = %a, not %a", c.x, y,
              ds_pow(c.x, y), c.result);
        float got = ds_powf((float)c.x, (float)y);
        CHECK(same_f32(got, (float)c.result), "powf(%a, %a) = %a, not %a", c.x, y, got, c.result);
    }
    for (size_t i = 0; i < sizeof atan2_cases / sizeof *atan2_cases; i++) {
        Case2 c = atan2_cases[i];
        double want = c.result * 0x1.921fb54442d18p-1, got = ds_atan2(c.x, c.y);
        CHECK(same_f64(got, want), "atan2(%a, %a) = %a, not %a", c.x, c.y, got, want);
        CHECK(same_f32(ds_atan2f((float)c.x, (float)c.y), (float)want), "atan2f(%a, %a)", c.x, c.y);
    }
    static float x[BLOCK];
    for (uint64_t i = 0; i < input_count(IN_F32, 0); i += BLOCK) {
        input_fill(IN_F32, 0, i, BLOCK, x, NULL);
        for (int k = 0; k < BLOCK; k++)
            CHECK(same_f32(ds_powf(x[k], 1), x[k]) && ds_powf(x[k], 0) == 1, "%a ^ 1, ^ 0", x[k]);
    }
    CHECK(ds_pow(-1, 0x1.fffffffffffffp52) == -1 && ds_pow(-1, 0x1.0000000000001p52) == -1 &&
              ds_pow(-1, 0x1p53) == 1,
          "parity up to 2^53");
    CHECK(ds_pow(-1, 0x1.0000000000001p51) != ds_pow(-1, 0x1.0000000000001p51), "2^51 + 1/2");
    static const struct {
        double (*function)(double);
        double x, result;
    } cases[] = {
        {f64_exp, 0.0, 1},
        {f64_exp, -0.0, 1},
        {f64_exp, INFINITY, INFINITY},
        {f64_exp, -INFINITY, 0.0},
        {f64_exp, NAN, NAN},
        {f64_log, 1, 0.0},
        {f64_log, 0.0, -INFINITY},
        {f64_log, -0.0, -INFINITY},
        {f64_log, -1, NAN},
        {f64_log, INFINITY, INFINITY},
        {f64_log, -INFINITY, NAN},
        {f64_log, NAN, NAN},
        {f64_tanh, 0.0, 0.0},
        {f64_tanh, -0.0, -0.0},
        {f64_tanh, INFINITY, 1},
        {f64_tanh, -INFINITY, -1},
        {f64_tanh, NAN, NAN},
        {f64_rsqrt, 4, 0.5},
        {f64_rsqrt, 0.0, INFINITY},
        {f64_rsqrt, INFINITY, 0.0},
        {f64_rsqrt, -1, NAN},
        {f64_cbrt, -8, -2},
        {f64_cbrt, 27, 3},
        {f64_cbrt, 0.0, 0.0},
        {f64_cbrt, -0.0, -0.0},
        {f64_cbrt, -INFINITY, -INFINITY},
        {f64_cbrt, NAN, NAN},
        {f64_sigmoid, 0.0, 0.5},
        {f64_sigmoid, INFINITY, 1},
        {f64_sigmoid, -INFINITY, 0.0},
        {f64_sigmoid, NAN, NAN},
        {f64_softplus, INFINITY, INFINITY},
        {f64_softplus, -INFINITY, 0.0},
        {f64_softplus, NAN, NAN},
        {f64_sin, 0.0, 0.0},
        {f64_sin, -0.0, -0.0},
        {f64_sin, INFINITY, NAN},
        {f64_sin, NAN, NAN},
        {f64_cos, -0.0, 1},
        {f64_cos, -INFINITY, NAN},
        {f64_cos, NAN, NAN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(same_f64(cases[i].function(cases[i].x), cases[i].result),
              "case %zu: f(%a) = %a, not %a", i, cases[i].x, cases[i].function(cases[i].x),
              cases[i].result);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int all = argc > 2 && strcmp(argv[2], "all") == 0, known = 1;
    mpfr_inits2(53, arg_x, arg_y, (mpfr_ptr)NULL);
    mpfr_inits2(PRECISION, exact, scratch, (mpfr_ptr)NULL);
    if (strcmp(name, "special") == 0)
        check_special();
    else if (strcmp(name, "floor") == 0)
        check_floor(all);
    else if (strcmp(name, "powc") == 0)
        check_powc(all);
    else if (strcmp(name, "powf_constants") == 0)
        check_powf_constants(all);
    else
        known = 0;
    for (size_t i = 0; i < sizeof functions1 / sizeof *functions1; i++) {
        if (strcmp(name, functions1[i].name) == 0) {
            check_function1(&functions1[i], all);
            known = 1;
        }
    }
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(name, bounds[i].name) == 0) {
            check_bound(&bounds[i], all);
            known = 1;
        }
    }
    mpfr_clears(arg_x, arg_y, exact, scratch, (mpfr_ptr)NULL);
    mpfr_free_cache();
    if (!known) {
        fprintf(stderr, "unknown function '%s'\n", name);
        return 2;
    }
    return check_done();
}
