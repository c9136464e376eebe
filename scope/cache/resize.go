package cache

import (
	"os"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
)

// Resize sets the size of the cache, at most the size passed to NewBytes. It evicts the least
// wanted entries until the others fit. The index keeps its bytes. After a Resize to a smaller size,
// [Bytes.Trim] returns the free pages to the system. Resize panics if the size is out of range:
// each shard needs room for its index and for three of the largest entries. It panics after the
// scope has closed. Cost: O(entries and index), and a copy of the entries.
func (c *Bytes) Resize(size int) {
	if !c.life.Alive() {
		panic(lifetime.Closed{Life: c.life, What: "Resize of a cache.Bytes"})
	}
	c.sizing.Lock()
	defer c.sizing.Unlock()
	n := len(c.shards)
	x := &c.shards[0]
	planned := cap(x.queues[small].bytes) + cap(x.queues[main].bytes)
	least := lines(eachOf(c.planned, n)-planned+3*c.most) * n
	if size < least || size > c.planned {
		panic(misuse("Resize of a cache.Bytes to %d bytes: from %d to the %d that it was made with",
			size, least, c.planned))
	}
	entries := planned - eachOf(c.planned, n) + eachOf(size, n)
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		part := entries / smallShare &^ 7
		x.resize(small, min(part, cap(x.queues[small].bytes)))
		x.resize(main, min(entries-part, cap(x.queues[main].bytes)))
		c.done(x)
	}
	c.size = size
}

// resize moves a queue's entries to its front, and sets its size.
func (x *shard) resize(in uint, size int) {
	q := &x.queues[in]
	for q.used() > int64(size) {
		x.evict(in)
	}
	x.straighten(in)
	q.bytes = q.bytes[:size]
}

// used returns the bytes of a queue's entries, also of dead ones.
func (q *queue) used() int64 {
	switch {
	case q.count == 0:
		return 0
	case q.head > q.tail:
		return q.head - q.tail
	}
	return q.end - q.tail + q.head
}

// straighten moves a queue's entries to its front, the oldest first. The cells of entries that have
// their new place already are marked: it may be the old place of another.
func (x *shard) straighten(in uint) {
	q := &x.queues[in]
	if q.count == 0 {
		*q.ring = ring{}
		return
	}
	wraps, used := q.head <= q.tail, q.used()
	_ = q.walk(func(place int64, e entry) error { // never fails on the cache's own words
		to := place - q.tail
		if wraps && place < q.head {
			to = place + q.end - q.tail
		}
		if !e.isDead() {
			c := x.cellOf(x.hash(e.key()), in, place)
			c.move(in, to)
			c.moved |= 1 << c.n
		}
		return nil
	})
	for i := range x.index {
		x.index[i].moved = 0
	}
	if !wraps {
		copy(q.bytes, q.bytes[q.tail:q.head])
	} else { // newer, free, older
		copy(q.bytes[q.head:], q.bytes[q.tail:q.end])
		slices.Reverse(q.bytes[:q.head])
		slices.Reverse(q.bytes[q.head:used])
		slices.Reverse(q.bytes[:used])
	}
	q.head, q.tail, q.end = used, 0, 0
}

// Trim returns whole pages without entries to the operating system. Its result is the number of
// bytes of these pages that were in memory. The cache keeps the pages' addresses, and uses them
// again when it needs them. Trim returns no pages and 0 without a budget, in checked builds, and
// where budget.Region.Trim returns none. Cost: two system calls for each range of free pages; each
// of a shard's two queues has at most two ranges.
func (c *Bytes) Trim() (bytes uint64, err error) {
	if !c.life.Alive() {
		return 0, nil
	}
	for i := range c.shards {
		x := &c.shards[i]
		c.lock(x)
		for i := range x.queues {
			q := &x.queues[i]
			all := q.bytes[:cap(q.bytes)]
			free := [][]byte{all[q.head:], all[:q.tail]}
			if q.head <= q.tail && q.count != 0 {
				free = [][]byte{all[q.head:q.tail], all[q.end:]}
			}
			for _, f := range free {
				n, failed := discard(f)
				if bytes += n; failed != nil {
					err = failed
				}
			}
		}
		c.done(x)
	}
	return bytes, err
}

// discard makes the whole pages of free bytes zero.
func discard(free []byte) (uint64, error) {
	page := uintptr(os.Getpagesize())
	p := unsafe.Pointer(unsafe.SliceData(free))
	skip := -uintptr(p) & (page - 1)
	if uintptr(len(free)) < skip+page {
		return 0, nil
	}
	return arena_c.Discard(unsafe.Add(p, skip), uint64((uintptr(len(free))-skip)&^(page-1)))
}
