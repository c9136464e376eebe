package scope

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

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
func (s Scope) Own(c io.Closer) Held { return s.hold("Own", owned{closer: c}) }

// Defer runs fn when s closes, in its place among the other finalizers. When there is no room for it, fn runs at once
// and the full unwinds. Cost: as Own.
func (s Scope) Defer(fn func()) Held { return s.hold("Defer", owned{fn: fn}) }

// Hold keeps v from the collector until s closes, for what only C or a number in a block refers to. Held.Value gives it
// back. Cost: as Own; a v that is no pointer costs what Go takes to put it into an interface.
func (s Scope) Hold(v any) Held { return s.hold("Hold", owned{value: v}) }

func (h Held) owner() *Stack {
	if st := stackAt(uint64(uint32(h.stack))); st != nil && uint64(uint32(st.made)) == h.stack>>32 {
		return st
	}
	return nil
}

// Cancel forgets what h names: it will not be closed or run. It is false when that was closed, run or cancelled before.
// The place in the table is free again at once, the 16 bytes of the arena when the scope closes.
func (h Held) Cancel() bool {
	st := h.owner()
	return st != nil && !st.owned.release(h.place).empty()
}

// CloseNow closes or runs what h names now, instead of when its scope closes, and returns its error. What was closed,
// run or cancelled before is refused with an error; nothing runs twice.
func (h Held) CloseNow() error {
	st := h.owner()
	var it owned
	if st != nil {
		it = st.owned.release(h.place)
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
	it := st.owned.at(h.place)
	if it == nil {
		return nil
	}
	if it.closer != nil {
		return it.closer
	}
	return it.value
}

func (s Scope) hold(what string, it owned) Held {
	if it.empty() {
		panic(&Misuse{what + " of nil", false})
	}
	h := s.h
	if !s.open() {
		panic(errors.Join(s.misuse(what+" in"), it.guarded()))
	}
	st := stackOf(h)
	var full *FullError
	before := h.Asked
	if places := uint64(len(st.owned.places)); st.owned.live == len(st.owned.places) {
		full = st.tableFull("held", places, st.nameOf(h, h.Depth))
	} else if arena_c.Checked && arena_c.Refuse() {
		full = st.refuseTable("held", places, st.nameOf(h, h.Depth))
	} else if word := (*uint64)(h.Node(s.gen(), 8, 7)); word == nil {
		full = st.full(h, h.Asked)
		h.Asked = before // the panic tells it, with what c said; nobody needs to tell it again
	} else {
		*word = st.owned.keep(it)
		h.Link(unsafe.Pointer(word), classOwned)
		return Held{st.made<<32 | st.id, *word}
	}
	st.finalizers += it.finalizers()
	full.Cause = it.guarded()
	panic(full)
}

// owned is a Go value that lives until its scope closes. It can't lie in the block, where the collector wouldn't see it.
type owned struct {
	site   arena_c.Site // where it was given
	closer io.Closer
	fn     func()
	value  any
	serial uint64 // of who keeps the place
	next   uint64 // in a free place: the next free one, plus 1
}

func (h owned) empty() bool { return h.closer == nil && h.fn == nil && h.value == nil }

func (h owned) finalizers() uint64 {
	if h.closer == nil && h.fn == nil {
		return 0
	}
	return 1
}

func (h owned) name() string {
	if h.closer != nil {
		return fmt.Sprintf("Close of %T", h.closer)
	}
	return "a deferred function"
}

func (h owned) run() error {
	if h.closer != nil {
		return h.closer.Close()
	}
	if h.fn != nil {
		h.fn()
	}
	return nil
}

// what says what is held, for messages.
func (h owned) what() string {
	if h.closer == nil && h.fn == nil {
		return fmt.Sprintf("a value of %T", h.value)
	}
	return h.name()
}

// guarded is run that gives a panic as an error.
func (h owned) guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %v", h.name(), v)
		}
	}()
	return h.run()
}

// ownedTable has limits.held places. A word names a place and, above it, the serial of who took it, so that a node in the
// chain or a Held that outlived its value finds nothing.
type ownedTable struct {
	places []owned
	used   uint64 // places that were ever taken
	free   uint64 // place + 1 of the one to take next; 0: none was given back
	serial uint64
	live   int
}

// EachHeld calls fn with each Go value that is held: what it is, and where it was given.
func (st *Stack) EachHeld(fn func(what string, given *arena_c.Site)) {
	for i := range st.owned.places[:st.owned.used] {
		if h := &st.owned.places[i]; !h.empty() {
			fn(h.what(), &h.site)
		}
	}
}

const ownedPlaces = 1 << 16 // more than limits.held can be

// keep puts h into a free place. pre: there is one.
func (t *ownedTable) keep(h owned) (word uint64) {
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
	return t.serial*ownedPlaces + place
}

// at is what the word names, or nil.
func (t *ownedTable) at(word uint64) *owned {
	place := word % ownedPlaces
	if place >= uint64(len(t.places)) || t.places[place].serial != word/ownedPlaces || word < ownedPlaces {
		return nil
	}
	return &t.places[place]
}

// release takes out what the word names; it is empty when that is gone.
func (t *ownedTable) release(word uint64) owned {
	h := t.at(word)
	if h == nil {
		return owned{}
	}
	it := *h
	*h = owned{next: t.free}
	t.free = word%ownedPlaces + 1
	t.live--
	return it
}
