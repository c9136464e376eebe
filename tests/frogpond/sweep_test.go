package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
	"github.com/upfront-mem/upfront/tests/step"
)

// sweepOnly sweeps maps without playing a tick.
func sweepOnly(t *testing.T, code int, args ...string) Result {
	t.Helper()
	r, _ := play(t, code, append([]string{"-sweep", "-ticks", "0"}, args...)...)
	assert.Zero(t, r.Leaks)
	assert.True(t, r.IdentityOK)
	return r
}

// -json counts the lines of a room, with and without a sweep: an exit, a moving texture, a lift
// without a sector, and an unknown type.
func TestSweepIsCounted(t *testing.T) {
	m := doomtest.GoodMap()
	var lines []byte
	for i, kind := range []int{11, 48, 62, 340} {
		lines = append(lines, doomtest.Row(i, (i+1)%4, 1, kind, 9, i, 0xffff)...)
	}
	doomtest.Write(t, "walls.wad", doom.MakeWAD(doomtest.Set(m, "LINEDEFS", lines)))

	r := sweepOnly(t, 0, "-wad", "walls.wad")
	l := r.Levels[0]
	require.NotNil(t, l.Idle)
	assert.Equal(t, []int{4, 3, 1}, []int{*l.Specials, *l.Acted, *l.Idle}, "the lift is idle")
	assert.Equal(t, map[int]int{340: 1}, r.Unsupported)
	assert.Zero(t, *r.FlowWrong)

	r, _ = play(t, 0, "-wad", "walls.wad", "-ticks", "0")
	assert.Nil(t, r.Levels[0].Idle, "not measured")
	assert.Nil(t, r.FlowWrong)
	assert.Equal(t, 3, *r.Levels[0].Acted, "of a known type")
}

// Each special line of two maps of Freedoom has the effect in package sweep's table. The second map
// has line-to-line teleports and carrying floors.
func TestSweep(t *testing.T) {
	needsFreedoom(t)
	maps := []string{"E1M1", "MAP20"}
	if step.Now() < step.Check {
		maps = maps[:1]
	}
	r := sweepOnly(t, 0, "-maps", strings.Join(maps, ","))
	assert.Empty(t, r.Wrong)
	require.Len(t, r.Levels, len(maps))
	for _, l := range r.Levels {
		assert.Positive(t, *l.Acted, l.Name)
		assert.Less(t, *l.Idle, *l.Acted, l.Name)
		assert.LessOrEqual(t, *l.Acted, *l.Specials, l.Name)
		assert.Positive(t, *l.SectorsActed, l.Name)
		assert.LessOrEqual(t, *l.SectorsActed, *l.SpecialSectors, l.Name)
	}
}

// The region is empty after a sweep, also if it is full or cancelled.
func TestSweepLeavesNothing(t *testing.T) {
	doomtest.Write(t, "wall.wad", doom.MakeWAD(doomtest.Set(doomtest.GoodMap(), "LINEDEFS",
		slices.Concat(doomtest.Row(0, 1, 1, 11, 0, 0, 0xffff), doomtest.Row(1, 2, 1, 0, 0, 1, 0xffff),
			doomtest.Row(2, 3, 1, 0, 0, 2, 0xffff), doomtest.Row(3, 0, 1, 0, 0, 3, 0xffff)))))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name, scratch string
		ctx           context.Context
		err           error
	}{
		{"full", "1KiB", t.Context(), budget.ErrFull}, // no room for a map's chart
		{"cancelled", "1MiB", ctx, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan, err := budget.ParsePlan([]byte(strings.Replace(string(widePlan),
				`"workers": 4, "size": "1MiB"`, `"workers": 4, "size": "`+test.scratch+`"`, 1)))
			require.NoError(t, err)
			b, err := budget.Open(plan)
			require.NoError(t, err)
			defer func() { assert.NoError(t, b.Close()) }()
			o := &options{sweep: true, Options: game.Options{WADs: []string{"wall.wad"}, Maps: "all",
				Log: os.DevNull, Workers: 1}}
			s, err := game.Boot(t.Context(), o.Options, b)
			require.NoError(t, err)
			defer s.Stop()
			region := b.Region("level")
			_, err = s.Load(t.Context(), s.Maps[0], 0)
			if test.ctx.Err() != nil {
				require.NoError(t, err)
				require.Positive(t, region.Report().Used)
			}
			r := newResult(o)
			assert.ErrorIs(t, r.sweep(test.ctx, &LevelResult{}, s, s.Maps[0]), test.err)
			assert.Zero(t, region.Report().Used)
		})
	}
}
