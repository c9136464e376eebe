package stack

import (
	"errors"
	"io"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Own passes c to a scope, which closes c in order with its finalizers. If the scope or the table
// of owned values refuses, Own closes c and panics. Defer does so with a function, which the scope
// calls, and Keep with a value, which stays reachable.
func Own(h *arena_c.Scopes, gen uint64, c io.Closer) Owned {
	if c == nil {
		panic(Misusef("Own of nil"))
	}
	if p := own(h, gen); p != nil {
		p.value, p.closes = c, true
		return p.held
	}
	panic(notOwned(h, gen, "Own", owned{value: c, closes: true}))
}

// Defer passes fn to a scope: see Own.
func Defer(h *arena_c.Scopes, gen uint64, fn func()) Owned {
	if fn == nil {
		panic(Misusef("Defer of nil"))
	}
	if p := own(h, gen); p != nil {
		p.fn = fn
		return p.held
	}
	panic(notOwned(h, gen, "Defer", owned{fn: fn}))
}

// Keep passes v to a scope: see Own.
func Keep(h *arena_c.Scopes, gen uint64, v any) Owned {
	if v == nil {
		panic(Misusef("Keep of nil"))
	}
	if p := own(h, gen); p != nil {
		p.value, p.closes = v, false
		return p.held
	}
	panic(notOwned(h, gen, "Keep", owned{value: v}))
}

// own takes an entry of the table for a Go value, links a node with the entry's number, and returns
// the entry. It returns nil if the scope or the table refuses.
func own(h *arena_c.Scopes, gen uint64) *owned {
	st := Of(h)
	if st == nil {
		return nil
	}
	t := &st.owned
	place := t.free - 1
	if t.free == 0 {
		place = t.used
	}
	if place >= uint64(len(t.places)) || arena_c.Checked && h.Gen == gen && st.refusesPlace() {
		return nil
	}
	asked := h.Asked
	word := (*uint64)(h.Node(gen, 8, 7))
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
	NoteMade(h)
	return p
}

func (st *Stack) refusesPlace() bool {
	st.owned.refused = arena_c.Refuse()
	return st.owned.refused
}

// notOwned closes or runs the value, so that it isn't lost, and returns the reason of own's
// refusal.
func notOwned(h *arena_c.Scopes, gen uint64, what string, it owned) error {
	if h.Gen != gen {
		h.Misused = 0 // this panic reports it
		return errors.Join(MisuseOf(h, gen, what+" in"), it.guarded())
	}
	st := Of(h)
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

func (o Owned) find() (*Stack, *owned) {
	st := stackAt(uint64(uint32(o.stack)))
	if st == nil || uint64(uint32(st.made)) != o.stack>>32 {
		return nil, nil
	}
	return st, st.owned.at(o.place)
}

// Cancel makes the scope forget the value, and reports whether the scope still owned it.
func (o Owned) Cancel() bool {
	st, p := o.find()
	if p == nil {
		return false
	}
	st.owned.take(o.place)
	st.owned.release(p)
	return true
}

// CloseNow closes or runs the value before its scope closes. It returns a [Misuse] if the scope
// doesn't own the value.
func (o Owned) CloseNow() error {
	st, p := o.find()
	if p == nil {
		return &Misuse{"CloseNow of a value that was closed, run or cancelled before", true}
	}
	st.owned.take(o.place)
	st.finalizers += p.finalizers()
	defer st.owned.release(p) // also when it panics
	return p.run()
}

// Value returns the value that was passed to Keep or Own, or nil if the scope has released it.
func (o Owned) Value() any {
	if _, p := o.find(); p != nil {
		return p.value
	}
	return nil
}

// OwnedAt describes an owned value; it returns "" if the value was closed, run or cancelled.
func (st *Stack) OwnedAt(place uint64) string {
	if p := st.owned.at(place); p != nil {
		return p.what()
	}
	return ""
}

// OwnedLives reports whether the scope still owns a value.
func (st *Stack) OwnedLives(place uint64) bool { return st.owned.at(place) != nil }

// EachOwned calls fn with a description of each owned Go value, and the place that registered it.
func (st *Stack) EachOwned(fn func(what string, given *arena_c.Site)) {
	for i := range st.owned.places[:st.owned.used] {
		if p := &st.owned.places[i]; p.held.place != 0 {
			fn(p.what(), &p.site)
		}
	}
}
