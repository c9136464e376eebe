package scope

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// registry finds the Go side of a row by the row's owner. Rows are made and dropped with budgets: rarely.
var registry struct {
	sync.Mutex
	stacks atomic.Pointer[[]atomic.Pointer[Stack]] // by id; a full list is copied to one twice as long
	used   uint64                                  // ids that were ever given, and 0, which is nobody's
	free   []uint64                                // of them, those whose stack was dropped
	made   uint32                                  // the number that was given last
	told   [64]toldMet                             // of stacks that were dropped last
	next   int
}

// lastMet is a full, or a misuse, whose text may be asked for after the scope, and even the budget, closed: a panic that nobody
// handles is printed when every deferred Close has run.
type lastMet struct {
	scope Scope
	err   error
}

// toldMet is a lastMet that keeps no block alive: a budget that was opened in a block of Go memory is gone.
type toldMet struct {
	slot uintptr
	tag  uint64
	err  error
}

// toldOf is what a scope met whose stack was dropped, or nil.
func toldOf(s Scope) error {
	registry.Lock()
	defer registry.Unlock()
	for _, last := range registry.told {
		if last.slot == uintptr(unsafe.Pointer(s.slot)) && last.tag == s.tag {
			return last.err
		}
	}
	return nil
}

func stackOf(row *arena_c.Row) *Stack { return stackAt(row.Owner) }

func stackAt(id uint64) *Stack {
	if all := registry.stacks.Load(); all != nil && id < uint64(len(*all)) {
		return (*all)[id].Load()
	}
	return nil
}

// idMax and numberMax are what a Ref has bits for: a million arenas open at once, and budgets opened until a number
// comes again that an old Ref may still have.
const (
	idMax     = 1<<20 - 1
	numberMax = 1<<28 - 1
)

// stackBy is the stack that has this id and this number, or nil once its budget is closed: ids are used again, numbers
// are not. Any goroutine may ask. Cost: an atomic read, two comparisons.
func stackBy(id uint64, number uint32) *Stack {
	if st := stackAt(id); st != nil && st.number == number {
		return st
	}
	return nil
}

// TableBytes is for package budget: what the Go side of an arena takes of the Go heap, about. That is its tables of planned
// size, most of all, and what a report copies of them (UsageLines). It is the same in every build: see SiteBytes.
func TableBytes(scopes, pools, values, accounts uint64) uint64 {
	const tag = 8 // see bear
	return tableBytes(scopes, pools, values, accounts, tag) - SiteBytes(scopes, values)
}

// SiteBytes is for package budget: what the places where scopes were opened and values were given take beside them, in
// checked builds.
func SiteBytes(scopes, values uint64) uint64 {
	return (scopes + 1 + values) * uint64(unsafe.Sizeof(arena_c.Site{}))
}

func tableBytes(scopes, pools, values, accounts, tag uint64) uint64 {
	return uint64(unsafe.Sizeof(Stack{})) + (scopes+1)*(uint64(unsafe.Sizeof(note{})+unsafe.Sizeof(lastMet{}))+tag) + pools*tag +
		values*uint64(unsafe.Sizeof(held{})) + (accounts+1)*uint64(unsafe.Sizeof(account{})+5*unsafe.Sizeof(Usage{}))
}

// NewStack is for package budget: it makes the Go side of a row. Drop undoes it.
func NewStack(row *arena_c.Row, config Config) *Stack {
	st := &Stack{row: row, config: config, notes: make([]note, row.Slots+1), met: make([]lastMet, row.Slots+1),
		held: heldTable{places: make([]held, config.Held)}, accounts: make([]account, 0, config.Names)}
	st.base = uintptr(row.Slot(0).At(0))
	st.bear()
	registry.Lock()
	defer registry.Unlock()
	st.id = takeID()
	row.Owner = st.id
	registry.made = registry.made%numberMax + 1 // 0 is nobody's
	st.number = registry.made
	(*registry.stacks.Load())[st.id].Store(st)
	return st
}

// takeID gives an id that no stack has, and makes its place. pre: the registry is locked.
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

// Drop takes the stack out of the registry. Scopes of it stay dead.
func (st *Stack) Drop() {
	registry.Lock()
	defer registry.Unlock()
	(*registry.stacks.Load())[st.id].Store(nil)
	registry.free = append(registry.free, st.id)
	st.row.Owner = 0
	st.dropped = true
	for _, last := range st.met {
		if last.err != nil {
			registry.told[registry.next%len(registry.told)] = toldMet{uintptr(unsafe.Pointer(last.scope.slot)), last.scope.tag, last.err}
			registry.next++
		}
	}
}
