/* emit_tile.h - what backend_c.c needs to know of the text that emit_tile.c writes. */
#ifndef CODEGEN_EMIT_TILE_H
#define CODEGEN_EMIT_TILE_H
#include "backend.h"
#include "select.h"

typedef struct TileUses {
    bool op[TILE_OP_COUNT];
    size_t scratch_bytes;
} TileUses;

/* Kernels k<phase> of a variant, and what they call declared before them. */
void emit_tile_kernels(StrBuf *out, const Plan *p, const Variant *v, TileUses *uses);
/* Scalar and vector programs: s<phase>_<level>, commit_<level>, v<phase>_<rate>, vcommit_<rate>.
 * `types`: those of the tables are declared, too, where needed. body_only: of one body; IR_NONE: all.
 * Operators that they call are declared and marked in `uses`. */
void emit_tile_scalars(StrBuf *out, const Plan *p, uint32_t body_only, bool types, TileUses *uses);
/* The function of a vector program, `<head>(const DsArgs *args, long begin, long end)` and its
 * body. */
void emit_vector_tile_function(StrBuf *out, const Plan *p, const VectorProgram *vp,
                               const char *head, TileUses *uses);
/* The name by which the text calls an operator: "t_axpby", "r_SUMSQ_v", "fold_sum". */
void tile_uses_name(StrBuf *out, int op);

/* A function of ds_math.h that scalar code may call, compiled here and given to libtcc by name. */
typedef struct MathFunction {
    const char *name, *declaration;
    TileFn address;
} MathFunction;
extern const MathFunction math_functions[];
extern const size_t math_function_count;
/* Whether `text` calls it. */
bool math_function_is_used(const MathFunction *f, const char *text);
#endif
