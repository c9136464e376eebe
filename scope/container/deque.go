package container

import (
	"iter"

	"github.com/upfront-mem/upfront/scope"
)

// Deque is a queue with two ends for at most n values of T, in a ring of n * size of T bytes. A
// value doesn't move.
type Deque[T any] struct {
	_     noCopy
	life  life
	ring  []T
	front int // where in the ring the first value lies
	used  int // values in it
}

// NewDeque makes an empty deque for up to n values in s. Cost: O(n), the zeroing. A full scope
// unwinds; a scope that is not the topmost, and a negative n, panic.
func NewDeque[T any](s scope.Scope, values scope.Maker[T], n int) Deque[T] {
	return Deque[T]{life: lifeOf(s), ring: values.Slice(s, n)}
}

// PushBack puts x behind the last. It is false when n values are in it. Cost: three comparisons and
// the copy of x.
func (d *Deque[T]) PushBack(x T) bool {
	if !d.life.alive() {
		panic(closed{d.life, "PushBack to a Deque"})
	}
	if d.used == len(d.ring) {
		return false
	}
	d.ring[d.place(d.used)] = x
	d.used++
	return true
}

// PushFront puts x before the first. It is false when n values are in it. Cost: as PushBack.
func (d *Deque[T]) PushFront(x T) bool {
	if !d.life.alive() {
		panic(closed{d.life, "PushFront to a Deque"})
	}
	if d.used == len(d.ring) {
		return false
	}
	at := d.front
	if at == 0 {
		at = len(d.ring)
	}
	d.front = at - 1
	d.ring[at-1] = x
	d.used++
	return true
}

// PopBack takes the last value away. It is false when the deque is empty.
func (d *Deque[T]) PopBack() (last T, ok bool) {
	if d.Len() == 0 {
		return last, false
	}
	d.used--
	at := d.place(d.used)
	last = d.ring[at]
	gone(d.ring[at : at+1])
	return last, true
}

// PopFront takes the first value away. It is false when the deque is empty.
func (d *Deque[T]) PopFront() (first T, ok bool) {
	if d.Len() == 0 {
		return first, false
	}
	at := d.front
	first = d.ring[at]
	gone(d.ring[at : at+1])
	d.front = d.place(1)
	d.used--
	return first, true
}

// At is the value at i, counted from the front, in place. It panics out of range, as a slice does.
func (d *Deque[T]) At(i int) *T {
	_ = d.ring[:d.Len()][i]
	return &d.ring[d.place(i)]
}

// Clear takes all values away.
func (d *Deque[T]) Clear() {
	if d.Len() > 0 {
		gone(d.ring)
	}
	d.used = 0
}

// Len is the number of values in it.
func (d *Deque[T]) Len() int {
	if !d.life.began().alive() {
		return 0
	}
	return d.used
}

// Cap is n, the number of values that there may be.
func (d *Deque[T]) Cap() int {
	if !d.life.began().alive() {
		return 0
	}
	return len(d.ring)
}

// All ranges over the values from front to back, also over those that PushBack adds meanwhile.
func (d *Deque[T]) All() iter.Seq2[int, *T] { return d.each }

func (d *Deque[T]) each(yield func(int, *T) bool) {
	for i := 0; i < d.Len() && yield(i, d.At(i)); i++ {
	}
}

// place is where in the ring what is i behind the front lies. pre: 0 <= i <= len(ring).
func (d *Deque[T]) place(i int) int {
	if left := len(d.ring) - d.front; i >= left {
		return i - left
	}
	return d.front + i
}
