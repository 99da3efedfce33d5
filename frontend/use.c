/* use.c - puts transforms and rules in place: a use becomes a block of its own, its states and
 * hyperparameters under the use path.
 *
 * A gradient or apply transform acts where its `use` stands, a direction transform right after the
 * `direction` statement (of each arm, where arms have their own). A rule stands inside of another by
 * name, or as a parameter of the other (`inner: rule`); its writes to g are its own. The block of an
 * application passes through a wrapper to the rules that it takes.
 *
 *     use clip(1, 0)                      ->  SCOPE "clip" { LET n = norm[all](g); … }, hyper
 *                                             "lamb.clip.limit"
 *     lookahead(adamw(lr = 1e-4), k = 5)  ->  lookahead's body, at `use inner` SCOPE "adamw" { … },
 *                                             state "lookahead.adamw.m"
 */
#include "check.h"
#include <string.h>

/* What is put in place. */
typedef struct Used {
    const Stmt *use; /* as parsed; NULL: none */
    Item *item;
    Name segment; /* of the use path */
    Span span;
    Expr **args;
    const Name *arg_names;
    int nargs;
    Context at;        /* where the arguments were written */
    const Uses *added; /* passed on to it */
} Used;

static const char *stage_name(Stage s)
{
    return s == STAGE_GRADIENT ? "gradient" : s == STAGE_DIRECTION ? "direction" : "apply";
}

static const char *item_what(const Item *i)
{
    switch (i->kind) {
    case IT_TRANSFORM: return "a transform";
    case IT_SCALER: return "a scaler";
    case IT_ACCUMULATOR: return "an accumulator";
    case IT_RECIPE: return "a recipe";
    default: return "an optimizer";
    }
}

/* ---- what a name stands for ----------------------------------------------------------------- */

static Diag *suggest_items(Checker *c, Diag *d, ItemKind kind, const char *word)
{
    Words w = {0};
    for (size_t i = 0; i < c->ast->n; i++)
        if (c->ast->items[i]->kind == kind) check_word(c, &w, c->ast->items[i]->name.text);
    for (size_t i = 0; i < stdlib_count(); i++) check_word(c, &w, stdlib_name(i));
    check_did_you_mean(c, d, word, &w);
    size_t len;
    if (stdlib_text(word, &len))
        diag_hint(c->diags, d, "import \"%s.opt\" at the top of the file", word);
    return d;
}

/* The transform or rule of this name that may be used here; NULL: reported, or not known for a
 * reason that was reported. */
static Item *find_used(Checker *c, Name name)
{
    if (name_lost(name)) return NULL;
    const Item *around = c->x.inst->item;
    Item *item = expand_find(c, false, name.text);
    if (item ? item->broken : c->imports_failed || check_may_be_lost(c, name, true)) return NULL;
    if (!item) {
        const char *what = around->kind == IT_OPTIMIZER ? "transform or optimizer" : "transform";
        Diag *d = REPORT(c, DIAG_UNKNOWN_TRANSFORM, name.span, what, name.text);
        if (diag_is_kept(d)) suggest_items(c, d, IT_TRANSFORM, name.text);
        return NULL;
    }
    bool rule = item->kind == IT_OPTIMIZER && around->kind == IT_OPTIMIZER;
    if (item->kind != IT_TRANSFORM && !rule) {
        REPORT(c, DIAG_WRONG_KIND, name.span, name.text, item_what(item));
        return NULL;
    }
    if (around->kind == IT_TRANSFORM && item->stage != around->stage) {
        if (item->stage != STAGE_NONE && around->stage != STAGE_NONE)
            REPORT(c, DIAG_STAGE_HERE, name.span, stage_name(around->stage), item->name.text,
                   stage_name(item->stage));
        return NULL;
    }
    return item;
}

static Stage stage_of(const Checker *c, const Stmt *s)
{
    if (s->kind != ST_USE || name_lost(s->app->name)) return STAGE_NONE;
    const Item *item = expand_find(c, false, s->app->name.text);
    return item && item->kind == IT_TRANSFORM && !item->broken ? item->stage : STAGE_NONE;
}

static RuleArg *find_rule(const Instance *inst, const char *name)
{
    for (RuleArg *r = inst->rules; r; r = r->next)
        if (r->param->name.text == name) return r; /* interned */
    return NULL;
}

static void rule_missing(Checker *c, const RuleArg *r)
{
    const Item *wrapper = c->x.inst->item;
    Diag *d =
        REPORT(c, DIAG_ARG_MISSING, r->param->name.span, r->param->name.text, wrapper->name.text);
    diag_hint(c->diags, d, "say which rule: --rule '%s(adamw)'", wrapper->name.text);
}

/* The rule that a parameter stands for; false: reported, or nothing is known of it. */
static bool resolve_rule(Checker *c, const RuleArg *r, Used *out)
{
    const Expr *e = r->value;
    out->at = r->at;
    out->added = r->added;
    for (int turns = 0; e && e->kind == EX_NAME; turns++) { /* a parameter handed on */
        const RuleArg *outer = find_rule(out->at.inst, e->name.text);
        if (!outer) break;
        if (turns > 64) {
            REPORT(c, DIAG_RECURSION, r->param->name.span, r->param->name.text);
            return false;
        }
        e = outer->value;
        out->at = outer->at;
        out->added = outer->added;
    }
    if (!e) {
        if (c->wanted || c->x.inst->parent) rule_missing(c, r);
        return false;
    }
    if (e->kind == EX_BAD) return false;
    if (e->kind != EX_NAME && e->kind != EX_CALL) {
        Diag *d = REPORT(c, DIAG_NOT_A_RULE, e->span, r->param->name.text, "a value");
        diag_hint(c->diags, d, "write the rule's name, with its hyperparameters: adamw(lr = 1e-3)");
        return false;
    }
    out->item = expand_find(c, false, e->name.text);
    if (!out->item) {
        if (c->imports_failed || name_lost(e->name) || check_may_be_lost(c, e->name, true))
            return false;
        Diag *d = REPORT(c, DIAG_UNKNOWN_RULE, e->name.span, e->name.text);
        if (diag_is_kept(d)) suggest_items(c, d, IT_OPTIMIZER, e->name.text);
        return false;
    }
    if (out->item->kind != IT_OPTIMIZER) {
        REPORT(c, DIAG_NOT_A_RULE, e->name.span, r->param->name.text, item_what(out->item));
        return false;
    }
    if (out->item->broken) return false;
    out->segment = e->name;
    out->span = e->span;
    out->args = e->args;
    out->arg_names = e->arg_names;
    out->nargs = e->nargs;
    return true;
}

/* ---- putting in place ----------------------------------------------------------------------- */

/* The use path's own part; two uses under one name are refused. */
static bool claim_path(Checker *c, const Used *u)
{
    Instance *inst = c->x.inst;
    if (c->x.dead) return true;
    for (struct UsedPath *p = inst->used; p; p = p->next) {
        if (p->name != u->segment.text || !arms_meet(p->arm, c->x.arm)) continue;
        Diag *d = REPORT(c, DIAG_USE_TWICE, u->segment.span, u->segment.text);
        diag_note(c->diags, d, p->span, "used here");
        diag_hint(c->diags, d, "label one of them: 'use %s(…) as %s2'", u->item->name.text,
                  u->item->name.text);
        return false;
    }
    struct UsedPath *p = ARENA_NEW(c->arena, struct UsedPath);
    *p = (struct UsedPath){inst->used, u->segment.text, u->segment.span, c->x.arm};
    inst->used = p;
    return true;
}

/* Whether a use by name would go round in a circle. */
static bool uses_itself(Checker *c, const Item *item, Span at)
{
    for (const Instance *i = c->x.inst; i; i = i->parent) {
        if (i->item != item) continue;
        REPORT(c, DIAG_RECURSION, at, item->name.text);
        return true;
    }
    return false;
}

static struct Placed *find_placed(const Instance *inst, const Stmt *use)
{
    for (struct Placed *p = inst->placed; p; p = p->next)
        if (p->use == use) return p;
    return NULL;
}

static bool takes_rules(const Item *item)
{
    for (size_t i = 0; i < item->nparams; i++)
        if (decl_is_rule(&item->params[i])) return true;
    return false;
}

/* Uses inside of uses recurse. */
static bool is_too_deep(Checker *c, Span at)
{
    int depth = 0;
    for (const Instance *i = c->x.inst; i; i = i->parent) depth++;
    if (depth < CHECK_MAX_USES) return false;
    REPORT(c, DIAG_USES_DEEP, at, (int)CHECK_MAX_USES);
    c->murky = true;
    return true;
}

/* A transform that rewrites g acts too late for what the rule above it has read. */
static void warn_late(Checker *c, const Used *u)
{
    const Instance *inst = c->x.inst;
    bool rewrites = u->item->stage == STAGE_GRADIENT && inst->item->kind == IT_OPTIMIZER;
    if (!rewrites || inst->g_read.end == 0 || c->x.dead) return;
    Diag *d = REPORT(c, DIAG_G_AFTER_READ, u->span);
    diag_note(c->diags, d, inst->g_read, "read here");
    diag_hint(c->diags, d, "transforms of the gradient stand above what reads it");
}

/* g is what it was before the rule inside. */
static void restore_g(Checker *c, Symbol *before, Span at)
{
    Stmt *out = stmt_new(c, ST_WRITE, at);
    out->name = (Name){c->rule->g->name, at};
    out->sym = c->rule->g;
    out->wop = W_SET;
    out->value = expr_of_symbol(c, before, at);
    stmt_emit(c, out);
}

static void place(Checker *c, const Used *u)
{
    struct Placed *before = u->use ? find_placed(c->x.inst, u->use) : NULL;
    bool again = before && before->inst;
    if (is_too_deep(c, u->span) || (!again && !claim_path(c, u))) return;
    warn_late(c, u);
    Instance *inst = ARENA_NEW(c->arena, Instance);
    UseArgs args = {expand_args(c, u->item, u->span, u->args, u->arg_names, u->nargs), u->at};
    Context here = c->x;
    Block *out = c->out;
    bool rule = u->item->kind == IT_OPTIMIZER;
    Symbol *g = rule ? stmt_let(c, ST_LET, (Name){"g", u->span},
                                expr_of_symbol(c, c->rule->g, u->span), u->span)
                     : NULL;
    Stmt *scope = stmt_new(c, ST_SCOPE, u->span);
    scope->name = u->segment;
    scope->body = c->out = ARENA_NEW(c->arena, Block);
    inst->parent = here.inst;
    inst->item = u->item;
    inst->path = arena_printf(c->arena, "%s.%s", here.inst->path, u->segment.text);
    inst->added = u->added;
    inst->adds_inside = takes_rules(u->item);
    if (u->item->stage == STAGE_DIRECTION) inst->direction = here.inst->direction;
    if (again) inst->first = before->inst;
    if (before && !before->inst && !c->x.dead) before->inst = inst;
    if (u->use && !before) {
        struct Placed *p = ARENA_NEW(c->arena, struct Placed);
        *p = (struct Placed){here.inst->placed, u->use, c->x.dead ? NULL : inst};
        here.inst->placed = p;
    }
    c->x.inst = inst;
    c->x.placing = false;
    check_instance(c, u->item, &args);
    c->x = here;
    c->out = out;
    stmt_emit(c, scope);
    if (g) restore_g(c, g, u->span);
}

/* `use inner`: the rule that was given. */
static void use_rule(Checker *c, const Stmt *s, const RuleArg *r)
{
    const App *app = s->app;
    if (app->args || app->nargs)
        REPORT(c, DIAG_FN_ARGS, app->span, app->name.text, 0, "s", app->nargs);
    Used u = {0};
    if (!resolve_rule(c, r, &u)) {
        /* What it would do is not known: it may write all that a rule can. */
        c->rule->p->written = c->p_live = true;
        return;
    }
    if (s->name.text) u.segment = s->name;
    place(c, &u);
}

static Used used_as(const Stmt *s, Item *item, Context at)
{
    const App *app = s->app;
    return (Used){.use = item->stage == STAGE_DIRECTION ? s : NULL,
                  .item = item,
                  .segment = s->name.text ? s->name : app->name,
                  .span = app->span,
                  .args = app->args,
                  .arg_names = app->arg_names,
                  .nargs = app->nargs,
                  .at = at};
}

void use_stmt(Checker *c, const Stmt *s)
{
    Name name = s->app->name;
    Instance *inst = c->x.inst;
    if (c->x.in_entry || c->x.in_init) {
        REPORT(c, DIAG_DECL_PLACE, s->span, "'use'");
        return;
    }
    const RuleArg *rule = find_rule(inst, name.text);
    if (rule) {
        use_rule(c, s, rule);
        return;
    }
    bool behind = inst->item->kind == IT_OPTIMIZER && stage_of(c, s) == STAGE_DIRECTION;
    if (behind && !c->x.placing) return; /* use_directions puts it behind the direction */
    Item *item = find_used(c, name);
    if (!item) {
        c->murky = true;
        return;
    }
    if (uses_itself(c, item, name.span)) return;
    Context at = c->x;
    at.scope = inst->scope;
    Used u = used_as(s, item, at);
    place(c, &u);
}

/* ---- transforms of the direction ------------------------------------------------------------ */

/* What of a block is about the direction: uses of its transforms, under their conditions; NULL if
 * nothing is. */
static Block *about_direction(Checker *c, const Block *b);

static Stmt *stmt_about_direction(Checker *c, const Stmt *s)
{
    if (stage_of(c, s) == STAGE_DIRECTION) return (Stmt *)s;
    if (s->kind != ST_WHEN) return NULL;
    Block *then = about_direction(c, s->body), *otherwise = about_direction(c, s->else_body);
    if (!then && !otherwise) return NULL;
    Stmt *copy = ARENA_NEW(c->arena, Stmt);
    *copy = *s;
    copy->body = then ? then : ARENA_NEW(c->arena, Block);
    copy->else_body = otherwise;
    return copy;
}

static Block *about_direction(Checker *c, const Block *b)
{
    Block *out = NULL;
    for (size_t i = 0; b && i < b->n; i++) {
        Stmt *s = stmt_about_direction(c, b->stmts[i]);
        if (!s) continue;
        if (!out) out = ARENA_NEW(c->arena, Block);
        ARENA_PUSH(c->arena, out->stmts, out->n, out->cap, s);
    }
    return out;
}

/* Whether the direction stands inside of the statement. */
static bool is_around(const struct BlockChain *chain, const Stmt *s)
{
    for (; chain; chain = chain->up)
        if (chain->block == s->body || chain->block == s->else_body) return true;
    return false;
}

static void place_directions(Checker *c, const struct BlockChain *chain,
                             const struct BlockChain *all)
{
    if (!chain) return;
    place_directions(c, chain->up, all);
    for (size_t i = 0; i < chain->block->n; i++) {
        const Stmt *s = chain->block->stmts[i];
        if ((s->body || s->else_body) && is_around(all, s)) continue;
        Stmt *about = stmt_about_direction(c, s);
        if (about) check_stmt(c, about);
    }
}

void use_directions(Checker *c)
{
    bool placing = c->x.placing;
    c->x.placing = true;
    place_directions(c, c->x.blocks, c->x.blocks);
    c->x.placing = placing;
    use_added(c, STAGE_DIRECTION);
}

static void require_placed(Checker *c, const Stmt *s)
{
    const Instance *inst = c->x.inst;
    if (stage_of(c, s) != STAGE_DIRECTION || find_placed(inst, s)) return;
    Diag *d =
        REPORT(c, DIAG_NO_DIRECTION, s->app->name.span, s->app->name.text, inst->item->name.text);
    diag_hint(c->diags, d,
              takes_rules(inst->item)
                  ? "it may stand in the application: '%s(…) { use %s }', for the rule inside"
                  : "name the update in '%s': 'direction u = …', then 'p -= lr * u'",
              inst->item->name.text, s->app->name.text);
}

static void require_block(Checker *c, const Block *b)
{
    for (size_t i = 0; b && i < b->n; i++) {
        if (b->stmts[i]->kind == ST_ON || b->stmts[i]->kind == ST_INIT) continue;
        require_placed(c, b->stmts[i]);
        if (b->stmts[i]->body) require_block(c, b->stmts[i]->body);
        if (b->stmts[i]->else_body) require_block(c, b->stmts[i]->else_body);
    }
}

void use_check_placed(Checker *c)
{
    const Instance *inst = c->x.inst;
    if (inst->item->kind != IT_OPTIMIZER || inst->item->broken) return;
    require_block(c, inst->item->body);
    if (!inst->added || inst->adds_inside) return;
    for (size_t i = 0; i < inst->added->block->n; i++)
        require_placed(c, inst->added->block->stmts[i]);
}

/* ---- applications --------------------------------------------------------------------------- */

void use_added(Checker *c, Stage stage)
{
    const Instance *inst = c->x.inst;
    if (!inst->added || inst->adds_inside) return;
    const Block *b = inst->added->block;
    for (size_t i = 0; i < b->n; i++) {
        if (stage_of(c, b->stmts[i]) != stage) continue;
        Item *item = expand_find(c, false, b->stmts[i]->app->name.text);
        Used u = used_as(b->stmts[i], item, inst->added->at);
        place(c, &u);
    }
}

/* An application's block holds uses of transforms. */
static void check_added(Checker *c, const Block *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const Stmt *s = b->stmts[i];
        if (s->kind != ST_USE) {
            REPORT(c, DIAG_ONLY_USE, s->span);
            continue;
        }
        const Item *item = find_used(c, s->app->name);
        if (item && item->kind != IT_TRANSFORM)
            REPORT(c, DIAG_WRONG_KIND, s->app->name.span, s->app->name.text, item_what(item));
    }
}

void use_application(Checker *c, Instance *inst, UseArgs *args)
{
    const App *app = c->ast->app;
    Instance *outside = ARENA_NEW(c->arena, Instance);
    *outside = (Instance){.item = inst->item, .path = inst->path};
    outside->scope = ARENA_NEW(c->arena, Scope);
    args->at = (Context){.inst = outside, .scope = outside->scope};
    Context here = c->x;
    c->x = args->at;
    args->values = expand_args(c, inst->item, app->span, app->args, app->arg_names, app->nargs);
    if (c->ast->app_uses) {
        check_added(c, c->ast->app_uses);
        Uses *added = ARENA_NEW(c->arena, Uses);
        *added = (Uses){c->ast->app_uses, args->at};
        inst->added = added;
        inst->adds_inside = takes_rules(inst->item);
    }
    c->x = here;
}
