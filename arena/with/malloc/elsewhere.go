//go:build !linux || !cgo || asan

package malloc

import (
	"errors"
	"io"
	"runtime"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

func init() { arena_c.SetProcessHeap(&process) }

// heap stands for a malloc that isn't the package's.
type heap struct{}

var process heap

// Begin refuses each plan.
func (*heap) Begin(arena_c.ProcessPlan) (page string, err error) {
	if arena_c.Asan {
		return "", unsupported("an asan build has AddressSanitizer's malloc, so c_heap isn't used and bounds nothing")
	}
	return "", unsupported("package arena/with/malloc defines malloc on Linux alone; on " + runtime.GOOS +
		" c_heap bounds nothing")
}

// Watch does nothing.
func (*heap) Watch(at, again uint64, crossed func(used uint64)) error { return nil }

// Counts returns no counts.
func (*heap) Counts() (c arena_c.ProcessCounts) { return c }

// WriteProfile refuses.
func (*heap) WriteProfile(io.Writer) error {
	return unsupported("this build has another malloc, so there is no profile")
}

// Sampler returns nil.
func (*heap) Sampler(string) (functions unsafe.Pointer, number uint32) { return nil, 0 }

// Trim returns 0.
func (*heap) Trim() uint64 { return 0 }

func lend(int) {}

// unsupported returns the error of Begin in a build that doesn't define malloc. It wraps
// errors.ErrUnsupported, with which Open continues.
func unsupported(why string) error { return &unsupportedError{why} }

type unsupportedError struct{ why string }

func (e *unsupportedError) Error() string { return e.why }
func (e *unsupportedError) Unwrap() error { return errors.ErrUnsupported }
