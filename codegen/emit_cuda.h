/* emit_cuda.h - the parts of the CUDA text: kernels over elements (emit_cuda.c), scalar programs
 * and joins (emit_cuda_scalar.c), header and comments (emit_cuda_header.c); the fixed device code
 * is text/cuda_arith.h and text/cuda_tables.h.
 *
 *     emit_cuda(plan, variant, &text)    the parts in the order of the file
 */
#ifndef CODEGEN_EMIT_CUDA_H
#define CODEGEN_EMIT_CUDA_H
#include "emit.h"

enum { CUDA_BLOCK = 256 };

extern const EmitStyle emit_style_cuda;

/* The head comment: launches of a step in their order, tables, blocks of scalars; `lead` begins
 * every line. */
void emit_cuda_comment(StrBuf *out, const Plan *p, const Variant *v, const char *lead);
/* Functions of the reduction operators: merge, fold, trees. */
void emit_cuda_reductions(StrBuf *out, const Plan *p);
/* One kernel of scalar programs per phase, the joins, and the commit. */
void emit_cuda_scalars(StrBuf *out, const Plan *p);
/* Whether a phase has a kernel of scalar programs, a join over rows, a join over tensors. */
bool emit_cuda_has_scalars(const Plan *p, int phase);
bool emit_cuda_has_join(const Plan *p, int phase);
bool emit_cuda_has_all(const Plan *p, int phase);
#endif
