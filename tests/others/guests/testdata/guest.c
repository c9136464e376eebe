// A guest that hashes the body of a request. Its room grows and never shrinks, as the heaps of most
// guests.
#include <stdint.h>

#define EXPORTED(name) __attribute__((export_name(name)))

enum { page = 65536 };

extern uint8_t __heap_base;

// room returns the address of size bytes, or 0 if the memory can't grow so far.
EXPORTED("room") uint32_t room(uint32_t size) {
	uint32_t first = (uint32_t)&__heap_base;
	uint64_t need = (uint64_t)first + size, has = (uint64_t)__builtin_wasm_memory_size(0) * page;
	if (need > has && __builtin_wasm_memory_grow(0, (need - has + page - 1) / page) == (uintptr_t)-1)
		return 0;
	return first;
}

// hash returns FNV-1a of the bytes.
EXPORTED("hash") uint32_t hash(const uint8_t *bytes, uint32_t size) {
	uint32_t h = 2166136261u;
	for (uint32_t i = 0; i < size; i++)
		h = (h ^ bytes[i]) * 16777619u;
	return h;
}
