package stack_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// load loads region level with fn.
func load(t *testing.T, b *budget.Budget, fn func(s scope.Scope) error) error {
	_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*struct{}, error) { return nil, fn(s) })
	return err
}

func misbook(s scope.Scope, label bool, name string, bytes uint64) {
	header, _ := s.C()
	stack.Of((*arena_c.Scopes)(header)).Misbook(label, name, bytes)
}

// TestLedgerThatContradictsTheArena: after a load of a checked build, a ledger with other sums than
// the arena's panics.
func TestLedgerThatContradictsTheArena(t *testing.T) {
	if !arena_c.Checked || arena_c.Race || runtime.GOOS == "windows" {
		t.Skip("only a checked build knows each object, and not on Windows: go test -tags checked ./scope/stack does")
	}
	for _, c := range []struct {
		label      bool
		name, want string
		bytes      uint64
	}{
		{false, "level", "", 0},
		{false, "level",
			`scope: BUG: region level: the ledger has scope "level" with 119 bytes in 3 objects; the arena has 118 bytes in 3 objects`,
			1},
		{true, "sound",
			`scope: BUG: region level: the ledger has label "sound" with 5 bytes in 0 objects; the arena has 6 bytes in 1 objects`,
			1<<64 - 1},
	} {
		b, err := budget.Open(budget.Plan{Name: "wrong",
			Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}}})
		require.NoError(t, err)
		loads := func() {
			require.NoError(t, load(t, b, func(s scope.Scope) error {
				s.AllocUnzeroed(70, 1)
				err := scope.Label(s, "sound", func() error { s.AllocUnzeroed(6, 1); return nil })
				misbook(s, c.label, c.name, c.bytes)
				return err
			}))
		}
		if c.want == "" {
			assert.NotPanics(t, loads)
			require.NoError(t, b.Close())
			continue
		}
		assert.PanicsWithError(t, c.want, loads) // the load doesn't end: the budget stays open
	}
}

// TestNumbers: an arena takes one of the numbers, so that they last for 8 million arenas.
func TestNumbers(t *testing.T) {
	taken := func(regions ...budget.RegionPlan) uint64 {
		before := stack.Numbers()
		b, err := budget.Open(budget.Plan{Name: "numbers", Regions: regions})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		return stack.Numbers() - before
	}
	one, two := budget.RegionPlan{Name: "one", Size: 1000}, budget.RegionPlan{Name: "two", Size: 1000}
	assert.EqualValues(t, 1, taken(one, two)-taken(one))
}
