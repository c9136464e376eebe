package scope

import (
	"fmt"
	"io"

	"github.com/upfront-mem/upfront/arena_c"
)

// Owned names what Own, Defer or Keep keeps. It is plain data of 16 bytes and may lie in a block: that is how an object in
// an arena has a Go value. It means nothing in another process, and nothing after its scope closed. The zero Owned names
// nothing.
type Owned struct {
	stack uint64 // its id in the registry, and above it its number
	place uint64 // in that stack's table
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
