package budget_test

import (
	"bytes"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

type held struct{ files, mappings, resident int }

func holds(t *testing.T) (h held) {
	t.Helper()
	debug.FreeOSMemory()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	statm, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	require.NoError(t, err)
	return held{len(files), bytes.Count(maps, []byte("\n")), pages * os.Getpagesize()}
}

// TestManyLoads: after any number of loads, good and bad, next to each other and nested, the
// process holds the files, mappings and memory that it held after the first.
func TestManyLoads(t *testing.T) {
	plan := rooms(false)
	plan.Frame, plan.Pages.Guards = budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}, budget.Wished
	b := open(t, plan)
	systems := b.Region("systems")
	fill := func(s scope.Scope) {
		file, err := os.Open(os.DevNull)
		require.NoError(t, err)
		s.Own(file)
		frogs.Pool(s, 10).Get()
		s.Temp(1000).Bytes(1000)
	}
	round := func(i int) {
		room := acquire(t, b)
		_, err := loadRegion(room, func(s scope.Scope) error { fill(s); return nil })
		require.NoError(t, err)
		_, err = loadRegion(room, func(s scope.Scope) error { fill(s); return errLoader })
		require.ErrorIs(t, err, errLoader)
		_, err = loadRegion(room, func(s scope.Scope) error { fill(s); s.Bytes(1 << 20); return nil })
		require.ErrorIs(t, err, budget.ErrFull)
		require.NoError(t, room.Release(background))
		if i%8 == 0 {
			mustLoad(t, b, "systems", func(s scope.Scope) {
				fill(s)
				room := acquire(t, b).In(s)
				mustLoadRegion(t, room, fill)
				require.NoError(t, room.Release(background))
			})
			require.NoError(t, systems.Rewind(background))
		}
		lease, err := b.Lease(background)
		require.NoError(t, err)
		require.NoError(t, lease.Release())
		require.NoError(t, b.NextFrame())
	}
	rounds := step.Pick(500, 2_000, 330_000) // a soak has a million loads
	for i := range 1000 {
		round(i)
	}
	before := holds(t)
	for i := range rounds {
		round(i)
	}
	after := holds(t)
	assert.Equal(t, before.files, after.files)
	if !instrumented { // their shadows grow
		assert.Less(t, after.mappings, before.mappings+32, "the Go runtime's come and go")
		assert.Less(t, after.resident, before.resident+4*budget.MiB)
	}
	t.Logf("%d loads: %+v, then %+v", 3*rounds, before, after)
}
