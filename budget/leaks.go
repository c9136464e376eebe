package budget

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// Leaks counts what should not be.
type Leaks struct {
	Scopes     int `json:"scopes"`     // pad scopes that were open at a Turn, a Give or Close
	Held       int `json:"held"`       // Go values that were never released
	Finalizers int `json:"finalizers"` // that returned an error or panicked
}

// Total is their sum.
func (l Leaks) Total() int { return l.Scopes + l.Held + l.Finalizers }

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
			b.leaks[pad] = append(b.leaks[pad], fmt.Sprintf("%q", pad.NameAt(depth)))
		}
	}
}

// leakError says what is left open at Close.
func (b *Budget) leakError() error {
	var errs []error
	for _, st := range b.stacks() {
		if held := st.Stats().Held; held > 0 {
			errs = append(errs, fmt.Errorf("budget %q: %s: %d held values were never released", b.plan.Name, st.Name(), held))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, pad := range b.pads {
		if names := b.leaks[pad]; len(names) > 0 {
			errs = append(errs, fmt.Errorf("budget %q: %s: left open at a Turn, a Give or Close: scope %s; close each where it is opened",
				b.plan.Name, pad.Name(), strings.Join(names[:min(len(names), reportErrors)], ", ")))
		}
	}
	return errors.Join(errs...)
}
