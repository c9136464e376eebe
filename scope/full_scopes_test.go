package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// One scope too many: Do returns it, on a goroutine where nothing would catch it, and Open unwinds to the Do around it.
func TestDoReturnsOneScopeTooMany(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	ran, reached := false, false
	inner := func(scope.Scope) error { ran = true; return nil }
	const text = `scratch 0.0 is full: scope "inner" asked for one more of 8 scopes; raise limits.scopes in the plan to 9 or more`
	var nest func(s scope.Scope) error
	depth := 1
	nest = func(s scope.Scope) error {
		if depth++; depth <= 8 {
			return s.Do("nest", nest)
		}
		assert.ErrorContains(t, s.Do("inner", inner), text)
		assert.ErrorContains(t, scratch.Do("inner", inner), text)
		require.NoError(t, s.Err(), "who is told needn't be told again")
		reached = true
		s.Open("inner")
		return nil
	}
	assert.ErrorContains(t, scratch.Do("nest", nest), text)
	assert.False(t, ran)
	assert.True(t, reached, "nothing unwound before")
	assert.Zero(t, scratch.Depth())
}
