/* compile.c - the whole way from source text to an optimised module.
 *
 * Requires a sink whose source set has the file. Ensures that every failure is a message in the
 * sink.
 *
 *     int f = source_add(&sources, "sgd.opt", text, strlen(text));
 *     IrModule *m = compile_source(&arena, &sink, f, &(FrontendOptions){0}, true);
 *     plan_make(&arena, m);
 */
#include "compile.h"

static IrModule *compile(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                         bool guard_gradients, const char *dump_after, StrBuf *dump)
{
    Ast ast = {0};
    if (!frontend_parse(a, d, file, o, &ast)) {
        frontend_check_file(a, d, &ast, o); /* all mistakes in one run */
        return NULL;
    }
    Rule *rule = frontend_check(a, d, &ast, o);
    if (!rule) return NULL;
    LowerOptions lower = {.compute_f64 = o->compute_f64, .guard_gradients = guard_gradients};
    IrModule *m = ir_lower(a, d, rule, &lower);
    if (!m) return NULL;
    StrBuf why = {.arena = a};
    IrModule *out = ir_run_passes(a, m, dump_after, dump, &why);
    if (!out)
        diag_report(d, DIAG_INTERNAL, rule->item->name.span, why.text ? why.text : "a pass failed");
    if (out) lint_module(d, out);
    return out;
}

IrModule *compile_source_dump(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                              bool guard_gradients, const char *dump_after, StrBuf *dump)
{
    static const FrontendOptions none;
    Arena *arenas[3] = {a, d->arena, d->sources->arena};
    jmp_buf out, *saved[3];
    IrModule *volatile m = NULL;
    for (int i = 0; i < 3; i++) saved[i] = arenas[i]->oom;
    if (setjmp(out) == 0) {
        for (int i = 0; i < 3; i++)
            if (!arenas[i]->oom) arenas[i]->oom = &out;
        m = compile(a, d, file, o ? o : &none, guard_gradients, dump_after, dump);
    }
    for (int i = 2; i >= 0; i--) arenas[i]->oom = saved[i];
    return m;
}

IrModule *compile_source(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                         bool guard_gradients)
{
    return compile_source_dump(a, d, file, o, guard_gradients, NULL, NULL);
}
