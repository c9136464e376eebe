package stack

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

func makingOf(h *arena_c.Scopes, gen uint64) making {
	if m := Of(h).noteOf(h, h.Find(gen)).making; m.gen == gen {
		return m
	}
	return making{}
}

// Construction is a running constructor.
type Construction struct {
	Object unsafe.Pointer // that it makes

	st       *Stack
	h        *arena_c.Scopes
	gen      uint64
	class    uint64
	to       mark
	was      making
	done     bool
	returned bool // an error
}

// Construct begins a constructor of a zeroed object in a scope, with a node's word before the
// object if class isn't 0. The caller runs the constructor, calls Returned with its result, and
// defers a call of End. If the scope refuses, Construct panics.
func Construct(h *arena_c.Scopes, gen, size, align, class uint64) Construction {
	if h.Gen != gen {
		panic(MisuseOf(h, gen, "Make in"))
	}
	c := Construction{st: Of(h), h: h, gen: gen, class: class, to: markOf(h)}
	// at least 1, so that no older object ends where the object begins
	room := max(size, 1)
	if class != 0 {
		c.Object = h.Node(gen, room, max(align, arena_c.NodeSize)-1)
	} else {
		c.Object, _ = h.Bump(gen, room, align-1)
	}
	if c.Object == nil {
		panic(arena_c.Refusal{Arena: h, Gen: gen})
	}
	arena_c.Zero(c.Object, uintptr(size))
	c.was = makingOf(h, gen)
	n := c.st.noteOf(h, c.to.depth)
	n.making = making{gen, c.was.from, c.to.cursor}
	if c.was.from == 0 {
		n.making.from = c.to.cursor
	}
	c.st.inside++
	return c
}

// Returned takes the constructor's result, and returns it. Without an error the object joins the
// chain.
func (c *Construction) Returned(err error) error {
	if c.returned = err != nil; c.returned {
		return err
	}
	if c.h.Gen != c.gen {
		panic(MisuseOf(c.h, c.gen, "Make in"))
	}
	if c.class != 0 {
		c.h.Link(c.Object, c.class)
	}
	c.done = true
	return nil
}

// End ends the constructor. If it failed, End frees all that it made, and returns err joined with
// the finalizers' errors.
func (c *Construction) End(err error) error {
	st, h := c.st, c.h
	st.inside--
	if h.Find(c.gen) != c.to.depth {
		return err // the constructor closed the scope: there is nothing left to undo
	}
	n := st.noteOf(h, c.to.depth)
	n.making = c.was
	if c.done {
		return err
	}
	parts := st.undo(h, c.to)
	if c.returned {
		err = joined(err, parts)
		st.TellWarning()
	} else if parts != nil { // the constructor panicked: Close returns the errors
		n.unreported = joined(n.unreported, parts)
		h.Odd |= oddNoted
	}
	return err
}

// MayGrow panics if the allocation at an offset is older than the scope's running constructor. If
// the constructor fails, the new bytes are freed, and the older object would still use them.
func MayGrow(h *arena_c.Scopes, gen, at uint64, what string) {
	if start := makingOf(h, gen).start; start != 0 && h.Start <= at && at <= start {
		panic(Misusef("%s that is older: the new bytes are freed if the constructor fails; make it, or a Clone of it, "+
			"inside the constructor", what))
	}
}
