package model_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/upfront-mem/upfront/scope"
)

// What a finalizer does beside telling that it ran.
const (
	doNothing = iota
	doFail
	doPanic
	doExit
	doAllocate // in its own scope, which closes: refused
	doGet      // from the pool that it lies in, which closes: refused
	doMisuse   // closes what isn't its own to close, and opens where it may not
	doScratch  // opens and closes a scope elsewhere
	doCount
)

// finalizer is what there is to know of one.
type finalizer struct {
	do    int
	of    *life
	pool  *pool
	times int
}

// mark is an object with a finalizer, closer and deferred are Go values with one.
type marked struct{ ID int64 }

// wide is one with another alignment in its slices: its size is no multiple of 16.
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

// finalize is what the real finalizers do.
func (w *world) finalize(id int64) error {
	w.ran = append(w.ran, id)
	f := w.finalizers[id]
	if f == nil {
		w.fail("a finalizer of nothing that was made: %d", id)
		return nil
	}
	f.times++
	w.check(f.times == 1, "finalizer %d ran %d times", id, f.times)
	switch f.do {
	case doFail:
		return fmt.Errorf("object#%d failed", id)
	case doPanic:
		panic(fmt.Sprintf("object#%d panics", id))
	case doExit:
		runtime.Goexit()
	case doAllocate:
		w.check(longs.TryNew(f.of.real) == nil, "finalizer %d allocated in its scope", id)
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

// finalized is what the model says of it.
func (w *world) finalized(s *life, id int64) (t told) {
	w.want = append(w.want, id)
	s.arena.ran++
	f := w.finalizers[id]
	w.did[fmt.Sprintf("finalizer %d", f.do)]++
	switch f.do {
	case doFail, doPanic:
		t.ids = []int64{id}
	case doExit:
		t.exits = true
	case doAllocate:
		f.of.wrong = true
	case doScratch:
		w.scratches[2*helper].peak = 8
	}
	return t
}

// newFinalizer gives the number of one that a scope is to have.
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
