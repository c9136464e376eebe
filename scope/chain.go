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
	size [classesMax]uint64 // of an object
}

// newClass gives a number for a finalizer.
func newClass(name string, size uint64, run func(unsafe.Pointer) error) uint64 {
	classes.Lock()
	defer classes.Unlock()
	c := max(classes.used, classFirst)
	if c == classesMax {
		panic(bug("more than %d Objects: declare each once, at package level", classesMax-classFirst))
	}
	classes.used = c + 1
	classes.run[c], classes.name[c], classes.size[c] = run, name, size
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

// closeTop closes the topmost scope of an end of the arena.
func (st *Stack) closeTop(h *arena_c.Scopes) error {
	if h.Odd|h.Asked|h.Misused != 0 {
		return st.closeFrom(h, h.Depth)
	}
	st.unwound++
	h.Gen, h.Odd = 0, arena_c.Closing
	u := unwinding{st: st, h: h, to: mark{depth: h.Depth - 1, chain: h.Top().Chain}}
	if u.turn(); u.done && u.errs.list == nil {
		return nil
	}
	return u.turns()
}

// CloseTo closes the topmost scopes until depth are open, newest first, and returns the errors of
// their finalizers. It is for the owner of the arena: nothing is refused, and a scope whose
// finalizers are running already is left to who closes it.
func (st *Stack) CloseTo(depth int) error { return st.closeFrom(st.h, uint64(depth)+1) }

// closeFrom closes the scopes of an end from a depth up. What they met and nobody was told comes back
// too, where nobody else can ask: of a frozen scope, and of temporaries (closeLong).
func (st *Stack) closeFrom(h *arena_c.Scopes, depth uint64) error {
	if h.Depth < depth || h.Odd&arena_c.Closing != 0 {
		return nil
	}
	u := unwinding{st: st, h: h, to: mark{depth - 1, 0, h.Record(depth).Chain, 0}}
	if h.Odd|h.Asked|h.Misused != 0 {
		st.settle(h)
		for i := h.Depth; i >= depth && (h.Back != 0 || h.Gen == 0 && i == h.Depth); i-- {
			u.errs.add(st.take(h, i))
		}
	}
	return u.run()
}

// run unwinds to the mark, whatever the nodes do: newest first, each exactly once, because a node
// leaves the chain before it runs. Meanwhile the arena refuses.
func (u *unwinding) run() error {
	u.st.unwound++
	u.st.look() // at all that goes: what goes first is counted with what it went from
	if u.h.Asked|u.h.Misused != 0 || u.h.Depth > u.to.depth+1 {
		u.st.peekFrom(u.h, u.to.depth)
	}
	if near := u.st.h; u.h.Back != 0 && near.Asked != 0 { // what the temporaries give back it didn't have
		u.st.peekFrom(near, near.Depth)
	}
	u.h.Gen = 0
	u.h.Odd |= arena_c.Closing
	return u.turns()
}

func (u *unwinding) turns() error {
	for !u.done {
		u.turn()
	}
	return u.errs.err()
}

// turn runs nodes until all have run, or until one panics: then the next turn goes on, so that a
// million that panic cost a million turns, not a stack. It is the one loop over the chain: what most scopes have, finalizers
// and owned values, it runs itself (tests/bench, D).
func (u *unwinding) turn() {
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
			switch {
			case class >= classFirst:
				h.Chain = node % arena_c.NodeClass // first: it runs once, whatever it does
				st.finalizers++
				if err := classes.run[class%classesMax](object); err != nil {
					u.failed(err)
				}
			case class == classOwned:
				if err := st.runOwned(h, object); err != nil {
					u.failed(err)
					u.release()
				}
			default:
				u.special(class, object, until)
			}
		}
		if h.Depth == u.to.depth {
			u.finish()
			return
		}
		if h.Odd != arena_c.Closing || h.Asked|h.Misused != 0 {
			u.closeLong()
		} else if h.Close(h.Top()); h.Depth == u.to.depth && u.to.cursor == 0 {
			h.Odd, u.done = 0, true // as finish does it, where there is nothing else to do
			return
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
			for !rest.done {
				rest.turn()
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
		end := h.Cursor
		u.errs.add(u.st.endRooms(u.to.cursor, end, nil))
		h.Cut(u.to.cursor)
		u.st.watchBack(h.Cursor, end)
		h.Top().Count = u.to.count
		u.st.look()
	}
	if n := u.st.settle(h); n != nil { // a finalizer's, of a scope that stays
		u.errs.add(n.owed)
		n.owed = nil
	}
	u.done = true
	h.Odd &^= arena_c.Closing
	if !u.frozen {
		h.Gen = h.Top().Gen
	}
}

// runOwned ends the Go value that the newest node is about, if it is there still. One that fails, or doesn't come
// back, keeps its place until it is told: release.
func (st *Stack) runOwned(h *arena_c.Scopes, word unsafe.Pointer) error {
	h.Unlink()
	p := st.owned.take(*(*uint64)(word))
	if p == nil {
		return nil
	}
	if p.fn != nil { // what run and release do, without calls
		st.finalizers++
		p.fn()
		p.fn = nil
		p.next, st.owned.free = st.owned.free, p.next
		st.owned.live--
		return nil
	}
	st.finalizers += p.finalizers()
	if err := p.run(); err != nil {
		return err
	}
	st.owned.release(p)
	return nil
}

// sliceNode is about the objects behind it.
type sliceNode struct{ front, stride, class, left uint64 }

// special runs the newest node, which is no type's.
func (u *unwinding) special(class uint64, object unsafe.Pointer, until uint64) {
	h, st := u.h, u.st
	switch class {
	case arena_c.ClassC:
		h.RunC(until)
		st.finalizers += h.RanC()
	case arena_c.ClassPool:
		u.chunk((*uint64)(object))
	case arena_c.ClassTemp:
		h.Unlink()
		if depth := st.row.Temp.Find(*(*uint64)(object)); depth != 0 {
			u.errs.add(st.closeFrom(&st.row.Temp, depth))
		}
	case classSlice:
		u.element(object)
	case classLabel:
		h.Unlink()
		st.labels.undo((*labelNode)(object))
	default:
		h.Unlink()
		u.failed(undeclared)
	}
}

// poolNext is where in a pool's word the chunk stands that is to be looked at next.
const poolNext = 1 << 20

// chunk finalizes one live object of the pool that the node is about. The node stays until there is
// none; meanwhile the pool gives nothing.
func (u *unwinding) chunk(word *uint64) {
	pool := u.st.row.Pool(*word % poolNext)
	next := *word / poolNext
	index := uint64(pool.Count)
	if pool.Kind != 0 {
		pool.Free = 0
		if index = pool.Next(next); index == uint64(pool.Count) && next != 0 {
			index = pool.Next(0) // a finalizer may have taken one that another had put
		}
	}
	if index == uint64(pool.Count) {
		u.h.Unlink()
		pool.Close()
		return
	}
	*word = *word%poolNext + (index+1)*poolNext
	*pool.State(index) = arena_c.ChunkLeaving // it counts as put: who puts it is told so
	u.st.finalizers++
	if err := classes.run[pool.Kind%classesMax](pool.Chunk(index)); err != nil {
		u.failed(err)
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
	if err := classes.run[n.class%classesMax](unsafe.Add(object, n.front+n.left*n.stride)); err != nil {
		u.failed(err)
	}
}

// closeLong closes the topmost scope, whose nodes have run, tells what else there is to tell, and counts.
func (u *unwinding) closeLong() {
	h, st, end := u.h, u.st, u.h.Cursor
	if h.Odd&arena_c.Building != 0 {
		end = h.Limit
		h.Odd &^= arena_c.Building
		h.MarkDead(h.Cursor, h.Limit-h.Cursor)
	}
	st.settle(h)
	n := st.noteOf(h, h.Depth)
	u.errs.add(n.lost)
	n.lost = nil
	if h.Back != 0 || n.owed != nil { // nobody else can ask for what temporaries met
		u.errs.add(st.take(h, h.Depth))
	}
	if h.Back != 0 {
		from := st.h.Limit
		u.errs.add(st.endRooms(from, h.Top().Edge, u.tells()))
		h.TempClose()
		st.watchBack(from, st.h.Limit)
		return
	}
	u.errs.add(st.endRooms(h.Top().Mark, end, u.tells()))
	h.Close(h.Top())
	st.watchBack(h.Cursor, end)
	if h.Depth == 0 {
		h.Odd &^= oddNoted
		st.unwatch()
	}
}

// failed notes what the node that runs returned.
func (u *unwinding) failed(err error) { u.fail(fmt.Errorf("%s: %w%s", u.name(), err, u.given())) }

func (u *unwinding) fail(err error) {
	st := u.st
	st.failed++
	u.errs.add(fmt.Errorf("%s, scope %q: %w", st.Arena, st.nameOf(u.h, u.h.Depth), err))
}

// name is what runs, or ran last.
func (u *unwinding) name() string {
	if p := u.owned(); p != nil {
		return p.name()
	}
	object, node := u.h.Newest(u.at)
	class := node / arena_c.NodeClass
	switch class {
	case arena_c.ClassC:
		return "a finalizer of C"
	case arena_c.ClassPool:
		class = uint64(u.st.row.Pool(*(*uint64)(object) % poolNext).Kind)
	case classSlice:
		class = (*sliceNode)(object).class
	}
	if class >= classFirst {
		return classes.name[class%classesMax]
	}
	return fmt.Sprintf("a node of class %d", class)
}

// owned is the Go value that runs, if it is one.
func (u *unwinding) owned() *owned {
	if object, node := u.h.Newest(u.at); node/arena_c.NodeClass == classOwned {
		return u.st.owned.placeOf(*(*uint64)(object))
	}
	return nil
}

// given says in checked builds where the Go value that runs was given; objects have no place for that.
func (u *unwinding) given() string {
	if p := u.owned(); p != nil {
		return p.site.Tell("given")
	}
	return ""
}

// release forgets the Go value that didn't end well.
func (u *unwinding) release() {
	u.st.finalizers += u.h.RanC()
	if p := u.owned(); p != nil {
		u.st.owned.release(p)
	}
}
