package scope

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/upfront-mem/upfront/arena_c"
)

// registry finds the Go side of a row by the row's owner. Rows are made and dropped with budgets: rarely.
var registry struct {
	sync.Mutex
	stacks atomic.Pointer[[]*Stack]
	made   uint32      // the number that was given last
	told   [64]lastMet // of stacks that were dropped last
	next   int
}

// lastMet is a full, or a misuse, whose text may be asked for after the scope, and even the budget, closed: a panic that nobody
// handles is printed when every deferred Close has run.
type lastMet struct {
	scope Scope
	err   error
}

// toldOf is what a scope met whose stack was dropped, or nil.
func toldOf(s Scope) error {
	registry.Lock()
	defer registry.Unlock()
	for _, last := range registry.told {
		if last.scope == s {
			return last.err
		}
	}
	return nil
}

func stackOf(row *arena_c.Row) *Stack {
	if all := registry.stacks.Load(); all != nil && row.Owner < uint64(len(*all)) {
		return (*all)[row.Owner]
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
	if all := registry.stacks.Load(); all != nil && id < uint64(len(*all)) {
		if st := (*all)[id]; st != nil && st.number == number {
			return st
		}
	}
	return nil
}

// NewStack makes the Go side of a row. Drop undoes it.
func NewStack(row *arena_c.Row, config Config) *Stack {
	st := &Stack{row: row, config: config, notes: make([]note, row.Slots+1), met: make([]lastMet, row.Slots+1),
		held: heldTable{places: make([]held, config.Held)}, accounts: make([]account, 0, config.Names)}
	st.base = uintptr(row.Slot(0).At(0))
	registry.Lock()
	defer registry.Unlock()
	var all []*Stack
	if old := registry.stacks.Load(); old != nil {
		all = append(all, *old...)
	} else {
		all = append(all, nil) // owner 0 is nobody
	}
	st.id = uint64(len(all))
	for i := 1; i < len(all); i++ {
		if all[i] == nil {
			st.id = uint64(i)
			break
		}
	}
	if st.id == uint64(len(all)) {
		all = append(all, st)
	} else {
		all[st.id] = st
	}
	if st.id > idMax {
		panic(fmt.Sprintf("scope: BUG: more than %d arenas are open", idMax))
	}
	row.Owner = st.id
	registry.made = registry.made%numberMax + 1 // 0 is nobody's
	st.number = registry.made
	registry.stacks.Store(&all)
	return st
}

// Drop takes the stack out of the registry. Scopes of it stay dead.
func (st *Stack) Drop() {
	registry.Lock()
	defer registry.Unlock()
	all := append([]*Stack(nil), *registry.stacks.Load()...)
	all[st.id] = nil
	st.row.Owner = 0
	st.dropped = true
	for _, last := range st.met {
		if last.err != nil {
			registry.told[registry.next%len(registry.told)] = last
			registry.next++
		}
	}
	registry.stacks.Store(&all)
}
