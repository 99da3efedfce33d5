/* tile.h - the precompiled vector operators that the run-time compiled C of a step calls, once per
 * tile.
 *
 * tile_kernels.c is compiled once per ISA level and gives one table of addresses; all levels
 * compute the same bits. Tiles are any number of elements at any address that is a multiple of the
 * element's size; an output may be an input (the same address), and else overlaps none. Nothing
 * beyond the n-th element is read or written.
 *
 *     t_axpby(n, out, s0, v0, s1, v1);  t_load_bf16(n, out, in);  r_SUMSQ_v(n, lanes, v0);
 *     tile_levels[l]->op[TILE_axpby] is the address of the first, tile_info[TILE_axpby] its row
 */
#ifndef CODEGEN_TILE_TILE_H
#define CODEGEN_TILE_TILE_H
#include "frontend/frontend.h"

typedef enum TileOp {
#define TILE(name, type, params, expr) TILE_##name,
#define TILE_RED(name, reduction, params, x, y) TILE_RED_##name,
#include "codegen/tile/tile.def"
#define REDUCE(E, name, arity, types, identity, combine, merge)                                    \
    TILE_FOLD_##E, /* double (double *lanes) */
#include "frontend/ops.def"
#define REDUCE(E, name, arity, types, identity, combine, merge)                                    \
    TILE_TREE_##E, /* double (n, double *v): the aligned tree, in place; n > 0 */
#include "frontend/ops.def"
    TILE_LOAD_F16, /* (n, float *out, const void *in) */
    TILE_LOAD_BF16,
    TILE_STORE_F16, /* (n, void *out, const float *in) */
    TILE_STORE_BF16,
    TILE_NORMAL, /* (n, float *out, double lo, double hi, unsigned site, long first): the draws of
                    elements first, first + 1, … (ds_math.h) */
    TILE_UNIFORM,
    TILE_RADEMACHER,
    TILE_LANES, /* (double *lanes, double v): all 128 accumulators of a reduction become v */
    /* n elements that are rows of w, the last of which may be short. Vectors to tiles: element i of
     * out is vec[i / w], vec[i % w]; of whole matrices of s elements, vec[i / s * w + i % w]. _B:
     * bools, a byte in a vector, an int in a tile; _D: bools that a reduction left, doubles. */
    TILE_SPREAD_ROW, /* (n, w, float *out, const float *vec) */
    TILE_SPREAD_COL,
    TILE_SPREAD_MAT,   /* (n, s, w, float *out, const float *vec) */
    TILE_SPREAD_ROW_B, /* (n, w, int *out, const unsigned char *vec) */
    TILE_SPREAD_COL_B,
    TILE_SPREAD_MAT_B,
    TILE_SPREAD_ROW_D, /* (n, w, int *out, const double *vec) */
    TILE_SPREAD_COL_D,
    TILE_SPREAD_MAT_D,
    TILE_FILL_D, /* (n, double *out, double v) */
    TILE_COPY_D, /* (n, double *out, const double *in) */
    TILE_WIDEN,  /* (n, double *out, const float *in) */
    TILE_NARROW, /* (n, float *out, const double *in) */
    TILE_BYTES,  /* (n, unsigned char *out, const int *in) */
#define TILE_WIDE(E, types) TILE_WIDE_##E,
#include "codegen/tile/wide.def"
/* Reductions of such tiles, with the params of their row of tile.def. Rows: (n, w, double *out, …):
 * each row's own 128 lanes, folded. Columns: (n, w, double *acc, …): acc[i % w] takes element i, in
 * order. Columns of whole matrices: (n, s, w, double *out, …), from the identity on. */
#define TILE_RED(name, reduction, params, x, y)                                                    \
    TILE_ROW_##name, TILE_COL_##name, TILE_MAT_##name,
#include "codegen/tile/tile.def"
    TILE_OP_COUNT
} TileOp;

typedef void (*TileFn)(void);
typedef struct TileTable {
    TileFn op[TILE_OP_COUNT];
} TileTable;

typedef enum TileLevel { TILE_SSE2, TILE_AVX2, TILE_AVX512, TILE_LEVEL_COUNT } TileLevel;
extern const TileTable tile_table_sse2, tile_table_avx2, tile_table_avx512;
extern const TileTable *const tile_levels[TILE_LEVEL_COUNT];
extern const char *const tile_level_names[TILE_LEVEL_COUNT];
/* Whether this processor and its operating system run a level; if not, what is missing: "avx512dq,
 * avx512vl". */
bool tile_level_runs(TileLevel l, const char **missing);
TileLevel tile_level_best(void);

typedef struct TileInfo {
    const char *name;   /* "axpby": the operator is t_axpby, a reduction r_axpby */
    const char *params; /* "(S0, V0, S1, V1)" */
    const char
        *pattern;       /* "ADD(MUL(S0, V0), MUL(S1, V1))"; of a reduction: of its first argument */
    const char *second; /* of a reduction: its second argument, "0" where it has none; else NULL */
    int16_t reduce;     /* ReduceOp; -1: no reduction */
    bool boolean;       /* the result is a tile of bools */
    int16_t row, col, mat; /* of a reduction: the operators of its rows, its columns, columns of
                              whole matrices */
} TileInfo;
extern const TileInfo
    tile_info[TILE_OP_COUNT]; /* name NULL for those after the last row of tile.def */
#endif
