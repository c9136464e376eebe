package model_test

import (
	"errors"
	"slices"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

// held is a Go value that a scope keeps.
type held struct {
	real scope.Owned
	id   int64 // of its finalizer; 0 without one
	of   *life
	node *node
	gone bool
}

// deferC has C add a finalizer that calls back. If it doesn't fit, it runs at once.
func (w *world) deferC(s *life) {
	fits := fit(s, 16, 8, true)
	if fits == perhaps {
		return
	}
	id := w.newFinalizer(s, nil)
	f := w.finalizers[id]
	if f.do == doFail {
		f.do = doPanic // a C finalizer returns no error
	}
	leaves := f.do == doPanic || f.do == doExit
	// AddressSanitizer doesn't allow a panic through C's frames.
	if fits == no || leaves && (arena_c.Asan || !w.wideAligns) {
		f.do = doNothing
	}
	w.say("%s: finalizer %d of C in %s", s.arena.name, id, s.name)
	header, generation := s.real.C()
	ran := s.arena.ran
	w.now = id
	code := clib.Defer(header, generation, id)
	w.now = 0
	switch {
	case !s.may():
		w.check(code == arena_c.Order && w.hasNot(id), "C in a scope that may not: %v", code)
		f.off = true
	case fits == no:
		w.check(code == arena_c.Full && w.has(id), "C in a scope that is full: %v", code)
		s.full, s.arena.ran = true, ran
	default:
		w.check(code == arena_c.OK && w.hasNot(id), "C in a scope that has room: %v", code)
		s.nodes = append(s.nodes, &node{ids: []int64{id}})
		w.did["C"]++
	}
}

// own adds a Go value to a scope. If it doesn't fit, it is closed at once, and the full unwinds.
func (w *world) own(s *life) {
	fits := fit(s, 8, 8, true)
	if fits == perhaps {
		return
	}
	id, kind := int64(0), w.random.IntN(3)
	if kind != 2 {
		id = w.newFinalizer(s, nil)
		if f := w.finalizers[id]; fits == no && f.do != doFail {
			f.do = doNothing // it runs here
		}
	}
	w.say("%s: owned value %d of kind %d in %s", s.arena.name, id, kind, s.name)
	h := held{id: id, of: s}
	give := func() {
		switch kind {
		case 0:
			h.real = s.real.Own(closer{id})
		case 1:
			h.real = s.real.Defer(func() {
				if err := current.finalize(id); err != nil {
					panic(err.Error())
				}
			})
		default:
			h.real = s.real.Keep(&h)
		}
	}
	then, ran := len(w.ran), s.arena.ran
	w.now = id
	v := w.recovered(give)
	w.now = 0
	if fits == no {
		err, _ := v.(error)
		w.check(errors.Is(err, scope.ErrFull) == s.may(), "an owned value that is refused: %v", v)
		w.check(id == 0 || w.has(id), "an owned value that is refused isn't ended")
		if !s.may() {
			s.arena.ran = ran
		}
		w.since(then)
		return
	} else if v != nil {
		w.fail("an owned value that fits: %v", v)
		return
	}
	h.node = &node{}
	if id != 0 {
		w.check(w.hasNot(id), "an owned value ends at once")
		h.node.ids = []int64{id}
	}
	s.nodes = append(s.nodes, h.node)
	w.held = append(w.held, &h)
}

// release cancels an owned value, or closes it now, once or twice.
func (w *world) release() {
	if len(w.held) == 0 {
		return
	}
	h := w.held[w.random.IntN(len(w.held))]
	gone := h.gone || !slices.Contains(h.of.nodes, h.node) || !h.of.open
	ran := len(w.ran)
	if w.chance(2) {
		w.say("%s: cancel owned value %d", h.of.arena.name, h.id)
		w.check(h.real.Cancel() == !gone, "Cancel of an owned value, gone: %v", gone)
	} else {
		w.say("%s: end owned value %d", h.of.arena.name, h.id)
		w.endOwned(h, gone)
		ran += len(h.node.ids)
	}
	if h.gone = true; !gone {
		w.check(len(w.ran) == ran, "an owned value that ends is finalized %d times too often", len(w.ran)-ran)
		for _, id := range h.node.ids {
			w.finalizers[id].off = w.hasNot(id)
		}
		h.node.ids = nil
	}
}

func (w *world) endOwned(h *held, gone bool) {
	f := w.finalizers[h.id]
	if !gone && f != nil {
		if f.do >= doPanic {
			f.do = doNothing // CloseNow would pass its panic on
		}
		w.now = h.id
	}
	defer func() { w.now = 0 }()
	if !gone && f != nil && f.do == doFail && h.real.Value() == nil { // a deferred function panics
		w.check(w.recovered(func() { _ = h.real.CloseNow() }) != nil, "CloseNow of a function that panics")
		f.said = true
		return
	}
	then := len(w.ran)
	err := h.real.CloseNow()
	var misuse *scope.Misuse
	w.check(errors.As(err, &misuse) == gone, "CloseNow, gone: %v: %v", gone, err)
	w.check((err != nil) == (gone || len(w.since(then).ids) > 0), "CloseNow: %v", err)
}
