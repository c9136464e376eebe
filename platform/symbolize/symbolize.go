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
//	upfront_heap_init
//		…/arena_c/heap.c:107 pc=0x5a3bd1
//	…
//	github.com/upfront-mem/upfront/arena.NewHeap({0x7fe7c4ea0000, 0x1000, 0x307dcf332080?})
//		…/arena/heap.go:32 +0x4e fp=0x307dcf281a18 sp=0x307dcf2819c0 pc=0x4de42e
//	main.crash({0x6500f0, 0x307dcf332080}, 0x307dcf2dc008)
//		…/tests/frogpond/crash.go:24 +0x1a5 fp=0x307dcf281af0 sp=0x307dcf281a18 pc=0x573525
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
