package game

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// played plays a new game on the m-th map, with a call of step for each tick, and returns the hash
// after each tick.
func played(t *testing.T, m, workers, ticks int, step func(*Game, int) error) []doom.Hash {
	t.Helper()
	s := openCrew(t, workers, doom.InstalledWADs()[0])
	g, err := s.start(t, s.Maps[m%len(s.Maps)], 8)
	require.NoError(t, err)
	require.LessOrEqual(t, g.Level.StateBytes, uint64(96<<10))
	var hashes []doom.Hash
	for tick := range ticks {
		require.NoError(t, step(g, tick))
		hashes = append(hashes, g.Hash())
	}
	return hashes
}

// The state after a tick depends only on the state before it and the inputs. Recorded inputs play
// the same without bots, with another crew, and with views rebuilt before each tick.
func TestInputsPlayAgain(t *testing.T) {
	const ticks = 150
	var inputs [][]Input
	want := played(t, 5, 1, ticks, func(g *Game, _ int) error {
		inputs = append(inputs, slices.Clone(g.Decide()))
		return g.StepWith(inputs[len(inputs)-1])
	})
	for _, workers := range []int{1, 2, 4} {
		got := played(t, 5, workers, ticks, func(g *Game, tick int) error {
			g.Level.rebuild()
			return g.StepWith(inputs[tick])
		})
		assert.Equal(t, want, got, "%d workers", workers)
		got = played(t, 5, workers, ticks, func(g *Game, _ int) error { return g.Step() })
		assert.Equal(t, want, got, "%d workers, with bots", workers)
	}
	inputs[100][3].Heading ^= 8
	got := played(t, 5, 1, ticks, func(g *Game, tick int) error { return g.StepWith(inputs[tick]) })
	assert.Equal(t, want[:100], got[:100])
	for tick := 100; tick < ticks; tick++ {
		require.NotEqual(t, want[tick], got[tick], "one player turned at tick 100")
	}
}

// Any bytes are a valid input, for more or fewer players than exist. No body leaves the map, and
// the same bytes lead to the same states.
func TestAnyInput(t *testing.T) {
	const ticks = 200
	play := func() []doom.Hash {
		r := rand.New(rand.NewPCG(3, 4))
		var inputs [9]Input // one more than there are players
		return played(t, 0, 1, ticks, func(g *Game, tick int) error {
			for i := range inputs {
				in := &inputs[i]
				for b := range bytesOf(in) {
					bytesOf(in)[b] = byte(r.Uint32())
				}
				if p := g.Level.Players.At(i); p != nil && r.IntN(2) == 0 {
					in.SpawnAt = p.At.Step(r.Uint32(), int32(r.IntN(400)))
				}
			}
			err := g.StepWith(inputs[:tick%len(inputs)+1])
			l := g.Level
			for i := range l.Players.Cap() {
				assert.Equal(t, l.Inside(l.Players.At(i).At), l.Players.At(i).At)
			}
			for i := range l.Frogs.Cap() {
				if f := l.Frogs.At(i); f != nil {
					assert.Equal(t, l.Inside(f.At), f.At)
				}
			}
			return err
		})
	}
	hashes := play()
	assert.Equal(t, hashes, play())
	distinct := slices.Compact(slices.Sorted(slices.Values(hashes)))
	assert.Len(t, distinct, ticks)
}

// A player without an input stands still.
func TestNoInput(t *testing.T) {
	s := openServer(t, doom.Builtin)
	g, err := s.start(t, s.Maps[0], 2)
	require.NoError(t, err)
	before := [2]Player{*g.Level.Players.At(0), *g.Level.Players.At(1)}
	for range 2 * maxStill {
		require.NoError(t, g.StepWith(nil))
	}
	before[1].Heading = 0
	assert.Equal(t, before, [2]Player{*g.Level.Players.At(0), *g.Level.Players.At(1)})
	assert.Zero(t, g.Level.Frogs.Live())
}

// If too many events happen in a tick, only the first ones are forgotten.
func TestEventsThatAreKept(t *testing.T) {
	s := openServer(t, doom.Builtin)
	g, err := s.start(t, s.Maps[0], 1)
	require.NoError(t, err)
	l := g.Level
	_, place := l.Frogs.get()
	for n := range uint64(2*eventsLength + 3) {
		assert.Equal(t, max(n, eventsLength)-eventsLength, l.Room.since(0))
		assert.Equal(t, n, l.Room.since(n))
		l.happen(croaked, place, doom.Point{X: int32(n)})
		assert.Equal(t, int32(n), l.events[n%eventsLength].At.X)
	}
	require.NoError(t, g.StepWith(nil))
	assert.Equal(t, uint64(eventsLength+3), g.hearing)
	require.NoError(t, g.StepWith(nil))
	assert.Equal(t, l.Room.Heard, g.hearing, "nothing happened since")
}
