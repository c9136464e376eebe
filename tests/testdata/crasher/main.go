// Command crasher dies in C, in the way that its argument names.
package main

/*
#include <stdlib.h>

static volatile int *nowhere;
static __attribute__((noinline)) void store(volatile char *p) {
	*p = 1; // here: store
}
static __attribute__((noinline)) void give_up(void) {
	abort(); // here: give_up
}
static __attribute__((noinline)) void from_go(char how, char *dead) {
	switch (how) {
	case 'n': store((volatile char *)nowhere); break; // here: null
	case 'd': store(dead); break; // here: dead
	case 'a': give_up(); break;
	}
	nowhere = NULL; // no call above is the last thing: its caller stays on the stack
}
*/
import "C"

import (
	"context"
	"os"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func main() {
	b, err := budget.Open(budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	var kept []byte
	_, err = budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*int, error) {
		kept = s.BytesUnzeroed(64, 64)
		return new(int), nil
	})
	if err != nil {
		panic(err)
	}
	if err := b.Close(); err != nil {
		panic(err)
	}
	C.from_go(C.char(os.Args[1][0]), (*C.char)(unsafe.Pointer(unsafe.SliceData(kept))))
}
