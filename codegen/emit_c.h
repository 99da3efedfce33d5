/* emit_c.h - the parts of standalone C: kernels (emit_c.c), plain step (emit_c_step.c), header and
 * comments (emit_c_header.c).
 *
 *     emit_standalone_c(plan, variant, &text, "adamw.h")    the parts in the order of the file
 */
#ifndef CODEGEN_EMIT_C_H
#define CODEGEN_EMIT_C_H
#include "emit.h"

/* The comment at the head of the .c: how to compile it, entry names, blocks. */
void emit_c_comment(StrBuf *out, const Plan *p, const Variant *v);
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
/* NAME_step: one step of one tensor, without any runtime. */
void emit_c_step(StrBuf *out, const Plan *p, const Variant *v);
/* Its prototype, without semicolon. */
void emit_c_step_prototype(StrBuf *out, const Plan *p, const Variant *v);
bool emit_c_has_state(const Plan *p); /* scalar states or exports: NAME_step takes a NAME_state */
bool emit_c_has_shape(const Plan *p); /* the rule reads ndim, rows or cols */
#endif
