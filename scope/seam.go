package scope

import (
	"fmt"
	"iter"
	"sync"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Busy says whether finalizers of the arena are running, and whether a Do or a constructor is at work on it.
func (st *Stack) Busy() (closing, inside bool) {
	return (st.h.Odd|st.row.Temp.Odd)&arena_c.Closing != 0, st.inside != 0
}

// Freeze ends allocation in the topmost scope: what is there stays until it closes. Who freezes has asked for Left.
func (st *Stack) Freeze() {
	st.look()
	_ = st.take(st.h, st.h.Depth)
	st.h.Freeze()
}

// Keeps says whether the address outlives the load: it lies outside the arena, or below the cursor of
// the topmost scope.
func (st *Stack) Keeps(p unsafe.Pointer, size uint64) bool {
	h := st.h
	at := h.Offset(p)
	return at-h.Start >= st.row.Size() || at < h.Cursor || size == 0 && at == h.Cursor
}

// Clear fills an empty arena with zeros.
func (st *Stack) Clear() {
	arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), st.h.Start), uintptr(st.row.Size()))
}

// Row is the arena's headers and those of its pools.
func (st *Stack) Row() *arena_c.Row { return st.row }

// Finalizers is how many finalizers have run, of whatever was in the arena.
func (st *Stack) Finalizers() uint64 { return st.finalizers }

// Node is what must happen when a scope closes. What only counts, a label or a pool of plain data, has
// no name, and is known by the bytes of its node, which stay as they are while the arena is frozen.
type Node struct {
	Name     string
	At, Size uint64 // offset and size of these bytes
	Place    uint64 // of an owned value: see OwnedAt
}

// NodesSince gives what must happen when the topmost scope of the arena closes, and lies from an offset
// on: newest first.
func (st *Stack) NodesSince(from uint64) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for at := st.h.Chain; at >= from && at != 0; {
			object, node := st.h.Newest(at)
			class, size := node/arena_c.NodeClass, uint64(0)
			place := uint64(0)
			name := "a " + classes.name[class%classesMax]
			switch class {
			case arena_c.ClassC:
				name, size = "a finalizer of C", 2*uint64(unsafe.Sizeof(object))
			case arena_c.ClassPool:
				size = 8
				name = st.PoolObject(st.row.Pool(*(*uint64)(object) % poolNext))
				if name != "" {
					name = "a pool with a " + name
				}
			case arena_c.ClassTemp:
				name, size = "temporaries", 8
			case classOwned:
				name, size, place = "an owned value", 8, *(*uint64)(object)
			case classLabel:
				name, size = "", uint64(unsafe.Sizeof(labelNode{}))
			case classSlice:
				size = uint64(unsafe.Sizeof(sliceNode{}))
				name = "a slice with a " + classes.name[(*sliceNode)(object).class%classesMax]
			}
			if !yield(Node{name, at - arena_c.NodeSize, arena_c.NodeSize + size, place}) {
				return
			}
			at = node % arena_c.NodeClass
		}
	}
}

// OwnedAt says what an owned value is; "" when it was closed, run or cancelled.
func (st *Stack) OwnedAt(place uint64) string {
	if p := st.owned.at(place); p != nil {
		return p.what()
	}
	return ""
}

// OwnedLives is OwnedAt for who needs no words.
func (st *Stack) OwnedLives(place uint64) bool { return st.owned.at(place) != nil }

// PoolObject names what the objects of one of its pools have, "finalizer of T"; "" where they have none.
func (*Stack) PoolObject(p *arena_c.Pool) string { return classes.name[p.Kind%classesMax] }

// Left is what speaks against the end of what ran in the open scopes: scopes from a depth up that were left open, and what
// a Try... met in any, which is told with this.
func (st *Stack) Left(depth int) error {
	return joined(st.leftOpen(depth), st.takeSince(opened{}))
}

// LastFull is the last full that the arena told of, to whomever, or nil.
func (st *Stack) LastFull() *FullError { return st.lastFull }

// Fulls is how many fulls the arena told of, to whomever.
func (st *Stack) Fulls() int { return st.fulls }

// Empty is CloseTo of all that is open. Who comes with what was there is told by what, "Load", of which region, "room 3",
// and where that was called. If what made it failed, blocks that live in arenas are no leaks.
func (st *Stack) Empty(what, region string, site arena_c.Site, failed bool) error {
	if st.h.Depth != 0 {
		st.emptied.set(emptied{what, region, failed, time.Now(), site, st.h.Next})
	}
	if failed {
		return st.fail(0)
	}
	return st.CloseTo(0)
}

// emptied is how an arena ended last.
type emptied struct {
	what   string // "Load"
	region string // where that began
	failed bool
	when   time.Time
	site   arena_c.Site
	last   uint64 // the generation of what was opened last; 0: it was never emptied
}

// by is what emptied it: "Load of region room 3".
func (e *emptied) by() string {
	by := e.what + " of region " + e.region
	if e.failed {
		by += " that failed"
	}
	return by
}

// lastEmptied is that for any goroutine. It is a value behind a lock: a load makes no Go allocation.
type lastEmptied struct {
	mu   sync.Mutex
	last emptied
}

func (l *lastEmptied) set(e emptied) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = e
}

func (l *lastEmptied) get() emptied {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// ended says who emptied the arena since the scope or pool of that generation was opened at the near end; nothing when
// nobody did: it was closed where it was opened. Any goroutine may ask.
func (l lost) ended(gen uint64) string {
	e := &l.emptied
	if gen > e.last || numberOf(gen) != l.made { // another budget had the headers then
		return ""
	}
	return fmt.Sprintf("; the last to empty %s was a %s, %v ago", l.arena, e.by(), time.Since(e.when).Round(time.Millisecond)) +
		e.site.Tell(e.by())
}

// endedPool is ended of a pool, by its generation.
func endedPool(gen uint64) string {
	if all := registry.stacks.Load(); all != nil {
		for i := range *all {
			if st := (*all)[i].Load(); st != nil && st.made == numberOf(gen) {
				return lost{st.made, st.Arena, st.emptied.get(), nil}.ended(gen)
			}
		}
	}
	l, _ := lostOf(gen)
	return l.ended(gen)
}

// KeysFull is the full of a StringMap in s that has all of its n keys. pre: s is alive.
func KeysFull(s Scope, n int) *FullError {
	if s == (Scope{}) { // on a heap that lies in no budget
		return &FullError{What: "keys", Asked: 1, Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMapOn"}
	}
	st := stackOf(s.h)
	return &FullError{Budget: st.Budget, Arena: st.Arena, Scope: st.nameOf(s.h, s.h.Find(s.gen)), What: "keys", Asked: 1,
		Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMap"}
}

// Holding is the open scope that p lies in, and whether that is a place in a state. ok is false where p lies in no budget. A p
// in a budget that no open scope has is a caller's bug and panics.
func Holding(p unsafe.Pointer) (s Scope, inState, ok bool) {
	st := stackWith(p)
	if st == nil {
		return Scope{}, false, false
	}
	for _, h := range st.ends() {
		at := h.Offset(p)
		for depth := uint64(1); depth <= h.Depth; depth++ {
			if from, end := st.edgesOf(h, depth); at-from < end-from {
				st.rooms.mu.Lock()
				defer st.rooms.mu.Unlock()
				return Scope{h, h.Record(depth).Gen}, st.watch != nil || at-st.rooms.from < st.rooms.to-st.rooms.from, true
			}
		}
	}
	panic(bug("a container on a heap in %s whose scope is closed", st.Arena))
}

// WasClosed is the misuse of s, which is closed, in words that stay as they are when its budget closes. Of the zero Scope it is
// that of a container that was freed.
func WasClosed(s Scope) error {
	if s == (Scope{}) {
		return &Misuse{"use of a container that was freed", true}
	}
	if st := stackOf(s.its()); st == nil || st.made != numberOf(s.gen) {
		if l, ok := lostOf(s.gen); ok {
			return l.misuse("use of", s.gen)
		}
	}
	return s.misuse("use of")
}

// EachOwned calls fn with each Go value that is held: what it is, and where it was given.
func (st *Stack) EachOwned(fn func(what string, given *arena_c.Site)) {
	for i := range st.owned.places[:st.owned.used] {
		if p := &st.owned.places[i]; p.held.place != 0 {
			fn(p.what(), &p.site)
		}
	}
}

// A frame in which there is nothing to run and nothing to tell ends without the long way of Open and
// Close.

// Changes moves on whenever a scope opens, nodes run, or something is full. While it stays, and the arena is empty or no
// node is in its chain, it differs from what it was by its cursor alone.
func (st *Stack) Changes() uint64 { return st.h.Next + st.unwound + uint64(st.fulls) }

// plain says that one scope is open, and that there is nothing to run or to tell when it closes.
func (st *Stack) plain() bool {
	h := st.h
	return h.Depth == 1 && len(st.seen) != 0 && h.Chain|h.Asked|h.Misused|st.row.Temp.Depth == 0 && h.Odd&^oddNames == 0
}

// NextPlain freezes the only scope, whose bytes it gives, and opens that of the next buffer anew.
// False, and nothing has changed: in one of the two there is something to run or to tell.
func (st *Stack) NextPlain(next *Stack) (s Scope, used uint64, ok bool) {
	if arena_c.Checked || !st.plain() || !next.plain() {
		return Scope{}, 0, false
	}
	h := st.h
	used = h.Cursor - h.Start
	if len(st.seen) != 1 {
		st.look()
	}
	st.moved(used, arena_c.Site{})
	h.Gen = 0
	h = next.h
	next.moved(0, arena_c.Site{})
	h.Close(h.Top())
	gen := h.Open()
	next.notes[1].gen, next.seen[0].gen = gen, gen
	return Scope{h, gen}, used, true
}

// CloseTemp closes the temporaries, if there are any. Beside their errors it gives those that nobody got yet: of the parts
// of constructors in the topmost scope that were unwound.
func (st *Stack) CloseTemp() error {
	err := st.closeFrom(&st.row.Temp, 1)
	n := &st.notes[st.h.Depth]
	err, n.lost = joined(err, n.lost), nil
	return err
}

// PlaceOf is how far behind the arena's first byte p is accounted.
func (st *Stack) PlaceOf(p unsafe.Pointer) uint64 { return st.h.Offset(p) - st.h.Start }

// MarkAt is how far behind the arena's first byte the scope at a depth began. pre: depth < Depth.
func (st *Stack) MarkAt(depth int) uint64 { return st.h.Record(uint64(depth)+1).Mark - st.h.Start }

// HeaderOf is the header of a pool, and HeaderOfHandles of one with handles.
func HeaderOf[T any](p Pool[T]) *arena_c.Pool              { return p.header }
func HeaderOfHandles[T any](p HandlePool[T]) *arena_c.Pool { return p.header }
