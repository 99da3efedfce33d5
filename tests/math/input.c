/* Inputs and hashes of the tests of ds_math.h: functions of a number alone, so that every compiler
 * and device sees the same ones. What is computed here is exact or is one rounded operation.
 *
 *   in:  input_fill(IN_F32, 0, 2, 1, a, b)
 *   out: a[0] is the float of bits 2 * 65537 */
#include "tests/math/math_test.h"
#include <string.h>

typedef uint16_t ds_u16; /* kernels.def names it */

const KernelInfo kernel_info[KERNEL_COUNT] = {
#define ROW(name, inputs, in, out, expression) {#name, IN_##inputs, (int)sizeof(out)},
#include "tests/math/kernels.def"
#undef ROW
};

float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t mix64(uint64_t counter)
{
    uint64_t z = (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t input_count(Inputs inputs, int all)
{
    if (inputs == IN_U16) return 65536;
    if (inputs == IN_F32) return all ? (uint64_t)1 << 32 : 65536;
    return all ? (uint64_t)1 << 26 : 1 << 18;
}

/* Values that end at edges. */
static const double edges[] = {0.0,
                               -0.0,
                               1,
                               -1,
                               2,
                               -2,
                               3,
                               -3,
                               0.5,
                               -0.5,
                               0.25,
                               1.5,
                               -1.5,
                               1.0 / 3,
                               10,
                               1e-8,
                               1e8,
                               0.999,
                               1.001,
                               0x1.fffffep-1,
                               0x1.000002p0,
                               0x1.fffffffffffffp-1,
                               0x1.0000000000001p0,
                               0x1p-1074,
                               0x1p-1022,
                               0x1.fffffffffffffp1023,
                               0x1p-149,
                               0x1p-126,
                               0x1.fffffep127,
                               0x1p23,
                               0x1.000002p23,
                               0x1p24,
                               0x1p51,
                               0x1.0000000000001p51,
                               0x1p52,
                               0x1.0000000000001p52,
                               0x1p53,
                               0x1.0000000000001p53,
                               709.782712893384,
                               709.7827128933841,
                               -745.1332191019411,
                               -745.1332191019412,
                               -708.3964185322641,
                               88.72283,
                               88.72284,
                               -103.97207,
                               -103.97208,
                               9.010913,
                               22.0,
                               0.34657359027997264,
                               __builtin_inf(),
                               -__builtin_inf(),
                               __builtin_nan("")};

/* In [1, 2), from the upper bits of r. */
static double one_to_two(uint64_t r)
{
    return double_of((r >> 12) | 0x3ff0000000000000u);
}

static double edge(uint64_t r)
{
    return edges[(r >> 8) % (sizeof edges / sizeof *edges)];
}

/* +-2^[low, high) times [1, 2). */
static double scaled(uint64_t r, int low, int high)
{
    uint64_t exponent = (uint64_t)(1023 + low) + (r & 0x7ff) % (uint64_t)(high - low);
    return double_of((mix64(r) & 0x800fffffffffffffu) | exponent << 52);
}

/* The argument of exp, tanh and floor. */
static double exp_argument(uint64_t i)
{
    uint64_t r = mix64(i);
    switch (i % 8) {
    case 0: return edge(r);
    case 1: return double_of(r);
    case 2: return scaled(r, -60, 11);
    case 3: return scaled(r, -4, 4);
    default: return (one_to_two(r) - 1.5) * 1500;
    }
}

/* The argument of log and rsqrt. */
static double log_argument(uint64_t i)
{
    uint64_t r = mix64(i);
    switch (i % 8) {
    case 0: return edge(r);
    case 1: return double_of(r);
    case 2: return 1 + scaled(r, -52, -1);
    case 3: return double_of(r >> 12); /* subnormal */
    case 4: return 0.5 + 1.5 * (one_to_two(r) - 1);
    default: return double_of(r >> 1);
    }
}

/* x^y: x all over or near 1 and y so that most results are finite and not 0. `bits` is 128 or 1024,
 * the exponent at which results overflow. */
static void pow_arguments(uint64_t i, int bits, double *x, double *y)
{
    uint64_t r = mix64(2 * i), s = mix64(2 * i + 1);
    static const double common[] = {2, 3, -1, 0.5, -0.5, 0.25, 1.0 / 3, -2, 4, 1.5, -0.8, 0.75, 5};
    *x = scaled(r, -bits + 2, bits);
    *y = scaled(s, -12, 3);
    switch (i % 16) {
    case 0:
        *x = edge(r);
        *y = edge(s);
        break;
    case 1: *x = edge(r); break;
    case 2: *y = edge(s); break;
    case 3:
        *x = double_of(r);
        *y = double_of(s);
        break;
    case 4: *y = (double)(int)(s % 41) - 20; break;
    case 5: *y = common[s % (sizeof common / sizeof *common)]; break;
    case 6:
        *x = (double)(int)(r % 8192);
        *y = (double)(int)(s % 7) - 1;
        break;
    case 7:
        *x = 1 + scaled(r, -20, -1);
        *y = scaled(s, 0, 20);
        break;
    case 8:
        *x = 1 - scaled(r, -10, -2);
        *y = (double)(s % 100000);
        break;
    case 9:
        *x = 0.5 + one_to_two(r);
        *y = (one_to_two(s) - 1.5) * 2 * bits;
        break;
    case 10:
        *x = scaled(r, -1, 1);
        *y = scaled(s, 3, 11);
        break;
    case 11:
        *x = (double)(float)*x;
        *y = (double)(float)*y;
        break;
    default:
        *x = one_to_two(r) * (i & 1 ? 1 : 0.5);
        *y = scaled(s, -3, 10);
        break;
    }
}

static void powc_arguments(uint64_t i, double *x, double *y)
{
    pow_arguments(i, 1024, x, y);
    if (i % 3 == 0) {
        *x = 1 - scaled(mix64(i), -10, -2);
        *y = (double)(mix64(i + 7) % 1000000);
    } else if (i % 3 == 1) {
        *y = (double)(int)(mix64(i) % 64) - 32;
    }
}

static void mod_arguments(uint64_t i, double *x, double *y)
{
    uint64_t r = mix64(2 * i), s = mix64(2 * i + 1);
    *x = i % 4 == 0   ? edge(r)
         : i % 4 == 1 ? (double)(int64_t)(r % 100000) - 5000
                      : scaled(r, -20, 40);
    *y = i % 8 < 2 ? edge(s) : i % 4 == 1 ? (double)(int64_t)(s % 100) + 1 : scaled(s, -20, 40);
}

/* The argument of sin and cos. */
static double trig_argument(uint64_t i)
{
    uint64_t r = mix64(i);
    switch (i % 8) {
    case 0: return r % 64 ? edge(r) : 0x1.6ac5b262ca1ffp849; /* 2^-60.9 from a multiple of pi/2 */
    case 1: return double_of(r);
    case 2: return scaled(r, -60, 1);
    case 3: return (double)(r >> 40) * 1.5707963267948966; /* next to a multiple of pi/2 */
    case 4: return (double)(r >> 11) * 1.5707963267948966;
    case 5: return scaled(r, 10, 1023);
    default: return (one_to_two(r) - 1.5) * 100;
    }
}

static void atan2_arguments(uint64_t i, int bits, double *y, double *x)
{
    uint64_t r = mix64(2 * i), s = mix64(2 * i + 1);
    *y = scaled(r, -10, 10);
    *x = scaled(s, -10, 10);
    switch (i % 8) {
    case 0:
        *y = edge(r);
        *x = edge(s);
        break;
    case 1:
        *y = double_of(r);
        *x = double_of(s);
        break;
    case 2: *x = scaled(s, -bits + 2, bits); break;
    case 3:
        *y = scaled(r, -bits + 2, bits);
        *x = *y * scaled(s, -60, 60);
        break;
    case 4: *x = *y * (1 + scaled(s, -50, -1)); break;
    case 5: *x = *y * 2.414213562373095 * (1 + scaled(s, -52, -20)); break;
    }
}

static void pair(Inputs inputs, uint64_t i, double *x, double *y)
{
    switch (inputs) {
    case IN_POWF: pow_arguments(i, 128, x, y); break;
    case IN_POW: pow_arguments(i, 1024, x, y); break;
    case IN_POWC: powc_arguments(i, x, y); break;
    case IN_EXP: *x = exp_argument(i); break;
    case IN_LOG: *x = log_argument(i); break;
    case IN_TRIG: *x = trig_argument(i); break;
    case IN_ATAN2: atan2_arguments(i, 1024, x, y); break;
    case IN_ATAN2F: atan2_arguments(i, 128, x, y); break;
    case IN_KEY:
        *x = (double)(uint32_t)mix64(i);
        *y = (double)(mix64(i) >> 32);
        break;
    default: mod_arguments(i, x, y); break;
    }
}

int inputs_are_f32(Inputs inputs)
{
    return inputs == IN_POWF || inputs == IN_MODF || inputs == IN_ATAN2F;
}

void input_fill(Inputs inputs, int all, uint64_t first, long n, void *a, void *b)
{
    for (long k = 0; k < n; k++) {
        uint64_t i = first + (uint64_t)k;
        if (inputs == IN_F32) {
            ((float *)a)[k] = float_of((uint32_t)(all ? i : i * 65537));
        } else if (inputs == IN_U16) {
            ((uint16_t *)a)[k] = (uint16_t)i;
        } else {
            double x = 0, y = 0;
            pair(inputs, i, &x, &y);
            if (inputs_are_f32(inputs)) {
                ((float *)a)[k] = (float)x;
                ((float *)b)[k] = (float)y;
            } else {
                ((double *)a)[k] = x;
                ((double *)b)[k] = y;
            }
        }
    }
}

static uint64_t word(const KernelInfo *info, const void *out, long k)
{
    if (info->out_size == 2) return ((const uint16_t *)out)[k];
    if (info->out_size == 4) {
        float x = ((const float *)out)[k];
        return x == x ? bits_of_float(x) : 0x7fc00000u;
    }
    double x = ((const double *)out)[k];
    return x == x ? bits_of_double(x) : 0x7ff8000000000000u;
}

uint64_t hash_add(uint64_t hash, const KernelInfo *info, long n, const void *out)
{
    for (long k = 0; k < n; k++) hash = (hash ^ word(info, out, k)) * 0x100000001b3u;
    return hash;
}
