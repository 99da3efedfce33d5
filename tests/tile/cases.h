/* cases.h - rules of the library as the tests of this folder compile them. */
#ifndef TESTS_TILE_CASES_H
#define TESTS_TILE_CASES_H
#include "../check.h"
#include "codegen/codegen.h"
#include "codegen/compile.h"
#include <math.h>

typedef struct Case {
    const char *rule;
    const char *defines[4];
} Case;

static inline IrModule *compile_case(Arena *a, const Case *c, bool guard)
{
    SourceSet sources = {.arena = a};
    DiagSink d = {.arena = a, .sources = &sources};
    size_t len;
    const char *text = stdlib_text(c->rule, &len);
    FrontendOptions o = {.defines = c->defines};
    while (o.ndefines < 4 && c->defines[o.ndefines]) o.ndefines++;
    int file = source_add(&sources, c->rule, text, len);
    IrModule *m = compile_source(a, &d, file, &o, guard);
    StrBuf messages = {.arena = a};
    diag_render(&d, &messages, false);
    REQUIRE(m, "%s: %s", c->rule, messages.text ? messages.text : "");
    return m;
}
#endif
