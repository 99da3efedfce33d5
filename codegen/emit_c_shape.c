/* emit_c_shape.c - NAME_step of rules whose work depends on a tensor's shape: several bodies, or a
 * body with rows, columns or blocks.
 *
 * Requires: the kernels and programs of all bodies before it in the file. Ensures: what emit_c_step.c
 * does for the others: one step of one tensor on the calling thread, nothing allocated (NAME_step_work
 * says how many bytes `work` must have), the bits of the runtime.
 *
 *     int adafactor_step(int ndim, const int64_t *shape, float *p, const float *g, float *R, float *C,
 *                        float *V, const adafactor_hyper *hyper, int64_t t, void *work);
 */
#include "emit_c.h"
#include "plan_internal.h"
#include <string.h>

bool emit_c_is_shaped(const Plan *p)
{
    int mats = ir_slot_find(p->m, SLOT_PROP, "mats"),
        first = ir_slot_find(p->m, SLOT_PROP, "first");
    return p->m->nbodies > 1 || p->m->select || p->m->bodies[0].view != VIEW_FLAT ||
           (mats >= 0 && emit_c_reads(p, (uint32_t)mats)) ||
           (first >= 0 && emit_c_reads(p, (uint32_t)first));
}

/* The view of a tensor and the rows of its table, as codegen/view.c has them. */
static const char view_text[] =
    "#ifndef DS_VIEW\n"
    "#define DS_VIEW 1\n"
    "enum { DS_FLAT, DS_MATRIX, DS_FIRST, DS_BLOCK };\n"
    "typedef struct ds_dims {\n"
    "    int view;\n"
    "    int64_t numel, rows, cols, mats, first, tile_rows, tiles, strips, packs;\n"
    "} ds_dims;\n"
    "static inline int64_t ds_up(int64_t a, int64_t b)\n{\n    return a / b + (a % b != 0);\n}\n"
    "static inline int64_t ds_least(int64_t a, int64_t b)\n{\n    return a < b ? a : b;\n}\n"
    "static inline ds_dims ds_view_of(int view, int ndim, const int64_t *shape, int64_t block)\n"
    "{\n"
    "    ds_dims d = {0};\n"
    "    int64_t wide;\n"
    "    d.view = view;\n"
    "    d.packs = 1;\n"
    "    d.numel = 1;\n"
    "    for (int k = 0; k < ndim; k++) /* a 0 before what does not matter overflows */\n"
    "        d.numel = shape[k] == 0 ? 0 : d.numel;\n"
    "    for (int k = 0; k < ndim && d.numel; k++)\n"
    "        d.numel *= shape[k];\n"
    "    d.first = ndim < 1 ? 1 : shape[0];\n"
    "    d.rows = ndim < 2 ? 1 : shape[ndim - 2];\n"
    "    d.cols = ndim < 2 ? d.numel : shape[ndim - 1];\n"
    "    if (d.numel == 0)\n"
    "        return d;\n"
    "    d.mats = d.numel / (d.rows * d.cols);\n"
    "    if (view == DS_FIRST) {\n"
    "        d.rows = d.first;\n"
    "        d.cols = d.numel / d.rows;\n"
    "        d.mats = 1;\n"
    "    } else if (view == DS_BLOCK) {\n"
    "        d.cols = ds_least(block, d.numel);\n"
    "        d.rows = ds_up(d.numel, d.cols);\n"
    "        d.mats = 1;\n"
    "    }\n"
    "    wide = 256 / d.cols;\n"
    "    d.tile_rows = 16 * (wide > 1 ? wide : 1);\n"
    "    d.tiles = view == DS_FLAT ? ds_up(d.numel, DS_CHUNK) : ds_up(d.rows, d.tile_rows);\n"
    "    d.strips = view == DS_FLAT ? 1 : ds_up(d.cols, DS_CHUNK);\n"
    "    if (view == DS_MATRIX && d.mats > 1 && d.rows * d.cols <= DS_PACK)\n"
    "        while (2 * d.packs * d.rows * d.cols <= DS_CHUNK)\n"
    "            d.packs *= 2;\n"
    "    return d;\n"
    "}\n"
    "/* Rows of the table: chunks, or tiles in the order matrix, rows, strip; of small matrices\n"
    " * several in a row. */\n"
    "static inline int64_t ds_count_rows(const ds_dims *d)\n"
    "{\n"
    "    if (d->packs > 1)\n        return ds_up(d->mats, d->packs);\n"
    "    return d->view == DS_FLAT ? d->tiles : d->mats * d->tiles * d->strips;\n"
    "}\n"
    "static inline DsRow ds_row_at(const ds_dims *d, int64_t k)\n"
    "{\n"
    "    DsRow r = {0};\n"
    "    if (d->view == DS_FLAT) {\n"
    "        r.first = k * DS_CHUNK;\n"
    "        r.count = r.pitch = r.width = r.last = ds_least(DS_CHUNK, d->numel - r.first);\n"
    "        r.runs = 1;\n"
    "        return r;\n"
    "    }\n"
    "    if (d->packs > 1) {\n"
    "        r.matrix = k * d->packs;\n"
    "        r.row = r.matrix * d->rows;\n"
    "        r.first = r.row * d->cols;\n"
    "        r.count = r.pitch = r.last = ds_least(d->packs * d->rows * d->cols, d->numel - "
    "r.first);\n"
    "        r.width = d->cols;\n"
    "        r.runs = 1;\n"
    "        return r;\n"
    "    }\n"
    "    r.strip = k % d->strips;\n"
    "    r.tile = k / d->strips % d->tiles;\n"
    "    r.matrix = k / d->strips / d->tiles;\n"
    "    const int64_t row = r.tile * d->tile_rows, n = ds_least(d->tile_rows, d->rows - row);\n"
    "    r.row = r.matrix * d->rows + row;\n"
    "    r.col = r.strip * DS_CHUNK;\n"
    "    r.first = r.row * d->cols + r.col;\n"
    "    if (d->strips == 1) {\n"
    "        r.count = r.pitch = r.last = ds_least(n * d->cols, d->numel - r.first);\n"
    "        r.width = d->cols;\n"
    "        r.runs = 1;\n"
    "        return r;\n"
    "    }\n"
    "    const int64_t left = d->numel - (r.first + (n - 1) * d->cols);\n"
    "    r.count = r.width = ds_least(DS_CHUNK, d->cols - r.col);\n"
    "    r.runs = n;\n"
    "    r.pitch = d->cols;\n"
    "    r.last = left < 0 ? 0 : ds_least(r.width, left);\n"
    "    return r;\n"
    "}\n"
    "#endif\n\n";

void emit_c_view(StrBuf *out)
{
    sb_puts(out, view_text);
}

/* ---- what a vector has ----------------------------------------------------------------------- */

static const char *length_text(Rate rate)
{
    if (rate & (AXIS_ROW | AXIS_BLOCK)) return "d->mats * d->rows";
    return rate & AXIS_COL ? "d->mats * d->cols" : "d->mats";
}

static const char *room_text(Arena *a, const PlanVector *v)
{
    const char *n = length_text(v->rate);
    if (!v->partials) return n;
    return arena_printf(a, "%s * %s", n, v->rate & AXIS_COL ? "d->tiles" : "d->strips");
}

/* ---- reductions ------------------------------------------------------------------------------ */

static const char *place_text(Arena *a, Place at)
{
    return arena_printf(a, "%s[%u]", emit_blocks[at.level], (unsigned)at.index);
}

/* Joins the parts of rows (or blocks) and of columns where they lie: what is written lies before
 * what is still to be read. */
static void join_vector(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    const char *name = plan_reduce_info(p, r)->name;
    bool col = r->rate & AXIS_COL;
    sb_printf(out,
              "    for (int64_t i = 0, n = %s; i < n; i++) {\n"
              "        double *b = (double *)ptr[%u], part[52];\n"
              "        const int64_t from = %s, step = %s, parts = %s;\n"
              "        for (int64_t k = 0; k < parts; k++)\n"
              "            ds_push_%s(part, (uint64_t)k, b[from + k * step]);\n"
              "        b[i] = ds_root_%s(part, (uint64_t)parts);\n"
              "    }\n",
              length_text(r->rate), (unsigned)r->result_vec,
              col ? "i / d->cols * d->tiles * d->cols + i % d->cols" : "i", col ? "d->cols" : "n",
              col ? "d->tiles" : "d->strips", name, name);
}

static void put_result(StrBuf *out, const Plan *p, const PlanReduce *r, const char *value)
{
    sb_printf(out, "    %s = ", place_text(out->arena, r->result));
    if (r->guard.level != LEVEL_NONE) {
        sb_printf(out, "%s == 0 ? ", place_text(out->arena, r->guard));
        emit_literal(out, plan_reduce_info(p, r)->identity, DT_F64);
        sb_puts(out, " : ");
    }
    sb_printf(out, "%s;\n", value);
}

static const char *argument(Arena *a, const PlanReduce *r, uint32_t vec, DType type, Rate rate,
                            Place at)
{
    if (vec == UINT32_MAX) return place_text(a, at);
    const char *index = rate == r->arg_rate      ? "i"
                        : r->arg_rate & AXIS_COL ? "i / d->cols"
                                                 : "i / d->rows";
    return arena_printf(a, "(double)((const %s *)ptr[%u])[%s]", emit_vectors_c.memory[type],
                        (unsigned)vec, index);
}

/* A vector, or its part of each matrix, chunked as a tensor of that length. */
static void reduce_vector_text(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    Arena *a = out->arena;
    const ReduceInfo *info = plan_reduce_info(p, r);
    bool matrix = r->rate == RATE_MATRIX;
    const char *x = argument(a, r, r->vec, r->vec_type, r->vec_rate, r->arg),
               *y = info->arity == 2 ? argument(a, r, r->vec2, r->vec2_type, r->vec2_rate, r->arg2)
                                     : "";
    sb_printf(out,
              "    for (int64_t m = 0, n = %s%s; m < %s; m++) {\n"
              "        double part[52], lane[128];\n"
              "        uint64_t chunks = 0;\n"
              "        for (int64_t at = m * n; at < (m + 1) * n; at += DS_CHUNK) {\n"
              "            for (int j = 0; j < 128; j++)\n"
              "                lane[j] = ",
              length_text(r->arg_rate), matrix ? " / d->mats" : "", matrix ? "d->mats" : "1");
    emit_literal(out, info->identity, DT_F64);
    sb_puts(out, ";\n            for (int64_t i = at; i < (m + 1) * n && i < at + DS_CHUNK; i++)\n"
                 "                lane[(i - at) & 127] = ");
    emit_reduce_text(out, info->combine, "lane[(i - at) & 127]", x, y);
    sb_printf(out,
              ";\n            ds_push_%s(part, chunks++, ds_fold_%s(lane, 128));\n        }\n    ",
              info->name, info->name);
    const char *root = arena_printf(a, "ds_root_%s(part, chunks)", info->name);
    if (!matrix) {
        put_result(out, p, r, root);
    } else {
        sb_printf(out, "    ((double *)ptr[%u])[m] = ", (unsigned)r->result_vec);
        if (r->guard.level != LEVEL_NONE) {
            sb_printf(out, "%s == 0 ? ", place_text(a, r->guard));
            emit_literal(out, info->identity, DT_F64);
            sb_puts(out, " : ");
        }
        sb_printf(out, "%s;\n", root);
    }
    sb_puts(out, "    }\n");
}

/* One value: there is one tensor; or once per element. */
static void reduce_scalars_text(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    Arena *a = out->arena;
    const ReduceInfo *info = plan_reduce_info(p, r);
    const char *x = place_text(a, r->arg),
               *y = r->arg2.level == LEVEL_NONE ? "" : place_text(a, r->arg2);
    if (r->rate == RATE_TENSOR) {
        sb_printf(out,
                  "    {\n        double part[52];\n"
                  "        const int64_t parts = d->packs > 1 ? d->mats : nrows;\n"
                  "        for (int64_t k = 0; k < parts; k++) {\n"
                  "            const DsRow at = ds_row_at(d, d->packs > 1 ? 0 : k);\n"
                  "            ds_push_%s(part, (uint64_t)k, ds_uniform_chunk_%s(d->packs > 1 ? "
                  "d->rows * d->cols : (at.runs - 1) * at.count + at.last, %s, %s));\n"
                  "        }\n    ",
                  info->name, info->name, x, *y ? y : x);
        put_result(out, p, r, arena_printf(a, "ds_root_%s(part, (uint64_t)parts)", info->name));
        sb_puts(out, "    }\n");
        return;
    }
    StrBuf id = {.arena = a}, value = {.arena = a};
    emit_literal(&id, info->identity, DT_F64);
    emit_reduce_text(&value, info->combine, id.text, x, y);
    put_result(out, p, r, arena_printf(a, "(%s)", value.text));
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void call_programs(StrBuf *out, const Plan *p, uint32_t body, int phase)
{
    const char *prefix = emit_prefix(out->arena, p);
    for (uint32_t i = 0; i < p->nprograms; i++) {
        if (p->programs[i].phase != phase || p->programs[i].body != body) continue;
        sb_printf(out, "    %s_", prefix);
        emit_program_name(out, p, &p->programs[i]);
        sb_puts(out, "(global, group, cls, tensor);\n");
    }
}

static void call_vector(StrBuf *out, const Plan *p, const VectorProgram *vp)
{
    sb_printf(out, "    whole.count = %s;\n    %s_", length_text(vp->rate),
              emit_prefix(out->arena, p));
    emit_vector_name(out, p, vp);
    sb_puts(out, "(&vectors, 0, 1);\n");
}

/* A kernel over the rows of the table, its partial results into trees as they come. */
static void call_kernel(StrBuf *out, const Plan *p, const Variant *v, const Kernel *k)
{
    const char *prefix = emit_prefix(out->arena, p);
    sb_printf(out,
              "    for (int64_t k = 0; k < nrows; k++) {\n"
              "        row = ds_row_at(d, k);\n        %s_",
              prefix);
    emit_kernel_name(out, v, k);
    sb_puts(out, "(&args, 0, 1, 0);\n");
    for (uint32_t i = 0; i < k->nreduces; i++) {
        const PlanReduce *r = &p->reduces[k->reduces[i]];
        const char *name = plan_reduce_info(p, r)->name;
        if (rate_is_elementwise(r->rate)) continue;
        bool matrix = r->rate == RATE_MATRIX;
        sb_printf(out, "        %sds_push_%s(tree[%u], (uint64_t)%s, partial[%u]);\n",
                  matrix ? "if (d->packs == 1)\n            " : "", name, (unsigned)r->partial,
                  matrix ? "(k % of_matrix)" : "k", (unsigned)r->partial);
        if (matrix)
            sb_printf(out,
                      "        if (d->packs == 1 && (k + 1) %% of_matrix == 0)\n            "
                      "((double *)ptr[%u])[k / of_matrix] = ds_root_%s(tree[%u], "
                      "(uint64_t)of_matrix);\n",
                      (unsigned)r->result_vec, name, (unsigned)r->partial);
    }
    sb_puts(out, "    }\n");
    for (uint32_t i = 0; i < k->nreduces; i++) {
        const PlanReduce *r = &p->reduces[k->reduces[i]];
        if (rate_is_elementwise(r->rate))
            join_vector(out, p, r);
        else if (r->rate != RATE_MATRIX)
            put_result(out, p, r,
                       arena_printf(out->arena, "ds_root_%s(tree[%u], (uint64_t)nrows)",
                                    plan_reduce_info(p, r)->name, (unsigned)r->partial));
    }
}

static uint32_t most_partials(const Plan *p)
{
    uint32_t most = 1;
    for (int ph = 0; ph < p->nphases; ph++)
        most = emit_npartial(p, ph) > most ? emit_npartial(p, ph) : most;
    return most;
}

static void body_phases(StrBuf *out, const Plan *p, const Variant *v)
{
    for (int ph = 0; ph <= p->nphases; ph++) {
        call_programs(out, p, v->body, ph);
        for (uint32_t i = 0; i < p->nvprograms; i++) {
            if (p->vprograms[i].phase == ph && p->vprograms[i].body == v->body)
                call_vector(out, p, &p->vprograms[i]);
        }
        for (uint32_t i = 0; i < v->nkernels; i++) {
            if (v->kernels[i].phase == ph) call_kernel(out, p, v, &v->kernels[i]);
        }
        for (uint32_t i = 0; i < p->nreduces; i++) {
            const PlanReduce *r = &p->reduces[i];
            if (r->phase != ph || r->body != v->body) continue;
            if (r->from == FROM_VECTOR) reduce_vector_text(out, p, r);
            if (r->from == FROM_SCALARS) reduce_scalars_text(out, p, r);
        }
    }
    for (uint32_t i = 0; i < p->nvcommit; i++) {
        if (p->vcommit[i].body == v->body) call_vector(out, p, &p->vcommit[i]);
    }
    for (uint32_t i = 0; i < p->ncommit; i++) {
        if (p->commit[i].body != v->body) continue;
        sb_printf(out, "    %s_", emit_prefix(out->arena, p));
        emit_program_name(out, p, &p->commit[i]);
        sb_puts(out, "(global, group, cls, tensor);\n");
    }
}

/* NAME_step_body<b>: all phases of one body over one tensor. */
static void body_function(StrBuf *out, const Plan *p, const Variant *v)
{
    uint32_t columns = most_partials(p);
    sb_printf(
        out,
        "static void %s_body%u(const ds_dims *d, void *const *ptr, double *global, double "
        "*group, double *cls, double *tensor)\n{\n"
        "    const int64_t nrows = ds_count_rows(d), of_matrix = d->tiles * d->strips;\n"
        "    double partial[%u] = {0}, tree[%u][52];\n"
        "    DsRow row = {0}, whole = {0};\n"
        "    const int flat = d->view == DS_FLAT;\n"
        "    const DsTensorRow t = {{global, group, cls, tensor}, ptr, flat ? 1 : d->rows, "
        "flat ? d->numel : d->cols, flat ? 1 : d->mats, flat ? 1 : d->tiles, d->packs};\n"
        "    const DsArgs args = {&row, &t, partial, %u}, vectors = {&whole, &t, 0, 0};\n"
        "    (void)of_matrix, (void)tree, (void)args, (void)vectors, (void)row, (void)nrows;\n"
        "    whole.runs = 1;\n",
        emit_prefix(out->arena, p), (unsigned)v->body, (unsigned)columns, (unsigned)columns,
        (unsigned)columns);
    body_phases(out, p, v);
    sb_puts(out, "}\n\n");
}

/* ---- which body, and its memory -------------------------------------------------------------- */

static const char *property_text(const char *name)
{
    static const char *const table[][2] = {
        {"numel", "(double)numel"}, {"ndim", "(double)ndim"},   {"rows", "(double)d.rows"},
        {"cols", "(double)d.cols"}, {"mats", "(double)d.mats"}, {"first", "(double)d.first"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i][0], name) == 0) return table[i][1];
    return "(double)d.numel";
}

/* NAME_step_choose: the body that a shape runs, and its view. */
static void choose_function(StrBuf *out, const Plan *p)
{
    static const char *const views[] = {"DS_FLAT", "DS_MATRIX", "DS_FIRST", "DS_BLOCK"};
    const IrBody *b = p->m->select;
    sb_printf(out,
              "static int %s_choose(int ndim, const int64_t *shape, ds_dims *out",
              emit_prefix(out->arena, p));
    emit_c_select_names(out, p, "int ");
    sb_puts(out,
              ")\n{\n"
              "    const ds_dims d = ds_view_of(DS_FLAT, ndim, shape, 1);\n"
              "    const int64_t numel = d.numel;\n"
              "    double arm = 0, block = 1;\n"
              "    (void)numel, (void)block;\n");
    bool *used = ARENA_ARRAY(out->arena, bool, b ? b->n + 1 : 1);
    for (uint32_t i = 0; b && i < b->nstores; i++) used[b->stores[i].value] = true;
    for (uint32_t i = b ? b->n : 0; i-- > 0;) {
        for (int k = 0; used[i] && k < ir_arity(&b->ins[i]); k++) used[b->ins[i].arg[k]] = true;
    }
    for (uint32_t i = 0; b && i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        if (!used[i]) continue;
        sb_printf(out, "    const %s v%u = ", emit_type(&emit_style_c, (DType)ins->dtype),
                  (unsigned)i);
        if (ins->op == IR_CONST)
            emit_literal(out, ins->lit.num, (DType)ins->dtype);
        else if (ins->op == IR_LOAD && ir_asks_name(&p->m->slots[ins->lit.slot]))
            sb_printf(out, "%s != 0", emit_slot_name(out->arena, p, ins->lit.slot));
        else if (ins->op == IR_LOAD)
            sb_puts(out, property_text(p->m->slots[ins->lit.slot].name));
        else if (ins->op == IR_ROUND)
            sb_printf(out, "(float)v%u", (unsigned)ins->arg[0]);
        else
            emit_ins_text(out, b, ins);
        sb_puts(out, ";\n");
    }
    for (uint32_t i = 0; b && i < b->nstores; i++)
        sb_printf(out, "    %s = v%u;\n",
                  p->m->slots[b->stores[i].slot].kind == SLOT_ARM ? "arm" : "block",
                  (unsigned)b->stores[i].value);
    sb_puts(out, "    static const int views[] = {");
    for (uint32_t i = 0; i < p->m->nbodies; i++)
        sb_printf(out, "%s%s", i ? ", " : "", views[p->m->bodies[i].view]);
    sb_puts(out, "};\n    *out = d;\n"
                 "    if (views[(int)arm] == DS_BLOCK && !(block >= 1 && block <= 0x1p53))\n"
                 "        return -1; /* no number of elements */\n"
                 "    *out = ds_view_of(views[(int)arm], ndim, shape, (int64_t)block);\n"
                 "    return (int)arm;\n}\n\n");
}

void emit_c_work_prototype(StrBuf *out, const Plan *p)
{
    sb_printf(out, "int64_t %s_work(int ndim, const int64_t *shape", emit_c_entry(out->arena, p));
    emit_c_select_names(out, p, "int ");
    sb_puts(out, ")");
}

/* Assigns `work` to the pointers of vectors and temporaries, or only counts. */
static void layout_function(StrBuf *out, const Plan *p, const Variant *const *variants)
{
    Arena *a = out->arena;
    sb_printf(out,
              "static int64_t %s_layout(int body, const ds_dims *d, char *work, void **ptr)\n{\n"
              "    int64_t at = 0;\n    (void)d, (void)work, (void)ptr;\n    switch (body) {\n",
              emit_prefix(a, p));
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        sb_printf(out, "    case %u:\n", (unsigned)b);
        for (uint32_t i = 0; i < p->nvectors[b] + variants[b]->ntemps; i++) {
            bool vector = i < p->nvectors[b];
            const PlanVector *v = vector ? &p->vectors[b][i] : NULL;
            int size = !vector || v->dtype == DT_F32 ? 4 : v->dtype == DT_BOOL ? 1 : 8;
            sb_printf(out,
                      "        if (ptr) ptr[%u] = work + at;\n"
                      "        at += (%s * %d + 63) / 64 * 64;\n",
                      (unsigned)(p->m->nelem + i), vector ? room_text(a, v) : "d->numel", size);
        }
        sb_puts(out, "        break;\n");
    }
    sb_puts(out, "    }\n    return at;\n}\n\n");
    emit_c_work_prototype(out, p);
    sb_printf(out,
              "\n{\n    ds_dims d;\n    const int body = %s_choose(ndim, shape, &d",
              emit_prefix(a, p));
    emit_c_select_names(out, p, "");
    sb_printf(out, ");\n    return %s_layout(body, &d, 0, 0) + 64;\n}\n\n", emit_prefix(a, p));
}

static uint32_t most_pointers(const Plan *p, const Variant *const *variants)
{
    uint32_t most = 1;
    for (uint32_t b = 0; b < p->m->nbodies; b++)
        most =
            emit_pointer_count(p, variants[b]) > most ? emit_pointer_count(p, variants[b]) : most;
    return most;
}

void emit_c_shaped_step(StrBuf *out, const Plan *p, const Variant *const *variants)
{
    Arena *a = out->arena;
    const char *prefix = emit_prefix(a, p);
    for (uint32_t b = 0; b < p->m->nbodies; b++) body_function(out, p, variants[b]);
    choose_function(out, p);
    layout_function(out, p, variants);
    emit_c_step_prototype(out, p, variants[0]);
    sb_printf(out, "\n{\n    ds_dims d;\n    const int body = %s_choose(ndim, shape, &d", prefix);
    emit_c_select_names(out, p, "");
    sb_puts(out, ");\n    const ds_dims last = ds_view_of(DS_FLAT, ndim, shape, 1);\n"
                 "    const int64_t numel = last.numel, rows = last.rows, cols = last.cols;\n"
                 "    const int64_t mats = last.mats;\n"
                 "    (void)rows, (void)cols, (void)mats;\n"
                 "    if (numel <= 0 || body < 0)\n        return 0;\n");
    for (int l = 0; l < LEVEL_COUNT; l++)
        sb_printf(out, "    double %s[%u] = {0};\n", emit_blocks[l],
                  (unsigned)(p->block_size[l] ? p->block_size[l] : 1));
    sb_printf(out, "    void *ptr[%u] = {", (unsigned)most_pointers(p, variants));
    for (uint32_t e = 0; e < p->m->nelem; e++)
        sb_printf(out, "%s%s%s", e ? ", " : "", e == 1 ? "(void *)" : "", emit_elem_name(a, p, e));
    sb_printf(out,
              "};\n    char *base = (char *)work;\n"
              "    base += (64 - (uintptr_t)base %% 64) %% 64;\n"
              "    %s_layout(body, &d, base, ptr);\n",
              prefix);
    emit_c_fill_blocks(out, p, variants[0]);
    sb_puts(out, "    switch (body) {\n");
    for (uint32_t b = 0; b < p->m->nbodies; b++)
        sb_printf(out, "    case %u: %s_body%u(&d, ptr, global, group, cls, tensor); break;\n",
                  (unsigned)b, prefix, (unsigned)b);
    sb_puts(out, "    default: return 0;\n    }\n");
    emit_c_drain_blocks(out, p);
    emit_c_return(out, p);
}
