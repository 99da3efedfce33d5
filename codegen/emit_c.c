/* emit_c.c - a plan as self-contained C99 that any compiler can build: `dsoptc rule.opt -o rule.c`,
 * and what backend cc compiles.
 *
 * Requires: a plan and a variant of it. Ensures: a translation unit that includes nothing but
 * stdint.h and its own header, compiles without warnings under gcc and clang, and gives the
 * interpreter's bits at any optimisation level that keeps IEEE arithmetic (checked by #error where
 * the compiler tells). Element loops are plain loops over restrict pointers with scalars in locals,
 * which gcc and clang turn into vector code; reductions keep 128 lanes in an array
 * (docs/numerics.md).
 *
 *     adamw:  adamw_s0_group, adamw_s0_class, adamw_k0, adamw_commit_tensor, …,
 *             and adamw_step(numel, p, g, m, v, &hyper, t)
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
} CKernel;

/* The parameters of the row function, or the arguments it is called with. */
static void row_params(const CKernel *c, bool types)
{
    uint32_t nelem = c->p->m->nelem + c->v->ntemps;
    sb_puts(c->out, types ? "int64_t count" : "row->count");
    for (uint32_t e = 0; e < nelem; e++) {
        if (!c->info.loads[e] && !c->info.stores[e]) continue;
        DType d = emit_elem_storage(c->p, c->v, e);
        const char *qualifier = c->info.stores[e] ? "" : "const ";
        const char *name = emit_elem_name(c->a, c->p, e);
        if (types)
            sb_printf(c->out, ",\n    %s%s *restrict %s", qualifier, elem_ctype(d), name);
        else
            sb_printf(c->out, ",\n            (%s%s *)t->ptr[%u] + row->first", qualifier,
                      elem_ctype(d), (unsigned)e);
    }
    for (uint32_t i = 0; i < c->info.nscalars; i++) {
        IrRef ref = c->info.scalars[i];
        const char *type = emit_type(&emit_style_c, (DType)c->b->ins[ref].dtype);
        if (types)
            sb_printf(c->out, ",\n    const %s v%u", type, (unsigned)ref);
        else
            sb_printf(c->out, ",\n            v%u", (unsigned)ref);
    }
    if (c->k->nreduces)
        sb_puts(c->out, types ? ",\n    double *restrict partial"
                              : ",\n            args->partial + r * args->npartial");
}

/* One element: loads, values, stores, and the lanes `lane<column>[j]`. */
static void element_body(const CKernel *c, const char *indent)
{
    int line = 0;
    for (uint32_t i = 0; i < c->k->nvals; i++) {
        const KernelValue *kv = &c->k->vals[i];
        sb_puts(c->out, indent);
        if (kv->how == VAL_COMPUTE) {
            emit_element_value(c->out, c->p, c->v, kv->ref, &emit_style_c);
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
        const PlanReduce *r = &c->p->reduces[c->k->reduces[i]];
        const Ins *ins = &c->b->ins[r->ins];
        char lane[32], x[32], y[32];
        snprintf(lane, sizeof lane, "lane%u[j]", (unsigned)r->partial);
        snprintf(x, sizeof x, "(double)v%u", (unsigned)ins->arg[0]);
        snprintf(y, sizeof y, "(double)v%u", (unsigned)ins->arg[1]);
        sb_printf(c->out, "%s%s = ", indent, lane);
        emit_reduce_text(c->out, reduce_info[ins->op - IR_RED].combine, lane, x, y);
        sb_puts(c->out, ";\n");
    }
}

static void reducing_loop(const CKernel *c)
{
    StrBuf *out = c->out;
    for (uint32_t i = 0; i < c->k->nreduces; i++)
        sb_printf(out, "    double lane%u[128];\n",
                  (unsigned)c->p->reduces[c->k->reduces[i]].partial);
    sb_puts(out, "    for (int j = 0; j < 128; j++) {\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const PlanReduce *r = &c->p->reduces[c->k->reduces[i]];
        const ReduceInfo *info = &reduce_info[c->b->ins[r->ins].op - IR_RED];
        sb_printf(out, "        lane%u[j] = ", (unsigned)r->partial);
        emit_literal(out, info->identity, DT_F64);
        sb_puts(out, ";\n");
    }
    sb_puts(out, "    }\n"
                 "    for (int64_t first = 0; first < count; first += 128) {\n"
                 "        const int width = count - first < 128 ? (int)(count - first) : 128;\n"
                 "        for (int j = 0; j < width; j++) {\n"
                 "            const int64_t i = first + j;\n");
    element_body(c, "            ");
    sb_puts(out, "        }\n    }\n");
    for (uint32_t i = 0; i < c->k->nreduces; i++) {
        const PlanReduce *r = &c->p->reduces[c->k->reduces[i]];
        sb_printf(out, "    partial[%u] = ds_fold_%s(lane%u);\n", (unsigned)r->partial,
                  reduce_info[c->b->ins[r->ins].op - IR_RED].name, (unsigned)r->partial);
    }
}

static void row_function(const CKernel *c)
{
    sb_printf(c->out, "static void %s_k%d_row(", c->module, c->k->phase);
    row_params(c, true);
    sb_puts(c->out, ")\n{\n");
    for (uint32_t i = 0; i < c->info.nconsts; i++) {
        sb_puts(c->out, "    ");
        emit_scalar_read(c->out, c->p, c->v->body, c->info.consts[i], &emit_style_c, emit_blocks);
        sb_puts(c->out, "\n");
    }
    for (uint32_t i = 0; i < c->info.nscalars; i++)
        sb_printf(c->out, "%s(void)v%u%s", i ? ", " : "    ", (unsigned)c->info.scalars[i],
                  i + 1 == c->info.nscalars ? ";\n" : "");
    if (c->k->nreduces) {
        reducing_loop(c);
    } else {
        sb_puts(c->out, "    for (int64_t i = 0; i < count; i++) {\n");
        element_body(c, "        ");
        sb_puts(c->out, "    }\n");
    }
    sb_puts(c->out, "}\n\n");
}

static void kernel(CKernel *c)
{
    StrBuf *out = c->out;
    row_function(c);
    sb_printf(out,
              "void %s_k%d(const DsArgs *args, int64_t begin, int64_t end, void *scratch)\n{\n",
              c->module, c->k->phase);
    sb_puts(out, "    (void)scratch;\n"
                 "    for (int64_t r = begin; r < end; r++) {\n"
                 "        const DsRow *row = &args->rows[r];\n"
                 "        const DsTensorRow *t = &args->tensors[row->tensor];\n");
    const char *const blocks[LEVEL_COUNT] = {"t->u[0]", "t->u[1]", "t->u[2]", "t->u[3]"};
    for (uint32_t i = 0; i < c->info.nscalars; i++) {
        sb_puts(out, "        ");
        emit_scalar_read(out, c->p, c->v->body, c->info.scalars[i], &emit_style_c, blocks);
        sb_puts(out, "\n");
    }
    if (!c->info.always && c->info.nguards) {
        sb_puts(out, "        if (!(");
        for (uint32_t i = 0; i < c->info.nguards; i++)
            sb_printf(out, "%sv%u", i ? " | " : "", (unsigned)c->info.guards[i]);
        sb_puts(out, "))\n            continue;\n");
    }
    sb_printf(out, "        %s_k%d_row(\n            ", c->module, c->k->phase);
    row_params(c, false);
    sb_puts(out, ");\n    }\n}\n\n");
}

/* Whether a value that is the same for all elements of a tensor is reduced over them with this
 * operator. */
static bool reduces_uniformly(const Plan *p, int op)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        if (r->of_scalars && r->result.level == LEVEL_TENSOR &&
            p->m->bodies[r->body].ins[r->ins].op - IR_RED == op)
            return true;
    }
    return false;
}

static void uniform_function(StrBuf *out, const ReduceInfo *info)
{
    sb_printf(out,
              "static inline double ds_uniform_chunk_%s(int64_t count, double x, double y)\n{\n"
              "    double lane[128];\n    (void)y;\n"
              "    for (int j = 0; j < 128; j++)\n        lane[j] = ",
              info->name);
    emit_literal(out, info->identity, DT_F64);
    sb_puts(out, ";\n    for (int64_t i = 0; i < count; i++)\n        lane[i % 128] = ");
    emit_reduce_text(out, info->combine, "lane[i % 128]", "x", "y");
    sb_printf(
        out,
        ";\n    return ds_fold_%s(lane);\n}\n"
        "static inline double ds_uniform_%s(int64_t numel, double x, double y)\n{\n"
        "    const uint64_t chunks = (uint64_t)(numel - 1) / DS_CHUNK + 1;\n"
        "    const double whole = ds_uniform_chunk_%s(DS_CHUNK, x, y);\n"
        "    double tree[52];\n"
        "    for (uint64_t c = 0; c + 1 < chunks; c++)\n"
        "        ds_push_%s(tree, c, whole);\n"
        "    ds_push_%s(tree, chunks - 1,\n"
        "               ds_uniform_chunk_%s(numel - (int64_t)(chunks - 1) * DS_CHUNK, x, y));\n"
        "    return ds_root_%s(tree, chunks);\n}\n\n",
        info->name, info->name, info->name, info->name, info->name, info->name, info->name);
}

/* ds_fold_<op> for every operator that kernels reduce with, and ds_push, ds_root for the plain
 * step's tree. */
static void reduction_functions(StrBuf *out, const Plan *p)
{
    bool done[RED_COUNT_] = {false};
    for (uint32_t i = 0; i < p->nreduces; i++) {
        int op = p->m->bodies[p->reduces[i].body].ins[p->reduces[i].ins].op - IR_RED;
        const ReduceInfo *info = &reduce_info[op];
        if (done[op]) continue;
        done[op] = true;
        sb_printf(out, "static inline double ds_merge_%s(double a, double b)\n{\n    return ",
                  info->name);
        emit_reduce_text(out, info->merge, "a", "b", "");
        sb_printf(out,
                  ";\n}\n"
                  "static inline double ds_fold_%s(double *lane)\n{\n"
                  "    for (int half = 64; half > 0; half /= 2) {\n"
                  "        for (int j = 0; j < half; j++)\n"
                  "            lane[j] = ds_merge_%s(lane[j], lane[j + half]);\n"
                  "    }\n    return lane[0];\n}\n",
                  info->name, info->name);
        sb_printf(out,
                  "/* The aligned tree over chunks, kept as one subtree per bit of the number of "
                  "chunks so far. */\n"
                  "static inline void ds_push_%s(double *tree, uint64_t chunk, double x)\n{\n"
                  "    int k = 0;\n"
                  "    for (; chunk >> k & 1; k++)\n"
                  "        x = ds_merge_%s(tree[k], x);\n"
                  "    tree[k] = x;\n}\n"
                  "static inline double ds_root_%s(const double *tree, uint64_t chunks)\n{\n"
                  "    int k = 0;\n"
                  "    while (!(chunks >> k & 1))\n"
                  "        k++;\n"
                  "    double x = tree[k];\n"
                  "    for (k++; k < 52; k++) {\n"
                  "        if (chunks >> k & 1)\n"
                  "            x = ds_merge_%s(tree[k], x);\n"
                  "    }\n    return x;\n}\n\n",
                  info->name, info->name, info->name, info->name);
        if (reduces_uniformly(p, op)) uniform_function(out, info);
    }
}

static void preamble(StrBuf *out)
{
    sb_puts(out,
            "#if defined(__FAST_MATH__)\n"
            "#error \"this file means IEEE arithmetic: compile it without -ffast-math\"\n"
            "#endif\n"
            "#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0\n"
            "#error \"this file needs arithmetic without excess precision: -msse2 -mfpmath=sse\"\n"
            "#endif\n"
            "#if defined(__clang__)\n"
            "#pragma STDC FP_CONTRACT OFF\n"
            "#pragma clang diagnostic ignored \"-Wunused-function\"\n"
            "#elif defined(__GNUC__)\n"
            "#pragma GCC optimize(\"fp-contract=off\", \"no-trapping-math\")\n"
            "#endif\n\n");
}

static void element_types(StrBuf *out)
{
    sb_puts(out, "/* Elements at any address. */\n"
                 "#ifdef __GNUC__\n"
                 "#define DS_ANY __attribute__((aligned(1), may_alias))\n"
                 "#else\n"
                 "#define DS_ANY\n"
                 "#endif\n"
                 "typedef float ds_any_f32 DS_ANY;\n"
                 "typedef double ds_any_f64 DS_ANY;\n"
                 "typedef uint16_t ds_any_u16 DS_ANY;\n\n");
}

static void scalar_programs(StrBuf *out, const Plan *p)
{
    Arena *a = out->arena;
    const char *module = emit_module_name(a, p);
    for (uint32_t i = 0; i < p->nprograms + p->ncommit; i++) {
        const ScalarProgram *sp = i < p->nprograms ? &p->programs[i] : &p->commit[i - p->nprograms];
        StrBuf head = {.arena = a};
        sb_printf(&head, "void %s_", module);
        emit_program_name(&head, p, sp);
        emit_scalar_function(out, p, sp, head.text);
    }
}

void emit_c_scalars(StrBuf *out, const Plan *p)
{
    StrBuf body = {.arena = out->arena};
    sb_puts(&body, "");
    scalar_programs(&body, p);
    preamble(out);
    emit_math_sections(out, body.text, NULL);
    sb_puts(out, body.text);
}

/* Everything that calls ds_ functions; what they need is found by reading it. */
static void body_text(StrBuf *out, const Plan *p, const Variant *v)
{
    Arena *a = out->arena;
    const char *module = emit_module_name(a, p);
    reduction_functions(out, p);
    scalar_programs(out, p);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        CKernel c = {.a = a, .out = out, .p = p, .v = v, .k = &v->kernels[i], .module = module};
        c.b = &p->m->bodies[v->body];
        c.info = emit_kernel_info(a, p, v, c.k);
        c.branches = c.info.always || c.info.nguards > 1;
        kernel(&c);
    }
    emit_c_step(out, p, v);
}

bool emit_standalone_c(const Plan *p, const Variant *v, StrBuf *c_text, const char *header_name)
{
    StrBuf body = {.arena = c_text->arena};
    body_text(&body, p, v);
    emit_c_comment(c_text, p, v);
    if (header_name) {
        sb_printf(c_text, "#include \"%s\"\n\n", header_name);
        preamble(c_text);
    } else {
        preamble(c_text);
        emit_standalone_h(p, v, c_text);
    }
    emit_math_sections(c_text, body.text, NULL);
    element_types(c_text);
    sb_puts(c_text, body.text);
    return true;
}
