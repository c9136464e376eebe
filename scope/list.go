package scope

import (
	"iter"
	"math"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// List gathers values whose number isn't known yet, in chunks. It allocates a new chunk when the
// last chunk is full. A List doesn't cover its scope, so several Lists may grow in one scope, with
// other allocations between. After its Push a value doesn't move. Slice copies the values to
// another scope, as a slice of the exact size.
//
// The first chunk takes at most 128 bytes. This limit doubles with each chunk, up to 8 KiB, but a
// chunk is large enough for at least one value. If the scope has fewer free bytes, the chunk is as
// large as the values that fit. If not even one value fits, Push unwinds. A chunk begins with a
// header of 16 bytes, rounded up to the alignment of T. No chunk is freed before the scope closes.
//
// Use a [Builder] for one list that stays where it is. A Builder copies no value, and takes no
// bytes except those of the values and their alignment. Use a List on a scratch arena, for several
// lists at once, or if there are other allocations between the values. Use a container.List for at
// most n values. It allocates the memory of n values at once.
//
// After its scope has closed, a List's Push, All and Slice panic. A List made inside a constructor
// that fails is freed. A List can't be part of a state of package save: make the List on scratch,
// and its Slice in the state. One goroutine at a time uses a List; don't copy a List.
type List[T any] struct {
	_           stack.NoCopy
	scope       Scope
	first, last *chunk
	tail        []T    // values of the last chunk, with its capacity
	before      int    // values in the chunks before it
	bytes       uint64 // of the last chunk
	made        uint64 // the scope's cursor when the List was made
}

// chunk is the header before the values of a chunk. It holds no address.
type chunk struct {
	next  uint64 // distance from this chunk to the next one
	count uint64 // capacity of the chunk, in values
}

// The sizes of chunks in bytes.
const (
	chunkMin = 128
	chunkMax = 8 << 10
)

// List returns an empty List in s, which must be the topmost scope. The List takes no byte before
// the first Push.
func (m Maker[T]) List(s Scope) List[T] {
	m.declared()
	if !s.open() {
		panic(s.misuse("List in"))
	}
	return List[T]{scope: s, bytes: chunkMin / 2, made: s.h.Cursor}
}

// Push appends x. It unwinds if the scope is full. It also unwinds if the scope is covered or
// closed, even if the chunk has capacity left. Push panics if it must allocate a chunk while a
// constructor runs that is newer than the List (see [Maker.Make]). Cost: as much as the built-in
// append within capacity, a call, and the zeroing of chunks; no Go allocation, no call into C.
func (l *List[T]) Push(x T) {
	if !l.TryPush(x) {
		panic(refusal(l.scope))
	}
}

// TryPush is Push, but returns false where Push unwinds. [Scope.Err] then returns the reason.
func (l *List[T]) TryPush(x T) bool {
	if l.scope.h.Gen == l.scope.gen && len(l.tail) < cap(l.tail) || l.grow() {
		l.tail = append(l.tail, x)
		return true
	}
	return false
}

// front returns the size of a chunk's header, rounded up to the align of T.
func (l *List[T]) front() uint64 {
	return roundUp(uint64(unsafe.Sizeof(chunk{})), arena_c.AlignOf[T]())
}

func (l *List[T]) grow() bool {
	s, front, size := l.scope, l.front(), uint64(unsafe.Sizeof(*new(T)))
	align := max(arena_c.AlignOf[T](), 8)
	if !s.open() {
		s.take(front+size, align) // so that s remembers the refusal
		return false
	}
	if stack.Watching(s.h) != nil {
		panic(stack.Misusef("Push to a List in a state: make the List on scratch, and its Slice in the state"))
	}
	stack.MayGrow(s.h, s.gen, l.made, "Push inside a constructor to a List")
	bytes, count := min(2*l.bytes, chunkMax), uint64(math.MaxInt) // of a T of no bytes
	if size != 0 {
		room := uint64(0)
		from := uint64(uintptr(unsafe.Pointer(s.h)))
		if at := roundUp(from+s.h.Cursor, align) - from + front; at < s.h.Limit {
			room = s.h.Limit - at
		}
		count = max(min(bytes-min(front, bytes), room)/size, 1)
	}
	taken := front + count*size
	p := s.take(taken, align)
	if p == nil {
		return false
	}
	arena_c.Zero(p, uintptr(taken))
	notedSlice(s, unsafe.Slice((*byte)(p), taken))
	if arena_c.Checked {
		arena_c.NoteType(p, reflect.TypeFor[List[T]]().String())
	}
	c := (*chunk)(p)
	c.count = count
	if l.last == nil {
		l.first = c
	} else {
		l.last.next = s.h.Offset(p) - s.h.Offset(unsafe.Pointer(l.last))
	}
	l.before += len(l.tail)
	l.last, l.bytes = c, bytes
	l.tail = unsafe.Slice((*T)(unsafe.Add(p, front)), count)[:0]
	return true
}

// Len returns the number of values.
func (l *List[T]) Len() int { return l.before + len(l.tail) }

// All ranges over the values and their indexes, in order and in place. The loop includes values
// that Push appends during the loop. The scope may be covered. All panics if the scope is closed,
// even if it closes between two values. Cost: a call for each value; no Go allocation.
func (l *List[T]) All() iter.Seq2[int, *T] { return l.each }

func (l *List[T]) each(yield func(int, *T) bool) {
	alive, n := l.alive("All of"), 0
	for c := l.first; c != nil; c = l.after(c) {
		for i, values := 0, l.in(c); ; i++ {
			if i == len(values) {
				if values = l.in(c); i == len(values) {
					break
				}
			}
			if !yield(n, &values[i]) {
				return
			}
			n++
			if alive.Gen != l.scope.gen {
				l.alive("All of")
			}
		}
	}
}

// Slice copies the values into the scope named into, and returns the copy; cap is len. That scope
// may be the List's own scope. Slice unwinds if the scope is full. The List stays as it is. Cost:
// the copy; no Go allocation, no call into C.
func (l *List[T]) Slice(into Scope) []T {
	l.alive("Slice of")
	n := l.Len()
	p := into.take(sizeOf[T](n), arena_c.AlignOf[T]())
	if p == nil {
		panic(refusal(into))
	}
	list := notedSlice(into, unsafe.Slice((*T)(p), n))
	rest := list
	for c := l.first; c != nil; c = l.after(c) {
		rest = rest[copy(rest, l.in(c)):]
	}
	return list
}

// alive returns the record of the List's scope, or panics if the scope is closed.
func (l *List[T]) alive(what string) *arena_c.Record {
	depth := l.scope.its().Find(l.scope.gen)
	if depth == 0 {
		panic(l.scope.misuse(what + " a List in"))
	}
	return l.scope.h.Record(depth)
}

func (l *List[T]) in(c *chunk) []T {
	if c == l.last {
		return l.tail
	}
	return unsafe.Slice((*T)(unsafe.Add(unsafe.Pointer(c), l.front())), c.count)
}

func (l *List[T]) after(c *chunk) *chunk {
	if c == l.last {
		return nil
	}
	h := l.scope.h
	return (*chunk)(h.At(h.Offset(unsafe.Pointer(c)) + c.next))
}
