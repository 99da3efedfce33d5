/* check_decl.c - hyperparameters and states: what is declared, with which rate, range, default and
 * initial value.
 *
 * Declarations of a block are seen everywhere in it. A hyperparameter's default is checked when it
 * is first needed, so that defaults may refer to each other in any order; program options (`-D
 * name=value`) make a hyperparameter constant.
 *
 *     hyper lr = 1e-3 in [0, inf)   ->   Symbol {"adamw.lr", value 1e-3, lo 0, hi inf, hi_open}
 *     -D lr=0.1                     ->   Symbol {"adamw.lr", is_const, cval 0.1}
 */
#include "check.h"
#include <math.h>
#include <string.h>

/* ---- program options ------------------------------------------------------------------------ */

/* Whether an option names the symbol: by its path, or by its path within the rule. */
static bool define_names(const Checker *c, const char *define, const Symbol *s)
{
    const char *eq = strchr(define, '=');
    size_t n = eq ? (size_t)(eq - define) : strlen(define);
    const char *inner = s->path + strlen(c->rule->name) + 1;
    return (strlen(inner) == n && memcmp(inner, define, n) == 0) ||
           (strlen(s->path) == n && memcmp(s->path, define, n) == 0);
}

/* The value that an option gives the symbol, if one does. */
static bool defined_value(Checker *c, const Symbol *s, double *out)
{
    bool found = false;
    for (size_t i = 0; i < c->options->ndefines; i++) {
        const char *text = c->options->defines[i], *eq = strchr(text, '=');
        if (!eq || !define_names(c, text, s)) continue;
        c->define_used[i] = true;
        const char *end = NULL;
        int error = 0;
        double v = number_parse(eq + 1, &end, &error);
        if (end == eq + 1 || *end || v != v || error)
            REPORT(c, DIAG_DEFINE_BAD, (Span){0, 0}, text, "write name=value, the value a number");
        else
            *out = v, found = true;
    }
    return found;
}

void check_defines(Checker *c)
{
    for (size_t i = 0; i < c->options->ndefines; i++) {
        const char *text = c->options->defines[i];
        if (c->define_used[i]) continue;
        const char *eq = strchr(text, '=');
        if (!eq) {
            REPORT(c, DIAG_DEFINE_BAD, (Span){0, 0}, text, "write name=value, the value a number");
            continue;
        }
        const char *name = arena_strndup(c->arena, text, (size_t)(eq - text));
        Words w = {0};
        for (size_t k = 0; k < c->ndeclared; k++)
            if (c->declared[k]->kind == SYM_HYPER)
                check_word(c, &w, c->declared[k]->path + strlen(c->rule->name) + 1);
        Diag *d = REPORT(c, DIAG_UNKNOWN_DEFINE, (Span){0, 0}, text, "optimizer", c->rule->name);
        check_did_you_mean(c, d, name, &w);
    }
}

/* ---- declaring ------------------------------------------------------------------------------ */

static void unknown_rate(Checker *c, Name rate)
{
    if (name_lost(rate)) return;
    static const char *const known[] = {"global", "group", "tensor", "matrix",
                                        "row",    "col",   "block",  "element"};
    Words w = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) check_word(c, &w, known[i]);
    check_did_you_mean(c, REPORT(c, DIAG_UNKNOWN_RATE, rate.span, rate.text), rate.text, &w);
}

/* What was declared under this path before: in an arm that goes together with the one around here.
 * (A state may be declared in either arm; a hyperparameter has one value for all.) */
static Symbol *declared_before(const Checker *c, SymKind kind, const char *path)
{
    for (size_t i = 0; i < c->ndeclared; i++) {
        Symbol *s = c->declared[i];
        bool apart = kind == SYM_STATE && !arms_meet(s->info->home.arm, c->x.arm);
        if (strcmp(s->path, path) == 0 && s->kind == kind && !apart) return s;
    }
    return NULL;
}

static Symbol *declare(Checker *c, SymKind kind, Decl *decl)
{
    Scope *scope = c->x.scope;
    const char *path = arena_printf(c->arena, "%s.%s", c->x.inst->path, decl->name.text);
    Binding *before = scope_find(scope, decl->name.text);
    const Instance *first = c->x.inst->first;
    Binding *same = first ? scope_find(first->scope, decl->name.text) : NULL;
    if (same && same->sym && same->sym->decl == decl) { /* the use stands in two arms */
        scope_bind(c, scope, decl->name, same->sym, NULL);
        return NULL;
    }
    Symbol *twin = NULL;
    if (before && !before->sym && !before->value) before = NULL; /* of an arm */
    if (!before && c->nshapes) twin = declared_before(c, kind, path);
    if (before || twin) {
        Diag *d = REPORT(c, DIAG_DUPLICATE, decl->name.span, decl->name.text);
        diag_note(c->diags, d, before ? before->span : twin->span, "declared here");
        if (twin) scope_bind(c, scope, decl->name, twin, NULL);
        return NULL;
    }
    bool fits =
        check_new_name(c, decl->name) && check_name_length(c, decl->name) && check_slots(c, 1);
    Symbol *s = symbol_new(c, kind, decl->name);
    s->path = path;
    s->decl = decl;
    s->info = ARENA_NEW(c->arena, CheckInfo);
    s->info->home = c->x;
    s->dtype = s->storage = fits ? DT_F64 : DT_COUNT;
    if (fits) scope_bind(c, scope, decl->name, s, NULL);
    return fits ? s : NULL;
}

bool decl_is_rule(const Decl *d)
{
    return d->rate.given && d->rate.rate.text && strcmp(d->rate.rate.text, "rule") == 0;
}

/* `inner: rule`: a name for `use`. */
static void declare_rule(Checker *c, Decl *decl, Expr *arg, const Context *at)
{
    Instance *inst = c->x.inst;
    if (inst->item->kind != IT_OPTIMIZER) {
        Diag *d = REPORT(c, DIAG_RATE_HERE, decl->rate.span, "a parameter of a transform", "rule");
        diag_hint(c->diags, d, "what takes a rule is an optimizer");
        return;
    }
    Symbol *s = declare(c, SYM_RULE, decl);
    if (!s) return;
    RuleArg *r = ARENA_NEW(c->arena, RuleArg), **tail = &inst->rules;
    *r = (RuleArg){.param = decl, .value = arg ? arg : decl->init, .at = arg ? *at : c->x};
    if (inst->adds_inside) r->added = inst->added;
    while (*tail) tail = &(*tail)->next;
    *tail = r;
}

/* A parameter of a transform that is used in several arms, with the default in all of them. */
static Symbol *same_in_arms(Checker *c, const Decl *decl, const Expr *arg)
{
    const char *path = arena_printf(c->arena, "%s.%s", c->x.inst->path, decl->name.text);
    Symbol *twin = c->x.arm && !arg ? declared_before(c, SYM_HYPER, path) : NULL;
    bool same = twin && twin->decl == decl && !twin->info->from_use;
    if (same) scope_bind(c, c->x.scope, decl->name, twin, NULL);
    return same ? twin : NULL;
}

static Symbol *declare_hyper(Checker *c, Decl *decl, Expr *arg, const Context *at)
{
    Symbol *same = same_in_arms(c, decl, arg);
    if (same) return same;
    Symbol *s = declare(c, SYM_HYPER, decl);
    if (!s) return NULL;
    s->rate = RATE_GROUP;
    bool fits = true;
    if (decl->rate.given) {
        const char *rate = decl->rate.rate.text;
        Rate r;
        if (decl_is_rule(decl)) {
            Diag *d = REPORT(c, DIAG_RATE_HERE, decl->rate.span, "a hyperparameter", rate);
            diag_hint(c->diags, d, "rules are parameters: 'optimizer outer(inner: rule)'");
            fits = false;
        } else if (!rate_parse(rate, &r))
            unknown_rate(c, decl->rate.rate), fits = false;
        else if (r != RATE_GLOBAL && r != RATE_GROUP) {
            Diag *d = REPORT(c, DIAG_RATE_HERE, decl->rate.span, "a hyperparameter", rate);
            diag_hint(c->diags, d, "one value per group, or ': global' for one value in all");
            fits = false;
        } else
            s->rate = r;
        if (decl->rate.format.text)
            REPORT(c, DIAG_FORMAT_HERE, decl->rate.format.span, decl->rate.format.text);
    }
    s->info->source = arg ? arg : decl->init;
    s->info->from_use = arg != NULL;
    s->info->at = arg ? *at : c->x;
    s->info->at.names = NAMES_HYPER;
    if (!fits) s->dtype = DT_COUNT, s->info->status = INFO_DONE, c->murky = true;
    ARENA_PUSH(c->arena, c->declared, c->ndeclared, c->declared_cap, s);
    return s;
}

/* Whether a state of the written rate may stand here. */
static bool rate_fits(Checker *c, const RateAst *ast, Rate rate)
{
    const char *what = arena_printf(c->arena, "a state of rate '%s'", ast->rate.text);
    if (rate_is_element(rate)) return true;
    if (rate & AXIS_BLOCK) return check_block_size(c, ast->block_size, ast->span);
    if (rate & AXIS_MATRIX) return check_in_arm(c, ast->span, what);
    if (!c->x.arm || rate_within(RATE_TENSOR, rate)) return true;
    Diag *d = REPORT(c, DIAG_RATE_HERE, ast->span, "a state in an arm of 'shape'", ast->rate.text);
    diag_hint(c->diags, d, "what all tensors share is declared outside of the arms");
    return false;
}

static bool state_rate(Checker *c, const RateAst *ast, Symbol *s)
{
    s->rate = RATE_ELEMENT;
    if (ast->given) {
        if (!rate_parse(ast->rate.text, &s->rate)) {
            unknown_rate(c, ast->rate);
            return false;
        }
        if (!rate_fits(c, ast, s->rate)) return false;
    }
    bool f32 = rate_is_elementwise(s->rate);
    s->dtype = f32 && !c->options->compute_f64 ? DT_F32 : DT_F64;
    s->storage = f32 ? DT_F32 : DT_F64;
    if (!ast->given || !ast->format.text) return true;
    if (strcmp(ast->format.text, "f32") == 0 && rate_is_scalar(s->rate)) {
        s->storage = DT_F32;
        return true;
    }
    if (strcmp(ast->format.text, f32 ? "f32" : "f64") == 0 && !rate_is_element(s->rate)) return true;
    Diag *d = REPORT(c, DIAG_FORMAT_HERE, ast->format.span, ast->format.text);
    if (rate_is_element(s->rate))
        diag_hint(c->diags, d, "storage of elements is chosen outside of the rule (--storage)");
    else
        diag_hint(c->diags, d, "states of rate '%s' are %s", rate_name(s->rate),
                  rate_is_scalar(s->rate) ? "f64, or f32" : f32 ? "f32" : "f64");
    return false;
}

static Symbol *declare_state(Checker *c, Decl *decl)
{
    Symbol *s = declare(c, SYM_STATE, decl);
    if (!s) return NULL;
    bool fits = true;
    if (!state_rate(c, &decl->rate, s)) fits = false;
    if (!fits) s->dtype = DT_COUNT, c->murky = true;
    s->index = (int)c->rule->nstates;
    if (!c->x.dead) ARENA_PUSH(c->arena, c->rule->states, c->rule->nstates, c->states_cap, s);
    ARENA_PUSH(c->arena, c->declared, c->ndeclared, c->declared_cap, s);
    return s;
}

/* K hypers or states by one name; one that is broken has none. */
static void declare_array(Checker *c, SymKind kind, Decl *decl, Expr *arg, const Context *at)
{
    Symbol *a = declare(c, SYM_ARRAY, decl);
    if (!a) return;
    int n = array_size(c, decl);
    Expr *list = arg ? arg : decl->init;
    a->elems = ARENA_ARRAY(c->arena, Symbol *, n + 1);
    for (int i = 0; i < n; i++) {
        Decl *one = ARENA_NEW(c->arena, Decl);
        *one = *decl;
        one->name.text = arena_printf(c->arena, "%s[%d]", decl->name.text, i);
        one->array = NULL;
        one->init = array_element(c, decl, list, i, n);
        Expr *value = arg ? one->init : NULL;
        Symbol *s = kind == SYM_HYPER ? declare_hyper(c, one, value, at) : declare_state(c, one);
        if (!s) return;
        s->array = a;
        a->elems[a->nelems++] = s;
    }
}

/* ---- ranges and defaults -------------------------------------------------------------------- */

static const char *range_text(Checker *c, const Symbol *s)
{
    return arena_printf(c->arena, "%c%g, %g%c", s->lo_open ? '(' : '[', s->lo, s->hi,
                        s->hi_open ? ')' : ']');
}

static bool in_range(const Symbol *s, double v)
{
    return (v > s->lo || (!s->lo_open && v == s->lo)) && (v < s->hi || (!s->hi_open && v == s->hi));
}

static double bound(Checker *c, const Expr *e, double otherwise)
{
    Expr *x = check_number(c, e);
    if (expr_bad(x)) return otherwise;
    if (x->is_const) return x->cval;
    REPORT(c, DIAG_NOT_CONST, e->span, "a bound of a range");
    return otherwise;
}

static void resolve_range(Checker *c, Symbol *s)
{
    const Range *r = &s->decl->range;
    if (!r->given) return;
    s->lo = bound(c, r->lo, -INFINITY);
    s->hi = bound(c, r->hi, INFINITY);
    s->lo_open = r->lo_open;
    s->hi_open = r->hi_open;
    if (s->lo < s->hi || (s->lo == s->hi && !s->lo_open && !s->hi_open)) return;
    REPORT(c, DIAG_RANGE_EMPTY, r->span, range_text(c, s));
    s->lo = -INFINITY;
    s->hi = INFINITY;
}

static void require_in_range(Checker *c, Symbol *s, double v, Span at, const char *what)
{
    if (in_range(s, v)) return;
    Diag *d = REPORT(c, DIAG_OUT_OF_RANGE, at, what, s->name, isnan(v) ? fabs(v) : v, range_text(c, s));
    if (s->decl->range.given) diag_note(c->diags, d, s->decl->range.span, "declared here");
}

/* The schedule that a default is a call of; NULL: another default. */
static const Item *schedule_of(const Checker *c, const Symbol *s)
{
    const Expr *e = s->info->source;
    if (e->kind != EX_CALL || s->decl->is_const) return NULL;
    const Item *fn = expand_find(c, true, e->name.text);
    return fn && fn->kind == IT_SCHEDULE && !fn->broken ? fn : NULL;
}

/* `lr.peak`, a parameter of the schedule that `lr` follows; arg: its argument, NULL: none. */
static Expr *schedule_value(Checker *c, const Symbol *s, Decl *param, Expr *arg, Scope *scope)
{
    Span at = s->info->source->span;
    Name name = {arena_printf(c->arena, "%s.%s", s->name, param->name.text), at};
    Symbol *h = symbol_new(c, SYM_HYPER, name);
    h->path = arena_printf(c->arena, "%s.%s", s->path, param->name.text);
    h->decl = param;
    h->dtype = h->storage = check_name_length(c, name) && check_slots(c, 1) ? DT_F64 : DT_COUNT;
    h->rate = s->rate;
    h->read = true;
    h->info = ARENA_NEW(c->arena, CheckInfo);
    *h->info = (CheckInfo){
        .home = c->x, .at = c->x, .source = arg ? arg : param->init, .from_use = arg != NULL};
    if (!arg) h->info->at.scope = scope, h->info->at.names = NAMES_SCHEDULE;
    ARENA_PUSH(c->arena, c->declared, c->ndeclared, c->declared_cap, h);
    check_resolve_hyper(c, h);
    Expr *x = expr_of_symbol(c, h, at);
    if (h->dtype == DT_COUNT) x->kind = EX_BAD;
    return x;
}

/* The elements of a list as written: `[1, 2]`, or the name of an array; NULL: it is none. */
static Expr **list_elements(Checker *c, Expr *list, int *n)
{
    const Symbol *a = list->kind == EX_NAME ? check_lookup(c, list->name) : NULL;
    if (list->kind == EX_LIST) {
        *n = list->nargs;
        return list->args;
    }
    if (!a || a->kind != SYM_ARRAY) return NULL;
    Expr **out = ARENA_ARRAY(c->arena, Expr *, a->nelems);
    for (int i = *n = 0; i < a->nelems; i++) {
        Expr *index = ARENA_NEW(c->arena, Expr), *e = ARENA_NEW(c->arena, Expr);
        *index = (Expr){.kind = EX_NUMBER, .span = list->span, .num = i};
        *e = (Expr){.kind = EX_INDEX, .span = list->span, .name = list->name, .nargs = 1};
        e->args = ARENA_ARRAY(c->arena, Expr *, 1);
        e->args[0] = index;
        out[(*n)++] = e;
    }
    return out;
}

/* A parameter of the schedule; of a list each element is one: `lr.at[0]`. */
static Expr *schedule_param(Checker *c, const Symbol *s, Decl *param, Expr *arg, Scope *scope)
{
    int n;
    Expr **elements = list_elements(c, arg ? arg : param->init, &n);
    if (!elements) return schedule_value(c, s, param, arg, scope);
    Expr *list = expr_new(c, EX_LIST, s->info->source->span);
    list->args = ARENA_ARRAY(c->arena, Expr *, n);
    for (; list->nargs < n; list->nargs++) {
        Decl *one = ARENA_NEW(c->arena, Decl);
        *one = *param;
        one->name.text = arena_printf(c->arena, "%s[%d]", param->name.text, list->nargs);
        if (!arg) one->init = elements[list->nargs];
        Expr *x = schedule_value(c, s, one, arg ? elements[list->nargs] : NULL, scope);
        list->args[list->nargs] = x;
        if (expr_bad(x)) list->kind = EX_BAD;
    }
    return list;
}

/* `lr = cosine(3e-4, 100, 10000)`: the arguments are hyperparameters, too. */
static Expr *scheduled(Checker *c, const Symbol *s, const Item *fn)
{
    const Expr *e = s->info->source;
    Expr **values = expand_args(c, fn, e->span, e->args, e->arg_names, e->nargs);
    Scope *scope = ARENA_NEW(c->arena, Scope); /* parameters, for the defaults of later ones */
    for (size_t i = 0; i < fn->nparams; i++) {
        Decl *param = &fn->params[i];
        if (!values[i] && !param->init) continue; /* reported by expand_fn */
        values[i] = schedule_param(c, s, param, values[i], scope);
        scope_bind(c, scope, param->name, NULL, values[i]);
    }
    return expand_fn(c, fn, values, e->span);
}

static void resolve_default(Checker *c, Symbol *s)
{
    CheckInfo *info = s->info;
    if (!info->source) return;
    Context here = c->x;
    c->x = info->at;
    c->x.depth = here.depth;
    const Item *schedule = schedule_of(c, s);
    Expr *x = schedule ? scheduled(c, s, schedule) : check_number(c, info->source);
    if (!expr_bad(x) && !rate_within(x->rate, s->rate)) {
        Diag *d =
            REPORT(c, DIAG_NARROW, info->source->span, "this value", rate_name(x->rate),
                   arena_printf(c->arena, "hyperparameter '%s'", s->name), rate_name(s->rate));
        diag_hint(c->diags, d, "declare what it uses ': global'");
    }
    c->x = here;
    if (expr_bad(x)) {
        s->dtype = DT_COUNT;
        return;
    }
    s->value = x;
    s->derived = !x->is_const;
    if (x->is_const)
        require_in_range(c, s, x->cval, info->source->span,
                         info->from_use ? "the argument" : "the default");
}

static void resolve_const(Checker *c, Symbol *s)
{
    if (s->dtype == DT_COUNT) return;
    if (s->value && s->value->is_const) {
        s->is_const = true;
        s->cval = s->value->cval;
    } else if (s->value) {
        REPORT(c, DIAG_NOT_CONST, s->info->source->span,
               arena_printf(c->arena, "the value of const hyperparameter '%s'", s->name));
        s->dtype = DT_COUNT;
    } else {
        Diag *d = REPORT(c, DIAG_ARG_MISSING, s->span, s->name, c->x.inst->item->name.text);
        diag_hint(c->diags, d, "give it a default, or '-D %s=…'",
                  s->path + strlen(c->rule->name) + 1);
        s->dtype = DT_COUNT;
    }
}

void check_resolve_hyper(Checker *c, Symbol *s)
{
    if (s->info->status == INFO_DONE) return;
    if (s->info->status == INFO_BUSY) {
        REPORT(c, DIAG_RECURSION, s->span, s->name);
        s->dtype = DT_COUNT;
        return;
    }
    s->info->status = INFO_BUSY;
    Context here = c->x;
    c->x = s->info->home;
    c->x.names = NAMES_HYPER;
    resolve_range(c, s);
    c->x = here;
    double v;
    bool defined = defined_value(c, s, &v);
    resolve_default(c, s);
    if (defined) {
        require_in_range(c, s, v, (Span){0, 0}, "the value given by -D");
        s->is_const = true;
        s->cval = v;
    } else if (s->decl->is_const)
        resolve_const(c, s);
    if (s->is_const) s->rate = RATE_GLOBAL; /* one value, whatever the group */
    s->info->status = INFO_DONE;
}

/* ---- a whole instance ----------------------------------------------------------------------- */

/* What a statement declares, arrays or the others; narg: of its hyperparameters' arguments the
 * first. Returns that of the next statement. */
static size_t declare_stmt(Checker *c, const Stmt *s, const UseArgs *args, size_t narg, bool arrays)
{
    if (s->kind != ST_HYPER && s->kind != ST_STATE) return narg;
    for (size_t k = 0; k < s->ndecls; k++) {
        Decl *d = &s->decls[k];
        bool hyper = s->kind == ST_HYPER;
        Expr *arg = hyper && args ? args->values[narg++] : NULL;
        const Context *at = args ? &args->at : NULL;
        if ((d->array != NULL) != arrays) continue;
        if (arrays)
            declare_array(c, hyper ? SYM_HYPER : SYM_STATE, d, arg, at);
        else if (hyper)
            declare_hyper(c, d, arg, at);
        else
            declare_state(c, d);
    }
    return narg;
}

/* `args`: those of a use, of which `narg` have been taken; NULL: none. */
static void declare_block(Checker *c, const Block *b, const UseArgs *args, size_t narg)
{
    for (int arrays = 0; arrays < 2; arrays++) { /* sizes of arrays are made of the others */
        size_t k = narg;
        for (size_t i = 0; i < b->n; i++) k = declare_stmt(c, b->stmts[i], args, k, arrays);
    }
}

/* Defaults and ranges of what was declared from number `first` on. */
static void resolve_from(Checker *c, size_t first)
{
    for (size_t i = first; i < c->ndeclared; i++) {
        Symbol *s = c->declared[i];
        if (s->kind != SYM_HYPER) continue;
        check_resolve_hyper(c, s);
        if (s->dtype == DT_COUNT || c->x.dead) continue;
        if (s->is_const) {
            ARENA_PUSH(c->arena, c->rule->consts, c->rule->nconsts, c->consts_cap, s);
            continue;
        }
        s->index = (int)c->rule->nhypers;
        ARENA_PUSH(c->arena, c->rule->hypers, c->rule->nhypers, c->hypers_cap, s);
    }
}

void check_decls(Checker *c, const Item *item, const UseArgs *args)
{
    size_t first = c->ndeclared, narg = 0;
    const Context *at = args ? &args->at : NULL;
    for (size_t i = 0; i < item->nparams; i++) {
        Decl *d = &item->params[i];
        Expr *arg = args ? args->values[narg++] : NULL;
        if (decl_is_rule(d))
            declare_rule(c, d, arg, at);
        else
            declare_hyper(c, d, arg, at);
    }
    declare_block(c, item->body, args, narg);
    resolve_from(c, first);
}

/* What an arm of `shape` declares. */
void check_block_decls(Checker *c, const Block *b)
{
    size_t first = c->ndeclared;
    declare_block(c, b, NULL, 0);
    resolve_from(c, first);
}

static void initial_value(Checker *c, Symbol *s)
{
    if (s->decl->init && s->dtype != DT_COUNT) {
        Expr *x = check_number(c, s->decl->init);
        if (!expr_bad(x) && check_rates(c, s->decl->init->span, "this value", x->rate, s)) {
            s->value = x;
            s->derived = !x->is_const;
        }
    }
    s->info->declared = true;
    if (s->dtype == DT_COUNT) return;
    Stmt *out = stmt_new(c, ST_STATE, s->span);
    out->name = s->decl->name;
    out->sym = s;
    out->value = s->value;
    stmt_emit(c, out);
}

void check_initial_values(Checker *c, const Block *block)
{
    NameSet names = c->x.names;
    c->x.names = NAMES_INIT;
    for (size_t i = 0; i < block->n; i++) {
        const Stmt *s = block->stmts[i];
        for (size_t k = 0; s->kind == ST_STATE && k < s->ndecls; k++) {
            Binding *b = scope_find(c->x.scope, s->decls[k].name.text);
            if (!b || !b->sym || b->sym->decl != &s->decls[k]) continue;
            if (b->sym->kind == SYM_STATE) initial_value(c, b->sym);
            for (int i = 0; i < b->sym->nelems; i++) initial_value(c, b->sym->elems[i]);
        }
    }
    c->x.names = names;
    entry_init(c, block);
}
