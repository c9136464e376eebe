//go:build linux && cgo

package main

// #include <stdlib.h>
// #include <string.h>
//
// static size_t measure(const char *text) { return strlen(text); }
import "C"

import (
	"strings"
	"unsafe"
)

// text calls a function of C with strings. One of its calls copies the string once more, for a
// callee that it no longer has.
func text() (round func() error, err error) {
	line := strings.Repeat("frog ", 40)
	return func() error {
		measure(line)
		duplicate(line)
		return nil
	}, nil
}

func measure(line string) int {
	p := C.CString(line)
	defer C.free(unsafe.Pointer(p))
	return int(C.measure(p))
}

func duplicate(line string) int {
	p := C.CString(line)
	defer C.free(unsafe.Pointer(p))
	return int(C.measure(C.strdup(p))) // the leak: string
}
