/* names.c - one pointer for each name of a compilation, so that names compare by address; and how
 * often each was asked for, which is how often it stands in the texts.
 *
 *     ast_intern(a, ast, "lr * wd", 2) == ast_intern(a, ast, "lr", 2);  ast_name_count(ast, "lr")
 * == 2
 */
#include "ast.h"
#include <string.h>

typedef struct NameSlot {
    const char *name;
    uint32_t count;
} NameSlot;

struct NameTable {
    NameSlot *slots; /* open addressing, a power of two, at most half full */
    size_t n, cap;
};

static size_t hash(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}

static NameSlot *slot_for(const NameTable *t, const char *s, size_t n)
{
    for (size_t i = hash(s, n);; i++) {
        NameSlot *slot = &t->slots[i & (t->cap - 1)];
        if (!slot->name || (strncmp(slot->name, s, n) == 0 && slot->name[n] == 0)) return slot;
    }
}

const char *ast_intern(Arena *a, Ast *ast, const char *s, size_t n)
{
    NameTable *t = ast->names;
    if (!t) t = ast->names = ARENA_NEW(a, NameTable);
    if (!t) return NULL;
    if (t->n * 2 >= t->cap) {
        NameTable bigger = {.cap = t->cap ? t->cap * 2 : 64, .n = t->n};
        bigger.slots = ARENA_ARRAY(a, NameSlot, bigger.cap);
        if (!bigger.slots) return NULL;
        for (size_t i = 0; i < t->cap; i++) {
            const char *name = t->slots[i].name;
            if (name) *slot_for(&bigger, name, strlen(name)) = t->slots[i];
        }
        *t = bigger;
    }
    NameSlot *slot = slot_for(t, s, n);
    if (!slot->name) {
        slot->name = arena_strndup(a, s, n);
        t->n += slot->name != NULL;
    }
    slot->count++;
    return slot->name;
}

uint32_t ast_name_count(const Ast *ast, const char *name)
{
    return ast->names ? slot_for(ast->names, name, strlen(name))->count : 0;
}

const char *ast_known_name(const Ast *ast, const char *name)
{
    return ast->names ? slot_for(ast->names, name, strlen(name))->name : NULL;
}
