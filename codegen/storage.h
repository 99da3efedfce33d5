/* storage.h - how parameters, gradients and states are stored: "p=bf16,g=bf16,m=bf16" (--storage,
 * dsopt_program_options.storage).
 *
 *     storage_parse("m=bf16", m, out, err)   with adamw: p f32, g f32, m bf16, v f32
 *     storage_parse("n=bf16", m, out, err)   -> false, "storage 'n=bf16': no state 'n'; 'adamw' has
 * p, g, m, v"
 */
#ifndef CODEGEN_STORAGE_H
#define CODEGEN_STORAGE_H
#include "ir.h"

/* Fills one dtype per slot of elements or vectors (m->nelem): f32 (f64 under compute_f64, vectors
 * their own), then what `text` says (NULL or "": nothing). Names are p, g, and states over elements by name or path. Refused, with a
 * message in err: unknown names (with a suggestion), unknown or unsupported dtypes, a name given
 * twice, an empty entry. */
bool storage_parse(const char *text, const IrModule *m, DType *out, StrBuf *err);
/* Whether `text` stores gradients in 16 bits, before there is a module: then the implicit guard
 * belongs to it. */
bool storage_gradient_is_narrow(const char *text);
#endif
