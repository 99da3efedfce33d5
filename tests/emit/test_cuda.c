/* CUDA text through NVRTC, for every rule: what must hold before anything runs on a device.
 *
 *   test_cuda quick    three rules of tests/plan/ir;   test_cuda all    the standard library, too
 *   compute_75 and sm_90: no warnings; f32 moves 16 bytes at a time; no multiply-add but those
 *   that a rule writes; no spilled values (ptxas)
 *
 * Without NVRTC the test says what is missing and is skipped; without ptxas the spills alone are
 * not looked at, and it says so. */
#include "rules.h"
#include "codegen/emit_cuda.h"
#include <string.h>
#include <unistd.h>

static char ptxas[512];

/* The assembler on PATH or in a usual place. */
static void find_ptxas(void)
{
    const char *path = getenv("PATH");
    for (const char *s = path ? path : ""; *s; s += *s == ':') {
        size_t n = strcspn(s, ":");
        snprintf(ptxas, sizeof ptxas, "%.*s/ptxas", (int)n, s);
        if (access(ptxas, X_OK) == 0) return;
        s += n;
    }
    strcpy(ptxas, "/usr/local/cuda/bin/ptxas");
    if (access(ptxas, X_OK) != 0) *ptxas = 0;
}

static bool uses(const IrModule *m, int op)
{
    for (uint32_t b = 0; b < m->nbodies; b++) {
        for (uint32_t i = 0; i < m->bodies[b].n; i++) {
            if (m->bodies[b].ins[i].op == op) return true;
        }
    }
    return false;
}

/* All "N bytes spill stores", "N bytes spill loads" and "N bytes stack frame" of kernels over
 * elements are small: no value is spilled, but the assembler may keep a convergence barrier or a few
 * across the slow path of a division. */
static void check_spills(const char *what, const char *ptx, const char *arch)
{
    char file[600], command[2400], line[1024];
    snprintf(file, sizeof file, "%s/emit-%ld.ptx", DSOPT_BUILD_DIR, (long)getpid());
    FILE *f = fopen(file, "w");
    REQUIRE(f && fputs(ptx, f) >= 0 && fclose(f) == 0, "cannot write %s", file);
    snprintf(command, sizeof command, "'%s' -v -arch=%s -o /dev/null '%s' 2>&1", ptxas, arch, file);
    f = popen(command, "r");
    REQUIRE(f, "cannot run %s", ptxas);
    int lines = 0;
    bool elements = false;
    while (fgets(line, sizeof line, f)) {
        const char *name = strstr(line, "Compiling entry function '");
        if (name) elements = strstr(name, "_k") != NULL;
        const char *s = strstr(line, "bytes stack frame");
        if (!s || !elements) continue;
        int frame = -1, stores = -1, loads = -1;
        int n = sscanf(line, " %d bytes stack frame, %d bytes spill stores, %d bytes spill loads",
                       &frame, &stores, &loads);
        CHECK(n == 3 && frame <= 64 && stores <= 64 && loads <= 128, "%s on %s: %s", what, arch, line);
        lines++;
    }
    CHECK(pclose(f) == 0 && lines > 0, "%s: ptxas -arch=%s told nothing of %d functions", what,
          arch, lines);
    unlink(file);
}

/* `thorough`: a cubin, too, and what the assembler says. */
static void check_rule(const Modules *rule, const char *storage, bool thorough)
{
    Arena a = {0};
    const IrModule *m = rule->m[0];
    const Plan **plans = ARENA_ARRAY(&a, const Plan *, rule->n);
    for (size_t i = 0; i < rule->n; i++) plans[i] = plan_make(&a, rule->m[i]);
    const Variant *v = rule_variant(&a, plans[0], storage);
    const DType *types = v->storage;
    const char *what = arena_printf(&a, "%s [%s]", m->name, storage);
    StrBuf text = {.arena = &a}, ptx = {.arena = &a}, cubin = {.arena = &a}, why = {.arena = &a},
           why2 = {.arena = &a};
    REQUIRE(emit_cuda(plans, rule->n, types, &text), "%s: no text", what);
    CHECK(!strstr(text.text, "#include"), "%s: the text includes something", what);
    for (const char *c = text.text; *c; c++)
        REQUIRE((unsigned char)*c < 0x80, "%s: not ASCII: %.40s", what, c);
    bool ok = cuda_build(plans, rule->n, types, "compute_75", false, &ptx, &why);
    CHECK(ok && why.len == 0, "%s, compute_75: %s", what, why.text);
    bool binary = !thorough || cuda_build(plans, rule->n, types, "sm_90", true, &cubin, &why2);
    CHECK(binary && why2.len == 0, "%s, sm_90: %s", what, why2.text);
    CHECK(!thorough || cubin.len > 0, "%s: an empty cubin", what);
    if (ok) {
        CHECK(*storage || strstr(ptx.text, "global.v4.f32"), "%s: no access of 16 bytes", what);
        CHECK(strstr(ptx.text, "global.v4"), "%s: no wide access", what);
        CHECK(uses(m, IR_FMA) || !strstr(ptx.text, "fma.rn"), "%s: something was contracted", what);
        for (size_t i = 0; i < rule->n; i++) {
            CudaModule c = cuda_module(&a, plans[i], types);
            uint32_t n;
            const CudaLaunch *l = cuda_launches(&c, &n);
            for (uint32_t k = 0; k < n; k++)
                CHECK(strstr(ptx.text, arena_printf(&a, ".entry %s_%s(", c.name, l[k].name)),
                      "%s: no entry %s", what, l[k].name);
        }
        if (*ptxas && thorough) {
            check_spills(what, ptx.text, "sm_75");
            check_spills(what, ptx.text, "sm_90");
        }
    }
    arena_free(&a);
}

static void check_ir(Arena *a, const char *name, const char *storage)
{
    IrModule *m = rule_from_ir(a, name);
    check_rule(&(Modules){&m, 1}, storage, true);
}

int main(int argc, char **argv)
{
    Arena a = {0};
    StrBuf why = {.arena = &a};
    if (!backend_find("cuda")->probe(NULL, &why)) SKIP("%s", why.text);
    find_ptxas();
    if (!*ptxas) printf("no ptxas: spills are not looked at\n");
    bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    check_ir(&a, "adamw", "");
    check_ir(&a, "lamb_guard", "p=bf16,g=f16,m=bf16");
    check_ir(&a, "lookahead", "");
    for (size_t i = 0; i < ds_stdlib_count; i++) {
        const char *name = ds_stdlib[i].name;
        bool few = strcmp(name, "adafactor") == 0 || strcmp(name, "schedule_free_adamw") == 0;
        if (!strstr(ds_stdlib[i].text, "\noptimizer ") || !(all || few)) continue;
        Modules plain = rule_modules(&a, name, NULL, false), guarded = rule_modules(&a, name, NULL, true);
        check_rule(&plain, "", true);
        check_rule(&guarded, "p=bf16,g=bf16", false);
        check_rule(&guarded, "p=f16,g=f16", false);
    }
    arena_free(&a);
    return check_done();
}
