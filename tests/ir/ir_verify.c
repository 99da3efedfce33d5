/* The verifier: one module per rule of docs/ir.md that breaks it, and the sentence that says so. */
#include "ir_test.h"

#define HEAD32 "dsopt-ir 1\nmodule x compute f32\n"
#define PG "slot p param f32.element\nslot g grad f32.element\n"
#define H "slot h hyper f64.group = 1 in (-inf, inf)\n"
#define REST                                                                                       \
    "slot t count f64.tensor = 0\nslot m state f32.element = 0\nslot w state f64.group = 0\n"      \
    "slot r0 result f64.tensor\nslot r1 result f64.global\nslot r2 result bool.global\n"           \
    "slot e export f64.global\nslot skip skip bool.global\nslot W state f64.global = 0\n"
#define BODY HEAD32 PG H REST "body x step\n"
#define VIEWS                                                                                      \
    HEAD32 PG                                                                                      \
        "slot R state f32.row = 0\nslot B state f32.block = 0\nslot numel prop f64.tensor\n"       \
        "slot draw_lo prop f64.tensor\nslot draw_hi prop f64.tensor\nslot in input f64.global\n"   \
        "slot arm arm f64.tensor\nslot block block f64.tensor\nslot r4 result f64.row\n"           \
        "slot r5 result f64.tensor\nslot r6 result f64.global\nslot r7 result f64.global\n"

static const struct {
    const char *text, *why;
} broken[] = {
    /* slots */
    {HEAD32, "module: p and g are missing"},
    {HEAD32 "slot g grad f32.element\n",
     "slot g: p is slot 0 and g slot 1, and only they are parameter and gradient"},
    {HEAD32 PG "slot q grad f32.element\n",
     "slot q: p is slot 0 and g slot 1, and only they are parameter and gradient"},
    {HEAD32 PG "slot h hyper f32.element = 1 in [0, 1]\n",
     "slot h: a slot of this kind is a scalar"},
    {HEAD32 PG "slot m state f64.element = 0\n", "slot m: values of rate element are f32 here"},
    {"dsopt-ir 1\nmodule x compute f64\n" PG, "slot p: values of rate element are f64 here"},
    {HEAD32 PG "slot m state f64.row = 0\n", "slot m: values of rate row are f32 here"},
    {"dsopt-ir 1\nmodule x compute f64\nslot p param f64.element\nslot g grad f64.element\n"
     "slot m state f32.col = 0\n",
     "slot m: values of rate col are f64 here"},
    {HEAD32 PG "slot m state f32.matrix = 0\n", "slot m: values of rate matrix are f64 here"},
    {HEAD32 PG "slot e export f64.row\n", "slot e: a slot of this kind is a scalar"},
    {HEAD32 PG "slot r result f64.element\n", "slot r: a result is coarser than elements"},
    {HEAD32 PG "slot r result f32.row\n", "slot r: a slot of this kind is f64 or bool"},
    {HEAD32 PG "slot x input f64.group\n", "slot x: an input is global"},
    {HEAD32 PG "slot arm arm f64.global\n", "slot arm: a slot of this kind has tensor rate"},
    {HEAD32 PG "slot a arm f64.tensor\nslot b arm f64.tensor\n",
     "slot b: a second slot of this kind"},
    {HEAD32 PG "slot a block f64.tensor\nslot b block f64.tensor\n",
     "slot b: a second slot of this kind"},
    {"dsopt-ir 1\nmodule x compute f32 shared 3\n" PG, "module: more shared slots than slots"},
    {HEAD32 PG "slot m state f32.group = 0\n", "slot m: scalars of this kind are f64"},
    {HEAD32 PG "slot t count bool.tensor = 0\n", "slot t: scalars of this kind are f64"},
    {HEAD32 "slot p param f64.group\n", "slot p: p and g vary over elements"},
    {HEAD32 PG "slot h hyper f64.tensor = 1 in [0, 1]\n",
     "slot h: a hyperparameter has group or global rate"},
    {HEAD32 PG "slot t count f64.row = 0\n", "slot t: a slot of this kind is a scalar"},
    {HEAD32 PG "slot numel prop f64.group\n",
     "slot numel: a slot of this kind has tensor or global rate"},
    {HEAD32 PG "slot v skip bool.tensor\n", "slot v: the skip verdict is global"},
    {HEAD32 PG "slot v skip bool.global\nslot w skip bool.global\n",
     "slot w: a second slot of this kind"},
    {HEAD32 PG "slot size prop f64.tensor\n", "slot size: no such property of a tensor"},
    {HEAD32 PG "slot name_like prop f64.tensor \"(a\"\n",
     "slot name_like: no pattern: Unmatched ( or \\("},
    {HEAD32 PG "slot name_like prop f64.tensor \"(a)\\\\1\"\n",
     "slot name_like: no pattern: it has a back-reference"},
    {HEAD32 PG "slot numel prop f64.global\n",
     "slot numel: numel_all is global, the others per tensor"},
    {HEAD32 PG "slot m state f32.element as bf16 = 0\n",
     "slot m: only scalar states may be stored as f32"},
    {HEAD32 PG "slot h hyper f64.group = 1 in [1, 0]\n", "slot h: an empty range"},
    {HEAD32 PG "slot h hyper f64.group = 1 in [nan, 0]\n", "slot h: an empty range"},
    /* constants, loads, rounds */
    {BODY "  %0:f64.group = const 1\n", "body x step: %0: a constant is global"},
    {BODY "  %0:f32.global = const 0x1.99999999p-4\n", "body x step: %0: not a value of f32"},
    {BODY "  %0:f16.global = const 1\n", "body x step: %0: a constant is f64, f32 or bool"},
    {BODY "  %0:f64.group = load r0\n", "body x step: %0: slot r0 is only written in a step"},
    {BODY "  %0:f64.group = load e\n", "body x step: %0: slot e is only written in a step"},
    {BODY "  %0:f32.group = load h\n", "body x step: %0: slot h is f64.group"},
    {BODY "  %0:f64.tensor = load h\n", "body x step: %0: slot h is f64.group"},
    {BODY "  %0:f32.element = load g\n  %1:f32.element = round %0\n",
     "body x step: %1: operand is not f64"},
    {BODY "  %0:f64.group = load h\n  %1:f64.group = round %0\n",
     "body x step: %1: gives f32, not f64"},
    {BODY "  %0:f64.group = load h\n  %1:f32.tensor = round %0\n",
     "body x step: %1: has rate group, not tensor"},
    /* map ops */
    {BODY "  %0:f64.group = load h\n  %1:f32.element = load g\n  %2:f32.element = mul %0 %1\n",
     "body x step: %2: operands are f32 and f64"},
    {BODY "  %0:f64.group = load h\n  %1:bool.group = finite %0\n  %2:f64.group = neg %1\n",
     "body x step: %2: operand is a truth value"},
    {BODY "  %0:f64.group = load h\n  %1:bool.group = not %0\n",
     "body x step: %1: operand is a number"},
    {BODY "  %0:f64.group = load h\n  %1:f64.group = select %0 %0 %0\n",
     "body x step: %1: the condition of a select is not bool"},
    {BODY "  %0:bool.global = const true\n  %1:bool.global = select %0 %0 %0\n",
     "body x step: %1: operand is a truth value"},
    {BODY "  %0:f32.element = load g\n  %1:bool.element = finite %0\n  %2:f64.group = load h\n"
          "  %3:f64.element = select %1 %2 %2\n",
     "body x step: %3: f64 meets elements without round"},
    {BODY "  %0:f64.group = load h\n  %1:f32.group = round %0\n  %2:f32.group = mul %1 %1\n",
     "body x step: %2: scalars are computed in f64"},
    {BODY "  %0:f32.element = load g\n  %1:f64.element = neg %0\n",
     "body x step: %1: gives f32, not f64"},
    {BODY "  %0:f64.group = load h\n  %1:f64.tensor = neg %0\n",
     "body x step: %1: has rate group, not tensor"},
    /* reductions */
    {BODY "  %0:f32.element = load g\n  %1:f64.group = sum[group] %0 -> r0\n",
     "body x step: %1: slot r0 is f64.tensor"},
    {BODY "  %0:f64.global = load W\n  %1:f64.global = sum[all] %0 -> r1\n",
     "body x step: %1: of a global value to global: nothing to reduce within this scope"},
    {BODY "  %0:f64.group = load h\n  %1:f64.group = sum[group] %0 -> r1\n",
     "body x step: %1: of a group value to group: nothing to reduce within this scope"},
    {BODY "  %0:f32.element = load g\n  %1:f64.element = sum[element] %0 -> r1\n",
     "body x step: %1: of a element value to element: a reduction to elements"},
    {BODY "  %0:f64.tensor = load t\n  %1:bool.tensor = finite %0\n  %2:f64.group = load h\n"
          "  %3:f64.global = sum[all] %2 -> r1 if %1\n",
     "body x step: %3: the guard is not a bool of group rate or coarser"},
    {BODY "  %0:f32.element = load g\n  %1:f64.tensor = any[tensor] %0 -> r0\n",
     "body x step: %1: operand is a number"},
    {BODY "  %0:f32.element = load g\n  %1:bool.element = finite %0\n  %2:bool.tensor = "
          "sum[tensor] %1 -> r0\n",
     "body x step: %2: operand is a truth value"},
    {BODY "  %0:f32.element = load g\n  %1:f32.tensor = sum[tensor] %0 -> r0\n",
     "body x step: %1: gives f64, not f32"},
    {BODY "  %0:f32.element = load g\n  %1:f64.tensor = sum[tensor] %0 -> r1\n",
     "body x step: %1: slot r1 is f64.global"},
    {BODY "  %0:f32.element = load g\n  %1:f64.tensor = sum[tensor] %0 -> w\n",
     "body x step: %1: slot w is not for results"},
    {BODY "  %0:f32.element = load g\n  %1:f64.tensor = sum[tensor] %0 -> r0\n  %2:f64.tensor = "
          "sumsq[tensor] %0 -> r0\n",
     "body x step: %2: slot r0 has a result already"},
    {BODY "  %0:f32.element = load g\n  %1:bool.element = finite %0\n  %2:f64.tensor = sum[tensor] "
          "%0 -> r0 if %1\n",
     "body x step: %2: the guard is not a bool of tensor rate or coarser"},
    {BODY "  %0:f32.element = load g\n  %1:f64.group = load h\n  %2:f64.tensor = dot[tensor] %0 %1 "
          "-> r0\n",
     "body x step: %2: operands are f32 and f64"},
    /* stores */
    {BODY "  %0:f32.element = load g\n  store g %0\n",
     "body x step: store g: a slot of this kind is not stored"},
    {BODY "  %0:f64.group = load h\n  store h %0\n",
     "body x step: store h: a slot of this kind is not stored"},
    {BODY "  %0:f32.element = load g\n  store p %0\n  store p %0\n",
     "body x step: store p: a second store"},
    {BODY "  %0:f64.group = load h\n  store p %0\n", "body x step: store p: a value of f64"},
    {BODY "  %0:bool.global = const true\n  store W %0\n", "body x step: store W: a value of bool"},
    {BODY "  %0:f64.tensor = load t\n  store w %0\n",
     "body x step: store w: a value of rate tensor"},
    {BODY "  %0:f32.element = load g\n  %1:bool.element = finite %0\n  store p %0 if %1\n",
     "body x step: store p: the guard is not a bool of tensor rate or coarser"},
    {BODY "  %0:f64.tensor = load t\n  %1:bool.tensor = finite %0\n  %2:f64.group = load h\n  "
          "store w %2 if %1\n",
     "body x step: store w: the guard is not a bool of group rate or coarser"},
    {BODY "  %0:f32.element = load g\n  %1:f64.group = load h\n  store p %0 if %1\n",
     "body x step: store p: the guard is not a bool of tensor rate or coarser"},
    /* views, draws, select, several bodies */
    {VIEWS "body x step\n  %0:f32.row = load R\n",
     "body x step: %0: a row value in a body of view flat"},
    {VIEWS "body x step view block\n  %0:f32.row = load R\n",
     "body x step: %0: a row value in a body of view block"},
    {VIEWS "body x step view matrix\n  %0:f32.block = load B\n",
     "body x step: %0: a block value in a body of view matrix"},
    {VIEWS "body x step\n  %0:f32.global = const 1\n  store R %0\n",
     "body x step: store R: a row value in a body of view flat"},
    {VIEWS "body x step view first\n  %0:f32.element = load g\n  %1:f64.row = sum[row] %0 -> r4\n"
           "  %2:f64.element = mul %1 %0\n",
     "body x step: %2: operands are f32 and f64"},
    {VIEWS "body x step view first\n  %0:f32.row = load R\n  %1:bool.row = finite %0\n"
           "  %2:f64.tensor = load numel\n  %3:f64.row = select %1 %2 %2\n",
     "body x step: %3: f64 scalars meet rows without round"},
    {VIEWS "body x step view first\n  %0:f32.element = load g\n  %1:f64.row = sum[row] %0 -> r4\n"
           "  store R %1\n",
     "body x step: store R: a value of f64"},
    {VIEWS "body x step view first\n  %0:f32.row = load R\n  %1:f64.row = sum[row] %0 -> r4\n",
     "body x step: %1: of a row value to row: nothing to reduce within this scope"},
    {VIEWS "body x step view first\n  %0:f32.row = load R\n  %1:bool.row = finite %0\n"
           "  store R %0 if %1\n",
     "body x step: store R: the guard is not a bool of tensor rate or coarser"},
    {VIEWS "body x step\n  %0:f64.tensor = load numel\n  %1:f32.element = normal %0 %0 site 1\n",
     "body x step: %1: operands are not draw_lo and draw_hi"},
    {VIEWS "body x step\n  %0:f64.tensor = load draw_lo\n  %1:f64.tensor = load draw_hi\n"
           "  %2:f64.element = normal %0 %1 site 1\n",
     "body x step: %2: gives f32, not f64"},
    {VIEWS "body x step\n  %0:f64.global = const 0\n  store arm %0\n",
     "body x step: store arm: a slot of this kind is not stored here"},
    {VIEWS "body x step\n  %0:f64.global = const 0\n  store in %0\n",
     "body x step: store in: a slot of this kind is not stored"},
    {VIEWS "select x\n  %0:f64.tensor = load draw_lo\n",
     "select x: %0: slot draw_lo is not known before the step"},
    {VIEWS "select x\n  %0:f64.global = load in\n",
     "select x: %0: slot in is not known before the step"},
    {VIEWS "select x\n  %0:f64.tensor = load numel\n  %1:f64.tensor = sum[tensor] %0 -> r5\n",
     "select x: %1: select is made of constants, properties and map ops"},
    {VIEWS "select x\n  %0:f32.global = const 0\n  store R %0\n",
     "select x: store R: a slot of this kind is not stored here"},
    {VIEWS "select x\n  %0:f64.tensor = load numel\n  %1:bool.tensor = finite %0\n"
           "  store arm %0 if %1\n",
     "select x: store arm: stores of select have no guard"},
    {VIEWS "select x\n  %0:bool.global = const true\n  noskip %0\n",
     "select x: select skips nothing"},
    {VIEWS "body x step\nbody x step\n", "module: several bodies, and no select that stores which"},
    {VIEWS "body x step view block\n",
     "module: a body of view block, and no select that stores their size"},
    {VIEWS "body x step\nbody x eval\n", "body x eval (1): bodies of one module have one entry"},
    {VIEWS "select x\n  %0:f64.global = const 0\n  store arm %0\n"
           "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r6\n"
           "body x step\n  %0:f32.element = load g\n  %1:f64.global = sumsq[all] %0 -> r6\n",
     "slot r6: bodies feed it with different reductions"},
    {VIEWS "select x\n  %0:f64.global = const 0\n  store arm %0\n"
           "body x step\n  %0:f32.element = load g\n  %1:f64.global = sum[all] %0 -> r6\n"
           "body x step\n  %0:f64.tensor = load numel\n  %1:f64.global = sum[all] %0 -> r6\n",
     "slot r6: bodies feed it with different reductions"},
    {VIEWS "select x\n  %0:f64.global = const 0\n  store arm %0\n"
           "body x step\n  %0:f64.tensor = load numel\n  %1:f64.global = sum[all] %0 -> r6\n"
           "  %2:f64.tensor = mul %1 %0\n  %3:f64.global = sum[all] %2 -> r7\n"
           "body x step\n  %0:f64.tensor = load numel\n  %1:f64.global = sum[all] %0 -> r7\n"
           "  %2:f64.tensor = mul %1 %0\n  %3:f64.global = sum[all] %2 -> r6\n",
     "module: results of several bodies wait for each other"},
    {VIEWS "slot W state f64.global = 0\nselect x\n  %0:f64.global = const 0\n  store arm %0\n"
           "body x step\nbody x step\n  %0:f64.global = load W\n  store W %0\n",
     "slot W: some bodies store it, some do not"},
    {VIEWS "slot w state f64.group = 0\nselect x\n  %0:f64.global = const 0\n  store arm %0\n"
           "body x step\n  %0:f64.group = load w\n  store w %0\nbody x step\n",
     "slot w: some bodies store it, some do not"},
    {HEAD32 PG, "module: no body"},
    {BODY "  %0:f64.global = load W\n  noskip %0\n", "body x step: noskip is not bool.global"},
    {BODY "  %0:f32.element = load g\n  %1:f64.global = load W\n  %2:bool.global = finite %1\n  "
          "noskip %2\n  store p %0\n",
     "body x step: store p: the guard lacks noskip"},
    {BODY "  %0:f32.element = load g\n  %1:f64.global = load W\n  %2:bool.global = finite %1\n  "
          "%3:bool.global = or %2 %2\n"
          "  noskip %2\n  store p %0 if %3\n",
     "body x step: store p: the guard lacks noskip"},
};

static void check_broken(void)
{
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        Arena a = {0};
        StrBuf why = {.arena = &a};
        IrModule *m = ir_parse_unverified(&a, broken[i].text, &why);
        REQUIRE(m, "row %zu does not parse: %s", i, why.text);
        bool ok = ir_verify(m, &why);
        CHECK(!ok && why.text && strcmp(why.text, broken[i].why) == 0,
              "row %zu: got '%s', want '%s'", i, why.text ? why.text : "ok", broken[i].why);
        CHECK(!ir_parse(&a, broken[i].text, &(StrBuf){.arena = &a}), "row %zu: ir_parse took it",
              i);
        CHECK(!ir_run_passes(&a, m, NULL, NULL, NULL), "row %zu: passes took it", i);
        arena_free(&a);
    }
}

/* What no text can say. */
static void check_damaged_memory(void)
{
    for (int kind = 0; kind < 12; kind++) {
        Arena a = {0};
        IrModule *m = small_module(&a, false);
        uint32_t h = add_hyper(m, "h", 1);
        IrBuilder b;
        ir_builder_init(&b, m, ir_body_new(m, "x", "step"));
        IrRef g = ir_load(&b, 1), u = ir_op(&b, OP_MUL, ir_load(&b, h), g, IR_NONE);
        ir_store(&b, 0, u, IR_NONE);
        IrBody *body = m->bodies;
        StrBuf good = {.arena = &a}, why = {.arena = &a};
        CHECK(ir_verify(m, &good), "%s", good.text);
        switch (kind) {
        case 0: body->ins[u].op = IR_OP_END; break;
        case 1: body->ins[u].arg[0] = u; break;
        case 2: body->ins[u].arg[1] = IR_NONE; break;
        case 3: body->ins[u].arg[2] = g; break;
        case 4: body->ins[g].lit.slot = m->nslots; break;
        case 5: body->stores[0].slot = m->nslots; break;
        case 6: body->stores[0].value = body->n; break;
        case 7: body->stores[0].guard = body->n; break;
        case 8: m->slots[h].index++; break;
        case 9: m->nelem++; break;
        case 10: m->slots[h].name = "two words"; break;
        case 11: body->noskip = body->n; break;
        }
        CHECK(!ir_verify(m, &why) && why.len > 0, "damage %d was not seen", kind);
        arena_free(&a);
    }
}

static void check_good(void)
{
    static const char *const good[] = {
        /* noskip anywhere in a chain of ands; exports and the verdict need none */
        BODY
        "  %0:f32.element = load g\n  %1:f64.global = load W\n  %2:bool.global = finite %1\n"
        "  %3:f64.tensor = load t\n  %4:bool.tensor = finite %3\n  %5:bool.tensor = and %4 %2\n"
        "  %6:bool.tensor = and %5 %4\n  %7:bool.global = not %2\n  noskip %2\n"
        "  store p %0 if %6\n  store skip %7\n  store e %2\n  store W %1 if %2\n",
        /* a reduction of tensor values, one of a scalar over elements, a count, a guarded any */
        BODY
        "  %0:f64.tensor = load t\n  %1:f64.global = sum[all] %0 -> r1\n  %2:f64.tensor = "
        "sum[tensor] %1 -> r0\n"
        "  %3:f32.element = load g\n  %4:bool.element = finite %3\n  %5:bool.tensor = finite %0\n"
        "  %6:bool.global = any[all] %4 -> r2 if %5\n",
        /* shared results in either order, what finishes a row's sum in f64, a row meets a column */
        VIEWS
        "slot C state f32.col = 0\n"
        "select x\n  %0:f64.tensor = load numel\n  store arm %0\n  store block %0\n"
        "body x step view matrix\n  %0:f32.element = load g\n"
        "  %1:f64.global = sum[all] %0 -> r6\n  %2:f64.row = sum[row] %0 -> r4\n"
        "  %3:f64.row = div %2 %1\n  %4:f32.row = round %3\n  %5:f32.col = load C\n"
        "  %6:f32.element = mul %4 %5\n  %7:f64.global = sum[all] %5 -> r7\n  store p %6\n"
        "body x step view block\n  %0:f32.block = load B\n  %1:f64.global = sum[all] %0 -> r7\n"
        "  %2:f64.global = sum[all] %0 -> r6\n  %3:f32.global = const 1\n  store B %3\n",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        Arena a = {0};
        must_parse(&a, good[i]);
        arena_free(&a);
    }
}

int main(void)
{
    check_good();
    check_broken();
    check_damaged_memory();
    return check_done();
}
