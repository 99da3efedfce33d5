/* output.c - the files of a compilation, written all together or not at all.
 *
 *     output_add(s, "adamw.h", h.text, h.len);
 *     output_add(s, "adamw.c", c.text, c.len);
 *     output_commit(s)      writes NAME.XXXXXX beside each, then renames all; refuses to write over
 *                           a file that was read
 */
#include "cli.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return false;
        p += w;
        n -= (size_t)w;
    }
    return true;
}

/* Devices and pipes (/dev/stdout, /dev/null) cannot be replaced by a rename: they are written in
 * place. */
static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static bool cannot_write(const char *path, int error)
{
    cli_error("%s: cannot be written: %s", path, strerror(error));
    return false;
}

/* Writes one file under its temporary name, or a device under its own. */
static bool write_part(Session *s, Output *o)
{
    bool special = is_special(o->path);
    char *name = arena_printf(s->arena, special ? "%s" : "%s.XXXXXX", o->path);
    int fd = special ? open(name, O_WRONLY | O_CLOEXEC) : mkstemp(name);
    if (fd < 0) return cannot_write(o->path, errno);
    if (!special) o->part = name;
    struct stat old;
    mode_t mask = umask(0), mode = 0666 & ~mask;
    umask(mask);
    if (s->in_place && stat(o->path, &old) == 0) mode = old.st_mode & 07777;
    bool ok = write_all(fd, o->data, o->len) && (special || fchmod(fd, mode) == 0);
    int error = errno;
    if (close(fd) != 0 && ok) ok = false, error = errno;
    return ok || cannot_write(o->path, error);
}

static bool may_write(const Session *s, const char *path)
{
    struct stat out, in;
    if (stat(path, &out) != 0) return true; /* what cannot be is said where it is written */
    if (S_ISDIR(out.st_mode)) return cannot_write(path, EISDIR);
    if (access(path, W_OK) != 0) return cannot_write(path, errno); /* a rename would not ask */
    for (size_t i = 0; S_ISREG(out.st_mode) && !s->in_place && i < s->sources.nfiles; i++) {
        const char *name = s->sources.files[i].name;
        if (name[0] == '<' || stat(name, &in) != 0) continue;
        if (in.st_dev != out.st_dev || in.st_ino != out.st_ino) continue;
        cli_error("%s: would be written over '%s', which was read", path, name);
        return false;
    }
    return true;
}

void output_add(Session *s, const char *path, const void *data, size_t len)
{
    Output o = {.path = path, .data = data ? data : "", .len = len};
    ARENA_PUSH(s->arena, s->outputs, s->noutputs, s->cap_outputs, o);
}

void output_add_made(Session *s, const char *path, const char *part)
{
    Output o = {.path = path, .part = part};
    ARENA_PUSH(s->arena, s->outputs, s->noutputs, s->cap_outputs, o);
}

bool output_commit(Session *s)
{
    bool ok = true;
    for (size_t i = 0; ok && i < s->noutputs; i++) ok = may_write(s, s->outputs[i].path);
    for (size_t i = 0; ok && i < s->noutputs; i++)
        if (!s->outputs[i].part) ok = write_part(s, &s->outputs[i]);
    for (size_t i = 0; i < s->noutputs; i++) {
        Output *o = &s->outputs[i];
        if (!o->part) continue;
        if (ok && rename(o->part, o->path) != 0) ok = cannot_write(o->path, errno);
        if (!ok) unlink(o->part);
    }
    return ok;
}
