/* support.h - what the frontend's tests share: one compilation in one arena, and lists of files.
 *
 *     Session s; session_open(&s); int f = session_text(&s, "a.opt", text, n);
 * frontend_parse(&s.arena, &s.diags, f, &s.options, &s.ast); session_close(&s);
 */
#ifndef TESTS_FRONTEND_SUPPORT_H
#define TESTS_FRONTEND_SUPPORT_H
#include "frontend/frontend.h"
#include "tests/check.h"
#include <dirent.h>
#include <string.h>

typedef struct Session {
    Arena arena;
    SourceSet sources;
    DiagSink diags;
    FrontendOptions options;
    Ast ast;
    StrBuf out;
} Session;

static inline void session_open(Session *s)
{
    memset(s, 0, sizeof *s);
    s->sources.arena = s->diags.arena = s->out.arena = &s->arena;
    s->diags.sources = &s->sources;
}

static inline int session_text(Session *s, const char *name, const char *text, size_t n)
{
    return source_add(&s->sources, name, text, n);
}

static inline void session_close(Session *s)
{
    arena_free(&s->arena);
}

static inline int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The paths of a folder's files with this ending, in order; returns how many. */
static inline size_t list_files(Arena *a, const char *folder, const char *ending, char ***out)
{
    size_t n = 0, cap = 0;
    char **paths = NULL;
    DIR *dir = opendir(folder);
    REQUIRE(dir != NULL, "cannot open %s", folder);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        size_t len = strlen(e->d_name), end = strlen(ending);
        if (len <= end || strcmp(e->d_name + len - end, ending) != 0) continue;
        ARENA_PUSH(a, paths, n, cap, arena_printf(a, "%s/%s", folder, e->d_name));
    }
    closedir(dir);
    if (n) qsort(paths, n, sizeof *paths, by_text);
    *out = paths;
    return n;
}

/* A whole file, NUL-terminated; NULL if it is not there. */
static inline char *read_text(Arena *a, const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = arena_alloc(a, (size_t)n + 1);
    *len = fread(text, 1, (size_t)n, f);
    fclose(f);
    return text;
}

static inline void write_text(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL, "cannot write %s", path);
    REQUIRE(fwrite(text, 1, n, f) == n, "cannot write %s", path);
    fclose(f);
}
#endif
