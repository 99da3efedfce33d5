/* abi.h - what a built step is, to whoever runs it: entry names, argument block, tables. The same
 * for every backend.
 *
 * A kernel is `void k<phase>(const DsArgs *, int64_t begin, int64_t end, void *scratch)`: it runs
 * rows [begin, end) of the chunk table. A row is at most DS_CHUNK consecutive elements of one
 * tensor, starting at a multiple of DS_CHUNK. Scalar programs are `void s<phase>_<level>(double
 * *global, double *group, double *cls, double *tensor)` and `void commit_<level>(…)`; pointers of
 * finer levels than the program's are NULL. Kernels of different rows may run on different threads;
 * nothing else is shared but `partial`, of which each row has its own `npartial` doubles.
 */
#ifndef CODEGEN_ABI_H
#define CODEGEN_ABI_H
#include <stdint.h>

enum { DS_CHUNK = 4096, DS_LANES = 128 };

typedef struct DsRow {
    int64_t tensor; /* row of the tensor table */
    int64_t first;  /* its first element in the tensor: a multiple of DS_CHUNK */
    int64_t count;  /* 1 … DS_CHUNK */
} DsRow;

typedef struct DsTensorRow {
    double *u[4];     /* blocks of its global, group, class and tensor level */
    void *const *ptr; /* one pointer per element slot: p, g, states, temporaries; any alignment */
} DsTensorRow;

typedef struct DsArgs {
    const DsRow *rows;
    const DsTensorRow *tensors;
    double *partial; /* partial[row * npartial + column] of the phase */
    int64_t npartial;
} DsArgs;

/* scratch: memory of the calling thread, aligned to 64, of at least BuiltVariant.scratch_bytes. */
typedef void (*DsKernelFn)(const DsArgs *args, int64_t begin, int64_t end, void *scratch);
typedef void (*DsScalarFn)(double *global, double *group, double *cls, double *tensor);
#endif
