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

// class is a kind of node. A class that types declare runs a finalizer.
type class struct {
	name string
	run  func(unsafe.Pointer) error
}

// The classes that are no type's; arena_c has those that C knows, too.
const (
	classOwned = arena_c.ClassTemp + 1 + iota // a word of the owned table
	classLabel                                // a labelNode
	classSlice                                // a sliceNode
	classFirst                                // of those that types declare
)

// classes are read without a lock: each is written once, before anybody has its number.
var classes struct {
	sync.Mutex
	next   uint64
	blocks [1 << 12]*[1 << 12]class
}

// newClass gives a number for a finalizer. A process that declares 2^24 has a bug: it panics.
func newClass(name string, run func(unsafe.Pointer) error) uint64 {
	classes.Lock()
	defer classes.Unlock()
	c := max(classes.next, classFirst)
	classes.next = c + 1
	block := &classes.blocks[c>>12]
	if *block == nil {
		*block = new([1 << 12]class)
	}
	(*block)[c%(1<<12)] = class{name, run}
	return c
}

func classAt(c uint64) *class { return &classes.blocks[c>>12%(1<<12)][c%(1<<12)] }

// mark is where an arena is unwound to: what Close puts back.
type mark struct{ depth, cursor, chain uint64 }

func markOf(h *arena_c.Scopes) mark { return mark{h.Depth, h.Cursor, h.Chain} }

// unwinding is an arena on its way back to a mark.
type unwinding struct {
	st     *Stack
	h      *arena_c.Scopes
	to     mark // cursor 0: what closing the scopes above its depth gives
	errs   errorList
	class  uint64 // of the node that runs
	frozen bool   // the scope at the mark may not allocate afterwards either
	rest   bool   // it goes on for a goroutine that ends
	done   bool
}

// closeTop closes the topmost scope of an end of the arena.
func (st *Stack) closeTop(h *arena_c.Scopes) error {
	u := unwinding{st: st, h: h, to: mark{h.Depth - 1, 0, h.Top().Chain}}
	u.run()
	return u.errs.err()
}

// CloseTo closes the topmost scopes until depth are open, newest first, and returns the errors of
// their finalizers. It is for the owner of the arena: nothing is refused, and a scope whose
// finalizers are running already is left to who closes it.
func (st *Stack) CloseTo(depth int) error { return st.closeFrom(st.h, uint64(depth)+1) }

// CloseTemp closes the temporaries, if there are any. It is for the owner of the arena.
func (st *Stack) CloseTemp() error { return st.closeFrom(&st.row.Temp, 1) }

// closeFrom closes the scopes of an end from a depth up. What they met and nobody was told comes back
// too, where nobody else can ask: of a frozen scope, and of temporaries.
func (st *Stack) closeFrom(h *arena_c.Scopes, depth uint64) error {
	if h.Depth < depth || h.Odd&arena_c.Closing != 0 {
		return nil
	}
	u := unwinding{st: st, h: h, to: mark{depth - 1, 0, h.Record(depth).Chain}}
	if h.Odd|h.Asked|h.Misused != 0 {
		st.settle(h)
		if h.Gen == 0 && h.Back == 0 {
			u.errs.add(st.tell(h, h.Depth))
		}
		for i := h.Depth; i >= depth && h.Back != 0; i-- {
			u.errs.add(st.tell(h, i))
		}
	}
	u.run()
	return u.errs.err()
}

// Lost are the errors of finalizers in the topmost scope that nobody got yet: those of the parts of
// constructors that were unwound. Who freezes the scope gets them.
func (st *Stack) Lost() (err error) {
	n := &st.notes[st.h.Depth]
	err, n.lost = n.lost, nil
	return err
}

// run unwinds to the mark, whatever the nodes do: newest first, each exactly once, because a node
// leaves the chain before it runs. Meanwhile the arena refuses.
func (u *unwinding) run() {
	u.st.count() // all at once: what goes first is counted with what it went from
	if u.h.Asked != 0 || u.h.Depth > u.to.depth+1 {
		u.st.workOut(u.h, u.to.depth)
	}
	u.h.Gen = 0
	u.h.Odd |= arena_c.Closing
	for !u.turn() {
	}
}

// turn runs nodes until all have run, or until one panics: then the next turn goes on, so that a
// million that panic cost a million turns, not a stack. One that ends the goroutine can't be held
// back. The deferred calls of a goroutine that ends pile up on its stack, so what is left runs on a
// fresh one, while this one waits.
func (u *unwinding) turn() bool {
	defer func() {
		if u.done {
			return
		}
		if v := recover(); v != nil {
			u.fail(fmt.Errorf("%s panicked: %v", className(u.class), v))
		} else if !u.rest {
			u.elsewhere()
		}
	}()
	u.steps()
	return u.done
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

func (u *unwinding) steps() {
	h := u.h
	for h.Depth > u.to.depth {
		u.nodes(h.Top().Chain)
		u.close()
	}
	u.nodes(u.to.chain)
	if u.to.cursor != 0 {
		h.Cut(u.to.cursor)
	}
	u.done = true
	h.Odd &^= arena_c.Closing
	if !u.frozen {
		h.Gen = h.Top().Gen
	}
}

// nodes runs those that are newer than the one at until.
func (u *unwinding) nodes(until uint64) {
	h, st := u.h, u.st
	for h.Chain != until {
		object, class := h.Newest()
		u.class = class
		switch {
		case class >= classFirst:
			h.Unlink()
			st.finalizers++
			if err := classAt(class).run(object); err != nil {
				u.fail(fmt.Errorf("%s: %w", className(class), err))
			}
		case class == classOwned:
			h.Unlink()
			u.owned(*(*uint64)(object))
		case class == arena_c.ClassC:
			st.finalizers += h.RunC(until)
		case class == arena_c.ClassPool:
			u.chunk((*uint64)(object))
		case class == arena_c.ClassTemp:
			h.Unlink()
			if depth := st.row.Temp.Find(*(*uint64)(object)); depth != 0 {
				u.errs.add(st.closeFrom(&st.row.Temp, depth))
			}
		case class == classSlice:
			u.element(object)
		case class == classLabel:
			h.Unlink()
			st.labels.undo((*labelNode)(object))
		default:
			h.Unlink()
			u.fail(undeclared)
		}
	}
}

// poolNext is where in a pool's word the chunk stands that is to be looked at next.
const poolNext = 1 << 20

// chunk finalizes one live object of the pool that the node is about. The node stays until there is
// none; meanwhile the pool gives nothing.
func (u *unwinding) chunk(word *uint64) {
	pool := u.st.row.Pool(*word % poolNext)
	next := *word / poolNext
	index := pool.Count()
	if pool.Kind != 0 {
		pool.Free = pool.Tag()
		if index = pool.Next(next); index == pool.Count() && next != 0 {
			index = pool.Next(0) // a finalizer may have taken one that another had put
		}
	}
	if index == pool.Count() {
		u.h.Unlink()
		pool.Close()
		return
	}
	*word = *word%poolNext + (index+1)*poolNext
	*pool.State(index) = arena_c.ChunkLeaving // it counts as put: who puts it is told so
	u.st.finalizers++
	u.class = pool.Kind
	if err := classAt(pool.Kind).run(pool.Chunk(index)); err != nil {
		u.fail(fmt.Errorf("%s: %w", className(pool.Kind), err))
	}
}

// element finalizes the last object of the slice that is left.
func (u *unwinding) element(object unsafe.Pointer) {
	n := (*sliceNode)(object)
	if n.left == 0 {
		u.h.Unlink()
		return
	}
	n.left--
	u.st.finalizers++
	u.class = n.class
	if err := classAt(n.class).run(unsafe.Add(object, n.front+n.left*n.stride)); err != nil {
		u.fail(fmt.Errorf("%s: %w", className(n.class), err))
	}
}

// owned ends the Go value that the word names, if it is still there. Its failures say where it was
// given, in checked builds; objects have no place for that.
func (u *unwinding) owned(word uint64) {
	it := u.st.owned.release(word)
	u.st.finalizers += it.finalizers()
	defer func() {
		if v := recover(); v != nil {
			u.fail(fmt.Errorf("%s panicked: %v%s", it.name(), v, it.site.Tell("given")))
		}
	}()
	if err := it.run(); err != nil {
		u.fail(fmt.Errorf("%s: %w%s", it.name(), err, it.site.Tell("given")))
	}
}

// close puts the arena back to where the topmost scope, whose nodes have run, was opened.
func (u *unwinding) close() {
	h := u.h
	if h.Odd&arena_c.Building != 0 {
		h.Odd &^= arena_c.Building
		arena_c.MarkDead(h.At(h.Cursor), h.Limit-h.Cursor)
	}
	if h.Odd != arena_c.Closing || h.Asked|h.Misused != 0 {
		u.closeLong()
	}
	if h.Back != 0 {
		h.TempClose()
	} else {
		h.Close(h.Top())
	}
	h.Gen = 0
	if h.Depth == 0 {
		h.Odd &^= oddNoted
	}
}

// closeLong tells what else there is to tell.
func (u *unwinding) closeLong() {
	h, st := u.h, u.st
	st.settle(h)
	n := st.noteOf(h, h.Depth)
	u.errs.add(n.lost)
	u.errs.add(n.err)
	n.lost, n.err = nil, nil
}

func (u *unwinding) fail(err error) {
	st := u.st
	st.failed++
	u.errs.add(fmt.Errorf("%s, scope %q: %w", st.config.Arena, st.nameOf(u.h, u.h.Depth), err))
}

func className(c uint64) string {
	switch {
	case c >= classFirst:
		return classAt(c).name
	case c == arena_c.ClassC:
		return "a finalizer of C"
	}
	return fmt.Sprintf("a node of class %d", c)
}
