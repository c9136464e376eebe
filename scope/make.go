package scope

import (
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// making is the constructors (Make) that are at work in a scope.
type making struct {
	gen   uint64 // of the scope
	from  uint64 // cursor when the outermost began, 0: there is none
	start uint64 // and when the innermost did
}

// making is what is at work in s.
func (s Scope) making() making {
	if m := stackOf(s.h).noteOf(s.h, s.h.Find(s.gen)).making; m.gen == s.gen {
		return m
	}
	return making{}
}

// construct takes bytes for a T, with a node's word before it if it has a class, and has fn make the T
// ready. When fn doesn't, s is unwound to where it was.
func construct[T any](s Scope, class uint64, fn func(*T) error) (made *T, err error) {
	if !s.open() {
		panic(s.misuse("Make in"))
	}
	h, st := s.h, stackOf(s.h)
	to := markOf(h)
	size, p := max(uint64(unsafe.Sizeof(*made)), 1), unsafe.Pointer(nil) // 1: so that nothing older ends where it begins
	if class != 0 {
		p = h.Node(s.gen, size, nodeMask[T]())
	} else {
		p, _ = h.Bump(s.gen, size, arena_c.AlignOf[T]()-1)
	}
	if p == nil {
		panic(refusal(s))
	}
	arena_c.Zero(p, unsafe.Sizeof(*made))
	n := st.noteOf(h, to.depth)
	was := s.making()
	n.making = making{s.gen, was.from, to.cursor}
	if was.from == 0 {
		n.making.from = to.cursor
	}
	st.inside++
	done, returned := false, false
	defer func() {
		st.inside--
		if h.Find(s.gen) != to.depth {
			return // fn closed it: nothing is left to go back
		}
		n.making = was
		if done {
			return
		}
		parts := st.undo(h, to)
		if returned {
			err = joined(err, parts)
		} else if parts != nil { // nobody gets it: Close tells it
			n.lost = joined(n.lost, parts)
			h.Odd |= oddNoted
		}
	}()
	if err := fn((*T)(p)); err != nil {
		returned = true
		return nil, err
	}
	if !s.open() {
		panic(s.misuse("Make in"))
	}
	if class != 0 {
		h.Link(p, class)
	}
	done = true
	return (*T)(p), nil
}

// undo takes an end of the arena back to a mark of the scope that is topmost then.
func (st *Stack) undo(h *arena_c.Scopes, to mark) error {
	u := unwinding{st: st, h: h, to: to, frozen: h.Depth == to.depth && h.Gen == 0}
	return u.run()
}
