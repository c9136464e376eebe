#include "core.h"

#include <string.h>

static upfront_scope open_in(upfront_scope s) { return upfront_scope_open(s.arena); }

void core_objects(upfront_scope s, void **out, int n) {
    upfront_scope in = open_in(s);
    int i;
    for (i = 0; i < n; i++) {
        uint64_t *p = (uint64_t *)upfront_scope_alloc(in, 64, 8);
        memset(p, 0, 64);
        p[0] = (uint64_t)i;
        out[i] = p;
    }
    upfront_scope_close(in);
}

void core_mixed(upfront_scope s, void **out, const uint32_t *size_align, int n, int zeroed) {
    upfront_scope in = open_in(s);
    int i;
    for (i = 0; i < n; i++) {
        size_t size = size_align[i] & 0xffff;
        char *p = (char *)upfront_scope_alloc(in, size, size_align[i] >> 16);
        if (zeroed)
            memset(p, 0, size);
        p[0] = (char)i;
        out[i] = p;
    }
    upfront_scope_close(in);
}

upfront_pool *core_pool(upfront_scope s, size_t size, int n) {
    return upfront_scope_pool(s, size, 8, (uint64_t)n);
}

/* size is a constant where it is inlined. */
static inline __attribute__((always_inline)) void *take(upfront_pool *p, uint64_t gen, int i, size_t size) {
    uint64_t *chunk = (uint64_t *)upfront_pool_get(p, gen);
    memset(chunk, 0, size);
    chunk[1] = (uint64_t)i;
    return chunk;
}

static inline __attribute__((always_inline)) void lifo(upfront_pool *p, void **tmp, int depth, int n, size_t size) {
    uint64_t gen = p->gen;
    int r, i;
    for (r = 0; r < n; r += depth) {
        for (i = 0; i < depth; i++)
            tmp[i] = take(p, gen, i, size);
        for (i = depth - 1; i >= 0; i--)
            upfront_pool_put(p, gen, tmp[i]);
    }
}

static inline __attribute__((always_inline)) void shuffled(upfront_pool *p, void **tmp, const uint32_t *order, int n, size_t size) {
    uint64_t gen = p->gen;
    int i;
    for (i = 0; i < n; i++)
        tmp[i] = take(p, gen, i, size);
    for (i = 0; i < n; i++)
        upfront_pool_put(p, gen, tmp[order[i]]);
}

/* zeroed is the bytes of a chunk that are zeroed: 0 or 64. */
void core_pool_lifo(upfront_pool *p, void **tmp, int depth, int n, size_t zeroed) {
    if (zeroed == 64)
        lifo(p, tmp, depth, n, 64);
    else
        lifo(p, tmp, depth, n, 0);
}

void core_pool_random(upfront_pool *p, void **tmp, const uint32_t *order, int n, size_t zeroed) {
    if (zeroed == 64)
        shuffled(p, tmp, order, n, 64);
    else
        shuffled(p, tmp, order, n, 0);
}

static volatile uint64_t finalized;
static void finalize(void *arg) { finalized += (uintptr_t)arg; }
static const upfront_finalizer volatile finalizer = finalize; /* who runs it doesn't know it */

uint64_t core_scopes4(upfront_scope s, int objects, int finalizers) {
    upfront_scope in[4];
    int d, i;
    for (d = 0; d < 4; d++) {
        in[d] = open_in(s);
        for (i = 0; i < objects; i++) {
            volatile uint64_t *p = (uint64_t *)upfront_scope_alloc(in[d], 64, 8);
            memset((void *)(uintptr_t)p, 0, 64);
            p[0] = (uint64_t)i;
        }
        for (i = 0; i < finalizers; i++)
            upfront_scope_defer(in[d], finalizer, (void *)(uintptr_t)1);
    }
    for (d = 3; d >= 0; d--)
        upfront_scope_close(in[d]);
    return finalized;
}
