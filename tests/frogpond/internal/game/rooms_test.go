package game

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// openRooms opens a server with slots in its region level, and with scratch arenas for the workers.
func openRooms(t testing.TB, slots, workers int, wads ...string) *Server {
	t.Helper()
	regions := slices.Clone(plan.Regions)
	regions[2].Slots, regions[2].Size = slots, 2*budget.MiB
	return openRegions(t, regions, workers, wads...)
}

func openRegions(t testing.TB, regions []budget.RegionPlan, workers int, wads ...string) *Server {
	t.Helper()
	require.NoError(t, planError)
	wide := plan
	wide.GoHeap, wide.Regions = 0, regions
	wide.Scratch = budget.ScratchPlan{Workers: workers, Each: 2, Size: 64 * budget.KiB}
	o := Options{WADs: wads, Maps: "all", Log: os.DevNull, Snapshots: 9, Seed: 1}
	s, err := Open(t.Context(), o, budgettest.Open(t, wide))
	require.NoError(t, err)
	return s
}

// room loads a map into a free slot, and begins a game there.
func (s *Server) room(t testing.TB, c *Crew, m doom.Map, players int) *Game {
	t.Helper()
	slot, err := s.Budget.Slots("level").Acquire()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slot.Release(context.Background())) })
	return s.begin(t, slot, c, m, players)
}

// begin loads a map into a region, and begins a game there.
func (s *Server) begin(t testing.TB, region budget.Region, c *Crew, m doom.Map, players int) *Game {
	t.Helper()
	level, err := s.LoadInto(t.Context(), region, c, m, players)
	require.NoError(t, err)
	g, err := s.BeginEmpty(level, 1)
	require.NoError(t, err)
	return g
}

// recorded returns the bots' inputs on a map, and the state after each tick. All players enter in
// the first tick.
func recorded(t testing.TB, s *Server, m doom.Map, players, ticks int) (in [][]Input,
	states []doom.Hash) {
	t.Helper()
	g, err := s.start(t, m, players)
	require.NoError(t, err)
	for tick := range ticks {
		in = append(in, slices.Clone(g.Decide()))
		for i := range in[tick] {
			if tick == 0 {
				in[tick][i].Flags |= Enter | Fresh
			}
		}
		require.NoError(t, g.StepWith(in[tick]))
		states = append(states, g.Hash())
	}
	return in, states
}

// A tick by one goroutine on scratch leaves the same state as a tick by a crew on the frame, on
// every map, early and late.
func TestStepBy(t *testing.T) {
	s, one := openRooms(t, 1, 2, doom.Builtin), openCrew(t, 2, doom.Builtin)
	crew := Alone(s.Budget, 1)
	for _, m := range s.Maps {
		t.Run(m.Name, func(t *testing.T) {
			in, want := recorded(t, one, m, 8, 140)
			g := s.room(t, crew, m, 8)
			for tick := range in {
				require.NoError(t, g.StepBy(crew, in[tick]))
				require.Equal(t, want[tick], g.Hash(), "tick %d", tick)
			}
		})
	}
}

// A tick allocates nothing on the Go heap, and leaves nothing on scratch.
func TestStepByNoAllocations(t *testing.T) {
	s, one := openRooms(t, 1, 1, doom.Builtin), openCrew(t, 1, doom.Builtin)
	crew := Alone(s.Budget, 0)
	in, _ := recorded(t, one, s.Maps[2], 8, 150)
	g := s.room(t, crew, s.Maps[2], 8)
	tick := 0
	allocs := testing.AllocsPerRun(len(in)-1, func() {
		if err := g.StepBy(crew, in[tick]); err != nil {
			t.Error(err)
		}
		tick++
	})
	if !instrumented { // instrumented builds inline less, so more values escape
		assert.Zero(t, allocs)
	}
	for _, scratch := range crew.workers[0].scratches {
		assert.Zero(t, scratch.Depth())
	}
}

// If a scratch arena is full, the error names it. A panic in a tick reaches the caller. After
// either, the same crew ticks another room as before.
func TestStepByUnwinds(t *testing.T) {
	s, one := openRooms(t, 3, 2, doom.Builtin), openCrew(t, 1, doom.Builtin)
	crew := Alone(s.Budget, 1)
	in, want := recorded(t, one, s.Maps[0], 4, 20)
	bad, full := s.room(t, crew, s.Maps[0], 4), s.room(t, crew, s.Maps[0], 4)
	good := s.room(t, crew, s.Maps[0], 4)
	for tick := range in {
		scratch := crew.workers[0].scratches[tick%2]
		most := scratch.Open("another")
		most.BytesUnzeroed(int(most.Free()), 1)
		err := full.StepBy(crew, in[tick])
		if most.Close(); tick%2 == 0 {
			require.ErrorIs(t, err, budget.ErrFull)
			require.ErrorContains(t, err, "scratch")
		}
		bad.chorus = nil
		crew.workers[0].err = errors.New("of the tick that ends so")
		require.Panics(t, func() { bad.StepBy(crew, in[tick]) })
		require.NoError(t, good.StepBy(crew, in[tick]))
		require.Equal(t, want[tick], good.Hash())
		require.Zero(t, crew.workers[0].scratches[0].Depth()+crew.workers[0].scratches[1].Depth())
	}
}

// A game in the region level and one in a slot of rooms, which both stand on systems, go on as if
// each were alone, while a map is loaded into the other's region.
func TestSiblings(t *testing.T) {
	const players, half = 8, 40
	regions := slices.Clone(plan.Regions)
	regions[2].Size = 2 * budget.MiB
	rooms := regions[2]
	rooms.Name, rooms.Slots, rooms.On = "rooms", 2, "systems"
	s, one := openRegions(t, append(regions, rooms), 1, doom.Builtin), openCrew(t, 1, doom.Builtin)
	crew := Alone(s.Budget, 0)
	level := s.Budget.Region("level")
	slot, err := s.Budget.Slots("rooms").Acquire()
	require.NoError(t, err)
	in, want := recorded(t, one, s.Maps[0], players, 2*half)
	inRoom, wantRoom := recorded(t, one, s.Maps[1], players, 2*half)
	step := func(what string, g *Game, tick int, in [][]Input, want []doom.Hash) {
		require.NoError(t, g.StepBy(crew, in[tick]))
		require.Equal(t, want[tick], g.Hash(), "%s, tick %d", what, tick)
	}
	game, room := s.begin(t, level, crew, s.Maps[0], players), s.begin(t, slot, crew, s.Maps[1], players)
	for tick := range half {
		step("level", game, tick, in, want)
		step("room", room, tick, inRoom, wantRoom)
	}
	game = s.begin(t, level, crew, s.Maps[0], players)
	for tick := range half {
		step("level, loaded again", game, tick, in, want)
		step("room, after a load of level", room, half+tick, inRoom, wantRoom)
	}
	s.begin(t, slot, crew, s.Maps[2], players)
	require.NoError(t, slot.Release(t.Context()))
	for tick := half; tick < 2*half; tick++ {
		step("level, after a load of the room", game, tick, in, want)
	}
}

// Four rooms tick on two goroutines while the next maps load into another slot. Each room ends as
// if it were alone. The race detector would report data that rooms share.
func TestRoomsSideBySide(t *testing.T) {
	const rooms, players, ticks = 4, 8, 100
	s, one := openRooms(t, rooms+1, 3, doom.Builtin), openCrew(t, 1, doom.Builtin)
	crews := [3]*Crew{Alone(s.Budget, 0), Alone(s.Budget, 1), Alone(s.Budget, 2)}
	var games [rooms]*Game
	var in [rooms][][]Input
	var want [rooms][]doom.Hash
	for i := range games {
		in[i], want[i] = recorded(t, one, s.Maps[i], players, ticks)
		games[i] = s.room(t, crews[i%2], s.Maps[i], players)
	}
	spare, err := s.Budget.Slots("level").Acquire()
	require.NoError(t, err)
	var got [rooms][]doom.Hash
	var workers sync.WaitGroup
	played := make(chan struct{})
	for w := range 2 {
		workers.Go(func() {
			for tick := range ticks {
				for i := w; i < rooms; i += 2 {
					if !assert.NoError(t, games[i].StepBy(crews[w], in[i][tick])) {
						return
					}
					games[i].See(crews[w], tick%players, make([]Seen, 0, 64))
					got[i] = append(got[i], games[i].Hash())
				}
			}
		})
	}
	go func() { workers.Wait(); close(played) }()
	loads := 0
	for over := false; !over || loads == 0; {
		_, err := s.LoadInto(t.Context(), spare, crews[2], s.Maps[loads%len(s.Maps)], players)
		require.NoError(t, err)
		loads++
		select {
		case <-played:
			over = true
		default:
		}
	}
	require.NoError(t, spare.Release(t.Context()))
	assert.Equal(t, want, got)
}

// comeAndGo makes each player of the inputs enter and leave at random.
func comeAndGo(in [][]Input) {
	for tick := range in {
		for i := range in[tick] {
			f := &in[tick][i].Flags
			*f &^= Enter | Fresh | Leave
			switch r := doom.Random(5, uint32(tick), uint32(i)); {
			case tick == i:
				*f |= Enter | Fresh
			case r%16 == 0:
				*f |= Leave
			case r%8 == 1:
				*f |= Enter
			case r%64 == 2:
				*f |= Enter | Fresh
			case r%64 == 3:
				*f |= Enter | Leave
			}
		}
	}
}

// A game that goes back to a snapshot and replays the inputs since then ends in the same state each
// time, also when players enter and leave.
func TestRollbackOfComing(t *testing.T) {
	const players, ticks, back = 6, 120, 8
	s, one := openRooms(t, 1, 1, doom.Builtin), openCrew(t, 1, doom.Builtin)
	crew := Alone(s.Budget, 0)
	in, straight := recorded(t, one, s.Maps[1], players, ticks)
	comeAndGo(in)
	g := s.room(t, crew, s.Maps[1], players)
	ring := g.Level.Snapshots
	var states []doom.Hash
	step := func(tick int) {
		require.NoError(t, ring.Take(uint64(tick)))
		require.NoError(t, g.StepBy(crew, in[tick]))
		g.See(crew, tick%players, make([]Seen, 0, 64))
	}
	for tick := range ticks {
		step(tick)
		states = append(states, g.Hash())
		if tick >= back && tick%5 == 0 {
			first := in[tick-back]
			in[tick-back] = []Input{0: {Flags: Enter | Fresh | Use}, players - 1: {Flags: Leave}}
			require.NoError(t, ring.Restore(t.Context(), uint64(tick-back)))
			for again := tick - back; again <= tick; again++ {
				step(again)
			}
			assert.NotEqual(t, states[tick], g.Hash(), "the guess was wrong")
			in[tick-back] = first
			require.NoError(t, ring.Restore(t.Context(), uint64(tick-back)))
			for again := tick - back; again <= tick; again++ {
				step(again)
				require.Equal(t, states[again], g.Hash(), "tick %d", again)
			}
		}
	}
	assert.NotEqual(t, straight[ticks-1], states[ticks-1], "somebody was away")
}

// A player that is away stays unchanged, and the others play as if it didn't exist.
func TestAway(t *testing.T) {
	s := openRooms(t, 1, 1, doom.Builtin)
	crew := Alone(s.Budget, 0)
	g := s.room(t, crew, s.Maps[0], 2)
	l := g.Level
	all := Input{Flags: FromAfar, Heading: 3}
	step := func(a, b Flags) {
		t.Helper()
		one, other := all, all
		one.Flags |= a
		other.Flags |= b
		require.NoError(t, g.StepBy(crew, []Input{one, other}))
	}
	begun := *l.Players.At(0)
	for range 10 {
		step(0, 0)
	}
	assert.Equal(t, begun, *l.Players.At(0), "nobody has entered")
	assert.Nil(t, l.Player(0))

	step(Enter, 0)
	require.NotNil(t, l.Player(0))
	assert.NotEqual(t, begun.At, l.Player(0).At, "it walks in the tick in which it enters")
	assert.Nil(t, l.Player(1))
	l.Players.At(0).Caught = 7
	step(Leave, 0)
	left := *l.Players.At(0)
	assert.EqualValues(t, 1, left.Away)
	step(0, 0)
	assert.Equal(t, left, *l.Players.At(0), "gone, as it was in the tick in which it left")

	// Frogs don't see the player, floors don't move or harm it, and it blocks no mover.
	f, i := l.Frogs.get()
	*f = Frog{At: left.At, Sector: left.Sector, Life: 100}
	c := &l.Sectors[left.Sector]
	c.Special = 9 // a secret
	l.World.harm()
	l.World.carries = append(l.World.carries, carry{Step: doom.Point{X: 1 << 16}, Sector: left.Sector})
	l.World.carryAll()
	was := c.Ceiling
	c.Ceiling = c.Floor + 20<<doom.UnitBits // a frog fits
	assert.True(t, l.World.fits(c, true))
	c.Ceiling = was
	assert.Equal(t, left, *l.Players.At(0))
	l.World.carries = nil
	l.Players.At(0).Away = 0
	c.Ceiling = c.Floor + 20<<doom.UnitBits
	assert.False(t, l.World.fits(c, false), "it is in the way when it is here")
	c.Ceiling = was
	l.Players.At(0).Away = 1
	step(0, 0)
	assert.Zero(t, l.Frogs.At(i).Sightings)

	step(Enter, 0)
	assert.GreaterOrEqual(t, l.Player(0).Caught, uint32(7), "it has what it had")
	assert.True(t, l.Player(0).At.Near(left.At, stride), "where it was")
	require.NoError(t, g.StepBy(crew, []Input{{Flags: Enter | Fresh}}))
	fresh := *l.Player(0)
	assert.Equal(t, begun.At, fresh.At)
	assert.Zero(t, fresh.Caught)
	require.NoError(t, g.StepBy(crew, []Input{{Flags: Enter | Leave}, {Flags: Leave}}))
	assert.Nil(t, l.Player(0), "both: it leaves")
}

// A guess goes on. It doesn't repeat entering, leaving or spawning.
func TestGuess(t *testing.T) {
	at := doom.Point{X: 5, Y: -5}
	for flags := range Flags(64) {
		in := Input{SpawnAt: at, Heading: 9, Flags: flags}
		assert.Equal(t, Input{SpawnAt: at, Heading: 9, Flags: flags & (Walk | Use)}, in.Guess())
		assert.Equal(t, in.Guess(), in.Guess().Guess())
	}
	assert.Zero(t, FromAfar&(Enter|Fresh|Leave))
}
