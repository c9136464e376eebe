package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Scope is a lifetime on a linear arena: what is made in it dies when it closes, in one move. Scopes of one arena nest,
// and only the topmost allocates; a covered, closed or stale scope refuses in the same comparison that finds an arena
// full.
//
// A Scope is a small value; copy it freely. One goroutine at a time uses the scopes of one arena. The zero Scope is of
// no use.
type Scope struct {
	slot *arena_c.Linear
	tag  uint64 // the slot's generation, less key
}

// key keeps the zero Maker out. A Maker that was declared adds key and the size of its type to a scope's tag; one that
// wasn't adds 0, misses the generation by 2^63, and is refused by the comparison that is there anyway.
const key = 1 << 63

// generation is the whole of it, which the core calls the tag.
func (s Scope) generation() uint64 { return s.tag + key }

// Alloc gives size bytes aligned to align, a power of two up to 64 KiB. They are not zeroed. When the scope is full it
// unwinds to the enclosing Load or Do, which returns the error. On a temporary scope only the piece at hand counts (see
// [Scope.Temp]). Cost: that of the same bump in C (make bench), inlined.
func (s Scope) Alloc(size, align uint64) unsafe.Pointer {
	if arena_c.Crossing {
		return s.mustAlloc(size, align)
	}
	l := s.slot // arena_c's Bump again: by a call of it this would cost 84, and the inliner's budget is 80. A bad align: see TryAlloc
	at := (l.Cursor + align - 1) & -align
	need := s.tag + key + min(size|-(align&(align-1))|-((align-1)>>16), badAsk)
	if l.Limit-need-at >= arena_c.OffsetMax {
		l.Refused = need
		panic(refusal(s))
	}
	l.Cursor = at + size
	l.Count += arena_c.Object + size
	return unsafe.Add(unsafe.Pointer(l), l.Origin+at)
}

func (s Scope) mustAlloc(size, align uint64) unsafe.Pointer {
	p := s.TryAlloc(size, align)
	if p == nil {
		panic(refusal(s))
	}
	return p
}

// TryAlloc is Alloc that gives nil when the scope is full; the scope remembers ([Scope.Err]).
func (s Scope) TryAlloc(size, align uint64) (p unsafe.Pointer) {
	// An align that nothing has shares a bit with the number before it, or is above 64 KiB: then the negative of one of these,
	// and with it what is asked for, is more than any arena has.
	p, _ = s.slot.Bump(s.tag+key+min(size|-(align&(align-1))|-((align-1)>>16), badAsk), size, align-1)
	return
}

// Bytes gives n zeroed bytes; cap is len.
func (s Scope) Bytes(n int) []byte {
	return makeSlice[byte](s, n, true)
}

// Block gives n bytes aligned to 64, for an arena of package arena to be made on; they are not zeroed. It dies with the
// scope. A full scope unwinds.
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

// take is the bump of everything that is no hit: it also takes new pieces for temporaries.
func (s Scope) take(size, align uint64) unsafe.Pointer {
	if size >= arena_c.OffsetMax {
		s.slot.Refused = s.generation() + tooMuch
		return nil
	}
	before := s.slot.Refused
	p, ok := s.slot.Bump(s.generation()+size, size, align-1)
	if !ok && s.growTemp(size, align, before) {
		p, _ = s.slot.Bump(s.generation()+size, size, align-1)
	}
	return p
}

// C gives the two words of an upfront_scope (arena_c/scope.h), for C code that allocates in s or adds C finalizers to its
// chain; they run in their place among the others. Both words are good as long as s is. What the C code must be built
// with says package arena_c.
func (s Scope) C() (slot unsafe.Pointer, tag uint64) { return unsafe.Pointer(s.slot), s.generation() }

// Open opens a scope in s and covers s until it closes. The name is for messages and reports. Cost: no byte of the arena;
// on a pad a few ns, and a lock of the budget while something loads; in regions and the frame, which count what scopes hold
// by name, tens, and for a name that is new in its place a look through the names. It unwinds as full when the arena's
// planned number of nested scopes (limits.scopes, 64 by default) is open; the scope of a load, or of the frame, is one of
// them.
func (s Scope) Open(name string) Scope {
	st := s.mayNest()
	st.mayOpen(name)
	return st.Open(name)
}

func (s Scope) mayNest() *Stack {
	if !s.open() || s.isTemp() {
		panic(s.misuse("Open in"))
	}
	return s.stack()
}

// open says whether s can allocate: live, and not covered.
func (s Scope) open() bool { return s.slot.Limit-s.generation()-1 < arena_c.OffsetMax }

// usable says whether s can allocate, if need be after a new piece for temporaries.
func (s Scope) usable() bool { return s.open() || s.canGrow() }

func (s Scope) isTemp() bool { return s.slot == s.slot.Row().Far() }

func (s Scope) stack() *Stack { return stackOf(s.slot.Row()) }

// Close runs the finalizers of s, newest first, then rewinds to where the scope was opened. Their errors come back
// joined, and with them what Err says. Closing a scope twice, or one that is covered, is refused with an error that says
// so, and changes nothing.
func (s Scope) Close() error {
	slot, row := s.slot, s.slot.Row()
	if !s.open() || slot.Index()+1 != row.Open || row.FarOf == row.Open || slot.Refused != 0 {
		return s.closeUnusual()
	}
	st := stackOf(row)
	if int(slot.Index()) < st.config.Base || st.eventful {
		return st.closeByUser(s)
	}
	if slot.Chain != 0 {
		var errs error
		st.unwindAndClose(slot, &errs)
		return errs
	}
	row.CloseScope()
	st.uncovered()
	return nil
}

// Do opens a scope, runs fn in it and closes it, whatever happens. A full in fn, of any scope, becomes the returned
// error, and so does one scope too many (see [Scope.Open]); other panics and Goexit unwind and go on. Errors of finalizers are
// joined to fn's.
func (s Scope) Do(name string, fn func(Scope) error) error {
	st := s.mayNest()
	if full := st.noPlace(name); full != nil {
		return full
	}
	return st.Open(name).do(fn)
}

// Err is what a Try... met last in s since it opened: a full, or the misuse of allocating while s was covered or
// frozen; or nil.
func (s Scope) Err() error {
	if s.slot.Tag() != s.generation() {
		return s.misuse("Err of")
	}
	return s.stack().err(s.slot)
}

// Free is the number of bytes that s could still allocate, 0 when it is covered, frozen or closed.
func (s Scope) Free() uint64 {
	if !s.open() {
		return 0
	}
	return s.slot.Limit - s.generation() - s.slot.Cursor
}
