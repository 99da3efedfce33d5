/* types.c - the tables behind types.h: names of rates and dtypes, the op table, and numbers as
 * text.
 *
 *     rate_name(RATE_ROW) -> "row"    op_by_spelling("sqrt", 4) -> OP_SQRT    number_format(b,
 * 1e-3) -> "0.001"
 */
#define _GNU_SOURCE /* strtod_l, uselocale */
#include "types.h"
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rates ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    Rate rate;
} rates[] = {
    {"global", RATE_GLOBAL}, {"group", RATE_GROUP},     {"tensor", RATE_TENSOR},
    {"matrix", RATE_MATRIX}, {"row", RATE_ROW},         {"col", RATE_COL},
    {"block", RATE_BLOCK},   {"element", RATE_ELEMENT},
};

const char *rate_name(Rate r)
{
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (rates[i].rate == r) return rates[i].name;
    }
    return "{axes}"; /* not made by joining rates of the language */
}

bool rate_parse(const char *s, Rate *out)
{
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        if (strcmp(rates[i].name, s) == 0) {
            *out = rates[i].rate;
            return true;
        }
    }
    return false;
}

/* ---- dtypes ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int size;
} dtypes[DT_COUNT] = {
    [DT_BOOL] = {"bool", 1}, [DT_F32] = {"f32", 4},   [DT_F64] = {"f64", 8},
    [DT_F16] = {"f16", 2},   [DT_BF16] = {"bf16", 2},
};

const char *dtype_name(DType d)
{
    return (unsigned)d < DT_COUNT ? dtypes[d].name : "?";
}

bool dtype_parse(const char *s, DType *out)
{
    for (int d = 0; d < DT_COUNT; d++) {
        if (strcmp(dtypes[d].name, s) == 0) {
            *out = (DType)d;
            return true;
        }
    }
    return false;
}

int dtype_size(DType d)
{
    return (unsigned)d < DT_COUNT ? dtypes[d].size : 0;
}

/* ---- ops ------------------------------------------------------------------------------------- */

const OpInfo op_info[OP_COUNT_] = {
#define OP(ENUM, name, spelling, arity, types, expr)                                               \
    [OP_##ENUM] = {name, spelling, arity, types, #expr},
#include "ops.def"
};

const ReduceInfo reduce_info[RED_COUNT_] = {
#define REDUCE(ENUM, name, arity, types, identity, combine, merge)                                 \
    [RED_##ENUM] = {name, arity, types, identity, #identity, #combine, #merge},
#include "ops.def"
};

static bool same(const char *row, const char *s, size_t n)
{
    return strlen(row) == n && memcmp(row, s, n) == 0;
}

int op_by_name(const char *name, size_t len)
{
    for (int i = 0; i < OP_COUNT_; i++) {
        if (same(op_info[i].name, name, len)) return i;
    }
    return -1;
}

int op_by_spelling(const char *spelling, size_t len)
{
    for (int i = 0; len && i < OP_COUNT_; i++) {
        if (same(op_info[i].spelling, spelling, len)) return i;
    }
    return -1;
}

int reduce_by_name(const char *name, size_t len)
{
    for (int i = 0; i < RED_COUNT_; i++) {
        if (same(reduce_info[i].name, name, len)) return i;
    }
    return -1;
}

/* ---- numbers --------------------------------------------------------------------------------- */

double number_parse(const char *text, const char **end, int *error)
{
    /* The host's locale may use a decimal comma; "C" exists everywhere and costs no allocation. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int saved = errno;
    char *stop;
    errno = 0;
    double value = c ? strtod_l(text, &stop, c) : strtod(text, &stop);
    if (end) *end = stop;
    *error = errno == ERANGE && isinf(value) ? 1 : errno == ERANGE && value == 0 ? -1 : 0;
    errno = saved;
    if (c) freelocale(c);
    return value;
}

static const char *format(char out[32], double value, bool f32)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = c ? uselocale(c) : (locale_t)0;
    bool whole = value == floor(value) && fabs(value) < 1e15;
    if (whole) snprintf(out, 32, "%.0f", value);
    for (int digits = 1; !whole && digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        double back = strtod(out, NULL);
        if (back == value || (f32 && (float)back == (float)value)) break;
    }
    if (c) {
        uselocale(old);
        freelocale(c);
    }
    return out;
}

const char *number_format(char out[32], double value)
{
    return format(out, value, false);
}

const char *number_format_f32(char out[32], float value)
{
    return format(out, (double)value, true);
}
