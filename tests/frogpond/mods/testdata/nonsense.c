// A mod that chooses values out of range.
#include "places.h"

void tick(int32_t now, int32_t count) {
	(void)now;
	for (int32_t i = 0; i < count; i++) {
		places[i].heading = 16;
		places[i].hop = 255;
	}
}
