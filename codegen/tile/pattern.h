/* pattern.h - the rows of tile.def as trees, for the selector; parsed once per process.
 *
 *     "ADD(MUL(S0, V0), V1)"  ->  ADD [ MUL [ leaf S0, leaf V0 ], leaf V1 ], 2 operations
 */
#ifndef CODEGEN_TILE_PATTERN_H
#define CODEGEN_TILE_PATTERN_H
#include "codegen/tile/tile.h"

enum { TILE_MAX_PARAMS = 18, TILE_OUTPUTS = 4 }; /* outputs: the result, O1, O2, O3 */

typedef enum PatKind { PAT_LEAF, PAT_OP, PAT_SQUARE, PAT_WITH } PatKind;

typedef struct Pat {
    uint8_t kind;   /* PatKind */
    uint8_t op;     /* PAT_OP: Op */
    uint8_t param;  /* PAT_LEAF: which of the row's params */
    uint8_t output; /* 1, 2: the value is also written to O1, O2; else 0 */
    uint8_t nkids;
    const struct Pat *kid[3];
} Pat;

typedef struct TileRow {
    const Pat *pattern, *second;    /* second: of a reduction with two arguments */
    uint8_t nparams, ops;           /* ops: how many IR operations it covers */
    bool several;                   /* has further outputs */
    char kind[TILE_MAX_PARAMS];     /* 'V', 'B', 'S', 'C', 'D' or 'O' */
    uint8_t index[TILE_MAX_PARAMS]; /* of O: which output */
} TileRow;

/* Rows in the order of TileOp; those after the last row of tile.def are empty. */
const TileRow *tile_rows(void);
/* Operators whose row computes `op` last, those that cover most first; ends with -1. PAT_SQUARE is
 * of OP_MUL; of a WITH, what it is. */
const int16_t *tile_rows_of(Op op);
/* The same for a reduction. */
const int16_t *tile_rows_of_reduce(ReduceOp op);
#endif
