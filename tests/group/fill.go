//go:build linux && cgo

package group

// #cgo CFLAGS: -fno-builtin-malloc -fno-builtin-free
// #include <stddef.h>
// #include <stdlib.h>
// #include <string.h>
// #include <sys/mman.h>
//
// // Allocates and writes blocks until malloc refuses one, then frees all. Returns their bytes.
// static size_t fill(size_t each) {
//     struct block { struct block *next; } *all = NULL, *b;
//     size_t bytes = 0;
//     while ((b = malloc(each)) != NULL) {
//         memset(b, 1, each);
//         b->next = all;
//         all = b;
//         bytes += each;
//     }
//     while ((b = all) != NULL) {
//         all = b->next;
//         free(b);
//     }
//     return bytes;
// }
//
// // Maps and writes bytes that no plan has.
// static int exceed(size_t size) {
//     void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
//     return p != MAP_FAILED && memset(p, 1, size) != NULL;
// }
import "C"

// fillC fills C's malloc with blocks of each bytes, frees them, and returns their bytes.
func fillC(each int) uint64 { return uint64(C.fill(C.size_t(each))) }

// exceed writes size bytes outside of any plan.
func exceed(size uint64) bool { return C.exceed(C.size_t(size)) != 0 }
