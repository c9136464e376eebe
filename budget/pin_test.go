package budget_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// soon returns a context that ends in a bubble of synctest when all goroutines wait, so not before
// the call under test.
func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(background, 5*time.Millisecond)
}

func TestLoadNamesWhoPins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, small())
		l := mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 1, 0) })
		anna, bob := b.Region("level").Reader("anna"), b.Region("systems").Reader("bob")
		require.True(t, anna.Pin())
		before := quiet(b)

		ctx, cancel := soon()
		defer cancel()
		_, err := budget.Load(ctx, b.Region("systems"), func(scope.Scope) (*frog, error) { panic("it should not run") })
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.EqualError(t, err,
			`budget "small": Load of region systems waited: worker "anna" has pinned region level; nothing has changed: call Unpin, then try again: `+`context deadline exceeded`)
		require.True(t, bob.Pin(), "the regions are open again")
		ctx, cancel = soon()
		defer cancel()
		err = b.Region("init").Rewind(ctx)
		assert.ErrorContains(t, err, `Rewind of region init waited: worker "bob" has pinned region systems, `+
			`worker "anna" has pinned region level`)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		err = b.Close()
		assert.ErrorContains(t, err,
			`Close while worker "bob" has pinned region systems, worker "anna" has pinned region level`)
		assert.Equal(t, before, quiet(b), "nothing changed")
		assert.NotNil(t, l.Get())
		assert.Empty(t, ran)

		anna.Unpin()
		assert.Equal(t, `budget: BUG: "bob" pins region systems twice: each worker has a Reader of its own`,
			panics(t, func() { bob.Pin() }))
		assert.Contains(t, panics(t, anna.Unpin), `budget: BUG: "anna" unpins region level, which it has not pinned`)
		// bob pins a lower region: his pin doesn't matter
		mustLoad(t, b, "level", nil)
		bob.Unpin()
		require.NoError(t, b.Close())
		assert.False(t, anna.Pin(), "nobody gets into a closed budget")
	})
}

func TestNobodyPinsWhatIsLoaded(t *testing.T) {
	b := open(t, small())
	readers := map[string]*budget.Reader{}
	for _, name := range []string{"init", "systems", "level"} {
		readers[name] = b.Region(name).Reader("a worker of " + name)
	}
	enter := func(name string) bool {
		if !readers[name].Pin() {
			return false
		}
		readers[name].Unpin()
		return true
	}
	all := func() []bool { return []bool{enter("init"), enter("systems"), enter("level")} }
	assert.Equal(t, []bool{true, true, true}, all())
	mustLoad(t, b, "systems", func(s scope.Scope) {
		assert.Equal(t, []bool{true, false, false}, all())
		mustLoadRegion(t, b.Region("level").In(s), func(scope.Scope) {
			assert.Equal(t, []bool{true, false, false}, all())
		})
		assert.Equal(t, []bool{true, false, false}, all(), "level stays shut with systems")
		s.Defer(func() { assert.Equal(t, []bool{true, false, false}, all()) })
	})
	assert.Equal(t, []bool{true, true, true}, all())
	require.NoError(t, b.Region("systems").Rewind(background))
	for _, f := range failures {
		attempt(func() error {
			_, err := load(b, "level", func(s scope.Scope) error { return f.end(b, s) })
			return err
		})
		assert.Equal(t, []bool{true, true, true}, all())
	}
	mustLoad(t, b, "init", func(s scope.Scope) {
		s.Defer(func() { assert.Equal(t, []bool{false, false, false}, all()) })
	})
	require.NoError(t, b.Close())
	assert.Equal(t, []bool{false, false, false}, all())
}

// TestPins lets workers read a level while it is loaded over and over: a worker inside sees a
// complete level.
func TestPins(t *testing.T) {
	b := open(t, small())
	var level atomic.Pointer[budget.Loaded[frog]]
	var visits atomic.Int64
	var stop atomic.Bool
	var workers sync.WaitGroup
	for range 2 {
		d := b.Region("level").Reader("a worker")
		workers.Go(func() {
			for !stop.Load() {
				if !d.Pin() {
					runtime.Gosched()
					continue
				}
				if l := level.Load(); l != nil {
					if f := l.Get(); f != nil && assert.Equal(t, f.X, f.Y) {
						visits.Add(1)
					}
				}
				d.Unpin()
				runtime.Gosched()
			}
		})
	}
	for i := int64(0); i < 50 || visits.Load() < 20; i++ {
		l, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*frog, error) {
			f := frogs.New(s)
			f.X, f.Y = i, i
			return f, nil
		})
		require.NoError(t, err)
		level.Store(&l)
		if i%3 == 0 {
			require.NoError(t, b.Region("systems").Rewind(background))
		}
	}
	err := b.Close()
	// the system's scheduler stopped it inside
	for err != nil && strings.Contains(err.Error(), `"a worker" has pinned`) {
		err = b.Close()
	}
	assert.NoError(t, err)
	stop.Store(true)
	workers.Wait()
}

// TestLoadThatWaits: a load that waits calls OnError once, after a second, and waits on.
func TestLoadThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 8)
		plan := small()
		plan.OnError = func(err error) { told <- err.Error() }
		b := open(t, plan)
		reader := b.Region("level").Reader("worker")
		require.True(t, reader.Pin())
		rewound := make(chan error, 1)
		go func() { rewound <- b.Region("level").Rewind(background) }()
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Empty(t, told)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, told, 1)
		assert.Equal(t,
			`budget "small": Rewind of region level waits: worker "worker" has pinned region level; call Unpin`, <-told)
		reader.Unpin()
		assert.NoError(t, <-rewound)
	})
}

// TestOnErrorThatEndsTheGoroutine while a load waits: the next load can begin.
func TestOnErrorThatEndsTheGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := small()
		plan.OnError = func(error) { runtime.Goexit() }
		b := open(t, plan)
		reader := b.Region("level").Reader("worker")
		require.True(t, reader.Pin())
		o := attempt(func() error { return b.Region("level").Rewind(background) })
		assert.True(t, o.exited)
		reader.Unpin()
		mustLoad(t, b, "level", nil)
		assert.True(t, reader.Pin())
		reader.Unpin()
	})
}
