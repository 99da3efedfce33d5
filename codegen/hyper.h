/* hyper.h - what a hyperparameter is worth whose default is computed from others: one that follows
 * a schedule, `hyper wd = lr / 10`.
 *
 *     hyper lr = linear(1, 0, 4)  with lr.init_value 1, lr.end_value 0, … and s = 1  ->  0.75
 */
#ifndef CODEGEN_HYPER_H
#define CODEGEN_HYPER_H
#include "frontend/frontend.h"

/* What it is computed from. */
typedef struct HyperInputs {
    /* The value of a hyperparameter of its own, by its path; false: it has none. */
    bool (*value)(void *user, const char *path, double *out);
    void *user;
    double s; /* applied steps of the rule */
} HyperInputs;

/* The value of the hyperparameter of this path, the bits that a step computes with. False: one
 * that it needs has no value (its path in *missing), or it is made of what only a step knows
 * (*missing is NULL). Memory comes from `a`; costs one operation for each of the default. */
bool hyper_follow(Arena *a, const Rule *rule, const char *path, const HyperInputs *in, double *out,
                  const char **missing);
#endif
