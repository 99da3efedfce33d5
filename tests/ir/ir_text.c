/* The text form: printed, read back, printed again; and everything that it refuses. */
#include "ir_test.h"

static const char lamb[] =
#include "lamb.inc"
    ;

/* Each row: a text, and where and why it is refused. */
static const struct {
    const char *text, *why;
} refused[] = {
    {"", "1:1: expected 'dsopt-ir', found end of text"},
    {"dsopt-ir 2\n", "1:10: expected '1', found '2'"},
    {"dsopt-ir 1 x\n", "1:12: expected end of line, found 'x'"},
    {"dsopt-ir 1\nmodul a\n", "2:1: expected 'module', found 'modul'"},
    {"dsopt-ir 1\nmodule a compute f16\n", "2:18: expected 'f32', found 'f16'"},
    {"dsopt-ir 1\nmodule a compute f32\nslot p thing f32.element\n",
     "3:8: unknown kind of slot 'thing'"},
    {"dsopt-ir 1\nmodule a compute f32\nslot p param f33.element\n",
     "3:14: expected a type such as f32.element, found 'f33.element'"},
    {"dsopt-ir 1\nmodule a compute f32\nslot p param f32.elements\n",
     "3:18: unknown rate 'elements'"},
    {"dsopt-ir 1\nmodule a compute f32\nslot p:2 param f32.element\n",
     "3:6: slot 'p' is the first: no number 2"},
    {"dsopt-ir 1\nmodule a compute f32\nslot p param f32.element\nslot p grad f32.element\n",
     "4:6: slot 'p' number 2 must be labelled so"},
    {"dsopt-ir 1\nmodule a compute f32\nslot p param f32.element = 1\n",
     "3:29: a slot of kind param has no value"},
    {"dsopt-ir 1\nmodule a compute f32\nslot m state f32.element\n",
     "3:25: expected '=' and the initial value, found end of line"},
    {"dsopt-ir 1\nmodule a compute f32\nslot m state f32.element \"a\\q\" = 0\n",
     "3:26: a path in quotes that does not end, is too long, or has an unknown escape"},
    {"dsopt-ir 1\nmodule a compute f32\nslot h hyper f64.group = 1 in 0, 1]\n",
     "3:31: expected '(' or '[', found '0,'"},
    {"dsopt-ir 1\nmodule a compute f32\nslot h hyper f64.group = 1e999 in [0, 1]\n",
     "3:26: the number is not a value of f64"},
    {"dsopt-ir 1\nmodule a compute f32\nslot h hyper f64.group = 0x1.00000000000001p0 in [0, 1]\n",
     "3:26: a hexadecimal number has 1 to 14 digits here"},
    {"dsopt-ir 1\nmodule a compute f32\nslot h hyper f64.group = 0x1.8p-1074 in [0, 1]\n",
     "3:26: the number is not a value of f64"},
    {"dsopt-ir 1\nmodule a compute f32\nload\n", "3:1: expected 'slot', found 'load'"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %1:f64.global = const 0\n",
     "4:4: the next value is %0"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:f64.global = const\n",
     "4:24: expected a number, found end of line"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:bool.global = const 1\n",
     "4:26: expected true or false, found '1'"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:f64.global = frob %0\n",
     "4:19: unknown instruction 'frob'"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:f64.global = neg %0\n",
     "4:23: %0 is not defined above"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:f64.global = load q\n",
     "4:24: no slot 'q'"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:f64.global = const 1\n  store q %0\n",
     "5:9: no slot 'q'"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:bool.global = const true\n  noskip %0\n  "
     "noskip %0\n",
     "6:3: noskip stands once, before the stores"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:bool.global = const true\n  noskip %0\n"
     "  %1:bool.global = const false\n",
     "6:3: an instruction after noskip or a store"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %0:f64.global = const 1\n  %1:f64.tensor = "
     "sum[world] %0 -> r\n",
     "5:29: unknown scope 'world'"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  %4294967296:f64.global = const 1\n",
     "4:4: number too large"},
    {"dsopt-ir 1\nmodule a compute f32\nbody a step\n  \x01\n",
     "4:3: expected an instruction, noskip, store or body, found byte 0x01"},
};

static void check_refusals(void)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Arena a = {0};
        StrBuf why = {.arena = &a};
        IrModule *m = ir_parse(&a, refused[i].text, &why);
        CHECK(!m, "accepted: %s", refused[i].text);
        CHECK(why.text && strcmp(why.text, refused[i].why) == 0, "got '%s', want '%s'", why.text,
              refused[i].why);
        arena_free(&a);
    }
}

/* Every cut of a good text, and every byte of it replaced: an error or a module, never a crash. */
static void check_damaged(void)
{
    size_t n = strlen(lamb), accepted = 0;
    char *copy = malloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        for (int kind = 0; kind < 4; kind++) {
            static const char replacement[] = {0, '%', '9', (char)0xff};
            Arena a = {0};
            StrBuf why = {.arena = &a};
            memcpy(copy, lamb, n + 1);
            copy[i] = replacement[kind];
            IrModule *m = ir_parse(&a, copy, &why);
            if (m) {
                accepted++;
                CHECK(ir_run_passes(&a, m, NULL, NULL, &why), "byte %zu: %s", i, why.text);
            } else {
                CHECK(why.len > 0, "byte %zu: no message", i);
            }
            arena_free(&a);
        }
    }
    CHECK(accepted > 0, "none of the damaged texts was still a module");
    free(copy);
}

static void check_numbers(void)
{
    static const double values[] = {0,           -0.0,     1,         -3,
                                    0.1,         1e300,    0x1p-1074, -0x1.fffffffffffffp+1023,
                                    0x1.8p-1023, INFINITY, -INFINITY, NAN,
                                    123456789,   1e9,      1e15,      0x1.000002p-3,
                                    1 / 3.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        Arena a = {0};
        IrModule *m = small_module(&a, false);
        IrBuilder b;
        ir_builder_init(&b, m, ir_body_new(m, "test", "step"));
        ir_const(&b, values[i]);
        ir_round(&b, ir_const(&b, values[i]));
        char *text = print_module(&a, m);
        IrModule *back = must_parse(&a, text);
        double got = back->bodies[0].ins[0].lit.num;
        CHECK(memcmp(&got, &values[i], 8) == 0 || (got != got && values[i] != values[i]),
              "%a became %a", values[i], got);
        CHECK_TEXT(print_module(&a, back), text);
        arena_free(&a);
    }
}

static void check_identity(void)
{
    Arena a = {0};
    IrModule *m = must_parse(&a, lamb);
    CHECK_TEXT(print_module(&a, m), lamb);

    /* Everything that a slot can say, and lines as people write them. */
    IrModule *odd =
        must_parse(&a, "# comment\n\ndsopt-ir 1 # version\r\n\tmodule  odd compute f64 shared 3\r\n"
                       "slot p param f64.element\nslot g grad f64.element\n"
                       "slot b[0] hyper f64.group \"odd.b[0]\" = 0.5 in [0, inf]\n"
                       "slot x hyper f64.global \"a\\\"\\\\\\x07b\" derived in (-inf, 1e-3)\n"
                       "slot x:2 hyper f64.group in [0x1p0, 0x1.8P+3]\n"
                       "slot w state f64.group as f32 = nan\n"
                       "slot ok export bool.tensor\n"
                       "slot draw_lo prop f64.tensor\nslot draw_hi prop f64.tensor\n"
                       "slot name_like prop f64.tensor \"^\\\"a\\\\.[0-9]+\\x07|\\x2f$\"\n"
                       "slot name_is prop f64.tensor \"\"\n"
                       "slot name_like:2 prop f64.tensor\n"
                       "slot scale input f64.global \"odd.scale\"\n"
                       "slot R state f64.row \"odd.R\" = 1\nslot r result f64.matrix\n"
                       "slot rows prop f64.tensor\nslot arm arm f64.tensor\n"
                       "slot block block f64.tensor\n"
                       "select odd # which\n  %0:f64.global = const 1\n"
                       "  store arm %0\n  store block %0\n"
                       "body odd step view  matrix # first\n  %0:f64.group = load x:2\n"
                       "  %1:f64.tensor = load draw_lo\n  %2:f64.tensor = load draw_hi\n"
                       "  %3:f64.element = normal %1 %2 site 7\n"
                       "  %4:f64.row = load R\n  %5:f64.matrix = sum[matrix] %4 -> r\n\n"
                       "body odd step view block\n");
    static const char want[] =
        "dsopt-ir 1\nmodule odd compute f64 shared 3\n\n"
        "slot p param f64.element\nslot g grad f64.element\n"
        "slot b[0] hyper f64.group \"odd.b[0]\" = 0x1p-1 in [0, inf]\n"
        "slot x hyper f64.global \"a\\\"\\\\\\x07b\" derived in (-inf, 0x1.0624dd2f1a9fcp-10)\n"
        "slot x:2 hyper f64.group in [1, 12]\n"
        "slot w state f64.group as f32 = nan\n"
        "slot ok export bool.tensor\n"
        "slot draw_lo prop f64.tensor\nslot draw_hi prop f64.tensor\n"
        "slot name_like prop f64.tensor \"^\\\"a\\\\.[0-9]+\\x07|/$\"\n"
        "slot name_is prop f64.tensor\nslot name_like:2 prop f64.tensor\n"
        "slot scale input f64.global \"odd.scale\"\n"
        "slot R state f64.row \"odd.R\" = 1\nslot r result f64.matrix\n"
        "slot rows prop f64.tensor\nslot arm arm f64.tensor\n"
        "slot block block f64.tensor\n"
        "\nselect odd\n  %0:f64.global = const 1\n"
        "  store arm %0\n  store block %0\n"
        "\nbody odd step view matrix\n  %0:f64.group = load x:2\n"
        "  %1:f64.tensor = load draw_lo\n  %2:f64.tensor = load draw_hi\n"
        "  %3:f64.element = normal %1 %2 site 7\n"
        "  %4:f64.row = load R\n  %5:f64.matrix = sum[matrix] %4 -> r\n"
        "\nbody odd step view block\n";
    CHECK_TEXT(print_module(&a, odd), want);
    CHECK_TEXT(print_module(&a, must_parse(&a, want)), want);
    arena_free(&a);
}

static void check_limits(void)
{
    Arena a = {0};
    StrBuf text = {.arena = &a}, why = {.arena = &a};
    sb_puts(&text, "dsopt-ir 1\nmodule a compute f32\n");
    for (int i = 0; i <= IR_MAX_SLOTS; i++) sb_printf(&text, "slot x%d prop f64.tensor\n", i);
    CHECK(!ir_parse(&a, text.text, &why) && strstr(why.text, "more than 4096 slots"), "%s",
          why.text);

    StrBuf bodies = {.arena = &a}, why2 = {.arena = &a};
    sb_puts(
        &bodies,
        "dsopt-ir 1\nmodule a compute f32\nslot p param f32.element\nslot g grad f32.element\n");
    for (int i = 0; i <= IR_MAX_BODIES; i++) sb_printf(&bodies, "body b%d step\n", i);
    CHECK(!ir_parse(&a, bodies.text, &why2) && strstr(why2.text, "more than 64 bodies"), "%s",
          why2.text);

    StrBuf name = {.arena = &a}, why3 = {.arena = &a};
    sb_puts(&name, "dsopt-ir 1\nmodule ");
    for (int i = 0; i < 256; i++) sb_puts(&name, "n");
    sb_puts(&name, " compute f32\n");
    CHECK(!ir_parse(&a, name.text, &why3) &&
              strstr(why3.text, "a name of 256 bytes; 255 is the limit"),
          "%s", why3.text);

    /* A long chain of guards and operands must not recurse. */
    StrBuf chain = {.arena = &a}, why4 = {.arena = &a};
    sb_puts(&chain,
            "dsopt-ir 1\nmodule a compute f32\nslot p param f32.element\nslot g grad f32.element\n"
            "slot h hyper f64.global = 1 in (-inf, inf)\nbody b step\n"
            "  %0:f64.global = load h\n  %1:bool.global = finite %0\n");
    for (int i = 2; i < 100000; i++)
        sb_printf(&chain, "  %%%d:bool.global = and %%%d %%1\n", i, i - 1);
    sb_puts(&chain, "  %100000:f32.element = load g\n  noskip %1\n  store p %100000 if %99999\n");
    IrModule *m = ir_parse(&a, chain.text, &why4);
    REQUIRE(m, "%s", why4.text);
    m = ir_run_passes(&a, m, NULL, NULL, &why4);
    REQUIRE(m, "%s", why4.text);
    CHECK(m->bodies[0].n == 3, "%u instructions left", m->bodies[0].n);
    arena_free(&a);
}

int main(void)
{
    check_identity();
    check_numbers();
    check_refusals();
    check_limits();
    check_damaged();
    return check_done();
}
