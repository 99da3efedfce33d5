/* validate.c - tensors as a caller gives them: everything that can be wrong, before anything is
 * made.
 *
 * Ensures: what passes has a unique name, a shape whose bytes can be counted, a dtype that the
 * program can work on, and memory that nothing else here writes. Messages name the tensor (by
 * number, where its name is the problem).
 *
 *   in:  {.name = "w", .shape = {3, -1}, …}
 *   out: DSOPT_INVALID_TENSOR "tensor 'w': dimension 1 of its shape [3, -1] is negative"
 */
#include "internal.h"
#include <stdio.h>
#include <string.h>

enum { MAX_DIMS = 64 };

static const char *const dtype_names[] = {"default", "f32", "f64", "f16", "bf16"};

const char *dsopt_dtype_name(dsopt_dtype dtype)
{
    return (unsigned)dtype < COUNT_OF(dtype_names) ? dtype_names[dtype] : "?";
}

DType dtype_internal(dsopt_dtype d)
{
    static const DType of[] = {DT_COUNT, DT_F32, DT_F64, DT_F16, DT_BF16};
    return (unsigned)d < COUNT_OF(of) ? of[d] : DT_COUNT;
}

static void shape_text(const dsopt_tensor *t, char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size, "[");
    for (int d = 0; d < t->ndim && n < size; d++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", d ? ", " : "", (long long)t->shape[d]);
    if (n < size) snprintf(out + n, size - n, "]");
}

static dsopt_status check_shape(dsopt_context *ctx, const dsopt_tensor *t, TensorInfo *info)
{
    char text[256];
    if (t->ndim < 0 || t->ndim > MAX_DIMS)
        return error_set(ctx, DSOPT_INVALID_TENSOR, "tensor '%s': ndim = %d is outside of 0 … %d",
                         t->name, t->ndim, MAX_DIMS);
    if (t->ndim > 0 && !t->shape)
        return error_set(ctx, DSOPT_INVALID_TENSOR, "tensor '%s': shape is NULL, but ndim is %d",
                         t->name, t->ndim);
    shape_text(t, text, sizeof text);
    bool empty = false, overflow = false;
    int64_t numel = 1;
    for (int d = 0; d < t->ndim; d++) {
        if (t->shape[d] < 0)
            return error_set(ctx, DSOPT_INVALID_TENSOR,
                             "tensor '%s': dimension %d of its shape %s is negative", t->name, d,
                             text);
        empty |= t->shape[d] == 0;
        overflow |= !empty && __builtin_mul_overflow(numel, t->shape[d], &numel);
    }
    /* Bytes of the widest type must be countable, too. */
    if (!empty && (overflow || numel > INT64_MAX / 16))
        return error_set(ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': shape %s has more elements than can be counted", t->name,
                         text);
    info->numel = empty ? 0 : numel;
    info->ndim = t->ndim;
    return DSOPT_OK;
}

static dsopt_status check_strides(dsopt_context *ctx, const dsopt_tensor *t, const TensorInfo *info)
{
    if (!t->strides || info->numel == 0) return DSOPT_OK;
    int64_t expected = 1;
    for (int d = t->ndim - 1; d >= 0; d--) {
        if (t->shape[d] != 1 && t->strides[d] != expected)
            return error_set(ctx, DSOPT_INVALID_TENSOR,
                             "tensor '%s': stride %lld of dimension %d (contiguous: %lld): only "
                             "contiguous row-major tensors can be "
                             "updated in place",
                             t->name, (long long)t->strides[d], d, (long long)expected);
        expected *= t->shape[d];
    }
    return DSOPT_OK;
}

static dsopt_status check_dtype(dsopt_context *ctx, const dsopt_tensor *t, const char *what,
                                dsopt_dtype given, DType absent, bool f64, DType *out)
{
    *out = given == DSOPT_DTYPE_DEFAULT ? absent : dtype_internal(given);
    if (*out == DT_COUNT)
        return error_set(ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': %s dtype %d is none that this version knows", t->name, what,
                         (int)given);
    if (*out == DT_F64 && !f64)
        return error_set(ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': %s dtype f64 is not supported (f32, f16 and bf16 are; f64 "
                         "only by programs compiled with "
                         "compute \"f64\")",
                         t->name, what);
    return DSOPT_OK;
}

static dsopt_status check_tensor(dsopt_context *ctx, const dsopt_tensor *t, bool f64,
                                 TensorInfo *info)
{
    dsopt_status st = check_shape(ctx, t, info);
    if (st == DSOPT_OK) st = check_strides(ctx, t, info);
    if (st == DSOPT_OK)
        st = check_dtype(ctx, t, "parameter", t->dtype, f64 ? DT_F64 : DT_F32, f64, &info->dtype);
    if (st == DSOPT_OK)
        st = check_dtype(ctx, t, "gradient", t->grad_dtype, info->dtype, f64, &info->grad_dtype);
    if (st != DSOPT_OK) return st;
    if (t->group && !*t->group)
        return error_set(ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': its group's name is empty (NULL means \"default\")",
                         t->name);
    if (!t->param && info->numel > 0)
        return error_set(ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': param is NULL, but it has %lld elements", t->name,
                         (long long)info->numel);
    info->param = t->param;
    info->grad = t->grad;
    return DSOPT_OK;
}

/* ---- overlaps -------------------------------------------------------------------------------- */

/* Sorts by begin. The order of the last time is where it starts from, so there is nothing to do
 * where buffers keep their order from step to step, which is the usual case. */
static void spans_sort(Interval *v, Interval *tmp, size_t n)
{
    size_t sorted = 1;
    while (sorted < n && v[sorted - 1].begin <= v[sorted].begin) sorted++;
    if (sorted >= n) return;
    Interval *from = v, *to = tmp;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * width) {
            size_t mid = lo + width < n ? lo + width : n,
                   hi = lo + 2 * width < n ? lo + 2 * width : n;
            for (size_t i = lo, a = lo, b = mid; i < hi; i++)
                to[i] =
                    a < mid && (b >= hi || from[a].begin <= from[b].begin) ? from[a++] : from[b++];
        }
        Interval *swap = from;
        from = to;
        to = swap;
    }
    if (from != v) memcpy(v, from, n * sizeof *v);
}

static bool spans_overlap(Interval *v, Interval *tmp, size_t n, const Interval **a,
                          const Interval **b)
{
    spans_sort(v, tmp, n);
    size_t last = 0; /* of those before i, the one that ends last */
    for (size_t i = 1; i < n; i++) {
        if (v[i].begin < v[last].end) {
            *a = &v[last];
            *b = &v[i];
            return true;
        }
        if (v[i].end > v[last].end) last = i;
    }
    return false;
}

static dsopt_status spans_report(dsopt_context *ctx, const TensorInfo *tensors, const Interval *a,
                                 const Interval *b)
{
    if (a->tensor > b->tensor || (a->tensor == b->tensor && a->is_grad)) {
        const Interval *swap = a;
        a = b;
        b = swap;
    }
    return error_set(ctx, DSOPT_INVALID_TENSOR,
                     "the %s of tensor '%s' and the %s of tensor '%s' share memory",
                     a->is_grad ? "gradient" : "parameter", tensors[a->tensor].name,
                     b->is_grad ? "gradient" : "parameter", tensors[b->tensor].name);
}

/* Memory of a parameter, or of the gradient `grad`; nothing, at address 0, where there is none. */
static Interval span_of(const TensorInfo *t, uint32_t index, bool is_grad, const void *grad)
{
    const void *p = is_grad ? grad : t->param;
    uintptr_t bytes =
        (uintptr_t)t->numel * (uintptr_t)dtype_size(is_grad ? t->grad_dtype : t->dtype);
    if (!p || bytes == 0) return (Interval){.tensor = index, .is_grad = is_grad};
    return (Interval){(uintptr_t)p, (uintptr_t)p + bytes, index, is_grad};
}

static void spans_refresh(const TensorInfo *tensors, size_t n, const void *const *buffers,
                          Interval *v)
{
    for (size_t i = 0; i < 2 * n; i++) {
        uint32_t t = v[i].tensor;
        v[i] = span_of(&tensors[t], t, v[i].is_grad, buffers ? buffers[t] : tensors[t].grad);
    }
}

static dsopt_status check_addresses(dsopt_context *ctx, const TensorInfo *t)
{
    for (int grad = 0; grad < 2; grad++) {
        Interval s = span_of(t, 0, grad, t->grad);
        if (s.end < s.begin)
            return error_set(ctx, DSOPT_INVALID_TENSOR,
                             "tensor '%s': its %s reaches past the end of memory", t->name,
                             grad ? "gradient" : "parameter");
    }
    return DSOPT_OK;
}

dsopt_status overlaps_check(dsopt_optimizer *opt, const void *const *buffers)
{
    const Interval *a, *b;
    spans_refresh(opt->tensors, opt->ntensors, buffers, opt->spans);
    if (spans_overlap(opt->spans, opt->spans_tmp, 2 * opt->ntensors, &a, &b))
        return spans_report(opt->ctx, opt->tensors, a, b);
    return DSOPT_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The i-th struct of an array whose stride is the caller's size. */
static dsopt_status tensor_in(dsopt_context *ctx, const dsopt_tensor *given, size_t i,
                              dsopt_tensor *out)
{
    size_t size = given->size;
    const dsopt_tensor *t = (const void *)((const char *)given + i * size);
    dsopt_status st;
    if (!struct_in(ctx, "dsopt_tensor", out, sizeof *out, t, &st)) return st;
    if (size % _Alignof(dsopt_tensor) != 0)
        return error_set(ctx, DSOPT_INVALID_ARGUMENT, "dsopt_tensor.size is %zu, no struct's size",
                         size);
    if (t->size != size)
        return error_set(ctx, DSOPT_INVALID_ARGUMENT,
                         "tensors[%zu].size is %zu, but that of tensors[0] is %zu", i, t->size,
                         size);
    return DSOPT_OK;
}

dsopt_status tensors_validate(dsopt_optimizer *opt, const dsopt_tensor *given, size_t n, bool f64,
                              const char ***group_of)
{
    dsopt_context *ctx = opt->ctx;
    Arena *a = &opt->arena;
    TensorInfo *info = opt->tensors = ARENA_ARRAY(a, TensorInfo, n);
    *group_of = ARENA_ARRAY(a, const char *, n);
    names_init(&opt->tensor_names, a, n);
    for (size_t i = 0; i < n; i++) {
        dsopt_tensor t;
        dsopt_status st = tensor_in(ctx, given, i, &t);
        if (st != DSOPT_OK) return st;
        if (!t.name || !*t.name)
            return error_set(ctx, DSOPT_INVALID_TENSOR, "tensors[%zu] has no name", i);
        t.name = info[i].name = arena_strdup(a, t.name);
        bool added;
        uint32_t other = names_put(&opt->tensor_names, t.name, (uint32_t)i, &added);
        if (!added)
            return error_set(ctx, DSOPT_INVALID_TENSOR,
                             "tensors[%u] and tensors[%zu] are both named '%s'", other, i, t.name);
        st = check_tensor(ctx, &t, f64, &info[i]);
        if (st == DSOPT_OK) st = check_addresses(ctx, &info[i]);
        if (st != DSOPT_OK) return st;
        int64_t *shape = ARENA_ARRAY(a, int64_t, t.ndim);
        if (t.ndim) memcpy(shape, t.shape, (size_t)t.ndim * sizeof *shape);
        info[i].shape = shape;
        (*group_of)[i] = t.group ? arena_strdup(a, t.group) : "default";
    }
    opt->ntensors = n;
    opt->spans = ARENA_ARRAY(a, Interval, 2 * n);
    opt->spans_tmp = ARENA_ARRAY(a, Interval, 2 * n);
    for (size_t i = 0; i < 2 * n; i++)
        opt->spans[i] = (Interval){.tensor = (uint32_t)(i % n), .is_grad = i >= n};
    return overlaps_check(opt, NULL);
}
