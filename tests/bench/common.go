package main

import (
	"math/rand/v2"
	"unsafe"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/bench/cfloor"
)

type (
	object [8]uint64  // 64 bytes
	large  [32]uint64 // 256 bytes
)

const (
	objectCount = 1000 // of a time, works A and B
	chunkCount  = 1024 // of a pool, work C
	million     = 1_000_000
)

var (
	objects = scope.Plain[object]()
	larges  = scope.Plain[large]()
)

// What an allocator gives is written to and kept here.
var (
	kept     [objectCount]*object
	keptRaw  [chunkCount]unsafe.Pointer
	keptInts []int64
)

// dirt is left in what was looked at: who takes the bytes next and doesn't zero them is seen.
const dirt = 0xDB

const dirtyWord = 0xDBDBDBDBDBDBDBDB

// inspect sums up the first word of each object, and all that must be zero: its others, and the
// low bits of its address.
func inspect(list []unsafe.Pointer) (sum uint64) {
	for _, at := range list {
		p := (*object)(at)
		sum = sum*31 + p[0] + uint64(uintptr(at)&7)
		for i := 1; i < len(p); i++ {
			sum += p[i]
			p[i] = dirtyWord
		}
	}
	return sum
}

// mixed is the sizes and alignments of work B: 8 to 256 bytes, half of them aligned to 16.
var mixed = func() (t [objectCount]struct{ size, align uintptr }) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range t {
		t[i].size = uintptr(8 + r.IntN(249))
		t[i].align = 8 << r.IntN(2)
	}
	return
}()

// order is the shuffle in which work C gives its chunks back.
var order = func() (t [chunkCount]uint32) {
	r := rand.New(rand.NewPCG(3, 4))
	for i, j := range r.Perm(len(t)) {
		t[i] = uint32(j)
	}
	return
}()

// listInC is room for n addresses in memory of C, for a loop in C to leave what it took in.
func listInC(n int) []unsafe.Pointer { return unsafe.Slice(cfloor.Ptrs(n), n) }

// pointers is the same list.
func pointers[T any](list []*T) []unsafe.Pointer {
	return unsafe.Slice((*unsafe.Pointer)(unsafe.Pointer(unsafe.SliceData(list))), len(list))
}

// scratch arenas are those of a budget of their own, two for each worker.
func scratches(workers int, size uint64) (*budget.Budget, func()) {
	b, err := budget.Open(budget.Plan{Name: "bench",
		Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: workers, Size: size}, Pages: budget.Pages{Prefault: budget.Off}})
	if err != nil {
		panic(err)
	}
	return b, func() { _ = b.Close() }
}
