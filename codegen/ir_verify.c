/* ir_verify.c - every rule of docs/ir.md, checked: what passes here is what plans, executors and
 * emitters may rely on.
 *
 * Requires what ir_parse_unverified and the builder ensure of memory: arrays of the sizes that are
 * given. Ensures: on false, `why` has one line that names the body and the instruction. Rules are
 * numbered as in docs/ir.md.
 *
 *     %3:f32.element = mul %1 %0, %1 f64.group
 *     ->  "body sgd step: %3: f64 meets elements without round"
 */
#include "ir_impl.h"
#include "plan.h"
#include <stdio.h>
#include <stdarg.h>
#include <string.h>

typedef struct Check {
    const IrModule *m;
    const IrBody *b;
    StrBuf *why;
    const char *where; /* "slot m", "body lamb step: %12" */
} Check;

static bool bad(const Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool bad(const Check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_vprintf(c->m->arena, fmt, ap);
    va_end(ap);
    if (c->why) sb_printf(c->why, "%s: %s", c->where, text ? text : "out of memory");
    return false;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool is_scalar_rate(Rate r)
{
    return r == RATE_GLOBAL || r == RATE_GROUP || r == RATE_TENSOR;
}

/* S2: the dtypes and rates that each kind of slot may have. */
static bool slot_type(const Check *c, const Slot *s)
{
    Rate r = s->rate;
    DType element = c->m->compute_f64 ? DT_F64 : DT_F32;
    if (r == RATE_ELEMENT) {
        if (s->kind != SLOT_PARAM && s->kind != SLOT_GRAD && s->kind != SLOT_STATE)
            return bad(c, "a slot of this kind is a scalar");
        return s->dtype == element || bad(c, "elements are %s here", dtype_name(element));
    }
    if (!is_scalar_rate(r)) return bad(c, "rate %s", rate_name(r));
    bool truth = s->kind == SLOT_SKIP ||
                 ((s->kind == SLOT_RESULT || s->kind == SLOT_EXPORT) && s->dtype == DT_BOOL);
    if (s->dtype != (truth ? DT_BOOL : DT_F64))
        return bad(c, "scalars of this kind are %s", truth ? "bool" : "f64");
    switch (s->kind) {
    case SLOT_PARAM:
    case SLOT_GRAD: return bad(c, "p and g vary over elements");
    case SLOT_HYPER: return r != RATE_TENSOR || bad(c, "a hyperparameter has group or global rate");
    case SLOT_COUNT:
    case SLOT_PROP:
    case SLOT_RESULT:
        return r != RATE_GROUP || bad(c, "a slot of this kind has tensor or global rate");
    case SLOT_SKIP: return r == RATE_GLOBAL || bad(c, "the skip verdict is global");
    default: return true;
    }
}

/* S3: names, S4: storage, S5: bounds. */
static bool slot_rest(const Check *c, const Slot *s)
{
    static const char *const props[] = {"numel", "ndim", "rows", "cols", "gbits", "numel_all"};
    if (s->kind == SLOT_PROP) {
        size_t i = 0, n = sizeof props / sizeof *props;
        while (i < n && strcmp(props[i], s->name) != 0) i++;
        if (i == n) return bad(c, "no such property of a tensor");
        if ((i == n - 1) != (s->rate == RATE_GLOBAL))
            return bad(c, "numel_all is global, the others per tensor");
    }
    if (s->storage != s->dtype &&
        !(s->kind == SLOT_STATE && s->storage == DT_F32 && is_scalar_rate(s->rate)))
        return bad(c, "only scalar states may be stored as f32");
    if (s->kind == SLOT_HYPER && !(s->lo <= s->hi)) return bad(c, "an empty range");
    return true;
}

static bool check_slots(Check *c)
{
    const IrModule *m = c->m;
    IrModule places = {0};
    int skips = 0;
    if (m->nslots > IR_MAX_SLOTS) return bad(c, "more than %d slots", IR_MAX_SLOTS);
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        c->where = arena_printf(m->arena, "slot %u", i);
        if (!s->name || !ir_is_name(s->name)) return bad(c, "no name");
        c->where = arena_printf(m->arena, "slot %s", s->name);
        if (!s->path || (unsigned)s->kind > SLOT_SKIP) return bad(c, "not initialised");
        if ((i == 0) != (s->kind == SLOT_PARAM) || (i == 1) != (s->kind == SLOT_GRAD))
            return bad(c, "p is slot 0 and g slot 1, and only they are parameter and gradient");
        if (!slot_type(c, s) || !slot_rest(c, s)) return false;
        skips += s->kind == SLOT_SKIP;
        if (skips > 1) return bad(c, "a second skip verdict");
        Slot placed = *s;
        ir_slot_place(&places, &placed);
        if (placed.level != s->level || placed.index != s->index) return bad(c, "not at its place");
    }
    c->where = "module";
    if (m->nslots < 2) return bad(c, "p and g are missing");
    if (places.nelem != m->nelem || memcmp(places.nlevel, m->nlevel, sizeof places.nlevel) != 0)
        return bad(c, "slots are counted wrongly");
    return true;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* I1: operands. */
static bool check_operands(const Check *c, uint32_t ref, const Ins *i)
{
    if (i->op >= IR_OP_END) return bad(c, "unknown op %d", i->op);
    int n = ir_arity(i);
    for (int k = 0; k < 3; k++) {
        bool optional = ir_is_reduce(i) && k == 2;
        if (k >= n && !optional && i->arg[k] != IR_NONE) return bad(c, "an operand too many");
        if (k < n && i->arg[k] >= ref) return bad(c, "operand %d is not defined before it", k + 1);
        if (optional && i->arg[k] != IR_NONE && i->arg[k] >= ref)
            return bad(c, "the guard is not defined before it");
    }
    return true;
}

static bool check_const(const Check *c, const Ins *i)
{
    double v = i->lit.num;
    if (i->rate != RATE_GLOBAL) return bad(c, "a constant is global");
    if (i->dtype == DT_BOOL) return v == 0 || v == 1 || bad(c, "a truth value is 0 or 1");
    if (i->dtype == DT_F64) return true;
    if (i->dtype != DT_F32) return bad(c, "a constant is f64, f32 or bool");
    if (c->m->compute_f64) return bad(c, "nothing is f32 under compute f64");
    return v != v || (double)(float)v == v || bad(c, "not a value of f32");
}

static bool check_load(const Check *c, const Ins *i)
{
    if (i->lit.slot >= c->m->nslots) return bad(c, "no slot %u", i->lit.slot);
    const Slot *s = &c->m->slots[i->lit.slot];
    if (s->kind == SLOT_RESULT || s->kind == SLOT_EXPORT || s->kind == SLOT_SKIP)
        return bad(c, "slot %s is only written in a step", s->name);
    if (i->dtype != s->dtype || i->rate != s->rate)
        return bad(c, "slot %s is %s.%s", s->name, dtype_name(s->dtype), rate_name(s->rate));
    return true;
}

/* R1: scope and arguments, R2: guard, R3: the slot written. */
static bool check_reduce(const Check *c, const Ins *i, Rate args, uint8_t *written)
{
    if (i->rate != RATE_GLOBAL && i->rate != RATE_TENSOR)
        return bad(c, "the scope is [all] or [tensor]");
    if (i->rate == RATE_GLOBAL && !(args & AXIS_TENSOR))
        return bad(c, "[all] of a %s value: nothing to reduce", rate_name(args));
    if (i->arg[2] != IR_NONE) {
        const Ins *g = &c->b->ins[i->arg[2]];
        if (g->dtype != DT_BOOL || !rate_within(g->rate, RATE_TENSOR))
            return bad(c, "the guard is not a bool of tensor rate or coarser");
    }
    if (i->lit.slot >= c->m->nslots) return bad(c, "no slot %u", i->lit.slot);
    const Slot *s = &c->m->slots[i->lit.slot];
    if (s->kind != SLOT_RESULT) return bad(c, "slot %s is not for results", s->name);
    if (s->dtype != i->dtype || s->rate != i->rate)
        return bad(c, "slot %s is %s.%s", s->name, dtype_name(s->dtype), rate_name(s->rate));
    if (written[i->lit.slot]++) return bad(c, "slot %s has a result already", s->name);
    return true;
}

static bool check_ins(const Check *c, uint32_t ref, uint8_t *written)
{
    const Ins *i = &c->b->ins[ref];
    if (!check_operands(c, ref, i)) return false;
    if (i->op == IR_CONST) return check_const(c, i);
    if (i->op == IR_LOAD) return check_load(c, i);
    DType dtype = DT_F64;
    Rate rate = RATE_GLOBAL;
    const char *wrong = ir_infer(c->m, c->b, i, &dtype, &rate);
    if (wrong) return bad(c, "%s", wrong);
    if (i->op == IR_SELECT && dtype == DT_BOOL) return bad(c, "select is of numbers");
    if (i->dtype != dtype)
        return bad(c, "gives %s, not %s", dtype_name(dtype), dtype_name((DType)i->dtype));
    if (ir_is_reduce(i)) return check_reduce(c, i, rate, written);
    return i->rate == rate || bad(c, "has rate %s, not %s", rate_name(rate), rate_name(i->rate));
}

/* ---- stores ---------------------------------------------------------------------------------- */

/* Whether `guard` is an `and` of parts, `part` one of them. */
static bool is_conjunct(const Check *c, IrRef guard, IrRef part, uint8_t *mark)
{
    if (guard == IR_NONE) return false;
    memset(mark, 0, c->b->n);
    mark[guard] = 1;
    for (IrRef r = guard + 1; r-- > part;) {
        const Ins *i = &c->b->ins[r];
        if (!mark[r] || i->op != IR_AND) continue;
        mark[i->arg[0]] = mark[i->arg[1]] = 1;
    }
    return guard >= part && mark[part];
}

/* T1: what is stored where. */
static bool check_store_types(const Check *c, const IrStore *s, const Slot *slot)
{
    const Ins *v = &c->b->ins[s->value];
    if (slot->kind == SLOT_GRAD || slot->kind == SLOT_HYPER || slot->kind == SLOT_PROP ||
        slot->kind == SLOT_RESULT)
        return bad(c, "a slot of this kind is not stored");
    bool truth = slot->kind == SLOT_EXPORT && v->dtype == DT_BOOL; /* as 0 or 1 */
    if (v->dtype != slot->dtype && !truth)
        return bad(c, "a value of %s", dtype_name((DType)v->dtype));
    if (!rate_within(v->rate, slot->rate)) return bad(c, "a value of rate %s", rate_name(v->rate));
    return true;
}

static bool check_store(const Check *c, const IrStore *s, uint8_t *stored, uint8_t *mark)
{
    const Slot *slot = &c->m->slots[s->slot];
    if (stored[s->slot]++) return bad(c, "a second store");
    if (s->value >= c->b->n) return bad(c, "no value %u", s->value);
    if (!check_store_types(c, s, slot)) return false;
    if (s->guard != IR_NONE) { /* T3 */
        if (s->guard >= c->b->n) return bad(c, "no guard %u", s->guard);
        const Ins *g = &c->b->ins[s->guard];
        Rate most = rate_is_elementwise(slot->rate) ? RATE_TENSOR : slot->rate;
        if (g->dtype != DT_BOOL || !rate_within(g->rate, most))
            return bad(c, "the guard is not a bool of %s rate or coarser", rate_name(most));
    }
    if (c->b->noskip == IR_NONE || slot->kind == SLOT_SKIP || slot->kind == SLOT_EXPORT)
        return true;
    const Ins *n = &c->b->ins[c->b->noskip];
    if (n->op == IR_CONST && n->lit.num != 0) return true;
    return is_conjunct(c, s->guard, c->b->noskip, mark) ||
           bad(c, "the guard lacks noskip"); /* T4 */
}

static bool check_body(Check *c)
{
    const IrModule *m = c->m;
    const IrBody *b = c->b;
    const char *name = arena_printf(m->arena, "body %s %s", b->rule, b->entry);
    c->where = name;
    if (!ir_is_name(b->rule) || !ir_is_name(b->entry)) return bad(c, "no name");
    if (b->n > IR_MAX_INS || b->nstores > IR_MAX_SLOTS) return bad(c, "too large");
    uint8_t *written = arena_alloc(m->arena, m->nslots), *stored = arena_alloc(m->arena, m->nslots);
    uint8_t *mark = arena_alloc(m->arena, b->n + 1);
    if (!written || !stored || !mark) return bad(c, "out of memory");
    for (uint32_t i = 0; i < b->n; i++) {
        char at[320];
        snprintf(at, sizeof at, "%.290s: %%%u", name, i);
        c->where = at;
        if (!check_ins(c, i, written)) return false;
    }
    c->where = name;
    if (b->noskip != IR_NONE) { /* T5 */
        if (b->noskip >= b->n) return bad(c, "noskip is no value");
        const Ins *n = &b->ins[b->noskip];
        if (n->dtype != DT_BOOL || n->rate != RATE_GLOBAL)
            return bad(c, "noskip is not bool.global");
    }
    for (uint32_t i = 0; i < b->nstores; i++) {
        if (b->stores[i].slot >= m->nslots) return bad(c, "a store to no slot");
        c->where = arena_printf(m->arena, "%s: store %s", name, m->slots[b->stores[i].slot].name);
        if (!check_store(c, &b->stores[i], stored, mark)) return false;
    }
    return true;
}

bool ir_verify(const IrModule *m, StrBuf *why)
{
    Check c = {.m = m, .why = why, .where = "module"};
    if (!m->name || !ir_is_name(m->name)) return bad(&c, "no name");
    if (!check_slots(&c)) return false;
    for (uint32_t i = 0; i < m->nbodies; i++) {
        c.b = &m->bodies[i];
        if (!check_body(&c)) return false;
    }
    return true;
}
