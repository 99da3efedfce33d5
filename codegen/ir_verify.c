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

static bool is_rate(Rate r)
{
    return r == RATE_GLOBAL || r == RATE_GROUP || r == RATE_TENSOR || r == RATE_MATRIX ||
           r == RATE_ROW || r == RATE_COL || r == RATE_BLOCK || r == RATE_ELEMENT;
}

/* S2: rates, for kinds whose values are scalars. */
static bool scalar_slot_rate(const Check *c, const Slot *s)
{
    Rate r = s->rate;
    if (!rate_is_scalar(r)) return bad(c, "a slot of this kind is a scalar");
    switch (s->kind) {
    case SLOT_HYPER: return r != RATE_TENSOR || bad(c, "a hyperparameter has group or global rate");
    case SLOT_COUNT: return true;
    case SLOT_PROP:
        return r != RATE_GROUP || bad(c, "a slot of this kind has tensor or global rate");
    case SLOT_INPUT: return r == RATE_GLOBAL || bad(c, "an input is global");
    case SLOT_SKIP: return r == RATE_GLOBAL || bad(c, "the skip verdict is global");
    case SLOT_ARM:
    case SLOT_BLOCK: return r == RATE_TENSOR || bad(c, "a slot of this kind has tensor rate");
    default: return true; /* exports */
    }
}

/* S2: the dtypes and rates that each kind of slot may have. */
static bool slot_type(const Check *c, const Slot *s)
{
    Rate r = s->rate;
    if (!is_rate(r)) return bad(c, "rate %s", rate_name(r));
    if (s->kind == SLOT_PARAM || s->kind == SLOT_GRAD) {
        if (!rate_is_element(r)) return bad(c, "p and g vary over elements");
    } else if (s->kind == SLOT_RESULT) {
        if (rate_is_element(r)) return bad(c, "a result is coarser than elements");
    } else if (s->kind != SLOT_STATE && !scalar_slot_rate(c, s)) {
        return false;
    }
    if (s->kind == SLOT_RESULT || s->kind == SLOT_EXPORT)
        return s->dtype == DT_F64 || s->dtype == DT_BOOL ||
               bad(c, "a slot of this kind is f64 or bool");
    DType want = s->kind == SLOT_SKIP                           ? DT_BOOL
                 : rate_is_elementwise(r) && !c->m->compute_f64 ? DT_F32
                                                                : DT_F64;
    if (s->dtype == want) return true;
    if (rate_is_scalar(r)) return bad(c, "scalars of this kind are %s", dtype_name(want));
    return bad(c, "values of rate %s are %s here", rate_name(r), dtype_name(want));
}

/* S3: names, S4: storage, S5: bounds. */
static bool slot_rest(const Check *c, const Slot *s)
{
    static const char *const props[] = {"numel", "ndim",  "rows",    "cols",    "mats",
                                        "first", "gbits", "draw_lo", "draw_hi", "name_is",
                                        "name_like", "numel_all"};
    if (s->kind == SLOT_PROP) {
        size_t i = 0, n = sizeof props / sizeof *props;
        while (i < n && strcmp(props[i], s->name) != 0) i++;
        if (i == n) return bad(c, "no such property of a tensor");
        if ((i == n - 1) != (s->rate == RATE_GLOBAL))
            return bad(c, "numel_all is global, the others per tensor");
        char why[128];
        if (strcmp(s->name, "name_like") == 0 && pattern_find(s->path, NULL, why) < 0)
            return bad(c, "no pattern: %s", why);
    }
    if (s->storage != s->dtype &&
        !(s->kind == SLOT_STATE && s->storage == DT_F32 && rate_is_scalar(s->rate)))
        return bad(c, "only scalar states may be stored as f32");
    if (s->kind == SLOT_HYPER && !(s->lo <= s->hi)) return bad(c, "an empty range");
    return true;
}

static bool check_slots(Check *c)
{
    const IrModule *m = c->m;
    IrModule places = {0};
    int of_kind[SLOT_BLOCK + 1] = {0};
    if (m->nslots > IR_MAX_SLOTS) return bad(c, "more than %d slots", IR_MAX_SLOTS);
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        c->where = arena_printf(m->arena, "slot %u", i);
        if (!s->name || !ir_is_name(s->name)) return bad(c, "no name");
        c->where = arena_printf(m->arena, "slot %s", s->name);
        if (!s->path || (unsigned)s->kind > SLOT_BLOCK) return bad(c, "not initialised");
        if ((i == 0) != (s->kind == SLOT_PARAM) || (i == 1) != (s->kind == SLOT_GRAD))
            return bad(c, "p is slot 0 and g slot 1, and only they are parameter and gradient");
        if (!slot_type(c, s) || !slot_rest(c, s)) return false;
        bool once = s->kind == SLOT_SKIP || s->kind == SLOT_ARM || s->kind == SLOT_BLOCK;
        if (++of_kind[s->kind] > 1 && once) return bad(c, "a second slot of this kind");
        Slot placed = *s;
        ir_slot_place(&places, &placed);
        if (placed.level != s->level || placed.index != s->index) return bad(c, "not at its place");
    }
    c->where = "module";
    if (m->nslots < 2) return bad(c, "p and g are missing");
    if (m->nshared > m->nslots) return bad(c, "more shared slots than slots");
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

/* What `select` may look at. */
static bool is_shape_property(const Slot *s)
{
    return s->kind == SLOT_PROP && s->rate == RATE_TENSOR && strcmp(s->name, "gbits") != 0 &&
           strncmp(s->name, "draw", 4) != 0;
}

static bool check_load(const Check *c, const Ins *i)
{
    if (i->lit.slot >= c->m->nslots) return bad(c, "no slot %u", i->lit.slot);
    const Slot *s = &c->m->slots[i->lit.slot];
    if (s->kind == SLOT_RESULT || s->kind == SLOT_EXPORT || s->kind == SLOT_SKIP)
        return bad(c, "slot %s is only written in a step", s->name);
    if (c->b == c->m->select && !is_shape_property(s))
        return bad(c, "slot %s is not known before the step", s->name);
    if (i->dtype != s->dtype || i->rate != s->rate)
        return bad(c, "slot %s is %s.%s", s->name, dtype_name(s->dtype), rate_name(s->rate));
    return true;
}

/* R1: scope and arguments, R2: guard, R3: the slot written. */
static bool check_reduce(const Check *c, const Ins *i, Rate args, uint8_t *written)
{
    const char *wrong = is_rate(i->rate) ? ir_reduce_rates(i->rate, args) : "no such scope";
    if (wrong) return bad(c, "of a %s value to %s: %s", rate_name(args), rate_name(i->rate), wrong);
    if (i->arg[2] != IR_NONE) {
        const Ins *g = &c->b->ins[i->arg[2]];
        Rate most = i->rate == RATE_GLOBAL && args == RATE_GROUP ? RATE_GROUP : RATE_TENSOR;
        if (g->dtype != DT_BOOL || !rate_within(g->rate, most))
            return bad(c, "the guard is not a bool of %s rate or coarser", rate_name(most));
    }
    if (i->lit.slot >= c->m->nslots) return bad(c, "no slot %u", i->lit.slot);
    const Slot *s = &c->m->slots[i->lit.slot];
    if (s->kind != SLOT_RESULT) return bad(c, "slot %s is not for results", s->name);
    if (s->dtype != i->dtype || s->rate != i->rate)
        return bad(c, "slot %s is %s.%s", s->name, dtype_name(s->dtype), rate_name(s->rate));
    if (written[i->lit.slot]++) return bad(c, "slot %s has a result already", s->name);
    return true;
}

/* I7: values of vector rate are of the body's view. */
static bool check_view(const Check *c, Rate rate)
{
    return ir_view_has(c->b->view, rate) ||
           bad(c, "a %s value in a body of view %s", rate_name(rate), ir_views[c->b->view]);
}

static bool check_ins(const Check *c, uint32_t ref, uint8_t *written)
{
    const Ins *i = &c->b->ins[ref];
    if (!check_operands(c, ref, i)) return false;
    if (i->op == IR_CONST) return check_const(c, i);
    if (i->op == IR_LOAD) return check_load(c, i) && check_view(c, i->rate);
    DType dtype = DT_F64;
    Rate rate = RATE_GLOBAL;
    const char *wrong = ir_infer(c->m, c->b, i, &dtype, &rate);
    if (wrong) return bad(c, "%s", wrong);
    if (i->op == IR_SELECT && dtype == DT_BOOL) return bad(c, "select is of numbers");
    if (i->dtype != dtype)
        return bad(c, "gives %s, not %s", dtype_name(dtype), dtype_name((DType)i->dtype));
    if (c->b == c->m->select && i->op >= OP_COUNT_)
        return bad(c, "select is made of constants, properties and map ops");
    if (ir_is_reduce(i)) return check_reduce(c, i, rate, written) && check_view(c, i->rate);
    if (i->rate != rate) return bad(c, "has rate %s, not %s", rate_name(rate), rate_name(i->rate));
    return check_view(c, rate);
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
    bool select = c->b == c->m->select,
         of_select = slot->kind == SLOT_ARM || slot->kind == SLOT_BLOCK;
    if (slot->kind == SLOT_GRAD || slot->kind == SLOT_HYPER || slot->kind == SLOT_PROP ||
        slot->kind == SLOT_RESULT || slot->kind == SLOT_INPUT || select != of_select)
        return bad(c, "a slot of this kind is not stored%s", select || of_select ? " here" : "");
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
    if (!check_store_types(c, s, slot) || !check_view(c, slot->rate)) return false;
    if (s->guard != IR_NONE) { /* T3 */
        if (c->b == c->m->select) return bad(c, "stores of select have no guard");
        if (s->guard >= c->b->n) return bad(c, "no guard %u", s->guard);
        const Ins *g = &c->b->ins[s->guard];
        Rate most = rate_is_scalar(slot->rate) ? slot->rate : RATE_TENSOR;
        if (g->dtype != DT_BOOL || !rate_within(g->rate, most))
            return bad(c, "the guard is not a bool of %s rate or coarser", rate_name(most));
    }
    if (c->b->noskip == IR_NONE || slot->kind == SLOT_SKIP || slot->kind == SLOT_EXPORT)
        return true;
    const Ins *n = &c->b->ins[c->b->noskip];
    if (n->op == IR_CONST && n->lit.num != 0) return true;
    bool never = s->guard != IR_NONE && c->b->ins[s->guard].op == IR_CONST &&
                 c->b->ins[s->guard].lit.num == 0;
    return never || is_conjunct(c, s->guard, c->b->noskip, mark) ||
           bad(c, "the guard lacks noskip"); /* T4 */
}

static bool check_body(Check *c)
{
    const IrModule *m = c->m;
    const IrBody *b = c->b;
    bool select = b == m->select;
    uint32_t number = select ? 0 : (uint32_t)(b - m->bodies);
    const char *name = select ? arena_printf(m->arena, "select %s", b->rule)
                       : number
                           ? arena_printf(m->arena, "body %s %s (%u)", b->rule, b->entry, number)
                           : arena_printf(m->arena, "body %s %s", b->rule, b->entry);
    c->where = name;
    if (!ir_is_name(b->rule) || !ir_is_name(b->entry)) return bad(c, "no name");
    if (b->n > (select ? (uint32_t)IR_MAX_SELECT : (uint32_t)IR_MAX_INS) ||
        b->nstores > IR_MAX_SLOTS)
        return bad(c, "too large");
    if ((unsigned)b->view >= IR_VIEWS || (select && b->view != VIEW_FLAT))
        return bad(c, "no such view");
    if (!select && strcmp(b->entry, m->bodies[0].entry) != 0)
        return bad(c, "bodies of one module have one entry"); /* M1 */
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
        if (select) return bad(c, "select skips nothing");
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

/* ---- bodies together ------------------------------------------------------------------------- */

static bool select_stores(const IrModule *m, SlotKind kind)
{
    for (uint32_t i = 0; m->select && i < m->select->nstores; i++)
        if (m->slots[m->select->stores[i].slot].kind == kind) return true;
    return false;
}

/* M2: tensors know their body and their blocks. */
static bool check_select(Check *c)
{
    const IrModule *m = c->m;
    bool blocks = false;
    for (uint32_t i = 0; i < m->nbodies; i++) blocks |= m->bodies[i].view == VIEW_BLOCK;
    c->where = "module";
    if (m->nbodies > 1 && !select_stores(m, SLOT_ARM))
        return bad(c, "several bodies, and no select that stores which");
    if (blocks && !select_stores(m, SLOT_BLOCK))
        return bad(c, "a body of view block, and no select that stores their size");
    return true;
}

/* R4: those that feed one slot from several bodies are the same reduction, of elements and vectors,
 * or of values of one scalar rate. */
static bool check_feeders(Check *c)
{
    const IrModule *m = c->m;
    const Ins **first = ARENA_ARRAY(m->arena, const Ins *, m->nslots + 1);
    Rate *args = ARENA_ARRAY(m->arena, Rate, m->nslots + 1);
    if (!first || !args) return bad(c, "out of memory");
    for (uint32_t k = 0; k < m->nbodies; k++) {
        const IrBody *b = &m->bodies[k];
        for (uint32_t r = 0; r < b->n; r++) {
            const Ins *i = &b->ins[r];
            if (!ir_is_reduce(i)) continue;
            uint32_t s = i->lit.slot;
            Rate rate = ir_args_rate(b, i);
            if (!rate_is_scalar(rate)) rate = RATE_ELEMENT;
            if (!first[s]) {
                first[s] = i;
                args[s] = rate;
            } else if (first[s]->op != i->op || args[s] != rate) {
                c->where = arena_printf(m->arena, "slot %s", m->slots[s].name);
                return bad(c, "bodies feed it with different reductions");
            }
        }
    }
    return true;
}

/* M3: the first body that runs stores what tensors share, for all of them: what another body alone
 * stores would be lost. */
static bool check_shared_stores(Check *c)
{
    const IrModule *m = c->m;
    uint32_t *stores = ARENA_ARRAY(m->arena, uint32_t, m->nslots);
    if (!stores) return bad(c, "out of memory");
    for (uint32_t k = 0; k < m->nbodies; k++)
        for (uint32_t i = 0; i < m->bodies[k].nstores; i++) stores[m->bodies[k].stores[i].slot]++;
    for (uint32_t s = 0; s < m->nslots; s++) {
        c->where = arena_printf(m->arena, "slot %s", m->slots[s].name);
        if (rate_within(m->slots[s].rate, RATE_GROUP) && stores[s] % m->nbodies)
            return bad(c, "some bodies store it, some do not");
    }
    return true;
}

typedef struct Ready {
    const IrModule *m;
    bool **done;     /* per body and instruction */
    uint32_t *waits; /* per slot: reductions to all or to groups that are not ready */
    bool **arrived;  /* per body and instruction: counted in waits */
} Ready;

/* Whether the operands of an instruction are done. */
static bool operands_done(const Ready *y, uint32_t body, const Ins *i)
{
    for (int k = 0; k < 3; k++)
        if (i->arg[k] != IR_NONE && !y->done[body][i->arg[k]]) return false;
    return true;
}

/* Does what can be done in one body; true if anything was. */
static bool advance(Ready *y, uint32_t body, uint32_t *left)
{
    const IrBody *b = &y->m->bodies[body];
    bool moved = false;
    for (uint32_t r = 0; r < b->n; r++) {
        const Ins *i = &b->ins[r];
        if (y->done[body][r] || !operands_done(y, body, i)) continue;
        bool waits = ir_is_joint(i);
        if (waits && !y->arrived[body][r]) {
            y->arrived[body][r] = moved = true;
            y->waits[i->lit.slot]--;
        }
        if (waits && y->waits[i->lit.slot] > 0) continue;
        y->done[body][r] = moved = true;
        --*left;
    }
    return moved;
}

/* R5: no result that several bodies feed waits for itself. */
static bool check_order(Check *c)
{
    const IrModule *m = c->m;
    if (m->nbodies < 2) return true;
    Ready y = {.m = m};
    uint32_t left = 0;
    y.done = ARENA_ARRAY(m->arena, bool *, m->nbodies);
    y.arrived = ARENA_ARRAY(m->arena, bool *, m->nbodies);
    y.waits = ARENA_ARRAY(m->arena, uint32_t, m->nslots);
    if (!y.done || !y.arrived || !y.waits) return bad(c, "out of memory");
    for (uint32_t k = 0; k < m->nbodies; k++) {
        const IrBody *b = &m->bodies[k];
        y.done[k] = ARENA_ARRAY(m->arena, bool, b->n + 1);
        y.arrived[k] = ARENA_ARRAY(m->arena, bool, b->n + 1);
        if (!y.done[k] || !y.arrived[k]) return bad(c, "out of memory");
        left += b->n;
        for (uint32_t r = 0; r < b->n; r++) {
            const Ins *i = &b->ins[r];
            if (ir_is_joint(i)) y.waits[i->lit.slot]++;
        }
    }
    for (bool moved = true; moved && left;) {
        moved = false;
        for (uint32_t k = 0; k < m->nbodies; k++) moved |= advance(&y, k, &left);
    }
    c->where = "module";
    return left == 0 || bad(c, "results of several bodies wait for each other");
}

bool ir_verify(const IrModule *m, StrBuf *why)
{
    Check c = {.m = m, .why = why, .where = "module"};
    if (!m->name || !ir_is_name(m->name)) return bad(&c, "no name");
    if (!check_slots(&c)) return false;
    for (uint32_t i = 0; i < m->nbodies + (m->select != NULL); i++) {
        c.b = i < m->nbodies ? &m->bodies[i] : m->select;
        if (!check_body(&c)) return false;
    }
    if (m->nbodies == 0) {
        c.where = "module";
        return bad(&c, "no body");
    }
    return check_select(&c) && check_feeders(&c) && check_shared_stores(&c) && check_order(&c);
}
