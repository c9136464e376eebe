package stack

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// registry finds the Go side of a row by the row's owner. Rows change only when a budget opens or
// closes.
var registry struct {
	sync.Mutex
	// by id; a full list is copied to a longer one
	stacks atomic.Pointer[[]atomic.Pointer[Stack]]
	// number of ids handed out, with id 0, which no stack has
	used uint64
	free []uint64 // ids of dropped stacks
	made uint64   // number of the last stack made
	// the last dropped stacks
	tombstones []tombstone
}

// tombstone is the record of a dropped stack: a panic on its way may be printed after the drop.
type tombstone struct {
	made     uint64
	arena    string
	emptied  emptied
	refusals []refusal // the last ones of its scopes
}

// tombstonesMost is the number of last dropped stacks whose records are always kept; up to twice as
// many are.
const tombstonesMost = 512

// tombstoneOf returns the record of the dropped stack of a scope or pool with that generation, and
// reports whether it is kept.
func tombstoneOf(gen uint64) (tombstone, bool) {
	registry.Lock()
	defer registry.Unlock()
	for _, t := range slices.Backward(registry.tombstones) {
		// a refused align changes the number in gen
		if t.made == numberOf(gen) || reasonOf(t.refusals, gen) != nil {
			return t, true
		}
	}
	return tombstone{}, false
}

// numberOf returns the number of the stack that made a generation.
func numberOf(gen uint64) uint64 { return gen &^ Key / generationsEach }

// Key is a bit that no generation has. A declared Maker holds Key, and subtracts it from the
// generation with which it allocates. So the zero Maker, whose generation is off by Key, is refused
// without a comparison of its own.
const Key = 1 << 63

// Of returns the Stack of one end of an arena, or nil if its budget is closed.
func Of(h *arena_c.Scopes) *Stack { return stackAt(h.Owner) }

func stackAt(id uint64) *Stack {
	if all := registry.stacks.Load(); all != nil && id < uint64(len(*all)) {
		return (*all)[id].Load()
	}
	return nil
}

// idMax is the largest id, which fits in a Ref: a million arenas can be open at once.
// numberMax keeps generations below Key.
const (
	idMax     = 1<<20 - 1
	numberMax = Key/generationsEach - 2
)

// TableBytes estimates the bytes of the Go heap that an arena's tables take for a number of nested
// scopes. tables includes a report's copy of the tables (UsageLines) and, if the arena warns, the
// state of WarnAt. sites are the bytes that checked builds take in addition, for the places that
// opened scopes and registered values.
func (c Config) TableBytes(scopes uint64, warns bool) (tables, sites uint64) {
	notes, values := 2*(scopes+1), uint64(c.Owned)
	sites = (notes + values) * uint64(unsafe.Sizeof(arena_c.Site{}))
	tables = uint64(unsafe.Sizeof(Stack{})) + notes*uint64(unsafe.Sizeof(note{})) +
		scopes*uint64(unsafe.Sizeof(seenScope{})) + values*uint64(unsafe.Sizeof(owned{})) +
		(uint64(c.Names)+1)*uint64(unsafe.Sizeof(label{})+5*unsafe.Sizeof(Usage{}))
	if warns {
		tables += uint64(unsafe.Sizeof(warning{}))
	}
	return tables - sites, sites
}

// generationsEach is the number of generations of one stack. Of 8 million stacks made one after the
// other, no two share a generation, even if they share a header.
const generationsEach = 1 << 40

// Start returns a new Stack, which is the Go side of a row. Drop undoes Start.
func Start(c Config, row *arena_c.Row) *Stack {
	st := StartDry(c, row)
	st.owned.places = make([]owned, st.Owned)
	st.labels.lines, st.labels.totals.lines = make([]label, 0, st.Names), make([]Usage, 0, st.Names+1)
	registry.Lock()
	defer registry.Unlock()
	st.id = takeID()
	registry.made = registry.made%numberMax + 1
	st.made = registry.made
	st.owned.stack = st.made<<32 | st.id
	for _, end := range st.ends() {
		end.Owner = st.id
		end.Next = max(end.Next, registry.made*generationsEach)
	}
	row.Temp.Odd = oddTemp
	(*registry.stacks.Load())[st.id].Store(st)
	countStack(st.From, st.Size, 1)
	return st
}

// pre: the registry is locked.
func takeID() (id uint64) {
	if n := len(registry.free); n > 0 {
		id, registry.free = registry.free[n-1], registry.free[:n-1]
		return id
	}
	id = max(registry.used, 1)
	if id > idMax {
		panic(fmt.Sprintf("scope: BUG: more than %d arenas are open", idMax))
	}
	registry.used = id + 1
	old := registry.stacks.Load()
	if old == nil || id >= uint64(len(*old)) {
		all := make([]atomic.Pointer[Stack], 2*id+6)
		for i := range id {
			if old != nil {
				all[i].Store((*old)[i].Load())
			}
		}
		registry.stacks.Store(&all)
	}
	return id
}

// Drop removes the Stack from the registry. Its scopes stay stale. pre: no scope is open.
func (st *Stack) Drop() {
	registry.Lock()
	defer registry.Unlock()
	(*registry.stacks.Load())[st.id].Store(nil)
	registry.free = append(registry.free, st.id)
	for _, end := range st.ends() {
		end.Owner, end.Odd, end.Asked, end.Misused = 0, 0, 0, 0
	}
	countStack(st.From, st.Size, -1)
	st.dropped = true
	st.lent.Store(lentDropped)
	if len(registry.tombstones) == 2*tombstonesMost {
		registry.tombstones = append(registry.tombstones[:0], registry.tombstones[tombstonesMost:]...)
	}
	registry.tombstones = append(registry.tombstones, tombstone{st.made, st.Arena, st.emptied.get(), st.refusals()})
}
