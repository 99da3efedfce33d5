/* emit_vector_tile.c - programs of vectors as tile C: an operator for each value, over pieces of
 * the vector.
 *
 * Requires: a plan that computes in f32. Ensures: functions that mean what emit_vector.c's loops
 * do. A value is a tile x<ref> of floats, doubles or ints; what is f64 is computed by operators
 * t_wide_… on tiles of doubles: f32 operands are widened (y<ref>), scalars spread. What has no
 * operator is a loop of its own. A vector of the value's own type is read, and written, where it
 * lies.
 *
 *     %24 = div %21 %23 (f64), %25 = round %24, %27 = mul %26 %25 (f32)
 *     ->  t_wide_DIV(k, x24, x21, y23);  t_narrow(k, x25, x24);  t_MUL_sv(k, x27, v26, x25);
 */
#include "emit_tile_internal.h"
#include "plan_internal.h"
#include <ctype.h>
#include <string.h>

enum { VECTOR_PIECE = 128, MOST_TILES = 48, NO_TILE = UINT32_MAX, TO_THE_END = UINT32_MAX };

typedef struct Program {
    StrBuf *out; /* of the loop over pieces */
    const Plan *p;
    const VectorProgram *vp;
    const IrBody *b;
    TileUses *uses;
    bool *here, *read;        /* computed by this program; read by it */
    uint32_t *last;           /* the last of its values that reads it, or TO_THE_END */
    uint32_t *tile, *widened; /* the numbers of its tile, and of the one of doubles; NO_TILE */
    bool *spread;             /* a scalar with a tile of doubles */
    uint32_t *free, nfree, ntiles, nspread;
} Program;

static DType type_of(const Program *g, IrRef ref)
{
    return (DType)g->b->ins[ref].dtype;
}

static const char *type_text(const Program *g, IrRef ref)
{
    return emit_type(&emit_style_c, type_of(g, ref));
}

static void use(const Program *g, int op)
{
    g->uses->op[op] = true;
}

static int tile_size(const Program *g, IrRef ref)
{
    return type_of(g, ref) == DT_F64 ? 8 : 4;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static uint32_t new_tile(Program *g)
{
    return g->nfree ? g->free[--g->nfree] : g->ntiles++;
}

static void own_tile(Program *g, IrRef ref)
{
    g->tile[ref] = new_tile(g);
    sb_printf(g->out, "            char *x%u = (char *)z%u;\n", (unsigned)ref,
              (unsigned)g->tile[ref]);
}

static void release(Program *g, uint32_t *tile)
{
    if (*tile != NO_TILE) g->free[g->nfree++] = *tile;
    *tile = NO_TILE;
}

/* Tiles that value number i was the last to read. */
static void release_read(Program *g, uint32_t i)
{
    IrRef ref = g->vp->vals[i];
    const Ins *ins = &g->b->ins[ref];
    for (int k = -1; k < ir_arity(ins); k++) {
        IrRef arg = k < 0 ? ref : ins->arg[k];
        if (g->last[arg] != i) continue;
        release(g, &g->tile[arg]);
        release(g, &g->widened[arg]);
    }
}

static void find_last(Program *g)
{
    const VectorProgram *vp = g->vp;
    for (uint32_t i = 0; i < vp->nvals; i++) {
        g->last[vp->vals[i]] = i;
        for (int k = 0; k < ir_arity(&g->b->ins[vp->vals[i]]); k++)
            g->last[g->b->ins[vp->vals[i]].arg[k]] = i;
    }
    for (uint32_t i = 0; i < vp->nkeeps; i++) g->last[vp->keeps[i]] = TO_THE_END;
    for (uint32_t i = 0; i < vp->nstores; i++)
        g->last[g->b->stores[vp->stores[i]].value] = TO_THE_END;
}

/* ---- what it reads --------------------------------------------------------------------------- */

/* Whether the program writes what this load reads: later reads must not see it. */
static bool is_written(const Program *g, IrRef ref)
{
    const Ins *ins = &g->b->ins[ref];
    for (uint32_t i = 0; ins->op == IR_LOAD && i < g->vp->nstores; i++)
        if (g->b->stores[g->vp->stores[i]].slot == ins->lit.slot) return true;
    return false;
}

static void copy(const Program *g, DType type, const char *to, const char *from)
{
    int op = type == DT_F64 ? TILE_COPY_D : TILE_move_v;
    use(g, op);
    sb_printf(g->out, "t_%s(k, %s, %s);\n", tile_op_name(op), to, from);
}

/* A loop over the piece whose statement is `to[…] = (type)from[…]`. */
static void convert(const Program *g, const char *to_type, const char *to, const char *from_type,
                    const char *from)
{
    sb_printf(g->out, "for (long j = 0; j < k; j++) ((%s *)(%s))[j] = (%s)((const %s *)(%s))[j];\n",
              to_type, to, to_type, from_type, from);
}

/* A value of each index's matrix: what is left of the matrix of the first, then whole ones. */
static void read_matrix(Program *g, IrRef ref)
{
    VectorAt at = emit_vector_at(g->p, g->vp->body, ref);
    unsigned x = (unsigned)ref, ptr = (unsigned)at.ptr;
    const char *memory = emit_vectors_tile.memory[at.memory];
    DType type = type_of(g, ref);
    own_tile(g, ref);
    if (type == DT_F64 || (type == DT_F32 && at.memory != DT_F32)) {
        sb_printf(g->out,
                  "            for (long j = 0; j < k; j++) ((%s *)x%u)[j] = ((const %s "
                  "*)t->ptr[%u])[(i + j) / of];\n",
                  type_text(g, ref), x, memory, ptr);
        return;
    }
    int op = type == DT_F32         ? TILE_SPREAD_ROW
             : at.memory == DT_BOOL ? TILE_SPREAD_ROW_B
                                    : TILE_SPREAD_ROW_D,
        size = dtype_size(at.memory);
    const char *suffix = op == TILE_SPREAD_ROW ? "" : op == TILE_SPREAD_ROW_B ? "_b" : "_d";
    use(g, op);
    sb_printf(g->out,
              "            char *p%u = (char *)t->ptr[%u] + i / of * %d;\n"
              "            if (h) t_spread_row%s(h, h, x%u, p%u);\n"
              "            if (k > h) t_spread_row%s(k - h, of, x%u + h * 4, p%u + (h > 0) * "
              "%d);\n",
              x, ptr, size, suffix, x, x, suffix, x, x, size);
}

static void read_vector(Program *g, IrRef ref)
{
    VectorAt at = emit_vector_at(g->p, g->vp->body, ref);
    DType type = type_of(g, ref);
    unsigned x = (unsigned)ref;
    const char *place = arena_printf(g->out->arena, "(char *)t->ptr[%u] + i * %d", (unsigned)at.ptr,
                                     dtype_size(at.memory)),
               *tile = arena_printf(g->out->arena, "x%u", x);
    if (type == DT_BOOL) {
        bool bytes = at.memory == DT_BOOL;
        own_tile(g, ref);
        use(g, bytes ? TILE_SPREAD_ROW_B : TILE_SPREAD_ROW_D);
        sb_printf(g->out, "            t_spread_row%s(k, 1, x%u, %s);\n", bytes ? "_b" : "_d", x,
                  place);
    } else if (at.memory != type) {
        own_tile(g, ref);
        sb_puts(g->out, "            ");
        convert(g, type_text(g, ref), tile, emit_vectors_tile.memory[at.memory], place);
    } else if (is_written(g, ref)) {
        own_tile(g, ref);
        sb_puts(g->out, "            ");
        copy(g, type, tile, place);
    } else {
        sb_printf(g->out, "            char *x%u = %s;\n", x, place);
    }
}

static void read_vectors(Program *g)
{
    bool of = false;
    for (IrRef ref = 0; ref < g->b->n; ref++) {
        Rate rate = g->b->ins[ref].rate;
        if (!g->read[ref] || rate_is_scalar(rate)) continue;
        bool other = rate == RATE_MATRIX && g->vp->rate != RATE_MATRIX;
        if (other && !of)
            sb_printf(g->out,
                      "            const long of = t->%s, ahead = (of - i %% of) %% of;\n"
                      "            const long h = ahead < k ? ahead : k;\n",
                      g->vp->rate & AXIS_COL ? "cols" : "rows");
        of |= other;
        if (other)
            read_matrix(g, ref);
        else
            read_vector(g, ref);
    }
}

/* ---- what it computes ------------------------------------------------------------------------ */

/* The f64 operator of a row of ops.def; 0: none. */
static int wide_operator(Op op)
{
    static const int16_t table[OP_COUNT_] = {
#define TILE_WIDE(E, types) [OP_##E] = TILE_WIDE_##E,
#include "codegen/tile/wide.def"
    };
    return table[op];
}

static bool is_wide(const Program *g, const Ins *ins)
{
    bool wide = false;
    for (int k = 0; k < ir_arity(ins); k++) wide |= type_of(g, ins->arg[k]) == DT_F64;
    return wide;
}

/* The operator of f32 and bools whose operands are tiles and scalars as these are; -1: none. */
static int plain_operator(const Program *g, const Ins *ins)
{
    char name[32] = "";
    size_t n = strlen(op_info[ins->op].name);
    if (n + 6 > sizeof name) return -1;
    for (size_t i = 0; i < n; i++) name[i] = (char)toupper((unsigned char)op_info[ins->op].name[i]);
    name[n++] = '_';
    for (int k = 0; k < ir_arity(ins); k++) {
        bool tile = tile_is(g->b, ins->arg[k]);
        name[n++] = type_of(g, ins->arg[k]) == DT_BOOL ? tile ? 'b' : 'c' : tile ? 'v' : 's';
    }
    for (int op = 0; op < TILE_OP_COUNT && tile_info[op].name; op++)
        if (tile_info[op].reduce < 0 && strcmp(tile_info[op].name, name) == 0) return op;
    return -1;
}

/* An operand of an f64 operator as a tile: doubles, but for the choice of select. */
static void prepare_wide(Program *g, IrRef ref)
{
    unsigned x = (unsigned)ref;
    if (!tile_is(g->b, ref)) { /* filled before the loop */
        g->nspread += !g->spread[ref];
        g->spread[ref] = true;
        return;
    }
    if (type_of(g, ref) == DT_F64 || g->widened[ref] != NO_TILE) return;
    g->widened[ref] = new_tile(g);
    use(g, TILE_WIDEN);
    sb_printf(g->out, "            char *y%u = (char *)z%u; t_widen(k, y%u, x%u);\n", x,
              (unsigned)g->widened[ref], x, x);
}

static const char *wide_operand(const Program *g, IrRef ref)
{
    bool own = tile_is(g->b, ref) && type_of(g, ref) == DT_F64;
    return arena_printf(g->out->arena, "%c%u", own ? 'x' : 'y', (unsigned)ref);
}

static bool compute_wide(Program *g, IrRef ref, const Ins *ins)
{
    int op = wide_operator((Op)ins->op), arity = ir_arity(ins), first = ins->op == IR_SELECT;
    if (!op || (first && (!tile_is(g->b, ins->arg[0]) || ins->dtype != DT_F64))) return false;
    for (int k = first; k < arity; k++) prepare_wide(g, ins->arg[k]);
    use(g, op);
    sb_printf(g->out, "            t_%s(k, x%u", tile_op_name(op), (unsigned)ref);
    if (first) sb_printf(g->out, ", x%u", (unsigned)ins->arg[0]);
    for (int k = first; k < 3; k++)
        sb_printf(g->out, ", %s", wide_operand(g, ins->arg[k < arity ? k : 0]));
    sb_puts(g->out, ");");
    return true;
}

static bool compute_plain(const Program *g, IrRef ref, const Ins *ins)
{
    int op = ins->op == IR_POW ? -1 : plain_operator(g, ins);
    if (op < 0) return false;
    use(g, op);
    sb_printf(g->out, "            t_%s(k, x%u", tile_info[op].name, (unsigned)ref);
    for (int k = 0; k < ir_arity(ins); k++)
        sb_printf(g->out, ", %c%u", tile_is(g->b, ins->arg[k]) ? 'x' : 'v', (unsigned)ins->arg[k]);
    sb_puts(g->out, ");");
    return true;
}

static void compute_loop(const Program *g, IrRef ref, const Ins *ins)
{
    const char *type = type_text(g, ref);
    int arity = emit_power_name(g->b, ins) ? 1 : ir_arity(ins);
    sb_puts(g->out, "            for (long j = 0; j < k; j++) {");
    for (int k = 0; k < arity; k++) {
        IrRef arg = ins->arg[k];
        bool again = (k > 0 && arg == ins->arg[0]) || (k > 1 && arg == ins->arg[1]);
        if (tile_is(g->b, arg) && !again)
            sb_printf(g->out, " const %s v%u = ((const %s *)x%u)[j];", type_text(g, arg),
                      (unsigned)arg, type_text(g, arg), (unsigned)arg);
    }
    sb_printf(g->out, " ((%s *)x%u)[j] = ", type, (unsigned)ref);
    if (ins->op == IR_ROUND)
        sb_printf(g->out, "(%s)v%u", type, (unsigned)ins->arg[0]);
    else
        emit_ins_text(g->out, g->b, ins);
    sb_puts(g->out, "; }");
}

static bool is_kept(const Program *g, IrRef ref)
{
    for (uint32_t i = 0; i < g->vp->nkeeps; i++)
        if (g->vp->keeps[i] == ref) return true;
    return false;
}

/* Whether its tile is the vector itself, which the program leaves. */
static bool lies_in_vector(const Program *g, IrRef ref)
{
    return is_kept(g, ref) && type_of(g, ref) != DT_BOOL &&
           emit_vector_at(g->p, g->vp->body, ref).memory == type_of(g, ref);
}

static void compute_values(Program *g)
{
    int line = 0;
    for (uint32_t i = 0; i < g->vp->nvals; i++) {
        IrRef ref = g->vp->vals[i];
        const Ins *ins = &g->b->ins[ref];
        if (lies_in_vector(g, ref))
            sb_printf(g->out, "            char *x%u = (char *)t->ptr[%u] + i * %d;\n",
                      (unsigned)ref, (unsigned)emit_vector_at(g->p, g->vp->body, ref).ptr,
                      tile_size(g, ref));
        else
            own_tile(g, ref);
        bool narrow =
            ins->op == IR_ROUND && tile_is(g->b, ins->arg[0]) && type_of(g, ins->arg[0]) == DT_F64;
        if (narrow) {
            use(g, TILE_NARROW);
            sb_printf(g->out, "            t_narrow(k, x%u, x%u);", (unsigned)ref,
                      (unsigned)ins->arg[0]);
        } else if (ins->op == IR_ROUND ||
                   !(is_wide(g, ins) ? compute_wide(g, ref, ins) : compute_plain(g, ref, ins))) {
            compute_loop(g, ref, ins);
        }
        emit_line_end(g->out, g->p, g->vp->body, ref, &line);
        release_read(g, i);
    }
}

/* ---- what it writes -------------------------------------------------------------------------- */

static void write_tile(const Program *g, IrRef ref, DType memory, uint32_t ptr)
{
    const char *place = arena_printf(g->out->arena, "(char *)t->ptr[%u] + i * %d", (unsigned)ptr,
                                     dtype_size(memory)),
               *type = emit_vectors_tile.memory[memory],
               *tile = arena_printf(g->out->arena, "x%u", (unsigned)ref);
    if (!tile_is(g->b, ref)) {
        sb_printf(g->out, "for (long j = 0; j < k; j++) ((%s *)(%s))[j] = (%s)v%u;\n", type, place,
                  type, (unsigned)ref);
    } else if (type_of(g, ref) == DT_BOOL && memory == DT_BOOL) {
        use(g, TILE_BYTES);
        sb_printf(g->out, "t_bytes(k, %s, %s);\n", place, tile);
    } else if (type_of(g, ref) == memory) {
        copy(g, memory, place, tile);
    } else {
        convert(g, type, place, type_text(g, ref), tile);
    }
}

static void write_values(const Program *g)
{
    for (uint32_t i = 0; i < g->vp->nkeeps; i++) {
        IrRef ref = g->vp->keeps[i];
        VectorAt at = emit_vector_at(g->p, g->vp->body, ref);
        if (g->here[ref] && lies_in_vector(g, ref)) continue;
        sb_puts(g->out, "            ");
        write_tile(g, ref, at.memory, at.ptr);
    }
    for (uint32_t i = 0; i < g->vp->nstores; i++) {
        const IrStore *st = &g->b->stores[g->vp->stores[i]];
        const Slot *slot = &g->p->m->slots[st->slot];
        sb_puts(g->out, "            ");
        if (!plan_is_true(g->b, st->guard)) sb_printf(g->out, "if (v%u) ", (unsigned)st->guard);
        write_tile(g, st->value, slot->dtype, slot->index);
    }
}

/* ---- the function ---------------------------------------------------------------------------- */

static void declare_tiles(StrBuf *out, const Program *g)
{
    for (uint32_t i = 0; i < g->ntiles; i++)
        sb_printf(out, "    double z%u[%d];\n", (unsigned)i, VECTOR_PIECE);
    for (IrRef ref = 0; ref < g->b->n; ref++)
        if (g->spread[ref]) sb_printf(out, "    double y%u[%d];\n", (unsigned)ref, VECTOR_PIECE);
}

static void read_scalars(StrBuf *out, const Program *g)
{
    for (IrRef ref = 0; ref < g->b->n; ref++) {
        if (!g->read[ref] || !rate_is_scalar(g->b->ins[ref].rate)) continue;
        sb_puts(out, "        ");
        emit_scalar_read(out, g->p, g->vp->body, ref, &emit_style_c, emit_row_blocks);
        sb_puts(out, "\n");
        if (!g->spread[ref]) continue;
        use(g, TILE_FILL_D);
        sb_printf(out, "        t_fill_d(%d, y%u, v%u);\n", VECTOR_PIECE, (unsigned)ref,
                  (unsigned)ref);
    }
}

void emit_vector_tile_function(StrBuf *out, const Plan *p, const VectorProgram *vp,
                               const char *head, TileUses *uses)
{
    StrBuf loop = {.arena = out->arena};
    const TileUses before = *uses;
    const IrBody *b = &p->m->bodies[vp->body];
    Program g = {.out = &loop, .p = p, .vp = vp, .b = b, .uses = uses};
    g.here = ARENA_ARRAY(out->arena, bool, b->n + 1);
    g.read = ARENA_ARRAY(out->arena, bool, b->n + 1);
    g.spread = ARENA_ARRAY(out->arena, bool, b->n + 1);
    g.last = ARENA_ARRAY(out->arena, uint32_t, b->n + 1);
    g.tile = ARENA_ARRAY(out->arena, uint32_t, b->n + 1);
    g.widened = ARENA_ARRAY(out->arena, uint32_t, b->n + 1);
    g.free = ARENA_ARRAY(out->arena, uint32_t, 2 * b->n + 1);
    memset(g.tile, 0xff, (b->n + 1) * sizeof *g.tile);
    memset(g.widened, 0xff, (b->n + 1) * sizeof *g.widened);
    emit_vector_reads(p, vp, g.here, g.read);
    find_last(&g);
    read_vectors(&g);
    compute_values(&g);
    write_values(&g);
    if (g.ntiles + g.nspread > MOST_TILES) { /* they lie on the stack */
        *uses = before;
        emit_vector_function(out, p, vp, head, &emit_vectors_tile);
        return;
    }
    sb_printf(out, "%s(const DsArgs *args, long begin, long end)\n{\n", head);
    declare_tiles(out, &g);
    sb_puts(out, "    for (; begin < end; begin++) {\n"
                 "        const DsRow *row = args->rows + begin;\n"
                 "        const DsTensorRow *t = args->tensors + row->tensor;\n");
    read_scalars(out, &g);
    sb_printf(out,
              "        for (long i = row->first, e = i + row->count, k; i < e; i += k) {\n"
              "            k = e - i < %d ? e - i : %d;\n",
              VECTOR_PIECE, VECTOR_PIECE);
    sb_puts(out, loop.text ? loop.text : "");
    sb_puts(out, "        }\n    }\n}\n\n");
}
