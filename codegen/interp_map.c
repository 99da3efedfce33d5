/* interp_map.c - map ops over arrays and conversion of storage: the interpreter's inner loops, one
 * per row of ops.def and type.
 *
 * Requires round to nearest and no flush to zero (the caller's). Ensures exact f32 or f64
 * arithmetic, one rounding per op.
 *
 *     map_apply(OP_MUL, false, 3, out, {{1, 2, 3}, {0.5f for all}, …})  ->  out = {0.5f, 1, 1.5f}
 */
#include "interp_map.h"
#include "fn.h"
#include <string.h>

/* ---- storage --------------------------------------------------------------------------------- */

/* Bases may have any alignment. */
double elem_get(const void *base, DType storage, int64_t i)
{
    const char *at = (const char *)base + i * dtype_size(storage);
    float f;
    double d;
    uint16_t h;
    switch (storage) {
    case DT_F32: memcpy(&f, at, 4); return (double)f;
    case DT_F64: memcpy(&d, at, 8); return d;
    case DT_F16: memcpy(&h, at, 2); return (double)ds_f32_from_f16(h);
    case DT_BF16: memcpy(&h, at, 2); return (double)ds_f32_from_bf16(h);
    case DT_BOOL: return *at != 0;
    default: return 0;
    }
}

void elem_set(void *base, DType storage, int64_t i, double v)
{
    char *at = (char *)base + i * dtype_size(storage);
    float f = (float)v;
    uint16_t h;
    switch (storage) {
    case DT_F32: memcpy(at, &f, 4); break;
    case DT_F64: memcpy(at, &v, 8); break;
    case DT_F16:
        h = ds_f16_from_f32(f);
        memcpy(at, &h, 2);
        break;
    case DT_BF16:
        h = ds_bf16_from_f32(f);
        memcpy(at, &h, 2);
        break;
    case DT_BOOL: *at = v != 0; break;
    default: break;
    }
}

size_t map_size(DType dtype)
{
    return (size_t)dtype_size(dtype);
}

void map_load(const void *base, DType storage, size_t n, DType dtype, void *out)
{
    if (storage == dtype) {
        memcpy(out, base, n * map_size(dtype));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        double v = elem_get(base, storage, (int64_t)i);
        if (dtype == DT_F64)
            ((double *)out)[i] = v;
        else
            ((float *)out)[i] = (float)v;
    }
}

void map_store(void *base, DType storage, size_t n, const MapArg *value)
{
    if (storage == value->dtype && value->stride == 1) {
        memcpy(base, value->at, n * map_size(storage));
        return;
    }
    for (size_t i = 0; i < n; i++) elem_set(base, storage, (int64_t)i, map_arg_get(value, i));
}

/* ---- operands -------------------------------------------------------------------------------- */

void map_arg_scalar(MapArg *arg, DType dtype, double v)
{
    *arg = (MapArg){.at = &arg->one, .stride = 0, .dtype = dtype};
    if (dtype == DT_F32)
        arg->one.f = (float)v;
    else if (dtype == DT_BOOL)
        arg->one.b = v != 0;
    else
        arg->one.d = v;
}

double map_arg_get(const MapArg *arg, size_t i)
{
    i *= arg->stride;
    if (arg->dtype == DT_F32) return (double)((const float *)arg->at)[i];
    if (arg->dtype == DT_BOOL) return ((const uint8_t *)arg->at)[i];
    return ((const double *)arg->at)[i];
}

/* ---- ops ------------------------------------------------------------------------------------- */

/* Types of the result, the first operand and the others, by the way the row's dtypes combine. */
#define RESULT_NUM(T) T
#define RESULT_CMP(T) uint8_t
#define RESULT_LOGIC(T) uint8_t
#define RESULT_SELECT(T) T
#define FIRST_NUM(T) T
#define FIRST_CMP(T) T
#define FIRST_LOGIC(T) uint8_t
#define FIRST_SELECT(T) uint8_t
#define OTHER_NUM(T) T
#define OTHER_CMP(T) T
#define OTHER_LOGIC(T) uint8_t
#define OTHER_SELECT(T) T

typedef void MapFn(size_t n, void *out, const MapArg x[3]);

#define MAP_LOOP(NAME, FN, T, types, arity)                                                        \
    static void NAME(size_t n, void *out, const MapArg x[3])                                       \
    {                                                                                              \
        RESULT_##types(T) *r = out;                                                                \
        const FIRST_##types(T) *a = x[0].at;                                                       \
        const OTHER_##types(T) *b = x[arity > 1 ? 1 : 0].at, *c = x[arity > 2 ? 2 : 0].at;         \
        size_t sa = x[0].stride, sb = x[arity > 1 ? 1 : 0].stride;                                 \
        size_t sc = x[arity > 2 ? 2 : 0].stride;                                                   \
        for (size_t i = 0; i < n; i++) r[i] = FN(a[i * sa], b[i * sb], c[i * sc]);                 \
    }
#define OP(ENUM, name, spelling, arity, types, expr)                                               \
    MAP_LOOP(map32_##ENUM, fn32_##ENUM, float, types, arity)                                       \
    MAP_LOOP(map64_##ENUM, fn64_##ENUM, double, types, arity)
#include "frontend/ops.def"

static MapFn *const map_fn[OP_COUNT_][2] = {
#define OP(ENUM, name, spelling, arity, types, expr) [OP_##ENUM] = {map32_##ENUM, map64_##ENUM},
#include "frontend/ops.def"
};

void map_apply(Op op, bool f64, size_t n, void *out, const MapArg x[3])
{
    map_fn[op][f64](n, out, x);
}
