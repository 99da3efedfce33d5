/* shim.h - the tables of one step, handed from test_cuda_bits to the CUDA text compiled as C++
 * (shim_device.h).
 *
 * Plain pointers; laid out as abi.h and the device text have them.
 */
#ifndef DSOPT_TESTS_EMIT_SHIM_H
#define DSOPT_TESTS_EMIT_SHIM_H
#include <stdint.h>

struct ShimTensorRow {
    double *u[4];
    void *const *ptr;
    int64_t rows, cols, mats, tiles, body, numel;
};
struct ShimSpan {
    int64_t tensor, first_row, nrows, place;
};
struct ShimGroup {
    double *u;
    uint64_t runs;
    int64_t begin, end;
};
struct ShimStep {
    void *library;
    const void *rows;
    const struct ShimTensorRow *tensors;
    int64_t nrows;
    double *partial;
    const struct ShimSpan *spans;
    int64_t nspans;
    double *global, *roots;
    unsigned char *present;
    uint64_t runs;
    const struct ShimGroup *groups;
    int64_t ngroups;
    const struct ShimTensorRow *classes;
    int64_t nclasses;
    const int64_t *active;
    int64_t nactive;
    unsigned grid; /* blocks of launches that may have any number */
};
#endif
