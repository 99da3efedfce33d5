/* test_select.c - the selector: every fused row covers the IR that its own text says, in one call;
 * the rules that speed is measured on are covered by as few calls as they should be.
 *
 *     TILE(average, F, (S0, V0, S1, V1), ADD(MUL(S0, V0), MUL(S1, V1)))
 *     ->  %6 = add (mul s0 v0) (mul s1 v1); store
 *     ->  one call, of an operator that covers 3 operations
 */
#include "../check.h"
#include "cases.h"
#include "codegen/select.h"
#include <string.h>

/* ---- a row as a program ---------------------------------------------------------------------- */

typedef struct Maker {
    Arena *a;
    IrModule *m;
    IrBuilder b;
    const TileRow *row;
    IrRef leaf[TILE_MAX_PARAMS];
    IrRef out[TILE_OUTPUTS];
} Maker;

static uint32_t add_slot(Maker *k, SlotKind kind, const char *name, Rate rate)
{
    bool element = rate == RATE_ELEMENT;
    DType d = element ? DT_F32 : DT_F64;
    return ir_slot_add(k->m, (Slot){.kind = kind,
                                    .name = arena_strdup(k->a, name),
                                    .path = name,
                                    .dtype = d,
                                    .storage = d,
                                    .rate = rate,
                                    .lo = -INFINITY,
                                    .hi = INFINITY});
}

static IrRef make_leaf(Maker *k, int param)
{
    char name[8] = {'x', k->row->kind[param], (char)('0' + k->row->index[param]), 0};
    if (k->leaf[param] != IR_NONE) return k->leaf[param];
    if (k->row->kind[param] == 'V')
        k->leaf[param] = ir_load(&k->b, add_slot(k, SLOT_STATE, name, RATE_ELEMENT));
    else
        k->leaf[param] = ir_round(&k->b, ir_load(&k->b, add_slot(k, SLOT_HYPER, name, RATE_GROUP)));
    return k->leaf[param];
}

static IrRef make(Maker *k, const Pat *pat)
{
    IrRef v[3] = {IR_NONE, IR_NONE, IR_NONE}, out;
    if (pat->kind == PAT_LEAF) return make_leaf(k, pat->param);
    for (int i = 0; i < pat->nkids; i++) v[i] = make(k, pat->kid[i]);
    if (pat->kind == PAT_WITH) return v[1];
    out = pat->kind == PAT_SQUARE ? ir_op(&k->b, OP_MUL, v[0], v[0], IR_NONE)
                                  : ir_op(&k->b, (Op)pat->op, v[0], v[1], v[2]);
    if (pat->output) k->out[pat->output] = out;
    return out;
}

static void store(Maker *k, IrRef value, int n)
{
    char name[8] = {'o', (char)('0' + n), 0};
    ir_store(&k->b, add_slot(k, SLOT_STATE, name, RATE_ELEMENT), value, IR_NONE);
}

static bool takes_bools(const TileRow *row)
{
    for (int i = 0; i < row->nparams; i++) {
        if (row->kind[i] == 'B' || row->kind[i] == 'C') return true;
    }
    return false;
}

static TileProgram *select_first(Arena *a, const IrModule *m, const IrRef *conds, uint32_t nconds,
                                 uint32_t version)
{
    DType *storage = ARENA_ARRAY(a, DType, m->nelem);
    for (uint32_t e = 0; e < m->nelem; e++) storage[e] = DT_F32;
    Plan *p = plan_make(a, m);
    Variant *v = plan_variant(a, p, 0, storage);
    return tile_select(a, p, v, &v->kernels[v->nkernels - 1], conds, nconds, version);
}

static void check_row(int op)
{
    Arena a = {0};
    const TileRow *row = &tile_rows()[op];
    Maker k = {.a = &a, .m = ir_module_new(&a, "row", false), .row = row};
    for (int i = 0; i < TILE_MAX_PARAMS; i++) k.leaf[i] = IR_NONE;
    for (int i = 0; i < TILE_OUTPUTS; i++) k.out[i] = IR_NONE;
    IrBody *body = ir_body_new(k.m, "row", "step");
    ir_builder_init(&k.b, k.m, body);
    add_slot(&k, SLOT_PARAM, "p", RATE_ELEMENT);
    add_slot(&k, SLOT_GRAD, "g", RATE_ELEMENT);
    k.out[0] = make(&k, row->pattern);
    for (int i = 0; i < TILE_OUTPUTS; i++) {
        if (k.out[i] != IR_NONE) store(&k, k.out[i], i);
    }
    for (int i = 0; i < row->nparams; i++)
        CHECK(row->kind[i] == 'O' || k.leaf[i] != IR_NONE, "%s does not use a param of its own",
              tile_info[op].name);
    TileProgram *t = select_first(&a, k.m, NULL, 0, 0);
    REQUIRE(t->ncalls > 0, "%s: nothing selected", tile_info[op].name);
    const TileCall *c = t->calls[0];
    CHECK(t->ncalls == 1, "%s: %u calls, the first %s", tile_info[op].name, t->ncalls,
          tile_info[c->op].name);
    CHECK(tile_rows()[c->op].ops == row->ops, "%s is covered by %s", tile_info[op].name,
          tile_info[c->op].name);
    arena_free(&a);
}

/* ---- rules ------------------------------------------------------------------------------------
 */

static void check_rule(const char *name, const char *define, uint32_t calls, uint32_t regs)
{
    Arena a = {0};
    Case c = {name, {define}};
    const IrModule *m = compile_case(&a, &c, false);
    Plan *p = plan_make(&a, m);
    DType *storage = ARENA_ARRAY(&a, DType, m->nelem);
    for (uint32_t e = 0; e < m->nelem; e++) storage[e] = DT_F32;
    Variant *v = plan_variant(&a, p, 0, storage);
    IrRef conds[2];
    uint32_t n = tile_choices(p, v, &v->kernels[0], conds, 2);
    TileProgram *t = tile_select(&a, p, v, &v->kernels[0], conds, n, 0);
    CHECK(t->ncalls == calls && t->nregs == regs,
          "%s %s: %u calls and %u registers, want %u and %u", name, define ? define : "", t->ncalls,
          t->nregs, calls, regs);
    arena_free(&a);
}

int main(void)
{
    for (int op = 0; op < TILE_OP_COUNT && tile_info[op].name; op++) {
        for (int other = 0; other < op; other++)
            CHECK(strcmp(tile_info[op].name, tile_info[other].name) != 0, "two rows are named %s",
                  tile_info[op].name);
        if (tile_info[op].reduce < 0 && tile_rows()[op].ops > 1 && !takes_bools(&tile_rows()[op]))
            check_row(op);
    }
    check_rule("adamw", NULL, 2, 1);
    check_rule("adam", NULL, 2, 1);
    check_rule("amsgrad", NULL, 2, 1);
    check_rule("adagrad", NULL, 2, 1);
    check_rule("rmsprop", NULL, 2, 1);
    check_rule("lion", NULL, 1, 0);
    check_rule("sgd", NULL, 1, 0);
    check_rule("sgd", "use_momentum=1", 1, 0);
    check_rule("lamb", "clip=0", 4, 1);
    return check_done();
}
