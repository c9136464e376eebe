package scope

import (
	"errors"
	"io"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Own passes c to s: when s closes, s closes c, in order with the finalizers. Own returns the Owned
// that identifies c. If s refuses, or the table of limits.owned values is full, Own closes c at
// once and unwinds, so c never stays open. Cost: 16 bytes of the arena and an entry of the table;
// no Go allocation.
func (s Scope) Own(c io.Closer) Owned {
	if c == nil {
		panic(bug("Own of nil"))
	}
	if p := s.own(); p != nil {
		p.value, p.closes = c, true
		return p.held
	}
	panic(s.notOwned("Own", owned{value: c, closes: true}))
}

// Defer passes fn to s: when s closes, s runs fn, in order with the finalizers. Defer returns the
// Owned that identifies fn. If s refuses, or the table of limits.owned values is full, Defer runs
// fn at once and unwinds. Cost: as [Scope.Own], and Go's allocation of fn if fn captures variables.
func (s Scope) Defer(fn func()) Owned {
	if fn == nil {
		panic(bug("Defer of nil"))
	}
	if p := s.own(); p != nil {
		p.fn = fn
		return p.held
	}
	panic(s.notOwned("Defer", owned{fn: fn}))
}

// Keep keeps v reachable until s closes or [Owned.Cancel], so that the garbage collector doesn't
// free it. It is for a Go value to which only C refers, or only a number in an arena. [Owned.Value]
// of the result returns v. Keep unwinds where [Scope.Own] does, and costs as much. If v isn't a
// pointer, Go's conversion to an interface is added.
func (s Scope) Keep(v any) Owned {
	if v == nil {
		panic(bug("Keep of nil"))
	}
	if p := s.own(); p != nil {
		p.value, p.closes = v, false
		return p.held
	}
	panic(s.notOwned("Keep", owned{value: v}))
}

// own takes an entry of the table for a Go value, links a node with the entry's number, and returns
// the entry. It returns nil if s or the table refuses.
func (s Scope) own() *owned {
	h, st := s.its(), stackOf(s.h)
	if st == nil {
		return nil
	}
	t := &st.owned
	place := t.free - 1
	if t.free == 0 {
		place = t.used
	}
	if place >= uint64(len(t.places)) || arena_c.Checked && s.open() && st.refusesPlace() {
		return nil
	}
	asked := h.Asked
	word := (*uint64)(h.Node(s.gen, 8, 7))
	if word == nil {
		t.asked = asked
		return nil
	}
	p := &t.places[place]
	if t.free != 0 {
		t.free = p.next
	} else {
		t.used++
	}
	t.live++
	t.serial += ownedPlaces
	place += t.serial
	p.held = Owned{t.stack, place}
	p.site.Note()
	*word = place
	h.Link(unsafe.Pointer(word), classOwned)
	recordMade(s)
	return p
}

func (st *Stack) refusesPlace() bool {
	st.owned.refused = arena_c.Refuse()
	return st.owned.refused
}

// notOwned closes or runs the value, so that it isn't lost, and returns the reason of own's
// refusal.
func (s Scope) notOwned(what string, it owned) error {
	if !s.open() {
		s.h.Misused = 0 // this panic reports it
		return errors.Join(s.misuse(what+" in"), it.guarded())
	}
	h, st := s.h, stackOf(s.h)
	var full *FullError
	switch places := uint64(len(st.owned.places)); {
	case st.owned.refused:
		st.owned.refused = false
		full = st.tableFull("owned", places, st.nameOf(h, h.Depth)).onPurpose()
	case st.owned.live == len(st.owned.places): // no entry was free
		full = st.tableFull("owned", places, st.nameOf(h, h.Depth))
	default:
		full = st.full(h, h.Asked)
		// this panic reports the full error, with the value's error as its Cause
		h.Asked = st.owned.asked
	}
	st.finalizers += it.finalizers()
	full.Cause = it.guarded()
	return full
}

func (h Owned) find() (*Stack, *owned) {
	st := stackAt(uint64(uint32(h.stack)))
	if st == nil || uint64(uint32(st.made)) != h.stack>>32 {
		return nil, nil
	}
	return st, st.owned.at(h.place)
}

// Cancel makes the scope forget the value that h identifies, so that the value isn't closed or run.
// Cancel reports whether the scope still owned the value. The value's entry in the table is free at
// once. The value's 16 bytes of the arena are free when the scope closes.
func (h Owned) Cancel() bool {
	st, p := h.find()
	if p == nil {
		return false
	}
	st.owned.take(h.place)
	st.owned.release(p)
	return true
}

// CloseNow closes or runs the value that h identifies, before its scope closes, and returns the
// error. A value of Keep is only released to the garbage collector. If the value was closed, run or
// cancelled before, or h is zero, CloseNow does nothing and returns a [Misuse].
func (h Owned) CloseNow() error {
	st, p := h.find()
	if p == nil {
		return &Misuse{"CloseNow of a value that was closed, run or cancelled before", true}
	}
	st.owned.take(h.place)
	st.finalizers += p.finalizers()
	defer st.owned.release(p) // also when it panics
	return p.run()
}

// Value returns the value that was passed to Keep or Own. It returns nil once the scope has
// released the value. The scope releases a closer when the closer's Close begins.
func (h Owned) Value() any {
	if _, p := h.find(); p != nil {
		return p.value
	}
	return nil
}
