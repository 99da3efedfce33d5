/* emit_scalar.c - text of scalar programs and of single operators, for C, tile C (libtcc) and CUDA.
 *
 * Requires: a plan of a verified module. Ensures: text that libtcc, gcc, clang and NVRTC read
 * alike: hexadecimal literals of at most 13 digits, one local per value, no operator on two
 * literals. Infinities and NaN are written as calls of ds_from and ds_fromf, and functions as
 * ds_<name> (f64) and ds_<name>f (f32); the emitter that uses this text brings or declares them.
 *
 *     %30:f64.tensor = powi %11 %29    ->    const double v11 = group[1];
 *                                            const double v30 = ds_powc(v11, v29);
 */
#include "emit.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const EmitStyle emit_style_c = {"float", "double", "int", ""};
const char *const emit_blocks[LEVEL_COUNT] = {"global", "group", "cls", "tensor"};
const char *const emit_row_blocks[LEVEL_COUNT] = {"t->u[0]", "t->u[1]", "t->u[2]", "t->u[3]"};
const char *const emit_level_names[LEVEL_COUNT] = {"global", "group", "class", "tensor"};

const char *emit_type(const EmitStyle *s, DType d)
{
    return d == DT_BOOL ? s->boolean : d == DT_F32 ? s->f32 : s->f64;
}

/* Digits by hand: printf writes the radix character of the host's locale. */
static void put_finite(StrBuf *out, double v, const char *suffix)
{
    if (fabs(v) < 1e9 && v == (double)(long)v) {
        sb_printf(out, "%s%ld.0%s", signbit(v) ? "-" : "", labs((long)v), suffix);
        return;
    }
    int exp;
    double f = frexp(fabs(v), &exp) * 2 - 1;
    sb_printf(out, "%s0x1%s", v < 0 ? "-" : "", f != 0 ? "." : "");
    while (f != 0) {
        int digit = (int)(f *= 16);
        sb_printf(out, "%x", (unsigned)digit);
        f -= digit;
    }
    sb_printf(out, "p%+d%s", exp - 1, suffix);
}

void emit_literal(StrBuf *out, double v, DType d)
{
    if (d == DT_BOOL)
        sb_puts(out, v != 0 ? "1" : "0");
    else if (isnan(v))
        sb_puts(out, d == DT_F32 ? "ds_fromf(0x7fc00000u)" : "ds_from(0x7ff8000000000000ull)");
    else if (isinf(v) && d == DT_F32)
        sb_puts(out, v > 0 ? "ds_fromf(0x7f800000u)" : "ds_fromf(0xff800000u)");
    else if (isinf(v))
        sb_puts(out, v > 0 ? "ds_from(0x7ff0000000000000ull)" : "ds_from(0xfff0000000000000ull)");
    else
        put_finite(out, v, d == DT_F32 ? "f" : "");
}

void emit_decimal(StrBuf *out, double v)
{
    char text[32];
    sb_puts(out, number_format(text, v));
}

void emit_identifier(StrBuf *out, const char *s)
{
    if (isdigit((unsigned char)*s)) sb_puts(out, "_");
    for (; *s; s++) {
        char c = isalnum((unsigned char)*s) ? *s : '_';
        sb_putn(out, &c, 1);
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

void emit_op_text(StrBuf *out, Op op, bool f64, const char *a, const char *b, const char *c)
{
    const char *operand[3] = {a, b, c};
    for (const char *s = op_info[op].expr; *s;) {
        if (!is_word(*s)) {
            sb_putn(out, s++, 1);
            continue;
        }
        const char *end = s;
        while (is_word(*end)) end++;
        size_t n = (size_t)(end - s);
        if (n == 1 && *s >= 'a' && *s <= 'c') {
            sb_puts(out, operand[*s - 'a']);
        } else if (n == 2 && strncmp(s, "FN", 2) == 0 && *end == '(') {
            const char *name = end + 1;
            end = strchr(name, ')');
            sb_printf(out, "ds_%.*s%s", (int)(end - name), name, f64 ? "" : "f");
            end++;
        } else {
            sb_putn(out, s, n);
        }
        s = end;
    }
}

/* A comparison's own dtype is bool: the operands' says which functions it calls. */
static bool operands_are_f64(const IrBody *b, const Ins *ins)
{
    for (int k = 0; k < ir_arity(ins); k++) {
        if (b->ins[ins->arg[k]].dtype == DT_F64) return true;
    }
    return false;
}

const char *emit_power_name(const IrBody *b, const Ins *ins)
{
    static const struct {
        double exponent;
        const char *name;
    } table[] = {{2, "ds_powf_2"},
                 {3, "ds_powf_3"},
                 {-1, "ds_powf_m1"},
                 {0.5, "ds_powf_half"},
                 {0.25, "ds_powf_quarter"}};
    if (ins->op != IR_POW || ins->dtype != DT_F32 || b->ins[ins->arg[1]].op != IR_CONST)
        return NULL;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (b->ins[ins->arg[1]].lit.num == table[i].exponent) return table[i].name;
    }
    return NULL;
}

void emit_ins_text(StrBuf *out, const IrBody *b, const Ins *ins)
{
    const char *power = emit_power_name(b, ins);
    if (power) {
        sb_printf(out, "%s(v%u)", power, (unsigned)ins->arg[0]);
        return;
    }
    char name[3][16] = {"", "", ""};
    for (int k = 0; k < ir_arity(ins); k++)
        snprintf(name[k], sizeof name[k], "v%u", (unsigned)ins->arg[k]);
    emit_op_text(out, (Op)ins->op, operands_are_f64(b, ins), name[0], name[1], name[2]);
}

void emit_scalar_read(StrBuf *out, const Plan *p, uint32_t body, IrRef ref, const EmitStyle *s,
                      const char *const *blocks)
{
    const Ins *ins = &p->m->bodies[body].ins[ref];
    const char *type = emit_type(s, (DType)ins->dtype);
    sb_printf(out, "const %s v%u = ", type, (unsigned)ref);
    if (ins->op == IR_CONST) {
        emit_literal(out, ins->lit.num, (DType)ins->dtype);
    } else {
        Place at = plan_place(p, body, ref);
        const char *cast = ins->dtype == DT_F32 ? type : NULL;
        sb_printf(out, "%s%s%s%s[%u]%s", cast ? "(" : "", cast ? cast : "", cast ? ")" : "",
                  blocks[at.level], (unsigned)at.index, ins->dtype == DT_BOOL ? " != 0" : "");
    }
    sb_puts(out, ";");
}

/* State of one program's emission: which values are locals already. */
typedef struct Locals {
    StrBuf *out;
    const Plan *p;
    uint32_t body;
    const EmitStyle *style;
    const char *const *blocks;
    uint8_t *known;
} Locals;

static void need(Locals *l, IrRef ref)
{
    if (ref == IR_NONE || l->known[ref]) return;
    l->known[ref] = 1;
    sb_puts(l->out, "    ");
    emit_scalar_read(l->out, l->p, l->body, ref, l->style, l->blocks);
    sb_puts(l->out, "\n");
}

static void compute(Locals *l, IrRef ref)
{
    const IrBody *b = &l->p->m->bodies[l->body];
    const Ins *ins = &b->ins[ref];
    for (int k = 0; k < ir_arity(ins); k++) need(l, ins->arg[k]);
    l->known[ref] = 1;
    const char *type = emit_type(l->style, (DType)ins->dtype);
    sb_printf(l->out, "    const %s v%u = ", type, (unsigned)ref);
    if (ins->op == IR_ROUND) {
        sb_printf(l->out, "(%s)v%u", type, (unsigned)ins->arg[0]);
    } else if (ins->op ==
               IR_CONST) { /* the argument of a reduction that gathers scalars has a place */
        emit_literal(l->out, ins->lit.num, (DType)ins->dtype);
    } else {
        emit_ins_text(l->out, b, ins);
    }
    sb_puts(l->out, ";\n");
    Place at = l->p->place[l->body][ref];
    if (at.level != LEVEL_NONE)
        sb_printf(l->out, "    %s[%u] = %s(v%u);\n", l->blocks[at.level], (unsigned)at.index,
                  l->style->raw, (unsigned)ref);
}

static void commit(Locals *l, const IrStore *st)
{
    const Slot *slot = &l->p->m->slots[st->slot];
    sb_puts(l->out, "    ");
    if (st->guard != IR_NONE) sb_printf(l->out, "if (v%u) ", (unsigned)st->guard);
    sb_printf(l->out, "%s[%u] = %s(%sv%u);\n", l->blocks[slot->level], (unsigned)slot->index,
              l->style->raw, slot->storage == DT_F32 ? "(float)" : "", (unsigned)st->value);
}

void emit_scalar_statements(StrBuf *out, const Plan *p, const ScalarProgram *sp, const EmitStyle *s,
                            const char *const *blocks)
{
    const IrBody *b = &p->m->bodies[sp->body];
    Locals l = {out, p, sp->body, s, blocks, ARENA_ARRAY(out->arena, uint8_t, b->n + 1)};
    if (!l.known) return;
    for (uint32_t i = 0; i < sp->nvals; i++) compute(&l, sp->vals[i]);
    /* Everything is read before anything is stored: stores may overwrite slots that others read. */
    for (uint32_t i = 0; i < sp->nstores; i++) {
        need(&l, b->stores[sp->stores[i]].value);
        need(&l, b->stores[sp->stores[i]].guard);
    }
    for (uint32_t i = 0; i < sp->nstores; i++) commit(&l, &b->stores[sp->stores[i]]);
}

void emit_scalar_function(StrBuf *out, const Plan *p, const ScalarProgram *sp, const char *head)
{
    sb_printf(out, "%s(double *global, double *group, double *cls, double *tensor)\n{\n", head);
    sb_puts(out, "    (void)global, (void)group, (void)cls, (void)tensor;\n");
    emit_scalar_statements(out, p, sp, &emit_style_c, emit_blocks);
    sb_puts(out, "}\n\n");
}
