/* replay_map.c - from a recorded file's library, rule and hypers to a rule of ours; the table is
 * replay_map.def.
 *
 *     "b1 = betas[0]; !clip = has clip.max_norm; amsgrad is false"   ->   b1 set, define clip=1,
 * amsgrad checked
 */
#include "replay.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct MapRow {
    const char *library, *rule, *condition, *ours, *hypers, *states;
} MapRow;

static const MapRow rows[] = {
#define MAP(library, rule, condition, ours, hypers, states)                                        \
    {library, rule, condition, ours, hypers, states},
#include "replay_map.def"
};

/* true, false and none as numbers; false if it is another word. */
static bool as_number(const VecHyper *h, double *out)
{
    *out = h->number;
    if (h->is_number) return true;
    *out = !strcmp(h->word, "true");
    return *out != 0 || !strcmp(h->word, "false") || !strcmp(h->word, "none");
}

static bool is_true(const Vec *v, const char *name)
{
    const VecHyper *h = vec_hyper(v, name);
    double x;
    return h && as_number(h, &x) && x != 0;
}

static bool row_fits(const MapRow *r, const Vec *v)
{
    if (strcmp(r->library, v->library) || strcmp(r->rule, v->rule)) return false;
    const char *eq = strchr(r->condition, '=');
    if (!eq) return !*r->condition || vec_hyper(v, r->condition);
    char name[64] = "";
    strncat(name, r->condition, (size_t)(eq - r->condition));
    const VecHyper *h = vec_hyper(v, name);
    return h && !strcmp(h->word, eq + 1);
}

static void set_hyper(Arena *a, ReplaySetup *s, const char *name, double value, bool if_present)
{
    for (size_t i = 0; i < s->nhypers; i++)
        if (!strcmp(s->hypers[i].name, name)) {
            s->hypers[i].value = value;
            return;
        }
    ReplayHyper h = {name, value, if_present};
    ARENA_PUSH(a, s->hypers, s->nhypers, s->hypers_cap, h);
}

static void define(Arena *a, ReplaySetup *s, const char *name, double value)
{
    s->defines = arena_printf(a, "%s%s%s=%.17g", s->defines ? s->defines : "",
                              s->defines ? ";" : "", name, value);
}

/* Splits "a ; b ; c" in place: the next entry without its blanks, NULL at the end. */
static char *next_entry(char **at)
{
    while (*at && **at) {
        char *e = *at, *semi = strchr(e, ';');
        *at = semi ? semi + 1 : NULL;
        if (semi) *semi = 0;
        e += strspn(e, " ");
        for (size_t n = strlen(e); n && e[n - 1] == ' '; n--) e[n - 1] = 0;
        if (*e) return e;
    }
    return NULL;
}

typedef struct Mapping {
    Arena *arena;
    const Vec *v;
    ReplaySetup *s;
    StrBuf *err;
    bool *named; /* which hypers of the file an entry names */
} Mapping;

static const VecHyper *take(Mapping *m, const char *name)
{
    for (size_t i = 0; i < m->v->nhypers; i++)
        if (!strcmp(m->v->hypers[i].name, name)) {
            m->named[i] = true;
            return &m->v->hypers[i];
        }
    return NULL;
}

static bool refuse(Mapping *m, const VecHyper *h, const char *why)
{
    sb_printf(m->err, "hyper %s %s: %s", h->name, h->word, why);
    return false;
}

/* VALUE of an entry; *absent where the file does not have it. */
static bool entry_value(Mapping *m, const char *value, double *out, bool *absent)
{
    char *end;
    bool complement = !strncmp(value, "1-", 2), negated = !strncmp(value, "not ", 4);
    *absent = false;
    if (!strncmp(value, "has ", 4)) {
        *out = take(m, value + 4) != NULL;
        return true;
    }
    *out = strtod(value, &end);
    if (!*end) return true;
    bool minus = *value == '-';
    const VecHyper *h =
        take(m, value + (complement ? 2 : negated ? 4 : minus ? 1 : 0));
    if (!h) return *absent = true;
    if (!as_number(h, out)) return refuse(m, h, "not a number, true, false or none");
    if (complement) *out = 1 - *out;
    if (negated) *out = *out == 0;
    if (minus) *out = -*out;
    return true;
}

static bool apply_entry(Mapping *m, char *e)
{
    char *is = strstr(e, " is "), *ignored = strstr(e, " ignored"), *eq = strstr(e, " = ");
    if (is || ignored) {
        *(is ? is : ignored) = 0;
        const VecHyper *h = take(m, e);
        if (ignored || !h) return true;
        char *end;
        double wanted = strtod(is + 4, &end);
        bool same = *end ? !strcmp(h->word, is + 4) : h->is_number && h->number == wanted;
        return same ||
               refuse(m, h, arena_printf(m->arena, "our '%s' has only '%s'", m->s->rule, is + 4));
    }
    *eq = 0;
    char *value = eq + 3, *cond = strstr(value, " if ");
    if (cond) {
        *cond = 0;
        if (!is_true(m->v, cond + 4)) return true;
    }
    double x;
    bool absent, flag = e[0] == '!', number = e[0] == '#', maybe = e[0] == '~';
    const char *target = arena_strdup(m->arena, e + (flag || number || maybe));
    if (!entry_value(m, value, &x, &absent)) return false;
    if (absent) return true;
    if (flag || number)
        define(m->arena, m->s, target, flag ? x != 0 : x);
    else
        set_hyper(m->arena, m->s, target, x, maybe);
    return true;
}

static bool is_of_schedule(const char *name)
{
    return !strncmp(name, "schedule", 8) && (!name[8] || name[8] == '.');
}

/* A schedule of ours with the file's values in the place of @{NAME}. */
static bool put_expression(Mapping *m, StrBuf *b, const char *e, size_t len)
{
    for (const char *end = e + len; e < end; e++) {
        const char *close = e[0] == '@' && e[1] == '{' ? strchr(e, '}') : NULL;
        if (!close) {
            sb_printf(b, "%c", *e);
            continue;
        }
        double x;
        bool absent;
        const char *name = arena_strndup(m->arena, e + 2, (size_t)(close - e - 2));
        if (!entry_value(m, name, &x, &absent)) return false;
        if (absent) {
            sb_printf(m->err, "the file has no hyper '%s'", name);
            return false;
        }
        sb_printf(b, "%.17g", x);
        e = close;
    }
    return true;
}

/* "= EXPRESSION", or "= OF_LR; OF_BETA1": a rule that writes it to p. */
static bool text_of_schedule(Mapping *m, const char *ours)
{
    StrBuf b = {.arena = m->arena};
    const char *e = ours + 2, *semi = strchr(e, ';');
    sb_puts(&b, "import \"schedules.opt\"\noptimizer replayed { p := ");
    if (semi && vec_scalar(m->v, "beta1_0")) {
        sb_puts(&b, "ndim == 1 ? ");
        if (!put_expression(m, &b, e, (size_t)(semi - e))) return false;
        sb_puts(&b, " : ");
        e = semi + 1;
        semi = NULL;
    }
    if (!put_expression(m, &b, e, semi ? (size_t)(semi - e) : strlen(e))) return false;
    sb_puts(&b, " }\n");
    m->s->text = b.text;
    return true;
}

bool replay_map(Arena *a, const Vec *v, ReplaySetup *s, StrBuf *err)
{
    const MapRow *row = NULL;
    for (size_t i = 0; !row && i < sizeof rows / sizeof *rows; i++)
        if (row_fits(&rows[i], v)) row = &rows[i];
    if (!row) {
        sb_printf(err,
                  "no rule of the standard library is known for rule '%s' of '%s'; give one: "
                  "dsoptc replay RULE FILE",
                  v->rule, v->library);
        return false;
    }
    bool schedule = !strncmp(row->ours, "= ", 2);
    size_t name = strcspn(row->ours, schedule ? "" : " (");
    s->rule = arena_strndup(a, row->ours, name);
    if (row->ours[name]) s->which = row->ours;
    Mapping m = {a, v, s, err, ARENA_ARRAY(a, bool, v->nhypers)};
    for (size_t i = 0; i < v->ntensors; i++) /* known to the rule by its name */
        take(&m, arena_printf(a, "name.%s", v->tensors[i].name));
    if (schedule && !text_of_schedule(&m, row->ours)) return false;
    char *at = arena_strdup(a, row->hypers);
    for (char *e; (e = next_entry(&at));)
        if (!apply_entry(&m, e)) return false;
    for (size_t i = 0; i < v->nhypers; i++)
        if (!m.named[i] && !is_of_schedule(v->hypers[i].name))
            return refuse(&m, &v->hypers[i],
                          arena_printf(a, "unknown for rule '%s' of '%s'", v->rule, v->library));
    at = arena_strdup(a, row->states);
    for (char *e; (e = next_entry(&at));) {
        char *eq = strstr(e, " = ");
        *eq = 0;
        bool negated = eq[3] == '-', maybe = eq[3] == '~';
        ReplayState st = {e, eq + 3 + (negated || maybe), negated, maybe, vec_scalar(v, e) != NULL};
        ARENA_PUSH(a, s->states, s->nstates, s->states_cap, st);
    }
    return true;
}

bool replay_set(Arena *a, const Vec *v, ReplaySetup *s, const char *assignment, StrBuf *err)
{
    const char *eq = strchr(assignment, '=');
    double x = 0;
    char *end = NULL;
    if (!eq || eq == assignment || !eq[1]) {
        sb_printf(err, "--set '%s': expected NAME=VALUE", assignment);
        return false;
    }
    if (eq[1] == '@') {
        const VecHyper *h = vec_hyper(v, eq + 2);
        if (!h || !as_number(h, &x)) {
            sb_printf(err, "--set '%s': the file has no number named '%s'", assignment, eq + 2);
            return false;
        }
    } else if (x = strtod(eq + 1, &end), *end) {
        sb_printf(err, "--set '%s': '%s' is not a number", assignment, eq + 1);
        return false;
    }
    set_hyper(a, s, arena_strndup(a, assignment, (size_t)(eq - assignment)), x, false);
    return true;
}

static const VecState *file_state(const Vec *v, const char *slot)
{
    for (size_t i = 0; i < v->ntensors; i++)
        for (size_t k = 0; k < v->tensors[i].nstates; k++)
            if (!strcmp(v->tensors[i].states[k].slot, slot)) return &v->tensors[i].states[k];
    return NULL;
}

bool replay_state(Arena *a, const Vec *v, ReplaySetup *s, const char *assignment, StrBuf *err)
{
    const char *eq = strchr(assignment, '=');
    if (!eq || eq == assignment || !eq[1]) {
        sb_printf(err, "--state '%s': expected OURS=THEIRS", assignment);
        return false;
    }
    if (!file_state(v, eq + 1) && !vec_scalar(v, eq + 1)) {
        sb_printf(err, "--state '%s': the file has no state '%s'", assignment, eq + 1);
        return false;
    }
    ReplayState st = {eq + 1, arena_strndup(a, assignment, (size_t)(eq - assignment)), false,
                      false, !file_state(v, eq + 1)};
    ARENA_PUSH(a, s->states, s->nstates, s->states_cap, st);
    return true;
}

void replay_same_states(Arena *a, const Vec *v, ReplaySetup *s)
{
    for (size_t i = 0; i < v->ntensors; i++)
        for (size_t k = 0; k < v->tensors[i].nstates; k++) {
            const char *slot = v->tensors[i].states[k].slot;
            bool known = false;
            for (size_t j = 0; j < s->nstates; j++) known |= !strcmp(s->states[j].theirs, slot);
            ReplayState st = {slot, strcmp(slot, "step") ? slot : "t", false, true, false};
            if (!known) ARENA_PUSH(a, s->states, s->nstates, s->states_cap, st);
        }
}
