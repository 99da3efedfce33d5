/* source_target.c - a program's text through all of the frontend: tokens, tree, messages, layout,
 * check, lowering, passes, plan.
 *
 * A first line `#! rule: lookahead(adamw)` is the application that is checked.
 *
 *   in:  any bytes
 *   out: no crash; a module exactly if there was no error, and never an internal one; its text reads
 *        back; what is laid out has the same tokens, and laying it out again changes nothing
 */
#include "target.h"

typedef struct Work {
    Arena arena;
    SourceSet sources;
    DiagSink diags;
} Work;

static int open_text(Work *w, const char *name, const char *text, size_t n)
{
    w->sources.arena = &w->arena;
    w->diags = (DiagSink){.arena = &w->arena, .sources = &w->sources};
    return source_add(&w->sources, name, text, n);
}

static void see_messages(Work *w)
{
    StrBuf said = {.arena = &w->arena};
    diag_render(&w->diags, &said, true);
    diag_render_json(&w->diags, &said);
    for (size_t i = 0; i < w->diags.n; i++)
        MUST(w->diags.items[i].code != DIAG_INTERNAL, "%s", said.text);
}

/* The tokens without their places. */
static const char *words(Work *w, int file)
{
    StrBuf all = {.arena = &w->arena}, out = {.arena = &w->arena};
    if (!frontend_tokens(&w->arena, &w->diags, file, &all)) return NULL;
    sb_puts(&out, "");
    for (const char *line = all.text; line && *line;) {
        const char *end = strchr(line, '\n'), *blank = strchr(line, ' ');
        if (!end || !blank) break;
        sb_putn(&out, blank, (size_t)(end - blank + 1));
        line = end + 1;
    }
    return out.text;
}

static void lay_out(const char *text, size_t n)
{
    Work w = {0};
    StrBuf once = {.arena = &w.arena}, twice = {.arena = &w.arena};
    int file = open_text(&w, "fuzz.opt", text, n);
    FrontendOptions o = {0};
    Ast ast = {0};
    bool good = file >= 0 && frontend_parse(&w.arena, &w.diags, file, &o, &ast);
    if (good && frontend_format(&w.arena, &w.diags, file, &once)) {
        int again = source_add(&w.sources, "once.opt", once.text ? once.text : "", once.len);
        const char *before = words(&w, file), *after = again < 0 ? NULL : words(&w, again);
        MUST(before && after && strcmp(before, after) == 0, "--- from\n%s\n--- to\n%s", text,
             once.text);
        MUST(frontend_format(&w.arena, &w.diags, again, &twice), "%s", once.text);
        bool same = once.len == twice.len;
        MUST(same && (once.len == 0 || memcmp(once.text, twice.text, once.len) == 0),
             "--- once\n%s\n--- twice\n%s", once.text, twice.text);
    }
    arena_free(&w.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Work w = {0};
    char *text = arena_strndup(&w.arena, (const char *)data, size);
    if (size) memcpy(text, data, size); /* zero bytes, too */
    int file = open_text(&w, "fuzz.opt", text, size);
    FrontendOptions o = {0};
    static const char directive[] = "#! rule: ";
    if (strncmp(text, directive, sizeof directive - 1) == 0) {
        const char *rule = text + sizeof directive - 1;
        o.rule = arena_strndup(&w.arena, rule, strcspn(rule, "\n"));
    }
    if (file >= 0) {
        Ast ast = {0};
        StrBuf tree = {.arena = &w.arena};
        frontend_parse(&w.arena, &w.diags, file, &o, &ast);
        frontend_check_file(&w.arena, &w.diags, &ast, &o);
        ast_print(&ast, &tree);
        see_messages(&w);
        w.diags = (DiagSink){.arena = &w.arena, .sources = &w.sources};
        for (int guard = 0; guard < 2; guard++) {
            IrModule *m = compile_source(&w.arena, &w.diags, file, &o, guard);
            see_messages(&w);
            MUST((m != NULL) == (w.diags.nerrors == 0), "%s", text);
            if (!m) break;
            must_round_trip(&w.arena, m);
            must_plan(&w.arena, m);
        }
        if (!memchr(text, 0, size)) lay_out(text, size); /* a file with one is refused */
    }
    arena_free(&w.arena);
    return 0;
}
