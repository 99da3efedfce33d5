/* Tiles against their definition, written down a second time (tree_ref.h). */
#include "tree_ref.h"

enum { MAX = 300000 };
static double x[MAX + 1], y[MAX + 1], truth[MAX + 1];

static bool same(double a, double b)
{
    return memcmp(&a, &b, 8) == 0 || (a != a && b != b);
}

static void check_op(ReduceOp op, const Cut *c, const double *u, const double *v)
{
    static double rows[MAX + 1], cols[MAX + 1];
    Tiles t = tiles_of(c->numel, c->rows, c->cols, c->mats);
    int64_t wrong = 0;
    reduce_rows(op, &t, u, v, rows);
    for (int64_t r = 0; r < c->mats * c->rows; r++)
        wrong += !same(rows[r], tiled_row(op, c, u, v, r));
    if (c->numel == c->mats * c->rows * c->cols) {
        reduce_cols(op, &t, u, v, cols);
        for (int64_t k = 0; k < c->mats * c->cols; k++)
            wrong += !same(cols[k], tiled_col(op, c, u, v, k / c->cols, k % c->cols));
    }
    for (int64_t m = 0; m < c->mats; m++)
        wrong += !same(reduce_matrices(op, &t, u, v, m, m + 1), tiled(op, c, u, v, m, m + 1));
    wrong += !same(reduce_matrices(op, &t, u, v, 0, c->mats), tiled(op, c, u, v, 0, c->mats));
    CHECK(wrong == 0, "%s over %ld of %ld x %ld x %ld: %ld differ", reduce_info[op].name,
          (long)c->numel, (long)c->mats, (long)c->rows, (long)c->cols, (long)wrong);
}

/* numel, rows, cols, mats */
static const Cut cuts[] = {
    {1, 1, 1, 1},
    {100, 1, 100, 1},
    {5000, 5000, 1, 1},     /* one column: 4096 rows to a tile */
    {5000, 1, 5000, 1},     /* one row, two strips */
    {105, 5, 3, 7},         /* a batch */
    {4095, 1365, 3, 1},     /* 1360 rows to a tile, and five */
    {31 * 257, 31, 257, 1}, /* 16 rows to a tile: more than 4096 */
    {33 * 256 * 2, 33, 256, 2},
    {17 * 4096, 17, 4096, 1},
    {33 * 4097, 33, 4097, 1},
    {3 * 2 * 12300, 2, 12300, 3},
    {300, 4, 75, 1},
    {1000, 143, 7, 1}, /* blocks of 7, the last of 6 */
    {5, 1, 64, 1},     /* a block that is not filled */
    {12 * 400 + 1, 13, 400, 1},
    {23000, 5, 5000, 1},           /* wide blocks; the last ends in its first strip */
    {2 * 9000 + 5000, 3, 9000, 1}, /* in its second */
    {16 * 4100 + 3, 17, 4100, 1},  /* alone in its tile: the second strip has nothing */
    {0, 0, 5, 1},
    {0, 5, 0, 2},
};

int main(void)
{
    uint64_t seed = 4242;
    for (int i = 0; i < MAX; i++) {
        check_random(&seed);
        double u = (double)(seed >> 11) * 0x1p-53 - 0.5;
        x[i] = u * pow(2, (double)((seed >> 3) % 40)); /* magnitudes differ: order shows */
        y[i] = u + 3;
        truth[i] = u > -0.49;
    }
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        for (int op = 0; op < RED_COUNT_; op++) {
            const double *values = reduce_info[op].types == LOGIC ? truth : x;
            check_op((ReduceOp)op, &cuts[i], values, reduce_info[op].arity > 1 ? y : values);
        }
    }
    /* Tiles are not chunks: the bits differ. */
    Tiles t = tiles_of(33 * 4097, 33, 4097, 1);
    CHECK(reduce_matrices(RED_SUM, &t, x, NULL, 0, 1) !=
              reduce_vector(RED_SUM, x, NULL, 33 * 4097, NULL),
          "the values do not tell orders apart");
    return check_done();
}
