/* plan_print.c - the text form of a plan (--emit=plan), documented in docs/plan.md.
 *
 * Requires: a plan and one of its variants. Ensures: the same text for the same plan, everything
 * that backends act on included.
 *
 *     phase 2
 *       s2_tensor %49 %51 %54:=tensor[5] … %62:=tensor[9]
 *       k2 load p:%45 | reload m:%18 v:%27 | compute %33 %37 … %64 | store p:=%64 if %65
 *          12 read + 4 written bytes, 12 operations per element
 */
#include "emit.h"
#include "plan_internal.h"

static void print_place(StrBuf *out, Place at)
{
    if (at.level != LEVEL_NONE)
        sb_printf(out, "%s[%u]", emit_level_names[at.level], (unsigned)at.index);
}

static void print_elem(StrBuf *out, const Plan *p, uint32_t body, uint32_t elem)
{
    const IrModule *m = p->m;
    for (uint32_t i = 0; i < m->nslots; i++) {
        if (!rate_is_scalar(m->slots[i].rate) && m->slots[i].index == elem) {
            sb_puts(out, m->slots[i].name);
            return;
        }
    }
    if (elem < plan_first_temp(p, body))
        sb_printf(out, "vec%u", (unsigned)(elem - m->nelem));
    else
        sb_printf(out, "temp%u", (unsigned)(elem - plan_first_temp(p, body)));
}

static void print_guard(StrBuf *out, IrRef guard)
{
    if (guard != IR_NONE) sb_printf(out, " if %%%u", (unsigned)guard);
}

static void print_program(StrBuf *out, const Plan *p, const ScalarProgram *sp)
{
    const IrBody *b = &p->m->bodies[sp->body];
    sb_puts(out, "  ");
    emit_program_name(out, p, sp);
    for (uint32_t i = 0; i < sp->nvals; i++) {
        Place at = p->place[sp->body][sp->vals[i]];
        sb_printf(out, " %%%u", (unsigned)sp->vals[i]);
        if (at.level != LEVEL_NONE) sb_puts(out, ":=");
        print_place(out, at);
    }
    for (uint32_t i = 0; i < sp->nstores; i++) {
        const IrStore *st = &b->stores[sp->stores[i]];
        const Slot *s = &p->m->slots[st->slot];
        sb_printf(out, "%s%s:=%%%u", i ? ", " : " ", s->name, (unsigned)st->value);
        print_guard(out, plan_is_true(b, st->guard) ? IR_NONE : st->guard);
    }
    sb_puts(out, "\n");
}

static void print_vprogram(StrBuf *out, const Plan *p, const VectorProgram *vp)
{
    const IrBody *b = &p->m->bodies[vp->body];
    bool commit = vp->phase > p->nphases;
    if (commit)
        sb_printf(out, "  vcommit_%s", rate_name(vp->rate));
    else
        sb_printf(out, "  v%d_%s", vp->phase, rate_name(vp->rate));
    for (uint32_t i = 0; i < vp->nvals; i++) {
        uint32_t vector = p->vector[vp->body][vp->vals[i]];
        sb_printf(out, " %%%u", (unsigned)vp->vals[i]);
        if (vector != UINT32_MAX) {
            sb_puts(out, ":=");
            print_elem(out, p, vp->body, vector);
        }
    }
    for (uint32_t i = 0; i < vp->nstores; i++) {
        const IrStore *st = &b->stores[vp->stores[i]];
        sb_printf(out, "%s%s:=%%%u", i ? ", " : " ", p->m->slots[st->slot].name,
                  (unsigned)st->value);
        print_guard(out, plan_is_true(b, st->guard) ? IR_NONE : st->guard);
    }
    sb_puts(out, "\n");
}

static void print_values(StrBuf *out, const Plan *p, uint32_t body, const Kernel *k, ValueHow how,
                         const char *title)
{
    const char *lead = title;
    for (uint32_t i = 0; i < k->nvals; i++) {
        if (k->vals[i].how != how) continue;
        sb_printf(out, "%s ", lead);
        lead = "";
        if (how != VAL_COMPUTE) {
            print_elem(out, p, body, k->vals[i].elem);
            sb_puts(out, ":");
        }
        sb_printf(out, "%%%u", (unsigned)k->vals[i].ref);
    }
}

static void print_kernel(StrBuf *out, const Plan *p, uint32_t body, const Kernel *k)
{
    sb_printf(out, "  k%d", k->phase);
    print_values(out, p, body, k, VAL_LOAD, " load");
    print_values(out, p, body, k, VAL_RELOAD, " | reload");
    print_values(out, p, body, k, VAL_TEMP, " | temp");
    print_values(out, p, body, k, VAL_COMPUTE, " | compute");
    for (uint32_t i = 0; i < k->nstores; i++) {
        sb_puts(out, i ? ", " : " | store ");
        print_elem(out, p, body, k->stores[i].elem);
        sb_printf(out, ":=%%%u", (unsigned)k->stores[i].value);
        print_guard(out, k->stores[i].guard);
    }
    for (uint32_t i = 0; i < k->nreduces; i++)
        sb_printf(out, "%s%%%u", i ? " " : " | reduce ", (unsigned)p->reduces[k->reduces[i]].ins);
    sb_printf(out, "\n     %d read + %d written bytes, %d operations per element\n", k->bytes_read,
              k->bytes_written, k->flops);
}

static void print_arg(StrBuf *out, const Plan *p, uint32_t body, uint32_t vector, Place at)
{
    if (vector != UINT32_MAX)
        print_elem(out, p, body, vector);
    else
        print_place(out, at);
}

static void print_join(StrBuf *out, const Plan *p, const PlanReduce *r)
{
    const Ins *ins = plan_reduction(p, r);
    sb_printf(out, "  join %%%u %s[%s] -> ", (unsigned)r->ins, reduce_info[ins->op - IR_RED].name,
              ins->rate == RATE_GLOBAL ? "all" : rate_name(ins->rate));
    print_place(out, r->result);
    if (!rate_is_scalar(r->rate)) print_elem(out, p, r->body, r->result_vec);
    if (r->from == FROM_VECTOR) {
        sb_puts(out, " of ");
        print_arg(out, p, r->body, r->vec, r->arg);
        if (ir_arity(ins) > 1) {
            sb_puts(out, " ");
            print_arg(out, p, r->body, r->vec2, r->arg2);
        }
    } else if (r->from == FROM_SCALARS) {
        sb_puts(out, " of ");
        print_place(out, r->arg);
        if (r->arg2.level != LEVEL_NONE) sb_puts(out, " ");
        print_place(out, r->arg2);
    } else if (rate_is_scalar(r->rate) || r->rate == RATE_MATRIX) {
        sb_printf(out, " of column %u", (unsigned)r->partial);
    } else {
        sb_puts(out, " of its partial results");
    }
    if (r->guard.level != LEVEL_NONE) sb_puts(out, " where ");
    print_place(out, r->guard);
    sb_puts(out, "\n");
}

static void print_vectors(StrBuf *out, const Plan *p, uint32_t body)
{
    for (uint32_t i = 0; i < p->nvectors[body]; i++) {
        const PlanVector *v = &p->vectors[body][i];
        sb_puts(out, i ? " " : "vectors ");
        print_elem(out, p, body, v->index);
        sb_printf(out, ":%s.%s%s=%%%u", dtype_name(v->dtype), rate_name(v->rate),
                  v->partials ? "*" : "", (unsigned)v->ref);
    }
    sb_puts(out, p->nvectors[body] ? "\n" : "");
}

void plan_print(const Plan *p, const Variant *v, StrBuf *out)
{
    const IrBody *b = &p->m->bodies[v->body];
    sb_printf(out, "plan %s storage", p->m->name);
    for (uint32_t i = 0; i < p->m->nelem; i++) {
        sb_puts(out, " ");
        print_elem(out, p, v->body, i);
        sb_printf(out, "=%s", dtype_name(v->storage[i]));
    }
    if (p->m->nbodies > 1 || b->view != VIEW_FLAT)
        sb_printf(out, "\nbody %u view %s", (unsigned)v->body, ir_views[b->view]);
    sb_puts(out, "\nblocks");
    for (int l = 0; l < LEVEL_COUNT; l++)
        sb_printf(out, " %s[%u]", emit_level_names[l], (unsigned)p->block_size[l]);
    sb_puts(out, "\n");
    print_vectors(out, p, v->body);
    int read = 0, written = 0;
    for (int ph = 0; ph <= p->nphases; ph++) {
        sb_printf(out, ph < p->nphases ? "phase %d\n" : "end\n", ph);
        for (uint32_t i = 0; i < p->nprograms; i++) {
            if (p->programs[i].phase == ph && p->programs[i].body == v->body)
                print_program(out, p, &p->programs[i]);
        }
        for (uint32_t i = 0; i < p->nvprograms; i++) {
            if (p->vprograms[i].phase == ph && p->vprograms[i].body == v->body)
                print_vprogram(out, p, &p->vprograms[i]);
        }
        if (p->skip.level != LEVEL_NONE && p->skip_phase == ph) {
            sb_puts(out, "  skip if ");
            print_place(out, p->skip);
            sb_puts(out, "\n");
        }
        for (uint32_t i = 0; i < v->nkernels; i++) {
            if (v->kernels[i].phase != ph) continue;
            print_kernel(out, p, v->body, &v->kernels[i]);
            read += v->kernels[i].bytes_read;
            written += v->kernels[i].bytes_written;
        }
        for (uint32_t i = 0; i < p->nreduces; i++) {
            if (p->reduces[i].phase == ph && p->reduces[i].body == v->body)
                print_join(out, p, &p->reduces[i]);
        }
    }
    for (uint32_t i = 0; i < p->nvcommit; i++) {
        if (p->vcommit[i].body == v->body) print_vprogram(out, p, &p->vcommit[i]);
    }
    for (uint32_t i = 0; i < p->ncommit; i++) {
        if (p->commit[i].body == v->body) print_program(out, p, &p->commit[i]);
    }
    sb_printf(out, "total %d bytes per element (%d read, %d written), %u sweep%s, %u temporar%s\n",
              read + written, read, written, (unsigned)v->nkernels, v->nkernels == 1 ? "" : "s",
              (unsigned)v->ntemps, v->ntemps == 1 ? "y" : "ies");
}
