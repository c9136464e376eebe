package budget_test

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

var static [2 << 20]byte

func TestOpenIn(t *testing.T) {
	outer := open(t, budget.Plan{Name: "outer", Regions: []budget.RegionPlan{{Name: "all", Size: 4 * budget.MiB}}})
	var inside []byte
	mustLoad(t, outer, "all", func(s scope.Scope) { inside = s.Bytes(3 * budget.MiB) })
	for name, block := range map[string][]byte{"static": static[:], "Go heap": make([]byte, 2*budget.MiB+5)[5:],
		"a region": inside} {
		t.Run(name, func(t *testing.T) {
			for i := range block {
				block[i] = 0xA5 // the block may hold any bytes
			}
			b, err := budget.OpenIn(block, small())
			require.NoError(t, err)
			l := mustLoad(t, b, "level", func(s scope.Scope) { fill(s) })
			assert.NotNil(t, l.Get())
			requireCovers(t, b, requireWalk(t, b))
			_, measured := b.Missing()
			assert.False(t, measured)
			s := b.Scratch(0, 0).Open("kept")
			require.Error(t, b.Close(), "a scratch scope was open")
			assert.Contains(t, panics(t, func() { frogs.New(s) }), "closed")

			again, err := budget.OpenIn(block, small())
			require.NoError(t, err)
			fresh := again.Scratch(0, 0).Open("fresh")
			assert.Nil(t, frogs.TryNew(s), "handles of the budget before stay dead in the same block")
			assert.NotNil(t, frogs.TryNew(fresh))
			require.NoError(t, fresh.Close())
			require.NoError(t, again.Close())
		})
	}
}

func TestOpenInTooSmall(t *testing.T) {
	need, err := small().Need()
	require.NoError(t, err)
	_, err = budget.OpenIn(static[:need-budget.KiB*64-1], small())
	assert.EqualError(t, err, fmt.Sprintf(`budget "small": the block has %d bytes, the plan needs %d (Plan.Need)`,
		need-64*budget.KiB-1, need))
	_, err = budget.OpenIn(nil, small())
	assert.ErrorContains(t, err, "the block has 0 bytes")
	for skip := range 3 {
		b, err := budget.OpenIn(static[skip*1000:][:need], small())
		require.NoError(t, err, "wherever it begins")
		require.NoError(t, b.Close())
	}
	_, err = budget.Plan{}.Need()
	assert.Error(t, err)
}

// TestBudgetsSideBySide: budgets in one block, and one budget in a block of another. In checked and
// asan builds their objects are at other addresses, and are found there.
func TestBudgetsSideBySide(t *testing.T) {
	need, err := small().Need()
	require.NoError(t, err)
	block := make([]byte, 2*need)
	outer := []*budget.Budget{openIn(t, block[:need]), openIn(t, block[need:])}
	var inner *budget.Budget
	for _, b := range outer {
		mustLoad(t, b, "systems", func(s scope.Scope) { checkPlaces(t, b, s) })
	}
	plan := budget.Plan{Name: "inner", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB}}}
	size, err := plan.Need()
	require.NoError(t, err)
	mustLoad(t, outer[0], "level", func(s scope.Scope) {
		inner, err = budget.OpenIn(s.BytesUnzeroed(int(size), 64), plan)
		require.NoError(t, err)
		mustLoad(t, inner, "level", func(s scope.Scope) { checkPlaces(t, inner, s) })
		checkPlaces(t, outer[0], s)
		requireWalk(t, inner)
		require.NoError(t, inner.Close())
	})
	for _, b := range outer {
		requireWalk(t, b)
		require.NoError(t, b.Close())
	}
}

func openIn(t *testing.T, block []byte) *budget.Budget {
	b, err := budget.OpenIn(block, small())
	require.NoError(t, err)
	return b
}

// checkPlaces makes objects, and finds their bytes at the budget's base.
func checkPlaces(t *testing.T, b *budget.Budget, s scope.Scope) {
	frog, list := frogs.New(s), frogs.Slice(s, 100)
	frog.X, list[99].Age = 3, 5
	base := b.Base()
	ptr, slice := arena.PtrTo(base, frog), arena.SliceOf(base, list[50:])
	assert.Same(t, frog, ptr.Get(base))
	assert.Same(t, &list[99], &slice.Get(base)[49])
	saved := arena.BaseOf(append([]byte(nil), base.Bytes()...)) // a save game
	assert.Equal(t, *frog, *ptr.Get(saved))
	assert.Equal(t, list[50:], slice.Get(saved))
}

// A scope's last error may be read after its budget is closed; the Go block of the budget is
// collected all the same.
func TestClosedBudgetKeepsNoBlock(t *testing.T) {
	plan := small()
	need, err := plan.Need()
	require.NoError(t, err)
	var kept weak.Pointer[byte]
	func() {
		block := make([]byte, need)
		kept = weak.Make(&block[0])
		b, err := budget.OpenIn(block, plan)
		require.NoError(t, err)
		_, err = load(b, "level", func(s scope.Scope) error { s.TryAllocUnzeroed(1<<30, 8); return nil })
		require.ErrorIs(t, err, budget.ErrFull)
		require.NoError(t, b.Close())
	}()
	runtime.GC()
	assert.Nil(t, kept.Value())
}
