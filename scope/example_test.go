package scope_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// openExample opens a budget for examples; its scratch arena 0.0 is the one that most use.
func openExample() (*budget.Budget, scope.Scratch) {
	b, err := budget.Open(budget.Plan{
		Name:    "example",
		Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
	})
	if err != nil {
		panic(err)
	}
	return b, b.Scratch(0, 0)
}

// file stands for anything that must be closed.
type file struct{ FD int32 }

func (f *file) close() error {
	fmt.Println("close", f.FD)
	return nil
}

var files = scope.Object((*file).close)

func ExampleScope() {
	b, scratch := openExample()
	defer b.Close()

	outer := scratch.Open("outer")
	files.New(outer).FD = 1
	inner := outer.Open("inner")
	files.New(inner).FD = 2
	inner.Defer(func() { fmt.Println("deferred") })
	fmt.Println(outer.Close()) // out of order: refused, nothing changes
	fmt.Println(inner.Close())
	fmt.Println(outer.Close())
	// Output:
	// scope: BUG: Close of scope "outer" of scratch 0.0 while scope "inner", opened in it, is open
	// deferred
	// close 2
	// <nil>
	// close 1
	// <nil>
}

func ExampleScope_Do() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("s", func(s scope.Scope) error {
		files.New(s).FD = 3
		s.Bytes(100 * budget.KiB) // full: unwinds to Do
		return nil
	})
	var full *scope.FullError
	fmt.Println(errors.Is(err, scope.ErrFull), errors.As(err, &full))
	fmt.Println(full.Arena, "asked", full.Asked, "free", full.Free, "key", full.Key, "need", full.Need)
	// Output:
	// close 3
	// true true
	// scratch 0.0 asked 102400 free 65524 key scratch.size need 102416
}

// What a scope gives: one, n, n with room for more, n at an address that is a multiple.
func ExampleMaker() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")

	one, some := frogs.New(s), frogs.Slice(s, 3)
	room := frogs.SliceCap(s, 1, 10) // the built-in append stays in s, up to 10
	line := frogs.SliceAligned(s, 8, 64)
	fmt.Println(one.X, len(some), len(room), cap(room), uintptr(unsafe.Pointer(&line[0]))%64)

	fmt.Println(frogs.TrySlice(s, 1_000_000) == nil, frogs.TryNew(s) != nil)
	fmt.Println(errors.Is(s.Err(), scope.ErrFull)) // the scope remembers
	fmt.Println(errors.Is(s.Close(), scope.ErrFull))
	// Output:
	// 0 3 1 10 0
	// true true
	// true
	// true
}

// Raw memory, which holds anything: a size and an alignment, as numbers or, faster, as a constant.
func ExampleScope_AllocUnzeroed() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("raw")

	p := (*uint64)(s.AllocUnzeroed(8, 8))
	*p = 7
	lanes := s.AllocUnzeroedAs(64, scope.Align64)
	fmt.Println(*p, uintptr(lanes)%64, s.TryAllocUnzeroed(1<<20, 8) == nil)
	page := s.BytesUnzeroed(100, 4096)
	fmt.Println(len(page), cap(page), uintptr(unsafe.Pointer(&page[0]))%4096)
	fmt.Println(errors.Is(s.Close(), scope.ErrFull)) // what TryAllocUnzeroed met
	// Output:
	// 7 0 true
	// 100 100 0
	// true
}

// What is needed only while something is loaded lies at the far end of the arena, and leaves no gap.
func ExampleScope_Temp() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("level")

	temp := s.Temp(1000)
	packed := temp.Bytes(1000) // the file as it was read
	pond := frogs.Slice(s, 4)  // what is made of it, meanwhile
	pond[0].X = float32(len(packed))
	fmt.Println(temp.Close(), pond[0].X, scratch.Stats().Used >= 4*8)

	fmt.Println(s.Keep("the collector leaves it alone").Value()) // until s closes
	fmt.Println(s.Close())
	// Output:
	// <nil> 1000 true
	// the collector leaves it alone
	// <nil>
}

func ExampleReadFile() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("load", func(s scope.Scope) error {
		name := scope.Sprintf(s, "%s/pond%d.txt", os.TempDir(), os.Getpid())
		s.Defer(func() { _ = os.Remove(name) })
		if err := os.WriteFile(name, []byte("12 frogs"), 0o600); err != nil {
			return err
		}
		text, err := scope.ReadFile(s, name)
		fmt.Printf("%q\n", text)
		return err
	})
	fmt.Println(err)
	// Output:
	// "12 frogs"
	// <nil>
}

// frog is plain data.
type frog struct{ X, Y float32 }

var frogs = scope.Plain[frog]()

func ExampleMaker_Append() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")
	defer s.Close()

	var pond []frog
	for i := range 5 {
		pond = frogs.Append(s, pond, frog{X: float32(i)}) // the last thing in s: it grows where it is
	}
	fmt.Println(len(pond), cap(pond), scratch.Stats().Used)
	s.Bytes(16) // now it is the last no more
	pond = frogs.Append(s, pond, frog{X: 5})
	fmt.Println(len(pond), cap(pond), scratch.Stats().Used)

	inner := s.Open("more frogs")
	more := frogs.Append(inner, pond, frog{X: 6}) // a copy: what lies in s is not inner's to write to
	fmt.Println(len(more), len(pond), inner.Close())
	// Output:
	// 5 5 40
	// 6 10 136
	// 7 6 <nil>
}

func ExampleText() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("tick")
	defer s.Close()

	text := s.Text()
	text.Add("frog ").AddInt(3).Add(" at ")
	var room [32]byte
	text.Write(strconv.AppendFloat(room[:0], 1.0/3, 'f', 2, 64)) // no Go allocation
	fmt.Println(text.String())
	fmt.Println(text.Len(), scratch.Stats().Used)
	fmt.Fprintf(text.Reset(), "%02x %v", 255, frog{1, 2}) // formatting uses the Go heap
	fmt.Println(text.String())
	// Output:
	// frog 3 at 0.33
	// 14 14
	// ff {1 2}
}

func ExampleSprintf() {
	b, scratch := openExample()
	defer b.Close()

	err := scratch.Do("load", func(s scope.Scope) error {
		name := scope.Sprintf(s, "maps/%s/%02d.map", "pond", 7) // dies with s
		fmt.Println(name, scratch.Stats().Used)
		return nil
	})
	fmt.Println(err, scratch.Stats().Used)
	// Output:
	// maps/pond/07.map 16
	// <nil> 0
}

type fly struct{ ID, Bites int32 }

var flies = scope.Plain[fly]()

// An array whose size nobody knows yet: the builder has all that is free, and gives the rest back.
func ExampleBuilder() {
	b, scratch := openExample()
	defer b.Close()
	level := scratch.Open("level")

	list := flies.Build(level)
	for id := int32(1); id*id < 1000; id++ {
		list.Push(fly{ID: id * id})
	}
	pond := list.Done()
	fmt.Println(len(pond), cap(pond), pond[30].ID)
	fmt.Println(scratch.Stats().Used, "bytes")
	flies.New(level).ID = 1 // it allocates again
	fmt.Println(level.Close())
	// Output:
	// 31 31 961
	// 248 bytes
	// <nil>
}

var letters = scope.Plain[rune]()

// reversed gives the text backwards. The result lives where the caller says, in out; the scratch lives on the other scratch arena
// and is gone when reversed returns.
func reversed(scratches scope.Scratches, out scope.Scope, text string) string {
	scratch := scratches.Pick(out).Open("reversed") // doesn't cover out
	defer scratch.Close()
	list := letters.Slice(scratch, utf8.RuneCountInString(text))
	i := len(list)
	for _, letter := range text {
		i--
		list[i] = letter
	}
	result := out.Bytes(len(text))[:0]
	for _, letter := range list {
		result = utf8.AppendRune(result, letter)
	}
	return string(result) // a copy on the Go heap, for the example
}

// ExampleScratches_Pick shows why a worker has two scratch arenas: on the caller's, the scope of the scratch would cover the scope of the
// result.
func ExampleScratches_Pick() {
	b, _ := openExample()
	defer b.Close()
	scratches := b.Scratches(0)

	out := scratches.Pick().Open("result")
	defer out.Close()
	fmt.Println(reversed(scratches, out, "frösche"))

	other := scratches.Pick(out).Open("on the other scratch") // and the other way round
	defer other.Close()
	fmt.Println(reversed(scratches, other, "pond"))

	defer func() { fmt.Println(recover()) }()
	scratches.Pick(out, other) // NOT OKAY: there are two
	// Output:
	// ehcsörf
	// dnop
	// scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a scope that it should avoid
}

// loadStudio books what each subsystem takes of the level. The bytes stand for what a real one would load.
func loadStudio(level *budget.Region, textures int) error {
	_, err := budget.Load(context.Background(), level, func(s scope.Scope) (*struct{}, error) {
		err := scope.Label(s, "sound", func() error {
			s.Bytes(20 * budget.KiB)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return nil, scope.Label(s, "graphics", func() error {
			for range textures {
				s.Bytes(16 * budget.KiB)
			}
			return nil
		})
	})
	return err
}

// Who has eaten the level? Reports name each label, and the error of a level that is full names the largest.
func ExampleLabel() {
	b, err := budget.Open(budget.Plan{Name: "studio", Regions: []budget.RegionPlan{{Name: "level", Size: 128 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	level := b.Region("level")

	fmt.Println(loadStudio(level, 3))
	for _, label := range level.Report().Labels {
		fmt.Println(label.Name, label.Bytes, "bytes")
	}

	err = loadStudio(level, 9)
	fmt.Println(strings.ReplaceAll(err.Error(), "; ", "\n  "))
	// Output:
	// <nil>
	// sound 20480 bytes
	// graphics 49152 bytes
	// budget "studio": region level is full: scope "level" asked for 16384 bytes, 12208 of 131072 are free
	//   held by "graphics" 98304, "sound" 20480, "level" 80
	//   raise regions[0].size in the plan to 135248 or more
}

// Connection stands for a net.Conn: a Go value, which can't lie in an arena.
type Connection struct{ To string }

func (c *Connection) Close() error {
	fmt.Println("hang up on", c.To)
	return nil
}

// Player lies in an arena. Its name is an offset, its connection a number: both are plain data.
type Player struct {
	Name arena.String
	Conn scope.Owned
}

var playerKind = scope.Plain[Player]()

// An object in an arena has a Go value by its Owned. The match hangs up on whoever is left when it ends.
func ExampleOwned() {
	b, _ := openExample()
	defer b.Close()
	ctx := context.Background()

	type Match struct{ Ada, Bob, Cyd *Player }
	match, err := budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Match, error) {
		join := func(name string) *Player {
			player := playerKind.New(s)
			player.Conn = s.Own(&Connection{To: name}) // from here on the match closes it
			return player
		}
		return &Match{join("Ada"), join("Bob"), join("Cyd")}, nil
	})
	if err != nil {
		panic(err)
	}
	m := match.Get()
	fmt.Println("talk to", m.Ada.Conn.Value().(*Connection).To)

	fmt.Println("Bob leaves:", m.Bob.Conn.CloseNow())
	fmt.Println("Bob leaves again:", m.Bob.Conn.CloseNow()) // NOT OKAY: nothing runs twice

	conn := m.Cyd.Conn.Value().(*Connection) // Cyd moves to another server, which closes the connection itself
	fmt.Println("Cyd moves:", m.Cyd.Conn.Cancel(), conn.To, m.Cyd.Conn.Value())

	fmt.Println("the match ends:", b.Region("level").Rewind(ctx))
	// Output:
	// talk to Ada
	// hang up on Bob
	// Bob leaves: <nil>
	// Bob leaves again: scope: BUG: CloseNow of what was closed, run or cancelled before
	// Cyd moves: true Cyd <nil>
	// hang up on Ada
	// the match ends: <nil>
}

// A Go slice's elements lie on the Go heap. A copy lies in the scope.
func ExampleMaker_Clone() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("query")
	defer s.Close()
	read := []Spark{{Heat: 1}, {Heat: 2}}
	kept := sparks.Clone(s, read)
	read[0].Heat = 7
	fmt.Println(kept, cap(kept))
	// Output: [{1} {2}] 2
}

// A Go string's bytes lie on the Go heap. StringOf copies them into the region and says where they are.
func ExampleStringOf() {
	b, _ := openExample()
	defer b.Close()
	region := b.Region("level")

	type Match struct{ Players []Player }
	match, err := budget.Load(context.Background(), region, func(s scope.Scope) (*Match, error) {
		players := playerKind.Slice(s, 2)
		for i, name := range []string{"Ada", "Zoë"} {
			players[i].Name = scope.StringOf(s, region.Base(), name)
		}
		return &Match{players}, nil
	})
	if err != nil {
		panic(err)
	}
	for _, player := range match.Get().Players {
		fmt.Println(player.Name.Get(region.Base()), player.Name.Len(), "bytes")
	}
	// Output:
	// Ada 3 bytes
	// Zoë 4 bytes
}

// Spark lies in a pool that all workers share.
type Spark struct{ Heat int32 }

var sparks = scope.Plain[Spark]()

// ExamplePool takes and puts back, in any order.
func ExamplePool() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("forge")
	defer s.Close()

	pool := sparks.Pool(s, 3)
	first, second := pool.Get(), pool.GetUnzeroed() // for who writes all of it
	first.Heat, second.Heat = 10, 20
	for i, spark := range pool.All() {
		fmt.Println(i, spark.Heat)
	}
	pool.Put(first)
	fmt.Println(pool.Live(), pool.Peak(), pool.Cap(), pool.At(0) == nil, pool.Index(second))
	// Output:
	// 0 10
	// 1 20
	// 1 2 3 true 1
}

// Four workers light sparks from one pool. Each is inside the level meanwhile, so that no rewind takes the pool away.
func ExampleSharedPool() {
	b, _ := openExample()
	defer b.Close()
	ctx, level := context.Background(), b.Region("level")
	loaded, err := budget.Load(ctx, level, func(s scope.Scope) (*scope.SharedPool[Spark], error) {
		return sparks.SharedPool(s, 100), nil
	})
	if err != nil {
		panic(err)
	}
	pool := loaded.Get()

	var missed atomic.Int32
	var workers sync.WaitGroup
	for i := range 4 {
		reader := level.Reader(fmt.Sprint("worker ", i))
		workers.Go(func() {
			if !reader.Pin() {
				return // the level is being rewound
			}
			defer reader.Unpin()
			for range 30 {
				spark := pool.Get()
				if spark == nil { // all are lit: a state of play
					missed.Add(1)
					continue
				}
				spark.Heat = 1000 // which worker has it, it alone writes it
			}
		})
	}
	workers.Wait()
	fmt.Println(pool.Live(), "are lit,", missed.Load(), "are not")

	fmt.Println(level.Rewind(ctx), pool.Live(), pool.Get() == nil)
	// Output:
	// 100 are lit, 20 are not
	// <nil> 0 true
}

// ExampleHandlePool names frogs by handles: who targets one is told when it is gone, also when another sits in its place.
func ExampleHandlePool() {
	b, scratch := openExample()
	defer b.Close()
	s := scratch.Open("pond")
	defer s.Close()

	pool := herons.HandlePool(s, 2)
	heron, target := pool.Get()
	heron.X = 7
	fmt.Println("at", pool.At(target).X)

	pool.Put(target)
	other, another := pool.Get()
	other.X = 8
	fmt.Println("gone:", pool.At(target) == nil, "same chunk:", pool.Index(another) == 0)

	pool.Get()
	none, _ := pool.Get()
	fmt.Println("full:", none == nil, pool.Live(), "of", pool.Cap())

	defer func() { fmt.Println(recover()) }()
	pool.Put(target) // NOT OKAY: it was put
	// Output:
	// at 7
	// gone: true same chunk: true
	// full: true 2 of 2
	// scope: BUG: Put of a handle of a scope_test.Heron: put twice
}

// Heron is of the level. Camera is of the systems, which outlive the level: what it looks at, it knows by a Ref.
type (
	Heron  struct{ X int32 }
	Camera struct{ Target scope.Ref[Heron] }
)

var (
	herons  = scope.Plain[Heron]()
	cameras = scope.Plain[Camera]()
)

var heronAddrs = scope.Plain[scope.Addr[Heron]]()

// ExampleAddr has a list on scratch of what lies in the level, which is there longer than the list.
func ExampleAddr() {
	b, scratch := openExample()
	defer b.Close()
	type Level struct {
		Scope  scope.Scope // frozen after the load; AddrOf takes it as a proof
		Herons []Heron
	}
	loaded, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*Level, error) {
		return &Level{s, herons.Slice(s, 3)}, nil
	})
	if err != nil {
		panic(err)
	}
	level := loaded.Get()
	query := scratch.Open("who is near")
	near := heronAddrs.SliceCap(query, 0, len(level.Herons))
	for i := range level.Herons {
		near = append(near, scope.AddrOf(level.Scope, &level.Herons[i]))
	}
	for i, heron := range near {
		heron.Get().X = int32(10 * i)
	}
	fmt.Println(level.Herons[2].X, query.Close(), scope.Addr[Heron]{}.Get() == nil)
	// Output: 20 <nil> true
}

// ExampleRef lets systems refer to the level: after the rewind there is nothing, and never another heron.
func ExampleRef() {
	b, err := budget.Open(budget.Plan{Name: "example", Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
		{Name: "level", Size: 64 * budget.KiB}}})
	if err != nil {
		panic(err)
	}
	defer b.Close()
	ctx := context.Background()
	systems, err := budget.Load(ctx, b.Region("systems"), func(s scope.Scope) (*Camera, error) { return cameras.New(s), nil })
	if err != nil {
		panic(err)
	}
	camera := systems.Get()
	fmt.Println("before:", camera.Target.Get() == nil)

	for x := range int32(2) {
		_, err = budget.Load(ctx, b.Region("level"), func(s scope.Scope) (*Heron, error) {
			fmt.Println("while loading:", camera.Target.Get() == nil) // the old level's heron is gone
			heron := herons.New(s)
			heron.X = 10 * (x + 1)
			camera.Target = scope.RefTo(s, heron)
			return heron, nil
		})
		if err != nil {
			panic(err)
		}
		fmt.Println("heron at", camera.Target.Get().X)
	}
	fmt.Println(b.Region("level").Rewind(ctx), camera.Target.Get() == nil)
	// Output:
	// before: true
	// while loading: true
	// heron at 10
	// while loading: true
	// heron at 20
	// <nil> true
}

type (
	wide   struct{ Lanes [8]uint32 }
	number uint32
	flag   uint8
)

var (
	wides   = scope.Plain[wide]()
	numbers = scope.Plain[number]()
	flags   = scope.Plain[flag]()
)

// A scope places each thing behind the last one, at the next address that is aligned for it. What lies between is lost until
// the scope closes. The same things in another order lose less: the largest alignment first.
func ExampleStats_padding() {
	b, _ := openExample()
	defer b.Close()
	scratch := b.Scratch(0, 0)
	show := func(order string, make func(s scope.Scope)) {
		_ = scratch.Do(order, func(s scope.Scope) error {
			make(s)
			used := scratch.Stats().Used
			fmt.Printf("%-13s  %d bytes, %4d of them padding\n", order, used, used-100*(32+4+1+1))
			return nil
		})
	}
	show("as it comes", func(s scope.Scope) {
		for range 100 {
			flags.New(s)
			wides.New(s)
			flags.New(s)
			numbers.New(s)
		}
	})
	show("largest first", func(s scope.Scope) {
		for range 100 {
			wides.New(s)
			numbers.New(s)
			flags.New(s)
			flags.New(s)
		}
	})
	show("kind by kind", func(s scope.Scope) {
		wides.Slice(s, 100)
		numbers.Slice(s, 100)
		flags.Slice(s, 200)
	})
	// Output:
	// as it comes    4400 bytes,  600 of them padding
	// largest first  3998 bytes,  198 of them padding
	// kind by kind   3800 bytes,    0 of them padding
}
