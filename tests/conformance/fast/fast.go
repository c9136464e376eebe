// Package fast calls each fast path once in a loop. A test asks the compiler whether the calls are
// inlined, and whether a call has a write barrier.
package fast

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

// Alloc is scope.Scope.AllocUnzeroed, TryAllocUnzeroed and AllocUnzeroedAs in a loop.
func Alloc(s scope.Scope, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		_ = s.AllocUnzeroed(size, 16)
		_ = s.TryAllocUnzeroed(size, 16)
		last = s.AllocUnzeroedAs(size, scope.Align16)
	}
	return last
}

// Addr is scope.Addr.Get in a loop.
func Addr(list []scope.Addr[Frog]) (sum uint64) {
	for _, a := range list {
		sum += a.Get().ID
	}
	return sum
}

// Pool is scope.Pool.Get, GetUnzeroed and Put in a loop.
func Pool(p scope.Pool[Frog], n int) (sum uint64) {
	for range n {
		x, y := p.Get(), p.GetUnzeroed()
		sum += x.ID + y.ID
		p.Put(x)
		p.Put(y)
	}
	return sum
}

// Build is scope.Builder.Push and TryPush in a loop.
func Build(b *scope.Builder[uint64], n int) (fit bool) {
	for i := range uint64(n) {
		b.Push(i)
		fit = b.TryPush(i)
	}
	return fit
}

// NewCore is arena_c.New, and arena_c.TryNew, in a loop.
func NewCore(h *arena_c.Scopes, gen uint64, n int) (sum uint64) {
	for range n {
		sum += arena_c.New[Frog](h, gen).ID
		if x := arena_c.TryNew[Frog](h, gen); x != nil {
			sum += x.ID
		}
	}
	return sum
}

// AllocCore is arena_c's Alloc, TryAlloc and AllocMask in a loop.
func AllocCore(h *arena_c.Scopes, gen, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		_ = h.Alloc(gen, size, 16)
		_ = h.TryAlloc(gen, size, 16)
		last = h.AllocMask(gen, size, 15)
	}
	return last
}

// PoolCore is arena_c's Get, GetUnzeroed and Put in a loop.
func PoolCore(p *arena_c.Pool, gen uint64, n int) (ok bool) {
	first, numbers := p.Bases()
	for range n {
		x := arena_c.Get[Frog](p, gen, first, numbers)
		y := arena_c.GetUnzeroed[Frog](p, gen, first, numbers)
		ok = arena_c.Put(p, gen, first, numbers, x) && arena_c.Put(p, gen, first, numbers, y)
	}
	return ok
}

// Bump is arena_c's Bump of a linear arena in a loop.
func Bump(h *arena_c.Header, gen, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		last, _ = h.Bump(gen, size, 7)
	}
	return last
}

// BumpIn is arena_c's Bump and Grow of scopes in a loop.
func BumpIn(h *arena_c.Scopes, gen, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		_, _ = h.Bump(gen, size, 7)
		last, _ = h.Grow(gen, h.Cursor, size)
	}
	return last
}

// Push is arena_c's Push in a loop.
func Push(s *arena_c.Stack, gen, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		last = s.Push(gen, size, 15)
	}
	return last
}

// Far is the fast paths of the far ends in a loop.
func Far(e *arena_c.Ends, s *arena_c.Stack, gen, size uint64, n int) (last unsafe.Pointer) {
	for range n {
		if e.BumpFar(gen, size, 7) != nil {
			last = s.PushFar(gen, size, 15)
		}
	}
	return last
}

// Chain is arena_c's Open, Node, Link, Newest, Unlink, Cut and Close in a loop.
func Chain(h *arena_c.Scopes, n int) (sum uint64) {
	for i := range uint64(n) {
		gen, cursor := h.Open(), h.Cursor
		if object := h.Node(gen, 8, 7); object != nil {
			*(*uint64)(object) = i
			h.Link(object, 3)
		}
		for r := h.Top(); h.Chain != r.Chain; h.Unlink() {
			object, _ := h.Newest(h.Chain)
			sum += *(*uint64)(object)
		}
		h.Cut(cursor)
		h.Close(h.Top())
	}
	return sum
}

// Ring is arena_c's Push and Front of a ring in a loop. Pop is too long for the inliner: it is a Go
// call, but doesn't cross into C.
func Ring(r *arena_c.Ring, gen, size uint64, n int) (sum uint64) {
	for range n {
		if r.Push(gen, size, 7) != nil {
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

// The fast paths below are calls: too long for the inliner, or two paths in one.

// Handles is scope.HandlePool.Get, At and Put in a loop.
func Handles(p scope.HandlePool[Frog], n int) (last *Frog) {
	for range n {
		_, h := p.Get()
		last = p.At(h)
		p.Put(h)
	}
	return last
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
