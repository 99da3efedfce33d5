/* Small rules, run in the interpreter from their IR's text beside the same arithmetic in C: two
 * tensors, four steps; tensor "b" has no gradient in the second step.
 *
 *     start("optimizer x { p -= g }", NULL, NULL);
 *     EACH_STEP { run_step(s); … SAME("p", at("p", t, i), want); }
 *     finish();
 */
#ifndef TESTS_SEMA_STEPS_H
#define TESTS_SEMA_STEPS_H
#include "tests/ir/interp_test.h"
#include <math.h>

enum { NB = 2, LEN = 5, STEPS = 4 };

static const int64_t numel[NB] = {LEN, 3};
static Bound b;
static Arena arena;
static double grad[STEPS][NB][LEN];

static inline bool active(int step, int tensor)
{
    return !(step == 1 && tensor == 1);
}

static inline void start(const char *text, const char *define, const char *rule)
{
    SourceSet sources = {.arena = &arena};
    DiagSink d = {.arena = &arena, .sources = &sources};
    FrontendOptions o = {.defines = &define, .ndefines = define ? 1 : 0, .rule = rule};
    IrModule *m =
        compile_source(&arena, &d, source_add(&sources, "x.opt", text, strlen(text)), &o, false);
    StrBuf said = {.arena = &arena}, ir = {.arena = &arena};
    diag_render(&d, &said, false);
    REQUIRE(m && d.n == 0, "%s\n%s", text, said.text ? said.text : "");
    ir_print(m, &ir);
    bind_module(&b, &arena, ir.text, NB, numel, (const char *const[]){"a", "b"}, NULL, 1);
    uint64_t seed = 7;
    for (int t = 0; t < NB; t++)
        for (int i = 0; i < numel[t]; i++) set(&b, "p", t, i, noise(&seed));
    for (int s = 0; s < STEPS; s++)
        for (int t = 0; t < NB; t++)
            for (int i = 0; i < LEN; i++) grad[s][t][i] = noise(&seed);
    for (uint32_t i = 0; i < m->nslots; i++)
        if (strcmp(m->slots[i].name, "numel") == 0)
            for (int t = 0; t < NB; t++) *place(&b, "numel", (size_t)t) = (double)numel[t];
}

static inline void run_step(int s)
{
    double all = 0;
    for (int t = 0; t < NB; t++) {
        b.tensors[t].active = active(s, t);
        if (active(s, t)) all += (double)numel[t];
        for (int i = 0; i < numel[t]; i++) set(&b, "g", t, i, grad[s][t][i]);
    }
    for (uint32_t i = 0; i < b.m->nslots; i++)
        if (strcmp(b.m->slots[i].name, "numel_all") == 0) *place(&b, "numel_all", 0) = all;
    REQUIRE(interp_step(b.m, &b.x), "out of memory");
}

static inline void finish(void)
{
    arena_free(&arena);
    arena = (Arena){0};
}

static inline float at(const char *slot, int t, int i)
{
    return (float)get(&b, slot, (size_t)t, i);
}

#define SAME(what, got, want)                                                                      \
    CHECK(same_bits(got, want), "%s: step %d tensor %d: %a, not %a", what, s, t, (double)(got),    \
          (double)(want))
#define EACH_STEP for (int s = 0; s < STEPS; s++)
#define EACH_TENSOR for (int t = 0; t < NB; t++)
#define EACH_ELEMENT for (int i = 0; i < numel[t]; i++)
#endif
