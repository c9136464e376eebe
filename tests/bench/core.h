/* core.h - the works as loops over the library's own core: what Go has to be compared with when the
 * core itself changes. Each call is one time of a work. s is an open scope of Go's (Scope.C); what a
 * call opens in it, it closes. */
#ifndef BENCH_CORE_H
#define BENCH_CORE_H

#include "upfront.h"

void core_objects(upfront_scope s, void **out, int n);
void core_mixed(upfront_scope s, void **out, const uint32_t *size_align, int n, int zeroed);
upfront_pool *core_pool(upfront_scope s, size_t size, int n);
void core_pool_lifo(upfront_pool *p, void **tmp, int depth, int n, size_t zeroed);
void core_pool_random(upfront_pool *p, void **tmp, const uint32_t *order, int n, size_t zeroed);
uint64_t core_scopes4(upfront_scope s, int objects, int finalizers);

#endif
