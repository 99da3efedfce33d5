/* case.c - cases: made up from a seed, written to files and read from them.
 *
 *     #! rule: lookahead(base, k = 2)        as dsopt_program_options has them
 *     #! storage: m1=bf16
 *     #! steps: 3
 *     #! seed: 77
 *     #! special: 1
 *     #! tensor: fc one f32 bf16 4 5x7       name, group, dtypes of p and g, misalignment, shape
 *     optimizer base { … }
 */
#include "rules.h"
#include "tests/check.h"
#include <string.h>

static const dsopt_dtype dtypes[] = {DSOPT_F32, DSOPT_BF16, DSOPT_F16};

/* ---- made up --------------------------------------------------------------------------------- */

static void random_shape(uint64_t *state, CaseTensor *t, bool wide)
{
    static const struct {
        int ndim;
        int64_t shape[4];
    } some[] = {{0, {0}},          {1, {1}},       {1, {7}},         {1, {300}},      {2, {1, 9}},
                {2, {9, 1}},       {2, {5, 7}},    {2, {16, 16}},    {2, {33, 129}},  {3, {2, 3, 5}},
                {3, {4, 1, 6}},    {4, {6, 3, 3, 3}}, {4, {2, 2, 1, 5}}, {2, {0, 4}}, {1, {0}},
                {3, {3, 0, 2}},    {2, {1, 1}},    {1, {4097}},      {2, {70, 61}},   {3, {1, 40, 33}},
                {4, {30, 20, 3, 3}}, {4, {700, 2, 1, 1}}, {3, {23, 7, 7}}, {3, {12, 16, 24}}},
      large[] = {{2, {2, 4100}}, {2, {17, 4097}}, {1, {9000}}, {3, {2, 3, 4099}}, {2, {300, 40}},
                 {2, {5000, 2}}, {4, {5000, 1, 1, 1}}, {3, {999, 3, 4}}};
    uint32_t k = below(state, wide ? FUZZ_COUNT(large) : FUZZ_COUNT(some));
    t->ndim = wide ? large[k].ndim : some[k].ndim;
    memcpy(t->shape, wide ? large[k].shape : some[k].shape, sizeof t->shape);
}

void case_random(Arena *a, uint64_t seed, FuzzCase *c)
{
    static const char *const names[CASE_TENSORS] = {"delta", "Beta", "gamma", "a.0", "b", "e", "a", "z"};
    static const char *const groups[] = {"two", "one", "default"};
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    *c = (FuzzCase){.seed = seed};
    c->text = program_random(a, &state, &c->rule, &c->storage);
    c->ntensors = 2 + (int)below(&state, CASE_TENSORS - 2);
    c->steps = 2 + (int)below(&state, 3);
    c->special = below(&state, 6) == 0;
    bool mixed = below(&state, 3) == 0;
    for (int i = 0; i < c->ntensors; i++) {
        CaseTensor *t = &c->t[i];
        *t = (CaseTensor){.name = names[i], .group = groups[below(&state, 3)]};
        random_shape(&state, t, i == 0 && below(&state, 3) == 0);
        t->dtype = dtypes[mixed ? below(&state, 3) : 0];
        t->grad = mixed && below(&state, 3) == 0 ? dtypes[below(&state, 3)] : t->dtype;
        t->misaligned = below(&state, 3) ? 0 : (int)below(&state, 32);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

void case_write(const FuzzCase *c, StrBuf *out)
{
    if (c->rule) sb_printf(out, "#! rule: %s\n", c->rule);
    if (c->storage) sb_printf(out, "#! storage: %s\n", c->storage);
    sb_printf(out, "#! steps: %d\n#! seed: %llu\n#! special: %d\n", c->steps,
              (unsigned long long)c->seed, c->special);
    for (int i = 0; i < c->ntensors; i++) {
        const CaseTensor *t = &c->t[i];
        sb_printf(out, "#! tensor: %s %s %s %s %d ", t->name, t->group, dsopt_dtype_name(t->dtype),
                  dsopt_dtype_name(t->grad), t->misaligned);
        for (int d = 0; d < t->ndim; d++)
            sb_printf(out, "%s%lld", d ? "x" : "", (long long)t->shape[d]);
        sb_puts(out, t->ndim ? "\n" : "scalar\n");
    }
    sb_puts(out, c->text);
}

static dsopt_dtype dtype_named(const char *name)
{
    for (size_t i = 0; i < FUZZ_COUNT(dtypes); i++)
        if (strcmp(dsopt_dtype_name(dtypes[i]), name) == 0) return dtypes[i];
    return DSOPT_DTYPE_DEFAULT;
}

static bool read_tensor(Arena *a, const char *line, CaseTensor *t)
{
    char name[32], group[32], dtype[8], grad[8], shape[64];
    if (sscanf(line, "%31s %31s %7s %7s %d %63s", name, group, dtype, grad, &t->misaligned, shape) != 6)
        return false;
    t->name = arena_strdup(a, name);
    t->group = arena_strdup(a, group);
    t->dtype = dtype_named(dtype);
    t->grad = dtype_named(grad);
    for (char *at = shape; *at >= '0' && *at <= '9' && t->ndim < 4; at += *at == 'x')
        t->shape[t->ndim++] = strtoll(at, &at, 10);
    return t->dtype && t->grad;
}

/* The value of a line "#! key: value"; NULL: another line. */
static char *value_of(Arena *a, const char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, "#! ", 3) != 0 || strncmp(line + 3, key, n) != 0 || line[3 + n] != ':') return NULL;
    line += 4 + n;
    while (*line == ' ') line++;
    return arena_strndup(a, line, strcspn(line, "\n"));
}

bool case_read(Arena *a, const char *path, FuzzCase *c)
{
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    StrBuf all = {.arena = a}, text = {.arena = a};
    char buffer[4096], *value;
    size_t n;
    sb_puts(&all, "");
    sb_puts(&text, "");
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0) sb_putn(&all, buffer, n);
    fclose(f);
    *c = (FuzzCase){.steps = 2};
    bool ok = true;
    for (const char *line = all.text; *line; line += *line == '\n') {
        const char *end = line + strcspn(line, "\n");
        if ((value = value_of(a, line, "rule"))) c->rule = value;
        if ((value = value_of(a, line, "storage"))) c->storage = value;
        if ((value = value_of(a, line, "steps"))) c->steps = atoi(value);
        if ((value = value_of(a, line, "seed"))) c->seed = strtoull(value, NULL, 10);
        if ((value = value_of(a, line, "special"))) c->special = atoi(value);
        if ((value = value_of(a, line, "tensor")))
            ok = ok && c->ntensors < CASE_TENSORS && read_tensor(a, value, &c->t[c->ntensors++]);
        if (strncmp(line, "#!", 2) != 0) {
            sb_putn(&text, line, (size_t)(end - line));
            sb_puts(&text, "\n");
        }
        line = end;
    }
    c->text = text.text;
    return ok && c->ntensors > 0;
}
