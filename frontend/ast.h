/* ast.h - the tree that the parser builds and the checker types.
 *
 * The parser covers the whole grammar (docs/grammar.md); nodes hold what was written, spans
 * included. `expand` copies a rule with its uses of transforms and functions inlined, each under
 * its own path; `check` resolves every name to a Symbol and gives every expression a dtype and a
 * rate. Lowering (codegen/lower.c) reads only expanded, checked rules.
 *
 *     m := lerp(g, m, b1)
 *  -> Stmt WRITE {op ":=", target "m", value Expr CALL "lerp" (NAME g, NAME m, NAME b1)}
 *  -> after expand and check: value ADD(MUL(b1, m), MUL(SUB(1, b1), g)), f32.element, every NAME
 *     with its Symbol
 */
#ifndef FRONTEND_AST_H
#define FRONTEND_AST_H
#include "diag.h"
#include "types.h"
#include <string.h>

typedef struct Expr Expr;
typedef struct Stmt Stmt;
typedef struct Symbol Symbol;
typedef struct Item Item;

typedef struct Name {
    const char *text; /* interned per compilation: equal names are equal pointers */
    Span span;
} Name;

#define BAD_NAME "?" /* stands for a name that a syntax error took away */

static inline bool name_lost(Name name)
{
    return !name.text || strcmp(name.text, BAD_NAME) == 0;
}

/* ---- expressions ----------------------------------------------------------------------------- */

typedef enum ExprKind {
    EX_NUMBER, /* num */
    EX_STRING, /* text */
    EX_NAME,   /* name; after check: sym */
    EX_OP,     /* op of ops.def with args[0..nargs): operators and functions of the table */
    EX_CALL,   /* name(args), argument names where given: fn, schedule; none left after expand */
    EX_REDUCE, /* name[scope](args): sum mean max min norm rms dot any all count */
    EX_INDEX,  /* name[args[0]] */
    EX_LIST,   /* [a, b, c] */
    EX_MATCH,  /* args[0] ~ text, args[0] !~ text (negated); after check, `name == text` too: num,
                  number of the question in Rule.names */
    EX_MATMUL, /* args[0] @ args[1] */
    EX_OLD,    /* old(name) */
    EX_DRAW, /* normal() uniform() rademacher(): name; after check: draw, num: number of the site */
    EX_COND, /* args[0] ? args[1] : args[2]; kept apart from OP_SELECT for messages; typed alike */
    EX_BAD,  /* an error was reported here: silent from now on */
} ExprKind;

/* Scopes of reductions as written. */
typedef enum ScopeKind {
    SCOPE_TENSOR,
    SCOPE_ROW,
    SCOPE_COL,
    SCOPE_MATRIX,
    SCOPE_BLOCK,
    SCOPE_GROUP,
    SCOPE_ALL
} ScopeKind;
typedef enum ReduceKind {
    RK_SUM,
    RK_MEAN,
    RK_MAX,
    RK_MIN,
    RK_NORM,
    RK_RMS,
    RK_DOT,
    RK_ANY,
    RK_ALL,
    RK_COUNT
} ReduceKind;
typedef enum DrawKind { DRAW_NORMAL, DRAW_UNIFORM, DRAW_RADEMACHER } DrawKind;
const char *reduce_kind_name(ReduceKind k); /* "norm" */
const char *scope_kind_name(ScopeKind k);   /* "all" */

struct Expr {
    ExprKind kind;
    Span span;
    /* typed by check */
    DType dtype; /* DT_F64 at scalar rates, DT_F32 at element-like rates, DT_BOOL */
    Rate rate;
    bool is_const; /* numbers, const hypers and what is made of them; cval holds the value */
    double cval;
    /* as written */
    double num;       /* EX_NUMBER */
    const char *text; /* EX_STRING, EX_MATCH pattern */
    bool negated;     /* EX_MATCH */
    Name name;
    Op op;             /* EX_OP */
    ReduceKind reduce; /* EX_REDUCE, set by the parser from the name */
    ScopeKind scope;   /* EX_REDUCE */
    DrawKind draw;     /* EX_DRAW */
    Expr *scope_size;  /* [block k] */
    Expr **args;
    Name *arg_names; /* EX_CALL: text NULL where positional; NULL if all are */
    int nargs;
    Symbol *sym;    /* EX_NAME, EX_OLD, EX_INDEX after check */
    uint32_t id;    /* of nodes made by check: a number below Rule.nexprs. Checked trees share nodes
                       (arguments of inlined functions) */
    uint32_t depth; /* longest way down, at most EXPR_DEPTH_MAX as parsed: recursion over parsed
                       trees is safe */
};
enum { EXPR_DEPTH_MAX = 1000, NEST_MAX = 256 };

/* ---- statements ------------------------------------------------------------------------------ */

typedef struct Block {
    Stmt **stmts;
    size_t n, cap;
    Span span;
} Block;

typedef struct Range {
    bool given, lo_open, hi_open; /* [lo, hi): hi_open */
    Expr *lo, *hi;
    Span span;
} Range;

typedef struct RateAst { /* `: row`, `: global f32`, `: block 256` */
    bool given;
    Name rate;
    Expr *block_size;
    Name format; /* text NULL: none */
    Span span;
} RateAst;

/* One declared hyper, state, or parameter of a rule, transform or fn. */
typedef struct Decl {
    Name name;
    bool is_const;
    Expr *array; /* name[array], NULL: scalar */
    RateAst rate;
    Expr *init; /* default or initial value; NULL: none */
    Range range;
    Symbol *sym;
} Decl;

typedef struct App { /* name(args) as in `use` and recipes */
    Name name;
    Expr **args;
    Name *arg_names;
    int nargs;
    Span span;
} App;

typedef enum StmtKind {
    ST_HYPER,  /* decls; is_const on each */
    ST_STATE,  /* decls */
    ST_INPUT,  /* names */
    ST_EXPORT, /* names with aliases */
    ST_USE,    /* app, label */
    ST_SKIP,
    ST_FAIL,      /* text */
    ST_DIRECTION, /* direction name = value */
    ST_LET,       /* name = value */
    ST_WRITE,     /* target [index] wop value */
    ST_INIT,      /* body */
    ST_ON,        /* on name(names) body */
    ST_WHEN,      /* cond, body, else_body (a block; `else when` is a block of one ST_WHEN) */
    ST_REPEAT,    /* repeat cond body, or repeat name in cond..hi body */
    ST_SHAPE,     /* dims, cond, body, else_body */
    ST_SCOPE, /* made by expand: an inlined transform; name (its part of the use path), body; its
                 names are its own */
} StmtKind;

typedef enum WriteOp { W_SET, W_ADD, W_SUB, W_MUL, W_DIV } WriteOp;

struct Stmt {
    StmtKind kind;
    Span span;
    Name name; /* LET, DIRECTION, WRITE target, ON, REPEAT variable, USE label */
    Decl *decls;
    size_t ndecls;
    Name *names; /* INPUT, EXPORT, ON parameters, SHAPE dims (".." for dots) */
    Name *aliases;
    size_t nnames;
    App *app;
    const char *text;
    WriteOp wop;
    Expr *index; /* target[index] */
    Expr *value, *cond, *hi;
    Block *body, *else_body;
    Symbol *sym; /* LET, DIRECTION, WRITE after check */
};

/* ---- items ----------------------------------------------------------------------------------- */

typedef enum ItemKind {
    IT_IMPORT,
    IT_OPTIMIZER,
    IT_TRANSFORM,
    IT_SCALER,
    IT_ACCUMULATOR,
    IT_SCHEDULE,
    IT_FN,
    IT_RECIPE
} ItemKind;
typedef enum Stage { STAGE_NONE, STAGE_GRADIENT, STAGE_DIRECTION, STAGE_APPLY } Stage;

typedef struct RecipeStmt RecipeStmt; /* recipes: parsed and kept (recipe.h), no meaning yet */

struct Item {
    ItemKind kind;
    Span span;
    Name name;
    const char *text; /* IMPORT: path */
    Decl *params;     /* parameters, in order */
    size_t nparams;
    Stage stage; /* TRANSFORM */
    Block *body; /* OPTIMIZER, TRANSFORM, SCALER, ACCUMULATOR; FN and SCHEDULE: lets in it, result
                    in `value` */
    Expr *value; /* FN, SCHEDULE */
    RecipeStmt *recipe;
    const char *doc; /* the comment lines directly above (for the first item, above its file's
                        imports), without '#'; "" if none */
    bool broken;     /* a syntax error was reported in it: parts are missing, further messages would
                        mislead */
};

typedef struct NameTable NameTable; /* names.c */
typedef struct Ast {
    Item **items; /* imported files' items stand before those of the file that imports them */
    size_t n, cap;
    int file;        /* the file that was asked for; the others were imported */
    bool applied;    /* FrontendOptions.rule is an application */
    App *app;        /* that; NULL: it could not be read */
    Block *app_uses; /* its block; NULL: none */
    NameTable *names;
} Ast;
/* The one pointer that stands for these n bytes in this compilation. */
const char *ast_intern(Arena *a, Ast *ast, const char *s, size_t n);
/* How often the name stands in the compilation's files. */
uint32_t ast_name_count(const Ast *ast, const char *name);
/* The pointer that stands for the name; NULL: no file has it. */
const char *ast_known_name(const Ast *ast, const char *name);
/* Whether it is an optimizer that can run by itself: all rules that it takes have defaults. */
bool item_stands_alone(const Item *item);
/* Whether it stands in the file that was asked for, not in one that this imports. */
bool item_is_own(const DiagSink *d, const Ast *ast, const Item *item);

/* ---- symbols (made by check) ----------------------------------------------------------------- */

typedef enum SymKind {
    SYM_HYPER,     /* decl; path "lamb.clip_global_norm.limit" */
    SYM_STATE,     /* decl; path */
    SYM_LET,       /* a name bound once; value */
    SYM_DIRECTION, /* bound by `direction`, may be written by direction transforms */
    SYM_GIVEN,     /* g p t s micro rows cols numel ndim name pi inf: `given` */
    SYM_EXPORT,
    SYM_RULE,  /* the checker's: a parameter `inner: rule` */
    SYM_ARRAY, /* the checker's: K states or hypers by one name */
    SYM_INPUT  /* f64.global, given by the host; path: its name as the host knows it */
} SymKind;
typedef enum Given {
    GIVEN_G,
    GIVEN_P,
    GIVEN_T,
    GIVEN_S,
    GIVEN_MICRO,
    GIVEN_ROWS,
    GIVEN_COLS,
    GIVEN_NUMEL,
    GIVEN_NDIM,
    GIVEN_NAME,
    GIVEN_PI,
    GIVEN_INF,
    GIVEN_FIRST, /* bool.tensor: this is where the tensor's state begins (its first applied step);
                    has no spelling: made of `init` */
    GIVEN_LEAD,  /* under `shape [r, ..]`: size of the first axis, */
    GIVEN_REST   /* and the elements of the others; no spelling but the names written there */
} Given;

struct Symbol {
    SymKind kind;
    Given given;
    const char *name;
    const char *path; /* HYPER, STATE: rule.use_path.name; EXPORT: the exported name */
    Span span;        /* where declared */
    DType dtype;      /* of its value when read: f64 for scalar rates, f32 for elements; STATE of `:
                         global f32` is f64 read, stored f32 */
    DType storage;    /* STATE: DT_F32 where declared f32 at a scalar rate; else as dtype */
    Rate rate;
    bool is_const;
    double cval;
    Decl *decl;
    int index;     /* HYPER, STATE: position in the rule's lists */
    uint32_t id;   /* unique within the rule, below Rule.nsyms */
    Expr *value;   /* HYPER: checked default, NULL: none. STATE: checked initial value, NULL: 0.
                      EXPORT: what is exported. LET: what it names; NULL where arms differ */
    bool derived;  /* HYPER: the default depends on other hypers. STATE: the initial value is no
                      constant */
    double lo, hi; /* HYPER: range, (-inf, inf) where none is written */
    bool lo_open, hi_open;
    Symbol **elems; /* ARRAY */
    int nelems;
    Symbol *array; /* of an element */
    /* for the checker's warnings */
    bool read, written;
    struct CheckInfo *info; /* the checker's own */
};

/* An entry point, `on NAME` or `on NAME(x)`: the blocks of that name of all that the rule uses, in
 * order of use. */
typedef struct Entry {
    const char *name;
    Span span;
    Symbol
        *param; /* SYM_GIVEN of kind GIVEN_G: the tensors' buffers that the caller binds as x; NULL:
                      none */
    Block *body;
} Entry;

/* A question about tensors' names: whether one is the text, or has what the pattern (a POSIX ERE)
 * says. */
typedef struct NameTest {
    const char *text;
    bool pattern;
} NameTest;

/* A rule ready for lowering: one block, all uses and calls inlined, every name resolved. */
typedef struct Rule {
    const char *name;
    Item *item;
    Block *body;
    Symbol **hypers; /* all of the rule and of what it uses, in order; const ones folded away are
                        absent */
    size_t nhypers;
    Symbol **states;
    size_t nstates;
    Symbol **consts; /* hyperparameters that are fixed here: flags, and those of `-D` */
    size_t nconsts;
    Symbol **exports;
    size_t nexports;
    Symbol **inputs;
    size_t ninputs;
    Entry *entries; /* besides the step */
    size_t nentries;
    NameTest *names; /* asked by EX_MATCH, whose num is the number here */
    size_t nnames;
    Symbol *g, *p; /* the symbols of the gradient and the parameter */
    Expr *block;   /* elements of a block: made of sizes and constants; NULL: no blocks */
    uint32_t nsyms, nexprs;
} Rule;

/* Whether two checked values made of sizes, constants and questions about the name are one. */
bool expr_same(const Expr *x, const Expr *y);

/* One way through the `shape` statements of a block: what holds for the tensors that go it. */
typedef struct ShapeFact {
    const Expr *cond; /* checked, made of sizes and constants; NULL: two dimensions or more */
    bool holds;
} ShapeFact;
typedef struct ShapePath {
    ShapeFact *facts;
    size_t n;
} ShapePath;
enum { RULE_MAX_PATHS = 64 };
/* All ways through a checked block and another one (NULL: none), the one that takes every arm first.
 * Every tensor goes exactly one. RULE_MAX_PATHS + 1: there are more than RULE_MAX_PATHS (the checker refuses them). */
size_t shape_paths(Arena *a, const Block *first, const Block *second, ShapePath **out);
/* Whether the tensors of a path take the first arm of a `shape` that is on it. */
bool shape_takes(const ShapePath *path, const Stmt *shape);
/* Whether it says [r, ..]: the first axis against all others. */
bool shape_of_first(const Stmt *shape);

/* ---- the frontend's entry points ------------------------------------------------------------- */

/* Program options that the frontend needs. */
typedef struct FrontendOptions {
    const char *const *defines; /* "name=value": sets a const hyper, or makes a hyper const */
    size_t ndefines;
    const char *const *include_dirs;
    size_t ninclude_dirs;
    const char
        *rule; /* which optimizer of the file, or an application of one: "lookahead(adamw(lr =
                         1e-3), k = 5) { use cautious }" (what the file lacks is looked for in the
                         standard library); NULL: the only one, or the last */
    bool compute_f64; /* types element-like values f64 (the oracle's lowering) */
    const char *entry; /* what compile_source lowers: NAME of an entry point; NULL: the step */
} FrontendOptions;

/* The tokens of a file as text (--emit=tokens), statement ends put in. */
bool frontend_tokens(Arena *a, DiagSink *d, int file, StrBuf *out);
/* The file laid out in the one way there is (docs/language.md); false, with nothing in `out`: it
 * has mistakes. Its imports are not looked for. */
bool frontend_format(Arena *a, DiagSink *d, int file, StrBuf *out);
/* Parses file `file` of the source set into `ast` (all its imports too: user folder, include_dirs,
 * then stdlib). */
bool frontend_parse(Arena *a, DiagSink *d, int file, const FrontendOptions *o, Ast *ast);
/* Expands and checks one rule. NULL: errors were reported. Warnings may have been reported in any
 * case. */
Rule *frontend_check(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o);
/* Checks a file that need not have an optimizer (a file of transforms): false after errors. */
bool frontend_check_file(Arena *a, DiagSink *d, const Ast *ast, const FrontendOptions *o);
/* The tree as text (--emit=ast). */
void ast_print(const Ast *ast, StrBuf *out);
/* Reads a whole file with the limits and messages of the frontend (missing, directory, empty,
 * binary, over 16 MiB). -1: reported in d. */
int source_read(DiagSink *d, const char *path);
/* A stdlib file's text by name ("adamw" or "adamw.opt"), NULL if none; all names in order. */
const char *stdlib_text(const char *name, size_t *len);
const char *stdlib_name(size_t i);
size_t stdlib_count(void);
#endif
