package scope

import (
	"fmt"
	"strings"
)

// joined is errors.Join without a nest: both may be lists already.
func joined(a, b error) error {
	var list errorList
	list.add(a)
	list.add(b)
	return list.err()
}

// errorsKept is how many errors of one Close are kept; others are counted.
const errorsKept = 16

// errorList gathers errors. Adding one costs the same however many there are.
type errorList struct {
	one  error
	many *manyErrors
}

func (l *errorList) add(err error) {
	switch {
	case err == nil:
	case l.one == nil:
		l.one = err
	default:
		if l.many == nil {
			l.many = &manyErrors{}
			l.many.add(l.one)
		}
		l.many.add(err)
	}
}

func (l *errorList) err() error {
	if l.many != nil {
		return l.many
	}
	return l.one
}

// manyErrors are several errors, a line each, as errors.Join gives them.
type manyErrors struct {
	list   []error
	others int // that were not kept
}

func (m *manyErrors) add(err error) {
	if more, ok := err.(*manyErrors); ok {
		for _, e := range more.list {
			m.add(e)
		}
		m.others += more.others
	} else if len(m.list) < errorsKept {
		m.list = append(m.list, err)
	} else {
		m.others++
	}
}

func (m *manyErrors) Error() string {
	var b strings.Builder
	for i, err := range m.list {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	if m.others > 0 {
		fmt.Fprintf(&b, "\nand %d more errors", m.others)
	}
	return b.String()
}

// Unwrap lets errors.Is and errors.As look at each that is kept.
func (m *manyErrors) Unwrap() []error { return m.list }
