/* view.h - how a body sees a tensor: its rows, columns and matrices, the tiles in which elements
 * are worked on, and which body a tensor runs. The same for every executor.
 *
 * A flat body works on chunks of DS_CHUNK elements. The other views work on tiles of one matrix: k
 * = 16 * max(1, 256 / cols) rows, in strips of at most DS_CHUNK columns, in the order matrix, rows,
 * strip (docs/numerics.md). Up to DS_CHUNK columns, a tile is one run of consecutive elements,
 * wider ones have a run for each row. Tiles that are small whole matrices stand several in a row of
 * the table (abi.h).
 *
 *     view_dims(VIEW_MATRIX, 3, {2, 40, 100}, 0)   rows 40, cols 100, mats 2; tiles of 32 rows
 *     view_dims(VIEW_FIRST, 3, {2, 40, 100}, 0)    rows 2, cols 4000, mats 1; one tile
 *     view_dims(VIEW_BLOCK, 1, {1000}, 256)        rows 4, cols 256, mats 1; the last row has 232
 */
#ifndef CODEGEN_VIEW_H
#define CODEGEN_VIEW_H
#include "abi.h"
#include "ir.h"

typedef struct ViewDims {
    View view;
    int64_t numel;
    int64_t rows, cols, mats; /* flat: of the last two axes, as the properties are */
    int64_t tile_rows;        /* of all but a matrix's last tiles */
    int64_t tiles, strips;    /* of a matrix: tiles of rows, strips of columns; flat: chunks, 1 */
    int64_t packs;            /* whole matrices of a row of the table; 1: it is a tile, or chunk */
} ViewDims;

/* `block`: elements of a block (VIEW_BLOCK). */
ViewDims view_dims(View view, int ndim, const int64_t *shape, int64_t block);
/* Values of a vector of this rate (RATE_ELEMENT: elements). */
int64_t view_length(const ViewDims *d, Rate rate);
/* Doubles that hold the partial results, and the result, of a reduction to this rate (abi.h). */
int64_t view_partials(const ViewDims *d, Rate rate);
/* All chunks or tiles of a tensor, written from `out` on; NULL: only counts. */
size_t view_rows(const ViewDims *d, int64_t tensor, DsRow *out);
/* Evaluates m->select for a tensor whose properties are in `block` (LEVEL_TENSOR; rows and cols of
 * the last two axes), and leaves SLOT_ARM and SLOT_BLOCK there. False: out of memory. */
bool select_eval(const IrModule *m, Arena *a, double *block);
#endif
