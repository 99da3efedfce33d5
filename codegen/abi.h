/* abi.h - what a built step is, to whoever runs it: entry names, argument block, tables. The same
 * for every backend.
 *
 * A kernel is `void k<phase>(const DsArgs *, int64_t begin, int64_t end, void *scratch)`: it runs
 * rows [begin, end) of the chunk table. A row is a chunk or a tile of one tensor (DsRow). A vector
 * program is `void v<phase>_<rate>(const DsArgs *, int64_t begin, int64_t end)` over a table of its
 * own, whose rows are indices [first, first + count) of one tensor's vector; stores to vectors are
 * in `vcommit_<rate>`. Programs of body b > 0 end in _b. Scalar programs are `void s<phase>_<level>(double
 * *global, double *group, double *cls, double *tensor)` and `void commit_<level>(…)`; pointers of
 * finer levels than the program's are NULL. Kernels of different rows may run on different threads;
 * nothing else is shared but `partial`, of which each row has its own `npartial` doubles.
 */
#ifndef CODEGEN_ABI_H
#define CODEGEN_ABI_H
#include <stdint.h>

enum { DS_CHUNK = 4096, DS_LANES = 128, DS_PACK = 384 };

/* `runs` runs of `count` consecutive elements each, `pitch` apart. In a flat body: one run, at most
 * DS_CHUNK elements from a multiple of DS_CHUNK on. In the other views a tile of one matrix
 * (docs/numerics.md): whole rows in one run where the matrix has at most DS_CHUNK columns, else one
 * run for each row of a strip of DS_CHUNK columns; the last run has `last` elements (count, but
 * where the last block is short; 0 where it does not reach the strip: such rows are rows of the
 * table, too, since every partial result is written). Position q of run i is element
 * first + i * pitch + q, index row + i + q / width of the row (block) vector, matrix * cols + col +
 * q % width of the column vector.
 *
 * Of a batch of matrices of at most DS_PACK elements each, several tiles are one row of the table,
 * one run: DsTensorRow.packs whole matrices, a power of two, the last row with what is left. With s
 * = rows * cols, position q is of matrix + q / s, and index (matrix + q / s) * cols + q % width of
 * the column vector.
 *
 * Partial results of a reduction to rows or blocks: buffer[strip * (mats * rows) + index]; to
 * columns: buffer[matrix * tiles * cols + tile * cols + col + …], `tiles` being the tiles of rows
 * of a matrix, DsTensorRow.tiles. Other reductions: DsArgs.partial. Of a row of several matrices:
 * to matrices, the results themselves, result[matrix + q / s]; to the tensor and coarser, the tree
 * over its matrices, which is a part of the tensor's, as their number is a power of two. */
typedef struct DsRow {
    int64_t tensor; /* row of the tensor table */
    int64_t first;  /* its first element in the tensor */
    int64_t count;
    int64_t runs, pitch, width, last;
    int64_t matrix, row, col; /* row: matrix * rows + the first row; col: the first column */
    int64_t strip, tile;      /* its strip of columns; its tile of rows within the matrix */
} DsRow;

typedef struct DsTensorRow {
    double *u[4];     /* blocks of its global, group, class and tensor level */
    void *const *ptr; /* p, g, states of elements and vectors; the body's vectors; temporaries of
                         elements; any alignment */
    int64_t rows, cols, mats, tiles; /* of the body's view; flat: 1, numel, 1, 1. Blocks: rows =
                                        blocks, cols = elements of a block */
    int64_t packs;                   /* matrices of a row of the table; 1: a tile is a row */
} DsTensorRow;

static inline DsRow ds_flat_row(int64_t tensor, int64_t first, int64_t count)
{
    return (DsRow){.tensor = tensor,
                   .first = first,
                   .count = count,
                   .runs = 1,
                   .pitch = count,
                   .width = count,
                   .last = count};
}

typedef struct DsArgs {
    const DsRow *rows;
    const DsTensorRow *tensors;
    double *partial; /* partial[row * npartial + column] of the phase */
    int64_t npartial;
} DsArgs;

/* scratch: memory of the calling thread, aligned to 64, of at least BuiltVariant.scratch_bytes. */
typedef void (*DsKernelFn)(const DsArgs *args, int64_t begin, int64_t end, void *scratch);
typedef void (*DsVectorFn)(const DsArgs *args, int64_t begin, int64_t end);
typedef void (*DsScalarFn)(double *global, double *group, double *cls, double *tensor);
#endif
