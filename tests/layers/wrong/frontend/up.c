#include "codegen/ir.h"
