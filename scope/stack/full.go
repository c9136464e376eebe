package stack

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
)

// FullError is the error of an arena or table that was out of room. It names the arena or table
// and, if there is one, the key of the plan to raise.
type FullError struct {
	Budget string // name of the plan
	Arena  string // "region level", "frame 0", "scratch 1.0" or "quota query"
	// name of the scope that had no room, or that wasn't opened as the table of scopes is full; ""
	// for slots, or if there is no scope
	Scope string
	// "bytes", "temporaries" (see Temp of a Scope), "keys" of a StringMap, or the full table:
	// "scopes", "pools", "owned", "labels" or "slots"; of a quota "bytes", "waiters" or "tenants"
	What  string
	Asked uint64 // bytes requested, without alignment, at most 2^38; or 1
	Free  uint64 // bytes or entries that were free
	Size  uint64 // bytes of the arena or the temporaries, or entries of the table
	// a Size that is enough: the smallest one, or the smallest one plus the most that alignment may
	// take; 0: no plan can have a Size that is enough
	Need uint64
	// of the plan: "regions[2].size", "frame.size", "scratch.size", "regions[1].slots" or
	// "limits.pools"; for keys, the parameter to raise; "" for temporaries
	Key string
	// the scopes, labels and temporaries with the most bytes, largest first: three at most; none if
	// a table or temporaries are full
	Top   []Usage
	Cause error // a later error, if the full error wasn't handled

	asked    uint64 // the arena header's Asked
	sameName bool   // a full table of scopes: all open scopes have this name
	// in a checked build: there was room, but budgettest.FailEach refused the request
	OnPurpose bool
}

// Error returns one line, and the text of the Cause. It names the full arena or table, the Top, and
// the key of the plan to raise, with its new value.
func (e *FullError) Error() string {
	var b strings.Builder
	if e.What == "keys" && e.Arena == "" {
		return fmt.Sprintf("a StringMap has %d of %d keys; make it with an n of %d or more",
			e.Size-e.Free, e.Size, e.Need)
	}
	if e.What == "keys" { // the arena isn't full
		fmt.Fprintf(&b, "budget %q: %s: scope %q: a StringMap has %d of %d keys; make it with an n of %d or more",
			e.Budget, e.Arena, e.Scope, e.Size-e.Free, e.Size, e.Need)
		return b.String()
	}
	fmt.Fprintf(&b, "budget %q: %s", e.Budget, e.Arena)
	table := e.What
	if table == "owned" {
		table = "owned values"
	}
	switch {
	case e.OnPurpose:
		b.WriteString(" refused on purpose (budgettest.FailEach): ")
	case e.What == "bytes":
		b.WriteString(" is full: ")
	case e.What == "temporaries":
		fmt.Fprintf(&b, ": temporaries %q are full: ", e.Scope)
	case e.What == "slots":
		fmt.Fprintf(&b, ": all %d slots are acquired", e.Size)
	case e.What == "waiters":
		fmt.Fprintf(&b, ": all %d places in the queue are taken", e.Size)
	case e.What == "tenants":
		fmt.Fprintf(&b, ": all %d places for tenants are taken by tenants that have bytes or wait", e.Size)
	case e.Scope == "": // of a plan that has no such arena
		fmt.Fprintf(&b, " isn't in the plan, which has %d %s", e.Size, table)
	default:
		fmt.Fprintf(&b, ": all %d places for %s are taken: ", e.Size, table)
	}
	if e.Scope != "" && e.What != "temporaries" {
		fmt.Fprintf(&b, "scope %q ", e.Scope)
	}
	switch multiple := e.asked>>arena_c.AskedAt%arena_c.AlignMax + 1; {
	case e.What == "bytes" || e.What == "temporaries":
		fmt.Fprintf(&b, "asked for %d bytes", e.Asked)
		aligned := !e.OnPurpose && e.Asked <= e.Free
		if aligned {
			fmt.Fprintf(&b, " at a multiple of %d", multiple)
		}
		of := ""
		if e.What == "temporaries" {
			of = "Temp's "
		}
		fmt.Fprintf(&b, ", %d of %s%d are free", e.Free, of, e.Size)
		if aligned {
			b.WriteString(", but not from such an address")
		}
	case e.OnPurpose:
		fmt.Fprintf(&b, "asked for one more of %d %s", e.Size, table)
	case e.Scope != "":
		b.WriteString("asked for one more")
	}
	for i, a := range e.Top {
		if i == 0 {
			b.WriteString("; held by ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q (%d bytes)", a.Name, a.Bytes)
	}
	switch {
	case e.OnPurpose:
	case e.Need == 0:
		b.WriteString("; no plan has as much")
	case e.What == "temporaries":
		fmt.Fprintf(&b, "; ask Temp for %d or more", e.Need)
	case e.sameName:
		fmt.Fprintf(&b,
			"; all open scopes are named %q: is a Close missing? If not, raise %s in the plan to %d or more",
			e.Scope, e.Key, e.Need)
	case e.What == "slots":
		fmt.Fprintf(&b, "; Release one, or raise %s in the plan to %d or more", e.Key, e.Need)
	default:
		fmt.Fprintf(&b, "; raise %s in the plan to %d or more", e.Key, e.Need)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; then: %v", e.Cause)
	}
	return b.String()
}

// Is reports whether target is ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// Unwrap returns the Cause.
func (e *FullError) Unwrap() error { return e.Cause }

func (st *Stack) tableFull(table string, size uint64, scope string) *FullError {
	return st.counted(&FullError{Budget: st.Budget, Arena: st.Arena, Scope: short(scope), What: table, Asked: 1,
		Size: size, Need: size + 1, Key: cmp.Or(st.TableKeys[table], "limits."+table)})
}

// LastFull returns the last full error of the arena that was reported, or nil.
func (st *Stack) LastFull() *FullError { return st.lastFull }

// Fulls returns the number of full errors of the arena that were reported.
func (st *Stack) Fulls() int { return st.fulls }

// counted counts the full error, keeps it as the arena's last one and returns it. It is called once
// for each.
func (st *Stack) counted(full *FullError) *FullError {
	st.lastFull, st.fulls = full, st.fulls+1
	return full
}

// onPurpose marks and returns the error of a request that was refused although there was room.
func (e *FullError) onPurpose() *FullError {
	arena_c.Tell()
	e.OnPurpose, e.Need = true, e.Size
	return e
}

// noPlace returns the full error of a table without a free entry or of a refusal on purpose, or
// nil.
func (st *Stack) noPlace(table string, used, size uint64, scope string) *FullError {
	if used >= size {
		return st.tableFull(table, size, scope)
	}
	if arena_c.Refuse() {
		return st.tableFull(table, size, scope).onPurpose()
	}
	return nil
}

// scopesFull returns the full error of one scope too many. The usual cause is a loop without a
// Close: then all open scopes have one name.
func (st *Stack) scopesFull(name string) *FullError {
	full := st.tableFull("scopes", st.h.Slots, name)
	full.sameName = st.h.Depth > 1
	for depth := st.h.Base + 1; depth <= st.h.Depth; depth++ {
		full.sameName = full.sameName && st.nameOf(st.h, depth) == short(name)
	}
	return full
}

// KeysFull returns the full error of a StringMap in a scope that has all of its n keys. pre: the
// scope is alive, or h is nil for a heap in no budget.
func KeysFull(h *arena_c.Scopes, gen uint64, n int) *FullError {
	if h == nil {
		return &FullError{What: "keys", Asked: 1, Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMapOn"}
	}
	budget, arena, scope := NamesOf(h, gen)
	return &FullError{Budget: budget, Arena: arena, Scope: scope, What: "keys", Asked: 1,
		Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMap"}
}
