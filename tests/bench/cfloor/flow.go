package cfloor

// #include "cfloor.h"
// #include "flow.h"
import "C"

import (
	"hash/fnv"
	"unsafe"
)

// Runner runs events of a graph in one instance. The graph's blob and the instance are outside of
// Go's memory.
type Runner struct {
	r              *C.cf_runner
	instances      *C.cf_instances
	blob           *C.char
	template, data []byte
}

// handle is the handle of the instance.
const handle = 1 << 32

// NewRunner returns a runner with at most that many steps for each event.
func NewRunner(blob, template []byte, steps int) *Runner {
	r := &Runner{template: template}
	bytes := func(n int) unsafe.Pointer { return C.cf_map(C.size_t(n)) }
	r.r = (*C.cf_runner)(bytes(int(unsafe.Sizeof(*r.r))))
	r.r.steps = C.uint32_t(steps)
	*(*unsafe.Pointer)(unsafe.Pointer(&r.r.stack)) = bytes(8 * steps)
	at := bytes(len(blob))
	r.blob = (*C.char)(at)
	copy(unsafe.Slice((*byte)(at), len(blob)), blob)
	p := (*C.cf_instances)(bytes(int(unsafe.Sizeof(*r.instances))))
	p.count, p.size = 1, C.uint32_t(len(template))
	p.generations, p.states, p.chunks = (*C.uint32_t)(bytes(4)), (*C.uint8_t)(bytes(1)),
		(*C.char)(bytes(len(template)))
	*p.generations, *p.states = 1, 1
	r.instances, r.data = p, unsafe.Slice((*byte)(unsafe.Pointer(p.chunks)), len(template))
	return r
}

// Fire resets the instance, fires the event with key 0 n times, and returns the sum of its actions.
func (r *Runner) Fire(event string, n int) uint64 {
	copy(r.data, r.template)
	r.r.touched = 0
	h := fnv.New32a()
	_, _ = h.Write([]byte(event))
	C.cf_fire(r.r, r.blob, r.instances, handle, C.uint64_t(h.Sum32())<<32|1<<31, C.int(n))
	return uint64(r.r.touched)
}
