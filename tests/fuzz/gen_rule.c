/* gen_rule.c - random programs: functions, schedules, transforms, an optimizer, a wrapper around it.
 *
 *   in:  a seed
 *   out: "transform clip7(a8 = 0.5) : gradient { … }  optimizer base { … }", the application that
 *        runs it, and how its states are stored
 *
 * Programs are valid by construction as far as that is simple; the checker refuses a few. One
 * statement stands on a line, as the reducer wants it.
 */
#include "gen.h"
#include <stdarg.h>
#include <string.h>

enum { TRANSFORMS = 4 };
typedef struct Transform {
    const char *name, *import; /* import: of the standard library */
    Stage stage;
    bool shares; /* writes what tensors share: not in an arm */
    bool used;
} Transform;

typedef struct Program {
    Gen g;
    Transform t[TRANSFORMS];
    int nt;
    const char *storage;
} Program;

static void line(Gen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    sb_printf(g->out, "%*s%s\n", 2 * g->indent, "", arena_vprintf(g->a, fmt, ap));
    va_end(ap);
}
#define open_block(g, ...) (line(g, __VA_ARGS__), (g)->indent++)
static void close_block(Gen *g, const char *text)
{
    g->indent--;
    line(g, "%s", text);
}

Var *gen_var(Gen *g, const char *name, VarKind kind, Rate rate)
{
    static Var lost;
    if (g->nvars == GEN_VARS) return lost = (Var){0}, &lost;
    Var *v = &g->vars[g->nvars++];
    *v = (Var){.name = name, .kind = kind, .rate = rate, .in_arm = g->in_arm};
    return v;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static void hypers(Program *p, uint32_t n)
{
    Gen *g = &p->g;
    static const char *const ranges[] = {"", " in [0, 1]", " in [0, inf)", " in (-inf, inf)"};
    for (uint32_t i = 0; i < n; i++) {
        const char *name = gen_name(g, "h"), *range = ranges[gen_pick(g, 4)];
        bool global = gen_one_in(g, 3);
        Var *v;
        switch (gen_pick(g, 8)) {
        case 0: /* an array */
            line(g, "hyper %s[2]%s = [0.5, 0.25]%s", name, global ? ": global" : "", range);
            v = gen_var(g, name, VAR_HYPER, global ? RATE_GLOBAL : RATE_GROUP);
            v->count = 2;
            continue;
        case 1: /* one that follows others, or a schedule */
            global = false;
            if (g->nvars && g->vars[0].kind == VAR_HYPER && gen_one_in(g, 2))
                line(g, "hyper %s = %s / 2", name, g->vars[0].name);
            else
                line(g, "hyper %s = falling(0.9, %s)", name, gen_pick(g, 2) ? "2" : "low = 0.1");
            break;
        default:
            line(g, "hyper %s%s = %s%s", name, global ? ": global" : "",
                 gen_pick(g, 2) ? "0.5" : "0.9", range);
        }
        gen_var(g, name, VAR_HYPER, global ? RATE_GLOBAL : RATE_GROUP);
    }
}

/* The initial value of a state of this rate; what is above it is known. */
static Text initial_value(Gen *g, Rate rate)
{
    Place place = g->place;
    g->place = PLACE_INITIAL;
    Text x = {gen_one_in(g, 2) ? "0" : gen_literal(g), RATE_GLOBAL};
    if (gen_one_in(g, 2)) x = gen_tame(g, 2, rate);
    if (rate == RATE_TENSOR && gen_one_in(g, 3)) x = (Text){"norm(p)", RATE_TENSOR};
    if (rate == RATE_ROW && gen_one_in(g, 3)) x = (Text){"mean[row](g)", RATE_ROW};
    if (rate == RATE_COL && gen_one_in(g, 3)) x = (Text){"max[col](p)", RATE_COL};
    g->place = place;
    return x;
}

static void state(Program *p, Rate rate)
{
    Gen *g = &p->g;
    static const char *const formats[] = {"f32", "bf16", "f16"};
    const char *name = gen_name(g, "m"), *at = "";
    bool element = rate == RATE_ELEMENT;
    if (!element) at = arena_printf(g->a, ": %s", rate == RATE_BLOCK ? g->block : rate_name(rate));
    int count = gen_one_in(g, 5) ? 2 + (int)gen_pick(g, 2) : 0;
    bool f32 = (rate == RATE_GLOBAL || rate == RATE_GROUP || rate == RATE_TENSOR) && gen_one_in(g, 6);
    Text x = initial_value(g, rate);
    if (count)
        line(g, "state %s[%d]%s = %s", name, count, at, x.s);
    else
        line(g, "state %s%s%s = %s", name, at, f32 ? " f32" : "", x.s);
    bool stored = element && !count && !g->is_transform && gen_one_in(g, 3);
    if (stored) {
        const char *one = arena_printf(g->a, "%s=%s", name, formats[gen_pick(g, 3)]);
        p->storage = p->storage ? arena_printf(g->a, "%s,%s", p->storage, one) : one;
    }
    Var *v = gen_var(g, name, VAR_STATE, rate);
    v->count = count;
    v->stored = stored;
}

static void states(Program *p, uint32_t n)
{
    Gen *g = &p->g;
    for (uint32_t i = 0; i < n; i++) {
        Rate rate = gen_rate(g);
        if (g->in_arm && rate_within(rate, RATE_GROUP)) rate = RATE_ELEMENT;
        state(p, rate);
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static bool may_write(const Gen *g, const Var *v)
{
    if (v->kind == VAR_DIRECTION) return g->place == PLACE_STEP && g->is_transform;
    if (v->kind != VAR_STATE || !rate_within(g->guard, v->rate)) return false;
    if (g->place == PLACE_INIT && rate_within(v->rate, RATE_GROUP)) return false;
    return !(g->in_arm && rate_within(v->rate, RATE_GROUP));
}

static void write_var(Program *p, Var *v)
{
    Gen *g = &p->g;
    static const char *const ops[] = {"+=", "-=", "*=", "/="};
    const char *target = v->name;
    if (v->count) {
        uint32_t k = gen_pick(g, 4);
        bool ring = k < 2 && rate_within(k ? RATE_TENSOR : RATE_GLOBAL, v->rate);
        target = ring ? arena_printf(g->a, "%s[%s %% %d]", v->name, k ? "t" : "s", v->count)
                      : arena_printf(g->a, "%s[%u]", v->name, gen_pick(g, (uint32_t)v->count));
    }
    v->written = true;
    uint32_t how = gen_pick(g, 6);
    if (how < 3 && !v->count) {
        Text x = gen_tame(g, 3, v->rate);
        line(g, "%s := lerp(%s, %s, 0.75)", target, x.s, v->name);
    } else if (how < 5) {
        line(g, "%s := %s", target, gen_tame(g, 3, v->rate).s);
    } else if (gen_one_in(g, 2)) {
        line(g, "%s %s %s", target, ops[gen_pick(g, 2)], gen_tame(g, 3, v->rate).s);
    } else {
        Text x = gen_number(g, 2, v->rate);
        line(g, "%s %s (0.5 + sigmoid(%s))", target, ops[2 + gen_pick(g, 2)], x.s);
    }
}

static void write_some(Program *p)
{
    Gen *g = &p->g;
    for (int tries = 0; tries < 8 && g->nvars; tries++) {
        Var *v = &g->vars[gen_pick(g, (uint32_t)g->nvars)];
        if (!may_write(g, v)) continue;
        write_var(p, v);
        return;
    }
    if (g->writes_g && gen_one_in(g, 2) && g->place == PLACE_STEP)
        line(g, "g := %s", gen_tame(g, 2, RATE_ELEMENT).s);
    else if (g->writes_p)
        line(g, "p -= 0.05 * %s", gen_tame(g, 3, RATE_ELEMENT).s);
}

static void bind(Program *p)
{
    Gen *g = &p->g;
    bool truth = gen_one_in(g, 5);
    Text x = truth ? gen_truth(g, 3, gen_rate(g)) : gen_number(g, 4, gen_rate(g));
    const char *name = gen_name(g, truth ? "c" : "x");
    line(g, "%s = %s", name, x.s);
    gen_var(g, name, VAR_LET, x.rate)->truth = truth;
}

static void statements(Program *p, uint32_t n);

/* A block of its own; `joined`: the name that it binds last, at *rate. */
static void inner(Program *p, uint32_t n, const char *joined, Rate *rate)
{
    Gen *g = &p->g;
    int mark = g->nvars;
    g->depth++;
    statements(p, n);
    if (joined) {
        Text x = gen_tame(g, 3, gen_rate(g));
        line(g, "%s = %s", joined, x.s);
        *rate = rate_join(*rate, x.rate);
    }
    g->depth--;
    g->nvars = mark;
}

static void when(Program *p)
{
    Gen *g = &p->g;
    Rate guard = g->guard, joined_rate = RATE_GLOBAL;
    Text c = gen_truth(g, 2, gen_one_in(g, 3) ? RATE_GLOBAL : RATE_TENSOR);
    if (c.rate == RATE_GLOBAL && gen_one_in(g, 2))
        c = (Text){gen_one_in(g, 2) ? "s % 2 == 0" : "s > 0", RATE_GLOBAL};
    const char *joined = gen_one_in(g, 3) ? gen_name(g, "x") : NULL;
    g->guard = rate_join(guard, c.rate);
    joined_rate = c.rate;
    open_block(g, "when %s {", c.s);
    inner(p, 1 + gen_pick(g, 3), joined, &joined_rate);
    if (joined || gen_one_in(g, 3)) {
        g->indent--;
        open_block(g, "} else {");
        inner(p, gen_pick(g, 3), joined, &joined_rate);
    }
    close_block(g, "}");
    g->guard = guard;
    if (joined) gen_var(g, joined, VAR_LET, joined_rate);
}

static void repeat(Program *p)
{
    Gen *g = &p->g;
    int mark = g->nvars;
    if (gen_one_in(g, 2)) {
        const char *i = gen_name(g, "i");
        open_block(g, "repeat %s in 0..2 {", i);
        gen_var(g, i, VAR_LET, RATE_GLOBAL);
        for (int k = 0; k < mark; k++) {
            Var *v = &g->vars[k];
            if (!v->count || !may_write(g, v) || !gen_one_in(g, 2)) continue;
            line(g, "%s[%s] := %s", v->name, i, gen_tame(g, 2, v->rate).s);
            v->written = v->count == 2;
        }
    } else {
        open_block(g, "repeat 2 {");
    }
    inner(p, 1 + gen_pick(g, 2), NULL, NULL);
    close_block(g, "}");
    g->nvars = mark;
}

/* States that nothing has written yet are written; some are read into p. */
static void settle(Program *p, int from)
{
    Gen *g = &p->g;
    for (int i = from; i < g->nvars; i++) {
        Var *v = &g->vars[i];
        if (v->kind != VAR_STATE || !may_write(g, v)) continue;
        if (!v->written) write_var(p, v); /* what is constant is refused */
        if (g->writes_p && (v->stored || gen_pick(g, 3)))
            line(g, "p -= 0.02 * tanh(%s%s)", v->name, v->count ? "[0]" : "");
    }
}

static void arm(Program *p, bool taken, const char *joined, Rate *rate)
{
    Gen *g = &p->g;
    int mark = g->nvars;
    bool view = g->view, in_arm = g->in_arm;
    g->in_arm = true;
    if (taken && g->layout == LAYOUT_ARMS) g->view = true;
    if (g->place == PLACE_STEP && g->guard == RATE_GLOBAL && g->depth == 0) states(p, gen_pick(g, 3));
    g->depth++;
    statements(p, 1 + gen_pick(g, 4));
    settle(p, mark);
    g->depth--;
    if (joined) {
        Text x = gen_tame(g, 3, gen_rate(g));
        line(g, "%s = %s", joined, x.s);
        *rate = rate_join(*rate, x.rate);
    }
    g->nvars = mark;
    g->view = view;
    g->in_arm = in_arm;
}

static void shape(Program *p)
{
    Gen *g = &p->g;
    const char *r = gen_name(g, "r"), *c = gen_name(g, "w"), *cond = "";
    const char *joined = gen_one_in(g, 2) ? gen_name(g, "x") : NULL;
    Rate rate = RATE_TENSOR;
    if (gen_one_in(g, 3)) {
        static const char *const conds[] = {"numel > 100", "ndim == 2", "numel % 2 == 0"};
        cond = arena_printf(g->a, " when %s",
                            gen_one_in(g, 2) || g->first ? conds[gen_pick(g, 3)]
                                                         : arena_printf(g->a, "%s >= %s", r, c));
    }
    open_block(g, g->first ? "shape [%s, ..]%.0s%s {" : "shape [.., %s, %s]%s {", r, c, cond);
    int mark = g->nvars;
    gen_var(g, r, VAR_LET, RATE_TENSOR);
    if (!g->first) gen_var(g, c, VAR_LET, RATE_TENSOR);
    arm(p, true, joined, &rate);
    g->nvars = mark;
    if (gen_one_in(g, 4)) {
        g->indent--;
        open_block(g, g->first ? "} else shape [%s, ..]%.0s when numel > 10 {"
                               : "} else shape [.., %s, %s] when numel > 10 {",
                   gen_name(g, "r"), gen_name(g, "w"));
        arm(p, true, joined, &rate);
    }
    if (joined || gen_one_in(g, 2)) {
        g->indent--;
        open_block(g, "} else {");
        arm(p, false, joined, &rate);
    }
    close_block(g, "}");
    if (joined) gen_var(g, joined, VAR_LET, rate);
}

static void use(Program *p)
{
    Gen *g = &p->g;
    if (p->nt == 0 || g->is_transform) return;
    Transform *t = &p->t[gen_pick(g, (uint32_t)p->nt)];
    if (t->stage == STAGE_DIRECTION && !g->has_direction) return;
    if (t->shares && (g->in_arm || g->guard != RATE_GLOBAL)) return;
    if (t->used)
        line(g, "use %s as %s", t->name, gen_name(g, "again"));
    else
        line(g, "use %s", t->name);
    t->used = true;
}

static void export(Program *p)
{
    Gen *g = &p->g;
    for (int i = g->nvars - 1; i >= 0; i--) {
        const Var *v = &g->vars[i];
        if (v->kind != VAR_LET || v->truth || !rate_within(v->rate, RATE_TENSOR)) continue;
        line(g, "export %s as %s", v->name, gen_name(g, "e"));
        return;
    }
}

static void statements(Program *p, uint32_t n)
{
    Gen *g = &p->g;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t what = gen_pick(g, 20);
        if (what == 0 && g->depth < 3)
            when(p);
        else if (what == 1 && g->depth < 3)
            when(p);
        else if (what < 4 && g->depth < (g->layout == LAYOUT_ARMS ? 2 : 1))
            shape(p);
        else if (what == 4 && g->depth < 2)
            repeat(p);
        else if (what == 5 && g->place == PLACE_STEP && g->depth == 0)
            use(p);
        else if (what == 6 && g->place == PLACE_STEP && g->depth == 0 && !g->is_transform)
            export(p);
        else if (what < 14)
            bind(p);
        else
            write_some(p);
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

static void begin_item(Gen *g)
{
    g->nvars = g->depth = 0;
    g->guard = RATE_GLOBAL;
    g->view = g->in_arm = g->has_direction = g->is_transform = false;
    g->g_is_seen = g->writes_g = g->writes_p = true;
    g->place = PLACE_STEP;
    g->sweeps = 3 + (int)gen_pick(g, 5);
}

/* `on NAME`, `init`: a block that sees what was declared. */
static void outside(Program *p, Place place, const char *head, bool gradient)
{
    Gen *g = &p->g;
    Gen before = *g;
    g->place = place;
    g->g_is_seen = gradient;
    g->writes_g = false;
    if (place == PLACE_INIT) g->guard = RATE_TENSOR;
    open_block(g, "%s {", head);
    inner(p, 1 + gen_pick(g, 3), NULL, NULL);
    write_some(p);
    close_block(g, "}");
    int serial = g->serial;
    before.nfns = g->nfns;
    *g = before;
    g->serial = serial;
}

static void fn(Program *p)
{
    Gen *g = &p->g;
    Fn *f = &g->fns[g->nfns];
    static const char *const bodies[] = {"(x / (1 + abs(y)))", "max(x, (0.5 * y))",
                                         "(x > y ? x : (x - y))", "lerp(tanh(x), y, 0.3)"};
    *f = (Fn){gen_name(g, "f"), 2};
    const char *body = bodies[gen_pick(g, 4)];
    if (gen_one_in(g, 2)) {
        line(g, "fn %s(x, y) = %s", f->name, body);
    } else {
        open_block(g, "fn %s(x, y) {", f->name);
        line(g, "z = %s", body);
        line(g, "return (z * %s)", gen_literal(g));
        close_block(g, "}");
    }
    g->nfns++;
}

static void transform(Program *p)
{
    Gen *g = &p->g;
    static const char *const stages[] = {"gradient", "direction", "apply"};
    uint32_t k = gen_pick(g, 3);
    Transform *t = &p->t[p->nt];
    *t = (Transform){gen_name(g, "turn"), NULL, (Stage)(STAGE_GRADIENT + k), false, false};
    begin_item(g);
    g->is_transform = true;
    const char *param = gen_name(g, "a");
    open_block(g, "transform %s(%s = 0.5) : %s {", t->name, param, stages[k]);
    gen_var(g, param, VAR_HYPER, RATE_GROUP);
    g->writes_g = k == 0;
    g->writes_p = k == 2;
    hypers(p, gen_pick(g, 2));
    states(p, gen_pick(g, 3));
    if (k == 1) gen_var(g, "u", VAR_DIRECTION, RATE_ELEMENT);
    statements(p, 1 + gen_pick(g, 4));
    settle(p, 0);
    for (int i = 0; i < g->nvars; i++)
        t->shares |= g->vars[i].kind == VAR_STATE && rate_within(g->vars[i].rate, RATE_GROUP);
    static const char *const targets[] = {"g", "u", "p"};
    line(g, "%s := lerp(%s, %s, 0.5)", targets[k], gen_tame(g, 3, RATE_ELEMENT).s, targets[k]);
    close_block(g, "}");
    p->nt++;
}

static void optimizer(Program *p, const char *head, const char *before_end)
{
    Gen *g = &p->g;
    begin_item(g);
    open_block(g, "%s {", head);
    line(g, "hyper lr = 0.1 in [0, inf)");
    gen_var(g, "lr", VAR_HYPER, RATE_GROUP);
    hypers(p, gen_pick(g, 4));
    if (gen_one_in(g, 5)) {
        const char *name = gen_name(g, "loss");
        line(g, "input %s", name);
        gen_var(g, name, VAR_HYPER, RATE_GLOBAL);
    }
    int first = g->nvars;
    states(p, 1 + gen_pick(g, 4));
    if (gen_one_in(g, 5)) outside(p, PLACE_INIT, "init", true);
    uint32_t nentries = gen_one_in(g, 3) ? 1 + gen_pick(g, 2) : 0;
    for (uint32_t i = 0; i < nentries; i++) {
        bool gradient = gen_one_in(g, 2);
        outside(p, PLACE_ENTRY,
                arena_printf(g->a, "on %s%s", gen_name(g, "do"), gradient ? "(g)" : ""), gradient);
    }
    statements(p, 2 + gen_pick(g, 5));
    if (before_end) line(g, "%s", before_end);
    if (!before_end && gen_one_in(g, 2)) {
        line(g, "direction u = %s", gen_tame(g, 4, RATE_ELEMENT).s);
        gen_var(g, "u", VAR_DIRECTION, RATE_ELEMENT);
        g->has_direction = true;
        if (gen_one_in(g, 2)) use(p);
    }
    statements(p, 1 + gen_pick(g, 4));
    settle(p, first);
    line(g, "p -= lr * %s", g->has_direction ? "u" : gen_tame(g, 4, RATE_ELEMENT).s);
    close_block(g, "}");
}

/* ---- programs -------------------------------------------------------------------------------- */

/* What runs around the rule, and what an application's block adds to it. */
static const char *application(Program *p, bool wrapped)
{
    Gen *g = &p->g;
    static const char *const around[] = {"lookahead(base, k = 2)", "sam(base)", "lookahead(sam(base))"};
    const char *rule = wrapped ? "around(base(lr = 0.05))" : NULL;
    if (gen_one_in(g, 6)) rule = around[gen_pick(g, 3)];
    if (!rule && gen_one_in(g, 6)) rule = "base(lr = 0.2)";
    if (!rule || gen_one_in(g, 2)) return rule;
    rule = arena_printf(g->a, "%s { use %s", rule, gen_one_in(g, 2) ? "clip_global_norm" : "clip");
    for (int i = 0; i < p->nt; i++)
        if (!p->t[i].used && (p->t[i].stage != STAGE_DIRECTION || g->has_direction))
            rule = arena_printf(g->a, "%s; use %s", rule, p->t[i].name);
    return arena_printf(g->a, "%s }", rule);
}

char *program_random(Arena *a, uint64_t *state, const char **rule, const char **storage)
{
    StrBuf out = {.arena = a};
    Program *p = ARENA_NEW(a, Program);
    Gen *g = &p->g;
    *g = (Gen){.a = a, .state = state, .out = &out};
    g->layout = (Layout)gen_pick(g, 3);
    g->first = gen_one_in(g, 3);
    static const char *const blocks[] = {"block 1",   "block 3",    "block 16",
                                         "block 256", "block 5000", "block (numel / 3)"};
    if (g->layout == LAYOUT_BLOCK) g->block = blocks[gen_pick(g, 6)];
    line(g, "schedule falling(top, steps = 3, low = 0) = max(low, top / (1 + s / steps))");
    for (uint32_t n = gen_pick(g, 3); n; n--) fn(p);
    for (uint32_t n = gen_pick(g, 3); n; n--) transform(p);
    optimizer(p, "optimizer base", NULL);
    bool direction = g->has_direction, wrapped = gen_one_in(g, 5);
    if (wrapped) optimizer(p, "optimizer around(inner: rule)", "use inner");
    g->has_direction = direction;
    *rule = application(p, wrapped);
    *storage = p->storage;
    return out.text;
}
