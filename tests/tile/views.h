/* views.h - one step of a plan over tensors of any shape, for the tests: the smallest executor of
 * bodies with rows, columns, blocks and matrices, by whatever backend.
 *
 *     Scene s = scene_new(&a, plan, variants, shapes, n);  scene_step(&s, &built);
 *     and then scene_difference(&s, &reference) against a scene that interp_step has moved
 */
#ifndef TESTS_TILE_VIEWS_H
#define TESTS_TILE_VIEWS_H
#include "number.h"
#include "codegen/codegen.h"
#include <math.h>
#include <string.h>

enum { SCENE_GROUPS = 2, SCENE_BODIES = 4, SCENE_PAD = 64, SCENE_PIECE = 37 };

typedef struct SceneShape {
    int ndim;
    int64_t dim[3];
} SceneShape;

typedef struct Scene {
    Arena *a;
    const Plan *p;
    const IrModule *m;
    const Variant *const *variants; /* per body */
    size_t n;
    const SceneShape *shapes;
    ViewDims *dims;
    ExecState x;
    double **cls;
    DsTensorRow *tensors;
} Scene;

typedef struct SceneCode {
    BuiltVariant kernels[SCENE_BODIES];
    BuiltScalars scalars;
} SceneCode;

static uint64_t scene_seed;

static inline int64_t scene_rows_of(const ViewDims *d)
{
    return d->view == VIEW_FLAT ? 1 : d->rows;
}

/* Memory of a pointer: every one is filled, so that what is read must have been written. */
static inline void *scene_memory(Scene *s, size_t values, size_t size, int off)
{
    char *base = arena_alloc(s->a, (values + 8) * size + SCENE_PAD);
    memset(base, 0x7b, (values + 8) * size + SCENE_PAD);
    return base + off;
}

static inline void scene_pointers(Scene *s, size_t i)
{
    ExecTensor *t = &s->x.tensors[i];
    const ViewDims *d = &s->dims[i];
    const Variant *v = s->variants[t->body];
    uint32_t first = plan_first_temp(s->p, t->body), n = first + v->ntemps;
    t->ptr = ARENA_ARRAY(s->a, void *, n + 1);
    for (uint32_t k = 0; k < s->m->nslots; k++) {
        const Slot *slot = &s->m->slots[k];
        bool pointer = slot->kind == SLOT_PARAM || slot->kind == SLOT_GRAD ||
                       (slot->kind == SLOT_STATE && !rate_is_scalar(slot->rate));
        if (!pointer) continue;
        DType type = rate_is_element(slot->rate) ? v->storage[slot->index] : slot->dtype;
        int64_t length = view_length(d, slot->rate);
        int size = dtype_size(type);
        t->ptr[slot->index] =
            scene_memory(s, (size_t)length, (size_t)size, (int)((slot->index + i) % 3) * size);
        for (int64_t j = 0; j < length; j++) {
            double x = number_random(&scene_seed, false);
            elem_set(t->ptr[slot->index], type, j,
                     slot->kind == SLOT_STATE && slot->index % 2 ? fabs(x) : x);
        }
    }
    for (uint32_t k = 0; k < s->p->nvectors[t->body]; k++) {
        const PlanVector *pv = &s->p->vectors[t->body][k];
        int64_t length = pv->partials ? view_partials(d, pv->rate) : view_length(d, pv->rate);
        t->ptr[pv->index] = scene_memory(s, (size_t)length, 8, 0);
    }
    for (uint32_t e = first; e < n; e++)
        t->ptr[e] = scene_memory(s, (size_t)t->numel, 4, (int)(e % 3) * 4);
}

/* What a rule asks about names: some tensors say yes. */
static inline int scene_says(const Slot *slot, size_t i)
{
    return (i + slot->index) % 3 == 0;
}

static inline double scene_property(const Scene *s, const Slot *slot, size_t i)
{
    const ExecTensor *t = &s->x.tensors[i];
    /* Of the last two axes, whatever view its body has. */
    ViewDims last = view_dims(VIEW_FLAT, s->shapes[i].ndim, s->shapes[i].dim, 1);
    if (ir_asks_name(slot)) return scene_says(slot, i);
    if (strcmp(slot->name, "rows") == 0) return (double)last.rows;
    if (strcmp(slot->name, "cols") == 0) return (double)last.cols;
    if (strcmp(slot->name, "mats") == 0) return (double)last.mats;
    if (strcmp(slot->name, "ndim") == 0) return s->shapes[i].ndim;
    if (strcmp(slot->name, "first") == 0)
        return s->shapes[i].ndim ? (double)s->shapes[i].dim[0] : 1;
    if (strcmp(slot->name, "gbits") == 0) return 8 * dtype_size(t->storage[1]);
    if (strcmp(slot->name, "draw_lo") == 0) return 123456789.0 + (double)i;
    if (strcmp(slot->name, "draw_hi") == 0) return 4000000000.0;
    return (double)t->numel;
}

static inline void scene_scalars(Scene *s)
{
    for (uint32_t k = 0; k < s->m->nslots; k++) {
        const Slot *slot = &s->m->slots[k];
        if (!rate_is_scalar(slot->rate)) continue;
        double x = slot->kind == SLOT_HYPER ? slot->def : slot->init;
        if (slot->level == LEVEL_GLOBAL)
            s->x.global[slot->index] = slot->kind == SLOT_COUNT  ? 2
                                       : slot->kind == SLOT_PROP ? 4096 /* numel_all */
                                                                 : x;
        for (int g = 0; slot->level == LEVEL_GROUP && g < SCENE_GROUPS; g++)
            s->x.group[g][slot->index] = slot->kind == SLOT_HYPER ? x * (g ? 0.75 : 1) : x;
        for (size_t i = 0; slot->level == LEVEL_TENSOR && i < s->n; i++)
            s->x.tensors[i].block[slot->index] = slot->kind == SLOT_COUNT ? (double)(i % 3)
                                                 : slot->kind == SLOT_PROP
                                                     ? scene_property(s, slot, i)
                                                     : x;
    }
}

/* What the module's select says of a shape. */
static inline void scene_choose(const Scene *s, const SceneShape *shape, uint32_t *body, double *block)
{
    const IrModule *m = s->m;
    double *tensor = ARENA_ARRAY(s->a, double, s->p->block_size[LEVEL_TENSOR] + 1);
    ViewDims d = view_dims(VIEW_FLAT, shape->ndim, shape->dim, 1);
    int arm = ir_slot_find(m, SLOT_ARM, "arm"), size = ir_slot_find(m, SLOT_BLOCK, "block");
    const struct {
        const char *name;
        int64_t value;
    } props[] = {{"numel", d.numel}, {"ndim", shape->ndim}, {"rows", d.rows},
                 {"cols", d.cols},   {"mats", d.mats},      {"first", shape->ndim ? shape->dim[0] : 1}};
    if (!m->select) return;
    for (uint32_t k = 0; k < m->nslots; k++)
        if (ir_asks_name(&m->slots[k]))
            tensor[m->slots[k].index] = scene_says(&m->slots[k], (size_t)(shape - s->shapes));
    for (size_t k = 0; k < sizeof props / sizeof *props; k++) {
        int slot = ir_slot_find(m, SLOT_PROP, props[k].name);
        if (slot >= 0) tensor[m->slots[slot].index] = (double)props[k].value;
    }
    REQUIRE(select_eval(m, s->a, tensor), "out of memory");
    if (arm >= 0) *body = (uint32_t)tensor[m->slots[arm].index];
    if (size >= 0) *block = tensor[m->slots[size].index];
}

static inline Scene scene_new(Arena *a, const Plan *p, const Variant *const *variants,
                              const SceneShape *shapes, size_t n)
{
    Scene s = {.a = a, .p = p, .m = p->m, .variants = variants, .n = n, .shapes = shapes};
    s.dims = ARENA_ARRAY(a, ViewDims, n + 1);
    s.cls = ARENA_ARRAY(a, double *, n + 1);
    s.tensors = ARENA_ARRAY(a, DsTensorRow, n + 1);
    s.x.global = ARENA_ARRAY(a, double, p->block_size[LEVEL_GLOBAL] + 1);
    s.x.group = ARENA_ARRAY(a, double *, SCENE_GROUPS);
    s.x.ngroups = SCENE_GROUPS;
    s.x.tensors = ARENA_ARRAY(a, ExecTensor, n + 1);
    s.x.ntensors = n;
    uint32_t *by_name = ARENA_ARRAY(a, uint32_t, n + 1);
    for (int g = 0; g < SCENE_GROUPS; g++)
        s.x.group[g] = ARENA_ARRAY(a, double, p->block_size[LEVEL_GROUP] + 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t body = 0;
        double block = 1;
        scene_choose(&s, &shapes[i], &body, &block);
        ViewDims d =
            view_dims(s.m->bodies[body].view, shapes[i].ndim, shapes[i].dim, (int64_t)block);
        by_name[n - 1 - i] = (uint32_t)i;
        s.dims[i] = d;
        s.cls[i] = ARENA_ARRAY(a, double, p->block_size[LEVEL_CLASS] + 1);
        s.x.tensors[i] =
            (ExecTensor){.name = arena_printf(a, "t%02zu", n - 1 - i),
                         .numel = d.numel,
                         .rows = d.rows,
                         .cols = d.cols,
                         .mats = d.mats,
                         .group = (uint32_t)(i % 3 % SCENE_GROUPS),
                         .body = body,
                         .active = d.numel > 0,
                         .storage = variants[body]->storage,
                         .block = ARENA_ARRAY(a, double, p->block_size[LEVEL_TENSOR] + 1)};
        scene_pointers(&s, i);
        ExecTensor *t = &s.x.tensors[i];
        bool flat = d.view == VIEW_FLAT;
        s.tensors[i] = (DsTensorRow){{s.x.global, s.x.group[t->group], s.cls[i], t->block},
                                     t->ptr,
                                     scene_rows_of(&d),
                                     flat ? d.numel : d.cols,
                                     flat ? 1 : d.mats,
                                     flat ? 1 : d.tiles,
                                     d.packs};
    }
    s.x.by_name = by_name;
    scene_scalars(&s);
    return s;
}

/* ---- a step ---------------------------------------------------------------------------------- */

static inline bool scene_runs(const Scene *s, size_t i, uint32_t body)
{
    return s->x.tensors[i].active && s->x.tensors[i].body == body;
}

static inline void scene_program(const Scene *s, const ScalarProgram *sp, DsScalarFn fn)
{
    bool group[SCENE_GROUPS] = {false}, any = false;
    for (size_t i = 0; i < s->n; i++) {
        if (scene_runs(s, i, sp->body)) any = group[s->x.tensors[i].group] = true;
    }
    if (sp->level == LEVEL_GLOBAL && any) fn(s->x.global, NULL, NULL, NULL);
    for (uint32_t g = 0; sp->level == LEVEL_GROUP && g < SCENE_GROUPS; g++)
        if (group[g]) fn(s->x.global, s->x.group[g], NULL, NULL);
    for (size_t i = 0; sp->level >= LEVEL_CLASS && i < s->n; i++) {
        const ExecTensor *t = &s->x.tensors[i];
        if (scene_runs(s, i, sp->body))
            fn(s->x.global, s->x.group[t->group], s->cls[i],
               sp->level == LEVEL_TENSOR ? t->block : NULL);
    }
}

static inline void scene_vectors(const Scene *s, const VectorProgram *vp, DsVectorFn fn)
{
    for (size_t i = 0; i < s->n; i++) {
        int64_t length = view_length(&s->dims[i], vp->rate);
        for (int64_t at = 0; scene_runs(s, i, vp->body) && at < length; at += SCENE_PIECE) {
            DsRow row = {.tensor = (int64_t)i,
                         .first = at,
                         .count = length - at < SCENE_PIECE ? length - at : SCENE_PIECE};
            DsArgs args = {&row, s->tensors, NULL, 0};
            fn(&args, 0, 1);
        }
    }
}

static inline double *scene_place(const Scene *s, size_t i, Place at)
{
    const ExecTensor *t = &s->x.tensors[i];
    double *blocks[] = {s->x.global, s->x.group[t->group], s->cls[i], t->block};
    return blocks[at.level] + at.index;
}

typedef struct SceneRows {
    DsRow *rows;
    size_t n, *first; /* of each tensor; those of a tensor not of this body: none */
    double *partial;
    int64_t npartial;
} SceneRows;

static inline SceneRows scene_rows(const Scene *s)
{
    SceneRows r = {.first = ARENA_ARRAY(s->a, size_t, s->n + 1)};
    for (size_t i = 0; i < s->n; i++) r.n += view_rows(&s->dims[i], 0, NULL);
    r.rows = ARENA_ARRAY(s->a, DsRow, r.n + 1);
    r.n = 0;
    for (size_t i = 0; i < s->n; i++) {
        r.first[i] = r.n;
        if (s->x.tensors[i].active) r.n += view_rows(&s->dims[i], (int64_t)i, r.rows + r.n);
    }
    r.first[s->n] = r.n;
    r.npartial = (int64_t)s->p->nreduces + 1;
    r.partial = ARENA_ARRAY(s->a, double, r.n *(size_t)r.npartial + 1);
    for (size_t k = 0; k < r.n * (size_t)r.npartial; k++) r.partial[k] = NAN;
    return r;
}

static inline double scene_value(const Scene *s, size_t i, uint32_t vec, DType type, Rate rate,
                                 Rate at_rate, Place place, int64_t at)
{
    const ViewDims *d = &s->dims[i];
    if (vec == UINT32_MAX) return *scene_place(s, i, place);
    const void *x = s->x.tensors[i].ptr[vec];
    if (rate == RATE_MATRIX && at_rate != RATE_MATRIX)
        at = at_rate & AXIS_COL ? at / d->cols : at / d->rows;
    return type == DT_BOOL  ? ((const unsigned char *)x)[at]
           : type == DT_F32 ? (double)((const float *)x)[at]
                            : ((const double *)x)[at];
}

/* Values [from, from + n) of a reduced vector. */
static inline double scene_array(const Scene *s, const PlanReduce *r, ReduceOp op, size_t i,
                                 int64_t from, int64_t n)
{
    double *x = ARENA_ARRAY(s->a, double, n + 1), *y = ARENA_ARRAY(s->a, double, n + 1);
    bool two = reduce_info[op].arity == 2;
    for (int64_t k = 0; k < n; k++) {
        x[k] = scene_value(s, i, r->vec, r->vec_type, r->vec_rate, r->arg_rate, r->arg, from + k);
        if (two)
            y[k] = scene_value(s, i, r->vec2, r->vec2_type, r->vec2_rate, r->arg_rate, r->arg2,
                               from + k);
    }
    return reduce_vector(op, x, two ? y : NULL, (size_t)n, NULL);
}

static inline void scene_join_vector(const Scene *s, const SceneRows *w, const PlanReduce *r,
                                     ReduceOp op, size_t i, bool in)
{
    const ViewDims *d = &s->dims[i];
    double *b = s->x.tensors[i].ptr[r->result_vec];
    int64_t n = view_length(d, r->rate);
    for (int64_t k = 0; k < n; k++) {
        if (!in)
            b[k] = reduce_identity(op);
        else if (r->from == FROM_VECTOR)
            b[k] = scene_array(s, r, op, i, k * (view_length(d, r->arg_rate) / n),
                               view_length(d, r->arg_rate) / n);
        else if (r->rate == RATE_MATRIX && d->packs == 1)
            b[k] = reduce_tree(op,
                               w->partial +
                                   ((int64_t)w->first[i] + k * d->tiles * d->strips) * w->npartial +
                                   r->partial,
                               (size_t)(d->tiles * d->strips), (size_t)w->npartial, NULL);
        else if (r->rate != RATE_MATRIX && !(r->rate & AXIS_COL))
            b[k] = reduce_tree(op, b + k, (size_t)d->strips, (size_t)n, NULL);
    }
    if (!(r->rate & AXIS_COL) || !in) return;
    double *out = ARENA_ARRAY(s->a, double, n + 1); /* results are fewer and may lie over parts */
    for (int64_t k = 0; k < n; k++)
        out[k] = reduce_tree(op, b + k / d->cols * d->tiles * d->cols + k % d->cols,
                             (size_t)d->tiles, (size_t)d->cols, NULL);
    memcpy(b, out, (size_t)n * sizeof *b);
}

static inline double scene_join_scalar(const Scene *s, const SceneRows *w, const PlanReduce *r,
                                       ReduceOp op, size_t i)
{
    if (r->from == FROM_VECTOR)
        return scene_array(s, r, op, i, 0, view_length(&s->dims[i], r->arg_rate));
    if (r->from == FROM_ELEMENTS)
        return reduce_tree(op, w->partial + (int64_t)w->first[i] * w->npartial + r->partial,
                           w->first[i + 1] - w->first[i], (size_t)w->npartial, NULL);
    double x = *scene_place(s, i, r->arg),
           y = r->arg2.level == LEVEL_NONE ? 0 : *scene_place(s, i, r->arg2);
    if (r->rate != RATE_TENSOR) return x; /* gathered below */
    int64_t n = s->x.tensors[i].numel;    /* once per element */
    double *xs = ARENA_ARRAY(s->a, double, n + 1), *ys = ARENA_ARRAY(s->a, double, n + 1);
    for (int64_t k = 0; k < n; k++) xs[k] = x, ys[k] = y;
    return reduce_vector(op, xs, ys, (size_t)n, NULL);
}

/* Reductions [k, end) of one slot. */
static inline void scene_join(const Scene *s, const SceneRows *w, uint32_t k, uint32_t end)
{
    const PlanReduce *first = &s->p->reduces[k];
    ReduceOp op = (ReduceOp)(s->m->bodies[first->body].ins[first->ins].op - IR_RED);
    double *x = ARENA_ARRAY(s->a, double, s->n + 1), *y = ARENA_ARRAY(s->a, double, s->n + 1);
    unsigned char *present = ARENA_ARRAY(s->a, unsigned char, s->n + 1);
    bool two = false;
    for (; k < end; k++) {
        const PlanReduce *r = &s->p->reduces[k];
        for (size_t rank = 0; rank < s->n; rank++) {
            size_t i = s->x.by_name[rank];
            if (!scene_runs(s, i, r->body)) continue;
            bool in = r->guard.level == LEVEL_NONE || *scene_place(s, i, r->guard) != 0;
            if (!rate_is_scalar(r->rate)) {
                scene_join_vector(s, w, r, op, i, in);
                continue;
            }
            x[rank] = in ? scene_join_scalar(s, w, r, op, i) : reduce_identity(op);
            present[rank] = in;
            if (r->rate == RATE_TENSOR) *scene_place(s, i, r->result) = x[rank];
            if (r->from == FROM_SCALARS && r->arg2.level != LEVEL_NONE) {
                y[rank] = *scene_place(s, i, r->arg2);
                two = true;
            }
        }
    }
    for (int g = 0; !(first->rate & AXIS_TENSOR) && g < SCENE_GROUPS; g++) {
        double *values = ARENA_ARRAY(s->a, double, s->n + 1),
               *seconds = ARENA_ARRAY(s->a, double, s->n + 1);
        unsigned char *here = ARENA_ARRAY(s->a, unsigned char, s->n + 1);
        size_t n = 0;
        for (size_t rank = 0; rank < s->n; rank++) {
            const ExecTensor *t = &s->x.tensors[s->x.by_name[rank]];
            bool mine = first->rate == RATE_GLOBAL || t->group == (uint32_t)g;
            if (!mine || t->numel == 0) continue;
            bool feeds = false;
            for (uint32_t q = 0; q < s->p->nreduces; q++) {
                const PlanReduce *r = &s->p->reduces[q];
                feeds |=
                    r->body == t->body && s->m->bodies[r->body].ins[r->ins].lit.slot ==
                                              s->m->bodies[first->body].ins[first->ins].lit.slot;
            }
            if (!feeds) continue;
            values[n] = x[rank];
            seconds[n] = y[rank];
            here[n++] = present[rank];
        }
        double result = first->from == FROM_SCALARS
                            ? reduce_vector(op, values, two ? seconds : NULL, n, here)
                            : reduce_tree(op, values, n, 1, here);
        double *block = first->rate == RATE_GLOBAL ? s->x.global : s->x.group[g];
        block[first->result.index] = result;
    }
}

static inline void scene_kernels(const Scene *s, const SceneCode *c, const SceneRows *w, int phase)
{
    DsArgs args = {w->rows, s->tensors, w->partial, w->npartial};
    for (uint32_t body = 0; body < s->m->nbodies; body++) {
        const Variant *v = s->variants[body];
        size_t size = c->kernels[body].scratch_bytes, behind = DS_CHUNK * sizeof(float);
        char *scratch = arena_alloc(s->a, size + behind + 64);
        memset(scratch, 0, size + behind + 64);
        scratch += 64 - (uintptr_t)scratch % 64;
        for (uint32_t k = 0; k < v->nkernels; k++) {
            if (v->kernels[k].phase != phase) continue;
            for (size_t i = s->n; i-- > 0;) { /* the later first, each in two pieces */
                size_t a = w->first[i], b = w->first[i + 1], half = (a + b) / 2;
                if (!scene_runs(s, i, body)) continue;
                c->kernels[body].kernels[k](&args, (int64_t)half, (int64_t)b, scratch);
                c->kernels[body].kernels[k](&args, (int64_t)a, (int64_t)half, scratch);
            }
        }
        size_t last = size + behind;
        while (last > size && scratch[last - 1] == 0) last--;
        CHECK(last == size, "%zu bytes behind %zu of scratch are written", last - size, size);
    }
}

static inline void scene_step(const Scene *s, const SceneCode *c)
{
    const Plan *p = s->p;
    for (uint32_t k = 0; k < s->m->nslots; k++) {
        const Slot *slot = &s->m->slots[k];
        for (size_t i = 0; i < s->n; i++)
            if (slot->kind == SLOT_COUNT && strcmp(slot->name, "t") == 0)
                s->cls[i][0] = s->x.tensors[i].block[slot->index];
    }
    SceneRows w = scene_rows(s);
    for (int phase = 0; phase <= p->nphases; phase++) {
        for (uint32_t k = 0; k < p->nprograms; k++)
            if (p->programs[k].phase == phase)
                scene_program(s, &p->programs[k], c->scalars.programs[k]);
        for (uint32_t k = 0; k < p->nvprograms; k++)
            if (p->vprograms[k].phase == phase)
                scene_vectors(s, &p->vprograms[k], c->scalars.vprograms[k]);
        scene_kernels(s, c, &w, phase);
        for (uint32_t k = 0, end; k < p->nreduces; k = end) {
            const PlanReduce *r = &p->reduces[k];
            uint32_t slot = s->m->bodies[r->body].ins[r->ins].lit.slot;
            for (end = k + 1; end < p->nreduces; end++) {
                const PlanReduce *q = &p->reduces[end];
                if (s->m->bodies[q->body].ins[q->ins].lit.slot != slot) break;
            }
            if (r->phase == phase) scene_join(s, &w, k, end);
        }
    }
    for (uint32_t k = 0; k < p->nvcommit; k++)
        scene_vectors(s, &p->vcommit[k], c->scalars.vcommit[k]);
    for (uint32_t k = 0; k < p->ncommit; k++) scene_program(s, &p->commit[k], c->scalars.commit[k]);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static inline bool scene_same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

static inline const char *scene_difference(const Scene *s, const Scene *v)
{
    for (uint32_t k = 0; k < s->m->nslots; k++) {
        const Slot *slot = &s->m->slots[k];
        if (slot->kind == SLOT_RESULT) continue;
        for (size_t i = 0; i < s->n; i++) {
            const ExecTensor *t = &s->x.tensors[i], *u = &v->x.tensors[i];
            if (rate_is_scalar(slot->rate)) {
                Place at = {slot->level, slot->index};
                double x = *scene_place(s, i, at), y = *scene_place(v, i, at);
                if (!scene_same(x, y))
                    return arena_printf(s->a, "%s of tensor %zu: %a, want %a", slot->name, i, x, y);
                continue;
            }
            DType type = rate_is_element(slot->rate) ? t->storage[slot->index] : slot->dtype;
            for (int64_t j = 0; j < view_length(&s->dims[i], slot->rate); j++) {
                double x = elem_get(t->ptr[slot->index], type, j);
                double y = elem_get(u->ptr[slot->index], type, j);
                if (!scene_same(x, y))
                    return arena_printf(s->a,
                                        "%s[%lld] of tensor %zu (%lld x %lld x %lld): %a, want %a",
                                        slot->name, (long long)j, i, (long long)t->mats,
                                        (long long)t->rows, (long long)t->cols, x, y);
            }
        }
    }
    return NULL;
}
#endif
