/* emit_cuda.h - the parts of the CUDA text: kernels over elements (emit_cuda.c), scalar and vector
 * programs (emit_cuda_scalar.c), joins of partial results (emit_cuda_join.c), header and comments
 * (emit_cuda_header.c); the fixed device code is text/cuda_arith.h and text/cuda_tables.h.
 *
 *     emit_cuda(plans, n, storage, &text)    the parts in the order of the file
 */
#ifndef CODEGEN_EMIT_CUDA_H
#define CODEGEN_EMIT_CUDA_H
#include "emit.h"

enum { CUDA_BLOCK = 256 };

extern const EmitStyle emit_style_cuda;
extern const VectorStyle emit_vectors_cuda;

/* What is emitted: all bodies, each under one storage. */
typedef struct CudaModule {
    Arena *a;
    const Plan *p;
    const Variant **variants; /* per body */
    const char *name;
} CudaModule;
CudaModule cuda_module(Arena *a, const Plan *p, const DType *storage);
const Kernel *cuda_kernel_of(const CudaModule *m, uint32_t body, int phase); /* or NULL */
/* Whether rows of the phase's kernel belong to warps, and not to blocks. */
bool cuda_by_warp(const CudaModule *m, int phase);

/* The launches of a step, in their order. */
typedef enum CudaKind { CUDA_SCALARS, CUDA_VECTORS, CUDA_ROWS, CUDA_SPANS, CUDA_ALL } CudaKind;
typedef struct CudaLaunch {
    CudaKind kind;
    int phase;        /* nphases + 1: commits */
    const char *name; /* "k0", without the module's */
    bool matrices;    /* of vectors: the programs of matrices, not the others */
} CudaLaunch;
CudaLaunch *cuda_launches(const CudaModule *m, uint32_t *n);

/* What lies at a pointer of a tensor that runs a body. */
typedef struct CudaPointer {
    const char *name;
    DType type;
    Rate rate;
    bool partials; /* with room for partial results, behind the values */
} CudaPointer;
CudaPointer cuda_pointer(const CudaModule *m, uint32_t body, uint32_t index);

/* The head comment: launches of a step in their order, tables, blocks of scalars; `lead` begins
 * every line. */
void emit_cuda_comment(StrBuf *out, const CudaModule *m, const char *lead);
/* Functions of the reduction operators: merge, fold, trees. */
void emit_cuda_reductions(StrBuf *out, const Plan *p);
/* Kernels of scalar and of vector programs: those of a phase; nphases + 1: commits. */
void emit_cuda_scalars(StrBuf *out, const CudaModule *m, int phase, const char *name);
void emit_cuda_vectors(StrBuf *out, const CudaModule *m, int phase, bool matrices,
                       const char *name);
/* The joins of a phase: per tensor, then over tensors. */
void emit_cuda_join(StrBuf *out, const CudaModule *m, int phase);
void emit_cuda_all(StrBuf *out, const CudaModule *m, int phase);
bool emit_cuda_has_join(const Plan *p, int phase);
bool emit_cuda_has_all(const Plan *p, int phase);
/* Columns of `roots` that the phase with the most of them needs. */
uint32_t emit_cuda_roots(const Plan *p);

/* "0.0", "-ds_inf()", …: what a reduction over nothing gives. */
const char *cuda_identity(Arena *a, const ReduceInfo *info);
/* How many values a vector of a tensor has: "t->mats * t->rows". */
const char *cuda_length(Rate rate);
#endif
