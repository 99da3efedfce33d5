/* source.c - the texts of a compilation and where they come from.
 *
 * All files share one offset space that starts at 1 and ends before 16 MiB plus one offset a file.
 * Requires: an arena in the set. Ensures: every text ends in two NULs past `len` (the scanner's
 * mark); nothing but regular files, and pipes named by the user, is read.
 *
 *     int f = source_read(d, "my.opt");            -1: reported
 *     source_find_import(d, f, span, "adamw.opt", options)  -> "<stdlib>/adamw.opt", its text
 */
#define _GNU_SOURCE
#include "source.h"
#include "embed.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the set --------------------------------------------------------------------------------- */

static size_t source_room(const SourceSet *s)
{
    size_t used = 0;
    for (size_t i = 0; i < s->nfiles; i++) used += s->files[i].len;
    return used < SOURCE_MAX ? SOURCE_MAX - used : 0;
}

/* Takes a text that lives in the set's arena already, with two NULs behind it. */
static int source_adopt(SourceSet *s, const char *name, const char *text, size_t len)
{
    if (len > source_room(s)) return -1;
    SourceFile f = {.name = arena_strdup(s->arena, name), .text = text, .len = len, .base = 1};
    if (s->nfiles > 0) {
        const SourceFile *last = &s->files[s->nfiles - 1];
        f.base = last->base + (uint32_t)last->len + 1; /* the end of a file is a place of its own */
    }
    ARENA_PUSH(s->arena, s->files, s->nfiles, s->cap, f);
    return (int)s->nfiles - 1;
}

int source_add(SourceSet *s, const char *name, const char *text, size_t len)
{
    if (len > source_room(s)) return -1;
    char *copy = arena_alloc(s->arena, len + 2);
    if (!copy) return -1;
    if (len) memcpy(copy, text, len);
    return source_adopt(s, name, copy, len);
}

const SourceFile *source_file(const SourceSet *s, uint32_t offset)
{
    size_t lo = 0, hi = s->nfiles;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->files[mid].base <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo ? &s->files[lo - 1] : NULL;
}

void source_position(const SourceSet *s, uint32_t offset, const char **name, int *line, int *col)
{
    const SourceFile *f = source_file(s, offset);
    *name = f ? f->name : "?";
    *line = *col = 1;
    if (!f) return;
    uint32_t at = offset - f->base;
    const char *start = f->text, *end = f->text + (at < f->len ? at : f->len), *nl;
    while ((nl = memchr(start, '\n', (size_t)(end - start))) != NULL) {
        (*line)++;
        start = nl + 1;
    }
    *col = (int)(end - start) + 1;
}

/* ---- reading --------------------------------------------------------------------------------- */

static const char *error_text(Arena *a, int error)
{
    char buffer[128];
    return arena_strdup(a, strerror_r(error, buffer, sizeof buffer));
}

/* What a file that is not read is called; NULL: it may be read. */
static const char *file_kind(mode_t mode, bool pipes)
{
    if (S_ISREG(mode) || (pipes && S_ISFIFO(mode))) return NULL;
    return S_ISDIR(mode)                    ? "a directory"
           : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
           : S_ISFIFO(mode)                 ? "a pipe"
           : S_ISSOCK(mode)                 ? "a socket"
                                            : "not a regular file";
}

typedef enum ReadResult { READ_OK, READ_LARGE, READ_ERROR, READ_MEMORY } ReadResult;

/* Reads fd to its end, at most `room` bytes. Runs without the arena's longjmp, so that the caller
 * can close fd first. */
static ReadResult read_all(Arena *a, int fd, size_t expected, size_t room, char **text, size_t *len)
{
    size_t cap = expected + 1, n = 0; /* one more than expected: the read that sees the end */
    char *buffer = arena_alloc(a, cap + 2);
    while (buffer) {
        ssize_t got = read(fd, buffer + n, cap - n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return READ_ERROR;
        if (got == 0) {
            memset(buffer + n, 0, 2);
            *text = buffer;
            *len = n;
            return READ_OK;
        }
        n += (size_t)got;
        if (n > room) return READ_LARGE;
        if (n == cap) {
            cap = cap * 2 < 65536 ? 65536 : cap * 2;
            char *bigger = arena_alloc(a, cap + 2);
            if (bigger) memcpy(bigger, buffer, n);
            buffer = bigger;
        }
    }
    return READ_MEMORY;
}

static int report_unread(DiagSink *d, Span at, const char *path, int error)
{
    diag_report(d, DIAG_FILE_MISSING, at, path, error_text(d->arena, error));
    return -1;
}

/* An import's missing file is not an error yet (other folders follow): *missing is set instead. */
static int read_file(DiagSink *d, Span at, const char *path, bool pipes, bool *missing)
{
    bool standard_input = pipes && strcmp(path, "-") == 0;
    size_t room = source_room(d->sources);
    struct stat st;
    int fd = standard_input ? STDIN_FILENO : -1;
    if (standard_input ? fstat(fd, &st) : stat(path, &st)) {
        if (missing && (errno == ENOENT || errno == ENOTDIR)) {
            *missing = true;
            return -1;
        }
        return report_unread(d, at, path, errno);
    }
    const char *kind = standard_input ? NULL : file_kind(st.st_mode, pipes);
    if (kind || (standard_input && S_ISDIR(st.st_mode))) {
        diag_report(d, DIAG_FILE_KIND, at, path, kind ? kind : "a directory");
        return -1;
    }
    size_t size = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size : 0;
    if (size > room) {
        diag_report(d, DIAG_FILE_SIZE, at, path);
        return -1;
    }
    if (!standard_input) fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return report_unread(d, at, path, errno);

    char *text = NULL;
    size_t len = 0;
    Arena *a = d->sources->arena;
    jmp_buf *oom = a->oom;
    a->oom = NULL;
    ReadResult result = read_all(a, fd, size, room, &text, &len);
    int error = errno;
    if (!standard_input) close(fd);
    a->oom = oom;
    if (result == READ_MEMORY && oom) longjmp(*oom, 1);
    if (result == READ_ERROR || result == READ_MEMORY)
        return report_unread(d, at, path, result == READ_MEMORY ? ENOMEM : error);
    if (result == READ_LARGE) {
        diag_report(d, DIAG_FILE_SIZE, at, path);
        return -1;
    }
    const char *shown = standard_input ? "<stdin>" : path;
    const char *zero = memchr(text, 0, len);
    if (zero) {
        diag_report(d, DIAG_FILE_BINARY, at, shown, (size_t)(zero - text));
        return -1;
    }
    if (len == 0) {
        diag_report(d, DIAG_FILE_EMPTY, at, shown);
        return -1;
    }
    return source_adopt(d->sources, shown, text, len);
}

int source_read(DiagSink *d, const char *path)
{
    return read_file(d, (Span){0, 0}, path, true, NULL);
}

/* ---- the library inside ---------------------------------------------------------------------- */

const char *stdlib_text(const char *name, size_t *len)
{
    size_t n = strlen(name);
    if (n > 4 && strcmp(name + n - 4, ".opt") == 0) n -= 4;
    for (size_t i = 0; i < ds_stdlib_count; i++) {
        if (strlen(ds_stdlib[i].name) == n && memcmp(ds_stdlib[i].name, name, n) == 0) {
            *len = ds_stdlib[i].length;
            return ds_stdlib[i].text;
        }
    }
    return NULL;
}

const char *stdlib_name(size_t i)
{
    return i < ds_stdlib_count ? ds_stdlib[i].name : NULL;
}

size_t stdlib_count(void)
{
    return ds_stdlib_count;
}

/* ---- imports --------------------------------------------------------------------------------- */

static const char *path_mistake(const char *path)
{
    if (path[0] == 0) return "is empty";
    if (path[0] == '/')
        return "is absolute; imports are relative to the file's folder, -I and the standard "
               "library";
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.') return "leaves its folder with '..'";
        p += n;
        while (*p == '/') p++;
    }
    return NULL;
}

/* One place to look: file index, -1 not there, -2 reported. `key` tells whether two imports name
 * one file. */
static int try_path(DiagSink *d, Span at, const char *path, SourceKeys *keys)
{
    char real[PATH_MAX]; /* on the stack: an arena's longjmp would leak what realpath allocates */
    const char *key = realpath(path, real) ? arena_strdup(d->arena, real) : path;
    for (size_t i = 0; i < keys->n; i++) {
        if (strcmp(keys->items[i].key, key) == 0) return keys->items[i].file;
    }
    bool missing = false;
    int file = read_file(d, at, path, false, &missing);
    if (file < 0) return missing ? -1 : -2;
    ARENA_PUSH(d->arena, keys->items, keys->n, keys->cap, ((SourceKey){key, file}));
    return file;
}

static int try_stdlib(DiagSink *d, Span at, const char *path, SourceKeys *keys)
{
    size_t len;
    const char *text = stdlib_text(path, &len);
    if (!text) return -1;
    size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".opt") == 0) n -= 4;
    const char *name = arena_printf(d->arena, SOURCE_STDLIB "/%.*s.opt", (int)n, path);
    for (size_t i = 0; i < keys->n; i++) {
        if (strcmp(keys->items[i].key, name) == 0) return keys->items[i].file;
    }
    int file = source_add(d->sources, name, text, len);
    if (file < 0) {
        diag_report(d, DIAG_FILE_SIZE, at, name);
        return -2;
    }
    ARENA_PUSH(d->arena, keys->items, keys->n, keys->cap, ((SourceKey){name, file}));
    return file;
}

void source_key(DiagSink *d, int file, SourceKeys *keys)
{
    const char *name = d->sources->files[file].name;
    char real[PATH_MAX];
    const char *key = name[0] != '<' && realpath(name, real) ? arena_strdup(d->arena, real) : name;
    ARENA_PUSH(d->arena, keys->items, keys->n, keys->cap, ((SourceKey){key, file}));
}

int source_import(DiagSink *d, int from, Span at, const char *path, const char *const *dirs,
                  size_t ndirs, SourceKeys *keys)
{
    const char *mistake = path_mistake(path);
    if (mistake) {
        diag_report(d, DIAG_IMPORT_PATH, at, path, mistake);
        return -1;
    }
    /* Texts without a file ("<stdin>", "<text>") have no folder of their own; the library's own is
     * the library. */
    const char *own = d->sources->files[from].name;
    const char *slash = strrchr(own, '/');
    StrBuf looked = {.arena = d->arena};
    int file = -1;
    if (own[0] != '<') {
        int n = slash ? (int)(slash - own) + 1 : 0;
        file = try_path(d, at, arena_printf(d->arena, "%.*s%s", n, own, path), keys);
        sb_printf(&looked, "%.*s, ", n > 1 ? n - 1 : 1, n ? own : ".");
    }
    for (size_t i = 0;
         file == -1 && i < ndirs && strncmp(own, SOURCE_STDLIB, strlen(SOURCE_STDLIB)); i++) {
        file = try_path(d, at, arena_printf(d->arena, "%s/%s", dirs[i], path), keys);
        sb_printf(&looked, "%s, ", dirs[i]);
    }
    if (file == -1) file = try_stdlib(d, at, path, keys);
    if (file == -1) {
        Diag *diag = diag_report(d, DIAG_IMPORT_MISSING, at, path);
        diag_hint(d, diag, "looked in %sthe standard library", looked.len ? looked.text : "");
        const char **names = ARENA_ARRAY(d->arena, const char *, stdlib_count() + 1);
        for (size_t i = 0; i < stdlib_count(); i++)
            names[i] = arena_printf(d->arena, "%s.opt", stdlib_name(i));
        const char *close = diag_suggest(path, names, stdlib_count());
        if (close) diag_hint(d, diag, "did you mean \"%s\"?", close);
    }
    return file < 0 ? -1 : file;
}
