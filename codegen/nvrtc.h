/* CUDA C++ text to PTX or cubin, by NVIDIA's run-time compiler, opened with dlopen.
 *
 *   in:  "extern \"C\" __global__ void k(float *p) { p[0] = 1; }", "k.cu", "compute_75", NVRTC_PTX
 *   out: true; result.data is the PTX text (NUL-terminated), result.log the warnings, often ""
 *        or false; result.log says what is wrong with the text, or what is missing here
 *
 * libnvrtc.so.13 is looked for, in this order: $DSOPT_NVRTC (a file or a folder; "none" hides it; a
 * value that does not work is an error, nothing else is tried), a folder nvrtc/ beside the build's
 * bin/ and lib/, $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, the loader's own search. It is opened
 * once per process and stays. No GPU or driver is needed. Any thread may call. */
#ifndef DSOPT_CODEGEN_NVRTC_H
#define DSOPT_CODEGEN_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

typedef enum NvrtcOutput { NVRTC_PTX, NVRTC_CUBIN } NvrtcOutput;

typedef struct NvrtcResult {
    char *data;         /* PTX text or cubin bytes; NULL after a failure */
    size_t size;        /* without the NUL that follows PTX */
    char *log;          /* never NULL; the compiler's messages, or why it could not run */
    bool out_of_memory; /* after a failure: memory was the reason */
} NvrtcResult;

/* Whether NVRTC can be used here; if not, `why` (if size > 0) says what is missing and what helps.
 */
bool nvrtc_probe(char *why, size_t size);

/* The version and the file it came from; false if nvrtc_probe is false. */
bool nvrtc_version(int *major, int *minor, const char **path);

/* Compiles with the project's meaning of arithmetic (no contraction, IEEE division and square root,
 * no flush to zero). `arch` is "compute_NN" (PTX) or "sm_NN" (PTX or cubin); `name` is how messages
 * call the text; `options` are further options of the compiler. Free `result` in either case. */
bool nvrtc_compile(const char *source, const char *name, const char *arch, NvrtcOutput output,
                   const char *const *options, size_t option_count, NvrtcResult *result);

void nvrtc_result_free(NvrtcResult *result);

#endif
