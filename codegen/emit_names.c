/* emit_names.c - what things are called in emitted text: identifiers that are safe in C, C++ and
 * CUDA, short where they can be, and never the same for two things.
 *
 * emit_names makes all of a plan's at once (in time linear in their number); the others look up.
 *
 *     state m, hyper clip.eps, hyper clip_eps, state double  ->  m, clip_eps, clip_eps_2, x4_double
 */
#include "emit.h"
#include <ctype.h>
#include <string.h>

/* ---- words that are taken -------------------------------------------------------------------- */

/* Words of C and C++ that a rule could use as a name, macros that compilers and common headers
 * define, and names that emitted functions use for themselves. */
static const char *const keywords[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "assert", "auto", "bitand", "bitor", "bool",
    "break", "case", "catch", "char", "class", "co_await", "co_return", "co_yield", "compl",
    "complex", "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue",
    "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "errno",
    "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "I", "i386", "if",
    "imaginary", "inline", "int", "linux", "long", "mutable", "namespace", "new", "noexcept", "not",
    "not_eq", "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "restrict", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "stderr", "stdin", "stdout", "struct", "switch", "template",
    "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof",
    "typeof_unqual", "union", "unix", "unsigned", "using", "virtual", "void", "volatile", "while",
    "xor", "xor_eq"
};
static const char *const locals[] = {
    "args",   "begin",   "block",   "blockDim",  "blockIdx", "c",        "chunk",  "chunks",
    "cls",    "cols",    "count",   "dim3",      "end",      "first",    "global", "gridDim",
    "group",  "hyper",   "i",       "j",         "k",        "lane",     "lanes",  "left",
    "main",   "ndim",    "numel",   "out",       "partial",  "ptr",      "r",      "root",
    "row",    "rows",    "scratch", "sqrt",      "sqrtf",    "state",    "stride", "t",
    "tensor", "tensors", "thread",  "threadIdx", "tree",     "warpSize", "width",  "x",
};

static bool is_in(const char *const *list, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(list[i], s) == 0) return true;
    }
    return false;
}

/* Whether C, C++ or a header may have taken the name: words, macros (LR, INT64_MAX), what is
 * reserved to implementations (_Bool, uint64_t). */
static bool is_taken(const char *s)
{
    size_t n = strlen(s), upper = 0;
    for (const char *c = s; *c; c++) {
        if (islower((unsigned char)*c)) break;
        upper += isupper((unsigned char)*c) != 0;
        if (!c[1] && upper > 1) return true;
    }
    return *s == '_' || (n > 2 && strcmp(s + n - 2, "_t") == 0) ||
           is_in(keywords, sizeof keywords / sizeof *keywords, s);
}

/* A word and a number: v12 (a local), x3_m (a name that emit_elem_name makes), float4 and the like
 * of CUDA. */
static bool is_word_number(const char *s)
{
    static const char *const words[] = {"v",         "char",  "uchar", "short", "ushort",
                                        "int",       "uint",  "long",  "ulong", "longlong",
                                        "ulonglong", "float", "double"};
    size_t n = strcspn(s, "0123456789"), digits = strspn(s + n, "0123456789");
    if (!digits) return false;
    if (n == 1 && *s == 'x' && s[n + digits] == '_') return true;
    for (size_t i = 0; !s[n + digits] && i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && strncmp(s, words[i], n) == 0) return true;
    return false;
}

/* Whether it can be the name of a variable in an emitted function. */
static bool is_safe(const char *s)
{
    if (is_taken(s) || is_in(locals, sizeof locals / sizeof *locals, s)) return false;
    if (is_word_number(s) || strncmp(s, "ds_", 3) == 0 || strncmp(s, "Ds", 2) == 0 ||
        !isalpha((unsigned char)*s))
        return false;
    for (; *s; s++) {
        if (!isalnum((unsigned char)*s) && *s != '_') return false;
    }
    return true;
}

/* ---- all of a plan's ------------------------------------------------------------------------- */

typedef struct Taken {
    const char *name;
    uint32_t count; /* how often it was asked for */
} Taken;

typedef struct Names { /* open addressing, at most half full */
    Taken *at;
    uint32_t mask;
} Names;

/* For n names, and as many that are numbered. */
static Names names_for(Arena *a, uint32_t n)
{
    Names t = {.mask = 15};
    while (t.mask < 4 * n) t.mask = 2 * t.mask + 1;
    t.at = ARENA_ARRAY(a, Taken, t.mask + 1);
    return t;
}

static Taken *names_entry(const Names *t, const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (const char *c = name; *c; c++) h = (h ^ (unsigned char)*c) * 16777619u;
    while (t->at[h & t->mask].name && strcmp(t->at[h & t->mask].name, name) != 0) h++;
    return &t->at[h & t->mask];
}

static const char **elem_names(Arena *a, const IrModule *m)
{
    const char **names = ARENA_ARRAY(a, const char *, m->nelem + 1);
    Names t = names_for(a, m->nelem);
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        if (rate_is_scalar(s->rate) || s->index >= m->nelem || names[s->index]) continue;
        Taken *e = names_entry(&t, names[s->index] = s->name);
        e->name = s->name;
        e->count++;
    }
    for (uint32_t e = 0; e < m->nelem; e++) {
        if (is_safe(names[e]) && names_entry(&t, names[e])->count == 1) continue;
        StrBuf s = {.arena = a};
        sb_printf(&s, "x%u_", (unsigned)e);
        emit_identifier(&s, names[e]);
        names[e] = s.text;
    }
    return names;
}

static const char *slot_identifier(Arena *a, const Slot *s)
{
    bool text = s->kind == SLOT_PROP; /* its path is what is asked of names */
    const char *dot = s->path && !text ? strchr(s->path, '.') : NULL;
    StrBuf name = {.arena = a};
    emit_identifier(&name, dot ? dot + 1 : s->name);
    return is_taken(name.text) ? arena_printf(a, "%s_", name.text) : name.text;
}

/* Different paths may become one identifier (a state and its export, clip.eps and clip_eps): later
 * ones are numbered. */
static const char **slot_names(Arena *a, const IrModule *m)
{
    const char **names = ARENA_ARRAY(a, const char *, m->nslots + 1);
    Names t = names_for(a, m->nslots);
    for (uint32_t i = 0; i < m->nslots; i++) {
        if (!rate_is_scalar(m->slots[i].rate) || m->slots[i].kind == SLOT_RESULT) continue;
        const char *name = slot_identifier(a, &m->slots[i]);
        Taken *plain = names_entry(&t, name), *e = plain;
        while (e->name) { /* the numbers before plain->count are taken */
            name = arena_printf(a, "%s_%u", plain->name, (unsigned)++plain->count);
            e = names_entry(&t, name);
        }
        *e = (Taken){name, 1};
        names[i] = name;
    }
    return names;
}

void emit_names(Plan *p)
{
    p->elem_names = elem_names(p->arena, p->m);
    p->slot_names = slot_names(p->arena, p->m);
}

const char *emit_elem_name(Arena *a, const Plan *p, uint32_t elem)
{
    if (elem < p->m->nelem) return p->elem_names[elem];
    return arena_printf(a, "ds_temp%u", (unsigned)(elem - p->m->nelem));
}

const char *emit_slot_name(Arena *a, const Plan *p, uint32_t slot)
{
    const char *name = p->slot_names[slot];
    return name ? name : slot_identifier(a, &p->m->slots[slot]); /* never stands beside others */
}
