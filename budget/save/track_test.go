package save_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
)

func trackedPlan(size uint64) budget.Plan {
	return budget.Plan{Name: "large", Regions: []budget.RegionPlan{
		{Name: "level", Size: size, State: true, Track: true}, {Name: "rollback", Size: 6 * size}}}
}

// trackedState is a state of one slice that doesn't begin or end with a page, and a ring in the region above.
func trackedState(t testing.TB, b *budget.Budget, size, places int) (all []byte, ring *save.Ring) {
	var state *save.State
	load(t, b, "level", func(r *budget.Region, s scope.Scope) {
		byteMaker.Slice(s, 5000)
		state, _ = save.Begin(r, s, roomMaker)
		all = byteMaker.Slice(s, size)
	})
	load(t, b, "rollback", func(_ *budget.Region, s scope.Scope) { ring = save.NewRing(s, places, state) })
	return all, ring
}

// TestTracked compares snapshots of a tracked region with copies of all: whatever was written between, and put back.
func TestTracked(t *testing.T) {
	for _, fault := range []bool{false, true} {
		const size, places = 300_000, 5
		if fault {
			restore := platform.InjectFault("track", 1)
			defer restore()
		}
		b := open(t, trackedPlan(budget.MiB))
		refused := b.Report().NotGranted
		switch {
		case fault || arena_c.Checked || arena_c.Asan || arena_c.Race:
			require.NotEmpty(t, refused)
			assert.Contains(t, refused[len(refused)-1], "regions[0].track: region level is compared page by page: ")
		case len(refused) > 0:
			t.Log(refused)
		}
		all, ring := trackedState(t, b, size, places)
		r := rand.New(rand.NewPCG(5, 6))
		want := map[uint64][]byte{}
		number := uint64(0)
		for range 300 {
			for range r.IntN(40) {
				from := r.IntN(size)
				for i := range all[from:min(size, from+1+r.IntN(9000))] {
					all[from+i] = byte(r.Uint32())
				}
			}
			if back := number - r.Uint64N(places); r.IntN(3) == 0 && ring.Has(back) {
				require.NoError(t, ring.Restore(background, back))
				require.True(t, bytes.Equal(want[back], all), back)
				number = back
			}
			number++
			if ring.Has(number-1) && r.IntN(4) == 0 { // the snapshot comes from outside, in the place of another
				require.NoError(t, ring.Take(number))
				delta, err := ring.Delta(nil, number-1, number)
				require.NoError(t, err)
				want[number] = bytes.Clone(all)
				clear(all[r.IntN(size):])
				require.NoError(t, ring.Take(number))
				_, err = ring.Apply(delta)
				require.NoError(t, err)
				require.NoError(t, ring.Restore(background, number))
				require.True(t, bytes.Equal(want[number], all), number)
			}
			require.NoError(t, ring.Take(number))
			want[number] = bytes.Clone(all)
			require.Equal(t, save.Live(ring), save.Image(ring, number))
		}
	}
}
