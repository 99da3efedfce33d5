/* shim.h - the tables of one step, handed from test_cuda_bits to the CUDA text compiled as C++
 * (shim_device.h).
 *
 * Plain pointers; laid out as abi.h and the device text have them.
 */
#ifndef DSOPT_TESTS_EMIT_SHIM_H
#define DSOPT_TESTS_EMIT_SHIM_H
#include <stdint.h>

struct ShimSpan {
    int64_t tensor, first_row, nrows, numel;
};
struct ShimStep {
    void *library;
    const void *rows, *tensors;
    int64_t nrows;
    double *partial;
    const struct ShimSpan *spans;
    int64_t nspans;
    double *global, *roots, *uniform, *vector;
    unsigned char *present;
    double *const *groups;
    int64_t ngroups;
    const void *classes;
    int64_t nclasses;
    const int64_t *active;
    int64_t nactive;
    unsigned grid; /* blocks of launches that may have any number */
};
#endif
