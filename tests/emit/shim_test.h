/* shim_test.h - CUDA text as C++ on the host against the interpreter: what test_cuda_bits and
 * test_cuda_fuzz share.
 *
 *   in:  cuda_bits(&a, module, "m=bf16")
 *   out: three steps over tensors of many shapes, by one block and by several; every bit compared
 *
 * One tensor has no gradient in the first step. Buffers of reductions are as the generated header
 * says: values, and behind them their partial results where there are several. */
#ifndef DSOPT_TESTS_EMIT_SHIM_TEST_H
#define DSOPT_TESTS_EMIT_SHIM_TEST_H
#include "../tile/views.h"
#include "codegen/emit_cuda.h"
#include "rules.h"
#include "shim.h"
#include <dlfcn.h>
#include <unistd.h>

static const SceneShape cuda_shapes[] = {
    {2, {37, 5}},      {1, {0}},        {2, {34, 384}}, {1, {129}},      {3, {3, 20, 33}},
    {2, {1, 4100}},    {2, {300, 1}},   {0, {0}},       {2, {19, 4100}}, {1, {8200}},
    {3, {2, 17, 129}}, {2, {3, 8192}},  {3, {5, 1, 16}}, {2, {700, 3}},  {2, {2, 2}},
    {2, {1, 700}},     {2, {40, 64}},   {1, {4097}},
    {3, {70, 3, 3}},   {3, {150, 1, 1}}, {3, {9, 7, 7}}};
enum { CUDA_SHAPES = sizeof cuda_shapes / sizeof *cuda_shapes };

/* The functions of the generated header. */
typedef struct CudaHost {
    int (*step)(const struct ShimStep *);
    int (*shape)(int ndim, const int64_t *shape, const int *says, int64_t tensor, int64_t *dims,
                 void *rows, int64_t *nrows);
    int64_t (*bytes)(int body, int index, const int64_t *dims);
} CudaHost;

static inline CudaHost cuda_host(void *library, const char *what)
{
    CudaHost h;
    *(void **)&h.step = dlsym(library, "shim_step");
    *(void **)&h.shape = dlsym(library, "shim_shape");
    *(void **)&h.bytes = dlsym(library, "shim_bytes");
    REQUIRE(h.step && h.shape && h.bytes, "%s: the shim lacks something", what);
    return h;
}

/* The questions about names that decide a body: NAME_choose takes their answers, in order. */
static inline bool cuda_asks(const IrModule *m, uint32_t slot)
{
    for (uint32_t i = 0; m->select && i < m->select->n; i++) {
        const Ins *ins = &m->select->ins[i];
        if (ins->op == IR_LOAD && ins->lit.slot == slot) return ir_asks_name(&m->slots[slot]);
    }
    return false;
}

/* Buffers of reductions, as large as the header says; and whether it says the same of shapes and
 * tables as the compiler's own. */
static inline void cuda_buffers(Scene *s, const CudaHost *h, const char *what)
{
    for (size_t i = 0; i < s->n; i++) {
        const ViewDims *d = &s->dims[i];
        const DsTensorRow *r = &s->tensors[i];
        const ExecTensor *t = &s->x.tensors[i];
        int64_t dims[5], n = 0, want = (int64_t)view_rows(d, (int64_t)i, NULL);
        DsRow *got = ARENA_ARRAY(s->a, DsRow, want + 1), *rows = ARENA_ARRAY(s->a, DsRow, want + 1);
        int says[64], asked = 0;
        for (uint32_t k = 0; k < s->m->nslots && asked < 64; k++)
            if (cuda_asks(s->m, k)) says[asked++] = scene_says(&s->m->slots[k], i);
        int body = h->shape(s->shapes[i].ndim, s->shapes[i].dim, says, (int64_t)i, dims, NULL, &n);
        CHECK((uint32_t)body == t->body && n == want, "%s: tensor %zu: body %d, %ld rows", what, i,
              body, (long)n);
        if ((uint32_t)body != t->body || n != want || t->numel == 0) continue;
        h->shape(s->shapes[i].ndim, s->shapes[i].dim, says, (int64_t)i, dims, got, &n);
        view_rows(d, (int64_t)i, rows);
        CHECK(memcmp(got, rows, (size_t)n * sizeof *rows) == 0, "%s: rows of tensor %zu", what, i);
        CHECK(dims[0] == r->rows && dims[1] == r->cols && dims[2] == r->mats &&
                  dims[3] == r->tiles && dims[4] == t->numel,
              "%s: dims of tensor %zu", what, i);
        for (uint32_t k = 0; k < s->p->nvectors[t->body]; k++) {
            uint32_t index = s->p->vectors[t->body][k].index;
            int64_t bytes = h->bytes(body, (int)index, dims);
            REQUIRE(bytes > 0, "%s: no buffer %u", what, index);
            t->ptr[index] = arena_alloc(s->a, (size_t)bytes);
            memset(t->ptr[index], 0x7b, (size_t)bytes);
        }
    }
}

static inline void cuda_groups(const Scene *s, struct ShimStep *t, struct ShimSpan *spans)
{
    struct ShimGroup *groups = ARENA_ARRAY(s->a, struct ShimGroup, SCENE_GROUPS);
    int64_t place = 0;
    for (int g = 0; g < SCENE_GROUPS; g++) {
        groups[g].u = s->x.group[g];
        groups[g].begin = place;
        for (int64_t k = 0; k < t->nspans; k++) {
            const ExecTensor *x = &s->x.tensors[spans[k].tensor];
            if (x->group != (uint32_t)g) continue;
            spans[k].place = place++;
            if (x->active) groups[g].runs |= (uint64_t)1 << x->body;
        }
        groups[g].end = place;
        t->runs |= groups[g].runs;
    }
    t->groups = groups;
    t->ngroups = SCENE_GROUPS;
}

/* What a driver-API program would keep in device memory. */
static inline struct ShimStep cuda_tables(const Scene *s, void *library, unsigned grid)
{
    struct ShimStep t = {.library = library, .grid = grid};
    SceneRows rows = scene_rows(s);
    struct ShimTensorRow *tensors = ARENA_ARRAY(s->a, struct ShimTensorRow, s->n + 1),
                         *classes = ARENA_ARRAY(s->a, struct ShimTensorRow, s->n + 1);
    struct ShimSpan *spans = ARENA_ARRAY(s->a, struct ShimSpan, s->n + 1);
    int64_t *active = ARENA_ARRAY(s->a, int64_t, s->n + 1);
    for (size_t i = 0; i < s->n; i++) {
        const ExecTensor *x = &s->x.tensors[i];
        const DsTensorRow *r = &s->tensors[i];
        tensors[i] = (struct ShimTensorRow){
            {r->u[0], r->u[1], r->u[2], r->u[3]}, r->ptr, r->rows, r->cols, r->mats, r->tiles,
            x->body, x->numel};
        if (!x->active) continue;
        classes[t.nclasses++] = tensors[i];
        active[t.nactive++] = (int64_t)i;
    }
    for (size_t k = 0; k < s->n; k++) {
        size_t i = s->x.by_name[k];
        if (s->x.tensors[i].numel > 0)
            spans[t.nspans++] = (struct ShimSpan){
                (int64_t)i, (int64_t)rows.first[i], (int64_t)(rows.first[i + 1] - rows.first[i]), 0};
    }
    cuda_groups(s, &t, spans);
    size_t roots = (size_t)emit_cuda_roots(s->p) * (size_t)t.nspans + 1;
    t.roots = ARENA_ARRAY(s->a, double, roots);
    t.present = ARENA_ARRAY(s->a, unsigned char, roots);
    memset(t.roots, 0xff, roots * sizeof *t.roots); /* what is not written must not be read */
    memset(t.present, 1, roots);
    t.rows = rows.rows;
    t.nrows = (int64_t)rows.n;
    t.tensors = tensors;
    t.partial = rows.partial; /* NaN, of as many columns as there are reductions at least */
    t.spans = spans;
    t.global = s->x.global;
    t.classes = classes;
    t.active = active;
    return t;
}

static inline void cuda_refill(Scene *s, int step)
{
    for (size_t i = 0; i < s->n; i++) {
        ExecTensor *t = &s->x.tensors[i];
        t->active = t->numel > 0 && (step > 0 || i != 3);
        for (int64_t j = 0; step > 0 && j < t->numel; j++)
            elem_set(t->ptr[1], t->storage[1], j, number_random(&scene_seed, step == 1));
    }
}

/* A scene, made anew in the same way each time. */
static inline Scene cuda_scene(Arena *a, const Plan *p, const Variant *const *variants, size_t first,
                               size_t n)
{
    SceneShape *shapes = ARENA_ARRAY(a, SceneShape, n + 1);
    for (size_t i = 0; i < n; i++) shapes[i] = cuda_shapes[(first + i) % CUDA_SHAPES];
    scene_seed = 42;
    Scene s = scene_new(a, p, variants, shapes, n);
    for (size_t i = 0; i < n; i++) s.dims[i].packs = 1; /* on the device, every tile is a row */
    return s;
}

static inline void cuda_run(void *library, const CudaModule *m, size_t first, size_t n,
                            unsigned grid, const char *what)
{
    Arena a = {0};
    CudaHost h = cuda_host(library, what);
    Scene got = cuda_scene(&a, m->p, m->variants, first, n);
    Scene want = cuda_scene(&a, m->p, m->variants, first, n);
    cuda_buffers(&got, &h, what);
    for (int k = 0; k < 3; k++) {
        uint64_t same = scene_seed;
        cuda_refill(&got, k);
        scene_seed = same;
        cuda_refill(&want, k);
        struct ShimStep s = cuda_tables(&got, library, grid);
        int missing = h.step(&s);
        REQUIRE(missing == 0, "%s: launch %d names a kernel that is not there", what, missing);
        REQUIRE(interp_step(m->p->m, &want.x), "out of memory");
        const char *difference = scene_difference(&got, &want);
        CHECK(!difference, "%s, step %d, from shape %zu, grid %u: %s", what, k, first, grid,
              difference);
        if (difference) break;
    }
    arena_free(&a);
}

static inline void cuda_bits_of(Arena *a, const IrModule *m, const char *storage, size_t shapes)
{
    static size_t first;
    const Plan *p = plan_make(a, m);
    const Variant *v = rule_variant(a, p, storage);
    CudaModule module = cuda_module(a, p, v->storage);
    const char *what = arena_printf(a, "%s [%s] as CUDA", m->name, storage);
    StrBuf text = {.arena = a}, why = {.arena = a};
    sb_printf(&text, "#include \"%s/tests/emit/shim_device.h\"\n", DSOPT_SOURCE_DIR);
    REQUIRE(emit_cuda(&p, 1, v->storage, &text) && emit_cuda_h(&p, 1, v->storage, &text), "%s: no text", what);
    sb_printf(&text,
              "#define LAUNCHES %s_launches\n#define POINTERS %s_pointers\n#define VIEWS %s_views\n"
              "#define CHOOSE(n, shape, block, says) %s_choose(n, shape, block",
              module.name, module.name, module.name, module.name);
    for (uint32_t k = 0, asked = 0; k < m->nslots; k++)
        if (cuda_asks(m, k)) sb_printf(&text, ", says[%u]", (unsigned)asked++);
    sb_printf(&text,
              ")\n#define SHIM_H \"%s/tests/emit/shim.h\"\n#include \"%s/tests/emit/shim_run.h\"\n",
              DSOPT_SOURCE_DIR, DSOPT_SOURCE_DIR);
    char *path = arena_printf(a, "%s/shim-%ld.so", DSOPT_BUILD_DIR, (long)getpid());
    bool ok = cc_compile(text.text, path, true, "g++ -x c++ -std=c++17 -O1 -w", &why);
    CHECK(ok, "%s: %s", what, why.text);
    if (!ok) return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    REQUIRE(library, "%s: %s", what, dlerror());
    cuda_run(library, &module, first, shapes, 3, what);
    cuda_run(library, &module, first + shapes, shapes, 1, what);
    first += 5;
    dlclose(library);
}

static inline void cuda_bits(Arena *a, const IrModule *m, const char *storage)
{
    cuda_bits_of(a, m, storage, 9);
}
#endif
