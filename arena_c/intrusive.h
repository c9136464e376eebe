/* intrusive.h - equal chunks with nothing stored beside them: the list of the free ones runs through the chunks themselves.
 *
 * Algorithm  A free chunk's first word is the offset of the next free one, last put first. Chunks that were never taken are not on the
 *            list: they begin where the last one that was taken first ended. So making a pool touches nothing.
 * Bound      get succeeds exactly while fewer chunks are live than there are. What is put is not checked: a double put, or an
 *            address that is no chunk, breaks the list. pool.h tells both, for 5 bytes a chunk.
 * Cost       O(1), also to make one. Space: none beside the chunks.
 * Source     "Alternatives to malloc and new" (#AltDevBlogADay): its memory pool; that chunks join the list when they are first put is
 *            Kenwright, "Fast Efficient Fixed-Size Memory Pool". */
#ifndef UPFRONT_INTRUSIVE_H
#define UPFRONT_INTRUSIVE_H

#include "mirror.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The header is the caller's; the block has no other. Offsets count from the header, modulo 2^64. */
typedef struct upfront_intrusive {
    uint64_t free;   /* of the free chunk that is taken next; 0: none was put */
    uint64_t fresh;  /* of the first chunk that was never taken */
    uint64_t end;    /* past the last chunk */
    uint64_t stride; /* size of a chunk: at least 8, and a multiple of its alignment */
} upfront_intrusive;

/* As many chunks as fit; of null, or with a stride that isn't a multiple of 8, none. pre: the block is aligned as the chunks are to be and
 * doesn't hold the header. */
static inline void upfront_intrusive_init(upfront_intrusive *p, void *block, uint64_t size, uint64_t stride) {
    if (p == NULL)
        return;
    p->free = 0;
    p->fresh = p->end = upfront_distance(block, p);
    if (block == NULL || stride == 0 || stride % 8 != 0)
        return;
    p->end += size / stride * stride;
    p->stride = stride;
    upfront_mark_dead(block, p->end - p->fresh);
}

/* NULL: all chunks are live. */
static inline void *upfront_intrusive_get(upfront_intrusive *p) {
    uint64_t at = p->free;
    void *chunk;
    if (at == 0 && p->fresh == p->end)
        return NULL;
    chunk = (void *)((uintptr_t)p + (uintptr_t)(at == 0 ? p->fresh : at));
    UPFRONT_UNPOISON(chunk, sizeof(uint64_t));
    if (at == 0)
        p->fresh += p->stride;
    else
        p->free = *(uint64_t *)chunk;
    upfront_mark_live(chunk, p->stride);
    return chunk;
}

/* pre: chunk is one that is live. */
static inline void upfront_intrusive_put(upfront_intrusive *p, void *chunk) {
    upfront_mark_dead(chunk, p->stride);
    UPFRONT_UNPOISON(chunk, sizeof(uint64_t));
    *(uint64_t *)chunk = p->free;
    UPFRONT_POISON(chunk, sizeof(uint64_t));
    p->free = upfront_distance(chunk, p);
}

#ifdef __cplusplus
}
#endif
#endif
