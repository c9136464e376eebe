// What a mod of frogpond is told, and what it says. build.sh builds one.
#include <stdint.h>

// A place for a frog. The game writes all of it before each tick; where nobody waits there is
// nothing to say.
struct frog {
	int32_t x, y;   // units
	int32_t dx, dy; // the way to the nearest player
	uint8_t waits;  // 1: it chooses now, else 0
	uint8_t heading; // of a compass of 16: 0 is +x, 4 is +y
	uint8_t hop;     // for so many ticks: 16 at most
	uint8_t rest;    // after it, for so many ticks
	uint8_t croak;   // 1: it does, else 0
	uint8_t none[3];
};

#define EXPORTED(name) __attribute__((export_name(name)))

// frogs gives room for so many places, for as long as the mod is in the game; null throws it out.
EXPORTED("frogs") struct frog *frogs(int32_t count);

// tick chooses for all that wait.
EXPORTED("tick") void tick(int32_t now, int32_t count);
