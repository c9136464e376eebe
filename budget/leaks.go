package budget

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/upfront-mem/upfront/arena_c"
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

// opened is where on a scratch arena, or in the frame, a scope is open.
type opened struct {
	stack *scope.Stack
	depth int
}

// countOpenScratch counts each scope on scratch that is open, once. What is on loan may be in use at NextFrame; it counts when it is
// given back, and at the end.
func (b *Budget) countOpenScratch(lent bool) {
	for i, scratch := range b.scratches {
		if (lent || b.leases.isFixed(i)) && scratch.Depth() != 0 {
			b.countOpen(scratch, 0)
		}
	}
}

// countOpenFrame counts the scopes that are open in the frame, in its own.
func (b *Budget) countOpenFrame() {
	if len(b.frame) > 0 && b.frame[b.buffer].Depth() > 1 {
		b.countOpen(b.frame[b.buffer], 1)
	}
}

// countOpen counts the scopes that are open from a depth up.
func (b *Budget) countOpen(st *scope.Stack, depth int) {
	defer forgive()() // Strict speaks of what the program does
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; depth < st.Depth(); depth++ {
		at := opened{st, depth}
		open, _, _ := st.Opened(depth)
		if b.leaked[at] == open {
			continue
		}
		b.leaked[at] = open
		if b.leaks[st] == nil {
			b.leaks[st] = &leaks{}
		}
		b.leaks[st].addScope(st, depth)
	}
}

// leakErrors says what is left at Close.
func (b *Budget) leakErrors() error {
	var errs []error
	for _, st := range b.stacks() {
		var held leaks
		st.EachOwned(func(what string, given *arena_c.Site) { held.add(what, given.Tell(what+" given")) })
		wrong := fmt.Sprintf("budget %q: %s: %d owned values were never released: ", b.plan.Name, st.Arena, held.count)
		errs = append(errs, held.err(wrong, ""))
	}
	b.mu.Lock()
	for _, st := range slices.Concat(b.frame, b.scratches) {
		if open := b.leaks[st]; open != nil {
			wrong := fmt.Sprintf("budget %q: %s: left open at NextFrame, Release or Close: scope ", b.plan.Name, st.Arena)
			errs = append(errs, open.err(wrong, "; close each where it is opened"))
		}
	}
	b.mu.Unlock()
	errs = append(errs, b.leases.keptError())
	for _, s := range b.slots {
		errs = append(errs, s.keptError())
	}
	return errors.Join(errs...)
}

// countKept counts what was lent and never came back; nothing before Close.
func (b *Budget) countKept(leaks *Leaks) {
	leaks.Scratch = b.leases.kept.count
	for _, s := range b.slots {
		leaks.Slots += s.kept.count
	}
}
