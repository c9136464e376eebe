package container

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"unsafe"

	"github.com/upfront-mem/upfront/scope"
)

// table is what Map and StringMap share: values in the order of insertion, and an index that leads
// to them by the hashes of their keys.
type table[V any] struct {
	_      noCopy
	life   life
	seed   maphash.Seed // players choose keys: the hashes are others in each map
	index  index
	values []V // those that there are, and room for the rest
}

// Len is the number of keys in it.
func (t *table[V]) Len() int {
	if !t.life.began().alive() {
		return 0
	}
	return len(t.values)
}

// Cap is n, the number of keys that there may be.
func (t *table[V]) Cap() int {
	if !t.life.began().alive() {
		return 0
	}
	return cap(t.values)
}

// clear takes all values away.
func (t *table[V]) clear() {
	clear(t.index)
	gone(t.values)
	t.values = t.values[:0]
}

// drop takes the value at gap, to which a cell leads, away, and puts the last, whose hash is given,
// in its place.
func (t *table[V]) drop(cell uint32, gap int, hashOfLast uint32) {
	last := len(t.values) - 1
	t.index.rename(hashOfLast, last, gap)
	t.index.remove(cell)
	t.values[gap] = t.values[last]
	gone(t.values[last:])
	t.values = t.values[:last]
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

// rename has the cell of entry `from`, whose hash is given, lead to entry `to`.
func (x index) rename(hash uint32, from, to int) {
	for x.at(hash).entry != uint32(from)+1 {
		hash++
	}
	x.at(hash).entry = uint32(to) + 1
}

// remove empties a cell. A cell behind it moves in if its hash leads to there, and leaves the next
// one to be emptied.
func (x index) remove(gap uint32) {
	mask := uint32(len(x) - 1)
	for i := gap + 1; x.at(i).entry != 0; i++ {
		if c := *x.at(i); (i-c.hash)&mask >= (i-gap)&mask {
			*x.at(gap) = c
			gap = i
		}
	}
	*x.at(gap) = cell{}
}

const nMax = 1 << 28 // keys of a map: the number of its cells is an uint32

// checkMap refuses what is wrong already.
func checkMap(kind string, n int, declared bool) {
	if !declared {
		panic(&scope.Misuse{Text: "a Maker that was never declared: make it with scope.Plain or scope.Object"})
	}
	if n < 0 || n > nMax {
		panic(&scope.Misuse{Text: fmt.Sprintf("a %s of %d keys: at most %d", kind, n, nMax)})
	}
}

func declared[T any](m scope.Maker[T]) bool { return m != scope.Maker[T]{} }

var octets = scope.Plain[byte]()

// take takes the bytes of a map, aligned to 8, all at once: so a full says what all of it needs.
// What it gives is cut up by cut.
func take(s scope.Scope, size uint64) []byte {
	return octets.SliceAligned(s, int(min(size, math.MaxInt)), 8)
}

// cut cuts n values off the rest of what was taken.
func cut[T any](rest *[]byte, n int) []T {
	values := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(*rest))), n)
	*rest = (*rest)[min(words[T](n), uint64(len(*rest))):]
	return values
}

// sizeOf is the size of n values. It can't wrap: n is nMax at most, and what a function takes by
// value has less than 2^30 bytes, as a frame of the stack has.
func sizeOf[T any](n int) uint64 { return uint64(n) * uint64(unsafe.Sizeof(*new(T))) }

// words is the size of n values with others behind them: a multiple of 8.
func words[T any](n int) uint64 { return (sizeOf[T](n) + 7) &^ 7 }
