/* shim_run.h - runs the launches that the generated header lists, as a driver-API program would.
 * LAUNCHES names its table, POINTERS and VIEWS those of buffers and views, CHOOSE(…, says) calls the
 * function that says which body a tensor runs. */
#include SHIM_H

static_assert(sizeof(DsCudaRow) == sizeof(DsRow) &&
                  sizeof(DsCudaTensorRow) == sizeof(DsTensorRow) &&
                  sizeof(DsCudaArgs) == sizeof(DsArgs) && sizeof(DsCudaSpan) == sizeof(DsSpan) &&
                  sizeof(DsCudaJoin) == sizeof(DsJoin) &&
                  sizeof(DsCudaGroup) == sizeof(DsGroup) &&
                  sizeof(DsCudaScalars) == sizeof(DsScalars),
              "the header's tables are not the device's");

namespace shim
{
struct Call {
    void *fn;
    DsCudaArgs args;
    DsCudaJoin join;
    DsCudaScalars scalars;
    long long begin, end;
};
template <class T, class H> static T device(const H &host)
{
    return shim_bits<T>(host);
}
static void call_rows(void *p)
{
    Call *c = (Call *)p;
    ((void (*)(DsArgs, long long, long long))c->fn)(device<DsArgs>(c->args), c->begin, c->end);
}
static void call_join(void *p)
{
    Call *c = (Call *)p;
    ((void (*)(DsJoin))c->fn)(device<DsJoin>(c->join));
}
static void call_scalars(void *p)
{
    Call *c = (Call *)p;
    ((void (*)(DsScalars))c->fn)(device<DsScalars>(c->scalars));
}
static uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}
} // namespace shim

/* 0, or the number (from 1) of the launch whose kernel is missing. */
extern "C" int shim_step(const ShimStep *s)
{
    using namespace shim;
    int n = 0;
    for (const DsCudaLaunch &l : LAUNCHES) {
        n++;
        Call c;
        memset(&c, 0, sizeof c);
        c.fn = dlsym(s->library, l.name);
        if (!c.fn) return n;
        c.args = {address(s->rows), address(s->tensors), address(s->partial), l.npartial};
        c.join = {address(s->spans),   s->nspans,           address(s->tensors),
                  address(s->groups),  s->ngroups,          address(s->partial),
                  l.npartial,          address(s->global),  address(s->roots),
                  address(s->present)};
        c.scalars = {address(s->global),  s->runs,     address(s->groups),  s->ngroups,
                     address(s->classes), s->nclasses, address(s->tensors), address(s->active),
                     s->nactive};
        if (l.kind == DS_LAUNCH_SCALARS) launch(1, 1, call_scalars, &c);
        if (l.kind == DS_LAUNCH_SPANS || l.kind == DS_LAUNCH_VECTORS)
            launch(s->grid, s->grid > 1 ? 2 : 1, call_join, &c);
        if (l.kind == DS_LAUNCH_ALL) launch(s->grid, 1, call_join, &c);
        if (l.kind != DS_LAUNCH_ROWS) continue;
        c.end = s->nrows / 3;
        launch(s->grid, 1, call_rows, &c);
        c.begin = c.end;
        c.end = s->nrows;
        launch(s->grid, 1, call_rows, &c);
    }
    return 0;
}

/* What the header says of a shape: its body; rows, cols, mats, tiles, numel; rows of the table; bytes
 * of a buffer. */
extern "C" int shim_shape(int ndim, const int64_t *shape, const int *says, int64_t tensor,
                          int64_t *dims, void *rows, int64_t *nrows)
{
    int64_t block = 1;
    (void)says;
    const int body = CHOOSE(ndim, shape, &block, says);
    const DsCudaTensorRow t = ds_cuda_dims(VIEWS[body], ndim, shape, block);
    const int64_t all[5] = {t.rows, t.cols, t.mats, t.tiles, t.numel};
    memcpy(dims, all, sizeof all);
    *nrows = ds_cuda_rows(VIEWS[body], &t, tensor, (DsCudaRow *)rows);
    return body;
}
extern "C" int64_t shim_bytes(int body, int index, const int64_t *dims)
{
    const DsCudaTensorRow t = {{0, 0, 0, 0}, 0, dims[0], dims[1], dims[2], dims[3], body, dims[4]};
    for (const DsCudaPointer &p : POINTERS)
        if (p.body == body && p.index == index) return ds_cuda_bytes(&p, &t);
    return -1;
}
