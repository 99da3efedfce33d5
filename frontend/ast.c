/* ast.c - trees as text, as they were parsed: --emit=ast and golden files.
 *
 * The text is stable: numbers in their shortest form, one statement a line, two spaces a level.
 *
 *     m := lerp(g, m, b1)   ->   (:= m (lerp g m b1))
 *     when t > 1 { p -= g } ->   (when (> t 1)
 *                                  (-= p g))
 */
#include "ast.h"
#include "recipe.h"
#include <string.h>

const char *reduce_kind_name(ReduceKind k)
{
    static const char *const names[] = {
        [RK_SUM] = "sum",   [RK_MEAN] = "mean",  [RK_MAX] = "max", [RK_MIN] = "min",
        [RK_NORM] = "norm", [RK_RMS] = "rms",    [RK_DOT] = "dot", [RK_ANY] = "any",
        [RK_ALL] = "all",   [RK_COUNT] = "count"};
    return names[k];
}

const char *scope_kind_name(ScopeKind k)
{
    static const char *const names[] = {
        [SCOPE_TENSOR] = "tensor", [SCOPE_ROW] = "row",     [SCOPE_COL] = "col",
        [SCOPE_MATRIX] = "matrix", [SCOPE_BLOCK] = "block", [SCOPE_GROUP] = "group",
        [SCOPE_ALL] = "all"};
    return names[k];
}

typedef struct Printer {
    StrBuf *out;
    int level;
} Printer;

static void put(Printer *w, const char *text)
{
    sb_puts(w->out, text);
}

static void line(Printer *w)
{
    put(w, "\n");
    for (int i = 0; i < w->level; i++) put(w, "  ");
}

static void put_string(Printer *w, const char *text)
{
    put(w, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '\n')
            put(w, "\\n");
        else if (*c == '"' || *c == '\\')
            sb_printf(w->out, "\\%c", *c);
        else
            sb_putn(w->out, c, 1);
    }
    put(w, "\"");
}

static void put_number(Printer *w, double value)
{
    char text[32];
    put(w, number_format(text, value));
}

/* ---- expressions ----------------------------------------------------------------------------- */

static void put_expr(Printer *w, const Expr *e);

static void put_args(Printer *w, Expr *const *args, const Name *names, int n)
{
    for (int i = 0; i < n; i++) {
        put(w, " ");
        if (names && names[i].text) sb_printf(w->out, "%s=", names[i].text);
        put_expr(w, args[i]);
    }
}

static void put_node(Printer *w, const Expr *e, const char *head)
{
    sb_printf(w->out, "(%s", head);
    put_args(w, e->args, e->arg_names, e->nargs);
    put(w, ")");
}

static void put_reduce(Printer *w, const Expr *e)
{
    sb_printf(w->out, "(%s[%s", reduce_kind_name(e->reduce), scope_kind_name(e->scope));
    if (e->scope_size) {
        put(w, " ");
        put_expr(w, e->scope_size);
    }
    put(w, "]");
    put_args(w, e->args, NULL, e->nargs);
    put(w, ")");
}

static const char *op_text(Op op)
{
    return op == OP_POW              ? "^"
           : op == OP_NEG            ? "-"
           : op_info[op].spelling[0] ? op_info[op].spelling
                                     : op_info[op].name;
}

static void put_expr(Printer *w, const Expr *e)
{
    if (!e) {
        put(w, "()");
        return;
    }
    switch (e->kind) {
    case EX_NUMBER: put_number(w, e->num); break;
    case EX_STRING: put_string(w, e->text); break;
    case EX_NAME: put(w, e->name.text); break;
    case EX_OP: put_node(w, e, op_text(e->op)); break;
    case EX_CALL: put_node(w, e, e->name.text); break;
    case EX_REDUCE: put_reduce(w, e); break;
    case EX_INDEX:
        sb_printf(w->out, "(index %s", e->name.text);
        put_args(w, e->args, NULL, e->nargs);
        put(w, ")");
        break;
    case EX_LIST: put_node(w, e, "list"); break;
    case EX_MATCH:
        sb_printf(w->out, "(%s ", e->negated ? "!~" : "~");
        put_expr(w, e->args[0]);
        put(w, " ");
        put_string(w, e->text);
        put(w, ")");
        break;
    case EX_MATMUL: put_node(w, e, "@"); break;
    case EX_OLD:
        sb_printf(w->out, "(old %s", e->name.text);
        put_args(w, e->args, NULL, e->nargs);
        put(w, ")");
        break;
    case EX_DRAW: put_node(w, e, e->name.text); break;
    case EX_COND: put_node(w, e, "?"); break;
    case EX_BAD: put(w, "<bad>"); break;
    }
}

/* ---- declarations and statements ------------------------------------------------------------- */

static void put_decl(Printer *w, const Decl *d)
{
    sb_printf(w->out, "(%s%s", d->is_const ? "const " : "", d->name.text);
    if (d->array) {
        put(w, "[");
        put_expr(w, d->array);
        put(w, "]");
    }
    if (d->rate.given) {
        put(w, " : ");
        put(w, d->rate.block_size ? "block " : d->rate.rate.text);
        if (d->rate.block_size) put_expr(w, d->rate.block_size);
        if (d->rate.format.text) sb_printf(w->out, " %s", d->rate.format.text);
    }
    if (d->init) {
        put(w, " = ");
        put_expr(w, d->init);
    }
    if (d->range.given) {
        put(w, d->range.lo_open ? " in (" : " in [");
        put_expr(w, d->range.lo);
        put(w, ", ");
        put_expr(w, d->range.hi);
        put(w, d->range.hi_open ? ")" : "]");
    }
    put(w, ")");
}

static void put_names(Printer *w, const Stmt *s)
{
    for (size_t i = 0; i < s->nnames; i++) {
        sb_printf(w->out, " %s", s->names[i].text);
        if (s->aliases && s->aliases[i].text) sb_printf(w->out, "=%s", s->aliases[i].text);
    }
}

static void put_app(Printer *w, const App *app)
{
    sb_printf(w->out, "(%s", app->name.text);
    put_args(w, app->args, app->arg_names, app->nargs);
    put(w, ")");
}

static void put_block(Printer *w, const Block *b);

static void put_bodies(Printer *w, const Stmt *s)
{
    if (s->body) put_block(w, s->body);
    if (!s->else_body) return;
    w->level++;
    line(w);
    put(w, "(else");
    put_block(w, s->else_body);
    put(w, ")");
    w->level--;
}

static void put_write(Printer *w, const Stmt *s)
{
    static const char *const ops[] = {":=", "+=", "-=", "*=", "/="};
    sb_printf(w->out, "%s %s", ops[s->wop], s->name.text);
    if (s->index) {
        put(w, "[");
        put_expr(w, s->index);
        put(w, "]");
    }
    put(w, " ");
    put_expr(w, s->value);
}

static void put_repeat(Printer *w, const Stmt *s)
{
    put(w, "repeat ");
    if (s->hi) sb_printf(w->out, "%s in ", s->name.text);
    put_expr(w, s->cond);
    if (s->hi) {
        put(w, " .. ");
        put_expr(w, s->hi);
    }
}

static void put_stmt(Printer *w, const Stmt *s)
{
    put(w, "(");
    switch (s->kind) {
    case ST_HYPER:
    case ST_STATE:
        put(w, s->kind == ST_HYPER ? "hyper" : "state");
        for (size_t i = 0; i < s->ndecls; i++) {
            put(w, " ");
            put_decl(w, &s->decls[i]);
        }
        break;
    case ST_INPUT: put(w, "input"), put_names(w, s); break;
    case ST_EXPORT: put(w, "export"), put_names(w, s); break;
    case ST_USE:
        put(w, "use ");
        put_app(w, s->app);
        if (s->name.text) sb_printf(w->out, " as %s", s->name.text);
        break;
    case ST_SKIP: put(w, "skip"); break;
    case ST_FAIL: put(w, "fail "), put_string(w, s->text); break;
    case ST_DIRECTION:
    case ST_LET:
        sb_printf(w->out, "%s%s ", s->kind == ST_LET ? "= " : "direction ",
                  s->name.text ? s->name.text : "?");
        put_expr(w, s->value);
        break;
    case ST_WRITE: put_write(w, s); break;
    case ST_INIT: put(w, "init"); break;
    case ST_ON: sb_printf(w->out, "on %s", s->name.text), put_names(w, s); break;
    case ST_WHEN: put(w, "when "), put_expr(w, s->cond); break;
    case ST_REPEAT: put_repeat(w, s); break;
    case ST_SHAPE:
        put(w, "shape [");
        for (size_t i = 0; i < s->nnames; i++)
            sb_printf(w->out, "%s%s", i ? ", " : "", s->names[i].text);
        put(w, "]");
        if (s->cond) put(w, " when "), put_expr(w, s->cond);
        break;
    case ST_SCOPE: break; /* the checker's */
    }
    put_bodies(w, s);
    put(w, ")");
}

static void put_block(Printer *w, const Block *b)
{
    w->level++;
    for (size_t i = 0; i < b->n; i++) {
        line(w);
        put_stmt(w, b->stmts[i]);
    }
    w->level--;
}

/* ---- recipes --------------------------------------------------------------------------------- */

static void put_store(Printer *w, const StoreEntry *e)
{
    sb_printf(w->out, " (%s %s", e->path.text, e->format.text);
    if (e->is_stochastic) put(w, " stochastic");
    if (e->is_unsigned) put(w, " unsigned");
    if (e->block > 0) put(w, " block "), put_number(w, e->block);
    if (e->master.text) sb_printf(w->out, " master %s", e->master.text);
    if (e->unless) put(w, " unless "), put_expr(w, e->unless);
    put(w, ")");
}

static void put_recipe(Printer *w, const RecipeStmt *s)
{
    static const char *const heads[] = {"accumulate", "scale", "use",   "group",
                                        "default",    "store", "shard", "="};
    w->level++;
    for (; s; s = s->next) {
        line(w);
        sb_printf(w->out, "(%s", heads[s->kind]);
        if (s->name.text) sb_printf(w->out, " %s", s->name.text);
        if (s->strategy.text) sb_printf(w->out, " %s", s->strategy.text);
        if (s->cond) put(w, " "), put_expr(w, s->cond);
        if (s->app) put(w, " "), put_app(w, s->app);
        if (s->label.text) sb_printf(w->out, " as %s", s->label.text);
        for (const StoreEntry *e = s->entries; e; e = e->next) put_store(w, e);
        put_recipe(w, s->body);
        put(w, ")");
    }
    w->level--;
}

/* ---- items ----------------------------------------------------------------------------------- */

static void put_item(Printer *w, const Item *item)
{
    static const char *const heads[] = {"import",      "optimizer", "transform", "scaler",
                                        "accumulator", "schedule",  "fn",        "recipe"};
    static const char *const stages[] = {"", " : gradient", " : direction", " : apply"};
    sb_printf(w->out, "(%s ", heads[item->kind]);
    if (item->kind == IT_IMPORT)
        put_string(w, item->text);
    else
        sb_printf(w->out, "%s%s", item->name.text, stages[item->stage]);
    w->level++;
    if (item->doc && item->doc[0]) {
        line(w);
        put(w, "(doc ");
        put_string(w, item->doc);
        put(w, ")");
    }
    if (item->nparams) {
        line(w);
        put(w, "(params");
        for (size_t i = 0; i < item->nparams; i++) {
            put(w, " ");
            put_decl(w, &item->params[i]);
        }
        put(w, ")");
    }
    w->level--;
    if (item->body) put_block(w, item->body);
    put_recipe(w, item->recipe);
    w->level++;
    if (item->value) {
        line(w);
        put_expr(w, item->value);
    }
    w->level--;
    put(w, ")\n");
}

void ast_print(const Ast *ast, StrBuf *out)
{
    Printer w = {.out = out};
    for (size_t i = 0; i < ast->n; i++) put_item(&w, ast->items[i]);
}
