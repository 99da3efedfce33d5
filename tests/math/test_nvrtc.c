/* ds_math.h under NVRTC: it compiles without headers, and the PTX has no operation that would
 * change a bit. Which bits a device computes is checked where there is one.
 *
 *   in:  ds_math.h and the rows of kernels.def as kernels
 *   out: PTX with an entry for each, without fma, mad of floats, approximations or .ftz */
#include "codegen/nvrtc.h"
#include "tests/check.h"
#include "tests/math/math_test.h"
#include <string.h>

static const char loop[] =
    "#define ROW(name, inputs, in, out, expression) \\\n"
    "  extern \"C\" __global__ void run_##name(long long n, const in *a, const in *b, out *o) \\\n"
    "  { long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; \\\n"
    "    if (i < n) o[i] = expression; }\n";

static void append_file(char *text, size_t size, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", DSOPT_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    REQUIRE(f, "cannot open %s", path);
    size_t used = strlen(text), n = fread(text + used, 1, size - used - 1, f);
    fclose(f);
    REQUIRE(n > 0 && used + n < size - 1, "%s: %zu bytes read", path, n);
    text[used + n] = 0;
}

int main(void)
{
    static char text[1 << 18];
    static const char *const forbidden[] = {"fma.rn", "mad.f", "mad.rn.f",
                                            "approx", ".ftz",  ".full"};
    char why[400], entry[80];
    if (!nvrtc_probe(why, sizeof why)) SKIP("%s", why);
    append_file(text, sizeof text, "codegen/math/ds_math.h");
    strcat(text, loop);
    append_file(text, sizeof text, "tests/math/kernels.def");
    NvrtcResult result;
    REQUIRE(nvrtc_compile(text, "math.cu", "compute_75", NVRTC_PTX, NULL, 0, &result), "%s",
            result.log);
    CHECK(!*result.log, "%s", result.log);
    for (int k = 0; k < KERNEL_COUNT; k++) {
        snprintf(entry, sizeof entry, ".entry run_%s(", kernel_info[k].name);
        CHECK(strstr(result.data, entry), "no %s", entry);
    }
    for (size_t k = 0; k < sizeof forbidden / sizeof *forbidden; k++) {
        const char *found = strstr(result.data, forbidden[k]);
        CHECK(!found, "%.60s", found);
    }
    CHECK(strstr(result.data, "sqrt.rn.f64") && strstr(result.data, "div.rn.f64"),
          "square root and division are IEEE");
    nvrtc_result_free(&result);
    return check_done();
}
