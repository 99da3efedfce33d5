/* frontend.h - what the frontend offers to the rest: the one header of this folder that others
 * include.
 *
 *     arena.h  memory by lifetime        diag.h  sources, places, messages
 *     types.h  dtypes, rates, op table   ast.h   syntax tree, checked rules, entry points
 */
#ifndef FRONTEND_FRONTEND_H
#define FRONTEND_FRONTEND_H
#include "arena.h"
#include "ast.h"
#include "diag.h"
#include "types.h"
#endif
