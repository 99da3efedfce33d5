/* replay.h - running a rule over a recorded trajectory: which of our rules, under which values, and
 * what it computed.
 *
 *     replay_map(...)  adamw.torch-clip.f64.vec  ->  rule "adamw", defines clip=1, hypers lr, b1,
 * ..., states exp_avg = m, ... replay_run(...)  ->  p of every tensor after every step, states
 * after the last
 */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H
#include "runtime/dsopt.h"
#include "vec.h"

typedef struct ReplayHyper {
    const char *name;
    double value;
    bool if_present; /* set only where the compiled rule has it */
} ReplayHyper;

typedef struct ReplayState {
    const char *theirs, *ours;
    bool negated;
    bool if_present; /* compared only where the compiled rule has one of this size */
    bool global;     /* a scalar of the file and a global state of ours */
} ReplayState;

typedef struct ReplaySetup {
    const char *rule;    /* a standard library name or a path */
    const char *text;    /* of a program made for the file, which has `rule`; NULL: `rule` is one */
    const char *which;   /* of the optimizers of the file; NULL: its last */
    const char *defines; /* "clip=1;nesterov=0", as dsopt_program_options.defines */
    ReplayHyper *hypers;
    size_t nhypers, hypers_cap;
    ReplayState *states;
    size_t nstates, states_cap;
    const char *include_dirs;
    const char *backend, *isa, *compute; /* "interp"/"c"/"cc"; NULL; "f32"/"f64" */
    int threads;
} ReplaySetup;

typedef struct ReplayResult {
    double ***p;     /* [tensor][step 0 … N] */
    double ***state; /* [tensor][mapped state] after the last step; NULL where the file has no such
                        state */
    double *grad_norm; /* [step]; NaN where the rule exports none */
    double *global;    /* [mapped state], of those that are scalars of the file */
} ReplayResult;

/* Fills rule, defines, hypers and states from the shipped table. False: err says which name or
 * library is unknown. */
bool replay_map(Arena *a, const Vec *v, ReplaySetup *s, StrBuf *err);
/* --set NAME=VALUE, VALUE a number or @NAME of the file; overrides what the table gave. */
bool replay_set(Arena *a, const Vec *v, ReplaySetup *s, const char *assignment, StrBuf *err);
/* --state OURS=THEIRS of a rule of the user's own. */
bool replay_state(Arena *a, const Vec *v, ReplaySetup *s, const char *assignment, StrBuf *err);
/* The states of the file that nothing was said about are compared with states of the same name. */
void replay_same_states(Arena *a, const Vec *v, ReplaySetup *s);
/* Runs all steps through the C API. False: err has the library's message. */
bool replay_run(Arena *a, const Vec *v, const ReplaySetup *s, ReplayResult *out, StrBuf *err);
#endif
