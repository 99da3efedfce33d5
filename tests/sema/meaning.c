/* What small rules do, step by step, against the same arithmetic written in C.
 *
 *   in:  state prev = g;  d = g - prev;  prev := g;  p -= d       over two tensors, three steps
 *   out: p and every state equal, bit for bit, what the C beside it gives
 */
#include "codegen/math/ds_math.h"
#include "steps.h"

/* Reads see what was written before them; old() what the step began with. */
static void order_of_writes(void)
{
    start(
        "optimizer order {\n hyper lr = 0.25\n state m = 1\n p -= lr * m\n m := m + g\n q = p + m\n"
        " m -= old(m) * lr\n p += q * old(p)\n}\n",
        NULL, NULL);
    float p[NB][LEN], m[NB][LEN];
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i), m[t][i] = 1;
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR EACH_ELEMENT
        {
            if (active(s, t)) {
                float g = (float)grad[s][t][i], p0 = p[t][i], m0 = m[t][i];
                float p1 = p0 - 0.25f * m0, m1 = m0 + g, q = p1 + m1;
                m[t][i] = m1 - m0 * 0.25f;
                p[t][i] = p1 + q * p0;
            }
            SAME("p", at("p", t, i), p[t][i]);
            SAME("m", at("m", t, i), m[t][i]);
        }
    }
    finish();
}

/* Initial values are taken at a tensor's first applied step, from p and g as they are there;
 * scalars are f64. */
static void initial_values(void)
{
    start("optimizer first {\n hyper lr = 0.1, half: global = 0.5\n state z = p, prev = g, step = "
          "lr\n"
          " state size: tensor = sum(g * g), top: global f32 = half / 3, never = g\n"
          " p -= lr * (g - prev) + step\n prev := g\n z += p * never\n step := step * 0.5\n size "
          "+= t\n top := max(top, half / 7 * s)\n"
          " p += size * top + 0 * z\n}\n",
          NULL, NULL);
    float p[NB][LEN], z[NB][LEN], prev[NB][LEN], step_size[NB][LEN], never[NB][LEN];
    double size[NB], t_of[NB] = {0, 0}, top = 0;
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
    EACH_STEP
    {
        run_step(s);
        if (s == 0) top = (float)(0.5 / 3);
        double top0 = top;
        double top1 = top0 > 0.5 / 7 * s ? top0 : 0.5 / 7 * s;
        top = (float)top1;
        EACH_TENSOR
        {
            if (active(s, t)) {
                if (t_of[t] == 0) {
                    size[t] = 0; /* fewer elements than lanes: folds of zeros and single values, by
                                    halves */
                    double lane[8] = {0};
                    EACH_ELEMENT lane[i] = (double)((float)grad[s][t][i] * (float)grad[s][t][i]);
                    for (int half = 4; half; half /= 2)
                        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
                    size[t] = lane[0];
                    EACH_ELEMENT z[t][i] = p[t][i], prev[t][i] = never[t][i] = (float)grad[s][t][i],
                                 step_size[t][i] = 0.1f;
                }
                t_of[t]++;
                size[t] += t_of[t];
            }
            EACH_ELEMENT
            {
                if (active(s, t)) {
                    float g = (float)grad[s][t][i];
                    p[t][i] = p[t][i] - (0.1f * (g - prev[t][i]) + step_size[t][i]);
                    prev[t][i] = g;
                    z[t][i] = z[t][i] + p[t][i] * never[t][i];
                    step_size[t][i] = step_size[t][i] * 0.5f;
                    p[t][i] = p[t][i] + ((float)(size[t] * top1) + 0 * z[t][i]);
                }
                SAME("p", at("p", t, i), p[t][i]);
                SAME("z", at("z", t, i), z[t][i]);
            }
            SAME("size", *place(&b, "size", (size_t)t), size[t]);
        }
        int t = 0;
        SAME("top", *place(&b, "top", 0), top);
    }
    finish();
}

/* `when`: both branches, nested, names after it, guards of tensor rate; what no branch writes keeps
 * its bits. */
static void conditions(void)
{
    start(
        "optimizer cond {\n hyper lr = 0.5\n state m = 0, n: tensor = 0, c: global = 0, kept = 3\n"
        " when t % 2 == 1 {\n  m := g\n  when s >= 2 { n := t; kept := g } else { n -= 1 }\n  k = "
        "2\n } else {\n  m += g\n  k = n + 5\n }\n"
        " when s == 1 { c := 7 }\n p -= lr * m * k + c + kept\n}\n",
        NULL, NULL);
    float p[NB][LEN], m[NB][LEN] = {{0}}, kept[NB][LEN];
    double n[NB] = {0, 0}, c = 0, t_of[NB] = {0, 0};
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i), kept[t][i] = 3;
    EACH_STEP
    {
        run_step(s);
        if (s == 1) c = 7;
        EACH_TENSOR
        {
            if (!active(s, t)) continue;
            bool odd = fmod(++t_of[t], 2) == 1;
            if (odd) n[t] = s >= 2 ? t_of[t] : n[t] - 1;
            double k = odd ? 2 : n[t] + 5;
            EACH_ELEMENT
            {
                float g = (float)grad[s][t][i];
                if (odd && s >= 2) kept[t][i] = g;
                m[t][i] = odd ? g : m[t][i] + g;
                p[t][i] = p[t][i] - (0.5f * m[t][i] * (float)k + (float)c + kept[t][i]);
                SAME("p", at("p", t, i), p[t][i]);
                SAME("kept", at("kept", t, i), kept[t][i]);
            }
            SAME("n", *place(&b, "n", (size_t)t), n[t]);
        }
    }
    int s = 0, t = 0;
    SAME("c", *place(&b, "c", 0), c);
    finish();
}

/* Reductions: over the tensors whose guard holds, of scalars, of one value, of a constant over
 * elements. */
static void reductions(void)
{
    start("optimizer red {\n state m = 1, a: global = 0, c: global = 0, d: global = 0, e: global = "
          "0, f: tensor = 0, h: global = 0\n"
          " state n: tensor = 0, u: global = 0\n"
          " p -= g\n"
          " when t == 2 { a2 = mean[all](t * 3); b2 = mean[all](g > 0 ? 4 : 4) } else { a2 = 0; b2 "
          "= 0 }\n"
          " a := sum[all](a2)\n c := mean[all](t)\n d := count[all](t > 1)\n e := max[all](b2) + "
          "min[all](t)\n"
          " m := 2\n f := norm(t) + rms(t) + dot(t, t) + count(t > 1) + mean(m)\n h := "
          "mean[all](m) + rms[all](m)\n"
          " n := 1\n u := sum[all](n) + dot[all](n, t) + dot[all](t, n)\n export u; export a; "
          "export c; export d; export e; export f; export h\n}\n",
          NULL, NULL);
    double t_of[NB] = {0, 0};
    EACH_STEP
    {
        run_step(s);
        double a = 0, c = 0, d = 0, top = 0, low = INFINITY, n = 0;
        EACH_TENSOR if (active(s, t))
        {
            t_of[t]++;
            n++;
            c += t_of[t];
            d += t_of[t] > 1;
            low = fmin(low, t_of[t]);
        }
        EACH_TENSOR if (active(s, t) && t_of[t] == 2) a += 6, top = 4;
        int t = 0;
        SAME("a", *place(&b, "a", 0), a);
        SAME("c", *place(&b, "c", 0), c / n);
        SAME("d", *place(&b, "d", 0), d);
        SAME("e", *place(&b, "e", 0), top + low);
        SAME("h", *place(&b, "h", 0), 4.0);
        for (t = 0; t < NB; t++)
            if (active(s, t))
                SAME("f", *place(&b, "f", (size_t)t),
                     t_of[t] * 2 + t_of[t] * t_of[t] + (t_of[t] > 1) + 2);
        t = 0;
        SAME("u", *place(&b, "u", 0), n + 2 * c);
    }
    finish();
}

/* piecewise and interp, of elements and of scalars; the functions at both rates. */
static void functions(void)
{
    start("fn steps(x, at, y) = piecewise(x, at, y)\n"
          "optimizer fun {\n hyper lr = 0.5, a = 1, ten[4] = [10, 20, 30, 40]\n state m = 3, n: "
          "tensor = 0, k: tensor = 0\n"
          " m := piecewise(g, [-0.1, 0.2], [1, lr, m])\n"
          " n := 0 * n + interp(t, [1, 2, 3.5], [3, a, 7])\n"
          " k := 0 * k + steps(t, [2, 2, 3], ten) + sin(t) + cos(t * 1000) + atan2(t, -a) + "
          "cbrt(t) + "
          "sigmoid(t) + softplus(t)\n"
          " u = interp(g, [-0.25, 0, lr], [1, 2, m]) + cbrt(g) + sigmoid(g) + softplus(g) + "
          "atan2(g, p)\n"
          " p -= m * u + n + k\n}\n",
          NULL, NULL);
    static const double n_of[] = {3, 1, 5, 7}, steps_of[] = {10, 30, 40, 40};
    float p[NB][LEN], m[NB][LEN];
    double t_of[NB] = {0, 0};
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i), m[t][i] = 3;
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR
        {
            if (!active(s, t)) continue;
            double x = ++t_of[t], n = n_of[(int)x - 1];
            double k = steps_of[(int)x - 1] + ds_sin(x) + ds_cos(x * 1000) + ds_atan2(x, -1) +
                       ds_cbrt(x) + ds_sigmoid(x) + ds_softplus(x);
            EACH_ELEMENT
            {
                float g = (float)grad[s][t][i];
                m[t][i] = g < -0.1f ? 1 : g < 0.2f ? 0.5f : m[t][i];
                float u = g >= 0.5f    ? m[t][i]
                          : g >= 0     ? 2 + (m[t][i] - 2) / 0.5f * (g - 0)
                          : g < -0.25f ? 1
                                       : 1 + 4 * (g + 0.25f);
                u = u + ds_cbrtf(g) + ds_sigmoidf(g) + ds_softplusf(g) + ds_atan2f(g, p[t][i]);
                p[t][i] = p[t][i] - (m[t][i] * u + (float)n + (float)k);
                SAME("m", at("m", t, i), m[t][i]);
                SAME("p", at("p", t, i), p[t][i]);
            }
            SAME("n", *place(&b, "n", (size_t)t), n);
            SAME("k", *place(&b, "k", (size_t)t), k);
        }
    }
    finish();
}

/* A transform inside `when`: its writes are guarded, its state starts at the first step all the
 * same. */
static void guarded_use(void)
{
    start("transform smooth(k = 0.5) : gradient {\n state h = g, n: tensor = 0\n h := lerp(g, h, "
          "k)\n n += 1\n export n as seen\n g := h - old(g)\n}\n"
          "optimizer outer {\n g := g * 2\n when t != 2 { use smooth as sm }\n p -= g + 0 * "
          "old(g)\n}\n",
          NULL, NULL);
    float p[NB][LEN], h[NB][LEN];
    double t_of[NB] = {0, 0}, n[NB] = {0, 0};
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR
        {
            if (!active(s, t)) continue;
            bool uses = ++t_of[t] != 2;
            n[t] += uses;
            EACH_ELEMENT
            {
                float g0 = (float)grad[s][t][i], g = g0 * 2;
                if (t_of[t] == 1) h[t][i] = g;
                if (uses) {
                    h[t][i] = 0.5f * h[t][i] + 0.5f * g;
                    g = h[t][i] - g;
                }
                p[t][i] = p[t][i] - (g + 0 * g0);
                SAME("p", at("p", t, i), p[t][i]);
                SAME("h", at("h", t, i), h[t][i]);
                SAME("n", *place(&b, "n", (size_t)t), n[t]);
                SAME("seen", *place(&b, "seen", (size_t)t), uses ? n[t] : (double)NAN);
            }
        }
    }
    finish();
}

/* A default that follows another hyperparameter, until it is set; const by option; functions of
 * several lines. */
static void hypers_and_functions(void)
{
    for (int mode = 0; mode < 3; mode++) {
        start(
            "fn poly(x, a, b = 2) {\n y = x * a\n z = y + b\n return y * z - clamp(x, -0.1, a)\n}\n"
            "optimizer hy {\n hyper lr = 0.1, lr2 = lr * 3 in [0, inf)\n p -= poly(g, lr2) + "
            "poly(b = 1, a = lr, x = g)\n}\n",
            mode == 1 ? "lr2=0.7" : NULL, NULL);
        double lr2 = 0.1 * 3;
        if (mode != 1) *place(&b, "lr2", 0) = NAN;
        if (mode == 1) lr2 = 0.7;
        if (mode == 2) *place(&b, "lr2", 0) = lr2 = 0.05;
        float p[NB][LEN], a = (float)lr2;
        EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
        EACH_STEP
        {
            run_step(s);
            EACH_TENSOR EACH_ELEMENT
            {
                if (!active(s, t)) continue;
                float g = (float)grad[s][t][i], y = g * a, low = g > -0.1f ? g : -0.1f,
                      y1 = g * 0.1f, low1 = low;
                float one = y * (y + 2) - (low < a ? low : a),
                      two = y1 * (y1 + 1) - (low1 < 0.1f ? low1 : 0.1f);
                p[t][i] = p[t][i] - (one + two);
                SAME("p", at("p", t, i), p[t][i]);
            }
        }
        finish();
    }
}

int main(void)
{
    order_of_writes();
    initial_values();
    conditions();
    reductions();
    functions();
    guarded_use();
    hypers_and_functions();
    return check_done();
}
