/* emit_tile_view.c - the loops of a kernel whose body has rows and columns (abi.h,
 * docs/numerics.md).
 *
 * A row of the table is worked on in lines. Where its matrix rows are narrow and lie one behind the
 * other it is one line, taken in pieces of whole rows; else (and where a short last block has
 * nothing in the strip, whose partial result is that of no elements) each matrix row is a line,
 * taken in pieces that begin at a multiple of 128. Values of rows and columns are tiles x<ref>: of
 * narrow rows spread piece by piece (columns once), of wide ones filled once per line (columns:
 * pointers into the vector); values of matrices once per row of the table. Lanes of the whole row
 * of the table go on from piece to piece at lane `o`.
 *
 * A row of the table that holds several matrices, of `s` elements each (else s is 0), is one line
 * in pieces of whole matrices, for which values of columns and matrices are spread, too. A matrix
 * is reduced as a row of s elements is; what goes to the tensor leaves the tree of a piece in
 * d<number>.
 *
 *     t_spread_row(k, w, x9, p9 + q / w * 4);       row vector of narrow rows
 *     w_SUMSQ_v(k, w, b0 + q / w, r0);              their sums of squares
 *     c_SUM_v(k, flat ? w : k, b1 + (flat ? 0 : q), r0);
 */
#include "emit_tile_internal.h"

static const char *vector_offset(Rate rate)
{
    if (rate == RATE_MATRIX) return "row->matrix";
    return rate & AXIS_COL ? "row->matrix * t->cols + row->col" : "row->row";
}

void tile_emit_shape(const Emitter *e)
{
    bool lanes = false, tensor = false;
    for (uint32_t i = 0; i < e->k->nreduces; i++) tensor |= tile_reduces_tensor(e, i);
    sb_printf(
        e->out,
        "        long w = row->width, runs = row->runs, flat = runs == 1 & w <= %d & row->last > 0;\n"
        "        long rows = runs > 1 ? runs : (row->count + w - 1) / w;\n"
        "        long lines = flat ? 1 : rows, pitch = runs > 1 ? row->pitch : w;\n"
        "        long pieces = (w + %d) / %d, s = t->packs > 1 ? t->rows * w : 0;\n"
        "        long step = flat ? %d / w * w : ((w + pieces - 1) / pieces + 127) / 128 * 128;\n",
        TILE_LENGTH, TILE_LENGTH - 1, TILE_LENGTH, TILE_LENGTH);
    /* Trees of pieces are parts of the tensor's if their matrices are a power of two. */
    if (tensor)
        sb_printf(e->out, "        if (s) for (step = s; step * 2 <= %d;) step = step * 2;\n",
                  TILE_LENGTH);
    else
        sb_printf(e->out, "        if (s) step = %d / s * s;\n", TILE_LENGTH);
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
        if (tile_reduces_mats(e, i))
            sb_printf(e->out, "        double *b%u = (double *)t->ptr[%u] + row->matrix;\n",
                      (unsigned)i, (unsigned)r->result_vec);
    }
    if (lanes) sb_puts(e->out, "        long o = 0;\n");
}

static void fill_buffer(const Emitter *e, uint32_t number, const char *indent)
{
    tile_use(e, TILE_FILL_D);
    sb_printf(e->out, "%st_fill_d(%s, b%u, ", indent,
              tile_reduces_mats(e, number)   ? "row->count / s"
              : tile_reduces_cols(e, number) ? "s ? row->count / s * w : w"
                                             : "rows",
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
        if (tile_reduces_mats(e, i)) {
            sb_puts(e->out, "            if (s)\n");
            fill_buffer(e, i, "                ");
        }
        sb_printf(e->out, "            a->partial[begin * a->npartial + %u] = ",
                  (unsigned)tile_reduce(e, i)->partial);
        emit_literal(e->out, reduce_info[tile_reduce_op(e, i)].identity, DT_F64);
        sb_puts(e->out, ";\n");
    }
}

/* Which operator spreads what lies in memory over a tile; `each`: matrix by matrix. */
static int spread_op(VectorAt at, Rate rate, bool each)
{
    int row = at.memory == DT_BOOL  ? TILE_SPREAD_ROW_B
              : at.memory == DT_F64 ? TILE_SPREAD_ROW_D
                                    : TILE_SPREAD_ROW;
    if (!(rate & AXIS_COL)) return row;
    return row + (each ? TILE_SPREAD_MAT : TILE_SPREAD_COL) - TILE_SPREAD_ROW;
}

static void spread_call(const Emitter *e, int op, const char *n, const char *width, IrRef ref)
{
    static const char *const names[] = {"row", "col", "mat"}, *const suffixes[] = {"", "_b", "_d"};
    int k = op - TILE_SPREAD_ROW;
    tile_use(e, op);
    sb_printf(e->out, "t_spread_%s%s(%s, %s, x%u, p%u", names[k % 3], suffixes[k / 3], n, width,
              (unsigned)ref, (unsigned)ref);
}

/* The value of the row of the table, or of a line: `index`. */
static void fill_vector(const Emitter *e, IrRef ref, VectorAt at, const char *n, const char *index)
{
    bool flags = e->b->ins[ref].dtype == DT_BOOL;
    int op = flags ? TILE_fill_c : TILE_fill_s;
    tile_use(e, op);
    sb_printf(e->out, "t_%s(%s, x%u, ((%s *)p%u)[%s]%s);\n", tile_info[op].name, n, (unsigned)ref,
              emit_vectors_tile.memory[at.memory], (unsigned)ref, index, flags ? " != 0" : "");
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
        if (rate == RATE_MATRIX) {
            sb_puts(e->out, "        if (!s) ");
            fill_vector(e, ref, at, "step", "0");
        } else if (rate & AXIS_COL) {
            sb_puts(e->out, "        if (flat & !s) ");
            spread_call(e, spread_op(at, rate, false), "row->last < step ? row->last : step", "w",
                        ref);
            sb_puts(e->out, ");\n");
        }
    }
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        IrRef guard = tile_reduce_guard(e, i);
        if (tile_reduces_cols(e, i) && guard == IR_NONE) {
            sb_puts(e->out, "        if (!s)\n");
            fill_buffer(e, i, "            ");
        } else if (tile_reduces_cols(e, i)) {
            fill_buffer(e, i, "        ");
        } else if (tile_reduces_mats(e, i) && guard != IR_NONE) {
            sb_printf(e->out, "        if (s && !v%u)\n", (unsigned)guard);
            fill_buffer(e, i, "            ");
        } else if (tile_reduces_tensor(e, i) && guard != IR_NONE) {
            tile_use(e, TILE_FILL_D);
            sb_printf(e->out, "        if (s) t_fill_d(%d, d%u, ", PACKED_PIECES, (unsigned)i);
            emit_literal(e->out, reduce_info[tile_reduce_op(e, i)].identity, DT_F64);
            sb_puts(e->out, ");\n");
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
        Rate rate = e->b->ins[ref].rate;
        if (rate & AXIS_COL || rate == RATE_MATRIX) continue;
        sb_puts(e->out, "            if (!flat) ");
        fill_vector(e, ref, emit_vector_at(e->p, e->v->body, ref), "n < step ? n : step", "y");
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
        int size = dtype_size(at.memory);
        bool col = (rate & AXIS_COL) != 0, matrix = rate == RATE_MATRIX;
        sb_printf(e->out, "            if (%s) ", col || matrix ? "s" : "flat");
        spread_call(e, spread_op(at, rate, true), "k", col ? "s, w" : matrix ? "s" : "w", ref);
        sb_printf(e->out, " + q / %s * %d);\n", col ? "s * w" : matrix ? "s" : "w", size);
        if (!col) continue;
        sb_puts(e->out, "            if (!flat) ");
        if (at.memory == DT_F32)
            sb_printf(e->out, "x%u = p%u", (unsigned)ref, (unsigned)ref);
        else
            spread_call(e, spread_op(at, rate, false), "k", "k", ref);
        sb_printf(e->out, " + q * %d%s;\n", size, at.memory == DT_F32 ? "" : ")");
    }
}

static bool has_lanes(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (!tile_reduces_rows(e, i) && !tile_reduces_cols(e, i)) return true;
    }
    return false;
}

static void call_with_args(const Emitter *e, const TileCall *c, const char *before)
{
    sb_puts(e->out, before);
    tile_emit_args(e, c, "");
    sb_puts(e->out, ")");
}

/* To matrices, the tensor and coarser. Of several matrices each is a row of s elements; else what
 * comes before the lanes wrap, and the rest. */
static void reduce_lanes(const Emitter *e, const TileCall *c)
{
    const char *name = tile_info[c->op].name;
    unsigned number = (unsigned)c->reduce;
    Arena *a = e->out->arena;
    tile_use(e, c->op);
    tile_use(e, tile_info[c->op].row);
    if (tile_reduces_mats(e, c->reduce)) {
        call_with_args(e, c, arena_printf(a, "if (s) w_%s(k, s, b%u + q / s", name, number));
        sb_puts(e->out, "; ");
    } else {
        ReduceOp op = tile_reduce_op(e, c->reduce);
        tile_use(e, TILE_TREE_SUM + (int)op);
        call_with_args(e, c, arena_printf(a, "if (s) { w_%s(k, s, l%u", name, number));
        sb_printf(e->out, "; d%u[q / step] = tree_%s(k / s, l%u); } ", number,
                  reduce_info[op].name, number);
    }
    call_with_args(e, c, arena_printf(a, "else { if (h) r_%s(h, l%u + o", name, number));
    sb_printf(e->out, "; if (k > h) r_%s(k - h, l%u", name, number);
    tile_emit_args(e, c, "h");
    sb_puts(e->out, "); } }\n");
}

void tile_emit_packed_result(const Emitter *e, uint32_t number)
{
    ReduceOp op = tile_reduce_op(e, number);
    if (tile_reduces_mats(e, number)) {
        sb_puts(e->out, "        if (!s)\n    ");
        return;
    }
    tile_use(e, TILE_TREE_SUM + (int)op);
    sb_printf(e->out,
              "        if (s) a->partial[begin * a->npartial + %u] = tree_%s((row->count + step "
              "- 1) / step, d%u);\n        else\n    ",
              (unsigned)tile_reduce(e, number)->partial, reduce_info[op].name, (unsigned)number);
}

void tile_emit_view_reduce(const Emitter *e, const TileCall *c)
{
    const TileInfo *info = &tile_info[c->op];
    IrRef guard = tile_reduce_guard(e, c->reduce);
    unsigned number = (unsigned)c->reduce;
    Arena *a = e->out->arena;
    sb_puts(e->out, "            ");
    if (guard != IR_NONE) sb_printf(e->out, "if (v%u) ", (unsigned)guard);
    sb_puts(e->out, "{ ");
    if (tile_reduces_rows(e, c->reduce)) {
        tile_use(e, c->op);
        tile_use(e, info->row);
        call_with_args(e, c,
                       arena_printf(a, "if (flat) w_%s(k, w, b%u + q / w", info->name, number));
        call_with_args(e, c, arena_printf(a, "; else r_%s(k, l%u", info->name, number));
    } else if (tile_reduces_cols(e, c->reduce)) {
        tile_use(e, info->col);
        tile_use(e, info->mat);
        call_with_args(e, c,
                       arena_printf(a, "if (s) m_%s(k, s, w, b%u + q / s * w", info->name, number));
        call_with_args(e, c,
                       arena_printf(a, "; else c_%s(k, flat ? w : k, b%u + (flat ? 0 : q)",
                                    info->name, number));
    } else {
        reduce_lanes(e, c);
        return;
    }
    sb_puts(e->out, "; }\n");
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
