/* exec.h - a module bound to tensors, as the executors see it (the interpreter here; the plan
 * executor in runtime/).
 *
 * Owned and laid out by the caller; blocks have Plan.block_size doubles (the interpreter uses only
 * the slots at their heads, so IrModule.nlevel doubles suffice there).
 */
#ifndef CODEGEN_EXEC_H
#define CODEGEN_EXEC_H
#include "ir.h"

typedef struct ExecTensor {
    const char *name;
    int64_t numel;
    int64_t rows, cols, mats; /* of its body's view; VIEW_FLAT: of the last two axes. VIEW_BLOCK:
                                 blocks, elements of a block, 1 */
    uint32_t group;           /* index into ExecState.group */
    uint32_t body;            /* which body of the module it runs */
    bool active;              /* takes part in this step: it has a gradient and is not empty */
    const DType *storage; /* per slot that has a pointer; elements DT_F64 only under compute_f64 */
    void **ptr;           /* p, g, states of elements and vectors: Slot.index */
    double *block;        /* LEVEL_TENSOR */
} ExecTensor;

typedef struct ExecState {
    double *global; /* LEVEL_GLOBAL block */
    double **group; /* one block per group */
    uint32_t ngroups;
    ExecTensor *tensors;
    size_t ntensors;
    const uint32_t *by_name; /* tensor indices in byte order of names */
} ExecState;

/* How many values of this rate (element or vector) the tensor has. */
static inline int64_t exec_count(const ExecTensor *t, Rate rate)
{
    if (rate_is_element(rate)) return t->numel;
    if (rate == RATE_COL) return t->mats * t->cols;
    return rate == RATE_MATRIX ? t->mats : t->mats * t->rows;
}

/* One step of the module's entry point, straight from the IR: every instruction evaluated for every active
 * tensor, no plan. The oracle. Writes stores whose guards hold, counters and exports included; those to global
 * and group slots as the first body says (in order) that some active tensor (of the group) runs.
 * False: out of memory (nothing written). Not fast. */
bool interp_step(const IrModule *m, ExecState *x);

/* Element access with conversion, as loads and stores of the step do it (round to nearest even,
 * canonical NaN). */
double elem_get(const void *base, DType storage, int64_t i);
void elem_set(void *base, DType storage, int64_t i, double v);
#endif
