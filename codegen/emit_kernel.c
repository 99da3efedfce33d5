/* emit_kernel.c - what standalone C and CUDA have in common about kernels: what they read, names,
 * element expressions.
 *
 * Requires: a plan and a variant of it. Ensures: names that are identifiers of C and C++, different
 * from each other and from the locals v<number> of emitted text.
 *
 *     state n of adan    ->    "n"         state v12 or `int`    ->    "x3_v12", "x3_int"
 *     hyper lamb.clip_global_norm.limit    ->    "clip_global_norm_limit"
 */
#include "emit.h"
#include "plan_internal.h"
#include <ctype.h>
#include <string.h>

static void add_once(IrRef *list, uint32_t *n, IrRef ref)
{
    for (uint32_t i = 0; i < *n; i++) {
        if (list[i] == ref) return;
    }
    list[(*n)++] = ref;
}

static void use_scalar(KernelInfo *k, const IrBody *b, IrRef ref)
{
    if (ref == IR_NONE || plan_is_element(b, ref)) return;
    if (b->ins[ref].rate == RATE_MATRIX)
        add_once(k->matrices, &k->nmatrices, ref);
    else if (plan_is_vector(b, ref))
        add_once(k->vectors, &k->nvectors, ref);
    else if (b->ins[ref].op == IR_CONST)
        add_once(k->consts, &k->nconsts, ref);
    else
        add_once(k->scalars, &k->nscalars, ref);
}

static void use_guard(KernelInfo *k, const IrBody *b, IrRef guard)
{
    if (plan_is_true(b, guard)) {
        k->always = true;
        return;
    }
    use_scalar(k, b, guard);
    add_once(k->guards, &k->nguards, guard);
}

KernelInfo emit_kernel_info(Arena *a, const Plan *p, const Variant *v, const Kernel *k)
{
    const IrBody *b = &p->m->bodies[v->body];
    uint32_t nelem = emit_pointer_count(p, v);
    KernelInfo info = {
        .consts = ARENA_ARRAY(a, IrRef, b->n + 1),
        .scalars = ARENA_ARRAY(a, IrRef, b->n + 1),
        .matrices = ARENA_ARRAY(a, IrRef, b->n + 1),
        .vectors = ARENA_ARRAY(a, IrRef, b->n + 1),
        .guards = ARENA_ARRAY(a, IrRef, b->n + 1),
        .loads = ARENA_ARRAY(a, uint8_t, nelem + 1),
        .stores = ARENA_ARRAY(a, uint8_t, nelem + 1),
    };
    for (uint32_t i = 0; i < k->nvals; i++) {
        const Ins *ins = &b->ins[k->vals[i].ref];
        if (k->vals[i].how != VAL_COMPUTE) info.loads[k->vals[i].elem] = 1;
        int arity = emit_power_name(b, ins) ? 1 : ir_arity(ins);
        for (int j = 0; k->vals[i].how == VAL_COMPUTE && j < arity; j++)
            use_scalar(&info, b, ins->arg[j]);
    }
    for (uint32_t i = 0; i < k->nstores; i++) {
        info.stores[k->stores[i].elem] = 1;
        use_scalar(&info, b, k->stores[i].value);
        use_guard(&info, b, k->stores[i].guard);
    }
    for (uint32_t i = 0; i < k->nreduces; i++) {
        const Ins *ins = &b->ins[p->reduces[k->reduces[i]].ins];
        for (int j = 0; j < ir_arity(ins); j++) use_scalar(&info, b, ins->arg[j]);
        use_guard(&info, b, ins->arg[2]);
    }
    return info;
}

void emit_element_value(StrBuf *out, const Plan *p, const Variant *v, IrRef ref, const EmitStyle *s)
{
    const IrBody *b = &p->m->bodies[v->body];
    const Ins *ins = &b->ins[ref];
    sb_printf(out, "const %s v%u = ", emit_type(s, (DType)ins->dtype), (unsigned)ref);
    emit_ins_text(out, b, ins);
    sb_puts(out, ";");
}

void emit_draw_text(StrBuf *out, const Ins *ins, const char *index)
{
    const char *name = ins->op == IR_NORMAL    ? "normal"
                       : ins->op == IR_UNIFORM ? "uniform"
                                               : "rademacher";
    sb_printf(out, "ds_%s%s(v%u, v%u, %uu, %s)", name, ins->dtype == DT_F64 ? "" : "f",
              (unsigned)ins->arg[0], (unsigned)ins->arg[1], (unsigned)ins->lit.slot, index);
}

static void put_body(StrBuf *out, uint32_t body)
{
    if (body) sb_printf(out, "_%u", (unsigned)body);
}

void emit_kernel_name(StrBuf *out, const Variant *v, const Kernel *k)
{
    sb_printf(out, "k%d", k->phase);
    put_body(out, v->body);
}

void emit_program_name(StrBuf *out, const Plan *p, const ScalarProgram *sp)
{
    bool commit = p->ncommit && sp >= p->commit && sp < p->commit + p->ncommit;
    if (commit)
        sb_printf(out, "commit_%s", emit_level_names[sp->level]);
    else
        sb_printf(out, "s%d_%s", sp->phase, emit_level_names[sp->level]);
    put_body(out, sp->body);
}

void emit_vector_name(StrBuf *out, const Plan *p, const VectorProgram *vp)
{
    bool commit = p->nvcommit && vp >= p->vcommit && vp < p->vcommit + p->nvcommit;
    if (commit)
        sb_printf(out, "vcommit_%s", rate_name(vp->rate));
    else
        sb_printf(out, "v%d_%s", vp->phase, rate_name(vp->rate));
    put_body(out, vp->body);
}

const char **emit_all_names(Arena *a, const Plan *p, const char *prefix, uint32_t *n)
{
    uint32_t scalar = p->nprograms + p->ncommit;
    *n = scalar + p->nvprograms + p->nvcommit;
    const char **names = ARENA_ARRAY(a, const char *, *n + 1);
    for (uint32_t i = 0; i < *n; i++) {
        StrBuf name = {.arena = a};
        sb_puts(&name, prefix);
        if (i < scalar)
            emit_program_name(&name, p,
                              i < p->nprograms ? &p->programs[i] : &p->commit[i - p->nprograms]);
        else
            emit_vector_name(&name, p,
                             i - scalar < p->nvprograms ? &p->vprograms[i - scalar]
                                                        : &p->vcommit[i - scalar - p->nvprograms]);
        names[i] = name.text;
    }
    return names;
}

BuiltScalars emit_all_built(const Plan *p, void **functions, void *image)
{
    void **vectors = functions + p->nprograms + p->ncommit;
    return (BuiltScalars){.programs = (DsScalarFn *)functions,
                          .commit = (DsScalarFn *)functions + p->nprograms,
                          .vprograms = (DsVectorFn *)vectors,
                          .vcommit = (DsVectorFn *)vectors + p->nvprograms,
                          .image = image};
}

void emit_line_end(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, int *line)
{
    const IrBody *b = &p->m->bodies[body];
    const char *name = NULL;
    int at = 0, col;
    if (p->m->sources && b->loc && b->loc[ref].begin)
        source_position(p->m->sources, b->loc[ref].begin, &name, &at, &col);
    if (name && at != *line && !strstr(name, "*/") && !strstr(name, "/*") && !strchr(name, '\n'))
        sb_printf(out, " /* %s:%d */", name, at);
    *line = at;
    sb_puts(out, "\n");
}

void emit_reduce_text(StrBuf *out, const char *text, const char *a, const char *b_or_x,
                      const char *y)
{
    for (const char *s = text; *s; s++) {
        bool word_before = s > text && (isalnum((unsigned char)s[-1]) || s[-1] == '_');
        bool word_after = isalnum((unsigned char)s[1]) || s[1] == '_';
        bool alone = !word_before && !word_after;
        if (alone && *s == 'a')
            sb_puts(out, a);
        else if (alone && (*s == 'b' || *s == 'x'))
            sb_puts(out, b_or_x);
        else if (alone && *s == 'y')
            sb_puts(out, y);
        else
            sb_putn(out, s, 1);
    }
}

DType emit_elem_storage(const Plan *p, const Variant *v, uint32_t elem)
{
    return elem < p->m->nelem ? v->storage[elem] : DT_F32;
}

const char *emit_widened(Arena *a, DType storage, const char *place)
{
    if (storage == DT_F16) return arena_printf(a, "ds_f32_from_f16(%s)", place);
    return storage == DT_BF16 ? arena_printf(a, "ds_f32_from_bf16(%s)", place) : place;
}

const char *emit_narrowed(Arena *a, DType storage, const char *value)
{
    if (storage == DT_F16) return arena_printf(a, "ds_f16_from_f32(%s)", value);
    return storage == DT_BF16 ? arena_printf(a, "ds_bf16_from_f32(%s)", value) : value;
}

const char *emit_module_name(Arena *a, const Plan *p)
{
    StrBuf name = {.arena = a};
    emit_identifier(&name, p->m->name);
    /* dsopt_step and ds_… are the library's and the emitted text's own. */
    bool ours = strcmp(name.text, "dsopt") == 0 || strcmp(name.text, "ds") == 0;
    return ours ? arena_printf(a, "%s_", name.text) : name.text;
}

uint32_t emit_npartial(const Plan *p, int phase)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        bool column = r->from == FROM_ELEMENTS && !rate_is_elementwise(r->rate);
        if (r->phase == phase && column && r->partial >= n) n = r->partial + 1;
    }
    return n;
}

const char *emit_upper(Arena *a, const char *s)
{
    char *u = arena_strdup(a, s);
    for (char *c = u; c && *c; c++) *c = (char)toupper((unsigned char)*c);
    return u;
}
