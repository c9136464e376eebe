package save_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/scope/container"
)

// numberChanges are those of numbers, elements and arrays behind links.
func numberChanges(t testing.TB) (list []change) {
	type Frog struct {
		Speed float32
		X     int16
		Mood  uint8
		Eggs  [3]uint8
		_     [2]byte
	}
	type old = Frog
	file := older(t, func(_ *program, f *Frog) { *f = Frog{Speed: -0.5, X: -3, Mood: 200, Eggs: [3]uint8{1, 2, 3}} })
	func() {
		type Frog struct {
			Eggs  [3]int32
			Mood  int32
			X     int64
			Speed float64
		}
		list = append(list, change{widened, file, []func([]byte) error{newer(t, versioned[Frog](),
			func(_ *program, f *Frog) { *f = Frog{Speed: -0.5, X: -3, Mood: 200, Eggs: [3]int32{1, 2, 3}} })},
			[]string{""}})
	}()
	func() {
		type Frog struct {
			Eggs  [2]uint8
			Mood  uint8
			_     [1]byte
			X     int16
			_     [2]byte
			Speed float32
		}
		type frog0 struct{ Eggs [3]uint8 }
		list = append(list, change{"a shorter array", file, []func([]byte) error{
			newer(t, versioned[Frog](save.Converted(func(old frog0, f *Frog) { copy(f.Eggs[:], old.Eggs[1:]) })),
				func(_ *program, f *Frog) { *f = Frog{Speed: -0.5, X: -3, Mood: 200, Eggs: [2]uint8{2, 3}} })},
			[]string{""}})
		list = append(list, change{narrowed, older(t, func(_ *program, f *struct{ Frog old }) { f.Frog.X = 7 }),
			[]func([]byte) error{newer(t, versioned[struct{ Frog Frog }](), nil)}, []string{"save_test.Frog.Eggs ("}})
	}()

	type Nest struct{ Eggs arena.Slice[int32] }
	nest := func(n int) func(p *program, root *Nest) {
		return func(p *program, root *Nest) {
			root.Eggs = arena.SliceOf(p.region.Base(), countMaker.Slice(p.scope, n))
		}
	}
	file = older(t, func(p *program, root *Nest) {
		nest(3)(p, root)
		root.Eggs.Get(p.region.Base())[2] = 9
	})
	list = append(list, change{lengthened, file, []func([]byte) error{
		newer(t, func(p *program, root *Nest) {
			p.state.Version(1)
			nest(5)(p, root)
			root.Eggs.Get(p.region.Base())[4] = 4 // as the load made it
		}, func(p *program, root *Nest) { root.Eggs.Get(p.region.Base())[2] = 9 }),
		newer(t, func(p *program, root *Nest) { p.state.Version(1); nest(2)(p, root) }, nil),
	}, []string{"", "it leads to 3 values of "}})

	type Pair struct{ A, B uint32 }
	file = older(t, func(_ *program, p *[2]Pair) { *p = [2]Pair{{1, 2}, {3, 4}} })
	func() {
		type Pair struct{ B, A uint32 }
		list = append(list, change{"a field, a type or an element moves", file, []func([]byte) error{newer(t,
			versioned[[2]Pair](), func(_ *program, p *[2]Pair) { *p = [2]Pair{{2, 1}, {4, 3}} })}, []string{""}})
	}()
	return list
}

// partChanges are those of pools, containers and Values that come, go or get smaller.
func partChanges(t testing.TB) (list []change) {
	type Frog struct{ X int32 }
	frogs := scope.Plain[Frog]()
	parts := func(p *program) {
		p.state.Name("reds")
		pool := frogs.Pool(p.scope, 4)
		p.state.Name("ids")
		ids := container.NewList(p.scope, frogs, 4)
		p.state.Name("places")
		values := frogs.Slice(p.scope, 4)
		save.Values(p.state, values)
		pool.Get().X, values[1].X = 1, 2
		ids.Push(Frog{3})
	}
	none := older(t, func(p *program, n *uint64) { p.state.Version(1); *n = 7 })
	all := older(t, func(p *program, n *uint64) { p.state.Version(1); parts(p); *n = 7 })
	seven := func(_ *program, n *uint64) { *n = 7 }
	drops := func(names ...string) func([]byte) error {
		var changes []save.Change
		for _, name := range names {
			changes = append(changes, save.Dropped(name))
		}
		return newer(t, func(p *program, _ *uint64) { p.state.Version(2, changes...) }, seven)
	}
	list = append(list,
		change{added, none, []func([]byte) error{
			newer(t, func(p *program, _ *uint64) { p.state.Version(2); parts(p) }, seven)}, []string{""}},
		change{removed, all, []func([]byte) error{drops(), drops("reds", "ids"), drops("reds", "places"),
			drops("ids", "places"), drops("reds", "ids", "places")},
			[]string{`reds (pool of save_test.Frog) (4 chunks): missing: list save.Dropped("reds") (and 2 more`,
				`places (values of save_test.Frog) (4 values): missing: list save.Dropped("places")`,
				`(4 values): missing: list save.Dropped("ids")`,
				`reds (pool of save_test.Frog) (4 chunks): missing: list save.Dropped("reds")`, ""}})
	for i, want := range []string{"reds (pool of save_test.Frog) (3 chunks here, and 4 chunks in the file): smaller",
		"(3 values here, and 4 values in the file): smaller",
		"places (values of save_test.Frog) (3 values here, and 4 values in the file): smaller"} {
		n := [3]int{4, 4, 4}
		n[i] = 3
		list = append(list, change{reduced, all, []func([]byte) error{newer(t, func(p *program, _ *uint64) {
			p.state.Version(2)
			p.state.Name("reds")
			frogs.Pool(p.scope, n[0])
			p.state.Name("ids")
			container.NewList(p.scope, frogs, n[1])
			p.state.Name("places")
			save.Values(p.state, frogs.Slice(p.scope, n[2]))
		}, nil)}, []string{want}})
	}
	return list
}

// refusedChanges are those of states with a part that is never converted.
func refusedChanges(t testing.TB) (list []change) {
	var heap arena.Heap
	var err error
	for name, part := range map[string]struct {
		make func(p *program)
		want string
	}{
		"arena.Heap": {func(p *program) {
			heap, err = arena.NewHeap(byteMaker.SliceAligned(p.scope, 4096, 64), 0)
			require.NoError(t, err)
		}, "arena.Heap (4096 bytes): allocators and graphs aren't converted"},
		"State.Heap": {func(p *program) {
			heap, err = arena.NewHeap(byteMaker.SliceAligned(p.scope, 4096, 64), 0)
			require.NoError(t, err)
			p.state.Heap(heap, 2048)
		}, "heap of State.Heap (4096 bytes): heaps aren't converted"},
		"arena.Buddy": {func(p *program) {
			_, err := arena.NewBuddy(byteMaker.SliceAligned(p.scope, 4096, 4096), 64)
			require.NoError(t, err)
		}, "arena.Buddy (4096 bytes): allocators and graphs aren't converted"},
		"cache.Cache": {func(p *program) { cache.New(p.scope, countMaker, frogMaker, 4) },
			"bytes): caches aren't converted"},
	} {
		file := older(t, func(p *program, _ *uint32) { p.state.Version(1); part.make(p) })
		assert.NoError(t, newer(t, func(p *program, _ *uint32) { p.state.Version(1); part.make(p) },
			func(*program, *uint32) {})(file), name)
		list = append(list, change{refusing, file, []func([]byte) error{newer(t, func(p *program, _ *uint64) {
			p.state.Version(2)
			part.make(p)
		}, nil)}, []string{part.want}})
	}
	return list
}

// TestConvertRooms: each allocator of a state is refused by name, and so are a graph's instances.
func TestConvertRooms(t *testing.T) {
	load := func(version uint32, more int) (file []byte) {
		r := newRooms(t, 1, func(r *rooms, s scope.Scope) {
			r.state.Version(version)
			byteMaker.Slice(s, more)
		})
		require.NoError(t, r.ring.Take(1))
		return written(t, r.ring, 1)
	}
	rows, err := save.ConvertFiles(bytes.NewReader(load(1, 1)), bytes.NewReader(load(2, 200)))
	require.NoError(t, err)
	var names []string
	for _, row := range rows {
		if row.Refused {
			assert.Equal(t, "allocators and graphs aren't converted", row.Action)
			names = append(names, row.Name)
		}
	}
	slices.Sort(names)
	const ofPool = "pool on a block" // the pool, that with handles, and the instances of the graph
	assert.Equal(t, []string{"arena.Buddy", "arena.Frame", "arena.Heap", "arena.Linear", "arena.Ring", "arena.Stack",
		ofPool, ofPool, ofPool}, names)
}
