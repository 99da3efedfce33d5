/* tile_table.c - what the tile operators are called, which levels there are and which of them run
 * here.
 *
 *     tile_info[TILE_axpby]  ->  {"axpby", "(S0, V0, S1, V1)", "ADD(MUL(S0, V0), MUL(S1, V1))", …}
 *     tile_level_runs(TILE_AVX512, &missing)  ->  false, missing = "avx512f, avx512bw"
 */
#include "codegen/tile/tile.h"
#include <cpuid.h>

const TileInfo tile_info[TILE_OP_COUNT] = {
#define TYPE_F false
#define TYPE_B true
#define TILE(name, type, params, expr) {#name, #params, #expr, NULL, -1, TYPE_##type, -1, -1, -1},
#define TILE_RED(name, reduction, params, x, y)                                                    \
    {#name,           #params, #x, #y, RED_##reduction, false, TILE_ROW_##name, TILE_COL_##name,     \
     TILE_MAT_##name},
#include "codegen/tile/tile.def"
};

const TileTable *const tile_levels[TILE_LEVEL_COUNT] = {&tile_table_sse2, &tile_table_avx2,
                                                        &tile_table_avx512};
const char *const tile_level_names[TILE_LEVEL_COUNT] = {"sse2", "avx2", "avx512"};

/* What of a level's instructions is missing, as text; the builtins ask the operating system too. */
static const char *missing_avx2(void)
{
    bool avx2 = __builtin_cpu_supports("avx2"), fma = __builtin_cpu_supports("fma");
    unsigned a, b, c = 0, d;
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    static const char *const names[8] = {"avx2, fma, f16c", "fma, f16c", "avx2, f16c", "f16c",
                                         "avx2, fma",       "fma",       "avx2",       NULL};
    return names[avx2 + 2 * fma + 4 * f16c];
}

static const char *missing_avx512(void)
{
    if (!__builtin_cpu_supports("avx512f")) return "avx512f";
    if (!__builtin_cpu_supports("avx512bw")) return "avx512bw";
    if (!__builtin_cpu_supports("avx512dq")) return "avx512dq";
    return __builtin_cpu_supports("avx512vl") ? NULL : "avx512vl";
}

bool tile_level_runs(TileLevel l, const char **missing)
{
    const char *names = missing_avx2();
    if (l == TILE_AVX512 && !names) names = missing_avx512();
    if (l == TILE_SSE2) names = NULL; /* every x86-64 has it */
    if (missing) *missing = names;
    return names == NULL;
}

TileLevel tile_level_best(void)
{
    for (int l = TILE_LEVEL_COUNT - 1; l > TILE_SSE2; l--) {
        if (tile_level_runs((TileLevel)l, NULL)) return (TileLevel)l;
    }
    return TILE_SSE2;
}
