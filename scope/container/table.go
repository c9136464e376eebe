package container

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/internal/lifetime"
	"github.com/upfront-mem/upfront/scope/internal/wyhash"
	"github.com/upfront-mem/upfront/scope/stack"
)

// table is the common base of Map and StringMap: n entries, and an index that finds them by the
// hashes of their keys. A key stays in its entry until it is deleted.
type table[V any] struct {
	_    stack.NoCopy
	life life
	entries
	values []V // of all n entries
	kept   kept
	on     arena.Reallocator // the heap of its bytes; nil: a scope's
}

// Free ends a map from NewMapOn or NewStringMapOn, and frees the map's bytes: see [List.Free].
func (t *table[V]) Free() error { return t.life.end("map", t.on, unsafe.Pointer(t.words)) }

// entries is the contents of a map's bytes before keys and values.
type entries struct {
	words *tableWords
	index index
	order []standing
}

type tableWords struct {
	seed seed
	used uint32 // number of keys
	most uint32 // peak of used since Clear; All examines only these entries
}

// standing holds two permutations: the entry at a rank of the order, and the rank of an entry.
// Entries with a key come first. The free entries follow, the last freed one first.
type standing struct{ entry, rank uint32 }

func layEntries(bytes *[]byte, n int) entries {
	words, cells := &cut[tableWords](bytes, 1)[0], cut[cell](bytes, int(cellsFor(n)))
	return entries{words, cells, cut[standing](bytes, n)}
}

func entriesSize(n int) uint64 {
	return words[tableWords](1) + cellsFor(n)*cellSize + words[standing](n)
}

func (t entries) begin(inState kept) {
	t.letGo()
	t.words.seed = wyhash.Random()
	if inState {
		t.words.seed = wyhash.Of(0)
	}
}

// Seed sets the seed of an empty map's hashes. Maps with the same seed have the same hashes. Until
// Seed, a map in a state of package save has the seed 0, and any other map a random seed. If
// players choose the keys, pass a number that the players don't know. Seed panics if the map has a
// key, and after the scope has closed.
func (t *table[V]) Seed(number uint64) {
	if !t.life.began().Alive() {
		panic(lifetime.Closed{Life: t.life.Life, What: "Seed of a map"})
	}
	if used := t.used(); used != 0 {
		panic(&scope.Misuse{Text: fmt.Sprintf("Seed of a map that has %d keys: seed it first", used)})
	}
	t.words.seed = wyhash.Of(number)
}

// Len returns the number of keys.
func (t *table[V]) Len() int {
	if !t.life.began().Alive() {
		return 0
	}
	return t.used()
}

// Cap returns n, or 0 after the scope closed.
func (t *table[V]) Cap() int {
	if !t.life.began().Alive() {
		return 0
	}
	return len(t.order)
}

func (t entries) used() int { return int(min(t.words.used, uint32(len(t.order)))) }

// letGo frees all entries. New keys get them in order, from entry 0.
func (t entries) letGo() {
	for i := range t.order {
		t.order[i] = standing{uint32(i), uint32(i)}
	}
	t.words.used, t.words.most = 0, 0
}

// enter assigns the next free entry and the cell at `at` to a key with that hash, and returns the
// entry.
func (t *table[V]) enter(at, hash uint32, v V) (entry uint32) {
	entry = t.order[t.words.used].entry
	t.words.used++
	t.words.most = max(t.words.most, t.words.used)
	t.values[entry] = v
	*t.index.at(at) = cell{hash, entry + 1}
	return entry
}

// leave frees the entry of a cell. The last entry in the order takes its rank. No entry moves.
func (t *table[V]) leave(at, entry uint32) {
	t.index.remove(at)
	t.words.used--
	last := t.words.used
	rank, other := t.order[entry].rank, t.order[last].entry
	t.order[rank].entry, t.order[other].rank = other, rank
	t.order[last].entry, t.order[entry].rank = entry, last
	gone(t.kept, t.values[entry:entry+1])
}

func (t *table[V]) clear() {
	clear(t.index)
	gone(t.kept, t.values)
	t.letGo()
}

// look examines at most max(lookMost, lookEach * n) cells, because many keys of one hash would take
// too long.
const (
	lookMost = 1 << 24
	lookEach = 64
)

// look returns an error for an image that no sequence of operations leaves. find returns the cell
// and the hash of an entry's key, and reports whether the cell leads to the entry.
func (t entries) look(find func(entry uint32) (at uint32, hash uint32, ok bool)) error {
	used, most, n := t.words.used, t.words.most, uint32(len(t.order))
	if used > n {
		return fmt.Errorf("%d keys, of %d at most", used, n)
	}
	if most < used || most > n {
		return fmt.Errorf("a peak of %d keys, and %d now, of at most %d", most, used, n)
	}
	for rank := range n {
		if entry := t.order[rank].entry; entry >= n || t.order[entry].rank != rank {
			return fmt.Errorf("entry %d of %d is out of range, or twice in the order", entry, n)
		}
	}
	cells := uint32(0)
	for i := range t.index {
		if c := &t.index[i]; c.entry != 0 {
			cells++
		} else if c.hash != 0 {
			return fmt.Errorf("cell %d is empty and has the hash %#x", i, c.hash)
		}
	}
	if cells != used {
		return fmt.Errorf("%d keys, and %d cells with one", used, cells)
	}
	steps := max(lookMost, lookEach*uint64(n))
	for rank := range used {
		entry := t.order[rank].entry
		at, hash, ok := find(entry)
		if !ok {
			return fmt.Errorf("no cell leads to entry %d by its key", entry)
		}
		if entry >= most {
			return fmt.Errorf("a key has entry %d, past a peak of %d keys", entry, most)
		}
		if far := uint64((at-hash)&uint32(len(t.index)-1)) + 1; far > steps {
			return errors.New("keys that collide too often; play with another Seed")
		} else {
			steps -= far
		}
	}
	return nil
}

// index is a hash table with linear probing: a power of two of cells, at most three quarters of
// them in use. An entry's cell is at its key's hash, modulo the size, or the next empty cell after
// it. So a search goes from the hash to the first empty cell, and remove closes gaps.
//
// For example, in 8 cells the keys A, B and C have the hashes 5, 5 and 6. A is in cell 5; B finds
// cell 5 in use and takes cell 6; C takes cell 7. When A is removed, cell 5 would end the search
// for B too early. So B moves to cell 5, C moves to cell 6, and cell 7 is emptied. Had C the hash
// 7, it would stay.
type index []cell

type cell struct{ hash, entry uint32 } // entry counts from 1; 0 is an empty cell

const cellSize = uint64(unsafe.Sizeof(cell{}))

func cellsFor(n int) uint64 { return 1 << bits.Len64(uint64(max(0, n*4-1))/3) }

func (x index) at(i uint32) *cell { return &x[i&uint32(len(x)-1)] }

// remove empties a cell. If the search for a later cell's hash passes the gap, that cell moves into
// it and leaves the next gap.
func (x index) remove(gap uint32) {
	mask := uint32(len(x) - 1)
	for i, end := gap+1, gap+1+mask; i != end && x.at(i).entry != 0; i++ {
		if c := *x.at(i); (i-c.hash)&mask >= (i-gap)&mask {
			*x.at(gap) = c
			gap = i
		}
	}
	*x.at(gap) = cell{}
}

const nMax = 1 << 28 // keys of a map, so that the number of cells fits in a uint32
