package scope

import (
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// note is what the Go side knows of an open scope.
type note struct {
	site     arena_c.Site // where it was opened
	name     string
	refused  uint64  // what the scope remembered when it was covered or frozen
	misused  *Misuse // a Try... that met it covered or frozen
	eventful bool    // some of the others is set, or there are accounts
	closing  bool    // its finalizers run, or those of a constructor's parts
	making   making
	undone   []span // constructors that failed
	lost     error  // of the parts of a constructor that was unwound
	line     int    // of the name, where names are counted
	opened   uint64 // generation of the slot then: C opens scopes without a note
}

// event says that something is noted beside the name: closing takes the long way.
func (st *Stack) event(n *note) { st.eventful, n.eventful = true, true }

// forget clears the note of a scope that closed, but for its name.
func (st *Stack) forget(n *note) {
	if n.eventful {
		*n = note{name: n.name}
	}
	if st.row.Open == 0 {
		st.notes[st.row.Slots] = note{} // of temporaries
		st.eventful = st.scopes.lines != nil
	}
}

// uncovered looks at the topmost scope after what covered it is closed: a refusal meanwhile was no full, but misuse.
func (st *Stack) uncovered() {
	if st.row.Open == 0 {
		return
	}
	index := st.row.Open - 1
	if slot, n := st.row.Slot(index), &st.notes[index]; slot.Refused != n.refused {
		st.blame(slot, n, fmt.Sprintf("scope %q, opened in it, was open", st.notes[index+1].name))
	}
}

// blame notes as misuse what a scope refused while something was so.
func (st *Stack) blame(slot *arena_c.Linear, n *note, while string) {
	if bug := bugOf(slot); bug != nil {
		st.misused(slot, n, bug)
	} else if slot.Refused&^arena_c.Offsets == slot.Tag() {
		st.misused(slot, n, &Misuse{fmt.Sprintf("allocation of %d bytes in scope %q of %s while %s",
			slot.Refused&arena_c.Offsets, n.name, st.config.Arena, while), false})
	}
	slot.Refused = n.refused
}

// misused notes the first misuse, also for a panic whose text is asked for when the scope has closed.
func (st *Stack) misused(slot *arena_c.Linear, n *note, m *Misuse) {
	if n.misused == nil {
		n.misused = m
		st.event(n)
	}
	st.keepMet(Scope{slot, slot.Tag() - key}, m)
}

// What a scope remembers as refused when Alloc was asked for a size, or an align, that nothing has; and for a slice of 2^38 bytes or
// more, which is a full.
const (
	badAsk  = arena_c.OffsetMax
	tooMuch = arena_c.OffsetMax + 1
)

var (
	undeclared = &Misuse{"a Maker that was never declared: make it with scope.Plain or scope.Object", false}
	badAlloc   = &Misuse{"Alloc: a size is below 2^38, an align a power of two up to 65536", false}
)

// bugOf is what the slot's last refusal would have been in any scope: a caller's bug. Else it is nil.
func bugOf(slot *arena_c.Linear) *Misuse {
	switch {
	case slot.Refused == slot.Tag()+badAsk:
		return badAlloc
	case slot.Refused&^arena_c.Offsets == slot.Tag()^key:
		return undeclared
	}
	return nil
}

// Remembered is what a Try... met in the open scopes from depth up or in their temporaries: a full, a misuse, or nil.
func (st *Stack) Remembered(depth int) error {
	for i := uint64(depth); i < st.row.Open; i++ {
		if err := st.err(st.row.Slot(i)); err != nil {
			return err
		}
	}
	if st.row.FarOf > uint64(depth) {
		err := st.err(st.row.Far())
		if full, ok := err.(*FullError); ok {
			st.lastFull = full // whoever is told didn't call Temp again
		}
		return err
	}
	return nil
}

// LeftOpen is the misuse of who ends while scopes from depth up, opened inside, are open; nil when there is none.
func (st *Stack) LeftOpen(depth int) error {
	if st.Depth() <= depth {
		return nil
	}
	names := make([]string, 0, 1)
	for i := depth; i < st.Depth(); i++ {
		names = append(names, fmt.Sprintf("%q", st.NameAt(i)))
	}
	return &Misuse{fmt.Sprintf("scope %s of %s was left open: close it where it is opened", strings.Join(names, ", "), st.config.Arena),
		false}
}

// err is Remembered for one scope.
func (st *Stack) err(slot *arena_c.Linear) error {
	if slot == st.row.Far() {
		if bug := bugOf(slot); bug != nil {
			st.keepMet(Scope{slot, slot.Tag() - key}, bug)
			return bug
		}
		if full := st.remembered(slot); full != nil {
			return full
		}
		return nil
	}
	index := slot.Index()
	n := &st.notes[index]
	if slot.Limit&arena_c.Offsets == 0 && slot.Refused != n.refused {
		while := "it was frozen"
		if index+1 < st.row.Open {
			while = fmt.Sprintf("scope %q, opened in it, was open", st.notes[index+1].name)
		}
		st.blame(slot, n, while)
	}
	if bug := bugOf(slot); bug != nil {
		st.misused(slot, n, bug)
		slot.Refused = 0
	}
	if n.misused != nil {
		return n.misused
	}
	if full := st.remembered(slot); full != nil {
		return full
	}
	return nil
}

func (st *Stack) anyFull(depth int) *FullError {
	row := st.row
	for i := uint64(depth); i < row.Open; i++ {
		slot := row.Slot(i)
		if slot.Limit&arena_c.Offsets == 0 && slot.Refused != st.notes[i].refused {
			continue // covered or frozen: misuse
		}
		if full := st.remembered(slot); full != nil {
			return full
		}
	}
	if row.FarOf > uint64(depth) {
		return st.remembered(row.Far())
	}
	return nil
}

func (st *Stack) scopeName(slot *arena_c.Linear) string {
	if slot == st.row.Far() {
		return "temp"
	}
	if i := slot.Index(); i < uint64(len(st.notes)) && st.notes[i].name != "" {
		if st.notes[i].opened != slot.Tag() {
			return cName
		}
		return st.notes[i].name
	}
	return fmt.Sprintf("#%d", slot.Index())
}
