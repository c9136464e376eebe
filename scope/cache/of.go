package cache

import (
	"fmt"
	"math"
	"reflect"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/stack"
)

// Of finds at most n values of V by keys of type K. Each method that returns a value pins the
// value. A pinned value isn't evicted and doesn't move until [Of.Unpin]. Any [Of.GetOrLoad],
// [Of.Add], [Of.Resize] or [Of.Clear] may evict a value that isn't pinned, and [Of.Delete] of its
// key removes it.
//
// Goroutines may share an Of. Each method takes the cache's lock. Loaders and finalizers run
// without the lock. A value belongs to the goroutines that pinned it, and they synchronize their
// uses of the value. The scope must stay open while goroutines use the cache, because closing a
// scope waits for none. After the scope has closed, GetOrLoad, Add, Unpin, Handle and Resize panic
// with an error that is scope.ErrClosed, and the other methods find no value. go vet reports a copy
// of an Of.
type Of[K comparable, V any] struct {
	mu       sync.Mutex
	life     lifetime.Life
	n        uint32
	replaced bool                     // by a Restore of package save, and not used since
	index    container.Map[K, uint32] // entries below n; from n on remembered keys
	pool     scope.HandlePool[V]      // chunk i is the value of entry i
	header   *arena_c.Pool
	fin      func(*V) error // nil: V has no finalizer
	words    *ofWords
	entries  []ofEntry
	keys     []K // of the n entries; then of the n remembered keys, a ring
	pinned   int
	loading  int         // entries in load
	leaving  int         // entries whose finalizers run
	running  *running[K] // the loads and finalizers that run
	idle     *running[K] // to be used again for a finalizer
	stats    OfStats     // the sums
	pinners  []pinner    // of the entries; in checked builds
}

type pinner struct{ site arena_c.Site }

// ofWords is the first part of a cache's bytes.
type ofWords struct {
	small, main ofQueue
	limit       uint32 // the most entries in use
	used        uint32 // entries in use
	ring        uint32 // the place of the next remembered key
	_           uint32
}

// ofEntry is the state of a value. Entry 0 in a link is no entry; entry i is i + 1.
type ofEntry struct {
	newer, older uint32 // neighbors in the queue
	pins         uint32
	where        where
	reads        uint8 // since it entered the queue, ofReads at most
	returns      bool  // its key was remembered
	_            uint8
}

type where uint8

const (
	isFree where = iota
	inSmall
	inMain
	isAside   // pinned, and its turn to leave a queue has come
	inLoad    // the loader runs
	isLeaving // the finalizer runs
	isDeleted // pinned, and no key leads to it
)

func (e *ofEntry) has() bool { return e.where-1 < isAside }

const (
	ofReads   = 3
	ofChances = 32 // second chances of one eviction
)

var numbers = scope.Plain[uint32]()

// ofMost is the most values: the index has twice as many keys, 2^28 at most.
const ofMost = 1 << 27

// New returns an empty cache in s for n values. n is from 1 to 2^27. New takes all bytes of the
// cache at once. For each value they are the value itself, rounded up to a multiple of 8, four
// keys, 25 bytes, and 45 to 67 bytes of index. The whole cache takes up to 200 bytes more, and one
// of the planned pool headers (limits.pools). A full scope unwinds. New panics if s isn't the
// topmost scope, if n is out of range, if a V has no bytes, or if K holds an arena.String or
// arena.Slice, because == compares the offsets of these types. Cost: O(n), and Go allocations for
// the Of.
func New[K comparable, V any](s scope.Scope, keys scope.Maker[K], values scope.Maker[V], n int) *Of[K, V] {
	check[K, V](n, keys == scope.Maker[K]{} || values == scope.Maker[V]{})
	c := &Of[K, V]{}
	c.begin(s, keys, n)
	c.hold(values.HandlePool(s, n))
	return c
}

// NewObjects is [New] for values with a finalizer. The finalizer runs exactly once for each value
// that Add returned or a loader completed. It runs when the value is evicted or deleted, on the
// goroutine that evicts or deletes the value. For the other values it runs when s closes, even for
// pinned ones. The finalizer must not use the cache. Its error, or its panic, goes to the caller of
// the method that evicted or deleted the value, or of the scope's Close. The value's bytes are free
// in any case. If a loader fails, its value is freed without the finalizer. NewObjects panics in a
// state of package save.
func NewObjects[K comparable, V any](s scope.Scope, keys scope.Maker[K], values scope.ObjectMaker[V], n int) *Of[K, V] {
	check[K, V](n, keys == scope.Maker[K]{})
	if lifetime.Watching(s) != nil {
		panic(misuse("a cache of %v with a finalizer in a state: a finalizer can't be undone or sent; make it before "+
			"Begin, or after NewRing", reflect.TypeFor[V]()))
	}
	c := &Of[K, V]{}
	c.begin(s, keys, n)
	pool, fin := scope.ObjectHandles(s, values, n)
	c.fin = fin
	c.hold(pool)
	return c
}

func check[K comparable, V any](n int, undeclared bool) {
	switch {
	case undeclared:
		panic(misuse("a Maker that was never declared: make it with scope.Plain or scope.Object"))
	case n < 1 || n > ofMost:
		panic(misuse("a cache of %d values: from 1 to %d", n, ofMost))
	case unsafe.Sizeof(*new(V)) == 0:
		panic(misuse("a cache of %v, which has no bytes, so an address can't identify a value", reflect.TypeFor[V]()))
	}
}

func (c *Of[K, V]) begin(s scope.Scope, keys scope.Maker[K], n int) {
	c.index = container.NewMap(s, keys, numbers, 2*n)
	bytes := octets.SliceAligned(s, int(min(ofSize[K](n), math.MaxInt)), ofAlign)
	c.n, c.life = uint32(n), lifetime.Of(s)
	c.words, c.entries, c.keys = layOf[K](bytes, n)
	c.words.limit = c.n
	if st := lifetime.Watching(s); st != nil {
		c.note(st, bytes)
	}
	if arena_c.Checked {
		arena_c.NoteType(unsafe.Pointer(c.words), reflect.TypeFor[Of[K, V]]().String())
		c.pinners = make([]pinner, n)
	}
}

func (c *Of[K, V]) hold(pool scope.HandlePool[V]) {
	c.pool, c.header = pool, scope.HeaderOfHandles(pool)
	stack.Of(c.life.End).NoteCache(unsafe.Pointer(c.words), c.figure)
}

const ofAlign = 8

func ofSize[K any](n int) uint64 {
	size := uint64(unsafe.Sizeof(ofWords{})) + uint64(n)*uint64(unsafe.Sizeof(ofEntry{})) +
		2*uint64(n)*uint64(unsafe.Sizeof(*new(K)))
	return (size + ofAlign - 1) &^ (ofAlign - 1)
}

func layOf[K any](bytes []byte, n int) (*ofWords, []ofEntry, []K) {
	first := unsafe.Pointer(unsafe.SliceData(bytes))
	entries := unsafe.Add(first, unsafe.Sizeof(ofWords{}))
	keys := unsafe.Add(entries, uintptr(n)*unsafe.Sizeof(ofEntry{}))
	return (*ofWords)(first), unsafe.Slice((*ofEntry)(entries), n), unsafe.Slice((*K)(keys), 2*n)
}

var zeroOf = &scope.Misuse{Text: "a zero cache: cache.New makes one in a scope"}

// lock takes the lock, and reports whether the scope is alive. If not, it doesn't take the lock.
func (c *Of[K, V]) lock() bool {
	if c.life.Record == nil {
		panic(zeroOf)
	}
	c.mu.Lock()
	if c.life.Alive() {
		if c.replaced {
			c.agree()
		}
		return true
	}
	c.mu.Unlock()
	return false
}

// open is lock, but panics if the scope has closed.
func (c *Of[K, V]) open(what string) {
	if !c.lock() {
		panic(lifetime.Closed{Life: c.life, What: what + " of a cache"})
	}
}

// Get returns the value of k, pinned. It returns nil if the cache has no value of k, or while a
// loader still fills the value. Cost: a lock, a hash and a few ns; no Go allocation.
func (c *Of[K, V]) Get(k K) *V {
	if !c.lock() {
		return nil
	}
	if i, ok := c.find(k); ok && c.entries[i].has() {
		return c.pin(i)
	}
	c.stats.Misses++
	c.mu.Unlock()
	return nil
}

// At returns the value that h names, pinned. It returns nil if the value was evicted or deleted or
// is in load, or if h is no handle of this cache. The zero handle names no value, and At of it
// doesn't count as a miss. Cost: as Get, without the hash.
func (c *Of[K, V]) At(h arena.Handle[V]) *V {
	if h == 0 || !c.lock() {
		return nil
	}
	i := uint64(h) & arena_c.HandleIndex
	if i < uint64(c.n) && c.header.Handle(i) == uint64(h) && c.entries[i].has() {
		return c.pin(uint32(i))
	}
	c.stats.Misses++
	c.mu.Unlock()
	return nil
}

// Handle returns the handle of x. [Of.At] finds x by it once x is loaded, and until x is evicted or
// deleted. A handle is plain data of 8 bytes. It may be stored in any block, including other values
// of the cache. Handle panics unless x is pinned, or is the value that the caller's loader fills.
func (c *Of[K, V]) Handle(x *V) arena.Handle[V] {
	c.open("Handle")
	i, ok := c.indexOf(x)
	if !ok || c.entries[i].pins == 0 && c.entries[i].where != inLoad {
		c.mu.Unlock()
		panic(c.notPinned("Handle", ok))
	}
	h := arena.Handle[V](c.header.Handle(uint64(i)))
	c.mu.Unlock()
	return h
}

// Unpin removes one pin of x. Without pins, x may be evicted, and its bytes may then hold another
// value. Unpin panics if x isn't pinned or isn't a value of this cache. Cost: a lock.
func (c *Of[K, V]) Unpin(x *V) {
	c.open("Unpin")
	i, ok := c.indexOf(x)
	if !ok || c.entries[i].pins == 0 {
		c.mu.Unlock()
		panic(c.notPinned("Unpin", ok))
	}
	e := &c.entries[i]
	e.pins--
	if e.pins == 0 {
		c.pinned--
		switch e.where {
		case isAside:
			c.push(inMain, i)
		case isDeleted:
			c.leave(i)
		}
	}
	c.mu.Unlock()
}

func (c *Of[K, V]) notPinned(what string, of bool) error {
	if !of {
		return misuse("%s of a %v that isn't a value of this cache", what, reflect.TypeFor[V]())
	}
	return misuse("%s of a %v that isn't pinned: Get, At, Add and GetOrLoad pin a value once each",
		what, reflect.TypeFor[V]())
}

// indexOf returns the entry of x, and reports whether x is a value's first byte.
func (c *Of[K, V]) indexOf(x *V) (uint32, bool) {
	offset := arena_c.Place(unsafe.Pointer(x), unsafe.Pointer(c.header)) - c.header.Chunks
	i := offset / uint64(unsafe.Sizeof(arena_c.Chunk[V]{}))
	return uint32(i), i < uint64(c.n) && c.value(uint32(i)) == x
}

func (c *Of[K, V]) value(i uint32) *V { return (*V)(c.header.Chunk(uint64(i))) }

// pin pins a value that was read, gives up the lock, and returns the value.
func (c *Of[K, V]) pin(i uint32) *V {
	e := &c.entries[i]
	if e.pins == math.MaxUint32 {
		c.mu.Unlock()
		panic(misuse("a %v that is pinned 2^32-1 times: is an Unpin missing?", reflect.TypeFor[V]()))
	}
	if e.pins == 0 {
		c.pinned++
		if arena_c.Checked { // a later pin is more likely one that is taken back
			c.pinners[i].site.Note()
		}
	}
	e.pins++
	e.reads = min(e.reads+1, ofReads)
	c.stats.Hits++
	x := c.value(i)
	c.mu.Unlock()
	return x
}

// find returns the entry of k, and reports whether k has one.
func (c *Of[K, V]) find(k K) (i uint32, ok bool) {
	p := c.index.Get(k)
	if p == nil || *p >= c.n {
		return 0, false
	}
	return *p, true
}

// Len returns the number of values, or 0 after the scope has closed. Values that a loader still
// fills don't count. Values that were deleted while pinned count until their last Unpin.
func (c *Of[K, V]) Len() int {
	if !c.lock() {
		return 0
	}
	defer c.mu.Unlock()
	return c.len()
}

func (c *Of[K, V]) len() int { return int(c.words.used) - c.loading - c.leaving }

// OfStats are figures of an [Of].
type OfStats struct {
	Len, Limit  int    // values now; the limit of values, which Resize sets
	Pinned      int    // values that are pinned now
	Loading     int    // values in load now
	Hits        uint64 // values that Get, At and GetOrLoad found
	Misses      uint64 // of Get and At, and loads begun
	Loads       uint64 // loaders that were called
	Failed      uint64 // loaders that made no value
	Refused     uint64 // InUseErrors
	Evictions   uint64 // values evicted to make room, or by Resize
	Examined    uint64 // values that evictions examined, the evicted ones included
	MaxExamined uint64 // the most values that one eviction examined
}

// Stats returns the figures of c. After the scope has closed it returns the zero OfStats.
func (c *Of[K, V]) Stats() OfStats {
	if !c.lock() {
		return OfStats{}
	}
	defer c.mu.Unlock()
	s := c.stats
	s.Len, s.Limit, s.Pinned, s.Loading = c.len(), int(c.words.limit), c.pinned, c.loading
	return s
}

// figure returns the cache's line of a report, and false after its scope has closed.
func (c *Of[K, V]) figure() (in stack.Inner, ok bool) {
	if !c.lock() {
		return in, false
	}
	defer c.mu.Unlock()
	n, each := uint64(c.len()), uint64(unsafe.Sizeof(*new(V)))
	in = stack.Inner{Of: reflect.TypeFor[V]().String(), Size: uint64(c.n) * each, Used: n * each, Live: n,
		Failed: c.stats.Refused}
	in.CacheCounts = stack.CacheCounts{Hits: c.stats.Hits, Misses: c.stats.Misses, Evictions: c.stats.Evictions}
	return in, true
}

// InUseError is the error of a cache in which all values are pinned or in load, so that no value
// can be evicted. It is a scope.ErrFull.
type InUseError struct {
	N, Limit int // limits of values: the n of New, and the limit of Resize
	Pinned   int // values that are pinned

	budget, arena, scope, of string // of: the type of the values
	loading                  int    // values in load
	lines                    []string
	onPurpose                bool   // in checked builds: budgettest.FailEach refused the request
	advice                   string // instead of the usual one
}

// Error returns one line. In checked builds it adds lines for up to 8 calls that pinned the values,
// each with the number of its values. A value with several pins counts for the first.
func (e *InUseError) Error() string {
	if e.onPurpose {
		return fmt.Sprintf("budget %q: %s: scope %q: the cache of %d values of %s was refused a value on purpose "+
			"(budgettest.FailEach)",
			e.budget, e.arena, e.scope, e.N, e.of)
	}
	advice := fmt.Sprintf("Unpin some, or make it with an n above %d", e.N)
	if e.Limit < e.N {
		advice = fmt.Sprintf("Unpin some, or Resize it to more than %d, up to %d", e.Limit, e.N)
	}
	if e.advice != "" {
		advice = e.advice
	}
	text := fmt.Sprintf("budget %q: %s: scope %q: a cache has %d of %d values of %s pinned, and %d in load; %s",
		e.budget, e.arena, e.scope, e.Pinned, e.Limit, e.of, e.loading, advice)
	for _, line := range e.lines {
		text += "\n\t" + line
	}
	return text
}

// Is reports whether target is scope.ErrFull.
func (e *InUseError) Is(target error) bool { return target == scope.ErrFull }

// inUse counts and returns an error of c. The lock is held.
func (c *Of[K, V]) inUse() *InUseError {
	c.stats.Refused++
	e := &InUseError{of: reflect.TypeFor[V]().String(), N: int(c.n), Limit: int(c.words.limit), Pinned: c.pinned,
		loading: c.loading}
	e.budget, e.arena, e.scope = stack.NamesOf(c.life.End, c.life.Gen)
	e.lines = c.lines()
	return e
}

const linesMost = 8

// lines returns the calls that pinned the values, with the number of values for each.
func (c *Of[K, V]) lines() (lines []string) {
	if !arena_c.Checked {
		return nil
	}
	var calls []string
	count := map[string]int{}
	for i := range c.pinners {
		if call := c.pinners[i].site.Calls(); c.entries[i].pins > 0 && len(call) > 0 {
			if count[call[0]] == 0 {
				calls = append(calls, call[0])
			}
			count[call[0]]++
		}
	}
	for i, call := range calls {
		if i == linesMost {
			return append(lines, fmt.Sprintf("and %d more lines", len(calls)-i))
		}
		lines = append(lines, fmt.Sprintf("%d pinned at %s", count[call], call))
	}
	return lines
}
