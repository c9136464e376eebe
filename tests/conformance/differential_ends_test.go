package conformance

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
)

func TestGoAndCAgreeOnEnds(t *testing.T) {
	w := newTwins(t, 8192, 128)
	a, b := arena_c.EndsInit(arena_c.RoomOf(arena_c.RoomEnds, at(w.a), w.size())),
		arena_c.EndsInit(arena_c.RoomOf(arena_c.RoomEnds, at(w.b), w.size()))
	for range rounds() {
		gen, size, mask := w.gen(a.Gen), w.amount(), w.mask()
		switch w.random.IntN(12) {
		default:
			w.same("BumpFar", a.BumpFar(gen, size, mask), bindings.BumpFar(b, gen, size, mask))
		case 0, 1, 2:
			p, _ := a.Bump(gen, size, mask)
			w.same("Bump", p, bindings.Bump(&b.Header, gen, size, mask))
		case 3:
			mark, farMark := bindings.Marks(b)
			require.Equal(t, mark, a.MarkNear())
			require.Equal(t, farMark, a.MarkFar())
			w.sameBytes("marks")
		case 4:
			mark := a.Start + w.random.Uint64N(a.Mark-a.Start+2)
			require.Equal(t, a.Rewind(gen, mark), b.Rewind(gen, mark))
			w.sameBytes("Rewind")
		case 5:
			mark := a.FarMark + w.random.Uint64N(a.End-a.FarMark+2)
			require.Equal(t, a.RewindFar(gen, mark), b.RewindFar(gen, mark))
			w.sameBytes("RewindFar")
		case 6:
			offset := a.Cursor - a.Start - w.random.Uint64N(min(a.Cursor-a.Start, 64)+1)
			old := a.Cursor - a.Start - offset
			p, q := a.At(a.Start+offset), b.At(b.Start+offset)
			require.Equal(t, a.Resize(gen, p, old, size), b.Resize(gen, q, old, size))
			w.sameBytes("Resize")
		case 7:
			if w.random.IntN(20) == 0 {
				a.Reset()
				b.Reset()
				w.sameBytes("Reset")
			}
		}
	}
}

func TestGoAndCAgreeOnTheFarEndOfAStack(t *testing.T) {
	w := newTwins(t, 8192, 128)
	a, b := arena_c.StackInit(arena_c.RoomOf(arena_c.RoomStack, at(w.a), w.size())),
		arena_c.StackInit(arena_c.RoomOf(arena_c.RoomStack, at(w.b), w.size()))
	var live [2][]uint64
	for range rounds() {
		end := w.random.IntN(2)
		if n := len(live[end]); n > 0 && w.random.IntN(5) < 2 {
			offset := live[end][n-1]
			live[end] = live[end][:n-1]
			pop := []func(*arena_c.Stack, unsafe.Pointer) arena_c.Code{
				(*arena_c.Stack).Free, (*arena_c.Stack).FreeFar}[end]
			require.Equal(t, arena_c.OK, pop(a, unsafe.Add(at(w.a), offset)))
			require.Equal(t, arena_c.OK, pop(b, unsafe.Add(at(w.b), offset)))
			w.sameBytes("pop")
			continue
		}
		gen, size, mask := w.gen(a.Gen), w.amount(), w.mask()|15
		var p, q unsafe.Pointer
		if end == 0 {
			p, q = a.Push(gen, size, mask), bindings.Push(b, gen, size, mask)
		} else {
			p, q = a.PushFar(gen, size, mask), bindings.PushFar(b, gen, size, mask)
		}
		w.same("push", p, q)
		if p != nil {
			live[end] = append(live[end], address(p)-address(at(w.a)))
		}
	}
}

func TestGoAndCAgreeOnHandles(t *testing.T) {
	w := newTwins(t, 4096, 64)
	a, b := arena_c.PoolMake(arena_c.RoomOf(arena_c.RoomPool, at(w.a), w.size()), 24, 8, true),
		arena_c.PoolMake(arena_c.RoomOf(arena_c.RoomPool, at(w.b), w.size()), 24, 8, true)
	first, numbers := a.Bases()
	// Numbers, generations and states are between the header and chunk 0.
	w.control = int(address(first) - address(at(w.a)))
	given := []uint64{0, 1<<64 - 1, 1<<32 | uint64(a.Count), 7 << 32}
	// One chunk retires first, in every run.
	_, one := arena_c.GetHandle[[3]uint64](a, a.Gen, first, numbers)
	q, _ := bindings.GetHandle(b, b.Gen)
	arena_c.Zero(q, 24)
	index := one & arena_c.HandleIndex
	*generation(a, index), *generation(b, index) = 1<<32-1, 1<<32-1
	one = a.Handle(one & arena_c.HandleIndex)
	require.Equal(t, bindings.PutHandle(b, b.Gen, one), a.PutHandle(a.Gen, one))
	require.EqualValues(t, 1, a.Retired)
	w.sameBytes("PutHandle")
	for range rounds() {
		gen := w.gen(a.Gen)
		handle := given[w.random.IntN(len(given))]
		switch w.random.IntN(4) {
		default:
			p, got := arena_c.GetHandle[[3]uint64](a, gen, first, numbers)
			q, want := bindings.GetHandle(b, gen)
			if q != nil {
				arena_c.Zero(q, 24)
			}
			require.Equal(t, want, got, "seed %d, step %d", w.seed, w.step)
			w.same("GetHandle", unsafe.Pointer(p), q)
			if got != 0 {
				given = append(given, got)
			}
		case 0:
			w.same("At", a.At(gen, handle), bindings.At(b, gen, handle))
		case 1, 2:
			if w.random.IntN(rounds()/20) == 0 { // its last generation: a put retires the chunk
				index := w.random.Uint64N(uint64(a.Count))
				*generation(a, index), *generation(b, index) = 1<<32-1, 1<<32-1
				handle = a.Handle(index)
				given = append(given, handle)
			}
			require.Equal(t, bindings.PutHandle(b, gen, handle), a.PutHandle(gen, handle), "seed %d, step %d",
				w.seed, w.step)
			w.sameBytes("PutHandle")
		}
	}
}

// generation returns the word with the generation of a chunk's handle.
func generation(p *arena_c.Pool, index uint64) *uint32 { return p.Number(uint64(p.Count) + index) }
