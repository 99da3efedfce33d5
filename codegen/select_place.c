/* select_place.c - the order of a kernel's calls, and where its values live: see select.h.
 *
 * Requires: calls that cover the kernel (select.c). Ensures: a value is made before it is read; a
 * slot is overwritten only after the last call that reads what it held, or else by a move at the
 * tile's end; registers are shared by values that do not live at the same time, and an output may
 * take the register of an input of the same call.
 *
 *     %18 stored to m (f32), last read of the old m in the call that makes %18
 *     ->  %18 lives in m, no move
 */
#include "select_internal.h"
#include <string.h>

typedef struct PlaceWork {
    Select *s;
    uint32_t *last;   /* per value: position of the last call that reads it */
    uint32_t *at;     /* per value: position of the call that makes it */
    uint32_t *reader; /* per element slot: position of the last call that reads what it held; calls
                         are numbered from 1 */
} PlaceWork;

/* ---- values that must be loaded -------------------------------------------------------------- */

static bool is_overwritten(const Select *s, uint32_t elem)
{
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        if (s->k->stores[i].elem == elem) return true;
    }
    return false;
}

static void add_load(Select *s, IrRef ref)
{
    DType storage = select_storage(s, s->val[ref].elem);
    TileCall *c = select_call(s, storage == DT_F32 ? CALL_COPY : CALL_LOAD);
    c->op = storage == DT_F32 ? TILE_move_v : storage == DT_F16 ? TILE_LOAD_F16 : TILE_LOAD_BF16;
    c->elem = s->val[ref].elem;
    c->out[0] = ref;
    s->val[ref].made_by = c;
}

/* Calls `see` for every tile that a call reads itself. What chooses between tiles (CALL_CHOICE) is a
 * pointer: who reads it reads these tiles, too, and through chains of choices more than once. That
 * is followed choice by choice, never reader by reader. */
static void each_read(const Select *s, const TileCall *c, void (*see)(void *, IrRef), void *user)
{
    for (; c; c = c->otherwise) {
        for (int i = 0; i < c->nargs; i++) {
            IrRef ref = c->args[i];
            bool output =
                (c->kind == CALL_OP || c->kind == CALL_REDUCE) && tile_rows()[c->op].kind[i] == 'O';
            if (!output && ref != IR_NONE && s->val[ref].how) see(user, ref);
        }
    }
}

static bool is_chosen(const Select *s, IrRef ref)
{
    return s->val[ref].made_by && s->val[ref].made_by->kind == CALL_CHOICE;
}

typedef struct Kept {
    Select *s;
    uint32_t elem;  /* the slot that the choice is stored to */
    uint32_t *seen; /* per value: the last stamp it was seen with */
    uint32_t stamp;
    IrRef *todo; /* choices to be looked into */
    size_t ntodo;
} Kept;

static void keep_overwritten(void *user, IrRef ref)
{
    Kept *w = user;
    const SelectVal *v = &w->s->val[ref];
    if (w->seen[ref] == w->stamp) return;
    w->seen[ref] = w->stamp;
    if (is_chosen(w->s, ref))
        w->todo[w->ntodo++] = ref;
    else if (select_is_memory(v) && v->elem != w->elem && is_overwritten(w->s, v->elem))
        add_load(w->s, ref);
}

/* What is stored narrow is converted; what one slot hands to another while it is overwritten itself
 * is copied first. */
static void add_loads(Select *s)
{
    for (IrRef ref = 0; ref < s->b->n; ref++) {
        if (s->val[ref].needed && select_is_memory(&s->val[ref]) &&
            select_storage(s, s->val[ref].elem) != DT_F32)
            add_load(s, ref);
    }
    Kept w = {.s = s,
              .seen = ARENA_ARRAY(s->arena, uint32_t, s->b->n + 1),
              .todo = ARENA_ARRAY(s->arena, IrRef, s->b->n + 1)};
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        const KernelStore *st = &s->k->stores[i];
        const SelectVal *v = &s->val[st->value];
        if (select_is_memory(v) && v->elem != st->elem && is_overwritten(s, v->elem))
            add_load(s, st->value);
        /* A choice between tiles is a pointer, and read when it is stored: at the tile's end. */
        w.elem = st->elem;
        w.stamp = i + 1;
        if (is_chosen(s, st->value)) w.todo[w.ntodo++] = st->value;
        while (w.ntodo)
            each_read(s, s->val[w.todo[--w.ntodo]].made_by, keep_overwritten, &w);
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

/* A call follows those that make what it reads. Of those that could be next, one that makes what
 * overwrites a slot had better wait while others have yet to read the slot. */
typedef struct Order {
    Select *s;
    uint32_t *waits;              /* per call: tiles it reads that are not made yet */
    uint32_t *users_begin, *users; /* per call: the calls that read what it makes */
    uint32_t *slot;               /* per element slot: 1 + number of its store */
    uint32_t *left;               /* per store: calls that have yet to read its slot */
    bool *own;                    /* per store: the call that makes its value reads its slot */
    uint32_t *of_value, *next;    /* per value: 1 + its first store; per store: 1 + the next one */
    uint64_t **chosen;            /* per choice: the stores whose slots it reads, as bits */
    uint64_t *reads;              /* of one call, likewise */
    size_t words;
} Order;

typedef struct Edges {
    Order *o;
    const TileCall *call;
    uint32_t *fill; /* NULL: count */
} Edges;

static void see_made(void *user, IrRef ref)
{
    Edges *e = user;
    const TileCall *made = e->o->s->val[ref].made_by;
    if (!made || made == e->call) return;
    if (e->fill) {
        e->o->users[e->fill[made->number]++] = e->call->number;
    } else {
        e->o->users_begin[made->number + 1]++;
        e->o->waits[e->call->number]++;
    }
}

static void find_users(Order *o)
{
    Select *s = o->s;
    uint32_t n = (uint32_t)s->ncalls;
    Edges e = {.o = o};
    for (uint32_t i = 0; i < n; i++) s->calls[i]->number = i;
    for (uint32_t i = 0; i < n; i++) each_read(s, e.call = s->calls[i], see_made, &e);
    for (uint32_t i = 0; i < n; i++) o->users_begin[i + 1] += o->users_begin[i];
    o->users = ARENA_ARRAY(s->arena, uint32_t, o->users_begin[n] + 1);
    e.fill = ARENA_ARRAY(s->arena, uint32_t, n + 1);
    memcpy(e.fill, o->users_begin, n * sizeof *e.fill);
    for (uint32_t i = 0; i < n; i++) each_read(s, e.call = s->calls[i], see_made, &e);
}

static void add_read(Order *o, uint32_t elem)
{
    uint32_t store = elem == SELECT_VECTOR ? 0 : o->slot[elem];
    if (store) o->reads[(store - 1) / 64] |= (uint64_t)1 << (store - 1) % 64;
}

static void see_slot(void *user, IrRef ref)
{
    Order *o = user;
    const SelectVal *v = &o->s->val[ref];
    if (select_is_memory(v)) add_read(o, v->elem);
    for (size_t i = 0; o->chosen[ref] && i < o->words; i++) o->reads[i] |= o->chosen[ref][i];
}

/* The slots that a call reads and that are overwritten, in o->reads. */
static void find_reads(Order *o, const TileCall *c)
{
    memset(o->reads, 0, o->words * sizeof *o->reads);
    each_read(o->s, c, see_slot, o);
    if (c->kind == CALL_LOAD || c->kind == CALL_COPY) add_read(o, c->elem);
}

static void count_left(Order *o, uint32_t by)
{
    for (size_t i = 0; i < o->words; i++)
        for (uint64_t rest = o->reads[i]; rest; rest &= rest - 1)
            o->left[i * 64 + (size_t)__builtin_ctzll(rest)] += by;
}

static void find_slots_of(Order *o, const TileCall *c)
{
    find_reads(o, c);
    count_left(o, 1);
    if (c->kind == CALL_CHOICE) {
        uint64_t *set = o->chosen[c->out[0]] = ARENA_ARRAY(o->s->arena, uint64_t, o->words);
        memcpy(set, o->reads, o->words * sizeof *set);
    }
    for (int k = 0; k < TILE_OUTPUTS; k++) {
        uint32_t i = c->out[k] == IR_NONE ? 0 : o->of_value[c->out[k]];
        for (; i; i = o->next[i - 1]) {
            uint32_t slot = o->slot[o->s->k->stores[i - 1].elem] - 1;
            o->own[i - 1] = o->reads[slot / 64] >> slot % 64 & 1;
        }
    }
}

/* In an order in which choices come before what reads them. */
static void find_slots(Order *o)
{
    Select *s = o->s;
    uint32_t n = (uint32_t)s->ncalls, ready = 0;
    uint32_t *waits = ARENA_ARRAY(s->arena, uint32_t, n + 1),
             *queue = ARENA_ARRAY(s->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!(waits[i] = o->waits[i])) queue[ready++] = i;
    for (uint32_t q = 0; q < ready; q++) {
        find_slots_of(o, s->calls[queue[q]]);
        for (uint32_t u = o->users_begin[queue[q]]; u < o->users_begin[queue[q] + 1]; u++)
            if (--waits[o->users[u]] == 0) queue[ready++] = o->users[u];
    }
}

static bool should_wait(const Order *o, const TileCall *c)
{
    for (int k = 0; k < TILE_OUTPUTS; k++) {
        uint32_t i = c->out[k] == IR_NONE ? 0 : o->of_value[c->out[k]];
        for (; i; i = o->next[i - 1])
            if (o->left[o->slot[o->s->k->stores[i - 1].elem] - 1] > o->own[i - 1]) return true;
    }
    return false;
}

static IrRef key_of(const TileCall *c)
{
    return c->out[0] != IR_NONE ? c->out[0] : c->args[0];
}

/* Which of `ready` is next. */
static uint32_t pick(const Order *o, const uint32_t *ready, uint32_t n)
{
    uint32_t best = 0;
    bool best_waits = true;
    for (uint32_t i = 0; i < n; i++) {
        const TileCall *c = o->s->calls[ready[i]], *b = o->s->calls[ready[best]];
        bool waits = should_wait(o, c);
        IrRef key = key_of(c), least = key_of(b);
        bool before = key < least || (key == least && c->number < b->number);
        if (i > 0 && !(waits < best_waits || (waits == best_waits && before))) continue;
        best = i;
        best_waits = waits;
    }
    return best;
}

static Order order_open(Select *s)
{
    uint32_t elems = plan_first_temp(s->p, s->v->body) + s->v->ntemps, n = s->k->nstores;
    Order o = {.s = s,
               .waits = ARENA_ARRAY(s->arena, uint32_t, s->ncalls + 1),
               .users_begin = ARENA_ARRAY(s->arena, uint32_t, s->ncalls + 2),
               .slot = ARENA_ARRAY(s->arena, uint32_t, elems + 1),
               .left = ARENA_ARRAY(s->arena, uint32_t, n + 1),
               .own = ARENA_ARRAY(s->arena, bool, n + 1),
               .of_value = ARENA_ARRAY(s->arena, uint32_t, s->b->n + 1),
               .next = ARENA_ARRAY(s->arena, uint32_t, n + 1),
               .chosen = ARENA_ARRAY(s->arena, uint64_t *, s->b->n + 1),
               .words = n / 64 + 1};
    o.reads = ARENA_ARRAY(s->arena, uint64_t, o.words);
    for (uint32_t i = 0; i < n; i++) {
        const KernelStore *st = &s->k->stores[i];
        if (!o.slot[st->elem]) o.slot[st->elem] = i + 1;
        o.next[i] = o.of_value[st->value];
        o.of_value[st->value] = i + 1;
    }
    return o;
}

static void order(Select *s)
{
    uint32_t n = (uint32_t)s->ncalls, nready = 0;
    Order o = order_open(s);
    find_users(&o);
    find_slots(&o);
    s->out->calls = ARENA_ARRAY(s->arena, TileCall *, n + s->k->nstores + 1);
    uint32_t *ready = ARENA_ARRAY(s->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        if (!o.waits[i]) ready[nready++] = i;
    while (nready) {
        uint32_t at = pick(&o, ready, nready), number = ready[at];
        ready[at] = ready[--nready];
        s->out->calls[s->out->ncalls++] = s->calls[number];
        find_reads(&o, s->calls[number]);
        count_left(&o, (uint32_t)-1);
        for (uint32_t u = o.users_begin[number]; u < o.users_begin[number + 1]; u++)
            if (--o.waits[o.users[u]] == 0) ready[nready++] = o.users[u];
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

typedef struct Reading {
    PlaceWork *w;
    uint32_t position;
} Reading;

static void see_read(void *user, IrRef ref)
{
    Reading *r = user;
    r->w->last[ref] = r->position;
}

static void number_reads(PlaceWork *w, const TileCall *c, uint32_t position)
{
    Reading r = {w, position};
    each_read(w->s, c, see_read, &r);
    if (c->kind == CALL_LOAD || c->kind == CALL_COPY) w->reader[c->elem] = position;
    for (int o = 0; o < TILE_OUTPUTS; o++) {
        if (c->out[o] != IR_NONE) w->at[c->out[o]] = position;
    }
}

static void later(uint32_t *position, uint32_t than)
{
    if (*position < than) *position = than;
}

/* Who reads a choice reads what it chooses from: the last reader of the one is one of the other. */
static void follow_choices(PlaceWork *w)
{
    const Select *s = w->s;
    for (uint32_t i = s->out->ncalls; i-- > 0;) {
        const TileCall *c = s->out->calls[i];
        for (int k = 0; c->kind == CALL_CHOICE && k < c->nargs; k++)
            if (s->val[c->args[k]].how) later(&w->last[c->args[k]], w->last[c->out[0]]);
    }
    for (IrRef ref = 0; ref < s->b->n; ref++) {
        const SelectVal *v = &s->val[ref];
        if (select_is_memory(v) && v->elem != SELECT_VECTOR)
            later(&w->reader[v->elem], w->last[ref]);
    }
}

static bool lives_in_slot(PlaceWork *w, const KernelStore *st)
{
    const Select *s = w->s;
    const TileCall *made = s->val[st->value].made_by;
    return made && made->kind == CALL_OP && select_storage(s, st->elem) == DT_F32 &&
           s->out->loc[st->value].kind == LOC_NONE && w->reader[st->elem] <= w->at[st->value];
}

static void add_store(PlaceWork *w, const KernelStore *st)
{
    Select *s = w->s;
    bool tile = s->val[st->value].how != 0;
    DType storage = select_storage(s, st->elem);
    if (storage == DT_F32 && select_is_memory(&s->val[st->value]) &&
        s->val[st->value].elem == st->elem)
        return; /* it holds just that */
    TileCall *c = select_call(s, CALL_STORE);
    c->op = storage == DT_F16    ? TILE_STORE_F16
            : storage == DT_BF16 ? TILE_STORE_BF16
            : tile               ? TILE_move_v
                                 : TILE_fill_s;
    c->elem = st->elem;
    c->nargs = 1;
    c->args[0] = st->value;
    c->guard = st->guard;
    if (!tile && storage != DT_F32) c->reg = s->out->nregs++;
    s->out->calls[s->out->ncalls++] = c;
}

/* Which values live in memory; the other stores become calls at the end. */
static void place_stores(PlaceWork *w)
{
    Select *s = w->s;
    for (IrRef ref = 0; ref < s->b->n; ref++) {
        if (select_is_memory(&s->val[ref]))
            s->out->loc[ref] = (TileLoc){s->val[ref].elem == SELECT_VECTOR ? LOC_VECTOR : LOC_ELEM,
                                         0, s->val[ref].elem, IR_NONE};
    }
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        const KernelStore *st = &s->k->stores[i];
        if (lives_in_slot(w, st))
            s->out->loc[st->value] =
                (TileLoc){st->guard == IR_NONE ? LOC_ELEM : LOC_GUARDED, 0, st->elem, st->guard};
        else
            add_store(w, st);
    }
}

static bool chooses_scalar(const Select *s, const TileCall *c)
{
    return c->kind == CALL_CHOICE && (!s->val[c->args[0]].how || !s->val[c->args[1]].how);
}

static bool wants_register(const Select *s, const TileCall *c, IrRef ref)
{
    const TileLoc *loc = &s->out->loc[ref];
    if (c->kind == CALL_CHOICE) return chooses_scalar(s, c);
    return loc->kind == LOC_NONE || loc->kind == LOC_GUARDED;
}

/* Registers by linear scan: taken where a value is made, free after its last reader. */
static void place_registers(PlaceWork *w)
{
    Select *s = w->s;
    uint32_t *until =
        ARENA_ARRAY(s->arena, uint32_t, s->b->n + 1); /* per register: taken up to this position */
    uint32_t fixed = s->out->nregs, used = 0;
    for (uint32_t i = 0; i < s->out->ncalls; i++) {
        const TileCall *c = s->out->calls[i];
        for (int o = 0; o < TILE_OUTPUTS; o++) {
            IrRef ref = c->out[o];
            if (ref == IR_NONE) continue;
            TileLoc *loc = &s->out->loc[ref];
            if (wants_register(s, c, ref)) {
                uint32_t r = 0;
                while (r < used && until[r] > i + 1) r++;
                used += r == used;
                until[r] = w->last[ref] > i + 1 ? w->last[ref] : i + 2;
                loc->reg = fixed + r;
            }
            if (c->kind == CALL_CHOICE)
                loc->kind = LOC_CHOICE;
            else if (loc->kind == LOC_NONE)
                loc->kind = LOC_REG;
        }
    }
    s->out->nregs = fixed + used;
}

void select_place(Select *s)
{
    PlaceWork w = {.s = s,
                   .last = ARENA_ARRAY(s->arena, uint32_t, s->b->n + 1),
                   .at = ARENA_ARRAY(s->arena, uint32_t, s->b->n + 1),
                   .reader = ARENA_ARRAY(s->arena, uint32_t,
                                         plan_first_temp(s->p, s->v->body) + s->v->ntemps + 1)};
    add_loads(s);
    order(s);
    uint32_t ordered = s->out->ncalls;
    for (uint32_t i = 0; i < ordered; i++) number_reads(&w, s->out->calls[i], i + 1);
    follow_choices(&w);
    place_stores(&w);
    for (uint32_t i = ordered; i < s->out->ncalls; i++) number_reads(&w, s->out->calls[i], i + 1);
    follow_choices(&w);
    place_registers(&w);
}
