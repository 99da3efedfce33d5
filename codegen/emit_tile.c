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
#include "emit_tile.h"
#include "emit.h"
#include "tile/tile.h"
#include <string.h>

/* A tile is long enough to hide the calls and to read memory in runs, and short enough for L1: 384
 * was the fastest length in every cache and in DRAM (Zen 4, AdamW on 16 M elements: 0.62 ns per
 * element against 0.68 for 128 and 256). Prefetching by instruction, near or far, made DRAM 1.3
 * to 1.7 times slower there, as it did on Zen 3: there is none. The pitch keeps registers of one
 * element from sharing the low 12 bits of their addresses, by which loads and stores are told
 * apart. */
enum {
    TILE_LENGTH = 384,
    TILE_PITCH = TILE_LENGTH * 4 + 64,
    WHOLE_CHUNK = DS_CHUNK,
    MAX_CONDS = 2
};

typedef struct Emitter {
    StrBuf *out;
    const Plan *p;
    const Variant *v;
    const Kernel *k;
    const IrBody *b;
    const TileProgram *t;
    TileUses *uses;
    IrRef conds[MAX_CONDS];
    uint32_t nconds, nregs;
    TileProgram *versions[1 << MAX_CONDS];
    bool *scalar; /* per instruction: a scalar that some version reads */
} Emitter;

static int element_size(const Emitter *e, uint32_t elem)
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
    if (rate_is_elementwise(e->b->ins[ref].rate))
        put_tile(e, ref);
    else
        sb_printf(e->out, "v%u", (unsigned)ref);
}

static void put_args(const Emitter *e, const TileCall *c)
{
    for (int i = 0; i < c->nargs; i++) {
        sb_puts(e->out, ", ");
        put_value(e, c->args[i]);
    }
    sb_puts(e->out, ");\n");
}

static const char *op_name(int op)
{
    static const char *const others[] = {[TILE_LOAD_F16] = "load_f16",
                                         [TILE_LOAD_BF16] = "load_bf16",
                                         [TILE_STORE_F16] = "store_f16",
                                         [TILE_STORE_BF16] = "store_bf16",
                                         [TILE_NORMAL] = "normal",
                                         [TILE_UNIFORM] = "uniform",
                                         [TILE_RADEMACHER] = "rademacher"};
    return tile_info[op].name ? tile_info[op].name : others[op];
}

static void use(const Emitter *e, int op)
{
    e->uses->op[op] = true;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void emit_op(const Emitter *e, const TileCall *c)
{
    use(e, c->op);
    sb_printf(e->out, "t_%s(k, ", op_name(c->op));
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
        bool tile = rate_is_elementwise(e->b->ins[c->args[i]].rate);
        if (tile)
            put_tile(e, c->args[i]);
        else
            sb_printf(e->out, "r%u", (unsigned)reg);
        sb_puts(e->out, i ? ";\n" : " : ");
    }
    for (int i = 0; i < 2; i++) {
        const Ins *ins = &e->b->ins[c->args[i]];
        if (rate_is_elementwise(ins->rate)) continue;
        int op = ins->dtype == DT_BOOL ? TILE_fill_c : TILE_fill_s;
        use(e, op);
        sb_printf(e->out, "            if (%sv%u) t_%s(k, r%u, v%u);\n", i ? "!" : "",
                  (unsigned)c->cond, op_name(op), (unsigned)reg, (unsigned)c->args[i]);
    }
}

static void emit_load(const Emitter *e, const TileCall *c)
{
    use(e, c->op);
    sb_printf(e->out, "            t_%s(k, ", op_name(c->op));
    put_tile(e, c->out[0]);
    sb_printf(e->out, ", e%u);\n", (unsigned)c->elem);
}

static void emit_store(const Emitter *e, const TileCall *c)
{
    bool tile = rate_is_elementwise(e->b->ins[c->args[0]].rate);
    use(e, c->op);
    sb_puts(e->out, "            ");
    if (c->guard != IR_NONE) sb_printf(e->out, "if (v%u) ", (unsigned)c->guard);
    if (!tile && c->op != TILE_fill_s) {
        use(e, TILE_fill_s);
        sb_printf(e->out, "{ t_fill_s(k, r%u, v%u); t_%s(k, e%u, r%u); }\n", (unsigned)c->reg,
                  (unsigned)c->args[0], op_name(c->op), (unsigned)c->elem, (unsigned)c->reg);
        return;
    }
    sb_printf(e->out, "t_%s(k, e%u", op_name(c->op), (unsigned)c->elem);
    put_args(e, c);
}

static const PlanReduce *reduce_of(const Emitter *e, uint32_t number)
{
    return &e->p->reduces[e->k->reduces[number]];
}

/* A guard that is always true is none. */
static IrRef reduce_guard(const Emitter *e, uint32_t number)
{
    IrRef guard = e->b->ins[reduce_of(e, number)->ins].arg[2];
    bool always = guard == IR_NONE || e->b->ins[guard].op == IR_CONST;
    return always ? IR_NONE : guard;
}

static void emit_reduce(const Emitter *e, const TileCall *c)
{
    use(e, c->op);
    sb_puts(e->out, "            ");
    if (reduce_guard(e, c->reduce) != IR_NONE)
        sb_printf(e->out, "if (v%u) ", (unsigned)reduce_guard(e, c->reduce));
    sb_printf(e->out, "r_%s(k, l%u", op_name(c->op), (unsigned)c->reduce);
    put_args(e, c);
}

static void emit_call(const Emitter *e, const TileCall *c)
{
    switch (c->kind) {
    case CALL_OP: emit_call_op(e, c); break;
    case CALL_LOAD:
    case CALL_COPY: emit_load(e, c); break;
    case CALL_CHOICE: emit_choice(e, c); break;
    case CALL_STORE: emit_store(e, c); break;
    case CALL_REDUCE: emit_reduce(e, c); break;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static ReduceOp reduce_op(const Emitter *e, uint32_t number)
{
    return (ReduceOp)(e->b->ins[reduce_of(e, number)->ins].op - IR_RED);
}

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
        if (reduce_guard(e, i) == IR_NONE) return;
    }
    sb_puts(e->out, "        if (!(");
    for (uint32_t i = 0; i < e->k->nstores; i++)
        sb_printf(e->out, "%sv%u", i ? " | " : "", (unsigned)e->k->stores[i].guard);
    for (uint32_t i = 0; i < e->k->nreduces; i++)
        sb_printf(e->out, "%sv%u", i || e->k->nstores ? " | " : "", (unsigned)reduce_guard(e, i));
    sb_puts(e->out, ")) {\n");
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        sb_printf(e->out, "            a->partial[begin * a->npartial + %u] = ",
                  (unsigned)reduce_of(e, i)->partial);
        emit_literal(e->out, reduce_info[reduce_op(e, i)].identity, DT_F64);
        sb_puts(e->out, ";\n");
    }
    sb_puts(e->out, "            continue;\n        }\n");
}

static bool touches(const Emitter *e, uint32_t elem)
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
        if (rate_is_elementwise(m->slots[i].rate) && m->slots[i].index == elem)
            return m->slots[i].name;
    }
    return "temporary";
}

static uint32_t element_count(const Emitter *e)
{
    return e->p->m->nelem + e->v->ntemps;
}

static void emit_elements(const Emitter *e)
{
    for (uint32_t i = 0; i < element_count(e); i++) {
        if (touches(e, i))
            sb_printf(e->out,
                      "        char *e%u = (char *)t->ptr[%u] + row->first * %d; /* %s */\n",
                      (unsigned)i, (unsigned)i, element_size(e, i), elem_name(e, i));
    }
}

static void emit_tiles(Emitter *e, const TileProgram *t)
{
    /* What calls leave for later ones should stay in L1, and scratch holds one tile of it; a single
     * call that needs no scratch has nothing to leave. (A scalar goes to 16-bit storage by way of
     * scratch in one call.) */
    int length = t->ncalls > 1 || t->nregs > 0 ? TILE_LENGTH : WHOLE_CHUNK;
    e->t = t;
    sb_puts(e->out, "        for (long n = row->count, k; n > 0; n -= k) {\n");
    sb_printf(e->out, "            k = n < %d ? n : %d;\n", length, length);
    for (uint32_t i = 0; i < t->ncalls; i++) emit_call(e, t->calls[i]);
    for (uint32_t i = 0; i < element_count(e); i++) {
        if (touches(e, i))
            sb_printf(e->out, "            e%u += k * %d;\n", (unsigned)i, element_size(e, i));
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
        use(e, TILE_LANES);
        sb_printf(e->out, "        t_lanes(l%u, ", (unsigned)i);
        emit_literal(e->out, reduce_info[reduce_op(e, i)].identity, DT_F64);
        sb_puts(e->out, ");\n");
    }
}

static void emit_folds(const Emitter *e)
{
    for (uint32_t i = 0; i < e->k->nreduces; i++) {
        use(e, TILE_FOLD_SUM + (int)reduce_op(e, i));
        sb_printf(e->out, "        a->partial[begin * a->npartial + %u] = fold_%s(l%u);\n",
                  (unsigned)reduce_of(e, i)->partial, reduce_info[reduce_op(e, i)].name,
                  (unsigned)i);
    }
}

static void emit_scratch(const Emitter *e)
{
    size_t at = 0;
    for (uint32_t i = 0; i < e->k->nreduces; i++, at += DS_LANES * sizeof(double))
        sb_printf(e->out, "    double *l%u = (double *)(scratch + %u);\n", (unsigned)i,
                  (unsigned)at);
    for (uint32_t i = 0; i < e->nregs; i++, at += TILE_PITCH)
        sb_printf(e->out, "    char *r%u = scratch + %u;\n", (unsigned)i, (unsigned)at);
    if (at > e->uses->scratch_bytes) e->uses->scratch_bytes = at;
}

static void select_versions(Emitter *e)
{
    Arena *a = e->out->arena;
    e->nconds = tile_choices(e->p, e->v, e->k, e->conds, MAX_CONDS);
    e->scalar = ARENA_ARRAY(a, bool, e->b->n + 1);
    e->nregs = 0;
    for (uint32_t version = 0; version < 1u << e->nconds; version++) {
        TileProgram *t = tile_select(a, e->p, e->v, e->k, e->conds, e->nconds, version);
        e->versions[version] = t;
        e->nregs = t->nregs > e->nregs ? t->nregs : e->nregs;
        for (IrRef ref = 0; ref < e->b->n; ref++) e->scalar[ref] |= t->scalar[ref];
    }
    for (uint32_t c = 0; c < e->nconds; c++) e->scalar[e->conds[c]] = true;
    for (uint32_t i = 0; i < e->k->nstores; i++) {
        if (e->k->stores[i].guard != IR_NONE) e->scalar[e->k->stores[i].guard] = true;
    }
}

static void emit_kernel(Emitter *e)
{
    select_versions(e);
    sb_printf(e->out, "void k%d(const DsArgs *a, long begin, long end, char *scratch)\n{\n",
              e->k->phase);
    emit_scratch(e);
    sb_puts(e->out, "    for (; begin < end; begin++) {\n"
                    "        const DsRow *row = a->rows + begin;\n"
                    "        const DsTensorRow *t = a->tensors + row->tensor;\n");
    emit_uniforms(e);
    emit_skip(e);
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
    "long rows, cols, mats, tiles; } DsTensorRow;\n"
    "typedef struct { const DsRow *rows; const DsTensorRow *tensors; "
    "double *partial; long npartial; } DsArgs;\n";

static void declare_row(StrBuf *out, int op)
{
    const TileRow *row = &tile_rows()[op];
    bool reduce = tile_info[op].reduce >= 0;
    sb_printf(out, "void %c_%s(long, %s", reduce ? 'r' : 't', tile_info[op].name,
              reduce ? "double *" : "void *");
    for (int i = 0; i < row->nparams; i++)
        sb_puts(out, strchr("SD", row->kind[i]) ? ", float"
                     : row->kind[i] == 'C'      ? ", int"
                     : row->kind[i] == 'O'      ? ", void *"
                                                : ", const void *");
    sb_puts(out, ");\n");
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
        else if (op == TILE_LANES)
            sb_puts(out, "void t_lanes(double *, double);\n");
        else if (op == TILE_NORMAL || op == TILE_UNIFORM || op == TILE_RADEMACHER)
            sb_printf(out, "void t_%s(long, void *, double, double, unsigned, long);\n",
                      op_name(op));
        else
            sb_printf(out, "void t_%s(long, void *, const void *);\n", op_name(op));
    }
}

void tile_uses_name(StrBuf *out, int op)
{
    if (op >= TILE_FOLD_SUM && op < TILE_FOLD_SUM + RED_COUNT_)
        sb_printf(out, "fold_%s", reduce_info[op - TILE_FOLD_SUM].name);
    else if (op == TILE_LANES)
        sb_puts(out, "t_lanes");
    else
        sb_printf(out, "%c_%s", tile_info[op].name && tile_info[op].reduce >= 0 ? 'r' : 't',
                  op_name(op));
}

void emit_tile_kernels(StrBuf *out, const Plan *p, const Variant *v, TileUses *uses)
{
    StrBuf body = {.arena = out->arena};
    Emitter e = {.out = &body, .p = p, .v = v, .b = &p->m->bodies[v->body], .uses = uses};
    for (uint32_t i = 0; i < v->nkernels; i++) {
        e.k = &v->kernels[i];
        emit_kernel(&e);
    }
    sb_puts(out, head);
    declare_functions(out, body.text ? body.text : "");
    declare_operators(out, uses);
    sb_puts(out, body.text ? body.text : "");
}

void emit_tile_scalars(StrBuf *out, const Plan *p)
{
    StrBuf body = {.arena = out->arena};
    for (uint32_t i = 0; i < p->nprograms + p->ncommit; i++) {
        const ScalarProgram *sp = i < p->nprograms ? &p->programs[i] : &p->commit[i - p->nprograms];
        StrBuf name = {.arena = out->arena};
        sb_puts(&name, "void ");
        emit_program_name(&name, p, sp);
        emit_scalar_function(&body, p, sp, name.text);
    }
    declare_functions(out, body.text ? body.text : "");
    sb_puts(out, body.text ? body.text : "");
}

bool emit_tile_c(const Plan *p, const Variant *v, StrBuf *text)
{
    TileUses uses = {0};
    if (p->m->compute_f64) return false;
    emit_tile_kernels(text, p, v, &uses);
    emit_tile_scalars(text, p);
    return true;
}
