package stack

import (
	"errors"
	"fmt"
)

// joined is errors.Join, but adds the errors of an errorList one by one.
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

// errorsKept is how many errors of one Close are kept; further errors are only counted.
const errorsKept = 16

// errorList gathers errors, and prints one on a line as errors.Join does. Adding an error is O(1).
type errorList struct {
	list   []error
	others int // that are only counted
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

func (l *errorList) err() error {
	switch len(l.list) {
	case 0:
		return nil
	case 1:
		return l.list[0]
	}
	all := *l // a copy, so that l itself stays off the Go heap
	return &all
}

func (l *errorList) Error() string {
	text := errors.Join(l.list...).Error()
	if l.others > 0 {
		text += fmt.Sprintf("\nand %d more errors", l.others)
	}
	return text
}

// Unwrap lets errors.Is and errors.As examine each kept error.
func (l *errorList) Unwrap() []error { return l.list }

// ErrFull matches, with errors.Is, every full error: the error of an arena, or of a table of
// planned capacity, that was out of room. A full error is an expected result, not a bug.
var ErrFull = errors.New("upfront: full")

// ErrClosed matches, with errors.Is, a use of a scope, pool or value that is closed.
var ErrClosed = errors.New("upfront: closed")

// Misuse is the error for a bug of the caller. Most functions panic with an error that is or wraps
// a Misuse (errors.As). A Close that is refused returns a Misuse and changes nothing.
type Misuse struct {
	Text   string
	closed bool
}

// Misusef returns a Misuse with a text that is formatted as by fmt.Sprintf.
func Misusef(format string, args ...any) *Misuse { return &Misuse{Text: fmt.Sprintf(format, args...)} }

const misusePrefix = "scope: BUG: "

// Error returns "scope: BUG: " and the Text.
func (e *Misuse) Error() string { return misusePrefix + e.Text }

// Is reports whether target is ErrClosed and the misuse is of a closed object.
func (e *Misuse) Is(target error) bool { return e.closed && target == ErrClosed }

var badAlign = Misusef("AllocUnzeroed: the alignment must be a power of two up to 64 (BytesUnzeroed: up to 1 MiB)")

// Undeclared is the misuse of the zero Maker.
var Undeclared = Misusef("a Maker that was never declared: make it with scope.Plain or scope.Object")
