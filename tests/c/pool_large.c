/* pool_large.c - a block for more chunks than the reciprocal can count. Only touched pages take
 * memory. */
#if defined(__linux__)
#define _DEFAULT_SOURCE 1
#include <sys/mman.h>
#endif

#include "check.h"

/* AddressSanitizer would fill a gigabyte of shadow. */
#if defined(__linux__) && !defined(UPFRONT_ASAN) && UINTPTR_MAX > UINT32_MAX

void test_pool_large(void) {
    const uint64_t chunk = UINT64_C(3) << 30, block = UINT64_C(10) << 30;
    void *at = mmap(NULL, (size_t)block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    upfront_pool *p;
    if (at == MAP_FAILED)
        return; /* the machine lacks that many addresses */
    CHECK_EQ(upfront_pool_size(chunk, 8, 1, 0), 8 + chunk);
    CHECK_EQ(upfront_pool_size(chunk, 8, 2, 0), 0);
    p = upfront_pool_make(at, block, chunk, 8, 0);
    CHECK(p != NULL); /* three would fit, one can be counted, none was made */
    CHECK_EQ(p->count, 1);
    CHECK_EQ(p->free, p->count);
    munmap(at, (size_t)block);
}

#else

void test_pool_large(void) {}

#endif
