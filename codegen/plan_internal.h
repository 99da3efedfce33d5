/* plan_internal.h - what the parts of the planner share: a body's phases, and the choice of what
 * each sweep moves.
 *
 * plan.c decides phases, places and scalar programs; plan_sweep.c finds the cheapest set of sweeps
 * over memory for one storage; plan_variant.c writes the choice down as kernels.
 */
#ifndef CODEGEN_PLAN_INTERNAL_H
#define CODEGEN_PLAN_INTERNAL_H
#include "plan.h"

enum { PLAN_MAX_TEMPS = 8 };

/* Phases of one body. */
typedef struct BodyPhases {
    const IrModule *m;
    const IrBody *b;
    const bool *live;
    const int *phase; /* of a reduction: the phase whose kernels feed it */
    int nphases;      /* of this body: later ones of the module have no kernel of it */
    long *budget; /* instructions that searches may still visit; spent: they keep what they have */
} BodyPhases;
enum { PLAN_BUDGET = 1 << 22 }; /* some hundredths of a second, a hundred times what lamb needs */

/* The phase from which on a value can be used. */
static inline int plan_ready(const IrBody *b, const int *phase, IrRef ref)
{
    if (ref == IR_NONE) return 0;
    return phase[ref] + (ir_is_reduce(&b->ins[ref]) ? 1 : 0);
}
static inline bool plan_is_element(const IrBody *b, IrRef ref)
{
    return ref != IR_NONE && rate_is_element(b->ins[ref].rate);
}
static inline bool plan_is_vector(const IrBody *b, IrRef ref)
{
    return ref != IR_NONE && rate_is_vector(b->ins[ref].rate);
}
static inline bool plan_is_true(const IrBody *b, IrRef guard)
{
    return guard == IR_NONE || (b->ins[guard].op == IR_CONST && b->ins[guard].lit.num != 0);
}
static inline bool plan_is_false(const IrBody *b, IrRef guard)
{
    return guard != IR_NONE && b->ins[guard].op == IR_CONST && b->ins[guard].lit.num == 0;
}
/* Whether a store takes part in the sweeps: to an element slot, and possible at all. */
static inline bool plan_is_element_store(const IrModule *m, const IrBody *b, const IrStore *s)
{
    return rate_is_element(m->slots[s->slot].rate) && !plan_is_false(b, s->guard);
}

/* What a kernel does for one value; SWEEP_NONE: not needed there. */
typedef struct SweepKernel {
    uint8_t *how;   /* [ref] 0: not needed, else 1 + ValueHow */
    uint16_t *from; /* [ref] RELOAD: element slot that holds it; TEMP: which temporary */
    int read, written, flops;
} SweepKernel;

typedef struct Sweeps {
    int *store_phase; /* by index into body.stores; -1: not an element store */
    uint32_t nstores;
    IrRef temps[PLAN_MAX_TEMPS];
    int temp_phase[PLAN_MAX_TEMPS];
    uint32_t ntemps;
    int bytes, flops, sweeps;
    SweepKernel *kernels; /* one per phase */
} Sweeps;

/* The cheapest sweeps; fewer bytes, then fewer sweeps, then fewer temporaries, then fewer operations. `no_early`: all
 * stores in the last phase and no temporary, which is always possible. */
bool sweep_search(Arena *a, const BodyPhases *bp, const DType *storage, bool no_early,
                  bool no_temps, Sweeps *out);
#endif
