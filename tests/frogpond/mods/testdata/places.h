#include "frog.h"

#define PLACES 4096

static struct frog places[PLACES];

struct frog *frogs(int32_t count) { return count <= PLACES ? places : 0; }
