/* explain.c - a plan in words, for the person who wrote the rule (dsoptc explain).
 *
 * Requires: a plan and one of its variants. Ensures: what a step costs per element and why, what is
 * kept as state, what is computed once and for how many tensors, what each kernel moves; hints with
 * their places where the module knows its sources.
 *
 *     adamw: 1 sweep over memory; 28 bytes per element (16 read, 12 written), 16 operations
 *     computed once per (group, t), in f64:  1 / (1 - b1^t), sqrt(1 - b2^t)
 */
#include "emit.h"
#include "plan_internal.h"
#include <string.h>

/* ---- expressions ---------------------------------------------------------------------------- */

enum { EXPR_DEPTH = 12, EXPR_CHARS = 72 };

typedef struct Writer {
    StrBuf *out;
    const IrModule *m;
    const IrBody *b;
} Writer;

/* How tightly an operator binds; functions and names: 9. */
static int binding(const Ins *ins)
{
    if (ins->op >= OP_COUNT_) return 9;
    switch ((Op)ins->op) {
    case OP_SELECT: return 1;
    case OP_OR: return 2;
    case OP_AND: return 3;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_EQ:
    case OP_NE: return 5;
    case OP_ADD:
    case OP_SUB: return 6;
    case OP_MUL:
    case OP_DIV:
    case OP_MOD: return 7;
    case OP_NEG:
    case OP_NOT: return 4;
    case OP_POW: return 8;
    default: return 9;
    }
}

static void put(const Writer *x, IrRef ref, int outer, int depth);

/* The rule's t is the count so far, plus one. */
static bool is_step(const Writer *x, const Ins *ins)
{
    if (ins->op != IR_ADD) return false;
    for (int k = 0; k < 2; k++) {
        const Ins *load = &x->b->ins[ins->arg[k]], *one = &x->b->ins[ins->arg[1 - k]];
        if (load->op == IR_LOAD && ir_is_clock(&x->m->slots[load->lit.slot]) &&
            one->op == IR_CONST && one->lit.num == 1)
            return true;
    }
    return false;
}

/* Whether it asks for the first step: a count that is 0. */
static bool is_first_step(const Writer *x, const Ins *ins)
{
    if (ins->op != IR_EQ) return false;
    const Ins *count = &x->b->ins[ins->arg[0]], *zero = &x->b->ins[ins->arg[1]];
    return count->op == IR_LOAD && x->m->slots[count->lit.slot].kind == SLOT_COUNT &&
           zero->op == IR_CONST && zero->lit.num == 0;
}

/* The state that a choice reads, or its initial value in the first step; NULL: another choice. */
static const char *initialised_state(const Writer *x, const Ins *ins)
{
    if (ins->op != IR_SELECT || !is_first_step(x, &x->b->ins[ins->arg[0]])) return NULL;
    const Ins *load = &x->b->ins[ins->arg[2]];
    bool state = load->op == IR_LOAD && x->m->slots[load->lit.slot].kind == SLOT_STATE;
    return state ? x->m->slots[load->lit.slot].name : NULL;
}

static void put_leaf(const Writer *x, const Ins *ins)
{
    char text[32];
    if (ins->op == IR_CONST && ins->dtype == DT_BOOL) {
        sb_puts(x->out, ins->lit.num != 0 ? "true" : "false");
    } else if (ins->op == IR_CONST) {
        bool f32 = ins->dtype == DT_F32;
        sb_puts(x->out, f32 ? number_format_f32(text, (float)ins->lit.num)
                            : number_format(text, ins->lit.num));
    } else {
        const Slot *s = &x->m->slots[ins->lit.slot];
        sb_puts(x->out, ir_is_clock(s) ? "(t - 1)" : s->name);
    }
}

/* What is asked of the tensor's name: a property that is compared with 0. NULL: another comparison. */
static const Slot *name_question(const Writer *x, const Ins *ins)
{
    if (ins->op != IR_EQ && ins->op != IR_NE) return NULL;
    for (int k = 0; k < 2; k++) {
        const Ins *load = &x->b->ins[ins->arg[k]], *zero = &x->b->ins[ins->arg[1 - k]];
        if (load->op != IR_LOAD || zero->op != IR_CONST || zero->lit.num != 0) continue;
        const Slot *s = &x->m->slots[load->lit.slot];
        if (ir_asks_name(s)) return s;
    }
    return NULL;
}

static void put_question(const Writer *x, const Slot *s, bool negated)
{
    bool pattern = strcmp(s->name, "name_like") == 0;
    sb_printf(x->out, "name %s ", negated ? (pattern ? "!~" : "!=") : pattern ? "~" : "==");
    ir_put_quoted(x->out, s->path);
}

/* The state whose new value this is: later reads of the state in the rule mean this value. NULL:
 * none. */
static const char *new_value_of(const Writer *x, IrRef ref)
{
    for (uint32_t i = 0; i < x->b->nstores; i++) {
        const Slot *s = &x->m->slots[x->b->stores[i].slot];
        if (x->b->stores[i].value == ref && s->kind == SLOT_STATE) return s->name;
    }
    return NULL;
}

/* A hyperparameter that follows others until it is set (ir.h, Slot.derived): set == set ? set : …
 * NULL: another choice. */
static const char *followed_hyper(const Writer *x, const Ins *ins)
{
    if (ins->op != IR_SELECT) return NULL;
    const Ins *is_set = &x->b->ins[ins->arg[0]], *load = &x->b->ins[ins->arg[1]];
    bool itself = is_set->op == IR_EQ && is_set->arg[0] == ins->arg[1] &&
                  is_set->arg[1] == ins->arg[1] && load->op == IR_LOAD;
    const Slot *s = itself ? &x->m->slots[load->lit.slot] : NULL;
    return s && s->kind == SLOT_HYPER && s->derived ? s->name : NULL;
}

/* A reduction as the language has it: `norm` where the root of a sum of squares is taken, and the
 * scope where it is not the tensor. */
static void put_reduce(const Writer *x, const Ins *ins, bool rooted, int depth)
{
    ReduceOp op = (ReduceOp)(ins->op - IR_RED);
    bool squares = op == RED_SUMSQ && !rooted;
    const char *name = op == RED_SUMSQ  ? (rooted ? "norm" : "sum")
                       : op == RED_RMIN ? "min"
                       : op == RED_RMAX ? "max"
                                        : reduce_info[op].name;
    const char *scope = ins->rate == RATE_GLOBAL ? "all" : rate_name(ins->rate);
    if (ins->rate == RATE_TENSOR)
        sb_printf(x->out, "%s(", name);
    else
        sb_printf(x->out, "%s[%s](", name, scope);
    for (int k = 0; k < ir_arity(ins); k++) {
        if (k) sb_puts(x->out, ", ");
        put(x, ins->arg[k], squares ? 9 : 0, depth + 1);
    }
    sb_puts(x->out, squares ? "^2)" : ")");
}

static void put_op(const Writer *x, const Ins *ins, int depth)
{
    const OpInfo *info = &op_info[ins->op];
    int mine = binding(ins);
    if (ins->op == IR_SELECT) {
        put(x, ins->arg[0], 2, depth + 1);
        sb_puts(x->out, " ? ");
        put(x, ins->arg[1], 2, depth + 1);
        sb_puts(x->out, " : ");
        put(x, ins->arg[2], 1, depth + 1);
    } else if (ins->op == IR_NEG || ins->op == IR_NOT) {
        sb_puts(x->out, ins->op == IR_NEG ? "-" : "not ");
        put(x, ins->arg[0], mine, depth + 1);
    } else if (mine < 9) {
        put(x, ins->arg[0], ins->op == IR_POW ? mine + 1 : mine, depth + 1);
        if (ins->op == IR_POW)
            sb_puts(x->out, "^");
        else
            sb_printf(x->out, " %s ", *info->spelling ? info->spelling : info->name);
        put(x, ins->arg[1], ins->op == IR_POW ? mine : mine + 1, depth + 1);
    } else {
        sb_printf(x->out, "%s(", *info->spelling ? info->spelling : info->name);
        for (int k = 0; k < info->arity; k++) {
            if (k) sb_puts(x->out, ", ");
            put(x, ins->arg[k], 0, depth + 1);
        }
        sb_puts(x->out, ")");
    }
}

/* Writes a value as the language would; parentheses where it binds more loosely than its
 * surroundings. */
static void put(const Writer *x, IrRef ref, int outer, int depth)
{
    const Ins *ins = &x->b->ins[ref];
    const char *state = depth > 0 ? new_value_of(x, ref) : NULL;
    if (depth > EXPR_DEPTH || x->out->len > 4 * EXPR_CHARS) {
        sb_puts(x->out, "…");
    } else if (state && ins->op != IR_LOAD) {
        sb_puts(x->out, state);
    } else if (ins->op == IR_ROUND) {
        put(x, ins->arg[0], outer, depth);
    } else if (ins->op == IR_CONST || ins->op == IR_LOAD) {
        put_leaf(x, ins);
    } else if (ins->op >= IR_NORMAL && ins->op <= IR_RADEMACHER) {
        sb_printf(x->out, "%s()", ir_op_name(ins->op));
    } else if (is_step(x, ins)) {
        sb_puts(x->out, "t");
    } else if (initialised_state(x, ins)) {
        sb_puts(x->out, initialised_state(x, ins));
    } else if (followed_hyper(x, ins)) {
        sb_puts(x->out, followed_hyper(x, ins));
    } else if (is_first_step(x, ins)) {
        const Slot *count = &x->m->slots[x->b->ins[ins->arg[0]].lit.slot];
        sb_puts(x->out, outer > 5 ? "(" : "");
        sb_puts(x->out, ir_is_clock(count)           ? "t == 1"
                        : count->rate == RATE_GLOBAL ? "s == 0"
                                                     : "the state begins");
        sb_puts(x->out, outer > 5 ? ")" : "");
    } else if (name_question(x, ins)) {
        sb_puts(x->out, outer > 5 ? "(" : "");
        put_question(x, name_question(x, ins), ins->op == IR_EQ);
        sb_puts(x->out, outer > 5 ? ")" : "");
    } else if (ir_is_reduce(ins)) {
        put_reduce(x, ins, false, depth);
    } else if (ins->op == IR_SQRT && x->b->ins[ins->arg[0]].op == IR_RED + RED_SUMSQ) {
        put_reduce(x, &x->b->ins[ins->arg[0]], true, depth);
    } else {
        bool wrap = binding(ins) < outer;
        sb_puts(x->out, wrap ? "(" : "");
        put_op(x, ins, depth);
        sb_puts(x->out, wrap ? ")" : "");
    }
}

static const char *expression(Arena *a, const Plan *p, uint32_t body, IrRef ref)
{
    StrBuf s = {.arena = a};
    Writer x = {&s, p->m, &p->m->bodies[body]};
    put(&x, ref, 0, 0);
    if (s.len <= EXPR_CHARS) return s.text;
    size_t cut = EXPR_CHARS - 2;
    while (cut > 0 && ((unsigned char)s.text[cut] & 0xc0) == 0x80)
        cut--; /* not inside a character */
    return arena_printf(a, "%.*s …", (int)cut, s.text);
}

/* ---- parts ---------------------------------------------------------------------------------- */

const char *plan_result_text(Arena *a, const Plan *p, uint32_t slot)
{
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        const IrBody *body = &p->m->bodies[b];
        for (uint32_t i = 0; i < body->n; i++)
            if (ir_is_reduce(&body->ins[i]) && body->ins[i].lit.slot == slot)
                return expression(a, p, b, i);
    }
    return NULL;
}

static const char *const view_words[] = {
    [VIEW_FLAT] = "",
    [VIEW_MATRIX] = " (matrices of the last two axes)",
    [VIEW_FIRST] = " (the first axis against all others)",
    [VIEW_BLOCK] = " (blocks)",
};

static void explain_total(const Plan *p, const Variant *v, StrBuf *out)
{
    int read = 0, written = 0, flops = 0;
    for (uint32_t i = 0; i < v->nkernels; i++) {
        read += v->kernels[i].bytes_read;
        written += v->kernels[i].bytes_written;
        flops += v->kernels[i].flops;
    }
    sb_puts(out, p->m->name);
    if (p->m->nbodies > 1) sb_printf(out, ", arm %u", (unsigned)v->body);
    sb_puts(out, view_words[p->m->bodies[v->body].view]);
    sb_printf(
        out,
        ": %u sweep%s over memory; %d bytes per element (%d read, %d written), %d operation%s\n",
        (unsigned)v->nkernels, v->nkernels == 1 ? "" : "s", read + written, read, written, flops,
        flops == 1 ? "" : "s");
}

/* Whether the body has to do with the slot. */
static bool touches(const IrBody *b, uint32_t slot)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (b->ins[i].op == IR_LOAD && b->ins[i].lit.slot == slot) return true;
    for (uint32_t i = 0; i < b->nstores; i++)
        if (b->stores[i].slot == slot) return true;
    return false;
}

static void explain_state(const Plan *p, const Variant *v, StrBuf *out)
{
    int bytes = 0;
    sb_puts(out, "\nstate\n");
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (!touches(&p->m->bodies[v->body], i)) continue;
        if (s->kind == SLOT_STATE && rate_is_element(s->rate)) {
            bytes += dtype_size(v->storage[s->index]);
            sb_printf(out, "  %-12s %s, one per element\n", s->name,
                      dtype_name(v->storage[s->index]));
        } else if (s->kind == SLOT_STATE) {
            sb_printf(out, "  %-12s %s, one per %s\n", s->name, dtype_name(s->storage),
                      rate_is_vector(s->rate)    ? rate_name(s->rate)
                      : s->level == LEVEL_GLOBAL ? "optimizer"
                                                 : emit_level_names[s->level]);
        } else if (s->kind == SLOT_COUNT && !ir_is_clock(s) && s->rate != RATE_GLOBAL) {
            sb_printf(out, "  %-12s whether the state of each %s has begun\n", s->name,
                      s->level == LEVEL_GROUP ? "group" : "tensor");
        } else if (s->kind == SLOT_COUNT) {
            sb_printf(out, "  %-12s applied steps of %s\n", s->name,
                      s->level == LEVEL_GLOBAL ? "the rule" : "each tensor");
        }
    }
    sb_printf(out, "  %d bytes of state per element", bytes);
    if (v->ntemps)
        sb_printf(out, ", and %u while a step runs (temporaries)", 4 * (unsigned)v->ntemps);
    sb_puts(out, "\n");
}

/* Whether it has hyperparameters under it, as one that follows a schedule: lr.peak under lr. */
static bool has_parameters(const Plan *p, const Slot *of)
{
    size_t n = of->path ? strlen(of->path) : 0;
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (n && s->kind == SLOT_HYPER && s->path && !strncmp(s->path, of->path, n) &&
            s->path[n] == '.')
            return true;
    }
    return false;
}

static void explain_hypers(const Plan *p, StrBuf *out)
{
    bool any = false;
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (s->kind != SLOT_HYPER) continue;
        sb_puts(out,
                any ? ""
                    : "\nhyperparameters: values at run time, changing one compiles nothing\n");
        any = true;
        sb_printf(out, "  %-36s ", s->path && *s->path ? s->path : s->name);
        if (s->has_default) {
            sb_puts(out, "= ");
            emit_decimal(out, s->def);
        } else {
            sb_puts(out, !s->derived            ? "must be set"
                         : has_parameters(p, s) ? "follows its schedule until set"
                                                : "follows others until set");
        }
        sb_printf(out, "  in %c", s->lo_open ? '(' : '[');
        emit_decimal(out, s->lo);
        sb_puts(out, ", ");
        emit_decimal(out, s->hi);
        sb_printf(out, "%c%s\n", s->hi_open ? ')' : ']',
                  s->level == LEVEL_GLOBAL ? ", one for all groups" : "");
    }
}

static void explain_exports(const Plan *p, const Variant *v, StrBuf *out)
{
    bool any = false;
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (s->kind != SLOT_EXPORT || !touches(&p->m->bodies[v->body], i)) continue;
        sb_printf(out, "%s  %-12s one%s\n", any ? "" : "\nexports\n", s->name,
                  s->level == LEVEL_GLOBAL  ? ""
                  : s->level == LEVEL_GROUP ? " per group"
                                            : " per tensor");
        any = true;
    }
}

/* Whether a kernel reads this scalar. */
static bool *kernel_scalars(Arena *a, const Plan *p, const Variant *v)
{
    bool *set = ARENA_ARRAY(a, bool, p->m->bodies[v->body].n + 1);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        KernelInfo info = emit_kernel_info(a, p, v, &v->kernels[i]);
        for (uint32_t k = 0; k < info.nscalars; k++) set[info.scalars[k]] = true;
    }
    return set;
}

/* The scalars that kernels read, where they are more than a hyperparameter rounded, by level. */
static void explain_hoisted(const Plan *p, const Variant *v, StrBuf *out)
{
    static const char *const whose[LEVEL_COUNT] = {
        "once", "once per group", "once per group and step count", "once per tensor"};
    const IrBody *b = &p->m->bodies[v->body];
    bool *read = kernel_scalars(out->arena, p, v), any = false;
    for (int l = 0; l < LEVEL_COUNT; l++) {
        bool shown = false;
        for (uint32_t i = 0; i < b->n; i++) {
            const Ins *ins = &b->ins[i];
            bool plain = ins->op == IR_ROUND && b->ins[ins->arg[0]].op == IR_LOAD;
            if (!read[i] || p->level[v->body][i] != l || plain || ins->op == IR_LOAD) continue;
            if (!any) sb_puts(out, "\ncomputed outside of the elements, in f64, rounded once\n");
            any = true;
            if (!shown) sb_printf(out, "  %s\n", whose[l]);
            shown = true;
            sb_printf(out, "      %s\n", expression(out->arena, p, v->body, i));
        }
    }
}

static const char *elem_label(Arena *a, const Plan *p, uint32_t body, uint32_t elem)
{
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        if (!rate_is_scalar(p->m->slots[i].rate) && p->m->slots[i].index == elem)
            return p->m->slots[i].name;
    }
    return arena_printf(a, "temporary %u", (unsigned)(elem - plan_first_temp(p, body)));
}

static void list_values(const Plan *p, uint32_t body, const Kernel *k, ValueHow how,
                        const char *verb, StrBuf *out)
{
    bool any = false;
    for (uint32_t i = 0; i < k->nvals; i++) {
        if (k->vals[i].how != how) continue;
        sb_printf(out, "%s%s", any ? ", " : verb, elem_label(out->arena, p, body, k->vals[i].elem));
        any = true;
    }
    sb_puts(out, any ? "\n" : "");
}

static void explain_kernel(const Plan *p, const Variant *v, const Kernel *k, StrBuf *out)
{
    Arena *a = out->arena;
    const IrBody *b = &p->m->bodies[v->body];
    bool skips = false;
    sb_printf(out, "    kernel: %d bytes read, %d written, %d operation%s per element\n",
              k->bytes_read, k->bytes_written, k->flops, k->flops == 1 ? "" : "s");
    list_values(p, v->body, k, VAL_LOAD, "      loads ", out);
    list_values(p, v->body, k, VAL_RELOAD, "      reloads what an earlier phase stored: ", out);
    list_values(p, v->body, k, VAL_TEMP, "      reads ", out);
    for (uint32_t i = 0; i < k->nstores; i++) {
        const KernelStore *s = &k->stores[i];
        sb_printf(out, "%s%s", i ? ", " : "      stores ", elem_label(a, p, v->body, s->elem));
        if (s->guard != IR_NONE && s->guard == b->noskip)
            skips = true;
        else if (s->guard != IR_NONE)
            sb_printf(out, " if %s", expression(a, p, v->body, s->guard));
    }
    sb_puts(out, skips ? "; nothing where the step is skipped\n" : k->nstores ? "\n" : "");
    for (uint32_t i = 0; i < k->nreduces; i++)
        sb_printf(out, "      reduces %s\n",
                  expression(a, p, v->body, p->reduces[k->reduces[i]].ins));
}

/* What is computed outside of the elements: how many values, for each row, column, ... */
static void explain_vectors(const Plan *p, uint32_t body, int phase, StrBuf *out)
{
    for (uint32_t i = 0; i < p->nvprograms; i++) {
        const VectorProgram *vp = &p->vprograms[i];
        if (vp->phase != phase || vp->body != body) continue;
        sb_printf(out, "    for each %s:", rate_name(vp->rate));
        for (uint32_t k = 0; k < vp->nkeeps; k++)
            sb_printf(out, "%s %s", k ? ";" : "", expression(out->arena, p, body, vp->keeps[k]));
        sb_puts(out, "\n");
    }
}

/* Reductions that take no sweep: of vectors and scalars. */
static void explain_joins(const Plan *p, uint32_t body, int phase, StrBuf *out)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        if (r->phase != phase || r->body != body || r->from == FROM_ELEMENTS) continue;
        sb_printf(out, "    then %s, which costs no sweep\n",
                  expression(out->arena, p, body, r->ins));
    }
}

static void explain_steps(const Plan *p, const Variant *v, StrBuf *out)
{
    sb_puts(out, "\na step\n");
    for (int ph = 0; ph <= p->nphases; ph++) {
        uint32_t values = 0;
        bool kernel = false;
        for (uint32_t i = 0; i < p->nprograms; i++)
            if (p->programs[i].phase == ph && p->programs[i].body == v->body)
                values += p->programs[i].nvals;
        for (uint32_t i = 0; i < v->nkernels; i++) kernel = kernel || v->kernels[i].phase == ph;
        bool vectors = false;
        for (uint32_t i = 0; i < p->nvprograms; i++)
            vectors |= p->vprograms[i].phase == ph && p->vprograms[i].body == v->body;
        if (!values && !kernel && !vectors) continue;
        if (ph < p->nphases)
            sb_printf(out, "  phase %d\n", ph);
        else
            sb_puts(out, "  at the end\n");
        if (values)
            sb_printf(out, "    scalars: %u value%s\n", (unsigned)values, values == 1 ? "" : "s");
        if (p->skip.level != LEVEL_NONE && p->skip_phase == ph)
            sb_puts(out, "    from here on it is known whether the step is skipped\n");
        explain_vectors(p, v->body, ph, out);
        for (uint32_t i = 0; i < v->nkernels; i++) {
            if (v->kernels[i].phase == ph) explain_kernel(p, v, &v->kernels[i], out);
        }
        explain_joins(p, v->body, ph, out);
    }
}

/* Whether what a kernel computes is made of the value. */
static bool needs(const Plan *p, const Variant *v, const Kernel *k, IrRef value)
{
    const IrBody *b = &p->m->bodies[v->body];
    bool *made_of = ARENA_ARRAY(p->m->arena, bool, b->n + 1), yes = false;
    made_of[value] = true;
    for (uint32_t i = value + 1; i < b->n; i++)
        for (int a = 0; a < ir_arity(&b->ins[i]); a++) made_of[i] |= made_of[b->ins[i].arg[a]];
    for (uint32_t i = 0; i < k->nstores; i++)
        yes |= made_of[k->stores[i].value] ||
               (k->stores[i].guard != IR_NONE && made_of[k->stores[i].guard]);
    for (uint32_t i = 0; i < k->nreduces; i++) yes |= made_of[p->reduces[k->reduces[i]].ins];
    return yes;
}

/* "sweep 2 waits for sum[all](g^2)": what the sweep before it reduced. */
static void explain_sweeps(const Plan *p, const Variant *v, StrBuf *why)
{
    for (uint32_t i = 1; i < v->nkernels; i++) {
        const Kernel *before = &v->kernels[i - 1];
        const char *begin = "";
        for (uint32_t k = 0; k < before->nreduces; k++) {
            IrRef value = p->reduces[before->reduces[k]].ins;
            if (!needs(p, v, &v->kernels[i], value)) continue;
            if (!*begin) sb_printf(why, "  sweep %u waits for ", (unsigned)i + 1);
            sb_printf(why, "%s%s", begin, expression(why->arena, p, v->body, value));
            begin = "\n    and ";
        }
        sb_puts(why, *begin ? "\n" : "");
    }
}

static void explain_why(const Plan *p, const Variant *v, StrBuf *out)
{
    StrBuf sweeps = {.arena = out->arena};
    explain_sweeps(p, v, &sweeps);
    if (!*v->why && !sweeps.len) return;
    sb_printf(out, "\nwhy\n%s", sweeps.len ? sweeps.text : "");
    for (const char *s = v->why; *s;) {
        size_t n = strcspn(s, "\n");
        sb_printf(out, "  %.*s\n", (int)n, s);
        s += n + (s[n] == '\n');
    }
}

/* ---- hints ---------------------------------------------------------------------------------- */

static void put_place(const Plan *p, uint32_t body, IrRef ref, StrBuf *out)
{
    const IrBody *b = &p->m->bodies[body];
    if (!p->m->sources || !b->loc || b->loc[ref].begin == 0) return;
    const char *name;
    int line, col;
    source_position(p->m->sources, b->loc[ref].begin, &name, &line, &col);
    sb_printf(out, "%s:%d:%d: ", name, line, col);
}

/* x / c with a scalar c divides every element; so does s * x / c, where s / c * x would divide
 * once. */
static void hint_division(const Plan *p, uint32_t body, IrRef ref, StrBuf *out)
{
    const IrBody *b = &p->m->bodies[body];
    const Ins *ins = &b->ins[ref];
    Arena *a = out->arena;
    const char *c = expression(a, p, body, ins->arg[1]), *all = expression(a, p, body, ref);
    const Ins *left = &b->ins[ins->arg[0]];
    const char *better = arena_printf(a, "multiplying by (1 / (%s))", c);
    for (int k = 0; left->op == IR_MUL && k < 2; k++) {
        IrRef s = left->arg[k], e = left->arg[1 - k];
        if (!plan_is_element(b, s) && plan_is_element(b, e))
            better = arena_printf(a, "%s / (%s) * …", expression(a, p, body, s), c);
    }
    sb_puts(out, "  ");
    put_place(p, body, ref, out);
    sb_printf(out, "%s divides every element; %s divides once (and rounds otherwise)\n", all,
              better);
}

static void explain_hints(const Plan *p, const Variant *v, StrBuf *out)
{
    const IrBody *b = &p->m->bodies[v->body];
    StrBuf hints = {.arena = out->arena};
    for (uint32_t i = 0; i < b->n; i++) {
        const Ins *ins = &b->ins[i];
        if (p->phase[v->body][i] >= 0 && ins->op == IR_DIV && plan_is_element(b, i) &&
            !plan_is_element(b, ins->arg[1]))
            hint_division(p, v->body, i, &hints);
    }
    if (hints.len) sb_printf(out, "\nhints\n%s", hints.text);
}

/* Which tensors run this body. */
static void explain_arm(const Plan *p, StrBuf *out)
{
    const IrBody *b = p->m->select;
    for (uint32_t i = 0; b && i < b->nstores; i++) {
        StrBuf s = {.arena = out->arena};
        Writer x = {&s, p->m, b};
        put(&x, b->stores[i].value, 0, 0);
        bool arm = p->m->slots[b->stores[i].slot].kind == SLOT_ARM;
        sb_printf(out, "  %s: %s\n", arm ? "arm of a tensor" : "elements of a block", s.text);
    }
}

void plan_explain(const Plan *p, const Variant *v, StrBuf *out)
{
    explain_total(p, v, out);
    explain_arm(p, out);
    explain_state(p, v, out);
    explain_hypers(p, out);
    explain_exports(p, v, out);
    explain_hoisted(p, v, out);
    explain_steps(p, v, out);
    explain_why(p, v, out);
    explain_hints(p, v, out);
}
