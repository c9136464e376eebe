package scope

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Config is for package budget: what a Stack must know of the plan, for its messages.
type Config struct {
	Budget string // name of the plan
	Arena  string // "region level", "frame 0", "pad 1.0"
	Key    string // key of the plan that gives the arena its size
	Held   int    // how many Go values (Own, Defer, Hold) may be held at once
	Names  int    // how many accounts there may be at once
	Base   int    // how many of the lowest scopes the owner opens and closes itself
	Size   uint64 // of the budget, in bytes
}

// Stack is for package budget, which makes and drives it: a linear arena whose scopes nest, as its owner sees it. That is a
// region, a slot, a buffer of the frame, or a pad. One goroutine at a time.
type Stack struct {
	row        *arena_c.Row
	id         uint64
	base       uintptr // of the budget
	number     uint32  // which of all the stacks ever made this is; never 0
	config     Config
	notes      []note // of the scopes, by slot
	held       heldTable
	accounts   []account
	booking    booking
	scopes     usages   // by name; nil lines where they aren't counted
	subsystems usages   // by account
	most       Open     // ever, as of the last look
	born       []uint64 // see bear
	eventful   bool     // some note is, or was since the lowest scope opened
	closings   int      // scopes whose finalizers run
	finalizers uint64
	failed     int
	met        []lastMet     // what each slot's scope met last; the text may be asked for after it closed
	lastFull   *FullError    // the last that was told
	dropped    bool          // its budget is closed
	peakEver   uint64        // highest use before the last ResetPeak
	made       uint64        // constructors that ever began
	containers uint64        // that were ever made
	inside     int           // calls of Do, Temp and Make that are at work
	lent       atomic.Uint64 // of a pad: number of the lending
	_          noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Keep gives a name that outlives what it lies in: it may be one that Sprintf made in a scope of the budget.
func (st *Stack) Keep(name string) string {
	if uint64(uintptr(unsafe.Pointer(unsafe.StringData(name)))-st.base) < st.config.Size {
		return strings.Clone(name)
	}
	return name
}

// noPlace is the full of who would open one scope too many, or nil. In a memtrace build it asks for the place, too. The
// lowest scope has one in every plan, and is never refused.
func (st *Stack) noPlace(name string) *FullError {
	if st.dropped {
		return nil // Open says so
	}
	if st.row.Open == st.row.Slots {
		return st.tableFull("scopes", st.row.Slots, name)
	}
	if arena_c.Trace && st.refusesScope() {
		return st.refuseTable("scopes", st.row.Slots, name)
	}
	return nil
}

// mayOpen is noPlace for who unwinds. Open itself finds the full table.
func (st *Stack) mayOpen(name string) {
	if arena_c.Trace {
		if full := st.noPlace(name); full != nil {
			panic(full)
		}
	}
}

func (st *Stack) refusesScope() bool {
	return st.row.Open > 0 && st.top().open() && arena_c.Refuse()
}

// Name is what the arena is called in messages: "pad 1.0".
func (st *Stack) Name() string { return st.config.Arena }

// Open opens a scope on top of the arena, in the topmost one if there is one. See Scope.Open.
func (st *Stack) Open(name string) Scope {
	row := st.row
	if st.dropped { // the row may be a newer budget's, and the id too
		panic(&Misuse{"Open on " + st.config.Arena + ", whose budget is closed", true})
	}
	if row.Open == row.Slots {
		panic(st.tableFull("scopes", row.Slots, name))
	}
	if row.Open > 0 {
		top := st.top()
		if !top.open() {
			panic(top.misuse("Open in"))
		}
		st.notes[row.Open-1].refused = top.slot.Refused
	}
	n := &st.notes[row.Open]
	if st.eventful {
		st.opening(n, name)
	}
	n.name, n.refused, n.making = st.Keep(name), 0, making{}
	n.site.Note()
	slot, tag := row.OpenScope()
	n.opened = tag
	st.naming()
	return Scope{slot, tag - key}
}

func (s Scope) do(fn func(Scope) error) (err error) {
	st := s.stack()
	depth := int(s.slot.Index())
	st.inside++
	defer func() {
		st.inside--
		if st.dropped || s.slot.Tag() != s.generation() { // fn closed it, or the budget: what is open now is somebody else's
			switch v := recover(); v := snapshot(v).(type) {
			case nil:
			case *FullError:
				err = v
			default:
				panic(v)
			}
			return
		}
		verdict, other := st.Verdict(recover(), err, depth)
		if verdict == nil && other == nil {
			verdict = errors.Join(st.LeftOpen(depth+1), st.Remembered(depth))
		}
		err = errors.Join(verdict, st.CloseTo(depth))
		if other != nil {
			panic(other)
		}
	}()
	return fn(s)
}

// Verdict sorts what ended a function that worked in the topmost scopes: v is what recover gave, err what it returned.
// A full is an error. A panic after a full that nobody handled is that full, with the panic as its cause. Any other
// panic comes back, to go on after the unwinding. The function's own scope is at depth.
func (st *Stack) Verdict(v any, err error, depth int) (verdict error, other any) {
	if v == nil {
		return err, nil
	}
	refused, isRefusal := v.(refusal)
	v = snapshot(v)
	if full, ok := v.(*FullError); ok {
		if s := Scope(refused); isRefusal && s.slot.Tag() == s.generation() {
			s.slot.Refused = 0 // it is told now: Close and Turn needn't tell it again
			s.stack().lastFull = full
		}
		return full, nil
	}
	if s := Scope(refused); isRefusal && s.slot.Refused&^arena_c.Offsets == s.generation() {
		s.slot.Refused = 0 // what it remembers is this misuse, not a full
	}
	if full := st.anyFull(depth); full != nil {
		told := *full
		told.Cause = fmt.Errorf("panic: %v", v)
		return &told, nil
	}
	return nil, v
}

func (st *Stack) top() Scope { return st.At(st.Depth() - 1) }

// At is the open scope at a depth; the lowest is at 0. pre: depth < Depth.
func (st *Stack) At(depth int) Scope {
	slot := st.row.Slot(uint64(depth))
	return Scope{slot, slot.Tag() - key}
}

// NameAt is the name of the open scope at a depth.
func (st *Stack) NameAt(depth int) string { return st.scopeName(st.row.Slot(uint64(depth))) }

// OpenedAt is where the open scope at a depth was opened; nowhere when C opened it.
func (st *Stack) OpenedAt(depth int) *Site {
	if n := &st.notes[depth]; n.opened == st.row.Slot(uint64(depth)).Tag() {
		return &n.site
	}
	return &Site{}
}

// Depth is the number of open scopes.
func (st *Stack) Depth() int { return int(st.row.Open) }

// Freeze ends allocation in the topmost scope: what is there stays until it closes.
func (st *Stack) Freeze() {
	index := st.row.Open - 1
	slot := st.row.Slot(index)
	st.notes[index].refused, st.notes[index].misused = slot.Refused, nil // who freezes it has told
	slot.Freeze()
}

// Keeps says whether the address outlives the load: it lies outside the arena, or below the cursor of the topmost scope.
func (st *Stack) Keeps(p unsafe.Pointer, size uint64) bool {
	slot := st.row.Slot(st.row.Open - 1)
	start, all := st.row.Window()
	place, top := slot.Place(p), slot.Top()
	return place-start >= all || place < top || size == 0 && place == top
}
