/* session.c - one compilation as the command line describes it: the input opened, diagnostics set
 * up, source to optimised IR.
 *
 *     session_open(&s, a, o, "adamw")  ->  standard library;  "my.opt"  ->  file;  "-"  -> standard
 * input
 */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "adamw", or "adamw.opt" where no such file exists: the standard library's. */
static int open_stdlib(Session *s, const char *input)
{
    size_t len;
    const char *text = stdlib_text(input, &len);
    if (!text || strchr(input, '/')) return -1;
    const char *dot = strrchr(input, '.');
    if (dot && access(input, F_OK) == 0) return -1;
    if (dot) fprintf(stderr, "dsoptc: no file '%s' here; taking the standard library's\n", input);
    return source_add(&s->sources,
                      arena_printf(s->arena, "<stdlib>/%s%s", input, dot ? "" : ".opt"), text, len);
}

/* A name without a dot or a folder was meant to be one of the standard library. */
static void hint_of_stdlib(Session *s, const char *input)
{
    if (strpbrk(input, "./") || !s->diags.n || !strcmp(input, "-")) return;
    const char **names = ARENA_ARRAY(s->arena, const char *, stdlib_count());
    for (size_t i = 0; i < stdlib_count(); i++)
        names[i] = arena_strndup(s->arena, stdlib_name(i), strcspn(stdlib_name(i), "."));
    const char *near = diag_suggest(input, names, stdlib_count());
    Diag *d = &s->diags.items[s->diags.n - 1];
    if (near)
        diag_hint(&s->diags, d, "the standard library has '%s'", near);
    else
        diag_hint(&s->diags, d,
                  "it is no rule of the standard library either: 'dsoptc --list' has them");
}

static void set_up_warnings(Session *s)
{
    const Strings *w = &s->options->warnings;
    for (size_t i = 0; i < w->n; i++) {
        const char *name = w->v[i];
        bool off = !strncmp(name, "no-", 3);
        if (!strcmp(name, "all")) continue; /* every warning is on unless turned off */
        if (!strcmp(name, "error")) {
            s->diags.werror = true;
            continue;
        }
        if (!diag_set_warning(&s->diags, off ? name + 3 : name, !off)) {
            cli_error("no warning '%s' (-W%s)", off ? name + 3 : name, name);
            exit(EXIT_USAGE);
        }
    }
}

static void set_up(Session *s, Arena *a, const Options *o)
{
    *s = (Session){.arena = a, .options = o};
    s->sources.arena = a;
    s->diags.arena = a;
    s->diags.sources = &s->sources;
    s->frontend = (FrontendOptions){.defines = o->defines.v,
                                    .ndefines = o->defines.n,
                                    .include_dirs = o->includes.v,
                                    .ninclude_dirs = o->includes.n,
                                    .rule = o->value[OPT_RULE],
                                    .entry = o->value[OPT_ENTRY]};
    set_up_warnings(s);
}

bool session_open_file(Session *s, Arena *a, const Options *o, const char *input)
{
    set_up(s, a, o);
    s->file = source_read(&s->diags, input);
    return s->file >= 0;
}

bool session_open(Session *s, Arena *a, const Options *o, const char *input)
{
    set_up(s, a, o);
    s->file = open_stdlib(s, input);
    if (s->file < 0) s->file = source_read(&s->diags, input); /* "-" too */
    if (s->file < 0) hint_of_stdlib(s, input);
    return s->file >= 0;
}

bool session_finish(Session *s)
{
    const char *when = s->options->value[OPT_COLOR], *format = s->options->value[OPT_FORMAT];
    bool color = !when || !strcmp(when, "auto") ? isatty(STDERR_FILENO) : !strcmp(when, "always");
    StrBuf out = {.arena = s->arena};
    if (format && !strcmp(format, "json"))
        diag_render_json(&s->diags, &out);
    else
        diag_render(&s->diags, &out, color);
    if (out.len) fputs(out.text, stderr);
    return s->diags.nerrors == 0;
}

IrModule *session_module(Session *s)
{
    bool guard = storage_gradient_is_narrow(s->options->value[OPT_STORAGE]);
    return compile_source(s->arena, &s->diags, s->file, &s->frontend, guard);
}

bool session_modules(Session *s, Modules *out)
{
    bool guard = storage_gradient_is_narrow(s->options->value[OPT_STORAGE]);
    return compile_entries(s->arena, &s->diags, s->file, &s->frontend, guard, out);
}
