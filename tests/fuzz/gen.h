/* gen.h - what the parts of the generator share: what is known at a place of a program that is being
 * written, and expressions made of it.
 *
 *     Text x = gen_number(g, 3, RATE_ROW);     ->  "(R * mean[row]((g + 0.5)))", RATE_ROW
 */
#ifndef TESTS_FUZZ_GEN_H
#define TESTS_FUZZ_GEN_H
#include "rules.h"

typedef enum VarKind { VAR_LET, VAR_HYPER, VAR_STATE, VAR_DIRECTION, VAR_GIVEN } VarKind;
typedef struct Var {
    const char *name;
    VarKind kind;
    Rate rate;
    bool truth;
    bool in_arm;
    bool written;
    bool stored; /* its storage is given, so it must be there */
    int count; /* of an array; 0: none */
} Var;
typedef struct Text {
    const char *s;
    Rate rate;
} Text;
typedef struct Fn {
    const char *name;
    int nargs;
} Fn;

typedef enum Layout { LAYOUT_FLAT, LAYOUT_BLOCK, LAYOUT_ARMS } Layout;
typedef enum Place { PLACE_STEP, PLACE_INIT, PLACE_ENTRY, PLACE_INITIAL } Place;

enum { GEN_VARS = 96, GEN_FNS = 4 };
typedef struct Gen {
    Arena *a;
    uint64_t *state;
    StrBuf *out;
    int indent, serial;
    Var vars[GEN_VARS];
    int nvars;
    Fn fns[GEN_FNS];
    int nfns;
    Layout layout;
    bool first;        /* shape arms are [r, ..] in this program */
    bool view, in_arm; /* rows and columns are known here; some arm of a shape */
    bool g_is_seen;
    Place place;
    Rate guard;        /* of the conditions around */
    const char *block; /* "block 16" */
    bool writes_g, writes_p, is_transform, has_direction;
    int depth; /* of blocks */
    int sweeps; /* reductions that may still be written */
} Gen;

static inline uint32_t gen_pick(Gen *g, uint32_t n)
{
    return below(g->state, n);
}
static inline bool gen_one_in(Gen *g, uint32_t n)
{
    return gen_pick(g, n) == 0;
}
static inline const char *gen_name(Gen *g, const char *stem)
{
    return arena_printf(g->a, "%s%d", stem, g->serial++);
}
Var *gen_var(Gen *g, const char *name, VarKind kind, Rate rate);
/* gen_expr.c: expressions whose rate is within `most`. */
Text gen_number(Gen *g, int depth, Rate most);
Text gen_truth(Gen *g, int depth, Rate most);
/* One bounded where it is used again and again. */
Text gen_tame(Gen *g, int depth, Rate most);
/* A rate that values may have here. */
Rate gen_rate(Gen *g);
/* "g" or what else is of element rate here. */
const char *gen_element(Gen *g);
const char *gen_literal(Gen *g);
#endif
