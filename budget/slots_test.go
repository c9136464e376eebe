package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// rooms is a plan with four slots between two regions; without above, the slots are the topmost.
func rooms(above bool) budget.Plan {
	plan := budget.Plan{Name: "rooms", Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
		{Name: "room", Size: 64*budget.KiB + 8, Slots: 4}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}}
	if above {
		plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "effects", Size: 64 * budget.KiB})
	}
	return plan
}

func acquire(t testing.TB, b *budget.Budget) budget.Region {
	t.Helper()
	room, err := b.Slots("room").Acquire()
	require.NoError(t, err)
	return room
}

// fillRoom loads a room with a frog whose X is x, and a mark with a finalizer that records x.
func fillRoom(room budget.Region, x int64, end error) (budget.Loaded[frog], error) {
	return budget.Load(background, room, func(s scope.Scope) (*frog, error) {
		f := frogs.New(s)
		f.X = x
		newMark(s, x, 0)
		return f, end
	})
}

func mustFill(t testing.TB, room budget.Region, x int64) budget.Loaded[frog] {
	t.Helper()
	l, err := fillRoom(room, x, nil)
	require.NoError(t, err)
	return l
}

func TestAcquireIsAdmissionControl(t *testing.T) {
	b := open(t, rooms(false))
	slots := b.Slots("room")
	var taken []budget.Region
	for i := range 4 {
		assert.Equal(t, 4-i, slots.Available())
		taken = append(taken, acquire(t, b))
		assert.Equal(t, fmt.Sprintf("room %d", i), taken[i].Name())
		assert.Equal(t, i, taken[i].Slot())
	}
	_, err := slots.Acquire()
	assert.EqualError(t, err, `budget "rooms": region room: all 4 slots are acquired; `+
		`Release one, or raise regions[1].slots in the plan to 5 or more`)
	assert.ErrorIs(t, err, budget.ErrFull)
	require.NoError(t, taken[2].Release(background))
	taken[2] = acquire(t, b)
	assert.Equal(t, "room 2", taken[2].Name())
	for _, room := range taken {
		require.NoError(t, room.Release(background))
	}
	require.NoError(t, b.Close())
	_, err = slots.Acquire()
	assert.ErrorIs(t, err, budget.ErrClosed)
}

// TestAcquireAt: a slot is acquired by number, once, and Acquire passes it over.
func TestAcquireAt(t *testing.T) {
	b := open(t, rooms(false))
	slots := b.Slots("room")
	room, err := slots.AcquireAt(1)
	require.NoError(t, err)
	assert.Equal(t, 1, room.Slot())
	_, err = slots.AcquireAt(1)
	assert.EqualError(t, err, `budget "rooms": AcquireAt of slot 1 of region room: it is acquired`)
	_, other := slots.AcquireAt(4)
	assert.EqualError(t, other, `budget "rooms": AcquireAt of slot 4 of region room: the plan has 4 slots: raise `+
		`regions[1].slots to 5 or more`)
	for _, err := range []error{err, other} {
		assert.ErrorIs(t, err, budget.ErrNoSlot)
		assert.ErrorIs(t, err, budget.ErrFull)
		assert.NotErrorIs(t, err, budget.ErrClosed)
	}
	for _, want := range []int{0, 2, 3} {
		assert.Equal(t, want, acquire(t, b).Slot())
	}
	require.NoError(t, room.Release(background))
	assert.Equal(t, 1, acquire(t, b).Slot())
	assert.Panics(t, func() { _, _ = slots.AcquireAt(-1) })
	assert.Panics(t, func() { _, _ = (*budget.Slots)(nil).AcquireAt(0) })
	assert.ErrorContains(t, b.Close(), "never released")
	_, err = slots.AcquireAt(0)
	assert.ErrorIs(t, err, budget.ErrClosed)
}

func TestSlotsDontTouchEachOther(t *testing.T) {
	b := open(t, rooms(true))
	var list []budget.Region
	var loaded []budget.Loaded[frog]
	for i := range int64(4) {
		list = append(list, acquire(t, b))
		loaded = append(loaded, mustFill(t, list[i], i))
	}
	effects := mustLoad(t, b, "effects", nil)
	before := placeOf(b, loaded[1].Get())
	require.NoError(t, list[1].Rewind(background))
	assert.Equal(t, []int64{1}, ran)
	assert.Nil(t, loaded[1].Get())
	assert.Nil(t, effects.Get(), "what lies above may point into it")
	_, err := fillRoom(list[2], 9, errLoader)
	assert.ErrorIs(t, err, errLoader)
	loaded[1] = mustFill(t, list[1], 5)
	assert.Equal(t, before, placeOf(b, loaded[1].Get()), "the same slot, the same load, the same address")
	for i, x := range []int64{0, 5, -1, 3} {
		if f := loaded[i].Get(); x < 0 {
			assert.Nil(t, f)
		} else {
			assert.Equal(t, x, f.X)
		}
	}
	ran = nil
	require.NoError(t, b.Region("systems").Rewind(background))
	assert.Equal(t, []int64{3, 5, 0}, ran, "a region below takes all slots, the last one first")
	mustFill(t, list[3], 7) // they are still acquired
	requireWalk(t, b)
}

func TestReleasedSlotIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, rooms(false))
		room := acquire(t, b)
		reader := room.Reader("worker")
		mustFill(t, room, 1)
		require.True(t, reader.Pin())
		ctx, cancel := soon()
		defer cancel()
		assert.ErrorContains(t, room.Release(ctx),
			`Release of region room 0 waited: worker "worker" has pinned region room 0; nothing has changed: call Unpin`)
		reader.Unpin()
		require.NoError(t, room.Release(background))
		assert.Equal(t, []int64{1}, ran)

		again := acquire(t, b)
		l := mustFill(t, again, 2)
		assert.False(t, reader.Pin(), "the reader was the old owner's")
		for what, err := range map[string]error{
			"Load":    func() error { _, err := fillRoom(room, 3, nil); return err }(),
			"Rewind":  room.Rewind(background),
			"Release": room.Release(background),
		} {
			assert.EqualError(t, err, fmt.Sprintf(
				`budget "rooms": BUG: %s of region room 0, which was released: upfront: closed`, what))
		}
		assert.EqualValues(t, 2, l.Get().X, "nothing happened to the new owner's")
		assert.Zero(t, room.Report().Used, "nor is the old one told of it")
		assert.NotZero(t, again.Report().Used)
		assert.Equal(t, 3, b.Slots("room").Available())
		assert.EqualError(t, b.Region("systems").Release(background),
			`budget "rooms": BUG: Release of region systems, which has no slots; Rewind it`)
		assert.Equal(t, `budget: BUG: region "room" of plan "rooms" has slots: Slots("room").Acquire gives one`,
			panics(t, func() { b.Region("room") }))
		assert.Equal(t, `budget: BUG: plan "rooms" has no region "room 0"; it has systems`,
			panics(t, func() { b.Region("room 0") }), "who has it acquired it")
		assert.Equal(t, `budget: BUG: plan "rooms" has no region "systems" with slots; it has room`,
			panics(t, func() { b.Slots("systems") }))
	})
}

// TestSlotsLoadAtOnce: owners on several goroutines load at the same time, if no two touch the same
// region.
func TestSlotsLoadAtOnce(t *testing.T) {
	b := open(t, rooms(false))
	var inside, done sync.WaitGroup
	inside.Add(4)
	for i := range int64(4) {
		room := acquire(t, b)
		done.Go(func() {
			_, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
				inside.Done()
				inside.Wait() // all four are in their loads
				for range 100 {
					frogs.New(s).X = i
				}
				return frogs.New(s), nil
			})
			assert.NoError(t, err)
		})
	}
	done.Wait()
}

func TestLoadsThatTouchTheSameAreRefused(t *testing.T) {
	b := open(t, rooms(true))
	first, second := acquire(t, b), acquire(t, b)
	_, err := budget.Load(background, first, func(s scope.Scope) (*frog, error) {
		_, err := fillRoom(second.In(s), 1, nil)
		assert.EqualError(t, err, `budget "rooms": Load of region room 1 refused inside a Load of region room 0: `+
			`only regions that stand on room 0 may be touched: upfront: a load, rewind or close is at work`)
		other := attempt(func() error { _, err := fillRoom(second, 1, nil); return err })
		assert.EqualError(t, other.err,
			`budget "rooms": Load of region room 1 refused during a Load of region room 0, and both touch region effects; `+
				`call it when that has returned: upfront: a load, rewind or close is at work`,
			"both would rewind effects")
		other = attempt(b.Close)
		assert.ErrorIs(t, other.err, budget.ErrLoading)
		mustLoadRegion(t, b.Region("effects").In(s), nil)
		return frogs.New(s), nil
	})
	require.NoError(t, err)
}

// TestManyOwners lets goroutines come and go, with failed loads, and looks for another's bytes in
// each slot.
func TestManyOwners(t *testing.T) {
	b := open(t, rooms(false))
	var owners sync.WaitGroup
	for i := range int64(8) {
		owners.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 9))
			for range 200 {
				room, err := b.Slots("room").Acquire()
				if errors.Is(err, budget.ErrFull) {
					continue
				}
				assert.NoError(t, err)
				for range random.IntN(4) {
					var end error
					if random.IntN(3) == 0 {
						end = errLoader
					}
					l, err := budget.Load(context.Background(), room, func(s scope.Scope) (*frog, error) {
						f := frogs.New(s)
						f.X = i
						for range random.IntN(50) {
							frogs.New(s).X = i
						}
						return f, end
					})
					assert.ErrorIs(t, err, end)
					if f := l.Get(); err == nil && f.X != i {
						assert.Fail(t, "somebody else's", "%d instead of %d", f.X, i)
					}
				}
				assert.NoError(t, room.Release(context.Background()))
			}
		})
	}
	owners.Wait()
	assert.Equal(t, 4, b.Slots("room").Available())
	requireWalk(t, b)
}

// TestReleaseBesideReconfigure makes Reconfigure begin as soon as the rewind of a Release is over.
// From then on Release must not read the plan, because Reconfigure changes it. The race build finds
// such a read in either order.
func TestReleaseBesideReconfigure(t *testing.T) {
	b := open(t, worlds(256, 64, 512))
	for i := range 10 {
		room := acquire(t, b)
		releasing := make(chan struct{})
		_, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
			s.Defer(func() { close(releasing) })
			return nil, nil
		})
		require.NoError(t, err)
		released, reconfigured := make(chan error), make(chan error)
		go func() { released <- room.Release(background) }()
		go func() {
			<-releasing
			plan := worlds(256-64*uint64(i%2), 64, 512+64*uint64(i%2))
			for {
				err := b.Reconfigure(background, plan)
				if !errors.Is(err, budget.ErrLoading) {
					reconfigured <- err
					return
				}
			}
		}()
		assert.NoError(t, <-reconfigured)
		assert.NoError(t, <-released)
		assert.Equal(t, 2, b.Slots("room").Available())
	}
}

// A slot isn't a leak for a concurrent Close if its Release has returned or owns the budget.
func TestReleaseBesideClose(t *testing.T) {
	plan := budget.Plan{Name: "p", Regions: []budget.RegionPlan{{Name: "match", Size: 64 * budget.KiB, Slots: 1}},
		Pages: budget.Pages{Prefault: budget.Off}}
	for range step.Pick(100, 500, 500) {
		b, err := budget.Open(plan)
		require.NoError(t, err)
		match, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		released := make(chan error, 1)
		go func() { released <- match.Release(background) }()
		for err = b.Close(); errors.Is(err, budget.ErrLoading); err = b.Close() {
			runtime.Gosched()
		}
		if gone := <-released; gone == nil {
			require.NoError(t, err)
		} else {
			require.True(t, errors.Is(gone, budget.ErrClosed) || errors.Is(gone, budget.ErrLoading), "%v", gone)
			require.ErrorContains(t, err, `never released: slot "match 0"`)
		}
	}
}

// TestRegionsCompare: the zero Region is equal to no other, and a copy is equal.
func TestRegionsCompare(t *testing.T) {
	b := open(t, budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB},
		{Name: "match", Size: budget.KiB, Slots: 1}}})
	var zero budget.Region
	level := b.Region("level")
	slot, err := b.Slots("match").Acquire()
	require.NoError(t, err)
	assert.True(t, zero == (budget.Region{}) && level == b.Region("level"))
	assert.False(t, level == zero || slot == zero || level == slot)
	_, err = budget.Load(t.Context(), level, func(s scope.Scope) (*frog, error) {
		assert.False(t, slot.In(s) == slot || slot.In(s) == zero)
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, slot.Release(t.Context()))
	assert.False(t, slot == zero, "it was released")
	again, err := b.Slots("match").Acquire()
	require.NoError(t, err)
	assert.False(t, again == slot)
	require.NoError(t, again.Release(t.Context()))
	_, err = b.Slots("match").Acquire()
	require.NoError(t, err)
	refused, err := b.Slots("match").Acquire()
	require.ErrorIs(t, err, budget.ErrFull)
	assert.True(t, refused == (budget.Region{}))
}
