/* concurrent.c - threads: one program used by several contexts at once, workers of one context, and
 * the pool under load.
 *
 *   in:  4 threads, each a context of its own with 2 workers, all with the same three programs
 *   out: every one computes the bits of a single thread; ThreadSanitizer has nothing to say
 */
#define _GNU_SOURCE
#include "rt.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

enum { THREADS = 4, N = 20000, SMALL = 300, STEPS = 6 };

static dsopt_program *shared[3];

typedef struct Job {
    float big[N], grad[N], small[SMALL], small_grad[SMALL];
    uint16_t half[N], half_grad[N];
    int workers, which;
    pthread_t thread;
} Job;

static void train(Job *j)
{
    Rt r;
    rt_open(&r, j->workers);
    uint64_t seed = 5;
    for (int i = 0; i < N; i++) {
        j->big[i] = rt_random(&seed);
        j->half[i] = rt_bf16(j->big[i]);
    }
    for (int i = 0; i < SMALL; i++) j->small[i] = rt_random(&seed);
    dsopt_tensor t[3] = {
        rt_tensor("big", NULL, DSOPT_F32, j->big, j->grad, 1, (int64_t[]){N}),
        rt_tensor("small", "s", DSOPT_F32, j->small, j->small_grad, 1, (int64_t[]){SMALL}),
        rt_tensor("half", NULL, DSOPT_BF16, j->half, j->half_grad, 1, (int64_t[]){N})};
    dsopt_optimizer *o;
    REQUIRE(dsopt_optimizer_create(r.ctx, shared[j->which], t, 3, &o) == DSOPT_OK, "%s",
            dsopt_error_message(r.ctx));
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < N; i++) {
            j->grad[i] = rt_random(&seed);
            j->half_grad[i] = rt_bf16(j->grad[i]);
        }
        for (int i = 0; i < SMALL; i++) j->small_grad[i] = rt_random(&seed);
        rt_step(&r, o);
    }
    dsopt_optimizer_destroy(o);
    rt_close(&r);
}

static void *train_main(void *arg)
{
    train(arg);
    return NULL;
}

static bool equal(const Job *a, const Job *b)
{
    return memcmp(a->big, b->big, sizeof a->big) == 0 &&
           memcmp(a->small, b->small, sizeof a->small) == 0 &&
           memcmp(a->half, b->half, sizeof a->half) == 0;
}

static void shared_programs(void)
{
    static Job alone[3], job[THREADS];
    static const char *const rules[3] = {"adamw", "lamb", "lion"};
    Rt r;
    rt_open(&r, 1);
    /* First all at once, on programs for which nothing is built yet; then one by one. */
    for (int k = 0; k < 3; k++) shared[k] = rt_program(&r, rules[k], NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < THREADS; i++) {
            job[i].workers = 1 + i % 3;
            job[i].which = round == 0 ? 1 : (i + round) % 3;
            REQUIRE(pthread_create(&job[i].thread, NULL, train_main, &job[i]) == 0, "thread");
        }
        for (int i = 0; i < THREADS; i++) pthread_join(job[i].thread, NULL);
        for (int k = 0; round == 0 && k < 3; k++) {
            alone[k].workers = 1;
            alone[k].which = k;
            train(&alone[k]);
        }
        for (int i = 0; i < THREADS; i++)
            CHECK(equal(&job[i], &alone[job[i].which]), "round %d thread %d %s: other bits", round,
                  i, rules[job[i].which]);
    }
    for (int k = 0; k < 3; k++) dsopt_program_release(shared[k]);
    rt_close(&r);
}

/* A program's last reference goes on another thread than its first came from. */
static void *release_main(void *arg)
{
    dsopt_program_release(arg);
    return NULL;
}

static void references(void)
{
    Rt r;
    rt_open(&r, 1);
    dsopt_program *p = rt_program(&r, "sgd", NULL);
    pthread_t t[8];
    for (int i = 0; i < 8; i++) {
        dsopt_program_retain(p);
        REQUIRE(pthread_create(&t[i], NULL, release_main, p) == 0, "thread");
    }
    dsopt_program_release(p);
    for (int i = 0; i < 8; i++) pthread_join(t[i], NULL);
    rt_close(&r);
}

/* Contexts come and go; more workers than processors, than rows, and none at all. */
static void pools(void)
{
    static float p[70000], g[70000];
    for (int threads = 1; threads <= 9; threads++) {
        Rt r;
        rt_open(&r, threads);
        for (int64_t n = 1; n <= 70000; n *= 13) {
            for (int64_t i = 0; i < n; i++) {
                p[i] = 0;
                g[i] = 1;
            }
            dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, &n);
            dsopt_optimizer *o = rt_optimizer(&r, rt_program(&r, "sgd", NULL), &t, 1);
            rt_set(&r, o, NULL, "lr", 1);
            for (int s = 0; s < 3; s++) rt_step(&r, o);
            for (int64_t i = 0; i < n; i++)
                CHECK(p[i] == -3, "%d threads, element %lld of %lld: %g", threads, (long long)i,
                      (long long)n, (double)p[i]);
            dsopt_optimizer_destroy(o);
        }
        rt_close(&r);
    }
}

/* Threads of this process; one that was joined may be seen for a moment longer. */
static int tasks(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n - 2; /* . and .. */
}

/* threads = 0 takes the processors that the calling thread may run on, and works on one alone. */
static void affinity(void)
{
    cpu_set_t before, one;
    REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0, "affinity");
    CPU_ZERO(&one);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
        if (CPU_ISSET(c, &before)) CPU_SET(c, &one);
    usleep(20000);
    const int alone = tasks(); /* ThreadSanitizer has one of its own */
    for (int k = 0; k < 2; k++) {
        const cpu_set_t *set = k ? &before : &one;
        REQUIRE(sched_setaffinity(0, sizeof *set, set) == 0, "affinity");
        Rt r;
        rt_open(&r, 0);
        int want = alone + CPU_COUNT(set) - 1;
        for (int i = 0; i < 1000 && tasks() != want; i++) usleep(1000);
        CHECK(tasks() == want, "%d threads on %d processors, not %d", tasks(), CPU_COUNT(set),
              want);
        static Job j;
        shared[0] = rt_program(&r, "adamw", NULL);
        j.workers = 0;
        j.which = 0;
        train(&j);
        CHECK(isfinite(j.big[0]), "trained");
        dsopt_program_release(shared[0]);
        rt_close(&r);
    }
}

int main(void)
{
    shared_programs();
    references();
    pools();
    affinity();
    return check_done();
}
