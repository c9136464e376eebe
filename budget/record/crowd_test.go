package record_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/record"
	"github.com/upfront-mem/upfront/scope"
)

// TestCrowd: goroutines use leases, slots and marks while the driver runs.
func TestCrowd(t *testing.T) {
	plan := game()
	plan.Regions[2].Slots, plan.Scratch.Workers = 8, 5
	trace, was := recorded(t, plan, func(b *budget.Budget, r *record.Recording) {
		b.Scratches(0)
		var crowd sync.WaitGroup
		for owner := range 8 {
			crowd.Go(func() {
				for i := range 50 {
					room, err := b.Slots("room").Acquire()
					if !assert.NoError(t, err) {
						return
					}
					_, err = budget.Load(ctx, room, func(s scope.Scope) (*int, error) {
						octets.Slice(s, owner*10+i)
						s.Temp(i)
						return nil, nil
					})
					assert.NoError(t, err)
					r.Mark(fmt.Sprintf("match %d of %d", i, owner))
					lease, err := b.Lease(ctx)
					assert.NoError(t, err)
					assert.NoError(t, lease.Scratch(i%2).Do("reply", func(s scope.Scope) error {
						octets.Slice(s, 3*i)
						return nil
					}))
					assert.NoError(t, lease.Release())
					assert.NoError(t, room.Release(ctx))
				}
			})
		}
		for i := range 200 {
			octets.Slice(b.Frame(), i)
			require.NoError(t, b.Scratch(0, 0).Do("tick", func(s scope.Scope) error { octets.Slice(s, i); return nil }))
			require.NoError(t, b.NextFrame())
			b.Published()
		}
		crowd.Wait()
	})
	same(t, trace, was)
}

// TestCloseWhileUsed: a recording may end while goroutines open and close scopes.
func TestCloseWhileUsed(t *testing.T) {
	var to lines
	b := open(t, game())
	r, err := record.Start(b, &to)
	require.NoError(t, err)
	var crowd sync.WaitGroup
	for range 2 {
		crowd.Go(func() {
			for range 2000 {
				lease, err := b.Lease(ctx)
				assert.NoError(t, err)
				_ = lease.Scratch(0).Do("reply", func(s scope.Scope) error { octets.New(s); return nil })
				assert.NoError(t, lease.Release())
				r.Mark("one more")
			}
		})
	}
	require.NoError(t, r.Close())
	crowd.Wait()
	_, played, err := record.Replay(game(), &to.Buffer)
	require.NoError(t, err)
	assert.True(t, played.Whole)
}
