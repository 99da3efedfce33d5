/* backend.h - what turns a plan into something that runs, or into text. One row per backend in
 * backend.def.
 *
 *     interp   no build: exec.h            c      tile C through libtcc, in memory
 *     cc       standalone C through $CC    cuda   CUDA C++ through NVRTC to PTX or cubin
 */
#ifndef CODEGEN_BACKEND_H
#define CODEGEN_BACKEND_H
#include "abi.h"
#include "plan.h"

typedef struct BackendOptions {
    const char *isa; /* c: "sse2", "avx2", "avx512"; NULL: the best that runs here */
    /* cc: command and flags; NULL: $CC or "cc", -O3 -march=native -fno-math-errno */
    const char *cc;
    const char *arch; /* cuda: "compute_75", "sm_90" */
} BackendOptions;

/* A built plan: the kernels of each variant and the scalar programs. Immutable; kernels may run on
 * any number of threads. */
typedef struct BuiltVariant {
    DsKernelFn *kernels; /* one per Variant.kernels */
    size_t scratch_bytes;
    void *image; /* the backend's */
} BuiltVariant;
typedef struct BuiltScalars {
    DsScalarFn *programs;  /* one per Plan.programs */
    DsScalarFn *commit;    /* one per Plan.commit */
    DsVectorFn *vprograms; /* one per Plan.vprograms */
    DsVectorFn *vcommit;   /* one per Plan.vcommit */
    void *image;
} BuiltScalars;

typedef struct Backend {
    const char *name, *what;
    /* Whether it is usable here; if not, `why` says what is missing, in one sentence. */
    bool (*probe)(const BackendOptions *o, StrBuf *why);
    /* The text it compiles: pure, runs anywhere. Everything of the plan and the variant in one
     * translation unit. */
    bool (*emit)(const Plan *p, const Variant *v, const BackendOptions *o, StrBuf *out);
    /* Builds kernels of a variant, and scalar programs, in memory. False: text in why, none if
     * memory ran out. NULL for backends that only emit here. */
    bool (*build_variant)(const Plan *p, const Variant *v, const BackendOptions *o,
                          BuiltVariant *out, StrBuf *why);
    bool (*build_scalars)(const Plan *p, const BackendOptions *o, BuiltScalars *out, StrBuf *why);
    void (*free_image)(void *image);
} Backend;

extern const Backend *const backends[];
extern const size_t backend_count;
const Backend *backend_find(const char *name);

/* ---- outputs of dsoptc ----------------------------------------------------------------------- */

/* Standalone C (and its header) of a rule: the plans of its entry points, the step first, under one
 * storage (Variant.storage). Kernel ABI plus the plain `NAME_step(n, p, g, states…, const NAME_hyper
 * *, t)` and `NAME_entry`. */
bool emit_standalone_c(const Plan *const *plans, size_t n, const DType *storage, StrBuf *c_text,
                       const char *header_name);
bool emit_standalone_h(const Plan *const *plans, size_t n, const DType *storage, StrBuf *h_text);
/* CUDA C++ text of the plans of a rule's entry points, the step first, with all their bodies under one
 * storage; and the header that describes its tables to a driver-API program. */
bool emit_cuda(const Plan *const *plans, size_t n, const DType *storage, StrBuf *cu_text);
bool emit_cuda_h(const Plan *const *plans, size_t n, const DType *storage, StrBuf *h_text);
/* PTX ("compute_NN") or cubin ("sm_NN") of emit_cuda's text, through NVRTC; bytes appended to out.
 * False: what is missing or wrong. */
bool cuda_build(const Plan *const *plans, size_t n, const DType *storage, const char *arch,
                bool cubin, StrBuf *out, StrBuf *why);
/* Compiles standalone C with $CC (or "cc") and `flags` (NULL: the ones its head comment names) to
 * an object, or a shared library, at `path`; nothing is left there on failure. False: no compiler,
 * or its messages. */
bool cc_compile(const char *c_text, const char *path, bool shared, const char *cc, StrBuf *why);
/* The C that libtcc compiles (--emit=tile), of the variant's body. */
bool emit_tile_c(const Plan *p, const Variant *v, StrBuf *text);

/* Texts that the emitters share, scalar programs among them: emit.h. */
/* One map op as C text: the row's expression with operands and function names put in. f64: the
 * operands' type. */
void emit_op_text(StrBuf *out, Op op, bool f64, const char *a, const char *b, const char *c);
#endif
