/* main.c - dsoptc: which command is run, and what --list and --version say.
 *
 *     dsoptc --list  ->  adamw    AdamW: Adam with decoupled weight decay.
 */
#include "cli.h"
#include "runtime/dsopt.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void cli_error(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("dsoptc: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

static int list_stdlib(void)
{
    for (size_t i = 0; i < stdlib_count(); i++) {
        size_t len;
        const char *name = stdlib_name(i), *text = stdlib_text(name, &len);
        size_t first = strcspn(text, "\n"), skip = strspn(text, "# ");
        printf("%-18.*s %.*s\n", (int)strcspn(name, "."), name, (int)(first - skip), text + skip);
    }
    return EXIT_OK;
}

static int print_version(Arena *a)
{
    printf("dsoptc %s\n", dsopt_version_string());
    for (size_t i = 0; i < backend_count; i++) {
        StrBuf why = {.arena = a};
        BackendOptions none = {0};
        bool ok = backends[i]->probe(&none, &why);
        printf("  %-7s %s%s%s\n", backends[i]->name, backends[i]->what,
               ok ? "" : ": not usable here: ",
               ok         ? ""
               : why.text ? why.text
                          : "");
    }
    return EXIT_OK;
}

/* --rule 'sam(lion)' without a file names one: sam, of the standard library. */
static void input_from_rule(Arena *a, Options *o)
{
    const char *rule = o->value[OPT_RULE];
    if (o->inputs.n || !rule || o->command == CMD_FMT || o->command == CMD_REPLAY) return;
    rule += strspn(rule, " \t\n");
    size_t n = strcspn(rule, " \t\n({,");
    size_t size;
    const char *name = arena_strndup(a, rule, n);
    if (n && stdlib_text(name, &size)) ARENA_PUSH(a, o->inputs.v, o->inputs.n, o->inputs.cap, name);
}

static int run(Arena *a, int argc, char **argv)
{
    Options o = {0};
    int status = options_parse(a, argc, argv, &o);
    if (status >= 0) return status;
    if (o.value[OPT_HELP]) {
        StrBuf help = {.arena = a};
        options_help(&help);
        fputs(help.text, stdout);
        return EXIT_OK;
    }
    if (o.value[OPT_VERSION]) return print_version(a);
    if (o.value[OPT_LIST]) return list_stdlib();
    input_from_rule(a, &o);
    if (!o.inputs.n) {
        if (o.value[OPT_RULE])
            cli_error("no input: --rule chooses from a file or a name of the standard library, "
                      "as in 'dsoptc check lion --rule …'");
        else
            cli_error(
                "no input; 'dsoptc --help' says how it is used, 'dsoptc --list' what there is");
        return EXIT_USAGE;
    }
    switch (o.command) {
    case CMD_CHECK: return cmd_check(a, &o);
    case CMD_EXPLAIN: return cmd_explain(a, &o);
    case CMD_FMT: return cmd_fmt(a, &o);
    case CMD_REPLAY: return cmd_replay(a, &o);
    case CMD_COMPILE: break;
    }
    return cmd_compile(a, &o);
}

int main(int argc, char **argv)
{
    Arena a = {0};
    jmp_buf oom;
    a.oom = &oom;
    int status;
    if (setjmp(oom)) {
        cli_error("out of memory");
        status = EXIT_INPUT;
    } else {
        status = run(&a, argc, argv);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        cli_error("standard output: cannot be written");
        status = EXIT_INPUT;
    }
    arena_free(&a);
    return status;
}
