// Package symbolize gives Go tracebacks their C frames (function, file and line), if a program
// imports it:
//
//	import _ "github.com/upfront-mem/upfront/platform/symbolize"
//
// After the import, go mod tidy adds the symbolizer's module. The symbolizer works for the whole
// process: it calls runtime.SetCgoTraceback, which has one user in a process. tests/frogpond
// imports it. Its -crash uses a block after its budget's Close:
//
//	SIGSEGV: segmentation violation
//	…
//	github_com_upfront_mem_upfront_heap_init
//		…/arena_c/heap.c:206 pc=0x91695d
//	…
//	github.com/upfront-mem/upfront/arena.NewHeap({0x2000240000, 0x1000, 0x2b391901a190?}, 0x0)
//		…/arena/heap.go:46 +0xf0 fp=0x2b3918ed1758 sp=0x2b3918ed1620 pc=0x51fe76
//	main.crash({0xa5ea58, 0x2b391901a190}, 0x2b391900a908)
//		…/tests/frogpond/crash.go:23 +0x1a7 fp=0x2b3918ed1830 sp=0x2b3918ed1758 pc=0x83f947
//
// It doesn't show:
//
//   - names in a binary without debug information. go run, go test and -ldflags=-s or -w strip this
//     information, so that C frames are "non-Go function"; go build keeps it.
//   - C frames more than 1 KiB of stack above the innermost one.
//   - C frames between two of Go: a panic in Go code that C called shows only the Go frames on both
//     sides.
//   - a SIGSEGV in C under asan. Its own report names the innermost C function and no Go frames;
//     ASAN_OPTIONS=handle_segv=0 leaves the signal to Go. At exit asan's leak check reports the
//     program's name, which is kept in C.
//   - C frames after a signal handler that calls Go's handler. A handler keeps these frames if its
//     last step is a jump to Go's handler, or if it restores Go's handler and returns, so that the
//     fault comes again. The handler of budget/internal/crash keeps them.
//
// The package makes a binary a little larger and its start a little slower. Each signal that
// arrives in C, such as a profiler's, costs a walk of the C stack. Ian Lance Taylor's cgosymbolizer
// does the work. Off Linux, or without cgo, the package is empty.
package symbolize
