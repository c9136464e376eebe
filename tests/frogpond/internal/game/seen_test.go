package game

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// openRooms is a server whose level has slots, and so many workers' scratch arenas.
func openRooms(t testing.TB, slots, workers int, wads ...string) *Server {
	t.Helper()
	require.NoError(t, planError)
	wide := plan
	wide.GoHeap = 0
	wide.Regions = append([]budget.RegionPlan(nil), plan.Regions...)
	wide.Regions[2].Slots = slots
	wide.Regions[2].Size = 4 * budget.MiB
	wide.Scratch = budget.ScratchPlan{Workers: workers, Each: 2, Size: 256 * budget.KiB}
	s, err := Open(t.Context(), Options{WADs: wads, Maps: "all", Log: "/dev/null", Snapshots: 10,
		Seed: 1}, budgettest.Open(t, wide))
	require.NoError(t, err)
	return s
}

// room loads a map into a free slot, and begins a game there.
func (s *Server) room(t testing.TB, c *Crew, m doom.Map, players int) *Game {
	t.Helper()
	slot, err := s.Budget.Slots("level").Acquire()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slot.Release(context.Background())) })
	level, err := s.LoadInto(t.Context(), slot, c, m, players)
	require.NoError(t, err)
	g, err := s.BeginEmpty(level, 1)
	require.NoError(t, err)
	return g
}

func BenchmarkSee(b *testing.B) {
	for _, wad := range [][]string{{doom.Builtin}, doom.InstalledWADs()} {
		one := openCrew(b, 1, wad...)
		maps := one.Maps[:12]
		for _, m := range maps {
			b.Run(m.Name, func(b *testing.B) {
				s := openRooms(b, 1, 1, wad...)
				crew := Alone(s.Budget, 0)
				g := s.room(b, crew, m, 16)
				bots, err := one.start(b, m, 16)
				require.NoError(b, err)
				in := make([]Input, 16)
				for tick := range 350 {
					copy(in, bots.Decide())
					for i := range in {
						if tick == 0 {
							in[i].Flags |= Enter
						}
					}
					require.NoError(b, g.StepBy(crew, in))
					require.NoError(b, bots.StepWith(in))
				}
				list := make([]Seen, 0, 64)
				n := 0
				for i := 0; b.Loop(); i++ {
					l, _ := g.See(crew, i%16, list)
					n += len(l)
				}
				b.ReportMetric(float64(n)/float64(b.N), "seen")
				b.ReportMetric(float64(g.Level.Frogs.Live()), "frogs")
			})
		}
	}
}
