package save_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/scope"
)

var background = context.Background()

// voice is an object with a finalizer.
type voice struct{ Left uint64 }

var voiceMaker = scope.Object(func(*voice) error { return nil })

// load loads a region of a budget of twoRegions.
func load(t testing.TB, b *budget.Budget, name string, fn func(r budget.Region, s scope.Scope)) {
	r := b.Region(name)
	_, err := budget.Load(background, r, func(s scope.Scope) (*room, error) {
		fn(r, s)
		return nil, nil
	})
	require.NoError(t, err)
}

func twoRegions() budget.Plan {
	return budget.Plan{Name: "two", Regions: []budget.RegionPlan{
		{Name: "level", Size: 64 * budget.KiB, State: true},
		{Name: "extra", Size: 64 * budget.KiB},
		{Name: "rollback", Size: 128 * budget.KiB}}}
}

func panicOf(t *testing.T, fn func()) (text string) {
	defer func() {
		switch v := recover().(type) {
		case error:
			text = v.Error()
		case string:
			text = v
		default:
			require.Fail(t, "no panic")
		}
	}()
	fn()
	return ""
}

// TestTogether: the states of several regions are one snapshot, in memory of a region above.
func TestTogether(t *testing.T) {
	b := open(t, twoRegions())
	var states [2]*save.State
	var rooms [2]*room
	for i, name := range []string{"level", "extra"} {
		load(t, b, name, func(r budget.Region, s scope.Scope) {
			states[i], rooms[i] = save.Begin(r, s, roomMaker)
			byteMaker.Slice(s, 100*(i+1)+i)
		})
	}
	var ring *save.Ring
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) {
		ring = save.NewRing(s, 2, states[0], states[1])
	})
	lines := func(size uint64) uint64 { return (size + 63) / 64 * 64 }
	assert.EqualValues(t, lines(states[0].Size())+lines(states[1].Size()), ring.Size())
	rooms[0].Tick, rooms[1].Tick = 1, 2
	require.NoError(t, ring.Take(5))
	rooms[0].Tick, rooms[1].Tick = 3, 4
	require.NoError(t, ring.Restore(background, 5))
	assert.EqualValues(t, []uint64{1, 2}, []uint64{rooms[0].Tick, rooms[1].Tick})

	_, err := ring.Hash(5)
	assert.EqualError(t, err, `save: Hash of region extra of budget "two", whose bytes may differ `+
		`from machine to machine: set its key state to true (RegionPlan.State)`)
	require.NoError(t, b.Region("rollback").Rewind(background))
	assert.ErrorContains(t, ring.Take(6),
		` ago, by a Rewind of region rollback`)
	assert.EqualValues(t, 1, rooms[0].Tick)
}

// TestStatesOfSiblings: the state of one region is taken and restored while the other one on the
// same region is loaded, emptied or in its load, and neither changes the other.
func TestStatesOfSiblings(t *testing.T) {
	b := open(t, budget.Plan{Name: "pond", Regions: []budget.RegionPlan{
		{Name: "systems", Size: 64 * budget.KiB},
		{Name: "level", Size: 256 * budget.KiB, State: true},
		{Name: "weather", Size: 256 * budget.KiB, State: true, On: "systems"}}})
	load(t, b, "systems", func(budget.Region, scope.Scope) {})
	level, weather := newPond(t, b, "level", 2), newPond(t, b, "weather", 2)
	steps := func(p *pond) {
		for range 50 {
			p.step(7)
		}
	}
	now := func(p *pond) uint64 {
		require.NoError(t, p.ring.Take(9))
		return hash(t, p.ring, 9)
	}
	steps(level)
	steps(weather)
	require.NoError(t, level.ring.Take(1))
	was, other := hash(t, level.ring, 1), now(weather)
	steps(level)
	assert.NotEqual(t, was, now(level))
	require.NoError(t, level.ring.Restore(background, 1))
	assert.Equal(t, was, now(level))
	assert.Equal(t, other, now(weather), "the restore of level left it alone")

	weather = newPond(t, b, "weather", 2)
	fresh := now(weather)
	assert.NotEqual(t, other, fresh)
	assert.Equal(t, was, now(level), "the load of weather left it alone")
	steps(level)
	load(t, b, "weather", func(budget.Region, scope.Scope) {
		require.NoError(t, level.ring.Restore(background, 1))
		assert.Equal(t, was, now(level), "inside the load of weather")
	})
	require.NoError(t, b.Region("weather").Rewind(background))
	assert.ErrorIs(t, weather.ring.Take(2), budget.ErrClosed)
	assert.Equal(t, was, now(level))
	require.NoError(t, b.Region("systems").Rewind(background))
	assert.ErrorIs(t, level.ring.Take(2), budget.ErrClosed, "level stands on systems")
}

// TestRefusals: each misuse returns its error, and nothing changes.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, pondPlan())
		p := newPond(t, b, "level", 2)
		require.NoError(t, p.ring.Take(3))
		p.step(1)
		require.NoError(t, p.ring.Take(4))
		before := hash(t, p.ring, 4)

		assert.EqualError(t, p.ring.Restore(background, 5),
			"save: region level: the ring of 2 doesn't hold snapshot 5; make it larger in NewRing; it holds: 3 4")
		_, err := p.ring.Hash(9)
		assert.ErrorContains(t, err, "snapshot 9")

		ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
		defer cancel()
		anna := p.region.Reader("anna")
		require.True(t, anna.Pin())
		err = p.ring.Restore(ctx, 3)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err,
			`budget "pond": Restore of region level waited: worker "anna" has pinned region level`)
		time.AfterFunc(time.Millisecond, anna.Unpin)
		require.NoError(t, p.ring.Restore(background, 4), "it waited")
		require.NoError(t, p.ring.Take(5))
		assert.Equal(t, before, hash(t, p.ring, 5))
		assert.ErrorIs(t, p.ring.Restore(ctx, 4), context.DeadlineExceeded, "a context that has ended")
		require.True(t, anna.Pin(), "it is open again")
		anna.Unpin()

		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			assert.ErrorIs(t, p.ring.Restore(background, 4), budget.ErrClosed)
			state, _ := save.Begin(r, s, roomMaker)
			ring := save.NewRing(s, 1, state)
			assert.ErrorIs(t, ring.Take(1), budget.ErrLoading)
			assert.ErrorIs(t, ring.Restore(background, 1), budget.ErrLoading)
			assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1, state) }),
				"the state of region level has a ring already")
		})
		var failed *save.Ring
		_, err = budget.Load(background, p.region, func(s scope.Scope) (*room, error) {
			state, _ := save.Begin(p.region, s, roomMaker)
			failed = save.NewRing(s, 1, state)
			s.Defer(func() {
				assert.EqualError(t, failed.Take(1),
					`budget "pond": region level: its load failed: upfront: closed`)
			})
			return nil, assert.AnError
		})
		require.ErrorIs(t, err, assert.AnError)
		assert.EqualError(t, failed.Take(1),
			`budget "pond": region level: its load failed: upfront: closed`)
		load(t, b, "level", func(budget.Region, scope.Scope) {})
		assert.ErrorContains(t, failed.Take(1), "rewound or loaded again since")
		for number := range uint64(7) {
			assert.False(t, p.ring.Has(number) && p.ring.Restore(background, number) != nil,
				"Has is what Restore takes")
		}
		assert.EqualError(t, p.ring.Take(6),
			`budget "pond": region level was rewound or loaded again since: upfront: closed`)
		require.NoError(t, b.Close())
		assert.ErrorIs(t, p.ring.Restore(background, 4), budget.ErrClosed)
	})
}

// TestRestoreMeetsLoads: during Rebuild no other load or restore runs.
func TestRestoreMeetsLoads(t *testing.T) {
	b := open(t, pondPlan())
	p := newPond(t, b, "level", 2)
	require.NoError(t, p.ring.Take(1))
	asked := 0
	require.NoError(t, p.state.Rebuild(func() error {
		if asked++; asked == 2 {
			assert.EqualError(t, p.region.Rewind(background),
				`budget "pond": Rewind of region level refused during a Restore of region level; call it when that has returned: upfront: a load, rewind or close is at work`)
			assert.ErrorIs(t, p.ring.Restore(background, 1), budget.ErrLoading)
			assert.ErrorIs(t, b.Close(), budget.ErrLoading)
			assert.False(t, p.region.Reader("anna").Pin())
		}
		return nil
	}))
	require.NoError(t, p.ring.Restore(background, 1))
	require.Equal(t, 2, asked)
	require.NoError(t, p.state.Rebuild(func() error {
		if asked += 10; asked > 20 {
			return assert.AnError
		}
		return nil
	}))
	assert.ErrorIs(t, p.ring.Restore(background, 1), assert.AnError)
	require.NoError(t, p.region.Rewind(background))
}

// TestWhereStatesBegin: Begin works only in a load, with its own scope, once.
func TestWhereStatesBegin(t *testing.T) {
	b := open(t, twoRegions())
	var outer scope.Scope
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		outer = s
		require.NoError(t, s.Do("inner", func(in scope.Scope) error {
			assert.Contains(t, panicOf(t, func() { save.Begin(r, in, roomMaker) }),
				"with the load's scope")
			return nil
		}))
		assert.Contains(t, panicOf(t, func() { save.Begin(b.Region("extra"), s, roomMaker) }),
			"make the state of region extra inside its load")
		state, _ := save.Begin(r, s, roomMaker)
		assert.Equal(t, `budget "two": BUG: the load of region level already has a state; it has only one`,
			panicOf(t, func() { save.Begin(r, s, roomMaker) }))
		load := func(t *testing.T, r budget.Region, fn func(scope.Scope)) {
			_, err := budget.Load(background, r.In(s), func(in scope.Scope) (*room, error) {
				fn(in)
				return nil, nil
			})
			require.NoError(t, err)
		}
		load(t, b.Region("rollback"), func(in scope.Scope) {
			assert.Contains(t, panicOf(t, func() { save.NewRing(in, 1, state) }),
				"NewRing in another scope than the load's")
		})
		assert.Contains(t, panicOf(t, func() { save.NewRing(s, 0, state) }), "a ring of 0 snapshots")
		assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1) }), "of 0 states")
		voiceMaker.New(s)
		assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1, state) }),
			"a finalizer of save_test.voice in the state of region level")
	})
	assert.Contains(t, panicOf(t, func() { save.Begin(b.Region("level"), outer, roomMaker) }),
		"make the state of region level inside its load")
}

// TestFullRing: a ring without room unwinds its scope. The error names the knob, and a size that is
// enough.
func TestFullRing(t *testing.T) {
	loaded := func(plan budget.Plan) error {
		r := open(t, plan).Region("level")
		_, err := budget.Load(background, r, func(s scope.Scope) (*room, error) {
			state, _ := save.Begin(r, s, roomMaker)
			byteMaker.Slice(s, 30*budget.KiB)
			save.NewRing(s, 8, state)
			return nil, nil
		})
		return err
	}
	plan := twoRegions()
	var full *scope.FullError
	require.ErrorAs(t, loaded(plan), &full)
	assert.Equal(t, "regions[0].size", full.Key)
	plan.Regions[0].Size = full.Need
	require.NoError(t, loaded(plan))
}

// TestObjectsThatEnded: a restore across a finalizer is refused, and no other.
func TestObjectsThatEnded(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var live *room
	var voices scope.ObjectPool[voice]
	load(t, b, "extra", func(r budget.Region, s scope.Scope) {
		var state *save.State
		state, live = save.Begin(r, s, roomMaker)
		voices = voiceMaker.Pool(s, 3)
		voiceMaker.New(s) // ends with the region, as snapshots do
		ring = save.NewRing(s, 2, state)
	})
	v := voices.Get()
	v.Left = 9
	require.NoError(t, ring.Take(1))
	v.Left = 8
	require.NoError(t, ring.Restore(background, 1))
	if !arena_c.Crossing {
		assert.EqualValues(t, 9, v.Left)
	}
	live.Tick = 7
	other := voices.Get()
	assert.EqualError(t, ring.Restore(background, 1), "save: Restore of snapshot 1 of region extra: "+
		"in a pool with a finalizer of save_test.voice, 1 objects began or ended since, and 0 "+
		"finalizers ran, which can't be undone; use a Pool without finalizer, or make the pool after NewRing")
	require.NoError(t, voices.Put(other))
	assert.ErrorContains(t, ring.Restore(background, 1), "1 finalizers ran")
	assert.EqualValues(t, 7, live.Tick, "nothing has changed")
	assert.Equal(t, 1, voices.Live())
}

// TestStatesThatDontFit: a load has one state, and a ring has states of one budget, each once.
func TestStatesThatDontFit(t *testing.T) {
	a, b := open(t, twoRegions()), open(t, twoRegions())
	var states [2]*save.State
	for i, b := range []*budget.Budget{a, b} {
		load(t, b, "level", func(r budget.Region, s scope.Scope) {
			states[i], _ = save.Begin(r, s, roomMaker)
			assert.Contains(t, panicOf(t, func() { save.Begin(r, s, roomMaker) }),
				"the load of region level already has a state; it has only one")
		})
	}
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) {
		assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1, states[0], states[1]) }),
			`a state of budget "two" and one of budget "two"`)
		assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1, states[1], states[1]) }),
			"two states of region level")
	})
}

// TestRingAgain: a state gets another ring if the earlier one is gone, or NewRing panicked.
func TestRingAgain(t *testing.T) {
	b := open(t, twoRegions())
	var state *save.State
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ = save.Begin(r, s, roomMaker)
		byteMaker.Slice(s, 1000)
	})
	for _, count := range []int{1 << 30, 10, 9} {
		_, err := budget.Load(background, b.Region("rollback"), func(s scope.Scope) (*room, error) {
			ring := save.NewRing(s, count, state)
			assert.Contains(t, panicOf(t, func() { save.NewRing(s, 1, state) }), "has a ring already")
			require.NoError(t, ring.Take(1))
			return nil, ring.Restore(background, 1)
		})
		if count == 1<<30 {
			require.ErrorIs(t, err, budget.ErrFull)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestScopeOfARing: a refused allocation in the ring's scope doesn't affect the ring.
func TestScopeOfARing(t *testing.T) {
	b := open(t, twoRegions())
	var state *save.State
	load(t, b, "level", func(r budget.Region, s scope.Scope) {
		state, _ = save.Begin(r, s, roomMaker)
	})
	var ring *save.Ring
	var own scope.Scope
	load(t, b, "rollback", func(_ budget.Region, s scope.Scope) {
		own, ring = s, save.NewRing(s, 1, state)
	})
	require.Nil(t, roomMaker.TryNew(own))
	require.ErrorContains(t, own.Err(), "frozen")
	require.NoError(t, ring.Take(1))
	require.NoError(t, ring.Restore(background, 1))
	assert.ErrorContains(t, b.Region("rollback").Rewind(background), "frozen")
}

// TestTakeWhileAnObjectEnds: a running finalizer can't be undone either.
func TestTakeWhileAnObjectEnds(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var voices scope.ObjectPool[voice]
	atEnd := func() error { return nil }
	load(t, b, "extra", func(r budget.Region, s scope.Scope) {
		state, _ := save.Begin(r, s, roomMaker)
		voices = atEndMaker.Pool(s, 2)
		ring = save.NewRing(s, 2, state)
	})
	ending = func() error { return atEnd() }
	defer func() { ending = nil }()
	v := voices.Get()
	atEnd = func() error { return errors.Join(ring.Take(1), ring.Restore(background, 1)) }
	require.NoError(t, voices.Put(v))
	assert.ErrorContains(t, ring.Restore(background, 1), "1 objects began or ended since")
	atEnd = func() error { return nil }
	require.NotNil(t, voices.Get())
	require.NotNil(t, voices.Get(), "none is lost")
}

var ending func() error

var atEndMaker = scope.Object(func(*voice) error {
	if ending == nil {
		return nil
	}
	return ending()
})

// TestOwnedValuesThatEnded: a snapshot in which an owned value lived isn't restored after its end.
// A snapshot from after its end is.
func TestOwnedValuesThatEnded(t *testing.T) {
	b := open(t, twoRegions())
	var ring *save.Ring
	var kept [4]scope.Owned
	load(t, b, "extra", func(r budget.Region, s scope.Scope) {
		before := s.Keep(new(int8))
		state, _ := save.Begin(r, s, roomMaker)
		for i, v := range []any{new(int16), new(int32), new(int64)} {
			kept[i] = s.Keep(v)
		}
		kept[3] = before
		ring = save.NewRing(s, 4, state)
	})
	require.NoError(t, ring.Take(1))
	kept[3].Cancel()
	require.NoError(t, ring.Restore(background, 1), "it is none of the state")
	kept[1].Cancel()
	ended := "a value of *int32 was closed, run or cancelled since"
	assert.ErrorContains(t, ring.Restore(background, 1), ended)
	require.NoError(t, ring.Take(2))
	require.NoError(t, ring.Restore(background, 2))
	assert.ErrorContains(t, ring.Restore(background, 1), ended)
	require.NoError(t, kept[0].CloseNow())
	require.NoError(t, ring.Take(3))
	assert.ErrorContains(t, ring.Restore(background, 2), "a value of *int16 was closed")
	kept[2].Cancel()
	assert.ErrorContains(t, ring.Restore(background, 3), "a value of *int64 was closed")
	assert.ErrorContains(t, ring.Restore(background, 2), "was closed, run or cancelled since")
	require.NoError(t, ring.Take(4))
	require.NoError(t, ring.Restore(background, 4))
}
