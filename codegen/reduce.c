/* reduce.c - the fixed tree in which partial results meet: reduce.h.
 *
 * Requires round to nearest and -ffp-contract=off. Ensures the same bits as every executor: values
 * go to accumulators and accumulators to each other in one order, whatever computes them.
 *
 *     reduce_tree(RED_SUM, {a, b, c, d, e}, 5, 1, NULL)  =  ((a + b) + (c + d)) + e
 */
#include "reduce.h"
#include "abi.h"
#include <math.h>

double reduce_identity(ReduceOp op)
{
    return reduce_info[op].identity;
}

/* clang-format off: it joins the tables with the lines after them */
double reduce_step(ReduceOp op, double a, double x, double y)
{
    (void)y;
    switch (op) {
#define REDUCE(ENUM, name, arity, types, identity, combine, merge)                                 \
    case RED_##ENUM: return combine;
#include "frontend/ops.def"
    case RED_COUNT_: break;
    }
    return NAN;
}

double reduce_merge(ReduceOp op, double a, double b)
{
    switch (op) {
#define REDUCE(ENUM, name, arity, types, identity, combine, merge)                                 \
    case RED_##ENUM: return merge;
#include "frontend/ops.def"
    case RED_COUNT_: break;
    }
    return NAN;
}

/* clang-format on */

static double fold(ReduceOp op, double *lanes, int n)
{
    for (int half = n / 2; half > 0; half /= 2) {
        for (int j = 0; j < half; j++) lanes[j] = reduce_merge(op, lanes[j], lanes[j + half]);
    }
    return lanes[0];
}

double reduce_fold_lanes(ReduceOp op, double *lanes)
{
    return fold(op, lanes, DS_LANES);
}

/* The aligned tree over leaves that come in order: one subtree at each level at most is open, as
 * the bits of a counter. */
typedef struct Tree {
    double value[64];
    unsigned char present[64], level[64];
    int depth;
} Tree;

static void tree_join(ReduceOp op, Tree *t)
{
    int left = t->depth - 2, right = t->depth - 1;
    if (t->present[left] && t->present[right])
        t->value[left] = reduce_merge(op, t->value[left], t->value[right]);
    else if (t->present[right])
        t->value[left] = t->value[right];
    t->present[left] |= t->present[right];
    t->level[left]++;
    t->depth--;
}

static void tree_push(ReduceOp op, Tree *t, double v, bool present)
{
    t->value[t->depth] = v;
    t->present[t->depth] = present;
    t->level[t->depth++] = 0;
    while (t->depth > 1 && t->level[t->depth - 1] == t->level[t->depth - 2]) tree_join(op, t);
}

static double tree_root(ReduceOp op, Tree *t)
{
    while (t->depth > 1) tree_join(op, t); /* right children are missing above the last leaf */
    return t->depth && t->present[0] ? t->value[0] : reduce_identity(op);
}

double reduce_tree(ReduceOp op, const double *v, size_t n, size_t stride,
                   const unsigned char *present)
{
    Tree t = {.depth = 0};
    for (size_t i = 0; i < n; i++) tree_push(op, &t, v[i * stride], !present || present[i]);
    return tree_root(op, &t);
}

double reduce_chunk(ReduceOp op, const double *x, const double *y, size_t n,
                    const unsigned char *present)
{
    double lanes[DS_LANES];
    /* Of few values: lanes that have none hold the identity, and change no other. */
    int used = 1;
    while (used < DS_LANES && (size_t)used < n) used *= 2;
    for (int j = 0; j < used; j++) lanes[j] = reduce_identity(op);
    for (size_t i = 0; i < n; i++) {
        double *lane = &lanes[i % DS_LANES];
        if (!present || present[i]) *lane = reduce_step(op, *lane, x[i], y ? y[i] : 0);
    }
    return fold(op, lanes, used);
}

double reduce_vector(ReduceOp op, const double *x, const double *y, size_t n,
                     const unsigned char *present)
{
    Tree t = {.depth = 0};
    for (size_t i = 0; i < n; i += DS_CHUNK) {
        size_t count = n - i < DS_CHUNK ? n - i : DS_CHUNK;
        double chunk =
            reduce_chunk(op, x + i, y ? y + i : NULL, count, present ? present + i : NULL);
        tree_push(op, &t, chunk, true);
    }
    return tree_root(op, &t);
}

double reduce_filled(ReduceOp op, size_t n, ReduceFill fill, const void *arg)
{
    double x[DS_CHUNK], y[DS_CHUNK];
    bool two = reduce_info[op].arity > 1;
    Tree t = {.depth = 0};
    for (size_t i = 0; i < n; i += DS_CHUNK) {
        size_t count = n - i < DS_CHUNK ? n - i : DS_CHUNK;
        fill(arg, i, count, x, y);
        tree_push(op, &t, reduce_chunk(op, x, two ? y : NULL, count, NULL), true);
    }
    return tree_root(op, &t);
}

/* clang-format off: it joins the tables with the lines after them */
void reduce_merge_array(ReduceOp op, double *to, const double *from, size_t n)
{
    switch (op) {
#define REDUCE(ENUM, name, arity, types, identity, combine, merge)                                 \
    case RED_##ENUM:                                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            double a = to[i], b = from[i];                                                         \
            to[i] = merge;                                                                         \
        }                                                                                          \
        break;
#include "frontend/ops.def"
    case RED_COUNT_: break;
    }
}
/* A run of at most DS_LANES values has one in each of its lanes; what the others would fold to is
 * left out. */
#define REDUCE(ENUM, name, arity, types, identity, combine, merge)                                 \
    static void runs_##ENUM(const double *xs, const double *ys, size_t n, size_t count,            \
                            double *out)                                                           \
    {                                                                                              \
        double lanes[DS_LANES];                                                                    \
        size_t top = 1;                                                                            \
        while (top < n) top *= 2;                                                                  \
        for (size_t k = 0; k < count; k++, xs += n, ys += n) {                                     \
            for (size_t j = 0; j < n; j++) {                                                       \
                const double a = identity, x = xs[j], y = ys[j];                                   \
                (void)y;                                                                           \
                lanes[j] = combine;                                                                \
            }                                                                                      \
            size_t used = n;                                                                       \
            for (size_t half = top / 2; half > 0; used = half, half /= 2)                          \
                for (size_t j = 0; j + half < used; j++) {                                         \
                    const double a = lanes[j], b = lanes[j + half];                                \
                    lanes[j] = merge;                                                              \
                }                                                                                  \
            out[k] = lanes[0];                                                                     \
        }                                                                                          \
    }
#include "frontend/ops.def"

void reduce_runs(ReduceOp op, const double *x, const double *y, size_t n, size_t count, double *out)
{
    if (n == 0 || n > DS_LANES) {
        for (size_t k = 0; k < count; k++)
            out[k] = reduce_vector(op, x + k * n, y ? y + k * n : NULL, n, NULL);
        return;
    }
    switch (op) {
#define REDUCE(ENUM, name, arity, types, identity, combine, merge)                                 \
    case RED_##ENUM: runs_##ENUM(x, y ? y : x, n, count, out); break;
#include "frontend/ops.def"
    case RED_COUNT_: break;
    }
}
/* clang-format on */

/* ---- tiles ----------------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

Tiles tiles_of(int64_t numel, int64_t rows, int64_t cols, int64_t mats)
{
    int64_t many = cols > 0 ? 256 / cols : 1;
    return (Tiles){numel, rows, cols, mats, 16 * (many > 1 ? many : 1)};
}

void reduce_rows(ReduceOp op, const Tiles *t, const double *x, const double *y, double *out)
{
    for (int64_t r = 0; r < t->mats * t->rows; r++) {
        Tree tree = {.depth = 0};
        int64_t end = least((r + 1) * t->cols, t->numel);
        for (int64_t left = 0; left < t->cols; left += DS_CHUNK) {
            int64_t at = least(r * t->cols + left, end), n = least(end - at, DS_CHUNK);
            double piece = reduce_chunk(op, x + at, y ? y + at : NULL, (size_t)n, NULL);
            tree_push(op, &tree, piece, true);
        }
        out[r] = tree_root(op, &tree);
    }
}

void reduce_cols(ReduceOp op, const Tiles *t, const double *x, const double *y, double *out)
{
    for (int64_t c = 0; c < t->mats * t->cols; c++) {
        Tree tree = {.depth = 0};
        int64_t top = c / t->cols * t->rows * t->cols + c % t->cols;
        for (int64_t row = 0; row < t->rows; row += t->tall) {
            double acc = reduce_identity(op);
            for (int64_t k = row; k < least(row + t->tall, t->rows); k++) {
                int64_t at = top + k * t->cols;
                acc = reduce_step(op, acc, x[at], y ? y[at] : 0);
            }
            tree_push(op, &tree, acc, true);
        }
        out[c] = tree_root(op, &tree);
    }
}

/* The tile whose first row and column these are: lanes go on from row to row. */
static double reduce_tile(ReduceOp op, const Tiles *t, int64_t matrix, int64_t row, int64_t col,
                          const double *x, const double *y)
{
    double lanes[DS_LANES];
    for (int j = 0; j < DS_LANES; j++) lanes[j] = reduce_identity(op);
    int64_t position = 0;
    for (int64_t r = row; r < least(row + t->tall, t->rows); r++) {
        int64_t at = (matrix * t->rows + r) * t->cols + col;
        int64_t end = least(at + least(DS_CHUNK, t->cols - col), t->numel);
        for (; at < end; at++, position++) {
            double *lane = &lanes[position % DS_LANES];
            *lane = reduce_step(op, *lane, x[at], y ? y[at] : 0);
        }
    }
    return reduce_fold_lanes(op, lanes);
}

double reduce_matrices(ReduceOp op, const Tiles *t, const double *x, const double *y, int64_t from,
                       int64_t to)
{
    Tree tree = {.depth = 0};
    for (int64_t m = from; m < to; m++)
        for (int64_t row = 0; row < t->rows; row += t->tall)
            for (int64_t col = 0; col < t->cols; col += DS_CHUNK)
                tree_push(op, &tree, reduce_tile(op, t, m, row, col, x, y), true);
    return tree_root(op, &tree);
}
