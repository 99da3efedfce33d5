/* emit_cuda.c - a plan as CUDA C++ text for NVRTC or nvcc, without an include.
 *
 * Requires: a plan and a variant with f32 compute. Ensures: one kernel per phase for all tensors. A
 * row of the chunk table is worked on by a block, or by a warp where the kernel reduces: thread j
 * of the warp owns elements 4j … 4j+3 of each 128, so that its four accumulators are four of the
 * 128 lanes of docs/numerics.md, and folding by halves is shuffles by 16, 8, 4, 2, 1 and then two
 * steps inside thread 0. Indices are 64-bit where tensors are meant; accesses are 16 bytes wide
 * where four f32 exist and are aligned. Arithmetic is made of round-to-nearest intrinsics
 * (text/cuda_arith.h), so that no flag contracts it.
 *
 *     adamw:  adamw_s0, adamw_k0, adamw_commit, launched in this order
 */
#include "emit_cuda.h"
#include "frontend/embed.h"
#include "plan_internal.h"
#include <stdio.h>

const EmitStyle emit_style_cuda = {"ds_f", "ds_d", "int", "ds_raw"};

typedef struct CudaKernel {
    Arena *a;
    StrBuf *out;
    const Plan *p;
    const Variant *v;
    const Kernel *k;
    const IrBody *b;
    KernelInfo info;
    const char *module;
    uint32_t nelem;
} CudaKernel;

static const char *elem_type(DType d)
{
    return d == DT_F32 ? "float" : "ds_u16";
}

/* Reads the row, its blocks, scalars and pointers; leaves the row where all guards are false. */
static void row_head(const CudaKernel *c)
{
    StrBuf *out = c->out;
    sb_puts(out, "        const DsRow row = args.rows[r];\n"
                 "        const DsTensorRow t = args.tensors[row.tensor];\n"
                 "        const int count = (int)row.count;\n");
    const char *const blocks[LEVEL_COUNT] = {"t.u[0]", "t.u[1]", "t.u[2]", "t.u[3]"};
    for (uint32_t i = 0; i < c->info.nscalars; i++) {
        sb_puts(out, "        ");
        emit_scalar_read(out, c->p, c->v->body, c->info.scalars[i], &emit_style_cuda, blocks);
        sb_puts(out, "\n");
    }
    if (!c->info.always && c->info.nguards) {
        sb_puts(out, "        if (!(");
        for (uint32_t i = 0; i < c->info.nguards; i++)
            sb_printf(out, "%sv%u", i ? " | " : "", (unsigned)c->info.guards[i]);
        sb_puts(out, "))\n            continue;\n");
    }
    for (uint32_t e = 0; e < c->nelem; e++) {
        if (!c->info.loads[e] && !c->info.stores[e]) continue;
        const char *name = emit_elem_name(c->a, c->p, e);
        const char *type = elem_type(emit_elem_storage(c->p, c->v, e));
        const char *qualifier = c->info.stores[e] ? "" : "const ";
        sb_printf(out, "        %s%s *%s = (%s%s *)t.ptr[%u] + row.first;\n", qualifier, type, name,
                  qualifier, type, (unsigned)e);
        sb_printf(out,
                  "        __builtin_assume(__isGlobal(%s));\n        const bool wide_%s = "
                  "ds_wide(%s);\n",
                  name, name, name);
    }
}

static void load_four(const CudaKernel *c)
{
    for (uint32_t e = 0; e < c->nelem; e++) {
        const char *name = emit_elem_name(c->a, c->p, e);
        const char *type = elem_type(emit_elem_storage(c->p, c->v, e));
        if (c->info.loads[e])
            sb_printf(
                c->out,
                "            %s in_%s[4];\n            ds_get(%s, i, left, wide_%s, in_%s);\n",
                type, name, name, name, name);
        if (c->info.stores[e]) sb_printf(c->out, "            %s out_%s[4];\n", type, name);
    }
}

/* Four elements, unrolled; lanes take those that exist. */
static void compute_four(const CudaKernel *c)
{
    StrBuf *out = c->out;
    sb_puts(out, "#pragma unroll\n            for (int c = 0; c < 4; c++) {\n");
    int line = 0;
    for (uint32_t i = 0; i < c->k->nvals; i++) {
        const KernelValue *kv = &c->k->vals[i];
        sb_puts(out, "                ");
        if (kv->how == VAL_COMPUTE) {
            emit_element_value(out, c->p, c->v, kv->ref, &emit_style_cuda);
        } else {
            const char *at = arena_printf(c->a, "in_%s[c]", emit_elem_name(c->a, c->p, kv->elem));
            sb_printf(out, "const ds_f v%u = %s;", (unsigned)kv->ref,
                      emit_widened(c->a, emit_elem_storage(c->p, c->v, kv->elem), at));
        }
        emit_line_end(out, c->p, c->v->body, kv->ref, &line);
    }
    for (uint32_t i = 0; i < c->k->nstores; i++) {
        const KernelStore *ks = &c->k->stores[i];
        sb_puts(out, "                ");
        const char *value = arena_printf(c->a, "v%u", (unsigned)ks->value);
        DType storage = emit_elem_storage(c->p, c->v, ks->elem);
        sb_printf(out, "out_%s[c] = %s%s;\n", emit_elem_name(c->a, c->p, ks->elem),
                  storage == DT_F32 ? "(float)" : "", emit_narrowed(c->a, storage, value));
    }
    if (c->k->nreduces) sb_puts(out, "                if (c < left) {\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const PlanReduce *r = &c->p->reduces[c->k->reduces[i]];
        const Ins *ins = &c->b->ins[r->ins];
        char lane[32], x[32], y[32];
        snprintf(lane, sizeof lane, "lane%u[c]", (unsigned)r->partial);
        snprintf(x, sizeof x, "(ds_d)v%u", (unsigned)ins->arg[0]);
        snprintf(y, sizeof y, "(ds_d)v%u", (unsigned)ins->arg[1]);
        sb_printf(out, "                    %s = ", lane);
        emit_reduce_text(out, reduce_info[ins->op - IR_RED].combine, lane, x, y);
        sb_puts(out, ";\n");
    }
    sb_puts(out, c->k->nreduces ? "                }\n            }\n" : "            }\n");
}

static void store_four(const CudaKernel *c)
{
    bool branches = c->info.always || c->info.nguards > 1;
    for (uint32_t i = 0; i < c->k->nstores; i++) {
        const KernelStore *ks = &c->k->stores[i];
        const char *name = emit_elem_name(c->a, c->p, ks->elem);
        sb_puts(c->out, "            ");
        if (branches && ks->guard != IR_NONE) sb_printf(c->out, "if (v%u) ", (unsigned)ks->guard);
        sb_printf(c->out, "ds_put(%s, i, left, wide_%s, out_%s);\n", name, name, name);
    }
}

static void lanes_begin(const CudaKernel *c)
{
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const PlanReduce *r = &c->p->reduces[c->k->reduces[i]];
        StrBuf identity = {.arena = c->a};
        emit_literal(&identity, reduce_info[c->b->ins[r->ins].op - IR_RED].identity, DT_F64);
        sb_printf(c->out, "        ds_d lane%u[4] = {%s, %s, %s, %s};\n", (unsigned)r->partial,
                  identity.text, identity.text, identity.text, identity.text);
    }
}

static void lanes_end(const CudaKernel *c)
{
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const PlanReduce *r = &c->p->reduces[c->k->reduces[i]];
        const char *op = reduce_info[c->b->ins[r->ins].op - IR_RED].name;
        sb_printf(c->out, "        const ds_d root%u = ds_fold_%s(lane%u);\n", (unsigned)r->partial,
                  op, (unsigned)r->partial);
        sb_printf(c->out,
                  "        if (thread == 0)\n            args.partial[r * args.npartial + %u] = "
                  "ds_raw(root%u);\n",
                  (unsigned)r->partial, (unsigned)r->partial);
    }
}

static void kernel(const CudaKernel *c)
{
    StrBuf *out = c->out;
    bool reduces = c->k->nreduces > 0;
    sb_printf(out,
              "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_k%d(DsArgs args, long long "
              "begin, long long end)\n{\n",
              CUDA_BLOCK, c->module, c->k->phase);
    if (reduces)
        sb_puts(out, "    const int thread = threadIdx.x & 31, width = 128;\n"
                     "    const long long first = begin + (long long)blockIdx.x * (blockDim.x >> "
                     "5) + (threadIdx.x >> 5);\n"
                     "    const long long stride = (long long)gridDim.x * (blockDim.x >> 5);\n");
    else
        sb_puts(out, "    const int thread = threadIdx.x, width = 4 * (int)blockDim.x;\n"
                     "    const long long first = begin + blockIdx.x, stride = gridDim.x;\n");
    for (uint32_t i = 0; i < c->info.nconsts; i++) {
        sb_puts(out, "    ");
        emit_scalar_read(out, c->p, c->v->body, c->info.consts[i], &emit_style_cuda, emit_blocks);
        sb_puts(out, "\n");
    }
    sb_puts(out, "    for (long long r = first; r < end; r += stride) {\n");
    row_head(c);
    lanes_begin(c);
    sb_puts(out, "        for (int i = 4 * thread; i < count; i += width) {\n"
                 "            const int left = count - i;\n");
    load_four(c);
    compute_four(c);
    store_four(c);
    sb_puts(out, "        }\n");
    lanes_end(c);
    sb_puts(out, "    }\n}\n\n");
}

/* Everything that calls ds_ functions of ds_math.h; what it needs is found by reading it. */
static void body_text(StrBuf *out, const Plan *p, const Variant *v)
{
    Arena *a = out->arena;
    emit_cuda_reductions(out, p);
    emit_cuda_scalars(out, p);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        CudaKernel c = {.a = a,
                        .out = out,
                        .p = p,
                        .v = v,
                        .k = &v->kernels[i],
                        .module = emit_module_name(a, p)};
        c.b = &p->m->bodies[v->body];
        c.info = emit_kernel_info(a, p, v, c.k);
        c.nelem = p->m->nelem + v->ntemps;
        kernel(&c);
    }
}

static const char *fixed_text(const char *name)
{
    const EmbeddedFile *f = embed_find(ds_texts, ds_texts_count, name);
    return f ? f->text : "";
}

bool emit_cuda(const Plan *p, const Variant *v, StrBuf *cu_text)
{
    if (p->m->compute_f64) return false; /* the oracle's lowering is the interpreter's alone */
    StrBuf body = {.arena = cu_text->arena};
    body_text(&body, p, v);
    emit_cuda_comment(cu_text, p, v, " * ");
    sb_puts(cu_text, "#pragma nv_diag_suppress 177 /* not every rule calls every function */\n\n");
    emit_math_sections(cu_text, body.text, fixed_text("cuda_arith.h"));
    sb_puts(cu_text, fixed_text("cuda_tables.h"));
    sb_puts(cu_text, body.text);
    return true;
}
