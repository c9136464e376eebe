package save_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
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

type (
	place struct{ X, Y float32 }
	mode  uint8
	actor struct {
		Way  [3]place
		Mode mode
		Up   bool
		_    [6]byte
		Tail arena.Slice[place]
	}
	lamp struct{ Level, Left int16 }
	hall struct {
		Tick  uint64
		Name  arena.String
		Short arena.Inline[[8]byte]
		Lamps arena.Slice[lamp]
		First arena.Ptr[node]
		Best  arena.Handle[actor]
	}
	node struct {
		Next  arena.Ptr[node]
		Value complex64
	}
)

var (
	placeMaker = scope.Plain[place]()
	actorMaker = scope.Plain[actor]()
	lampMaker  = scope.Plain[lamp]()
	hallMaker  = scope.Plain[hall]()
	nodeMaker  = scope.Plain[node]()
)

// building is a state with all kinds of values.
type building struct {
	region budget.Region
	ring   *save.Ring
	hall   *hall
	actors scope.HandlePool[actor]
	best   arena.Handle[actor]
	lamps  []lamp
	nodes  []*node
	hidden []place // no link leads there
	tail   []place
}

func newBuilding(t testing.TB) *building {
	b := &building{region: open(t, twoRegions()).Region("level")}
	base := b.region.Base()
	_, err := budget.Load(background, b.region, func(s scope.Scope) (*building, error) {
		never := byteMaker.Slice(s, 777)
		state, root := save.Begin(b.region, s, hallMaker)
		save.Readable(state, never[:400])
		b.hall = root
		root.Name = scope.StringOf(s, base, "ada")
		b.actors = actorMaker.HandlePool(s, 5)
		err := scope.Label(s, "light", func() error {
			b.lamps = lampMaker.Slice(s, 6)
			return nil
		})
		root.Lamps = arena.SliceOf(base, b.lamps)
		for range 3 {
			b.nodes = append(b.nodes, nodeMaker.New(s))
		}
		for i := range b.nodes {
			b.nodes[i].Next = arena.PtrTo(base, b.nodes[(i+1)%3]) // a cycle
		}
		root.First = arena.PtrTo(base, b.nodes[0])
		b.hidden, b.tail = placeMaker.Slice(s, 4), placeMaker.Slice(s, 4)
		b.ring = save.NewRing(s, 2, state)
		return nil, err
	})
	require.NoError(t, err)
	a, h := b.actors.Get()
	a.Tail, b.best = arena.SliceOf(base, b.tail), h
	require.NoError(t, b.ring.Take(1))
	return b
}

// diff returns the difference that change makes, and undoes the change.
func (b *building) diff(t *testing.T, change func()) (d save.Difference) {
	require.NoError(t, b.ring.Restore(background, 1))
	change()
	require.NoError(t, b.ring.Take(2))
	d, differ, err := b.ring.Diff(1, 2)
	require.NoError(t, err)
	require.True(t, differ)
	back, _, err := b.ring.Diff(2, 1)
	require.NoError(t, err)
	d.A, d.B = d.B, d.A
	assert.Equal(t, d.A+d.B+d.Field, back.A+back.B+back.Field)
	d.A, d.B = d.B, d.A
	return d
}

// TestDiff: each kind of field is named, with both values.
func TestDiff(t *testing.T) {
	b := newBuilding(t)
	one := func() *actor { return b.actors.At(b.best) }
	for _, of := range []struct {
		want   string // without the facts that only a checked build knows
		change func()
	}{
		{"hall.Tick: 0 in A, 7 in B (uint64 of save_test.hall; offset 0x340", func() { b.hall.Tick = 7 }},
		{`hall.Short: "" in A, "bob" in B (arena.Inline[[8]uint8] of save_test.hall; `,
			func() { b.hall.Short.Set("bob") }},
		{"hall.Name[1]: 100 in A, 64 in B (uint8; ", func() {
			name := b.hall.Name.Get(b.region.Base())
			*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(name)), 1)) = 64
		}},
		{"hall.Lamps: 6 at offset 0x", func() {
			b.hall.Lamps = arena.SliceOf(b.region.Base(), b.lamps[:2])
		}},
		{"hall.Lamps[4].Left: 0 in A, -3 in B (int16 of save_test.lamp; ",
			func() { b.lamps[4].Left = -3 }},
		{"hall.Best: no handle in A, handle of chunk 0, generation 0x1 in B (arena.Handle[",
			func() { b.hall.Best = b.best }},
		{"hall.First.Value: 0 and 0i in A, 1 and 2i in B (complex64 of save_test.node; ",
			func() { b.nodes[0].Value = complex(1, 2) }},
		{"hall.First.Next.Next.Value: ", func() { b.nodes[2].Value = 1 }},
		{"chunk 0 of the pool of save_test.actor, field Way[2].Y: 0 in A, -1.5 in B (float32 of " +
			"save_test.actor; ",
			func() { one().Way[2].Y = -1.5 }},
		{"chunk 0 of the pool of save_test.actor, field Way[0].X: 0 in A, NaN (0x",
			func() { one().Way[0].X = float32(math.NaN()) }},
		{"chunk 0 of the pool of save_test.actor, field Mode: 0 in A, 3 in B (save_test.mode of ",
			func() { one().Mode = 3 }},
		{"chunk 0 of the pool of save_test.actor, field Up: false in A, true in B (bool of ",
			func() { one().Up = true }},
		{"chunk 0 of the pool of save_test.actor, field Tail[3].X: 0 in A, 5 in B (float32 of " +
			"save_test.place; ",
			func() { b.tail[3].X = 5 }},
		{"chunk 0 of the pool of save_test.actor: live in A, free in B (",
			func() { b.actors.Put(b.best) }},
		{"chunk 1 of the pool of save_test.actor: never taken in A, live in B (",
			func() { b.actors.Get() }},
		{"chunk 1 of the pool of save_test.actor: never taken in A, free in B (", func() {
			_, h := b.actors.Get()
			b.actors.Put(h)
		}},
	} {
		d := b.diff(t, of.change)
		assert.Contains(t, d.String(), "region level: "+of.want)
		assert.NotContains(t, d.String(), "\n")
		if !arena_c.Checked {
			assert.Empty(t, d.Scope+d.Label+d.Made)
			continue
		}
		assert.Equal(t, "level", d.Scope, of.want)
		assert.Equal(t, strings.Contains(of.want, "Lamps["), d.Label == "light", of.want)
		assert.Regexp(t, `^\S+newBuilding\S* \S*/diff_test.go:[0-9]+$`, d.Made)
	}
	// No link leads there.
	d := b.diff(t, func() { b.hidden[2].Y = 1 })
	if arena_c.Checked {
		assert.Contains(t, d.String(),
			"region level: save_test.place[2].Y: 0 in A, 1 in B (float32 of save_test.place; offset 0x")
	} else {
		assert.Regexp(t,
			`^region level: offset 0x[0-9a-f]+: [0 ]+ in A, 00 00 00 00 00 00 80 3f in B$`, d.String())
	}
	// The handle's generation alone, and the order of free chunks.
	d = b.diff(t, func() {
		_, h := b.actors.Get()
		_, k := b.actors.Get()
		b.actors.Put(h)
		b.actors.Put(k)
	})
	assert.Contains(t, d.String(),
		"chunk 1 of the pool of save_test.actor: never taken in A, free in B")
	require.NoError(t, b.ring.Restore(background, 1))
	_, differ, err := b.ring.Diff(1, 1)
	require.NoError(t, err)
	assert.False(t, differ)
	_, _, err = b.ring.Diff(1, 9)
	assert.ErrorContains(t, err, "doesn't hold snapshot 9")
}

// TestEveryByteHasADifference: if a byte of an image changes, Diff finds it at its place, with both
// values.
func TestEveryByteHasADifference(t *testing.T) {
	b := newBuilding(t)
	image := save.Image(b.ring, 1)
	for i := range image {
		other := bytes.Clone(image)
		other[i] ^= 0x55
		d, differ := save.DiffImages(b.ring, image, other)
		if !differ {
			require.GreaterOrEqual(t, i, save.ControlOf(b.ring).To, "what follows the state")
			continue
		}
		require.NotEqual(t, d.A, d.B, "byte %d: %v", i, d)
		require.NotEmpty(t, d.String())
	}
}

// TestDiffFiles: a map that a checked build wrote names the fields for files of a release.
func TestDiffFiles(t *testing.T) {
	b := newBuilding(t)
	one := written(t, b.ring, 1)
	d := b.diff(t, func() { b.hidden[2].Y, b.tail[0].X = 1, 2 })
	two := written(t, b.ring, 2)
	found, differ, err := save.DiffFiles(bytes.NewReader(one), bytes.NewReader(two), nil)
	require.NoError(t, err)
	assert.True(t, differ)
	assert.Equal(t, d, found)
	none, differ, err := save.DiffFiles(bytes.NewReader(two), bytes.NewReader(two), nil)
	require.NoError(t, err)
	assert.False(t, differ)
	assert.Equal(t, "equal", none.String())

	base := b.region.Base()
	from, to := arena.PtrTo(base, b.hall), arena.PtrTo(base, &b.hidden[0])
	at := *(*uint64)(unsafe.Pointer(&to)) - *(*uint64)(unsafe.Pointer(&from))
	checked := save.WithObjects(two, b.ring, save.Object{Offset: at, Size: 4 * 8,
		Type: "save_test.place", Scope: "level",
		Label: "made up", Made: "game.load /game.go:12"})
	found, differ, err = save.DiffFiles(bytes.NewReader(one), bytes.NewReader(two),
		bytes.NewReader(checked))
	require.NoError(t, err)
	assert.True(t, differ)
	if !arena_c.Checked {
		assert.Contains(t, found.String(),
			"region level: save_test.place[2].Y: 0 in A, 1 in B (float32 of save_test.place; offset 0x")
		assert.Contains(t, found.String(), "; scope level; label made up; made at game.load /game.go:12)")
		_, _, err = save.DiffFiles(bytes.NewReader(one), bytes.NewReader(two), bytes.NewReader(two))
		assert.EqualError(t, err, "save: the map has no names: write it in a checked build")
	}

	p := newPond(t, open(t, pondPlan()), "level", 1)
	require.NoError(t, p.ring.Take(1))
	_, _, err = save.DiffFiles(bytes.NewReader(one), bytes.NewReader(written(t, p.ring, 1)), nil)
	assert.EqualError(t, err,
		`save: B is of another program, plan or data than A: the plan: "two" in A, and "pond" in B`)
	_, _, err = save.DiffFiles(bytes.NewReader(one), bytes.NewReader(one[:99]), nil)
	assert.ErrorContains(t, err, "B: save: a file, byte 99: the file ends early: ")
	_, _, err = save.DiffFiles(bytes.NewReader(one), bytes.NewReader(one), bytes.NewReader(nil))
	assert.ErrorContains(t, err, "the map: save: a file, byte 0: the file ends early: ")
}

// TestObjects: a checked build's file lists all allocations to the byte, however they were made.
func TestObjects(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		marks := markMaker.Append(s, nil, mark{})
		for range 4 {
			marks = markMaker.Append(s, marks, mark{})
		}
		// grows the same slice from its middle
		marks = markMaker.Append(s, marks[2:], mark{}, mark{})
		byteMaker.Slice(s, 3)
		markMaker.Append(s, marks, mark{}) // moves, since another value follows it
		text := s.Text()
		text.Add("ada").Add(" and bob")
		require.NoError(t, scope.Label(s, "outer", func() error {
			byteMaker.Slice(s, 1)
			require.NoError(t, scope.Label(s, "inner", func() error { flyMaker.Pool(s, 3); return nil }))
			s.BytesUnzeroed(8, 8)
			return nil
		}))
		s.AllocUnzeroed(5, 1)
		flies := flyMaker.Build(s)
		for range 3 {
			flies.Push(fly{})
		}
		flies.Done()
		scope.StringOf(s, r.Base(), "carl")
		ring = save.NewRing(s, 1, state)
		byteMaker.Slice(s, 9) // unreachable
	})
	require.NoError(t, ring.Take(1))
	f, err := save.ReadFile(bytes.NewReader(written(t, ring, 1)))
	require.NoError(t, err)
	part := f.Layout.Parts[0]
	if !arena_c.Checked {
		assert.Empty(t, part.Objects)
		return
	}
	var got []string
	end := uint64(0)
	for _, o := range part.Objects {
		require.LessOrEqual(t, end, o.Offset)
		end = o.Offset + o.Size
		require.LessOrEqual(t, end, part.Size)
		require.Regexp(t, `save_test\.TestObjects\S* \S*/diff_test.go:[0-9]+$`, o.Made)
		assert.Equal(t, "level", o.Scope)
		got = append(got, fmt.Sprintf("%d %s %s", o.Size, o.Type, o.Label))
	}
	assert.Equal(t, []string{"56 save_test.room ", "56 save_test.mark ", "3 uint8 ",
		"80 save_test.mark ",
		"11 uint8 ", "1 uint8 outer", "48 save_test.fly inner", "8 uint8 outer", "5 uint8 ",
		"48 save_test.fly ",
		"4 uint8 "}, got)
}

// TestObjectsBeyondTheState: a file that names objects beyond the state is refused, also with
// correct checksums.
func TestObjectsBeyondTheState(t *testing.T) {
	p := newPond(t, open(t, pondPlan()), "level", 1)
	require.NoError(t, p.ring.Take(1))
	file := written(t, p.ring, 1)
	f, err := save.ReadFile(bytes.NewReader(file))
	require.NoError(t, err)
	size := f.Layout.Parts[0].Size
	for _, o := range []save.Object{{Offset: size - 3, Size: 3}, {Offset: size}, {Size: size}} {
		o.Type = "uint8"
		_, err = save.ReadFile(bytes.NewReader(save.WithObjects(file, p.ring, o)))
		assert.NoError(t, err)
	}
	for _, o := range []save.Object{{Offset: size - 3, Size: 4}, {Offset: size + 1}, {Size: size + 1},
		{Offset: 8, Size: 1<<64 - 8}, {Offset: 1<<64 - 1, Size: 1}} {
		o.Type = "uint8"
		_, err = save.ReadFile(bytes.NewReader(save.WithObjects(file, p.ring, o)))
		assert.ErrorContains(t, err, fmt.Sprintf(`an object of "uint8" at byte %d of %d`, o.Offset, size))
	}
}

// TestDiffOfList: the name of a value far down a list is short, and takes memory proportional to
// the list.
func TestDiffOfList(t *testing.T) {
	type list struct{ First arena.Ptr[node] }
	const count = 20_000
	plan := twoRegions()
	plan.Regions[0].Size = 2 * budget.MiB
	var ring *save.Ring
	var nodes []node
	load(t, open(t, plan), "level", func(r budget.Region, s scope.Scope) {
		state, root := save.Begin(r, s, scope.Plain[list]())
		nodes = nodeMaker.Slice(s, count)
		for i := range nodes[1:] {
			nodes[i].Next = arena.PtrTo(r.Base(), &nodes[i+1])
		}
		root.First = arena.PtrTo(r.Base(), &nodes[0])
		ring = save.NewRing(s, 2, state)
	})
	require.NoError(t, ring.Take(1))
	nodes[count-1].Value = 3
	require.NoError(t, ring.Take(2))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, _, err := ring.Diff(1, 2)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	next := strings.Repeat(".Next", 8)
	assert.Equal(t, "list.First"+next[5*2:]+" (19985 more)"+next, d.Object)
	assert.Equal(t, "Value", d.Field)
	assert.Less(t, (after.TotalAlloc-before.TotalAlloc)/count, uint64(2000))
	nodes[count-1].Value = 0
	nodes[9].Value = 3
	require.NoError(t, ring.Take(2))
	d, _, err = ring.Diff(1, 2)
	require.NoError(t, err)
	assert.Equal(t, "list.First"+strings.Repeat(".Next", 9), d.Object)
}
