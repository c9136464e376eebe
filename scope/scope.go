package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Scope is a lifetime on an arena: closing the scope runs its finalizers and frees all its memory
// at once. Scopes of one arena nest, and only the topmost allocates.
//
// A Scope is a small value; copy it freely. One goroutine at a time uses the scopes of one arena.
// The zero Scope panics and says that it is zero, except in inlined methods, which dereference nil.
//
// One comparison checks each allocation. The arena's header holds the generation of the scope that
// may allocate, and each Scope holds its own. Say level has generation 7 and inner, opened in it,
// has 8: the header holds 8, so New in level is refused. When inner closes, the header holds 7
// again. When level closes, the next scope in its place gets 9, and a kept copy of level is stale
// for ever. The header of a frozen arena, where no scope may allocate, holds 0: no scope's
// generation. Each open scope's record keeps its generation, so a covered or frozen scope is known
// to be alive.
type Scope struct {
	h   *arena_c.Scopes
	gen uint64
}

// key refuses the zero Maker without a comparison of its own. A declared Maker holds key and checks
// with the scope's generation; a zero Maker checks with a generation that is off by key, which no
// scope has.
const key = 1 << 63

// AllocUnzeroed returns size bytes of any content, aligned to align: a power of two up to 64. A
// full scope unwinds to the enclosing Load or Do, which returns the error. Cost: the same bump as
// in C (make bench), inlined.
func (s Scope) AllocUnzeroed(size, align uint64) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.Alloc(s.gen, size, align), size)
	}
	return s.h.Alloc(s.gen, size, align)
}

// Align is a power of two by its exponent: Align(2) is 4.
type Align uint8

// The usual alignments for [Scope.AllocUnzeroedAs].
const (
	Align8  Align = 3
	Align16 Align = 4
	Align64 Align = 6
)

// AllocUnzeroedAs is AllocUnzeroed with an align that is always valid, so a computed one needs no
// check. An Align above Align64 guarantees less than it says: Align(8) aligns to 1.
func (s Scope) AllocUnzeroedAs(size uint64, align Align) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.AllocMask(s.gen, size, 1<<(align%8)-1), size)
	}
	return s.h.AllocMask(s.gen, size, 1<<(align%8)-1)
}

// TryAllocUnzeroed is AllocUnzeroed, but returns nil if refused; see [Scope.Err] for the reason.
func (s Scope) TryAllocUnzeroed(size, align uint64) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.TryAlloc(s.gen, size, align), size)
	}
	return s.h.TryAlloc(s.gen, size, align)
}

// BytesUnzeroed returns n bytes of any content, aligned to align: a power of two up to 1 MiB; cap
// is len. Use it if you write each byte before you read it, or, aligned to 64, for the block of an
// arena of package arena. A full scope unwinds; a negative n and any other align panic. The bytes
// are freed with s. Cost: a call.
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

func checkAlign(align uint64) {
	if align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(bug("a slice aligned to %d: the alignment must be a power of two up to 1 MiB", align))
	}
}

// take allocates size bytes, or returns nil if s refuses. A size that exceeds every arena is
// refused as full, like any other.
func (s Scope) take(size, align uint64) unsafe.Pointer {
	p, _ := s.its().Bump(s.gen, min(size, arena_c.OffsetMax), align-1)
	return p
}

// C returns the two words of an upfront_scope (arena_c/scope.h): the arena's header and the
// generation of s. With them, C code allocates in s or adds finalizers to the chain of s, in order
// with the others. The words are valid while s is open; then C's calls are refused. C code may not
// close the scope of a load or of the frame. Package arena_c says how to build the C code.
func (s Scope) C() (header unsafe.Pointer, generation uint64) {
	return unsafe.Pointer(s.its()), s.gen
}

// its returns the header of s. Inlined functions read s.h themselves.
func (s Scope) its() *arena_c.Scopes {
	if s.h == nil {
		panic(zeroScope)
	}
	return s.h
}

// open reports whether s may allocate: it is alive, and neither covered nor frozen.
func (s Scope) open() bool { return s.its().Gen == s.gen }

// alive reports whether s is still open; it may be covered or frozen.
func (s Scope) alive() bool { return s.its().Find(s.gen) != 0 }

func (s Scope) isTemp() bool { return s.h.Back != 0 }

// Free returns the number of bytes that s can still allocate, 0 if it is covered, frozen or closed.
func (s Scope) Free() uint64 {
	if !s.open() {
		return 0
	}
	return s.h.Limit - s.h.Cursor
}

// refusal returns the value that an operation panics with when s refuses. The reason is worked out
// only when the panic is handled, so that a fast path does nothing for it.
func refusal(s Scope) arena_c.Refusal { return arena_c.Refusal{Arena: s.h, Gen: s.gen} }

// here returns the offset of the end of s, without the scopes that are open in it.
func (s Scope) here() uint64 {
	depth := s.h.Find(s.gen)
	return s.h.Record(depth).Mark + s.h.Bytes(depth)
}

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }
