/* What a step promises whatever the rule: guards, skip, storage, who takes part, reductions,
 * memory. */
#include "codegen/fn.h"
#include "interp_test.h"

#define HEAD                                                                                       \
    "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\nslot g grad f32.element\n"        \
    "slot t count f64.tensor = 0\nslot s count f64.global = 0\n"

/* Every second step: slow := slow + (p - slow)/2, p := slow. Nothing moves on the other steps. */
static void check_guards(void)
{
    static const char text[] = HEAD
        "slot slow state f32.element = 5\nslot k hyper f64.group = 2 in [1, inf)\nbody x step\n"
        "  %0:f64.global = load s\n  %1:f64.global = const 1\n  %2:f64.global = add %0 %1\n"
        "  %3:f64.group = load k\n  %4:f64.group = mod %2 %3\n  %5:f64.global = const 0\n"
        "  %6:bool.group = eq %4 %5\n  %7:f32.element = load p\n  %8:f32.element = load slow\n"
        "  %9:f32.element = sub %7 %8\n  %10:f32.global = const 0.5\n  %11:f32.element = mul %9 "
        "%10\n"
        "  %12:f32.element = add %8 %11\n"
        "  store slow %12 if %6\n  store p %12 if %6\n  store s %2\n";
    static Bound b;
    Arena a = {0};
    bind_module(&b, &a, text, 2, (int64_t[]){3, 4}, (const char *const[]){"a", "b"},
                (uint32_t[]){0, 1}, 2);
    *place(&b, "k", 1) = 3;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 3 + t; i++) set(&b, "p", t, i, 1 + i);
    float p[2] = {2, 2}, slow[2] = {5, 5};
    for (int step = 1; step <= 6; step++) {
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        for (int t = 0; t < 2; t++) {
            if (step % (2 + t) == 0) p[t] = slow[t] = slow[t] + (p[t] - slow[t]) * 0.5f;
            CHECK(get(&b, "p", t, 1) == (double)p[t] && get(&b, "slow", t, 1) == (double)slow[t],
                  "step %d tensor %d", step, t);
        }
    }
    CHECK(p[0] != 2 && p[1] != 2, "nothing moved");
    arena_free(&a);
}

/* any[all](not finite(g)) -> skip; the export says how many steps were asked for. */
static void check_skip(void)
{
    static const char text[] = HEAD
        "slot m state f32.element = 0\nslot W state f64.group = 0\nslot r0 result "
        "bool.global\nslot skip skip bool.global\n"
        "slot broken export f64.global\nbody x step\n"
        "  %0:f32.element = load g\n  %1:bool.element = finite %0\n  %2:bool.element = not %1\n"
        "  %3:bool.global = any[all] %2 -> r0\n  %4:bool.global = not %3\n"
        "  %5:f32.element = load p\n  %6:f32.element = sub %5 %0\n  %7:f32.element = load m\n"
        "  %8:f32.element = add %7 %0\n  %9:f64.tensor = load t\n  %10:f64.global = const 1\n"
        "  %11:f64.tensor = add %9 %10\n  %12:f64.global = load s\n  %13:f64.global = add %12 %10\n"
        "  %14:f64.group = load W\n  %15:f64.group = add %14 %10\n  noskip %4\n"
        "  store p %6 if %4\n  store m %8 if %4\n  store t %11 if %4\n  store s %13 if %4\n"
        "  store W %15 if %4\n  store skip %3\n  store broken %3\n";
    static Bound b;
    for (int round = 0; round < 4;
         round++) { /* finite, inf, NaN, inf in a tensor that has no gradient */
        Arena a = {0};
        bind_module(&b, &a, text, 3, (int64_t[]){5, 300, 2}, (const char *const[]){"c", "a", "b"},
                    NULL, 1);
        b.tensors[2].active = false;
        for (int t = 0; t < 3; t++) {
            b.storage[t][1] = DT_BF16;
            for (int i = 0; i < b.tensors[t].numel; i++) {
                set(&b, "p", t, i, i == 0 ? -0.0 : (double)NAN);
                set(&b, "g", t, i, 0.5);
            }
        }
        if (round)
            set(&b, "g", round == 3 ? 2 : 1, round == 3 ? 1 : 299,
                round == 2 ? (double)NAN : INFINITY);
        uint16_t before[300];
        memcpy(before, b.ptr[1][1], sizeof before);
        float p0[5];
        memcpy(p0, b.ptr[0][0], sizeof p0);
        bool skips = round == 1 || round == 2;
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        CHECK(*place(&b, "skip", 0) == skips && *place(&b, "broken", 0) == skips,
              "verdict in round %d", round);
        CHECK(*place(&b, "t", 0) == !skips && *place(&b, "s", 0) == !skips &&
                  *place(&b, "W", 0) == !skips,
              "clocks in round %d", round);
        CHECK(*place(&b, "t", 2) == 0 && get(&b, "m", 2, 0) == 0, "the inactive tensor");
        CHECK((memcmp(p0, b.ptr[0][0], sizeof p0) == 0) == skips, "p keeps its bits in round %d",
              round);
        CHECK(get(&b, "m", 1, 7) == (skips ? 0 : 0.5), "m in round %d", round);
        CHECK(memcmp(before, b.ptr[1][1], sizeof before) == 0, "g is read only");
        arena_free(&a);
    }
}

/* Stored in 16 bits, computed in f32, rounded to nearest even once; a scalar state declared f32. */
static void check_storage(void)
{
    static const char text[] = HEAD
        "slot m state f32.element = 0\nslot c state f64.group as f32 = 0\nbody x step\n"
        "  %0:f32.element = load g\n  %1:f32.element = load m\n  %2:f32.element = add %1 %0\n"
        "  %3:f32.element = load p\n  %4:f32.element = mul %3 %2\n  %5:f64.global = const 0.1\n"
        "  store m %2\n  store p %4\n  store c %5\n";
    static const DType kinds[] = {DT_F32, DT_BF16, DT_F16};
    for (int k = 0; k < 27; k++) {
        static Bound b;
        Arena a = {0};
        bind_module(&b, &a, text, 2, (int64_t[]){1000, 999}, (const char *const[]){"a", "b"}, NULL,
                    1);
        uint64_t seed = 5;
        int wrong = 0;
        for (int t = 0; t < 2; t++) {
            b.storage[t][0] = kinds[k % 3];
            b.storage[t][1] = kinds[k / 3 % 3];
            b.storage[t][2] = kinds[k / 9];
            for (int i = 0; i < 999; i++) {
                set(&b, "p", t, i, i == 4 ? 1e30 : noise(&seed));
                set(&b, "g", t, i,
                    i == 5   ? (double)NAN
                    : i == 6 ? (double)INFINITY
                             : noise(&seed) * 7);
                set(&b, "m", t, i, noise(&seed));
            }
        }
        static Bound old;
        old = b;
        for (int t = 0; t < 2; t++)
            for (int e = 0; e < 3; e++)
                old.ptr[t][e] = memcpy((char *)arena_alloc(&a, 8016) + t, b.ptr[t][e], 8000);
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        for (int t = 0; t < 2; t++) {
            for (int i = 0; i < 999; i++) {
                float m = (float)get(&old, "m", t, i) + (float)get(&old, "g", t, i);
                float p = (float)get(&old, "p", t, i) * m; /* of the m that is not rounded yet */
                set(&old, "m", t, i, (double)m);
                set(&old, "p", t, i, (double)p);
                wrong += !same_bits(get(&old, "m", t, i), get(&b, "m", t, i));
                wrong += !same_bits(get(&old, "p", t, i), get(&b, "p", t, i));
            }
        }
        CHECK(wrong == 0, "storage %d: %d values differ", k, wrong);
        CHECK(*place(&b, "c", 0) == (double)0.1f, "a scalar stored as f32");
        arena_free(&a);
    }
    uint16_t h = 0;
    elem_set(&h, DT_BF16, 0, 1 + 0x1p-8);
    CHECK(h == 0x3f80, "ties go to even: %04x", h);
    elem_set(&h, DT_BF16, 0, (double)NAN);
    CHECK(h == 0x7fc0, "one NaN: %04x", h);
    elem_set(&h, DT_F16, 0, 65520);
    CHECK(h == 0x7c00 && elem_get(&h, DT_F16, 0) == INFINITY, "f16 overflows to infinity: %04x", h);
    double d = 0;
    elem_set(&d, DT_F64, 0, 0.1);
    CHECK(elem_get(&d, DT_F64, 0) == 0.1, "f64");
}

/* Group and global state move only with a tensor of theirs; without any, nothing does. */
static void check_taking_part(void)
{
    static const char text[] =
        HEAD "slot a state f64.global = 1\nslot b state f64.group = 1\nslot c state f64.tensor = "
             "1\nbody x step\n"
             "  %0:f64.global = const 2\n  store a %0\n  store b %0\n  store c %0\n";
    static Bound b;
    for (int active = 0; active < 4; active++) {
        Arena a = {0};
        bind_module(&b, &a, text, 4, (int64_t[]){2, 2, 0, 0},
                    (const char *const[]){"a", "b", "c", "d"}, (uint32_t[]){0, 1, 0, 2}, 3);
        b.tensors[0].active = active & 1;
        b.tensors[1].active = active >> 1;
        b.tensors[3].active = true; /* empty: takes no part all the same */
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        double g0 = active & 1 ? 2 : 1, g1 = active >> 1 ? 2 : 1;
        CHECK(*place(&b, "a", 0) == (active ? 2 : 1), "global");
        CHECK(*place(&b, "b", 0) == g0 && *place(&b, "b", 1) == g1 && *place(&b, "b", 2) == 1,
              "groups");
        CHECK(*place(&b, "c", 0) == g0 && *place(&b, "c", 1) == g1 && *place(&b, "c", 2) == 1 &&
                  *place(&b, "c", 3) == 1,
              "tensors");
        arena_free(&a);
    }
}

/* All kinds of reductions: of elements, of a scalar over elements, of tensor values; guarded; dot
 * and count. */
static void check_reductions(void)
{
    static const char text[] =
        HEAD "slot k state f64.tensor = 0\nslot r0 result f64.tensor\nslot r1 result "
             "f64.global\nslot r2 result f64.global\n"
             "slot r3 result f64.tensor\nslot r4 result f64.tensor\nslot r5 result f64.global\n"
             "slot sums export f64.tensor\nslot ksum export f64.global\nslot dots export "
             "f64.global\nslot uniform export f64.tensor\n"
             "slot count export f64.tensor\nslot most export f64.global\nbody x step\n"
             "  %0:f32.element = load g\n  %1:f32.element = load p\n  %2:f64.tensor = load k\n"
             "  %3:f64.global = const 0\n  %4:bool.tensor = gt %2 %3\n  %5:f32.global = const 0\n"
             "  %6:bool.element = gt %0 %5\n  %7:f64.global = const 0.1\n"
             "  %8:f64.tensor = sum[tensor] %0 -> r0 if %4\n"
             "  %9:f64.global = dot[all] %2 %2 -> r1\n"
             "  %10:f64.global = dot[all] %0 %1 -> r2 if %4\n"
             "  %11:f64.tensor = sum[tensor] %7 -> r3\n"
             "  %12:f64.tensor = count[tensor] %6 -> r4\n"
             "  %13:f64.global = rmax[all] %8 -> r5\n"
             "  store sums %8\n  store ksum %9\n  store dots %10\n  store uniform %11\n  store "
             "count %12\n  store most %13\n";
    enum { T = 6 };
    static const int64_t numel[T] = {130, 4096, 0, 9000, 1, 64};
    static const int order[] = {3, 5, 0, 1, 4}; /* by name, empty one left out */
    static Bound b;
    Arena a = {0};
    bind_module(&b, &a, text, T, numel, (const char *const[]){"m", "n", "a", "A", "z", "b"}, NULL,
                1);
    static double g[T][9000], p[T][9000], tenth[9000];
    uint64_t seed = 3;
    for (int t = 0; t < T; t++) {
        *place(&b, "k", t) = t == 4 ? -1.5 : t + 0.1;
        for (int i = 0; i < numel[t]; i++) {
            set(&b, "g", t, i, g[t][i] = noise(&seed));
            set(&b, "p", t, i, p[t][i] = noise(&seed));
        }
    }
    for (int i = 0; i < 9000; i++) tenth[i] = 0.1;
    b.tensors[5].active = false;
    REQUIRE(interp_step(b.m, &b.x), "out of memory");
    double k[5], dots[5], sums[5], most = -INFINITY;
    unsigned char there[5], guarded[5];
    for (int r = 0; r < 5; r++) {
        int t = order[r];
        size_t n = (size_t)numel[t];
        there[r] = b.tensors[t].active;
        guarded[r] = there[r] && t != 4;
        k[r] = *place(&b, "k", t);
        dots[r] = whole(RED_DOT, g[t], p[t], n, NULL);
        sums[r] = guarded[r] ? whole(RED_SUM, g[t], g[t], n, NULL) : 0;
        if (!there[r]) continue;
        most = sums[r] > most ? sums[r] : most;
        double count = 0;
        for (size_t i = 0; i < n; i++) count += g[t][i] > 0;
        CHECK(same_bits(*place(&b, "sums", t), sums[r]), "sum of %d", t);
        CHECK(same_bits(*place(&b, "uniform", t), whole(RED_SUM, tenth, tenth, n, NULL)),
              "scalar of %d", t);
        CHECK(*place(&b, "count", t) == count, "count of %d", t);
    }
    CHECK(same_bits(*place(&b, "ksum", 0), whole(RED_DOT, k, k, 5, there)), "of tensor values");
    CHECK(same_bits(*place(&b, "dots", 0), tree(RED_SUM, dots, 5, guarded)), "dot over all");
    CHECK(*place(&b, "most", 0) == most, "largest sum");
    CHECK(*place(&b, "sums", 5) == 0, "the inactive tensor's block is left alone");
    arena_free(&a);
}

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct Meter {
    size_t now, most, calls, fail_at;
} Meter;

static void *metered(void *user, void *p, size_t n)
{
    Meter *m = user;
    size_t *head = p ? (size_t *)p - 2 : NULL;
    if (n == 0) {
        if (head) m->now -= head[0];
        free(head);
        return NULL;
    }
    if (++m->calls == m->fail_at) return NULL;
    size_t before = head ? head[0] : 0;
    size_t *q = realloc(head, n + 16);
    if (!q) return NULL;
    m->now += n - before;
    q[0] = n;
    if (m->now > m->most) m->most = m->now;
    return q + 2;
}

/* A chain of 200 operations on a million elements holds a few arrays at a time. */
static void check_peak(void)
{
    Meter meter = {0};
    Allocator allocator = {metered, &meter};
    Arena a = {.alloc = &allocator}, plain = {0};
    IrModule *m = small_module(&a, false);
    IrBuilder b;
    ir_builder_init(&b, m, ir_body_new(m, "x", "step"));
    IrRef v = ir_load(&b, 1);
    for (int i = 0; i < 200; i++) v = ir_op(&b, OP_ADD, v, ir_const(&b, i + 1), IR_NONE);
    ir_store(&b, 0, v, IR_NONE);
    enum { MILLION = 1 << 20 };
    float *p = arena_alloc(&plain, 4 * MILLION), *g = arena_alloc(&plain, 4 * MILLION);
    double global[4] = {0}, block[4] = {0}, *group[1] = {global};
    ExecTensor t = {.name = "w",
                    .numel = MILLION,
                    .active = true,
                    .storage = (DType[]){DT_F32, DT_F32},
                    .ptr = (void *[]){p, g},
                    .block = block};
    ExecState x = {global, group, 1, &t, 1, (uint32_t[]){0}};
    size_t before = meter.now;
    REQUIRE(interp_step(m, &x), "out of memory");
    CHECK(p[77] == 20100, "%g", (double)p[77]);
    CHECK(meter.now == before, "%zu bytes are lost", meter.now - before);
    CHECK(meter.most < before + 3 * 4 * MILLION, "%zu bytes at a time", meter.most);
    arena_free(&a);
    arena_free(&plain);
}

/* A step whose n-th allocation fails; whether it had fewer. */
static bool step_failing_at(Bound *b, size_t n)
{
    Meter meter = {.fail_at = n};
    Allocator allocator = {metered, &meter};
    Arena metered_arena = {.alloc = &allocator};
    IrModule m = *b->m;
    m.arena = &metered_arena;
    bool done = interp_step(&m, &b->x);
    CHECK(meter.now == 0, "%zu bytes are lost when allocation %zu fails", meter.now, n);
    return done;
}

/* Allocation 1, 2, 3, … fails: the step says so and has written nothing. */
static void check_out_of_memory(void)
{
    static const char text[] =
#include "lamb.inc"
        ;
    static Bound b;
    Arena a = {0};
    bind_module(&b, &a, text, 2, (int64_t[]){9, 5000}, (const char *const[]){"a", "b"}, NULL, 1);
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < 9; i++) set(&b, "g", t, i, 1), set(&b, "p", t, i, 2);
    bool done = false;
    for (size_t n = 1; !done && n < 10000; n++) {
        done = step_failing_at(&b, n);
        bool untouched =
            get(&b, "p", 0, 0) == 2 && get(&b, "m", 1, 0) == 0 && *place(&b, "t", 0) == 0;
        CHECK(done ? n > 20 && !untouched : untouched, "allocation %zu", n);
    }
    CHECK(done, "never enough memory");
    arena_free(&a);
}

/* The same where temporaries come and go: two bodies, rows stored to elements. */
static void check_out_of_memory_by_rows(void)
{
    static const char text[] = HEAD
        "slot ndim prop f64.tensor\nslot arm arm f64.tensor\nslot r0 result f64.row\n"
        "slot r1 result f64.global\nslot norm export f64.global\n"
        "select x\n  %0:f64.tensor = load ndim\n  %1:f64.global = const 1\n"
        "  %2:f64.tensor = sub %0 %1\n  store arm %2\n"
        "body x step\n  %0:f32.element = load g\n  %1:f64.global = sumsq[all] %0 -> r1\n"
        "  store norm %1\n"
        "body x step view matrix\n  %0:f32.element = load g\n  %1:f64.row = sum[row] %0 -> r0\n"
        "  %2:f32.row = round %1\n  %3:f32.element = mul %2 %0\n"
        "  %4:f64.global = sumsq[all] %3 -> r1\n  store p %2\n  store norm %4\n";
    static Bound b;
    Arena a = {0};
    bind_shapes(&b, &a, text, 2, (Shape[]){{2, {3, 5}}, {1, {7}}}, (const char *const[]){"a", "b"},
                NULL, 1);
    for (int i = 0; i < 15; i++) set(&b, "g", 0, i, 1), set(&b, "p", 0, i, 2);
    bool done = false;
    for (size_t n = 1; !done && n < 10000; n++) {
        done = step_failing_at(&b, n);
        CHECK(get(&b, "p", 0, 14) == (done ? 5 : 2) && *place(&b, "norm", 0) == (done ? 375 : 0),
              "allocation %zu", n);
    }
    CHECK(done, "never enough memory");
    arena_free(&a);
}

int main(void)
{
    check_guards();
    check_skip();
    check_storage();
    check_taking_part();
    check_reductions();
    check_peak();
    check_out_of_memory();
    check_out_of_memory_by_rows();
    return check_done();
}
