// Package malloc is C's malloc for the whole process, in memory of the plan. A program imports it,
// and its plan has the size:
//
//	import _ "github.com/upfront-mem/upfront/arena/with/malloc"
//
//	b, err := budget.Open(budget.Plan{
//		Name:  "pond",
//		CHeap: budget.CHeapPlan{Size: 64 * budget.MiB}, // "c_heap": "64MiB" in a file
//	})
//
// From Open on all C and C++ code of the process, libc included, allocates in a heap of 64 MiB. A
// request that doesn't fit gets NULL with ENOMEM, as from any malloc; the report counts it and
// names c_heap. Used memory can't exceed the heap, and [Trim] gives its free pages back at once.
//
// The package defines malloc, calloc, realloc, reallocarray, free, aligned_alloc, posix_memalign,
// memalign, valloc, pvalloc, malloc_usable_size, malloc_trim, mallopt, mallinfo, mallinfo2,
// malloc_stats and malloc_info. C++'s operators new and delete call these. It needs Linux and cgo,
// and no other library.
//
// # Before Open
//
// C code runs before main does. A static heap of 1 MiB in the program's image serves it until Open;
// blocks in it stay there, and are freed into it. Without a c_heap in the plan, and when Open
// fails, the static heap is the bound. Its first full writes a line on standard error that names
// c_heap. Another size is a flag of the build: CGO_CFLAGS='-O2 -g -DUPFRONT_MALLOC_STATIC=4194304'.
//
// The heap outlives the budget, because libc has blocks in it: after Close it stays as it is, and a
// later Open takes it with the same keys. A process has one.
//
// # Full
//
// Most C code reports NULL as an error of its own. Go's runtime doesn't: C.malloc, C.CString and a
// new thread end the process when there is no memory for them. Plan for the threads,
// some 400 bytes each. [CleanUp] lends the plan's reserve to a function that frees memory after a
// full.
//
// # Misuse
//
// A free of an address that isn't a live block, and a header that a write changed, are one line on
// standard error with the call, the address, the reason and the caller's address; then abort. Build
// with -tags checked for more: freed bytes and the bytes after a block are filled and checked, so
// that a stray write of C code is found. [Trim] does nothing in a checked build for that reason.
//
// # Limits
//
// Memory that C code maps itself (mmap), thread stacks and the code of libraries aren't in the
// heap. A request of an alignment above 1 MiB is refused. The child of a fork continues with the
// heap, but without the thread that trims.
//
// With -asan the package defines nothing, because AddressSanitizer has a malloc of its own; nor
// does it on other systems than Linux. Open then works, c_heap bounds nothing, and the report says
// so.
//
// Open fails with an error where malloc isn't the package's: in a plugin, or in a shared library
// that was loaded late. Two major versions of the package in one program don't link; the linker
// names upfront_malloc_is_linked_twice_keep_one_major_version.
//
// # C programs
//
// make install builds libupfront-malloc.so, the same malloc for programs without Go:
//
//	UPFRONT_C_HEAP=64MiB LD_PRELOAD=/usr/local/lib/libupfront-malloc.so program
package malloc
