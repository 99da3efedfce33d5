/* ir_parse.c - reads the text form of a module (docs/ir.md): an input like any other, so every byte
 * is checked.
 *
 * Ensures: what is returned has operands before users, slot numbers in range and counts within the
 * limits of ir.h; types are as written (ir_parse has the verifier compare them). Errors are one
 * line, "LINE:COLUMN: what was expected".
 *
 *     "  %1:f64.global = sqrt %5\n"  ->  NULL, "7:24: %5 is not defined above"
 */
#include "ir_impl.h"
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 16 << 20 };

typedef struct Text {
    const char *at, *line_start;
    int line;
    bool failed;
    StrBuf *error;
    Arena *arena;
    IrModule *m;
} Text;

/* ---- characters and tokens ------------------------------------------------------------------- */

static void fail_at(Text *t, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void fail_at(Text *t, const char *at, const char *fmt, ...)
{
    if (t->failed) return;
    t->failed = true;
    va_list ap;
    va_start(ap, fmt);
    char *why = arena_vprintf(t->arena, fmt, ap);
    va_end(ap);
    sb_printf(t->error, "%d:%d: %s", t->line, (int)(at - t->line_start) + 1,
              why ? why : "out of memory");
}

/* How the text goes on, for messages: at most 20 printable bytes. */
static const char *next_word(Text *t)
{
    if (*t->at == '\n') return "end of line";
    if (*t->at == 0) return "end of text";
    size_t n = 0;
    while (n < 20 && t->at[n] > 32 && t->at[n] < 127) n++;
    return n ? arena_printf(t->arena, "'%.*s'", (int)n, t->at)
             : arena_printf(t->arena, "byte 0x%02x", (unsigned char)*t->at);
}

static void skip_blanks(Text *t)
{
    while (*t->at == ' ' || *t->at == '\t') t->at++;
    if (*t->at == '#') {
        while (*t->at && *t->at != '\n') t->at++;
    }
}

/* Goes to the first token of the next line that has one; false at the end. */
static bool next_line(Text *t)
{
    skip_blanks(t);
    while (*t->at == '\n' || (*t->at == '\r' && t->at[1] == '\n')) {
        t->at += *t->at == '\r' ? 2 : 1;
        t->line++;
        t->line_start = t->at;
        skip_blanks(t);
    }
    return *t->at != 0;
}

static void end_line(Text *t)
{
    skip_blanks(t);
    if (*t->at == '\r' && t->at[1] == '\n') t->at++;
    if (*t->at && *t->at != '\n') fail_at(t, t->at, "expected end of line, found %s", next_word(t));
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.[]-", c));
}

bool ir_is_name(const char *s)
{
    size_t n = 0;
    while (n <= IR_MAX_NAME && is_name_char(s[n])) n++;
    return n > 0 && n <= IR_MAX_NAME && s[n] == 0;
}

/* Takes `word` if it is next and ends there. */
static bool take(Text *t, const char *word)
{
    skip_blanks(t);
    size_t n = strlen(word);
    if (strncmp(t->at, word, n) != 0) return false;
    if (is_name_char(word[n - 1]) && word[n - 1] != ']' && is_name_char(t->at[n])) return false;
    t->at += n;
    return true;
}

static bool expect(Text *t, const char *word)
{
    if (t->failed) return false;
    if (take(t, word)) return true;
    fail_at(t, t->at, "expected '%s', found %s", word, next_word(t));
    return false;
}

static const char *name(Text *t, const char *what)
{
    skip_blanks(t);
    size_t n = 0;
    while (is_name_char(t->at[n])) n++;
    if (n == 0) fail_at(t, t->at, "expected %s, found %s", what, next_word(t));
    if (n > IR_MAX_NAME) fail_at(t, t->at, "a name of %zu bytes; %d is the limit", n, IR_MAX_NAME);
    if (t->failed) return "";
    const char *s = arena_strndup(t->arena, t->at, n);
    t->at += n;
    return s;
}

static uint32_t number(Text *t, const char *what)
{
    uint64_t v = 0;
    const char *start = t->at;
    while (isdigit((unsigned char)*t->at) && v < UINT32_MAX)
        v = v * 10 + (uint64_t)(*t->at++ - '0');
    if (t->at == start) fail_at(t, start, "expected %s, found %s", what, next_word(t));
    if (v >= UINT32_MAX) fail_at(t, start, "number too large");
    return t->failed ? 0 : (uint32_t)v;
}

/* ---- floating point -------------------------------------------------------------------------- */

/* 0x1.8p+1: at most 53 significant bits, so that nothing is rounded. */
static double hex_float(Text *t, const char *start)
{
    uint64_t digits = 0;
    int scale = 0, seen = 0;
    bool point = false;
    for (t->at += 2; isxdigit((unsigned char)*t->at) || (*t->at == '.' && !point); t->at++) {
        if (*t->at == '.') {
            point = true;
            continue;
        }
        int c = tolower((unsigned char)*t->at);
        digits = digits << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
        scale -= point ? 4 : 0;
        if (++seen > 16) break;
    }
    if (seen == 0 || seen > 16 || (digits && (digits >> __builtin_ctzll(digits)) >> 53)) {
        fail_at(t, start, "a hexadecimal number has 1 to 14 digits here");
        return 0;
    }
    if (*t->at == 'p' || *t->at == 'P') {
        t->at++;
        bool negative = *t->at == '-';
        if (*t->at == '-' || *t->at == '+') t->at++;
        uint32_t e = number(t, "an exponent");
        if (e > 5000) e = 5000;
        scale += negative ? -(int)e : (int)e;
    }
    double v = ldexp((double)digits, scale);
    if (isinf(v) || (digits && v == 0) || (v != 0 && ldexp(v, -scale) != (double)digits))
        fail_at(t, start, "the number is not a value of f64");
    return v;
}

static double decimal(Text *t, const char *start)
{
    size_t n = strspn(t->at, "0123456789.");
    if (n && (t->at[n] == 'e' || t->at[n] == 'E')) {
        n++;
        if (t->at[n] == '-' || t->at[n] == '+') n++;
        n += strspn(t->at + n, "0123456789");
    }
    if (n == 0 || n > 400 || !isdigit((unsigned char)*t->at)) {
        fail_at(t, start, "expected a number, found %s", next_word(t));
        return 0;
    }
    int range = 0;
    double v = number_parse(arena_strndup(t->arena, t->at, n), NULL, &range);
    if (range) fail_at(t, start, "the number is not a value of f64");
    t->at += n;
    return v;
}

static double real(Text *t)
{
    skip_blanks(t);
    const char *start = t->at;
    bool negative = *t->at == '-';
    if (negative) t->at++;
    double v = 0;
    bool inf = strncmp(t->at, "inf", 3) == 0, nan = !negative && strncmp(t->at, "nan", 3) == 0;
    if (inf || nan) {
        t->at += 3;
        v = inf ? (double)INFINITY : (double)NAN;
    } else if (t->at[0] == '0' && (t->at[1] == 'x' || t->at[1] == 'X')) {
        v = hex_float(t, start);
    } else {
        v = decimal(t, start);
    }
    if (is_name_char(*t->at) && *t->at != ']') fail_at(t, start, "expected a number");
    return negative ? -v : v;
}

/* ---- parts of lines -------------------------------------------------------------------------- */

static void type(Text *t, DType *dtype, Rate *rate)
{
    skip_blanks(t);
    const char *start = t->at;
    while (islower((unsigned char)*t->at) || isdigit((unsigned char)*t->at)) t->at++;
    char *d = arena_strndup(t->arena, start, (size_t)(t->at - start));
    if (!dtype_parse(d, dtype) || *t->at != '.') {
        t->at = start;
        fail_at(t, start, "expected a type such as f32.element, found %s", next_word(t));
        return;
    }
    const char *r = ++t->at;
    while (islower((unsigned char)*t->at) || (*t->at && strchr("{},", *t->at))) t->at++;
    if (!rate_parse(arena_strndup(t->arena, r, (size_t)(t->at - r)), rate))
        fail_at(t, r, "unknown rate '%.*s'", (int)(t->at - r > 20 ? 20 : t->at - r), r);
}

/* name or name:N, as the printer labels slots; IR_NONE: failed. */
static uint32_t slot_label(Text *t)
{
    skip_blanks(t);
    const char *start = t->at, *s = name(t, "a slot");
    uint32_t nth = 1;
    if (*t->at == ':') {
        t->at++;
        nth = number(t, "a number");
    }
    for (uint32_t i = 0; !t->failed && i < t->m->nslots; i++) {
        if (strcmp(t->m->slots[i].name, s) == 0 && --nth == 0) return i;
    }
    fail_at(t, start, "no slot '%.*s'", (int)(t->at - start > 40 ? 40 : t->at - start), start);
    return IR_NONE;
}

/* %N, defined before instruction `limit`. */
static IrRef value(Text *t, uint32_t limit)
{
    skip_blanks(t);
    const char *start = t->at;
    if (!expect(t, "%")) return IR_NONE;
    uint32_t n = number(t, "a value's number");
    if (!t->failed && n >= limit) fail_at(t, start, "%%%u is not defined above", n);
    return n;
}

static IrRef guard(Text *t, uint32_t limit)
{
    return take(t, "if") ? value(t, limit) : IR_NONE;
}

static const char *quoted(Text *t)
{
    const char *start = t->at++;
    StrBuf out = {.arena = t->arena};
    while (*t->at && *t->at != '"' && *t->at != '\n' && out.len <= 4 * IR_MAX_NAME) {
        char c = *t->at++;
        if (c == '\\' && (*t->at == '"' || *t->at == '\\')) {
            c = *t->at++;
        } else if (c == '\\') {
            unsigned byte = 0;
            int used = 0;
            if (sscanf(t->at, "x%2x%n", &byte, &used) != 1 || used != 3 || byte == 0) break;
            t->at += 3;
            c = (char)byte;
        }
        sb_putn(&out, &c, 1);
    }
    if (*t->at != '"')
        fail_at(t, start,
                "a path in quotes that does not end, is too long, or has an unknown escape");
    else
        t->at++;
    return out.text ? out.text : "";
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void hyper_rest(Text *t, Slot *s)
{
    s->derived = take(t, "derived");
    if (!expect(t, "in")) return;
    skip_blanks(t);
    s->lo_open = *t->at == '(';
    if (*t->at != '(' && *t->at != '[') {
        fail_at(t, t->at, "expected '(' or '[', found %s", next_word(t));
        return;
    }
    t->at++;
    s->lo = real(t);
    expect(t, ",");
    s->hi = real(t);
    skip_blanks(t);
    s->hi_open = *t->at == ')';
    if (*t->at != ')' && *t->at != ']')
        fail_at(t, t->at, "expected ')' or ']', found %s", next_word(t));
    else
        t->at++;
}

static void slot_line(Text *t)
{
    IrModule *m = t->m;
    skip_blanks(t);
    const char *start = t->at;
    Slot s = {.path = ""};
    s.name = name(t, "the slot's name");
    uint32_t nth = 1, before = 0;
    if (*t->at == ':') {
        t->at++;
        nth = number(t, "a number");
    }
    for (uint32_t i = 0; i < m->nslots; i++) before += strcmp(m->slots[i].name, s.name) == 0;
    if (nth != before + 1)
        fail_at(t, start,
                before ? "slot '%s' number %u must be labelled so"
                       : "slot '%s' is the first: no number %u",
                s.name, before ? before + 1 : nth);
    if (m->nslots >= IR_MAX_SLOTS) fail_at(t, start, "more than %d slots", IR_MAX_SLOTS);
    skip_blanks(t);
    start = t->at;
    const char *kind = name(t, "the slot's kind");
    int k = 0;
    while (k < ir_slot_kind_count && strcmp(ir_slot_kinds[k], kind) != 0) k++;
    if (k == ir_slot_kind_count) fail_at(t, start, "unknown kind of slot '%.20s'", kind);
    s.kind = (SlotKind)k;
    type(t, &s.dtype, &s.rate);
    s.storage = s.dtype;
    if (take(t, "as") && !dtype_parse(name(t, "a dtype"), &s.storage))
        fail_at(t, t->at, "unknown dtype");
    skip_blanks(t);
    if (*t->at == '"') s.path = quoted(t);
    bool has = take(t, "=");
    double num = has ? real(t) : 0;
    if (s.kind == SLOT_STATE || s.kind == SLOT_COUNT) {
        if (!has) fail_at(t, t->at, "expected '=' and the initial value, found %s", next_word(t));
        s.init = num;
    } else if (s.kind == SLOT_HYPER) {
        s.has_default = has;
        s.def = num;
        hyper_rest(t, &s);
    } else if (has) {
        fail_at(t, t->at, "a slot of kind %s has no value", kind);
    }
    if (!t->failed) ir_slot_add(m, s);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void reduce_rest(Text *t, Ins *i, int op, const char *scope_at, uint32_t ref)
{
    i->op = (uint8_t)(IR_RED + op);
    Rate scope = RATE_GLOBAL;
    size_t n = strcspn(scope_at, "]");
    char *text = arena_strndup(t->arena, scope_at, n);
    if (strcmp(text, "all") != 0 && (!rate_parse(text, &scope) || scope == RATE_GLOBAL)) {
        fail_at(t, t->at, "unknown scope '%.20s'", text);
        return;
    }
    if (scope != i->rate) fail_at(t, t->at, "the scope [%s] does not give this rate", text);
    for (int k = 0; k < reduce_info[op].arity; k++) i->arg[k] = value(t, ref);
    expect(t, "->");
    i->lit.slot = t->failed ? 0 : slot_label(t);
    i->arg[2] = guard(t, ref);
}

static void const_rest(Text *t, Ins *i)
{
    if (i->dtype != DT_BOOL)
        i->lit.num = real(t);
    else if (take(t, "true"))
        i->lit.num = 1;
    else if (!take(t, "false"))
        fail_at(t, t->at, "expected true or false, found %s", next_word(t));
}

static bool draw_by_name(const char *word, Ins *out)
{
    for (int op = IR_NORMAL; op <= IR_RADEMACHER; op++) {
        out->op = (uint8_t)op;
        if (strcmp(ir_op_name(op), word) == 0) return true;
    }
    return false;
}

static void ins_line(Text *t, IrBody *b)
{
    uint32_t ref = b->n;
    const char *start = t->at;
    if (number(t, "a value's number") != ref) fail_at(t, start, "the next value is %%%u", ref);
    if (ref >= IR_MAX_INS) fail_at(t, start, "more than %d instructions", IR_MAX_INS);
    expect(t, ":");
    DType dtype = DT_F32;
    Ins i = {.arg = {IR_NONE, IR_NONE, IR_NONE}};
    type(t, &dtype, &i.rate);
    i.dtype = (uint8_t)dtype;
    expect(t, "=");
    if (t->failed) return;
    skip_blanks(t);
    const char *op_at = t->at;
    /* sumsq[tensor] is one word to name(). */
    const char *word = name(t, "an instruction"), *bracket = strchr(word, '[');
    size_t n = bracket ? (size_t)(bracket - word) : strlen(word);
    int op = bracket ? reduce_by_name(word, n) : op_by_name(word, n);
    if (t->failed) return;
    if (bracket && op >= 0 && word[strlen(word) - 1] == ']') {
        reduce_rest(t, &i, op, bracket + 1, ref);
    } else if (!bracket && op >= 0) {
        i.op = (uint8_t)op;
        for (int k = 0; k < op_info[op].arity; k++) i.arg[k] = value(t, ref);
    } else if (strcmp(word, "const") == 0) {
        i.op = IR_CONST;
        const_rest(t, &i);
    } else if (strcmp(word, "load") == 0) {
        i.op = IR_LOAD;
        i.lit.slot = slot_label(t);
    } else if (strcmp(word, "round") == 0) {
        i.op = IR_ROUND;
        i.arg[0] = value(t, ref);
    } else if (draw_by_name(word, &i)) {
        i.arg[0] = value(t, ref);
        i.arg[1] = value(t, ref);
        expect(t, "site");
        skip_blanks(t);
        i.lit.slot = number(t, "a site's number");
    } else {
        fail_at(t, op_at, "unknown instruction '%.40s'", word);
    }
    if (t->failed) return;
    b->loc = arena_grow(t->arena, b->loc, b->n, &b->loc_cap, sizeof *b->loc);
    b->loc[b->n] = (Span){0};
    ARENA_PUSH(t->arena, b->ins, b->n, b->cap, i);
}

static void store_line(Text *t, IrBody *b)
{
    if (b->nstores >= IR_MAX_SLOTS) fail_at(t, t->at, "more than %d stores", IR_MAX_SLOTS);
    IrStore s = {.slot = slot_label(t)};
    s.value = value(t, b->n);
    s.guard = guard(t, b->n);
    if (!t->failed) ARENA_PUSH(t->arena, b->stores, b->nstores, b->stores_cap, s);
}

/* One line of a body. Instructions, then noskip, then stores. */
static void body_line(Text *t, IrBody *b)
{
    const char *start = t->at;
    if (*t->at == '%') {
        if (b->nstores || b->noskip != IR_NONE)
            fail_at(t, start, "an instruction after noskip or a store");
        t->at++;
        ins_line(t, b);
    } else if (take(t, "noskip")) {
        if (b->nstores || b->noskip != IR_NONE)
            fail_at(t, start, "noskip stands once, before the stores");
        b->noskip = value(t, b->n);
    } else if (take(t, "store")) {
        store_line(t, b);
    } else {
        fail_at(t, start, "expected an instruction, noskip, store or body, found %s", next_word(t));
    }
}

static void view(Text *t, IrBody *b)
{
    if (t->failed || !take(t, "view")) return;
    skip_blanks(t);
    const char *start = t->at, *word = name(t, "a view");
    int v = 0;
    while (v < IR_VIEWS && strcmp(ir_views[v], word) != 0) v++;
    if (v == IR_VIEWS) fail_at(t, start, "unknown view '%.20s'", word);
    b->view = (View)v;
}

/* The line that begins a body or the module's `select`. */
static IrBody *body_head(Text *t, bool select)
{
    IrModule *m = t->m;
    const char *start = t->at, *rule = name(t, "the rule's name");
    if (select && (m->select || m->nbodies))
        fail_at(t, start, "select stands once, before the bodies");
    if (t->failed) return NULL;
    if (select) return ir_select_new(m, rule);
    const char *entry = name(t, "the entry's name");
    if (m->nbodies >= IR_MAX_BODIES) fail_at(t, start, "more than %d bodies", IR_MAX_BODIES);
    if (t->failed) return NULL;
    IrBody *b = ir_body_new(m, rule, entry);
    view(t, b);
    return b;
}

static void module_text(Text *t)
{
    next_line(t);
    if (!expect(t, "dsopt-ir") || !expect(t, "1")) return;
    end_line(t);
    next_line(t);
    expect(t, "module");
    const char *module = name(t, "the module's name");
    expect(t, "compute");
    bool f64 = !t->failed && take(t, "f64");
    if (!f64) expect(t, "f32");
    uint32_t shared = 0;
    if (!t->failed && take(t, "shared")) {
        skip_blanks(t);
        shared = number(t, "a number of slots");
    }
    end_line(t);
    if (t->failed) return;
    t->m = ir_module_new(t->arena, module, f64);
    t->m->nshared = shared;
    IrBody *body = NULL;
    while (!t->failed && next_line(t)) {
        if (take(t, "body")) {
            body = body_head(t, false);
        } else if (take(t, "select")) {
            body = body_head(t, true);
        } else if (!body) {
            if (expect(t, "slot")) slot_line(t);
        } else {
            body_line(t, body);
        }
        if (!t->failed) end_line(t);
    }
}

IrModule *ir_parse_unverified(Arena *a, const char *text, StrBuf *error)
{
    Text t = {.at = text, .line_start = text, .line = 1, .error = error, .arena = a};
    if (strnlen(text, TEXT_MAX + 1) > TEXT_MAX)
        fail_at(&t, text, "a text of more than 16 MiB");
    else
        module_text(&t);
    return t.failed ? NULL : t.m;
}

IrModule *ir_parse(Arena *a, const char *text, StrBuf *error)
{
    IrModule *m = ir_parse_unverified(a, text, error);
    return m && ir_verify(m, error) ? m : NULL;
}
