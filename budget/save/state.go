package save

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/internal/seam"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

var stateOf = seam.StateOf.(func(budget.Region, scope.Scope) (*seam.State, error))

// State is the memory of a load that the game's ticks change: the bytes allocated between [Begin]
// and [NewRing].
type State struct {
	saved   *seam.State
	own     scope.Scope // of the load
	mark    uint64      // start; offsets count from the arena's header
	end     uint64      // 0 before NewRing
	root    reflect.Type
	of      []subject // data that its play depends on
	rebuild []func() error
	reads   []span   // ranges before it that links may lead to
	values  []values // values in it that Go code keeps
	verify  []func(View) error
	view    viewed       // valid while verify runs
	pools   []pool       // by address
	made    []stack.Made // in checked builds, of a state region
	nodes   []stack.Node // of a state region; they never change
	chain   []byte       // the nodes' bytes
	tenants []tenant     // by offset
	heaps   []packed     // by offset
	library *room        // an allocator in it with unchecked contents, or nil
	trusted bool
	broken  error   // a damaged allocator
	owned   []owned // Go values whose nodes are in it; not in a state region
	alive   int     // number of live owned values, which come first
	ring    *Ring   // the latest, or nil
	version uint32  // the program's, or 0
	changes []Change
	names   []named
	enums   map[reflect.Type][]enumerator
	still   still
	stills  []func(replace bool) error // of the containers whose values may be in use
	links   *links                     // nil until the first check
}

type pool struct {
	header *arena_c.Pool
	of     reflect.Type // in a state region; nil if C made it
	index  int          // of the header
	first  uint64       // from the mark to chunk 0
	name   string       // of State.Name, or ""
}

// states returns the states of the pool's chunks, the last chunk's first, in the bytes of the
// state.
func (p *pool) states(bytes []byte) []byte {
	return bytes[p.first-uint64(p.header.Count) : p.first]
}

// Begin begins the state of a load: later allocations in s belong to the state. Begin returns the
// state and the state's root, a zeroed T. The root may lead to the other values by arena.Ptr and
// arena.Slice, whose offsets count from r.Base. For values to which only Go code refers, call
// [Values]. Begin panics if s isn't the scope of the load's function, if the load has a state
// already, or if a state region can't hold a T. In the last case the error names every bad field.
// If s is full, Begin unwinds.
func Begin[T any](r budget.Region, s scope.Scope, root scope.Maker[T]) (*State, *T) {
	saved, err := stateOf(r, s)
	if err != nil {
		panic(err)
	}
	st := &State{saved: saved, own: s, root: reflect.TypeFor[T]()}
	if err := st.admits(st.root); err != nil {
		panic(err)
	}
	if saved.IsState {
		saved.Stack.Watch()
	}
	st.mark = (st.header().Cursor + arena_c.LineSize - 1) &^ (arena_c.LineSize - 1)
	first := root.SliceAligned(s, 1, arena_c.LineSize)
	return st, &first[0]
}

// Rebuild registers fn, which renews Go values derived from the state, such as pointers into pools
// and slices whose length is in the state. Rebuild calls fn at once, and each Restore that changes
// the state calls fn again. The functions run in the order of registration, up to the first error.
// Rebuild and Restore return this error.
func (st *State) Rebuild(fn func() error) error {
	st.rebuild = append(st.rebuild, fn)
	return fn()
}

// Authenticated promises that snapshots from outside, passed to [Ring.Apply] or [Ring.Read], are
// authentic. Without this promise, Apply and Read refuse a snapshot of a state with a C library's
// allocator (an arena.Shared, a heap that C made, or a heap of [State.Library]), because a
// library's data can't be checked. The program promises two facts about each snapshot:
//
//   - The program checked a signature or a MAC, so no one has changed the snapshot.
//   - The snapshot is from this process, or from one in which the addresses and function pointers
//     in the library's data mean the same.
//
// All other checks still run.
func (st *State) Authenticated() { st.trusted = true }

// Size returns the size of the state in bytes, or 0 before NewRing.
func (st *State) Size() uint64 {
	if st.end == 0 {
		return 0
	}
	return st.end - st.mark
}

func (st *State) header() *arena_c.Scopes { return &st.saved.Stack.Row().Arena }

// bytes returns the state's accounted range. In checked and asan builds its values are elsewhere.
func (st *State) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(st.header()), st.mark)), st.end-st.mark)
}

// complete ends the state. s is the ring's scope.
func (st *State) complete(s scope.Scope) error {
	switch err := st.saved.Check(); {
	case st.ring != nil && st.ring.alive():
		return fmt.Errorf("save: BUG: the state of region %s has a ring already", st.saved.Name)
	case st.header().Odd&arena_c.Building != 0:
		return fmt.Errorf("save: BUG: a Builder is at work in region %s, and its values are in no state "+
			"yet: call Done before NewRing", st.saved.Name)
	case s != st.own && err != nil:
		return fmt.Errorf("save: BUG: NewRing in another scope than the load's: %w", err)
	}
	if st.broken != nil {
		return st.broken
	}
	if st.end != 0 { // an earlier ring is gone, or NewRing panicked
		return st.plain()
	}
	st.end = st.header().Cursor
	var types map[*arena_c.Pool]reflect.Type
	if st.saved.IsState {
		var kept []stack.Tenant
		types, kept, st.made = st.saved.Stack.Watched()
		st.addKept(kept)
		st.broken = st.findRooms()
		st.findLibraries()
	}
	st.findPools(types)
	if st.broken == nil {
		st.broken = st.roomsInChunks()
	}
	if st.broken == nil {
		st.broken = st.nameAll()
	}
	st.still.begin(st)
	if st.broken != nil {
		return st.broken
	}
	return st.plain()
}

func (st *State) findPools(types map[*arena_c.Pool]reflect.Type) {
	row := st.saved.Stack.Row()
	from := unsafe.Add(unsafe.Pointer(&row.Arena), st.mark)
	for i := range row.Pools {
		h := row.Pool(i)
		first := uint64(uintptr(unsafe.Pointer(h))) + h.Chunks - uint64(uintptr(from))
		if h.Gen != 0 && first <= st.end-st.mark {
			st.pools = append(st.pools, pool{h, types[h], int(i), first, ""})
		}
	}
	slices.SortFunc(st.pools, func(a, b pool) int { return int(int64(a.first - b.first)) })
}

// plain records the owned values of the state. In a state region it records the chain's nodes
// instead, and returns an error for an object with a finalizer or a forbidden type.
func (st *State) plain() error {
	if !st.saved.IsState {
		st.findOwned()
		return nil
	}
	st.nodes, st.chain = st.nodes[:0], st.chain[:0]
	for node := range st.saved.Stack.NodesSince(st.mark) {
		if node.Name != "" {
			return fmt.Errorf("save: BUG: %s in the state of region %s: a finalizer can't be undone or sent; "+
				"make it before Begin, or after NewRing", node.Name, st.saved.Name)
		}
		st.nodes = append(st.nodes, node)
		bytes := unsafe.Slice((*byte)(st.header().At(node.At)), node.Size)
		st.chain = append(st.chain, bytes...)
	}
	return st.admitsAll()
}

func startOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
