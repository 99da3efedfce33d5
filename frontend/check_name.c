/* check_name.c - scopes, and what a name means where it stands.
 *
 * Requires a Checker whose context says which names may be seen. Every lookup marks the symbol as
 * used.
 *
 *     m := lerp(g, m, betta1)   ->   E101 unknown name 'betta1', hint: did you mean 'beta1'?
 */
#include "check.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    Rate rate;
    DType dtype;
} given_info[GIVEN_FIRST + 1] = {
    [GIVEN_G] = {"g", RATE_ELEMENT, DT_F32},
    [GIVEN_P] = {"p", RATE_ELEMENT, DT_F32},
    [GIVEN_T] = {"t", RATE_TENSOR, DT_F64},
    [GIVEN_S] = {"s", RATE_GLOBAL, DT_F64},
    [GIVEN_MICRO] = {"micro", RATE_GLOBAL, DT_F64},
    [GIVEN_ROWS] = {"rows", RATE_TENSOR, DT_F64},
    [GIVEN_COLS] = {"cols", RATE_TENSOR, DT_F64},
    [GIVEN_NUMEL] = {"numel", RATE_TENSOR, DT_F64},
    [GIVEN_NDIM] = {"ndim", RATE_TENSOR, DT_F64},
    [GIVEN_NAME] = {"name", RATE_TENSOR, DT_F64},
    [GIVEN_PI] = {"pi", RATE_GLOBAL, DT_F64},
    [GIVEN_INF] = {"inf", RATE_GLOBAL, DT_F64},
    [GIVEN_FIRST] = {"first step", RATE_TENSOR, DT_BOOL},
};

Symbol *symbol_new(Checker *c, SymKind kind, Name name)
{
    Symbol *s = ARENA_NEW(c->arena, Symbol);
    s->kind = kind;
    s->name = name.text;
    s->span = name.span;
    s->id = c->rule->nsyms++;
    s->lo = -INFINITY;
    s->hi = INFINITY;
    s->lo_open = s->hi_open = true;
    return s;
}

void check_given_symbols(Checker *c)
{
    for (int i = 0; i <= GIVEN_FIRST; i++) {
        Symbol *s = symbol_new(c, SYM_GIVEN, (Name){given_info[i].name, {0, 0}});
        s->given = (Given)i;
        s->rate = given_info[i].rate;
        s->dtype = s->storage = given_info[i].dtype;
        if (c->options->compute_f64 && s->dtype == DT_F32) s->dtype = DT_F64;
        s->is_const = i == GIVEN_PI || i == GIVEN_INF;
        s->cval = i == GIVEN_PI ? 0x1.921fb54442d18p+1 : i == GIVEN_INF ? INFINITY : 0;
        c->given[i] = s;
    }
    c->rule->g = c->given[GIVEN_G];
    c->rule->p = c->given[GIVEN_P];
    c->word_u = ast_known_name(c->ast, "u");
    if (!c->word_u) c->word_u = "u"; /* nowhere asked for */
}

enum { SCOPE_SMALL = 8 }; /* names up to which a list is walked */

static Binding **table_place(Binding **table, size_t size, const char *name)
{
    size_t h = ((uintptr_t)name >> 4) * 0x9e3779b97f4a7c15u >> 20;
    while (table[h & (size - 1)] && table[h & (size - 1)]->name != name) h++;
    return &table[h & (size - 1)];
}

Binding *scope_local(const Scope *s, const char *name)
{
    if (s->size) return *table_place(s->table, s->size, name);
    for (Binding *b = s->bindings; b; b = b->next)
        if (b->name == name) return b;
    return NULL;
}

Binding *scope_find(const Scope *s, const char *name)
{
    for (; s; s = s->parent) {
        Binding *b = scope_local(s, name);
        if (b) return b;
    }
    return NULL;
}

/* Makes the table, or one twice as large. */
static void scope_grow(Checker *c, Scope *s)
{
    Binding **old = s->table;
    size_t n = s->size;
    s->size = n ? 2 * n : 4 * SCOPE_SMALL;
    s->table = ARENA_ARRAY(c->arena, Binding *, s->size);
    for (size_t i = 0; i < n; i++)
        if (old[i]) *table_place(s->table, s->size, old[i]->name) = old[i];
    for (Binding *b = n ? NULL : s->bindings; b; b = b->next) {
        Binding **at = table_place(s->table, s->size, b->name);
        if (!*at) *at = b;
    }
}

void scope_bind(Checker *c, Scope *s, Name name, Symbol *sym, Expr *value)
{
    Binding *b = ARENA_NEW(c->arena, Binding);
    *b = (Binding){s->bindings, name.text, name.span, sym, value};
    s->bindings = b;
    s->n++;
    if (s->size ? 2 * s->n > s->size : s->n > SCOPE_SMALL) scope_grow(c, s);
    if (s->size) *table_place(s->table, s->size, name.text) = b;
}

static Symbol *find_given(Checker *c, const char *name)
{
    for (int i = 0; i <= GIVEN_INF; i++) {
        if (strcmp(given_info[i].name, name) != 0) continue;
        Symbol *lead = check_lead(c, (Given)i);
        return lead ? lead : c->given[i];
    }
    return NULL;
}

/* What kind of thing a symbol is, for messages. */
const char *symbol_what(const Symbol *s)
{
    switch (s->kind) {
    case SYM_HYPER: return "a hyperparameter";
    case SYM_STATE: return "a state";
    case SYM_DIRECTION: return "the direction";
    case SYM_EXPORT: return "an export";
    case SYM_INPUT: return "an input";
    case SYM_RULE: return "a rule";
    case SYM_ARRAY: return "an array";
    case SYM_LET: return "a name bound by '='";
    case SYM_GIVEN: break;
    }
    switch (s->given) {
    case GIVEN_G: return "the gradient";
    case GIVEN_P: return "the parameter";
    case GIVEN_T:
    case GIVEN_S: return "a clock";
    case GIVEN_PI:
    case GIVEN_INF: return "a constant";
    default: return "a property of the tensor";
    }
}

bool check_name_length(Checker *c, Name name)
{
    if (strlen(name.text) <= CHECK_MAX_NAME) return true;
    REPORT(c, DIAG_NAME_LONG, name.span, (int)CHECK_MAX_NAME);
    return false;
}

bool check_new_name(Checker *c, Name name)
{
    if (name_lost(name)) return false;
    Symbol *given = find_given(c, name.text);
    if (given) {
        if (given->given <= GIVEN_MICRO)
            diag_hint(c->diags,
                      REPORT(c, DIAG_RESERVED_NAME, name.span, name.text, symbol_what(given)),
                      "use another name");
        else
            REPORT(c, DIAG_SHADOW, name.span, name.text, symbol_what(given));
        return false;
    }
    Binding *b = scope_find(c->x.scope, name.text);
    if (!b || (!b->sym && !b->value) || (b->sym && symbol_left_out(b->sym))) return true;
    if (b->sym && b->sym->kind != SYM_LET) {
        Diag *d = REPORT(c, DIAG_SHADOW, name.span, name.text, symbol_what(b->sym));
        diag_note(c->diags, d, b->span, "declared here");
        return false;
    }
    Diag *d = REPORT(c, DIAG_BOUND_TWICE, name.span, name.text);
    diag_note(c->diags, d, b->span, "bound here");
    diag_hint(c->diags, d, "'=' names a value once; values that change are states: 'state %s'",
              name.text);
    return false;
}

static void visible_words(Checker *c, Words *w)
{
    for (const Scope *s = c->x.scope; s; s = s->parent)
        for (const Binding *b = s->bindings; b; b = b->next)
            if (b->sym || b->value) check_word(c, w, b->name);
    for (int i = 0; i <= GIVEN_INF; i++)
        if ((c->x.names != NAMES_FN && c->x.names != NAMES_SCHEDULE) || i >= GIVEN_PI)
            check_word(c, w, given_info[i].name);
}

/* What a word that papers and other libraries use is called here; NULL: not known. */
static const char *usual_name(const char *word)
{
    static const char *const gradients[] = {"grad", "gradient", "grads", "d_p", "dp", "G"},
                             *const params[] = {"w",      "W",      "x",     "P",
                                                "param",  "params", "theta", "parameter",
                                                "weight", "weights"},
                             *const steps[] = {"step",      "steps", "step_count", "iter",
                                               "iteration", "k",     "T",          "i"},
                             *const truths[] = {"True", "true", "False", "false", "None"};
    static const struct {
        const char *const *words;
        size_t n;
        const char *hint;
    } usual[] = {
        {gradients, sizeof gradients / sizeof *gradients, "the gradient is 'g'"},
        {params, sizeof params / sizeof *params, "the parameter is 'p'"},
        {steps, sizeof steps / sizeof *steps, "the number of this step, from 1, is 't'"},
        {truths, sizeof truths / sizeof *truths,
         "flags are numbers, 1 and 0, and compared: 'nesterov != 0'"},
    };
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        for (size_t k = 0; k < usual[i].n; k++)
            if (strcmp(word, usual[i].words[k]) == 0) return usual[i].hint;
    return NULL;
}

void check_unknown_name(Checker *c, Name name, const char *hint)
{
    if (name_lost(name) || check_may_be_lost(c, name, false)) return;
    Diag *d = REPORT(c, DIAG_UNKNOWN_NAME, name.span, name.text);
    if (!diag_is_kept(d)) return;
    Words w = {0};
    visible_words(c, &w);
    const char *usual =
        c->x.names == NAMES_FN || c->x.names == NAMES_SCHEDULE ? NULL : usual_name(name.text);
    if (usual) hint = usual;
    if (!usual) check_did_you_mean(c, d, name.text, &w);
    if (hint) diag_hint(c->diags, d, "%s", hint);
}

bool check_may_read(Checker *c, const Symbol *s, Name name)
{
    bool constant = s->kind == SYM_GIVEN && s->given >= GIVEN_PI;
    if (c->x.in_entry && (s == c->rule->g || s->kind == SYM_DIRECTION)) {
        Diag *d = REPORT(c, DIAG_ENTRY_SEES, name.span, symbol_what(s));
        if (s == c->rule->g) diag_hint(c->diags, d, "'on NAME(g)' names what the caller binds");
        return false;
    }
    switch (c->x.names) {
    case NAMES_ALL: return true;
    case NAMES_SCHEDULE:
    case NAMES_FN:
        if (constant || s->kind != SYM_GIVEN) return true;
        if (c->x.names == NAMES_SCHEDULE && s->given == GIVEN_S) return true;
        diag_hint(c->diags, REPORT(c, DIAG_FN_NAME, name.span, name.text),
                  c->x.names == NAMES_SCHEDULE && s->given == GIVEN_T
                      ? "schedules count with s: the steps taken so far, from 0"
                      : "pass it as an argument");
        return false;
    case NAMES_HYPER:
        if (constant || s->kind == SYM_HYPER) return true;
        REPORT(c, DIAG_NOT_HYPER, name.span, name.text, symbol_what(s),
               "defaults, ranges and arguments of 'use'");
        return false;
    case NAMES_INIT:
        /* An arm's states begin where its rule does, above all names; where a direction transform
         * begins, the direction is known. */
        if (s->kind == SYM_LET ||
            (s->kind == SYM_DIRECTION && c->x.inst->item->stage != STAGE_DIRECTION)) {
            REPORT(c, DIAG_NOT_HYPER, name.span, name.text, symbol_what(s), "initial values");
            return false;
        }
        if (s->kind != SYM_STATE || s->info->declared) return true;
        diag_hint(c->diags, REPORT(c, DIAG_STATE_LATER, name.span, name.text),
                  "initial values are taken in order of declaration");
        return false;
    }
    return false;
}

Expr *expr_of_symbol(Checker *c, Symbol *s, Span at)
{
    Expr *e = expr_new(c, EX_NAME, at);
    e->name = (Name){s->name, at};
    e->sym = s;
    expr_set_type(c, e, s->dtype == DT_BOOL, s->rate);
    e->is_const = s->is_const;
    e->cval = s->cval;
    /* Whoever computes it goes down into the default. */
    if (s->kind == SYM_HYPER && s->derived && s->value) e->depth = s->value->depth + 1;
    return e;
}

/* Reading a symbol. A state's own update is no use of it. */
static void mark_read(Checker *c, Symbol *s, Span at)
{
    if (s != c->x.writing) s->read = true;
    for (int i = 0; s->kind == SYM_LET && s->info && i < 2; i++)
        if (s->info->arms[i]) mark_read(c, s->info->arms[i], at);
    if (s->kind == SYM_GIVEN && s->given == GIVEN_G && s != c->x.writing && c->x.inst &&
        c->x.inst->g_read.end == 0)
        c->x.inst->g_read = at;
}

static Expr *bad(Checker *c, Span at)
{
    return expr_new(c, EX_BAD, at);
}

/* Finds what a name stands for; reports and returns NULL where it may not be used. */
static Binding *resolve(Checker *c, Name name, Binding *given_place)
{
    Binding *b = scope_find(c->x.scope, name.text);
    if (!b) {
        Symbol *given = find_given(c, name.text);
        if (given) {
            *given_place = (Binding){NULL, name.text, name.span, given, NULL};
            b = given_place;
        }
    }
    if (!b) {
        check_unknown_name(c, name, NULL);
        return NULL;
    }
    if (!b->sym && !b->value) {
        Diag *d = REPORT(c, DIAG_ONE_BRANCH, name.span, name.text);
        diag_note(c->diags, d, b->span, "bound here");
        diag_hint(c->diags, d, "bind it in both branches, or before them");
        return NULL;
    }
    return b;
}

Symbol *check_lookup(Checker *c, Name name)
{
    Binding *b = scope_find(c->x.scope, name.text);
    return b ? b->sym : find_given(c, name.text);
}

Expr *check_symbol(Checker *c, Symbol *s, Span at)
{
    if (!check_may_read(c, s, (Name){s->name, at})) return bad(c, at);
    if (s->kind == SYM_GIVEN && s->given == GIVEN_MICRO) {
        check_unsupported(c, at, "'%s'", s->name);
        return bad(c, at);
    }
    if (s->kind == SYM_GIVEN && s->given == GIVEN_NAME) {
        Diag *d = REPORT(c, DIAG_NOT_A_VALUE, at, s->name, "a text");
        diag_hint(c->diags, d, "compare it: name == \"…\", name ~ \"…\"");
        return bad(c, at);
    }
    if (s->kind == SYM_RULE || s->kind == SYM_ARRAY) {
        Diag *d = REPORT(c, DIAG_NOT_A_VALUE, at, s->name, symbol_what(s));
        diag_hint(c->diags, d,
                  s->kind == SYM_RULE ? "'use %s' puts it in place" : "its elements are: '%s[0]'",
                  s->name);
        return bad(c, at);
    }
    if (s->kind == SYM_HYPER) check_resolve_hyper(c, s);
    mark_read(c, s, at);
    if (s->dtype == DT_COUNT) return bad(c, at); /* bound to a value that was broken */
    return expr_of_symbol(c, s, at);
}

Expr *check_name(Checker *c, const Expr *e)
{
    Binding given;
    Binding *b = resolve(c, e->name, &given);
    if (!b) return bad(c, e->span);
    return b->value ? b->value : check_symbol(c, b->sym, e->span);
}

Expr *check_old_symbol(Checker *c, Symbol *s, Span at)
{
    bool ok = s->kind == SYM_STATE ||
              (s->kind == SYM_GIVEN && (s->given == GIVEN_G || s->given == GIVEN_P));
    if (!ok) {
        Diag *d = REPORT(c, DIAG_OLD_OF, at, s->name, symbol_what(s));
        diag_hint(c->diags, d, "old() takes a state, p or g");
        return bad(c, at);
    }
    if (!check_may_read(c, s, (Name){s->name, at})) return bad(c, at);
    mark_read(c, s, at);
    s->read = true;
    Expr *out = expr_of_symbol(c, s, at);
    out->kind = EX_OLD;
    out->is_const = false;
    return out;
}

/* old(x): the value at the entry of the step; of g, at the entry of the rule or transform. */
Expr *check_old(Checker *c, const Expr *e)
{
    Binding given;
    Binding *b = resolve(c, e->name, &given);
    if (!b) return bad(c, e->span);
    if (b->sym) return check_old_symbol(c, b->sym, e->span);
    Diag *d = REPORT(c, DIAG_OLD_OF, e->span, e->name.text, "an argument of a function");
    diag_hint(c->diags, d, "old() takes a state, p or g");
    return bad(c, e->span);
}
