/* emit_cuda_scalar.c - what a CUDA step does between its kernels: scalar programs, joins of partial
 * results, commit.
 *
 * Requires: a plan. Ensures: s<phase> runs the scalar programs of a phase in one block, level after
 * level; join<phase> joins the rows of each tensor, a block for each, and all<phase> the tensors,
 * one block; commit stores scalar state. Everything they read and write is device memory, so that a
 * captured graph sees every change of a hyperparameter. The trees are those of docs/numerics.md,
 * made in place: at distance s, v[i] := merge(v[i], v[i + s]) for every i that is a multiple of 2s.
 *
 *     lamb:  s0  k0  join0 all0  s1  k1  join1  s2  k2  commit
 */
#include "emit_cuda.h"
#include <stdio.h>

static const Ins *reduction(const Plan *p, const PlanReduce *r)
{
    return &p->m->bodies[r->body].ins[r->ins];
}

static const ReduceInfo *reduce_row(const Plan *p, const PlanReduce *r)
{
    return &reduce_info[reduction(p, r)->op - IR_RED];
}

static bool is_uniform(const PlanReduce *r)
{
    return r->of_scalars && r->result.level == LEVEL_TENSOR;
}

static bool is_vector(const PlanReduce *r)
{
    return r->of_scalars && r->result.level == LEVEL_GLOBAL;
}

static int slot_t(const Plan *p)
{
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        if (p->m->slots[i].kind == SLOT_COUNT && p->m->slots[i].level == LEVEL_TENSOR)
            return (int)p->m->slots[i].index;
    }
    return -1;
}

bool emit_cuda_has_scalars(const Plan *p, int phase)
{
    if (phase == 0) return true; /* hands t to the classes */
    for (uint32_t i = 0; i < p->nprograms; i++) {
        if (p->programs[i].phase == phase) return true;
    }
    return false;
}

bool emit_cuda_has_join(const Plan *p, int phase)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        if (p->reduces[i].phase == phase && !is_vector(&p->reduces[i])) return true;
    }
    return false;
}

bool emit_cuda_has_all(const Plan *p, int phase)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        if (p->reduces[i].phase == phase && p->reduces[i].result.level == LEVEL_GLOBAL) return true;
    }
    return false;
}

/* ---- operators ------------------------------------------------------------------------------ */

static const char *identity_text(Arena *a, const ReduceInfo *info)
{
    StrBuf s = {.arena = a};
    emit_literal(&s, info->identity, DT_F64);
    return s.text;
}

static void merge_and_trees(StrBuf *out, const ReduceInfo *info)
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
              "            x[c] = ds_merge_%s(x[c], ds_shift(x[c], lanes));\n"
              "    }\n"
              "    return ds_merge_%s(ds_merge_%s(x[0], x[2]), ds_merge_%s(x[1], x[3]));\n}\n",
              n, n, n, n, n);
    sb_printf(
        out,
        "/* The aligned tree over v[i * step], by a block, in place. */\n"
        "DS_FN void ds_tree_%s(double *v, long long count, long long step)\n{\n"
        "    for (long long s = 1; s < count; s *= 2) {\n"
        "        for (long long i = 2 * s * threadIdx.x; i + s < count; i += 2 * s * blockDim.x)\n"
        "            v[i * step] = ds_raw(ds_merge_%s(v[i * step], v[(i + s) * step]));\n"
        "        __syncthreads();\n"
        "    }\n}\n",
        n, n);
    sb_printf(out,
              "/* The same where leaves may be missing. */\n"
              "DS_FN void ds_sparse_tree_%s(double *v, unsigned char *have, long long count)\n{\n"
              "    for (long long s = 1; s < count; s *= 2) {\n"
              "        for (long long i = 2 * s * threadIdx.x; i + s < count; i += 2 * s * "
              "blockDim.x) {\n"
              "            if (have[i + s])\n"
              "                v[i] = have[i] ? ds_raw(ds_merge_%s(v[i], v[i + s])) : v[i + s];\n"
              "            have[i] |= have[i + s];\n"
              "        }\n"
              "        __syncthreads();\n"
              "    }\n}\n\n",
              n, n);
}

/* Lanes by the first 128 threads of a block, folded in shared memory. */
static void block_fold(StrBuf *out, Arena *a, const ReduceInfo *info)
{
    const char *n = info->name;
    sb_printf(out,
              "DS_FN double ds_block_fold_%s(ds_d mine)\n{\n"
              "    __shared__ double lane[128];\n"
              "    const int j = threadIdx.x;\n"
              "    __syncthreads();\n"
              "    if (j < 128)\n        lane[j] = ds_raw(mine);\n"
              "    __syncthreads();\n"
              "    for (int half = 64; half > 0; half /= 2) {\n"
              "        if (j < half)\n            lane[j] = ds_raw(ds_merge_%s(lane[j], lane[j + "
              "half]));\n"
              "        __syncthreads();\n"
              "    }\n    return lane[0];\n}\n",
              n, n);
    sb_printf(out,
              "/* A value that is the same for all elements of a tensor, over a chunk of them. */\n"
              "DS_FN double ds_uniform_%s(long long count, ds_d x, ds_d y)\n{\n"
              "    ds_d mine = %s;\n    (void)y;\n"
              "    for (long long i = threadIdx.x; threadIdx.x < 128 && i < count; i += 128)\n     "
              "   mine = ",
              n, identity_text(a, info));
    emit_reduce_text(out, info->combine, "mine", "x", "y");
    sb_printf(out, ";\n    return ds_block_fold_%s(mine);\n}\n\n", n);
}

void emit_cuda_reductions(StrBuf *out, const Plan *p)
{
    bool done[RED_COUNT_] = {false}, folded[RED_COUNT_] = {false};
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        int op = reduction(p, r)->op - IR_RED;
        if (!done[op]) merge_and_trees(out, &reduce_info[op]);
        done[op] = true;
    }
    for (uint32_t i = 0; i < p->nreduces; i++) {
        int op = reduction(p, &p->reduces[i])->op - IR_RED;
        if (p->reduces[i].of_scalars && !folded[op]) {
            block_fold(out, out->arena, &reduce_info[op]);
            folded[op] = true;
        }
    }
}

/* ---- scalar programs ------------------------------------------------------------------------ */

static void program_function(StrBuf *out, const Plan *p, const ScalarProgram *sp)
{
    sb_puts(out, "DS_FN void ds_");
    emit_program_name(out, p, sp);
    sb_puts(out, "(double *global, double *group, double *cls, double *tensor)\n{\n"
                 "    (void)global, (void)group, (void)cls, (void)tensor;\n");
    emit_scalar_statements(out, p, sp, &emit_style_cuda, emit_blocks);
    sb_puts(out, "}\n");
}

static void program_calls(StrBuf *out, const Plan *p, const ScalarProgram *sp)
{
    static const char *const loops[LEVEL_COUNT] = {
        "    if (threadIdx.x == 0)\n        ",
        "    for (long long i = threadIdx.x; i < x.ngroups; i += blockDim.x)\n        ",
        "    for (long long i = threadIdx.x; i < x.nclasses; i += blockDim.x)\n        ",
        "    for (long long i = threadIdx.x; i < x.nactive; i += blockDim.x)\n        ",
    };
    static const char *const arguments[LEVEL_COUNT] = {
        "(x.global, 0, 0, 0);\n",
        "(x.global, x.groups[i], 0, 0);\n",
        "(x.global, x.classes[i].u[1], x.classes[i].u[2], 0);\n",
        "(x.global, ds_block(x, i, 1), ds_block(x, i, 2), ds_block(x, i, 3));\n",
    };
    sb_printf(out, "%sds_", loops[sp->level]);
    emit_program_name(out, p, sp);
    sb_printf(out, "%s    __syncthreads();\n", arguments[sp->level]);
}

static void programs_kernel(StrBuf *out, const Plan *p, const ScalarProgram *programs, uint32_t n,
                            int phase, const char *name)
{
    const char *module = emit_module_name(out->arena, p);
    for (uint32_t i = 0; i < n; i++) {
        if (phase < 0 || programs[i].phase == phase) program_function(out, p, &programs[i]);
    }
    sb_printf(out, "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_%s(DsScalars x)\n{\n",
              CUDA_BLOCK, module, name);
    if (phase == 0 && slot_t(p) >= 0)
        sb_printf(out,
                  "    for (long long i = threadIdx.x; i < x.nclasses; i += blockDim.x)\n"
                  "        x.classes[i].u[2][0] = x.classes[i].u[3][%d];\n"
                  "    __syncthreads();\n",
                  slot_t(p));
    for (uint32_t i = 0; i < n; i++) {
        if (phase < 0 || programs[i].phase == phase) program_calls(out, p, &programs[i]);
    }
    sb_puts(out, "}\n\n");
}

/* ---- joins ---------------------------------------------------------------------------------- */

static const char *guard_text(Arena *a, const PlanReduce *r)
{
    if (r->guard.level == LEVEL_NONE) return "";
    return arena_printf(a, " && t.u[%u][%u] != 0", r->guard.level, (unsigned)r->guard.index);
}

static const char *arg_text(Arena *a, Place at, const char *otherwise)
{
    return at.level == LEVEL_NONE ? otherwise
                                  : arena_printf(a, "t.u[%u][%u]", at.level, (unsigned)at.index);
}

/* Its chunks differ in the last one alone. */
static void join_uniform(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    Arena *a = out->arena;
    const char *op = reduce_row(p, r)->name, *x = arg_text(a, r->arg, "0.0"),
               *y = arg_text(a, r->arg2, "0.0");
    sb_printf(out,
              "        if (span.nrows > 0) {\n"
              "            const double whole = ds_uniform_%s(4096, %s, %s);\n"
              "            const double rest = ds_uniform_%s(span.numel - (span.nrows - 1) * 4096, "
              "%s, %s);\n"
              "            double *u = x.uniform + span.first_row;\n"
              "            for (long long i = threadIdx.x; i < span.nrows; i += blockDim.x)\n"
              "                u[i] = i + 1 < span.nrows ? whole : rest;\n"
              "            __syncthreads();\n"
              "            ds_tree_%s(u, span.nrows, 1);\n"
              "            if (threadIdx.x == 0)\n"
              "                t.u[3][%u] = true%s ? u[0] : ds_raw(%s);\n"
              "            __syncthreads();\n"
              "        }\n",
              op, x, y, op, x, y, op, (unsigned)r->result.index, guard_text(a, r),
              identity_text(a, reduce_row(p, r)));
}

static void join_rows(StrBuf *out, const Plan *p, const PlanReduce *r, uint32_t column_all)
{
    Arena *a = out->arena;
    sb_printf(out, "        ds_tree_%s(v + %u, span.nrows, x.npartial);\n", reduce_row(p, r)->name,
              (unsigned)r->partial);
    if (r->result.level == LEVEL_GLOBAL) {
        sb_printf(out,
                  "        if (threadIdx.x == 0) {\n"
                  "            const bool in = span.nrows > 0%s;\n"
                  "            x.present[%u * x.nspans + k] = in;\n"
                  "            x.roots[%u * x.nspans + k] = in ? v[%u] : 0.0;\n"
                  "        }\n",
                  guard_text(a, r), (unsigned)column_all, (unsigned)column_all,
                  (unsigned)r->partial);
    } else {
        sb_printf(out,
                  "        if (threadIdx.x == 0 && span.nrows > 0)\n"
                  "            t.u[3][%u] = true%s ? v[%u] : ds_raw(%s);\n",
                  (unsigned)r->result.index, guard_text(a, r), (unsigned)r->partial,
                  identity_text(a, reduce_row(p, r)));
    }
}

static void join_kernel(StrBuf *out, const Plan *p, int phase)
{
    const char *module = emit_module_name(out->arena, p);
    sb_printf(out,
              "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_join%d(DsJoin x)\n{\n"
              "    for (long long k = blockIdx.x; k < x.nspans; k += gridDim.x) {\n"
              "        const DsSpan span = x.spans[k];\n"
              "        const DsTensorRow t = x.tensors[span.tensor];\n"
              "        double *v = x.partial + span.first_row * x.npartial;\n"
              "        (void)t, (void)v;\n",
              CUDA_BLOCK, module, phase);
    uint32_t column_all = 0;
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        if (r->phase != phase || is_vector(r)) continue;
        if (is_uniform(r))
            join_uniform(out, p, r);
        else
            join_rows(out, p, r, r->result.level == LEVEL_GLOBAL ? column_all++ : 0);
    }
    sb_puts(out, "    }\n}\n\n");
}

/* One value from every tensor, as a vector in byte order of names: chunks of 4096, 128 lanes. */
static void all_vector(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    Arena *a = out->arena;
    const ReduceInfo *info = reduce_row(p, r);
    sb_printf(out,
              "    for (long long c = 0; c * 4096 < x.nspans; c++) {\n"
              "        ds_d mine = %s;\n"
              "        for (long long i = c * 4096 + threadIdx.x; threadIdx.x < 128 && i < "
              "x.nspans && i < (c + 1) * 4096; i += 128) {\n"
              "            const DsSpan span = x.spans[i];\n"
              "            const DsTensorRow t = x.tensors[span.tensor];\n"
              "            if (span.nrows > 0%s)\n                mine = ",
              identity_text(a, info), guard_text(a, r));
    emit_reduce_text(out, info->combine, "mine",
                     arena_printf(a, "(ds_d)%s", arg_text(a, r->arg, "0.0")),
                     arena_printf(a, "(ds_d)%s", arg_text(a, r->arg2, "0.0")));
    sb_printf(out,
              ";\n        }\n"
              "        const double chunk = ds_block_fold_%s(mine);\n"
              "        if (threadIdx.x == 0)\n            x.vector[c] = chunk;\n"
              "        __syncthreads();\n"
              "    }\n"
              "    ds_tree_%s(x.vector, (x.nspans + 4095) / 4096, 1);\n"
              "    if (threadIdx.x == 0)\n"
              "        x.global[%u] = x.nspans > 0 ? x.vector[0] : ds_raw(%s);\n"
              "    __syncthreads();\n",
              info->name, info->name, (unsigned)r->result.index, identity_text(a, info));
}

static void all_kernel(StrBuf *out, const Plan *p, int phase)
{
    const char *module = emit_module_name(out->arena, p);
    sb_printf(out, "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_all%d(DsJoin x)\n{\n",
              CUDA_BLOCK, module, phase);
    uint32_t column = 0;
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        if (r->phase != phase || r->result.level != LEVEL_GLOBAL) continue;
        if (r->of_scalars) {
            all_vector(out, p, r);
            continue;
        }
        sb_printf(
            out,
            "    ds_sparse_tree_%s(x.roots + %u * x.nspans, x.present + %u * x.nspans, x.nspans);\n"
            "    if (threadIdx.x == 0)\n"
            "        x.global[%u] = x.nspans > 0 && x.present[%u * x.nspans] ? x.roots[%u * "
            "x.nspans] : ds_raw(%s);\n",
            reduce_row(p, r)->name, (unsigned)column, (unsigned)column, (unsigned)r->result.index,
            (unsigned)column, (unsigned)column, identity_text(out->arena, reduce_row(p, r)));
        column++;
    }
    sb_puts(out, "}\n\n");
}

void emit_cuda_scalars(StrBuf *out, const Plan *p)
{
    for (int ph = 0; ph <= p->nphases; ph++) {
        char name[32];
        snprintf(name, sizeof name, "s%d", ph);
        if (emit_cuda_has_scalars(p, ph))
            programs_kernel(out, p, p->programs, p->nprograms, ph, name);
        if (emit_cuda_has_join(p, ph)) join_kernel(out, p, ph);
        if (emit_cuda_has_all(p, ph)) all_kernel(out, p, ph);
    }
    if (p->ncommit) programs_kernel(out, p, p->commit, p->ncommit, -1, "commit");
}
