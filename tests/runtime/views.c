/* views.c - random modules of all rates, through the API: bodies by shape, vectors, groups, draws,
 * skips. The interpreter is what the others are compared to, bit by bit.
 *
 * A program is loaded from a trivial text and its module replaced. A module has one to three
 * bodies, of any views; what is global or of groups is computed alike in all of them, from
 * reductions that they all feed. Tensors have shapes of every kind, gradients that come and go.
 *
 *   in:  rt_views [COUNT [SEED [cc]]]
 *   out: the module that differs, as text, and where
 */
#include "rt.h"
#include "runtime/internal.h"
#include <stdarg.h>

enum { TENSORS = 12, STEPS = 3, SIDES = 6, SHARED = 3, ROOM = 1 << 20 };

static uint64_t seed;
static uint32_t pick(uint32_t n)
{
    return (uint32_t)(check_random(&seed) >> 33) % n;
}

/* ---- modules --------------------------------------------------------------------------------- */

typedef struct Pool {
    IrRef v[512];
    uint32_t n;
} Pool;

typedef struct Gen {
    Arena *a;
    IrModule *m;
    IrBuilder b;
    View view;
    Pool number, truth;   /* of this body */
    Pool common, verdict; /* of groups and the whole: alike in all bodies */
    uint64_t common_seed;
    uint32_t arm, block;
    ReduceOp shared_op[SHARED];
    Rate shared_rate[SHARED];
    bool shared_scalar[SHARED];
} Gen;

static const Ins *ins(const Gen *g, IrRef r)
{
    return &g->b.b->ins[r];
}

static void keep(Pool *p, IrRef r)
{
    if (r != IR_NONE && p->n < sizeof p->v / sizeof *p->v) p->v[p->n++] = r;
}

static IrRef any(const Pool *p)
{
    return p->v[p->n - 1 - (pick(2) && p->n > 8 ? pick(8) : pick(p->n))];
}

/* One whose rate is within `most`; IR_NONE: not found. */
static IrRef within(const Gen *g, const Pool *p, Rate most)
{
    for (int tries = 0; tries < 40 && p->n; tries++) {
        IrRef r = any(p);
        if (rate_within(ins(g, r)->rate, most)) return r;
    }
    return IR_NONE;
}

static bool has_rate(View v, Rate r)
{
    if (rate_is_scalar(r) || rate_is_element(r)) return true;
    if (v == VIEW_BLOCK) return r == RATE_BLOCK;
    return v != VIEW_FLAT && r != RATE_BLOCK;
}

static void put_op(Gen *g, Pool *number, Pool *truth)
{
    static const Op unary[] = {OP_NEG, OP_ABS, OP_SQRT, OP_EXP, OP_RSQRT, OP_SIGN},
                    binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MIN, OP_MAX},
                    compare[] = {OP_LT, OP_LE, OP_EQ};
    IrRef x = any(number), y = any(number);
    switch (pick(10)) {
    case 0: keep(number, ir_op(&g->b, unary[pick(COUNT_OF(unary))], x, IR_NONE, IR_NONE)); break;
    case 1: keep(truth, ir_op(&g->b, compare[pick(COUNT_OF(compare))], x, y, IR_NONE)); break;
    case 2:
        if (truth->n > 1)
            keep(truth, ir_op(&g->b, pick(2) ? OP_AND : OP_OR, any(truth), any(truth), IR_NONE));
        break;
    case 3:
        if (truth->n) keep(number, ir_op(&g->b, OP_SELECT, any(truth), x, y));
        break;
    case 4: keep(truth, ir_op(&g->b, OP_FINITE, x, IR_NONE, IR_NONE)); break;
    default: keep(number, ir_op(&g->b, binary[pick(COUNT_OF(binary))], x, y, IR_NONE)); break;
    }
}

/* What a reduction to rows, columns or blocks leaves is finished in f64, then rounded. */
static IrRef finish(Gen *g, IrRef x)
{
    if (ins(g, x)->dtype != DT_F64 || !rate_is_elementwise(ins(g, x)->rate)) return x;
    if (pick(2)) {
        IrRef by = ir_const(&g->b, 1 + pick(100));
        if (pick(3) == 0) {
            IrRef p = within(g, &g->number, RATE_TENSOR);
            if (p != IR_NONE && ins(g, p)->dtype == DT_F64) by = p;
        }
        x = ir_op(&g->b, OP_DIV, x, by, IR_NONE);
    }
    if (pick(3) == 0) x = ir_op(&g->b, OP_SQRT, x, IR_NONE, IR_NONE);
    return ir_round(&g->b, x);
}

static void put_reduce(Gen *g)
{
    static const Rate scopes[] = {RATE_TENSOR, RATE_MATRIX, RATE_ROW, RATE_COL, RATE_BLOCK};
    ReduceOp op = (ReduceOp)pick(RED_COUNT_);
    Rate scope = scopes[pick(COUNT_OF(scopes))];
    bool logic = reduce_info[op].types == LOGIC;
    const Pool *from = logic ? &g->truth : &g->number;
    if (!has_rate(g->view, scope)) scope = RATE_TENSOR;
    for (int tries = 0; tries < 30 && from->n; tries++) {
        IrRef x = any(from), y = reduce_info[op].arity > 1 ? any(from) : IR_NONE, guard = IR_NONE;
        Rate rate = ins(g, x)->rate;
        if (y != IR_NONE) rate = rate_join(rate, ins(g, y)->rate);
        bool scalar = scope == RATE_TENSOR && rate_is_scalar(rate); /* once per element */
        if (!scalar && (rate == scope || !rate_within(scope, rate))) continue;
        if (y != IR_NONE && ins(g, y)->dtype != ins(g, x)->dtype) continue;
        if (pick(4) == 0) guard = within(g, &g->truth, RATE_TENSOR);
        IrRef r = ir_reduce(&g->b, op, x, y, guard, scope);
        keep(ins(g, r)->dtype == DT_BOOL ? &g->truth : &g->number, finish(g, r));
        return;
    }
}

static void put_draw(Gen *g)
{
    int lo = ir_slot_find(g->m, SLOT_PROP, "draw_lo"),
        hi = ir_slot_find(g->m, SLOT_PROP, "draw_hi");
    IrRef d = ir_draw(&g->b, (IrOp)(IR_NORMAL + pick(3)), ir_load(&g->b, (uint32_t)lo),
                      ir_load(&g->b, (uint32_t)hi), pick(3));
    keep(&g->number, d);
}

static void put_random(Gen *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t what = pick(12);
        if (what < 3)
            put_reduce(g);
        else if (what == 3 && pick(3) == 0)
            put_draw(g);
        else
            put_op(g, &g->number, &g->truth);
    }
}

/* What is of groups or global: the same statements in every body, but what they gather. */
static void put_common(Gen *g)
{
    IrRef shared[SHARED];
    for (uint32_t k = 0; k < SHARED; k++) {
        ReduceOp op = g->shared_op[k];
        bool logic = reduce_info[op].types == LOGIC;
        IrRef x = IR_NONE, y = IR_NONE, one = ir_const(&g->b, 1);
        Rate wanted = g->shared_scalar[k] ? RATE_TENSOR : RATE_ELEMENT;
        for (int tries = 0; tries < 100 && x == IR_NONE; tries++) {
            x = within(g, logic ? &g->truth : &g->number, wanted);
            Rate r = x == IR_NONE ? 0 : ins(g, x)->rate;
            bool fits =
                g->shared_scalar[k] ? r == RATE_TENSOR : r != RATE_GLOBAL && r != RATE_GROUP;
            if (!fits || (!g->shared_scalar[k] && rate_is_scalar(r))) x = IR_NONE;
        }
        if (x == IR_NONE) {
            x = ir_load(&g->b, g->shared_scalar[k] ? 2 : 0);
            if (logic) x = ir_op(&g->b, OP_LT, x, one, IR_NONE);
        }
        if (reduce_info[op].arity > 1) y = x;
        IrRef guard = pick(3) == 0 ? within(g, &g->truth, RATE_TENSOR) : IR_NONE;
        shared[k] = ir_reduce_keyed(&g->b, op, x, y, guard, g->shared_rate[k], 1 + k);
    }
    uint64_t own = seed;
    seed = g->common_seed;
    for (uint32_t s = 0; s < g->m->nslots; s++) {
        const Slot *slot = &g->m->slots[s];
        bool loads = slot->kind == SLOT_HYPER || slot->kind == SLOT_STATE ||
                     slot->kind == SLOT_COUNT || strcmp(slot->name, "numel_all") == 0;
        if (loads && rate_within(slot->rate, RATE_GROUP)) keep(&g->common, ir_load(&g->b, s));
    }
    for (uint32_t k = 0; k < SHARED; k++)
        keep(ins(g, shared[k])->dtype == DT_BOOL ? &g->verdict : &g->common, shared[k]);
    uint32_t n = 2 + pick(10);
    for (uint32_t i = 0; i < n; i++) put_op(g, &g->common, &g->verdict);
    g->common_seed = seed;
    seed = own;
    for (uint32_t i = 0; i < g->common.n; i++) keep(&g->number, g->common.v[i]);
    for (uint32_t i = 0; i < g->verdict.n; i++) keep(&g->truth, g->verdict.v[i]);
}

static IrRef guard_for(Gen *g, const Pool *truth, Rate rate)
{
    IrRef skip = g->b.b->noskip, guard = IR_NONE;
    if (pick(3) == 0) guard = within(g, truth, rate_is_scalar(rate) ? rate : RATE_TENSOR);
    if (guard == IR_NONE || skip == IR_NONE) return guard == IR_NONE ? skip : guard;
    return ir_op(&g->b, OP_AND, guard, skip, IR_NONE);
}

static void put_store(Gen *g, uint32_t s, const Pool *number, const Pool *truth)
{
    const Slot *slot = &g->m->slots[s];
    bool elementwise = rate_is_elementwise(slot->rate);
    for (int tries = 0; tries < 40; tries++) {
        IrRef v = within(g, number, slot->rate);
        if (v == IR_NONE || (!elementwise && ins(g, v)->dtype != DT_F64)) continue;
        IrRef guard = slot->kind == SLOT_EXPORT ? IR_NONE : guard_for(g, truth, slot->rate);
        ir_store(&g->b, s, elementwise ? ir_round(&g->b, v) : v, guard);
        return;
    }
}

static void put_stores(Gen *g, bool common)
{
    uint64_t own = seed;
    if (common) seed = g->common_seed;
    uint32_t n = g->m->nslots;
    for (uint32_t s = 0; s < n; s++) {
        const Slot *slot = &g->m->slots[s];
        bool is_common = rate_within(slot->rate, RATE_GROUP);
        bool stores =
            slot->kind == SLOT_PARAM || slot->kind == SLOT_STATE || slot->kind == SLOT_EXPORT;
        if (!stores || is_common != common || !has_rate(g->view, slot->rate)) continue;
        if (slot->kind != SLOT_PARAM && pick(5) == 0) continue;
        put_store(g, s, common ? &g->common : &g->number, common ? &g->verdict : &g->truth);
    }
    if (common) seed = own;
}

static void put_body(Gen *g, uint32_t number, bool skips, int skip_slot)
{
    IrBody *body = ir_body_new(g->m, "x", "step");
    body->view = g->view;
    ir_builder_init(&g->b, g->m, body);
    g->number = g->truth = g->common = g->verdict = (Pool){.n = 0};
    seed += number * 77;
    for (uint32_t s = 0; s < g->m->nslots; s++) {
        const Slot *slot = &g->m->slots[s];
        bool loads = slot->kind <= SLOT_COUNT || slot->kind == SLOT_PROP;
        if (loads && has_rate(g->view, slot->rate) && (s < 2 || pick(3)) &&
            strncmp(slot->name, "draw", 4) != 0)
            keep(&g->number, ir_load(&g->b, s));
    }
    keep(&g->number, ir_const(&g->b, 0.5));
    put_random(g, 5 + pick(30));
    put_common(g);
    if (skips && g->verdict.n) {
        IrRef verdict = within(g, &g->verdict, RATE_GLOBAL);
        for (uint32_t i = 0; i < g->verdict.n; i++)
            if (ins(g, g->verdict.v[i])->rate == RATE_GLOBAL) verdict = g->verdict.v[i];
        if (verdict != IR_NONE) {
            ir_store(&g->b, (uint32_t)skip_slot, verdict, IR_NONE);
            body->noskip = ir_op(&g->b, OP_NOT, verdict, IR_NONE, IR_NONE);
        }
    }
    put_random(g, 5 + pick(30));
    put_stores(g, false);
    put_stores(g, true);
    IrRef one = ir_const(&g->b, 1);
    for (uint32_t s = 2; s < 4; s++)
        ir_store(&g->b, s, ir_op(&g->b, OP_ADD, ir_load(&g->b, s), one, IR_NONE), body->noskip);
}

static void put_select(Gen *g, uint32_t nbodies)
{
    IrBuilder b;
    ir_builder_init(&b, g->m, ir_select_new(g->m, "x"));
    IrRef ndim = ir_load(&b, (uint32_t)ir_slot_find(g->m, SLOT_PROP, "ndim")),
          rows = ir_load(&b, (uint32_t)ir_slot_find(g->m, SLOT_PROP, "rows")),
          cols = ir_load(&b, (uint32_t)ir_slot_find(g->m, SLOT_PROP, "cols"));
    IrRef matrix = ir_op(&b, OP_GE, ndim, ir_const(&b, 2), IR_NONE),
          tall = ir_op(&b, OP_GT, rows, cols, IR_NONE), last = ir_const(&b, nbodies - 1),
          zero = ir_const(&b, 0);
    IrRef second = nbodies > 2 ? ir_op(&b, OP_SELECT, tall, ir_const(&b, 1), zero) : zero;
    static const double sizes[] = {1, 2, 3, 16, 100, 1000, 4096, 5000, 20000};
    double small = sizes[pick(COUNT_OF(sizes))], large = sizes[pick(COUNT_OF(sizes))];
    IrRef size = ir_op(&b, OP_SELECT, tall, ir_const(&b, small), ir_const(&b, large));
    ir_store(&b, g->arm, ir_op(&b, OP_SELECT, matrix, second, last), IR_NONE);
    ir_store(&b, g->block, size, IR_NONE);
}

static uint32_t add_slot(IrModule *m, SlotKind kind, const char *name, Rate rate)
{
    DType d = rate_is_elementwise(rate) ? DT_F32 : DT_F64;
    return ir_slot_add(m, (Slot){.kind = kind,
                                 .name = name,
                                 .path = kind == SLOT_PROP || kind == SLOT_COUNT ? "" : name,
                                 .rate = rate,
                                 .dtype = kind == SLOT_SKIP ? DT_BOOL : d,
                                 .storage = kind == SLOT_SKIP ? DT_BOOL : d,
                                 .has_default = kind == SLOT_HYPER,
                                 .lo = -INFINITY,
                                 .hi = INFINITY,
                                 .def = 0.25 * pick(9) - 1,
                                 .init = kind == SLOT_STATE ? 0.25 * pick(5) : 0});
}

static void add_slots(IrModule *m)
{
    add_slot(m, SLOT_PARAM, "p", RATE_ELEMENT);
    add_slot(m, SLOT_GRAD, "g", RATE_ELEMENT);
    add_slot(m, SLOT_COUNT, "t", RATE_TENSOR);
    add_slot(m, SLOT_COUNT, "s", RATE_GLOBAL);
    static const char *const props[] = {"numel", "ndim",  "rows",    "cols",   "mats",
                                        "first", "gbits", "draw_lo", "draw_hi"};
    for (size_t i = 0; i < COUNT_OF(props); i++) add_slot(m, SLOT_PROP, props[i], RATE_TENSOR);
    add_slot(m, SLOT_PROP, "numel_all", RATE_GLOBAL);
    add_slot(m, SLOT_HYPER, "lr", RATE_GROUP);
    add_slot(m, SLOT_HYPER, "b", RATE_GLOBAL);
    static const struct {
        const char *name;
        Rate rate;
    } states[] = {{"m", RATE_ELEMENT}, {"R", RATE_ROW},    {"C", RATE_COL},   {"M", RATE_MATRIX},
                  {"B", RATE_BLOCK},   {"k", RATE_TENSOR}, {"w", RATE_GROUP}, {"W", RATE_GLOBAL}};
    for (size_t i = 0; i < COUNT_OF(states); i++)
        add_slot(m, SLOT_STATE, states[i].name, states[i].rate);
    add_slot(m, SLOT_EXPORT, "all", RATE_GLOBAL);
    add_slot(m, SLOT_EXPORT, "groups", RATE_GROUP);
    add_slot(m, SLOT_EXPORT, "tensors", RATE_TENSOR);
}

static char *random_text(Arena *a)
{
    Gen g = {.a = a, .m = ir_module_new(a, "x", false), .common_seed = seed * 3 + 1};
    add_slots(g.m);
    g.arm = add_slot(g.m, SLOT_ARM, "arm", RATE_TENSOR);
    g.block = add_slot(g.m, SLOT_BLOCK, "block", RATE_TENSOR);
    bool skips = pick(3) == 0;
    int skip = skips ? (int)add_slot(g.m, SLOT_SKIP, "skip", RATE_GLOBAL) : -1;
    for (uint32_t k = 0; k < SHARED; k++) {
        g.shared_op[k] = k == 0 && skips ? RED_ANY : (ReduceOp)pick(RED_COUNT_);
        g.shared_rate[k] = k == 0 || pick(2) ? RATE_GLOBAL : RATE_GROUP;
        g.shared_scalar[k] = pick(3) == 0;
    }
    uint32_t nbodies = 1 + pick(3);
    uint64_t common = g.common_seed;
    for (uint32_t b = 0; b < nbodies; b++) {
        g.view = (View)pick(4);
        g.common_seed = common;
        put_body(&g, b, skips, skip);
    }
    put_select(&g, nbodies);
    StrBuf why = {.arena = a}, out = {.arena = a};
    if (!ir_verify(g.m, &why)) {
        ir_print(g.m, &out);
        REQUIRE(false, "the generator: %s\n%s", why.text, out.text);
    }
    IrModule *m = ir_run_passes(a, g.m, NULL, NULL, &why);
    REQUIRE(m, "%s", why.text);
    ir_print(m, &out);
    return out.text;
}

/* ---- tensors --------------------------------------------------------------------------------- */

typedef struct Case {
    char *text;
    int64_t shape[TENSORS][3], numel[TENSORS];
    int ndim[TENSORS];
    dsopt_dtype dtype[TENSORS];
} Case;

static const char *const names[TENSORS] = {"delta", "Beta", "gamma", "alpha", "b",  "e",
                                           "zeta",  "a1",   "a0",    "a",     "mu", "nu"};

static void random_tensors(Case *c)
{
    static const struct {
        int ndim;
        int64_t shape[3];
    } shapes[] = {{0, {0}},       {1, {1}},         {1, {7}},        {1, {0}},
                  {2, {3, 0}},    {2, {1, 300}},    {2, {300, 1}},   {2, {40, 30}},
                  {2, {513, 3}},  {2, {3, 5000}},   {3, {2, 35, 9}}, {2, {17, 4097}},
                  {1, {9001}},    {3, {3, 1, 130}}, {2, {1, 1}},     {3, {5, 2, 4100}},
                  {2, {70, 257}}, {2, {33, 256}},   {3, {0, 3, 4}},  {1, {4096}},
                  {3, {700, 3, 3}}, {3, {4500, 1, 1}}, {3, {90, 7, 7}}, {3, {20, 16, 24}}};
    for (int t = 0; t < TENSORS; t++) {
        uint32_t which = pick(COUNT_OF(shapes));
        c->ndim[t] = shapes[which].ndim;
        memcpy(c->shape[t], shapes[which].shape, sizeof c->shape[t]);
        c->numel[t] = 1;
        for (int d = 0; d < c->ndim[t]; d++) c->numel[t] *= c->shape[t][d];
        c->dtype[t] = pick(4) ? DSOPT_F32 : DSOPT_BF16;
    }
}

typedef struct Side {
    const char *backend, *isa;
    int threads;
    bool open;
    Rt rt;
    dsopt_program *prog;
    dsopt_optimizer *opt;
    char *p[TENSORS], *g[TENSORS];
    double *values;
    size_t n;
    struct {
        size_t begin;
        char what[64];
    } parts[512]; /* of values */
    size_t nparts;
} Side;

static void load(Side *s, const Case *c)
{
    static const char rule[] = "optimizer x { hyper lr = 1; p -= lr * g }";
    REQUIRE(dsopt_program_compile(s->rt.ctx, rule, "x.opt", NULL, &s->prog) == DSOPT_OK, "%s",
            dsopt_error_message(s->rt.ctx));
    Arena *a = &s->prog->arena;
    StrBuf why = {.arena = a};
    IrModule *m = ir_parse(a, c->text, &why);
    REQUIRE(m, "%s\n%s", why.text, c->text);
    DType *storage = ARENA_ARRAY(a, DType, m->nelem);
    REQUIRE(storage_parse(NULL, m, storage, &why), "%s", why.text);
    storage[0] = storage[1] = DT_COUNT;
    for (int guarded = 0; guarded < 2; guarded++) {
        s->prog->modules[guarded].m = m;
        s->prog->modules[guarded].storage = storage;
        s->prog->modules[guarded].plan = NULL;
    }
}

/* Backwards on some sides: the order in which tensors are given does not matter. */
static void create(Side *s, const Case *c, Arena *a, int number)
{
    dsopt_tensor t[TENSORS];
    for (int k = 0; k < TENSORS; k++) {
        s->p[k] = (char *)arena_alloc(a, (size_t)c->numel[k] * 4 + 80) + number * 2 % 16;
        s->g[k] = (char *)arena_alloc(a, (size_t)c->numel[k] * 4 + 80) + (number + k) * 2 % 32;
        int at = number % 2 ? TENSORS - 1 - k : k;
        t[at] = rt_tensor(names[k],
                          k % 3 == 0   ? "zwei"
                          : k % 3 == 1 ? "eins"
                                       : NULL,
                          c->dtype[k], s->p[k], s->g[k], c->ndim[k], c->shape[k]);
    }
    dsopt_status st = dsopt_optimizer_create(s->rt.ctx, s->prog, t, TENSORS, &s->opt);
    REQUIRE(st == DSOPT_OK, "create on %s: %s\n%s", s->backend, dsopt_error_message(s->rt.ctx),
            c->text);
    dsopt_program_release(s->prog);
    rt_set(&s->rt, s->opt, "zwei", "lr", 0.75);
}

static void fill(Side *s, const Case *c, bool gradients, uint64_t from, float scale)
{
    static const float odd[] = {0, -0.0f, INFINITY, NAN, 1e-40f, 3e38f};
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; i < c->numel[k]; i++) {
            float v = scale * rt_random(&from);
            if (from % 9973 == 0) v = odd[from / 9973 % COUNT_OF(odd)];
            elem_set(gradients ? s->g[k] : s->p[k], dtype_internal(c->dtype[k]), i, v);
        }
}

static void step(Side *s, int number)
{
    for (int k = 0; k < TENSORS; k++) {
        size_t i;
        REQUIRE(dsopt_tensor_find(s->opt, names[k], &i) == DSOPT_OK, "tensor");
        bool absent = number == 1 && k % 3 == 0;
        REQUIRE(dsopt_bind_gradient(s->opt, i, absent ? NULL : s->g[k]) == DSOPT_OK, "bind");
    }
    rt_step(&s->rt, s->opt);
}

__attribute__((format(printf, 2, 3))) static void put_part(Side *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    REQUIRE(s->nparts < COUNT_OF(s->parts), "parts");
    s->parts[s->nparts].begin = s->n;
    vsnprintf(s->parts[s->nparts++].what, sizeof s->parts->what, fmt, ap);
    va_end(ap);
}

static void put_value(Side *s, double v)
{
    if (s->n >= ROOM) REQUIRE(false, "room");
    s->values[s->n++] = isnan(v) ? NAN : v;
}

/* All that can be seen, in an order that does not depend on how tensors were given. */
static void collect(Side *s, const Case *c)
{
    static double v[1 << 18];
    s->n = s->nparts = 0;
    for (int k = 0; k < TENSORS; k++) {
        put_part(s, "tensor %d [%lld] of %d dims: p", k, (long long)c->numel[k], c->ndim[k]);
        for (int64_t i = 0; i < c->numel[k]; i++)
            put_value(s, elem_get(s->p[k], dtype_internal(c->dtype[k]), i));
        for (size_t i = 0; i < dsopt_state_count(s->opt); i++) {
            dsopt_state_info info = {.size = sizeof info};
            REQUIRE(dsopt_state_info_read(s->opt, i, &info) == DSOPT_OK, "info");
            bool mine = info.tensor >= 0
                            ? strcmp(dsopt_tensor_name(s->opt, (size_t)info.tensor), names[k]) == 0
                            : k == 0;
            if (!mine) continue;
            put_part(s, "tensor %d: %s", k, info.path);
            REQUIRE(info.count <= (int64_t)COUNT_OF(v) &&
                        dsopt_state_read(s->opt, i, DSOPT_F64, v, info.count) == DSOPT_OK,
                    "state %s of %lld values", info.path, (long long)info.count);
            for (int64_t j = 0; j < info.count; j++) put_value(s, v[j]);
        }
    }
    for (size_t i = 0; i < dsopt_export_count(s->opt); i++) {
        dsopt_export_info info = {.size = sizeof info};
        REQUIRE(dsopt_export_info_read(s->opt, i, &info) == DSOPT_OK, "export");
        REQUIRE(dsopt_export_read(s->opt, i, v, info.count) == DSOPT_OK, "export");
        put_part(s, "export %s", info.name);
        bool tensors = strcmp(info.rate, "tensor") == 0;
        for (int64_t j = 0; j < info.count; j++) {
            size_t at = (size_t)j;
            if (tensors) REQUIRE(dsopt_tensor_find(s->opt, names[j], &at) == DSOPT_OK, "tensor");
            put_value(s, v[at]);
        }
    }
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 40;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static const struct {
        const char *backend, *isa;
        int threads;
    } kinds[SIDES] = {{"interp", NULL, 1}, {"interp", NULL, 1}, {"c", NULL, 1},
                      {"c", "sse2", 2},    {"c", "avx2", 3},    {"cc", NULL, 2}};
    static Side s[SIDES];
    static Case c;
    for (int k = 0; k < SIDES; k++) {
        s[k].backend = kinds[k].backend;
        s[k].isa = kinds[k].isa;
        s[k].threads = kinds[k].threads;
        dsopt_config cfg = {.size = sizeof cfg,
                            .backend = s[k].backend,
                            .isa = s[k].isa,
                            .threads = s[k].threads,
                            .seed = 99};
        s[k].open =
            (k < SIDES - 1 || argc > 3) && dsopt_context_create(&cfg, &s[k].rt.ctx) == DSOPT_OK;
        s[k].values = calloc(ROOM, sizeof(double));
        REQUIRE(s[k].values, "memory");
    }
    for (long i = 0; i < count && check_failures < 3; i++) {
        Arena a = {0};
        seed = (first + (uint64_t)i) * 0x9e3779b97f4a7c15u;
        c.text = random_text(&a);
        random_tensors(&c);
        uint64_t values = seed;
        for (int k = 0; k < SIDES; k++) {
            if (!s[k].open) continue;
            load(&s[k], &c);
            create(&s[k], &c, &a, k);
            fill(&s[k], &c, false, values, 1);
        }
        for (int number = 0; number < STEPS && check_failures < 3; number++)
            for (int k = 0; k < SIDES; k++) {
                if (!s[k].open) continue;
                fill(&s[k], &c, true, values + (uint64_t)number, number ? 0.1f : 1);
                step(&s[k], number);
                collect(&s[k], &c);
                size_t at = 0;
                while (at < s[0].n && at < s[k].n &&
                       memcmp(&s[0].values[at], &s[k].values[at], sizeof(double)) == 0)
                    at++;
                size_t part = 0;
                while (part + 1 < s[0].nparts && s[0].parts[part + 1].begin <= at) part++;
                if (s[0].n == s[k].n && at == s[0].n) continue;
                REQUIRE(false, "module %ld, side %d, step %d, %s %zu is %a, interp has %a\n%s", i,
                        k, number, s[0].parts[part].what, at - s[0].parts[part].begin,
                        s[k].values[at], s[0].values[at], c.text);
            }
        for (int k = 0; k < SIDES; k++)
            if (s[k].open) dsopt_optimizer_destroy(s[k].opt);
        arena_free(&a);
    }
    for (int k = 0; k < SIDES; k++) {
        dsopt_context_destroy(s[k].rt.ctx);
        free(s[k].values);
    }
    return check_done();
}
