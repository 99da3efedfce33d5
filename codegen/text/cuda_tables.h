#undef double
#undef float

/* The tables in device memory; the generated header has them for the host. */
struct DsRow { /* at most 4096 consecutive elements of one tensor, from a multiple of 4096 on */
    long long tensor, first, count, runs, pitch, width, last, matrix, row, col, strip, tile;
};
struct DsTensorRow {
    double *u[4];     /* blocks of scalars: global, group, class, tensor */
    void *const *ptr; /* element buffers; any address that is a multiple of the element's size */
    long long rows, cols, mats, tiles;
};
struct DsArgs {
    const DsRow *rows;
    const DsTensorRow *tensors;
    double *partial; /* partial[row * npartial + column] */
    long long npartial;
};
struct DsSpan { /* the rows of a tensor; nrows is 0 where it takes no part in this step */
    long long tensor, first_row, nrows, numel;
};
struct DsJoin {
    const DsSpan *spans; /* every tensor that is not empty, in byte order of names */
    long long nspans;
    const DsTensorRow *tensors;
    double *partial;
    long long npartial;
    double *global;
    double *roots;          /* roots[column * nspans + span] */
    unsigned char *present; /* the same shape */
    double *uniform; /* one for each row: scratch of reductions of values that are the same for all
                        elements */
    double *vector;  /* one for every 4096 spans: scratch of reductions of one value per tensor */
};
struct DsScalars {
    double *global;
    double *const *groups; /* blocks of the groups that have a tensor in this step */
    long long ngroups;
    const DsTensorRow *classes; /* one per class; u[3] is the block of one of its tensors */
    long long nclasses;
    const DsTensorRow *tensors;
    const long long *active; /* the tensors that take part in this step */
    long long nactive;
};

/* The block of a level of the i-th tensor that takes part. */
DS_FN double *ds_block(const DsScalars &x, long long i, int level)
{
    return x.tensors[x.active[i]].u[level];
}

/* Four elements from p[i] on, of which n exist: one access of 16 bytes (8 for 16-bit elements)
 * where all four exist and the buffer is aligned, single ones otherwise. */
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
    if (wide && n >= 4) {
        const float4 q = *(const float4 *)(p + i);
        x[0] = q.x;
        x[1] = q.y;
        x[2] = q.z;
        x[3] = q.w;
        return;
    }
    for (int c = 0; c < 4; c++) x[c] = c < n ? p[i + c] : 0.0f;
}
DS_FN void ds_put(float *p, int i, int n, bool wide, const float x[4])
{
    if (wide && n >= 4) {
        float4 q;
        q.x = x[0];
        q.y = x[1];
        q.z = x[2];
        q.w = x[3];
        *(float4 *)(p + i) = q;
        return;
    }
    for (int c = 0; c < 4; c++)
        if (c < n) p[i + c] = x[c];
}
DS_FN void ds_get(const ds_u16 *p, int i, int n, bool wide, ds_u16 x[4])
{
    if (wide && n >= 4) {
        const ushort4 q = *(const ushort4 *)(p + i);
        x[0] = q.x;
        x[1] = q.y;
        x[2] = q.z;
        x[3] = q.w;
        return;
    }
    for (int c = 0; c < 4; c++) x[c] = c < n ? p[i + c] : (ds_u16)0;
}
DS_FN void ds_put(ds_u16 *p, int i, int n, bool wide, const ds_u16 x[4])
{
    if (wide && n >= 4) {
        ushort4 q;
        q.x = x[0];
        q.y = x[1];
        q.z = x[2];
        q.w = x[3];
        *(ushort4 *)(p + i) = q;
        return;
    }
    for (int c = 0; c < 4; c++)
        if (c < n) p[i + c] = x[c];
}
DS_FN ds_d ds_shift(ds_d x, int lanes)
{
    return __shfl_down_sync(0xffffffffu, x.v, lanes);
}
