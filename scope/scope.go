package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Scope is a lifetime on an arena: what is made in it dies when it closes, in one move. Scopes of
// one arena nest, and only the topmost allocates; a covered, closed or stale scope refuses in the
// comparison that each allocation makes.
//
// A Scope is a small value; copy it freely. One goroutine at a time uses the scopes of one arena.
// The zero Scope is of no use: it panics, and says so where that costs nothing (see the package's doc).
type Scope struct {
	h   *arena_c.Scopes
	gen uint64
}

// key keeps the zero Maker out: one that was declared has it, and asks with a scope's generation; one
// that wasn't asks with one that differs by key, and all generations are below that.
const key = 1 << 63

// AllocUnzeroed gives size bytes aligned to align, a power of two up to 64, that hold anything.
// When the scope is full it unwinds to the enclosing Load or Do, which returns the error. Cost: that
// of the same bump in C (make bench), inlined.
func (s Scope) AllocUnzeroed(size, align uint64) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.Alloc(s.gen, size, align), size)
	}
	return s.h.Alloc(s.gen, size, align)
}

// Align is a power of two, by its exponent: Align(2) is 4.
type Align uint8

// The alignments that are asked for most with [Scope.AllocUnzeroedAs].
const (
	Align8  Align = 3
	Align16 Align = 4
	Align64 Align = 6
)

// AllocUnzeroedAs is AllocUnzeroed for an alignment that can't be wrong, which saves a look at one
// that isn't a constant. An Align above 64 aligns to less.
func (s Scope) AllocUnzeroedAs(size uint64, align Align) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.AllocMask(s.gen, size, 1<<(align%8)-1), size)
	}
	return s.h.AllocMask(s.gen, size, 1<<(align%8)-1)
}

// TryAllocUnzeroed is AllocUnzeroed that gives nil when the scope is full; the scope remembers
// ([Scope.Err]).
func (s Scope) TryAllocUnzeroed(size, align uint64) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.TryAlloc(s.gen, size, align), size)
	}
	return s.h.TryAlloc(s.gen, size, align)
}

// BytesUnzeroed gives n bytes that hold anything, aligned to align, a power of two up to 1 MiB: for
// who writes all of them, and, aligned to 64, for an arena of package arena to be made on. cap is len.
// They die with the scope. A full scope unwinds; a negative n, and any other align, panic. Cost: a
// call.
func (s Scope) BytesUnzeroed(n int, align uint64) []byte {
	checkAlign(align)
	if n < 0 {
		panic(bug("a slice of %d bytes", n))
	}
	p := s.take(uint64(n), align)
	if p == nil {
		panic(refusal(s))
	}
	return notedSlice(s, unsafe.Slice((*byte)(p), n))
}

// checkAlign refuses what is no alignment.
func checkAlign(align uint64) {
	if align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(bug("a slice aligned to %d: an align is a power of two up to 1 MiB", align))
	}
}

// take is the bump of everything whose size is worked out: one that no arena has is a full.
func (s Scope) take(size, align uint64) unsafe.Pointer {
	p, _ := s.its().Bump(s.gen, min(size, arena_c.OffsetMax), align-1)
	return p
}

// C gives the two words of an upfront_scope (arena_c/scope.h): the header of the arena and the
// generation of s. They are for C code that allocates in s or adds C finalizers to its chain, which
// run in their place among the others. Both are good as long as s is; afterwards C is refused. C may
// not close the scope of a load or of the frame. What the C code must be built with says package arena_c.
func (s Scope) C() (header unsafe.Pointer, generation uint64) {
	return unsafe.Pointer(s.its()), s.gen
}

// its is the header of s, for all but what must be inlined.
func (s Scope) its() *arena_c.Scopes {
	if s.h == nil {
		panic(zeroScope)
	}
	return s.h
}

// open says whether s may allocate: alive, and neither covered nor frozen.
func (s Scope) open() bool { return s.its().Gen == s.gen }

// alive says whether s is still open, be it covered or frozen.
func (s Scope) alive() bool { return s.its().Find(s.gen) != 0 }

func (s Scope) isTemp() bool { return s.h.Back != 0 }

// Free is the number of bytes that s could still allocate, 0 when it is covered, frozen or closed.
func (s Scope) Free() uint64 {
	if !s.open() {
		return 0
	}
	return s.h.Limit - s.h.Cursor
}

// refusal is what an operation panics with whose scope refused: the reason is worked out when somebody
// asks, so that a fast path has nothing to do.
func refusal(s Scope) arena_c.Refusal { return arena_c.Refusal{Arena: s.h, Gen: s.gen} }

// here is where s stands, apart from what is open in it.
func (s Scope) here() uint64 {
	depth := s.h.Find(s.gen)
	return s.h.Record(depth).Mark + s.h.Bytes(depth)
}

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
