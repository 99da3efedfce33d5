/* device_cpu.c - the CPU as a device: a pool of threads for short parallel jobs, and the
 * floating-point environment of a step.
 *
 * Requires: one caller at a time (the context's thread). Ensures: pool_run returns after every
 * worker is done with the job, with all its writes visible. A worker that has nothing to do spins
 * for some microseconds, since a step is several jobs in a row, and then sleeps on a futex; so does
 * the caller while it waits for the others.
 *
 *     Pool *p = pool_new(alloc, 4);
 *     pool_run(p, 3, job, arg);  // job(arg, 0, …) here, 1 and 2 on two workers; the third sleeps on
 *     pool_free(p);
 */
#define _GNU_SOURCE
#include "internal.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { SPIN_ROUNDS = 2000, CACHE_LINE = 64 }; /* about 30 us */

typedef struct Worker {
    _Alignas(CACHE_LINE) atomic_uint go; /* counts the jobs this worker was given */
    atomic_bool asleep;
    Pool *pool;
    int index;
    pthread_t thread;
    Region scratch;
    PoolJob job; /* of the current go; NULL: end */
    void *arg;
} Worker;

struct Pool {
    _Alignas(CACHE_LINE) atomic_int busy; /* workers that are not done with the job */
    atomic_bool caller_asleep;
    const Allocator *alloc;
    int threads;
    size_t scratch_bytes;
    Region self;
    Worker workers[]; /* [0] is the caller */
};

static void futex_wait(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

unsigned fpenv_enter(void)
{
    unsigned saved = _mm_getcsr();
    _mm_setcsr(0x1f80);
    return saved;
}

void fpenv_leave(unsigned saved)
{
    _mm_setcsr(saved);
}

/* Waits until `go` is no longer `seen`. */
static void await_job(Worker *w, unsigned seen)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(&w->go, memory_order_acquire) != seen) return;
        _mm_pause();
    }
    /* The flag goes up before the last look at `go`, and the caller looks at the flag after it has
     * changed `go`: one of us sees the other. */
    atomic_store(&w->asleep, true);
    while (atomic_load(&w->go) == seen) futex_wait(&w->go, seen);
    atomic_store(&w->asleep, false);
}

static void *worker_main(void *arg)
{
    Worker *w = arg;
    Pool *p = w->pool;
    fpenv_enter();
    for (unsigned seen = 0;; seen++) {
        await_job(w, seen);
        if (!w->job) return NULL;
        w->job(w->arg, w->index, w->scratch.base);
        if (atomic_fetch_sub(&p->busy, 1) == 1 && atomic_load(&p->caller_asleep))
            futex_wake((atomic_uint *)&p->busy);
    }
}

static void worker_start(Worker *w, PoolJob job, void *arg)
{
    w->job = job;
    w->arg = arg;
    atomic_fetch_add(&w->go, 1);
    if (atomic_load(&w->asleep)) futex_wake(&w->go);
}

static void await_workers(Pool *p)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(&p->busy, memory_order_acquire) == 0) return;
        _mm_pause();
    }
    atomic_store(&p->caller_asleep, true);
    for (int left; (left = atomic_load(&p->busy)) != 0;)
        futex_wait((atomic_uint *)&p->busy, (unsigned)left);
    atomic_store(&p->caller_asleep, false);
}

void pool_run(Pool *p, int threads, PoolJob job, void *arg)
{
    if (threads > p->threads) threads = p->threads;
    atomic_store(&p->busy, threads - 1);
    for (int i = 1; i < threads; i++) worker_start(&p->workers[i], job, arg);
    job(arg, 0, p->workers[0].scratch.base);
    if (threads > 1) await_workers(p);
}

Pool *pool_new(const Allocator *a, int threads)
{
    Region self;
    if (!region_alloc(a, sizeof(Pool) + (size_t)threads * sizeof(Worker), &self)) return NULL;
    Pool *p = self.base;
    p->self = self;
    p->alloc = a;
    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (p->threads = 1; p->threads < threads; p->threads++) {
        Worker *w = &p->workers[p->threads];
        w->pool = p;
        w->index = p->threads;
        if (pthread_create(&w->thread, NULL, worker_main, w) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (p->threads == threads) return p;
    pool_free(p);
    return NULL;
}

void pool_free(Pool *p)
{
    if (!p) return;
    for (int i = 1; i < p->threads; i++) {
        worker_start(&p->workers[i], NULL, NULL);
        pthread_join(p->workers[i].thread, NULL);
    }
    for (int i = 0; i < p->threads; i++) region_free(p->alloc, &p->workers[i].scratch);
    const Allocator *a = p->alloc;
    Region self = p->self;
    region_free(a, &self);
}

int pool_threads(const Pool *p)
{
    return p->threads;
}

bool pool_reserve(Pool *p, size_t scratch_bytes)
{
    if (scratch_bytes <= p->scratch_bytes) return true;
    for (int i = 0; i < p->threads; i++) {
        Region r;
        if (!region_alloc(p->alloc, scratch_bytes, &r)) return false;
        region_free(p->alloc, &p->workers[i].scratch);
        p->workers[i].scratch = r;
    }
    p->scratch_bytes = scratch_bytes;
    return true;
}

void *pool_scratch(Pool *p, int worker)
{
    return p->workers[worker].scratch.base;
}
