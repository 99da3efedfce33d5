/* The IR of small programs and of the standard library, against recorded text.
 *
 *   in:  golden/lion.opt
 *   out: equal to golden/lion.ir, no message, and the same when it is read back and printed again;
 *        with DSOPT_BLESS set, golden/lion.ir is written
 *
 * Comments direct it: "#! define: nesterov=1", "#! guard:" (16-bit gradients), "#! compute: f64",
 * "#! raw:" (before the passes), "#! entry: eval" (that entry point, raw). */
#include "source.h"

static IrModule *lower(Arena *a, DiagSink *d, const Program *p)
{
    int file = source_add(d->sources, p->name, p->text, strlen(p->text));
    if (!p->raw) return compile_source(a, d, file, &p->options, p->guard);
    Ast ast = {0};
    if (!frontend_parse(a, d, file, &p->options, &ast)) return NULL;
    Rule *rule = frontend_check(a, d, &ast, &p->options);
    LowerOptions o = {.compute_f64 = p->options.compute_f64,
                      .guard_gradients = p->guard,
                      .entry = p->entry};
    return rule ? ir_lower(a, d, rule, &o) : NULL;
}

static char *ir_of(Arena *a, const Program *p)
{
    SourceSet sources = {.arena = a};
    DiagSink d = {.arena = a, .sources = &sources};
    IrModule *m = lower(a, &d, p);
    StrBuf messages = {.arena = a}, out = {.arena = a}, why = {.arena = a};
    diag_render(&d, &messages, false);
    CHECK(m && d.n == 0, "%s: messages:\n%s", p->name, messages.text ? messages.text : "");
    if (!m) return NULL;
    CHECK(ir_verify(m, &why), "%s: %s", p->name, why.text);
    ir_print(m, &out);
    StrBuf again = {.arena = a};
    IrModule *back = ir_parse(a, out.text, &why);
    CHECK(back, "%s: its IR is not read back: %s", p->name, why.text);
    if (back) ir_print(back, &again);
    CHECK(!back || strcmp(out.text, again.text) == 0, "%s: printed\n%s\nread back as\n%s", p->name,
          out.text, again.text);
    return out.text;
}

static void golden(const char *path)
{
    Arena a = {0};
    Program p;
    program_read(&a, path, &p);
    char *got = ir_of(&a, &p);
    const char *base = strrchr(path, '/') + 1;
    char *at = arena_printf(&a, "%s/tests/sema/golden/%.*s.ir", DSOPT_SOURCE_DIR,
                            (int)(strlen(base) - 4), base);
    if (got && getenv("DSOPT_BLESS")) {
        FILE *f = fopen(at, "w");
        REQUIRE(f && fputs(got, f) >= 0 && fclose(f) == 0, "cannot write %s", at);
    }
    char *want = file_read(&a, at);
    CHECK(want, "no %s: run with DSOPT_BLESS=1 and read what it writes", at);
    if (want && got) CHECK(strcmp(want, got) == 0, "%s: expected\n%s\ngot\n%s", path, want, got);
    arena_free(&a);
}

/* Every file of the standard library compiles, in both lowerings, under the guard too; wrappers
 * around adamw. */
static void compiles(const char *path)
{
    for (int mode = 0; mode < 4; mode++) {
        Arena a = {0};
        Program p;
        program_read(&a, path, &p);
        if (strstr(p.text, "\noptimizer ")) {
            p.options.rule = wrapper_rule(&a, p.text);
            p.options.compute_f64 = mode & 1;
            p.guard = mode & 2;
            ir_of(&a, &p);
        }
        arena_free(&a);
    }
}

/* A file without an optimizer can be checked, though not compiled. */
static void library(void)
{
    for (int broken = 0; broken < 2; broken++) {
        Arena a = {0};
        SourceSet sources = {.arena = &a};
        DiagSink d = {.arena = &a, .sources = &sources};
        const char *text =
            broken ? "transform t : gradient { g := h }" : "transform t : gradient { g := -g }";
        int file = source_add(&sources, "t.opt", text, strlen(text));
        CHECK(check_source(&a, &d, file, NULL) == !broken && d.n == (size_t)broken, "%s: %zu", text,
              d.n);
        arena_free(&a);
    }
}

int main(void)
{
    CHECK(programs_each(DSOPT_SOURCE_DIR "/tests/sema/golden", golden) > 0, "no golden programs");
    CHECK(programs_each(DSOPT_SOURCE_DIR "/stdlib", compiles) > 0, "no stdlib");
    library();
    return check_done();
}
