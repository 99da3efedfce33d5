/* codegen/tcc: results, errors as text, failing allocations, threads, pages, names, locale.
 *
 *   in:  C texts, good and bad
 *   out: "latency: 0.2 ms" and the count of checks
 *
 * The functions below called next, step, tok and file are there on purpose: libtcc has such names.
 */
#define _GNU_SOURCE
#include "codegen/tcc/tcc.h"
#include "tests/check.h"

#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <xmmintrin.h>

int next(int x);
int step(int x);
int tok = 40;
int file(void);

int next(int x)
{
    return x + 1;
}

int step(int x)
{
    return 2 * x;
}

int file(void)
{
    return 7;
}

static double many(float a, int b, double c, long d, float *e, int f, int g, int h, double i,
                   float j, double k, double l, double m, double n, double o)
{
    return a + b + c + (double)d + *e + f + g + h + i + j + k + l + m + n + o;
}

static const TccSymbol symbols[] = {
    {"next", next}, {"step", step}, {"tok", &tok}, {"file", file}, {"many", many}};
#define SYMBOLS symbols, sizeof symbols / sizeof *symbols

static const char good_text[] =
    "extern int next(int), step(int), file(void), tok;\n"
    "extern double many(float, int, double, long, float *, int, int, int, double, float, double,\n"
    "                   double, double, double, double);\n"
    "static const float table[3] = {0.5f, 1.5f, -0.0f};\n"
    "int answer(void) { return next(step(tok)) + file(); }\n"
    "float entry(long i) { return table[i]; }\n"
    "double all(float *e) { return many(1, 2, 3, 4, e, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }\n"
    "float fraction(void) { return 0.1f + table[0] * 0; }\n"
    "float denormal(void) { return 0x1p-140f; }\n"
    "void loop(long n, float *p, const float *g, float lr)\n"
    "{ long i; for (i = 0; i < n; i++) p[i] = p[i] - lr * g[i]; }\n";

static TccImage build_good(void)
{
    TccImage image;
    char err[500];

    REQUIRE(tcc_build(good_text, SYMBOLS, &image, err, sizeof err), "%s", err);
    return image;
}

static void test_results(void)
{
    TccImage image = build_good();
    int (*answer)(void) = (int (*)(void))tcc_image_symbol(&image, "answer");
    float (*entry)(long) = (float (*)(long))tcc_image_symbol(&image, "entry");
    double (*all)(float *) = (double (*)(float *))tcc_image_symbol(&image, "all");
    void (*loop)(long, float *, const float *, float) =
        (void (*)(long, float *, const float *, float))tcc_image_symbol(&image, "loop");
    float five = 5, p[3] = {1, 2, 3}, g[3] = {1, 1, 4};

    REQUIRE(answer && entry && all && loop, "a symbol is missing");
    CHECK(answer() == 88, "%d", answer());
    CHECK(entry(1) == 1.5f && entry(2) == 0 && signbit(entry(2)), "constants");
    CHECK(all(&five) == 120, "%g", all(&five));
    loop(3, p, g, 0.5f);
    CHECK(p[0] == 0.5f && p[1] == 1.5f && p[2] == 1.0f, "%g %g %g", p[0], p[1], p[2]);
    CHECK(!tcc_image_symbol(&image, "table"), "a static name is no symbol");
    CHECK(!tcc_image_symbol(&image, "next"), "a symbol passed in is not one of the image");
    CHECK(!tcc_image_symbol(&image, "nothing"), "an unknown name");
    tcc_image_free(&image);
    CHECK(!tcc_image_symbol(&image, "answer"), "a freed image is empty");
    tcc_image_free(&image);
}

/* Each text must fail with a message that contains the words. */
static void test_errors(void)
{
    static const struct {
        const char *text, *words;
    } bad[] = {
        {"int f(void) { return x; }", "<string>:1: error: 'x' undeclared"},
        {"int f(void) {\n\n return 1 +; }", "<string>:3: error"},
        {"extern int nowhere(void); int f(void) { return nowhere(); }", "nowhere"},
        /* The process has these; the text must not reach them. */
        {"extern int getpid(void); int f(void) { return getpid(); }", "getpid"},
        {"extern double sqrt(double); double f(double x) { return sqrt(x); }", "sqrt"},
        {"#include <stdio.h>\n", "include file 'stdio.h' not found"},
        {"#include \"/etc/passwd\"\n", "not found"},
        {"#error stop here\n", "stop here"},
        {"int f(void) { return 1; } int f(void) { return 2; }", "redefinition"},
        {"int f(void) { \"unfinished", ""},
    };
    char err[300];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        TccImage image;
        bool built = tcc_build(bad[i].text, SYMBOLS, &image, err, sizeof err);
        CHECK(!built, "built: %s", bad[i].text);
        CHECK(err[0] && strstr(err, bad[i].words), "'%s' is not in: %s", bad[i].words, err);
        CHECK(!image.memory && !image.symbols && !image.out_of_memory, "something is left");
    }
    {
        TccImage image;
        char tiny[6];
        CHECK(!tcc_build(bad[0].text, SYMBOLS, &image, tiny, sizeof tiny), "built");
        CHECK(strlen(tiny) == 5, "%s", tiny);
        CHECK(!tcc_build(bad[0].text, SYMBOLS, &image, NULL, 0), "built");
    }
    /* Right after failures the compiler works as before. */
    test_results();
}

/* The nth allocation fails, for every n: a message, nothing left, and the next compile works. */
static void test_allocations(void)
{
    size_t total, failed = 0;
    TccImage image;
    char err[200];

    tcc_fail_allocation(0);
    image = build_good();
    total = tcc_fail_allocation(0);
    tcc_image_free(&image);
    CHECK(total > 50, "%zu allocations", total);
    for (size_t n = 1; n <= total; n++) {
        bool built;
        tcc_fail_allocation(n);
        built = tcc_build(good_text, SYMBOLS, &image, err, sizeof err);
        CHECK(!built && image.out_of_memory, "allocation %zu of %zu failed unseen", n, total);
        CHECK(strstr(err, "out of memory"), "%s", err);
        failed += !built;
        if (built) tcc_image_free(&image);
    }
    tcc_fail_allocation(0);
    printf("%zu of %zu failing allocations reported\n", failed, total);
    test_results();
}

/* An allocator that counts what is out, and gives nothing from the nth call on. */
typedef struct Counter {
    size_t calls, fail_from, blocks;
} Counter;

static void *counted(void *user, void *block, size_t size)
{
    Counter *c = user;

    if (!size) {
        c->blocks--;
        free(block);
        return NULL;
    }
    if (++c->calls >= c->fail_from) return NULL;
    c->blocks += !block;
    return realloc(block, size);
}

static void test_allocator(void)
{
    Counter c = {0, (size_t)-1, 0};
    const Allocator alloc = {counted, &c};
    TccImage image;
    char err[200];
    size_t calls;

    REQUIRE(tcc_build_with(&alloc, good_text, SYMBOLS, &image, err, sizeof err), "%s", err);
    CHECK(c.blocks == 1, "%zu blocks stay with an image", c.blocks);
    tcc_image_free(&image);
    CHECK(c.blocks == 0 && c.calls >= 2, "%zu blocks, %zu calls", c.blocks, c.calls);
    calls = c.calls;
    for (size_t n = 1; n <= calls; n++) {
        c = (Counter){0, n, 0};
        CHECK(!tcc_build_with(&alloc, good_text, SYMBOLS, &image, err, sizeof err), "built");
        CHECK(image.out_of_memory && c.blocks == 0, "%s, %zu blocks left", err, c.blocks);
    }
}

static void test_leaks(void)
{
    size_t before = 0;

    for (int i = 0; i < 1000; i++) {
        TccImage image = build_good();
        tcc_image_free(&image);
        if (i == 100) before = mallinfo2().uordblks + mallinfo2().hblkhd;
    }
    CHECK(mallinfo2().uordblks + mallinfo2().hblkhd <= before, "heap went from %zu to %zu", before,
          mallinfo2().uordblks + mallinfo2().hblkhd);
}

static void *compile_often(void *unused)
{
    for (int i = 0; i < 50; i++) {
        test_results();
        if (i % 10 == 0) {
            TccImage image;
            char err[100];
            CHECK(!tcc_build("int f(void) { return x; }", SYMBOLS, &image, err, sizeof err),
                  "built");
        }
    }
    return unused;
}

static void test_threads(void)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        REQUIRE(pthread_create(&threads[i], NULL, compile_often, NULL) == 0, "no thread");
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

/* A walk over the process's mappings: none is writable and executable, one is our code. */
static void test_pages(void)
{
    TccImage image = build_good();
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[500];
    int ours = 0;

    REQUIRE(maps, "/proc/self/maps");
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char mode[5];
        REQUIRE(sscanf(line, "%lx-%lx %4s", &from, &to, mode) == 3, "%s", line);
        CHECK(!(mode[1] == 'w' && mode[2] == 'x'), "%s", line);
        if (from <= (unsigned long)image.memory && (unsigned long)image.memory < to) {
            ours++;
            CHECK(!strcmp(mode, "r-xp"), "%s", line);
        }
    }
    CHECK(ours == 1, "%d mappings hold the code", ours);
    fclose(maps);
    tcc_image_free(&image);
}

/* The text means the same under a decimal comma, flush-to-zero and another rounding. */
static void test_surroundings(void)
{
    unsigned control = _mm_getcsr(), changed = control | 0x8040u | 0x6000u;
    const char *locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    float (*fraction)(void), (*denormal)(void);
    TccImage image;

    for (size_t i = 0; i < 3 && !setlocale(LC_ALL, locales[i]); i++)
        ;
    printf("decimal point of the locale here: '%s'\n", localeconv()->decimal_point);
    _mm_setcsr(changed);
    image = build_good();
    CHECK(_mm_getcsr() == changed, "the environment came back as %x", _mm_getcsr());
    _mm_setcsr(control);
    fraction = (float (*)(void))tcc_image_symbol(&image, "fraction");
    denormal = (float (*)(void))tcc_image_symbol(&image, "denormal");
    CHECK(fraction() == 0.1f, "%.9g", fraction());
    CHECK(denormal() == 0x1p-140f, "%g", denormal());
    tcc_image_free(&image);
    setlocale(LC_ALL, "C");
}

static void test_latency(void)
{
    double best = 1e9;

    for (int i = 0; i < 50; i++) {
        struct timespec a, b;
        TccImage image;
        double ms;
        clock_gettime(CLOCK_MONOTONIC, &a);
        image = build_good();
        clock_gettime(CLOCK_MONOTONIC, &b);
        ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
        best = ms < best ? ms : best;
        tcc_image_free(&image);
    }
    printf("latency: %.3f ms\n", best);
}

int main(void)
{
    test_latency();
    test_results();
    test_errors();
    test_allocations();
    test_allocator();
    test_leaks();
    test_threads();
    test_pages();
    test_surroundings();
    return check_done();
}
