/* bind.c - the tables that a step walks: which tensors take part, their rows, classes of equal t,
 * shares of the threads.
 *
 * Requires tensors, groups, variants and blocks to be in place (optimizer.c). tables_alloc makes
 * room for the case that every tensor takes part; tables_update then only fills in, and does
 * nothing as long as neither the set of gradients nor a t was changed from outside. Rows are sorted
 * by variant, then in the order in which tensors were given.
 *
 *     w [5000], b [3], both f32  ->  rows {0, 0, 4096} {0, 4096, 904} {1, 0, 3}
 */
#include "internal.h"
#include <string.h>

/* In elements: what a row costs before its first one; what is left to one thread; what is not worth
 * waking others for. */
enum { ROW_COST = 64, SMALL_WORK = 12000, BRIEF_WORK = 64000 };

static size_t rows_of(int64_t numel)
{
    return (size_t)((numel + DS_CHUNK - 1) / DS_CHUNK);
}

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
        int columns = r->of_scalars ? 1 : (int)r->partial + 1;
        if (r->phase == phase && columns > n) n = columns;
    }
    return n;
}

static void carve_tables(dsopt_optimizer *opt, Carver *c, size_t nrows, int npartial)
{
    size_t n = opt->x.ntensors;
    opt->active = carve(c, n, sizeof *opt->active);
    if (!opt->plan) return;
    opt->rows = carve(c, nrows, sizeof *opt->rows);
    opt->tensor_rows = carve(c, n, sizeof *opt->tensor_rows);
    opt->class_blocks = carve(c, n * opt->block_size[LEVEL_CLASS], sizeof(double));
    opt->class_rep = carve(c, n, sizeof *opt->class_rep);
    opt->class_table = carve(c, opt->class_mask + 1, sizeof *opt->class_table);
    opt->partial = carve(c, nrows * (size_t)npartial, sizeof(double));
    opt->roots = carve(c, 2 * n, sizeof(double));
    opt->present = carve(c, n, 1);
    opt->split = carve(c, (size_t)pool_threads(opt->ctx->pool) + 1, sizeof *opt->split);
    opt->shares = carve(c, (size_t)pool_threads(opt->ctx->pool), sizeof *opt->shares);
}

dsopt_status tables_alloc(dsopt_optimizer *opt)
{
    size_t nrows = 0;
    for (size_t i = 0; i < opt->x.ntensors; i++) nrows += rows_of(opt->x.tensors[i].numel);
    int most = 0;
    if (opt->plan) {
        for (opt->class_mask = 7; opt->class_mask + 1 < opt->x.ntensors * 2;)
            opt->class_mask = opt->class_mask * 2 + 1;
        opt->npartial = ARENA_ARRAY(&opt->arena, int, opt->plan->nphases + 1);
        for (int k = 0; k <= opt->plan->nphases; k++) {
            opt->npartial[k] = partials_of_phase(opt->plan, k);
            if (opt->npartial[k] > most) most = opt->npartial[k];
        }
    }
    Carver c = {0};
    carve_tables(opt, &c, nrows, most);
    if (!region_alloc(&opt->ctx->alloc, c.used + 64, &opt->tables)) return error_oom(opt->ctx);
    c = (Carver){.base = opt->tables.base};
    carve_tables(opt, &c, nrows, most);
    opt->stale = true;
    return DSOPT_OK;
}

/* ---- filling in ------------------------------------------------------------------------------ */

static double tensor_t(const dsopt_optimizer *opt, uint32_t live)
{
    return opt->x.tensors[live].block[opt->m->slots[opt->t_slot].index];
}

static void fill_active(dsopt_optimizer *opt)
{
    opt->nactive = 0;
    int64_t numel = 0;
    for (uint32_t g = 0; g < opt->ngroups; g++) opt->groups[g].active = false;
    for (size_t v = 0; v < opt->nvariants; v++) {
        for (uint32_t i = 0; i < opt->x.ntensors; i++) {
            if (opt->live[i].variant != v) continue;
            ExecTensor *t = &opt->x.tensors[i];
            t->active = opt->tensors[opt->live[i].info].grad != NULL;
            if (!t->active) continue;
            opt->active[opt->nactive++] = i;
            opt->groups[t->group].active = true;
            numel += t->numel;
        }
    }
    if (opt->numel_all_slot >= 0)
        opt->x.global[opt->m->slots[opt->numel_all_slot].index] = (double)numel;
}

static void fill_rows(dsopt_optimizer *opt)
{
    size_t r = 0, a = 0;
    for (size_t v = 0; v < opt->nvariants; v++) {
        opt->variants[v].row_begin = r;
        for (; a < opt->nactive && opt->live[opt->active[a]].variant == v; a++) {
            LiveTensor *l = &opt->live[opt->active[a]];
            const ExecTensor *t = &opt->x.tensors[opt->active[a]];
            l->row = r;
            for (int64_t first = 0; first < t->numel; first += DS_CHUNK)
                opt->rows[r++] =
                    ds_flat_row(opt->active[a], first,
                                t->numel - first < DS_CHUNK ? t->numel - first : DS_CHUNK);
            l->nrows = r - l->row;
        }
        opt->variants[v].row_end = r;
    }
    opt->nrows = r;
}

/* Tensors of one group with equal t share a class block. */
static void fill_classes(dsopt_optimizer *opt)
{
    opt->nclasses = 0;
    memset(opt->class_table, 0xff, (opt->class_mask + 1) * sizeof *opt->class_table);
    for (size_t a = 0; a < opt->nactive; a++) {
        uint32_t i = opt->active[a], group = opt->x.tensors[i].group;
        double t = opt->t_slot >= 0 ? tensor_t(opt, i) : 0;
        uint64_t h = ((uint64_t)t * 0x9e3779b97f4a7c15u + group) * 0xd1342543de82ef95u;
        size_t at = (size_t)(h >> 32) & opt->class_mask;
        uint32_t c;
        for (; (c = opt->class_table[at]) != UINT32_MAX; at = (at + 1) & opt->class_mask) {
            uint32_t rep = opt->class_rep[c];
            if (opt->x.tensors[rep].group == group && (opt->t_slot < 0 || tensor_t(opt, rep) == t))
                break;
        }
        if (c == UINT32_MAX) {
            c = opt->class_table[at] = (uint32_t)opt->nclasses++;
            opt->class_rep[c] = i;
        }
        opt->live[i].class_ = c;
        opt->tensor_rows[i].u[LEVEL_CLASS] = opt->class_blocks + c * opt->block_size[LEVEL_CLASS];
    }
}

/* Where each worker's rows begin: shares of equal cost. One share for all where work is too small
 * to be worth waking anyone. */
static void fill_split(dsopt_optimizer *opt)
{
    int threads = pool_threads(opt->ctx->pool);
    int64_t cost = 0, so_far = 0;
    for (size_t r = 0; r < opt->nrows; r++) cost += opt->rows[r].count + ROW_COST;
    if (cost < SMALL_WORK) threads = 1;
    opt->brief = cost < BRIEF_WORK;
    if ((size_t)threads > opt->nrows) threads = opt->nrows ? (int)opt->nrows : 1;
    opt->nshares = threads;
    int w = 0;
    opt->split[0] = 0;
    for (size_t r = 0; r < opt->nrows; r++) {
        /* Worker w + 1 begins at the row whose middle lies behind w + 1 shares. */
        while (w + 1 < threads && so_far + opt->rows[r].count / 2 >= cost / threads * (w + 1))
            opt->split[++w] = r;
        so_far += opt->rows[r].count + ROW_COST;
    }
    while (w < threads) opt->split[++w] = opt->nrows;
}

dsopt_status tables_update(dsopt_optimizer *opt)
{
    if (opt->rebound) { /* one by one, so that overlaps are looked for when all are in place */
        dsopt_status st = overlaps_check(opt);
        if (st != DSOPT_OK) return st;
        opt->rebound = false;
    }
    if (opt->stale) {
        fill_active(opt);
        if (opt->plan) {
            fill_rows(opt);
            fill_classes(opt);
            fill_split(opt);
        }
        opt->stale = false;
    }
    /* Every tensor of a class has advanced with the others since. */
    if (opt->plan && opt->t_slot >= 0)
        for (size_t c = 0; c < opt->nclasses; c++)
            opt->class_blocks[c * opt->block_size[LEVEL_CLASS]] = tensor_t(opt, opt->class_rep[c]);
    return DSOPT_OK;
}
