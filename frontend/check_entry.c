/* check_entry.c - what happens outside of the order of statements: `init` where a tensor's state
 * begins, entry points, inputs of the host.
 *
 * An entry point sees what the block declares and p, t and s, none of the step's names. The blocks
 * of one name of all that a rule uses are one entry point, in order of use.
 *
 *     init { z := p }              ->   WHEN first step { z := p }, behind the initial values
 *     on eval { p := z }           ->   Rule.entries {"eval", { p := z }}
 *     input loss                   ->   Rule.inputs {"loss"}
 */
#include "check.h"
#include <string.h>

/* ---- init ----------------------------------------------------------------------------------- */

static void init_block(Checker *c, const Stmt *s)
{
    Context here = c->x;
    Block *out = c->out;
    Stmt *when = stmt_new(c, ST_WHEN, s->span);
    when->cond =
        expr_of_symbol(c, c->given[GIVEN_FIRST], (Span){s->span.begin, s->body->span.begin});
    when->body = c->out = ARENA_NEW(c->arena, Block);
    c->x.scope = ARENA_NEW(c->arena, Scope);
    c->x.scope->parent = here.scope;
    c->x.guard = rate_join(here.guard, RATE_TENSOR);
    c->x.in_when = c->x.in_repeat = c->x.in_init = true;
    check_block(c, s->body);
    c->x = here;
    c->out = out;
    stmt_emit(c, when);
}

void entry_init(Checker *c, const Block *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->stmts[i]->kind == ST_INIT) init_block(c, b->stmts[i]);
}

/* ---- inputs --------------------------------------------------------------------------------- */

static Symbol *input_named(Checker *c, Name name)
{
    for (size_t i = 0; i < c->rule->ninputs; i++)
        if (c->rule->inputs[i]->name == name.text) return c->rule->inputs[i];
    Symbol *s = symbol_new(c, SYM_INPUT, name);
    s->path = name.text;
    s->dtype = s->storage = DT_F64;
    s->rate = RATE_GLOBAL;
    if (!check_name_length(c, name) || !check_slots(c, 1)) s->dtype = DT_COUNT;
    if (!c->x.dead) ARENA_PUSH(c->arena, c->rule->inputs, c->rule->ninputs, c->inputs_cap, s);
    return s;
}

void entry_inputs(Checker *c, const Block *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const Stmt *s = b->stmts[i];
        for (size_t k = 0; s->kind == ST_INPUT && k < s->nnames; k++) {
            Name name = s->names[k];
            Binding *before = name_lost(name) ? NULL : scope_find(c->x.scope, name.text);
            if (before) {
                Diag *d = REPORT(c, DIAG_DUPLICATE, name.span, name.text);
                diag_note(c->diags, d, before->span, "declared here");
            } else if (check_new_name(c, name))
                scope_bind(c, c->x.scope, name, input_named(c, name), NULL);
        }
    }
}

/* ---- entry points --------------------------------------------------------------------------- */

static Entry *entry_named(Checker *c, Name name)
{
    Rule *r = c->rule;
    for (size_t i = 0; i < r->nentries; i++)
        if (r->entries[i].name == name.text) return &r->entries[i];
    Entry e = {.name = name.text, .span = name.span, .body = ARENA_NEW(c->arena, Block)};
    ARENA_PUSH(c->arena, r->entries, r->nentries, c->entries_cap, e);
    return &r->entries[r->nentries - 1];
}

static bool name_fits(Checker *c, Name name)
{
    static const char *const taken[][2] = {
        {"step", "it is the step itself"},
        {"init", "what is done once is 'init { … }'"},
        {"micro", "it belongs to accumulators"},
        {"boundary", "it belongs to accumulators"},
    };
    if (name_lost(name)) return false;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        if (strcmp(taken[i][0], name.text) != 0) continue;
        REPORT(c, DIAG_ENTRY_NAME, name.span, name.text, taken[i][1]);
        return false;
    }
    return check_name_length(c, name);
}

/* `on NAME(x)`: x is what the caller binds as gradients. */
static void bind_param(Checker *c, const Stmt *s, Entry *e)
{
    if (s->nnames == 0) return;
    if (s->nnames > 1) REPORT(c, DIAG_ENTRY_PARAMS, s->names[1].span, s->name.text);
    Name name = s->names[0];
    if (!e->param) {
        e->param = symbol_new(c, SYM_GIVEN, name);
        e->param->given = GIVEN_G;
        e->param->rate = RATE_ELEMENT;
        e->param->dtype = e->param->storage = c->options->compute_f64 ? DT_F64 : DT_F32;
    }
    if (strcmp(name.text, "g") == 0 || check_new_name(c, name))
        scope_bind(c, c->x.scope, name, e->param, NULL);
}

static void entry_block(Checker *c, const Stmt *s)
{
    Context here = c->x;
    Block *out = c->out;
    Instance *inst = here.inst;
    Span g_read = inst->g_read;
    bool p_live = c->p_live;
    Entry nowhere = {.body = ARENA_NEW(c->arena, Block)}, *e = &nowhere;
    if (name_fits(c, s->name) && !c->x.dead) e = entry_named(c, s->name);
    c->x.scope = ARENA_NEW(c->arena, Scope);
    c->x.scope->parent = here.scope;
    c->x.guard = RATE_GLOBAL; /* it runs by itself, whatever holds around the use */
    c->x.in_when = c->x.in_repeat = c->x.in_entry = true;
    bind_param(c, s, e);
    c->out = e->body;
    check_block(c, s->body);
    c->x = here;
    c->out = out;
    c->p_live = p_live;
    inst->g_read = g_read;
}

void entry_points(Checker *c, const Block *b)
{
    for (size_t i = 0; i < b->n; i++)
        if (b->stmts[i]->kind == ST_ON) entry_block(c, b->stmts[i]);
}
