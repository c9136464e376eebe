/* sys/mman.h - what the checked build takes of it: POSIX's prototype, darwin's numbers. */
#include <stddef.h>
#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
int mprotect(void *from, size_t size, int access);
