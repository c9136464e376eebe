package scope

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// ErrFull is what errors.Is finds in every full: an arena, or a table of planned capacity, had no room. It is an
// expected answer.
var ErrFull = errors.New("upfront: full")

// ErrClosed is what errors.Is finds when something was used that is closed.
var ErrClosed = errors.New("upfront: closed")

// FullError says what was full and which key of the plan to raise.
//
// Need takes temporaries as they are. With more room their pieces are larger ([Scope.Temp]), so the next run may be full
// once more, of less each time: budget.Measure finds at once what is enough.
type FullError struct {
	Budget string  // name of the plan
	Arena  string  // "region level"
	Scope  string  // name of the scope that asked; of a full table of scopes, the name of the one that would have opened
	What   string  // "bytes"; the table that is full: "scopes", "pools", "held", "accounts", "slots"; or "piece" (see Temp)
	Asked  uint64  // bytes, without alignment; or 1
	Free   uint64  // what was left
	Size   uint64  // of the arena or the table
	Need   uint64  // a size with which it has room: the least, or what alignment may ask for beyond
	Key    string  // of the plan: "regions[2].size"
	Top    []Usage // who holds most of the arena, largest first: three at most
	Cause  error   // what went wrong after the full, if it wasn't handled

	OnPurpose bool // there was room, and budgettest.FailEach had it refused: only in a checked build
}

// Error says in one line what was full, who holds most of it, and which key of the plan to raise to what.
func (e *FullError) Error() string {
	var b strings.Builder
	state := "is full"
	if e.OnPurpose {
		state = "refused on purpose (budgettest.FailEach)"
	}
	fmt.Fprintf(&b, "budget %q: %s %s: scope %q asked for ", e.Budget, e.Arena, state, e.Scope)
	switch e.What {
	case "bytes":
		fmt.Fprintf(&b, "%d bytes, %d of %d are free", e.Asked, e.Free, e.Size)
	case "piece":
		fmt.Fprintf(&b, "%d bytes, more than its piece has left; beyond it %d of %d are free", e.Asked, e.Free, e.Size)
	default:
		fmt.Fprintf(&b, "one more of %d %s", e.Size, e.What)
	}
	for i, a := range e.Top {
		if i == 0 {
			b.WriteString("; held by ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", a.Name, a.Bytes)
	}
	switch {
	case e.OnPurpose:
	case e.What == "piece":
		b.WriteString("; call Temp again, for a new piece")
	default:
		fmt.Fprintf(&b, "; raise %s in the plan to %d or more", e.Key, e.Need)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; then: %v", e.Cause)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrFull) true.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// Unwrap is the cause.
func (e *FullError) Unwrap() error { return e.Cause }

// Misuse is a caller's bug: not an answer, but a program to mend. Hits panic with it; Close returns it and changes nothing.
type Misuse struct {
	Text   string
	closed bool
}

const misusePrefix = "scope: BUG: "

// Error is the Text after "scope: BUG: ".
func (e *Misuse) Error() string { return misusePrefix + e.Text }

// Is makes errors.Is(err, ErrClosed) true where something closed was used.
func (e *Misuse) Is(target error) bool { return e.closed && target == ErrClosed }

// refusal is what a hit panics with: the scope that refused, and nothing that would cost the hit an instruction. Why,
// it works out when it is asked.
type refusal Scope

func (r refusal) Error() string { return r.why().Error() }

// Unwrap lets who recovers it ask errors.Is and errors.As.
func (r refusal) Unwrap() error { return r.why() }

// why is most often the full at its end. Before it stand what a refusal may be instead: told of before its scope closed, a
// closed budget's, a scope's that can't allocate, a bug in what was asked for.
func (r refusal) why() error {
	s := Scope(r)
	st := s.stack()
	stale := s.slot.Tag() != s.generation()
	if stale && s.slot.Refused&^arena_c.Offsets != s.generation() { // it refused before it closed
		if st != nil {
			if met := st.told(s); met != nil {
				return met
			}
		}
		if met := toldOf(s); met != nil {
			return met
		}
	}
	if st == nil {
		return &Misuse{"use of a scope whose budget is closed", true}
	}
	if stale || !s.usable() {
		return s.misuse("allocation in")
	}
	if bug := bugOf(s.slot); bug != nil {
		return bug
	}
	last := st.told(s)
	if m, ok := last.(*Misuse); ok && s.slot.Refused == st.notes[s.slot.Index()].refused {
		return m // it was covered, and what covered it closed on the way here
	}
	full := st.full(s.slot)
	if last, ok := last.(*FullError); ok && last.Asked == full.Asked && last.Free < full.Free {
		return last // a constructor was undone since
	}
	return full
}

// misuse says what is wrong with using s now.
func (s Scope) misuse(what string) error {
	row := s.slot.Row()
	st := stackOf(row)
	if st == nil {
		return &Misuse{what + " a scope whose budget is closed", true}
	}
	index := s.slot.Index()
	name := st.scopeName(s.slot)
	if s.slot.Tag() != s.generation() {
		return &Misuse{fmt.Sprintf("%s a scope of %s that is closed", what, st.config.Arena), true}
	}
	text := fmt.Sprintf("%s scope %q of %s", what, name, st.config.Arena)
	switch {
	case st.isClosing(int(index)):
		text += " while its finalizers run"
	case s.slot == row.Far():
		text += ", which holds temporaries and doesn't nest"
	case index+1 < row.Open:
		text += fmt.Sprintf(" while scope %q, opened in it, is open", st.scopeName(row.Slot(index+1)))
	case int(index) < st.config.Base && s.open():
		text += ", which its owner closes"
	case row.Kind == arena_c.KindFrame:
		text += ", which is frozen since its frame ended"
	default:
		text += ", which is frozen since its load returned"
	}
	return &Misuse{text, false}
}

// full is the error for the slot's last refusal, as things stand now.
func (st *Stack) full(slot *arena_c.Linear) *FullError {
	row := st.row
	near := row.Start
	if row.Open > 0 {
		near = row.Slot(row.Open - 1).Cursor
	}
	asked, onPurpose := asked(slot)
	e := &FullError{Budget: st.config.Budget, Arena: st.config.Arena, Scope: st.scopeName(slot), What: "bytes", Asked: asked,
		Free: row.Edge - near, Size: row.End - row.Start, Key: st.config.Key, Top: st.holders()}
	if onPurpose {
		arena_c.Tell()
		e.OnPurpose, e.Need = true, e.Size
		return e
	}
	e.Need = (e.Size-e.Free+nodeAlign-1)&^(nodeAlign-1) + e.Asked // as if it were aligned as most are
	if e.Need <= e.Size {                                         // its alignment asked for more
		e.Need = e.Size + arena_c.AlignMax
	}
	if slot == row.Far() && e.Asked+arena_c.LineSize <= e.Free && e.Free >= tempRoom {
		e.What = "piece"
		return e // a new piece may do
	}
	st.lastFull = e
	return e
}

// asked is the size of the slot's last refusal; one of 2^38 bytes stands for more, too.
func asked(slot *arena_c.Linear) (size uint64, onPurpose bool) {
	size, onPurpose = slot.Asked()
	return min(size, arena_c.OffsetMax), onPurpose
}

// LastFull is the last full that the arena told of, to whomever, or nil. What a new piece mends (see Temp) is none.
func (st *Stack) LastFull() *FullError { return st.lastFull }

func (st *Stack) tableFull(table string, size uint64, scope string) *FullError {
	st.lastFull = &FullError{Budget: st.config.Budget, Arena: st.config.Arena, Scope: scope, What: table, Asked: 1, Size: size,
		Need: size + 1, Key: "limits." + table}
	return st.lastFull
}

// refuseTable is the full of a table that refused on purpose.
func (st *Stack) refuseTable(table string, size uint64, scope string) *FullError {
	arena_c.Tell()
	full := st.tableFull(table, size, scope)
	full.OnPurpose, full.Need = true, size
	return full
}

// remembered is the full of the slot's last refusal, or nil. It is kept for a panic whose text is asked for after the
// scope closed.
func (st *Stack) remembered(slot *arena_c.Linear) *FullError {
	tag := slot.Tag()
	if slot.Refused == 0 || slot.Refused&^arena_c.Offsets != tag || bugOf(slot) != nil {
		return nil
	}
	whose := Scope{slot, tag - key}
	full, _ := st.told(whose).(*FullError)
	if size, onPurpose := asked(slot); full == nil || full.Asked != size || full.OnPurpose != onPurpose {
		full = st.full(slot)
		st.keepMet(whose, full)
	}
	return full
}

func (st *Stack) keepMet(s Scope, err error) {
	st.met[s.slot.Index()] = lastMet{s, err}
}

// told is what a scope met last, until its slot's next scope meets something.
func (st *Stack) told(s Scope) error {
	if last := st.met[s.slot.Index()]; last.scope == s {
		return last.err
	}
	return nil
}

// snapshot is the panic value with its reason worked out now, before an unwinding changes what it would say.
func snapshot(v any) any {
	if r, ok := v.(refusal); ok {
		return r.why()
	}
	return v
}
