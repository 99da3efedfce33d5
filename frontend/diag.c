/* diag.c - collects messages about a program and renders them; see diag.h.
 *
 * Requires an arena and a source set in the sink. Ensures: one message of a code at a place; the
 * first DIAG_MAX errors and warnings by place are shown, of at most DIAG_KEPT collected; rendering
 * changes nothing.
 *
 *     diag_hint(d, diag_report(d, DIAG_UNKNOWN_NAME, span, "betta1"), "did you mean '%s'?",
 * "beta1");
 *  -> adamw.opt:4:12: error: unknown name 'betta1' [E101]  + the line, a caret range, the hint
 */
#include "diag.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct DiagRow {
    const char *code, *wname, *text;
    DiagSeverity severity;
} DiagRow;

static const DiagRow rows[DIAG_CODE_COUNT] = {
#define ERROR DIAG_ERROR
#define WARNING DIAG_WARNING
#define DIAG(ENUM, code, severity, wname, text) [DIAG_##ENUM] = {code, wname, text, severity},
#include "diag.def"
#undef ERROR
#undef WARNING
};

const char *diag_code_name(DiagCode c)
{
    return rows[c].code;
}

bool diag_set_warning(DiagSink *d, const char *name, bool enabled)
{
    bool found = false;
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        if (rows[c].severity != DIAG_WARNING || strcmp(rows[c].wname, name) != 0) continue;
        d->disabled[c] = !enabled;
        found = true;
    }
    return found;
}

/* ---- collecting ------------------------------------------------------------------------------ */

/* Whether a message of this code stands at this place already: it would say nothing new. */
static bool reported_before(const DiagSink *d, DiagCode code, Span at)
{
    if (at.end == 0) return false;
    for (size_t i = 0; i < d->n; i++) {
        if (d->items[i].code == code && d->items[i].span.begin == at.begin) return true;
    }
    return false;
}

Diag *diag_report(DiagSink *d, DiagCode code, Span at, ...)
{
    Diag diag = {.code = code, .severity = rows[code].severity, .span = at, .text = ""};
    bool keep = !d->disabled[code] && !reported_before(d, code, at);
    if (keep) {
        if (d->werror) diag.severity = DIAG_ERROR;
        int *count = diag.severity == DIAG_ERROR ? &d->nerrors : &d->nwarnings;
        if (*count < INT32_MAX) (*count)++;
        keep = *count <= DIAG_KEPT;
    }
    if (!keep) {
        d->scratch = diag;
        return &d->scratch;
    }
    va_list ap;
    va_start(ap, at);
    diag.text = arena_vprintf(d->arena, rows[code].text, ap);
    va_end(ap);
    ARENA_PUSH(d->arena, d->items, d->n, d->cap, diag);
    return &d->items[d->n - 1];
}

static void add_note(DiagSink *d, Diag *diag, Span at, const char *text)
{
    DiagNote *note = ARENA_NEW(d->arena, DiagNote);
    note->span = at;
    note->text = text;
    DiagNote **tail = &diag->notes;
    while (*tail) tail = &(*tail)->next;
    *tail = note;
}

void diag_note(DiagSink *d, Diag *diag, Span at, const char *fmt, ...)
{
    if (diag == &d->scratch) return;
    va_list ap;
    va_start(ap, fmt);
    add_note(d, diag, at, arena_vprintf(d->arena, fmt, ap));
    va_end(ap);
}

void diag_hint(DiagSink *d, Diag *diag, const char *fmt, ...)
{
    if (diag == &d->scratch) return;
    va_list ap;
    va_start(ap, fmt);
    add_note(d, diag, (Span){0, 0}, arena_vprintf(d->arena, fmt, ap));
    va_end(ap);
}

/* ---- did you mean ---------------------------------------------------------------------------- */

enum { SUGGEST_LONGEST = 63 };

/* Damerau-Levenshtein distance with adjacent transpositions. */
static int edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    int row[3][SUGGEST_LONGEST + 1];
    for (size_t j = 0; j <= nb; j++) row[1][j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int *now = row[(i + 1) % 3], *last = row[i % 3], *before = row[(i + 2) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[(na + 1) % 3][nb];
}

static bool same_but_case(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) a++, b++;
    return *a == *b;
}

const char *diag_suggest(const char *word, const char *const *candidates, size_t n)
{
    size_t length = strlen(word);
    const char *best = NULL;
    int best_distance = 0;
    if (length == 0 || length > SUGGEST_LONGEST) return NULL;
    for (size_t i = 0; i < n; i++) {
        const char *c = candidates[i];
        size_t nc = c ? strlen(c) : 0;
        if (nc == 0 || nc > SUGGEST_LONGEST || strcmp(c, word) == 0) continue;
        if (same_but_case(word, c)) return c;
        /* Among one-letter names every other letter is one edit away: that would be guessing. */
        if (length == 1 || nc == 1) continue;
        int limit = (int)length / 3 > 1 ? (int)length / 3 : 1;
        int distance = edit_distance(word, length, c, nc);
        /* Two letters with one of them right are no evidence either; exchanged letters are. */
        bool exchanged = length == 2 && nc == 2 && word[0] == c[1] && word[1] == c[0];
        if (distance > limit || (!exchanged && (size_t)distance * 2 >= (length > nc ? length : nc)))
            continue;
        if (!best || distance < best_distance) {
            best = c;
            best_distance = distance;
        }
    }
    return best;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_place(const void *pa, const void *pb)
{
    const Diag *a = *(const Diag *const *)pa, *b = *(const Diag *const *)pb;
    if (a->span.begin != b->span.begin) return a->span.begin < b->span.begin ? -1 : 1;
    return a < b ? -1 : a > b; /* as reported: the array's order */
}

/* What is shown, in order; returns how many. */
static size_t sorted(const DiagSink *d, Arena *arena, const Diag ***out)
{
    const Diag **order = ARENA_ARRAY(arena, const Diag *, d->n + 1);
    size_t shown[2] = {0}, n = 0;
    if (!order) return 0;
    for (size_t i = 0; i < d->n; i++) order[i] = &d->items[i];
    qsort(order, d->n, sizeof *order, by_place);
    for (size_t i = 0; i < d->n; i++) {
        if (shown[order[i]->severity]++ < DIAG_MAX) order[n++] = order[i];
    }
    *out = order;
    return n;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { TAB_WIDTH = 4, LINE_SHOWN = 100 };

typedef struct Cell { /* one column on the screen: the bytes that make it */
    const char *bytes;
    uint8_t n;
    uint32_t offset; /* in the file's text */
} Cell;

typedef struct Line { /* one source line, cut to what fits the screen */
    Cell *cells;
    size_t n, first, end;
} Line;

/* Length of the valid UTF-8 sequence at s, 0 if there is none. */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    size_t want = s[0] < 0x80                   ? 1
                  : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                  : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                  : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                : 0;
    if (want == 0 || want > n) return 0;
    for (size_t i = 1; i < want; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
    }
    if (want == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F))) return 0;
    if (want == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F))) return 0;
    return want;
}

/* The line that holds text[at], as cells, keeping `at` and what is around it in view. */
static Line line_cells(Arena *a, const SourceFile *f, uint32_t at, uint32_t until)
{
    uint32_t begin = at, end = at;
    while (begin > 0 && f->text[begin - 1] != '\n') begin--;
    while (end < f->len && f->text[end] != '\n') end++;
    if (end > begin && f->text[end - 1] == '\r') end--;
    /* Only a window of a long line is looked at: a line may be 16 MiB long. */
    if (at > begin + 4 * LINE_SHOWN) begin = at - 4 * LINE_SHOWN;
    if (end > at + 4 * LINE_SHOWN) end = at + 4 * LINE_SHOWN;
    while (begin < at && ((unsigned char)f->text[begin] & 0xC0) == 0x80) begin++;

    Line line = {.cells = ARENA_ARRAY(a, Cell, (size_t)(end - begin) * TAB_WIDTH + 1)};
    if (!line.cells) return line;
    size_t caret = 0, mark = 0;
    for (uint32_t i = begin; i < end;) {
        const unsigned char *s = (const unsigned char *)f->text + i;
        size_t n = utf8_length(s, end - i);
        if (i <= at) caret = line.n;
        if (i < until) mark = line.n;
        if (*s == '\t') {
            do line.cells[line.n++] = (Cell){" ", 1, i};
            while (line.n % TAB_WIDTH);
        } else if (n == 0 || *s < 0x20 || *s == 0x7F) {
            line.cells[line.n++] = (Cell){"?", 1, i};
        } else {
            line.cells[line.n++] = (Cell){(const char *)s, (uint8_t)n, i};
        }
        i += n ? (uint32_t)n : 1;
    }
    line.end = line.n;
    if (line.n > LINE_SHOWN) {
        size_t middle = mark > caret && mark - caret < LINE_SHOWN / 2 ? (caret + mark) / 2 : caret;
        line.first = middle > LINE_SHOWN / 2 ? middle - LINE_SHOWN / 2 : 0;
        if (line.first + LINE_SHOWN > line.n) line.first = line.n - LINE_SHOWN;
        line.end = line.first + LINE_SHOWN;
    }
    return line;
}

typedef struct Painter {
    const SourceSet *sources;
    StrBuf *out;
    Arena *scratch;
    bool color;
} Painter;

static void paint(Painter *p, const char *ansi, const char *text)
{
    if (p->color) sb_printf(p->out, "\33[%sm", ansi);
    sb_puts(p->out, text);
    if (p->color) sb_puts(p->out, "\33[0m");
}

/* One source line with marks under text offsets [from, to); the first mark is a caret if `head`. */
static void paint_line(Painter *p, const SourceFile *f, int number, int width, uint32_t from,
                       uint32_t to, bool head, const char *ansi)
{
    Line line = line_cells(p->scratch, f, from, to);
    sb_printf(p->out, " %*d | %s", width, number, line.first > 0 ? "…" : "");
    for (size_t i = line.first; i < line.end; i++) {
        sb_putn(p->out, line.cells[i].bytes, line.cells[i].n);
    }
    sb_printf(p->out, "%s\n %*s | %s", line.end < line.n ? "…" : "", width, "",
              line.first > 0 ? " " : "");
    if (p->color) sb_printf(p->out, "\33[%sm", ansi);
    bool any = false;
    for (size_t i = line.first; i < line.end && (line.cells[i].offset < to || !any); i++) {
        bool marked = line.cells[i].offset >= from;
        sb_puts(p->out, !marked ? " " : any || !head ? "~" : "^");
        any = any || marked;
    }
    if (!any) sb_puts(p->out, head ? "^" : "~"); /* at the end of the line */
    if (p->color) sb_puts(p->out, "\33[0m");
    sb_puts(p->out, "\n");
}

static int line_of(const SourceSet *s, uint32_t offset)
{
    int line, col;
    const char *name;
    source_position(s, offset, &name, &line, &col);
    return line;
}

static void paint_excerpt(Painter *p, Span at, const char *ansi)
{
    const SourceFile *f = source_file(p->sources, at.begin);
    if (!f || f->len == 0) return;
    uint32_t from = at.begin - f->base, to = at.end > at.begin ? at.end - f->base : from + 1;
    if (to > f->len) to = (uint32_t)f->len;
    uint32_t first_end = from;
    while (first_end < to && f->text[first_end] != '\n') first_end++;
    uint32_t last =
        to > from ? to - 1 : from; /* a span that ends with its line's newline stays on it */
    while (last > first_end && (f->text[last] == '\n' || f->text[last] == '\r')) last--;
    int line1 = line_of(p->sources, at.begin), line2 = line_of(p->sources, f->base + last);
    int width = 1;
    for (int n = line2 / 10; n; n /= 10) width++;
    paint_line(p, f, line1, width, from, first_end, true, ansi);
    if (line2 == line1) return;
    if (line2 > line1 + 1) sb_printf(p->out, " %*s | …\n", width, "");
    uint32_t begin = last;
    while (begin > 0 && f->text[begin - 1] != '\n') begin--;
    while (begin < last && (f->text[begin] == ' ' || f->text[begin] == '\t')) begin++;
    paint_line(p, f, line2, width, begin, last + 1, false, ansi);
}

/* Paths and quoted source bytes may hold anything; a terminal sees none of its control bytes. */
static void put_clean(StrBuf *out, const char *text)
{
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s, strlen((const char *)s) < 4 ? strlen((const char *)s) : 4);
        if (n == 0 || *s < 0x20 || *s == 0x7F) {
            sb_printf(out, "\\x%02x", *s++);
            continue;
        }
        sb_putn(out, (const char *)s, n);
        s += n;
    }
}

static void paint_head(Painter *p, Span at, const char *kind, const char *ansi, const char *text)
{
    if (at.end) {
        const char *name;
        int line, col;
        source_position(p->sources, at.begin, &name, &line, &col);
        if (p->color) sb_puts(p->out, "\33[1m");
        put_clean(p->out, name);
        sb_printf(p->out, ":%d:%d: ", line, col);
        if (p->color) sb_puts(p->out, "\33[0m");
    }
    paint(p, ansi, kind);
    sb_puts(p->out, " ");
    put_clean(p->out, text);
}

void diag_render(const DiagSink *d, StrBuf *out, bool color)
{
    Painter p = {d->sources, out, out->arena, color};
    const Diag **order;
    size_t n = sorted(d, out->arena, &order);
    for (size_t i = 0; i < n; i++) {
        const Diag *g = order[i];
        const DiagRow *row = &rows[g->code];
        bool error = g->severity == DIAG_ERROR;
        const char *ansi = error ? "1;31" : "1;35";
        paint_head(&p, g->span, error ? "error:" : "warning:", ansi, g->text);
        if (!row->wname[0])
            sb_printf(out, " [%s]\n", row->code);
        else
            sb_printf(out, " [%s, -W%s%s]\n", row->code, error ? "error=" : "", row->wname);
        if (g->span.end) paint_excerpt(&p, g->span, ansi);
        for (const DiagNote *note = g->notes; note; note = note->next) {
            if (!note->span.end) sb_puts(out, "  ");
            paint_head(&p, note->span, note->span.end ? "note:" : "hint:", "1;36", note->text);
            sb_puts(out, "\n");
            if (note->span.end) paint_excerpt(&p, note->span, "1;36");
        }
    }
    if (d->nerrors > DIAG_MAX)
        sb_printf(out, "too many errors: %d more %s not shown\n", d->nerrors - DIAG_MAX,
                  d->nerrors == DIAG_MAX + 1 ? "is" : "are");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_string(StrBuf *out, const char *text)
{
    size_t left = strlen(text);
    sb_puts(out, "\"");
    for (const unsigned char *s = (const unsigned char *)text; left;) {
        size_t n = utf8_length(s, left);
        if (n == 0)
            sb_puts(out, "\\ufffd");
        else if (*s < 0x20 || *s == 0x7F)
            sb_printf(out, "\\u%04x", *s);
        else if (*s == '"' || *s == '\\')
            sb_printf(out, "\\%c", *s);
        else
            sb_putn(out, (const char *)s, n);
        s += n ? n : 1;
        left -= n ? n : 1;
    }
    sb_puts(out, "\"");
}

static void json_place(const DiagSink *d, StrBuf *out, const char *key, uint32_t offset)
{
    const char *name;
    int line, col;
    source_position(d->sources, offset, &name, &line, &col);
    sb_printf(out, "\"%s\": {\"file\": ", key);
    json_string(out, name);
    sb_printf(out, ", \"line\": %d, \"column\": %d, \"byte-column\": %d}", line, col, col);
}

static void json_locations(const DiagSink *d, StrBuf *out, Span at)
{
    sb_puts(out, ", \"locations\": [");
    if (at.end) {
        sb_puts(out, "{");
        json_place(d, out, "caret", at.begin);
        sb_puts(out, ", ");
        json_place(d, out, "finish", at.end > at.begin ? at.end - 1 : at.begin);
        sb_puts(out, "}");
    }
    sb_puts(out, "]");
}

void diag_render_json(const DiagSink *d, StrBuf *out)
{
    const Diag **order;
    size_t n = sorted(d, out->arena, &order);
    sb_puts(out, "[");
    for (size_t i = 0; i < n; i++) {
        const Diag *g = order[i];
        const DiagRow *row = &rows[g->code];
        sb_printf(out, "%s{\"kind\": \"%s\", \"message\": ", i ? ",\n " : "",
                  g->severity == DIAG_ERROR ? "error" : "warning");
        json_string(out, g->text);
        sb_printf(out, ", \"code\": \"%s\"", row->code);
        if (row->wname[0])
            sb_printf(out, ", \"option\": \"-W%s%s\"", g->severity == DIAG_ERROR ? "error=" : "",
                      row->wname);
        sb_puts(out, ", \"column-origin\": 1");
        json_locations(d, out, g->span);
        sb_puts(out, ", \"children\": [");
        for (const DiagNote *note = g->notes; note; note = note->next) {
            sb_printf(out, "%s{\"kind\": \"note\", \"message\": ", note == g->notes ? "" : ", ");
            json_string(out, note->text);
            json_locations(d, out, note->span);
            sb_puts(out, "}");
        }
        sb_puts(out, "]}");
    }
    sb_puts(out, "]\n");
}
