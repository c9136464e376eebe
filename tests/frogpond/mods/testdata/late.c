// A mod that works for a second, and then reads out of bounds.
#include "places.h"

void tick(int32_t now, int32_t count) {
	(void)count;
	if (now == 35)
		places[0].croak = *(volatile uint8_t *)0x7fffffff;
}
