/* lower.h - what the files of the lowering share: lower.c (statements), lower_expr.c (values),
 * lower_slots.c (what outlives a step, initial values), lower_shape.c (bodies and the choice among
 * them). Others use ir.h. */
#ifndef CODEGEN_LOWER_H
#define CODEGEN_LOWER_H
#include "ir.h"

#define WRITTEN_ALWAYS IR_NONE
#define WRITTEN_NEVER (IR_NONE - 1)

/* A value that a branch replaced, to go back to. */
typedef struct Undo {
    uint32_t sym;
    IrRef value, written;
} Undo;

typedef struct Change {
    Symbol *sym;
    IrRef value, written;
} Change;

typedef struct Lower {
    Arena *arena;
    const Rule *rule;
    const Entry *at; /* the entry point; NULL: the step */
    bool guard_gradients;
    IrModule *m;
    IrBuilder b;
    /* slots */
    uint32_t *slot; /* by Symbol.id */
    uint32_t t_slot, s_slot;
    uint32_t init_slot, group_init_slot; /* whether initial values were taken; IR_NONE: not kept */
    uint32_t skip_slot, arm_slot, block_slot; /* IR_NONE: none yet */
    /* one body */
    const ShapePath *path;
    View view;        /* what rows and columns have been so far */
    const Stmt *dims; /* the arm of `shape` around that names them */
    int arms;         /* of `shape` around */
    bool selecting;   /* the body is the module's `select` */
    bool begun;       /* the rule or transform around has given its states their first values */
    /* by Symbol.id */
    Symbol **syms;
    IrRef *value;        /* now */
    IrRef *entry;        /* at the entry of the step; of g: see entry_g */
    IrRef *written;      /* under which guard it was written so far */
    IrRef *begun_under;  /* a state: under which it has its first value at this step */
    const Change **mate; /* in the other branch, while two are joined */
    Undo *undo;
    size_t nundo, undo_cap;
    /* by Expr.id: values of the statement being lowered */
    IrRef *memo;
    uint32_t *memo_of;
    uint8_t *reads_g; /* whether a value depends on the gradient: 0 not known yet, 1 no, 2 yes */
    uint8_t *reduced; /* how often in this body, of what all tensors or a group feed */
    uint32_t statement;
    IrRef entry_g; /* as it entered the rule or transform */
    IrRef guard;   /* conditions around; IR_NONE: none */
    IrRef first_t, first_g, first_group, first_s; /* nothing was applied yet: of what does not read g,
                                                     of what does, of the group, of all */
    bool overflow;
} Lower;

static inline IrRef lower_op2(Lower *l, Op op, IrRef x, IrRef y)
{
    return ir_op(&l->b, op, x, y, IR_NONE);
}

static inline IrRef lower_op1(Lower *l, Op op, IrRef x)
{
    return ir_op(&l->b, op, x, IR_NONE, IR_NONE);
}

static inline const Ins *lower_ins(const Lower *l, IrRef x)
{
    return &l->b.b->ins[x];
}

/* lower_slots.c */
void lower_add_slots(Lower *l);
IrRef lower_property(Lower *l, const char *name);
/* A slot that `select` sets: the arm of a tensor, or its size of blocks. */
uint32_t lower_selected_slot(Lower *l, SlotKind kind, const char *name);
IrRef lower_name_test(Lower *l, const NameTest *t);
/* Whether a value, or what a block writes, depends on the gradient. */
bool lower_reads_g(const Lower *l, const Expr *e);
bool lower_block_reads_g(const Lower *l, const Block *b);
bool lower_is_init(const Stmt *s); /* `init { }` */
/* The condition under which a state takes its initial value; IR_NONE: never, in this entry point. */
IrRef lower_first(Lower *l, const Symbol *s);
/* What a state's slot holds after a store of the value. */
IrRef lower_as_stored(Lower *l, const Symbol *s, IrRef value);

/* lower_expr.c */
IrRef lower_choose(Lower *l, IrRef c, IrRef a, IrRef b); /* c ? a : b, of truth values too */
IrRef lower_expr(Lower *l, const Expr *e);
IrRef lower_value(Lower *l, const Expr *e); /* of a statement of its own */
/* Rows and columns are spoken of: the body is seen as the arm around says. */
void lower_see(Lower *l, Rate rate);

/* lower.c: a block into the empty body of l->b, up to its stores */
void lower_body(Lower *l, const Block *block);
#endif
