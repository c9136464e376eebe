// A mod that imports what the game doesn't have.
#include "places.h"

extern int32_t secret(int32_t now);

void tick(int32_t now, int32_t count) { places[0].croak = secret(now) == count; }
