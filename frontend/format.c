/* format.c - one way to lay out a `.opt` file: dsoptc fmt.
 *
 * Requires tokens of a file without mistakes. Ensures: the same tokens in the same order, every line
 * break between them where it was (so that statements end where they did), every comment; formatting
 * what was formatted changes nothing.
 *
 * Lines are kept as the author broke them. Two blanks of indent for each brace, four more for a line
 * that continues a statement; one blank around operators, none inside brackets; at most one empty
 * line, none at the ends of a block; comments at the ends of neighbouring lines stand in one column.
 *
 *     optimizer x{          optimizer x {
 *        p-=lr*g # move       p -= lr * g  # move
 *     }                     }
 */
#include "parse.h"
#include "frontend/parser.tab.h"
#include <string.h>

typedef struct Line {
    const char *code;    /* indented; "" for an empty line or one of a comment alone */
    int width;           /* of the code, in characters */
    const char *comment; /* from '#' on; NULL: none */
    bool alone;          /* nothing but the comment, with its indent in `code` */
} Line;

typedef struct Formatter {
    Arena *arena;
    const SourceFile *source;
    Line *lines;
    size_t n, cap;
    StrBuf code;               /* of the line being written */
    int depth;                 /* of braces */
    int choices[NEST_MAX + 2]; /* `?` without its ':' in each bracket that is open */
    int open;
    bool colon_apart;  /* ':' of this statement stands between blanks: of a transform, of recipes */
    bool after_prefix; /* the token before is a sign, not an operator between two values */
    int column;        /* where comments at the ends of lines stand */
} Formatter;

/* ---- lines ---------------------------------------------------------------------------------- */

static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++) n += (*s & 0xc0) != 0x80;
    return n;
}

static void end_line(Formatter *f, const char *comment, bool alone)
{
    const char *code = arena_strdup(f->arena, f->code.text ? f->code.text : "");
    Line line = {code, width_of(code), comment, alone};
    bool empty = !*code && !comment;
    const Line *last = f->n ? &f->lines[f->n - 1] : NULL;
    size_t len = last ? strlen(last->code) : 0;
    bool opens = last && len && last->code[len - 1] == '{' && !last->comment;
    f->code = (StrBuf){.arena = f->arena};
    if (empty && (!last || (!*last->code && !last->comment) || opens)) return;
    ARENA_PUSH(f->arena, f->lines, f->n, f->cap, line);
}

static void indent(Formatter *f, int blanks)
{
    sb_printf(&f->code, "%*s", blanks, "");
}

static void drop_empty_line(Formatter *f)
{
    if (f->n && !*f->lines[f->n - 1].code && !f->lines[f->n - 1].comment) f->n--;
}

/* ---- what lies between two tokens ------------------------------------------------------------ */

/* The comments and line ends from `begin` to `end`; true if the next token begins a line. */
static bool put_gap(Formatter *f, uint32_t begin, uint32_t end, int depth)
{
    const char *text = f->source->text, *s = text + begin, *stop = text + end;
    bool fresh = f->n == 0 && !f->code.len; /* nothing stands on this line yet */
    for (; s < stop; s++) {
        if (*s == '\n') {
            end_line(f, NULL, false);
            fresh = true;
        } else if (*s == '#') {
            size_t n = 0, keep;
            while (s + n < stop && s[n] != '\n') n++;
            for (keep = n; keep > 0 && strchr(" \t\r", s[keep - 1]);) keep--;
            const char *comment = arena_strndup(f->arena, s, keep);
            if (fresh) indent(f, 2 * depth);
            end_line(f, comment, fresh);
            fresh = true;
            s += n; /* at its line end */
        }
    }
    return fresh;
}

/* ---- blanks between two tokens of a line ----------------------------------------------------- */

/* Words after which a bracket belongs to what follows: `when (a or b)`, `in [0, inf)`. */
static bool takes_operand(int kind)
{
    switch (kind) {
    case TK_IN:
    case TK_AND:
    case TK_OR:
    case TK_NOT:
    case TK_WHEN:
    case TK_REPEAT:
    case TK_RETURN:
    case TK_SHAPE:
    case TK_ELSE: return true;
    default: return false;
    }
}

static bool is_prefix(const Token *t, const Token *before)
{
    return t->kind == '-' && (!before || !token_ends_operand(before->kind));
}

static bool touches(const Token *a, const Token *b)
{
    return a->span.end == b->span.begin;
}

static bool is_colon_of_rate(const Formatter *f)
{
    return f->choices[f->open] == 0 && !f->colon_apart;
}

static bool blank_between(const Formatter *f, const Token *a, const Token *b)
{
    int x = a->kind, y = b->kind;
    if (x == '(' || x == '[' || y == ')' || y == ']' || y == ',' || y == TK_SEP) return false;
    if (x == '.' || y == '.' || x == '^' || y == '^' || x == TK_DOTS || y == TK_DOTS)
        return x == ',' || x == TK_IN || y == TK_IN || y == '{' || x == TK_SEP;
    if (y == ':' && is_colon_of_rate(f)) return false;
    if (f->after_prefix) return false;
    if (y == '(' || y == '[') {
        if (x == ')' || x == ']') return false;
        if (x == TK_BLOCK) return touches(a, b) ? y == '[' : true;
        if (token_is_name(x)) return x != TK_IDENT && !touches(a, b);
        return !token_is_keyword(x) || takes_operand(x) || !touches(a, b);
    }
    return true;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void count(Formatter *f, const Token *t)
{
    switch (t->kind) {
    case '(':
    case '[':
    case '{':
        if (f->open < NEST_MAX) f->choices[++f->open] = 0;
        break;
    case ')':
    case ']':
    case '}':
        if (f->open > 0) f->open--;
        break;
    case '?': f->choices[f->open]++; break;
    case ':':
        if (f->choices[f->open] > 0) f->choices[f->open]--;
        break;
    }
    f->depth += t->kind == '{' ? 1 : t->kind == '}' && f->depth > 0 ? -1 : 0;
}

static bool begins_with_apart_colon(int kind)
{
    return kind == TK_TRANSFORM || kind == TK_GROUP || kind == TK_STORE || kind == TK_DEFAULT;
}

static bool ends_in_comment(const Line *l)
{
    return l->comment && !l->alone;
}

/* Comments at the ends of neighbouring lines go to one column. */
static void put_lines(Formatter *f, StrBuf *out)
{
    drop_empty_line(f);
    for (size_t i = 0; i < f->n; i++) {
        int column = 0;
        bool first = i == 0 || !ends_in_comment(&f->lines[i - 1]);
        for (size_t k = i; first && k < f->n && ends_in_comment(&f->lines[k]); k++)
            column = f->lines[k].width > column ? f->lines[k].width : column;
        if (first) f->column = column + 2;
        const Line *l = &f->lines[i];
        int blanks = ends_in_comment(l) ? f->column - l->width : 0;
        sb_printf(out, "%s%*s%s\n", l->code, blanks, "", l->comment ? l->comment : "");
    }
}

/* Writes one token behind what is there; `fresh`: on a line of its own, `statement`: it begins one. */
static void put_token(Formatter *f, const Token *t, const Token *before, bool fresh, bool statement)
{
    bool closes = t->kind == '}';
    if (fresh && closes) drop_empty_line(f);
    if (statement) {
        f->colon_apart = begins_with_apart_colon(t->kind);
        f->choices[f->open] = 0;
    }
    if (fresh)
        indent(f, 2 * (f->depth - closes) + (statement || closes ? 0 : 4));
    else if (before && blank_between(f, before, t))
        sb_puts(&f->code, " ");
    sb_putn(&f->code, f->source->text + (t->span.begin - f->source->base),
            t->span.end - t->span.begin);
    f->after_prefix = is_prefix(t, before);
    count(f, t);
}

void format_tokens(Arena *a, const SourceFile *source, const Token *tokens, StrBuf *out)
{
    Formatter f = {.arena = a, .source = source, .code = {.arena = a}};
    Filter filter = {.raw = tokens, .arena = a};
    const Token *before = NULL;
    bool statement = true; /* the next token begins one */
    uint32_t at = 0;
    for (;;) {
        size_t index;
        Token t = filter_next(&filter, &index);
        const Token *raw = &tokens[index];
        if (t.kind == TK_SEP && filter.next == index) { /* made: nothing is written there */
            statement = true;
            continue;
        }
        uint32_t begin = t.kind ? raw->span.begin - source->base : (uint32_t)source->len;
        bool fresh = put_gap(&f, at, begin, f.depth);
        if (!t.kind) break;
        put_token(&f, raw, before, fresh, statement);
        statement = t.kind == TK_SEP || t.kind == '{' || t.kind == '}';
        at = raw->span.end - source->base;
        before = raw;
    }
    if (f.code.len) end_line(&f, NULL, false);
    put_lines(&f, out);
}
