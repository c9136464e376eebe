package scope

import (
	"errors"
	"fmt"
	"sort"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// making is the constructors (Make) that are at work in a scope.
type making struct {
	from   uint64 // place where the outermost began
	start  uint64 // place where the innermost began
	serial uint64 // of the innermost, 0 when there is none
}

// constructing says that a constructor begins to work in s: until constructed, what it makes there may go again.
func (st *Stack) constructing(s Scope) (was making) {
	st.inside++
	st.made++
	n := &st.notes[s.slot.Index()]
	was = n.making
	if was.serial == 0 {
		n.making.from = s.slot.Top()
	}
	n.making.start, n.making.serial = s.slot.Top(), st.made
	return was
}

func (st *Stack) constructed(s Scope, was making) {
	st.inside--
	if s.slot.Tag() == s.generation() { // else the constructor closed it
		st.notes[s.slot.Index()].making = was
	}
}

// constructors is how many have begun on the arena of s, for a List or Text that is made now.
func (s Scope) constructors() uint64 {
	if st := s.stack(); st != nil {
		st.containers++
		return st.made
	}
	return 0
}

// refuseFrozen refuses, as misuse, that a Text takes bytes in a frozen scope: nobody would look at what the scope
// remembers.
func (s Scope) refuseFrozen(what string) {
	if row := s.slot.Row(); !s.isTemp() && s.lives() && !s.open() && s.slot.Index()+1 == row.Open {
		panic(s.misuse(what))
	}
}

// mayTake refuses, as misuse, that a List or Text that was made when `made` constructors had begun takes bytes inside a younger
// one: when that fails the bytes go back, and it would still use them. Temporaries don't go back.
func (s Scope) mayTake(made uint64) {
	st := s.stack()
	if st != nil && st.notes[s.slot.Index()].making.serial > made && !s.isTemp() {
		panic(&Misuse{"a List or Text takes bytes inside a constructor, which takes them back if it fails; " +
			"make it inside", false})
	}
}

// construct takes size bytes for a T and what lies behind it, and has fn make the T ready. When fn doesn't, s is again as
// it was before.
func construct[T any](s Scope, size, align uint64, fn func(*T) error) (x *T, err error) {
	if !s.usable() {
		panic(s.misuse("Make in"))
	}
	st := s.stack()
	before, accounts := *s.slot, st.snapshot()
	defer st.constructed(s, st.constructing(s))
	begun, containers := st.made, st.containers
	x = (*T)(s.take(max(size, 1), align)) // so that nothing older ends where it begins
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
				n.lost = errors.Join(n.lost, parts)
				st.event(n)
			}
		}()
		func() {
			defer st.undone(s, begun, containers, accounts) // also when a finalizer ends the goroutine
			st.undo(s.slot, before, &parts)
		}()
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

// span is the numbers of constructors, from one that failed to the last that had begun by then.
type span struct{ from, to uint64 }

// undone notes that a constructor failed: what was made since it began is gone, and accounts are as they were.
func (st *Stack) undone(s Scope, begun, containers uint64, accounts []account) {
	if s.isTemp() || s.slot.Tag() != s.generation() {
		return // nothing went back, or everything
	}
	st.restore(s, accounts)
	if st.containers == containers {
		return // none was made
	}
	n := &st.notes[s.slot.Index()]
	for len(n.undone) > 0 && n.undone[len(n.undone)-1].from >= begun {
		n.undone = n.undone[:len(n.undone)-1] // inside this one
	}
	n.undone = append(n.undone, span{begun, st.made})
	st.event(n)
	st.made++
}

// lost says whether what was made when `made` constructors had begun was made inside one that failed.
func (s Scope) lost(made uint64) bool {
	st := s.stack()
	if st == nil || len(st.notes[s.slot.Index()].undone) == 0 {
		return false
	}
	spans := st.notes[s.slot.Index()].undone
	i := sort.Search(len(spans), func(i int) bool { return spans[i].to >= made })
	return i < len(spans) && spans[i].from <= made
}

// constructorFailed is the misuse of a List or Text that went with the constructor that made it.
func constructorFailed(what string, s Scope) error {
	return &Misuse{fmt.Sprintf("%s scope %q: the constructor that made it failed, and took it back", what, s.stack().scopeName(s.slot)),
		true}
}

// undo takes a scope back to what it was before a constructor that failed. While the finalizers of what that made run,
// the scope refuses as a closing one does. What comes after them is deferred: one of them may end the goroutine.
func (st *Stack) undo(slot *arena_c.Linear, before arena_c.Linear, errs *error) {
	if slot.Tag() != before.Limit&^arena_c.Offsets {
		return // the constructor closed its scope
	}
	index, far, was := int(slot.Index()), slot == st.row.Far(), false
	if !far {
		_ = st.err(slot) // what it refused while it was covered is misuse
	}
	now := *slot
	frozen := now.Limit&arena_c.Offsets == 0 && uint64(index)+1 == st.row.Open // meanwhile: its frame ended
	if st.remembered(slot) == nil && !far {                                    // it is asked while it can still say why
		if met := st.anyFull(index + 1); met != nil { // in a scope that the constructor left open, and which closes now
			st.keepMet(Scope{slot, slot.Tag() - key}, met)
			now.Refused = slot.Tag() + met.Asked
			if met.OnPurpose {
				now.Refused += arena_c.OnPurpose
			}
		}
	}
	defer func() {
		st.setClosing(slot, was)
		slot.Refused = now.Refused
		if far { // its bytes go with the temporaries
			slot.Limit = now.Limit
			return
		}
		if !frozen {
			slot.Limit = now.Tag() | st.row.Edge
		}
		st.count()
		st.row.Rewind(&before)
	}()
	defer func() {
		was = st.setClosing(slot, true)
		slot.Freeze()
		st.unwind(slot, before.Chain, errs, false)
	}()
	if !far {
		*errs = errors.Join(*errs, st.CloseTo(index+1))
	}
}
