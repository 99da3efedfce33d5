/* source.h - within the frontend: the files of a compilation and their imports (source.c).
 *
 *     import "clip.opt"  ->  source_import(...)  ->  the file's index; each file is loaded once
 */
#ifndef FRONTEND_SOURCE_H
#define FRONTEND_SOURCE_H
#include "ast.h"

enum { SOURCE_MAX = 16 << 20 };  /* bytes of all files of one compilation */
#define SOURCE_STDLIB "<stdlib>" /* folder that names of the library's files begin with */

typedef struct SourceKey { /* which file it really is: two paths may name one */
    const char *key;
    int file;
} SourceKey;
typedef struct SourceKeys {
    SourceKey *items;
    size_t n, cap;
} SourceKeys;

/* Notes file `file` of the set as loaded. */
void source_key(DiagSink *d, int file, SourceKeys *keys);
/* Finds what `import "path"` at `at` in file `from` names: own folder, then dirs, then the stdlib.
 * Reads it unless it is in keys. -1: reported. */
int source_import(DiagSink *d, int from, Span at, const char *path, const char *const *dirs,
                  size_t ndirs, SourceKeys *keys);
#endif
