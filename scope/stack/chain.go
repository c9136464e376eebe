package stack

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// The work that closes a scope is a chain of nodes, newest first. A node is a word before its
// object, and holds a class that selects the code to run. Close, a constructor or load that fails,
// Rewind and the end of a frame are one operation: they unwind the chain to a mark.

type mark struct{ depth, cursor, chain, count uint64 }

func markOf(h *arena_c.Scopes) mark { return mark{h.Depth, h.Cursor, h.Chain, h.Top().Count} }

// unwinding is the work of restoring an arena to a mark.
type unwinding struct {
	st *Stack
	h  *arena_c.Scopes
	// to.cursor 0: go back to the start of the lowest scope to close
	to     mark
	errs   errorList
	at     uint64 // offset of the node that runs
	frozen bool   // the scope at the mark stays frozen
	rest   bool   // the unwinding runs on a fresh goroutine, in place of one that ends
	done   bool
}

// closeTop closes the topmost scope, whose chain begins at chain. It is closeFrom for an arena
// without refusals to report and without other work.
func (st *Stack) closeTop(h *arena_c.Scopes, chain uint64) error {
	st.unwound++
	h.Gen, h.Odd = 0, arena_c.Closing
	u := unwinding{st: st, h: h, to: mark{depth: h.Depth - 1, chain: chain}}
	if u.turn(); u.done && u.errs.list == nil {
		return nil
	}
	return u.turns()
}

// CloseTo closes the topmost scopes, newest first, until depth scopes are open, and returns the
// errors of their finalizers. CloseTo is for the owner of the arena. It also closes scopes that
// Close of a Scope refuses. If finalizers are running already, CloseTo leaves the scopes to the
// Close that runs those finalizers.
func (st *Stack) CloseTo(depth int) error { return st.closeFrom(st.h, uint64(depth)+1) }

// closeFrom closes the scopes of one end from a depth up. It also returns the unreported refusals
// of a frozen scope and of temporaries, because no other call can (see closeLong).
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

// run unwinds to the mark. Nodes run newest first, each exactly once: a node leaves the chain
// before it runs. Meanwhile the arena refuses.
func (u *unwinding) run() error {
	u.st.unwound++
	// look records the scopes and labels, so it runs before they are gone
	u.st.look()
	if u.h.Asked|u.h.Misused != 0 || u.h.Depth > u.to.depth+1 {
		u.st.peekFrom(u.h, u.to.depth)
	}
	// If the near end was full, record it now: freed temporaries would change the numbers.
	if near := u.st.h; u.h.Back != 0 && near.Asked != 0 {
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

// turn runs nodes until all have run or one panics. The next turn goes on from there, so a million
// panics cost a million turns but no stack. It is the only loop that runs nodes, so it runs the
// most frequent ones, finalizers and owned values, itself (tests/bench, D).
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
				h.Chain = node % arena_c.NodeClass // first: it runs once, even if it panics
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
			h.Odd, u.done = 0, true // the short form of finish
			return
		}
		h.Gen = 0
	}
}

// caught handles a turn that ended early. A goroutine that ends (Goexit) can't be stopped from
// ending, and deferred calls would pile up on its stack. So the other nodes run on a fresh
// goroutine while this one waits.
func (u *unwinding) caught(v any) {
	if v != nil {
		u.fail(fmt.Errorf("%s panicked: %v%s", u.name(), handled(v), u.given()))
		u.release()
	} else if u.release(); !u.rest {
		u.elsewhere()
	}
}

// elsewhere finishes the work of a goroutine that ends. A replacement that ends is also replaced.
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

// finish brings the arena to the mark and lets it allocate again, unless it was frozen.
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
	if n := u.st.settle(h); n != nil { // the misuse of a finalizer, in a scope that stays open
		u.errs.add(n.owed)
		n.owed = nil
	}
	u.st.lookAtUse() // the use fell, and may rise before the next comparison
	u.done = true
	h.Odd &^= arena_c.Closing
	if !u.frozen {
		h.Gen = h.Top().Gen
	}
}

// runOwned closes or runs the Go value of the newest node, if the scope still owns it. A value
// whose code fails, or doesn't return, keeps its place until the error is noted: see release.
func (st *Stack) runOwned(h *arena_c.Scopes, word unsafe.Pointer) error {
	h.Unlink()
	p := st.owned.take(*(*uint64)(word))
	if p == nil {
		return nil
	}
	if p.fn != nil { // run and release, without calls
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
		u.failed(Undeclared)
	}
}

// The word of a pool's node holds the pool's index and, in units of poolNext, the chunk to examine
// next.
const poolNext = 1 << 20

// chunk finalizes one live object of the node's pool. The node stays until no object is live;
// meanwhile Get of the pool returns nil.
func (u *unwinding) chunk(word *uint64) {
	pool := u.st.row.Pool(*word % poolNext)
	next := *word / poolNext
	index := uint64(pool.Count)
	if pool.Kind != 0 {
		pool.Free = 0
		if index = pool.Next(next); index == uint64(pool.Count) && next != 0 {
			index = pool.Next(0) // a finalizer may have taken a chunk that another had put
		}
	}
	if index == uint64(pool.Count) {
		u.h.Unlink()
		pool.Close()
		return
	}
	*word = *word%poolNext + (index+1)*poolNext
	// the chunk counts as put: a Put of it is a double put
	*pool.State(index) = arena_c.ChunkLeaving
	u.st.finalizers++
	if err := classes.run[pool.Kind%classesMax](pool.Chunk(index)); err != nil {
		u.failed(err)
	}
}

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

// closeLong closes the topmost scope after its nodes have run. It adds the errors and ends the
// arenas that the fast path doesn't handle.
func (u *unwinding) closeLong() {
	h, st, end := u.h, u.st, u.h.Cursor
	if h.Odd&arena_c.Building != 0 {
		end = h.Limit
		h.Odd &^= arena_c.Building
		h.MarkDead(h.Cursor, h.Limit-h.Cursor)
	}
	st.settle(h)
	n := st.noteOf(h, h.Depth)
	u.errs.add(n.unreported)
	n.unreported = nil
	if h.Back != 0 || n.owed != nil { // no other call can return the refusals of temporaries
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

func (u *unwinding) failed(err error) { u.fail(fmt.Errorf("%s: %w%s", u.name(), err, u.given())) }

func (u *unwinding) fail(err error) {
	st := u.st
	st.failed++
	u.errs.add(fmt.Errorf("%s: %w", st.ending(u.h), err))
}

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

func (u *unwinding) owned() *owned {
	if object, node := u.h.Newest(u.at); node/arena_c.NodeClass == classOwned {
		return u.st.owned.placeOf(*(*uint64)(object))
	}
	return nil
}

// given returns, in checked builds, the lines that registered the node's Go value; an object's node
// has no space for them.
func (u *unwinding) given() string {
	if p := u.owned(); p != nil {
		return p.site.Tell("given")
	}
	return ""
}

// release forgets the node's Go value after its code failed or didn't return.
func (u *unwinding) release() {
	u.st.finalizers += u.h.RanC()
	if p := u.owned(); p != nil {
		u.st.owned.release(p)
	}
}

// Returns the end of the arena whose live blocks are leaks. It returns nil after a failed function
// or constructor, which may have left blocks live because it failed: its own error is enough.
func (u *unwinding) tells() *arena_c.Scopes {
	if u.to.cursor != 0 || u.st.fails {
		return nil
	}
	return u.h
}

// fail is CloseTo for an owner whose function failed.
func (st *Stack) fail(depth int) error {
	st.fails = true
	defer func() { st.fails = false }() // also if a finalizer ends the goroutine
	return st.CloseTo(depth)
}

// undo unwinds one end of the arena to a mark and returns the finalizers' errors. The mark's scope
// stays open.
func (st *Stack) undo(h *arena_c.Scopes, to mark) error {
	u := unwinding{st: st, h: h, to: to, frozen: h.Depth == to.depth && h.Gen == 0}
	return u.run()
}
