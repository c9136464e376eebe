package budget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/upfront-mem/upfront/scope/stack"
)

// Leaks counts leaks by kind. Leases, slots and reservations count only at Close, because an owner
// may release them until then.
//
// Close's error names the first 16 scopes and owned values of each arena, the first 16 slots of
// each region, the first 16 leases, and the first 16 reservations of each quota. In checked builds
// the error also has the calls that led to these leaks, equal calls once, one on each line: the
// calls that opened the scope, registered the owned value, acquired the slot, took the lease, made
// the reservation, or made the arena with live blocks.
type Leaks struct {
	Scopes int `json:"scopes"` // of frame and scratch, open at NextFrame, Release or Close
	// Owned counts the Go values that a closed scope didn't release: a stray write overwrote its
	// chain of finalizers.
	Owned      int `json:"owned"`
	Finalizers int `json:"finalizers"` // returned an error or panicked
	Slots      int `json:"slots"`      // acquired and not released before Close
	Scratch    int `json:"scratch"`    // leases, a worker's arenas each, not released before Close

	// Blocks counts the blocks that were live when the memory of their heap or buddy was freed
	// ([arena.Heap.MayLive]), and those of rings and pools with MustEmpty.
	Blocks int `json:"blocks,omitempty"`
	Quotas int `json:"quotas,omitempty"` // reservations not released before Close
}

// text returns the counts in one line; blocks only if there are any.
func (l Leaks) text() string {
	text := fmt.Sprintf("%d scopes, %d owned values, %d finalizers failed, %d slots, %d leases of scratch",
		l.Scopes, l.Owned, l.Finalizers, l.Slots, l.Scratch)
	if l.Blocks != 0 {
		text += fmt.Sprintf(", %d blocks", l.Blocks)
	}
	if l.Quotas != 0 {
		text += fmt.Sprintf(", %d reservations", l.Quotas)
	}
	return text
}

// leak is one leak: its name, and the lines of its calls, which follow the error's first line.
type leak struct{ name, began string }

// leaks holds the first leaks and the number of all, so a program that leaks at each NextFrame
// doesn't fill the Go heap.
type leaks struct {
	first []leak
	count int
}

func (l *leaks) add(name, began string) {
	if l.count++; l.count <= reportErrors {
		l.first = append(l.first, leak{name, began})
	}
}

// addScope adds a scope. It makes a text only for the leaks that it keeps, so a program that leaks
// at each NextFrame stops allocating.
func (l *leaks) addScope(st *stack.Stack, depth int) {
	if l.count >= reportErrors {
		l.count++
		return
	}
	_, name, at := st.Opened(depth)
	name = strconv.Quote(name)
	l.add(name, at.Tell("scope "+name+" opened"))
}

// err returns nil if there are no leaks, else an error that lists them between wrong and do.
func (l *leaks) err(wrong, do string) error {
	if l.count == 0 {
		return nil
	}
	var names []string
	began, times := "", map[string]int{} // number of leaks that began in the same calls
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

const beganAt = " at:\n" // in the text of Site.Tell, before the calls

// leftOpen holds the scopes of frame and scratch that were left open.
type leftOpen struct {
	mu      sync.Mutex
	counted map[opened]uint64 // the generation of the last counted scope at each depth of an arena
	leaks   map[*stack.Stack]*leaks
}

type opened struct {
	stack *stack.Stack
	depth int
}

func newLeftOpen() *leftOpen {
	return &leftOpen{counted: map[opened]uint64{}, leaks: map[*stack.Stack]*leaks{}}
}

// add counts the open scopes from a depth up, each once.
func (l *leftOpen) add(st *stack.Stack, depth int) {
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

// count returns the number of counted scopes. Any goroutine may call it.
func (l *leftOpen) count() (all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, open := range l.leaks {
		all += open.count
	}
	return all
}

func (l *leftOpen) err(budget string, st *stack.Stack) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.leaks[st]
	if open == nil {
		return nil
	}
	return open.err(fmt.Sprintf("budget %q: %s: left open at NextFrame, Release or Close: scope ", budget, st.Arena),
		"; close each where it is opened")
}
