/* unistd.h - the part that the checked build uses: POSIX's prototypes, darwin's numbers. */
#include <stddef.h>
#define STDERR_FILENO 2
#define _SC_PAGESIZE 29
typedef long ssize_t;
ssize_t write(int file, const void *from, size_t size);
long sysconf(int name);
