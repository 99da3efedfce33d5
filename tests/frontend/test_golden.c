/* Programs and what they become, as recorded text: golden/X.opt, X.ast (its tree), X.tokens where
 * that file exists (what the filter makes of its lines). DSOPT_BLESS=1 writes them anew. And every
 * rule of the standard library parses without a message.
 *
 *     m := g⏎   ->   tokens "1:1 name m / 1:3 operator := / 1:6 name g / 1:7 sep", tree "(:= m g)"
 */
#include "support.h"

static void compare(const char *path, const char *got)
{
    Arena a = {0};
    size_t n;
    if (getenv("DSOPT_BLESS")) write_text(path, got, strlen(got));
    char *want = read_text(&a, path, &n);
    REQUIRE(want != NULL, "%s is missing; DSOPT_BLESS=1 writes it", path);
    int line = 1;
    const char *w = want, *g = got;
    while (*w && *w == *g) {
        line += *w == '\n';
        w++, g++;
    }
    while (w > want && w[-1] != '\n') w--, g--;
    CHECK(strcmp(want, got) == 0, "%s:%d: recorded\n  %.*s\ngot\n  %.*s", path, line,
          (int)strcspn(w, "\n"), w, (int)strcspn(g, "\n"), g);
    arena_free(&a);
}

static const char *beside(Session *s, const char *path, const char *ending)
{
    return arena_printf(&s->arena, "%.*s%s", (int)(strlen(path) - 4), path, ending);
}

static void run_file(const char *path)
{
    Session s;
    session_open(&s);
    int file = source_read(&s.diags, path);
    REQUIRE(file >= 0, "cannot read %s", path);
    bool parsed = frontend_parse(&s.arena, &s.diags, file, &s.options, &s.ast);
    if (!parsed) diag_render(&s.diags, &s.out, false);
    CHECK(parsed, "%s", s.out.text);
    ast_print(&s.ast, &s.out);
    compare(beside(&s, path, ".ast"), s.out.text);

    size_t n;
    const char *tokens = beside(&s, path, ".tokens");
    if (read_text(&s.arena, tokens, &n)) {
        StrBuf text = {.arena = &s.arena};
        CHECK(frontend_tokens(&s.arena, &s.diags, file, &text), "%s", path);
        compare(tokens, text.text);
    }
    session_close(&s);
}

static void run_stdlib(void)
{
    CHECK(stdlib_count() > 0, "the standard library is empty");
    for (size_t i = 0; i < stdlib_count(); i++) {
        Session s;
        session_open(&s);
        size_t n;
        const char *text = stdlib_text(stdlib_name(i), &n);
        int file = session_text(&s, stdlib_name(i), text, n);
        bool parsed = frontend_parse(&s.arena, &s.diags, file, &s.options, &s.ast);
        if (!parsed) diag_render(&s.diags, &s.out, false);
        CHECK(parsed && s.diags.n == 0, "%s: %s", stdlib_name(i), s.out.text ? s.out.text : "");
        CHECK(s.ast.n > 0 && s.ast.items[s.ast.n - 1]->doc[0] != 0,
              "%s: its rule has no comment above it", stdlib_name(i));
        CHECK(stdlib_text(arena_printf(&s.arena, "%s.opt", stdlib_name(i)), &n) == text,
              "%s: by file name", stdlib_name(i));
        session_close(&s);
    }
    CHECK(stdlib_name(stdlib_count()) == NULL && stdlib_text("no such rule", &(size_t){0}) == NULL,
          "names that are not there");
}

int main(void)
{
    Arena a = {0};
    char **paths;
    size_t n = list_files(&a, DSOPT_SOURCE_DIR "/tests/frontend/golden", ".opt", &paths);
    REQUIRE(n > 5, "%zu programs", n);
    for (size_t i = 0; i < n; i++) run_file(paths[i]);
    run_stdlib();
    arena_free(&a);
    return check_done();
}
