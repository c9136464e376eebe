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

// waitOnce waits for bytes, for scratch with a pin, for a pin, or for a slot. While a slot is
// released, a Close is refused.
func waitOnce(ctx context.Context, b *budget.Budget, random *rand.Rand, d *budget.Reader, slots bool) error {
	switch kind := random.IntN(4); {
	case kind == 0 && slots:
		room, err := b.Slots("room").AcquireWait(ctx)
		for err == nil {
			err = room.Release(background)
			if err == nil {
				return nil
			}
			if errors.Is(err, budget.ErrLoading) {
				err = nil
			}
		}
		return err
	case kind == 1:
		r, err := b.Quota("query").Reserve(ctx, random.Uint64N(10))
		if err == nil {
			err = r.Grow(random.Uint64N(3))
			r.Release()
		}
		return err
	case kind == 2:
		l, err := b.Lease(ctx)
		if err == nil {
			err = errors.Join(l.Reader(b.Region("systems")).PinContext(ctx), l.Release())
		}
		return err
	default:
		err := d.PinContext(ctx)
		if err == nil {
			d.Unpin()
		}
		return err
	}
}

// TestCrowdCloses: owners, visitors and goroutines that wait continue while the budget closes, with
// contexts that end at any time; each call returns.
func TestCrowdCloses(t *testing.T) {
	var waits atomic.Int64
	for round := range step.Pick(2, 5, 200) {
		plan := rooms(round%2 == 0)
		plan.Regions[1].Waiters = 4
		plan.Quotas = []budget.QuotaPlan{{Name: "query", Size: 12}}
		b := open(t, plan)
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
		for i := range uint64(2) {
			d := b.Region("systems").Reader("waits")
			random := rand.New(rand.NewPCG(uint64(round), 10+i))
			all.Go(func() {
				for {
					ctx, cancel := context.WithTimeout(background, time.Duration(random.IntN(50))*time.Microsecond)
					err := waitOnce(ctx, b, random, d, !stop.Load())
					cancel()
					waits.Add(1)
					runtime.Gosched()
					if told(err) {
						return
					}
				}
			})
		}
		all.Go(func() {
			for !stop.Load() && !b.Closed() {
				told(b.Region("systems").Rewind(background))
				_, err := budget.Load(background, b.Region("systems"), func(s scope.Scope) (*frog, error) {
					return frogs.New(s), nil
				})
				told(err)
				_ = b.Published().String()
				runtime.Gosched()
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
	t.Logf("%d waits", waits.Load())
}
