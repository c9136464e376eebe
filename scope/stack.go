package scope

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Config is what a Stack must know of the plan, for its messages.
type Config struct {
	Budget string // name of the plan
	Arena  string // "region level", "frame 0", "pad 1.0"
	Key    string // key of the plan that gives the arena its size
	Held   int    // how many Go values (Own, Defer, Hold) may be held at once
	Names  int    // how many accounts there may be at once
	Base   int    // how many of the lowest scopes the owner opens and closes itself
	Size   uint64 // of the budget, in bytes
	Watch  *Watch // told of each opened scope while armed; may be nil
}

// Stack is a linear arena whose scopes nest, as its owner sees it: a region, a buffer of the frame, or a pad. Package
// budget makes and drives them. One goroutine at a time.
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
	eventful   bool // some note is, or was since the lowest scope opened
	closings   int  // scopes whose finalizers run
	finalizers uint64
	failed     int
	met        [4]lastMet    // by the scopes that refused last; the texts may be asked for after they closed
	nextMet    int           // place in met
	dropped    bool          // its budget is closed
	peakEver   uint64        // highest use before the last ResetPeak
	made       uint64        // constructors that ever began
	inside     int           // calls of Do, Temp and Make that are at work
	lent       atomic.Uint64 // of a pad: number of the lending
	_          noCopy
}

type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// Watch tells the budget which pads a load opens scopes on.
type Watch struct{ note atomic.Pointer[func(*Stack)] }

// Arm calls note for each scope that opens from now on, nil ends it.
func (w *Watch) Arm(note func(*Stack)) {
	if note == nil {
		w.note.Store(nil)
		return
	}
	w.note.Store(&note)
}

// Keep gives a name that outlives what it lies in: it may be one that Sprintf made in a scope of the budget.
func (st *Stack) Keep(name string) string {
	if uint64(uintptr(unsafe.Pointer(unsafe.StringData(name)))-st.base) < st.config.Size {
		return strings.Clone(name)
	}
	return name
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
		st.forget(n)
	}
	n.name, n.refused = st.Keep(name), 0
	slot, tag := row.OpenScope()
	if st.config.Watch != nil {
		if note := st.config.Watch.note.Load(); note != nil {
			(*note)(st)
		}
	}
	return Scope{slot, tag - key}
}

func (s Scope) do(fn func(Scope) error) (err error) {
	st := s.stack()
	depth := int(s.slot.Index())
	st.inside++
	defer func() {
		st.inside--
		if st.dropped || s.slot.Tag() != s.generation() { // fn closed it, or the budget: what is open now is somebody else's
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
func (st *Stack) NameAt(depth int) string { return st.notes[depth].name }

// Depth is the number of open scopes.
func (st *Stack) Depth() int { return int(st.row.Open) }

// CloseTo closes the topmost scopes until depth are open, newest first, and returns the errors of their finalizers. It
// is for the owner of the arena: nothing is refused, and a scope whose finalizers are running already is left to who
// closes it.
func (st *Stack) CloseTo(depth int) (err error) {
	finished := false
	defer func() {
		if finished {
			return
		}
		if v := recover(); v != nil {
			panic(v)
		}
		err = errors.Join(err, st.CloseTo(depth)) // a finalizer ends the goroutine; the scopes below close all the same
	}()
	for st.Depth() > depth && !st.notes[st.Depth()-1].closing {
		err = errors.Join(err, st.frozenMisuse(), st.closeTop())
	}
	finished = true
	return err
}

// frozenMisuse is what the topmost scope, when it is frozen, refused since: who froze it closes it, and nobody else looks.
func (st *Stack) frozenMisuse() error {
	slot := st.row.Slot(st.row.Open - 1)
	if slot.Limit&arena_c.Offsets != 0 || slot.Refused == st.notes[slot.Index()].refused {
		return nil
	}
	return st.err(slot)
}

func (st *Stack) closeByUser(s Scope) error {
	index := int(s.slot.Index())
	if index < st.config.Base || st.isClosing(index) {
		return s.misuse("Close of")
	}
	if s.slot.Refused == 0 && st.notes[index].misused == nil && st.row.FarOf != st.row.Open {
		return st.closeTop() // nothing is remembered
	}
	met := st.Remembered(index)
	return errors.Join(met, st.closeTop())
}

// closeTop closes the topmost scope. The rewind happens whatever the finalizers do, also when one of them ends the
// goroutine.
func (st *Stack) closeTop() (err error) {
	row := st.row
	slot := row.Slot(row.Open - 1)
	if slot.Refused != 0 {
		_ = st.err(slot) // while it can still say why
	}
	if row.FarOf == row.Open {
		return st.closeWithTemp(slot)
	}
	st.unwindAndClose(slot, &err)
	return err
}

func (st *Stack) unwindAndClose(slot *arena_c.Linear, errs *error) {
	st.setClosing(slot, true)
	slot.Freeze() // a closing scope refuses
	met := slot.Refused
	if st.eventful {
		st.tellLost(slot, errs)
	}
	st.unwind(slot, 0, errs, true)
	if *errs == nil && slot.Refused != met && slot.Refused&^arena_c.Offsets == slot.Tag() { // a finalizer's Try...
		*errs = &Misuse{fmt.Sprintf("allocation of %d bytes in scope %q of %s while its finalizers run",
			slot.Refused&arena_c.Offsets, st.scopeName(slot), st.config.Arena), false}
	}
	st.finishClose(slot)
}

// closeWithTemp closes the temporaries, then their scope.
func (st *Stack) closeWithTemp(slot *arena_c.Linear) (err error) {
	slot.Freeze()
	defer st.unwindAndClose(slot, &err) // also when a finalizer of theirs ends the goroutine
	return st.CloseTemp()
}

// Lost are the errors of finalizers in the topmost scope that nobody got yet: those of the parts of constructors that were
// unwound. Who closes the scope gets them.
func (st *Stack) Lost() (err error) {
	st.tellLost(st.row.Slot(st.row.Open-1), &err)
	return err
}

func (st *Stack) tellLost(slot *arena_c.Linear, errs *error) {
	if n := &st.notes[slot.Index()]; n.lost != nil {
		*errs, n.lost = errors.Join(*errs, n.lost), nil
	}
}

func (st *Stack) finishClose(slot *arena_c.Linear) {
	st.row.CloseScope()
	st.closeAccounts(int(slot.Index()))
	slot.Refused = 0 // what comes from now on is misuse
	st.setClosing(slot, false)
	st.uncovered()
}

// Freeze ends allocation in the topmost scope: what is there stays until it closes.
func (st *Stack) Freeze() {
	index := st.row.Open - 1
	slot := st.row.Slot(index)
	st.notes[index].refused = slot.Refused
	slot.Freeze()
}

// Keeps says whether the address outlives the load: it lies outside the arena, or below the cursor of the topmost scope.
func (st *Stack) Keeps(p unsafe.Pointer, size uint64) bool {
	slot := st.row.Slot(st.row.Open - 1)
	offset := slot.Offset(p)
	return offset < st.row.Start || offset >= st.row.End || offset < slot.Cursor || size == 0 && offset == slot.Cursor
}

// Closing says whether finalizers of the arena are running.
func (st *Stack) Closing() bool { return st.closings != 0 }

func (st *Stack) setClosing(slot *arena_c.Linear, closing bool) (was bool) {
	n := &st.notes[slot.Index()]
	was, n.closing = n.closing, closing
	if closing && !was {
		st.closings++
	} else if was && !closing {
		st.closings--
	}
	return was
}

// isClosing says whether finalizers of the scope in slot index run, or of its temporaries.
func (st *Stack) isClosing(index int) bool {
	return st.closings != 0 && (st.notes[index].closing || st.notes[st.row.Slots].closing && index < int(st.row.FarOf))
}
