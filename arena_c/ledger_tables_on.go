//go:build memtrace

package arena_c

import "math/bits"

// The tables of a memtrace build are static, and touched as far as they are used: what they hold is no part of a budget and
// not on the Go heap, so that neither is fuller for being watched.
const (
	ledgerRuns   = 1 << 18
	ledgerLines  = 1 << 13
	ledgerStacks = 1 << 14
	ledgerPlaces = 1 << 18 // half of them may be taken
)

var (
	runStore   [ledgerRuns]run
	lineStore  [ledgerLines]line
	stackStore [ledgerStacks]stack
)

// run is n requests of one line and one size, one behind the other.
type run struct {
	at, size, stride uint64 // offset of the first, and from each to the next
	n                uint64
	below            uint32
	line             uint32
	stack, samples   uint32 // of a request that was sampled: it is a run of its own
	objects          uint32 // for each: 0 when it made something longer
}

// line is a site in a row.
type line struct {
	site              uint32
	chunks            bool
	live, peak, total Amount
	sampleAt          uint64 // of all its bytes the one at which to sample
	stacks, below     uint32
}

type stack struct {
	calls, below uint32
	live, total  uint64 // samples
}

// table gives elements of a store by their number; 0 is none.
type table[T any] struct {
	store      []T
	below      func(*T) *uint32
	used, free uint32
}

// take gives a zero element, or 0 when there is none left.
func (t *table[T]) take() (n uint32) {
	if n = t.free; n != 0 {
		t.free = *t.below(&t.store[n])
		clear(t.store[n : n+1])
		return n
	}
	if int(t.used)+1 == len(t.store) {
		return 0
	}
	t.used++
	return t.used
}

func (t *table[T]) at(n uint32) *T { return &t.store[n] }

// put gives an element back, and says which was below it.
func (t *table[T]) put(n uint32) (below uint32) {
	link := t.below(&t.store[n])
	below, *link, t.free = *link, t.free, n
	return below
}

// place is what is known of an address: of a row its number; of a pool the row's; of a chunk who got it.
type place struct {
	address              uintptr
	row                  uint32
	line, stack, samples uint32
}

// placeTable finds places by their address.
type placeTable struct {
	all  [ledgerPlaces]place
	used int
}

func (t *placeTable) home(address uintptr) int {
	return int(uint64(address) / 8 * 0x9E3779B97F4A7C15 >> (64 - bits.Len(ledgerPlaces-1)))
}

// find is the place of an address, or a free one.
func (t *placeTable) find(address uintptr) *place {
	for i := t.home(address); ; i++ {
		if p := &t.all[i%ledgerPlaces]; p.address == address || p.address == 0 {
			return p
		}
	}
}

// put is false when the table is full.
func (t *placeTable) put(p place) bool {
	at := t.find(p.address)
	if at.address == 0 {
		if t.used == ledgerPlaces/2 {
			return false
		}
		t.used++
	}
	*at = p
	return true
}

// remove takes a place out, which is zero when there is none, and moves those behind it that may be nearer to their home.
func (t *placeTable) remove(address uintptr) (was place) {
	i := t.home(address)
	for ; t.all[i%ledgerPlaces].address != address; i++ {
		if t.all[i%ledgerPlaces].address == 0 {
			return place{}
		}
	}
	was = t.all[i%ledgerPlaces]
	t.used--
	for j := i + 1; t.all[j%ledgerPlaces].address != 0; j++ {
		if home := t.home(t.all[j%ledgerPlaces].address); (j-home)&(ledgerPlaces-1) >= j-i {
			t.all[i%ledgerPlaces] = t.all[j%ledgerPlaces]
			i = j
		}
	}
	t.all[i%ledgerPlaces] = place{}
	return was
}
