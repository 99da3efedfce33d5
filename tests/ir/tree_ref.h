/* The fixed tree written down from its definition (docs/numerics.md), to compare with: recursively,
 * lane by lane. */
#ifndef TESTS_IR_TREE_REF_H
#define TESTS_IR_TREE_REF_H
#include "ir_test.h"

/* One row of the table again, by hand. */
static double step(ReduceOp op, double a, double x, double y)
{
    switch (op) {
    case RED_SUM: return a + x;
    case RED_SUMSQ: return a + x * x;
    case RED_DOT: return a + x * y;
    case RED_RMIN: return a != a || x != x ? NAN : x < a ? x : a;
    case RED_RMAX: return a != a || x != x ? NAN : x > a ? x : a;
    case RED_ANY: return a != 0 || x != 0;
    case RED_ALL: return a != 0 && x != 0;
    default: return a + x;
    }
}
static double merge(ReduceOp op, double a, double b)
{
    return step(op == RED_SUMSQ || op == RED_DOT || op == RED_COUNT ? RED_SUM : op, a, b, 0);
}
static double identity(ReduceOp op)
{
    return op == RED_RMIN   ? (double)INFINITY
           : op == RED_RMAX ? -(double)INFINITY
           : op == RED_ALL  ? 1
                            : 0;
}

/* N(level, i) over n leaves; *there: whether any leaf below it exists and is present. */
static double node(ReduceOp op, const double *v, size_t n, const unsigned char *present, int level,
                   size_t i, bool *there)
{
    *there = false;
    if (i << level >= n) return 0;
    if (level == 0) {
        *there = !present || present[i];
        return v[i];
    }
    bool has_left, has_right;
    double left = node(op, v, n, present, level - 1, 2 * i, &has_left);
    double right = node(op, v, n, present, level - 1, 2 * i + 1, &has_right);
    *there = has_left || has_right;
    if (has_left && has_right) return merge(op, left, right);
    return has_left ? left : right;
}
static double tree(ReduceOp op, const double *v, size_t n, const unsigned char *present)
{
    int level = 0;
    while ((size_t)1 << level < n) level++;
    bool there;
    double r = node(op, v, n, present, level, 0, &there);
    return there ? r : identity(op);
}

static double chunk(ReduceOp op, const double *x, const double *y, size_t n,
                    const unsigned char *present)
{
    double lane[128];
    for (size_t j = 0; j < 128; j++) {
        lane[j] = identity(op);
        for (size_t i = j; i < n; i += 128)
            if (!present || present[i]) lane[j] = step(op, lane[j], x[i], y[i]);
    }
    for (int half = 64; half; half /= 2)
        for (int j = 0; j < half; j++) lane[j] = merge(op, lane[j], lane[j + half]);
    return lane[0];
}

/* A vector as long as a tensor: chunks, and the tree over them. */
static inline double whole(ReduceOp op, const double *x, const double *y, size_t n,
                           const unsigned char *present)
{
    double chunks[64];
    size_t nchunks = (n + 4095) / 4096;
    REQUIRE(nchunks <= 64, "%zu values", n);
    for (size_t c = 0; c < nchunks; c++) {
        size_t at = c * 4096, count = n - at < 4096 ? n - at : 4096;
        chunks[c] = chunk(op, x + at, y + at, count, present ? present + at : NULL);
    }
    return tree(op, chunks, nchunks, NULL);
}

/* ---- tiles: each value goes to the tile that its row and column say ---------------------------- */

typedef struct Cut {
    int64_t numel, rows, cols, mats;
} Cut;
enum { TILE_MAX = 65536, TILES_MAX = 4096 };

static inline int64_t cut_height(const Cut *c)
{
    int64_t k = 256 / (c->cols ? c->cols : 1);
    return 16 * (k < 1 ? 1 : k);
}
static inline int64_t cut_ceil(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* All values of matrices [from, to): lanes by position in the tile, tiles in the tree. */
static inline double tiled(ReduceOp op, const Cut *c, const double *x, const double *y,
                           int64_t from, int64_t to)
{
    static double tx[TILE_MAX], ty[TILE_MAX], part[TILES_MAX];
    int64_t k = cut_height(c), n = 0;
    for (int64_t m = from; m < to; m++)
        for (int64_t top = 0; top < c->rows; top += k)
            for (int64_t left = 0; left < c->cols; left += 4096) {
                size_t count = 0;
                for (int64_t row = top; row < top + k && row < c->rows; row++)
                    for (int64_t col = left; col < left + 4096 && col < c->cols; col++) {
                        int64_t e = (m * c->rows + row) * c->cols + col;
                        if (e >= c->numel) continue;
                        tx[count] = x[e];
                        ty[count++] = y[e];
                    }
                REQUIRE(n < TILES_MAX && count <= TILE_MAX, "too large for the reference");
                part[n++] = chunk(op, tx, ty, count, NULL);
            }
    return tree(op, part, (size_t)n, NULL);
}

/* A row (or block), counted through all matrices: pieces of 4096 columns. */
static inline double tiled_row(ReduceOp op, const Cut *c, const double *x, const double *y,
                               int64_t row)
{
    double part[64];
    size_t n = 0;
    for (int64_t left = 0; left < c->cols; left += 4096) {
        int64_t at = row * c->cols + left, width = c->cols - left < 4096 ? c->cols - left : 4096;
        if (at + width > c->numel) width = c->numel > at ? c->numel - at : 0;
        REQUIRE(n < 64, "too wide for the reference");
        part[n++] = chunk(op, x + at, y + at, (size_t)width, NULL);
    }
    return tree(op, part, n, NULL);
}

/* A column of a matrix: one accumulator per tile of rows. */
static inline double tiled_col(ReduceOp op, const Cut *c, const double *x, const double *y,
                               int64_t matrix, int64_t col)
{
    static double part[TILES_MAX];
    size_t n = 0;
    int64_t k = cut_height(c);
    for (int64_t row = 0; row < c->rows; row++) {
        int64_t e = (matrix * c->rows + row) * c->cols + col;
        if (row % k == 0) part[n++] = identity(op);
        part[n - 1] = step(op, part[n - 1], x[e], y[e]);
    }
    return tree(op, part, n, NULL);
}
#endif
