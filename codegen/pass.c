/* pass.c - the passes by name (pass.def), and running them all with the verifier between.
 *
 *     ir_run_passes(a, m, "dce", &text, &why)  ->  the last pass's module; text: that after dce
 */
#include "ir_impl.h"
#include <string.h>

#define PASS(name, function, what) IrModule *function(Arena *a, const IrModule *m);
#include "pass.def"

const PassInfo pass_info[] = {
#define PASS(name, function, what) {#name, what, function},
#include "pass.def"
};
const size_t pass_count = sizeof pass_info / sizeof *pass_info;

IrModule *ir_run_passes(Arena *a, IrModule *m, const char *dump_after, StrBuf *out, StrBuf *why)
{
    StrBuf local = {.arena = a};
    if (!why) why = &local;
    if (!ir_verify(m, why)) return NULL;
    for (size_t i = 0; i < pass_count; i++) {
        m = pass_info[i].run(a, m);
        if (!m) {
            sb_printf(why, "pass %s gave nothing", pass_info[i].name);
            return NULL;
        }
        StrBuf wrong = {.arena = a};
        if (!ir_verify(m, &wrong)) {
            sb_printf(why, "after pass %s: %s", pass_info[i].name, wrong.text ? wrong.text : "");
            return NULL;
        }
        if (dump_after && out && strcmp(dump_after, pass_info[i].name) == 0) ir_print(m, out);
    }
    return m;
}
