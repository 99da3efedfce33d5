/* lower_slots.c - what outlives a step: the table of slots, and which initial values are taken when.
 *
 * Requires a checked rule. The modules of a rule with entry points begin with the same slots: p, g,
 * the clocks, all properties, hyperparameters, inputs and states. There, `init` says for each tensor
 * whether what does not read the gradient has been given its initial value, by whichever entry point
 * came first; what reads it waits for the first step. In a rule without entry points t == 0 says so.
 *
 *     state z = p, v = 0   ->   slot z state f32.element "r.z" = 0   (taken at the first step)
 *                               slot v state f32.element "r.v" = 0
 */
#include "lower.h"
#include <string.h>

static const struct {
    const char *name;
    Rate rate;
} properties[] = {{"numel", RATE_TENSOR}, {"ndim", RATE_TENSOR},    {"rows", RATE_TENSOR},
                  {"cols", RATE_TENSOR},  {"mats", RATE_TENSOR},    {"first", RATE_TENSOR},
                  {"gbits", RATE_TENSOR}, {"draw_lo", RATE_TENSOR}, {"draw_hi", RATE_TENSOR},
                  {"numel_all", RATE_GLOBAL}};

static uint32_t property_slot(Lower *l, const char *name)
{
    int found = ir_slot_find(l->m, SLOT_PROP, name);
    if (found >= 0) return (uint32_t)found;
    Slot slot = {.kind = SLOT_PROP, .dtype = DT_F64, .storage = DT_F64, .name = name};
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(properties[i].name, name) == 0) slot.rate = properties[i].rate;
    return ir_slot_add(l->m, slot);
}

IrRef lower_property(Lower *l, const char *name)
{
    return ir_load(&l->b, property_slot(l, name));
}

/* 1 for tensors whose name is as the question wants it; the text is the slot's path. */
static uint32_t name_slot(Lower *l, const NameTest *t)
{
    const char *name = t->pattern ? "name_like" : "name_is";
    for (uint32_t i = 0; i < l->m->nslots; i++) {
        const Slot *s = &l->m->slots[i];
        bool same = s->kind == SLOT_PROP && strcmp(s->name, name) == 0;
        if (same && strcmp(s->path, t->text) == 0) return i;
    }
    return ir_slot_add(l->m, (Slot){.kind = SLOT_PROP,
                                    .dtype = DT_F64,
                                    .storage = DT_F64,
                                    .rate = RATE_TENSOR,
                                    .name = name,
                                    .path = t->text});
}

IrRef lower_name_test(Lower *l, const NameTest *t)
{
    return ir_load(&l->b, name_slot(l, t));
}

static void add_symbol(Lower *l, Symbol *s, Slot slot)
{
    slot.rate = s->rate;
    slot.name = s->name;
    slot.loc = s->span;
    bool f32 = rate_is_elementwise(s->rate);
    slot.dtype = f32 && !l->m->compute_f64 ? DT_F32 : DT_F64;
    slot.storage = slot.kind == SLOT_STATE && !f32 && s->storage == DT_F32 ? DT_F32 : slot.dtype;
    l->slot[s->id] = ir_slot_add(l->m, slot);
}

static void add_hyper(Lower *l, Symbol *s)
{
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

static void add_state(Lower *l, Symbol *s)
{
    bool f32 = s->storage == DT_F32 && !l->m->compute_f64; /* of elements, or declared so */
    if (!rate_is_elementwise(s->rate)) f32 = s->storage == DT_F32;
    Slot slot = {.kind = SLOT_STATE, .path = s->path};
    if (s->value && !s->derived) slot.init = f32 ? (double)(float)s->value->cval : s->value->cval;
    add_symbol(l, s, slot);
}

static uint32_t add_count(Lower *l, const char *name, Rate rate)
{
    Slot count = {
        .kind = SLOT_COUNT, .dtype = DT_F64, .storage = DT_F64, .rate = rate, .name = name};
    return ir_slot_add(l->m, count);
}

/* ---- initial values ------------------------------------------------------------------------- */

static bool find_g(const Lower *l, const Expr *e)
{
    if ((e->kind == EX_NAME || e->kind == EX_OLD) && e->sym) {
        const Symbol *s = e->sym;
        if (s->kind == SYM_GIVEN) return s->given == GIVEN_G;
        if (s->kind == SYM_STATE) return s->derived && lower_reads_g(l, s->value);
        return s->kind == SYM_LET || s->kind == SYM_DIRECTION; /* of the step, if of anything */
    }
    for (int i = 0; i < e->nargs; i++)
        if (lower_reads_g(l, e->args[i])) return true;
    return false;
}

bool lower_reads_g(const Lower *l, const Expr *e)
{
    if (!e) return false;
    if (!l->reads_g[e->id]) l->reads_g[e->id] = find_g(l, e) ? 2 : 1; /* trees share nodes */
    return l->reads_g[e->id] == 2;
}

bool lower_block_reads_g(const Lower *l, const Block *b)
{
    for (size_t i = 0; b && i < b->n; i++) {
        const Stmt *s = b->stmts[i];
        bool here = s->kind == ST_WRITE && s->sym == l->rule->g;
        if (here || lower_reads_g(l, s->value) || lower_reads_g(l, s->cond) ||
            lower_block_reads_g(l, s->body) || lower_block_reads_g(l, s->else_body))
            return true;
    }
    return false;
}

bool lower_is_init(const Stmt *s)
{
    return s->kind == ST_WHEN && s->cond && s->cond->kind == EX_NAME &&
           s->cond->sym->kind == SYM_GIVEN && s->cond->sym->given == GIVEN_FIRST;
}

static bool has_init_block(const Block *b)
{
    for (size_t i = 0; b && i < b->n; i++) {
        const Stmt *s = b->stmts[i];
        if (lower_is_init(s) || has_init_block(s->body) || has_init_block(s->else_body)) return true;
    }
    return false;
}

IrRef lower_first(Lower *l, const Symbol *s)
{
    if (s->rate == RATE_GLOBAL) return l->first_s;
    if (s->rate == RATE_GROUP) return l->first_group;
    return lower_reads_g(l, s->value) ? l->first_g : l->first_t;
}

IrRef lower_as_stored(Lower *l, const Symbol *s, IrRef value)
{
    if (rate_is_elementwise(s->rate)) return ir_round(&l->b, value);
    return s->storage == DT_F32 ? lower_op1(l, OP_F32, value) : value;
}

/* ---- the table ------------------------------------------------------------------------------ */

void lower_add_slots(Lower *l)
{
    const Rule *r = l->rule;
    l->skip_slot = l->arm_slot = l->block_slot = l->init_slot = l->group_init_slot = IR_NONE;
    add_symbol(l, r->p, (Slot){.kind = SLOT_PARAM});
    add_symbol(l, r->g, (Slot){.kind = SLOT_GRAD});
    l->t_slot = add_count(l, "t", RATE_TENSOR);
    l->s_slot = add_count(l, "s", RATE_GLOBAL);
    bool tensors = has_init_block(r->body), groups = false;
    for (size_t i = 0; i < r->nstates; i++) {
        const Symbol *s = r->states[i];
        if (s->derived && s->rate == RATE_GROUP) groups = true;
        if (s->derived && rate_within(RATE_TENSOR, s->rate)) tensors = true;
    }
    if (groups) l->group_init_slot = add_count(l, "group_init", RATE_GROUP);
    if (r->nentries) {
        if (tensors) l->init_slot = add_count(l, "init", RATE_TENSOR);
        for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
            property_slot(l, properties[i].name);
        for (size_t i = 0; i < r->nnames; i++) name_slot(l, &r->names[i]);
        /* A block's size is set when a tensor's body is chosen, for all entry points at once. */
        if (r->block) l->block_slot = lower_selected_slot(l, SLOT_BLOCK, "block");
    }
    for (size_t i = 0; i < r->nhypers; i++) add_hyper(l, r->hypers[i]);
    for (size_t i = 0; i < r->ninputs; i++)
        add_symbol(l, r->inputs[i], (Slot){.kind = SLOT_INPUT, .path = r->inputs[i]->path});
    for (size_t i = 0; i < r->nstates; i++) add_state(l, r->states[i]);
    if (r->nentries) l->m->nshared = l->m->nslots;
    for (size_t i = 0; i < r->nexports && !l->at; i++)
        add_symbol(l, r->exports[i], (Slot){.kind = SLOT_EXPORT});
}
