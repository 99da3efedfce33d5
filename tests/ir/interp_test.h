/* A module bound to tensors that the test owns: slots by name, values as doubles. */
#ifndef TESTS_IR_INTERP_TEST_H
#define TESTS_IR_INTERP_TEST_H
#include "tree_ref.h"

enum { MAX_TENSORS = 8, MAX_ELEM = 8, MAX_GROUPS = 3, MAX_SLOTS = 32 };

typedef struct Bound {
    IrModule *m;
    ExecState x;
    ExecTensor tensors[MAX_TENSORS];
    DType storage[MAX_TENSORS][MAX_ELEM];
    void *ptr[MAX_TENSORS][MAX_ELEM];
    double global[MAX_SLOTS], groups[MAX_GROUPS][MAX_SLOTS], blocks[MAX_TENSORS][MAX_SLOTS];
    double *group_ptr[MAX_GROUPS];
    uint32_t by_name[MAX_TENSORS];
} Bound;

static inline const Slot *slot_named(const Bound *b, const char *name)
{
    for (uint32_t i = 0; i < b->m->nslots; i++)
        if (strcmp(b->m->slots[i].name, name) == 0) return &b->m->slots[i];
    REQUIRE(0, "no slot %s", name);
    return NULL;
}

/* The place of a scalar slot; index: of the group or tensor. */
static inline double *place(Bound *b, const char *name, size_t index)
{
    const Slot *s = slot_named(b, name);
    return s->level == LEVEL_TENSOR  ? &b->blocks[index][s->index]
           : s->level == LEVEL_GROUP ? &b->groups[index][s->index]
                                     : &b->global[s->index];
}

static inline double get(Bound *b, const char *name, size_t t, int64_t i)
{
    uint32_t e = slot_named(b, name)->index;
    return elem_get(b->ptr[t][e], b->storage[t][e], i);
}
static inline void set(Bound *b, const char *name, size_t t, int64_t i, double v)
{
    uint32_t e = slot_named(b, name)->index;
    elem_set(b->ptr[t][e], b->storage[t][e], i, v);
}

/* All tensors active, storage of the module's dtype, in the arena; odd tensors at misaligned bases.
 */
static inline void bind_module(Bound *b, Arena *a, const char *text, size_t n, const int64_t *numel,
                               const char *const *names, const uint32_t *groups, size_t ngroups)
{
    *b = (Bound){.m = must_parse(a, text)};
    b->x = (ExecState){.global = b->global,
                       .group = b->group_ptr,
                       .ngroups = (uint32_t)ngroups,
                       .tensors = b->tensors,
                       .ntensors = n,
                       .by_name = b->by_name};
    for (size_t g = 0; g < ngroups; g++) b->group_ptr[g] = b->groups[g];
    for (size_t t = 0; t < n; t++) {
        b->tensors[t] = (ExecTensor){.name = names[t],
                                     .numel = numel[t],
                                     .group = groups ? groups[t] : 0,
                                     .active = numel[t] > 0,
                                     .storage = b->storage[t],
                                     .ptr = b->ptr[t],
                                     .block = b->blocks[t]};
        for (uint32_t e = 0; e < b->m->nelem; e++) {
            b->storage[t][e] = b->m->compute_f64 ? DT_F64 : DT_F32;
            b->ptr[t][e] = (char *)arena_alloc(a, (size_t)numel[t] * 8 + 16) + t % 2;
        }
        uint32_t at = (uint32_t)t;
        for (; at > 0 && strcmp(names[b->by_name[at - 1]], names[t]) > 0; at--)
            b->by_name[at] = b->by_name[at - 1];
        b->by_name[at] = (uint32_t)t;
    }
    for (uint32_t i = 0; i < b->m->nslots; i++) {
        const Slot *s = &b->m->slots[i];
        double v = s->kind == SLOT_HYPER ? s->def : s->init;
        if (s->level == LEVEL_GLOBAL) b->global[s->index] = v;
        for (size_t g = 0; g < ngroups && s->level == LEVEL_GROUP; g++) b->groups[g][s->index] = v;
        for (size_t t = 0; t < n && s->level == LEVEL_TENSOR; t++) b->blocks[t][s->index] = v;
        for (size_t t = 0; t < n && s->level == LEVEL_NONE; t++)
            for (int64_t k = 0; k < numel[t]; k++) set(b, s->name, t, k, v);
    }
}

/* A gradient or parameter that looks like one: both signs, magnitudes over some decades, some
 * zeros. */
static inline double noise(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    double u = (double)(*seed >> 11) * 0x1p-52 - 1;
    int k = (int)(*seed >> 5 & 15);
    return k == 0 ? 0 : (double)(float)(u * pow(2, k - 12));
}

static inline bool same_bits(double a, double b)
{
    return memcmp(&a, &b, 8) == 0 || (a != a && b != b);
}
#endif
