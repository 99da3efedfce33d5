/* backends.c - the same bits through the API: every backend and instruction set, one thread and
 * two, for every rule of the library.
 *
 * Tensors of many sizes, dtypes, groups and alignments, with gradients that come and go; the
 * interpreter is what all are compared to.
 *
 *   in:  rt_backends c adamw       (no rule: all)
 *   out: p, states and clocks of c (each level, 1 and 2 threads) equal interp's, bit by bit
 */
#include "rt.h"
#include "frontend/frontend.h"

enum { TENSORS = 13, STEPS = 4, MAX_STATE = 8 };

typedef struct Case { /* tensors of one run; memory is laid out alike in all runs */
    unsigned char *memory;
    size_t bytes;
    dsopt_tensor t[TENSORS];
    int64_t shape[TENSORS][3], numel[TENSORS];
} Case;

static const struct {
    const char *name, *group;
    int ndim;
    int64_t shape[3];
    dsopt_dtype dtype, grad;
    int misalign; /* bytes */
} layout[TENSORS] = {
    {"z.scalar", NULL, 0, {0}, DSOPT_F32, DSOPT_F32, 0},
    {"a.one", "head", 1, {1}, DSOPT_F32, DSOPT_F32, 4},
    {"tail", NULL, 1, {127}, DSOPT_F32, DSOPT_F32, 0},
    {"chunk", "head", 1, {4096}, DSOPT_F32, DSOPT_F32, 0},
    {"over", NULL, 1, {4097}, DSOPT_F32, DSOPT_F32, 1},
    {"empty", "none", 2, {0, 7}, DSOPT_F32, DSOPT_F32, 0},
    {"row", "head", 2, {1, 300}, DSOPT_F32, DSOPT_F32, 12},
    {"col", NULL, 2, {300, 1}, DSOPT_F32, DSOPT_F32, 0},
    {"cube", "body", 3, {5, 7, 131}, DSOPT_F32, DSOPT_F32, 0},
    {"big", "body", 2, {123, 457}, DSOPT_F32, DSOPT_F32, 20},
    {"half", "body", 1, {5000}, DSOPT_BF16, DSOPT_BF16, 2},
    {"half.mixed", NULL, 1, {333}, DSOPT_F32, DSOPT_BF16, 0},
    {"half.ieee", "head", 1, {1025}, DSOPT_F16, DSOPT_F16, 0},
};

static size_t width(dsopt_dtype d)
{
    return d == DSOPT_F32 ? 4 : 2;
}

static void fill(void *at, dsopt_dtype d, int64_t n, float scale, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        float v = scale * rt_random(&seed);
        uint16_t h = d == DSOPT_BF16
                         ? rt_bf16(v)
                         : (uint16_t)(0x3000 + (seed >> 40) % 0x0c00 + (v < 0 ? 0x8000 : 0));
        if (d == DSOPT_F32)
            memcpy((char *)at + 4 * i, &v, 4);
        else
            memcpy((char *)at + 2 * i, &h, 2);
    }
}

static void case_open(Case *c)
{
    c->bytes = 4 << 20;
    c->memory = aligned_alloc(64, c->bytes);
    REQUIRE(c->memory, "memory");
    memset(c->memory, 0, c->bytes);
    size_t at = 0;
    for (int k = 0; k < TENSORS; k++) {
        c->numel[k] = 1;
        for (int d = 0; d < layout[k].ndim; d++) c->numel[k] *= c->shape[k][d] = layout[k].shape[d];
        void *mem[2];
        for (int g = 0; g < 2; g++) {
            at = (at + 127) & ~(size_t)63;
            mem[g] = c->memory + at + layout[k].misalign;
            at += (size_t)layout[k].misalign + (size_t)c->numel[k] * 4;
        }
        REQUIRE(at < c->bytes, "layout");
        c->t[k] = rt_tensor(layout[k].name, layout[k].group, layout[k].dtype, mem[0], mem[1],
                            layout[k].ndim, c->shape[k]);
        c->t[k].grad_dtype = layout[k].grad;
        fill(mem[0], layout[k].dtype, c->numel[k], 1, (uint64_t)k + 1);
    }
}

/* All states of an optimizer, behind each other. */
static size_t states(dsopt_optimizer *o, double *out, size_t room)
{
    size_t at = 0;
    for (size_t i = 0; i < dsopt_state_count(o); i++) {
        dsopt_state_info info = {.size = sizeof info};
        REQUIRE(dsopt_state_info_read(o, i, &info) == DSOPT_OK && at + (size_t)info.count <= room,
                "info");
        REQUIRE(dsopt_state_read(o, i, DSOPT_F64, out + at, info.count) == DSOPT_OK, "read");
        at += (size_t)info.count;
    }
    return at;
}

enum { ROOM = 1 << 20 };
static double reference_state[ROOM], state[ROOM];

static const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f, 3e38f, -1e-40f};
enum { SPECIAL = sizeof special / sizeof *special };

/* NaN, infinities, zeros, subnormal and huge values in the vector body and the tail of two f32
 * gradients. */
static void poison(Case *c)
{
    for (int i = 0; i < SPECIAL; i++) {
        memcpy((char *)c->t[9].grad + 4 * (777 * i), &special[i], 4);
        memcpy((char *)c->t[2].grad + 4 * (126 - i), &special[i], 4);
    }
}

/* Which NaN a result is, is not specified: all become one. */
static void one_nan(Case *c)
{
    const uint32_t nan32 = 0x7fc00000;
    for (int k = 0; k < TENSORS; k++)
        for (int64_t i = 0; layout[k].dtype == DSOPT_F32 && i < c->numel[k]; i++) {
            float v;
            char *at = (char *)c->t[k].param + 4 * i;
            memcpy(&v, at, 4);
            if (isnan(v)) memcpy(at, &nan32, 4);
        }
}

/* Of a group, where the rule has such a hyperparameter; of all, where it has one value. */
static void set_some(Rt *r, dsopt_optimizer *o, const char *group, const char *name, double value)
{
    if (dsopt_set(o, group, name, value) == DSOPT_OK) return;
    const char *why = dsopt_error_message(r->ctx);
    if (strstr(why, "one value for all groups"))
        rt_set(r, o, NULL, name, value);
    else
        CHECK(strstr(why, "no hyperparameter"), "%s: %s", name, why);
}

/* Runs the program on fresh tensors; the case and its states are what is compared. */
static size_t run(dsopt_program *p, const char *backend, const char *isa, int threads,
                  bool poisoned, Case *c, double *out, dsopt_result *results)
{
    Rt r;
    rt_open_with(&r, backend, isa, threads);
    case_open(c);
    dsopt_program_retain(p);
    dsopt_optimizer *o = rt_optimizer(&r, p, c->t, TENSORS);
    set_some(&r, o, "head", "lr", 0.01);
    set_some(&r, o, "body", "wd", 0.1);
    for (size_t i = 0; i < dsopt_input_count(o); i++)
        REQUIRE(dsopt_set_input(o, dsopt_input_name(o, i), 0.7) == DSOPT_OK, "an input");
    for (int s = 0; s < STEPS; s++) {
        for (int k = 0; k < TENSORS; k++) {
            fill((void *)c->t[k].grad, layout[k].grad, c->numel[k], s == 1 ? 1e-20f : 0.1f,
                 (uint64_t)(1000 * s + k));
            bool absent = (s == 1 && k % 3 == 0) || (s == 2 && k == 9);
            REQUIRE(dsopt_bind_gradient(o, (size_t)k, absent ? NULL : c->t[k].grad) == DSOPT_OK,
                    "bind");
        }
        if (s == 2) ((uint16_t *)c->t[10].grad)[4321] = 0x7f80; /* a skipped step in the middle */
        if (poisoned && s == 0) poison(c);
        results[s] = rt_step(&r, o).result;
    }
    one_nan(c);
    size_t n = states(o, out, ROOM);
    dsopt_optimizer_destroy(o);
    rt_close(&r);
    return n;
}

static bool same(const double *a, const double *b, size_t n, size_t *at)
{
    for (*at = 0; *at < n; ++*at)
        if (memcmp(&a[*at], &b[*at], 8) != 0 && !(isnan(a[*at]) && isnan(b[*at]))) return false;
    return true;
}

typedef struct Reference {
    bool poisoned;
    Case c;
    size_t n;
    dsopt_result results[STEPS];
    char what[96];
} Reference;

static void compare(dsopt_program *p, const char *backend, const char *isa, int threads,
                    const Reference *ref)
{
    Case c;
    char what[160];
    dsopt_result results[STEPS];
    snprintf(what, sizeof what, "%s%s on %s %s, %d threads", ref->what,
             ref->poisoned ? " with NaN" : "", backend, isa ? isa : "", threads);
    size_t at = 0, n = run(p, backend, isa, threads, ref->poisoned, &c, state, results);
    for (int s = 0; s < STEPS; s++)
        CHECK(results[s] == ref->results[s], "%s step %d: %s", what, s,
              dsopt_result_name(results[s]));
    CHECK(n == ref->n && same(reference_state, state, n, &at),
          "%s: state value %zu is %a, interp has %a", what, at, state[at], reference_state[at]);
    CHECK(memcmp(c.memory, ref->c.memory, c.bytes) == 0, "%s: tensors differ", what);
    for (int k = 0; k < TENSORS; k++) {
        const unsigned char *x = c.t[k].param, *y = ref->c.t[k].param;
        for (int64_t i = 0; i < c.numel[k]; i++) {
            size_t w = width(layout[k].dtype), b = (size_t)i * w;
            if (memcmp(x + b, y + b, w) == 0) continue;
            CHECK(memcmp(x + b, y + b, w) == 0, "%s: %s[%lld]", what, layout[k].name, (long long)i);
            break;
        }
    }
    free(c.memory);
}

static bool usable(const char *backend, const char *isa)
{
    static char told[256];
    dsopt_context *ctx;
    dsopt_config cfg = {.size = sizeof cfg, .backend = backend, .isa = isa, .threads = 1};
    bool ok = dsopt_context_create(&cfg, &ctx) == DSOPT_OK;
    if (!ok && strcmp(told, dsopt_error_message(NULL)) != 0) {
        snprintf(told, sizeof told, "%s", dsopt_error_message(NULL));
        printf("not compared: %s\n", told);
    }
    dsopt_context_destroy(ctx);
    return ok;
}

/* One program, whose code is built once: with finite gradients, then with NaN and infinities. */
static void rule(const char *backend, const char *name, const char *defines, const char *storage)
{
    static const char *const levels[] = {NULL, "sse2", "avx2", "avx512"};
    static Reference ref;
    Rt r;
    dsopt_program *p;
    dsopt_program_options po = {.size = sizeof po, .defines = defines, .storage = storage};
    size_t len;
    char around[64];
    if (strstr(stdlib_text(name, &len), "(inner: rule")) { /* a wrapper: around AdamW */
        snprintf(around, sizeof around, "%s(adamw)", name);
        po.rule = around;
    }
    rt_open_with(&r, "interp", NULL, 1);
    REQUIRE(dsopt_program_load(r.ctx, name, &po, &p) == DSOPT_OK, "%s", dsopt_error_message(r.ctx));
    snprintf(ref.what, sizeof ref.what, "%s(%s; %s)", name, defines ? defines : "",
             storage ? storage : "");
    for (int poisoned = 0; poisoned < 2; poisoned++) {
        ref.poisoned = poisoned;
        ref.n = run(p, "interp", NULL, 1, poisoned, &ref.c, reference_state, ref.results);
        CHECK(ref.results[0] == DSOPT_STEP_APPLIED && ref.results[2] == DSOPT_STEP_SKIPPED_OVERFLOW,
              "%s: the case itself: %s, %s", name, dsopt_result_name(ref.results[0]),
              dsopt_result_name(ref.results[2]));
        for (size_t l = 0; l < (strcmp(backend, "c") == 0 ? 4 : 1); l++) {
            if (!usable(backend, levels[l])) continue;
            for (int threads = 1; threads <= 3; threads++)
                compare(p, backend, levels[l], threads, &ref);
        }
        free(ref.c.memory);
    }
    dsopt_program_release(p);
    rt_close(&r);
}

/* Rules that are named, then with their first case alone; else all. */
static bool wanted(int argc, char **argv, const char *name)
{
    bool yes = argc < 3;
    for (int k = 2; k < argc; k++) yes |= strcmp(argv[k], name) == 0;
    return yes;
}

/* Whether a file of the library has a rule, and not transforms only. */
static bool is_optimizer(const char *name)
{
    size_t len;
    const char *text = stdlib_text(name, &len);
    return text && strstr(text, "\noptimizer ");
}

int main(int argc, char **argv)
{
    static const struct {
        const char *rule, *defines, *storage;
    } cases[] = {{"sgd", NULL, NULL},
                 {"sgd", "use_momentum=1;nesterov=1", NULL},
                 {"sgd", "use_momentum=1", "buf=bf16"},
                 {"sgd", "use_momentum=1;maximize=1", NULL},
                 {"adam", NULL, NULL},
                 {"adamw", NULL, NULL},
                 {"adamw", NULL, "m=bf16,v=f16"},
                 {"adamw", "clip=1", NULL},
                 {"amsgrad", NULL, NULL},
                 {"amsgrad", "decoupled=1", NULL},
                 {"nadam", NULL, NULL},
                 {"nadam", "decoupled=1", NULL},
                 {"radam", NULL, NULL},
                 {"radam", "decoupled=1", NULL},
                 {"rmsprop", NULL, NULL},
                 {"rmsprop", "centered=1;use_momentum=1", NULL},
                 {"adagrad", NULL, NULL},
                 {"lion", NULL, NULL},
                 {"lion", "cautious=1", NULL},
                 {"lion", "cautious_wd=1", NULL},
                 {"adan", NULL, NULL},
                 {"adan", "no_prox=1", NULL},
                 {"adan", "idle_first=1", NULL},
                 {"adopt", NULL, NULL},
                 {"adopt", "clip=0", NULL},
                 {"adopt", "decoupled=1", NULL},
                 {"rprop", NULL, NULL},
                 {"lamb", NULL, NULL},
                 {"lamb", "clip=0;grad_averaging=0;bias_correction=0", NULL},
                 {"lamb", "trust_clip=1;always_adapt=1;decoupled=1", NULL},
                 {"lamb", NULL, "m=bf16,v=bf16"}};
    const size_t ncases = sizeof cases / sizeof *cases;
    REQUIRE(argc >= 2, "usage: rt_backends BACKEND [RULE …]");
    if (!usable(argv[1], NULL)) SKIP("backend %s: %s", argv[1], dsopt_error_message(NULL));
    for (size_t i = 0; i < ncases; i++) {
        bool again = i > 0 && strcmp(cases[i].rule, cases[i - 1].rule) == 0;
        if (wanted(argc, argv, cases[i].rule) && !(argc > 2 && again))
            rule(argv[1], cases[i].rule, cases[i].defines, cases[i].storage);
    }
    for (size_t i = 0; i < stdlib_count(); i++) { /* rules that were added since */
        bool listed = !is_optimizer(stdlib_name(i));
        for (size_t k = 0; k < ncases; k++) listed |= strcmp(cases[k].rule, stdlib_name(i)) == 0;
        if (!listed && wanted(argc, argv, stdlib_name(i)))
            rule(argv[1], stdlib_name(i), NULL, NULL);
    }
    return check_done();
}
