package scope

import (
	"iter"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// List is what has no known size yet: a loader fills one on a pad, then copies it, whole, to where it belongs. The
// values lie in blocks of about 1 KiB, or of one value if that is larger, and never move. An empty List owns no byte of
// its scope. When the scope closes there is nothing to read, and New, Append and Copy panic.
//
// Don't copy a List by value: pass a pointer, or Copy it. One goroutine at a time writes; while none does, many may
// read.
type List[T any] struct {
	_     noCopy
	scope Scope
	first uint64  // place of the first chunk, each: a word with the place of the next, then values
	last  *uint64 // the word of the last chunk
	free  []T     // its values that are not in use yet, zeroed
	used  int
	made  uint64 // constructors that had begun when it was made
}

const chunkSize = 1024

// List makes an empty list in s, most often a scope of a pad. Cost: a few stores, no byte of the arena. A closed scope
// panics.
func (m Maker[T]) List(s Scope) List[T] {
	m.declared()
	if !s.lives() {
		panic(s.misuse("a List in"))
	}
	return List[T]{scope: s, made: s.constructors()}
}

// New gives a zeroed T behind the others. Its address stays until the scope closes. A full scope unwinds; a covered one
// is refused at once, also while the last block has room. Cost: a few ns, and the zeroing.
func (l *List[T]) New() *T {
	x := l.TryNew()
	if x == nil {
		panic(refusal(l.scope))
	}
	return x
}

// TryNew is New that gives nil; the scope remembers ([Scope.Err]).
func (l *List[T]) TryNew() *T {
	if !l.fits() {
		return nil
	}
	x := &l.free[0]
	l.free = l.free[1:]
	l.used++
	return x
}

// Append puts copies of xs behind the others. A full scope unwinds; what fitted before stays.
func (l *List[T]) Append(xs ...T) {
	for len(xs) > 0 {
		if !l.fits() {
			panic(refusal(l.scope))
		}
		n := copy(l.free, xs)
		xs, l.free = xs[n:], l.free[n:]
		l.used += n
	}
}

// Copy gives all values in one piece of s, which may be any scope that allocates; cap is len. One allocation; full
// unwinds.
func (l *List[T]) Copy(s Scope) []T {
	if !l.scope.lives() {
		panic(l.scope.misuse("Copy of a List in"))
	}
	if l.scope.lost(l.made) {
		panic(constructorFailed("Copy of a List in", l.scope))
	}
	var zero T
	p := s.take(uint64(l.used)*uint64(unsafe.Sizeof(zero)), arena_c.AlignOf[T]())
	if p == nil {
		panic(refusal(s))
	}
	list := unsafe.Slice((*T)(p), l.used)
	link := &l.first
	for rest := list; len(rest) > 0; {
		var values []T
		values, link = l.chunk(*link)
		rest = rest[copy(rest, values):]
	}
	return list
}

// Len is the number of values, 0 when the scope is closed.
func (l *List[T]) Len() int {
	if !l.scope.lives() || l.scope.lost(l.made) {
		return 0
	}
	return l.used
}

// All ranges over the values in order, also over those that New adds meanwhile.
func (l *List[T]) All() iter.Seq2[int, *T] { return l.each }

func (l *List[T]) each(yield func(int, *T) bool) {
	link := &l.first
	var values []T
	for i := 0; i < l.Len(); i++ {
		if len(values) == 0 {
			values, link = l.chunk(*link)
		}
		if !yield(i, &values[0]) {
			return
		}
		values = values[1:]
	}
}

// fits says whether there is room for one value more, and takes a new chunk when there is none. A scope that is covered
// refuses at once, not only when the chunk is full.
func (l *List[T]) fits() bool {
	if l.scope.lives() && l.scope.lost(l.made) {
		panic(constructorFailed("New in a List in", l.scope))
	}
	if len(l.free) > 0 && l.scope.usable() {
		return true
	}
	if !l.scope.lives() {
		panic(l.scope.misuse("New in a List in"))
	}
	l.scope.mayTake(l.made)
	var zero T
	front, count := chunkOf[T]()
	size := front + count*uint64(unsafe.Sizeof(zero))
	p := l.scope.take(size, max(8, arena_c.AlignOf[T]()))
	if p == nil {
		return false
	}
	arena_c.Zero(p, uintptr(size))
	place := l.scope.slot.Offset(p)
	if l.last == nil {
		l.first = place
	} else {
		*l.last = place
	}
	l.free, l.last = l.chunk(place)
	return true
}

// chunk is the values of the chunk at a place, used or not, and the word that leads to the next.
func (l *List[T]) chunk(place uint64) (values []T, link *uint64) {
	front, count := chunkOf[T]()
	p := l.scope.slot.At(place)
	return unsafe.Slice((*T)(unsafe.Add(p, front)), count), (*uint64)(p)
}

// chunkOf is the shape of the chunks: where the values begin, and how many there are.
func chunkOf[T any]() (front, count uint64) {
	var zero T
	front = max(8, arena_c.AlignOf[T]())
	return front, max(1, (chunkSize-front)/max(1, uint64(unsafe.Sizeof(zero))))
}
