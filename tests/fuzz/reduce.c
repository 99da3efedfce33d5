/* reduce.c - a failing case made small: lines, parts of expressions, tensors, steps are taken away as
 * long as it fails in the same way.
 *
 *   in:  a case of 80 lines and 7 tensors
 *   out: one of 8 lines and 1 tensor
 *
 * Each attempt runs in a process of its own, since a failure may be a crash or never end.
 */
#include "rules.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE = 20 }; /* seconds for an attempt */

static CaseResult attempt(const FuzzCase *c)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        Arena a = {0};
        StrBuf said = {.arena = &a};
        alarm(PATIENCE);
        bool quiet = freopen("/dev/null", "w", stdout) && freopen("/dev/null", "w", stderr);
        (void)quiet;
        _exit(case_compare(&a, c, &said));
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return CASE_SAME;
    bool known = WIFEXITED(status) && WEXITSTATUS(status) < CASE_CRASHED;
    return known ? (CaseResult)WEXITSTATUS(status) : CASE_CRASHED;
}

typedef struct Reducer {
    Arena *a;
    FuzzCase *c; /* the smallest so far */
    CaseResult wanted;
    unsigned attempts;
} Reducer;

static bool keeps(Reducer *r, const FuzzCase *smaller)
{
    r->attempts++;
    if (attempt(smaller) != r->wanted) return false;
    *r->c = *smaller;
    return true;
}

static bool keeps_text(Reducer *r, const char *text)
{
    FuzzCase smaller = *r->c;
    if (strcmp(text, smaller.text) == 0) return false;
    smaller.text = arena_strdup(r->a, text);
    return keeps(r, &smaller);
}

/* The text with [begin, end) replaced. */
static const char *with(Reducer *r, size_t begin, size_t end, const char *piece, size_t n)
{
    StrBuf out = {.arena = r->a};
    sb_putn(&out, r->c->text, begin);
    sb_putn(&out, piece, n);
    sb_puts(&out, r->c->text + end);
    return out.text;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static size_t line_end(const char *text, size_t at)
{
    at += strcspn(text + at, "\n");
    return at + (text[at] == '\n');
}

/* The end of the block that a line opens, or of the line itself. */
static size_t block_end(const char *text, size_t at)
{
    int depth = 0;
    size_t end = at;
    do {
        size_t next = line_end(text, end);
        for (size_t i = end; i < next; i++) depth += (text[i] == '{') - (text[i] == '}');
        if (next == end) break;
        end = next;
    } while (depth > 0 && text[end]);
    return end;
}

static bool fewer_lines(Reducer *r)
{
    bool any = false;
    for (size_t span = 16; span > 0; span /= 4) { /* runs of lines, then single ones */
        for (size_t at = 0; r->c->text[at];) {
            size_t end = at;
            for (size_t k = 0; k < span; k++) end = block_end(r->c->text, end);
            if (keeps_text(r, with(r, at, end, "", 0)))
                any = true;
            else
                at = line_end(r->c->text, at);
        }
    }
    return any;
}

/* `when c {` … `}` without its first line and its last: what stands inside. */
static bool fewer_blocks(Reducer *r)
{
    bool any = false;
    for (size_t at = 0; r->c->text[at]; at = line_end(r->c->text, at)) {
        const char *text = r->c->text;
        size_t first = line_end(text, at), end = block_end(text, at);
        size_t last = end > 1 ? end - 1 : 0; /* the last line's beginning */
        while (last > first && text[last - 1] != '\n') last--;
        if (end <= first || last < first) continue;
        StrBuf inside = {.arena = r->a};
        sb_putn(&inside, text + first, last - first);
        if (inside.len && !strstr(inside.text, "} else")) {
            any |= keeps_text(r, with(r, at, end, inside.text, inside.len));
            continue;
        }
        size_t other = first; /* the first branch alone, and its end */
        while (other < last && strncmp(text + other + strspn(text + other, " "), "} else", 6) != 0)
            other = line_end(text, other);
        if (other < last) any |= keeps_text(r, with(r, other, last, "", 0));
    }
    return any;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static size_t matching(const char *text, size_t open)
{
    int depth = 0;
    for (size_t i = open; text[i] && text[i] != '\n'; i++) {
        depth += (text[i] == '(') - (text[i] == ')');
        if (depth == 0) return i;
    }
    return 0;
}

/* A bracket, with the function's name before it, becomes one of its parts, or a number. */
static bool smaller_bracket(Reducer *r, size_t open)
{
    const char *text = r->c->text;
    size_t close = matching(text, open), begin = open;
    if (!close) return false;
    while (begin > 0 && (isalnum((unsigned char)text[begin - 1]) || strchr("_[]", text[begin - 1])))
        begin--;
    static const char *const small[] = {"1", "g", "p", "0.5", "(g > 0)"};
    for (size_t k = 0; k < sizeof small / sizeof *small; k++)
        if (close - begin >= strlen(small[k]) &&
            keeps_text(r, with(r, begin, close + 1, small[k], strlen(small[k]))))
            return true;
    int depth = 0;
    size_t part = open + 1;
    for (size_t i = open + 1; i <= close; i++) {
        depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
        bool splits = depth <= 0 && (text[i] == ' ' || text[i] == ',' || i == close);
        if (!splits) continue;
        if (i > part + 1 || (i == part + 1 && isalnum((unsigned char)text[part])))
            if (keeps_text(r, with(r, begin, close + 1, text + part, i - part))) return true;
        part = i + 1;
    }
    return false;
}

static bool smaller_expressions(Reducer *r)
{
    bool any = false;
    for (size_t at = 0; r->c->text[at];) {
        if (r->c->text[at] == '(' && smaller_bracket(r, at))
            any = true, at = 0;
        else
            at++;
    }
    return any;
}

/* What stands behind `=`, `:=` and the like becomes g, or a number. */
static bool smaller_values(Reducer *r)
{
    static const char *const small[] = {"0", "g", "p", "1"};
    bool any = false;
    for (size_t at = 0; r->c->text[at]; at++) {
        if (strncmp(r->c->text + at, "= ", 2) != 0) continue;
        size_t end = at + 2 + strcspn(r->c->text + at + 2, "\n");
        for (size_t k = 0; k < 4 && end > at + 4; k++)
            if (keeps_text(r, with(r, at + 2, end, small[k], 1))) {
                any = true;
                break;
            }
    }
    return any;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static bool fewer_tensors(Reducer *r)
{
    bool any = false;
    for (int i = r->c->ntensors - 1; i >= 0; i--) {
        FuzzCase smaller = *r->c;
        if (smaller.ntensors == 1) break;
        memmove(&smaller.t[i], &smaller.t[i + 1], sizeof *smaller.t * (size_t)(smaller.ntensors - i - 1));
        smaller.ntensors--;
        any |= keeps(r, &smaller);
    }
    for (int i = 0; i < r->c->ntensors; i++) {
        for (int d = 0; d < r->c->t[i].ndim; d++) {
            static const int64_t sizes[] = {1, 2, 3, 5, 17, 129};
            for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
                FuzzCase smaller = *r->c;
                if (sizes[k] >= smaller.t[i].shape[d]) break;
                smaller.t[i].shape[d] = sizes[k];
                if (keeps(r, &smaller)) {
                    any = true;
                    break;
                }
            }
        }
        FuzzCase smaller = *r->c;
        CaseTensor *t = &smaller.t[i];
        t->misaligned = 0;
        t->dtype = t->grad = DSOPT_F32;
        t->group = "default";
        if (memcmp(t, &r->c->t[i], sizeof *t) != 0) any |= keeps(r, &smaller);
    }
    return any;
}

static bool fewer_options(Reducer *r)
{
    bool any = false;
    for (int which = 0; which < 4; which++) {
        FuzzCase smaller = *r->c;
        if (which == 0) smaller.rule = NULL;
        if (which == 1) smaller.storage = NULL;
        if (which == 2) smaller.special = 0;
        if (which == 3 && smaller.steps > 1) smaller.steps--;
        if (memcmp(&smaller, r->c, sizeof smaller) != 0) any |= keeps(r, &smaller);
    }
    const char *block = r->c->rule ? strstr(r->c->rule, " {") : NULL;
    if (block) {
        FuzzCase smaller = *r->c;
        smaller.rule = arena_strndup(r->a, smaller.rule, (size_t)(block - smaller.rule));
        any |= keeps(r, &smaller);
    }
    return any;
}

void case_reduce(Arena *a, FuzzCase *c)
{
    Reducer r = {.a = a, .c = c, .wanted = attempt(c)};
    if (r.wanted == CASE_SAME || r.wanted == CASE_REFUSED) {
        fprintf(stderr, "the case does not fail\n");
        return;
    }
    bool smaller = true;
    while (smaller) {
        smaller = fewer_options(&r);
        smaller |= fewer_tensors(&r);
        smaller |= fewer_lines(&r);
        smaller |= fewer_blocks(&r);
        smaller |= smaller_values(&r);
        smaller |= smaller_expressions(&r);
    }
    fprintf(stderr, "%u attempts, %zu bytes of text are left\n", r.attempts, strlen(c->text));
}
