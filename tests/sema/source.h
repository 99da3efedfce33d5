/* Files of a test folder, and the comments that direct a test: "#! define: lr=0.1".
 *
 *   in:  program_read(&a, "golden/lion.opt", &p)
 *   out: p.text, p.options (defines, rule, compute_f64), p.guard */
#ifndef TESTS_SEMA_SOURCE_H
#define TESTS_SEMA_SOURCE_H
#include "codegen/codegen.h"
#include "tests/check.h"
#include <dirent.h>
#include <string.h>

typedef struct Program {
    const char *name;
    char *text;
    FrontendOptions options;
    const char *entry; /* NULL: the step */
    bool guard, raw;
} Program;

static inline char *file_read(Arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    StrBuf text = {.arena = a};
    char buf[4096];
    size_t n;
    sb_puts(&text, "");
    while ((n = fread(buf, 1, sizeof buf, f)) > 0) sb_putn(&text, buf, n);
    fclose(f);
    return text.text;
}

/* The rest of a "#! key: value" comment line that begins at `line`; NULL: another line. */
static inline char *directive(Arena *a, const char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, "#! ", 3) != 0 || strncmp(line + 3, key, n) != 0 || line[3 + n] != ':')
        return NULL;
    line += 4 + n;
    while (*line == ' ') line++;
    return arena_strndup(a, line, strcspn(line, "\n"));
}

static inline void program_read(Arena *a, const char *path, Program *p)
{
    static const char *const folders[] = {DSOPT_SOURCE_DIR "/stdlib"};
    const char **defines = ARENA_ARRAY(a, const char *, 16);
    *p = (Program){.name = path, .text = file_read(a, path)};
    REQUIRE(p->text, "cannot read %s", path);
    p->options.defines = defines;
    p->options.include_dirs = folders;
    p->options.ninclude_dirs = 1;
    for (const char *line = p->text; line;
         line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        char *value;
        if ((value = directive(a, line, "define"))) defines[p->options.ndefines++] = value;
        if ((value = directive(a, line, "rule"))) p->options.rule = value;
        if ((value = directive(a, line, "entry"))) p->options.entry = value;
        if ((value = directive(a, line, "compute")))
            p->options.compute_f64 = strcmp(value, "f64") == 0;
        if (directive(a, line, "guard")) p->guard = true;
        if ((value = directive(a, line, "entry"))) p->entry = value, p->raw = true;
        if (directive(a, line, "raw")) p->raw = true; /* as lowered, before the passes */
    }
}

/* How a file's first optimizer is asked for: a wrapper around AdamW; NULL: as it is. */
static inline const char *wrapper_rule(Arena *a, const char *text)
{
    const char *name = strstr(text, "\noptimizer ");
    if (!name) return NULL;
    name += strlen("\noptimizer ");
    size_t n = strcspn(name, " ({");
    if (strncmp(name + n, "(inner: rule", 12) != 0) return NULL;
    return arena_printf(a, "%.*s(adamw(lr = 0.01))", (int)n, name);
}

/* Calls `each` for every NAME.opt of a folder. */
static inline int programs_each(const char *folder, void (*each)(const char *path))
{
    struct dirent **list;
    int n = scandir(folder, &list, NULL, alphasort), count = 0;
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(list[i]->d_name, '.');
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, list[i]->d_name);
        if (dot && strcmp(dot, ".opt") == 0) each(path), count++;
        free(list[i]);
    }
    if (n >= 0) free(list);
    return count;
}
#endif
