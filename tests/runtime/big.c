/* big.c - more than 2^31 elements: bf16 SGD over 2^31 + 5000 of them, first, last and around every
 * 2^30 checked.
 *
 * The gradient is one page of ones mapped again and again, so that the test needs 4.3 GB for p and
 * no more.
 *
 *   in:  p = 1, g = 1, lr 0.5
 *   out: p = 0.5 everywhere
 */
#define _GNU_SOURCE
#include "rt.h"
#include <sys/mman.h>
#include <unistd.h>

static long long available_mib(void)
{
    long long kib = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1) break;
    if (f) fclose(f);
    return kib / 1024;
}

/* `bytes` of address space, all showing the same 64 MiB of ones. */
static uint16_t *ones(size_t bytes)
{
    const size_t piece = 64u << 20;
    int fd = memfd_create("ones", 0);
    REQUIRE(fd >= 0 && ftruncate(fd, (off_t)piece) == 0, "memfd");
    char *at = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED, "address space");
    for (size_t k = 0; k < bytes; k += piece) {
        size_t n = bytes - k < piece ? bytes - k : piece;
        REQUIRE(mmap(at + k, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
                    MAP_FAILED,
                "map");
    }
    close(fd);
    uint16_t *g = (uint16_t *)at;
    for (size_t i = 0; i < piece / 2; i++) g[i] = 0x3f80;
    return g;
}

int main(void)
{
    const int64_t n = (1ll << 31) + 5000;
    const size_t bytes = ((size_t)n * 2 + 4095) & ~(size_t)4095;
    if (available_mib() < 6 * 1024)
        SKIP("needs 6 GB of memory, %lld MiB are available", available_mib());
    uint16_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED, "memory");
    uint16_t *g = ones(bytes);
    for (int64_t i = 0; i < n; i++) p[i] = 0x3f80;
    Rt r;
    rt_open(&r, 0);
    dsopt_tensor t = rt_tensor("huge", NULL, DSOPT_BF16, p, g, 1, &n);
    dsopt_optimizer *o = rt_optimizer(&r, rt_program(&r, "sgd", NULL), &t, 1);
    rt_set(&r, o, NULL, "lr", 0.5);
    dsopt_report rep = rt_step(&r, o);
    CHECK(rep.result == DSOPT_STEP_APPLIED, "%s", dsopt_result_name(rep.result));
    int64_t wrong = 0, first = -1;
    for (int64_t i = 0; i < n; i++) {
        if (p[i] == 0x3f00) continue;
        if (wrong++ == 0) first = i;
    }
    CHECK(wrong == 0, "%lld elements, the first %lld: 0x%04x", (long long)wrong, (long long)first,
          first < 0 ? 0 : p[first]);
    /* A bad value beyond 2^31 is found, and named by its index. The page is shared, so the first
     * one that shows it is 4999. */
    p[n - 1] = 0x3f80;
    g[4999] = 0x7f80;
    rep = rt_step(&r, o);
    CHECK(rep.result == DSOPT_STEP_SKIPPED_OVERFLOW && rep.bad_index == 4999, "%s at %lld",
          dsopt_result_name(rep.result), (long long)rep.bad_index);
    CHECK(p[n - 1] == 0x3f80 && p[0] == 0x3f00, "a skipped step moved something");
    dsopt_optimizer_destroy(o);
    rt_close(&r);
    return check_done();
}
