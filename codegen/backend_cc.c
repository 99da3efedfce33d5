/* backend_cc.c - standalone C through the system's compiler: to objects and shared libraries, and
 * into this process.
 *
 * Requires: a C compiler, named by BackendOptions.cc, $CC or "cc" (a command with flags, split at
 * blanks; no shell is involved). Ensures: everything written on the way lies in a private folder
 * and is removed; on failure nothing is left and `why` holds the compiler's own messages, or says
 * what is missing; working memory is why's arena.
 *
 *     cc_compile(text, "adamw.o", false, NULL, &why)
 *     ->  cc -O3 -march=native -fno-math-errno -ffp-contract=off -fPIC -c …
 */
#include "emit_c.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { ARGS_MAX = 64 };

static const char default_flags[] = "-O3 -march=native -fno-math-errno";

/* The command and its flags: what the caller names is used as it is, else $CC or cc with the usual
 * flags. */
static const char *command_line(Arena *a, const char *cc)
{
    if (cc && *cc) return cc;
    const char *env = getenv("CC");
    return arena_printf(a, "%s %s", env && *env ? env : "cc", default_flags);
}

static size_t split(Arena *a, const char *command, char **argv, size_t n)
{
    static const char blanks[] = " \t";
    for (const char *s = command + strspn(command, blanks); *s && n + 1 < ARGS_MAX;
         s += strspn(s, blanks)) {
        size_t len = strcspn(s, blanks);
        argv[n++] = arena_strndup(a, s, len);
        s += len;
    }
    argv[n] = NULL;
    return n;
}

/* Runs argv with both outputs into the file `log`; its exit status, or -1 with errno when it could
 * not be started. */
static int run(char **argv, const char *log)
{
    posix_spawn_file_actions_t files;
    if (posix_spawn_file_actions_init(&files) != 0) return -1;
    pid_t pid;
    int rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (rc == 0) rc = posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (rc == 0) rc = posix_spawnp(&pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    if (rc != 0) {
        errno = rc;
        return -1;
    }
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f) return false;
    bool ok = fputs(text, f) >= 0;
    return fclose(f) == 0 && ok;
}

/* The first 4000 bytes of a file. */
static void append_file(StrBuf *out, const char *path)
{
    char text[4001];
    FILE *f = fopen(path, "r");
    if (!f) return;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    sb_puts(out, text);
}

typedef struct Workspace {
    Arena *a;
    const char *dir, *source, *log;
} Workspace;

static bool workspace_open(Workspace *w, Arena *a, StrBuf *why)
{
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_printf(a, "%s/dsopt-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!dir || !mkdtemp(dir)) {
        sb_printf(why, "cannot make a temporary folder in %s: %s", tmp && *tmp ? tmp : "/tmp",
                  strerror(errno));
        return false;
    }
    *w = (Workspace){a, dir, arena_printf(a, "%s/rule.c", dir), arena_printf(a, "%s/log", dir)};
    return true;
}

static void workspace_close(const Workspace *w)
{
    unlink(w->source);
    unlink(w->log);
    rmdir(w->dir);
}

/* Compiles text to `path`, which exists afterwards only on success. */
static bool compile(const Workspace *w, const char *c_text, const char *path, bool shared,
                    const char *cc, StrBuf *why)
{
    char *argv[ARGS_MAX];
    const char *command = command_line(w->a, cc);
    size_t n = split(w->a, command, argv, 0);
    if (n == 0 || n + 8 > ARGS_MAX) {
        sb_printf(why, "the compiler's command '%s' is %s", command, n ? "too long" : "empty");
        return false;
    }
    const char *rest[] = {"-ffp-contract=off", "-fPIC", shared ? "-shared" : "-c", "-o", path,
                          w->source,           NULL};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) argv[n + i] = (char *)rest[i];
    if (!write_file(w->source, c_text)) {
        sb_printf(why, "cannot write %s: %s", w->source, strerror(errno));
        return false;
    }
    int status = run(argv, w->log);
    if (status == 0) return true;
    unlink(path);
    if (status < 0 || status == 127) {
        sb_printf(why, "cannot run the C compiler '%s'%s%s; set CC to one that is installed",
                  argv[0], status < 0 ? ": " : "", status < 0 ? strerror(errno) : "");
    } else {
        sb_printf(why, "'%s' failed with status %d\n", command, status);
        append_file(why, w->log);
    }
    return false;
}

bool cc_compile(const char *c_text, const char *path, bool shared, const char *cc, StrBuf *why)
{
    Workspace w;
    if (!workspace_open(&w, why->arena, why)) return false;
    /* Beside its place and then renamed, so that what stood there stays until the new one is
     * complete. */
    char *part = arena_printf(why->arena, "%s.%ld.part", path, (long)getpid());
    bool ok = compile(&w, c_text, part, shared, cc, why);
    if (ok && rename(part, path) != 0) {
        sb_printf(why, "cannot write %s: %s", path, strerror(errno));
        unlink(part);
        ok = false;
    }
    workspace_close(&w);
    return ok;
}

static bool cc_probe(const BackendOptions *o, StrBuf *why)
{
    char *argv[ARGS_MAX];
    size_t n = split(why->arena, command_line(why->arena, o ? o->cc : NULL), argv, 0);
    bool ok = false;
    if (n == 0) {
        sb_puts(why, "the compiler's command is empty");
    } else {
        char *version[] = {argv[0], "--version", NULL};
        ok = run(version, "/dev/null") == 0;
        if (!ok)
            sb_printf(why, "no C compiler '%s' that runs; set CC to one that is installed",
                      argv[0]);
    }
    return ok;
}

static bool cc_emit(const Plan *p, const Variant *v, const BackendOptions *o, StrBuf *out)
{
    (void)o;
    return emit_standalone_c(&p, 1, v->storage, out, NULL);
}

/* What a built text leaves in the process. */
typedef struct CcImage {
    void *library;
    void *functions[]; /* kernels, or programs and then commit programs */
} CcImage;

/* Compiles and opens a text; resolves `n` names. NULL: text in why. */
static CcImage *load(Arena *a, const char *c_text, const char *const *names, size_t n,
                     const BackendOptions *o, StrBuf *why)
{
    Workspace w;
    if (!workspace_open(&w, a, why)) return NULL;
    const char *path = arena_printf(a, "%s/rule.so", w.dir);
    CcImage *image = calloc(1, sizeof *image + n * sizeof(void *));
    bool ok = image && compile(&w, c_text, path, true, o ? o->cc : NULL, why);
    if (ok) {
        image->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!image->library) sb_printf(why, "cannot open what the compiler made: %s", dlerror());
        unlink(path);
        ok = image->library != NULL;
    }
    for (size_t i = 0; ok && i < n; i++) {
        image->functions[i] = dlsym(image->library, names[i]);
        if (!image->functions[i]) {
            sb_printf(why, "the compiler's output lacks %s", names[i]);
            ok = false;
        }
    }
    workspace_close(&w);
    if (!ok && image) {
        if (image->library) dlclose(image->library);
        free(image);
        image = NULL;
    }
    return image;
}

static void cc_free_image(void *image)
{
    CcImage *x = image;
    if (!x) return;
    dlclose(x->library);
    free(x);
}

static bool cc_build_variant(const Plan *p, const Variant *v, const BackendOptions *o,
                             BuiltVariant *out, StrBuf *why)
{
    Arena *a = why->arena;
    StrBuf text = {.arena = a};
    emit_c_kernels(&text, p, v);
    const char **names = ARENA_ARRAY(a, const char *, v->nkernels + 1);
    for (uint32_t i = 0; i < v->nkernels; i++) {
        StrBuf name = {.arena = a};
        sb_printf(&name, "%s_", emit_prefix(a, p));
        emit_kernel_name(&name, v, &v->kernels[i]);
        names[i] = name.text;
    }
    CcImage *image = load(a, text.text, names, v->nkernels, o, why);
    if (image) *out = (BuiltVariant){(DsKernelFn *)image->functions, 0, image};
    return image != NULL;
}

static bool cc_build_scalars(const Plan *p, const BackendOptions *o, BuiltScalars *out, StrBuf *why)
{
    Arena *a = why->arena;
    StrBuf text = {.arena = a};
    emit_c_scalars(&text, p);
    uint32_t n;
    const char **names =
        emit_all_names(a, p, arena_printf(a, "%s_", emit_prefix(a, p)), &n);
    CcImage *image = load(a, text.text, names, n, o, why);
    if (image) *out = emit_all_built(p, image->functions, image);
    return image != NULL;
}

const Backend backend_cc = {
    .name = "cc",
    .what = "standalone C through the system's compiler",
    .probe = cc_probe,
    .emit = cc_emit,
    .build_variant = cc_build_variant,
    .build_scalars = cc_build_scalars,
    .free_image = cc_free_image,
};
