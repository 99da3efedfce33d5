/* cli.h - dsoptc's own parts: options, the compilation they describe, and files written whole or
 * not at all.
 *
 *     dsoptc adamw.opt -o adamw.ptx      dsoptc check my.opt      dsoptc explain lamb      dsoptc
 * replay adamw.torch.f64.vec
 *
 * Exit status: 0, 1 for errors in the input, 2 for wrong usage.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H
#include "codegen/codegen.h"

enum { EXIT_OK = 0, EXIT_INPUT = 1, EXIT_USAGE = 2 };

typedef enum OptionId {
#define OPTION(ENUM, short_name, long_name, arg, group, what) OPT_##ENUM,
#include "options.def"
    OPT_COUNT_
} OptionId;

typedef enum Command { CMD_COMPILE, CMD_CHECK, CMD_EXPLAIN, CMD_FMT, CMD_REPLAY } Command;

typedef struct Strings {
    const char **v;
    size_t n, cap;
} Strings;

typedef struct Options {
    Command command;
    Strings inputs; /* files, standard library names, "-" */
    Strings defines, includes, sets, states, warnings;
    const char
        *value[OPT_COUNT_]; /* last argument given; "" for options without one; NULL: not given */
} Options;

/* Reads the command line. -1: go on; else the exit status (usage errors are printed, --help is
 * done). */
int options_parse(Arena *a, int argc, char **argv, Options *o);
void options_help(StrBuf *out);
/* Whether the option was not given, or given one of n words. False: said on stderr, with the words.
 */
bool options_one_of(const Options *o, OptionId id, const char *const *words, size_t n);

/* ---- one compilation ---- */

typedef struct Output {
    const char *path, *part; /* its name, and the temporary one once there is a file of it */
    const void *data;
    size_t len;
} Output;

typedef struct Session {
    Arena *arena;
    const Options *options;
    SourceSet sources;
    DiagSink diags;
    FrontendOptions frontend;
    int file;        /* index of the main source */
    Output *outputs; /* what output_commit will write */
    size_t noutputs, cap_outputs;
    bool in_place; /* the outputs replace what was read, and keep its mode */
} Session;

/* Opens the input (a path, a standard library name, or "-"). False: reported in s->diags or on
 * stderr. */
bool session_open(Session *s, Arena *a, const Options *o, const char *input);
/* The same without the standard library: a path, or "-". */
bool session_open_file(Session *s, Arena *a, const Options *o, const char *input);
/* Prints what was collected to stderr; true if there was no error. */
bool session_finish(Session *s);
/* Parse to optimised IR under --storage; NULL: errors reported. */
IrModule *session_module(Session *s);
/* Those of all entry points, the step first; of one where --entry names it. */
bool session_modules(Session *s, Modules *out);

int cmd_compile(Arena *a, const Options *o);
int cmd_check(Arena *a, const Options *o);
int cmd_fmt(Arena *a, const Options *o);
int cmd_explain(Arena *a, const Options *o);
int cmd_replay(Arena *a, const Options *o);

/* Prints "dsoptc: …" to stderr. */
void cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- what it writes ---- */

/* The text must live until output_commit. */
void output_add(Session *s, const char *path, const void *data, size_t len);
/* The same for a file that another program has written, as `part`. */
void output_add_made(Session *s, const char *path, const char *part);
/* Writes all files through temporary names beside them and renames: each whole, and none where one
 * cannot be written or would replace a source. False: said on stderr. */
bool output_commit(Session *s);
#endif
