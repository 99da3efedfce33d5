/* minimal.c - the smallest program: fits y = a x + b to points of y = 3 x + 1 with AdamW, and
 * prints a and b.
 *
 *   in:  nothing
 *   out: "a 3.000 b 1.000"
 */
#include "dsopt.h"
#include <stdio.h>

int main(void)
{
    float p[2] = {0, 0}, g[2];
    dsopt_context *ctx;
    dsopt_program *prog;
    dsopt_optimizer *opt;
    dsopt_tensor line = {.size = sizeof line,
                         .name = "line",
                         .ndim = 1,
                         .shape = (int64_t[]){2},
                         .param = p,
                         .grad = g};

    if (dsopt_context_create(NULL, &ctx))
        return fprintf(stderr, "%s\n", dsopt_error_message(NULL)), 1;
    if (dsopt_program_load(ctx, "adamw", NULL, &prog) ||
        dsopt_optimizer_create(ctx, prog, &line, 1, &opt) || dsopt_set(opt, NULL, "lr", 0.05) ||
        dsopt_set(opt, NULL, "wd", 0))
        return fprintf(stderr, "%s\n", dsopt_error_message(ctx)), 1;
    for (int i = 0; i < 1000; i++) {
        g[0] = g[1] = 0;
        for (float x = -1; x <= 1; x += 0.25f) {
            float error = p[0] * x + p[1] - (3 * x + 1);
            g[0] += error * x;
            g[1] += error;
        }
        if (dsopt_accumulate(opt, 1) || dsopt_step(opt))
            return fprintf(stderr, "%s\n", dsopt_error_message(ctx)), 1;
    }
    printf("a %.3f b %.3f\n", (double)p[0], (double)p[1]);
    dsopt_optimizer_destroy(opt);
    dsopt_program_release(prog);
    dsopt_context_destroy(ctx);
    return 0;
}
