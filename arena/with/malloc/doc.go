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
// request that doesn't fit gets NULL with ENOMEM, as from any malloc. At the first one a line on
// standard error names the request and c_heap; so does the report. Used memory can't exceed the
// heap, and [Trim] returns the heap's free pages to the system at once.
//
// The package defines malloc, calloc, realloc, reallocarray, free, aligned_alloc, posix_memalign,
// memalign, valloc, pvalloc, malloc_usable_size, malloc_trim, mallopt, mallinfo, mallinfo2,
// malloc_stats and malloc_info, and glibc's names of them: __libc_malloc, __libc_calloc,
// __libc_realloc, __libc_memalign, __libc_valloc, __libc_pvalloc and __libc_free. C++'s operators
// new and delete call these functions. The package needs Linux and cgo, and no other library. The
// program may be linked statically.
//
// # Before Open
//
// C code runs before main does. Until Open it uses a static heap of 1 MiB in the program's image.
// Blocks of the static heap stay there until they are freed. If the plan has no c_heap, or Open
// fails, C code has only the static heap. Its first refusal writes a line on standard error that
// names c_heap. A flag of the build sets another size: CGO_CFLAGS='-O2 -g
// -DUPFRONT_MALLOC_STATIC=4194304'.
//
// The heap outlives the budget, because libc has blocks in it. After Close it stays as it is, and a
// later Open with the same keys uses it again. A process has one such heap.
//
// # Full
//
// C code gets NULL, and most C code then reports an error of its own. The first refusal writes a
// line on standard error, and so does each refusal that doubles their number:
//
//	upfront: C's malloc is full: a request of 88 bytes, and 50265072 of 50266112 bytes of c_heap
//	are used; set c_heap to 96MiB; the caller is 0x5547b2, from Go at parse.go:57 < main.go:12;
//	the profile's largest users: parse.go:57 (41185KiB), main.go:31 (6144KiB)
//
// The line has the size of the request, the use, a size to try, the caller, and the three largest
// users of the heap. A caller is C's symbol or address, and the lines of Go that called C. A user
// is a line of Go, or a caller in C. A library that can't bear NULL, such as one that
// calls abort, prints its own text after the line. The first request that is larger than the heap
// has another line, if it is for 256 GiB or less; such requests aren't counted as full. The package
// writes no line once descriptor 2 isn't the file that it was at Open.
//
// Go's runtime and the dynamic linker can't bear NULL: a refused request of a new thread,
// C.CString, C.CBytes, C.malloc or the thread-local data of a library would end the process. So a
// part of the heap is only for these requests (CHeapPlan.Runtime, 64 KiB). It serves them when the
// rest of the heap is full. glibc takes 304 bytes for a thread and musl none. So a server whose C
// heap may be full while 1,000 threads start needs 512 KiB.
//
// With CHeapPlan.Warn the package calls Plan.OnWarn before the heap is full, without waiting for a
// frame or a load.
//
// [CleanUp] lends the plan's reserve to a function that frees memory when the heap is full.
//
// # Profile
//
// [WriteProfile] shows in go tool pprof which functions of C, and which lines of Go above them,
// have the live blocks. The profile is sampled, so it costs little: a malloc and a free of 64 bytes
// take 181 instructions without it, and 0.3 more with it. CHeapPlan.Profile sets the distance of
// samples. On processors other than amd64 and arm64 it has no lines of Go. Blocks of an
// arena.Shared in a budget are in the profile as well, with the name of the arena around it.
//
// # Misuse
//
// If C code frees an address that isn't a live block, or a stray write has changed a header, the
// package writes a line on standard error and calls abort. The line has the address, the reason and
// the caller's address. A build with -tags checked also finds stray writes to freed bytes and past
// a block: it fills these bytes and checks them. For that reason [Trim] does nothing in a checked
// build.
//
// # Limits
//
// Memory that C code maps itself (mmap), thread stacks and the code of libraries aren't in the
// heap. A request with an alignment above 1 MiB is refused; the first one of at most 1 GiB writes a
// line.
//
// A library may bring an allocator of its own, as DuckDB brings jemalloc. The memory of that
// allocator isn't in the heap. Open searches the symbols of the program and of its loaded libraries
// for jemalloc, mimalloc and tcmalloc, and Report.NotGranted names each one with its file. Open
// can't find a library that is loaded later, or an allocator whose symbols are hidden and stripped.
// The search takes 0.2 ms in a small program.
//
// The package recognizes C.CString by the Go frame that calls C, on amd64 and arm64. On other
// processors, and with a version of Go whose runtime differs, C.CString still ends the process when
// the heap is full. Open then writes a line that says so, but none for the C.CString of a plugin.
//
// At a fork the package's handlers run after those of all libraries. Exceptions are musl, and
// libraries bound to the symbol pthread_atfork@GLIBC_2.2.5. There a library's handlers must not
// wait for a thread that allocates. The child process continues with the heap, without trim and
// warnings.
//
// The package defines no malloc with -asan, because AddressSanitizer has its own, nor on systems
// other than Linux. Open works there, but c_heap bounds nothing, and the report says so.
//
// Open returns an error if the process has another malloc: when the package is in a plugin, or in a
// shared library that was loaded late. The error names the file of that malloc. A program's own
// malloc takes precedence over a preloaded one. Two major versions of the package in one program
// don't link: the linker's error names
// upfront_malloc_is_linked_twice_keep_one_major_version.
//
// # C programs
//
// make install builds libupfront-malloc.so, the same malloc for programs without Go:
//
//	UPFRONT_C_HEAP=64MiB LD_PRELOAD=/usr/local/lib/libupfront-malloc.so program
package malloc
