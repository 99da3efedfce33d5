/* Each pass alone, before and after; and all of them on what the builder made. */
#include "ir_test.h"

#define HEAD                                                                                       \
    "dsopt-ir 1\nmodule x compute f32\n\nslot p param f32.element\nslot g grad f32.element\n"

#define SHARED_0 "\n\n"
#define SHARED_4 " shared 4\n\n"
#define SHARED(n)                                                                                  \
    "dsopt-ir 1\nmodule x compute f32" SHARED_##n                                                  \
        "slot p param f32.element\nslot g grad f32.element\n"

static const struct {
    const char *pass, *before, *after;
} rows[] = {
    {"simplify",
     HEAD "slot lr hyper f64.group \"x.lr\" = 1 in [0, inf)\nslot r0 result f64.tensor\nslot r1 "
          "result f64.tensor\n\n"
          "body x step\n"
          "  %0:f64.global = const 2\n"
          "  %1:f64.global = const 1\n"
          "  %2:f64.global = sub %0 %1\n" /* folds to 1 */
          "  %3:f32.global = round %2\n"  /* to 1 in f32 */
          "  %4:f32.element = load g\n"
          "  %5:f32.element = mul %4 %3\n" /* is g */
          "  %6:f64.tensor = sumsq[tensor] %4 -> r0\n"
          "  %7:f64.tensor = sumsq[tensor] %5 -> r1\n" /* is %6 */
          "  %8:f64.tensor = add %6 %7\n"
          "  %9:f32.tensor = round %8\n"
          "  %10:f32.element = add %5 %9\n"
          "  %11:bool.global = const true\n"
          "  noskip %11\n"
          "  store p %10 if %11\n",
     HEAD "slot lr hyper f64.group \"x.lr\" = 1 in [0, inf)\nslot r0 result f64.tensor\nslot r1 "
          "result f64.tensor\n\n"
          "body x step\n"
          "  %0:f64.global = const 2\n"
          "  %1:f64.global = const 1\n"
          "  %2:f32.global = const 1\n"
          "  %3:f32.element = load g\n"
          "  %4:f64.tensor = sumsq[tensor] %3 -> r0\n"
          "  %5:f64.tensor = add %4 %4\n"
          "  %6:f32.tensor = round %5\n"
          "  %7:f32.element = add %3 %6\n"
          "  %8:bool.global = const true\n"
          "  store p %7\n"},
    {"simplify", /* a store that never happens */
     HEAD "slot m state f32.element = 0\n\nbody x step\n  %0:f32.element = load g\n"
          "  %1:bool.global = const false\n  store m %0 if %1\n  store p %0\n",
     HEAD "slot m state f32.element = 0\n\nbody x step\n  %0:f32.element = load g\n"
          "  %1:bool.global = const false\n  store p %0\n"},
    {"simplify", /* another body has the store */
     HEAD "slot W state f64.global = 0\nslot arm arm f64.tensor\n\n"
          "select x\n  %0:f64.global = const 0\n  store arm %0\n\n"
          "body x step\n  %0:f64.global = load W\n  %1:bool.global = const false\n"
          "  store W %0 if %1\n\n"
          "body x step\n  %0:f64.global = load W\n  store W %0\n",
     HEAD "slot W state f64.global = 0\nslot arm arm f64.tensor\n\n"
          "select x\n  %0:f64.global = const 0\n  store arm %0\n\n"
          "body x step\n  %0:f64.global = load W\n  %1:bool.global = const false\n"
          "  store W %0 if %1\n\n"
          "body x step\n  %0:f64.global = load W\n  store W %0\n"},
    {"dce", /* m feeds itself alone, n is written before it is read, q is constant: only q stays; so
               do lr and grad_norm */
     HEAD "slot m state f32.element \"x.m\" = 0\n"
          "slot lr hyper f64.group \"x.lr\" = 1 in [0, inf)\n"
          "slot n state f32.element \"x.n\" = 0\n"
          "slot q state f32.element \"x.q\" = 0x1p-1\n"
          "slot numel prop f64.tensor\n"
          "slot r0 result f64.tensor\n"
          "slot r1 result f64.global\n"
          "slot grad_norm export f64.global\n\n"
          "body x step\n"
          "  %0:f32.element = load g\n"
          "  %1:f32.element = load m\n"
          "  %2:f32.element = add %1 %0\n"
          "  %3:f32.element = load q\n"
          "  %4:f32.element = mul %3 %0\n"
          "  %5:f64.tensor = sum[tensor] %2 -> r0\n"
          "  %6:f64.tensor = load numel\n"
          "  %7:f64.tensor = div %5 %6\n"
          "  %8:f64.global = sumsq[all] %0 -> r1\n"
          "  store m %2\n"
          "  store n %4\n"
          "  store p %4\n"
          "  store grad_norm %8\n",
     HEAD "slot lr hyper f64.group \"x.lr\" = 1 in [0, inf)\n"
          "slot q state f32.element \"x.q\" = 0x1p-1\n"
          "slot r1 result f64.global\n"
          "slot grad_norm export f64.global\n\n"
          "body x step\n"
          "  %0:f32.element = load g\n"
          "  %1:f32.element = load q\n"
          "  %2:f32.element = mul %1 %0\n"
          "  %3:f64.global = sumsq[all] %0 -> r1\n"
          "  store p %2\n"
          "  store grad_norm %3\n"},
    {"dce", /* a chain: a feeds b's store, b's load feeds p; guards, counts and the skip verdict
               live */
     HEAD "slot t count f64.tensor = 0\nslot a state f64.tensor = 0\nslot b state f64.tensor = 0\n"
          "slot c state f64.tensor = 0\nslot r0 result bool.global\nslot skip skip bool.global\n\n"
          "body x step\n"
          "  %0:f32.element = load g\n"
          "  %1:bool.element = finite %0\n"
          "  %2:bool.global = all[all] %1 -> r0\n"
          "  %3:bool.global = not %2\n"
          "  %4:f64.tensor = load b\n"
          "  %5:f64.tensor = load a\n"
          "  %6:f64.tensor = load t\n"
          "  %7:f64.tensor = load c\n"
          "  %8:f64.tensor = add %7 %6\n"
          "  %9:f32.tensor = round %4\n"
          "  %10:f32.element = mul %9 %0\n"
          "  noskip %2\n"
          "  store a %6 if %2\n"
          "  store b %5 if %2\n"
          "  store c %8 if %2\n"
          "  store p %10 if %2\n"
          "  store skip %3\n",
     HEAD "slot t count f64.tensor = 0\nslot a state f64.tensor = 0\nslot b state f64.tensor = 0\n"
          "slot r0 result bool.global\nslot skip skip bool.global\n\n"
          "body x step\n"
          "  %0:f32.element = load g\n"
          "  %1:bool.element = finite %0\n"
          "  %2:bool.global = all[all] %1 -> r0\n"
          "  %3:bool.global = not %2\n"
          "  %4:f64.tensor = load b\n"
          "  %5:f64.tensor = load a\n"
          "  %6:f64.tensor = load t\n"
          "  %7:f32.tensor = round %4\n"
          "  %8:f32.element = mul %7 %0\n"
          "  noskip %2\n"
          "  store a %6 if %2\n"
          "  store b %5 if %2\n"
          "  store p %8 if %2\n"
          "  store skip %3\n"},
    {"dce", /* one body needs r0: the other goes on feeding it; r1 nobody needs; views go with the
               last vector; what entry points share stays, and what is stored to it */
     SHARED(
         4) "slot a state f64.tensor = 0\nslot rows prop f64.tensor\nslot b state f64.tensor = 0\n"
            "slot numel prop f64.tensor\nslot arm arm f64.tensor\nslot r0 result f64.global\n"
            "slot r1 result f64.group\nslot r2 result f64.row\nslot in input f64.global\n\n"
            "select x\n  %0:f64.tensor = load numel\n  %1:f64.tensor = neg %0\n  store arm %0\n\n"
            "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r0\n"
            "  %2:f32.global = round %1\n  %3:f32.element = mul %0 %2\n"
            "  %4:f64.global = const 1\n  store p %3\n  store a %4\n  store b %4\n\n"
            "body x step view matrix\n  %0:f32.element = load g\n"
            "  %1:f64.row = sum[row] %0 -> r2\n  %2:f64.group = sum[group] %1 -> r1\n"
            "  %3:f64.global = sum[all] %0 -> r0\n  %4:f32.element = neg %0\n  store p %4\n",
     SHARED(4) "slot a state f64.tensor = 0\nslot rows prop f64.tensor\n"
               "slot numel prop f64.tensor\nslot arm arm f64.tensor\nslot r0 result f64.global\n"
               "slot in input f64.global\n\n"
               "select x\n  %0:f64.tensor = load numel\n  store arm %0\n\n"
               "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r0\n"
               "  %2:f32.global = round %1\n  %3:f32.element = mul %0 %2\n"
               "  %4:f64.global = const 1\n  store p %3\n  store a %4\n\n"
               "body x step\n  %0:f32.element = load g\n"
               "  %1:f64.global = sum[all] %0 -> r0\n  %2:f32.element = neg %0\n  store p %2\n"},
    {"simplify", /* equal reductions of one body may differ in the next: both slots stay */
     SHARED(0) "slot arm arm f64.tensor\nslot r0 result f64.global\nslot r1 result f64.global\n\n"
               "select x\n  %0:f64.global = const 0\n  store arm %0\n\n"
               "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r0\n"
               "  %2:f64.global = sum[all] %0 -> r1\n\n"
               "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r0\n"
               "  %2:f32.element = load p\n  %3:f64.global = sum[all] %2 -> r1\n",
     SHARED(0) "slot arm arm f64.tensor\nslot r0 result f64.global\nslot r1 result f64.global\n\n"
               "select x\n  %0:f64.global = const 0\n  store arm %0\n\n"
               "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r0\n"
               "  %2:f64.global = sum[all] %0 -> r1\n\n"
               "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r0\n"
               "  %2:f32.element = load p\n  %3:f64.global = sum[all] %2 -> r1\n"},
};

static const char lamb[] =
#include "lamb.inc"
    ;

static void check_alone(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena a = {0};
        IrModule *m = must_parse(&a, rows[i].before);
        size_t p = 0;
        while (p < pass_count && strcmp(pass_info[p].name, rows[i].pass) != 0) p++;
        REQUIRE(p < pass_count, "no pass %s", rows[i].pass);
        IrModule *after = pass_info[p].run(&a, m);
        StrBuf why = {.arena = &a};
        CHECK(ir_verify(after, &why), "row %zu: %s", i, why.text);
        CHECK_TEXT(print_module(&a, after), rows[i].after);
        CHECK_TEXT(print_module(&a, pass_info[p].run(&a, after)),
                   rows[i].after);                       /* once is enough */
        CHECK_TEXT(print_module(&a, m), rows[i].before); /* the old module is as it was */
        arena_free(&a);
    }
}

static void check_all(void)
{
    Arena a = {0};
    StrBuf out = {.arena = &a}, why = {.arena = &a};
    IrModule *m = ir_run_passes(&a, must_parse(&a, lamb), "dce", &out, &why);
    REQUIRE(m, "%s", why.text);
    CHECK_TEXT(print_module(&a, m), lamb); /* what the builder would have made stays */
    CHECK_TEXT(out.text, lamb);
    CHECK(m->bodies[0].loc, "places of instructions are kept");
    for (size_t i = 0; i < pass_count; i++)
        CHECK(*pass_info[i].name && *pass_info[i].what, "pass %zu says what it does", i);
    arena_free(&a);
}

int main(void)
{
    check_alone();
    check_all();
    return check_done();
}
