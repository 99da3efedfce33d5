/* The few lines that the tests share.
 *
 *   in:  CHECK(n == 3, "n is %d", n);
 *   out: on failure "foo.c:12: n == 3: n is 4" on stderr, and check_done() returns 1
 *
 * A failed check is counted and the test goes on; REQUIRE stops it. A test that cannot run here
 * says why with SKIP (exit status 77), which ctest shows as skipped. */
#ifndef DSOPT_TESTS_CHECK_H
#define DSOPT_TESTS_CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int check_failures, check_count;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        __atomic_fetch_add(&check_count, 1, __ATOMIC_RELAXED);                                     \
        if (!(condition)) {                                                                        \
            __atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED);                              \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

#define REQUIRE(condition, ...)                                                                    \
    do {                                                                                           \
        int check_before = check_failures;                                                         \
        CHECK(condition, __VA_ARGS__);                                                             \
        if (check_failures != check_before) exit(1);                                               \
    } while (0)

#define SKIP(...)                                                                                  \
    do {                                                                                           \
        printf("skipped: ");                                                                       \
        printf(__VA_ARGS__);                                                                       \
        putchar('\n');                                                                             \
        exit(77);                                                                                  \
    } while (0)

/* Random numbers that are the same everywhere: the next of the sequence, whose upper bits are good. */
static inline uint64_t check_random(uint64_t *seed)
{
    return *seed = *seed * 6364136223846793005u + 1442695040888963407u;
}

/* The exit status of the test; a test that checked nothing has failed. */
static inline int check_done(void)
{
    printf("%d checks, %d failed\n", check_count, check_failures);
    return check_failures != 0 || check_count == 0;
}

#endif
