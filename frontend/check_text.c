/* check_text.c - the tensor's name: compared with a text, or with a pattern.
 *
 * Requires a comparison as parsed. Ensures a truth value of one value per tensor, which asks a
 * question of Rule.names; equal questions are one. Patterns are POSIX extended regular expressions
 * without back-references, found anywhere in the name.
 *
 *     name !~ "embed|head"   ->   MATCH question 0 {"embed|head", pattern}, negated
 */
#include "check.h"
#include <string.h>

static Expr *broken(Checker *c, Span at)
{
    return expr_new(c, EX_BAD, at);
}

static bool is_name(Checker *c, const Expr *e)
{
    return e->kind == EX_NAME && check_lookup(c, e->name) == c->given[GIVEN_NAME];
}

static bool pattern_fits(Checker *c, const char *text, Span at)
{
    char why[128];
    if (pattern_find(text, NULL, why) >= 0) return true;
    REPORT(c, DIAG_PATTERN_BAD, at, why);
    return false;
}

/* The number of the question. */
static int ask(Checker *c, const char *text, bool pattern)
{
    Rule *r = c->rule;
    for (size_t i = 0; i < r->nnames; i++)
        if (r->names[i].pattern == pattern && strcmp(r->names[i].text, text) == 0) return (int)i;
    NameTest t = {text, pattern};
    ARENA_PUSH(c->arena, r->names, r->nnames, c->names_cap, t);
    return (int)r->nnames - 1;
}

static Expr *test(Checker *c, Span span, const Expr *name, const char *text, Span text_at,
                  bool pattern, bool negated)
{
    if (!check_may_read(c, c->given[GIVEN_NAME], name->name)) return broken(c, span);
    if (strlen(text) > CHECK_MAX_NAME) {
        REPORT(c, DIAG_TEXT_LONG, text_at, (int)CHECK_MAX_NAME);
        return broken(c, span);
    }
    if (pattern && !pattern_fits(c, text, text_at)) return broken(c, span);
    if (!check_slots(c, 1)) return broken(c, span);
    Expr *e = expr_new(c, EX_MATCH, span);
    e->text = text;
    e->negated = negated;
    e->num = ask(c, text, pattern);
    expr_set_type(c, e, true, RATE_TENSOR);
    return e;
}

void check_text_here(Checker *c, Span at)
{
    Diag *d = REPORT(c, DIAG_TEXT_HERE, at);
    diag_hint(c->diags, d, "name == \"…\", name != \"…\", name ~ \"…\", name !~ \"…\"");
}

Expr *check_match(Checker *c, const Expr *e)
{
    if (is_name(c, e->args[0]))
        return test(c, e->span, e->args[0], e->text, e->name.span, true, e->negated);
    if (!expr_bad(check_expr(c, e->args[0]))) check_text_here(c, e->span);
    return broken(c, e->span);
}

Expr *check_text_op(Checker *c, const Expr *e)
{
    if ((e->op != OP_EQ && e->op != OP_NE) || e->kind != EX_OP) return NULL;
    for (int i = 0; i < 2; i++) {
        const Expr *name = e->args[i], *text = e->args[1 - i];
        if (text->kind == EX_STRING && is_name(c, name))
            return test(c, e->span, name, text->text, text->span, false, e->op == OP_NE);
    }
    return NULL;
}
