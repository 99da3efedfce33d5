#include "frontend/frontend.h"
#include "frontend/parse.h"
