/* options.c - the command line: parser and --help, both made from options.def.
 *
 *     dsoptc --emti=ir x.opt  ->  dsoptc: unknown option '--emti'; did you mean '--emit'?   (exit
 * status 2)
 */
#include "cli.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

typedef struct OptionRow {
    char short_name;
    const char *long_name, *arg, *group, *what;
} OptionRow;

static const OptionRow rows[OPT_COUNT_] = {
#define OPTION(ENUM, short_name, long_name, arg, group, what)                                      \
    {short_name, long_name, arg, group, what},
#include "options.def"
};

static bool is_single_dash(const OptionRow *r)
{
    return r->long_name[0] == '-';
}

void options_help(StrBuf *out)
{
    sb_puts(
        out,
        "dsoptc: compiles optimizer rules (.opt) to GPU and CPU code\n\n"
        "  dsoptc RULE -o FILE            RULE: a file, a name of the standard library, or - "
        "(standard input)\n"
        "  dsoptc check RULE...           all errors and warnings, nothing written\n"
        "  dsoptc explain RULE            phases, state, bytes and flops per parameter, and why\n"
        "  dsoptc fmt FILE...             lay rules out, in place (--check: only name those that "
        "would change)\n"
        "  dsoptc replay [RULE] FILE.vec  run a rule over a recorded trajectory and compare\n");
    const char *done[16];
    size_t ndone = 0;
    for (int i = 0; i < OPT_COUNT_; i++) {
        bool seen = false;
        for (size_t k = 0; k < ndone; k++) seen |= !strcmp(done[k], rows[i].group);
        if (seen) continue;
        done[ndone++] = rows[i].group;
        sb_printf(out, "\n%s:\n", rows[i].group);
        for (int j = i; j < OPT_COUNT_; j++) {
            const OptionRow *r = &rows[j];
            if (strcmp(r->group, rows[i].group)) continue;
            char left[64];
            const char *sep = !r->arg             ? ""
                              : is_single_dash(r) ? (strlen(r->long_name) > 4 ? "=" : " ")
                                                  : "=";
            if (!strcmp(r->long_name, "-W")) sep = "";
            if (r->short_name && !is_single_dash(r))
                snprintf(left, sizeof left, "-%c, --%s%s%s", r->short_name, r->long_name, sep,
                         r->arg ? r->arg : "");
            else
                snprintf(left, sizeof left, "%s%s%s%s", is_single_dash(r) ? "" : "    --",
                         r->long_name, sep, r->arg ? r->arg : "");
            sb_printf(out, "  %-31s %s\n", left, r->what);
        }
    }
    sb_puts(out, "\nExit status: 0, 1 for errors in the input, 2 for wrong usage.\n");
}

static int usage_error(const char *what, const char *arg)
{
    cli_error("%s '%s'", what, arg);
    fprintf(stderr, "dsoptc: 'dsoptc --help' lists the options\n");
    return EXIT_USAGE;
}

static int unknown_option(const char *given)
{
    const char *names[OPT_COUNT_];
    for (int i = 0; i < OPT_COUNT_; i++) names[i] = rows[i].long_name;
    char bare[64];
    size_t skip = strspn(given, "-");
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(given + skip, "="), given + skip);
    const char *near = diag_suggest(bare, names, OPT_COUNT_);
    if (near)
        cli_error("unknown option '%s'; did you mean '%s%s'?", given, near[0] == '-' ? "" : "--",
                  near);
    else
        cli_error("unknown option '%s'", given);
    fprintf(stderr, "dsoptc: 'dsoptc --help' lists the options\n");
    return EXIT_USAGE;
}

static void push(Arena *a, Strings *s, const char *v)
{
    ARENA_PUSH(a, s->v, s->n, s->cap, v);
}

static void record(Arena *a, Options *o, OptionId id, const char *arg)
{
    o->value[id] = arg ? arg : "";
    if (id == OPT_DEFINE) push(a, &o->defines, arg);
    if (id == OPT_INCLUDE) push(a, &o->includes, arg);
    if (id == OPT_SET) push(a, &o->sets, arg);
    if (id == OPT_STATE) push(a, &o->states, arg);
    if (id == OPT_WARN) push(a, &o->warnings, arg);
}

/* Options with one dash and a name, as gcc has them: -MD, -MF FILE, -fsyntax-only,
 * -fdiagnostics-color=never. Returns how many words it took, 0 if `argv[0]` is none, -1 for an
 * error (printed). */
static int single_dash(Arena *a, Options *o, char **argv)
{
    for (int i = 0; i < OPT_COUNT_; i++) {
        const OptionRow *r = &rows[i];
        size_t n = strlen(r->long_name);
        if (!is_single_dash(r) || strncmp(argv[0], r->long_name, n)) continue;
        if (!strcmp(r->long_name, "-W")) {
            if (!argv[0][n]) continue;
            record(a, o, (OptionId)i, argv[0] + n);
            return 1;
        }
        if (!r->arg && !argv[0][n]) {
            record(a, o, (OptionId)i, NULL);
            return 1;
        }
        if (r->arg && argv[0][n] == '=') {
            record(a, o, (OptionId)i, argv[0] + n + 1);
            return 1;
        }
        if (r->arg && !argv[0][n]) {
            if (!argv[1]) return usage_error("an argument is missing after", argv[0]), -1;
            record(a, o, (OptionId)i, argv[1]);
            return 2;
        }
    }
    return 0;
}

static OptionId by_short(int c)
{
    for (int i = 0; i < OPT_COUNT_; i++)
        if (rows[i].short_name == c) return (OptionId)i;
    return OPT_COUNT_;
}

/* Options with two dashes or one letter, by getopt_long, over the words that single_dash left. */
static int getopt_words(Arena *a, Options *o, int argc, char **argv)
{
    struct option longs[OPT_COUNT_ + 1];
    char shorts[2 * OPT_COUNT_ + 2] = ":";
    size_t nl = 0, ns = 1;
    for (int i = 0; i < OPT_COUNT_; i++) {
        if (is_single_dash(&rows[i])) continue;
        longs[nl++] = (struct option){rows[i].long_name,
                                      rows[i].arg ? required_argument : no_argument, NULL, 256 + i};
        if (!rows[i].short_name) continue;
        shorts[ns++] = rows[i].short_name;
        if (rows[i].arg) shorts[ns++] = ':';
    }
    longs[nl] = (struct option){0};
    shorts[ns] = 0;
    opterr = 0;
    optind = 1;
    for (int c; (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        if (c == ':') return usage_error("an argument is missing after", argv[optind - 1]);
        if (c == '?' && optopt >= 256)
            return usage_error("no argument is taken by", argv[optind - 1]);
        if (c == '?' && optopt) return unknown_option((char[]){'-', (char)optopt, 0});
        if (c == '?') return unknown_option(argv[optind - 1]);
        record(a, o, c >= 256 ? (OptionId)(c - 256) : by_short(c), optarg);
    }
    for (int i = optind; i < argc; i++) push(a, &o->inputs, argv[i]);
    return -1;
}

bool options_one_of(const Options *o, OptionId id, const char *const *words, size_t n)
{
    const char *given = o->value[id], *name = rows[id].long_name;
    for (size_t i = 0; given && i < n; i++)
        if (!strcmp(given, words[i])) return true;
    if (!given) return true;
    cli_error("%s%s '%s': there are", is_single_dash(&rows[id]) ? "" : "--", name, given);
    for (size_t i = 0; i < n; i++) fprintf(stderr, "  %s\n", words[i]);
    return false;
}

static bool words_fit(const Options *o)
{
    static const char *const whens[] = {"auto", "always", "never"}, *const formats[] = {"text",
                                                                                        "json"};
    return options_one_of(o, OPT_COLOR, whens, 3) && options_one_of(o, OPT_FORMAT, formats, 2);
}

static void take_command(Options *o)
{
    static const struct {
        const char *name;
        Command command;
    } commands[] = {
        {"check", CMD_CHECK}, {"explain", CMD_EXPLAIN}, {"fmt", CMD_FMT}, {"replay", CMD_REPLAY}};
    if (o->inputs.n == 1 && !strcmp(o->inputs.v[0], "help")) o->value[OPT_HELP] = "";
    for (size_t i = 0; o->inputs.n && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(o->inputs.v[0], commands[i].name)) {
            o->command = commands[i].command;
            o->inputs.v++;
            o->inputs.n--;
            return;
        }
}

int options_parse(Arena *a, int argc, char **argv, Options *o)
{
    char **words = ARENA_ARRAY(a, char *, argc + 1);
    int n = 0;
    bool only_files = false;
    for (int i = 0; i < argc; i++) {
        int took = 0;
        if (i > 0 && !strcmp(argv[i], "--")) only_files = true;
        if (i > 0 && !only_files && argv[i][0] == '-') took = single_dash(a, o, argv + i);
        if (took < 0) return EXIT_USAGE;
        if (took) {
            i += took - 1;
            continue;
        }
        words[n++] = argv[i];
    }
    int status = getopt_words(a, o, n, words);
    if (status >= 0) return status;
    if (!words_fit(o)) return EXIT_USAGE;
    take_command(o);
    return -1;
}
