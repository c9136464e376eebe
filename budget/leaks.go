package budget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Leaks counts what should not be. What was lent is counted at Close: until then its owner may still give it back.
//
// Close names each of them in its error. In checked builds the error says too where each was opened, owned, acquired or
// taken: a line a call.
type Leaks struct {
	Scopes     int `json:"scopes"`     // of the frame and of scratch arenas, that were open at NextFrame, Release or Close
	Owned      int `json:"owned"`      // Go values that outlived their scope: something wrote over a chain of finalizers
	Finalizers int `json:"finalizers"` // that returned an error or panicked
	Slots      int `json:"slots"`      // that were acquired and not released before Close
	Scratch    int `json:"scratch"`    // pairs of scratch arenas that were taken and not given back before Close
}

// leak is one of them: its name, and where it began as lines that follow the error's first one.
type leak struct{ name, began string }

// leaks are the first of them, and how many there are: who leaks at each NextFrame doesn't fill the Go heap.
type leaks struct {
	first []leak
	count int
}

func (l *leaks) add(name, began string) {
	if l.count++; l.count <= reportErrors {
		l.first = append(l.first, leak{name, began})
	}
}

// addScope makes the text only where it is kept: NextFrame with a leak allocates no more than the first of them.
func (l *leaks) addScope(st *scope.Stack, depth int) {
	if l.count >= reportErrors {
		l.count++
		return
	}
	_, name, at := st.Opened(depth)
	name = strconv.Quote(name)
	l.add(name, at.Tell("scope "+name+" opened"))
}

// err is nil when there are none; else it lists them between what went wrong and what to do.
func (l *leaks) err(wrong, do string) error {
	if l.count == 0 {
		return nil
	}
	var names []string
	began := ""
	for _, one := range l.first {
		names = append(names, one.name)
		began += one.began
	}
	more := ""
	if l.count > len(names) {
		more = fmt.Sprintf(" and %d more", l.count-len(names))
	}
	return errors.New(wrong + strings.Join(names, ", ") + more + do + began)
}

const reportErrors = 16
