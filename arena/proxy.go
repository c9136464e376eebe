package arena

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Proxy stands before an allocator under a name, for one of its clients: a Heap, a scope, or an allocator of your own.
// It has totals of its own; it takes back what it gave and nothing else; and Close says whether all came back, and names
// what didn't. Several may stand before one allocator, beside those who use it itself, and one before another: what the
// front one gives counts in both, and is given back to the front one.
//
// It adds no byte to a block. What it gave it knows from a Go map, which allocates as it grows. One
// goroutine at a time uses it, also one before a Shared.
//
// What the allocator frees as a whole, by Reset or Rewind, it does behind its proxies' backs: they still count it.
//
// Source: Frykholm, "Custom Memory Allocation in C++".
type Proxy struct {
	tally
	back Allocator
	free Freer // nil: nothing is freed one by one
}

var _ Reallocator = (*Proxy)(nil)

// NewProxy makes a proxy before an allocator or before another proxy. Cost: a few Go allocations.
func NewProxy(name string, back Allocator) *Proxy {
	free, _ := back.(Freer)
	if front, ok := back.(*Proxy); ok {
		free = front.free
	}
	return &Proxy{tally: newTally(name), back: back, free: free}
}

// Alloc is that of the allocator. After Close it panics.
func (x *Proxy) Alloc(size, align uint64) unsafe.Pointer {
	x.book.check("Alloc")
	p := x.back.Alloc(size, align)
	if p == nil {
		x.book.refused(size)
	} else {
		x.book.gave(keyOf(p), size)
	}
	return p
}

// Free is that of the allocator, if it has one, which also says what nil is. What this proxy didn't give, or has back
// already, is refused and changes nothing.
func (x *Proxy) Free(p unsafe.Pointer) error {
	if p == nil && x.free != nil && !x.book.closed {
		return x.free.Free(nil)
	}
	if _, err := x.book.find("Free", keyOf(p)); err != nil {
		return err
	}
	if x.free == nil {
		return fmt.Errorf("arena: proxy %q: Free: a %T frees nothing one by one", x.book.stats.Name, x.back)
	}
	if err := x.back.(Freer).Free(p); err != nil {
		return fmt.Errorf("arena: proxy %q: Free: %w", x.book.stats.Name, err)
	}
	x.book.took(keyOf(p))
	return nil
}

// Realloc is that of the allocator, if it has one. What this proxy didn't give, or has back already, is refused, with an
// error.
func (x *Proxy) Realloc(p unsafe.Pointer, size uint64) (unsafe.Pointer, error) {
	if p == nil && !x.book.closed {
		return x.Alloc(size, arena_c.HeapAlign), nil
	}
	if _, err := x.book.find("Realloc", keyOf(p)); err != nil {
		return nil, err
	}
	back, ok := x.back.(Reallocator)
	if !ok {
		return nil, fmt.Errorf("arena: proxy %q: Realloc: a %T has none", x.book.stats.Name, x.back)
	}
	q, err := back.Realloc(p, size)
	if err != nil {
		return nil, fmt.Errorf("arena: proxy %q: Realloc: %w", x.book.stats.Name, err)
	}
	if q == nil {
		x.book.refused(size)
		return nil, nil
	}
	x.book.took(keyOf(p))
	x.book.gave(keyOf(q), size)
	return q, nil
}

// SizeOf is the size that was asked for. What this proxy didn't give, or has back already, is refused with an error.
func (x *Proxy) SizeOf(p unsafe.Pointer) (uint64, error) {
	g, err := x.book.find("SizeOf", keyOf(p))
	if back, ok := x.back.(Reallocator); ok && err == nil {
		_, err = back.SizeOf(p) // it may have been freed behind our back
	}
	return g.size, err
}

// Close ends the proxy: it refuses what comes after. Nil says that everything came back, or that nothing is freed one by
// one here. Otherwise the error names what didn't come back, in checked builds with who asked for it; it stays live. A
// second Close is refused.
func (x *Proxy) Close() error {
	if x.free == nil {
		clear(x.book.given)
	}
	return x.tally.Close()
}

// ProxyStats are the totals of a proxy, as a budget.Report shows them.
type ProxyStats struct {
	Name   string `json:"name"`
	Live   uint64 `json:"live"`   // what it gave and has not back
	Asked  uint64 `json:"asked"`  // bytes that were asked for of those
	Peak   uint64 `json:"peak"`   // the highest Asked
	Total  uint64 `json:"total"`  // what it ever gave
	Failed uint64 `json:"failed"` // requests that were refused for want of room
}

// Event is something that a proxy did: it gave what has the key, took it back, or refused a request. The key is an
// address, or a handle.
type Event struct {
	What string // "gave", "took", "refused"
	Key  uint64
	Size uint64
}

// tally is what every proxy embeds: methods for users. The others are those of its book, a field with a name: the compiler
// writes each method of what is embedded again for every T.
type tally struct{ book book }

// book is a proxy's name, its totals, and what it gave and has not back.
type book struct {
	given  map[uint64]given
	stats  ProxyStats
	see    func(Event)
	closed bool
}

type given struct {
	size uint64
	by   arena_c.Site
}

func newTally(name string) tally {
	return tally{book{given: map[uint64]given{}, stats: ProxyStats{Name: name}}}
}

func keyOf(p unsafe.Pointer) uint64 { return uint64(uintptr(p)) }

// Stats are the totals. They stay readable after Close.
func (t *tally) Stats() ProxyStats { return t.book.stats }

// Trace has see called with all that the proxy does from now on, in the goroutine of who asks, so that see can look who
// that is; nil ends it. For a hunt: put a proxy before the one allocator that is hunted.
func (t *tally) Trace(see func(Event)) { t.book.see = see }

func (b *book) event(what string, key, size uint64) {
	if b.see != nil {
		b.see(Event{what, key, size})
	}
}

// gave counts. What had the key was freed behind the proxy's back.
func (b *book) gave(key, size uint64) {
	g := given{size: size}
	g.by.Note()
	s := &b.stats
	s.Asked += size - b.given[key].size
	b.given[key] = g
	s.Live = uint64(len(b.given))
	s.Peak = max(s.Peak, s.Asked)
	s.Total++
	b.event("gave", key, size)
}

func (b *book) took(key uint64) {
	size := b.given[key].size
	delete(b.given, key)
	b.stats.Live = uint64(len(b.given))
	b.stats.Asked -= size
	b.event("took", key, size)
}

func (b *book) refused(size uint64) {
	b.stats.Failed++
	b.event("refused", 0, size)
}

// find is what has the key.
func (b *book) find(what string, key uint64) (given, error) {
	if b.closed {
		return given{}, b.bug(what, arena_c.Stale.String())
	}
	g, ok := b.given[key]
	if !ok {
		return g, b.bug(what, "not of this proxy: another's, or given back already")
	}
	return g, nil
}

// check is for what has no error to return.
func (b *book) check(what string) {
	if b.given == nil {
		panic(zero("proxy"))
	}
	if b.closed {
		panic(b.bug(what, arena_c.Stale.String()).Error())
	}
}

func (b *book) bug(what, wrong string) error {
	return fmt.Errorf("arena: BUG: proxy %q: %s: %s", b.stats.Name, what, wrong)
}

// leaksNamed is how many leaks an error names one by one.
const leaksNamed = 8

// Close ends the proxy: it refuses what comes after. Nil says that everything came back. Otherwise the error names what
// didn't, in checked builds with who asked for it; it stays live. A second Close is refused.
func (t *tally) Close() error { return t.book.close() }

func (b *book) close() error {
	if b.closed {
		return b.bug("Close", arena_c.Stale.String())
	}
	b.closed = true
	if len(b.given) == 0 {
		return nil
	}
	var said []string
	for _, key := range slices.Sorted(maps.Keys(b.given))[:min(len(b.given), leaksNamed)] {
		g := b.given[key]
		said = append(said, fmt.Sprintf("%d bytes at %#x%s", g.size, key, g.by.Tell("asked for")))
	}
	if more := len(b.given) - len(said); more != 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("arena: proxy %q: %d of %d never freed: %s", b.stats.Name, len(b.given), b.stats.Total, strings.Join(said, ", "))
}
