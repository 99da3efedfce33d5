/* plan.h - the schedule: in which order, and in how few sweeps over memory, a module is executed.
 *
 * Phases are numbered over the module: phase(v) = max over operands a of phase(a) + (a is a
 * reduction). A step runs, for each phase k: the scalar programs of k (global, then per group,
 * class, tensor), the vector programs of k (matrix, then row, col, block), the kernels of k over the
 * tensors, the joining of the partial results of k's reductions, and reductions of vectors and
 * scalars; after the last phase, the commit programs store vector and scalar state.
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

/* What a vector program computes, or a reduction to a vector leaves, for others to read: an array
 * per tensor. */
typedef struct PlanVector {
    Rate rate;      /* MATRIX, ROW, COL, BLOCK */
    DType dtype;    /* in memory: f32, f64, bool (a byte); of reductions f64, truth values too */
    bool partials;  /* the buffer of a reduction to row, col or block: room for partial results
                       (abi.h), the result in front */
    IrRef ref;      /* the value */
    uint32_t index; /* its pointer: module.nelem + its number within the body */
} PlanVector;

/* A vector program: straight-line code for each index of a vector; reads scalars from blocks,
 * vectors of its own rate at its index, matrix values at the matrix of its row or column. */
typedef struct VectorProgram {
    int phase; /* 0 … nphases; commit programs: nphases + 1 */
    Rate rate;
    uint32_t body;
    IrRef *vals; /* instructions to evaluate, in order; loads, constants, reductions and what other
                    programs computed are read where used */
    uint32_t nvals;
    IrRef *keeps; /* those of vals that go to their PlanVector */
    uint32_t nkeeps;
    /* Commit programs: indices into body.stores. All values of an index are read before the first is
     * written: a store may take what another slot held. */
    uint32_t *stores;
    uint32_t nstores;
} VectorProgram;

/* A reduction as the runtime joins it: partial results meet in the fixed tree (reduce.h). In modules
 * of several bodies, PlanReduces with the same result slot are one reduction: they have the same
 * phase, stand next to each other, and what they gather meets. */
typedef enum ReduceFrom {
    FROM_ELEMENTS, /* a kernel leaves partial results */
    FROM_VECTOR,   /* its argument is a vector: no kernel */
    FROM_SCALARS   /* its argument has tensor or group rate: gathered from blocks */
} ReduceFrom;
typedef struct PlanReduce {
    uint32_t body;
    IrRef ins;
    int phase; /* the phase whose kernel (or programs) feeds it */
    ReduceFrom from;
    Rate rate;       /* of the result */
    Rate arg_rate;   /* what is reduced: the rate of the arguments, joined */
    Place arg, arg2; /* where they are, if they are scalars */
    /* FROM_VECTOR: index of the pointer of the argument, of dot's second; UINT32_MAX: a scalar. A
     * matrix value among values of rows, columns or blocks stands for each of them. */
    uint32_t vec, vec2;
    DType vec_type, vec2_type; /* as in memory: buffers of reductions hold doubles */
    Rate vec_rate, vec2_rate;
    Place guard;         /* LEVEL_NONE: all tensors */
    Place result;        /* GLOBAL, GROUP, TENSOR: in a block */
    uint32_t result_vec; /* MATRIX, ROW, COL, BLOCK: index of the pointer of its buffer */
    uint32_t partial;    /* FROM_ELEMENTS to MATRIX or coarser: column among the partial results of
                               its kernel */
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
    uint32_t ntemps; /* f32 temporaries per element, numbered from module.nelem + the number of the
                        body's vectors (plan_first_temp) */
    Kernel *kernels; /* in order of phase; phases without element work have none */
    uint32_t nkernels;
    const char *why; /* how bytes decided, for explain: lines of text */
} Variant;

typedef struct Plan {
    Arena *arena;
    const IrModule *m;
    int *body_phases; /* [body] its own number of phases, at most nphases */
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
    VectorProgram *vprograms; /* by phase, then rate (matrix first), then body */
    uint32_t nvprograms;
    VectorProgram
        *vcommit; /* stores to vector slots: run before the scalar commits, in this order */
    uint32_t nvcommit;
    PlanVector **vectors; /* [body] */
    uint32_t *nvectors;
    uint32_t *
        *vector; /* [body][ref] the pointer index where a vector value can be read (its slot for
                          loads, its PlanVector); UINT32_MAX: a local of its program, or none */
    PlanReduce *reduces;
    uint32_t nreduces;
    Place skip;     /* of the skip verdict; LEVEL_NONE: never skips */
    int skip_phase; /* the verdict is known after the scalar programs of this phase, not before */
    const char **elem_names, **slot_names; /* in emitted text (emit_names) */
} Plan;

/* Where a scalar value is read: its slot's place (t: its class's), its own, or LEVEL_NONE for
 * constants and locals. */
Place plan_place(const Plan *p, uint32_t body, IrRef ref);
/* The first pointer index of a body's element temporaries. */
static inline uint32_t plan_first_temp(const Plan *p, uint32_t body)
{
    return p->m->nelem + p->nvectors[body];
}
static inline const Ins *plan_reduction(const Plan *p, const PlanReduce *r)
{
    return &p->m->bodies[r->body].ins[r->ins];
}
static inline const ReduceInfo *plan_reduce_info(const Plan *p, const PlanReduce *r)
{
    return &reduce_info[plan_reduction(p, r)->op - IR_RED];
}
Plan *plan_make(Arena *a, const IrModule *m);
/* Schedules the kernels of one body under one storage (m->nelem dtypes). Pure; the caller caches.
 */
Variant *plan_variant(Arena *a, const Plan *p, uint32_t body, const DType *storage);
void plan_print(const Plan *p, const Variant *v, StrBuf *out);   /* --emit=plan */
void plan_explain(const Plan *p, const Variant *v, StrBuf *out); /* dsoptc explain */
/* The reduction that leaves its result in a slot, as the language has it: "sum(p^2)"; NULL: none. */
const char *plan_result_text(Arena *a, const Plan *p, uint32_t slot);
#endif
