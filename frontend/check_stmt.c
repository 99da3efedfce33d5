/* check_stmt.c - statements: what is bound, written and exported, and under which conditions.
 *
 * Requires a context inside an Instance; ensures checked statements in c->out. A condition becomes
 * a name of its own before its `when`; names that both branches bind become one after it; a
 * constant condition leaves one branch.
 *
 *     when c { n = 1 } else { n = 2 }  ->  LET when = c;  WHEN when { LET n = 1 } else { LET n = 2
 * } LET n = when ? n : n p -= lr * u                      ->  WRITE p := SUB(p, MUL(lr, u))
 */
#include "check.h"
#include <string.h>

Stmt *stmt_new(Checker *c, StmtKind kind, Span span)
{
    Stmt *s = ARENA_NEW(c->arena, Stmt);
    s->kind = kind;
    s->span = span;
    check_budget(c);
    return s;
}

void stmt_emit(Checker *c, Stmt *s)
{
    ARENA_PUSH(c->arena, c->out->stmts, c->out->n, c->out->cap, s);
}

bool check_rates(Checker *c, Span at, const char *what, Rate rate, const Symbol *into)
{
    if (rate_within(rate, into->rate)) return true;
    const char *target = into->kind == SYM_STATE ? arena_printf(c->arena, "state '%s'", into->name)
                         : into->kind == SYM_EXPORT
                             ? arena_printf(c->arena, "export '%s'", into->name)
                             : symbol_what(into);
    Diag *d = REPORT(c, DIAG_NARROW, at, what, rate_name(rate), target, rate_name(into->rate));
    bool over = !rate_is_scalar(rate) && rate_within(into->rate, rate);
    if (over && rate_is_scalar(into->rate))
        diag_hint(c->diags, d, "reduce it: mean(…), norm(…), max(…)%s",
                  into->rate == RATE_GLOBAL  ? " over [all]"
                  : into->rate == RATE_GROUP ? " over [group]"
                                             : "");
    else if (over)
        diag_hint(c->diags, d, "reduce it: mean[%s](…), norm[%s](…)", rate_name(into->rate),
                  rate_name(into->rate));
    else
        diag_hint(c->diags, d,
                  into->rate == RATE_GLOBAL
                      ? "reduce it over [all], or declare what it uses ': global'"
                      : "declare it with a finer rate");
    return false;
}

/* ---- names bound by statements -------------------------------------------------------------- */

Symbol *stmt_let(Checker *c, StmtKind kind, Name name, Expr *value, Span span)
{
    Symbol *s = symbol_new(c, kind == ST_DIRECTION ? SYM_DIRECTION : SYM_LET, name);
    bool bad = expr_bad(value);
    s->rate = kind == ST_DIRECTION ? RATE_ELEMENT : value->rate;
    s->dtype = s->storage = bad ? DT_COUNT : value->dtype;
    if (kind == ST_DIRECTION && !bad) s->dtype = c->options->compute_f64 ? DT_F64 : DT_F32;
    s->value = value;
    s->is_const = kind == ST_LET && value->is_const;
    s->cval = value->cval;
    if (bad) return s;
    Stmt *out = stmt_new(c, kind, span);
    out->name = name;
    out->sym = s;
    out->value = value;
    stmt_emit(c, out);
    return s;
}

/* `m = …` where m is something that is written, not named. */
static bool is_assignment(Checker *c, Name name)
{
    Symbol *s = check_lookup(c, name);
    bool writable = s && (s->kind == SYM_STATE || s->kind == SYM_DIRECTION ||
                          (s->kind == SYM_GIVEN && (s->given == GIVEN_G || s->given == GIVEN_P)));
    if (!writable || symbol_left_out(s)) return false;
    Diag *d = REPORT(c, DIAG_ASSIGN_TARGET, name.span, name.text, symbol_what(s));
    diag_hint(c->diags, d, "write '%s := …'", name.text);
    s->written = true;
    if (s == c->rule->p) c->p_live = true;
    return true;
}

static void check_let(Checker *c, const Stmt *s)
{
    Expr *value = check_expr(c, s->value);
    if (is_assignment(c, s->name) || !check_new_name(c, s->name)) return;
    scope_bind(c, c->x.scope, s->name, stmt_let(c, ST_LET, s->name, value, s->span), NULL);
}

/* Transforms of the direction act right behind it. */
static void check_direction(Checker *c, const Stmt *s)
{
    Expr *value = check_number(c, s->value);
    Instance *inst = c->x.inst;
    if (inst->item->kind != IT_OPTIMIZER) {
        Diag *d = REPORT(c, DIAG_DIRECTION_HERE, s->span);
        diag_hint(c->diags, d, "a transform of stage direction writes 'u := …'");
        return;
    }
    if (c->x.in_repeat) {
        REPORT(c, DIAG_DECL_PLACE, s->name.span, "a direction");
        return;
    }
    if (inst->direction) {
        Diag *d = REPORT(c, DIAG_DIRECTION_TWICE, s->name.span);
        diag_note(c->diags, d, inst->direction->span, "the first one");
        return;
    }
    if (is_assignment(c, s->name) || !check_new_name(c, s->name)) return;
    inst->direction = stmt_let(c, ST_DIRECTION, s->name, value, s->span);
    scope_bind(c, c->x.scope, s->name, inst->direction, NULL);
    use_directions(c);
}

static Symbol *find_export(const Checker *c, const char *name)
{
    for (size_t i = 0; i < c->rule->nexports; i++)
        if (strcmp(c->rule->exports[i]->name, name) == 0) return c->rule->exports[i];
    return NULL;
}

/* The name of an export; a transform's is preceded by its use path where it would be the second. */
static const char *export_name(Checker *c, const char *name)
{
    if (!c->x.inst->parent || !find_export(c, name)) return name;
    return arena_printf(c->arena, "%s.%s", c->x.inst->path + strlen(c->rule->name) + 1, name);
}

static void add_export(Checker *c, const Stmt *s, Name name, Name alias, Expr *value)
{
    alias.text = export_name(c, alias.text);
    const Symbol *before = find_export(c, alias.text);
    if (before && !c->x.dead) {
        Diag *d =
            REPORT(c, DIAG_DUPLICATE, alias.span, arena_printf(c->arena, "export %s", alias.text));
        diag_note(c->diags, d, before->span, "declared here");
        diag_hint(c->diags, d, "give it another name: 'export %s as …'", name.text);
        return;
    }
    Symbol *e = symbol_new(c, SYM_EXPORT, alias);
    e->path = alias.text;
    /* Under a condition it has a value where that holds, and is NaN elsewhere. */
    e->rate = rate_join(value->rate, c->x.guard);
    if (c->x.arm) e->rate = rate_join(e->rate, RATE_TENSOR); /* NaN for tensors of other shapes */
    if (rate_is_elementwise(e->rate)) e->rate = RATE_TENSOR;
    e->dtype = e->storage = DT_F64;
    e->value = value;
    const char *what = arena_printf(c->arena, "'%s'", name.text);
    if (!check_rates(c, name.span, what, value->rate, e)) return;
    if (c->x.dead) return; /* a use that is not there */
    if (!check_name_length(c, alias) || !check_slots(c, 1)) return;
    ARENA_PUSH(c->arena, c->rule->exports, c->rule->nexports, c->exports_cap, e);
    Stmt *out = stmt_new(c, ST_EXPORT, s->span);
    out->name = alias;
    out->sym = e;
    out->value = value;
    stmt_emit(c, out);
}

static void check_export(Checker *c, const Stmt *s)
{
    if (c->x.in_when) {
        REPORT(c, DIAG_DECL_PLACE, s->span, "'export'");
        return;
    }
    for (size_t i = 0; i < s->nnames; i++) {
        Name alias = s->aliases && s->aliases[i].text ? s->aliases[i] : s->names[i];
        Expr name = {.kind = EX_NAME, .span = s->names[i].span, .name = s->names[i]};
        Expr *value = check_expr(c, &name);
        if (!expr_bad(value)) add_export(c, s, s->names[i], alias, value);
    }
}

/* ---- writes --------------------------------------------------------------------------------- */

/* The symbol that a write goes to; NULL and a message where there is none. */
static Symbol *write_target(Checker *c, const Stmt *s)
{
    if (name_lost(s->name)) return NULL;
    Symbol *t = check_lookup(c, s->name);
    Binding *b = scope_find(c->x.scope, s->name.text);
    if (!t && !b) {
        check_unknown_name(
            c, s->name,
            "a new name is bound with '='; a value kept from step to step is a 'state'");
        return NULL;
    }
    bool given = t && t->kind == SYM_GIVEN;
    bool ok = t && (t->kind == SYM_STATE || t->kind == SYM_DIRECTION ||
                    (given && (t->given == GIVEN_G || t->given == GIVEN_P)));
    Stage stage = c->x.inst->item->stage;
    if (ok && c->x.in_entry && t->kind == SYM_GIVEN && t->given == GIVEN_G) ok = false;
    bool own = stage == STAGE_NONE || (t && t->kind == SYM_STATE) ||
               t == (stage == STAGE_GRADIENT    ? c->rule->g
                     : stage == STAGE_DIRECTION ? c->x.inst->direction
                                                : c->rule->p);
    if (ok && own) return t;
    Diag *d =
        REPORT(c, DIAG_NOT_WRITABLE, s->name.span, s->name.text, t ? symbol_what(t) : "no state");
    diag_hint(c->diags, d, "%s",
              !ok                        ? "states, p, g and the direction can be written; make it "
                                           "a 'state'"
              : stage == STAGE_GRADIENT  ? "a gradient transform writes g"
              : stage == STAGE_DIRECTION ? "a direction transform writes u"
                                         : "an apply transform writes p");
    return NULL;
}

static void note_write(Checker *c, Symbol *t, const Stmt *s)
{
    t->written = true;
    if (t == c->rule->p && !c->x.dead) c->p_live = true;
    Instance *inst = c->x.inst;
    bool warns = inst->item->kind == IT_OPTIMIZER && inst->g_read.end != 0 && !c->x.dead;
    if (t != c->rule->g || !warns) return;
    Diag *d = REPORT(c, DIAG_G_AFTER_READ, s->span);
    diag_note(c->diags, d, inst->g_read, "read here");
    diag_hint(c->diags, d, "write g first");
}

void stmt_write(Checker *c, const Stmt *s, Symbol *t, Expr *value)
{
    static const Op ops[] = {
        [W_ADD] = OP_ADD, [W_SUB] = OP_SUB, [W_MUL] = OP_MUL, [W_DIV] = OP_DIV};
    note_write(c, t, s);
    if (t->dtype == DT_COUNT || expr_bad(value)) return;
    if (s->wop != W_SET) {
        Expr *old = expr_of_symbol(c, t, s->name.span);
        value = expr_op(c, ops[s->wop], s->span, old, value, NULL);
    }
    if (expr_bad(value) || !check_rates(c, s->value->span, "this value", value->rate, t)) return;
    if (c->x.in_init && !rate_within(RATE_TENSOR, t->rate)) {
        Diag *d = REPORT(c, DIAG_INIT_RATE, s->span, t->name, rate_name(t->rate));
        diag_hint(c->diags, d, "write 'when s == 0 { … }'");
        return;
    }
    if (c->x.arm && t->kind == SYM_STATE && rate_within(t->rate, RATE_GROUP)) {
        Diag *d = REPORT(c, DIAG_ARM_WRITE, s->span, t->name, rate_name(t->rate));
        diag_hint(c->diags, d,
                  "reduce over [all] or [group] what every arm binds, and write it after them");
        return;
    }
    if (!check_rates(c, s->name.span, "the condition of this write", c->x.guard, t)) return;
    Stmt *out = stmt_new(c, ST_WRITE, s->span);
    out->name = s->name;
    out->sym = t;
    out->wop = W_SET;
    out->value = value;
    stmt_emit(c, out);
}

static void check_write(Checker *c, const Stmt *s)
{
    if (s->index) {
        array_write(c, s);
        return;
    }
    Symbol *t = write_target(c, s);
    c->x.writing = t;
    Expr *value = check_number(c, s->value);
    c->x.writing = NULL;
    if (t) stmt_write(c, s, t, value);
}

/* ---- when ----------------------------------------------------------------------------------- */

/* Checks one branch into a block of its own; returns its names. */
static Scope *check_branch(Checker *c, const Block *body, Block *out, bool dead)
{
    Context here = c->x;
    Block *before = c->out;
    Instance *inst = here.inst;
    Symbol *direction = inst->direction;
    Span g_read = inst->g_read;
    Scope *scope = ARENA_NEW(c->arena, Scope);
    scope->parent = here.scope;
    c->x.scope = scope;
    c->x.in_when = true;
    c->x.dead = here.dead || dead;
    c->out = out;
    if (body) check_block(c, body);
    c->out = before;
    c->x = here;
    if (c->x.dead || dead) inst->g_read = g_read;
    if (inst->direction != direction) inst->arm_direction = inst->direction;
    inst->direction = direction; /* each branch may have its own */
    return scope;
}

/* A name that both branches bind: one value, chosen by the condition. */
static void join_names(Checker *c, Expr *cond, const Binding *then, const Binding *otherwise)
{
    Name name = {then->name, then->span};
    Symbol *taken = cond->cval != 0 ? then->sym : otherwise->sym;
    if (cond->is_const && taken->kind == SYM_DIRECTION) { /* still to be written */
        scope_bind(c, c->x.scope, name, taken, NULL);
        return;
    }
    Expr *a = expr_of_symbol(c, then->sym, then->span),
         *b = expr_of_symbol(c, otherwise->sym, otherwise->span);
    Expr *value = expr_new(c, EX_BAD, then->span);
    if (then->sym->dtype != DT_COUNT && otherwise->sym->dtype != DT_COUNT) {
        if (expr_truth(a) != expr_truth(b)) {
            Diag *d = REPORT(c, DIAG_ARMS_DIFFER, otherwise->span,
                             arena_printf(c->arena, "'%s'", name.text));
            diag_note(c->diags, d, then->span, "bound here, too");
        } else
            value = expr_cond(c, then->span, cond, a, b);
    }
    scope_bind(c, c->x.scope, name, stmt_let(c, ST_LET, name, value, then->span), NULL);
}

static void join_scopes(Checker *c, Expr *cond, const Scope *then, const Scope *otherwise)
{
    for (const Binding *b = then->bindings; b; b = b->next) {
        if (scope_local(then, b->name) != b) continue;
        const Binding *o = scope_local(otherwise, b->name);
        if (b->sym && o && o->sym)
            join_names(c, cond, b, o);
        else
            scope_bind(c, c->x.scope, (Name){b->name, b->span}, NULL, NULL);
    }
    for (const Binding *o = otherwise->bindings; o; o = o->next) {
        if (!scope_local(then, o->name))
            scope_bind(c, c->x.scope, (Name){o->name, o->span}, NULL, NULL);
    }
}

static void append(Checker *c, const Block *b)
{
    for (size_t i = 0; i < b->n; i++) stmt_emit(c, b->stmts[i]);
}

static void check_when(Checker *c, const Stmt *s)
{
    Expr *cond = check_condition(c, s->cond);
    if (!expr_bad(cond) && !rate_is_scalar(cond->rate)) {
        Diag *d = REPORT(c, DIAG_WHEN_RATE, s->cond->span, rate_name(cond->rate));
        diag_hint(c->diags, d, "choose per %s with '? :', or reduce it: any(…), all(…)",
                  rate_name(cond->rate));
        cond->kind = EX_BAD;
    }
    bool bad = expr_bad(cond), known = !bad && cond->is_const, taken = known && cond->cval != 0;
    if (!bad && !known) {
        Symbol *name = stmt_let(c, ST_LET, (Name){"when", s->cond->span}, cond, s->cond->span);
        cond = expr_of_symbol(c, name, s->cond->span);
    }
    Stmt *out = stmt_new(c, ST_WHEN, s->span);
    out->cond = cond;
    out->body = ARENA_NEW(c->arena, Block);
    Block *otherwise = ARENA_NEW(c->arena, Block);
    Rate guard = c->x.guard;
    if (!bad && !known) c->x.guard = rate_join(guard, cond->rate);
    Instance *inst = c->x.inst;
    Symbol *arms[2], *outer = inst->arm_direction;
    Span before = inst->g_read;
    inst->arm_direction = NULL;
    Scope *a = check_branch(c, s->body, out->body, known && !taken);
    arms[0] = inst->arm_direction;
    inst->arm_direction = NULL;
    Span read = inst->g_read;
    inst->g_read = before; /* one branch holds */
    Scope *b = check_branch(c, s->else_body, otherwise, known && taken);
    if (inst->g_read.end == 0) inst->g_read = read;
    arms[1] = inst->arm_direction;
    inst->arm_direction = outer;
    c->x.guard = guard;
    if (known) {
        append(c, taken ? out->body : otherwise);
    } else if (!bad) {
        if (otherwise->n) out->else_body = otherwise;
        stmt_emit(c, out);
    }
    join_scopes(c, cond, a, b);
    Symbol *direction = known ? arms[taken ? 0 : 1] : arms[0] ? arms[0] : arms[1];
    if (direction) inst->direction = direction;
}

/* ---- what has no meaning yet ---------------------------------------------------------------- */

/* Binds the names of a block that is left out, so that their later uses say nothing more. */
static void bind_broken(Checker *c, const Block *b);

static void bind_broken_name(Checker *c, Name name)
{
    Binding *before = scope_find(c->x.scope, name.text);
    if (before && (before->sym || before->value)) return;
    Symbol *s = symbol_new(c, SYM_STATE, name);
    s->dtype = DT_COUNT;
    s->info = ARENA_NEW(c->arena, CheckInfo);
    s->info->declared = true;
    s->info->status = INFO_DONE;
    scope_bind(c, c->x.scope, name, s, NULL);
}

static void bind_broken_stmt(Checker *c, const Stmt *s)
{
    for (size_t k = 0; k < s->ndecls; k++) bind_broken_name(c, s->decls[k].name);
    if (s->kind == ST_LET || s->kind == ST_DIRECTION) bind_broken_name(c, s->name);
    if (s->kind == ST_INPUT)
        for (size_t k = 0; k < s->nnames; k++) bind_broken_name(c, s->names[k]);
    if (s->body) bind_broken(c, s->body);
    if (s->else_body) bind_broken(c, s->else_body);
}

static void bind_broken(Checker *c, const Block *b)
{
    for (size_t i = 0; i < b->n; i++) bind_broken_stmt(c, b->stmts[i]);
}

static void leave_out(Checker *c, const Stmt *s, const char *what)
{
    check_unsupported(c, s->span, "%s", what);
    c->murky = true;
    bind_broken_stmt(c, s);
}

/* What was done where the block began. */
static void stands_above(Checker *c, const Stmt *s, const char *what)
{
    bool arm = c->x.arm && c->x.arm->inst == c->x.inst && s->kind != ST_INIT;
    if (!c->x.in_when && !arm) return;
    REPORT(c, DIAG_DECL_PLACE, s->span, what);
    if (s->kind == ST_INPUT) bind_broken_stmt(c, s);
}

void check_stmt(Checker *c, const Stmt *s)
{
    switch (s->kind) {
    case ST_HYPER:
    case ST_STATE:
        if (c->x.in_when) {
            REPORT(c, DIAG_DECL_PLACE, s->span, s->kind == ST_HYPER ? "'hyper'" : "'state'");
            bind_broken_stmt(c, s);
        }
        return;
    case ST_LET: check_let(c, s); return;
    case ST_WRITE: check_write(c, s); return;
    case ST_WHEN: check_when(c, s); return;
    case ST_USE: use_stmt(c, s); return;
    case ST_EXPORT: check_export(c, s); return;
    case ST_DIRECTION: check_direction(c, s); return;
    case ST_INPUT: stands_above(c, s, "'input'"); return;
    case ST_SKIP:
        diag_hint(c->diags, REPORT(c, DIAG_SKIP_PLACE, s->span),
                  "a rule guards its writes: 'when … { … }'");
        return;
    case ST_FAIL: leave_out(c, s, "'fail'"); return;
    case ST_INIT: stands_above(c, s, "'init'"); return;
    case ST_ON: stands_above(c, s, "'on'"); return;
    case ST_REPEAT: repeat_stmt(c, s); return;
    case ST_SHAPE: check_shape(c, s); return;
    case ST_SCOPE: return;
    }
}

void check_block(Checker *c, const Block *b)
{
    struct BlockChain chain = {c->x.blocks, b};
    c->x.blocks = &chain;
    for (size_t i = 0; i < b->n && !c->too_long; i++) check_stmt(c, b->stmts[i]);
    c->x.blocks = chain.up;
}

void check_instance(Checker *c, const Item *item, const UseArgs *args)
{
    Instance *inst = c->x.inst;
    inst->scope = c->x.scope = ARENA_NEW(c->arena, Scope);
    c->x.names = NAMES_ALL;
    c->x.in_when = c->x.in_repeat = false;
    c->x.blocks = NULL;
    if (item->stage == STAGE_DIRECTION)
        scope_bind(c, inst->scope, (Name){c->word_u, item->name.span}, inst->direction, NULL);
    c->x.in_init = c->x.in_entry = false;
    check_decls(c, item, args);
    entry_inputs(c, item->body);
    entry_points(c, item->body);
    use_added(c, STAGE_GRADIENT);
    check_initial_values(c, item->body);
    check_block(c, item->body);
    use_added(c, STAGE_APPLY);
    use_check_placed(c);
}
