/* report.c - what a step left behind for its user: the report, and the values that a program
 * exports.
 *
 *     export n as grad_norm  ->  dsopt_report_export(opt, "grad_norm", &x), dsopt_report.grad_norm
 */
#include "internal.h"
#include <math.h>
#include <string.h>

const char *dsopt_result_name(dsopt_result result)
{
    static const char *const names[] = {"NONE",         "APPLIED",  "SKIPPED_OVERFLOW",
                                        "NOT_BOUNDARY", "NO_GRADS", "NO_NEW_GRADS",
                                        "LR_ZERO"};
    return (unsigned)result < COUNT_OF(names) ? names[result] : "?";
}

/* Exports of the step, then those that only other entry points have. */
static bool is_export(const dsopt_optimizer *opt, size_t entry, const Slot *s)
{
    if (s->kind != SLOT_EXPORT) return false;
    for (size_t k = 0; k < entry; k++)
        if (ir_slot_find(opt->entries[k].m, SLOT_EXPORT, s->name) >= 0) return false;
    return true;
}

static const Slot *nth_export(const dsopt_optimizer *opt, size_t i, const OptEntry **of)
{
    for (size_t k = 0; k < opt->nentries; k++) {
        const IrModule *m = opt->entries[k].m;
        for (uint32_t n = 0; n < m->nslots; n++) {
            if (!is_export(opt, k, &m->slots[n]) || i-- != 0) continue;
            *of = &opt->entries[k];
            return &m->slots[n];
        }
    }
    return NULL;
}

static const Slot *find_export(const dsopt_optimizer *opt, const char *name, const OptEntry **of)
{
    for (size_t k = 0; k < opt->nentries; k++) {
        int i = ir_slot_find(opt->entries[k].m, SLOT_EXPORT, name);
        if (i < 0) continue;
        *of = &opt->entries[k];
        return &opt->entries[k].m->slots[i];
    }
    return NULL;
}

dsopt_status dsopt_report_read(dsopt_optimizer *opt, dsopt_report *report, int mode)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (!report || (mode != DSOPT_LATEST && mode != DSOPT_WAIT))
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_report_read: %s",
                         report ? "mode is neither DSOPT_LATEST nor DSOPT_WAIT" : "report is NULL");
    dsopt_report r = opt->report;
    int norm = ir_slot_find(opt->m, SLOT_EXPORT, "grad_norm");
    if (norm >= 0 && opt->m->slots[norm].level == LEVEL_GLOBAL)
        entry_export_read(opt, &opt->entries[0], &opt->m->slots[norm], &r.grad_norm);
    dsopt_status st = DSOPT_OK;
    struct_out(opt->ctx, "dsopt_report", report, &r, sizeof r, &st);
    return st;
}

dsopt_status dsopt_report_export(dsopt_optimizer *opt, const char *name, double *value)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (!name || !value)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_report_export: %s is NULL",
                         name ? "value" : "name");
    const OptEntry *e;
    const Slot *s = find_export(opt, name, &e), *other;
    if (!s) {
        const char *names[64] = {0};
        size_t n = 0;
        for (; n < COUNT_OF(names) && (other = nth_export(opt, n, &e)); n++) names[n] = other->name;
        const char *near = diag_suggest(name, names, n);
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "'%s' exports no '%s'%s%s%s",
                         opt->prog->name, name, near ? "; did you mean '" : "", near ? near : "",
                         near ? "'?" : "");
    }
    if (s->level != LEVEL_GLOBAL) {
        const OptEntry *of;
        size_t i = 0;
        while (nth_export(opt, i, &of) != s) i++;
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "'%s' has one value per %s: read it with dsopt_export_read, number %zu",
                         name, rate_name(s->rate), i);
    }
    entry_export_read(opt, e, s, value);
    return DSOPT_OK;
}

/* ---- all exports ----------------------------------------------------------------------------- */

size_t dsopt_export_count(const dsopt_optimizer *opt)
{
    size_t n = 0;
    const OptEntry *e;
    while (opt && nth_export(opt, n, &e)) n++;
    return n;
}

static int64_t export_count(const dsopt_optimizer *opt, const Slot *s)
{
    return s->level == LEVEL_GLOBAL  ? 1
           : s->level == LEVEL_GROUP ? opt->ngroups
                                     : (int64_t)opt->ntensors;
}

dsopt_status dsopt_export_info_read(dsopt_optimizer *opt, size_t i, dsopt_export_info *info)
{
    OPT_CHECK(opt);
    const OptEntry *entry;
    const Slot *s = nth_export(opt, i, &entry);
    if (!s || !info)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         s ? "info is NULL (export %zu)" : "there is no export number %zu", i);
    dsopt_export_info e = {
        .name = s->name, .rate = rate_name(s->rate), .count = export_count(opt, s)};
    dsopt_status st = DSOPT_OK;
    struct_out(opt->ctx, "dsopt_export_info", info, &e, sizeof e, &st);
    return st;
}

dsopt_status dsopt_export_read(dsopt_optimizer *opt, size_t i, double *values, int64_t count)
{
    OPT_CHECK(opt);
    const OptEntry *entry;
    const Slot *s = nth_export(opt, i, &entry);
    if (!s) return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "there is no export number %zu", i);
    if (!values && count)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "export '%s': values is NULL", s->name);
    if (count != export_count(opt, s))
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "export '%s' has %lld values, not %lld",
                         s->name, (long long)export_count(opt, s), (long long)count);
    entry_export_read(opt, entry, s, values);
    return DSOPT_OK;
}
