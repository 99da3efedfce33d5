/* step.c - the loop around a step: gradients are announced, bound, used once, and every outcome has
 * a name.
 *
 * A step uses one generation of gradients, announced by dsopt_accumulate. Whatever it finds wrong
 * before the executor runs changes nothing; the executor decides about a skip before it writes
 * anything.
 *
 *     accumulate, step  ->  APPLIED         step again  ->  DSOPT_NO_NEW_GRADS, nothing moves
 *     accumulate, step with g = [1, inf] in bf16  ->  SKIPPED_OVERFLOW, bad_index 1
 */
#include "internal.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATIENCE = 2 }; /* generations without an applied step before the log hears of it */

/* ---- before: gradients ----------------------------------------------------------------------- */

static void warn_unapplied(dsopt_optimizer *opt)
{
    if (opt->unapplied < PATIENCE || opt->warned) return;
    opt->warned = true;
    const char *why = *opt->refused ? opt->refused
                      : opt->micro  ? "dsopt_step was not called since"
                                    : opt->report.reason;
    log_line(opt->ctx, DSOPT_LOG_WARNING,
             "optimizer '%s' is not updating: %lld generations of gradients without an applied "
             "step (%s%s)",
             opt->prog->name, (long long)opt->unapplied, *opt->refused ? "dsopt_step failed: " : "",
             why);
}

dsopt_status dsopt_accumulate(dsopt_optimizer *opt, double scale_used)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (!(scale_used == 1))
        return error_set(opt->ctx, DSOPT_SCALE_MISMATCH,
                         "the gradients were computed with scale %.17g, but '%s' has no loss "
                         "scaler: its scale is 1",
                         scale_used, opt->prog->name);
    warn_unapplied(opt);
    opt->micro++;
    opt->unapplied++;
    return DSOPT_OK;
}

dsopt_status dsopt_bind_gradient(dsopt_optimizer *opt, size_t i, const void *grad)
{
    OPT_CHECK(opt);
    if (i >= opt->ntensors)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "there is no tensor number %zu (there are %zu)", i, opt->ntensors);
    TensorInfo *t = &opt->tensors[i];
    if (t->grad == grad) return DSOPT_OK;
    uintptr_t bytes = (uintptr_t)t->numel * (uintptr_t)dtype_size(t->grad_dtype);
    if (grad && (uintptr_t)grad + bytes < bytes)
        return error_set(opt->ctx, DSOPT_INVALID_TENSOR,
                         "tensor '%s': its gradient reaches past the end of memory", t->name);
    if (t->live >= 0) {
        OptEntry *step = &opt->entries[0];
        step->x.tensors[t->live].ptr[1] = (void *)grad;
        step->stale |= !t->grad != !grad;
        opt->rebound |= grad != NULL;
    }
    t->grad = grad;
    return DSOPT_OK;
}

/* ---- after: what happened -------------------------------------------------------------------- */

/* The step counter of the report, and what stays until the next one. */
static void report_begin(dsopt_optimizer *opt, dsopt_result result)
{
    dsopt_report *r = &opt->report;
    r->result = result;
    r->step = opt->steps;
    r->micro = opt->micro;
    r->bad_tensor = r->bad_index = r->bad_rank = -1;
    r->tensors = (int64_t)opt->entries[0].nactive;
    r->reason[0] = 0;
}

static int64_t first_bad(const TensorInfo *t)
{
    if (!t->grad) return -1;
    for (int64_t k = 0; k < t->numel; k++)
        if (!isfinite(elem_get(t->grad, t->grad_dtype, k))) return k;
    return -1;
}

/* A guarded program looks at 16-bit gradients; the first bad one, in the order given, is what a
 * user wants to hear about. */
static void report_skip(dsopt_optimizer *opt)
{
    report_begin(opt, DSOPT_STEP_SKIPPED_OVERFLOW);
    dsopt_report *r = &opt->report;
    for (size_t i = 0; i < opt->ntensors; i++) {
        const TensorInfo *t = &opt->tensors[i];
        int64_t k = dtype_size(t->grad_dtype) == 2 ? first_bad(t) : -1;
        if (k < 0) continue;
        r->bad_tensor = (int64_t)i;
        r->bad_index = k;
        r->bad_rank = 0;
        snprintf(r->reason, sizeof r->reason, "the gradient of '%.100s' is %g at element %lld",
                 t->name, elem_get(t->grad, t->grad_dtype, k), (long long)k);
        return;
    }
    snprintf(r->reason, sizeof r->reason, "the program decided to skip");
}

static bool was_skipped(const dsopt_optimizer *opt)
{
    int skip = opt->entries[0].skip_slot;
    return skip >= 0 && opt->global[opt->m->slots[skip].index] != 0;
}

static bool lr_is_zero(const dsopt_optimizer *opt)
{
    if (opt->lr_slot < 0) return false;
    const Slot *s = &opt->m->slots[opt->lr_slot];
    if (s->level == LEVEL_GLOBAL) return opt->global[s->index] == 0;
    for (uint32_t g = 0; g < opt->ngroups; g++)
        if (opt->groups[g].block[s->index] != 0) return false;
    return true;
}

static void report_applied(dsopt_optimizer *opt)
{
    opt->steps++;
    opt->unapplied = 0;
    opt->warned = false;
    report_begin(opt, DSOPT_STEP_APPLIED);
    if (!lr_is_zero(opt)) return;
    opt->report.result = DSOPT_STEP_LR_ZERO;
    snprintf(opt->report.reason, sizeof opt->report.reason, "lr is 0 in every group");
}

static void report_idle(dsopt_optimizer *opt, dsopt_result result, const char *why)
{
    report_begin(opt, result);
    opt->report.tensors = 0;
    snprintf(opt->report.reason, sizeof opt->report.reason, "%s", why);
}

/* ---- the step -------------------------------------------------------------------------------- */

/* With gradients that no step has used. */
static dsopt_status use_gradients(dsopt_optimizer *opt)
{
    if (opt->eval_mode)
        return error_set(opt->ctx, DSOPT_WRONG_MODE,
                         "the parameters are those of 'on eval': run 'train' before the next step");
    OptEntry *e = &opt->entries[0];
    dsopt_status st = hyper_check_set(opt);
    if (st == DSOPT_OK) st = entry_check_inputs(opt, e);
    if (st == DSOPT_OK) st = gradients_check(opt);
    if (st != DSOPT_OK) return st;
    entry_enter(opt, e);
    tables_update(opt, e);
    if (e->nactive == 0) {
        report_idle(opt, DSOPT_STEP_NO_GRADS, "no tensor with elements has a gradient");
    } else {
        if (e->skip_slot >= 0) opt->global[opt->m->slots[e->skip_slot].index] = 0;
        ExecOutcome outcome = opt->exec(opt, e);
        if (outcome != EXEC_DONE) return entry_failed(opt, outcome);
        if (was_skipped(opt))
            report_skip(opt);
        else
            report_applied(opt);
    }
    opt->micro = 0;
    return DSOPT_OK;
}

dsopt_status dsopt_step(dsopt_optimizer *opt)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (opt->micro == 0) {
        report_idle(opt, DSOPT_STEP_NO_NEW_GRADS, "no dsopt_accumulate since the last step");
        return error_set(opt->ctx, DSOPT_NO_NEW_GRADS, "%s", dsopt_status_text(DSOPT_NO_NEW_GRADS));
    }
    dsopt_status st = use_gradients(opt);
    snprintf(opt->refused, sizeof opt->refused, "%s",
             st == DSOPT_OK ? "" : dsopt_error_message(opt->ctx));
    return st;
}
