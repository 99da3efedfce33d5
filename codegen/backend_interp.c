/* backend_interp.c - the reference: nothing is built, the IR itself is run (exec.h, interp_step).
 *
 *     emit  ->  the IR's text
 */
#include "backend.h"

static bool probe(const BackendOptions *o, StrBuf *why)
{
    (void)o;
    (void)why;
    return true;
}

static bool emit(const Plan *p, const Variant *v, const BackendOptions *o, StrBuf *out)
{
    (void)v;
    (void)o;
    ir_print(p->m, out);
    return true;
}

const Backend backend_interp = {
    .name = "interp",
    .what = "the reference: the IR evaluated instruction by instruction, also in f64",
    .probe = probe,
    .emit = emit,
};
