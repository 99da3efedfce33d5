/* tcc_build: see tcc.h. libtcc itself is in lib/libtcc_local.o, its surroundings in tcc_host.c.
 *
 *   in:  "int one(void) { return 1; }"
 *   out: a read-execute mapping of one page, symbols { {"one", 0x7f…} }
 *
 * The steps (BuildStep) run inside one setjmp: whatever libtcc does to end the process lands there,
 * and what was acquired so far is in the Build, which lives outside. */
#define _GNU_SOURCE
#include "codegen/tcc/tcc.h"
#include "codegen/tcc/tcc_host.h"

#include <fenv.h>
#include <libtcc.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct Build {
    const char *text;
    const TccSymbol *symbols;
    size_t symbol_count;
    TccImage *out;
    char *err;
    size_t errlen, errused;
    size_t name_bytes, found; /* what counting the symbols gave */
    char *names;
} Build;

static pthread_mutex_t build_lock = PTHREAD_MUTEX_INITIALIZER;

static void build_message(void *opaque, const char *message)
{
    Build *b = opaque;
    int n;

    if (b->errused + 1 >= b->errlen) return;
    n = snprintf(b->err + b->errused, b->errlen - b->errused, "%s%s", b->errused ? "\n" : "",
                 message);
    if (n > 0)
        b->errused += (size_t)n < b->errlen - b->errused ? (size_t)n : b->errlen - b->errused - 1;
}

/* Symbols inside the mapping are the text's own; all others are those that we passed. */
static bool build_is_ours(const Build *b, const void *address)
{
    return (const char *)address >= (const char *)b->out->memory &&
           (const char *)address < (const char *)b->out->memory + b->out->size;
}

static void build_count_symbol(void *opaque, const char *name, const void *address)
{
    Build *b = opaque;

    if (build_is_ours(b, address)) {
        b->found++;
        b->name_bytes += strlen(name) + 1;
    }
}

static void build_copy_symbol(void *opaque, const char *name, const void *address)
{
    Build *b = opaque;
    size_t length = strlen(name) + 1;

    if (!build_is_ours(b, address)) return;
    memcpy(b->names, name, length);
    b->out->symbols[b->out->symbol_count++] = (TccSymbol){b->names, address};
    b->names += length;
}

static int build_compare(const void *a, const void *b)
{
    return strcmp(((const TccSymbol *)a)->name, ((const TccSymbol *)b)->name);
}

/* One block holds the table and, behind it, the names. */
static bool build_symbols(Build *b, TCCState *s)
{
    tcc_list_symbols(s, b, build_count_symbol);
    if (b->found) {
        b->out->symbols =
            host_raw(b->out->alloc, NULL, b->found * sizeof(TccSymbol) + b->name_bytes);
        if (!b->out->symbols) return false;
        b->names = (char *)(b->out->symbols + b->found);
        tcc_list_symbols(s, b, build_copy_symbol);
        qsort(b->out->symbols, b->out->symbol_count, sizeof(TccSymbol), build_compare);
    }
    return true;
}

static bool build_map(Build *b, TCCState *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int need = tcc_relocate(s, NULL);
    size_t size;
    void *memory;

    if (need < 0) return false;
    size = ((size_t)need + page - 1) / page * page;
    if (!size) size = page;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        b->out->out_of_memory = true;
        return false;
    }
    b->out->memory = memory;
    b->out->size = size;
    if (tcc_relocate(s, memory) < 0) return false;
    if (mprotect(memory, size, PROT_READ | PROT_EXEC) != 0) {
        build_message(b, "this system does not let the process run code that it has made");
        return false;
    }
    return true;
}

static bool build_run(Build *b)
{
    TCCState *s = tcc_new();

    if (!s) {
        b->out->out_of_memory = true;
        return false;
    }
    tcc_set_error_func(s, b, build_message);
    tcc_set_options(s, "-nostdlib -nostdinc");
    tcc_set_output_type(s, TCC_OUTPUT_MEMORY);
    for (size_t i = 0; i < b->symbol_count; i++) {
        if (tcc_add_symbol(s, b->symbols[i].name, b->symbols[i].address) < 0) return false;
    }
    if (tcc_compile_string(s, b->text) < 0 || !build_map(b, s)) return false;
    if (!build_symbols(b, s)) {
        b->out->out_of_memory = true;
        return false;
    }
    tcc_delete(s);
    return true;
}

static bool build_guarded(Build *b)
{
    int why = setjmp(host_escape);

    if (why == 0) return build_run(b);
    if (why == HOST_MEMORY)
        b->out->out_of_memory = true;
    else
        build_message(b, "libtcc gave up on this text");
    return false;
}

bool tcc_build(const char *text, const TccSymbol *symbols, size_t symbol_count, TccImage *out,
               char *err, size_t errlen)
{
    return tcc_build_with(NULL, text, symbols, symbol_count, out, err, errlen);
}

bool tcc_build_with(const Allocator *alloc, const char *text, const TccSymbol *symbols,
                    size_t symbol_count, TccImage *out, char *err, size_t errlen)
{
    Build b = {text, symbols, symbol_count, out, err, errlen, 0, 0, 0, NULL};
    fenv_t environment;
    locale_t c_locale, locale;
    bool built;

    memset(out, 0, sizeof *out);
    out->alloc = alloc;
    if (errlen) err[0] = '\0';
    /* "C" is a static object of the C library: this cannot fail and needs no freelocale. */
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    pthread_mutex_lock(&build_lock);
    /* libtcc reads "0.5" with strtod and rounds constants with the processor's current settings. */
    locale = uselocale(c_locale);
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    host_begin(alloc);
    built = build_guarded(&b);
    host_end();
    fesetenv(&environment);
    uselocale(locale);
    pthread_mutex_unlock(&build_lock);

    if (!built) {
        bool out_of_memory = out->out_of_memory;
        tcc_image_free(out);
        out->out_of_memory = out_of_memory;
        if (out_of_memory) {
            b.errused = 0;
            build_message(&b, "out of memory while compiling");
        } else if (!b.errused) {
            build_message(&b, "libtcc failed without a message");
        }
    }
    return built;
}

void *tcc_image_symbol(const TccImage *image, const char *name)
{
    TccSymbol key = {name, NULL}, *found;

    if (!image->symbol_count) return NULL;
    found = bsearch(&key, image->symbols, image->symbol_count, sizeof key, build_compare);
    return found ? (void *)found->address : NULL;
}

void tcc_image_free(TccImage *image)
{
    if (image->memory) munmap(image->memory, image->size);
    if (image->symbols) host_raw(image->alloc, image->symbols, 0);
    memset(image, 0, sizeof *image);
}
