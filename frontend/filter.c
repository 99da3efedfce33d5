/* filter.c - where statements end: puts SEP between tokens at line ends and before '}'.
 *
 * A line end ends a statement unless it is inside ( ) or [ ] (whichever kind closes, because of
 * `[0, inf)`), or the token before cannot end a statement, or the one after cannot begin one.
 *
 *     x = a⏎  + b⏎m := x }   ->   x = a + b SEP m := x SEP }
 */
#include "parse.h"
#include "frontend/parser.tab.h"

/* Words that are names where a name is wanted may end a statement; so may names, values and closing
 * brackets. */
bool filter_can_end(int kind)
{
    switch (kind) {
    case TK_NUM:
    case TK_STRING:
    case TK_IDENT:
    case TK_BAD:
    case ')':
    case ']':
    case '}':
    case TK_INIT:
    case TK_INPUT:
    case TK_EXPORT:
    case TK_USE:
    case TK_AS:
    case TK_FAIL:
    case TK_ON:
    case TK_SKIP:
    case TK_GROUP:
    case TK_DEFAULT:
    case TK_STORE:
    case TK_SHARD:
    case TK_ACCUMULATE:
    case TK_SCALE:
    case TK_MASTER:
    case TK_STOCHASTIC:
    case TK_UNSIGNED:
    case TK_UNLESS:
    case TK_DIRECTION: return true;
    default: return false;
    }
}

bool filter_can_begin(int kind)
{
    switch (kind) {
    case '?':
    case ':':
    case ')':
    case ']':
    case ',':
    case '*':
    case '/':
    case '+':
    case '-':
    case '^':
    case '%':
    case '@':
    case '~':
    case TK_NMATCH:
    case '=':
    case TK_DEF:
    case TK_ADDA:
    case TK_SUBA:
    case TK_MULA:
    case TK_DIVA:
    case TK_ARROW:
    case TK_DOTS:
    case '{':
    case '<':
    case '>':
    case TK_LE:
    case TK_GE:
    case TK_EQ:
    case TK_NE:
    case TK_AND:
    case TK_OR:
    case TK_ELSE:
    case TK_IN:
    case TK_AS:
    case TK_UNLESS: return false;
    default: return true;
    }
}

bool filter_is_paren(const Filter *f)
{
    return f->nopen > 0 && f->open[f->nopen - 1].kind != '{';
}

static Token separator(Filter *f, uint32_t begin, uint32_t end)
{
    f->last = TK_SEP;
    return (Token){.kind = TK_SEP, .span = {begin, end}};
}

static void count_bracket(Filter *f, const Token *t)
{
    switch (t->kind) {
    case '(':
    case '[':
    case '{':
        ARENA_PUSH(f->arena, f->open, f->nopen, f->cap,
                   ((Bracket){(char)t->kind, (size_t)(t - f->raw), t->span}));
        break;
    case ')':
    case ']':
        if (filter_is_paren(f)) f->nopen--;
        break;
    case '}': /* whatever was left open inside ends here, too */
        while (filter_is_paren(f)) f->nopen--;
        if (f->nopen > 0) f->nopen--;
        break;
    }
}

Token filter_next(Filter *f, size_t *index)
{
    const Token *t = &f->raw[f->next];
    bool separated = f->last == 0 || f->last == TK_SEP || f->last == '{';
    *index = f->next;
    if (f->next > 0 && !separated) {
        uint32_t end = t[-1].span.end;
        bool at_line_end = t->line_start && !filter_is_paren(f) && filter_can_end(f->last) &&
                           filter_can_begin(t->kind);
        if (at_line_end || t->kind == 0 || t->kind == '}')
            return separator(f, end, t->line_start ? end + 1 : end);
    }
    f->last = t->kind;
    if (t->kind == 0) return *t; /* the end stays the end */
    f->next++;
    count_bracket(f, t);
    return *t;
}
