//go:build linux && cgo && !asan

package malloc

// #include "caller.h"
// #include "process.h"
import "C"

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena/with/malloc/internal/getg"
)

// The runtime ends the process when C's malloc refuses memory for a new thread or for C.CString,
// and loses a variable that setenv has no memory for. So C's malloc has to know these requests. The
// runtime starts threads and sets variables through pointers to C functions, which init replaces by
// functions of process.c; caller.c reads the Go frame that C.CString calls from. Each part checks
// that the runtime is as it expects.

//go:linkname threadStart _cgo_thread_start
var threadStart unsafe.Pointer

//go:linkname setVariable runtime._cgo_setenv
var setVariable unsafe.Pointer

//go:linkname unsetVariable runtime._cgo_unsetenv
var unsetVariable unsafe.Pointer

//go:linkname stackBound _cgo_getstackbound
var stackBound unsafe.Pointer

//go:linkname lastModule runtime.lastmoduledatap
var lastModule unsafe.Pointer

// uncovered lists the requests that this package doesn't know in this program.
var uncovered []string

func init() {
	for i, hook := range []struct {
		pointer *unsafe.Pointer
		request string
	}{{&threadStart, "new threads"}, {&setVariable, "os.Setenv"}, {&unsetVariable, "os.Unsetenv"},
		{&stackBound, "calls from threads of C"}} {
		if *hook.pointer == nil {
			uncovered = append(uncovered, hook.request)
			continue
		}
		*hook.pointer = C.upfront_malloc_hook(C.int(i), *hook.pointer)
	}
	if knowCalls("callBegin") == 0 {
		uncovered = append(uncovered, "C.CString, C.CBytes and C.malloc")
	}
}

// knowCalls lets C's malloc find the Go frames above a call, and returns the result of
// upfront_go_begin: 0 if it doesn't find this one. The call is in a function that is inlined, named
// inlined, so that C's malloc learns to find these as well.
//
//go:noinline
func knowCalls(inlined string) C.int {
	entry := reflect.ValueOf(knowCalls).Pointer()
	name := runtime.FuncForPC(entry).Name()
	within := strings.TrimSuffix(name, "knowCalls") + inlined
	return callBegin(uintptr(lastModule), getg.G(), entry, unsafe.StringData(name), len(name),
		unsafe.StringData(within), len(within))
}

func callBegin(module, g, entry uintptr, name *byte, size int, within *byte, bytes int) C.int {
	return C.upfront_go_begin(C.uintptr_t(module), C.uintptr_t(g), C.uintptr_t(entry),
		(*C.char)(unsafe.Pointer(name)), C.uint64_t(size), (*C.char)(unsafe.Pointer(within)), C.uint64_t(bytes))
}

// sayUncovered writes a line if a full heap still ends the process in some request of Go's runtime.
func sayUncovered() {
	if len(uncovered) != 0 {
		fmt.Fprintf(os.Stderr, "upfront: c_heap: with %s on %s, C's malloc doesn't know requests of Go's runtime "+
			"for %s: in a full heap these end the process\n",
			runtime.Version(), runtime.GOARCH, strings.Join(uncovered, "; "))
	}
	uncovered = nil
}
