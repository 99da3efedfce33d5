/* interp_reduce.c - the interpreter's reductions: within a tensor, to whatever rate, and across
 * tensors.
 *
 * Requires operands that are done, in every body that feeds the slot and runs. Ensures the fixed
 * trees of docs/numerics.md.
 *
 *     sum[row] %0    ->  one double per row;     sumsq[all] %0  ->  one, over bodies and tensors
 */
#include "interp_impl.h"
#include "reduce.h"

static ReduceOp op_of(const Ins *i)
{
    return (ReduceOp)(i->op - IR_RED);
}

/* An argument's values as doubles; NULL: there is none. */
static double *doubles(Run *r, uint32_t body, IrRef ref, Site s, Rate rate)
{
    if (ref == IR_NONE) return NULL;
    size_t n = (size_t)exec_count(&r->x->tensors[s.tensor], rate);
    double *out = run_temp(r, n, DT_F64);
    int mark = r->ntemps;
    MapArg arg;
    run_operand(r, body, ref, s, rate, &arg);
    for (size_t k = 0; k < n; k++) out[k] = map_arg_get(&arg, k);
    run_drop(r, mark);
    return out;
}

static Tiles tiles_at(const Run *r, Site s)
{
    const ExecTensor *t = &r->x->tensors[s.tensor];
    return tiles_of(t->numel, t->rows, t->cols, t->mats);
}

/* All values of one tensor, whatever the reduction's own scope. */
static double reduce_whole(Run *r, uint32_t body, const Ins *i, Site s)
{
    int mark = r->ntemps;
    Rate rate = ir_args_rate(&r->m->bodies[body], i);
    if (rate_is_scalar(rate)) rate = RATE_ELEMENT; /* once per element */
    double *x = doubles(r, body, i->arg[0], s, rate), *y = doubles(r, body, i->arg[1], s, rate);
    double root;
    if (rate_is_element(rate) && r->m->bodies[body].view != VIEW_FLAT) {
        Tiles t = tiles_at(r, s);
        root = reduce_matrices(op_of(i), &t, x, y, 0, t.mats);
    } else {
        size_t n = (size_t)exec_count(&r->x->tensors[s.tensor], rate);
        root = reduce_vector(op_of(i), x, y, n, NULL);
    }
    run_drop(r, mark);
    return root;
}

double reduce_to_tensor(Run *r, uint32_t body, const Ins *i, Site s)
{
    if (!run_guard(r, body, i->arg[2], s)) return reduce_identity(op_of(i));
    return reduce_whole(r, body, i, s);
}

static void each_matrix(const Ins *i, const Tiles *t, Rate rate, const double *x, const double *y,
                        double *out)
{
    int64_t part = rate == RATE_ROW ? t->rows : t->cols;
    for (int64_t m = 0; m < t->mats; m++) {
        if (rate_is_element(rate))
            out[m] = reduce_matrices(op_of(i), t, x, y, m, m + 1);
        else
            out[m] =
                reduce_vector(op_of(i), x + m * part, y ? y + m * part : NULL, (size_t)part, NULL);
    }
}

void reduce_to_vector(Run *r, uint32_t body, const Ins *i, Site s, void *out)
{
    int mark = r->ntemps;
    Rate rate = ir_args_rate(&r->m->bodies[body], i);
    size_t n = (size_t)exec_count(&r->x->tensors[s.tensor], i->rate);
    double *result = run_temp(r, n, DT_F64);
    if (!run_guard(r, body, i->arg[2], s)) {
        for (size_t k = 0; k < n; k++) result[k] = reduce_identity(op_of(i));
    } else {
        Tiles t = tiles_at(r, s);
        double *x = doubles(r, body, i->arg[0], s, rate), *y = doubles(r, body, i->arg[1], s, rate);
        if (i->rate == RATE_MATRIX)
            each_matrix(i, &t, rate, x, y, result);
        else if (i->rate == RATE_COL)
            reduce_cols(op_of(i), &t, x, y, result);
        else
            reduce_rows(op_of(i), &t, x, y, result);
    }
    for (size_t k = 0; k < n; k++) elem_set(out, (DType)i->dtype, (int64_t)k, result[k]);
    run_drop(r, mark);
}

/* ---- across tensors -------------------------------------------------------------------------- */

/* Scalars of group rate, over the groups: as the first body says that runs there. */
static double reduce_groups(Run *r, uint32_t slot)
{
    size_t n = r->x->ngroups;
    double *x = ARENA_ARRAY(&r->arena, double, n + 1), *y = ARENA_ARRAY(&r->arena, double, n + 1);
    unsigned char *seen = arena_alloc(&r->arena, n + 1), *present = arena_alloc(&r->arena, n + 1);
    const Ins *i = NULL;
    for (uint32_t b = 0; b < r->m->nbodies; b++) {
        if (!r->val[b] || r->feeder[b][slot] == IR_NONE) continue;
        i = &r->m->bodies[b].ins[r->feeder[b][slot]];
        for (size_t g = 0; g < n; g++) {
            Site s;
            if (seen[g] || !run_site(r, b, LEVEL_GROUP, g, &s)) continue;
            seen[g] = 1;
            if (!run_guard(r, b, i->arg[2], s)) continue;
            present[g] = 1;
            x[g] = run_scalar(r, b, i->arg[0], s);
            if (ir_arity(i) > 1) y[g] = run_scalar(r, b, i->arg[1], s);
        }
    }
    return reduce_vector(op_of(i), x, ir_arity(i) > 1 ? y : NULL, n, present);
}

double reduce_across(Run *r, uint32_t slot, size_t group)
{
    const ExecState *x = r->x;
    bool all = r->m->slots[slot].rate == RATE_GLOBAL;
    double *v = ARENA_ARRAY(&r->arena, double, x->ntensors + 1);
    double *w = ARENA_ARRAY(&r->arena, double, x->ntensors + 1);
    unsigned char *present = arena_alloc(&r->arena, x->ntensors + 1);
    size_t n = 0; /* tensors that are not empty and whose body feeds the slot have a place */
    const Ins *i = NULL;
    bool scalars = false;
    for (size_t k = 0; k < x->ntensors; k++) {
        const ExecTensor *t = &x->tensors[x->by_name[k]];
        IrRef ref = r->feeder[t->body][slot];
        if (t->numel <= 0 || ref == IR_NONE || !(all || t->group == group)) continue;
        size_t rank = n++;
        Site s;
        if (!run_site(r, t->body, LEVEL_TENSOR, x->by_name[k], &s)) continue;
        i = &r->m->bodies[t->body].ins[ref];
        Rate rate = ir_args_rate(&r->m->bodies[t->body], i);
        if (rate == RATE_GROUP) return reduce_groups(r, slot);
        scalars = rate_is_scalar(rate);
        if (!run_guard(r, t->body, i->arg[2], s)) continue;
        present[rank] = 1;
        v[rank] = scalars ? run_scalar(r, t->body, i->arg[0], s) : reduce_whole(r, t->body, i, s);
        if (scalars && ir_arity(i) > 1) w[rank] = run_scalar(r, t->body, i->arg[1], s);
    }
    if (!scalars) return reduce_tree(op_of(i), v, n, 1, present);
    return reduce_vector(op_of(i), v, ir_arity(i) > 1 ? w : NULL, n, present);
}
