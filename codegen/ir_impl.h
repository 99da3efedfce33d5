/* ir_impl.h - what the files of the IR share among themselves; others use ir.h. */
#ifndef CODEGEN_IR_IMPL_H
#define CODEGEN_IR_IMPL_H
#include "ir.h"

/* The dtype and rate of a map op's, round's or reduction's result, from its operands (in range).
 * NULL, or what is wrong with them: "operands are f32 and f64". A reduction's rate and guard are
 * not looked at. */
const char *ir_infer(const IrModule *m, const IrBody *b, const Ins *i, DType *dtype, Rate *rate);
/* An existing value that equals the op on these operands for all inputs (NaNs alike), or one made
 * for it; IR_NONE: none. */
IrRef ir_fold(IrBuilder *b, Op op, const IrRef arg[3]);
/* A constant of a dtype. */
IrRef ir_const_typed(IrBuilder *b, DType dtype, double v);
/* Appends an instruction as it is, or returns the equal one. */
IrRef ir_emit(IrBuilder *b, const Ins *ins);
/* As ir_reduce, with the result slot given. */
IrRef ir_reduce_into(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope,
                     uint32_t slot);
/* What is wrong with the rates of a reduction: `args` joined over its arguments; NULL: nothing. */
const char *ir_reduce_rates(Rate scope, Rate args);
/* Whether values and slots of this rate exist in a body of this view. */
bool ir_view_has(View view, Rate rate);
/* Level and index (or element number) of the next slot of this kind and rate; counts it. */
void ir_slot_place(IrModule *m, Slot *slot);

/* Rebuilds a module through the builder. keep[body][ref] and keep_slot[slot] say what stays (NULL:
 * all); stores stay if their slot and value do and keep_store[body][i] is not 0 (NULL: all).
 * `select` is number nbodies. */
IrModule *ir_rebuild(Arena *a, const IrModule *m, const bool *keep_slot, bool *const *keep,
                     bool *const *keep_store);

/* "param", "grad", … by SlotKind. */
extern const char *const ir_slot_kinds[];
extern const int ir_slot_kind_count;
/* Whether a text is a name that the text form can carry: letters, digits, _ . [ ] -, 1 to
 * IR_MAX_NAME of them. */
bool ir_is_name(const char *s);
/* "1", "-0", "0x1.8p+1", "inf", "nan": exact, the same in every locale. out: 32 bytes. */
const char *ir_format_num(char out[32], double v);
#endif
