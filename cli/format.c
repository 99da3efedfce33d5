/* format.c - `dsoptc fmt FILES`: lays rules out in the one way there is, in place.
 *
 *     dsoptc fmt my.opt            dsoptc fmt - < my.opt            dsoptc fmt --check *.opt
 *
 * A file with mistakes is left alone, and so is one that is laid out already. --check writes
 * nothing: it names the files that would change, and exits with 1 if there are any.
 */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tokens as text without their places: what formatting may not change. */
static const char *token_words(Session *s, int file)
{
    StrBuf all = {.arena = s->arena}, words = {.arena = s->arena};
    if (!frontend_tokens(s->arena, &s->diags, file, &all)) return NULL;
    for (const char *line = all.text; line && *line;) {
        const char *end = strchr(line, '\n'), *blank = strchr(line, ' ');
        if (!end) break;
        sb_putn(&words, blank, (size_t)(end - blank + 1));
        line = end + 1;
    }
    return words.text ? words.text : "";
}

/* The file laid out; NULL: reported. */
static const char *format(Session *s, size_t *len)
{
    StrBuf out = {.arena = s->arena};
    const char *before = token_words(s, s->file);
    if (!before) return NULL;
    if (!frontend_format(s->arena, &s->diags, s->file, &out)) return NULL;
    const char *text = out.text ? out.text : "";
    int again = source_add(&s->sources, "<formatted>", text, out.len);
    const char *after = again < 0 ? NULL : token_words(s, again);
    if (!after || strcmp(before, after) != 0) {
        cli_error("%s: formatting would change its meaning, which is a mistake of dsoptc; it is "
                  "left as it is",
                  s->sources.files[s->file].name);
        return NULL;
    }
    *len = out.len;
    return text;
}

static int format_one(Arena *a, const Options *o, const char *input)
{
    bool check = o->value[OPT_CHECK] != NULL, standard = !strcmp(input, "-");
    Session s;
    size_t len = 0;
    const char *text = NULL;
    if (session_open_file(&s, a, o, input)) text = format(&s, &len);
    if (!session_finish(&s) || !text) return EXIT_INPUT;
    const SourceFile *source = &s.sources.files[s.file];
    bool same = source->len == len && !memcmp(source->text, text, len);
    if (check) {
        if (!same) printf("%s\n", input);
        return same ? EXIT_OK : EXIT_INPUT;
    }
    if (standard) return fwrite(text, 1, len, stdout) == len ? EXIT_OK : EXIT_INPUT;
    if (same) return EXIT_OK;
    char *path = realpath(input, NULL); /* a link stays one */
    output_add(&s, path ? arena_strdup(a, path) : input, text, len);
    free(path);
    s.in_place = true;
    return output_commit(&s) ? EXIT_OK : EXIT_INPUT;
}

int cmd_fmt(Arena *a, const Options *o)
{
    int status = EXIT_OK;
    if (!o->inputs.n) {
        cli_error("format what? 'dsoptc fmt my.opt'");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < o->inputs.n; i++) {
        int one = format_one(a, o, o->inputs.v[i]);
        if (one != EXIT_OK) status = one;
    }
    return status;
}
