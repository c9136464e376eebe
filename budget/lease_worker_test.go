package budget_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

var leasedNumbers = scope.Plain[uint64]()

// workersPlan has two regions that stand alone, two slots, and leases.
func workersPlan(workers int) budget.Plan {
	plan := leasePlan(workers)
	plan.Regions = []budget.RegionPlan{
		{Name: "map", Size: 64 * budget.KiB},
		{Name: "styles", Size: 64 * budget.KiB, On: budget.Root},
		{Name: "room", Size: 64 * budget.KiB, Slots: 2, On: budget.Root},
	}
	return plan
}

// numbered returns the function of a load whose region has one number.
func numbered(n uint64) func(s scope.Scope) (*uint64, error) {
	return func(s scope.Scope) (*uint64, error) {
		x := leasedNumbers.New(s)
		*x = n
		return x, nil
	}
}

// TestLeaseIsAWorker: more requests than workers, each with a lease, read two regions that are
// loaded again or emptied meanwhile. Some contexts end. The plain counts of workers and the sums in
// their scratch are whole.
func TestLeaseIsAWorker(t *testing.T) {
	const workers, requests = 3, 8
	each := step.Pick(200, 200, 20_000)
	b := open(t, workersPlan(workers))
	regions := [2]budget.Region{b.Region("map"), b.Region("styles")}
	load := func(i int, n uint64) {
		_, err := budget.Load(background, regions[i], numbered(n))
		require.NoError(t, err)
	}
	load(0, 1)
	load(1, 1)
	var served [workers]int // no lock
	var all, loaders sync.WaitGroup
	done := make(chan bool)
	for i := range regions {
		loaders.Go(func() {
			for n := uint64(2); ; n++ {
				select {
				case <-done:
					return
				default:
					if n%5 == 0 {
						require.NoError(t, regions[i].Rewind(background))
					}
					load(i, n)
				}
			}
		})
	}
	for me := range uint64(requests) {
		all.Go(func() {
			random := rand.New(rand.NewPCG(me, 9))
			var last [2]uint64
			for range each {
				l, err := b.Lease(background)
				if !assert.NoError(t, err) {
					return
				}
				assert.NoError(t, l.Scratch(0).Do("request", func(s scope.Scope) error {
					for i, region := range regions {
						reader, ctx := l.Reader(region), background
						if random.IntN(4) == 0 {
							end, cancel := context.WithCancel(background)
							if ctx = end; random.IntN(2) == 0 {
								cancel()
							} else {
								go cancel()
							}
						}
						if err := reader.PinContext(ctx); err != nil {
							assert.ErrorIs(t, err, ctx.Err())
							continue
						}
						mine := leasedNumbers.New(s)
						*mine = *budget.Get[uint64](reader)
						assert.GreaterOrEqual(t, *mine, last[i])
						last[i] = *mine
					}
					return nil
				}))
				served[l.Worker()]++
				if !assert.NoError(t, l.Release()) { // with both pins
					return
				}
			}
		})
	}
	all.Wait()
	close(done)
	loaders.Wait()
	sum := 0
	for _, n := range served {
		sum += n
	}
	assert.Equal(t, requests*each, sum)
}

// TestReleaseEndsPins: Release ends the pins of its own worker only, and a refused Release none.
func TestReleaseEndsPins(t *testing.T) {
	b := open(t, workersPlan(2))
	region := b.Region("map")
	_, err := budget.Load(background, region, numbered(1))
	require.NoError(t, err)
	rewinds := func() error {
		ctx, cancel := context.WithTimeout(background, time.Millisecond)
		defer cancel()
		return region.Rewind(ctx)
	}
	one, two := take(t, b), take(t, b)
	require.NoError(t, one.Reader(region).PinContext(background))
	require.True(t, two.Reader(region).Pin())
	assert.NotSame(t, one.Reader(region), two.Reader(region))
	assert.ErrorContains(t, rewinds(), `worker "lease 1" has pinned region map`)
	require.NoError(t, one.Scratch(0).Do("at work", func(scope.Scope) error {
		assert.ErrorContains(t, one.Release(), "a Do or a Make is at work")
		return nil
	}))
	assert.ErrorContains(t, rewinds(), `worker "lease 1" has pinned region map`)
	one.Scratch(0).Open("left")
	assert.ErrorContains(t, one.Release(), "left")
	err = rewinds()
	assert.ErrorContains(t, err, `worker "lease 0" has pinned region map`)
	assert.NotContains(t, err.Error(), "lease 1")
	assert.NoError(t, two.Release())
	assert.NoError(t, rewinds())
}

// TestLeaseReadersOfSlots: a slot's next owner has other readers, and those of the owner before it
// fail.
func TestLeaseReadersOfSlots(t *testing.T) {
	b := open(t, workersPlan(1))
	rooms := b.Slots("room")
	before, err := rooms.Acquire()
	require.NoError(t, err)
	_, err = budget.Load(background, before, numbered(1))
	require.NoError(t, err)
	l := take(t, b)
	old := l.Reader(before)
	require.NoError(t, old.PinContext(background))
	old.Unpin()
	require.NoError(t, before.Release(background))
	after, err := rooms.Acquire()
	require.NoError(t, err)
	require.Equal(t, before.Slot(), after.Slot())
	_, err = budget.Load(background, after, numbered(2))
	require.NoError(t, err)
	assert.False(t, old.Pin())
	assert.ErrorIs(t, l.Reader(before).PinContext(background), budget.ErrClosed)
	d := l.Reader(after)
	assert.NoError(t, d.PinContext(background))
	assert.False(t, l.Reader(before).Pin(), "and it takes no reader's place")
	assert.Same(t, d, l.Reader(after))
	require.NoError(t, l.Release())
	assert.NoError(t, after.Release(background))
}

// TestLeaseReadersAllocateOnce: a loan of a worker with its readers makes no Go allocation after
// the first one.
func TestLeaseReadersAllocateOnce(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate: go test ./budget runs it")
	}
	b := open(t, workersPlan(2))
	regions := []budget.Region{b.Region("map"), b.Region("styles")}
	for _, r := range regions {
		_, err := budget.Load(background, r, numbered(1))
		require.NoError(t, err)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		l, err := b.Lease(background)
		require.NoError(t, err)
		for _, r := range regions {
			require.NoError(t, l.Reader(r).PinContext(background))
		}
		require.NoError(t, l.Release())
	}))
}

func TestLeaseThatIsOver(t *testing.T) {
	b, other := open(t, workersPlan(1)), open(t, workersPlan(1))
	l := take(t, b)
	assert.Contains(t, panics(t, func() { l.Reader(other.Region("map")) }), "which is another budget's")
	assert.Contains(t, panics(t, func() { l.Reader(budget.Region{}) }), "zero Region")
	require.NoError(t, l.Release())
	assert.Contains(t, panics(t, func() { l.Worker() }), "Worker of a Lease that was released")
	assert.Contains(t, panics(t, func() { l.Reader(b.Region("map")) }), "Reader of a Lease that was released")
	assert.Contains(t, panics(t, func() { budget.Lease{}.Worker() }), "Worker of a zero Lease")
}

// TestWorkerDuringAFailedClose: a Close that waits for another lease's finalizers, and fails,
// leaves a lease its number and its readers.
func TestWorkerDuringAFailedClose(t *testing.T) {
	b := open(t, workersPlan(2))
	one, two := take(t, b), take(t, b)
	inside, stop := make(chan bool), make(chan bool)
	one.Scratch(0).Open("left").Defer(func() {
		assert.Zero(t, one.Worker()+two.Worker()-1, "also in a finalizer of its Release")
		close(inside)
		<-stop
	})
	var release, closes sync.WaitGroup
	release.Go(func() { assert.ErrorContains(t, one.Release(), "left") })
	<-inside
	var closed atomic.Bool
	closes.Go(func() {
		assert.ErrorIs(t, b.Close(), budget.ErrLoading)
		closed.Store(true)
	})
	for !closed.Load() {
		two.Worker()
		two.Reader(b.Region("map"))
	}
	closes.Wait()
	close(stop)
	release.Wait()
	assert.NoError(t, two.Release())
}

// TestLeaseOfManySlots: a lease that outlives slots keeps no reader of theirs.
func TestLeaseOfManySlots(t *testing.T) {
	b := open(t, workersPlan(1))
	l := take(t, b)
	for range 20 {
		room, err := b.Slots("room").Acquire()
		require.NoError(t, err)
		l.Reader(room)
		require.NoError(t, room.Release(background))
		l.Reader(room)
		l.Reader(b.Region("map"))
		assert.LessOrEqual(t, budget.Pins(l), 2)
	}
	require.NoError(t, l.Release())
	assert.Zero(t, budget.Pins(l))
}
