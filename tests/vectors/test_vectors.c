/* test_vectors.c - every rule of the standard library against what published implementations
 * computed (docs/numerics.md).
 *
 * f64: each value of p after each step, and the mapped states at the end, within 1e-12 relative or
 * 1e-14 of the tensor's largest value of the recorded f64 file. f32, by the backend that users run:
 * |ours - f64 file| <= 4 times the largest |library's f32 - f64 file| of that tensor over all
 * steps, and one ulp of the tensor's largest value; where the case has no f32 file, 64 such ulp;
 * where it has no f64 file, 64 such ulp of the f32 file.
 *
 * What is not so is named in `differences` below, with the reason; the rule's header says it, too.
 *
 *     test_vectors [FOLDER [BACKEND...]]     ->  adamw.torch.f64.vec   f64 worst 1.1e-16 of 1e-12
 * f32 c worst 0.31 of the bound
 */
#include "cli/replay.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A case whose bound is another: `f64` in the place of 1e-12 where it is not 0, `f32` times the f32
 * bound; or a tensor of it that is left out. */
typedef struct Difference {
    const char *file; /* up to its dtype */
    const char *tensor;
    double f64, f32;
    const char *why;
} Difference;

#define TWO_AXES "factored over other axes than the last two: stdlib/adafactor.opt"
#define THREE_AXES "a vector for each of three axes: stdlib/sm3.opt"
static const Difference differences[] = {
    {"adafactor.optax-factored", "conv", 0, 0, TWO_AXES},
    {"adafactor.optax-momentum", "conv", 0, 0, TWO_AXES},
    {"adafactor.optax-noscale", "conv", 0, 0, TWO_AXES},
    {"adafactor.timm", "conv", 0, 0, TWO_AXES},
    {"adafactor.timm-lr", "conv", 0, 0, TWO_AXES},
    {"adafactor.timm-bv", "conv", 0, 0, TWO_AXES},
    {"adafactor.timm-bv-bf16", "conv", 0, 128, "its momentum is bfloat16; " TWO_AXES},
    {"prodigy.prodigyopt-default", NULL, 0, 128,
     "p0 - p is 1e-6 of p at step 2: the last place of p in f32 is 6 % of d, and d compounds"},
    {"radam.optax", NULL, 1e-11, 0,
     "the length of the average is a small difference: the last bit of b2^t shows (the file's note)"},
    {"schedule_free_radam.schedulefree", NULL, 1e-11, 0,
     "the rate is the root of the same small difference"},
    {"sm3.optax", "conv", 0, 0, THREE_AXES},
    {"sm3.kozistr", "conv", 0, 0, THREE_AXES},
    {"sm3.kozistr-plain", "conv", 0, 0, THREE_AXES},
};

static int failures;

static const Difference *difference_of(const char *file)
{
    for (size_t i = 0; i < sizeof differences / sizeof *differences; i++) {
        size_t n = strlen(differences[i].file);
        if (!strncmp(file, differences[i].file, n) && file[n] == '.') return &differences[i];
    }
    static const Difference none = {NULL, NULL, 0, 0, NULL};
    return &none;
}

static bool left_out(const Difference *d, const VecTensor *t)
{
    return d->tensor && !strcmp(d->tensor, t->name);
}

static char *read_text(Arena *a, const char *path, size_t *len)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    StrBuf b = {.arena = a};
    char buf[65536];
    for (size_t n; (n = fread(buf, 1, sizeof buf, f)) > 0;) sb_putn(&b, buf, n);
    fclose(f);
    *len = b.len;
    return b.text;
}

static bool load(Arena *a, const char *path, Vec *v)
{
    size_t len;
    StrBuf err = {.arena = a};
    char *text = read_text(a, path, &len);
    if (!text) return false;
    if (vec_parse(a, path, text, len, v, &err)) return true;
    printf("%s\n", err.text);
    failures++;
    return false;
}

static bool run(Arena *a, const Vec *v, const char *backend, const char *compute, ReplaySetup *s,
                ReplayResult *r)
{
    StrBuf err = {.arena = a};
    *s = (ReplaySetup){0};
    if (!replay_map(a, v, s, &err)) {
        printf("  %s\n", err.text);
        return false;
    }
    s->backend = backend;
    s->compute = compute;
    if (replay_run(a, v, s, r, &err)) return true;
    printf("  %s\n", err.text);
    return false;
}

static double largest(const double *v, int64_t n)
{
    double m = 0;
    for (int64_t i = 0; i < n; i++) m = fmax(m, fabs(v[i]));
    return m;
}

static double largest_p(const VecTensor *t, int steps)
{
    double m = 0;
    for (int s = 0; s <= steps; s++) m = fmax(m, largest(t->p[s], t->numel));
    return m;
}

/* How far ours is, as a fraction of what is allowed; NaN against a number is infinitely far. */
static double excess(double ours, double theirs, double allowed)
{
    if (ours == theirs || (isnan(ours) && isnan(theirs))) return 0;
    double d = fabs(ours - theirs) / allowed;
    return isnan(d) ? INFINITY : d;
}

static double against_f64(const Vec *v, const ReplaySetup *s, const ReplayResult *r,
                          const Difference *diff)
{
    double worst = 0, rel = diff->f64 > 0 ? diff->f64 : 1e-12;
    for (size_t i = 0; i < v->ntensors; i++) {
        const VecTensor *t = &v->tensors[i];
        if (left_out(diff, t)) continue;
        for (int step = 1; step <= v->steps; step++) {
            double top = largest(t->p[step], t->numel);
            for (int64_t e = 0; e < t->numel; e++) {
                double theirs = t->p[step][e];
                worst = fmax(worst, excess(r->p[i][step][e], theirs,
                                           fmax(rel * fabs(theirs), rel / 100 * top)));
            }
        }
        for (size_t j = 0; j < t->nstates; j++) {
            const VecState *st = &t->states[j];
            double top = largest(st->values, st->n);
            for (size_t k = 0; k < s->nstates; k++) {
                if (strcmp(s->states[k].theirs, st->slot) || !r->state[i][k]) continue;
                for (int64_t e = 0; e < st->n; e++)
                    worst = fmax(worst, excess(r->state[i][k][e], st->values[e],
                                               fmax(rel * fabs(st->values[e]), rel / 100 * top)));
            }
        }
    }
    for (size_t k = 0; k < s->nstates; k++) {
        if (!s->states[k].global) continue;
        double theirs = vec_scalar(v, s->states[k].theirs)->value;
        worst = fmax(worst, excess(r->global[k], theirs, 1e-11 * fabs(theirs)));
    }
    for (int step = 1; step <= v->steps; step++) {
        char name[32];
        snprintf(name, sizeof name, "norm_%d", step);
        const VecScalar *norm = vec_scalar(v, name);
        if (norm) worst = fmax(worst, excess(r->grad_norm[step], norm->value, 1e-11 * norm->value));
    }
    return worst;
}

/* `f32` may be NULL: the case has no such file. */
static double against_f32(const Vec *ref, const Vec *f32, const ReplayResult *r,
                          const Difference *diff)
{
    double worst = 0, times = diff->f32 > 0 ? diff->f32 : 1;
    for (size_t i = 0; i < ref->ntensors; i++) {
        const VecTensor *t = &ref->tensors[i];
        if (left_out(diff, t)) continue;
        float top = (float)largest_p(t, ref->steps);
        double ulp = (double)(nextafterf(top, INFINITY) - top), allowed = 64 * ulp, noise = 0;
        if (f32) {
            for (int step = 1; step <= ref->steps; step++)
                for (int64_t e = 0; e < t->numel; e++)
                    noise = fmax(noise, fabs(f32->tensors[i].p[step][e] - t->p[step][e]));
            allowed = 4 * noise + ulp;
        }
        for (int step = 1; step <= ref->steps; step++)
            for (int64_t e = 0; e < t->numel; e++)
                worst = fmax(worst, excess(r->p[i][step][e], t->p[step][e], times * allowed));
    }
    return worst;
}

static void judge(const char *file, const char *how, double worst)
{
    if (worst <= 1) {
        printf("%-44s %-10s %.3g of the bound\n", file, how, worst);
        return;
    }
    printf("%-44s %-10s FAILED: %.3g times the bound\n", file, how, worst);
    failures++;
}

static void test_file(const char *folder, const char *file, char **backends, int nbackends)
{
    Arena arena = {0}, *a = &arena;
    Vec v, other;
    ReplaySetup s;
    ReplayResult r;
    const Difference *diff = difference_of(file);
    char *path = arena_printf(a, "%s/%s", folder, file), *dot = strstr(file, ".f64.vec");
    bool is_f64 = dot != NULL;
    if (load(a, path, &v)) {
        bool have_other = false;
        if (is_f64) {
            char *f32 = arena_printf(a, "%s/%.*s.f32.vec", folder, (int)(dot - file), file);
            have_other = load(a, f32, &other);
            judge(file, "f64",
                  run(a, &v, "interp", "f64", &s, &r) ? against_f64(&v, &s, &r, diff) : INFINITY);
        }
        for (int b = 0; b < nbackends; b++)
            judge(file, arena_printf(a, "f32 %s", backends[b]),
                  run(a, &v, backends[b], "f32", &s, &r)
                      ? against_f32(&v, have_other ? &other : NULL, &r, diff)
                      : INFINITY);
    }
    arena_free(a);
}

/* f64 files, and f32 files of cases that have no f64 file. */
static int is_case(const struct dirent *d)
{
    const char *dot = strstr(d->d_name, ".vec");
    if (!dot || dot[4]) return 0;
    return strstr(d->d_name, ".f64.vec") || strstr(d->d_name, ".f32.vec");
}

static bool has_f64(const char *folder, const char *file)
{
    char path[4096];
    const char *dot = strstr(file, ".f32.vec");
    snprintf(path, sizeof path, "%s/%.*s.f64.vec", folder, (int)(dot - file), file);
    FILE *f = fopen(path, "rb");
    if (f) fclose(f);
    return f != NULL;
}

int main(int argc, char **argv)
{
    static char *usual[] = {"c", "interp"};
    const char *folder = argc > 1 ? argv[1] : DSOPT_SOURCE_DIR "/tests/data/vectors";
    struct dirent **files;
    int n = scandir(folder, &files, is_case, alphasort), done = 0;
    if (n < 0) {
        printf("%s: cannot be read\n", folder);
        return 1;
    }
    for (int i = 0; i < n; i++) {
        const char *file = files[i]->d_name;
        if (strstr(file, ".f64.vec") || !has_f64(folder, file)) {
            test_file(folder, file, argc > 2 ? argv + 2 : usual, argc > 2 ? argc - 2 : 2);
            done++;
        }
        free(files[i]);
    }
    free(files);
    printf("%d cases, %d failures\n", done, failures);
    return failures || !done ? 1 : 0;
}
