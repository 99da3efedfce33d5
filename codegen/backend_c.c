/* backend_c.c - the tile backend: C text of emit_tile.c, compiled in memory by libtcc, calling the
 * operators of one ISA level.
 *
 * Requires: plans that compute in f32. Ensures: what is built calls nothing but the operators and
 * functions compiled into this library; the level is the option's, or the best that runs here, and
 * is part of the image, so that one process can compare levels.
 *
 *     {.isa = "avx2"}   ->  built.kernels[0](&args, 0, rows, scratch) runs phase 0
 *     {.isa = "avx9"}   ->  false, "unknown ISA level 'avx9': one of sse2, avx2, avx512"
 */
#include "emit_tile.h"
#include "emit.h"
#include "fn.h"
#include "tcc/tcc.h"
#include <stdio.h>
#include <string.h>

/* ---- functions of scalar code ---------------------------------------------------------------- */

#define EACH_FUNCTION(F1, F2, F3)                                                                  \
    F1(abs) F1(sqrt) F1(rsqrt) F1(exp) F1(log) F1(tanh) F1(cbrt) F1(sigmoid) F1(softplus)          \
    F1(sin) F1(cos) F2(atan2) F1(floor) F2(powc) F3(fma)
#define DEFINE1(fn)                                                                                \
    static double c_##fn(double a)                                                                 \
    {                                                                                              \
        return ds_##fn(a);                                                                         \
    }                                                                                              \
    static float c_##fn##f(float a)                                                                \
    {                                                                                              \
        return ds_##fn##f(a);                                                                      \
    }
#define DEFINE2(fn)                                                                                \
    static double c_##fn(double a, double b)                                                       \
    {                                                                                              \
        return ds_##fn(a, b);                                                                      \
    }                                                                                              \
    static float c_##fn##f(float a, float b)                                                       \
    {                                                                                              \
        return ds_##fn##f(a, b);                                                                   \
    }
#define DEFINE3(fn)                                                                                \
    static double c_##fn(double a, double b, double c)                                             \
    {                                                                                              \
        return ds_##fn(a, b, c);                                                                   \
    }                                                                                              \
    static float c_##fn##f(float a, float b, float c)                                              \
    {                                                                                              \
        return ds_##fn##f(a, b, c);                                                                \
    }
/* clang-format off */
EACH_FUNCTION(DEFINE1, DEFINE2, DEFINE3)
/* clang-format on */
/* Powers with names (emit_power_name), of f32 values of rows, columns and blocks. */
#define EACH_POWER(F) F(powf_2) F(powf_3) F(powf_m1) F(powf_half) F(powf_quarter)
#define DEFINE_POWER(fn)                                                                           \
    static float c_##fn(float a)                                                                   \
    {                                                                                              \
        return ds_##fn(a);                                                                         \
    }
/* clang-format off */
EACH_POWER(DEFINE_POWER)
/* clang-format on */
static double c_from(ds_u64 bits)
{
    return ds_from(bits);
}
static float c_fromf(ds_u32 bits)
{
    return ds_fromf(bits);
}

#define ROW1(fn)                                                                                   \
    {"ds_" #fn, "double ds_" #fn "(double);\n", (TileFn)c_##fn},                                   \
        {"ds_" #fn "f", "float ds_" #fn "f(float);\n", (TileFn)c_##fn##f},
#define ROW2(fn)                                                                                   \
    {"ds_" #fn, "double ds_" #fn "(double, double);\n", (TileFn)c_##fn},                           \
        {"ds_" #fn "f", "float ds_" #fn "f(float, float);\n", (TileFn)c_##fn##f},
#define ROW3(fn)                                                                                   \
    {"ds_" #fn, "double ds_" #fn "(double, double, double);\n", (TileFn)c_##fn},                   \
        {"ds_" #fn "f", "float ds_" #fn "f(float, float, float);\n", (TileFn)c_##fn##f},
#define ROW_POWER(fn) {"ds_" #fn, "float ds_" #fn "(float);\n", (TileFn)c_##fn},
const MathFunction math_functions[] = {
    EACH_FUNCTION(ROW1, ROW2, ROW3) EACH_POWER(ROW_POWER){"ds_from", "double ds_from(unsigned long);\n", (TileFn)c_from},
    {"ds_fromf", "float ds_fromf(unsigned);\n", (TileFn)c_fromf},
};
const size_t math_function_count = sizeof math_functions / sizeof *math_functions;

bool math_function_is_used(const MathFunction *f, const char *text)
{
    size_t n = strlen(f->name);
    for (const char *s = strstr(text, f->name); s; s = strstr(s + 1, f->name)) {
        if (s[n] == '(') return true;
    }
    return false;
}

/* ---- building -------------------------------------------------------------------------------- */

static bool find_level(const BackendOptions *o, TileLevel *out, StrBuf *why)
{
    *out = tile_level_best();
    if (!o || !o->isa) return true;
    for (int l = 0; l < TILE_LEVEL_COUNT; l++) {
        const char *missing;
        if (strcmp(o->isa, tile_level_names[l]) != 0) continue;
        *out = (TileLevel)l;
        if (tile_level_runs((TileLevel)l, &missing)) return true;
        sb_printf(why, "ISA level '%s' does not run here: this processor lacks %s", o->isa,
                  missing);
        return false;
    }
    sb_printf(why, "unknown ISA level '%s': one of sse2, avx2, avx512", o->isa);
    return false;
}

static bool probe(const BackendOptions *o, StrBuf *why)
{
    TileLevel level;
    return find_level(o, &level, why);
}

static bool emit(const Plan *p, const Variant *v, const BackendOptions *o, StrBuf *out)
{
    (void)o;
    return emit_tile_c(p, v, out);
}

/* What is built: code, and the table of its functions; lives in the plan's arena. */
typedef struct Image {
    TccImage code;
    void *functions[];
} Image;

/* Compiles `text` with the operators in `uses` and the functions that it calls. */
static Image *compile(const Plan *p, const char *text, const TileUses *uses, TileLevel level,
                      size_t functions, StrBuf *why)
{
    TccSymbol *symbols = ARENA_ARRAY(why->arena, TccSymbol, TILE_OP_COUNT + math_function_count);
    Image *image = arena_alloc(p->arena, sizeof *image + (functions + 1) * sizeof(void *));
    size_t n = 0;
    char err[1024];
    if (!symbols || !image) return NULL;
    for (int op = 0; op < TILE_OP_COUNT; op++) {
        StrBuf name = {.arena = why->arena};
        if (!uses->op[op]) continue;
        tile_uses_name(&name, op);
        symbols[n++] = (TccSymbol){name.text, (const void *)tile_levels[level]->op[op]};
    }
    for (size_t i = 0; i < math_function_count; i++) {
        if (math_function_is_used(&math_functions[i], text))
            symbols[n++] =
                (TccSymbol){math_functions[i].name, (const void *)math_functions[i].address};
    }
    if (tcc_build_with(p->arena->alloc, text, symbols, n, &image->code, err, sizeof err))
        return image;
    if (!image->code.out_of_memory) sb_puts(why, err);
    return NULL;
}

static void free_image(void *image)
{
    if (image) tcc_image_free(&((Image *)image)->code);
}

static bool refuse_f64(const Plan *p, StrBuf *why)
{
    if (p->m->compute_f64)
        sb_puts(why, "the tile backend computes in f32; `compute f64` runs on interp");
    return p->m->compute_f64;
}

static bool build_variant(const Plan *p, const Variant *v, const BackendOptions *o,
                          BuiltVariant *out, StrBuf *why)
{
    TileLevel level;
    TileUses uses = {0};
    StrBuf text = {.arena = why->arena};
    if (refuse_f64(p, why) || !find_level(o, &level, why)) return false;
    emit_tile_kernels(&text, p, v, &uses);
    const char **names = ARENA_ARRAY(why->arena, const char *, v->nkernels + 1);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        StrBuf name = {.arena = why->arena};
        emit_kernel_name(&name, v, &v->kernels[i]);
        names[i] = name.text;
    }
    Image *image = compile(p, text.text, &uses, level, v->nkernels, why);
    if (!image) return false;
    for (uint32_t i = 0; i < v->nkernels; i++)
        image->functions[i] = tcc_image_symbol(&image->code, names[i]);
    *out = (BuiltVariant){(DsKernelFn *)image->functions, uses.scratch_bytes, image};
    return true;
}

static bool build_scalars(const Plan *p, const BackendOptions *o, BuiltScalars *out, StrBuf *why)
{
    TileLevel level;
    TileUses uses = {0};
    StrBuf text = {.arena = why->arena};
    if (refuse_f64(p, why) || !find_level(o, &level, why)) return false;
    emit_tile_scalars(&text, p, IR_NONE, true, &uses);
    /* Before the image, which an arena without memory would jump away from. */
    uint32_t n;
    const char **names = emit_all_names(why->arena, p, "", &n);
    Image *image = compile(p, text.text ? text.text : "", &uses, level, n, why);
    if (!image) return false;
    for (uint32_t i = 0; i < n; i++) image->functions[i] = tcc_image_symbol(&image->code, names[i]);
    *out = emit_all_built(p, image->functions, image);
    return true;
}

const Backend backend_c = {
    .name = "c",
    .what = "tile C compiled in memory by libtcc, calling precompiled vector operators",
    .probe = probe,
    .emit = emit,
    .build_variant = build_variant,
    .build_scalars = build_scalars,
    .free_image = free_image,
};
