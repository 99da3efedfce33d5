/* check.h - how the checker keeps its place; private to expand.c and check*.c.
 *
 * One Checker makes one Rule. It walks the parsed tree and builds a new, typed one: names become
 * symbols, calls of functions and uses of transforms are put in place, branches under a const
 * condition are left out. Checked nodes may be shared (an argument that a function reads twice is
 * one node), so whoever walks them keeps results by Expr.id.
 */
#ifndef FRONTEND_CHECK_H
#define FRONTEND_CHECK_H
#include "frontend.h"
#include <string.h>

enum {
    CHECK_MAX_OPS = 65536,  /* checked nodes and statements of one rule */
    CHECK_MAX_DEPTH = 2000, /* of a checked expression, and of calls inside calls */
    CHECK_MAX_SLOTS = 4000, /* what outlives a step, and results of reductions */
    CHECK_MAX_SIZES = 4096, /* operations of a value made of sizes, what is shared counted again */
    CHECK_MAX_NAME = 255,
    CHECK_MAX_USES = 64, /* one inside of another */
};

/* A name and what it stands for in one scope. */
typedef struct Binding {
    struct Binding *next;
    const char *name;
    Span span;
    Symbol
        *sym; /* exactly one of sym, value is set; neither: bound in one branch of a `when` only */
    Expr *value; /* a parameter or name of a function: its checked argument */
} Binding;

typedef struct Scope {
    struct Scope
        *parent; /* NULL at the root of a rule, transform or function: nothing outside is seen */
    Binding *bindings; /* newest first; one that was bound again stands behind */
    Binding **table;   /* by name (interned: one pointer per name), open addressing */
    size_t n, size;    /* entries used; a power of two, 0 while there are few */
} Scope;

typedef struct RuleArg RuleArg;
typedef struct Uses Uses;

/* A rule, or one use of a transform or inner rule. */
typedef struct Instance {
    struct Instance *parent;
    Item *item;
    const char *path;      /* "lamb", "lamb.clip_global_norm" */
    Scope *scope;          /* its root: declarations, then names */
    Symbol *direction;     /* TRANSFORM of stage direction: the rule's */
    Symbol *arm_direction; /* bound in a branch */
    Span g_read;           /* where g was first read */
    struct UsedPath {
        struct UsedPath *next;
        const char *name;
        Span span;
        const struct Arm *arm;
    } * used;
    RuleArg *rules;    /* its parameters that are rules */
    const Uses *added; /* what an application's block adds: for the inner rule, if there is one */
    bool adds_inside;  /* `added` is for the rules taken as parameters */
    struct Instance
        *first; /* of the same use, put in place before in another arm: declares for all */
    struct Placed {
        struct Placed *next;
        const Stmt *use;
        struct Instance *inst; /* NULL: in a branch that is left out */
    } * placed;                /* uses of direction transforms that have been put in place */
} Instance;

/* Calls of functions that the checker is inside of. */
typedef struct CallFrame {
    struct CallFrame *up;
    const Item *fn;
    Span at;
} CallFrame;

typedef enum NameSet {
    NAMES_ALL,
    NAMES_FN,       /* in a function: parameters, pi, inf */
    NAMES_SCHEDULE, /* in a schedule: s, too */
    NAMES_HYPER,    /* in defaults, ranges and arguments of `use`: hyperparameters, pi, inf */
    NAMES_INIT,     /* in initial values: hyperparameters, what is given, states declared before */
} NameSet;

/* An arm of a `shape` statement. */
typedef struct Arm {
    const struct Arm *up;
    const struct Instance *inst;
    uint32_t shape; /* number of the statement */
    bool taken;     /* the first arm: its names are sizes; false: `else` */
    bool first;     /* [r, ..] */
    Span span;
} Arm;

/* Where a rule looks at a tensor as rows and columns, or as blocks: one of these in one way through
 * its arms. */
typedef struct ViewUse {
    struct ViewUse *next;
    const Arm *arm;
    enum { VIEWS_LAST, VIEWS_FIRST, VIEWS_BLOCKS } view;
    Span at;
} ViewUse;

/* Where the checker is; saved and restored as a whole when it must look elsewhere first. */
typedef struct Context {
    Instance *inst;
    Scope *scope;
    CallFrame *calls;
    NameSet names;
    Symbol *writing; /* the target of the write being checked: reading it there is no use of it */
    Rate guard;      /* joined rate of the conditions around */
    bool dead;       /* inside a branch that a const condition leaves out */
    bool in_when;    /* within this rule or transform */
    bool in_repeat, in_init, in_entry;
    bool placing; /* behind a direction: uses of its transforms act */
    const struct BlockChain {
        const struct BlockChain *up;
        const Block *block;
    } * blocks; /* the blocks around, as parsed, within this rule or transform */
    const Arm *arm;  /* the innermost around; NULL: none */
    int depth;
} Context;

/* A rule taken as a parameter: `lookahead(adamw(lr = 1e-3))`. */
struct RuleArg {
    RuleArg *next;
    const Decl *param;
    const Expr *value; /* NAME or CALL as parsed; NULL: not given */
    const Uses *added; /* what an application's block adds to it; NULL: nothing */
    Context at;        /* where it was written */
};

/* The block of an application: `adamw(lr = 1e-3) { use cautious }`. */
struct Uses {
    const Block *block;
    Context at;
};

/* Arguments by parameter, then by hyperparameter of the block; NULL where not given. */
typedef struct UseArgs {
    Expr **values;
    Context at; /* where they were written */
} UseArgs;

/* A hyperparameter's default is checked when first needed. */
typedef struct CheckInfo {
    enum { INFO_NEW, INFO_BUSY, INFO_DONE } status;
    Context home;  /* where it was declared: its range is read there */
    Context at;    /* where its default is to be read */
    Expr *source;  /* the default as parsed, NULL: none */
    bool from_use; /* the default is an argument of `use` */
    bool declared; /* STATE: its declaration has been passed */
    Symbol *arms[2]; /* LET: what it is in either arm of a `shape` */
} CheckInfo;

typedef struct Checker {
    Arena *arena;
    DiagSink *diags;
    const Ast *ast;
    const FrontendOptions *options;
    Rule *rule;
    Context x;
    Block *out; /* where checked statements go */
    Symbol *given[GIVEN_FIRST + 1];
    const char *word_u; /* "u", interned */
    bool wanted; /* the rule that is to be compiled: what it takes as parameters must be given */
    uint32_t nops, nslots, nshapes, ndraws;
    ViewUse *views;
    Symbol *lead[2]; /* under [r, ..]: r, and elements of the rest; NULL until asked for */
    Span block_at;   /* where the rule's block size was first written */
    bool imports_failed; /* names may be missing for that reason alone */
    bool mistakes; /* syntax errors were reported: items may be missing, or parts of this one */
    bool p_live;
    bool murky;    /* something was left out as not supported: say nothing about what is unused or
                      missing */
    bool too_long; /* the limit was reported */
    bool is_function;  /* a function by itself: limits say nothing */
    bool *define_used; /* one per option */
    Symbol **declared; /* hypers (const ones too) and states, for warnings */
    size_t ndeclared, declared_cap, hypers_cap, consts_cap, states_cap, exports_cap, inputs_cap,
        entries_cap, names_cap;
} Checker;

/* A message with notes for the calls that the checker is inside of. */
Diag *check_noted(Checker *c, Diag *d);
#define REPORT(c, code, ...)                                                                       \
    (check_muted((c), (code)) ? ARENA_NEW((c)->arena, Diag)                                        \
                              : check_noted((c), diag_report((c)->diags, (code), __VA_ARGS__)))
/* Whether a message would mislead in an item that the parser could read in part only. */
bool check_muted(const Checker *c, DiagCode code);
/* Whether the word stands elsewhere in what was read in part: what it means may have been lost. */
bool check_may_be_lost(const Checker *c, Name word, bool in_file);
/* Candidates for "did you mean". */
typedef struct Words {
    const char **list;
    size_t n, cap;
} Words;
void check_word(Checker *c, Words *w, const char *word);
void check_did_you_mean(Checker *c, Diag *d, const char *word, const Words *w);
bool check_budget(Checker *c);       /* counts one operation; false past the limit */
bool check_slots(Checker *c, int n); /* counts n slots; false past the limit */
void check_unsupported(Checker *c, Span at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* check_name.c. A symbol whose dtype is DT_COUNT is broken: reading it says nothing. One without a
 * declaration, too, stands for a name bound in a block that was left out: it may be bound again. */
static inline bool symbol_left_out(const Symbol *s)
{
    return s->dtype == DT_COUNT && s->kind == SYM_STATE && !s->decl;
}
void check_given_symbols(Checker *c);
const char *symbol_what(const Symbol *s); /* "a state", "the gradient" */
Expr *check_old(Checker *c, const Expr *e);
Binding *scope_local(const Scope *s, const char *name); /* in this scope alone */
Binding *scope_find(const Scope *s, const char *name);
void scope_bind(Checker *c, Scope *s, Name name, Symbol *sym, Expr *value);
Symbol *symbol_new(Checker *c, SymKind kind, Name name);
/* Whether a name may be bound in the current scope: not reserved, nothing hidden, not bound before.
 * Reports if not. */
bool check_new_name(Checker *c, Name name);
bool check_name_length(Checker *c, Name name);
Expr *check_name(Checker *c, const Expr *e);
/* Whether the context lets the symbol be read; reports if not. */
bool check_may_read(Checker *c, const Symbol *s, Name name);
Expr *check_symbol(Checker *c, Symbol *s, Span at);     /* reads it */
Expr *check_old_symbol(Checker *c, Symbol *s, Span at); /* reads what it was at the entry */
Expr *expr_of_symbol(Checker *c, Symbol *s, Span at);
Symbol *check_lookup(Checker *c, Name name); /* silent; NULL: not a symbol here */
void check_unknown_name(Checker *c, Name name, const char *hint);

/* check_expr.c */
Expr *check_expr(Checker *c, const Expr *e); /* EX_BAD after errors, never NULL */
/* As check_expr, but lists are welcome; an array is one. */
Expr *check_argument(Checker *c, const Expr *e);
Expr *check_number(Checker *c, const Expr *e);
Expr *check_condition(Checker *c, const Expr *e);
Expr *expr_new(Checker *c, ExprKind kind, Span span);
Expr *expr_number(Checker *c, Span span, double value);
Expr *expr_op(Checker *c, Op op, Span span, Expr *a, Expr *b, Expr *third);
Expr *expr_cond(Checker *c, Span span, Expr *cond, Expr *then, Expr *otherwise);
void expr_set_type(Checker *c, Expr *e, bool truth, Rate rate);
static inline bool expr_bad(const Expr *e)
{
    return e->kind == EX_BAD;
}
static inline bool expr_truth(const Expr *e)
{
    return e->dtype == DT_BOOL;
}

/* check_fold.c: IEEE arithmetic on constants; false where it takes the project's own functions. */
bool fold_op(Op op, double a, double b, double c, double *out);

/* check_decl.c */
/* All of an instance: parameters, then what its block declares. */
void check_decls(Checker *c, const Item *item, const UseArgs *args);
bool decl_is_rule(const Decl *d); /* `inner: rule` */
void check_block_decls(Checker *c, const Block *b); /* of an arm */
void check_initial_values(Checker *c, const Block *b);
void check_resolve_hyper(Checker *c, Symbol *s);
void check_defines(Checker *c); /* after the rule: defines that named nothing */

/* check_stmt.c */
void stmt_emit(Checker *c, Stmt *s);
Stmt *stmt_new(Checker *c, StmtKind kind, Span span);
/* Binds `name` to a checked value, as a statement of its own; no scope knows it yet. */
Symbol *stmt_let(Checker *c, StmtKind kind, Name name, Expr *value, Span span);

void check_stmt(Checker *c, const Stmt *s);
void check_block(Checker *c, const Block *b); /* its statements, in the current scope */
/* `t := value` and its like, under the conditions around. */
void stmt_write(Checker *c, const Stmt *s, Symbol *t, Expr *value);
void check_instance(Checker *c, const Item *item, const UseArgs *args); /* into c->out */
bool check_rates(Checker *c, Span at, const char *what, Rate rate, const Symbol *into);

/* check_text.c */
Expr *check_match(Checker *c, const Expr *e);   /* ~ and !~ */
Expr *check_text_op(Checker *c, const Expr *e); /* name == "…", name != "…"; NULL: another operation */
void check_text_here(Checker *c, Span at);      /* reports a text where none can stand */

/* check_shape.c */
void check_shape(Checker *c, const Stmt *s);
/* Whether two places can be on one way through the arms. */
bool arms_meet(const Arm *a, const Arm *b);
/* Whether rows, columns or matrices may be spoken of here; reports if not. `what`: "'[row]'". */
bool check_in_arm(Checker *c, Span at, const char *what);
/* Checks the size of a block, of which a rule has one. */
bool check_block_size(Checker *c, const Expr *size, Span at);
/* `rows` and `cols` under [r, ..]; NULL: elsewhere, and other names. */
Symbol *check_lead(Checker *c, Given given);

/* expand.c */
Expr *expand_fn(Checker *c, const Item *fn, Expr **values,
                Span at); /* values: checked, by parameter; NULL where not given */
Expr *expand_call(Checker *c, const Expr *e);
/* expand_list.c */
Expr *check_list(Checker *c, const Expr *e);   /* EX_LIST of checked numbers */
Expr *expand_table(Checker *c, const Expr *e); /* piecewise, interp */
Item *expand_find(const Checker *c, bool function, const char *name); /* NULL: none */
/* Arguments as written, by parameter and hyperparameter; NULL where not given. */
Expr **expand_args(Checker *c, const Item *item, Span at, Expr **args, const Name *names,
                   int nargs);

/* check_array.c */
int array_size(Checker *c, const Decl *decl); /* 0: reported */
/* What element i of n has as its value, of a list or of one value for all; NULL: nothing. */
Expr *array_element(Checker *c, const Decl *decl, Expr *list, int i, int n);
Expr *array_read(Checker *c, const Expr *e, Expr *(*read)(Checker *, Symbol *, Span));
void array_write(Checker *c, const Stmt *s);
void repeat_stmt(Checker *c, const Stmt *s);

/* check_entry.c: what stands in a block. */
void entry_inputs(Checker *c, const Block *b);
void entry_init(Checker *c, const Block *b);
void entry_points(Checker *c, const Block *b);

/* use.c */
void use_stmt(Checker *c, const Stmt *s);
void use_directions(Checker *c);         /* after a `direction`: the transforms that rewrite it */
void use_added(Checker *c, Stage stage); /* what the application's block adds */
void use_check_placed(Checker *c); /* at the end of a rule: every direction transform had one */
/* The arguments and the block of the application that the rule of `inst` was asked for with. */
void use_application(Checker *c, Instance *inst, UseArgs *args);
#endif
