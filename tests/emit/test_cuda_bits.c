/* The bits that CUDA text computes, without a device: the text is compiled as C++ with a header
 * that plays threads, warps and blocks (shim_device.h), launched as its generated .h says, and
 * compared with the interpreter.
 *
 *   test_cuda_bits quick    three rules of tests/plan/ir, adafactor, reductions to groups
 *   test_cuda_bits all      the standard library, too;   test_cuda_bits RULE   one of its rules
 *
 * What this cannot see is what a device alone can get wrong: memory ordering, and the arithmetic of
 * its instructions. */
#include "shim_test.h"

/* What meets in each group: values of elements and of tensors, whose places are not those of the
 * spans. */
static const char of_groups[] =
    "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\nslot g grad f32.element\n"
    "slot k state f64.tensor = 0\nslot r0 result f64.group\nslot r1 result f64.group\n"
    "slot e export f64.group\nslot f export f64.group\n"
    "body x step\n  %0:f32.element = load g\n  %1:f64.group = sumsq[group] %0 -> r0\n"
    "  %2:f64.tensor = load k\n  %3:f64.group = sum[group] %2 -> r1\n  %4:f64.global = const 3\n"
    "  %5:f64.tensor = mul %2 %4\n  %6:f64.tensor = add %5 %4\n"
    "  store e %1\n  store f %3\n  store k %6\n";

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
    IrModule *groups = ir_parse(&a, of_groups, &why);
    REQUIRE(groups, "%s", why.text);
    if (!one) cuda_bits(&a, groups, "");
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
