/* shim_test.h - CUDA text as C++ on the host against the interpreter: what test_cuda_bits and
 * test_cuda_fuzz share.
 *
 *   in:  cuda_bits(&a, module, "m=bf16")
 *   out: three steps over tensors of many sizes, aligned and not, by one block and by three; every
 * bit compared */
#ifndef DSOPT_TESTS_EMIT_SHIM_TEST_H
#define DSOPT_TESTS_EMIT_SHIM_TEST_H
#include "rig.h"
#include "rules.h"
#include "shim.h"
#include <dlfcn.h>
#include <unistd.h>

static const int64_t sizes[] = {0, 1, 127, 128, 129, 4096, 4097, 40000, 3};
enum { SIZES = sizeof sizes / sizeof *sizes };

typedef struct Tables {
    RigRows rows;
    struct ShimSpan spans[RIG_TENSORS];
    double roots[8 * RIG_TENSORS], uniform[256], vector[1];
    unsigned char present[8 * RIG_TENSORS];
    double *groups[RIG_GROUPS];
    DsTensorRow classes[RIG_TENSORS];
    int64_t active[RIG_TENSORS];
} Tables;

static inline struct ShimStep make_tables(Rig *r, Tables *w, void *library, unsigned grid)
{
    struct ShimStep s = {.library = library, .grid = grid};
    rig_rows(r, &w->rows);
    memset(w->rows.partial, 0xff,
           sizeof w->rows.partial); /* NaN: what is not written must not be read */
    for (size_t k = 0; k < r->n; k++) {
        size_t t = r->by_name[k];
        int64_t nrows = (int64_t)(w->rows.begin[t + 1] - w->rows.begin[t]);
        if (r->numel[t])
            w->spans[s.nspans++] = (struct ShimSpan){
                (int64_t)t, nrows ? (int64_t)w->rows.begin[t] : 0, nrows, r->numel[t]};
    }
    for (int g = 0; g < RIG_GROUPS; g++) {
        if (rig_group_active(r, g)) w->groups[s.ngroups++] = r->got.group[g];
    }
    for (size_t t = 0; t < r->n; t++) {
        if (!r->active[t]) continue;
        w->classes[s.nclasses++] = w->rows.tensors[t];
        w->active[s.nactive++] = (int64_t)t;
    }
    s.rows = w->rows.rows;
    s.nrows = (int64_t)w->rows.n;
    s.tensors = w->rows.tensors;
    s.partial = w->rows.partial;
    s.spans = w->spans;
    s.global = r->got.global;
    s.roots = w->roots;
    s.uniform = w->uniform;
    s.vector = w->vector;
    s.present = w->present;
    s.groups = w->groups;
    s.classes = w->classes;
    s.active = w->active;
    return s;
}

static inline void cuda_run(void *library, const Plan *p, const Variant *v, int offset,
                            unsigned grid, const char *what)
{
    Arena a = {0};
    Rig r;
    static Tables w;
    int (*step)(const struct ShimStep *);
    *(void **)&step = dlsym(library, "shim_step");
    REQUIRE(step, "%s: no shim_step", what);
    rig_new(&r, &a, p, v, sizes, SIZES, offset);
    for (int n = 0; n < 3; n++) {
        r.active[3] = n != 0;
        rig_activate(&r);
        rig_fill(&r, 1, n == 1, false);
        rig_interp(&r);
        struct ShimStep s = make_tables(&r, &w, library, grid);
        int missing = step(&s);
        REQUIRE(missing == 0, "%s: launch %d names a kernel that is not there", what, missing);
        rig_same(&r, what);
    }
    arena_free(&a);
}

static inline void cuda_bits(Arena *a, const IrModule *m, const char *storage)
{
    const Plan *p = plan_make(a, m);
    const Variant *v = rule_variant(a, p, storage);
    const char *what = arena_printf(a, "%s [%s] as CUDA", m->name, storage);
    StrBuf text = {.arena = a}, why = {.arena = a};
    sb_printf(&text, "#include \"%s/tests/emit/shim_device.h\"\n", DSOPT_SOURCE_DIR);
    REQUIRE(emit_cuda(p, v, &text) && emit_cuda_h(p, v, &text), "%s: no text", what);
    sb_printf(&text,
              "#define LAUNCHES %s_launches\n#define SHIM_H \"%s/tests/emit/shim.h\"\n#include "
              "\"%s/tests/emit/shim_run.h\"\n",
              m->name, DSOPT_SOURCE_DIR, DSOPT_SOURCE_DIR);
    char *path = arena_printf(a, "%s/shim-%ld.so", DSOPT_BUILD_DIR, (long)getpid());
    bool ok = cc_compile(text.text, path, true, "g++ -x c++ -std=c++17 -O1 -w", &why);
    CHECK(ok, "%s: %s", what, why.text);
    if (!ok) return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    REQUIRE(library, "%s: %s", what, dlerror());
    cuda_run(library, p, v, 0, 3, what);
    cuda_run(library, p, v, 4, 1, what);
    dlclose(library);
}
#endif
