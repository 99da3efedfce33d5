/* target.h - what the fuzz targets share: a text with its zero byte, and MUST, which ends the
 * process where something that always holds does not.
 *
 * A target is one function, LLVMFuzzerTestOneInput. Under -DDSOPT_FUZZ=ON libFuzzer calls it with
 * what it makes up; in every build driver.c calls it with the files of corpus/.
 *
 *     MUST(strcmp(once, twice) == 0, "%s\n%s", once, twice);
 */
#ifndef TESTS_FUZZ_TARGET_H
#define TESTS_FUZZ_TARGET_H
#include "codegen/codegen.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A module's text, which reads back as the same text; and what is made of it: passes, plan. */
static inline void must_round_trip(Arena *a, const IrModule *m)
{
    StrBuf once = {.arena = a}, twice = {.arena = a}, why = {.arena = a};
    ir_print(m, &once);
    IrModule *again = ir_parse(a, once.text, &why);
    MUST(again, "%s\n%s", why.text, once.text);
    ir_print(again, &twice);
    MUST(strcmp(once.text, twice.text) == 0, "%s\n%s", once.text, twice.text);
}

/* The plan of a module that went through the passes, and the texts that are made of it. */
static inline void must_plan(Arena *a, const IrModule *m)
{
    const Plan *p = plan_make(a, m);
    DType *storage = ARENA_ARRAY(a, DType, m->nelem + 1);
    MUST(p, "no plan");
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        bool memory = s->kind == SLOT_PARAM || s->kind == SLOT_GRAD || s->kind == SLOT_STATE;
        if (memory && !rate_is_scalar(s->rate)) storage[s->index] = s->dtype;
    }
    for (uint32_t body = 0; body < m->nbodies; body++) {
        const Variant *v = plan_variant(a, p, body, storage);
        StrBuf text = {.arena = a};
        plan_print(p, v, &text);
        plan_explain(p, v, &text);
        if (!m->compute_f64) emit_tile_c(p, v, &text);
    }
}
#endif
