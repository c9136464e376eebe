package arena_c

// #include "scope.h"
// #cgo noescape upfront_scope_run
import "C"

// The classes of nodes that C knows: a C finalizer, and a pool, whose header's index is in the low 20 bits of What.
const (
	ClassC    = 1
	ClassPool = 2
)

// RunC is upfront_scope_run: one crossing for a run of C finalizers, which may call Go.
func (l *Linear) RunC(until uint64) (count uint64) {
	return uint64(C.upfront_scope_run(l.c(), C.uint64_t(until)))
}
