/* mistake.c - what is said about a token that cannot stand where it stands.
 *
 * Requires: the token, and the names of those that could stand there instead. Ensures: at most one
 * message, in the words of the language and not of the grammar; habits of other languages are told
 * what this one writes; recover.c is told where to go on.
 *
 *     when x = 1 {   ->   "'=' names a value; it does not compare", hint "write '==' to compare"
 */
#include "parse.h"
#include "frontend/parser.tab.h"
#include <stdlib.h>
#include <string.h>

/* ---- what to say ----------------------------------------------------------------------------- */

typedef struct Mistake {
    Parser *p;
    const Token *at;     /* the token that cannot stand here; for a line end, the one behind it */
    const Token *before; /* NULL at the beginning of the file */
    const Token *first;  /* of the statement */
    bool ended;          /* it is the end of the statement that came too early */
    int kind;            /* of what came: TK_SEP if ended */
    size_t place;        /* in the statement: 0 is its first token */
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
    static const char *const soft[] = {
        "init",       "input",       "export",    "use",        "as",       "fail",
        "on",         "skip",        "group",     "default",    "store",    "shard",
        "accumulate", "scale",       "master",    "stochastic", "unsigned", "unless",
        "mistake",    "application", "direction", NULL};
    static const char *const operators[] = {
        "'+'", "'-'", "'*'", "'/'", "'%'", "'@'", "'^'", "'<'", "'>'", "'~'",
        "'?'", "and", "or",  "<=",  ">=",  "==",  "!=",  "!~",  NULL};
    static const char *const starts[] = {"number", "string", "name", "'('",
                                         "'['",    "'-'",    "not",  NULL};
    static const char *const statements[] = {"hyper", "const",     "state",  "when", "repeat",
                                             "shape", "direction", "return", NULL};
    static const char *const items[] = {"import", "optimizer",   "transform",
                                        "scaler", "accumulator", "schedule",
                                        "fn",     "recipe",      NULL};
    static const char *const writes[] = {":=", "+=", "-=", "*=", "/=", NULL};
    bool expression = expects(m, "number") && expects(m, "'-'"),
         name = expects(m, "name") && !expression;
    bool statement = expects(m, "hyper") && expects(m, "state"), item = expects(m, "optimizer");
    bool operator= !expression && expects(m, "'+'"), write = expects(m, ":=");
    const char *parts[8];
    int n = 0;
    if (statement) return ", expected a statement";
    if (item)
        return ", expected optimizer, transform, scaler, accumulator, schedule, fn, recipe or "
               "import";
    if (expression) parts[n++] = "an expression";
    if (name) parts[n++] = "a name";
    if (write) parts[n++] = "'=', ':=' or another write";
    if (operator) parts[n++] = "an operator";
    for (int i = 0; i < m->nexpected; i++) {
        const char *e = m->expected[i];
        if (is_one_of(e, soft) || is_one_of(e, statements) || is_one_of(e, items) ||
            (expression && is_one_of(e, starts)) || (operator&& is_one_of(e, operators)) ||
            (write && (is_one_of(e, writes) || strcmp(e, "'='") == 0)) ||
            (operator&&(strcmp(e, "'('") == 0 || strcmp(e, "'['") == 0)) ||
            (name && strcmp(e, "name") == 0))
            continue;
        if (n == 6) return "";
        if (strcmp(e, "end of statement") == 0)
            parts[n++] = "the end of the statement";
        else if (strcmp(e, "string") == 0 || strcmp(e, "number") == 0)
            parts[n++] = arena_printf(m->p->arena, "a %s", e);
        else
            parts[n++] = e[0] == '\'' || strcmp(e, "end of file") == 0
                             ? e
                             : arena_printf(m->p->arena, "'%s'", e);
    }
    StrBuf text = {.arena = m->p->arena};
    for (int i = 0; i < n; i++)
        sb_printf(&text, "%s%s", i == 0 ? ", expected " : i == n - 1 ? " or " : ", ", parts[i]);
    return text.text ? text.text : "";
}

/* What to write instead of a word of another language; *block: it begins a statement with a block.
 */
const char *mistake_habit(const char *word, bool *block)
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
        if (!t || t->kind != TK_IDENT || (i == 0 && m->ended) ||
            !mistake_habit(t->value.text, &block))
            continue;
        /* As a name it is used like one: `let = 3`, `a * pass`. */
        bool leads = t == m->first || t[-1].kind == TK_ELSE ||
                     (t == m->at && (block || strcmp(t->value.text, "then") == 0)) ||
                     strcmp(t->value.text, "if") == 0 || strcmp(t->value.text, "lambda") == 0;
        if (leads && (i < 2 || block)) return t;
    }
    return NULL;
}

static Diag *report_unclosed(const Mistake *m, const Bracket *open)
{
    Parser *p = m->p;
    const char *where = m->at->kind == 0 ? " before the end of the file" : "";
    if (token_is_item_word(m->at->kind))
        where = arena_printf(p->arena, " before '%s'", token_text(p, m->at));
    return diag_report(p->diags, DIAG_UNCLOSED, open->span, (char[]){open->kind, 0}, where);
}

/* A rule's head stands where statements of another are expected: the one before lacks its '}'. */
static bool report_item_inside(Mistake *m)
{
    Parser *p = m->p;
    if (m->base == 0 || !token_is_item_word(m->kind) || m->at != m->first) return false;
    if (!m->at->line_start) {
        diag_report(p->diags, DIAG_ITEM_INSIDE, m->span, token_text(p, m->at), "braces");
        return true;
    }
    report_unclosed(m, &p->filter.open[m->base - 1]);
    for (size_t i = 0; i < m->base; i++)
        recover_inject(p, '}', (Span){m->span.begin, m->span.begin});
    p->recovering = true;
    p->resume = p->at;
    p->nopen_resume = 0;
    return true;
}

static bool report_outside(Mistake *m)
{
    static const char *const words[] = {"import",      "optimizer", "transform", "scaler",
                                        "accumulator", "schedule",  "fn",        "recipe"};
    static const int kinds[] = {TK_IMPORT,      TK_OPTIMIZER, TK_TRANSFORM, TK_SCALER,
                                TK_ACCUMULATOR, TK_SCHEDULE,  TK_FN,        TK_RECIPE};
    Parser *p = m->p;
    if (p->application || m->ended || m->base > 0 || m->at != m->first ||
        token_is_item_word(m->at->kind))
        return false;
    const char *close = m->at->kind == TK_IDENT ? diag_suggest(m->at->value.text, words, 8) : NULL;
    if (close) {
        Diag *diag = diag_report(p->diags, DIAG_UNEXPECTED, m->span, token_describe(p, m->at), "");
        diag_hint(p->diags, diag, "did you mean '%s'?", close);
        for (int i = 0; i < 8; i++) {
            if (words[i] == close) p->tokens[p->at].kind = kinds[i];
        }
        p->recovering = true;
        p->resume = p->at;
        p->nopen_resume = 0;
        return true;
    }
    if (!p->noise) diag_report(p->diags, DIAG_OUTSIDE_RULE, m->span, token_describe(p, m->at));
    p->noise = true;
    return true;
}

static bool report_foreign(Mistake *m)
{
    Parser *p = m->p;
    const Token *word = foreign_word(m);
    bool block;
    if (!word) return false;
    diag_report(p->diags, DIAG_HABIT_WORD, word->span, word->value.text,
                mistake_habit(word->value.text, &block));
    size_t index = (size_t)(word - p->tokens);
    bool condition = strcmp(word->value.text, "if") == 0 || strncmp(word->value.text, "el", 2) == 0;
    if (!condition || (word != m->first && word[-1].kind != TK_ELSE)) return true;
    /* Read on as if `when` stood there, where a block follows. */
    for (size_t i = index + 1;; i++) {
        const Token *t = token_at(p, i);
        if (t->kind == '{') break;
        if (t->kind == 0 || t->kind == '}' || t->kind == TK_SEP || t->kind == ':' ||
            (t->line_start && recover_is_statement(p, i)))
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
        const Token *before = token_at(p, i - 1);
        if (!token_at(p, i)->line_start || filter_can_end(before->kind) || before->kind == '{' ||
            !recover_is_statement(p, i))
            continue;
        diag_report(p->diags, DIAG_UNFINISHED, before->span, token_text(p, before));
        recover_skip(p, i, m->base);
        p->recovering = true;
        return true;
    }
    return false;
}

static bool has_assignment(const Mistake *m)
{
    for (const Token *t = m->first; t < m->at; t++) {
        if (t->kind == '=' || token_is_write(t->kind) || t->kind == TK_WHEN || t->kind == '?')
            return true;
    }
    return false;
}

/* A first word close to one that begins statements: read on as if it were that one. */
static bool report_misspelled(Mistake *m)
{
    static const char *const words[] = {
        "hyper",     "state", "const", "input",   "export", "use",   "repeat",     "shape",
        "direction", "when",  "group", "default", "store",  "shard", "accumulate", "scale"};
    static const int kinds[] = {TK_HYPER,  TK_STATE, TK_CONST,      TK_INPUT, TK_EXPORT, TK_USE,
                                TK_REPEAT, TK_SHAPE, TK_DIRECTION,  TK_WHEN,  TK_GROUP,  TK_DEFAULT,
                                TK_STORE,  TK_SHARD, TK_ACCUMULATE, TK_SCALE};
    enum { RULES = 10, ALL = sizeof kinds / sizeof *kinds };
    Parser *p = m->p;
    bool rule = expects(m, ":="), fits = token_is_name(m->kind) || token_is_keyword(m->kind) ||
                                         m->kind == '(' || m->kind == TK_NUM;
    if (m->place != 1 || m->base == 0 || m->first->kind != TK_IDENT || !fits) return false;
    const char *word = m->first->value.text;
    const char *close =
        rule ? diag_suggest(word, words, RULES) : diag_suggest(word, words + RULES, ALL - RULES);
    if (!close || (m->kind == '(' && strcmp(close, "when") != 0)) return false;
    Diag *diag =
        diag_report(p->diags, DIAG_UNEXPECTED, m->first->span, token_describe(p, m->first), "");
    diag_hint(p->diags, diag, "did you mean '%s'?", close);
    for (int i = 0; i < ALL; i++) {
        if (words[i] == close) p->tokens[p->statement].kind = kinds[i];
    }
    p->recovering = true;
    p->resume = p->statement;
    p->nopen_resume = m->base;
    return true;
}

static bool report_import(Mistake *m)
{
    Parser *p = m->p;
    if (!m->before || m->before->kind != TK_IMPORT) return false;
    Diag *diag = diag_report(p->diags, DIAG_IMPORT_NAME, m->span);
    if (token_is_name(m->kind))
        diag_hint(p->diags, diag, "write import \"%s.opt\"", token_text(p, m->at));
    return true;
}

/* Words and brackets in the wrong place. */
static bool report_misplaced(Mistake *m)
{
    Parser *p = m->p;
    bool closing = m->kind == ')' || m->kind == ']';
    if (m->kind == TK_RETURN)
        diag_report(p->diags, DIAG_RETURN_OUTSIDE, m->span);
    else if (m->first->kind == TK_CONST && m->place == 1)
        diag_report(p->diags, DIAG_CONST_ALONE, m->first->span);
    else if (closing && p->nopen_before == m->base)
        diag_report(p->diags, DIAG_CLOSES_NOTHING, m->span, token_text(p, m->at));
    else if (token_is_keyword(m->kind) && expects(m, "name") && !expects(m, "hyper") &&
             !m->at->line_start)
        diag_report(p->diags, DIAG_KEYWORD_NAME, m->span, token_text(p, m->at));
    else
        return false;
    return true;
}

static bool report_comparison(Mistake *m)
{
    Parser *p = m->p;
    Diag *diag;
    if (m->kind == TK_EQ && token_is_name(m->first->kind) && !has_assignment(m) &&
        expects(m, ":=")) {
        diag = diag_report(p->diags, DIAG_COMPARE_ASSIGN, m->span);
        diag_hint(p->diags, diag, "write ':=' to change a state, '=' to name a value");
    } else if (m->kind == '=' && expects(m, "==") && has_assignment(m)) {
        diag = diag_report(p->diags, DIAG_ASSIGN_COMPARE, m->span);
        diag_hint(p->diags, diag, "write '==' to compare");
    } else if (token_is_comparison(m->kind) && !expects(m, "<=") && expects(m, "and")) {
        diag = diag_report(p->diags, DIAG_COMPARE_CHAIN, m->span);
        diag_hint(p->diags, diag, "write 'a < b and b < c'");
    } else {
        return false;
    }
    return true;
}

static bool report_braces(Mistake *m)
{
    Parser *p = m->p;
    int first = m->first->kind;
    bool header = first == TK_WHEN || first == TK_ELSE || first == TK_REPEAT || first == TK_ON ||
                  first == TK_INIT || first == TK_SHAPE;
    bool without =
        m->kind == TK_SEP || m->kind == ':' || m->at->line_start || recover_is_statement(p, p->at);
    if (!header || !without || !expects(m, "'{'")) return false;
    Diag *diag = diag_report(p->diags, DIAG_NEEDS_BRACES, m->span, token_text(p, m->first));
    diag_hint(p->diags, diag, "write '{' here, and '}' behind them");
    return true;
}

/* Expressions that stand alone. */
static bool report_no_effect(Mistake *m)
{
    Parser *p = m->p;
    int kind = m->kind;
    bool second = m->place == 1 && token_is_name(m->first->kind) && expects(m, ":=");
    bool begins = expects(m, "hyper") && (kind == TK_NUM || kind == TK_STRING || kind == TK_NOT ||
                                          kind == '(' || kind == '[');
    bool goes_on = second && (token_is_comparison(kind) || (kind && strchr("+-*/%^?", kind)));
    if (second && kind == '(' && m->first->kind == TK_IDENT) {
        const char *name = token_text(p, m->first);
        Diag *diag = diag_report(p->diags, DIAG_CALL_STATEMENT, span_join(m->first->span, m->span));
        diag_hint(p->diags, diag,
                  "write 'use %s(…)' for a transform or rule, 'x = %s(…)' for a value", name, name);
        return true;
    }
    if (!begins && !goes_on) return false;
    Diag *diag = diag_report(p->diags, DIAG_EXPRESSION_STATEMENT, m->span);
    diag_hint(p->diags, diag, "name it with '=', or write it with ':=' or '+='");
    return true;
}

static bool report_operator(Mistake *m)
{
    Parser *p = m->p;
    bool operand =
        m->kind == TK_NUM || m->kind == TK_STRING || m->kind == '(' || token_is_name(m->kind);
    if (!operand || !m->before || !token_ends_operand(m->before->kind) || !expects(m, "'*'"))
        return false;
    if (expects(m, "->") || (expects(m, "in") && m->first->kind == TK_REPEAT)) return false;
    Diag *diag = diag_report(p->diags, DIAG_MISSING_OPERATOR, m->span, token_describe(p, m->before),
                             token_describe(p, m->at));
    if (m->before->kind == TK_NUM)
        diag_hint(p->diags, diag, "a product is written %s * %s", token_text(p, m->before),
                  token_text(p, m->at));
    return true;
}

/* What was likely meant, where the grammar alone would only say what it expects. */
static const char *likely(const Mistake *m)
{
    Parser *p = m->p;
    bool after_call = m->before && m->before->kind == ')';
    bool closes_name = m->kind == '(' || m->kind == '[' || m->kind == '.' || m->kind == '*' ||
                       m->kind == '/' || m->kind == '+' || m->kind == '-' || m->kind == '^';
    if (m->first->kind == TK_EXPORT && m->place > 1 && closes_name && !m->ended)
        return "name the value first: 'x = …', then 'export x'; 'as' gives it another name";
    if (m->first->kind == TK_TRANSFORM && m->kind == '{' && m->base == 0)
        return "say what it rewrites: ': gradient', ': direction' or ': apply'";
    if ((m->first->kind == TK_HYPER || m->first->kind == TK_STATE) && m->kind == TK_NUM &&
        m->before && m->before->kind == ':')
        return "behind ':' stands a rate; a value is given with '='";
    if (m->kind == ':' && p->nopen_before > m->base && m->before && token_is_name(m->before->kind))
        return "arguments are named with '=': f(x, peak = 1e-3)";
    if (m->kind == '[' && after_call && !m->at->line_start)
        return "the scope of a reduction stands before its argument: norm[all](g)";
    if (m->kind == ',' && p->nopen_before > m->base &&
        p->filter.open[p->nopen_before - 1].kind == '(')
        return "there are no tuples: give each value a name of its own";
    return NULL;
}

static bool report_unexpected(Mistake *m)
{
    Parser *p = m->p;
    const char *what = m->ended ? "end of statement" : token_describe(p, m->at);
    if (m->ended && m->at->kind == '}') what = "'}'";
    if (m->ended && m->at->kind == 0) what = "end of file";
    Diag *diag = diag_report(p->diags, DIAG_UNEXPECTED, m->span, what, expectation(m));
    if (p->nopen_before > m->base && (m->at->kind == ')' || m->at->kind == ']')) {
        const Bracket *open = &p->filter.open[p->nopen_before - 1];
        diag_note(p->diags, diag, open->span, "'%c' was opened here", open->kind);
    } else if (m->before && m->at->line_start && !m->ended && m->at != m->first) {
        diag_note(p->diags, diag, m->before->span, "the statement goes on behind this line");
    }
    const char *hint = likely(m);
    if (hint) diag_hint(p->diags, diag, "%s", hint);
    return true;
}

static bool report_open_bracket(Mistake *m)
{
    Parser *p = m->p;
    size_t next;
    if (m->kind == 0 && p->nopen_before > 0) {
        report_unclosed(m, &p->filter.open[p->nopen_before - 1]);
        return true;
    }
    if (p->nopen_before == m->base ||
        recover_paren_is_closed(p, p->filter.open[m->base].index, &next))
        return false;
    Diag *diag = report_unclosed(m, &p->filter.open[p->nopen_before - 1]);
    if (m->at->kind != 0) diag_note(p->diags, diag, m->span, "it is still open here");
    if (m->ended) return true;
    recover_skip(p, next > p->statement ? next : p->at, m->base);
    p->recovering = true;
    return true;
}

static bool report_extra_brace(Mistake *m)
{
    Parser *p = m->p;
    if (m->kind != '}' || m->base > 0) return false;
    if (!p->noise) diag_report(p->diags, DIAG_CLOSES_NOTHING, m->span, "}");
    p->noise = true; /* what follows would have been inside */
    return true;
}

/* The first that knows the mistake speaks. */
static bool (*const reporters[])(Mistake *m) = {
    report_open_bracket, report_extra_brace, report_item_inside, report_unfinished,
    report_foreign,      report_misspelled,  report_outside,     report_import,
    report_misplaced,    report_comparison,  report_braces,      report_no_effect,
    report_operator,     report_unexpected,
};

/* An item's head that its '{' does not follow: go on as if it did. */
static void open_body(Mistake *m)
{
    Parser *p = m->p;
    if (!m->ended || m->base > 0 || !token_is_item_word(m->first->kind) ||
        m->first->kind == TK_IMPORT || m->at->kind == 0)
        return;
    if (m->first->kind == TK_FN || m->first->kind == TK_SCHEDULE || !recover_is_statement(p, p->at))
        return;
    if (token_is_item_word(m->at->kind) || !recover_header(p, m->span, 0)) return;
    recover_inject(p, '{', m->span);
    ARENA_PUSH(p->arena, p->filter.open, p->filter.nopen, p->filter.cap,
               ((Bracket){'{', p->at, m->first->span}));
}

void mistake_report(Parser *p, const char *const *expected, int nexpected)
{
    bool ended = p->filter.last == TK_SEP;
    Mistake m = {.p = p,
                 .at = token_at(p, p->at),
                 .first = token_at(p, p->statement),
                 .ended = ended,
                 .kind = ended ? TK_SEP : token_at(p, p->at)->kind,
                 .place = p->at - p->statement,
                 .base = p->nopen_before,
                 .expected = expected,
                 .nexpected = nexpected};
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
        p->quiet =
            p->resume + 1; /* the block whose header could not be repaired has been spoken of */
        return;
    }
    bool silent = p->stopped || p->quiet == p->at + 1;
    for (const Token *t = m.first; t <= m.at && !silent; t++) silent = t->after_mistake;
    for (size_t i = 0; !silent; i++) silent = reporters[i](&m); /* the last one always speaks */
    if (p->stopped) p->filter.next = p->ntokens - 1;
    if (p->recovering) return;
    if (m.at->kind == 0 && !ended) return; /* nothing is left */
    if (ended) {
        p->filter.nopen = m.base;
        p->statement_next = true;
        open_body(&m);
        return;
    }
    recover_skip(p, p->at, m.base);
    p->recovering = true;
}
