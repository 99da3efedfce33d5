/* internal.h - what the files of the runtime share; dsopt.h is what the world sees.
 *
 *     context.c     contexts             optimizer.c  create, destroy
 *     program.c     programs, built      validate.c   tensors as given
 *     device_cpu.c  the thread pool      bind.c       tables of a step
 *     error.c       messages, memory     exec.c       the plan executor
 *     step.c        a step, its outcome  join.c       where partial results meet
 *     entry.c       `on NAME`, inputs    hyper.c      hyperparameters
 *     report.c      reports, exports     state.c      states by name
 *     place.c       memory of states and temporaries
 *
 * An optimizer's numbers live in blocks of doubles, one per level (codegen/plan.h); tensors without
 * elements have a block too, but take no part in anything else. What an entry point needs to run
 * (the step, or `on NAME`) is an OptEntry; all share blocks, parameters and states, which stand at
 * the same places in all their modules. Everything is allocated when the optimizer is created.
 */
#ifndef RUNTIME_INTERNAL_H
#define RUNTIME_INTERNAL_H
#include "codegen/codegen.h"
#include "dsopt.h"
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>

#ifdef dsopt_context_create
#undef dsopt_context_create
#endif

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

/* ---- error.c --------------------------------------------------------------------------------- */

/* Keeps a message in the context (or, ctx NULL, in the thread) and returns `status`. */
dsopt_status error_set(dsopt_context *ctx, dsopt_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a text of any length; where there is no memory for it, its head. */
dsopt_status error_set_text(dsopt_context *ctx, dsopt_status status, const char *text);
dsopt_status error_oom(dsopt_context *ctx);
void log_line(dsopt_context *ctx, dsopt_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Memory from the user's allocator, or the C library's. Regions are zeroed, aligned to 64, and may
 * be huge. */
void *mem_realloc(const Allocator *a, void *p, size_t bytes);
void mem_free(const Allocator *a, void *p);
typedef struct Region {
    void *base;    /* aligned; NULL: empty */
    void *raw;     /* what the allocator gave */
    size_t mapped; /* bytes of an own mapping; 0: raw is the allocator's */
} Region;
bool region_alloc(const Allocator *a, size_t bytes, Region *out);
void region_free(const Allocator *a, Region *r);

/* Calls body(arg) with `a` set to jump back here when memory runs out: then DSOPT_OUT_OF_MEMORY,
 * kept in ctx. */
dsopt_status arena_try(dsopt_context *ctx, Arena *a, dsopt_status (*body)(void *arg), void *arg);

/* Structs from callers of other versions: copies what both know, zeroes the rest. False: `size` is
 * 0 or smaller than any version's, or members that this version does not know are set; the message
 * names the struct. */
bool struct_in(dsopt_context *ctx, const char *name, void *to, size_t known, const void *from,
               dsopt_status *status);
/* Writes back at most the caller's size. */
bool struct_out(dsopt_context *ctx, const char *name, void *to, const void *from, size_t known,
                dsopt_status *status);

/* A closed set of strings -> index, open addressing; memory from an arena. */
typedef struct NameMap {
    const char **keys;
    uint32_t *values;
    size_t mask;
} NameMap;
void names_init(NameMap *map, Arena *a, size_t most);
/* The value under `key`, after putting `value` there if it was absent (*added). The key is not
 * copied. */
uint32_t names_put(NameMap *map, const char *key, uint32_t value, bool *added);
int64_t names_get(const NameMap *map, const char *key); /* -1: absent */

/* ---- context.c, device_cpu.c ----------------------------------------------------------------- */

typedef struct Pool Pool;

struct dsopt_context {
    Allocator alloc;
    dsopt_log_fn log;
    void *log_user;
    const Backend *backend;
    BackendOptions options;
    char *strings; /* isa and cc, owned */
    Pool *pool;
    uint64_t seed;
    char line[1024]; /* the last error, if it is one line */
    char *text;      /* if it is longer; owned */
};

typedef void (*PoolJob)(void *arg, int worker, void *scratch);

Pool *pool_new(const Allocator *a, int threads); /* NULL: out of memory, or of threads */
void pool_free(Pool *p);
int pool_threads(const Pool *p);
bool pool_reserve(Pool *p, size_t scratch_bytes); /* per thread; not while a job runs */
void *pool_scratch(Pool *p, int worker);
/* Runs job(arg, 0, scratch) here and job(arg, 1 … threads - 1, scratch) on those workers that come
 * in time; each call of the job must do what the others have left. Returns when all is done. A
 * brief job is one that is not worth waking a thread for. */
void pool_run(Pool *p, int threads, bool brief, PoolJob job, void *arg);

/* The floating-point environment of a step: round to nearest, no flush to zero, exceptions masked.
 */
unsigned fpenv_enter(void);
void fpenv_leave(unsigned saved);
static inline void fpenv_restore(const unsigned *saved)
{
    fpenv_leave(*saved);
}
/* From here to the end of the block. */
#define FPENV_HERE                                                                                 \
    __attribute__((cleanup(fpenv_restore), unused)) unsigned fpenv_saved = fpenv_enter()

/* All that arithmetic, and reading and writing of numbers, depends on in the calling thread: both
 * floating-point units and the locale. For calls that compile. */
typedef struct HostState {
    fenv_t fp;
    locale_t locale;
} HostState;
HostState host_enter(void);
void host_leave(const HostState *saved);
#define HOST_HERE __attribute__((cleanup(host_leave), unused)) HostState host_saved = host_enter()

/* ---- program.c ------------------------------------------------------------------------------- */

/* Machine code under one backend: of one variant of a module, and of its scalar programs. */
typedef struct Built {
    struct Built *next;
    const Backend *backend;
    const char *isa, *cc; /* NULL or a text, as in BackendOptions */
    const Variant *variant;
    BuiltVariant code;
} Built;
typedef struct BuiltPrograms {
    struct BuiltPrograms *next;
    const Backend *backend;
    const char *isa, *cc;
    BuiltScalars code;
} BuiltPrograms;

/* One lowering of the program's rule: the step, without or with the guard of 16-bit gradients, or
 * an entry point. */
typedef struct ProgramModule {
    const char *entry; /* NULL: the step */
    bool guarded;
    bool takes_buffers; /* `on NAME(x)` */
    IrModule *lowered;  /* before the passes; NULL: not yet */
    IrModule *m;        /* NULL: not made yet */
    Plan *plan;
    Variant **variants; /* each (body, storage) scheduled so far */
    size_t nvariants, cap;
    Built *built;
    BuiltPrograms *scalars;
    DType *storage; /* per slot of elements or vectors as options say; p and g: DT_COUNT where they
                       say nothing */
} ProgramModule;

/* The checked rule, from which modules are lowered. */
typedef struct ProgramSource {
    SourceSet sources;
    DiagSink diags;
    Ast ast;
    Rule *rule;
    FrontendOptions options;
    const char *storage;
} ProgramSource;

struct dsopt_program {
    atomic_int refs;
    Allocator alloc;
    pthread_mutex_t lock; /* of all below */
    Arena arena;
    bool compute_f64;
    const char *name;
    ProgramModule *modules; /* [guarded] the step, then the entry points */
    size_t nmodules;
    ProgramSource source;
};

/* Lowers modules[k] when first asked for, and schedules it if the context's backend needs that. */
dsopt_status program_module(dsopt_context *ctx, dsopt_program *p, ProgramModule *pm);
/* Code for a body under a storage of its element slots; and the scalar programs. Both cached in the
 * program. */
dsopt_status program_build(dsopt_context *ctx, dsopt_program *p, ProgramModule *pm, uint32_t body,
                           const DType *storage, const Built **out);
dsopt_status program_build_scalars(dsopt_context *ctx, dsopt_program *p, ProgramModule *pm,
                                   const BuiltPrograms **out);

/* ---- optimizers ------------------------------------------------------------------------------ */

/* A tensor as it was given, checked. */
typedef struct TensorInfo {
    const char *name;
    uint32_t group;
    uint32_t kind; /* which states it has: TensorKind */
    int ndim;
    const int64_t *shape;
    int64_t numel;
    DType dtype, grad_dtype;
    void *param;
    const void *grad;
    int64_t live; /* its place among the tensors that have elements; -1: it has none */
    uint64_t name_hash;
    double *block;
} TensorInfo;

/* Tensors that run the same bodies have the same states. */
typedef struct TensorKind {
    uint32_t *bodies; /* per entry point */
    uint8_t *uses;    /* per slot: a body of its loads or stores it */
    uint32_t *states; /* indices into dsopt_optimizer.tensor_states */
    uint32_t nstates;
} TensorKind;

typedef struct OptGroup {
    const char *name;
    double *block;
    uint8_t *is_set; /* per hyper slot of group rate, by slot number: has a value */
} OptGroup;

typedef struct OptVariant {
    uint32_t body;
    const Variant *v; /* NULL under interp */
    const Built *built;
    int *kernel_of_phase; /* index into v->kernels, -1: none */
    size_t row_begin, row_end;
    DType *storage;
} OptVariant;

/* What a tensor that has elements is to an entry point. */
typedef struct LiveTensor {
    uint32_t info; /* index into tensors */
    uint32_t variant;
    uint32_t class_;
    size_t row, nrows; /* its rows in the table, while it takes part */
    ViewDims dims;
} LiveTensor;

typedef enum VectorKind { VEC_MATRIX, VEC_ROW, VEC_COL, VEC_BLOCK, VEC_COUNT } VectorKind;
static inline VectorKind vector_kind(Rate r)
{
    return r & AXIS_BLOCK ? VEC_BLOCK
           : r & AXIS_COL ? VEC_COL
           : r & AXIS_ROW ? VEC_ROW
                          : VEC_MATRIX;
}

/* A body of an entry point: who runs it. */
typedef struct BodyRun {
    size_t begin, end;       /* in OptEntry.active */
    bool *groups;            /* per group: one of its tensors takes part */
    bool vectors[VEC_COUNT]; /* it has programs of this rate */
    size_t vector_begin[VEC_COUNT], vector_end[VEC_COUNT]; /* their rows */
} BodyRun;

typedef struct Share {
    _Alignas(64) atomic_size_t next;
    size_t end, batch;
} Share;

typedef struct Interval {
    uintptr_t begin, end;
    uint32_t tensor;
    bool is_grad;
} Interval;

typedef enum ExecOutcome { EXEC_DONE, EXEC_NOTHING_WRITTEN, EXEC_HALF_DONE } ExecOutcome;

/* The step, or an entry point: a module, its plan and code, and the tables that it walks (bind.c).
 */
typedef struct OptEntry {
    const char *name; /* "step", "eval" */
    ProgramModule *pm;
    const IrModule *m;
    const Plan *plan; /* NULL under interp */
    const BuiltPrograms *programs;
    ExecState x; /* the tensors that have elements, as executors see them */
    LiveTensor *live;
    OptVariant *variants; /* in order of their bodies */
    size_t nvariants;
    uint32_t nptr;    /* pointers of a tensor: slots of elements and vectors, then temporaries */
    int skip_slot;    /* slot number; -1: none */
    int draw_slot[2]; /* draw_lo and draw_hi, where the module loads them; -1 */
    double *exports;  /* its exports, while another entry point's are in the blocks */

    bool stale; /* which tensors take part, or their t, has changed: tables are to be rebuilt */
    uint32_t *active; /* live tensors that take part, in order of rows */
    size_t nactive;
    BodyRun *bodies;
    uint32_t first_body;   /* the first that a tensor runs; it commits what is global */
    uint32_t *group_first; /* per group */
    DsRow *rows, *vector_rows;
    size_t nrows;
    DsTensorRow *tensor_rows;
    double *class_blocks;
    uint32_t *class_rep; /* a live tensor of each class */
    uint32_t *class_table;
    size_t nclasses, class_mask;
    double *partial;
    int *npartial; /* per phase */
    double *roots; /* one value per tensor, or two */
    unsigned char *present;
    size_t *split; /* where the rows of each share begin: [nshares + 1] */
    Share *shares; /* rows not yet taken, while a sweep runs */
    int nshares;
    bool brief; /* a sweep is so short that sleeping threads are left alone */
    Region tables;
} OptEntry;

static inline uint32_t vectors_of(const OptEntry *e, uint32_t body)
{
    return e->plan->nvectors ? e->plan->nvectors[body] : 0;
}

struct dsopt_optimizer {
    dsopt_context *ctx;
    dsopt_program *prog;
    OptEntry *entries; /* the step, then those of the program */
    size_t nentries;
    OptEntry *current; /* whose exports and properties are in the blocks */
    ProgramModule *pm; /* of the step; slots up to the states are the same in all modules */
    const IrModule *m;
    Arena arena; /* names and tables */
    Region state, blocks, temps;

    TensorInfo *tensors;
    size_t ntensors;
    TensorKind *kinds;
    uint32_t nkinds;
    NameMap tensor_names, group_names;
    OptGroup *groups; /* in byte order of names */
    uint32_t ngroups;
    uint8_t *global_set; /* per slot: a global hyper, or an input, has a value */
    size_t block_size[LEVEL_COUNT];
    int t_slot, numel_all_slot, lr_slot; /* slot numbers; -1: none */
    const char *poison;                  /* why only destroy is accepted; NULL: healthy */

    double *global; /* blocks */
    double **group;
    uint32_t nlive;     /* tensors that have elements */
    uint32_t *by_rank;  /* live tensors in byte order of names */
    uint32_t *by_group; /* the same group by group; a group's begin at group_begin[group] */
    uint32_t *group_begin;
    uint32_t nelem; /* slots of elements and vectors */
    bool rebound;   /* a gradient was bound: overlaps are to be checked */
    Interval *spans, *spans_tmp;

    ExecOutcome (*exec)(dsopt_optimizer *opt, OptEntry *e);

    /* the loop around it */
    int64_t micro;     /* accumulates since a step used the gradients */
    int64_t unapplied; /* accumulates since a step was applied */
    char refused[192]; /* why the last dsopt_step that had gradients failed; "": it did not */
    bool warned;
    bool hypers_complete; /* every hyperparameter that needs a value has one */
    bool eval_mode;       /* `on eval` ran, and `on train` has not since */
    int64_t steps;
    dsopt_report report;

    /* states by name (state.c) */
    uint32_t *tensor_states, *group_states, *global_states; /* slot numbers */
    uint32_t ntensor_states, ngroup_states, nglobal_states;
    size_t *state_begin; /* [tensor]: number of its first state; [ntensors]: of all of tensors */
    const char **paths;  /* [group][tensor state, then group state], then global states */
};

/* Every call on an optimizer begins so. */
#define OPT_CHECK(opt)                                                                             \
    do {                                                                                           \
        if (!(opt)) return DSOPT_INVALID_ARGUMENT;                                                 \
        if ((opt)->poison)                                                                         \
            return error_set((opt)->ctx, DSOPT_POISONED,                                           \
                             "this optimizer can only be destroyed: %s", (opt)->poison);           \
    } while (0)

/* validate.c */
DType dtype_internal(dsopt_dtype d); /* DT_COUNT: the default, or none that is known */
/* Checks tensors and copies what is kept of them into opt (its arena jumps when out of memory):
 * tensors, tensor_names, spans. */
dsopt_status tensors_validate(dsopt_optimizer *opt, const dsopt_tensor *given, size_t n, bool f64,
                              const char ***group_of);
/* Whether memory is shared where it may not be, now; the message names both tensors. `buffers`: in
 * place of the gradients, or NULL. */
dsopt_status overlaps_check(dsopt_optimizer *opt, const void *const *buffers);

/* place.c: from the arena, which jumps when out of memory. */
dsopt_status choose_bodies(dsopt_optimizer *opt); /* kinds, dims */
dsopt_status make_blocks(dsopt_optimizer *opt);
dsopt_status make_state(dsopt_optimizer *opt);
/* As the first body that uses a state sees a live tensor; NULL: none does. */
const ViewDims *state_view(const dsopt_optimizer *opt, uint32_t live, const Slot *s);

/* bind.c */
dsopt_status tables_alloc(dsopt_optimizer *opt, OptEntry *e);
/* Before gradients are read: those bound since may overlap. */
dsopt_status gradients_check(dsopt_optimizer *opt);
/* Before a run: who takes part; allocates nothing. */
void tables_update(dsopt_optimizer *opt, OptEntry *e);

/* entry.c */
/* Makes `e` the one whose exports and properties are in the blocks. */
void entry_enter(dsopt_optimizer *opt, OptEntry *e);
size_t entry_exports_size(const dsopt_optimizer *opt, const OptEntry *e);
typedef enum ExportsDo { EXPORTS_SAVE, EXPORTS_LOAD, EXPORTS_CLEAR } ExportsDo;
void entry_exports(dsopt_optimizer *opt, OptEntry *e, ExportsDo what);
/* The values of one export (1, one per group, one per tensor) as the last run left them. */
void entry_export_read(const dsopt_optimizer *opt, const OptEntry *e, const Slot *s, double *out);
/* All inputs that the entry loads have been given. */
dsopt_status entry_check_inputs(dsopt_optimizer *opt, const OptEntry *e);
dsopt_status entry_failed(dsopt_optimizer *opt, ExecOutcome outcome);
bool module_loads(const IrModule *m, int slot);

/* exec.c, join.c */
ExecOutcome exec_plan(dsopt_optimizer *opt, OptEntry *e);
ExecOutcome exec_interp(dsopt_optimizer *opt, OptEntry *e);
void join_phase(dsopt_optimizer *opt, OptEntry *e, int phase);

/* hyper.c, state.c */
void hyper_init(dsopt_optimizer *opt);
dsopt_status hyper_check_set(dsopt_optimizer *opt); /* all that the next step needs have values */
void state_names(dsopt_optimizer *opt);             /* from the arena; jumps when out of memory */
/* How well `wanted` names `full`: 3 all of it, 2 all but the first part, 1 the last parts, 0 not at
 * all. */
int path_match(const char *full, const char *wanted);
void state_fill(void *base, DType storage, int64_t count, double value);
#endif
