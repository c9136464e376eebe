#ifndef PEERS_FLOW_H
#define PEERS_FLOW_H
#include <stdint.h>

/* A runner of events of a graph's blob (scope/flow) has a word, a stack, the most steps of an
 * event, and one instance. */
typedef struct { uint32_t word; uint32_t steps; struct { uint32_t next, end; } *stack; uint64_t touched; } cf_runner;
typedef struct { uint32_t count, size; uint32_t *generations; uint8_t *states; char *chunks; } cf_instances;

void cf_fire(cf_runner *r, const char *blob, const cf_instances *p, uint64_t handle, uint64_t key, int n);
#endif
