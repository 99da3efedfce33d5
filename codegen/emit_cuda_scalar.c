/* emit_cuda_scalar.c - what a CUDA step computes between its kernels: scalar programs, programs of
 * vectors, commits.
 *
 * Requires: a plan. Ensures: s<phase> runs the scalar programs of a phase in one block, level after
 * level; v<phase>_matrix and v<phase> run programs of vectors, a tensor by the blocks of one x of the
 * grid, indices by all threads of its y; vcommit, vcommit_matrix and commit store vectors and
 * scalars. A program runs for the tensors, classes and groups that run its body. Everything read and
 * written is device memory, so that a captured graph sees every change of a hyperparameter.
 *
 *     adafactor:  s0  k0  join0  v1  …  vcommit  commit
 */
#include "emit_cuda.h"

const VectorStyle emit_vectors_cuda = {
    &emit_style_cuda, {"unsigned char", "float", "double", "ds_u16", "ds_u16"}, "long long"};

static int slot_t(const Plan *p)
{
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        if (ir_is_clock(&p->m->slots[i])) return (int)p->m->slots[i].index;
    }
    return -1;
}

/* ---- scalars --------------------------------------------------------------------------------- */

static void program_function(StrBuf *out, const Plan *p, const ScalarProgram *sp)
{
    sb_puts(out, "DS_FN void ds_");
    emit_program_name(out, p, sp);
    sb_puts(out, "(double *global, double *group, double *cls, double *tensor)\n{\n"
                 "    (void)global, (void)group, (void)cls, (void)tensor;\n");
    emit_scalar_statements(out, p, sp, &emit_style_cuda, emit_blocks);
    sb_puts(out, "}\n");
}

/* Global and group slots are stored as the first body says that runs; values are each body's own. */
static void program_call(StrBuf *out, const Plan *p, const ScalarProgram *sp, bool commit)
{
    unsigned b = (unsigned)sp->body;
    StrBuf all = {.arena = out->arena}, group = {.arena = out->arena};
    sb_printf(&all, commit ? "ds_is_first(%s, %u)" : "(%s >> %u & 1)", "x.runs", b);
    sb_printf(&group, commit ? "ds_is_first(%s, %u)" : "(%s >> %u & 1)", "x.groups[i].runs", b);
    StrBuf name = {.arena = out->arena};
    emit_program_name(&name, p, sp);
    switch (sp->level) {
    case LEVEL_GLOBAL:
        sb_printf(out, "    if (threadIdx.x == 0 && %s)\n        ds_%s(x.global, 0, 0, 0);\n",
                  all.text, name.text);
        break;
    case LEVEL_GROUP:
        sb_printf(out,
                  "    for (long long i = threadIdx.x; i < x.ngroups; i += blockDim.x)\n"
                  "        if (%s) ds_%s(x.global, x.groups[i].u, 0, 0);\n",
                  group.text, name.text);
        break;
    case LEVEL_CLASS:
        sb_printf(out,
                  "    for (long long i = threadIdx.x; i < x.nclasses; i += blockDim.x)\n"
                  "        if (x.classes[i].body == %u)\n"
                  "            ds_%s(x.global, x.classes[i].u[1], x.classes[i].u[2], 0);\n",
                  b, name.text);
        break;
    default:
        sb_printf(out,
                  "    for (long long i = threadIdx.x; i < x.nactive; i += blockDim.x) {\n"
                  "        const DsTensorRow &t = x.tensors[x.active[i]];\n"
                  "        if (t.body == %u) ds_%s(x.global, t.u[1], t.u[2], t.u[3]);\n    }\n",
                  b, name.text);
        break;
    }
    sb_puts(out, "    __syncthreads();\n");
}

void emit_cuda_scalars(StrBuf *out, const CudaModule *m, int phase, const char *name)
{
    const Plan *p = m->p;
    bool commit = phase > p->nphases;
    const ScalarProgram *programs = commit ? p->commit : p->programs;
    uint32_t n = commit ? p->ncommit : p->nprograms;
    for (uint32_t i = 0; i < n; i++) {
        if (commit || programs[i].phase == phase) program_function(out, p, &programs[i]);
    }
    sb_printf(out, "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_%s(DsScalars x)\n{\n",
              CUDA_BLOCK, m->name, name);
    if (phase == 0 && slot_t(p) >= 0)
        sb_printf(out,
                  "    for (long long i = threadIdx.x; i < x.nclasses; i += blockDim.x)\n"
                  "        x.classes[i].u[2][0] = x.classes[i].u[3][%d];\n"
                  "    __syncthreads();\n",
                  slot_t(p));
    for (uint32_t i = 0; i < n; i++) {
        if (commit || programs[i].phase == phase) program_call(out, p, &programs[i], commit);
    }
    sb_puts(out, "}\n\n");
}

/* ---- vectors --------------------------------------------------------------------------------- */

const char *cuda_length(Rate rate)
{
    if (rate == RATE_MATRIX) return "t->mats";
    return rate & AXIS_COL ? "t->mats * t->cols" : "t->mats * t->rows";
}

static bool is_in(const VectorProgram *vp, bool commit, int phase, bool matrices)
{
    return (commit || vp->phase == phase) && (vp->rate == RATE_MATRIX) == matrices;
}

void emit_cuda_vectors(StrBuf *out, const CudaModule *m, int phase, bool matrices,
                       const char *name)
{
    const Plan *p = m->p;
    bool commit = phase > p->nphases;
    const VectorProgram *programs = commit ? p->vcommit : p->vprograms;
    uint32_t n = commit ? p->nvcommit : p->nvprograms;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_in(&programs[i], commit, phase, matrices)) continue;
        sb_puts(out, "DS_FN void ds_");
        emit_vector_name(out, p, &programs[i]);
        sb_puts(out, "(const DsTensorRow *t)\n{\n");
        emit_vector_loop(
            out, p, &programs[i], &emit_vectors_cuda,
            arena_printf(m->a, "for (long long i = ds_begin(), e = %s; i < e; i += ds_stride())",
                         cuda_length(programs[i].rate)));
        sb_puts(out, "}\n");
    }
    sb_printf(out,
              "extern \"C\" __global__ void __launch_bounds__(%d)\n%s_%s(DsJoin x)\n{\n"
              "    for (long long k = blockIdx.x; k < x.nspans; k += gridDim.x) {\n"
              "        const DsSpan span = x.spans[k];\n"
              "        const DsTensorRow *t = &x.tensors[span.tensor];\n"
              "        if (span.nrows == 0) continue;\n",
              CUDA_BLOCK, m->name, name);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_in(&programs[i], commit, phase, matrices)) continue;
        sb_printf(out, "        if (t->body == %u) ds_", (unsigned)programs[i].body);
        emit_vector_name(out, p, &programs[i]);
        sb_puts(out, "(t);\n");
    }
    sb_puts(out, "    }\n}\n\n");
}
