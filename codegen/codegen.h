/* codegen.h - what the code generator offers to the rest: the one header of this folder that others
 * include.
 *
 *     ir.h       modules, builder, passes      plan.h     phases, scalars, kernels
 *     abi.h      what a built step is          exec.h     the interpreter
 *     backend.h  emitters and builders         reduce.h   the fixed tree
 *     compile.h  from text to a module         storage.h  "m=bf16": dtypes of what is stored
 *     view.h     dims and tiles of a tensor      hyper.h   defaults that follow others
 */
#ifndef CODEGEN_CODEGEN_H
#define CODEGEN_CODEGEN_H
#include "abi.h"
#include "backend.h"
#include "compile.h"
#include "exec.h"
#include "hyper.h"
#include "ir.h"
#include "plan.h"
#include "reduce.h"
#include "storage.h"
#include "view.h"
#endif
