#ifndef DSOPT_CUDA_ABI
#define DSOPT_CUDA_ABI 2
enum { DS_CUDA_BLOCK = 256, DS_CUDA_CHUNK = 4096 };
/* Device pointers are uint64_t, as CUdeviceptr is. */
typedef struct DsCudaRow { /* a chunk, or a tile of rows and columns, of one tensor */
    int64_t tensor, first, count, runs, pitch, width, last, matrix;
    int64_t row, col, strip, tile;
} DsCudaRow;
typedef struct DsCudaTensorRow {
    uint64_t u[4]; /* blocks of scalars: global, group, class, tensor */
    uint64_t ptr;  /* to the table of its buffers, which are aligned to the element's size */
    int64_t rows, cols, mats, tiles, body, numel;
} DsCudaTensorRow;
typedef struct DsCudaArgs { /* argument of DS_LAUNCH_ROWS, with int64_t begin and end: rows to do */
    uint64_t rows, tensors, partial; /* partial: rows * npartial doubles */
    int64_t npartial;
} DsCudaArgs;
typedef struct DsCudaSpan { /* the rows of a tensor, in order; nrows 0: no part in this step */
    int64_t tensor, first_row, nrows;
    int64_t place; /* among all spans in order of groups, then names */
} DsCudaSpan;
typedef struct DsCudaGroup {
    uint64_t u;         /* its block */
    uint64_t runs;      /* bit b: one of its tensors that take part runs body b */
    int64_t begin, end; /* places of its spans */
} DsCudaGroup;
typedef struct DsCudaJoin { /* argument of DS_LAUNCH_SPANS, _VECTORS and _ALL */
    uint64_t spans; /* every tensor that is not empty, in byte order of names */
    int64_t nspans;
    uint64_t tensors, groups; /* groups: all, in their order */
    int64_t ngroups;
    uint64_t partial;
    int64_t npartial;
    uint64_t global;
    uint64_t roots;   /* NAME_ROOTS * nspans doubles */
    uint64_t present; /* NAME_ROOTS * nspans bytes */
} DsCudaJoin;
typedef struct DsCudaScalars { /* argument of DS_LAUNCH_SCALARS */
    uint64_t global;
    uint64_t runs; /* of all groups */
    uint64_t groups;
    int64_t ngroups;
    uint64_t classes; /* tensor rows, one for each (group, body, t) among the tensors that take
                         part: u[3] is the block of one of its tensors */
    int64_t nclasses;
    uint64_t tensors;
    uint64_t active; /* int64_t: tensors that take part in this step */
    int64_t nactive;
} DsCudaScalars;
typedef enum DsCudaKind {
    DS_LAUNCH_SCALARS, /* grid 1 */
    DS_LAUNCH_VECTORS, /* any grid x * y: a span for each x, whose vectors y shares */
    DS_LAUNCH_ROWS,    /* any grid; rows_per_block says how many rows keep a block busy */
    DS_LAUNCH_SPANS,   /* any grid x * y, as for vectors */
    DS_LAUNCH_ALL      /* any grid; a block for each group */
} DsCudaKind;
typedef struct DsCudaLaunch {
    const char *name;
    DsCudaKind kind;
    int phase, rows_per_block, npartial;
} DsCudaLaunch;
typedef enum DsCudaView { /* how a body sees a tensor */
    DS_VIEW_FLAT,   /* chunks of 4096 elements */
    DS_VIEW_MATRIX, /* matrices of its last two axes */
    DS_VIEW_FIRST,  /* its first axis, and the rest */
    DS_VIEW_BLOCK   /* rows are blocks, the last one perhaps short */
} DsCudaView;
typedef enum DsCudaRate { DS_RATE_ELEMENT, DS_RATE_ROW, DS_RATE_COL, DS_RATE_MATRIX } DsCudaRate;
typedef struct DsCudaPointer { /* a buffer of a tensor that runs a body */
    int body, index;
    DsCudaRate rate;     /* ROW: of blocks, too */
    int bytes, partials; /* of a value; whether partial results lie behind the values */
    const char *name;
} DsCudaPointer;

static inline int64_t ds_cuda_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* rows, cols, mats, tiles and numel of a tensor, as a body with this view sees it; `block`: elements
 * of a block. */
static inline DsCudaTensorRow ds_cuda_dims(DsCudaView view, int ndim, const int64_t *shape,
                                           int64_t block)
{
    DsCudaTensorRow t = {{0, 0, 0, 0}, 0, 1, 1, 1, 1, 0, 1};
    int64_t tall;
    int d;
    for (d = 0; d < ndim; d++) /* a 0 before what does not matter overflows */
        if (shape[d] == 0) t.numel = 0;
    for (d = 0; d < ndim && t.numel; d++) t.numel *= shape[d];
    t.cols = t.numel;
    if (view == DS_VIEW_FLAT || t.numel == 0) return t;
    if (view == DS_VIEW_MATRIX && ndim > 1) {
        t.rows = shape[ndim - 2];
        t.cols = shape[ndim - 1];
        t.mats = t.numel / (t.rows * t.cols);
    } else if (view == DS_VIEW_FIRST && ndim > 0) {
        t.rows = shape[0];
        t.cols = t.numel / t.rows;
    } else if (view == DS_VIEW_BLOCK) {
        t.cols = ds_cuda_least(block, t.numel);
        t.rows = (t.numel - 1) / t.cols + 1;
    }
    tall = 256 / t.cols > 1 ? 16 * (256 / t.cols) : 16;
    t.tiles = (t.rows - 1) / tall + 1;
    return t;
}

/* Bytes of a buffer. */
static inline int64_t ds_cuda_bytes(const DsCudaPointer *p, const DsCudaTensorRow *t)
{
    int64_t strips = (t->cols + DS_CUDA_CHUNK - 1) / DS_CUDA_CHUNK;
    int64_t n = p->rate == DS_RATE_ELEMENT ? t->numel
                : p->rate == DS_RATE_ROW   ? t->mats * t->rows
                : p->rate == DS_RATE_COL   ? t->mats * t->cols
                                           : t->mats;
    int64_t parts = !p->partials              ? 1
                    : p->rate == DS_RATE_ROW ? strips
                    : p->rate == DS_RATE_COL ? t->tiles
                                             : 1;
    return n * (parts > 1 ? 1 + parts : 1) * p->bytes;
}

/* All rows of a tensor, written from `out` on; 0: only counts. */
static inline int64_t ds_cuda_rows(DsCudaView view, const DsCudaTensorRow *t, int64_t tensor,
                                   DsCudaRow *out)
{
    int64_t n = 0, m, tile, col, tall = t->cols > 0 && 256 / t->cols > 1 ? 16 * (256 / t->cols) : 16;
    int64_t first, count;
    for (first = 0; view == DS_VIEW_FLAT && first < t->numel; first += DS_CUDA_CHUNK, n++) {
        count = ds_cuda_least(DS_CUDA_CHUNK, t->numel - first);
        if (out) {
            DsCudaRow r = {tensor, first, count, 1, count, count, count, 0, 0, 0, 0, 0};
            out[n] = r;
        }
    }
    if (view == DS_VIEW_FLAT || t->numel == 0) return n;
    for (m = 0; m < t->mats; m++)
        for (tile = 0; tile < t->tiles; tile++) {
            int64_t rows = ds_cuda_least(tall, t->rows - tile * tall);
            int64_t row = m * t->rows + tile * tall, wide = t->cols > DS_CUDA_CHUNK;
            for (col = 0; col < t->cols; col += DS_CUDA_CHUNK, n++) {
                int64_t width = ds_cuda_least(DS_CUDA_CHUNK, t->cols - col);
                int64_t runs = wide ? rows : 1, last;
                first = row * t->cols + col;
                count = wide ? width : ds_cuda_least(rows * t->cols, t->numel - first);
                last = t->numel - first - (runs - 1) * t->cols;
                last = last < 0 ? 0 : ds_cuda_least(count, last);
                if (out) {
                    DsCudaRow r = {tensor, first, count, runs, wide ? t->cols : count, width, last,
                                   m,      row,   col,   col / DS_CUDA_CHUNK, tile};
                    out[n] = r;
                }
            }
        }
    return n;
}
#endif

