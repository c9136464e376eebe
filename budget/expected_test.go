package budget

import (
	"context"
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

func TestExpectedWarnings(t *testing.T) {
	plan := handheld()
	plan.CHeap.Size = 8 * MiB
	plan.Expected = []Expected{
		{Part: "level", Boot: 40 * MiB, Load: 40*MiB + 1, Play: math.MaxUint64},
		{Part: "level", Label: "frogs", Play: 41 * MiB},
		{Part: "frame", Play: MiB + 1}, {Part: "scratch", Load: MiB + 1}, {Part: "c_heap", Boot: 9 * MiB},
	}
	err := plan.Check()
	assert.ErrorIs(t, err, ErrWarning)
	assert.EqualError(t, err, `plan "handheld": expected[0].load: warning: 41943041, but level has 40MiB
plan "handheld": expected[0].play: warning: 18446744073709551615, but level has 40MiB
plan "handheld": expected[1].play: warning: 41MiB, but level has 40MiB
plan "handheld": expected[2].play: warning: 1048577, but frame has 1MiB
plan "handheld": expected[3].load: warning: 1048577, but scratch has 1MiB
plan "handheld": expected[4].boot: warning: 9MiB, but c_heap has 8MiB`)
	plan.Size, plan.Regions[2].Size, plan.Expected = 64*MiB, Rest, plan.Expected[:2]
	assert.NoError(t, plan.Check(), "the bytes of a rest are known after Open")
}

func TestExpectedBand(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	largest := new(big.Int).SetUint64(math.MaxUint64)
	for range 10_000 {
		size, e := random.Uint64()>>random.IntN(64), Expected{Tolerance: Percent(random.IntN(100))}
		share := new(big.Int).SetUint64(size)
		share.Mul(share, big.NewInt(int64(e.Tolerance))).Div(share, big.NewInt(100))
		high := new(big.Int).SetUint64(size)
		if high.Add(high, share).Cmp(largest) > 0 {
			high = largest
		}
		least, most := e.Band(size)
		require.Equal(t, size-share.Uint64(), least, "%d %d", size, e.Tolerance)
		require.Equal(t, high.Uint64(), most, "%d %d", size, e.Tolerance)
	}
	least, most := Expected{Tolerance: math.MaxInt}.Band(7) // from a file
	assert.Equal(t, [2]uint64{0, 14}, [2]uint64{least, most})
	least, most = Expected{Tolerance: math.MinInt}.Band(7)
	assert.Equal(t, [2]uint64{7, 7}, [2]uint64{least, most})
}

func TestMoments(t *testing.T) {
	d := TimelineData{Step: 1, Arenas: []ArenaLine{
		{Name: "level", Part: "level", Most: []uint64{0, 9, 5, 6, 0, 8}, Marks: []Mark{MarkRewind, MarkLoad, 0, MarkFull, MarkRewind, MarkLoad | MarkFull}},
		{Name: "room 0", Part: "room", Most: []uint64{1, 2, 1}, Marks: []Mark{0, 0, MarkLoad}},
		{Name: "room 1", Part: "room", Most: []uint64{0, 3, 2, 4}},
		{Name: "frame 0", Part: "frame", Most: []uint64{7, 7, 7, 7, 7, 7}},
		{Name: "frame 1", Part: "frame", Most: []uint64{0, 8}},
	}}
	e := Expected{Part: "level", Boot: 1, Load: 10, Play: 20}
	assert.Equal(t, []Moment{{"boot", 0, 1}, {"load", 9, 10}, {"play", 5, 20}, {"play", 6, 20}, {"play", 0, 20}, {"load", 8, 10}}, d.Moments(e))
	e.Part = "room"
	assert.Equal(t, []Moment{{"boot", 1, 1}, {"boot", 3, 1}, {"load", 2, 10}, {"play", 4, 20}}, d.Moments(e), "the fullest slot, and the loads of all")
	e.Part = "frame"
	assert.Equal(t, []Moment{{"boot", 7, 1}, {"load", 8, 10}, {"load", 7, 10}, {"play", 7, 20}, {"play", 7, 20}, {"load", 7, 10}}, d.Moments(e),
		"a part without loads follows those of all parts")
	d.Step = 2
	assert.Equal(t, Moment{"load", 8, 20}, d.Moments(e)[1], "a sample of two ticks may show play, too")
	e.Load = 0
	assert.Equal(t, Moment{"load", 8, 0}, d.Moments(e)[1])
	e.Label = "frogs"
	assert.Empty(t, d.Moments(e))
	assert.Empty(t, d.Moments(Expected{Part: "none", Play: 1}))
}

// No timeline leaves the expectations that Expect makes of it, and each size is reached.
func TestExpect(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	line := func(name, part string) ArenaLine {
		l := ArenaLine{Name: name, Part: part}
		for range 1 + random.IntN(40) {
			l.Most, l.Marks = append(l.Most, random.Uint64N(1000)), append(l.Marks, Mark(random.IntN(5)/4))
		}
		return l
	}
	for range 500 {
		var all []TimelineData
		for range 1 + random.IntN(3) {
			all = append(all, TimelineData{Step: 1 + random.Uint64N(2), Arenas: []ArenaLine{line("level", "level"), line("room 0", "room"),
				line("room 1", "room"), {Name: "idle", Part: "idle", Most: make([]uint64, 9)}}})
		}
		list := Expect(0, all...)
		require.Len(t, list, 2, "idle was never used")
		for _, e := range list {
			reached := map[string]uint64{}
			for _, d := range all {
				for _, m := range d.Moments(e) {
					require.LessOrEqual(t, m.Used, m.Expected)
					reached[m.At] = max(reached[m.At], m.Used)
				}
			}
			require.Equal(t, map[string]uint64{"boot": e.Boot, "load": e.Load, "play": e.Play}, map[string]uint64{
				"boot": reached["boot"], "load": reached["load"], "play": reached["play"]})
		}
	}
	assert.Equal(t, []Expected{{Part: "level", Play: 9, Tolerance: 10}}, Expect(10, TimelineData{Arenas: []ArenaLine{
		{Part: "level", Most: []uint64{0, 0, 9}, Marks: []Mark{0, MarkLoad, 0}}}}))
	assert.Empty(t, Expect(10))
}

// An expectation is no layout: the budget is the same with and without, and calls allocate as much.
func TestExpectedChangesNothing(t *testing.T) {
	with := handheld()
	with.GoHeap = 0
	with.Expected = []Expected{{Part: "level", Load: 1, Play: 1, Tolerance: 5}, {Part: "level", Label: "frogs", Play: 1}}
	without := with
	without.Expected = nil
	allocs := map[bool]float64{}
	for _, plan := range []Plan{with, without} {
		b, err := Open(plan)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, b.Close()) })
		assert.Equal(t, plan.Expected, b.Plan().Expected)
		timeline := b.Timeline(8)
		tick := func() {
			_, err := Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) { return &s.Bytes(100)[0], nil })
			require.NoError(t, err)
			require.NoError(t, b.NextFrame())
			timeline.Sample()
		}
		least := math.Inf(1) // other goroutines allocate, too, and tables of checked builds grow
		for range 10 {
			least = min(least, testing.AllocsPerRun(20, tick))
		}
		allocs[plan.Expected != nil] = least
		d := timeline.Read()
		assert.Equal(t, plan.Expected, d.Expected)
		if plan.Expected != nil {
			d.Expected[0].Play, b.Plan().Expected[0].Play = 99, 99
			assert.Equal(t, plan.Expected, timeline.Read().Expected, "a copy")
			assert.Equal(t, plan.Expected, b.Report().Plan.Expected)
			text, err := json.Marshal(b.Report())
			require.NoError(t, err)
			var read Report
			require.NoError(t, json.Unmarshal(text, &read))
			assert.Equal(t, plan.Expected, read.Plan.Expected)
			small := b.Plan()
			small.Expected = nil
			assert.NoError(t, b.onlySizesDiffer(small), "Reconfigure takes a plan without")
		}
	}
	assert.Equal(t, allocs[false], allocs[true])
	costs, err := with.Cost()
	require.NoError(t, err)
	same, err := without.Cost()
	require.NoError(t, err)
	assert.Equal(t, same, costs)
	list, err := with.resolved().layout()
	require.NoError(t, err)
	others, err := without.resolved().layout()
	require.NoError(t, err)
	assert.Equal(t, others.parts(), list.parts())
}
