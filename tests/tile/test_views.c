/* test_views.c - random modules with rows, columns, blocks and matrices, of one body and of two,
 * through selector, tile C and libtcc (or a C compiler), against the interpreter, bit for bit.
 *
 * Values of every rate, reductions to every rate, guards, draws, states of every rate, mixed storage;
 * shapes of one row, one column, odd, more than 4096 columns, several matrices, many small ones,
 * short last blocks; misaligned memory. A failure prints the module.
 *
 *     test_views c 500 7              500 modules from seed 7, every ISA level that runs here
 *     test_views cc 20 7 gcc -O2      standalone C
 */
#include "codegen/tile/tile.h"
#include "views.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

enum { POOL = 96, NHYPERS = 3 };

typedef struct Gen {
    Arena *a;
    IrModule *m;
    IrBuilder b;
    View view;
    bool common; /* one of several bodies: writes nothing that is global */
    IrRef pool[POOL];
    uint32_t n, sites;
    uint64_t key;
} Gen;

static uint64_t gen_state;
static uint32_t roll(uint32_t n)
{
    return (uint32_t)(check_random(&gen_state) >> 33) % n;
}

static const Ins *ins_of(const Gen *g, IrRef ref)
{
    return &g->b.b->ins[ref];
}

static void put(Gen *g, IrRef ref)
{
    if (g->n < POOL) g->pool[g->n++] = ref;
}

/* A value of the kind within a rate and not within another; IR_NONE where luck fails. Later ones are
 * likelier. */
static IrRef some(Gen *g, bool boolean, Rate most)
{
    for (int tries = 0; tries < 80; tries++) {
        uint32_t back = roll(2) ? roll(g->n) : roll(g->n < 10 ? g->n : 10);
        IrRef ref = g->pool[g->n - 1 - back];
        const Ins *i = ins_of(g, ref);
        if ((i->dtype == DT_BOOL) == boolean && rate_within(i->rate, most)) return ref;
    }
    return IR_NONE;
}

static void add_op(Gen *g)
{
    static const Op ops[] = {OP_ADD,    OP_SUB,    OP_MUL,     OP_MUL,      OP_DIV,  OP_MIN,
                             OP_MAX,    OP_ABS,    OP_NEG,     OP_LT,       OP_GT,   OP_AND,
                             OP_OR,     OP_NOT,    OP_ADD,     OP_MUL,      OP_EQ,   OP_SQRT,
                             OP_SELECT, OP_SELECT, OP_SIGN,    OP_POW,      OP_EXP,  OP_LOG,
                             OP_TANH,   OP_CBRT,   OP_SIGMOID, OP_SOFTPLUS, OP_FMA,  OP_MOD,
                             OP_FLOOR,  OP_RSQRT,  OP_FINITE,  OP_LE,       OP_POW,  OP_F32};
    Op op = ops[roll(sizeof ops / sizeof *ops)];
    bool logic = op_info[op].types == LOGIC;
    IrRef x[3] = {IR_NONE, IR_NONE, IR_NONE};
    for (int k = 0; k < op_info[op].arity; k++) {
        x[k] = some(g, logic || (op == OP_SELECT && k == 0), RATE_ELEMENT);
        if (x[k] == IR_NONE) return;
    }
    static const double exponents[] = {2, 3, -1, 0.5, 0.25, 1.5, -0.8};
    if (op == OP_POW && roll(4))
        x[1] = ir_const(&g->b, exponents[roll(sizeof exponents / sizeof *exponents)]);
    if (op == OP_SQRT) x[0] = ir_op(&g->b, OP_ABS, x[0], IR_NONE, IR_NONE);
    put(g, ir_op(&g->b, op, x[0], x[1], x[2]));
}

static bool scope_fits(Rate scope, Rate rate)
{
    return rate_within(scope, rate) && scope != rate;
}

static void add_reduction(Gen *g)
{
    static const Rate matrix[] = {RATE_ROW,    RATE_COL,    RATE_ROW,   RATE_COL,
                                  RATE_MATRIX, RATE_TENSOR, RATE_GROUP, RATE_GLOBAL},
                      block[] = {RATE_BLOCK, RATE_BLOCK, RATE_TENSOR, RATE_GROUP, RATE_GLOBAL},
                      flat[] = {RATE_TENSOR, RATE_GROUP, RATE_GLOBAL};
    Rate scope = g->view == VIEW_FLAT    ? flat[roll(3)]
                 : g->view == VIEW_BLOCK ? block[roll(5)]
                                         : matrix[roll(8)];
    if (g->common && !(scope & AXIS_TENSOR)) return;
    ReduceOp op = (ReduceOp)roll(RED_COUNT_);
    bool logic = reduce_info[op].types == LOGIC, two = reduce_info[op].arity == 2;
    IrRef x = some(g, logic, RATE_ELEMENT), y = two ? some(g, false, RATE_ELEMENT) : IR_NONE;
    if (x == IR_NONE || (two && y == IR_NONE)) return;
    Rate rate = two ? rate_join(ins_of(g, x)->rate, ins_of(g, y)->rate) : ins_of(g, x)->rate;
    if (!scope_fits(scope, rate) || (rate_is_scalar(rate) && rate != RATE_TENSOR) ||
        (rate_is_scalar(rate) && two))
        return;
    IrRef guard = roll(4) ? IR_NONE : some(g, true, RATE_TENSOR);
    IrRef r = ir_reduce(&g->b, op, x, y, guard, scope);
    put(g, r);
    if (ins_of(g, r)->dtype != DT_BOOL && roll(2))
        put(g, ir_op(&g->b, OP_GT, r, ir_const(&g->b, 1), IR_NONE));
}

static void add_draw(Gen *g)
{
    static const IrOp draws[] = {IR_NORMAL, IR_UNIFORM, IR_RADEMACHER};
    int lo = ir_slot_find(g->m, SLOT_PROP, "draw_lo"),
        hi = ir_slot_find(g->m, SLOT_PROP, "draw_hi");
    put(g, ir_draw(&g->b, draws[roll(3)], ir_load(&g->b, (uint32_t)lo),
                   ir_load(&g->b, (uint32_t)hi), g->sites++));
}

static const struct {
    const char *name;
    SlotKind kind;
    Rate rate;
} slots[] = {{"p", SLOT_PARAM, RATE_ELEMENT},     {"g", SLOT_GRAD, RATE_ELEMENT},
             {"t", SLOT_COUNT, RATE_TENSOR},      {"draw_lo", SLOT_PROP, RATE_TENSOR},
             {"draw_hi", SLOT_PROP, RATE_TENSOR}, {"cols", SLOT_PROP, RATE_TENSOR},
             {"rows", SLOT_PROP, RATE_TENSOR},    {"h0", SLOT_HYPER, RATE_GROUP},
             {"h1", SLOT_HYPER, RATE_GROUP},      {"h2", SLOT_HYPER, RATE_GLOBAL},
             {"m", SLOT_STATE, RATE_ELEMENT},     {"v", SLOT_STATE, RATE_ELEMENT},
             {"row", SLOT_STATE, RATE_ROW},       {"col", SLOT_STATE, RATE_COL},
             {"mat", SLOT_STATE, RATE_MATRIX},    {"blk", SLOT_STATE, RATE_BLOCK},
             {"k", SLOT_STATE, RATE_TENSOR},      {"grp", SLOT_STATE, RATE_GROUP},
             {"order", SLOT_STATE, RATE_TENSOR}};

static bool view_holds(View v, Rate rate)
{
    if (!rate_is_vector(rate)) return true;
    return rate == RATE_BLOCK ? v == VIEW_BLOCK : v == VIEW_MATRIX || v == VIEW_FIRST;
}

static void add_slots(IrModule *m, const View *views, uint32_t n)
{
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        bool held = false;
        for (uint32_t b = 0; b < n; b++) held |= view_holds(views[b], slots[i].rate);
        if (!held) continue;
        DType d = rate_is_elementwise(slots[i].rate) ? DT_F32 : DT_F64;
        ir_slot_add(m, (Slot){.kind = slots[i].kind,
                              .name = slots[i].name,
                              .path = slots[i].name,
                              .rate = slots[i].rate,
                              .dtype = d,
                              .storage = d,
                              .has_default = true,
                              .lo = -INFINITY,
                              .hi = INFINITY,
                              .def = (double)roll(1000) / 400 - 1});
    }
}

static void add_stores(Gen *g)
{
    for (uint32_t s = 0; s < g->m->nslots; s++) {
        const Slot *slot = &g->m->slots[s];
        bool stored = slot->kind == SLOT_PARAM || slot->kind == SLOT_STATE;
        if (!stored || !view_holds(g->view, slot->rate) || (s && roll(3) == 0)) continue;
        if (g->common && !(slot->rate & AXIS_TENSOR)) continue;
        if (strcmp(slot->name, "order") == 0) continue;
        IrRef value = some(g, false, slot->rate);
        IrRef guard = roll(3) ? IR_NONE : some(g, true, (Rate)(slot->rate & RATE_TENSOR));
        if (value != IR_NONE) ir_store(&g->b, s, value, guard);
    }
}

/* What shows the order of every addition: a sum of squares in f64, of all elements or of its rows, its
 * columns, … in turn, added up and not rounded. */
static void store_order(Gen *g)
{
    static const Rate rates[] = {RATE_TENSOR, RATE_ROW, RATE_BLOCK, RATE_COL, RATE_MATRIX};
    static unsigned turn;
    Rate rate;
    do rate = rates[turn++ % 5];
    while (!view_holds(g->view, rate));
    IrRef r = ir_reduce(&g->b, RED_SUMSQ, ir_load(&g->b, 1), IR_NONE, IR_NONE, rate);
    if (rate != RATE_TENSOR) r = ir_reduce(&g->b, RED_SUM, r, IR_NONE, IR_NONE, RATE_TENSOR);
    ir_store(&g->b, (uint32_t)ir_slot_find(g->m, SLOT_STATE, "order"), r, IR_NONE);
}

static void make_body(Arena *a, IrModule *m, View view, bool common)
{
    Gen g = {.a = a, .m = m, .view = view, .common = common};
    IrBody *body = ir_body_new(m, "x", "step");
    body->view = view;
    ir_builder_init(&g.b, m, body);
    uint32_t nslots = m->nslots;
    for (uint32_t s = 0; s < nslots; s++) {
        const Slot *slot = &m->slots[s];
        if (slot->kind != SLOT_RESULT && view_holds(view, slot->rate) && (s < 2 || roll(4)))
            put(&g, ir_load(&g.b, s));
    }
    put(&g, ir_op(&g.b, OP_GT, g.pool[0], g.pool[1], IR_NONE));
    IrRef t = ir_load(&g.b, (uint32_t)ir_slot_find(m, SLOT_COUNT, "t"));
    put(&g, ir_op(&g.b, OP_GT, t, ir_const(&g.b, 1), IR_NONE));
    for (uint32_t n = 6 + roll(24); n > 0; n--) {
        uint32_t kind = roll(16);
        if (kind < 11)
            add_op(&g);
        else if (kind < 15)
            add_reduction(&g);
        else
            add_draw(&g);
    }
    add_stores(&g);
    store_order(&g);
}

/* A view may be one only if a value needs it: sums of rows keep it. */
static bool needs_view(const IrModule *m, const IrBody *b)
{
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (rate_is_vector(m->slots[b->stores[i].slot].rate)) return true;
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (rate_is_vector(b->ins[i].rate)) return true;
    }
    return b->view == VIEW_FLAT;
}

static const int64_t blocks[] = {1, 7, 64, 128, 400, 4100, 5000, 100000};

/* Tensors of few rows run the second body. */
static void add_select(IrModule *m)
{
    static const struct {
        SlotKind kind;
        const char *name;
    } slot[] = {{SLOT_ARM, "arm"}, {SLOT_BLOCK, "block"}};
    bool has_blocks = false;
    for (uint32_t b = 0; b < m->nbodies; b++) has_blocks |= m->bodies[b].view == VIEW_BLOCK;
    if (m->nbodies == 1 && !has_blocks) return;
    IrBuilder b = {0};
    ir_builder_init(&b, m, ir_select_new(m, "x"));
    for (int i = 0; i < 2; i++) {
        if (i == 0 ? m->nbodies == 1 : !has_blocks) continue;
        uint32_t at = ir_slot_add(m, (Slot){.kind = slot[i].kind,
                                            .name = slot[i].name,
                                            .path = "",
                                            .rate = RATE_TENSOR,
                                            .dtype = DT_F64,
                                            .storage = DT_F64});
        IrRef rows = ir_load(&b, (uint32_t)ir_slot_find(m, SLOT_PROP, "rows")),
              few = ir_op(&b, OP_LT, rows, ir_const(&b, 20), IR_NONE),
              arm = ir_op(&b, OP_SELECT, few, ir_const(&b, 1), ir_const(&b, 0)),
              block = ir_const(&b, (double)blocks[roll(sizeof blocks / sizeof *blocks)]);
        ir_store(&b, at, i == 0 ? arm : block, IR_NONE);
    }
}

static IrModule *make_module(Arena *a)
{
    View views[2] = {(View)roll(4), (View)roll(4)};
    bool two = roll(4) == 0;
    IrModule *m = ir_module_new(a, "x", false);
    add_slots(m, views, two ? 2 : 1);
    make_body(a, m, views[0], two);
    if (two) make_body(a, m, views[1], true);
    for (uint32_t b = 0; b < m->nbodies; b++) {
        if (!needs_view(m, &m->bodies[b])) m->bodies[b].view = VIEW_FLAT;
    }
    add_select(m);
    return m;
}

/* ---- checking -------------------------------------------------------------------------------- */

static const SceneShape shapes[] = {
    {2, {37, 5}}, {2, {1, 700}},  {2, {300, 1}}, {3, {3, 20, 33}},  {2, {19, 4100}}, {2, {0, 7}},
    {1, {385}},   {2, {34, 384}}, {2, {5, 385}}, {3, {2, 17, 129}}, {2, {1, 9000}},  {2, {700, 3}},
    {0, {0}},     {2, {3, 8192}}, {2, {40, 64}}, {3, {5, 1, 16}},   {1, {4097}},     {2, {2, 2}},
    /* Batches of matrices, several of which are a row of the table; the last row short, or alone. */
    {3, {600, 3, 3}}, {3, {5000, 1, 1}}, {3, {30, 20, 19}}, {3, {200, 7, 7}}, {3, {2, 2, 3}},
    {3, {900, 1, 5}}, {3, {300, 16, 1}}, {3, {11, 16, 24}}, {3, {3, 5, 77}},  {3, {1, 3, 3}},
    {3, {257, 4, 4}}, {3, {33, 5, 25}},  {3, {17, 1, 384}}, {3, {4097, 1, 2}},
    {2, {16, 4110}}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

static bool build(const Backend *c, const BackendOptions *o, const Plan *p,
                  const Variant *const *variants, SceneCode *code, StrBuf *why)
{
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        if (!c->build_variant(p, variants[b], o, &code->kernels[b], why)) return false;
    }
    return c->build_scalars(p, o, &code->scalars, why);
}

static const char *text_of(Arena *a, const Plan *p, const Variant *const *variants, bool tile)
{
    StrBuf text = {.arena = a};
    ir_print(p->m, &text);
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        plan_print(p, variants[b], &text);
        if (tile) emit_tile_c(p, variants[b], &text);
    }
    return text.text;
}

/* Over seven shapes from `first` on. */
static void check_build(Arena *a, const Plan *p, const Variant *const *variants, const Backend *c,
                        const BackendOptions *o, int round, size_t first)
{
    SceneCode code = {0};
    StrBuf why = {.arena = a};
    bool built = build(c, o, p, variants, &code, &why), tile = strcmp(c->name, "c") == 0;
    REQUIRE(built, "module %d: %s\n%s", round, why.text, text_of(a, p, variants, tile));
    size_t n = 7;
    SceneShape chosen[7];
    for (size_t i = 0; i < n; i++) chosen[i] = shapes[(first + i) % NSHAPES];
    scene_seed = 42;
    Scene got = scene_new(a, p, variants, chosen, n);
    scene_seed = 42;
    Scene want = scene_new(a, p, variants, chosen, n);
    for (int step = 0; step < 2; step++) {
        scene_step(&got, &code);
        REQUIRE(interp_step(p->m, &want.x), "out of memory");
        const char *difference = scene_difference(&got, &want);
        CHECK(!difference, "module %d %s step %d: %s\n%s", round, o->isa ? o->isa : c->name, step,
              difference, text_of(a, p, variants, tile));
        if (difference) break;
    }
    for (uint32_t b = 0; b < p->m->nbodies; b++) c->free_image(code.kernels[b].image);
    c->free_image(code.scalars.image);
}

/* ---- the plain step of standalone C ---------------------------------------------------------- */

typedef int (*StepFn)(intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                      intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t, intptr_t,
                      intptr_t, intptr_t);

static bool reads(const Plan *p, const char *property)
{
    int slot = ir_slot_find(p->m, SLOT_PROP, property);
    for (uint32_t b = 0; slot >= 0 && b < p->m->nbodies; b++) {
        for (uint32_t i = 0; i < p->m->bodies[b].n; i++) {
            const Ins *ins = &p->m->bodies[b].ins[i];
            if (ins->op == IR_LOAD && ins->lit.slot == (uint32_t)slot && p->phase[b][i] >= 0)
                return true;
        }
    }
    return false;
}

/* Hyperparameters and states in the order of their slots, as the structs have them. */
static void check_plain_tensor(Arena *a, const Plan *p, const Variant *const *variants,
                               void *library, const SceneShape *shape, int round)
{
    const IrModule *m = p->m;
    StepFn step;
    int64_t (*work)(int, const int64_t *);
    *(void **)&step = dlsym(library, "x_step");
    *(void **)&work = dlsym(library, "x_step_work");
    REQUIRE(step && work, "module %d: no x_step", round);
    scene_seed = 7;
    Scene got = scene_new(a, p, variants, shape, 1);
    scene_seed = 7;
    Scene want = scene_new(a, p, variants, shape, 1);
    double hyper[8], state[16];
    uint32_t kept[16], nhyper = 0, nstate = 0;
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        Place at = {s->level, s->index};
        if (s->kind == SLOT_HYPER) hyper[nhyper++] = *scene_place(&got, 0, at);
        if (s->kind == SLOT_STATE && rate_is_scalar(s->rate)) kept[nstate++] = i;
    }
    for (uint32_t k = 0; k < nstate; k++) {
        const Slot *s = &m->slots[kept[k]];
        state[k] = *scene_place(&got, 0, (Place){s->level, s->index});
    }
    int64_t bytes = work(shape->ndim, shape->dim);
    char *memory = arena_alloc(a, (size_t)bytes + 8);
    memset(memory, 0x7b, (size_t)bytes + 8);
    intptr_t args[16] = {shape->ndim, (intptr_t)shape->dim};
    size_t n = 2;
    for (uint32_t e = 0; e < m->nelem; e++) args[n++] = (intptr_t)got.x.tensors[0].ptr[e];
    args[n++] = (intptr_t)hyper;
    if (nstate) args[n++] = (intptr_t)state;
    if (reads(p, "draw_lo") || reads(p, "draw_hi"))
        args[n++] = (intptr_t)((uint64_t)4000000000u << 32 | 123456789u);
    args[n++] = 1;
    args[n++] = (intptr_t)(memory + 3);
    for (int k = 0; k < 2; k++) {
        int applied =
            step(args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8],
                 args[9], args[10], args[11], args[12], args[13], args[14], args[15]);
        CHECK(applied == got.x.tensors[0].active, "module %d: returned %d", round, applied);
        REQUIRE(interp_step(m, &want.x), "out of memory");
        for (uint32_t j = 0; j < nstate; j++) {
            const Slot *s = &m->slots[kept[j]];
            *scene_place(&got, 0, (Place){s->level, s->index}) = state[j];
        }
        const char *difference = scene_difference(&got, &want);
        CHECK(!difference, "module %d, x_step %d: %s\n%s", round, k, difference,
              text_of(a, p, variants, false));
    }
    int behind = 0;
    for (int i = 3; i < 8; i++) behind += memory[bytes + i] != 0x7b;
    CHECK(behind == 0, "module %d: x_step writes past its %lld bytes", round, (long long)bytes);
}

static void check_plain(Arena *a, const Plan *p, const Variant *const *variants, const char *cc,
                        int round)
{
    StrBuf text = {.arena = a}, why = {.arena = a};
    if (!p->m->select && p->m->bodies[0].view == VIEW_FLAT) return;
    emit_standalone_c(&p, 1, variants[0]->storage, &text, NULL);
    char *path = arena_printf(a, "%s/views-%ld.so", DSOPT_BUILD_DIR, (long)getpid());
    REQUIRE(cc_compile(text.text, path, true, cc, &why), "module %d: %s\n%s", round, why.text,
            text.text);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    REQUIRE(library, "%s", dlerror());
    size_t first = roll(NSHAPES);
    for (size_t i = 0; i < 7; i++)
        check_plain_tensor(a, p, variants, library, &shapes[(first + i) % NSHAPES], round);
    dlclose(library);
}

static void check_levels(Arena *a, const Plan *p, const Variant *const *variants, const Backend *c,
                         int round, size_t first)
{
    for (int level = 0; level < TILE_LEVEL_COUNT; level++) {
        BackendOptions at = {.isa = tile_level_names[level]};
        if (tile_level_runs((TileLevel)level, NULL))
            check_build(a, p, variants, c, &at, round, first);
    }
}

/* What random modules hardly come to. A last block so short that it does not reach the second strip:
 * alone in its tile there, and a partial result of no elements all the same. Draws as arms of more
 * choices by scalars than the loop has versions. Sums over matrices of a batch in f64, whose order
 * shows, one of them under a guard; a vector that is stored elsewhere after its slot is written. */
static const char *const rare[] = {
    "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\nslot g grad f32.element\n"
    "slot b state f32.block = 0\nslot r0 result f64.block\nslot block block f64.tensor\n"
    "select x\n  %0:f64.global = const 4100\n  store block %0\n"
    "body x step view block\n  %0:f32.element = load g\n  %1:f32.element = abs %0\n"
    "  %2:f32.element = neg %1\n  %3:f64.block = rmax[block] %2 -> r0\n"
    "  %4:f32.block = round %3\n  store b %4\n",
    "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\nslot g grad f32.element\n"
    "slot m state f32.element = 0\nslot draw_lo prop f64.tensor\nslot draw_hi prop f64.tensor\n"
    "slot k state f64.tensor = 0\n"
    "body x step\n  %0:f32.element = load g\n  %1:f64.tensor = load draw_lo\n"
    "  %2:f64.tensor = load draw_hi\n  %3:f64.tensor = load k\n  %4:f64.global = const 0\n"
    "  %5:bool.tensor = ge %3 %4\n  %6:f64.global = const 1\n  %7:bool.tensor = lt %3 %6\n"
    "  %8:f64.global = const 2\n  %9:bool.tensor = lt %3 %8\n  %10:bool.tensor = le %3 %8\n"
    "  %11:f32.element = normal %1 %2 site 1\n  %12:f32.element = uniform %1 %2 site 2\n"
    "  %13:f32.element = normal %1 %2 site 3\n  %14:f32.element = uniform %1 %2 site 4\n"
    "  %15:f32.element = select %5 %11 %0\n  %16:f32.element = select %7 %12 %15\n"
    "  %17:f32.element = select %9 %0 %13\n  %18:f32.element = select %10 %14 %17\n"
    "  %19:f32.element = mul %16 %18\n  store m %19\n  store p %17\n",
    "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\nslot g grad f32.element\n"
    "slot a state f32.row = 0\nslot b state f32.row = 0\nslot k state f64.tensor = 0\n"
    "slot order state f64.tensor = 0\nslot r0 result f64.tensor\nslot r1 result f64.tensor\n"
    "body x step view matrix\n  %0:f32.element = load g\n  %1:f64.tensor = load k\n"
    "  %2:f64.global = const 0\n  %3:bool.tensor = gt %1 %2\n"
    "  %4:f64.tensor = sumsq[tensor] %0 -> r0\n  %5:f64.tensor = sum[tensor] %0 -> r1 if %3\n"
    "  %6:f32.row = load a\n  %7:f32.row = load b\n  %8:f32.row = sub %6 %7\n"
    "  store a %8\n  store b %6\n  store k %4\n  store order %5\n"};

static void check_rare(const Backend *c, const char *text)
{
    Arena a = {0};
    StrBuf why = {.arena = &a};
    const IrModule *m = ir_parse(&a, text, &why);
    REQUIRE(m, "%s", why.text);
    const DType storage[] = {DT_F32, DT_F32, DT_F32, DT_F32};
    const Plan *p = plan_make(&a, m);
    const Variant *v = plan_variant(&a, p, 0, storage);
    for (size_t first = 0; first < NSHAPES; first += 7)
        check_levels(&a, p, &v, c, -1, first);
    arena_free(&a);
}

/* Programs of vectors in which n values live at once: few have tiles, many do not. */
static void check_living(const Backend *c, int n)
{
    Arena a = {0};
    StrBuf why = {.arena = &a}, text = {.arena = &a};
    sb_puts(&text, "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\n"
                   "slot g grad f32.element\nslot R state f32.row = 0\nslot r0 result f64.row\n"
                   "body x step view matrix\n  %0:f32.element = load g\n"
                   "  %1:f64.row = sum[row] %0 -> r0\n  %2:f64.row = mul %1 %1\n");
    for (int i = 3; i < n + 3; i++)
        sb_printf(&text, "  %%%d:f64.row = add %%%d %%1\n", i, i - 1);
    for (int i = n + 3, k = n + 1; k > 2; i++, k--)
        sb_printf(&text, "  %%%d:f64.row = div %%%d %%%d\n", i, i - 1, k);
    sb_printf(&text, "  %%%d:f32.row = round %%%d\n  store R %%%d\n", 2 * n + 2, 2 * n + 1,
              2 * n + 2);
    const IrModule *m = ir_parse(&a, text.text, &why);
    REQUIRE(m, "%s", why.text);
    const DType storage[] = {DT_F32, DT_F32, DT_F32};
    const Plan *p = plan_make(&a, m);
    const Variant *v = plan_variant(&a, p, 0, storage);
    StrBuf tile = {.arena = &a};
    emit_tile_c(p, v, &tile);
    CHECK((strstr(tile.text, "t_wide_DIV(") != NULL) == (n < 40), "%d values: tiles or not", n);
    check_levels(&a, p, &v, c, -1, NSHAPES - 16);
    arena_free(&a);
}

int main(int argc, char **argv)
{
    const Backend *c = backend_find(argc > 1 ? argv[1] : "c");
    int rounds = argc > 2 ? atoi(argv[2]) : 150;
    gen_state = argc > 3 ? (uint64_t)atoll(argv[3]) : 1;
    Arena names = {0};
    StrBuf cc = {.arena = &names}, why = {.arena = &names};
    for (int i = 4; i < argc; i++) sb_printf(&cc, "%s%s", i > 4 ? " " : "", argv[i]);
    BackendOptions o = {.cc = cc.text};
    if (!c->probe(&o, &why)) SKIP("%s", why.text);
    bool tile = strcmp(c->name, "c") == 0;
    for (size_t i = 0; tile && i < sizeof rare / sizeof *rare; i++) check_rare(c, rare[i]);
    if (tile) {
        check_living(c, 20);
        check_living(c, 400);
    }
    for (int round = 0; round < rounds && check_failures < 3; round++) {
        Arena a = {0};
        static const DType narrow[] = {DT_F32, DT_F32, DT_BF16, DT_F16};
        StrBuf bad = {.arena = &a}, text = {.arena = &a};
        uint64_t before = gen_state;
        IrModule *m = make_module(&a);
        bool valid = ir_verify(m, &bad);
        if (!valid) ir_print(m, &text);
        REQUIRE(valid, "module %d (seed %llu): %s\n%s", round, (unsigned long long)before, bad.text,
                text.text);
        const Plan *p = plan_make(&a, m);
        const Variant *variants[SCENE_BODIES];
        DType *storage = ARENA_ARRAY(&a, DType, m->nelem + 1);
        bool mixed = roll(3) == 0;
        for (uint32_t s = 0; s < m->nslots; s++) {
            const Slot *slot = &m->slots[s];
            if (rate_is_scalar(slot->rate) || slot->kind == SLOT_RESULT) continue;
            storage[slot->index] =
                mixed && rate_is_element(slot->rate) ? narrow[roll(4)] : slot->dtype;
        }
        for (uint32_t b = 0; b < m->nbodies; b++) variants[b] = plan_variant(&a, p, b, storage);
        size_t first = roll(NSHAPES);
        if (tile) {
            check_levels(&a, p, variants, c, round, first);
        } else {
            check_build(&a, p, variants, c, &o, round, first);
            check_plain(&a, p, variants, cc.text, round);
        }
        arena_free(&a);
    }
    arena_free(&names);
    return check_done();
}
