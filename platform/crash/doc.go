// Package crash describes the address of a crash before the program ends with it.
//
//	pool := crash.Range{Name: "the pool", Base: base, Size: size, Describe: C.describe}
//	if err := crash.Watch(pool); err != nil {
//		return err
//	}
//
// Without it, a read or write of memory without access ends a Go program with a bare address and a
// stack. [Watch] names a range of addresses and a C function that describes them. When a SIGSEGV or
// SIGBUS has an address of the range, that function writes a text, and the handler prints it to
// standard error. Then the crash continues unchanged: Go's own handler gets the signal, and ends
// with its traceback and exit status, or with the panic of debug.SetPanicOnFault. An address
// outside of every range, such as nil, costs a look at the table. [Unwatch] ends the watching.
//
// For C frames in that traceback, import package platform/symbolize.
//
// # The order of handlers
//
// Go's runtime sets its handlers for all signals after the C library's start-up and before init and
// main. It never sets them again: os/signal.Notify leaves SIGSEGV and SIGBUS alone. The first Watch
// reads the present handlers (sigaction), normally Go's. Before each it puts a handler with the
// same flags (SA_ONSTACK, SA_SIGINFO) and the same mask, which passes every signal on. A later
// handler that doesn't pass signals on suppresses the texts; one that does may come before or
// after. The handlers stay until the process ends.
//
// # Rules for a describing function
//
// It runs inside a signal handler, on the signal stack of the crashed thread, which has 32 KiB: no
// lock, no malloc, no stdio, nothing of Go. It may read any address: a second fault ends the
// function, not the process, and the handler prints that the range can't be read. One thread
// describes at a time.
//
// # Why this package has C
//
// A Go function can't run in a signal handler, and must not replace Go's own. So outside of tests
// this package and arena_c, which it doesn't import, are the only ones of the module that import
// "C". Without cgo, or off Linux, Watch returns errors.ErrUnsupported.
//
// # Goroutines
//
// Watch and Unwatch may be called from any goroutine. A crash at the same time sees the table
// before or after the change.
package crash
