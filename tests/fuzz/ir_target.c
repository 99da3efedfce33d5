/* ir_target.c - a module's text: read, verified, printed, read again, through the passes, planned.
 *
 *   in:  any bytes
 *   out: no crash; a module or a message; what was printed reads back as the same text, before the
 *        passes and after them
 */
#include "target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena a = {0};
    StrBuf why = {.arena = &a}, text = {.arena = &a};
    char *input = arena_strndup(&a, (const char *)data, size);
    IrModule *m = ir_parse_unverified(&a, input, &why);
    MUST(m || why.len, "no message for\n%s", input);
    if (m) {
        ir_print(m, &text);
        bool valid = ir_verify(m, &why);
        MUST(valid || why.len, "no message for\n%s", input);
        MUST(valid == (ir_parse(&a, input, &why) != NULL), "%s\n%s", why.text, input);
        if (valid) {
            must_round_trip(&a, m);
            m = ir_run_passes(&a, m, NULL, NULL, &why);
            MUST(m, "%s\n%s", why.text, input);
            must_round_trip(&a, m);
            must_plan(&a, m);
        }
    }
    arena_free(&a);
    return 0;
}
