package cache

import (
	"fmt"
	"math/bits"
)

// look returns an error for bytes that no operation leaves: after it, no operation panics.
func (c *Bytes) look() error {
	for i := range c.shards {
		if err := c.shards[i].walk(); err != nil {
			return fmt.Errorf("shard %d: %w", i, err)
		}
	}
	return nil
}

// walk returns an error for words, entries or cells that no operation leaves.
func (x *shard) walk() error {
	live, keyBytes, valueBytes := uint64(0), uint64(0), uint64(0)
	for in := range x.queues {
		err := x.queues[in].walk(func(place int64, e entry) error {
			if e.isDead() {
				return nil
			}
			live, keyBytes, valueBytes = live+1, keyBytes+uint64(e.keySize()), valueBytes+uint64(e.valueSize())
			if x.cellOf(x.hash(e.key()), uint(in), place).bucket == nil {
				return fmt.Errorf("the entry at %d has no cell", place)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	cells := uint64(0)
	for i := range x.index {
		k := &x.index[i]
		unused := k.having(0)
		cells += uint64(len(k.places) - bits.OnesCount64(unused))
		for ; unused != 0; unused &= unused - 1 {
			if k.first(unused).count() != 0 {
				return fmt.Errorf("an empty cell of bucket %d was read", i)
			}
		}
		if k.moved != 0 {
			return fmt.Errorf("cells of bucket %d have moved", i)
		}
	}
	if live != cells || live != x.entries || keyBytes != x.keyBytes || valueBytes != x.valueBytes {
		return fmt.Errorf("%d entries of %d and %d bytes, and by the words %d of %d and %d; %d cells",
			live, keyBytes, valueBytes, x.entries, x.keyBytes, x.valueBytes, cells)
	}
	return nil
}

// walk calls do for each entry, the oldest first. It trusts no word.
func (q *queue) walk(do func(place int64, e entry) error) error {
	bad := func(at int64) error {
		return fmt.Errorf("a queue of %d bytes: head %d, tail %d, end %d, count %d: byte %d", q.size(), q.head, q.tail,
			q.end, q.count, at)
	}
	if q.count == 0 {
		return nil
	}
	if q.count < 0 || q.head < 0 || q.tail < 0 || q.head > q.size() || q.tail > q.size() || q.end < 0 ||
		q.end > q.size() {
		return bad(0)
	}
	at, wraps := q.tail, q.head <= q.tail
	for n := int64(0); n < q.count; n++ {
		if wraps && at == q.end {
			at, wraps = 0, false
		}
		limit := q.head
		if wraps {
			limit = q.end
		}
		if at+header > limit || at%8 != 0 {
			return bad(at)
		}
		e := q.entry(at)
		if size := e.size(); size > limit-at || e.sizes()&entryEnds != 0 && size < header+untilSize {
			return bad(at)
		}
		if err := do(at, e); err != nil {
			return err
		}
		at += e.size()
	}
	if wraps && at == q.end && q.head == 0 {
		at = 0
	}
	if at != q.head {
		return bad(at)
	}
	return nil
}
