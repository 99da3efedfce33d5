/* What the checker folds, against the rows of ops.def.
 *
 *   in:  sign, min, %, … of all pairs of zeros, infinities, NaN, whole and other numbers
 *   out: the bits that the row gives in f64, or not folded; only the project's own functions, fma
 *        and powers that are not whole are not */
#include "codegen/codegen.h"
#include "frontend/check.h"
#include "tests/check.h"
#include <math.h>

static const double values[] = {0.0, -0.0, 1,         -1,       0.5,       -2.5,
                                3,   1e10, 0x1p-1070, INFINITY, -INFINITY, NAN};
enum { N = sizeof values / sizeof *values };

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static bool folds(Op op)
{
    static const Op own[] = {OP_EXP,     OP_LOG,      OP_TANH, OP_RSQRT, OP_FMA,  OP_POW,
                             OP_SIGMOID, OP_SOFTPLUS, OP_CBRT, OP_ATAN2, OP_SIN, OP_COS};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (op == own[i]) return false;
    return true;
}

static double operand(Op op, int k, int i)
{
    bool truth = op_info[op].types == LOGIC || (op_info[op].types == SELECT && k == 0);
    return truth ? i & 1 : values[i];
}

int main(void)
{
    int powers = 0;
    for (int op = 0; op < OP_COUNT_; op++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < N; k++) {
                double a = operand((Op)op, 0, i), b = operand((Op)op, 1, k), c = 7, got = NAN;
                bool folded = fold_op((Op)op, a, b, c, &got);
                double want = ir_eval((Op)op, true, a, b, c);
                powers += folded && op == OP_POW;
                CHECK(folded || !folds((Op)op), "%s is not folded", op_info[op].name);
                CHECK(!folded || same(got, want), "%s %a %a: %a, the row has %a", op_info[op].name,
                      a, b, got, want);
            }
    CHECK(powers > N, "%d powers are folded", powers);
    return check_done();
}
