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
	id   int64 // of its finalizer; 0: it has none
	of   *life
	node *node
	gone bool
}

// deferC has C add a finalizer, which calls back. What doesn't fit runs at once.
func (w *world) deferC(s *life) {
	at, ok := s.nodePlace(16, 8)
	id := w.newFinalizer(s, nil)
	f := w.finalizers[id]
	if f.do == doFail {
		f.do = doPanic // it has no error to give
	}
	leaves := f.do == doPanic || f.do == doExit
	if !ok || leaves && (arena_c.Asan || !w.wideAligns) { // AddressSanitizer doesn't bear that C's frames are left
		f.do = doNothing
	}
	w.say("%s: finalizer %d of C in %s", s.arena.name, id, s.name)
	header, generation := s.real.C()
	code := clib.Defer(header, generation, id)
	switch {
	case !s.may():
		w.check(code == arena_c.Order, "C in a scope that may not: %v", code)
	case !ok:
		w.check(code == arena_c.Full, "C in a scope that is full: %v", code)
		w.want = append(w.want, id)
		s.full = true
	default:
		w.check(code == arena_c.OK, "C in a scope that has room: %v", code)
		s.moveTo(at + 16)
		s.nodes = append(s.nodes, &node{ids: []int64{id}})
		w.did["C"]++
	}
}

// own gives a scope a Go value: what doesn't fit is ended at once, and the full unwinds.
func (w *world) own(s *life) {
	at, ok := s.nodePlace(8, 8)
	id, kind := int64(0), w.random.IntN(3)
	if kind != 2 {
		id = w.newFinalizer(s, nil)
		if f := w.finalizers[id]; !(ok && s.may()) && f.do != doFail {
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
	if v := w.recovered(give); !ok || !s.may() {
		err, _ := v.(error)
		w.check(errors.Is(err, scope.ErrFull) == s.may(), "an owned value that is refused: %v", v)
		if id != 0 {
			w.want = append(w.want, id)
			if s.may() {
				s.arena.ran++
			}
		}
		return
	} else if v != nil {
		w.fail("an owned value that fits: %v", v)
		return
	}
	s.moveTo(at + 8)
	h.node = &node{}
	if id != 0 {
		h.node.ids = []int64{id}
	}
	s.nodes = append(s.nodes, h.node)
	w.held = append(w.held, &h)
}

// release cancels what is held, or ends it now, once or twice.
func (w *world) release() {
	if len(w.held) == 0 {
		return
	}
	h := w.held[w.random.IntN(len(w.held))]
	gone := h.gone || !slices.Contains(h.of.nodes, h.node) || !h.of.open
	if w.chance(2) {
		w.say("%s: cancel owned value %d", h.of.arena.name, h.id)
		w.check(h.real.Cancel() == !gone, "Cancel of an owned value, gone: %v", gone)
	} else {
		w.say("%s: end owned value %d", h.of.arena.name, h.id)
		w.endOwned(h, gone)
	}
	h.gone, h.node.ids = true, nil
}

func (w *world) endOwned(h *held, gone bool) {
	var t told
	if f := w.finalizers[h.id]; !gone && f != nil {
		if f.do >= doPanic {
			f.do = doNothing // its panic would be the caller's
		}
		t = w.finalized(h.of, h.id)
		if f.do == doFail && h.real.Value() == nil { // a deferred function panics
			v := w.recovered(func() { _ = h.real.CloseNow() })
			w.check(v != nil, "CloseNow of what panics")
			return
		}
	}
	err := h.real.CloseNow()
	var misuse *scope.Misuse
	w.check(errors.As(err, &misuse) == gone, "CloseNow, gone: %v: %v", gone, err)
	w.check((err != nil) == (gone || len(t.ids) > 0), "CloseNow: %v", err)
}
