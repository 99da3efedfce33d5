/* test_kernels.c - whole steps of the tile backend against the interpreter, bit for bit: every rule
 * of the library and its flags, storages, sizes around tiles and chunks, and every ISA level that
 * runs here.
 *
 *     "adamw" x {f32, p=bf16 g=bf16, m=f16 v=bf16} x {0 1 127 128 129 …} x {sse2 avx2 avx512}
 */
#include "cases.h"
#include "step.h"
#include "codegen/tile/tile.h"

static const Case cases[] = {
    {"adagrad", {0}},
    {"adam", {0}},
    {"adamw", {0}},
    {"adamw", {"clip=1"}},
    {"adan", {0}},
    {"adan", {"no_prox=1", "idle_first=1"}},
    {"adopt", {0}},
    {"adopt", {"clip=0", "decoupled=1"}},
    {"amsgrad", {0}},
    {"amsgrad", {"decoupled=1"}},
    {"lamb", {0}},
    {"lamb", {"clip=0", "trust_clip=1", "decoupled=1"}},
    {"lion", {0}},
    {"lion", {"cautious=1", "cautious_wd=1"}},
    {"nadam", {0}},
    {"nadam", {"decoupled=1"}},
    {"radam", {0}},
    {"radam", {"decoupled=1"}},
    {"rmsprop", {0}},
    {"rmsprop", {"centered=1", "use_momentum=1"}},
    {"rprop", {0}},
    {"sgd", {0}},
    {"sgd", {"use_momentum=1"}},
    {"sgd", {"use_momentum=1", "nesterov=1", "maximize=1"}},
};

static IrModule *read_ir(Arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    StrBuf text = {.arena = a}, why = {.arena = a};
    char buf[4096];
    REQUIRE(f, "cannot open %s", path);
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;) sb_putn(&text, buf, n);
    fclose(f);
    IrModule *m = ir_parse(a, text.text, &why);
    REQUIRE(m, "%s: %s", path, why.text);
    return m;
}

static const DType *storage_of(Arena *a, const IrModule *m, int mix)
{
    static const DType narrow[] = {DT_F32, DT_BF16, DT_F16};
    DType *s = ARENA_ARRAY(a, DType, m->nelem);
    for (uint32_t e = 0; e < m->nelem; e++)
        s[e] = mix == 0 ? DT_F32 : mix == 1 ? DT_BF16 : narrow[(e + (uint32_t)mix) % 3];
    return s;
}

/* Two steps from the same start, by the interpreter and by what the backend built. */
static void check_step(Arena *a, const char *name, const IrModule *m, const WorldBuilt *b,
                       const DType *storage, const int64_t *sizes, size_t n, bool wild,
                       const char *level)
{
    world_seed = 42;
    World got = world_new(a, m, b->plan->block_size, sizes, n, storage, wild);
    world_seed = 42;
    World want = world_new(a, m, b->plan->block_size, sizes, n, storage, wild);
    for (int step = 0; step < 2; step++) {
        world_step(&got, b);
        REQUIRE(interp_step(m, &want.x), "out of memory");
        const char *difference = world_difference(&got, &want);
        CHECK(!difference, "%s %s step %d%s: %s", name, level, step, wild ? " wild" : "",
              difference);
    }
}

static void check_level(Arena *a, const char *name, const IrModule *m, const Plan *plan, int mix,
                        int level)
{
    static const int64_t sizes[] = {0, 1, 127, 128, 129, 383, 384, 385, 4095, 4096, 4097, 10000};
    StrBuf why = {.arena = a};
    BackendOptions o = {.isa = tile_level_names[level]};
    const Backend *c = backend_find("c");
    const DType *storage = storage_of(a, m, mix);
    WorldBuilt b = {.plan = plan, .variant = plan_variant(a, plan, 0, storage)};
    bool built = c->build_variant(plan, b.variant, &o, &b.code, &why) &&
                 c->build_scalars(plan, &o, &b.scalars, &why);
    if (!built) {
        StrBuf text = {.arena = a};
        emit_tile_c(plan, b.variant, &text);
        REQUIRE(built, "%s %s: %s\n%s", name, o.isa, why.text, text.text);
    }
    check_step(a, name, m, &b, storage, sizes, sizeof sizes / sizeof *sizes, false, o.isa);
    check_step(a, name, m, &b, storage, sizes + 8, 4, true, o.isa);
    c->free_image(b.code.image);
    c->free_image(b.scalars.image);
}

static void check_module(const char *name, const IrModule *m, bool guard, Arena *a)
{
    const Plan *plan = plan_make(a, m);
    for (int mix = guard ? 1 : 0; mix < (guard ? 2 : 4); mix++) {
        for (int level = 0; level < TILE_LEVEL_COUNT; level++) {
            if (tile_level_runs((TileLevel)level, NULL)) check_level(a, name, m, plan, mix, level);
        }
    }
}

static void check_options(void)
{
    Arena a = {0};
    StrBuf why = {.arena = &a};
    const Backend *c = backend_find("c");
    BackendOptions o = {.isa = "avx9"};
    CHECK(!c->probe(&o, &why) && strstr(why.text, "unknown ISA level 'avx9'"), "%s", why.text);
    for (int level = 0; level < TILE_LEVEL_COUNT; level++) {
        StrBuf text = {.arena = &a};
        const char *missing;
        o.isa = tile_level_names[level];
        bool runs = tile_level_runs((TileLevel)level, &missing);
        CHECK(c->probe(&o, &text) == runs, "%s", o.isa);
        if (!runs) {
            CHECK(strstr(text.text, missing), "%s", text.text);
            printf("skipped: level %s (this processor lacks %s)\n", o.isa, missing);
        }
    }
    arena_free(&a);
}

int main(void)
{
    static const char *const texts[] = {"adamw",      "adamw_clip", "adamw_guard", "lamb",
                                        "lamb_guard", "lion",       "lookahead"};
    check_options();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int guard = 0; guard < 2; guard++) {
            Arena a = {0};
            const char *name = arena_printf(&a, "%s %s %s guard=%d", cases[i].rule,
                                            cases[i].defines[0] ? cases[i].defines[0] : "",
                                            cases[i].defines[1] ? cases[i].defines[1] : "", guard);
            check_module(name, compile_case(&a, &cases[i], guard != 0), guard != 0, &a);
            arena_free(&a);
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Arena a = {0};
        const char *path = arena_printf(&a, DSOPT_SOURCE_DIR "/tests/plan/ir/%s.ir", texts[i]);
        check_module(texts[i], read_ir(&a, path), false, &a);
        arena_free(&a);
    }
    return check_done();
}
