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
type FullError struct {
	Budget string  // name of the plan
	Arena  string  // "region level"
	Scope  string  // name of the scope that asked; of a full table of scopes, the name of the one that would have opened
	What   string  // "bytes"; the table that is full: "scopes", "pools", "owned", "labels", "slots"; or "temporaries" (see [Scope.Temp])
	Asked  uint64  // bytes, without alignment; or 1
	Free   uint64  // what was left
	Size   uint64  // of the arena or the table
	Need   uint64  // a size with which it has room: the least, or what alignment may ask for beyond; 0: none has
	Key    string  // of the plan: "regions[2].size"
	Top    []Usage // who holds most of the arena, largest first: three at most
	Cause  error   // what went wrong after the full, if it wasn't handled

	asked     uint64 // as the header had it
	sameName  bool   // of scopes: all that are open have one name
	OnPurpose bool   // there was room, and budgettest.FailEach had it refused: only in a checked build
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
	case "temporaries":
		fmt.Fprintf(&b, "%d bytes, %d of the %d that Temp gave are free", e.Asked, e.Free, e.Size)
	default:
		fmt.Fprintf(&b, "one more of %d %s", e.Size, e.What)
	}
	for i, a := range e.Top {
		if i == 0 {
			b.WriteString("; held by ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q %d", a.Name, a.Bytes)
	}
	switch {
	case e.OnPurpose:
	case e.Need == 0:
		b.WriteString("; no plan has as much")
	case e.What == "temporaries":
		fmt.Fprintf(&b, "; ask Temp for %d or more", e.Need)
	case e.sameName:
		fmt.Fprintf(&b, ": all that are open have this name: is a Close missing? Else raise %s in the plan to %d or more", e.Key, e.Need)
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

var (
	badAlign   = &Misuse{"Alloc: an align is a power of two up to 64; AllocAligned goes on to 1 MiB", false}
	undeclared = &Misuse{"a Maker that was never declared: make it with scope.Plain or scope.Object", false}
)

// misuse says what is wrong with using s now.
func (s Scope) misuse(what string) error {
	h, st := s.h, stackOf(s.h)
	if st == nil {
		return &Misuse{what + " a scope whose budget is closed", true}
	}
	depth := h.Find(s.gen)
	if depth == 0 {
		return &Misuse{fmt.Sprintf("%s a scope of %s that is closed", what, st.Arena), true}
	}
	text := fmt.Sprintf("%s scope %q of %s", what, st.nameOf(h, depth), st.Arena)
	switch {
	case h.Odd&arena_c.Closing != 0:
		text += " while its finalizers run"
	case h.Odd&arena_c.Building != 0 && depth == h.Depth:
		text += ", which has all that is free until its Done"
	case h.Back != 0 && depth < h.Depth:
		text += ", which isn't the newest of the temporaries"
	case h.Back != 0:
		text += ", which holds temporaries and doesn't nest"
	case depth < h.Depth:
		text += fmt.Sprintf(" while scope %q, opened in it, is open", st.nameOf(h, depth+1))
	case depth <= h.Base && s.open():
		text += ", which its owner closes"
	case st.row.Kind == arena_c.KindFrame:
		text += ", which is frozen since its frame ended"
	default:
		text += ", which is frozen since its load returned"
	}
	return &Misuse{text, false}
}

// full is the error of the topmost scope of an end, as things stand now.
func (st *Stack) full(h *arena_c.Scopes, asked uint64) *FullError {
	row := st.row
	size := asked &^ arena_c.Asked
	if arena_c.Checked {
		size &^= arena_c.Purpose
	}
	e := &FullError{Budget: st.Budget, Arena: st.Arena, Scope: st.nameOf(h, h.Depth), What: "bytes", asked: asked,
		Asked: size, Free: h.Limit - h.Cursor, Size: row.Size(), Key: st.Key,
		Top: st.holders()}
	if size|arena_c.Asked != asked {
		arena_c.Tell()
		e.OnPurpose, e.Need = true, e.Size
		return e
	}
	if r := h.Top(); h.Back == 0 && r.Edge != 0 { // a Builder has all that is free, and is full of values
		e.Free = (h.Limit - r.Limit) % r.Edge
	}
	if h.Back != 0 {
		e.What, e.Key, e.Top, e.Size = "temporaries", "", nil, h.Limit-st.tempStart()
	}
	e.Need = roundUp(e.Size-e.Free, arena_c.NodeSize) + e.Asked // as if it were aligned as most are
	if e.Need <= e.Size {                                       // its alignment asked for more
		e.Need = e.Size + arena_c.AlignMax
	}
	if e.Need >= arena_c.OffsetMax {
		e.Need = 0
	}
	st.lastFull = e
	return e
}

// tempStart is where the newest of the temporaries begins, from the far end's header.
func (st *Stack) tempStart() uint64 { return st.row.Arena.Limit - st.row.Temp.Back }

func roundUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// LastFull is the last full that the arena told of, to whomever, or nil.
func (st *Stack) LastFull() *FullError { return st.lastFull }

func (st *Stack) tableFull(table string, size uint64, scope string) *FullError {
	st.lastFull = &FullError{Budget: st.Budget, Arena: st.Arena, Scope: scope, What: table, Asked: 1, Size: size,
		Need: size + 1, Key: "limits." + table}
	return st.lastFull
}

// scopesFull is the full of who would open one scope too many. A loop that never closes is the usual
// cause: then all that are open have one name.
func (st *Stack) scopesFull(name string) *FullError {
	full := st.tableFull("scopes", st.h.Slots, name)
	full.sameName = st.h.Depth > 1
	for depth := st.h.Base + 1; depth <= st.h.Depth; depth++ {
		full.sameName = full.sameName && st.nameOf(st.h, depth) == name
	}
	return full
}

// refuseTable is the full of a table that refused on purpose.
func (st *Stack) refuseTable(table string, size uint64, scope string) *FullError {
	arena_c.Tell()
	full := st.tableFull(table, size, scope)
	full.OnPurpose, full.Need = true, size
	return full
}
