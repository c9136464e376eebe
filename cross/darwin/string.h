/* string.h - the part that the core uses, to compile for darwin without its SDK: the C
 * standard's. */
#include <stddef.h>
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *p, int byte, size_t size);
void *memchr(const void *p, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
