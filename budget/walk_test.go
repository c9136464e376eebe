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
)

// requireCovers says that the ranges name every byte of the budget once.
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
		Regions: []budget.Region{{Name: "init", Size: 64 * budget.KiB}, {Name: "level", Size: 200_000}},
		Frame:   budget.Frame{Buffers: 2, Size: 1000},
		Pads:    budget.Pads{Workers: 1, Size: 64 * budget.KiB},
	}
	b := open(t, plan)
	free := names(requireWalk(t, b))
	assert.Equal(t, []string{"init/free 65536", "level/free 200000", "level/slack: edge 62144", "frame 0/free 1000",
		"frame 0/slack: edge 64536", "frame 1/free 1000", "frame 1/slack: edge 64536", "pad 0.0/free 65536", "pad 0.1/free 65536",
		"/slack: unplanned 458752"}, free[2:])
	assert.Regexp(t, `^/tables \d+$`, free[0])
	assert.Regexp(t, `^/slack: edge \d+$`, free[1])

	s := b.Pad(0, 1).Open("pad")
	s.Bytes(1000)
	s.Temp().Bytes(10)
	b.Frame().Bytes(24)
	mustLoad(t, b, "level", func(s scope.Scope) {
		s.Bytes(1000)
		s.Temp().Bytes(100)
		ranges := requireWalk(t, b)
		requireCovers(t, b, ranges)
		assert.Equal(t, []string{"init/free 65536", "level/used 1024", "level/free 149184", "level/temp 49792", "level/slack: edge 62144",
			"frame 0/used 24", "frame 0/free 976", "frame 0/slack: edge 64536", "frame 1/free 1000", "frame 1/slack: edge 64536",
			"pad 0.0/free 65536", "pad 0.1/used 1000", "pad 0.1/free 48344", "pad 0.1/temp 16192"}, names(ranges)[2:16])
	})
	ranges := requireWalk(t, b)
	requireCovers(t, b, ranges)
	assert.Contains(t, names(ranges), "level/free 198976")
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
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(1000) })
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
		{&row(0).Start, 0, "init"},
		{&row(0).End, row(0).End + 64, "init"},
		{&row(1).End, 0, "systems"},
		{&row(2).Edge, row(2).End + 1, "level"},
		{&row(2).Open, 9, "level"},
		{&row(2).Open, ^uint64(0), "level"},
		{&row(2).FarOf, 2, "level"},
		{&row(2).Peak, row(2).Peak + 1<<30, "level"},
		{&row(2).Slot(0).Cursor, row(2).End + 1, "level"},
		{&row(2).Slot(0).Start, row(2).Start + 8, "level"},
		{&row(2).Slot(0).Limit, row(2).Slot(0).Limit + 4096, "level"},
		{&row(2).Slot(0).Origin, 0, "level"},
		{&row(2).Slot(0).Peak, ^uint64(3), "level"},     // its place in the row
		{&row(2).Slot(0).Count, 3<<38 | 0x401, "level"}, // one byte more than it uses
		{&row(2).Slot(0).Chain, row(2).End, "level"},
		{&row(2).Slot(5).Limit, row(2).Slot(5).Limit + 1, "level"},
		{&row(3).Slot(0).Cursor, 0, "frame 0"},
		{&row(4).Slots, 7, "frame 1"},
		{&row(5).Pools, 1, "pad 0.0"},
		{&row(8).End, row(8).End + 64*budget.KiB, "pad 1.1"},
		{&row(8).Far().Limit, row(8).Far().Limit + 1, "pad 1.1"},
	} {
		requireWalk(t, b)
		was := *c.word
		*c.word = c.value
		ranges, err := b.Walk()
		checked := b.CheckAll()
		*c.word = was
		assert.Nil(t, ranges)
		assert.EqualError(t, err, `budget "small": the control words of `+c.whose+
			` contradict themselves: something wrote where it had no right to`, "%d for %d", c.value, was)
		assert.Equal(t, err, checked)
	}
}

// TestWalkBearsAnyTable flips bits all over the tables: Walk may miss what no promise covers, but it never reads beyond
// the budget.
func TestWalkBearsAnyTable(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
	b.Pad(0, 0).Open("pad").Temp()
	tables := b.Base().Bytes()[:requireWalk(t, b)[0].Size]
	random := rand.New(rand.NewPCG(5, 6))
	found := 0
	for range 20_000 {
		at, bit := random.IntN(len(tables)), byte(1)<<random.IntN(8)
		tables[at] ^= bit
		if ranges, err := b.Walk(); err != nil {
			found++
		} else {
			requireCovers(t, b, ranges)
		}
		tables[at] ^= bit
	}
	t.Logf("%d of 20000 found", found)
	assert.Greater(t, found, 2_000)
	requireWalk(t, b)
}
