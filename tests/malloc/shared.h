/* shared.h - a C library that takes functions of malloc's kind (arena.CFunctions). */
#ifndef SHARED_H
#define SHARED_H

#include <stdint.h>
#include <stddef.h>

typedef struct shared_functions {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *p, size_t size);
    void (*free)(void *context, void *p);
} shared_functions;

/* Allocates `bytes` bytes in blocks of 8 to most + 8 bytes, by all functions, and returns their
 * list. */
void *shared_hold(shared_functions f, uint64_t bytes, uint64_t most, uint64_t seed);
void shared_free_all(shared_functions f, void *list);

/* Allocates one block, below a function of this name. */
void *shared_keep(shared_functions f, uint64_t size);

/* Threads allocate, resize and free blocks, also those of each other, and free all at their end. */
int shared_threads(shared_functions f, int threads, uint64_t steps);

#endif
