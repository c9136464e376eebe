package live_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/budget/view/live"
	"github.com/upfront-mem/upfront/scope"
)

type frog struct{ X, Y, Age, Hue int32 }

var frogs = scope.Plain[frog]()

// hostile is a name that tries to be markup.
const hostile = `</table><script src="http://example.com/x.js">alert(1)</script>"'&`

// pond is a budget with labels, pools, slots, a full, a leak, a failed finalizer, a frame, scratch
// and a timeline.
type pond struct {
	*budget.Budget
	timeline *timeline.Timeline
	slots    []budget.Region
	ticks    int
}

func newPond(t testing.TB) *pond {
	t.Helper()
	b, err := budget.Open(budget.Plan{
		Name: "pond",
		Regions: []budget.RegionPlan{
			{Name: "systems", Size: 200_000},
			{Name: "level", Size: 100_000, Slots: 10},
		},
		Frame:   budget.FramePlan{Buffers: 2, Size: 30_000},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 20_000},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() }) // it reports the leak below
	p := &pond{Budget: b, timeline: timeline.Start(b, 100)}
	require.NoError(t, p.load(b.Region("systems"), 3000))
	for i := range 6 {
		slot, err := b.Slots("level").Acquire()
		require.NoError(t, err)
		p.slots = append(p.slots, slot)
		require.NoError(t, p.load(slot, 500*(i+1)))
		p.tick(t)
	}
	require.ErrorIs(t, p.load(p.slots[2], 100_000), budget.ErrFull)
	fails := func(s scope.Scope) (*int, error) {
		s.Defer(func() { panic("a finalizer fails") })
		return new(int), nil
	}
	_, err = budget.Load(context.Background(), p.slots[3], fails)
	require.NoError(t, err)
	require.NoError(t, p.load(p.slots[3], 700))
	p.tick(t)
	return p
}

func (p *pond) load(r budget.Region, count int) error {
	_, err := budget.Load(context.Background(), r, func(s scope.Scope) (*int, error) {
		for i, name := range []string{"map", "frogs", hostile} {
			err := scope.Label(s, name, func() error {
				frogs.Slice(s, count*(i+1)/6)
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		frogs.Slice(s, count/10)
		frogs.Pool(s, 20).Get()
		return new(int), nil
	})
	return err
}

// tick is one step of a program.
func (p *pond) tick(t testing.TB) {
	t.Helper()
	p.ticks++
	work := p.Scratch(p.ticks%2, 0).Open("query")
	work.Bytes(1000 + p.ticks%100)
	work.Close()
	frogs.Slice(p.Frame(), 100+p.ticks%300)
	require.NoError(t, p.NextFrame())
	p.timeline.Sample()
}

// page returns the page of a pond.
func (p *pond) page(t testing.TB, o live.Options) *live.Page {
	t.Helper()
	o.Timeline = p.timeline
	page := live.New(p.Budget, o)
	t.Cleanup(page.Close)
	return page
}
