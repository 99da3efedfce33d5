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

/* Calls `see` for every tile that a call reads; what chooses between tiles reads when the choice is
 * read. */
static void each_read(const Select *s, const TileCall *c, void (*see)(void *, IrRef), void *user)
{
    for (int i = 0; i < c->nargs; i++) {
        IrRef ref = c->args[i];
        bool output =
            (c->kind == CALL_OP || c->kind == CALL_REDUCE) && tile_rows()[c->op].kind[i] == 'O';
        if (output || ref == IR_NONE || !s->val[ref].how) continue;
        see(user, ref);
        const TileCall *made = s->val[ref].made_by;
        if (made && made->kind == CALL_CHOICE && made != c) each_read(s, made, see, user);
    }
    if (c->otherwise) each_read(s, c->otherwise, see, user);
}

typedef struct Kept {
    Select *s;
    uint32_t elem; /* the slot that the choice is stored to */
} Kept;

static void keep_overwritten(void *user, IrRef ref)
{
    Kept *w = user;
    const SelectVal *v = &w->s->val[ref];
    if (select_is_memory(v) && v->elem != w->elem && is_overwritten(w->s, v->elem))
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
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        const KernelStore *st = &s->k->stores[i];
        const SelectVal *v = &s->val[st->value];
        if (select_is_memory(v) && v->elem != st->elem && is_overwritten(s, v->elem))
            add_load(s, st->value);
        /* A choice between tiles is a pointer, and read when it is stored: at the tile's end. */
        if (v->made_by && v->made_by->kind == CALL_CHOICE)
            each_read(s, v->made_by, keep_overwritten, &(Kept){s, st->elem});
    }
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct Waits {
    const Select *s;
    const TileCall *call;
    const uint8_t *done;
    uint32_t elem;
    bool yes;
} Waits;

static uint32_t number_of(const Select *s, const TileCall *c)
{
    for (uint32_t i = 0; i < s->ncalls; i++) {
        if (s->calls[i] == c) return i;
    }
    return 0;
}

static void see_made(void *user, IrRef ref)
{
    Waits *w = user;
    const TileCall *made = w->s->val[ref].made_by;
    if (made && made != w->call && !w->done[number_of(w->s, made)]) w->yes = true;
}

static bool is_ready(const Select *s, uint32_t n, const uint8_t *done)
{
    Waits w = {s, s->calls[n], done, 0, false};
    each_read(s, s->calls[n], see_made, &w);
    return !w.yes;
}

static void see_elem(void *user, IrRef ref)
{
    Waits *w = user;
    const SelectVal *v = &w->s->val[ref];
    w->yes |= select_is_memory(v) && v->elem == w->elem;
}

static bool reads_elem(const Select *s, const TileCall *c, uint32_t elem)
{
    Waits w = {s, c, NULL, elem, false};
    each_read(s, c, see_elem, &w);
    return w.yes || ((c->kind == CALL_LOAD || c->kind == CALL_COPY) && c->elem == elem);
}

static bool makes(const TileCall *c, IrRef ref)
{
    return c->out[0] == ref || c->out[1] == ref || c->out[2] == ref || c->out[3] == ref;
}

/* Whether a call had better wait: it makes what overwrites a slot that others have yet to read. */
static bool should_wait(const Select *s, uint32_t n, const uint8_t *done)
{
    for (uint32_t i = 0; i < s->k->nstores; i++) {
        const KernelStore *st = &s->k->stores[i];
        if (!makes(s->calls[n], st->value)) continue;
        for (uint32_t j = 0; j < s->ncalls; j++) {
            if (j != n && !done[j] && reads_elem(s, s->calls[j], st->elem)) return true;
        }
    }
    return false;
}

static IrRef key_of(const TileCall *c)
{
    return c->out[0] != IR_NONE ? c->out[0] : c->args[0];
}

static int pick(const Select *s, const uint8_t *done)
{
    int best = -1;
    bool best_waits = true;
    for (uint32_t i = 0; i < s->ncalls; i++) {
        if (done[i] || !is_ready(s, i, done)) continue;
        bool waits = should_wait(s, i, done);
        bool sooner = best < 0 || waits < best_waits ||
                      (waits == best_waits && key_of(s->calls[i]) < key_of(s->calls[best]));
        if (sooner) {
            best = (int)i;
            best_waits = waits;
        }
    }
    return best;
}

static void order(Select *s)
{
    uint8_t *done = ARENA_ARRAY(s->arena, uint8_t, s->ncalls + 1);
    uint32_t room = (uint32_t)s->ncalls + s->k->nstores + 1;
    s->out->calls = ARENA_ARRAY(s->arena, TileCall *, room);
    for (int n; (n = pick(s, done)) >= 0;) {
        done[n] = 1;
        s->out->calls[s->out->ncalls++] = s->calls[n];
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
    const SelectVal *v = &r->w->s->val[ref];
    r->w->last[ref] = r->position;
    if (select_is_memory(v) && v->elem != SELECT_VECTOR) r->w->reader[v->elem] = r->position;
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
    place_stores(&w);
    for (uint32_t i = ordered; i < s->out->ncalls; i++) number_reads(&w, s->out->calls[i], i + 1);
    place_registers(&w);
}
