/* A module bound to tensors that the test owns: slots by name, values as doubles. */
#ifndef TESTS_IR_INTERP_TEST_H
#define TESTS_IR_INTERP_TEST_H
#include "tree_ref.h"

enum { MAX_TENSORS = 10, MAX_ELEM = 16, MAX_GROUPS = 3, MAX_SLOTS = 32 };

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

typedef struct Shape {
    int ndim;
    int64_t size[4];
} Shape;

/* Properties of shapes as the runtime fills them; draws: some key. */
static inline void bind_props(Bound *b, size_t t, const Shape *shape)
{
    const ExecTensor *x = &b->tensors[t];
    const struct {
        const char *name;
        double value;
    } props[] = {{"numel", (double)x->numel},
                 {"ndim", shape->ndim},
                 {"rows", (double)x->rows},
                 {"cols", (double)x->cols},
                 {"mats", (double)x->mats},
                 {"first", shape->ndim ? (double)shape->size[0] : 1},
                 {"gbits", 32},
                 {"draw_lo", 4000000000.0 + (double)t},
                 {"draw_hi", 12345}};
    for (size_t i = 0; i < sizeof props / sizeof *props; i++) {
        int slot = ir_slot_find(b->m, SLOT_PROP, props[i].name);
        if (slot >= 0) b->blocks[t][b->m->slots[slot].index] = props[i].value;
    }
}

static inline void bind_dims(ExecTensor *x, const ViewDims *d)
{
    x->numel = d->numel;
    x->rows = d->rows;
    x->cols = d->cols;
    x->mats = d->mats;
}

/* Which body runs a tensor, and how that sees it. */
static inline void bind_shape(Bound *b, Arena *a, size_t t, const Shape *shape)
{
    ExecTensor *x = &b->tensors[t];
    ViewDims d = view_dims(VIEW_FLAT, shape->ndim, shape->size, 0);
    bind_dims(x, &d);
    bind_props(b, t, shape);
    int arm = -1, block = -1;
    for (uint32_t i = 0; i < b->m->nslots; i++) {
        if (b->m->slots[i].kind == SLOT_ARM) arm = (int)b->m->slots[i].index;
        if (b->m->slots[i].kind == SLOT_BLOCK) block = (int)b->m->slots[i].index;
    }
    if (b->m->select) REQUIRE(select_eval(b->m, a, x->block), "out of memory");
    if (arm >= 0) x->body = (uint32_t)x->block[arm];
    if (x->body >= b->m->nbodies) return; /* no bodies at all */
    d = view_dims(b->m->bodies[x->body].view, shape->ndim, shape->size,
                  block >= 0 ? (int64_t)x->block[block] : 0);
    bind_dims(x, &d);
}

/* All tensors active, storage of the module's dtype, in the arena; odd tensors at misaligned bases.
 */
static inline void bind_shapes(Bound *b, Arena *a, const char *text, size_t n, const Shape *shapes,
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
                                     .group = groups ? groups[t] : 0,
                                     .storage = b->storage[t],
                                     .ptr = b->ptr[t],
                                     .block = b->blocks[t]};
        bind_shape(b, a, t, &shapes[t]);
        b->tensors[t].active = b->tensors[t].numel > 0;
        for (uint32_t i = 0; i < b->m->nslots; i++) {
            const Slot *s = &b->m->slots[i];
            if (s->level != LEVEL_NONE || s->index == IR_NONE) continue;
            int64_t count = exec_count(&b->tensors[t], s->rate);
            b->storage[t][s->index] = s->dtype;
            b->ptr[t][s->index] = (char *)arena_alloc(a, (size_t)count * 8 + 16) + t % 2;
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
        bool known = s->kind == SLOT_ARM || s->kind == SLOT_BLOCK || s->kind == SLOT_PROP;
        for (size_t t = 0; t < n && s->level == LEVEL_TENSOR && !known; t++)
            b->blocks[t][s->index] = v;
        for (size_t t = 0; t < n && s->level == LEVEL_NONE && s->index != IR_NONE; t++)
            for (int64_t k = 0; k < exec_count(&b->tensors[t], s->rate); k++)
                elem_set(b->ptr[t][s->index], b->storage[t][s->index], k, v);
    }
}

/* Tensors of one dimension. */
static inline void bind_module(Bound *b, Arena *a, const char *text, size_t n, const int64_t *numel,
                               const char *const *names, const uint32_t *groups, size_t ngroups)
{
    Shape shapes[MAX_TENSORS];
    for (size_t t = 0; t < n; t++) shapes[t] = (Shape){1, {numel[t]}};
    bind_shapes(b, a, text, n, shapes, names, groups, ngroups);
}

/* A gradient or parameter that looks like one: both signs, magnitudes over some decades, some
 * zeros. */
static inline double noise(uint64_t *seed)
{
    check_random(seed);
    double u = (double)(*seed >> 11) * 0x1p-52 - 1;
    int k = (int)(*seed >> 5 & 15);
    return k == 0 ? 0 : (double)(float)(u * pow(2, k - 12));
}

static inline bool same_bits(double a, double b)
{
    return memcmp(&a, &b, 8) == 0 || (a != a && b != b);
}
#endif
