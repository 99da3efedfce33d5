/* emit_tile_view.c - the loops of a kernel whose body has rows and columns (abi.h, docs/numerics.md).
 *
 * A row of the table is worked on in lines. Where its matrix rows are narrow and lie one behind the
 * other it is one line, taken in pieces of whole rows; else (and where a short last block has nothing
 * in the strip, whose partial result is that of no elements) each matrix row is a line, taken in
 * pieces that begin at a multiple of 128. Values of rows and columns are tiles x<ref>: of narrow rows
 * spread piece by piece (columns once), of wide ones filled once per line (columns: pointers into the
 * vector). Lanes of the whole row of the table go on from piece to piece at lane `o`.
 *
 *     t_spread_row(k, w, x9, p9 + q / w * 4);       row vector of narrow rows
 *     w_SUMSQ_v(k, w, b0 + q / w, r0);              their sums of squares
 *     c_SUM_v(k, flat ? w : k, b1 + (flat ? 0 : q), r0);
 */
#include "emit_tile_internal.h"

static const char *vector_offset(Rate rate)
{
    return rate & AXIS_COL ? "row->matrix * t->cols + row->col" : "row->row";
}

void tile_emit_shape(const Emitter *e)
{
    sb_printf(
        e->out,
        "        long w = row->width, runs = row->runs, flat = runs == 1 & w <= %d & row->last > 0;\n"
        "        long rows = runs > 1 ? runs : (row->count + w - 1) / w;\n"
        "        long lines = flat ? 1 : rows, pitch = runs > 1 ? row->pitch : w;\n"
        "        long pieces = (w + %d) / %d;\n"
        "        long step = flat ? %d / w * w : ((w + pieces - 1) / pieces + 127) / 128 * 128;\n",
        TILE_LENGTH, TILE_LENGTH - 1, TILE_LENGTH, TILE_LENGTH);
    bool lanes = false;
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        const PlanReduce *r = tile_reduce(e, i);
        if (tile_reduces_rows(e, i))
            sb_printf(e->out,
                      "        double *b%u = (double *)t->ptr[%u] + row->strip * t->rows * t->mats "
                      "+ row->row;\n",
                      (unsigned)i, (unsigned)r->result_vec);
        else if (tile_reduces_cols(e, i))
            sb_printf(e->out,
                      "        double *b%u = (double *)t->ptr[%u] + (row->matrix * t->tiles + "
                      "row->tile) * t->cols + row->col;\n",
                      (unsigned)i, (unsigned)r->result_vec);
        else
            lanes = true;
    }
    if (lanes) sb_puts(e->out, "        long o = 0;\n");
}

static void fill_buffer(const Emitter *e, uint32_t number, const char *indent)
{
    tile_use(e, TILE_FILL_D);
    sb_printf(e->out, "%st_fill_d(%s, b%u, ", indent, tile_reduces_cols(e, number) ? "w" : "rows",
              (unsigned)number);
    emit_literal(e->out, reduce_info[tile_reduce_op(e, number)].identity, DT_F64);
    sb_puts(e->out, ");\n");
}

void tile_emit_identities(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (tile_reduces_rows(e, i) || tile_reduces_cols(e, i)) {
            fill_buffer(e, i, "            ");
            continue;
        }
        sb_printf(e->out, "            a->partial[begin * a->npartial + %u] = ",
                  (unsigned)tile_reduce(e, i)->partial);
        emit_literal(e->out, reduce_info[tile_reduce_op(e, i)].identity, DT_F64);
        sb_puts(e->out, ";\n");
    }
}

/* Which operator spreads what lies in memory over a tile. */
static int spread_op(VectorAt at, Rate rate)
{
    int row = at.memory == DT_BOOL  ? TILE_SPREAD_ROW_B
              : at.memory == DT_F64 ? TILE_SPREAD_ROW_D
                                    : TILE_SPREAD_ROW;
    return rate & AXIS_COL ? row + TILE_SPREAD_COL - TILE_SPREAD_ROW : row;
}

static const char *spread_name(int op)
{
    switch (op) {
    case TILE_SPREAD_ROW: return "t_spread_row";
    case TILE_SPREAD_COL: return "t_spread_col";
    case TILE_SPREAD_ROW_B: return "t_spread_row_b";
    case TILE_SPREAD_COL_B: return "t_spread_col_b";
    case TILE_SPREAD_ROW_D: return "t_spread_row_d";
    default: return "t_spread_col_d";
    }
}

void tile_emit_buffers(const Emitter *e)
{
    for (uint32_t i = 0; i < e->nvectors; i++) {
        IrRef ref = e->vectors[i];
        Rate rate = e->b->ins[ref].rate;
        VectorAt at = emit_vector_at(e->p, e->v->body, ref);
        sb_printf(e->out, "        char *p%u = (char *)t->ptr[%u] + (%s) * %d;\n", (unsigned)ref,
                  (unsigned)at.ptr, vector_offset(rate), dtype_size(at.memory));
        /* Of a column vector x may come to point into the vector itself: each row begins anew. */
        sb_printf(e->out, "        char *x%u = z%u;\n", (unsigned)ref, (unsigned)ref);
        if (!(rate & AXIS_COL)) continue;
        tile_use(e, spread_op(at, rate));
        sb_printf(e->out,
                  "        if (flat) %s(row->last < step ? row->last : step, w, x%u, p%u);\n",
                  spread_name(spread_op(at, rate)), (unsigned)ref, (unsigned)ref);
    }
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        IrRef guard = tile_reduce_guard(e, i);
        if (tile_reduces_cols(e, i)) {
            fill_buffer(e, i, "        ");
        } else if (tile_reduces_rows(e, i) && guard != IR_NONE) {
            sb_printf(e->out, "        if (!v%u)\n", (unsigned)guard);
            fill_buffer(e, i, "            ");
        }
    }
}

/* Of a line: vectors of rows that are one value, accumulators of row reductions. */
static void begin_line(const Emitter *e)
{
    for (uint32_t i = 0; i < e->nvectors; i++) {
        IrRef ref = e->vectors[i];
        const Ins *ins = &e->b->ins[ref];
        if (ins->rate & AXIS_COL) continue;
        VectorAt at = emit_vector_at(e->p, e->v->body, ref);
        int op = ins->dtype == DT_BOOL ? TILE_fill_c : TILE_fill_s;
        tile_use(e, op);
        sb_printf(e->out,
                  "            if (!flat) t_%s(n < step ? n : step, x%u, ((%s *)p%u)[y]%s);\n",
                  tile_info[op].name, (unsigned)ref, emit_vectors_tile.memory[at.memory],
                  (unsigned)ref, ins->dtype == DT_BOOL ? " != 0" : "");
    }
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (!tile_reduces_rows(e, i)) continue;
        tile_use(e, TILE_LANES);
        sb_printf(e->out, "            if (!flat) t_lanes(l%u, ", (unsigned)i);
        emit_literal(e->out, reduce_info[tile_reduce_op(e, i)].identity, DT_F64);
        sb_puts(e->out, ");\n");
    }
}

static void end_line(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (!tile_reduces_rows(e, i)) continue;
        tile_use(e, TILE_FOLD_SUM + (int)tile_reduce_op(e, i));
        sb_printf(e->out, "            if (!flat) b%u[y] = fold_%s(l%u);\n", (unsigned)i,
                  reduce_info[tile_reduce_op(e, i)].name, (unsigned)i);
    }
}

static void begin_piece(const Emitter *e)
{
    for (uint32_t i = 0; i < e->nvectors; i++) {
        IrRef ref = e->vectors[i];
        Rate rate = e->b->ins[ref].rate;
        VectorAt at = emit_vector_at(e->p, e->v->body, ref);
        int op = spread_op(at, rate), size = dtype_size(at.memory);
        tile_use(e, op);
        if (!(rate & AXIS_COL))
            sb_printf(e->out, "            if (flat) %s(k, w, x%u, p%u + q / w * %d);\n",
                      spread_name(op), (unsigned)ref, (unsigned)ref, size);
        else if (at.memory == DT_F32)
            sb_printf(e->out, "            if (!flat) x%u = p%u + q * %d;\n", (unsigned)ref,
                      (unsigned)ref, size);
        else
            sb_printf(e->out, "            if (!flat) %s(k, k, x%u, p%u + q * %d);\n",
                      spread_name(op), (unsigned)ref, (unsigned)ref, size);
    }
}

static bool has_lanes(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (!tile_reduces_rows(e, i) && !tile_reduces_cols(e, i)) return true;
    }
    return false;
}

/* What comes before the lanes wrap, and the rest. */
static void reduce_lanes(const Emitter *e, const TileCall *c)
{
    const char *name = tile_info[c->op].name;
    tile_use(e, c->op);
    sb_printf(e->out, "if (h) r_%s(h, l%u + o", name, (unsigned)c->reduce);
    tile_emit_args(e, c, "");
    sb_printf(e->out, "); if (k > h) r_%s(k - h, l%u", name, (unsigned)c->reduce);
    tile_emit_args(e, c, "h");
    sb_puts(e->out, "); }\n");
}

void tile_emit_view_reduce(const Emitter *e, const TileCall *c)
{
    const TileInfo *info = &tile_info[c->op];
    IrRef guard = tile_reduce_guard(e, c->reduce);
    unsigned number = (unsigned)c->reduce;
    sb_puts(e->out, "            ");
    if (guard != IR_NONE) sb_printf(e->out, "if (v%u) ", (unsigned)guard);
    sb_puts(e->out, "{ ");
    if (tile_reduces_rows(e, c->reduce)) {
        tile_use(e, c->op);
        tile_use(e, info->row);
        sb_printf(e->out, "if (flat) w_%s(k, w, b%u + q / w", info->name, number);
        tile_emit_args(e, c, "");
        sb_printf(e->out, "); else r_%s(k, l%u", info->name, number);
    } else if (tile_reduces_cols(e, c->reduce)) {
        tile_use(e, info->col);
        sb_printf(e->out, "c_%s(k, flat ? w : k, b%u + (flat ? 0 : q)", info->name, number);
    } else {
        reduce_lanes(e, c);
        return;
    }
    tile_emit_args(e, c, "");
    sb_puts(e->out, "); }\n");
}

void tile_emit_lines(Emitter *e, const TileProgram *t)
{
    StrBuf *out = e->out;
    bool lanes = has_lanes(e);
    e->t = t;
    sb_puts(out,
            "        for (long y = 0; y < lines; y++) {\n"
            "            long at = row->first + y * pitch;\n"
            "            long n = flat ? row->last : y + 1 < lines ? w : runs > 1 ? row->last : "
            "row->last - y * w;\n");
    uint32_t count = emit_pointer_count(e->p, e->v);
    for (uint32_t i = 0; i < count; i++) {
        if (tile_touches(e, i))
            sb_printf(out, "            char *e%u = (char *)t->ptr[%u] + at * %d;\n", (unsigned)i,
                      (unsigned)i, tile_element_size(e, i));
    }
    begin_line(e);
    sb_puts(out, "            for (long q = 0, k; q < n; q += k) {\n"
                 "            k = n - q < step ? n - q : step;\n");
    if (lanes) sb_puts(out, "            long h = o == 0 ? 0 : k < 128 - o ? k : 128 - o;\n");
    begin_piece(e);
    for (uint32_t i = 0; i < t->ncalls; i++) tile_emit_call(e, t->calls[i]);
    for (uint32_t i = 0; i < count; i++) {
        if (tile_touches(e, i))
            sb_printf(out, "            e%u += k * %d;\n", (unsigned)i, tile_element_size(e, i));
    }
    if (lanes) sb_puts(out, "            o = (o + k) & 127;\n");
    sb_puts(out, "            }\n");
    end_line(e);
    sb_puts(out, "        }\n");
}
