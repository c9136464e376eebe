/* storm.h - programs that look at the profile of C's malloc, or allocate where a walk of the stack
 * is difficult. */
#ifndef STORM_H
#define STORM_H

#include <stdint.h>

/* Keeps 2000 blocks of 1000 bytes from a thread of C, and returns their list. */
void *storm_thread(void);

/* Calls storm_back, which is in Go. */
void *storm_around(int n);
void *storm_back(int n);

/* Lets alpha_keep of the first library keep blocks, closes the library, and lets other_keep of the
 * second one keep some. Returns 0 if that function has the address of the other, -1 if it has not,
 * or the line of a fault. */
int storm_closes(const char *first, const char *second);

/* Threads call the library storm.cpp, open and close a copy of it (LIBRARY.copy), throw, recurse,
 * fork, take signals, use a stack down to 2300 bytes, and free the blocks of others. Each of three
 * threads does 500 * rounds calls of work_share. Returns 0 or the line of a fault. */
int storm_run(const char *library, int rounds);

/* Fills a table of samples until it loses some, frees some, and fills it again. The table stays the
 * profile's. Call it in a heap without a profile. Returns 0, or the line of a fault. */
int storm_table(void);

/* Lets samples of arenas end and come back with snapshots, in a table of its own. Call it as
 * storm_table. */
int storm_moments(void);

/* Forks a child, whose profile has to be the parent's and go on. Returns 0, or
 * the number of the check that the child failed. */
int storm_child_keeps(void);

/* Allocates `bytes` bytes in blocks of 8 to most + 8 bytes, by all functions, and returns their
 * list. The sample points are those of the seed. */
void *storm_hold(uint64_t bytes, uint64_t most, uint64_t seed);

#endif
