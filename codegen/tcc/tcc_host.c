/* The world as libtcc sees it: an arena for memory, no files, no output, no way to end the process.
 *
 *   in:  libtcc calls open("stdio.h", …); exit(1); malloc(64)
 *   out: -1; a jump to host_escape; 64 bytes of the arena
 *
 * Requires tcc.c's lock: there is one libtcc and one arena in the process. libtcc's .data and .bss
 * are renamed to the sections ds_tcc_data and ds_tcc_bss, whose bounds the linker provides; they
 * are put back before each compile, since a compile that was left by longjmp has stale pointers
 * there. */
#include "codegen/tcc/tcc_host.h"
#include "codegen/tcc/tcc.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOST_CHUNK ((size_t)256 * 1024)
#define HOST_ALIGN ((size_t)16)
#define HOST_HEADER ((size_t)32) /* of a chunk */

typedef struct HostChunk {
    struct HostChunk *before;
    size_t used, size; /* bytes after this header */
} HostChunk;

/* In front of every block, so that realloc knows what to copy. */
typedef struct HostBlock {
    size_t size;
    size_t unused; /* keeps the block after it aligned */
} HostBlock;

_Static_assert(sizeof(HostChunk) <= HOST_HEADER, "chunk header");
_Static_assert(sizeof(HostBlock) == HOST_ALIGN, "block header keeps the alignment");

jmp_buf host_escape;

static HostChunk *host_chunks;
static const Allocator *host_allocator;
static size_t host_count;   /* allocations since tcc_fail_allocation */
static size_t host_fail_at; /* 0: none */

extern char __start_ds_tcc_data[], __stop_ds_tcc_data[];
extern char __start_ds_tcc_bss[], __stop_ds_tcc_bss[];

/* libtcc.a of 0.9.27+git20200814 has 4 bytes of initialised variables; the build checks. */
static char host_data[DS_TCC_DATA_MAX];
static bool host_data_saved;

size_t tcc_fail_allocation(size_t nth)
{
    size_t count = host_count;

    host_count = 0;
    host_fail_at = nth;
    return count;
}

void host_begin(const Allocator *alloc)
{
    size_t data = (size_t)(__stop_ds_tcc_data - __start_ds_tcc_data);

    host_allocator = alloc;
    if (!host_data_saved) {
        memcpy(host_data, __start_ds_tcc_data, data);
        host_data_saved = true;
    }
    memcpy(__start_ds_tcc_data, host_data, data);
    memset(__start_ds_tcc_bss, 0, (size_t)(__stop_ds_tcc_bss - __start_ds_tcc_bss));
}

void *host_raw(const Allocator *alloc, void *block, size_t size)
{
    if (alloc && alloc->realloc) return alloc->realloc(alloc->user, block, size);
    if (size) return realloc(block, size);
    free(block);
    return NULL;
}

void host_end(void)
{
    while (host_chunks) {
        HostChunk *before = host_chunks->before;
        host_raw(host_allocator, host_chunks, 0);
        host_chunks = before;
    }
}

void *host_alloc(size_t size)
{
    size_t need;
    HostBlock *block;

    host_count++;
    if (host_count == host_fail_at) return NULL;
    if (size > SIZE_MAX / 4) return NULL;
    need = sizeof(HostBlock) + (size + HOST_ALIGN - 1) / HOST_ALIGN * HOST_ALIGN;
    if (!host_chunks || host_chunks->size - host_chunks->used < need) {
        size_t body = need > HOST_CHUNK ? need : HOST_CHUNK;
        HostChunk *chunk = host_raw(host_allocator, NULL, HOST_HEADER + body);
        if (!chunk) return NULL;
        chunk->before = host_chunks;
        chunk->used = 0;
        chunk->size = body;
        host_chunks = chunk;
    }
    block = (HostBlock *)((char *)host_chunks + HOST_HEADER + host_chunks->used);
    host_chunks->used += need;
    block->size = size;
    return block + 1;
}

/* --- What libtcc calls. Prototypes are those of the C library's functions. ------------------ */

void *tcc_host_malloc(size_t size);
void *tcc_host_calloc(size_t count, size_t size);
void *tcc_host_realloc(void *old, size_t size);
void tcc_host_free(void *block);
_Noreturn void tcc_host_exit(int status);
_Noreturn void tcc_host_assert_fail(const char *expression, const char *file, unsigned line,
                                    const char *function);

FILE *tcc_host_stdout, *tcc_host_stderr;
char **tcc_host_environ;

void *tcc_host_malloc(size_t size)
{
    void *block = host_alloc(size);

    if (!block) longjmp(host_escape, HOST_MEMORY);
    return block;
}

void *tcc_host_calloc(size_t count, size_t size)
{
    void *block;

    if (size && count > SIZE_MAX / size) longjmp(host_escape, HOST_MEMORY);
    block = tcc_host_malloc(count * size);
    return memset(block, 0, count * size);
}

void *tcc_host_realloc(void *old, size_t size)
{
    size_t had = old ? ((HostBlock *)old - 1)->size : 0;
    void *block;

    /* libtcc frees by realloc to 0 in places and must get NULL then. */
    if (!size) return NULL;
    if (old && size <= had) return old;
    block = tcc_host_malloc(size);
    if (old) memcpy(block, old, had);
    return block;
}

void tcc_host_free(void *block)
{
    (void)block;
}

_Noreturn void tcc_host_exit(int status)
{
    (void)status;
    longjmp(host_escape, HOST_EXIT);
}

_Noreturn void tcc_host_assert_fail(const char *expression, const char *file, unsigned line,
                                    const char *function)
{
    (void)expression, (void)file, (void)line, (void)function;
    longjmp(host_escape, HOST_EXIT);
}

/* There is no file. */
#define HOST_FAIL(name)                                                                            \
    int tcc_host_##name(void);                                                                     \
    int tcc_host_##name(void)                                                                      \
    {                                                                                              \
        errno = ENOENT;                                                                            \
        return -1;                                                                                 \
    }

/* Nothing is found. */
#define HOST_NULL(name)                                                                            \
    void *tcc_host_##name(void);                                                                   \
    void *tcc_host_##name(void)                                                                    \
    {                                                                                              \
        return NULL;                                                                               \
    }

/* Done, says the host. */
#define HOST_ZERO(name)                                                                            \
    int tcc_host_##name(void);                                                                     \
    int tcc_host_##name(void)                                                                      \
    {                                                                                              \
        return 0;                                                                                  \
    }

HOST_FAIL(open)
HOST_FAIL(read)
HOST_FAIL(lseek)
HOST_FAIL(unlink)
HOST_NULL(fdopen)
HOST_NULL(getcwd)
HOST_NULL(getenv)
/* libtcc looks up unknown names in the process: they are errors here. */
HOST_NULL(dlopen)
HOST_NULL(dlsym)
HOST_ZERO(dlclose)
HOST_ZERO(close)
HOST_ZERO(fclose)
/* Messages come through the callback; there is no other output. */
HOST_ZERO(fflush)
HOST_ZERO(fputc)
HOST_ZERO(fputs)
HOST_ZERO(fwrite)
HOST_ZERO(putchar)
HOST_ZERO(puts)
HOST_ZERO(fprintf_chk)
HOST_ZERO(printf_chk)
HOST_ZERO(vfprintf_chk)
/* tcc.c holds a lock around libtcc, and a jump out must not leave this one taken. */
HOST_ZERO(sem_init)
HOST_ZERO(sem_post)
HOST_ZERO(sem_wait)
/* tcc.c sets the protection of pages; libtcc would make them writable and executable at once. */
HOST_ZERO(mprotect)
HOST_ZERO(sigaction)
HOST_ZERO(sigemptyset)

/* __DATE__ is the same on every run, and no time zone file is read. */
time_t tcc_host_time(time_t *out);
struct tm *tcc_host_localtime(const time_t *when);

time_t tcc_host_time(time_t *out)
{
    if (out) *out = 0;
    return 0;
}

struct tm *tcc_host_localtime(const time_t *when)
{
    static struct tm epoch = {.tm_mday = 1, .tm_year = 70, .tm_wday = 4};

    (void)when;
    return &epoch;
}
