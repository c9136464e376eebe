// A mod that wants all the memory that there is, and more.
#include "places.h"

static volatile uint32_t pages;

void tick(int32_t now, int32_t count) {
	(void)now, (void)count;
	for (;;)
		pages = __builtin_wasm_memory_grow(0, 1);
}
