/* check_fold.c - arithmetic on constants while checking: conditions, defaults, ranges.
 *
 * Only IEEE operations, so that a value folded here has the bits that a step would compute
 * (tests/sema/fold.c compares each with its row of ops.def).
 * Functions that are the project's own (exp, log, …) are not folded; what needs them is computed
 * where it is read.
 *
 *     fold_op(OP_SUB, 1, 0.9, 0, &x)  ->  true, x = 0.09999999999999998
 */
#include "check.h"
#include <math.h>

/* x^n for integral n, |n| < 2^53: square and multiply from the lowest bit (language reference,
 * point 4). */
static double power(double x, double n)
{
    double r = 1;
    for (uint64_t k = (uint64_t)fabs(n); k; k >>= 1) {
        if (k & 1) r *= x;
        x *= x;
    }
    return n < 0 ? 1 / r : r;
}

bool fold_op(Op op, double a, double b, double c, double *out)
{
    switch (op) {
    case OP_ADD: *out = a + b; return true;
    case OP_SUB: *out = a - b; return true;
    case OP_MUL: *out = a * b; return true;
    case OP_DIV: *out = a / b; return true;
    case OP_MOD: *out = a - b * floor(a / b); return true;
    case OP_NEG: *out = -a; return true;
    case OP_ABS: *out = fabs(a); return true;
    case OP_SQRT: *out = sqrt(a); return true;
    case OP_FLOOR: *out = floor(a); return true;
    case OP_SIGN: *out = a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a; return true;
    case OP_MIN: *out = a < b || a != a ? a : b; return true;
    case OP_MAX: *out = a > b || a != a ? a : b; return true;
    case OP_F32: *out = (float)a; return true;
    case OP_FINITE: *out = a - a == 0; return true;
    case OP_LT: *out = a < b; return true;
    case OP_LE: *out = a <= b; return true;
    case OP_GT: *out = a > b; return true;
    case OP_GE: *out = a >= b; return true;
    case OP_EQ: *out = a == b; return true;
    case OP_NE: *out = a != b; return true;
    case OP_AND: *out = a != 0 && b != 0; return true;
    case OP_OR: *out = a != 0 || b != 0; return true;
    case OP_NOT: *out = a == 0; return true;
    case OP_SELECT: *out = a != 0 ? b : c; return true;
    case OP_POW:
        if (b != floor(b) || fabs(b) >= 0x1p53) return false;
        *out = power(a, b);
        return true;
    default: return false;
    }
}
