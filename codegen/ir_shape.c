/* ir_shape.c - what the shape of a tensor decides before any step: its sizes, the body that it runs
 * (the module's `select`), and how that body's view cuts it.
 *
 * Requires a verified module. Ensures answers that depend on the shape alone.
 *
 *     shape {3, 5, 7}  ->  ndim 3, rows 5, cols 7, mats 3, first 3, rest 35
 *     ir_view(VIEW_BLOCK, 105 elements, blocks of 50)  ->  rows 3, cols 50, mats 1
 */
#include "ir_impl.h"
#include <math.h>
#include <string.h>

IrSizes ir_sizes(const int64_t *shape, int ndim)
{
    IrSizes s = {.numel = 1, .ndim = ndim, .rows = 1, .mats = 1, .first = 1, .rest = 1};
    for (int k = 0; k < ndim; k++) {
        s.numel *= shape[k];
        if (k > 0) s.rest *= shape[k];
        if (k < ndim - 2) s.mats *= shape[k];
    }
    if (ndim > 0) s.first = shape[0];
    s.cols = ndim < 2 ? s.numel : shape[ndim - 1];
    if (ndim >= 2) s.rows = shape[ndim - 2];
    return s;
}

void ir_view(View view, const IrSizes *s, int64_t block, int64_t *rows, int64_t *cols,
             int64_t *mats)
{
    *rows = s->rows;
    *cols = s->cols;
    *mats = s->mats;
    if (view == VIEW_FIRST) {
        *rows = s->first;
        *cols = s->rest;
        *mats = 1;
    } else if (view == VIEW_BLOCK) {
        *rows = s->numel / block + (s->numel % block != 0);
        *cols = block;
        *mats = 1;
    }
}

bool ir_view_has(View view, Rate rate)
{
    if (!rate_is_vector(rate)) return true;
    if (rate == RATE_BLOCK) return view == VIEW_BLOCK;
    return view == VIEW_MATRIX || view == VIEW_FIRST;
}

static double property(const IrSizes *s, const char *name)
{
    const struct {
        const char *name;
        int64_t value;
    } all[] = {{"numel", s->numel}, {"ndim", s->ndim}, {"rows", s->rows},
               {"cols", s->cols},   {"mats", s->mats}, {"first", s->first}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) return (double)all[i].value;
    return NAN;
}

static double evaluate(const IrModule *m, const Ins *i, const IrSizes *s, const double *v)
{
    if (i->op == IR_CONST) return i->lit.num;
    if (i->op == IR_LOAD) return property(s, m->slots[i->lit.slot].name);
    double x[3] = {0, 0, 0};
    for (int k = 0; k < ir_arity(i); k++) x[k] = v[i->arg[k]];
    return ir_eval((Op)i->op, true, x[0], x[1], x[2]);
}

bool ir_select(const IrModule *m, const IrSizes *sizes, uint32_t *body, double *block)
{
    *body = 0;
    *block = 0;
    if (!m->select) return true;
    double v[IR_MAX_SELECT], arm = 0;
    const IrBody *b = m->select;
    for (uint32_t i = 0; i < b->n; i++) v[i] = evaluate(m, &b->ins[i], sizes, v);
    bool blocks = false;
    for (uint32_t i = 0; i < b->nstores; i++) {
        bool is_arm = m->slots[b->stores[i].slot].kind == SLOT_ARM;
        *(is_arm ? &arm : block) = v[b->stores[i].value];
        blocks |= !is_arm;
    }
    if (!(arm >= 0 && arm < m->nbodies) || arm != floor(arm)) return false;
    *body = (uint32_t)arm;
    /* A block size matters to tensors whose body has blocks. */
    if (!blocks || m->bodies[*body].view != VIEW_BLOCK) return true;
    return *block >= 1 && *block <= 0x1p53 && *block == floor(*block);
}
