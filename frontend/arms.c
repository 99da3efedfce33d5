/* arms.c - the ways that a tensor can take through a rule's `shape` statements.
 *
 * Requires checked blocks. A `shape` is taken by tensors of two dimensions or more for which its
 * condition holds; equal conditions are one fact, so statements that ask the same give no more ways.
 *
 *     shape [.., r, c] { A } else { B };  shape [.., r, c] when r > 8 { C }
 *  -> A C | A | B
 */
#include "ast.h"
#include <string.h>

typedef struct Walk {
    Arena *arena;
    ShapeFact *facts; /* [0, n) are decided, [0, used) have been asked for in this walk */
    size_t n, cap, used;
} Walk;

bool expr_same(const Expr *x, const Expr *y)
{
    if (x == y) return true;
    if (!x || !y || x->is_const != y->is_const) return false;
    if (x->is_const) return x->cval == y->cval && x->dtype == y->dtype;
    if (x->kind != y->kind || x->sym != y->sym || x->nargs != y->nargs || x->op != y->op)
        return false;
    if (x->kind == EX_MATCH && (x->num != y->num || x->negated != y->negated)) return false;
    for (int i = 0; i < x->nargs; i++)
        if (!expr_same(x->args[i], y->args[i])) return false;
    return true;
}

/* What was decided about a fact, or is decided now: that it holds, first. */
static bool ask(Walk *w, const Expr *cond)
{
    for (size_t i = 0; i < w->used; i++)
        if (expr_same(w->facts[i].cond, cond)) return w->facts[i].holds;
    if (w->used == w->n) {
        ShapeFact f = {cond, true};
        ARENA_PUSH(w->arena, w->facts, w->n, w->cap, f);
    }
    return w->facts[w->used++].holds;
}

static void walk(Walk *w, const Block *b)
{
    for (size_t i = 0; b && i < b->n; i++) {
        const Stmt *s = b->stmts[i];
        if (s->kind != ST_SHAPE) {
            walk(w, s->body);
            walk(w, s->else_body);
            continue;
        }
        bool taken = ask(w, NULL) && (!s->cond || ask(w, s->cond));
        walk(w, taken ? s->body : s->else_body);
    }
}

size_t shape_paths(Arena *a, const Block *first, const Block *second, ShapePath **out)
{
    Walk w = {.arena = a};
    size_t n = 0;
    *out = ARENA_ARRAY(a, ShapePath, RULE_MAX_PATHS);
    for (;;) {
        w.used = 0;
        walk(&w, first);
        walk(&w, second);
        ShapePath *p = &(*out)[n++];
        p->n = w.n;
        p->facts = ARENA_ARRAY(a, ShapeFact, w.n + 1);
        if (w.n) memcpy(p->facts, w.facts, w.n * sizeof *w.facts);
        while (w.n && !w.facts[w.n - 1].holds) w.n--;
        if (!w.n) return n;
        if (n == RULE_MAX_PATHS) return n + 1;
        w.facts[w.n - 1].holds = false;
    }
}

static bool holds(const ShapePath *path, const Expr *cond)
{
    for (size_t i = 0; i < path->n; i++)
        if (expr_same(path->facts[i].cond, cond)) return path->facts[i].holds;
    return false;
}

bool shape_takes(const ShapePath *path, const Stmt *shape)
{
    return holds(path, NULL) && (!shape->cond || holds(path, shape->cond));
}

bool shape_of_first(const Stmt *shape)
{
    return shape->nnames > 0 && strcmp(shape->names[0].text, "..") != 0;
}
