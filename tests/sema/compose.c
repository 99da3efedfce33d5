/* What rules do that are made of others: transforms of all stages, wrappers, arrays, schedules,
 * against the same arithmetic written in C.
 *
 *   in:  lookahead(momentum(lr = 0.1), k = 2) { use cautious }      over two tensors, four steps
 *   out: p and every state equal, bit for bit, what the C beside it gives
 */
#include "steps.h"

/* An element of the state with this path. */
static float state(const char *path, int t, int i)
{
    for (uint32_t k = 0; k < b.m->nslots; k++) {
        const Slot *s = &b.m->slots[k];
        if (s->path && strcmp(s->path, path) == 0)
            return (float)elem_get(b.ptr[t][s->index], b.storage[t][s->index], i);
    }
    REQUIRE(0, "no state %s", path);
    return 0;
}

#define MOMENTUM                                                                                   \
    "optimizer momentum {\n hyper lr = 0.5, b = 0.75\n const hyper nag = 0\n state m = 0\n"        \
    " m := b * m + g\n"                                                                            \
    " when nag != 0 { direction u = b * m + g } else { direction u = m }\n p -= lr * u\n}\n"
#define SMOOTH                                                                                     \
    "transform smooth(k = 0.5) : direction {\n state h = u, n: tensor = 0\n h := lerp(u, h, k)\n"  \
    " n += 1\n export n as turns\n u := h\n}\n"
#define SIGNS "transform signs : direction {\n u := u * g > 0 ? u : 0\n}\n"

/* Transforms of the direction act behind it, in order, wherever they stand: a labelled one with a
 * state of its own, one under a condition; what an application adds comes last. */
static void directions(void)
{
    for (int nag = 0; nag < 2; nag++) {
        start(SMOOTH SIGNS
              "optimizer dir {\n hyper lr = 0.5, b = 0.75\n const hyper nag = 0\n state m = 0\n"
              " use smooth(0.25) as soft\n when t != 2 { use signs }\n m := b * m + g\n"
              " when nag != 0 { direction d = b * m + g } else { direction d = m }\n"
              " p -= lr * d\n}\n",
              NULL, nag ? "dir(nag = 1) { use smooth }" : "dir() { use smooth }");
        float p[NB][LEN], m[NB][LEN] = {{0}}, h[NB][LEN], h2[NB][LEN];
        double t_of[NB] = {0, 0};
        EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
        EACH_STEP
        {
            run_step(s);
            EACH_TENSOR
            {
                bool first = active(s, t) && t_of[t] == 0;
                if (active(s, t)) t_of[t]++;
                EACH_ELEMENT
                {
                    if (active(s, t)) {
                        float g = (float)grad[s][t][i];
                        m[t][i] = 0.75f * m[t][i] + g;
                        float u = nag ? 0.75f * m[t][i] + g : m[t][i];
                        if (first) h[t][i] = u;
                        u = h[t][i] = 0.25f * h[t][i] + 0.75f * u;
                        if (t_of[t] != 2) u = u * g > 0 ? u : 0;
                        if (first) h2[t][i] = u;
                        u = h2[t][i] = 0.5f * h2[t][i] + 0.5f * u;
                        p[t][i] = p[t][i] - 0.5f * u;
                    }
                    SAME("p", at("p", t, i), p[t][i]);
                    SAME("m", at("m", t, i), m[t][i]);
                    SAME("h", state("dir.soft.h", t, i), h[t][i]);
                    SAME("h2", state("dir.smooth.h", t, i), h2[t][i]);
                }
                SAME("n", *place(&b, "n", (size_t)t), t_of[t]);
            }
        }
        finish();
    }
}

/* A wrapper around a rule, with transforms for the rule inside: gradient before it, apply behind
 * it. Paths are the uses'. */
static void wrapper(void)
{
    start(MOMENTUM SIGNS
          "transform half : gradient { g *= 0.5 }\n"
          "transform box(r = 1) : apply { p := clamp(p, -r, r) }\n"
          "optimizer look(inner: rule, k = 5, alpha = 0.5) {\n state slow = p\n use inner\n"
          " when (s + 1) % k == 0 { slow := lerp(p, slow, 1 - alpha);  p := slow }\n}\n"
          "optimizer twice(inner: rule) { use look(inner, k = 2, alpha = 0.25) }\n",
          NULL, "twice(momentum(lr = 0.125, nag = 1)) { use box(0.5); use signs; use half as h }");
    CHECK(strcmp(slot_named(&b, "m")->path, "twice.look.momentum.m") == 0, "%s",
          slot_named(&b, "m")->path);
    CHECK(strcmp(slot_named(&b, "r")->path, "twice.look.momentum.box.r") == 0, "%s",
          slot_named(&b, "r")->path);
    float p[NB][LEN], m[NB][LEN] = {{0}}, slow[NB][LEN];
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR EACH_ELEMENT
        {
            if (active(s, t)) {
                float g = (float)grad[s][t][i] * 0.5f;
                if (s == 0) slow[t][i] = p[t][i];
                m[t][i] = 0.75f * m[t][i] + g;
                float u = 0.75f * m[t][i] + g;
                u = u * g > 0 ? u : 0;
                p[t][i] = p[t][i] - 0.125f * u;
                p[t][i] = p[t][i] > -0.5f ? p[t][i] : -0.5f;
                p[t][i] = p[t][i] < 0.5f ? p[t][i] : 0.5f;
                if ((s + 1) % 2 == 0) p[t][i] = slow[t][i] = 0.75f * slow[t][i] + 0.25f * p[t][i];
            }
            SAME("p", at("p", t, i), p[t][i]);
            SAME("slow", at("slow", t, i), slow[t][i]);
        }
    }
    finish();
}

/* Two rules in one, by name: each sees the same g, whatever the other made of it. */
static void rules_inside(void)
{
    start("optimizer decayed {\n hyper wd = 0.5, lr = 0.25\n g += wd * p\n p -= lr * g\n}\n"
          "optimizer both {\n state a = 0\n p0 = p\n use decayed\n a := p\n p := p0\n"
          " use decayed(wd = 0, lr = 2) as plain\n p := lerp(a, p, 0.5) + 0 * g\n}\n",
          NULL, NULL);
    float p[NB][LEN];
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR EACH_ELEMENT
        {
            if (active(s, t)) {
                float g = (float)grad[s][t][i], one = p[t][i] - 0.25f * (g + 0.5f * p[t][i]),
                      two = p[t][i] - 2 * (g + 0 * p[t][i]);
                p[t][i] = 0.5f * two + 0.5f * one + 0 * g;
            }
            SAME("p", at("p", t, i), p[t][i]);
        }
    }
    finish();
}

/* Arrays: constant indices, a ring, turns of repeat. */
static void arrays(void)
{
    start("optimizer arr {\n const hyper K = 3\n hyper beta[K] = [0, 0.5, 0.75]\n"
          " state b[K] = 0, ring[3] = g, n[2]: tensor = [1, 2]\n"
          " repeat i in 0..K { b[i] := beta[i] * b[i] + i * g;  p -= b[i] * 0.25 }\n"
          " d = ring[s % 3] + old(ring[2])\n ring[s % K] := g\n when t > 1 { ring[s % K] *= 2 }\n"
          " n[t % 2] += 1\n repeat 2 { p -= d * n[0] }\n p += n[1]\n}\n",
          "beta[2]=0.25", NULL);
    static const float beta[3] = {0, 0.5f, 0.25f};
    float p[NB][LEN], m[3][NB][LEN] = {{{0}}}, ring[3][NB][LEN];
    double n[2][NB] = {{1, 1}, {2, 2}}, t_of[NB] = {0, 0};
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR
        {
            bool first = active(s, t) && t_of[t] == 0;
            if (!active(s, t)) continue;
            t_of[t]++;
            n[(int)t_of[t] % 2][t]++;
            EACH_ELEMENT
            {
                float g = (float)grad[s][t][i], last;
                for (int k = 0; k < 3; k++) {
                    m[k][t][i] = beta[k] * m[k][t][i] + (float)k * g;
                    p[t][i] = p[t][i] - m[k][t][i] * 0.25f;
                    if (first) ring[k][t][i] = g;
                }
                last = ring[2][t][i];
                float d = ring[s % 3][t][i] + last;
                ring[s % 3][t][i] = t_of[t] > 1 ? g * 2 : g;
                for (int k = 0; k < 2; k++) p[t][i] = p[t][i] - d * (float)n[0][t];
                p[t][i] = p[t][i] + (float)n[1][t];
                SAME("p", at("p", t, i), p[t][i]);
                SAME("b[2]", at("b[2]", t, i), m[2][t][i]);
                SAME("ring[1]", at("ring[1]", t, i), ring[1][t][i]);
            }
            SAME("n[1]", *place(&b, "n[1]", (size_t)t), n[1][t]);
        }
    }
    finish();
}

/* A schedule as a hyperparameter's value: its parameters are set by name, and setting the
 * hyperparameter itself replaces it. */
static void schedules(void)
{
    for (int mode = 0; mode < 3; mode++) {
        start("schedule ramp(peak, steps, low = peak / 4) {\n done = min(1, s / steps)\n"
              " return low + (peak - low) * done\n}\n"
              "optimizer sched {\n hyper lr = 1\n p -= lr * g\n}\n",
              NULL, "sched(lr = ramp(0.5, steps = 3))");
        *place(&b, "lr", 0) = *place(&b, "lr.low", 0) = NAN;
        double peak = 0.5, low = 0.125;
        if (mode == 1) *place(&b, "lr.peak", 0) = peak = 2, low = 0.5;
        if (mode == 2) *place(&b, "lr", 0) = 0.75;
        float p[NB][LEN];
        EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
        EACH_STEP
        {
            run_step(s);
            double done = s / 3.0 < 1 ? s / 3.0 : 1, lr = low + (peak - low) * done;
            if (mode == 2) lr = 0.75;
            EACH_TENSOR EACH_ELEMENT
            {
                if (active(s, t)) p[t][i] = p[t][i] - (float)lr * (float)grad[s][t][i];
                SAME("p", at("p", t, i), p[t][i]);
            }
        }
        finish();
    }
}

/* State begins at the tensor's first step whatever holds around the use, `init` included; what that
 * writes to p is guarded as all else. */
static void inner_rests(void)
{
    start("optimizer inside {\n state z = p, k = 0\n init { z += 8;  k := old(z) + 3;  p += 1 }\n"
          " z := 0.5 * z + 0 * old(z)\n p -= z + k * g\n}\n"
          "optimizer around(inner: rule) {\n p *= 2\n when t % 3 != 1 { use inner }\n p += g\n}\n",
          NULL, "around(inside)");
    float p[NB][LEN], z[NB][LEN], k[NB][LEN];
    double t_of[NB] = {0, 0};
    EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
    EACH_STEP
    {
        run_step(s);
        EACH_TENSOR
        {
            if (!active(s, t)) continue;
            bool uses = fmod(++t_of[t], 3) != 1;
            EACH_ELEMENT
            {
                float g = (float)grad[s][t][i];
                p[t][i] *= 2;
                if (t_of[t] == 1) k[t][i] = p[t][i] + 3, z[t][i] = p[t][i] + 8;
                if (uses) z[t][i] *= 0.5f, p[t][i] = p[t][i] - (z[t][i] + k[t][i] * g);
                p[t][i] += g;
                SAME("p", at("p", t, i), p[t][i]);
                SAME("z", at("z", t, i), z[t][i]);
                SAME("k", at("k", t, i), k[t][i]);
            }
        }
    }
    finish();
}

/* A schedule's lists are hyperparameters, element by element: written as they are, an array's, a
 * default; handed on to another. */
static void schedule_lists(void)
{
    for (int mode = 0; mode < 2; mode++) {
        start("schedule stairs(at, v = [1, 2, 4], scale = 1) = scale * piecewise(s, at, v)\n"
              "schedule both(at, ys) = stairs(at) + interp(s, [0, 2], ys)\n"
              "optimizer x {\n hyper k[2] = [1, 3], lr = both(k, [0.5, 1])\n hyper lr2 = stairs([2, 3])\n"
              " p -= lr * g + lr2\n}\n",
              NULL, NULL);
        double low = 0.5, v1 = 2, bounds[2] = {1, 3};
        *place(&b, "lr.at[0]", 0) = *place(&b, "lr.at[1]", 0) = NAN;
        *place(&b, "lr", 0) = *place(&b, "lr2", 0) = NAN;
        if (mode) {
            *place(&b, "k[0]", 0) = bounds[0] = 2;
            *place(&b, "lr.ys[0]", 0) = low = 0.25;
            *place(&b, "lr2.v[1]", 0) = v1 = 8;
        }
        float p[NB][LEN];
        EACH_TENSOR EACH_ELEMENT p[t][i] = at("p", t, i);
        EACH_STEP
        {
            run_step(s);
            double line = s >= 2 ? 1 : low + (1 - low) / 2 * s;
            double lr = (s >= bounds[1] ? 4 : s >= bounds[0] ? 2 : 1) + line, lr2 = s >= 3 ? 4 : s >= 2 ? v1 : 1;
            EACH_TENSOR EACH_ELEMENT
            {
                if (active(s, t))
                    p[t][i] = p[t][i] - ((float)lr * (float)grad[s][t][i] + (float)lr2);
                SAME("p", at("p", t, i), p[t][i]);
            }
        }
        finish();
    }
}

int main(void)
{
    schedule_lists();
    directions();
    inner_rests();
    wrapper();
    rules_inside();
    arrays();
    schedules();
    return check_done();
}
