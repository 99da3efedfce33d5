/* Random changes of meaning: names, operators and numbers of working programs are exchanged, lines
 * moved, dropped and said twice.
 *
 *   in:  m := lerp(g, m, b1)      ->  m -= norm[all](p, m, b1)
 *   out: errors, or a module; with hyperparameters made constants, one that gives the same bits
 *
 * The seed is fixed; `sema_fuzz COUNT SEED` runs longer. */
#include "tests/ir/interp_test.h"
#include "source.h"
#include "tests/failing.h"
#include <math.h>

enum { ROOM = 1 << 14, STEPS = 3 };

static uint64_t state = 88172645463325252u;
static uint32_t below(uint32_t n)
{
    return (uint32_t)((check_random(&state) >> 32) * n >> 32);
}

static Arena corpus_arena;
static char **corpus;
static size_t ncorpus, corpus_cap;
static unsigned accepted, refused, compared;

static void collect(const char *path)
{
    char *text = file_read(&corpus_arena, path);
    REQUIRE(text, "cannot read %s", path);
    if (strlen(text) < ROOM / 4) ARENA_PUSH(&corpus_arena, corpus, ncorpus, corpus_cap, text);
}

/* ---- changes -------------------------------------------------------------------------------- */

static const char *const words[] = {
    "g",     "p",     "t",        "s",   "m",        "v",     "lr",   "b1",  "eps",
    "wd",    "numel", "ndim",     "pi",  "inf",      "0",     "1",    "0.5", "2",
    "norm",  "mean",  "sum[all]", "max", "any[all]", "count", "sqrt", "exp", "lerp",
    "mean[row]", "max[col]", "sum[matrix]", "rms[block 4]", "norm[group]", "rows", "normal()",
    "clamp", "sign",  "old",      "min", "finite",   "f32",   "pow"};
static const char *const marks[] = {"+",  "-",     "*",    "/",  "%",  "^",  "<", ">", "==",
                                    "!=", " and ", " or ", ":=", "+=", "-=", "=", "?", ":"};
static const char *const lines[] = {"when t > 1 {",
                                    "when s % 2 == 0 {",
                                    "}",
                                    "} else {",
                                    "state z = p, y: tensor = t",
                                    "p -= lr * g",
                                    "g := g * 2",
                                    "export n",
                                    "n = norm(g)",
                                    "when norm[all](g) > 1 { p := p * 0.5; m := g }",
                                    "hyper b1 = lr",
                                    "use clip_global_norm",
                                    "direction u = g",
                                    "q = g > 0 ? p : m",
                                    "state c: global f32 = 1",
                                    "c := max[all](norm(p))",
                                    "y := y + mean(p)",
                                    "use both",
                                    "use turned as tt",
                                    "use boxed(0.5)",
                                    "state a3[3] = g, a2[2]: tensor = 1",
                                    "a3[s % 3] += g",
                                    "p -= a3[0] + old(a3[1]) * a2[t % 2]",
                                    "repeat i in 0..3 { a3[i] *= 0.5 }",
                                    "hyper sl = ramp(0.1)",
                                    "p -= sl * g",
                                    "transform turned : direction { state w = u;  u += w / 2 }",
                                    "transform boxed(r = 1) : apply { p := clamp(p, -r, r) }",
                                    "optimizer both(inner: rule = adamw) { use inner }",
                                    "shape [.., r, c] {",
                                    "} else shape [q, ..] when q > 2 {",
                                    "state R: row = 0, C: col = t, M: matrix = 1",
                                    "R := lerp(mean[row](g * g), R, 0.5); M += norm[matrix](g)",
                                    "C += max[col](R * g); p -= C * R + M",
                                    "shape [r, ..] { x1 = mean[row](g) } else { x1 = t }",
                                    "p -= x1 * mean(x1) + max[all](x1)",
                                    "state B: block 4 = 0, W: group = lr",
                                    "B += rms[block 4](g); p -= B + mean(B)",
                                    "when name ~ \"^emb|head$\" { p -= lr * g }",
                                    "} else shape [q, ..] when name != \"a.b\" {",
                                    "q2 = name !~ \"[0-9]+(a\" ? 2 : name == \"w\" ? 3 : lr",
                                    "W += mean[group](t); p -= W * uniform()",
                                    "on back(y1) { p := y1 + rows }",
                                    "init { p := p + 1 }",
                                    "schedule ramp(top, n = 10) = top * min(1, s / n)"};

static void put_in(char *text, size_t at, size_t cut, const char *piece)
{
    size_t n = strlen(text), m = strlen(piece);
    if (at + cut > n || n - cut + m + 1 > ROOM) return;
    memmove(text + at + m, text + at + cut, n - at - cut + 1);
    memcpy(text + at, piece, m);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* Exchanges one word or mark, or a whole line. */
static void change(char *text)
{
    size_t n = strlen(text), at = below((uint32_t)n + 1);
    while (at > 0 && is_word(text[at - 1]) && is_word(text[at])) at--;
    size_t len = 0;
    while (is_word(text[at + len])) len++;
    size_t line = at;
    while (line > 0 && text[line - 1] != '\n') line--;
    size_t line_len = strcspn(text + line, "\n");
    char piece[512];
    static const char *const brackets[] = {"(", ")", "{", "}", "[", "]", ",", "\"", "$", "\n"};
    switch (below(7)) {
    case 0:
    case 1:
        if (len) put_in(text, at, len, words[below(sizeof words / sizeof *words)]);
        break;
    case 2:
        if (strchr("+-*/%^<>?:", text[at]))
            put_in(text, at, 1, marks[below(sizeof marks / sizeof *marks)]);
        break;
    case 3:
        snprintf(piece, sizeof piece, "%s\n", lines[below(sizeof lines / sizeof *lines)]);
        put_in(text, line, 0, piece);
        break;
    case 4: /* a line said again elsewhere */
        snprintf(piece, sizeof piece, "%.*s\n", (int)(line_len < 500 ? line_len : 500),
                 text + line);
        at = below((uint32_t)n + 1);
        while (at > 0 && text[at - 1] != '\n') at--;
        put_in(text, at, 0, piece);
        break;
    case 5:
        if (below(3) == 0) /* a mistake of syntax: the rest is checked all the same */
            put_in(text, at, below(2), brackets[below(sizeof brackets / sizeof *brackets)]);
        break;
    default:
        if (below(4) == 0) put_in(text, line, line_len, "");
    }
}

/* ---- what must hold ------------------------------------------------------------------------- */

static bool out_of_range; /* the last program was refused for the value of a hyperparameter */

static IrModule *compile(Arena *a, const char *text, const FrontendOptions *o)
{
    SourceSet sources = {.arena = a};
    DiagSink d = {.arena = a, .sources = &sources};
    IrModule *m =
        compile_source(a, &d, source_add(&sources, "fuzz.opt", text, strlen(text)), o, false);
    StrBuf said = {.arena = a};
    diag_render(&d, &said, false);
    CHECK((m != NULL) == (d.nerrors == 0), "%s\n%s", text, said.text ? said.text : "no message");
    out_of_range = d.n && d.items[0].code == DIAG_OUT_OF_RANGE; /* a default that follows others has
                                                                   a value once they are constant */
    for (size_t i = 0; i < d.n; i++)
        CHECK(d.items[i].code != DIAG_INTERNAL, "%s\n%s", text, said.text);
    return m;
}

/* p after a few steps over two tensors. */
static bool run(Arena *a, const IrModule *m, double *out)
{
    static Bound b;
    static const Shape shapes[2] = {{2, {2, 3}}, {1, {2}}};
    static const int64_t numel[2] = {6, 2};
    StrBuf ir = {.arena = a};
    if (m->nelem > MAX_ELEM || m->nslots > MAX_SLOTS) return false;
    ir_print(m, &ir);
    bind_shapes(&b, a, ir.text, 2, shapes, (const char *const[]){"a", "b"}, NULL, 1);
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &b.m->slots[i];
        if (s->kind == SLOT_HYPER && !s->has_default) b.x.group[0][s->index] = NAN;
        if (s->kind == SLOT_HYPER && !s->has_default && s->level == LEVEL_GLOBAL)
            b.global[s->index] = NAN;
        if (s->kind == SLOT_PROP && s->level == LEVEL_GLOBAL) b.global[s->index] = 8;
    }
    uint64_t seed = 3;
    size_t n = 0;
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < numel[t]; i++) set(&b, "p", t, i, noise(&seed));
    for (int s = 0; s < STEPS; s++) {
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < numel[t]; i++) set(&b, "g", t, i, noise(&seed));
        REQUIRE(interp_step(b.m, &b.x), "out of memory");
        for (int t = 0; t < 2; t++)
            for (int i = 0; i < numel[t]; i++) out[n++] = get(&b, "p", (size_t)t, i);
    }
    return true;
}

static void try_text(const char *text, FrontendOptions *o)
{
    Arena a = {0};
    double want[STEPS * 8], got[STEPS * 8];
    o->ndefines = 0;
    IrModule *m = compile(&a, text, o);
    *(m ? &accepted : &refused) += 1;
    if (m && run(&a, m, want)) {
        const char *defines[MAX_SLOTS];
        for (uint32_t i = 0; i < m->nslots; i++) {
            const Slot *s = &m->slots[i];
            if (s->kind == SLOT_HYPER && s->has_default)
                defines[o->ndefines++] = arena_printf(&a, "%s=%.17g", s->path, s->def);
        }
        o->defines = defines;
        IrModule *folded = compile(&a, text, o);
        CHECK(folded || out_of_range, "refused with constants:\n%s", text);
        if (folded && run(&a, folded, got)) {
            compared++;
            for (int i = 0; i < STEPS * 8; i++)
                if (!same_bits(want[i], got[i])) {
                    CHECK(0, "constants change %a to %a at %d:\n%s", want[i], got[i], i, text);
                    break;
                }
        }
    }
    arena_free(&a);
}

/* ---- memory that runs out ------------------------------------------------------------------- */

/* Fails the first, second, … allocation of a whole compilation: it gives nothing, says nothing,
 * leaks nothing. */
static void run_out(const char *text, const FrontendOptions *o)
{
    volatile bool done = false; /* volatile: both live across the longjmp */
    for (volatile long n = 3; !done && n < 1000; n++) {
        Failing f = {.left = n};
        Allocator memory = {failing_realloc, &f};
        Arena a = {.alloc = &memory};
        SourceSet sources = {.arena = &a};
        DiagSink d = {.arena = &a, .sources = &sources};
        jmp_buf out;
        a.oom = &out;
        if (setjmp(out) == 0) {
            int file = source_add(&sources, "x.opt", text, strlen(text));
            a.oom = NULL;
            done = compile_source(&a, &d, file, o, true) != NULL;
            CHECK(done || d.nerrors == 0, "an error where memory ran out");
        }
        arena_free(&a);
        CHECK(f.live == 0, "%ld blocks leak", f.live);
    }
    CHECK(done, "never compiles");
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1500;
    if (argc > 2) state ^= strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u;
    static const char *const folders[] = {DSOPT_SOURCE_DIR "/stdlib"};
    FrontendOptions o = {.include_dirs = folders, .ninclude_dirs = 1};
    programs_each(DSOPT_SOURCE_DIR "/stdlib", collect);
    programs_each(DSOPT_SOURCE_DIR "/tests/sema/golden", collect);
    REQUIRE(ncorpus > 10, "%zu programs", ncorpus);
    static char text[ROOM + 1];
    for (long i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%s", corpus[below((uint32_t)ncorpus)]);
        o.rule = wrapper_rule(&corpus_arena, text);
        for (uint32_t edits = below(4); edits; edits--) change(text);
        try_text(text, &o);
    }
    o.ndefines = 0;
    for (size_t i = 0; i < ncorpus; i++) {
        o.rule = wrapper_rule(&corpus_arena, corpus[i]);
        if (strstr(corpus[i], "\noptimizer ")) run_out(corpus[i], &o);
    }
    printf("%u accepted, %u refused, %u compared with constants\n", accepted, refused, compared);
    CHECK(accepted > count / 20 && refused > count / 20 && compared > count / 40,
          "the changes are too tame or too wild");
    arena_free(&corpus_arena);
    return check_done();
}
