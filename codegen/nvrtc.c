/* nvrtc.h: finding libnvrtc.so.13 and driving it.
 *
 *   in:  a machine with /usr/local/cuda/lib64/libnvrtc.so.13
 *   out: nvrtc_probe() is true, nvrtc_version() says 13, 0, "/usr/local/cuda/lib64/libnvrtc.so.13"
 *
 * The prototypes below are NVRTC's documented interface; its headers are not needed to build. */
#define _GNU_SOURCE
#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NVRTC_SONAME "libnvrtc.so.13"
#define NVRTC_BUILTINS "libnvrtc-builtins.so.13.0"
#define NVRTC_OPTIONS_MAX 32

typedef struct NvrtcProgramState *NvrtcProgram;
enum { NVRTC_OK = 0, NVRTC_NO_MEMORY = 1 };

/* Name, result, parameters. */
#define NVRTC_CALLS(X)                                                                             \
    X(Version, int, (int *major, int *minor))                                                      \
    X(GetErrorString, const char *, (int code))                                                    \
    X(GetNumSupportedArchs, int, (int *count))                                                     \
    X(GetSupportedArchs, int, (int *archs))                                                        \
    X(CreateProgram, int,                                                                          \
      (NvrtcProgram * program, const char *source, const char *name, int header_count,             \
       const char *const *headers, const char *const *header_names))                               \
    X(DestroyProgram, int, (NvrtcProgram * program))                                               \
    X(CompileProgram, int, (NvrtcProgram program, int count, const char *const *options))          \
    X(GetPTXSize, int, (NvrtcProgram program, size_t * size))                                      \
    X(GetPTX, int, (NvrtcProgram program, char *text))                                             \
    X(GetCUBINSize, int, (NvrtcProgram program, size_t * size))                                    \
    X(GetCUBIN, int, (NvrtcProgram program, char *bytes))                                          \
    X(GetProgramLogSize, int, (NvrtcProgram program, size_t * size))                               \
    X(GetProgramLog, int, (NvrtcProgram program, char *text))

static struct {
#define X(name, result, parameters) result(*name) parameters;
    NVRTC_CALLS(X)
#undef X
    bool usable;
    int major, minor;
    char path[PATH_MAX];
    char why[1200];
} nvrtc;

static pthread_once_t nvrtc_once = PTHREAD_ONCE_INIT;

static __attribute__((format(printf, 1, 2))) void nvrtc_note(const char *format, ...)
{
    size_t used = strlen(nvrtc.why);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(nvrtc.why + used, sizeof nvrtc.why - used, format, arguments);
    va_end(arguments);
}

/* Takes over a library that was opened; false, with the reason noted, if it lacks something. */
static bool nvrtc_take(void *library, const char *path)
{
    Dl_info info;

#define X(name, result, parameters)                                                                \
    nvrtc.name = (result(*) parameters)dlsym(library, "nvrtc" #name);                              \
    if (!nvrtc.name) {                                                                             \
        nvrtc_note("%s has no function nvrtc" #name "; ", path);                                   \
        dlclose(library);                                                                          \
        return false;                                                                              \
    }
    NVRTC_CALLS(X)
#undef X
    if (nvrtc.Version(&nvrtc.major, &nvrtc.minor) != NVRTC_OK) {
        nvrtc_note("%s does not tell its version; ", path);
        dlclose(library);
        return false;
    }
    if (dladdr((void *)nvrtc.Version, &info) && info.dli_fname) path = info.dli_fname;
    snprintf(nvrtc.path, sizeof nvrtc.path, "%s", path);
    nvrtc.usable = true;
    return true;
}

/* Opens FOLDER/libnvrtc.so.13 or the file `folder` itself, if it is there. */
static bool nvrtc_try(const char *folder, const char *below)
{
    char path[PATH_MAX], builtins[PATH_MAX];
    struct stat status;
    char *slash;
    void *library;

    if (!folder || !*folder ||
        snprintf(path, sizeof path, "%s%s", folder, below) >= (int)sizeof path ||
        stat(path, &status) != 0)
        return false;
    if (S_ISDIR(status.st_mode)) {
        size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, "/%s", NVRTC_SONAME);
        if (stat(path, &status) != 0) return false;
    }
    /* NVRTC opens its builtins by bare name when it compiles: with the library of that name already
     * loaded from the same folder, it finds that one and no other. */
    snprintf(builtins, sizeof builtins, "%s", path);
    slash = strrchr(builtins, '/');
    if (slash && (size_t)(slash + 1 - builtins) + sizeof NVRTC_BUILTINS <= sizeof builtins) {
        strcpy(slash + 1, NVRTC_BUILTINS);
        dlopen(builtins, RTLD_NOW | RTLD_GLOBAL);
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        nvrtc_note("%s; ", dlerror());
        return false;
    }
    return nvrtc_take(library, path);
}

/* nvrtc/ next to bin/ or lib/ of the build tree that this code was loaded from. */
static bool nvrtc_try_beside(void)
{
    char folder[PATH_MAX];
    Dl_info info;

    if (!dladdr((void *)nvrtc_probe, &info) || !info.dli_fname || !realpath(info.dli_fname, folder))
        return false;
    for (int up = 0; up < 3; up++) {
        char *slash = strrchr(folder, '/');
        if (!slash) return false;
        *slash = '\0';
        if (nvrtc_try(folder, "/nvrtc")) return true;
    }
    return false;
}

static void nvrtc_open(void)
{
    const char *told = getenv("DSOPT_NVRTC");
    void *library;

    if (told && *told) {
        if (!strcmp(told, "none")) {
            nvrtc_note("PTX and cubin are made by NVRTC, which DSOPT_NVRTC=none turns off");
        } else if (!nvrtc_try(told, "")) {
            nvrtc_note("DSOPT_NVRTC is \"%s\", and " NVRTC_SONAME " cannot be opened there", told);
        }
        return;
    }
    if (nvrtc_try_beside() || nvrtc_try(getenv("CUDA_HOME"), "/lib64") ||
        nvrtc_try(getenv("CUDA_PATH"), "/lib64") || nvrtc_try("/usr/local/cuda", "/lib64") ||
        nvrtc_try("/usr/local/cuda", "/targets/x86_64-linux/lib"))
        return;
    library = dlopen(NVRTC_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (library && nvrtc_take(library, NVRTC_SONAME)) return;
    nvrtc_note(NVRTC_SONAME " not found: install a CUDA 13 toolkit, or run `./dev build`, which "
                            "fetches it, or set DSOPT_NVRTC to the folder that holds it");
}

bool nvrtc_probe(char *why, size_t size)
{
    pthread_once(&nvrtc_once, nvrtc_open);
    if (size) snprintf(why, size, "%s", nvrtc.usable ? "" : nvrtc.why);
    return nvrtc.usable;
}

bool nvrtc_version(int *major, int *minor, const char **path)
{
    if (!nvrtc_probe(NULL, 0)) return false;
    *major = nvrtc.major;
    *minor = nvrtc.minor;
    *path = nvrtc.path;
    return true;
}

/* --- Compiling ----------------------------------------------------------------------------- */

static char no_log[] = "";
static char no_memory_log[] = "out of memory";

static __attribute__((format(printf, 2, 3))) bool nvrtc_fail(NvrtcResult *result,
                                                             const char *format, ...)
{
    va_list arguments;
    char *text;
    int n;

    nvrtc_result_free(result);
    va_start(arguments, format);
    n = vasprintf(&text, format, arguments);
    va_end(arguments);
    result->log = n < 0 ? no_memory_log : text;
    result->out_of_memory = n < 0;
    return false;
}

static bool nvrtc_no_memory(NvrtcResult *result)
{
    nvrtc_result_free(result);
    result->log = no_memory_log;
    result->out_of_memory = true;
    return false;
}

/* "compute_75" or "sm_90a" as this NVRTC supports it, for this kind of output. */
static bool nvrtc_check_arch(const char *arch, NvrtcOutput output, NvrtcResult *result)
{
    bool real = !strncmp(arch, "sm_", 3), virtual = !strncmp(arch, "compute_", 8);
    int count = 0, archs[128], number = 0;
    char known[600] = "";
    size_t used = 0;

    if ((!real && !virtual) || sscanf(strchr(arch, '_') + 1, "%9d", &number) != 1)
        return nvrtc_fail(result,
                          "unknown architecture \"%s\": compute_NN or sm_NN, as in "
                          "compute_75 or sm_90",
                          arch);
    if (output == NVRTC_CUBIN && !real)
        return nvrtc_fail(result,
                          "a cubin is code for one real architecture, such as sm_%d; "
                          "\"%s\" is a virtual one",
                          number, arch);
    if (nvrtc.GetNumSupportedArchs(&count) != NVRTC_OK || count < 1 || count > 128 ||
        nvrtc.GetSupportedArchs(archs) != NVRTC_OK)
        return true; /* the compiler itself will say */
    for (int i = 0; i < count; i++) {
        if (archs[i] == number) return true;
        used += (size_t)snprintf(known + used, sizeof known - used, " %d", archs[i]);
        if (used >= sizeof known) break;
    }
    return nvrtc_fail(result, "NVRTC %d.%d does not know \"%s\"; it knows%s", nvrtc.major,
                      nvrtc.minor, arch, known);
}

/* The log of the compilation into result->log. */
static bool nvrtc_take_log(NvrtcProgram program, NvrtcResult *result)
{
    size_t size = 0;
    char *log;

    if (nvrtc.GetProgramLogSize(program, &size) != NVRTC_OK || size <= 1) return true;
    log = calloc(1, size + 1);
    if (!log) return false;
    if (nvrtc.GetProgramLog(program, log) == NVRTC_OK)
        result->log = log;
    else
        free(log);
    return true;
}

static bool nvrtc_take_output(NvrtcProgram program, NvrtcOutput output, NvrtcResult *result)
{
    size_t size = 0;
    int code =
        output == NVRTC_PTX ? nvrtc.GetPTXSize(program, &size) : nvrtc.GetCUBINSize(program, &size);

    if (code != NVRTC_OK || !size)
        return nvrtc_fail(result, "NVRTC: no output: %s", nvrtc.GetErrorString(code));
    result->data = calloc(1, size + 1);
    if (!result->data) return nvrtc_no_memory(result);
    code = output == NVRTC_PTX ? nvrtc.GetPTX(program, result->data)
                               : nvrtc.GetCUBIN(program, result->data);
    if (code != NVRTC_OK)
        return nvrtc_fail(result, "NVRTC: no output: %s", nvrtc.GetErrorString(code));
    result->size = output == NVRTC_PTX ? strlen(result->data) : size;
    return true;
}

bool nvrtc_compile(const char *source, const char *name, const char *arch, NvrtcOutput output,
                   const char *const *options, size_t option_count, NvrtcResult *result)
{
    static const char *const meaning[] = {"--fmad=false", "--prec-div=true", "--prec-sqrt=true",
                                          "--ftz=false"};
    const char *all[NVRTC_OPTIONS_MAX];
    NvrtcProgram program = NULL;
    char arch_option[64];
    int count = 0, code;
    bool done;

    *result = (NvrtcResult){NULL, 0, no_log, false};
    if (!nvrtc_probe(NULL, 0)) return nvrtc_fail(result, "%s", nvrtc.why);
    if (!nvrtc_check_arch(arch, output, result)) return false;
    snprintf(arch_option, sizeof arch_option, "--gpu-architecture=%.32s", arch);
    all[count++] = arch_option;
    for (size_t i = 0; i < sizeof meaning / sizeof *meaning; i++) all[count++] = meaning[i];
    if (option_count > (size_t)(NVRTC_OPTIONS_MAX - count))
        return nvrtc_fail(result, "more than %d options", NVRTC_OPTIONS_MAX - count);
    for (size_t i = 0; i < option_count; i++) all[count++] = options[i];

    code = nvrtc.CreateProgram(&program, source, name, 0, NULL, NULL);
    if (code != NVRTC_OK)
        return code == NVRTC_NO_MEMORY
                   ? nvrtc_no_memory(result)
                   : nvrtc_fail(result, "NVRTC: %s", nvrtc.GetErrorString(code));
    code = nvrtc.CompileProgram(program, count, all);
    if (!nvrtc_take_log(program, result) || code == NVRTC_NO_MEMORY)
        done = nvrtc_no_memory(result);
    else if (code == NVRTC_OK)
        done = nvrtc_take_output(program, output, result);
    else if (*result->log)
        done = false;
    else
        done = nvrtc_fail(result, "NVRTC: %s", nvrtc.GetErrorString(code));
    nvrtc.DestroyProgram(&program);
    return done;
}

void nvrtc_result_free(NvrtcResult *result)
{
    free(result->data);
    if (result->log != no_log && result->log != no_memory_log) free(result->log);
    *result = (NvrtcResult){NULL, 0, no_log, false};
}
