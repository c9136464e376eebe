package arena

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Reallocator is an Allocator that takes any block back in any order, knows its size and gives it another: a Heap, or a
// Proxy before one. There are no others.
type Reallocator interface {
	Freer
	Sizer
	Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error)

	look(p unsafe.Pointer) (size uint64, wrong string)
	behind() (*arena_c.Heap, *Proxy)
}

var (
	_ Reallocator = Heap{}
	_ Reallocator = (*Proxy)(nil)
)

// Proxy stands before a heap under a name, for one of its clients. It has totals of its own, which are never the heap's;
// it takes back what it gave and nothing else; and Close says whether all came back, and names what didn't. Several may
// stand before one heap, beside those who use the heap itself, and one may stand before another: what the front one gives
// counts in the totals of both.
//
// A block costs 16 bytes more than the heap's own block, behind its bytes, rounded up to 8: they name the proxy, sealed.
// Alloc costs one call into C, Free two, Realloc two or three; none makes a Go allocation. A proxy is a Go object, so
// making one allocates. One goroutine at a time may use a heap with all proxies before it.
//
// It can't tell a live block of its own that was freed behind its back, by Heap.Free, when a new block of the same size
// lies there and none wrote to its end; nor can the heap tell that a block is a proxy's: it takes it, and Close says
// that one is missing. Heap.Reset frees the blocks of all proxies behind their backs.
//
// Source: Frykholm, "Custom Memory Allocation in C++".
type Proxy struct {
	name   string
	heap   *arena_c.Heap
	back   *Proxy   // that it stands before, or nil
	fronts []*Proxy // that stand before it: those that are open, and those that closed with blocks left
	id     uint64
	stats  ProxyStats
	closed bool
}

// ProxyStats are the totals of a proxy: of its own blocks, and of those of proxies before it. Live blocks have Asked
// bytes, for which the heap took Used: the Used of all proxies before a heap, and of who uses it itself, add up to the
// heap's. Peak is the highest Used. Total counts the blocks that it ever gave, Failed the requests that it refused for
// want of room.
type ProxyStats struct {
	Live, Asked, Used, Peak, Total, Failed uint64
}

// proxies is the number of proxies that were made: the newest one's id.
var proxies atomic.Uint64

// NewProxy makes a proxy before a heap or before another proxy. A closed one is a caller's bug and panics. Cost: two Go
// allocations.
func NewProxy(name string, back Reallocator) *Proxy {
	heap, proxy := back.behind()
	if heap == nil {
		panic(fmt.Sprintf("arena: BUG: proxy %q before a Heap that NewHeap didn't make", name))
	}
	x := &Proxy{name: name, heap: heap, back: proxy, id: proxies.Add(1)}
	if proxy != nil {
		if proxy.closed {
			panic(fmt.Sprintf("arena: BUG: proxy %q before proxy %q, which is closed", name, proxy.name))
		}
		proxy.fronts = append(proxy.fronts, x)
	}
	return x
}

func (h Heap) behind() (*arena_c.Heap, *Proxy)   { return h.header, nil }
func (x *Proxy) behind() (*arena_c.Heap, *Proxy) { return x.heap, x }

// Name is the name that it was made with.
func (x *Proxy) Name() string { return x.name }

// Stats are the totals. They stay readable after Close.
func (x *Proxy) Stats() ProxyStats { return x.stats }

// Alloc is Heap.Alloc. After Close it panics.
func (x *Proxy) Alloc(size, align uint64) unsafe.Pointer {
	mask("Proxy", size, align)
	if x.closed {
		panic(fmt.Sprintf("arena: BUG: proxy %q: Alloc: closed already", x.name))
	}
	used := x.heap.Used
	p := x.heap.Alloc(tailed(size), align)
	if p == nil {
		x.refused()
		return nil
	}
	x.seal(p, size)
	x.count(1, size, x.heap.Used-used)
	return p
}

// Realloc is Heap.Realloc. What is no live block of this proxy is refused, with an error.
func (x *Proxy) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	mask("Proxy", size, 1)
	if p == nil && !x.closed {
		return x.Alloc(size, arena_c.HeapAlign), nil
	}
	old, wrong := x.look(p)
	if wrong != "" {
		return nil, x.bug("Realloc", wrong)
	}
	used := x.heap.Used
	x.unseal(p, old)
	q := x.heap.Realloc(p, tailed(size))
	if q == nil {
		x.seal(p, old)
		x.refused()
		return nil, nil
	}
	x.seal(q, size)
	x.count(0, size-old, x.heap.Used-used)
	return q, nil
}

// Free takes a block back. What is no live block of this proxy is refused and changes nothing: a double free, an address
// inside a block, a block of another proxy, also of one before this, or of the heap itself, or one that was written past
// its end.
func (x *Proxy) Free(p unsafe.Pointer) error {
	size, wrong := x.look(p)
	if wrong != "" {
		return x.bug("Free", wrong)
	}
	used := x.heap.Used
	x.unseal(p, size)
	if code := x.heap.Free(p); code != arena_c.OK {
		return x.bug("Free", code.String())
	}
	x.count(^uint64(0), -size, x.heap.Used-used)
	return nil
}

// SizeOf is the size that was asked for. What is no live block of this proxy is a caller's bug and panics.
func (x *Proxy) SizeOf(p unsafe.Pointer) uint64 {
	size, wrong := x.look(p)
	if wrong != "" {
		panic(x.bug("SizeOf", wrong).Error())
	}
	return size
}

func (x *Proxy) bug(what, wrong string) error {
	return fmt.Errorf("arena: BUG: proxy %q: %s: %s", x.name, what, wrong)
}

// count adds to the totals, here and in those behind; what became less is a difference modulo 2^64.
func (x *Proxy) count(live, asked, used uint64) {
	for ; x != nil; x = x.back {
		s := &x.stats
		s.Live += live
		s.Asked += asked
		s.Used += used
		s.Peak = max(s.Peak, s.Used)
		if live == 1 {
			s.Total++
		}
	}
}

func (x *Proxy) refused() {
	for ; x != nil; x = x.back {
		x.stats.Failed++
	}
}
