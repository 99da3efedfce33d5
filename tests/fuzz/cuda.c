/* cuda.c - generated rules as CUDA text, run on the processor (tests/emit/shim_device.h), against the
 * interpreter.
 *
 *   in:  fuzz_cuda [COUNT [SEED]]     seeds as fuzz_rules has them
 *   out: the rule that differs
 *
 * A compiler run for each rule, so COUNT is small. Refused rules are passed over.
 */
#include "tests/emit/shim_test.h"

#include "rules.h"

/* The module of a case's step; NULL: the checker refuses it. */
static IrModule *module_of(Arena *a, const FuzzCase *c)
{
    SourceSet *sources = ARENA_NEW(a, SourceSet); /* emitted texts quote it */
    sources->arena = a;
    DiagSink d = {.arena = a, .sources = sources};
    FrontendOptions o = {.rule = c->rule};
    int file = source_add(sources, "case.opt", c->text, strlen(c->text));
    return compile_source(a, &d, file, &o, false);
}

int main(int argc, char **argv)
{
    Arena probe = {0};
    StrBuf why = {.arena = &probe};
    if (!backend_find("cc")->probe(&(BackendOptions){.cc = "g++"}, &why)) SKIP("%s", why.text);
    long count = argc > 1 ? atol(argv[1]) : 12, done = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (; done < count; seed++) {
        Arena a = {0};
        FuzzCase c;
        case_random(&a, seed, &c);
        IrModule *m = module_of(&a, &c);
        DType types[256];
        const char *storage = c.storage ? c.storage : "";
        bool fits = m && m->nelem <= 256 && storage_parse(storage, m, types, &why);
        if (fits) {
            int before = check_failures;
            cuda_bits(&a, m, storage);
            REQUIRE(check_failures == before, "seed %llu [%s]:\n%s", (unsigned long long)seed, storage,
                    c.text);
            done++;
        }
        arena_free(&a);
    }
    printf("%ld rules compared\n", done);
    arena_free(&probe);
    return check_done();
}
