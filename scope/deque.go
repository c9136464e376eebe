package scope

import (
	"iter"

	"github.com/upfront-mem/upfront/arena_c"
)

// Deque is a queue with two ends for at most n values of T, in a ring. It owns no byte of its scope until the first
// push, or Reserve, takes n * size of T at once; they go back when the scope closes. Then there is nothing to read, and
// pushes and Reserve panic.
//
// Don't copy a Deque: pass a pointer. One goroutine at a time writes; while none does, many may read.
type Deque[T any] struct {
	room[T]
	front uint // where the first value lies in the ring
}

// Deque makes an empty deque for up to n values in s. Cost: a few stores, no byte of the arena. A negative n and a
// closed scope panic.
func (m Maker[T]) Deque(s Scope, n int) Deque[T] {
	m.declared()
	return Deque[T]{room: newRoom[T](s, n, 0, "a Deque")}
}

// PushBack puts x behind the last. It is false when there are n already; also when the bytes are not taken yet and the
// scope has no room, or is covered: then the scope remembers ([Scope.Err]). In a frozen scope that panics. Cost: a few ns,
// the first O(n).
func (d *Deque[T]) PushBack(x T) bool {
	if !d.fits("PushBack to a Deque in") {
		return false
	}
	d.items[d.place(d.used)] = x
	d.used++
	return true
}

// PushFront puts x before the first. It is false as PushBack is.
func (d *Deque[T]) PushFront(x T) bool {
	if !d.fits("PushFront to a Deque in") {
		return false
	}
	d.front = d.place(d.limit - 1)
	d.items[d.front] = x
	d.used++
	return true
}

// Reserve takes the bytes now: for play after the scope is covered or frozen, or before a Make in it, whose constructor
// may not take bytes for what is older than itself. It is false when the scope has no room or doesn't allocate.
func (d *Deque[T]) Reserve() bool { return d.reserve("Reserve of a Deque in") }

// PopBack takes the last value away; false when there is none.
func (d *Deque[T]) PopBack() (last T, ok bool) {
	if d.Len() == 0 {
		return last, false
	}
	d.used--
	at := d.place(d.used)
	last = d.items[at]
	gone(d.items[at : at+1])
	return last, true
}

// PopFront takes the first value away; false when there is none.
func (d *Deque[T]) PopFront() (first T, ok bool) {
	if d.Len() == 0 {
		return first, false
	}
	first = d.items[d.front]
	gone(d.items[d.front : d.front+1])
	d.front = d.place(1)
	d.used--
	return first, true
}

// At is the value at i, counted from the front, good until it is popped or the scope closes. It panics out of range, as
// a slice does.
func (d *Deque[T]) At(i int) *T {
	_ = d.items[:d.Len()][i]
	return &d.items[d.place(i)]
}

// Clear takes all values away and keeps the bytes.
func (d *Deque[T]) Clear() {
	if arena_c.Race && d.Len() > 0 {
		gone(d.items)
	}
	d.used = 0
}

// All ranges over the values from front to back, also over those that PushBack adds meanwhile.
func (d *Deque[T]) All() iter.Seq2[int, *T] { return d.each }

func (d *Deque[T]) each(yield func(int, *T) bool) {
	for i := 0; i < d.Len() && yield(i, d.At(i)); i++ {
	}
}

// place is where in the ring what is i behind the front lies. pre: i <= limit.
func (d *Deque[T]) place(i int) uint {
	at, end := uint(d.front)+uint(i), uint(d.limit)
	if at >= end {
		at -= end
	}
	return at
}
