/* storm.h - programs that look at the profile of C's malloc, or allocate where a walk of the stack
 * is difficult. */
#ifndef STORM_H
#define STORM_H

#include <stdint.h>

/* Threads call the library storm.cpp, open and close a copy of it (LIBRARY.copy), throw, recurse,
 * fork, take signals and use a stack down to 2300 bytes. Returns 0 or the line of a fault. */
int storm_run(const char *library, int rounds);

/* Forks a child, whose profile has to be the parent's and go on. Returns 0, or
 * the number of the check that the child failed. */
int storm_child_keeps(void);

/* Allocates `bytes` bytes in blocks of 8 to most + 8 bytes, by all functions, and returns their
 * list. The sample points are those of the seed. */
void *storm_hold(uint64_t bytes, uint64_t most, uint64_t seed);

#endif
