package arena

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Proxy stands in front of an allocator for one of the allocator's clients. The allocator is a
// Heap, another arena, or one of your own. A proxy has a name and totals. It frees only blocks that
// it allocated, and Close reports blocks that were never freed.
//
// An allocator may have several proxies, and users without a proxy. A proxy may stand in front of
// another proxy. A block of the outer proxy counts in both proxies, and must be freed through the
// outer one. When the allocator frees all blocks at once, by Reset or Rewind, its proxies still
// count the blocks.
//
// A proxy adds no byte to a block. It keeps its blocks in a Go map, which allocates as it grows.
// One goroutine at a time uses it, even in front of a Shared.
//
// Source: Frykholm, "Custom Memory Allocation in C++".
type Proxy struct {
	back   Allocator
	free   Freer            // nil: single blocks aren't freed
	given  map[uint64]given // live blocks by address
	stats  ProxyStats
	see    func(Event)
	closed bool
}

type given struct {
	size uint64
	by   arena_c.Site
}

var _ Reallocator = (*Proxy)(nil)

// NewProxy makes a proxy in front of an allocator or another proxy. Cost: a few Go allocations.
func NewProxy(name string, back Allocator) *Proxy {
	free, _ := back.(Freer)
	if front, ok := back.(*Proxy); ok {
		free = front.free
	}
	return &Proxy{back: back, free: free, given: map[uint64]given{}, stats: ProxyStats{Name: name}}
}

// Alloc is the allocator's Alloc. It panics after Close.
func (x *Proxy) Alloc(size, align uint64) unsafe.Pointer {
	x.check("Alloc")
	p := x.back.Alloc(size, align)
	if p == nil {
		x.refused(size)
	} else {
		x.gave(keyOf(p), size)
	}
	return p
}

// Free is the allocator's Free, also for nil. It returns an error if the allocator can't free
// single blocks. If p isn't live in this proxy, Free returns an error and changes nothing.
func (x *Proxy) Free(p unsafe.Pointer) error {
	if p == nil && x.free != nil && !x.closed {
		return x.free.Free(nil)
	}
	if _, err := x.find("Free", keyOf(p)); err != nil {
		return err
	}
	if x.free == nil {
		return fmt.Errorf("arena: proxy %q: Free: a %T can't free single blocks", x.stats.Name, x.back)
	}
	if err := x.back.(Freer).Free(p); err != nil {
		return fmt.Errorf("arena: proxy %q: Free: %w", x.stats.Name, err)
	}
	x.took(keyOf(p))
	return nil
}

// Realloc is the allocator's Realloc; for a nil p it is Alloc aligned to 16. It returns an error if
// the allocator has no Realloc, or if p isn't live in this proxy.
func (x *Proxy) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	if p == nil && !x.closed {
		return x.Alloc(size, arena_c.HeapAlign), nil
	}
	if _, err := x.find("Realloc", keyOf(p)); err != nil {
		return nil, err
	}
	back, ok := x.back.(Reallocator)
	if !ok {
		return nil, fmt.Errorf("arena: proxy %q: Realloc: a %T can't reallocate", x.stats.Name, x.back)
	}
	q, err := back.Realloc(p, size)
	if err != nil {
		return nil, fmt.Errorf("arena: proxy %q: Realloc: %w", x.stats.Name, err)
	}
	if q == nil {
		x.refused(size)
		return nil, nil
	}
	x.took(keyOf(p))
	x.gave(keyOf(q), size)
	return q, nil
}

// SizeOf returns the requested size in bytes. It returns an error if p isn't live in this proxy.
func (x *Proxy) SizeOf(p unsafe.Pointer) (uint64, error) {
	g, err := x.find("SizeOf", keyOf(p))
	if back, ok := x.back.(Reallocator); ok && err == nil {
		_, err = back.SizeOf(p) // the block may have been freed without the proxy
	}
	return g.size, err
}

// Close ends the proxy: afterwards Alloc panics, and Free, Realloc and SizeOf return errors. Close
// returns nil if all blocks were freed, or if the allocator doesn't free single blocks. Otherwise
// the error lists up to 8 of the blocks, which stay live. Checked builds add the lines that
// allocated the blocks. A second Close returns an error.
func (x *Proxy) Close() error {
	if x.closed {
		return x.bug("Close", arena_c.Stale.String())
	}
	x.closed = true
	if x.free == nil || len(x.given) == 0 {
		return nil
	}
	var said []string
	for _, key := range slices.Sorted(maps.Keys(x.given))[:min(len(x.given), leaksNamed)] {
		g := x.given[key]
		said = append(said, fmt.Sprintf("%d bytes at %#x%s", g.size, key, g.by.Tell("asked for")))
	}
	if more := len(x.given) - len(said); more != 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("arena: proxy %q closed with %d of %d blocks live: %s", x.stats.Name, len(x.given), x.stats.Total,
		strings.Join(said, ", "))
}

const leaksNamed = 8

// ProxyStats counts a proxy's blocks. It is part of a budget.Report.
type ProxyStats struct {
	Name   string `json:"name"`
	Live   uint64 `json:"live"`   // blocks allocated and not freed
	Asked  uint64 `json:"asked"`  // requested bytes of the live blocks
	Peak   uint64 `json:"peak"`   // the highest Asked
	Total  uint64 `json:"total"`  // blocks ever allocated
	Failed uint64 `json:"failed"` // requests refused as full
}

// Event reports an action of a proxy: it allocated a block ("gave"), freed one ("took"), or refused
// a request. Key is the block's address, 0 for a refusal; Size is in bytes.
type Event struct {
	What string // "gave", "took" or "refused"
	Key  uint64
	Size uint64
}

func keyOf(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// Stats returns the totals, also after Close.
func (x *Proxy) Stats() ProxyStats { return x.stats }

// Trace calls the function see for each event from now on. A nil see stops it. see runs on the
// goroutine of the event, so it can look at the caller's stack. To find one leak, put a proxy only
// in front of the suspected allocator.
func (x *Proxy) Trace(see func(Event)) { x.see = see }

func (x *Proxy) event(what string, key, size uint64) {
	if x.see != nil {
		x.see(Event{what, key, size})
	}
}

// gave counts an allocation. An earlier entry with the key was freed without the proxy.
func (x *Proxy) gave(key, size uint64) {
	g := given{size: size}
	g.by.Note()
	s := &x.stats
	s.Asked += size - x.given[key].size
	x.given[key] = g
	s.Live = uint64(len(x.given))
	s.Peak = max(s.Peak, s.Asked)
	s.Total++
	x.event("gave", key, size)
}

func (x *Proxy) took(key uint64) {
	size := x.given[key].size
	delete(x.given, key)
	x.stats.Live = uint64(len(x.given))
	x.stats.Asked -= size
	x.event("took", key, size)
}

func (x *Proxy) refused(size uint64) {
	x.stats.Failed++
	x.event("refused", 0, size)
}

func (x *Proxy) find(what string, key uint64) (given, error) {
	if x.closed {
		return given{}, x.bug(what, arena_c.Stale.String())
	}
	g, ok := x.given[key]
	if !ok {
		return g, x.bug(what, "not live in this proxy: another's, or freed already")
	}
	return g, nil
}

func (x *Proxy) check(what string) {
	if x.given == nil {
		panic(zero("proxy"))
	}
	if x.closed {
		panic(x.bug(what, arena_c.Stale.String()).Error())
	}
}

func (x *Proxy) bug(what, wrong string) error {
	return fmt.Errorf("arena: BUG: proxy %q: %s: %s", x.stats.Name, what, wrong)
}
