/* emit.h - what the emitters of C, tile C and CUDA share: literals, expressions, scalar programs,
 * embedded functions.
 *
 * Every value of a body is a local `v<ref>` of the emitted function, constants included, so that an
 * operator never stands on two literals (libtcc would fold it in 80 bits) and the text reads like
 * the IR:
 *
 *     %31 = sub %7 %30    ->    const double v31 = v7 - v30;
 *                               cls[3] = v31;
 */
#ifndef CODEGEN_EMIT_H
#define CODEGEN_EMIT_H
#include "backend.h"

/* How a language writes the three types of values. */
typedef struct EmitStyle {
    const char *f32, *f64, *boolean;
    const char *raw; /* function that turns a value into a plain double, or "" where it converts by
                        itself */
} EmitStyle;
extern const EmitStyle emit_style_c; /* float, double, int: C and tile C */

/* Names of the four block pointers, by level: "global", "group", "cls", "tensor". */
extern const char *const emit_blocks[LEVEL_COUNT];
extern const char *const emit_row_blocks[LEVEL_COUNT]; /* of the tensor row t: "t->u[0]", … */
extern const char *const emit_level_names[LEVEL_COUNT]; /* "global", "group", "class", "tensor" */

const char *emit_type(const EmitStyle *s, DType d);
/* A number with all its bits: 2.0, 0x1p-1f, ds_from(0x7ff0000000000000ull); bools 0 and 1. */
void emit_literal(StrBuf *out, double v, DType d);
/* A number in decimal, the shortest that reads back the same: 0.001, 1e-08, inf. */
void emit_decimal(StrBuf *out, double v);
/* `s` as part of an identifier: every other character becomes '_'. */
void emit_identifier(StrBuf *out, const char *s);
/* pow's special cases in f32: the same bits at half the price, without the exponent. NULL: none for
 * this exponent. */
const char *emit_power_name(const IrBody *b, const Ins *ins);
/* The operator's expression with the locals v<arg> as its operands. Not for loads, constants,
 * rounds and reductions. */
void emit_ins_text(StrBuf *out, const IrBody *b, const Ins *ins);

/* `const double v30 = cls[2];` in the value's own type, without indentation or newline. */
void emit_scalar_read(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, const EmitStyle *s,
                      const char *const *blocks);

/* "s0_group", "commit_tensor", of body 2 "s0_tensor_2": the name of a scalar program's function,
 * without the module's prefix; "v0_row", "vcommit_col" of a vector program's; "k0" of a kernel's. */
void emit_program_name(StrBuf *out, const Plan *p, const ScalarProgram *sp);
void emit_vector_name(StrBuf *out, const Plan *p, const VectorProgram *vp);
void emit_kernel_name(StrBuf *out, const Variant *v, const Kernel *k);
/* The names of all programs of a plan behind `prefix`: scalar, their commits, vector, theirs; and
 * what was built, their addresses being in this order. */
const char **emit_all_names(Arena *a, const Plan *p, const char *prefix, uint32_t *n);
BuiltScalars emit_all_built(const Plan *p, void **functions, void *image);
/* The statements of a scalar program, indented by four. */
void emit_scalar_statements(StrBuf *out, const Plan *p, const ScalarProgram *sp, const EmitStyle *s,
                            const char *const *blocks);
/* The function: `<head>(double *global, double *group, double *cls, double *tensor)` and its body.
 */
void emit_scalar_function(StrBuf *out, const Plan *p, const ScalarProgram *sp, const char *head);

/* ---- vectors -------------------------------------------------------------------------------- */

/* How vectors are written in a language: types of what lies in memory, by dtype, and of indices. */
typedef struct VectorStyle {
    const EmitStyle *values;
    const char *memory[DT_COUNT], *index;
} VectorStyle;
extern const VectorStyle emit_vectors_tile; /* float, long; emit_c.c has that of standalone C */

/* Where a vector value can be read: the index of its pointer, and what lies there. */
typedef struct VectorAt {
    uint32_t ptr;
    DType memory;
} VectorAt;
VectorAt emit_vector_at(const Plan *p, uint32_t body, IrRef ref);
/* `const float v12 = ((const float *)t->ptr[5])[index];` without indentation or newline. */
void emit_vector_read(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, const VectorStyle *s,
                      const char *index);
/* Which values of its body the program computes (here), and which it reads of others; both of b->n,
 * all false before. */
void emit_vector_reads(const Plan *p, const VectorProgram *vp, bool *here, bool *read);
/* The function of a vector program: `<head>(const DsArgs *args, long begin, long end)` and its
 * body. */
void emit_vector_function(StrBuf *out, const Plan *p, const VectorProgram *vp, const char *head,
                          const VectorStyle *s);
/* Its statements alone, within `loop` over the index i of the vector of the tensor row t points to. */
void emit_vector_loop(StrBuf *out, const Plan *p, const VectorProgram *vp, const VectorStyle *s,
                      const char *loop);
/* How many pointers a tensor row has: slots, the body's vectors, temporaries. */
static inline uint32_t emit_pointer_count(const Plan *p, const Variant *v)
{
    return plan_first_temp(p, v->body) + v->ntemps;
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* What a kernel needs around its element loop. */
typedef struct KernelInfo {
    IrRef *consts; /* constants that element values, stores and guards use */
    uint32_t nconsts;
    IrRef *scalars; /* scalars read from blocks, guards included */
    uint32_t nscalars;
    IrRef *matrices; /* values of matrix rate */
    uint32_t nmatrices;
    IrRef *vectors; /* values of rows, columns and blocks */
    uint32_t nvectors;
    IrRef *guards; /* distinct guards of its stores and reductions */
    uint32_t nguards;
    bool always;     /* something in it has no guard: it cannot be left out */
    uint8_t *loads;  /* [elem] whether it reads the slot or temporary */
    uint8_t *stores; /* [elem] whether it writes it */
} KernelInfo;
KernelInfo emit_kernel_info(Arena *a, const Plan *p, const Variant *v, const Kernel *k);

/* `const float v14 = v12 * v13;` of a computed element value. */
void emit_element_value(StrBuf *out, const Plan *p, const Variant *v, IrRef ref,
                        const EmitStyle *s);
/* "ds_normalf(v3, v4, 2u, index)". */
void emit_draw_text(StrBuf *out, const Ins *ins, const char *index);
/* The end of a line that computes `ref`: a comment with its place in the rule, where that is known
 * and another than *line, which remembers it from value to value (0 at first); then the newline. */
void emit_line_end(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, int *line);
/* A reduction's `combine` (a, x, y) or `merge` (a, b) with its operands put in. */
void emit_reduce_text(StrBuf *out, const char *text, const char *a, const char *b_or_x,
                      const char *y);
DType emit_elem_storage(const Plan *p, const Variant *v, uint32_t elem); /* temporaries: f32 */
/* What is stored at `place` as an f32, and an f32 as it is stored: ds_f32_from_bf16(m[i]), p[i]. */
const char *emit_widened(Arena *a, DType storage, const char *place);
const char *emit_narrowed(Arena *a, DType storage, const char *value);

/* ---- names of things in emitted text -------------------------------------------------------- */

/* Gives all slots of a plan their names; the other functions look up. */
void emit_names(Plan *p);
/* Of an element slot or temporary: its short name, with its number where that is no safe identifier
 * or not unique. */
const char *emit_elem_name(Arena *a, const Plan *p, uint32_t elem);
/* Of a scalar slot: its path without the rule, dots as '_' ("clip_global_norm_limit"), or its name.
 */
const char *emit_slot_name(Arena *a, const Plan *p, uint32_t slot);
const char *emit_module_name(Arena *a, const Plan *p); /* as an identifier */
const char *emit_upper(Arena *a, const char *s);
/* Sizes of blocks, places of slots, columns: an enum of NAME_… constants for generated headers. */
void emit_places_enum(StrBuf *out, const Plan *p, const Variant *v, const char *prefix);
uint32_t emit_npartial(const Plan *p, int phase); /* columns of the partial results of a phase */

/* The sections of ds_math.h that define the ds_ functions named in `text`, with those they need, in
 * the order of the file; "base" always. `after_base` (may be NULL) is put after that section. */
void emit_math_sections(StrBuf *out, const char *text, const char *after_base);
#endif
