/* optimizer.c - making an optimizer: a program meets tensors.
 *
 * Everything is checked first, then code is built, then memory is taken (place.c); what fails gives
 * back all of it.
 *
 *     adamw, w [1000] bf16, b [10] f32  ->  two variants; state: m of w, m of b, v of w, v of b
 */
#include "internal.h"
#include <math.h>
#include <string.h>

/* ---- order ----------------------------------------------------------------------------------- */

static bool name_before(const dsopt_optimizer *opt, uint32_t a, uint32_t b)
{
    const ExecTensor *t = opt->entries[0].x.tensors;
    return strcmp(t[a].name, t[b].name) < 0;
}

static bool group_before(const dsopt_optimizer *opt, uint32_t a, uint32_t b)
{
    return strcmp(opt->groups[a].name, opt->groups[b].name) < 0;
}

/* Heap sort: in place, and never worse than n log n. */
static void sort_by(const dsopt_optimizer *opt, uint32_t *v, size_t count,
                    bool (*before)(const dsopt_optimizer *, uint32_t, uint32_t))
{
    for (size_t n = count, root = n / 2; n > 1;) {
        if (root > 0) {
            root--;
        } else {
            uint32_t last = v[--n];
            v[n] = v[0];
            v[0] = last;
        }
        for (size_t i = root, child; (child = 2 * i + 1) < n; i = child) {
            if (child + 1 < n && before(opt, v[child], v[child + 1])) child++;
            if (!before(opt, v[i], v[child])) break;
            uint32_t swap = v[i];
            v[i] = v[child];
            v[child] = swap;
        }
    }
}

/* ---- groups and slots ------------------------------------------------------------------------ */

/* Groups are numbered in byte order of their names: reductions over them do not depend on the order
 * in which tensors are given. */
static void make_groups(dsopt_optimizer *opt, const char **group_of)
{
    size_t cap = 0, n = 0;
    NameMap seen;
    names_init(&seen, &opt->arena, opt->ntensors);
    names_init(&opt->group_names, &opt->arena, opt->ntensors);
    for (size_t i = 0; i < opt->ntensors; i++) {
        bool added;
        names_put(&seen, group_of[i], 0, &added);
        if (added) ARENA_PUSH(&opt->arena, opt->groups, n, cap, (OptGroup){.name = group_of[i]});
    }
    opt->ngroups = (uint32_t)n;
    uint32_t *order = ARENA_ARRAY(&opt->arena, uint32_t, n);
    OptGroup *sorted = ARENA_ARRAY(&opt->arena, OptGroup, n);
    for (uint32_t g = 0; g < n; g++) order[g] = g;
    sort_by(opt, order, n, group_before);
    for (uint32_t g = 0; g < n; g++) {
        bool added;
        sorted[g] = opt->groups[order[g]];
        names_put(&opt->group_names, sorted[g].name, g, &added);
    }
    opt->groups = sorted;
    for (size_t i = 0; i < opt->ntensors; i++)
        opt->tensors[i].group = (uint32_t)names_get(&opt->group_names, group_of[i]);
}

static void find_slots(dsopt_optimizer *opt)
{
    opt->t_slot = ir_slot_find(opt->m, SLOT_COUNT, "t");
    opt->numel_all_slot = ir_slot_find(opt->m, SLOT_PROP, "numel_all");
    opt->lr_slot = -1;
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind == SLOT_HYPER && path_match(s->path, "lr") >= 2) opt->lr_slot = (int)i;
    }
}

/* ---- tensors that have elements -------------------------------------------------------------- */

static uint64_t hash_name(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return h;
}

/* In order of names, whole and group by group. */
static void make_orders(dsopt_optimizer *opt)
{
    uint32_t n = opt->nlive;
    opt->by_rank = ARENA_ARRAY(&opt->arena, uint32_t, n);
    opt->by_group = ARENA_ARRAY(&opt->arena, uint32_t, n);
    opt->group_begin = ARENA_ARRAY(&opt->arena, uint32_t, opt->ngroups + 1);
    for (uint32_t i = 0; i < n; i++) opt->by_rank[i] = i;
    sort_by(opt, opt->by_rank, n, name_before);
    const ExecTensor *t = opt->entries[0].x.tensors;
    for (uint32_t i = 0; i < n; i++) opt->group_begin[t[i].group + 1]++;
    for (uint32_t g = 0; g < opt->ngroups; g++) opt->group_begin[g + 1] += opt->group_begin[g];
    uint32_t *next = ARENA_ARRAY(&opt->arena, uint32_t, opt->ngroups);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = opt->by_rank[k], g = t[i].group;
        opt->by_group[opt->group_begin[g] + next[g]++] = i;
    }
}

static void make_live(dsopt_optimizer *opt)
{
    opt->nlive = 0;
    for (size_t i = 0; i < opt->ntensors; i++) {
        TensorInfo *t = &opt->tensors[i];
        t->live = t->numel > 0 ? (int64_t)opt->nlive++ : -1;
        t->name_hash = hash_name(t->name);
    }
    for (size_t k = 0; k < opt->nentries; k++) {
        OptEntry *e = &opt->entries[k];
        e->x.tensors = ARENA_ARRAY(&opt->arena, ExecTensor, opt->nlive);
        e->live = ARENA_ARRAY(&opt->arena, LiveTensor, opt->nlive);
        e->x.ntensors = opt->nlive;
        for (size_t i = 0; i < opt->ntensors; i++) {
            const TensorInfo *t = &opt->tensors[i];
            if (t->live < 0) continue;
            e->x.tensors[t->live] =
                (ExecTensor){.name = t->name, .numel = t->numel, .group = t->group};
            e->live[t->live].info = (uint32_t)i;
        }
    }
    make_orders(opt);
    for (size_t k = 0; k < opt->nentries; k++) opt->entries[k].x.by_name = opt->by_rank;
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

/* Storages by body, so that the tensors of a body stand together. */
static void make_variants(dsopt_optimizer *opt, OptEntry *e)
{
    size_t cap = 0, bytes = opt->nelem * sizeof(DType);
    DType *storage = ARENA_ARRAY(&opt->arena, DType, opt->nelem);
    memcpy(storage, opt->pm->storage, bytes);
    for (uint32_t body = 0; body < e->m->nbodies; body++) {
        size_t first = e->nvariants;
        for (uint32_t i = 0; i < opt->nlive; i++) {
            if (e->x.tensors[i].body != body) continue;
            const TensorInfo *t = &opt->tensors[e->live[i].info];
            storage[0] = t->dtype;
            storage[1] = t->grad_dtype;
            size_t v = first;
            while (v < e->nvariants && memcmp(e->variants[v].storage, storage, bytes) != 0) v++;
            if (v == e->nvariants) {
                OptVariant ov = {.body = body,
                                 .storage = ARENA_ARRAY(&opt->arena, DType, opt->nelem)};
                memcpy(ov.storage, storage, bytes);
                ARENA_PUSH(&opt->arena, e->variants, e->nvariants, cap, ov);
            }
            e->live[i].variant = (uint32_t)v;
        }
    }
    for (uint32_t i = 0; i < opt->nlive; i++)
        e->x.tensors[i].storage = e->variants[e->live[i].variant].storage;
}

static dsopt_status build_variants(dsopt_optimizer *opt, OptEntry *e)
{
    e->nptr = opt->nelem;
    if (!e->plan) return DSOPT_OK;
    dsopt_status st = program_build_scalars(opt->ctx, opt->prog, e->pm, &e->programs);
    size_t scratch = 64;
    for (size_t i = 0; i < e->nvariants && st == DSOPT_OK; i++) {
        OptVariant *ov = &e->variants[i];
        st = program_build(opt->ctx, opt->prog, e->pm, ov->body, ov->storage, &ov->built);
        if (st != DSOPT_OK) break;
        ov->v = ov->built->variant;
        ov->kernel_of_phase = ARENA_ARRAY(&opt->arena, int, e->plan->nphases + 1);
        for (int k = 0; k <= e->plan->nphases; k++) ov->kernel_of_phase[k] = -1;
        for (uint32_t k = 0; k < ov->v->nkernels; k++)
            ov->kernel_of_phase[ov->v->kernels[k].phase] = (int)k;
        if (ov->built->code.scratch_bytes > scratch) scratch = ov->built->code.scratch_bytes;
        uint32_t nptr = opt->nelem + vectors_of(e, ov->body) + ov->v->ntemps;
        if (nptr > e->nptr) e->nptr = nptr;
    }
    if (st == DSOPT_OK && !pool_reserve(opt->ctx->pool, scratch)) st = error_oom(opt->ctx);
    return st;
}

static void make_tensor_rows(dsopt_optimizer *opt, OptEntry *e)
{
    if (!e->plan) return;
    for (uint32_t i = 0; i < opt->nlive; i++) {
        const ExecTensor *t = &e->x.tensors[i];
        const ViewDims *d = &e->live[i].dims;
        bool flat = d->view == VIEW_FLAT;
        e->tensor_rows[i] = (DsTensorRow){.u = {opt->global, opt->group[t->group], NULL, t->block},
                                          .ptr = t->ptr,
                                          .rows = flat ? 1 : d->rows,
                                          .cols = flat ? t->numel : d->cols,
                                          .mats = flat ? 1 : d->mats,
                                          .tiles = flat ? 1 : d->tiles,
                                          .packs = d->packs};
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

/* Entry points work on the memory that the step has: slots up to the states are the same. */
static bool same_layout(const IrModule *step, const IrModule *m)
{
    bool same = step->nelem == m->nelem;
    for (uint32_t i = 0; i < step->nslots && same; i++) {
        const Slot *a = &step->slots[i], *b = i < m->nslots ? &m->slots[i] : NULL;
        if (a->kind > SLOT_PROP) continue;
        same = b && a->kind == b->kind && a->level == b->level && a->index == b->index &&
               a->rate == b->rate && strcmp(a->name, b->name) == 0 && strcmp(a->path, b->path) == 0;
    }
    return same;
}

static void open_entry(const dsopt_optimizer *opt, OptEntry *e)
{
    static const char *const halves[2] = {"draw_lo", "draw_hi"};
    e->name = e->pm->entry ? e->pm->entry : "step";
    e->m = e->pm->m;
    e->plan = opt->ctx->backend->build_variant ? e->pm->plan : NULL;
    e->skip_slot = -1;
    for (uint32_t i = 0; i < e->m->nslots; i++)
        if (e->m->slots[i].kind == SLOT_SKIP) e->skip_slot = (int)i;
    for (int k = 0; k < 2; k++) {
        int slot = ir_slot_find(e->m, SLOT_PROP, halves[k]);
        e->draw_slot[k] = module_loads(e->m, slot) ? slot : -1;
    }
}

static dsopt_status bind_program(dsopt_optimizer *opt)
{
    const Backend *backend = opt->ctx->backend;
    if (opt->prog->compute_f64 && backend->build_variant)
        return error_set(opt->ctx, DSOPT_NOT_SUPPORTED,
                         "'%s' was compiled with compute \"f64\", which runs on backend \"interp\" "
                         "only; this context has \"%s\"",
                         opt->prog->name, backend->name);
    dsopt_program *p = opt->prog;
    opt->nentries = p->nmodules - 1;
    opt->entries = ARENA_ARRAY(&opt->arena, OptEntry, opt->nentries);
    opt->exec = backend->build_variant ? exec_plan : exec_interp;
    for (size_t k = 0; k < opt->nentries; k++) {
        OptEntry *e = &opt->entries[k];
        e->pm = k ? &p->modules[1 + k] : &p->modules[has_narrow_gradients(opt)];
        dsopt_status st = program_module(opt->ctx, p, e->pm);
        if (st != DSOPT_OK) return st;
        open_entry(opt, e);
        if (!same_layout(opt->entries[0].m, e->m))
            return error_set(opt->ctx, DSOPT_INTERNAL,
                             "'%s' and its entry '%s' differ in their slots", p->name, e->name);
    }
    opt->pm = opt->entries[0].pm;
    opt->m = opt->pm->m;
    opt->nelem = opt->m->nelem;
    opt->current = &opt->entries[0];
    return check_storage(opt);
}

/* Exports are NaN until an entry point has run. */
static void init_exports(dsopt_optimizer *opt)
{
    for (size_t k = opt->nentries; k-- > 0;) { /* the step last: it is the current one */
        OptEntry *e = &opt->entries[k];
        size_t n = entry_exports_size(opt, e);
        if (opt->nentries > 1) e->exports = ARENA_ARRAY(&opt->arena, double, n);
        for (size_t i = 0; e->exports && i < n; i++) e->exports[i] = NAN;
    }
    entry_exports(opt, opt->current, EXPORTS_CLEAR);
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
    st = make_blocks(opt);
    if (st == DSOPT_OK) st = choose_bodies(opt);
    for (size_t k = 0; k < opt->nentries && st == DSOPT_OK; k++) {
        make_variants(opt, &opt->entries[k]);
        st = build_variants(opt, &opt->entries[k]);
    }
    if (st == DSOPT_OK) st = make_state(opt);
    for (size_t k = 0; k < opt->nentries && st == DSOPT_OK; k++) {
        st = tables_alloc(opt, &opt->entries[k]);
        if (st == DSOPT_OK) make_tensor_rows(opt, &opt->entries[k]);
    }
    if (st != DSOPT_OK) return st;
    init_exports(opt);
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
    for (size_t k = 0; opt->entries && k < opt->nentries; k++)
        region_free(a, &opt->entries[k].tables);
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
