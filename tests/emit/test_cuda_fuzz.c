/* Random modules as CUDA text, run on the host (shim_device.h), against the interpreter.
 *
 *   test_cuda_fuzz [COUNT [SEED]]
 *   out: the module that differs, as text; a compiler run per module, so COUNT is small by default
 */
#include "shim_test.h"

#include "../ir/random_module.h"

int main(int argc, char **argv)
{
    Arena a = {0};
    StrBuf why = {.arena = &a};
    if (!backend_find("cc")->probe(&(BackendOptions){.cc = "g++"}, &why)) SKIP("%s", why.text);
    int count = argc > 1 ? atoi(argv[1]) : 8;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    static const char *const storages[] = {"", "p=bf16,g=f16", "p=f16"};
    for (int i = 0; i < count; i++) {
        Arena one = {0};
        seed = (first + (uint64_t)i) * 2654435761u;
        random_kinds = i % 4 ? RANDOM_ALL : 0;
        IrModule *m = random_module(&one, false, true);
        StrBuf text = {.arena = &one}, bug = {.arena = &one};
        m = ir_run_passes(&one, m, NULL, NULL, &bug);
        REQUIRE(m, "seed %d: %s", i, bug.text);
        ir_print(m, &text);
        int before = check_failures;
        cuda_bits(&one, m, storages[i % 3]);
        REQUIRE(check_failures == before, "seed %lu [%s]:\n%s",
                (unsigned long)(first + (uint64_t)i), storages[i % 3], text.text);
        arena_free(&one);
    }
    arena_free(&a);
    return check_done();
}
