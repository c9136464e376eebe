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
	"github.com/upfront-mem/upfront/tests/step"
)

func trackedPlan(size uint64) budget.Plan {
	return budget.Plan{Name: "large", Regions: []budget.RegionPlan{
		{Name: "level", Size: size, State: true, Track: true}, {Name: "rollback", Size: 6 * size}}}
}

// trackedState returns a state of one slice that isn't aligned to pages, and its ring in the region
// above.
func trackedState(t testing.TB, b *budget.Budget, size, places int) (all []byte, ring *save.Ring) {
	var state *save.State
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		byteMaker.Slice(s, 5000)
		state, _ = save.Begin(r, s, roomMaker)
		all = byteMaker.Slice(s, size)
	})
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) {
		ring = save.NewRing(s, places, state)
	})
	return all, ring
}

// TestTracked compares snapshots of a tracked region with full copies, across writes and restores.
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
			assert.Contains(t, refused[len(refused)-1],
				"regions[0].track: region level is compared page by page: ")
		case len(refused) > 0:
			t.Log(refused)
		}
		all, ring := trackedState(t, b, size, places)
		r := rand.New(rand.NewPCG(5, 6))
		want := map[uint64][]byte{}
		number := uint64(0)
		for range step.Pick(60, 300, 300) {
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
			if ring.Has(number-1) && r.IntN(4) == 0 { // from outside, in place of another
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

// TestTrackedAfterARefusal: a refused delta or file has overwritten the image of an empty slot. The
// next snapshots there have the bytes of the state all the same.
func TestTrackedAfterARefusal(t *testing.T) {
	const places = 3
	for _, from := range []string{"a delta", "a file", "the start of a file", "a file, untracked"} {
		plan := trackedPlan(budget.MiB)
		plan.Regions[0].Track = from != "a file, untracked"
		b := open(t, plan)
		all, ring := trackedState(t, b, 300_000, places)
		const oldest = 1000 // the highest number, so the ring keeps it
		require.NoError(t, ring.Take(oldest))
		var file bytes.Buffer
		require.NoError(t, ring.Write(&file, oldest))
		all[150_000] = 9 // in a page without a later write
		number := uint64(1)
		take := func(times int) {
			for range times {
				all[50_000]++
				require.NoError(t, ring.Take(number))
				require.True(t, bytes.Equal(save.Live(ring), save.Image(ring, number)), "%s, %d", from, number)
				number++
			}
		}
		take(3 * places)
		var err error
		if data := file.Bytes(); from == "a delta" {
			delta, made := ring.Delta(nil, oldest, number-1)
			require.NoError(t, made)
			delta[len(delta)-1] ^= 1
			_, err = ring.Apply(delta)
		} else {
			data[len(data)-1] ^= 1
			if from == "the start of a file" {
				data = data[:len(data)-100]
			}
			_, err = ring.Read(bytes.NewReader(data))
		}
		require.Error(t, err)
		take(2 * places)
	}
}

// TestTrackedChunksThatAreCleared: Hash clears free chunks only in the snapshot. A later snapshot,
// in which the chunks live again without a write, has their bytes.
func TestTrackedChunksThatAreCleared(t *testing.T) {
	b := open(t, trackedPlan(budget.MiB))
	var state *save.State
	var pool scope.HandlePool[wide]
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ = save.Begin(r, s, roomMaker)
		pool = wideMaker.HandlePool(s, 20)
	})
	var ring *save.Ring
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) { ring = save.NewRing(s, 3, state) })
	x, h := pool.Get()
	for i := range x {
		x[i] = 77
	}
	for i := range uint64(9) { // until no page is marked
		require.NoError(t, ring.Take(i%3))
	}
	pool.Put(h)
	require.NoError(t, ring.Take(1))
	hash(t, ring, 1)
	require.NoError(t, ring.Restore(background, 0))
	require.NoError(t, ring.Take(1))
	require.Equal(t, save.Live(ring), save.Image(ring, 1))
	require.Equal(t, hash(t, ring, 0), hash(t, ring, 1))
}

// wide is more than a page.
type wide [1024]uint64

var wideMaker = scope.Plain[wide]()

// TestTrackedBesideReconfigure: a reconfigured region above doesn't affect a tracker.
func TestTrackedBesideReconfigure(t *testing.T) {
	plan := trackedPlan(budget.MiB)
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "a", Size: budget.MiB},
		budget.RegionPlan{Name: "b", Size: budget.MiB})
	b := open(t, plan)
	all, ring := trackedState(t, b, 300_000, 3)
	plan.Regions[2].Size, plan.Regions[3].Size = budget.MiB/2, budget.MiB/2*3
	refused := b.Report().NotGranted
	require.NoError(t, b.Reconfigure(background, plan))
	assert.Equal(t, refused, b.Report().NotGranted)
	number := uint64(0)
	take := func() {
		number++
		all[number]++
		if err := ring.Take(number); err != nil {
			t.Error(err)
		}
	}
	assert.Zero(t, testing.AllocsPerRun(10, take))
	assert.Equal(t, save.Live(ring), save.Image(ring, number))
}
