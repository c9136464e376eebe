package conformance

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
	"github.com/upfront-mem/upfront/tests/step"
)

// twins are two blocks at the same place of a window. The same program runs on both: by arena_c's
// fast paths, in Go in the default build, and by the C core's inline functions. After each step
// every byte of the two must be equal.
type twins struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand
	a, b    []byte
	from    int // the start of the arena in the blocks
	control int // the length of the control words from there, which are never poisoned
	step    int
}

func newTwins(t *testing.T, size, control int) *twins {
	seed := rand.Uint64()
	return &twins{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 2)), a: heapBlock(t, size, arena_c.AlignMax),
		b: heapBlock(t, size, arena_c.AlignMax), control: control}
}

func at(block []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(block)) }

func (w *twins) size() uint64 { return uint64(len(w.a)) }

// same compares two addresses by their offsets in the blocks.
func (w *twins) same(what string, a, b unsafe.Pointer) {
	w.step++
	if (a == nil) != (b == nil) || a != nil && address(a)-address(at(w.a)) != address(b)-address(at(w.b)) {
		w.t.Fatalf("seed %d, step %d, %s: Go gives %v, C %v", w.seed, w.step, what, a, b)
	}
	w.sameBytes(what)
}

func (w *twins) sameBytes(what string) {
	a, b := w.a, w.b
	if instrumented {
		a, b = a[w.from:w.from+w.control], b[w.from:w.from+w.control]
	}
	if bytes.Equal(a, b) {
		return
	}
	for i := range a {
		if a[i] != b[i] {
			w.t.Fatalf("seed %d, step %d, %s: byte %d is %#x in Go, %#x in C", w.seed, w.step, what, i, a[i], b[i])
		}
	}
}

// amount returns a size: mostly small, sometimes the room, sometimes an invalid number.
func (w *twins) amount() uint64 {
	switch w.random.IntN(12) {
	case 0:
		return w.random.Uint64N(w.size())
	case 1:
		return alarming[4+w.random.IntN(2)] // the largest sizes that a fast path accepts
	default:
		return w.random.Uint64N(200)
	}
}

// gen returns the right generation, mostly.
func (w *twins) gen(right uint64) uint64 {
	switch w.random.IntN(10) {
	case 0:
		return w.random.Uint64()
	case 1:
		return right - w.random.Uint64N(3)
	default:
		return right
	}
}

func (w *twins) mask() uint64 { return 1<<w.random.IntN(9) - 1 }

func rounds() int { return step.Pick(2000, 20_000, 20_000) }

func TestGoAndCAgreeOnPool(t *testing.T) {
	// The block is in the middle of a larger one, so that near foreign addresses point into no
	// other Go object: the runtime would object.
	w := newTwins(t, 3*arena_c.Edge, 64)
	w.from = arena_c.Edge
	a, b := arena_c.PoolMake(arena_c.RoomOf(arena_c.RoomPool, at(w.a[w.from:]), 4096), 24, 8, false),
		arena_c.PoolMake(arena_c.RoomOf(arena_c.RoomPool, at(w.b[w.from:]), 4096), 24, 8, false)
	first, numbers := a.Bases()
	// Numbers and states are between the header and chunk 0.
	w.control = int(address(a.Chunk(0)) - address(unsafe.Pointer(a)))
	for range rounds() {
		gen := w.gen(a.Gen)
		if w.random.IntN(2) == 0 {
			p, q := unsafe.Pointer(arena_c.Get[[3]uint64](a, gen, first, numbers)), bindings.Get(b, gen)
			if q != nil {
				arena_c.Zero(q, 24)
			}
			w.same("Get", p, q)
			continue
		}
		offset := w.random.Uint64N(uint64(a.Count)+2) * a.Stride
		switch w.random.IntN(10) {
		case 0:
			offset += w.random.Uint64N(24)
		case 1: // so far away that C's reciprocal is inexact
			if unsafe.Sizeof(uintptr(0)) == 8 {
				offset = w.random.Uint64()
			}
		case 2:
			offset = -offset
		}
		p, q := unsafe.Add(a.Chunk(0), offset), unsafe.Add(b.Chunk(0), offset)
		put := arena_c.Put(a, gen, first, numbers, (*[3]uint64)(p))
		require.Equal(t, bindings.Put(b, gen, q), put, "seed %d, step %d", w.seed, w.step)
		w.sameBytes("Put")
	}
	for i := range uint64(a.Count) {
		require.Equal(t, bindings.State(a, i), unsafe.Pointer(a.State(i)))
		require.Equal(t, bindings.Chunk(a, i), a.Chunk(i))
	}
}
