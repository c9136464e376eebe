package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachMap loads maps of every kind there is here.
func eachMap(t *testing.T, each func(t *testing.T, g *Game)) {
	s := openServer(t, append(installedWADs(), builtin)...)
	maps := s.maps
	if installedWADs()[0] != builtin && (testing.Short() || build != "release") {
		maps = append(slices.Clone(maps[:3]), maps[len(maps)-3:]...)
	}
	for _, m := range maps {
		g, err := s.start(t, m, 8)
		require.NoError(t, err)
		t.Run(m.Name, func(t *testing.T) { each(t, g) })
	}
}

// A trace through the blockmap finds the lines that a look at all lines finds.
// Some maps' BLOCKMAP leaves out lines that nobody can collide with.
func TestTraceFindsAllLines(t *testing.T) {
	eachMap(t, func(t *testing.T, g *Game) {
		scratch := g.crew.workers[0].scratches[0]
		l := g.level
		listed := make([]bool, len(l.Lines))
		for cell := range l.Blocks.Cells {
			for _, line := range l.near(cell) {
				listed[line] = true
			}
		}
		for i := range uint32(40) {
			r := random(7, i, 0)
			from := l.inside(Point{clamp(int64(l.Min.X) + int64(r%uint64(int64(l.Max.X)-int64(l.Min.X)+1))),
				clamp(int64(l.Min.Y) + int64(r>>20%uint64(int64(l.Max.Y)-int64(l.Min.Y)+1)))})
			to := l.inside(from.step(uint32(r>>60), int32(r>>50%500)))
			var all []Hit
			for k := range l.Lines {
				if hit, ok := l.Lines[k].cross(from, to); ok && listed[k] {
					hit.Line = uint16(k)
					all = append(all, Hit{})
					insert(all, hit)
				}
			}
			s := scratch.Open("test")
			hits, ok := l.trace(s, from, to)
			assert.True(t, ok)
			assert.Equal(t, all, append([]Hit(nil), hits...))
			require.NoError(t, s.Close())
		}
	})
}

// Nobody walks through a wall.
func TestWallsHold(t *testing.T) {
	eachMap(t, func(t *testing.T, g *Game) {
		before := make([]Point, g.level.Players.Cap())
		moved := 0
		for range 120 {
			for i := range before {
				before[i] = g.level.Players.At(i).At
			}
			require.NoError(t, g.step())
			for i, from := range before {
				to := g.level.Players.At(i).At
				if from == to || slices.Contains(g.level.Starts, to) {
					continue
				}
				moved++
				for k := range g.level.Lines {
					n := &g.level.Lines[k]
					if _, crosses := n.cross(from, to); crosses {
						require.True(t, g.level.passable(n, n.side(from) <= 0, &playerBody), "player %d, line %d", i, k)
					}
				}
			}
		}
		assert.Greater(t, moved, 120, "somebody walks")
	})
}

// In the room of goodMap everybody sees everybody; in two rooms without a reader
// nobody sees the other.
func TestSight(t *testing.T) {
	server := openServer(t, builtin)
	g, err := server.start(t, server.maps[0], 1)
	require.NoError(t, err)
	worker := server.crew.workers[0]
	s := worker.scratches[0].Open("test")
	at := func(x, y int32) Point { return Point{x << unitBits, y << unitBits} }
	sees := func(from, to Point) bool {
		return worker.sees(g.level, s, from, to, &playerBody, &frogBody)
	}
	const middle = roomUnits / 2
	assert.True(t, sees(at(32, 32), at(32, roomUnits-32)), "along the wall")
	assert.False(t, sees(at(32, 32), at(roomUnits+32, 32)), "through the wall")
	assert.True(t, sees(at(roomUnits-32, middle), at(roomUnits+32, middle)), "through the reader")
	assert.False(t, sees(at(roomUnits-8, 32), at(roomUnits-8, -64)), "out of the map")
	require.NoError(t, s.Close())
}

func TestPoints(t *testing.T) {
	p := Point{3 << unitBits, 4 << unitBits}
	assert.True(t, p.near(Point{}, 5))
	assert.False(t, p.near(Point{}, 4))
	assert.True(t, Point{-1 << 31, -1 << 31}.near(Point{1<<31 - 1, 1<<31 - 1}, 92682))
	assert.False(t, Point{-1 << 31, -1 << 31}.near(Point{1<<31 - 1, 1<<31 - 1}, 92680))
	for i := range uint32(16) {
		assert.Equal(t, i, p.toward(p.step(i, 100)), "direction %d", i)
	}
	assert.Equal(t, Point{1<<31 - 1, 4 << unitBits}, Point{1<<31 - 5, 4 << unitBits}.step(0, 10), "the edge of numbers")
}

func TestTickTimes(t *testing.T) {
	assert.Equal(t, TickTimes{}, tickTimes(nil))
	d := make([]uint32, 10000)
	for i := range d {
		d[i] = uint32(len(d) - i)
	}
	few := tickTimes(slices.Clone(d[:100]))
	assert.EqualValues(t, 9901+49, *few.P50)
	all := tickTimes(d)
	assert.EqualValues(t, []uint32{5000, 9900, 10000}, []uint32{*all.P50, *all.P99, *all.Max})
}

// Not measured is null, never 0; a map that was not run has a name and an error.
func TestNotMeasuredIsNull(t *testing.T) {
	r, _ := play(t, 0, "-wad", builtin, "-maps", "MAP01", "-ticks", "1")
	assert.Nil(t, r.Levels[0].GoAllocs, "no tick after the warm-up")
	assert.NotNil(t, r.Levels[0].TickTime.Max)
	r, _ = play(t, 0, "-wad", builtin, "-maps", "MAP01", "-ticks", "0")
	assert.Equal(t, TickTimes{}, r.Levels[0].TickTime)
}
