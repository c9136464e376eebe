package scope

import (
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Scope is a lifetime on an arena: closing the scope runs its finalizers and frees all its memory
// at once. Scopes of one arena nest, and only the topmost allocates; temporaries ([Scope.Temp]) are
// apart.
//
// A Scope is a small value; copy it freely. One goroutine at a time uses the scopes of one arena.
// Methods of the zero Scope panic and say that the Scope is zero, except inlined methods, which
// dereference nil.
//
// One comparison checks each allocation. The arena's header holds the generation of the scope that
// may allocate, and each Scope holds its own generation. For example, a scope level has generation
// 7, and a scope inner, opened in level, has generation 8. The header then holds 8, so New in level
// is refused. When inner closes, the header holds 7 again. When level closes, the next scope gets
// generation 9, and each kept copy of level is refused for ever. In a frozen arena, where no scope
// may allocate, the header holds 0, which is no scope's generation. Each open scope has a record
// with its generation, so a covered or frozen scope is known to be alive.
type Scope struct {
	h   *arena_c.Scopes
	gen uint64
}

// AllocUnzeroed returns size bytes of any content. They are aligned to align, which is a power of
// two up to 64. If s is full, AllocUnzeroed unwinds to the enclosing Load or Do, which returns the
// error. Cost: the same increment of an offset as in C (make bench), inlined.
func (s Scope) AllocUnzeroed(size, align uint64) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.Alloc(s.gen, size, align), size)
	}
	return s.h.Alloc(s.gen, size, align)
}

// AlignMask is an alignment, which is a power of two, less one: AlignMask(3) aligns to 4 bytes.
type AlignMask uint8

// The usual alignments for [Scope.AllocUnzeroedAs].
const (
	Align8  AlignMask = 7
	Align16 AlignMask = 15
	Align64 AlignMask = 63
)

// AllocUnzeroedAs is AllocUnzeroed with an AlignMask. A computed mask costs no check: a mask that
// isn't a power of two less one, or is above Align64, aligns to less, and takes at most 255 bytes
// more.
func (s Scope) AllocUnzeroedAs(size uint64, mask AlignMask) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.AllocMask(s.gen, size, uint64(mask)), size)
	}
	return s.h.AllocMask(s.gen, size, uint64(mask))
}

// TryAllocUnzeroed is AllocUnzeroed, but returns nil where AllocUnzeroed unwinds. [Scope.Err] then
// returns the reason.
func (s Scope) TryAllocUnzeroed(size, align uint64) unsafe.Pointer {
	if arena_c.Checked {
		return notedBytes(s, s.h.TryAlloc(s.gen, size, align), size)
	}
	return s.h.TryAlloc(s.gen, size, align)
}

// BytesUnzeroed returns n bytes of any content; cap is len. They are aligned to align, which is a
// power of two up to 1 MiB. Use BytesUnzeroed if the program writes each byte before reading it,
// or, with an align of 64, for the bytes of an arena of package arena. A full scope unwinds.
// BytesUnzeroed panics if n is negative or align isn't valid. The bytes are freed with s. Cost: a
// call.
func (s Scope) BytesUnzeroed(n int, align uint64) []byte {
	checkAlign(align)
	if n < 0 {
		panic(stack.Misusef("a slice of %d bytes", n))
	}
	p := s.take(uint64(n), align)
	if p == nil {
		panic(refusal(s))
	}
	return notedSlice(s, unsafe.Slice((*byte)(p), n))
}

func checkAlign(align uint64) {
	if align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(stack.Misusef("a slice aligned to %d: the alignment must be a power of two up to 1 MiB", align))
	}
}

// take allocates size bytes, or returns nil if s refuses. A size that exceeds every arena is
// refused as full, like any other.
func (s Scope) take(size, align uint64) unsafe.Pointer {
	p, _ := s.its().Bump(s.gen, min(size, arena_c.OffsetMax), align-1)
	return p
}

// At returns the Scope of the generation gen at an end of an arena. It is for packages of this
// module that get these words from package stack.
func At(h *arena_c.Scopes, gen uint64) Scope { return Scope{h, gen} }

// C returns the two words of an upfront_scope (arena_c/scope.h): the arena's header and the
// generation of s. With these words, C code allocates in s, and adds finalizers to the chain of s,
// in order with the finalizers of Go. The words are valid while s is open. After s has closed, C's
// calls are refused. C code may not close the scope of a load or of the frame. Package arena_c
// describes how to build the C code.
func (s Scope) C() (header unsafe.Pointer, generation uint64) {
	return unsafe.Pointer(s.its()), s.gen
}

var zeroScope = stack.Misusef("a zero Scope: get one from budget.Load, Budget.Frame, or Open of a Scope or a Scratch")

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

// misuse returns the reason why s can't be used now.
func (s Scope) misuse(what string) error { return stack.MisuseOf(s.h, s.gen, what) }

// Free returns the number of bytes that s can still allocate, or 0 if s is covered, frozen or
// closed.
func (s Scope) Free() uint64 {
	if !s.open() {
		return 0
	}
	return s.h.Limit - s.h.Cursor
}

// refusal returns the value that an operation panics with when s refuses. The reason is worked out
// only when the panic is handled, so that a fast path does nothing for it.
func refusal(s Scope) arena_c.Refusal { return arena_c.Refusal{Arena: s.h, Gen: s.gen} }

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// sizeOf returns the size of n T in bytes, at most OffsetMax, which no arena has.
func sizeOf[T any](n int) uint64 {
	var zero T
	over, size := bits.Mul64(uint64(n), uint64(unsafe.Sizeof(zero)))
	if over != 0 || size >= arena_c.OffsetMax {
		return arena_c.OffsetMax
	}
	return size
}

// Checked builds note each allocation, with its type. In other builds these functions are empty.

func noted[T any](s Scope, x *T) *T {
	if arena_c.Checked && x != nil {
		stack.NoteValues(s.h, s.gen, unsafe.Pointer(x), uint64(unsafe.Sizeof(*x)), reflect.TypeFor[T]())
	}
	return x
}

func notedBytes(s Scope, p unsafe.Pointer, size uint64) unsafe.Pointer {
	if arena_c.Checked && p != nil {
		stack.NoteValues(s.h, s.gen, p, size, reflect.TypeFor[byte]())
	}
	return p
}

func notedSlice[T any](s Scope, list []T) []T {
	if arena_c.Checked {
		p := unsafe.Pointer(unsafe.SliceData(list))
		stack.NoteValues(s.h, s.gen, p, sizeOf[T](len(list)), reflect.TypeFor[T]())
	}
	return list
}

// notedMore notes that a list at first has grown: from a capacity of from elements to one of to.
func notedMore[T any](s Scope, first *T, from, to int) {
	if arena_c.Checked {
		stack.NoteMore(s.h, s.gen, unsafe.Pointer(first), sizeOf[T](from), sizeOf[T](to), reflect.TypeFor[T]())
	}
}
