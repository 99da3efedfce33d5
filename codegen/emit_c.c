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

const VectorStyle emit_vectors_c = {
    &emit_style_c,
    {"unsigned char", "ds_any_f32", "ds_any_f64", "ds_any_u16", "ds_any_u16"},
    "int64_t"};

/* Whether a value that is the same for all elements of a tensor is reduced over them with this
 * operator. */
static bool reduces_uniformly(const Plan *p, const ReduceInfo *info)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        if (r->from == FROM_SCALARS && r->result.level == LEVEL_TENSOR &&
            plan_reduce_info(p, r) == info)
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
        ";\n    return ds_fold_%s(lane, 128);\n}\n"
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

static void merge_and_fold(StrBuf *out, const ReduceInfo *info)
{
    sb_printf(out, "static inline double ds_merge_%s(double a, double b)\n{\n    return ",
              info->name);
    emit_reduce_text(out, info->merge, "a", "b", "");
    sb_printf(out,
              ";\n}\n"
              "/* n lanes that are in use; the others would fold to nothing. */\n"
              "static inline double ds_fold_%s(double *lane, int n)\n{\n"
              "    for (int half = 64; half > 0; half /= 2) {\n"
              "        for (int j = 0; j < n - half; j++)\n"
              "            lane[j] = ds_merge_%s(lane[j], lane[j + half]);\n"
              "        n = n < half ? n : half;\n"
              "    }\n    return lane[0];\n}\n",
              info->name, info->name);
}

static void tree(StrBuf *out, const ReduceInfo *info)
{
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
}

/* ds_fold_<op> for every operator that kernels reduce with, and ds_push, ds_root for the plain
 * step's tree. */
static void reduction_functions(StrBuf *out, const Plan *p, bool *done, bool *uniform)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const ReduceInfo *info = plan_reduce_info(p, &p->reduces[i]);
        size_t op = (size_t)(info - reduce_info);
        if (!done[op]) {
            merge_and_fold(out, info);
            tree(out, info);
        }
        if (!uniform[op] && reduces_uniformly(p, info)) {
            uniform_function(out, info);
            uniform[op] = true;
        }
        done[op] = true;
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
            /* GCC 12 drops roundings to float that it makes side by side in straight-line code. */
            "#pragma GCC optimize(\"fp-contract=off\", \"no-trapping-math\", "
            "\"no-tree-slp-vectorize\")\n"
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
    const char *module = emit_prefix(a, p);
    for (uint32_t i = 0; i < p->nprograms + p->ncommit; i++) {
        const ScalarProgram *sp = i < p->nprograms ? &p->programs[i] : &p->commit[i - p->nprograms];
        StrBuf head = {.arena = a};
        sb_printf(&head, "void %s_", module);
        emit_program_name(&head, p, sp);
        emit_scalar_function(out, p, sp, head.text);
    }
    for (uint32_t i = 0; i < p->nvprograms + p->nvcommit; i++) {
        const VectorProgram *vp =
            i < p->nvprograms ? &p->vprograms[i] : &p->vcommit[i - p->nvprograms];
        StrBuf head = {.arena = a};
        sb_printf(&head, "void %s_", module);
        emit_vector_name(&head, p, vp);
        emit_vector_function(out, p, vp, head.text, &emit_vectors_c);
    }
}

/* What `text` calls, found by reading it, and then the text. */
static void with_what_it_needs(StrBuf *out, const char *text)
{
    emit_math_sections(out, text, NULL);
    element_types(out);
    sb_puts(out, text);
}

static void translation_unit(StrBuf *out, const StrBuf *body)
{
    sb_puts(out, "#include <stdint.h>\n\n");
    preamble(out);
    emit_c_abi(out);
    with_what_it_needs(out, body->text ? body->text : "");
}

void emit_c_scalars(StrBuf *out, const Plan *p)
{
    StrBuf body = {.arena = out->arena};
    scalar_programs(&body, p);
    translation_unit(out, &body);
}

void emit_c_kernels(StrBuf *out, const Plan *p, const Variant *v)
{
    StrBuf body = {.arena = out->arena};
    bool done[RED_COUNT_] = {false}, uniform[RED_COUNT_] = {false};
    reduction_functions(&body, p, done, uniform);
    emit_c_variant(&body, p, v);
    translation_unit(out, &body);
}

CUnit emit_c_unit(Arena *a, const Plan *const *plans, size_t n, const DType *storage)
{
    CUnit u = {plans, ARENA_ARRAY(a, const Variant *const *, n + 1), n};
    for (size_t e = 0; e < n; e++) {
        const Variant **v = ARENA_ARRAY(a, const Variant *, plans[e]->m->nbodies + 1);
        for (uint32_t b = 0; b < plans[e]->m->nbodies; b++)
            v[b] = plan_variant(a, plans[e], b, storage);
        u.variants[e] = v;
    }
    return u;
}

static void body_text(StrBuf *out, const CUnit *u)
{
    bool done[RED_COUNT_] = {false}, uniform[RED_COUNT_] = {false}, shaped = false;
    for (size_t e = 0; e < u->n; e++) {
        reduction_functions(out, u->plans[e], done, uniform);
        shaped |= emit_c_is_shaped(u->plans[e]);
    }
    if (shaped) emit_c_view(out);
    for (size_t e = 0; e < u->n; e++) {
        const Plan *p = u->plans[e];
        scalar_programs(out, p);
        for (uint32_t b = 0; b < p->m->nbodies; b++) emit_c_variant(out, p, u->variants[e][b]);
        emit_c_step(out, p, u->variants[e]);
    }
}

bool emit_standalone_c(const Plan *const *plans, size_t n, const DType *storage, StrBuf *c_text,
                       const char *header_name)
{
    StrBuf body = {.arena = c_text->arena};
    CUnit u = emit_c_unit(c_text->arena, plans, n, storage);
    body_text(&body, &u);
    emit_c_comment(c_text, &u);
    if (header_name) {
        sb_printf(c_text, "#include \"%s\"\n\n", header_name);
        preamble(c_text);
    } else {
        preamble(c_text);
        emit_c_header(c_text, &u);
    }
    with_what_it_needs(c_text, body.text);
    return true;
}
