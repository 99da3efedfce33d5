/* entry.c - entry points (`on NAME`), and inputs that the host passes in.
 *
 * An entry point works on the parameters and states of the optimizer and has a module, code and
 * tables of its own. Blocks are shared: what is not the same in all modules (exports, properties
 * that depend on how a body sees a tensor) is put in place when another entry point is entered.
 *
 *     dsopt_run(opt, "eval")     p := lerp(z, p, 1/b1), for all tensors
 *     dsopt_run(opt, "perturb")  on perturb(g): for the tensors that have a gradient
 */
#include "internal.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

bool module_loads(const IrModule *m, int slot)
{
    for (uint32_t b = 0; slot >= 0 && b < m->nbodies; b++)
        for (IrRef r = 0; r < m->bodies[b].n; r++) {
            const Ins *i = &m->bodies[b].ins[r];
            if (i->op == IR_LOAD && i->lit.slot == (uint32_t)slot) return true;
        }
    return false;
}

/* ---- exports of several entry points --------------------------------------------------------- */

static size_t export_size(const dsopt_optimizer *opt, const Slot *s)
{
    if (s->kind != SLOT_EXPORT) return 0;
    return s->level == LEVEL_GLOBAL ? 1 : s->level == LEVEL_GROUP ? opt->ngroups : opt->ntensors;
}

static double *export_at(const dsopt_optimizer *opt, const Slot *s, size_t k)
{
    double *block = s->level == LEVEL_GLOBAL  ? opt->global
                    : s->level == LEVEL_GROUP ? opt->group[k]
                                              : opt->tensors[k].block;
    return &block[s->index];
}

size_t entry_exports_size(const dsopt_optimizer *opt, const OptEntry *e)
{
    size_t n = 0;
    for (uint32_t i = 0; i < e->m->nslots; i++) n += export_size(opt, &e->m->slots[i]);
    return n;
}

void entry_exports(dsopt_optimizer *opt, OptEntry *e, ExportsDo what)
{
    size_t at = 0;
    for (uint32_t i = 0; i < e->m->nslots; i++) {
        const Slot *s = &e->m->slots[i];
        for (size_t k = 0; k < export_size(opt, s); k++, at++) {
            double *x = export_at(opt, s, k);
            if (what == EXPORTS_SAVE)
                e->exports[at] = *x;
            else
                *x = what == EXPORTS_LOAD ? e->exports[at] : NAN;
        }
    }
}

void entry_export_read(const dsopt_optimizer *opt, const OptEntry *e, const Slot *s, double *out)
{
    const double *saved = e->exports;
    for (const Slot *k = e->m->slots; e != opt->current && k < s; k++) saved += export_size(opt, k);
    for (size_t k = 0; k < export_size(opt, s); k++)
        out[k] = e == opt->current ? *export_at(opt, s, k) : saved[k];
}

void entry_enter(dsopt_optimizer *opt, OptEntry *e)
{
    if (opt->current == e) return;
    entry_exports(opt, opt->current, EXPORTS_SAVE);
    entry_exports(opt, e, EXPORTS_LOAD);
    opt->current = e;
    e->stale = true; /* numel_all, too, is of who takes part */
}

/* ---- running --------------------------------------------------------------------------------- */

dsopt_status entry_failed(dsopt_optimizer *opt, ExecOutcome outcome)
{
    if (outcome == EXEC_NOTHING_WRITTEN) return error_oom(opt->ctx);
    opt->poison = "a step failed after it had begun to write, so that parameters and state are of "
                  "different steps";
    return error_set(opt->ctx, DSOPT_POISONED, "this optimizer can only be destroyed: %s",
                     opt->poison);
}

static OptEntry *find_entry(dsopt_optimizer *opt, const char *name)
{
    for (size_t k = 1; k < opt->nentries; k++)
        if (strcmp(opt->entries[k].name, name) == 0) return &opt->entries[k];
    return NULL;
}

static dsopt_status unknown_entry(dsopt_optimizer *opt, const char *name)
{
    const char *names[64] = {0};
    char all[512] = "";
    size_t n = 0, len = 0;
    if (strcmp(name, "step") == 0)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "'step' is what dsopt_step runs");
    for (size_t k = 1; k < opt->nentries && n < COUNT_OF(names); k++) {
        names[n] = opt->entries[k].name;
        if (len < sizeof all)
            len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", n ? ", " : "", names[n]);
        n++;
    }
    const char *near = diag_suggest(name, names, n);
    if (near)
        return error_set(opt->ctx, DSOPT_UNKNOWN_NAME,
                         "'%s' has no entry point '%s'; did you mean '%s'?", opt->prog->name, name,
                         near);
    return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "'%s' has no entry point '%s' (it has %s)",
                     opt->prog->name, name, n ? all : "none");
}

static dsopt_status check_buffers(dsopt_optimizer *opt, const OptEntry *e,
                                  const void *const *buffers, size_t count)
{
    if (!e->pm->takes_buffers)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "'on %s' of '%s' takes no buffers: run it with dsopt_run", e->name,
                         opt->prog->name);
    if (count != opt->ntensors)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "%zu buffers for 'on %s', but there are %zu tensors", count, e->name,
                         opt->ntensors);
    for (size_t i = 0; i < count; i++) {
        const TensorInfo *t = &opt->tensors[i];
        uintptr_t bytes = (uintptr_t)t->numel * (uintptr_t)dtype_size(t->grad_dtype);
        if (buffers[i] && (uintptr_t)buffers[i] + bytes < bytes)
            return error_set(opt->ctx, DSOPT_INVALID_TENSOR,
                             "tensor '%s': its buffer reaches past the end of memory", t->name);
    }
    return overlaps_check(opt, buffers);
}

static void bind_buffers(dsopt_optimizer *opt, OptEntry *e, const void *const *buffers)
{
    for (uint32_t i = 0; i < opt->nlive; i++) {
        uint32_t t = e->live[i].info;
        e->x.tensors[i].ptr[1] = (void *)(buffers ? buffers[t] : opt->tensors[t].grad);
    }
}

/* `on eval` and `on train` of one program are two states that it is in, the second at first. What
 * would lead to where it is already does nothing, as in the libraries that have such a pair. */
static bool changes_mode(const dsopt_optimizer *opt, const OptEntry *e, bool *eval)
{
    bool to_eval = strcmp(e->name, "eval") == 0, to_train = strcmp(e->name, "train") == 0;
    if (!to_eval && !to_train) return false;
    for (size_t k = 1; k < opt->nentries; k++)
        if (strcmp(opt->entries[k].name, to_eval ? "train" : "eval") == 0) {
            *eval = to_eval;
            return true;
        }
    return false;
}

static dsopt_status run_entry(dsopt_optimizer *opt, OptEntry *e, const void *const *buffers)
{
    dsopt_status st = hyper_check_set(opt);
    if (st == DSOPT_OK) st = entry_check_inputs(opt, e);
    if (st == DSOPT_OK && e->pm->takes_buffers && !buffers) st = gradients_check(opt);
    if (st != DSOPT_OK) return st;
    bind_buffers(opt, e, buffers);
    entry_enter(opt, e);
    e->stale = true; /* tensors' t have advanced, each by its own gradients */
    tables_update(opt, e);
    if (e->nactive == 0) {
        if (!e->pm->takes_buffers) return DSOPT_OK;
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT,
                         "'on %s': no tensor with elements has a %s", e->name,
                         buffers ? "buffer" : "gradient");
    }
    if (e->skip_slot >= 0) opt->global[e->m->slots[e->skip_slot].index] = 0;
    ExecOutcome outcome = opt->exec(opt, e);
    return outcome == EXEC_DONE ? DSOPT_OK : entry_failed(opt, outcome);
}

dsopt_status dsopt_run_with(dsopt_optimizer *opt, const char *entry, const void *const *buffers,
                            size_t count)
{
    FPENV_HERE;
    OPT_CHECK(opt);
    if (!entry)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "dsopt_run: no entry point was named");
    OptEntry *e = find_entry(opt, entry);
    if (!e) return unknown_entry(opt, entry);
    bool to_eval = opt->eval_mode, changes = changes_mode(opt, e, &to_eval);
    if (buffers) {
        dsopt_status st = check_buffers(opt, e, buffers, count);
        if (st != DSOPT_OK) return st;
    }
    if (changes && to_eval == opt->eval_mode) return DSOPT_OK;
    dsopt_status st = run_entry(opt, e, buffers);
    if (st == DSOPT_OK) opt->eval_mode = to_eval;
    return st;
}

dsopt_status dsopt_run(dsopt_optimizer *opt, const char *entry)
{
    return dsopt_run_with(opt, entry, NULL, 0);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

size_t dsopt_input_count(const dsopt_optimizer *opt)
{
    size_t n = 0;
    for (uint32_t i = 0; opt && i < opt->m->nslots; i++) n += opt->m->slots[i].kind == SLOT_INPUT;
    return n;
}

const char *dsopt_input_name(const dsopt_optimizer *opt, size_t i)
{
    for (uint32_t k = 0; opt && k < opt->m->nslots; k++)
        if (opt->m->slots[k].kind == SLOT_INPUT && i-- == 0) return opt->m->slots[k].name;
    return NULL;
}

dsopt_status dsopt_input_find(dsopt_optimizer *opt, const char *name, dsopt_handle *handle)
{
    OPT_CHECK(opt);
    if (!name || !handle)
        return error_set(opt->ctx, DSOPT_INVALID_ARGUMENT, "input: %s is NULL",
                         name ? "handle" : "name");
    const char *names[64] = {0};
    size_t n = 0;
    for (uint32_t i = 0; i < opt->m->nslots; i++) {
        const Slot *s = &opt->m->slots[i];
        if (s->kind != SLOT_INPUT) continue;
        if (n < COUNT_OF(names)) names[n++] = s->name;
        if (strcmp(s->name, name) != 0 && path_match(s->path, name) == 0) continue;
        *handle = (dsopt_handle){.slot = i, .group = UINT32_MAX};
        return DSOPT_OK;
    }
    const char *near = diag_suggest(name, names, n);
    if (!near && n == 1) near = names[0];
    return error_set(opt->ctx, DSOPT_UNKNOWN_NAME, "'%s' has no input '%s'%s%s%s", opt->prog->name,
                     name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

dsopt_status dsopt_set_input(dsopt_optimizer *opt, const char *name, double value)
{
    dsopt_handle h;
    dsopt_status st = dsopt_input_find(opt, name, &h);
    return st == DSOPT_OK ? dsopt_handle_set(opt, h, value) : st;
}

dsopt_status entry_check_inputs(dsopt_optimizer *opt, const OptEntry *e)
{
    for (uint32_t i = 0; i < opt->m->nslots; i++)
        if (opt->m->slots[i].kind == SLOT_INPUT && !opt->global_set[i] &&
            module_loads(e->m, (int)i))
            return error_set(opt->ctx, DSOPT_NOT_SET,
                             "the input '%s' of '%s' was not given: dsopt_set_input, before the %s",
                             opt->m->slots[i].name, opt->prog->name, e->pm->entry ? "run" : "step");
    return DSOPT_OK;
}
