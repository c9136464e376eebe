package scope

import (
	"errors"
	"strings"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// making is the constructors (Make) that are at work in a scope.
type making struct {
	from   uint64 // cursor when the outermost began
	start  uint64 // cursor when the innermost began
	serial uint64 // of the innermost, 0 when there is none
}

// constructing says that a constructor begins to work in s: until constructed, what it makes there may go again.
func (st *Stack) constructing(s Scope) (was making) {
	st.inside++
	st.made++
	n := &st.notes[s.slot.Index()]
	was = n.making
	if was.serial == 0 {
		n.making.from = s.slot.Cursor
	}
	n.making.start, n.making.serial = s.slot.Cursor, st.made
	return was
}

func (st *Stack) constructed(s Scope, was making) {
	st.inside--
	st.notes[s.slot.Index()].making = was
}

// constructors is how many have begun on the arena of s.
func (s Scope) constructors() uint64 {
	if st := s.stack(); st != nil {
		return st.made
	}
	return 0
}

// refuseFrozen refuses, as misuse, that a container takes its first bytes in a frozen scope: nobody would look at what the
// scope remembers, and the container would say "full" for ever.
func (s Scope) refuseFrozen(what string) {
	if row := s.slot.Row(); !s.isTemp() && s.lives() && !s.open() && s.slot.Index()+1 == row.Open {
		panic(&Misuse{strings.TrimPrefix(s.misuse(what).Error(), misusePrefix) + "; Reserve the bytes before", false})
	}
}

// mayTake refuses, as misuse, that a container that was made when `made` constructors had begun takes bytes inside a younger
// one: when that fails the bytes go back, and the container would still use them. Temporaries don't go back.
func (s Scope) mayTake(made uint64) {
	st := s.stack()
	if st != nil && st.notes[s.slot.Index()].making.serial > made && !s.isTemp() {
		panic(&Misuse{"a container takes bytes inside a constructor, which takes them back if it fails; " +
			"Reserve them before, or make the container inside", false})
	}
}

// construct takes size bytes for a T and what lies behind it, and has fn make the T ready. When fn doesn't, s is again as
// it was before.
func construct[T any](s Scope, size, align uint64, fn func(*T) error) (x *T, err error) {
	if !s.usable() {
		panic(s.misuse("Make in"))
	}
	st := s.stack()
	before := *s.slot
	defer st.constructed(s, st.constructing(s))
	x = (*T)(s.take(size, align))
	if x == nil {
		panic(refusal(s))
	}
	arena_c.Zero(unsafe.Pointer(x), unsafe.Sizeof(*x))
	done, unwinds := false, true
	defer func() {
		if done {
			return
		}
		var parts error // what the finalizers of its parts say
		told := false
		defer func() {
			if n := &st.notes[s.slot.Index()]; !told && parts != nil { // nobody got it: Close tells it
				n.lost, n.eventful = errors.Join(n.lost, parts), true
			}
		}()
		st.undo(s.slot, before, &parts)
		if told = !unwinds; told && parts != nil {
			err = errors.Join(err, parts)
		}
	}()
	if err := fn(x); err != nil {
		unwinds = false
		return nil, err
	}
	if !s.open() {
		panic(s.misuse("Make in"))
	}
	done = true
	return x, nil
}

// undo takes a scope back to what it was before a constructor that failed. While the finalizers of what that made run,
// the scope refuses as a closing one does. What comes after them is deferred: one of them may end the goroutine.
func (st *Stack) undo(slot *arena_c.Linear, before arena_c.Linear, errs *error) {
	if slot.Tag() != before.Limit&^arena_c.Offsets {
		return // the constructor closed its scope
	}
	index, far := int(slot.Index()), slot == st.row.Far()
	now, closing := *slot, st.closing
	if st.remembered(slot) == nil && !far { // it is asked while it can still say why
		if met := st.anyFull(index + 1); met != nil { // in a scope that the constructor left open, and which closes now
			st.keepMet(Scope{slot, slot.Tag() - key}, met)
			now.Refused = slot.Tag() + met.Asked
		}
	}
	defer func() {
		st.closing = closing
		slot.Refused, slot.Limit = now.Refused, now.Limit
		if !far { // its bytes go with the temporaries
			slot.Limit = now.Tag() | st.row.Edge
			st.row.Rewind(before.Cursor, before.Count)
		}
	}()
	defer func() {
		st.closing = index + 1
		slot.Freeze()
		st.unwind(slot, before.Chain, errs, false)
	}()
	if !far {
		*errs = errors.Join(*errs, st.CloseTo(index+1))
	}
}
