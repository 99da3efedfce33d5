/* plan.h - the schedule: in which order, and in how few sweeps over memory, a module is executed.
 *
 * Phases are numbered over the module: phase(v) = max over operands a of phase(a) + (a is a
 * reduction). A step runs, for each phase k: the scalar programs of k (global, then per group,
 * class, tensor), the kernels of k over the tensors, and the joining of the partial results of k's
 * reductions; after the last phase, the commit programs store scalar state.
 *
 *     LAMB with a global clip
 *       phase 0:  kernel: g -> sumsq[all]
 *       phase 1:  scalars: clip factor, bias corrections;  kernel: m, v stored, sumsq(p), sumsq(u)
 *       phase 2:  scalars: trust ratio;  kernel: p stored
 *       commit:   t, s, grad_norm
 *
 * Where scalars live. Every scalar slot and every scalar value that crosses from one program or
 * kernel to another is one double (bool: 0 or 1; f32: exactly) in a block of its level:
 * LEVEL_GLOBAL one block; LEVEL_GROUP one per group; LEVEL_CLASS one per (group, t) among the
 * tensors of this step, so that 10,000 tensors share one evaluation of 1 - b1^t; LEVEL_TENSOR one
 * per tensor. A block starts with the slots of its level (Slot.index; class blocks have one: index
 * 0 is t) and goes on with values.
 */
#ifndef CODEGEN_PLAN_H
#define CODEGEN_PLAN_H
#include "ir.h"

typedef enum Level {
    LEVEL_GLOBAL,
    LEVEL_GROUP,
    LEVEL_CLASS,
    LEVEL_TENSOR,
    LEVEL_COUNT,
    LEVEL_NONE = 255
} Level;

typedef struct Place { /* of a scalar value in a block; level LEVEL_NONE: a local of its program, or
                          an element value */
    uint8_t level;
    uint32_t index;
} Place;

/* A scalar program: straight-line f64 code over one block (and the coarser ones). */
typedef struct ScalarProgram {
    int phase; /* 0 … nphases; commit programs: nphases + 1 */
    Level level;
    uint32_t body;
    IrRef *vals; /* instructions to evaluate, in order; loads, constants and results of reductions
                  * are read where used (a constant is here only if it is the argument of a
                  * reduction and so needs a place) */
    uint32_t nvals;
    uint32_t *stores; /* commit programs: indices into body.stores */
    uint32_t nstores;
} ScalarProgram;

/* A reduction as the runtime joins it: partial results per chunk meet in the fixed tree (reduce.h).
 */
typedef struct PlanReduce {
    uint32_t body;
    IrRef ins;
    int phase;        /* the phase whose kernel (or tensor scalars) feeds it */
    bool of_scalars;  /* its argument has tensor rate: no kernel, values are gathered from the
                         tensors' blocks */
    Place arg, arg2;  /* of_scalars: where they are */
    Place guard;      /* LEVEL_NONE: all tensors */
    Place result;     /* global or tensor block */
    uint32_t partial; /* column among the partial results of its kernel */
} PlanReduce;

typedef enum ValueHow { VAL_LOAD, VAL_RELOAD, VAL_TEMP, VAL_COMPUTE } ValueHow;

typedef struct KernelValue {
    IrRef ref;
    ValueHow how;
    uint32_t elem; /* LOAD, RELOAD, TEMP: element slot read (temps are numbered after the module's
                      element slots) */
} KernelValue;

typedef struct KernelStore {
    uint32_t elem; /* element slot written */
    IrRef value;
    IrRef guard; /* scalar bool; IR_NONE: always */
} KernelStore;

/* One sweep: loads, computes element values in order, stores, reduces. */
typedef struct Kernel {
    int phase;
    KernelValue *vals; /* element-like instructions only, operands before users */
    uint32_t nvals;
    KernelStore *stores;
    uint32_t nstores;
    uint32_t *reduces; /* indices into Plan.reduces */
    uint32_t nreduces;
    int bytes_read, bytes_written; /* per element */
    int flops;                     /* per element: map ops, reductions included */
} Kernel;

/* A body under one storage of its element slots: what is built once per (body, storage signature).
 */
typedef struct Variant {
    uint32_t body;
    DType *storage;  /* per element slot of the module */
    uint32_t ntemps; /* f32 temporaries per element, numbered from module.nelem */
    Kernel *kernels; /* in order of phase; phases without element work have none */
    uint32_t nkernels;
    const char *why; /* how bytes decided, for explain: lines of text */
} Variant;

typedef struct Plan {
    Arena *arena;
    const IrModule *m;
    int nphases; /* scalar programs may have phase nphases: work that only the last kernels' results
                    allow */
    int **phase; /* [body][ref] earliest phase, given the phases of the reductions; of a reduction:
                    its own; -1: not needed */
    Place **place;   /* [body][ref] scalar values that have a place; elements LEVEL_NONE */
    uint8_t **level; /* [body][ref] level of each scalar value (CLASS: depends on the tensor through
                        t alone); elements LEVEL_NONE */
    uint32_t block_size[LEVEL_COUNT];
    ScalarProgram *programs; /* by phase, then level */
    uint32_t nprograms;
    /* Run after the last phase, in this order: finest level first, so that a tensor's store reads
     * coarser slots as they were. Guards decide each store; a skipped step runs through all phases
     * and these, too: exports and the verdict are stored then. */
    ScalarProgram *commit;
    uint32_t ncommit;
    PlanReduce *reduces;
    uint32_t nreduces;
    Place skip;     /* of the skip verdict; LEVEL_NONE: never skips */
    int skip_phase; /* the verdict is known after the scalar programs of this phase, not before */
} Plan;

/* Where a scalar value is read: its slot's place (t: its class's), its own, or LEVEL_NONE for
 * constants and locals. */
Place plan_place(const Plan *p, uint32_t body, IrRef ref);
Plan *plan_make(Arena *a, const IrModule *m);
/* Schedules the kernels of one body under one storage (m->nelem dtypes). Pure; the caller caches.
 */
Variant *plan_variant(Arena *a, const Plan *p, uint32_t body, const DType *storage);
void plan_print(const Plan *p, const Variant *v, StrBuf *out);   /* --emit=plan */
void plan_explain(const Plan *p, const Variant *v, StrBuf *out); /* dsoptc explain */
#endif
