/* names.c - one pointer for each name of a compilation, so that names compare by address.
 *
 *     ast_intern(a, ast, "lr * wd", 2) == ast_intern(a, ast, "lr", 2)
 */
#include "ast.h"
#include <string.h>

struct NameTable {
    const char **slots; /* open addressing, a power of two, at most half full */
    size_t n, cap;
};

static size_t hash(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

static const char **slot_for(const NameTable *t, const char *s, size_t n)
{
    for (size_t i = hash(s, n);; i++) {
        const char **slot = &t->slots[i & (t->cap - 1)];
        if (!*slot || (strncmp(*slot, s, n) == 0 && (*slot)[n] == 0)) return slot;
    }
}

const char *ast_intern(Arena *a, Ast *ast, const char *s, size_t n)
{
    NameTable *t = ast->names;
    if (!t) t = ast->names = ARENA_NEW(a, NameTable);
    if (!t) return NULL;
    if (t->n * 2 >= t->cap) {
        NameTable bigger = {.cap = t->cap ? t->cap * 2 : 64, .n = t->n};
        bigger.slots = ARENA_ARRAY(a, const char *, bigger.cap);
        if (!bigger.slots) return NULL;
        for (size_t i = 0; i < t->cap; i++) {
            if (t->slots[i]) *slot_for(&bigger, t->slots[i], strlen(t->slots[i])) = t->slots[i];
        }
        *t = bigger;
    }
    const char **slot = slot_for(t, s, n);
    if (!*slot) {
        *slot = arena_strndup(a, s, n);
        t->n += *slot != NULL;
    }
    return *slot;
}
