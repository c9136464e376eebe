/* string.h - what the core takes of it, to compile for darwin without its SDK: the prototypes of the C standard. */
#include <stddef.h>
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *p, int byte, size_t size);
void *memchr(const void *p, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
