/* emit_tile.c - kernels as C for libtcc: loops over the rows of the chunk table and over tiles, and
 * calls of tile operators.
 *
 * Requires: a plan and a variant that computes in f32. Ensures: text that needs no header; what it
 * calls (tile operators, ds_ functions in scalar programs) is declared at its head and given by
 * backend_c.c. It computes nothing per element itself.
 *
 *     for (long n = row->count, k; n > 0; n -= k) {
 *         k = n < 384 ? n : 384;
 *         t_axpby(k, e2, v12, e2, v16, e1);
 *         e1 += k * 4, e2 += k * 4;
 */
#include "emit_tile_internal.h"
#include <string.h>

int tile_element_size(const Emitter *e, uint32_t elem)
{
    return elem < e->p->m->nelem ? dtype_size(e->v->storage[elem]) : 4;
}

/* ---- operands -------------------------------------------------------------------------------- */

static void put_tile(const Emitter *e, IrRef ref)
{
    const TileLoc *loc = &e->t->loc[ref];
    if (loc->kind == LOC_ELEM)
        sb_printf(e->out, "e%u", (unsigned)loc->elem);
    else if (loc->kind == LOC_REG)
        sb_printf(e->out, "r%u", (unsigned)loc->reg);
    else
        sb_printf(e->out, "x%u", (unsigned)ref);
}

static void put_value(const Emitter *e, IrRef ref)
{
    if (tile_is(e->b, ref))
        put_tile(e, ref);
    else
        sb_printf(e->out, "v%u", (unsigned)ref);
}

void tile_emit_args(const Emitter *e, const TileCall *c, const char *lead)
{
    for (int i = 0; i < c->nargs; i++) {
        sb_puts(e->out, ", ");
        put_value(e, c->args[i]);
        if (*lead && tile_is(e->b, c->args[i]))
            sb_printf(e->out, " + %s * 4", lead);
    }
}

static void put_args(const Emitter *e, const TileCall *c)
{
    tile_emit_args(e, c, "");
    sb_puts(e->out, ");\n");
}

const char *tile_op_name(int op)
{
    static const char *const others[] = {[TILE_LOAD_F16] = "load_f16",
                                         [TILE_LOAD_BF16] = "load_bf16",
                                         [TILE_STORE_F16] = "store_f16",
                                         [TILE_STORE_BF16] = "store_bf16",
                                         [TILE_NORMAL] = "normal",
                                         [TILE_UNIFORM] = "uniform",
                                         [TILE_RADEMACHER] = "rademacher",
                                         [TILE_LANES] = "lanes",
                                         [TILE_SPREAD_ROW] = "spread_row",
                                         [TILE_SPREAD_COL] = "spread_col",
                                         [TILE_SPREAD_MAT] = "spread_mat",
                                         [TILE_SPREAD_ROW_B] = "spread_row_b",
                                         [TILE_SPREAD_COL_B] = "spread_col_b",
                                         [TILE_SPREAD_MAT_B] = "spread_mat_b",
                                         [TILE_SPREAD_ROW_D] = "spread_row_d",
                                         [TILE_SPREAD_COL_D] = "spread_col_d",
                                         [TILE_SPREAD_MAT_D] = "spread_mat_d",
                                         [TILE_FILL_D] = "fill_d",
                                         [TILE_COPY_D] = "copy_d",
                                         [TILE_WIDEN] = "widen",
                                         [TILE_NARROW] = "narrow",
                                         [TILE_BYTES] = "bytes",
#define TILE_WIDE(E, types) [TILE_WIDE_##E] = "wide_" #E,
#include "codegen/tile/wide.def"
    };
    return tile_info[op].name ? tile_info[op].name : others[op];
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void emit_op(const Emitter *e, const TileCall *c)
{
    tile_use(e, c->op);
    sb_printf(e->out, "t_%s(k, ", tile_op_name(c->op));
    put_tile(e, c->out[0]);
    put_args(e, c);
}

/* A value whose place is decided at run time gets its pointer before it is made. */
static void emit_pointers(const Emitter *e, const TileCall *c)
{
    for (int o = 0; o < TILE_OUTPUTS; o++) {
        if (c->out[o] == IR_NONE || e->t->loc[c->out[o]].kind != LOC_GUARDED) continue;
        const TileLoc *loc = &e->t->loc[c->out[o]];
        sb_printf(e->out, "            char *x%u = v%u ? e%u : r%u;\n", (unsigned)c->out[o],
                  (unsigned)loc->guard, (unsigned)loc->elem, (unsigned)loc->reg);
    }
}

static void emit_call_op(const Emitter *e, const TileCall *c)
{
    emit_pointers(e, c);
    sb_puts(e->out, "            ");
    if (c->cond == IR_NONE) {
        emit_op(e, c);
        return;
    }
    sb_printf(e->out, "if (v%u) ", (unsigned)c->cond);
    emit_op(e, c);
    sb_puts(e->out, "            else ");
    emit_op(e, c->otherwise);
}

static void emit_choice(const Emitter *e, const TileCall *c)
{
    uint32_t reg = e->t->loc[c->out[0]].reg;
    sb_printf(e->out, "            char *x%u = v%u ? ", (unsigned)c->out[0], (unsigned)c->cond);
    for (int i = 0; i < 2; i++) {
        bool tile = tile_is(e->b, c->args[i]);
        if (tile)
            put_tile(e, c->args[i]);
        else
            sb_printf(e->out, "r%u", (unsigned)reg);
        sb_puts(e->out, i ? ";\n" : " : ");
    }
    for (int i = 0; i < 2; i++) {
        const Ins *ins = &e->b->ins[c->args[i]];
        if (tile_is(e->b, c->args[i])) continue;
        int op = ins->dtype == DT_BOOL ? TILE_fill_c : TILE_fill_s;
        tile_use(e, op);
        sb_printf(e->out, "            if (%sv%u) t_%s(k, r%u, v%u);\n", i ? "!" : "",
                  (unsigned)c->cond, tile_op_name(op), (unsigned)reg, (unsigned)c->args[i]);
    }
}

static void emit_load(const Emitter *e, const TileCall *c)
{
    tile_use(e, c->op);
    sb_printf(e->out, "            t_%s(k, ", tile_op_name(c->op));
    put_tile(e, c->out[0]);
    sb_printf(e->out, ", e%u);\n", (unsigned)c->elem);
}

static void emit_store(const Emitter *e, const TileCall *c)
{
    bool tile = tile_is(e->b, c->args[0]);
    tile_use(e, c->op);
    sb_puts(e->out, "            ");
    if (c->guard != IR_NONE) sb_printf(e->out, "if (v%u) ", (unsigned)c->guard);
    if (!tile && c->op != TILE_fill_s) {
        tile_use(e, TILE_fill_s);
        sb_printf(e->out, "{ t_fill_s(k, r%u, v%u); t_%s(k, e%u, r%u); }\n", (unsigned)c->reg,
                  (unsigned)c->args[0], tile_op_name(c->op), (unsigned)c->elem, (unsigned)c->reg);
        return;
    }
    sb_printf(e->out, "t_%s(k, e%u", tile_op_name(c->op), (unsigned)c->elem);
    put_args(e, c);
}

/* Draws are numbered by the elements of the tensor. */
static void emit_draw(const Emitter *e, const TileCall *c)
{
    tile_use(e, c->op);
    sb_printf(e->out, "            t_%s(k, ", tile_op_name(c->op));
    put_tile(e, c->out[0]);
    tile_emit_args(e, c, "");
    sb_printf(e->out, ", %uu, %s);\n", (unsigned)c->elem,
              e->view ? "at + q" : "row->first + row->count - n");
}

static void emit_reduce(const Emitter *e, const TileCall *c)
{
    if (e->view) {
        tile_emit_view_reduce(e, c);
        return;
    }
    tile_use(e, c->op);
    sb_puts(e->out, "            ");
    if (tile_reduce_guard(e, c->reduce) != IR_NONE)
        sb_printf(e->out, "if (v%u) ", (unsigned)tile_reduce_guard(e, c->reduce));
    sb_printf(e->out, "r_%s(k, l%u", tile_op_name(c->op), (unsigned)c->reduce);
    put_args(e, c);
}

void tile_emit_call(const Emitter *e, const TileCall *c)
{
    switch (c->kind) {
    case CALL_OP: emit_call_op(e, c); break;
    case CALL_LOAD:
    case CALL_COPY: emit_load(e, c); break;
    case CALL_CHOICE: emit_choice(e, c); break;
    case CALL_DRAW: emit_draw(e, c); break;
    case CALL_STORE: emit_store(e, c); break;
    case CALL_REDUCE: emit_reduce(e, c); break;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void emit_uniforms(const Emitter *e)
{
    bool read[LEVEL_COUNT] = {false};
    for (IrRef ref = 0; ref < e->b->n; ref++) {
        Place at = plan_place(e->p, e->v->body, ref);
        if (e->scalar[ref] && e->b->ins[ref].op != IR_CONST && at.level < LEVEL_COUNT)
            read[at.level] = true;
    }
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (read[l]) sb_printf(e->out, "        const double *%s = t->u[%d];\n", emit_blocks[l], l);
    }
    for (IrRef ref = 0; ref < e->b->n; ref++) {
        if (!e->scalar[ref]) continue;
        sb_puts(e->out, "        ");
        emit_scalar_read(e->out, e->p, e->v->body, ref, &emit_style_c, emit_blocks);
        sb_puts(e->out, "\n");
    }
}

/* Nothing to do for a row where no guard holds; its partial results are those of no elements. */
static void emit_skip(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nstores; i++) {
        if (e->k->stores[i].guard == IR_NONE) return;
    }
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (tile_reduce_guard(e, i) == IR_NONE) return;
    }
    sb_puts(e->out, "        if (!(");
    for (uint32_t i = 0; i < e->k->nstores; i++)
        sb_printf(e->out, "%sv%u", i ? " | " : "", (unsigned)e->k->stores[i].guard);
    for (uint32_t i = 0; i < e->k->nreduces; i++)
        sb_printf(e->out, "%sv%u", i || e->k->nstores ? " | " : "",
                  (unsigned)tile_reduce_guard(e, i));
    sb_puts(e->out, ")) {\n");
    tile_emit_identities(e);
    sb_puts(e->out, "            continue;\n        }\n");
}

bool tile_touches(const Emitter *e, uint32_t elem)
{
    for (uint32_t i = 0; i < e->k->nvals; i++) {
        if (e->k->vals[i].how != VAL_COMPUTE && e->k->vals[i].elem == elem) return true;
    }
    for (uint32_t i = 0; i < e->k->nstores; i++) {
        if (e->k->stores[i].elem == elem) return true;
    }
    return false;
}

static const char *elem_name(const Emitter *e, uint32_t elem)
{
    const IrModule *m = e->p->m;
    for (uint32_t i = 0; i < m->nslots; i++) {
        if (!rate_is_scalar(m->slots[i].rate) && m->slots[i].index == elem) return m->slots[i].name;
    }
    return "temporary";
}

static uint32_t element_count(const Emitter *e)
{
    return emit_pointer_count(e->p, e->v);
}

static void emit_elements(const Emitter *e)
{
    for (uint32_t i = 0; i < element_count(e); i++) {
        if (tile_touches(e, i))
            sb_printf(e->out,
                      "        char *e%u = (char *)t->ptr[%u] + row->first * %d; /* %s */\n",
                      (unsigned)i, (unsigned)i, tile_element_size(e, i), elem_name(e, i));
    }
}

static void emit_tiles(Emitter *e, const TileProgram *t)
{
    if (e->view) {
        tile_emit_lines(e, t);
        return;
    }
    /* What calls leave for later ones should stay in L1, and scratch holds one tile of it; a single
     * call that needs no scratch has nothing to leave. (A scalar goes to 16-bit storage by way of
     * scratch in one call.) */
    int length = t->ncalls > 1 || t->nregs > 0 ? TILE_LENGTH : WHOLE_CHUNK;
    e->t = t;
    sb_puts(e->out, "        for (long n = row->count, k; n > 0; n -= k) {\n");
    sb_printf(e->out, "            k = n < %d ? n : %d;\n", length, length);
    for (uint32_t i = 0; i < t->ncalls; i++) tile_emit_call(e, t->calls[i]);
    for (uint32_t i = 0; i < element_count(e); i++) {
        if (tile_touches(e, i))
            sb_printf(e->out, "            e%u += k * %d;\n", (unsigned)i, tile_element_size(e, i));
    }
    sb_puts(e->out, "        }\n");
}

/* One loop over tiles for each way in which the scalars can choose. */
static void emit_versions(Emitter *e)
{
    uint32_t n = 1u << e->nconds;
    for (uint32_t version = n; version-- > 0;) {
        for (uint32_t c = 0; c < e->nconds; c++) {
            const char *lead = c ? " & " : version == n - 1 ? "        if (" : "        else if (";
            sb_printf(e->out, "%s%sv%u", lead, version >> c & 1 ? "" : "!", (unsigned)e->conds[c]);
        }
        if (e->nconds) sb_puts(e->out, ")\n");
        emit_tiles(e, e->versions[version]);
    }
}

static void emit_lanes(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (tile_reduces_rows(e, i) || tile_reduces_cols(e, i)) continue;
        tile_use(e, TILE_LANES);
        sb_printf(e->out, "        t_lanes(l%u, ", (unsigned)i);
        emit_literal(e->out, reduce_info[tile_reduce_op(e, i)].identity, DT_F64);
        sb_puts(e->out, ");\n");
    }
}

static void emit_folds(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (tile_reduces_rows(e, i) || tile_reduces_cols(e, i)) continue;
        if (e->view) tile_emit_packed_result(e, i);
        tile_use(e, TILE_FOLD_SUM + (int)tile_reduce_op(e, i));
        sb_printf(e->out, "        a->partial[begin * a->npartial + %u] = fold_%s(l%u);\n",
                  (unsigned)tile_reduce(e, i)->partial, reduce_info[tile_reduce_op(e, i)].name,
                  (unsigned)i);
    }
}

static void emit_scratch(const Emitter *e)
{
    size_t at = 0;
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        if (tile_reduces_cols(e, i)) continue;
        sb_printf(e->out, "    double *l%u = (double *)(scratch + %u);\n", (unsigned)i,
                  (unsigned)at);
        at += (e->view ? DS_PACK : DS_LANES) * sizeof(double);
        if (!e->view || !tile_reduces_tensor(e, i)) continue;
        sb_printf(e->out, "    double *d%u = (double *)(scratch + %u);\n", (unsigned)i,
                  (unsigned)at);
        at += PACKED_PIECES * sizeof(double);
    }
    for (uint32_t i = 0; i < e->nregs; i++, at += TILE_PITCH)
        sb_printf(e->out, "    char *r%u = scratch + %u;\n", (unsigned)i, (unsigned)at);
    for (uint32_t i = 0; i < e->nvectors; i++, at += TILE_PITCH)
        sb_printf(e->out, "    char *z%u = scratch + %u;\n", (unsigned)e->vectors[i], (unsigned)at);
    if (at > e->uses->scratch_bytes) e->uses->scratch_bytes = at;
}

static void select_versions(Emitter *e)
{
    Arena *a = e->out->arena;
    e->nconds = tile_choices(e->p, e->v, e->k, e->conds, MAX_CONDS);
    e->scalar = ARENA_ARRAY(a, bool, e->b->n + 1);
    bool *vector = ARENA_ARRAY(a, bool, e->b->n + 1);
    e->nregs = 0;
    for (uint32_t version = 0; version < 1u << e->nconds; version++) {
        TileProgram *t = tile_select(a, e->p, e->v, e->k, e->conds, e->nconds, version);
        e->versions[version] = t;
        e->nregs = t->nregs > e->nregs ? t->nregs : e->nregs;
        for (IrRef ref = 0; ref < e->b->n; ref++) {
            e->scalar[ref] |= t->scalar[ref];
            vector[ref] |= t->loc[ref].kind == LOC_VECTOR;
        }
    }
    e->nvectors = 0;
    e->vectors = ARENA_ARRAY(a, IrRef, e->b->n + 1);
    for (IrRef ref = 0; ref < e->b->n; ref++) {
        if (vector[ref]) e->vectors[e->nvectors++] = ref;
    }
    for (uint32_t c = 0; c < e->nconds; c++) e->scalar[e->conds[c]] = true;
    for (uint32_t i = 0; i < e->k->nstores; i++) {
        if (e->k->stores[i].guard != IR_NONE) e->scalar[e->k->stores[i].guard] = true;
    }
}

static void emit_kernel(Emitter *e)
{
    select_versions(e);
    sb_puts(e->out, "void ");
    emit_kernel_name(e->out, e->v, e->k);
    sb_puts(e->out, "(const DsArgs *a, long begin, long end, char *scratch)\n{\n");
    emit_scratch(e);
    sb_puts(e->out, "    for (; begin < end; begin++) {\n"
                    "        const DsRow *row = a->rows + begin;\n"
                    "        const DsTensorRow *t = a->tensors + row->tensor;\n");
    emit_uniforms(e);
    if (e->view) tile_emit_shape(e);
    emit_skip(e);
    if (e->view)
        tile_emit_buffers(e);
    else
        emit_elements(e);
    emit_lanes(e);
    emit_versions(e);
    emit_folds(e);
    sb_puts(e->out, "    }\n}\n\n");
}

/* ---- declarations ---------------------------------------------------------------------------- */

static const char head[] =
    "typedef struct { long tensor, first, count, runs, pitch, width, last, matrix, "
    "row, col, strip, tile; } DsRow;\n"
    "typedef struct { double *u[4]; void *const *ptr; "
    "long rows, cols, mats, tiles, packs; } DsTensorRow;\n"
    "typedef struct { const DsRow *rows; const DsTensorRow *tensors; "
    "double *partial; long npartial; } DsArgs;\n";

static void declare_params(StrBuf *out, int op)
{
    const TileRow *row = &tile_rows()[op];
    for (int i = 0; i < row->nparams; i++)
        sb_puts(out, strchr("SD", row->kind[i]) ? ", float"
                     : row->kind[i] == 'C'      ? ", int"
                     : row->kind[i] == 'O'      ? ", void *"
                                                : ", const void *");
    sb_puts(out, ");\n");
}

static void declare_row(StrBuf *out, int op)
{
    bool reduce = tile_info[op].reduce >= 0;
    sb_printf(out, "void %c_%s(long, %s", reduce ? 'r' : 't', tile_info[op].name,
              reduce ? "double *" : "void *");
    declare_params(out, op);
}

/* The reduction whose rows or columns an operator reduces, and the letter of its name; -1: another
 * operator. */
static int reduction_of(int op, char *letter)
{
    for (int k = 0; k < TILE_OP_COUNT && tile_info[k].name; k++) {
        const TileInfo *i = &tile_info[k];
        if (i->reduce < 0 || (i->row != op && i->col != op && i->mat != op)) continue;
        *letter = i->row == op ? 'w' : i->col == op ? 'c' : 'm';
        return k;
    }
    return -1;
}

static bool is_spread(int op, bool *matrices)
{
    *matrices = op == TILE_SPREAD_MAT || op == TILE_SPREAD_MAT_B || op == TILE_SPREAD_MAT_D;
    return op >= TILE_SPREAD_ROW && op <= TILE_SPREAD_MAT_D;
}

static void declare_other(StrBuf *out, int op)
{
    char letter;
    bool matrices;
    int k = reduction_of(op, &letter);
    if (k >= 0) {
        sb_printf(out, "void %c_%s(long, long, %sdouble *", letter, tile_info[k].name,
                  letter == 'm' ? "long, " : "");
        declare_params(out, k);
        return;
    }
    const char *params = op == TILE_LANES    ? "double *, double"
                         : op == TILE_FILL_D ? "long, double *, double"
                         : is_spread(op, &matrices)
                             ? matrices ? "long, long, long, void *, const void *"
                                        : "long, long, void *, const void *"
                         : op > TILE_BYTES
                             ? "long, void *, const void *, const void *, const void *"
                         : op >= TILE_NORMAL && op <= TILE_RADEMACHER
                             ? "long, void *, double, double, unsigned, long"
                             : "long, void *, const void *";
    sb_printf(out, "void t_%s(%s);\n", tile_op_name(op), params);
}

static void declare_functions(StrBuf *out, const char *text)
{
    for (size_t i = 0; i < math_function_count; i++) {
        if (math_function_is_used(&math_functions[i], text))
            sb_puts(out, math_functions[i].declaration);
    }
}

static void declare_operators(StrBuf *out, const TileUses *uses)
{
    for (int op = 0; op < TILE_OP_COUNT; op++) {
        if (!uses->op[op]) continue;
        if (tile_info[op].name)
            declare_row(out, op);
        else if (op >= TILE_FOLD_SUM && op < TILE_FOLD_SUM + RED_COUNT_)
            sb_printf(out, "double fold_%s(double *);\n", reduce_info[op - TILE_FOLD_SUM].name);
        else if (op >= TILE_TREE_SUM && op < TILE_TREE_SUM + RED_COUNT_)
            sb_printf(out, "double tree_%s(long, double *);\n",
                      reduce_info[op - TILE_TREE_SUM].name);
        else
            declare_other(out, op);
    }
}

void tile_uses_name(StrBuf *out, int op)
{
    char letter;
    int k = reduction_of(op, &letter);
    if (op >= TILE_FOLD_SUM && op < TILE_FOLD_SUM + RED_COUNT_)
        sb_printf(out, "fold_%s", reduce_info[op - TILE_FOLD_SUM].name);
    else if (op >= TILE_TREE_SUM && op < TILE_TREE_SUM + RED_COUNT_)
        sb_printf(out, "tree_%s", reduce_info[op - TILE_TREE_SUM].name);
    else if (k >= 0)
        sb_printf(out, "%c_%s", letter, tile_info[k].name);
    else
        sb_printf(out, "%c_%s", tile_info[op].name && tile_info[op].reduce >= 0 ? 'r' : 't',
                  tile_op_name(op));
}

void emit_tile_kernels(StrBuf *out, const Plan *p, const Variant *v, TileUses *uses)
{
    StrBuf body = {.arena = out->arena};
    Emitter e = {.out = &body, .p = p, .v = v, .b = &p->m->bodies[v->body], .uses = uses};
    e.view = e.b->view != VIEW_FLAT;
    for (uint32_t i = 0; i < v->nkernels; i++) {
        e.k = &v->kernels[i];
        emit_kernel(&e);
    }
    sb_puts(out, head);
    declare_functions(out, body.text ? body.text : "");
    declare_operators(out, uses);
    sb_puts(out, body.text ? body.text : "");
}

void emit_tile_scalars(StrBuf *out, const Plan *p, uint32_t body_only, bool types, TileUses *uses)
{
    StrBuf body = {.arena = out->arena};
    for (uint32_t i = 0; i < p->nprograms + p->ncommit; i++) {
        const ScalarProgram *sp = i < p->nprograms ? &p->programs[i] : &p->commit[i - p->nprograms];
        StrBuf name = {.arena = out->arena};
        if (body_only != IR_NONE && sp->body != body_only) continue;
        sb_puts(&name, "void ");
        emit_program_name(&name, p, sp);
        emit_scalar_function(&body, p, sp, name.text);
    }
    for (uint32_t i = 0; i < p->nvprograms + p->nvcommit; i++) {
        const VectorProgram *vp =
            i < p->nvprograms ? &p->vprograms[i] : &p->vcommit[i - p->nvprograms];
        StrBuf name = {.arena = out->arena};
        if (body_only != IR_NONE && vp->body != body_only) continue;
        sb_puts(&name, "void ");
        emit_vector_name(&name, p, vp);
        emit_vector_tile_function(&body, p, vp, name.text, uses);
    }
    if (types && p->nvprograms + p->nvcommit) sb_puts(out, head);
    declare_functions(out, body.text ? body.text : "");
    declare_operators(out, uses);
    sb_puts(out, body.text ? body.text : "");
}

bool emit_tile_c(const Plan *p, const Variant *v, StrBuf *text)
{
    TileUses kernels = {0}, programs = {0};
    if (p->m->compute_f64) return false;
    emit_tile_kernels(text, p, v, &kernels);
    emit_tile_scalars(text, p, v->body, false, &programs);
    return true;
}
