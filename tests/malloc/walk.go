//go:build linux && cgo && !asan

package main

// #include "../../arena/with/malloc/caller.h"
// #include "../../arena/with/malloc/process.h"
import "C"

import (
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
)

// walk returns the code of a check of all blocks.
func walk() int { return int(C.upfront_malloc_walk()) }

// fullCaller returns how many bytes after the start of work_fill its last refused call returns to.
func fullCaller() uintptr {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uintptr(c.full_caller) - workFill()
}

// parked returns the number of freed blocks in fronts.
func parked() uint64 {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uint64(c.parked)
}

// look is one look for free pages. It returns false if there was nothing to do.
func look() (goesOn bool) { return C.upfront_malloc_look() != 0 }

// heap returns the address and the size of the heap.
func heap() (base uintptr, size uint64) {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uintptr(c.base), uint64(c.size)
}

// runtimePart returns the address and the size of the part for Go's runtime.
func runtimePart() (base uintptr, size uint64) {
	var c C.upfront_malloc_counts
	C.upfront_malloc_count(&c)
	return uintptr(c.runtime_base), uint64(c.runtime)
}

// lines compares the functions, files and lines that C's malloc reads with those of package
// runtime, at each 61st byte of the program's text.
func lines(_ args, out io.Writer) (int, error) {
	start := reflect.ValueOf(lines).Pointer()
	compared := 0
	for _, step := range []int{61, -61} {
		for pc := start; ; pc = uintptr(int(pc) + step) {
			f := runtime.FuncForPC(pc)
			if f == nil {
				break
			}
			var p C.upfront_go_place
			if C.upfront_go_line(C.uintptr_t(pc), &p) == 0 {
				return 1, fmt.Errorf("%#x in %s isn't found", pc, f.Name())
			}
			file, line := f.FileLine(pc)
			if file == "?" { // a name of the linker
				continue
			}
			if C.GoString(p.file) != file || int(p.line) != line {
				return 2, fmt.Errorf("%#x in %s is at %s:%d, want %s:%d", pc, f.Name(), C.GoString(p.file), p.line,
					file, line)
			}
			// the runtime has no name for the first function of the text: its name's offset is 0
			name, _, _ := strings.Cut(C.GoString(p.function), "[") // of a generic function
			if want, _, _ := strings.Cut(f.Name(), "["); f.Entry() == pc && want != "" && name != want {
				return 3, fmt.Errorf("%#x is in %s, want %s", pc, name, want)
			}
			compared++
		}
	}
	fmt.Fprintln(out, "lines", compared)
	return 0, nil
}
