package cache

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope/stack"
)

// note registers the bytes of c with a state that is being made.
func (c *Of[K, V]) note(st *stack.Stack, bytes []byte) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(c.keys))) - uintptr(unsafe.Pointer(unsafe.SliceData(bytes)))
	n := int(c.n)
	st.NoteTenant(bytes, stack.Tenant{
		Name: reflect.TypeFor[Of[K, V]]().String(),
		Values: []stack.TenantValues{{What: "keys", Offset: uint64(at), Count: uint64(len(c.keys)),
			Type: reflect.TypeFor[K]()}},
		Still: c.still,
		Check: func(image []byte) error {
			w, entries, _ := layOf[K](image, n)
			return look(w, entries)
		},
	})
}

// still returns an error while a value is pinned or in load.
func (c *Of[K, V]) still(replace bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinned+c.loading == 0 {
		c.replaced = c.replaced || replace
		return nil
	}
	return fmt.Errorf("a cache of %v has %d values pinned and %d in load; Unpin them first", reflect.TypeFor[V](),
		c.pinned, c.loading)
}

// look returns an error for words and entries from outside that no cache without pins has. The
// index and the pool have checks of their own; agree finds a disagreement with them.
func look(w *ofWords, entries []ofEntry) error {
	n := uint32(len(entries))
	if w.limit < 1 || w.limit > n || w.ring >= n || w.used > w.limit {
		return fmt.Errorf("%d values of %d, of at most %d; remembered keys at %d", w.used, w.limit, n, w.ring)
	}
	if err := errors.Join(lookAt(&w.small, inSmall, entries), lookAt(&w.main, inMain, entries)); err != nil {
		return err
	}
	if uint64(w.small.count)+uint64(w.main.count) != uint64(w.used) {
		return fmt.Errorf("%d values, and queues of %d and %d", w.used, w.small.count, w.main.count)
	}
	used := uint32(0)
	for i, e := range entries {
		if e.where == isFree && e != (ofEntry{}) {
			return fmt.Errorf("entry %d is free and in use", i)
		}
		if e.where != isFree {
			used++
		}
	}
	if used != w.used {
		return fmt.Errorf("%d values, and %d entries in use", w.used, used)
	}
	return nil
}

// lookAt looks at a queue. Each step leads to an older entry that names the newer one, so no loop
// leads back.
func lookAt(q *ofQueue, is where, entries []ofEntry) error {
	newer, at := uint32(0), q.newest
	for range q.count {
		if at == 0 || at > uint32(len(entries)) {
			return fmt.Errorf("a queue of %d values leads to entry %d of %d", q.count, at, len(entries))
		}
		e := entries[at-1]
		if want := (ofEntry{newer: newer, older: e.older, where: is, reads: min(e.reads, ofReads)}); e != want {
			return fmt.Errorf("entry %d of a queue is %+v, and not %+v", at-1, e, want)
		}
		newer, at = at, e.older
	}
	if at != 0 || q.oldest != newer {
		return fmt.Errorf("a queue of %d values ends at entry %d, and not %d", q.count, q.oldest, newer)
	}
	return nil
}

// agree makes c empty if the parts of a snapshot, each of them correct, disagree. A pinned value
// can't be lost, because a Restore with pins is refused. Cost: O(n).
func (c *Of[K, V]) agree() {
	c.replaced = false
	keys := 0
	for at, k := range c.keys {
		p := c.index.Get(k)
		leads := p != nil && *p == uint32(at)
		if leads {
			keys++
		}
		if at < int(c.n) {
			used := c.entries[at].where != isFree
			if leads != used || used != (*c.header.State(uint64(at)) == arena_c.ChunkLive) {
				keys = -2 * len(c.keys)
			}
		}
	}
	if keys == c.index.Len() {
		return
	}
	for h := range c.pool.All() {
		c.pool.Put(h)
	}
	c.index.Clear()
	clear(c.entries)
	clear(c.keys)
	*c.words = ofWords{limit: c.words.limit}
}
