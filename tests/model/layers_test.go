package model_test

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/upfront-mem/upfront/scope"
)

// The ends of a function that is called with a scope.
const (
	endWell = iota
	endError
	endFull
	endPanic
	endExit
	endCount
)

// ended is the end of a call.
type ended struct {
	err    error
	thrown any
	exited bool
}

// layer calls fn, which calls back, and then after, at any end. A panic or Goexit continues.
func (w *world) layer(fn func() error, after func(e ended)) {
	e, then := ended{exited: true}, len(w.ran)
	w.layers++
	defer func() {
		if v := recover(); v != nil {
			e = ended{thrown: v}
		}
		w.layers--
		exits := w.exiting
		for _, id := range w.ran[then:] {
			exits = exits || w.finalizers[id].do == doExit
		}
		if v := w.recovered(func() { after(e) }); v != nil {
			w.fail("the model panics: %v\n%s", v, debug.Stack())
		}
		w.check(exits == e.exited, "somebody ended the goroutine: %v, and it ended: %v", exits, e.exited)
		w.compare()
		if e.thrown != nil {
			panic(e.thrown)
		}
	}()
	e.err = fn()
	e.exited = false
}

// inside calls a function that has a scope. before sees its end first.
func (w *world) inside(e *ended, before func(), fn func() error) error {
	e.exited = true
	defer func() {
		v := recover()
		if v != nil {
			*e = ended{thrown: v}
		}
		before()
		if v != nil {
			panic(v)
		}
	}()
	e.err = fn()
	e.exited = false
	return e.err
}

// body takes random steps and ends in a random way. A full, a panic and a Goexit unwind.
func (w *world) body(s *life) error {
	w.compare()
	for range w.random.IntN(7) {
		if !w.good() {
			return nil
		}
		w.step(s)
		w.compare()
	}
	if w.chance(2) || !w.good() {
		return nil
	}
	end := w.random.IntN(endCount)
	w.say("ends in way %d", end)
	w.did[fmt.Sprintf("end %d", end)]++
	switch end {
	case endError:
		return errLoader
	case endFull:
		if s.may() {
			w.refused(s)
			w.flight = s
			larges.Slice(s.real, 1<<30)
		}
	case endPanic:
		w.flight = nil
		panic("boom")
	case endExit:
		w.exiting = true
		runtime.Goexit()
	}
	return nil
}

// verdict returns the error of a Do or Load for the end of its function, and whether its panic
// continues.
func (w *world) verdict(a *arena, near, far int, e ended) (t reported, goesOn bool) {
	switch {
	case e.thrown == nil:
		t.other = e.err
	case w.flight != nil:
		w.flight.wrong, w.flight.full, w.flight = false, false, nil
		t.full = true
	case a.anyFull(near, far):
		t.full = true
	default:
		goesOn = true
	}
	if !t.any() && !goesOn && !e.exited {
		if t.wrong = len(a.near) > near+1; t.wrong {
			w.did["left open"]++
		}
		t.add(a.remembered(near, far))
	}
	return t, goesOn
}

// do is Do of a scope or a scratch arena.
func (w *world) do(a *arena, parent *life, do func(string, func(scope.Scope) error) error) {
	name := fmt.Sprint("do ", w.random.IntN(3))
	w.say("%s: %s", a.name, name)
	if parent != nil && (!parent.may() || parent.far) {
		w.check(w.recovered(func() { _ = do(name, nil) }) != nil, "Do in a scope that may not")
		return
	}
	near, far, then := len(a.near), len(a.far), 0
	var inner ended
	var t reported
	var goesOn bool
	w.layer(func() error {
		return do(name, func(real scope.Scope) error {
			s := a.open(real, name)
			s.layer = true
			return w.inside(&inner, func() {
				t, goesOn = w.verdict(a, near, far, inner)
				then = len(w.ran)
			}, func() error { return w.body(s) })
		})
	}, func(e ended) {
		if len(a.near) == near {
			w.check(near == maxScopes, "Do of %v doesn't call its function: %v", a.name, e)
			w.check(errors.Is(e.err, scope.ErrFull), "one scope too many: %v", e)
			return
		}
		w.say("%s: %s closes", a.name, name)
		t.add(w.closedTo(a, near))
		t.add(w.since(then))
		if !e.exited && !goesOn {
			w.expect("Do", e.err, t)
		}
		w.check(goesOn == (e.thrown != nil) || e.exited, "Do panics with %v, its function did: %v",
			e.thrown, inner.thrown)
	})
}

// make is Make of a maker.
func (w *world) make(s *life) {
	object := w.chance(2)
	was := s.markNow()
	w.say("%s: Make in %s", s.arena.name, s.name)
	if !s.may() {
		w.check(w.recovered(func() { _, _ = marks.Make(s.real, nil) }) != nil, "Make in a scope that may not")
		return
	}
	fits := fit(s, 8, 8, object)
	if fits == perhaps {
		return
	}
	near, far, wrong, then := len(s.arena.near), len(s.arena.far), false, 0
	made, inner, called := (*marked)(nil), ended{}, false
	w.layer(func() error {
		build := func(m *marked) error {
			called = true
			w.zero("Make", bytesAt(m, 8))
			m.ID = w.newFinalizer(s, nil)
			w.finalizers[m.ID].off = true
			made = m
			w.watch(s, bytesAt(m, 8))
			s.layered++
			return w.inside(&inner, func() {
				s.layered--
				wrong, s.wrong, then = s.wrong, false, len(w.ran)
			}, func() error { return w.body(s) })
		}
		if fits == no {
			w.refused(s)
			w.flight = s
		}
		var err error
		if object {
			_, err = marks.Make(s.real, build)
		} else {
			_, err = plainMarks.Make(s.real, build)
		}
		return err
	}, func(e ended) {
		if !called {
			w.check(e.thrown != nil && fits == no, "Make doesn't call its function: %v", e)
			return
		}
		if !s.open { // its function closed the scope of the temporaries
			w.flight = map[bool]*life{true: w.flight}[inner.thrown != nil]
			return
		}
		leftOpen := len(s.list()) > map[bool]int{false: near, true: far}[s.far]
		if inner == (ended{}) && !leftOpen {
			w.check(e.err == nil && e.thrown == nil, "Make: %v", e)
			s.wrong = wrong
			if object {
				s.nodes = append(s.nodes, &node{ids: []int64{made.ID}})
				w.finalizers[made.ID].off = false
			}
			return
		}
		w.check(!leftOpen || inner != (ended{}) || e.thrown != nil || e.exited, "Make leaves a scope open: %v", e)
		if leftOpen && inner == (ended{}) {
			w.flight = nil
		}
		w.unmade(s, was, inner, e, then)
		s.wrong = wrong
	})
}

// unmade compares the state after a constructor that failed.
func (w *world) unmade(s *life, was mark, inner, e ended, then int) {
	w.did["Make failed"]++
	w.say("%s: Make goes back in %s", s.arena.name, s.name)
	var t reported
	for newest(s.list()) != s {
		t.add(w.closed(newest(s.list())))
	}
	t.add(w.unwound(s, was))
	t.wrong = t.wrong || s.wrong // from finalizers
	t.add(w.since(then))
	if s.arena.back = nil; !s.far {
		s.arena.goesBack(was)
	}
	if inner.err != nil && !t.exits {
		t.other = inner.err
		w.expect("Make", e.err, t)
	} else if !t.exits {
		s.lost.add(t)
	}
}

var plainMarks = scope.Plain[marked]()

// label allocates under a label.
func (w *world) label(s *life) {
	name := fmt.Sprint("label ", w.random.IntN(3))
	w.say("%s: %s in %s", s.arena.name, name, s.name)
	if !s.may() || s.far {
		w.check(w.recovered(func() { _ = scope.Label(s.real, name, nil) }) != nil, "Label in a scope that may not")
		return
	}
	fits, called := fit(s, 32, 8, true), false
	if fits == perhaps {
		return
	}
	w.layer(func() error {
		if fits == no {
			w.refused(s)
			w.flight = s
		}
		return scope.Label(s.real, name, func() error {
			called = true
			s.layered++
			defer func() { s.layered-- }()
			return w.body(s)
		})
	}, func(e ended) {
		w.check(called == (fits == yes) && (called || e.thrown != nil), "Label: %v", e)
	})
}
