/* lower.c - a checked rule to IR: the order of writes becomes SSA, `when` becomes selects and
 * guards, effects become stores.
 *
 * Requires a Rule from frontend_check. The value that each written symbol has now is kept by symbol
 * number; branches are lowered one after the other from the same values and joined by selects.
 * Nothing is stored before the end of the body, where every state that was written, p, the clocks
 * and the exports are stored under their guards.
 *
 *     when c { m := g }   ->   %7 = select %c %g %m     store m %g if %c
 */
#include "ir.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WRITTEN_ALWAYS IR_NONE
#define WRITTEN_NEVER (IR_NONE - 1)

/* A value that a branch replaced, to go back to. */
typedef struct Undo {
    uint32_t sym;
    IrRef value, written;
} Undo;

typedef struct Change {
    Symbol *sym;
    IrRef value, written;
} Change;

typedef struct Lower {
    Arena *arena;
    const Rule *rule;
    IrModule *m;
    IrBuilder b;
    /* by Symbol.id */
    Symbol **syms;
    IrRef *value;   /* now */
    IrRef *entry;   /* at the entry of the step; of g: see entry_g */
    IrRef *written; /* under which guard it was written so far */
    uint32_t *slot;
    const Change **mate; /* in the other branch, while two are joined */
    Undo *undo;
    size_t nundo, undo_cap;
    /* by Expr.id: values of the statement being lowered */
    IrRef *memo;
    uint32_t *memo_of;
    uint32_t statement;
    IrRef entry_g;          /* g as it entered the rule or transform */
    IrRef guard;            /* conditions around; IR_NONE: none */
    IrRef first_t, first_s; /* nothing was applied yet */
    uint32_t t_slot, s_slot;
    bool overflow;
} Lower;

static IrRef op2(Lower *l, Op op, IrRef x, IrRef y)
{
    return ir_op(&l->b, op, x, y, IR_NONE);
}

static IrRef op1(Lower *l, Op op, IrRef x)
{
    return ir_op(&l->b, op, x, IR_NONE, IR_NONE);
}

static const Ins *ins_of(const Lower *l, IrRef x)
{
    return &l->b.b->ins[x];
}

/* Guards: IR_NONE is true. */
static IrRef guard_and(Lower *l, IrRef a, IrRef b)
{
    return a == IR_NONE ? b : b == IR_NONE ? a : op2(l, OP_AND, a, b);
}

/* (c and a) or (not c and b). Here as elsewhere, one call that emits per statement: arguments have
 * no order in C, and the text of a module must not depend on the compiler. */
static IrRef choose_truth(Lower *l, IrRef c, IrRef a, IrRef b)
{
    IrRef x = op2(l, OP_AND, c, a), no = op1(l, OP_NOT, c);
    IrRef y = op2(l, OP_AND, no, b);
    return op2(l, OP_OR, x, y);
}

/* c ? a : b, of truth values too. */
static IrRef choose(Lower *l, IrRef c, IrRef a, IrRef b)
{
    if (a == b) return a;
    if (ins_of(l, a)->dtype != DT_BOOL) return ir_op(&l->b, OP_SELECT, c, a, b);
    return choose_truth(l, c, a, b);
}

/* ---- slots ---------------------------------------------------------------------------------- */

static uint32_t property(Lower *l, const char *name)
{
    int found = ir_slot_find(l->m, SLOT_PROP, name);
    if (found >= 0) return (uint32_t)found;
    Rate rate = strcmp(name, "numel_all") == 0 ? RATE_GLOBAL : RATE_TENSOR;
    return ir_slot_add(
        l->m,
        (Slot){.kind = SLOT_PROP, .dtype = DT_F64, .storage = DT_F64, .rate = rate, .name = name});
}

static IrRef load_property(Lower *l, const char *name)
{
    return ir_load(&l->b, property(l, name));
}

static void add_symbol(Lower *l, Symbol *s, Slot slot)
{
    slot.rate = s->rate;
    slot.name = s->name;
    slot.loc = s->span;
    bool element = rate_is_elementwise(s->rate);
    slot.dtype = element && !l->m->compute_f64 ? DT_F32 : DT_F64;
    slot.storage =
        slot.kind == SLOT_STATE && !element && s->storage == DT_F32 ? DT_F32 : slot.dtype;
    l->slot[s->id] = ir_slot_add(l->m, slot);
}

static void add_slots(Lower *l)
{
    const Rule *r = l->rule;
    add_symbol(l, r->p, (Slot){.kind = SLOT_PARAM});
    add_symbol(l, r->g, (Slot){.kind = SLOT_GRAD});
    Slot count = {
        .kind = SLOT_COUNT, .dtype = DT_F64, .storage = DT_F64, .rate = RATE_TENSOR, .name = "t"};
    l->t_slot = ir_slot_add(l->m, count);
    count.rate = RATE_GLOBAL;
    count.name = "s";
    l->s_slot = ir_slot_add(l->m, count);
    for (size_t i = 0; i < r->nhypers; i++) {
        Symbol *s = r->hypers[i];
        Slot slot = {.kind = SLOT_HYPER,
                     .path = s->path,
                     .lo = s->lo,
                     .hi = s->hi,
                     .lo_open = s->lo_open,
                     .hi_open = s->hi_open};
        slot.has_default = s->value && !s->derived;
        slot.derived = s->derived;
        if (slot.has_default) slot.def = s->value->cval;
        add_symbol(l, s, slot);
    }
    for (size_t i = 0; i < r->nstates; i++) {
        Symbol *s = r->states[i];
        bool f32 = s->storage == DT_F32 && !l->m->compute_f64; /* of elements, or declared so */
        if (!rate_is_elementwise(s->rate)) f32 = s->storage == DT_F32;
        Slot slot = {.kind = SLOT_STATE, .path = s->path};
        if (s->value && !s->derived)
            slot.init = f32 ? (double)(float)s->value->cval : s->value->cval;
        add_symbol(l, s, slot);
    }
    for (size_t i = 0; i < r->nexports; i++)
        add_symbol(l, r->exports[i], (Slot){.kind = SLOT_EXPORT});
}

/* ---- values of symbols ---------------------------------------------------------------------- */

static void set_value(Lower *l, Symbol *s, IrRef value, IrRef written)
{
    Undo u = {s->id, l->value[s->id], l->written[s->id]};
    ARENA_PUSH(l->arena, l->undo, l->nundo, l->undo_cap, u);
    l->syms[s->id] = s;
    l->value[s->id] = value;
    l->written[s->id] = written;
}

static IrRef lower_expr(Lower *l, const Expr *e);

/* What a state's slot holds after a store of the value. */
static IrRef as_stored(Lower *l, const Symbol *s, IrRef value)
{
    if (rate_is_elementwise(s->rate)) return ir_round(&l->b, value);
    return s->storage == DT_F32 ? op1(l, OP_F32, value) : value;
}

/* A default that uses other hypers holds until the hyper is set: its slot is NaN until then (ir.h,
 * Slot.derived). */
static IrRef hyper_value(Lower *l, Symbol *s)
{
    if (s->is_const) return ir_const(&l->b, s->cval);
    IrRef set = ir_load(&l->b, l->slot[s->id]);
    if (!s->derived) return set;
    IrRef otherwise = lower_expr(l, s->value), is_set = op2(l, OP_EQ, set, set);
    return choose(l, is_set, set, otherwise);
}

static IrRef given_value(Lower *l, const Symbol *s)
{
    switch (s->given) {
    case GIVEN_T: {
        IrRef applied = ir_load(&l->b, l->t_slot), one = ir_const(&l->b, 1);
        return op2(l, OP_ADD, applied, one);
    }
    case GIVEN_S: return ir_load(&l->b, l->s_slot);
    case GIVEN_PI:
    case GIVEN_INF: return ir_const(&l->b, s->cval);
    case GIVEN_ROWS:
    case GIVEN_COLS:
    case GIVEN_NUMEL:
    case GIVEN_NDIM: return load_property(l, s->name);
    default: return l->value[s->id];
    }
}

static IrRef symbol_value(Lower *l, Symbol *s)
{
    switch (s->kind) {
    case SYM_HYPER: return hyper_value(l, s);
    case SYM_GIVEN: return given_value(l, s);
    default: return l->value[s->id];
    }
}

/* ---- expressions ---------------------------------------------------------------------------- */

static IrRef lower_op(Lower *l, const Expr *e)
{
    IrRef x[3] = {IR_NONE, IR_NONE, IR_NONE};
    Rate operands = RATE_GLOBAL;
    for (int i = 0; i < e->nargs; i++) {
        x[i] = lower_expr(l, e->args[i]);
        operands = rate_join(operands, e->args[i]->rate);
    }
    /* The types that check gave decide what is rounded: a value over elements may have folded to a
     * scalar. */
    if (rate_is_elementwise(operands) && op_info[e->op].types != LOGIC)
        for (int i = 0; i < e->nargs; i++) x[i] = ir_round(&l->b, x[i]);
    return ir_op(&l->b, e->op, x[0], x[1], x[2]);
}

static IrRef lower_cond(Lower *l, const Expr *e)
{
    bool element = rate_is_elementwise(e->rate) && e->dtype != DT_BOOL;
    IrRef x;
    if (e->args[0]->is_const) {
        x = lower_expr(l, e->args[0]->cval != 0 ? e->args[1] : e->args[2]);
        return element ? ir_round(&l->b, x) : x;
    }
    IrRef c = lower_expr(l, e->args[0]);
    x = lower_expr(l, e->args[1]);
    IrRef y = lower_expr(l, e->args[2]);
    if (element) x = ir_round(&l->b, x), y = ir_round(&l->b, y);
    return choose(l, c, x, y);
}

/* One value within the scope: what the reduction makes of it alone. */
static IrRef reduce_one(Lower *l, ReduceKind kind, IrRef x, IrRef y)
{
    IrRef zero = ir_const(&l->b, 0), one = ir_const(&l->b, 1);
    switch (kind) {
    case RK_SUM:
    case RK_MEAN: return op2(l, OP_ADD, zero, x);
    case RK_NORM:
    case RK_RMS: return op1(l, OP_SQRT, op2(l, OP_MUL, x, x));
    case RK_DOT: return op2(l, OP_ADD, zero, op2(l, OP_MUL, x, y));
    case RK_COUNT: return choose(l, x, one, zero);
    default: return x;
    }
}

/* How many values a mean is over. */
static IrRef population(Lower *l, bool elements, Rate scope)
{
    if (scope == RATE_TENSOR) return load_property(l, "numel");
    if (elements && l->guard == IR_NONE) return load_property(l, "numel_all");
    if (elements)
        return ir_reduce(&l->b, RED_SUM, load_property(l, "numel"), IR_NONE, l->guard, scope);
    IrRef applied = ir_load(&l->b, l->t_slot), zero = ir_const(&l->b, 0),
          every = op2(l, OP_GE, applied, zero);
    return ir_reduce(&l->b, RED_COUNT, every, IR_NONE, l->guard, scope);
}

static IrRef lower_reduce(Lower *l, const Expr *e)
{
    static const ReduceOp ops[] = {
        [RK_SUM] = RED_SUM,    [RK_MEAN] = RED_SUM,   [RK_MAX] = RED_RMAX, [RK_MIN] = RED_RMIN,
        [RK_NORM] = RED_SUMSQ, [RK_RMS] = RED_SUMSQ,  [RK_DOT] = RED_DOT,  [RK_ANY] = RED_ANY,
        [RK_ALL] = RED_ALL,    [RK_COUNT] = RED_COUNT};
    Rate scope = e->scope == SCOPE_ALL ? RATE_GLOBAL : RATE_TENSOR, rate = RATE_GLOBAL;
    IrRef x[2] = {IR_NONE, IR_NONE};
    for (int i = 0; i < e->nargs; i++) rate = rate_join(rate, e->args[i]->rate);
    bool elements = rate_is_elementwise(rate);
    for (int i = 0; i < e->nargs; i++) {
        x[i] = lower_expr(l, e->args[i]);
        if (elements && e->args[i]->dtype != DT_BOOL) x[i] = ir_round(&l->b, x[i]);
    }
    if (rate == scope) return reduce_one(l, e->reduce, x[0], x[1]);
    Rate counted = elements ? RATE_ELEMENT : RATE_TENSOR;
    bool along = x[1] != IR_NONE && rate_within(counted, ins_of(l, x[1])->rate);
    if (scope == RATE_GLOBAL && !along) x[0] = ir_spread(&l->b, x[0], counted);
    IrRef r = ir_reduce(&l->b, ops[e->reduce], x[0], x[1], l->guard, scope);
    switch (e->reduce) {
    case RK_NORM: return op1(l, OP_SQRT, r);
    case RK_MEAN: return op2(l, OP_DIV, r, population(l, elements, scope));
    case RK_RMS: return op1(l, OP_SQRT, op2(l, OP_DIV, r, population(l, elements, scope)));
    default: return r;
    }
}

static IrRef lower_kind(Lower *l, const Expr *e)
{
    switch (e->kind) {
    case EX_NUMBER: return ir_const(&l->b, e->num);
    case EX_NAME: return symbol_value(l, e->sym);
    case EX_OLD: return e->sym == l->rule->g ? l->entry_g : l->entry[e->sym->id];
    case EX_OP: return lower_op(l, e);
    case EX_COND: return lower_cond(l, e);
    case EX_REDUCE: return lower_reduce(l, e);
    default: l->overflow = true; return ir_const(&l->b, 0); /* check leaves no other */
    }
}

static IrRef lower_expr(Lower *l, const Expr *e)
{
    if (l->b.b->n > IR_MAX_INS - 64 || l->m->nslots > IR_MAX_SLOTS - 8) l->overflow = true;
    if (l->overflow) return ir_const(&l->b, 0);
    if (l->memo_of[e->id] == l->statement) return l->memo[e->id];
    Span before = l->b.loc;
    l->b.loc = e->span;
    IrRef x = lower_kind(l, e);
    l->b.loc = before;
    l->memo[e->id] = x;
    l->memo_of[e->id] = l->statement;
    return x;
}

/* ---- statements ----------------------------------------------------------------------------- */

static IrRef lower_value(Lower *l, const Expr *e)
{
    l->statement++;
    return lower_expr(l, e);
}

/* The first value of a state: a constant is in its slot; any other is taken at the first applied
 * step, and stored then. */
static void lower_state(Lower *l, const Stmt *s)
{
    Symbol *sym = s->sym;
    IrRef load = ir_load(&l->b, l->slot[sym->id]);
    IrRef value = load, written = WRITTEN_NEVER;
    if (sym->derived) {
        IrRef first = sym->rate == RATE_GLOBAL ? l->first_s : l->first_t, guard = l->guard;
        l->guard = first;
        IrRef init = as_stored(l, sym, lower_value(l, s->value));
        l->guard = guard;
        value = choose(l, first, init, load);
        written = first;
    }
    set_value(l, sym, value, written);
    l->entry[sym->id] = value;
}

static void lower_block(Lower *l, const Block *b);

/* Takes back all changes since `mark`; what they came to goes to *out, one entry per symbol. */
static size_t take_back(Lower *l, size_t mark, Change **out)
{
    size_t n = 0, cap = 0;
    *out = NULL;
    for (size_t i = mark; i < l->nundo; i++) {
        uint32_t id = l->undo[i].sym;
        if (!l->syms[id]) continue; /* taken already: every change sets it */
        Change c = {l->syms[id], l->value[id], l->written[id]};
        ARENA_PUSH(l->arena, *out, n, cap, c);
        l->syms[id] = NULL;
    }
    while (l->nundo > mark) {
        Undo u = l->undo[--l->nundo];
        l->value[u.sym] = u.value;
        l->written[u.sym] = u.written;
    }
    return n;
}

/* Under which guard a symbol was written before or within branches: c selects between `then` and
 * `otherwise`. */
static IrRef join_written(Lower *l, IrRef before, IrRef c, IrRef then, IrRef otherwise)
{
    if (before == WRITTEN_ALWAYS || (then == WRITTEN_ALWAYS && otherwise == WRITTEN_ALWAYS))
        return WRITTEN_ALWAYS;
    IrRef not_c = op1(l, OP_NOT, c);
    IrRef r = before;
    if (then != before) {
        IrRef g = then == WRITTEN_ALWAYS ? c : op2(l, OP_AND, c, then);
        r = r == WRITTEN_NEVER ? g : op2(l, OP_OR, r, g);
    }
    if (otherwise != before) {
        IrRef g = otherwise == WRITTEN_ALWAYS ? not_c : op2(l, OP_AND, not_c, otherwise);
        r = r == WRITTEN_NEVER ? g : op2(l, OP_OR, r, g);
    }
    return r;
}

/* Joins one symbol's values in both branches. A state that lives in one branch alone keeps its
 * value at entry in the other. */
static void join(Lower *l, IrRef c, const Change *then, const Change *otherwise)
{
    Symbol *s = then ? then->sym : otherwise->sym;
    if (s->kind == SYM_LET) { /* what is needed after the branches is bound again there */
        set_value(l, s, then ? then->value : otherwise->value, WRITTEN_NEVER);
        return;
    }
    IrRef before = l->value[s->id], written = l->written[s->id];
    if (before == IR_NONE && l->entry[s->id] == IR_NONE) { /* a direction of one branch */
        set_value(l, s, then ? then->value : otherwise->value, WRITTEN_NEVER);
        return;
    }
    if (before == IR_NONE) {
        before = l->entry[s->id];
        written = s->derived ? (s->rate == RATE_GLOBAL ? l->first_s : l->first_t) : WRITTEN_NEVER;
    }
    IrRef a = then ? then->value : before, b = otherwise ? otherwise->value : before;
    IrRef w = join_written(l, written, c, then ? then->written : written,
                           otherwise ? otherwise->written : written);
    set_value(l, s, choose(l, c, a, b), w);
}

static void lower_when(Lower *l, const Stmt *s)
{
    IrRef c = lower_value(l, s->cond), guard = l->guard;
    size_t mark = l->nundo;
    Change *a, *b = NULL;
    l->guard = guard_and(l, guard, c);
    lower_block(l, s->body);
    size_t na = take_back(l, mark, &a), nb = 0;
    if (s->else_body) {
        l->guard = guard_and(l, guard, op1(l, OP_NOT, c));
        lower_block(l, s->else_body);
        nb = take_back(l, mark, &b);
    }
    l->guard = guard;
    for (size_t k = 0; k < nb; k++) l->mate[b[k].sym->id] = &b[k];
    for (size_t i = 0; i < na; i++) {
        const Change *other = l->mate[a[i].sym->id];
        l->mate[a[i].sym->id] = NULL;
        join(l, c, &a[i], other);
    }
    for (size_t k = 0; k < nb; k++) {
        if (l->mate[b[k].sym->id]) join(l, c, NULL, &b[k]);
        l->mate[b[k].sym->id] = NULL;
    }
}

static void lower_scope(Lower *l, const Stmt *s)
{
    IrRef before = l->entry_g;
    l->entry_g = l->value[l->rule->g->id];
    lower_block(l, s->body);
    l->entry_g = before;
}

static void lower_stmt(Lower *l, const Stmt *s)
{
    l->b.loc = s->span;
    switch (s->kind) {
    case ST_STATE: lower_state(l, s); return;
    case ST_LET: {
        IrRef x = lower_value(l, s->value);
        bool round = rate_is_elementwise(s->sym->rate) && s->sym->dtype != DT_BOOL;
        set_value(l, s->sym, round ? ir_round(&l->b, x) : x, WRITTEN_NEVER);
        return;
    }
    case ST_DIRECTION:
    case ST_WRITE: {
        IrRef x = lower_value(l, s->value);
        set_value(l, s->sym, rate_is_elementwise(s->sym->rate) ? ir_round(&l->b, x) : x,
                  WRITTEN_ALWAYS);
        return;
    }
    case ST_WHEN: lower_when(l, s); return;
    case ST_SCOPE: lower_scope(l, s); return;
    case ST_EXPORT: l->written[s->sym->id] = l->guard; return; /* stored at the end */
    default: return;
    }
}

static void lower_block(Lower *l, const Block *b)
{
    for (size_t i = 0; i < b->n && !l->overflow; i++) lower_stmt(l, b->stmts[i]);
}

/* ---- the ends of a body --------------------------------------------------------------------- */

/* The guard of 16-bit gradients: one that is not finite, anywhere, skips the step. */
static void lower_guard(Lower *l)
{
    IrBuilder *b = &l->b;
    IrRef bits = load_property(l, "gbits"), all_bits = ir_const(b, 32),
          narrow = op2(l, OP_LT, bits, all_bits);
    IrRef broken = op1(l, OP_NOT, op1(l, OP_FINITE, ir_load(b, l->slot[l->rule->g->id])));
    IrRef any = ir_reduce(b, RED_ANY, broken, IR_NONE, narrow, RATE_GLOBAL);
    Slot skip = {.kind = SLOT_SKIP,
                 .dtype = DT_BOOL,
                 .storage = DT_BOOL,
                 .rate = RATE_GLOBAL,
                 .name = "skip"};
    ir_store(b, ir_slot_add(l->m, skip), any, IR_NONE);
    b->b->noskip = op1(l, OP_NOT, any);
}

/* What `guard` says of a condition: 1 it holds, -1 it does not, 0 nothing. */
static int implies(const Lower *l, IrRef guard, IrRef condition, int depth)
{
    const Ins *i = ins_of(l, guard);
    if (guard == condition) return 1;
    if (i->op == IR_NOT && i->arg[0] == condition) return -1;
    if (i->op != IR_AND || depth == 0) return 0;
    int known = implies(l, i->arg[0], condition, depth - 1);
    return known ? known : implies(l, i->arg[1], condition, depth - 1);
}

/* What is stored under a guard need not be chosen by the same guard. */
static IrRef under_guard(const Lower *l, IrRef guard, IrRef value)
{
    while (guard != IR_NONE && ins_of(l, value)->op == IR_SELECT) {
        int known = implies(l, guard, ins_of(l, value)->arg[0], 8);
        if (!known) break;
        value = ins_of(l, value)->arg[known > 0 ? 1 : 2];
    }
    return value;
}

static void store_symbol(Lower *l, Symbol *s)
{
    IrRef guard = l->written[s->id];
    if (l->value[s->id] == IR_NONE || guard == WRITTEN_NEVER) return;
    IrRef value = under_guard(l, guard, l->value[s->id]);
    ir_store(&l->b, l->slot[s->id], as_stored(l, s, value), guard_and(l, l->b.b->noskip, guard));
}

static void store_all(Lower *l)
{
    const Rule *r = l->rule;
    IrBuilder *b = &l->b;
    for (size_t i = 0; i < r->nstates; i++) {
        b->loc = r->states[i]->span;
        store_symbol(l, r->states[i]);
    }
    store_symbol(l, l->rule->p);
    IrRef one = ir_const(b, 1), noskip = b->b->noskip;
    ir_store(b, l->t_slot, op2(l, OP_ADD, ir_load(b, l->t_slot), one), noskip);
    ir_store(b, l->s_slot, op2(l, OP_ADD, ir_load(b, l->s_slot), one), noskip);
    for (size_t i = 0; i < r->nexports; i++) {
        Symbol *s = r->exports[i];
        b->loc = s->span;
        IrRef x = lower_value(l, s->value);
        if (ins_of(l, x)->dtype == DT_BOOL) x = choose(l, x, one, ir_const(b, 0));
        IrRef guard = l->written[s->id];
        if (guard != IR_NONE) x = choose(l, guard, x, ir_const(b, NAN));
        ir_store(b, l->slot[s->id], x, IR_NONE);
    }
}

IrModule *ir_lower(Arena *a, DiagSink *d, const Rule *rule, const LowerOptions *o)
{
    Lower l = {.arena = a, .rule = rule, .guard = IR_NONE};
    l.m = ir_module_new(a, rule->name, o->compute_f64);
    l.m->sources = d->sources;
    ir_builder_init(&l.b, l.m, ir_body_new(l.m, rule->name, "step"));
    l.syms = ARENA_ARRAY(a, Symbol *, rule->nsyms + 1);
    l.value = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.entry = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.written = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.slot = ARENA_ARRAY(a, uint32_t, rule->nsyms + 1);
    l.mate = ARENA_ARRAY(a, const Change *, rule->nsyms + 1);
    l.memo = ARENA_ARRAY(a, IrRef, rule->nexprs + 1);
    l.memo_of = ARENA_ARRAY(a, uint32_t, rule->nexprs + 1);
    for (uint32_t i = 0; i <= rule->nsyms; i++) {
        l.value[i] = l.entry[i] = IR_NONE;
        l.written[i] = WRITTEN_NEVER;
    }
    add_slots(&l);
    IrRef zero = ir_const(&l.b, 0);
    l.first_t = op2(&l, OP_EQ, ir_load(&l.b, l.t_slot), zero);
    l.first_s = op2(&l, OP_EQ, ir_load(&l.b, l.s_slot), zero);
    if (o->guard_gradients) lower_guard(&l);
    Symbol *given[2] = {rule->p, rule->g};
    for (int i = 0; i < 2; i++) {
        uint32_t id = given[i]->id;
        l.value[id] = l.entry[id] = ir_load(&l.b, l.slot[id]);
    }
    l.entry_g = l.value[rule->g->id];
    lower_block(&l, rule->body);
    if (!l.overflow) store_all(&l);
    if (l.overflow) {
        diag_report(d, DIAG_INTERNAL, rule->item->name.span, "the rule has too many operations");
        return NULL;
    }
    return l.m;
}
