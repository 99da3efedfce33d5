/* emit_tile_internal.h - what emit_tile.c (calls, scratch, declarations) and emit_tile_view.c (lines of
 * rows) share.
 *
 *     tile_emit_call(e, call)          one call, in the innermost loop
 *     tile_emit_lines(e, program)      the loops around them, of a body with rows and columns
 */
#ifndef CODEGEN_EMIT_TILE_INTERNAL_H
#define CODEGEN_EMIT_TILE_INTERNAL_H
#include "codegen/tile/tile.h"
#include "emit.h"
#include "emit_tile.h"

/* A tile is long enough to hide the calls and to read memory in runs, and short enough for L1: 384
 * was the fastest length in every cache and in DRAM (Zen 4, AdamW on 16 M elements: 0.62 ns per
 * element against 0.68 for 128 and 256). Prefetching by instruction, near or far, made DRAM 1.3
 * to 1.7 times slower there, as it did on Zen 3: there is none. The pitch keeps registers of one
 * element from sharing the low 12 bits of their addresses, by which loads and stores are told
 * apart. */
enum {
    TILE_LENGTH = 384,
    TILE_PITCH = TILE_LENGTH * 4 + 64,
    WHOLE_CHUNK = DS_CHUNK,
    PACKED_PIECES = 24, /* a row of several matrices has fewer: each of 193 elements or more */
    MAX_CONDS = 2
};

typedef struct Emitter {
    StrBuf *out;
    const Plan *p;
    const Variant *v;
    const Kernel *k;
    const IrBody *b;
    const TileProgram *t;
    TileUses *uses;
    IrRef conds[MAX_CONDS];
    uint32_t nconds, nregs;
    TileProgram *versions[1 << MAX_CONDS];
    bool *scalar;   /* per instruction: a scalar that some version reads */
    bool view;      /* tiles of matrices, instead of chunks */
    IrRef *vectors; /* values given as tiles: x<ref> points to that of v<ref> */
    uint32_t nvectors;
} Emitter;

static inline const PlanReduce *tile_reduce(const Emitter *e, uint32_t number)
{
    return &e->p->reduces[e->k->reduces[number]];
}
static inline ReduceOp tile_reduce_op(const Emitter *e, uint32_t number)
{
    return (ReduceOp)(e->b->ins[tile_reduce(e, number)->ins].op - IR_RED);
}
/* Reductions to rows and blocks, to columns; the others have 128 lanes for the whole row of the
 * table. */
static inline bool tile_reduces_rows(const Emitter *e, uint32_t number)
{
    return (tile_reduce(e, number)->rate & (AXIS_ROW | AXIS_BLOCK)) != 0;
}
static inline bool tile_reduces_cols(const Emitter *e, uint32_t number)
{
    return (tile_reduce(e, number)->rate & AXIS_COL) != 0;
}
/* To matrices; else to the tensor or coarser. */
static inline bool tile_reduces_mats(const Emitter *e, uint32_t number)
{
    return tile_reduce(e, number)->rate == RATE_MATRIX;
}
static inline bool tile_reduces_tensor(const Emitter *e, uint32_t number)
{
    return rate_is_scalar(tile_reduce(e, number)->rate);
}
/* A guard that is always true is none. */
static inline IrRef tile_reduce_guard(const Emitter *e, uint32_t number)
{
    IrRef guard = e->b->ins[tile_reduce(e, number)->ins].arg[2];
    bool always = guard == IR_NONE || e->b->ins[guard].op == IR_CONST;
    return always ? IR_NONE : guard;
}
static inline void tile_use(const Emitter *e, int op)
{
    e->uses->op[op] = true;
}
const char *tile_op_name(int op); /* without its letter: "axpby", "spread_row" */
void tile_emit_call(const Emitter *e, const TileCall *c);
/* Whether the kernel reads or writes the element slot or temporary, and the bytes of an element. */
bool tile_touches(const Emitter *e, uint32_t elem);
int tile_element_size(const Emitter *e, uint32_t elem);
/* ", r1, v12"; tiles from element `lead` on ("" or "h"). */
void tile_emit_args(const Emitter *e, const TileCall *c, const char *lead);

/* ---- emit_tile_view.c ---- */
/* What is the same for all versions: shape of the row, vectors, buffers of reductions. */
void tile_emit_shape(const Emitter *e);
void tile_emit_buffers(const Emitter *e);
/* Identities for rows of the table where no guard holds. */
void tile_emit_identities(const Emitter *e);
void tile_emit_lines(Emitter *e, const TileProgram *t);
void tile_emit_view_reduce(const Emitter *e, const TileCall *c);
/* The result of a reduction to matrices or the tensor, of a row of several matrices: "if (s) …;
 * else". */
void tile_emit_packed_result(const Emitter *e, uint32_t number);
_Static_assert((int)DS_PACK <= TILE_LENGTH && DS_PACK >= DS_LANES, "pieces of whole matrices");
#endif
