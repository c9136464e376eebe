//go:build memdebug

package arena_c

// #include "describe.h"
// static void upfront_keep_all_damage(void) { upfront_on_damage = upfront_keep_damage; }
// static void *upfront_describe_address(void) { return (void *)(uintptr_t)upfront_describe; }
// static void *upfront_describe_closed_address(void) { return (void *)(uintptr_t)upfront_describe_closed; }
// #cgo noescape upfront_describe_damage
// #cgo nocallback upfront_describe_damage
// #cgo noescape upfront_stretch_check
// #cgo nocallback upfront_stretch_check
import "C"

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// Damaged is told of damage that a call met in the memory that it was given: a line that says what is damaged, and lines of
// who made it and who gave it back. What is damaged may be read by anybody: it ends the process with status 2, after the text
// and the stack of the goroutine that met it. A test may replace it, before anything runs.
var Damaged = func(text string) {
	fmt.Fprintf(os.Stderr, "upfront: %s\n%s", text, debug.Stack())
	os.Exit(2)
}

// The core stops the program itself where nobody is told.
func init() { C.upfront_keep_all_damage() }

// raiseDamage has what a call into C met told, now that it has returned.
func raiseDamage() {
	if atomic.LoadUint32((*uint32)(&C.upfront_damage_kept)) != 0 {
		tellDamage()
	}
}

func tellDamage() {
	var met C.upfront_damage
	if C.upfront_take_damage(&met) != 0 {
		Damaged(damageText(&met))
	}
}

func damageText(d *C.upfront_damage) string {
	var out [8192]byte
	return string(out[:C.upfront_describe_damage(d, (*C.char)(unsafe.Pointer(&out)), C.size_t(len(out)))])
}

// Damage is upfront_stretch_check in words: the first damage of the map, as lines; "" when there is none.
func (m *Map) Damage() string {
	var first C.upfront_damage
	if Code(C.upfront_stretch_check(m.c(), &first)) == OK {
		return ""
	}
	return damageText(&first)
}

// DescribeFault is the address of upfront_describe, whose argument is a Map: in the words of platform/crash a describing function.
func DescribeFault() unsafe.Pointer { return C.upfront_describe_address() }

// DescribeClosed is the address of upfront_describe_closed, whose argument is a number of Here.
func DescribeClosed() unsafe.Pointer { return C.upfront_describe_closed_address() }
