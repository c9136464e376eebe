// A mod that imports an unknown function.
#include "places.h"

extern int32_t secret(int32_t now);

void tick(int32_t now, int32_t count) { places[0].croak = secret(now) == count; }
