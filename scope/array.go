package scope

import (
	"iter"

	"github.com/upfront-mem/upfront/arena_c"
)

// Array is a list of at most n values of T. It owns no byte of its scope until the first Push, or Reserve, takes n *
// size of T at once; they go back when the scope closes. Then there is nothing to read, and Push and Reserve panic.
//
// Don't copy an Array: pass a pointer. One goroutine at a time writes; while none does, many may read.
type Array[T any] struct{ room[T] }

// Array makes an empty array for up to n values in s. Cost: a few stores, no byte of the arena. A negative n and a
// closed scope panic.
func (m Maker[T]) Array(s Scope, n int) Array[T] {
	m.declared()
	return Array[T]{newRoom[T](s, n, 0, "an Array")}
}

// Push puts x behind the others. It is false when there are n already; also when the bytes are not taken yet and the
// scope has no room, or is covered: then the scope remembers ([Scope.Err]). In a frozen scope that panics. Cost: a few ns,
// the first O(n).
func (a *Array[T]) Push(x T) bool {
	if !a.fits("Push to an Array in") {
		return false
	}
	a.items[a.used] = x
	a.used++
	return true
}

// Reserve takes the bytes now: for play after the scope is covered or frozen, or before a Make in it, whose constructor
// may not take bytes for what is older than itself. It is false when the scope has no room or doesn't allocate.
func (a *Array[T]) Reserve() bool { return a.reserve("Reserve of an Array in") }

// Pop takes the last value away; false when there is none.
func (a *Array[T]) Pop() (last T, ok bool) {
	list := a.Slice()
	if len(list) == 0 {
		return last, false
	}
	a.used--
	last = list[a.used]
	gone(list[a.used:])
	return last, true
}

// At is the value at i, good until the scope closes or the value moves. It panics out of range, as a slice does.
func (a *Array[T]) At(i int) *T { return &a.Slice()[i] }

// Slice is the values, in place; cap is len. It is good until the next Pop, RemoveSwap or Clear, and no longer than the
// scope is open.
func (a *Array[T]) Slice() []T {
	n := a.Len()
	return a.items[:n:n]
}

// RemoveSwap takes the value at i away and puts the last in its place: O(1), the order changes. It panics out of range.
func (a *Array[T]) RemoveSwap(i int) {
	gap := a.At(i)
	*gap, _ = a.Pop()
}

// Clear takes all values away and keeps the bytes.
func (a *Array[T]) Clear() {
	if arena_c.Race {
		gone(a.Slice())
	}
	a.used = 0
}

// All ranges over the values in order, also over those that Push adds meanwhile. Who removes while ranging counts down
// instead.
func (a *Array[T]) All() iter.Seq2[int, *T] { return a.each }

func (a *Array[T]) each(yield func(int, *T) bool) {
	for i := 0; i < a.Len() && yield(i, a.At(i)); i++ {
	}
}
