/* bench_stream.c - the memory limit: as many bytes read and written per element as the step, in
 * place, and no arithmetic to speak of.
 *
 *     AdamW f32 reads 16 and writes 12 bytes:
 *     a buffer of 12 bytes per element is updated in place, one of 4 is read
 */
#include "bench.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct Stream {
    float *rw, *ro;
    int64_t nrw, nro; /* floats */
    int threads;
    float *sums;
} Stream;

typedef struct Piece {
    Stream *s;
    pthread_barrier_t *start;
    int index, n;
    double began, ended;
} Piece;

static float sweep(float *restrict rw, int64_t nrw, const float *restrict ro, int64_t nro)
{
    float sum[16] = {0};
    int64_t i = 0, j = 0;
    /* both buffers advance together, as the step's do */
    for (int64_t block = 4096; i < nrw || j < nro;) {
        int64_t iend = i + block < nrw ? i + block : nrw;
        for (; i < iend; i++) rw[i] = rw[i] * 0.999f;
        int64_t share = nrw ? (int64_t)((double)block * (double)nro / (double)nrw) + 16 : block;
        int64_t jend = j + share < nro && i < nrw ? j + share : nro;
        for (; j + 16 <= jend; j += 16)
            for (int k = 0; k < 16; k++) sum[k] += ro[j + k];
        if (i >= nrw && jend == nro) break;
    }
    float total = 0;
    for (int k = 0; k < 16; k++) total += sum[k];
    return total;
}

static void *run_piece(void *arg)
{
    Piece *p = arg;
    Stream *s = p->s;
    int64_t a0 = s->nrw / s->threads * p->index, b0 = s->nro / s->threads * p->index;
    pthread_barrier_wait(p->start); /* making threads is not what is measured */
    p->began = bench_now();
    for (int i = 0; i < p->n; i++)
        s->sums[p->index * 16] +=
            sweep(s->rw + a0, s->nrw / s->threads, s->ro + b0, s->nro / s->threads);
    p->ended = bench_now();
    return NULL;
}

static double run_stream(Contestant *c, int n)
{
    Stream *s = c->self;
    pthread_t threads[64];
    Piece pieces[64];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)s->threads);
    for (int i = 0; i < s->threads; i++) {
        pieces[i] = (Piece){.s = s, .start = &start, .index = i, .n = n};
        if (i && pthread_create(&threads[i], NULL, run_piece, &pieces[i]) != 0) abort();
    }
    run_piece(&pieces[0]);
    double ended = pieces[0].ended;
    for (int i = 1; i < s->threads; i++) {
        pthread_join(threads[i], NULL);
        if (pieces[i].ended > ended) ended = pieces[i].ended;
    }
    pthread_barrier_destroy(&start);
    return ended - pieces[0].began;
}

static void close_stream(Contestant *c)
{
    Stream *s = c->self;
    free(s->rw);
    free(s->ro);
    free(s->sums);
    free(s);
}

bool open_stream(Contestant *c, const BenchCase *bc)
{
    Stream *s = calloc(1, sizeof *s);
    *c = (Contestant){.name = "stream", .run = run_stream, .close = close_stream, .self = s};
    if (!s) return false;
    s->threads = bc->threads < 64 ? bc->threads : 64;
    s->nrw = bc->elements * bc->bytes_written / 4;
    s->nro = bc->elements * (bc->bytes_read - bc->bytes_written) / 4;
    if (s->nro < 0) s->nro = 0;
    s->rw = aligned_alloc(64, ((size_t)s->nrw * 4 + 127) / 64 * 64);
    s->ro = aligned_alloc(64, ((size_t)s->nro * 4 + 127) / 64 * 64);
    s->sums = calloc(64 * 16, sizeof *s->sums);
    if (!s->rw || !s->ro || !s->sums) return close_stream(c), false;
    for (int64_t i = 0; i < s->nrw; i++) s->rw[i] = 1;
    for (int64_t i = 0; i < s->nro; i++) s->ro[i] = 1;
    return true;
}
