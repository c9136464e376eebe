// A mod that starts with more memory than its limit.
#include "places.h"

static volatile uint8_t vast[64 << 20];

void tick(int32_t now, int32_t count) { vast[now] = (uint8_t)count; }
