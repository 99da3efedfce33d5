/* error.c - messages, memory, versioned structs, and sets of names.
 *
 * Requires nothing of a context but that it exists. A message always finds room: one line in the
 * context itself; longer texts where there is memory, else their first line.
 *
 *     error_set(ctx, DSOPT_OUT_OF_RANGE, "lr = %g is outside of [0, 1)", v)  ->  DSOPT_OUT_OF_RANGE
 *     dsopt_error_message(ctx)  ->  "lr = -1 is outside of [0, 1)"
 */
#define _GNU_SOURCE
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Thread_local char thread_line[sizeof((dsopt_context *)0)->line];

static char *message_line(dsopt_context *ctx)
{
    if (ctx && ctx->text) {
        mem_free(&ctx->alloc, ctx->text);
        ctx->text = NULL;
    }
    return ctx ? ctx->line : thread_line;
}

dsopt_status error_set(dsopt_context *ctx, dsopt_status status, const char *fmt, ...)
{
    char *line = message_line(ctx);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof thread_line, fmt, ap);
    va_end(ap);
    return status;
}

dsopt_status error_set_text(dsopt_context *ctx, dsopt_status status, const char *text)
{
    size_t n = strlen(text);
    while (n && text[n - 1] == '\n') n--;
    char *line = message_line(ctx);
    snprintf(line, sizeof thread_line, "%.*s",
             (int)(n < sizeof thread_line ? n : sizeof thread_line - 1), text);
    if (ctx && n >= sizeof thread_line && (ctx->text = mem_realloc(&ctx->alloc, NULL, n + 1))) {
        memcpy(ctx->text, text, n);
        ctx->text[n] = 0;
    }
    return status;
}

dsopt_status error_oom(dsopt_context *ctx)
{
    return error_set(ctx, DSOPT_OUT_OF_MEMORY, "out of memory");
}

const char *dsopt_error_message(const dsopt_context *ctx)
{
    if (!ctx) return thread_line;
    return ctx->text ? ctx->text : ctx->line;
}

void log_line(dsopt_context *ctx, dsopt_log_level level, const char *fmt, ...)
{
    if (!ctx->log) return;
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    ctx->log(ctx->log_user, level, line);
}

#define ROW(name, number, text) {DSOPT_##name, "DSOPT_" #name, text},
static const struct {
    dsopt_status status;
    const char *name, *text;
} statuses[] = {DSOPT_STATUS_LIST(ROW)};

const char *dsopt_status_name(dsopt_status status)
{
    for (size_t i = 0; i < COUNT_OF(statuses); i++)
        if (statuses[i].status == status) return statuses[i].name;
    return "DSOPT_?";
}

const char *dsopt_status_text(dsopt_status status)
{
    for (size_t i = 0; i < COUNT_OF(statuses); i++)
        if (statuses[i].status == status) return statuses[i].text;
    return "a status that this version does not know";
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *mem_realloc(const Allocator *a, void *p, size_t bytes)
{
    if (a->realloc) return a->realloc(a->user, p, bytes);
    if (bytes == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, bytes);
}

void mem_free(const Allocator *a, void *p)
{
    if (p) mem_realloc(a, p, 0);
}

enum { REGION_ALIGN = 64, REGION_OWN_MAPPING = 2 << 20 };

bool region_alloc(const Allocator *a, size_t bytes, Region *out)
{
    *out = (Region){0};
    if (bytes == 0) return true;
    if (bytes > SIZE_MAX / 2) return false;
    if (!a->realloc && bytes >= REGION_OWN_MAPPING) {
        /* Fresh pages are zero already, and huge ones save most of the page faults of the first
         * step; they begin at multiples of their size. */
        size_t page = REGION_OWN_MAPPING, whole = ((bytes + page - 1) & ~(page - 1)) + page;
        char *p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) return false;
        char *base = p + (-(uintptr_t)p & (page - 1));
        madvise(base, whole - page, MADV_HUGEPAGE);
        *out = (Region){.base = base, .raw = p, .mapped = whole};
        return true;
    }
    void *raw = mem_realloc(a, NULL, bytes + REGION_ALIGN);
    if (!raw) return false;
    uintptr_t base = ((uintptr_t)raw + REGION_ALIGN - 1) & ~(uintptr_t)(REGION_ALIGN - 1);
    *out = (Region){.base = (void *)base, .raw = raw};
    memset(out->base, 0, bytes);
    return true;
}

void region_free(const Allocator *a, Region *r)
{
    if (r->mapped)
        munmap(r->raw, r->mapped);
    else
        mem_free(a, r->raw);
    *r = (Region){0};
}

dsopt_status arena_try(dsopt_context *ctx, Arena *a, dsopt_status (*body)(void *arg), void *arg)
{
    jmp_buf here, *outer = a->oom;
    dsopt_status st;
    a->oom = &here;
    if (setjmp(here))
        st = error_oom(ctx);
    else
        st = body(arg);
    a->oom = outer;
    return st;
}

/* ---- structs of other versions --------------------------------------------------------------- */

/* Every public struct of this version is its first version: nothing smaller exists. */
static bool struct_size(dsopt_context *ctx, const char *name, size_t size, size_t known,
                        dsopt_status *status)
{
    if (size >= known) return true;
    *status = size == 0 ? error_set(ctx, DSOPT_INVALID_ARGUMENT,
                                    "%s.size is 0: set it to sizeof(%s)", name, name)
                        : error_set(ctx, DSOPT_VERSION_MISMATCH,
                                    "%s.size is %zu, version %s needs at least %zu", name, size,
                                    dsopt_version_string(), known);
    return false;
}

bool struct_in(dsopt_context *ctx, const char *name, void *to, size_t known, const void *from,
               dsopt_status *status)
{
    size_t size = *(const size_t *)from;
    if (!struct_size(ctx, name, size, known, status)) return false;
    if (size > known + 4096) {
        *status =
            error_set(ctx, DSOPT_VERSION_MISMATCH,
                      "%s.size is %zu, which no version has (this one: %zu)", name, size, known);
        return false;
    }
    for (size_t i = known; i < size; i++) {
        if (((const char *)from)[i]) {
            *status = error_set(ctx, DSOPT_VERSION_MISMATCH,
                                "%s has members set that version %s does not know", name,
                                dsopt_version_string());
            return false;
        }
    }
    memcpy(to, from, known);
    return true;
}

bool struct_out(dsopt_context *ctx, const char *name, void *to, const void *from, size_t known,
                dsopt_status *status)
{
    size_t size = *(const size_t *)to;
    if (!struct_size(ctx, name, size, known, status)) return false;
    memcpy(to, from, known);
    *(size_t *)to = size;
    return true;
}

/* ---- names ----------------------------------------------------------------------------------- */

static size_t name_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    return (size_t)(h ^ h >> 29);
}

void names_init(NameMap *map, Arena *a, size_t most)
{
    size_t size = 8;
    while (size < most * 2) size *= 2;
    map->keys = ARENA_ARRAY(a, const char *, size);
    map->values = ARENA_ARRAY(a, uint32_t, size);
    map->mask = size - 1;
}

uint32_t names_put(NameMap *map, const char *key, uint32_t value, bool *added)
{
    size_t i = name_hash(key) & map->mask;
    while (map->keys[i] && strcmp(map->keys[i], key) != 0) i = (i + 1) & map->mask;
    *added = !map->keys[i];
    if (*added) {
        map->keys[i] = key;
        map->values[i] = value;
    }
    return map->values[i];
}

int64_t names_get(const NameMap *map, const char *key)
{
    for (size_t i = name_hash(key) & map->mask; map->keys[i]; i = (i + 1) & map->mask)
        if (strcmp(map->keys[i], key) == 0) return map->values[i];
    return -1;
}
