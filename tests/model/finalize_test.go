package model_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/upfront-mem/upfront/scope"
)

// The actions of a finalizer besides noting that it ran.
const (
	doNothing = iota
	doFail
	doPanic
	doExit
	doAllocate // in its own scope, which closes: refused
	doGet      // from its own pool, which closes: refused
	doMisuse   // closes a scope that isn't its own, and opens one where it may not
	doScratch  // opens and closes a scope on another arena
	doCount
)

// finalizer is a finalizer of the model.
type finalizer struct {
	do    int
	of    *life
	pool  *pool
	times int
	off   bool // it was released, and must not run
	said  bool // its failure was reported
}

func (f *finalizer) fails() bool { return f.do == doFail || f.do == doPanic }

// marked is an object with a finalizer, closer a Go value with one.
type marked struct{ ID int64 }

// wide has another alignment in its slices: its size is no multiple of 16.
type wide struct {
	ID   int64
	Rest [5]uint32
}

type closer struct{ id int64 }

func (c closer) Close() error { return current.finalize(c.id) }

var _ io.Closer = closer{}

var (
	current *world
	marks   = scope.Object[marked](func(m *marked) error { return current.finalize(m.ID) })
	wides   = scope.Object[wide](func(m *wide) error { return current.finalize(m.ID) })

	errLoader = errors.New("the loader failed")
)

// finalize is the body of the real finalizers.
func (w *world) finalize(id int64) error {
	w.ran = append(w.ran, id)
	f := w.finalizers[id]
	if f == nil {
		w.fail("a finalizer of nothing that was made: %d", id)
		return nil
	}
	w.check(f.times == 0 && !f.off, "finalizer %d ran %d times before, off: %v", id, f.times, f.off)
	w.check(w.now == id || f.times > 0 || w.due(id), "finalizer %d of %s runs, and others were to run before",
		id, f.of.name)
	f.times++
	f.of.arena.ran++
	w.did[fmt.Sprintf("finalizer %d", f.do)]++
	switch f.do {
	case doFail:
		return fmt.Errorf("object#%d failed", id)
	case doPanic:
		panic(fmt.Sprintf("object#%d panics", id))
	case doExit:
		runtime.Goexit()
	case doAllocate:
		w.check(longs.TryNew(f.of.real) == nil, "finalizer %d allocated in its scope", id)
		f.of.wrong = true
	case doGet:
		if f.pool != nil {
			w.check(f.pool.objects.Get() == nil, "finalizer %d got from its pool", id)
		}
	case doMisuse:
		w.check(f.of.real.Close() != nil, "finalizer %d closed its own scope", id)
		w.check(w.recovered(func() { f.of.real.Open("in a finalizer") }) != nil, "finalizer %d opened in its scope", id)
		if n := len(w.stale); n > 0 {
			w.check(w.stale[n-1].Close() != nil, "finalizer %d closed a stale scope", id)
		}
	case doScratch:
		scratch := w.b.Scratch(helper, 0)
		s := scratch.Open("finalizer")
		longs.New(s)
		w.check(s.Close() == nil, "scratch of finalizer %d", id)
	}
	return nil
}

// since returns the errors of the finalizers that ran since then, without those that were reported.
func (w *world) since(then int) (t reported) {
	for _, id := range w.ran[then:] {
		f := w.finalizers[id]
		if f.fails() && !f.said {
			f.said = true
			t.ids = append(t.ids, id)
		}
		t.exits = t.exits || f.do == doExit
	}
	return t
}

// newFinalizer returns the number of a new finalizer of a scope.
func (w *world) newFinalizer(s *life, p *pool) int64 {
	w.id++
	f := &finalizer{of: s, pool: p}
	if w.chance(3) {
		f.do = w.random.IntN(doCount)
		if f.do == doExit && !w.exits {
			f.do = doFail
		}
	}
	if s.far && w.exits && w.chance(4) {
		f.do = doExit // it may end the goroutine of a load that has succeeded
	}
	w.finalizers[w.id] = f
	return w.id
}
