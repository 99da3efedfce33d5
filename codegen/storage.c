/* storage.c - how parameters, gradients and states are stored; see storage.h. */
#include "storage.h"
#include <string.h>

enum { ENTRY_MAX = 128 };

static const Slot *element_slot(const IrModule *m, uint32_t elem)
{
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        bool over_elements = s->kind == SLOT_PARAM || s->kind == SLOT_GRAD ||
                             (s->kind == SLOT_STATE && rate_is_element(s->rate));
        if (over_elements && s->index == elem) return s;
    }
    return NULL;
}

static int find_element(const IrModule *m, const char *name)
{
    for (uint32_t e = 0; e < m->nelem; e++) {
        const Slot *s = element_slot(m, e);
        if (s && (!strcmp(s->name, name) || (s->path && !strcmp(s->path, name)))) return (int)e;
    }
    return -1;
}

static void name_those_there(const IrModule *m, const char *wrong, StrBuf *err)
{
    const char *names[64];
    size_t n = 0;
    sb_printf(err, "; '%s' has ", m->name);
    for (uint32_t e = 0; e < m->nelem; e++) {
        const Slot *s = element_slot(m, e);
        if (!s) continue;
        sb_printf(err, "%s%s", e ? ", " : "", s->name);
        if (n < 64) names[n++] = s->name;
    }
    const char *near = diag_suggest(wrong, names, n);
    if (near) sb_printf(err, "; did you mean '%s'?", near);
}

/* One "name=dtype"; `set` marks the element slots already given. */
static bool parse_entry(char *entry, const IrModule *m, DType *out, bool *set, StrBuf *err)
{
    char *eq = strchr(entry, '=');
    if (!eq || eq == entry || !eq[1]) {
        sb_printf(err, "storage '%s': expected NAME=DTYPE, as in 'm=bf16'", entry);
        return false;
    }
    *eq = 0;
    DType d;
    bool known = dtype_parse(eq + 1, &d) && d != DT_BOOL && (d != DT_F64 || m->compute_f64);
    if (!known) {
        sb_printf(err, "storage '%s=%s': no dtype '%s'; there are f32, f16 and bf16", entry, eq + 1,
                  eq + 1);
        return false;
    }
    int e = find_element(m, entry);
    if (e < 0) {
        sb_printf(err, "storage '%s=%s': no state '%s'", entry, eq + 1, entry);
        name_those_there(m, entry, err);
        return false;
    }
    if (set[e]) {
        sb_printf(err, "storage: '%s' is given twice", entry);
        return false;
    }
    set[e] = true;
    out[e] = d;
    return true;
}

bool storage_parse(const char *text, const IrModule *m, DType *out, StrBuf *err)
{
    bool *set = ARENA_ARRAY(err->arena, bool, m->nelem);
    for (uint32_t e = 0; e < m->nelem; e++) out[e] = m->compute_f64 ? DT_F64 : DT_F32;
    for (uint32_t i = 0; i < m->nslots; i++) {
        const Slot *s = &m->slots[i];
        if (s->kind == SLOT_STATE && rate_is_vector(s->rate)) out[s->index] = s->dtype;
    }
    if (!text || !*text) return true;
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",");
        if (n >= ENTRY_MAX) {
            sb_printf(err, "storage '%.20s...': an entry of more than %d characters", p, ENTRY_MAX);
            return false;
        }
        char entry[ENTRY_MAX];
        memcpy(entry, p, n);
        entry[n] = 0;
        if (!parse_entry(entry, m, out, set, err)) return false;
        p += n;
        if (!*p) return true;
    }
}

bool storage_gradient_is_narrow(const char *text)
{
    for (const char *p = text; p && *p; p++) {
        if (!strncmp(p, "g=bf16", 6) || !strncmp(p, "g=f16", 5)) return true;
        p = strchr(p, ',');
        if (!p) break;
    }
    return false;
}
