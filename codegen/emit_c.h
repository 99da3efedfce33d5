/* emit_c.h - the parts of standalone C: programs and the whole (emit_c.c), kernels (emit_c_kernel.c),
 * plain step (emit_c_step.c, emit_c_shape.c), header and comments (emit_c_header.c).
 *
 *     emit_standalone_c(&plan, 1, storage, &text, "adamw.h")    the parts in the order of the file
 */
#ifndef CODEGEN_EMIT_C_H
#define CODEGEN_EMIT_C_H
#include "emit.h"

/* What is written into one file: the plans of a rule's entry points, the step first, and their
 * variants, one per body, under one storage. */
typedef struct CUnit {
    const Plan *const *plans;
    const Variant *const **variants; /* [plan][body] */
    size_t n;
} CUnit;
CUnit emit_c_unit(Arena *a, const Plan *const *plans, size_t n, const DType *storage);

/* NAME, of other entry points NAME_entry: what names of kernels and programs begin with. */
const char *emit_prefix(Arena *a, const Plan *p);
/* NAME_step, NAME_entry: the plain function. */
const char *emit_c_entry(Arena *a, const Plan *p);
/* The field of a state or an export in NAME_state. */
const char *emit_c_state_name(Arena *a, const Plan *p, uint32_t slot);

/* The comment at the head of the .c: how to compile it, entry names, blocks. */
void emit_c_comment(StrBuf *out, const CUnit *u);
void emit_c_header(StrBuf *out, const CUnit *u);
/* The blocks of scalars, one line per slot: "group[0] lr (hyperparameter, 0.001)". `lead` begins
 * every line. */
void emit_block_comment(StrBuf *out, const Plan *p, const char *lead);
/* The last line of a head comment: "Pointers of a tensor row, in this order: p f32, …". */
void emit_pointer_comment(StrBuf *out, const Plan *p, const Variant *v);
extern const VectorStyle emit_vectors_c;
/* Types of the tables. */
void emit_c_abi(StrBuf *out);
/* The scalar and vector programs alone, and the kernels of one variant, as translation units. */
void emit_c_scalars(StrBuf *out, const Plan *p);
void emit_c_kernels(StrBuf *out, const Plan *p, const Variant *v);
/* The kernels of a variant, as text among others. */
void emit_c_variant(StrBuf *out, const Plan *p, const Variant *v);
/* NAME_step: one step of one tensor, without any runtime. Its prototype, without semicolon. */
void emit_c_step(StrBuf *out, const Plan *p, const Variant *const *variants);
void emit_c_step_prototype(StrBuf *out, const Plan *p, const Variant *v);
bool emit_c_has_state(const Plan *p); /* scalar states or exports: NAME_step takes a NAME_state */
bool emit_c_is_kept(const Slot *s);   /* such a slot */
bool emit_c_has_shape(const Plan *p); /* the rule reads ndim, rows or cols */
bool emit_c_has_draws(const Plan *p);
bool emit_c_reads(const Plan *p, uint32_t slot); /* whether the step depends on the slot */

/* ---- parts of the step of a rule that works by shape (emit_c_shape.c) ---- */
/* Several bodies, or one that has rows, columns or blocks: NAME_step takes the shape and `work`. */
bool emit_c_is_shaped(const Plan *p);
/* The answers about the tensor's name that decide its arm: parameters (type "int ") or arguments
 * (""), each behind a comma. */
void emit_c_select_names(StrBuf *out, const Plan *p, const char *type);
void emit_c_view(StrBuf *out); /* types and functions that several such steps share */
void emit_c_shaped_step(StrBuf *out, const Plan *p, const Variant *const *variants);
void emit_c_work_prototype(StrBuf *out, const Plan *p);
void emit_c_fill_blocks(StrBuf *out, const Plan *p, const Variant *v);
void emit_c_drain_blocks(StrBuf *out, const Plan *p);
void emit_c_return(StrBuf *out, const Plan *p);
#endif
