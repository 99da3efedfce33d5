/* Nothing that comes in breaks the frontend: texts of the tests and the standard library with
 * random changes, and memory that runs out at every allocation. The seed is fixed; `frontend_fuzz
 * COUNT SEED` runs longer.
 *
 *     "m := lerp(g, m, b1)"  ->  "m := lerp(g,state m, b1" "repeat" …: parsed, printed, rendered;
 * no crash, messages at most as many as kept
 */
#include "support.h"
#include "tests/failing.h"
#include <time.h>

typedef struct Corpus {
    char **texts;
    size_t *sizes;
    size_t n, cap, cap_sizes;
} Corpus;

static uint64_t state;

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)((check_random(&state) >> 32) * n >> 32);
}

static void add_text(Arena *a, Corpus *c, char *text, size_t n)
{
    c->sizes = arena_grow(a, c->sizes, c->n, &c->cap_sizes, sizeof *c->sizes);
    c->sizes[c->n] = n;
    ARENA_PUSH(a, c->texts, c->n, c->cap, text);
}

static void add_folder(Arena *a, Corpus *c, const char *folder)
{
    char **paths;
    size_t n = list_files(a, folder, ".opt", &paths);
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        char *text = read_text(a, paths[i], &len);
        REQUIRE(text != NULL, "cannot read %s", paths[i]);
        add_text(a, c, text, len);
    }
}

/* Everything the frontend does with a text. */
static void run_text(const char *text, size_t n, const Allocator *memory)
{
    Session s;
    jmp_buf out;
    session_open(&s);
    s.arena.alloc = memory;
    if (setjmp(out) == 0) {
        s.arena.oom = &out;
        int file = session_text(&s, "<fuzz>", text, n);
        frontend_tokens(&s.arena, &s.diags, file, &s.out);
        s.diags.n = 0;
        s.diags.nerrors = s.diags.nwarnings = 0;
        frontend_parse(&s.arena, &s.diags, file, &s.options, &s.ast);
        frontend_check_file(&s.arena, &s.diags, &s.ast, &s.options);
        ast_print(&s.ast, &s.out);
        diag_render(&s.diags, &s.out, true);
        diag_render_json(&s.diags, &s.out);
        CHECK((s.diags.nerrors > 0) ==
                  (s.diags.nerrors + s.diags.nwarnings > 0 && s.diags.nerrors > 0),
              "counts");
        for (size_t i = 0; i < s.diags.n; i++) {
            Span at = s.diags.items[i].span;
            CHECK(at.end == 0 || (at.begin >= 1 && at.begin <= n + 1 && at.end >= at.begin),
                  "place %u..%u of %zu", at.begin, at.end, n);
        }
    }
    session_close(&s);
}

static size_t mutate(char *to, size_t room, const Corpus *c)
{
    static const char *const pieces[] = {"{",         "}",
                                         "(",         ")",
                                         "[",         "]",
                                         ";",         "\n",
                                         ":=",        "=",
                                         "==",        "when ",
                                         "else ",     "hyper ",
                                         "state ",    "if ",
                                         "use ",      "optimizer x ",
                                         "fn f(x) ",  "import \"a.opt\"\n",
                                         "\"",        "'",
                                         "**",        "&&",
                                         "..",        "1e999",
                                         "0x1",       "g",
                                         "p -= ",     "\x80",
                                         "\xff",      "#",
                                         "repeat ",   "shape [..] ",
                                         "recipe r ", "return ",
                                         "const ",    "direction ",
                                         "?",         ":",
                                         "->",        "/*",
                                         "*/",        "old(",
                                         "sum[row](", "\t",
                                         "\r"};
    uint32_t pick = random_below((uint32_t)c->n);
    size_t n = c->sizes[pick] < room ? c->sizes[pick] : room;
    memcpy(to, c->texts[pick], n);
    for (uint32_t edits = 1 + random_below(8); edits > 0; edits--) {
        uint32_t at = n ? random_below((uint32_t)n) : 0, len = 1 + random_below(12);
        uint32_t kind = random_below(5);
        if (kind == 0 && at + len <= n) { /* take out */
            memmove(to + at, to + at + len, n - at - len);
            n -= len;
        } else if (kind == 1 && n > 0) { /* change a byte */
            to[at] = (char)random_below(256);
        } else if (kind == 2 && n + len <= room && at + len <= n) { /* say twice */
            memmove(to + at + len, to + at, n - at);
            n += len;
        } else if (kind == 3) { /* cut off */
            if (random_below(4) == 0) n = at;
        } else {
            const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
            size_t m = strlen(piece);
            if (n + m > room) continue;
            memmove(to + at + m, to + at, n - at);
            memcpy(to + at, piece, m);
            n += m;
        }
    }
    return n;
}

/* ---- memory that runs out -------------------------------------------------------------------- */

static void run_out_of_memory(const Corpus *c)
{
    for (size_t i = 0; i < c->n; i++) {
        for (long n = 0; n < 200; n++) {
            Failing f = {.left = n};
            Allocator memory = {failing_realloc, &f};
            run_text(c->texts[i], c->sizes[i], &memory);
            CHECK(f.live == 0, "text %zu, allocation %ld fails: %ld blocks are left", i, n, f.live);
            if (f.left >= 0) break; /* none failed */
        }
    }
}

/* Shapes that recursion and quadratic scans would trip over; a quarter of the times given. */
static void run_large(void)
{
    static const struct {
        const char *head, *piece, *tail;
        int times;
    } shapes[] = {
        {"optimizer a { x = ", "(", "", 200000},
        {"optimizer a {", "when t > 1 {", "", 100000},
        {"optimizer a { x = ", "- ", "g }", 200000},
        {"optimizer a { x = g", "^g", " }", 200000},
        {"optimizer a { x = g", " + g", " }", 200000},
        {"optimizer a { x = ", "t > 1 ? 1 : ", "1 }", 100000},
        {"optimizer a { x = ", "not ", "g }", 200000},
        {"optimizer a { when t > 1 {} ", "else when t > 2 {} ", "}", 50000},
        {"", "}", "", 300000},
        {"", "/*", "", 300000},
        {"", "/*\n", "", 300000},
        {"", "$ ", "", 300000},
        {"", "m := g\n", "", 200000},
        {"optimizer a {\n", "m := * g\n", "}", 200000},
        {"", "optimizer a { p -= g }\n", "", 50000},
        {"optimizer a { x = f(", "[", ")}", 100000},
        {"optimizer a { x = f(", "g,", "g) }", 300000},
        {"", "\"", "", 300000},
        {"", "import \"a.opt\"\n", "", 10000},
        {"optimizer a { x = g", "[g", "", 100000},
        {"optimizer a { ", "if ", "}", 200000},
        {"", "optimizer ", "", 200000},
        {"", "fn f(x) { ", "", 100000},
        {"optimizer a { x = f(", "\nm", "", 200000},
        {"optimizer a { ", "when { ", "", 100000},
        {"recipe r { ", "group x { ", "", 100000},
        {"optimizer a { ", "x = f(\nm := g\n", "}", 100000},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        Arena a = {0};
        StrBuf text = {.arena = &a};
        sb_puts(&text, shapes[i].head);
        for (int k = 0; k < shapes[i].times / 4; k++) sb_puts(&text, shapes[i].piece);
        sb_puts(&text, shapes[i].tail);
        clock_t begin = clock();
        run_text(text.text, text.len, NULL);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (getenv("DSOPT_TIMES")) printf("%5.2f s  %s\n", seconds, shapes[i].piece);
        /* Under a second in any build; what grows with the square of its size takes minutes. */
        CHECK(seconds < 30, "'%s' %d times takes %.1f s", shapes[i].piece, shapes[i].times,
              seconds);
        arena_free(&a);
    }
}

int main(int argc, char **argv)
{
    enum { ROOM = 1 << 14 };
    static char text[ROOM];
    long count = argc > 1 ? atol(argv[1]) : 4000;
    state = argc > 2 ? strtoull(argv[2], NULL, 10) | 1 : 0x9E3779B97F4A7C15u;
    Arena a = {0};
    Corpus corpus = {0};
    add_folder(&a, &corpus, DSOPT_SOURCE_DIR "/tests/frontend/golden");
    add_folder(&a, &corpus, DSOPT_SOURCE_DIR "/stdlib");
    run_out_of_memory(&corpus);
    add_folder(&a, &corpus, DSOPT_SOURCE_DIR "/tests/frontend/reject");
    for (long i = 0; i < count; i++) run_text(text, mutate(text, ROOM, &corpus), NULL);
    run_large();
    arena_free(&a);
    return check_done();
}
