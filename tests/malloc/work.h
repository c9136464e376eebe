/* work.h - programs that use malloc and its family, and check each answer. They know no allocator,
 * so they run over any. Each returns 0, or the line of work.c that found a fault. */
#ifndef WORK_H
#define WORK_H

#include <stdint.h>

/* `threads` threads make and free blocks of up to `most` bytes in a common table, so that most
 * blocks are freed by another thread. `steps` is the number of all calls. */
int work_stress(int threads, uint64_t steps, uint64_t most, uint64_t seed);

/* The calls of one thread of work_stress. Any number of threads may share the table. */
int work_share(uint64_t steps, uint64_t most, uint64_t seed);

/* Frees the blocks of the table. Other threads, and the parent of a fork, may have made them. */
int work_share_end(void);

/* Random calls of each function, compared with a plain model of the live blocks. */
int work_model(uint64_t steps, uint64_t most, uint64_t seed);

/* Arguments at the edges of each function. */
int work_edges(void);

/* Forks `children` processes while other threads are in malloc; each child allocates. */
int work_fork(int children);

/* Fills the heap while descriptor 2 is another file, which the program has opened. */
int work_closed(const char *file);

/* Allocates and frees blocks that fronts keep. */
int work_park(uint64_t blocks, uint64_t size);

/* Loads the library late.c, which has thread-local data, in a running thread, fills the heap, and
 * has the thread touch the data for the first time. */
int work_late(const char *library);

/* Starts the thread of the library handlers.c, if the process has it. Returns whether it has. */
int work_handlers(void);

/* Allocates blocks of `size` bytes until NULL, and frees all. Sets *blocks. */
int work_fill(uint64_t size, uint64_t *blocks);

/* Allocates blocks of sizes that halve from 64 KiB to 1 byte until NULL, and returns their list. */
void *work_take_all(void);
void work_free_all(void *list);

/* Makes pairs of a block that a front may have and one that it may not, of a page together, and
 * frees both kinds. */
int work_split(uint64_t pairs);

/* Returns the address of work_fill. */
uintptr_t work_fill_address(void);

/* Allocates `blocks` blocks of `size` bytes, fills them, frees them, and starts as many threads. */
int work_spread(uint64_t blocks, uint64_t size);

/* Allocates a block of each multiple of 16 bytes from `least` to `most`, and frees them. */
int work_sizes(uint64_t least, uint64_t most);

/* Runs the model in the last `room` bytes of the heap: blocks of 16 bytes fill the rest. */
int work_short(uint64_t room);

/* dlopen, getaddrinfo, getline, localtime: libc's own use of malloc. */
int work_libc(void);

/* One misuse by its name: it should not return. */
int work_misuse(const char *name);

#endif
