/* The builder: what it infers, rounds, folds and shares, and that every fold holds for all kinds of
 * inputs. */
#include "ir_test.h"
#include "codegen/fn.h"

/* p, g, t, s, then lr and wd (group), m (element), k (tensor state). */
typedef struct Fixture {
    Arena a;
    IrModule *m;
    IrBuilder b;
    IrRef p, g, lr, wd, k;
} Fixture;

static void setup(Fixture *f, bool f64)
{
    *f = (Fixture){0};
    f->m = small_module(&f->a, f64);
    uint32_t lr = add_hyper(f->m, "lr", 0.1), wd = add_hyper(f->m, "wd", 0.01);
    add_state(f->m, "m", RATE_ELEMENT, 0);
    uint32_t k = add_state(f->m, "k", RATE_TENSOR, 0);
    ir_builder_init(&f->b, f->m, ir_body_new(f->m, "test", "step"));
    f->p = ir_load(&f->b, 0);
    f->g = ir_load(&f->b, 1);
    f->lr = ir_load(&f->b, lr);
    f->wd = ir_load(&f->b, wd);
    f->k = ir_load(&f->b, k);
}

static IrRef op1(Fixture *f, Op op, IrRef x)
{
    return ir_op(&f->b, op, x, IR_NONE, IR_NONE);
}
static IrRef op2(Fixture *f, Op op, IrRef x, IrRef y)
{
    return ir_op(&f->b, op, x, y, IR_NONE);
}
static IrRef op3(Fixture *f, Op op, IrRef x, IrRef y, IrRef z)
{
    return ir_op(&f->b, op, x, y, z);
}
static const Ins *at(Fixture *f, IrRef r)
{
    return &f->b.b->ins[r];
}

/* The instructions after the five loads, as text. */
static char *rest(Fixture *f)
{
    StrBuf why = {.arena = &f->a};
    CHECK(ir_verify(f->m, &why), "%s", why.text);
    char *text = strstr(print_module(&f->a, f->m), "  %4:");
    return strchr(text, '\n') + 1;
}

static void check_types(void)
{
    Fixture f;
    setup(&f, false);
    op2(&f, OP_MUL, f.lr, f.g);  /* rounds lr once */
    op2(&f, OP_ADD, f.p, f.lr);  /* and shares it */
    op2(&f, OP_MUL, f.lr, f.wd); /* stays f64.group */
    op2(&f, OP_ADD, f.k, f.wd);  /* group joins tensor */
    IrRef c = op2(&f, OP_GT, f.g, ir_const(&f.b, 0));
    op3(&f, OP_SELECT, c, f.lr, ir_const(&f.b, 0.1));
    op3(&f, OP_SELECT, op2(&f, OP_LT, f.lr, f.wd), f.lr, f.k); /* all scalars */
    CHECK_TEXT(rest(&f), "  %5:f32.group = round %2\n"
                         "  %6:f32.element = mul %5 %1\n"
                         "  %7:f32.element = add %0 %5\n"
                         "  %8:f64.group = mul %2 %3\n"
                         "  %9:f64.tensor = add %4 %3\n"
                         "  %10:f64.global = const 0\n"
                         "  %11:f32.global = const 0\n"
                         "  %12:bool.element = gt %1 %11\n"
                         "  %13:f64.global = const 0x1.999999999999ap-4\n"
                         "  %14:f32.global = const 0x1.99999ap-4\n"
                         "  %15:f32.element = select %12 %5 %14\n"
                         "  %16:bool.group = lt %2 %3\n"
                         "  %17:f64.tensor = select %16 %2 %4\n");
    arena_free(&f.a);

    setup(&f, true); /* no round, elements are f64 */
    op2(&f, OP_MUL, f.lr, f.g);
    ir_round(&f.b, f.lr);
    op1(&f, OP_F32, f.g);
    CHECK_TEXT(rest(&f), "  %5:f64.element = mul %2 %1\n  %6:f64.element = f32 %1\n");
    arena_free(&f.a);
}

/* Scalars that were rounded explicitly are computed in f64 and rounded to f32 again. */
static void check_rounded_scalars(void)
{
    Fixture f;
    setup(&f, false);
    IrRef r = ir_round(&f.b, f.lr);
    op2(&f, OP_MUL, r, r);
    op2(&f, OP_GT, r, f.wd);
    CHECK_TEXT(rest(&f), "  %5:f32.group = round %2\n"
                         "  %6:f64.group = f32 %2\n"
                         "  %7:f64.group = mul %6 %6\n"
                         "  %8:f64.group = f32 %7\n"
                         "  %9:f64.group = f32 %3\n"
                         "  %10:bool.group = gt %6 %9\n");
    IrRef x =
        op2(&f, OP_ADD, ir_round(&f.b, ir_const(&f.b, 0.1)), ir_round(&f.b, ir_const(&f.b, 0.2)));
    CHECK(at(&f, x)->op == IR_CONST && at(&f, x)->lit.num == (double)(0.1f + 0.2f), "0.1f + 0.2f");
    CHECK(ir_round(&f.b, op1(&f, OP_F32, f.wd)) == ir_round(&f.b, f.wd), "round of f32 is round");
    arena_free(&f.a);
}

static void check_sharing(void)
{
    Fixture f;
    setup(&f, false);
    CHECK(ir_load(&f.b, 0) == f.p, "loads are shared");
    CHECK(op2(&f, OP_MUL, f.p, f.g) == op2(&f, OP_MUL, f.g, f.p), "mul commutes");
    CHECK(op2(&f, OP_ADD, f.p, f.g) == op2(&f, OP_ADD, f.g, f.p), "add commutes");
    CHECK(op2(&f, OP_MIN, f.p, f.g) != op2(&f, OP_MIN, f.g, f.p),
          "min does not: zeros of two signs");
    CHECK(op2(&f, OP_SUB, f.p, f.g) != op2(&f, OP_SUB, f.g, f.p), "sub does not");
    CHECK(ir_const(&f.b, 0) != ir_const(&f.b, -0.0), "zeros of two signs differ");
    CHECK(ir_const(&f.b, NAN) == ir_const(&f.b, -(double)NAN), "all NaNs are alike");
    IrRef n = ir_reduce(&f.b, RED_SUMSQ, f.g, IR_NONE, IR_NONE, RATE_TENSOR);
    uint32_t slots = f.m->nslots;
    CHECK(ir_reduce(&f.b, RED_SUMSQ, f.g, IR_NONE, ir_const_bool(&f.b, true), RATE_TENSOR) == n &&
              f.m->nslots == slots,
          "equal reductions share their slot");
    CHECK(ir_reduce(&f.b, RED_SUMSQ, f.g, IR_NONE, IR_NONE, RATE_GLOBAL) != n &&
              f.m->nslots == slots + 1,
          "another scope is another reduction");
    for (int i = 0; i < 3000; i++) op2(&f, OP_ADD, f.g, ir_const(&f.b, 1.0 / (i + 3)));
    uint32_t before = f.b.b->n;
    for (int i = 0; i < 3000; i++) op2(&f, OP_ADD, f.g, ir_const(&f.b, 1.0 / (i + 3)));
    CHECK(f.b.b->n == before, "%u instructions became %u", before, f.b.b->n);
    StrBuf why = {.arena = &f.a};
    CHECK(ir_verify(f.m, &why), "%s", why.text);
    arena_free(&f.a);
}

static void check_identities(void)
{
    Fixture f;
    setup(&f, false);
    IrRef yes = ir_const_bool(&f.b, true), no = ir_const_bool(&f.b, false), one = ir_const(&f.b, 1);
    IrRef zero = ir_const(&f.b, 0), minus_zero = ir_const(&f.b, -0.0);
    IrRef c = op2(&f, OP_GT, f.g, f.p), d = op2(&f, OP_LT, f.lr, f.wd);
    CHECK(op2(&f, OP_MUL, f.g, one) == f.g && op2(&f, OP_MUL, one, f.lr) == f.lr, "x * 1");
    CHECK(op2(&f, OP_DIV, f.g, one) == f.g, "x / 1");
    CHECK(op2(&f, OP_SUB, f.g, zero) == f.g && op2(&f, OP_SUB, f.g, minus_zero) != f.g, "x - 0");
    CHECK(op2(&f, OP_ADD, f.g, zero) != f.g && op2(&f, OP_ADD, f.g, minus_zero) == f.g,
          "x + -0, not x + 0");
    CHECK(at(&f, op2(&f, OP_SUB, f.g, f.g))->op == IR_SUB, "x - x stays");
    CHECK(at(&f, op2(&f, OP_MUL, f.g, zero))->op == IR_MUL, "x * 0 stays");
    CHECK(at(&f, op2(&f, OP_DIV, f.g, f.g))->op == IR_DIV, "x / x stays");
    CHECK(at(&f, op2(&f, OP_EQ, f.g, f.g))->op == IR_EQ, "x == x stays: NaN");
    CHECK(op2(&f, OP_LT, f.g, f.g) == no && op2(&f, OP_GT, f.lr, f.lr) == no, "x < x");
    CHECK(op1(&f, OP_NEG, op1(&f, OP_NEG, f.g)) == f.g, "--x");
    CHECK(op1(&f, OP_ABS, op1(&f, OP_NEG, f.g)) == op1(&f, OP_ABS, op1(&f, OP_ABS, f.g)), "abs");
    CHECK(op1(&f, OP_F32, f.g) == f.g && op1(&f, OP_F32, f.lr) != f.lr, "f32 of f32");
    CHECK(op1(&f, OP_NOT, op1(&f, OP_NOT, c)) == c, "not not");
    CHECK(at(&f, op1(&f, OP_NOT, op2(&f, OP_EQ, f.g, f.p)))->op == IR_NE, "not ==");
    CHECK(at(&f, op1(&f, OP_NOT, op2(&f, OP_LT, f.g, f.p)))->op == IR_NOT, "not < is not >=: NaN");
    CHECK(op2(&f, OP_AND, c, yes) == c && op2(&f, OP_AND, no, c) == no, "and");
    CHECK(op2(&f, OP_OR, c, yes) == yes && op2(&f, OP_OR, no, c) == c && op2(&f, OP_OR, c, c) == c,
          "or");
    CHECK(op3(&f, OP_SELECT, yes, f.g, f.lr) == f.g && op3(&f, OP_SELECT, no, f.g, f.lr) == f.lr,
          "select const");
    CHECK(op3(&f, OP_SELECT, c, f.lr, f.lr) == f.lr, "select of equals keeps its precision");
    CHECK(op3(&f, OP_SELECT, op1(&f, OP_NOT, c), f.g, f.p) == op3(&f, OP_SELECT, c, f.p, f.g),
          "select not");
    CHECK(at(&f, op3(&f, OP_SELECT, d, c, op2(&f, OP_EQ, f.g, f.p)))->op == IR_OR,
          "select of bools");
    CHECK(op2(&f, OP_MIN, f.g, f.g) == f.g && op2(&f, OP_MAX, f.lr, f.lr) == f.lr, "min x x");
    CHECK(op2(&f, OP_POW, f.g, ir_const(&f.b, 2)) == op2(&f, OP_MUL, f.g, f.g), "pow x 2");
    CHECK(at(&f, op2(&f, OP_POW, f.g, ir_const(&f.b, -1)))->op == IR_DIV, "pow x -1");
    CHECK(op2(&f, OP_POW, f.g, one) == f.g && op2(&f, OP_POW, f.k, zero) == one,
          "pow x 1, pow x 0");
    CHECK(at(&f, op2(&f, OP_POW, f.g, ir_const(&f.b, 0.5)))->op == IR_POW, "pow x 0.5 stays");
    uint32_t before = f.m->nslots;
    IrRef empty = ir_reduce(&f.b, RED_RMAX, f.g, IR_NONE, no, RATE_TENSOR);
    CHECK(at(&f, empty)->op == IR_CONST && at(&f, empty)->lit.num == -INFINITY &&
              f.m->nslots == before,
          "a reduction over nothing");
    StrBuf why = {.arena = &f.a};
    CHECK(ir_verify(f.m, &why), "%s", why.text);
    arena_free(&f.a);
}

static bool same_f32(float x, float y)
{
    return memcmp(&x, &y, 4) == 0 || (x != x && y != y);
}
static bool same_f64(double x, double y)
{
    return memcmp(&x, &y, 8) == 0 || (x != x && y != y);
}

/* The algebra behind the folds, on every 16-bit pattern as the head of an f32 and on f64s like
 * them. */
static void check_algebra(void)
{
    for (uint32_t h = 0; h < 65536; h++) {
        uint32_t bits = h << 16 | (h * 40503u & 0xffff);
        float x;
        memcpy(&x, &bits, 4);
        double d = (double)x * 1.0000001;
        bool ok = same_f32(x * 1, x) && same_f32(x / 1, x) && same_f32(x - 0.0f, x) &&
                  same_f32(x + -0.0f, x);
        ok = ok && same_f32(ds_powf(x, 2), x * x) && same_f32(ds_powf(x, -1), 1 / x) &&
             same_f32(ds_powf(x, 1), x);
        ok = ok && ds_powf(x, 0) == 1 && ds_powc(d, 0) == 1 && ds_powc(d, -0.0) == 1;
        ok = ok && same_f64(ds_powc(d, 2), d * d) && same_f64(ds_powc(d, -1), 1 / d) &&
             same_f64(ds_powc(d, 1), d);
        CHECK(ok, "at %a", (double)x);
    }
}

/* Constants go through the op table in the type they have, to infinities and NaN. */
static void check_folding(void)
{
    Fixture f;
    setup(&f, false);
    struct {
        Op op;
        double a, b, want;
    } rows[] = {
        {OP_ADD, 0.1, 0.2, 0.1 + 0.2},
        {OP_SUB, 1, 0.999, 1 - 0.999},
        {OP_DIV, 1, 0, INFINITY},
        {OP_DIV, 0, 0, NAN},
        {OP_MUL, 1e300, 1e300, INFINITY},
        {OP_MOD, -1, 3, 2},
        {OP_POW, 2, 10, 1024},
        {OP_POW, 0.9, -2, 1 / (0.9 * 0.9)},
        {OP_MIN, NAN, 1, NAN},
        {OP_MAX, 1, NAN, NAN},
        {OP_MIN, 0, -0.0, -0.0},
        {OP_MAX, -0.0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        IrRef r = op2(&f, rows[i].op, ir_const(&f.b, rows[i].a), ir_const(&f.b, rows[i].b));
        const Ins *c = at(&f, r);
        CHECK(c->op == IR_CONST && c->dtype == DT_F64 && same_f64(c->lit.num, rows[i].want),
              "row %zu: %a", i, c->lit.num);
    }
    CHECK(at(&f, op1(&f, OP_SIGN, ir_const(&f.b, -0.0)))->lit.num == 0, "sign(-0)");
    CHECK(at(&f, op1(&f, OP_FINITE, ir_const(&f.b, INFINITY)))->lit.num == 0, "finite(inf)");
    CHECK(at(&f, op1(&f, OP_SQRT, ir_const(&f.b, 2)))->lit.num == sqrt(2), "sqrt(2)");
    CHECK(at(&f, op1(&f, OP_F32, ir_const(&f.b, 0.1)))->lit.num == (double)0.1f, "f32(0.1)");
    IrRef lt = op2(&f, OP_LT, ir_const(&f.b, NAN), ir_const(&f.b, 1));
    CHECK(lt == ir_const_bool(&f.b, false), "NaN < 1");
    CHECK(same_f64(ir_eval(OP_ADD, false, (double)0.1f, (double)0.2f, 0), (double)(0.1f + 0.2f)),
          "f32 add");
    CHECK(ir_eval(OP_FMA, true, 0x1.0000001p0, 0x1.0000001p0, -1) ==
              fma(0x1.0000001p0, 0x1.0000001p0, -1),
          "fma");
    CHECK(ir_eval(OP_AND, true, 1, 0, 0) == 0 && ir_eval(OP_OR, false, 1, 0, 0) == 1 &&
              ir_eval(OP_NOT, true, 0, 0, 0) == 1,
          "logic");
    CHECK(ir_eval(OP_SELECT, false, 0, 1, (double)0.3f) == (double)0.3f, "select");
    arena_free(&f.a);
}

static void check_stores(void)
{
    Fixture f;
    setup(&f, false);
    uint32_t m = (uint32_t)ir_slot_find(f.m, SLOT_STATE, "m"),
             k = (uint32_t)ir_slot_find(f.m, SLOT_STATE, "k");
    IrRef when = op2(&f, OP_GT, f.lr, f.wd);
    ir_store(&f.b, m, f.lr, when);
    ir_store(&f.b, k, ir_round(&f.b, f.lr), ir_const_bool(&f.b, true));
    ir_store(&f.b, 0, f.g, ir_const_bool(&f.b, false)); /* never */
    CHECK_TEXT(rest(&f), "  %5:bool.group = gt %2 %3\n"
                         "  %6:f32.group = round %2\n"
                         "  %7:bool.global = const true\n"
                         "  %8:f64.group = f32 %2\n"
                         "  %9:bool.global = const false\n"
                         "  store m %6 if %5\n"
                         "  store k %8\n");
    arena_free(&f.a);
}

/* What folded to a scalar and is spread out again has its rate, whatever it is. */
static void check_spread(void)
{
    Fixture f;
    setup(&f, false);
    IrRef values[] = {f.lr,
                      ir_const(&f.b, 0),
                      ir_const(&f.b, 3),
                      ir_const_bool(&f.b, false),
                      ir_const_bool(&f.b, true),
                      op2(&f, OP_GT, f.lr, f.wd),
                      ir_round(&f.b, f.wd)};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        bool truth = at(&f, values[i])->dtype == DT_BOOL;
        IrRef each = ir_spread(&f.b, values[i], RATE_ELEMENT),
              per_tensor = ir_spread(&f.b, values[i], RATE_TENSOR);
        CHECK(at(&f, each)->rate == RATE_ELEMENT &&
                  at(&f, each)->dtype == (truth ? DT_BOOL : DT_F32),
              "element, %zu", i);
        CHECK(at(&f, per_tensor)->rate == RATE_TENSOR &&
                  at(&f, per_tensor)->dtype == (truth ? DT_BOOL : DT_F64),
              "tensor, %zu", i);
    }
    CHECK(ir_spread(&f.b, f.g, RATE_ELEMENT) == f.g && ir_spread(&f.b, f.k, RATE_TENSOR) == f.k,
          "as it was");
    rest(&f);
    arena_free(&f.a);
}

/* Rows and columns: f64 until it meets f32, then f32. */
static void check_vectors(void)
{
    Fixture f;
    setup(&f, false);
    f.b.b->view = VIEW_MATRIX;
    uint32_t row = add_state(f.m, "R", RATE_ROW, 0), col = add_state(f.m, "C", RATE_COL, 0);
    uint32_t mat = add_state(f.m, "M", RATE_MATRIX, 0);
    CHECK(f.m->slots[row].index == 3 && f.m->slots[mat].index == 5 && f.m->nelem == 6,
          "vectors are numbered with the elements");
    IrRef sum = ir_reduce(&f.b, RED_SUM, f.g, IR_NONE, IR_NONE, RATE_ROW);
    CHECK(f.m->slots[f.m->nslots - 1].level == LEVEL_NONE &&
              f.m->slots[f.m->nslots - 1].index == IR_NONE,
          "a vector result has no place");
    IrRef r = ir_load(&f.b, row), c = ir_load(&f.b, col), m = ir_load(&f.b, mat);
    IrRef mean = op2(&f, OP_DIV, sum, f.k); /* f64.row */
    op2(&f, OP_ADD, mean, r);               /* rounded to meet f32 */
    op2(&f, OP_MUL, r, f.lr);               /* the scalar is rounded */
    op2(&f, OP_MUL, r, c);                  /* an element */
    op2(&f, OP_DIV, r, m);                  /* matrix values are f64, and rounded there */
    op2(&f, OP_MUL, m, f.k);                /* f64.matrix */
    op2(&f, OP_MUL, mean, f.g);             /* f64.row meets elements */
    IrRef large = op2(&f, OP_GT, r, f.wd);
    op3(&f, OP_SELECT, large, f.lr, f.k);                     /* scalars chosen by a row are f32 */
    op3(&f, OP_SELECT, op2(&f, OP_GT, mean, f.k), mean, f.k); /* in f64 still */
    ir_reduce(&f.b, RED_SUM, mean, IR_NONE, IR_NONE, RATE_MATRIX);
    ir_reduce(&f.b, RED_DOT, mean, r, IR_NONE, RATE_TENSOR);
    ir_store(&f.b, row, mean, IR_NONE);
    ir_store(&f.b, mat, ir_round(&f.b, m), IR_NONE);
    CHECK_TEXT(rest(&f), "  %5:f64.row = sum[row] %1 -> r0\n"
                         "  %6:f32.row = load R\n"
                         "  %7:f32.col = load C\n"
                         "  %8:f64.matrix = load M\n"
                         "  %9:f64.row = div %5 %4\n"
                         "  %10:f32.row = round %9\n"
                         "  %11:f32.row = add %10 %6\n"
                         "  %12:f32.group = round %2\n"
                         "  %13:f32.row = mul %6 %12\n"
                         "  %14:f32.element = mul %6 %7\n"
                         "  %15:f32.matrix = round %8\n"
                         "  %16:f32.row = div %6 %15\n"
                         "  %17:f64.matrix = mul %8 %4\n"
                         "  %18:f32.element = mul %10 %1\n"
                         "  %19:f32.group = round %3\n"
                         "  %20:bool.row = gt %6 %19\n"
                         "  %21:f32.tensor = round %4\n"
                         "  %22:f32.row = select %20 %12 %21\n"
                         "  %23:bool.row = gt %9 %4\n"
                         "  %24:f64.row = select %23 %9 %4\n"
                         "  %25:f64.matrix = sum[matrix] %9 -> r1\n"
                         "  %26:f64.tensor = dot[tensor] %10 %6 -> r2\n"
                         "  %27:f64.matrix = f32 %8\n"
                         "  store R %10\n"
                         "  store M %27\n");
    IrRef one = ir_spread(&f.b, ir_const(&f.b, 1), RATE_ROW);
    CHECK(at(&f, one)->rate == RATE_ROW && at(&f, one)->dtype == DT_F64, "f64 spread over rows");
    IrRef f32 = ir_spread(&f.b, ir_round(&f.b, f.lr), RATE_COL);
    CHECK(at(&f, f32)->rate == RATE_COL && at(&f, f32)->dtype == DT_F32, "f32 spread over columns");
    CHECK(at(&f, ir_spread(&f.b, large, RATE_ELEMENT))->rate == RATE_ELEMENT, "truth of rows");
    rest(&f);
    arena_free(&f.a);
}

/* The same key in two bodies is one slot; different keys are two, whatever is equal. */
static void check_keys(void)
{
    Fixture f;
    setup(&f, false);
    IrBuilder *b = &f.b;
    IrRef x = ir_reduce_keyed(b, RED_SUM, f.g, IR_NONE, IR_NONE, RATE_GLOBAL, 11);
    IrRef y = ir_reduce_keyed(b, RED_SUM, f.g, IR_NONE, IR_NONE, RATE_GLOBAL, 12);
    IrRef t = ir_reduce_keyed(b, RED_SUM, f.g, IR_NONE, IR_NONE, RATE_TENSOR, 13);
    CHECK(x != y && ir_reduce_keyed(b, RED_SUM, f.g, IR_NONE, IR_NONE, RATE_GLOBAL, 11) == x,
          "by key");
    CHECK(ir_reduce(b, RED_SUM, f.g, IR_NONE, IR_NONE, RATE_TENSOR) == t, "no key within a tensor");
    uint32_t slot_x = at(&f, x)->lit.slot, slot_y = at(&f, y)->lit.slot;
    uint32_t nslots = f.m->nslots;
    IrBuilder c;
    IrBody *second = ir_body_new(f.m, "test", "step");
    ir_builder_init(&c, f.m, second);
    IrRef p = ir_load(&c, 0);
    IrRef no = ir_const_bool(&c, false);
    IrRef z = ir_reduce_keyed(&c, RED_SUM, p, IR_NONE, IR_NONE, RATE_GLOBAL, 12);
    IrRef w = ir_reduce_keyed(&c, RED_SUM, p, IR_NONE, no, RATE_GLOBAL, 11);
    CHECK(second->ins[z].lit.slot == slot_y && second->ins[w].lit.slot == slot_x &&
              f.m->nslots == nslots,
          "slots of the first body");
    CHECK(second->ins[w].op == IR_RED + RED_SUM && second->ins[w].arg[2] != IR_NONE,
          "a guard that never holds here does not make the result a constant");
    IrRef only = ir_reduce(&c, RED_SUM, p, IR_NONE, IR_NONE, RATE_GLOBAL);
    CHECK(second->ins[only].lit.slot == f.m->nslots - 1, "what one body feeds is apart");
    uint32_t arm = ir_slot_add(f.m, (Slot){.kind = SLOT_ARM,
                                           .name = "arm",
                                           .dtype = DT_F64,
                                           .storage = DT_F64,
                                           .rate = RATE_TENSOR});
    IrBuilder s;
    ir_builder_init(&s, f.m, ir_select_new(f.m, "test"));
    ir_store(&s, arm, ir_const(&s, 0), IR_NONE);
    StrBuf why = {.arena = &f.a};
    CHECK(ir_verify(f.m, &why), "%s", why.text);
    arena_free(&f.a);
}

/* Draws are shared by site, and differ from loads of slots with its number. */
static void check_draws(void)
{
    Fixture f;
    setup(&f, true);
    Slot s = {.kind = SLOT_PROP, .dtype = DT_F64, .storage = DT_F64, .rate = RATE_TENSOR};
    s.name = "draw_lo";
    IrRef lo = ir_load(&f.b, ir_slot_add(f.m, s));
    s.name = "draw_hi";
    IrRef hi = ir_load(&f.b, ir_slot_add(f.m, s));
    IrRef one = ir_draw(&f.b, IR_NORMAL, lo, hi, 1);
    CHECK(ir_draw(&f.b, IR_NORMAL, lo, hi, 1) == one, "the same draw");
    CHECK(ir_draw(&f.b, IR_NORMAL, lo, hi, 2) != one && ir_draw(&f.b, IR_UNIFORM, lo, hi, 1) != one,
          "others");
    CHECK(at(&f, one)->rate == RATE_ELEMENT && at(&f, one)->dtype == DT_F64, "type");
    CHECK(strstr(rest(&f), "= normal %5 %6 site 1\n"), "text");
    arena_free(&f.a);
}

static void check_places(void)
{
    Fixture f;
    setup(&f, false);
    const Slot *s = f.m->slots;
    CHECK(s[0].level == LEVEL_NONE && s[0].index == 0 && s[1].index == 1 && s[6].index == 2 &&
              f.m->nelem == 3,
          "elements");
    CHECK(s[2].level == LEVEL_TENSOR && s[2].index == 0 && s[7].level == LEVEL_TENSOR &&
              s[7].index == 1,
          "tensor level");
    CHECK(s[3].level == LEVEL_GLOBAL && s[3].index == 0 && s[4].level == LEVEL_GROUP &&
              s[5].index == 1,
          "coarser levels");
    CHECK(f.m->nlevel[LEVEL_GLOBAL] == 1 && f.m->nlevel[LEVEL_GROUP] == 2 &&
              f.m->nlevel[LEVEL_CLASS] == 1 && f.m->nlevel[LEVEL_TENSOR] == 2,
          "counts");
    CHECK(ir_slot_find(f.m, SLOT_HYPER, "wd") == 5 && ir_slot_find(f.m, SLOT_STATE, "wd") == -1,
          "find");
    arena_free(&f.a);
}

int main(void)
{
    check_places();
    check_types();
    check_rounded_scalars();
    check_sharing();
    check_identities();
    check_algebra();
    check_folding();
    check_stores();
    check_spread();
    check_vectors();
    check_keys();
    check_draws();
    return check_done();
}
