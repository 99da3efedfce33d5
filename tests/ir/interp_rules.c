/* Whole rules through the interpreter against the same rules in plain C: AdamW in f32 and f64, LAMB
 * with a global clip. */
#include "codegen/fn.h"
#include "interp_test.h"

static const char lamb_text[] =
#include "lamb.inc"
    ;

#define ADAMW_SLOTS(F)                                                                             \
    "slot p param " F ".element\nslot g grad " F ".element\nslot t count f64.tensor = 0\n"         \
    "slot s count f64.global = 0\n"                                                                \
    "slot lr hyper f64.group = 0.001 in [0, inf)\nslot b1 hyper f64.group = 0.9 in [0, 1)\n"       \
    "slot b2 hyper f64.group = 0.999 in [0, 1)\nslot eps hyper f64.group = 1e-8 in [0, inf)\n"     \
    "slot wd hyper f64.group = 0.01 in [0, inf)\n"                                                 \
    "slot m state " F ".element = 0\nslot v state " F ".element = 0\n"

/* p -= lr*wd*p; m, v; u = 1/(1 - b1^t) * m / (sqrt(v)/sqrt(1 - b2^t) + eps); p -= lr*u */
static const char adamw_f32[] = "dsopt-ir 1\nmodule adamw compute f32\n" ADAMW_SLOTS(
    "f32") "body adamw step\n"
           "  %0:f64.group = load lr\n  %1:f64.group = load wd\n  %2:f64.group = mul %0 %1\n"
           "  %3:f32.group = round %2\n  %4:f32.element = load p\n  %5:f32.element = mul %3 %4\n"
           "  %6:f32.element = sub %4 %5\n"
           "  %7:f64.group = load b1\n  %8:f32.group = round %7\n  %9:f32.element = load m\n"
           "  %10:f32.element = mul %8 %9\n  %11:f64.global = const 1\n  %12:f64.group = sub %11 "
           "%7\n"
           "  %13:f32.group = round %12\n  %14:f32.element = load g\n  %15:f32.element = mul %13 "
           "%14\n"
           "  %16:f32.element = add %10 %15\n"
           "  %17:f64.group = load b2\n  %18:f32.group = round %17\n  %19:f32.element = load v\n"
           "  %20:f32.element = mul %18 %19\n  %21:f64.group = sub %11 %17\n  %22:f32.group = "
           "round %21\n"
           "  %23:f32.element = mul %14 %14\n  %24:f32.element = mul %22 %23\n  %25:f32.element = "
           "add %20 %24\n"
           "  %26:f64.tensor = load t\n  %27:f64.tensor = add %26 %11\n"
           "  %28:f64.tensor = pow %7 %27\n  %29:f64.tensor = sub %11 %28\n  %30:f64.tensor = div "
           "%11 %29\n"
           "  %31:f32.tensor = round %30\n  %32:f32.element = mul %31 %16\n"
           "  %33:f32.element = sqrt %25\n  %34:f64.tensor = pow %17 %27\n  %35:f64.tensor = sub "
           "%11 %34\n"
           "  %36:f64.tensor = sqrt %35\n  %37:f32.tensor = round %36\n  %38:f32.element = div %33 "
           "%37\n"
           "  %39:f64.group = load eps\n  %40:f32.group = round %39\n  %41:f32.element = add %38 "
           "%40\n"
           "  %42:f32.element = div %32 %41\n  %43:f32.group = round %0\n  %44:f32.element = mul "
           "%43 %42\n"
           "  %45:f32.element = sub %6 %44\n  %46:f64.global = load s\n  %47:f64.global = add %46 "
           "%11\n"
           "  store m %16\n  store v %25\n  store p %45\n  store t %27\n  store s %47\n";

static const char adamw_f64[] = "dsopt-ir 1\nmodule adamw compute f64\n" ADAMW_SLOTS(
    "f64") "body adamw step\n"
           "  %0:f64.group = load lr\n  %1:f64.group = load wd\n  %2:f64.group = mul %0 %1\n"
           "  %3:f64.element = load p\n  %4:f64.element = mul %2 %3\n  %5:f64.element = sub %3 %4\n"
           "  %6:f64.group = load b1\n  %7:f64.element = load m\n  %8:f64.element = mul %6 %7\n"
           "  %9:f64.global = const 1\n  %10:f64.group = sub %9 %6\n  %11:f64.element = load g\n"
           "  %12:f64.element = mul %10 %11\n  %13:f64.element = add %8 %12\n"
           "  %14:f64.group = load b2\n  %15:f64.element = load v\n  %16:f64.element = mul %14 "
           "%15\n"
           "  %17:f64.group = sub %9 %14\n  %18:f64.element = mul %11 %11\n  %19:f64.element = mul "
           "%17 %18\n"
           "  %20:f64.element = add %16 %19\n"
           "  %21:f64.tensor = load t\n  %22:f64.tensor = add %21 %9\n  %23:f64.tensor = pow %6 "
           "%22\n"
           "  %24:f64.tensor = sub %9 %23\n  %25:f64.tensor = div %9 %24\n  %26:f64.element = mul "
           "%25 %13\n"
           "  %27:f64.element = sqrt %20\n  %28:f64.tensor = pow %14 %22\n  %29:f64.tensor = sub "
           "%9 %28\n"
           "  %30:f64.tensor = sqrt %29\n  %31:f64.element = div %27 %30\n  %32:f64.group = load "
           "eps\n"
           "  %33:f64.element = add %31 %32\n  %34:f64.element = div %26 %33\n  %35:f64.element = "
           "mul %0 %34\n"
           "  %36:f64.element = sub %5 %35\n"
           "  store m %13\n  store v %20\n  store p %36\n  store t %22\n";

static double power(double x, int n) /* from the lowest bit, in f64 */
{
    double r = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1) r *= x;
    return r;
}

typedef struct Hyper {
    double lr, b1, b2, eps, wd;
} Hyper;

static void ref_adamw_f32(const Hyper *h, int t, int64_t n, float *p, const float *g, float *m,
                          float *v)
{
    float lrwd = (float)(h->lr * h->wd), lr = (float)h->lr, eps = (float)h->eps;
    float b1 = (float)h->b1, b2 = (float)h->b2, c1 = (float)(1 - h->b1), c2 = (float)(1 - h->b2);
    float k1 = (float)(1 / (1 - power(h->b1, t))), k2 = (float)sqrt(1 - power(h->b2, t));
    for (int64_t i = 0; i < n; i++) {
        float decayed = p[i] - lrwd * p[i];
        m[i] = b1 * m[i] + c1 * g[i];
        v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
        float u = k1 * m[i] / (sqrtf(v[i]) / k2 + eps);
        p[i] = decayed - lr * u;
    }
}

static void ref_adamw_f64(const Hyper *h, int t, int64_t n, double *p, const double *g, double *m,
                          double *v)
{
    double k1 = 1 / (1 - power(h->b1, t)), k2 = sqrt(1 - power(h->b2, t));
    for (int64_t i = 0; i < n; i++) {
        double decayed = p[i] - h->lr * h->wd * p[i];
        m[i] = h->b1 * m[i] + (1 - h->b1) * g[i];
        v[i] = h->b2 * v[i] + (1 - h->b2) * (g[i] * g[i]);
        p[i] = decayed - h->lr * (k1 * m[i] / (sqrt(v[i]) / k2 + h->eps));
    }
}

enum { N = 4, LONG = 9000 };
static const int64_t sizes[N] = {1, 5000, 129, LONG};
static const char *const names[N] = {"w", "b", "Z", "a"};
static const uint32_t two_groups[N] = {0, 1, 1, 0};

static void check_adamw(bool f64)
{
    static float p[N][LONG], g[N][LONG], m[N][LONG], v[N][LONG];
    static double pd[N][LONG], gd[N][LONG], md[N][LONG], vd[N][LONG];
    static Bound b;
    Arena a = {0};
    uint64_t seed = 7;
    bind_module(&b, &a, f64 ? adamw_f64 : adamw_f32, N, sizes, names, two_groups, 2);
    *place(&b, "lr", 1) = 0.02;
    *place(&b, "wd", 1) = 0;
    memset(m, 0, sizeof m);
    memset(v, 0, sizeof v);
    for (int t = 0; t < N; t++)
        for (int i = 0; i < sizes[t]; i++)
            set(&b, "p", t, i, p[t][i] = (float)(pd[t][i] = noise(&seed)));
    for (int step = 1; step <= 4; step++) {
        for (int t = 0; t < N; t++)
            for (int i = 0; i < sizes[t]; i++)
                set(&b, "g", t, i, g[t][i] = (float)(gd[t][i] = noise(&seed)));
        b.tensors[2].active = step != 2; /* its own t stands still */
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        for (int t = 0; t < N; t++) {
            Hyper h = {two_groups[t] ? 0.02 : 0.001, 0.9, 0.999, 1e-8, two_groups[t] ? 0 : 0.01};
            int clock = t == 2 && step > 1 ? step - 1 : step;
            if (t == 2 && step == 2) continue;
            if (f64)
                ref_adamw_f64(&h, clock, sizes[t], pd[t], gd[t], md[t], vd[t]);
            else
                ref_adamw_f32(&h, clock, sizes[t], p[t], g[t], m[t], v[t]);
        }
        int wrong = 0;
        for (int t = 0; t < N; t++) {
            for (int i = 0; i < sizes[t]; i++) {
                wrong += !same_bits(get(&b, "p", t, i), f64 ? pd[t][i] : (double)p[t][i]);
                wrong += !same_bits(get(&b, "m", t, i), f64 ? md[t][i] : (double)m[t][i]);
                wrong += !same_bits(get(&b, "v", t, i), f64 ? vd[t][i] : (double)v[t][i]);
                wrong += !same_bits(get(&b, "g", t, i), f64 ? gd[t][i] : (double)g[t][i]);
            }
        }
        CHECK(wrong == 0, "step %d: %d values differ", step, wrong);
        CHECK(*place(&b, "t", 0) == step && *place(&b, "t", 2) == (step > 1 ? step - 1 : 1), "t");
        if (!f64) CHECK(*place(&b, "s", 0) == step, "s");
    }
    arena_free(&a);
}

/* Sum of squares of f32 values in f64 by the tree. */
static double sumsq(const float *x, int64_t n)
{
    static double d[LONG];
    for (int64_t i = 0; i < n; i++) d[i] = (double)x[i];
    return whole(RED_SUMSQ, d, d, (size_t)n, NULL);
}

static void ref_lamb(const Hyper *h, double clip, int t, int64_t n, float *p, const float *g0,
                     float *m, float *v)
{
    static float u[LONG];
    float b1 = (float)h->b1, b2 = (float)h->b2, c1 = (float)(1 - h->b1), c2 = (float)(1 - h->b2);
    float k1 = (float)(1 - power(h->b1, t)), k2 = (float)(1 - power(h->b2, t));
    for (int64_t i = 0; i < n; i++) {
        float g = g0[i] * (float)clip;
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        u[i] = m[i] / k1 / (sqrtf(v[i] / k2) + (float)h->eps) + (float)h->wd * p[i];
    }
    double pn = sqrt(sumsq(p, n)), un = sqrt(sumsq(u, n));
    double ratio = h->wd != 0 && pn > 0 && un > 0 ? pn / un : 1;
    for (int64_t i = 0; i < n; i++) p[i] -= (float)(h->lr * ratio) * u[i];
}

/* Names in byte order: A (inactive in step 2), E (empty), a, b, d: so a is number 1, b number 2, d
 * number 3. */
static void check_lamb(void)
{
    enum { T = 5 };
    static const int64_t numel[T] = {4097, 300, 0, 7, LONG};
    static const char *const name[T] = {"b", "A", "E", "a", "d"};
    static const int order[4] = {1, 3, 0, 4};
    static float p[T][LONG], g[T][LONG], m[T][LONG], v[T][LONG];
    static Bound b;
    Arena a = {0};
    uint64_t seed = 99;
    int clocks[T] = {0};
    bind_module(&b, &a, lamb_text, T, numel, name, NULL, 1);
    Hyper h = {*place(&b, "lr", 0), *place(&b, "b1", 0), *place(&b, "b2", 0), *place(&b, "eps", 0),
               *place(&b, "wd", 0)};
    for (int t = 0; t < T; t++)
        for (int i = 0; i < numel[t]; i++)
            set(&b, "p", t, i, p[t][i] = t == 3 ? 0 : (float)noise(&seed));
    for (int step = 1; step <= 3; step++) {
        double roots[4], norm;
        unsigned char present[4];
        b.tensors[1].active = step != 2;
        for (int t = 0; t < T; t++)
            for (int i = 0; i < numel[t]; i++)
                set(&b, "g", t, i, g[t][i] = (float)noise(&seed) * (step == 3 ? 1e-5f : 3));
        for (int k = 0; k < 4; k++) {
            present[k] = b.tensors[order[k]].active;
            roots[k] = sumsq(g[order[k]], numel[order[k]]);
        }
        norm = sqrt(tree(RED_SUM, roots, 4, present));
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        CHECK(same_bits(*place(&b, "grad_norm", 0), norm), "norm %a, not %a",
              *place(&b, "grad_norm", 0), norm);
        double ratio = 1 / (norm + 0), clip = 1 < ratio ? 1 : ratio;
        CHECK((step == 3) == (clip == 1), "the clip is %g in step %d", clip, step);
        int wrong = 0;
        for (int t = 0; t < T; t++) {
            if (b.tensors[t].active)
                ref_lamb(&h, clip, ++clocks[t], numel[t], p[t], g[t], m[t], v[t]);
            for (int i = 0; i < numel[t]; i++) {
                wrong += !same_bits(get(&b, "p", t, i), (double)p[t][i]);
                wrong += !same_bits(get(&b, "m", t, i), (double)m[t][i]);
                wrong += !same_bits(get(&b, "v", t, i), (double)v[t][i]);
            }
            CHECK(*place(&b, "t", t) == clocks[t], "t of %s is %g", name[t], *place(&b, "t", t));
        }
        CHECK(wrong == 0, "step %d: %d values differ", step, wrong);
    }
    arena_free(&a);
}

int main(void)
{
    check_adamw(false);
    check_adamw(true);
    check_lamb();
    return check_done();
}
