/* bench_latency.c - from source to first step: dsopt_program_load to dsopt_step, libtcc's part of
 * it, and NVRTC.
 *
 *     latency adamw: load to first step 1.1 ms, libtcc 0.6 ms, NVRTC compute_75 48 ms
 */
#include "bench.h"
#include "codegen/codegen.h"
#include "runtime/dsopt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 31 };

static double load_to_step(void)
{
    float p[1000] = {0}, g[1000] = {0};
    int64_t n = 1000;
    dsopt_context *ctx;
    dsopt_program *prog;
    dsopt_optimizer *opt;
    dsopt_config config = {.size = sizeof config, .threads = 1};
    dsopt_tensor t = {.size = sizeof t, .name = "w", .ndim = 1, .shape = &n, .param = p, .grad = g};
    if (dsopt_context_create(&config, &ctx) != DSOPT_OK) exit(1);
    double start = bench_now();
    if (dsopt_program_load(ctx, "adamw", NULL, &prog) != DSOPT_OK) exit(1);
    if (dsopt_optimizer_create(ctx, prog, &t, 1, &opt) != DSOPT_OK) exit(1);
    dsopt_accumulate(opt, 1);
    if (dsopt_step(opt) != DSOPT_OK) exit(1);
    double ns = bench_now() - start;
    dsopt_optimizer_destroy(opt);
    dsopt_program_release(prog);
    dsopt_context_destroy(ctx);
    return ns;
}

typedef struct Planned {
    Arena arena;
    Plan *plan;
    Variant *variant;
} Planned;

static void plan_adamw(Planned *x)
{
    *x = (Planned){0};
    SourceSet sources = {.arena = &x->arena};
    DiagSink diags = {.arena = &x->arena, .sources = &sources};
    FrontendOptions fo = {0};
    size_t len;
    const char *text = stdlib_text("adamw", &len);
    IrModule *m =
        compile_source(&x->arena, &diags, source_add(&sources, "adamw.opt", text, len), &fo, false);
    if (!m) exit(1);
    DType *storage = ARENA_ARRAY(&x->arena, DType, m->nelem);
    for (uint32_t i = 0; i < m->nelem; i++) storage[i] = DT_F32;
    x->plan = plan_make(&x->arena, m);
    x->variant = plan_variant(&x->arena, x->plan, 0, storage);
}

static double libtcc(const Planned *x)
{
    const Backend *c = backend_find("c");
    BackendOptions o = {0};
    Arena scratch = {0};
    StrBuf why = {.arena = &scratch};
    BuiltVariant v;
    BuiltScalars s;
    double start = bench_now();
    if (!c->build_variant(x->plan, x->variant, &o, &v, &why) ||
        !c->build_scalars(x->plan, &o, &s, &why))
        exit(1);
    double ns = bench_now() - start;
    c->free_image(v.image);
    c->free_image(s.image);
    arena_free(&scratch);
    return ns;
}

static double nvrtc(const Planned *x)
{
    Arena scratch = {0};
    StrBuf out = {.arena = &scratch}, why = {.arena = &scratch};
    double start = bench_now();
    bool ok = cuda_build((const Plan *const[]){x->plan}, 1, x->variant->storage, "compute_75", false, &out, &why);
    double ns = bench_now() - start;
    arena_free(&scratch);
    return ok ? ns : NAN;
}

void bench_latency(bool csv)
{
    double load[ROUNDS], tcc[ROUNDS], gpu[5];
    Planned x;
    plan_adamw(&x);
    for (int i = 0; i < ROUNDS; i++) {
        load[i] = load_to_step();
        tcc[i] = libtcc(&x);
    }
    for (int i = 0; i < 5; i++) gpu[i] = nvrtc(&x);
    double l = bench_median(load, ROUNDS) / 1e6, t = bench_median(tcc, ROUNDS) / 1e6,
           g = bench_median(gpu, 5) / 1e6;
    arena_free(&x.arena);
    if (csv) {
        fprintf(stderr,
                "latency adamw: load to first step %.3f ms, libtcc %.3f ms, NVRTC %.1f ms\n", l, t,
                g);
        return;
    }
    printf("latency adamw: load to first step %.3f ms, libtcc %.3f ms, ", l, t);
    if (isnan(g))
        printf("NVRTC not here\n");
    else
        printf("NVRTC compute_75 %.1f ms\n", g);
}
