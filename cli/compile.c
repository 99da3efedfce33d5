/* compile.c - `dsoptc RULE -o FILE`, `--emit`, `--dump-after`, `--run-pass`, `check` and `explain`.
 *
 *     dsoptc lamb -o lamb.ptx            dsoptc --emit=plan lamb            dsoptc check *.opt
 *     dsoptc --run-pass=dce x.ir         dsoptc adamw -D clip=1 -o adamw.c  (and adamw.h)
 */
#include "cli.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A rule compiled as far as every output needs it. */
typedef struct Compiled {
    IrModule *m;
    const Plan *plan;
    const Plan **plans; /* of all entry points, this one's first */
    size_t nplans;
    Variant *variant; /* of the arm that was asked for */
    DType *storage;
} Compiled;

/* --arm=N: which of the module's bodies; 0 where it was not given. */
static bool choose_arm(Session *s, const IrModule *m, uint32_t *arm)
{
    const char *given = s->options->value[OPT_ARM];
    char *end = NULL;
    unsigned long n = given ? strtoul(given, &end, 10) : 0;
    *arm = (uint32_t)n;
    if (!given || (*given >= '0' && *given <= '9' && !*end && n < m->nbodies)) return true;
    cli_error("--arm '%s': '%s' has %s%u", given, m->name, m->nbodies > 1 ? "arms 0 to " : "arm ",
              (unsigned)m->nbodies - 1);
    return false;
}

static bool compile_rule(Session *s, Compiled *c)
{
    Modules modules;
    if (!session_modules(s, &modules)) return false;
    c->m = modules.m[0];
    StrBuf why = {.arena = s->arena};
    DType *storage = ARENA_ARRAY(s->arena, DType, c->m->nelem);
    if (!storage_parse(s->options->value[OPT_STORAGE], c->m, storage, &why)) {
        cli_error("%s", why.text);
        return false;
    }
    uint32_t arm;
    if (!choose_arm(s, c->m, &arm)) return false;
    lint_storage(&s->diags, c->m, storage);
    c->storage = storage;
    c->nplans = modules.n;
    c->plans = ARENA_ARRAY(s->arena, const Plan *, modules.n);
    for (size_t i = 0; i < modules.n; i++) c->plans[i] = plan_make(s->arena, modules.m[i]);
    c->plan = c->plans[0];
    c->variant = plan_variant(s->arena, c->plan, arm, storage);
    return true;
}

/* Text about every arm, or the one that was asked for. */
static void print_arms(Session *s, const Compiled *c, StrBuf *out,
                       void (*print)(const Plan *p, const Variant *v, StrBuf *out))
{
    if (s->options->value[OPT_ARM]) {
        print(c->plan, c->variant, out);
        return;
    }
    for (uint32_t b = 0; b < c->m->nbodies; b++) {
        if (b) sb_puts(out, "\n");
        print(c->plan, plan_variant(s->arena, c->plan, b, c->storage), out);
    }
}

static void print_tile(const Plan *p, const Variant *v, StrBuf *out)
{
    if (p->m->nbodies > 1) sb_printf(out, "/* arm %u */\n", (unsigned)v->body);
    emit_tile_c(p, v, out);
}

static bool add_text(Session *s, const char *path, const StrBuf *b)
{
    output_add(s, path, b->text, b->len);
    return true;
}

/* ---- --emit ---- */

static bool emit_tokens(Session *s, StrBuf *out)
{
    return frontend_tokens(s->arena, &s->diags, s->file, out);
}

static bool emit_ast(Session *s, StrBuf *out)
{
    Ast ast = {0};
    bool ok = frontend_parse(s->arena, &s->diags, s->file, &s->frontend, &ast);
    if (ok) ast_print(&ast, out);
    return ok;
}

static bool emit_compiled(Session *s, const char *stage, StrBuf *out)
{
    Compiled c;
    if (!compile_rule(s, &c)) return false;
    if (!strcmp(stage, "ir")) ir_print(c.m, out);
    if (!strcmp(stage, "plan")) print_arms(s, &c, out, plan_print);
    if (!strcmp(stage, "tile")) print_arms(s, &c, out, print_tile);
    if (!strcmp(stage, "c")) return emit_standalone_c(c.plans, c.nplans, c.storage, out, NULL);
    if (!strcmp(stage, "cuda")) return emit_cuda(c.plans, c.nplans, c.storage, out);
    return true;
}

static int emit_stage(Session *s, const char *stage)
{
    static const char *const stages[] = {"tokens", "ast", "ir", "plan", "tile", "c", "cuda"};
    bool known = false;
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) known |= !strcmp(stage, stages[i]);
    if (!known) {
        const char *near = diag_suggest(stage, stages, sizeof stages / sizeof *stages);
        cli_error("no stage '%s'%s%s%s; there are tokens, ast, ir, plan, tile, c and cuda", stage,
                  near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        return EXIT_USAGE;
    }
    StrBuf out = {.arena = s->arena};
    bool ok = !strcmp(stage, "tokens") ? emit_tokens(s, &out)
              : !strcmp(stage, "ast")  ? emit_ast(s, &out)
                                       : emit_compiled(s, stage, &out);
    if (!session_finish(s) || !ok) return EXIT_INPUT;
    const char *path = s->options->value[OPT_OUTPUT];
    if (path) return add_text(s, path, &out), output_commit(s) ? EXIT_OK : EXIT_INPUT;
    if (out.text) fputs(out.text, stdout);
    return EXIT_OK;
}

/* ---- -o ---- */

typedef bool (*WriteFn)(Session *s, const Compiled *c, const char *path);

/* "out/adamw.c" -> "out/adamw.h" */
static const char *with_ending(Session *s, const char *path, const char *ending)
{
    const char *dot = strrchr(path, '.');
    return arena_printf(s->arena, "%.*s%s", (int)(dot - path), path, ending);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool write_ir(Session *s, const Compiled *c, const char *path)
{
    StrBuf b = {.arena = s->arena};
    ir_print(c->m, &b);
    return add_text(s, path, &b);
}

static bool write_c(Session *s, const Compiled *c, const char *path)
{
    const char *h_path = with_ending(s, path, ".h");
    StrBuf b = {.arena = s->arena}, h = {.arena = s->arena};
    return emit_standalone_c(c->plans, c->nplans, c->storage, &b, base_name(h_path)) &&
           emit_standalone_h(c->plans, c->nplans, c->storage, &h) && add_text(s, h_path, &h) &&
           add_text(s, path, &b);
}

/* "adamw.cuda.h", beside .cu, .ptx and .cubin: adamw.h is that of the C outputs. */
static bool write_cuda_h(Session *s, const Compiled *c, const char *path)
{
    StrBuf h = {.arena = s->arena};
    return emit_cuda_h(c->plans, c->nplans, c->storage, &h) &&
           add_text(s, with_ending(s, path, ".cuda.h"), &h);
}

static bool write_cu(Session *s, const Compiled *c, const char *path)
{
    StrBuf b = {.arena = s->arena};
    return emit_cuda(c->plans, c->nplans, c->storage, &b) && write_cuda_h(s, c, path) &&
           add_text(s, path, &b);
}

static bool write_cc(Session *s, const Compiled *c, const char *path, bool shared)
{
    StrBuf b = {.arena = s->arena}, h = {.arena = s->arena}, why = {.arena = s->arena};
    if (!emit_standalone_c(c->plans, c->nplans, c->storage, &b, NULL) ||
        !emit_standalone_h(c->plans, c->nplans, c->storage, &h))
        return false;
    const char *part = arena_printf(s->arena, "%s.%ld.new", path, (long)getpid());
    if (cc_compile(b.text, part, shared, NULL, &why)) {
        output_add_made(s, path, part);
        return add_text(s, with_ending(s, path, ".h"), &h);
    }
    cli_error("%s: %s", path, why.text);
    return false;
}

static bool write_o(Session *s, const Compiled *c, const char *path)
{
    return write_cc(s, c, path, false);
}

static bool write_so(Session *s, const Compiled *c, const char *path)
{
    return write_cc(s, c, path, true);
}

/* "sm_90" or "compute_90" or "90" as the kind wanted; NULL: not an architecture. */
static const char *arch_for(Session *s, const char *prefix)
{
    const char *given = s->options->value[OPT_ARCH];
    if (!given) given = "75";
    const char *digits = !strncmp(given, "sm_", 3)        ? given + 3
                         : !strncmp(given, "compute_", 8) ? given + 8
                                                          : given;
    size_t n = strspn(digits, "0123456789");
    bool suffix_ok = !digits[n] || (!digits[n + 1] && strchr("af", digits[n]));
    if (n < 2 || n > 3 || !suffix_ok) {
        cli_error("no architecture '%s'; expected sm_NN or compute_NN, as in --arch=sm_90", given);
        return NULL;
    }
    return arena_printf(s->arena, "%s%s", prefix, digits);
}

static bool write_cuda(Session *s, const Compiled *c, const char *path, bool cubin)
{
    const char *arch = arch_for(s, cubin ? "sm_" : "compute_");
    StrBuf b = {.arena = s->arena}, why = {.arena = s->arena};
    if (!arch) return false;
    if (cuda_build(c->plans, c->nplans, c->storage, arch, cubin, &b, &why))
        return write_cuda_h(s, c, path) && add_text(s, path, &b);
    cli_error("%s: %s", path, why.text);
    return false;
}

static bool write_ptx(Session *s, const Compiled *c, const char *path)
{
    return write_cuda(s, c, path, false);
}

static bool write_cubin(Session *s, const Compiled *c, const char *path)
{
    return write_cuda(s, c, path, true);
}

static const struct {
    const char *ending;
    WriteFn write;
} outputs[] = {{".ptx", write_ptx}, {".cubin", write_cubin}, {".cu", write_cu}, {".c", write_c},
               {".o", write_o},     {".so", write_so},       {".ir", write_ir}};

static WriteFn output_kind(const char *path)
{
    const char *dot = strrchr(base_name(path), '.');
    for (size_t i = 0; dot && i < sizeof outputs / sizeof *outputs; i++)
        if (!strcmp(dot, outputs[i].ending)) return outputs[i].write;
    cli_error("%s: what is '%s'? Outputs end in .ptx .cubin .cu .c .o .so or .ir", path,
              dot ? dot : base_name(path));
    return NULL;
}

/* A name as make reads it. */
static void add_make_name(StrBuf *b, const char *name)
{
    for (; *name; name++) {
        if (*name == '$') sb_puts(b, "$");
        if (*name == ' ' || *name == '#') sb_puts(b, "\\");
        sb_printf(b, "%c", *name);
    }
}

/* A make rule: the output depends on every file that was read. */
static void add_dependencies(Session *s)
{
    const Options *o = s->options;
    const char *out = o->value[OPT_OUTPUT];
    StrBuf b = {.arena = s->arena};
    if (o->value[OPT_MT])
        sb_puts(&b, o->value[OPT_MT]); /* quoted by who gives it, as in gcc */
    else
        add_make_name(&b, out);
    sb_puts(&b, ":");
    for (size_t i = 0; i < s->sources.nfiles; i++)
        if (s->sources.files[i].name[0] != '<') { /* neither <stdlib> nor <stdin> */
            sb_puts(&b, " \\\n  ");
            add_make_name(&b, s->sources.files[i].name);
        }
    sb_puts(&b, "\n");
    add_text(s, o->value[OPT_MF] ? o->value[OPT_MF] : with_ending(s, out, ".d"), &b);
}

static int write_output(Session *s)
{
    const char *path = s->options->value[OPT_OUTPUT];
    WriteFn write = output_kind(path);
    if (!write) return EXIT_USAGE;
    Compiled c;
    bool compiled = compile_rule(s, &c);
    if (!session_finish(s) || !compiled) return EXIT_INPUT;
    if (s->options->value[OPT_SYNTAX_ONLY]) return EXIT_OK;
    if (!write(s, &c, path)) return EXIT_INPUT;
    if (s->options->value[OPT_MD]) add_dependencies(s);
    if (!output_commit(s)) return EXIT_INPUT;
    if (s->options->value[OPT_VERBOSE]) fprintf(stderr, "dsoptc: wrote %s\n", path);
    return EXIT_OK;
}

/* ---- passes ---- */

static int dump_after(Session *s, const char *pass)
{
    for (size_t i = 0; i < pass_count; i++) {
        if (strcmp(pass_info[i].name, pass)) continue;
        StrBuf out = {.arena = s->arena};
        bool guard = storage_gradient_is_narrow(s->options->value[OPT_STORAGE]);
        IrModule *m =
            compile_source_dump(s->arena, &s->diags, s->file, &s->frontend, guard, pass, &out);
        if (!session_finish(s) || !m) return EXIT_INPUT;
        if (out.text) fputs(out.text, stdout);
        return EXIT_OK;
    }
    cli_error("no pass '%s'", pass);
    for (size_t i = 0; i < pass_count; i++)
        fprintf(stderr, "  %-12s %s\n", pass_info[i].name, pass_info[i].what);
    return EXIT_USAGE;
}

/* Reads IR text and runs one pass on it. */
static int run_pass(Session *s, const char *pass)
{
    const SourceFile *f = &s->sources.files[s->file];
    StrBuf why = {.arena = s->arena}, out = {.arena = s->arena};
    IrModule *m = ir_parse(s->arena, f->text, &why);
    if (!m || !ir_verify(m, &why)) {
        cli_error("%s: %s", f->name, why.text);
        return EXIT_INPUT;
    }
    for (size_t i = 0; i < pass_count; i++) {
        if (strcmp(pass_info[i].name, pass)) continue;
        m = pass_info[i].run(s->arena, m);
        if (!ir_verify(m, &why)) {
            cli_error("%s: after %s: %s (a bug of dsoptc)", f->name, pass, why.text);
            return EXIT_INPUT;
        }
        ir_print(m, &out);
        fputs(out.text, stdout);
        return EXIT_OK;
    }
    return dump_after(s, pass); /* says which passes there are */
}

/* ---- commands ---- */

static int one_input(const Options *o)
{
    static const char *const commands[] = {"check", "explain", "fmt", "replay"};
    if (o->inputs.n == 1) return -1;
    const char *near = o->command == CMD_COMPILE ? diag_suggest(o->inputs.v[0], commands, 4) : NULL;
    if (near)
        cli_error("there is no command '%s'; did you mean '%s'?", o->inputs.v[0], near);
    else
        cli_error("one rule at a time: '%s' and '%s' were given", o->inputs.v[0], o->inputs.v[1]);
    return EXIT_USAGE;
}

int cmd_compile(Arena *a, const Options *o)
{
    int status = one_input(o);
    if (status >= 0) return status;
    bool nothing = !o->value[OPT_OUTPUT] && !o->value[OPT_EMIT] && !o->value[OPT_DUMP_AFTER] &&
                   !o->value[OPT_RUN_PASS];
    if (nothing && !o->value[OPT_SYNTAX_ONLY]) {
        cli_error("what is to be made of '%s'? Give -o FILE, --emit=STAGE, or use 'dsoptc check'",
                  o->inputs.v[0]);
        return EXIT_USAGE;
    }
    Session s;
    if (!session_open(&s, a, o, o->inputs.v[0])) return session_finish(&s), EXIT_INPUT;
    if (o->value[OPT_RUN_PASS]) return run_pass(&s, o->value[OPT_RUN_PASS]);
    if (o->value[OPT_DUMP_AFTER]) return dump_after(&s, o->value[OPT_DUMP_AFTER]);
    if (o->value[OPT_EMIT]) return emit_stage(&s, o->value[OPT_EMIT]);
    if (o->value[OPT_OUTPUT]) return write_output(&s);
    session_module(&s);
    return session_finish(&s) ? EXIT_OK : EXIT_INPUT;
}

int cmd_check(Arena *a, const Options *o)
{
    int status = EXIT_OK;
    if (!o->inputs.n) {
        cli_error("check what? 'dsoptc check my.opt'");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < o->inputs.n; i++) {
        Session s;
        bool opened = session_open(&s, a, o, o->inputs.v[i]);
        if (opened) check_source(s.arena, &s.diags, s.file, &s.frontend);
        if (!session_finish(&s) || !opened) status = EXIT_INPUT;
    }
    return status;
}

int cmd_explain(Arena *a, const Options *o)
{
    int status = o->inputs.n ? one_input(o) : EXIT_USAGE;
    if (!o->inputs.n) cli_error("explain what? 'dsoptc explain adamw'");
    if (status >= 0) return status;
    Session s;
    Compiled c;
    bool ok = session_open(&s, a, o, o->inputs.v[0]) && compile_rule(&s, &c);
    if (!session_finish(&s) || !ok) return EXIT_INPUT;
    StrBuf out = {.arena = a};
    print_arms(&s, &c, &out, plan_explain);
    fputs(out.text, stdout);
    return EXIT_OK;
}
