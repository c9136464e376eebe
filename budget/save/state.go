package save

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// State is what a tick changes of one load of a region.
type State struct {
	saved   *budget.State
	own     scope.Scope // of the load
	mark    uint64      // where it begins; offsets count from the arena's header
	end     uint64      // and ends; 0: not yet
	root    reflect.Type
	of      []subject // that its play depends on
	rebuild []func() error
	reads   []span   // before the state: what links may lead to
	values  []values // in it, which Go keeps
	verify  []func(View) error
	view    viewed       // while they are called
	pools   []pool       // that lie in it, by address
	made    []scope.Made // of a state region, in checked builds: all that lies in it
	nodes   []scope.Node // of a state region: that lie in it, and never change
	chain   []byte       // their bytes, one after the other
	tenants []tenant     // that lie in it, by offset
	library *room        // of which nobody can check what is in it, or nil
	trusted bool         // Authenticated
	broken  error        // of an allocator in it that isn't whole
	owned   []owned      // Go values that are kept in it: not of a state region
	alive   int          // of owned: the first ones
	ring    *Ring        // the last one; nil: none was whole yet
	still   still        // what lies before it, in checked builds
	links   *links       // nil: nobody asked for it yet
}

// pool is a pool in a state.
type pool struct {
	header *arena_c.Pool
	of     reflect.Type // what it is of, in a state region; nil: C made it
	index  int          // of the header
	first  uint64       // from the mark to chunk 0
}

// states are the states of the pool's chunks, the last chunk's first, in the bytes of the state.
func (p *pool) states(bytes []byte) []byte {
	return bytes[p.first-uint64(p.header.Count) : p.first]
}

// Begin says that what r's load makes in s from here on is state, and makes its root: a zeroed T,
// from which all that isn't in a pool is found by arena.Ptr and arena.Slice, counted from r.Base. s
// is the scope that the load's function was given; with another Begin panics. So does a T that a
// state region may not have, with every field that is at fault. One load has one state.
func Begin[T any](r budget.Region, s scope.Scope, root scope.Maker[T]) (*State, *T) {
	saved, err := budget.StateOf(r, s)
	if err != nil {
		panic(err)
	}
	st := &State{saved: saved, own: s, root: reflect.TypeFor[T]()}
	if err := st.admits(st.root); err != nil {
		panic(err)
	}
	if saved.IsState() {
		saved.Stack().Watch()
	}
	st.mark = (st.header().Cursor + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
	first := root.SliceAligned(s, 1, arena_c.LineSize)
	return st, &first[0]
}

// Rebuild has fn make anew what Go keeps of the state: slices whose length is state, pointers into
// pools. It runs now, and after each Restore. Its error is Restore's.
func (st *State) Rebuild(fn func() error) error {
	st.rebuild = append(st.rebuild, fn)
	return fn()
}

// Authenticated is the program's promise that each snapshot that comes from outside, by [Ring.Apply]
// or [Ring.Read], was made by this process, or by one in which all that the libraries with an
// allocator in the state keep there, addresses and function pointers, means the same; and that nobody
// could have changed it since: the program has checked a signature or a MAC. Without it a state that
// has such an allocator, an arena.Shared or one that C made by itself, is good for Take and Restore,
// and refused when it comes from outside, since nobody can check what a library keeps. All that can
// be checked is checked with it, too.
func (st *State) Authenticated() { st.trusted = true }

// Size is how many bytes the state has: 0 before NewRing.
func (st *State) Size() uint64 {
	if st.end == 0 {
		return 0
	}
	return st.end - st.mark
}

func (st *State) header() *arena_c.Scopes { return &st.saved.Stack().Row().Arena }

// bytes are where the state is accounted: where it lies, but in checked and asan builds.
func (st *State) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(st.header()), st.mark)), st.end-st.mark)
}

// complete ends the state: s is the scope that the ring is made in.
func (st *State) complete(s scope.Scope) error {
	switch err := st.saved.Check(); {
	case st.ring != nil && st.ring.alive():
		return fmt.Errorf("save: BUG: the state of region %s has a ring already", st.saved.Name())
	case st.header().Odd&arena_c.Building != 0:
		return fmt.Errorf("save: BUG: a Builder is at work in region %s, and its values are in no state "+
			"yet: call Done before NewRing", st.saved.Name())
	case s != st.own && err != nil:
		return fmt.Errorf("save: BUG: NewRing in another scope than the load's own: %w", err)
	}
	if st.broken != nil {
		return st.broken
	}
	if st.end != 0 { // a ring that isn't there any more, or wasn't whole
		return st.plain()
	}
	st.end = st.header().Cursor
	var types map[*arena_c.Pool]reflect.Type
	if st.saved.IsState() {
		var kept []scope.Tenant
		types, kept, st.made = st.saved.Stack().Watched()
		st.addKept(kept)
		st.broken = st.findRooms()
	}
	st.findPools(types)
	if st.broken == nil {
		st.broken = st.roomsInChunks()
	}
	st.still.begin(st)
	if st.broken != nil {
		return st.broken
	}
	return st.plain()
}

func (st *State) findPools(types map[*arena_c.Pool]reflect.Type) {
	row := st.saved.Stack().Row()
	from := unsafe.Add(unsafe.Pointer(&row.Arena), st.mark)
	for i := range row.Pools {
		h := row.Pool(i)
		first := uint64(uintptr(unsafe.Pointer(h))) + h.Chunks - uint64(uintptr(from))
		if h.Gen != 0 && first <= st.end-st.mark {
			st.pools = append(st.pools, pool{h, types[h], int(i), first})
		}
	}
	slices.SortFunc(st.pools, func(a, b pool) int { return int(int64(a.first - b.first)) })
}

// plain refuses what a state region can't have in its state.
func (st *State) plain() error {
	if !st.saved.IsState() {
		st.findOwned()
		return nil
	}
	st.nodes, st.chain = st.nodes[:0], st.chain[:0]
	for node := range st.saved.Stack().NodesSince(st.mark) {
		if node.Name != "" {
			return fmt.Errorf("save: BUG: %s in the state of region %s: what ends by a finalizer can't be "+
				"undone, nor sent; make it before Begin, or after NewRing", node.Name, st.saved.Name())
		}
		st.nodes = append(st.nodes, node)
		bytes := unsafe.Slice((*byte)(st.header().At(node.At)), node.Size)
		st.chain = append(st.chain, bytes...)
	}
	return st.admitsAll()
}

func startOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
