/* A user's program that has functions and variables of its own called like libtcc's and the C
 * library's: next, step, tok, file, ch. Trains one parameter towards 3 and says so.
 *
 *   in:  nothing
 *   out: exit status 0 if the parameter moved and no name was mixed up */
#include "dsopt.h"

#include <math.h>
#include <stdio.h>

int tok = 1, ch = 2;
int next(void);
int step(void);
int file(int x);

int next(void)
{
    return 10 * ++tok;
}

int step(void)
{
    return ch;
}

int file(int x)
{
    return x + 1;
}

int main(void)
{
    dsopt_context *ctx;
    dsopt_program *prog;
    dsopt_optimizer *opt;
    float p = 0, g = 0;
    dsopt_tensor tensor = {.size = sizeof tensor, .name = "p", .param = &p, .grad = &g};

    if (dsopt_version() != DSOPT_VERSION || dsopt_context_create(NULL, &ctx) != DSOPT_OK) return 1;
    if (dsopt_program_load(ctx, "adamw", NULL, &prog) != DSOPT_OK ||
        dsopt_optimizer_create(ctx, prog, &tensor, 1, &opt) != DSOPT_OK ||
        dsopt_set(opt, NULL, "lr", 0.1) != DSOPT_OK) {
        fprintf(stderr, "%s\n", dsopt_error_message(ctx));
        return 1;
    }
    dsopt_program_release(prog);
    for (int i = 0; i < 200; i++) {
        g = 2 * (p - 3);
        if (dsopt_accumulate(opt, 1) != DSOPT_OK || dsopt_step(opt) != DSOPT_OK) return 1;
    }
    dsopt_optimizer_destroy(opt);
    dsopt_context_destroy(ctx);
    if (fabsf(p - 3) > 0.2f || next() != 20 || step() != 2 || file(1) != 2 || tok != 2) {
        fprintf(stderr, "p %g, tok %d\n", (double)p, tok);
        return 1;
    }
    return 0;
}
