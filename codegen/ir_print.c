/* ir_print.c - the text form of a module (docs/ir.md), which ir_parse reads back exactly.
 *
 * Requires a module that ir_verify accepts; prints others as far as they go.
 *
 *     dsopt-ir 1
 *     module sgd compute f32
 *     slot p param f32.element
 */
#include "ir_impl.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

/* Hex digits by hand: printf writes the radix character of the host's locale. */
static void format_hex(char *out, double v)
{
    int exp;
    double f = frexp(fabs(v), &exp) * 2; /* 1 <= f < 2 */
    char *p = out;
    if (v < 0) *p++ = '-';
    p += sprintf(p, "0x1");
    f -= 1;
    if (f != 0) *p++ = '.';
    while (f != 0) {
        f *= 16;
        int digit = (int)f;
        *p++ = "0123456789abcdef"[digit];
        f -= digit;
    }
    sprintf(p, "p%+d", exp - 1);
}

const char *ir_format_num(char out[32], double v)
{
    if (v != v) return strcpy(out, "nan");
    if (isinf(v)) return strcpy(out, v < 0 ? "-inf" : "inf");
    if (v == 0 && signbit(v)) return strcpy(out, "-0");
    if (fabs(v) < 1e9 && v == (double)(long)v) {
        sprintf(out, "%ld", (long)v);
        return out;
    }
    format_hex(out, v);
    return out;
}

static void put_num(StrBuf *out, double v)
{
    char text[32];
    sb_puts(out, ir_format_num(text, v));
}

/* ---- slots ----------------------------------------------------------------------------------- */

const char *const ir_slot_kinds[] = {
    [SLOT_PARAM] = "param",   [SLOT_GRAD] = "grad",     [SLOT_HYPER] = "hyper",
    [SLOT_STATE] = "state",   [SLOT_COUNT] = "count",   [SLOT_PROP] = "prop",
    [SLOT_RESULT] = "result", [SLOT_EXPORT] = "export", [SLOT_SKIP] = "skip",
    [SLOT_INPUT] = "input",   [SLOT_ARM] = "arm",       [SLOT_BLOCK] = "block",
};
const int ir_slot_kind_count = sizeof ir_slot_kinds / sizeof *ir_slot_kinds;
const char *const ir_views[] = {
    [VIEW_FLAT] = "flat", [VIEW_MATRIX] = "matrix", [VIEW_FIRST] = "first", [VIEW_BLOCK] = "block"};

/* A slot's name, or name:2, name:3 for the second and third of that name. */
static void put_label(StrBuf *out, const IrModule *m, uint32_t slot)
{
    if (slot >= m->nslots) {
        sb_printf(out, "?%u", slot);
        return;
    }
    const char *name = m->slots[slot].name;
    int nth = 1;
    for (uint32_t i = 0; i < slot; i++) nth += strcmp(m->slots[i].name, name) == 0;
    sb_puts(out, name);
    if (nth > 1) sb_printf(out, ":%d", nth);
}

void ir_put_quoted(StrBuf *out, const char *s)
{
    sb_puts(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            sb_printf(out, "\\%c", c);
        else if (c < 32 || c > 126)
            sb_printf(out, "\\x%02x", c);
        else
            sb_putn(out, s, 1);
    }
    sb_puts(out, "\"");
}

static void put_type(StrBuf *out, DType d, Rate r)
{
    sb_printf(out, "%s.%s", dtype_name(d), rate_name(r));
}

static void put_slot(StrBuf *out, const IrModule *m, uint32_t index)
{
    const Slot *s = &m->slots[index];
    sb_puts(out, "slot ");
    put_label(out, m, index);
    sb_printf(out, " %s ", s->kind < (unsigned)ir_slot_kind_count ? ir_slot_kinds[s->kind] : "?");
    put_type(out, s->dtype, s->rate);
    if (s->storage != s->dtype) sb_printf(out, " as %s", dtype_name(s->storage));
    if (s->path && *s->path) {
        sb_puts(out, " ");
        ir_put_quoted(out, s->path);
    }
    if (s->kind == SLOT_STATE || s->kind == SLOT_COUNT) {
        sb_puts(out, " = ");
        put_num(out, s->init);
    }
    if (s->kind == SLOT_HYPER) {
        if (s->has_default) {
            sb_puts(out, " = ");
            put_num(out, s->def);
        }
        if (s->derived) sb_puts(out, " derived");
        sb_puts(out, s->lo_open ? " in (" : " in [");
        put_num(out, s->lo);
        sb_puts(out, ", ");
        put_num(out, s->hi);
        sb_puts(out, s->hi_open ? ")" : "]");
    }
    sb_puts(out, "\n");
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static void put_reduce(StrBuf *out, const IrModule *m, const Ins *i)
{
    const char *scope = i->rate == RATE_GLOBAL ? "all" : rate_name(i->rate);
    sb_printf(out, "%s[%s]", ir_op_name(i->op), scope);
    for (int k = 0; k < ir_arity(i); k++) sb_printf(out, " %%%u", i->arg[k]);
    sb_puts(out, " -> ");
    put_label(out, m, i->lit.slot);
    if (i->arg[2] != IR_NONE) sb_printf(out, " if %%%u", i->arg[2]);
}

static void put_ins(StrBuf *out, const IrModule *m, uint32_t ref, const Ins *i)
{
    sb_printf(out, "  %%%u:", ref);
    put_type(out, (DType)i->dtype, i->rate);
    sb_puts(out, " = ");
    if (ir_is_reduce(i)) {
        put_reduce(out, m, i);
    } else {
        sb_puts(out, ir_op_name(i->op));
        for (int k = 0; k < ir_arity(i); k++) sb_printf(out, " %%%u", i->arg[k]);
        if (i->op == IR_CONST && i->dtype == DT_BOOL)
            sb_puts(out, i->lit.num != 0 ? " true" : " false");
        if (i->op == IR_CONST && i->dtype != DT_BOOL) {
            sb_puts(out, " ");
            put_num(out, i->lit.num);
        }
        if (i->op == IR_LOAD) {
            sb_puts(out, " ");
            put_label(out, m, i->lit.slot);
        }
        if (ir_is_draw(i)) sb_printf(out, " site %u", i->lit.slot);
    }
    sb_puts(out, "\n");
}

static void put_body(StrBuf *out, const IrModule *m, const IrBody *b)
{
    if (b == m->select)
        sb_printf(out, "\nselect %s", b->rule);
    else
        sb_printf(out, "\nbody %s %s", b->rule, b->entry);
    if (b->view != VIEW_FLAT)
        sb_printf(out, " view %s", (unsigned)b->view < IR_VIEWS ? ir_views[b->view] : "?");
    sb_puts(out, "\n");
    for (uint32_t i = 0; i < b->n; i++) put_ins(out, m, i, &b->ins[i]);
    if (b->noskip != IR_NONE) sb_printf(out, "  noskip %%%u\n", b->noskip);
    for (uint32_t i = 0; i < b->nstores; i++) {
        const IrStore *s = &b->stores[i];
        sb_puts(out, "  store ");
        put_label(out, m, s->slot);
        sb_printf(out, " %%%u", s->value);
        if (s->guard != IR_NONE) sb_printf(out, " if %%%u", s->guard);
        sb_puts(out, "\n");
    }
}

void ir_print(const IrModule *m, StrBuf *out)
{
    sb_printf(out, "dsopt-ir 1\nmodule %s compute %s", m->name, m->compute_f64 ? "f64" : "f32");
    if (m->nshared) sb_printf(out, " shared %u", m->nshared);
    sb_puts(out, "\n\n");
    for (uint32_t i = 0; i < m->nslots; i++) put_slot(out, m, i);
    if (m->select) put_body(out, m, m->select);
    for (uint32_t i = 0; i < m->nbodies; i++) put_body(out, m, &m->bodies[i]);
}
