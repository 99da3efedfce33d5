/* build.c - nodes of the tree, with the checks that need no names: argument counts of builtins,
 * scopes, reserved names, depth.
 *
 *     name "norm", scope "all", args (g)   ->   Expr REDUCE {RK_NORM, SCOPE_ALL, g}
 *     name "sqrt", args (a, b)             ->   reported; Expr BAD
 */
#include "parse.h"
#include <string.h>

Span span_join(Span a, Span b)
{
    return (Span){a.begin, b.end};
}

Expr *build_expr(Parser *p, ExprKind kind, Span span)
{
    Expr *e = ARENA_NEW(p->arena, Expr);
    e->kind = kind;
    e->span = span;
    e->depth = 1;
    return e;
}

/* An expression that is wrong as it stands, though all of it is there: the rest of its item can be
 * checked. */
static Expr *refused(Parser *p, Span span)
{
    return build_expr(p, EX_BAD, span);
}

static Expr *bad(Parser *p, Span span)
{
    p->broken = true;
    return build_expr(p, EX_BAD, span);
}

/* Sets the node's depth from its operands; trees deeper than recursion can follow are cut here. */
static Expr *deepen(Parser *p, Expr *e)
{
    uint32_t depth = e->scope_size ? e->scope_size->depth : 0;
    for (int i = 0; i < e->nargs; i++) {
        if (e->args[i]->depth > depth) depth = e->args[i]->depth;
    }
    if (depth >= EXPR_DEPTH_MAX) {
        if (!p->stopped) {
            diag_report(p->diags, DIAG_TOO_DEEP, (Span){e->span.end - 1, e->span.end},
                        EXPR_DEPTH_MAX);
            p->stopped = true;
        }
        return bad(p, e->span);
    }
    e->depth = depth + 1;
    return e;
}

Expr *build_node(Parser *p, ExprKind kind, Span span, Expr *a, Expr *b, Expr *c)
{
    Expr *e = build_expr(p, kind, span);
    e->nargs = c ? 3 : b ? 2 : 1;
    e->args = ARENA_ARRAY(p->arena, Expr *, e->nargs);
    e->args[0] = a;
    if (b) e->args[1] = b;
    if (c) e->args[2] = c;
    return deepen(p, e);
}

Expr *build_op(Parser *p, Op op, Span span, Expr *a, Expr *b)
{
    Expr *e = build_node(p, EX_OP, span, a, b, NULL);
    e->op = op;
    return e;
}

Expr *build_number(Parser *p, Span span, double value)
{
    Expr *e = build_expr(p, EX_NUMBER, span);
    e->num = value;
    return e;
}

static bool is_bad(Name name)
{
    return strcmp(name.text, BAD_NAME) == 0;
}

Expr *build_name(Parser *p, Name name)
{
    Expr *e = build_expr(p, is_bad(name) ? EX_BAD : EX_NAME, name.span);
    e->name = name;
    return e;
}

Expr *build_match(Parser *p, Span span, Expr *value, Name pattern, bool negated)
{
    Expr *e = build_node(p, EX_MATCH, span, value, NULL, NULL);
    e->text = pattern.text;
    e->name = pattern;
    e->negated = negated;
    return e;
}

static Expr *with_args(Parser *p, Expr *e, const ExprList *args)
{
    e->args = args->items;
    e->nargs = (int)args->n;
    return deepen(p, e);
}

Expr *build_list(Parser *p, Span span, ExprList *items)
{
    return with_args(p, build_expr(p, EX_LIST, span), items);
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { NREDUCTIONS = RK_COUNT + 1, NSCOPES = SCOPE_ALL + 1 };

/* Functions of the language that are not rows of ops.def: they stay calls, which expand.c resolves.
 */
static const struct {
    const char *name;
    int arity;
} functions[] = {
    {"lerp", 3},   {"clamp", 3},   {"piecewise", 3},  {"interp", 3},
    {"normal", 0}, {"uniform", 0}, {"rademacher", 0}, {"old", 1},
};

enum { NFUNCTIONS = sizeof functions / sizeof *functions };

static int find_reduction(const char *name)
{
    for (int i = 0; i < NREDUCTIONS; i++) {
        if (strcmp(reduce_kind_name((ReduceKind)i), name) == 0) return i;
    }
    return -1;
}

static int find_function(const char *name)
{
    for (int i = 0; i < NFUNCTIONS; i++) {
        if (strcmp(functions[i].name, name) == 0) return i;
    }
    return -1;
}

bool builtin_function(const char *name)
{
    return find_reduction(name) >= 0 || find_function(name) >= 0 ||
           op_by_spelling(name, strlen(name)) >= 0;
}

/* Arrays' libraries take an axis as an argument. */
static void hint_scope(Parser *p, Diag *diag, Name name)
{
    bool both = op_by_spelling(name.text, strlen(name.text)) >= 0; /* min, max */
    if (find_reduction(name.text) >= 0 && !both)
        diag_hint(p->diags, diag, "over rows, columns or all tensors: %s[row](…), [col], [all]",
                  name.text);
}

/* Whether the arguments fit a builtin: its number of them, without names. */
static bool check_arguments(Parser *p, Span span, Name name, const ExprList *args, int arity)
{
    for (size_t i = 0; args->names && i < args->n; i++) {
        if (!args->names[i].text) continue;
        hint_scope(p, diag_report(p->diags, DIAG_ARGUMENT_NAMED, args->names[i].span, name.text),
                   name);
        return false;
    }
    if ((int)args->n == arity) return true;
    Diag *diag = diag_report(p->diags, DIAG_ARGUMENT_COUNT, span, name.text, arity,
                             arity == 1 ? "" : "s", (int)args->n);
    if ((int)args->n > arity) hint_scope(p, diag, name);
    return false;
}

static Expr *build_old(Parser *p, Span span, const ExprList *args)
{
    Name name = {"old", span};
    if (args->n == 1 && args->items[0]->kind == EX_BAD) return bad(p, span);
    bool element = args->n == 1 && args->items[0]->kind == EX_INDEX;
    if (args->n == 1 && args->items[0]->kind != EX_NAME && !element) {
        Diag *diag = diag_report(p->diags, DIAG_OLD_OPERAND, args->items[0]->span);
        diag_hint(p->diags, diag,
                  "old(x) is what x was when the step began; write old around each name");
        return refused(p, span);
    }
    if (!check_arguments(p, span, name, args, 1)) return refused(p, span);
    Expr *e = build_expr(p, EX_OLD, span);
    e->name = args->items[0]->name;
    if (element) {
        e->args = args->items[0]->args;
        e->nargs = 1;
    }
    return deepen(p, e);
}

static Expr *reduction(Parser *p, Span span, Name name, ReduceKind kind, const ExprList *args)
{
    if (!check_arguments(p, span, name, args, kind == RK_DOT ? 2 : 1)) return refused(p, span);
    Expr *e = build_expr(p, EX_REDUCE, span);
    e->name = name;
    e->reduce = kind;
    e->scope = SCOPE_TENSOR;
    return with_args(p, e, args);
}

Expr *build_call(Parser *p, Span span, Name name, ExprList *args)
{
    if (is_bad(name)) return bad(p, span);
    if (strcmp(name.text, "old") == 0) return build_old(p, span, args);
    int op = op_by_spelling(name.text, strlen(name.text)), kind = find_reduction(name.text);
    /* min and max: of one argument the reduction, of two the operator */
    if (kind >= 0 && (op < 0 || args->n == 1))
        return reduction(p, span, name, (ReduceKind)kind, args);
    if (op >= 0) {
        if (!check_arguments(p, span, name, args, op_info[op].arity)) return refused(p, span);
        Expr *e = build_expr(p, EX_OP, span);
        e->name = name;
        e->op = (Op)op;
        return with_args(p, e, args);
    }
    int function = find_function(name.text);
    if (function >= 0 && !check_arguments(p, span, name, args, functions[function].arity))
        return refused(p, span);
    bool draw = function >= 0 && functions[function].arity == 0;
    Expr *e = build_expr(p, draw ? EX_DRAW : EX_CALL, span);
    e->name = name;
    e->arg_names = args->names;
    return with_args(p, e, args);
}

static bool scope_kind(Parser *p, const Expr *written, ScopeKind *out)
{
    const char *names[NSCOPES];
    for (int i = 0; i < NSCOPES; i++) names[i] = scope_kind_name((ScopeKind)i);
    if (written->kind == EX_BAD) return false;
    const char *text = "this";
    uint32_t n = written->span.end - written->span.begin;
    if (n <= 40)
        text =
            arena_strndup(p->arena, p->source->text + (written->span.begin - p->source->base), n);
    for (int i = 0; i < NSCOPES; i++) {
        if (written->kind != EX_NAME || strcmp(names[i], text) != 0) continue;
        *out = (ScopeKind)i;
        return true;
    }
    Diag *diag = diag_report(p->diags, DIAG_SCOPE_UNKNOWN, written->span, text);
    const char *close = written->kind == EX_NAME ? diag_suggest(text, names, NSCOPES) : NULL;
    if (close)
        diag_hint(p->diags, diag, "did you mean '%s'?", close);
    else
        diag_hint(p->diags, diag, "scopes are row, col, matrix, block k, tensor, group and all");
    return false;
}

Expr *build_reduce(Parser *p, Span span, Name name, Expr *scope, bool block, ExprList *args)
{
    int kind = find_reduction(name.text);
    ScopeKind where = SCOPE_BLOCK;
    if (is_bad(name)) return bad(p, span);
    if (kind < 0) {
        const char *names[NREDUCTIONS];
        for (int i = 0; i < NREDUCTIONS; i++) names[i] = reduce_kind_name((ReduceKind)i);
        Diag *diag = diag_report(p->diags, DIAG_NOT_A_REDUCTION, name.span, name.text);
        const char *close = diag_suggest(name.text, names, NREDUCTIONS);
        if (close)
            diag_hint(p->diags, diag, "did you mean '%s'?", close);
        else
            diag_hint(p->diags, diag,
                      "reductions are sum, mean, max, min, norm, rms, dot, any, all and count");
        return refused(p, span);
    }
    if (!block && !scope_kind(p, scope, &where)) return refused(p, span);
    ExprList none = {0};
    Expr *e = reduction(p, span, name, (ReduceKind)kind, args ? args : &none);
    if (e->kind != EX_REDUCE) return e;
    e->scope = where;
    if (block) e->scope_size = scope;
    return deepen(p, e);
}

/* ---- lists, statements, items ---------------------------------------------------------------- */

void list_add(Parser *p, ExprList *l, Name name, Expr *e)
{
    if (name.text && !l->names) {
        l->ncap = l->cap ? l->cap : 8;
        l->names = ARENA_ARRAY(p->arena, Name, l->ncap);
    }
    if (l->names) {
        l->names = arena_grow(p->arena, l->names, l->n, &l->ncap, sizeof *l->names);
        l->names[l->n] = name;
    }
    ARENA_PUSH(p->arena, l->items, l->n, l->cap, e);
}

void names_add(Parser *p, NameList *l, Name name, Name alias)
{
    l->aliases = arena_grow(p->arena, l->aliases, l->n, &l->acap, sizeof *l->aliases);
    l->aliases[l->n] = alias;
    ARENA_PUSH(p->arena, l->items, l->n, l->cap, name);
}

void decls_add(Parser *p, DeclList *l, Decl d)
{
    ARENA_PUSH(p->arena, l->items, l->n, l->cap, d);
}

void block_add(Parser *p, Block *b, Stmt *s)
{
    ARENA_PUSH(p->arena, b->stmts, b->n, b->cap, s);
}

Stmt *build_stmt(Parser *p, StmtKind kind, Span span)
{
    Stmt *s = ARENA_NEW(p->arena, Stmt);
    s->kind = kind;
    s->span = span;
    return s;
}

App *build_app(Parser *p, Span span, Name name, ExprList *args)
{
    App *app = ARENA_NEW(p->arena, App);
    app->name = name;
    app->span = span;
    if (args) {
        app->args = args->items;
        app->arg_names = args->names;
        app->nargs = (int)args->n;
    }
    return app;
}

void check_declared(Parser *p, Name name, bool gradient)
{
    static const struct {
        const char *name, *meaning;
    } reserved[] = {
        {"g", "it is the gradient"},
        {"p", "it is the parameter"},
        {"t", "it is the number of the tensor's step"},
        {"s", "it is the number of the rule's steps"},
        {"micro", "it is the number of micro-batches"},
    };
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (strcmp(reserved[i].name, name.text) != 0 || (gradient && i == 0)) continue;
        diag_report(p->diags, DIAG_RESERVED_NAME, name.span, name.text, reserved[i].meaning);
        p->broken = true;
    }
}

/* The comment lines directly above an item, without their '#' and one space. */
static const char *doc_above(Parser *p, uint32_t at)
{
    const char *text = p->source->text, *end = text + at;
    while (end > text && end[-1] != '\n') end--;
    const char *first = end;
    while (first > text) {
        const char *line = first - 1;
        while (line > text && line[-1] != '\n') line--;
        const char *c = line + strspn(line, " \t");
        if (*c != '#' || c[1] == '!') break; /* "#!": for tools, not for readers */
        first = line;
    }
    StrBuf doc = {.arena = p->arena};
    for (const char *line = first; line < end;) {
        const char *c = strchr(line, '#') + 1, *stop = memchr(line, '\n', (size_t)(end - line));
        if (*c == ' ') c++;
        size_t n = (size_t)(stop - c);
        while (n > 0 && (c[n - 1] == '\r' || c[n - 1] == ' ')) n--;
        if (doc.len) sb_puts(&doc, "\n");
        sb_putn(&doc, c, n);
        line = stop + 1;
    }
    return doc.text ? doc.text : "";
}

void item_add(Parser *p, Item *item)
{
    item->broken = p->broken;
    item->doc = doc_above(p, item->span.begin - p->source->base);
    /* A comment above imports is about the file: its first definition has it. */
    if (item->kind == IT_IMPORT) {
        if (!p->doc) p->doc = item->doc;
        item->doc = "";
    } else {
        if (p->doc && !item->doc[0]) item->doc = p->doc;
        p->doc = "";
    }
    p->broken = false;
    p->noise = false;
    if ((item->kind == IT_FN || item->kind == IT_SCHEDULE) && builtin_function(item->name.text)) {
        diag_report(p->diags, DIAG_RESERVED_FUNCTION, item->name.span, item->name.text);
        item->broken = true;
    }
    ARENA_PUSH(p->arena, p->ast->items, p->ast->n, p->ast->cap, item);
}
