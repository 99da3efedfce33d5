/* gen_expr.c - random expressions of the language, of a rate that is asked for.
 *
 *   in:  what is known at a place (Gen), RATE_TENSOR
 *   out: "(lr * max(norm(m0), rms((g - p)), …))": its rate is within what was asked for
 *
 * Every operator stands in brackets, so that the reducer can take a part for the whole.
 */
#include "gen.h"
#include <string.h>

const char *gen_literal(Gen *g)
{
    static const char *const numbers[] = {"0.5", "2",    "1",    "0.25", "3",   "0.1",  "0.9", "1e-3",
                                          "7",   "1e-8", "1.25", "0.75", "0.3", "1e-2", "0",   "pi"};
    return numbers[gen_pick(g, sizeof numbers / sizeof *numbers)];
}

Rate gen_rate(Gen *g)
{
    static const Rate rows[] = {RATE_ROW, RATE_COL, RATE_MATRIX};
    uint32_t n = gen_pick(g, 10);
    if (g->view && n < 4) return rows[gen_pick(g, 3)];
    if (g->block && n < 4) return RATE_BLOCK;
    return n < 7 ? RATE_ELEMENT : n < 9 ? RATE_TENSOR : gen_one_in(g, 2) ? RATE_GLOBAL : RATE_GROUP;
}

const char *gen_element(Gen *g)
{
    return g->g_is_seen && !gen_one_in(g, 3) ? "g" : "p";
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static Text element_of(Gen *g, const Var *v)
{
    Text x = {v->name, v->rate};
    if (v->count == 0) {
        if (v->kind == VAR_STATE && g->place == PLACE_STEP && gen_one_in(g, 12))
            x.s = arena_printf(g->a, "old(%s)", v->name);
        return x;
    }
    uint32_t at = gen_pick(g, (uint32_t)v->count);
    x.s = arena_printf(g->a, "%s[%u]", v->name, at);
    if (v->kind != VAR_STATE || v->rate == RATE_GROUP) return x;
    if (gen_one_in(g, 3)) {
        bool own = rate_within(RATE_TENSOR, v->rate) && gen_one_in(g, 2);
        x.s = arena_printf(g->a, "%s[%s %% %d]", v->name, own ? "t" : "s", v->count);
    } else if (g->place == PLACE_STEP && gen_one_in(g, 8)) {
        x.s = arena_printf(g->a, "old(%s[%u])", v->name, at);
    }
    return x;
}

/* Initial values see no names: they are taken where the rule begins. */
static bool is_seen(const Gen *g, const Var *v)
{
    return g->place != PLACE_INITIAL || v->kind == VAR_HYPER || v->kind == VAR_STATE;
}

/* A variable, a property, a number. */
static Text leaf(Gen *g, Rate most)
{
    for (int tries = 0; tries < 8 && g->nvars; tries++) {
        const Var *v = &g->vars[gen_pick(g, (uint32_t)g->nvars)];
        if (!v->truth && rate_within(v->rate, most) && is_seen(g, v)) return element_of(g, v);
    }
    static const struct {
        const char *name;
        Rate rate;
    } given[] = {{"s", RATE_GLOBAL},    {"t", RATE_TENSOR},    {"numel", RATE_TENSOR},
                 {"ndim", RATE_TENSOR}, {"rows", RATE_TENSOR}, {"cols", RATE_TENSOR}};
    if (most == RATE_ELEMENT && !gen_one_in(g, 4)) return (Text){gen_element(g), RATE_ELEMENT};
    uint32_t n = gen_pick(g, 12);
    if (n < 6 && g->place != PLACE_INITIAL && rate_within(given[n].rate, most))
        return (Text){given[n].name, given[n].rate};
    return (Text){gen_literal(g), RATE_GLOBAL};
}

/* ---- reductions ------------------------------------------------------------------------------ */

static const struct {
    const char *scope;
    Rate rate;
} scopes[] = {{"[all]", RATE_GLOBAL}, {"[group]", RATE_GROUP}, {"", RATE_TENSOR},
              {"[matrix]", RATE_MATRIX}, {"[row]", RATE_ROW},  {"[col]", RATE_COL}};

/* A scope whose result is within `most`, and stands here; false: none was found. */
static bool find_scope(Gen *g, Rate most, const char **scope, Rate *rate)
{
    for (int tries = 0; tries < 6; tries++) {
        uint32_t k = gen_pick(g, 7);
        *rate = k == 6 ? RATE_BLOCK : scopes[k].rate;
        if (!rate_within(*rate, most)) continue;
        if ((*rate & AXIS_MATRIX) && !g->view) continue;
        if (k == 6 && !g->block) continue;
        *scope = k == 6 ? arena_printf(g->a, "[%s]", g->block) : scopes[k].scope;
        return true;
    }
    return false;
}

static bool reduction(Gen *g, int depth, Rate most, bool truth, Text *out)
{
    static const char *const numbers[] = {"sum", "mean", "max", "min", "norm", "rms", "dot", "count"};
    static const char *const truths[] = {"any", "all"};
    const char *scope, *name = truth ? truths[gen_pick(g, 2)] : numbers[gen_pick(g, 8)];
    Rate rate;
    if (g->sweeps <= 0 || g->place == PLACE_INITIAL || !find_scope(g, most, &scope, &rate))
        return false;
    g->sweeps--;
    bool logic = truth || strcmp(name, "count") == 0;
    Text x = logic ? gen_truth(g, depth - 1, RATE_ELEMENT) : gen_number(g, depth - 1, RATE_ELEMENT);
    if (!rate_within(rate, x.rate) || (x.rate == rate && !gen_one_in(g, 4))) {
        x.s = arena_printf(g->a, logic ? "(%s and %s > 0)" : "(%s * %s)", x.s, gen_element(g));
        x.rate = RATE_ELEMENT;
    }
    out->rate = rate;
    if (strcmp(name, "dot") == 0)
        out->s = arena_printf(g->a, "dot%s(%s, %s)", scope, x.s, gen_number(g, 1, x.rate).s);
    else
        out->s = arena_printf(g->a, "%s%s(%s)", name, scope, x.s);
    return true;
}

/* ---- truth values ---------------------------------------------------------------------------- */

Text gen_truth(Gen *g, int depth, Rate most)
{
    Text out;
    for (int tries = 0; tries < 4 && g->nvars; tries++) {
        const Var *v = &g->vars[gen_pick(g, (uint32_t)g->nvars)];
        if (v->truth && rate_within(v->rate, most) && is_seen(g, v)) return (Text){v->name, v->rate};
    }
    if (depth > 1 && gen_one_in(g, 6) && reduction(g, depth, most, true, &out)) return out;
    uint32_t n = depth > 1 ? gen_pick(g, 8) : 4 + gen_pick(g, 4);
    if (n == 0) {
        Text x = gen_truth(g, depth - 1, most);
        return (Text){arena_printf(g->a, "(not %s)", x.s), x.rate};
    }
    if (n < 3) {
        Text x = gen_truth(g, depth - 1, most), y = gen_truth(g, depth - 1, most);
        return (Text){arena_printf(g->a, "(%s %s %s)", x.s, n == 1 ? "and" : "or", y.s),
                      rate_join(x.rate, y.rate)};
    }
    static const char *const compare[] = {"<", "<=", ">", ">=", "==", "!="};
    Text x = gen_number(g, depth - 1, most);
    if (gen_one_in(g, 8)) return (Text){arena_printf(g->a, "finite(%s)", x.s), x.rate};
    if (x.rate == RATE_GLOBAL && g->place != PLACE_INITIAL) x.s = arena_printf(g->a, "(s + %s)", x.s);
    Text y = gen_number(g, depth - 1, most);
    return (Text){arena_printf(g->a, "(%s %s %s)", x.s, compare[gen_pick(g, gen_one_in(g, 4) ? 6 : 4)],
                               y.s),
                  rate_join(x.rate, y.rate)};
}

/* ---- numbers --------------------------------------------------------------------------------- */

static Text call1(Gen *g, int depth, Rate most)
{
    static const char *const names[] = {"-",    "abs",     "sqrt(abs", "rsqrt(1 + abs", "exp(-abs",
                                        "tanh", "sigmoid", "softplus", "cbrt",          "floor",
                                        "sign", "f32",     "log(1 + abs", "sqrt", "exp", "rsqrt"};
    static const char *const scalars[] = {"sin", "cos"};
    bool f64 = !rate_is_elementwise(most) && gen_one_in(g, 4);
    const char *name = f64 ? scalars[gen_pick(g, 2)]
                           : names[gen_pick(g, sizeof names / sizeof *names - (gen_pick(g, 4) ? 3 : 0))];
    Text x = gen_number(g, depth - 1, most);
    const char *close = strchr(name, '(') ? "))" : ")";
    x.s = arena_printf(g->a, *name == '-' ? "(%s%s%s" : "%s(%s%s", name, x.s, close);
    return x;
}

static Text call2(Gen *g, int depth, Rate most)
{
    static const char *const infix[] = {"+", "-", "*", "+", "-", "*", "/", "%", "^"};
    static const char *const names[] = {"min", "max", "atan2", "pow"};
    Text x = gen_number(g, depth - 1, most), y = gen_number(g, depth - 1, most);
    Text out = {NULL, rate_join(x.rate, y.rate)};
    uint32_t n = gen_pick(g, 13);
    if (n >= 9)
        out.s = arena_printf(g->a, "%s(%s, %s)", names[n - 9], x.s, y.s);
    else if (n >= 6 && gen_pick(g, 4)) /* tame */
        out.s = arena_printf(g->a, n == 8 ? "((1 + abs(%s)) %s tanh(%s))" : "(%s %s (1 + abs(%s)))", x.s,
                             infix[n], y.s);
    else
        out.s = arena_printf(g->a, "(%s %s %s)", x.s, infix[n], y.s);
    return out;
}

static Text call3(Gen *g, int depth, Rate most)
{
    Text x = gen_number(g, depth - 1, most), y = gen_number(g, depth - 1, most);
    Text z = gen_number(g, 1, most);
    Text out = {NULL, rate_join(rate_join(x.rate, y.rate), z.rate)};
    switch (gen_pick(g, 5)) {
    case 0: out.s = arena_printf(g->a, "clamp(%s, -%s, abs(%s))", x.s, y.s, z.s); break;
    case 1: out.s = arena_printf(g->a, "fma(%s, %s, %s)", x.s, y.s, z.s); break;
    case 2: out.s = arena_printf(g->a, "lerp(%s, %s, %s)", x.s, y.s, z.s); break;
    case 3: out.s = arena_printf(g->a, "piecewise(%s, [0, 1], [%s, %s, 2])", x.s, y.s, z.s); break;
    default: out.s = arena_printf(g->a, "interp(%s, [-1, 0.5, 2], [%s, 1, %s])", x.s, y.s, z.s);
    }
    return out;
}

static Text choice(Gen *g, int depth, Rate most)
{
    Text c = gen_truth(g, depth - 1, most), x = gen_number(g, depth - 1, most);
    Text y = gen_number(g, depth - 1, most);
    return (Text){arena_printf(g->a, "(%s ? %s : %s)", c.s, x.s, y.s),
                  rate_join(c.rate, rate_join(x.rate, y.rate))};
}

static Text call_fn(Gen *g, int depth, Rate most)
{
    const Fn *f = &g->fns[gen_pick(g, (uint32_t)g->nfns)];
    Text out = {arena_printf(g->a, "%s(", f->name), RATE_GLOBAL};
    for (int i = 0; i < f->nargs; i++) {
        Text x = gen_number(g, depth - 1, most);
        out.s = arena_printf(g->a, "%s%s%s", out.s, i ? ", " : "", x.s);
        out.rate = rate_join(out.rate, x.rate);
    }
    out.s = arena_printf(g->a, "%s)", out.s);
    return out;
}

Text gen_number(Gen *g, int depth, Rate most)
{
    Text out;
    if (depth <= 0 || gen_one_in(g, 6)) return leaf(g, most);
    if (gen_one_in(g, 5) && reduction(g, depth, most, false, &out)) return out;
    if (most == RATE_ELEMENT && g->place != PLACE_INITIAL && gen_one_in(g, 40)) {
        static const char *const draws[] = {"normal()", "uniform()", "rademacher()"};
        return (Text){draws[gen_pick(g, 3)], RATE_ELEMENT};
    }
    if (g->nfns && gen_one_in(g, 12)) return call_fn(g, depth, most);
    uint32_t n = gen_pick(g, 12);
    if (n < 6) return call2(g, depth, most);
    if (n < 9) return call1(g, depth, most);
    return n < 11 ? call3(g, depth, most) : choice(g, depth, most);
}

Text gen_tame(Gen *g, int depth, Rate most)
{
    Text x = gen_number(g, depth, most);
    switch (gen_pick(g, 8)) {
    case 0: break;
    case 1: x.s = arena_printf(g->a, "min(max(%s, -1), 1)", x.s); break;
    case 2: x.s = arena_printf(g->a, "(finite(%s) ? %s : 0.5)", x.s, x.s); break;
    case 3: x.s = arena_printf(g->a, "(%s / (1 + abs(%s)))", x.s, x.s); break;
    case 4: x.s = arena_printf(g->a, "sigmoid(%s)", x.s); break;
    case 5: x.s = arena_printf(g->a, "clamp(%s, -2, 2)", x.s); break;
    default: x.s = arena_printf(g->a, "tanh(%s)", x.s);
    }
    return x;
}
