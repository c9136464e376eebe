package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
	"github.com/upfront-mem/upfront/tests/misuse/caller"
)

// ledger is the log of C and Go finalizers. It is in the budget, because C keeps a pointer to it.
type ledger struct {
	Log   [64]int32
	Count int32
}

func (l *ledger) note(id int32) {
	l.Log[l.Count] = id
	l.Count++
}

type noted struct{ ID int32 }

var (
	ledgers = scope.Plain[ledger]()
	theOne  *ledger // the test's: an object's finalizer has no closure
	noteds  = scope.Object(func(n *noted) error { theOne.note(n.ID); return nil })
)

// TestMixedChains: finalizers of C, of objects, of Go values and pools in one chain run in its
// order.
func TestMixedChains(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "mixed", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	require.NoError(t, err)
	defer b.Close()
	book := b.Scratch(0, 1).Open("book")
	theOne = ledgers.New(book) //upfront:keeps until the test ends

	s := b.Scratch(0, 0).Open("mixed")
	header, generation := s.C()
	var want []int32
	for id := range int32(40) {
		switch id % 5 {
		case 0, 1, 2: // C finalizers in a row are run by one crossing
			require.Equal(t, arena_c.OK, bindings.Defer(header, generation, &theOne.Log[0], &theOne.Count, id))
		case 3:
			noteds.New(s).ID = id
		case 4:
			s.Defer(func() { theOne.note(id) })
		}
		want = append([]int32{id}, want...)
	}
	before := b.Scratch(0, 0).Stats().Finalizers
	require.NoError(t, s.Close())
	assert.Equal(t, want, theOne.Log[:theOne.Count])
	assert.EqualValues(t, 40, b.Scratch(0, 0).Stats().Finalizers-before)
	assert.NotEqual(t, arena_c.OK, bindings.Defer(header, generation, &theOne.Log[0], &theOne.Count, 99),
		"a closed scope takes none")
	require.NoError(t, book.Close())
}

// TestCDoesNotCloseWhatIsItsOwners: C can't close the scopes of a load, of its contents, and of the
// frame.
func TestCDoesNotCloseWhatIsItsOwners(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "owners", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
	require.NoError(t, err)
	defer b.Close()
	closes := func(s scope.Scope) arena_c.Code { return arena_c.Code(caller.CloseScope(s.C())) }
	var loaded scope.Scope
	for range 2 {
		_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*ledger, error) {
			assert.Equal(t, arena_c.Order, closes(s))
			loaded = s
			return ledgers.New(s), nil // it still allocates
		})
		require.NoError(t, err, "the load after")
		assert.Equal(t, arena_c.Order, closes(loaded), "frozen")
		assert.Equal(t, arena_c.Order, closes(b.Frame()))
		assert.NotNil(t, ledgers.New(b.Frame()))
		require.NoError(t, b.NextFrame())
	}
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	assert.Equal(t, arena_c.Stale, closes(loaded))
	s := b.Scratch(0, 0).Open("C's")
	assert.Equal(t, arena_c.OK, closes(s), "a control: one of a scratch it may")
	assert.Equal(t, arena_c.Stale, closes(s))
	assert.Equal(t, int(arena_c.BadArgument), caller.CloseScope(nil, 0))
}
