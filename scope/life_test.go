package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestLife(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	dead := func(l scope.Life, where string) {
		assert.False(t, l.Alive())
		assert.EqualError(t, l.Misuse("Push to a List in"), "scope: BUG: Push to a List in a scope "+where)
		assert.ErrorIs(t, l.Misuse("Push to a List in"), scope.ErrClosed)
	}
	s := scratch.Open("a")
	life, temp := s.Life(), s.Temp(64).Life()
	assert.True(t, life.Alive() && temp.Alive())
	child := s.Open("b")
	assert.True(t, life.Alive() && temp.Alive() && child.Life().Alive(), "covered")
	inner := child.Life()
	require.NoError(t, child.Close())
	dead(inner, "of scratch 0.0 that is closed")
	s.Defer(func() { assert.True(t, life.Alive(), "its finalizers run") })
	require.NoError(t, s.Close())
	again := scratch.Open("a")
	dead(life, "of scratch 0.0 that is closed")
	dead(temp, "of scratch 0.0 that is closed")
	assert.True(t, again.Life().Alive(), "another one in the same place")
	require.NoError(t, again.Close())

	_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*int, error) { life = s.Life(); return nil, nil })
	require.NoError(t, err)
	assert.True(t, life.Alive(), "frozen")
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	dead(life, "of region level that is closed")
	life = scratch.Open("left").Life()
	_ = b.Close()
	dead(life, "whose budget is closed")
}
