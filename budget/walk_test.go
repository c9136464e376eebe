package budget_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// requireCovers checks that the ranges have every byte of the budget once.
func requireCovers(t *testing.T, b *budget.Budget, ranges []budget.Range) {
	t.Helper()
	at := uint64(0)
	for _, r := range ranges {
		require.Equal(t, at, r.Offset)
		require.Positive(t, r.Size)
		at += r.Size
	}
	require.Equal(t, b.Size(), at)
}

func names(ranges []budget.Range) (list []string) {
	for _, r := range ranges {
		list = append(list, fmt.Sprintf("%s/%s %d", r.Arena, r.What, r.Size))
	}
	return list
}

func TestWalkNamesEveryByte(t *testing.T) {
	plan := budget.Plan{
		Name:    "walked",
		Size:    1024 * budget.KiB,
		Regions: []budget.RegionPlan{{Name: "init", Size: 64 * budget.KiB}, {Name: "level", Size: 200_000}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 1000},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB},
	}
	b := open(t, plan)
	free := names(requireWalk(t, b))
	assert.Equal(t, []string{"init/free 65536", "level/free 200000", "level/slack: edge 62144", "frame 0/free 1000",
		"frame 0/slack: edge 64536", "frame 1/free 1000", "frame 1/slack: edge 64536", "scratch 0.0/free 65536",
		"scratch 0.1/free 65536", "/slack: unplanned 458752"}, free[2:])
	assert.Regexp(t, `^/tables \d+$`, free[0])
	assert.Regexp(t, `^/slack: edge \d+$`, free[1])

	s := b.Scratch(0, 1).Open("scratch")
	s.Bytes(1000)
	s.Temp(10)
	b.Frame().Bytes(24)
	mustLoad(t, b, "level", func(s scope.Scope) {
		s.Bytes(1000)
		s.Temp(100)
		ranges := requireWalk(t, b)
		requireCovers(t, b, ranges)
		assert.Equal(t, []string{"init/free 65536", "level/used 1040", "level/free 198832", "level/temp 128",
			"level/slack: edge 62144", "frame 0/used 24", "frame 0/free 976", "frame 0/slack: edge 64536",
			"frame 1/free 1000", "frame 1/slack: edge 64536", "scratch 0.0/free 65536", "scratch 0.1/used 1016",
			"scratch 0.1/free 64456", "scratch 0.1/temp 64"}, names(ranges)[2:16])
	})
	ranges := requireWalk(t, b)
	requireCovers(t, b, ranges)
	assert.Contains(t, names(ranges), "level/free 198960")
	require.NoError(t, s.Close())
	require.NoError(t, b.Region("init").Rewind(background))
	require.NoError(t, b.NextFrame())
	require.NoError(t, b.NextFrame())
	assert.Equal(t, free, names(requireWalk(t, b)), "everything is as it was")
}

func TestWalkFindsStrayWrites(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(1000) })
	mustLoad(t, b, "init", func(s scope.Scope) { s.Bytes(1000) })
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(1000); _ = s.Open("x").Close() })
	table := tableOf(b)
	row := func(i uint64) *arena_c.Row { return table.Row(i) }
	for _, c := range []struct {
		word  *uint64
		value uint64
		whose string
	}{
		{&table.Magic, 0, "the map"},
		{&table.Size, table.Size + 64*budget.KiB, "the map"},
		{&table.Rows, 0, "the map"},
		{&table.Rows, 3, "the map"},
		{&table.Rows, 10, "the map"},
		{&table.Rows, 1 << 40, "the map"},
		{&table.Slots, 0, "the map"},
		{&row(0).Arena.Start, 0, "init"},
		{&row(0).End, row(0).End + 64, "init"},
		{&row(1).End, 0, "systems"},
		{&row(2).Arena.Start, row(2).Arena.Start + 8, "level"},
		{&row(2).Arena.Cursor, row(2).End + 1, "level"},
		{&row(2).Arena.Limit, row(2).Arena.Limit + 4096, "level"},
		{&row(2).Arena.Least, row(2).Size() + 1, "level"},
		// the arena is frozen, and this generation was another scope's
		{&row(2).Arena.Gen, row(2).Arena.Next, "level"},
		{&row(2).Arena.Depth, 9, "level"},
		{&row(2).Arena.Depth, ^uint64(0), "level"},
		{&row(2).Arena.Chain, row(2).End + 8, "level"},
		{&row(2).Arena.Records, 8, "level"},
		{&row(2).Arena.Back, 8, "level"},
		{&row(2).Arena.Record(1).Mark, row(2).End + 1, "level"},
		{&row(2).Arena.Record(1).Gen, 0, "level"},
		{&row(2).Arena.Record(1).Chain, row(2).Arena.Start + 9, "level"}, // between two words
		{&row(2).Arena.Record(5).Gen, 1, "level"},                        // it is closed
		{&row(2).Temp.Depth, 1, "level"},
		{&row(3).Arena.Cursor, 0, "frame 0"},
		{&row(4).Arena.Slots, 7, "frame 1"},
		{&row(5).Pools, 1, "scratch 0.0"},
		{&row(8).End, row(8).End + 64*budget.KiB, "scratch 1.1"},
		{&row(8).Temp.Limit, row(8).Temp.Limit + 1, "scratch 1.1"},
	} {
		requireWalk(t, b)
		was := *c.word
		*c.word = c.value
		ranges, err := b.Walk()
		*c.word = was
		assert.Nil(t, ranges)
		assert.EqualError(t, err, `budget "small": the control words of `+c.whose+
			` contradict each other: a stray write has overwritten them`, "%d for %d", c.value, was)
	}
}

// TestWalkBearsAnyTable flips bits all over the tables. Walk may miss some damage, but it never
// reads beyond the budget.
func TestWalkBearsAnyTable(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
	b.Scratch(0, 0).Open("scratch").Temp(1000)
	tables := b.Base().Bytes()[:requireWalk(t, b)[0].Size]
	random := rand.New(rand.NewPCG(5, 6))
	found, flips := 0, step.Pick(2_000, 20_000, 20_000)
	for range flips {
		at, bit := random.IntN(len(tables)), byte(1)<<random.IntN(8)
		tables[at] ^= bit
		if ranges, err := b.Walk(); err != nil {
			found++
		} else {
			requireCovers(t, b, ranges)
		}
		tables[at] ^= bit
	}
	t.Logf("%d of %d found", found, flips)
	assert.Greater(t, found, flips/10)
	requireWalk(t, b)
}
