/* large.c - rules far larger than anyone's are built in time, and to the same bits: compile time
 * grows with a rule, not with what its parts could be combined to.
 *
 *     1000 states; an array of 1000 states; a chain of choices each of which reads the two before it
 *
 * And the stack that a call needs is what dsopt.h says.
 */
#include "rt.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

enum { COUNT = 300 };

static char *text, *end;

static void put(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    end += vsprintf(end, format, ap);
    va_end(ap);
}

/* One step under `backend`; the parameter is left in p. */
static void step(const char *backend, float *p)
{
    Rt r;
    float g[COUNT];
    for (int i = 0; i < COUNT; i++) p[i] = sinf((float)i), g[i] = cosf((float)i);
    rt_open_with(&r, backend, NULL, 1);
    dsopt_tensor w = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){COUNT});
    dsopt_optimizer *o = rt_optimizer(&r, rt_text(&r, text), &w, 1);
    for (int i = 0; i < 3; i++) rt_step(&r, o);
    dsopt_optimizer_destroy(o);
    rt_close(&r);
}

static void compare(const char *what)
{
    float a[COUNT], b[COUNT];
    step("interp", a);
    step("c", b);
    CHECK(memcmp(a, b, sizeof a) == 0, "%s: other bits than the interpreter's", what);
    end = text;
}

static void *on_small_stack(void *user)
{
    float p[COUNT];
    (void)user;
    step("interp", p);
    step("c", p);
    return NULL;
}

/* dsopt_get of the last of a chain of defaults. */
static void *get_on_small_stack(void *user)
{
    double v = 0;
    CHECK(dsopt_get(user, NULL, "a998", &v) == DSOPT_OK && v == 999, "%g", v);
    return NULL;
}

/* On a thread whose stack has `kib`. (Sanitizers make frames larger.) */
static void small_stack(size_t kib, void *(*run)(void *), void *user)
{
#ifndef DSOPT_SANITIZED
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    REQUIRE(pthread_attr_setstacksize(&attr, kib << 10) == 0, "stack of %zu KiB", kib);
    REQUIRE(pthread_create(&thread, &attr, run, user) == 0, "no thread");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
#endif
    (void)kib, (void)run, (void)user;
    end = text;
}

/* A chain of defaults as long as the language allows: loaded with 1 MB, asked for with 256 KB. */
static void defaults(void)
{
    Rt r;
    float p[1] = {1}, g[1] = {1};
    put("optimizer chain {\n  hyper a0 = 1\n");
    for (int i = 1; i < 999; i++) put("  hyper a%d = a%d + 1\n", i, i - 1);
    put("  p -= a998 * g\n}\n");
    rt_open(&r, 1);
    dsopt_tensor w = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){1});
    dsopt_optimizer *o = rt_optimizer(&r, rt_text(&r, text), &w, 1);
    small_stack(256, get_on_small_stack, o);
    small_stack(1024, on_small_stack, NULL);
    dsopt_optimizer_destroy(o);
    rt_close(&r);
}

int main(void)
{
    end = text = malloc(1 << 20);
    put("optimizer many {\n");
    for (int i = 0; i < 1000; i++) put("  state s%d = 0\n  s%d := lerp(g, s%d, 0.9)\n", i, i, i);
    for (int i = 0; i < 1000; i++) put("  p -= 1e-4 * s%d\n", i);
    put("}\n");
    compare("1000 states");

    put("optimizer array {\n  hyper b[1000] = 0.5\n  state m[1000] = 0\n"
        "  repeat i in 0..1000 { m[i] := lerp(g, m[i], b[i]);  p -= 1e-4 * m[i] }\n}\n");
    compare("an array of 1000");

    put("optimizer choices {\n  hyper k = 1\n  state m = 0, v = 1\n  x0 = m\n  x1 = v\n");
    for (int i = 2; i < 60; i++) put("  x%d = t %% %d > k ? x%d : x%d\n", i, i, i - 1, i - 2);
    put("  m := lerp(g, m, 0.9)\n  v := lerp(g * g, v, 0.9)\n  p -= 0.1 * x59\n}\n");
    compare("choices of choices");

    put("optimizer stored {\n  hyper k = 1\n  state m = 0, v = 1, w = 2\n  x0 = m\n  x1 = v\n");
    for (int i = 2; i < 60; i++) put("  x%d = t %% %d > k ? x%d : x%d\n", i, i, i - 1, i - 2);
    put("  m := x59\n  v := g\n  w := x58\n  p -= 0.1 * w\n}\n");
    compare("choices that are stored");

    put("optimizer plain {\n  state m = 0, n: block 64 = 0\n  x = norm(g) + sum[all](g) + mean(p)\n"
        "  m := lerp(g, m, 0.9)\n  n := mean[block 64](g * g)\n  p -= 0.1 * m / (sqrt(n) + x)\n}\n");
    small_stack(256, on_small_stack, NULL);
    put("fn a0(x) = 0.5 * x\n");
    for (int i = 1; i < 990; i++) put("fn a%d(x) = a%d(x) + 1\n", i, i - 1);
    put("optimizer deep { p -= a989(g) }\n");
    small_stack(1024, on_small_stack, NULL);
    defaults();
    free(text);
    return check_done();
}
