/* recover.c - after a token that cannot stand where it stands: what to say, and where to go on.
 *
 * Requires: parser.y asks for every token here. Ensures: one message for each statement with a mistake (none where the scanner has
 * spoken already), and the parser sees an end of statement next; headers of blocks are repaired, so that their bodies are checked.
 *
 *     when x >< 1 { m := }   ->   "unexpected '<'", then  SEP when ? { m := SEP }  ->  "unexpected '}'"
 */
#include "parse.h"
#include "frontend/parser.tab.h"
#include <stdlib.h>
#include <string.h>

/* ---- kinds of tokens ------------------------------------------------------------------------- */

static bool is_name(int kind)
{
    return kind == TK_IDENT || (kind != ']' && kind != ')' && kind != '}' && kind != TK_NUM && kind != TK_STRING &&
                                filter_can_end(kind));
}

static bool is_item_word(int kind)
{
    return kind == TK_IMPORT || kind == TK_OPTIMIZER || kind == TK_TRANSFORM || kind == TK_SCALER || kind == TK_ACCUMULATOR ||
           kind == TK_SCHEDULE || kind == TK_FN || kind == TK_RECIPE;
}

static bool is_statement_word(int kind)
{
    return kind == TK_HYPER || kind == TK_CONST || kind == TK_STATE || kind == TK_WHEN || kind == TK_REPEAT || kind == TK_SHAPE ||
           kind == TK_DIRECTION || kind == TK_RETURN;
}

static bool is_hard_word(int kind)
{
    return is_item_word(kind) || is_statement_word(kind) || kind == TK_ELSE || kind == TK_IN || kind == TK_AND || kind == TK_OR ||
           kind == TK_NOT || kind == TK_BLOCK;
}

static bool is_write(int kind)
{
    return kind == TK_DEF || kind == TK_ADDA || kind == TK_SUBA || kind == TK_MULA || kind == TK_DIVA;
}

static bool is_comparison(int kind)
{
    return kind == '<' || kind == '>' || kind == TK_LE || kind == TK_GE || kind == TK_EQ || kind == TK_NE;
}

static bool ends_operand(int kind)
{
    return kind == TK_NUM || kind == TK_STRING || kind == ')' || kind == ']' || is_name(kind);
}

static const Token *token(const Parser *p, size_t index)
{
    return &p->tokens[index < p->ntokens ? index : p->ntokens - 1];
}

static const char *token_text(const Parser *p, const Token *t)
{
    uint32_t n = t->span.end - t->span.begin;
    if (n > 40) return arena_printf(p->arena, "%.*s…", 37, p->source->text + (t->span.begin - p->source->base));
    return arena_strndup(p->arena, p->source->text + (t->span.begin - p->source->base), n);
}

static const char *describe(const Parser *p, const Token *t)
{
    if (t->kind == 0) return "end of file";
    if (t->kind == TK_STRING) return "string";
    if (t->kind == TK_NUM) return arena_printf(p->arena, "number %s", token_text(p, t));
    if (is_name(t->kind)) return arena_printf(p->arena, "name '%s'", token_text(p, t));
    return arena_printf(p->arena, "'%s'", token_text(p, t));
}

/* ---- where to go on -------------------------------------------------------------------------- */

/* Whether a statement begins with this token, as far as it and the next ones tell. */
static bool looks_like_statement(const Parser *p, size_t i)
{
    int kind = token(p, i)->kind, next = token(p, i + 1)->kind, before = i > 0 ? token(p, i - 1)->kind : TK_SEP;
    if (is_item_word(kind) || is_statement_word(kind) || kind == '}') return true;
    if (!is_name(kind)) return false;
    if (is_write(next)) return true;
    if (next == '=') return before != ',' && before != '(' && before != '[';
    if (next == '[') {
        size_t j = i + 2;
        while (j < i + 16 && token(p, j)->kind != ']' && token(p, j)->kind != 0) j++;
        return is_write(token(p, j + 1)->kind);
    }
    bool recipe = (kind == TK_STORE && next == '*') || (kind == TK_DEFAULT && next == TK_ARROW);
    return recipe || (kind != TK_IDENT && (is_name(next) || is_hard_word(next)) && before != ',');
}

/* The index behind the '}' that closes the '{' at i. */
static size_t behind_block(const Parser *p, size_t i)
{
    for (int depth = 0; token(p, i)->kind != 0; i++) {
        int kind = token(p, i)->kind;
        if (kind == '{') depth++;
        if (kind == '}' && --depth == 0) return i + 1;
    }
    return i;
}

/* Whether the bracket that was opened at `from` is closed in its statement; if not, *at is where the next one begins. */
static bool paren_is_closed(const Parser *p, size_t from, size_t *at)
{
    int depth = 1;
    for (size_t i = from + 1;; i++) {
        const Token *t = token(p, i);
        *at = i;
        if (t->kind == 0 || t->kind == '{' || t->kind == '}' || t->kind == TK_SEP) return false;
        if (t->line_start && looks_like_statement(p, i)) return false;
        if (t->kind == '(' || t->kind == '[') depth++;
        if ((t->kind == ')' || t->kind == ']') && --depth == 0) return true;
    }
}

static void inject(Parser *p, int kind, Span at)
{
    if (p->ninject == INJECT_MAX) return;
    Token t = {.kind = kind, .span = at, .value.text = BAD_NAME};
    p->inject[p->ninject++] = t;
}

/* Replaces a header by one that is right, so that the block behind it is parsed as what it is. */
static bool repair_header(Parser *p, Span at, size_t base)
{
    const Token *first = token(p, p->statement);
    int sequence[4] = {0};
    switch (first->kind) {
    case TK_WHEN: case TK_ELSE: sequence[0] = TK_WHEN, sequence[1] = TK_BAD; break;
    case TK_IDENT: { /* a word of another language */
        const char *word = first->value.text;
        bool function = word[0] == 'd' || strncmp(word, "func", 4) == 0; /* def, func, function */
        if (base == 0 && !function) return false;
        sequence[0] = base == 0 ? TK_FN : TK_WHEN, sequence[1] = TK_BAD;
        if (base == 0) sequence[2] = '(', sequence[3] = ')';
        break;
    }
    case TK_REPEAT: sequence[0] = TK_REPEAT, sequence[1] = TK_BAD; break;
    case TK_INIT: sequence[0] = TK_INIT; break;
    case TK_ON: sequence[0] = TK_ON, sequence[1] = TK_BAD; break;
    case TK_SHAPE: sequence[0] = TK_SHAPE, sequence[1] = '[', sequence[2] = TK_DOTS, sequence[3] = ']'; break;
    case TK_OPTIMIZER: case TK_SCALER: case TK_ACCUMULATOR: case TK_RECIPE:
        sequence[0] = first->kind, sequence[1] = TK_BAD;
        break;
    case TK_TRANSFORM: sequence[0] = TK_TRANSFORM, sequence[1] = TK_BAD, sequence[2] = ':', sequence[3] = TK_BAD; break;
    case TK_FN: case TK_SCHEDULE: sequence[0] = TK_FN, sequence[1] = TK_BAD, sequence[2] = '(', sequence[3] = ')'; break;
    default: return false;
    }
    p->ninject = p->next_inject = 0;
    for (int i = 0; i < 4 && sequence[i]; i++) inject(p, sequence[i], at);
    return true;
}

static const char *habit_word(const char *word, bool *block);

/* Words of other languages whose blocks are repaired as `when`. */
static bool begins_foreign_block(const Parser *p)
{
    const Token *first = token(p, p->statement);
    bool block = false;
    return first->kind == TK_IDENT && habit_word(first->value.text, &block) && block;
}

/* Chooses p->resume: the token behind the statement that holds the mistake, from `from` on. base: open brackets around it. */
static void skip_statement(Parser *p, size_t from, size_t base)
{
    int depth = 0; /* of ( and [ */
    size_t i = from;
    for (;; i++) {
        const Token *t = token(p, i);
        if (t->kind == 0) break;
        if (t->kind == TK_SEP) {
            i++;
            break;
        }
        if (t->line_start && i > p->statement) {
            bool looks = looks_like_statement(p, i);
            if (looks || (depth == 0 && i > p->at && filter_can_end(token(p, i - 1)->kind) && filter_can_begin(t->kind))) break;
        }
        if (t->kind == '(' || t->kind == '[') depth++;
        if ((t->kind == ')' || t->kind == ']') && depth > 0) depth--;
        if (t->kind == '}' && base > 0) break;
        if (t->kind != '{') continue;
        int first = token(p, p->statement)->kind;
        bool header = i > p->statement && p->repaired != i + 1 &&
                      (first != TK_IDENT || begins_foreign_block(p)) && repair_header(p, t->span, base);
        if (header) {
            p->repaired = i + 1;
            break;
        }
        depth = 0;
        i = behind_block(p, i) - 1;
        if (token(p, i + 1)->kind == TK_ELSE) continue;
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
    Span at = token(p, p->resume)->span;
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
        const Token *end = token(p, p->ntokens - 1);
        p->filter.next = p->ntokens - 1;
        p->filter.nopen = 0;
        p->at = p->ntokens - 1;
        return *end;
    }
    return t;
}

/* ---- what to say ----------------------------------------------------------------------------- */

typedef struct Mistake {
    Parser *p;
    const Token *at;     /* the token that cannot stand here; for a line end, the one behind it */
    const Token *before; /* NULL at the beginning of the file */
    const Token *first;  /* of the statement */
    bool ended;          /* it is the end of the statement that came too early */
    Span span;
    size_t base; /* open brackets around the statement */
    const char *const *expected;
    int nexpected;
} Mistake;

static bool expects(const Mistake *m, const char *name)
{
    for (int i = 0; i < m->nexpected; i++) {
        if (strcmp(m->expected[i], name) == 0) return true;
    }
    return false;
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(name, *list) == 0) return true;
    }
    return false;
}

/* ", expected ')' or an operator", from what the parser could take; "" where that says little. */
static const char *expectation(const Mistake *m)
{
    static const char *const soft[] = {"init", "input", "export", "use", "as", "fail", "on", "skip", "group", "default", "store", "shard",
        "accumulate", "scale", "master", "stochastic", "unsigned", "unless", "mistake", NULL};
    static const char *const operators[] = {"'+'", "'-'", "'*'", "'/'", "'%'", "'@'", "'^'", "'<'", "'>'", "'~'", "'?'", "and", "or", "<=",
        ">=", "==", "!=", "!~", NULL};
    static const char *const starts[] = {"number", "string", "name", "'('", "'['", "'-'", "not", NULL};
    static const char *const statements[] = {"hyper", "const", "state", "when", "repeat", "shape", "direction", "return", NULL};
    static const char *const items[] = {"import", "optimizer", "transform", "scaler", "accumulator", "schedule", "fn", "recipe", NULL};
    static const char *const writes[] = {":=", "+=", "-=", "*=", "/=", NULL};
    bool expression = expects(m, "number") && expects(m, "'-'"), name = expects(m, "name") && !expression;
    bool statement = expects(m, "hyper") && expects(m, "state"), item = expects(m, "optimizer");
    bool operator = !expression && expects(m, "'+'"), write = expects(m, ":=");
    const char *parts[8];
    int n = 0;
    if (statement) return ", expected a statement";
    if (item) return ", expected optimizer, transform, scaler, accumulator, schedule, fn, recipe or import";
    if (expression) parts[n++] = "an expression";
    if (name) parts[n++] = "a name";
    if (write) parts[n++] = "'=', ':=' or another write";
    if (operator) parts[n++] = "an operator";
    for (int i = 0; i < m->nexpected; i++) {
        const char *e = m->expected[i];
        if (is_one_of(e, soft) || is_one_of(e, statements) || is_one_of(e, items) || (expression && is_one_of(e, starts)) ||
            (operator && is_one_of(e, operators)) || (write && (is_one_of(e, writes) || strcmp(e, "'='") == 0)) ||
            (operator && (strcmp(e, "'('") == 0 || strcmp(e, "'['") == 0)) || (name && strcmp(e, "name") == 0))
            continue;
        if (n == 6) return "";
        if (strcmp(e, "end of statement") == 0)
            parts[n++] = "the end of the statement";
        else if (strcmp(e, "string") == 0 || strcmp(e, "number") == 0)
            parts[n++] = arena_printf(m->p->arena, "a %s", e);
        else
            parts[n++] = e[0] == '\'' || strcmp(e, "end of file") == 0 ? e : arena_printf(m->p->arena, "'%s'", e);
    }
    StrBuf text = {.arena = m->p->arena};
    for (int i = 0; i < n; i++) sb_printf(&text, "%s%s", i == 0 ? ", expected " : i == n - 1 ? " or " : ", ", parts[i]);
    return text.text ? text.text : "";
}

/* What to write instead of a word of another language; *block: it begins a statement with a block. */
static const char *habit_word(const char *word, bool *block)
{
    static const struct {
        const char *word, *instead;
        bool block;
    } habits[] = {
        {"if", "write 'when c { … }' for statements, 'c ? a : b' for values", true},
        {"elif", "write 'else when c { … }'", true},
        {"elseif", "write 'else when c { … }'", true},
        {"for", "write 'repeat i in 0..K { … }' with a constant K", true},
        {"while", "loops have a constant number of turns: 'repeat i in 0..K { … }'", true},
        {"switch", "write 'when c { … } else when d { … }'", true},
        {"let", "'x = …' names a value", false},
        {"var", "'x = …' names a value, 'state x = 0' keeps one", false},
        {"float", "values have no written type: 'x = …'", false},
        {"double", "values have no written type: 'x = …'", false},
        {"int", "values have no written type: 'x = …'", false},
        {"auto", "'x = …' names a value", false},
        {"def", "write 'fn f(x) = …'", true},
        {"function", "write 'fn f(x) = …'", true},
        {"func", "write 'fn f(x) = …'", true},
        {"class", "write 'optimizer NAME { … }'", true},
        {"param", "write 'hyper lr = 1e-3'", false},
        {"lambda", "write 'fn f(x) = …' beside the rule", false},
        {"then", "the statements stand in braces", false},
        {"include", "write 'import \"NAME.opt\"'", false},
        {"from", "write 'import \"NAME.opt\"'", false},
        {"pass", "an empty block is '{ }'", false},
    };
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++) {
        if (strcmp(habits[i].word, word) != 0) continue;
        *block = habits[i].block;
        return habits[i].instead;
    }
    return NULL;
}

/* The word of another language that this mistake comes from, NULL if none. */
static const Token *foreign_word(const Mistake *m)
{
    const Token *candidates[] = {m->at, m->before, m->first};
    bool block;
    for (int i = 0; i < 3; i++) {
        const Token *t = candidates[i];
        if (!t || t->kind != TK_IDENT || (i == 0 && m->ended) || !habit_word(t->value.text, &block)) continue;
        /* As a name it is used like one: `let = 3`, `a * pass`. */
        bool leads = t == m->first || t[-1].kind == TK_ELSE || (t == m->at && (block || strcmp(t->value.text, "then") == 0)) ||
                     strcmp(t->value.text, "if") == 0 || strcmp(t->value.text, "lambda") == 0;
        if (leads && (i < 2 || block)) return t;
    }
    return NULL;
}

static Diag *report_unclosed(const Mistake *m, const Bracket *open)
{
    Parser *p = m->p;
    const char *where = m->at->kind == 0 ? " before the end of the file" : "";
    if (is_item_word(m->at->kind)) where = arena_printf(p->arena, " before '%s'", token_text(p, m->at));
    return diag_report(p->diags, DIAG_UNCLOSED, open->span, (char[]){open->kind, 0}, where);
}

/* A rule's head stands where statements of another are expected: the one before lacks its '}'. */
static bool report_item_inside(Mistake *m)
{
    Parser *p = m->p;
    if (m->ended || m->base == 0 || !is_item_word(m->at->kind)) return false;
    const Bracket *open = &p->filter.open[m->base - 1];
    if (m->at != m->first || !m->at->line_start) {
        if (m->at != m->first) return false;
        diag_report(p->diags, DIAG_ITEM_INSIDE, m->span, token_text(p, m->at), "braces");
        return true;
    }
    report_unclosed(m, open);
    for (size_t i = 0; i < m->base; i++) inject(p, '}', (Span){m->span.begin, m->span.begin});
    p->recovering = true;
    p->resume = p->at;
    p->nopen_resume = 0;
    return true;
}

static bool report_outside(Mistake *m)
{
    static const char *const words[] = {"import", "optimizer", "transform", "scaler", "accumulator", "schedule", "fn", "recipe"};
    static const int kinds[] = {TK_IMPORT, TK_OPTIMIZER, TK_TRANSFORM, TK_SCALER, TK_ACCUMULATOR, TK_SCHEDULE, TK_FN, TK_RECIPE};
    Parser *p = m->p;
    if (m->ended || m->base > 0 || m->at != m->first || is_item_word(m->at->kind)) return false;
    const char *close = m->at->kind == TK_IDENT ? diag_suggest(m->at->value.text, words, 8) : NULL;
    if (close) {
        Diag *diag = diag_report(p->diags, DIAG_UNEXPECTED, m->span, describe(p, m->at), "");
        diag_hint(p->diags, diag, "did you mean '%s'?", close);
        for (int i = 0; i < 8; i++) {
            if (words[i] == close) p->tokens[p->at].kind = kinds[i];
        }
        p->recovering = true;
        p->resume = p->at;
        p->nopen_resume = 0;
        return true;
    }
    if (!p->noise) diag_report(p->diags, DIAG_OUTSIDE_RULE, m->span, describe(p, m->at));
    p->noise = true;
    return true;
}

static bool report_foreign(Mistake *m)
{
    Parser *p = m->p;
    const Token *word = foreign_word(m);
    bool block;
    if (!word) return false;
    diag_report(p->diags, DIAG_HABIT_WORD, word->span, word->value.text, habit_word(word->value.text, &block));
    size_t index = (size_t)(word - p->tokens);
    bool condition = strcmp(word->value.text, "if") == 0 || strncmp(word->value.text, "el", 2) == 0;
    if (!condition || (word != m->first && word[-1].kind != TK_ELSE)) return true;
    /* Read on as if `when` stood there, where a block follows. */
    for (size_t i = index + 1;; i++) {
        const Token *t = token(p, i);
        if (t->kind == '{') break;
        if (t->kind == 0 || t->kind == '}' || t->kind == TK_SEP || t->kind == ':' || (t->line_start && looks_like_statement(p, i)))
            return true;
    }
    p->tokens[index].kind = TK_WHEN;
    p->recovering = true;
    p->resume = index;
    p->nopen_resume = m->base;
    return true;
}

/* The line before ended with something that needs more, and this one begins a statement. */
static bool report_unfinished(Mistake *m)
{
    Parser *p = m->p;
    for (size_t i = p->at; i + 1 >= p->at && i > p->statement; i--) {
        const Token *before = token(p, i - 1);
        if (!token(p, i)->line_start || filter_can_end(before->kind) || before->kind == '{' || !looks_like_statement(p, i)) continue;
        diag_report(p->diags, DIAG_UNFINISHED, before->span, token_text(p, before));
        skip_statement(p, i, m->base);
        p->recovering = true;
        return true;
    }
    return false;
}

static bool has_assignment(const Mistake *m)
{
    for (const Token *t = m->first; t < m->at; t++) {
        if (t->kind == '=' || is_write(t->kind) || t->kind == TK_WHEN || t->kind == '?') return true;
    }
    return false;
}

/* The mistakes that have a message of their own. */
static bool report_particular(Mistake *m)
{
    Parser *p = m->p;
    DiagSink *d = p->diags;
    int kind = m->ended ? TK_SEP : m->at->kind, before = m->before ? m->before->kind : 0, first = m->first->kind;
    size_t place = p->at - p->statement; /* 0: the first token of the statement */
    Diag *diag;
    if (before == TK_IMPORT) {
        diag = diag_report(d, DIAG_IMPORT_NAME, m->span);
        if (is_name(kind)) diag_hint(d, diag, "write import \"%s.opt\"", token_text(p, m->at));
        return true;
    }
    if (kind == TK_RETURN) return diag_report(d, DIAG_RETURN_OUTSIDE, m->span);
    if (first == TK_CONST && place == 1) return diag_report(d, DIAG_CONST_ALONE, m->first->span);
    if ((kind == ')' || kind == ']') && p->nopen_before == m->base)
        return diag_report(d, DIAG_CLOSES_NOTHING, m->span, token_text(p, m->at));
    if (kind == TK_EQ && is_name(first) && before != TK_AND && !has_assignment(m) && expects(m, ":=")) {
        diag = diag_report(d, DIAG_COMPARE_ASSIGN, m->span);
        diag_hint(d, diag, "write ':=' to change a state, '=' to name a value");
        return true;
    }
    if (kind == '=' && expects(m, "==") && has_assignment(m)) {
        diag = diag_report(d, DIAG_ASSIGN_COMPARE, m->span);
        diag_hint(d, diag, "write '==' to compare");
        return true;
    }
    if (is_comparison(kind) && !expects(m, "<=") && expects(m, "and")) {
        diag = diag_report(d, DIAG_COMPARE_CHAIN, m->span);
        diag_hint(d, diag, "write 'a < b and b < c'");
        return true;
    }
    bool header = first == TK_WHEN || first == TK_ELSE || first == TK_REPEAT || first == TK_ON || first == TK_INIT || first == TK_SHAPE;
    if (header && expects(m, "'{'") && (kind == TK_SEP || kind == ':' || m->at->line_start || looks_like_statement(p, p->at))) {
        diag = diag_report(d, DIAG_NEEDS_BRACES, m->span, token_text(p, m->first));
        diag_hint(d, diag, "write '{' here, and '}' behind them");
        return true;
    }
    if (kind == '(' && place == 1 && first == TK_IDENT && expects(m, ":=")) {
        diag = diag_report(d, DIAG_CALL_STATEMENT, span_join(m->first->span, m->span));
        diag_hint(d, diag, "write 'use %s(…)' for a transform or rule, 'x = %s(…)' for a value", token_text(p, m->first),
                  token_text(p, m->first));
        return true;
    }
    bool operator = kind == '+' || kind == '-' || kind == '*' || kind == '/' || kind == '%' || kind == '^' || kind == '?' || is_comparison(kind);
    if (expects(m, "hyper") ? kind == TK_NUM || kind == '(' || kind == '[' || kind == TK_NOT || kind == TK_STRING
                            : operator && place == 1 && is_name(first) && expects(m, ":=")) {
        diag = diag_report(d, DIAG_EXPRESSION_STATEMENT, m->span);
        diag_hint(d, diag, "name it with '=', or write it with ':=' or '+='");
        return true;
    }
    if (is_hard_word(kind) && expects(m, "name") && !expects(m, "hyper") && !m->at->line_start)
        return diag_report(d, DIAG_KEYWORD_NAME, m->span, token_text(p, m->at));
    bool operand = kind == TK_NUM || kind == TK_STRING || is_name(kind) || kind == '(';
    if (operand && m->before && ends_operand(before) && expects(m, "'*'")) {
        diag = diag_report(d, DIAG_MISSING_OPERATOR, m->span, describe(p, m->before), describe(p, m->at));
        if (before == TK_NUM) diag_hint(d, diag, "a product is written %s * %s", token_text(p, m->before), token_text(p, m->at));
        return true;
    }
    return false;
}

static void report_unexpected(const Mistake *m)
{
    Parser *p = m->p;
    const char *what = m->ended ? "end of statement" : describe(p, m->at);
    if (m->ended && m->at->kind == '}') what = "'}'";
    if (m->ended && m->at->kind == 0) what = "end of file";
    Diag *diag = diag_report(p->diags, DIAG_UNEXPECTED, m->span, what, expectation(m));
    if (p->nopen_before > m->base && (m->at->kind == ')' || m->at->kind == ']')) {
        const Bracket *open = &p->filter.open[p->nopen_before - 1];
        diag_note(p->diags, diag, open->span, "'%c' was opened here", open->kind);
    } else if (m->before && m->at->line_start && !m->ended && m->at != m->first) {
        diag_note(p->diags, diag, m->before->span, "the statement goes on behind this line, because of '%s'", token_text(p, m->before));
    }
}

static void report(Mistake *m)
{
    Parser *p = m->p;
    size_t next;
    if (m->at->kind == 0 && !m->ended && p->nopen_before > 0) {
        report_unclosed(m, &p->filter.open[p->nopen_before - 1]);
    } else if (p->nopen_before > m->base && !paren_is_closed(p, p->filter.open[m->base].index, &next)) {
        Diag *diag = report_unclosed(m, &p->filter.open[p->nopen_before - 1]);
        if (m->at->kind != 0) diag_note(p->diags, diag, m->span, "it is still open here");
        if (m->ended) return;
        skip_statement(p, next > p->statement ? next : p->at, m->base);
        p->recovering = true;
    } else if (!m->ended && m->at->kind == '}' && m->base == 0) {
        if (!p->noise) diag_report(p->diags, DIAG_CLOSES_NOTHING, m->span, "}");
        p->noise = true; /* what follows would have been inside */
    } else if (!report_item_inside(m) && !report_unfinished(m) && !report_foreign(m) && !report_outside(m) &&
               !report_particular(m)) {
        report_unexpected(m);
    }
}

/* An item's head that its '{' does not follow: go on as if it did. */
static void open_body(Mistake *m)
{
    Parser *p = m->p;
    if (!m->ended || m->base > 0 || !is_item_word(m->first->kind) || m->first->kind == TK_IMPORT || m->at->kind == 0) return;
    if (m->first->kind == TK_FN || m->first->kind == TK_SCHEDULE || !looks_like_statement(p, p->at)) return;
    if (is_item_word(m->at->kind) || !repair_header(p, m->span, 0)) return;
    inject(p, '{', m->span);
    ARENA_PUSH(p->arena, p->filter.open, p->filter.nopen, p->filter.cap, ((Bracket){'{', p->at, m->first->span}));
}

void recover_report(Parser *p, const char *const *expected, int nexpected)
{
    bool ended = p->filter.last == TK_SEP;
    Mistake m = {.p = p, .at = token(p, p->at), .first = token(p, p->statement), .ended = ended, .base = p->nopen_before,
                 .expected = expected, .nexpected = nexpected};
    if (ended && p->at > 0 && p->filter.next > p->at) m.at = token(p, p->at); /* a written ';' */
    m.before = p->at > 0 ? m.at - 1 : NULL;
    m.span = m.at->span;
    if (ended && m.at->kind != TK_SEP) {
        uint32_t end = m.before ? m.before->span.end : m.span.begin;
        m.span = m.at->kind == '}' && !m.at->line_start ? m.at->span : (Span){end, end + 1};
    }
    while (m.base > 0 && p->filter.open[m.base - 1].kind != '{') m.base--;

    p->broken = true;
    p->ninject = p->next_inject = 0;
    p->stuck = p->stuck_at == p->at ? p->stuck + 1 : 0;
    p->stuck_at = p->at;
    if (p->stuck > 3) { /* a repair that repairs nothing must not go on for ever */
        p->stopped = true;
        p->filter.next = p->ntokens - 1;
    }
    if (p->injected) {
        p->injected = false;
        p->recovering = true;
        p->resume = p->filter.next;
        p->nopen_resume = p->filter.nopen;
        p->quiet = p->resume + 1; /* the block whose header could not be repaired has been spoken of */
        return;
    }
    bool silent = p->stopped || p->quiet == p->at + 1;
    for (const Token *t = m.first; t <= m.at && !silent; t++) silent = t->after_mistake;
    if (!silent) report(&m);
    if (p->stopped) p->filter.next = p->ntokens - 1;
    if (p->recovering) return;
    if (m.at->kind == 0 && !ended) return; /* nothing is left */
    if (ended) {
        p->filter.nopen = m.base;
        p->statement_next = true;
        open_body(&m);
        return;
    }
    skip_statement(p, p->at, m.base);
    p->recovering = true;
}
