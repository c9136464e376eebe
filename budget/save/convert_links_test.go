package save_test

import (
	"bytes"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

// Types of the next version of the programs of testdata/form1.
type (
	room2 struct {
		Frogs         arena.Slice[arena.Handle[frog2]]
		Marks         arena.Slice[mark]
		Gravity       int32
		Used          uint32
		Spawned, Tick uint64
		Lamps         arena.Slice[lamp]
	}
	frog2 struct {
		Health  int32
		X, Y    int32
		Ticks   int32
		Speed   float64
		Counted uint64
	}
	hall2 struct {
		First arena.Ptr[node2]
		Best  arena.Handle[actor2]
		Lamps arena.Slice[lamp]
		Short arena.Inline[[16]byte]
		Name  arena.String
		Tick  uint64
	}
	actor2 struct {
		Tail arena.Slice[place]
		Way  [4]place
		Up   bool
		Mode mode
		_    [6]byte
	}
	node2 struct {
		Value complex128
		Next  arena.Ptr[node2]
	}
)

// TestConvertGoldenFiles: the next versions of programs read their files of the first form.
func TestConvertGoldenFiles(t *testing.T) {
	file, err := os.ReadFile("testdata/form1/pond.save")
	require.NoError(t, err)
	was := newPond(t, open(t, pondPlan()), "level", 1)
	require.NoError(t, readAgain(was.ring, file))
	require.NoError(t, was.ring.Restore(background, 1))

	type old struct{ Age int32 }
	var frogs scope.HandlePool[frog2]
	p, root := loadProgram(t, func(p *program, root *room2) {
		p.state.Version(3, save.Renamed("save_test.room", "save_test.room2"),
			save.Renamed("save_test.frog", "save_test.frog2"), save.Renamed("save_test.frog.Age", "Ticks"),
			save.Dropped("save_test.frog.Mood"), save.Dropped("save_test.fly"),
			save.Converted(func(old old, f *frog2) { f.Health, f.Counted = 100, uint64(old.Age)+uint64(f.Ticks) }))
		base := p.region.Base()
		root.Marks = arena.SliceOf(base, markMaker.Slice(p.scope, 600))
		root.Lamps = arena.SliceOf(base, lampMaker.Slice(p.scope, 2))
		root.Lamps.Get(base)[1].Level = 5
		root.Gravity = 10 // as the load made it: no file has it
		frogs = scope.Plain[frog2]().HandlePool(p.scope, 50)
		root.Frogs = arena.SliceOf(base, scope.Plain[arena.Handle[frog2]]().Slice(p.scope, 50))
	})
	made := *root
	*root = room2{} // Read looks at the state as the load made it, not at the one now
	number, err := p.ring.Read(bytes.NewReader(file))
	require.NoError(t, err)
	require.NoError(t, p.ring.Restore(background, number))
	base := p.region.Base()
	assert.Equal(t, was.room.Tick, root.Tick)
	assert.Equal(t, was.room.Spawned, root.Spawned)
	assert.Equal(t, was.room.Used, root.Used)
	assert.EqualValues(t, 10, root.Gravity)
	assert.Equal(t, made.Lamps, root.Lamps)
	assert.EqualValues(t, 5, root.Lamps.Get(base)[1].Level)
	assert.Equal(t, made.Marks, root.Marks)
	assert.Equal(t, was.room.Marks.Get(was.region.Base()), root.Marks.Get(base)[:500])
	assert.Equal(t, make([]mark, 100), root.Marks.Get(base)[500:])
	assert.Equal(t, made.Frogs, root.Frogs)
	handles, live := root.Frogs.Get(base), 0
	for i, h := range was.room.Frogs.Get(was.region.Base()) {
		f := frogs.At(handles[i])
		if x := was.frogs.At(h); x == nil {
			assert.Nil(t, f)
		} else if assert.NotNil(t, f) {
			live++
			assert.Equal(t, frog2{Health: 100, X: x.X, Y: x.Y, Ticks: x.Age, Counted: 2 * uint64(x.Age)}, *f)
		}
	}
	assert.NotZero(t, live)
	for range 50 - live {
		f, _ := frogs.Get()
		require.NotNil(t, f, "the new chunks are free")
	}

}

// TestConvertGoldenVersion: the next version of a program reads its file with names, enumerators
// and Values.
func TestConvertGoldenVersion(t *testing.T) {
	file, err := os.ReadFile("testdata/form2/moods.save")
	require.NoError(t, err)
	ring, reds := moods(t, 3, 70)
	require.NoError(t, readAgain(ring, file))
	require.NoError(t, ring.Restore(background, 1))
	require.NoError(t, ring.Take(2))
	again, _ := moods(t, 3, 70)
	assert.Equal(t, hash(t, again, 1), hash(t, ring, 2), "the state made by hand")
	for range 67 {
		f, _ := reds.Get()
		require.NotNil(t, f)
	}
}

// newHall2 loads the next version of a building. extra is how many more values it has of each kind.
func newHall2(t testing.TB, extra int, changes ...save.Change) (p *program, root *hall2,
	actors scope.HandlePool[actor2]) {
	p, root = loadPlan(t, twoRegions(), func(p *program, root *hall2) {
		base, s := p.region.Base(), p.scope
		p.state.Version(1, append(changes, save.Renamed("save_test.hall", "save_test.hall2"),
			save.Renamed("save_test.actor", "save_test.actor2"), save.Renamed("save_test.node", "save_test.node2"))...)
		var nodes []*node2
		for range 3 + extra {
			nodes = append(nodes, scope.Plain[node2]().New(s))
		}
		for i := range nodes {
			nodes[i].Next = arena.PtrTo(base, nodes[(i+1)%len(nodes)])
		}
		root.First = arena.PtrTo(base, nodes[0])
		actors = scope.Plain[actor2]().HandlePool(s, 5+extra)
		places := placeMaker.Slice(s, 4+extra)
		save.Values(p.state, places)
		root.Name = scope.StringOf(s, base, "nobody knows")
		root.Lamps = arena.SliceOf(base, lampMaker.Slice(s, 6+extra))
	})
	return p, root, actors
}

// TestConvertLinks: links lead to the same values, wherever these moved, or are refused.
func TestConvertLinks(t *testing.T) {
	b := newBuilding(t)
	b.hall.Tick, b.lamps[3].Left, b.nodes[2].Value = 9, -1, complex(1, 2)
	b.hall.Short.Set("bobby")
	a := b.actors.At(b.best)
	a.Way, a.Mode, a.Up = [3]place{{1, 2}, {3, 4}, {5, 6}}, 7, true
	a.Tail = arena.SliceOf(b.region.Base(), a.Way[1:3]) // into another value
	b.hall.Best = b.best
	take := func() []byte {
		require.NoError(t, b.ring.Take(1))
		return written(t, b.ring, 1)
	}
	for extra := range 3 {
		p, root, actors := newHall2(t, extra)
		require.NoError(t, readAgain(p.ring, take()))
		require.NoError(t, p.ring.Restore(background, 1))
		base := p.region.Base()
		assert.EqualValues(t, 9, root.Tick)
		assert.Equal(t, "ada", root.Name.Get(base))
		assert.Equal(t, "bobby", root.Short.String())
		assert.Len(t, root.Lamps.Get(base), 6+extra)
		assert.EqualValues(t, -1, root.Lamps.Get(base)[3].Left)
		one := root.First.Get(base)
		three := one.Next.Get(base).Next.Get(base)
		assert.Equal(t, complex(1, 2), three.Value)
		assert.Same(t, one, three.Next.Get(base), "the cycle of the file")
		x := actors.At(root.Best)
		assert.Equal(t, actor2{Way: [4]place{{1, 2}, {3, 4}, {5, 6}}, Mode: 7, Up: true, Tail: x.Tail}, *x)
		assert.Equal(t, []place{{3, 4}, {5, 6}}, x.Tail.Get(base))
		if !arena_c.Checked && !arena_c.Asan { // a chunk is elsewhere there
			x.Tail.Get(base)[0].X = 8
			assert.EqualValues(t, 8, x.Way[1].X)
		}
	}
	refused := func(want string, changes ...save.Change) {
		p, _, _ := newHall2(t, 0, changes...)
		err := readAgain(p.ring, take())
		assert.ErrorContains(t, err, want)
		assert.False(t, p.ring.Has(1))
		require.NoError(t, b.ring.Restore(background, 1))
	}
	refused("pool of save_test.actor[0].Tail: it leads to 2 values of save_test.place at offset ",
		save.Converted(func(_ struct{ Mode mode }, _ *actor2) {}), save.Dropped("save_test.actor.Way"))
	a.Tail = arena.SliceOf(b.region.Base(), b.tail[1:])
	refused("the load here makes none for it")
	require.NoError(t, b.ring.Restore(background, 1))
	b.tail[3].X = 1
	a.Tail = arena.Slice[place]{}
	refused("is of no known type: no link of the root, a pool or a container leads there; save.Values " +
		"names such values")
	b.tail[3].X = 0
	b.hall.Lamps = arena.SliceOf(b.region.Base(), b.lamps[1:])
	b.hall.Best = arena.Handle[actor]((1<<30 + 1) << 32)
	refused("hall2.Best: the handle 0x4000000100000000, which is of no pool of the state")
	b.hall.Best = 0
	b.lamps[0].Left = 3
	refused("is of no known type")
}

// newNamed loads a state with size bytes before it, which its links may lead to.
func newNamed[T any](t testing.TB, size int, link func(r *T, base arena.Base, named []byte)) (ring *save.Ring,
	root *T) {
	load(t, open(t, twoRegions()), "level", func(r budget.Region, s scope.Scope) {
		named := byteMaker.SliceAligned(s, size, 64)
		copy(named, "the pond")
		var state *save.State
		state, root = save.Begin(r, s, scope.Plain[T]())
		save.Readable(state, named)
		state.Version(1)
		link(root, r.Base(), named)
		ring = save.NewRing(s, 2, state)
	})
	return ring, root
}

// TestConvertLinksBefore: a link to a value that Readable named converts only if as many bytes are
// before the state here as in the file. Values of no bytes have no place to convert to.
func TestConvertLinksBefore(t *testing.T) {
	type empty struct{}
	type pond struct {
		Name  arena.String
		Frogs arena.Slice[empty]
		Count [1]uint64
	}
	var base arena.Base
	old, was := newNamed(t, 64, func(p *pond, in arena.Base, named []byte) {
		base, p.Name, p.Count = in, arena.StringOf(in, named[4:8]), [1]uint64{7}
	})
	file := func() []byte {
		require.NoError(t, old.Take(1))
		return written(t, old, 1)
	}
	named := file()
	was.Frogs = arena.SliceOf(base, unsafe.Slice((*empty)(unsafe.Pointer(&was.Count)), 5))
	empties := file()
	func() {
		type pond struct {
			Name  arena.String
			Frogs arena.Slice[empty]
			Count [2]uint64
		}
		for _, size := range []int{64, 128} {
			var base arena.Base
			ring, root := newNamed(t, size, func(_ *pond, in arena.Base, _ []byte) { base = in })
			if err := readAgain(ring, named); size == 64 {
				require.NoError(t, err)
				require.NoError(t, ring.Restore(background, 1))
				assert.Equal(t, "pond", root.Name.Get(base))
				assert.Equal(t, [2]uint64{7}, root.Count)
				assert.ErrorContains(t, readAgain(ring, empties),
					"pond.Frogs: it leads to 5 values of save_test.empty, which has no bytes")
			} else {
				assert.ErrorContains(t, err, "pond.Name: it leads to offset 0x4, before the state")
			}
		}
	}()
}

// TestConvertValues: values that only Go code has are converted, if both programs name them.
func TestConvertValues(t *testing.T) {
	type small struct{ N uint8 }
	type large struct{ N, M uint32 }
	var list []large
	file := older(t, func(p *program, _ *uint64) {
		p.state.Version(1)
		p.state.Name("counts")
		values := scope.Plain[small]().Slice(p.scope, 3)
		save.Values(p.state, values)
		values[2] = small{7}
	})
	now := newer(t, func(p *program, _ *uint64) {
		byteMaker.Slice(p.scope, 100)
		p.state.Version(2, save.Renamed("save_test.small", "save_test.large"))
		list = scope.Plain[large]().Slice(p.scope, 5)
		p.state.Name("counts")
		save.Values(p.state, list)
	}, func(*program, *uint64) { list[2].N = 7 })
	require.NoError(t, now(file))
}

// TestVersionsAndRooms: a state with heaps, allocators and graphs gets a version, and reads the
// files from before it, though it converts none of other types.
func TestVersionsAndRooms(t *testing.T) {
	load := func(version uint32, more int, h *arena.Heap) func(p *program, root *uint64) {
		return func(p *program, _ *uint64) {
			if version != 0 {
				p.state.Version(version)
			}
			var err error
			*h, err = arena.NewHeap(byteMaker.SliceAligned(p.scope, 4096, 64), 0)
			require.NoError(t, err)
			h.MayLive()
			byteMaker.Slice(p.scope, more)
		}
	}
	var was, is arena.Heap
	for _, packed := range []bool{false, true} {
		made := func(version uint32, more int, h *arena.Heap) *program {
			p, _ := loadProgram(t, func(p *program, root *uint64) {
				load(version, more, h)(p, root)
				if packed {
					p.state.Heap(*h, 2048)
				}
			})
			return p
		}
		old := made(0, 0, &was)
		*(*uint64)(was.Alloc(8, 8)) = 77
		require.NoError(t, old.ring.Take(1))
		file := written(t, old.ring, 1)
		p := made(1, 0, &is)
		require.NoError(t, readAgain(p.ring, file))
		require.NoError(t, p.ring.Restore(background, 1))
		assert.Equal(t, was.Stats().Used, is.Stats().Used)
		err := readAgain(made(1, 64, &is).ring, file)
		if packed {
			assert.ErrorContains(t, err, "heap of State.Heap (4096 bytes): heaps aren't converted")
		} else {
			assert.ErrorContains(t, err, "is of no known type")
		}
		require.NoError(t, p.ring.Take(2))
		err = readAgain(made(2, 64, &is).ring, written(t, p.ring, 2))
		assert.ErrorContains(t, err, "aren't converted")
	}
}

// TestConvertPanics: a function that panics changes nothing.
func TestConvertPanics(t *testing.T) {
	type pond struct{ N uint8 }
	file := older(t, func(_ *program, p *pond) { p.N = 7 })
	func() {
		type pond struct{ N, M uint8 }
		p, _ := loadProgram(t, versioned[pond](save.Converted(func(old struct{ N uint8 }, _ *pond) {
			panic(old.N)
		})))
		assert.PanicsWithValue(t, uint8(7), func() { _, _ = p.ring.Read(bytes.NewReader(file)) })
		require.NoError(t, p.ring.Take(3))
		assert.True(t, !p.ring.Has(1) && p.ring.Has(3))
		for n := range uint64(5) { // no image has a byte of it
			require.NoError(t, p.ring.Take(n))
			assert.Equal(t, save.Image(p.ring, 3), save.Image(p.ring, n))
			require.NoError(t, p.ring.Take(3))
		}
	}()
}

// TestConvertBadBools: a function never gets a bool that is neither 0 nor 1.
func TestConvertBadBools(t *testing.T) {
	type pond struct{ Up, Down bool }
	file := older(t, func(*program, *pond) {})
	calls := 0
	func() {
		type pond struct{ Down, Left bool }
		for i, at := range []int{2, 1} { // the root ends 62 bytes before the file does
			p, _ := loadProgram(t, versioned[pond](save.Converted(func(struct{ Up bool }, *pond) { calls++ })))
			forged := bytes.Clone(file)
			forged[len(file)-64+2-at] = 2
			err := readAgain(p.ring, resum(forged))
			wants := [...]string{"pond.Up: a bool that is neither 0 nor 1", "pond.Down: the bool 2"}
			assert.ErrorContains(t, err, wants[i])
		}
	}()
	assert.Zero(t, calls)
}

// TestConvertRegions: the states of two regions convert, each by its own changes.
func TestConvertRegions(t *testing.T) {
	type pond struct{ A, B uint16 }
	ring := func(load func(r budget.Region, s scope.Scope) *save.State) (ring *save.Ring) {
		plan := twoRegions()
		plan.Regions[1].State = true
		b := open(t, plan)
		var states []*save.State
		for i, r := range []budget.Region{b.Region("level"), b.Region("extra")} {
			_, err := budget.Load(background, r, func(s scope.Scope) (*uint64, error) {
				if states = append(states, load(r, s)); i == 1 {
					ring = save.NewRing(s, 2, states...)
				}
				return nil, nil
			})
			require.NoError(t, err)
		}
		require.NoError(t, ring.Take(1))
		return ring
	}
	old := ring(func(r budget.Region, s scope.Scope) *save.State {
		state, root := save.Begin(r, s, scope.Plain[pond]())
		root.A, root.B = uint16(len(r.Name())), 2
		return state
	})
	func() {
		type pond struct{ B, A uint64 }
		var roots []*pond
		now := ring(func(r budget.Region, s scope.Scope) *save.State {
			state, root := save.Begin(r, s, scope.Plain[pond]())
			if roots = append(roots, root); r.Name() == "level" {
				state.Version(1, save.Dropped("save_test.pond.A"))
			} else {
				state.Version(4)
			}
			return state
		})
		require.NoError(t, readAgain(now, written(t, old, 1)))
		require.NoError(t, now.Restore(background, 1))
		assert.Equal(t, []pond{{2, 0}, {2, 5}}, []pond{*roots[0], *roots[1]})
	}()
}

// TestVersionMisuse: calls out of order, or with impossible arguments, panic.
func TestVersionMisuse(t *testing.T) {
	type pointer struct{ P *int }
	type linked struct{ P arena.Ptr[mark] }
	type mood uint8
	for want, do := range map[string]func(p *program){
		"Version(0) of region level: call it before NewRing, in order; the last one is 0": func(p *program) {
			p.state.Version(0)
		},
		"Version(2) of region level: call it before NewRing, in order; the last one is 2": func(p *program) {
			p.state.Version(2)
			p.state.Version(2)
		},
		"a zero Change": func(p *program) { p.state.Version(1, save.Change{}) },
		"a Converted with save_test.pointer": func(p *program) {
			p.state.Version(1, save.Converted(func(pointer, *mark) {}))
		},
		"which has an arena.Ptr, Slice, String or Handle": func(p *program) {
			p.state.Version(1, save.Converted(func(linked, *mark) {}))
		},
		`a change "renamed" of "a" to ""`: func(p *program) { p.state.Version(1, save.Renamed("a", "")) },
		"which can't be printed":          func(p *program) { p.state.Version(1, save.Dropped("\x00")) },
		`Name("a.b") in region level`:     func(p *program) { p.state.Name("a.b") },
		`Name("a") in region level: a name has no dot`: func(p *program) {
			p.state.Name("a")
			p.state.Name("a")
		},
		`Name("alone") in region level: no pool, container or Values follows it`: func(p *program) {
			flyMaker.Pool(p.scope, 3)
			p.state.Name("alone")
		},
		"Enum of region level: 1 enumerators of int32, which isn't a type of the program": func(p *program) {
			save.Enum(p.state, map[string]int32{"A": 1})
		},
		`Enum of region level: save_test.mood "\x00", which can't be printed`: func(p *program) {
			save.Enum(p.state, map[string]mood{"\x00": 1})
		},
	} {
		b, err := budget.Open(pondPlan())
		require.NoError(t, err)
		r := b.Region("level")
		func() {
			defer func() {
				assert.Contains(t, toText(recover()), want)
			}()
			_, _ = budget.Load(background, r, func(s scope.Scope) (*uint64, error) {
				p := &program{region: r, scope: s}
				p.state, _ = save.Begin(r, s, scope.Plain[uint64]())
				do(p)
				save.NewRing(s, 1, p.state)
				return nil, nil
			})
		}()
		require.NoError(t, b.Close())
	}
}

func toText(x any) string {
	if err, ok := x.(error); ok {
		return err.Error()
	}
	text, _ := x.(string)
	return text
}
