/* state.c - states, clocks and their names: enumerated, found, read and written.
 *
 * The numbering is fixed by program and tensors: for each tensor, in the order given, the states
 * that its shape has (in order of their declaration, then t); then for each group the states of
 * that rate; then the global ones with s.
 *
 *     adamw, tensors w and b in group default:
 *       0 default.adamw.m of w   1 default.adamw.v of w   2 default.adamw.t of w   3 … 5 of b
 *       6 adamw.s
 */
#include "internal.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct StateRef {
    const Slot *slot;
    int64_t tensor; /* -1: none */
    uint32_t group; /* of the tensor, or of the state */
    const char *path;
    double *scalar; /* where it is, or */
    void *elements; /* NULL: an empty tensor's */
    DType storage;
    int64_t count;
} StateRef;

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_state(const Slot *s)
{
    return s->kind == SLOT_STATE || s->kind == SLOT_COUNT;
}

static uint32_t *collect(dsopt_optimizer *opt, uint32_t *n, bool (*pick)(const Slot *))
{
    uint32_t *list = ARENA_ARRAY(&opt->arena, uint32_t, opt->m->nslots + 1);
    for (int clocks = 0; clocks < 2; clocks++)
        for (uint32_t i = 0; i < opt->m->nslots; i++) {
            const Slot *s = &opt->m->slots[i];
            if (is_state(s) && pick(s) && (s->kind == SLOT_COUNT) == clocks) list[(*n)++] = i;
        }
    return list;
}

static bool of_tensors(const Slot *s)
{
    return s->level == LEVEL_NONE || s->level == LEVEL_TENSOR;
}

static bool of_groups(const Slot *s)
{
    return s->level == LEVEL_GROUP;
}

static bool of_all(const Slot *s)
{
    return s->level == LEVEL_GLOBAL;
}

/* Implicit states (t and s) have no path of their own: they are the rule's. */
static const char *path_of(dsopt_optimizer *opt, const Slot *s, const char *group)
{
    Arena *a = &opt->arena;
    const char *path =
        s->path && *s->path ? s->path : arena_printf(a, "%s.%s", opt->prog->name, s->name);
    return group ? arena_printf(a, "%s.%s", group, path) : path;
}

/* Which states tensors of each kind have. */
static void number_states(dsopt_optimizer *opt)
{
    for (uint32_t k = 0; k < opt->nkinds; k++) {
        TensorKind *kind = &opt->kinds[k];
        kind->states = ARENA_ARRAY(&opt->arena, uint32_t, opt->ntensor_states);
        for (uint32_t i = 0; i < opt->ntensor_states; i++)
            if (kind->uses[opt->tensor_states[i]]) kind->states[kind->nstates++] = i;
    }
    opt->state_begin = ARENA_ARRAY(&opt->arena, size_t, opt->ntensors + 1);
    for (size_t i = 0; i < opt->ntensors; i++)
        opt->state_begin[i + 1] = opt->state_begin[i] + opt->kinds[opt->tensors[i].kind].nstates;
}

void state_names(dsopt_optimizer *opt)
{
    opt->tensor_states = collect(opt, &opt->ntensor_states, of_tensors);
    number_states(opt);
    opt->group_states = collect(opt, &opt->ngroup_states, of_groups);
    opt->global_states = collect(opt, &opt->nglobal_states, of_all);
    size_t per_group = opt->ntensor_states + opt->ngroup_states;
    const char **next = opt->paths =
        ARENA_ARRAY(&opt->arena, const char *, opt->ngroups *per_group + opt->nglobal_states);
    for (uint32_t g = 0; g < opt->ngroups; g++) {
        for (uint32_t i = 0; i < opt->ntensor_states; i++)
            *next++ = path_of(opt, &opt->m->slots[opt->tensor_states[i]], opt->groups[g].name);
        for (uint32_t i = 0; i < opt->ngroup_states; i++)
            *next++ = path_of(opt, &opt->m->slots[opt->group_states[i]], opt->groups[g].name);
    }
    for (uint32_t i = 0; i < opt->nglobal_states; i++)
        *next++ = path_of(opt, &opt->m->slots[opt->global_states[i]], NULL);
}

/* ---- by number ------------------------------------------------------------------------------- */

size_t dsopt_state_count(const dsopt_optimizer *opt)
{
    if (!opt) return 0;
    return opt->state_begin[opt->ntensors] + (size_t)opt->ngroups * opt->ngroup_states +
           opt->nglobal_states;
}

static int64_t count_values(const dsopt_optimizer *opt, const TensorInfo *t, const Slot *s,
                            StateRef *r)
{
    if (t->live < 0) return 0;
    r->elements = opt->entries[0].x.tensors[t->live].ptr[s->index];
    if (rate_is_element(s->rate)) return t->numel;
    const ViewDims *d = state_view(opt, (uint32_t)t->live, s);
    return d ? view_length(d, s->rate) : 0;
}

/* The k-th of a tensor's. */
static StateRef tensor_state(const dsopt_optimizer *opt, size_t tensor, size_t k)
{
    const TensorInfo *t = &opt->tensors[tensor];
    uint32_t which = opt->kinds[t->kind].states[k];
    const Slot *s = &opt->m->slots[opt->tensor_states[which]];
    StateRef r = {.slot = s,
                  .tensor = (int64_t)tensor,
                  .group = t->group,
                  .path = opt->paths[t->group * (opt->ntensor_states + opt->ngroup_states) + which],
                  .count = 1,
                  .storage = s->storage};
    if (s->level == LEVEL_TENSOR) {
        r.scalar = &t->block[s->index];
        return r;
    }
    r.count = count_values(opt, t, s, &r);
    r.storage = opt->pm->storage[s->index];
    return r;
}

/* Whose state number i is. */
static size_t tensor_of(const dsopt_optimizer *opt, size_t i)
{
    size_t lo = 0, hi = opt->ntensors;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (opt->state_begin[mid] <= i)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static StateRef state_at(const dsopt_optimizer *opt, size_t i)
{
    size_t of_tensors = opt->state_begin[opt->ntensors],
           grouped = (size_t)opt->ngroups * opt->ngroup_states;
    if (i < of_tensors) {
        size_t tensor = tensor_of(opt, i);
        return tensor_state(opt, tensor, i - opt->state_begin[tensor]);
    }
    i -= of_tensors;
    size_t per_group = opt->ntensor_states + opt->ngroup_states;
    StateRef r = {.tensor = -1, .count = 1};
    if (i < grouped) {
        uint32_t k = (uint32_t)(i % opt->ngroup_states);
        r.group = (uint32_t)(i / opt->ngroup_states);
        r.slot = &opt->m->slots[opt->group_states[k]];
        r.path = opt->paths[r.group * per_group + opt->ntensor_states + k];
        r.scalar = &opt->groups[r.group].block[r.slot->index];
    } else {
        i -= grouped;
        r.slot = &opt->m->slots[opt->global_states[i]];
        r.path = opt->paths[opt->ngroups * per_group + i];
        r.scalar = &opt->global[r.slot->index];
    }
    r.storage = r.slot->storage;
    return r;
}

static dsopt_dtype dtype_public(DType d)
{
    return d == DT_F32    ? DSOPT_F32
           : d == DT_F16  ? DSOPT_F16
           : d == DT_BF16 ? DSOPT_BF16
                          : DSOPT_F64;
}

static dsopt_status state_get(dsopt_optimizer *opt, size_t i, StateRef *out)
{
    if (i >= dsopt_state_count(opt))
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "there is no state number %zu", i);
    *out = state_at(opt, i);
    return DSOPT_OK;
}

/* Rows of each matrix, columns of each matrix, blocks; elements have the tensor's own shape. */
static void state_dims(const dsopt_optimizer *opt, const StateRef *r, dsopt_state_info *s)
{
    s->ndim = r->scalar ? 0 : 1;
    s->dims[0] = r->count;
    if (r->scalar || !r->elements || !rate_is_vector(r->slot->rate)) return;
    const ViewDims *d = state_view(opt, (uint32_t)opt->tensors[r->tensor].live, r->slot);
    if (d->mats == 1 || !(r->slot->rate & (AXIS_ROW | AXIS_COL))) return;
    s->ndim = 2;
    s->dims[0] = d->mats;
    s->dims[1] = r->count / d->mats;
}

dsopt_status dsopt_state_info_read(dsopt_optimizer *opt, size_t i, dsopt_state_info *info)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    StateRef r;
    if (!info)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_state_info_read: info is NULL");
    dsopt_status st = state_get(opt, i, &r);
    if (st != DSOPT_OK) return st;
    dsopt_state_info s = {.path = r.path,
                          .name = r.slot->name,
                          .rate = rate_name(r.slot->rate),
                          .tensor = r.tensor,
                          .group = r.slot->level == LEVEL_GLOBAL ? NULL : opt->groups[r.group].name,
                          .dtype = dtype_public(r.storage),
                          .count = r.count};
    state_dims(opt, &r, &s);
    struct_out(opt->ctx, "dsopt_state_info", info, &s, sizeof s, &st);
    return st;
}

/* ---- by name --------------------------------------------------------------------------------- */

static dsopt_status unknown_state(dsopt_optimizer *opt, const char *tensor, const char *path,
                                  size_t begin, size_t end)
{
    char all[512] = "";
    size_t len = 0, most = begin + 64;
    for (size_t i = begin; i < end && i < most && len < sizeof all; i++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "",
                                state_at(opt, i).slot->name);
    return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "'%s' has no state '%s' %s%s%s (there are %s)",
                     opt->prog->name, path, tensor ? "of tensor '" : "of groups or of all",
                     tensor ? tensor : "", tensor ? "'" : "", *all ? all : "none");
}

dsopt_status dsopt_state_find(dsopt_optimizer *opt, const char *tensor, const char *path, size_t *i)
{
    OPT_CHECK(opt);
    if (!path || !i)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_state_find: %s is NULL",
                         path ? "i" : "path");
    size_t begin = opt->state_begin[opt->ntensors], end = dsopt_state_count(opt), at = 0;
    if (tensor) {
        size_t t;
        dsopt_status st = dsopt_tensor_find(opt, tensor, &t);
        if (st != DSOPT_OK) return st;
        begin = opt->state_begin[t];
        end = opt->state_begin[t + 1];
    }
    int best = 0, found = 0;
    for (size_t k = begin; k < end; k++) {
        int match = path_match(state_at(opt, k).path, path);
        if (match == 0 || match < best) continue;
        found = match > best ? 1 : found + 1;
        best = match;
        at = k;
    }
    if (found == 0) return unknown_state(opt, tensor, path, begin, end);
    if (found > 1)
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME,
                         "more than one state is called '%s': write more of its path", path);
    *i = at;
    return DSOPT_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

void state_fill(void *base, DType storage, int64_t count, double value)
{
    for (int64_t k = 0; k < count; k++) elem_set(base, storage, k, value);
}

/* The i-th state, and the type of the values that are to be copied to or from it. */
static dsopt_status copy_begin(dsopt_optimizer *opt, size_t i, dsopt_dtype dtype,
                               const void *values, int64_t count, StateRef *r, DType *as)
{
    dsopt_status st = state_get(opt, i, r);
    if (st != DSOPT_OK) return st;
    *as = dtype == DSOPT_DTYPE_DEFAULT ? r->storage : dtype_internal(dtype);
    if (*as == DT_COUNT)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "state '%s': dtype %d is none that this version knows", r->path,
                         (int)dtype);
    if (count != r->count)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "state '%s' has %lld values, not %lld",
                         r->path, (long long)r->count, (long long)count);
    if (!values && count)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "state '%s': values is NULL", r->path);
    return DSOPT_OK;
}

dsopt_status dsopt_state_read(dsopt_optimizer *opt, size_t i, dsopt_dtype dtype, void *values,
                              int64_t count)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    StateRef r;
    DType as;
    dsopt_status st = copy_begin(opt, i, dtype, values, count, &r, &as);
    if (st != DSOPT_OK) return st;
    if (r.scalar)
        elem_set(values, as, 0, *r.scalar);
    else if (as == r.storage && count)
        memcpy(values, r.elements, (size_t)count * (size_t)dtype_size(as));
    else
        for (int64_t k = 0; k < count; k++)
            elem_set(values, as, k, elem_get(r.elements, r.storage, k));
    return DSOPT_OK;
}

static dsopt_status write_scalar(dsopt_optimizer *opt, const StateRef *r, double v)
{
    if (r->slot->kind == SLOT_COUNT) {
        if (!(v >= 0 && v <= 0x1p53 && v == floor(v)))
            return error_set(opt->ctx, DSOPT_OUT_OF_RANGE, "%s = %.17g: it counts steps", r->path,
                             v);
        opt->entries[0].stale = true; /* classes of equal t */
    }
    *r->scalar = r->storage == DT_F32 ? (double)(float)v : v;
    return DSOPT_OK;
}

dsopt_status dsopt_state_write(dsopt_optimizer *opt, size_t i, dsopt_dtype dtype,
                               const void *values, int64_t count)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    StateRef r;
    DType as;
    dsopt_status st = copy_begin(opt, i, dtype, values, count, &r, &as);
    if (st != DSOPT_OK) return st;
    if (r.scalar) return write_scalar(opt, &r, elem_get(values, as, 0));
    if (as == r.storage && count)
        memcpy(r.elements, values, (size_t)count * (size_t)dtype_size(as));
    else
        for (int64_t k = 0; k < count; k++)
            elem_set(r.elements, r.storage, k, elem_get(values, as, k));
    return DSOPT_OK;
}
