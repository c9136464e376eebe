package budget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/scope"
)

// Leaks counts what should not be. What was lent is counted at Close: until then its owner may still give it back.
//
// Close names each of them in its error. In checked builds the error says too where each was opened, owned, acquired or
// taken, and where an arena was made whose blocks live on: a line a call.
type Leaks struct {
	Scopes     int `json:"scopes"`     // of the frame and of scratch arenas, that were open at NextFrame, Release or Close
	Owned      int `json:"owned"`      // Go values that outlived their scope: something wrote over a chain of finalizers
	Finalizers int `json:"finalizers"` // that returned an error or panicked
	Slots      int `json:"slots"`      // that were acquired and not released before Close
	Scratch    int `json:"scratch"`    // pairs of scratch arenas that were taken and not given back before Close

	// Blocks of arenas on memory of the budget that lived when that ended ([arena.Heap.MayLive]).
	Blocks int `json:"blocks,omitempty"`
}

// text has them in one line; blocks only where there are some.
func (l Leaks) text() string {
	text := fmt.Sprintf("%d scopes, %d owned values, %d finalizers failed, %d slots, %d pairs of scratch arenas",
		l.Scopes, l.Owned, l.Finalizers, l.Slots, l.Scratch)
	if l.Blocks != 0 {
		text += fmt.Sprintf(", %d blocks", l.Blocks)
	}
	return text
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
	began, times := "", map[string]int{} // how often something began in the same calls
	for _, one := range l.first {
		names = append(names, one.name)
		_, calls, _ := strings.Cut(one.began, beganAt)
		times[calls]++
	}
	for _, one := range l.first {
		what, calls, _ := strings.Cut(one.began, beganAt)
		switch n := times[calls]; {
		case n > 1 && calls != "":
			began += fmt.Sprintf("%s, and %d more%s%s", what, n-1, beganAt, calls)
		case n == 1:
			began += one.began
		}
		times[calls] = 0 // each calls once
	}
	more := ""
	if l.count > len(names) {
		more = fmt.Sprintf(" and %d more", l.count-len(names))
	}
	return errors.New(wrong + strings.Join(names, ", ") + more + do + began)
}

const reportErrors = 16

const beganAt = " at:\n" // of Site.Tell, before the calls

// leftOpen are the scopes of frame and scratch arenas that were open when none should be.
type leftOpen struct {
	mu      sync.Mutex
	counted map[opened]scope.Scope // the last at each depth of an arena
	leaks   map[*scope.Stack]*leaks
}

// opened is where on a scratch arena, or in the frame, a scope is open.
type opened struct {
	stack *scope.Stack
	depth int
}

func newLeftOpen() *leftOpen {
	return &leftOpen{counted: map[opened]scope.Scope{}, leaks: map[*scope.Stack]*leaks{}}
}

// add counts the scopes that are open from a depth up, each once.
func (l *leftOpen) add(st *scope.Stack, depth int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; depth < st.Depth(); depth++ {
		at := opened{st, depth}
		open, _, _ := st.Opened(depth)
		if l.counted[at] == open {
			continue
		}
		l.counted[at] = open
		if l.leaks[st] == nil {
			l.leaks[st] = &leaks{}
		}
		l.leaks[st].addScope(st, depth)
	}
}

// count is how many there were. Any goroutine may ask.
func (l *leftOpen) count() (all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, open := range l.leaks {
		all += open.count
	}
	return all
}

// err names those of an arena.
func (l *leftOpen) err(budget string, st *scope.Stack) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.leaks[st]
	if open == nil {
		return nil
	}
	return open.err(fmt.Sprintf("budget %q: %s: left open at NextFrame, Release or Close: scope ", budget, st.Arena),
		"; close each where it is opened")
}
