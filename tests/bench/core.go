package main

// #cgo CFLAGS: -O2 -I${SRCDIR}/../../arena_c
// #include "core.h"
import "C"

import (
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
)

// core is a scope that the loops of core.c work in.
type core struct{ s C.upfront_scope }

type corePool C.upfront_pool

func newCore() (core, func()) {
	b, end := scratches(1, budget.MiB)
	header, generation := b.Scratch(0, 0).Open("core").C()
	return core{C.upfront_scope{arena: (*C.upfront_scopes)(header), gen: C.uint64_t(generation)}}, end
}

func (c core) objects(out []unsafe.Pointer) {
	C.core_objects(c.s, unsafe.SliceData(out), C.int(len(out)))
}

func (c core) mixed(out []unsafe.Pointer, zeroed bool) {
	is := C.int(0)
	if zeroed {
		is = 1
	}
	C.core_mixed(c.s, unsafe.SliceData(out), (*C.uint32_t)(&mixedC[0]), C.int(len(out)), is)
}

func (c core) pool(size uintptr) *corePool {
	return (*corePool)(C.core_pool(c.s, C.size_t(size), chunkCount))
}

func (p *corePool) lifo(tmp []unsafe.Pointer, zeroed uintptr) {
	C.core_pool_lifo((*C.upfront_pool)(p), unsafe.SliceData(tmp), lifoDepth, chunkCount, C.size_t(zeroed))
}

func (p *corePool) random(tmp []unsafe.Pointer, zeroed uintptr) {
	C.core_pool_random((*C.upfront_pool)(p), unsafe.SliceData(tmp), (*C.uint32_t)(&order[0]), chunkCount, C.size_t(zeroed))
}

func (c core) scopes4(objects, finalizers int) uint64 {
	return uint64(C.core_scopes4(c.s, C.int(objects), C.int(finalizers)))
}
