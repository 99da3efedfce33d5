/* Random modules, written without the builder, run before and after the passes: the same bits, step
 * after step. And each is printed and read back, and its text is damaged: an error or another
 * module, never a crash.
 *
 *   in:  ir_fuzz [COUNT [SEED]]       out: the module that differs, as text */
#include "interp_test.h"
#include "random_module.h"

/* ---- running --------------------------------------------------------------------------------- */

enum { T = 3 };

static void fill(Bound *b, uint64_t state)
{
    seed = state;
    for (int t = 0; t < T; t++) {
        for (int64_t i = 0; i < b->tensors[t].numel; i++) {
            set(b, "p", (size_t)t, i, odd_value());
            set(b, "g", (size_t)t, i, odd_value());
        }
    }
    int x = ir_slot_find(b->m, SLOT_INPUT, "x");
    if (x >= 0) b->global[b->m->slots[x].index] = odd_value();
}

/* What users see of the slots that both modules have. */
static bool same_result(Bound *x, Bound *y)
{
    for (uint32_t i = 0; i < y->m->nslots; i++) {
        const Slot *s = &y->m->slots[i];
        if (s->kind == SLOT_RESULT) continue;
        for (size_t t = 0; t < T; t++) {
            if (s->level != LEVEL_NONE) {
                size_t index = s->level == LEVEL_GROUP ? t % 2 : t;
                if (!same_bits(*place(x, s->name, index), *place(y, s->name, index))) return false;
                continue;
            }
            for (int64_t k = 0; k < exec_count(&x->tensors[t], s->rate); k++)
                if (!same_bits(get(x, s->name, t, k), get(y, s->name, t, k))) return false;
        }
    }
    return true;
}

static void check_passes(Arena *a, const char *text, const char *optimised)
{
    static Bound x, y;
    Shape shapes[T] = {{1, {1 + pick(9)}}, {1, {1 + pick(300)}}, {1, {pick(5) ? pick(2) : 4097}}};
    if (random_kinds & RANDOM_VECTORS) { /* batches, wide ones, none at all */
        shapes[0] = (Shape){2, {1 + pick(40), 1 + pick(9)}};
        shapes[1] = (Shape){3, {1 + pick(3), 1 + pick(20), 1 + pick(20)}};
        shapes[2] = pick(5) ? (Shape){(int)pick(3), {pick(3), pick(3)}} : (Shape){2, {18, 4097}};
    }
    static const char *const names[T] = {"b", "a", "c"};
    uint32_t groups[T] = {0, 1, 0};
    uint64_t inputs = seed;
    bind_shapes(&x, a, text, T, shapes, names, groups, 2);
    bind_shapes(&y, a, optimised, T, shapes, names, groups, 2);
    fill(&x, inputs);
    fill(&y, inputs);
    for (int step = 0; step < 3; step++) {
        x.tensors[1].active = y.tensors[1].active = step != 1;
        REQUIRE(interp_step(x.m, &x.x) && interp_step(y.m, &y.x), "out of memory");
        bool same = same_result(&x, &y);
        CHECK(same, "step %d\n--- before\n%s--- after\n%s", step, text, optimised);
        if (!same) return;
    }
}

/* Words taken from elsewhere in the text, lines twice or gone, single bytes. */
static void check_damage(Arena *a, const char *text)
{
    size_t n = strlen(text);
    char *copy = arena_alloc(a, 2 * n + 1);
    memcpy(copy, text, n + 1);
    for (uint32_t k = 1 + pick(3); k > 0; k--) {
        size_t from = pick((uint32_t)n), to = pick((uint32_t)n);
        size_t length = 1 + pick(12);
        if (from + length > n || to + length > n) continue;
        memmove(copy + to, copy + from, length);
    }
    StrBuf why = {.arena = a};
    IrModule *m = ir_parse(a, copy, &why);
    CHECK(m || why.len, "no message for\n%s", copy);
    if (!m) return;
    char *printed = print_module(a, m);
    CHECK_TEXT(print_module(a, must_parse(a, printed)), printed);
    CHECK(ir_run_passes(a, m, NULL, NULL, &why), "%s\n%s", why.text, copy);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1500;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    size_t instructions = 0, left = 0;
    for (long i = 0; i < count; i++) {
        Arena a = {0};
        seed = (first + (uint64_t)i) * 0x9e3779b97f4a7c15u;
        random_kinds = i % 2 ? pick(RANDOM_ALL + 1) : 0;
        IrModule *m = random_module(&a, pick(3) == 0, pick(2));
        StrBuf why = {.arena = &a};
        char *text = print_module(&a, m);
        bool ok = ir_verify(m, &why);
        CHECK(ok, "%s\n%s", why.text, text);
        IrModule *after = ok ? ir_run_passes(&a, m, NULL, NULL, &why) : NULL;
        CHECK(after, "module %ld: %s\n%s", i, why.text, text);
        if (after) {
            CHECK_TEXT(print_module(&a, must_parse(&a, text)), text);
            instructions += m->bodies[0].n;
            left += after->bodies[0].n;
            check_passes(&a, text, print_module(&a, after));
            check_damage(&a, text);
        }
        arena_free(&a);
        if (check_failures > 3) break;
    }
    printf("%zu of %zu instructions were left\n", left, instructions);
    CHECK(left > (size_t)count, "hardly anything was tested");
    return check_done();
}
