#undef double
#undef float

/* The tables in device memory; the generated header has them for the host. */
struct DsRow { /* a chunk, or a tile of rows and columns, of one tensor */
    long long tensor, first, count, runs, pitch, width, last, matrix, row, col, strip, tile;
};
struct DsTensorRow {
    double *u[4];     /* blocks of scalars: global, group, class, tensor */
    void *const *ptr; /* buffers; any address that is a multiple of the element's size */
    long long rows, cols, mats, tiles, body, numel;
};
struct DsArgs {
    const DsRow *rows;
    const DsTensorRow *tensors;
    double *partial; /* partial[row * npartial + column] */
    long long npartial;
};
struct DsSpan { /* the rows of a tensor; nrows is 0 where it takes no part in this step */
    long long tensor, first_row, nrows, place; /* place: among all spans, ordered by group */
};
struct DsGroup { /* places of its spans: begin to end; bit b of runs: one of its tensors that takes
                    part runs body b */
    double *u;
    ds_u64 runs;
    long long begin, end;
};
struct DsJoin {
    const DsSpan *spans; /* every tensor that is not empty, in byte order of names */
    long long nspans;
    const DsTensorRow *tensors;
    const DsGroup *groups;
    long long ngroups;
    double *partial;
    long long npartial;
    double *global;
    double *roots;          /* roots[column * nspans + span, or its place] */
    unsigned char *present; /* the same shape; 2: not of this reduction */
};
struct DsScalars {
    double *global;
    ds_u64 runs; /* of all groups */
    const DsGroup *groups;
    long long ngroups;
    const DsTensorRow *classes; /* one per class; u[3] is the block of one of its tensors */
    long long nclasses;
    const DsTensorRow *tensors;
    const long long *active; /* the tensors that take part in this step */
    long long nactive;
};

/* Work on a vector of a tensor: the y of the grid shares it. */
DS_FN long long ds_begin()
{
    return (long long)blockIdx.y * blockDim.x + threadIdx.x;
}
DS_FN long long ds_stride()
{
    return (long long)gridDim.y * blockDim.x;
}
DS_FN long long ds_strips(const DsTensorRow *t)
{
    return (t->cols + 4095) / 4096;
}
/* Where the partial results of a vector of `length` begin: behind it, or there is one of each. */
DS_FN long long ds_behind(long long length, long long parts)
{
    return parts > 1 ? length : 0;
}
/* Elements of the k-th tile of a tensor; the last row of a view of blocks may be short. */
DS_FN long long ds_tile_count(const DsTensorRow *t, long long k, long long strips)
{
    const long long tall = t->cols < 256 ? 16 * (256 / t->cols) : 16;
    const long long tile = k / strips % t->tiles, left = t->rows - tile * tall;
    const long long rows = left < tall ? left : tall, col = k % strips * 4096;
    const long long width = t->cols - col < 4096 ? t->cols - col : 4096;
    const long long last_row = k / strips / t->tiles * t->rows + tile * tall + rows - 1;
    const long long rest = t->numel - last_row * t->cols - col;
    return (rows - 1) * width + (rest < 0 ? 0 : rest < width ? rest : width);
}
/* Whether body b is the first of those that run. */
DS_FN bool ds_is_first(ds_u64 runs, int b)
{
    return (runs & (0 - runs)) == (ds_u64)1 << b;
}

/* Four elements from p[i] on, of which those from p[0] on and the first n exist: one access of 16
 * bytes (8 for 16-bit elements) where all four exist and the buffer is aligned, single ones
 * otherwise. */
DS_FN bool ds_wide(const float *p)
{
    return ((ds_u64)p & 15) == 0;
}
DS_FN bool ds_wide(const ds_u16 *p)
{
    return ((ds_u64)p & 7) == 0;
}
DS_FN void ds_get(const float *p, int i, int n, bool wide, float x[4])
{
    if (wide && n >= 4 && i >= 0) {
        const float4 q = *(const float4 *)(p + i);
        x[0] = q.x;
        x[1] = q.y;
        x[2] = q.z;
        x[3] = q.w;
        return;
    }
    for (int c = 0; c < 4; c++) x[c] = c < n && i + c >= 0 ? p[i + c] : 0.0f;
}
DS_FN void ds_put(float *p, int i, int n, bool wide, const float x[4])
{
    if (wide && n >= 4 && i >= 0) {
        float4 q;
        q.x = x[0];
        q.y = x[1];
        q.z = x[2];
        q.w = x[3];
        *(float4 *)(p + i) = q;
        return;
    }
    for (int c = 0; c < 4; c++)
        if (c < n && i + c >= 0) p[i + c] = x[c];
}
DS_FN void ds_get(const ds_u16 *p, int i, int n, bool wide, ds_u16 x[4])
{
    if (wide && n >= 4 && i >= 0) {
        const ushort4 q = *(const ushort4 *)(p + i);
        x[0] = q.x;
        x[1] = q.y;
        x[2] = q.z;
        x[3] = q.w;
        return;
    }
    for (int c = 0; c < 4; c++) x[c] = c < n && i + c >= 0 ? p[i + c] : (ds_u16)0;
}
DS_FN void ds_put(ds_u16 *p, int i, int n, bool wide, const ds_u16 x[4])
{
    if (wide && n >= 4 && i >= 0) {
        ushort4 q;
        q.x = x[0];
        q.y = x[1];
        q.z = x[2];
        q.w = x[3];
        *(ushort4 *)(p + i) = q;
        return;
    }
    for (int c = 0; c < 4; c++)
        if (c < n && i + c >= 0) p[i + c] = x[c];
}
DS_FN ds_d ds_down(ds_d x, int lanes)
{
    return __shfl_down_sync(0xffffffffu, x.v, lanes);
}
DS_FN ds_d ds_from_thread(ds_d x, int thread)
{
    return __shfl_sync(0xffffffffu, x.v, thread);
}
DS_FN ds_d ds_pick(const ds_d x[4], int k)
{
    return k & 2 ? (k & 1 ? x[3] : x[2]) : (k & 1 ? x[1] : x[0]);
}
