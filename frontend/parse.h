/* parse.h - within the frontend: what scanner, filter, parser and recovery share.
 *
 * A file is scanned whole (lexer.l), the filter puts statement ends between its tokens as the
 * parser asks for them (filter.c), the parser builds the tree (parser.y, build.c); after a mistake
 * mistake.c reports it and recover.c finds the token to go on from.
 *
 *     m := g⏎v := g*g   ->   m := g SEP v := g * g SEP   ->   Block {WRITE m, WRITE v}
 */
#ifndef FRONTEND_PARSE_H
#define FRONTEND_PARSE_H
#include "ast.h"
#include "recipe.h"

enum { TOKENS_MAX = 1 << 20 }; /* per file */

typedef struct Token {
    int kind; /* enum frontend_yytokentype; TK_SEP for ';' and, from the filter, for line ends */
    Span span;
    bool line_start;    /* the first on its line */
    bool after_mistake; /* the scanner reported something between the token before and the end of
                           this one */
    union {
        double num;
        const char *text; /* interned name, or a string's contents */
    } value;
} Token;

typedef struct TokenList {
    Token *items;
    size_t n, cap;
} TokenList;

/* Scans file `file`; the list ends with an end-of-file token. */
TokenList lex_file(Arena *a, DiagSink *d, Ast *names, int file);

typedef struct Bracket {
    char kind;    /* ( [ { */
    size_t index; /* raw index of the token that opened it */
    Span span;
} Bracket;

typedef struct Filter {
    const Token *raw;
    size_t next; /* index of the raw token to come */
    int last;    /* kind of the last token given out; 0: none yet */
    Bracket *open;
    size_t nopen, cap;
    Arena *arena;
} Filter;

/* The next token with statement ends put in; *index: its raw index (of a made SEP: the token after
 * it). */
Token filter_next(Filter *f, size_t *index);
bool filter_can_end(int kind);         /* whether a statement may end with it */
bool filter_can_begin(int kind);       /* whether a statement may begin with it */
bool filter_is_paren(const Filter *f); /* the innermost open bracket is ( or [ */

enum { INJECT_MAX = NEST_MAX + 8 };

typedef struct Parser {
    Arena *arena;
    DiagSink *diags;
    Ast *ast;
    const SourceFile *source;
    Token *tokens;
    size_t ntokens;
    Filter filter;
    size_t nopen_before; /* open brackets before the token last given out */
    size_t at;           /* raw index of the token last given out */
    size_t statement;    /* raw index of the first token of the statement */
    bool statement_next; /* the next token begins one */
    /* recovery */
    bool recovering; /* a mistake was reported; the parser is about to skip */
    size_t resume;   /* raw index to go on from */
    size_t nopen_resume;
    size_t repaired; /* raw index + 1 of the '{' whose header was repaired last */
    Token inject[INJECT_MAX];
    size_t ninject, next_inject;
    bool injected;   /* the token last given out was one of these */
    size_t stuck_at; /* where the last mistake was, and how many there were in a row */
    int stuck;
    size_t quiet;            /* raw index + 1 of a token about which nothing is said */
    bool noise;              /* statements outside of any item: reported once */
    bool broken;             /* a mistake stands in the item that is being parsed */
    bool stopped;            /* no further message from the parser for this file */
    bool application, begun; /* the text is an application, not a file */
    App *app;                /* that one */
    Block *app_uses;
    const char *doc; /* the comment above the first import, until an item takes it */
} Parser;

/* Parses one file's tokens, appending its items to p->ast. */
void parse_tokens(Parser *p);

/* token.c */
bool token_is_name(int kind); /* soft keywords, too */
bool token_is_item_word(int kind);
bool token_is_statement_word(int kind);
bool token_is_keyword(int kind); /* never a name */
bool token_is_write(int kind);
bool token_is_comparison(int kind);
bool token_ends_operand(int kind);
const Token *token_at(const Parser *p, size_t index); /* past the end: the end */
const char *token_text(const Parser *p, const Token *t);
const char *token_describe(const Parser *p, const Token *t);

/* recover.c: the parser's tokens, and where to go on after a mistake */
Token recover_next(Parser *p);
void recover_too_deep(Parser *p, Span at); /* reports, and ends the parse of this file */
bool recover_is_statement(const Parser *p, size_t i);
bool recover_paren_is_closed(const Parser *p, size_t from, size_t *at);
void recover_inject(Parser *p, int kind, Span at);
bool recover_header(Parser *p, Span at, size_t base);
void recover_skip(Parser *p, size_t from, size_t base);

/* mistake.c: reports that the token given out last cannot stand here, and has recover.c choose
 * where to go on. `expected`: names of the tokens that could. */
void mistake_report(Parser *p, const char *const *expected, int nexpected);
/* What to write instead of a word of another language, NULL if it is none; *block: it begins a
 * statement with a block. */
const char *mistake_habit(const char *word, bool *block);

/* format.c: the file of these tokens, which the parser accepted, laid out anew. */
void format_tokens(Arena *a, const SourceFile *source, const Token *tokens, StrBuf *out);

/* build.c: nodes, with the checks that need no names */
typedef struct ExprList {
    Expr **items;
    Name *names;
    size_t n, cap, ncap;
} ExprList;
typedef struct NameList {
    Name *items, *aliases;
    size_t n, cap, acap;
} NameList;
typedef struct DeclList {
    Decl *items;
    size_t n, cap;
} DeclList;

Span span_join(Span a, Span b);
Expr *build_expr(Parser *p, ExprKind kind, Span span);
Expr *build_op(Parser *p, Op op, Span span, Expr *a, Expr *b);
Expr *build_node(Parser *p, ExprKind kind, Span span, Expr *a, Expr *b, Expr *c);
Expr *build_number(Parser *p, Span span, double value);
Expr *build_name(Parser *p, Name name);
Expr *build_call(Parser *p, Span span, Name name, ExprList *args);
Expr *build_reduce(Parser *p, Span span, Name name, Expr *scope, bool block, ExprList *args);
Expr *build_match(Parser *p, Span span, Expr *value, Name pattern, bool negated);
Expr *build_list(Parser *p, Span span, ExprList *items);
void list_add(Parser *p, ExprList *l, Name name, Expr *e);
void names_add(Parser *p, NameList *l, Name name, Name alias);
void decls_add(Parser *p, DeclList *l, Decl d);
void block_add(Parser *p, Block *b, Stmt *s);
void item_add(Parser *p, Item *item);
Stmt *build_stmt(Parser *p, StmtKind kind, Span span);
App *build_app(Parser *p, Span span, Name name, ExprList *args);
/* Reports a declared name that the language uses; gradient: `g` is allowed here. */
void check_declared(Parser *p, Name name, bool gradient);
/* Whether a function of this name is part of the language. */
bool builtin_function(const char *name);
#endif
