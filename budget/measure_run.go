package budget

import (
	"errors"
	"fmt"
	"strings"

	"github.com/upfront-mem/upfront/scope"
)

// trial is one run of fn.
type trial struct {
	report Report
	fulls  []*scope.FullError // that fn returned, panicked with or hid
	err    error              // of fn
}

// run runs fn in the budget and closes it. The error is one that ends the search: fn's when nothing was full, that of
// leaks, or a full of what a measured plan doesn't widen.
func (m *measurement) run(b *Budget) (t trial, err error) {
	ended := false
	defer func() {
		if !ended { // fn panicked, or ended the goroutine
			_ = b.Close()
		}
	}()
	b.countScratch()
	t.err = b.attempt(m.fn)
	t.report = b.Report()
	var full *scope.FullError
	var returned []*scope.FullError
	if errors.As(t.err, &full) && full.Budget == b.plan.Name && widens(full) {
		returned = append(returned, full)
	}
	ended = true
	err = b.Close()
	t.fulls = append(b.fulls(), returned...) // now: Close asks what was open, as the frame, what it refused
	switch {
	case !b.closed.Load():
		return t, err // a worker is still inside
	case len(t.fulls) > 0:
		return t, nil // what leaked follows from it
	case t.err != nil || errors.Is(err, ErrClosed):
		return t, t.err // or fn closed it
	}
	return t, err
}

// attempt calls fn. A full that it panics with is its error, and so is a panic after a full that it hid.
func (b *Budget) attempt(fn func(*Budget) error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if full, ok := v.(error); ok && errors.Is(full, ErrFull) {
			err = full
			return
		}
		if len(b.fulls()) == 0 {
			panic(v)
		}
		err = fmt.Errorf("panic: %v", v)
	}()
	return fn(b)
}

// fulls are the last that each arena reported, to whomever. What didn't fit into the bytes that Temp gave is none of the
// arena's.
func (b *Budget) fulls() (list []*scope.FullError) {
	for _, st := range b.stacks() {
		if full := st.LastFull(); full != nil && full.Key != "" {
			list = append(list, full)
		}
	}
	return list
}

// widens says whether a measured plan gives more of what was full.
func widens(full *scope.FullError) bool {
	return !full.OnPurpose && (strings.HasSuffix(full.Key, "size") || strings.HasPrefix(full.Key, "limits."))
}
