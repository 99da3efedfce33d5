/* Standalone C against the interpreter, bit for bit.
 *
 *   test_emit_c gcc -O3 -march=native -fno-math-errno
 *   every rule × storage: compiled by that command without a warning; kernels and programs over
 *   many tensors, and NAME_step over one, three steps each, gradients with NaN and infinities in
 *   the second
 *
 * Where the compiler is missing the test says so and is skipped. */
#include "rig.h"
#include "rules.h"
#include <dlfcn.h>
#include <unistd.h>

static const int64_t sizes[] = {0, 1, 127, 128, 129, 4096, 4097, 10000, 3};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Compiled into this process. */
static void *library_of(Arena *a, const char *text, const char *cc, const char *what)
{
    static int count; /* dlopen knows a library by its path */
    StrBuf why = {.arena = a};
    char *path = arena_printf(a, "%s/emit-%ld-%d.so", DSOPT_BUILD_DIR, (long)getpid(), count++);
    bool ok = cc_compile(text, path, true,
                         arena_printf(a, "%s -std=c99 -Wall -Wextra -Werror -pedantic", cc), &why);
    REQUIRE(ok, "%s: %s", what, why.text);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    REQUIRE(library, "%s: %s", what, dlerror());
    return library;
}

static void *symbol(void *library, const char *module, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s_%s", module, name);
    void *s = dlsym(library, full);
    REQUIRE(s, "no symbol %s", full);
    return s;
}

static void find_code(RigCode *code, void *library, const Plan *p, const Variant *v)
{
    for (uint32_t i = 0; i < v->nkernels; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%d", v->kernels[i].phase);
        *(void **)&code->kernels[i] = symbol(library, p->m->name, name);
    }
    static const char *const levels[] = {"global", "group", "class", "tensor"};
    for (uint32_t i = 0; i < p->nprograms; i++) {
        char name[32];
        snprintf(name, sizeof name, "s%d_%s", p->programs[i].phase, levels[p->programs[i].level]);
        *(void **)&code->programs[i] = symbol(library, p->m->name, name);
    }
    for (uint32_t i = 0; i < p->ncommit; i++) {
        char name[32];
        snprintf(name, sizeof name, "commit_%s", levels[p->commit[i].level]);
        *(void **)&code->commit[i] = symbol(library, p->m->name, name);
    }
}

static void many_tensors(const RigCode *code, const Plan *p, const Variant *v, const char *what)
{
    Arena a = {0};
    Rig r;
    rig_new(&r, &a, p, v, sizes, SIZES, 1); /* off any alignment */
    for (int step = 0; step < 3; step++) {
        r.active[3] = step != 0; /* comes in late: its t is behind */
        rig_activate(&r);
        rig_fill(&r, 1, step == 1, false);
        rig_interp(&r);
        rig_run(&r, code);
        rig_same(&r, what);
    }
    arena_free(&a);
}

/* Calls NAME_step, whose arguments depend on the rule: pointers of all slots, hyperparameters,
 * state, shape, key of draws, t. */
static int call_step(void *fn, Rig *r, double *hyper, double *state, bool shape, bool draws,
                     int64_t t)
{
    void *args[RIG_ELEMS + 8];
    size_t n = 0;
    for (uint32_t e = 0; e < r->p->m->nelem + r->v->ntemps; e++) args[n++] = r->got.ptr[0][e];
    args[n++] = hyper;
    if (state) args[n++] = state;
    if (shape) {
        args[n++] = (void *)1;
        args[n++] = (void *)1;
        args[n++] = (void *)(intptr_t)r->numel[0];
    }
    if (draws) args[n++] = (void *)(intptr_t)((uint64_t)r->numel[0] << 32 | (uint64_t)r->numel[0]);
    args[n++] = (void *)(intptr_t)t;
    /* All are 64-bit integers to the calling convention; surplus ones are ignored. */
    int (*step)(int64_t, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                void *, void *, void *, void *, void *);
    *(void **)&step = fn;
    while (n < 14) args[n++] = NULL;
    return step(r->numel[0], args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7],
                args[8], args[9], args[10], args[11], args[12], args[13]);
}

static void one_tensor(void *library, const Plan *p, const Variant *v, int64_t numel,
                       const char *what)
{
    Arena a = {0};
    Rig r;
    rig_new(&r, &a, p, v, &numel, 1, 0);
    double hyper[64] = {0}, state[64] = {0};
    uint32_t nhyper = 0, nstate = 0;
    bool shape = false, draws = false;
    uint32_t state_slot[64];
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (s->kind == SLOT_HYPER || s->kind == SLOT_INPUT)
            hyper[nhyper++] =
                s->level == LEVEL_GLOBAL ? r.got.global[s->index] : r.got.group[0][s->index];
        bool init = s->kind == SLOT_COUNT && strcmp(s->name, "init") == 0;
        if (rate_is_scalar(s->rate) && (s->kind == SLOT_STATE || s->kind == SLOT_EXPORT || init)) {
            state_slot[nstate] = i;
            state[nstate++] = s->kind == SLOT_STATE ? s->init : 0;
        }
        for (uint32_t j = 0; s->kind == SLOT_PROP && j < p->m->bodies[0].n; j++) {
            const Ins *ins = &p->m->bodies[0].ins[j];
            bool read = ins->op == IR_LOAD && ins->lit.slot == i && p->phase[0][j] >= 0;
            if (!read) continue;
            shape |= !strcmp(s->name, "ndim") || !strcmp(s->name, "rows") || !strcmp(s->name, "cols");
            draws |= !strncmp(s->name, "draw_", 5);
        }
    }
    /* Of another entry point t is the number of steps done. */
    bool is_step = strcmp(p->m->bodies[0].entry, "step") == 0;
    void *fn = symbol(library, p->m->name, p->m->bodies[0].entry);
    int64_t t = is_step;
    for (int step = 0; step < 3; step++) {
        rig_fill(&r, 1, step == 1, false);
        rig_interp(&r);
        int applied = call_step(fn, &r, hyper, nstate ? state : NULL, shape, draws, t);
        for (uint32_t k = 0; k < nstate; k++) {
            const Slot *s = &p->m->slots[state_slot[k]];
            *rig_place(&r, 0, (Place){s->level, s->index}) = state[k];
        }
        int skip = ir_slot_find(p->m, SLOT_SKIP, "skip");
        bool skipped = skip >= 0 && r.want.global[p->m->slots[skip].index] != 0;
        CHECK(applied == !skipped, "%s: returned %d", what, applied);
        t += is_step && applied;
        for (uint32_t i = 0; i < p->m->nslots; i++) { /* counted by the caller here */
            const Slot *s = &p->m->slots[i];
            if (s->kind == SLOT_COUNT || s->kind == SLOT_SKIP)
                *rig_place(&r, 0, (Place){s->level, s->index}) =
                    s->level == LEVEL_TENSOR ? r.want.tensor[0][s->index] : r.want.global[s->index];
        }
        rig_same(&r, what);
    }
    arena_free(&a);
}

static void check_rule(Arena *a, const IrModule *m, const char *storage, const char *cc)
{
    const Plan *p = plan_make(a, m);
    const Variant *v = rule_variant(a, p, storage);
    StrBuf text = {.arena = a};
    emit_standalone_c(&p, 1, v->storage, &text, NULL);
    const char *what = arena_printf(a, "%s [%s] by %s", m->name, storage, cc);
    void *library = library_of(a, text.text, cc, what);
    if (p->m->nbodies > 1 || p->m->bodies[0].view != VIEW_FLAT) {
        dlclose(library); /* by shape: tests/tile/test_views.c runs such code */
        return;
    }
    RigCode code;
    find_code(&code, library, p, v);
    many_tensors(&code, p, v, what);
    for (size_t i = 1; i < SIZES; i++) one_tensor(library, p, v, sizes[i], what);
    dlclose(library);
}

/* All entry points of a rule in one file: each against the interpreter of its module. */
static void entry_points(Arena *a, const char *rule, const char *cc)
{
    Modules modules = rule_entries(a, rule);
    REQUIRE(modules.n > 1, "%s has no entry points", rule);
    const Plan **plans = ARENA_ARRAY(a, const Plan *, modules.n);
    for (size_t i = 0; i < modules.n; i++) plans[i] = plan_make(a, modules.m[i]);
    const Variant *v = rule_variant(a, plans[0], "");
    StrBuf text = {.arena = a};
    emit_standalone_c(plans, modules.n, v->storage, &text, NULL);
    void *library = library_of(a, text.text, cc, rule);
    for (size_t i = 0; i < modules.n; i++) {
        const char *what = arena_printf(a, "%s on %s", rule, modules.m[i]->bodies[0].entry);
        one_tensor(library, plans[i], rule_variant(a, plans[i], ""), 5000, what);
    }
    dlclose(library);
}

/* A size of blocks that is no number for matrices of one row: neither the step nor the choice of the
 * CUDA header takes such a shape. */
static void no_blocks(Arena *a, const char *cc)
{
    static const char rule[] =
        "dsopt-ir 1\nmodule x compute f32\nslot p param f32.element\nslot g grad f32.element\n"
        "slot t count f64.tensor = 0\nslot rows prop f64.tensor\nslot numel prop f64.tensor\n"
        "slot r0 result f64.block\nslot block block f64.tensor\n"
        "select x\n  %0:f64.tensor = load numel\n  %1:f64.tensor = load rows\n"
        "  %2:f64.global = const 1\n  %3:f64.tensor = sub %1 %2\n  %4:f64.tensor = div %0 %3\n"
        "  store block %4\n"
        "body x step view block\n  %0:f32.element = load g\n  %1:f64.block = sum[block] %0 -> r0\n"
        "  %2:f32.block = round %1\n  %3:f32.element = mul %2 %0\n  store p %3\n";
    static const int64_t flat[] = {1, 8}, tall[] = {3, 8};
    typedef int (*StepFn)(int, const int64_t *, float *, const float *, const void *, int64_t,
                          void *);
    StrBuf text = {.arena = a}, header = {.arena = a}, why = {.arena = a};
    const Plan *p = plan_make(a, ir_parse(a, rule, &why));
    const Variant *v = rule_variant(a, p, "");
    emit_standalone_c(&p, 1, v->storage, &text, NULL);
    emit_cuda_h(&p, 1, v->storage, &header);
    sb_puts(&header, "int choose(int n, const int64_t *shape, int64_t *block);\n"
                     "int choose(int n, const int64_t *shape, int64_t *block)\n"
                     "{\n    (void)x_launches, (void)x_pointers, (void)ds_cuda_bytes, (void)ds_cuda_rows;\n"
                     "    return x_choose(n, shape, block);\n}\n");
    void *library = library_of(a, text.text, cc, "a rule of blocks"),
         *host = library_of(a, header.text, cc, "its CUDA header");
    int64_t (*work)(int, const int64_t *), size = 0;
    int (*choose)(int, const int64_t *, int64_t *);
    StepFn step;
    *(void **)&work = symbol(library, "x", "step_work");
    *(void **)&step = symbol(library, "x", "step");
    *(void **)&choose = dlsym(host, "choose");
    float g[24], x[24] = {5, 5};
    for (int i = 0; i < 24; i++) g[i] = (float)i;
    void *memory = arena_alloc(a, (size_t)(work(2, flat) + work(2, tall)));
    CHECK(step(2, flat, x, g, NULL, 1, memory) == 0 && x[1] == 5, "a step in blocks of infinity");
    CHECK(step(2, tall, x, g, NULL, 1, memory) == 1 && x[1] == 66, "blocks of 12: %g", (double)x[1]);
    CHECK(choose(2, flat, &size) == -1, "blocks of infinity on CUDA");
    CHECK(choose(2, tall, &size) == 0 && size == 12, "blocks of %lld", (long long)size);
    dlclose(library);
    dlclose(host);
}

/* What cc_compile says and leaves when it cannot do its work. */
static void refusals(Arena *a, const char *cc)
{
    const Plan *p = plan_make(a, rule_from_ir(a, "adamw"));
    const Variant *v = rule_variant(a, p, "");
    StrBuf text = {.arena = a};
    emit_standalone_c(&p, 1, v->storage, &text, NULL);
    const char *path = arena_printf(a, "%s/refused-%ld.so", DSOPT_BUILD_DIR, (long)getpid());
    const struct {
        const char *text, *path, *cc, *says;
    } cases[] = {
        {text.text, path, arena_printf(a, "%s -ffast-math", cc), "IEEE"},
        {text.text, path, "no-such-compiler -O2", "no-such-compiler"},
        {text.text, path, " ", "empty"},
        {"int x = ;\n", path, cc, "failed with status"},
        {text.text, "/no/such/folder/x.so", cc, "/no/such/folder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        StrBuf why = {.arena = a};
        bool ok = cc_compile(cases[i].text, cases[i].path, true, cases[i].cc, &why);
        CHECK(!ok && why.text && strstr(why.text, cases[i].says), "%s: %s", cases[i].cc,
              ok ? "compiled" : why.text);
        CHECK(access(cases[i].path, F_OK) != 0, "%s: left something at %s", cases[i].cc,
              cases[i].path);
    }
}

/* Backend cc itself: builds into the process, and gives back what it took. */
static void backend(Arena *a, const char *cc)
{
    const Backend *b = backend_find("cc");
    const BackendOptions o = {.cc = cc};
    const Plan *p = plan_make(a, rule_from_ir(a, "lamb"));
    const Variant *v = rule_variant(a, p, "");
    BuiltVariant kernels = {0};
    BuiltScalars scalars = {0};
    StrBuf why = {.arena = a};
    REQUIRE(b->build_variant(p, v, &o, &kernels, &why) && b->build_scalars(p, &o, &scalars, &why),
            "%s", why.text);
    RigCode code;
    memcpy(code.kernels, kernels.kernels, v->nkernels * sizeof *code.kernels);
    memcpy(code.programs, scalars.programs, p->nprograms * sizeof *code.programs);
    memcpy(code.commit, scalars.commit, p->ncommit * sizeof *code.commit);
    many_tensors(&code, p, v, "lamb by backend cc");
    b->free_image(kernels.image);
    b->free_image(scalars.image);
}

int main(int argc, char **argv)
{
    Arena a = {0};
    StrBuf cc = {.arena = &a}, why = {.arena = &a};
    for (int i = 1; i < argc; i++) sb_printf(&cc, "%s%s", i > 1 ? " " : "", argv[i]);
    BackendOptions o = {.cc = cc.text};
    if (!backend_find("cc")->probe(&o, &why)) SKIP("%s", why.text);
    refusals(&a, cc.text);
    backend(&a, cc.text);
    no_blocks(&a, cc.text);
    entry_points(&a, "schedule_free_adamw", cc.text);
    entry_points(&a, "schedule_free_sgd", cc.text);
    for (size_t i = 0; i < IR_RULES; i++) {
        const IrModule *m = rule_from_ir(&a, ir_rules[i]);
        check_rule(&a, m, "", cc.text);
        check_rule(&a, m, "p=bf16,g=f16,m=bf16", cc.text);
    }
    for (size_t i = 0; i < ds_stdlib_count; i++) {
        if (!strstr(ds_stdlib[i].text, "\noptimizer ")) continue;
        check_rule(&a, rule_from_stdlib(&a, ds_stdlib[i].name, false), "", cc.text);
        check_rule(&a, rule_from_stdlib(&a, ds_stdlib[i].name, true), "p=bf16,g=bf16", cc.text);
    }
    arena_free(&a);
    return check_done();
}
