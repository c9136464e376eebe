package scope

import (
	"fmt"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

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
	case classOwned:
		if err := st.runOwned(h, object); err != nil {
			u.failed(err)
			u.release()
		}
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
