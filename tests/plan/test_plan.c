/* Plans against recorded text, and against what must hold for every plan.
 *
 *   in:  ir/lamb.ir, storage ""
 *   out: equal to golden/lamb.plan; with DSOPT_BLESS set, that file is written
 *
 * Every rule of the standard library is planned in several storages; its kernels are walked as a
 * backend would walk them. */
#include "../emit/rules.h"
#include <string.h>

/* Compares with golden/<name>, or writes it. */
static void compare(Arena *a, const char *name, const char *got)
{
    char *path = arena_printf(a, "%s/tests/plan/golden/%s", DSOPT_SOURCE_DIR, name);
    if (getenv("DSOPT_BLESS")) {
        FILE *f = fopen(path, "w");
        REQUIRE(f && fputs(got, f) >= 0 && fclose(f) == 0, "cannot write %s", path);
    }
    char *want = rule_read(a, path);
    CHECK(want, "no %s: run with DSOPT_BLESS=1 and read what it writes", path);
    if (want) CHECK(strcmp(want, got) == 0, "%s: expected\n%s\ngot\n%s", name, want, got);
}

static void golden(const char *rule, const char *storage, const char *name, int bytes)
{
    Arena a = {0};
    const Plan *p = plan_make(&a, rule_from_ir(&a, rule));
    const Variant *v = rule_variant(&a, p, storage);
    StrBuf got = {.arena = &a};
    plan_print(p, v, &got);
    sb_puts(&got, v->why);
    int total = 0;
    for (uint32_t i = 0; i < v->nkernels; i++)
        total += v->kernels[i].bytes_read + v->kernels[i].bytes_written;
    CHECK(total == bytes, "%s: %d bytes per element, should be %d", name, total, bytes);
    compare(&a, arena_printf(&a, "%s.plan", name), got.text);
    StrBuf words = {.arena = &a};
    plan_explain(p, v, &words);
    compare(&a, arena_printf(&a, "%s.explain", name), words.text);
    arena_free(&a);
}

/* The phase after which an element slot no longer holds what it held when the step began; nphases:
 * never. */
static int stored_in(const Plan *p, const Variant *v, uint32_t elem)
{
    for (uint32_t i = 0; i < v->nkernels; i++) {
        for (uint32_t k = 0; k < v->kernels[i].nstores; k++) {
            if (v->kernels[i].stores[k].elem == elem) return v->kernels[i].phase;
        }
    }
    return p->nphases;
}

/* Whether a scalar that a kernel of this phase reads is known by then. */
static void check_scalar(const Plan *p, const Variant *v, IrRef ref, int phase, const char *what)
{
    const Ins *ins = &p->m->bodies[v->body].ins[ref];
    if (rate_is_element(ins->rate) || ins->op == IR_CONST) return;
    bool has = rate_is_vector(ins->rate) ? p->vector[v->body][ref] != UINT32_MAX
                                         : plan_place(p, v->body, ref).level != LEVEL_NONE;
    CHECK(has, "%s: %%%u has no place", what, (unsigned)ref);
    int known = p->phase[v->body][ref] + ir_is_reduce(ins);
    CHECK(known <= phase, "%s: %%%u is read in phase %d and known in %d", what, (unsigned)ref,
          phase, known);
}

static void check_kernel(const Plan *p, const Variant *v, const Kernel *k, const char *what)
{
    const IrBody *b = &p->m->bodies[v->body];
    bool have[4096] = {false};
    REQUIRE(b->n <= 4096, "%s: a body of %u", what, (unsigned)b->n);
    CHECK(k->nstores || k->nreduces, "%s: a kernel that does nothing", what);
    for (uint32_t i = 0; i < k->nvals; i++) {
        const KernelValue *kv = &k->vals[i];
        const Ins *ins = &b->ins[kv->ref];
        int stored = stored_in(p, v, kv->elem);
        have[kv->ref] = true;
        if (kv->how == VAL_LOAD)
            CHECK(stored >= k->phase, "%s: slot %u is loaded after it was stored", what,
                  (unsigned)kv->elem);
        else if (kv->how != VAL_COMPUTE)
            CHECK(stored < k->phase, "%s: slot %u is read back before it was stored", what,
                  (unsigned)kv->elem);
        for (int j = 0; kv->how == VAL_COMPUTE && j < ir_arity(ins); j++) {
            bool element = rate_is_element(b->ins[ins->arg[j]].rate);
            CHECK(!element || have[ins->arg[j]], "%s: %%%u needs %%%u", what, (unsigned)kv->ref,
                  (unsigned)ins->arg[j]);
            check_scalar(p, v, ins->arg[j], k->phase, what);
        }
    }
    for (uint32_t i = 0; i < k->nstores; i++) {
        IrRef value = k->stores[i].value;
        CHECK(!rate_is_element(b->ins[value].rate) || have[value],
              "%s: stores %%%u, which it lacks", what, (unsigned)value);
        if (k->stores[i].guard != IR_NONE) check_scalar(p, v, k->stores[i].guard, k->phase, what);
    }
}

/* What a vector program computes it has, or others have left for it. */
static void check_vector(const Plan *p, const VectorProgram *vp, IrRef ref, const char *what)
{
    const Ins *ins = &p->m->bodies[vp->body].ins[ref];
    CHECK(ins->rate == vp->rate && p->phase[vp->body][ref] == vp->phase, "%s: %%%u is misplaced",
          what, (unsigned)ref);
    for (int k = 0; k < ir_arity(ins); k++) {
        IrRef x = ins->arg[k];
        const Ins *arg = &p->m->bodies[vp->body].ins[x];
        bool same =
            arg->rate == vp->rate && p->phase[vp->body][x] == vp->phase && !ir_is_reduce(arg);
        bool has = rate_is_vector(arg->rate) ? p->vector[vp->body][x] != UINT32_MAX
                                             : plan_place(p, vp->body, x).level != LEVEL_NONE;
        CHECK(same || has || arg->op == IR_CONST, "%s: %%%u needs %%%u", what, (unsigned)ref,
              (unsigned)x);
        CHECK(p->phase[vp->body][x] + ir_is_reduce(arg) <= vp->phase, "%s: %%%u comes too early",
              what, (unsigned)ref);
    }
}

/* Every element store and every reduction happens once; every scalar and vector value is computed
 * once. */
static void check_plan(const Plan *p, const Variant *v, const char *what)
{
    const IrBody *b = &p->m->bodies[v->body];
    uint32_t stores = 0, kernel_stores = 0, reduces = 0, of_elements = 0;
    for (uint32_t i = 0; i < b->nstores; i++)
        stores += rate_is_element(p->m->slots[b->stores[i].slot].rate);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        kernel_stores += v->kernels[i].nstores;
        reduces += v->kernels[i].nreduces;
        check_kernel(p, v, &v->kernels[i], what);
    }
    for (uint32_t i = 0; i < p->nreduces; i++)
        of_elements += p->reduces[i].body == v->body && p->reduces[i].from == FROM_ELEMENTS;
    CHECK(kernel_stores == stores + v->ntemps, "%s: %u element stores in kernels, %u in the body",
          what, (unsigned)kernel_stores, (unsigned)stores);
    CHECK(reduces == of_elements, "%s: %u reductions in kernels of %u", what, (unsigned)reduces,
          (unsigned)of_elements);
    uint8_t *computed = calloc(b->n + 1, 1);
    for (uint32_t i = 0; i < p->nprograms; i++) {
        const ScalarProgram *sp = &p->programs[i];
        for (uint32_t k = 0; k < sp->nvals && sp->body == v->body; k++) computed[sp->vals[k]]++;
    }
    for (uint32_t i = 0; i < p->nvprograms; i++) {
        const VectorProgram *vp = &p->vprograms[i];
        for (uint32_t k = 0; k < vp->nvals && vp->body == v->body; k++) {
            computed[vp->vals[k]]++;
            check_vector(p, vp, vp->vals[k], what);
        }
    }
    for (uint32_t i = 0; i < b->n; i++)
        CHECK(computed[i] <= 1, "%s: %%%u is computed %d times", what, (unsigned)i, computed[i]);
    free(computed);
}

static void stdlib(const char *name)
{
    static const char *const storages[] = {"", "p=bf16,g=bf16", "g=f16"};
    for (size_t i = 0; i < sizeof storages / sizeof *storages; i++) {
        Arena a = {0};
        const IrModule *m = rule_from_stdlib(&a, name, storage_gradient_is_narrow(storages[i]));
        const Plan *p = plan_make(&a, m);
        const char *what = arena_printf(&a, "%s [%s]", name, storages[i]);
        for (uint32_t b = 0; b < m->nbodies; b++)
            check_plan(p, rule_variant_of(&a, p, b, storages[i]), what);
        arena_free(&a);
    }
}

/* The bytes that rules of the standard library move, in f32, and in how many sweeps: of matrices where
 * they go by shape. */
static void costs(const char *name, const char *define, int bytes, uint32_t sweeps)
{
    Arena a = {0};
    const Plan *p = plan_make(&a, rule_from_stdlib_with(&a, name, define, false));
    const Variant *v = rule_variant(&a, p, "");
    int total = 0;
    for (uint32_t i = 0; i < v->nkernels; i++)
        total += v->kernels[i].bytes_read + v->kernels[i].bytes_written;
    CHECK(total == bytes && v->nkernels == sweeps, "%s: %d bytes in %u sweeps, should be %d in %u",
          name, total, (unsigned)v->nkernels, bytes, (unsigned)sweeps);
    arena_free(&a);
}

/* A plan over rows, columns and matrices, both arms. */
static void golden_arms(const char *name)
{
    Arena a = {0};
    const Plan *p = plan_make(&a, rule_from_stdlib(&a, name, false));
    StrBuf text = {.arena = &a};
    for (uint32_t body = 0; body < p->m->nbodies; body++)
        plan_print(p, rule_variant_of(&a, p, body, ""), &text);
    compare(&a, arena_printf(&a, "%s.plan", name), text.text);
    arena_free(&a);
}

int main(void)
{
    golden("adamw", "", "adamw", 28);
    golden("adamw", "p=bf16,g=bf16,m=bf16,v=bf16", "adamw.bf16", 14);
    golden("adamw_clip", "", "adamw_clip", 32);
    golden("adamw_guard", "g=bf16", "adamw_guard.g_bf16", 28);
    golden("lion", "", "lion", 20);
    golden("lamb", "", "lamb", 44);
    golden("lamb", "m=bf16", "lamb.m_bf16", 40);
    golden("lamb", "m=bf16,v=bf16", "lamb.mv_bf16", 36);
    golden("lamb_guard", "p=bf16,g=bf16", "lamb_guard.bf16", 34);
    golden("lookahead", "", "lookahead", 40);
    for (size_t i = 0; i < ds_stdlib_count; i++) {
        if (strstr(ds_stdlib[i].text, "\noptimizer ")) stdlib(ds_stdlib[i].name);
    }
    golden_arms("adafactor");
    costs("sgd", NULL, 12, 1);
    costs("adamw", NULL, 28, 1);
    costs("adamw", "clip=1", 32, 2);
    costs("lion", NULL, 20, 1);
    costs("lamb", "clip=0", 40, 2);
    costs("lamb", NULL, 44, 3);
    costs("lars", NULL, 28, 2);
    costs("novograd", NULL, 24, 2);
    costs("prodigy", NULL, 52, 2);
    costs("adafactor", NULL, 24, 3);
    costs("came", NULL, 32, 4);
    costs("sm3", NULL, 20, 1);
    return check_done();
}
