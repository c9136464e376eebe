// Frogs that stay and croak in turns. The mod counts the turns in its own memory.
#include "places.h"

static int32_t turn;

void tick(int32_t now, int32_t count) {
	(void)now;
	for (int32_t i = 0; i < count; i++) {
		struct frog *f = &places[i];
		if (!f->waits)
			continue;
		f->hop = 0;
		f->rest = 10;
		f->croak = turn++ % 3 == 0;
	}
}
