/* select.h - a kernel as calls of tile operators: which, in what order, and where each value lives.
 *
 * Values of rows, columns and blocks are given, as tiles; those of matrices are scalars. Others live
 * where they are stored anyway if they can (f32 storage), else in registers: tiles of
 * scratch. One TileProgram is the work on one tile; uniforms are read once per row of the chunk
 * table.
 *
 *     %18 = add (mul b1 m) (mul c1 g), stored to m
 *     ->  op axpby, args {b1, m, c1, g}, out %18, which lives in element slot m
 */
#ifndef CODEGEN_SELECT_H
#define CODEGEN_SELECT_H
#include "codegen/tile/pattern.h"
#include "plan.h"

typedef enum TileCallKind {
    CALL_OP,     /* op with args, giving out[0] and what is in out[1], out[2] */
    CALL_LOAD,   /* out[0] = conversion of what element slot `elem` holds */
    CALL_COPY,   /* out[0] = value args[0] (load of a slot that this kernel overwrites) */
    CALL_CHOICE, /* out[0] is args[0] if cond holds, else args[1]: no work, but for scalars, which
                    fill a tile */
    CALL_DRAW,   /* out[0] = draws of site `elem` with the key args[0], args[1] */
    CALL_STORE,  /* element slot `elem` = args[0] if guard holds */
    CALL_REDUCE  /* reduction number `reduce` of the kernel takes args if its guard holds */
} TileCallKind;

typedef struct TileCall {
    TileCallKind kind;
    int16_t op; /* TileOp; CALL_LOAD, CALL_STORE: of the conversion or move */
    uint8_t nargs;
    uint32_t number; /* among the calls of its kernel, while they are ordered */
    uint32_t elem, reduce;
    uint32_t reg; /* CALL_STORE of a scalar to narrow storage: a register to fill first */
    IrRef
        args[TILE_MAX_PARAMS]; /* in the order of the row's params; of an output param: the value */
    IrRef out[TILE_OUTPUTS];   /* IR_NONE where absent */
    IrRef guard;               /* CALL_STORE */
    IrRef cond; /* CALL_OP: runs if cond holds, else `otherwise` does, for the same out[0];
                   CALL_CHOICE */
    struct TileCall *otherwise;
} TileCall;

typedef enum LocKind {
    LOC_NONE,    /* covered by an operator, or not of this kernel */
    LOC_ELEM,    /* in memory, at element slot `elem` */
    LOC_REG,     /* register `reg` */
    LOC_GUARDED, /* at `elem` if guard holds, else in register `reg` */
    LOC_VECTOR,  /* a value of rows, columns, blocks or matrices: a tile that is given */
    LOC_CHOICE   /* a pointer chosen by cond among the places of two values; `reg` where one of them
                    is a scalar */
} LocKind;

typedef struct TileLoc {
    LocKind kind;
    uint32_t reg, elem;
    IrRef guard;
} TileLoc;

typedef struct TileProgram {
    TileCall **calls;
    uint32_t ncalls;
    TileLoc *loc; /* per instruction of the body */
    uint32_t nregs;
    bool *scalar; /* per instruction: a scalar that calls, guards or conditions read */
} TileProgram;

/* Whether a kernel has the value as a tile, and not as a number: rows, columns, blocks and matrices
 * are spread. */
static inline bool tile_is(const IrBody *b, IrRef ref)
{
    return !rate_is_scalar(b->ins[ref].rate);
}
/* The scalars by which element values of the kernel are chosen (select), at most `max` of them. */
uint32_t tile_choices(const Plan *p, const Variant *v, const Kernel *k, IrRef *conds, uint32_t max);
/* The program for rows where conds[i] is bit i of `version`; other choices are made tile by tile.
 */
TileProgram *tile_select(Arena *a, const Plan *p, const Variant *v, const Kernel *k,
                         const IrRef *conds, uint32_t nconds, uint32_t version);
#endif
