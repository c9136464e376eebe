// Package crash describes the address of a crash before the program ends with it.
//
//	pool := crash.Range{Name: "the pool", Base: base, Size: size, Describe: C.describe}
//	if err := crash.Watch(pool); err != nil {
//		return err
//	}
//
// Without this package, a read or write of inaccessible memory ends a Go program with only an
// address and a stack. [Watch] names a range of addresses and a C function that describes them.
// When a SIGSEGV or SIGBUS has an address in the range, the function writes a text, and the handler
// prints it to standard error. Then the crash continues unchanged: Go's own handler gets the signal
// and ends the program with its traceback and exit status, or raises the panic of
// debug.SetPanicOnFault. For an address outside of every range, such as nil, the handler only
// searches its table of ranges. [Unwatch] ends the watching.
//
// For C frames in that traceback, import package platform/symbolize.
//
// # The order of handlers
//
// Go's runtime sets its handlers for all signals after the C library's start-up and before init and
// main. It never sets them again: os/signal.Notify leaves SIGSEGV and SIGBUS alone. The first Watch
// reads the present handlers (sigaction), normally Go's. Before each of them it installs a handler
// with the same flags (SA_ONSTACK, SA_SIGINFO) and the same mask, which passes every signal on. If
// the program later installs a handler that doesn't pass signals on, the texts aren't printed. A
// handler that does may be installed before or after. The handlers stay until the process ends.
//
// # Rules for a describing function
//
// The describing function runs inside a signal handler, on the signal stack of the crashed thread,
// which has 32 KiB on Go's threads. It may use no lock, no malloc, no stdio and nothing of Go. It
// may read any address. A second fault ends only the function, and the handler prints that the
// range can't be read. One thread describes at a time.
//
// # Why this package has C
//
// A Go function can't run in a signal handler, and must not replace Go's own handler. So this
// package imports "C". Outside of tests only arena_c and arena/with/malloc do so as well in this
// module. Without cgo, or off Linux, the error of Watch wraps errors.ErrUnsupported.
//
// # Goroutines
//
// Watch and Unwatch may be called from any goroutine. A crash at the same time sees the table
// before or after the change.
package crash
