// Package hits calls each hit path once in a loop, so that a test can ask the compiler whether they were inlined here,
// and whether one of them has a write barrier.
package hits

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// Frog is an object of one cache line.
type Frog struct {
	X, Y   float64
	ID     uint64
	Leaves [5]uint64
}

// New is scope.Maker.New in a loop.
func New(s scope.Scope, n int) (sum uint64) {
	for range n {
		sum += frogs.New(s).ID
	}
	return sum
}

// TryNew is scope.Maker.TryNew in a loop.
func TryNew(s scope.Scope, n int) (last *Frog) {
	for range n {
		last = frogs.TryNew(s)
	}
	return last
}

// Alloc is scope.Scope.Alloc in a loop.
func Alloc(s scope.Scope, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		last = s.Alloc(size, 16)
	}
	return last
}

// Get is scope.Pool.Get in a loop.
func Get(p scope.Pool[Frog], n int) (sum uint64) {
	for range n {
		sum += p.Get().ID
	}
	return sum
}

// NewCore is arena_c.New in a loop.
func NewCore(l *arena_c.Linear, need uint64, n int) (sum uint64) {
	for range n {
		if x, ok := arena_c.New[Frog](l, need); ok {
			sum += x.ID
		}
	}
	return sum
}

// GetCore is arena_c.Get in a loop.
func GetCore(p *arena_c.Pool, tag uint64, n int) (sum uint64) {
	for range n {
		sum += arena_c.Get[Frog](p, tag).ID
	}
	return sum
}

// Bump is arena_c's Bump in a loop.
func Bump(l *arena_c.Linear, need, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		last, _ = l.Bump(need, size, 7)
	}
	return last
}

// Push is arena_c's Push in a loop.
func Push(s *arena_c.Stack, tag, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		last = s.Push(tag, size, 15)
	}
	return last
}

// Far is the hits of the far ends, and of handles, in a loop.
func Far(e *arena_c.Ends, s *arena_c.Stack, h *arena_c.Handles, tag, handle, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		if e.BumpFar(tag, size, 7) != nil && s.PushFar(tag, size, 15) != nil {
			last = h.ChunkOf(tag, handle)
		}
	}
	return last
}

// Chain is arena_c's NewNode, Link and Unlink in a loop.
func Chain(l *arena_c.Linear, tag uint64, n int) (sum uint64) {
	for i := range n {
		if node := l.NewNode(tag); node != nil {
			l.Link(node, 3, uint64(i))
		}
	}
	for {
		node, ok := l.Unlink()
		if !ok {
			return sum
		}
		sum += node.What
	}
}

// Ring is arena_c's Push and Front of a ring in a loop. Pop is too long to be inlined: it is a call, but none into C.
func Ring(r *arena_c.Ring, tag, size uint64, n int) (sum uint64) {
	for range n {
		if r.Push(tag, size, 7) != nil {
			_, oldest := r.Front()
			sum += oldest
		}
	}
	return sum
}

// Lists is the pushes of package container in a loop.
func Lists(l *container.List[uint64], d *container.Deque[uint64], n int) (fit bool) {
	for i := range uint64(n) {
		fit = l.Push(i) && d.PushBack(i) && d.PushFront(i)
	}
	return fit
}

// The hits below are calls: too long for the inliner, or two paths in one.

// Put is scope.Pool.Put in a loop.
func Put(p scope.Pool[Frog], list []*Frog) {
	for _, x := range list {
		p.Put(x)
	}
}

// Append is scope.Maker.Append in a loop.
func Append(s scope.Scope, list []Frog, n int) []Frog {
	for range n {
		list = frogs.Append(s, list, Frog{})
	}
	return list
}

// Object is scope.ObjectMaker.New in a loop.
func Object(s scope.Scope, n int) (sum uint64) {
	for range n {
		sum += closing.New(s).ID
	}
	return sum
}
