package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// world is a budget with the systems in it, for tests that play without main.
type world struct {
	budget *budget.Budget
	crew   *Crew
	sys    budget.Loaded[Systems]
}

func newWorld(t testing.TB, workers int) *world {
	t.Helper()
	plan, err := budget.ParsePlan(defaultPlan)
	require.NoError(t, err)
	b := budgettest.Open(t, plan)
	crew := newCrew(b, workers)
	t.Cleanup(crew.stop)
	return &world{budget: b, crew: crew}
}

// systems loads the region systems, for games of so many ticks.
func (w *world) systems(t testing.TB, ticks int) {
	t.Helper()
	var err error
	region := w.budget.Region("systems")
	w.sys, err = budget.Load(t.Context(), region, func(s scope.Scope) (*Systems, error) {
		return loadSystems(s, region.Base(), os.DevNull, ticks)
	})
	require.NoError(t, err)
}

// wads loads the region init.
func (w *world) wads(t testing.TB, names ...string) []Map {
	t.Helper()
	library, err := budget.Load(t.Context(), w.budget.Region("init"), func(s scope.Scope) (*Library, error) {
		return openLibrary(s, names, 1)
	})
	require.NoError(t, err)
	maps, err := chooseMaps(library.Get().WADs, "all")
	require.NoError(t, err)
	return maps
}

// load loads a map and puts the players on their starts.
func (w *world) load(t testing.TB, m Map, bots int) (*Game, error) {
	t.Helper()
	region := w.budget.Region("level")
	g := &Game{budget: w.budget, systems: w.sys.Get(), crew: w.crew}
	level, err := budget.Load(t.Context(), region, func(s scope.Scope) (*Level, error) {
		return loadLevel(s, region.Base(), m, g.systems, bots)
	})
	if err != nil {
		return nil, err
	}
	g.level = level.Get()
	return g, g.begin(1)
}
