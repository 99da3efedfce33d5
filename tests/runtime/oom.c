/* oom.c - memory runs out at every allocation in turn: a status each time, nothing leaked, and the
 * same call works afterwards.
 *
 *   in:  allocation 1, 2, 3, … of context, program, optimizer, rebinding and steps fails
 *   out: DSOPT_OUT_OF_MEMORY from the call that needed it; live blocks 0 after destroy
 */
#include "rt.h"

typedef struct Counter {
    long made, fail_at, live;
} Counter;

static void *counted(void *user, void *ptr, size_t size)
{
    Counter *c = user;
    if (size == 0) {
        if (ptr) c->live--;
        free(ptr);
        return NULL;
    }
    if (++c->made == c->fail_at) return NULL;
    if (!ptr) c->live++;
    return realloc(ptr, size);
}

static const char *backend;

/* NULL: LAMB. The other has bodies by shape, vectors, an entry point and an input. */
static const char *text;
static const char shapes[] =
    "optimizer x {\n  input loss\n  state w: group = 0\n  w := w + sum[group](g * g)\n"
    "  shape [.., r, c] {\n    state R: row = 0, C: col = 0\n    R := mean[row](g * g)\n"
    "    C := mean[col](g * g)\n    p -= loss * g / (R + C + norm[matrix](g))\n  } else {\n"
    "    state B: block 100 = 0\n    B := rms[block 100](g)\n    p -= g * B + w\n  }\n"
    "  on eval(x) { p := p + x * rms(x) }\n}\n";

typedef struct Things {
    dsopt_context *ctx;
    dsopt_program *prog;
    dsopt_optimizer *opt;
} Things;

/* The whole life; stops at the first failure, whose status it returns. */
static dsopt_status live(Counter *c, Things *x)
{
    static float p[3][5000], g[3][5000];
    static uint16_t h[64], gh[64];
    dsopt_config cfg = {
        .size = sizeof cfg, .threads = 2, .backend = backend, .alloc = {counted, c}};
    dsopt_tensor t[4] = {rt_tensor("a", NULL, DSOPT_F32, p[0], g[0], 1, (int64_t[]){5000}),
                         rt_tensor("b", "other", DSOPT_F32, p[1], g[1], 2, (int64_t[]){3, 7}),
                         rt_tensor("e", "other", DSOPT_F32, NULL, NULL, 1, (int64_t[]){0}),
                         rt_tensor("h", NULL, DSOPT_BF16, h, gh, 1, (int64_t[]){64})};
    dsopt_status st = dsopt_context_create(&cfg, &x->ctx);
    if (st == DSOPT_OK && !text) st = dsopt_program_load(x->ctx, "lamb", NULL, &x->prog);
    if (st == DSOPT_OK && text) st = dsopt_program_compile(x->ctx, text, "x.opt", NULL, &x->prog);
    if (st == DSOPT_OK) st = dsopt_optimizer_create(x->ctx, x->prog, t, 4, &x->opt);
    if (st == DSOPT_OK)
        st = text ? dsopt_set_input(x->opt, "loss", 0.5) : dsopt_set(x->opt, NULL, "lr", 0.1);
    for (int s = 0; s < 2 && st == DSOPT_OK; s++) {
        st = dsopt_bind_gradient(x->opt, 0, s ? g[2] : NULL);
        if (st == DSOPT_OK) st = dsopt_accumulate(x->opt, 1);
        if (st == DSOPT_OK) st = dsopt_step(x->opt);
        if (st == DSOPT_OUT_OF_MEMORY) { /* nothing was written: the same step may be tried again */
            CHECK(strcmp(backend, "interp") == 0, "a step of backend %s allocates", backend);
            CHECK(dsopt_step(x->opt) == DSOPT_OK, "%s", dsopt_error_message(x->ctx));
        }
        if (st == DSOPT_OK && text) st = dsopt_run(x->opt, "eval");
    }
    if (st == DSOPT_OUT_OF_MEMORY) {
        const char *m = dsopt_error_message(x->ctx);
        CHECK(strstr(m, "memory"), "allocation %ld: message '%s'", c->fail_at, m);
    }
    return st;
}

/* Mappings of code that belong to no file: what libtcc's code runs in. */
static int code_mappings(void)
{
    int n = 0;
    char line[512];
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f)) n += strstr(line, " r-xp ") && !strpbrk(line, "/[");
    if (f) fclose(f);
    return n;
}

static void die(Things *x)
{
    dsopt_optimizer_destroy(x->opt);
    dsopt_program_release(x->prog);
    dsopt_context_destroy(x->ctx);
}

static void fail_each(void)
{
    Counter all = {0};
    Things x = {0};
    const int mappings = code_mappings();
    dsopt_status st = live(&all, &x);
    long before_steps = all.made;
    CHECK(st == DSOPT_OK, "%s: %s", dsopt_status_name(st), dsopt_error_message(x.ctx));
    if (strcmp(backend, "interp") != 0) {
        for (int s = 0; s < 20; s++)
            CHECK(dsopt_accumulate(x.opt, 1) == DSOPT_OK && dsopt_step(x.opt) == DSOPT_OK &&
                      (!text || dsopt_run(x.opt, "eval") == DSOPT_OK),
                  "step: %s", dsopt_error_message(x.ctx));
        CHECK(all.made == before_steps, "steps made %ld allocations", all.made - before_steps);
    }
    CHECK(code_mappings() > mappings || strcmp(backend, "c") != 0, "no code is seen");
    die(&x);
    CHECK(all.live == 0, "%ld blocks are left", all.live);
    for (long k = 1; k <= before_steps; k++) {
        Counter c = {.fail_at = k};
        x = (Things){0};
        st = live(&c, &x);
        CHECK(st == DSOPT_OUT_OF_MEMORY, "allocation %ld of %ld: %s", k, before_steps,
              dsopt_status_name(st));
        die(&x);
        CHECK(c.live == 0, "allocation %ld: %ld blocks are left", k, c.live);
        CHECK(code_mappings() == mappings, "allocation %ld: code is left", k);
    }
    printf("%ld allocations\n", before_steps);
}

int main(int argc, char **argv)
{
    backend = argc > 1 ? argv[1] : "c";
    fail_each();
    text = shapes;
    fail_each();
    return check_done();
}
