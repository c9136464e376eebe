// Package libc is Lua's default allocator, which uses malloc, for comparison in tests.
package libc

// #include <stdlib.h>
//
// static void *hook(void *context, void *p, size_t old, size_t size) {
//     (void)context;
//     (void)old;
//     if (size != 0)
//         return realloc(p, size);
//     free(p);
//     return NULL;
// }
//
// static void *its_hook(void) { return (void *)hook; }
import "C"

import "unsafe"

// Allocate returns its lua_Alloc.
func Allocate() unsafe.Pointer { return C.its_hook() }
