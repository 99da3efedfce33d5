/* context.c - contexts: a device, its threads, a log, an allocator and a backend.
 *
 * dsopt_context_create checks all that it is told before it makes anything; what is missing on this
 * machine (a backend that does not run here, an instruction set) is known when it returns, not at
 * the first step.
 *
 *   in:  {.device = "cpu", .threads = 0, .isa = "avx2"}
 *   out: a context with one worker for each further processor that the thread may use, or
 *        DSOPT_NOT_SUPPORTED "this processor lacks avx2"
 */
#define _GNU_SOURCE
#include "internal.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

int dsopt_version(void)
{
    return DSOPT_VERSION;
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char *dsopt_version_string(void)
{
    return TEXT(DSOPT_VERSION_MAJOR) "." TEXT(DSOPT_VERSION_MINOR) "." TEXT(DSOPT_VERSION_PATCH);
}

/* Before 1.0 a header fits libraries of its own major and minor version; afterwards any later minor
 * version, too. */
static dsopt_status check_version(int version)
{
    int major = version / 10000, minor = version / 100 % 100;
    bool fits = major == DSOPT_VERSION_MAJOR &&
                (major ? minor <= DSOPT_VERSION_MINOR : minor == DSOPT_VERSION_MINOR);
    if (fits) return DSOPT_OK;
    return error_set(NULL, DSOPT_VERSION_MISMATCH,
                     "this program was compiled with dsopt.h %d.%d.%d, but the library is %s",
                     major, minor, version % 100, dsopt_version_string());
}

static int usable_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n < 1 ? 1 : n;
}

static dsopt_status check_config(const dsopt_config *c, const Backend **backend)
{
    if (c->device && strcmp(c->device, "cpu") != 0) {
        if (strncmp(c->device, "cuda", 4) == 0)
            return error_set(NULL, DSOPT_NOT_SUPPORTED,
                             "device \"%s\": running on CUDA is not supported yet (use \"cpu\")",
                             c->device);
        return error_set(NULL, DSOPT_INVALID_ARGUMENT, "unknown device \"%s\" (there is \"cpu\")",
                         c->device);
    }
    if (c->threads < 0 || c->threads > MAX_THREADS)
        return error_set(NULL, DSOPT_INVALID_ARGUMENT, "threads = %d is outside of 0 … %d",
                         c->threads, MAX_THREADS);
    const char *name = c->backend ? c->backend : "c";
    *backend = backend_find(name);
    bool runs = *backend && ((*backend)->build_variant || strcmp(name, "interp") == 0);
    if (!runs)
        return error_set(
            NULL, DSOPT_INVALID_ARGUMENT,
            "there is no backend \"%s\" that runs on the cpu (there are c, interp, cc)", name);
    return DSOPT_OK;
}

/* isa and cc, copied into one block. */
static bool copy_strings(dsopt_context *ctx, const dsopt_config *c)
{
    size_t n = c->isa ? strlen(c->isa) + 1 : 0, k = c->cc ? strlen(c->cc) + 1 : 0;
    if (n + k == 0) return true;
    if (!(ctx->strings = mem_realloc(&ctx->alloc, NULL, n + k))) return false;
    if (n) ctx->options.isa = memcpy(ctx->strings, c->isa, n);
    if (k) ctx->options.cc = memcpy(ctx->strings + n, c->cc, k);
    return true;
}

typedef struct Probe {
    dsopt_context *ctx;
    Arena arena;
} Probe;

static dsopt_status probe_body(void *arg)
{
    Probe *p = arg;
    const Backend *b = p->ctx->backend;
    StrBuf why = {.arena = &p->arena};
    if (!b->probe || b->probe(&p->ctx->options, &why)) return DSOPT_OK;
    return error_set(NULL, p->ctx->options.isa ? DSOPT_NOT_SUPPORTED : DSOPT_BACKEND_FAILED,
                     "backend \"%s\": %s", b->name, why.text ? why.text : "not usable here");
}

static dsopt_status probe_backend(dsopt_context *ctx)
{
    Probe p = {.ctx = ctx, .arena = {.alloc = &ctx->alloc}};
    dsopt_status st = arena_try(NULL, &p.arena, probe_body, &p);
    arena_free(&p.arena);
    return st;
}

dsopt_status dsopt_context_create_checked(int version, const dsopt_config *config,
                                          dsopt_context **out)
{
    if (!out) return error_set(NULL, DSOPT_INVALID_ARGUMENT, "dsopt_context_create: out is NULL");
    *out = NULL;
    dsopt_config c = {.size = sizeof c};
    const Backend *backend = NULL;
    dsopt_status st = check_version(version);
    if (st == DSOPT_OK && config && !struct_in(NULL, "dsopt_config", &c, sizeof c, config, &st))
        return st;
    if (st == DSOPT_OK) st = check_config(&c, &backend);
    if (st != DSOPT_OK) return st;
    Allocator alloc = {.realloc = c.alloc.realloc, .user = c.alloc.user};
    dsopt_context *ctx = mem_realloc(&alloc, NULL, sizeof *ctx);
    if (!ctx) return error_oom(NULL);
    *ctx = (dsopt_context){
        .alloc = alloc, .log = c.log, .log_user = c.log_user, .backend = backend, .seed = c.seed};
    if (!copy_strings(ctx, &c)) st = error_oom(NULL);
    if (st == DSOPT_OK) st = probe_backend(ctx);
    int threads = c.threads ? c.threads : usable_processors();
    if (st == DSOPT_OK && !(ctx->pool = pool_new(&ctx->alloc, threads)))
        st = error_set(NULL, DSOPT_OUT_OF_MEMORY, "no memory for %d threads", threads);
    if (st != DSOPT_OK) {
        dsopt_context_destroy(ctx);
        return st;
    }
    *out = ctx;
    return DSOPT_OK;
}

dsopt_status dsopt_context_create(const dsopt_config *config, dsopt_context **out)
{
    return dsopt_context_create_checked(DSOPT_VERSION, config, out);
}

void dsopt_context_destroy(dsopt_context *ctx)
{
    if (!ctx) return;
    pool_free(ctx->pool);
    mem_free(&ctx->alloc, ctx->text);
    mem_free(&ctx->alloc, ctx->strings);
    Allocator alloc = ctx->alloc;
    mem_free(&alloc, ctx);
}
