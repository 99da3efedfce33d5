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
    uint32_t group;       /* index into ExecState.group */
    uint32_t body;        /* which body of the module it runs */
    bool active;          /* takes part in this step: it has a gradient and is not empty */
    const DType *storage; /* per element slot; DT_F64 only under compute_f64 */
    void **ptr;           /* per element slot */
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

/* One step of body entry "step", straight from the IR: every instruction evaluated for every active
 * tensor, no plan. The oracle. Writes stores whose guards hold, counters and exports included.
 * False: out of memory (nothing written). Not fast. */
bool interp_step(const IrModule *m, ExecState *x);

/* Element access with conversion, as loads and stores of the step do it (round to nearest even,
 * canonical NaN). */
double elem_get(const void *base, DType storage, int64_t i);
void elem_set(void *base, DType storage, int64_t i, double v);
#endif
