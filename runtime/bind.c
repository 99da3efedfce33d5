/* bind.c - the tables that a step, or an entry point, walks: which tensors take part, their rows,
 * classes of equal t, shares of the threads.
 *
 * Requires tensors, groups, variants and blocks to be in place (optimizer.c). tables_alloc makes
 * room for the case that every tensor takes part; tables_update then only fills in, and does
 * nothing as long as neither the set of gradients nor a t was changed from outside. Rows are sorted
 * by variant (and so by body), then in the order in which tensors were given.
 *
 *     w [5000], b [3], both f32  ->  rows {0, 0, 4096} {0, 4096, 904} {1, 0, 3}
 */
#include "internal.h"
#include <string.h>

/* In elements: what a row costs before its first one; what is left to one thread; what is not worth
 * waking others for. */
enum { ROW_COST = 64, SMALL_WORK = 12000, BRIEF_WORK = 64000 };

enum { VECTOR_ROW = 1024 }; /* indices of a vector in a row of their table */

/* ---- allocation ------------------------------------------------------------------------------ */

typedef struct Carver { /* first pass: base NULL, counts; second pass: hands out */
    char *base;
    size_t used;
} Carver;

static void *carve(Carver *c, size_t count, size_t size)
{
    void *p = c->base ? c->base + c->used : NULL;
    c->used += (count * size + 63) & ~(size_t)63;
    return p;
}

/* Columns of partial results; a reduction of scalars over elements uses the space of one, too. */
static int partials_of_phase(const Plan *plan, int phase)
{
    int n = 0;
    for (uint32_t i = 0; i < plan->nreduces; i++) {
        const PlanReduce *r = &plan->reduces[i];
        int columns = r->from != FROM_ELEMENTS ? 1 : (int)r->partial + 1;
        if (r->phase == phase && columns > n) n = columns;
    }
    return n;
}

typedef struct Sizes {
    size_t rows, vector_rows;
    int npartial;
} Sizes;

static void carve_tables(const dsopt_optimizer *opt, OptEntry *e, Carver *c, const Sizes *s)
{
    size_t n = opt->nlive, threads = (size_t)pool_threads(opt->ctx->pool);
    e->active = carve(c, n, sizeof *e->active);
    if (!e->plan) return;
    e->rows = carve(c, s->rows, sizeof *e->rows);
    e->vector_rows = carve(c, s->vector_rows, sizeof *e->vector_rows);
    e->tensor_rows = carve(c, n, sizeof *e->tensor_rows);
    e->class_blocks = carve(c, n * opt->block_size[LEVEL_CLASS], sizeof(double));
    e->class_rep = carve(c, n, sizeof *e->class_rep);
    e->class_table = carve(c, e->class_mask + 1, sizeof *e->class_table);
    e->partial = carve(c, s->rows * (size_t)s->npartial, sizeof(double));
    size_t most = n > opt->ngroups ? n : opt->ngroups;
    e->roots = carve(c, 2 * most, sizeof(double));
    e->present = carve(c, most, 1);
    e->split = carve(c, threads + 1, sizeof *e->split);
    e->shares = carve(c, threads, sizeof *e->shares);
}

static const Rate vector_rates[VEC_COUNT] = {[VEC_MATRIX] = RATE_MATRIX,
                                             [VEC_ROW] = RATE_ROW,
                                             [VEC_COL] = RATE_COL,
                                             [VEC_BLOCK] = RATE_BLOCK};

static void make_bodies(dsopt_optimizer *opt, OptEntry *e)
{
    e->bodies = ARENA_ARRAY(&opt->arena, BodyRun, e->m->nbodies);
    e->group_first = ARENA_ARRAY(&opt->arena, uint32_t, opt->ngroups);
    for (uint32_t b = 0; b < e->m->nbodies; b++)
        e->bodies[b].groups = ARENA_ARRAY(&opt->arena, bool, opt->ngroups);
    for (uint32_t i = 0; e->plan && i < e->plan->nvprograms + e->plan->nvcommit; i++) {
        const VectorProgram *p = i < e->plan->nvprograms
                                     ? &e->plan->vprograms[i]
                                     : &e->plan->vcommit[i - e->plan->nvprograms];
        e->bodies[p->body].vectors[vector_kind(p->rate)] = true;
    }
}

static Sizes count_sizes(dsopt_optimizer *opt, OptEntry *e)
{
    Sizes s = {0};
    for (uint32_t i = 0; i < opt->nlive; i++) {
        s.rows += view_rows(&e->live[i].dims, i, NULL);
        const BodyRun *b = &e->bodies[e->x.tensors[i].body];
        for (int k = 0; k < VEC_COUNT; k++) {
            int64_t n = b->vectors[k] ? view_length(&e->live[i].dims, vector_rates[k]) : 0;
            s.vector_rows += (size_t)((n + VECTOR_ROW - 1) / VECTOR_ROW);
        }
    }
    e->npartial = ARENA_ARRAY(&opt->arena, int, e->plan->nphases + 1);
    for (int k = 0; k <= e->plan->nphases; k++) {
        e->npartial[k] = partials_of_phase(e->plan, k);
        if (e->npartial[k] > s.npartial) s.npartial = e->npartial[k];
    }
    return s;
}

dsopt_status tables_alloc(dsopt_optimizer *opt, OptEntry *e)
{
    Sizes s = {0};
    make_bodies(opt, e);
    if (e->plan) {
        for (e->class_mask = 7; e->class_mask + 1 < (size_t)opt->nlive * 2;)
            e->class_mask = e->class_mask * 2 + 1;
        s = count_sizes(opt, e);
    }
    Carver c = {0};
    carve_tables(opt, e, &c, &s);
    if (!region_alloc(&opt->ctx->alloc, c.used + 64, &e->tables)) return error_oom(opt->ctx);
    c = (Carver){.base = e->tables.base};
    carve_tables(opt, e, &c, &s);
    e->stale = true;
    return DSOPT_OK;
}

/* ---- filling in ------------------------------------------------------------------------------ */

static double tensor_t(const dsopt_optimizer *opt, const OptEntry *e, uint32_t live)
{
    return e->x.tensors[live].block[opt->m->slots[opt->t_slot].index];
}

/* The step, and `on NAME(x)`: tensors that have a gradient, or a buffer x. Other entry points: all.
 */
static bool takes_part(const OptEntry *e, const ExecTensor *t)
{
    bool asks = !e->pm->entry || e->pm->takes_buffers;
    return !asks || t->ptr[1] != NULL;
}

static void fill_active(dsopt_optimizer *opt, OptEntry *e)
{
    e->nactive = 0;
    e->first_body = UINT32_MAX;
    int64_t numel = 0;
    for (uint32_t b = 0; b < e->m->nbodies; b++) {
        e->bodies[b].begin = e->bodies[b].end = 0;
        for (uint32_t g = 0; g < opt->ngroups; g++) e->bodies[b].groups[g] = false;
    }
    for (uint32_t g = 0; g < opt->ngroups; g++) e->group_first[g] = UINT32_MAX;
    for (size_t v = 0; v < e->nvariants; v++) {
        uint32_t body = e->variants[v].body;
        BodyRun *b = &e->bodies[body];
        for (uint32_t i = 0; i < opt->nlive; i++) {
            if (e->live[i].variant != v) continue;
            ExecTensor *t = &e->x.tensors[i];
            t->active = takes_part(e, t);
            if (!t->active) continue;
            if (b->begin == b->end) b->begin = e->nactive;
            e->active[e->nactive++] = i;
            b->end = e->nactive;
            b->groups[t->group] = true;
            if (e->first_body == UINT32_MAX) e->first_body = body;
            if (e->group_first[t->group] == UINT32_MAX) e->group_first[t->group] = body;
            numel += t->numel;
        }
    }
    if (opt->numel_all_slot >= 0)
        opt->global[opt->m->slots[opt->numel_all_slot].index] = (double)numel;
}

static void fill_rows(OptEntry *e)
{
    size_t r = 0, a = 0;
    for (size_t v = 0; v < e->nvariants; v++) {
        e->variants[v].row_begin = r;
        for (; a < e->nactive && e->live[e->active[a]].variant == v; a++) {
            LiveTensor *l = &e->live[e->active[a]];
            l->row = r;
            l->nrows = view_rows(&l->dims, e->active[a], e->rows + r);
            r += l->nrows;
        }
        e->variants[v].row_end = r;
    }
    e->nrows = r;
}

static void fill_vector_rows(OptEntry *e)
{
    size_t r = 0;
    for (uint32_t body = 0; body < e->m->nbodies; body++)
        for (int k = 0; k < VEC_COUNT; k++) {
            BodyRun *b = &e->bodies[body];
            b->vector_begin[k] = r;
            for (size_t a = b->begin; b->vectors[k] && a < b->end; a++) {
                int64_t n = view_length(&e->live[e->active[a]].dims, vector_rates[k]);
                for (int64_t first = 0; first < n; first += VECTOR_ROW)
                    e->vector_rows[r++] = ds_flat_row(
                        e->active[a], first, n - first < VECTOR_ROW ? n - first : VECTOR_ROW);
            }
            b->vector_end[k] = r;
        }
}

/* Tensors of one group and body with equal t share a class block. */
static void fill_classes(dsopt_optimizer *opt, OptEntry *e)
{
    e->nclasses = 0;
    memset(e->class_table, 0xff, (e->class_mask + 1) * sizeof *e->class_table);
    const ExecTensor *x = e->x.tensors;
    for (size_t a = 0; a < e->nactive; a++) {
        uint32_t i = e->active[a], group = x[i].group, body = x[i].body;
        double t = opt->t_slot >= 0 ? tensor_t(opt, e, i) : 0;
        uint64_t h =
            (((uint64_t)t * 0x9e3779b97f4a7c15u + group) * 64 + body) * 0xd1342543de82ef95u;
        size_t at = (size_t)(h >> 32) & e->class_mask;
        uint32_t c;
        for (; (c = e->class_table[at]) != UINT32_MAX; at = (at + 1) & e->class_mask) {
            uint32_t rep = e->class_rep[c];
            if (x[rep].group == group && x[rep].body == body &&
                (opt->t_slot < 0 || tensor_t(opt, e, rep) == t))
                break;
        }
        if (c == UINT32_MAX) {
            c = e->class_table[at] = (uint32_t)e->nclasses++;
            e->class_rep[c] = i;
        }
        e->live[i].class_ = c;
        e->tensor_rows[i].u[LEVEL_CLASS] = e->class_blocks + c * opt->block_size[LEVEL_CLASS];
    }
}

static int64_t cost_of(const DsRow *r)
{
    return r->count * r->runs + ROW_COST;
}

/* Where each worker's rows begin: shares of equal cost. One share for all where work is too small
 * to be worth waking anyone. */
static void fill_split(const dsopt_optimizer *opt, OptEntry *e)
{
    int threads = pool_threads(opt->ctx->pool);
    int64_t cost = 0, so_far = 0;
    for (size_t r = 0; r < e->nrows; r++) cost += cost_of(&e->rows[r]);
    if (cost < SMALL_WORK) threads = 1;
    e->brief = cost < BRIEF_WORK;
    if ((size_t)threads > e->nrows) threads = e->nrows ? (int)e->nrows : 1;
    e->nshares = threads;
    int w = 0;
    e->split[0] = 0;
    for (size_t r = 0; r < e->nrows; r++) {
        int64_t mine = cost_of(&e->rows[r]);
        /* Worker w + 1 begins at the row whose middle lies behind w + 1 shares. */
        while (w + 1 < threads && so_far + (mine - ROW_COST) / 2 >= cost / threads * (w + 1))
            e->split[++w] = r;
        so_far += mine;
    }
    while (w < threads) e->split[++w] = e->nrows;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The key of a tensor's draws in this step (docs/api.md): of the seed, its name, its t, and for
 * entry points their name. */
static void fill_draws(dsopt_optimizer *opt, OptEntry *e)
{
    for (size_t a = 0; a < e->nactive; a++) {
        uint32_t i = e->active[a];
        uint64_t h = opt->tensors[e->live[i].info].name_hash,
                 t = opt->t_slot >= 0 ? (uint64_t)tensor_t(opt, e, i) + 1 : 0;
        if (e->pm->entry) {
            h = (h ^ 0) * 0x100000001b3u;
            for (const char *c = e->name; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3u;
        }
        uint64_t key = mix(mix(mix(opt->ctx->seed + 0x9e3779b97f4a7c15u) ^ h) + t);
        for (int k = 0; k < 2; k++)
            if (e->draw_slot[k] >= 0)
                e->x.tensors[i].block[e->m->slots[e->draw_slot[k]].index] =
                    (double)(uint32_t)(key >> 32 * k);
    }
}

/* One by one, so that overlaps are looked for when all are in place. */
dsopt_status gradients_check(dsopt_optimizer *opt)
{
    dsopt_status st = opt->rebound ? overlaps_check(opt, NULL) : DSOPT_OK;
    opt->rebound &= st != DSOPT_OK;
    return st;
}

void tables_update(dsopt_optimizer *opt, OptEntry *e)
{
    if (e->stale) {
        fill_active(opt, e);
        if (e->plan) {
            fill_rows(e);
            fill_vector_rows(e);
            fill_classes(opt, e);
            fill_split(opt, e);
        }
        e->stale = false;
    }
    /* Every tensor of a class has advanced with the others since. */
    if (e->plan && opt->t_slot >= 0)
        for (size_t c = 0; c < e->nclasses; c++)
            e->class_blocks[c * opt->block_size[LEVEL_CLASS]] = tensor_t(opt, e, e->class_rep[c]);
    if (e->draw_slot[0] >= 0 || e->draw_slot[1] >= 0) fill_draws(opt, e);
}
