/* step.h - one step of a plan over tensors in memory, for the tests: the smallest executor, one row
 * table per phase.
 *
 *     World w = world_new(&a, m, sizes, 3, storage);  Built b = built_new(…);  world_step(&w, plan,
 * variants, built) and then world_same(&w, &reference) against a world that interp_step has moved
 */
#ifndef TESTS_TILE_STEP_H
#define TESTS_TILE_STEP_H
#include "number.h"
#include "codegen/codegen.h"
#include <math.h>
#include <string.h>

enum { WORLD_GROUPS = 2, GUARD_BYTES = 64 };

typedef struct World {
    Arena *a;
    const IrModule *m;
    size_t n;
    const DType *storage;
    ExecState x;
    double **cls; /* one class block per tensor */
    DsTensorRow *rows;
    uint32_t block_size[LEVEL_COUNT];
} World;

static uint64_t world_seed;
static inline uint32_t world_random(void)
{
    return (uint32_t)(check_random(&world_seed) >> 33);
}

static inline void world_fill(World *w, ExecTensor *t, uint32_t elem, SlotKind kind, bool wild)
{
    for (int64_t i = 0; i < t->numel; i++) {
        float v = (float)number_random(&world_seed, wild);
        /* States that are averages of squares are not told apart from others: all are made positive
         * half of the time. */
        if (kind == SLOT_STATE && world_random() % 4) v = fabsf(v);
        elem_set(t->ptr[elem], w->storage[elem], i, v);
    }
}

static inline World world_new(Arena *a, const IrModule *m, const uint32_t *block_size,
                              const int64_t *sizes, size_t n, const DType *storage, bool wild)
{
    World w = {.a = a, .m = m, .n = n, .storage = storage};
    memcpy(w.block_size, block_size, sizeof w.block_size);
    w.x.global = ARENA_ARRAY(a, double, block_size[LEVEL_GLOBAL] + 1);
    w.x.group = ARENA_ARRAY(a, double *, WORLD_GROUPS);
    w.x.ngroups = WORLD_GROUPS;
    w.x.tensors = ARENA_ARRAY(a, ExecTensor, n);
    w.x.ntensors = n;
    uint32_t *by_name = ARENA_ARRAY(a, uint32_t, n);
    w.cls = ARENA_ARRAY(a, double *, n);
    for (int g = 0; g < WORLD_GROUPS; g++)
        w.x.group[g] = ARENA_ARRAY(a, double, block_size[LEVEL_GROUP] + 1);
    for (size_t i = 0; i < n; i++) {
        ExecTensor *t = &w.x.tensors[i];
        by_name[i] = (uint32_t)i;
        *t = (ExecTensor){.name = arena_printf(a, "t%zu", i),
                          .numel = sizes[i],
                          .group = (uint32_t)(i % WORLD_GROUPS),
                          .active = sizes[i] > 0,
                          .storage = storage};
        t->ptr = ARENA_ARRAY(a, void *, m->nelem + 8);
        t->block = ARENA_ARRAY(a, double, block_size[LEVEL_TENSOR] + 1);
        w.cls[i] = ARENA_ARRAY(a, double, block_size[LEVEL_CLASS] + 1);
        for (uint32_t e = 0; e < m->nelem + 8; e++) {
            size_t size = e < m->nelem ? (size_t)dtype_size(storage[e]) : 4;
            char *base = arena_alloc(a, (size_t)sizes[i] * size + GUARD_BYTES);
            t->ptr[e] = base + (e + i) % 3 * size; /* misaligned by a few elements */
        }
    }
    w.x.by_name = by_name;
    for (uint32_t s = 0; s < m->nslots; s++) {
        const Slot *slot = &m->slots[s];
        for (size_t i = 0; i < n; i++) {
            if (rate_is_elementwise(slot->rate))
                world_fill(&w, &w.x.tensors[i], slot->index, slot->kind, wild);
            else if (slot->level == LEVEL_TENSOR)
                w.x.tensors[i].block[slot->index] =
                    slot->kind == SLOT_COUNT ? (double)(i % 3) : slot->init;
        }
        for (int g = 0; g < WORLD_GROUPS; g++) {
            if (!rate_is_elementwise(slot->rate) && slot->level == LEVEL_GROUP)
                w.x.group[g][slot->index] =
                    slot->kind == SLOT_HYPER ? slot->def * (g ? 0.75 : 1) : slot->init;
        }
        if (!rate_is_elementwise(slot->rate) && slot->level == LEVEL_GLOBAL)
            w.x.global[slot->index] = slot->kind == SLOT_HYPER   ? slot->def
                                      : slot->kind == SLOT_COUNT ? 2
                                                                 : slot->init;
    }
    return w;
}

typedef struct WorldBuilt {
    const Plan *plan;
    const Variant *variant;
    BuiltVariant code;
    BuiltScalars scalars;
} WorldBuilt;

static inline void world_program(const World *w, const ScalarProgram *sp, DsScalarFn fn)
{
    if (sp->level == LEVEL_GLOBAL) fn(w->x.global, NULL, NULL, NULL);
    for (uint32_t g = 0; sp->level == LEVEL_GROUP && g < w->x.ngroups; g++)
        fn(w->x.global, w->x.group[g], NULL, NULL);
    for (size_t i = 0; sp->level >= LEVEL_CLASS && i < w->n; i++) {
        const ExecTensor *t = &w->x.tensors[i];
        if (t->active)
            fn(w->x.global, w->x.group[t->group], w->cls[i],
               sp->level == LEVEL_TENSOR ? t->block : NULL);
    }
}

static inline double *world_block(const World *w, size_t i, Place at)
{
    const ExecTensor *t = &w->x.tensors[i];
    double *blocks[] = {w->x.global, w->x.group[t->group], w->cls[i], t->block};
    return blocks[at.level] + at.index;
}

/* Runs the kernels of a phase row by row, out of order, and gives each tensor's partial results:
 * [tensor][column], in the tree. */
static inline void world_join(const World *w, const WorldBuilt *b, int phase, const double *partial,
                              const size_t *first, int64_t npartial)
{
    double *root = ARENA_ARRAY(w->a, double, w->n);
    unsigned char *present = ARENA_ARRAY(w->a, unsigned char, w->n);
    for (uint32_t k = 0; k < b->plan->nreduces; k++) {
        const PlanReduce *r = &b->plan->reduces[k];
        const Ins *ins = &w->m->bodies[r->body].ins[r->ins];
        ReduceOp op = (ReduceOp)(ins->op - IR_RED);
        if (r->phase != phase) continue;
        for (size_t i = 0; i < w->n; i++) {
            present[i] = w->x.tensors[i].active &&
                         (r->guard.level == LEVEL_NONE || *world_block(w, i, r->guard) != 0);
            if (!w->x.tensors[i].active) continue;
            if (r->from == FROM_SCALARS)
                root[i] =
                    reduce_step(op, reduce_identity(op), *world_block(w, i, r->arg),
                                r->arg2.level == LEVEL_NONE ? 0 : *world_block(w, i, r->arg2));
            else
                root[i] = reduce_tree(op, partial + (int64_t)first[i] * npartial + r->partial,
                                      first[i + 1] - first[i], (size_t)npartial, NULL);
            if (ins->rate == RATE_TENSOR)
                *world_block(w, i, r->result) = present[i] ? root[i] : reduce_identity(op);
        }
        if (ins->rate != RATE_TENSOR)
            w->x.global[r->result.index] = reduce_tree(op, root, w->n, 1, present);
    }
}

static inline void world_phase(const World *w, const WorldBuilt *b, int phase)
{
    size_t nrows = 0, *first = ARENA_ARRAY(w->a, size_t, w->n + 1);
    for (size_t i = 0; i < w->n; i++) {
        first[i] = nrows;
        nrows +=
            w->x.tensors[i].active ? (size_t)(w->x.tensors[i].numel + DS_CHUNK - 1) / DS_CHUNK : 0;
    }
    first[w->n] = nrows;
    DsRow *rows = ARENA_ARRAY(w->a, DsRow, nrows + 1);
    DsTensorRow *tensors = ARENA_ARRAY(w->a, DsTensorRow, w->n);
    for (size_t i = 0; i < w->n; i++) {
        ExecTensor *t = &w->x.tensors[i];
        tensors[i] = (DsTensorRow){
            {w->x.global, w->x.group[t->group], w->cls[i], t->block}, t->ptr, 1, t->numel, 1, 1, 1};
        for (size_t r = first[i]; r < first[i + 1]; r++) {
            int64_t at = (int64_t)(r - first[i]) * DS_CHUNK, left = t->numel - at;
            rows[r] = ds_flat_row((int64_t)i, at, left < DS_CHUNK ? left : DS_CHUNK);
        }
    }
    int64_t npartial = (int64_t)b->plan->nreduces + 1;
    DsArgs args = {rows, tensors, ARENA_ARRAY(w->a, double, nrows *(size_t)npartial + 1), npartial};
    /* Behind the scratch lies what a chunk's worth of floats too many would overwrite. */
    size_t size = b->code.scratch_bytes, behind = DS_CHUNK * sizeof(float);
    char *scratch = arena_alloc(w->a, size + behind + 64);
    scratch += 64 - (uintptr_t)scratch % 64;
    for (uint32_t k = 0; k < b->variant->nkernels; k++) {
        if (b->variant->kernels[k].phase != phase) continue;
        size_t half = nrows / 2; /* two pieces, the later first: rows do not know of each other */
        b->code.kernels[k](&args, (int64_t)half, (int64_t)nrows, scratch);
        b->code.kernels[k](&args, 0, (int64_t)half, scratch);
    }
    size_t last = size + behind;
    while (last > size && scratch[last - 1] == 0) last--;
    CHECK(last == size, "%zu bytes behind %zu of scratch are written", last - size, size);
    world_join(w, b, phase, args.partial, first, npartial);
}

static inline void world_step(const World *w, const WorldBuilt *b)
{
    for (size_t i = 0; i < w->n; i++) {
        for (uint32_t s = 0; s < w->m->nslots; s++) {
            const Slot *slot = &w->m->slots[s];
            if (slot->kind == SLOT_COUNT && slot->rate == RATE_TENSOR)
                w->cls[i][0] = w->x.tensors[i].block[slot->index];
        }
    }
    for (int phase = 0; phase <= b->plan->nphases; phase++) {
        for (uint32_t k = 0; k < b->plan->nprograms; k++) {
            if (b->plan->programs[k].phase == phase)
                world_program(w, &b->plan->programs[k], b->scalars.programs[k]);
        }
        if (phase < b->plan->nphases) world_phase(w, b, phase);
    }
    for (uint32_t k = 0; k < b->plan->ncommit; k++)
        world_program(w, &b->plan->commit[k], b->scalars.commit[k]);
}

static inline bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static inline const char *world_difference(const World *w, const World *v)
{
    for (uint32_t s = 0; s < w->m->nslots; s++) {
        const Slot *slot = &w->m->slots[s];
        for (size_t i = 0; i < w->n; i++) {
            const ExecTensor *t = &w->x.tensors[i], *u = &v->x.tensors[i];
            if (!rate_is_elementwise(slot->rate)) {
                Place at = {slot->level, slot->index};
                double x = *world_block(w, i, at), y = *world_block(v, i, at);
                if (slot->kind != SLOT_RESULT && !same_double(x, y))
                    return arena_printf(w->a, "%s of tensor %zu: %a, want %a", slot->name, i, x, y);
                continue;
            }
            for (int64_t j = 0; j < t->numel; j++) {
                double x = elem_get(t->ptr[slot->index], w->storage[slot->index], j);
                double y = elem_get(u->ptr[slot->index], w->storage[slot->index], j);
                if (!same_double(x, y))
                    return arena_printf(w->a, "%s[%lld] of tensor %zu (%lld elements): %a, want %a",
                                        slot->name, (long long)j, i, (long long)t->numel, x, y);
            }
        }
    }
    return NULL;
}
#endif
