package container

import (
	"errors"
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// table is what Map and StringMap share: a place for each of n entries, and an index that leads to
// them by the hashes of their keys. An entry stays in its place until its key is deleted.
type table[V any] struct {
	_    noCopy
	life life
	entries
	values []V // of all n entries
	kept   kept
	on     arena.Reallocator // that has its bytes; nil: its scope has them
}

// Free ends a map that NewMapOn or NewStringMapOn made, and gives its bytes back: as that of a List.
func (t *table[V]) Free() error { return t.life.end("map", t.on, unsafe.Pointer(t.words)) }

// entries is what lies in a map's bytes before keys and values.
type entries struct {
	words *tableWords
	index index
	order []standing
}

// tableWords are the words of a table.
type tableWords struct {
	seed seed
	used uint32 // keys in it
	most uint32 // the most keys that were in it since it was empty: All looks at so many entries
}

// standing is two permutations of the entries in one: which entry stands so far in the order, and
// where in the order the entry of that place stands. The entries that have a key come first, then
// those that are free, the one that was freed last before the others.
type standing struct{ entry, rank uint32 }

func layEntries(bytes *[]byte, n int) entries {
	words, cells := &cut[tableWords](bytes, 1)[0], cut[cell](bytes, int(cellsFor(n)))
	return entries{words, cells, cut[standing](bytes, n)}
}

// entriesSize is the bytes of n entries.
func entriesSize(n int) uint64 {
	return words[tableWords](1) + cellsFor(n)*cellSize + words[standing](n)
}

// begin makes zeroed bytes an empty table.
func (t entries) begin(inState kept) {
	t.letGo()
	t.words.seed = randomSeed()
	if inState {
		t.words.seed = seedOf(0)
	}
}

// Seed seeds the hashes of an empty map by a number, so that they are the same wherever the number
// is. A map that is made in a state has the seed of 0: give it one that players don't know, if they
// choose the keys. Any other is seeded at random. It panics when there is a key in the map, and
// after its scope closed.
func (t *table[V]) Seed(number uint64) {
	if !t.life.began().alive() {
		panic(closed{t.life, "Seed of a map"})
	}
	if used := t.used(); used != 0 {
		panic(&scope.Misuse{Text: fmt.Sprintf("Seed of a map that has %d keys: seed it first", used)})
	}
	t.words.seed = seedOf(number)
}

// Len is the number of keys in it.
func (t *table[V]) Len() int {
	if !t.life.began().alive() {
		return 0
	}
	return t.used()
}

// Cap is n, the number of keys that there may be.
func (t *table[V]) Cap() int {
	if !t.life.began().alive() {
		return 0
	}
	return len(t.order)
}

func (t entries) used() int { return int(min(t.words.used, uint32(len(t.order)))) }

// letGo makes all entries free: the first keys get the first of them.
func (t entries) letGo() {
	for i := range t.order {
		t.order[i] = standing{uint32(i), uint32(i)}
	}
	t.words.used, t.words.most = 0, 0
}

// enter gives the next free place to a key of that hash, whose cell is at `at`.
func (t *table[V]) enter(at, hash uint32, v V) (entry uint32) {
	entry = t.order[t.words.used].entry
	t.words.used++
	t.words.most = max(t.words.most, t.words.used)
	t.values[entry] = v
	*t.index.at(at) = cell{hash, entry + 1}
	return entry
}

// leave takes the entry away to which a cell leads. The last in the order takes its rank. No entry
// moves.
func (t *table[V]) leave(at, entry uint32) {
	t.index.remove(at)
	t.words.used--
	last := t.words.used
	rank, other := t.order[entry].rank, t.order[last].entry
	t.order[rank].entry, t.order[other].rank = other, rank
	t.order[last].entry, t.order[entry].rank = entry, last
	gone(t.kept, t.values[entry:entry+1])
}

// clear takes all away.
func (t *table[V]) clear() {
	clear(t.index)
	gone(t.kept, t.values)
	t.letGo()
}

// lookMost is how many cells a look at an image looks at, for each key and at least: many keys of
// one hash would take it too long.
const (
	lookMost = 1 << 24
	lookEach = 64
)

// look refuses an image that no play leaves. find gives the cell of an entry's key, and says
// whether that leads to the entry.
func (t entries) look(find func(entry uint32) (at uint32, hash uint32, ok bool)) error {
	used, most, n := t.words.used, t.words.most, uint32(len(t.order))
	if used > n {
		return fmt.Errorf("%d keys, of %d at most", used, n)
	}
	if most < used || most > n {
		return fmt.Errorf("%d keys at most so far, now %d, of %d at most", most, used, n)
	}
	for rank := range n {
		if entry := t.order[rank].entry; entry >= n || t.order[entry].rank != rank {
			return fmt.Errorf("entry %d of %d stands in its order, or is there twice", entry, n)
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
		return fmt.Errorf("%d keys, and %d cells that lead to one", used, cells)
	}
	steps := max(lookMost, lookEach*uint64(n))
	for rank := range used {
		entry := t.order[rank].entry
		at, hash, ok := find(entry)
		if !ok {
			return fmt.Errorf("no cell leads to entry %d by its key", entry)
		}
		if entry >= most {
			return fmt.Errorf("a key has entry %d, and there were %d keys at most", entry, most)
		}
		if far := uint64((at-hash)&uint32(len(t.index)-1)) + 1; far > steps {
			return errors.New("keys that collide too often; play with another Seed")
		} else {
			steps -= far
		}
	}
	return nil
}

// index is a table of cells, a power of two and at most three quarters of them in use. The cell of
// an entry is the one that its hash says, or behind it, with no empty one between.
type index []cell

type cell struct{ hash, entry uint32 } // entry counts from 1; 0 is an empty cell

const cellSize = uint64(unsafe.Sizeof(cell{}))

// cellsFor is the number of cells for n entries.
func cellsFor(n int) uint64 { return 1 << bits.Len64(uint64(max(0, n*4-1))/3) }

// at is the cell that is i behind the first, round and round.
func (x index) at(i uint32) *cell { return &x[i&uint32(len(x)-1)] }

// remove empties a cell. A cell behind it moves in if its hash leads to there, and leaves the next
// one to be emptied.
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

const nMax = 1 << 28 // keys of a map: the number of its cells is an uint32
