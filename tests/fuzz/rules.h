/* rules.h - generated rules: a case (a program, its tensors, what happens to them), where it comes
 * from, and what is done with it.
 *
 *     FuzzCase c;  case_random(&a, seed, &c);
 *     if (case_compare(&a, &c, &said) == CASE_DIFFERS) { case_reduce(&a, &c); case_write(&c, &text); }
 */
#ifndef TESTS_FUZZ_RULES_H
#define TESTS_FUZZ_RULES_H
#include "frontend/frontend.h"
#include "runtime/dsopt.h"

#define FUZZ_COUNT(array) (sizeof(array) / sizeof *(array))

enum { CASE_TENSORS = 8 };

typedef struct CaseTensor {
    const char *name, *group;
    int ndim;
    int64_t shape[4];
    dsopt_dtype dtype, grad;
    int misaligned; /* bytes */
} CaseTensor;

typedef struct FuzzCase {
    char *text;
    const char *rule, *storage; /* of dsopt_program_options; NULL: none */
    CaseTensor t[CASE_TENSORS];
    int ntensors, steps;
    int special;   /* whether gradients have NaN, infinities, subnormal values among them */
    uint64_t seed; /* of values, of gradients that are not there, of entry points that are run */
} FuzzCase;

/* gen_*.c: a case that depends on the seed alone; now and then one that the checker refuses. */
void case_random(Arena *a, uint64_t seed, FuzzCase *c);
char *program_random(Arena *a, uint64_t *state, const char **rule, const char **storage);

/* case.c: cases as files, `#! steps: 3` and the like above the program. */
bool case_read(Arena *a, const char *path, FuzzCase *c);
void case_write(const FuzzCase *c, StrBuf *out);

/* compare.c */
typedef enum CaseResult {
    CASE_SAME,
    CASE_REFUSED, /* by the checker */
    CASE_DIFFERS,
    CASE_BROKEN, /* a call of the API failed that may not, or the checker said an internal error */
    CASE_CRASHED, /* reduce.c: the process that compared it died, or took too long */
} CaseResult;
/* Which backends take part besides the interpreter and c. */
extern bool compare_cc;
/* Runs the case on all backends; `said` tells what is not as it should. */
CaseResult case_compare(Arena *a, const FuzzCase *c, StrBuf *said);
/* The share of the interpreter's last parameters that were finite, of all cases so far. */
double case_finite_share(void);
void compare_close(void);

/* reduce.c: the smallest case found that fails in the same way. */
void case_reduce(Arena *a, FuzzCase *c);

static inline uint32_t below(uint64_t *state, uint32_t n)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(((z ^ z >> 31) >> 32) * n >> 32);
}
#endif
