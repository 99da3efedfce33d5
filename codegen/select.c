/* select.c - covers a kernel's values with tile operators: the largest first, from the last value
 * to the first.
 *
 * Requires: a kernel of a plan that computes in f32. Ensures: every stored or reduced value is made
 * by a call or lies in memory, and the values that a call reads are made by earlier ones; each call
 * computes exactly what its instructions say (a pattern matches operation by operation; only
 * commutative ones either way round).
 *
 *     store m %18, %18 = add %14 %17, %14 = mul %12 %13, %17 = mul %16 %10    ->    t_axpby -> %18
 */
#include "select_internal.h"
#include <string.h>

typedef struct Match {
    const TileRow *row;
    IrRef arg[TILE_MAX_PARAMS];
    IrRef inside[24]; /* covered, further outputs not among them */
    uint32_t ninside;
} Match;

TileCall *select_call(Select *s, TileCallKind kind)
{
    TileCall *c = ARENA_NEW(s->arena, TileCall);
    *c = (TileCall){.kind = kind,
                    .out = {IR_NONE, IR_NONE, IR_NONE, IR_NONE},
                    .guard = IR_NONE,
                    .cond = IR_NONE};
    for (int i = 0; i < TILE_MAX_PARAMS; i++) c->args[i] = IR_NONE;
    ARENA_PUSH(s->arena, s->calls, s->ncalls, s->calls_cap, c);
    return c;
}

static bool is_tile(const Select *s, IrRef ref)
{
    return tile_is(s->b, ref);
}

/* Whether an instruction can be computed where a pattern wants it. */
static bool is_free(const Select *s, IrRef ref)
{
    return s->val[ref].how == 1 + VAL_COMPUTE && !s->val[ref].made_by && !s->val[ref].covered;
}

static bool match_leaf(const Select *s, Match *m, const Pat *pat, IrRef ref)
{
    const Ins *ins = &s->b->ins[ref];
    char kind = m->row->kind[pat->param];
    bool tile = kind == 'V' || kind == 'B', boolean = kind == 'B' || kind == 'C';
    if (is_tile(s, ref) != tile || (ins->dtype == DT_BOOL) != boolean) return false;
    if (m->arg[pat->param] == IR_NONE) m->arg[pat->param] = ref;
    return m->arg[pat->param] == ref;
}

static bool match(const Select *s, Match *m, const Pat *pat, IrRef ref, bool root);

static bool is_commutative(uint8_t op)
{
    return op == OP_ADD || op == OP_MUL || op == OP_EQ || op == OP_NE || op == OP_AND ||
           op == OP_OR;
}

static bool match_kids(const Select *s, Match *m, const Pat *pat, const Ins *ins)
{
    if (pat->kind == PAT_SQUARE)
        return ins->arg[0] == ins->arg[1] && match(s, m, pat->kid[0], ins->arg[0], false);
    Match before = *m;
    bool same = true;
    for (int k = 0; k < pat->nkids && same; k++)
        same = match(s, m, pat->kid[k], ins->arg[k], false);
    if (same || !is_commutative(pat->op)) return same;
    *m = before;
    return match(s, m, pat->kid[0], ins->arg[1], false) &&
           match(s, m, pat->kid[1], ins->arg[0], false);
}

static bool is_inside(const Match *m, IrRef ref)
{
    for (uint32_t i = 0; i < m->ninside; i++) {
        if (m->inside[i] == ref) return true;
    }
    return false;
}

static bool is_output(const Match *m, IrRef ref)
{
    for (int i = 0; i < m->row->nparams; i++) {
        if (m->row->kind[i] == 'O' && m->arg[i] == ref) return true;
    }
    return false;
}

static bool match(const Select *s, Match *m, const Pat *pat, IrRef ref, bool root)
{
    if (pat->kind == PAT_LEAF) return match_leaf(s, m, pat, ref);
    const Ins *ins = &s->b->ins[ref];
    if (ins->op != pat->op || !is_tile(s, ref) || !is_free(s, ref)) return false;
    if (!match_kids(s, m, pat, ins)) return false;
    if (pat->output) {
        for (int i = 0; i < m->row->nparams; i++) {
            if (m->row->kind[i] == 'O' && m->row->index[i] == pat->output) m->arg[i] = ref;
        }
    } else if (!root && !is_inside(m, ref)) {
        m->inside[m->ninside++] = ref;
    }
    return true;
}

static bool is_read_by(const Ins *ins, IrRef ref)
{
    for (int k = 0; k < ir_arity(ins); k++) {
        if (ins->arg[k] == ref) return true;
    }
    return false;
}

/* Whether anything but the match reads a value inside it. root: an instruction, reductions
 * included. */
static bool is_read_elsewhere(const Select *s, const Match *m, IrRef root, IrRef ref)
{
    if (s->val[ref].needed) return true;
    for (int i = 0; i < m->row->nparams; i++) {
        if (m->row->kind[i] != 'O' && m->arg[i] == ref) return true;
    }
    for (uint32_t i = 0; i < s->k->nvals; i++) {
        IrRef user = s->k->vals[i].ref;
        bool mine = user == root || is_inside(m, user) || is_output(m, user);
        if (!mine && s->val[user].how == 1 + VAL_COMPUTE && is_read_by(&s->b->ins[user], ref))
            return true;
    }
    for (uint32_t i = 0; i < s->k->nreduces; i++) {
        IrRef user = s->p->reduces[s->k->reduces[i]].ins;
        if (user != root && is_read_by(&s->b->ins[user], ref)) return true;
    }
    return false;
}

/* Whether what is inside is read there only, or cheap enough to be computed by other readers, too.
 */
static bool is_closed(const Select *s, const Match *m, IrRef root)
{
    for (uint32_t i = 0; i < m->ninside; i++) {
        if (!s->val[m->inside[i]].cheap && is_read_elsewhere(s, m, root, m->inside[i]))
            return false;
    }
    return true;
}

/* ---- several outputs: no call may wait for itself -------------------------------------------- */

static bool depends(const Select *s, IrRef from, IrRef on, uint8_t *seen);

static bool call_depends(const Select *s, const TileCall *c, IrRef on, uint8_t *seen)
{
    for (int i = 0; i < c->nargs; i++) {
        bool output = c->kind == CALL_OP && tile_rows()[c->op].kind[i] == 'O';
        if (!output && c->args[i] != IR_NONE && depends(s, c->args[i], on, seen)) return true;
    }
    return c->otherwise && call_depends(s, c->otherwise, on, seen);
}

/* Whether `from` cannot be had before `on` is. */
static bool depends(const Select *s, IrRef from, IrRef on, uint8_t *seen)
{
    const SelectVal *v = &s->val[from];
    if (from == on) return true;
    if (seen[from] || v->how != 1 + VAL_COMPUTE) return false;
    seen[from] = 1;
    if (v->made_by) return call_depends(s, v->made_by, on, seen);
    for (int k = 0; k < ir_arity(&s->b->ins[from]); k++) {
        if (depends(s, s->b->ins[from].arg[k], on, seen)) return true;
    }
    return false;
}

static bool waits_for_itself(const Select *s, const Match *m, IrRef root)
{
    for (int o = 0; o < m->row->nparams + 1; o++) {
        if (o < m->row->nparams && m->row->kind[o] != 'O') continue;
        IrRef output = o < m->row->nparams ? m->arg[o] : root;
        uint8_t *seen = ARENA_ARRAY(s->arena, uint8_t, s->b->n);
        for (int i = 0; i < m->row->nparams; i++) {
            if (m->row->kind[i] != 'O' && depends(s, m->arg[i], output, seen)) return true;
        }
    }
    return false;
}

/* The other value of a WITH is any that matches and is wanted for itself. */
static bool match_with(const Select *s, Match *m, const Pat *pat, IrRef ref)
{
    bool nested = pat->kid[1]->kind == PAT_WITH;
    if (!(nested ? match_with(s, m, pat->kid[1], ref) : match(s, m, pat->kid[1], ref, true)))
        return false;
    for (IrRef side = s->b->n; side-- > 0;) {
        Match trial = *m;
        bool other = side != ref && s->val[side].how && !is_inside(m, side) && !is_output(m, side);
        if (other && match(s, &trial, pat->kid[0], side, true)) {
            *m = trial;
            return true;
        }
    }
    return false;
}

static bool match_row(const Select *s, Match *m, int op, IrRef ref, bool alone)
{
    *m = (Match){.row = &tile_rows()[op]};
    for (int i = 0; i < TILE_MAX_PARAMS; i++) m->arg[i] = IR_NONE;
    if (m->row->several && alone) return false;
    const Pat *pat = m->row->pattern;
    bool same = pat->kind == PAT_WITH ? match_with(s, m, pat, ref) : match(s, m, pat, ref, true);
    return same && is_closed(s, m, ref) && !(m->row->several && waits_for_itself(s, m, ref));
}

/* ---- covering -------------------------------------------------------------------------------- */

static void read_by_call(Select *s, IrRef ref)
{
    if (is_tile(s, ref))
        s->val[ref].needed = true;
    else
        s->out->scalar[ref] = true;
}

static void fill_call(Select *s, TileCall *c, int op, const Match *m, IrRef root)
{
    c->op = (int16_t)op;
    c->nargs = m->row->nparams;
    for (uint32_t i = 0; i < m->ninside; i++) {
        SelectVal *v = &s->val[m->inside[i]];
        v->covered |= !v->cheap; /* what is cheap may be inside several operators */
        v->again |= is_read_elsewhere(s, m, root, m->inside[i]);
    }
    for (int i = 0; i < m->row->nparams; i++) {
        c->args[i] = m->arg[i];
        if (m->row->kind[i] == 'O') {
            c->out[m->row->index[i]] = m->arg[i];
            s->val[m->arg[i]].made_by = c;
        } else {
            read_by_call(s, m->arg[i]);
        }
    }
}

static TileCall *cover_draw(Select *s, IrRef ref)
{
    const Ins *ins = &s->b->ins[ref];
    TileCall *c = select_call(s, CALL_DRAW);
    c->op = ins->op == IR_NORMAL ? TILE_NORMAL : ins->op == IR_UNIFORM ? TILE_UNIFORM : TILE_RADEMACHER;
    c->elem = ins->lit.slot;
    c->nargs = 2;
    for (int i = 0; i < 2; i++) {
        c->args[i] = ins->arg[i];
        read_by_call(s, ins->arg[i]);
    }
    c->out[0] = ref;
    s->val[ref].made_by = c;
    return c;
}

/* The call that makes `ref`; every operation has a basic row for all its operand kinds. `out`:
 * whose value it is to be. */
static TileCall *cover(Select *s, IrRef ref, IrRef out, bool alone)
{
    if (ir_is_draw(&s->b->ins[ref])) return cover_draw(s, ref);
    TileCall *c = select_call(s, CALL_OP);
    const int16_t *list = tile_rows_of((Op)s->b->ins[ref].op);
    Match m;
    for (int i = 0; list[i] >= 0; i++) {
        if (match_row(s, &m, list[i], ref, alone)) {
            c->out[0] = out;
            s->val[out].made_by = c;
            fill_call(s, c, list[i], &m, ref);
            return c;
        }
    }
    return c;
}

/* An arm of a choice that nothing else reads is computed only when it is chosen. */
static bool is_lazy(const Select *s, IrRef arm)
{
    const Ins *ins = &s->b->ins[arm];
    bool once = s->val[arm].uses == 1 && !s->val[arm].needed;
    return is_tile(s, arm) && is_free(s, arm) && once && !ir_is_draw(ins) &&
           !(ins->op == IR_SELECT && !is_tile(s, ins->arg[0]));
}

static void move_into(Select *s, TileCall *c, IrRef ref, IrRef out)
{
    bool boolean = s->b->ins[ref].dtype == DT_BOOL;
    c->op = is_tile(s, ref) ? (boolean ? TILE_move_b : TILE_move_v)
                            : (boolean ? TILE_fill_c : TILE_fill_s);
    c->nargs = 1;
    c->args[0] = ref;
    c->out[0] = out;
    read_by_call(s, ref);
}

/* The call of one arm, out of the list: its place is the choice's. */
static TileCall *cover_arm(Select *s, IrRef arm, IrRef out)
{
    TileCall *c;
    if (is_lazy(s, arm)) {
        c = cover(s, arm, out, true);
        s->val[arm].covered = true;
    } else {
        c = select_call(s, CALL_OP);
        move_into(s, c, arm, out);
    }
    s->ncalls--; /* both push one call */
    return c;
}

static bool is_stored_plainly(const Select *s, IrRef ref)
{
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        if (s->k->stores[i].value == ref && select_storage(s, s->k->stores[i].elem) == DT_F32)
            return true;
    }
    return false;
}

/* select by a scalar: a choice of pointers, or of what is computed. */
static void cover_choice(Select *s, IrRef ref)
{
    const Ins *ins = &s->b->ins[ref];
    if (ins->arg[1] == ins->arg[2]) { /* a scalar that was chosen for all tiles of this version */
        move_into(s, select_call(s, CALL_OP), ins->arg[1], ref);
        s->val[ref].made_by = s->calls[s->ncalls - 1];
        return;
    }
    s->out->scalar[ins->arg[0]] = true;
    if (is_lazy(s, ins->arg[1]) || is_lazy(s, ins->arg[2]) || is_stored_plainly(s, ref)) {
        TileCall *yes = cover_arm(s, ins->arg[1], ref);
        TileCall *no = cover_arm(s, ins->arg[2], ref);
        yes->cond = ins->arg[0];
        yes->otherwise = no;
        ARENA_PUSH(s->arena, s->calls, s->ncalls, s->calls_cap, yes);
        s->val[ref].made_by = yes;
        return;
    }
    TileCall *c = select_call(s, CALL_CHOICE);
    c->cond = ins->arg[0];
    c->nargs = 2;
    c->out[0] = ref;
    for (int i = 0; i < 2; i++) {
        c->args[i] = ins->arg[i + 1];
        read_by_call(s, ins->arg[i + 1]);
    }
    s->val[ref].made_by = c;
}

static void cover_reduce(Select *s, uint32_t number)
{
    const PlanReduce *r = &s->p->reduces[s->k->reduces[number]];
    const Ins *ins = &s->b->ins[r->ins];
    const int16_t *list = tile_rows_of_reduce((ReduceOp)(ins->op - IR_RED));
    TileCall *c = select_call(s, CALL_REDUCE);
    c->reduce = number;
    if (ins->arg[2] != IR_NONE) s->out->scalar[ins->arg[2]] = true;
    for (int i = 0; list[i] >= 0; i++) {
        const TileRow *row = &tile_rows()[list[i]];
        Match m = {.row = row};
        for (int k = 0; k < TILE_MAX_PARAMS; k++) m.arg[k] = IR_NONE;
        if (match(s, &m, row->pattern, ins->arg[0], false) &&
            (!row->second || match(s, &m, row->second, ins->arg[1], false)) &&
            is_closed(s, &m, r->ins)) {
            fill_call(s, c, list[i], &m, r->ins);
            return;
        }
    }
}

/* ---- versions: what a scalar chooses is chosen once per row ---------------------------------- */

static bool is_choice(const IrBody *b, IrRef ref)
{
    const Ins *ins = &b->ins[ref];
    return ins->op == IR_SELECT && rate_is_elementwise(ins->rate) && !tile_is(b, ins->arg[0]);
}

uint32_t tile_choices(const Plan *p, const Variant *v, const Kernel *k, IrRef *conds, uint32_t max)
{
    const IrBody *b = &p->m->bodies[v->body];
    uint32_t n = 0;
    for (uint32_t i = 0; i < k->nvals && n < max; i++) {
        if (k->vals[i].how != VAL_COMPUTE || !is_choice(b, k->vals[i].ref)) continue;
        IrRef cond = b->ins[k->vals[i].ref].arg[0];
        uint32_t at = 0;
        while (at < n && conds[at] != cond) at++;
        if (at == n) conds[n++] = cond;
    }
    return n;
}

/* What stands for each value when `conds` are as the bits of `version` say. Choices of a scalar
 * stay, as tiles to be filled. */
static void resolve(Select *s, const IrRef *conds, uint32_t nconds, uint32_t version)
{
    IrRef *as = ARENA_ARRAY(s->arena, IrRef, s->b->n + 1);
    bool *here = ARENA_ARRAY(s->arena, bool, s->b->n + 1);
    for (uint32_t i = 0; i < s->k->nvals; i++)
        here[s->k->vals[i].ref] = s->k->vals[i].how == VAL_COMPUTE;
    for (IrRef ref = 0; ref < s->b->n; ref++) {
        Ins *ins = &s->b->ins[ref];
        as[ref] = ref;
        for (int k = 0; k < 3; k++) {
            if (ins->arg[k] != IR_NONE && ins->arg[k] < ref) ins->arg[k] = as[ins->arg[k]];
        }
        for (uint32_t c = 0; here[ref] && c < nconds && is_choice(s->b, ref); c++) {
            if (ins->arg[0] != conds[c]) continue;
            IrRef arm = ins->arg[version >> c & 1 ? 1 : 2];
            if (tile_is(s->b, arm)) as[ref] = arm;
            ins->arg[1] = ins->arg[2] = arm;
        }
    }
    for (uint32_t i = 0; i < s->k->nstores; i++) s->k->stores[i].value = as[s->k->stores[i].value];
}

/* Rows where no guard holds are passed over, so a guard that all stores share holds where there is
 * work. */
static void drop_common_guard(Select *s)
{
    IrRef guard = s->k->nstores ? s->k->stores[0].guard : IR_NONE;
    bool common = guard != IR_NONE && s->k->nreduces == 0;
    for (uint32_t i = 0; i < s->k->nstores; i++) common &= s->k->stores[i].guard == guard;
    for (uint32_t i = 0; common && i < s->k->nstores; i++) s->k->stores[i].guard = IR_NONE;
}

static void copy_input(Select *s, const Kernel *k)
{
    const IrBody *b = &s->p->m->bodies[s->v->body];
    s->b = ARENA_NEW(s->arena, IrBody);
    s->k = ARENA_NEW(s->arena, Kernel);
    *s->b = *b;
    *s->k = *k;
    s->b->ins = ARENA_ARRAY(s->arena, Ins, b->n + 1);
    s->k->stores = ARENA_ARRAY(s->arena, KernelStore, k->nstores + 1);
    memcpy(s->b->ins, b->ins, b->n * sizeof *b->ins);
    for (uint32_t i = 0; i < k->nstores; i++) s->k->stores[i] = k->stores[i];
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* A sum of products of what lies in memory, or a comparison: computing it again costs less than a
 * tile of scratch. */
static bool is_cheap(const Select *s, IrRef ref, int ops)
{
    const Ins *ins = &s->b->ins[ref];
    if (!is_tile(s, ref) || s->val[ref].how != 1 + VAL_COMPUTE) return true;
    bool cheap = ins->op == IR_ADD || ins->op == IR_SUB || ins->op == IR_MUL ||
                 ins->op == IR_LT || ins->op == IR_GT;
    if (ops == 0 || !cheap) return false;
    return is_cheap(s, ins->arg[0], ops - 1) && is_cheap(s, ins->arg[1], ops - 1);
}

/* Values that are used, from the last; `how` of the others becomes 0. */
static void count_uses(Select *s)
{
    for (uint32_t i = 0; i < s->k->nreduces; i++) {
        const Ins *ins = &s->b->ins[s->p->reduces[s->k->reduces[i]].ins];
        for (int k = 0; k < ir_arity(ins); k++) s->val[ins->arg[k]].uses++;
    }
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        const KernelStore *st = &s->k->stores[i];
        s->val[st->value].uses++;
        read_by_call(s, st->value);
        if (st->guard != IR_NONE) s->out->scalar[st->guard] = true;
    }
    for (uint32_t i = s->k->nvals; i-- > 0;) {
        const KernelValue *kv = &s->k->vals[i];
        SelectVal *v = &s->val[kv->ref];
        if (!v->uses) continue;
        v->how = (uint8_t)(1 + kv->how);
        v->elem = kv->elem;
        for (int k = 0; kv->how == VAL_COMPUTE && k < ir_arity(&s->b->ins[kv->ref]); k++)
            s->val[s->b->ins[kv->ref].arg[k]].uses++;
    }
    for (IrRef ref = 0; ref < s->b->n; ref++) {
        Rate rate = s->b->ins[ref].rate;
        if (!s->val[ref].uses || !tile_is(s->b, ref) || rate_is_element(rate)) continue;
        s->val[ref].how = 1 + VAL_LOAD;
        s->val[ref].elem = SELECT_VECTOR;
    }
}

static void cover_all(Select *s)
{
    for (uint32_t i = 0; i < s->k->nreduces; i++) cover_reduce(s, i);
    for (IrRef ref = s->b->n; ref-- > 0;) {
        if (!s->val[ref].needed || !is_free(s, ref)) continue;
        if (is_choice(s->b, ref))
            cover_choice(s, ref);
        else
            cover(s, ref, ref, false);
    }
}

/* Whether a value is computed again although it has a place of its own, too; such values are dear.
 */
static bool forbid_again(const Select *s, bool *dear)
{
    bool any = false;
    for (IrRef ref = 0; ref < s->b->n; ref++) {
        if (s->val[ref].again && s->val[ref].made_by) any = dear[ref] = true;
    }
    return any;
}

TileProgram *tile_select(Arena *a, const Plan *p, const Variant *v, const Kernel *k,
                         const IrRef *conds, uint32_t nconds, uint32_t version)
{
    Select s = {.arena = a, .p = p, .v = v, .out = ARENA_NEW(a, TileProgram)};
    copy_input(&s, k);
    drop_common_guard(&s);
    resolve(&s, conds, nconds, version);
    uint32_t n = s.b->n + 1;
    bool *dear = ARENA_ARRAY(a, bool, n);
    do {
        *s.out =
            (TileProgram){.loc = ARENA_ARRAY(a, TileLoc, n), .scalar = ARENA_ARRAY(a, bool, n)};
        s.val = ARENA_ARRAY(a, SelectVal, n);
        s.ncalls = 0;
        count_uses(&s);
        for (IrRef ref = 0; ref < s.b->n; ref++) {
            bool computed = s.val[ref].how == 1 + VAL_COMPUTE && !dear[ref];
            s.val[ref].cheap = computed && is_cheap(&s, ref, 2);
        }
        cover_all(&s);
    } while (forbid_again(&s, dear));
    select_place(&s);
    return s.out;
}
