/* ir.c - modules, slots and the builder through which every instruction goes.
 *
 * Requires operands of the same body, of the types that the op's row asks for (debug builds assert
 * it). Ensures that what is emitted passes ir_verify: dtypes and rates inferred, scalars rounded
 * where they meet elements, constants folded, equal instructions shared.
 *
 *     x = ir_load(b, g);  y = ir_op(b, OP_MUL, ir_load(b, lr), x, IR_NONE);
 *  -> %0:f32.element = load g
 *     %1:f64.group = load lr
 *     %2:f32.group = round %1
 *     %3:f32.element = mul %2 %0
 */
#include "ir_impl.h"
#include "plan.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- modules --------------------------------------------------------------------------------- */

IrModule *ir_module_new(Arena *a, const char *name, bool compute_f64)
{
    IrModule *m = ARENA_NEW(a, IrModule);
    if (!m) return NULL;
    m->arena = a;
    m->name = arena_strdup(a, name);
    m->compute_f64 = compute_f64;
    return m;
}

void ir_slot_place(IrModule *m, Slot *slot)
{
    if (!rate_is_scalar(slot->rate)) {
        bool pointer =
            slot->kind == SLOT_PARAM || slot->kind == SLOT_GRAD || slot->kind == SLOT_STATE;
        slot->level = LEVEL_NONE;
        slot->index = pointer ? m->nelem++ : IR_NONE;
        return;
    }
    Level level = slot->rate & ~RATE_GROUP ? LEVEL_TENSOR : slot->rate ? LEVEL_GROUP : LEVEL_GLOBAL;
    slot->level = (uint8_t)level;
    slot->index = m->nlevel[level]++;
    /* Class blocks begin with the t that their tensors share. */
    if (ir_is_clock(slot)) m->nlevel[LEVEL_CLASS] = 1;
}

uint32_t ir_slot_add(IrModule *m, Slot slot)
{
    assert(m->nslots < IR_MAX_SLOTS);
    ir_slot_place(m, &slot);
    if (!slot.path) slot.path = "";
    ARENA_PUSH(m->arena, m->slots, m->nslots, m->slots_cap, slot);
    return m->nslots - 1;
}

int ir_slot_find(const IrModule *m, SlotKind kind, const char *name)
{
    for (uint32_t i = 0; i < m->nslots; i++) {
        if (m->slots[i].kind == kind && strcmp(m->slots[i].name, name) == 0) return (int)i;
    }
    return -1;
}

static IrBody *name_body(IrModule *m, IrBody *b, const char *rule, const char *entry)
{
    b->rule = arena_strdup(m->arena, rule);
    b->entry = arena_strdup(m->arena, entry);
    b->noskip = IR_NONE;
    return b;
}

IrBody *ir_body_new(IrModule *m, const char *rule, const char *entry)
{
    assert(m->nbodies < IR_MAX_BODIES);
    if (!m->bodies)
        m->bodies = ARENA_ARRAY(m->arena, IrBody, IR_MAX_BODIES); /* bodies never move */
    return name_body(m, &m->bodies[m->nbodies++], rule, entry);
}

IrBody *ir_select_new(IrModule *m, const char *rule)
{
    assert(!m->select);
    m->select = ARENA_NEW(m->arena, IrBody);
    return name_body(m, m->select, rule, "select");
}

int ir_arity(const Ins *i)
{
    if (i->op < OP_COUNT_) return op_info[i->op].arity;
    if (i->op >= IR_RED) return reduce_info[i->op - IR_RED].arity;
    return i->op == IR_ROUND ? 1 : ir_is_draw(i) ? 2 : 0;
}

Rate ir_args_rate(const IrBody *b, const Ins *i)
{
    Rate rate = RATE_GLOBAL;
    for (int k = 0; k < ir_arity(i); k++) rate = rate_join(rate, b->ins[i->arg[k]].rate);
    return rate;
}

const char *ir_op_name(int op)
{
    if (op >= 0 && op < OP_COUNT_) return op_info[op].name;
    if (op >= IR_RED && op < IR_OP_END) return reduce_info[op - IR_RED].name;
    switch (op) {
    case IR_CONST: return "const";
    case IR_LOAD: return "load";
    case IR_ROUND: return "round";
    case IR_NORMAL: return "normal";
    case IR_UNIFORM: return "uniform";
    case IR_RADEMACHER: return "rademacher";
    default: return "?";
    }
}

bool ir_view_has(View view, Rate rate)
{
    if (!rate_is_vector(rate)) return true;
    if (rate == RATE_BLOCK) return view == VIEW_BLOCK;
    return view == VIEW_MATRIX || view == VIEW_FIRST;
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *infer_round(const IrModule *m, const Ins *x, DType *dtype, Rate *rate)
{
    if (m->compute_f64) return "nothing is rounded under compute f64";
    if (x->dtype != DT_F64 || rate_is_element(x->rate)) return "operand is not f64";
    *dtype = DT_F32;
    *rate = x->rate;
    return NULL;
}

static const char *infer_draw(const IrModule *m, const Ins *const x[3], DType *dtype, Rate *rate)
{
    static const char *const halves[] = {"draw_lo", "draw_hi"};
    for (int k = 0; k < 2; k++) {
        const Slot *s = x[k]->op == IR_LOAD ? &m->slots[x[k]->lit.slot] : NULL;
        if (!s || s->kind != SLOT_PROP || strcmp(s->name, halves[k]) != 0)
            return "operands are not draw_lo and draw_hi";
    }
    *dtype = m->compute_f64 ? DT_F64 : DT_F32;
    *rate = RATE_ELEMENT;
    return NULL;
}

/* Numbers of dtype `d` that meet at rate `join`; `vector`: one of them is f64 of rate row, col or
 * block itself. */
static const char *infer_number(const IrModule *m, DType d, Rate join, bool vector)
{
    if (m->compute_f64) return d == DT_F64 ? NULL : "elements are f64 here";
    if (d == DT_F32) return rate_is_elementwise(join) ? NULL : "scalars are computed in f64";
    if (rate_is_element(join)) return "f64 meets elements without round";
    if (rate_is_elementwise(join) && !vector) return "f64 scalars meet rows without round";
    return NULL;
}

const char *ir_infer(const IrModule *m, const IrBody *b, const Ins *i, DType *dtype, Rate *rate)
{
    const Ins *x[3] = {0};
    int n = ir_arity(i);
    for (int k = 0; k < n; k++) x[k] = &b->ins[i->arg[k]];
    if (i->op == IR_ROUND) return infer_round(m, x[0], dtype, rate);
    if (ir_is_draw(i)) return infer_draw(m, x, dtype, rate);

    bool reduces = ir_is_reduce(i);
    OpType types = reduces ? reduce_info[i->op - IR_RED].types : op_info[i->op].types;
    int first = types == SELECT ? 1 : 0;
    if (first && x[0]->dtype != DT_BOOL) return "the condition of a select is not bool";
    Rate join = RATE_GLOBAL;
    for (int k = 0; k < n; k++) join = rate_join(join, x[k]->rate);
    bool vector = false;
    for (int k = first; k < n; k++) {
        vector |= x[k]->dtype == DT_F64 && rate_is_elementwise(x[k]->rate);
        if ((x[k]->dtype == DT_BOOL) != (types == LOGIC))
            return types == LOGIC ? "operand is a number" : "operand is a truth value";
        if (x[k]->dtype != x[first]->dtype) return "operands are f32 and f64";
    }
    DType d = x[first]->dtype;
    const char *wrong = types == LOGIC ? NULL : infer_number(m, d, join, vector);
    if (wrong) return wrong;
    *dtype = types == CMP ? DT_BOOL : d;
    if (reduces) *dtype = i->op == IR_RED + RED_ANY || i->op == IR_RED + RED_ALL ? DT_BOOL : DT_F64;
    *rate = join;
    return NULL;
}

/* ---- sharing --------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

/* Two reductions are equal whatever slot they write, unless other bodies feed it, too. */
static uint64_t literal_of(const IrBuilder *b, const Ins *i)
{
    uint64_t bits = 0;
    if (i->op == IR_CONST) memcpy(&bits, &i->lit.num, sizeof bits);
    if (i->op == IR_LOAD || ir_is_draw(i)) bits = i->lit.slot;
    if (ir_is_reduce(i) && i->lit.slot < b->m->nslots) bits = b->m->slots[i->lit.slot].key;
    return bits;
}

static uint32_t hash_of(const IrBuilder *b, const Ins *i)
{
    uint64_t h = mix(0, i->op | (uint64_t)i->dtype << 8 | (uint64_t)i->rate << 16);
    h = mix(h, i->arg[0] | (uint64_t)i->arg[1] << 32);
    return (uint32_t)(mix(mix(h, i->arg[2]), literal_of(b, i)) >> 16);
}

static bool equal(const IrBuilder *b, const Ins *x, const Ins *y)
{
    return x->op == y->op && x->dtype == y->dtype && x->rate == y->rate &&
           memcmp(x->arg, y->arg, sizeof x->arg) == 0 && literal_of(b, x) == literal_of(b, y);
}

static uint32_t *table_find(const IrBuilder *b, const Ins *ins)
{
    uint32_t mask = b->table_size - 1, h = hash_of(b, ins) & mask;
    while (b->table[h] != IR_NONE && !equal(b, &b->b->ins[b->table[h]], ins)) h = (h + 1) & mask;
    return &b->table[h];
}

static void table_grow(IrBuilder *b)
{
    uint32_t size = b->table_size ? b->table_size * 2 : 256;
    uint32_t *old = b->table, n = b->table_size;
    b->table = ARENA_ARRAY(b->m->arena, uint32_t, size);
    b->table_size = size;
    memset(b->table, 0xff, size * sizeof *b->table);
    for (uint32_t i = 0; i < n; i++) {
        if (old[i] != IR_NONE) *table_find(b, &b->b->ins[old[i]]) = old[i];
    }
}

void ir_builder_init(IrBuilder *b, IrModule *m, IrBody *body)
{
    *b = (IrBuilder){.m = m, .b = body};
    table_grow(b);
    for (uint32_t i = 0; i < body->n; i++) {
        if (b->table_used * 2 >= b->table_size) table_grow(b);
        uint32_t *at = table_find(b, &body->ins[i]);
        if (*at == IR_NONE) {
            *at = i;
            b->table_used++;
        }
    }
}

/* Equal for all inputs, up to which NaN comes out. */
static bool commutes(int op)
{
    return op == IR_ADD || op == IR_MUL || op == IR_EQ || op == IR_NE || op == IR_AND ||
           op == IR_OR;
}

IrRef ir_emit(IrBuilder *b, const Ins *ins)
{
    if (b->table_used * 2 >= b->table_size) table_grow(b);
    uint32_t *at = table_find(b, ins);
    if (*at != IR_NONE) return *at;
    if (commutes(ins->op)) {
        Ins swapped = *ins;
        swapped.arg[0] = ins->arg[1];
        swapped.arg[1] = ins->arg[0];
        uint32_t other = *table_find(b, &swapped);
        if (other != IR_NONE) return other;
    }
    IrBody *body = b->b;
    assert(body->n < IR_MAX_INS);
    IrRef ref = body->n;
    *at = ref;
    b->table_used++;
    /* Two arrays grow side by side, so the count moves once. */
    body->loc = arena_grow(b->m->arena, body->loc, ref, &body->loc_cap, sizeof *body->loc);
    body->loc[ref] = b->loc;
    ARENA_PUSH(b->m->arena, body->ins, body->n, body->cap, *ins);
    return ref;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static Ins leaf(IrOp op, DType dtype, Rate rate)
{
    return (Ins){.op = (uint8_t)op,
                 .dtype = (uint8_t)dtype,
                 .rate = rate,
                 .arg = {IR_NONE, IR_NONE, IR_NONE}};
}

IrRef ir_const_typed(IrBuilder *b, DType dtype, double v)
{
    Ins i = leaf(IR_CONST, dtype, RATE_GLOBAL);
    if (dtype == DT_F32) v = (double)(float)v;
    i.lit.num = v != v ? (double)NAN : v;
    return ir_emit(b, &i);
}

IrRef ir_const(IrBuilder *b, double v)
{
    return ir_const_typed(b, DT_F64, v);
}

IrRef ir_const_bool(IrBuilder *b, bool v)
{
    return ir_const_typed(b, DT_BOOL, v);
}

IrRef ir_load(IrBuilder *b, uint32_t slot)
{
    const Slot *s = &b->m->slots[slot];
    Ins i = leaf(IR_LOAD, s->dtype, s->rate);
    i.lit.slot = slot;
    return ir_emit(b, &i);
}

/* ---- numbers between scalars and elements ---------------------------------------------------- */

IrRef ir_round(IrBuilder *b, IrRef x)
{
    const Ins *i = &b->b->ins[x];
    if (b->m->compute_f64 || i->dtype != DT_F64) return x;
    if (i->op == IR_CONST) return ir_const_typed(b, DT_F32, i->lit.num);
    if (i->op == IR_F32) return ir_round(b, i->arg[0]);
    Ins r = leaf(IR_ROUND, DT_F32, i->rate);
    r.arg[0] = x;
    return ir_emit(b, &r);
}

/* The f64 scalar (or matrix value) that holds the value of an f32 one: they are computed in f64
 * only. */
static IrRef widen(IrBuilder *b, IrRef x)
{
    const Ins *i = &b->b->ins[x];
    if (i->dtype != DT_F32 || rate_is_elementwise(i->rate)) return x;
    if (i->op == IR_CONST) return ir_const_typed(b, DT_F64, i->lit.num);
    assert(i->op == IR_ROUND);
    return ir_op(b, OP_F32, i->arg[0], IR_NONE, IR_NONE);
}

/* ---- map ops --------------------------------------------------------------------------------- */

static IrRef emit_map(IrBuilder *b, Op op, const IrRef arg[3])
{
    IrRef known = ir_fold(b, op, arg);
    if (known != IR_NONE) return known;
    Ins i = leaf((IrOp)op, DT_F64, RATE_GLOBAL);
    memcpy(i.arg, arg, sizeof i.arg);
    DType dtype = DT_F64;
    Rate rate = RATE_GLOBAL;
    const char *wrong = ir_infer(b->m, b->b, &i, &dtype, &rate);
    assert(!wrong);
    (void)wrong;
    i.dtype = (uint8_t)dtype;
    i.rate = rate;
    return ir_emit(b, &i);
}

/* Scalars that were rounded explicitly (a scalar written to a state over elements, then read): the
 * op in f64 on the values of f32, its result rounded to f32 again, which is f32 arithmetic for + -
 * * / sqrt and all exact ops. */
static IrRef op_of_rounded(IrBuilder *b, Op op, IrRef arg[3], int first)
{
    for (int k = first; k < op_info[op].arity; k++) {
        bool f64 = b->b->ins[arg[k]].dtype == DT_F64;
        arg[k] = f64 ? ir_op(b, OP_F32, arg[k], IR_NONE, IR_NONE) : widen(b, arg[k]);
    }
    IrRef r = emit_map(b, op, arg);
    return b->b->ins[r].dtype == DT_F64 ? ir_op(b, OP_F32, r, IR_NONE, IR_NONE) : r;
}

/* What the number operands of an op or a reduction are: how they meet. */
typedef struct Meeting {
    Rate rate;
    bool f32, f64, vector; /* vector: f64 of rate row, col or block */
} Meeting;

static void meet(const IrBuilder *b, IrRef x, bool number, Meeting *out)
{
    const Ins *i = &b->b->ins[x];
    out->rate = rate_join(out->rate, i->rate);
    out->f32 |= number && i->dtype == DT_F32;
    out->f64 |= number && i->dtype == DT_F64;
    out->vector |= number && i->dtype == DT_F64 && rate_is_elementwise(i->rate);
}

/* Whether f64 operands are rounded: they meet elements, or f32 vectors, or as scalars nothing but a
 * condition over a vector. */
static bool meeting_rounds(const Meeting *t)
{
    return rate_is_element(t->rate) || (rate_is_elementwise(t->rate) && (t->f32 || !t->vector));
}

IrRef ir_op(IrBuilder *b, Op op, IrRef x, IrRef y, IrRef z)
{
    int n = op_info[op].arity, first = op_info[op].types == SELECT ? 1 : 0;
    IrRef arg[3] = {x, n > 1 ? y : IR_NONE, n > 2 ? z : IR_NONE};
    Meeting met = {0};
    for (int k = 0; k < n; k++) meet(b, arg[k], k >= first, &met);
    /* Before rounding, so that an operand that is the result keeps its precision. */
    bool mixed = met.f32 && met.f64 && !rate_is_element(met.rate);
    IrRef known = mixed ? IR_NONE : ir_fold(b, op, arg);
    if (known != IR_NONE) return known;
    if (meeting_rounds(&met)) {
        for (int k = first; k < n; k++) arg[k] = ir_round(b, arg[k]);
    } else if (met.f32 && !rate_is_elementwise(met.rate)) {
        return op_of_rounded(b, op, arg, first);
    }
    return emit_map(b, op, arg);
}

/* ---- reductions and stores ------------------------------------------------------------------- */

static bool const_bool(const IrBuilder *b, IrRef x, bool v)
{
    return x != IR_NONE && b->b->ins[x].op == IR_CONST && (b->b->ins[x].lit.num != 0) == v;
}

const char *ir_reduce_rates(Rate scope, Rate args)
{
    if (rate_is_element(scope)) return "a reduction to elements";
    if (scope == RATE_TENSOR && rate_is_scalar(args)) return NULL; /* once per element */
    if (args == scope || !rate_within(scope, args)) return "nothing to reduce within this scope";
    return NULL;
}

static uint32_t result_slot(IrBuilder *b, DType dtype, Rate rate, uint64_t key)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < b->m->nslots; s++) {
        const Slot *slot = &b->m->slots[s];
        if (key && slot->kind == SLOT_RESULT && slot->key == key && slot->rate == rate) return s;
        count += slot->kind == SLOT_RESULT;
    }
    return ir_slot_add(b->m, (Slot){.kind = SLOT_RESULT,
                                    .dtype = dtype,
                                    .storage = dtype,
                                    .rate = rate,
                                    .key = key,
                                    .name = arena_printf(b->m->arena, "r%u", count),
                                    .loc = b->loc});
}

/* The slot given, or (IR_NONE) the key's, or (key 0) a new one unless there is an equal reduction. */
static IrRef reduce_to(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope,
                       uint32_t slot, uint64_t key)
{
    bool truth = op == RED_ANY || op == RED_ALL;
    int n = reduce_info[op].arity;
    IrRef arg[2] = {x, n > 1 ? y : IR_NONE};
    Meeting met = {0};
    for (int k = 0; k < n; k++) meet(b, arg[k], true, &met);
    if (const_bool(b, guard, true)) guard = IR_NONE;
    bool never = const_bool(b, guard, false);
    if (never && key) /* other bodies may feed it */
        guard = ir_spread(b, guard, met.rate == RATE_GROUP ? RATE_GROUP : RATE_TENSOR);
    else if (never)
        return truth ? ir_const_bool(b, reduce_info[op].identity != 0)
                     : ir_const(b, reduce_info[op].identity);
    if (op == RED_DOT && rate_is_scalar(met.rate)) { /* the same f64 products; one may be constant */
        IrRef product = ir_op(b, OP_MUL, widen(b, x), widen(b, y), IR_NONE);
        return reduce_to(b, RED_SUM, product, IR_NONE, guard, scope, slot, key);
    }
    for (int k = 0; k < n; k++) {
        if (meeting_rounds(&met))
            arg[k] = ir_round(b, arg[k]);
        else if (!rate_is_elementwise(met.rate))
            arg[k] = widen(b, arg[k]);
    }
    assert(!ir_reduce_rates(scope, met.rate));

    Ins i = leaf((IrOp)(IR_RED + op), truth ? DT_BOOL : DT_F64, scope);
    i.arg[0] = arg[0];
    i.arg[1] = arg[1];
    i.arg[2] = guard;
    if (slot == IR_NONE && key) slot = result_slot(b, (DType)i.dtype, scope, key);
    i.lit.slot = slot;
    IrRef known = *table_find(b, &i);
    if (known != IR_NONE) return known;
    if (slot == IR_NONE) i.lit.slot = result_slot(b, (DType)i.dtype, scope, 0);
    return ir_emit(b, &i);
}

IrRef ir_reduce_into(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope,
                     uint32_t slot)
{
    return reduce_to(b, op, x, y, guard, scope, slot, b->m->slots[slot].key);
}

IrRef ir_reduce(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope)
{
    return reduce_to(b, op, x, y, guard, scope, IR_NONE, 0);
}

IrRef ir_reduce_keyed(IrBuilder *b, ReduceOp op, IrRef x, IrRef y, IrRef guard, Rate scope,
                      uint64_t key)
{
    bool shared = scope == RATE_GLOBAL || scope == RATE_GROUP;
    return reduce_to(b, op, x, y, guard, scope, IR_NONE, shared ? key : 0);
}

IrRef ir_draw(IrBuilder *b, IrOp op, IrRef lo, IrRef hi, uint32_t site)
{
    Ins i = leaf(op, b->m->compute_f64 ? DT_F64 : DT_F32, RATE_ELEMENT);
    assert(ir_is_draw(&i));
    i.arg[0] = lo;
    i.arg[1] = hi;
    i.lit.slot = site;
    return ir_emit(b, &i);
}

/* A slot that is read at this rate, p for elements; IR_NONE: there is none. */
static uint32_t any_slot(const IrModule *m, Rate rate)
{
    if (rate_is_element(rate)) return 0;
    uint32_t found = IR_NONE;
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        bool loads = s->kind == SLOT_COUNT || s->kind == SLOT_STATE || s->kind == SLOT_PROP ||
                     s->kind == SLOT_HYPER;
        if (loads && s->rate == rate) found = i;
    }
    return found;
}

/* A number that varies along the axes of `rate` as far as the builder knows; over vectors f64. */
static IrRef any_number(IrBuilder *b, Rate rate)
{
    if (rate_is_vector(rate)) return ir_reduce(b, RED_SUMSQ, ir_load(b, 0), IR_NONE, IR_NONE, rate);
    uint32_t slot = any_slot(b->m, rate);
    if (slot != IR_NONE) return ir_load(b, slot);
    if (rate == RATE_GROUP)
        return ir_reduce(b, RED_SUM, any_number(b, RATE_TENSOR), IR_NONE, IR_NONE, rate);
    Slot s = {.kind = SLOT_PROP, .dtype = DT_F64, .storage = DT_F64, .rate = RATE_TENSOR};
    s.name = "numel";
    return ir_load(b, ir_slot_add(b->m, s));
}

IrRef ir_spread(IrBuilder *b, IrRef x, Rate rate)
{
    Ins i = b->b->ins[x];
    if (rate_within(rate, i.rate)) return x;
    bool constant = i.op == IR_CONST, holds = i.lit.num != 0;
    IrRef y = any_number(b, rate), c = ir_op(b, OP_FINITE, y, IR_NONE, IR_NONE);
    if (i.dtype != DT_BOOL) { /* two selects: one with equal branches would fold */
        if (i.dtype == DT_F32 || !rate_is_vector(rate)) y = ir_const(b, constant && !holds ? 1 : 0);
        return ir_op(b, OP_SELECT, c, x, ir_op(b, OP_SELECT, c, y, x));
    }
    IrRef no = ir_op(b, OP_NOT, c, IR_NONE, IR_NONE);
    if (constant) return ir_op(b, holds ? OP_OR : OP_AND, c, no, IR_NONE);
    IrRef yes = ir_op(b, OP_AND, c, x, IR_NONE);
    return ir_op(b, OP_OR, yes, ir_op(b, OP_AND, no, x, IR_NONE), IR_NONE);
}

void ir_store(IrBuilder *b, uint32_t slot, IrRef value, IrRef guard)
{
    Rate rate = b->m->slots[slot].rate;
    bool stays = b->all_stores && rate_within(rate, RATE_GROUP);
    if (const_bool(b, guard, false) && !stays) return;
    if (const_bool(b, guard, true)) guard = IR_NONE;
    value = rate_is_elementwise(rate) ? ir_round(b, value) : widen(b, value);
    IrStore s = {.slot = slot, .value = value, .guard = guard, .loc = b->loc};
    ARENA_PUSH(b->m->arena, b->b->stores, b->b->nstores, b->b->stores_cap, s);
}
