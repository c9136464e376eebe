package stack

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
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

// tombstone returns the record of a Stack, without refusals. Any goroutine may call it.
func (st *Stack) tombstone() tombstone { return tombstone{st.made, st.Arena, st.emptied.get(), nil} }

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

// generationsEach is the number of generations of one stack. Of 8 million stacks made one after the
// other, no two share a generation, even if they share a header.
const generationsEach = 1 << 40

// StartDry returns a dry arena: an arena that has headers but no bytes. Only Play works on a dry
// arena. The registry has no entry for it, so it needs no Drop.
func StartDry(c Config, row *arena_c.Row) *Stack {
	st := &Stack{Config: c, h: &row.Arena, row: row, notes: make([]note, 2*(row.Arena.Slots+1))}
	st.h.Base = uint64(c.Base)
	return st
}

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
	t := st.tombstone()
	t.refusals = st.refusals()
	registry.tombstones = append(registry.tombstones, t)
}

// budgets has the open budgets by address, to find the arena of a block. A change makes a copy,
// under the registry's lock.
var budgets atomic.Pointer[[]openBudget]

type openBudget struct {
	from unsafe.Pointer
	size uint64
	// the highest end of this budget and the ones before it: a budget may be inside another
	end    uintptr
	stacks *int // number of open stacks; read only under the registry's lock
}

// findRoomOwner is called by package arena_c while a budget is open.
var findRoomOwner = func(block unsafe.Pointer) arena_c.RoomOwner {
	if st := stackWith(block); st != nil {
		return (*roomOwner)(st)
	}
	return nil
}

// stackWith returns the Stack that contains a block, or nil. Cost: O(log budgets + log arenas); in
// asan and checked builds, where the block may be in any mirror, O(budgets).
func stackWith(block unsafe.Pointer) *Stack {
	all := budgets.Load()
	if all == nil {
		return nil
	}
	list, at := *all, uintptr(block)
	for i := range list {
		if !arena_c.Checked && !arena_c.Asan {
			break
		}
		if place := arena_c.Place(block, list[i].from); place < list[i].size {
			at = uintptr(list[i].from) + uintptr(place)
			break
		}
	}
	n, found := slices.BinarySearchFunc(list, at, byAddress)
	if found {
		n++
	}
	for ; n > 0 && at < list[n-1].end; n-- {
		if place := uint64(at - uintptr(list[n-1].from)); place < list[n-1].size {
			return list[n-1].stackAt(place)
		}
	}
	return nil
}

func byAddress(b openBudget, at uintptr) int { return cmp.Compare(uintptr(b.from), at) }

// stackAt returns the Stack with the byte at an offset of the budget, or nil. Reconfigure moves
// only the boundaries of empty arenas meanwhile.
func (b *openBudget) stackAt(at uint64) *Stack {
	m := (*arena_c.Map)(b.from)
	n := uint64(sort.Search(int(m.Rows), func(i int) bool { return m.Start(uint64(i)) > at }))
	if n == 0 || at >= m.End(n-1) {
		return nil
	}
	return stackAt(m.Row(n - 1).Arena.Owner)
}

// countStack counts a started (1) or dropped (-1) stack of a budget. pre: the registry is locked.
func countStack(from unsafe.Pointer, size uint64, by int) {
	var list []openBudget
	if all := budgets.Load(); all != nil {
		list = *all
	}
	n, found := slices.BinarySearchFunc(list, uintptr(from), byAddress)
	if found {
		if *list[n].stacks += by; *list[n].stacks != 0 {
			return
		}
	}
	list = slices.Clone(list)
	if found {
		list = slices.Delete(list, n, n+1)
	} else {
		list = slices.Insert(list, n, openBudget{from: from, size: size, stacks: &by})
	}
	end := uintptr(0)
	for i := range list {
		end = max(end, uintptr(list[i].from)+uintptr(list[i].size))
		list[i].end = end
	}
	budgets.Store(&list)
	if len(list) == 0 {
		arena_c.SetRoomOwners(nil)
	} else {
		arena_c.SetRoomOwners(&findRoomOwner)
	}
}
