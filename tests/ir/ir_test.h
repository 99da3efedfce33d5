/* What the tests of the IR share: an arena that does not return NULL, texts in and out. */
#ifndef TESTS_IR_IR_TEST_H
#define TESTS_IR_IR_TEST_H
#include "../check.h"
#include "codegen/codegen.h"
#include <math.h>
#include <string.h>

static inline char *print_module(Arena *a, const IrModule *m)
{
    StrBuf out = {.arena = a};
    ir_print(m, &out);
    return out.text;
}

static inline IrModule *must_parse(Arena *a, const char *text)
{
    StrBuf why = {.arena = a};
    IrModule *m = ir_parse(a, text, &why);
    REQUIRE(m, "%s\n%s", why.text, text);
    return m;
}

/* The first line in which two texts differ, for messages. */
static inline const char *first_difference(const char *x, const char *y)
{
    size_t line = 0, i = 0;
    for (; x[i] && x[i] == y[i]; i++)
        if (x[i] == '\n') line = i + 1;
    return x + line;
}

#define CHECK_TEXT(got, want)                                                                      \
    CHECK(strcmp(got, want) == 0, "differs from '%.60s'\n--- got\n%s--- want\n%s",                 \
          first_difference(got, want), got, want)

/* The slots that most tests begin with: p 0, g 1, t 2, s 3. */
static inline IrModule *small_module(Arena *a, bool f64)
{
    IrModule *m = ir_module_new(a, "test", f64);
    DType e = f64 ? DT_F64 : DT_F32;
    ir_slot_add(
        m, (Slot){.kind = SLOT_PARAM, .name = "p", .dtype = e, .storage = e, .rate = RATE_ELEMENT});
    ir_slot_add(
        m, (Slot){.kind = SLOT_GRAD, .name = "g", .dtype = e, .storage = e, .rate = RATE_ELEMENT});
    ir_slot_add(m, (Slot){.kind = SLOT_COUNT,
                          .name = "t",
                          .dtype = DT_F64,
                          .storage = DT_F64,
                          .rate = RATE_TENSOR});
    ir_slot_add(m, (Slot){.kind = SLOT_COUNT,
                          .name = "s",
                          .dtype = DT_F64,
                          .storage = DT_F64,
                          .rate = RATE_GLOBAL});
    return m;
}

static inline uint32_t add_hyper(IrModule *m, const char *name, double def)
{
    return ir_slot_add(m, (Slot){.kind = SLOT_HYPER,
                                 .name = name,
                                 .path = name,
                                 .dtype = DT_F64,
                                 .storage = DT_F64,
                                 .rate = RATE_GROUP,
                                 .has_default = true,
                                 .def = def,
                                 .lo = -INFINITY,
                                 .hi = INFINITY,
                                 .lo_open = true,
                                 .hi_open = true});
}

static inline uint32_t add_state(IrModule *m, const char *name, Rate rate, double init)
{
    DType d = rate_is_elementwise(rate) && !m->compute_f64 ? DT_F32 : DT_F64;
    return ir_slot_add(m, (Slot){.kind = SLOT_STATE,
                                 .name = name,
                                 .path = name,
                                 .dtype = d,
                                 .storage = d,
                                 .rate = rate,
                                 .init = init});
}
#endif
