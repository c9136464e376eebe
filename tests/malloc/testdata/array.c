/* Calls the functions that jemalloc lacks. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *p = malloc(10);
    strcpy(p, "frog");
    p = reallocarray(p, 1000, 100);
    if (p == NULL || strcmp(p, "frog") != 0)
        return 1;
    free(p);
    p = reallocarray(NULL, 3, 3);
    free(realloc(p, 100000));
    p = pvalloc(3);
    free(p);
    puts("array: 0");
    return 0;
}
