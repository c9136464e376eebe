/* A library that keeps blocks. NAME is its function. */
#include <stdlib.h>

static void *kept;

void *NAME(int blocks);
void *NAME(int blocks) {
    void *volatile p = NULL;
    while (blocks-- > 0) {
        p = malloc(1000);
        *(void **)p = kept;
        kept = p;
    }
    return p;
}
