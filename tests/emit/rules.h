/* rules.h - the rules that the emitter tests go through: texts of IR in tests/plan/ir, and every
 * rule of the standard library.
 *
 *   in:  rule_from_ir(&a, "lamb")    out: its module, after all passes
 *   in:  rule_from_stdlib(&a, "adamw", true)    out: its module with the implicit guard of 16-bit
 * gradients; a wrapper stands around AdamW */
#ifndef DSOPT_TESTS_EMIT_RULES_H
#define DSOPT_TESTS_EMIT_RULES_H
#include "../check.h"
#include "codegen/codegen.h"
#include "codegen/compile.h"
#include "codegen/storage.h"
#include "frontend/embed.h"

static const char *const ir_rules[] = {"adamw", "adamw_clip", "adamw_guard", "lion",
                                       "lamb",  "lamb_guard", "lookahead",   "powers"};
enum { IR_RULES = sizeof ir_rules / sizeof *ir_rules };

/* The whole file, or NULL. */
static inline char *rule_read(Arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    StrBuf s = {.arena = a};
    sb_puts(&s, "");
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) sb_putn(&s, piece, n);
    fclose(f);
    return s.text;
}

static inline IrModule *rule_from_ir(Arena *a, const char *name)
{
    char *text = rule_read(a, arena_printf(a, "%s/tests/plan/ir/%s.ir", DSOPT_SOURCE_DIR, name));
    REQUIRE(text, "tests/plan/ir/%s.ir is missing", name);
    StrBuf error = {.arena = a};
    IrModule *m = ir_parse(a, text, &error);
    REQUIRE(m, "%s.ir: %s", name, error.text);
    m = ir_run_passes(a, m, NULL, NULL, &error);
    REQUIRE(m, "%s.ir: %s", name, error.text);
    return m;
}

/* The modules of all entry points, the step first. */
static inline Modules rule_modules(Arena *a, const char *name, const char *define, bool guard)
{
    const EmbeddedFile *file = embed_find(ds_stdlib, ds_stdlib_count, name);
    SourceSet *sources = ARENA_NEW(a, SourceSet);
    sources->arena = a;
    DiagSink d = {.arena = a, .sources = sources};
    FrontendOptions o = {.defines = &define, .ndefines = define != NULL};
    if (strstr(file->text, "(inner: rule")) o.rule = arena_printf(a, "%s(adamw)", name);
    int at = source_add(sources, name, file->text, file->length);
    Modules all;
    bool ok = compile_entries(a, &d, at, &o, guard, &all);
    StrBuf messages = {.arena = a};
    diag_render(&d, &messages, false);
    REQUIRE(ok && all.n, "%s: %s", name, messages.text ? messages.text : "no module");
    return all;
}

static inline IrModule *rule_from_stdlib_with(Arena *a, const char *name, const char *define,
                                              bool guard)
{
    return rule_modules(a, name, define, guard).m[0];
}

static inline IrModule *rule_from_stdlib(Arena *a, const char *name, bool guard)
{
    return rule_from_stdlib_with(a, name, NULL, guard);
}

static inline Variant *rule_variant_of(Arena *a, const Plan *p, uint32_t body, const char *storage)
{
    DType types[256];
    StrBuf error = {.arena = a};
    REQUIRE(p->m->nelem <= 256 && storage_parse(storage, p->m, types, &error), "storage: %s",
            error.text);
    Variant *v = plan_variant(a, p, body, types);
    REQUIRE(v, "no variant");
    return v;
}

static inline Modules rule_entries(Arena *a, const char *name)
{
    return rule_modules(a, name, NULL, false);
}

static inline Variant *rule_variant(Arena *a, const Plan *p, const char *storage)
{
    return rule_variant_of(a, p, 0, storage);
}
#endif
