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
// request that doesn't fit gets NULL with ENOMEM, as from any malloc; a line on standard error and
// the report name it and c_heap. Used memory can't exceed the heap, and [Trim] gives its free pages
// back at once.
//
// The package defines malloc, calloc, realloc, reallocarray, free, aligned_alloc, posix_memalign,
// memalign, valloc, pvalloc, malloc_usable_size, malloc_trim, mallopt, mallinfo, mallinfo2,
// malloc_stats and malloc_info, and glibc's names of them: __libc_malloc, __libc_calloc,
// __libc_realloc, __libc_memalign, __libc_valloc, __libc_pvalloc and __libc_free. C++'s operators
// new and delete call these. It needs Linux and cgo, and no other library; the program may be
// static.
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
// C code gets NULL, and most of it reports an error of its own. The first refusal is a line on
// standard error; so is each that doubles their number:
//
//	upfront: C's malloc is full: a request of 88 bytes, and 50265072 of 50266112 bytes of c_heap
//	are used; set c_heap to 96MiB; the caller is 0x5547b2, from Go at parse.go:57 < main.go:12
//
// It has the size of the request, the use, a size to try, and the caller: the symbol of C or its
// address, and the lines of Go above it. A library that can't bear NULL, such as one that calls
// abort, prints its own text after it. A request that is larger than the heap has another line, and
// isn't a full. Nothing is written once descriptor 2 isn't the file that it was at Open.
//
// Go's runtime and the dynamic linker can't bear NULL: a new thread, C.CString, C.CBytes, C.malloc
// and the thread-local data of a library would end the process. So they have a part of the heap of
// their own (CHeapPlan.Runtime, 64 KiB), which serves them when the rest refuses. C code never gets
// a byte of it. glibc takes 304 bytes for a thread and musl none, so a server whose C heap may be
// full while 1,000 threads start needs 512 KiB.
//
// CHeapPlan.Warn calls Plan.OnWarn before the heap is full, without a frame or a load.
//
// [CleanUp] lends the plan's reserve to a function that frees memory after a full.
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
// heap. A request of an alignment above 1 MiB is refused, with a line for the first one.
//
// C.CString is known by the Go frame that calls C, on amd64 and arm64. On other processors, and
// with a version of Go whose runtime differs, a full heap still ends the process in C.CString; Open
// writes a line that says so. There is no such line for the C.CString of a plugin.
//
// The handlers of a fork run after those of all libraries. That isn't so with musl, and for
// libraries bound to the symbol pthread_atfork@GLIBC_2.2.5: their handlers must not wait for a
// thread that allocates. The child continues with the heap, without trim and warnings.
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
