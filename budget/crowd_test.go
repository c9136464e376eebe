package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
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

// crowd has goroutines that use one budget at the same time, as the doc allows. Owners of rooms
// load them, well and badly; visitors pin the owners' rooms; others lease scratch or watch; and a
// driver loads the regions below the rooms.
type crowd struct {
	t     *testing.T
	b     *budget.Budget
	shown [4]atomic.Pointer[show] // by the owner's number
	level atomic.Pointer[show]
	left  chan budget.Region // slots of OnWarn

	stop                                             atomic.Bool
	loads, refused, failed, visits, released, warned atomic.Int64
}

type show struct {
	readers [2]*budget.Reader // one for each visitor
	loaded  atomic.Pointer[budget.Loaded[frog]]
}

var errCrowd = errors.New("badly")

func (c *crowd) end(random *rand.Rand, s scope.Scope) error {
	switch random.IntN(12) {
	case 0:
		return errCrowd
	case 1:
		panic(errCrowd)
	case 2:
		s.Bytes(1 << 30) // full
	case 3:
		s.Open("never closed")
	case 4:
		s.Temp(1000).Bytes(1000)
	case 5:
		s.Defer(func() { panic(errCrowd) })
	}
	return nil
}

// load loads a region with a complete frog, calls inside within the load, and reports whether the
// load succeeded.
func (c *crowd) load(r budget.Region, random *rand.Rand, inside func(s scope.Scope)) (l budget.Loaded[frog], ok bool) {
	defer func() {
		if v := recover(); v != nil && v != errCrowd {
			panic(v)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x := int64(random.Uint64() >> 1)
	l, err := budget.Load(ctx, r, func(s scope.Scope) (*frog, error) {
		f := frogs.New(s)
		*f = frog{x, x, x}
		newPool := frogs.Pool(s, 3)
		newPool.Put(newPool.Get())
		inside(s)
		return f, c.end(random, s)
	})
	switch {
	case err == nil:
		c.loads.Add(1)
	case errors.Is(err, budget.ErrLoading):
		c.refused.Add(1)
	default:
		c.failed.Add(1)
		if !errors.Is(err, errCrowd) && !errors.Is(err, budget.ErrFull) {
			assert.ErrorContains(c.t, err, "never closed")
		}
	}
	return l, err == nil
}

func (c *crowd) own(number int, random *rand.Rand) {
	room, err := c.b.Slots("room").Acquire()
	if err != nil {
		assert.ErrorIs(c.t, err, budget.ErrFull)
		return
	}
	now := &show{}
	for i := range now.readers {
		now.readers[i] = room.Reader("visitor")
	}
	c.shown[number].Store(now)
	var last budget.Loaded[frog]
	for range random.IntN(6) {
		if l, ok := c.load(room, random, func(scope.Scope) {}); ok {
			now.loaded.Store(&l)
			last = l
		}
		if random.IntN(4) == 0 {
			c.rewound(room.Rewind(c.t.Context()))
		}
	}
	c.release(room)
	c.released.Add(1)
	assert.Nil(c.t, last.Get())
	assert.ErrorIs(c.t, room.Rewind(c.t.Context()), budget.ErrClosed, "it was released")
}

// release releases a room once no load shuts it out.
func (c *crowd) release(room budget.Region) {
	err := room.Release(c.t.Context())
	for ; errors.Is(err, budget.ErrLoading); err = room.Release(c.t.Context()) {
		runtime.Gosched()
	}
	c.rewound(err)
}

// watch reads figures, and releases the slots of OnWarn.
func (c *crowd) watch() {
	_, _ = c.b.Published().String(), c.b.Slots("room").Available()
	for len(c.left) > 0 {
		c.release(<-c.left)
	}
}

func (c *crowd) rewound(err error) {
	if err != nil && !errors.Is(err, budget.ErrLoading) && !errors.Is(err, errCrowd) {
		assert.ErrorContains(c.t, err, "panicked")
	}
}

// visit reads the rooms of owner and driver: while a visitor is inside, the frog is complete and
// stays.
func (c *crowd) visit(me int, random *rand.Rand) {
	now := c.level.Load()
	if i := random.IntN(len(c.shown) + 1); i < len(c.shown) {
		now = c.shown[i].Load()
	}
	if now == nil || !now.readers[me].Pin() {
		return
	}
	defer now.readers[me].Unpin()
	l := now.loaded.Load()
	if l == nil {
		return
	}
	if f := l.Get(); f != nil {
		was := *f
		runtime.Gosched()
		if assert.NotNil(c.t, l.Get(), "it is rewound while it is pinned") && assert.Equal(c.t, was, *f) {
			assert.Equal(c.t, frog{was.X, was.X, was.X}, was)
			c.visits.Add(1)
		}
	}
}

func (c *crowd) hire(random *rand.Rand) {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	lease, err := c.b.Lease(ctx)
	if !assert.NoError(c.t, err) {
		return
	}
	for i := range random.IntN(4) {
		s := lease.Scratch(i % 2).Open("query")
		f := frogs.New(s)
		f.X = int64(i)
		runtime.Gosched()
		assert.Equal(c.t, frog{X: int64(i)}, *f, "another's scratch")
		assert.NoError(c.t, s.Close())
	}
	assert.NoError(c.t, lease.Release())
	assert.ErrorContains(c.t, lease.Release(), "released before")
}

// drive loads the region below the rooms, with rooms inside, and ends frames.
func (c *crowd) drive(random *rand.Rand) {
	frogs.New(c.b.Frame())
	assert.NoError(c.t, c.b.NextFrame())
	if random.IntN(4) != 0 {
		return
	}
	l, ok := c.load(c.b.Region("level"), random, func(s scope.Scope) {
		room, err := c.b.Slots("room").Acquire()
		if err != nil {
			return
		}
		if _, ok := c.load(room.In(s), random, func(scope.Scope) {}); ok && random.IntN(2) == 0 {
			c.rewound(room.In(s).Rewind(c.t.Context()))
		}
		c.rewound(room.In(s).Release(c.t.Context()))
	})
	if ok {
		c.level.Load().loaded.Store(&l)
	}
	if random.IntN(4) == 0 {
		c.rewound(c.b.Region("systems").Rewind(c.t.Context()))
	}
}

// warn is the budget's OnWarn. It calls the budget back.
func (c *crowd) warn(w budget.Warning) {
	assert.GreaterOrEqual(c.t, 100*w.Used, uint64(w.Share)*w.Size)
	switch n := c.warned.Add(1); n % 5 {
	case 0:
		_ = c.b.Published().String()
	case 1:
		if room, err := c.b.Slots("room").Acquire(); err == nil {
			assert.NotEqual(c.t, w.Arena, fmt.Sprint("room ", room.Slot()), "a free slot warns")
			c.left <- room // the load that warns may be of a region below
		}
	case 2:
		c.hire(rand.New(rand.NewPCG(uint64(n), 1)))
	case 3:
		if w.Arena == "level" {
			assert.ErrorIs(c.t, c.b.Region("level").Rewind(c.t.Context()), budget.ErrLoading)
		}
	case 4:
		_, err := budget.Load(c.t.Context(), c.b.Region("aside"), func(s scope.Scope) (*frog, error) {
			return frogs.New(s), nil
		})
		c.rewound(err)
	}
}

// TestCrowd runs the whole crowd at once. The race build checks every access.
func TestCrowd(t *testing.T) {
	c := &crowd{t: t, left: make(chan budget.Region, 3)}
	c.b = open(t, budget.Plan{Name: "crowd", Regions: []budget.RegionPlan{{Name: "systems", Size: 64 * budget.KiB},
		{Name: "level", Size: 64 * budget.KiB, Warn: 1}, {Name: "room", Size: 64 * budget.KiB, Slots: 3, Warn: 1},
		{Name: "aside", Size: 64 * budget.KiB, On: budget.Root}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 64 * budget.KiB}, OnWarn: c.warn})
	first := &show{}
	for i := range first.readers {
		first.readers[i] = c.b.Region("level").Reader("visitor")
	}
	c.level.Store(first)
	rounds := step.Pick(20, 200, 100_000)
	time.AfterFunc(step.Time(), func() { c.stop.Store(true) })
	var all sync.WaitGroup
	begin := func(seed int, step func(random *rand.Rand)) {
		random := rand.New(rand.NewPCG(uint64(seed), 20))
		all.Go(func() {
			for i := 0; i < rounds || !c.stop.Load(); i++ {
				step(random)
				runtime.Gosched()
			}
		})
	}
	for i := range 4 {
		begin(i, func(random *rand.Rand) { c.own(i, random) })
	}
	for i := range 2 {
		begin(10+i, func(random *rand.Rand) { c.visit(i, random) })
		begin(20+i, func(random *rand.Rand) { c.hire(random) })
	}
	begin(30, c.drive)
	begin(31, func(*rand.Rand) { c.watch() })
	all.Wait()
	c.watch()
	assert.Equal(t, 3, c.b.Slots("room").Available())
	requireWalk(t, c.b)
	warnings := 0
	for _, a := range c.b.Published().Arenas {
		warnings += a.Warnings
	}
	assert.EqualValues(t, c.warned.Load(), warnings)
	t.Logf("%d loads, %d refused, %d failed, %d visits, %d rooms released, %d warnings", c.loads.Load(),
		c.refused.Load(), c.failed.Load(), c.visits.Load(), c.released.Load(), warnings)
	require.NotZero(t, c.loads.Load())
}
