package game

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// seesAll returns a player's view, made with a call of sees for each body.
func (g *Game) seesAll(c *Crew, player int) (list []Seen) {
	l, w, from := g.Level, c.workers[0], g.Level.Player(player).At
	s := w.scratches[0].Open("test")
	defer s.Close()
	add := func(kind uint8, i int, at doom.Point, heading uint32) {
		x, y := int16(at.X>>doom.UnitBits), int16(at.Y>>doom.UnitBits)
		list = append(list, Seen{uint16(i), x, y, kind, uint8(heading)})
	}
	for i := range l.Players.Cap() {
		if p := l.Player(i); p != nil && i != player && p.At.Near(from, 1024) &&
			w.sees(l, s, from, p.At, &playerBody, &playerBody) {
			add(SeenPlayer, i, p.At, p.Heading)
		}
	}
	for i := range l.Frogs.Cap() {
		if f := l.Frogs.At(i); f != nil && f.At.Near(from, 1024) &&
			w.sees(l, s, from, f.At, &playerBody, &frogBody) {
			add(SeenFrog, i, f.At, uint32(f.Heading))
		}
	}
	for i := range l.Sectors {
		is, was, o := l.Sectors[i], l.loaded[i], l.Outlines[i]
		corner := doom.Point{X: min(max(from.X, int32(o.Min.X)<<16), int32(o.Max.X)<<16),
			Y: min(max(from.Y, int32(o.Min.Y)<<16), int32(o.Max.Y)<<16)}
		if (is.Floor != was.Floor || is.Ceiling != was.Ceiling) && corner.Near(from, 1024) {
			add(SeenSector, i, doom.Point{X: is.Floor, Y: is.Ceiling}, 0)
		}
	}
	return list
}

// The first look of a player that enters checks all bodies, and four looks refresh all. A watcher
// sees everything. A full list has the first part of the view.
func TestSee(t *testing.T) {
	for _, wads := range [][]string{{doom.Builtin}, doom.InstalledWADs()} {
		s, bots := openRooms(t, 1, 1, wads...), openCrew(t, 1, wads...)
		crew := Alone(s.Budget, 0)
		g := s.room(t, crew, s.Maps[4], 8)
		mover, err := bots.start(t, s.Maps[4], 8)
		require.NoError(t, err)
		most, kinds := 0, map[uint8]int{}
		for tick := range 210 {
			in := slices.Clone(mover.Decide())
			for i := range in {
				if tick%70 == 0 {
					in[i].Flags |= Enter
				}
			}
			require.NoError(t, mover.StepWith(in))
			require.NoError(t, g.StepBy(crew, in))
			if tick == 100 {
				g.Level.Sectors[g.Level.Player(0).Sector].Ceiling += 3 << doom.UnitBits
			}
			if tick%7 != 0 {
				continue
			}
			for i := range in {
				seen, whole := g.See(crew, i, make([]Seen, 0, 1000))
				require.True(t, whole)
				for range lookTurns - 1 {
					if tick%70 == 0 {
						break // a player that enters sees all at once
					}
					seen, _ = g.See(crew, i, seen[:0])
				}
				want := g.seesAll(crew, i)
				require.Equal(t, want, append([]Seen(nil), seen...), "tick %d, player %d", tick, i)
				for _, one := range seen {
					kinds[one.Kind]++
				}
				most = max(most, len(seen))
				if len(want) > 1 {
					few, whole := g.See(crew, i, make([]Seen, 1, len(want)))
					require.False(t, whole)
					require.Equal(t, want[:len(want)-1], few[1:])
				}
			}
		}
		assert.Greater(t, most, 8)
		assert.Positive(t, kinds[SeenPlayer])
		assert.Positive(t, kinds[SeenFrog])
		assert.Positive(t, kinds[SeenSector], "whose ceiling was moved")

		all, whole := g.See(crew, -1, make([]Seen, 0, 2000))
		assert.True(t, whole)
		assert.GreaterOrEqual(t, len(all), 8+g.Level.Frogs.Live())
		require.NoError(t, g.StepBy(crew, []Input{1: {Flags: Leave}, 7: {}}))
		nothing, whole := g.See(crew, 1, nil)
		assert.Empty(t, nothing, "it is away")
		assert.True(t, whole)
		for i := range 8 {
			for _, one := range func() []Seen { l, _ := g.See(crew, i, make([]Seen, 0, 1000)); return l }() {
				require.False(t, one.Kind == SeenPlayer && one.Number == 1, "it is away")
			}
		}
		before := g.Hash()
		assert.Zero(t, testing.AllocsPerRun(20, func() { g.See(crew, 0, all[:0]) }))
		assert.Equal(t, before, g.Hash(), "what is seen is no state")
	}
}

// BenchmarkSee measures one look of one of 16 players. They play a tick after each round of looks.
func BenchmarkSee(b *testing.B) {
	const players = 16
	s := openCrew(b, 1, doom.Builtin)
	for _, m := range s.Maps {
		b.Run(m.Name, func(b *testing.B) {
			rooms := openRooms(b, 1, 1, doom.Builtin)
			crew := Alone(rooms.Budget, 0)
			g := rooms.room(b, crew, m, players)
			bots, err := s.start(b, m, players)
			require.NoError(b, err)
			list, in := make([]Seen, 0, 64), make([]Input, players)
			looks, seen, took := 0, 0, time.Duration(0)
			for tick := 0; b.Loop() || tick < 100; tick++ {
				copy(in, bots.Decide())
				for i := range in {
					if tick == 0 {
						in[i].Flags |= Enter
					}
				}
				require.NoError(b, bots.StepWith(in))
				require.NoError(b, g.StepBy(crew, in))
				start := time.Now()
				for i := range players {
					l, _ := g.See(crew, i, list)
					looks, seen = looks+1, seen+len(l)
				}
				took += time.Since(start)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(looks), "ns/look")
			b.ReportMetric(float64(seen)/float64(looks), "seen/look")
		})
	}
}
