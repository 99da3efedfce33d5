/* pass_simplify.c - emits a module again through the builder, which folds, shares and rounds.
 *
 * Requires and ensures a verified module. What the builder made comes out as it was; a text written
 * by hand comes out as the builder would have made it (unused instructions stay: dce).
 *
 *     %2 = mul %0 %1 with %1 = const 1; %3 = add %2 %2    ->    %1 = const 1; %2 = add %0 %0
 */
#include "ir_impl.h"

IrModule *pass_simplify(Arena *a, const IrModule *m);

IrModule *pass_simplify(Arena *a, const IrModule *m)
{
    return ir_rebuild(a, m, NULL, NULL, NULL);
}
