/* bench_step.c - times the step: the libtcc tile backend beside standalone C through gcc, an
 * in-place stream of the same bytes (the memory limit) and PyTorch, all in one run, interleaved, so
 * that what else the machine does falls on all alike.
 *
 *     bench_step --rules adamw --dtypes f32 --sizes 1M,10000x100 --threads 1,2 --torch python3
 *     bench_step --rules adafactor --sizes 512*512*3*3     one tensor of this shape
 *     adamw f32 1 thread 1 x 1048576: libtcc 0.526 ns 53.2 GB/s | gcc 0.619 ratio 0.85 [0.84, 0.86]
 *
 * A ratio is libtcc's time over the other's, the median of paired rounds, with its 95 % interval.
 */
#include "bench.h"
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTESTANTS = 5 };
#define RULES "adamw,lion,sgd-momentum,adamw-clip,lamb,prodigy,adafactor,came,norm,matrix-norm"

static const char *const dtypes[] = {"f32", "bf16"};

static const BenchRule rules[] = {
    {.label = "adamw", .name = "adamw", .torch = "adamw"},
    {.label = "lion", .name = "lion"},
    {.label = "sgd-momentum", .name = "sgd", .defines = "use_momentum=1", .torch = "sgd-momentum"},
    {.label = "adamw-clip", .name = "adamw", .defines = "clip=1", .torch = "adamw-clip"},
    {.label = "lamb", .name = "lamb"},
    {.label = "prodigy", .name = "prodigy"},
    {.label = "adafactor", .name = "adafactor", .matrix = true, .torch = "adafactor"},
    {.label = "came", .name = "came", .matrix = true},
    /* Reads the gradient and moves nothing else: beside the stream, a norm over a plain read. */
    {.label = "norm",
     .name = "norm",
     .text = "optimizer norm {\n  n = norm[all](g)\n  when n < 0 { p := g }\n  export n\n}\n",
     .bytes_read = 4},
    {.label = "matrix-norm",
     .name = "matrix_norm",
     .text = "optimizer matrix_norm {\n  shape [.., r, c] { n = norm[matrix](g) } else { n = norm(g) }"
             "\n  p -= 1e-3 * g / max(1e-3, n)\n}\n",
     .matrix = true},
};

static BenchRule *library; /* the optimizers of the standard library */
static size_t library_count;

typedef struct Settings {
    const char *rules, *dtypes, *sizes, *threads, *torch, *against;
    int rounds;
    bool csv, latency;
} Settings;

/* Whether `list` ("a,b,c") has `word`. */
static bool listed(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
        if (!strncmp(p, word, n) && (p[n] == ',' || !p[n])) return true;
    return false;
}

/* A matrix as square as powers of two make it. */
static int64_t rows_of(int64_t elements)
{
    int64_t rows = 1;
    while (rows * rows * 2 < elements && elements % (rows * 2) == 0) rows *= 2;
    return rows;
}

/* "64K", "16M", "4096", "10000x100" tensors of so many elements, "512*512*3*3". */
static bool parse_size(const char *s, BenchCase *bc)
{
    char *end;
    long long n = strtoll(s, &end, 10), each = 1;
    bc->tensors = 1;
    bc->ndim = 0;
    if (*end == '*') {
        for (bc->shape[bc->ndim++] = n; *end == '*' && bc->ndim < 4; n *= each)
            bc->shape[bc->ndim++] = each = strtoll(end + 1, &end, 10);
    } else if (*end == 'x') {
        bc->tensors = n;
        each = strtoll(end + 1, &end, 10);
        n *= each;
    }
    if (*end == 'K') n <<= 10, end++;
    if (*end == 'M') n <<= 20, end++;
    bc->elements = n;
    if (n <= 0 || each <= 0 || (*end && *end != ',')) return false;
    if (bc->ndim) return true;
    each = n / bc->tensors;
    bc->shape[0] = bc->rule->matrix ? rows_of(each) : each;
    bc->shape[1] = each / bc->shape[0];
    bc->ndim = bc->rule->matrix ? 2 : 1;
    return true;
}

static int usage(void)
{
    fprintf(stderr,
            "bench_step [--rules " RULES "] [--dtypes f32,bf16]\n"
            "           [--sizes 4K,64K,1M,16M,64M,10000x100,512*512*3*3]\n"
            "           [--threads 1,2] [--rounds 31] [--against gcc,stream] [--torch PYTHON]\n"
            "           [--csv] [--no-latency]\n"
            "--rules also takes any optimizer of the standard library, and all: every one\n");
    return 2;
}

/* How many steps make a timing of at least 2 ms. */
static int steps_per_round(Contestant *c)
{
    int n = 1;
    for (c->run(c, 1); n < 1 << 16; n *= 2)
        if (c->run(c, n) > 1e6) break;
    return n;
}

/* "512*512*3*3"; of one or two dimensions: the elements. */
static const char *shape_text(const BenchCase *bc)
{
    static char text[96];
    int n = snprintf(text, sizeof text, "%lld",
                     (long long)(bc->ndim > 2 ? bc->shape[0] : bc->elements / bc->tensors));
    for (int d = 1; bc->ndim > 2 && d < bc->ndim; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "*%lld", (long long)bc->shape[d]);
    return text;
}

static void print_case(const BenchCase *bc, Contestant *cs, int n, const Settings *s)
{
    double bytes = bc->bytes_read + bc->bytes_written;
    if (!s->csv)
        printf("%s%s %s %d thread%s %lld x %s:", bc->rule->label,
               bc->elementwise ? " (element-wise)" : "", bc->dtype, bc->threads,
               bc->threads > 1 ? "s" : "", (long long)bc->tensors, shape_text(bc));
    for (int i = 0; i < n; i++) {
        double ratio, lo, hi;
        bench_ratio(cs[0].ns, cs[i].ns, s->rounds, &ratio, &lo, &hi);
        double *sorted = malloc(sizeof *sorted * (size_t)s->rounds);
        if (!sorted) exit(1);
        memcpy(sorted, cs[i].ns, sizeof *sorted * (size_t)s->rounds);
        double per = bench_median(sorted, s->rounds) / (double)bc->elements;
        free(sorted);
        if (s->csv)
            printf("%s,%s,%s,%d,%lld,%lld,%.4f,%.3f\n", bc->rule->label, bc->dtype, cs[i].name,
                   bc->threads, (long long)bc->tensors, (long long)bc->elements, per, bytes / per);
        else if (i == 0)
            printf(" %s %.3f ns %.1f GB/s", cs[i].name, per, bytes / per);
        else
            printf(" | %s %.3f ratio %.2f [%.2f, %.2f]", cs[i].name, per, ratio, lo, hi);
        if (!s->csv && !strcmp(cs[i].name, "stream")) printf(" %.0f %% of it", 100 / ratio);
    }
    if (!s->csv) printf("\n");
    fflush(stdout);
}

static void run_case(BenchCase *bc, const Settings *s)
{
    Contestant cs[CONTESTANTS];
    int n = 0, steps[CONTESTANTS];
    if (!bench_plan(bc)) {
        fprintf(stderr, "%s does not compile\n", bc->rule->name);
        exit(1);
    }
    if (!open_dsopt(&cs[n++], "libtcc", "c", bc)) exit(1);
    if (listed(s->against, "gcc") && open_dsopt(&cs[n], "gcc", "cc", bc)) n++;
    if (listed(s->against, "stream") && open_stream(&cs[n], bc)) n++;
    if (s->torch && open_torch(&cs[n], "torch-fused", s->torch, bc)) n++;
    if (s->torch && open_torch(&cs[n], "torch-foreach", s->torch, bc)) n++;
    for (int i = 0; i < n; i++) {
        cs[i].ns = calloc((size_t)s->rounds, sizeof *cs[i].ns);
        if (!cs[i].ns) exit(1);
        steps[i] = steps_per_round(&cs[i]);
    }
    for (int round = 0; round < s->rounds; round++)
        for (int k = 0; k < n; k++) {
            int i = (k + round) % n; /* no contestant always follows the same one */
            cs[i].ns[round] = cs[i].run(&cs[i], steps[i]) / steps[i];
        }
    print_case(bc, cs, n, s);
    for (int i = 0; i < n; i++) {
        cs[i].close(&cs[i]);
        free(cs[i].ns);
    }
}

/* One rule, in all dtypes, sizes and threads that are asked for. */
static bool run_rule(const BenchRule *rule, const Settings *s)
{
    for (size_t d = 0; d < 2; d++) {
        if (!listed(s->dtypes, dtypes[d])) continue;
        for (const char *size = s->sizes; size;
             size = strchr(size, ','), size = size ? size + 1 : NULL) {
            BenchCase bc = {.rule = rule, .dtype = dtypes[d]};
            if (!parse_size(size, &bc)) return false;
            for (const char *t = s->threads; t; t = strchr(t, ','), t = t ? t + 1 : NULL) {
                bc.threads = atoi(t);
                if (bc.threads < 1) return false;
                run_case(&bc, s);
            }
        }
    }
    return true;
}

static bool is_label(const char *word, size_t n);

static int run_all(const Settings *s)
{
    bool all = !strcmp(s->rules, "all"), good = true;
    if (s->csv) printf("rule,dtype,backend,threads,tensors,elements,ns_per_param,gbps\n");
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        if (good && !all && listed(s->rules, rules[r].label)) good = run_rule(&rules[r], s);
    for (size_t r = 0; r < library_count; r++) {
        const char *label = library[r].label;
        bool own = is_label(label, strlen(label));
        if (good && (all || (!own && listed(s->rules, label)))) good = run_rule(&library[r], s);
    }
    if (!good) return usage();
    if (s->latency) bench_latency(s->csv);
    return 0;
}

static bool is_label(const char *word, size_t n)
{
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
        if (strlen(rules[r].label) == n && !strncmp(rules[r].label, word, n)) return true;
    return false;
}

static bool is_rule(const char *word, size_t n)
{
    for (size_t r = 0; r < library_count; r++)
        if (strlen(library[r].label) == n && !strncmp(library[r].label, word, n)) return true;
    return is_label(word, n) || (n == 3 && !strncmp(word, "all", n));
}

static bool is_dtype(const char *word, size_t n)
{
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        if (strlen(dtypes[d]) == n && !strncmp(dtypes[d], word, n)) return true;
    return false;
}

static bool all_known(const char *list, const char *what, bool (*known)(const char *, size_t))
{
    for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL) {
        size_t n = strcspn(p, ",");
        if (known(p, n)) continue;
        fprintf(stderr, "bench_step: no %s '%.*s'\n", what, (int)n, p);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"rules", 1, NULL, 'r'},
                                          {"dtypes", 1, NULL, 'd'},
                                          {"sizes", 1, NULL, 's'},
                                          {"threads", 1, NULL, 't'},
                                          {"torch", 1, NULL, 'p'},
                                          {"rounds", 1, NULL, 'n'},
                                          {"against", 1, NULL, 'a'},
                                          {"csv", 0, NULL, 'c'},
                                          {"no-latency", 0, NULL, 'l'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    library = bench_stdlib(&library_count);
    Settings s = {.rules = RULES,
                  .dtypes = "f32,bf16",
                  .sizes = "4K,64K,1M,16M,64M,10000x100",
                  .threads = "1,2",
                  .against = "gcc,stream",
                  .rounds = 31,
                  .latency = true};
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) switch (c) {
        case 'r': s.rules = optarg; break;
        case 'd': s.dtypes = optarg; break;
        case 's': s.sizes = optarg; break;
        case 't': s.threads = optarg; break;
        case 'p': s.torch = optarg; break;
        case 'a': s.against = optarg; break;
        case 'n': s.rounds = atoi(optarg); break;
        case 'c': s.csv = true; break;
        case 'l': s.latency = false; break;
        default: return usage();
        }
    if (optind < argc || s.rounds < 3 || !all_known(s.rules, "rule", is_rule) ||
        !all_known(s.dtypes, "dtype", is_dtype))
        return usage();
    return run_all(&s);
}
