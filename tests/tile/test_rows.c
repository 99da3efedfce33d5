/* test_rows.c - the operators that know of rows of w elements, at every level that runs here: vectors
 * spread over tiles, and reductions to rows and columns, against reduce.h, bit for bit.
 *
 * Every reduction of tile.def × widths 1 … 400 × whole and short last rows × addresses off by 0 … 3
 * elements, values with zeros of both signs, infinities, NaN and subnormals; nothing is written past
 * the end.
 *
 *     w_SUM_v(6, 3, out, x)  ->  out[0] = (x0 + x2) + x1, as 128 lanes fold
 */
#include "../check.h"
#include "call.h"
#include <math.h>
#include <stdint.h>

enum { MAX = 800, PAD = 8 };

static float random_float(void)
{
    static const float special[] = {0.0f,      -0.0f,     1.0f,       INFINITY,
                                    -INFINITY, 0x1p-149f, -0x1p-126f, 0x1.fffffep127f};
    uint32_t r = random_bits(), kind = r & 63;
    float f;
    if (kind < 4) return special[(r >> 8) % 3]; /* what is not finite would hide the others */
    if (kind == 4) return special[(r >> 8) % 8];
    if (kind == 5) {
        memcpy(&f, &r, 4);
        return f;
    }
    return (float)((int)(r >> 8) - (1 << 23)) * (kind < 32 ? 0x1p-23f : 0x1p-40f);
}

static float room_v[3][MAX + PAD];
static int room_b[MAX + PAD];

static TileArgs arguments(void)
{
    TileArgs a = {.b = {NULL}};
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < MAX + PAD; i++) room_v[k][i] = random_float();
        a.v[k] = room_v[k] + random_bits() % 4;
        a.s[k] = random_float();
    }
    int often = (int)(random_bits() % 4);
    for (int i = 0; i < MAX + PAD; i++) room_b[i] = often == 3 || (random_bits() & 63) < 2;
    a.b[0] = room_b + random_bits() % 4;
    return a;
}

static void call(int op, TileFn fn, long n, long w, double *out, const TileArgs *a)
{
    switch (op) {
#define TILE_RED(name, reduction, params, x, y)                                                    \
    case TILE_RED_##name:                                                                          \
        ((void (*)(long, long, double *, TILE_LIST(P_, params)))fn)(n, w, out,                     \
                                                                    TILE_LIST(A_, params));        \
        break;
#include "codegen/tile/tile.def"
    }
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/* Element i taken by an accumulator. */
static double take(int op, const TileArgs *a, long i, double acc)
{
    const TileInfo *t = &tile_info[op];
    bool logic = reduce_info[t->reduce].types == LOGIC;
    Scalar x = tile_expect(t->pattern, a, i, NULL), y = tile_expect(t->second, a, i, NULL);
    return reduce_step((ReduceOp)t->reduce, acc, logic ? (double)x.i : (double)x.f, (double)y.f);
}

static void check_rows(int level, int op, long n, long w)
{
    static double out[MAX + PAD];
    TileArgs a = arguments();
    long rows = (n + w - 1) / w;
    out[rows] = 77;
    call(op, tile_levels[level]->op[tile_info[op].row], n, w, out, &a);
    for (long r = 0; r < rows; r++) {
        double lanes[128];
        for (int j = 0; j < 128; j++) lanes[j] = reduce_identity((ReduceOp)tile_info[op].reduce);
        for (long j = 0; j < w && r * w + j < n; j++)
            lanes[j % 128] = take(op, &a, r * w + j, lanes[j % 128]);
        double want = reduce_fold_lanes((ReduceOp)tile_info[op].reduce, lanes);
        bool same = same_double(out[r], want);
        CHECK(same, "%s w_%s n=%ld w=%ld row %ld: %a, want %a", tile_level_names[level],
              tile_info[op].name, n, w, r, out[r], want);
        if (!same) return;
    }
    CHECK(out[rows] == 77, "%s w_%s n=%ld w=%ld wrote past the end", tile_level_names[level],
          tile_info[op].name, n, w);
}

static void check_cols(int level, int op, long n, long w)
{
    static double acc[MAX + PAD], want[MAX + PAD];
    TileArgs a = arguments();
    bool logic = reduce_info[tile_info[op].reduce].types == LOGIC;
    for (long j = 0; j <= w; j++)
        acc[j] = want[j] = logic ? random_bits() & 1 : (double)(random_bits() & 7) - 3.5;
    for (long i = 0; i < n; i++) want[i % w] = take(op, &a, i, want[i % w]);
    call(op, tile_levels[level]->op[tile_info[op].col], n, w, acc, &a);
    for (long j = 0; j <= w; j++) {
        bool same = same_double(acc[j], want[j]);
        CHECK(same, "%s c_%s n=%ld w=%ld column %ld: %a, want %a", tile_level_names[level],
              tile_info[op].name, n, w, j, acc[j], want[j]);
        if (!same) return;
    }
}

typedef void (*SpreadFn)(long, long, void *, const void *);

static void check_spread(int level, long n, long w)
{
    static float out[MAX + PAD];
    static int flags[MAX + PAD];
    static unsigned char bytes[MAX + PAD];
    static double doubles[MAX + PAD];
    const TileTable *t = tile_levels[level];
    TileArgs a = arguments();
    for (int i = 0; i < MAX + PAD; i++) doubles[i] = bytes[i] = random_bits() & 1;
    for (int col = 0; col < 2; col++) {
        out[n] = 77, flags[n] = 77;
        ((SpreadFn)t->op[col ? TILE_SPREAD_COL : TILE_SPREAD_ROW])(n, w, out, a.v[0]);
        ((SpreadFn)t->op[col ? TILE_SPREAD_COL_B : TILE_SPREAD_ROW_B])(n, w, flags, bytes);
        int wrong = out[n] != 77 || flags[n] != 77;
        for (long i = 0; i < n; i++) {
            long at = col ? i % w : i / w;
            wrong += !same_float(out[i], a.v[0][at]) || flags[i] != bytes[at];
        }
        ((SpreadFn)t->op[col ? TILE_SPREAD_COL_D : TILE_SPREAD_ROW_D])(n, w, flags, doubles);
        wrong += flags[n] != 77;
        for (long i = 0; i < n; i++) wrong += flags[i] != bytes[col ? i % w : i / w];
        CHECK(wrong == 0, "%s spread of %s n=%ld w=%ld: %d wrong", tile_level_names[level],
              col ? "columns" : "rows", n, w, wrong);
    }
}

static void check_width(int level, long w)
{
    long most = 384 / w > 0 ? 384 / w * w : w;
    const long lengths[] = {w, 2 * w, most, most - w / 2, most - w + 1, w / 2 + 1};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        long n = lengths[l] > 0 && lengths[l] <= MAX ? lengths[l] : w;
        check_spread(level, n, w);
        for (int op = 0; op < TILE_OP_COUNT && tile_info[op].name; op++) {
            if (tile_info[op].reduce < 0) continue;
            check_rows(level, op, n, w);
            check_cols(level, op, n, w);
        }
    }
}

static void check_fill(int level)
{
    static double out[140];
    for (long n = 0; n < 140; n++) {
        for (int i = 0; i < 140; i++) out[i] = 1;
        ((void (*)(long, double *, double))tile_levels[level]->op[TILE_FILL_D])(n, out, 5);
        int wrong = 0;
        for (int i = 0; i < 140; i++) wrong += out[i] != (i < n ? 5 : 1);
        CHECK(wrong == 0, "%s fill_d of %ld: %d wrong", tile_level_names[level], n, wrong);
    }
}

int main(void)
{
    static const long widths[] = {1,   2,   3,   4,   5,   7,   8,   9,   15,  16,  17,
                                  24,  31,  32,  33,  63,  64,  65,  100, 127, 128, 129,
                                  191, 200, 255, 256, 257, 300, 383, 384, 400};
    for (int level = 0; level < TILE_LEVEL_COUNT; level++) {
        if (!tile_level_runs((TileLevel)level, NULL)) continue;
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) check_width(level, widths[i]);
        check_fill(level);
    }
    return check_done();
}
