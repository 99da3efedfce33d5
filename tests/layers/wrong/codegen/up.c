#include "../runtime/dsopt.h"
