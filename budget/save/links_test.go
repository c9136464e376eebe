package save_test

import (
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

// linked is a building of which a test changes where its links lead.
type linked struct {
	*building
	image    []byte
	mark     uint64 // from the region's first byte
	lamps    int    // of the image: the words of hall.Lamps
	first    int    // of hall.First
	tail     int    // of the first actor's Tail
	pool     save.ControlPool
	from, to uint64 // the state, as links count
}

func newLinked(t testing.TB) *linked {
	l := &linked{building: newBuilding(t)}
	c := save.ControlOf(l.ring)
	l.image, l.pool = save.Image(l.ring, 1), c.Pools[0]
	l.lamps = c.From + int(unsafe.Offsetof(l.hall.Lamps))
	l.first = c.From + int(unsafe.Offsetof(l.hall.First))
	l.tail = l.pool.Chunks + int(unsafe.Offsetof(actor{}.Tail))
	l.mark = 832 // 777 bytes, and up to a line
	l.from, l.to = l.mark+1, l.mark+1+uint64(c.To-c.From)
	return l
}

// storedOf is what an arena.Ptr to p has.
func storedOf[T any](r *budget.Region, p *T) uint64 {
	to := arena.PtrTo(r.Base(), p)
	return *(*uint64)(unsafe.Pointer(&to))
}

// at is what a link has that leads to a byte of the image.
func (l *linked) at(image int) uint64 { return l.from + uint64(image-save.ControlOf(l.ring).From) }

func (l *linked) lead(link int, words ...uint64) {
	for i, w := range words {
		binary.LittleEndian.PutUint64(l.image[link+8*i:], w)
	}
}

// TestHostileLinks: no link of a state from outside leads over what is the program's own.
func TestHostileLinks(t *testing.T) {
	l := newLinked(t)
	c := save.ControlOf(l.ring)
	require.Equal(t, l.from, storedOf(l.region, l.hall))
	const words, behind, across, twice = "over words of a pool or a scope", "behind the state",
		"before the state and in it", "where another has an arena.Ptr"
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
		{"what never changes", l.lamps, []uint64{1, 200}, ""},
		{"a node in what never changes", l.first, []uint64{1}, ""},
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
		{"its values alone", l.lamps, []uint64{l.at(l.pool.Chunks), 6}, ""},
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

// TestLinksBefore: neither do they lead over what is the program's own before the state.
func TestLinksBefore(t *testing.T) {
	type root struct {
		Lamps arena.Slice[lamp]
		First arena.Ptr[node]
	}
	maker := scope.Plain[root]()
	var ring *save.Ring
	var voice *voice
	var graph, loose []node
	b := open(t, twoRegions())
	r := b.Region("level")
	base := r.Base()
	var chunk *frog
	load(t, b, "level", func(_ *budget.Region, s scope.Scope) {
		voice = voiceMaker.New(s)
		frogs := frogMaker.Pool(s, 4)
		chunk = frogs.Get()
		graph, loose = nodeMaker.Slice(s, 4), nodeMaker.Slice(s, 2)
		for i := range graph {
			graph[i].Next = arena.PtrTo(base, &graph[(i+1)%4])
		}
		state, root := save.Begin(r, s, maker)
		root.First = arena.PtrTo(base, &graph[1])
		ring = save.NewRing(s, 2, state)
	})
	require.NoError(t, ring.Take(1))
	image := save.Image(ring, 1)
	require.NoError(t, save.Hold(ring, 2, image), "a graph that never changes")
	lead := func(lamps, count, first uint64) error {
		for i, w := range []uint64{lamps, count, first} {
			binary.LittleEndian.PutUint64(image[save.ControlOf(ring).From+8*i:], w)
		}
		return save.Hold(ring, 2, image)
	}
	const words = "over words of a pool or a scope"
	voices, chunks := storedOf(r, voice), storedOf(r, chunk)
	require.NoError(t, lead(voices, 2, 0))
	require.ErrorContains(t, lead(voices-8, 2, 0), words)
	require.ErrorContains(t, lead(voices-2, 1, 0), words)
	require.NoError(t, lead(chunks, 4, 0))
	require.ErrorContains(t, lead(chunks-2, 1, 0), words)
	at := storedOf(r, &loose[1])
	require.NoError(t, lead(0, 0, at))
	// What never changes leads on.
	*(*uint64)(unsafe.Pointer(&graph[0].Value)) = chunks - 8
	require.ErrorContains(t, lead(0, 0, storedOf(r, &graph[0])+8), words)
}

// hostileLinks changes where links lead, four bytes each: which one, where to, and how many. Where
// that passes, play writes all that it is led to, and what is the program's own is as it was.
func (l *linked) hostileLinks(t testing.TB, program []byte) (held bool) {
	c := save.ControlOf(l.ring)
	l.image = save.Image(l.ring, 1)
	links := []int{l.lamps, l.first, l.tail, c.From + int(unsafe.Offsetof(l.hall.Name))}
	for _, n := range l.nodes {
		links = append(links, c.From+int(storedOf(l.region, n)-l.from))
	}
	for ; len(program) >= 4; program = program[4:] {
		link := links[int(program[0])%len(links)]
		l.lead(link, l.from+uint64(binary.LittleEndian.Uint16(program[1:]))%(l.to+64-l.from))
		if len(links) > 4 && link != l.first && program[0]%7 < 4 {
			binary.LittleEndian.PutUint64(l.image[link+8:], uint64(program[3]%32))
		}
	}
	if save.Hold(l.ring, 2, l.image) != nil {
		return false
	}
	if arena_c.Checked || arena_c.Crossing { // these tell who writes beside an object
		return true
	}
	require.NoError(t, l.ring.Restore(t.Context(), 2))
	base := l.region.Base()
	for range 3 { // through what was written
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
		if a := l.actors.At(l.best); a != nil {
			for i := range a.Tail.Get(base) {
				a.Tail.Get(base)[i] = place{-1, -1}
			}
		}
	}
	require.NoError(t, l.ring.Take(2))
	after := save.Image(l.ring, 2)
	require.Equal(t, l.image[l.pool.Numbers:l.pool.Chunks], after[l.pool.Numbers:l.pool.Chunks])
	require.Equal(t, l.image[:c.From], after[:c.From])
	for _, at := range c.Nodes {
		require.Equal(t, l.image[at:at+40], after[at:at+40])
	}
	require.NoError(t, l.ring.Restore(t.Context(), 1))
	return true
}

// FuzzLinks: wherever links lead that pass, play through them leaves what is the program's own.
func FuzzLinks(f *testing.F) {
	l := newLinked(f)
	f.Add([]byte{0, 64, 0, 3})
	f.Add([]byte{1, 80, 0, 0, 4, 100, 0, 0})
	f.Fuzz(func(t *testing.T, program []byte) { l.hostileLinks(t, program) })
}

// TestRandomLinks: as FuzzLinks.
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

// TestLinksOften: many that lead to much are refused in time, and few aren't.
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
	load(t, b, "level", func(_ *budget.Region, s scope.Scope) {
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
		return // they look at each word that is looked at: 20 s
	}
	for i := range lists {
		lists[i] = arena.SliceOf(r.Base(), nodes[i:])
	}
	require.NoError(t, ring.Take(1))
	require.ErrorContains(t, save.Hold(ring, 2, save.Image(ring, 1)), "too many")
}

// TestDeclaredLinks: a type of the game's that is declared as an arena.Ptr or arena.Slice is one.
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
	load(t, b, "level", func(_ *budget.Region, s scope.Scope) {
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
	require.ErrorContains(t, save.Hold(ring, 2, image), "where another has an arena.Ptr")
	load(t, b, "level", func(_ *budget.Region, s scope.Scope) {
		require.PanicsWithError(t, "save: BUG: the state of region level can't have a save_test.odd:\n\t"+
			"3 bytes of padding behind padded.B may hold anything; write a field `_ [3]byte` there, or "+
			"have larger fields first", func() { save.Begin(r, s, scope.Plain[odd]()) })
	})
}
