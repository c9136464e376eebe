package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Scope is a lifetime on an arena: what is made in it dies when it closes, in one move. Scopes of
// one arena nest, and only the topmost allocates; a covered, closed or stale scope refuses in the
// comparison that each allocation makes.
//
// A Scope is a small value; copy it freely. One goroutine at a time uses the scopes of one arena.
// The zero Scope is of no use.
type Scope struct {
	h   *arena_c.Scopes
	gen uint64
}

// key keeps the zero Maker out: one that was declared has it, and asks with a scope's generation; one
// that wasn't asks with one that differs by key, and all generations are below that.
const key = 1 << 63

// Alloc gives size bytes aligned to align, a power of two up to 64 ([Scope.AllocAligned] goes on to
// 1 MiB). They are not zeroed. When the scope is full it unwinds to the enclosing Load or Do, which
// returns the error. Cost: that of the same bump in C (make bench), inlined.
func (s Scope) Alloc(size, align uint64) unsafe.Pointer { return s.h.Alloc(s.gen, size, align) }

// Align is a power of two, by its exponent.
type Align uint8

// The alignments of [Scope.AllocAs].
const (
	Align1 Align = iota
	Align2
	Align4
	Align8
	Align16
	Align32
	Align64
)

// AllocAs is Alloc for an alignment that can't be wrong, which saves a look at it. An Align that is none of
// these constants aligns to 64 at most.
func (s Scope) AllocAs(size uint64, align Align) unsafe.Pointer {
	return s.h.AllocMask(s.gen, size, 1<<(align%8)-1)
}

// TryAlloc is Alloc that gives nil when the scope is full; the scope remembers ([Scope.Err]).
func (s Scope) TryAlloc(size, align uint64) unsafe.Pointer {
	return s.h.TryAlloc(s.gen, size, align)
}

// AllocAligned is Alloc for an align up to 1 MiB. Cost: a call.
func (s Scope) AllocAligned(size, align uint64) unsafe.Pointer {
	if align == 0 || align&(align-1) != 0 || align > arena_c.AlignMax {
		panic(&Misuse{fmt.Sprintf("AllocAligned to %d: an align is a power of two up to 1 MiB", align), false})
	}
	p := s.take(size, align)
	if p == nil {
		panic(refusal(s))
	}
	return p
}

// Bytes gives n zeroed bytes; cap is len.
func (s Scope) Bytes(n int) []byte {
	return makeSlice[byte](s, n, true)
}

// Block gives n bytes aligned to 64, for an arena of package arena to be made on; they are not
// zeroed. It dies with the scope. A full scope unwinds.
func (s Scope) Block(n int) []byte {
	if n < 0 {
		panic(&Misuse{fmt.Sprintf("a block of %d bytes", n), false})
	}
	p := s.take(uint64(n), arena_c.LineSize)
	if p == nil {
		panic(refusal(s))
	}
	return unsafe.Slice((*byte)(p), n)
}

// take is the bump of everything whose size is worked out: one that no arena has is a full.
func (s Scope) take(size, align uint64) unsafe.Pointer {
	p, _ := s.h.Bump(s.gen, min(size, arena_c.OffsetMax), align-1)
	return p
}

// C gives the two words of an upfront_scope (arena_c/scope.h): the header of the arena and the
// generation of s. They are for C code that allocates in s or adds C finalizers to its chain, which
// run in their place among the others. Both are good as long as s is; afterwards C is refused. C may
// not close the scope of a load or of the frame. What the C code must be built with says package arena_c.
func (s Scope) C() (header unsafe.Pointer, generation uint64) {
	return unsafe.Pointer(s.h), s.gen
}

// Open opens a scope in s and covers s until it closes. The name is for messages and reports. Cost:
// no byte of the arena; on a scratch arena a few ns; in regions and the frame, which count what scopes hold by
// name, tens, and for a name that is new in its place a look through the names. It unwinds as full
// when the arena's planned number of nested scopes (limits.scopes, 64 by default) is open; the scope
// of a load, or of the frame, is one of them.
func (s Scope) Open(name string) Scope { return s.mayNest().Open(name) }

func (s Scope) mayNest() *Stack {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Open in"))
	}
	return stackOf(s.h)
}

// open says whether s may allocate: alive, and neither covered nor frozen.
func (s Scope) open() bool { return s.h.Gen == s.gen }

// alive says whether s is still open, be it covered or frozen.
func (s Scope) alive() bool { return s.h.Find(s.gen) != 0 }

func (s Scope) isTemp() bool { return s.h.Back != 0 }

// Close runs the finalizers of s, newest first, then rewinds to where the scope was opened. Their
// errors come back joined, and with them what Err says. Closing a scope twice, or one that is
// covered, is refused with an error that says so, and changes nothing.
func (s Scope) Close() error {
	h := s.h
	if h.Gen != s.gen || h.Odd|h.Asked|h.Misused != 0 || h.Depth <= h.Base {
		return s.closeLong()
	}
	r := h.Top()
	if h.Chain != r.Chain {
		return stackOf(h).closeTop(h)
	}
	h.Close(r)
	return nil
}

// closeLong is Close of a scope that may not allocate, is its owner's, remembers something, or lies
// on an arena that is out of the ordinary.
func (s Scope) closeLong() error {
	h, st := s.h, stackOf(s.h)
	if !s.open() || st == nil || h.Depth <= h.Base {
		return s.misuse("Close of")
	}
	st.settle(h)
	met := st.tell(h, h.Depth)
	return joined(met, st.closeTop(h))
}

// Do opens a scope, runs fn in it and closes it, whatever happens. A full in fn, of any scope,
// becomes the returned error, and so does one scope too many (see [Scope.Open]); other panics and
// Goexit unwind and go on. Errors of finalizers are joined to fn's.
func (s Scope) Do(name string, fn func(Scope) error) error { return s.mayNest().do(name, fn) }

// Err is what a Try... met last in s since it opened: a full, or the misuse of allocating while s was
// covered or frozen; or nil.
func (s Scope) Err() error {
	st, depth := stackOf(s.h), s.h.Find(s.gen)
	if st == nil || depth == 0 {
		return s.misuse("Err of")
	}
	st.settle(s.h)
	return st.met(s.h, depth)
}

// Free is the number of bytes that s could still allocate, 0 when it is covered, frozen or closed.
func (s Scope) Free() uint64 {
	if !s.open() {
		return 0
	}
	return s.h.Limit - s.h.Cursor
}
