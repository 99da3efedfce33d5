/* bench_torch.c - PyTorch as a contestant: a child process that takes steps when told to
 * (bench_torch.py).
 *
 *     "3\n" to the child  ->  it takes three steps  ->  "2715000\n" from it, nanoseconds
 */
#define _GNU_SOURCE
#include "bench.h"
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct Torch {
    pid_t pid;
    FILE *to, *from;
} Torch;

static double run_torch(Contestant *c, int n)
{
    Torch *t = c->self;
    char line[64];
    fprintf(t->to, "%d\n", n);
    fflush(t->to);
    if (!fgets(line, sizeof line, t->from)) {
        fprintf(stderr, "%s: the process ended\n", c->name);
        exit(1);
    }
    return atof(line);
}

static void close_torch(Contestant *c)
{
    Torch *t = c->self;
    if (t->to) fclose(t->to);
    if (t->from) fclose(t->from);
    if (t->pid > 0) waitpid(t->pid, NULL, 0);
    free(t);
}

static bool start(Torch *t, const char *python, char *const argv[])
{
    int in[2], out[2];
    signal(SIGPIPE, SIG_IGN); /* a child that has ended is known by its silence */
    /* A child that held another's pipe would keep it from ending when we close our side. */
    if (pipe2(in, O_CLOEXEC) != 0) return false;
    if (pipe2(out, O_CLOEXEC) != 0) return close(in[0]), close(in[1]), false;
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    bool ok = posix_spawnp(&t->pid, python, &fa, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&fa);
    close(in[0]);
    close(out[1]);
    t->to = fdopen(in[1], "w");
    t->from = fdopen(out[0], "r");
    return ok && t->to && t->from;
}

bool open_torch(Contestant *c, const char *name, const char *python, const BenchCase *bc)
{
    if (!bc->rule->torch) return false;
    Torch *t = calloc(1, sizeof *t);
    char threads[16], tensors[24], elements[24], rows[24], line[64];
    const char *mode = strcmp(name, "torch-fused") ? "foreach" : "fused";
    *c = (Contestant){.name = name, .run = run_torch, .close = close_torch, .self = t};
    snprintf(threads, sizeof threads, "%d", bc->threads);
    snprintf(tensors, sizeof tensors, "%lld", (long long)bc->tensors);
    snprintf(elements, sizeof elements, "%lld", (long long)bc->elements);
    snprintf(rows, sizeof rows, "%lld", (long long)(bc->ndim == 2 ? bc->shape[0] : 0));
    char *argv[] = {(char *)python,
                    BENCH_DIR "/bench_torch.py",
                    (char *)bc->rule->torch,
                    (char *)mode,
                    (char *)bc->dtype,
                    threads,
                    tensors,
                    elements,
                    rows,
                    NULL};
    if (t && start(t, python, argv) && fgets(line, sizeof line, t->from) &&
        !strcmp(line, "ready\n"))
        return true;
    fprintf(stderr, "%s cannot take part: '%s' has no torch, or it failed\n", name, python);
    if (t) close_torch(c);
    return false;
}
