package model_test

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/upfront-mem/upfront/scope"
)

// How a function ends that something calls with a scope.
const (
	endWell = iota
	endError
	endFull
	endPanic
	endExit
	endCount
)

// ended is how a call ended.
type ended struct {
	err    error
	thrown any
	exited bool
}

// layer calls fn, which calls back, and then after, however it ended. What goes on goes on.
func (w *world) layer(fn func() error, after func(e ended) (exits bool)) {
	e := ended{exited: true}
	w.layers++
	defer func() {
		if v := recover(); v != nil {
			e = ended{thrown: v}
		}
		w.layers--
		var exits bool
		if v := w.recovered(func() { exits = after(e) }); v != nil {
			w.fail("the model panics: %v\n%s", v, debug.Stack())
		}
		w.check(exits == e.exited, "a finalizer ended the goroutine: %v, and it ended: %v", exits, e.exited)
		w.compare()
		if e.thrown != nil {
			panic(e.thrown)
		}
	}()
	e.err = fn()
	e.exited = false
}

// body does random things and ends in some way: a full, a panic and a Goexit unwind.
func (w *world) body(s *life) error {
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
		runtime.Goexit()
	}
	return nil
}

// anyFull says whether somebody remembers a full, of the scopes from a depth up and of the temporaries
// that were opened since.
func (a *arena) anyFull(near, far int) bool {
	for _, s := range a.near[near:] {
		if s.full {
			return true
		}
	}
	for _, s := range a.far[min(far, len(a.far)):] {
		if s.full {
			return true
		}
	}
	return false
}

// remembered is the first that any of them remembers; then it is told.
func (a *arena) remembered(near, far int) told {
	for _, list := range [][]*life{a.near[near:], a.far[min(far, len(a.far)):]} {
		for _, s := range list {
			if t := s.tell(); t.any() {
				return t
			}
		}
	}
	return told{}
}

// verdict is what a Do or Load makes of how its function ended, and whether the panic goes on.
func (w *world) verdict(a *arena, near, far int, e ended) (t told, goesOn bool) {
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
	near, far := len(a.near), len(a.far)
	var inner ended
	w.layer(func() error {
		return do(name, func(real scope.Scope) (err error) {
			s := a.open(real, name)
			s.layer = true
			inner.exited = true
			defer func() {
				if v := recover(); v != nil {
					inner = ended{thrown: v}
					panic(v)
				}
			}()
			inner.err = w.body(s)
			inner.exited = false
			return inner.err
		})
	}, func(e ended) bool {
		if len(a.near) == near {
			w.check(near == maxScopes, "Do of %v doesn't call its function: %v", a.name, e)
			w.check(errors.Is(e.err, scope.ErrFull), "one scope too many: %v", e)
			return false
		}
		t, goesOn := w.verdict(a, near, far, inner)
		if !t.any() && !goesOn {
			if t.wrong = len(a.near) > near+1; t.wrong {
				w.did["left open"]++
			}
			t.add(a.remembered(near, far))
		}
		w.say("%s: %s closes", a.name, name)
		t.add(w.closeTo(a, near))
		if !t.exits && !inner.exited && !goesOn {
			w.expect("Do", e.err, t)
		}
		w.check(goesOn == (e.thrown != nil) || t.exits, "Do panics with %v, its function did: %v", e.thrown, inner.thrown)
		return t.exits || inner.exited
	})
}

// make is Make of a maker.
func (w *world) make(s *life) {
	object := w.chance(2)
	was := s.markNow()
	at, ok := s.place(8, 8)
	if object {
		at, ok = s.nodePlace(8, 8)
	}
	w.say("%s: Make in %s", s.arena.name, s.name)
	if !s.may() {
		w.check(w.recovered(func() { _, _ = marks.Make(s.real, nil) }) != nil, "Make in a scope that may not")
		return
	}
	near, far := len(s.arena.near), len(s.arena.far)
	made, inner, called := (*marked)(nil), ended{}, false
	w.layer(func() error {
		build := func(m *marked) error {
			called, inner.exited = true, true
			s.moveTo(at + 8)
			w.zero("Make", bytesAt(m, 8))
			m.ID = w.newFinalizer(s, nil)
			made = m
			w.watch(s, at, bytesAt(m, 8))
			return w.construct(s, &inner)
		}
		if !ok {
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
	}, func(e ended) bool {
		if !called {
			w.check(e.thrown != nil && !ok, "Make doesn't call its function: %v", e)
			return false
		}
		if !s.open { // its function closed the scope that the temporaries were of
			w.flight = map[bool]*life{true: w.flight}[inner.thrown != nil]
			return inner.exited
		}
		leftOpen := len(s.list()) > map[bool]int{false: near, true: far}[s.far]
		if inner == (ended{}) && !leftOpen {
			w.check(e.err == nil && e.thrown == nil, "Make: %v", e)
			if object {
				s.nodes = append(s.nodes, &node{ids: []int64{made.ID}})
			}
			return false
		}
		w.check(!leftOpen || inner != (ended{}) || e.thrown != nil || e.exited, "Make leaves a scope open: %v", e)
		if leftOpen && inner == (ended{}) {
			w.flight = nil
		}
		return w.unmade(s, was, inner, e)
	})
}

// construct is what a constructor does, and how it ended.
func (w *world) construct(s *life, inner *ended) error {
	s.layered++
	defer func() {
		s.layered--
		if v := recover(); v != nil {
			*inner = ended{thrown: v}
			panic(v)
		}
	}()
	inner.err = w.body(s)
	inner.exited = false
	return inner.err
}

// unmade is what a constructor that failed takes back.
func (w *world) unmade(s *life, was mark, inner, e ended) (exits bool) {
	w.did["Make failed"]++
	w.say("%s: Make goes back in %s", s.arena.name, s.name)
	t := w.closeAbove(s)
	wrong := s.wrong
	s.wrong = false
	t.add(w.unwind(s, was))
	t.wrong, s.wrong = t.wrong || s.wrong, wrong // of finalizers
	if inner.err != nil && !t.exits {
		t.other = inner.err
		w.expect("Make", e.err, t)
	} else if !t.exits {
		s.lost.add(t)
	}
	return t.exits || inner.exited
}

// closeAbove closes what was left open in a scope: as who unwinds it does.
func (w *world) closeAbove(s *life) (t told) {
	a := s.arena
	if s.far {
		for a.far[len(a.far)-1] != s {
			t.add(w.closeNewest(a))
		}
		return t
	}
	for a.top() != s {
		t.add(w.closeTop(a))
	}
	return t
}

var plainMarks = scope.Plain[marked]()

// label has fn work for a label.
func (w *world) label(s *life) {
	name := fmt.Sprint("label ", w.random.IntN(3))
	a := s.arena
	var l *line
	for _, other := range a.lines {
		if other.of == s && other.name == name {
			l = other
		}
	}
	at, ok := s.nodePlace(labelSize, 8)
	w.say("%s: %s in %s", a.name, name, s.name)
	if !s.may() || s.far {
		w.check(w.recovered(func() { _ = scope.Label(s.real, name, nil) }) != nil, "Label in a scope that may not")
		return
	}
	full := l == nil && len(a.lines) == maxLabels
	called := false
	w.layer(func() error {
		if full {
			w.flight = &life{} // of a table, which nobody remembers
		} else if !ok {
			w.refused(s)
			w.flight = s
		}
		return scope.Label(s.real, name, func() error {
			called = true
			s.moveTo(at + labelSize)
			if l == nil {
				l = &line{of: s, name: name}
				a.lines = append(a.lines, l)
			}
			l.calls++
			s.nodes = append(s.nodes, &node{line: l})
			s.layered++
			defer func() { s.layered-- }()
			return w.body(s)
		})
	}, func(e ended) bool {
		w.check(called == (ok && !full) && (called || e.thrown != nil), "Label: %v", e)
		return e.exited
	})
}
