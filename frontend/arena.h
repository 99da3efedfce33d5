/* arena.h - memory that lives and dies together.
 *
 * An arena hands out zeroed memory and frees all of it at once. Out of memory: arena_alloc returns
 * NULL, or, where the owner set `oom`, longjmps to it; every entry point of the library that uses
 * arenas sets it, so that code in between need not check.
 *
 *     Arena a = {0};  char *s = arena_printf(&a, "%s.%s", rule, name);  arena_free(&a);
 */
#ifndef FRONTEND_ARENA_H
#define FRONTEND_ARENA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ArenaBlock ArenaBlock;
/* Allocator behind all arenas; as dsopt_config.alloc: realloc(user, ptr, size), size 0 frees. */
typedef struct {
    void *(*realloc)(void *user, void *ptr, size_t size);
    void *user;
} Allocator;
typedef struct Arena {
    ArenaBlock *head;
    const Allocator *alloc; /* NULL: malloc and free */
    jmp_buf *oom;           /* where to go when memory runs out; NULL: return NULL */
} Arena;

void *arena_alloc(Arena *a, size_t bytes); /* zeroed, aligned to 16 */
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
void arena_free(Arena *a); /* frees all; the arena may be used again */
#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

/* A growing array inside an arena: PUSH(arena, ptr, n, cap, value). */
void *arena_grow(Arena *a, void *p, size_t n, size_t *cap, size_t elem);
#define ARENA_PUSH(a, p, n, cap, v)                                                                \
    do {                                                                                           \
        (p) = arena_grow((a), (p), (n), &(cap), sizeof *(p));                                      \
        (p)[(n)++] = (v);                                                                          \
    } while (0)

/* Growing text, NUL-terminated, in an arena. */
typedef struct StrBuf {
    Arena *arena;
    char *text;
    size_t len, cap;
} StrBuf;
void sb_printf(StrBuf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sb_puts(StrBuf *b, const char *s);
void sb_putn(StrBuf *b, const char *s, size_t n);
#endif
