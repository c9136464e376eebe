package container

import (
	"fmt"
	"iter"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// List is a list of at most n values of T, in one piece, 8 + n * size of T bytes. A value moves
// only when RemoveSwap puts the last in a gap.
type List[T any] struct {
	_    noCopy
	life life
	listed[T]
	kept  kept
	moves uint64            // how often RemoveSwap ran
	on    arena.Reallocator // that has its bytes; nil: its scope has them
}

// listed is what lies in a list's bytes.
type listed[T any] struct {
	used  *uint64 // how many are in it
	items []T     // what is in it, and room for the rest
}

func layList[T any](bytes []byte, n int) listed[T] {
	return listed[T]{&cut[uint64](&bytes, 1)[0], cut[T](&bytes, n)}
}

// look refuses an image that no play leaves.
func (l listed[T]) look() error {
	if n := uint64(len(l.items)); *l.used > n {
		return fmt.Errorf("%d values, of %d at most", *l.used, n)
	}
	return nil
}

// NewList makes an empty list for up to n values in s. Cost: O(n), the zeroing. A full scope
// unwinds; a scope that is not the topmost, and a negative n, panic.
func NewList[T any](s scope.Scope, values scope.Maker[T], n int) List[T] {
	check("List", n, math.MaxInt, "values", declared(values))
	bytes := take[List[T]](s, listSize[T](n))
	list, kept := layList[T](bytes, n), keptIn(s)
	if kept {
		look := func(image []byte) error { return layList[T](image, n).look() }
		note[List[T]](s, bytes, look, valuesAt("values", bytes, list.items))
	}
	return List[T]{life: lifeOf(s), listed: list, kept: kept}
}

// NewListOn makes an empty list for up to n values on a heap: an arena.Heap or Buddy, or a Shared or Proxy before one. It is
// false when that is full. Free gives the bytes back; else the list ends with the scope that the heap lies in. A negative n
// panics. Cost: that of Alloc, and the zeroing; no Go allocation.
func NewListOn[T any](a arena.Reallocator, values scope.Maker[T], n int) (List[T], bool) {
	check("List", n, math.MaxInt, "values", declared(values))
	bytes, life, kept := takeOn(a, listSize[T](n))
	if bytes == nil {
		return List[T]{}, false
	}
	return List[T]{life: life, listed: layList[T](bytes, n), kept: kept, on: a}, true
}

// Free ends a list that NewListOn made, and gives its bytes back: it is empty then, as after its scope closed. One that was
// freed, that lies in a scope itself, or whose heap's scope is closed, is refused with an error.
func (l *List[T]) Free() error { return l.life.end("List", l.on, unsafe.Pointer(l.used)) }

func listSize[T any](n int) uint64 { return wordSize + sizeOf[T](n) }

// In is the list as a snapshot from outside has it, for a function of State.Verify in package save:
// v is its View. It is to be read, and good until the function returns.
func (l *List[T]) In(v View) *List[T] {
	n := len(l.items)
	return &List[T]{life: l.life.began(), listed: layList[T](imageOf(v, l.used, listSize[T](n)), n)}
}

// Push puts x behind the others. It is false when n values are in it. Cost: two comparisons and the
// copy of x, inlined.
func (l *List[T]) Push(x T) bool {
	if !l.life.alive() {
		panic(closed{l.life, "Push to a List"})
	}
	n := *l.used
	if n >= uint64(len(l.items)) {
		return false
	}
	l.items[n] = x
	*l.used = n + 1
	return true
}

// Pop takes the last value away. It is false when the list is empty.
func (l *List[T]) Pop() (last T, ok bool) {
	items := l.live()
	if len(items) == 0 {
		return last, false
	}
	n := len(items) - 1
	last = items[n]
	gone(l.kept, items[n:])
	*l.used = uint64(n)
	return last, true
}

// At is the value at i, in place. It panics out of range, as a slice does.
func (l *List[T]) At(i int) *T { return &l.live()[i] }

// Slice is the values, in place; cap is len. It is good until Pop, RemoveSwap or Clear, and no
// longer than the scope is open. In a state, a Restore ends it too.
func (l *List[T]) Slice() []T {
	items := l.live()
	return items[:len(items):len(items)]
}

// RemoveSwap takes the value at i away and puts the last in its place: the order changes. It panics
// out of range. Cost: O(1).
func (l *List[T]) RemoveSwap(i int) {
	gap := l.At(i)
	last := len(l.live()) - 1
	*gap = *l.At(last)
	l.moves++
	l.Pop()
}

// Clear takes all values away.
func (l *List[T]) Clear() {
	if items := l.live(); len(items) != 0 {
		gone(l.kept, items)
		*l.used = 0
	}
}

// Len is the number of values in it.
func (l *List[T]) Len() int { return len(l.live()) }

// Cap is n, the number of values that there may be.
func (l *List[T]) Cap() int { return cap(l.live()) }

// All ranges over the values in order, also over those that Push adds meanwhile; a value that Pop or
// Clear takes away before its turn is not shown. RemoveSwap would move a value past the loop, so the
// loop panics if it goes on after one: count down from Len instead.
func (l *List[T]) All() iter.Seq2[int, *T] { return l.each }

func (l *List[T]) each(yield func(int, *T) bool) {
	moves := l.moves
	for i := 0; i < l.Len() && yield(i, l.At(i)); i++ {
		if l.moves != moves {
			panic(&scope.Misuse{Text: "RemoveSwap of a List while All ranges over it: it moves a value; count down instead"})
		}
	}
}

// live is what is in the list: nothing once its scope is closed.
func (l *List[T]) live() []T {
	if !l.life.began().alive() {
		return nil
	}
	return l.items[:min(*l.used, uint64(len(l.items)))]
}
