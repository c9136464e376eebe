package budget_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestReleaseBesideReconfigure has Reconfigure begin as soon as the rewind of a Release is over: what of Release comes
// after that must not look at the plan, which changes. The race build sees it, whichever of the two is first.
func TestReleaseBesideReconfigure(t *testing.T) {
	b := open(t, worlds(256, 64, 512))
	for i := range 10 {
		room := acquire(t, b)
		releasing := make(chan struct{})
		_, err := budget.Load(background, room, func(s scope.Scope) (*frog, error) {
			s.Defer(func() { close(releasing) })
			return nil, nil
		})
		require.NoError(t, err)
		released, reconfigured := make(chan error), make(chan error)
		go func() { released <- room.Release(background) }()
		go func() {
			<-releasing
			plan := worlds(256-64*uint64(i%2), 64, 512+64*uint64(i%2))
			for {
				err := b.Reconfigure(background, plan)
				if !errors.Is(err, budget.ErrLoading) {
					reconfigured <- err
					return
				}
			}
		}()
		assert.NoError(t, <-reconfigured)
		assert.NoError(t, <-released)
		assert.Equal(t, 2, b.Slots("room").Available())
	}
}
