/* What tcc.c and the host functions of libtcc (tcc_host.c) share. libtcc is linked with every
 * function that could touch the world outside renamed to tcc_host_* (cmake/libtcc.syms).
 *
 *   in:  libtcc calls realloc(p, n)
 *   out: memory of the arena, or, when there is none, a jump to host_escape with HOST_MEMORY;
 *        exit() and failed assertions jump there with HOST_EXIT */
#ifndef DSOPT_CODEGEN_TCC_HOST_H
#define DSOPT_CODEGEN_TCC_HOST_H

#include "frontend/frontend.h"

#include <setjmp.h>
#include <stddef.h>

enum { HOST_MEMORY = 1, HOST_EXIT = 2 };

/* Where libtcc's fatal ends land. Valid between host_begin and host_end, under tcc.c's lock. */
extern jmp_buf host_escape;

/* libtcc's variables as in a fresh process, an empty arena of `alloc` (NULL: malloc). */
void host_begin(const Allocator *alloc);
void host_end(void);           /* frees the arena */
void *host_alloc(size_t size); /* arena memory or NULL; counts and obeys tcc_fail_allocation */

/* As Allocator.realloc; the C library's where there is none. Size 0 frees. */
void *host_raw(const Allocator *alloc, void *block, size_t size);

#endif
