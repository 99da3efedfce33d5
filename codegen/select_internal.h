/* select_internal.h - what covering (select.c) hands to ordering and placing (select_place.c). */
#ifndef CODEGEN_SELECT_INTERNAL_H
#define CODEGEN_SELECT_INTERNAL_H
#include "select.h"

typedef struct SelectVal {
    bool cheap;        /* may be computed again by every operator that uses it */
    bool again;        /* is */
    uint8_t how;       /* 0: not of this kernel, else 1 + ValueHow */
    bool needed;       /* read by a call, a store or a reduction */
    bool covered;      /* inside an operator: has no place of its own */
    uint32_t elem;     /* loads: element slot */
    uint32_t uses;     /* by instructions, stores and reductions of the kernel */
    TileCall *made_by; /* NULL for values in memory */
} SelectVal;

typedef struct Select {
    Arena *arena;
    const Plan *p;
    const Variant *v;
    Kernel *k;      /* a copy: stores of values that a choice stands for, resolved */
    IrBody *b;      /* a copy: operands resolved the same way */
    SelectVal *val; /* per instruction */
    TileCall **calls;
    size_t ncalls, calls_cap;
    TileProgram *out;
} Select;

/* Stands for the element slot of values that are given as tiles. */
#define SELECT_VECTOR UINT32_MAX
static inline bool select_is_memory(const SelectVal *v)
{
    return v->how && v->how != 1 + VAL_COMPUTE && !v->made_by;
}
static inline DType select_storage(const Select *s, uint32_t elem)
{
    return elem < s->p->m->nelem ? s->v->storage[elem] : DT_F32;
}
TileCall *select_call(Select *s, TileCallKind kind);
/* Orders the calls, decides where each value lives, and adds what moves values into storage. */
void select_place(Select *s);
#endif
