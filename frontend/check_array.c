/* check_array.c - arrays of states and hyperparameters, and `repeat`.
 *
 * An array of K is K symbols, b[0], b[1], …, each with its own path. A constant index is one of
 * them; an index `… % K`, a ring, chooses: reads become conditions, writes guards. `repeat` is
 * unrolled, the variable a constant.
 *
 *     b[1]              ->   NAME b[1]
 *     b[s % 3]          ->   COND(s % 3 < 1, b[0], COND(s % 3 < 2, b[1], b[2]))
 *     b[s % 2] := g     ->   LET index = s % 2;  WHEN index < 1 { b[0] := g }  WHEN index >= 1 { … }
 */
#include "check.h"
#include <math.h>
#include <string.h>

/* ---- constants that count ------------------------------------------------------------------- */

/* A whole constant of lo to hi; false: reported, or broken. */
static bool whole(Checker *c, const Expr *e, const char *what, double lo, double hi, int *out)
{
    Expr *x = check_number(c, e);
    if (expr_bad(x)) return false;
    if (!x->is_const) {
        Diag *d = REPORT(c, DIAG_NOT_CONST, e->span, what);
        diag_hint(c->diags, d, "numbers and 'const hyper' are");
        return false;
    }
    if (x->cval == floor(x->cval) && x->cval >= lo && x->cval <= hi) {
        *out = (int)x->cval;
        return true;
    }
    REPORT(c, DIAG_NOT_WHOLE, e->span, what, x->cval, lo, hi);
    return false;
}

int array_size(Checker *c, const Decl *decl)
{
    int n = 0;
    NameSet names = c->x.names;
    c->x.names = NAMES_HYPER;
    bool ok = whole(c, decl->array, "the size of an array", 1, CHECK_MAX_SLOTS, &n);
    c->x.names = names;
    return ok ? n : 0;
}

Expr *array_element(Checker *c, const Decl *decl, Expr *list, int i, int n)
{
    if (!list || list->kind != EX_LIST) return list;
    if (list->nargs == n) return list->args[i];
    if (i == 0)
        REPORT(c, DIAG_LIST_LENGTH, list->span, decl->name.text, n, n == 1 ? "" : "s", list->nargs);
    return list->args[i < list->nargs ? i : list->nargs - 1];
}

/* ---- elements ------------------------------------------------------------------------------- */

typedef struct Index {
    Symbol *array;
    int at;     /* the constant, where there is no ring */
    Expr *ring; /* checked; NULL: constant */
} Index;

/* `x % K`, seen through names. */
static bool is_ring(const Expr *x, int n)
{
    while (x->kind == EX_NAME && x->sym->kind == SYM_LET && x->sym->value) x = x->sym->value;
    return x->kind == EX_OP && x->op == OP_MOD && x->args[1]->is_const && x->args[1]->cval == n &&
           rate_is_scalar(x->rate);
}

static bool find_element(Checker *c, Name name, const Expr *index, Index *out)
{
    Symbol *a = check_lookup(c, name);
    if (!a && !scope_find(c->x.scope, name.text)) {
        check_unknown_name(c, name, NULL);
        check_expr(c, index);
        return false;
    }
    if (!a || a->kind != SYM_ARRAY) {
        if (!a || a->dtype != DT_COUNT)
            REPORT(c, DIAG_NOT_ARRAY, name.span, name.text, a ? symbol_what(a) : "a value");
        check_expr(c, index);
        return false;
    }
    Expr *x = check_number(c, index);
    if (expr_bad(x) || a->nelems == 0) return false;
    *out = (Index){.array = a};
    if (!x->is_const) {
        out->ring = x;
        if (is_ring(x, a->nelems)) return true;
        Diag *d = REPORT(c, DIAG_INDEX_FORM, index->span, a->name);
        diag_hint(c->diags, d, "a ring of %d: '… %% %d', one value per tensor or coarser",
                  a->nelems, a->nelems);
        return false;
    }
    out->at = (int)x->cval;
    if (x->cval == floor(x->cval) && x->cval >= 0 && x->cval < a->nelems) return true;
    REPORT(c, DIAG_INDEX_RANGE, index->span, x->cval, a->name, a->nelems - 1);
    return false;
}

static Expr *before(Checker *c, Expr *ring, int k, Span at)
{
    return expr_op(c, OP_LT, at, ring, expr_number(c, at, k), NULL);
}

Expr *array_read(Checker *c, const Expr *e, Expr *(*read)(Checker *, Symbol *, Span))
{
    Index i;
    if (!find_element(c, e->name, e->args[0], &i)) return expr_new(c, EX_BAD, e->span);
    if (!i.ring) return read(c, i.array->elems[i.at], e->span);
    int n = i.array->nelems;
    Expr *out = read(c, i.array->elems[n - 1], e->span);
    for (int k = n - 2; k >= 0; k--)
        out = expr_cond(c, e->span, before(c, i.ring, k + 1, e->span),
                        read(c, i.array->elems[k], e->span), out);
    return out;
}

/* Whether the ring stands at k. */
static Expr *stands_at(Checker *c, Expr *ring, int k, int n, Span at)
{
    Expr *low = k > 0 ? expr_op(c, OP_GE, at, ring, expr_number(c, at, k), NULL) : NULL;
    Expr *high = k < n - 1 ? before(c, ring, k + 1, at) : NULL;
    return !low ? high : !high ? low : expr_op(c, OP_AND, at, low, high, NULL);
}

static void write_ring(Checker *c, const Stmt *s, const Index *i, Expr *value)
{
    int n = i->array->nelems;
    Span at = s->index->span;
    Symbol *name = stmt_let(c, ST_LET, (Name){"index", at}, i->ring, at);
    Expr *ring = expr_of_symbol(c, name, at);
    if (!expr_bad(value) && !value->is_const) {
        name = stmt_let(c, ST_LET, (Name){"value", s->value->span}, value, s->value->span);
        value = expr_of_symbol(c, name, s->value->span);
    }
    Rate guard = c->x.guard;
    Block *out = c->out;
    c->x.guard = rate_join(guard, ring->rate);
    for (int k = 0; k < n; k++) {
        Stmt *when = stmt_new(c, ST_WHEN, s->span);
        when->cond = stands_at(c, ring, k, n, at);
        when->body = c->out = ARENA_NEW(c->arena, Block);
        stmt_write(c, s, i->array->elems[k], value);
        c->out = out;
        if (when->body->n) stmt_emit(c, when);
    }
    c->x.guard = guard;
}

void array_write(Checker *c, const Stmt *s)
{
    Index i;
    bool found = find_element(c, s->name, s->index, &i);
    if (found && i.array->elems[0]->kind != SYM_STATE) {
        Diag *d =
            REPORT(c, DIAG_NOT_WRITABLE, s->name.span, s->name.text, "an array of hyperparameters");
        diag_hint(c->diags, d, "make it a 'state'");
        found = false;
    }
    if (!found) {
        check_number(c, s->value);
        return;
    }
    bool alone = !i.ring || i.array->nelems == 1;
    c->x.writing = alone ? i.array->elems[i.at] : NULL;
    Expr *value = check_number(c, s->value);
    c->x.writing = NULL;
    if (alone)
        stmt_write(c, s, i.array->elems[i.at], value);
    else
        write_ring(c, s, &i, value);
}

/* ---- repeat --------------------------------------------------------------------------------- */

/* One turn, in a scope of its own. */
static void turn(Checker *c, const Stmt *s, Expr *i)
{
    Context here = c->x;
    Scope *scope = ARENA_NEW(c->arena, Scope);
    scope->parent = here.scope;
    c->x.scope = scope;
    c->x.in_when = c->x.in_repeat = true;
    if (s->hi && check_new_name(c, s->name)) scope_bind(c, scope, s->name, NULL, i);
    check_block(c, s->body);
    c->x = here;
}

void repeat_stmt(Checker *c, const Stmt *s)
{
    int lo = 0, hi = 0;
    const char *what = s->hi ? "a bound of 'repeat'" : "the number of turns";
    bool known = s->hi ? whole(c, s->cond, what, 0, CHECK_MAX_OPS, &lo) : true;
    known = whole(c, s->hi ? s->hi : s->cond, what, lo, CHECK_MAX_OPS, &hi) && known;
    if (!known || hi == lo) { /* for the mistakes inside */
        bool dead = c->x.dead;
        c->x.dead = true;
        Block *out = c->out;
        c->out = ARENA_NEW(c->arena, Block);
        turn(c, s, expr_new(c, EX_BAD, s->name.span));
        c->out = out;
        c->x.dead = dead;
        return;
    }
    for (int i = lo; i < hi && check_budget(c); i++) turn(c, s, expr_number(c, s->name.span, i));
}
