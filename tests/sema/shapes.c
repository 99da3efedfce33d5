/* Rows, columns, matrices, blocks and groups in rules, against loops in C.
 *
 *   in:  shape [.., r, c] { state R: row = 0;  R += sum[row](g);  p -= R } else { p -= g }
 *   out: p and every state equal, bit for bit, what the C beside it gives
 *
 * Five tensors in two groups, of 2, 1, 3, 2 and 0 dimensions; values are small multiples of 1/4, so
 * that sums are exact in any order. Tensor "c" has no gradient in the second step. */
#include "tests/ir/interp_test.h"
#include <math.h>

enum { N = 5, MOST = 24, STEPS = 3 };

static const Shape shapes[N] = {{2, {3, 4}}, {1, {5}}, {3, {2, 2, 3}}, {2, {1, 6}}, {0, {0}}};
static const int64_t numels[N] = {12, 5, 12, 6, 1};
static const uint32_t groups[N] = {0, 1, 1, 0, 0};
static Bound b;
static Arena arena;
static float p[N][MOST], g[N][MOST];
static int turn;

static bool active(int t)
{
    return !(turn == 1 && t == 2);
}

static void start(const char *text)
{
    SourceSet sources = {.arena = &arena};
    DiagSink d = {.arena = &arena, .sources = &sources};
    IrModule *m =
        compile_source(&arena, &d, source_add(&sources, "x.opt", text, strlen(text)), NULL, false);
    StrBuf said = {.arena = &arena}, ir = {.arena = &arena};
    diag_render(&d, &said, false);
    REQUIRE(m && d.n == 0, "%s\n%s", text, said.text ? said.text : "");
    ir_print(m, &ir);
    bind_shapes(&b, &arena, ir.text, N, shapes, (const char *const[]){"a", "b", "c", "d", "e"}, groups,
                2);
    for (int t = 0; t < N; t++)
        for (int i = 0; i < numels[t]; i++) set(&b, "p", t, i, p[t][i] = (float)((i * 5 + t) % 7 - 3));
    turn = -1;
}

static void run_step(void)
{
    double all = 0;
    turn++;
    for (int t = 0; t < N; t++) {
        b.tensors[t].active = active(t);
        if (active(t)) all += (double)numels[t];
        for (int i = 0; i < numels[t]; i++) {
            g[t][i] = (float)((i * 7 + t * 3 + turn * 5) % 9 - 4) / 4;
            set(&b, "g", t, i, g[t][i]);
        }
    }
    int slot = ir_slot_find(b.m, SLOT_PROP, "numel_all");
    if (slot >= 0) b.global[b.m->slots[slot].index] = all;
    REQUIRE(interp_step(b.m, &b.x), "out of memory");
}

static void finish(void)
{
    arena_free(&arena);
    arena = (Arena){0};
}

#define SAME(what, got, want)                                                                      \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        CHECK(same_bits(got_, want_), "%s: step %d: %a, not %a", what, turn, got_, want_);         \
    } while (0)
#define EACH_STEP for (int s_ = 0; s_ < STEPS; s_++)
#define EACH_TENSOR for (int t = 0; t < N; t++)
#define EACH_ELEMENT for (int i = 0; i < numels[t]; i++)

static void check_p(void)
{
    EACH_TENSOR EACH_ELEMENT SAME("p", get(&b, "p", (size_t)t, i), p[t][i]);
}

static int dim(int t, int from_end)
{
    int n = shapes[t].ndim;
    return n < from_end ? 1 : (int)shapes[t].size[n - from_end];
}

/* States of rows, columns and matrices; reductions to each of them, from elements and from vectors;
 * what both arms bind has the rates of both. */
static void matrices(void)
{
    start("optimizer m {\n hyper lr = 0.5\n"
          " shape [.., r, c] {\n"
          "  state R: row = 0, C: col = 1, M: matrix = 2, E = p\n"
          "  R := R + sum[row](g)\n  C := C / 2 + max[col](g)\n"
          "  M += sum[matrix](R) + mean[matrix](C) + norm[matrix](g)\n"
          "  far = count[row](g > C) + r * c\n  some = any[col](g > 0.5) ? 1 : 0\n"
          "  u = R * C + M + dot[row](g, E) + some\n  v = far + rms[row](g)\n"
          " } else {\n  state R = 0\n  R += g\n  u = R\n  v = t\n }\n"
          " p -= lr * u + v + mean(v) + max(v)\n}\n");
    float R[N][MOST] = {{0}}, C[N][MOST], E[N][MOST];
    double M[N][2], t_of[N] = {0};
    EACH_TENSOR EACH_ELEMENT C[t][i] = 1, E[t][i] = p[t][i], M[t][i % 2] = 2;
    EACH_STEP
    {
        run_step();
        EACH_TENSOR
        {
            if (!active(t)) continue;
            t_of[t]++;
            int c = dim(t, 1), r = dim(t, 2), mats = shapes[t].ndim == 3 ? 2 : 1;
            float v[MOST], u[MOST];
            double sum = 0, most = -INFINITY;
            if (shapes[t].ndim < 2) {
                EACH_ELEMENT u[i] = R[t][i] = R[t][i] + g[t][i];
                sum = most = t_of[t];
                EACH_ELEMENT v[i] = (float)t_of[t];
            }
            for (int k = 0; k < mats && shapes[t].ndim >= 2; k++) {
                double rows = 0, cols = 0, squares = 0;
                const float *gk = g[t] + k * r * c, *ek = E[t] + k * r * c;
                float *Rk = R[t] + k * r, *Ck = C[t] + k * c, some[MOST];
                for (int y = 0; y < r; y++) {
                    double row = 0;
                    for (int x = 0; x < c; x++) row += gk[y * c + x];
                    Rk[y] = Rk[y] + (float)row;
                    rows += Rk[y];
                }
                for (int x = 0; x < c; x++) {
                    float top = gk[x];
                    some[x] = 0;
                    for (int y = 0; y < r; y++) {
                        top = fmaxf(top, gk[y * c + x]);
                        if (gk[y * c + x] > 0.5f) some[x] = 1;
                    }
                    Ck[x] = Ck[x] / 2 + top;
                    cols += Ck[x];
                }
                for (int i = 0; i < r * c; i++) squares += (double)gk[i] * gk[i];
                M[t][k] = M[t][k] + (rows + cols / c + sqrt(squares));
                for (int y = 0; y < r; y++) {
                    double far = 0, product = 0, square = 0;
                    for (int x = 0; x < c; x++) {
                        far += gk[y * c + x] > Ck[x];
                        product += (double)gk[y * c + x] * ek[y * c + x];
                        square += (double)gk[y * c + x] * gk[y * c + x];
                    }
                    float vy = (float)far + (float)(r * c) + (float)sqrt(square / c);
                    sum += vy;
                    most = fmax(most, vy);
                    for (int x = 0; x < c; x++) {
                        int i = k * r * c + y * c + x;
                        u[i] = Rk[y] * Ck[x] + (float)M[t][k] + (float)product + some[x];
                        v[i] = vy;
                    }
                }
            }
            double n = shapes[t].ndim < 2 ? 1 : mats * r;
            EACH_ELEMENT p[t][i] =
                p[t][i] - (0.5f * u[i] + v[i] + (float)(sum / n) + (float)most);
        }
        check_p();
    }
    finish();
}

/* [r, ..] against all other axes; a choice by size; sizes under every name. */
static void first_axis(void)
{
    start("optimizer f {\n state w: tensor = 0\n"
          " shape [r, ..] when r >= 2 and rows < 3 {\n"
          "  state R: row = 0\n  R += mean[row](g)\n  u = R + max[col](g) + r\n"
          "  w += sum(R) + rows + numel / r\n"
          " } else shape [a, ..] {\n  u = sum[col](g) + sum[row](g) + cols\n  w += a\n"
          " } else { u = g * rows + cols }\n"
          " p -= u + 100 * rows + 10 * cols + ndim + w\n}\n");
    float R[N][MOST] = {{0}};
    double w[N] = {0};
    EACH_STEP
    {
        run_step();
        EACH_TENSOR
        {
            if (!active(t)) continue;
            int nd = shapes[t].ndim, r = nd ? (int)shapes[t].size[0] : 1, c = (int)numels[t] / r;
            int last = nd < 2 ? (int)numels[t] : dim(t, 1), rows = nd < 2 ? 1 : dim(t, 2);
            float u[MOST];
            if (nd < 2) {
                EACH_ELEMENT u[i] = g[t][i] * (float)rows + (float)last;
            } else {
                bool narrow = r >= 2 && r < 3; /* rows is r there */
                double total = 0;
                for (int y = 0; y < r; y++) {
                    double row = 0;
                    for (int x = 0; x < c; x++) row += g[t][y * c + x];
                    if (narrow) R[t][y] = R[t][y] + (float)(row / c);
                    total += R[t][y];
                    for (int x = 0; x < c; x++) {
                        float top = -INFINITY;
                        double col = 0;
                        for (int k = 0; k < r; k++) {
                            top = fmaxf(top, g[t][k * c + x]);
                            col += g[t][k * c + x];
                        }
                        u[y * c + x] = narrow ? R[t][y] + top + (float)r
                                              : (float)col + (float)row + (float)c;
                    }
                }
                w[t] += narrow ? total + r + (double)(int)(numels[t] / r) : r;
            }
            EACH_ELEMENT p[t][i] = p[t][i] - (u[i] + (float)(100 * rows) + (float)(10 * last) +
                                              (float)nd + (float)w[t]);
            SAME("w", *place(&b, "w", (size_t)t), w[t]);
        }
        check_p();
    }
    finish();
}

/* Blocks of five elements, the last one short. */
static void blocks(void)
{
    start("optimizer bl {\n state B: block 5 = 0, E = 0\n B += mean[block 5](g)\n E := min[block 5](p)\n"
          " p -= B + E + rms[block 5](g) + mean(B)\n}\n");
    float B[N][MOST] = {{0}};
    EACH_STEP
    {
        run_step();
        EACH_TENSOR
        {
            if (!active(t)) continue;
            float add[MOST];
            double sum = 0;
            int n = (int)numels[t], count = (n + 4) / 5;
            for (int k = 0; k < count; k++) {
                int len = n - 5 * k < 5 ? n - 5 * k : 5;
                double mean = 0, square = 0;
                float low = INFINITY;
                for (int i = 5 * k; i < 5 * k + len; i++) {
                    mean += g[t][i];
                    square += (double)g[t][i] * g[t][i];
                    low = fminf(low, p[t][i]);
                }
                B[t][k] = B[t][k] + (float)(mean / len);
                sum += B[t][k];
                for (int i = 5 * k; i < 5 * k + len; i++)
                    add[i] = B[t][k] + low + (float)sqrt(square / len);
            }
            EACH_ELEMENT p[t][i] = p[t][i] - (add[i] + (float)(sum / count));
        }
        check_p();
    }
    finish();
}

/* Groups: state, its first value from hyperparameters of the group, reductions of elements, tensors
 * and groups; in arms, over the tensors that take them. */
static void shared(void)
{
    start("optimizer sh {\n hyper lr = 2\n state w: group = lr * 3, seen: group = 0, all: global = 0\n"
          " shape [.., r, c] { big = max[row](g); n = sum[all](big); k = mean[group](g) }\n"
          " else { n = count[all](g > 0); k = mean[all](g) }\n"
          " seen += mean[group](t) + max[group](g)\n w += mean[group](n)\n"
          " all += mean[all](w) + sum[all](k)\n p -= w + seen + all + k\n}\n");
    double w[2] = {6, 6}, seen[2] = {0, 0}, all = 0, t_of[N] = {0};
    EACH_STEP
    {
        run_step();
        double sum_all = 0, count_all = 0, mean_group[2] = {0}, many_group[2] = {0}, mean_all = 0,
               many_all = 0, top[2] = {-INFINITY, -INFINITY}, t_sum[2] = {0}, t_many[2] = {0},
               n_sum[2] = {0};
        EACH_TENSOR
        {
            if (!active(t)) continue;
            uint32_t q = groups[t];
            t_sum[q] += ++t_of[t];
            t_many[q]++;
            bool matrix = shapes[t].ndim >= 2;
            int c = dim(t, 1);
            EACH_ELEMENT
            {
                top[q] = fmax(top[q], g[t][i]);
                if (matrix)
                    mean_group[q] += g[t][i], many_group[q]++;
                else
                    mean_all += g[t][i], many_all++, count_all += g[t][i] > 0;
            }
            for (int y = 0; matrix && y < numels[t] / c; y++) {
                float big = -INFINITY;
                for (int x = 0; x < c; x++) big = fmaxf(big, g[t][y * c + x]);
                sum_all += big;
            }
        }
        double k_sum = 0;
        EACH_TENSOR
        {
            if (!active(t)) continue;
            bool matrix = shapes[t].ndim >= 2;
            n_sum[groups[t]] += matrix ? sum_all : count_all;
            k_sum += matrix ? mean_group[groups[t]] / many_group[groups[t]] : mean_all / many_all;
        }
        for (int q = 0; q < 2; q++) {
            if (!t_many[q]) continue;
            seen[q] = seen[q] + (t_sum[q] / t_many[q] + top[q]);
            w[q] += n_sum[q] / t_many[q];
        }
        double before = all;
        all = *place(&b, "all", 0); /* its sum of quotients has an order of its own */
        CHECK(fabs(all - (before + (w[0] + w[1]) / 2 + k_sum)) < 1e-9, "all: %g", all);
        for (int q = 0; q < 2; q++) {
            SAME("w", *place(&b, "w", (size_t)q), w[q]);
            SAME("seen", *place(&b, "seen", (size_t)q), seen[q]);
        }
        EACH_TENSOR
        {
            if (!active(t)) continue;
            uint32_t q = groups[t];
            double k = shapes[t].ndim >= 2 ? mean_group[q] / many_group[q] : mean_all / many_all;
            EACH_ELEMENT p[t][i] = p[t][i] - (float)(w[q] + seen[q] + all + k);
        }
        check_p();
    }
    finish();
}

/* A group that first takes part in a later step takes its first value then. */
static void late_group(void)
{
    start("optimizer late {\n hyper lr = 2\n state w: group = lr\n w += 1\n p -= w * g\n}\n");
    for (turn = 0; turn < 3; turn++) {
        EACH_TENSOR b.tensors[t].active = turn > 0 || groups[t] == 0;
        if (turn == 1) *place(&b, "lr", 0) = *place(&b, "lr", 1) = 5;
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        SAME("w", *place(&b, "w", 0), 3.0 + turn);
        SAME("w", *place(&b, "w", 1), turn == 0 ? 0 : 5.0 + turn);
    }
    finish();
}

int main(void)
{
    matrices();
    first_axis();
    blocks();
    shared();
    late_group();
    return check_done();
}
