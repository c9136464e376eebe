package save_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
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

// linked is a building whose links a test changes.
type linked struct {
	*building
	image    []byte
	mark     uint64 // from the region's first byte
	never    []byte // before the state; no link leads there
	lamps    int    // position in the image of hall.Lamps
	name     int    // of hall.Name
	first    int    // of hall.First
	tail     int    // of the first actor's Tail
	up       int    // of the first actor's bool
	pool     save.ControlPool
	from, to uint64 // the state, in the offsets of links
}

func newLinked(t testing.TB) *linked {
	l := &linked{building: newBuilding(t)}
	c := save.ControlOf(l.ring)
	l.image, l.pool = save.Image(l.ring, 1), c.Pools[0]
	l.lamps = c.From + int(unsafe.Offsetof(l.hall.Lamps))
	l.name = c.From + int(unsafe.Offsetof(l.hall.Name))
	l.first = c.From + int(unsafe.Offsetof(l.hall.First))
	l.tail = l.pool.Chunks + int(unsafe.Offsetof(actor{}.Tail))
	l.up = l.pool.Chunks + int(unsafe.Offsetof(actor{}.Up))
	l.mark = 832 // 777 bytes, rounded up to a line
	l.never = bytes.Clone(l.region.Base().Bytes()[400:l.mark])
	l.from, l.to = l.mark+1, l.mark+1+uint64(c.To-c.From)
	return l
}

// storedOf returns the stored word of an arena.Ptr to p.
func storedOf[T any](r budget.Region, p *T) uint64 {
	to := arena.PtrTo(r.Base(), p)
	return *(*uint64)(unsafe.Pointer(&to))
}

// at returns the stored word of a link to a byte of the image.
func (l *linked) at(image int) uint64 { return l.from + uint64(image-save.ControlOf(l.ring).From) }

func (l *linked) lead(link int, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(l.image[link+8*i:], w)
	}
}

// TestHostileLinks: no link of a snapshot from outside leads over the program's own words.
func TestHostileLinks(t *testing.T) {
	l := newLinked(t)
	c := save.ControlOf(l.ring)
	require.Equal(t, l.from, storedOf(l.region, l.hall))
	const words, behind, across, twice = "over words of a pool or a scope", "past the state's end",
		"before the state and in it", "where two types overlap"
	const before = "before the state: name the values with save.Readable if links may lead to them"
	up := l.at(l.up)
	for _, test := range []struct {
		what string
		link int
		to   []uint64
		says string
	}{
		{"nowhere", l.lamps, []uint64{0, 5}, ""},
		{"nothing", l.lamps, []uint64{l.at(l.pool.States), 0}, ""},
		{"beside the base", l.lamps, []uint64{1 << 40, 5}, ""},
		{"more than there is", l.lamps, []uint64{l.from, 1 << 63}, ""},
		{"misaligned", l.lamps, []uint64{l.at(l.pool.States) &^ 1, 1}, ""},
		{"what nothing leads to", l.lamps, []uint64{l.to - 8, 2}, ""},
		{"what Readable named", l.lamps, []uint64{1, 100}, ""},
		{"its last four bytes", l.lamps, []uint64{397, 1}, ""},
		{"more than Readable named", l.lamps, []uint64{1, 101}, before},
		{"what Readable didn't name", l.lamps, []uint64{401, 1}, before},
		{"a node in what Readable named", l.first, []uint64{1}, before},
		{"states", l.lamps, []uint64{l.at(l.pool.Chunks - 4), 1}, words},
		{"the first number", l.lamps, []uint64{l.at(l.pool.Numbers), 1}, words},
		{"up to the first number", l.lamps, []uint64{l.at(l.pool.Numbers - 4), 1}, words},
		{"a generation", l.lamps, []uint64{l.at(l.pool.Generations + 16), 1}, words},
		{"the chain", l.lamps, []uint64{l.at(c.Nodes[0]), 1}, words},
		{"a label", l.first, []uint64{l.at(c.Nodes[0])}, words},
		{"all", l.lamps, []uint64{l.from, (l.to - l.from) / 4}, words},
		{"the ring", l.lamps, []uint64{l.to + 56, 1}, behind},
		{"the end", l.lamps, []uint64{l.to - 2, 1}, behind},
		{"the mark", l.lamps, []uint64{l.from - 2, 1}, across},
		{"the root", l.lamps, []uint64{l.at(l.lamps), 1}, twice},
		{"the root's other word", l.lamps, []uint64{l.at(l.lamps + 12), 1}, twice},
		{"a Ptr as a node", l.first, []uint64{l.at(l.lamps)}, twice},
		{"a live chunk", l.lamps, []uint64{l.at(l.tail), 1}, twice},
		{"a free chunk", l.lamps, []uint64{l.at(l.tail + 4*l.pool.Stride), 1}, twice},
		{"its numbers alone", l.lamps, []uint64{l.at(l.pool.Chunks), 6}, ""},
		{"its bool", l.lamps, []uint64{up - 1, 1}, twice},
		{"a free chunk's bool", l.lamps, []uint64{up - 1 + 4*uint64(l.pool.Stride), 1}, twice},
		{"its bool by a String", l.name, []uint64{up, 1}, twice},
		{"before its bool by a String", l.name, []uint64{up - 1, 1}, ""},
		{"behind its bool by a String", l.name, []uint64{up + 1, 1}, ""},
		{"a chunk's over the root", l.tail, []uint64{l.at(l.lamps), 1}, twice},
		{"a chunk's over nodes", l.tail, []uint64{binary.LittleEndian.Uint64(l.image[l.first:]), 1},
			twice},
		{"a chunk's over states", l.tail, []uint64{l.at(l.pool.Chunks - 8), 1}, words},
	} {
		l.image = save.Image(l.ring, 1)
		l.lead(test.link, test.to...)
		err := save.Hold(l.ring, 2, l.image)
		if test.says == "" {
			require.NoError(t, err, test.what)
			continue
		}
		require.ErrorContains(t, err, test.says, test.what)
		require.ErrorContains(t, err, "region level, offset 0x", test.what)
	}
}

// TestLinksBefore: before the state links may lead only to values that Readable named.
func TestLinksBefore(t *testing.T) {
	type root struct {
		Lamps arena.Slice[lamp]
		First arena.Ptr[node]
		Flags arena.Slice[bool]
		Name  arena.String
	}
	maker := scope.Plain[root]()
	var ring *save.Ring
	var voice *voice
	var lamps, more []lamp
	var graph []node
	var chunk *frog
	b := open(t, twoRegions())
	r := b.Region("level")
	base := r.Base()
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		lamps, voice, more = lampMaker.Slice(s, 4), voiceMaker.New(s), lampMaker.Slice(s, 4)
		frogs := frogMaker.Pool(s, 4)
		chunk = frogs.Get()
		graph = nodeMaker.Slice(s, 4)
		name := byteMaker.Slice(s, 8)
		copy(name, "the pond")
		state, root := save.Begin(r, s, maker)
		root.Lamps, root.Name = arena.SliceOf(base, more), arena.StringOf(base, name[:3])
		save.Readable(state, more)
		save.Readable(state, lamps[:2])
		save.Readable(state, name)
		save.Readable[lamp](state, nil)
		state.Verify(func(v save.View) error {
			root := save.At(v, root)
			if name := save.GetString(v, root.Name); name != "" && name != "the" {
				t.Error(name)
			}
			if list := save.GetSlice(v, root.Lamps); root.Lamps.Len() == 4 && &list[0] != &more[0] {
				t.Error("it is where the loader made it")
			}
			return nil
		})
		ring = save.NewRing(s, 2, state)
	})
	require.NoError(t, ring.Take(1))
	image := save.Image(ring, 1)
	require.NoError(t, save.Hold(ring, 2, image))
	lead := func(words ...uint64) error {
		for i, w := range words {
			binary.LittleEndian.PutUint64(image[save.ControlOf(ring).From+8*i:], w)
		}
		return save.Hold(ring, 2, image)
	}
	const before = "before the state: name the values with save.Readable if links may lead to them"
	require.NoError(t, lead(storedOf(r, &lamps[0]), 2, 0))
	require.ErrorContains(t, lead(storedOf(r, &lamps[0]), 3, 0), before)
	require.ErrorContains(t, lead(storedOf(r, &lamps[2]), 1, 0), before)
	require.ErrorContains(t, lead(storedOf(r, voice), 1, 0), before)
	require.ErrorContains(t, lead(storedOf(r, chunk), 1, 0), before)
	require.ErrorContains(t, lead(0, 0, storedOf(r, &graph[1])), before)
	require.ErrorContains(t, lead(0, 0, storedOf(r, &more[0])), before, "a node has a link")
	require.ErrorContains(t, lead(0, 0, 0, storedOf(r, &lamps[0]), 8), before, "any byte, as a bool")
	require.NoError(t, lead(0, 0, 0, 0, 0))
}

// TestReadableMisuse: Readable refuses types that aren't only numbers.
func TestReadableMisuse(t *testing.T) {
	type flag struct {
		On bool
		_  [7]byte
	}
	type list struct{ All arena.Slice[lamp] }
	b := open(t, twoRegions())
	r := b.Region("level")
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		before := lampMaker.Slice(s, 4)
		state, root := save.Begin(r, s, roomMaker)
		inside := lampMaker.Slice(s, 4)
		elsewhere := "save: BUG: Readable of region level: the values aren't in the region before the state"
		require.PanicsWithValue(t, elsewhere, func() { save.Readable(state, inside) })
		require.PanicsWithValue(t, elsewhere, func() { save.Readable(state, make([]lamp, 3)) })
		require.PanicsWithValue(t, elsewhere, func() {
			save.Readable(state, unsafe.Slice(&root.Used, 1))
		})
		if !arena_c.Checked && !arena_c.Asan {
			require.PanicsWithValue(t, elsewhere, func() {
				save.Readable(state, unsafe.Slice(&before[0], 1000))
			})
		}
		require.PanicsWithValue(t, "save: BUG: Readable of region level can't name a save_test.list, "+
			"which has a bool, an arena.Ptr or an arena.Slice", func() { save.Readable(state, []list{}) })
		require.Panics(t, func() { save.Readable(state, []flag{}) })
		require.Panics(t, func() { save.Readable(state, []struct{ Way scope.Addr[lamp] }{}) })
		values := "save: BUG: Values of region level: the values aren't in the state"
		require.PanicsWithValue(t, values, func() { save.Values(state, before) })
		require.PanicsWithValue(t, values, func() { save.Values(state, make([]lamp, 3)) })
		require.Panics(t, func() { save.Values(state, []uintptr{}) })
		save.Values[lamp](state, nil)
		save.NewRing(s, 1, state)
		require.PanicsWithValue(t, "save: BUG: Readable of region level after NewRing", func() {
			save.Readable(state, before)
		})
		require.PanicsWithValue(t, "save: BUG: Values of region level after NewRing", func() {
			save.Values(state, inside)
		})
	})
}

// hostileLinks changes links, four bytes each: the link, its target and its length. If the image
// passes, play writes through all links, and the program's own words stay as they were.
func (l *linked) hostileLinks(t testing.TB, program []byte) (held bool) {
	c := save.ControlOf(l.ring)
	l.image = save.Image(l.ring, 1)
	links := []int{l.lamps, l.first, l.tail, l.name}
	for _, n := range l.nodes {
		links = append(links, c.From+int(storedOf(l.region, n)-l.from))
	}
	for ; len(program) >= 4; program = program[4:] {
		link := links[int(program[0])%len(links)]
		first := l.from
		if program[0] >= 0x80 {
			first = 1
		}
		l.lead(link, first+uint64(binary.LittleEndian.Uint16(program[1:]))%(l.to+64-first))
		if len(links) > 4 && link != l.first && program[0]%7 < 4 {
			binary.LittleEndian.PutUint64(l.image[link+8:], uint64(program[3]%32))
		}
	}
	if save.Hold(l.ring, 2, l.image) != nil {
		return false
	}
	l.plays(t, 2)
	return true
}

// plays writes through all links of a snapshot. The program's own words, bools and unnamed values
// before the state stay as they were.
func (l *linked) plays(t testing.TB, number uint64) {
	if arena_c.Checked || arena_c.Crossing { // these builds report writes next to an object
		return
	}
	c := save.ControlOf(l.ring)
	image := save.Image(l.ring, number)
	require.NoError(t, l.ring.Restore(t.Context(), number))
	base := l.region.Base()
	for range 3 { // also through the new links
		lamps := l.hall.Lamps.Get(base)
		for i := range lamps {
			lamps[i] = lamp{-1, -1}
		}
		next := l.hall.First
		for range 5 {
			if n := next.Get(base); n != nil {
				n.Value, next = complex(1e30, 1e30), n.Next
			}
		}
		for _, a := range l.actors.All() {
			for i := range a.Tail.Get(base) {
				a.Tail.Get(base)[i] = place{-1, -1}
			}
		}
		require.LessOrEqual(t, len(l.hall.Name.Get(base)), len(base.Bytes()))
	}
	require.NoError(t, l.ring.Take(2))
	after := save.Image(l.ring, 2)
	require.Equal(t, image[l.pool.Numbers:l.pool.Chunks], after[l.pool.Numbers:l.pool.Chunks])
	require.Equal(t, image[:c.From], after[:c.From])
	for i := range l.pool.Count {
		require.LessOrEqual(t, after[l.up+i*l.pool.Stride], byte(1), "a bool")
	}
	require.Equal(t, l.never, l.region.Base().Bytes()[400:l.mark], "what Readable didn't name")
	for _, at := range c.Nodes {
		require.Equal(t, image[at:at+40], after[at:at+40])
	}
	require.NoError(t, l.ring.Restore(t.Context(), 1))
}

// FuzzLinks: play through any links that pass leaves the program's own words.
func FuzzLinks(f *testing.F) {
	l := newLinked(f)
	f.Add([]byte{0, 64, 0, 3})
	f.Add([]byte{1, 80, 0, 0, 4, 100, 0, 0})
	f.Add([]byte{0x80, 0, 0, 31})
	f.Fuzz(func(t *testing.T, program []byte) { l.hostileLinks(t, program) })
}

// TestRandomLinks is FuzzLinks with random bytes.
func TestRandomLinks(t *testing.T) {
	l := newLinked(t)
	r := rand.New(rand.NewPCG(3, 4))
	held := 0
	for range 5000 {
		program := make([]byte, 4*(1+r.IntN(2)))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		if l.hostileLinks(t, program) {
			held++
		}
	}
	assert.Greater(t, held, 200)
	assert.Less(t, held, 4800)
}

// TestLinksOften: many links to much memory are refused in time, and few aren't refused.
func TestLinksOften(t *testing.T) {
	type many struct {
		All arena.Slice[arena.Slice[node]]
	}
	const count = 20_000
	plan := budget.Plan{Name: "many", Regions: []budget.RegionPlan{
		{Name: "level", Size: 8 * budget.MiB, State: true}}}
	b := open(t, plan)
	r := b.Region("level")
	var ring *save.Ring
	var lists []arena.Slice[node]
	var nodes []node
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, root := save.Begin(r, s, scope.Plain[many]())
		lists, nodes = scope.Plain[arena.Slice[node]]().Slice(s, count), nodeMaker.Slice(s, count)
		root.All = arena.SliceOf(r.Base(), lists)
		ring = save.NewRing(s, 2, state)
	})
	for i := range lists {
		lists[i] = arena.SliceOf(r.Base(), nodes[i:min(i+100, count)])
	}
	require.NoError(t, ring.Take(1))
	require.NoError(t, save.Hold(ring, 2, save.Image(ring, 1)))
	if arena_c.Asan || arena_c.Race {
		return // these builds check each word that is read: 20 s
	}
	for i := range lists {
		lists[i] = arena.SliceOf(r.Base(), nodes[i:])
	}
	require.NoError(t, ring.Take(1))
	require.ErrorContains(t, save.Hold(ring, 2, save.Image(ring, 1)), "too many")
}

// TestDeclaredLinks: a type declared as an arena.Ptr or arena.Slice is a link.
func TestDeclaredLinks(t *testing.T) {
	type friend arena.Ptr[lamp]
	type crowd arena.Slice[node]
	type club struct {
		First friend
		All   crowd
	}
	type padded struct {
		A uint32
		B uint8
	}
	type loose arena.Slice[padded]
	type odd struct{ All loose }
	b := open(t, twoRegions())
	r := b.Region("level")
	var ring *save.Ring
	var root *club
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		state, club := save.Begin(r, s, scope.Plain[club]())
		root = club
		root.All = crowd(arena.SliceOf(r.Base(), nodeMaker.Slice(s, 2)))
		ring = save.NewRing(s, 2, state)
	})
	require.NoError(t, ring.Take(1))
	arena.Slice[node](root.All).Get(r.Base())[1].Value = 7
	require.NoError(t, ring.Take(2))
	d, _, err := ring.Diff(1, 2)
	require.NoError(t, err)
	assert.Equal(t, "club.All[1]", d.Object)
	image := save.Image(ring, 1)
	binary.LittleEndian.PutUint64(image[save.ControlOf(ring).From:], storedOf(r, root)+8)
	require.ErrorContains(t, save.Hold(ring, 2, image), "where two types overlap")
	load(t, b, "level", func(_ budget.Region, s scope.Scope) {
		require.PanicsWithError(t, "save: BUG: the state of region level can't have a save_test.odd:\n\t"+
			"3 bytes of padding after padded.B may have any value; write a field `_ [3]byte` there, or "+
			"put larger fields first", func() { save.Begin(r, s, scope.Plain[odd]()) })
	})
}
