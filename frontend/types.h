/* types.h - what a value is: its dtype, and its rate (along which axes it varies). Shared by the
 * typed AST and the IR.
 *
 * A rate is a set of axes, joined by union: hyper lr is {group}; t is {group, tensor}; p is all.
 */
#ifndef FRONTEND_TYPES_H
#define FRONTEND_TYPES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* f16 and bf16: storage only. */
typedef enum DType { DT_BOOL, DT_F32, DT_F64, DT_F16, DT_BF16, DT_COUNT } DType;
typedef uint16_t Rate;
enum {
    AXIS_GROUP = 1,
    AXIS_TENSOR = 2,
    AXIS_MATRIX = 4,
    AXIS_ROW = 8,
    AXIS_COL = 16,
    AXIS_BLOCK = 32,
    RATE_GLOBAL = 0,
    RATE_GROUP = AXIS_GROUP,
    RATE_TENSOR = RATE_GROUP | AXIS_TENSOR,
    RATE_MATRIX = RATE_TENSOR | AXIS_MATRIX,
    RATE_ROW = RATE_MATRIX | AXIS_ROW,
    RATE_COL = RATE_MATRIX | AXIS_COL,
    RATE_BLOCK = RATE_TENSOR | AXIS_BLOCK,
    RATE_ELEMENT = RATE_MATRIX | AXIS_ROW | AXIS_COL | AXIS_BLOCK,
};
/* The rates there are: scalars (global, group, tensor), vectors (matrix, row, col, block: one array
 * per tensor), and element. */
static inline bool rate_is_element(Rate r)
{
    return (r & RATE_ELEMENT) == RATE_ELEMENT;
}
static inline bool rate_is_scalar(Rate r)
{
    return (r & ~RATE_TENSOR) == 0;
}
static inline bool rate_is_vector(Rate r)
{
    return !rate_is_scalar(r) && !rate_is_element(r);
}
/* Union; what varies along two of rows, columns and blocks (or blocks and matrices) varies from
 * element to element. */
static inline Rate rate_join(Rate a, Rate b)
{
    Rate r = (Rate)(a | b);
    bool row_col = (r & AXIS_ROW) && (r & AXIS_COL);
    bool block = (r & AXIS_BLOCK) && (r & (AXIS_MATRIX | AXIS_ROW | AXIS_COL));
    return row_col || block ? (Rate)RATE_ELEMENT : r;
}
/* Whether values of this rate are computed in f32 (elements, rows, columns, blocks), and not in f64
 * as scalars and matrix values. */
static inline bool rate_is_elementwise(Rate r)
{
    return (r & (AXIS_ROW | AXIS_COL | AXIS_BLOCK)) != 0;
}
/* Whether a value of rate `a` is constant along every axis that `b` lacks: a may be stored where b
 * is expected. */
static inline bool rate_within(Rate a, Rate b)
{
    return (a & ~b) == 0;
}
/* "element", "tensor", "row", … */
const char *rate_name(Rate r);
bool rate_parse(const char *s, Rate *out);
const char *dtype_name(DType d); /* "f32", "bf16", "bool", … */
bool dtype_parse(const char *s, DType *out);
int dtype_size(DType d); /* bytes in memory: f32 4, f64 8, f16 and bf16 2, bool 1 */

/* The op table as enum and rows (ops.def). */
typedef enum OpType { NUM, CMP, LOGIC, SELECT } OpType;
typedef enum Op {
#define OP(ENUM, name, spelling, arity, types, expr) OP_##ENUM,
#include "ops.def"
    OP_COUNT_
} Op;
typedef enum ReduceOp {
#define REDUCE(ENUM, name, arity, types, identity, combine, merge) RED_##ENUM,
#include "ops.def"
    RED_COUNT_
} ReduceOp;
typedef struct OpInfo {
    const char *name, *spelling;
    uint8_t arity, types;
    const char *expr; /* its meaning in C, in a, b, c and FN(x) */
} OpInfo;
typedef struct ReduceInfo {
    const char *name;
    uint8_t arity, types;
    double identity;
    const char *identity_text, *combine, *merge;
} ReduceInfo;
extern const OpInfo op_info[OP_COUNT_];
extern const ReduceInfo reduce_info[RED_COUNT_];
int op_by_name(const char *name, size_t len);         /* -1: none */
int op_by_spelling(const char *spelling, size_t len); /* -1: none; functions and operators */
int reduce_by_name(const char *name, size_t len);

/* Whether a pattern (POSIX ERE, no back-references) is found in the name: 1, 0. -1: it is no pattern,
 * or memory ran out; text in why. name NULL: the pattern alone. */
int pattern_find(const char *pattern, const char *name, char why[128]);

/* Numbers as text, whatever the host's locale. */
/* As strtod reads them; end: what was not read, may be NULL; error: 1 too large, -1 too small
 * (rounds to 0), 0. */
double number_parse(const char *text, const char **end, int *error);
/* The shortest decimal that reads back equal; "inf", "nan". */
const char *number_format(char out[32], double value);
const char *number_format_f32(char out[32], float value); /* that reads back the same f32 */
#endif
