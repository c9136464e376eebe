package budget_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

type insideFrog struct{ X, Y, Age int32 }

type insideFile struct{ Number [3]int64 }

var (
	insideFrogs = scope.Plain[insideFrog]()
	insideBytes = scope.Plain[byte]()
	insideWords = scope.Plain[uint64]()
	insideFiles = scope.Object(func(*insideFile) error { return nil })
)

// maker makes random objects in a load, and checks the contents after each.
type maker struct {
	t      *testing.T
	random *rand.Rand
	region budget.Region
	steps  int
	inner  []arena.Inner
}

func TestInsideOfRandomPrograms(t *testing.T) {
	for seed := range uint64(60) {
		b := open(t, budget.Plan{Name: "random", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
		m := maker{t: t, random: rand.New(rand.NewPCG(seed, 26)), region: b.Region("level")}
		m.look()
		_, err := budget.Load(context.Background(), m.region, func(s scope.Scope) (*int, error) {
			m.fill(s, 3)
			return new(int), nil
		})
		if err != nil {
			require.ErrorIs(t, err, budget.ErrFull)
		}
		m.look()
		require.NoError(t, b.Close())
	}
}

func (m *maker) fill(s scope.Scope, depth int) {
	for range m.random.IntN(8) {
		m.make(s, depth)
		m.look()
	}
}

func (m *maker) make(s scope.Scope, depth int) {
	n := m.random.IntN(40)
	switch what := m.random.IntN(14); {
	case what == 0:
		insideFrogs.New(s)
	case what == 1:
		insideBytes.Slice(s, n)
	case what == 2:
		insideFiles.New(s)
	case what == 3:
		insideFiles.Slice(s, n)
	case what == 4:
		s.Defer(m.look)
	case what == 5:
		_ = s.Keep(m).Cancel()
	case what == 6:
		m.pool(s, n)
	case what == 7:
		list := insideWords.Append(s, nil, 1, 2, 3)
		_ = insideWords.Append(s, list, 4)
	case what == 8:
		s.BytesUnzeroed(n, 1<<m.random.IntN(9))
	case what == 9:
		m.arena(s)
	case what == 10:
		m.construct(s)
	case what == 11 && depth > 0:
		_ = scope.Label(s, []string{"sound", "frogs", "script"}[n%3], func() error { m.fill(s, depth-1); return nil })
	case what == 12 && depth > 0:
		require.NoError(m.t, s.Do("inner", func(s scope.Scope) error { m.fill(s, depth-1); return nil }))
	case what == 13 && depth > 0:
		m.temporaries(s, depth)
	}
}

func (m *maker) pool(s scope.Scope, n int) {
	p := insideFrogs.Pool(s, n)
	for i := range n {
		x := p.Get()
		if i%3 == 0 && x != nil {
			p.Put(x)
		}
		if i%7 == 0 {
			m.look()
		}
	}
}

// arena makes an arena on bytes of s, looks into it, and drops it.
func (m *maker) arena(s scope.Scope) {
	in := s.Open("arena")
	block := in.BytesUnzeroed(2048, 64)
	var a arena.Inner
	switch m.random.IntN(4) {
	case 0:
		h, err := arena.NewHeap(block, 0)
		require.NoError(m.t, err)
		p := h.Alloc(100, 8)
		h.Alloc(50, 64)
		require.NoError(m.t, h.Free(p))
		h.MayLive()
		a = h
	case 1:
		b, err := arena.NewBuddy(block, 64)
		require.NoError(m.t, err)
		b.Alloc(100, 8)
		b.MayLive()
		a = b
	case 2:
		r, err := arena.NewRing(block)
		require.NoError(m.t, err)
		for range 1 + m.random.IntN(30) {
			r.Overwrite(100, 1<<m.random.IntN(6))
		}
		a = r
	default:
		p, err := arena.NewBlockPool[insideFrog](block)
		require.NoError(m.t, err)
		p.Get()
		a = p
	}
	m.inner = append(m.inner, a)
	m.look()
	m.inner = m.inner[:len(m.inner)-1]
	require.NoError(m.t, in.Close())
}

func (m *maker) construct(s scope.Scope) {
	failed := errors.New("failed")
	_, err := insideFiles.Make(s, func(*insideFile) error {
		insideFrogs.New(s)
		insideFiles.New(s)
		m.look()
		if m.random.IntN(2) == 0 {
			return failed
		}
		return nil
	})
	if err != nil {
		require.ErrorIs(m.t, err, failed)
	}
}

func (m *maker) temporaries(s scope.Scope, depth int) {
	temp := s.Temp(512)
	insideBytes.Slice(temp, m.random.IntN(100))
	insideFiles.New(temp)
	m.look()
	if m.random.IntN(2) == 0 {
		newer := temp.Temp(200)
		insideWords.Slice(newer, 7)
		m.look()
		require.NoError(m.t, newer.Close())
		m.look()
	}
	if m.random.IntN(2) == 0 {
		require.NoError(m.t, temp.Close())
	}
	m.fill(s, depth-1)
}

func (m *maker) look() {
	m.t.Helper()
	if m.t.Failed() {
		m.t.FailNow()
	}
	in, err := inside.OfRegion(m.region, m.inner...)
	require.NoError(m.t, err)
	report := m.region.Report()
	requireInside(m.t, in, report)
	m.steps++
}

func requireInside(t *testing.T, in inside.Contents, r budget.ArenaReport) {
	t.Helper()
	require.NoError(t, in.Check())
	require.Equal(t, r.Used, in.Used)
	sums := sumOf(in)
	require.Equal(t, r.Used, sums.bytes)
	for _, s := range r.Scopes {
		require.Equal(t, s.Bytes, sums.scopes[s.Name], s.Name)
	}
	requireChain(t, in)
	requireKnown(t, in, r, sums)
	text, err := json.Marshal(in)
	require.NoError(t, err)
	var again inside.Contents
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, in, again)
}

// requireChain expects each Order once. Orders needn't descend: objects that a constructor makes
// are linked before its own object.
func requireChain(t *testing.T, in inside.Contents) {
	t.Helper()
	seen, most := map[int]bool{}, 0
	for i := range in.Spans {
		if x := &in.Spans[i]; x.Order != 0 && x.Offset < in.Cursor {
			require.False(t, seen[x.Order])
			seen[x.Order], most = true, max(most, x.Order)
		}
	}
	require.Len(t, seen, most)
}

func requireKnown(t *testing.T, in inside.Contents, r budget.ArenaReport, sums insideSums) {
	t.Helper()
	require.Equal(t, in.Known, notesObjects)
	if !arena_c.Checked {
		require.Nil(t, r.Sites)
		return
	}
	var bytes, padding, objects uint64
	for _, s := range r.Sites {
		bytes += s.Bytes
		padding += s.Padding
		objects += s.Objects
	}
	require.Equal(t, r.Used, bytes)
	if !in.Known {
		return
	}
	for _, l := range r.Labels {
		require.Equal(t, l.Bytes, sums.labels[l.Name], l.Name)
	}
	require.Equal(t, r.Padding, sums.padding)
	require.Equal(t, r.Padding, padding)
	require.Equal(t, r.Objects, objects)
}

type insideSums struct {
	bytes, padding uint64
	scopes, labels map[string]uint64
}

func sumOf(in inside.Contents) insideSums {
	s := insideSums{scopes: map[string]uint64{}, labels: map[string]uint64{}}
	for _, x := range in.Spans {
		s.bytes += x.Padding + x.Size
		s.padding += x.Padding
		if x.Kind == "reserve" {
			s.padding += x.Size
		}
		s.scopes[x.Scope] += x.Padding + x.Size
		s.labels[x.Label] += x.Padding + x.Size
	}
	return s
}

func TestInsideTellsWhatThereIs(t *testing.T) {
	b := open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	level := b.Region("level")
	_, err := budget.Load(context.Background(), level, func(s scope.Scope) (*int, error) {
		insideFrogs.New(s)
		insideFiles.New(s)
		return new(int), scope.Label(s, "sound", func() error {
			p := insideFrogs.Pool(s, 4)
			first, second := p.Get(), p.Get()
			p.Put(first)
			p.Put(second)
			s.Keep(b)
			return nil
		})
	})
	require.NoError(t, err)
	in, err := inside.OfRegion(level)
	require.NoError(t, err)
	assert.Equal(t, "game", in.Budget)
	assert.Equal(t, "level", in.Arena)
	require.Len(t, in.Scopes, 1)
	assert.Equal(t, "level", in.Scopes[0].Name)

	object := spanOf(t, in, "object")
	assert.Equal(t, "budget_test.insideFile", object.Type)
	assert.Equal(t, "finalizer of budget_test.insideFile", object.Ends)
	assert.Equal(t, uint64(32), object.Size)
	assert.Equal(t, 4, object.Order, "what was made first runs last")
	pool := spanOf(t, in, "pool")
	require.NotNil(t, pool.Pool)
	assert.Equal(t, "..--", pool.Pool.States)
	assert.Equal(t, []uint32{1, 0}, pool.Pool.Next)
	assert.Equal(t, "sound", pool.Label)
	owned := spanOf(t, in, "owned")
	assert.Equal(t, "a value of *budget.Budget", owned.Ends)
	if in.Known {
		plain := spanOf(t, in, "plain")
		assert.Equal(t, "budget_test.insideFrog", plain.Type)
		require.NotEmpty(t, plain.Made)
		assert.Contains(t, plain.Made[0], "inside_test.go:")
	} else {
		assert.Equal(t, uint64(16), spanOf(t, in, "bytes").Size, "a frog, and what aligns the file")
	}
}

func spanOf(t *testing.T, in inside.Contents, kind string) inside.Span {
	t.Helper()
	for _, x := range in.Spans {
		if x.Kind == kind {
			return x
		}
	}
	require.Fail(t, "there is no "+kind)
	return inside.Span{}
}

func TestInsideOfOthers(t *testing.T) {
	b := open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Each: 1, Size: 64 * budget.KiB}})
	insideFrogs.New(b.Frame())
	in, err := inside.Of(b, "frame 0")
	require.NoError(t, err)
	require.NoError(t, in.Check())
	assert.Equal(t, uint64(12), in.Used)
	s := b.Scratch(0, 0).Open("work")
	insideWords.New(s)
	in, err = inside.Of(b, "scratch 0.0")
	require.NoError(t, err)
	require.NoError(t, in.Check())
	assert.Equal(t, uint64(8), in.Used)
	require.NoError(t, s.Close())

	_, err = inside.Of(b, "scratch 1.0")
	assert.ErrorContains(t, err, `budget "game": inside of scratch 1.0: it is for leases`)
	_, err = inside.Of(b, "nowhere")
	assert.ErrorContains(t, err, `there is no such arena`)
	h, err := arena.NewHeap(arena.NewBlock(4096, 64), 0)
	require.NoError(t, err)
	_, err = inside.OfRegion(b.Region("level"), h)
	assert.ErrorContains(t, err, "inside of level: arena.Heap isn't in it")
	require.NoError(t, b.Close())
	_, err = inside.Of(b, "level")
	assert.ErrorIs(t, err, budget.ErrClosed)
}

// TestInsideOfWhatWasWrittenOver: arenas of an ended load, with bytes that another load uses.
func TestInsideOfWhatWasWrittenOver(t *testing.T) {
	if arena_c.Asan || arena_c.Checked {
		t.Skip("this build stops a read of rewound memory: go test ./budget does")
	}
	b := open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	makers := map[string]func(block []byte) (arena.Inner, error){
		"Heap":      func(block []byte) (arena.Inner, error) { return arena.NewHeap(block, 8) },
		"Buddy":     func(block []byte) (arena.Inner, error) { return arena.NewBuddy(block, 64) },
		"Ring":      func(block []byte) (arena.Inner, error) { return arena.NewRing(block) },
		"BlockPool": func(block []byte) (arena.Inner, error) { return arena.NewBlockPool[uint64](block) },
	}
	for name, maker := range makers {
		var inner arena.Inner
		var block []byte
		load := func(fill func()) {
			_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*int, error) {
				block = s.BytesUnzeroed(32<<10, 64)
				fill()
				return nil, nil
			})
			require.NoError(t, err)
		}
		load(func() {
			var err error
			inner, err = maker(block)
			require.NoError(t, err)
		})
		_, err := inside.OfRegion(b.Region("level"), inner)
		require.NoError(t, err)
		load(func() { copy(block, bytes.Repeat([]byte("texture!"), 4096)) })
		_, err = inside.OfRegion(b.Region("level"), inner)
		assert.ErrorContains(t, err, name)
		assert.ErrorContains(t, err, "isn't in it")
	}
}

func TestInsideWhatAFinalizerSees(t *testing.T) {
	b := open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	level, saw := b.Region("level"), []int(nil)
	look := func() {
		in, err := inside.OfRegion(level)
		require.NoError(t, err)
		requireInside(t, in, level.Report())
		most := 0
		for _, x := range in.Spans {
			most = max(most, x.Order)
		}
		saw = append(saw, most)
	}
	_, err := budget.Load(context.Background(), level, func(s scope.Scope) (*int, error) {
		s.Defer(look)
		insideFiles.Slice(s, 3)
		s.Defer(look)
		insideFrogs.New(s)
		look()
		return new(int), nil
	})
	require.NoError(t, err)
	require.NoError(t, level.Rewind(context.Background()))
	assert.Equal(t, []int{3, 2, 0}, saw, "who runs has left the chain")
}

func TestInsideCheck(t *testing.T) {
	good := func() inside.Contents {
		return inside.Contents{Arena: "level", Size: 100, Used: 50, Cursor: 30, Limit: 80, Spans: []inside.Span{
			{Offset: 2, Padding: 2, Size: 28}, {Offset: 80, Size: 20, Parts: []stack.Part{{Size: 20}}}}}
	}
	for name, spoil := range map[string]func(*inside.Contents){
		"contradict":        func(in *inside.Contents) { in.Used = 51 },
		"contradict ":       func(in *inside.Contents) { in.Cursor = 90 },
		"fit after 0":       func(in *inside.Contents) { in.Spans[0].Offset = 1 },
		"fit after 0 ":      func(in *inside.Contents) { in.Spans[0].Size = 1 << 63 },
		"no object":         func(in *inside.Contents) { in.Spans = in.Spans[:1] },
		"no part":           func(in *inside.Contents) { in.Spans[1].Parts[0].Size = 1 },
		"parts[0]":          func(in *inside.Contents) { in.Spans[1].Parts[0].Size = 21 },
		"a pool of 3":       func(in *inside.Contents) { in.Spans[0].Pool = &stack.PoolLayout{Count: 3} },
		"unknown states":    func(in *inside.Contents) { in.Spans[0].Pool = &stack.PoolLayout{Count: 1, States: "!"} },
		"gives chunk 7":     func(in *inside.Contents) { in.Spans[0].Pool = &stack.PoolLayout{Next: []uint32{7}} },
		"fit after 0  ":     func(in *inside.Contents) { in.Spans[0].Padding = 1 << 63 },
		"no object covers ": func(in *inside.Contents) { in.Spans = nil },
	} {
		in := good()
		require.NoError(t, in.Check())
		spoil(&in)
		assert.ErrorContains(t, in.Check(), strings.TrimSpace(name))
	}
}

// TestSitesOfWhatIsGone: published sites are read while a load overwrites their objects.
func TestSitesOfWhatIsGone(t *testing.T) {
	b := open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}})
	load := func(fn func(s scope.Scope)) {
		_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*int, error) {
			fn(s)
			return new(int), nil
		})
		require.NoError(t, err)
	}
	load(func(s scope.Scope) { insideFiles.Slice(s, 10) })
	before := b.Published().Arenas[0].Sites
	load(func(s scope.Scope) {
		copy(s.Bytes(4096), strings.Repeat("\xff", 4096))
		assert.Equal(t, before, b.Published().Arenas[0].Sites)
	})
}

func TestSites(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build keeps call sites: go test -tags checked ./budget does")
	}
	b := open(t, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}},
		Frame: budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}})
	_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*int, error) {
		insideBytes.Slice(s, 1)
		insideBytes.Slice(s, 0)
		return new(int), scope.Label(s, "frogs", func() error {
			for range 1204 {
				insideFrogs.New(s)
			}
			return nil
		})
	})
	require.NoError(t, err)
	insideFrogs.New(b.Frame())

	published := b.Published()
	assert.Equal(t, b.Report().Arenas[0], published.Arenas[0])
	assert.Empty(t, beside(b.Report())[0].Sites, "a frame is published too often")
	level := published.Arenas[0]
	var bytes, objects uint64
	for _, s := range level.Sites {
		bytes += s.Bytes
		objects += s.Objects
	}
	assert.Equal(t, level.Used, bytes)
	if !notesObjects {
		return // no call site is kept
	}
	assert.Equal(t, level.Objects, objects, "the slice of nothing, too")
	var frogs stack.Site
	for _, s := range level.Sites {
		if s.Label == "frogs" {
			assert.Empty(t, frogs.Scope, "all were made by the same line")
			frogs = s
		}
	}
	require.NotEmpty(t, frogs.Made)
	assert.Contains(t, frogs.Made[0], "inside_test.go:")
	frogs.Made = nil
	assert.Equal(t, stack.Site{Scope: "level", Label: "frogs", Type: "budget_test.insideFrog", Bytes: 1204 * 12,
		Objects: 1204}, frogs)
}

// BenchmarkSites measures a load of 10,000 objects with the figures that are published at its end:
// in checked builds these have sites.
func BenchmarkSites(b *testing.B) {
	budgets := open(b, budget.Plan{Name: "game", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
	level := budgets.Region("level")
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			_, err := budget.Load(context.Background(), level, func(s scope.Scope) (*int, error) {
				for range 10_000 {
					insideFrogs.New(s)
				}
				return new(int), nil
			})
			require.NoError(b, err)
		}
	})
	b.Run("report", func(b *testing.B) {
		for b.Loop() {
			level.Report()
		}
	})
	b.Run("inside", func(b *testing.B) {
		for b.Loop() {
			_, err := inside.OfRegion(level)
			require.NoError(b, err)
		}
	})
}
