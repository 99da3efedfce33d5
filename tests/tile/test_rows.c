/* test_rows.c - the operators that know of rows of w elements, at every level that runs here: vectors
 * spread over tiles, and reductions to rows and columns, also of whole matrices, against reduce.h,
 * bit for bit; trees; the operators of doubles.
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

/* Columns of matrices of s elements, in rows of w. */
static void call_mat(int op, TileFn fn, long n, long s, long w, double *out, const TileArgs *a)
{
    switch (op) {
#define TILE_RED(name, reduction, params, x, y)                                                    \
    case TILE_RED_##name:                                                                          \
        ((void (*)(long, long, long, double *, TILE_LIST(P_, params)))fn)(n, s, w, out,            \
                                                                          TILE_LIST(A_, params));  \
        break;
#include "codegen/tile/tile.def"
    }
}

static void check_mats(int level, int op, long n, long s, long w)
{
    static double out[MAX + PAD], want[MAX + PAD];
    TileArgs a = arguments();
    long length = n / s * w, wrong = 0;
    for (long j = 0; j < length; j++) want[j] = reduce_identity((ReduceOp)tile_info[op].reduce);
    for (long i = 0; i < n; i++) {
        long j = i / s * w + i % w;
        want[j] = take(op, &a, i, want[j]);
    }
    out[length] = 77;
    call_mat(op, tile_levels[level]->op[tile_info[op].mat], n, s, w, out, &a);
    for (long j = 0; j < length; j++) wrong += !same_double(out[j], want[j]);
    CHECK(wrong == 0 && out[length] == 77, "%s m_%s n=%ld s=%ld w=%ld: %ld wrong",
          tile_level_names[level], tile_info[op].name, n, s, w, wrong);
}

typedef void (*SpreadFn)(long, long, void *, const void *);
typedef void (*SpreadMatFn)(long, long, long, void *, const void *);

static void check_spread_mat(int level, long n, long s, long w)
{
    static float out[MAX + PAD];
    static int flags[MAX + PAD];
    static unsigned char bytes[MAX + PAD];
    static double doubles[MAX + PAD];
    const TileTable *t = tile_levels[level];
    TileArgs a = arguments();
    long wrong = 0;
    for (int i = 0; i < MAX + PAD; i++) doubles[i] = bytes[i] = random_bits() & 1;
    out[n] = 77, flags[n] = 77;
    ((SpreadMatFn)t->op[TILE_SPREAD_MAT])(n, s, w, out, a.v[0]);
    ((SpreadMatFn)t->op[TILE_SPREAD_MAT_B])(n, s, w, flags, bytes);
    for (long i = 0; i < n; i++) {
        long at = i / s * w + i % w;
        wrong += !same_float(out[i], a.v[0][at]) || flags[i] != bytes[at];
    }
    wrong += out[n] != 77 || flags[n] != 77;
    ((SpreadMatFn)t->op[TILE_SPREAD_MAT_D])(n, s, w, flags, doubles);
    for (long i = 0; i < n; i++) wrong += flags[i] != bytes[i / s * w + i % w];
    wrong += flags[n] != 77;
    CHECK(wrong == 0, "%s spread of matrices n=%ld s=%ld w=%ld: %ld wrong", tile_level_names[level],
          n, s, w, wrong);
}

static void check_matrices(int level)
{
    static const long dims[][2] = {{1, 1},  {3, 3},  {5, 5},  {7, 7},  {1, 9},   {9, 1},  {2, 2},
                                   {4, 4},  {4, 2},  {2, 4},  {3, 1},  {7, 3},   {2, 8},  {3, 16},
                                   {5, 17}, {6, 64}, {1, 384}, {384, 1}, {19, 20}, {16, 24}};
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
        long w = dims[d][1], s = dims[d][0] * w, most = 384 / s;
        const long mats[] = {1, 2, most, most > 5 ? most - 3 : 1};
        for (size_t k = 0; k < sizeof mats / sizeof *mats; k++) {
            long n = (mats[k] < most ? mats[k] : most) * s;
            check_spread_mat(level, n, s, w);
            for (int op = 0; op < TILE_OP_COUNT && tile_info[op].name; op++)
                if (tile_info[op].reduce >= 0) check_mats(level, op, n, s, w);
        }
    }
}

/* Trees against reduce_tree, at every length. */
static void check_trees(int level)
{
    static double v[400], w[400];
    for (int op = 0; op < RED_COUNT_; op++)
        for (long n = 1; n < 390; n++) {
            bool logic = reduce_info[op].types == LOGIC;
            for (long i = 0; i < n; i++) {
                v[i] = w[i] = logic ? random_bits() & 1 : (double)random_float();
            }
            v[n] = 77;
            TileFn fn = tile_levels[level]->op[TILE_TREE_SUM + op];
            double want = reduce_tree((ReduceOp)op, w, (size_t)n, 1, NULL),
                   got = ((double (*)(long, double *))fn)(n, v);
            CHECK(same_double(got, want) && v[n] == 77, "%s tree_%s of %ld: %a, want %a",
                  tile_level_names[level], reduce_info[op].name, n, got, want);
        }
}

/* ---- doubles --------------------------------------------------------------------------------- */

static double random_double(void)
{
    uint32_t kind = random_bits() & 15;
    double x = kind == 0 ? (double)random_float() : (double)(int32_t)random_bits() * 0x1p-20;
    return kind == 1 ? x * 0x1p300 : kind == 2 ? x * 0x1p-1040 : kind == 3 ? -0.0 : x;
}

typedef void (*WideFn)(long, void *, const void *, const void *, const void *);

static double wide_want(int op, double a, int flag, double b, double c)
{
    switch (op) {
#define WANT_NUM(E) fn64_##E(a, b, c)
#define WANT_CMP(E) fn64_##E(a, b, c)
#define WANT_SELECT(E) fn64_##E(flag, b, c)
#define TILE_WIDE(E, types)                                                                        \
    case TILE_WIDE_##E: return WANT_##types(E);
#include "codegen/tile/wide.def"
    }
    return NAN;
}

static bool is_compare(int op)
{
    switch (op) {
#define FLAGS_NUM false
#define FLAGS_CMP true
#define FLAGS_SELECT false
#define TILE_WIDE(E, types)                                                                        \
    case TILE_WIDE_##E: return FLAGS_##types;
#include "codegen/tile/wide.def"
    }
    return false;
}

static void check_wide(int level)
{
    enum { N = 140 };
    static double a[N], b[N], c[N], out[N];
    static int flags[N], truth[N];
    for (int op = TILE_WIDE_ADD; op <= TILE_WIDE_SELECT; op++)
        for (long n = 0; n < N; n++) {
            int wrong = 0;
            for (int i = 0; i < N; i++) {
                a[i] = random_double(), b[i] = random_double(), c[i] = random_double();
                flags[i] = random_bits() & 1;
                out[i] = truth[i] = 77;
                if (random_bits() % 4 == 0) b[i] = a[i];
            }
            ((WideFn)tile_levels[level]->op[op])(
                n, is_compare(op) ? (void *)truth : (void *)out,
                op == TILE_WIDE_SELECT ? (void *)flags : (void *)a, b, c);
            for (int i = 0; i < N; i++) {
                double got = is_compare(op) ? truth[i] : out[i];
                wrong += !same_double(got, i < n ? wide_want(op, a[i], flags[i], b[i], c[i]) : 77);
            }
            CHECK(wrong == 0, "%s wide operator %d of %ld: %d wrong", tile_level_names[level],
                  op - TILE_WIDE_ADD, n, wrong);
        }
}

typedef void (*ConvertFn)(long, void *, const void *);

static void check_conversions(int level)
{
    enum { N = 140 };
    static double d[N], wide[N], same[N];
    static float f[N], narrow[N];
    static int flags[N];
    static unsigned char bytes[N];
    const TileTable *t = tile_levels[level];
    for (long n = 0; n < N; n++) {
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            d[i] = random_double(), f[i] = random_float(), flags[i] = random_bits() & 1;
            wide[i] = same[i] = narrow[i] = bytes[i] = 77;
        }
        ((ConvertFn)t->op[TILE_COPY_D])(n, same, d);
        ((ConvertFn)t->op[TILE_WIDEN])(n, wide, f);
        ((ConvertFn)t->op[TILE_NARROW])(n, narrow, d);
        ((ConvertFn)t->op[TILE_BYTES])(n, bytes, flags);
        for (int i = 0; i < N; i++) {
            bool in = i < n;
            wrong += !same_double(same[i], in ? d[i] : 77);
            wrong += !same_double(wide[i], in ? (double)f[i] : 77);
            wrong += !same_float(narrow[i], in ? (float)d[i] : 77);
            wrong += bytes[i] != (in ? flags[i] : 77);
        }
        CHECK(wrong == 0, "%s conversions of %ld: %d wrong", tile_level_names[level], n, wrong);
    }
}

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
        check_matrices(level);
        check_trees(level);
        check_wide(level);
        check_conversions(level);
    }
    return check_done();
}
