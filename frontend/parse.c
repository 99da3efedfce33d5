/* parse.c - from a file and what it imports to one tree; and its tokens as text.
 *
 * Requires: a file of the sink's source set. Ensures: each file is parsed once, imports before the
 * file that names them; every mistake of all of them is in the sink; running out of memory returns
 * false where the arenas have no place of their own to go.
 *
 *     import "clip.opt"  +  optimizer a { use clip(1) … }   ->   Ast {IMPORT, TRANSFORM clip,
 * IMPORT, OPTIMIZER a}
 */
#include "parse.h"
#include "source.h"
#include "frontend/parser.tab.h"
#include <stdlib.h>
#include <string.h>

enum { IMPORT_DEPTH = 64 };

typedef struct Loader {
    Arena *arena;
    DiagSink *diags;
    const FrontendOptions *options;
    Ast *ast;
    SourceKeys keys;
    bool *done; /* by file index; files that are not are on the chain */
    size_t ndone, done_cap;
    int chain[IMPORT_DEPTH]; /* the files that are being loaded, outermost first */
    int depth;
} Loader;

/* ---- one file -------------------------------------------------------------------------------- */

static void parse_file(Loader *l, int file, Ast *out, bool application)
{
    Parser *p = ARENA_NEW(l->arena, Parser);
    *p = (Parser){.arena = l->arena,
                  .diags = l->diags,
                  .ast = out,
                  .statement_next = true,
                  .application = application};
    TokenList tokens = lex_file(l->arena, l->diags, out, file);
    p->source = &l->diags->sources->files[file];
    p->tokens = tokens.items;
    p->ntokens = tokens.n;
    p->filter = (Filter){.raw = tokens.items, .arena = l->arena};
    if (tokens.items) parse_tokens(p);
    out->app = p->app;
    out->app_uses = p->app_uses;
}

/* ---- imports --------------------------------------------------------------------------------- */

static const char *file_name(const Loader *l, int file)
{
    return l->diags->sources->files[file].name;
}

static void report_cycle(Loader *l, int file, Span at)
{
    StrBuf text = {.arena = l->arena};
    int i = 0;
    while (l->chain[i] != file) i++;
    for (; i < l->depth; i++) sb_printf(&text, "%s -> ", file_name(l, l->chain[i]));
    sb_puts(&text, file_name(l, file));
    diag_report(l->diags, DIAG_IMPORT_CYCLE, at, text.text);
}

static void load(Loader *l, int file, Span at);

static void load_import(Loader *l, int from, const Item *import)
{
    const FrontendOptions *o = l->options;
    Span at = import->name.span;
    int file = source_import(l->diags, from, at, import->text, o ? o->include_dirs : NULL,
                             o ? o->ninclude_dirs : 0, &l->keys);
    if (file < 0) return;
    for (int i = 0; i < l->depth; i++) {
        if (l->chain[i] == file) {
            report_cycle(l, file, at);
            return;
        }
    }
    if ((size_t)file < l->ndone && l->done[file]) return;
    load(l, file, at);
}

static void load(Loader *l, int file, Span at)
{
    if (l->depth == IMPORT_DEPTH) {
        diag_report(l->diags, DIAG_IMPORT_DEEP, at, IMPORT_DEPTH);
        return;
    }
    Ast own = {.names = l->ast->names};
    l->chain[l->depth++] = file;
    parse_file(l, file, &own, false);
    l->ast->names = own.names;
    for (size_t i = 0; i < own.n; i++) {
        if (own.items[i]->kind == IT_IMPORT) load_import(l, file, own.items[i]);
    }
    for (size_t i = 0; i < own.n; i++)
        ARENA_PUSH(l->arena, l->ast->items, l->ast->n, l->ast->cap, own.items[i]);
    l->depth--;
    while (l->ndone <= (size_t)file) ARENA_PUSH(l->arena, l->done, l->ndone, l->done_cap, false);
    l->done[file] = true;
}

/* ---- applications ---------------------------------------------------------------------------- */

/* Whether the text is more than the name of a rule. */
static bool is_application(const char *rule)
{
    size_t n = strspn(rule, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return rule[n] != 0;
}

static bool has_item(const Loader *l, const char *name)
{
    for (size_t i = 0; i < l->ast->n; i++) {
        const Item *item = l->ast->items[i];
        if (item->kind != IT_IMPORT && strcmp(item->name.text, name) == 0) return true;
    }
    return false;
}

/* Loads a file of the standard library, if it has one of this name. */
static void load_stdlib(Loader *l, int from, Name at, const char *file)
{
    size_t len;
    if (!stdlib_text(file, &len)) return;
    Item import = {.kind = IT_IMPORT, .name = at, .text = file};
    load_import(l, from, &import);
}

/* Loads what an application names and no file has: the standard library's file of this name. */
static void load_named(Loader *l, int from, Name name)
{
    if (!has_item(l, name.text)) load_stdlib(l, from, name, name.text);
}

static void load_names(Loader *l, int from, Expr *const *args, int n)
{
    for (int i = 0; i < n; i++) {
        const Expr *e = args[i];
        if (e->kind == EX_NAME || e->kind == EX_CALL) load_named(l, from, e->name);
        if (e->kind == EX_CALL && !has_item(l, e->name.text)) /* a schedule of the library's */
            load_stdlib(l, from, e->name, "schedules");
        load_names(l, from, e->args, e->nargs);
    }
}

static void load_app(Loader *l, int from, const App *app)
{
    load_named(l, from, app->name);
    load_names(l, from, app->args, app->nargs);
}

static void parse_application(Loader *l, const char *rule)
{
    l->ast->applied = true;
    int file = source_add(l->diags->sources, "<rule>", rule, strlen(rule));
    if (file < 0) {
        diag_report(l->diags, DIAG_FILE_SIZE, (Span){0, 0}, "<rule>");
        return;
    }
    Ast own = {.names = l->ast->names};
    parse_file(l, file, &own, true);
    l->ast->names = own.names;
    l->ast->app = own.app;
    l->ast->app_uses = own.app_uses;
    for (size_t i = 0; i < own.n; i++) {
        Name name = own.items[i]->name;
        if (!name_lost(name))
            diag_report(l->diags, DIAG_ITEM_INSIDE, name.span, name.text, "an application");
    }
    if (!own.app) return;
    load_app(l, file, own.app);
    for (size_t i = 0; own.app_uses && i < own.app_uses->n; i++)
        if (own.app_uses->stmts[i]->kind == ST_USE) load_app(l, file, own.app_uses->stmts[i]->app);
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Functions have a name space of their own; imports define nothing. */
static int name_space(const Item *i)
{
    return i->kind == IT_IMPORT ? 0 : i->kind == IT_FN || i->kind == IT_SCHEDULE ? 1 : 2;
}

typedef struct Definition {
    const Item *item;
    size_t index; /* imports stand before what imports them */
} Definition;

static int by_definition(const void *pa, const void *pb)
{
    const Definition *a = pa, *b = pb;
    int spaces = name_space(a->item) - name_space(b->item),
        names = spaces ? 0 : strcmp(a->item->name.text, b->item->name.text);
    if (spaces || names) return spaces ? spaces : names;
    return a->index < b->index ? -1 : a->index > b->index;
}

static void check_redefined(Loader *l)
{
    size_t n = l->ast->n;
    Definition *order = ARENA_ARRAY(l->arena, Definition, n + 1);
    for (size_t i = 0; i < n; i++) order[i] = (Definition){l->ast->items[i], i};
    qsort(order, n, sizeof *order, by_definition);
    for (size_t i = 1, first = 0; i < n; i++) {
        const Item *a = order[first].item, *b = order[i].item;
        if (name_space(b) == 0 || name_space(a) != name_space(b) || a->name.text != b->name.text ||
            strcmp(a->name.text, BAD_NAME) == 0) {
            first = i;
            continue;
        }
        Diag *diag = diag_report(l->diags, DIAG_REDEFINED, b->name.span, b->name.text);
        diag_note(l->diags, diag, a->name.span, "first defined here");
    }
}

/* ---- entry points ---------------------------------------------------------------------------- */

typedef struct Task {
    Arena *arena;
    DiagSink *diags;
    int file;
    const FrontendOptions *options;
    Ast *ast;
    StrBuf *out;
} Task;

/* Runs it with a place to go for arenas that have none when memory runs out; false then, and where
 * it reported errors. */
static bool run_guarded(void (*run)(const Task *task), const Task *task)
{
    Arena *arenas[] = {task->arena, task->diags->arena, task->diags->sources->arena};
    jmp_buf out, *saved[3];
    int errors = task->diags->nerrors;
    volatile bool finished = false;
    for (int i = 0; i < 3; i++) saved[i] = arenas[i]->oom;
    if (setjmp(out) == 0) {
        for (int i = 0; i < 3; i++) {
            if (!arenas[i]->oom) arenas[i]->oom = &out;
        }
        run(task);
        finished = true;
    }
    for (int i = 0; i < 3; i++) arenas[i]->oom = saved[i];
    return finished && task->diags->nerrors == errors;
}

static void parse_all(const Task *task)
{
    Loader l = {
        .arena = task->arena, .diags = task->diags, .options = task->options, .ast = task->ast};
    task->ast->file = task->file;
    source_key(task->diags, task->file, &l.keys);
    load(&l, task->file, (Span){0, 0});
    const char *rule = task->options ? task->options->rule : NULL;
    if (rule && is_application(rule)) parse_application(&l, rule);
    check_redefined(&l);
}

bool frontend_parse(Arena *a, DiagSink *d, int file, const FrontendOptions *o, Ast *ast)
{
    return run_guarded(parse_all, &(Task){a, d, file, o, ast, NULL});
}

static const char *token_class(int kind)
{
    switch (kind) {
    case 0: return "end";
    case TK_SEP: return "sep";
    case TK_NUM: return "number";
    case TK_STRING: return "string";
    case TK_IDENT: return "name";
    case TK_DEF:
    case TK_ADDA:
    case TK_SUBA:
    case TK_MULA:
    case TK_DIVA:
    case TK_EQ:
    case TK_NE:
    case TK_LE:
    case TK_GE:
    case TK_ARROW:
    case TK_NMATCH:
    case TK_DOTS: return "operator";
    default: return kind < 256 ? "operator" : "keyword";
    }
}

static void print_tokens(const Task *task)
{
    Arena *a = task->arena;
    DiagSink *d = task->diags;
    StrBuf *out = task->out;
    int file = task->file;
    Ast names = {0};
    TokenList tokens = lex_file(a, d, &names, file);
    if (!tokens.items) return;
    Filter filter = {.raw = tokens.items, .arena = a};
    const SourceFile *f = &d->sources->files[file];
    uint32_t line_begin = 0, at = 0;
    int line = 1;
    Token t;
    do {
        size_t index;
        t = filter_next(&filter, &index);
        uint32_t begin = t.span.begin - f->base, n = t.span.end - t.span.begin;
        for (; at < begin;
             at++) { /* counted along the way: source_position would begin anew for each token */
            if (f->text[at] == '\n') line++, line_begin = at + 1;
        }
        sb_printf(out, "%d:%u %s", line, begin - line_begin + 1, token_class(t.kind));
        if (t.kind != 0 && t.kind != TK_SEP) sb_printf(out, " %.*s", (int)n, f->text + begin);
        sb_puts(out, "\n");
    } while (t.kind != 0);
}

bool frontend_tokens(Arena *a, DiagSink *d, int file, StrBuf *out)
{
    return run_guarded(print_tokens, &(Task){a, d, file, NULL, NULL, out});
}

static void format_file(const Task *task)
{
    DiagSink *d = task->diags;
    Ast own = {0};
    Loader l = {.arena = task->arena, .diags = d};
    int errors = d->nerrors;
    parse_file(&l, task->file, &own, false);
    if (d->nerrors > errors) return;
    TokenList tokens = lex_file(task->arena, d, &own, task->file);
    format_tokens(task->arena, &d->sources->files[task->file], tokens.items, task->out);
}

bool frontend_format(Arena *a, DiagSink *d, int file, StrBuf *out)
{
    return run_guarded(format_file, &(Task){a, d, file, NULL, NULL, out});
}
