/* Random modules, made of single instructions and not by the builder: valid, unoptimised, fond of
 * zeros, infinities and NaN.
 *
 *   seed = 7;  IrModule *m = random_module(&a, false, true);      two hypers, states of every rate,
 *                                                                  exports, guards, reductions, noskip
 *   random_kinds = RANDOM_VECTORS | RANDOM_DRAWS;  random_module(…)     rows, columns, … and draws */
#ifndef TESTS_IR_RANDOM_MODULE_H
#define TESTS_IR_RANDOM_MODULE_H
#include "codegen/ir_impl.h"
#include "interp_test.h"

/* What modules have besides elements and scalars, for executors that know of it. */
enum {
    RANDOM_GROUPS = 1,  /* reductions to groups, and of group values */
    RANDOM_VECTORS = 2, /* views: matrix, row, col, block values and states */
    RANDOM_DRAWS = 4,
    RANDOM_BODIES = 8, /* several, with results that they share */
    RANDOM_INPUTS = 16,
    RANDOM_ALL = 31
};
static unsigned random_kinds;

static uint64_t seed;
static uint32_t pick(uint32_t n)
{
    return (uint32_t)(check_random(&seed) >> 33) % n;
}

static const double odd_values[] = {0,
                                    -0.0,
                                    1,
                                    -1,
                                    2,
                                    0.5,
                                    3,
                                    -1,
                                    0.1,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    1e30,
                                    1e-30,
                                    0x1p-149,
                                    0x1p-140,
                                    0x1.fffffep127,
                                    1e300,
                                    0x1p-1060,
                                    1e-8};
static double odd_value(void)
{
    if (pick(3) == 0) return odd_values[pick(sizeof odd_values / sizeof *odd_values)];
    return noise(&seed) * (pick(4) ? 1 : 1e4);
}

/* ---- modules --------------------------------------------------------------------------------- */

typedef struct Gen {
    bool counts; /* t and s count applied steps, as those of rules do, and hypers are finite */
    Arena *a;
    IrModule *m;
    IrBody *b;
    uint32_t across; /* the last slot of a reduction across tensors: they come in order, so that
                        bodies do not wait for each other in a circle */
} Gen;

static IrRef put(Gen *g, Ins i)
{
    g->b->loc = arena_grow(g->a, g->b->loc, g->b->n, &g->b->loc_cap, sizeof *g->b->loc);
    ARENA_PUSH(g->a, g->b->ins, g->b->n, g->b->cap, i);
    return g->b->n - 1;
}

static IrRef put_const(Gen *g, DType d, double v)
{
    Ins i = {.op = IR_CONST, .dtype = (uint8_t)d, .arg = {IR_NONE, IR_NONE, IR_NONE}};
    i.lit.num = d == DT_BOOL ? v != 0 : d == DT_F32 ? (double)(float)v : v;
    return put(g, i);
}

static IrRef put_load(Gen *g, uint32_t slot)
{
    const Slot *s = &g->m->slots[slot];
    Ins i = {.op = IR_LOAD,
             .dtype = (uint8_t)s->dtype,
             .rate = s->rate,
             .arg = {IR_NONE, IR_NONE, IR_NONE}};
    i.lit.slot = slot;
    return put(g, i);
}

/* A value of a dtype whose rate is within `most`, or IR_NONE; later ones are likelier. */
static IrRef some(Gen *g, DType d, Rate most)
{
    for (int tries = 0; tries < 60; tries++) {
        uint32_t n = g->b->n, back = pick(3) ? pick(n < 12 ? n : 12) : pick(n);
        const Ins *i = &g->b->ins[n - 1 - back];
        if (i->dtype == d && rate_within(i->rate, most)) return n - 1 - back;
    }
    return IR_NONE;
}

/* A slot that a body before this one feeds with this reduction, or IR_NONE. */
static uint32_t shared_slot(Gen *g, const Ins *reduce, Rate args)
{
    uint32_t found = IR_NONE;
    for (IrBody *b = g->m->bodies; b < g->b; b++) {
        for (uint32_t r = 0; r < b->n; r++) {
            const Ins *i = &b->ins[r];
            if (i->op != reduce->op || i->rate != reduce->rate || i->lit.slot <= g->across)
                continue;
            Rate rate = ir_args_rate(b, i);
            bool alike = rate_is_scalar(rate) ? rate == args : !rate_is_scalar(args);
            if (alike && pick(4)) found = i->lit.slot;
        }
    }
    return found;
}

static uint32_t result_of(Gen *g, const Ins *i, DType d, Rate args)
{
    bool across = rate_within(i->rate, RATE_GROUP);
    uint32_t slot = across ? shared_slot(g, i, args) : IR_NONE;
    if (slot == IR_NONE)
        slot = ir_slot_add(g->m, (Slot){.kind = SLOT_RESULT,
                                        .dtype = d,
                                        .storage = d,
                                        .rate = i->rate,
                                        .name = arena_printf(g->a, "r%u", g->m->nslots)});
    if (across) g->across = slot;
    return slot;
}

/* Puts the instruction if its operands exist and fit. */
static bool put_typed(Gen *g, Ins i)
{
    for (int k = 0; k < ir_arity(&i); k++)
        if (i.arg[k] == IR_NONE) return false;
    DType d;
    Rate r;
    if (ir_infer(g->m, g->b, &i, &d, &r)) return false;
    i.dtype = (uint8_t)d;
    if (!ir_is_reduce(&i)) i.rate = r;
    if (i.op == IR_SELECT && d == DT_BOOL) return false;
    if (ir_is_reduce(&i)) {
        if (ir_reduce_rates(i.rate, r)) return false;
        bool groups = i.rate == RATE_GLOBAL && r == RATE_GROUP;
        if (groups && (!(random_kinds & RANDOM_GROUPS) || i.arg[2] != IR_NONE)) return false;
        i.lit.slot = result_of(g, &i, d, r);
    }
    put(g, i);
    return true;
}

/* A rate of the body's view, or element where it has none. */
static Rate vector_rate(const Gen *g)
{
    static const Rate rates[] = {RATE_ROW, RATE_COL, RATE_MATRIX};
    if (g->b->view == VIEW_FLAT) return RATE_ELEMENT;
    return g->b->view == VIEW_BLOCK ? (Rate)RATE_BLOCK : rates[pick(3)];
}

static Rate scope(const Gen *g)
{
    if (g->b->view != VIEW_FLAT && pick(2)) return vector_rate(g);
    if ((random_kinds & RANDOM_GROUPS) && pick(3) == 0) return RATE_GROUP;
    return pick(2) ? RATE_TENSOR : RATE_GLOBAL;
}

static void put_draw(Gen *g)
{
    uint32_t lo = (uint32_t)ir_slot_find(g->m, SLOT_PROP, "draw_lo");
    Ins i = {.op = (uint8_t)(IR_NORMAL + pick(3)), .arg = {put_load(g, lo), 0, IR_NONE}};
    i.arg[1] = put_load(g, lo + 1);
    i.lit.slot = pick(3);
    put_typed(g, i);
}

/* Makes it what a body before this one reduces across tensors, if there is such. */
static void copy_reduction(const Gen *g, Ins *out)
{
    for (const IrBody *b = g->m->bodies; b < g->b; b++) {
        for (uint32_t r = 0; r < b->n; r++) {
            const Ins *i = &b->ins[r];
            if (!ir_is_reduce(i) || !rate_within(i->rate, RATE_GROUP)) continue;
            if (i->lit.slot <= g->across || pick(3) == 0) continue;
            out->op = i->op;
            out->rate = i->rate;
            return;
        }
    }
}

static void put_random(Gen *g)
{
    bool f64 = g->m->compute_f64, elements = pick(5) < 3;
    DType number = elements && !f64 ? DT_F32 : DT_F64;
    Rate most = elements ? RATE_ELEMENT : RATE_TENSOR;
    Ins i = {.arg = {IR_NONE, IR_NONE, IR_NONE}};
    if (g->b->view != VIEW_FLAT && pick(3) == 0) {
        most = vector_rate(g);
        number = !f64 && pick(2) ? DT_F32 : DT_F64;
    }
    if ((random_kinds & RANDOM_DRAWS) && pick(25) == 0) {
        put_draw(g);
        return;
    }
    uint32_t what = (random_kinds & RANDOM_BODIES) && pick(10) == 0 ? 3 : pick(20);
    if (what == 0) {
        DType kinds[] = {DT_F64, f64 ? DT_F64 : DT_F32, DT_BOOL};
        put_const(g, kinds[pick(3)], odd_value());
        return;
    }
    if (what <= 2 && !f64) {
        i.op = IR_ROUND;
        i.arg[0] = some(g, DT_F64, g->b->view != VIEW_FLAT ? vector_rate(g) : RATE_TENSOR);
        put_typed(g, i);
        return;
    }
    if (what == 3) {
        i.op = (uint8_t)(IR_RED + pick(RED_COUNT_));
        i.rate = scope(g);
        if ((random_kinds & RANDOM_BODIES) && pick(4)) copy_reduction(g, &i);
        if (pick(3) == 0) i.arg[2] = some(g, DT_BOOL, RATE_TENSOR);
    } else {
        i.op = (uint8_t)pick(OP_COUNT_);
    }
    bool logic =
        ir_is_reduce(&i) ? reduce_info[i.op - IR_RED].types == LOGIC : op_info[i.op].types == LOGIC;
    for (int k = 0; k < ir_arity(&i); k++)
        i.arg[k] = some(g, logic || (i.op == IR_SELECT && k == 0) ? DT_BOOL : number, most);
    if (pick(6) == 0 && ir_arity(&i) > 1) i.arg[1] = i.arg[0];
    put_typed(g, i);
}

/* Whether all bodies store it: the first one decides. */
static bool stored_by_all(const Gen *g, uint32_t slot)
{
    const IrBody *first = g->m->bodies;
    for (uint32_t i = 0; i < first->nstores; i++)
        if (first->stores[i].slot == slot) return true;
    return false;
}

static void put_stores(Gen *g)
{
    IrBody *b = g->b;
    if (pick(2)) b->noskip = some(g, DT_BOOL, RATE_GLOBAL);
    for (uint32_t s = 0; s < g->m->nslots; s++) {
        const Slot *slot = &g->m->slots[s];
        if (slot->kind != SLOT_PARAM && slot->kind != SLOT_STATE && slot->kind != SLOT_COUNT &&
            slot->kind != SLOT_EXPORT)
            continue;
        if (slot->kind == SLOT_COUNT && g->counts) continue;
        bool own = strcmp(slot->name, "alive") == 0 || strcmp(slot->name, "order") == 0;
        if (!ir_view_has(b->view, slot->rate) || own) continue;
        bool shared = rate_within(slot->rate, RATE_GROUP) && b != g->m->bodies;
        bool leave = slot->kind != SLOT_PARAM && pick(4) == 0;
        if (shared ? !stored_by_all(g, s) : leave) continue;
        IrStore st = {.slot = s, .value = some(g, slot->dtype, slot->rate), .guard = IR_NONE};
        if (st.value == IR_NONE && shared) st.value = put_const(g, slot->dtype, 1);
        if (st.value == IR_NONE) continue;
        if (pick(2))
            st.guard = some(g, DT_BOOL, rate_is_scalar(slot->rate) ? slot->rate : RATE_TENSOR);
        if (b->noskip != IR_NONE && slot->kind != SLOT_EXPORT) {
            Ins both = {.op = IR_AND, .arg = {b->noskip, st.guard, IR_NONE}};
            if (st.guard == IR_NONE || !put_typed(g, both))
                st.guard = b->noskip;
            else
                st.guard = b->n - 1;
        }
        ARENA_PUSH(g->a, b->stores, b->nstores, b->stores_cap, st);
    }
}

static void put_counts(Gen *g)
{
    for (uint32_t s = 2; s < 4; s++) {
        Ins add = {.op = IR_ADD, .arg = {put_load(g, s), put_const(g, DT_F64, 1), IR_NONE}};
        put_typed(g, add);
        IrStore st = {.slot = s, .value = g->b->n - 1, .guard = g->b->noskip};
        ARENA_PUSH(g->a, g->b->stores, g->b->nstores, g->b->stores_cap, st);
    }
}

/* A reduction of `of`; with a name, exported as it is. */
static void put_reduced(Gen *g, ReduceOp op, IrRef of, Rate rate, const char *export)
{
    Ins i = {.op = (uint8_t)(IR_RED + op), .rate = rate, .arg = {of, IR_NONE, IR_NONE}};
    put_typed(g, i);
    if (!export) return;
    IrStore st = {.slot = (uint32_t)ir_slot_find(g->m, SLOT_EXPORT, export),
                  .value = g->b->n - 1,
                  .guard = IR_NONE};
    ARENA_PUSH(g->a, g->b->stores, g->b->nstores, g->b->stores_cap, st);
}

/* A view stays what it is as long as something of its rates is alive; sums in f64 that are not rounded
 * show the order of their additions. */
static void put_alive(Gen *g)
{
    put_reduced(g, RED_SUMSQ, put_load(g, 1), vector_rate(g), NULL);
    put_reduced(g, RED_SUM, g->b->n - 1, RATE_TENSOR, "alive");
    put_reduced(g, RED_SUMSQ, put_load(g, 1), RATE_TENSOR, "order");
}

static void put_body(Gen *g, View view)
{
    g->b = ir_body_new(g->m, "x", "step");
    g->b->view = view;
    g->across = 0;
    uint32_t nslots = g->m->nslots;
    for (uint32_t s = 0; s < nslots; s++) {
        const Slot *slot = &g->m->slots[s];
        bool loads =
            slot->kind != SLOT_EXPORT && slot->kind != SLOT_RESULT && ir_view_has(view, slot->rate);
        if (loads && (pick(3) || s < 2)) put_load(g, s);
    }
    put_const(g, DT_F64, 1);
    uint32_t n = 5 + pick(60);
    for (uint32_t i = 0; i < n; i++) put_random(g);
    put_stores(g);
    if (g->counts) put_counts(g);
    if (view != VIEW_FLAT) put_alive(g);
}

/* The body of a tensor: its number of elements modulo theirs; its blocks: of one size, or of another
 * for large ones. */
static void put_select(Gen *g, uint32_t nbodies, bool blocks)
{
    static const double sizes[] = {1, 2, 3, 7, 64, 100, 300, 4096, 5000};
    g->b = ir_select_new(g->m, "x");
    IrRef numel = put_load(g, (uint32_t)ir_slot_find(g->m, SLOT_PROP, "numel"));
    Slot arm = {.kind = SLOT_ARM, .dtype = DT_F64, .storage = DT_F64, .rate = RATE_TENSOR};
    arm.name = "arm";
    Ins mod = {.op = IR_MOD, .arg = {numel, put_const(g, DT_F64, nbodies), IR_NONE}};
    put_typed(g, mod);
    IrStore st = {.slot = ir_slot_add(g->m, arm), .value = g->b->n - 1, .guard = IR_NONE};
    ARENA_PUSH(g->a, g->b->stores, g->b->nstores, g->b->stores_cap, st);
    if (!blocks) return;
    Slot block = arm;
    block.kind = SLOT_BLOCK;
    block.name = "block";
    Ins large = {.op = IR_GT, .arg = {numel, put_const(g, DT_F64, 100), IR_NONE}};
    put_typed(g, large);
    Ins size = {.op = IR_SELECT, .arg = {g->b->n - 1, 0, 0}};
    size.arg[1] = put_const(g, DT_F64, sizes[pick(9)]);
    size.arg[2] = put_const(g, DT_F64, sizes[pick(9)]);
    put_typed(g, size);
    st = (IrStore){.slot = ir_slot_add(g->m, block), .value = g->b->n - 1, .guard = IR_NONE};
    ARENA_PUSH(g->a, g->b->stores, g->b->nstores, g->b->stores_cap, st);
}

/* Slots of the kinds asked for; the views that bodies may have besides flat: blocks, or the others. */
static void more_slots(IrModule *m, bool blocks)
{
    static const struct {
        unsigned kinds;
        int view; /* 1: rows and columns, 2: blocks */
        const char *name;
        SlotKind kind;
        Rate rate;
    } more[] = {{RANDOM_DRAWS, 0, "draw_lo", SLOT_PROP, RATE_TENSOR},
                {RANDOM_DRAWS, 0, "draw_hi", SLOT_PROP, RATE_TENSOR},
                {RANDOM_INPUTS, 0, "x", SLOT_INPUT, RATE_GLOBAL},
                {RANDOM_VECTORS, 1, "rows", SLOT_PROP, RATE_TENSOR},
                {RANDOM_VECTORS, 1, "R", SLOT_STATE, RATE_ROW},
                {RANDOM_VECTORS, 1, "C", SLOT_STATE, RATE_COL},
                {RANDOM_VECTORS, 1, "M", SLOT_STATE, RATE_MATRIX},
                {RANDOM_VECTORS, 2, "B", SLOT_STATE, RATE_BLOCK},
                {RANDOM_VECTORS, 0, "alive", SLOT_EXPORT, RATE_TENSOR},
                {RANDOM_VECTORS, 0, "order", SLOT_EXPORT, RATE_TENSOR}};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (!(random_kinds & more[i].kinds) || more[i].view == (blocks ? 1 : 2)) continue;
        DType d = rate_is_elementwise(more[i].rate) && !m->compute_f64 ? DT_F32 : DT_F64;
        ir_slot_add(m, (Slot){.kind = more[i].kind,
                              .name = more[i].name,
                              .path = more[i].kind == SLOT_PROP ? "" : more[i].name,
                              .rate = more[i].rate,
                              .dtype = d,
                              .storage = d,
                              .init = more[i].kind == SLOT_STATE ? 0.125 * (double)i : 0});
    }
}

static IrModule *random_module(Arena *a, bool f64, bool counts)
{
    static const struct {
        const char *name;
        SlotKind kind;
        Rate rate;
    } more[] = {{"m", SLOT_STATE, RATE_ELEMENT}, {"v", SLOT_STATE, RATE_ELEMENT},
                {"k", SLOT_STATE, RATE_TENSOR},  {"w", SLOT_STATE, RATE_GROUP},
                {"W", SLOT_STATE, RATE_GLOBAL},  {"e", SLOT_EXPORT, RATE_GLOBAL},
                {"f", SLOT_EXPORT, RATE_TENSOR}, {"numel", SLOT_PROP, RATE_TENSOR}};
    IrModule *m = small_module(a, f64);
    add_hyper(m, "lr", counts ? noise(&seed) : odd_value());
    add_hyper(m, "b1", counts ? noise(&seed) : odd_value());
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        DType d = more[i].rate == RATE_ELEMENT && !f64 ? DT_F32 : DT_F64;
        ir_slot_add(m, (Slot){.kind = more[i].kind,
                              .name = more[i].name,
                              .path = more[i].name,
                              .rate = more[i].rate,
                              .dtype = d,
                              .storage = strcmp(more[i].name, "w") == 0 ? DT_F32 : d,
                              .init = more[i].kind == SLOT_STATE ? 0.25 * (double)i : 0});
    }
    Gen g = {counts, a, m, NULL, 0};
    bool vectors = random_kinds & RANDOM_VECTORS, blocks = vectors && pick(3) == 0;
    if (random_kinds) more_slots(m, blocks);
    uint32_t nbodies = random_kinds & RANDOM_BODIES ? 1 + pick(3) : 1;
    if (nbodies > 1 || blocks) put_select(&g, nbodies, blocks);
    for (uint32_t k = 0; k < nbodies; k++) {
        View view = blocks ? VIEW_BLOCK : pick(2) ? VIEW_MATRIX : VIEW_FIRST;
        put_body(&g, vectors && pick(4) ? view : VIEW_FLAT);
    }
    return m;
}
#endif
