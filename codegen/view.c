/* view.c - dims, tiles and the choice of a body: view.h.
 *
 * Requires a tensor whose elements can be counted (validated by the caller). Tensors without
 * elements have no tiles.
 *
 *     MATRIX, [40, 100]  ->  {first 0, count 3200, row 0} {first 3200, count 800, row 32}
 *     MATRIX, [20, 5000] ->  {0, count 4096, runs 16, pitch 5000} {4096, count 904, runs 16} …
 *     MATRIX, [600, 3, 3] -> {0, count 2304, matrix 0} {2304, 2304, 256} {4608, 792, 512}
 *     BLOCK of 5000, [9000]  ->  {0, count 4096, runs 2, last 4000} {4096, count 904, last 0}
 */
#include "view.h"
#include "plan.h"

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- dims ------------------------------------------------------------------------------------ */

static int64_t product(const int64_t *shape, int n)
{
    int64_t p = 1;
    for (int d = 0; d < n; d++) {
        if (shape[d] == 0) return 0; /* before what does not matter overflows */
    }
    for (int d = 0; d < n; d++) p *= shape[d];
    return p;
}

static void last_two(ViewDims *d, int ndim, const int64_t *shape)
{
    d->rows = ndim < 2 ? 1 : shape[ndim - 2];
    d->cols = ndim < 2 ? d->numel : shape[ndim - 1];
    d->mats = ndim < 3 ? 1 : d->numel ? product(shape, ndim - 2) : 0;
}

static void tile(ViewDims *d)
{
    int64_t wide = d->cols > 0 ? 256 / d->cols : 0;
    d->tile_rows = 16 * (wide > 1 ? wide : 1);
    d->tiles = divide_up(d->rows, d->tile_rows);
    d->strips = d->cols > 0 ? divide_up(d->cols, DS_CHUNK) : 0;
    int64_t each = d->numel > 0 && d->mats > 1 ? d->rows * d->cols : DS_PACK + 1;
    for (d->packs = 1; each <= DS_PACK && 2 * d->packs * each <= DS_CHUNK;) d->packs *= 2;
}

ViewDims view_dims(View view, int ndim, const int64_t *shape, int64_t block)
{
    ViewDims d = {.view = view, .numel = product(shape, ndim), .packs = 1};
    switch (view) {
    case VIEW_FLAT:
        last_two(&d, ndim, shape);
        d.tiles = divide_up(d.numel, DS_CHUNK);
        d.strips = 1;
        return d;
    case VIEW_MATRIX: last_two(&d, ndim, shape); break;
    case VIEW_FIRST:
        d.rows = ndim < 1 ? 1 : shape[0];
        d.cols = ndim < 1 ? 1 : d.numel ? product(shape + 1, ndim - 1) : 0;
        d.mats = 1;
        break;
    case VIEW_BLOCK:
        d.cols = least(block, d.numel);
        d.rows = d.cols > 0 ? divide_up(d.numel, d.cols) : 0;
        d.mats = 1;
        break;
    }
    tile(&d);
    return d;
}

int64_t view_length(const ViewDims *d, Rate rate)
{
    if (d->numel == 0) return 0;
    if (rate_is_element(rate)) return d->numel;
    if (rate & (AXIS_ROW | AXIS_BLOCK)) return d->mats * d->rows;
    return rate & AXIS_COL ? d->mats * d->cols : d->mats;
}

int64_t view_partials(const ViewDims *d, Rate rate)
{
    int64_t n = view_length(d, rate);
    if (rate & (AXIS_ROW | AXIS_BLOCK)) return n * d->strips;
    return rate & AXIS_COL ? n * d->tiles : n;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static size_t flat_rows(const ViewDims *d, int64_t tensor, DsRow *out)
{
    for (int64_t k = 0; out && k < d->tiles; k++) {
        int64_t first = k * DS_CHUNK;
        out[k] = ds_flat_row(tensor, first, least(DS_CHUNK, d->numel - first));
    }
    return (size_t)d->tiles;
}

/* Rows [row, row + n) of a matrix wider than a strip: a tile for each strip. */
static size_t strip_rows(const ViewDims *d, DsRow whole, int64_t n, DsRow *out)
{
    for (int64_t k = 0; out && k < d->strips; k++) {
        int64_t col = k * DS_CHUNK, width = least(DS_CHUNK, d->cols - col),
                left = d->numel - (whole.first + (n - 1) * d->cols + col);
        out[k] = whole;
        out[k].first += col;
        out[k].count = out[k].width = width;
        out[k].runs = n;
        out[k].pitch = d->cols;
        out[k].last = left < 0 ? 0 : least(width, left); /* of a short last block */
        out[k].col = col;
        out[k].strip = k;
    }
    return (size_t)d->strips;
}

static size_t matrix_rows(const ViewDims *d, int64_t tensor, int64_t matrix, DsRow *out)
{
    size_t count = 0;
    for (int64_t tile = 0; tile < d->tiles; tile++) {
        int64_t row = tile * d->tile_rows, n = least(d->tile_rows, d->rows - row),
                index = matrix * d->rows + row, first = index * d->cols,
                elements = least(n * d->cols, d->numel - first);
        DsRow whole = {.tensor = tensor,
                       .first = first,
                       .count = elements,
                       .runs = 1,
                       .pitch = elements,
                       .width = d->cols,
                       .last = elements,
                       .matrix = matrix,
                       .row = index,
                       .tile = tile};
        DsRow *next = out ? out + count : NULL;
        if (d->strips > 1) {
            count += strip_rows(d, whole, n, next);
        } else {
            if (next) *next = whole;
            count++;
        }
    }
    return count;
}

/* Rows of several matrices each. */
static size_t packed_rows(const ViewDims *d, int64_t tensor, DsRow *out)
{
    int64_t each = d->rows * d->cols, n = divide_up(d->mats, d->packs);
    for (int64_t k = 0; out && k < n; k++) {
        int64_t matrix = k * d->packs, count = least(d->packs, d->mats - matrix) * each;
        out[k] = (DsRow){.tensor = tensor,
                         .first = matrix * each,
                         .count = count,
                         .runs = 1,
                         .pitch = count,
                         .width = d->cols,
                         .last = count,
                         .matrix = matrix,
                         .row = matrix * d->rows};
    }
    return (size_t)n;
}

size_t view_rows(const ViewDims *d, int64_t tensor, DsRow *out)
{
    if (d->numel == 0) return 0;
    if (d->view == VIEW_FLAT) return flat_rows(d, tensor, out);
    if (d->packs > 1) return packed_rows(d, tensor, out);
    if (!out) return (size_t)(d->mats * d->tiles * d->strips);
    size_t count = 0;
    for (int64_t m = 0; m < d->mats; m++) count += matrix_rows(d, tensor, m, out + count);
    return count;
}

/* ---- which body ------------------------------------------------------------------------------ */

static double select_value(const IrModule *m, const Ins *i, const double *value,
                           const double *block)
{
    double x[3] = {0};
    if (i->op == IR_CONST) return i->lit.num;
    if (i->op == IR_LOAD) return block[m->slots[i->lit.slot].index];
    for (int k = 0; k < ir_arity(i); k++) x[k] = value[i->arg[k]];
    return i->op == IR_ROUND ? (double)(float)x[0] : ir_eval((Op)i->op, true, x[0], x[1], x[2]);
}

bool select_eval(const IrModule *m, Arena *a, double *block)
{
    const IrBody *b = m->select;
    double *value = ARENA_ARRAY(a, double, b->n + 1);
    if (!value) return false;
    for (IrRef r = 0; r < b->n; r++) value[r] = select_value(m, &b->ins[r], value, block);
    for (uint32_t s = 0; s < b->nstores; s++)
        if (b->stores[s].guard == IR_NONE || value[b->stores[s].guard] != 0)
            block[m->slots[b->stores[s].slot].index] = value[b->stores[s].value];
    return true;
}
