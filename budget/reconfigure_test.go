package budget_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// limitedRegions returns the regions of a plan with the default limits of slots, as an open budget
// has them.
func limitedRegions(plan budget.Plan) []budget.RegionPlan {
	for i := range plan.Regions {
		if r := &plan.Regions[i]; r.Slots != 0 && r.Limits == (budget.Limits{}) {
			r.Limits = budget.Limits{Scopes: 16, Pools: 16, Owned: 32, Labels: 8}
		}
	}
	return plan.Regions
}

func worlds(systems, room, level uint64) budget.Plan {
	return budget.Plan{Name: "worlds", Regions: []budget.RegionPlan{{Name: "init", Size: 64 * budget.KiB},
		{Name: "systems", Size: systems * budget.KiB}, {Name: "room", Size: room * budget.KiB, Slots: 2},
		{Name: "level", Size: level * budget.KiB}}, Frame: budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB}}
}

func TestReconfigureMovesTheEdges(t *testing.T) {
	b := open(t, worlds(256, 64, 512))
	kept := mustLoad(t, b, "init", nil)
	frame := frogs.New(b.Frame())
	frame.X = 7
	tooLarge := func(s scope.Scope) error { s.Bytes(600 * budget.KiB); return nil }
	_, err := load(b, "level", tooLarge)
	require.ErrorIs(t, err, budget.ErrFull)

	old := mustLoad(t, b, "level", nil)
	stale := scope.Scope{}
	_, err = load(b, "level", func(s scope.Scope) error { stale = s; return nil })
	require.NoError(t, err)
	plan := b.Plan() // a copy
	plan.Regions[1].Size, plan.Regions[3].Size = 64*budget.KiB, 704*budget.KiB
	assert.Equal(t, limitedRegions(worlds(256, 64, 512)), b.Plan().Regions)
	assert.EqualError(t, b.Reconfigure(background, plan),
		`budget "worlds": Reconfigure while region level is loaded; Rewind it first`)
	require.NoError(t, b.Region("systems").Rewind(background))
	require.NoError(t, b.Reconfigure(background, plan))
	assert.Nil(t, old.Get())
	assert.ErrorIs(t, stale.Close(), budget.ErrClosed)
	assert.Panics(t, func() { frogs.New(stale) })
	assert.NotNil(t, kept.Get(), "what lies below stays")
	assert.EqualValues(t, 7, frame.X, "and what stands beside")
	_, err = load(b, "level", tooLarge)
	require.NoError(t, err)
	assert.EqualValues(t, 704*budget.KiB, regionReport(b, "level").Size)
	assert.Equal(t, plan.Regions, b.Plan().Regions)
	_, err = load(b, "systems", func(s scope.Scope) error { s.Bytes(65 * budget.KiB); return nil })
	assert.EqualError(t, err,
		`budget "worlds": region systems is full: scope "systems" asked for 66560 bytes, 65512 of 65536 are free; `+
			`held by "systems" (24 bytes); raise regions[1].size in the plan to 66584 or more`)
	requireWalk(t, b)
}

func TestReconfigureRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, oneScratch := open(t, worlds(256, 64, 512)), budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}
		for want, change := range map[string]func(*budget.Plan){
			`the regions have 960KiB, the plan's need 1024KiB`: func(p *budget.Plan) {
				p.Regions[3].Size += 64 * budget.KiB
			},
			`name is worlds and can't change; the plan has other`: func(p *budget.Plan) { p.Name = "other" },
			`frame.buffers is 2 and can't change; the plan has 3`: func(p *budget.Plan) { p.Frame.Buffers = 3 },
			`scratch.workers is 0 and can't change; the plan has 1`: func(p *budget.Plan) {
				p.Scratch = oneScratch
			},
			`regions[2].slots is 2 and can't change; the plan has 3`: func(p *budget.Plan) {
				p.Regions[2].Slots = 3
			},
			`regions[1].name is systems and can't change; the plan has s`: func(p *budget.Plan) {
				p.Regions[1].Name = "s"
			},
			`the number of regions is 4 and can't change; the plan has 3`: func(p *budget.Plan) {
				p.Regions = p.Regions[:3]
			},
			`go_heap is 0 and can't change; the plan has 8MiB`:     func(p *budget.Plan) { p.GoHeap = 8 * budget.MiB },
			`limits.scopes is 64 and can't change; the plan has 9`: func(p *budget.Plan) { p.Limits.Scopes = 9 },
			`regions[1].size: 0 bytes; give a size`:                func(p *budget.Plan) { p.Regions[1].Size = 0 },
		} {
			plan := worlds(128, 128, 512)
			change(&plan)
			assert.ErrorContains(t, b.Reconfigure(background, plan), want)
		}
		assert.Equal(t, limitedRegions(worlds(256, 64, 512)), b.Plan().Regions)
		_, err := load(b, "init", func(scope.Scope) error {
			assert.ErrorIs(t, b.Reconfigure(background, worlds(128, 128, 512)), budget.ErrLoading)
			return nil
		})
		require.NoError(t, err)
		reader := b.Region("level").Reader("worker")
		require.True(t, reader.Pin())
		ctx, cancel := soon()
		defer cancel()
		assert.ErrorContains(t, b.Reconfigure(ctx, worlds(128, 64, 640)), `"worker" has pinned region level`)
		require.NoError(t, b.Reconfigure(background, worlds(256, 64, 512)), "nothing changes: nobody is in the way")
		reader.Unpin()
		require.NoError(t, b.Reconfigure(background, worlds(128, 128, 512)))
		require.NoError(t, b.Close())
		assert.ErrorIs(t, b.Reconfigure(background, worlds(128, 64, 640)), budget.ErrClosed)
	})
}

// TestReconfigureAtRandom reconfigures over and over. Each region has exactly its bytes, and the
// bytes of other arenas stay.
func TestReconfigureAtRandom(t *testing.T) {
	b := open(t, worlds(256, 64, 512))
	random := rand.New(rand.NewPCG(3, 1))
	kept := mustLoad(t, b, "init", nil)
	for range 200 {
		units := []uint64{1, 1, 1} // systems, a room, level, in 64 KiB: 14 together with two rooms
		for left := 14 - 4; left > 0; {
			if i := random.IntN(3); i != 1 {
				units[i]++
				left--
			} else if left >= 2 {
				units[1]++
				left -= 2
			}
		}
		plan := worlds(64*units[0], 64*units[1], 64*units[2])
		require.NoError(t, b.Reconfigure(background, plan), fmt.Sprint(units))
		requireWalk(t, b)
		for _, name := range []string{"systems", "level"} {
			size := b.Region(name).Report().Size
			_, err := budget.Load(background, b.Region(name), func(s scope.Scope) (*frog, error) {
				bytes := s.Bytes(int(size))
				bytes[0], bytes[size-1] = 1, 1
				return nil, nil
			})
			require.NoError(t, err)
		}
		for _, room := range []budget.Region{acquire(t, b), acquire(t, b)} {
			_, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
				s.Bytes(int(64 * units[1] * budget.KiB))
				assert.Nil(t, s.TryAllocUnzeroed(1, 1))
				return nil, nil
			})
			require.ErrorIs(t, err, budget.ErrFull, "one more than all")
			require.NoError(t, room.Release(background))
		}
		require.NotNil(t, kept.Get())
		require.NoError(t, b.Region("systems").Rewind(background))
	}
}

// TestReconfiguredStateIsZero: a state region that takes bytes of another region begins its loads
// with zeros, also if no load has used it before.
func TestReconfiguredStateIsZero(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		plan := budget.Plan{Name: "worlds", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB},
			{Name: "state", Size: 256 * budget.KiB, State: true, Trim: budget.TrimEmpty}}}
		b := open(t, plan)
		rewind := func(region string) { require.NoError(t, b.Region(region).Rewind(background)) }
		mustLoad(t, b, "level", func(s scope.Scope) { fillBytes(s.BytesUnzeroed(200*budget.KiB, 8)) })
		if loaded {
			mustLoad(t, b, "state", func(s scope.Scope) { fillBytes(s.BytesUnzeroed(200*budget.KiB, 8)) })
			rewind("state")
		}
		rewind("level")
		plan = b.Plan()
		plan.Regions[0].Size, plan.Regions[1].Size = 64*budget.KiB, 448*budget.KiB
		require.NoError(t, b.Reconfigure(background, plan))
		mustLoad(t, b, "state", func(s scope.Scope) {
			if !arena_c.Checked { // which fills new bytes
				assert.NotContains(t, s.BytesUnzeroed(400*budget.KiB, 8), byte(1), "loaded before: %v", loaded)
			}
		})
		rewind("state")
	}
}

func fillBytes(bytes []byte) {
	for i := range bytes {
		bytes[i] = 1
	}
}
