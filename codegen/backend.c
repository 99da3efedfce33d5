/* backend.c - the table of backends, made from backend.def.
 *
 *     backend_find("cc")    ->    &backend_cc
 *     backend_find("gpu")   ->    NULL
 */
#include "backend.h"
#include <string.h>

#define BACKEND(name) extern const Backend backend_##name;
#include "backend.def"

#define BACKEND(name) &backend_##name,
const Backend *const backends[] = {
#include "backend.def"
};
const size_t backend_count = sizeof backends / sizeof *backends;

const Backend *backend_find(const char *name)
{
    for (size_t i = 0; i < backend_count; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i];
    }
    return NULL;
}
