/* Random modules through plan, tile C and runtime, against the interpreter: the same bits of
 * everything, step after step.
 *
 * A program is loaded from a trivial text and its module replaced, so that all else is what users
 * run: variants by storage, classes, rows, threads. One tensor in three has no gradient in the
 * second step; sizes are 0, 1, odd, more than a chunk.
 *
 *   in:  runtime_fuzz [COUNT [SEED [cc [KINDS]]]]   cc: standalone C, too, at a compiler run per
 *        module (-: without); KINDS: of random_module.h
 *   out: the module that differs, as text, and where */
#include "random_module.h"
#include "runtime/internal.h"

enum { T = 6, SIDES = 5 };

typedef struct Side {
    dsopt_context *ctx;
    dsopt_program *program;
    dsopt_optimizer *opt;
    char *p[T], *g[T];
} Side;

static const struct {
    const char *backend, *isa;
    int threads;
} sides[SIDES] = {
    {"interp", NULL, 1}, {"c", "sse2", 1}, {"c", NULL, 2}, {"c", "avx2", 1}, {"cc", NULL, 1}};

static const DType three[] = {DT_F32, DT_BF16, DT_F16};
static const dsopt_dtype public_dtype[DT_COUNT] = {
    [DT_F32] = DSOPT_F32, [DT_F16] = DSOPT_F16, [DT_BF16] = DSOPT_BF16};

static bool open_side(Side *s, int which)
{
    dsopt_config config = {.size = sizeof config,
                           .threads = sides[which].threads,
                           .backend = sides[which].backend,
                           .isa = sides[which].isa};
    dsopt_status st = dsopt_context_create(&config, &s->ctx);
    if (st == DSOPT_NOT_SUPPORTED) {
        printf("isa %s does not run here\n", sides[which].isa);
        return false;
    }
    REQUIRE(st == DSOPT_OK, "context: %s", dsopt_error_message(NULL));
    return true;
}

typedef struct Case {
    const char *text; /* of the module */
    Shape shape[T];
    int64_t numel[T];
    DType dtype[T], grad[T], state[2];
} Case;

static void load(Side *s, const Case *c)
{
    static const char rule[] = "optimizer x { hyper lr = 1; p -= lr * g }";
    REQUIRE(dsopt_program_compile(s->ctx, rule, "x.opt", NULL, &s->program) == DSOPT_OK, "%s",
            dsopt_error_message(s->ctx));
    Arena *a = &s->program->arena;
    IrModule *m = must_parse(a, c->text);
    DType *storage = ARENA_ARRAY(a, DType, m->nelem);
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        if (s->level == LEVEL_NONE && s->kind == SLOT_STATE)
            storage[s->index] = rate_is_element(s->rate) ? c->state[s->index % 2] : s->dtype;
    }
    storage[0] = storage[1] = DT_COUNT;
    for (int guarded = 0; guarded < 2; guarded++)
        s->program->modules[guarded] = (ProgramModule){.m = m, .storage = storage};
}

static void create(Side *s, const Case *c)
{
    static const char *const names[T] = {"delta", "Beta", "gamma", "alpha", "b", "e"};
    dsopt_tensor tensors[T];
    for (int t = 0; t < T; t++) {
        tensors[t] = (dsopt_tensor){.size = sizeof *tensors,
                                    .name = names[t],
                                    .group = t % 2 ? "two" : "one",
                                    .ndim = c->shape[t].ndim,
                                    .shape = c->shape[t].size,
                                    .param = s->p[t],
                                    .grad = s->g[t],
                                    .dtype = public_dtype[c->dtype[t]],
                                    .grad_dtype = public_dtype[c->grad[t]]};
    }
    dsopt_status st = dsopt_optimizer_create(s->ctx, s->program, tensors, T, &s->opt);
    REQUIRE(st == DSOPT_OK, "create: %s\n%s", dsopt_error_message(s->ctx), c->text);
    if (ir_slot_find(s->opt->m, SLOT_INPUT, "x") >= 0)
        REQUIRE(dsopt_set_input(s->opt, "x", 0.375) == DSOPT_OK, "%s", dsopt_error_message(s->ctx));
}

static void fill(Side *s, const Case *c, bool gradients, uint64_t state)
{
    seed = state;
    for (int t = 0; t < T; t++)
        for (int64_t i = 0; i < c->numel[t]; i++)
            elem_set(gradients ? s->g[t] : s->p[t], gradients ? c->grad[t] : c->dtype[t], i,
                     pick(8) ? noise(&seed) : odd_value());
}

/* The first slot that differs, or NULL. */
static const char *difference(Arena *a, const Side *x, const Side *y)
{
    const IrModule *m = x->opt->m;
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        if (s->kind == SLOT_RESULT || s->kind == SLOT_GRAD) continue;
        const ExecState *ex = &x->opt->entries[0].x, *ey = &y->opt->entries[0].x;
        if (s->level == LEVEL_GLOBAL && !same_bits(ex->global[s->index], ey->global[s->index]))
            return arena_printf(a, "%s is %a, not %a", s->name, ey->global[s->index],
                                ex->global[s->index]);
        for (uint32_t g = 0; s->level == LEVEL_GROUP && g < ex->ngroups; g++)
            if (!same_bits(ex->group[g][s->index], ey->group[g][s->index]))
                return arena_printf(a, "%s of group %u is %a, not %a", s->name, g,
                                    ey->group[g][s->index], ex->group[g][s->index]);
        for (size_t t = 0; s->level == LEVEL_TENSOR && t < ex->ntensors; t++)
            if (!same_bits(ex->tensors[t].block[s->index], ey->tensors[t].block[s->index]))
                return arena_printf(a, "%s of live tensor %zu is %a, not %a", s->name, t,
                                    ey->tensors[t].block[s->index], ex->tensors[t].block[s->index]);
        for (size_t t = 0; s->level == LEVEL_NONE && t < ex->ntensors; t++) {
            if (!ex->tensors[t].ptr[s->index]) continue; /* of other bodies */
            for (int64_t k = 0; k < exec_count(&ex->tensors[t], s->rate); k++) {
                double vx =
                    elem_get(ex->tensors[t].ptr[s->index], ex->tensors[t].storage[s->index], k);
                double vy =
                    elem_get(ey->tensors[t].ptr[s->index], ey->tensors[t].storage[s->index], k);
                if (!same_bits(vx, vy))
                    return arena_printf(
                        a, "%s[%lld] of live tensor %zu (%lld elements) is %a, not %a", s->name,
                        (long long)k, t, (long long)ex->tensors[t].numel, vy, vx);
            }
        }
    }
    return NULL;
}

static void take_step(Side *s, int number)
{
    for (size_t t = 0; t < T; t += 3) dsopt_bind_gradient(s->opt, t, number == 1 ? NULL : s->g[t]);
    REQUIRE(dsopt_accumulate(s->opt, 1) == DSOPT_OK, "%s", dsopt_error_message(s->ctx));
    dsopt_status st = dsopt_step(s->opt);
    REQUIRE(st == DSOPT_OK, "%s", dsopt_error_message(s->ctx));
}

static void random_case(Arena *a, Case *c)
{
    StrBuf why = {.arena = a};
    IrModule *m = ir_run_passes(a, random_module(a, false, true), NULL, NULL, &why);
    REQUIRE(m, "%s", why.text);
    c->text = print_module(a, m);
    static const int64_t some_sizes[] = {0, 1, 63, 127, 128, 129, 1000, 4096, 4097, 9000};
    static const Shape some_shapes[] = {
        {2, {1, 300}}, {2, {300, 1}},     {3, {3, 17, 5}}, {2, {33, 260}},  {2, {18, 4097}},
        {0, {0}},      {4, {2, 3, 4, 5}}, {2, {0, 7}},     {2, {100, 100}}, {3, {2, 1, 4200}},
        {4, {40, 30, 3, 3}}, {3, {5000, 1, 1}}, {3, {20, 16, 24}}, {3, {70, 7, 7}}};
    for (int t = 0; t < T; t++) {
        c->shape[t] = (Shape){1, {some_sizes[pick(pick(4) ? 7 : 10)]}};
        if ((random_kinds & RANDOM_VECTORS) && pick(3)) c->shape[t] = some_shapes[pick(14)];
        c->numel[t] = 1;
        for (int k = 0; k < c->shape[t].ndim; k++) c->numel[t] *= c->shape[t].size[k];
        c->dtype[t] = three[pick(4) % 3];
        c->grad[t] = three[pick(4) % 3];
    }
    c->state[0] = three[pick(4) % 3];
    c->state[1] = three[pick(4) % 3];
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 150;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    Side s[SIDES] = {0};
    bool open[SIDES];
    bool cc = argc > 3 && strcmp(argv[3], "-") != 0;
    unsigned kinds = argc > 4 ? (unsigned)atoi(argv[4]) : RANDOM_ALL;
    for (int k = 0; k < SIDES; k++) open[k] = (cc || k < SIDES - 1) && open_side(&s[k], k);
    for (long i = 0; i < count && check_failures < 3; i++) {
        Arena a = {0};
        Case c;
        seed = (first + (uint64_t)i) * 0x9e3779b97f4a7c15u;
        random_kinds = i % 4 ? kinds : kinds & pick(RANDOM_ALL + 1);
        random_case(&a, &c);
        uint64_t values = seed;
        for (int k = 0; k < SIDES; k++) {
            if (!open[k]) continue;
            load(&s[k], &c);
            for (int t = 0; t < T; t++) { /* off their alignment, differently on each side */
                s[k].p[t] = (char *)arena_alloc(&a, (size_t)c.numel[t] * 4 + 80) + k * 3 % 16;
                s[k].g[t] = (char *)arena_alloc(&a, (size_t)c.numel[t] * 4 + 80) + (k + t) * 3 % 32;
            }
            fill(&s[k], &c, false, values);
            create(&s[k], &c);
        }
        for (int number = 0; number < 3 && check_failures < 3; number++) {
            for (int k = 0; k < SIDES; k++) {
                if (!open[k]) continue;
                fill(&s[k], &c, true, values + (uint64_t)number);
                take_step(&s[k], number);
                const char *where = k ? difference(&a, &s[0], &s[k]) : NULL;
                CHECK(!where,
                      "module %ld, backend %s %s, step %d: %s, stored %s and %s, states %s and "
                      "%s\n%s",
                      i, sides[k].backend, sides[k].isa ? sides[k].isa : "", number, where,
                      dtype_name(c.dtype[0]), dtype_name(c.grad[0]), dtype_name(c.state[0]),
                      dtype_name(c.state[1]), c.text);
            }
        }
        for (int k = 0; k < SIDES; k++) {
            if (!open[k]) continue;
            dsopt_optimizer_destroy(s[k].opt);
            dsopt_program_release(s[k].program);
        }
        arena_free(&a);
    }
    for (int k = 0; k < SIDES; k++)
        if (open[k]) dsopt_context_destroy(s[k].ctx);
    return check_done();
}
