/* compile.h - from source text to the module that plans and executors take, in one call. */
#ifndef CODEGEN_COMPILE_H
#define CODEGEN_COMPILE_H
#include "ir.h"

/* Parses file `file` of the sink's sources, checks the rule that `o` names, lowers it and runs all
 * passes. NULL: errors were reported in `d` (warnings may be in any case), or memory ran out (no
 * error in `d`). `guard_gradients`: the implicit guard of 16-bit gradients (LowerOptions). */
IrModule *compile_source(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                         bool guard_gradients);
/* The same; the module after pass `dump_after` is printed into `dump` (--dump-after). */
IrModule *compile_source_dump(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                              bool guard_gradients, const char *dump_after, StrBuf *dump);

/* The modules of all entry points of a rule, the step first; of one where `o` names it. False: as
 * above. */
typedef struct Modules {
    IrModule **m;
    size_t n;
} Modules;
bool compile_entries(Arena *a, DiagSink *d, int file, const FrontendOptions *o,
                     bool guard_gradients, Modules *out);

/* A checked rule's step into m[0], its entry points in their order behind it (m: 1 + nentries),
 * with the states that one of them needs; before the passes. o->entry is not looked at. False:
 * errors in `d`, or a bug, text in `why`. */
bool compile_modules(Arena *a, DiagSink *d, const Rule *rule, const LowerOptions *o, IrModule **m,
                     StrBuf *why);

/* As compile_source, for its messages alone; a file of transforms and functions need not have an
 * optimizer. False after errors. */
bool check_source(Arena *a, DiagSink *d, int file, const FrontendOptions *o);

/* Warns where a step with a gradient of zero, at first, would store NaN or infinity. */
void lint_module(DiagSink *d, const IrModule *m);
/* Warns of states over elements that hold squares and are to be stored as f16 (m->nelem dtypes). */
void lint_storage(DiagSink *d, const IrModule *m, const DType *storage);
#endif
