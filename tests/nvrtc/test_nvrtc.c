/* codegen/nvrtc: a small kernel to PTX and cubin, errors as text, and a machine without NVRTC.
 *
 *   in:  no argument; or "hidden" (run with DSOPT_NVRTC=none), "wrong" (a folder without it)
 *   out: "NVRTC 13.0 from …, PTX in 12 ms"; skipped with the reason where NVRTC is missing */
#include "codegen/nvrtc.h"
#include "tests/check.h"

#include <string.h>
#include <time.h>

static const char kernel[] =
    "extern \"C\" __global__ void scale(float *p, const float *g, float lr, long long n)\n"
    "{\n"
    "    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;\n"
    "    if (i < n) p[i] = p[i] - lr * g[i] / sqrtf(g[i]);\n"
    "}\n";

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool compile(const char *text, const char *arch, NvrtcOutput output, NvrtcResult *result)
{
    return nvrtc_compile(text, "scale.cu", arch, output, NULL, 0, result);
}

static void test_missing(const char *word)
{
    NvrtcResult result;
    char why[400];

    CHECK(!nvrtc_probe(why, sizeof why), "found");
    CHECK(strstr(why, word), "%s", why);
    CHECK(!compile(kernel, "compute_75", NVRTC_PTX, &result), "compiled");
    CHECK(!result.data && strstr(result.log, word), "%s", result.log);
    nvrtc_result_free(&result);
}

static void test_outputs(void)
{
    NvrtcResult result;
    double start = now_ms();

    CHECK(compile(kernel, "compute_75", NVRTC_PTX, &result), "%s", result.log);
    printf("PTX in %.0f ms\n", now_ms() - start);
    CHECK(result.data && strstr(result.data, ".entry scale"), "no entry in the PTX");
    CHECK(result.data && strstr(result.data, ".target sm_75"), "not for compute_75");
    CHECK(result.data && strlen(result.data) == result.size, "size %zu", result.size);
    /* The meaning of arithmetic: no fused multiply-add, IEEE division and square root. */
    CHECK(result.data && !strstr(result.data, "fma.rn.f32 "), "contracted");
    CHECK(result.data && strstr(result.data, "div.rn.f32"), "division is not IEEE");
    CHECK(result.data && strstr(result.data, "sqrt.rn.f32"), "square root is not IEEE");
    CHECK(!*result.log, "%s", result.log);
    nvrtc_result_free(&result);

    CHECK(compile(kernel, "sm_90", NVRTC_CUBIN, &result), "%s", result.log);
    CHECK(result.size > 500 && !memcmp(result.data, "\177ELF", 4), "no cubin");
    nvrtc_result_free(&result);
    CHECK(compile(kernel, "sm_90", NVRTC_PTX, &result), "%s", result.log);
    nvrtc_result_free(&result);
}

static void test_errors(void)
{
    static const struct {
        const char *text, *arch;
        NvrtcOutput output;
        const char *words;
    } bad[] = {
        {"int f( {", "compute_75", NVRTC_PTX, "scale.cu(1): error"},
        {kernel, "compute_75", NVRTC_CUBIN, "real architecture"},
        {kernel, "sm_20", NVRTC_CUBIN, "does not know \"sm_20\""},
        {kernel, "fast", NVRTC_PTX, "unknown architecture \"fast\""},
        {kernel, "sm_", NVRTC_PTX, "unknown architecture \"sm_\""},
        {"#line 12 \"my.opt\"\nint f() { return x; }", "compute_75", NVRTC_PTX, "my.opt(12)"},
    };
    const char *option = "--no-such-option";
    NvrtcResult result;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!compile(bad[i].text, bad[i].arch, bad[i].output, &result), "compiled: %zu", i);
        CHECK(!result.data && strstr(result.log, bad[i].words), "%zu: %s", i, result.log);
        nvrtc_result_free(&result);
    }
    CHECK(!nvrtc_compile(kernel, "k.cu", "sm_90", NVRTC_PTX, &option, 1, &result), "compiled");
    CHECK(strstr(result.log, "no-such-option"), "%s", result.log);
    nvrtc_result_free(&result);
}

int main(int argc, char **argv)
{
    const char *path;
    char why[400];
    int major, minor;

    if (argc > 1) {
        test_missing(!strcmp(argv[1], "hidden") ? "none" : "cannot be opened there");
        return check_done();
    }
    if (!nvrtc_probe(why, sizeof why)) SKIP("%s", why);
    REQUIRE(nvrtc_version(&major, &minor, &path), "no version");
    printf("NVRTC %d.%d from %s\n", major, minor, path);
    CHECK(major == 13, "version %d.%d", major, minor);
    test_outputs();
    test_errors();
    return check_done();
}
