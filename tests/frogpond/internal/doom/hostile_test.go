package doom_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom"
	"github.com/upfront-mem/upfront/tests/frogpond/internal/doom/doomtest"
)

// load reads a file and loads each of its maps, and rewinds both regions. It returns the first
// error.
func load(t *testing.T, b *budget.Budget, file []byte) error {
	return loadEach(t, b, file, func(*doom.Level) {})
}

// loadEach is load with a call of look for each level.
func loadEach(t *testing.T, b *budget.Budget, file []byte, look func(*doom.Level)) error {
	doomtest.Write(t, "bad.wad", file)
	library, err := budget.Load(t.Context(), b.Region("init"), func(s scope.Scope) (
		*doom.Library, error) {
		return doom.OpenLibrary(s, []string{"bad.wad"}, 1)
	})
	if err != nil {
		return err
	}
	defer func() { require.NoError(t, b.Region("init").Rewind(t.Context())) }()
	maps, err := library.Get().Maps()
	for i := 0; i < len(maps) && err == nil; i++ {
		level := b.Region("level")
		_, err = budget.Load(t.Context(), level, func(s scope.Scope) (*doom.Level, error) {
			l, err := maps[i].Load(s, level.Base())
			if err == nil {
				look(&l)
			}
			return &l, err
		})
		require.NoError(t, level.Rewind(t.Context()))
	}
	return err
}

func open(t *testing.T) *budget.Budget {
	plan, err := budget.ReadPlan("../../plan.json")
	require.NoError(t, err)
	return budgettest.Open(t, plan)
}

func TestHostileWADs(t *testing.T) {
	b := open(t)
	for _, test := range doomtest.Hostile {
		t.Run(test.Name, func(t *testing.T) {
			assert.EqualError(t, load(t, b, test.File()), test.Line)
			assert.Zero(t, b.Region("level").Report().Used)
		})
	}
}

// The control for TestHostileWADs: the good maps, from which the hostile files are made, load.
func TestGoodMapLoads(t *testing.T) {
	b := open(t)
	for name, lumps := range map[string][]doom.Lump{
		"without BLOCKMAP":    doomtest.GoodMap(),
		"with BLOCKMAP":       doomtest.Set(doomtest.GoodMap(), "BLOCKMAP", doomtest.GoodBlockmap()),
		"with empty BLOCKMAP": doomtest.Set(doomtest.GoodMap(), "BLOCKMAP", nil),
		"without things":      doomtest.Set(doomtest.GoodMap(), "THINGS", nil),
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, load(t, b, doom.MakeWAD(lumps)))
		})
	}
}
