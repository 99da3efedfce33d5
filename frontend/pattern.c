/* pattern.c - patterns over names: POSIX extended regular expressions, in the "C" locale whatever the
 * host's is, without what lets a short pattern ask for much work.
 *
 *     pattern_find("embed|head", "model.lm_head.weight", why)  ->  1
 *     pattern_find("(a", NULL, why)                            ->  -1, why "Unmatched ( or \\("
 */
#define _GNU_SOURCE /* uselocale */
#include "types.h"
#include <locale.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is refused beforehand; NULL: nothing. */
static const char *refused(const char *pattern)
{
    int intervals = 0;
    for (const char *s = pattern; *s; s++) {
        if (*s == '{' && (++intervals > 1 || strtol(s + 1, NULL, 10) > 255 ||
                          strtol(s + 1 + strcspn(s + 1, ",}") + 1, NULL, 10) > 255))
            return "it has more than one interval, or one of more than 255";
        if (*s != '\\' || !s[1]) continue;
        s++;
        if (*s >= '1' && *s <= '9') return "it has a back-reference";
        if (((*s | 32) >= 'a' && (*s | 32) <= 'z') || *s == '0' || *s == '_')
            return "'\\' makes a sign stand for itself; sets are written out, [0-9], [a-z_]";
    }
    return NULL;
}

int pattern_find(const char *pattern, const char *name, char why[128])
{
    const char *no = refused(pattern);
    if (no) {
        snprintf(why, 128, "%s", no);
        return -1;
    }
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = c ? uselocale(c) : (locale_t)0;
    regex_t regex;
    int error = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
    bool made = error == 0;
    if (made && name) error = regexec(&regex, name, 0, NULL, 0);
    int found = error == 0 ? 1 : error == REG_NOMATCH && made ? 0 : -1;
    if (found < 0) regerror(error, &regex, why, 128);
    if (made) regfree(&regex);
    if (c) {
        uselocale(old);
        freelocale(c);
    }
    return found;
}
