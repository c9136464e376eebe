package cache

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// ofQueue is a list of entries, from the newest to the oldest.
type ofQueue struct{ newest, oldest, count uint32 }

func (c *Of[K, V]) queue(of where) *ofQueue {
	if of == inSmall {
		return &c.words.small
	}
	return &c.words.main
}

// push makes an entry the newest of a queue.
func (c *Of[K, V]) push(to where, i uint32) {
	q, e := c.queue(to), &c.entries[i]
	e.where, e.newer, e.older = to, 0, q.newest
	if q.newest != 0 {
		c.entries[q.newest-1].newer = i + 1
	} else {
		q.oldest = i + 1
	}
	q.newest = i + 1
	q.count++
}

// unlink takes an entry out of its queue, if it is in one.
func (c *Of[K, V]) unlink(i uint32) {
	e := &c.entries[i]
	if e.where == isAside {
		return
	}
	q := c.queue(e.where)
	if e.newer != 0 {
		c.entries[e.newer-1].older = e.older
	} else {
		q.newest = e.older
	}
	if e.older != 0 {
		c.entries[e.older-1].newer = e.newer
	} else {
		q.oldest = e.newer
	}
	e.newer, e.older = 0, 0
	q.count--
}

// choose takes the least wanted value that isn't pinned out of its queue. It returns false if all
// are pinned. isNew reports whether the value was in the small queue.
//
// A pinned value whose turn has come is put aside, and its last Unpin puts it into the main queue,
// so no two evictions examine it in vain. After ofChances examined values one that was read is
// evicted as well. So apart from pinned values, one eviction examines at most ofChances + 1.
func (c *Of[K, V]) choose() (i uint32, isNew, ok bool) {
	w, examined := c.words, uint64(0)
	for {
		from := inMain
		if w.small.count >= max(w.limit/10, 1) || w.main.count == 0 {
			from = inSmall
		}
		q := c.queue(from)
		if q.count == 0 {
			break
		}
		i = q.oldest - 1
		e := &c.entries[i]
		examined++
		reads := e.reads
		if from == inSmall {
			e.reads = 0
		} else if reads > 0 {
			e.reads--
		}
		c.unlink(i)
		if e.pins > 0 {
			e.where = isAside
		} else if reads > 0 && examined <= ofChances {
			c.push(inMain, i)
		} else {
			isNew, ok = from == inSmall, true
			break
		}
	}
	c.stats.Examined += examined
	c.stats.MaxExamined = max(c.stats.MaxExamined, examined)
	return i, isNew, ok
}

// hasRoom reports whether an entry and its chunk are free.
func (c *Of[K, V]) hasRoom() bool { return c.words.used < c.words.limit && c.header.Free > 0 }

// evict evicts the least wanted value, and gives up the lock. It returns an InUseError if no value
// can be evicted, or the error of the finalizer.
func (c *Of[K, V]) evict() error {
	i, isNew, ok := c.choose()
	if !ok {
		err := c.inUse()
		c.mu.Unlock()
		return err
	}
	c.stats.Evictions++
	return c.end(i, isNew)
}

// end ends a value that is in no queue, and gives up the lock; the finalizer runs without it. The
// key is remembered if isNew.
func (c *Of[K, V]) end(i uint32, isNew bool) error {
	if c.fin == nil {
		c.drop(i, isNew)
		c.mu.Unlock()
		return nil
	}
	c.entries[i].where = isLeaving
	c.leaving++
	// neither live, so that closing the scope doesn't finalize it again, nor free
	*c.header.State(uint64(i)) = arena_c.ChunkLeaving
	r := c.idle
	if r == nil {
		r = &running[K]{}
	}
	c.idle, r.next = r.next, nil
	r.entry, r.leaves = i, true
	c.run(r)
	c.mu.Unlock()
	defer func() { // also when the finalizer panics, or ends the goroutine
		if c.over(r) {
			c.leaving--
			*c.header.State(uint64(i)) = arena_c.ChunkLive
			c.drop(i, isNew)
		}
		if r.done == nil {
			*r = running[K]{next: c.idle}
			c.idle = r
		}
		c.mu.Unlock()
	}()
	k := c.keys[i]
	if err := c.fin(c.value(i)); err != nil {
		return fmt.Errorf("cache: eviction of %v %s: %w", reflect.TypeFor[V](), keyText(k), err)
	}
	return nil
}

// drop frees an entry in no queue and its chunk. If isNew, its key is remembered in place of the
// key that was remembered longest.
func (c *Of[K, V]) drop(i uint32, isNew bool) {
	w, k := c.words, c.keys[i]
	if isNew {
		at := c.n + w.ring
		w.ring = (w.ring + 1) % c.n
		c.forget(at)
		c.keys[at] = k
		*c.index.Get(k) = at
	} else {
		c.index.Delete(k)
	}
	c.leave(i)
}

// leave frees an entry that no key leads to, and its chunk.
func (c *Of[K, V]) leave(i uint32) {
	c.entries[i] = ofEntry{}
	c.keys[i] = *new(K)
	c.words.used--
	c.pool.Put(arena.Handle[V](c.header.Handle(uint64(i))))
}

// forget forgets the remembered key at a place, if it has one.
func (c *Of[K, V]) forget(at uint32) {
	if p := c.index.Get(c.keys[at]); p != nil && *p == at {
		c.index.Delete(c.keys[at])
	}
	c.keys[at] = *new(K)
}

// Delete removes the value of k, and returns the error of the value's finalizer. It returns nil if
// the cache has no value of k.
//
// A value without a finalizer may be pinned or in load. The callers that pinned the value, or wait
// for it, keep the value, and its last Unpin frees it. A later call doesn't find the value:
// GetOrLoad loads k again, even while the earlier load runs. So when the source of a key's value
// has changed, delete the key. No later call then returns the old value.
//
// If a value with a finalizer is pinned or in load, Delete returns an error, and the value stays.
// The reason is that the finalizer of a key's value must end before the key's next value is loaded.
func (c *Of[K, V]) Delete(k K) error {
	if !c.lock() {
		return nil
	}
	i, ok := c.find(k)
	if !ok || c.entries[i].where == isLeaving {
		c.mu.Unlock()
		return nil
	}
	if e := c.entries[i]; e.pins > 0 || e.where == inLoad {
		if c.fin == nil {
			c.detach(i)
			c.mu.Unlock()
			return nil
		}
		c.mu.Unlock()
		if e.where == inLoad {
			return fmt.Errorf("cache: Delete of %v %s, which is in load", reflect.TypeFor[V](), keyText(k))
		}
		return fmt.Errorf("cache: Delete of %v %s with %d pins; Unpin it first", reflect.TypeFor[V](),
			keyText(k), e.pins)
	}
	c.unlink(i)
	return c.end(i, false)
}

// detach removes the key of an entry that is pinned or in load.
func (c *Of[K, V]) detach(i uint32) {
	c.index.Delete(c.keys[i])
	c.keys[i] = *new(K)
	if c.entries[i].where == inLoad {
		c.runs(i).deleted = true
		return
	}
	c.unlink(i)
	c.entries[i].where = isDeleted
}

// Clear evicts all values that aren't pinned, and forgets the remembered keys. It returns the
// finalizers' errors, at most 16 of them, joined with an [InUseError] if a value is pinned or in
// load. After the scope has closed, Clear returns nil. Cost: O(n).
func (c *Of[K, V]) Clear() error {
	var errs []error
	for i := range c.n {
		if !c.lock() {
			return nil
		}
		if e := &c.entries[i]; !e.has() || e.pins > 0 {
			c.mu.Unlock()
			continue
		}
		c.unlink(i)
		if err := c.end(i, false); err != nil && len(errs) < errorsMost {
			errs = append(errs, err)
		}
	}
	if !c.lock() {
		return nil
	}
	defer c.mu.Unlock()
	for at := c.n; at < 2*c.n; at++ {
		c.forget(at)
	}
	c.words.ring = 0
	if c.pinned+c.loading > 0 {
		err := c.inUse()
		err.advice = "they stay; Unpin them first"
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

const errorsMost = 16

// Resize sets the limit of values to m, and evicts the least wanted values above the limit. m is
// from 1 to the n of New; Resize panics if m is out of range. If more than m values are pinned or
// in load, Resize returns an [InUseError] and changes nothing. If goroutines pin values meanwhile,
// it may return one after it has set the limit. At the first error of a finalizer, Resize stops and
// returns the error. The next load then evicts the other values above the limit.
func (c *Of[K, V]) Resize(m int) error {
	c.open("Resize")
	if m < 1 || m > int(c.n) {
		c.mu.Unlock()
		panic(misuse("Resize of a cache to %d values: from 1 to the %d that it was made for", m, c.n))
	}
	if c.pinned+c.loading > m {
		defer c.mu.Unlock()
		err := c.inUse()
		err.advice = fmt.Sprintf("Unpin some, or Resize it to %d or more", c.pinned+c.loading)
		return err
	}
	c.words.limit = uint32(m)
	for int(c.words.used)-c.leaving > m {
		if err := c.evict(); err != nil {
			return err
		}
		c.open("Resize")
	}
	c.mu.Unlock()
	return nil
}

// Trim returns whole pages without values to the operating system. Its result is the number of
// bytes of these pages that were in memory. Values don't move, so a page with only a part of a
// value stays: if the values are smaller than a page, few pages may be free. The cache keeps the
// pages' addresses, and uses them again when it needs them. Trim returns 0 where [Bytes.Trim] does,
// and after the scope has closed. At an error of the system it stops and returns the error. Cost:
// O(n), and two system calls for each range of free pages, all while the cache is locked.
func (c *Of[K, V]) Trim() (bytes uint64, err error) {
	if !c.lock() {
		return 0, nil
	}
	defer c.mu.Unlock()
	from := uint32(0) // the first of the free chunks below i
	for i := range c.n + 1 {
		if i < c.n && c.entries[i].where == isFree {
			continue
		}
		if from != i {
			first := (*byte)(c.header.Chunk(uint64(from)))
			n, err := discard(unsafe.Slice(first, uint64(i-from)*c.header.Stride))
			if bytes += n; err != nil {
				return bytes, err
			}
		}
		from = i + 1
	}
	return bytes, nil
}
