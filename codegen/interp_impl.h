/* interp_impl.h - what the files of the interpreter share: values of a step, and where they are
 * looked at. */
#ifndef CODEGEN_INTERP_IMPL_H
#define CODEGEN_INTERP_IMPL_H
#include "interp_map.h"
#include "plan.h"
#include <setjmp.h>

/* The values of one instruction. */
typedef struct Val {
    double *scalar; /* one, one per group, or one per tensor; f32 exactly, bools 0 or 1 */
    void **array;   /* vectors and elements: one array per tensor; NULL where not active or freed */
    uint32_t uses;  /* by instructions that are not done, and by stores */
    bool done, arrived; /* arrived: a reduction across tensors, counted in Run.waits */
} Val;

enum { INTERP_TEMPS = 8 };
typedef struct Run {
    const IrModule *m;
    ExecState *x;
    Arena arena; /* scalars and bookkeeping */
    jmp_buf oom;
    Val **val;         /* [body][ref]; NULL: the body does not run */
    bool **group_runs; /* [body][group]: has an active tensor */
    IrRef **feeder;    /* [body][slot]: the reduction across tensors that writes it; IR_NONE */
    uint32_t *waits;   /* per slot: those in bodies that run whose operands are not done */
    double **result;   /* per slot: of reductions across tensors, one or one per group */
    void *temp[INTERP_TEMPS];
    int ntemps;
} Run;

/* Where a value of some rate is looked at: a tensor and its group, or a group, or the whole. */
typedef struct Site {
    size_t group, tensor;
} Site;

/* The k-th site of a level; false if nothing of the body runs there. */
bool run_site(const Run *r, uint32_t body, Level level, size_t k, Site *out);
double run_scalar(const Run *r, uint32_t body, IrRef ref, Site s);
bool run_guard(const Run *r, uint32_t body, IrRef guard, Site s);
/* An array that lives until run_drop(r, mark) with an earlier r->ntemps. */
void *run_temp(Run *r, size_t n, DType dtype);
void run_drop(Run *r, int mark);
/* A value at the given rate (its own or a finer one); may take temporaries. */
void run_operand(Run *r, uint32_t body, IrRef ref, Site s, Rate rate, MapArg *out);

/* A reduction within one tensor: to tensor rate, and to a vector (out: doubles or bools). */
double reduce_to_tensor(Run *r, uint32_t body, const Ins *i, Site s);
void reduce_to_vector(Run *r, uint32_t body, const Ins *i, Site s, void *out);
/* Over tensors, or groups: of all bodies that feed the slot. */
double reduce_across(Run *r, uint32_t slot, size_t group);
#endif
