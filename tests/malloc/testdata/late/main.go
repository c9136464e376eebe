// Late is a shared library that a C program loads after libc. So the malloc of the library comes
// too late.
package main

import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"

	_ "github.com/upfront-mem/upfront/arena/with/malloc"
)

//export Begin
func Begin(out *C.char, room C.int) {
	text := "begun"
	if _, err := arena_c.ProcessHeapOf().Begin(arena_c.ProcessPlan{Size: 8 << 20}); err != nil {
		text = err.Error()
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(out)), room-1), text)
}

func main() {}
