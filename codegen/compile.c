/* compile.c - the whole way from source text to an optimised module.
 *
 * Requires a sink whose source set has the file. Ensures that every failure is a message in the sink.
 *
 *     int f = source_add(&sources, "sgd.opt", text, strlen(text));
 *     IrModule *m = compile_source(&arena, &sink, f, &(FrontendOptions){0}, true);
 *     plan_make(&arena, m);
 */
#include "compile.h"

IrModule *compile_source(Arena *a, DiagSink *d, int file, const FrontendOptions *o, bool guard_gradients)
{
    Ast ast = {0};
    if (!frontend_parse(a, d, file, o, &ast)) return NULL;
    Rule *rule = frontend_check(a, d, &ast, o);
    if (!rule) return NULL;
    LowerOptions lower = {.compute_f64 = o->compute_f64, .guard_gradients = guard_gradients};
    IrModule *m = ir_lower(a, d, rule, &lower);
    if (!m) return NULL;
    StrBuf why = {.arena = a};
    IrModule *out = ir_run_passes(a, m, NULL, NULL, &why);
    if (!out) diag_report(d, DIAG_INTERNAL, rule->item->name.span, why.text ? why.text : "a pass failed");
    return out;
}
