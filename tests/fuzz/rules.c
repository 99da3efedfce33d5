/* rules.c - generated rules on all backends, and the cases of old failures again.
 *
 *   fuzz_rules [--seed N] [--count N] [--seconds S] [--cc]   compares N cases, or for S seconds
 *   fuzz_rules --show N                                      prints the case of a seed
 *   fuzz_rules --reduce N|FILE                               a failing case made small, as a file's text
 *   fuzz_rules --replay PATH…                                files, and all files of folders
 *
 *   out: "300 cases compared, 12 refused"; what differs, with its seed and its text
 */
#include "rules.h"
#include "tests/check.h"
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct Options {
    uint64_t seed, only;
    long count;
    double seconds;
    const char *reduce;
    bool show;
    char **replay;
} Options;

/* ---- a crash names its seed ------------------------------------------------------------------ */

static char about[64];

static void crashed(int signal_number)
{
    ssize_t n = write(2, about, strlen(about));
    (void)n;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void name_crashes(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], crashed);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void report(const FuzzCase *c, CaseResult result, const char *said, const char *what)
{
    Arena a = {0};
    StrBuf text = {.arena = &a};
    case_write(c, &text);
    CHECK(result == CASE_SAME, "%s %s: %s\n%s", what,
          result == CASE_REFUSED ? "is refused"
          : result == CASE_DIFFERS ? "differs"
                                   : "fails",
          said, text.text);
    arena_free(&a);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compare_many(const Options *o)
{
    long n = 0, refused = 0;
    double begin = now();
    for (; o->seconds > 0 ? now() - begin < o->seconds : n < o->count; n++) {
        Arena a = {0};
        FuzzCase c;
        StrBuf said = {.arena = &a};
        uint64_t seed = o->seed + (uint64_t)n;
        snprintf(about, sizeof about, "seed %llu crashes\n", (unsigned long long)seed);
        case_random(&a, seed, &c);
        CaseResult result = case_compare(&a, &c, &said);
        refused += result == CASE_REFUSED;
        if (getenv("DSOPT_REFUSED") && result == CASE_REFUSED)
            printf("seed %llu: %s\n", (unsigned long long)seed, said.text);
        if (result == CASE_REFUSED) result = CASE_SAME;
        report(&c, result, said.text, arena_printf(&a, "seed %llu", (unsigned long long)seed));
        arena_free(&a);
        if (check_failures > 4) break;
    }
    printf("%ld cases compared, %ld refused; %.0f %% of the values were finite\n", n - refused, refused,
           100 * case_finite_share());
    CHECK(n < 20 || refused * 4 < n, "the generator makes too much that is no rule");
    CHECK(n < 20 || case_finite_share() > 0.5, "too much is NaN or infinite");
}

static unsigned replayed;

static void replay(const char *path)
{
    struct stat is;
    REQUIRE(stat(path, &is) == 0, "cannot find %s", path);
    if (!S_ISDIR(is.st_mode)) {
        Arena a = {0};
        FuzzCase c;
        StrBuf said = {.arena = &a};
        snprintf(about, sizeof about, "%.50s crashes\n", path);
        REQUIRE(case_read(&a, path, &c), "%s is no case", path);
        CaseResult result = case_compare(&a, &c, &said);
        report(&c, result, said.text, path);
        arena_free(&a);
        replayed++;
        return;
    }
    struct dirent **list;
    int n = scandir(path, &list, NULL, alphasort);
    REQUIRE(n >= 0, "cannot read %s", path);
    for (int i = 0; i < n; i++) {
        char at[4096];
        snprintf(at, sizeof at, "%s/%s", path, list[i]->d_name);
        if (list[i]->d_name[0] != '.') replay(at);
        free(list[i]);
    }
    free(list);
}

static int show(const char *what, bool reduce)
{
    Arena a = {0};
    FuzzCase c;
    StrBuf out = {.arena = &a};
    char *end;
    uint64_t seed = strtoull(what, &end, 10);
    if (*end == 0)
        case_random(&a, seed, &c);
    else
        REQUIRE(case_read(&a, what, &c), "%s is no case", what);
    if (reduce) case_reduce(&a, &c);
    case_write(&c, &out);
    fputs(out.text, stdout);
    arena_free(&a);
    return 0;
}

int main(int argc, char **argv)
{
    Options o = {.seed = 1, .count = 150};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool takes = true;
        if (strcmp(argv[i], "--seed") == 0)
            o.seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--count") == 0)
            o.count = atol(value);
        else if (strcmp(argv[i], "--seconds") == 0)
            o.seconds = atof(value);
        else if (strcmp(argv[i], "--show") == 0)
            return show(value, false);
        else if (strcmp(argv[i], "--cc") == 0)
            compare_cc = true, takes = false;
        else if (strcmp(argv[i], "--reduce") == 0)
            o.reduce = value;
        else if (strcmp(argv[i], "--replay") == 0)
            o.replay = argv + i + 1, i = argc;
        else
            REQUIRE(0, "unknown option %s", argv[i]);
        i += takes;
    }
    if (o.reduce) return show(o.reduce, true);
    setvbuf(stdout, NULL, _IOLBF, 0);
    name_crashes();
    for (char **path = o.replay; path && *path; path++) replay(*path);
    if (o.replay)
        printf("%u cases replayed\n", replayed);
    else
        compare_many(&o);
    compare_close();
    return check_done();
}
