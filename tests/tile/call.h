/* call.h - calls any tile operator from a table of its arguments, and says what its result must be,
 * for the tests.
 *
 * The result is computed from the row's text: the pattern is parsed and evaluated with the scalar
 * expressions of ops.def, so that what the selector matches is what is checked.
 *
 *     TileArgs a = {…};  tile_call(TILE_axpby, table->op[TILE_axpby], n, out, &a);
 * tile_expect(TILE_axpby, &a, i, want)
 */
#ifndef TESTS_TILE_CALL_H
#define TESTS_TILE_CALL_H
#include "../check.h"
#include "codegen/codegen.h"
#include "codegen/fn.h"
#include "codegen/tile/tile.h"
#include "codegen/tile/tile_map.h"
#include <stdlib.h>
#include <string.h>

typedef struct TileArgs {
    const float *v[6];
    const int *b[3];
    float s[8], d[2];
    int c[2];
    float *o[4];
} TileArgs;

static inline uint32_t random_bits(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15u;
    return (uint32_t)(check_random(&state) >> 32);
}

typedef union Scalar { /* a float, or the int of a bool */
    float f;
    int i;
} Scalar;

#define P_V const float *
#define P_B const int *
#define P_S float
#define P_C int
#define P_D float
#define P_O float *
#define P_V0 P_V
#define P_V1 P_V
#define P_V2 P_V
#define P_V3 P_V
#define P_V4 P_V
#define P_V5 P_V
#define P_B0 P_B
#define P_B1 P_B
#define P_B2 P_B
#define P_S0 P_S
#define P_S1 P_S
#define P_S2 P_S
#define P_S3 P_S
#define P_S4 P_S
#define P_S5 P_S
#define P_S6 P_S
#define P_S7 P_S
#define P_C0 P_C
#define P_C1 P_C
#define P_D0 P_D
#define P_D1 P_D
#define P_O1 P_O
#define P_O2 P_O
#define P_O3 P_O
#define A_V0 a->v[0]
#define A_V1 a->v[1]
#define A_V2 a->v[2]
#define A_V3 a->v[3]
#define A_V4 a->v[4]
#define A_V5 a->v[5]
#define A_B0 a->b[0]
#define A_B1 a->b[1]
#define A_B2 a->b[2]
#define A_S0 a->s[0]
#define A_S1 a->s[1]
#define A_S2 a->s[2]
#define A_S3 a->s[3]
#define A_S4 a->s[4]
#define A_S5 a->s[5]
#define A_S6 a->s[6]
#define A_S7 a->s[7]
#define A_C0 a->c[0]
#define A_C1 a->c[1]
#define A_D0 a->d[0]
#define A_D1 a->d[1]
#define A_O1 a->o[1]
#define A_O2 a->o[2]
#define A_O3 a->o[3]

static inline void tile_call(int op, TileFn fn, long n, void *out, const TileArgs *a)
{
    switch (op) {
#define TILE(name, type, params, expr)                                                             \
    case TILE_##name:                                                                              \
        ((void (*)(long, void *, TILE_LIST(P_, params)))fn)(n, out, TILE_LIST(A_, params));        \
        break;
#define TILE_RED(name, reduction, params, x, y)                                                    \
    case TILE_RED_##name:                                                                          \
        ((void (*)(long, void *, TILE_LIST(P_, params)))fn)(n, out, TILE_LIST(A_, params));        \
        break;
#include "codegen/tile/tile.def"
    default: abort();
    }
}

/* ---- what the result must be ----------------------------------------------------------------- */

/* clang-format off */
static inline Scalar tile_op(int op, Scalar x, Scalar y, Scalar z)
{
    switch (op) {
#define EVAL_NUM(fn) .f = fn(x.f, y.f, z.f)
#define EVAL_CMP(fn) .i = fn(x.f, y.f, z.f)
#define EVAL_LOGIC(fn) .i = fn(x.i, y.i, z.i)
#define EVAL_SELECT(fn) .i = x.i ? y.i : z.i
#define OP(E, name, spelling, arity, types, expr) case OP_##E: return (Scalar){EVAL_##types(fn32_##E)};
#include "frontend/ops.def"
    default: abort();
    }
}
/* clang-format on */

typedef struct Reader {
    const char *p;
    const TileArgs *a;
    long i;
    Scalar out[4]; /* values of O1, O2 */
} Reader;

static inline int tile_op_by_text(const char *s, size_t n)
{
    static const char *const names[] = {
#define OP(E, name, spelling, arity, types, expr) #E,
#include "frontend/ops.def"
    };
    for (int k = 0; k < OP_COUNT_; k++) {
        if (strlen(names[k]) == n && memcmp(names[k], s, n) == 0) return k;
    }
    return n == 4 && memcmp(s, "DIVS", 4) == 0 ? (int)OP_DIV : -1;
}

static inline Scalar tile_leaf(const Reader *r, const char *s)
{
    int k = s[1] - '0';
    switch (s[0]) {
    case 'V': return (Scalar){.f = r->a->v[k][r->i]};
    case 'B': return (Scalar){.i = r->a->b[k][r->i]};
    case 'S': return (Scalar){.f = r->a->s[k]};
    case 'C': return (Scalar){.i = r->a->c[k]};
    case 'D': return (Scalar){.f = r->a->d[k]};
    default: return (Scalar){.i = 0};
    }
}

static inline Scalar tile_read(Reader *r)
{
    const char *s = r->p;
    while ((*r->p >= 'A' && *r->p <= 'Z') || (*r->p >= '0' && *r->p <= '9')) r->p++;
    if (*r->p != '(') return tile_leaf(r, s);
    size_t n = (size_t)(r->p - s);
    Scalar arg[3] = {{0}, {0}, {0}};
    for (int k = 0; *r->p != ')'; k++) {
        r->p += strspn(r->p, "(, ");
        arg[k] = tile_read(r);
    }
    r->p++;
    if (n == 2 && (s[1] >= '1' && s[1] <= '3')) return r->out[s[1] - '0'] = arg[0];
    if (n == 4 && memcmp(s, "WITH", 4) == 0) return arg[1];
    if (n == 2 && memcmp(s, "SQ", 2) == 0) return tile_op(OP_MUL, arg[0], arg[0], arg[0]);
    int op = tile_op_by_text(s, n);
    if (op < 0) abort();
    return tile_op(op, arg[0], arg[1], arg[2]);
}

/* Element i of `text` (a pattern); out[1], out[2]: of the further outputs. */
static inline Scalar tile_expect(const char *text, const TileArgs *a, long i, Scalar out[4])
{
    Reader r = {text, a, i, {{0}}};
    Scalar v = tile_read(&r);
    if (out) memcpy(out, r.out, sizeof r.out);
    return v;
}

static inline bool same_float(float a, float b)
{
    return memcmp(&a, &b, 4) == 0 || (a != a && b != b);
}
#endif
