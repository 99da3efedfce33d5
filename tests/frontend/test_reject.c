/* Programs with mistakes: every message where and as it is expected, and no other; every E0 row of
 * diag.def by some program (tests/sema/reject does the same for the checker's).
 *
 * In reject/ *.opt (and what they import) a line says what is reported on it:
 *     m := g ** 2        #! error: E015 powers are written      the code, and a part of the text
 *                        #! warning@-1: W101                    the line before
 */
#define _GNU_SOURCE /* memmem */
#include "support.h"
#include <sys/stat.h>
#include <unistd.h>

static bool seen[DIAG_CODE_COUNT];

typedef struct Expectation {
    const SourceFile *file;
    int line;
    DiagSeverity severity;
    char code[8];
    const char *text;
    size_t ntext;
    bool met;
} Expectation;

typedef struct Expectations {
    Expectation *items;
    size_t n, cap;
} Expectations;

/* Reads "error@-1: E015 text" behind "#! ". */
static bool read_expectation(const char *s, const char *end, Expectation *e)
{
    if (strncmp(s, "error", 5) == 0)
        e->severity = DIAG_ERROR, s += 5;
    else if (strncmp(s, "warning", 7) == 0)
        e->severity = DIAG_WARNING, s += 7;
    else
        return false;
    char *after = (char *)s;
    if (*s == '@') e->line += (int)strtol(s + 1, &after, 10);
    REQUIRE(after[0] == ':' && after[1] == ' ', "%s:%d: a bad expectation", e->file->name, e->line);
    s = after + 2;
    size_t n = strcspn(s, " \n");
    REQUIRE(n < sizeof e->code, "%s:%d: a bad code", e->file->name, e->line);
    memcpy(e->code, s, n);
    e->code[n] = 0;
    s += n;
    while (s < end && *s == ' ') s++;
    e->text = s;
    e->ntext = (size_t)(end - s);
    return true;
}

static void collect(Session *s, const SourceFile *f, Expectations *all)
{
    int line = 1;
    for (const char *at = f->text, *end = f->text + f->len; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        for (const char *c = at; c + 3 < stop; c++) {
            Expectation e = {.file = f, .line = line};
            if (strncmp(c, "#! ", 3) != 0) continue;
            const char *next = strstr(c + 3, "#! ");
            const char *until = next && next < stop ? next - 1 : stop;
            if (read_expectation(c + 3, until, &e))
                ARENA_PUSH(&s->arena, all->items, all->n, all->cap, e);
        }
        at = stop + 1;
    }
}

static void match(Session *s, Expectations *all)
{
    for (size_t i = 0; i < s->diags.n; i++) {
        const Diag *d = &s->diags.items[i];
        const char *name;
        int line, col;
        bool met = false;
        source_position(&s->sources, d->span.begin, &name, &line, &col);
        for (size_t j = 0; j < all->n && !met; j++) {
            Expectation *e = &all->items[j];
            if (e->met || strcmp(e->file->name, name) != 0 || e->line != line ||
                e->severity != d->severity || strcmp(e->code, diag_code_name(d->code)) != 0)
                continue;
            if (e->ntext && !memmem(d->text, strlen(d->text), e->text, e->ntext)) continue;
            met = e->met = true;
        }
        CHECK(met, "%s:%d:%d: not expected: %s [%s]", name, line, col, d->text,
              diag_code_name(d->code));
    }
    for (size_t j = 0; j < all->n; j++) {
        const Expectation *e = &all->items[j];
        CHECK(e->met, "%s:%d: not reported: %s %.*s", e->file->name, e->line, e->code,
              (int)e->ntext, e->text);
    }
}

static void note_seen(const Session *s)
{
    for (size_t i = 0; i < s->diags.n; i++) seen[s->diags.items[i].code] = true;
}

static void run_file(const char *path)
{
    Session s;
    session_open(&s);
    int file = source_read(&s.diags, path);
    REQUIRE(file >= 0, "cannot read %s", path);
    frontend_parse(&s.arena, &s.diags, file, &s.options, &s.ast);
    /* What parses is checked, and the parts that do not are not spoken of again. */
    for (size_t i = 0; i < s.ast.n; i++) {
        const Item *item = s.ast.items[i];
        bool whole = item->kind == IT_IMPORT || strcmp(item->name.text, "?") != 0;
        CHECK(whole || item->broken, "%s: a repaired item is taken for a whole one", path);
    }
    Expectations all = {0};
    for (size_t i = 0; i < s.sources.nfiles; i++) collect(&s, &s.sources.files[i], &all);
    CHECK(all.n > 0, "%s expects nothing", path);
    CHECK(s.diags.nerrors + s.diags.nwarnings == (int)s.diags.n, "%s: more messages than are kept",
          path);
    match(&s, &all);
    note_seen(&s);
    diag_render(&s.diags, &s.out, true);
    diag_render_json(&s.diags, &s.out);
    session_close(&s);
}

/* ---- mistakes that a file in the repository cannot hold -------------------------------------- */

/* Expects one error with this code from parsing the file. */
static void expect_one(const char *path, DiagCode code)
{
    Session s;
    session_open(&s);
    int file = source_read(&s.diags, path);
    if (file >= 0) frontend_parse(&s.arena, &s.diags, file, &s.options, &s.ast);
    CHECK(s.diags.n == 1 && s.diags.items[0].code == code,
          "%s: %zu messages, the first %s, expected %s", path, s.diags.n,
          s.diags.n ? diag_code_name(s.diags.items[0].code) : "none", diag_code_name(code));
    CHECK(s.diags.n == 0 || strlen(s.diags.items[0].text) > 0, "%s: no text", path);
    note_seen(&s);
    session_close(&s);
}

static void run_made_files(void)
{
    char folder[] = "/tmp/dsopt-reject-XXXXXX", path[64], text[256];
    REQUIRE(mkdtemp(folder) != NULL, "no temporary folder");
    snprintf(path, sizeof path, "%s/x.opt", folder);
    expect_one(path, DIAG_FILE_MISSING);
    expect_one(folder, DIAG_FILE_KIND);
    expect_one("/dev/null", DIAG_FILE_KIND);
    write_text(path, "", 0);
    expect_one(path, DIAG_FILE_EMPTY);
    write_text(path, "optimizer a { p\0 -= g }", 23);
    expect_one(path, DIAG_FILE_BINARY);
    REQUIRE(truncate(path, 100 << 20) == 0, "cannot make a large file");
    expect_one(path, DIAG_FILE_SIZE);

    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL, "cannot write %s", path);
    for (int i = 0; i < 400000; i++) fputs("a = b\n", f);
    fclose(f);
    Session s;
    session_open(&s);
    int file = source_read(&s.diags, path);
    CHECK(!frontend_tokens(&s.arena, &s.diags, file, &s.out), "400,000 lines pass");
    CHECK(s.diags.n == 1 && s.diags.items[0].code == DIAG_TOO_LONG, "%zu messages", s.diags.n);
    note_seen(&s);
    session_close(&s);

    for (int i = 0; i < 70; i++) {
        char one[64];
        snprintf(one, sizeof one, "%s/%d.opt", folder, i);
        int n = snprintf(text, sizeof text, "import \"%d.opt\"\n", i + 1);
        write_text(one, text, (size_t)n);
    }
    snprintf(path, sizeof path, "%s/0.opt", folder);
    expect_one(path, DIAG_IMPORT_DEEP);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "cannot remove %s", folder);
}

/* 20 errors are shown, and how many more there are. */
static void run_many(void)
{
    Session s;
    session_open(&s);
    StrBuf text = {.arena = &s.arena};
    sb_puts(&text, "optimizer a {\n");
    for (int i = 0; i < 30; i++) sb_puts(&text, "  m := * g\n");
    sb_puts(&text, "}\n");
    int file = session_text(&s, "many.opt", text.text, text.len);
    CHECK(!frontend_parse(&s.arena, &s.diags, file, &s.options, &s.ast), "30 mistakes pass");
    CHECK(s.diags.nerrors == 30, "%d errors", s.diags.nerrors);
    diag_render(&s.diags, &s.out, false);
    int shown = 0;
    for (const char *at = s.out.text; (at = strstr(at, "error: ")) != NULL; at++) shown++;
    CHECK(shown == DIAG_MAX, "%d are shown", shown);
    CHECK(strstr(s.out.text, "too many errors: 10 more are not shown\n") != NULL, "%s", s.out.text);
    session_close(&s);
}

int main(void)
{
    Arena a = {0};
    char **paths;
    size_t n = list_files(&a, DSOPT_SOURCE_DIR "/tests/frontend/reject", ".opt", &paths);
    REQUIRE(n > 10, "%zu programs", n);
    for (size_t i = 0; i < n; i++) run_file(paths[i]);
    run_made_files();
    run_many();
    for (int c = 0; c < DIAG_CODE_COUNT; c++) {
        const char *code = diag_code_name((DiagCode)c);
        CHECK(seen[c] || strncmp(code, "E0", 2) != 0, "no program triggers %s", code);
    }
    arena_free(&a);
    return check_done();
}
