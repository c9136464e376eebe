package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// special runs the newest node, which is no type's.
func (u *unwinding) special(object unsafe.Pointer, until uint64) {
	h, st := u.h, u.st
	switch u.class {
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

// runOwned ends the Go value that a place names, if it is there still.
func (u *unwinding) runOwned(place uint64) {
	p := u.st.owned.take(place)
	if p == nil {
		return
	}
	u.owned = p
	u.st.finalizers += p.finalizers()
	if err := p.run(); err != nil {
		u.failed(err)
	}
	u.owned = nil
	u.st.owned.release(p)
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
	u.class = uint64(pool.Kind)
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
	u.class = n.class
	if err := classes.run[n.class%classesMax](unsafe.Add(object, n.front+n.left*n.stride)); err != nil {
		u.failed(err)
	}
}

// closeLong closes the topmost scope, whose nodes have run, tells what else there is to tell, and counts.
func (u *unwinding) closeLong() {
	h, st := u.h, u.st
	if h.Odd&arena_c.Building != 0 {
		h.Odd &^= arena_c.Building
		h.MarkDead(h.Cursor, h.Limit-h.Cursor)
	}
	st.settle(h)
	n := st.noteOf(h, h.Depth)
	u.errs.add(n.lost)
	u.errs.add(n.err)
	if h.Back != 0 { // nobody else can ask for what temporaries met
		u.errs.add(st.remembered(h, h.Depth))
	}
	n.lost, n.err = nil, nil
	if h.Back != 0 {
		h.TempClose()
		return
	}
	h.Close(h.Top())
	if h.Depth == 0 {
		h.Odd &^= oddNoted
	}
}

// failed notes what the node that runs returned.
func (u *unwinding) failed(err error) { u.fail(fmt.Errorf("%s: %w%s", u.name(), err, u.given())) }

func (u *unwinding) fail(err error) {
	st := u.st
	st.failed++
	u.errs.add(fmt.Errorf("%s, scope %q: %w", st.config.Arena, st.nameOf(u.h, u.h.Depth), err))
}

// name is what runs.
func (u *unwinding) name() string {
	switch {
	case u.owned != nil:
		return u.owned.name()
	case u.class >= classFirst:
		return classes.name[u.class%classesMax]
	case u.class == arena_c.ClassC:
		return "a finalizer of C"
	}
	return fmt.Sprintf("a node of class %d", u.class)
}

// given says in checked builds where the Go value that runs was given; objects have no place for that.
func (u *unwinding) given() string {
	if u.owned == nil {
		return ""
	}
	return u.owned.site.Tell("given")
}

// release forgets the Go value that ran.
func (u *unwinding) release() {
	u.st.finalizers += u.h.RanC()
	if u.owned != nil {
		u.st.owned.release(u.owned)
		u.owned = nil
	}
}
