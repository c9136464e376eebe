package game

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/step"
)

const instrumented = arena_c.Race || arena_c.Asan || arena_c.Checked

// some returns the server's maps; in make test, only the first and the last three.
func (s *Server) some() []doom.Map {
	if n := len(s.Maps); n > 6 && step.Now() < step.Check {
		return append(slices.Clone(s.Maps[:3]), s.Maps[n-3:]...)
	}
	return s.Maps
}

// eachServer opens two servers, for the installed and the built-in maps, since the two sets share
// names.
func eachServer(t *testing.T) (list []*Server) {
	for _, wads := range [][]string{doom.InstalledWADs(), {doom.Builtin}} {
		list = append(list, openCrew(t, 1, wads...))
	}
	return list
}

// eachMap calls each with a game on each of some maps of both sets.
func eachMap(t *testing.T, each func(t *testing.T, g *Game)) {
	for _, s := range eachServer(t) {
		for _, m := range s.some() {
			g, err := s.start(t, m, 8)
			require.NoError(t, err)
			t.Run(m.Name, func(t *testing.T) { each(t, g) })
		}
	}
}

// A trace through the blockmap finds the same lines as a test of all lines. Some maps' BLOCKMAP
// omits lines out of reach.
func TestTraceFindsAllLines(t *testing.T) {
	eachMap(t, func(t *testing.T, g *Game) {
		scratch := g.crew.workers[0].scratches[0]
		l := g.Level
		listed := make([]bool, len(l.Lines))
		for cell := range l.Blocks.Cells {
			for _, line := range l.Near(cell) {
				listed[line] = true
			}
		}
		for i := range uint32(40) {
			r := doom.Random(7, i, 0)
			from := l.Inside(doom.Point{X: int32(int64(l.Min.X) + int64(r%uint64(int64(l.Max.X)-int64(l.Min.X)+1))),
				Y: int32(int64(l.Min.Y) + int64(r>>20%uint64(int64(l.Max.Y)-int64(l.Min.Y)+1)))})
			to := l.Inside(from.Step(uint32(r>>60), int32(r>>50%500)))
			var all []hit
			for k := range l.Lines {
				if h, ok := cross(&l.Lines[k], from, to); ok && listed[k] {
					h.Line = uint16(k)
					all = append(all, hit{})
					insert(all, h)
				}
			}
			s := scratch.Open("test")
			hits, ok := l.trace(s, from, to)
			assert.True(t, ok)
			assert.Equal(t, all, append([]hit(nil), hits...))
			require.NoError(t, s.Close())
		}
	})
}

// No body walks through a wall.
func TestWallsHold(t *testing.T) {
	eachMap(t, func(t *testing.T, g *Game) {
		before := make([]doom.Point, g.Level.Players.Cap())
		moved := 0
		for range 120 {
			for i := range before {
				before[i] = g.Level.Players.At(i).At
			}
			was := slices.Clone(g.Level.Sectors)
			require.NoError(t, g.Step())
			is := slices.Clone(g.Level.Sectors)
			copy(g.Level.Sectors, was) // floors move after the bodies
			for i, from := range before {
				to := g.Level.Players.At(i).At
				if from == to || !from.Near(to, 2*stride) {
					continue
				}
				moved++
				for k := range g.Level.Lines {
					n := &g.Level.Lines[k]
					if _, crosses := cross(n, from, to); crosses {
						require.True(t, g.Level.passable(n, n.Side(from) <= 0, &playerBody), "player %d, line %d", i, k)
					}
				}
			}
			copy(g.Level.Sectors, is)
		}
		assert.Greater(t, moved, 120, "somebody walks")
	})
}

// A viewer sees along a wall and through a door, but not through a wall or out of the map.
func TestSight(t *testing.T) {
	server := openServer(t, doom.Builtin)
	g, err := server.start(t, server.Maps[0], 1)
	require.NoError(t, err)
	worker := server.crew.workers[0]
	s := worker.scratches[0].Open("test")
	at := func(x, y int32) doom.Point { return doom.Point{X: x << doom.UnitBits, Y: y << doom.UnitBits} }
	sees := func(from, to doom.Point) bool {
		return worker.sees(g.Level, s, from, to, &playerBody, &frogBody)
	}
	const roomUnits = 384 // of the built-in levels
	const middle = roomUnits / 2
	assert.True(t, sees(at(32, 32), at(32, roomUnits-32)), "along the wall")
	assert.False(t, sees(at(32, 32), at(roomUnits+32, 32)), "through the wall")
	assert.True(t, sees(at(roomUnits-32, middle), at(roomUnits+32, middle)), "through the door")
	assert.False(t, sees(at(roomUnits-8, 32), at(roomUnits-8, -64)), "out of the map")
	require.NoError(t, s.Close())
}
