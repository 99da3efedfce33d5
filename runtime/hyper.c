/* hyper.c - hyperparameters: found by path, checked against their range, set per group or for all.
 *
 * A value is a double in the block of its level; a step reads it there, so that setting is storing.
 * Values that were never set and have no default of their own are NaN; what a default that uses
 * others (a schedule) is worth is computed when it is asked for.
 *
 *     dsopt_set(opt, "hidden", "lr", 3e-4)   ->  groups[hidden].block[slot of adamw.lr] = 3e-4
 *     dsopt_set(opt, NULL, "b1", 1)  ->  DSOPT_OUT_OF_RANGE "adamw.b1 = 1 is outside of [0, 1)"
 */
#include "internal.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

int path_match(const char *full, const char *wanted)
{
    if (strcmp(full, wanted) == 0) return 3;
    const char *rest = strchr(full, '.');
    if (rest && strcmp(rest + 1, wanted) == 0) return 2;
    for (; rest; rest = strchr(rest + 1, '.'))
        if (strcmp(rest + 1, wanted) == 0) return 1;
    return 0;
}

static bool is_hyper(const Slot *s, Level level)
{
    return s->kind == SLOT_HYPER && s->level == level;
}

/* ---- finding --------------------------------------------------------------------------------- */

static const char *without_rule(const char *path)
{
    const char *dot = strchr(path, '.');
    return dot ? dot + 1 : path;
}

/* The closest name, or, where none is close, all of them. */
static dsopt_status unknown_hyper(dsopt_optimizer *opt, const char *path)
{
    const Rule *rule = opt->prog->source.rule;
    for (size_t i = 0; i < rule->nconsts; i++)
        if (path_match(rule->consts[i]->path, path))
            return error_set(opt->ctx, DSOPT_UNKNOWN_NAME,
                             "%s is fixed when the program is compiled: by dsopt_program_options' "
                             "defines, by dsoptc's -D %s=…",
                             rule->consts[i]->path, path);
    const char *names[64] = {0};
    char all[512] = "";
    size_t n = 0, len = 0;
    for (uint32_t i = 0; i < opt->m->nslots && n < COUNT_OF(names); i++) {
        if (opt->m->slots[i].kind != SLOT_HYPER) continue;
        names[n] = without_rule(opt->m->slots[i].path);
        if (len < sizeof all)
            len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", n ? ", " : "", names[n]);
        n++;
    }
    const char *near = diag_suggest(path, names, n);
    if (!near) near = diag_suggest(without_rule(path), names, n);
    if (near)
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME,
                         "'%s' has no hyperparameter '%s'; did you mean '%s'?", opt->prog->name,
                         path, near);
    return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "'%s' has no hyperparameter '%s' (it has %s)",
                     opt->prog->name, path, n ? all : "none");
}

static dsopt_status find_hyper(dsopt_optimizer *opt, const char *path, uint32_t *slot)
{
    int best = 0, found = 0;
    uint32_t other = 0;
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        if (opt->m->slots[i].kind != SLOT_HYPER) continue;
        int match = path_match(opt->m->slots[i].path, path);
        if (match == 0 || match < best) continue;
        found = match > best ? 1 : found + 1;
        other = match > best ? other : *slot;
        best = match;
        *slot = i;
    }
    if (found == 0) return unknown_hyper(opt, path);
    if (found > 1)
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME,
                         "'%s' may be '%s' or '%s': write more of its path", path,
                         opt->m->slots[other].path, opt->m->slots[*slot].path);
    return DSOPT_OK;
}

static dsopt_status find_group(dsopt_optimizer *opt, const char *name, uint32_t *group)
{
    int64_t at = names_get(&opt->group_names, name);
    if (at >= 0) {
        *group = (uint32_t)at;
        return DSOPT_OK;
    }
    const char *names[64] = {0};
    size_t n = 0;
    for (; n < opt->ngroups && n < COUNT_OF(names); n++) names[n] = opt->groups[n].name;
    const char *near = diag_suggest(name, names, n);
    return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "no tensor is in a group '%s'%s%s%s", name,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

enum { ALL_GROUPS = UINT32_MAX };

dsopt_status dsopt_handle_find(dsopt_optimizer *opt, const char *group, const char *path,
                               dsopt_handle *handle)
{
    OPT_CHECK(opt);
    if (!path || !handle)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "hyperparameter: %s is NULL",
                         path ? "handle" : "path");
    dsopt_handle h = {.group = ALL_GROUPS};
    dsopt_status st = find_hyper(opt, path, &h.slot);
    if (st != DSOPT_OK) return st;
    if (group && opt->m->slots[h.slot].level == LEVEL_GLOBAL)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "'%s' has one value for all groups: it is set with group NULL",
                         opt->m->slots[h.slot].path);
    if (group) st = find_group(opt, group, &h.group);
    if (st == DSOPT_OK) *handle = h;
    return st;
}

static dsopt_status check_handle(dsopt_optimizer *opt, dsopt_handle h)
{
    SlotKind kind = h.slot < opt->m->nslots ? opt->m->slots[h.slot].kind : SLOT_PARAM;
    bool ok = (kind == SLOT_HYPER || kind == SLOT_INPUT) &&
              (h.group == ALL_GROUPS || h.group < opt->ngroups);
    return ok ? DSOPT_OK
              : error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                          "this handle is not one of this optimizer");
}

/* ---- setting --------------------------------------------------------------------------------- */

static void range_text(const Slot *s, char *out, size_t size)
{
    snprintf(out, size, "%c%.9g, %.9g%c", s->lo_open ? '(' : '[', s->lo, s->hi,
             s->hi_open ? ')' : ']');
}

/* Where no range is written, both ends are open and infinite. NaN is in none. */
static bool in_range(const Slot *s, double v)
{
    return (s->lo_open ? v > s->lo : v >= s->lo) && (s->hi_open ? v < s->hi : v <= s->hi);
}

static dsopt_status check_value(dsopt_optimizer *opt, const Slot *s, double v)
{
    char range[80];
    if (s->kind == SLOT_INPUT || in_range(s, v)) return DSOPT_OK;
    if (v != v)
        return error_set(opt->ctx, DSOPT_OUT_OF_RANGE, "%s = NaN: a hyperparameter is a number",
                         s->path);
    range_text(s, range, sizeof range);
    return error_set(opt->ctx, DSOPT_OUT_OF_RANGE, "%s = %.17g is outside of %s", s->path, v,
                     range);
}

static void warn_narrow(dsopt_optimizer *opt, const Slot *s, double v)
{
    float f = (float)v;
    if (v != 0 && isfinite(v) && (f == 0 || isinf(f)))
        log_line(opt->ctx, DSOPT_LOG_WARNING,
                 "%s = %.9g becomes %s in f32, in which elements are computed", s->path, v,
                 f == 0 ? "0" : "infinite");
}

static void store_value(dsopt_optimizer *opt, dsopt_handle h, double v)
{
    const Slot *s = &opt->m->slots[h.slot];
    if (s->level == LEVEL_GLOBAL) {
        opt->global[s->index] = v;
        opt->global_set[h.slot] = true;
        return;
    }
    uint32_t begin = h.group == ALL_GROUPS ? 0 : h.group,
             end = h.group == ALL_GROUPS ? opt->ngroups : h.group + 1;
    for (uint32_t g = begin; g < end; g++) {
        opt->groups[g].block[s->index] = v;
        opt->groups[g].is_set[h.slot] = true;
    }
}

static bool is_set(const dsopt_optimizer *opt, uint32_t slot, uint32_t group)
{
    return opt->m->slots[slot].level == LEVEL_GLOBAL ? opt->global_set[slot]
                                                     : opt->groups[group].is_set[slot];
}

/* In the group, or in all of them. */
static bool is_set_in(const dsopt_optimizer *opt, uint32_t slot, uint32_t group)
{
    for (uint32_t g = 0; g < opt->ngroups; g++)
        if ((group == ALL_GROUPS || group == g) && !is_set(opt, slot, g)) return false;
    return true;
}

/* Whether `param` is a parameter of the schedule that `s` follows unless it is set: a
 * hyperparameter below its path. */
static bool is_below(const Slot *param, const Slot *s)
{
    if (!s->derived || s->kind != SLOT_HYPER || param->kind != SLOT_HYPER) return false;
    size_t n = strlen(s->path);
    return strncmp(param->path, s->path, n) == 0 && param->path[n] == '.';
}

/* Whether the value follows a schedule in one of the handle's groups. */
static bool follows_schedule(const dsopt_optimizer *opt, dsopt_handle h)
{
    const Slot *s = &opt->m->slots[h.slot];
    if (!s->derived || is_set_in(opt, h.slot, h.group)) return false;
    for (uint32_t i = 0; i < opt->m->nslots; i++)
        if (is_below(&opt->m->slots[i], s)) return true;
    return false;
}

/* What was set in place of the schedule that has this parameter, in all of the handle's groups;
 * NULL: nothing. */
static const char *replaced_by(const dsopt_optimizer *opt, dsopt_handle h)
{
    const Slot *s = &opt->m->slots[h.slot];
    for (uint32_t i = 0; opt->ngroups && i < opt->m->nslots; i++)
        if (is_below(s, &opt->m->slots[i]) && is_set_in(opt, i, h.group))
            return opt->m->slots[i].path;
    return NULL;
}

static void set_value(dsopt_optimizer *opt, dsopt_handle h, double v)
{
    const Slot *s = &opt->m->slots[h.slot];
    const char *instead = replaced_by(opt, h);
    bool replaces = follows_schedule(opt, h), one = h.group != ALL_GROUPS;
    const char *in = one ? " in group '" : "", *group = one ? opt->groups[h.group].name : "",
               *end = one ? "'" : "";
    store_value(opt, h, v);
    warn_narrow(opt, s, v);
    if (replaces)
        log_line(opt->ctx, DSOPT_LOG_INFO, "%s = %.9g replaces its schedule%s%s%s", s->path, v, in,
                 group, end);
    if (instead)
        log_line(opt->ctx, DSOPT_LOG_WARNING,
                 "%s = %.9g has no effect%s%s%s: %s was set, and follows its schedule no longer",
                 s->path, v, in, group, end, instead);
}

dsopt_status dsopt_handle_set(dsopt_optimizer *opt, dsopt_handle h, double value)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    dsopt_status st = check_handle(opt, h);
    if (st == DSOPT_OK) st = check_value(opt, &opt->m->slots[h.slot], value);
    if (st != DSOPT_OK) return st;
    set_value(opt, h, value);
    return DSOPT_OK;
}

dsopt_status dsopt_set(dsopt_optimizer *opt, const char *group, const char *path, double value)
{
    dsopt_handle h;
    dsopt_status st = dsopt_handle_find(opt, group, path, &h);
    return st == DSOPT_OK ? dsopt_handle_set(opt, h, value) : st;
}

/* Elements of an array are hyperparameters of their own, "beta[0]", …; *handle of number i. */
static dsopt_status find_element(dsopt_optimizer *opt, const char *group, const char *path,
                                 int64_t i, dsopt_handle *handle)
{
    char name[IR_MAX_NAME + 32];
    snprintf(name, sizeof name, "%s[%lld]", path, (long long)i);
    return dsopt_handle_find(opt, group, name, handle);
}

dsopt_status dsopt_set_array(dsopt_optimizer *opt, const char *group, const char *path,
                             const double *values, int64_t count)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    dsopt_handle h;
    if (!path || !values || strlen(path) > IR_MAX_NAME)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_set_array: %s",
                         !path    ? "path is NULL"
                         : values ? "the path is too long"
                                  : "values is NULL");
    dsopt_status st = find_element(opt, group, path, 0, &h);
    if (st != DSOPT_OK)
        return error_set(opt->ctx, st, "'%s' has no array of hyperparameters '%s'%s%s",
                         opt->prog->name, path, group ? " in group " : "", group ? group : "");
    int64_t n = 1;
    while (find_element(opt, group, path, n, &h) == DSOPT_OK) n++;
    if (n != count)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "%s has %lld elements, not %lld", path,
                         (long long)n, (long long)count);
    for (int64_t i = 0; i < n; i++) {
        find_element(opt, group, path, i, &h);
        st = check_value(opt, &opt->m->slots[h.slot], values[i]);
        if (st != DSOPT_OK) return st;
    }
    for (int64_t i = 0; i < n; i++) {
        find_element(opt, group, path, i, &h);
        set_value(opt, h, values[i]);
    }
    return DSOPT_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static double stored(const dsopt_optimizer *opt, uint32_t slot, uint32_t group)
{
    const Slot *s = &opt->m->slots[slot];
    return s->level == LEVEL_GLOBAL ? opt->global[s->index] : opt->groups[group].block[s->index];
}

/* ---- defaults that follow others ------------------------------------------------------------- */

typedef struct Following {
    dsopt_optimizer *opt;
    uint32_t slot, group;
    Arena arena;
    bool known;
    double value;
    const char *missing;
} Following;

static bool own_value(void *user, const char *path, double *out)
{
    const Following *f = user;
    const IrModule *m = f->opt->m;
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        if (s->kind != SLOT_HYPER || strcmp(s->path, path) != 0) continue;
        *out = stored(f->opt, i, f->group);
        return is_set(f->opt, i, f->group);
    }
    return false;
}

static double applied_steps(const dsopt_optimizer *opt)
{
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind == SLOT_COUNT && strcmp(s->name, "s") == 0) return opt->global[s->index];
    }
    return 0;
}

static dsopt_status follow_body(void *arg)
{
    Following *f = arg;
    const dsopt_optimizer *opt = f->opt;
    HyperInputs in = {.value = own_value, .user = f, .s = applied_steps(opt)};
    f->known = hyper_follow(&f->arena, opt->prog->source.rule, opt->m->slots[f->slot].path, &in,
                            &f->value, &f->missing);
    return DSOPT_OK;
}

/* What a step of this group would compute with: a value of its own, or what the default, which
 * uses others, is now. DSOPT_NOT_SET leaves the message to the caller: f->missing is NULL, or what
 * has no value. */
static dsopt_status value_now(dsopt_optimizer *opt, uint32_t slot, uint32_t group, Following *f)
{
    *f = (Following){
        .opt = opt, .slot = slot, .group = group, .arena = {.alloc = &opt->ctx->alloc}};
    f->value = stored(opt, slot, group);
    if (is_set(opt, slot, group)) return DSOPT_OK;
    f->value = NAN;
    if (!opt->m->slots[slot].derived) {
        f->missing = opt->m->slots[slot].path;
        return DSOPT_NOT_SET;
    }
    dsopt_status st = arena_try(opt->ctx, &f->arena, follow_body, f);
    arena_free(&f->arena);
    return st == DSOPT_OK && !f->known ? DSOPT_NOT_SET : st;
}

static dsopt_status unknown_value(dsopt_optimizer *opt, const Following *f)
{
    const char *path = opt->m->slots[f->slot].path;
    if (!f->missing)
        return error_set(opt->ctx, DSOPT_NOT_SET, "%s is known only inside of a step", path);
    bool other = strcmp(f->missing, path) != 0;
    return error_set(opt->ctx, DSOPT_NOT_SET, "%s has no value yet%s%s", f->missing,
                     other ? ", which is needed for " : "", other ? path : "");
}

dsopt_status dsopt_handle_get(dsopt_optimizer *opt, dsopt_handle h, double *value)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    dsopt_status st = check_handle(opt, h);
    if (st != DSOPT_OK) return st;
    const Slot *s = &opt->m->slots[h.slot];
    if (!value) return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "%s: value is NULL", s->path);
    bool one = s->level == LEVEL_GLOBAL || h.group != ALL_GROUPS;
    uint32_t group = one && s->level != LEVEL_GLOBAL ? h.group : 0;
    if (!one && opt->ngroups == 0)
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "%s: there are no groups", s->path);
    Following f, other;
    st = value_now(opt, h.slot, group, &f);
    for (uint32_t g = 1; st == DSOPT_OK && !one && g < opt->ngroups; g++) {
        st = value_now(opt, h.slot, g, &other);
        if (st == DSOPT_OK && other.value != f.value)
            return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                             "%s differs between the groups '%s' and '%s': ask for one of them",
                             s->path, opt->groups[0].name, opt->groups[g].name);
        f = other;
    }
    if (st == DSOPT_NOT_SET) return unknown_value(opt, &f);
    if (st == DSOPT_OK) *value = f.value;
    return st;
}

dsopt_status dsopt_get(dsopt_optimizer *opt, const char *group, const char *path, double *value)
{
    dsopt_handle h;
    dsopt_status st = dsopt_handle_find(opt, group, path, &h);
    return st == DSOPT_OK ? dsopt_handle_get(opt, h, value) : st;
}

static size_t count_hypers(const dsopt_optimizer *opt, Level level)
{
    size_t n = 0;
    for (uint32_t i = 0; i < opt->m->nslots; i++) n += is_hyper(&opt->m->slots[i], level);
    return n;
}

static uint32_t nth_hyper(const dsopt_optimizer *opt, Level level, size_t n)
{
    uint32_t i = 0;
    for (;; i++)
        if (is_hyper(&opt->m->slots[i], level) && n-- == 0) return i;
}

size_t dsopt_hyper_count(const dsopt_optimizer *opt)
{
    return opt ? count_hypers(opt, LEVEL_GROUP) * opt->ngroups + count_hypers(opt, LEVEL_GLOBAL)
               : 0;
}

dsopt_status dsopt_hyper_info_read(dsopt_optimizer *opt, size_t i, dsopt_hyper_info *info)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (!info || i >= dsopt_hyper_count(opt))
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         info ? "there is no hyperparameter number %zu" : "info is NULL (%zu)", i);
    size_t per_group = count_hypers(opt, LEVEL_GROUP), grouped = per_group * opt->ngroups;
    uint32_t group = i < grouped ? (uint32_t)(i / per_group) : 0;
    uint32_t slot = i < grouped ? nth_hyper(opt, LEVEL_GROUP, i % per_group)
                                : nth_hyper(opt, LEVEL_GLOBAL, i - grouped);
    const Slot *s = &opt->m->slots[slot];
    Following now;
    dsopt_status st = value_now(opt, slot, group, &now);
    if (st != DSOPT_OK && st != DSOPT_NOT_SET) return st;
    dsopt_hyper_info r = {.path = s->path,
                          .group = i < grouped ? opt->groups[group].name : NULL,
                          .is_set = is_set(opt, slot, group),
                          .value = now.value,
                          .lo = s->lo,
                          .hi = s->hi,
                          .lo_open = s->lo_open,
                          .hi_open = s->hi_open};
    st = DSOPT_OK;
    struct_out(opt->ctx, "dsopt_hyper_info", info, &r, sizeof r, &st);
    return st;
}

/* ---- at create and before a step ------------------------------------------------------------- */

void hyper_init(dsopt_optimizer *opt)
{
    uint32_t n = opt->m->nslots;
    opt->global_set = ARENA_ARRAY(&opt->arena, uint8_t, n);
    for (uint32_t g = 0; g < opt->ngroups; g++)
        opt->groups[g].is_set = ARENA_ARRAY(&opt->arena, uint8_t, n);
    for (uint32_t i = 0; i < n; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind != SLOT_HYPER) continue;
        store_value(opt, (dsopt_handle){.slot = i, .group = ALL_GROUPS},
                    s->has_default ? s->def : NAN);
        opt->global_set[i] = s->has_default;
        for (uint32_t g = 0; g < opt->ngroups; g++) opt->groups[g].is_set[i] = s->has_default;
    }
}

dsopt_status hyper_check_set(dsopt_optimizer *opt)
{
    if (opt->hypers_complete) return DSOPT_OK;
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind != SLOT_HYPER || s->derived) continue;
        for (uint32_t g = 0; g < opt->ngroups; g++)
            if (!is_set(opt, i, g))
                return error_set(opt->ctx, DSOPT_NOT_SET, "%s has no default and was not set%s%s%s",
                                 s->path, s->level == LEVEL_GROUP ? " for group '" : "",
                                 s->level == LEVEL_GROUP ? opt->groups[g].name : "",
                                 s->level == LEVEL_GROUP ? "'" : "");
    }
    opt->hypers_complete = true;
    return DSOPT_OK;
}
