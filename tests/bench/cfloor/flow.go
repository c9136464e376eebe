package cfloor

// #include "cfloor.h"
// #include "flow.h"
import "C"

import (
	"hash/fnv"
	"unsafe"
)

// Runner runs events of a graph's blob, which it copies to where Go's memory isn't.
type Runner struct {
	r              *C.cf_runner
	blob, data     *C.char
	template, live []byte
}

// NewRunner is one with so many steps for each event, and with an instance of the graph.
func NewRunner(blob, template []byte, steps int) *Runner {
	all := int(unsafe.Sizeof(C.cf_runner{})) + len(blob) + len(template) + 8*steps + 64
	p := C.cf_map(C.size_t(all))
	take := func(n int) unsafe.Pointer {
		at := p
		p = unsafe.Add(p, (n+15)&^15)
		return at
	}
	r := &Runner{template: template}
	r.r = (*C.cf_runner)(take(int(unsafe.Sizeof(C.cf_runner{}))))
	b, d := take(len(blob)), take(len(template))
	r.blob, r.data, r.live = (*C.char)(b), (*C.char)(d), unsafe.Slice((*byte)(d), len(template))
	copy(unsafe.Slice((*byte)(b), len(blob)), blob)
	r.r.steps = C.uint32_t(steps)
	*(*unsafe.Pointer)(unsafe.Pointer(&r.r.stack)) = take(8 * steps)
	return r
}

// Fire begins anew and fires the event with key 0 n times, and says what its actions came to.
func (r *Runner) Fire(event string, n int) uint64 {
	copy(r.live, r.template)
	r.r.touched = 0
	h := fnv.New32a()
	_, _ = h.Write([]byte(event))
	C.cf_fire(r.r, r.blob, r.data, C.uint64_t(h.Sum32())<<32|1<<31, C.int(n))
	return uint64(r.r.touched)
}
