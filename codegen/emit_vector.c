/* emit_vector.c - text of vector programs: loops over the indices of a vector, with the statements of
 * scalar programs inside.
 *
 * Requires: a plan of a verified module. Ensures: functions that read what libtcc, gcc and clang read
 * alike (emit_scalar.c); scalars are read once per piece, and of an index everything is read before
 * anything is written.
 *
 *     %9:f64.row = add %7 %8, kept    ->    for (long i = row->first, e = i + row->count; i < e; i++) {
 *                                               const double v7 = ((const double *)t->ptr[4])[i];
 *                                               const double v9 = v7 + v8;
 *                                               ((double *)t->ptr[5])[i] = v9;
 */
#include "emit.h"
#include "plan_internal.h"

const VectorStyle emit_vectors_tile = {
    &emit_style_c, {"unsigned char", "float", "double", "unsigned short", "unsigned short"}, "long"};

VectorAt emit_vector_at(const Plan *p, uint32_t body, IrRef ref)
{
    const Ins *ins = &p->m->bodies[body].ins[ref];
    uint32_t ptr = p->vector[body][ref];
    if (ins->op == IR_LOAD) return (VectorAt){ptr, p->m->slots[ins->lit.slot].dtype};
    for (uint32_t i = 0; i < p->nvectors[body]; i++) {
        if (p->vectors[body][i].ref == ref) return (VectorAt){ptr, p->vectors[body][i].dtype};
    }
    return (VectorAt){ptr, (DType)ins->dtype};
}

void emit_vector_read(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, const VectorStyle *s,
                      const char *index)
{
    VectorAt at = emit_vector_at(p, body, ref);
    DType d = (DType)p->m->bodies[body].ins[ref].dtype;
    sb_printf(out, "const %s v%u = ((const %s *)t->ptr[%u])[%s]%s;", emit_type(s->values, d),
              (unsigned)ref, s->memory[at.memory], (unsigned)at.ptr, index,
              d == DT_BOOL ? " != 0" : "");
}

typedef struct Loop {
    StrBuf *out;
    const Plan *p;
    const VectorProgram *vp;
    const IrBody *b;
    const VectorStyle *s;
    bool *here, *read; /* computed by this program; read by it */
} Loop;

void emit_vector_reads(const Plan *p, const VectorProgram *vp, bool *here, bool *read)
{
    const IrBody *b = &p->m->bodies[vp->body];
    for (uint32_t i = 0; i < vp->nvals; i++) {
        const Ins *ins = &b->ins[vp->vals[i]];
        here[vp->vals[i]] = true;
        int arity = emit_power_name(b, ins) ? 1 : ir_arity(ins);
        for (int k = 0; k < arity; k++)
            if (ins->arg[k] != IR_NONE) read[ins->arg[k]] = true;
    }
    for (uint32_t i = 0; i < vp->nstores; i++) {
        const IrStore *st = &b->stores[vp->stores[i]];
        read[st->value] = true;
        if (st->guard != IR_NONE && !plan_is_true(b, st->guard)) read[st->guard] = true;
    }
    for (IrRef ref = 0; ref < b->n; ref++) read[ref] &= !here[ref];
}

static void read_scalars(const Loop *l)
{
    for (IrRef ref = 0; ref < l->b->n; ref++) {
        if (!l->read[ref] || !rate_is_scalar(l->b->ins[ref].rate)) continue;
        sb_puts(l->out, "        ");
        emit_scalar_read(l->out, l->p, l->vp->body, ref, l->s->values, emit_row_blocks);
        sb_puts(l->out, "\n");
    }
}

/* Values of the vector at index i, and of its matrix. */
static void read_vectors(const Loop *l)
{
    bool matrix = false;
    for (IrRef ref = 0; ref < l->b->n; ref++) {
        Rate rate = l->b->ins[ref].rate;
        if (!l->read[ref] || rate_is_scalar(rate)) continue;
        bool other = rate == RATE_MATRIX && l->vp->rate != RATE_MATRIX;
        if (other && !matrix)
            sb_printf(l->out, "            const %s x = i / t->%s;\n", l->s->index,
                      l->vp->rate & AXIS_COL ? "cols" : "rows");
        matrix |= other;
        sb_puts(l->out, "            ");
        emit_vector_read(l->out, l->p, l->vp->body, ref, l->s, other ? "x" : "i");
        sb_puts(l->out, "\n");
    }
}

static void compute_values(const Loop *l)
{
    int line = 0;
    for (uint32_t i = 0; i < l->vp->nvals; i++) {
        IrRef ref = l->vp->vals[i];
        const Ins *ins = &l->b->ins[ref];
        const char *type = emit_type(l->s->values, (DType)ins->dtype);
        sb_printf(l->out, "            const %s v%u = ", type, (unsigned)ref);
        if (ins->op == IR_ROUND)
            sb_printf(l->out, "(%s)v%u", type, (unsigned)ins->arg[0]);
        else
            emit_ins_text(l->out, l->b, ins);
        sb_puts(l->out, ";");
        emit_line_end(l->out, l->p, l->vp->body, ref, &line);
    }
}

static void write_values(const Loop *l)
{
    for (uint32_t i = 0; i < l->vp->nkeeps; i++) {
        VectorAt at = emit_vector_at(l->p, l->vp->body, l->vp->keeps[i]);
        sb_printf(l->out, "            ((%s *)t->ptr[%u])[i] = (%s)v%u;\n",
                  l->s->memory[at.memory], (unsigned)at.ptr, l->s->memory[at.memory],
                  (unsigned)l->vp->keeps[i]);
    }
    for (uint32_t i = 0; i < l->vp->nstores; i++) {
        const IrStore *st = &l->b->stores[l->vp->stores[i]];
        const Slot *slot = &l->p->m->slots[st->slot];
        sb_puts(l->out, "            ");
        if (!plan_is_true(l->b, st->guard)) sb_printf(l->out, "if (v%u) ", (unsigned)st->guard);
        const char *memory = l->s->memory[slot->dtype];
        sb_printf(l->out, "((%s *)t->ptr[%u])[i] = (%s)v%u;\n", memory, (unsigned)slot->index,
                  memory, (unsigned)st->value);
    }
}

void emit_vector_loop(StrBuf *out, const Plan *p, const VectorProgram *vp, const VectorStyle *s,
                      const char *loop)
{
    const IrBody *b = &p->m->bodies[vp->body];
    Loop l = {out,
              p,
              vp,
              b,
              s,
              ARENA_ARRAY(out->arena, bool, b->n + 1),
              ARENA_ARRAY(out->arena, bool, b->n + 1)};
    emit_vector_reads(p, vp, l.here, l.read);
    read_scalars(&l);
    sb_printf(out, "        %s {\n", loop);
    read_vectors(&l);
    compute_values(&l);
    write_values(&l);
    sb_puts(out, "        }\n");
}

void emit_vector_function(StrBuf *out, const Plan *p, const VectorProgram *vp, const char *head,
                          const VectorStyle *s)
{
    sb_printf(out,
              "%s(const DsArgs *args, %s begin, %s end)\n{\n"
              "    for (; begin < end; begin++) {\n"
              "        const DsRow *row = args->rows + begin;\n"
              "        const DsTensorRow *t = args->tensors + row->tensor;\n",
              head, s->index, s->index);
    emit_vector_loop(out, p, vp, s,
                     arena_printf(out->arena, "for (%s i = row->first, e = i + row->count; i < e; i++)",
                                  s->index));
    sb_puts(out, "    }\n}\n\n");
}
