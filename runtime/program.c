/* program.c - programs: a checked rule, its lowerings, and the machine code made of them so far.
 *
 * A program never changes for its users; behind a lock it grows: the module with the guard of
 * 16-bit gradients is lowered when the first optimizer needs it, a variant is scheduled and built
 * when the first tensor has its dtypes. What is built stays until the last reference goes. Code is
 * kept by (module, body, storage, backend, isa, compiler).
 *
 *     load "adamw"; two optimizers with f32 tensors  ->  one module, one variant, built once
 */
#define _GNU_SOURCE
#include "internal.h"
#include <string.h>
#include <unistd.h>

/* ---- what the options say -------------------------------------------------------------------- */

/* Splits `text` at `separator` into the arena; empty parts are left out. */
static const char *const *split_list(Arena *a, const char *text, char separator, size_t *n)
{
    const char **items = NULL;
    size_t cap = 0;
    *n = 0;
    for (const char *s = text; s && *s;) {
        const char *end = strchrnul(s, separator);
        while (*s == ' ') s++;
        size_t len = end > s ? (size_t)(end - s) : 0;
        while (len && s[len - 1] == ' ') len--;
        if (len) ARENA_PUSH(a, items, *n, cap, arena_strndup(a, s, len));
        s = *end ? end + 1 : end;
    }
    return items;
}

/* Whether the storage text has an entry for `name` (p or g, which otherwise are as the tensors
 * are). */
static bool storage_names(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *s = text; s && *s;) {
        s += strspn(s, " ,");
        if (strncmp(s, name, n) == 0 && s[n + strspn(s + n, " ")] == '=') return true;
        s = strchrnul(s, ',');
    }
    return false;
}

static dsopt_status read_options(dsopt_context *ctx, dsopt_program *p,
                                 const dsopt_program_options *given)
{
    dsopt_program_options o = {.size = sizeof o};
    dsopt_status st;
    if (given && !struct_in(ctx, "dsopt_program_options", &o, sizeof o, given, &st)) return st;
    if (o.compute && strcmp(o.compute, "f32") != 0 && strcmp(o.compute, "f64") != 0)
        return error_set(ctx, DSOPT_INVALID_ARGUMENT,
                         "compute \"%s\" is neither \"f32\" nor \"f64\"", o.compute);
    p->compute_f64 = o.compute && strcmp(o.compute, "f64") == 0;
    FrontendOptions *f = &p->source.options;
    f->defines = split_list(&p->arena, o.defines, ';', &f->ndefines);
    f->include_dirs = split_list(&p->arena, o.include_dirs, ':', &f->ninclude_dirs);
    f->rule = o.rule ? arena_strdup(&p->arena, o.rule) : NULL;
    f->compute_f64 = p->compute_f64;
    p->source.storage = o.storage ? arena_strdup(&p->arena, o.storage) : NULL;
    for (size_t i = 0; i < f->ndefines; i++)
        if (!strchr(f->defines[i], '='))
            return error_set(ctx, DSOPT_INVALID_ARGUMENT,
                             "defines: '%s' is not of the form name=value", f->defines[i]);
    return DSOPT_OK;
}

/* ---- from text to a checked rule ------------------------------------------------------------- */

typedef struct Load {
    dsopt_context *ctx;
    dsopt_program *p;
    const dsopt_program_options *options;
    const char *path; /* or */
    const char *text, *label;
} Load;

static dsopt_status diag_status(dsopt_context *ctx, dsopt_program *p, dsopt_status status)
{
    StrBuf out = {.arena = &p->arena};
    diag_render(&p->source.diags, &out, false);
    return error_set_text(ctx, status, out.text ? out.text : "");
}

static void log_warnings(dsopt_context *ctx, dsopt_program *p)
{
    if (!ctx->log || !p->source.diags.nwarnings) return;
    StrBuf out = {.arena = &p->arena};
    diag_render(&p->source.diags, &out, false);
    for (char *line = out.text, *next; line && *line; line = next) {
        next = strchrnul(line, '\n');
        if (*next) *next++ = 0;
        ctx->log(ctx->log_user, DSOPT_LOG_WARNING, line);
    }
}

static dsopt_status unknown_rule(dsopt_context *ctx, dsopt_program *p, const char *name)
{
    const char **names = ARENA_ARRAY(&p->arena, const char *, stdlib_count());
    for (size_t i = 0; i < stdlib_count(); i++) names[i] = stdlib_name(i);
    const char *near = diag_suggest(name, names, stdlib_count());
    if (near)
        return error_set(
            ctx, DSOPT_FILE_ERROR,
            "there is no file and no rule of the standard library '%s'; did you mean '%s'?", name,
            near);
    return error_set(ctx, DSOPT_FILE_ERROR,
                     "there is no file and no rule of the standard library '%s'", name);
}

/* The file that a path or name means, in the source set; -1: *st is set. */
static int open_source(const Load *l, dsopt_status *st)
{
    dsopt_program *p = l->p;
    const char *name = l->path;
    size_t n = strlen(name), len;
    bool file = strchr(name, '/') ||
                (n > 4 && strcmp(name + n - 4, ".opt") == 0 && access(name, F_OK) == 0);
    int at = -1;
    if (file) {
        if ((at = source_read(&p->source.diags, name)) < 0)
            *st = diag_status(l->ctx, p, DSOPT_FILE_ERROR);
        return at;
    }
    const char *text = stdlib_text(name, &len);
    if (!text) {
        *st = unknown_rule(l->ctx, p, name);
        return -1;
    }
    if (n > 4 && strcmp(name + n - 4, ".opt") == 0) n -= 4;
    at = source_add(&p->source.sources, arena_printf(&p->arena, "<stdlib>/%.*s.opt", (int)n, name),
                    text, len);
    if (at < 0) *st = error_set(l->ctx, DSOPT_INTERNAL, "the rule '%s' is too large", name);
    return at;
}

static int add_text(const Load *l, dsopt_status *st)
{
    int at =
        source_add(&l->p->source.sources, l->label ? l->label : "<text>", l->text, strlen(l->text));
    if (at < 0)
        *st = error_set(l->ctx, DSOPT_INVALID_PROGRAM, "%s: the text is longer than 16 MiB",
                        l->label ? l->label : "<text>");
    return at;
}

static void make_modules(dsopt_program *p)
{
    const Rule *r = p->source.rule;
    p->modules = ARENA_ARRAY(&p->arena, ProgramModule, 2 + r->nentries);
    p->nmodules = 2 + r->nentries;
    p->modules[1].guarded = true;
    for (size_t i = 0; i < r->nentries; i++) {
        p->modules[2 + i].entry = r->entries[i].name;
        p->modules[2 + i].takes_buffers = r->entries[i].param != NULL;
    }
}

static dsopt_status load_body(void *arg)
{
    const Load *l = arg;
    dsopt_program *p = l->p;
    ProgramSource *s = &p->source;
    dsopt_status st = read_options(l->ctx, p, l->options);
    if (st != DSOPT_OK) return st;
    s->sources.arena = &p->arena;
    s->diags = (DiagSink){.arena = &p->arena, .sources = &s->sources};
    int file = l->path ? open_source(l, &st) : add_text(l, &st);
    if (file < 0) return st;
    if (!frontend_parse(&p->arena, &s->diags, file, &s->options, &s->ast) || s->diags.nerrors ||
        !(s->rule = frontend_check(&p->arena, &s->diags, &s->ast, &s->options)) || s->diags.nerrors)
        return diag_status(l->ctx, p, DSOPT_INVALID_PROGRAM);
    p->name = s->rule->name;
    make_modules(p);
    log_warnings(l->ctx, p);
    return program_module(l->ctx, p, &p->modules[0]);
}

static dsopt_status program_make(Load *l, dsopt_program **out)
{
    HOST_HERE;
    dsopt_program *p = mem_realloc(&l->ctx->alloc, NULL, sizeof *p);
    if (!p) return error_oom(l->ctx);
    *p = (dsopt_program){.alloc = l->ctx->alloc};
    atomic_init(&p->refs, 1);
    p->arena.alloc = &p->alloc;
    pthread_mutex_init(&p->lock, NULL);
    l->p = p;
    dsopt_status st = arena_try(l->ctx, &p->arena, load_body, l);
    if (st != DSOPT_OK) {
        dsopt_program_release(p);
        return st;
    }
    *out = p;
    return DSOPT_OK;
}

dsopt_status dsopt_program_load(dsopt_context *ctx, const char *path_or_name,
                                const dsopt_program_options *options, dsopt_program **out)
{
    if (out) *out = NULL;
    if (!ctx) return DSOPT_INVALID_ARGUMENT;
    if (!out || !path_or_name || !*path_or_name)
        return error_set(ctx, DSOPT_INVALID_ARGUMENT, "dsopt_program_load: %s",
                         out ? "no path or name was given" : "out is NULL");
    return program_make(&(Load){.ctx = ctx, .options = options, .path = path_or_name}, out);
}

dsopt_status dsopt_program_compile(dsopt_context *ctx, const char *text, const char *label,
                                   const dsopt_program_options *options, dsopt_program **out)
{
    if (out) *out = NULL;
    if (!ctx) return DSOPT_INVALID_ARGUMENT;
    if (!out || !text)
        return error_set(ctx, DSOPT_INVALID_ARGUMENT, "dsopt_program_compile: %s is NULL",
                         out ? "text" : "out");
    return program_make(&(Load){.ctx = ctx, .options = options, .text = text, .label = label}, out);
}

/* ---- references ------------------------------------------------------------------------------ */

void dsopt_program_retain(dsopt_program *p)
{
    if (p) atomic_fetch_add(&p->refs, 1);
}

void dsopt_program_release(dsopt_program *p)
{
    if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
    for (size_t i = 0; i < p->nmodules; i++) {
        for (Built *b = p->modules[i].built; b; b = b->next)
            if (b->backend->free_image) b->backend->free_image(b->code.image);
        for (BuiltPrograms *b = p->modules[i].scalars; b; b = b->next)
            if (b->backend->free_image) b->backend->free_image(b->code.image);
    }
    arena_free(&p->arena);
    pthread_mutex_destroy(&p->lock);
    Allocator alloc = p->alloc;
    mem_free(&alloc, p);
}

const char *dsopt_program_name(const dsopt_program *p)
{
    return p ? p->name : NULL;
}

size_t dsopt_program_entry_count(const dsopt_program *p)
{
    return p ? p->nmodules - 2 : 0;
}

const char *dsopt_program_entry_name(const dsopt_program *p, size_t i)
{
    return i < dsopt_program_entry_count(p) ? p->modules[2 + i].entry : NULL;
}

/* ---- what grows behind the lock -------------------------------------------------------------- */

typedef struct Grow { /* arguments of one of the functions below */
    dsopt_context *ctx;
    dsopt_program *p;
    ProgramModule *pm;
    uint32_t body;
    const DType *storage;
    const void *result;
} Grow;

static dsopt_status grow(Grow *g, dsopt_status (*body)(void *))
{
    pthread_mutex_lock(&g->p->lock);
    dsopt_status st = arena_try(g->ctx, &g->p->arena, body, g);
    pthread_mutex_unlock(&g->p->lock);
    return st;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static const char *keep_text(dsopt_program *p, const char *s)
{
    return s ? arena_strdup(&p->arena, s) : NULL;
}

static dsopt_status module_storage(Grow *g, IrModule *m, DType **out)
{
    StrBuf err = {.arena = &g->p->arena};
    DType *d = ARENA_ARRAY(&g->p->arena, DType, m->nelem);
    if (!storage_parse(g->p->source.storage, m, d, &err))
        return error_set_text(g->ctx, DSOPT_INVALID_ARGUMENT, err.text);
    if (!storage_names(g->p->source.storage, "p")) d[0] = DT_COUNT;
    if (!storage_names(g->p->source.storage, "g")) d[1] = DT_COUNT;
    *out = d;
    return DSOPT_OK;
}

/* The module before the passes. All of a rule are lowered together: they share what one needs. */
static IrModule *lowered(dsopt_program *p, ProgramModule *pm, StrBuf *why)
{
    size_t n = p->nmodules - 2;
    IrModule **m = ARENA_ARRAY(&p->arena, IrModule *, n + 1);
    LowerOptions o = {.compute_f64 = p->compute_f64, .guard_gradients = pm->guarded};
    if (pm->lowered) return pm->lowered;
    if (!compile_modules(&p->arena, &p->source.diags, p->source.rule, &o, m, why)) return NULL;
    p->modules[pm->guarded].lowered = m[0];
    for (size_t i = 0; i < n; i++) p->modules[2 + i].lowered = m[i + 1];
    return pm->lowered;
}

static dsopt_status module_body(void *arg)
{
    Grow *g = arg;
    dsopt_program *p = g->p;
    ProgramModule *pm = g->pm;
    if (!pm->m) {
        StrBuf why = {.arena = &p->arena};
        IrModule *m = lowered(p, pm, &why);
        if (!m && !why.len) return diag_status(g->ctx, p, DSOPT_INTERNAL);
        if (m) m = ir_run_passes(&p->arena, m, NULL, NULL, &why);
        if (!m)
            return error_set_text(g->ctx, DSOPT_INTERNAL, why.text ? why.text : "a pass failed");
        dsopt_status st = module_storage(g, m, &pm->storage);
        if (st != DSOPT_OK) return st;
        pm->m = m;
    }
    if (!pm->plan && g->ctx->backend->build_variant && !p->compute_f64 &&
        !(pm->plan = plan_make(&p->arena, pm->m)))
        return error_set(g->ctx, DSOPT_INTERNAL, "the program could not be scheduled");
    return DSOPT_OK;
}

dsopt_status program_module(dsopt_context *ctx, dsopt_program *p, ProgramModule *pm)
{
    Grow g = {.ctx = ctx, .p = p, .pm = pm};
    return grow(&g, module_body);
}

static const Variant *find_variant(Grow *g)
{
    ProgramModule *pm = g->pm;
    size_t bytes = pm->m->nelem * sizeof *g->storage;
    for (size_t i = 0; i < pm->nvariants; i++)
        if (pm->variants[i]->body == g->body &&
            memcmp(pm->variants[i]->storage, g->storage, bytes) == 0)
            return pm->variants[i];
    Variant *v = plan_variant(&g->p->arena, pm->plan, g->body, g->storage);
    if (v) ARENA_PUSH(&g->p->arena, pm->variants, pm->nvariants, pm->cap, v);
    return v;
}

static dsopt_status build_failed(Grow *g, StrBuf *why)
{
    if (!why->len) return error_oom(g->ctx);
    return error_set(g->ctx, DSOPT_BACKEND_FAILED, "backend \"%s\" could not build '%s': %s",
                     g->ctx->backend->name, g->p->name, why->text);
}

static dsopt_status build_body(void *arg)
{
    Grow *g = arg;
    const Backend *backend = g->ctx->backend;
    const BackendOptions *o = &g->ctx->options;
    const Variant *v = find_variant(g);
    if (!v)
        return error_set(g->ctx, DSOPT_INTERNAL, "'%s' could not be scheduled for these dtypes",
                         g->p->name);
    for (Built *b = g->pm->built; b; b = b->next)
        if (b->variant == v && b->backend == backend && same_text(b->isa, o->isa) &&
            same_text(b->cc, o->cc)) {
            g->result = b;
            return DSOPT_OK;
        }
    StrBuf why = {.arena = &g->p->arena};
    Built *b = ARENA_NEW(&g->p->arena, Built);
    *b = (Built){.backend = backend,
                 .variant = v,
                 .isa = keep_text(g->p, o->isa),
                 .cc = keep_text(g->p, o->cc)};
    if (!backend->build_variant(g->pm->plan, v, o, &b->code, &why)) return build_failed(g, &why);
    b->next = g->pm->built;
    g->pm->built = b;
    g->result = b;
    return DSOPT_OK;
}

dsopt_status program_build(dsopt_context *ctx, dsopt_program *p, ProgramModule *pm, uint32_t body,
                           const DType *storage, const Built **out)
{
    Grow g = {.ctx = ctx, .p = p, .pm = pm, .body = body, .storage = storage};
    dsopt_status st = grow(&g, build_body);
    *out = g.result;
    return st;
}

static dsopt_status scalars_body(void *arg)
{
    Grow *g = arg;
    const Backend *backend = g->ctx->backend;
    const BackendOptions *o = &g->ctx->options;
    for (BuiltPrograms *b = g->pm->scalars; b; b = b->next)
        if (b->backend == backend && same_text(b->isa, o->isa) && same_text(b->cc, o->cc)) {
            g->result = b;
            return DSOPT_OK;
        }
    StrBuf why = {.arena = &g->p->arena};
    BuiltPrograms *b = ARENA_NEW(&g->p->arena, BuiltPrograms);
    *b = (BuiltPrograms){
        .backend = backend, .isa = keep_text(g->p, o->isa), .cc = keep_text(g->p, o->cc)};
    if (!backend->build_scalars(g->pm->plan, o, &b->code, &why)) return build_failed(g, &why);
    b->next = g->pm->scalars;
    g->pm->scalars = b;
    g->result = b;
    return DSOPT_OK;
}

dsopt_status program_build_scalars(dsopt_context *ctx, dsopt_program *p, ProgramModule *pm,
                                   const BuiltPrograms **out)
{
    Grow g = {.ctx = ctx, .p = p, .pm = pm};
    dsopt_status st = grow(&g, scalars_body);
    *out = g.result;
    return st;
}
