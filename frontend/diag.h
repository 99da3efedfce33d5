/* diag.h - source texts, places in them, and the mistakes found there.
 *
 * All files of one compilation share one offset space: a Span is two offsets into it, 8 bytes,
 * valid for any file; line and column are computed only when a message is printed. Diagnostics are
 * collected; at most DIAG_MAX errors are shown.
 *
 *     adamw.opt:4:12: error: unknown name 'betta1' [E101]
 *       4 |   m := lerp(g, m, betta1)
 *         |                   ^~~~~~
 *       hint: did you mean 'beta1'?
 */
#ifndef FRONTEND_DIAG_H
#define FRONTEND_DIAG_H
#include "arena.h"

typedef struct Span {
    uint32_t begin, end; /* global offsets, end exclusive; {0,0}: no place */
} Span;

typedef struct SourceFile {
    const char *name; /* as printed in messages */
    const char *text; /* NUL-terminated, owned by the source set */
    size_t len;
    uint32_t base; /* global offset of text[0]; the first file starts at 1 */
} SourceFile;

typedef struct SourceSet {
    Arena *arena;
    SourceFile *files;
    size_t nfiles, cap;
} SourceSet;

/* Adds a text (copied). Returns its file index, or -1 if texts together pass 16 MiB. */
int source_add(SourceSet *s, const char *name, const char *text, size_t len);
const SourceFile *source_file(const SourceSet *s, uint32_t offset);
/* 1-based line and column (columns count bytes; a tab is one) of an offset. */
void source_position(const SourceSet *s, uint32_t offset, const char **name, int *line, int *col);

typedef enum DiagSeverity { DIAG_ERROR, DIAG_WARNING } DiagSeverity;

/* One row per message in diag.def: DIAG(ENUM, "E101", ERROR or WARNING, "warning-name" or "",
 * "format with %s %d"). */
typedef enum DiagCode {
#define DIAG(ENUM, code, severity, wname, text) DIAG_##ENUM,
#include "diag.def"
    DIAG_CODE_COUNT
} DiagCode;

typedef struct DiagNote {
    struct DiagNote *next;
    Span span; /* {0,0}: a hint without a place */
    const char *text;
} DiagNote;

typedef struct Diag {
    DiagCode code;
    DiagSeverity severity; /* after -Werror, -Wno-… */
    Span span;
    const char *text;
    DiagNote *notes; /* in the order given; printed as "note:" with a place, "hint:" without */
} Diag;

/* Errors (and warnings) shown, the first by place; collected. */
enum { DIAG_MAX = 20, DIAG_KEPT = 200 };

typedef struct DiagSink {
    Arena *arena;
    SourceSet *sources;
    Diag *items;
    size_t n, cap;
    int nerrors, nwarnings; /* counted past DIAG_KEPT, too */
    bool werror;
    uint8_t disabled[DIAG_CODE_COUNT]; /* -Wno-NAME */
    Diag scratch;                      /* what diag_report returns for messages that are not kept */
} DiagSink;

/* Collects one message; arguments as the row's format says. Returns it for notes (never NULL: past
 * the limit, or where the same code stands at the same place, a scratch one). Valid until the next
 * report. */
Diag *diag_report(DiagSink *d, DiagCode code, Span at, ...);
/* Whether anyone will read it: what takes time to find need not be looked for otherwise. */
static inline bool diag_is_kept(const Diag *diag)
{
    return diag->text && diag->text[0];
}
void diag_note(DiagSink *d, Diag *diag, Span at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void diag_hint(DiagSink *d, Diag *diag, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The closest of n candidates to `word` (Damerau-Levenshtein distance at most a third of its
 * length, at least 1), or NULL. */
const char *diag_suggest(const char *word, const char *const *candidates, size_t n);
/* Renders all messages, sorted by place, into `out`; color: ANSI. JSON: one array of objects, as
 * gcc's -fdiagnostics-format=json. */
void diag_render(const DiagSink *d, StrBuf *out, bool color);
void diag_render_json(const DiagSink *d, StrBuf *out);
const char *diag_code_name(DiagCode c); /* "E101" */
/* -W[no-]NAME; false: no such warning. */
bool diag_set_warning(DiagSink *d, const char *name, bool enabled);
#endif
