package budget_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// fillPart is a load's function that captures no variable: it makes an object, a pool and
// temporaries.
func fillPart(s scope.Scope) (*frog, error) {
	f := frogs.New(s)
	frogs.Slice(s.Temp(1024), 4)
	frogs.Pool(s, 4).Get()
	return f, nil
}

// above is the load that loadAbove makes inside its own.
var above budget.Region

func loadAbove(s scope.Scope) (*frog, error) {
	_, err := budget.Load(background, above.In(s), fillPart)
	return frogs.New(s), err
}

// TestLoadsAllocateNothing: not even the first load of a slot, because a world that streams makes
// that load while the game runs.
func TestLoadsAllocateNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate: go test ./budget runs it")
	}
	const count = 64
	plan := rooms(true)
	plan.Regions[1].Slots, plan.Pages.Prefault = count, budget.Off
	b := open(t, plan)
	above = b.Region("effects")
	slots, systems := b.Slots("room"), b.Region("systems")
	var taken [count]budget.Region
	next := 0
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	load := func(r budget.Region, fn func(scope.Scope) (*frog, error)) budget.Loaded[frog] {
		l, err := budget.Load(background, r, fn)
		must(err)
		return l
	}
	assert.Zero(t, testing.AllocsPerRun(count-1, func() {
		room, err := slots.Acquire()
		must(err)
		if load(room, fillPart).Get() == nil {
			panic("not loaded")
		}
		taken[next] = room
		next++
	}), "the first load of each slot")
	require.Equal(t, count, next)
	assert.Zero(t, testing.AllocsPerRun(count-1, func() {
		next--
		must(taken[next].Release(background))
	}), "each slot's first Release")
	require.Equal(t, count, slots.Available())
	for what, round := range map[string]func(){
		"a round of a slot": func() {
			room, err := slots.Acquire()
			must(err)
			load(room, fillPart)
			must(room.Rewind(background))
			load(room, fillPart)
			must(room.Release(background))
		},
		"a region": func() { load(systems, fillPart); load(systems, fillPart); must(systems.Rewind(background)) },
		"a load inside": func() {
			room, err := slots.Acquire()
			must(err)
			load(room, loadAbove)
			must(room.Release(background))
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, round), what)
	}
	require.NoError(t, b.NoHeap(func() {
		room, err := slots.Acquire()
		must(err)
		load(room, fillPart)
		must(room.Release(background))
	}))
}

// TestEachOwnerOfASlotHasItsTime: a slot's Region is valid for one owner, however often the slot
// was acquired since.
func TestEachOwnerOfASlotHasItsTime(t *testing.T) {
	b := open(t, rooms(true))
	effects := b.Region("effects")
	var gone []budget.Region
	for i := range int64(50) {
		room := acquire(t, b)
		same := room
		l := mustFill(t, same, i)
		assert.Equal(t, i, l.Get().X)
		for _, r := range gone {
			_, err := fillRoom(r, 0, nil)
			require.ErrorContains(t, err, "Load of region room 0, which was released")
			require.ErrorContains(t, r.Rewind(background), "which was released")
			require.ErrorContains(t, r.Release(background), "which was released")
			require.False(t, r.Reader("late").Pin())
			require.NotEqual(t, r, room)
		}
		require.Equal(t, i, l.Get().X, "the former owners touched nothing")
		require.ErrorContains(t, room.In(scope.Scope{}).Rewind(background),
			"refused: In needs the scope that a running Load passed to its function")
		_, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
			mustLoadRegion(t, effects.In(s), nil)
			return nil, fmt.Errorf("no")
		})
		require.EqualError(t, err, "no")
		require.NoError(t, room.Release(background))
		gone = append(gone, room)
	}
	assert.Equal(t, 4, b.Slots("room").Available())
}

// TestALoadLeavesNothingToTheNextOne: a region reuses one object for its loads.
func TestALoadLeavesNothingToTheNextOne(t *testing.T) {
	b := open(t, rooms(true))
	room, other := acquire(t, b), acquire(t, b)
	mustFill(t, other, 7)
	for i := range int64(3) {
		require.NoError(t, room.Release(background))
		room = acquire(t, b)
		effects := mustLoad(t, b, "effects", nil)
		require.NotNil(t, effects.Get())
		mustFill(t, room, i)
		require.Nil(t, effects.Get(), "what lies above goes")
		require.NoError(t, room.Rewind(background), "a Rewind after a Release is none")
		require.Equal(t, 2, b.Slots("room").Available())
		require.NotZero(t, other.Report().Used, "a sibling isn't touched")
		_, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
			_, err := stateOf(room, s)
			require.NoError(t, err, "each load may have a state")
			_, err = stateOf(room, s)
			require.ErrorContains(t, err, "already has a state; it has only one")
			return frogs.New(s), nil
		})
		require.NoError(t, err)
	}
}

// TestWhoEmptiedIsTold: the report has the load that emptied the region, even after other loads and
// after Close.
func TestWhoEmptiedIsTold(t *testing.T) {
	b := open(t, rooms(true))
	room := acquire(t, b)
	var s scope.Scope
	inside := func(in scope.Scope) { s = in }
	says := func() string { return fmt.Sprint(s.Close()) }
	load := func(r budget.Region, err error) {
		_, _ = budget.Load(background, r, func(in scope.Scope) (*frog, error) { inside(in); return nil, err })
	}
	load(room, fmt.Errorf("no"))
	assert.Regexp(t, `region room 0 was last emptied .* ago, by a Load of region room 0 that failed\b`, says())
	load(room, nil)
	require.NoError(t, room.Rewind(background))
	assert.Regexp(t, `region room 0 was last emptied .* ago, by a Rewind of region room 0\b`, says())
	load(room, nil)
	mustLoad(t, b, "systems", nil)
	assert.Regexp(t, `region room 0 was last emptied .* ago, by a Load of region systems\b`, says())
	load(room, nil)
	require.NoError(t, room.Release(background))
	assert.Regexp(t, `region room 0 was last emptied .* ago, by a Release of region room 0\b`, says())
	require.NoError(t, b.Close())
	assert.Contains(t, fmt.Sprint(closedError(s)), " ago, by a Release of region room 0")
}

// closedError returns the error of a container in the closed scope s.
func closedError(s scope.Scope) error {
	header, gen := s.C()
	return stack.WasClosed((*arena_c.Scopes)(header), gen)
}
