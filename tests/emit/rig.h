/* rig.h - several tensors with two copies of their memory: one is stepped by the interpreter, the
 * other by built code.
 *
 *   in:  a plan of lamb, its kernels and programs, sizes {1, 4097}
 *   out: rig_interp(&r) and rig_run(&r, &code) step; rig_same(&r, "lamb, gcc -O3") checks every bit
 *        of p, states, counters and exports
 *
 * The built side is run by the simplest executor there is: one thread, phase by phase. */
#ifndef DSOPT_TESTS_EMIT_RIG_H
#define DSOPT_TESTS_EMIT_RIG_H
#include "../check.h"
#include "codegen/codegen.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RIG_TENSORS = 16, RIG_ELEMS = 32, RIG_GROUPS = 2 };

/* Entry points of a plan, whatever built them. */
typedef struct RigCode {
    DsKernelFn kernels[8];
    DsScalarFn programs[64], commit[8];
} RigCode;

typedef struct RigSide {
    double *global, *group[RIG_GROUPS], *cls[RIG_TENSORS], *tensor[RIG_TENSORS];
    void *ptr[RIG_TENSORS][RIG_ELEMS];
} RigSide;

typedef struct Rig {
    Arena *a;
    const Plan *p;
    const Variant *v;
    size_t n;
    int64_t numel[RIG_TENSORS];
    bool active[RIG_TENSORS];
    uint32_t by_name[RIG_TENSORS];
    int offset; /* bytes by which every buffer is off its alignment */
    RigSide want, got;
    uint64_t seed;
} Rig;

static inline uint64_t rig_random(Rig *r)
{
    r->seed ^= r->seed << 13;
    r->seed ^= r->seed >> 7;
    return r->seed ^= r->seed << 17;
}

/* Ordinary magnitudes, and now and then zero, subnormal, huge, infinite, NaN where `special`. */
static inline double rig_value(Rig *r, bool special)
{
    static const double odd[] = {0, -0.0, 1e-40, -3e38, INFINITY, -INFINITY, NAN};
    uint64_t u = rig_random(r);
    if (special && u % 29 == 0) return odd[(u >> 32) % (sizeof odd / sizeof *odd)];
    double x = (double)(rig_random(r) >> 11) * 0x1p-53 * 2 - 1;
    return (float)ldexp(x, (int)((u >> 40) % 12) - 8);
}

static inline DType rig_storage(const Rig *r, uint32_t e)
{
    return e < r->p->m->nelem ? r->v->storage[e] : DT_F32;
}

/* Refills slot e of both sides with the same values. */
static inline void rig_fill(Rig *r, uint32_t e, bool special, bool nonnegative)
{
    for (size_t t = 0; t < r->n; t++) {
        for (int64_t i = 0; i < r->numel[t]; i++) {
            double x = rig_value(r, special);
            elem_set(r->want.ptr[t][e], rig_storage(r, e), i, nonnegative ? fabs(x) : x);
        }
        memcpy(r->got.ptr[t][e], r->want.ptr[t][e],
               (size_t)r->numel[t] * (size_t)dtype_size(rig_storage(r, e)));
    }
}

static inline void rig_side_new(Rig *r, RigSide *s)
{
    const Plan *p = r->p;
    s->global = ARENA_ARRAY(r->a, double, p->block_size[LEVEL_GLOBAL] + 1);
    for (int g = 0; g < RIG_GROUPS; g++)
        s->group[g] = ARENA_ARRAY(r->a, double, p->block_size[LEVEL_GROUP] + 1);
    for (size_t t = 0; t < r->n; t++) {
        s->cls[t] = ARENA_ARRAY(r->a, double, p->block_size[LEVEL_CLASS] + 1);
        s->tensor[t] = ARENA_ARRAY(r->a, double, p->block_size[LEVEL_TENSOR] + 1);
        for (uint32_t e = 0; e < p->m->nelem + r->v->ntemps; e++)
            s->ptr[t][e] = (char *)arena_alloc(r->a, (size_t)(r->numel[t] + 8) * 8) + r->offset;
    }
}

static inline double rig_property(const Rig *r, const Slot *s, size_t t)
{
    if (strcmp(s->name, "ndim") == 0 || strcmp(s->name, "rows") == 0) return 1;
    if (strcmp(s->name, "gbits") == 0) return 8 * dtype_size(r->v->storage[1]);
    double all = 0;
    for (size_t k = 0; k < r->n; k++) all += r->active[k] ? (double)r->numel[k] : 0;
    return strcmp(s->name, "numel_all") == 0 ? all : (double)r->numel[t];
}

/* Hyperparameters (a little different in each group), initial states and properties, on one side.
 */
static inline void rig_side_fill(Rig *r, RigSide *s)
{
    for (uint32_t i = 0; i < r->p->m->nslots; i++) {
        const Slot *slot = &r->p->m->slots[i];
        if (rate_is_elementwise(slot->rate)) continue;
        double x = slot->kind == SLOT_HYPER ? slot->def : slot->init;
        if (slot->level == LEVEL_GLOBAL)
            s->global[slot->index] = slot->kind == SLOT_PROP ? rig_property(r, slot, 0) : x;
        for (int g = 0; slot->level == LEVEL_GROUP && g < RIG_GROUPS; g++)
            s->group[g][slot->index] =
                slot->kind == SLOT_HYPER && slot->def < 1 ? x * (1 - 0.25 * g) : x;
        for (size_t t = 0; slot->level == LEVEL_TENSOR && t < r->n; t++)
            s->tensor[t][slot->index] = slot->kind == SLOT_PROP ? rig_property(r, slot, t) : x;
    }
}

static inline void rig_new(Rig *r, Arena *a, const Plan *p, const Variant *v, const int64_t *sizes,
                           size_t n, int offset)
{
    memset(r, 0, sizeof *r);
    *r = (Rig){.a = a, .p = p, .v = v, .n = n, .offset = offset, .seed = 88172645463325252u};
    for (size_t t = 0; t < n; t++) {
        r->numel[t] = sizes[t];
        r->active[t] = sizes[t] > 0;
        r->by_name[t] = (uint32_t)(n - 1 - t);
    }
    rig_side_new(r, &r->want);
    rig_side_new(r, &r->got);
    rig_side_fill(r, &r->want);
    rig_side_fill(r, &r->got);
    rig_fill(r, 0, false, false);
    for (uint32_t e = 2; e < p->m->nelem; e++) rig_fill(r, e, false, true);
}

/* Properties that depend on which tensors are active. */
static inline void rig_activate(Rig *r)
{
    for (uint32_t i = 0; i < r->p->m->nslots; i++) {
        const Slot *s = &r->p->m->slots[i];
        if (s->kind == SLOT_PROP && s->level == LEVEL_GLOBAL)
            r->want.global[s->index] = r->got.global[s->index] = rig_property(r, s, 0);
    }
}

static inline int rig_slot_t(const Rig *r)
{
    for (uint32_t i = 0; i < r->p->m->nslots; i++) {
        if (r->p->m->slots[i].kind == SLOT_COUNT && r->p->m->slots[i].level == LEVEL_TENSOR)
            return (int)r->p->m->slots[i].index;
    }
    return -1;
}

static inline void rig_interp(Rig *r)
{
    ExecTensor tensors[RIG_TENSORS];
    for (size_t t = 0; t < r->n; t++)
        tensors[t] = (ExecTensor){.name = "",
                                  .numel = r->numel[t],
                                  .rows = 1,
                                  .cols = r->numel[t],
                                  .mats = 1,
                                  .group = (uint32_t)(t % RIG_GROUPS),
                                  .body = r->v->body,
                                  .active = r->active[t],
                                  .storage = r->v->storage,
                                  .ptr = r->want.ptr[t],
                                  .block = r->want.tensor[t]};
    ExecState x = {r->want.global, r->want.group, RIG_GROUPS, tensors, r->n, r->by_name};
    REQUIRE(interp_step(r->p->m, &x), "the interpreter ran out of memory");
}

static inline bool rig_group_active(const Rig *r, int g)
{
    for (size_t t = 0; t < r->n; t++) {
        if (r->active[t] && (int)(t % RIG_GROUPS) == g) return true;
    }
    return false;
}

static inline void rig_program(Rig *r, DsScalarFn fn, Level level)
{
    RigSide *s = &r->got;
    if (level == LEVEL_GLOBAL) fn(s->global, NULL, NULL, NULL);
    for (int g = 0; level == LEVEL_GROUP && g < RIG_GROUPS; g++) {
        if (rig_group_active(r, g)) fn(s->global, s->group[g], NULL, NULL);
    }
    for (size_t t = 0; level >= LEVEL_CLASS && t < r->n; t++) {
        if (r->active[t])
            fn(s->global, s->group[t % RIG_GROUPS], s->cls[t],
               level == LEVEL_CLASS ? NULL : s->tensor[t]);
    }
}

static inline double *rig_place(Rig *r, size_t t, Place at)
{
    RigSide *s = &r->got;
    double *block[LEVEL_COUNT] = {s->global, s->group[t % RIG_GROUPS], s->cls[t], s->tensor[t]};
    return &block[at.level][at.index];
}

typedef struct RigRows {
    DsRow rows[256];
    DsTensorRow tensors[RIG_TENSORS];
    double partial[256 * 8];
    size_t n, begin[RIG_TENSORS + 1];
} RigRows;

static inline void rig_rows(Rig *r, RigRows *w)
{
    w->n = 0;
    for (size_t t = 0; t < r->n; t++) {
        w->begin[t] = w->n;
        w->tensors[t] = (DsTensorRow){
            {r->got.global, r->got.group[t % RIG_GROUPS], r->got.cls[t], r->got.tensor[t]},
            r->got.ptr[t],
            1,
            r->numel[t],
            1,
            1,
            1};
        for (int64_t i = 0; r->active[t] && i < r->numel[t]; i += DS_CHUNK) {
            int64_t left = r->numel[t] - i;
            w->rows[w->n++] = ds_flat_row((int64_t)t, i, left < DS_CHUNK ? left : DS_CHUNK);
        }
    }
    w->begin[r->n] = w->n;
}

static inline void rig_join(Rig *r, const RigRows *w, const PlanReduce *pr, int npartial)
{
    const Ins *ins = &r->p->m->bodies[pr->body].ins[pr->ins];
    ReduceOp op = (ReduceOp)(ins->op - IR_RED);
    double roots[RIG_TENSORS];
    unsigned char present[RIG_TENSORS];
    for (size_t k = 0; k < r->n; k++) {
        size_t t = r->by_name[k];
        bool in =
            r->active[t] && (pr->guard.level == LEVEL_NONE || *rig_place(r, t, pr->guard) != 0);
        present[k] = in;
        roots[k] = reduce_identity(op);
        if (in && pr->from == FROM_SCALARS)
            roots[k] = reduce_step(op, reduce_identity(op), *rig_place(r, t, pr->arg),
                                   pr->arg2.level == LEVEL_NONE ? 0 : *rig_place(r, t, pr->arg2));
        else if (in)
            roots[k] = reduce_tree(op, w->partial + w->begin[t] * (size_t)npartial + pr->partial,
                                   w->begin[t + 1] - w->begin[t], (size_t)npartial, NULL);
        if (pr->result.level == LEVEL_TENSOR && r->active[t])
            r->got.tensor[t][pr->result.index] = roots[k];
    }
    if (pr->result.level == LEVEL_GLOBAL && pr->from == FROM_SCALARS) {
        /* A vector of as many values as there are tensors: lanes first, as long as they are few. */
        double lanes[DS_LANES];
        for (int j = 0; j < DS_LANES; j++)
            lanes[j] = j < (int)r->n && present[j] ? roots[j] : reduce_identity(op);
        r->got.global[pr->result.index] = reduce_fold_lanes(op, lanes);
    } else if (pr->result.level == LEVEL_GLOBAL) {
        r->got.global[pr->result.index] = reduce_tree(op, roots, r->n, 1, present);
    }
}

/* One step of the built side. */
static inline void rig_run(Rig *r, const RigCode *code)
{
    static RigRows w;
    const Plan *p = r->p;
    rig_rows(r, &w);
    for (size_t t = 0; t < r->n && rig_slot_t(r) >= 0; t++)
        r->got.cls[t][0] = r->got.tensor[t][rig_slot_t(r)];
    for (int ph = 0; ph <= p->nphases; ph++) {
        int npartial = 0;
        for (uint32_t i = 0; i < p->nreduces; i++)
            npartial += p->reduces[i].phase == ph && p->reduces[i].from != FROM_SCALARS;
        for (uint32_t i = 0; i < p->nprograms; i++) {
            if (p->programs[i].phase == ph) rig_program(r, code->programs[i], p->programs[i].level);
        }
        DsArgs args = {w.rows, w.tensors, w.partial, npartial};
        for (uint32_t i = 0; i < r->v->nkernels; i++) {
            /* In two pieces, as two threads would. */
            if (r->v->kernels[i].phase != ph) continue;
            code->kernels[i](&args, 0, (int64_t)(w.n / 2), NULL);
            code->kernels[i](&args, (int64_t)(w.n / 2), (int64_t)w.n, NULL);
        }
        for (uint32_t i = 0; i < p->nreduces; i++) {
            if (p->reduces[i].phase == ph) rig_join(r, &w, &p->reduces[i], npartial);
        }
    }
    for (uint32_t i = 0; i < p->ncommit; i++) rig_program(r, code->commit[i], p->commit[i].level);
}

static inline bool rig_equal(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static inline void rig_same_scalar(const Slot *s, double want, double got, const char *what,
                                   size_t which)
{
    CHECK(rig_equal(want, got), "%s: %s of %zu is %a, should be %a", what, s->name, which, got,
          want);
}

/* Checks p, states and all stored scalars. */
static inline void rig_same(Rig *r, const char *what)
{
    for (uint32_t i = 0; i < r->p->m->nslots; i++) {
        const Slot *s = &r->p->m->slots[i];
        if (s->kind == SLOT_RESULT || s->kind == SLOT_PROP) continue;
        if (s->level == LEVEL_GLOBAL)
            rig_same_scalar(s, r->want.global[s->index], r->got.global[s->index], what, 0);
        for (size_t g = 0; s->level == LEVEL_GROUP && g < RIG_GROUPS; g++)
            rig_same_scalar(s, r->want.group[g][s->index], r->got.group[g][s->index], what, g);
        for (size_t t = 0; s->level == LEVEL_TENSOR && t < r->n; t++)
            rig_same_scalar(s, r->want.tensor[t][s->index], r->got.tensor[t][s->index], what, t);
        for (size_t t = 0; rate_is_elementwise(s->rate) && t < r->n; t++) {
            int64_t bad = -1;
            DType d = rig_storage(r, s->index);
            for (int64_t k = 0; k < r->numel[t] && bad < 0; k++) {
                if (!rig_equal(elem_get(r->want.ptr[t][s->index], d, k),
                               elem_get(r->got.ptr[t][s->index], d, k)))
                    bad = k;
            }
            CHECK(bad < 0, "%s: %s[%ld] of %ld is %a, should be %a", what, s->name, (long)bad,
                  (long)r->numel[t], elem_get(r->got.ptr[t][s->index], d, bad),
                  elem_get(r->want.ptr[t][s->index], d, bad));
        }
    }
}
#endif
