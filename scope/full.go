package scope

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// FullError says what was full and which key of the plan to raise.
type FullError struct {
	Budget string  // name of the plan
	Arena  string  // "region level"
	Scope  string  // who asked, by its name; of a full table of scopes, who would have opened; "" of slots
	What   string  // "bytes"; the table that is full: "scopes", "pools", "owned", "labels", "slots"; "temporaries" (see [Scope.Temp]); or "keys" of a StringMap
	Asked  uint64  // bytes, without alignment; or 1
	Free   uint64  // what was left
	Size   uint64  // of the arena or the table
	Need   uint64  // a size with which it has room: the least, or what alignment may ask for beyond; 0: none has
	Key    string  // of the plan: "regions[2].size"; of keys the parameter
	Top    []Usage // who holds most of the arena, largest first: three at most
	Cause  error   // what went wrong after the full, if it wasn't handled

	asked     uint64 // as the header had it
	sameName  bool   // of scopes: all that are open have one name
	OnPurpose bool   // there was room, and budgettest.FailEach had it refused: only in a checked build
}

// Error says in one line what was full, who holds most of it, and which key of the plan to raise to what.
func (e *FullError) Error() string {
	var b strings.Builder
	if e.What == "keys" && e.Arena == "" {
		return fmt.Sprintf("a StringMap has %d of %d keys; make it with an n of %d or more", e.Size-e.Free, e.Size, e.Need)
	}
	if e.What == "keys" { // the arena isn't full
		fmt.Fprintf(&b, "budget %q: %s: scope %q: a StringMap has %d of %d keys; make it with an n of %d or more",
			e.Budget, e.Arena, e.Scope, e.Size-e.Free, e.Size, e.Need)
		return b.String()
	}
	state := "is full"
	if e.OnPurpose {
		state = "refused on purpose (budgettest.FailEach)"
	}
	fmt.Fprintf(&b, "budget %q: %s %s: ", e.Budget, e.Arena, state)
	if e.Scope != "" {
		fmt.Fprintf(&b, "scope %q ", e.Scope)
	}
	b.WriteString("asked for ")
	switch e.What {
	case "bytes":
		fmt.Fprintf(&b, "%d bytes, %d of %d are free", e.Asked, e.Free, e.Size)
	case "temporaries":
		fmt.Fprintf(&b, "%d bytes, %d of the %d that Temp gave are free", e.Asked, e.Free, e.Size)
	default:
		what := e.What
		if what == "owned" {
			what = "owned values"
		}
		fmt.Fprintf(&b, "one more of %d %s", e.Size, what)
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

// tableFull is the full of a table that has no place left.
func (st *Stack) tableFull(table string, size uint64, scope string) *FullError {
	return st.counted(&FullError{Budget: st.Budget, Arena: st.Arena, Scope: short(scope), What: table, Asked: 1, Size: size,
		Need: size + 1, Key: cmp.Or(st.TableKeys[table], "limits."+table)})
}

// counted has the full as the last. It is made once, whoever is told of it.
func (st *Stack) counted(full *FullError) *FullError {
	st.lastFull, st.fulls = full, st.fulls+1
	return full
}

// onPurpose makes it the full of a request that was refused though there was room.
func (e *FullError) onPurpose() *FullError {
	arena_c.Tell()
	e.OnPurpose, e.Need = true, e.Size
	return e
}

// noPlace is the full of a table that has no place for one more, or whose place is refused on purpose; nil: it has one.
func (st *Stack) noPlace(table string, used, size uint64, scope string) *FullError {
	if used >= size {
		return st.tableFull(table, size, scope)
	}
	if arena_c.Refuse() {
		return st.tableFull(table, size, scope).onPurpose()
	}
	return nil
}

// scopesFull is the full of who would open one scope too many. A loop that never closes is the usual
// cause: then all that are open have one name.
func (st *Stack) scopesFull(name string) *FullError {
	full := st.tableFull("scopes", st.h.Slots, name)
	full.sameName = st.h.Depth > 1
	for depth := st.h.Base + 1; depth <= st.h.Depth; depth++ {
		full.sameName = full.sameName && st.nameOf(st.h, depth) == short(name)
	}
	return full
}

// misuse says what is wrong with using s now.
func (s Scope) misuse(what string) error {
	h, st := s.h, stackOf(s.h)
	if st == nil {
		return &Misuse{what + " a scope whose budget is closed", true}
	}
	depth := h.Find(s.gen)
	if depth == 0 {
		var e emptied
		if h.Back == 0 {
			e = st.emptied.get()
		}
		return lost{st.made, st.Arena, e, nil}.misuse(what, s.gen)
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
	return &Misuse{Text: text}
}

// misuse is that of a scope that is closed.
func (l lost) misuse(what string, gen uint64) *Misuse {
	return &Misuse{fmt.Sprintf("%s a scope of %s that is closed%s", what, l.arena, l.ended(gen)), true}
}

// givenBack says why a scratch arena that was given back refuses.
func (st *Stack) givenBack(what string) error {
	if st.dropped {
		return &Misuse{fmt.Sprintf("%s %s, whose budget is closed", what, st.Arena), true}
	}
	return &Misuse{fmt.Sprintf("%s %s, which was given back", what, st.Arena), true}
}
