package budget

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Leaks counts what should not be. What was lent is counted at Close: until then its owner may still give it back.
//
// Close names each of them in its error. In memdebug builds the error says too where each was opened, owned, acquired or
// taken: a line a call.
type Leaks struct {
	Scopes     int `json:"scopes"`     // pad scopes that were open at a Turn, a Give or Close
	Held       int `json:"held"`       // Go values that were never released
	Finalizers int `json:"finalizers"` // that returned an error or panicked
	Slots      int `json:"slots"`      // that were acquired and not released before Close
	Pads       int `json:"pads"`       // pairs of pads that were taken and not given back before Close
}

// Total is their sum.
func (l Leaks) Total() int { return l.Scopes + l.Held + l.Finalizers + l.Slots + l.Pads }

// leak is one of them: its name, and where it began as lines that follow the error's first one.
type leak struct{ name, began string }

// leakError is nil when there are none; else it lists them between what went wrong and what to do.
func leakError(wrong string, leaks []leak, do string) error {
	if len(leaks) == 0 {
		return nil
	}
	var names []string
	began := ""
	for _, l := range leaks[:min(len(leaks), reportErrors)] {
		names = append(names, l.name)
		began += l.began
	}
	more := ""
	if len(leaks) > len(names) {
		more = fmt.Sprintf(" and %d more", len(leaks)-len(names))
	}
	return errors.New(wrong + strings.Join(names, ", ") + more + do + began)
}

// place is where on a pad a scope is open.
type place struct {
	pad   *scope.Stack
	depth int
}

// countOpenPads counts each pad scope that is open, once. Pads on loan may be in use at a Turn; they count when they are
// given back, and at the end.
func (b *Budget) countOpenPads(lent bool) {
	for i, pad := range b.pads {
		if (lent || b.Pads.isFixed(i)) && pad.Depth() != 0 {
			b.countOpen(pad)
		}
	}
}

func (b *Budget) countOpen(pad *scope.Stack) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for depth := range pad.Depth() {
		at, open := place{pad, depth}, pad.At(depth)
		if b.leaked[at] != open {
			b.leaked[at] = open
			name := fmt.Sprintf("%q", pad.NameAt(depth))
			b.leaks[pad] = append(b.leaks[pad], leak{name, pad.OpenedAt(depth).Tell("scope " + name + " opened")})
		}
	}
}

// leakErrors says what is left at Close.
func (b *Budget) leakErrors() error {
	var errs []error
	for _, st := range b.stacks() {
		var held []leak
		st.EachHeld(func(what string, given *scope.Site) { held = append(held, leak{what, given.Tell(what + " given")}) })
		wrong := fmt.Sprintf("budget %q: %s: %d held values were never released: ", b.plan.Name, st.Name(), len(held))
		errs = append(errs, leakError(wrong, held, ""))
	}
	b.mu.Lock()
	for _, pad := range b.pads {
		wrong := fmt.Sprintf("budget %q: %s: left open at a Turn, a Give or Close: scope ", b.plan.Name, pad.Name())
		errs = append(errs, leakError(wrong, b.leaks[pad], "; close each where it is opened"))
	}
	b.mu.Unlock()
	errs = append(errs, b.Pads.keptError())
	for _, s := range b.slots {
		errs = append(errs, s.keptError())
	}
	return errors.Join(errs...)
}

// countKept counts what was lent and never came back; nothing before Close.
func (b *Budget) countKept(leaks *Leaks) {
	leaks.Pads = len(b.Pads.kept)
	for _, s := range b.slots {
		leaks.Slots += len(s.kept)
	}
}
