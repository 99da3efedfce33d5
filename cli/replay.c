/* replay.c - `dsoptc replay [RULE] FILE.vec`: a rule beside what a library computed, step by step.
 *
 *     step   1  abs 5.6e-17  rel 1.1e-16  ulp 1   w[3]
 *     worst: abs 1.1e-16 rel 4.4e-16 ulp 4 at step 9 tensor conv[17]
 */
#include "replay.h"
#include "cli.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Worst {
    double abs, rel, ulp;
    int step;
    const char *where;
    int64_t index;
    bool any;
} Worst;

typedef struct Compare {
    bool f64, checked;
    double atol, rtol;
    int64_t over; /* values beyond atol + rtol * |theirs| */
} Compare;

static double ulp_of(double x, bool f64)
{
    if (!isfinite(x)) return INFINITY;
    if (f64) return nextafter(fabs(x), INFINITY) - fabs(x);
    float f = fabsf((float)x);
    return (double)(nextafterf(f, INFINITY) - f);
}

/* NaN against NaN agrees; against a number it is infinitely far. */
static void compare(Compare *c, Worst *w, const double *ours, const double *theirs, int64_t n,
                    int step, const char *where)
{
    for (int64_t i = 0; i < n; i++) {
        bool both_nan = isnan(ours[i]) && isnan(theirs[i]);
        double d = both_nan || ours[i] == theirs[i] ? 0 : fabs(ours[i] - theirs[i]);
        if (isnan(d)) d = INFINITY;
        if (!(d <= c->atol + c->rtol * fabs(theirs[i])) && !both_nan) c->over++;
        if (w->any && !(d > w->abs)) continue;
        *w = (Worst){d,
                     d == 0 ? 0 : d / fabs(theirs[i]),
                     d == 0 ? 0 : d / ulp_of(theirs[i], c->f64),
                     step,
                     where,
                     i,
                     true};
    }
}

static void join(Worst *into, const Worst *w)
{
    if (w->any && (!into->any || w->abs > into->abs)) *into = *w;
}

static void compare_states(Arena *a, const Vec *v, const ReplaySetup *s, const ReplayResult *r,
                           Compare *c, Worst *worst)
{
    for (size_t i = 0; i < v->ntensors; i++)
        for (size_t j = 0; j < v->tensors[i].nstates; j++) {
            const VecState *theirs = &v->tensors[i].states[j];
            Worst w = {0};
            bool mapped = false;
            for (size_t k = 0; k < s->nstates; k++) {
                if (strcmp(s->states[k].theirs, theirs->slot) || !r->state[i][k]) continue;
                mapped = true;
                const char *where = arena_printf(a, "%s.%s", v->tensors[i].name, theirs->slot);
                compare(c, &w, r->state[i][k], theirs->values, theirs->n, v->steps, where);
            }
            if (!mapped) printf("state %s.%s  not compared\n", v->tensors[i].name, theirs->slot);
            if (w.any)
                printf("state %-20s abs %.3g rel %.3g ulp %.3g [%lld]\n", w.where, w.abs, w.rel,
                       w.ulp, (long long)w.index);
            join(worst, &w);
        }
}

static void compare_globals(Arena *a, const Vec *v, const ReplaySetup *s, const ReplayResult *r,
                            Compare *c, Worst *worst)
{
    for (size_t k = 0; k < s->nstates; k++) {
        if (!s->states[k].global) continue;
        Worst w = {0};
        const char *where = arena_printf(a, "scalar %s", s->states[k].theirs);
        compare(c, &w, &r->global[k], &vec_scalar(v, s->states[k].theirs)->value, 1, v->steps,
                where);
        printf("%-26s abs %.3g rel %.3g ulp %.3g\n", where, w.abs, w.rel, w.ulp);
        join(worst, &w);
    }
}

static bool read_tolerance(const Options *o, OptionId id, double *out)
{
    char *end;
    *out = 0;
    if (!o->value[id]) return true;
    *out = strtod(o->value[id], &end);
    if (!*end && end != o->value[id] && *out >= 0) return true;
    cli_error("%s '%s': expected a number from 0", id == OPT_ATOL ? "--atol" : "--rtol",
              o->value[id]);
    return false;
}

static int report(Arena *a, const Options *o, const Vec *v, const ReplaySetup *s,
                  const ReplayResult *r)
{
    Compare c = {.f64 = s->compute && !strcmp(s->compute, "f64"),
                 .checked = o->value[OPT_ATOL] || o->value[OPT_RTOL]};
    if (!read_tolerance(o, OPT_ATOL, &c.atol) || !read_tolerance(o, OPT_RTOL, &c.rtol))
        return EXIT_USAGE;
    Worst worst = {0};
    for (int t = 1; t <= v->steps; t++) {
        Worst w = {0};
        for (size_t i = 0; i < v->ntensors; i++)
            compare(&c, &w, r->p[i][t], v->tensors[i].p[t], v->tensors[i].numel, t,
                    v->tensors[i].name);
        const VecScalar *norm = vec_scalar(v, arena_printf(a, "norm_%d", t));
        if (norm && !isnan(r->grad_norm[t]))
            compare(&c, &w, &r->grad_norm[t], &norm->value, 1, t, "grad_norm");
        printf("step %3d  abs %-10.3g rel %-10.3g ulp %-8.3g %s[%lld]\n", t, w.abs, w.rel, w.ulp,
               w.any ? w.where : "-", (long long)w.index);
        join(&worst, &w);
    }
    compare_states(a, v, s, r, &c, &worst);
    compare_globals(a, v, s, r, &c, &worst);
    if (c.checked && c.over)
        printf("%lld values differ by more than %g + %g * |theirs|\n", (long long)c.over, c.atol,
               c.rtol);
    printf("worst: abs %.6g rel %.6g ulp %.6g at step %d tensor %s[%lld]\n", worst.abs, worst.rel,
           worst.ulp, worst.step, worst.any ? worst.where : "-", (long long)worst.index);
    return c.checked && c.over ? EXIT_INPUT : EXIT_OK;
}

static bool choose_precision(const Options *o, const Vec *v, ReplaySetup *s)
{
    static const char *const known_backends[] = {"interp", "c", "cc"}, *const precisions[] = {
                                                                           "f32", "f64"};
    const char *precision = o->value[OPT_PRECISION];
    s->backend = o->value[OPT_BACKEND] ? o->value[OPT_BACKEND] : "interp";
    if (!options_one_of(o, OPT_BACKEND, known_backends, 3) ||
        !options_one_of(o, OPT_PRECISION, precisions, 2))
        return false;
    bool interp = !strcmp(s->backend, "interp");
    s->compute = precision ? precision : interp ? v->dtype : "f32";
    if (interp || strcmp(s->compute, "f64")) return true;
    cli_error("--precision f64 is the interpreter's; backend '%s' computes in f32", s->backend);
    return false;
}

/* Defines and include folders of the command line, as the C API takes them. */
static void add_program_options(Arena *a, const Options *o, ReplaySetup *s)
{
    for (size_t i = 0; i < o->defines.n; i++)
        s->defines = arena_printf(a, "%s%s%s", s->defines ? s->defines : "", s->defines ? ";" : "",
                                  o->defines.v[i]);
    for (size_t i = 0; i < o->includes.n; i++)
        s->include_dirs = arena_printf(a, "%s%s%s", s->include_dirs ? s->include_dirs : "",
                                       s->include_dirs ? ":" : "", o->includes.v[i]);
}

/* What whoever ports a rule has to know: the file's notes, and its values that were not used. */
static void tell_of_file(const Options *o, const Vec *v)
{
    for (size_t i = 0; i < v->nnotes; i++) printf("note: %s\n", v->notes[i]);
    size_t unused = 0;
    for (size_t i = 0; i < v->nhypers; i++) {
        bool used = false;
        for (size_t k = 0; k < o->sets.n; k++) {
            const char *at = strstr(o->sets.v[k], "=@");
            used |= at && !strcmp(at + 2, v->hypers[i].name);
        }
        if (used) continue;
        printf("%s%s ", unused++ ? ", " : "not used of the file: ", v->hypers[i].name);
        if (v->hypers[i].is_number)
            printf("%.15g", v->hypers[i].number);
        else
            printf("%s", v->hypers[i].word);
    }
    if (unused) printf(" (--set NAME=@OTHER)\n");
}

int cmd_replay(Arena *a, const Options *o)
{
    if (o->inputs.n < 1 || o->inputs.n > 2) {
        cli_error(
            "replay takes one recorded file, or a rule and a file: dsoptc replay [RULE] FILE.vec");
        return EXIT_USAGE;
    }
    const char *path = o->inputs.v[o->inputs.n - 1],
               *rule = o->inputs.n == 2 ? o->inputs.v[0] : NULL;
    Session session;
    if (!session_open(&session, a, o, path)) return session_finish(&session), EXIT_INPUT;
    const SourceFile *f = &session.sources.files[session.file];
    StrBuf err = {.arena = a};
    Vec v;
    ReplaySetup s = {0};
    ReplayResult result;
    bool own = false; /* a rule that the table does not know */
    bool ok = vec_parse(a, path, f->text, f->len, &v, &err);
    if (ok) {
        StrBuf unmapped = {.arena = a};
        ReplaySetup mapped = {0};
        bool known = replay_map(a, &v, &mapped, &unmapped);
        if (!rule || (known && !strcmp(rule, mapped.rule))) {
            s = mapped;
            ok = known;
            if (!known) sb_puts(&err, unmapped.text);
        } else {
            s.rule = rule;
            s.which = o->value[OPT_RULE];
            own = true;
        }
    }
    for (size_t i = 0; ok && i < o->sets.n; i++) ok = replay_set(a, &v, &s, o->sets.v[i], &err);
    for (size_t i = 0; ok && i < o->states.n; i++)
        ok = replay_state(a, &v, &s, o->states.v[i], &err);
    if (ok && own) replay_same_states(a, &v, &s);
    if (!ok) {
        cli_error("%s%s%s", strstr(err.text, path) ? "" : path, strstr(err.text, path) ? "" : ": ",
                  err.text);
        return EXIT_INPUT;
    }
    if (!choose_precision(o, &v, &s)) return EXIT_USAGE;
    add_program_options(a, o, &s);
    printf("%s: %s, %s; rule '%s', %s %s\n", path, v.rule, v.source, s.which ? s.which : s.rule,
           s.backend, s.compute);
    if (own) tell_of_file(o, &v);
    if (!replay_run(a, &v, &s, &result, &err)) {
        cli_error("%s: %s", path, err.text);
        return EXIT_INPUT;
    }
    return report(a, o, &v, &s, &result);
}
