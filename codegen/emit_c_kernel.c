/* emit_c_kernel.c - kernels of standalone C: a function for a row of the table, or for a line of a
 * matrix, and one that goes through the table.
 *
 * Requires: functions that fold lanes (emit_c.c) before them in the file. Ensures: plain loops over
 * restrict pointers with scalars in locals, which gcc and clang turn into vector code; lanes are
 * arrays of 128 (docs/numerics.md), of narrow rows only as many as there are elements.
 *
 *     adamw_k0 calls adamw_k0_row(row->count, p + first, …)          for each chunk
 *     adafactor_k0 calls adafactor_k0_row(columns, g + at, …)        for each matrix row of a tile
 */
#include "emit_c.h"
#include "plan_internal.h"
#include <stdio.h>

static const char *elem_ctype(DType d)
{
    switch (d) {
    case DT_F16:
    case DT_BF16: return "ds_any_u16";
    case DT_F64: return "ds_any_f64";
    default: return "ds_any_f32";
    }
}

typedef struct CKernel {
    Arena *a;
    StrBuf *out;
    const Plan *p;
    const Variant *v;
    const Kernel *k;
    const IrBody *b;
    KernelInfo info;
    const char *module;
    bool branches; /* stores have guards of their own inside the loop */
    bool view;     /* tiles of matrices; lines are what the row function is called for */
    bool draws;
} CKernel;

static const PlanReduce *kernel_reduce(const CKernel *c, uint32_t i)
{
    return &c->p->reduces[c->k->reduces[i]];
}

static const ReduceInfo *kernel_reduce_info(const CKernel *c, uint32_t i)
{
    return plan_reduce_info(c->p, kernel_reduce(c, i));
}

static bool to_rows(const CKernel *c, uint32_t i)
{
    return (kernel_reduce(c, i)->rate & (AXIS_ROW | AXIS_BLOCK)) != 0;
}

static bool to_cols(const CKernel *c, uint32_t i)
{
    return (kernel_reduce(c, i)->rate & AXIS_COL) != 0;
}

/* To matrices, or to the tensor and coarser: by lanes of a whole tile. */
static bool to_mats(const CKernel *c, uint32_t i)
{
    return kernel_reduce(c, i)->rate == RATE_MATRIX;
}

static bool by_lanes(const CKernel *c, uint32_t i)
{
    return !to_rows(c, i) && !to_cols(c, i);
}

static IrRef reduce_guard(const CKernel *c, uint32_t i)
{
    IrRef guard = c->b->ins[kernel_reduce(c, i)->ins].arg[2];
    return plan_is_true(c->b, guard) ? IR_NONE : guard;
}

/* Column vectors are read in the loop, those of rows and blocks before it. */
static bool is_column(const CKernel *c, IrRef ref)
{
    return (c->b->ins[ref].rate & AXIS_COL) != 0;
}

static void scalar_param(const CKernel *c, IrRef ref, bool types)
{
    if (types)
        sb_printf(c->out, ",\n    const %s v%u",
                  emit_type(&emit_style_c, (DType)c->b->ins[ref].dtype), (unsigned)ref);
    else
        sb_printf(c->out, ",\n            v%u", (unsigned)ref);
}

static void vector_params(const CKernel *c, bool types)
{
    for (uint32_t i = 0; i < c->info.nvectors; i++) {
        IrRef ref = c->info.vectors[i];
        if (!is_column(c, ref)) {
            scalar_param(c, ref, types);
            continue;
        }
        VectorAt at = emit_vector_at(c->p, c->v->body, ref);
        const char *type = emit_vectors_c.memory[at.memory];
        if (types)
            sb_printf(c->out, ",\n    const %s *restrict ds_x%u", type, (unsigned)ref);
        else
            sb_printf(c->out,
                      ",\n            (const %s *)t->ptr[%u] + ds_matrix * t->cols + row->col",
                      type, (unsigned)at.ptr);
    }
}

/* Accumulators: lanes of the whole row of the table, a column's, a row's result. */
static void reduce_params(const CKernel *c, bool types)
{
    bool lanes = false;
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        bool rows = to_rows(c, i);
        const char *name = rows ? "ds_row" : to_cols(c, i) ? "ds_col" : "ds_lane";
        lanes |= !rows && !to_cols(c, i);
        sb_printf(c->out, types ? ",\n    double *restrict %s%u" : ",\n            %s%u", name,
                  (unsigned)i);
        if (rows && !types) sb_puts(c->out, " + ds_line");
    }
    if (lanes) sb_puts(c->out, types ? ",\n    const int ds_skew" : ",\n            ds_skew");
}

/* The parameters of the row function, or the arguments it is called with. */
static void row_params(const CKernel *c, bool types)
{
    uint32_t nelem = emit_pointer_count(c->p, c->v);
    const char *first = c->view ? "ds_at" : "row->first";
    sb_puts(c->out, types ? "int64_t count" : c->view ? "ds_n" : "row->count");
    if (c->draws) sb_printf(c->out, ", %s%s", types ? "int64_t " : "", types ? "ds_at" : first);
    for (uint32_t e = 0; e < nelem; e++) {
        if (!c->info.loads[e] && !c->info.stores[e]) continue;
        DType d = emit_elem_storage(c->p, c->v, e);
        const char *qualifier = c->info.stores[e] ? "" : "const ";
        const char *name = emit_elem_name(c->a, c->p, e);
        if (types)
            sb_printf(c->out, ",\n    %s%s *restrict %s", qualifier, elem_ctype(d), name);
        else
            sb_printf(c->out, ",\n            (%s%s *)t->ptr[%u] + %s", qualifier, elem_ctype(d),
                      (unsigned)e, first);
    }
    for (uint32_t i = 0; i < c->info.nscalars; i++) scalar_param(c, c->info.scalars[i], types);
    for (uint32_t i = 0; i < c->info.nmatrices; i++) scalar_param(c, c->info.matrices[i], types);
    vector_params(c, types);
    if (c->view)
        reduce_params(c, types);
    else if (c->k->nreduces)
        sb_puts(c->out, types ? ",\n    double *restrict partial"
                              : ",\n            args->partial + r * args->npartial");
}

static void element_value(const CKernel *c, IrRef ref)
{
    const Ins *ins = &c->b->ins[ref];
    if (!ir_is_draw(ins)) {
        emit_element_value(c->out, c->p, c->v, ref, &emit_style_c);
        return;
    }
    sb_printf(c->out, "const %s v%u = ", emit_type(&emit_style_c, (DType)ins->dtype),
              (unsigned)ref);
    emit_draw_text(c->out, ins, "(uint64_t)(ds_at + i)");
    sb_puts(c->out, ";");
}

/* `place` takes the values of reduction i. */
static void reduce_value(const CKernel *c, uint32_t i, const char *indent, const char *place)
{
    const Ins *ins = &c->b->ins[kernel_reduce(c, i)->ins];
    char x[32], y[32];
    snprintf(x, sizeof x, "(double)v%u", (unsigned)ins->arg[0]);
    snprintf(y, sizeof y, "(double)v%u", (unsigned)ins->arg[1]);
    sb_printf(c->out, "%s", indent);
    if (c->view && reduce_guard(c, i) != IR_NONE)
        sb_printf(c->out, "if (v%u) ", (unsigned)reduce_guard(c, i));
    sb_printf(c->out, "%s = ", place);
    emit_reduce_text(c->out, kernel_reduce_info(c, i)->combine, place, x, y);
    sb_puts(c->out, ";\n");
}

/* One element: loads, values, stores, and the lanes `lane<column>[j]`. */
static void element_body(const CKernel *c, const char *indent)
{
    int line = 0;
    for (uint32_t i = 0; i < c->info.nvectors; i++) {
        IrRef ref = c->info.vectors[i];
        if (!is_column(c, ref)) continue;
        DType d = (DType)c->b->ins[ref].dtype;
        sb_printf(c->out, "%sconst %s v%u = ds_x%u[i]%s;\n", indent, emit_type(&emit_style_c, d),
                  (unsigned)ref, (unsigned)ref, d == DT_BOOL ? " != 0" : "");
    }
    for (uint32_t i = 0; i < c->k->nvals; i++) {
        const KernelValue *kv = &c->k->vals[i];
        sb_puts(c->out, indent);
        if (kv->how == VAL_COMPUTE) {
            element_value(c, kv->ref);
        } else {
            DType d = (DType)c->b->ins[kv->ref].dtype;
            sb_printf(c->out, "const %s v%u = ", emit_type(&emit_style_c, d), (unsigned)kv->ref);
            const char *at = arena_printf(c->a, "%s[i]", emit_elem_name(c->a, c->p, kv->elem));
            sb_printf(c->out, "%s;",
                      emit_widened(c->a, emit_elem_storage(c->p, c->v, kv->elem), at));
        }
        emit_line_end(c->out, c->p, c->v->body, kv->ref, &line);
    }
    for (uint32_t i = 0; i < c->k->nstores; i++) {
        const KernelStore *ks = &c->k->stores[i];
        sb_puts(c->out, indent);
        if (c->branches && ks->guard != IR_NONE)
            sb_printf(c->out, "if (v%u) ", (unsigned)ks->guard);
        const char *value = arena_printf(c->a, "v%u", (unsigned)ks->value);
        sb_printf(c->out, "%s[i] = %s;\n", emit_elem_name(c->a, c->p, ks->elem),
                  emit_narrowed(c->a, emit_elem_storage(c->p, c->v, ks->elem), value));
    }
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const char *place =
            !c->view ? arena_printf(c->a, "lane%u[j]", (unsigned)kernel_reduce(c, i)->partial)
            : to_rows(c, i) ? arena_printf(c->a, "lane%u[ds_first + j]", (unsigned)i)
            : to_cols(c, i) ? arena_printf(c->a, "ds_col%u[i]", (unsigned)i)
                            : arena_printf(c->a, "ds_lane%u[ds_lane + j]", (unsigned)i);
        reduce_value(c, i, indent, place);
    }
}

static void identity_of(const CKernel *c, uint32_t i)
{
    emit_literal(c->out, kernel_reduce_info(c, i)->identity, DT_F64);
}

static void reducing_loop(const CKernel *c)
{
    StrBuf *out = c->out;
    for (uint32_t i = 0; i < c->k->nreduces; i++)
        sb_printf(out, "    double lane%u[128];\n", (unsigned)kernel_reduce(c, i)->partial);
    sb_puts(out, "    for (int j = 0; j < 128; j++) {\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        sb_printf(out, "        lane%u[j] = ", (unsigned)kernel_reduce(c, i)->partial);
        identity_of(c, i);
        sb_puts(out, ";\n");
    }
    sb_puts(out, "    }\n"
                 "    for (int64_t first = 0; first < count; first += 128) {\n"
                 "        const int width = count - first < 128 ? (int)(count - first) : 128;\n"
                 "        for (int j = 0; j < width; j++) {\n"
                 "            const int64_t i = first + j;\n");
    element_body(c, "            ");
    sb_puts(out, "        }\n    }\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++)
        sb_printf(out, "    partial[%u] = ds_fold_%s(lane%u, 128);\n",
                  (unsigned)kernel_reduce(c, i)->partial, kernel_reduce_info(c, i)->name,
                  (unsigned)kernel_reduce(c, i)->partial);
}

/* A line of a view: pieces in which neither the lanes of its own row nor those of the whole row of
 * the table wrap. */
static void line_loop(const CKernel *c)
{
    StrBuf *out = c->out;
    bool rows = false, lanes = false;
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        rows |= to_rows(c, i);
        lanes |= !to_rows(c, i) && !to_cols(c, i);
    }
    if (!rows && !lanes) {
        sb_puts(out, "    for (int64_t i = 0; i < count; i++) {\n");
        element_body(c, "        ");
        sb_puts(out, "    }\n");
        return;
    }
    if (rows)
        sb_puts(out, "    const int ds_used = count < 1 ? 1 : count < 128 ? (int)count : 128;\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (!to_rows(c, i)) continue;
        sb_printf(
            out,
            "    double lane%u[128];\n    for (int j = 0; j < ds_used; j++)\n        lane%u[j] = ",
            (unsigned)i, (unsigned)i);
        identity_of(c, i);
        sb_puts(out, ";\n");
    }
    sb_puts(out, "    for (int64_t first = 0, width; first < count; first += width) {\n"
                 "        width = count - first;\n");
    if (rows)
        sb_puts(out, "        const int ds_first = (int)(first & 127);\n"
                     "        width = width < 128 - ds_first ? width : 128 - ds_first;\n");
    if (lanes)
        sb_puts(out, "        const int ds_lane = (int)((ds_skew + first) & 127);\n"
                     "        width = width < 128 - ds_lane ? width : 128 - ds_lane;\n");
    sb_puts(out, "        for (int j = 0; j < (int)width; j++) {\n"
                 "            const int64_t i = first + j;\n");
    element_body(c, "            ");
    sb_puts(out, "        }\n    }\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (to_rows(c, i))
            sb_printf(out, "    *ds_row%u = ds_fold_%s(lane%u, ds_used);\n", (unsigned)i,
                      kernel_reduce_info(c, i)->name, (unsigned)i);
    }
}

static void unused(const CKernel *c, const IrRef *refs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sb_printf(c->out, "%s(void)v%u%s", i ? ", " : "    ", (unsigned)refs[i],
                  i + 1 == n ? ";\n" : "");
}

static const char *kernel_name(const CKernel *c)
{
    StrBuf name = {.arena = c->a};
    sb_printf(&name, "%s_", c->module);
    emit_kernel_name(&name, c->v, c->k);
    return name.text;
}

static void row_function(const CKernel *c)
{
    sb_printf(c->out, "static void %s_row(", kernel_name(c));
    row_params(c, true);
    sb_puts(c->out, ")\n{\n");
    for (uint32_t i = 0; i < c->info.nconsts; i++) {
        sb_puts(c->out, "    ");
        emit_scalar_read(c->out, c->p, c->v->body, c->info.consts[i], &emit_style_c, emit_blocks);
        sb_puts(c->out, "\n");
    }
    unused(c, c->info.scalars, c->info.nscalars);
    unused(c, c->info.matrices, c->info.nmatrices);
    if (c->view) {
        line_loop(c);
    } else if (c->k->nreduces) {
        reducing_loop(c);
    } else {
        sb_puts(c->out, "    for (int64_t i = 0; i < count; i++) {\n");
        element_body(c, "        ");
        sb_puts(c->out, "    }\n");
    }
    sb_puts(c->out, "}\n\n");
}

/* ---- rows of the table with a view ----------------------------------------------------------- */

/* `ds_row0[i] = 0.0;` for all that a row of the table has of a buffer. */
static void fill_buffer(const CKernel *c, uint32_t i, const char *indent)
{
    const char *name = to_rows(c, i) ? "row" : to_cols(c, i) ? "col" : "mat";
    const char *count = to_rows(c, i)   ? "ds_mats * ds_rows"
                        : to_cols(c, i) ? "ds_mats * row->width"
                                        : "ds_mats";
    sb_printf(c->out, "%sfor (int64_t j = 0; j < %s; j++)\n%s    ds_%s%u[j] = ", indent, count,
              indent, name, (unsigned)i);
    identity_of(c, i);
    sb_puts(c->out, ";\n");
}

/* A row of the table is a tile, or several matrices (ds_s elements each) that are one each. */
static void view_buffers(const CKernel *c)
{
    StrBuf *out = c->out;
    sb_puts(out, "        const int64_t ds_s = t->packs > 1 ? t->rows * row->width : 0;\n"
                 "        const int64_t ds_mats = ds_s ? row->count / ds_s : 1;\n"
                 "        const int64_t ds_rows = ds_s            ? t->rows\n"
                 "                                : row->runs > 1 ? row->runs\n"
                 "                                                : (row->count + row->width - 1) "
                 "/ row->width;\n"
                 "        const int64_t ds_pitch = row->runs > 1 ? row->pitch : row->width;\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        unsigned ptr = (unsigned)kernel_reduce(c, i)->result_vec;
        if (to_rows(c, i))
            sb_printf(out,
                      "        double *ds_row%u = (double *)t->ptr[%u] + row->strip * t->rows * "
                      "t->mats + row->row;\n",
                      (unsigned)i, ptr);
        else if (to_cols(c, i))
            sb_printf(out,
                      "        double *ds_col%u = (double *)t->ptr[%u] + (row->matrix * t->tiles + "
                      "row->tile) * t->cols + row->col;\n",
                      (unsigned)i, ptr);
        else
            sb_printf(out, "        double ds_lane%u[128];\n", (unsigned)i);
        if (to_mats(c, i))
            sb_printf(out, "        double *ds_mat%u = (double *)t->ptr[%u] + row->matrix;\n",
                      (unsigned)i, ptr);
        else if (by_lanes(c, i))
            sb_printf(out, "        double ds_tree%u[16];\n", (unsigned)i);
    }
}

static void view_identities(const CKernel *c, const char *indent)
{
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (!by_lanes(c, i)) {
            fill_buffer(c, i, indent);
            continue;
        }
        sb_printf(c->out, "%sargs->partial[r * args->npartial + %u] = ", indent,
                  (unsigned)kernel_reduce(c, i)->partial);
        identity_of(c, i);
        sb_puts(c->out, ";\n");
        if (!to_mats(c, i)) continue;
        sb_printf(c->out, "%sif (ds_s)\n", indent);
        fill_buffer(c, i, arena_printf(c->a, "%s    ", indent));
    }
}

/* What a tile begins with: lanes of the identity, as many as it has elements for; the values of its
 * matrix. */
static void begin_tile(const CKernel *c)
{
    StrBuf *out = c->out;
    bool lanes = false;
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (!by_lanes(c, i)) continue;
        lanes = true;
        sb_printf(out,
                  "            for (int j = 0; j < ds_used; j++)\n                ds_lane%u[j] = ",
                  (unsigned)i);
        identity_of(c, i);
        sb_puts(out, ";\n");
    }
    if (lanes) sb_puts(out, "            int ds_skew = 0;\n");
    for (uint32_t i = 0; i < c->info.nmatrices; i++) {
        sb_puts(out, "            ");
        emit_vector_read(out, c->p, c->v->body, c->info.matrices[i], &emit_vectors_c, "ds_matrix");
        sb_puts(out, "\n");
    }
}

/* Its results; buffers of columns go on to the next matrix. */
static void end_tile(const CKernel *c)
{
    StrBuf *out = c->out;
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const char *name = kernel_reduce_info(c, i)->name;
        unsigned n = (unsigned)i;
        if (to_cols(c, i)) sb_printf(out, "            ds_col%u += row->width;\n", n);
        if (!by_lanes(c, i)) continue;
        const char *root = arena_printf(c->a, "ds_fold_%s(ds_lane%u, ds_used)", name, n);
        if (!to_mats(c, i))
            sb_printf(out, "            ds_push_%s(ds_tree%u, (uint64_t)ds_m, %s);\n", name, n,
                      root);
        else
            sb_printf(out,
                      "            *(ds_s ? ds_mat%u + ds_m : args->partial + r * args->npartial + "
                      "%u) = %s;\n",
                      n, (unsigned)kernel_reduce(c, i)->partial, root);
    }
}

static void view_lines(const CKernel *c)
{
    StrBuf *out = c->out;
    bool lanes = false;
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (to_cols(c, i)) fill_buffer(c, i, "        ");
        lanes |= by_lanes(c, i);
    }
    if (lanes) sb_puts(out, "        const int ds_used = ds_s && ds_s < 128 ? (int)ds_s : 128;\n");
    sb_puts(out, "        for (int64_t ds_m = 0; ds_m < ds_mats; ds_m++) {\n"
                 "            const int64_t ds_matrix = row->matrix + ds_m;\n"
                 "            (void)ds_matrix;\n");
    begin_tile(c);
    sb_puts(out,
            "            for (int64_t ds_y = 0; ds_y < ds_rows; ds_y++) {\n"
            "                const int64_t ds_line = ds_m * ds_rows + ds_y;\n"
            "                const int64_t ds_at = row->first + ds_line * ds_pitch;\n"
            "                const int64_t ds_n = ds_s || ds_y + 1 < ds_rows ? row->width\n"
            "                                     : row->runs > 1            ? row->last\n"
            "                                                                : row->last - ds_y * "
            "row->width;\n"
            "                (void)ds_at;\n");
    for (uint32_t i = 0; i < c->info.nvectors; i++) {
        if (is_column(c, c->info.vectors[i])) continue;
        sb_puts(out, "                ");
        emit_vector_read(out, c->p, c->v->body, c->info.vectors[i], &emit_vectors_c,
                         "row->row + ds_line");
        sb_puts(out, "\n");
    }
    sb_printf(out, "                %s_row(\n            ", kernel_name(c));
    row_params(c, false);
    sb_puts(out, ");\n");
    if (lanes) sb_puts(out, "                ds_skew = (int)((ds_skew + ds_n) & 127);\n");
    sb_puts(out, "            }\n");
    end_tile(c);
    sb_puts(out, "        }\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        if (by_lanes(c, i) && !to_mats(c, i))
            sb_printf(out,
                      "        args->partial[r * args->npartial + %u] = ds_root_%s(ds_tree%u, "
                      "(uint64_t)ds_mats);\n",
                      (unsigned)kernel_reduce(c, i)->partial, kernel_reduce_info(c, i)->name,
                      (unsigned)i);
    }
}

static void read_uniforms(const CKernel *c)
{
    for (uint32_t i = 0; i < c->info.nscalars; i++) {
        sb_puts(c->out, "        ");
        emit_scalar_read(c->out, c->p, c->v->body, c->info.scalars[i], &emit_style_c,
                         emit_row_blocks);
        sb_puts(c->out, "\n");
    }
}

static void kernel(CKernel *c)
{
    StrBuf *out = c->out;
    row_function(c);
    sb_printf(out, "void %s(const DsArgs *args, int64_t begin, int64_t end, void *scratch)\n{\n",
              kernel_name(c));
    sb_puts(out, "    (void)scratch;\n"
                 "    for (int64_t r = begin; r < end; r++) {\n"
                 "        const DsRow *row = &args->rows[r];\n"
                 "        const DsTensorRow *t = &args->tensors[row->tensor];\n");
    read_uniforms(c);
    if (c->view) view_buffers(c);
    if (!c->info.always && c->info.nguards) {
        sb_puts(out, "        if (!(");
        for (uint32_t i = 0; i < c->info.nguards; i++)
            sb_printf(out, "%sv%u", i ? " | " : "", (unsigned)c->info.guards[i]);
        sb_puts(out, c->view ? ")) {\n" : "))\n            continue;\n");
        if (c->view) {
            view_identities(c, "            ");
            sb_puts(out, "            continue;\n        }\n");
        }
    }
    if (c->view) {
        view_lines(c);
        sb_puts(out, "    }\n}\n\n");
        return;
    }
    sb_printf(out, "        %s_row(\n            ", kernel_name(c));
    row_params(c, false);
    sb_puts(out, ");\n    }\n}\n\n");
}

void emit_c_variant(StrBuf *out, const Plan *p, const Variant *v)
{
    Arena *a = out->arena;
    for (uint32_t i = 0; i < v->nkernels; i++) {
        CKernel c = {.a = a, .out = out, .p = p, .v = v, .k = &v->kernels[i]};
        c.module = emit_prefix(a, p);
        c.b = &p->m->bodies[v->body];
        c.info = emit_kernel_info(a, p, v, c.k);
        c.branches = c.info.always || c.info.nguards > 1;
        c.view = c.b->view != VIEW_FLAT;
        for (uint32_t k = 0; k < c.k->nvals; k++)
            c.draws |= c.k->vals[k].how == VAL_COMPUTE && ir_is_draw(&c.b->ins[c.k->vals[k].ref]);
        kernel(&c);
    }
}
