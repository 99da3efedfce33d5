/* place.c - where an optimizer's numbers live: blocks of scalars, states, temporaries; and which
 * body a tensor runs, on which its states depend.
 *
 * Requires modules, groups and live tensors to be in place (optimizer.c). State lies slot by slot,
 * each tensor's part aligned to 64 bytes, so that many small tensors are one stream per state. A
 * tensor has the states that its bodies load or store, and no others. Temporaries of entry points
 * share their memory: one runs at a time.
 *
 *     adafactor, w [40, 30] and b [10]  ->  row and column of w; v of b
 */
#include "internal.h"
#include <math.h>
#include <string.h>

/* ---- blocks ---------------------------------------------------------------------------------- */

static void init_block(const dsopt_optimizer *opt, double *block, Level level)
{
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->level == level && (s->kind == SLOT_STATE || s->kind == SLOT_COUNT))
            block[s->index] = s->init;
        if (s->level == level && s->kind == SLOT_INPUT) block[s->index] = NAN;
    }
}

static void set_property(const dsopt_optimizer *opt, double *block, const char *name, double value)
{
    int i = ir_slot_find(opt->m, SLOT_PROP, name);
    if (i >= 0 && opt->m->slots[i].level == LEVEL_TENSOR) block[opt->m->slots[i].index] = value;
}

/* Rows, columns and matrices of the last two axes, whatever the body sees. */
static void set_dims(const dsopt_optimizer *opt, const TensorInfo *t)
{
    ViewDims d = view_dims(VIEW_FLAT, t->ndim, t->shape, 0);
    set_property(opt, t->block, "rows", (double)d.rows);
    set_property(opt, t->block, "cols", (double)d.cols);
    set_property(opt, t->block, "mats", (double)d.mats);
}

/* What the rule asks about names. False: out of memory (the frontend has seen the patterns). */
static bool set_names(const dsopt_optimizer *opt, const TensorInfo *t)
{
    char why[128];
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind != SLOT_PROP) continue;
        if (strcmp(s->name, "name_is") == 0) t->block[s->index] = strcmp(t->name, s->path) == 0;
        if (strcmp(s->name, "name_like") != 0) continue;
        int found = pattern_find(s->path, t->name, why);
        if (found < 0) return false;
        t->block[s->index] = found;
    }
    return true;
}

static bool init_tensor(const dsopt_optimizer *opt, const TensorInfo *t)
{
    init_block(opt, t->block, LEVEL_TENSOR);
    set_property(opt, t->block, "numel", (double)t->numel);
    set_property(opt, t->block, "ndim", t->ndim);
    set_property(opt, t->block, "first", t->ndim ? (double)t->shape[0] : 1);
    set_property(opt, t->block, "gbits", dtype_size(t->grad_dtype) * 8);
    set_dims(opt, t);
    return set_names(opt, t);
}

static size_t most_of(const dsopt_optimizer *opt, Level level)
{
    size_t most = 0;
    for (size_t k = 0; k < opt->nentries; k++) {
        const OptEntry *e = &opt->entries[k];
        size_t n = e->plan ? e->plan->block_size[level] : e->m->nlevel[level];
        if (n > most) most = n;
    }
    return most;
}

dsopt_status make_blocks(dsopt_optimizer *opt)
{
    for (int l = 0; l < LEVEL_COUNT; l++) opt->block_size[l] = most_of(opt, (Level)l);
    const size_t *size = opt->block_size;
    size_t doubles =
        size[LEVEL_GLOBAL] + opt->ngroups * size[LEVEL_GROUP] + opt->ntensors * size[LEVEL_TENSOR];
    if (!region_alloc(&opt->ctx->alloc, (doubles + 1) * sizeof(double), &opt->blocks))
        return error_oom(opt->ctx);
    double *next = opt->blocks.base;
    opt->global = next;
    next += size[LEVEL_GLOBAL];
    init_block(opt, opt->global, LEVEL_GLOBAL);
    opt->group = ARENA_ARRAY(&opt->arena, double *, opt->ngroups);
    for (uint32_t g = 0; g < opt->ngroups; g++, next += size[LEVEL_GROUP]) {
        opt->groups[g].block = opt->group[g] = next;
        init_block(opt, next, LEVEL_GROUP);
    }
    for (size_t i = 0; i < opt->ntensors; i++, next += size[LEVEL_TENSOR]) {
        opt->tensors[i].block = next;
        if (!init_tensor(opt, &opt->tensors[i])) return error_oom(opt->ctx);
    }
    return DSOPT_OK;
}

/* ---- which body ------------------------------------------------------------------------------ */

static void mark_uses(const IrBody *b, uint8_t *uses)
{
    for (IrRef r = 0; r < b->n; r++)
        if (b->ins[r].op == IR_LOAD) uses[b->ins[r].lit.slot] = 1;
    for (uint32_t i = 0; i < b->nstores; i++) uses[b->stores[i].slot] = 1;
}

/* The tensor's kind: its bodies in all entry points. */
static uint32_t find_kind(dsopt_optimizer *opt, const uint32_t *bodies, size_t *cap)
{
    size_t bytes = opt->nentries * sizeof *bodies, n = opt->nkinds;
    for (uint32_t k = 0; k < opt->nkinds; k++)
        if (memcmp(opt->kinds[k].bodies, bodies, bytes) == 0) return k;
    TensorKind kind = {.bodies = ARENA_ARRAY(&opt->arena, uint32_t, opt->nentries),
                       .uses = ARENA_ARRAY(&opt->arena, uint8_t, IR_MAX_SLOTS)};
    memcpy(kind.bodies, bodies, bytes);
    for (size_t k = 0; k < opt->nentries; k++)
        mark_uses(&opt->entries[k].m->bodies[bodies[k]], kind.uses);
    ARENA_PUSH(&opt->arena, opt->kinds, n, *cap, kind);
    opt->nkinds = (uint32_t)n;
    return opt->nkinds - 1;
}

static double select_result(const OptEntry *e, const TensorInfo *t, SlotKind kind)
{
    for (uint32_t i = 0; i < e->m->nslots; i++)
        if (e->m->slots[i].kind == kind) return t->block[e->m->slots[i].index];
    return 0;
}

static dsopt_status choose_body(dsopt_optimizer *opt, OptEntry *e, const TensorInfo *t,
                                uint32_t *body)
{
    double arm = 0, block = 0;
    if (e->m->select) {
        if (!select_eval(e->m, &opt->arena, t->block)) return error_oom(opt->ctx);
        arm = select_result(e, t, SLOT_ARM);
        block = select_result(e, t, SLOT_BLOCK);
    }
    if (!(arm >= 0 && arm < e->m->nbodies))
        return error_set(opt->ctx, DSOPT_INTERNAL, "tensor '%s': '%s' has no body for its shape",
                         t->name, opt->prog->name);
    *body = (uint32_t)arm;
    View view = e->m->bodies[*body].view;
    if (t->live < 0) return DSOPT_OK;
    if (view == VIEW_BLOCK && !(block >= 1 && block == floor(block) && block <= 0x1p53))
        return error_set(opt->ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': '%s' would see it in blocks of %g elements: a whole number "
                         "from 1 is wanted",
                         t->name, opt->prog->name, block);
    ViewDims d = e->live[t->live].dims = view_dims(view, t->ndim, t->shape, (int64_t)block);
    ExecTensor *x = &e->x.tensors[t->live];
    x->body = *body;
    x->rows = d.rows;
    x->cols = d.cols;
    x->mats = d.mats;
    x->block = t->block;
    return DSOPT_OK;
}

dsopt_status choose_bodies(dsopt_optimizer *opt)
{
    size_t cap = 0;
    uint32_t *bodies = ARENA_ARRAY(&opt->arena, uint32_t, opt->nentries);
    for (size_t i = 0; i < opt->ntensors; i++) {
        TensorInfo *t = &opt->tensors[i];
        for (size_t k = 0; k < opt->nentries; k++) {
            dsopt_status st = choose_body(opt, &opt->entries[k], t, &bodies[k]);
            if (st != DSOPT_OK) return st;
        }
        t->kind = find_kind(opt, bodies, &cap);
    }
    for (size_t k = 0; k < opt->nentries; k++) {
        OptEntry *e = &opt->entries[k];
        e->x.global = opt->global;
        e->x.group = opt->group;
        e->x.ngroups = opt->ngroups;
    }
    return DSOPT_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool add_bytes(size_t *total, int64_t n, int size)
{
    size_t bytes;
    if (__builtin_mul_overflow((size_t)n, (size_t)size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    return !__builtin_add_overflow(*total, (bytes + 63) & ~(size_t)63, total);
}

/* Arrays a power of two apart meet in the same sets of every cache and the same banks of the
 * memory: AdamW over 2^26 elements took 2.1 ns for each where 60 M took 0.67. So no state begins
 * where its neighbour, or a parameter that begins with a page, would have it. */
enum { STAGGER = 5 * 4096 + 5 * 64 };

static bool body_uses(const IrBody *b, uint32_t slot)
{
    for (IrRef r = 0; r < b->n; r++)
        if (b->ins[r].op == IR_LOAD && b->ins[r].lit.slot == slot) return true;
    for (uint32_t i = 0; i < b->nstores; i++)
        if (b->stores[i].slot == slot) return true;
    return false;
}

const ViewDims *state_view(const dsopt_optimizer *opt, uint32_t live, const Slot *s)
{
    for (size_t k = 0; k < opt->nentries; k++) {
        const OptEntry *e = &opt->entries[k];
        if (body_uses(&e->m->bodies[e->x.tensors[live].body], (uint32_t)(s - opt->m->slots)))
            return &e->live[live].dims;
    }
    return NULL;
}

/* Values of a state of a live tensor. Where two bodies see vectors of different lengths: -1. */
static int64_t state_length(const dsopt_optimizer *opt, uint32_t live, uint32_t slot)
{
    const Slot *s = &opt->m->slots[slot];
    const TensorInfo *t = &opt->tensors[opt->entries[0].live[live].info];
    if (!opt->kinds[t->kind].uses[slot]) return 0;
    if (rate_is_element(s->rate)) return t->numel;
    int64_t length = view_length(state_view(opt, live, s), s->rate);
    for (size_t k = 1; k < opt->nentries; k++) {
        const OptEntry *e = &opt->entries[k];
        if (body_uses(&e->m->bodies[e->x.tensors[live].body], slot) &&
            view_length(&e->live[live].dims, s->rate) != length)
            return -1;
    }
    return length;
}

static dsopt_status place_failed(dsopt_optimizer *opt, uint32_t slot, uint32_t live)
{
    return error_set(opt->ctx, DSOPT_INVALID_TENSOR,
                     "tensor '%s': the entry points of '%s' see different shapes in state '%s'",
                     opt->entries[0].x.tensors[live].name, opt->prog->name,
                     opt->m->slots[slot].path);
}

/* Hands out the states of every live tensor from `base`; base NULL: only counts. */
static dsopt_status place_states(dsopt_optimizer *opt, char *base, size_t *total)
{
    *total = 0;
    for (uint32_t k = 0; k < opt->m->nslots; k++) {
        const Slot *s = &opt->m->slots[k];
        if (s->kind != SLOT_STATE || s->level != LEVEL_NONE) continue;
        *total += STAGGER;
        for (uint32_t i = 0; i < opt->nlive; i++) {
            const ExecTensor *t = &opt->entries[0].x.tensors[i];
            int64_t n = state_length(opt, i, k);
            if (n < 0) return place_failed(opt, k, i);
            for (size_t x = 0; n && base && x < opt->nentries; x++)
                opt->entries[x].x.tensors[i].ptr[s->index] = base + *total;
            if (base && s->init != 0) state_fill(base + *total, t->storage[s->index], n, s->init);
            if (!add_bytes(total, n, dtype_size(t->storage[s->index]))) return error_oom(opt->ctx);
        }
    }
    return DSOPT_OK;
}

/* Bytes of one temporary of a tensor; 0: it has none of this number. */
static int64_t temp_values(const OptEntry *e, uint32_t live, uint32_t ptr, int *size)
{
    uint32_t body = e->x.tensors[live].body, nvectors = vectors_of(e, body),
             number = ptr - e->m->nelem;
    const ViewDims *d = &e->live[live].dims;
    *size = dtype_size(DT_F32);
    if (number >= nvectors)
        return number - nvectors < e->variants[e->live[live].variant].v->ntemps ? d->numel : 0;
    const PlanVector *v = &e->plan->vectors[body][number];
    *size = v->partials ? (int)sizeof(double) : dtype_size(v->dtype);
    return v->partials ? view_partials(d, v->rate) : view_length(d, v->rate);
}

static bool place_temps(const OptEntry *e, char *base, size_t *total)
{
    *total = 0;
    for (uint32_t k = e->m->nelem; k < e->nptr; k++) {
        *total += STAGGER;
        for (uint32_t i = 0; i < e->x.ntensors; i++) {
            int size;
            int64_t n = temp_values(e, i, k, &size);
            if (n && base) e->x.tensors[i].ptr[k] = base + *total;
            if (!add_bytes(total, n, size)) return false;
        }
    }
    return true;
}

static dsopt_status make_temps(dsopt_optimizer *opt)
{
    size_t most = 0, total;
    for (size_t k = 0; k < opt->nentries; k++) {
        if (!place_temps(&opt->entries[k], NULL, &total)) return error_oom(opt->ctx);
        if (total > most) most = total;
    }
    if (!region_alloc(&opt->ctx->alloc, most, &opt->temps)) return error_oom(opt->ctx);
    for (size_t k = 0; k < opt->nentries; k++)
        place_temps(&opt->entries[k], opt->temps.base, &total);
    return DSOPT_OK;
}

static void make_pointers(dsopt_optimizer *opt, OptEntry *e)
{
    void **ptr = ARENA_ARRAY(&opt->arena, void *, (size_t)opt->nlive * e->nptr);
    for (uint32_t i = 0; i < opt->nlive; i++) {
        const TensorInfo *t = &opt->tensors[e->live[i].info];
        e->x.tensors[i].ptr = ptr + (size_t)i * e->nptr;
        e->x.tensors[i].ptr[0] = t->param;
        e->x.tensors[i].ptr[1] = (void *)t->grad;
    }
}

dsopt_status make_state(dsopt_optimizer *opt)
{
    size_t total;
    for (size_t k = 0; k < opt->nentries; k++) make_pointers(opt, &opt->entries[k]);
    dsopt_status st = place_states(opt, NULL, &total);
    if (st != DSOPT_OK) return st;
    if (!region_alloc(&opt->ctx->alloc, total, &opt->state)) return error_oom(opt->ctx);
    st = place_states(opt, opt->state.base, &total);
    return st == DSOPT_OK && opt->entries[0].plan ? make_temps(opt) : st;
}
