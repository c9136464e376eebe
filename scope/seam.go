package scope

import (
	"fmt"
	"iter"
	"sync"
	"time"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
)

// Busy reports whether finalizers of the arena are running, and whether a Do, a Label or a
// constructor is running.
func (st *Stack) Busy() (closing, inside bool) {
	return (st.h.Odd|st.row.Temp.Odd)&arena_c.Closing != 0, st.inside != 0
}

// Freeze ends allocation in the topmost scope, whose objects stay until it closes. Call Left first.
func (st *Stack) Freeze() {
	st.look()
	_ = st.take(st.h, st.h.Depth)
	st.h.Freeze()
}

// Keeps reports whether the size bytes at p outlive the load. They do if they are outside the
// arena, or below the cursor of the topmost scope.
func (st *Stack) Keeps(p unsafe.Pointer, size uint64) bool {
	h := st.h
	at := h.Offset(p)
	return at-h.Start >= st.row.Size() || at < h.Cursor || size == 0 && at == h.Cursor
}

// Clear fills an empty arena with zeros: all its bytes, or only the bytes that the arena has used
// since it was made or last forgot its peaks.
func (st *Stack) Clear(all bool) {
	if all {
		arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), st.h.Start), uintptr(st.row.Size()))
		return
	}
	st.clearUsed(st.h.Start, st.row.End)
}

// clearUsed fills the bytes of a free range that the arena has used, from either end, with zeros.
// The other bytes stay untouched, so that they cost no page.
func (st *Stack) clearUsed(from, end uint64) {
	used := max(st.peakEver, st.row.Peak())
	low := min(st.h.Start+used, end)        // no near allocation was above it
	high := max(st.row.End-used, from, low) // and no far one below this
	if from < low {
		arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), from), uintptr(low-from))
	}
	if high < end {
		arena_c.Zero(unsafe.Add(unsafe.Pointer(st.h), high), uintptr(end-high))
	}
}

// Row returns the headers of the arena and its pools.
func (st *Stack) Row() *arena_c.Row { return st.row }

// Finalizers returns the number of finalizers that have run in the arena.
func (st *Stack) Finalizers() uint64 {
	if st.caches == nil {
		return st.finalizers
	}
	return st.finalizers + st.caches.finalizers.Load()
}

// Node describes work that a scope does when it closes. A label, or a pool of plain data, has no
// name: it is identified by the bytes of its node, which don't change while the arena is frozen.
type Node struct {
	Name     string
	At, Size uint64 // offset and size of the node
	Place    uint64 // of an owned value, for OwnedAt
}

// NodesSince returns the nodes of the topmost scope from an offset on, newest first.
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

// OwnedAt describes an owned value; it returns "" if the value was closed, run or cancelled.
func (st *Stack) OwnedAt(place uint64) string {
	if p := st.owned.at(place); p != nil {
		return p.what()
	}
	return ""
}

// OwnedLives reports whether the scope still owns a value.
func (st *Stack) OwnedLives(place uint64) bool { return st.owned.at(place) != nil }

// PoolObject returns the finalizer of a pool's objects, "finalizer of T", or "" if they have none.
func (*Stack) PoolObject(p *arena_c.Pool) string { return classes.name[p.Kind%classesMax] }

// Left returns the errors that a function leaves in the open scopes. The first is a misuse, if the
// function left scopes open from a depth up. The second is the refusal that wasn't reported yet, of
// the lowest scope that has one. Left marks the refusal as reported.
func (st *Stack) Left(depth int) error {
	return joined(st.leftOpen(depth), st.takeSince(opened{}))
}

// LastFull returns the last full error of the arena that was reported, or nil.
func (st *Stack) LastFull() *FullError { return st.lastFull }

// Fulls returns the number of full errors of the arena that were reported.
func (st *Stack) Fulls() int { return st.fulls }

// Empty closes all scopes, as CloseTo does, and returns the errors. For messages it notes the
// operation, such as "Load", the region on which the operation was called, such as "room 3", and
// the place of the call. If the operation failed, live blocks in arenas don't count as leaks.
func (st *Stack) Empty(what, region string, site arena_c.Site, failed bool) error {
	if st.h.Depth != 0 {
		st.emptied.set(emptied{what, region, failed, time.Now(), site, st.h.Next})
	}
	if failed {
		return st.fail(0)
	}
	return st.CloseTo(0)
}

// emptied describes the last Empty of an arena.
type emptied struct {
	what   string // "Load"
	region string // for which the operation was called
	failed bool
	when   time.Time
	site   arena_c.Site
	last   uint64 // the generation of the scope opened last; 0: the arena was never emptied
}

// by returns the operation: "Load of region room 3".
func (e *emptied) by() string {
	by := e.what + " of region " + e.region
	if e.failed {
		by += " that failed"
	}
	return by
}

// lastEmptied is an emptied that any goroutine may read. It is a value with a lock, so that a load
// makes no Go allocation.
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

// ended describes the operation that last emptied the arena. It returns "" if the near end's scope
// or pool with that generation was opened later. Any goroutine may call it.
func (l lost) ended(gen uint64) string {
	e := &l.emptied
	if gen > e.last || numberOf(gen) != l.made { // opened later, or by another stack
		return ""
	}
	return fmt.Sprintf("; %s was last emptied %v ago, by a %s", l.arena, time.Since(e.when).Round(time.Millisecond), e.by()) +
		e.site.Tell(e.by())
}

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

// ObjectHandles makes a pool of n objects in s whose values are named by handles, and also returns
// the finalizer. Put of the pool doesn't call the finalizer. The caller calls it once for each
// object, on any goroutine. A chunk in the state ChunkLeaving isn't finalized when s closes.
func ObjectHandles[T any](s Scope, m ObjectMaker[T], n int) (HandlePool[T], func(*T) error) {
	m.plain.declared()
	checkHandles(n)
	pool, caches := HandlePool[T]{openPool[T](s, n, m.class, true)}, stackOf(s.h).theCaches()
	return pool, func(x *T) error {
		caches.finalizers.Add(1)
		return m.fin(x)
	}
}

// NamesOf returns the names of the budget, the arena and the scope s, for messages. pre: s is
// alive.
func NamesOf(s Scope) (budget, arena, scope string) {
	st := stackOf(s.h)
	return st.Budget, st.Arena, st.nameOf(s.h, s.h.Find(s.gen))
}

// KeysFull returns the full error of a StringMap in s that has all of its n keys. pre: s is alive,
// or zero for a heap in no budget.
func KeysFull(s Scope, n int) *FullError {
	if s == (Scope{}) { // on a heap in no budget
		return &FullError{What: "keys", Asked: 1, Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMapOn"}
	}
	st := stackOf(s.h)
	return &FullError{Budget: st.Budget, Arena: st.Arena, Scope: st.nameOf(s.h, s.h.Find(s.gen)), What: "keys", Asked: 1,
		Size: uint64(n), Need: uint64(n) + 1, Key: "n of NewStringMap"}
}

// Holding returns the open scope that contains p, and reports whether p is in a state. ok is false
// if p is in no budget. A p in a budget but in no open scope panics.
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
				inState = st.watch != nil || at-st.rooms.from < st.rooms.to-st.rooms.from
				st.rooms.mu.Unlock() // not deferred: a defer in a loop allocates
				return Scope{h, h.Record(depth).Gen}, inState, true
			}
		}
	}
	panic(bug("a container on a heap in %s whose scope is closed", st.Arena))
}

// WasClosed returns the misuse of the closed scope s, with a text that stays valid when the budget
// closes. For the zero Scope it is the misuse of a container that was freed.
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

// EachOwned calls fn with a description of each owned Go value, and the place that registered it.
func (st *Stack) EachOwned(fn func(what string, given *arena_c.Site)) {
	for i := range st.owned.places[:st.owned.used] {
		if p := &st.owned.places[i]; p.held.place != 0 {
			fn(p.what(), &p.site)
		}
	}
}

// A frame without finalizers and errors ends without the slow path of Open and Close.

// Changes returns a number that changes when a scope opens, nodes run, or a full error is reported.
// While the number stays the same and the arena or its chain is empty, only the arena's cursor can
// change.
func (st *Stack) Changes() uint64 { return st.h.Next + st.unwound + uint64(st.fulls) }

// plain reports whether exactly one scope is open, and its Close has no work and no error.
func (st *Stack) plain() bool {
	h := st.h
	return h.Depth == 1 && len(st.seen) != 0 && h.Chain|h.Asked|h.Misused|st.row.Temp.Depth == 0 && h.Odd&^oddNames == 0
}

// NextPlain freezes the only scope of st, replaces the scope of next by a new one, and returns that
// scope and the used bytes of st. It returns false and changes nothing if the scope of st or of
// next has finalizers or errors, and in checked builds.
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

// CloseTemp closes all temporaries. It returns the errors of the temporaries. It also returns the
// errors of constructors in the topmost scope that panicked, if no call has returned these errors.
func (st *Stack) CloseTemp() error {
	err := st.closeFrom(&st.row.Temp, 1)
	n := &st.notes[st.h.Depth]
	err, n.lost = joined(err, n.lost), nil
	return err
}

// PlaceOf returns the canonical offset of p from the arena's first byte.
func (st *Stack) PlaceOf(p unsafe.Pointer) uint64 { return st.h.Offset(p) - st.h.Start }

// MarkAt returns the offset from the arena's first byte where the scope at a depth began.
// pre: depth < Depth.
func (st *Stack) MarkAt(depth int) uint64 { return st.h.Record(uint64(depth)+1).Mark - st.h.Start }

// HeaderOf and HeaderOfHandles return the header of a pool.
func HeaderOf[T any](p Pool[T]) *arena_c.Pool              { return p.header }
func HeaderOfHandles[T any](p HandlePool[T]) *arena_c.Pool { return p.header }
