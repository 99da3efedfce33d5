/* recover.c - after a token that cannot stand where it stands: where to go on.
 *
 * Requires: parser.y asks for every token here. Ensures: after mistake.c has spoken, the parser
 * sees an end of statement next; headers of blocks are repaired, so that their bodies are checked.
 *
 *     when x >< 1 { m := }   ->   SEP when ? { m := SEP }: one message at '<', one at '}'
 */
#include "parse.h"
#include "frontend/parser.tab.h"
#include <stdlib.h>
#include <string.h>

/* ---- where to go on -------------------------------------------------------------------------- */

/* Whether a statement begins with this token, as far as it and the next ones tell. */
bool recover_is_statement(const Parser *p, size_t i)
{
    int kind = token_at(p, i)->kind, next = token_at(p, i + 1)->kind,
        before = i > 0 ? token_at(p, i - 1)->kind : TK_SEP;
    if (token_is_item_word(kind) || token_is_statement_word(kind) || kind == '}') return true;
    if (!token_is_name(kind)) return false;
    if (token_is_write(next)) return true;
    if (next == '=') return before != ',' && before != '(' && before != '[';
    if (next == '[') {
        size_t j = i + 2;
        while (j < i + 16 && token_at(p, j)->kind != ']' && token_at(p, j)->kind != 0) j++;
        return token_is_write(token_at(p, j + 1)->kind);
    }
    bool recipe = (kind == TK_STORE && next == '*') || (kind == TK_DEFAULT && next == TK_ARROW);
    return recipe ||
           (kind != TK_IDENT && (token_is_name(next) || token_is_keyword(next)) && before != ',');
}

/* The index behind the '}' that closes the '{' at i. */
static size_t behind_block(const Parser *p, size_t i)
{
    for (int depth = 0; token_at(p, i)->kind != 0; i++) {
        int kind = token_at(p, i)->kind;
        if (kind == '{') depth++;
        if (kind == '}' && --depth == 0) return i + 1;
    }
    return i;
}

/* Whether the bracket that was opened at `from` is closed in its statement; if not, *at is where
 * the next one begins. */
bool recover_paren_is_closed(const Parser *p, size_t from, size_t *at)
{
    int depth = 1;
    for (size_t i = from + 1;; i++) {
        const Token *t = token_at(p, i);
        *at = i;
        if (t->kind == 0 || t->kind == '{' || t->kind == '}' || t->kind == TK_SEP) return false;
        if (t->line_start && recover_is_statement(p, i)) return false;
        if (t->kind == '(' || t->kind == '[') depth++;
        if ((t->kind == ')' || t->kind == ']') && --depth == 0) return true;
    }
}

void recover_inject(Parser *p, int kind, Span at)
{
    if (p->ninject == INJECT_MAX) return;
    Token t = {.kind = kind, .span = at, .value.text = BAD_NAME};
    p->inject[p->ninject++] = t;
}

/* Headers that are right, for blocks whose own is not. */
static const struct {
    int first, sequence[4];
} headers[] = {
    {TK_WHEN, {TK_WHEN, TK_BAD}},
    {TK_ELSE, {TK_WHEN, TK_BAD}},
    {TK_REPEAT, {TK_REPEAT, TK_BAD}},
    {TK_INIT, {TK_INIT}},
    {TK_ON, {TK_ON, TK_BAD}},
    {TK_SHAPE, {TK_SHAPE, '[', TK_DOTS, ']'}},
    {TK_OPTIMIZER, {TK_OPTIMIZER, TK_BAD}},
    {TK_SCALER, {TK_SCALER, TK_BAD}},
    {TK_ACCUMULATOR, {TK_ACCUMULATOR, TK_BAD}},
    {TK_RECIPE, {TK_RECIPE, TK_BAD}},
    {TK_TRANSFORM, {TK_TRANSFORM, TK_BAD, ':', TK_BAD}},
    {TK_FN, {TK_FN, TK_BAD, '(', ')'}},
    {TK_SCHEDULE, {TK_FN, TK_BAD, '(', ')'}},
};

/* Replaces the statement's header by one that is right, so that the block behind it is parsed as
 * what it is. base: open brackets around it. */
bool recover_header(Parser *p, Span at, size_t base)
{
    const Token *first = token_at(p, p->statement);
    int kind = first->kind;
    if (kind == TK_IDENT) { /* a word of another language: inside of a rule as good as `when` */
        const char *word = first->value.text;
        bool function = strcmp(word, "def") == 0 || strncmp(word, "func", 4) == 0;
        if (base == 0 && !function) return false;
        kind = base == 0 ? TK_FN : TK_WHEN;
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        if (headers[i].first != kind) continue;
        p->ninject = p->next_inject = 0;
        for (int k = 0; k < 4 && headers[i].sequence[k]; k++)
            recover_inject(p, headers[i].sequence[k], at);
        return true;
    }
    return false;
}

/* Words of other languages whose blocks are repaired as `when`. */
static bool begins_foreign_block(const Parser *p)
{
    const Token *first = token_at(p, p->statement);
    bool block = false;
    return first->kind == TK_IDENT && mistake_habit(first->value.text, &block) && block;
}

/* Chooses p->resume: the token behind the statement that holds the mistake, from `from` on. base:
 * open brackets around it. */
void recover_skip(Parser *p, size_t from, size_t base)
{
    int depth = 0; /* of ( and [ */
    size_t i = from;
    for (;; i++) {
        const Token *t = token_at(p, i);
        if (t->kind == 0) break;
        if (t->kind == TK_SEP) {
            i++;
            break;
        }
        if (t->line_start && i > p->statement) {
            bool looks = recover_is_statement(p, i);
            if (looks || (depth == 0 && i > p->at && filter_can_end(token_at(p, i - 1)->kind) &&
                          filter_can_begin(t->kind)))
                break;
        }
        if (t->kind == '(' || t->kind == '[') depth++;
        if ((t->kind == ')' || t->kind == ']') && depth > 0) depth--;
        if (t->kind == '}' && base > 0) break;
        if (t->kind != '{') continue;
        int first = token_at(p, p->statement)->kind;
        bool header = i > p->statement && p->repaired != i + 1 &&
                      (first != TK_IDENT || begins_foreign_block(p)) &&
                      recover_header(p, t->span, base);
        if (header) {
            p->repaired = i + 1;
            break;
        }
        depth = 0;
        i = behind_block(p, i) - 1;
        if (token_at(p, i + 1)->kind == TK_ELSE) continue;
        i++;
        break;
    }
    p->resume = i;
    p->nopen_resume = base;
}

/* ---- the parser's tokens --------------------------------------------------------------------- */

void recover_too_deep(Parser *p, Span at)
{
    if (!p->stopped) diag_report(p->diags, DIAG_TOO_DEEP, at, NEST_MAX);
    p->stopped = true;
}

static Token go_on(Parser *p)
{
    p->recovering = false;
    p->filter.next = p->resume;
    p->filter.nopen = p->nopen_resume;
    p->filter.last = TK_SEP;
    p->statement_next = true;
    Span at = token_at(p, p->resume)->span;
    return (Token){.kind = TK_SEP, .span = {at.begin, at.begin}};
}

Token recover_next(Parser *p)
{
    if (p->recovering) return go_on(p);
    if (p->next_inject < p->ninject) {
        Token t = p->inject[p->next_inject++];
        p->injected = true;
        if (t.kind == '}' || t.kind == '{') p->statement_next = true;
        return t;
    }
    p->injected = false;
    p->nopen_before = p->filter.nopen;
    Token t = filter_next(&p->filter, &p->at);
    if (p->statement_next) p->statement = p->at;
    p->statement_next = t.kind == TK_SEP || t.kind == '{' || t.kind == '}';
    if (p->filter.nopen > NEST_MAX) {
        recover_too_deep(p, t.span);
        const Token *end = token_at(p, p->ntokens - 1);
        p->filter.next = p->ntokens - 1;
        p->filter.nopen = 0;
        p->at = p->ntokens - 1;
        return *end;
    }
    return t;
}
