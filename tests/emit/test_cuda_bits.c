/* The bits that CUDA text computes, without a device: the text is compiled as C++ with a header
 * that plays threads, warps and blocks (shim_device.h), launched as its generated .h says, and
 * compared with the interpreter.
 *
 *   test_cuda_bits quick    three rules of tests/plan/ir
 *   test_cuda_bits all      the standard library, too;   test_cuda_bits RULE   one of its rules
 *
 * What this cannot see is what a device alone can get wrong: memory ordering, and the arithmetic of
 * its instructions. */
#include "shim_test.h"

int main(int argc, char **argv)
{
    Arena a = {0};
    StrBuf why = {.arena = &a};
    if (!backend_find("cc")->probe(&(BackendOptions){.cc = "g++"}, &why)) SKIP("%s", why.text);
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    static const char *const quick[] = {"adamw_clip", "lamb_guard", "lookahead"};
    bool one = argc > 1 && embed_find(ds_stdlib, ds_stdlib_count, argv[1]);
    for (size_t i = 0; !one && i < 3; i++) {
        const IrModule *m = rule_from_ir(&a, quick[i]);
        cuda_bits(&a, m, "");
        if (all || i == 1) cuda_bits(&a, m, "p=bf16,g=f16,m=bf16");
    }
    if (!one && !all) cuda_bits(&a, rule_from_stdlib(&a, "adafactor", false), "");
    for (size_t i = 0; i < ds_stdlib_count; i++) {
        if (!strstr(ds_stdlib[i].text, "\noptimizer ")) continue;
        if (!all && !(one && strcmp(ds_stdlib[i].name, argv[1]) == 0)) continue;
        Modules entries = rule_modules(&a, ds_stdlib[i].name, NULL, false);
        for (size_t k = 0; k < entries.n; k++) cuda_bits(&a, entries.m[k], "");
        cuda_bits(&a, rule_from_stdlib(&a, ds_stdlib[i].name, true), "p=bf16,g=bf16");
    }
    arena_free(&a);
    return check_done();
}
