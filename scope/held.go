package scope

import (
	"errors"
	"fmt"
	"io"

	"github.com/upfront-mem/upfront/arena_c"
)

// Held names what Own, Defer or Hold keeps. It is plain data of 16 bytes and may lie in a block: that is how an object in
// an arena has a Go value. It means nothing in another process, and nothing after its scope closed. The zero Held names
// nothing.
type Held struct {
	stack uint64 // its id in the registry, and above it its number
	place uint64 // in that stack's table
}

// Own closes c when s closes, in its place among the other finalizers. Its place is taken before anything else: when
// the scope is full, or the planned number of held values (limits.held) is reached, c is closed at once and the full
// unwinds, so c is never lost. Cost: 16 bytes of the arena and a place in the table of limits.held; no Go allocation.
func (s Scope) Own(c io.Closer) Held { return s.hold("Own", held{closer: c}) }

// Defer runs fn when s closes, in its place among the other finalizers. When there is no room for it, fn runs at once
// and the full unwinds. Cost: as Own.
func (s Scope) Defer(fn func()) Held { return s.hold("Defer", held{fn: fn}) }

// Hold keeps v from the collector until s closes, for what only C or a number in a block refers to. Held.Value gives it
// back. Cost: as Own; a v that is no pointer costs what Go takes to put it into an interface.
func (s Scope) Hold(v any) Held { return s.hold("Hold", held{value: v}) }

func (h Held) owner() *Stack { return stackBy(uint64(uint32(h.stack)), uint32(h.stack>>32)) }

// Cancel forgets what h names: it will not be closed or run. It is false when that was closed, run or cancelled before.
// The place in the table is free again at once, the 16 bytes of the arena when the scope closes.
func (h Held) Cancel() bool {
	st := h.owner()
	return st != nil && !st.held.release(h.place).empty()
}

// CloseNow closes or runs what h names now, instead of when its scope closes, and returns its error. What was closed,
// run or cancelled before is refused with an error; nothing runs twice.
func (h Held) CloseNow() error {
	st := h.owner()
	var it held
	if st != nil {
		it = st.held.release(h.place)
	}
	if it.empty() {
		return &Misuse{"CloseNow of what was closed, run or cancelled before", true}
	}
	st.finalizers += it.finalizers()
	return it.run()
}

// Value is what Hold or Own keeps, and nil when it is gone. A closer whose Close is at work is gone already.
func (h Held) Value() any {
	st := h.owner()
	if st == nil {
		return nil
	}
	it := st.held.at(h.place)
	if it == nil {
		return nil
	}
	if it.closer != nil {
		return it.closer
	}
	return it.value
}

func (s Scope) hold(what string, h held) Held {
	if h.empty() {
		panic(&Misuse{what + " of nil", false})
	}
	if !s.usable() {
		err := s.misuse(what + " in")
		panic(errors.Join(err, h.guarded()))
	}
	st := s.stack()
	var full *FullError
	before := s.slot.Refused
	if st.held.live == len(st.held.places) {
		full = st.tableFull("held", uint64(len(st.held.places)), st.scopeName(s.slot))
	} else if arena_c.Checked && arena_c.Refuse() {
		full = st.refuseTable("held", uint64(len(st.held.places)), st.scopeName(s.slot))
	} else if node := s.node(); node == nil {
		full = st.full(s.slot)
		s.slot.Refused = before // the panic tells it, with what c said; nobody needs to tell it again
	} else {
		place := st.held.keep(h)
		s.slot.Link(node, classHeld, place)
		return Held{uint64(st.number)<<32 | st.id, place}
	}
	st.finalizers += h.finalizers()
	full.Cause = h.guarded()
	panic(full)
}

// held is a Go value that lives until its scope closes. It can't lie in the block, where the collector wouldn't see it.
type held struct {
	site   arena_c.Site // where it was given
	closer io.Closer
	fn     func()
	value  any
	serial uint64 // of who keeps the place
	next   uint64 // in a free place: the next free one, plus 1
}

func (h held) empty() bool { return h.closer == nil && h.fn == nil && h.value == nil }

func (h held) finalizers() uint64 {
	if h.closer == nil && h.fn == nil {
		return 0
	}
	return 1
}

func (h held) name() string {
	if h.closer != nil {
		return fmt.Sprintf("Close of %T", h.closer)
	}
	return "a deferred function"
}

func (h held) run() error {
	if h.closer != nil {
		return h.closer.Close()
	}
	if h.fn != nil {
		h.fn()
	}
	return nil
}

// what says what is held, for messages.
func (h held) what() string {
	if h.closer == nil && h.fn == nil {
		return fmt.Sprintf("a value of %T", h.value)
	}
	return h.name()
}

// guarded is run that gives a panic as an error.
func (h held) guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %v", h.name(), v)
		}
	}()
	return h.run()
}

// heldTable has limits.held places. A word names a place and, above it, the serial of who took it, so that a node in the
// chain or a Held that outlived its value finds nothing.
type heldTable struct {
	places []held
	used   uint64 // places that were ever taken
	free   uint64 // place + 1 of the one to take next; 0: none was given back
	serial uint64
	live   int
}

// EachHeld calls fn with each Go value that is held: what it is, and where it was given.
func (st *Stack) EachHeld(fn func(what string, given *arena_c.Site)) {
	for i := range st.held.places[:st.held.used] {
		if h := &st.held.places[i]; !h.empty() {
			fn(h.what(), &h.site)
		}
	}
}

const heldPlaces = 1 << 16 // more than limits.held can be

// keep puts h into a free place. pre: there is one.
func (t *heldTable) keep(h held) (word uint64) {
	place := t.used
	if t.free != 0 {
		place = t.free - 1
		t.free = t.places[place].next
	} else {
		t.used++
	}
	t.serial++
	t.live++
	h.serial = t.serial
	t.places[place] = h
	t.places[place].site.Note()
	return t.serial*heldPlaces + place
}

// at is what the word names, or nil.
func (t *heldTable) at(word uint64) *held {
	place := word % heldPlaces
	if place >= uint64(len(t.places)) || t.places[place].serial != word/heldPlaces || word < heldPlaces {
		return nil
	}
	return &t.places[place]
}

// release takes out what the word names; it is empty when that is gone.
func (t *heldTable) release(word uint64) held {
	h := t.at(word)
	if h == nil {
		return held{}
	}
	it := *h
	*h = held{next: t.free}
	t.free = word%heldPlaces + 1
	t.live--
	return it
}
