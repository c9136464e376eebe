package save_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

// program is a loaded program in one version of its types.
type program struct {
	region budget.Region
	scope  scope.Scope
	state  *save.State
	ring   *save.Ring
}

// loadProgram loads a program whose root is a T.
func loadProgram[T any](t testing.TB, load func(p *program, root *T)) (*program, *T) {
	return loadPlan(t, pondPlan(), load)
}

func loadPlan[T any](t testing.TB, plan budget.Plan, load func(p *program, root *T)) (p *program, root *T) {
	p = &program{region: open(t, plan).Region("level")}
	_, err := budget.Load(background, p.region, func(s scope.Scope) (*T, error) {
		p.scope = s
		p.state, root = save.Begin(p.region, s, scope.Plain[T]())
		load(p, root)
		if p.ring == nil {
			p.ring = save.NewRing(s, 3, p.state)
		}
		return root, nil
	})
	require.NoError(t, err)
	return p, root
}

// older returns the file of a program's state, as the load made it.
func older[T any](t testing.TB, load func(p *program, root *T)) []byte {
	p, _ := loadProgram(t, load)
	require.NoError(t, p.ring.Take(1))
	return written(t, p.ring, 1)
}

// newer is a program that reads the file. byHand makes the state that is expected.
func newer[T any](t testing.TB, load, byHand func(p *program, root *T)) func(file []byte) error {
	return func(file []byte) error {
		p, root := loadProgram(t, load)
		require.NoError(t, p.ring.Take(3))
		before := save.Image(p.ring, 3)
		number, err := p.ring.Read(bytes.NewReader(file))
		assert.Equal(t, before, save.Image(p.ring, 3))
		if err != nil {
			assert.False(t, p.ring.Has(1))
			return err
		}
		require.EqualValues(t, 1, number)
		require.NoError(t, p.ring.Restore(background, 1))
		require.NoError(t, p.ring.Take(2))
		assert.Equal(t, hash(t, p.ring, 1), hash(t, p.ring, 2))
		require.NoError(t, p.ring.Restore(background, 3))
		byHand(p, root)
		require.NoError(t, p.ring.Take(2))
		d, differ, err := p.ring.Diff(1, 2)
		require.NoError(t, err)
		assert.False(t, differ, "A is converted, B made by hand: %v", d)
		assert.Equal(t, hash(t, p.ring, 1), hash(t, p.ring, 2))
		return nil
	}
}

// Rows of the page's table that have several changes.
const (
	widened    = "a wider number: int16 to int64, uint8 to int32, float32 to float64"
	narrowed   = "a narrower number, or a field of another type"
	lengthened = "a longer array, `arena.Inline` or array behind an `arena.Slice`"
	enlarged   = "a larger list, deque or map, or other keys and values"
	reduced    = "a smaller pool or container"
	added      = "a pool, a container or `Values` that is new"
	removed    = "a pool, a container or `Values` that goes"
	reorders   = "pools of one type in another order"
	refusing   = "an `arena.Heap`, another allocator, a graph's instances, a cache"
)

// change is a row of the page's table: the change of a type, the file of the older program, and the
// programs that read it, each with a part of its error; "" if it converts.
type change struct {
	what string
	file []byte
	now  []func(file []byte) error
	errs []string
}

// versioned returns a load that declares a version with its changes.
func versioned[T any](changes ...save.Change) func(p *program, root *T) {
	return func(p *program, _ *T) { p.state.Version(1, changes...) }
}

func fieldChanges(t testing.TB) (list []change) {
	type Frog struct {
		X, Y int32
		Age  uint16
		Mood uint8
		_    [5]byte
	}
	file := older(t, func(_ *program, f *Frog) { *f = Frog{X: -1, Y: 2, Age: 40_000, Mood: 7} })
	func() {
		type Frog struct {
			Mood   uint8
			_      [1]byte
			Age    uint16
			Health int32
			Y, X   int32
		}
		made := Frog{X: -1, Y: 2, Age: 40_000, Mood: 7}
		list = append(list, change{"a new field", file, []func([]byte) error{
			newer(t, versioned[Frog](), func(_ *program, f *Frog) { *f = made }),
			newer(t, versioned[Frog](save.Converted(func(_ struct{}, f *Frog) { f.Health = 100 })),
				func(_ *program, f *Frog) { *f = made; f.Health = 100 }),
			newer(t, func(*program, *Frog) {}, nil),
		}, []string{"", "", "type save_test.Frog, field 0: Mood, in the file X"}})
	}()
	func() {
		type Frog struct {
			X, Y int32
			Age  uint16
			_    [6]byte
		}
		byHand := func(_ *program, f *Frog) { *f = Frog{X: -1, Y: 2, Age: 40_000} }
		list = append(list, change{"a field goes", file, []func([]byte) error{
			newer(t, versioned[Frog](), nil),
			newer(t, versioned[Frog](save.Dropped("save_test.Frog.Mood")), byHand),
		}, []string{`save_test.Frog.Mood (uint8): missing: list save.Dropped("save_test.Frog.Mood"), or save.Renamed`,
			""}})
	}()
	func() {
		type Frog struct {
			X, Y  int32
			Ticks uint16
			Mood  uint8
			_     [5]byte
		}
		byHand := func(_ *program, f *Frog) { *f = Frog{X: -1, Y: 2, Ticks: 40_000, Mood: 7} }
		list = append(list, change{"a field gets another name", file, []func([]byte) error{
			newer(t, versioned[Frog](), nil),
			newer(t, versioned[Frog](save.Renamed("save_test.Frog.Age", "Ticks")), byHand),
			newer(t, func(p *program, _ *Frog) { // twice
				p.state.Version(1, save.Renamed("save_test.Frog.Age", "Days"))
				p.state.Version(4, save.Renamed("save_test.Frog.Days", "Ticks"))
			}, byHand),
		}, []string{"save_test.Frog.Age (uint16): missing: ", "", ""}})
	}()
	func() {
		type Toad struct {
			X, Y int32
			Age  uint16
			Mood uint8
			_    [5]byte
		}
		list = append(list, change{"a type gets another name", file, []func([]byte) error{
			newer(t, versioned[Toad](), nil),
			newer(t, versioned[Toad](save.Renamed("save_test.Frog", "save_test.Toad")),
				func(_ *program, f *Toad) { *f = Toad{X: -1, Y: 2, Age: 40_000, Mood: 7} }),
		}, []string{"root of region level (save_test.Toad here, and save_test.Frog in the file): another type", ""}})
	}()
	func() {
		type Frog struct {
			X, Y int64
			Mood uint64
			Age  int32
			_    [4]byte
		}
		list = append(list, change{widened, file, []func([]byte) error{newer(t, versioned[Frog](),
			func(_ *program, f *Frog) { *f = Frog{X: -1, Y: 2, Age: 40_000, Mood: 7} })}, []string{""}})
	}()
	func() {
		type Frog struct {
			X, Y int32
			Age  uint8
			Mood uint8
			_    [6]byte
		}
		type frog0 struct{ Age uint16 }
		list = append(list, change{narrowed, file, []func([]byte) error{
			newer(t, versioned[Frog](), nil),
			newer(t, versioned[Frog](save.Converted(func(old frog0, f *Frog) { f.Age = uint8(old.Age >> 8) })),
				func(_ *program, f *Frog) { *f = Frog{X: -1, Y: 2, Age: 156, Mood: 7} }),
		}, []string{"save_test.Frog.Age (uint8 here, and uint16 in the file): narrower, or with another sign: list " +
			"save.Converted with a function", ""}})
	}()
	func() {
		type Frog struct {
			X, Y float64
			Age  uint16
			Mood uint8
			_    [5]byte
		}
		type frog0 struct{ Y, X int32 }
		list = append(list, change{narrowed, file, []func([]byte) error{
			newer(t, versioned[Frog](), nil),
			newer(t, versioned[Frog](save.Converted(func(old frog0, f *Frog) {
				f.X, f.Y = float64(old.X)/2, float64(old.Y)
			})), func(_ *program, f *Frog) { *f = Frog{X: -0.5, Y: 2, Age: 40_000, Mood: 7} }),
		}, []string{"save_test.Frog.X (float64 here, and int32 in the file): another type: list save.Converted with " +
			"a function (and 1 more: upfront save convert lists them)", ""}})
	}()
	return list
}

func arrayChanges(t testing.TB) (list []change) {
	type Nest struct {
		Eggs [3]uint16
		Name arena.Inline[[8]byte]
		_    [2]byte
	}
	file := older(t, func(_ *program, n *Nest) { n.Eggs = [3]uint16{1, 2, 3}; n.Name.Set("ada") })
	func() {
		type Nest struct {
			Name arena.Inline[[12]byte]
			Eggs [5]uint32
		}
		list = append(list, change{lengthened, file, []func([]byte) error{newer(t, versioned[Nest](),
			func(_ *program, n *Nest) { n.Eggs = [5]uint32{1, 2, 3}; n.Name.Set("ada") })}, []string{""}})
	}()
	func() {
		type Nest struct {
			Eggs [2]uint16
			Name arena.Inline[[4]byte]
		}
		list = append(list, change{"a shorter array", file, []func([]byte) error{newer(t, versioned[Nest](), nil)},
			[]string{"save_test.Nest.Eggs ([2]uint16 here, and [3]uint16 in the file): shorter: list save.Converted " +
				"with a function (and 1 more: "}})
	}()
	return list
}

func enumChanges(t testing.TB) (list []change) {
	type Mood uint8
	type Frog struct{ Mood, Was Mood }
	file := older(t, func(p *program, f *Frog) {
		save.Enum(p.state, map[string]Mood{"Calm": 0, "Angry": 1, "Asleep": 2})
		*f = Frog{1, 2}
	})
	with := func(names string, changes ...save.Change) func(p *program, f *Frog) {
		return func(p *program, _ *Frog) {
			moods := map[string]Mood{}
			for i, name := range strings.Fields(names) {
				moods[name] = Mood(i)
			}
			p.state.Version(1, changes...)
			save.Enum(p.state, moods)
		}
	}
	is := func(mood, was Mood) func(*program, *Frog) { return func(_ *program, f *Frog) { *f = Frog{mood, was} } }
	return []change{
		{"a new enumerator", file, []func([]byte) error{
			newer(t, with("Calm Angry Asleep Dead"), is(1, 2))}, []string{""}},
		{"enumerators with other numbers", file, []func([]byte) error{
			newer(t, with("Asleep Angry Calm"), nil),
			newer(t, with("Asleep Angry Calm", save.Renumbered("save_test.Mood")), is(1, 0)),
			newer(t, func(p *program, _ *Frog) { save.Enum(p.state, map[string]Mood{"Calm": 1}) }, nil),
		}, []string{`save_test.Mood.Calm (2 here, and 0 in the file): renumbered: list save.Renumbered("save_test.Mood") ` +
			"(and 1 more", "", "type save_test.Mood: the enumerators [{Calm 1}], in the file [{Calm 0} {Angry 1} " +
			"{Asleep 2}]"}},
		{"an enumerator that goes or gets another name", file, []func([]byte) error{
			newer(t, with("Calm Angry"), nil),
			newer(t, with("Calm Angry", save.Dropped("save_test.Mood.Asleep")), nil),
			newer(t, with("Calm Angry Tired", save.Renamed("save_test.Mood.Asleep", "Tired")), is(1, 2)),
		}, []string{`save_test.Mood.Asleep (2): missing: list save.Dropped("save_test.Mood.Asleep"), or save.Renamed`,
			"Frog.Was: 2 is no enumerator of save_test.Mood that is here", ""}},
		{"a new enumerator", older(t, is(1, 2)), []func([]byte) error{
			newer(t, with("Calm Angry Asleep"), is(1, 2))}, []string{""}},
	}
}

func poolChanges(t testing.TB) (list []change) {
	type Frog struct{ X int32 }
	type Pond struct {
		Tick       uint64
		Best, Next arena.Handle[Frog]
	}
	frogs := scope.Plain[Frog]()
	play := func(pool scope.HandlePool[Frog], root *Pond) {
		var all [5]arena.Handle[Frog]
		for i := range all {
			f, h := pool.Get()
			f.X, all[i] = int32(i), h
		}
		pool.Put(all[3])
		pool.Put(all[1])
		root.Best, root.Next = all[2], all[3] // stale
	}
	file := older(t, func(p *program, root *Pond) { play(frogs.HandlePool(p.scope, 6), root) })
	larger := func() func([]byte) error {
		var pool scope.HandlePool[Frog]
		return newer(t, func(p *program, _ *Pond) {
			p.state.Version(1)
			scope.Plain[uint64]().HandlePool(p.scope, 3) // so handles have its number
			pool = frogs.HandlePool(p.scope, 9)
		}, func(_ *program, root *Pond) { play(pool, root) })
	}
	list = append(list, change{"a larger pool; its handles stay valid", file, []func([]byte) error{larger(),
		newer(t, func(p *program, _ *Pond) { p.state.Version(1); frogs.HandlePool(p.scope, 5) }, nil),
		newer(t, func(p *program, _ *Pond) { p.state.Version(1) }, nil),
		newer(t, versioned[Pond](save.Dropped("save_test.Frog")), func(*program, *Pond) {}),
		newer(t, func(p *program, _ *Pond) { p.state.Version(1); frogs.Pool(p.scope, 6) }, nil),
	}, []string{"", "pool with handles of save_test.Frog (5 chunks here, and 6 chunks in the file): smaller",
		`pool with handles of save_test.Frog (6 chunks): missing: list save.Dropped("save_test.Frog")`, "",
		`pool with handles of save_test.Frog (6 chunks): missing`}})

	named := func(a, b string, into map[string]scope.Pool[Frog]) func(p *program, _ *Pond) {
		return func(p *program, _ *Pond) {
			p.state.Version(1)
			for _, name := range []string{a, b} {
				if name != "" {
					p.state.Name(name)
				}
				into[name] = frogs.Pool(p.scope, 4)
			}
		}
	}
	old := older(t, func(p *program, root *Pond) {
		pools := map[string]scope.Pool[Frog]{}
		named("reds", "blues", pools)(p, root)
		pools["reds"].Get().X, pools["blues"].Get().X = 1, 2
	})
	pools := map[string]scope.Pool[Frog]{}
	byHand := func(*program, *Pond) { pools["reds"].Get().X, pools["blues"].Get().X = 1, 2 }
	unnamed := older(t, func(p *program, _ *Pond) {
		frogs.Pool(p.scope, 4).Get().X = 2
		frogs.Pool(p.scope, 4).Get().X = 1
	})
	list = append(list,
		change{reorders, old, []func([]byte) error{
			newer(t, named("blues", "reds", pools), byHand),
			newer(t, func(p *program, _ *Pond) { frogs.Pool(p.scope, 4); frogs.Pool(p.scope, 4) }, nil)},
			[]string{"", `the version of region level: 0 here, and 1 in the file`}},
		change{reorders, unnamed, []func([]byte) error{
			newer(t, named("blues", "reds", pools), byHand)}, []string{""}},
		change{reorders, unnamed, []func([]byte) error{
			newer(t, func(p *program, _ *Pond) { p.state.Version(1); frogs.Pool(p.scope, 4) }, nil)},
			[]string{"pool of save_test.Frog (4 chunks): another number of them here: name them with State.Name"}})
	return list
}

func containerChanges(t testing.TB) (list []change) {
	type Fly struct{ At uint32 }
	type all struct {
		list  container.List[Fly]
		line  container.Deque[Fly]
		tiles container.Map[Fly, Fly]
		names container.StringMap[Fly]
	}
	play := func(x *all) {
		for i := range uint32(6) {
			x.list.Push(Fly{i})
			x.tiles.Set(Fly{i}, Fly{10 * i})
		}
		x.line.PushBack(Fly{2})
		x.line.PushBack(Fly{3})
		x.tiles.Delete(Fly{5})
		x.tiles.Set(Fly{9}, Fly{90})
		_ = x.names.Set("ada", Fly{1})
		_ = x.names.Set("bob", Fly{2})
	}
	makes := func(p *program, n int) *all {
		var x all
		flies, s := scope.Plain[Fly](), p.scope
		p.state.Name("list")
		x.list = container.NewList(s, flies, n)
		p.state.Name("line")
		x.line = container.NewDeque(s, flies, n)
		p.state.Name("tiles")
		x.tiles = container.NewMap(s, flies, flies, n)
		p.state.Name("names")
		x.names = container.NewStringMap(s, flies, n, n)
		return &x
	}
	file := older(t, func(p *program, _ *uint64) {
		x := makes(p, 7)
		x.line.PushFront(Fly{1}) // at the ring's end
		play(x)
	})
	var x *all
	list = append(list, change{enlarged, file, []func([]byte) error{
		newer(t, func(p *program, _ *uint64) { p.state.Version(1); x = makes(p, 20) }, func(*program, *uint64) {
			x.line.PushBack(Fly{1})
			play(x)
		}),
		newer(t, func(p *program, _ *uint64) { p.state.Version(1); makes(p, 6) }, nil),
	}, []string{"", "list (container.List[save_test.Fly·"}})
	func() {
		type Fly struct {
			Speed float32
			_     [4]byte
			At    uint64
		}
		type all struct {
			list  container.List[Fly]
			line  container.Deque[Fly]
			tiles container.Map[Fly, Fly]
			names container.StringMap[Fly]
		}
		var x *all
		list = append(list, change{enlarged, file, []func([]byte) error{
			newer(t, func(p *program, _ *uint64) {
				p.state.Version(1)
				x = new(all)
				flies, s := scope.Plain[Fly](), p.scope
				p.state.Name("names") // in another order
				x.names = container.NewStringMap(s, flies, 9, 9)
				p.state.Name("tiles")
				x.tiles = container.NewMap(s, flies, flies, 7)
				p.state.Name("line")
				x.line = container.NewDeque(s, flies, 7)
				p.state.Name("list")
				x.list = container.NewList(s, flies, 7)
			}, func(*program, *uint64) {
				fly := func(at uint64) Fly { return Fly{At: at} }
				x.line.PushBack(fly(1))
				for i := range uint64(6) {
					x.list.Push(fly(i))
					x.tiles.Set(fly(i), fly(10*i))
				}
				x.line.PushBack(fly(2))
				x.line.PushBack(fly(3))
				x.tiles.Delete(fly(5))
				x.tiles.Set(fly(9), fly(90))
				_ = x.names.Set("ada", fly(1))
				_ = x.names.Set("bob", fly(2))
			})}, []string{""}})
	}()
	return list
}

// TestConversions: each change of the page's table converts as the page says, into the state that
// is made by hand, or is refused by name.
func TestConversions(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), "| change | result |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]bool{}
	for _, line := range strings.Split(table, "\n") {
		rows[strings.Split(line, " | ")[0][len("| "):]] = false
	}
	for _, list := range [][]change{fieldChanges(t), arrayChanges(t), enumChanges(t), poolChanges(t),
		containerChanges(t), numberChanges(t), partChanges(t), refusedChanges(t)} {
		for _, c := range list {
			assert.Contains(t, rows, c.what)
			rows[c.what] = true
			for i, now := range c.now {
				err := now(c.file)
				if want := c.errs[i]; want == "" {
					assert.NoError(t, err, "%s, %d", c.what, i)
				} else {
					assert.ErrorContains(t, err, want, "%s, %d", c.what, i)
				}
			}
		}
	}
	for row, has := range rows {
		assert.True(t, has, "no change is of the row %q", row)
	}
}
