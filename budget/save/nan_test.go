package save_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/container"
)

type (
	speed float64
	court struct {
		Tick  uint64
		V     speed
		Ways  [2]struct{ At [3]place }
		Phase complex128
		Half  complex64
		Lamps arena.Slice[glow]
		First arena.Ptr[glow]
		Word  uint64
	}
	glow struct{ Level, Left float64 }
	ball struct{ At, V place }
)

// TestNaN checks that each kind of float field is found, under the name that Diff has for it.
func TestNaN(t *testing.T) {
	region := open(t, twoRegions()).Region("level")
	base := region.Base()
	var state *save.State
	var ring *save.Ring
	var c *court
	var lamps, hidden, named []glow
	var one *glow
	var balls scope.Pool[ball]
	var list container.List[glow]
	_, err := budget.Load(background, region, func(s scope.Scope) (*court, error) {
		state, c = save.Begin(region, s, scope.Plain[court]())
		_, err := state.NaN()
		assert.ErrorContains(t, err, "save: NaN of region level before NewRing")
		glows := scope.Plain[glow]()
		lamps, one = glows.Slice(s, 5), glows.New(s)
		hidden, named = glows.Slice(s, 4), glows.Slice(s, 3)
		save.Values(state, named)
		c.Lamps, c.First = arena.SliceOf(base, lamps), arena.PtrTo(base, one)
		balls = scope.Plain[ball]().Pool(s, 4)
		list = container.NewList(s, glows, 4)
		ring = save.NewRing(s, 2, state)
		_, err = state.NaN()
		assert.ErrorContains(t, err, "level")
		return c, nil
	})
	require.NoError(t, err)
	first, second := balls.Get(), balls.Get()
	list.Push(glow{})
	list.Push(glow{})
	c.Word = math.Float64bits(math.NaN()) // no float
	require.NoError(t, ring.Take(1))
	nan32 := float32(math.NaN())
	for _, of := range []struct {
		want string // "" for a field that only a checked build names
		set  func()
	}{
		{"court.V", func() { c.V = speed(math.NaN()) }},
		{"court.V", func() { c.V = speed(math.Copysign(math.NaN(), -1)) }},
		{"court.Ways[1].At[2].Y", func() { c.Ways[1].At[2].Y = nan32 }},
		{"court.Ways[0].At[1].X", func() { c.Ways[0].At[1].X, c.Ways[0].At[2].X = nan32, nan32 }},
		{"court.Phase", func() { c.Phase = complex(0, math.NaN()) }},
		{"court.Half", func() { c.Half = complex(nan32, 0) }},
		{"court.Half", func() { c.Half = complex(0, nan32); lamps[4].Left = math.NaN() }},
		{"court.Lamps[4].Left", func() { lamps[4].Left = math.NaN() }},
		{"court.First.Level", func() { one.Level = math.NaN() }},
		{"chunk 0 of the pool of save_test.ball, field V.Y", func() { first.V.Y = nan32 }},
		{"chunk 1 of the pool of save_test.ball, field At.X", func() { second.At.X = nan32 }},
		{"container.List[save_test.glow]", func() { list.At(1).Left = math.NaN() }},
		{"", func() { hidden[2].Left = math.NaN() }},
	} {
		require.NoError(t, ring.Restore(background, 1))
		got, err := state.NaN()
		require.NoError(t, err)
		require.Empty(t, got)
		of.set()
		got, err = state.NaN()
		require.NoError(t, err)
		require.NoError(t, ring.Take(2))
		d, differ, err := ring.Diff(1, 2)
		require.NoError(t, err)
		require.True(t, differ)
		if of.want == "" && !arena_c.Checked {
			assert.Empty(t, got)
			continue
		}
		assert.Contains(t, got, of.want)
		if !strings.HasPrefix(of.want, "chunk 1") { // Diff names the first chunk
			assert.Contains(t, d.String(), got+": ")
		}
	}
	require.NoError(t, ring.Restore(background, 1))
	named[1].Level = math.NaN()
	got, err := state.NaN()
	require.NoError(t, err)
	assert.Regexp(t, `^offset 0x[0-9a-f]+$|^save_test.glow\[1\].Level$`, got)

	// A free chunk isn't read, and infinities and zeros are no NaN.
	require.NoError(t, ring.Restore(background, 1))
	second.At.X = nan32
	balls.Put(second)
	c.V, c.Phase = speed(math.Inf(-1)), complex(math.Copysign(0, -1), math.Inf(1))
	got, err = state.NaN()
	require.NoError(t, err)
	assert.Empty(t, got)

	require.NoError(t, region.Rewind(background))
	_, err = state.NaN()
	assert.ErrorContains(t, err, "level")
}

func TestNaNInNoStateRegion(t *testing.T) {
	region := open(t,
		budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}}).Region("level")
	var state *save.State
	_, err := budget.Load(background, region, func(s scope.Scope) (*court, error) {
		st, c := save.Begin(region, s, scope.Plain[court]())
		save.NewRing(s, 2, st)
		state = st
		return c, nil
	})
	require.NoError(t, err)
	_, err = state.NaN()
	assert.ErrorContains(t, err, "set its key state to true")
}
