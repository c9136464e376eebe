package scope

import (
	"errors"
	"fmt"

	"github.com/upfront-mem/upfront/arena_c"
)

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

// closeUnusual is Close of a scope that can't allocate, has temporaries, or remembers something.
func (s Scope) closeUnusual() error {
	row := s.slot.Row()
	if s.slot.Tag() != s.generation() || row.Open == 0 || row.Slot(row.Open-1) != s.slot {
		return s.misuse("Close of")
	}
	return stackOf(row).closeByUser(s)
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
	if slot.Refused != met && *errs == nil && slot.Refused&^arena_c.Offsets == slot.Tag() { // a finalizer's Try...
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
	if st.eventful {
		st.count()
		st.closeAccounts(int(slot.Index()))
	}
	st.row.CloseScope()
	slot.Refused = 0 // what comes from now on is misuse
	st.setClosing(slot, false)
	if st.eventful {
		st.forget(&st.notes[slot.Index()])
	}
	st.uncovered()
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
