/* C text to machine code in memory, by libtcc.
 *
 *   in:  text "int f(int x) { return twice(x) + 1; }", symbols { {"twice", twice} }
 *   out: true; tcc_image_symbol(&image, "f") is the address of f; tcc_image_free when done
 *        or false and err "<string>:1: error: …", several lines if there are several mistakes
 *
 * The text sees nothing but itself and the symbols passed: no header, no library (an unknown name
 * is an error, not a search through the process), and no file is opened. Text is fixed once built:
 * pages are first writable, then read-execute, never both, so a variable with static storage that
 * the code writes is not possible (it would fault); constants are.
 *
 * Any thread may call; compiles take turns behind one lock of the process. Locale and
 * floating-point environment of the caller neither matter nor change. Each compile starts from a
 * pristine libtcc and its memory is an arena, so nothing leaks and no failure leaves anything
 * behind. Running out of memory is a result like any other; the process never exits and nothing is
 * printed. */
#ifndef DSOPT_CODEGEN_TCC_H
#define DSOPT_CODEGEN_TCC_H

#include "frontend/frontend.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct TccSymbol {
    const char *name;
    const void *address;
} TccSymbol;

typedef struct TccImage {
    void *memory; /* the mapping, read-execute */
    size_t size;
    TccSymbol *symbols; /* every global symbol that the text defines, sorted by name */
    size_t symbol_count;
    const Allocator *alloc; /* where `symbols` is from; NULL: malloc */
    bool out_of_memory;     /* after a failure: memory was the reason */
} TccImage;

/* Compiles `text`. All memory but the code's own pages comes from `alloc` (NULL: malloc), which
 * must live as long as the image and is called with the lock held. On false, `out` holds nothing to
 * free and `err` (if errlen > 0) says why. */
bool tcc_build_with(const Allocator *alloc, const char *text, const TccSymbol *symbols,
                    size_t symbol_count, TccImage *out, char *err, size_t errlen);

/* The same with malloc. */
bool tcc_build(const char *text, const TccSymbol *symbols, size_t symbol_count, TccImage *out,
               char *err, size_t errlen);

/* The address of a global function or object of the image, or NULL. */
void *tcc_image_symbol(const TccImage *image, const char *name);

/* Unmaps the image; addresses from it are dead then. A zeroed image is fine. */
void tcc_image_free(TccImage *image);

/* For tests: the nth allocation from now of any compile fails (1 = the next); 0 turns it off.
 * Returns how many allocations were made since the last call. */
size_t tcc_fail_allocation(size_t nth);

#endif
