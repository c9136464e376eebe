package scope

import (
	"errors"
	"fmt"
	"strings"
)

// joined is errors.Join without a nest: both may be lists already.
func joined(a, b error) error {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	var list errorList
	list.add(a)
	list.add(b)
	return list.err()
}

// errorsKept is how many errors of one Close are kept; others are counted.
const errorsKept = 16

// errorList gathers errors, a line each as errors.Join gives them. Adding one costs the same however
// many there are.
type errorList struct {
	list   []error
	others int // that were not kept
}

func (l *errorList) add(err error) {
	switch more, ok := err.(*errorList); {
	case err == nil:
	case ok:
		for _, e := range more.list {
			l.add(e)
		}
		l.others += more.others
	case len(l.list) < errorsKept:
		l.list = append(l.list, err)
	default:
		l.others++
	}
}

// err is all of them: nil, the one that there is, or the list.
func (l *errorList) err() error {
	switch len(l.list) {
	case 0:
		return nil
	case 1:
		return l.list[0]
	}
	all := *l // so that a list that nobody asks for needs no place on the Go heap
	return &all
}

func (l *errorList) Error() string {
	text := errors.Join(l.list...).Error()
	if l.others > 0 {
		text += fmt.Sprintf("\nand %d more errors", l.others)
	}
	return text
}

// Unwrap lets errors.Is and errors.As look at each that is kept.
func (l *errorList) Unwrap() []error { return l.list }

// ErrFull is what errors.Is finds in every full: an arena, or a table of planned capacity, had no room. It is an
// expected answer.
var ErrFull = errors.New("upfront: full")

// ErrClosed is what errors.Is finds when something was used that is closed.
var ErrClosed = errors.New("upfront: closed")

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

// Misuse is a caller's bug: not an answer, but a program to mend. Hits panic with it; Close returns it and changes nothing.
type Misuse struct {
	Text   string
	closed bool
}

// bug is a misuse that closed nothing.
func bug(format string, args ...any) *Misuse { return &Misuse{Text: fmt.Sprintf(format, args...)} }

const misusePrefix = "scope: BUG: "

// Error is the Text after "scope: BUG: ".
func (e *Misuse) Error() string { return misusePrefix + e.Text }

// Is makes errors.Is(err, ErrClosed) true where something closed was used.
func (e *Misuse) Is(target error) bool { return e.closed && target == ErrClosed }

var (
	badAlign   = bug("AllocUnzeroed: an align is a power of two up to 64; BytesUnzeroed goes on to 1 MiB")
	undeclared = bug("a Maker that was never declared: make it with scope.Plain or scope.Object")

	zeroScope   = bug("a zero Scope: budget.Load gives one, Budget.Frame, and Open of a Scope or a Scratch")
	zeroScratch = bug("a zero Scratch: Budget.Scratch gives one, and Budget.Lease")
	zeroPool    = bug("a zero pool: Pool, HandlePool and SharedPool of a Maker make one in a scope")
)
