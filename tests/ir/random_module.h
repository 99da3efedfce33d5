/* Random modules, made of single instructions and not by the builder: valid, unoptimised, fond of
 * zeros, infinities and NaN.
 *
 *   seed = 7;  IrModule *m = random_module(&a, false);      two hypers, states of every rate,
 * exports, guards, reductions, noskip */
#ifndef TESTS_IR_RANDOM_MODULE_H
#define TESTS_IR_RANDOM_MODULE_H
#include "codegen/ir_impl.h"
#include "interp_test.h"

static uint64_t seed;
static uint32_t pick(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
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
    if (ir_is_reduce(&i) && i.rate == RATE_GLOBAL && !(r & AXIS_TENSOR)) return false;
    if (ir_is_reduce(&i)) {
        Slot s = {.kind = SLOT_RESULT,
                  .dtype = d,
                  .storage = d,
                  .rate = i.rate,
                  .name = arena_printf(g->a, "r%u", g->m->nslots)};
        i.lit.slot = ir_slot_add(g->m, s);
    }
    put(g, i);
    return true;
}

static void put_random(Gen *g)
{
    bool f64 = g->m->compute_f64, elements = pick(5) < 3;
    DType number = elements && !f64 ? DT_F32 : DT_F64;
    Rate most = elements ? RATE_ELEMENT : RATE_TENSOR;
    Ins i = {.arg = {IR_NONE, IR_NONE, IR_NONE}};
    uint32_t what = pick(20);
    if (what == 0) {
        DType kinds[] = {DT_F64, f64 ? DT_F64 : DT_F32, DT_BOOL};
        put_const(g, kinds[pick(3)], odd_value());
        return;
    }
    if (what <= 2 && !f64) {
        i.op = IR_ROUND;
        i.arg[0] = some(g, DT_F64, RATE_TENSOR);
        put_typed(g, i);
        return;
    }
    if (what == 3) {
        i.op = (uint8_t)(IR_RED + pick(RED_COUNT_));
        i.rate = pick(2) ? RATE_TENSOR : RATE_GLOBAL;
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
        if (slot->kind != SLOT_PARAM && pick(4) == 0) continue;
        IrStore st = {.slot = s, .value = some(g, slot->dtype, slot->rate), .guard = IR_NONE};
        if (st.value == IR_NONE) continue;
        if (pick(2))
            st.guard = some(g, DT_BOOL, rate_is_elementwise(slot->rate) ? RATE_TENSOR : slot->rate);
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
    Gen g = {counts, a, m, ir_body_new(m, "x", "step")};
    uint32_t nslots = m->nslots;
    for (uint32_t s = 0; s < nslots; s++)
        if (m->slots[s].kind != SLOT_EXPORT && (pick(3) || s < 2)) put_load(&g, s);
    put_const(&g, DT_F64, 1);
    uint32_t n = 5 + pick(60);
    for (uint32_t i = 0; i < n; i++) put_random(&g);
    put_stores(&g);
    if (counts) put_counts(&g);
    return m;
}
#endif
