package scope

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// class is a kind of finalizer. Nodes in the chain name it by index.
type class struct {
	name string
	run  func(unsafe.Pointer) error
}

const (
	classC    = arena_c.ClassC
	classPool = arena_c.ClassPool // what is the pool's index in the row; above poolNext the chunk to look at next
	classHeld = 3                 // what names a place of the stack's held table
	poolNext  = 1 << 20
)

// classes grows where types are declared; it is copied then, so that reading it needs no lock.
var classes struct {
	sync.Mutex
	list atomic.Pointer[[]class]
}

func newClass(name string, run func(unsafe.Pointer) error) uint64 {
	classes.Lock()
	defer classes.Unlock()
	list := make([]class, classHeld+1)
	if old := classes.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = append(list, class{name, run})
	classes.list.Store(&list)
	return uint64(len(list) - 1)
}

func classAt(index uint64) *class { return &(*classes.list.Load())[index] }

// node takes 16 bytes for a finalizer.
func (s Scope) node() *arena_c.Node {
	before := s.slot.Refused
	node := s.slot.NewNode(s.generation())
	if node == nil && s.growTemp(uint64(unsafe.Sizeof(arena_c.Node{})), 8, before) {
		node = s.slot.NewNode(s.generation())
	}
	return node
}

// unwind runs the finalizers of slot that are newer than the node at `until`, newest first, each exactly once: a node
// leaves the chain before its function runs. A panic becomes an error; after it, and while Goexit ends the goroutine, the
// rest still has its turn. closes says that the caller closes the scope next: after a Goexit it can't, so unwind does.
func (st *Stack) unwind(slot *arena_c.Linear, until uint64, errs *error, closes bool) {
	c, finished := uint64(0), false
	defer func() {
		if finished {
			return
		}
		v := recover()
		if v == nil && closes {
			defer st.finishClose(slot) // deferred: the rest may end the goroutine again
		}
		if v != nil {
			st.fail(slot, errs, fmt.Errorf("%s panicked: %v", classAt(c).name, v))
		}
		st.unwind(slot, until, errs, closes && v != nil)
	}()
	for slot.Chain != until {
		node := (*arena_c.Node)(slot.At(slot.Chain))
		var object unsafe.Pointer
		switch c = node.Class(); c {
		case classC:
			st.finalizers += slot.RunC(until)
			continue
		case classHeld:
			last, _ := slot.Unlink()
			st.runHeld(slot, last.What, errs)
			continue
		case classPool:
			pool := st.row.Pool(node.What % poolNext)
			if object = nextChunk(pool, node); object == nil {
				slot.Unlink()
				pool.Close()
				continue
			}
			c = pool.Kind
		default:
			last, _ := slot.Unlink()
			object = slot.At(last.What)
		}
		st.finalizers++
		if err := classAt(c).run(object); err != nil {
			st.fail(slot, errs, fmt.Errorf("%s: %w", classAt(c).name, err))
		}
	}
	finished = true
}

// runHeld runs what the word names, if that is still held. Its failures name it, and say in checked builds where it was given;
// objects have no place for that.
func (st *Stack) runHeld(slot *arena_c.Linear, word uint64, errs *error) {
	h := st.held.release(word)
	st.finalizers += h.finalizers()
	defer func() {
		if v := recover(); v != nil {
			st.fail(slot, errs, fmt.Errorf("%s panicked: %v%s", h.name(), v, h.site.Tell("given")))
		}
	}()
	if err := h.run(); err != nil {
		st.fail(slot, errs, fmt.Errorf("%s: %w%s", h.name(), err, h.site.Tell("given")))
	}
}

// nextChunk is the next live chunk of a pool whose objects have a finalizer, or nil. The node stays in the chain and goes
// past the chunk before its finalizer runs.
func nextChunk(pool *arena_c.Pool, node *arena_c.Node) unsafe.Pointer {
	if pool.Kind == 0 {
		return nil
	}
	index := pool.Next(node.What / poolNext)
	if index >= pool.Count() {
		return nil
	}
	node.What = node.What%poolNext + (index+1)*poolNext
	*pool.State(index) = arena_c.ChunkLeaving // it counts as put while its own runs: who puts it is told so
	return pool.Chunk(index)
}

func (st *Stack) fail(slot *arena_c.Linear, errs *error, err error) {
	st.failed++
	*errs = errors.Join(*errs, fmt.Errorf("%s, scope %q: %w", st.config.Arena, st.scopeName(slot), err))
}
