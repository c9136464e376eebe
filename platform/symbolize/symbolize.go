// Package symbolize makes the traceback of a crash in C show C functions, files and lines above the Go frames. A
// program opts in by a blank import:
//
//	import _ "github.com/upfront-mem/upfront/platform/symbolize"
//
// and go mod tidy, which adds the symbolizer's module. It is process-wide: it takes
// runtime.SetCgoTraceback, which has one owner. tests/frogpond links it; its -crash shows what comes of a block that is
// kept beyond its budget's Close:
//
//	SIGSEGV: segmentation violation
//	…
//	github_com_upfront_mem_upfront_heap_init
//		…/arena_c/heap.c:199 pc=0x8c08ed
//	…
//	github.com/upfront-mem/upfront/arena.NewHeap({0x2000240000, 0x1000, 0x2b391901a190?}, 0x0)
//		…/arena/heap.go:42 +0x136 fp=0x2b3918ed1758 sp=0x2b3918ed1620 pc=0x51fe76
//	main.crash({0xa5ea58, 0x2b391901a190}, 0x2b391900a908)
//		…/tests/frogpond/crash.go:23 +0x1a7 fp=0x2b3918ed1830 sp=0x2b3918ed1758 pc=0x83f947
//
// What it doesn't show:
//
//   - names in a binary without debug information: go run and go test strip it, as -ldflags=-s and -w do. C frames are
//     "non-Go function" there. go build keeps it.
//   - C frames that lie more than 1 KiB of stack above the innermost one.
//   - C frames between two of Go: a panic in Go code that C called shows the Go frames on both sides and nothing between.
//   - a SIGSEGV in C under asan, whose own report of it names the innermost C function and no Go frames.
//     ASAN_OPTIONS=handle_segv=0 leaves the signal to Go, and all is as elsewhere.
//     At exit asan's leak check reports the program's name, which is kept in C.
//   - C frames behind a signal handler that stands before Go's and calls it: one that jumps to it as its last step, or
//     puts it back and returns so that the fault comes again, keeps them. Package crash's does.
//
// It makes a binary a little larger and its start a little slower. From then on it costs a walk of the C stack for each
// signal that arrives in C, as a profiler's do. The work is done by Ian Lance Taylor's cgosymbolizer.
// Off Linux, or without cgo, the package is empty.
package symbolize
