/* arena.c - memory that lives and dies together; see arena.h. */
#include "arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ArenaBlock {
    ArenaBlock *next;
    size_t used, size;
    _Alignas(16) char data[];
};

static void *raw_realloc(const Allocator *al, void *p, size_t n)
{
    if (al && al->realloc) return al->realloc(al->user, p, n);
    if (n == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, n);
}

static void *out_of_memory(Arena *a)
{
    if (a->oom) longjmp(*a->oom, 1);
    return NULL;
}

void *arena_alloc(Arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2) return out_of_memory(a);
    bytes = (bytes + 15) & ~(size_t)15;
    ArenaBlock *b = a->head;
    if (!b || b->size - b->used < bytes) {
        size_t size = b ? b->size * 2 : 4096;
        if (size > 1u << 20) size = 1u << 20;
        if (size < bytes) size = bytes;
        ArenaBlock *nb = raw_realloc(a->alloc, NULL, sizeof *nb + size);
        if (!nb) return out_of_memory(a);
        nb->next = b;
        nb->used = 0;
        nb->size = size;
        a->head = b = nb;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    memset(p, 0, bytes);
    return p;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (p) memcpy(p, s, n);
    return p;
}

char *arena_strdup(Arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
    if (p) vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

void arena_free(Arena *a)
{
    for (ArenaBlock *b = a->head, *next; b; b = next) {
        next = b->next;
        raw_realloc(a->alloc, b, 0);
    }
    a->head = NULL;
}

void *arena_grow(Arena *a, void *p, size_t n, size_t *cap, size_t elem)
{
    if (n < *cap) return p;
    size_t bigger = *cap ? *cap * 2 : 8;
    void *q = arena_alloc(a, bigger * elem);
    if (!q) return NULL;
    if (n) memcpy(q, p, n * elem);
    *cap = bigger;
    return q;
}

void sb_putn(StrBuf *b, const char *s, size_t n)
{
    if (b->len + n + 1 > b->cap) {
        size_t cap = b->cap ? b->cap * 2 : 256;
        while (cap < b->len + n + 1) cap *= 2;
        char *q = arena_alloc(b->arena, cap);
        if (!q) return;
        if (b->len) memcpy(q, b->text, b->len);
        b->text = q;
        b->cap = cap;
    }
    memcpy(b->text + b->len, s, n);
    b->len += n;
    b->text[b->len] = 0;
}

void sb_puts(StrBuf *b, const char *s)
{
    sb_putn(b, s, strlen(s));
}

void sb_printf(StrBuf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    if ((size_t)n < sizeof small) {
        sb_putn(b, small, (size_t)n);
        return;
    }
    va_start(ap, fmt);
    char *big = arena_vprintf(b->arena, fmt, ap);
    va_end(ap);
    if (big) sb_putn(b, big, (size_t)n);
}
