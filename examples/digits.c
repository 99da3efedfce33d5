/* digits.c - a multilayer perceptron in plain C learns handwritten digits; the optimizer is a name
 * or a file of yours.
 *
 * 1,437 of the 1,797 images (8 x 8) train a 64-64-10 network (ReLU, cross entropy, batches of 32),
 * 360 test it. The split, the weights and the order of the images depend on the seed alone, so
 * every optimizer starts from the same point. Links libdsopt only.
 *
 *   in:  digits adamw my.opt --set lr=0.01 --svg curves.svg
 *   out: a line per epoch, test accuracies, the loss curves; status 1 if an optimizer cannot run
 */
#include "dsopt.h"
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PIXELS = 64, HIDDEN = 64, CLASSES = 10, IMAGES = 1797, TEST = 360, TRAIN = IMAGES - TEST };
enum { MAX_RUNS = 8, MAX_SETS = 16, MAX_EPOCHS = 1000 };

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct Data {
    float x[IMAGES][PIXELS]; /* 0 … 1 */
    int label[IMAGES];
} Data;

static uint64_t random_state;

static uint32_t random_u32(void) /* splitmix64 */
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)(z >> 32);
}

static float random_uniform(void) /* [-1, 1) */
{
    return (float)((double)random_u32() * 0x1p-31 - 1);
}

static void shuffle(int *order, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(random_u32() % (uint32_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static int read_image(FILE *f, float *x, int *label)
{
    for (int i = 0; i < PIXELS; i++) {
        int v;
        if (fscanf(f, "%d,", &v) != 1 || v < 0 || v > 16) return 0;
        x[i] = (float)v / 16;
    }
    return fscanf(f, "%d", label) == 1 && *label >= 0 && *label < CLASSES;
}

static int read_data(const char *path, Data *d)
{
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    int n = 0;
    while (n < IMAGES && read_image(f, d->x[n], &d->label[n])) n++;
    fclose(f);
    if (n == IMAGES) return 1;
    fprintf(stderr, "%s: line %d is not 64 pixels (0 … 16) and a digit\n", path, n + 1);
    exit(1);
}

/* $DSOPT_DIGITS, or examples/data/digits.csv in a folder above the program. */
static void find_data(const char *given, Data *d)
{
    char path[4096];
    const char *wanted = given ? given : getenv("DSOPT_DIGITS");
    if (wanted) {
        if (read_data(wanted, d)) return;
        perror(wanted);
        exit(1);
    }
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    for (; n > 0; n--) {
        if (path[n - 1] != '/') continue;
        strcpy(path + n, "digits.csv");
        if (read_data(path, d)) return;
        strcpy(path + n, "examples/data/digits.csv");
        if (read_data(path, d)) return;
    }
    fprintf(stderr, "digits.csv was not found beside the program or in examples/data above it: "
                    "give it with -d or DSOPT_DIGITS\n");
    exit(1);
}

/* ---- the network ----------------------------------------------------------------------------- */

typedef struct Net {
    float w1[HIDDEN][PIXELS], b1[HIDDEN], w2[CLASSES][HIDDEN], b2[CLASSES];
} Net;

static void net_init(Net *net)
{
    memset(net, 0, sizeof *net);
    float a1 = sqrtf(6.0f / PIXELS), a2 = sqrtf(6.0f / HIDDEN);
    for (int j = 0; j < HIDDEN; j++)
        for (int i = 0; i < PIXELS; i++) net->w1[j][i] = a1 * random_uniform();
    for (int k = 0; k < CLASSES; k++)
        for (int j = 0; j < HIDDEN; j++) net->w2[k][j] = a2 * random_uniform();
}

/* Hidden values and class probabilities of one image. */
static void forward(const Net *net, const float *x, float *h, float *prob)
{
    for (int j = 0; j < HIDDEN; j++) {
        float s = net->b1[j];
        for (int i = 0; i < PIXELS; i++) s += net->w1[j][i] * x[i];
        h[j] = s > 0 ? s : 0;
    }
    float top = -INFINITY, sum = 0;
    for (int k = 0; k < CLASSES; k++) {
        prob[k] = net->b2[k];
        for (int j = 0; j < HIDDEN; j++) prob[k] += net->w2[k][j] * h[j];
        if (!(prob[k] <= top)) top = prob[k];
    }
    for (int k = 0; k < CLASSES; k++) sum += prob[k] = expf(prob[k] - top);
    for (int k = 0; k < CLASSES; k++) prob[k] /= sum;
}

/* Adds the gradient of one image's loss, times `weight`; returns the loss. */
static float backward(const Net *net, const float *x, int label, float weight, Net *grad)
{
    float h[HIDDEN], d[CLASSES];
    forward(net, x, h, d);
    float loss = -logf(d[label] > 1e-30f ? d[label] : 1e-30f);
    d[label] -= 1;
    for (int k = 0; k < CLASSES; k++) {
        d[k] *= weight;
        grad->b2[k] += d[k];
        for (int j = 0; j < HIDDEN; j++) grad->w2[k][j] += d[k] * h[j];
    }
    for (int j = 0; j < HIDDEN; j++) {
        if (h[j] <= 0) continue;
        float s = 0;
        for (int k = 0; k < CLASSES; k++) s += net->w2[k][j] * d[k];
        grad->b1[j] += s;
        for (int i = 0; i < PIXELS; i++) grad->w1[j][i] += s * x[i];
    }
    return loss;
}

static double accuracy(const Net *net, const Data *d, const int *order, int n)
{
    int right = 0;
    for (int i = 0; i < n; i++) {
        float h[HIDDEN], prob[CLASSES];
        int best = 0;
        forward(net, d->x[order[i]], h, prob);
        for (int k = 1; k < CLASSES; k++)
            if (prob[k] > prob[best]) best = k;
        right += best == d->label[order[i]];
    }
    return 100.0 * right / n;
}

/* ---- training -------------------------------------------------------------------------------- */

typedef struct Options {
    const char *rules[MAX_RUNS], *set[MAX_SETS];
    int nrules, nsets, epochs, threads, batch;
    uint64_t seed;
    const char *data, *svg, *backend;
    char flags[256]; /* "nesterov=1;clip=1" */
} Options;

typedef struct Run {
    const char *rule;
    float loss[MAX_EPOCHS];   /* mean over the epoch */
    double test, seconds, lr; /* lr at the end; NaN: the rule has none of this name */
} Run;

/* Rates that suit this network; rules of your own keep their defaults. */
static double usual_lr(const char *rule)
{
    static const struct {
        const char *rule;
        double lr;
    } table[] = {{"sgd", 0.2},    {"adam", 3e-3},  {"adamw", 3e-3},   {"amsgrad", 3e-3},
                 {"nadam", 3e-3}, {"radam", 5e-3}, {"rmsprop", 2e-3}, {"adagrad", 0.03},
                 {"lion", 1e-3},  {"adan", 5e-3},  {"adopt", 3e-3},   {"lamb", 4e-3}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].rule, rule) == 0) return table[i].lr;
    return 0;
}

/* Rprop looks at signs of the whole gradient, which those of small batches are not. */
static int usual_batch(const char *rule)
{
    return strcmp(rule, "rprop") == 0 ? TRAIN : 32;
}

static void fail(const char *rule, const char *message)
{
    fprintf(stderr, "%s: %s\n", rule, message);
    exit(1);
}

static void apply_sets(dsopt_context *ctx, dsopt_optimizer *opt, const char *rule, const Options *o)
{
    if (usual_lr(rule) > 0) dsopt_set(opt, NULL, "lr", usual_lr(rule));
    for (int i = 0; i < o->nsets; i++) {
        char name[128], *end;
        const char *eq = strchr(o->set[i], '=');
        double v = eq ? strtod(eq + 1, &end) : 0;
        if (!eq || end == eq + 1 || *end || eq - o->set[i] >= (long)sizeof name)
            fail(o->set[i], "--set takes NAME=NUMBER");
        snprintf(name, sizeof name, "%.*s", (int)(eq - o->set[i]), o->set[i]);
        if (dsopt_set(opt, NULL, name, v)) fail(rule, dsopt_error_message(ctx));
    }
}

static dsopt_optimizer *make_optimizer(dsopt_context *ctx, const char *rule, const char *flags,
                                       Net *net, Net *grad)
{
    const dsopt_program_options options = {.size = sizeof options, .defines = flags};
    dsopt_program *prog;
    dsopt_optimizer *opt;
    const size_t size = sizeof(dsopt_tensor);
    const dsopt_tensor tensors[] = {
        {.size = size,
         .name = "fc1.weight",
         .ndim = 2,
         .shape = (int64_t[]){HIDDEN, PIXELS},
         .param = net->w1,
         .grad = grad->w1},
        {.size = size,
         .name = "fc1.bias",
         .ndim = 1,
         .shape = (int64_t[]){HIDDEN},
         .param = net->b1,
         .grad = grad->b1},
        {.size = size,
         .name = "fc2.weight",
         .ndim = 2,
         .shape = (int64_t[]){CLASSES, HIDDEN},
         .param = net->w2,
         .grad = grad->w2},
        {.size = size,
         .name = "fc2.bias",
         .ndim = 1,
         .shape = (int64_t[]){CLASSES},
         .param = net->b2,
         .grad = grad->b2},
    };
    if (dsopt_program_load(ctx, rule, &options, &prog)) fail(rule, dsopt_error_message(ctx));
    if (dsopt_optimizer_create(ctx, prog, tensors, sizeof tensors / size, &opt))
        fail(rule, dsopt_error_message(ctx));
    dsopt_program_release(prog);
    return opt;
}

static float epoch(dsopt_context *ctx, dsopt_optimizer *opt, const char *rule, int batch,
                   const Data *d, const int *order, Net *net, Net *grad)
{
    float loss = 0;
    for (int at = 0; at < TRAIN; at += batch) {
        int n = TRAIN - at < batch ? TRAIN - at : batch;
        memset(grad, 0, sizeof *grad);
        for (int i = 0; i < n; i++)
            loss +=
                backward(net, d->x[order[at + i]], d->label[order[at + i]], 1.0f / (float)n, grad);
        if (dsopt_accumulate(opt, 1) || dsopt_step(opt)) fail(rule, dsopt_error_message(ctx));
    }
    return loss / TRAIN;
}

static void train(dsopt_context *ctx, const char *rule, const Options *o, const Data *d,
                  const int *split, Run *run)
{
    static Net net, grad;
    int order[TRAIN];
    random_state = o->seed + 1;
    net_init(&net);
    memcpy(order, split, sizeof order);
    dsopt_optimizer *opt = make_optimizer(ctx, rule, o->flags, &net, &grad);
    apply_sets(ctx, opt, rule, o);
    run->rule = rule;
    struct timespec t0, t1;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    for (int e = 0; e < o->epochs; e++) {
        shuffle(order, TRAIN);
        run->loss[e] =
            epoch(ctx, opt, rule, o->batch ? o->batch : usual_batch(rule), d, order, &net, &grad);
        run->test = accuracy(&net, d, split + TRAIN, TEST);
        if (e < 3 || (e + 1) % 5 == 0 || e + 1 == o->epochs)
            printf("%-12s epoch %3d  loss %.4f  test %6.2f %%\n", rule, e + 1, (double)run->loss[e],
                   run->test);
        fflush(stdout);
    }
    clock_gettime(CLOCK_MONOTONIC, &t1);
    run->seconds = (double)(t1.tv_sec - t0.tv_sec) + 1e-9 * (double)(t1.tv_nsec - t0.tv_nsec);
    if (dsopt_get(opt, NULL, "lr", &run->lr)) run->lr = NAN;
    dsopt_optimizer_destroy(opt);
}

/* ---- curves ---------------------------------------------------------------------------------- */

enum { WIDTH = 72, HEIGHT = 18 };
static const char marks[MAX_RUNS + 1] = "ox+*#%@&";

static double log_loss(float loss)
{
    return log10(loss > 1e-9f ? (double)loss : 1e-9);
}

/* "lr 0.003, ", nothing for a rule without an lr. */
static const char *lr_text(const Run *run, char text[32])
{
    *text = 0;
    if (!isnan(run->lr)) snprintf(text, 32, "lr %.4g, ", run->lr);
    return text;
}

/* Loss over epochs, logarithmic, one mark per optimizer; straight lines between epochs. */
static void draw(const Run *runs, int n, int epochs)
{
    char grid[HEIGHT][WIDTH + 1];
    double lo = INFINITY, hi = -INFINITY;
    memset(grid, ' ', sizeof grid);
    for (int r = 0; r < n; r++) {
        for (int e = 0; e < epochs; e++) {
            double v = log_loss(runs[r].loss[e]);
            if (!isfinite(v)) continue;
            lo = v < lo ? v : lo;
            hi = v > hi ? v : hi;
        }
    }
    if (!(lo <= hi)) return;
    if (hi - lo < 0.1) hi = lo + 0.1;
    for (int r = 0; r < n; r++) {
        for (int x = 0; x < WIDTH; x++) {
            double at = (double)x * (epochs - 1) / (WIDTH - 1);
            int e = (int)at, next = e + 1 < epochs ? e + 1 : e;
            double v = log_loss(runs[r].loss[e]) +
                       (at - e) * (log_loss(runs[r].loss[next]) - log_loss(runs[r].loss[e]));
            if (isfinite(v)) grid[(int)((hi - v) / (hi - lo) * (HEIGHT - 1) + 0.5)][x] = marks[r];
        }
    }
    printf("\ntraining loss (logarithmic) over %d epochs\n", epochs);
    for (int y = 0; y < HEIGHT; y++) {
        grid[y][WIDTH] = 0;
        printf("%9.2g |%s\n", pow(10, hi - (hi - lo) * y / (HEIGHT - 1)), grid[y]);
    }
    printf("          +");
    for (int x = 0; x < WIDTH; x++) putchar('-');
    putchar('\n');
    for (int r = 0; r < n; r++)
        printf("   %c %-12s test %6.2f %%  loss %.4f  (%s%.2f s)\n", marks[r], runs[r].rule,
               runs[r].test, (double)runs[r].loss[epochs - 1], lr_text(&runs[r], (char[32]){0}),
               runs[r].seconds);
}

/* What stands between single quotes in gnuplot. */
static void put_quoted(FILE *f, const char *s)
{
    for (; *s; s++) fputs(*s == '\'' ? "\'\'" : (char[]){*s, 0}, f);
}

/* Feeds gnuplot; the picture's kind follows from the file's name. */
static void plot(const Run *runs, int n, int epochs, const char *path)
{
    size_t len = strlen(path);
    int png = len > 4 && strcmp(path + len - 4, ".png") == 0;
    FILE *f = popen("gnuplot", "w");
    if (!f) {
        perror("gnuplot");
        exit(1);
    }
    fprintf(f,
            "set terminal %s size 800,500 background 'white'\nset logscale y\nset xlabel 'epoch'\n"
            "set ylabel 'training loss'\nset format y '%%g'\nset xrange [%d:%d]\nset grid\n"
            "set output '",
            png ? "pngcairo" : "svg", epochs > 1, epochs);
    put_quoted(f, path);
    fputs("'\nplot", f);
    for (int r = 0; r < n; r++) {
        fprintf(f, "%s '-' with lines lw 2 title '", r ? "," : "");
        put_quoted(f, runs[r].rule);
        fprintf(f, " (%stest %.2f %%)' noenhanced", lr_text(&runs[r], (char[32]){0}), runs[r].test);
    }
    fputc('\n', f);
    for (int r = 0; r < n; r++) {
        for (int e = 0; e < epochs; e++) fprintf(f, "%d %g\n", e + 1, (double)runs[r].loss[e]);
        fputs("e\n", f);
    }
    if (pclose(f) != 0) {
        fprintf(stderr, "gnuplot could not write %s\n", path);
        exit(1);
    }
    printf("curves: %s\n", path);
}

/* ---- the command line ------------------------------------------------------------------------ */

static void usage(FILE *to)
{
    fputs(
        "usage: digits [options] [OPTIMIZER …]\n"
        "Trains a small network on handwritten digits with each optimizer: a name of the standard "
        "library or a .opt file\n"
        "(default: adamw).\n"
        "  --set NAME=VALUE   sets a hyperparameter of all of them, e.g. lr=0.01; without it rules "
        "of "
        "the library have\n"
        "                     a rate that suits this network, and those of yours their defaults\n"
        "  -D NAME=VALUE      sets a flag of all of them, e.g. use_momentum=1\n"
        "  --epochs N         passes over the training images (20)\n"
        "  --batch N          images a step (32)\n"
        "  --threads N        threads of a step (0: all processors)\n"
        "  --backend NAME     c, interp or cc\n"
        "  --seed N           of weights, split and order (1)\n"
        "  --svg FILE         draws the curves with gnuplot, as SVG, or PNG if FILE ends in .png\n"
        "  -d FILE            the images (default: $DSOPT_DIGITS, or digits.csv near the "
        "program)\n",
        to);
}

static int number(const char *text, const char *name, long lo, long hi)
{
    char *end;
    long v = strtol(text, &end, 10);
    if (*text && !*end && v >= lo && v <= hi) return (int)v;
    fprintf(stderr, "digits: --%s takes a number from %ld to %ld, not '%s'\n", name, lo, hi, text);
    exit(2);
}

static void parse(int argc, char **argv, Options *o)
{
    static const struct option table[] = {
        {"set", 1, 0, 's'},     {"epochs", 1, 0, 'e'}, {"batch", 1, 0, 'n'}, {"threads", 1, 0, 't'},
        {"backend", 1, 0, 'b'}, {"seed", 1, 0, 'r'},   {"svg", 1, 0, 'p'},   {"data", 1, 0, 'd'},
        {"help", 0, 0, 'h'},    {0, 0, 0, 0}};
    for (int c; (c = getopt_long(argc, argv, "d:D:h", table, NULL)) != -1;) {
        switch (c) {
        case 's':
            if (o->nsets == MAX_SETS) fail("--set", "too many");
            o->set[o->nsets++] = optarg;
            break;
        case 'D':
            if (strlen(o->flags) + strlen(optarg) + 2 > sizeof o->flags) fail("-D", "too many");
            if (*o->flags) strcat(o->flags, ";");
            strcat(o->flags, optarg);
            break;
        case 'e': o->epochs = number(optarg, "epochs", 1, MAX_EPOCHS); break;
        case 'n': o->batch = number(optarg, "batch", 1, TRAIN); break;
        case 't': o->threads = number(optarg, "threads", 0, 1024); break;
        case 'b': o->backend = optarg; break;
        case 'r': o->seed = (uint64_t)number(optarg, "seed", 0, 1 << 30); break;
        case 'p': o->svg = optarg; break;
        case 'd': o->data = optarg; break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    for (; optind < argc; optind++) {
        if (o->nrules == MAX_RUNS) fail(argv[optind], "at most 8 optimizers at once");
        o->rules[o->nrules++] = argv[optind];
    }
    if (o->nrules == 0) o->rules[o->nrules++] = "adamw";
}

static void print_line(void *user, dsopt_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "%s%s\n", level == DSOPT_LOG_WARNING ? "" : "note: ", line);
}

int main(int argc, char **argv)
{
    static Data data;
    static Run runs[MAX_RUNS];
    Options o = {.epochs = 20, .seed = 1};
    parse(argc, argv, &o);
    find_data(o.data, &data);

    int split[IMAGES];
    for (int i = 0; i < IMAGES; i++) split[i] = i;
    random_state = o.seed;
    shuffle(split, IMAGES);

    dsopt_context *ctx;
    dsopt_config config = {
        .size = sizeof config, .threads = o.threads, .backend = o.backend, .log = print_line};
    if (dsopt_context_create(&config, &ctx)) fail("digits", dsopt_error_message(NULL));
    for (int r = 0; r < o.nrules; r++) train(ctx, o.rules[r], &o, &data, split, &runs[r]);
    dsopt_context_destroy(ctx);

    draw(runs, o.nrules, o.epochs);
    if (o.svg) plot(runs, o.nrules, o.epochs, o.svg);
    return 0;
}
