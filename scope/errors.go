package scope

import (
	"errors"
	"fmt"
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
