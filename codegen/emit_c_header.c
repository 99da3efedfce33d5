/* emit_c_header.c - the .h of standalone C, and the comments that tell how to use both.
 *
 * Requires: a plan and a variant. Ensures: a header that C99 and C++ programs can include beside
 * the headers of other rules: the kernel ABI, entry points, where each scalar lives,
 * hyperparameters with their defaults, the plain step.
 *
 *     typedef struct adamw_hyper { double lr, b1, b2, eps, wd; } adamw_hyper;
 *     #define ADAMW_HYPER_DEFAULTS {0.001, 0.9, 0.999, 1e-08, 0.01}
 */
#include "emit_c.h"
#include <math.h>
#include <string.h>

static const char *slot_what(const Slot *s)
{
    switch (s->kind) {
    case SLOT_HYPER: return "hyperparameter";
    case SLOT_STATE: return "state";
    case SLOT_COUNT: return "applied steps so far";
    case SLOT_INPUT: return "given before the step";
    case SLOT_PROP: return "property of the tensor";
    case SLOT_ARM: return "which arm of the shapes it takes";
    case SLOT_BLOCK: return "elements of a block";
    case SLOT_RESULT: return "result of a reduction";
    case SLOT_EXPORT: return "export";
    case SLOT_SKIP: return "1: the step was skipped";
    default: return "";
    }
}

/* A text that cannot end the comment it stands in, in ASCII: ptxas takes nothing else. */
static void put_in_comment(StrBuf *out, const char *text)
{
    for (const char *s = text; *s; s++) {
        bool marks = (s[0] == '*' && s[1] == '/') || (s[0] == '/' && s[1] == '*');
        unsigned char c = (unsigned char)*s;
        if (c >= 0xc0)
            sb_puts(out, strncmp(s, "…", strlen("…")) == 0 ? "..." : "?");
        else if (c < 0x80)
            sb_printf(out, marks ? "%c " : "%c", *s);
    }
}

/* A slot by the name that a reader knows: hyperparameters and states by their path in the rule. */
static const char *slot_label(const Slot *s)
{
    const char *dot = s->kind == SLOT_HYPER || s->kind == SLOT_STATE ? strchr(s->path, '.') : NULL;
    return dot ? dot + 1 : s->name;
}

static void comment_slot(StrBuf *out, const Plan *p, uint32_t slot)
{
    const Slot *s = &p->m->slots[slot];
    sb_printf(out, "[%u] %s, %s", (unsigned)s->index, slot_label(s), slot_what(s));
    const char *text = s->kind == SLOT_RESULT ? plan_result_text(out->arena, p, slot) : NULL;
    if (text) {
        sb_puts(out, ": ");
        put_in_comment(out, text);
    }
    if (ir_asks_name(s)) {
        StrBuf quoted = {.arena = out->arena};
        ir_put_quoted(&quoted, s->path);
        sb_puts(out, strcmp(s->name, "name_like") == 0 ? ": name ~ " : ": name == ");
        put_in_comment(out, quoted.text);
    }
    if (s->kind == SLOT_HYPER && s->has_default) {
        sb_puts(out, ", ");
        emit_decimal(out, s->def);
    }
    if (s->kind == SLOT_STATE) {
        sb_puts(out, ", starts at ");
        emit_decimal(out, s->init);
    }
    sb_puts(out, "\n");
}

void emit_block_comment(StrBuf *out, const Plan *p, const char *lead)
{
    for (int l = 0; l < LEVEL_COUNT; l++) {
        sb_printf(out, "%s%s: %u double%s", lead, emit_level_names[l], (unsigned)p->block_size[l],
                  p->block_size[l] == 1 ? "" : "s");
        if (l == LEVEL_CLASS)
            sb_puts(out,
                    "; [0] is t, the applied steps so far, of the tensors that share the block");
        sb_puts(out, "\n");
        for (uint32_t i = 0; i < p->m->nslots; i++) {
            const Slot *s = &p->m->slots[i];
            if (!rate_is_scalar(s->rate) || s->level != l) continue;
            sb_printf(out, "%s  ", lead);
            comment_slot(out, p, i);
        }
    }
}

void emit_pointer_comment(StrBuf *out, const Plan *p, const Variant *v)
{
    sb_puts(out, " * Pointers of a tensor row, in this order:");
    for (uint32_t e = 0; e < emit_pointer_count(p, v); e++)
        sb_printf(out, " %s %s%s", emit_elem_name(out->arena, p, e),
                  dtype_name(emit_elem_storage(p, v, e)),
                  e + 1 < emit_pointer_count(p, v) ? "," : "");
    sb_puts(out, ". */\n");
}

/* Where the values that a reduction leaves or takes stand, for the reader of the comment. */
static void comment_reduce(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    const char *name = plan_reduce_info(p, r)->name;
    sb_printf(out, " *   join %s of ", name);
    if (r->from == FROM_SCALARS)
        sb_printf(out, "%s[%u]", emit_level_names[r->arg.level], (unsigned)r->arg.index);
    else if (r->from == FROM_VECTOR && r->vec != UINT32_MAX)
        sb_printf(out, "the %s values at pointer %u", rate_name(r->vec_rate), (unsigned)r->vec);
    else if (r->from == FROM_VECTOR)
        sb_printf(out, "the %s values at pointer %u", rate_name(r->vec2_rate), (unsigned)r->vec2);
    else if (rate_is_elementwise(r->rate))
        sb_printf(out, "the %s at pointer %u", r->rate & AXIS_COL ? "tiles of rows" : "strips",
                  (unsigned)r->result_vec);
    else
        sb_printf(out, "column %u", (unsigned)r->partial);
    if (!rate_is_scalar(r->rate))
        sb_printf(out, " into the %s values at pointer %u\n", rate_name(r->rate),
                  (unsigned)r->result_vec);
    else
        sb_printf(out, " over %s into %s[%u]\n",
                  r->rate == RATE_GLOBAL  ? "all tensors"
                  : r->rate == RATE_GROUP ? "the tensors of each group"
                                          : "each tensor",
                  emit_level_names[r->result.level], (unsigned)r->result.index);
}

/* What is to be called, and joined, in one phase. */
static void comment_phase(StrBuf *out, const Plan *p, const Variant *const *variants, int ph)
{
    const char *prefix = emit_prefix(out->arena, p);
    for (uint32_t i = 0; i < p->nprograms; i++) {
        if (p->programs[i].phase != ph) continue;
        sb_printf(out, " *   %s_", prefix);
        emit_program_name(out, p, &p->programs[i]);
        sb_printf(out, "   scalars, once per %s block\n", emit_level_names[p->programs[i].level]);
    }
    for (uint32_t i = 0; i < p->nvprograms; i++) {
        if (p->vprograms[i].phase != ph) continue;
        sb_printf(out, " *   %s_", prefix);
        emit_vector_name(out, p, &p->vprograms[i]);
        sb_printf(out, "   vectors, over %s indices of each tensor\n",
                  rate_name(p->vprograms[i].rate));
    }
    if (p->skip.level != LEVEL_NONE && p->skip_phase == ph)
        sb_printf(out,
                  " *   where %s[%u] is not 0 the step is skipped: all goes on, but only "
                  "exports are stored\n",
                  emit_level_names[p->skip.level], (unsigned)p->skip.index);
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        for (uint32_t i = 0; i < variants[b]->nkernels; i++) {
            const Kernel *k = &variants[b]->kernels[i];
            if (k->phase != ph) continue;
            sb_printf(out, " *   %s_", prefix);
            emit_kernel_name(out, variants[b], k);
            sb_printf(out,
                      "   kernel: %d bytes read, %d written per element; %u columns of partial "
                      "results\n",
                      k->bytes_read, k->bytes_written, (unsigned)emit_npartial(p, ph));
        }
    }
    for (uint32_t i = 0; i < p->nreduces; i++) {
        if (p->reduces[i].phase == ph) comment_reduce(out, p, &p->reduces[i]);
    }
}

static void comment_commit(StrBuf *out, const Plan *p)
{
    for (uint32_t i = 0; i < p->nvcommit; i++) {
        sb_printf(out, " *   %s_", emit_prefix(out->arena, p));
        emit_vector_name(out, p, &p->vcommit[i]);
        sb_printf(out, "   stores vectors, over %s indices of each tensor\n",
                  rate_name(p->vcommit[i].rate));
    }
    for (uint32_t i = 0; i < p->ncommit; i++) {
        sb_printf(out, " *   %s_", emit_prefix(out->arena, p));
        emit_program_name(out, p, &p->commit[i]);
        sb_printf(out, "   stores scalar state, once per %s block\n",
                  emit_level_names[p->commit[i].level]);
    }
}

void emit_c_comment(StrBuf *out, const CUnit *u)
{
    const Plan *p = u->plans[0];
    const char *module = emit_module_name(out->arena, p);
    sb_printf(out,
              "/* %s: one step of the optimizer, generated by dsoptc. Edit the rule, not this "
              "file.\n *\n",
              module);
    sb_puts(out, " * Compile with\n"
                 " *     cc -O3 -march=native -fno-math-errno -c");
    sb_printf(out, " %s.c\n", module);
    sb_puts(out,
            " * Without -fno-math-errno square roots are not vectorised. Never with -ffast-math: "
            "the bits are part of the\n"
            " * meaning, the same as those of every other backend, at any optimisation level.\n *\n"
            " * A step, by hand or by a program of yours that owns many tensors (types in the "
            "header):\n");
    for (size_t e = 0; e < u->n; e++) {
        if (e)
            sb_printf(out, " * Entry point %s, the same way:\n", u->plans[e]->m->bodies[0].entry);
        for (int ph = 0; ph <= u->plans[e]->nphases; ph++)
            comment_phase(out, u->plans[e], u->variants[e], ph);
        comment_commit(out, u->plans[e]);
    }
    if (p->m->nbodies > 1)
        sb_puts(out, " * Kernels and programs that end in _1, _2, … are of tensors of other shapes "
                     "(see the step's own choice).\n");
    sb_puts(
        out,
        " * Partial results meet in the aligned binary tree over the chunks of a tensor, N(k, i) = "
        "N(k-1, 2i) + N(k-1, 2i+1),\n"
        " * then over the tensors in byte order of their names. Blocks of scalars, in doubles:\n");
    emit_block_comment(out, p, " *   ");
    emit_pointer_comment(out, p, u->variants[0][0]);
}

void emit_places_enum(StrBuf *out, const Plan *p, const Variant *v, const char *prefix)
{
    Arena *a = out->arena;
    const char *big = emit_upper(a, prefix);
    sb_printf(out, "#ifndef %s_PLACES\n#define %s_PLACES 1\n", big, big);
    sb_puts(out, "enum {\n    /* sizes of the blocks of scalars, in doubles */\n");
    for (int l = 0; l < LEVEL_COUNT; l++)
        sb_printf(out, "    %s_%s_DOUBLES = %u,\n", big, emit_upper(a, emit_level_names[l]),
                  (unsigned)p->block_size[l]);
    sb_puts(out, "    /* where slots stand in their blocks */\n");
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (rate_is_scalar(s->rate) && s->kind != SLOT_RESULT)
            sb_printf(out, "    %s_%s_%s = %u,\n", big, emit_upper(a, emit_level_names[s->level]),
                      emit_slot_name(a, p, i), (unsigned)s->index);
    }
    sb_puts(out, "    /* where element buffers stand in a tensor's table of pointers */\n");
    for (uint32_t e = 0; e < emit_pointer_count(p, v); e++)
        sb_printf(out, "    %s_PTR_%s = %u,\n", big, emit_elem_name(a, p, e), (unsigned)e);
    sb_puts(out, "    /* columns of partial results */\n");
    for (int ph = 0; ph < p->nphases; ph++)
        sb_printf(out, "    %s_PARTIALS_%d = %u,\n", big, ph, (unsigned)emit_npartial(p, ph));
    sb_puts(out, "};\n#endif\n\n");
}

void emit_c_abi(StrBuf *out)
{
    sb_puts(out,
            "#ifndef DSOPT_KERNEL_ABI\n"
            "#define DSOPT_KERNEL_ABI 2\n"
            "enum { DS_CHUNK = 4096, DS_LANES = 128, DS_PACK = 384 };\n"
            "/* At most DS_CHUNK consecutive elements of one tensor, from a multiple of "
            "DS_CHUNK on; of tensors\n"
            " * that are worked on as matrices, a tile: `runs` runs of `count` elements (the last "
            "has `last`), `pitch` apart;\n"
            " * or several whole matrices, DsTensorRow.packs of them. */\n"
            "typedef struct DsRow {\n"
            "    int64_t tensor, first, count, runs, pitch, width, last, matrix;\n"
            "    int64_t row, col, strip, tile;\n"
            "} DsRow;\n"
            "typedef struct DsTensorRow {\n"
            "    double *u[4]; /* its blocks of scalars: global, group, class, tensor */\n"
            "    void *const *ptr; /* its element buffers: p, g, states, temporaries; any "
            "alignment */\n"
            "    int64_t rows, cols, mats, tiles, packs;\n"
            "} DsTensorRow;\n"
            "typedef struct DsArgs {\n"
            "    const DsRow *rows;\n"
            "    const DsTensorRow *tensors;\n"
            "    double *partial; /* partial[row * npartial + column] */\n"
            "    int64_t npartial;\n"
            "} DsArgs;\n"
            "#endif\n\n");
}

static void hyper_type(StrBuf *out, const Plan *p, const char *module)
{
    Arena *a = out->arena;
    StrBuf defaults = {.arena = a};
    sb_puts(&defaults, "");
    sb_printf(out, "typedef struct %s_hyper {\n", module);
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (s->kind != SLOT_HYPER && s->kind != SLOT_INPUT) continue;
        if (defaults.len) sb_puts(&defaults, ", ");
        if (s->kind == SLOT_INPUT) {
            sb_printf(out, "    double %s; /* an input: set it before each step */\n",
                      emit_slot_name(a, p, i));
            sb_puts(&defaults, "(0.0 / 0.0)");
            continue;
        }
        sb_printf(out, "    double %s; /* in %c", emit_slot_name(a, p, i), s->lo_open ? '(' : '[');
        emit_decimal(out, s->lo);
        sb_puts(out, ", ");
        emit_decimal(out, s->hi);
        sb_printf(out, "%c%s */\n", s->hi_open ? ')' : ']',
                  s->has_default || s->derived ? "" : "; must be set");
        if (s->has_default && isfinite(s->def))
            emit_decimal(&defaults, s->def);
        else if (s->has_default)
            sb_puts(&defaults, s->def > 0 ? "(1.0 / 0.0)" : "(-1.0 / 0.0)");
        else /* NaN: not set. It follows others (ir.h), or nobody will take the result for one. */
            sb_puts(&defaults, "(0.0 / 0.0)");
    }
    if (!defaults.len) {
        sb_puts(out, "    double none;\n");
        sb_puts(&defaults, "0");
    }
    sb_printf(out, "} %s_hyper;\n#define %s_HYPER_DEFAULTS {%s}\n\n", module, emit_upper(a, module),
              defaults.text);
}

static void state_field(StrBuf *out, const Plan *p, uint32_t slot)
{
    const Slot *s = &p->m->slots[slot];
    sb_printf(out, "    double %s; /* ", emit_c_state_name(out->arena, p, slot));
    sb_puts(out, s->kind == SLOT_EXPORT ? "written by the step" : "starts at ");
    if (s->kind != SLOT_EXPORT) emit_decimal(out, s->init);
    sb_puts(out, " */\n");
}

/* States, and what all entry points export. */
static void state_type(StrBuf *out, const CUnit *u, const char *module)
{
    bool any = false;
    for (size_t e = 0; e < u->n; e++) any |= emit_c_has_state(u->plans[e]);
    if (!any) return;
    sb_puts(out, "/* Kept from step to step by the caller. */\n");
    sb_printf(out, "typedef struct %s_state {\n", module);
    for (size_t e = 0; e < u->n; e++) {
        const IrModule *m = u->plans[e]->m;
        for (uint32_t i = 0; i < m->nslots; i++) {
            if (emit_c_is_kept(&m->slots[i]) && (e == 0 || m->slots[i].kind == SLOT_EXPORT))
                state_field(out, u->plans[e], i);
        }
    }
    sb_printf(out, "} %s_state;\n\n", module);
}

static void entry_points(StrBuf *out, const Plan *p, const Variant *const *variants)
{
    uint32_t n;
    const char **names = emit_all_names(
        out->arena, p, arena_printf(out->arena, "%s_", emit_prefix(out->arena, p)), &n);
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        for (uint32_t i = 0; i < variants[b]->nkernels; i++) {
            sb_printf(out, "void %s_", emit_prefix(out->arena, p));
            emit_kernel_name(out, variants[b], &variants[b]->kernels[i]);
            sb_puts(out, "(const DsArgs *args, int64_t begin, int64_t end, void *scratch);\n");
        }
    }
    for (uint32_t i = 0; i < n; i++)
        sb_printf(out, "void %s(%s);\n", names[i],
                  i < p->nprograms + p->ncommit
                      ? "double *global, double *group, double *cls, double *tensor"
                      : "const DsArgs *args, int64_t begin, int64_t end");
}

/* Whether it reduces over more than one tensor. */
static bool meets_others(const Plan *p)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        Rate rate = (Rate)p->m->bodies[r->body].ins[r->ins].rate;
        if (rate == RATE_GLOBAL || rate == RATE_GROUP) return true;
    }
    return false;
}

static void plain_function(StrBuf *out, const Plan *p, const Variant *v)
{
    bool step = strcmp(p->m->bodies[0].entry, "step") == 0;
    if (step)
        sb_puts(out, "\n/* One step of one tensor. t: the number of this step, from 1;");
    else
        sb_printf(out, "\n/* 'on %s' for one tensor. t: the steps done so far;",
                  p->m->bodies[0].entry);
    sb_printf(out,
              " 16-bit elements are their bits. Returns 1 when the %s was\n"
              " * applied, 0 when the rule skipped it or there are no elements.",
              step ? "step" : "block");
    if (emit_c_has_draws(p))
        sb_puts(out, " draws: the key of this tensor's random numbers in this step.");
    if (meets_others(p))
        sb_puts(out, "\n * Where the rule looks at several tensors together, [all] or [group], it "
                     "sees this one alone.");
    if (emit_c_is_shaped(p)) {
        sb_puts(out, " States of rows, columns, matrices\n"
                     " * or blocks have one value for each, those of another shape may be NULL. "
                     "work: as many bytes as\n * ");
        sb_printf(out, "%s_work says. */\n", emit_c_entry(out->arena, p));
        emit_c_work_prototype(out, p);
        sb_puts(out, ";\n");
    } else {
        sb_puts(out, " */\n");
    }
    emit_c_step_prototype(out, p, v);
    sb_puts(out, ";\n");
}

void emit_c_header(StrBuf *out, const CUnit *u)
{
    Arena *a = out->arena;
    const Plan *p = u->plans[0];
    const char *module = emit_module_name(a, p), *big = emit_upper(a, module);
    sb_printf(
        out,
        "/* %s: one step of the optimizer, generated by dsoptc; %s.c tells how to use it.\n *\n",
        module, module);
    emit_block_comment(out, p, " * ");
    sb_printf(out, " */\n#ifndef %s_DSOPT_H\n#define %s_DSOPT_H\n#include <stdint.h>\n", big, big);
    sb_puts(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    emit_c_abi(out);
    for (size_t e = 0; e < u->n; e++)
        emit_places_enum(out, u->plans[e], u->variants[e][0], emit_prefix(a, u->plans[e]));
    hyper_type(out, p, module);
    state_type(out, u, module);
    for (size_t e = 0; e < u->n; e++) entry_points(out, u->plans[e], u->variants[e]);
    for (size_t e = 0; e < u->n; e++) plain_function(out, u->plans[e], u->variants[e][0]);
    sb_puts(out, "\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

bool emit_standalone_h(const Plan *const *plans, size_t n, const DType *storage, StrBuf *h_text)
{
    CUnit u = emit_c_unit(h_text->arena, plans, n, storage);
    emit_c_header(h_text, &u);
    return true;
}
