/* dsopt.h - the C API: load an optimizer rule, give it your tensors, step.
 *
 *     dsopt_context *ctx;  dsopt_program *prog;  dsopt_optimizer *opt;
 *     dsopt_context_create(&(dsopt_config){.size = sizeof(dsopt_config)}, &ctx);
 *     dsopt_program_load(ctx, "adamw", NULL, &prog);
 *     dsopt_tensor w = {.size = sizeof w, .name = "w", .ndim = 1, .shape = (int64_t[]){n},
 *                       .param = p, .grad = g};
 *     dsopt_optimizer_create(ctx, prog, &w, 1, &opt);
 *     dsopt_set(opt, NULL, "lr", 3e-4);
 *     for (;;) { backward(); dsopt_accumulate(opt, 1); dsopt_step(opt); }
 *
 * Valid C99 and C++11. docs/api.md is the guide to this reference; examples/minimal.c the smallest
 * program.
 *
 * THREE THINGS. A context is a device with its threads, its log and its memory: one per thread of
 * yours that trains. A program is a compiled .opt file: it never changes, knows no tensors, and may
 * be shared. An optimizer is a program, your tensors, and the state that the program keeps for
 * them.
 *
 * ERRORS. Every call that can fail returns a dsopt_status; DSOPT_OK is 0. A call that fails has
 * changed nothing, unless it says otherwise, and has set its output pointers to NULL.
 * dsopt_error_message(ctx) tells what was wrong, in words that name the tensor, the hyperparameter
 * or the line of the program. The library never prints, exits or aborts. Where a handle is
 * documented as required, NULL is DSOPT_INVALID_ARGUMENT; destroy and release accept NULL.
 *
 * THREADS. A context and its optimizers belong to one thread at a time: two calls with the same
 * context (or with optimizers of it) at the same time are an error of the caller that is not
 * detected. Two contexts on two threads need no locking. Programs may be used from any number of
 * threads and contexts at once. Inside a call the context's own worker threads work too; between
 * calls they sleep. After fork() a child may not use what the parent created (its worker threads do
 * not exist there): create a context in the child. Callbacks run on the calling thread, with no
 * lock held. A call needs 256 KB of stack, 1 MB where it loads a program nested as deeply as the
 * language allows.
 *
 * THE SAME BITS. What a step computes does not depend on the number of threads, the backend, the
 * instruction set, the order in which tensors are given, or how a parameter's memory is aligned.
 * Rounding mode and flush-to-zero settings (-ffast-math) of the calling thread are set aside during
 * a step and restored after it.
 *
 * MEMORY. Parameters and gradients stay yours: the library keeps their addresses, reads gradients
 * and writes parameters during dsopt_step only, and never copies, moves or frees them. They must
 * stay valid until the optimizer is destroyed (a gradient: until it is bound anew). Names, shapes
 * and option strings are copied. State belongs to the optimizer. Sizes are counted in elements
 * unless a name says bytes. Strings that are returned live as long as the object they came from,
 * error messages until the next call with that context.
 *
 * STRUCTS that grow with versions begin with `size`: set it to sizeof the struct and zero what you
 * do not use (`{.size = sizeof x}` does both). A member that an older program does not know has the
 * meaning of 0.
 */
#ifndef DSOPT_H
#define DSOPT_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DSOPT_API __attribute__((visibility("default")))
#else
#define DSOPT_API
#endif

/* ---- version --------------------------------------------------------------------------------- */

/* Until 1.0 a minor version may change anything; a patch version changes nothing that is declared
 * here. */
#define DSOPT_VERSION_MAJOR 0
#define DSOPT_VERSION_MINOR 1
#define DSOPT_VERSION_PATCH 0
#define DSOPT_VERSION                                                                              \
    (DSOPT_VERSION_MAJOR * 10000 + DSOPT_VERSION_MINOR * 100 + DSOPT_VERSION_PATCH)

/* DSOPT_VERSION of the library that is linked; dsopt_context_create refuses one that does not match
 * this header. */
DSOPT_API int dsopt_version(void);
DSOPT_API const char *dsopt_version_string(void); /* "0.1.0" */

/* ---- statuses and errors --------------------------------------------------------------------- */

/* X(name, number, text). Numbers never change their meaning. */
#define DSOPT_STATUS_LIST(X)                                                                       \
    X(OK, 0, "no error")                                                                           \
    X(INVALID_ARGUMENT, 1, "an argument is not one this call accepts")                             \
    X(OUT_OF_MEMORY, 2, "out of memory")                                                           \
    X(VERSION_MISMATCH, 3, "the header this program was compiled with is not that of the library") \
    X(NOT_SUPPORTED, 4, "not supported yet")                                                       \
    X(FILE_ERROR, 5, "a file cannot be read")                                                      \
    X(INVALID_PROGRAM, 6, "the optimizer program has errors")                                      \
    X(BACKEND_FAILED, 7, "the backend is not usable here or could not build the program")          \
    X(INVALID_TENSOR, 8, "a tensor is not one an optimizer can be created for")                    \
    X(UNKNOWN_NAME, 9, "there is nothing of this name")                                            \
    X(OUT_OF_RANGE, 10, "the value is outside of its range")                                       \
    X(NOT_SET, 11, "a hyperparameter without a default has no value")                              \
    X(NO_NEW_GRADS, 12, "no new gradients since the last step: dsopt_accumulate was not called")   \
    X(SCALE_MISMATCH, 13, "the gradients' scale is not the optimizer's loss scale")                \
    X(POISONED, 14, "a step failed half way: the optimizer can only be destroyed")                 \
    X(INTERNAL, 15, "a mistake in the library itself: please report it")                           \
    X(WRONG_MODE, 16, "the parameters are those for evaluation: run 'train' before the next step")

typedef enum dsopt_status {
#define DSOPT_X(name, number, text) DSOPT_##name = number,
    DSOPT_STATUS_LIST(DSOPT_X)
#undef DSOPT_X
    DSOPT_STATUS_FORCE_INT = 0x7fffffff
} dsopt_status;

/* "DSOPT_OUT_OF_MEMORY"; an unknown number: "DSOPT_?". */
DSOPT_API const char *dsopt_status_name(dsopt_status status);
DSOPT_API const char *dsopt_status_text(dsopt_status status); /* the text of the list above */

/* ---- contexts -------------------------------------------------------------------------------- */

typedef struct dsopt_context dsopt_context;
typedef struct dsopt_program dsopt_program;
typedef struct dsopt_optimizer dsopt_optimizer;

typedef enum dsopt_log_level { DSOPT_LOG_INFO = 0, DSOPT_LOG_WARNING = 1 } dsopt_log_level;

/* Receives one line without its newline, on the thread that made the call. It may not call the
 * library with the same context. */
typedef void (*dsopt_log_fn)(void *user, dsopt_log_level level, const char *line);

/* Memory for everything the library keeps but thread stacks and the code pages that a backend maps.
 * `realloc` behaves as C's, with alignment for any type; size 0 frees and returns NULL; NULL for a
 * size above 0 means out of memory. Must be usable from any thread that uses a program made with
 * it. realloc NULL: the C library's. */
typedef struct dsopt_allocator {
    void *(*realloc)(void *user, void *ptr, size_t size);
    void *user;
} dsopt_allocator;

typedef struct dsopt_config {
    size_t size;
    const char *device; /* NULL or "cpu"; "cuda:0" is not supported yet and says so */
    int threads;      /* threads of a step, the caller's included; 0: one per processor the calling
                         thread may run on */
    uint64_t seed;    /* of random draws (normal(), uniform(), rademacher() in a rule) */
    dsopt_log_fn log; /* NULL: warnings are not told */
    void *log_user;
    dsopt_allocator alloc;
    const char *backend; /* NULL: "c" (tile code, compiled in memory); "interp": the slow reference;
                            "cc": C through a compiler */
    const char *isa; /* NULL: the best here; "sse2", "avx2", "avx512" force a level of backend "c";
                        one that the processor lacks is DSOPT_NOT_SUPPORTED */
    const char *cc;  /* of backend "cc": command and flags; NULL: $CC or cc, with optimisation */
} dsopt_config;

/* Makes a context and starts its worker threads (threads - 1). config NULL: all members 0. About 50
 * us a thread. *out is to be given to dsopt_context_destroy. On failure dsopt_error_message(NULL)
 * tells why, on the same thread. */
DSOPT_API dsopt_status dsopt_context_create(const dsopt_config *config, dsopt_context **out);
DSOPT_API dsopt_status dsopt_context_create_checked(int version, const dsopt_config *config,
                                                    dsopt_context **out);
#define dsopt_context_create(...)                                                                  \
    dsopt_context_create_checked(DSOPT_VERSION, __VA_ARGS__) /* compares header and library */

/* Ends the worker threads and frees the context. Its optimizers must be destroyed before; programs
 * made with it may live on (a log callback of the context is then no longer called, an allocator
 * still is). */
DSOPT_API void dsopt_context_destroy(dsopt_context *ctx);

/* What the last failed call with this context has to say: one line, or for DSOPT_INVALID_PROGRAM
 * all diagnostics as a compiler prints them, with file:line:col and carets. "" if nothing failed
 * yet. ctx NULL: the last dsopt_context_create of this thread. */
DSOPT_API const char *dsopt_error_message(const dsopt_context *ctx);

/* ---- programs -------------------------------------------------------------------------------- */

typedef struct dsopt_program_options {
    size_t size;
    const char *defines; /* "nesterov=1;K=3": sets flags and const hyperparameters, or makes a
                            hyperparameter a constant */
    const char *storage; /* "m=bf16,v=f16": how states are stored (default f32). "p=…", "g=…":
                            tensors must have this dtype */
    const char *include_dirs; /* folders for `import`, separated by ':'; after the file's own
                                 folder, before the standard library */
    const char *rule;         /* which optimizer of the file; NULL: the only one, or the last. Or an
                                 application of one (docs/language.md, Composition):
                                 "lookahead(adamw(lr = 1e-3), k = 5) { use cautious }" */
    const char *compute; /* NULL or "f32"; "f64": the oracle, element arithmetic in f64 (backend
                            "interp" only; tensors may be f64 then, states are f64 unless `storage`
                            says otherwise) */
} dsopt_program_options;

/* Loads an optimizer: a path ("rules/my.opt": a name with '/' or ending in ".opt" that exists as a
 * file), else the name of a rule of the standard library ("adamw"). options may be NULL. Parses,
 * checks and lowers, about 1 ms; machine code is built when the first optimizer is created, and
 * kept in the program. Warnings of the compiler go to the log. One reference: give it back with
 * dsopt_program_release. */
DSOPT_API dsopt_status dsopt_program_load(dsopt_context *ctx, const char *path_or_name,
                                          const dsopt_program_options *options,
                                          dsopt_program **out);
/* The same from text; `label` stands for the file name in messages (NULL: "<text>"). `import` sees
 * the folder that the label names, if it does not begin with '<', include_dirs and the standard
 * library. */
DSOPT_API dsopt_status dsopt_program_compile(dsopt_context *ctx, const char *text,
                                             const char *label,
                                             const dsopt_program_options *options,
                                             dsopt_program **out);
/* References are counted, and every optimizer holds one: a program may be released as soon as its
 * optimizers are created. */
DSOPT_API void dsopt_program_retain(dsopt_program *prog);
DSOPT_API void dsopt_program_release(dsopt_program *prog);
DSOPT_API const char *dsopt_program_name(const dsopt_program *prog); /* of its rule: "adamw" */

/* Entry points besides the step, `on NAME { … }` in the rule or in what it uses: 0 …
 * dsopt_program_entry_count - 1. NULL: no such number. */
DSOPT_API size_t dsopt_program_entry_count(const dsopt_program *prog);
DSOPT_API const char *dsopt_program_entry_name(const dsopt_program *prog, size_t i);

/* ---- tensors and optimizers ------------------------------------------------------------------ */

/* Dtypes of parameters and gradients: f32, f16, bf16. (f64 only where the program was compiled with
 * compute "f64".) */
typedef enum dsopt_dtype {
    DSOPT_DTYPE_DEFAULT = 0, /* a parameter: f32 (f64 under compute "f64"); a gradient: as its
                                parameter; reads: see there */
    DSOPT_F32 = 1,
    DSOPT_F64 = 2,
    DSOPT_F16 = 3,
    DSOPT_BF16 = 4,
    DSOPT_DTYPE_FORCE_INT = 0x7fffffff
} dsopt_dtype;
DSOPT_API const char *dsopt_dtype_name(dsopt_dtype dtype); /* "bf16"; "?" for an unknown number */

typedef struct dsopt_tensor {
    size_t size;          /* sizeof(dsopt_tensor), in every element of the array */
    const char *name;     /* not empty, unique within the optimizer: reductions over all tensors and
                             checkpoints go by it */
    const char *group;    /* hyperparameters are set per group; NULL: "default" */
    int ndim;             /* 0: one element */
    const int64_t *shape; /* ndim lengths, 0 allowed; may be NULL when ndim is 0 */
    const int64_t *strides; /* in elements; NULL: contiguous, row-major. Other layouts are refused,
                               not copied */
    void *param; /* numel elements of dtype, at any address; may be NULL for an empty tensor */
    const void
        *grad; /* numel elements of grad_dtype; NULL: no gradient until dsopt_bind_gradient */
    dsopt_dtype dtype, grad_dtype;
} dsopt_tensor;

/* Checks all tensors, then allocates and clears the state, and builds the machine code that the
 * program does not have yet (1 ms, once per combination of dtypes). Refused, each with a message
 * that names the tensor: a missing or repeated name, a negative or overflowing shape, strides that
 * are not contiguous, an unsupported dtype, a null parameter that is not empty, a parameter that
 * overlaps another parameter or any gradient, gradients that overlap each other. Nothing is written
 * to the tensors. Legal: no tensors at all, empty tensors, 0-d tensors, more than 2^31 elements,
 * any mixture of dtypes. Costs O(bytes of state). */
DSOPT_API dsopt_status dsopt_optimizer_create(dsopt_context *ctx, dsopt_program *prog,
                                              const dsopt_tensor *tensors, size_t ntensors,
                                              dsopt_optimizer **out);
/* Frees the state and the reference to the program, and touches no tensor. */
DSOPT_API void dsopt_optimizer_destroy(dsopt_optimizer *opt);

/* Tensors keep the numbers of the array that they were given in, 0 … dsopt_tensor_count - 1. The
 * name of one that is not there is NULL; a name is found in the time of one look-up. */
DSOPT_API size_t dsopt_tensor_count(const dsopt_optimizer *opt);
DSOPT_API const char *dsopt_tensor_name(const dsopt_optimizer *opt, size_t i);
DSOPT_API dsopt_status dsopt_tensor_find(dsopt_optimizer *opt, const char *name, size_t *i);

/* ---- hyperparameters ------------------------------------------------------------------------- */

/* A hyperparameter is named by its path in the program, with or without the rule's name in front:
 * "lr", "adamw.lr", "clip_global_norm.limit"; the last name alone will do where it is the only one
 * ("limit"). Names are matched exactly, and an unknown one is answered with the closest. Values are
 * f64 and take effect at the next step; nothing is compiled again.
 *
 * dsopt_set: group NULL sets all groups, and is the only form for hyperparameters that are global.
 * Values outside of the declared range are refused with the range in the message, NaN always,
 * infinities unless the range admits them. A value that becomes 0 or infinite when rounded to f32
 * (eps = 1e-60) is set, and a warning goes to the log; a hyperparameter that followed a schedule
 * does not any longer, and the log says so, as it does of parameters of that schedule set later:
 * they have no effect. Costs a look-up by name, about 0.2 us.
 * dsopt_get: group NULL asks for the value that all groups have, and is an error where they differ.
 * Where the default uses others (`lr = cosine(…)`, `wd = lr / 10`) and none was set, it is what the
 * next step would use. DSOPT_NOT_SET: there is no value, or one that it follows has none. */
DSOPT_API dsopt_status dsopt_set(dsopt_optimizer *opt, const char *group, const char *path,
                                 double value);
DSOPT_API dsopt_status dsopt_get(dsopt_optimizer *opt, const char *group, const char *path,
                                 double *value);

/* The same without the look-up, for values that change at every step. A handle belongs to its
 * optimizer. */
typedef struct dsopt_handle {
    uint32_t slot, group;
} dsopt_handle;
DSOPT_API dsopt_status dsopt_handle_find(dsopt_optimizer *opt, const char *group, const char *path,
                                         dsopt_handle *handle);
DSOPT_API dsopt_status dsopt_handle_set(dsopt_optimizer *opt, dsopt_handle handle, double value);
DSOPT_API dsopt_status dsopt_handle_get(dsopt_optimizer *opt, dsopt_handle handle, double *value);

/* All elements of an array (`hyper beta[K]`), which one by one are "beta[0]", "beta[1]", …: `count`
 * must be their number. All are checked before the first is set. */
DSOPT_API dsopt_status dsopt_set_array(dsopt_optimizer *opt, const char *group, const char *path,
                                       const double *values, int64_t count);

/* All hyperparameters, each once per group, global ones once: 0 … dsopt_hyper_count - 1. */
typedef struct dsopt_hyper_info {
    size_t size;
    const char *path;  /* "adamw.lr" */
    const char *group; /* NULL: global */
    int is_set; /* 0: it has neither a value nor a default of its own: `value` is what it follows
                   now, a schedule for one, or NaN */
    double value;
    double lo, hi; /* the declared range; -inf and inf where it is open */
    int lo_open, hi_open;
} dsopt_hyper_info;
DSOPT_API size_t dsopt_hyper_count(const dsopt_optimizer *opt);
DSOPT_API dsopt_status dsopt_hyper_info_read(dsopt_optimizer *opt, size_t i,
                                             dsopt_hyper_info *info);

/* Inputs: what a rule needs to be told at every step (`input loss`). Any number, NaN included; it
 * stays until another is given. A step, or a run of an entry point, that reads one which was never
 * given is DSOPT_NOT_SET, and names it. The handle is for dsopt_handle_set and dsopt_handle_get. */
DSOPT_API dsopt_status dsopt_set_input(dsopt_optimizer *opt, const char *name, double value);
DSOPT_API dsopt_status dsopt_input_find(dsopt_optimizer *opt, const char *name,
                                        dsopt_handle *handle);
DSOPT_API size_t dsopt_input_count(const dsopt_optimizer *opt);
DSOPT_API const char *dsopt_input_name(const dsopt_optimizer *opt, size_t i);

/* ---- stepping -------------------------------------------------------------------------------- */

/* "These gradients are ready": marks one new generation of gradients. Nothing is added, divided or
 * copied (no program of this version accumulates): the next step reads the buffers as they are
 * then. `scale_used` is the factor the loss was multiplied by; it must be 1 here, since no program
 * of this version has a loss scaler: anything else is DSOPT_SCALE_MISMATCH, and no new generation.
 * A third generation without an applied step is told to the log, once until a step is applied, with
 * the reason. */
DSOPT_API dsopt_status dsopt_accumulate(dsopt_optimizer *opt, double scale_used);

/* Gives tensor i another gradient buffer, of the dtype it was created with; NULL: no gradient from
 * now on. Marks no generation. A tensor without a gradient keeps its bits, its state and its t. A
 * buffer that overlaps a parameter or another tensor's gradient is refused at the next dsopt_step
 * (so that buffers can be exchanged one by one), and the step changes nothing. */
DSOPT_API dsopt_status dsopt_bind_gradient(dsopt_optimizer *opt, size_t i, const void *grad);

/* One update of all tensors that have a gradient. DSOPT_OK for every outcome in which nothing is
 * wrong: the report has it. Without a dsopt_accumulate since the last step that used its gradients:
 * DSOPT_NO_NEW_GRADS, and nothing moves. A failure in the middle (the device died; none is possible
 * on "cpu" once work has begun, but running out of memory under "interp" before anything is written
 * is not in the middle) leaves the optimizer poisoned: every later call says so, only destroy is
 * accepted. Allocates nothing, but under backend "interp". Returns when all is done. */
DSOPT_API dsopt_status dsopt_step(dsopt_optimizer *opt);

/* Runs an entry point of the rule, `on NAME`: on all tensors, whether they have a gradient or not;
 * `on NAME(x)`: on those that have one, with the gradients as x. Uses no generation of gradients
 * and counts as no step: t and s stay, and so does the report. dsopt_run_with gives other buffers
 * as x: one per tensor, of the dtypes of their gradients, NULL where a tensor takes no part; they
 * may not overlap parameters or each other, and are read during the call only.
 *
 * A rule that has `on eval` and `on train` is in one of two modes, training at first: in the other
 * dsopt_step is DSOPT_WRONG_MODE, and an entry point that leads to the mode it is in does nothing.
 * An optimizer whose states are read in evaluation mode must be put into that mode again after they
 * are written into another (better: save in training mode). */
DSOPT_API dsopt_status dsopt_run(dsopt_optimizer *opt, const char *entry);
DSOPT_API dsopt_status dsopt_run_with(dsopt_optimizer *opt, const char *entry,
                                      const void *const *buffers, size_t count);

typedef enum dsopt_result {
    DSOPT_STEP_NONE = 0, /* there was no step yet */
    DSOPT_STEP_APPLIED = 1,
    DSOPT_STEP_SKIPPED_OVERFLOW =
        2, /* a gradient is infinite or NaN and the program guards against it: nothing changed */
    DSOPT_STEP_NOT_BOUNDARY = 3, /* reserved for windows of several micro-batches */
    DSOPT_STEP_NO_GRADS = 4,     /* no tensor that has elements has a gradient: nothing changed */
    DSOPT_STEP_NO_NEW_GRADS = 5, /* nothing changed; dsopt_step returned DSOPT_NO_NEW_GRADS */
    DSOPT_STEP_LR_ZERO = 6,      /* applied, but lr was set to 0, or is by default, in every group
                                    (what a schedule of the rule gives is not looked at) */
    DSOPT_RESULT_FORCE_INT = 0x7fffffff
} dsopt_result;
DSOPT_API const char *dsopt_result_name(dsopt_result result); /* "APPLIED" */

enum {
    DSOPT_LATEST = 0,
    DSOPT_WAIT = 1
}; /* how to read a report: on "cpu" a step is complete when it returns, so both are equal */

/* Of the last dsopt_step. */
typedef struct dsopt_report {
    size_t size;
    dsopt_result result;
    int64_t step;       /* applied steps of this optimizer so far */
    int64_t micro;      /* calls of dsopt_accumulate that the step saw */
    double loss_scale;  /* 1 */
    double divisor;     /* what gradients were divided by: 1 */
    double grad_norm;   /* what the program exports under this name, before clipping; NaN if it
                           exports none */
    int64_t bad_tensor; /* SKIPPED_OVERFLOW: the first tensor, in the order given, with a bad
                           gradient; else -1 */
    int64_t bad_index;  /* its first bad element; else -1 */
    int64_t bad_rank;   /* the rank that has it: 0; else -1 */
    int64_t tensors;    /* tensors that took part */
    char reason[192];   /* why nothing moved, in words; "" where it did */
} dsopt_report;

/* Copies the report of the last step; costs nothing to speak of. `mode` DSOPT_LATEST or
 * DSOPT_WAIT. */
DSOPT_API dsopt_status dsopt_report_read(dsopt_optimizer *opt, dsopt_report *report, int mode);
/* A value that the program exports, as the last step that ran left it (one that was skipped
 * computes its exports, too): `export n as grad_norm` -> "grad_norm". Exports with one value per
 * group or tensor are read by dsopt_export_read. NaN before the first step. */
DSOPT_API dsopt_status dsopt_report_export(dsopt_optimizer *opt, const char *name, double *value);

/* All exports, 0 … dsopt_export_count - 1: those of the step, then those of entry points alone.
 * dsopt_export_read copies `count` values, which must be info.count; groups are in byte order of
 * their names, tensors in the order given. NaN: not computed yet, by no step in which the group or
 * tensor took part. A number that is not there, or another count, is DSOPT_INVALID_ARGUMENT. */
typedef struct dsopt_export_info {
    size_t size;
    const char *name;
    const char *rate; /* "global", "group", "tensor" */
    int64_t count;    /* values: 1, one per group, one per tensor */
} dsopt_export_info;
DSOPT_API size_t dsopt_export_count(const dsopt_optimizer *opt);
DSOPT_API dsopt_status dsopt_export_info_read(dsopt_optimizer *opt, size_t i,
                                              dsopt_export_info *info);
DSOPT_API dsopt_status dsopt_export_read(dsopt_optimizer *opt, size_t i, double *values,
                                         int64_t count);

/* ---- state ----------------------------------------------------------------------------------- */

/* All that an optimizer carries from step to step: for every tensor the states that the rule keeps
 * for its shape, and its clock t (applied steps of this tensor), for every group and globally the
 * states of those rates, and s (applied steps of the rule). With parameters and hyperparameters
 * this is everything: written back into a fresh optimizer, training goes on with the same bits. */
typedef struct dsopt_state_info {
    size_t size;
    const char *path; /* "default.adamw.m": group, path in the program; global: "adamw.s". Stable: a
                         checkpoint's key */
    const char *name; /* "m" */
    const char *rate; /* "element", "row", "col", "matrix", "block", "tensor", "group", "global" */
    int64_t tensor;   /* which tensor; -1 for rates group and global */
    const char *group; /* NULL for rate global */
    dsopt_dtype dtype; /* as stored */
    int64_t count;     /* values: the tensor's elements, its rows, …, or 1; empty: 0 */
    int ndim;          /* how they lie: 0 a scalar, 1 [count], 2 for rows and columns of several */
    int64_t dims[2];   /* matrices: [matrices, rows] */
} dsopt_state_info;
DSOPT_API size_t dsopt_state_count(const dsopt_optimizer *opt);
DSOPT_API dsopt_status dsopt_state_info_read(dsopt_optimizer *opt, size_t i,
                                             dsopt_state_info *info);
/* The index of a state by tensor (its name; NULL for group and global states) and by name or path,
 * whole or without its first parts: ("fc1.weight", "m"), ("fc1.weight", "t"), (NULL, "s"). */
DSOPT_API dsopt_status dsopt_state_find(dsopt_optimizer *opt, const char *tensor, const char *path,
                                        size_t *i);
/* Copies `count` values (all of them: any other count is refused) of state i, converted to or from
 * dtype; DSOPT_DTYPE_DEFAULT: as stored, without any conversion. Writing t or s refuses what is not
 * a whole number of steps (0 … 2^53). A state that its rule has not initialised yet (t = 0) reads
 * as its initial value, or 0 where that is computed in the first step; that step computes it over
 * whatever was written, so write t too. */
DSOPT_API dsopt_status dsopt_state_read(dsopt_optimizer *opt, size_t i, dsopt_dtype dtype,
                                        void *values, int64_t count);
DSOPT_API dsopt_status dsopt_state_write(dsopt_optimizer *opt, size_t i, dsopt_dtype dtype,
                                         const void *values, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
