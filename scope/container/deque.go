package container

import (
	"fmt"
	"iter"
	"math"

	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Deque is a double-ended queue of at most n values of T. A value doesn't move. The deque takes 16
// bytes, and a ring of n times the size of T.
type Deque[T any] struct {
	_    stack.NoCopy
	life life
	queued[T]
	kept kept
}

// queued is the contents of a deque's bytes.
type queued[T any] struct {
	ends *ends
	ring []T
}

type ends struct {
	front uint64 // index of the first value in the ring
	used  uint64 // number of values
}

func layDeque[T any](bytes []byte, n int) queued[T] {
	return queued[T]{&cut[ends](&bytes, 1)[0], cut[T](&bytes, n)}
}

func (q queued[T]) look() error {
	if n := uint64(len(q.ring)); q.ends.used > n || q.ends.front >= max(n, 1) {
		return fmt.Errorf("%d values from place %d on, in a ring of %d", q.ends.used, q.ends.front, n)
	}
	return nil
}

// NewDeque returns an empty deque for up to n values in s. A full scope unwinds. NewDeque panics if
// s isn't the topmost scope or n is negative. Cost: O(n), to zero the bytes.
func NewDeque[T any](s scope.Scope, values scope.Maker[T], n int) Deque[T] {
	check("Deque", n, math.MaxInt, "values", declared(values))
	bytes := take[Deque[T]](s, dequeSize[T](n))
	queue, kept := layDeque[T](bytes, n), keptIn(s)
	if kept {
		look := func(image []byte) error { return layDeque[T](image, n).look() }
		convert := func(image, old []byte, count, _ uint64) (place, func() error, error) {
			return layDeque[T](image, n).convert(old, count)
		}
		note[Deque[T]](s, bytes, look, convert, valuesAt("values", bytes, queue.ring))
	}
	return Deque[T]{life: lifeOf(s), queued: queue, kept: kept}
}

func dequeSize[T any](n int) uint64 { return words[ends](1) + sizeOf[T](n) }

// In returns the deque's contents in a snapshot from outside: see [List.In].
func (d *Deque[T]) In(v View) *Deque[T] {
	n := len(d.ring)
	return &Deque[T]{life: d.life.began(), queued: layDeque[T](imageOf(v, d.ends, dequeSize[T](n)), n)}
}

// PushBack adds x after the last value. It returns false if the deque has n values. It panics after
// the scope has closed. Cost: three comparisons and the copy of x, inlined.
func (d *Deque[T]) PushBack(x T) bool {
	if !d.life.Alive() {
		panic(lifetime.Closed{Life: d.life.Life, What: "PushBack to a Deque"})
	}
	ends, n := d.ends, uint64(len(d.ring))
	if ends.used >= n {
		return false
	}
	at := ends.front + ends.used // as in place, whose call is too much for the inliner
	if at >= n {
		at -= n
	}
	d.ring[at] = x
	ends.used++
	return true
}

// PushFront adds x before the first value. It returns false if the deque has n values. It panics
// after the scope has closed. Cost: as PushBack.
func (d *Deque[T]) PushFront(x T) bool {
	if !d.life.Alive() {
		panic(lifetime.Closed{Life: d.life.Life, What: "PushFront to a Deque"})
	}
	n := uint64(len(d.ring))
	if d.ends.used >= n {
		return false
	}
	at := d.ends.front
	if at == 0 {
		at = n
	}
	d.ring[at-1] = x
	d.ends.front = at - 1
	d.ends.used++
	return true
}

// PopBack removes and returns the last value. It returns false if the deque is empty.
func (d *Deque[T]) PopBack() (last T, ok bool) {
	n := d.Len()
	if n == 0 {
		return last, false
	}
	at := d.place(uint64(n - 1))
	last = d.ring[at]
	gone(d.kept, d.ring[at:at+1])
	d.ends.used = uint64(n - 1)
	return last, true
}

// PopFront removes and returns the first value. It returns false if the deque is empty.
func (d *Deque[T]) PopFront() (first T, ok bool) {
	n := d.Len()
	if n == 0 {
		return first, false
	}
	at := d.ends.front
	first = d.ring[at]
	gone(d.kept, d.ring[at:at+1])
	d.ends.front = d.place(1)
	d.ends.used = uint64(n - 1)
	return first, true
}

// At returns a pointer to the value at index i, counted from the front. If i is out of range, At
// panics as a slice does.
func (d *Deque[T]) At(i int) *T {
	_ = d.ring[:d.Len()][i]
	return &d.ring[d.place(uint64(i))]
}

// Clear removes all values.
func (d *Deque[T]) Clear() {
	if d.Len() > 0 {
		gone(d.kept, d.ring)
		d.ends.used = 0
	}
}

// Len returns the number of values.
func (d *Deque[T]) Len() int {
	if !d.life.began().Alive() {
		return 0
	}
	return int(min(d.ends.used, uint64(len(d.ring))))
}

// Cap returns n, or 0 after the scope closed.
func (d *Deque[T]) Cap() int {
	if !d.life.began().Alive() {
		return 0
	}
	return len(d.ring)
}

// All ranges over the values from front to back. The loop may push and pop at both ends. A value
// that is popped before its turn is skipped. A value that stays is visited once. Values pushed
// during the loop may or may not be visited. Those of PushBack are, until the loop has gone once
// round the ring of n values, unless one step pops all the values that it found. Each index is the
// value's index at that moment, as At counts it.
func (d *Deque[T]) All() iter.Seq2[int, *T] { return d.each }

// each goes once round the ring from the old front. A value doesn't move, so each value is visited
// at most once.
func (d *Deque[T]) each(yield func(int, *T) bool) {
	if d.Len() == 0 {
		return
	}
	n, from, end := uint64(len(d.ring)), d.ends.front, uint64(0) // end is how far the back was seen
	// distance of at after from in the ring
	behind := func(at, from uint64) uint64 {
		if at < from {
			at += n
		}
		return at - from
	}
	for k := uint64(0); k < n; k++ {
		used := uint64(d.Len())
		if used == 0 {
			return
		}
		at := from + k
		if at >= n {
			at -= n
		}
		i := behind(at, d.ends.front)
		if i >= used { // past the back, or the front has overtaken the loop
			ahead := behind(d.ends.front, from)
			if ahead <= k || ahead >= end {
				return
			}
			k, at, i = ahead, d.ends.front, 0
		}
		end = max(end, k+used-i)
		if !yield(int(i), &d.ring[at]) {
			return
		}
	}
}

// place returns the ring's index of value i. pre: the front and i are at most len(ring).
func (d *Deque[T]) place(i uint64) uint64 {
	at := d.ends.front + i
	if n := uint64(len(d.ring)); at >= n {
		at -= n
	}
	return at
}
