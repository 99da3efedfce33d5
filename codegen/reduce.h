/* reduce.h - the fixed tree in which partial results meet (docs/numerics.md, rule on reductions);
 * used by every CPU backend.
 *
 * Lane = i mod 128; each lane is an f64 accumulator that takes its elements in increasing i; lanes
 * fold by halves 64 … 1 with lane j taking lane j + half as the second operand; chunks meet in the
 * aligned binary tree N(k, i) = N(k-1, 2i) + N(k-1, 2i+1), a missing right child skipped; so do
 * tensors, in byte order of their names. Where a body looks at rows, columns or blocks, tiles take
 * the place of chunks.
 */
#ifndef CODEGEN_REDUCE_H
#define CODEGEN_REDUCE_H
#include "abi.h"
#include "frontend/frontend.h"
#include <stddef.h>

double reduce_identity(ReduceOp op);
/* Accumulator with the next value. */
double reduce_step(ReduceOp op, double acc, double x, double y);
double reduce_merge(ReduceOp op, double a, double b); /* two accumulators, the lower one first */
double reduce_fold_lanes(ReduceOp op, double *lanes); /* 128 lanes; overwrites them */
/* The aligned tree over n values v[i * stride]; `present` (may be NULL) marks missing leaves. n = 0
 * or none present: identity. */
double reduce_tree(ReduceOp op, const double *v, size_t n, size_t stride,
                   const unsigned char *present);
/* One chunk (or run): values to 128 lanes, folded. y NULL but for dot; `present` (may be NULL)
 * marks values that take no part. */
double reduce_chunk(ReduceOp op, const double *x, const double *y, size_t n,
                    const unsigned char *present);
/* A vector of values of tensor rate, in byte order of the tensors' names (all that are not empty;
 * those without a gradient are not present): chunked as a tensor of that length, chunks in the
 * tree. */
double reduce_vector(ReduceOp op, const double *x, const double *y, size_t n,
                     const unsigned char *present);
/* The same of n values that `fill` writes, chunk by chunk: x[0 … count) and for dot y. */
typedef void (*ReduceFill)(const void *arg, size_t first, size_t count, double *x, double *y);
double reduce_filled(ReduceOp op, size_t n, ReduceFill fill, const void *arg);
/* `count` runs of n values each, n <= DS_CHUNK: out[k] is reduce_vector of the k-th. y: NULL but
 * for dot. */
void reduce_runs(ReduceOp op, const double *x, const double *y, size_t n, size_t count,
                 double *out);
/* a[i] = merge(a[i], b[i]). */
void reduce_merge_array(ReduceOp op, double *a, const double *b, size_t n);

/* ---- tiles ----------------------------------------------------------------------------------- */

/* How a view other than flat cuts a tensor (docs/numerics.md): each matrix into tiles of `tall` rows
 * (the last may have fewer) times strips of DS_CHUNK columns, ordered by matrix, rows, strip. The
 * last row of a view of blocks may be short: numel < rows * cols. (Rows of work: view.h.) */
typedef struct Tiles {
    int64_t numel, rows, cols, mats;
    int64_t tall;
} Tiles;
Tiles tiles_of(int64_t numel, int64_t rows, int64_t cols, int64_t mats);

/* The reductions of one tensor's values x (and y, for dot), written down from their definition.
 * To rows or blocks: out[mats * rows]; to columns: out[mats * cols]. */
void reduce_rows(ReduceOp op, const Tiles *t, const double *x, const double *y, double *out);
void reduce_cols(ReduceOp op, const Tiles *t, const double *x, const double *y, double *out);
/* Of matrices [from, to): their tiles meet in one tree. */
double reduce_matrices(ReduceOp op, const Tiles *t, const double *x, const double *y, int64_t from,
                       int64_t to);
#endif
