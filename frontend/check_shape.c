/* check_shape.c - `shape`: which tensors a block is for, what rows and columns are there, and what
 * is known after it.
 *
 * Requires a context inside an Instance; ensures a checked ST_SHAPE whose condition is made of sizes
 * and constants. A name that both arms bind is bound once more at the end of each, under one symbol.
 *
 *     shape [.., r, c] { x = mean[row](g) } else { x = g }
 *  -> SHAPE { LET x' = mean[row](g); LET x = x' } else { LET x'' = g; LET x = x'' }
 */
#include "check.h"
#include <math.h>
#include <string.h>

/* ---- where one is --------------------------------------------------------------------------- */

bool arms_meet(const Arm *a, const Arm *b)
{
    for (const Arm *x = a; x; x = x->up)
        for (const Arm *y = b; y; y = y->up)
            if (x->shape == y->shape && x->taken != y->taken) return false;
    return true;
}

/* The arm whose names are the sizes here: the innermost one within this rule or transform. */
static const Arm *dims_here(const Checker *c)
{
    for (const Arm *a = c->x.arm; a; a = a->up)
        if (a->taken && a->inst == c->x.inst) return a;
    return NULL;
}

static void use_view(Checker *c, int view, Span at)
{
    static const char *const names[] = {[VIEWS_LAST] = "rows and columns of the last two axes",
                                        [VIEWS_FIRST] = "the first axis against the others",
                                        [VIEWS_BLOCKS] = "blocks"};
    if (c->x.dead) return;
    for (const ViewUse *u = c->views; u; u = u->next) {
        if (u->arm == c->x.arm && (int)u->view == view) return;
        if ((int)u->view == view || !arms_meet(u->arm, c->x.arm)) continue;
        Diag *d = REPORT(c, DIAG_VIEWS_MIXED, at, names[view], names[u->view]);
        diag_note(c->diags, d, u->at, "%s here", names[u->view]);
        break; /* said once for an arm */
    }
    ViewUse *u = ARENA_NEW(c->arena, ViewUse);
    *u = (ViewUse){.next = c->views, .arm = c->x.arm, .at = at};
    u->view = view;
    c->views = u;
}

bool check_in_arm(Checker *c, Span at, const char *what)
{
    const Arm *a = dims_here(c);
    if (a) {
        use_view(c, a->first ? VIEWS_FIRST : VIEWS_LAST, at);
        return true;
    }
    if (c->is_function) return true; /* said where it is called */
    Diag *d = REPORT(c, DIAG_OUTSIDE_ARM, at, what);
    diag_hint(c->diags, d, "tensors need not have rows: shape [.., r, c] { … } else { … }");
    return false;
}

Symbol *check_lead(Checker *c, Given given)
{
    if (given != GIVEN_ROWS && given != GIVEN_COLS) return NULL;
    const Arm *a = dims_here(c);
    if (!a || !a->first) return NULL;
    for (int i = 0; i < 2 && !c->lead[i]; i++) {
        Symbol *s = symbol_new(c, SYM_GIVEN, (Name){i ? "rest" : "first", {0, 0}});
        s->given = i ? GIVEN_REST : GIVEN_LEAD;
        s->rate = RATE_TENSOR;
        s->dtype = s->storage = DT_F64;
        c->lead[i] = s;
    }
    return c->lead[given == GIVEN_COLS];
}

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Whether a value depends on the tensor's shape, its name and constants alone. Trees share nodes: it
 * stops after *left of them. */
static bool of_sizes(const Expr *e, int *left)
{
    if (--*left < 0 || e->is_const || e->kind == EX_MATCH) return true;
    if (e->kind == EX_NAME && e->sym->kind == SYM_LET)
        return e->sym->value && of_sizes(e->sym->value, left);
    if (e->kind == EX_NAME) {
        Given g = e->sym->given;
        return e->sym->kind == SYM_GIVEN &&
               (g == GIVEN_ROWS || g == GIVEN_COLS || g == GIVEN_NUMEL || g == GIVEN_NDIM ||
                g == GIVEN_LEAD || g == GIVEN_REST);
    }
    bool yes = e->kind == EX_OP || e->kind == EX_COND;
    for (int i = 0; i < e->nargs; i++) yes = yes && of_sizes(e->args[i], left);
    return yes;
}

static bool require_sizes(Checker *c, const Expr *x, Span at, const char *what)
{
    int left = CHECK_MAX_SIZES;
    bool fits = of_sizes(x, &left);
    if (left < 0) {
        REPORT(c, DIAG_SIZES_LONG, at, what, (int)CHECK_MAX_SIZES);
        return false;
    }
    if (fits) return true;
    Diag *d = REPORT(c, DIAG_NOT_SIZES, at, what);
    diag_hint(c->diags, d,
              "sizes are rows, cols, numel, ndim and the names of 'shape'; "
              "hyperparameters need 'const'; the tensor's name may be asked for");
    return false;
}

bool check_block_size(Checker *c, const Expr *size, Span at)
{
    Expr *x = check_number(c, size);
    if (expr_bad(x) || !require_sizes(c, x, size->span, "the size of a block")) return false;
    if (x->is_const && !(x->cval >= 1 && x->cval == floor(x->cval) && x->cval <= 0x1p53)) {
        REPORT(c, DIAG_BLOCK_SIZE, size->span, x->cval);
        return false;
    }
    if (c->rule->block && !expr_same(x, c->rule->block)) {
        Diag *d = REPORT(c, DIAG_BLOCK_SIZES, size->span);
        diag_note(c->diags, d, c->block_at, "the first one");
        return false;
    }
    if (!c->rule->block) c->rule->block = x, c->block_at = size->span;
    use_view(c, VIEWS_BLOCKS, at);
    return true;
}

/* ---- the statement -------------------------------------------------------------------------- */

/* Binds the names of [.., r, c] or [r, ..] in the scope around the arm; false: it says neither. */
static bool bind_dims(Checker *c, const Stmt *s, bool first)
{
    size_t n = s->nnames, dots = first ? 1 : 0;
    bool ok = n == (first ? 2u : 3u) && strcmp(s->names[dots].text, "..") == 0;
    for (size_t i = 0, k = 0; i < n && ok; i++) {
        Name name = s->names[i];
        if (i == dots) continue;
        if (strcmp(name.text, "..") == 0 || (name.text[0] >= '0' && name.text[0] <= '9'))
            ok = false;
        Given given = k++ ? GIVEN_COLS : GIVEN_ROWS;
        Symbol *sym = first ? check_lead(c, given) : c->given[given];
        if (ok && check_new_name(c, name)) scope_bind(c, c->x.scope, name, sym, NULL);
    }
    if (ok) return true;
    Span at = n ? (Span){s->names[0].span.begin, s->names[n - 1].span.end} : s->span;
    Diag *d = REPORT(c, DIAG_SHAPE_DIMS, at);
    diag_hint(c->diags, d,
              "[.., r, c] for the last two axes, [r, ..] for the first against all others");
    return false;
}

/* Checks an arm into a block of its own; returns its names, and the direction that it binds. */
static Scope *check_arm(Checker *c, const Block *body, Block *out, const Arm *arm, bool dead,
                        Symbol **direction)
{
    Context here = c->x;
    Block *before = c->out;
    Symbol *outer = here.inst->direction;
    Scope *scope = ARENA_NEW(c->arena, Scope);
    scope->parent = here.scope;
    c->x.scope = scope;
    c->x.arm = arm;
    c->x.dead = here.dead || dead;
    c->out = out;
    if (body && !c->x.in_when) {
        check_block_decls(c, body);
        check_initial_values(c, body);
    }
    if (body) check_block(c, body);
    c->out = before;
    c->x = here;
    *direction = here.inst->direction == outer ? NULL : here.inst->direction;
    here.inst->direction = outer; /* each arm may have its own */
    return scope;
}

static void emit_joined(Checker *c, Block *out, Symbol *joined, Symbol *arm, Span span)
{
    Block *before = c->out;
    c->out = out;
    Stmt *s = stmt_new(c, joined->kind == SYM_DIRECTION ? ST_DIRECTION : ST_LET, span);
    s->name = (Name){joined->name, span};
    s->sym = joined;
    s->value = expr_of_symbol(c, arm, span);
    stmt_emit(c, s);
    c->out = before;
}

/* What both arms bind has the rates of both after them, or, where the first arm is taken by no
 * tensor (`never`), those of the second. */
static void join_arms(Checker *c, const Binding *a, const Binding *b, Block *const out[2],
                      bool never)
{
    Symbol *arms[2] = {a->sym, b->sym};
    bool direction = a->sym->kind == SYM_DIRECTION && b->sym->kind == SYM_DIRECTION;
    Symbol *s = symbol_new(c, direction ? SYM_DIRECTION : SYM_LET, (Name){a->name, a->span});
    s->info = ARENA_NEW(c->arena, CheckInfo);
    scope_bind(c, c->x.scope, (Name){a->name, a->span}, s, NULL);
    bool broken = a->sym->dtype == DT_COUNT || b->sym->dtype == DT_COUNT;
    bool truth = a->sym->dtype == DT_BOOL;
    if (!broken && truth != (b->sym->dtype == DT_BOOL)) {
        Diag *d = REPORT(c, DIAG_ARMS_DIFFER, b->span, arena_printf(c->arena, "'%s'", a->name));
        diag_note(c->diags, d, a->span, "bound here, too");
        broken = true;
    }
    s->rate = rate_join(RATE_TENSOR, rate_join(a->sym->rate, b->sym->rate)); /* shapes differ */
    if (never) s->rate = arms[1]->rate;
    if (direction) s->rate = RATE_ELEMENT;
    bool f32 = rate_is_elementwise(s->rate) && !c->options->compute_f64;
    s->dtype = s->storage = broken ? DT_COUNT : truth ? DT_BOOL : f32 ? DT_F32 : DT_F64;
    if (broken) return;
    for (int i = 0; i < 2; i++) {
        s->info->arms[i] = arms[i];
        emit_joined(c, out[i], s, arms[i], a->span);
    }
}

static void join_arm_scopes(Checker *c, const Scope *a, const Scope *b, Block *const out[2],
                            bool never)
{
    for (const Binding *x = a->bindings; x; x = x->next) {
        if (scope_local(a, x->name) != x) continue;
        const Binding *y = scope_local(b, x->name);
        bool array = x->sym && (x->sym->kind == SYM_ARRAY || x->sym->array);
        if (x->sym && y && y->sym && !array)
            join_arms(c, x, y, out, never);
        else
            scope_bind(c, c->x.scope, (Name){x->name, x->span}, NULL, NULL);
    }
    for (const Binding *y = b->bindings; y; y = y->next)
        if (!scope_local(a, y->name))
            scope_bind(c, c->x.scope, (Name){y->name, y->span}, NULL, NULL);
}

/* The condition behind `when`; *known: 1 it always holds, -1 never. NULL: none, or one that is
 * known. */
static Expr *shape_condition(Checker *c, const Stmt *s, int *known)
{
    if (!s->cond) return NULL;
    Expr *x = check_condition(c, s->cond);
    if (expr_bad(x) || !require_sizes(c, x, s->cond->span, "the condition of 'shape'")) return NULL;
    if (!x->is_const) return x;
    *known = x->cval != 0 ? 1 : -1;
    return NULL;
}

void check_shape(Checker *c, const Stmt *s)
{
    Context here = c->x;
    Instance *inst = here.inst;
    Span g_read = inst->g_read;
    Arm *arms = ARENA_ARRAY(c->arena, Arm, 2);
    for (int i = 0; i < 2; i++)
        arms[i] = (Arm){here.arm, inst, c->nshapes, i == 0, shape_of_first(s), s->span};
    c->nshapes++;
    c->x.scope = ARENA_NEW(c->arena, Scope);
    c->x.scope->parent = here.scope;
    c->x.arm = &arms[0];
    Stmt *out = stmt_new(c, ST_SHAPE, s->span);
    bool fits = bind_dims(c, s, arms[0].first);
    int known = 0;
    out->names = s->names;
    out->nnames = s->nnames;
    out->cond = shape_condition(c, s, &known);
    out->body = ARENA_NEW(c->arena, Block);
    out->else_body = ARENA_NEW(c->arena, Block);
    Symbol *directions[2];
    Scope *a = check_arm(c, s->body, out->body, &arms[0], known < 0, &directions[0]);
    Span read = known < 0 ? g_read : inst->g_read;
    inst->g_read = g_read; /* a tensor goes through one arm */
    c->x = here;
    Scope *b = check_arm(c, s->else_body, out->else_body, &arms[1], false, &directions[1]);
    if (inst->g_read.end == 0) inst->g_read = read;
    Block *const blocks[2] = {out->body, out->else_body};
    join_arm_scopes(c, a, b, blocks, known < 0);
    if (directions[0] || directions[1]) { /* a second one is a mistake; what both bind goes on */
        const Symbol *one = directions[0] ? directions[0] : directions[1];
        const Binding *joined = scope_local(c->x.scope, one->name);
        inst->direction = joined && joined->sym ? joined->sym : (Symbol *)one;
    }
    if (!fits) return;
    if (known >= 0)
        stmt_emit(c, out);
    else
        for (size_t i = 0; i < out->else_body->n; i++) stmt_emit(c, out->else_body->stmts[i]);
}
