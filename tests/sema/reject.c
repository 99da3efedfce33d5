/* Programs with mistakes, and exactly the messages that they must give.
 *
 *   in:  m := lerp(g, m, betta1)      #! error: E101
 *   out: E101 on that line, and nothing else; on a line of its own: a message without a place
 *
 * A line "#! hint: TEXT" asks for a hint that begins so, with any of them.
 *
 * Programs named warn… compile all the same. Every row of diag.def about meaning (E1…, W1…) must
 * be given by a program here. */
#include "source.h"
#include <time.h>

static bool seen[DIAG_CODE_COUNT];

/* "3:E101 3:W102", sorted, of what is expected. */
static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *joined(Arena *a, char **list, size_t n)
{
    StrBuf out = {.arena = a};
    qsort(list, n, sizeof *list, by_text);
    sb_puts(&out, "");
    for (size_t i = 0; i < n; i++) sb_printf(&out, "%s\n", list[i]);
    return out.text;
}

static char *expected(Arena *a, const char *text)
{
    char **list = NULL;
    size_t n = 0, cap = 0;
    int line = 1;
    for (const char *c = text; *c; line++, c = strchr(c, '\n') + 1) {
        size_t len = strcspn(c, "\n");
        char *copy = arena_strndup(a, c, len), *mark = strstr(copy, "#! error:");
        if (!mark) mark = strstr(copy, "#! warning:");
        char *save = NULL;
        for (char *w = mark ? strtok_r(strchr(mark, ':') + 1, " ", &save) : NULL; w;
             w = strtok_r(NULL, " ", &save)) {
            char *row = arena_printf(a, "%04d:%s", mark == copy ? 0 : line, w);
            ARENA_PUSH(a, list, n, cap, row);
        }
    }
    return joined(a, list, n);
}

static char *reported(Arena *a, const DiagSink *d)
{
    char **list = NULL;
    size_t n = 0, cap = 0;
    for (size_t i = 0; i < d->n; i++) {
        const char *name;
        int line = 0, col = 0;
        if (d->items[i].span.end)
            source_position(d->sources, d->items[i].span.begin, &name, &line, &col);
        char *row = arena_printf(a, "%04d:%s", line, diag_code_name(d->items[i].code));
        ARENA_PUSH(a, list, n, cap, row);
        seen[d->items[i].code] = true;
    }
    return joined(a, list, n);
}

/* Whether all hints that a program asks for are in the messages. */
static void check_hints(Arena *a, const Program *p, const char *messages)
{
    for (const char *line = p->text; line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        const char *hint = directive(a, line, "hint");
        if (hint)
            CHECK(strstr(messages, arena_printf(a, "  hint: %s", hint)), "%s: no hint '%s' in\n%s",
                  p->name, hint, messages);
    }
}

static void reject(const char *path)
{
    Arena a = {0};
    Program p;
    program_read(&a, path, &p);
    SourceSet sources = {.arena = &a};
    DiagSink d = {.arena = &a, .sources = &sources};
    IrModule *m = compile_source(&a, &d, source_add(&sources, p.name, p.text, strlen(p.text)),
                                 &p.options, false);
    if (m) { /* every state stored as f16 */
        DType *storage = ARENA_ARRAY(&a, DType, m->nelem);
        for (uint32_t i = 0; i < m->nelem; i++) storage[i] = i < 2 ? DT_F32 : DT_F16;
        lint_storage(&d, m, storage);
    }
    StrBuf messages = {.arena = &a};
    diag_render(&d, &messages, false);
    char *want = expected(&a, p.text), *got = reported(&a, &d);
    CHECK(!m || strstr(path, "warn"), "%s compiles", path);
    CHECK(strcmp(want, got) == 0, "%s: expected\n%sgot\n%s%s", path, want, got, messages.text);
    check_hints(&a, &p, messages.text);
    for (size_t i = 0; i < d.n; i++)
        CHECK(d.items[i].text && *d.items[i].text, "%s: an empty message", path);
    arena_free(&a);
}

/* Programs that are too long to be written down. */
static void reject_text(const char *name, StrBuf *text, const char *code)
{
    Arena *a = text->arena;
    SourceSet sources = {.arena = a};
    DiagSink d = {.arena = a, .sources = &sources};
    IrModule *m =
        compile_source(a, &d, source_add(&sources, name, text->text, text->len), NULL, false);
    reported(a, &d);
    CHECK(!m && d.n == 1 && strcmp(diag_code_name(d.items[0].code), code) == 0,
          "%s: %zu messages, the first %s", name, d.n,
          d.n ? diag_code_name(d.items[0].code) : "none");
    arena_free(a);
}

static void reject_large(void)
{
    Arena a = {0};
    StrBuf text = {.arena = &a};
    sb_puts(&text, "optimizer many {\n");
    for (int i = 0; i < 20000; i++) sb_puts(&text, "p -= g * g + p\n");
    sb_puts(&text, "}\n");
    reject_text("many operations", &text, "E152");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "fn q0(x) = x * x\n");
    for (int i = 1; i < 60; i++)
        sb_printf(&text, "fn q%d(x) = q%d(x) + q%d(x + 1)\n", i, i - 1, i - 1);
    sb_puts(&text, "optimizer doubling { p -= q59(g) }\n");
    reject_text("doubling functions", &text, "E152");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "fn f(x) {\n a0 = x\n");
    for (int i = 1; i < 3000; i++) sb_printf(&text, " a%d = a%d + 1\n", i, i - 1);
    sb_puts(&text, " return a2999\n}\noptimizer deep { p -= f(g) }\n");
    reject_text("deep values", &text, "E153");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer deep {\n hyper a0 = 1\n");
    for (int i = 1; i < 1500; i++) sb_printf(&text, " hyper a%d = a%d + 1\n", i, i - 1);
    sb_puts(&text, " p -= a1499 * g\n}\n");
    reject_text("deep defaults", &text, "E153");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer sizes {\n shape [.., r, c] when ");
    for (int i = 0; i < 60; i++) sb_puts(&text, "twice(");
    sb_puts(&text, "r");
    for (int i = 0; i < 60; i++) sb_puts(&text, ")");
    sb_puts(&text, " > 3 { p -= g }\n}\nfn twice(x) = x + x\n");
    reject_text("a long condition", &text, "E156");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer a0 { p -= g }\n");
    for (int i = 1; i < 65; i++) sb_printf(&text, "optimizer a%d { use a%d }\n", i, i - 1);
    reject_text("a chain of uses", &text, "E179");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer slots {\n p -= g\n");
    for (int i = 0; i < 5000; i++) sb_printf(&text, " state a%d = g\n p -= a%d\n", i, i);
    sb_puts(&text, "}\n");
    reject_text("many states", &text, "E154");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer ways {\n");
    for (int i = 0; i < 7; i++) sb_printf(&text, " shape [.., r, c] when r > %d { p -= %d }\n", i, i);
    sb_puts(&text, "}\n");
    reject_text("many ways", &text, "E167");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer long {\n hyper ");
    for (int i = 0; i < 300; i++) sb_puts(&text, "x");
    sb_puts(&text, " = 1\n p -= g\n}\n");
    reject_text("a long name", &text, "E155");

    text = (StrBuf){.arena = &a};
    sb_puts(&text, "optimizer names {\n x0 = g\n");
    for (int i = 1; i < 15000; i++) sb_printf(&text, " x%d = x%d + 1\n", i, i - 1);
    sb_puts(&text, " p -= x14998 + x\n}\n");
    clock_t begin = clock();
    reject_text("many names", &text, "E101");
    CHECK(clock() - begin < 2 * CLOCKS_PER_SEC, "finding names takes a walk over all of them");
}

/* Values that are used twice at each of many levels make a tree of 2^60 nodes: nothing walks it. */
static void accept_shared(void)
{
    static const char *const programs[] = {
        "optimizer a {\n state z = %s1%s\n z += g\n p -= z\n}\n",
        "optimizer b {\n state z = %sp%s\n z += g\n p -= z\n}\n",
        "optimizer c {\n hyper k = 1, j = %sk%s\n p -= j * %sg%s\n}\n",
        "optimizer d {\n state z = 0\n init { z := %sp%s }\n z += g\n p -= z\n}\n",
        "optimizer e {\n n = %snorm(g)%s\n export n\n when n > 0 { p -= g }\n on x { p := %sp%s }\n}\n"};
    enum { DEEP = 60 };
    Arena a = {0};
    StrBuf open = {.arena = &a}, close = {.arena = &a};
    for (int i = 0; i < DEEP; i++) sb_puts(&open, "twice("), sb_puts(&close, ")");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        StrBuf text = {.arena = &a};
        sb_puts(&text, "fn twice(x) = x + x\n");
        sb_printf(&text, programs[i], open.text, close.text, open.text, close.text);
        SourceSet sources = {.arena = &a};
        DiagSink d = {.arena = &a, .sources = &sources};
        clock_t begin = clock();
        CHECK(compile_source(&a, &d, source_add(&sources, "shared", text.text, text.len), NULL, false),
              "%s", text.text);
        CHECK(clock() - begin < 2 * CLOCKS_PER_SEC, "a walk over a tree: %s", text.text);
    }
    arena_free(&a);
}

/* Mistakes beyond those that are shown are counted, and cost little: no word is suggested for
 * them. */
static void reject_many(void)
{
    enum { N = 8000 };
    Arena a = {0};
    StrBuf text = {.arena = &a};
    sb_puts(&text, "optimizer many {\n");
    for (int i = 0; i < N; i++) sb_printf(&text, "name%d = %d\n", i, i);
    for (int i = 0; i < N; i++) sb_printf(&text, "p -= nbme%d\n", i);
    sb_puts(&text, "}\n");
    SourceSet sources = {.arena = &a};
    DiagSink d = {.arena = &a, .sources = &sources};
    compile_source(&a, &d, source_add(&sources, "many", text.text, text.len), NULL, false);
    CHECK(d.nerrors == N && d.n == DIAG_KEPT, "%d errors, %zu kept", d.nerrors, d.n);
    CHECK(d.items[0].notes, "the first has no hint");
    arena_free(&a);
}

int main(void)
{
    CHECK(programs_each(DSOPT_SOURCE_DIR "/tests/sema/reject", reject) > 0, "no programs");
    reject_large();
    accept_shared();
    reject_many();
    for (int i = 0; i < DIAG_CODE_COUNT; i++) {
        const char *code = diag_code_name((DiagCode)i);
        if (code[1] == '1' && i != DIAG_INTERNAL)
            CHECK(seen[i], "no program is refused with %s", code);
    }
    return check_done();
}
