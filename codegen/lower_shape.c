/* lower_shape.c - one body for each way through the rule's `shape` statements, and `select`, which
 * says which one a tensor runs.
 *
 * Requires a checked rule. Bodies that turn out equal are one. Ensures a module that ir_verify
 * accepts, or a message of a rule that is too large.
 *
 *     shape [.., r, c] { A } else { B }
 *  -> body 0 (matrix), body 1 (flat), select: arm = ndim >= 2 ? 0 : 1
 */
#include "lower.h"
#include <string.h>

/* ---- the choice ----------------------------------------------------------------------------- */

static IrRef fact(Lower *l, const Expr *cond)
{
    if (cond) return lower_value(l, cond);
    IrRef ndim = lower_property(l, "ndim"), two = ir_const(&l->b, 2);
    return lower_op2(l, OP_GE, ndim, two);
}

static IrRef facts(Lower *l, const ShapePath *path)
{
    IrRef all = ir_const_bool(&l->b, true);
    for (size_t i = 0; i < path->n; i++) {
        IrRef x = fact(l, path->facts[i].cond);
        if (!path->facts[i].holds) x = lower_op1(l, OP_NOT, x);
        all = lower_op2(l, OP_AND, all, x);
    }
    return all;
}

uint32_t lower_selected_slot(Lower *l, SlotKind kind, const char *name)
{
    return ir_slot_add(l->m, (Slot){.kind = kind,
                                    .dtype = DT_F64,
                                    .storage = DT_F64,
                                    .rate = RATE_TENSOR,
                                    .name = name});
}

/* Every tensor takes one of the paths: the last one needs no question. */
static void store_arm(Lower *l, const ShapePath *paths, const uint32_t *body, size_t n)
{
    IrRef arm = ir_const(&l->b, body[n - 1]);
    for (size_t i = n - 1; i-- > 0;) {
        IrRef c = facts(l, &paths[i]), one = ir_const(&l->b, body[i]);
        arm = lower_choose(l, c, one, arm);
    }
    ir_store(&l->b, lower_selected_slot(l, SLOT_ARM, "arm"), arm, IR_NONE);
}

/* Sizes that are computed are rounded down to whole elements, at least one. */
static void store_block(Lower *l)
{
    IrRef size = lower_value(l, l->rule->block), one = ir_const(&l->b, 1);
    IrRef whole = lower_op1(l, OP_FLOOR, size);
    ir_store(&l->b, l->block_slot, lower_op2(l, OP_MAX, whole, one), IR_NONE);
}

static void lower_select(Lower *l, const ShapePath *paths, const uint32_t *body, size_t n)
{
    bool blocks = false;
    for (uint32_t i = 0; i < l->m->nbodies; i++) blocks |= l->m->bodies[i].view == VIEW_BLOCK;
    if (l->m->nbodies == 1 && !blocks) return;
    ir_builder_init(&l->b, l->m, ir_select_new(l->m, l->rule->name));
    l->selecting = true;
    if (l->m->nbodies > 1) store_arm(l, paths, body, n);
    if (blocks) store_block(l);
    l->selecting = false;
}

/* ---- the bodies ----------------------------------------------------------------------------- */

/* Results that one body alone feeds have slots of their own. */
static bool same_ins(const IrModule *m, const Ins *x, const Ins *y)
{
    Ins a = *x, b = *y;
    if (ir_is_reduce(x) && ir_is_reduce(y) && !m->slots[x->lit.slot].key &&
        !m->slots[y->lit.slot].key)
        a.lit.slot = b.lit.slot = 0;
    return memcmp(a.arg, b.arg, sizeof a.arg) == 0 && a.op == b.op && a.dtype == b.dtype &&
           a.rate == b.rate && memcmp(&a.lit, &b.lit, sizeof a.lit) == 0;
}

static bool same_body(const IrModule *m, const IrBody *x, const IrBody *y)
{
    if (x->n != y->n || x->nstores != y->nstores || x->view != y->view || x->noskip != y->noskip)
        return false;
    for (uint32_t i = 0; i < x->n; i++)
        if (!same_ins(m, &x->ins[i], &y->ins[i])) return false;
    for (uint32_t i = 0; i < x->nstores; i++) {
        const IrStore *a = &x->stores[i], *b = &y->stores[i];
        if (a->slot != b->slot || a->value != b->value || a->guard != b->guard) return false;
    }
    return true;
}

/* The number of the body that the last one equals, which is then taken away; or its own. */
static uint32_t settle(IrModule *m)
{
    uint32_t last = m->nbodies - 1;
    for (uint32_t i = 0; i < last; i++) {
        if (!same_body(m, &m->bodies[i], &m->bodies[last])) continue;
        memset(&m->bodies[last], 0, sizeof m->bodies[last]);
        m->nbodies--;
        return i;
    }
    return last;
}

static void lower_bodies(Lower *l)
{
    const Block *block = l->at ? l->at->body : l->rule->body;
    const char *entry = l->at ? l->at->name : "step";
    ShapePath *paths; /* those of the rule, too, where its states are declared */
    size_t n = shape_paths(l->arena, l->rule->body, l->at ? block : NULL, &paths);
    uint32_t body[RULE_MAX_PATHS];
    for (size_t i = 0; i < n && !l->overflow; i++) {
        l->path = &paths[i];
        ir_builder_init(&l->b, l->m, ir_body_new(l->m, l->rule->name, entry));
        if (l->rule->block && l->block_slot == IR_NONE)
            l->block_slot = lower_selected_slot(l, SLOT_BLOCK, "block");
        lower_body(l, block);
        body[i] = settle(l->m);
    }
    if (!l->overflow) lower_select(l, paths, body, n);
}

static const Entry *find_entry(const Rule *r, const char *name)
{
    for (size_t i = 0; name && i < r->nentries; i++)
        if (strcmp(r->entries[i].name, name) == 0) return &r->entries[i];
    return NULL;
}

IrModule *ir_lower(Arena *a, DiagSink *d, const Rule *rule, const LowerOptions *o)
{
    Lower l = {.arena = a,
               .rule = rule,
               .at = find_entry(rule, o->entry),
               .guard_gradients = o->guard_gradients,
               .guard = IR_NONE};
    l.m = ir_module_new(a, rule->name, o->compute_f64);
    l.m->sources = d->sources;
    l.syms = ARENA_ARRAY(a, Symbol *, rule->nsyms + 1);
    l.value = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.entry = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.written = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.begun_under = ARENA_ARRAY(a, IrRef, rule->nsyms + 1);
    l.slot = ARENA_ARRAY(a, uint32_t, rule->nsyms + 1);
    l.mate = ARENA_ARRAY(a, const Change *, rule->nsyms + 1);
    l.memo = ARENA_ARRAY(a, IrRef, rule->nexprs + 1);
    l.memo_of = ARENA_ARRAY(a, uint32_t, rule->nexprs + 1);
    l.reads_g = ARENA_ARRAY(a, uint8_t, rule->nexprs + 1);
    l.reduced = ARENA_ARRAY(a, uint8_t, rule->nexprs + 1);
    lower_add_slots(&l);
    lower_bodies(&l);
    if (l.overflow) {
        diag_report(d, DIAG_INTERNAL, rule->item->name.span, "the rule has too many operations");
        return NULL;
    }
    return l.m;
}
