package container

import (
	"fmt"
	"iter"
	"math"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/stack"
)

// List is a list of at most n values of T in contiguous memory. It takes 8 bytes, and n times the
// size of T. A value moves only when RemoveSwap fills a gap with the last value.
type List[T any] struct {
	_    stack.NoCopy
	life life
	listed[T]
	kept  kept
	moves uint64            // calls of RemoveSwap
	on    arena.Reallocator // the heap of its bytes; nil: a scope's
}

// listed is the contents of a list's bytes.
type listed[T any] struct {
	used  *uint64 // number of values
	items []T     // n values, the first used of them live
}

func layList[T any](bytes []byte, n int) listed[T] {
	return listed[T]{&cut[uint64](&bytes, 1)[0], cut[T](&bytes, n)}
}

func (l listed[T]) look() error {
	if n := uint64(len(l.items)); *l.used > n {
		return fmt.Errorf("%d values, of %d at most", *l.used, n)
	}
	return nil
}

// NewList returns an empty list for up to n values in s. A full scope unwinds. NewList panics if s
// isn't the topmost scope or n is negative. Cost: O(n), to zero the bytes.
func NewList[T any](s scope.Scope, values scope.Maker[T], n int) List[T] {
	check("List", n, math.MaxInt, "values", declared(values))
	bytes := take[List[T]](s, listSize[T](n))
	list, kept := layList[T](bytes, n), keptIn(s)
	if kept {
		look := func(image []byte) error { return layList[T](image, n).look() }
		convert := func(image, old []byte, count, _ uint64) (place, func() error, error) {
			return layList[T](image, n).convert(old, count)
		}
		note[List[T]](s, bytes, look, convert, valuesAt("values", bytes, list.items))
	}
	return List[T]{life: lifeOf(s), listed: list, kept: kept}
}

// NewListOn returns an empty list for up to n values on a heap. The heap is an arena.Heap or Buddy,
// or a Shared or Proxy of one. NewListOn returns false if the heap is full, and panics if n is
// negative. The list lives until Free, a Reset of the heap, or the end of the heap's scope. Cost:
// an Alloc of the heap, and the zeroing of the bytes; no Go allocation.
func NewListOn[T any](a arena.Reallocator, values scope.Maker[T], n int) (List[T], bool) {
	check("List", n, math.MaxInt, "values", declared(values))
	bytes, life, kept := takeOn(a, listSize[T](n))
	if bytes == nil {
		return List[T]{}, false
	}
	return List[T]{life: life, listed: layList[T](bytes, n), kept: kept, on: a}, true
}

// Free ends a list from NewListOn and frees its bytes. The list is then empty, as if its scope had
// closed. Free returns an error if the list was freed before, was made by NewList, or ended with
// the scope of its heap.
func (l *List[T]) Free() error { return l.life.end("List", l.on, unsafe.Pointer(l.used)) }

func listSize[T any](n int) uint64 { return wordSize + sizeOf[T](n) }

// In returns the list's contents in a snapshot from outside. It is for a function passed to
// State.Verify of package save, and v is the View that this function gets. Only read the result,
// and only until the function returns.
func (l *List[T]) In(v View) *List[T] {
	n := len(l.items)
	return &List[T]{life: l.life.began(), listed: layList[T](imageOf(v, l.used, listSize[T](n)), n)}
}

// Push appends x. It returns false if the list has n values. It panics after the scope has closed.
// Cost: two comparisons and the copy of x, inlined.
func (l *List[T]) Push(x T) bool {
	if !l.life.Alive() {
		panic(lifetime.Closed{Life: l.life.Life, What: "Push to a List"})
	}
	n := *l.used
	if n >= uint64(len(l.items)) {
		return false
	}
	l.items[n] = x
	*l.used = n + 1
	return true
}

// Pop removes and returns the last value. It returns false if the list is empty.
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

// At returns a pointer to the value at index i. If i is out of range, At panics as a slice does.
func (l *List[T]) At(i int) *T { return &l.live()[i] }

// Slice returns the values in place; cap is len. The slice is valid until a Pop, RemoveSwap, Clear
// or Free, or until the scope closes. In a state of package save, a Restore ends the slice as well.
func (l *List[T]) Slice() []T {
	items := l.live()
	return items[:len(items):len(items)]
}

// RemoveSwap removes the value at index i, and moves the last value to i. It panics if i is out of
// range. Cost: O(1).
func (l *List[T]) RemoveSwap(i int) {
	gap := l.At(i)
	last := len(l.live()) - 1
	*gap = *l.At(last)
	l.moves++
	l.Pop()
}

// Clear removes all values.
func (l *List[T]) Clear() {
	if items := l.live(); len(items) != 0 {
		gone(l.kept, items)
		*l.used = 0
	}
}

// Len returns the number of values.
func (l *List[T]) Len() int { return len(l.live()) }

// Cap returns n, or 0 after the scope closed.
func (l *List[T]) Cap() int { return cap(l.live()) }

// All ranges over the values in order. It includes values that Push adds during the loop, and skips
// values that Pop or Clear removes before their turn. If the loop calls RemoveSwap and goes on, All
// panics, because RemoveSwap may move a value to an index that the loop has passed. To remove
// values, count down from Len instead.
func (l *List[T]) All() iter.Seq2[int, *T] { return l.each }

func (l *List[T]) each(yield func(int, *T) bool) {
	moves := l.moves
	for i := 0; i < l.Len() && yield(i, l.At(i)); i++ {
		if l.moves != moves {
			panic(&scope.Misuse{Text: "RemoveSwap of a List while All ranges over it: it moves a value; count down " +
				"instead"})
		}
	}
}

// live returns the values, nil after the scope closed.
func (l *List[T]) live() []T {
	if !l.life.began().Alive() {
		return nil
	}
	return l.items[:min(*l.used, uint64(len(l.items)))]
}
