/* ir.h - the intermediate representation: what one step does to every tensor, as flat SSA.
 *
 * An IrModule is what one entry point does: a table of slots (everything that lives outside the
 * step: p, g, states, hyperparameters, counters, results of reductions, exports) and bodies, one per
 * shape arm. The modules of a rule's entry points agree in the slots up to its states. A body is an array of instructions, operands before
 * users, no control flow: choice is `select`, effects are guarded stores at the end and reductions,
 * which write slots. Values at scalar and matrix rates are f64 (or bool); values over rows, columns,
 * blocks and elements are f32 (or bool; f64 between a reduction and its `round`); `round` is the one
 * rounding of a scalar where it meets elements. With
 * `compute_f64` (the oracle's lowering) elements are f64 and there is no round.
 *
 *     m := lerp(g, m, b1)   ->   %14:f32.element = mul %12 %13
 *                                 %17:f32.element = mul %16 %10
 *                                 %18:f32.element = add %14 %17
 *                                 store m %18 if %65
 *
 * Emission goes through the builder, which infers dtype and rate, rounds scalars where they meet
 * elements, folds constants through the op table and shares equal instructions: there is no
 * unoptimised IR. docs/ir.md is the reference of the text form.
 */
#ifndef CODEGEN_IR_H
#define CODEGEN_IR_H
#include "frontend/frontend.h"
#include <string.h>

typedef uint32_t IrRef; /* index of an instruction in its body */
#define IR_NONE UINT32_MAX

/* Instruction kinds: the map ops of ops.def first (IR_ADD == OP_ADD), then these, then the
 * reductions (IR_RED + RED_SUM). */
typedef enum IrOp {
#define OP(ENUM, name, spelling, arity, types, expr) IR_##ENUM,
#include "frontend/ops.def"
    IR_CONST,      /* lit.num; f64.global, f32.global or bool.global */
    IR_LOAD,       /* lit.slot: the value of a slot as it was when the step began */
    IR_ROUND,      /* arg[0] f64 at any rate but element -> f32 of the same rate */
    IR_NORMAL,     /* draws: arg[0], arg[1] the halves of the tensor's key of this step (draw_lo,
                      draw_hi); lit.slot: number of the site. f32.element (f64 under compute_f64);
                      a function of key, site and the row-major index of the element */
    IR_UNIFORM,    /* in [0, 1) */
    IR_RADEMACHER, /* -1 or 1 */
    IR_RED, /* IR_RED + ReduceOp: arg[0] (arg[1] for dot) over the tensors whose arg[2] (bool,
                 tensor rate or coarser; IR_NONE: all) holds, at the scope that `rate` names;
                 lit.slot: the slot that the result is written to. f64, or bool for any and all;
                 so at row, col and block rate, too */
    IR_OP_END = IR_RED + RED_COUNT_
} IrOp;

typedef struct Ins {
    uint8_t op;    /* IrOp */
    uint8_t dtype; /* DType: bool, f32, f64 */
    Rate rate;
    IrRef arg[3]; /* IR_NONE where absent */
    union {
        double num;
        uint32_t slot;
    } lit;
} Ins;
_Static_assert(sizeof(Ins) == 24, "Ins is 24 bytes");

typedef enum SlotKind {
    SLOT_PARAM,  /* p */
    SLOT_GRAD,   /* g: read only */
    SLOT_HYPER,  /* group or global rate; `def` its default */
    SLOT_STATE,  /* any rate */
    SLOT_COUNT,  /* t: f64.tensor, s: f64.global; loads give applied steps so far (t of this step is
                    load + 1). init (tensor), group_init (group): 1 once initial values were taken */
    SLOT_INPUT,  /* f64.global, given by the host before the step */
    SLOT_PROP,   /* of the tensor: numel ndim; rows cols mats of the last two axes; first (size of
                    the first axis), gbits (storage bits of its gradient), draw_lo draw_hi;
                    name_is, name_like: 1 where its name is the slot's path, or has what this POSIX
                    ERE says, else 0; numel_all: of all tensors of this step */
    SLOT_RESULT, /* of a reduction */
    SLOT_EXPORT, /* f64.global (bool exports are 0 or 1), or of coarser than element rate: value
                    read after the step */
    SLOT_SKIP,   /* bool.global: 1 when the step is skipped; at most one */
    SLOT_ARM,    /* f64.tensor, stored by `select`: number of the body that a tensor runs */
    SLOT_BLOCK,  /* f64.tensor, stored by `select`: elements of a block */
} SlotKind;

typedef struct Slot {
    SlotKind kind;
    DType dtype;   /* of loaded values: f32 for elements (f64 under compute_f64), f64 for scalars */
    DType storage; /* SLOT_STATE at scalar rates: f64, or f32 where declared so. Element slots:
                      storage is decided at bind */
    Rate rate;
    const char *name; /* short: "m", "lr", "t" */
    const char *path; /* "lamb.clip_global_norm.limit", "adamw.m"; "" for implicit ones */
    /* HYPER: default and range as set-time checks see them. Defaults that depend on other hypers
     * are evaluated where read and have no slot value of their own: has_default false, derived
     * true; the slot holds NaN (which no range admits) until the hyper is set, and the body chooses
     * between the two. */
    bool has_default, lo_open, hi_open, derived;
    double def, lo, hi; /* -inf, inf where unbounded; a bound of inf that is closed admits it */
    double init;  /* STATE, COUNT: the value before the first step (0 where the body computes it) */
    uint64_t key; /* RESULT of ir_reduce_keyed: its key; 0: of one body */
    Span loc;
    /* Where a scalar slot lives: see plan.h. p, g and states of element or vector rate: level
     * LEVEL_NONE, and their number among these (p 0, g 1, states from 2), the index of their
     * pointer. Vectors are stored as their dtype says: rows, columns, blocks f32, matrices f64.
     * Results that are vectors have no place: LEVEL_NONE, IR_NONE. */
    uint8_t level;
    uint32_t index;
} Slot;

typedef struct IrStore {
    uint32_t slot;
    IrRef value;
    IrRef guard; /* bool of rate <= tensor; IR_NONE: always. Includes `not skip` */
    Span loc;
} IrStore;

/* How a body sees a tensor (docs/numerics.md). FLAT: elements in a line. MATRIX: matrices of the last
 * two axes. FIRST: one matrix, the first axis times the rest. BLOCK: one matrix whose rows are
 * blocks of SLOT_BLOCK elements, the last of which may be short. */
typedef enum View { VIEW_FLAT, VIEW_MATRIX, VIEW_FIRST, VIEW_BLOCK } View;
enum { IR_VIEWS = VIEW_BLOCK + 1 };
extern const char *const ir_views[]; /* "flat", "matrix", … by View */

typedef struct IrBody {
    const char *rule;  /* "lamb" */
    const char *entry; /* "step", or NAME of `on NAME` */
    View view;
    Ins *ins;
    Span *loc; /* one per instruction */
    uint32_t n;
    size_t cap, loc_cap;
    IrStore *stores;
    uint32_t nstores;
    size_t stores_cap;
    IrRef noskip; /* bool.global that is in the guard of every store but those of SLOT_SKIP and
                     SLOT_EXPORT; IR_NONE: no skip */
} IrBody;

typedef struct IrModule {
    Arena *arena;
    const char *name;
    bool compute_f64;
    Slot *slots;
    uint32_t nslots;
    size_t slots_cap;
    uint32_t nshared; /* slots before this one are those of every module of the rule's entry points:
                         passes keep them and what is stored to them. 0: no entry points */
    IrBody *bodies;
    uint32_t nbodies;
    IrBody *select;     /* which body a tensor runs, and its block size: scalar ops over properties,
                       stores to SLOT_ARM and SLOT_BLOCK. NULL: body 0, no blocks */
    uint32_t nelem;     /* p, g, states of element or vector rate */
    uint32_t nlevel[4]; /* scalar slots at each level (plan.h) */
    const SourceSet *sources; /* for #line and messages; NULL for modules read from text */
} IrModule;

/* Limits of every module; the frontend's own (65,536 operations after unrolling) is lower. */
enum {
    IR_MAX_BODIES = 64,
    IR_MAX_SLOTS = 4096,
    IR_MAX_INS = 1 << 18,
    IR_MAX_NAME = 255,
    IR_MAX_SELECT = 4096 /* instructions of `select` */
};

/* Whether a slot is t, the applied steps of a tensor. */
static inline bool ir_is_clock(const Slot *s)
{
    return s->kind == SLOT_COUNT && s->rate == RATE_TENSOR && s->name[0] == 't' && !s->name[1];
}
/* Whether a slot is an answer about the tensor's name. */
static inline bool ir_asks_name(const Slot *s)
{
    return s->kind == SLOT_PROP && strncmp(s->name, "name_", 5) == 0;
}
static inline bool ir_is_reduce(const Ins *i)
{
    return i->op >= IR_RED;
}
static inline bool ir_is_draw(const Ins *i)
{
    return i->op == IR_NORMAL || i->op == IR_UNIFORM || i->op == IR_RADEMACHER;
}
/* Reductions over tensors: those that several bodies may feed. */
static inline bool ir_is_joint(const Ins *i)
{
    return ir_is_reduce(i) && rate_within((Rate)i->rate, RATE_GROUP);
}
/* Of a reduction's arguments, joined. */
Rate ir_args_rate(const IrBody *b, const Ins *i);
/* Number of operands that are values (a reduction's guard excluded). */
int ir_arity(const Ins *i);
const char *ir_op_name(int op);
/* What a map op computes, in f64 or f32 (operands and result widened exactly); truth values are 0
 * and 1. */
double ir_eval(Op op, bool f64, double a, double b, double c);

/* ---- building -------------------------------------------------------------------------------- */

typedef struct IrBuilder {
    IrModule *m;
    IrBody *b;
    Span loc;        /* given to what is emitted */
    uint32_t *table; /* hash table of instructions, for sharing */
    uint32_t table_size, table_used;
    bool all_stores; /* other bodies may have a store to a global or group slot that never happens in
                        this one: it stays */
} IrBuilder;

IrModule *ir_module_new(Arena *a, const char *name, bool compute_f64);
/* Adds a slot and gives it its place (level and index, or element number). p and g must be the
 * first two. Returns its index. */
uint32_t ir_slot_add(IrModule *m, Slot slot);
int ir_slot_find(const IrModule *m, SlotKind kind, const char *name); /* by name; -1: none */
IrBody *ir_body_new(IrModule *m, const char *rule, const char *entry);
IrBody *ir_select_new(IrModule *m, const char *rule); /* module.select; once */
void ir_builder_init(IrBuilder *b, IrModule *m, IrBody *body);

IrRef ir_const(IrBuilder *b, double v); /* f64.global */
IrRef ir_const_bool(IrBuilder *b, bool v);
IrRef ir_load(IrBuilder *b, uint32_t slot);
/* A map op. Rounds f64 scalars that meet element-like operands; folds; shares. y and z IR_NONE
 * where unused. The result is f32 at rates row, col, block and element (f64 under compute_f64, and
 * where f64 values of one of the first three meet nothing but f64: what finishes a reduction), f64
 * at the others, or a bool; its rate may be narrower than its operands' where folding dropped one.
 */
IrRef ir_op(IrBuilder *b, Op op, IrRef x, IrRef y, IrRef z);
IrRef ir_round(IrBuilder *b, IrRef x); /* to f32 (identity on f32, and under compute_f64) */
/* A reduction to the rate `scope`, coarser than its argument's; makes its result slot, or finds the
 * equal reduction. RATE_TENSOR and finer: over what x varies along, within the scope (to
 * RATE_TENSOR, a scalar is taken once per element). RATE_GLOBAL, RATE_GROUP: over all values of all
 * tensors (of the group), or for scalars of tensor rate over the tensors, of group rate over the
 * groups. `key` names the statement of a reduction to RATE_GLOBAL or RATE_GROUP: the same key in
 * several bodies is one slot, which all of them feed, and different keys never share. 0: no other
 * body feeds it, as in modules of one body. */
IrRef ir_reduce(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope);
IrRef ir_reduce_keyed(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope,
                      uint64_t key);
/* One value per element: IR_NORMAL, IR_UNIFORM or IR_RADEMACHER. */
IrRef ir_draw(IrBuilder *b, IrOp op, IrRef lo, IrRef hi, uint32_t site);
/* The same value at the given rate (group or finer), where folding made it coarser: a reduction
 * counts along its argument's axes. Keeps the dtype; what is f64 meets elements rounded. */
IrRef ir_spread(IrBuilder *b, IrRef x, Rate rate);
/* Rounds the value to what the slot holds. Once per slot and body. A guard that is true always or
 * never leaves none, or no store (but for b->all_stores). */
void ir_store(IrBuilder *b, uint32_t slot, IrRef value, IrRef guard);

/* ---- text, checks, passes -------------------------------------------------------------------- */

void ir_print(const IrModule *m, StrBuf *out);
/* A path or pattern in quotes, with escapes. */
void ir_put_quoted(StrBuf *out, const char *s);
/* Reads the text form back and verifies it; NULL and a message "LINE:COLUMN: …" (or the verifier's)
 * on errors. ir_print(ir_parse(x)) == x for every printed x. */
IrModule *ir_parse(Arena *a, const char *text, StrBuf *error);
/* The same without the verifier: the module may only be given to ir_verify and ir_print. */
IrModule *ir_parse_unverified(Arena *a, const char *text, StrBuf *error);
/* Checks every rule of docs/ir.md. False: `why` names the body and the instruction. */
bool ir_verify(const IrModule *m, StrBuf *why);

/* A pass makes a new module from an old one, rebuilt through the builder. Rows in pass.def:
 * PASS(name, function, "what it does"). */
typedef IrModule *(*PassFn)(Arena *a, const IrModule *m);
typedef struct PassInfo {
    const char *name, *what;
    PassFn run;
} PassInfo;
extern const PassInfo pass_info[];
extern const size_t pass_count;
/* Runs all passes in order, verifying after each; `dump_after` (a pass's name, or NULL) prints into
 * out. NULL: a bug, text in why. */
IrModule *ir_run_passes(Arena *a, IrModule *m, const char *dump_after, StrBuf *out, StrBuf *why);

/* Drops what none of the modules of a rule's entry points needs of the states that they share; they
 * share the same slots before and after. Requires verified modules. */
void ir_drop_shared(Arena *a, IrModule **m, size_t n);

typedef struct LowerOptions {
    bool compute_f64;
    const char *entry;    /* "step" (NULL), or NAME of an entry point of the rule */
    bool guard_gradients; /* the implicit recipe's guard: any[all](not finite(g)) over tensors with
                             16-bit gradients -> skip */
} LowerOptions;
/* A checked rule to IR. Never fails on a rule that check passed (NULL: a bug; reported in d as
 * DIAG_INTERNAL). */
IrModule *ir_lower(Arena *a, DiagSink *d, const Rule *rule, const LowerOptions *o);
#endif
