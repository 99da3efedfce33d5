/* lower.c - a checked rule to IR: the order of writes becomes SSA, `when` becomes selects and
 * guards, effects become stores.
 *
 * Requires a Rule from frontend_check. The value that each written symbol has now is kept by symbol
 * number; branches are lowered one after the other from the same values and joined by selects. Of a
 * `shape` a body has one arm. Nothing is stored before the end of the body, where every state that
 * was written, p, the clocks and the exports are stored under their guards.
 *
 *     when c { m := g }   ->   %7 = select %c %g %m     store m %g if %c
 */
#include "lower.h"
#include <math.h>
#include <string.h>

/* Guards: IR_NONE is true. */
static IrRef guard_and(Lower *l, IrRef a, IrRef b)
{
    return a == IR_NONE ? b : b == IR_NONE ? a : lower_op2(l, OP_AND, a, b);
}

static void set_value(Lower *l, Symbol *s, IrRef value, IrRef written)
{
    Undo u = {s->id, l->value[s->id], l->written[s->id]};
    ARENA_PUSH(l->arena, l->undo, l->nundo, l->undo_cap, u);
    l->syms[s->id] = s;
    l->value[s->id] = value;
    l->written[s->id] = written;
}

/* ---- statements ----------------------------------------------------------------------------- */

/* What a state is before the statements, and under which guard that has to be stored. */
static void begins_as(Lower *l, const Symbol *s, IrRef value, IrRef written)
{
    l->entry[s->id] = value;
    l->begun_under[s->id] = written;
}

/* The first value of a state: a constant is in its slot; any other is taken at the first applied
 * step, and stored then. */
static void lower_state(Lower *l, const Stmt *s)
{
    Symbol *sym = s->sym;
    lower_see(l, sym->rate);
    IrRef load = ir_load(&l->b, l->slot[sym->id]);
    IrRef value = load, written = WRITTEN_NEVER;
    IrRef first = sym->derived ? lower_first(l, sym) : IR_NONE;
    if (first != IR_NONE) {
        IrRef guard = l->guard;
        l->guard = first;
        IrRef init = lower_as_stored(l, sym, lower_value(l, s->value));
        l->guard = guard;
        value = lower_choose(l, first, init, load);
        written = first;
    }
    /* What tensors share begins with the first step; other entry points see what it will be. */
    if (l->at && rate_within(sym->rate, RATE_GROUP)) written = WRITTEN_NEVER;
    set_value(l, sym, value, written);
    begins_as(l, sym, value, written);
}

static void lower_block(Lower *l, const Block *b);
static void lower_when(Lower *l, const Stmt *s);

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
    IrRef not_c = lower_op1(l, OP_NOT, c);
    IrRef r = before;
    if (then != before) {
        IrRef g = then == WRITTEN_ALWAYS ? c : lower_op2(l, OP_AND, c, then);
        r = r == WRITTEN_NEVER ? g : lower_op2(l, OP_OR, r, g);
    }
    if (otherwise != before) {
        IrRef g = otherwise == WRITTEN_ALWAYS ? not_c : lower_op2(l, OP_AND, not_c, otherwise);
        r = r == WRITTEN_NEVER ? g : lower_op2(l, OP_OR, r, g);
    }
    return r;
}

/* Joins one symbol's values in both branches. A state that lives in one branch alone is in the other
 * what it was at entry, and begins there, too. */
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
        written = l->begun_under[s->id];
    }
    IrRef a = then ? then->value : before, b = otherwise ? otherwise->value : before;
    IrRef w = join_written(l, written, c, then ? then->written : written,
                           otherwise ? otherwise->written : written);
    set_value(l, s, lower_choose(l, c, a, b), w);
}

/* It holds where the tensor's state begins. */
static IrRef when_condition(Lower *l, const Stmt *s)
{
    if (lower_is_init(s) && !lower_block_reads_g(l, s->body)) return l->first_t;
    return lower_value(l, s->cond);
}

static void lower_when(Lower *l, const Stmt *s)
{
    IrRef c = when_condition(l, s), guard = l->guard;
    size_t mark = l->nundo;
    bool init = lower_is_init(s); /* state begins whatever holds around */
    Change *a, *b = NULL;
    l->guard = init ? c : guard_and(l, guard, c);
    lower_block(l, s->body);
    size_t na = take_back(l, mark, &a), nb = 0;
    if (s->else_body) {
        l->guard = guard_and(l, guard, lower_op1(l, OP_NOT, c));
        lower_block(l, s->else_body);
        nb = take_back(l, mark, &b);
    }
    l->guard = guard;
    for (size_t k = 0; k < nb; k++) l->mate[b[k].sym->id] = &b[k];
    for (size_t i = 0; i < na; i++) {
        const Change *other = l->mate[a[i].sym->id];
        l->mate[a[i].sym->id] = NULL;
        join(l, c, &a[i], other);
        uint32_t id = a[i].sym->id;
        if (init && a[i].sym->kind == SYM_STATE)
            begins_as(l, a[i].sym, l->value[id], l->written[id]);
    }
    for (size_t k = 0; k < nb; k++) {
        if (l->mate[b[k].sym->id]) join(l, c, NULL, &b[k]);
        l->mate[b[k].sym->id] = NULL;
    }
}

static void lower_instance(Lower *l, const Block *b);

static void lower_scope(Lower *l, const Stmt *s)
{
    IrRef g = l->entry_g;
    bool begun = l->begun;
    l->begun = false;
    l->entry_g = l->value[l->rule->g->id];
    lower_instance(l, s->body);
    l->entry_g = g;
    l->begun = begun;
}

/* The arm that this body's tensors take. */
static const Block *arm_of(const Lower *l, const Stmt *s)
{
    return shape_takes(l->path, s) ? s->body : s->else_body;
}

static void lower_shape(Lower *l, const Stmt *s)
{
    const Stmt *dims = l->dims;
    const Block *arm = arm_of(l, s);
    if (arm == s->body) l->dims = s;
    l->arms++;
    if (arm) lower_block(l, arm);
    l->arms--;
    l->dims = dims;
}

static void lower_stmt(Lower *l, const Stmt *s)
{
    if (l->begun && (s->kind == ST_STATE || lower_is_init(s))) return; /* done where the rule begins */
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
    case ST_SHAPE: lower_shape(l, s); return;
    case ST_EXPORT: l->written[s->sym->id] = l->guard; return; /* stored at the end */
    default: return;
    }
}

static void lower_block(Lower *l, const Block *b)
{
    for (size_t i = 0; i < b->n && !l->overflow; i++) lower_stmt(l, b->stmts[i]);
}

/* First values of what the arms declare, and their `init` blocks. */
static void begin_arms(Lower *l, const Block *b)
{
    for (size_t i = 0; b && i < b->n && !l->overflow; i++) {
        const Stmt *s = b->stmts[i], *dims = l->dims;
        const Block *arm = s->kind == ST_SHAPE ? arm_of(l, s) : NULL;
        if (s->kind == ST_WHEN && !lower_is_init(s)) {
            begin_arms(l, s->body);
            begin_arms(l, s->else_body);
        }
        if (!arm) continue;
        if (arm == s->body) l->dims = s;
        for (size_t k = 0; k < arm->n; k++)
            if (arm->stmts[k]->kind == ST_STATE || lower_is_init(arm->stmts[k]))
                lower_stmt(l, arm->stmts[k]);
        begin_arms(l, arm);
        l->dims = dims;
    }
}

/* A rule or transform: where it is entered, states take their first values, those of arms too. */
static void lower_instance(Lower *l, const Block *b)
{
    size_t first = 0;
    for (size_t i = 0; i < b->n; i++)
        if (b->stmts[i]->kind == ST_STATE || lower_is_init(b->stmts[i])) first = i + 1;
    for (size_t i = 0; i < first && !l->overflow; i++) lower_stmt(l, b->stmts[i]);
    begin_arms(l, b);
    l->begun = true;
    for (size_t i = first; i < b->n && !l->overflow; i++) lower_stmt(l, b->stmts[i]);
}

/* ---- the ends of a body --------------------------------------------------------------------- */

/* The guard of 16-bit gradients: one that is not finite, anywhere, skips the step. */
static void lower_guard(Lower *l)
{
    enum { KEY = 1 }; /* those of statements begin at 1 << 16 */
    IrBuilder *b = &l->b;
    IrRef bits = lower_property(l, "gbits"), all_bits = ir_const(b, 32),
          narrow = lower_op2(l, OP_LT, bits, all_bits);
    IrRef g = ir_load(b, l->slot[l->rule->g->id]);
    IrRef broken = lower_op1(l, OP_NOT, lower_op1(l, OP_FINITE, g));
    IrRef any = ir_reduce_keyed(b, RED_ANY, broken, IR_NONE, narrow, RATE_GLOBAL, KEY);
    Slot skip = {.kind = SLOT_SKIP,
                 .dtype = DT_BOOL,
                 .storage = DT_BOOL,
                 .rate = RATE_GLOBAL,
                 .name = "skip"};
    if (l->skip_slot == IR_NONE) l->skip_slot = ir_slot_add(l->m, skip);
    ir_store(b, l->skip_slot, any, IR_NONE);
    b->b->noskip = lower_op1(l, OP_NOT, any);
}

/* What `guard` says of a condition: 1 it holds, -1 it does not, 0 nothing. */
static int implies(const Lower *l, IrRef guard, IrRef condition, int depth)
{
    const Ins *i = lower_ins(l, guard);
    if (guard == condition) return 1;
    if (i->op == IR_NOT && i->arg[0] == condition) return -1;
    if (i->op != IR_AND || depth == 0) return 0;
    int known = implies(l, i->arg[0], condition, depth - 1);
    return known ? known : implies(l, i->arg[1], condition, depth - 1);
}

/* What is stored under a guard need not be chosen by the same guard. */
static IrRef under_guard(const Lower *l, IrRef guard, IrRef value)
{
    while (guard != IR_NONE && lower_ins(l, value)->op == IR_SELECT) {
        int known = implies(l, guard, lower_ins(l, value)->arg[0], 8);
        if (!known) break;
        value = lower_ins(l, value)->arg[known > 0 ? 1 : 2];
    }
    return value;
}

static void store_symbol(Lower *l, Symbol *s)
{
    IrRef guard = l->written[s->id];
    if (l->value[s->id] == IR_NONE || guard == WRITTEN_NEVER) return;
    IrRef value = under_guard(l, guard, l->value[s->id]);
    ir_store(&l->b, l->slot[s->id], lower_as_stored(l, s, value), guard_and(l, l->b.b->noskip, guard));
}

static void count_up(Lower *l, uint32_t slot)
{
    IrRef before = ir_load(&l->b, slot), one = ir_const(&l->b, 1);
    ir_store(&l->b, slot, lower_op2(l, OP_ADD, before, one), l->b.b->noskip);
}

/* An export is NaN where its condition does not hold, and for tensors that take another arm. */
static void store_export(Lower *l, Symbol *s)
{
    IrBuilder *b = &l->b;
    IrRef nan = ir_const(b, NAN), guard = l->written[s->id];
    if (guard == WRITTEN_NEVER) {
        ir_store(b, l->slot[s->id], nan, IR_NONE);
        return;
    }
    IrRef x = lower_value(l, s->value);
    if (lower_ins(l, x)->dtype == DT_BOOL) {
        IrRef one = ir_const(b, 1);
        x = lower_choose(l, x, one, ir_const(b, 0));
    }
    if (guard != IR_NONE) x = lower_choose(l, guard, x, nan);
    ir_store(b, l->slot[s->id], x, IR_NONE);
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
    IrRef noskip = b->b->noskip;
    if (!l->at) {
        count_up(l, l->t_slot);
        count_up(l, l->s_slot);
        if (l->group_init_slot != IR_NONE)
            ir_store(b, l->group_init_slot, ir_const(b, 1), noskip);
    }
    if (l->init_slot != IR_NONE) ir_store(b, l->init_slot, ir_const(b, 1), noskip);
    for (size_t i = 0; i < r->nexports && !l->at; i++) {
        b->loc = r->exports[i]->span;
        store_export(l, r->exports[i]);
    }
}

/* ---- a body --------------------------------------------------------------------------------- */

/* In other entry points than the step: the states, and the `init` blocks that do not need g. */
static void lower_initial(Lower *l, const Block *b)
{
    for (size_t i = 0; b && i < b->n && !l->overflow; i++) {
        const Stmt *s = b->stmts[i], *dims = l->dims;
        if (s->kind == ST_STATE)
            lower_state(l, s);
        else if (s->kind == ST_SHAPE) {
            const Block *arm = arm_of(l, s);
            if (arm == s->body) l->dims = s;
            lower_initial(l, arm);
            l->dims = dims;
        } else if (!lower_is_init(s)) {
            lower_initial(l, s->body);
            lower_initial(l, s->else_body);
        } else if (!lower_block_reads_g(l, s->body))
            lower_when(l, s);
    }
}

static IrRef is_zero(Lower *l, uint32_t slot)
{
    IrRef zero = ir_const(&l->b, 0), x = ir_load(&l->b, slot);
    return lower_op2(l, OP_EQ, x, zero);
}

static void set_entry(Lower *l, Symbol *s)
{
    l->value[s->id] = l->entry[s->id] = ir_load(&l->b, l->slot[s->id]);
}

void lower_body(Lower *l, const Block *block)
{
    const Rule *r = l->rule;
    for (uint32_t i = 0; i <= r->nsyms; i++) {
        l->value[i] = l->entry[i] = IR_NONE;
        l->written[i] = WRITTEN_NEVER;
    }
    memset(l->reduced, 0, r->nexprs + 1);
    l->nundo = 0;
    l->view = VIEW_FLAT;
    l->first_g = l->first_t = is_zero(l, l->t_slot);
    l->first_s = is_zero(l, l->s_slot);
    if (l->group_init_slot != IR_NONE) l->first_group = is_zero(l, l->group_init_slot);
    if (l->init_slot != IR_NONE) l->first_t = is_zero(l, l->init_slot);
    if (l->at) l->first_g = IR_NONE;
    if (l->guard_gradients && !l->at) lower_guard(l);
    set_entry(l, r->p);
    if (!l->at) set_entry(l, r->g);
    l->entry_g = l->value[r->g->id];
    l->begun = false;
    if (l->at) lower_initial(l, r->body);
    if (l->at && l->at->param) {
        l->slot[l->at->param->id] = l->slot[r->g->id];
        set_entry(l, l->at->param);
    }
    if (l->at)
        lower_block(l, block);
    else
        lower_instance(l, block);
    if (!l->overflow) store_all(l);
    l->b.b->view = l->view;
}
