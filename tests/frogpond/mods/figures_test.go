package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero/api"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/clients/paired"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/game"
)

// TestFigures compares mods whose memory is in the budget with mods that have wazero's own memory,
// on the Go heap.
func TestFigures(t *testing.T) {
	ctx, o := t.Context(), playing("shy.wasm")
	m, g, end := room(t, o)
	defer end()
	before := m.live()
	ours := func() *mod {
		x, err := m.instantiate(ctx, g)
		require.NoError(t, err)
		return x
	}
	theirs := func() *mod {
		module, err := m.runtime.InstantiateModule(ctx, m.compiled, anonymous)
		require.NoError(t, err)
		x := &mod{limit: o.limit, module: module}
		require.NoError(t, x.begin(ctx, g))
		return x
	}
	comeAndGo := func(make func() *mod) func(int) {
		return func(n int) {
			for range n {
				x := make()
				require.NoError(t, x.choose(ctx, g))
				require.NoError(t, x.module.Close(ctx))
			}
		}
	}
	paired.Compare(t, "a mod comes, chooses once, and goes", 500, comeAndGo(ours), comeAndGo(theirs))

	first, second := ours(), theirs()
	chooses := func(x *mod) func(int) {
		return func(n int) {
			for range n {
				require.NoError(t, x.choose(ctx, g))
			}
		}
	}
	paired.Compare(t, "a mod chooses for a room", 1000, chooses(first), chooses(second))
	for _, module := range []api.Module{first.module, second.module} {
		require.NoError(t, module.Close(ctx))
	}
	paired.Live(t, m.live()-before)
}

// room returns a game with frogs, the mods that may choose for them, and a function that ends both.
func room(t *testing.T, o *options) (m *mods, g *game.Game, end func()) {
	parsed, err := budget.ParsePlan(plan)
	require.NoError(t, err)
	b, err := budget.Open(parsed)
	require.NoError(t, err)
	s, err := game.Boot(t.Context(), o.Options, b)
	require.NoError(t, err)
	m, err = openMods(t.Context(), b, o, read(t, o.file))
	require.NoError(t, err)
	level, err := s.Load(t.Context(), s.Maps[0], o.bots)
	require.NoError(t, err)
	g, err = s.Begin(level, o.Seed)
	require.NoError(t, err)
	for range 35 {
		require.NoError(t, g.Step())
	}
	return m, g, func() {
		s.Stop()
		require.NoError(t, m.close())
		require.NoError(t, b.Close())
	}
}
