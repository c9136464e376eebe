package conformance

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/mouth"
)

func TestGoAndCAgreeOnEnds(t *testing.T) {
	w := newTwins(t, 8192, 128)
	a, b := arena_c.EndsInit(at(w.a), w.size()), arena_c.EndsInit(at(w.b), w.size())
	for range rounds() {
		tag, size, mask := w.tag(a.Linear.Tag()), w.amount(), w.mask()
		switch w.random.IntN(12) {
		default:
			w.same("BumpFar", a.BumpFar(tag, size, mask), mouth.BumpFar(b, tag, size, mask))
		case 0, 1, 2:
			p, _ := a.Linear.Bump(tag+size, size, mask)
			w.same("Bump", p, mouth.Bump(&b.Linear, tag+size, size, mask))
		case 3:
			mark, farMark := mouth.Marks(b)
			require.Equal(t, mark, a.Mark())
			require.Equal(t, farMark, a.MarkFar())
			w.sameBytes("marks")
		case 4:
			mark := a.Linear.Start + w.random.Uint64N(a.FarEnd.Mark-a.Linear.Start+2)
			require.Equal(t, a.Rewind(tag, mark), b.Rewind(tag, mark))
			w.sameBytes("Rewind")
		case 5:
			mark := a.FarEnd.FarMark + w.random.Uint64N(a.FarEnd.End-a.FarEnd.FarMark+2)
			require.Equal(t, a.RewindFar(tag, mark), b.RewindFar(tag, mark))
			w.sameBytes("RewindFar")
		case 6:
			offset := a.Linear.Cursor - a.Linear.Start - w.random.Uint64N(min(a.Linear.Cursor-a.Linear.Start, 64)+1)
			old := a.Linear.Cursor - a.Linear.Start - offset
			p, q := a.Linear.At(a.Linear.Start+offset), b.Linear.At(b.Linear.Start+offset)
			require.Equal(t, a.Resize(tag, p, old, size), b.Resize(tag, q, old, size))
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
	a, b := arena_c.StackInit(at(w.a), w.size()), arena_c.StackInit(at(w.b), w.size())
	var live [2][]uint64
	for range rounds() {
		end := w.random.IntN(2)
		if n := len(live[end]); n > 0 && w.random.IntN(5) < 2 {
			offset := live[end][n-1]
			live[end] = live[end][:n-1]
			pop := []func(*arena_c.Stack, unsafe.Pointer) arena_c.Code{(*arena_c.Stack).Free, (*arena_c.Stack).FreeFar}[end]
			require.Equal(t, arena_c.OK, pop(a, unsafe.Add(at(w.a), offset)))
			require.Equal(t, arena_c.OK, pop(b, unsafe.Add(at(w.b), offset)))
			w.sameBytes("pop")
			continue
		}
		tag, size, mask := w.tag(a.Linear.Tag()), w.amount(), w.mask()|15
		var p, q unsafe.Pointer
		if end == 0 {
			p, q = a.Push(tag, size, mask), mouth.Push(b, tag, size, mask)
		} else {
			p, q = a.PushFar(tag, size, mask), mouth.PushFar(b, tag, size, mask)
		}
		w.same("push", p, q)
		if p != nil {
			live[end] = append(live[end], address(p)-address(at(w.a)))
		}
	}
}

func TestGoAndCAgreeOnHandles(t *testing.T) {
	w := newTwins(t, 4096, 64)
	a, b := arena_c.HandlesMake(at(w.a), w.size(), 24, 8), arena_c.HandlesMake(at(w.b), w.size(), 24, 8)
	w.control = int(address(a.Pool.Chunk(0)) - address(at(w.a))) // generations and states lie between the header and chunk 0
	given := []uint64{0, 1<<64 - 1, 1<<32 | a.Pool.Count(), 7 << 32}
	for range rounds() {
		tag := w.tag(a.Pool.Tag())
		handle := given[w.random.IntN(len(given))]
		switch w.random.IntN(4) {
		default:
			p, got := arena_c.GetHandle[[3]uint64](a, tag)
			q, want := mouth.GetHandle(b, tag)
			if q != nil {
				arena_c.Zero(q, 24)
			}
			require.Equal(t, want, got, "seed %d, step %d", w.seed, w.step)
			w.same("GetHandle", unsafe.Pointer(p), q)
			if got != 0 {
				given = append(given, got)
			}
		case 0:
			w.same("ChunkOf", a.ChunkOf(tag, handle), mouth.ChunkOf(b, tag, handle))
		case 1, 2:
			if w.random.IntN(50) == 0 { // the last generation, before 1 again
				index := w.random.Uint64N(a.Pool.Count())
				*a.Generation(index), *b.Generation(index) = 1<<32-1, 1<<32-1
				given = append(given, a.Name(index))
			}
			require.Equal(t, mouth.PutHandle(b, tag, handle), a.PutHandle(tag, handle), "seed %d, step %d", w.seed, w.step)
			w.sameBytes("PutHandle")
		}
	}
}
