package scope

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Owned names what Own, Defer or Keep keeps. It is plain data of 16 bytes and may lie in a block: that is how an object in
// an arena has a Go value. It means nothing in another process, and nothing after its scope closed. The zero Owned names
// nothing.
type Owned struct {
	stack uint64 // its id in the registry, and above it its number
	place uint64 // in that stack's table
}

// Own closes c when s closes, in its place among the other finalizers. Its place is taken before
// anything else: when the scope is full, or the planned number of owned values (limits.owned) is
// reached, c is closed at once and the full unwinds, so c is never lost. Cost: 16 bytes of the arena
// and a place in the table of limits.owned; no Go allocation.
func (s Scope) Own(c io.Closer) Owned {
	if c == nil {
		panic(&Misuse{"Own of nil", false})
	}
	if p := s.own(); p != nil {
		p.value, p.closes = c, true
		return p.held
	}
	panic(s.notOwned("Own", owned{value: c, closes: true}))
}

// Defer runs fn when s closes, in its place among the other finalizers. When there is no room for it,
// fn runs at once and the full unwinds. Cost: as Own.
func (s Scope) Defer(fn func()) Owned {
	if fn == nil {
		panic(&Misuse{"Defer of nil", false})
	}
	if p := s.own(); p != nil {
		p.fn = fn
		return p.held
	}
	panic(s.notOwned("Defer", owned{fn: fn}))
}

// Keep keeps v from the collector until s closes, for what only C or a number in a block refers to.
// Owned.Value gives it back. Cost: as Own; a v that is no pointer costs what Go takes to put it into an
// interface.
func (s Scope) Keep(v any) Owned {
	if v == nil {
		panic(&Misuse{"Keep of nil", false})
	}
	if p := s.own(); p != nil {
		p.value, p.closes = v, false
		return p.held
	}
	panic(s.notOwned("Keep", owned{value: v}))
}

// own takes a place for a Go value, and links a node that names it; nil when s refuses.
func (s Scope) own() *owned {
	h, st := s.h, stackOf(s.h)
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
	return p
}

func (st *Stack) refusesPlace() bool {
	st.owned.refused = arena_c.Refuse()
	return st.owned.refused
}

// notOwned is why own refused. What it was for ends now, but nothing is lost.
func (s Scope) notOwned(what string, it owned) error {
	if !s.open() {
		s.h.Misused = 0 // this panic tells it
		return errors.Join(s.misuse(what+" in"), it.guarded())
	}
	h, st := s.h, stackOf(s.h)
	var full *FullError
	switch places := uint64(len(st.owned.places)); {
	case st.owned.refused:
		st.owned.refused = false
		full = st.refuseTable("owned", places, st.nameOf(h, h.Depth))
	case st.owned.live == len(st.owned.places): // no place was free
		full = st.tableFull("owned", places, st.nameOf(h, h.Depth))
	default:
		full = st.full(h, h.Asked)
		h.Asked = st.owned.asked // this panic tells it, with what c said; nobody needs to tell it again
	}
	st.finalizers += it.finalizers()
	full.Cause = it.guarded()
	return full
}

func (h Owned) owner() *Stack {
	if st := stackAt(uint64(uint32(h.stack))); st != nil && uint64(uint32(st.made)) == h.stack>>32 {
		return st
	}
	return nil
}

// Cancel forgets what h names: it will not be closed or run. It is false when that was closed, run or
// cancelled before. The place in the table is free again at once, the 16 bytes of the arena when the
// scope closes.
func (h Owned) Cancel() bool {
	st := h.owner()
	if st == nil {
		return false
	}
	p := st.owned.take(h.place)
	if p == nil {
		return false
	}
	st.owned.release(p)
	return true
}

// CloseNow closes or runs what h names now, instead of when its scope closes, and returns its error.
// What was closed, run or cancelled before is refused with an error; nothing runs twice.
func (h Owned) CloseNow() error {
	st := h.owner()
	var p *owned
	if st != nil {
		p = st.owned.take(h.place)
	}
	if p == nil {
		return &Misuse{"CloseNow of what was closed, run or cancelled before", true}
	}
	st.finalizers += p.finalizers()
	defer st.owned.release(p) // also when it panics
	return p.run()
}

// Value is what Keep or Own keeps, and nil when it is gone. A closer whose Close is at work is gone
// already.
func (h Owned) Value() any {
	if st := h.owner(); st != nil {
		if p := st.owned.at(h.place); p != nil {
			return p.value
		}
	}
	return nil
}

// owned is a Go value that lives until its scope closes. It can't lie in the block, where the collector
// wouldn't see it.
type owned struct {
	fn     func()
	value  any
	held   Owned  // what names it; place 0: the place is free, or what is in it runs
	next   uint64 // in a free place: the next free one, plus 1
	closes bool
	site   arena_c.Site // where it was given
}

func (p *owned) finalizers() uint64 {
	if p.fn == nil && !p.closes {
		return 0
	}
	return 1
}

func (p *owned) name() string {
	if p.fn == nil {
		return fmt.Sprintf("Close of %T", p.value)
	}
	return "a deferred function"
}

func (p *owned) run() error {
	if p.fn != nil {
		p.fn()
	} else if p.closes {
		return p.value.(io.Closer).Close()
	}
	return nil
}

// runOwned ends the Go value that the newest node is about, if it is there still. One that fails, or doesn't come
// back, keeps its place until it is told: release.
func (st *Stack) runOwned(h *arena_c.Scopes, word unsafe.Pointer) error {
	h.Unlink()
	p := st.owned.take(*(*uint64)(word))
	if p == nil {
		return nil
	}
	if p.fn != nil { // what run and release do, without calls
		st.finalizers++
		p.fn()
		p.fn = nil
		p.next, st.owned.free = st.owned.free, p.next
		st.owned.live--
		return nil
	}
	st.finalizers += p.finalizers()
	if err := p.run(); err != nil {
		return err
	}
	st.owned.release(p)
	return nil
}

// what says what is held, for messages.
func (p *owned) what() string {
	if p.fn == nil && !p.closes {
		return fmt.Sprintf("a value of %T", p.value)
	}
	return p.name()
}

// guarded is run that gives a panic as an error.
func (p *owned) guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %v", p.name(), v)
		}
	}()
	return p.run()
}

// ownedTable has limits.owned places. The place of an Owned is one of them and, above it, the serial of who
// took it, so that a node in the chain or an Owned that outlived its value finds nothing.
type ownedTable struct {
	places  []owned
	stack   uint64 // of each Owned
	used    uint64 // places that were ever taken
	free    uint64 // place + 1 of the one to take next; 0: none was given back
	serial  uint64
	live    int
	refused bool   // the last one was refused on purpose
	asked   uint64 // what the scope had been refused before the last one
}

// EachOwned calls fn with each Go value that is held: what it is, and where it was given.
func (st *Stack) EachOwned(fn func(what string, given *arena_c.Site)) {
	for i := range st.owned.places[:st.owned.used] {
		if p := &st.owned.places[i]; p.held.place != 0 {
			fn(p.what(), &p.site)
		}
	}
}

const ownedPlaces = 1 << 16 // more than limits.owned can be

// at is what the place of an Owned names, or nil.
func (t *ownedTable) at(place uint64) *owned {
	if i := place % ownedPlaces; i < uint64(len(t.places)) && t.places[i].held.place == place && place != 0 {
		return &t.places[i]
	}
	return nil
}

// placeOf is the place itself.
func (t *ownedTable) placeOf(place uint64) *owned { return &t.places[place%ownedPlaces] }

// take is at for who ends it: nothing names it from now on. release gives the place back then.
func (t *ownedTable) take(place uint64) *owned {
	p := t.at(place)
	if p != nil {
		p.next = place%ownedPlaces + 1
		p.held.place = 0
	}
	return p
}

func (t *ownedTable) release(p *owned) {
	if p.fn != nil {
		p.fn = nil
	} else {
		p.value = nil
	}
	p.next, t.free = t.free, p.next
	t.live--
}
