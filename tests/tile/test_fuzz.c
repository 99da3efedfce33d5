/* test_fuzz.c - random modules through selector, tile C and libtcc, against the interpreter, bit
 * for bit.
 *
 * Modules are made of the patterns of fused rows, some with operands exchanged or replaced, of
 * single operations, choices by scalars, reductions that later values depend on, and guarded
 * stores; storages are mixed. A failure prints the module.
 *
 *     test_fuzz 5000 7      5000 modules from seed 7
 */
#include "codegen/select.h"
#include "codegen/tile/tile.h"
#include "step.h"

enum { NSTATES = 5, NHYPERS = 4, POOL = 64 };

typedef struct Pool {
    IrRef v[POOL];
    uint32_t n;
} Pool;

typedef struct Fuzz {
    Arena *a;
    IrModule *m;
    IrBuilder b;
    Pool tiles, flags, scalars, switches; /* element floats and bools, scalars, scalar bools */
    uint32_t elem[NSTATES + 1];           /* slots that may be stored: p and the states */
} Fuzz;

static uint64_t fuzz_state;
static uint32_t roll(uint32_t n)
{
    return (uint32_t)(check_random(&fuzz_state) >> 33) % n;
}

static void put(Fuzz *f, IrRef ref)
{
    const Ins *ins = &f->b.b->ins[ref];
    bool element = rate_is_elementwise(ins->rate), boolean = ins->dtype == DT_BOOL;
    Pool *p = element ? (boolean ? &f->flags : &f->tiles) : (boolean ? &f->switches : &f->scalars);
    if (!element && ins->dtype == DT_F32)
        return; /* rounded scalars are made where they are needed */
    if (p->n < POOL) p->v[p->n++] = ref;
}

/* Recent values are likelier, so that expressions grow deep. */
static IrRef pick(const Pool *p)
{
    uint32_t back = roll(2) ? roll(p->n) : roll(p->n < 4 ? p->n : 4);
    return p->v[p->n - 1 - back];
}

static void start(Fuzz *f, Arena *a)
{
    *f = (Fuzz){.a = a, .m = ir_module_new(a, "fuzz", false)};
    IrModule *m = f->m;
    Slot element = {.dtype = DT_F32, .storage = DT_F32, .rate = RATE_ELEMENT};
    Slot scalar = {.dtype = DT_F64, .storage = DT_F64, .lo = -INFINITY, .hi = INFINITY};
    IrBody *body = ir_body_new(m, "fuzz", "step");
    ir_builder_init(&f->b, m, body);
    for (int i = 0; i < NSTATES + 2; i++) {
        element.kind = i == 0 ? SLOT_PARAM : i == 1 ? SLOT_GRAD : SLOT_STATE;
        element.name = element.path = i == 0 ? "p" : i == 1 ? "g" : arena_printf(a, "s%d", i - 2);
        uint32_t slot = ir_slot_add(m, element);
        if (i != 1) f->elem[i ? i - 1 : 0] = slot;
        put(f, ir_load(&f->b, slot));
    }
    scalar.kind = SLOT_COUNT, scalar.name = "t", scalar.rate = RATE_TENSOR;
    put(f, ir_load(&f->b, ir_slot_add(m, scalar)));
    scalar.kind = SLOT_COUNT, scalar.name = "s", scalar.rate = RATE_GLOBAL;
    put(f, ir_load(&f->b, ir_slot_add(m, scalar)));
    for (int i = 0; i < NHYPERS; i++) {
        scalar.kind = SLOT_HYPER, scalar.rate = RATE_GROUP, scalar.has_default = true;
        scalar.name = arena_printf(a, "h%d", i);
        scalar.path = arena_printf(a, "fuzz.h%d", i);
        scalar.def = i == 0 ? 0.9 : i == 1 ? 1e-8 : (double)roll(1000) / 250 - 1;
        put(f, ir_load(&f->b, ir_slot_add(m, scalar)));
    }
    put(f, ir_op(&f->b, OP_GT, f->scalars.v[0], ir_const(&f->b, 1), IR_NONE));
    put(f, ir_op(&f->b, OP_LT, f->scalars.v[2], f->scalars.v[3], IR_NONE));
    put(f, ir_op(&f->b, OP_GT, f->tiles.v[0], f->tiles.v[1], IR_NONE));
}

static IrRef any_of(Fuzz *f, char kind)
{
    const Pool *p = kind == 'V'   ? &f->tiles
                    : kind == 'B' ? &f->flags
                    : kind == 'C' ? &f->switches
                                  : &f->scalars;
    return pick(p);
}

/* The IR of a row's pattern; now and then not quite. */
static IrRef shape(Fuzz *f, const TileRow *row, const Pat *pat, IrRef *leaf)
{
    IrRef v[3] = {IR_NONE, IR_NONE, IR_NONE};
    if (pat->kind == PAT_LEAF) {
        if (leaf[pat->param] == IR_NONE || roll(12) == 0)
            leaf[pat->param] = any_of(f, row->kind[pat->param]);
        return leaf[pat->param];
    }
    for (int i = 0; i < pat->nkids; i++) v[i] = shape(f, row, pat->kid[i], leaf);
    if (pat->kind == PAT_WITH) {
        put(f, v[0]);
        return v[1];
    }
    if (pat->kind == PAT_SQUARE) v[1] = v[0];
    if (pat->nkids == 2 && roll(5) == 0) {
        IrRef t = v[0];
        v[0] = v[1];
        v[1] = t;
    }
    IrRef out = ir_op(&f->b, (Op)pat->op, v[0], v[1], v[2]);
    if (pat->output || roll(12) == 0) put(f, out);
    return out;
}

static void add_shape(Fuzz *f)
{
    int op = (int)roll(TILE_OP_COUNT);
    if (!tile_info[op].name || tile_info[op].reduce >= 0 ||
        tile_rows()[op].pattern->kind == PAT_LEAF)
        return;
    IrRef leaf[TILE_MAX_PARAMS];
    for (int i = 0; i < TILE_MAX_PARAMS; i++) leaf[i] = IR_NONE;
    put(f, shape(f, &tile_rows()[op], tile_rows()[op].pattern, leaf));
}

static void add_choice(Fuzz *f)
{
    IrRef x = pick(&f->tiles), y = roll(3) ? pick(&f->tiles) : ir_round(&f->b, pick(&f->scalars));
    bool swap = roll(2);
    put(f, ir_op(&f->b, OP_SELECT, pick(&f->switches), swap ? y : x, swap ? x : y));
}

static void add_reduction(Fuzz *f)
{
    ReduceOp op = (ReduceOp)roll(RED_COUNT_);
    bool logic = reduce_info[op].types == LOGIC;
    IrRef x = logic ? pick(&f->flags) : pick(&f->tiles);
    IrRef y = reduce_info[op].arity == 2 ? pick(&f->tiles) : IR_NONE;
    IrRef guard = roll(4) ? IR_NONE : pick(&f->switches);
    IrRef r = ir_reduce(&f->b, op, x, y, guard, roll(2) ? RATE_TENSOR : RATE_GLOBAL);
    put(f, r);
    if (!logic && roll(2)) put(f, ir_op(&f->b, OP_GT, r, ir_const(&f->b, 1), IR_NONE));
}

static IrModule *make_module(Arena *a)
{
    Fuzz f;
    start(&f, a);
    for (uint32_t n = 2 + roll(14); n > 0; n--) {
        uint32_t kind = roll(16);
        if (kind < 11)
            add_shape(&f);
        else if (kind < 14)
            add_choice(&f);
        else
            add_reduction(&f);
    }
    for (int i = 0; i <= NSTATES; i++) {
        IrRef guard = roll(4) ? IR_NONE : pick(&f.switches);
        if (i == 0 || roll(2))
            ir_store(&f.b, f.elem[i], roll(10) ? pick(&f.tiles) : ir_round(&f.b, pick(&f.scalars)),
                     guard);
    }
    return f.m;
}

static void check_level(Arena *a, const IrModule *m, const WorldBuilt *start_from,
                        const char *level, int round)
{
    static const int64_t sizes[] = {1, 100, 385, 4099};
    const Backend *c = backend_find("c");
    BackendOptions o = {.isa = level};
    StrBuf why = {.arena = a}, text = {.arena = a};
    WorldBuilt b = *start_from;
    bool built = c->build_variant(b.plan, b.variant, &o, &b.code, &why) &&
                 c->build_scalars(b.plan, &o, &b.scalars, &why);
    if (!built) {
        ir_print(m, &text);
        emit_tile_c(b.plan, b.variant, &text);
    }
    REQUIRE(built, "module %d: %s\n%s", round, why.text, text.text);
    world_seed = 42;
    World got = world_new(a, m, b.plan->block_size, sizes, 4, b.variant->storage, round % 2);
    world_seed = 42;
    World want = world_new(a, m, b.plan->block_size, sizes, 4, b.variant->storage, round % 2);
    world_step(&got, &b);
    REQUIRE(interp_step(m, &want.x), "out of memory");
    const char *difference = world_difference(&got, &want);
    if (difference) {
        ir_print(m, &text);
        emit_tile_c(b.plan, b.variant, &text);
    }
    CHECK(!difference, "module %d %s: %s\n%s", round, level, difference, text.text);
    c->free_image(b.code.image);
    c->free_image(b.scalars.image);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    fuzz_state = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
    for (int round = 0; round < rounds && check_failures < 3; round++) {
        Arena a = {0};
        StrBuf why = {.arena = &a};
        static const DType narrow[] = {DT_F32, DT_F32, DT_BF16, DT_F16};
        IrModule *m = make_module(&a);
        REQUIRE(ir_verify(m, &why), "module %d: %s", round, why.text);
        DType *storage = ARENA_ARRAY(&a, DType, m->nelem);
        bool mixed = roll(3) == 0;
        for (uint32_t e = 0; e < m->nelem; e++) storage[e] = mixed ? narrow[roll(4)] : DT_F32;
        Plan *plan = plan_make(&a, m);
        WorldBuilt b = {.plan = plan, .variant = plan_variant(&a, plan, 0, storage)};
        for (int level = 0; level < TILE_LEVEL_COUNT; level++) {
            if (tile_level_runs((TileLevel)level, NULL))
                check_level(&a, m, &b, tile_level_names[level], round);
        }
        arena_free(&a);
    }
    return check_done();
}
