package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// TestCrowdCloses: owners and visitors continue while the budget closes, with contexts that end at
// any time; each call returns.
func TestCrowdCloses(t *testing.T) {
	for round := range step.Pick(2, 8, 200) {
		b := open(t, rooms(round%2 == 0))
		var all sync.WaitGroup
		// without it a load may always be running, and Close is refused forever
		var stop atomic.Bool
		var shown [3]atomic.Pointer[show]
		var asked atomic.Int64 // loads and releases
		told := func(err error) bool {
			ok := err == nil || errors.Is(err, budget.ErrLoading) || errors.Is(err, budget.ErrFull) ||
				errors.Is(err, errLoader) || errors.Is(err, context.DeadlineExceeded) ||
				errors.Is(err, budget.ErrClosed)
			assert.True(t, ok, "%v", err)
			return errors.Is(err, budget.ErrClosed)
		}
		for i := range 3 {
			random := rand.New(rand.NewPCG(uint64(round), uint64(i)))
			all.Go(func() {
				for !stop.Load() {
					room, err := b.Slots("room").Acquire()
					if told(err) {
						return
					}
					if err != nil {
						continue
					}
					now := &show{}
					now.readers[0] = room.Reader("visitor")
					shown[i].Store(now)
					for range random.IntN(4) {
						ctx, cancel := context.WithTimeout(background, time.Duration(random.IntN(50))*time.Microsecond)
						l, err := budget.Load(ctx, room, func(s scope.Scope) (*frog, error) {
							f := frogs.New(s)
							f.X, f.Y = 7, 7
							runtime.Gosched()
							if random.IntN(3) == 0 {
								return nil, errLoader
							}
							return f, nil
						})
						cancel()
						asked.Add(1)
						if told(err) {
							return
						}
						if err == nil {
							now.loaded.Store(&l)
						}
					}
					for {
						ctx, cancel := context.WithTimeout(background, time.Duration(random.IntN(50))*time.Microsecond)
						err := room.Release(ctx)
						cancel()
						asked.Add(1)
						if told(err) {
							return
						}
						if err == nil {
							break
						}
					}
				}
			})
			all.Go(func() {
				for !b.Closed() {
					now := shown[i].Load()
					if now == nil || !now.readers[0].Pin() {
						runtime.Gosched()
						continue
					}
					if l := now.loaded.Load(); l != nil {
						if f := l.Get(); f != nil {
							assert.Equal(t, f.X, f.Y)
						}
					}
					now.readers[0].Unpin()
				}
			})
		}
		all.Go(func() {
			for !b.Closed() {
				_ = b.Published().String()
			}
		})
		for asked.Load() < int64(round%20) {
			runtime.Gosched()
		}
		for tries := 0; ; tries++ {
			stop.Store(tries > 5)
			err := b.Close()
			if err == nil || errors.Is(err, budget.ErrClosed) {
				break
			}
			if b.Closed() {
				assert.ErrorContains(t, err, "never released")
				break
			}
			runtime.Gosched()
		}
		all.Wait()
	}
}
