// A module that is no mod.
#include "frog.h"

EXPORTED("answer") int32_t answer(void) { return 42; }
