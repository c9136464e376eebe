package scope

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Whatever must happen when a scope closes is a node of the arena's chain: a word before what it is
// about, with the class that knows what to do, newest first. Close, a constructor that fails, a load
// that fails, Rewind and the end of a frame are one operation: the chain is unwound to a mark.

// The classes that are no type's; arena_c has those that C knows, too.
const (
	classOwned = arena_c.ClassTemp + 1 + iota // a word of the owned table
	classLabel                                // a labelNode
	classSlice                                // a sliceNode
	classFirst                                // of those that types declare
)

// classesMax is how many Objects a process may declare. The collector looks at all places.
const classesMax = 1 << 12

// classes are read without a lock: each is written once, before anybody has its number.
var classes struct {
	sync.Mutex
	used uint64
	run  [classesMax]func(unsafe.Pointer) error
	name [classesMax]string
}

// newClass gives a number for a finalizer.
func newClass(name string, run func(unsafe.Pointer) error) uint64 {
	classes.Lock()
	defer classes.Unlock()
	c := max(classes.used, classFirst)
	if c == classesMax {
		panic(&Misuse{fmt.Sprintf("more than %d Objects: declare each once, at package level", classesMax-classFirst), false})
	}
	classes.used = c + 1
	classes.run[c], classes.name[c] = run, name
	return c
}

// mark is where an arena is unwound to: what Close puts back.
type mark struct{ depth, cursor, chain, count uint64 }

func markOf(h *arena_c.Scopes) mark { return mark{h.Depth, h.Cursor, h.Chain, h.Top().Count} }

// unwinding is an arena on its way back to a mark.
type unwinding struct {
	st     *Stack
	h      *arena_c.Scopes
	to     mark // cursor 0: what closing the scopes above its depth gives
	errs   errorList
	at     uint64 // offset of the node that runs
	frozen bool   // the scope at the mark may not allocate afterwards either
	rest   bool   // it goes on for a goroutine that ends
	done   bool
}

// closeTop closes the topmost scope of an end of the arena. What is most often in its part of the chain, and
// goes well, it runs itself, which is faster (make bench, D); with all else an unwinding goes on.
func (st *Stack) closeTop(h *arena_c.Scopes) (err error) {
	if h.Odd|h.Asked|h.Misused != 0 {
		return st.closeFrom(h, h.Depth)
	}
	h.Gen, h.Odd = 0, arena_c.Closing
	var at uint64 // the node that runs
	defer func() {
		if h.Odd&arena_c.Closing != 0 {
			u := st.closing(h, at)
			u.caught(recover())
			err = u.turns()
		}
	}()
	r := h.Top()
	for at = h.Chain; at != r.Chain; at = h.Chain {
		object, node := h.Newest(at)
		class := node / arena_c.NodeClass
		if class < classFirst {
			if class != classOwned {
				return st.goOn(h, at, nil)
			}
			if failed := st.runOwned(h, object); failed != nil {
				return st.goOn(h, at, failed)
			}
			continue
		}
		h.Chain = node % arena_c.NodeClass // first: it runs once, whatever it does
		st.finalizers++
		if failed := classes.run[class%classesMax](object); failed != nil {
			return st.goOn(h, at, failed)
		}
	}
	if h.Odd != arena_c.Closing || h.Asked|h.Misused != 0 {
		return st.goOn(h, at, nil)
	}
	h.Odd = 0
	h.Close(r)
	return nil
}

// goOn goes on with what closeTop began: at a node that failed, or at one that it doesn't run.
func (st *Stack) goOn(h *arena_c.Scopes, at uint64, failed error) error {
	u := st.closing(h, at)
	if failed != nil {
		u.failed(failed)
		u.release()
	}
	return u.turns()
}

// closing closes the topmost scope, and is at a node.
func (st *Stack) closing(h *arena_c.Scopes, at uint64) unwinding {
	return unwinding{st: st, h: h, to: mark{h.Depth - 1, 0, h.Top().Chain, 0}, at: at}
}

// CloseTo closes the topmost scopes until depth are open, newest first, and returns the errors of
// their finalizers. It is for the owner of the arena: nothing is refused, and a scope whose
// finalizers are running already is left to who closes it.
func (st *Stack) CloseTo(depth int) error { return st.closeFrom(st.h, uint64(depth)+1) }

// CloseTemp closes the temporaries, if there are any. Beside their errors it gives those that nobody got yet: of the parts
// of constructors in the topmost scope that were unwound.
func (st *Stack) CloseTemp() error {
	err := st.closeFrom(&st.row.Temp, 1)
	n := &st.notes[st.h.Depth]
	err, n.lost = joined(err, n.lost), nil
	return err
}

// closeFrom closes the scopes of an end from a depth up. What they met and nobody was told comes back
// too, where nobody else can ask: of a frozen scope, and of temporaries (closeLong).
func (st *Stack) closeFrom(h *arena_c.Scopes, depth uint64) error {
	if h.Depth < depth || h.Odd&arena_c.Closing != 0 {
		return nil
	}
	u := unwinding{st: st, h: h, to: mark{depth - 1, 0, h.Record(depth).Chain, 0}}
	if h.Odd|h.Asked|h.Misused != 0 {
		st.settle(h)
		if h.Gen == 0 && h.Back == 0 {
			u.errs.add(st.tell(h, h.Depth))
		}
		for i := h.Depth; i >= depth && h.Back != 0; i-- {
			u.errs.add(st.tell(h, i))
		}
	}
	return u.run()
}

// run unwinds to the mark, whatever the nodes do: newest first, each exactly once, because a node
// leaves the chain before it runs. Meanwhile the arena refuses.
func (u *unwinding) run() error {
	u.st.unwound++
	u.st.count() // all at once: what goes first is counted with what it went from
	if u.h.Asked|u.h.Misused != 0 || u.h.Depth > u.to.depth+1 {
		u.st.workOut(u.h, u.to.depth)
	}
	if near := u.st.h; u.h.Back != 0 && near.Asked != 0 { // what the temporaries give back it didn't have
		u.st.workOut(near, near.Depth)
	}
	u.h.Gen = 0
	u.h.Odd |= arena_c.Closing
	return u.turns()
}

func (u *unwinding) turns() error {
	for !u.done && !u.turn() {
	}
	return u.errs.err()
}

// turn runs nodes until all have run, or until one panics: then the next turn goes on, so that a
// million that panic cost a million turns, not a stack.
func (u *unwinding) turn() bool {
	defer func() {
		if !u.done {
			u.caught(recover())
		}
	}()
	h, st := u.h, u.st
	for {
		until := u.to.chain
		if h.Depth > u.to.depth {
			until = h.Top().Chain
		}
		for at := h.Chain; at != until; at = h.Chain {
			u.at = at
			object, node := h.Newest(at)
			class := node / arena_c.NodeClass
			if class < classFirst {
				u.special(class, object, until)
				continue
			}
			h.Chain = node % arena_c.NodeClass
			st.finalizers++
			if err := classes.run[class%classesMax](object); err != nil {
				u.failed(err)
			}
		}
		if h.Depth == u.to.depth {
			u.finish()
			return true
		}
		if h.Odd != arena_c.Closing || h.Asked|h.Misused != 0 {
			u.closeLong()
		} else {
			h.Close(h.Top())
		}
		h.Gen = 0
	}
}

// caught looks at how a turn ended early. A goroutine that ends can't be held back, and its deferred calls
// pile up on its stack: what is left runs on a fresh one, while this one waits.
func (u *unwinding) caught(v any) {
	if v != nil {
		u.fail(fmt.Errorf("%s panicked: %v%s", u.name(), handled(v), u.given()))
		u.release()
	} else if u.release(); !u.rest {
		u.elsewhere()
	}
}

// elsewhere finishes what a goroutine that ends has begun. One that ends in its turn is replaced.
func (u *unwinding) elsewhere() {
	rest := new(unwinding)
	*rest = *u
	for rest.rest = true; !rest.done; {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for !rest.turn() {
			}
		}()
		<-ended
	}
	*u = *rest
}

// finish lets the arena go on, where the mark is.
func (u *unwinding) finish() {
	h := u.h
	if u.to.cursor != 0 {
		h.Cut(u.to.cursor)
		h.Top().Count = u.to.count
	}
	if _, err := u.st.misused(h); err != nil { // a finalizer's, of a scope that stays
		u.errs.add(err)
	}
	u.done = true
	h.Odd &^= arena_c.Closing
	if !u.frozen {
		h.Gen = h.Top().Gen
	}
}
