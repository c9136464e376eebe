package stack

import (
	"fmt"
	"io"

	"github.com/upfront-mem/upfront/arena_c"
)

// Owned identifies a Go value that a scope owns. It is plain data of 16 bytes; zero identifies
// none.
type Owned struct {
	stack uint64 // the Stack's id in the registry; above bit 32 its number (made)
	place uint64 // index in the Stack's ownedTable, plus the serial number of its use
}

// owned is a Go value that lives until its scope closes. It is in a table of the Go heap, because
// the collector doesn't look into blocks.
type owned struct {
	fn     func()
	value  any
	held   Owned  // its place is 0 while this entry is free, or its value runs
	next   uint64 // in a free entry: 1 plus the index of the next free one
	closes bool
	site   arena_c.Site // where Own, Defer or Keep was called
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

// Returns a description of the value, for messages.
func (p *owned) what() string {
	if p.fn == nil && !p.closes {
		return fmt.Sprintf("a value of %T", p.value)
	}
	return p.name()
}

// guarded is run, but returns a panic as an error.
func (p *owned) guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s panicked: %v", p.name(), v)
		}
	}()
	return p.run()
}

// ownedTable has limits.owned entries (places). The place in an Owned is an index plus a serial
// number of its use. So a node of the chain or an Owned that outlived its value finds no value.
type ownedTable struct {
	places  []owned
	stack   uint64 // of each Owned
	used    uint64 // places that were ever taken
	free    uint64 // 1 plus the index of the next free place; 0: take place used
	serial  uint64
	live    int
	refused bool   // the last request was refused on purpose
	asked   uint64 // the scope's Asked before the last request
}

const ownedPlaces = 1 << 16 // more than limits.owned can be

func (t *ownedTable) at(place uint64) *owned {
	if i := place % ownedPlaces; i < uint64(len(t.places)) && t.places[i].held.place == place && place != 0 {
		return &t.places[i]
	}
	return nil
}

func (t *ownedTable) placeOf(place uint64) *owned { return &t.places[place%ownedPlaces] }

// take is at for a value that is about to be closed or run: from now on no Owned finds the value.
// release then frees the entry.
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
