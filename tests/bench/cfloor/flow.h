#ifndef PEERS_FLOW_H
#define PEERS_FLOW_H
#include <stdint.h>

/* What runs events of a graph's blob (scope/flow): its word, its stack and how many steps an event may take. */
typedef struct { uint32_t word; uint32_t steps; struct { uint32_t next, end; } *stack; uint64_t touched; } cf_runner;

void cf_fire(cf_runner *r, const char *blob, char *data, uint64_t key, int n);
#endif
