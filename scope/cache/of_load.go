package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
)

// ErrPresent matches, with errors.Is, the error of [Of.Add] for a key whose value is in the cache
// or in load, or whose finalizer runs.
var ErrPresent = errors.New("cache: the key has a value, or one in load")

// ErrCycle matches, with errors.Is, the error of an [Of.GetOrLoad] by which a loader would wait for
// itself.
var ErrCycle = errors.New("cache: a load would wait for itself")

// GetOrLoad returns the value of k, pinned. If the cache has no value of k, GetOrLoad calls the
// loader fn with a zeroed V to fill, and keeps the value if fn returns nil. It makes room before it
// calls fn. It returns an [InUseError] without calling fn if all values are pinned or in load, and
// the error of the finalizer of a value that it evicts.
//
// At most one loader runs for a key at a time, unless the key is deleted meanwhile ([Of.Delete]).
// Other callers wait for the loader, and get its value. If the loader returns an error, panics or
// ends its goroutine, the key is free again. The waiting callers then try again, one of them with
// its own fn, so the cache keeps no error. If ctx ends while a caller waits, GetOrLoad returns an
// error that wraps the error of ctx. If ctx has ended before the call, GetOrLoad returns a value
// that is in the cache, but doesn't call fn.
//
// The ctx that fn gets carries the key. Pass this ctx to each GetOrLoad that the loader waits for,
// on any goroutine and of any cache. If that GetOrLoad would make the load wait for itself, even by
// way of loads on other goroutines, it returns an error that is [ErrCycle] and names the keys. With
// another ctx it would wait until that ctx ends.
//
// Cost: as Get for a value that is in the cache, with no Go allocation. A load makes one Go
// allocation, for its ctx, and the first wait for it one more. A wait in a loader may make others.
func (c *Of[K, V]) GetOrLoad(ctx context.Context, k K, fn func(ctx context.Context, x *V) error) (*V, error) {
	switch {
	case fn == nil:
		panic(misuse("GetOrLoad without a function that loads"))
	case ctx == nil:
		panic(misuse("GetOrLoad without a context: use context.Background()"))
	}
	for {
		c.open("GetOrLoad")
		if i, ok := c.find(k); ok {
			if c.entries[i].has() {
				return c.pin(i), nil
			}
			x, err := c.wait(ctx, k, i)
			if x != nil || err != nil {
				return x, err
			}
			continue
		}
		var outer *load
		var ended error
		c.guard(func() { outer, ended = outerOf(ctx), ctx.Err() })
		if ended != nil {
			c.mu.Unlock()
			return nil, fmt.Errorf("cache: load of %v %s: %w", reflect.TypeFor[V](), keyText(k), ended)
		}
		i, err := c.enter(k)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue
		}
		return c.load(ctx, outer, k, i-1, fn)
	}
}

// Add returns a zeroed value, pinned, for a key k without a value. Other goroutines find the value
// at once. Add returns an error that is [ErrPresent] if a value of k is in the cache or in load or
// its finalizer runs, and an [InUseError] if all values are pinned or in load. If the finalizer of
// a value that Add evicts fails, Add returns the finalizer's error. Cost: as Get, the zeroing of V,
// and an eviction; no Go allocation, except for the first finalizers.
func (c *Of[K, V]) Add(k K) (*V, error) {
	for {
		c.open("Add")
		if _, ok := c.find(k); ok {
			c.mu.Unlock()
			return nil, fmt.Errorf("%w: %s", ErrPresent, keyText(k))
		}
		i, err := c.enter(k)
		if err != nil {
			return nil, err
		}
		if i != 0 {
			c.enters(i-1, 1, false)
			x := c.value(i - 1)
			c.mu.Unlock()
			return x, nil
		}
	}
}

// enter makes an entry in load for k, which has none, and returns 1 plus its number, with the lock.
// If it evicted a value instead, it returns 0, without the lock: meanwhile k may have an entry. On
// an error it gives up the lock too.
func (c *Of[K, V]) enter(k K) (uint32, error) {
	if k != k {
		c.mu.Unlock()
		panic(misuse("a %v that isn't equal to itself, as the key of a cache", reflect.TypeFor[K]()))
	}
	if !c.hasRoom() {
		return 0, c.evict()
	}
	x, h := c.pool.Get()
	i := uint32(uint64(h) & arena_c.HandleIndex)
	if x == nil {
		defer c.mu.Unlock()
		err := c.inUse()
		err.onPurpose = true
		return 0, err
	}
	returns := false
	if p := c.index.Get(k); p != nil { // a remembered key
		c.keys[*p] = *new(K)
		*p, returns = i, true
	} else {
		c.index.Set(k, i)
	}
	c.keys[i] = k
	c.entries[i] = ofEntry{where: inLoad, returns: returns}
	c.words.used++
	c.loading++
	return i + 1, nil
}

// enters makes an entry in load a value with that many pins.
func (c *Of[K, V]) enters(i uint32, pins uint32, deleted bool) {
	e, to := &c.entries[i], inSmall
	if e.returns {
		to = inMain
	}
	c.loading--
	c.pinned++
	e.pins, e.returns = pins, false
	if deleted {
		e.where = isDeleted
	} else {
		c.push(to, i)
	}
	if arena_c.Checked {
		c.pinners[i].site.Note()
	}
}

// running is a load or a finalizer that runs. A load is also the context of its loader.
type running[K comparable] struct {
	context.Context
	graph   load
	of      string // the type of the value
	key     K
	entry   uint32
	leaves  bool          // a finalizer
	done    chan struct{} // nil until a goroutine waits
	waiting uint32
	isOver  bool
	ok      bool // the value is there, with a pin for each waiting goroutine
	deleted bool // no key leads to the entry
	next    *running[K]
}

type innermost struct{}

// Value returns the load itself for the key innermost.
func (r *running[K]) Value(key any) any {
	if key == (innermost{}) {
		return &r.graph
	}
	return r.Context.Value(key)
}

func (r *running[K]) String() string { return r.of + " " + keyText(r.key) }

// keyText returns k in words. A String method of its pointer counts, as an arena.Inline has it.
func keyText[K any](k K) string {
	if s, ok := any(&k).(fmt.Stringer); ok {
		return s.String()
	}
	return fmt.Sprint(k)
}

// guard calls fn, which calls methods of a caller's context. If one panics, it gives up the lock.
func (c *Of[K, V]) guard(fn func()) {
	held := true
	defer func() {
		if held {
			c.mu.Unlock()
		}
	}()
	fn()
	held = false
}

// outerOf returns the load whose loader has ctx, or nil.
func outerOf(ctx context.Context) *load {
	l, _ := ctx.Value(innermost{}).(*load)
	return l
}

// run adds r to those that run. The lock is held.
func (c *Of[K, V]) run(r *running[K]) { r.next, c.running = c.running, r }

// over takes the lock and r from those that run, and wakes the goroutines that wait. It reports
// whether the scope is alive.
func (c *Of[K, V]) over(r *running[K]) bool {
	c.mu.Lock()
	for at := &c.running; *at != nil; at = &(*at).next {
		if *at == r {
			*at = r.next
			break
		}
	}
	r.isOver = true
	if r.done != nil {
		close(r.done)
	}
	return c.life.Alive()
}

// load calls the loader for an entry in load, and gives up the lock meanwhile.
func (c *Of[K, V]) load(ctx context.Context, outer *load, k K, i uint32, fn func(context.Context, *V) error) (x *V,
	err error) {
	r := &running[K]{Context: ctx, of: reflect.TypeFor[V]().String(), key: k, entry: i}
	r.graph.outer, r.graph.name = outer, r
	state := c.header.State(uint64(i))
	if c.fin != nil {
		*state = arena_c.ChunkLeaving // closing the scope doesn't finalize it
	}
	c.stats.Misses++
	c.stats.Loads++
	c.run(r)
	x = c.value(i)
	c.mu.Unlock()
	defer func() { // also when the loader panics, or ends the goroutine
		if c.over(r) {
			if c.fin != nil {
				*state = arena_c.ChunkLive
			}
			switch {
			case r.ok:
				c.enters(i, r.waiting+1, r.deleted)
			case r.deleted:
				c.fails()
				c.leave(i)
			default:
				c.fails()
				c.drop(i, false)
			}
		} else if r.ok {
			r.ok, x, err = false, nil, lifetime.Closed{Life: c.life, What: "GetOrLoad of a cache"}
		}
		c.mu.Unlock()
	}()
	err = fn(r, x)
	r.ok = err == nil
	if !r.ok {
		x = nil
	}
	return x, err
}

// wait waits for the load or the finalizer of an entry, and gives up the lock. It returns the
// pinned value; or nil and no error, and the caller goes on by itself.
func (c *Of[K, V]) wait(ctx context.Context, k K, i uint32) (*V, error) {
	r := c.runs(i)
	var in *load
	var ends <-chan struct{}
	c.guard(func() { in, ends = outerOf(ctx), ctx.Done() })
	if way := in.await(&r.graph); way != nil {
		c.mu.Unlock()
		return nil, in.cycle(way)
	}
	if r.done == nil {
		r.done = make(chan struct{})
	}
	r.waiting++
	done := r.done
	c.mu.Unlock()
	select {
	case <-done:
	case <-ends:
	}
	in.awaited(&r.graph)
	c.open("GetOrLoad")
	if !r.isOver {
		r.waiting--
		c.mu.Unlock()
		return nil, fmt.Errorf("cache: wait for the load of %v %s: %w", reflect.TypeFor[V](), keyText(k), ctx.Err())
	}
	defer c.mu.Unlock()
	if !r.ok {
		return nil, nil
	}
	c.stats.Hits++
	return c.value(i), nil
}

// runs returns the load or the finalizer of an entry. pre: one runs.
func (c *Of[K, V]) runs(i uint32) *running[K] {
	r := c.running
	for r.entry != i {
		r = r.next
	}
	return r
}

// fails counts a load that made no value.
func (c *Of[K, V]) fails() {
	c.stats.Failed++
	c.loading--
}

// load is a load of any cache, in the graph of the loads that wait for each other.
type load struct {
	outer *load   // whose loader called GetOrLoad
	on    []*load // the loads that it waits for
	mark  uint64  // of the last search that came by
	name  fmt.Stringer
}

// waits guards the graph.
var waits struct {
	sync.Mutex
	marks uint64
}

// await adds to the graph that l and its outer loads wait for another load. If that load waits for
// one of them, it returns the way there, and adds nothing. l is nil outside of loaders.
func (l *load) await(other *load) (path []*load) {
	if l == nil {
		return nil
	}
	waits.Lock()
	defer waits.Unlock()
	waits.marks += 2
	for o := l; o != nil; o = o.outer {
		o.mark = waits.marks
	}
	if path := other.way(waits.marks, nil); path != nil {
		return path
	}
	for o := l; o != nil; o = o.outer {
		o.on = append(o.on, other)
	}
	return nil
}

// cycle returns the error of a load that would wait for itself, by way of a path. The names are a
// caller's methods, so no lock is held.
func (l *load) cycle(path []*load) error {
	text := ""
	for i, by := range path {
		if i > 0 {
			text += ", which waits for "
		}
		text += "the load of " + by.name.String()
	}
	if path[len(path)-1] != l {
		text += ", whose loader waits for it"
	}
	return fmt.Errorf("%w: the load of %v waits for %s; load one of them after the other, not in its loader",
		ErrCycle, l.name, text)
}

// way returns the way from l to a load that is marked with mark, or nil. It marks the others that
// it comes by with mark + 1.
func (l *load) way(mark uint64, path []*load) []*load {
	path = append(path, l)
	switch l.mark {
	case mark:
		return path
	case mark + 1:
		return nil
	}
	l.mark = mark + 1
	for _, on := range l.on {
		if found := on.way(mark, path); found != nil {
			return found
		}
	}
	return nil
}

// awaited takes back await.
func (l *load) awaited(other *load) {
	if l == nil {
		return
	}
	waits.Lock()
	defer waits.Unlock()
	for o := l; o != nil; o = o.outer {
		if i := slices.Index(o.on, other); i >= 0 {
			o.on = slices.Delete(o.on, i, i+1)
		}
	}
}
