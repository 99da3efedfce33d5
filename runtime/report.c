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

static int find_export(const dsopt_optimizer *opt, const char *name)
{
    return ir_slot_find(opt->m, SLOT_EXPORT, name);
}

dsopt_status dsopt_report_read(dsopt_optimizer *opt, dsopt_report *report, int mode)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (!report || (mode != DSOPT_LATEST && mode != DSOPT_WAIT))
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_report_read: %s",
                         report ? "mode is neither DSOPT_LATEST nor DSOPT_WAIT" : "report is NULL");
    dsopt_report r = opt->report;
    int norm = find_export(opt, "grad_norm");
    if (norm >= 0 && opt->m->slots[norm].level == LEVEL_GLOBAL)
        r.grad_norm = opt->x.global[opt->m->slots[norm].index];
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
    int i = find_export(opt, name);
    if (i < 0) {
        const char *names[64] = {0};
        size_t n = 0;
        for (uint32_t k = 0; k < opt->m->nslots && n < COUNT_OF(names); k++)
            if (opt->m->slots[k].kind == SLOT_EXPORT) names[n++] = opt->m->slots[k].name;
        const char *near = diag_suggest(name, names, n);
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "'%s' exports no '%s'%s%s%s",
                         opt->prog->name, name, near ? "; did you mean '" : "", near ? near : "",
                         near ? "'?" : "");
    }
    const Slot *s = &opt->m->slots[i];
    if (s->level != LEVEL_GLOBAL)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "'%s' has one value per %s: read it with dsopt_export_read", name,
                         rate_name(s->rate));
    *value = opt->x.global[s->index];
    return DSOPT_OK;
}

/* ---- all exports ----------------------------------------------------------------------------- */

size_t dsopt_export_count(const dsopt_optimizer *opt)
{
    size_t n = 0;
    for (uint32_t k = 0; opt && k < opt->m->nslots; k++) n += opt->m->slots[k].kind == SLOT_EXPORT;
    return n;
}

static const Slot *nth_export(const dsopt_optimizer *opt, size_t i)
{
    for (uint32_t k = 0; k < opt->m->nslots; k++)
        if (opt->m->slots[k].kind == SLOT_EXPORT && i-- == 0) return &opt->m->slots[k];
    return NULL;
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
    const Slot *s = nth_export(opt, i);
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
    const Slot *s = nth_export(opt, i);
    if (!s) return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "there is no export number %zu", i);
    if (count != export_count(opt, s) || (!values && count))
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "export '%s' has %lld values, not %lld",
                         s->name, (long long)export_count(opt, s), values ? (long long)count : 0ll);
    for (int64_t k = 0; k < count; k++) {
        const double *block = s->level == LEVEL_GLOBAL  ? opt->x.global
                              : s->level == LEVEL_GROUP ? opt->groups[k].block
                                                        : opt->tensors[k].block;
        values[k] = block[s->index];
    }
    return DSOPT_OK;
}
