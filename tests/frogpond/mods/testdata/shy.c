// Frogs that hop away from players, and croak now and then.
#include "places.h"

static int32_t size(int32_t n) { return n < 0 ? -n : n; }

// toward returns the direction of a way: one of eight.
static uint8_t toward(int32_t dx, int32_t dy) {
	if (size(dx) > 2 * size(dy))
		return dx > 0 ? 0 : 8;
	if (size(dy) > 2 * size(dx))
		return dy > 0 ? 4 : 12;
	if (dy > 0)
		return dx > 0 ? 2 : 6;
	return dx > 0 ? 14 : 10;
}

void tick(int32_t now, int32_t count) {
	for (int32_t i = 0; i < count; i++) {
		struct frog *f = &places[i];
		if (!f->waits)
			continue;
		f->heading = toward(-f->dx, -f->dy);
		f->hop = 8;
		f->rest = 4;
		f->croak = (now + i) % 16 == 0;
	}
}
