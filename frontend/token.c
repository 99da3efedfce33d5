/* token.c - what kind of token it is, and what it is called in messages.
 *
 *     TK_WHEN  ->  a statement word, a keyword;  token_describe: "'when'", "name 'lr'", "end of
 * file"
 */
#include "parse.h"
#include "frontend/parser.tab.h"

bool token_is_name(int kind)
{
    return kind == TK_IDENT || (kind != ']' && kind != ')' && kind != '}' && kind != TK_NUM &&
                                kind != TK_STRING && filter_can_end(kind));
}

bool token_is_item_word(int kind)
{
    return kind == TK_IMPORT || kind == TK_OPTIMIZER || kind == TK_TRANSFORM || kind == TK_SCALER ||
           kind == TK_ACCUMULATOR || kind == TK_SCHEDULE || kind == TK_FN || kind == TK_RECIPE;
}

bool token_is_statement_word(int kind)
{
    return kind == TK_HYPER || kind == TK_CONST || kind == TK_STATE || kind == TK_WHEN ||
           kind == TK_REPEAT || kind == TK_SHAPE || kind == TK_DIRECTION || kind == TK_RETURN;
}

bool token_is_keyword(int kind)
{
    bool soft = kind == TK_DIRECTION;
    return token_is_item_word(kind) || (token_is_statement_word(kind) && !soft) ||
           kind == TK_ELSE || kind == TK_IN || kind == TK_AND || kind == TK_OR || kind == TK_NOT ||
           kind == TK_BLOCK;
}

bool token_is_write(int kind)
{
    return kind == TK_DEF || kind == TK_ADDA || kind == TK_SUBA || kind == TK_MULA ||
           kind == TK_DIVA;
}

bool token_is_comparison(int kind)
{
    return kind == '<' || kind == '>' || kind == TK_LE || kind == TK_GE || kind == TK_EQ ||
           kind == TK_NE;
}

bool token_ends_operand(int kind)
{
    return kind == TK_NUM || kind == TK_STRING || kind == ')' || kind == ']' || token_is_name(kind);
}

const Token *token_at(const Parser *p, size_t index)
{
    return &p->tokens[index < p->ntokens ? index : p->ntokens - 1];
}

const char *token_text(const Parser *p, const Token *t)
{
    uint32_t n = t->span.end - t->span.begin;
    if (n > 40)
        return arena_printf(p->arena, "%.*s…", 37,
                            p->source->text + (t->span.begin - p->source->base));
    return arena_strndup(p->arena, p->source->text + (t->span.begin - p->source->base), n);
}

const char *token_describe(const Parser *p, const Token *t)
{
    if (t->kind == 0) return "end of file";
    if (t->kind == TK_STRING) return "string";
    if (t->kind == TK_NUM) return arena_printf(p->arena, "number %s", token_text(p, t));
    if (token_is_name(t->kind)) return arena_printf(p->arena, "name '%s'", token_text(p, t));
    return arena_printf(p->arena, "'%s'", token_text(p, t));
}
