package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// openServer boots over some files, for tests that play without main.
func openServer(t testing.TB, wads ...string) *Server {
	t.Helper()
	plan, err := budget.ParsePlan(defaultPlan)
	require.NoError(t, err)
	o := &options{wads: wads, maps: "all", log: os.DevNull, ticks: 1, workers: 1, seed: 1}
	s, err := boot(t.Context(), o, budgettest.Open(t, plan))
	require.NoError(t, err)
	t.Cleanup(s.crew.stop)
	return s
}

// start loads a map and puts the players on their starts.
func (s *Server) start(t testing.TB, m Map, bots int) (*Game, error) {
	t.Helper()
	region, g := s.budget.Region("level"), s.game()
	level, err := budget.Load(t.Context(), region, func(in scope.Scope) (*Level, error) {
		return loadLevel(in, region.Base(), m, g.systems, bots)
	})
	if err != nil {
		return nil, err
	}
	g.level = level.Get()
	return g, g.begin(1)
}
