/* emit_cuda.c - a plan as CUDA C++ text for NVRTC or nvcc, without an include.
 *
 * Requires: the plans of a rule's entry points with f32 compute, and the storage of their elements.
 * Ensures: one kernel per phase for all tensors, whatever body they run. A row of the table is worked
 * on by a block, or by a warp where the kernel reduces: thread j of the warp owns elements 4j … 4j+3
 * of each 128, so that its four accumulators are four of the 128 lanes of docs/numerics.md, and
 * folding by halves is shuffles by 16, 8, 4, 2, 1 and then two steps inside thread 0. In a tile whose
 * rows or columns are reduced, threads own columns, line after line; lanes of the tile, which go on
 * from line to line, get their values by shuffles. Otherwise a tile is taken as a chunk is. Indices
 * are 64-bit where tensors are meant; accesses are 16 bytes wide where four f32 exist and are aligned.
 * Arithmetic is made of round-to-nearest intrinsics (text/cuda_arith.h), so that no flag contracts it.
 *
 *     adamw:  adamw_s0, adamw_k0, adamw_commit, launched in this order
 */
#include "emit_c.h"
#include "emit_cuda.h"
#include "frontend/embed.h"
#include "plan_internal.h"
#include <stdio.h>

const EmitStyle emit_style_cuda = {"ds_f", "ds_d", "int", "ds_raw"};

CudaModule cuda_module(Arena *a, const Plan *p, const DType *storage)
{
    CudaModule m = {.a = a, .p = p, .name = emit_prefix(a, p)};
    m.variants = ARENA_ARRAY(a, const Variant *, p->m->nbodies + 1);
    for (uint32_t b = 0; b < p->m->nbodies; b++) m.variants[b] = plan_variant(a, p, b, storage);
    return m;
}

const Kernel *cuda_kernel_of(const CudaModule *m, uint32_t body, int phase)
{
    const Variant *v = m->variants[body];
    for (uint32_t i = 0; i < v->nkernels; i++) {
        if (v->kernels[i].phase == phase) return &v->kernels[i];
    }
    return NULL;
}

bool cuda_by_warp(const CudaModule *m, int phase)
{
    for (uint32_t b = 0; b < m->p->m->nbodies; b++) {
        const Kernel *k = cuda_kernel_of(m, b, phase);
        if (k && k->nreduces) return true;
    }
    return false;
}

typedef struct CudaKernel {
    Arena *a;
    StrBuf *out;
    const Plan *p;
    const Variant *v;
    const Kernel *k;
    const IrBody *b;
    KernelInfo info;
    uint32_t nelem;
    bool view;  /* tiles in place of chunks */
    bool lines; /* its rows or columns are reduced: line after line */
    bool lanes; /* something is reduced over the tile */
} CudaKernel;

static const PlanReduce *kernel_reduce(const CudaKernel *c, uint32_t i)
{
    return &c->p->reduces[c->k->reduces[i]];
}

static bool to_rows(const CudaKernel *c, uint32_t i)
{
    return (kernel_reduce(c, i)->rate & (AXIS_ROW | AXIS_BLOCK)) != 0;
}

static bool to_cols(const CudaKernel *c, uint32_t i)
{
    return (kernel_reduce(c, i)->rate & AXIS_COL) != 0;
}

static bool is_column(const CudaKernel *c, IrRef ref)
{
    return (c->b->ins[ref].rate & AXIS_COL) != 0;
}

static const char *elem_type(DType d)
{
    return d == DT_F32 ? "float" : "ds_u16";
}

/* Reads scalars and matrix values; leaves the row where all guards are false. */
static void row_head(const CudaKernel *c)
{
    StrBuf *out = c->out;
    for (uint32_t i = 0; i < c->info.nconsts + c->info.nscalars; i++) {
        IrRef ref = i < c->info.nconsts ? c->info.consts[i] : c->info.scalars[i - c->info.nconsts];
        sb_puts(out, "    ");
        emit_scalar_read(out, c->p, c->v->body, ref, &emit_style_cuda, emit_row_blocks);
        sb_puts(out, "\n");
    }
    if (!c->info.always && c->info.nguards) {
        sb_puts(out, "    if (!(");
        for (uint32_t i = 0; i < c->info.nguards; i++)
            sb_printf(out, "%sv%u", i ? " | " : "", (unsigned)c->info.guards[i]);
        sb_puts(out, "))\n        return;\n");
    }
    for (uint32_t i = 0; i < c->info.nmatrices; i++) {
        sb_puts(out, "    ");
        emit_vector_read(out, c->p, c->v->body, c->info.matrices[i], &emit_vectors_cuda,
                         "row.matrix");
        sb_puts(out, "\n");
    }
}

/* Pointers to the elements from ds_at on. */
static void pointers(const CudaKernel *c)
{
    StrBuf *out = c->out;
    for (uint32_t e = 0; e < c->nelem; e++) {
        if (!c->info.loads[e] && !c->info.stores[e]) continue;
        const char *name = emit_elem_name(c->a, c->p, e);
        const char *type = elem_type(emit_elem_storage(c->p, c->v, e));
        const char *qualifier = c->info.stores[e] ? "" : "const ";
        sb_printf(out, "        %s%s *%s = (%s%s *)t->ptr[%u] + ds_at;\n", qualifier, type, name,
                  qualifier, type, (unsigned)e);
        sb_printf(out,
                  "        __builtin_assume(__isGlobal(%s));\n"
                  "        const bool wide_%s = ds_wide(%s - ds_shift);\n",
                  name, name, name);
    }
}

static void load_four(const CudaKernel *c)
{
    for (uint32_t e = 0; e < c->nelem; e++) {
        if (!c->info.loads[e] && !c->info.stores[e]) continue;
        const char *name = emit_elem_name(c->a, c->p, e);
        const char *type = elem_type(emit_elem_storage(c->p, c->v, e));
        if (c->info.loads[e])
            sb_printf(
                c->out,
                "            %s in_%s[4];\n            ds_get(%s, i, left, wide_%s, in_%s);\n",
                type, name, name, name, name);
        if (c->info.stores[e]) sb_printf(c->out, "            %s out_%s[4];\n", type, name);
    }
    for (uint32_t i = 0; c->lines && i < c->k->nreduces; i++) {
        if (!to_rows(c, i) && !to_cols(c, i))
            sb_printf(c->out, "            ds_d ds_x%u[4], ds_y%u[4];\n", (unsigned)i, (unsigned)i);
    }
}

/* Values of rows, blocks and columns, for element c of the four; those that do not exist read
 * another's. */
static void read_vectors(const CudaKernel *c)
{
    StrBuf *out = c->out;
    bool rows = false, cols = false;
    for (uint32_t i = 0; i < c->info.nvectors; i++) {
        bool col = is_column(c, c->info.vectors[i]);
        rows |= !col;
        cols |= col;
    }
    if (!rows && !cols) return;
    sb_puts(out, "                const int ds_q = ds_has ? i + c : 0;\n");
    if (rows && !c->lines)
        sb_puts(out,
                "                const long long ds_r = row.row + ds_run + ds_q / ds_width;\n");
    if (cols)
        sb_printf(
            out,
            "                const long long ds_c = row.matrix * t->cols + row.col + ds_q%s;\n",
            c->lines ? "" : " % ds_width");
    for (uint32_t i = 0; i < c->info.nvectors; i++) {
        IrRef ref = c->info.vectors[i];
        if (!is_column(c, ref) && c->lines) continue;
        sb_puts(out, "                ");
        emit_vector_read(out, c->p, c->v->body, ref, &emit_vectors_cuda,
                         is_column(c, ref) ? "ds_c" : "ds_r");
        sb_puts(out, "\n");
    }
}

static void compute_values(const CudaKernel *c)
{
    StrBuf *out = c->out;
    int line = 0;
    for (uint32_t i = 0; i < c->k->nvals; i++) {
        const KernelValue *kv = &c->k->vals[i];
        const Ins *ins = &c->b->ins[kv->ref];
        sb_puts(out, "                ");
        if (kv->how != VAL_COMPUTE) {
            const char *at = arena_printf(c->a, "in_%s[c]", emit_elem_name(c->a, c->p, kv->elem));
            sb_printf(out, "const ds_f v%u = %s;", (unsigned)kv->ref,
                      emit_widened(c->a, emit_elem_storage(c->p, c->v, kv->elem), at));
        } else if (ir_is_draw(ins)) {
            sb_printf(out, "const ds_f v%u = ", (unsigned)kv->ref);
            emit_draw_text(out, ins, "(ds_u64)(ds_at + i + c)");
            sb_puts(out, ";");
        } else {
            emit_element_value(out, c->p, c->v, kv->ref, &emit_style_cuda);
        }
        emit_line_end(out, c->p, c->v->body, kv->ref, &line);
    }
    for (uint32_t i = 0; i < c->k->nstores; i++) {
        const KernelStore *ks = &c->k->stores[i];
        const char *value = arena_printf(c->a, "v%u", (unsigned)ks->value);
        DType storage = emit_elem_storage(c->p, c->v, ks->elem);
        sb_printf(out, "                out_%s[c] = %s%s;\n", emit_elem_name(c->a, c->p, ks->elem),
                  storage == DT_F32 ? "(float)" : "", emit_narrowed(c->a, storage, value));
    }
}

static const char *identity_text(const CudaKernel *c, uint32_t i)
{
    return cuda_identity(c->a, plan_reduce_info(c->p, kernel_reduce(c, i)));
}

static void combine(const CudaKernel *c, uint32_t i, const char *indent, const char *to,
                    const char *x, const char *y)
{
    sb_printf(c->out, "%s%s = ", indent, to);
    emit_reduce_text(c->out, plan_reduce_info(c->p, kernel_reduce(c, i))->combine, to, x, y);
    sb_puts(c->out, ";\n");
}

/* Lanes take the values of elements that exist. */
static void reduce_four(const CudaKernel *c)
{
    StrBuf *out = c->out;
    if (!c->k->nreduces) return;
    sb_puts(out, "                if (ds_has) {\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const Ins *ins = plan_reduction(c->p, kernel_reduce(c, i));
        const char *x = arena_printf(c->a, "(ds_d)v%u", (unsigned)ins->arg[0]);
        const char *y =
            ir_arity(ins) > 1 ? arena_printf(c->a, "(ds_d)v%u", (unsigned)ins->arg[1]) : "0.0";
        const char *in = "                    ";
        if (to_cols(c, i)) {
            sb_printf(out, "%sds_d ds_a%u = ds_line ? ds_d(ds_col%u[i + c]) : ds_d(%s);\n", in,
                      (unsigned)i, (unsigned)i, identity_text(c, i));
            combine(c, i, in, arena_printf(c->a, "ds_a%u", (unsigned)i), x, y);
            sb_printf(out, "%sds_col%u[i + c] = ds_raw(ds_a%u);\n", in, (unsigned)i, (unsigned)i);
        } else if (to_rows(c, i) || !c->lines) {
            combine(c, i, in, arena_printf(c->a, "lane%u[c]", (unsigned)i), x, y);
        }
    }
    sb_puts(out, "                }\n");
    for (uint32_t i = 0; c->lines && i < c->k->nreduces; i++) {
        const Ins *ins = plan_reduction(c->p, kernel_reduce(c, i));
        if (to_rows(c, i) || to_cols(c, i)) continue;
        sb_printf(out, "                ds_x%u[c] = (ds_d)v%u;\n", (unsigned)i,
                  (unsigned)ins->arg[0]);
        if (ir_arity(ins) > 1)
            sb_printf(out, "                ds_y%u[c] = (ds_d)v%u;\n", (unsigned)i,
                      (unsigned)ins->arg[1]);
    }
}

/* Lane 4j + c of the tile takes the element of this line that is at its place. */
static void rotate_four(const CudaKernel *c)
{
    StrBuf *out = c->out;
    if (!c->lines || !c->lanes) return;
    sb_puts(out, "#pragma unroll\n            for (int c = 0; c < 4; c++) {\n"
                 "                const int ds_o = (4 * thread + c - ds_skew - ds_i) & 127;\n"
                 "                const int ds_k = (c - ds_skew) & 3;\n"
                 "                const bool ds_has = ds_i + ds_o < count;\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (to_rows(c, i) || to_cols(c, i)) continue;
        const Ins *ins = plan_reduction(c->p, kernel_reduce(c, i));
        unsigned n = (unsigned)i;
        sb_printf(
            out,
            "                const ds_d ds_u%u = ds_from_thread(ds_pick(ds_x%u, ds_k), ds_o >> "
            "2);\n",
            n, n);
        if (ir_arity(ins) > 1)
            sb_printf(out,
                      "                const ds_d ds_w%u = ds_from_thread(ds_pick(ds_y%u, ds_k), "
                      "ds_o >> 2);\n",
                      n, n);
        combine(c, i, "                if (ds_has) ", arena_printf(c->a, "lane%u[c]", n),
                arena_printf(c->a, "ds_u%u", n),
                ir_arity(ins) > 1 ? arena_printf(c->a, "ds_w%u", n) : "0.0");
    }
    sb_puts(out, "            }\n");
}

/* Four elements, unrolled. */
static void four(const CudaKernel *c)
{
    StrBuf *out = c->out;
    sb_puts(out, "            const int left = count - i;\n");
    load_four(c);
    sb_puts(out, "#pragma unroll\n            for (int c = 0; c < 4; c++) {\n");
    sb_printf(out,
              "                const bool ds_has = c < left%s;\n                (void)ds_has;\n",
              c->view && !c->lines ? " && i + c >= 0" : "");
    read_vectors(c);
    compute_values(c);
    reduce_four(c);
    sb_puts(out, "            }\n");
    rotate_four(c);
    bool branches = c->info.always || c->info.nguards > 1;
    for (uint32_t i = 0; i < c->k->nstores; i++) {
        const KernelStore *ks = &c->k->stores[i];
        const char *name = emit_elem_name(c->a, c->p, ks->elem);
        sb_puts(out, "            ");
        if (branches && ks->guard != IR_NONE) sb_printf(out, "if (v%u) ", (unsigned)ks->guard);
        sb_printf(out, "ds_put(%s, i, left, wide_%s, out_%s);\n", name, name, name);
    }
}

/* Lanes of whole rows of the table (`rows` false) or of each line. */
static void lanes_begin(const CudaKernel *c, bool rows)
{
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (to_cols(c, i) || to_rows(c, i) != rows) continue;
        const char *identity = identity_text(c, i);
        sb_printf(c->out, "%sds_d lane%u[4] = {%s, %s, %s, %s};\n", rows ? "        " : "    ",
                  (unsigned)i, identity, identity, identity, identity);
    }
}

static void lanes_end(const CudaKernel *c, bool rows)
{
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (to_cols(c, i) || to_rows(c, i) != rows) continue;
        const PlanReduce *r = kernel_reduce(c, i);
        const char *in = rows ? "        " : "    ";
        sb_printf(c->out, "%sconst ds_d root%u = ds_fold_%s(lane%u);\n", in, (unsigned)i,
                  plan_reduce_info(c->p, r)->name, (unsigned)i);
        if (rows)
            sb_printf(c->out, "%sif (thread == 0) ds_row%u[ds_line] = ds_raw(root%u);\n", in,
                      (unsigned)i, (unsigned)i);
        else
            sb_printf(c->out,
                      "%sif (thread == 0) args.partial[r * args.npartial + %u] = ds_raw(root%u);\n",
                      in, (unsigned)r->partial, (unsigned)i);
    }
}

/* Partial results of lines and columns of this row of the table. */
static void line_buffers(const CudaKernel *c)
{
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        unsigned ptr = (unsigned)kernel_reduce(c, i)->result_vec;
        if (to_rows(c, i))
            sb_printf(c->out,
                      "    double *ds_row%u = (double *)t->ptr[%u] + ds_behind(t->rows * t->mats, "
                      "ds_strips(t)) + row.strip * t->rows * t->mats + row.row;\n",
                      (unsigned)i, ptr);
        else if (to_cols(c, i))
            sb_printf(c->out,
                      "    double *ds_col%u = (double *)t->ptr[%u] + ds_behind(t->cols * t->mats, "
                      "t->tiles) + (row.matrix * t->tiles + row.tile) * t->cols + row.col;\n",
                      (unsigned)i, ptr);
    }
}

static void body_of_lines(const CudaKernel *c)
{
    StrBuf *out = c->out;
    line_buffers(c);
    sb_puts(out,
            "    const int ds_width = (int)row.width, ds_shift = 0;\n"
            "    const int ds_lines = row.runs > 1 ? (int)row.runs : ((int)row.count + ds_width "
            "- 1) / ds_width;\n");
    if (c->lanes) sb_puts(out, "    int ds_skew = 0;\n");
    sb_puts(out,
            "    for (int ds_line = 0; ds_line < ds_lines; ds_line++) {\n"
            "        const long long ds_at = row.first + ds_line * (row.runs > 1 ? row.pitch : "
            "row.width);\n"
            "        const int count = ds_line + 1 < ds_lines ? ds_width : (int)row.last - "
            "(row.runs > 1 ? 0 : ds_line * ds_width);\n");
    for (uint32_t i = 0; i < c->info.nvectors; i++) {
        if (is_column(c, c->info.vectors[i])) continue;
        sb_puts(out, "        ");
        emit_vector_read(out, c->p, c->v->body, c->info.vectors[i], &emit_vectors_cuda,
                         "row.row + ds_line");
        sb_puts(out, "\n");
    }
    pointers(c);
    lanes_begin(c, true);
    /* All threads come along: lanes of the tile are exchanged. */
    sb_puts(out, "        for (int ds_i = 0; ds_i < count; ds_i += 128) {\n"
                 "            const int i = ds_i + 4 * thread;\n");
    four(c);
    sb_puts(out, "        }\n");
    lanes_end(c, true);
    if (c->lanes) sb_puts(out, "        ds_skew = (ds_skew + count) & 127;\n");
    sb_puts(out, "    }\n");
}

/* A chunk, or a tile as runs of elements: lanes go on from run to run, so threads begin at the
 * place of their lanes. */
static void body_of_runs(const CudaKernel *c)
{
    StrBuf *out = c->out;
    if (c->view)
        sb_printf(out,
                  "    const int ds_width = (int)row.width;\n    (void)ds_width;\n"
                  "    for (int ds_run = 0; ds_run < row.runs; ds_run++) {\n"
                  "        const long long ds_at = row.first + ds_run * row.pitch;\n"
                  "        const int count = (int)(ds_run + 1 < row.runs ? row.count : row.last);\n"
                  "        const int ds_shift = %s;\n",
                  c->lanes ? "(int)(ds_run * row.count & 127)" : "0");
    else
        sb_puts(out, "    {\n        const long long ds_at = row.first;\n"
                     "        const int count = (int)row.count, ds_shift = 0;\n");
    pointers(c);
    sb_puts(out, c->view ? "        for (int i = 4 * thread - ds_shift; i < count; i += width) {\n"
                         : "        for (int i = 4 * thread; i < count; i += width) {\n");
    four(c);
    sb_puts(out, "        }\n    }\n");
}

/* What a body's kernel does to a row of the table. */
static void row_function(const CudaKernel *c)
{
    sb_puts(c->out, "DS_FN void ds_");
    emit_kernel_name(c->out, c->v, c->k);
    sb_puts(c->out, "(const DsArgs &args, const long long r, const DsRow &row, const DsTensorRow "
                    "*t, const int thread, const int width)\n{\n    (void)args, (void)r, "
                    "(void)width;\n");
    row_head(c);
    lanes_begin(c, false);
    if (c->lines)
        body_of_lines(c);
    else
        body_of_runs(c);
    lanes_end(c, false);
    sb_puts(c->out, "}\n");
}

static CudaKernel kernel_of(const CudaModule *m, StrBuf *out, uint32_t body, const Kernel *k)
{
    CudaKernel c = {.a = m->a, .out = out, .p = m->p, .v = m->variants[body], .k = k};
    c.b = &m->p->m->bodies[body];
    c.info = emit_kernel_info(m->a, m->p, c.v, k);
    c.nelem = emit_pointer_count(m->p, c.v);
    c.view = c.b->view != VIEW_FLAT;
    for (uint32_t i = 0; i < k->nreduces; i++) {
        bool line = to_rows(&c, i) || to_cols(&c, i);
        c.lines |= line;
        c.lanes |= !line;
    }
    return c;
}

static void kernel(const CudaModule *m, StrBuf *out, int phase)
{
    for (uint32_t b = 0; b < m->p->m->nbodies; b++) {
        const Kernel *k = cuda_kernel_of(m, b, phase);
        if (!k) continue;
        CudaKernel c = kernel_of(m, out, b, k);
        row_function(&c);
    }
    sb_printf(out,
              "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_k%d(DsArgs args, long long "
              "begin, long long end)\n{\n",
              CUDA_BLOCK, m->name, phase);
    if (cuda_by_warp(m, phase))
        sb_puts(out, "    const int thread = threadIdx.x & 31, width = 128;\n"
                     "    const long long first = begin + (long long)blockIdx.x * (blockDim.x >> "
                     "5) + (threadIdx.x >> 5);\n"
                     "    const long long stride = (long long)gridDim.x * (blockDim.x >> 5);\n");
    else
        sb_puts(out, "    const int thread = threadIdx.x, width = 4 * (int)blockDim.x;\n"
                     "    const long long first = begin + blockIdx.x, stride = gridDim.x;\n");
    sb_puts(out, "    for (long long r = first; r < end; r += stride) {\n"
                 "        const DsRow row = args.rows[r];\n"
                 "        const DsTensorRow *t = &args.tensors[row.tensor];\n");
    for (uint32_t b = 0; b < m->p->m->nbodies; b++) {
        const Kernel *k = cuda_kernel_of(m, b, phase);
        if (!k) continue;
        sb_puts(out, "        ");
        if (m->p->m->nbodies > 1) sb_printf(out, "if (t->body == %u) ", (unsigned)b);
        sb_puts(out, "ds_");
        emit_kernel_name(out, m->variants[b], k);
        sb_puts(out, "(args, r, row, t, thread, width);\n");
    }
    sb_puts(out, "    }\n}\n\n");
}

/* ---- the whole ------------------------------------------------------------------------------- */

static bool has_scalars(const Plan *p, int phase)
{
    if (phase == 0 || (phase > p->nphases && p->ncommit)) return true; /* hands t to the classes */
    for (uint32_t i = 0; i < p->nprograms; i++) {
        if (p->programs[i].phase == phase) return true;
    }
    return false;
}

static bool has_vectors(const Plan *p, int phase, bool matrices)
{
    bool commit = phase > p->nphases;
    for (uint32_t i = 0; i < (commit ? p->nvcommit : p->nvprograms); i++) {
        const VectorProgram *vp = commit ? &p->vcommit[i] : &p->vprograms[i];
        if ((commit || vp->phase == phase) && (vp->rate == RATE_MATRIX) == matrices) return true;
    }
    return false;
}

static bool has_kernel(const CudaModule *m, int phase)
{
    for (uint32_t b = 0; b < m->p->m->nbodies; b++) {
        if (cuda_kernel_of(m, b, phase)) return true;
    }
    return false;
}

CudaLaunch *cuda_launches(const CudaModule *m, uint32_t *n)
{
    const Plan *p = m->p;
    Arena *a = m->a;
    CudaLaunch *list = ARENA_ARRAY(a, CudaLaunch, 6 * (p->nphases + 1) + 4);
    *n = 0;
    for (int ph = 0; ph <= p->nphases; ph++) {
        if (has_scalars(p, ph))
            list[(*n)++] = (CudaLaunch){CUDA_SCALARS, ph, arena_printf(a, "s%d", ph), false};
        if (has_vectors(p, ph, true))
            list[(*n)++] = (CudaLaunch){CUDA_VECTORS, ph, arena_printf(a, "v%d_matrix", ph), true};
        if (has_vectors(p, ph, false))
            list[(*n)++] = (CudaLaunch){CUDA_VECTORS, ph, arena_printf(a, "v%d", ph), false};
        if (has_kernel(m, ph))
            list[(*n)++] = (CudaLaunch){CUDA_ROWS, ph, arena_printf(a, "k%d", ph), false};
        if (emit_cuda_has_join(p, ph))
            list[(*n)++] = (CudaLaunch){CUDA_SPANS, ph, arena_printf(a, "join%d", ph), false};
        if (emit_cuda_has_all(p, ph))
            list[(*n)++] = (CudaLaunch){CUDA_ALL, ph, arena_printf(a, "all%d", ph), false};
    }
    int end = p->nphases + 1;
    if (has_vectors(p, end, false))
        list[(*n)++] = (CudaLaunch){CUDA_VECTORS, end, "vcommit", false};
    if (has_vectors(p, end, true))
        list[(*n)++] = (CudaLaunch){CUDA_VECTORS, end, "vcommit_matrix", true};
    if (p->ncommit) list[(*n)++] = (CudaLaunch){CUDA_SCALARS, end, "commit", false};
    return list;
}

/* Everything that calls ds_ functions of ds_math.h; what it needs is found by reading it. */
static void body_text(StrBuf *out, const CudaModule *m)
{
    uint32_t n;
    const CudaLaunch *l = cuda_launches(m, &n);
    emit_cuda_reductions(out, m->p);
    for (uint32_t i = 0; i < n; i++) {
        int phase = l[i].phase;
        switch (l[i].kind) {
        case CUDA_SCALARS: emit_cuda_scalars(out, m, phase, l[i].name); break;
        case CUDA_VECTORS: emit_cuda_vectors(out, m, phase, l[i].matrices, l[i].name); break;
        case CUDA_ROWS: kernel(m, out, phase); break;
        case CUDA_SPANS: emit_cuda_join(out, m, phase); break;
        case CUDA_ALL: emit_cuda_all(out, m, phase); break;
        }
    }
}

static const char *fixed_text(const char *name)
{
    const EmbeddedFile *f = embed_find(ds_texts, ds_texts_count, name);
    return f ? f->text : "";
}

bool emit_cuda(const Plan *const *plans, size_t n, const DType *storage, StrBuf *cu_text)
{
    StrBuf body = {.arena = cu_text->arena};
    for (size_t i = 0; i < n; i++) {
        if (plans[i]->m->compute_f64) return false; /* the oracle's lowering is the interpreter's */
        CudaModule m = cuda_module(cu_text->arena, plans[i], storage);
        emit_cuda_comment(cu_text, &m, " * ");
        if (n > 1) sb_printf(&body, "namespace ds_of_%s\n{\n", m.name);
        body_text(&body, &m);
        if (n > 1) sb_puts(&body, "}\n\n");
    }
    sb_puts(cu_text, "#pragma nv_diag_suppress 177 /* not every rule calls every function */\n\n");
    emit_math_sections(cu_text, body.text, fixed_text("cuda_arith.h"));
    sb_puts(cu_text, fixed_text("cuda_tables.h"));
    sb_puts(cu_text, body.text);
    return true;
}
