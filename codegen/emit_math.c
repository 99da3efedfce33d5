/* emit_math.c - the part of ds_math.h that an emitted text needs.
 *
 * Requires: the text of ds_math.h, cut by lines "//@ section NAME needs A B"; a section defines
 * functions by lines that start with DS_FN. Ensures: every section that defines a function named in
 * `text`, or that such a section needs, once and in the order of the file, so that definitions come
 * before their uses.
 *
 *     "m[i] = ds_bf16_from_f32(v8);"    ->    sections base, conv
 */
#include "emit.h"
#include "frontend/embed.h"
#include <ctype.h>

enum { SECTION_MAX = 64 };

typedef struct Section {
    const char *name, *needs, *body, *end; /* name and needs end at their line's end */
    size_t name_len, needs_len;
    bool wanted;
} Section;

static const char *line_end(const char *s)
{
    const char *e = strchr(s, '\n');
    return e ? e : s + strlen(s);
}

static size_t word_len(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
    return n;
}

static size_t cut_sections(Section *out)
{
    static const char mark[] = "//@ section ";
    size_t n = 0;
    for (const char *s = strstr(ds_math_text, mark); s && n < SECTION_MAX;) {
        Section *x = &out[n++];
        const char *eol = line_end(s);
        x->name = s + sizeof mark - 1;
        x->name_len = word_len(x->name);
        x->needs = x->name + x->name_len;
        static const char needs[] = " needs";
        if (strncmp(x->needs, needs, sizeof needs - 1) == 0) x->needs += sizeof needs - 1;
        x->needs_len = (size_t)(eol - x->needs);
        x->body = *eol ? eol + 1 : eol;
        x->wanted = false;
        s = strstr(x->body, mark);
        x->end = s ? s : x->body + strlen(x->body);
    }
    return n;
}

static bool names_function(const char *text, const char *name, size_t len)
{
    for (const char *s = strstr(text, "ds_"); s; s = strstr(s + 1, "ds_")) {
        bool starts = s == text || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
        if (starts && word_len(s) == len && strncmp(s, name, len) == 0) return true;
    }
    return false;
}

/* Whether the section defines a function that the text names. */
static bool defines_named(const Section *x, const char *text)
{
    for (const char *s = x->body; s < x->end; s = *line_end(s) ? line_end(s) + 1 : x->end) {
        const char *paren = memchr(s, '(', (size_t)(line_end(s) - s));
        if (strncmp(s, "DS_FN ", 6) != 0 || !paren) continue;
        const char *name = paren;
        while (name > s && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
        if (names_function(text, name, (size_t)(paren - name))) return true;
    }
    return false;
}

static void want(Section *sections, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        Section *x = &sections[i];
        if (x->name_len != len || strncmp(x->name, name, len) != 0 || x->wanted) continue;
        x->wanted = true;
        for (const char *s = x->needs; s < x->needs + x->needs_len;) {
            size_t w = word_len(s);
            if (w) want(sections, n, s, w);
            s += w ? w : 1;
        }
    }
}

/* Functions of rows of ops.def that ds_math.h has no need to write: exact, or one IEEE operation.
 */
static const struct {
    const char *name, *text;
} operations[] = {
    {"ds_absf", "DS_FN float ds_absf(float x) { return ds_fromf(ds_bitsf(x) & 0x7fffffffu); }\n"},
    {"ds_abs", "DS_FN double ds_abs(double x) { return ds_from(ds_bits(x) & ~DS_SIGN); }\n"},
    {"ds_sqrtf", "DS_FN float ds_sqrtf(float x) { return DS_SQRTF(x); }\n"},
    {"ds_sqrt", "DS_FN double ds_sqrt(double x) { return DS_SQRT(x); }\n"},
    {"ds_fmaf", "DS_FN float ds_fmaf(float a, float b, float c) { return DS_FMAF(a, b, c); }\n"},
    {"ds_fma", "DS_FN double ds_fma(double a, double b, double c) { return DS_FMA(a, b, c); }\n"},
    {"ds_powcf", "DS_FN float ds_powcf(float x, float y) { return ds_powf(x, y); }\n"},
};
static const char fma_text[] = "#ifndef DS_FMA\n"
                               "#define DS_FMA(a, b, c) __builtin_fma(a, b, c)\n"
                               "#define DS_FMAF(a, b, c) __builtin_fmaf(a, b, c)\n"
                               "#endif\n";

static void put_operations(StrBuf *out, const char *text)
{
    bool fma = false;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (!names_function(text, operations[i].name, strlen(operations[i].name))) continue;
        if (strstr(operations[i].text, "DS_FMA") && !fma) {
            sb_puts(out, fma_text);
            fma = true;
        }
        sb_puts(out, operations[i].text);
    }
    sb_puts(out, "\n");
}

void emit_math_sections(StrBuf *out, const char *text, const char *after_base)
{
    Section sections[SECTION_MAX];
    StrBuf rows = {.arena = out->arena}, all = {.arena = out->arena};
    put_operations(&rows, text);
    sb_printf(&all, "%s%s", text, rows.text);
    text = all.text;
    size_t n = cut_sections(sections);
    want(sections, n, "base", 4);
    for (size_t i = 0; i < n; i++) {
        if (defines_named(&sections[i], text))
            want(sections, n, sections[i].name, sections[i].name_len);
    }
    for (size_t i = 0; i < n; i++) {
        const Section *x = &sections[i];
        bool base = x->name_len == 4 && strncmp(x->name, "base", 4) == 0;
        if (x->wanted) sb_putn(out, x->body, (size_t)(x->end - x->body));
        if (base && after_base) sb_puts(out, after_base);
    }
    sb_puts(out, rows.text);
}
