/* The same bits at every level: hashes of all outputs against golden.def.
 *
 *   test_hash avx2 quick           every function
 *   test_hash avx2 all expf        one function on all 2^32 inputs (or many pseudo-random ones)
 *   test_hash sse2 bless           prints golden.def's quick hashes anew (bless-all: both); run it
 *                                  only when bits change on purpose
 *   test_hash avx2 time            prints ns per element, operands in cache
 *
 * Levels: o0, sse2, avx2, avx512 (gcc or whatever compiles the project), clang, tcc. One that is
 * not built, or that this CPU cannot run, is a skip. */
#include "codegen/tcc/tcc.h"
#include "tests/check.h"
#include "tests/math/math_test.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

extern const Kernel kernels_o0[], kernels_sse2[], kernels_avx2[], kernels_avx512[];
#ifdef HAVE_CLANG
extern const Kernel kernels_clang[];
#endif

typedef struct Golden {
    const char *name;
    uint64_t hash[2]; /* quick, all */
} Golden;

static const Golden golden[] = {
#define GOLDEN(name, quick, all) {#name, {quick, all}},
#include "tests/math/golden.def"
#undef GOLDEN
};

static char *file_text(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", DSOPT_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    REQUIRE(f, "cannot open %s", path);
    char *text = calloc(1, 1 << 17);
    size_t n = fread(text, 1, (1 << 17) - 1, f);
    fclose(f);
    REQUIRE(n > 0, "%s is empty", path);
    return text;
}

/* libtcc compiles ds_math.h and the rows, in memory. */
static const Kernel *kernels_tcc(void)
{
    static const char loop[] =
        "#define ROW(name, inputs, in, out, expression) \\\n"
        "  void run_##name(long n, const void *pa, const void *pb, void *po) { \\\n"
        "    const in *a = pa, *b = pb; out *o = po; long i; \\\n"
        "    for (i = 0; i < n; i++) o[i] = expression; }\n";
    static const TccSymbol symbols[] = {{"sqrt", sqrt}, {"sqrtf", sqrtf}};
    static TccImage image;
    static Kernel table[KERNEL_COUNT];
    static char text[1 << 18];
    char *header = file_text("codegen/math/ds_math.h");
    char *rows = file_text("tests/math/kernels.def"), error[4096];
    snprintf(text, sizeof text, "%s\n%s%s", header, loop, rows);
    free(header);
    free(rows);
    REQUIRE(tcc_build(text, symbols, 2, &image, error, sizeof error), "%s", error);
    for (int k = 0; k < KERNEL_COUNT; k++) {
        char name[64];
        snprintf(name, sizeof name, "run_%s", kernel_info[k].name);
        void *address = tcc_image_symbol(&image, name);
        REQUIRE(address, "%s is missing", name);
        memcpy(&table[k], &address, sizeof address);
    }
    return table;
}

static const Kernel *kernels_of(const char *level)
{
    if (strcmp(level, "o0") == 0) return kernels_o0;
    if (strcmp(level, "sse2") == 0) return kernels_sse2;
    if (strcmp(level, "tcc") == 0) return kernels_tcc();
    if (strcmp(level, "avx2") == 0) {
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
            SKIP("this CPU has no AVX2 with FMA");
        return kernels_avx2;
    }
    if (strcmp(level, "avx512") == 0) {
        if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
            !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl"))
            SKIP("this CPU has no AVX-512 (F, DQ, BW, VL)");
        return kernels_avx512;
    }
#ifdef HAVE_CLANG
    if (strcmp(level, "clang") == 0) return kernels_clang;
#else
    if (strcmp(level, "clang") == 0) SKIP("clang was not found when this was built");
#endif
    fprintf(stderr, "unknown level %s\n", level);
    exit(2);
}

static uint64_t output_hash(Kernel kernel, const KernelInfo *info, int all)
{
    static double a[BLOCK], b[BLOCK], out[BLOCK];
    uint64_t count = input_count(info->inputs, all), hash = HASH_START;
    for (uint64_t i = 0; i < count; i += BLOCK) {
        input_fill(info->inputs, all, i, BLOCK, a, b);
        kernel(BLOCK, a, b, out);
        hash = hash_add(hash, info, BLOCK, out);
    }
    return hash;
}

static void bless(const Kernel *kernels, int too_all)
{
    for (int k = 0; k < KERNEL_COUNT; k++) {
        uint64_t quick = output_hash(kernels[k], &kernel_info[k], 0);
        uint64_t all = too_all ? output_hash(kernels[k], &kernel_info[k], 1) : golden[k].hash[1];
        printf("GOLDEN(%s, 0x%016" PRIx64 ", 0x%016" PRIx64 ")\n", kernel_info[k].name, quick, all);
        fflush(stdout);
    }
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The best of 20 runs over 256 ordinary operands: x in (0, 10), y in (-2, 3). */
static double time_of(Kernel kernel, Inputs inputs)
{
    enum { N = 256, REPEATS = 200 };
    static double a[N], b[N], out[N];
    int f32 = inputs == IN_F32 || inputs_are_f32(inputs);
    double best = INFINITY;
    for (int i = 0; i < N; i++) {
        double x = ((double)(mix64((uint64_t)i) % 9999) + 1) / 1000;
        double y = (double)(mix64((uint64_t)i + N) % 5000) / 1000 - 2;
        if (f32) {
            ((float *)a)[i] = (float)x;
            ((float *)b)[i] = (float)y;
        } else if (inputs == IN_U16) {
            ((uint16_t *)a)[i] = (uint16_t)mix64((uint64_t)i);
        } else {
            a[i] = x;
            b[i] = y;
        }
    }
    for (int run = 0; run < 20; run++) {
        double start = now_ns();
        for (int i = 0; i < REPEATS; i++) kernel(N, a, b, out);
        best = fmin(best, (now_ns() - start) / REPEATS / N);
    }
    return best;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: test_hash LEVEL quick|all|bless|bless-all|time [FUNCTION]\n");
        return 2;
    }
    const Kernel *kernels = kernels_of(argv[1]);
    if (strncmp(argv[2], "bless", 5) == 0) {
        bless(kernels, strcmp(argv[2], "bless-all") == 0);
        return 0;
    }
    if (strcmp(argv[2], "time") == 0) {
        for (int k = 0; k < KERNEL_COUNT; k++)
            printf("%-14s %6.2f ns\n", kernel_info[k].name,
                   time_of(kernels[k], kernel_info[k].inputs));
        return 0;
    }
    int all = strcmp(argv[2], "all") == 0;
    REQUIRE(sizeof golden / sizeof *golden == KERNEL_COUNT, "golden.def lacks rows");
    for (int k = 0; k < KERNEL_COUNT; k++) {
        const KernelInfo *info = &kernel_info[k];
        if (argc > 3 && strcmp(argv[3], info->name) != 0) continue;
        REQUIRE(strcmp(golden[k].name, info->name) == 0, "golden.def: row %d is not %s", k,
                info->name);
        uint64_t hash = output_hash(kernels[k], info, all);
        CHECK(hash == golden[k].hash[all], "%s at level %s: 0x%016" PRIx64 ", golden 0x%016" PRIx64,
              info->name, argv[1], hash, golden[k].hash[all]);
    }
    return check_done();
}
