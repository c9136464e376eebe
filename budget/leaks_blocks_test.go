package budget_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// leaksBlocks makes a heap in s, and leaves some of its blocks live.
func leaksBlocks(t *testing.T, s scope.Scope, blocks int) {
	t.Helper()
	h, err := arena.NewHeap(s.BytesUnzeroed(8192, 64), 0)
	require.NoError(t, err)
	for range blocks {
		h.Alloc(1, 1)
	}
}

// requireBlocks checks that an error reports so many blocks, of a scope of an arena, and no others.
func requireBlocks(t *testing.T, err error, where, blocks string) {
	t.Helper()
	require.ErrorContains(t, err, where+`: an arena.Heap of 8192 bytes ends with `+blocks+`, `)
	require.Equal(t, 1, strings.Count(err.Error(), "arena.Heap of"), err)
}

// TestBlocksThatLivedAreTold: each way to end memory reports live blocks.
func TestBlocksThatLivedAreTold(t *testing.T) {
	plan := rooms(false)
	plan.Frame = budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}
	plan.Scratch.Workers = 2
	var noted []error
	plan.OnError = func(err error) { noted = append(noted, err) }
	b := open(t, plan)
	systems := b.Region("systems")
	counted := func(blocks int) { t.Helper(); require.Equal(t, budget.Leaks{Blocks: blocks}, b.Report().Leaks) }

	mustLoad(t, b, "systems", func(s scope.Scope) { leaksBlocks(t, s, 102) })
	requireBlocks(t, systems.Rewind(background), `region systems, scope "systems"`, "102 live blocks")
	counted(102)
	require.NoError(t, systems.Rewind(background), "once")

	mustLoad(t, b, "systems", func(s scope.Scope) { leaksBlocks(t, s.Temp(9000), 1); leaksBlocks(t, s, 2) })
	require.Len(t, noted, 1, "the load's temporaries")
	requireBlocks(t, noted[0], `region systems, scope "temp"`, "1 live block")
	mustLoad(t, b, "systems", nil)
	require.Len(t, noted, 2, "what a load replaces")
	requireBlocks(t, noted[1], `region systems, scope "systems"`, "2 live blocks")
	counted(105)
	require.Equal(t, 2, b.Report().ErrorCount)

	_, err := loadRegion(systems, func(s scope.Scope) error { leaksBlocks(t, s, 3); return errLoader })
	require.Equal(t, errLoader.Error(), err.Error(), "it failed, and had no chance to free")
	counted(105)

	room := acquire(t, b)
	mustLoadRegion(t, room, func(s scope.Scope) { leaksBlocks(t, s, 4) })
	requireBlocks(t, room.Release(background), `region room 0, scope "room 0"`, "4 live blocks")
	counted(109)
	room = acquire(t, b)
	mustLoadRegion(t, room, nil)
	require.NoError(t, room.Release(background), "the next owner's")

	leaksBlocks(t, b.Frame(), 5)
	require.NoError(t, b.NextFrame(), "it lives a frame longer")
	requireBlocks(t, b.NextFrame(), `frame 0, scope "frame"`, "5 live blocks")
	require.NoError(t, b.NextFrame())
	counted(114)

	lease, err := b.Lease(background)
	require.NoError(t, err)
	leaksBlocks(t, lease.Scratch(0).Open("query"), 6)
	err = lease.Release()
	require.ErrorContains(t, err, `scope "query" of scratch 1.0 was left open`)
	requireBlocks(t, err, `scratch 1.0, scope "query"`, "6 live blocks")
	require.Equal(t, 120, b.Report().Leaks.Blocks)
	require.NoError(t, b.Scratch(0, 0).Do("job", func(s scope.Scope) error { return nil }))

	mustLoad(t, b, "systems", func(s scope.Scope) { leaksBlocks(t, s, 7) })
	requireBlocks(t, b.Close(), `region systems, scope "systems"`, "7 live blocks")
	leaks := b.Report().Leaks
	require.Equal(t, 127, leaks.Blocks)
	text, err := json.Marshal(leaks)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"blocks":127`)
	assert.Contains(t, b.Report().String(), "leases of scratch, 127 blocks\n")
	require.Len(t, noted, 2)
}

// TestNoBlocksAreNotShown: a report without blocks has no field for them.
func TestNoBlocksAreNotShown(t *testing.T) {
	text, err := json.Marshal(budget.Leaks{})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "blocks")
	assert.Contains(t, budget.Report{}.String(), "leases of scratch\n")
}

// TestBlocksOfALoadThatFails: a load that panics or is full doesn't also report blocks.
func TestBlocksOfALoadThatFails(t *testing.T) {
	b := open(t, small())
	require.PanicsWithValue(t, "boom", func() {
		_, _ = loadRegion(b.Region("level"), func(s scope.Scope) error { leaksBlocks(t, s, 1); panic("boom") })
	})
	_, err := loadRegion(b.Region("level"), func(s scope.Scope) error {
		leaksBlocks(t, s, 1)
		s.Bytes(1 << 30)
		return nil
	})
	var full *scope.FullError
	require.True(t, errors.As(err, &full))
	require.Equal(t, full.Error(), err.Error())
	require.Zero(t, b.Report().Leaks)
	require.NoError(t, b.Close())
}
