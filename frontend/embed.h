/* Texts that travel inside the library: the standard library of rules and the C that emitted code
 * needs. Made at build time from stdlib/ *.opt, codegen/text/ *.h and codegen/math/ds_math.h by
 * cmake/embed_script.cmake; nothing is read from disk at run time.
 *
 *   in:  embed_find(ds_stdlib, ds_stdlib_count, "adamw")
 *   out: {"adamw", "rule adamw { …", 512}, or NULL for an unknown name
 *
 * Every text ends in a NUL that `length` does not count. Tables are sorted by name. */
#ifndef DSOPT_FRONTEND_EMBED_H
#define DSOPT_FRONTEND_EMBED_H

#include <stddef.h>
#include <string.h>

typedef struct EmbeddedFile {
    const char *name; /* stdlib: file name without ".opt"; texts: file name with its extension */
    const char *text;
    size_t length;
} EmbeddedFile;

extern const EmbeddedFile ds_stdlib[]; /* stdlib/ *.opt */
extern const size_t ds_stdlib_count;

extern const EmbeddedFile ds_texts[]; /* codegen/text/ *.h */
extern const size_t ds_texts_count;

extern const char *const ds_math_text; /* codegen/math/ds_math.h, whole */
extern const size_t ds_math_length;

static inline const EmbeddedFile *embed_find(const EmbeddedFile *table, size_t count,
                                             const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) return &table[i];
    }
    return NULL;
}

#endif
