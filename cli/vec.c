/* vec.c - reads recorded trajectories; see vec.h. */
#include "vec.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS_MAX = 1000000, NUMEL_MAX = 1 << 28 };

typedef struct Reader {
    Arena *arena;
    Vec *v;
    StrBuf *err;
    const char *name;
    int line;
    char *at; /* rest of the line */
} Reader;

static bool fail(Reader *r, const char *what, const char *detail)
{
    sb_printf(r->err, "%s:%d: %s%s%s", r->name, r->line, what, detail ? ": " : "",
              detail ? detail : "");
    return false;
}

/* The next blank-separated field, NULL at the end of the line. */
static char *field(Reader *r)
{
    while (*r->at == ' ') r->at++;
    if (!*r->at) return NULL;
    char *start = r->at;
    while (*r->at && *r->at != ' ') r->at++;
    if (*r->at) *r->at++ = 0;
    return start;
}

static bool number(const char *s, double *out)
{
    char *end;
    if (!s || !*s) return false;
    *out = strtod(s, &end);
    return !*end;
}

static bool whole(const char *s, int64_t lo, int64_t hi, int64_t *out)
{
    double d;
    if (!number(s, &d) || !(d >= (double)lo && d <= (double)hi) || d != floor(d)) return false;
    *out = (int64_t)d;
    return true;
}

static VecTensor *tensor_named(Reader *r, const char *name)
{
    for (size_t i = 0; name && i < r->v->ntensors; i++)
        if (!strcmp(r->v->tensors[i].name, name)) return &r->v->tensors[i];
    return NULL;
}

static double *values(Reader *r, int64_t n)
{
    double *v = ARENA_ARRAY(r->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        char *f = field(r);
        if (!f) return fail(r, "fewer values than the tensor has elements", NULL), NULL;
        if (!number(f, &v[i])) return fail(r, "not a number", f), NULL;
    }
    if (field(r)) return fail(r, "more values than the tensor has elements", NULL), NULL;
    return v;
}

static bool read_shape(Reader *r, const char *text, int *ndim, int64_t *shape, int64_t *numel)
{
    *ndim = 0;
    *numel = 1;
    if (!text || !strcmp(text, "scalar")) return true;
    for (const char *p = text;; p++) {
        char *end;
        long long d = strtoll(p, &end, 10);
        if (end == p || d < 0 || d > NUMEL_MAX || *ndim == 16) return fail(r, "not a shape", text);
        shape[(*ndim)++] = d;
        if (d && *numel > NUMEL_MAX / d) return fail(r, "a tensor of too many elements", text);
        *numel *= d;
        if (!*end) return true;
        if (*end != ',') return fail(r, "not a shape", text);
        p = end;
    }
}

static bool read_tensor(Reader *r)
{
    char *name = field(r), *dims = field(r);
    if (!name) return fail(r, "a tensor without a name", NULL);
    if (!r->v->steps) return fail(r, "'steps' must stand before the first tensor", NULL);
    if (tensor_named(r, name)) return fail(r, "a second tensor of this name", name);
    VecTensor t = {.name = arena_strdup(r->arena, name)};
    if (!read_shape(r, dims, &t.ndim, t.shape, &t.numel)) return false;
    t.p = ARENA_ARRAY(r->arena, double *, r->v->steps + 1);
    t.g = ARENA_ARRAY(r->arena, double *, r->v->steps + 1);
    t.has_g_record = ARENA_ARRAY(r->arena, bool, r->v->steps + 1);
    ARENA_PUSH(r->arena, r->v->tensors, r->v->ntensors, r->v->tensors_cap, t);
    return true;
}

static bool read_step_values(Reader *r, bool gradient)
{
    int64_t step;
    char *s = field(r);
    if (!whole(s, gradient ? 1 : 0, r->v->steps, &step))
        return fail(r, "not a step of this file", s ? s : "");
    char *name = field(r);
    VecTensor *t = tensor_named(r, name);
    if (!t) return fail(r, "no such tensor", name ? name : "");
    if (gradient) {
        t->has_g_record[step] = true;
        if (!strcmp(r->at, "none")) return true;
    }
    double *v = values(r, t->numel);
    if (!v) return false;
    *(gradient ? &t->g[step] : &t->p[step]) = v;
    return true;
}

static bool read_state(Reader *r)
{
    char *name = field(r), *slot = field(r), *dims = field(r);
    VecTensor *t = tensor_named(r, name);
    if (!t) return fail(r, "no such tensor", name ? name : "");
    if (!slot || !dims) return fail(r, "a state needs a name and a shape", NULL);
    VecState s = {.slot = arena_strdup(r->arena, slot)};
    int ndim;
    int64_t shape[16];
    if (!read_shape(r, dims, &ndim, shape, &s.n)) return false;
    s.values = values(r, s.n);
    if (!s.values) return false;
    ARENA_PUSH(r->arena, t->states, t->nstates, t->states_cap, s);
    return true;
}

static bool read_hyper(Reader *r)
{
    char *name = field(r), *rest = r->at;
    if (!name || !*rest) return fail(r, "a hyper needs a name and a value", NULL);
    VecHyper h = {.name = arena_strdup(r->arena, name), .word = arena_strdup(r->arena, rest)};
    h.is_number = number(rest, &h.number);
    ARENA_PUSH(r->arena, r->v->hypers, r->v->nhypers, r->v->hypers_cap, h);
    return true;
}

static bool read_scalar(Reader *r)
{
    VecScalar s = {0};
    char *name = field(r), *value = field(r);
    if (!name || !number(value, &s.value))
        return fail(r, "a scalar needs a name and a number", name);
    s.name = arena_strdup(r->arena, name);
    ARENA_PUSH(r->arena, r->v->scalars, r->v->nscalars, r->v->scalars_cap, s);
    return true;
}

static bool read_line(Reader *r)
{
    char *kind = field(r);
    Vec *v = r->v;
    if (!kind || kind[0] == '#') return true;
    if (!strcmp(kind, "note")) {
        ARENA_PUSH(r->arena, v->notes, v->nnotes, v->notes_cap, arena_strdup(r->arena, r->at));
        return true;
    }
    if (!strcmp(kind, "rule")) return v->rule = arena_strdup(r->arena, r->at), true;
    if (!strcmp(kind, "dtype")) return v->dtype = arena_strdup(r->arena, r->at), true;
    if (!strcmp(kind, "source")) {
        v->source = arena_strdup(r->arena, r->at);
        size_t n = strcspn(r->at, " :");
        if (n >= sizeof v->library) return fail(r, "a library's name of too many letters", NULL);
        memcpy(v->library, r->at, n);
        return true;
    }
    if (!strcmp(kind, "steps")) {
        int64_t n;
        char *s = field(r);
        if (v->steps || !whole(s, 1, STEPS_MAX, &n))
            return fail(r, "steps: expected one number from 1", s ? s : "");
        v->steps = (int)n;
        return true;
    }
    if (!strcmp(kind, "hyper")) return read_hyper(r);
    if (!strcmp(kind, "tensor")) return read_tensor(r);
    if (!strcmp(kind, "p")) return read_step_values(r, false);
    if (!strcmp(kind, "g")) return read_step_values(r, true);
    if (!strcmp(kind, "state")) return read_state(r);
    if (!strcmp(kind, "scalar")) return read_scalar(r);
    return fail(r, "no such record", kind);
}

/* `scalar NAME_T` of T = 0 … steps as a tensor of one element whose value after step T + 1 that is,
 * with gradients of 0; it has `ndim` dimensions. */
static bool tensor_of_scalars(Reader *r, const char *name, int ndim)
{
    Vec *v = r->v;
    VecTensor t = {.name = name, .ndim = ndim, .numel = 1};
    for (int i = 0; i < ndim; i++) t.shape[i] = 1;
    t.p = ARENA_ARRAY(r->arena, double *, v->steps + 2);
    t.g = ARENA_ARRAY(r->arena, double *, v->steps + 2);
    t.has_g_record = ARENA_ARRAY(r->arena, bool, v->steps + 2);
    double *zero = t.p[0] = ARENA_ARRAY(r->arena, double, 1);
    for (int step = 0; step <= v->steps; step++) {
        const VecScalar *x = vec_scalar(v, arena_printf(r->arena, "%s_%d", name, step));
        if (!x) return false;
        t.p[step + 1] = ARENA_ARRAY(r->arena, double, 1);
        *t.p[step + 1] = x->value;
        t.g[step + 1] = zero;
        t.has_g_record[step + 1] = true;
    }
    ARENA_PUSH(r->arena, v->tensors, v->ntensors, v->tensors_cap, t);
    return true;
}

/* A schedule's file has scalars alone: lr_T, and beta1_T where it moves the momentum, too. */
static bool tensors_of_schedule(Reader *r)
{
    if (!tensor_of_scalars(r, "lr", 1)) return false;
    tensor_of_scalars(r, "beta1", 2);
    r->v->steps++;
    r->v->is_schedule = true;
    return true;
}

static bool check_complete(Reader *r)
{
    const Vec *v = r->v;
    if (!v->rule || !v->source || !v->dtype)
        return fail(r, "a file needs rule, source and dtype", NULL);
    if (strcmp(v->dtype, "f32") && strcmp(v->dtype, "f64"))
        return fail(r, "dtype: expected f32 or f64", v->dtype);
    if (!v->ntensors && !tensors_of_schedule(r))
        return fail(r, "there is no tensor: nothing can be replayed", NULL);
    for (size_t i = 0; i < v->ntensors; i++)
        for (int t = 0; t <= v->steps; t++) {
            const VecTensor *x = &v->tensors[i];
            if (x->p[t] && (t == 0 || x->has_g_record[t])) continue;
            return fail(r, "incomplete",
                        arena_printf(r->arena, "tensor '%s' has no %s of step %d", x->name,
                                     x->p[t] ? "g" : "p", t));
        }
    return true;
}

bool vec_parse(Arena *a, const char *name, const char *text, size_t len, Vec *out, StrBuf *err)
{
    *out = (Vec){0};
    Reader r = {.arena = a, .v = out, .err = err, .name = name, .line = 1};
    static const char magic[] = "# dsopt vector 1";
    if (len < sizeof magic - 1 || strncmp(text, magic, sizeof magic - 1))
        return fail(&r, "not a recorded trajectory: the first line is not '# dsopt vector 1'",
                    NULL);
    for (const char *p = text, *end = text + len; p < end; r.line++) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
        r.at = arena_strndup(a, p, n);
        if (n && r.at[n - 1] == '\r') r.at[n - 1] = 0;
        if (!read_line(&r)) return false;
        p += n + 1;
    }
    return check_complete(&r);
}

const VecHyper *vec_hyper(const Vec *v, const char *name)
{
    for (size_t i = 0; i < v->nhypers; i++)
        if (!strcmp(v->hypers[i].name, name)) return &v->hypers[i];
    return NULL;
}

const char *vec_given_name(const Vec *v, const VecTensor *t)
{
    size_t n = strlen(t->name);
    for (size_t i = 0; i < v->nhypers; i++) {
        const VecHyper *h = &v->hypers[i];
        bool names = strncmp(h->name, "name.", 5) == 0 && strlen(h->name) == n + 5;
        if (names && strcmp(h->name + 5, t->name) == 0) return h->word;
    }
    return t->name;
}

const VecScalar *vec_scalar(const Vec *v, const char *name)
{
    for (size_t i = 0; i < v->nscalars; i++)
        if (!strcmp(v->scalars[i].name, name)) return &v->scalars[i];
    return NULL;
}
