package timeline_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/scope"
)

func TestMoments(t *testing.T) {
	d := timeline.Data{Step: 1, Arenas: []timeline.Arena{
		{Name: "level", Part: "level", Most: []uint64{0, 9, 5, 6, 0, 8},
			Marks: []timeline.Mark{timeline.MarkRewind, timeline.MarkLoad, 0, timeline.MarkFull, timeline.MarkRewind,
				timeline.MarkLoad | timeline.MarkFull}},
		{Name: "room 0", Part: "room", Most: []uint64{1, 2, 1}, Marks: []timeline.Mark{0, 0, timeline.MarkLoad}},
		{Name: "room 1", Part: "room", Most: []uint64{0, 3, 2, 4}},
		{Name: "frame 0", Part: "frame", Most: []uint64{7, 7, 7, 7, 7, 7}},
		{Name: "frame 1", Part: "frame", Most: []uint64{0, 8}},
	}}
	e := budget.Expected{Part: "level", Boot: 1, Load: 10, Play: 20}
	assert.Equal(t, []timeline.Moment{{"boot", 0, 1}, {"load", 9, 10}, {"play", 5, 20}, {"play", 6, 20},
		{"play", 0, 20}, {"load", 8, 10}}, d.Moments(e))
	e.Part = "room"
	assert.Equal(t, []timeline.Moment{{"boot", 1, 1}, {"boot", 3, 1}, {"load", 2, 10}, {"play", 4, 20}}, d.Moments(e),
		"the fullest slot, and the loads of all")
	e.Part = "frame"
	assert.Equal(t, []timeline.Moment{{"boot", 7, 1}, {"load", 8, 10}, {"load", 7, 10}, {"play", 7, 20},
		{"play", 7, 20}, {"load", 7, 10}}, d.Moments(e),
		"a part without loads follows those of all parts")
	d.Step = 2
	assert.Equal(t, timeline.Moment{"load", 8, 20}, d.Moments(e)[1], "a sample of two ticks may show play, too")
	e.Load = 0
	assert.Equal(t, timeline.Moment{"load", 8, 0}, d.Moments(e)[1])
	e.Label = "frogs"
	assert.Empty(t, d.Moments(e))
	assert.Empty(t, d.Moments(budget.Expected{Part: "none", Play: 1}))
}

// No timeline leaves the expectations that timeline.Expect makes of it, and each size is reached.
func TestExpect(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	line := func(name, part string) timeline.Arena {
		l := timeline.Arena{Name: name, Part: part}
		for range 1 + random.IntN(40) {
			l.Most, l.Marks = append(l.Most, random.Uint64N(1000)), append(l.Marks, timeline.Mark(random.IntN(5)/4))
		}
		return l
	}
	for range 500 {
		var all []timeline.Data
		for range 1 + random.IntN(3) {
			all = append(all,
				timeline.Data{Step: 1 + random.Uint64N(2), Arenas: []timeline.Arena{line("level", "level"),
					line("room 0", "room"), line("room 1", "room"),
					{Name: "idle", Part: "idle", Most: make([]uint64, 9)}}})
		}
		list := timeline.Expect(0, all...)
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
	assert.Equal(t, []budget.Expected{{Part: "level", Play: 9, Tolerance: 10}},
		timeline.Expect(10, timeline.Data{Arenas: []timeline.Arena{
			{Part: "level", Most: []uint64{0, 0, 9}, Marks: []timeline.Mark{0, timeline.MarkLoad, 0}}}}))
	assert.Empty(t, timeline.Expect(10))
}

// TestExpectedIsACopy: a timeline has the plan's expectations, and a caller may change its copy.
func TestExpectedIsACopy(t *testing.T) {
	expected := budget.Expected{Part: "level", Load: 1, Play: 1, Tolerance: 5}
	b := budgettest.Open(t, budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}},
		Expected: []budget.Expected{expected}})
	use := timeline.Start(b, 8)
	_, err := budget.Load(context.Background(), b.Region("level"), func(s scope.Scope) (*byte, error) {
		return &s.Bytes(100)[0], nil
	})
	require.NoError(t, err)
	use.Sample()
	d := use.Read()
	assert.Equal(t, []budget.Expected{expected}, d.Expected)
	d.Expected[0].Play = 99
	assert.Equal(t, []budget.Expected{expected}, use.Read().Expected)
}
