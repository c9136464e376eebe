// A mod that grows its memory without end.
#include "places.h"

static volatile uint32_t pages;

void tick(int32_t now, int32_t count) {
	(void)now, (void)count;
	for (;;)
		pages = __builtin_wasm_memory_grow(0, 1);
}
