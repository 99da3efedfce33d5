/* emit_c_step.c - NAME_step of standalone C: all phases of a step over one tensor, on the calling
 * thread.
 *
 * Requires: the kernels and scalar programs of emit_c.c before it in the file. Ensures: the same
 * bits as the runtime gives for that tensor alone; returns 1 when the step was applied, 0 when the
 * rule skipped it or the tensor is empty.
 *
 *     int adamw_step(int64_t numel, float *p, const float *g, float *m, float *v,
 *                    const adamw_hyper *hyper, int64_t t);
 */
#include "emit_c.h"
#include <string.h>

bool emit_c_is_kept(const Slot *s)
{
    bool init = s->kind == SLOT_COUNT && strcmp(s->name, "init") == 0;
    return rate_is_scalar(s->rate) && (s->kind == SLOT_STATE || s->kind == SLOT_EXPORT || init);
}

bool emit_c_has_state(const Plan *p)
{
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        if (emit_c_is_kept(&p->m->slots[i])) return true;
    }
    return false;
}

static bool has_hyper(const Plan *p)
{
    for (uint32_t i = 0; i < p->m->nslots; i++)
        if (p->m->slots[i].kind == SLOT_HYPER || p->m->slots[i].kind == SLOT_INPUT) return true;
    return false;
}

bool emit_c_reads(const Plan *p, uint32_t slot)
{
    for (uint32_t b = 0; b < p->m->nbodies; b++) {
        const IrBody *body = &p->m->bodies[b];
        for (uint32_t i = 0; i < body->n; i++) {
            bool load = body->ins[i].op == IR_LOAD && body->ins[i].lit.slot == slot;
            if (load && p->phase[b][i] >= 0) return true;
        }
    }
    return false;
}

static bool has_property(const Plan *p, const char *name)
{
    int slot = ir_slot_find(p->m, SLOT_PROP, name);
    return slot >= 0 && emit_c_reads(p, (uint32_t)slot);
}

static bool select_reads(const IrBody *b, uint32_t slot)
{
    for (uint32_t i = 0; b && i < b->n; i++)
        if (b->ins[i].op == IR_LOAD && b->ins[i].lit.slot == slot) return true;
    return false;
}

/* Whether the tensor's name is as the rule asks: the caller says so. */
static bool asks_name(const Plan *p, uint32_t slot)
{
    return ir_asks_name(&p->m->slots[slot]) &&
           (emit_c_reads(p, slot) || select_reads(p->m->select, slot));
}

void emit_c_select_names(StrBuf *out, const Plan *p, const char *type)
{
    for (uint32_t i = 0; i < p->m->nslots; i++)
        if (ir_asks_name(&p->m->slots[i]) && select_reads(p->m->select, i))
            sb_printf(out, ", %s%s", type, emit_slot_name(out->arena, p, i));
}

bool emit_c_has_shape(const Plan *p)
{
    return has_property(p, "ndim") || has_property(p, "rows") || has_property(p, "cols");
}

bool emit_c_has_draws(const Plan *p)
{
    return has_property(p, "draw_lo") || has_property(p, "draw_hi");
}

static bool is_step(const Plan *p)
{
    return strcmp(p->m->bodies[0].entry, "step") == 0;
}

const char *emit_prefix(Arena *a, const Plan *p)
{
    const char *name = emit_module_name(a, p);
    return is_step(p) ? name : arena_printf(a, "%s_%s", name, p->m->bodies[0].entry);
}

const char *emit_c_entry(Arena *a, const Plan *p)
{
    return arena_printf(a, "%s_%s", emit_module_name(a, p), p->m->bodies[0].entry);
}

const char *emit_c_state_name(Arena *a, const Plan *p, uint32_t slot)
{
    const char *name = emit_slot_name(a, p, slot);
    bool own = p->m->slots[slot].kind == SLOT_EXPORT && !is_step(p);
    return own ? arena_printf(a, "%s_%s", p->m->bodies[0].entry, name) : name;
}

void emit_c_step_prototype(StrBuf *out, const Plan *p, const Variant *v)
{
    Arena *a = out->arena;
    const char *module = emit_module_name(a, p);
    bool shaped = emit_c_is_shaped(p);
    uint32_t pointers = shaped ? p->m->nelem : emit_pointer_count(p, v);
    sb_printf(out, "int %s(%s", emit_c_entry(a, p),
              shaped ? "int ndim, const int64_t *shape" : "int64_t numel");
    for (uint32_t e = 0; e < pointers; e++) {
        DType d = emit_elem_storage(p, v, e);
        const char *type = d == DT_F32 ? "float" : d == DT_F64 ? "double" : "uint16_t";
        sb_printf(out, ", %s%s *%s", e == 1 ? "const " : "", type, emit_elem_name(a, p, e));
    }
    sb_printf(out, ",\n    const %s_hyper *hyper", module);
    if (emit_c_has_state(p)) sb_printf(out, ", %s_state *state", module);
    if (!shaped && emit_c_has_shape(p)) sb_puts(out, ", int ndim, int64_t rows, int64_t cols");
    if (emit_c_has_draws(p)) sb_puts(out, ", uint64_t draws");
    for (uint32_t i = 0; i < p->m->nslots; i++)
        if (asks_name(p, i)) sb_printf(out, ", int %s", emit_slot_name(a, p, i));
    sb_puts(out, shaped ? ", int64_t t, void *work)" : ", int64_t t)");
}

/* `group[2]` */
static const char *block_at(Arena *a, const Slot *s)
{
    return arena_printf(a, "%s[%u]", emit_blocks[s->level], (unsigned)s->index);
}

static void set_property(StrBuf *out, const Variant *v, const Slot *s)
{
    const char *at = block_at(out->arena, s);
    if (strcmp(s->name, "ndim") == 0 || strcmp(s->name, "rows") == 0 ||
        strcmp(s->name, "cols") == 0 || strcmp(s->name, "mats") == 0)
        sb_printf(out, "    %s = (double)%s;\n", at, s->name);
    else if (strcmp(s->name, "first") == 0)
        sb_printf(out, "    %s = (double)d.first;\n", at);
    else if (strcmp(s->name, "draw_lo") == 0)
        sb_printf(out, "    %s = (double)(draws & 0xffffffffu);\n", at);
    else if (strcmp(s->name, "draw_hi") == 0)
        sb_printf(out, "    %s = (double)(draws >> 32);\n", at);
    else if (strcmp(s->name, "gbits") == 0)
        sb_printf(out, "    %s = %d;\n", at, 8 * dtype_size(v->storage[1]));
    else
        sb_printf(out, "    %s = (double)numel;\n", at);
}

/* Puts hyperparameters, states, counters and properties into the blocks. */
void emit_c_fill_blocks(StrBuf *out, const Plan *p, const Variant *v)
{
    const char *steps = is_step(p) ? "(double)(t - 1)" : "(double)t";
    Arena *a = out->arena;
    if (!emit_c_is_shaped(p) && emit_c_has_shape(p))
        sb_puts(out, "    (void)ndim, (void)rows, (void)cols;\n");
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        const Slot *s = &p->m->slots[i];
        if (!rate_is_scalar(s->rate)) continue;
        if (s->kind == SLOT_HYPER || s->kind == SLOT_INPUT)
            sb_printf(out, "    %s = hyper->%s;\n", block_at(a, s), emit_slot_name(a, p, i));
        else if (emit_c_is_kept(s) && s->kind != SLOT_EXPORT)
            sb_printf(out, "    %s = state->%s;\n", block_at(a, s), emit_c_state_name(a, p, i));
        else if (s->kind == SLOT_COUNT)
            sb_printf(out, "    %s = %s;\n", block_at(a, s), steps);
        else if (asks_name(p, i))
            sb_printf(out, "    %s = %s != 0;\n", block_at(a, s), emit_slot_name(a, p, i));
        else if (s->kind == SLOT_PROP && emit_c_reads(p, i))
            set_property(out, v, s);
    }
    sb_printf(out, "    cls[0] = %s;\n", steps);
    if (!has_hyper(p)) sb_puts(out, "    (void)hyper;\n");
}

void emit_c_drain_blocks(StrBuf *out, const Plan *p)
{
    Arena *a = out->arena;
    for (uint32_t i = 0; i < p->m->nslots; i++) {
        if (emit_c_is_kept(&p->m->slots[i]))
            sb_printf(out, "    state->%s = %s;\n", emit_c_state_name(a, p, i),
                      block_at(a, &p->m->slots[i]));
    }
}

static void call_programs(StrBuf *out, const Plan *p, int phase)
{
    const char *module = emit_prefix(out->arena, p);
    for (uint32_t i = 0; i < p->nprograms; i++) {
        if (p->programs[i].phase != phase) continue;
        sb_printf(out, "    %s_", module);
        emit_program_name(out, p, &p->programs[i]);
        sb_puts(out, "(global, group, cls, tensor);\n");
    }
}

static void call_commit(StrBuf *out, const Plan *p)
{
    const char *module = emit_prefix(out->arena, p);
    for (uint32_t i = 0; i < p->ncommit; i++) {
        sb_printf(out, "    %s_", module);
        emit_program_name(out, p, &p->commit[i]);
        sb_puts(out, "(global, group, cls, tensor);\n");
    }
    emit_c_drain_blocks(out, p);
}

static void put_result(StrBuf *out, const Plan *p, const PlanReduce *r, const char *value)
{
    sb_printf(out, "    %s[%u] = ", emit_blocks[r->result.level], (unsigned)r->result.index);
    if (r->guard.level != LEVEL_NONE) {
        sb_printf(out, "%s[%u] == 0 ? ", emit_blocks[r->guard.level], (unsigned)r->guard.index);
        emit_literal(out, plan_reduce_info(p, r)->identity, DT_F64);
        sb_puts(out, " : ");
    }
    sb_printf(out, "%s;\n", value);
}

static void run_kernel(StrBuf *out, const Plan *p, const Kernel *k)
{
    Arena *a = out->arena;
    const char *module = emit_prefix(a, p);
    if (!k->nreduces) {
        sb_puts(
            out,
            "    for (row.first = 0; row.first < numel; row.first += DS_CHUNK) {\n"
            "        row.count = numel - row.first < DS_CHUNK ? numel - row.first : DS_CHUNK;\n");
        sb_printf(out, "        %s_k%d(&args, 0, 1, 0);\n    }\n", module, k->phase);
        return;
    }
    sb_printf(out,
              "    for (row.first = 0; row.first < numel; row.first += DS_CHUNK) {\n"
              "        const uint64_t chunk = (uint64_t)(row.first / DS_CHUNK);\n"
              "        row.count = numel - row.first < DS_CHUNK ? numel - row.first : DS_CHUNK;\n"
              "        %s_k%d(&args, 0, 1, 0);\n",
              module, k->phase);
    for (uint32_t i = 0; i < k->nreduces; i++) {
        const PlanReduce *r = &p->reduces[k->reduces[i]];
        sb_printf(out, "        ds_push_%s(tree[%u], chunk, partial[%u]);\n",
                  plan_reduce_info(p, r)->name, (unsigned)r->partial, (unsigned)r->partial);
    }
    sb_puts(out, "    }\n");
    for (uint32_t i = 0; i < k->nreduces; i++) {
        const PlanReduce *r = &p->reduces[k->reduces[i]];
        put_result(out, p, r,
                   arena_printf(a, "ds_root_%s(tree[%u], chunks)", plan_reduce_info(p, r)->name,
                                (unsigned)r->partial));
    }
}

/* Reductions of scalars: over all tensors there is one value here; over a tensor's elements all are
 * the same. */
static void join_scalars(StrBuf *out, const Plan *p, int phase)
{
    for (uint32_t i = 0; i < p->nreduces; i++) {
        const PlanReduce *r = &p->reduces[i];
        if (r->phase != phase || r->from != FROM_SCALARS) continue;
        const ReduceInfo *info = plan_reduce_info(p, r);
        StrBuf id = {.arena = out->arena}, value = {.arena = out->arena};
        sb_puts(&value, "");
        emit_literal(&id, info->identity, DT_F64);
        const char *x =
            arena_printf(out->arena, "%s[%u]", emit_blocks[r->arg.level], (unsigned)r->arg.index);
        const char *y = r->arg2.level == LEVEL_NONE
                            ? ""
                            : arena_printf(out->arena, "%s[%u]", emit_blocks[r->arg2.level],
                                           (unsigned)r->arg2.index);
        if (r->result.level == LEVEL_TENSOR)
            sb_printf(&value, "ds_uniform_%s(numel, %s, %s)", info->name, x, *y ? y : x);
        else
            emit_reduce_text(&value, info->combine, id.text, x, y);
        put_result(out, p, r, arena_printf(out->arena, "(%s)", value.text));
    }
}

static void declare(StrBuf *out, const Plan *p, const Variant *v)
{
    uint32_t columns = 0;
    for (int ph = 0; ph < p->nphases; ph++)
        columns = emit_npartial(p, ph) > columns ? emit_npartial(p, ph) : columns;
    for (int l = 0; l < LEVEL_COUNT; l++)
        sb_printf(out, "    double %s[%u] = {0};\n", emit_blocks[l],
                  (unsigned)(p->block_size[l] ? p->block_size[l] : 1));
    sb_puts(out, "    void *const ptr[] = {");
    for (uint32_t e = 0; e < emit_pointer_count(p, v); e++)
        sb_printf(out, "%s%s%s", e ? ", " : "", e == 1 ? "(void *)" : "",
                  emit_elem_name(out->arena, p, e));
    sb_puts(
        out,
        "};\n"
        "    DsRow row = {0};\n"
        "    const DsTensorRow tensors = {{global, group, cls, tensor}, ptr, 1, numel, 1, 1, "
        "1};\n");
    if (columns) {
        sb_printf(out,
                  "    const uint64_t chunks = (uint64_t)(numel - 1) / DS_CHUNK + 1;\n"
                  "    double partial[%u] = {0}, tree[%u][52];\n",
                  (unsigned)columns, (unsigned)columns);
        sb_printf(out, "    const DsArgs args = {&row, &tensors, partial, %u};\n",
                  (unsigned)columns);
    } else {
        sb_puts(out, "    const DsArgs args = {&row, &tensors, 0, 0};\n");
    }
}

void emit_c_return(StrBuf *out, const Plan *p)
{
    if (p->skip.level != LEVEL_NONE)
        sb_printf(out, "    return %s[%u] == 0;\n}\n\n", emit_blocks[p->skip.level],
                  (unsigned)p->skip.index);
    else
        sb_puts(out, "    return 1;\n}\n\n");
}

void emit_c_step(StrBuf *out, const Plan *p, const Variant *const *variants)
{
    const Variant *v = variants[0];
    if (emit_c_is_shaped(p)) {
        emit_c_shaped_step(out, p, variants);
        return;
    }
    emit_c_step_prototype(out, p, v);
    sb_puts(out, "\n{\n    if (numel <= 0)\n        return 0;\n");
    declare(out, p, v);
    emit_c_fill_blocks(out, p, v);
    for (int ph = 0; ph <= p->nphases; ph++) {
        call_programs(out, p, ph);
        for (uint32_t i = 0; i < v->nkernels; i++) {
            if (v->kernels[i].phase == ph) run_kernel(out, p, &v->kernels[i]);
        }
        join_scalars(out, p, ph);
    }
    call_commit(out, p);
    emit_c_return(out, p);
}
