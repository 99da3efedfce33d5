/* bench_dsopt.c - the contestants that are dsopt itself: one rule, one backend, through the public
 * API.
 *
 *     adamw bf16, backend "c"  ->  p, g, m and v in bf16, a step of libtcc's code
 */
#include "bench.h"
#include "codegen/codegen.h"
#include "runtime/dsopt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_GCC "gcc -O3 -march=native -fno-math-errno" /* what "gcc" means, whatever $CC is */

typedef struct DsoptRun {
    dsopt_context *ctx;
    dsopt_program *prog;
    dsopt_optimizer *opt;
    void *p, *g;
} DsoptRun;

static bool is_narrow(const char *dtype)
{
    return strcmp(dtype, "f32") != 0;
}

static void fill(void *dst, bool bf16, int64_t n, uint32_t seed, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        float x = scale * ((float)(seed >> 8) / 8388608.0f - 1.0f);
        if (bf16)
            elem_set(dst, DT_BF16, i, x);
        else
            ((float *)dst)[i] = x;
    }
}

static double run_dsopt(Contestant *c, int n)
{
    DsoptRun *r = c->self;
    double start = bench_now();
    for (int i = 0; i < n; i++) {
        dsopt_accumulate(r->opt, 1);
        if (dsopt_step(r->opt) != DSOPT_OK) {
            fprintf(stderr, "%s: %s\n", c->name, dsopt_error_message(r->ctx));
            exit(1);
        }
    }
    return bench_now() - start;
}

static void close_dsopt(Contestant *c)
{
    DsoptRun *r = c->self;
    dsopt_optimizer_destroy(r->opt);
    dsopt_program_release(r->prog);
    dsopt_context_destroy(r->ctx);
    free(r->p);
    free(r->g);
    free(r);
}

static dsopt_status make_optimizer(DsoptRun *r, const BenchCase *bc)
{
    bool bf16 = is_narrow(bc->dtype);
    int64_t each = bc->elements / bc->tensors;
    size_t bytes = bf16 ? 2 : 4;
    dsopt_tensor *t = calloc((size_t)bc->tensors, sizeof *t);
    char(*names)[16] = calloc((size_t)bc->tensors, sizeof *names);
    r->p = aligned_alloc(64, ((size_t)bc->elements * bytes + 63) / 64 * 64);
    r->g = aligned_alloc(64, ((size_t)bc->elements * bytes + 63) / 64 * 64);
    dsopt_status st = DSOPT_OUT_OF_MEMORY;
    if (t && names && r->p && r->g) {
        fill(r->p, bf16, bc->elements, 1, 1.0f);
        fill(r->g, bf16, bc->elements, 2, 0.01f);
        for (int64_t i = 0; i < bc->tensors; i++) {
            snprintf(names[i], sizeof *names, "w%05d", (int)i);
            t[i] = (dsopt_tensor){.size = sizeof *t,
                                  .name = names[i],
                                  .ndim = bc->ndim,
                                  .shape = bc->shape,
                                  .param = (char *)r->p + (size_t)(i * each) * bytes,
                                  .grad = (char *)r->g + (size_t)(i * each) * bytes,
                                  .dtype = bf16 ? DSOPT_BF16 : DSOPT_F32};
        }
        st = dsopt_optimizer_create(r->ctx, r->prog, t, (size_t)bc->tensors, &r->opt);
        for (size_t i = 0; st == DSOPT_OK && i < dsopt_input_count(r->opt); i++)
            st = dsopt_set_input(r->opt, dsopt_input_name(r->opt, i), 1);
    }
    free(t);
    free(names);
    return st;
}

/* The rule's module, as the runtime lowers it for gradients of this dtype; NULL: it does not
 * compile. */
static IrModule *rule_module(Arena *a, const BenchRule *rule, const char *dtype)
{
    SourceSet sources = {.arena = a};
    DiagSink diags = {.arena = a, .sources = &sources};
    size_t len = rule->text ? strlen(rule->text) : 0;
    const char *text = rule->text ? rule->text : stdlib_text(rule->name, &len);
    const char *defines[1] = {rule->defines};
    FrontendOptions fo = {.defines = defines, .ndefines = rule->defines ? 1 : 0};
    int file = text ? source_add(&sources, rule->name, text, len) : -1;
    return file >= 0 ? compile_source(a, &diags, file, &fo, is_narrow(dtype)) : NULL;
}

/* "m=bf16,v=bf16": all states of the rule in the case's dtype; "" for f32. */
static bool state_storage(const BenchRule *rule, const char *dtype, char *out, size_t size)
{
    Arena a = {0};
    out[0] = 0;
    if (!is_narrow(dtype)) return true;
    const IrModule *m = rule_module(&a, rule, dtype);
    for (uint32_t i = 0; m && i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        if (s->kind != SLOT_STATE || !rate_is_element(s->rate)) continue;
        size_t n = strlen(out);
        snprintf(out + n, size - n, "%s%s=%s", n ? "," : "", s->name, dtype);
    }
    arena_free(&a);
    return m != NULL;
}

bool open_dsopt(Contestant *c, const char *name, const char *backend, const BenchCase *bc)
{
    DsoptRun *r = calloc(1, sizeof *r);
    char storage[256];
    *c = (Contestant){.name = name, .run = run_dsopt, .close = close_dsopt, .self = r};
    if (!r || !state_storage(bc->rule, bc->dtype, storage, sizeof storage)) return free(r), false;
    dsopt_config config = {.size = sizeof config,
                           .threads = bc->threads,
                           .backend = backend,
                           .cc = strcmp(backend, "cc") == 0 ? BENCH_GCC : NULL};
    dsopt_program_options po = {
        .size = sizeof po, .defines = bc->rule->defines, .storage = storage};
    dsopt_status st = dsopt_context_create(&config, &r->ctx);
    if (st == DSOPT_OK && bc->rule->text)
        st = dsopt_program_compile(r->ctx, bc->rule->text, "<bench>", &po, &r->prog);
    else if (st == DSOPT_OK)
        st = dsopt_program_load(r->ctx, bc->rule->name, &po, &r->prog);
    if (st == DSOPT_OK) st = make_optimizer(r, bc);
    if (st == DSOPT_OK) return true;
    fprintf(stderr, "%s cannot take part: %s\n", name, dsopt_error_message(r->ctx));
    close_dsopt(c);
    return false;
}

bool bench_plan(BenchCase *bc)
{
    Arena a = {0};
    const BenchRule *rule = bc->rule;
    const IrModule *m = rule_module(&a, rule, bc->dtype);
    bc->bytes_read = bc->bytes_written = 0;
    if (m) {
        DType *storage = ARENA_ARRAY(&a, DType, m->nelem);
        for (uint32_t i = 0; i < m->nelem; i++)
            storage[i] = is_narrow(bc->dtype) ? DT_BF16 : DT_F32;
        Variant *v = plan_variant(&a, plan_make(&a, m), 0, storage);
        if (rule->bytes_read) bc->bytes_read = rule->bytes_read;
        bc->elementwise = v->nkernels == 1;
        for (uint32_t k = 0; k < v->nkernels; k++) {
            bc->elementwise &= v->kernels[k].nreduces == 0;
            if (rule->bytes_read) continue;
            bc->bytes_read += v->kernels[k].bytes_read;
            bc->bytes_written += v->kernels[k].bytes_written;
        }
    }
    arena_free(&a);
    return m != NULL;
}

BenchRule *bench_stdlib(size_t *count)
{
    BenchRule *rules = calloc(stdlib_count(), sizeof *rules);
    if (!rules) exit(1);
    *count = 0;
    for (size_t i = 0; i < stdlib_count(); i++) {
        Arena a = {0};
        BenchRule *r = &rules[*count];
        *r = (BenchRule){.label = stdlib_name(i), .name = stdlib_name(i)};
        const IrModule *m = rule_module(&a, r, "f32");
        r->matrix = m && m->bodies[0].view != VIEW_FLAT;
        *count += m != NULL; /* transforms and wrappers are no rules by themselves */
        arena_free(&a);
    }
    return rules;
}
