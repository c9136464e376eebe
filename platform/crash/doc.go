// Package crash says what an address meant before a crash on it goes on.
//
// A read or write of memory that the system gives no access to ends a Go program with an address and a stack: what lay
// there is anybody's guess. Watch names a range of addresses and a C function that knows them. When a SIGSEGV or SIGBUS
// names an address of the range, the function writes what it knows, the text goes to standard error, and then the crash
// is what it would have been: Go's own handler has the signal, with its traceback and its exit status, or with the panic
// that debug.SetPanicOnFault makes of it. An address outside of every range, nil above all, costs a look at the table.
//
// # The order of handlers
//
// The C library's start-up comes first, then Go's runtime sets its handlers for all signals, and only then run init and
// main. Go asks for no second time: os/signal.Notify leaves SIGSEGV and SIGBUS alone. The first Watch reads which
// handlers there are by then (sigaction), Go's as a rule, and puts one before each, with the same flags (SA_ONSTACK,
// SA_SIGINFO) and the same mask; it hands every signal on to them. A handler that somebody sets after that without
// handing on is the last word, and the texts stay away; one that hands on may come before or after. The handlers stay
// until the process ends.
//
// # What a describing function may do
//
// It runs inside a signal handler, on the signal stack of the thread that crashed, of which Go gives 32 KiB: no lock, no
// malloc, no stdio, nothing of Go. It may read whatever it likes: a second fault ends it, not the process, and the text then
// says that the range can't be read. One thread describes at a time.
//
// # Why this package has C
//
// A Go function can't run in a signal handler, and Go's own may not be replaced by one. So this package and
// arena_c, which it doesn't know, are those that import "C". Where there is no C, or no Linux, Watch says
// errors.ErrUnsupported.
//
// # Goroutines
//
// Watch and Unwatch may be called from any goroutine; a crash elsewhere meanwhile finds the table as it was or as it
// is to be.
package crash
