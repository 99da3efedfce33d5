/* device_cpu.c - the CPU as a device: a pool of threads for short parallel jobs, and the
 * floating-point environment of a step.
 *
 * A job is offered to workers, not given: whoever comes in time takes it, the caller always works
 * too, and when the caller has nothing left to do it takes back what nobody took. So a job must be
 * one of which any number of threads can do all, and a worker that the system does not run costs
 * nothing. Requires one caller at a time (the context's thread). Ensures that pool_run returns with
 * all work done and visible. Workers spin for some microseconds after a job, since a step is
 * several of them in a row, and then sleep on a futex.
 *
 *     Pool *p = pool_new(alloc, 4);
 *     pool_run(p, 3, job, arg);  // job(arg, 0, …) here, and 1 and 2 on workers that are awake
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
#include <time.h>
#include <unistd.h>
#include <xmmintrin.h>

enum { SPIN_ROUNDS = 2000, CACHE_LINE = 64, FOLLOWS_NS = 200000 }; /* rounds: about 30 us */

/* IDLE -> OFFERED by the caller; OFFERED -> TAKEN -> IDLE by the worker; OFFERED -> IDLE by the
 * caller, who takes it back. */
enum { IDLE, OFFERED, TAKEN, QUIT };

typedef struct Worker {
    _Alignas(CACHE_LINE) atomic_uint state;
    atomic_bool asleep, caller_asleep; /* on the state */
    int index;
    pthread_t thread;
    Region scratch;
    PoolJob job; /* what is offered */
    void *arg;
} Worker;

struct Pool {
    const Allocator *alloc;
    int threads;
    size_t scratch_bytes;
    int64_t last_run; /* when the last brief job was done */
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

HostState host_enter(void)
{
    HostState saved;
    fegetenv(&saved.fp);
    fesetenv(FE_DFL_ENV);
    /* "C" is a static object of the C library: this cannot fail and needs no freelocale. */
    saved.locale = uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
    return saved;
}

void host_leave(const HostState *saved)
{
    uselocale(saved->locale);
    fesetenv(&saved->fp);
}

/* Waits until the state is not `seen`. The flag goes up before the last look at the state, and
 * whoever changes the state looks at the flag afterwards: one of the two sees the other. */
static void await_change(atomic_uint *state, unsigned seen, atomic_bool *asleep)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(state, memory_order_acquire) != seen) return;
        _mm_pause();
    }
    atomic_store(asleep, true);
    while (atomic_load(state) == seen) futex_wait(state, seen);
    atomic_store(asleep, false);
}

static void change(atomic_uint *state, unsigned to, atomic_bool *other_asleep)
{
    atomic_store(state, to);
    if (atomic_load(other_asleep)) futex_wake(state);
}

static void *worker_main(void *arg)
{
    Worker *w = arg;
    fpenv_enter();
    for (;;) {
        await_change(&w->state, IDLE, &w->asleep);
        unsigned seen = OFFERED;
        if (atomic_compare_exchange_strong(&w->state, &seen, TAKEN)) {
            w->job(w->arg, w->index, w->scratch.base);
            change(&w->state, IDLE, &w->caller_asleep);
        } else if (seen == QUIT) {
            return NULL;
        }
    }
}

static void offer(Worker *w, bool wake, PoolJob job, void *arg)
{
    if (!wake && atomic_load(&w->asleep)) return;
    w->job = job;
    w->arg = arg;
    change(&w->state, OFFERED, &w->asleep);
}

static void take_back_or_await(Worker *w)
{
    unsigned seen = OFFERED;
    if (!atomic_compare_exchange_strong(&w->state, &seen, IDLE) && seen == TAKEN)
        await_change(&w->state, TAKEN, &w->caller_asleep);
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void pool_run(Pool *p, int threads, bool brief, PoolJob job, void *arg)
{
    if (threads > p->threads) threads = p->threads;
    /* To wake a thread takes as long as a brief job; but where one job follows another, the thread
     * will be awake for the next ones. */
    bool wake = !brief || now_ns() - p->last_run < FOLLOWS_NS;
    for (int i = 1; i < threads; i++) offer(&p->workers[i], wake, job, arg);
    job(arg, 0, p->workers[0].scratch.base);
    for (int i = 1; i < threads; i++) take_back_or_await(&p->workers[i]);
    if (brief) p->last_run = now_ns();
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
        change(&p->workers[i].state, QUIT, &p->workers[i].asleep);
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
