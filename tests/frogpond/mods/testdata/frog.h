// The data that frogpond writes for a mod, and the functions that a mod exports. build.sh builds mods.
#include <stdint.h>

// A place for a frog. The game writes all of it before each tick. The mod writes the fields from
// heading on, if waits is 1.
struct frog {
	int32_t x, y;   // units
	int32_t dx, dy; // the way to the nearest player
	uint8_t waits;  // 1: the mod chooses for it now, else 0
	uint8_t heading; // one of 16 directions: 0 is +x, 4 is +y
	uint8_t hop;     // ticks to hop: 16 at most
	uint8_t rest;    // ticks to rest after it
	uint8_t croak;   // 1: croak, else 0
	uint8_t none[3];
};

#define EXPORTED(name) __attribute__((export_name(name)))

// frogs returns count places, which the game uses until the mod ends; null throws the mod out.
EXPORTED("frogs") struct frog *frogs(int32_t count);

// tick chooses for each frog that waits. count is that of frogs.
EXPORTED("tick") void tick(int32_t now, int32_t count);
