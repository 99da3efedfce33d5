/* An allocator whose memory runs out after some allocations, for good.
 *
 *   in:  Failing f = {.left = 3};  Allocator memory = {failing_realloc, &f};
 *   out: three allocations succeed, all later ones fail; f.live blocks are not freed */
#ifndef DSOPT_TESTS_FAILING_H
#define DSOPT_TESTS_FAILING_H
#include <stdlib.h>

typedef struct Failing {
    long left, live; /* allocations until the first that fails; blocks not freed */
} Failing;

static inline void *failing_realloc(void *user, void *ptr, size_t size)
{
    Failing *f = user;
    if (size == 0) {
        f->live -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (f->left-- <= 0) return NULL;
    void *p = realloc(ptr, size);
    f->live += p != NULL && ptr == NULL;
    return p;
}
#endif
