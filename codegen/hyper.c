/* hyper.c - the value of a hyperparameter that follows others, outside of a step.
 *
 * Requires a checked rule. Ensures: the operations of the step, in its order, each in f64 and by
 * its row of ops.def, so that the bits are those that the step computes with. Each node is
 * computed once, and of a choice only what is chosen. The stack is as deep as defaults are nested,
 * which check limits.
 *
 *     hyper lr = 0.1, wd = lr / 10   ->   hyper_follow("adamw.wd") = 0.01
 */
#include "hyper.h"
#include "ir.h"
#include <math.h>
#include <string.h>

typedef struct Follow {
    const HyperInputs *in;
    double *value; /* per node of the rule */
    bool *done;
    bool failed;
    const char *missing;
} Follow;

static double follow(Follow *f, const Expr *e);

static double fail(Follow *f, const char *missing)
{
    if (!f->failed) f->missing = missing;
    f->failed = true;
    return NAN;
}

static double of_symbol(Follow *f, const Symbol *s)
{
    double own;
    if (s->is_const) return s->cval;
    if (s->kind == SYM_GIVEN && s->given == GIVEN_S) return f->in->s;
    if (s->kind != SYM_HYPER) return fail(f, NULL);
    if (f->in->value(f->in->user, s->path, &own)) return own;
    return s->derived ? follow(f, s->value) : fail(f, s->path);
}

static double of_op(Follow *f, const Expr *e)
{
    double x[3] = {0};
    for (int i = 0; i < e->nargs && !f->failed; i++) x[i] = follow(f, e->args[i]);
    return ir_eval(e->op, true, x[0], x[1], x[2]);
}

static double follow(Follow *f, const Expr *e)
{
    if (e->is_const) return e->cval;
    if (f->failed || f->done[e->id]) return f->value[e->id];
    double v;
    switch (e->kind) {
    case EX_NAME: v = of_symbol(f, e->sym); break;
    case EX_OP: v = of_op(f, e); break;
    case EX_COND: v = follow(f, e->args[follow(f, e->args[0]) != 0 ? 1 : 2]); break;
    default: v = fail(f, NULL); break; /* a reduction */
    }
    f->done[e->id] = true;
    return f->value[e->id] = v;
}

bool hyper_follow(Arena *a, const Rule *rule, const char *path, const HyperInputs *in, double *out,
                  const char **missing)
{
    Follow f = {.in = in,
                .value = ARENA_ARRAY(a, double, rule->nexprs),
                .done = ARENA_ARRAY(a, bool, rule->nexprs)};
    const Symbol *s = NULL;
    for (size_t i = 0; i < rule->nhypers; i++)
        if (strcmp(rule->hypers[i]->path, path) == 0) s = rule->hypers[i];
    *out = s ? of_symbol(&f, s) : fail(&f, path);
    *missing = f.missing;
    return !f.failed;
}
