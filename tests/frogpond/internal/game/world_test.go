package game

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
)

// Read at start, because tests change the folder.
var plan, planError = budget.ReadPlan("../../plan.json")

// openServer boots a server with these files and one worker.
func openServer(t testing.TB, wads ...string) *Server {
	t.Helper()
	return openWith(t, plan, wads...)
}

func openWith(t testing.TB, plan budget.Plan, wads ...string) *Server {
	t.Helper()
	return openCrewWith(t, plan, 1, wads...)
}

// openCrew is openServer with that many workers, and without a Go heap limit.
func openCrew(t testing.TB, workers int, wads ...string) *Server {
	t.Helper()
	small := plan
	small.GoHeap = 0 // several are open at a time
	return openCrewWith(t, small, workers, wads...)
}

func openCrewWith(t testing.TB, plan budget.Plan, workers int, wads ...string) *Server {
	t.Helper()
	require.NoError(t, planError)
	o := Options{WADs: wads, Maps: "all", Log: os.DevNull, Ticks: 1, Workers: workers, Seed: 1}
	s, err := Boot(t.Context(), o, budgettest.Open(t, plan))
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// start loads a map and puts the players on their starts.
func (s *Server) start(t testing.TB, m doom.Map, bots int) (*Game, error) {
	t.Helper()
	level, err := s.Load(t.Context(), m, bots)
	if err != nil {
		return nil, err
	}
	return s.Begin(level, 1)
}
