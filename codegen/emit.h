/* emit.h - what the emitters of C, tile C and CUDA share: literals, expressions, scalar programs, embedded functions.
 *
 * Every value of a body is a local `v<ref>` of the emitted function, constants included, so that an operator never stands on two
 * literals (libtcc would fold it in 80 bits) and the text reads like the IR:
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
} EmitStyle;
extern const EmitStyle emit_style_c; /* float, double, int: C and tile C */

/* Names of the four block pointers, by level: "global", "group", "cls", "tensor". */
extern const char *const emit_blocks[LEVEL_COUNT];
extern const char *const emit_level_names[LEVEL_COUNT]; /* "global", "group", "class", "tensor" */

const char *emit_type(const EmitStyle *s, DType d);
/* A number with all its bits: 0x1.8p+1, 0x1p-1f, ds_from(0x7ff0000000000000ull); bools 0 and 1. */
void emit_literal(StrBuf *out, double v, DType d);
/* `s` as part of an identifier: every other character becomes '_'. */
void emit_identifier(StrBuf *out, const char *s);
/* The operator's expression with the locals v<arg> as its operands. Not for loads, constants, rounds and reductions. */
void emit_ins_text(StrBuf *out, const IrBody *b, const Ins *ins);

/* Whether a scalar value is read from a block (a slot, a place) or written as a literal, rather than computed where it is used. */
bool emit_is_read(const Plan *p, uint32_t body, IrRef ref);
/* `const double v30 = cls[2];` in the value's own type, without indentation or newline. */
void emit_scalar_read(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, const EmitStyle *s,
                      const char *const *blocks);

/* "s0_group", "commit_tensor": the name of a scalar program's function, without the module's prefix. */
void emit_program_name(StrBuf *out, const Plan *p, const ScalarProgram *sp);
/* The statements of a scalar program, indented by four. */
void emit_scalar_statements(StrBuf *out, const Plan *p, const ScalarProgram *sp, const EmitStyle *s,
                            const char *const *blocks);
/* The function: `<head>(double *global, double *group, double *cls, double *tensor)` and its body. */
void emit_scalar_function(StrBuf *out, const Plan *p, const ScalarProgram *sp, const char *head);

/* The sections of ds_math.h that define the ds_ functions named in `text`, with those they need, in the order of the file; "base"
 * always. `after_base` (may be NULL) is put after that section. */
void emit_math_sections(StrBuf *out, const char *text, const char *after_base);
#endif
