#include "sites.h"

#if defined(UPFRONT_MEMDEBUG) || defined(UPFRONT_MEMTRACE)

/* `count` is written last: who reads it finds the texts below it whole. */
static struct {
    uint32_t count, used;
    uint32_t at[UPFRONT_SITES];
    char text[UPFRONT_SITES_BYTES];
} sites;

uint32_t upfront_text_add(const char *text, uint64_t size) {
    uint32_t id = sites.count + 1, at = sites.used;
    if (id == UPFRONT_SITES || size >= UPFRONT_SITES_BYTES - at) return 0;
    if (size != 0) memcpy(sites.text + at, text, (size_t)size); /* no bytes may have no address */
    sites.text[at + size] = 0;
    sites.at[id] = at;
    sites.used = at + (uint32_t)size + 1;
    __atomic_store_n(&sites.count, id, __ATOMIC_RELEASE);
    return id;
}

const char *upfront_text(uint32_t id) {
    return id != 0 && id <= __atomic_load_n(&sites.count, __ATOMIC_ACQUIRE) ? sites.text + sites.at[id] : "";
}

#endif
