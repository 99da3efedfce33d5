/* test_ops.c - every tile operator of every level that runs here against the scalar meaning of its
 * row, bit for bit.
 *
 * All operators × lengths 0 … 300 (coarse above 140) × addresses off by 0 … 3 elements, values with
 * zeros, infinities, NaN and subnormals; outputs in place; nothing written past the end. Divisors
 * from 2^-60 to 2^60, so that both ways of dividing run.
 */
#include "../check.h"
#include "call.h"
#include <math.h>
#include <stdint.h>

enum { MAX = 320, PAD = 8 };
static float random_float(void)
{
    static const float special[] = {0.0f,      -0.0f,     1.0f,       -1.0f,           INFINITY,
                                    -INFINITY, 0x1p-149f, -0x1p-126f, 0x1.fffffep127f, 0.5f,
                                    3.0f,      2.0f};
    uint32_t r = random_bits(), kind = r & 15;
    float f;
    if (kind == 0) return special[(r >> 4) % 12];
    if (kind == 1) {
        memcpy(&f, &r, 4); /* any bits: NaN, subnormals, huge */
        return f;
    }
    return (float)((int)(r >> 8) - (1 << 23)) * (kind < 8 ? 0x1p-23f : 0x1p-40f);
}

static float room_v[6][MAX + PAD], room_o[4][MAX + PAD];
static int room_b[3][MAX + PAD];

static void fill_scalars(TileArgs *a)
{
    for (int k = 0; k < 8; k++) a->s[k] = random_float();
    for (int k = 0; k < 2; k++) {
        a->c[k] = (int)(random_bits() & 1);
        a->d[k] = random_bits() & 1 ? ldexpf(1 + (float)(random_bits() & 0xffff) * 0x1p-16f,
                                             (int)(random_bits() % 121) - 60)
                                    : random_float();
    }
}

static TileArgs arguments(void)
{
    TileArgs a;
    for (int k = 0; k < 6; k++) {
        for (int i = 0; i < MAX + PAD; i++) room_v[k][i] = random_float();
        a.v[k] = room_v[k] + random_bits() % 4;
    }
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < MAX + PAD; i++) room_b[k][i] = (int)(random_bits() & 1);
        a.b[k] = room_b[k] + random_bits() % 4;
    }
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < MAX + PAD; i++) room_o[k][i] = 12345.0f;
        a.o[k] = room_o[k] + random_bits() % 4;
    }
    fill_scalars(&a);
    return a;
}

static void check_map(int level, int op, long n, bool in_place)
{
    const TileInfo *t = &tile_info[op];
    TileArgs a = arguments();
    static float want[4][MAX];
    if (in_place) { /* outputs over inputs, as a step has them */
        a.o[0] = (float *)(t->boolean && strstr(t->params, "B0") ? (const void *)a.b[0] : a.v[0]);
        a.o[1] = (float *)a.v[1];
        a.o[2] = (float *)a.v[2];
        a.o[3] = (float *)a.v[3];
    }
    int outputs = 1 + (strstr(t->params, "O1") != NULL) + (strstr(t->params, "O2") != NULL) +
                  (strstr(t->params, "O3") != NULL);
    for (long i = 0; i < n; i++) {
        Scalar out[4];
        Scalar v = tile_expect(t->pattern, &a, i, out);
        memcpy(&want[0][i], &v, 4);
        for (int k = 1; k < 4; k++) memcpy(&want[k][i], &out[k], 4);
    }
    float after[4];
    for (int k = 0; k < outputs; k++) after[k] = a.o[k][n];
    tile_call(op, tile_levels[level]->op[op], n, a.o[0], &a);
    for (int k = 0; k < outputs; k++) {
        bool boolean = t->boolean && k == 0;
        for (long i = 0; i < n; i++) {
            bool same = boolean ? memcmp(&a.o[k][i], &want[k][i], 4) == 0
                                : same_float(a.o[k][i], want[k][i]);
            CHECK(same, "%s %s n=%ld i=%ld output %d: %a, want %a", tile_level_names[level],
                  t->name, n, i, k, (double)a.o[k][i], (double)want[k][i]);
            if (!same) return;
        }
        CHECK(memcmp(&after[k], &a.o[k][n], 4) == 0, "%s %s n=%ld wrote past the end",
              tile_level_names[level], t->name, n);
    }
}

static void check_reduction(int level, int op, long n)
{
    const TileInfo *t = &tile_info[op];
    TileArgs a = arguments();
    static double lanes[128], want[128];
    bool logic = t->reduce == RED_ANY || t->reduce == RED_ALL || t->reduce == RED_COUNT;
    for (int j = 0; j < 128; j++)
        lanes[j] = want[j] = logic ? random_bits() & 1 : (double)(random_bits() & 7) - 3.5;
    for (long i = 0; i < n; i++) {
        Scalar x = tile_expect(t->pattern, &a, i, NULL);
        Scalar y = tile_expect(t->second, &a, i, NULL);
        want[i % 128] = reduce_step((ReduceOp)t->reduce, want[i % 128],
                                    logic ? (double)x.i : (double)x.f, (double)y.f);
    }
    tile_call(op, tile_levels[level]->op[op], n, lanes, &a);
    if (logic) { /* exact in any order: only what they fold to counts */
        lanes[0] = reduce_fold_lanes((ReduceOp)t->reduce, lanes);
        want[0] = reduce_fold_lanes((ReduceOp)t->reduce, want);
    }
    for (int j = 0; j < (logic ? 1 : 128); j++) {
        bool same =
            memcmp(&lanes[j], &want[j], 8) == 0 || (lanes[j] != lanes[j] && want[j] != want[j]);
        CHECK(same, "%s %s n=%ld lane %d: %a, want %a", tile_level_names[level], t->name, n, j,
              lanes[j], want[j]);
        if (!same) return;
    }
}

static void check_operators(int level)
{
    for (int op = 0; op < TILE_OP_COUNT && tile_info[op].name; op++) {
        for (long n = 0; n <= 300; n += n < 140 ? 1 : 13) {
            if (tile_info[op].reduce >= 0) {
                check_reduction(level, op, n);
            } else {
                check_map(level, op, n, false);
                check_map(level, op, n, true);
            }
        }
    }
}

/* All 65,536 values of a 16-bit type, and floats on both sides of every rounding boundary. */
static void check_conversions(int level)
{
    const TileTable *t = tile_levels[level];
    typedef void (*Load)(long, float *, const void *);
    typedef void (*Store)(long, void *, const float *);
    static float f[65536], want;
    static unsigned short h[65536];
    for (int bf = 0; bf < 2; bf++) {
        for (int i = 0; i < 65536; i++) h[i] = (unsigned short)i;
        ((Load)t->op[bf ? TILE_LOAD_BF16 : TILE_LOAD_F16])(65536, f, h);
        for (int i = 0; i < 65536; i++) {
            want = bf ? ds_f32_from_bf16((unsigned short)i) : ds_f32_from_f16((unsigned short)i);
            CHECK(same_float(f[i], want), "%s load %d of %04x", tile_level_names[level], bf, i);
        }
        for (int round = 0; round < 40; round++) {
            for (int i = 0; i < 65536; i++) {
                uint32_t bits = (uint32_t)i << 16 | (random_bits() & 0xffff);
                int shift = bf ? 16 : 13;
                if (round & 1) /* ties, and next to them */
                    bits = (bits & ~((1u << shift) - 1)) |
                           ((1u << (shift - 1)) + (uint32_t)(round % 3) - 1);
                memcpy(&f[i], &bits, 4);
            }
            ((Store)t->op[bf ? TILE_STORE_BF16 : TILE_STORE_F16])(65536, h, f);
            int wrong = 0;
            for (int i = 0; i < 65536; i++)
                wrong += h[i] != (bf ? ds_bf16_from_f32(f[i]) : ds_f16_from_f32(f[i]));
            CHECK(wrong == 0, "%s store %d: %d wrong", tile_level_names[level], bf, wrong);
        }
    }
}

/* Division by multiplication is exact: every mantissa class of root against divisors that are hard
 * (next to powers of two) or any. */
static void check_division(int level)
{
    static float v[4096], zero[4096], want[4096], out[4096], o1[4096];
    TileArgs a = {.v = {v, zero}, .o = {out, o1}};
    for (int round = 0; round < 600; round++) {
        uint32_t mantissa = round < 64    ? (uint32_t)round
                            : round < 128 ? 0x7fffffu - (uint32_t)(round - 64)
                                          : random_bits() & 0x7fffff;
        uint32_t bits = mantissa | (uint32_t)(87 + random_bits() % 81) << 23;
        memcpy(&a.d[0], &bits, 4);
        for (int i = 0; i < 4096; i++) {
            uint32_t x = random_bits() & 0x7fffffff;
            memcpy(&v[i], &x, 4);
            want[i] = sqrtf(v[i]) / a.d[0];
        }
        tile_call(TILE_root_div_add, tile_levels[level]->op[TILE_root_div_add], 4096, out, &a);
        int wrong = 0;
        for (int i = 0; i < 4096; i++) wrong += !same_float(out[i], want[i] + a.s[0]);
        CHECK(wrong == 0, "%s: %d of 4096 quotients by %a differ", tile_level_names[level], wrong,
              (double)a.d[0]);
    }
}

/* The draws of consecutive elements, from a row boundary of the counter on. */
static void check_draws(int level)
{
    typedef void (*Draw)(long, float *, double, double, unsigned, long);
    static const struct {
        TileOp op;
        float (*function)(double, double, ds_u32, ds_u64);
    } draws[] = {
        {TILE_NORMAL, ds_normalf}, {TILE_UNIFORM, ds_uniformf}, {TILE_RADEMACHER, ds_rademacherf}};
    static float out[4097];
    for (size_t d = 0; d < sizeof draws / sizeof *draws; d++) {
        for (long n = 1; n <= 4096; n = n * 3 + 1) {
            long first = n == 1 ? 0 : (1L << 32) - n / 2, wrong = 0;
            out[n] = 7;
            ((Draw)tile_levels[level]->op[draws[d].op])(n, out, 4000000000.0, 5.0, 3, first);
            for (long i = 0; i < n; i++)
                wrong += !same_float(out[i],
                                     draws[d].function(4000000000.0, 5.0, 3, (ds_u64)(first + i)));
            CHECK(wrong == 0 && out[n] == 7, "%s: draw %zu of %ld: %ld wrong",
                  tile_level_names[level], d, n, wrong);
        }
    }
}

int main(void)
{
    for (int level = 0; level < TILE_LEVEL_COUNT; level++) {
        const char *missing;
        if (!tile_level_runs((TileLevel)level, &missing)) {
            printf("skipped: level %s (this processor lacks %s)\n", tile_level_names[level],
                   missing);
            continue;
        }
        check_operators(level);
        check_conversions(level);
        check_division(level);
        check_draws(level);
    }
    return check_done();
}
