/* interp_map.h - map ops over arrays, and elements in and out of storage, for the interpreter. */
#ifndef CODEGEN_INTERP_MAP_H
#define CODEGEN_INTERP_MAP_H
#include "exec.h"

/* One operand over n elements: an array (stride 1) or one value for all (stride 0), of float,
 * double or uint8_t (bools). */
typedef struct MapArg {
    const void *at;
    size_t stride;
    DType dtype;
    union {
        float f;
        double d;
        uint8_t b;
    } one;
} MapArg;

/* An operand of one value; `at` points into the operand itself, so it must stay where it is. */
void map_arg_scalar(MapArg *arg, DType dtype, double v);
double map_arg_get(const MapArg *arg, size_t i);
/* out[i] = op(x[0][i], x[1][i], x[2][i]) in f32 or f64; absent operands: any scalar. */
void map_apply(Op op, bool f64, size_t n, void *out, const MapArg x[3]);
/* Bytes of one element in an array of this dtype. */
size_t map_size(DType dtype);
/* Storage to an array of f32 or f64, and back. */
void map_load(const void *base, DType storage, size_t n, DType dtype, void *out);
void map_store(void *base, DType storage, size_t n, const MapArg *value);
#endif
