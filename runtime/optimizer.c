/* optimizer.c - making an optimizer: a program meets tensors.
 *
 * Everything is checked first, then code is built, then memory is taken; what fails gives back all
 * of it. State lies slot by slot, each tensor's part aligned to 64 bytes, so that many small
 * tensors are one stream per state; scalar blocks likewise.
 *
 *     adamw, w [1000] bf16, b [10] f32  ->  two variants; state: m of w, m of b, v of w, v of b
 */
#include "internal.h"
#include <math.h>
#include <string.h>

/* ---- groups and slots ------------------------------------------------------------------------ */

static void make_groups(dsopt_optimizer *opt, const char **group_of)
{
    size_t cap = 0, n = 0;
    names_init(&opt->group_names, &opt->arena, opt->ntensors);
    for (size_t i = 0; i < opt->ntensors; i++) {
        bool added;
        opt->tensors[i].group = names_put(&opt->group_names, group_of[i], (uint32_t)n, &added);
        if (added) ARENA_PUSH(&opt->arena, opt->groups, n, cap, (OptGroup){.name = group_of[i]});
    }
    opt->ngroups = (uint32_t)n;
}

static void find_slots(dsopt_optimizer *opt)
{
    opt->t_slot = ir_slot_find(opt->m, SLOT_COUNT, "t");
    opt->numel_all_slot = ir_slot_find(opt->m, SLOT_PROP, "numel_all");
    opt->lr_slot = opt->skip_slot = -1;
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind == SLOT_HYPER && path_match(s->path, "lr") >= 2) opt->lr_slot = (int)i;
        if (s->kind == SLOT_SKIP) opt->skip_slot = (int)i;
    }
}

static bool is_element(const Slot *s)
{
    return s->level == LEVEL_NONE;
}

/* ---- tensors that have elements -------------------------------------------------------------- */

static bool name_before(const dsopt_optimizer *opt, uint32_t a, uint32_t b)
{
    return strcmp(opt->x.tensors[a].name, opt->x.tensors[b].name) < 0;
}

/* Heap sort: in place, and never worse than n log n. */
static void sort_ranks(dsopt_optimizer *opt)
{
    uint32_t *v = opt->by_rank;
    for (size_t n = opt->x.ntensors, root = n / 2; n > 1;) {
        if (root > 0) {
            root--;
        } else {
            uint32_t last = v[--n];
            v[n] = v[0];
            v[0] = last;
        }
        for (size_t i = root, child; (child = 2 * i + 1) < n; i = child) {
            if (child + 1 < n && name_before(opt, v[child], v[child + 1])) child++;
            if (!name_before(opt, v[i], v[child])) break;
            uint32_t swap = v[i];
            v[i] = v[child];
            v[child] = swap;
        }
    }
}

static void make_live(dsopt_optimizer *opt)
{
    size_t n = 0;
    for (size_t i = 0; i < opt->ntensors; i++)
        opt->tensors[i].live = opt->tensors[i].numel > 0 ? (int64_t)n++ : -1;
    opt->x.tensors = ARENA_ARRAY(&opt->arena, ExecTensor, n);
    opt->live = ARENA_ARRAY(&opt->arena, LiveTensor, n);
    opt->by_rank = ARENA_ARRAY(&opt->arena, uint32_t, n);
    opt->x.ntensors = n;
    for (size_t i = 0; i < opt->ntensors; i++) {
        const TensorInfo *t = &opt->tensors[i];
        if (t->live < 0) continue;
        opt->x.tensors[t->live] =
            (ExecTensor){.name = t->name, .numel = t->numel, .group = t->group};
        opt->live[t->live].info = (uint32_t)i;
        opt->by_rank[t->live] = (uint32_t)t->live;
    }
    sort_ranks(opt);
    for (uint32_t k = 0; k < n; k++) opt->live[opt->by_rank[k]].rank = k;
    opt->x.by_name = opt->by_rank;
}

/* ---- variants -------------------------------------------------------------------------------- */

static dsopt_status check_storage(dsopt_optimizer *opt)
{
    for (size_t i = 0; i < opt->ntensors; i++) {
        const TensorInfo *t = &opt->tensors[i];
        const DType said[2] = {opt->pm->storage[0], opt->pm->storage[1]},
                    is[2] = {t->dtype, t->grad_dtype};
        for (int k = 0; k < 2; k++)
            if (said[k] != DT_COUNT && said[k] != is[k])
                return error_set(
                    opt->ctx, DSOPT_INVALID_TENSOR,
                    "tensor '%s': its %s is %s, but the program was loaded with storage %c=%s",
                    t->name, k ? "gradient" : "parameter", dtype_name(is[k]), "pg"[k],
                    dtype_name(said[k]));
    }
    return DSOPT_OK;
}

static void make_variants(dsopt_optimizer *opt)
{
    size_t cap = 0, bytes = opt->nelem * sizeof(DType);
    DType *storage = ARENA_ARRAY(&opt->arena, DType, opt->nelem);
    memcpy(storage, opt->pm->storage, bytes);
    for (size_t i = 0; i < opt->x.ntensors; i++) {
        const TensorInfo *t = &opt->tensors[opt->live[i].info];
        storage[0] = t->dtype;
        storage[1] = t->grad_dtype;
        size_t v = 0;
        while (v < opt->nvariants && memcmp(opt->variants[v].storage, storage, bytes) != 0) v++;
        if (v == opt->nvariants) {
            OptVariant ov = {.storage = ARENA_ARRAY(&opt->arena, DType, opt->nelem)};
            memcpy(ov.storage, storage, bytes);
            ARENA_PUSH(&opt->arena, opt->variants, opt->nvariants, cap, ov);
        }
        opt->live[i].variant = (uint32_t)v;
    }
    for (size_t i = 0; i < opt->x.ntensors; i++)
        opt->x.tensors[i].storage = opt->variants[opt->live[i].variant].storage;
}

static dsopt_status build_variants(dsopt_optimizer *opt)
{
    opt->nptr = opt->nelem;
    if (!opt->plan) return DSOPT_OK;
    dsopt_status st = program_build_scalars(opt->ctx, opt->prog, opt->pm, &opt->programs);
    size_t scratch = 64;
    for (size_t i = 0; i < opt->nvariants && st == DSOPT_OK; i++) {
        OptVariant *ov = &opt->variants[i];
        st = program_build(opt->ctx, opt->prog, opt->pm, 0, ov->storage, &ov->built);
        if (st != DSOPT_OK) break;
        ov->v = ov->built->variant;
        ov->kernel_of_phase = ARENA_ARRAY(&opt->arena, int, opt->plan->nphases + 1);
        for (int k = 0; k <= opt->plan->nphases; k++) ov->kernel_of_phase[k] = -1;
        for (uint32_t k = 0; k < ov->v->nkernels; k++)
            ov->kernel_of_phase[ov->v->kernels[k].phase] = (int)k;
        if (ov->built->code.scratch_bytes > scratch) scratch = ov->built->code.scratch_bytes;
        if (opt->nelem + ov->v->ntemps > opt->nptr) opt->nptr = opt->nelem + ov->v->ntemps;
    }
    if (st == DSOPT_OK && !pool_reserve(opt->ctx->pool, scratch)) st = error_oom(opt->ctx);
    return st;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void init_block(const dsopt_optimizer *opt, double *block, Level level)
{
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->level == level && (s->kind == SLOT_STATE || s->kind == SLOT_COUNT))
            block[s->index] = s->init;
        if (s->level == level && s->kind == SLOT_EXPORT) block[s->index] = NAN;
    }
}

static void set_prop(const dsopt_optimizer *opt, double *block, const char *name, double value)
{
    int i = ir_slot_find(opt->m, SLOT_PROP, name);
    if (i >= 0 && opt->m->slots[i].level == LEVEL_TENSOR) block[opt->m->slots[i].index] = value;
}

static dsopt_status make_blocks(dsopt_optimizer *opt)
{
    for (int l = 0; l < LEVEL_COUNT; l++)
        opt->block_size[l] = opt->plan ? opt->plan->block_size[l] : opt->m->nlevel[l];
    const size_t *size = opt->block_size;
    size_t doubles =
        size[LEVEL_GLOBAL] + opt->ngroups * size[LEVEL_GROUP] + opt->ntensors * size[LEVEL_TENSOR];
    if (!region_alloc(&opt->ctx->alloc, (doubles + 1) * sizeof(double), &opt->blocks))
        return error_oom(opt->ctx);
    double *next = opt->blocks.base;
    opt->x.global = next;
    next += size[LEVEL_GLOBAL];
    init_block(opt, opt->x.global, LEVEL_GLOBAL);
    opt->x.ngroups = opt->ngroups;
    opt->x.group = ARENA_ARRAY(&opt->arena, double *, opt->ngroups);
    for (uint32_t g = 0; g < opt->ngroups; g++, next += size[LEVEL_GROUP]) {
        opt->groups[g].block = opt->x.group[g] = next;
        init_block(opt, next, LEVEL_GROUP);
    }
    for (size_t i = 0; i < opt->ntensors; i++, next += size[LEVEL_TENSOR]) {
        TensorInfo *t = &opt->tensors[i];
        t->block = next;
        init_block(opt, next, LEVEL_TENSOR);
        set_prop(opt, next, "numel", (double)t->numel);
        set_prop(opt, next, "ndim", t->ndim);
        set_prop(opt, next, "rows", (double)t->rows);
        set_prop(opt, next, "cols", (double)t->cols);
        set_prop(opt, next, "gbits", dtype_size(t->grad_dtype) * 8);
        if (t->live >= 0) opt->x.tensors[t->live].block = next;
    }
    return DSOPT_OK;
}

/* ---- state ----------------------------------------------------------------------------------- */

static bool add_bytes(size_t *total, int64_t numel, int size)
{
    size_t bytes;
    if (__builtin_mul_overflow((size_t)numel, (size_t)size, &bytes) || bytes > SIZE_MAX / 4)
        return false;
    return !__builtin_add_overflow(*total, (bytes + 63) & ~(size_t)63, total);
}

/* Arrays a power of two apart meet in the same sets of every cache and the same banks of the memory:
 * AdamW over 2^26 elements took 2.1 ns for each where 60 M took 0.67. So no state begins where its
 * neighbour, or a parameter that begins with a page, would have it. */
enum { STAGGER = 5 * 4096 + 5 * 64 };

/* Hands out the parts of elements [first, last) of every tensor's pointers from `base`; base NULL:
 * only counts. */
static bool place_elements(dsopt_optimizer *opt, uint32_t first, uint32_t last, char *base,
                           size_t *total)
{
    *total = 0;
    for (uint32_t e = first; e < last; e++) {
        *total += STAGGER;
        for (size_t i = 0; i < opt->x.ntensors; i++) {
            const ExecTensor *t = &opt->x.tensors[i];
            if (e >= opt->nelem && e - opt->nelem >= opt->variants[opt->live[i].variant].v->ntemps)
                continue;
            if (base) t->ptr[e] = base + *total;
            if (!add_bytes(total, t->numel, dtype_size(e < opt->nelem ? t->storage[e] : DT_F32)))
                return false;
        }
    }
    return true;
}

static bool alloc_elements(dsopt_optimizer *opt, uint32_t first, uint32_t last, Region *region)
{
    size_t total;
    return place_elements(opt, first, last, NULL, &total) &&
           region_alloc(&opt->ctx->alloc, total, region) &&
           place_elements(opt, first, last, region->base, &total);
}

static dsopt_status make_state(dsopt_optimizer *opt)
{
    void **ptr = ARENA_ARRAY(&opt->arena, void *, opt->x.ntensors * opt->nptr);
    for (size_t i = 0; i < opt->x.ntensors; i++) {
        const TensorInfo *t = &opt->tensors[opt->live[i].info];
        opt->x.tensors[i].ptr = ptr + i * opt->nptr;
        opt->x.tensors[i].ptr[0] = t->param;
        opt->x.tensors[i].ptr[1] = (void *)t->grad;
    }
    if (!alloc_elements(opt, 2, opt->nelem, &opt->state) ||
        !alloc_elements(opt, opt->nelem, opt->nptr, &opt->temps))
        return error_oom(opt->ctx);
    for (uint32_t k = 0; k < opt->m->nslots; k++) {
        const Slot *s = &opt->m->slots[k];
        if (s->kind != SLOT_STATE || !is_element(s) || s->init == 0) continue;
        for (size_t i = 0; i < opt->x.ntensors; i++) {
            const ExecTensor *t = &opt->x.tensors[i];
            state_fill(t->ptr[s->index], t->storage[s->index], t->numel, s->init);
        }
    }
    return DSOPT_OK;
}

static void make_tensor_rows(dsopt_optimizer *opt)
{
    if (!opt->plan) return;
    for (size_t i = 0; i < opt->x.ntensors; i++) {
        const ExecTensor *t = &opt->x.tensors[i];
        opt->tensor_rows[i] =
            (DsTensorRow){.u = {opt->x.global, opt->x.group[t->group], NULL, t->block},
                          .ptr = t->ptr,
                          .rows = 1,
                          .cols = t->numel,
                          .mats = 1,
                          .tiles = 1};
    }
}

/* ---- create and destroy ---------------------------------------------------------------------- */

typedef struct Create {
    dsopt_optimizer *opt;
    const dsopt_tensor *given;
    size_t n;
} Create;

static bool has_narrow_gradients(const dsopt_optimizer *opt)
{
    for (size_t i = 0; i < opt->ntensors; i++)
        if (dtype_size(opt->tensors[i].grad_dtype) == 2) return true;
    return false;
}

static dsopt_status bind_program(dsopt_optimizer *opt)
{
    const Backend *backend = opt->ctx->backend;
    if (opt->prog->compute_f64 && backend->build_variant)
        return error_set(opt->ctx, DSOPT_NOT_SUPPORTED,
                         "'%s' was compiled with compute \"f64\", which runs on backend \"interp\" "
                         "only; this context has \"%s\"",
                         opt->prog->name, backend->name);
    dsopt_status st = program_module(opt->ctx, opt->prog, has_narrow_gradients(opt), &opt->pm);
    if (st != DSOPT_OK) return st;
    opt->m = opt->pm->m;
    opt->nelem = opt->m->nelem;
    opt->plan = backend->build_variant ? opt->pm->plan : NULL;
    opt->exec = opt->plan ? exec_plan : exec_interp;
    return check_storage(opt);
}

static dsopt_status create_body(void *arg)
{
    const Create *c = arg;
    dsopt_optimizer *opt = c->opt;
    const char **group_of;
    dsopt_status st = tensors_validate(opt, c->given, c->n, opt->prog->compute_f64, &group_of);
    if (st == DSOPT_OK) st = bind_program(opt);
    if (st != DSOPT_OK) return st;
    make_groups(opt, group_of);
    find_slots(opt);
    make_live(opt);
    make_variants(opt);
    st = build_variants(opt);
    if (st == DSOPT_OK) st = make_blocks(opt);
    if (st == DSOPT_OK) st = make_state(opt);
    if (st == DSOPT_OK) st = tables_alloc(opt);
    if (st != DSOPT_OK) return st;
    make_tensor_rows(opt);
    hyper_init(opt);
    state_names(opt);
    return DSOPT_OK;
}

static void optimizer_free(dsopt_optimizer *opt)
{
    const Allocator *a = &opt->ctx->alloc;
    region_free(a, &opt->state);
    region_free(a, &opt->temps);
    region_free(a, &opt->blocks);
    region_free(a, &opt->tables);
    arena_free(&opt->arena);
    dsopt_program_release(opt->prog);
    mem_free(a, opt);
}

dsopt_status dsopt_optimizer_create(dsopt_context *ctx, dsopt_program *prog,
                                    const dsopt_tensor *tensors, size_t ntensors,
                                    dsopt_optimizer **out)
{
    if (out) *out = NULL;
    if (!ctx) return DSOPT_INVALID_ARGUMENT;
    if (!out || !prog || (!tensors && ntensors))
        return error_set(ctx, DSOPT_INVALID_ARGUMENT, "dsopt_optimizer_create: %s is NULL",
                         !out   ? "out"
                         : prog ? "tensors"
                                : "prog");
    if (ntensors >= UINT32_MAX)
        return error_set(ctx, DSOPT_INVALID_ARGUMENT,
                         "%zu tensors are more than an optimizer takes", ntensors);
    HOST_HERE;
    dsopt_optimizer *opt = mem_realloc(&ctx->alloc, NULL, sizeof *opt);
    if (!opt) return error_oom(ctx);
    *opt = (dsopt_optimizer){.ctx = ctx, .prog = prog, .arena = {.alloc = &ctx->alloc}};
    opt->report = (dsopt_report){.size = sizeof opt->report,
                                 .loss_scale = 1,
                                 .divisor = 1,
                                 .grad_norm = NAN,
                                 .bad_tensor = -1,
                                 .bad_index = -1,
                                 .bad_rank = -1};
    dsopt_program_retain(prog);
    Create c = {.opt = opt, .given = tensors, .n = ntensors};
    dsopt_status st = arena_try(ctx, &opt->arena, create_body, &c);
    if (st != DSOPT_OK) {
        optimizer_free(opt);
        return st;
    }
    *out = opt;
    return DSOPT_OK;
}

void dsopt_optimizer_destroy(dsopt_optimizer *opt)
{
    if (!opt) return;
    if (opt->micro > 0 && !opt->poison)
        log_line(opt->ctx, DSOPT_LOG_WARNING,
                 "optimizer '%s' is destroyed with gradients that no step has used",
                 opt->prog->name);
    optimizer_free(opt);
}

/* ---- tensors by number and name -------------------------------------------------------------- */

size_t dsopt_tensor_count(const dsopt_optimizer *opt)
{
    return opt ? opt->ntensors : 0;
}

const char *dsopt_tensor_name(const dsopt_optimizer *opt, size_t i)
{
    return opt && i < opt->ntensors ? opt->tensors[i].name : NULL;
}

dsopt_status dsopt_tensor_find(dsopt_optimizer *opt, const char *name, size_t *i)
{
    OPT_CHECK(opt);
    int64_t at = name && i ? names_get(&opt->tensor_names, name) : -1;
    if (!name || !i)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_tensor_find: %s is NULL",
                         name ? "i" : "name");
    if (at < 0)
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "there is no tensor named '%s'", name);
    *i = (size_t)at;
    return DSOPT_OK;
}
