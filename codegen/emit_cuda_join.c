/* emit_cuda_join.c - where partial results meet on the device: in the fixed tree (docs/numerics.md).
 *
 * Requires: a plan. Ensures: join<phase> joins what a tensor has, the blocks of one x of the grid
 * sharing a tensor: arrays of rows, columns and matrices by all threads of the y, what becomes one
 * value by the first block; and leaves the values of reductions over tensors in `roots`.
 * all<phase> joins those, a group by a block. Trees are made in place: at distance s, v[i] :=
 * merge(v[i], v[i + s]) for every i that is a multiple of 2s. Reductions of vectors and of scalars
 * take chunks of 4096 by warps: four of the 128 lanes in each thread.
 *
 *     sumsq[all] of two bodies:  roots[column * nspans + span] by join0, global[5] by all0
 */
#include "emit_cuda.h"
#include <string.h>

static bool is_joint(const PlanReduce *r)
{
    return rate_within(r->rate, RATE_GROUP);
}

static uint32_t slot_of(const Plan *p, const PlanReduce *r)
{
    return plan_reduction(p, r)->lit.slot;
}

/* Scalars of group rate, over the groups. */
static bool is_of_groups(const PlanReduce *r)
{
    return r->rate == RATE_GLOBAL && r->arg_rate == RATE_GROUP;
}

static bool is_gathered(const PlanReduce *r)
{
    return is_joint(r) && r->from == FROM_SCALARS;
}

static bool has_second(const Plan *p, const PlanReduce *r)
{
    return plan_reduce_info(p, r)->arity > 1;
}

/* Reductions of one slot stand together: how many from this one on. */
static uint32_t feeders(const Plan *p, uint32_t i)
{
    uint32_t n = 1;
    while (i + n < p->nreduces && slot_of(p, &p->reduces[i + n]) == slot_of(p, &p->reduces[i])) n++;
    return n;
}

/* The columns of `roots` of a reduction over tensors: one, or two. */
static uint32_t columns_before(const Plan *p, uint32_t i)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < i; k += feeders(p, k)) {
        const PlanReduce *r = &p->reduces[k];
        if (r->phase != p->reduces[i].phase || !is_joint(r) || is_of_groups(r)) continue;
        n += is_gathered(r) && has_second(p, r) ? 2 : 1;
    }
    return n;
}

uint32_t emit_cuda_roots(const Plan *p)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < p->nreduces; i += feeders(p, i)) {
        const PlanReduce *r = &p->reduces[i];
        if (!is_joint(r) || is_of_groups(r)) continue;
        uint32_t n = columns_before(p, i) + (is_gathered(r) && has_second(p, r) ? 2 : 1);
        most = n > most ? n : most;
    }
    return most;
}

bool emit_cuda_has_join(const Plan *p, int phase)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        if (p->reduces[i].phase == phase && !is_of_groups(&p->reduces[i])) return true;
    }
    return false;
}

bool emit_cuda_has_all(const Plan *p, int phase)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        if (p->reduces[i].phase == phase && is_joint(&p->reduces[i])) return true;
    }
    return false;
}

/* ---- operators ------------------------------------------------------------------------------ */

const char *cuda_identity(Arena *a, const ReduceInfo *info)
{
    StrBuf s = {.arena = a};
    emit_literal(&s, info->identity, DT_F64);
    return s.text;
}

static void merge_and_fold(StrBuf *out, const ReduceInfo *info)
{
    const char *n = info->name;
    sb_printf(out, "DS_FN ds_d ds_merge_%s(ds_d a, ds_d b) { return ", n);
    emit_reduce_text(out, info->merge, "a", "b", "");
    sb_puts(out, "; }\n");
    sb_printf(out,
              "/* 128 lanes, four in each thread of a warp; the result is thread 0's. */\n"
              "DS_FN ds_d ds_fold_%s(ds_d x[4])\n{\n"
              "#pragma unroll\n"
              "    for (int lanes = 16; lanes > 0; lanes /= 2) {\n"
              "#pragma unroll\n"
              "        for (int c = 0; c < 4; c++)\n"
              "            x[c] = ds_merge_%s(x[c], ds_down(x[c], lanes));\n"
              "    }\n"
              "    return ds_merge_%s(ds_merge_%s(x[0], x[2]), ds_merge_%s(x[1], x[3]));\n}\n",
              n, n, n, n, n);
}

static void trees(StrBuf *out, const ReduceInfo *info)
{
    const char *n = info->name;
    sb_printf(
        out,
        "/* The aligned tree over v[i * step], by a block, in place. */\n"
        "DS_FN void ds_tree_%s(double *v, long long count, long long step)\n{\n"
        "    for (long long s = 1; s < count; s *= 2) {\n"
        "        for (long long i = 2 * s * threadIdx.x; i + s < count; i += 2 * s * blockDim.x)\n"
        "            v[i * step] = ds_raw(ds_merge_%s(v[i * step], v[(i + s) * step]));\n"
        "        __syncthreads();\n"
        "    }\n}\n"
        "/* The same by one thread. */\n"
        "DS_FN double ds_alone_%s(double *v, long long count, long long step)\n{\n"
        "    for (long long s = 1; s < count; s *= 2)\n"
        "        for (long long i = 0; i + s < count; i += 2 * s)\n"
        "            v[i * step] = ds_raw(ds_merge_%s(v[i * step], v[(i + s) * step]));\n"
        "    return v[0];\n}\n",
        n, n, n, n);
    sb_printf(out,
              "/* By a block, where leaves may be missing. */\n"
              "DS_FN void ds_sparse_%s(double *v, unsigned char *have, long long count)\n{\n"
              "    for (long long s = 1; s < count; s *= 2) {\n"
              "        for (long long i = 2 * s * threadIdx.x; i + s < count; i += 2 * s * "
              "blockDim.x) {\n"
              "            if (have[i + s])\n"
              "                v[i] = have[i] ? ds_raw(ds_merge_%s(v[i], v[i + s])) : v[i + s];\n"
              "            have[i] |= have[i + s];\n"
              "        }\n"
              "        __syncthreads();\n"
              "    }\n}\n",
              n, n);
    sb_printf(out,
              "/* The tree over chunks that come in order: a subtree for each bit of their "
              "number. */\n"
              "DS_FN void ds_push_%s(double *tree, long long chunk, double x)\n{\n"
              "    int k = 0;\n"
              "    for (; chunk >> k & 1; k++)\n"
              "        x = ds_raw(ds_merge_%s(tree[k], x));\n"
              "    tree[k] = x;\n}\n"
              "DS_FN double ds_root_%s(const double *tree, long long chunks)\n{\n"
              "    int k = 0;\n"
              "    while (!(chunks >> k & 1))\n"
              "        k++;\n"
              "    double x = tree[k];\n"
              "    for (k++; chunks >> k; k++)\n"
              "        if (chunks >> k & 1) x = ds_raw(ds_merge_%s(tree[k], x));\n"
              "    return x;\n}\n\n",
              n, n, n, n);
}

/* All elements of a tensor have this value: its chunks differ in the last one alone. */
static void uniform(StrBuf *out, const ReduceInfo *info)
{
    const char *n = info->name, *identity = cuda_identity(out->arena, info);
    sb_printf(out,
              "DS_FN ds_d ds_same_chunk_%s(long long count, ds_d x, ds_d y)\n{\n"
              "    ds_d lane[4] = {%s, %s, %s, %s};\n    (void)y;\n"
              "    for (long long q = 4 * (threadIdx.x & 31); q < count; q += 128)\n"
              "        for (int c = 0; c < 4; c++)\n"
              "            if (q + c < count) lane[c] = ",
              n, identity, identity, identity, identity);
    emit_reduce_text(out, info->combine, "lane[c]", "x", "y");
    sb_printf(out,
              ";\n    return ds_fold_%s(lane);\n}\n"
              "/* The result is thread 0's; whole warps. */\n"
              "DS_FN double ds_same_%s(long long numel, ds_d x, ds_d y)\n{\n"
              "    const long long last = (numel - 1) / 4096;\n"
              "    ds_d whole = ds_same_chunk_%s(4096, x, y);\n"
              "    ds_d root = ds_same_chunk_%s(numel - last * 4096, x, y);\n"
              "    for (int k = 0; last >> k; k++) {\n"
              "        if (last >> k & 1) root = ds_merge_%s(whole, root);\n"
              "        whole = ds_merge_%s(whole, whole);\n    }\n"
              "    return ds_raw(root);\n}\n\n",
              n, n, n, n, n, n);
}

/* The same in a view: its tiles, by warps. The result is thread 0's. */
static void uniform_tiles(StrBuf *out, const ReduceInfo *info)
{
    const char *n = info->name;
    sb_printf(out,
              "DS_FN double ds_same_tiles_%s(const DsTensorRow *t, ds_d x, ds_d y)\n{\n"
              "    __shared__ double tree[64], tile[%d];\n"
              "    const long long strips = ds_strips(t), tiles = t->mats * t->tiles * strips;\n"
              "    const int warp = threadIdx.x / 32;\n"
              "    long long before = 0;\n"
              "    ds_d value = 0.0;\n"
              "    for (long long k = 0; k < tiles; k += %d) {\n"
              "        if (k + warp < tiles) {\n"
              "            const long long count = ds_tile_count(t, k + warp, strips);\n"
              "            if (before != count + 1) value = ds_same_chunk_%s(count, x, y);\n"
              "            before = count + 1;\n"
              "            if (threadIdx.x %% 32 == 0) tile[warp] = ds_raw(value);\n"
              "        }\n"
              "        __syncthreads();\n"
              "        for (int i = 0; threadIdx.x == 0 && i < %d && k + i < tiles; i++)\n"
              "            ds_push_%s(tree, k + i, tile[i]);\n"
              "        __syncthreads();\n"
              "    }\n"
              "    return threadIdx.x == 0 ? ds_root_%s(tree, tiles) : 0.0;\n}\n\n",
              n, CUDA_BLOCK / 32, CUDA_BLOCK / 32, n, CUDA_BLOCK / 32, n, n);
}

static bool in_view(const Plan *p, const PlanReduce *r)
{
    return p->m->bodies[r->body].view != VIEW_FLAT;
}

void emit_cuda_reductions(StrBuf *out, const Plan *p)
{
    bool done[RED_COUNT_] = {false}, same[RED_COUNT_] = {false}, tiled[RED_COUNT_] = {false};
    bool packs = false;
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        const ReduceInfo *info = plan_reduce_info(p, r);
        size_t op = (size_t)(info - reduce_info);
        if (!done[op]) {
            merge_and_fold(out, info);
            trees(out, info);
        }
        bool once = r->from == FROM_SCALARS && !is_joint(r);
        if (once && !same[op]) uniform(out, info);
        if (once && in_view(p, r) && !tiled[op]) uniform_tiles(out, info);
        same[op] |= once;
        tiled[op] |= once && in_view(p, r);
        done[op] = true;
        packs |= is_joint(r) && p->m->nbodies > 1;
    }
    if (!packs) return;
    sb_printf(out,
              "/* Leaves out what is not of the reduction (2), in order; by a block. */\n"
              "DS_FN long long ds_pack(double *x, double *y, unsigned char *have, long long n)\n{\n"
              "    __shared__ int place[%d];\n"
              "    long long to = 0;\n"
              "    const int j = threadIdx.x;\n"
              "    for (long long from = 0; from < n; from += %d) {\n"
              "        const bool in = from + j < n && have[from + j] != 2;\n"
              "        const double vx = in ? x[from + j] : 0.0, vy = in && y ? y[from + j] : "
              "0.0;\n"
              "        const unsigned char h = in ? have[from + j] : 0;\n"
              "        place[j] = in;\n"
              "        __syncthreads();\n"
              "        for (int s = 1; s < %d; s *= 2) {\n"
              "            const int more = j >= s ? place[j - s] : 0;\n"
              "            __syncthreads();\n"
              "            place[j] += more;\n"
              "            __syncthreads();\n"
              "        }\n"
              "        if (in) {\n"
              "            const long long at = to + place[j] - 1;\n"
              "            x[at] = vx;\n"
              "            if (y) y[at] = vy;\n"
              "            have[at] = h;\n"
              "        }\n"
              "        to += place[%d];\n"
              "        __syncthreads();\n"
              "    }\n"
              "    return to;\n}\n\n",
              CUDA_BLOCK, CUDA_BLOCK, CUDA_BLOCK, CUDA_BLOCK - 1);
}

/* ---- arrays of values ------------------------------------------------------------------------ */

/* A chunk of `name`, by a warp, and a run of chunks, by a block. `value` says, for index i, whether
 * it takes part (`in`) and what it is (x, y). */
static void array_functions(StrBuf *out, const ReduceInfo *info, const char *name,
                            const char *params, const char *args, const char *value)
{
    const char *n = info->name, *identity = cuda_identity(out->arena, info);
    sb_printf(out,
              "DS_FN ds_d ds_chunk_%s(%s, long long from, long long count)\n{\n"
              "    ds_d lane[4] = {%s, %s, %s, %s};\n"
              "    for (long long q = 4 * (threadIdx.x & 31); q < count; q += 128)\n"
              "        for (int c = 0; c < 4; c++) {\n"
              "            const long long i = from + q + c;\n"
              "            bool in = q + c < count;\n"
              "            ds_d x = 0.0, y = 0.0;\n"
              "            if (in) {\n%s            }\n"
              "            (void)i, (void)y;\n"
              "            if (in) lane[c] = ",
              name, params, identity, identity, identity, identity, value);
    emit_reduce_text(out, info->combine, "lane[c]", "x", "y");
    sb_printf(out, ";\n        }\n    return ds_fold_%s(lane);\n}\n", n);
    sb_printf(out,
              "/* The result is thread 0's. */\n"
              "DS_FN double ds_array_%s(%s, long long from, long long count)\n{\n"
              "    __shared__ double tree[64], chunk[%d];\n"
              "    const long long chunks = (count + 4095) / 4096;\n"
              "    for (long long c = 0; c < chunks; c += %d) {\n"
              "        const long long mine = c + threadIdx.x / 32, at = mine * 4096;\n"
              "        if (mine < chunks) {\n"
              "            const ds_d x = ds_chunk_%s(%s, from + at, count - at < 4096 ? count - "
              "at : 4096);\n"
              "            if (threadIdx.x %% 32 == 0) chunk[threadIdx.x / 32] = ds_raw(x);\n"
              "        }\n"
              "        __syncthreads();\n"
              "        for (int k = 0; threadIdx.x == 0 && k < %d && c + k < chunks; k++)\n"
              "            ds_push_%s(tree, c + k, chunk[k]);\n"
              "        __syncthreads();\n"
              "    }\n"
              "    return threadIdx.x == 0 && chunks > 0 ? ds_root_%s(tree, chunks) : "
              "ds_raw(ds_d(%s));\n}\n\n",
              name, params, CUDA_BLOCK / 32, CUDA_BLOCK / 32, name, args, CUDA_BLOCK / 32, n, n,
              identity);
}

/* One operand of a reduction of vectors at index i. */
static const char *vector_text(Arena *a, const PlanReduce *r, uint32_t vec, DType type, Rate rate,
                               Place place)
{
    if (vec == UINT32_MAX)
        return place.level == LEVEL_NONE
                   ? "0.0"
                   : arena_printf(a, "t->u[%u][%u]", place.level, (unsigned)place.index);
    bool shared = rate == RATE_MATRIX && r->arg_rate != RATE_MATRIX;
    const char *index = !shared                  ? "i"
                        : r->arg_rate & AXIS_COL ? "i / t->cols"
                                                 : "i / t->rows";
    return arena_printf(a, "((const %s *)t->ptr[%u])[%s]", emit_vectors_cuda.memory[type],
                        (unsigned)vec, index);
}

static const char *array_name(Arena *a, uint32_t i)
{
    return arena_printf(a, "%u", (unsigned)i);
}

static void vector_array(StrBuf *out, const Plan *p, uint32_t i)
{
    Arena *a = out->arena;
    const PlanReduce *r = &p->reduces[i];
    StrBuf value = {.arena = a};
    sb_printf(&value, "                x = ds_d(%s);\n",
              vector_text(a, r, r->vec, r->vec_type, r->vec_rate, r->arg));
    if (has_second(p, r))
        sb_printf(&value, "                y = ds_d(%s);\n",
                  vector_text(a, r, r->vec2, r->vec2_type, r->vec2_rate, r->arg2));
    array_functions(out, plan_reduce_info(p, r), array_name(a, i), "const DsTensorRow *t", "t",
                    value.text);
}

/* Values that join left in roots. */
static void gathered_array(StrBuf *out, const Plan *p, uint32_t i)
{
    array_functions(out, plan_reduce_info(p, &p->reduces[i]), array_name(out->arena, i),
                    "const double *vx, const double *vy, const unsigned char *have",
                    "vx, vy, have",
                    "                in = have[i] == 1;\n"
                    "                x = ds_d(vx[i]);\n"
                    "                if (vy) y = ds_d(vy[i]);\n");
}

static const char *group_place(Arena *a, Place at)
{
    return at.level == LEVEL_GLOBAL ? arena_printf(a, "global[%u]", (unsigned)at.index)
           : at.level == LEVEL_NONE ? "0.0"
                                    : arena_printf(a, "g.u[%u]", (unsigned)at.index);
}

/* One value of each group, as the first body says that runs there. */
static void group_array(StrBuf *out, const Plan *p, uint32_t i)
{
    Arena *a = out->arena;
    StrBuf value = {.arena = a};
    sb_puts(&value, "                const DsGroup g = groups[i];\n                ");
    for (uint32_t k = i; k < i + feeders(p, i); k++) {
        const PlanReduce *r = &p->reduces[k];
        sb_printf(&value, "if (g.runs >> %u & 1) {\n", (unsigned)r->body);
        if (r->guard.level != LEVEL_NONE)
            sb_printf(&value, "                    in = %s != 0;\n", group_place(a, r->guard));
        sb_printf(&value, "                    x = ds_d(%s);\n", group_place(a, r->arg));
        if (has_second(p, r))
            sb_printf(&value, "                    y = ds_d(%s);\n", group_place(a, r->arg2));
        sb_puts(&value, "                } else ");
    }
    sb_puts(&value, "{\n                    in = false;\n                }\n");
    array_functions(out, plan_reduce_info(p, &p->reduces[i]), array_name(a, i),
                    "const double *global, const DsGroup *groups", "global, groups", value.text);
}

/* ---- within tensors -------------------------------------------------------------------------- */

static const char *guard_text(Arena *a, const PlanReduce *r)
{
    return r->guard.level == LEVEL_NONE
               ? "true"
               : arena_printf(a, "t->u[%u][%u] != 0", r->guard.level, (unsigned)r->guard.index);
}

/* Rows, columns and blocks of elements: strips, or tiles, meet. */
static void join_lines(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    const ReduceInfo *info = plan_reduce_info(p, r);
    const char *identity = cuda_identity(out->arena, info);
    bool cols = (r->rate & AXIS_COL) != 0;
    sb_printf(out,
              "        double *v = (double *)t->ptr[%u];\n"
              "        const long long n = %s, parts = %s;\n"
              "        double *from = v + ds_behind(n, parts);\n"
              "        for (long long i = ds_begin(); i < n && (parts > 1 || !in); i += "
              "ds_stride())\n"
              "            v[i] = in ? ds_alone_%s(from + %s, parts, %s) : ds_raw(ds_d(%s));\n",
              (unsigned)r->result_vec, cols ? "t->mats * t->cols" : "t->mats * t->rows",
              cols ? "t->tiles" : "ds_strips(t)", info->name,
              cols ? "i / t->cols * parts * t->cols + i % t->cols" : "i", cols ? "t->cols" : "n",
              identity);
}

/* Matrices of elements: few partial results by a thread, many by a block. */
static void join_matrices(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    const ReduceInfo *info = plan_reduce_info(p, r);
    const char *n = info->name, *identity = cuda_identity(out->arena, info);
    sb_printf(out,
              "        double *v = (double *)t->ptr[%u];\n"
              "        const long long each = t->tiles * ds_strips(t);\n"
              "        double *from = x.partial + span.first_row * x.npartial + %u;\n"
              "        if (!in || each <= 64) {\n"
              "            for (long long i = ds_begin(); i < t->mats; i += ds_stride())\n"
              "                v[i] = in ? ds_alone_%s(from + i * each * x.npartial, each, "
              "x.npartial) : ds_raw(ds_d(%s));\n"
              "        } else {\n"
              "            for (long long i = blockIdx.y; i < t->mats; i += gridDim.y) {\n"
              "                ds_tree_%s(from + i * each * x.npartial, each, x.npartial);\n"
              "                if (threadIdx.x == 0) v[i] = from[i * each * x.npartial];\n"
              "            }\n        }\n",
              (unsigned)r->result_vec, (unsigned)r->partial, n, identity, n);
}

/* Matrices of vectors: short parts by a warp, long ones by a block. */
static void join_parts(StrBuf *out, const Plan *p, uint32_t i)
{
    const PlanReduce *r = &p->reduces[i];
    const char *identity = cuda_identity(out->arena, plan_reduce_info(p, r));
    sb_printf(out,
              "        double *v = (double *)t->ptr[%u];\n"
              "        const long long each = %s;\n"
              "        if (!in) {\n"
              "            for (long long i = ds_begin(); i < t->mats; i += ds_stride()) v[i] = "
              "ds_raw(ds_d(%s));\n"
              "        } else if (each <= 4096) {\n"
              "            for (long long i = ds_begin() / 32; i < t->mats; i += ds_stride() / "
              "32) {\n"
              "                const ds_d root = ds_chunk_%u(t, i * each, each);\n"
              "                if (threadIdx.x %% 32 == 0) v[i] = ds_raw(root);\n"
              "            }\n"
              "        } else {\n"
              "            for (long long i = blockIdx.y; i < t->mats; i += gridDim.y) {\n"
              "                const double root = ds_array_%u(t, i * each, each);\n"
              "                if (threadIdx.x == 0) v[i] = root;\n"
              "            }\n        }\n",
              (unsigned)r->result_vec, r->arg_rate & AXIS_COL ? "t->cols" : "t->rows", identity,
              (unsigned)i, (unsigned)i);
}

/* `root` of a tensor, in thread 0. */
static void tensor_root(StrBuf *out, const Plan *p, uint32_t i)
{
    Arena *a = out->arena;
    const PlanReduce *r = &p->reduces[i];
    const char *n = plan_reduce_info(p, r)->name;
    if (r->from == FROM_VECTOR) {
        sb_printf(out, "            const double root = ds_array_%u(t, 0, %s);\n", (unsigned)i,
                  cuda_length(r->arg_rate));
    } else if (r->from == FROM_SCALARS) {
        sb_printf(out, "            const double root = ds_same_%s%s(%s, ds_d(%s), ds_d(%s));\n",
                  in_view(p, r) ? "tiles_" : "", n, in_view(p, r) ? "t" : "t->numel",
                  vector_text(a, r, UINT32_MAX, DT_F64, 0, r->arg),
                  vector_text(a, r, UINT32_MAX, DT_F64, 0, r->arg2));
    } else {
        sb_printf(out,
                  "            double *v = x.partial + span.first_row * x.npartial + %u;\n"
                  "            ds_tree_%s(v, span.nrows, x.npartial);\n"
                  "            const double root = v[0];\n",
                  (unsigned)r->partial, n);
    }
}

static void join_tensor(StrBuf *out, const Plan *p, uint32_t i)
{
    const PlanReduce *r = &p->reduces[i];
    sb_puts(out, "        if (blockIdx.y == 0) {\n");
    tensor_root(out, p, i);
    sb_printf(out,
              "            if (threadIdx.x == 0) t->u[3][%u] = in ? root : ds_raw(ds_d(%s));\n"
              "            __syncthreads();\n        }\n",
              (unsigned)r->result.index, cuda_identity(out->arena, plan_reduce_info(p, r)));
}

static const char *root_index(Arena *a, const PlanReduce *r, uint32_t column)
{
    return arena_printf(a, "%u * x.nspans + %s", (unsigned)column,
                        r->rate == RATE_GLOBAL ? "k" : "span.place");
}

static void leave_root(StrBuf *out, const Plan *p, uint32_t i, uint32_t column)
{
    Arena *a = out->arena;
    const PlanReduce *r = &p->reduces[i];
    const char *at = root_index(a, r, column), *second = root_index(a, r, column + 1);
    sb_puts(out, "        if (blockIdx.y == 0) {\n");
    if (r->from != FROM_SCALARS) tensor_root(out, p, i);
    sb_printf(out, "            if (threadIdx.x == 0) {\n                x.present[%s] = in;\n", at);
    if (r->from != FROM_SCALARS) {
        sb_printf(out, "                x.roots[%s] = root;\n", at);
    } else {
        sb_printf(out, "                x.roots[%s] = %s;\n", at,
                  vector_text(a, r, UINT32_MAX, DT_F64, 0, r->arg));
        if (has_second(p, r))
            sb_printf(out, "                x.roots[%s] = %s;\n", second,
                      vector_text(a, r, UINT32_MAX, DT_F64, 0, r->arg2));
    }
    sb_puts(out, "            }\n            __syncthreads();\n        }\n");
}

static void join_one(StrBuf *out, const Plan *p, uint32_t i, uint32_t column)
{
    const PlanReduce *r = &p->reduces[i];
    sb_printf(out, "    {\n        const bool in = %s;\n        (void)in;\n",
              guard_text(out->arena, r));
    if (is_joint(r))
        leave_root(out, p, i, column);
    else if (r->rate == RATE_TENSOR)
        join_tensor(out, p, i);
    else if (r->rate != RATE_MATRIX)
        join_lines(out, p, r);
    else if (r->from == FROM_VECTOR)
        join_parts(out, p, i);
    else
        join_matrices(out, p, r);
    sb_puts(out, "    }\n");
}

/* What a body joins in a phase. */
static void join_function(StrBuf *out, const Plan *p, int phase, uint32_t body)
{
    sb_printf(out,
              "DS_FN void ds_join%d_%u(const DsJoin &x, const long long k, const DsSpan &span, "
              "const DsTensorRow *t)\n{\n    (void)x, (void)k, (void)span, (void)t;\n",
              phase, (unsigned)body);
    for (uint32_t i = 0, n; i < p->nreduces; i += n) {
        n = feeders(p, i);
        for (uint32_t f = i; f < i + n; f++) {
            const PlanReduce *r = &p->reduces[f];
            if (r->phase == phase && r->body == body && !is_of_groups(r))
                join_one(out, p, f, columns_before(p, i));
        }
    }
    sb_puts(out, "}\n");
}

/* Spans without part, and those of bodies that do not feed a reduction. */
static void not_present(StrBuf *out, const Plan *p, int phase)
{
    Arena *a = out->arena;
    for (uint32_t i = 0, n; i < p->nreduces; i += n) {
        const PlanReduce *r = &p->reduces[i];
        n = feeders(p, i);
        if (r->phase != phase || !is_joint(r) || is_of_groups(r)) continue;
        sb_puts(out, "            present = 0");
        for (uint32_t b = 0; b < p->m->nbodies; b++) {
            bool feeds = false;
            for (uint32_t f = i; f < i + n; f++) feeds |= p->reduces[f].body == b;
            if (!feeds) sb_printf(out, " + 2 * (t->body == %u)", (unsigned)b);
        }
        sb_printf(out, ";\n            if (present == 2 || span.nrows == 0) x.present[%s] = present;\n",
                  root_index(a, r, columns_before(p, i)));
    }
}

void emit_cuda_join(StrBuf *out, const CudaModule *m, int phase)
{
    const Plan *p = m->p;
    for (uint32_t i = 0; i < p->nreduces; i++) {
        if (p->reduces[i].phase == phase && p->reduces[i].from == FROM_VECTOR)
            vector_array(out, p, i);
    }
    for (uint32_t b = 0; b < p->m->nbodies; b++) join_function(out, p, phase, b);
    sb_printf(out,
              "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_join%d(DsJoin x)\n{\n"
              "    for (long long k = blockIdx.x; k < x.nspans; k += gridDim.x) {\n"
              "        const DsSpan span = x.spans[k];\n"
              "        const DsTensorRow *t = &x.tensors[span.tensor];\n"
              "        if (threadIdx.x == 0 && blockIdx.y == 0) {\n"
              "            unsigned char present;\n            (void)present;\n",
              CUDA_BLOCK, m->name, phase);
    not_present(out, p, phase);
    sb_puts(out, "        }\n        if (span.nrows == 0) continue;\n");
    for (uint32_t b = 0; b < p->m->nbodies; b++)
        sb_printf(out, "        if (t->body == %u) ds_join%d_%u(x, k, span, t);\n", (unsigned)b,
                  phase, (unsigned)b);
    sb_puts(out, "    }\n}\n\n");
}

/* ---- over tensors ---------------------------------------------------------------------------- */

/* Joins n values from `at` on in the reduction's columns, and stores the result. */
static void all_values(StrBuf *out, const Plan *p, uint32_t i, const char *begin, const char *n,
                       const char *to)
{
    const PlanReduce *r = &p->reduces[i];
    const ReduceInfo *info = plan_reduce_info(p, r);
    const char *identity = cuda_identity(out->arena, info);
    unsigned column = (unsigned)columns_before(p, i);
    const char *w = is_gathered(r) && has_second(p, r) ? "v + x.nspans" : "0";
    sb_printf(out,
              "        double *v = x.roots + %u * x.nspans + %s;\n"
              "        unsigned char *have = x.present + %u * x.nspans + %s;\n"
              "        long long n = %s;\n",
              column, begin, column, begin, n);
    if (feeders(p, i) < p->m->nbodies) sb_printf(out, "        n = ds_pack(v, %s, have, n);\n", w);
    if (is_gathered(r))
        sb_printf(out, "        const double root = ds_array_%u(v, %s, have, 0, n);\n", (unsigned)i,
                  w);
    else
        sb_printf(out,
                  "        ds_sparse_%s(v, have, n);\n"
                  "        const double root = n > 0 && have[0] ? v[0] : ds_raw(ds_d(%s));\n",
                  info->name, identity);
    sb_printf(out, "        if (threadIdx.x == 0) %s = root;\n        __syncthreads();\n", to);
}

void emit_cuda_all(StrBuf *out, const CudaModule *m, int phase)
{
    const Plan *p = m->p;
    for (uint32_t i = 0; i < p->nreduces; i += feeders(p, i)) {
        const PlanReduce *r = &p->reduces[i];
        if (r->phase != phase || !is_gathered(r)) continue;
        if (is_of_groups(r))
            group_array(out, p, i);
        else
            gathered_array(out, p, i);
    }
    sb_printf(out, "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_all%d(DsJoin x)\n{\n",
              CUDA_BLOCK, m->name, phase);
    for (uint32_t i = 0; i < p->nreduces; i += feeders(p, i)) {
        const PlanReduce *r = &p->reduces[i];
        unsigned to = (unsigned)r->result.index;
        if (r->phase != phase || !is_joint(r)) continue;
        if (is_of_groups(r)) {
            sb_printf(out,
                      "    if (blockIdx.x == 0) {\n"
                      "        const double root = ds_array_%u(x.global, x.groups, 0, "
                      "x.ngroups);\n"
                      "        if (threadIdx.x == 0) x.global[%u] = root;\n"
                      "        __syncthreads();\n    }\n",
                      (unsigned)i, to);
        } else if (r->rate == RATE_GLOBAL) {
            sb_puts(out, "    if (blockIdx.x == 0) {\n");
            all_values(out, p, i, "0", "x.nspans", arena_printf(m->a, "x.global[%u]", to));
            sb_puts(out, "    }\n");
        } else {
            sb_puts(out, "    for (long long k = blockIdx.x; k < x.ngroups; k += gridDim.x) {\n"
                         "        const DsGroup g = x.groups[k];\n");
            all_values(out, p, i, "g.begin", "g.end - g.begin", arena_printf(m->a, "g.u[%u]", to));
            sb_puts(out, "    }\n");
        }
    }
    sb_puts(out, "}\n\n");
}
