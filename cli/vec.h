/* vec.h - recorded trajectories: what an optimizer of some library computed, step by step
 * (docs/replay.md has the format).
 *
 *     # dsopt vector 1
 *     rule adamw
 *     tensor w 2,3               p 0 w …   g 1 w …   p 1 w …   state w exp_avg 2,3 …
 */
#ifndef CLI_VEC_H
#define CLI_VEC_H
#include "frontend/frontend.h"

typedef struct VecHyper {
    const char *name;
    bool is_number;
    double number;
    const char *word; /* as written */
} VecHyper;

typedef struct VecState {
    const char *slot;
    double *values;
    int64_t n;
} VecState;

typedef struct VecTensor {
    const char *name;
    int ndim;
    int64_t shape[16];
    int64_t numel;
    double **p; /* steps + 1, p[0] initial; NULL where not recorded */
    double **g; /* steps + 1, g[0] unused; NULL: no gradient at that step */
    bool *has_g_record;
    VecState *states;
    size_t nstates, states_cap;
} VecTensor;

typedef struct VecScalar {
    const char *name;
    double value;
} VecScalar;

typedef struct Vec {
    const char *rule, *source, *dtype;
    char library[64]; /* first word of source: "torch", "timm", "lion-pytorch" */
    const char **notes;
    size_t nnotes, notes_cap;
    VecHyper *hypers;
    size_t nhypers, hypers_cap;
    int steps;
    bool is_schedule; /* no tensors, but lr_T: tensors `lr` (1-D) and `beta1` (2-D) hold them */
    VecTensor *tensors;
    size_t ntensors, tensors_cap;
    VecScalar *scalars;
    size_t nscalars, scalars_cap;
} Vec;

/* Reads the text of a file. False: `err` says "NAME:LINE: what". Every p and g of steps 1 … N must
 * be there. */
bool vec_parse(Arena *a, const char *name, const char *text, size_t len, Vec *out, StrBuf *err);
const VecHyper *vec_hyper(const Vec *v, const char *name);
/* The name under which the recorded optimizer knew a tensor: `hyper name.TENSOR`, or its own. */
const char *vec_given_name(const Vec *v, const VecTensor *t);
const VecScalar *vec_scalar(const Vec *v, const char *name);
#endif
