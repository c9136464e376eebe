/* sys/mman.h - the part that the checked build uses: POSIX's prototype, darwin's numbers. */
#include <stddef.h>
#define PROT_NONE 0
#define PROT_READ 1
#define PROT_WRITE 2
int mprotect(void *from, size_t size, int access);
