/* Rows, columns, matrices, blocks, groups, draws and several bodies, against plain C and the trees of
 * tree_ref.h. */
#include "codegen/fn.h"
#include "interp_test.h"

#define HEAD(compute, dtype)                                                                       \
    "dsopt-ir 1\nmodule x compute " compute "\nslot p param " dtype ".element\n"                   \
    "slot g grad " dtype ".element\n"

static double random_grad(uint64_t *state)
{
    return noise(state) * 3 + 0x1p-20;
}

static void fill(Bound *b, size_t n, uint64_t state)
{
    for (size_t t = 0; t < n; t++)
        for (int64_t i = 0; i < b->tensors[t].numel; i++) {
            set(b, "p", t, i, random_grad(&state));
            set(b, "g", t, i, random_grad(&state));
        }
}

/* ---- rows and columns ------------------------------------------------------------------------ */

/* R := (R + mean of g^2 over its row)/2, C likewise, M := mean of R over its matrix;
 * p := g / (R / M * C). */
static const char factored[] =
    HEAD("f32",
         "f32") "slot R state f32.row = 1\nslot C state f32.col = 2\nslot M state f64.matrix = 0\n"
                "slot rows prop f64.tensor\nslot cols prop f64.tensor\n"
                "slot r0 result f64.row\nslot r1 result f64.col\nslot r2 result f64.matrix\n"
                "body x step view matrix\n"
                "  %0:f32.element = load g\n  %1:f32.element = mul %0 %0\n"
                "  %2:f64.row = sum[row] %1 -> r0\n  %3:f64.tensor = load cols\n  %4:f64.row = div "
                "%2 %3\n"
                "  %5:f32.row = round %4\n  %6:f32.row = load R\n  %7:f32.row = add %6 %5\n"
                "  %8:f32.global = const 0.5\n  %9:f32.row = mul %7 %8\n"
                "  %10:f64.col = sum[col] %1 -> r1\n  %11:f64.tensor = load rows\n  %12:f64.col = "
                "div %10 %11\n"
                "  %13:f32.col = round %12\n  %14:f32.col = load C\n  %15:f32.col = add %14 %13\n"
                "  %16:f32.col = mul %15 %8\n"
                "  %17:f64.matrix = sum[matrix] %9 -> r2\n  %18:f64.matrix = div %17 %11\n"
                "  %19:f32.matrix = round %18\n  %20:f32.row = div %9 %19\n  %21:f32.element = mul "
                "%20 %16\n"
                "  %22:f32.element = div %0 %21\n"
                "  store R %9\n  store C %16\n  store M %18\n  store p %22\n";

static void check_factored_tensor(Bound *b, size_t t, const double *old_r, const double *old_c)
{
    enum { MOST = 20000 };
    static double sq[MOST], r[MOST], c[MOST];
    const ExecTensor *x = &b->tensors[t];
    Cut cut = {x->numel, x->rows, x->cols, x->mats};
    int wrong = 0;
    for (int64_t e = 0; e < x->numel; e++) {
        float g = (float)get(b, "g", t, e);
        sq[e] = (double)(g * g);
    }
    for (int64_t i = 0; i < x->mats * x->rows; i++) {
        float mean = (float)(tiled_row(RED_SUM, &cut, sq, sq, i) / (double)x->cols);
        r[i] = (double)(((float)old_r[i] + mean) * 0.5f);
        wrong += !same_bits(get(b, "R", t, i), r[i]);
    }
    for (int64_t k = 0; k < x->mats * x->cols; k++) {
        double sum = tiled_col(RED_SUM, &cut, sq, sq, k / x->cols, k % x->cols);
        c[k] = (double)(((float)old_c[k] + (float)(sum / (double)x->rows)) * 0.5f);
        wrong += !same_bits(get(b, "C", t, k), c[k]);
    }
    for (int64_t m = 0; m < x->mats; m++) {
        double sum = whole(RED_SUM, r + m * x->rows, r + m * x->rows, (size_t)x->rows, NULL);
        double mean = sum / (double)x->rows;
        wrong += !same_bits(get(b, "M", t, m), mean);
        for (int64_t e = m * x->rows * x->cols; e < (m + 1) * x->rows * x->cols; e++) {
            float row = (float)r[e / x->cols] / (float)mean;
            float u = (float)get(b, "g", t, e) / (row * (float)c[m * x->cols + e % x->cols]);
            wrong += !same_bits(get(b, "p", t, e), (double)u);
        }
    }
    CHECK(wrong == 0, "tensor %zu: %d values differ", t, wrong);
}

static void check_factored(void)
{
    enum { T = 10 };
    static const Shape shapes[T] = {{2, {5, 7}},     {3, {3, 5, 7}}, {2, {1, 300}},  {2, {300, 1}},
                                    {1, {6}},        {0, {0}},       {2, {3, 4099}}, {3, {2, 0, 5}},
                                    {3, {500, 3, 3}}, {3, {4097, 1, 1}}};
    static const char *const names[T] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    static Bound b;
    static double r[T][5000], c[T][10000];
    Arena a = {0};
    bind_shapes(&b, &a, factored, T, shapes, names, NULL, 1);
    CHECK(b.tensors[1].mats == 3 && b.tensors[4].rows == 1 && b.tensors[5].numel == 1, "shapes");
    for (int step = 0; step < 2; step++) {
        fill(&b, T, 17 + (uint64_t)step);
        for (size_t t = 0; t < T; t++) {
            for (int64_t i = 0; i < exec_count(&b.tensors[t], RATE_ROW); i++)
                r[t][i] = get(&b, "R", t, i);
            for (int64_t i = 0; i < exec_count(&b.tensors[t], RATE_COL); i++)
                c[t][i] = get(&b, "C", t, i);
        }
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        for (size_t t = 0; t < T; t++) check_factored_tensor(&b, t, r[t], c[t]);
    }
    arena_free(&a);
}

/* By hand, under compute f64: the first axis against the rest; a guard; truth values of rows. */
static void check_first_axis(void)
{
    static const char text[] = HEAD(
        "f64",
        "f64") "slot R state f64.row = 0\nslot k state f64.tensor = 1\nslot r0 result f64.row\n"
               "slot r1 result bool.row\nslot r2 result f64.tensor\nslot n export f64.tensor\n"
               "body x step view first\n"
               "  %0:f64.element = load g\n  %1:f64.tensor = load k\n  %2:f64.global = const 0\n"
               "  %3:bool.tensor = gt %1 %2\n  %4:f64.row = sum[row] %0 -> r0 if %3\n"
               "  %5:f64.global = const 4\n  %6:bool.element = gt %0 %5\n"
               "  %7:bool.row = any[row] %6 -> r1\n  %8:f64.tensor = count[tensor] %7 -> r2\n"
               "  %9:f64.element = select %7 %4 %0\n"
               "  store R %4\n  store n %8\n  store p %9\n";
    static Bound b;
    Arena a = {0};
    bind_shapes(&b, &a, text, 2, (Shape[]){{3, {2, 3, 2}}, {1, {3}}},
                (const char *const[]){"a", "b"}, NULL, 1);
    *place(&b, "k", 1) = -1;
    for (int i = 0; i < 12; i++) set(&b, "g", 0, i, i - 6.5); /* rows of 6 */
    for (int i = 0; i < 3; i++) set(&b, "g", 1, i, 3.5 + i);
    REQUIRE(interp_step(b.m, &b.x), "out of memory");
    CHECK(get(&b, "R", 0, 0) == -24 && get(&b, "R", 0, 1) == 12, "sums of rows");
    CHECK(*place(&b, "n", 0) == 1 && get(&b, "p", 0, 0) == -6.5 && get(&b, "p", 0, 6) == 12 &&
              get(&b, "p", 0, 11) == 12,
          "the second row has a value above 4");
    CHECK(get(&b, "R", 1, 0) == 0 && *place(&b, "n", 1) == 2, "guarded: nothing is summed");
    CHECK(get(&b, "p", 1, 0) == 3.5 && get(&b, "p", 1, 1) == 0, "rows of one");
    arena_free(&a);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void check_blocks(void)
{
    static const char text[] = HEAD(
        "f32",
        "f32") "slot B state f32.block = 0\nslot numel prop f64.tensor\nslot size block "
               "f64.tensor\n"
               "slot r0 result f64.block\nslot r1 result f64.tensor\nslot r2 result f64.tensor\n"
               "slot top export f64.tensor\nslot sum export f64.tensor\n"
               "select x\n  %0:f64.tensor = load numel\n  %1:f64.global = const 100\n"
               "  %2:bool.tensor = gt %0 %1\n  %3:f64.global = const 7\n  %4:f64.global = const "
               "4500\n"
               "  %5:f64.tensor = select %2 %4 %3\n  store size %5\n"
               "body x step view block\n"
               "  %0:f32.element = load g\n  %1:f64.block = sumsq[block] %0 -> r0\n"
               "  %2:f64.block = sqrt %1\n  %3:f32.block = round %2\n  %4:f32.element = div %0 %3\n"
               "  %5:f64.tensor = rmax[tensor] %3 -> r1\n  %6:f64.tensor = sum[tensor] %0 -> r2\n"
               "  store B %3\n  store p %4\n  store top %5\n  store sum %6\n";
    static const Shape shapes[] = {{1, {20}}, {2, {4, 5000}}, {1, {7}}, {1, {1}}};
    static Bound b;
    static double g[20000];
    Arena a = {0};
    bind_shapes(&b, &a, text, 4, shapes, (const char *const[]){"a", "b", "c", "d"}, NULL, 1);
    fill(&b, 4, 3);
    REQUIRE(interp_step(b.m, &b.x), "out of memory");
    for (size_t t = 0; t < 4; t++) {
        const ExecTensor *x = &b.tensors[t];
        int64_t size = x->numel > 100 ? 4500 : 7;
        Cut cut = {x->numel, (x->numel + size - 1) / size, size < x->numel ? size : x->numel, 1};
        double top = -INFINITY;
        int wrong = 0;
        for (int64_t e = 0; e < x->numel; e++) g[e] = get(&b, "g", t, e);
        for (int64_t k = 0; k < cut.rows; k++) {
            float norm = (float)sqrt(tiled_row(RED_SUMSQ, &cut, g, g, k));
            top = (double)norm > top ? (double)norm : top;
            wrong += get(&b, "B", t, k) != (double)norm;
            for (int64_t e = k * size; e < (k + 1) * size && e < x->numel; e++)
                wrong += !same_bits(get(&b, "p", t, e), (double)((float)g[e] / norm));
        }
        CHECK(wrong == 0 && *place(&b, "top", t) == top, "tensor %zu: %d values differ", t, wrong);
        CHECK(same_bits(*place(&b, "sum", t), tiled(RED_SUM, &cut, g, g, 0, 1)), "sum of %zu", t);
    }
    arena_free(&a);
}

/* ---- groups and inputs ----------------------------------------------------------------------- */

static void check_groups(void)
{
    static const char text[] = HEAD(
        "f32",
        "f32") "slot lr hyper f64.group = 0.5 in [0, inf)\nslot w state f64.group = 1\n"
               "slot k state f64.tensor = 1\nslot scale input f64.global \"x.scale\"\n"
               "slot r0 result f64.group\nslot r1 result f64.group\nslot r2 result f64.global\n"
               "slot norm export f64.group\nslot most export f64.group\nslot all export "
               "f64.global\n"
               "body x step\n"
               "  %0:f32.element = load g\n  %1:f64.group = sumsq[group] %0 -> r0\n"
               "  %2:f64.tensor = load k\n  %3:f64.global = const 3\n  %4:bool.tensor = lt %2 %3\n"
               "  %5:f64.group = rmax[group] %2 -> r1 if %4\n  %6:f64.group = load lr\n"
               "  %7:f64.group = mul %6 %1\n  %8:f64.global = sum[all] %7 -> r2\n"
               "  %9:f64.group = load w\n  %10:f64.group = add %9 %5\n  %11:f64.global = load "
               "scale\n"
               "  %12:f64.global = mul %8 %11\n"
               "  store norm %1\n  store most %5\n  store all %12\n  store w %10\n";
    enum { T = 6 };
    static const int64_t numel[T] = {130, 1, 5000, 0, 33, 4096};
    static const uint32_t groups[T] = {0, 1, 0, 0, 2, 0};
    static const char *const names[T] = {"z", "b", "a", "c", "q", "m"};
    static const int order[] = {2, 5, 0}; /* of group 0, by name, without the empty one */
    static Bound b;
    static double g[5000];
    Arena a = {0};
    bind_module(&b, &a, text, T, numel, names, groups, 3);
    *place(&b, "scale", 0) = 2;
    *place(&b, "lr", 1) = 0.25;
    for (int t = 0; t < T; t++) *place(&b, "k", t) = t == 5 ? 2 : t == 2 ? 7 : t == 1 ? 8 : 1;
    for (int round = 0; round < 2; round++) { /* then without group 2, and m of group 0 */
        b.tensors[4].active = b.tensors[5].active = round == 0;
        fill(&b, T, 8 + (uint64_t)round);
        double w = *place(&b, "w", 0), w2 = *place(&b, "w", 2), norm2 = *place(&b, "norm", 2);
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        double root[3], norm[3] = {0}, part[3];
        unsigned char present[3], groups_there[3] = {1, 1, round == 0};
        for (int r = 0; r < 3; r++) {
            int t = order[r];
            for (int64_t i = 0; i < numel[t]; i++) g[i] = get(&b, "g", (size_t)t, i);
            root[r] = whole(RED_SUMSQ, g, g, (size_t)numel[t], NULL);
            present[r] = b.tensors[t].active;
        }
        norm[0] = tree(RED_SUM, root, 3, present);
        norm[1] = get(&b, "g", 1, 0) * get(&b, "g", 1, 0);
        for (int64_t i = 0; i < 33; i++) g[i] = get(&b, "g", 4, i);
        norm[2] = whole(RED_SUMSQ, g, g, 33, NULL);
        for (int k = 0; k < 3; k++) part[k] = (k == 1 ? 0.25 : 0.5) * norm[k];
        CHECK(same_bits(*place(&b, "norm", 0), norm[0]) &&
                  same_bits(*place(&b, "norm", 1), norm[1]),
              "norms of groups");
        CHECK(same_bits(*place(&b, "norm", 2), round ? norm2 : norm[2]), "a group of one tensor");
        double most = round ? 1 : 2; /* 7 is not below 3 */
        CHECK(*place(&b, "most", 0) == most && *place(&b, "w", 0) == w + most, "of tensor values");
        CHECK(*place(&b, "most", 1) == -INFINITY, "nothing left in group 1");
        CHECK(*place(&b, "w", 2) == (round ? w2 : w2 + 1), "group 2 takes part, or not");
        CHECK(same_bits(*place(&b, "all", 0), 2 * whole(RED_SUM, part, part, 3, groups_there)),
              "over groups: %a", *place(&b, "all", 0));
    }
    arena_free(&a);
}

/* ---- several bodies -------------------------------------------------------------------------- */

/* Matrices run body 1, others body 0. Both feed r0 and r1, in either order; r1 needs r0's root in
 * body 0 only. */
static const char two_bodies[] = HEAD(
    "f32",
    "f32") "slot c state f64.global = 0\nslot w state f64.group = 0\nslot ndim prop f64.tensor\n"
           "slot arm arm f64.tensor\nslot r0 result f64.global\nslot r1 result f64.group\n"
           "slot r2 result f64.global\nslot r3 result f64.row\n"
           "slot norm export f64.global\nslot sum export f64.group\nslot flat export f64.global\n"
           "select x\n  %0:f64.tensor = load ndim\n  %1:f64.global = const 2\n"
           "  %2:bool.tensor = ge %0 %1\n  %3:f64.global = const 1\n  %4:f64.global = const 0\n"
           "  %5:f64.tensor = select %2 %3 %4\n  store arm %5\n"
           "body x step\n"
           "  %0:f32.element = load g\n  %1:f64.global = sumsq[all] %0 -> r0\n"
           "  %2:f32.global = round %1\n  %3:f32.element = mul %0 %2\n"
           "  %4:f64.group = sum[group] %3 -> r1\n  %5:f64.global = sum[all] %0 -> r2\n"
           "  %6:f64.global = const 1\n"
           "  store norm %1\n  store sum %4\n  store flat %5\n  store c %6\n  store w %6\n"
           "body x step view matrix\n"
           "  %0:f32.element = load g\n  %1:f64.row = sum[row] %0 -> r3\n"
           "  %2:f32.row = round %1\n  %3:f64.group = sum[group] %2 -> r1\n"
           "  %4:f64.global = sumsq[all] %0 -> r0\n  %5:f64.global = const 2\n"
           "  %6:f64.global = const 0\n"
           "  store norm %4\n  store sum %3\n  store flat %6\n  store c %5\n  store w %5\n";

static void check_two_bodies(void)
{
    enum { T = 5 };
    static const Shape shapes[T] = {{2, {40, 9}}, {1, {5000}}, {2, {3, 5}}, {1, {10}}, {2, {0, 3}}};
    static const char *const names[T] = {"b", "a", "d", "c", "e"};
    static const uint32_t groups[T] = {0, 0, 1, 1, 0};
    static const int order[4] = {1, 0, 3, 2};
    static Bound b;
    static double g[5000], rows[64];
    for (unsigned active = 1; active < 16; active++) {
        Arena a = {0};
        bind_shapes(&b, &a, two_bodies, T, shapes, names, groups, 2);
        fill(&b, T, active);
        for (unsigned t = 0; t < 4; t++) b.tensors[t].active = active >> t & 1;
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        double root[4], part[4], flat[2];
        unsigned char present[4], flat_present[2];
        for (int r = 0; r < 4; r++) {
            size_t t = (size_t)order[r];
            const ExecTensor *x = &b.tensors[t];
            Cut cut = {x->numel, x->rows, x->cols, x->mats};
            present[r] = x->active;
            for (int64_t e = 0; e < x->numel; e++) g[e] = get(&b, "g", t, e);
            root[r] = x->body ? tiled(RED_SUMSQ, &cut, g, g, 0, 1)
                              : whole(RED_SUMSQ, g, g, (size_t)x->numel, NULL);
            if (t == 1 || t == 3) {
                flat[r / 2] = whole(RED_SUM, g, g, (size_t)x->numel, NULL);
                flat_present[r / 2] = x->active;
            }
        }
        double norm = tree(RED_SUM, root, 4, present);
        for (int r = 0; r < 4; r++) {
            size_t t = (size_t)order[r];
            const ExecTensor *x = &b.tensors[t];
            Cut cut = {x->numel, x->rows, x->cols, x->mats};
            for (int64_t e = 0; e < x->numel; e++) {
                g[e] = get(&b, "g", t, e);
                if (!x->body) g[e] = (double)((float)g[e] * (float)norm);
            }
            for (int64_t i = 0; x->body && i < x->rows; i++)
                rows[i] = (double)(float)tiled_row(RED_SUM, &cut, g, g, i);
            part[r] = x->body ? whole(RED_SUM, rows, rows, (size_t)x->rows, NULL)
                              : whole(RED_SUM, g, g, (size_t)x->numel, NULL);
        }
        CHECK(same_bits(*place(&b, "norm", 0), norm), "active %u: norm %a, not %a", active,
              *place(&b, "norm", 0), norm);
        bool any_flat = active & 10;
        for (int k = 0; k < 2; k++) { /* group 0: a, b; group 1: c, d */
            bool there = present[2 * k] || present[2 * k + 1];
            double sum = tree(RED_SUM, part + 2 * k, 2, present + 2 * k);
            CHECK(same_bits(*place(&b, "sum", (size_t)k), there ? sum : 0), "active %u: group %d",
                  active, k);
            /* The first body that runs, in all and in the group. */
            double w = present[2 * k] ? 1 : present[2 * k + 1] ? 2 : 0;
            CHECK(*place(&b, "w", (size_t)k) == w, "active %u: w of group %d", active, k);
        }
        CHECK(*place(&b, "c", 0) == (any_flat ? 1 : 2), "active %u: c", active);
        CHECK(same_bits(*place(&b, "flat", 0), any_flat ? tree(RED_SUM, flat, 2, flat_present) : 0),
              "active %u: what one body feeds", active);
        arena_free(&a);
    }
}

/* ---- draws ----------------------------------------------------------------------------------- */

static void check_draws(bool f64)
{
    StrBuf text = {0};
    Arena a = {0};
    static Bound b;
    const char *d = f64 ? "f64" : "f32";
    text.arena = &a;
    sb_printf(&text,
              "dsopt-ir 1\nmodule x compute %s\nslot p param %s.element\nslot g grad %s.element\n"
              "slot u state %s.element = 0\nslot s state %s.element = 0\n"
              "slot draw_lo prop f64.tensor\nslot draw_hi prop f64.tensor\nbody x step\n"
              "  %%0:f64.tensor = load draw_lo\n  %%1:f64.tensor = load draw_hi\n"
              "  %%2:%s.element = normal %%0 %%1 site 0\n"
              "  %%3:%s.element = uniform %%0 %%1 site 5\n"
              "  %%4:%s.element = rademacher %%0 %%1 site 4294967294\n"
              "  store p %%2\n  store u %%3\n  store s %%4\n",
              d, d, d, d, d, d, d, d);
    bind_module(&b, &a, text.text, 2, (int64_t[]){300, 5}, (const char *const[]){"a", "b"}, NULL,
                1);
    REQUIRE(interp_step(b.m, &b.x), "out of memory");
    int wrong = 0, up = 0;
    for (size_t t = 0; t < 2; t++) {
        double lo = 4000000000.0 + (double)t, hi = 12345;
        for (int64_t i = 0; i < b.tensors[t].numel; i++) {
            uint64_t k = (uint64_t)i;
            double n = f64 ? ds_normal(lo, hi, 0, k) : (double)ds_normalf(lo, hi, 0, k);
            double u = f64 ? ds_uniform(lo, hi, 5, k) : (double)ds_uniformf(lo, hi, 5, k);
            double s = ds_rademacher(lo, hi, 4294967294u, k);
            wrong += get(&b, "p", t, i) != n || get(&b, "u", t, i) != u || get(&b, "s", t, i) != s;
            wrong += !(u >= 0 && u < 1) || (s != 1 && s != -1);
            up += s > 0;
        }
    }
    CHECK(wrong == 0 && up > 100 && up < 205, "%d draws differ, %d signs are up", wrong, up);
    CHECK(get(&b, "p", 0, 0) != get(&b, "p", 1, 0), "tensors have keys of their own");
    arena_free(&a);
}

int main(void)
{
    check_factored();
    check_first_axis();
    check_blocks();
    check_groups();
    check_two_bodies();
    check_draws(false);
    check_draws(true);
    return check_done();
}
