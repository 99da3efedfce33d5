/* Storage conversions of ds_math.h against values decoded by definition.
 *
 *   test_convert quick     every 65,537th f32 and every f32 next to a 16-bit value or midpoint
 *   test_convert all       all 2^32 f32
 *
 * The reference knows a format only as 2^e and a fraction: every 16-bit value is decoded with
 * ldexp, and an f32 goes to the nearest of them, to the even one at a tie. */
#include "codegen/math/ds_math.h"
#include "tests/check.h"
#include "tests/math/math_test.h"
#include <math.h>
#include <string.h>

typedef struct Format {
    const char *name;
    int fraction_bits, bias;
    uint16_t infinity, nan;
    uint16_t (*from)(float);
    float (*to)(uint16_t);
} Format;

static uint16_t bf16_from(float x)
{
    return ds_bf16_from_f32(x);
}

static uint16_t f16_from(float x)
{
    return ds_f16_from_f32(x);
}

static float bf16_to(uint16_t h)
{
    return ds_f32_from_bf16(h);
}

static float f16_to(uint16_t h)
{
    return ds_f32_from_f16(h);
}

static const Format formats[] = {
    {"bf16", 7, 127, 0x7f80, 0x7fc0, bf16_from, bf16_to},
    {"f16", 10, 15, 0x7c00, 0x7e00, f16_from, f16_to},
};

/* The value of a positive finite h; infinity's is the next power of two, where rounding goes over.
 */
static double decode(const Format *f, uint32_t h)
{
    int exponent = (int)(h >> f->fraction_bits);
    double fraction = h & ((1u << f->fraction_bits) - 1);
    if (exponent > 0) fraction += 1u << f->fraction_bits;
    return ldexp(fraction, (exponent ? exponent : 1) - f->bias - f->fraction_bits);
}

static void check_to(const Format *f)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint32_t magnitude = h & 0x7fff, got = bits_of_float(f->to((uint16_t)h)), want;
        if (magnitude > f->infinity)
            want = 0x7fc00000;
        else
            want =
                bits_of_float(magnitude == f->infinity ? INFINITY : (float)decode(f, magnitude)) |
                (h & 0x8000) << 16;
        CHECK(got == want, "f32 of %s 0x%04x is 0x%08x, not 0x%08x", f->name, h, got, want);
        uint16_t back = f->from(float_of(got));
        uint32_t same = magnitude > f->infinity ? f->nan : h;
        CHECK(back == same, "%s 0x%04x comes back as 0x%04x", f->name, h, back);
    }
}

static double middles[32768]; /* between h and h + 1 of the format at hand */

/* h for a positive x, given that x is at least *last's value; keeps *last. */
static uint16_t nearest(const Format *f, double x, uint32_t *last)
{
    while (*last < f->infinity && (x > middles[*last] || (x == middles[*last] && *last % 2 == 1)))
        ++*last;
    return (uint16_t)*last;
}

static long wrong(const Format *f, uint32_t bits, uint16_t want)
{
    for (uint32_t sign = 0; sign < 2; sign++) {
        uint16_t got = f->from(float_of(bits | sign << 31));
        uint16_t expected = want == f->nan ? want : (uint16_t)(want | sign << 15);
        if (got != expected) {
            CHECK(got == expected, "%s of 0x%08x is 0x%04x, not 0x%04x", f->name, bits | sign << 31,
                  got, expected);
            return 1;
        }
    }
    return 0;
}

static long check_from(const Format *f, uint32_t step)
{
    long mismatches = 0;
    uint32_t last = 0;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += step)
        mismatches += wrong(f, bits, nearest(f, float_of(bits), &last));
    mismatches += wrong(f, 0x7f800000u, f->infinity);
    for (uint32_t bits = 0x7f800001u; bits < 0x80000000u; bits += step)
        mismatches += wrong(f, bits, f->nan);
    return mismatches;
}

/* Each value, each midpoint, and the f32 on both sides of them. */
static long check_edges(const Format *f)
{
    long mismatches = 0;
    uint32_t last = 0;
    for (uint32_t h = 0; h < f->infinity; h++) {
        double points[2] = {decode(f, h), middles[h]};
        for (int k = 0; k < 2; k++) {
            uint32_t bits = bits_of_float((float)points[k]);
            last = h ? h - 1 : 0;
            for (uint32_t b = bits ? bits - 1 : 0; b <= bits + 1 && b < 0x7f800000u; b++)
                mismatches += wrong(f, b, nearest(f, float_of(b), &last));
        }
    }
    return mismatches;
}

int main(int argc, char **argv)
{
    int all = argc > 1 && strcmp(argv[1], "all") == 0;
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const Format *f = &formats[k];
        for (uint32_t h = 0; h < f->infinity; h++)
            middles[h] = (decode(f, h) + decode(f, h + 1)) * 0.5;
        check_to(f);
        long mismatches = check_edges(f) + check_from(f, all ? 1 : 65537);
        CHECK(mismatches == 0, "%s: %ld mismatches", f->name, mismatches);
        printf("f32 -> %s: %ld mismatches\n", f->name, mismatches);
    }
    return check_done();
}
