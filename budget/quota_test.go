package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/tests/step"
)

func openQuotas(t testing.TB, quotas ...budget.QuotaPlan) *budget.Budget {
	t.Helper()
	b, err := budget.Open(budget.Plan{Name: "db", Quotas: quotas})
	require.NoError(t, err)
	return b
}

func tenantOf(t testing.TB, q *budget.Quota, name string) *budget.Quota {
	t.Helper()
	tenant, err := q.Tenant(name)
	require.NoError(t, err)
	return tenant
}

func reserve(t testing.TB, q *budget.Quota, n uint64) *budget.Reservation {
	t.Helper()
	r, err := q.Reserve(t.Context(), n)
	require.NoError(t, err)
	return &r
}

// TestQuotaTurns: a single byte of a tenant isn't behind the queue of another one.
func TestQuotaTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 100, Tenants: 2, Waiters: 2000})
		q := b.Quota("query")
		crowd, single := tenantOf(t, q, "crowd"), tenantOf(t, q, "single")
		first := reserve(t, crowd, 100)
		var served atomic.Int64
		for range 1000 {
			go func() {
				r, err := crowd.Reserve(t.Context(), 100)
				assert.NoError(t, err)
				served.Add(1)
				time.Sleep(time.Millisecond)
				r.Release()
			}()
		}
		synctest.Wait()
		go func() {
			time.Sleep(time.Nanosecond) // single waits by then
			first.Release()
		}()
		start := time.Now()
		r, err := single.Reserve(t.Context(), 1)
		require.NoError(t, err)
		assert.LessOrEqual(t, time.Since(start), time.Millisecond+time.Nanosecond)
		assert.LessOrEqual(t, served.Load(), int64(1))
		r.Release()
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 1000, served.Load())
		waits := b.Published().Arena("query").Waits
		assert.EqualValues(t, 1001, waits.Waited)
		assert.Equal(t, 999*time.Millisecond, waits.Longest.Truncate(time.Millisecond))
		require.NoError(t, b.Close())
	})
}

// TestQuotaKeepsPlaces: a tenant that fills the queue leaves each other tenant a place.
func TestQuotaKeepsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 10, Tenants: 2, Waiters: 5})
		q := b.Quota("query")
		r := reserve(t, q, 10)
		ctx, cancel := context.WithCancel(t.Context())
		try := func(q *budget.Quota) error {
			ended := make(chan error, 1)
			go func() {
				_, err := q.Reserve(ctx, 1)
				ended <- err
			}()
			synctest.Wait()
			select {
			case err := <-ended:
				return err
			default:
				return nil
			}
		}
		for range 3 {
			require.NoError(t, try(tenantOf(t, q, "crowd")))
		}
		err := try(tenantOf(t, q, "crowd"))
		assert.ErrorIs(t, err, budget.ErrFull)
		assert.EqualError(t, err, `budget "db": quota query, tenant "crowd": all 5 places in the queue are taken; `+
			"raise quotas.query.waiters in the plan to 6 or more")
		assert.NoError(t, try(tenantOf(t, q, "other")))
		assert.NoError(t, try(q))
		assert.ErrorIs(t, try(q), budget.ErrFull)
		cancel()
		synctest.Wait()
		r.Release()
		require.NoError(t, b.Close())
	})
}

// TestQuotaTells: the error of a wait says how long it was, behind how many others, and which
// tenant has the most.
func TestQuotaTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 1000, Tenants: 3, Tenant: 900})
		q := b.Quota("query")
		alice, bob := tenantOf(t, q, "alice"), tenantOf(t, q, "bob")
		a, c := reserve(t, alice, 100), reserve(t, bob, 800)
		ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer cancel()
		for range 2 {
			go func() {
				_, err := bob.Reserve(ctx, 200)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			}()
			synctest.Wait()
		}
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := alice.Reserve(short, 300)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		said, hint, _ := strings.Cut(err.Error(), "; its goroutine took quota query before: ")
		assert.Equal(t, arena_c.Checked, strings.Contains(hint, "quota_test.go:"))
		assert.Equal(t, said, `budget "db": quota query, tenant "alice": Reserve of 300 bytes waited 1s, behind `+
			`1 other; 100 of 1000 bytes are free, and tenant "bob" has the most, 800 bytes; open reservations: 2; `+
			"Release one, or raise quotas.query.size in the plan: context deadline exceeded")
		_, err = bob.Reserve(short, 1)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "it had ended before")
		time.Sleep(time.Second)
		assert.Zero(t, b.Published().Arena("query").Waits.Waiting)
		a.Release()
		c.Release()
		require.NoError(t, b.Close())
	})
}

// TestQuotaTenantsPlaces: a new tenant takes the place of an idle one, whose quota stays valid.
func TestQuotaTenantsPlaces(t *testing.T) {
	b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 100, Tenants: 2, Tenant: 50})
	q := b.Quota("query")
	first, second := tenantOf(t, q, "1"), tenantOf(t, q, "2")
	r := reserve(t, first, 10)
	third := tenantOf(t, q, "3") // in the place of the second
	s := reserve(t, third, 10)
	_, err := second.Reserve(t.Context(), 10)
	assert.ErrorIs(t, err, budget.ErrFull)
	_, err = q.Tenant("4")
	assert.EqualError(t, err, `budget "db": quota query: all 2 places for tenants are taken by tenants that have `+
		"bytes or wait; raise quotas.query.tenants in the plan to 3 or more")
	s.Release()
	s = reserve(t, second, 40) // in the place of the third
	assert.Same(t, second, tenantOf(t, q, "2"))
	assert.EqualValues(t, 50, b.Published().Arena("query").Used)
	s.Release()
	r.Release()
	r = reserve(t, tenantOf(t, q, ""), 10) // a client without a name
	_, err = tenantOf(t, q, "").Reserve(t.Context(), 60)
	assert.ErrorContains(t, err, `quota query, tenant "" is full: asked for 60 bytes, 40 of 50 are free`)
	r.Release()
	assert.Panics(t, func() { _, _ = first.Tenant("x") })
	assert.Panics(t, func() { b.Quota("queries") })
	require.NoError(t, b.Close())
}

// TestQuotaPieces: a reservation has whole pieces, and Grow and Shrink within a piece change
// nothing.
func TestQuotaPieces(t *testing.T) {
	b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 64, Piece: 16})
	used := func() uint64 { return b.Published().Arena("query").Used }
	r := reserve(t, b.Quota("query"), 1)
	assert.EqualValues(t, 16, used())
	require.NoError(t, r.Grow(15))
	assert.EqualValues(t, 16, used())
	require.NoError(t, r.Grow(1))
	assert.EqualValues(t, 32, used())
	require.ErrorIs(t, r.Grow(48), budget.ErrFull)
	r.Shrink(1)
	assert.EqualValues(t, 16, used())
	r.Shrink(15)
	assert.EqualValues(t, 16, used())
	r.Shrink(1)
	assert.Zero(t, used())
	assert.PanicsWithValue(t, `budget "db": BUG: Shrink of 1 bytes of quota query: the reservation has 0`,
		func() { r.Shrink(1) })
	r.Release()
	assert.Panics(t, func() { r.Release() })
	assert.Panics(t, func() { _ = r.Grow(0) })
	assert.Panics(t, func() { r.Shrink(0) })
	require.NoError(t, b.Close())
}

// TestQuotaClose: Close ends all waits, and names reservations that were never released.
func TestQuotaClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 10, Tenants: 3})
		q := b.Quota("query")
		r := reserve(t, q, 10)
		errs := make(chan error, 10)
		for i := range 10 {
			go func() {
				_, err := tenantOf(t, q, fmt.Sprint(i%3)).Reserve(t.Context(), 5)
				errs <- err
			}()
		}
		synctest.Wait()
		err := b.Close()
		require.ErrorContains(t, err, `budget "db": never released: a reservation of quota query; call Release on each `+
			"Reservation")
		assert.Equal(t, arena_c.Checked, strings.Contains(err.Error(), "quota_test.go:"), err)
		for range 10 {
			assert.ErrorIs(t, <-errs, budget.ErrClosed)
		}
		_, err = q.Reserve(t.Context(), 0)
		assert.ErrorIs(t, err, budget.ErrClosed)
		_, err = q.Tenant("new")
		assert.ErrorIs(t, err, budget.ErrClosed)
		assert.ErrorIs(t, r.Grow(1), budget.ErrClosed)
		r.Shrink(1)
		r.Release()
		assert.Equal(t, 1, b.Report().Leaks.Quotas)
	})
}

// TestQuotaWarns: a use at the share warns once, and again after it was below nine tenths of it.
func TestQuotaWarns(t *testing.T) {
	var warned []budget.Warning
	b, err := budget.Open(budget.Plan{Name: "db",
		Quotas:  []budget.QuotaPlan{{Name: "query", Size: 1000, Tenants: 2, Warn: 80}},
		OnWarn:  func(w budget.Warning) { warned = append(warned, w) },
		OnError: func(err error) { assert.NoError(t, err) }})
	require.NoError(t, err)
	r := reserve(t, tenantOf(t, b.Quota("query"), "alice"), 700)
	require.NoError(t, r.Grow(99))
	assert.Empty(t, warned)
	for range 2 {
		require.NoError(t, r.Grow(1))
		r.Shrink(1)
	}
	require.Len(t, warned, 1)
	assert.Equal(t, `query holds 800 of 1000 bytes, and warns at 80%; held by "alice" (800 bytes); its size is `+
		"quotas.query.size in the plan", warned[0].String())
	r.Shrink(80)
	other := reserve(t, b.Quota("query"), 81)
	assert.Len(t, warned, 2)
	other.Release()
	r.Release()
	assert.Equal(t, 2, b.Published().Arena("query").Warnings)
	require.NoError(t, b.Close())
}

// TestQuotaObserves: an observed quota grants each reservation at once, and counts those that it
// would have refused or delayed.
func TestQuotaObserves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 100, Tenants: 2, Tenant: 60, Waiters: 3,
			Observe: true})
		q := b.Quota("query")
		alice, bob := tenantOf(t, q, "alice"), tenantOf(t, q, "bob")
		now := func() budget.ArenaReport { return b.Published().Arena("query") }
		a, c := reserve(t, alice, 60), reserve(t, bob, 40)
		large := reserve(t, bob, 61) // would be refused
		assert.Equal(t, 1, now().Fulls)
		waits := reserve(t, bob, 20) // would wait
		assert.Equal(t, 1, now().Waits.Waiting)
		require.NoError(t, a.Grow(5)) // would be refused
		assert.EqualValues(t, 186, now().Used)
		assert.Equal(t, 2, now().Fulls)
		time.Sleep(time.Second)
		c.Release()
		assert.Zero(t, now().Waits.Waiting)
		assert.Equal(t, &budget.Waits{Waited: 1, Longest: time.Second, Total: time.Second, Observed: true}, now().Waits)
		long := reserve(t, alice, 30) // would wait for longer than it works
		time.Sleep(2 * time.Second)
		long.Release()
		assert.Equal(t, 2*time.Second, now().Waits.Longest)
		for _, r := range []*budget.Reservation{a, large, waits} {
			r.Release()
		}
		assert.Zero(t, now().Used)
		assert.EqualValues(t, 186, now().Peak)
		text := b.Published().String()
		assert.Contains(t, text, "query: observed, would have refused 2 times; the last: budget \"db\": quota query")
		assert.Contains(t, text, "query: 0 wait, 2 would have waited, the longest 2s, all 3s")
		assert.Contains(t, text, `query: tenant "bob" used 0KiB, peak 0.2KiB`)
		require.NoError(t, b.Close())
	})
}

// TestQuotaObservedModel: the sums of random schedules of an observed quota agree, and nothing is
// left.
func TestQuotaObservedModel(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 20, Tenants: 3, Tenant: 10, Waiters: 6, Observe: true})
	q := b.Quota("query")
	type one struct {
		*budget.Reservation
		n uint64
	}
	var list []one
	sum := uint64(0)
	for i := range 20_000 {
		if n := r.Uint64N(13); r.IntN(5) == 0 || len(list) == 0 {
			of := q
			if r.IntN(4) != 0 {
				of = tenantOf(t, q, fmt.Sprint(r.IntN(3)))
			}
			list, sum = append(list, one{reserve(t, of, n), n}), sum+n
		} else if at := r.IntN(len(list)); r.IntN(3) == 0 {
			require.NoError(t, list[at].Grow(n))
			list[at].n, sum = list[at].n+n, sum+n
		} else if n = min(n, list[at].n); r.IntN(2) == 0 {
			list[at].Shrink(n)
			list[at].n, sum = list[at].n-n, sum-n
		} else {
			list[at].Release()
			sum -= list[at].n
			list[at] = list[len(list)-1]
			list = list[:len(list)-1]
		}
		if i%64 == 0 {
			assert.Equal(t, sum, budget.QuotaReport(q).Used)
		}
	}
	for _, r := range list {
		r.Release()
	}
	end := b.Published().Arena("query")
	assert.Zero(t, end.Used)
	assert.Zero(t, end.Waits.Waiting)
	assert.NotZero(t, end.Waits.Waited)
	require.NoError(t, b.Close())
}

// TestQuotaCrowd: goroutines reserve, grow, shrink and end at any point, and OnWarn calls the quota
// back. The sum never exceeds the plan, all are served or end, and nothing is left.
func TestQuotaCrowd(t *testing.T) {
	const size, tenants = 40, 3
	var b *budget.Budget
	var warned atomic.Int64
	b, err := budget.Open(budget.Plan{Name: "db", Quotas: []budget.QuotaPlan{{Name: "query", Size: size,
		Tenants: tenants, Tenant: 25, Waiters: 100, Warn: 50}}, OnWarn: func(budget.Warning) {
		warned.Add(1)
		q := b.Quota("query")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r, err := q.Reserve(ctx, 0)
		assert.True(t, err == nil || errors.Is(err, context.Canceled), "%v", err)
		r.Release()
		assert.LessOrEqual(t, b.Published().Arena("query").Used, uint64(size))
		_, err = q.Tenant("0")
		assert.NoError(t, err)
	}})
	require.NoError(t, err)
	q := b.Quota("query")
	var sum, granted atomic.Int64
	take := func(n int64) { assert.LessOrEqual(t, sum.Add(n), int64(size)) }
	var all sync.WaitGroup
	for g := range 12 {
		r := rand.New(rand.NewPCG(uint64(g), 3))
		of := tenantOf(t, q, fmt.Sprint(g%tenants))
		all.Go(func() {
			for range step.Pick(400, 400, 90_000) {
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(3) == 0 {
					time.AfterFunc(time.Duration(r.IntN(30))*time.Microsecond, cancel)
				}
				n := int64(r.IntN(26))
				got, err := of.Reserve(ctx, uint64(n))
				if err == nil {
					take(n)
					granted.Add(1)
					if more := int64(r.IntN(4)); got.Grow(uint64(more)) == nil {
						take(more)
						n += more
					}
					if less := min(n, int64(r.IntN(4))); less > 0 {
						sum.Add(-less)
						got.Shrink(uint64(less))
						n -= less
					}
					runtime.Gosched()
					sum.Add(-n)
					got.Release()
				} else {
					assert.ErrorIs(t, err, context.Canceled)
				}
				cancel()
			}
		})
	}
	all.Wait()
	assert.NotZero(t, granted.Load())
	end := b.Published().Arena("query")
	assert.EqualValues(t, warned.Load(), end.Warnings)
	assert.NotZero(t, warned.Load())
	assert.Zero(t, end.Used)
	assert.Zero(t, end.Waits.Waiting)
	assert.LessOrEqual(t, end.Peak, uint64(size))
	require.NoError(t, b.Close())
}

// TestQuotaMakesNoGarbage: neither an immediate grant nor a wait allocates, if ctx.Done was called
// before.
func TestQuotaMakesNoGarbage(t *testing.T) {
	if arena_c.Checked || arena_c.Race || arena_c.Asan {
		t.Skip("checked builds note each call, and instrumented builds allocate")
	}
	b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 100, Tenants: 2})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_ = ctx.Done()
	of := tenantOf(t, b.Quota("query"), "alice")
	work := func(q *budget.Quota) {
		r, err := q.Reserve(ctx, 60)
		if err != nil || r.Grow(10) != nil {
			panic(err)
		}
		r.Shrink(10)
		r.Release()
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { work(of) }))
	turns := make(chan *budget.Reservation)
	begun := make(chan struct{})
	go func() { // holds bytes until the other waits
		for r := range turns {
			begun <- struct{}{}
			for b.Quota("query"); budget.QuotaWaiting(of) == 0; {
				runtime.Gosched()
			}
			r.Release()
		}
	}()
	var first budget.Reservation
	wait := func() {
		var err error
		if first, err = of.Reserve(ctx, 100); err != nil {
			panic(err)
		}
		turns <- &first
		<-begun
		work(of)
	}
	wait()
	goroutines := runtime.NumGoroutine()
	assert.Zero(t, testing.AllocsPerRun(200, wait))
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	close(turns)
	assert.EqualValues(t, 202, b.Published().Arena("query").Waits.Waited)
	require.NoError(t, b.Close())
}

// TestQuotaAcrossBubbles: goroutines of several bubbles wait in the same quota.
func TestQuotaAcrossBubbles(t *testing.T) {
	b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 10})
	q := b.Quota("query")
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					r := reserve(t, q, 10)
					runtime.Gosched()
					r.Release()
				})
			}
			all.Wait()
		})
	}
	require.NoError(t, b.Close())
}

// TestQuotaNamesBothSides: a checked build names the lines of two goroutines that wait for each
// other, and those of a double release.
func TestQuotaNamesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := budget.Open(budget.Plan{Name: "db", Quotas: []budget.QuotaPlan{{Name: "query", Size: 10},
			{Name: "upload", Size: 10}},
			Regions: []budget.RegionPlan{{Name: "room", Size: 64 * budget.KiB, Slots: 1, Waiters: 2}},
			Scratch: budget.ScratchPlan{Workers: 1, Size: 64 * budget.KiB}})
		require.NoError(t, err)
		ctx := t.Context()
		query := func(n uint64) func(context.Context) (func(), error) {
			return func(ctx context.Context) (func(), error) {
				r, err := b.Quota("query").Reserve(ctx, n)
				return r.Release, err
			}
		}
		room := func(ctx context.Context) (func(), error) {
			room, err := b.Slots("room").AcquireWait(ctx)
			return func() { assert.NoError(t, room.Release(t.Context())) }, err
		}
		lease := func(ctx context.Context) (func(), error) {
			lease, err := b.Lease(ctx)
			return func() { assert.NoError(t, lease.Release()) }, err
		}
		for i, pair := range [][2][2]func(context.Context) (func(), error){
			{{query(10), room}, {room, query(1)}},
			{{query(5), query(2)}, {query(4), query(2)}},
			{{room, lease}, {lease, room}},
		} {
			var both sync.WaitGroup
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			for _, takes := range pair {
				both.Go(func() {
					first, err := takes[0](ctx)
					assert.NoError(t, err)
					time.Sleep(time.Millisecond)
					_, err = takes[1](ctx)
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					first()
				})
			}
			both.Wait()
			cancel()
			if report := b.Report(); arena_c.Checked && assert.Equal(t, i+1, report.ErrorCount) {
				for _, side := range []string{"BUG: two goroutines wait for each other", "the first took ",
					"and waits for ", "the second took "} {
					assert.Contains(t, report.Errors[i], side)
				}
				assert.GreaterOrEqual(t, strings.Count(report.Errors[i], "quota_test.go:"), 4)
			} else {
				assert.Zero(t, report.ErrorCount)
			}
		}
		r := reserve(t, b.Quota("query"), 10)
		r.Release()
		defer func() {
			text := fmt.Sprint(recover())
			assert.Contains(t, text, `budget "db": BUG: Release of a reservation of quota query that was released before`)
			assert.Equal(t, arena_c.Checked, strings.Contains(text, "reserved at:"), text)
			assert.Equal(t, arena_c.Checked, strings.Contains(text, "released at:"), text)
			require.NoError(t, b.Close())
		}()
		r.Release()
	})
}

// TestSlotsWait: goroutines wait for slots in order, and Acquire doesn't overtake them.
func TestSlotsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := rooms(false)
		plan.Regions[1].Waiters = 2
		b, err := budget.Open(plan)
		require.NoError(t, err)
		var held []budget.Region
		for range 4 {
			room, err := b.Slots("room").AcquireWait(t.Context())
			require.NoError(t, err)
			held = append(held, room)
		}
		got := make(chan int, 2)
		for i := range 2 {
			go func() {
				room, err := b.Slots("room").AcquireWait(t.Context())
				assert.NoError(t, err)
				got <- i
				assert.NoError(t, room.Release(t.Context()))
			}()
			synctest.Wait()
		}
		_, err = b.Slots("room").AcquireWait(t.Context())
		assert.ErrorIs(t, err, budget.ErrNoSlot)
		assert.ErrorContains(t, err, "all 2 places in the queue are taken; raise regions[1].waiters in the plan to 3")
		_, err = b.Slots("room").Acquire()
		assert.ErrorIs(t, err, budget.ErrNoSlot)
		assert.Equal(t, 2, b.Published().Arena("room 0").Waits.Waiting)
		require.NoError(t, held[2].Release(t.Context()))
		assert.Equal(t, 0, <-got)
		assert.Equal(t, 1, <-got)
		synctest.Wait()
		at, err := b.Slots("room").AcquireAt(2)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = b.Slots("room").AcquireWait(ctx)
		said, _, _ := strings.Cut(err.Error(), "; its goroutine took slot")
		assert.Equal(t, said, `budget "rooms": slots of region room: AcquireWait waited 1s for one of 4 slots, behind `+
			"0 others; Release a slot, or raise regions[1].slots in the plan: context deadline exceeded")
		for _, room := range append(held[:2], held[3], at) {
			require.NoError(t, room.Release(t.Context()))
		}
		require.NoError(t, b.Close())
		_, err = b.Slots("room").AcquireWait(t.Context())
		assert.ErrorIs(t, err, budget.ErrClosed)
	})
}

// TestSlotsWithoutWaiters: without waiters in the plan, AcquireWait doesn't wait.
func TestSlotsWithoutWaiters(t *testing.T) {
	b, err := budget.Open(rooms(false))
	require.NoError(t, err)
	var held []budget.Region
	for range 4 {
		room, err := b.Slots("room").AcquireWait(t.Context())
		require.NoError(t, err)
		held = append(held, room)
	}
	_, err = b.Slots("room").AcquireWait(t.Context())
	assert.ErrorIs(t, err, budget.ErrNoSlot)
	assert.ErrorContains(t, err, "raise regions[1].waiters in the plan to 1 or more")
	for _, room := range held {
		require.NoError(t, room.Release(t.Context()))
	}
	require.NoError(t, b.Close())
}

// TestQuotasAreSummands: a quota of the process's memory is a part of the plan's sum, and a Go heap
// of the Rest leaves it free. A quota in another part isn't counted twice.
func TestQuotasAreSummands(t *testing.T) {
	const size = 100 * budget.MiB
	group := platform.Limit{Name: "cgroup memory.max", Bytes: 512 * budget.MiB, Raise: "docker run --memory"}
	share := func(in string) uint64 {
		defer budget.SetGoMemory(0, 0)()
		defer budget.SetLimits(group)()
		plan := restful(t)
		plan.Quotas = []budget.QuotaPlan{{Name: "query", Size: size, In: in}}
		b, err := budget.Open(plan)
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		return b.Plan().GoHeap
	}
	inGoHeap := share("go_heap")
	assert.InDelta(t, inGoHeap-size, share(""), budget.MiB) // page tables of the Go heap
	assert.Equal(t, inGoHeap, share("device"))

	plan := small()
	plan.Quotas = []budget.QuotaPlan{{Name: "query", Size: size}, {Name: "gpu", Size: size, In: "device"}}
	cost, err := plan.Cost()
	require.NoError(t, err)
	assert.EqualValues(t, size, cost.Quotas)
	assert.Contains(t, cost.String(), ", quotas 102400KiB")
	assert.Contains(t, plan.String(), "quota in device")
	plan.Quotas[0].Size = budget.GiB
	restore := budget.SetLimits(group)
	_, err = budget.Open(plan)
	restore()
	assert.ErrorContains(t, err, "quotas 1048576KiB")
	assert.ErrorContains(t, err, "lower quotas (1GiB) in the plan")
}

// TestQuotaGivesBack: a reservation that was granted as ctx ended holds no bytes.
func TestQuotaGivesBack(t *testing.T) {
	b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 10})
	q := b.Quota("query")
	for range 500 {
		r := reserve(t, q, 10)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := q.Reserve(ctx, 10)
			ended <- err
		}()
		for budget.QuotaWaiting(q) == 0 {
			runtime.Gosched()
		}
		cancel()
		r.Release()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Zero(t, budget.QuotaReport(q).Used)
	}
	require.NoError(t, b.Close())
}

// TestQuotaFaults: errors of quotas in a plan name the key.
func TestQuotaFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{"query": 0}`:                                    "quotas.query.size: 0 is out of range: give 1 to 64TiB",
		`{"query": "1kb"}`:                                `quotas.query: "1kb" is not a size`,
		`{"Query": 1}`:                                    `quotas.Query: "Query" has "Q"`,
		`{"frame": 1}`:                                    `quotas.frame: "frame" is the name of another part`,
		`{"level": 1}`:                                    `quotas.level: "level" is the name of another part`,
		`{"query": 1, "query": 2}`:                        "quotas.query: given twice",
		`{"query": {"size": 9, "in": "c_heap"}}`:          `quotas.query.in: "c_heap" is no part of the plan`,
		`{"query": {"size": 9, "tenants": 70000}}`:        "quotas.query.tenants: 70000 is out of range",
		`{"query": {"size": 9, "tenant": 4}}`:             "quotas.query.tenant: 4, but quotas.query.tenants is 0",
		`{"query": {"size": 9, "tenant":10,"tenants":1}}`: "quotas.query.tenant: 10 is more than the size, 9",
		`{"query": {"size":9,"waiters":3,"tenants":3}}`:   "quotas.query.waiters: 3 is out of range",
		`{"query": {"size": 9, "piece": 2}}`:              "quotas.query.piece: 2 isn't a power of two that divides",
		`{"query": {"size": 9, "piece": 3}}`:              "quotas.query.piece: 3 isn't a power of two",
		`{"query": {"size": 9, "enforce": 0}}`:            "quotas.query.enforce: 0 is neither true nor false",
		`{"query": {"size": 9, "warn": "100%"}}`:          "quotas.query.warn: 100% is out of range",
		`{"query": {"sise": 9}}`:                          "quotas.query.sise: no such key",
	} {
		text := `{"name": "db", "regions": [{"name": "level", "size": 1}], "quotas": ` + text + "}"
		_, err := budget.ParsePlan([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
	_, err := budget.ParsePlan([]byte(`{"name": "db", "go_heap": "32MiB", "quotas": {"query": {"size": "16MiB",
		"in": "go_heap"}, "upload": {"size": "17MiB", "in": "go_heap"}}}`))
	assert.ErrorContains(t, err, "go_heap: 32MiB is less than the quotas in it, 33MiB; raise go_heap, or lower")
	plan, err := budget.ParsePlan([]byte(`{"name": "db", "quotas": {"query": {"size": 9, "enforce": true}, "gpu": 8}}`))
	require.NoError(t, err)
	assert.Equal(t, []budget.QuotaPlan{{Name: "query", Size: 9}, {Name: "gpu", Size: 8}}, plan.Quotas)
}

// TestQuotaSuggest: an observed quota gets its highest sum, and one that was too small keeps its
// size at least.
func TestQuotaSuggest(t *testing.T) {
	report := func(observe bool, n ...uint64) budget.Report {
		b := openQuotas(t, budget.QuotaPlan{Name: "query", Size: 1000, Tenants: 2, Piece: 8, Observe: observe})
		var list []*budget.Reservation
		for i, n := range n {
			r, err := tenantOf(t, b.Quota("query"), fmt.Sprint(i%2)).Reserve(t.Context(), n)
			assert.Equal(t, !observe && n > 1000, err != nil)
			list = append(list, &r)
		}
		for _, r := range list {
			r.Release()
		}
		require.NoError(t, b.Close())
		return b.Report()
	}
	for _, c := range []struct {
		reports      []budget.Report
		size, tenant uint64
	}{
		{[]budget.Report{report(true, 700, 600, 91)}, 1400, 800},
		{[]budget.Report{report(true, 100, 90)}, 200, 104},
		{[]budget.Report{report(true, 100, 90), report(true, 50, 200)}, 256, 200},
		{[]budget.Report{report(false, 100, 90, 1001)}, 1000, 0},
		{[]budget.Report{report(false)}, 1000, 0},
	} {
		plan, err := budget.Suggest(c.reports...)
		require.NoError(t, err)
		assert.Equal(t, c.size, plan.Quotas[0].Size)
		assert.Equal(t, c.tenant, plan.Quotas[0].Tenant)
		require.NoError(t, plan.Headroom(10).Check())
		assert.GreaterOrEqual(t, plan.Headroom(10).Quotas[0].Size, c.size+c.size/10)
	}
}

// TestQuotaSuggestInTheGoHeap: a suggested Go heap holds the quotas in it, also with headroom.
func TestQuotaSuggestInTheGoHeap(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "db", GoHeap: 32 * budget.MiB, Quotas: []budget.QuotaPlan{
		{Name: "query", Size: 16 * budget.MiB, In: "go_heap", Observe: true}}})
	require.NoError(t, err)
	r := reserve(t, b.Quota("query"), 40*budget.MiB)
	r.Release()
	require.NoError(t, b.Close())
	plan, err := budget.Suggest(b.Report())
	require.NoError(t, err)
	assert.EqualValues(t, 40*budget.MiB, plan.GoHeap)
	assert.EqualValues(t, 44*budget.MiB, plan.Headroom(10).GoHeap)
}

// TestSlotsWaitIsKept: the slot of a goroutine that has waited isn't another's.
func TestSlotsWaitIsKept(t *testing.T) {
	plan := rooms(false)
	plan.Regions[1].Slots, plan.Regions[1].Waiters = 1, 1
	b, err := budget.Open(plan)
	require.NoError(t, err)
	s := b.Slots("room")
	for range 300 {
		room, err := s.AcquireWait(t.Context())
		require.NoError(t, err)
		served := make(chan budget.Region)
		go func() {
			room, err := s.AcquireWait(t.Context())
			assert.NoError(t, err)
			served <- room
		}()
		for b.Published().Arena("room 0").Waits.Waiting == 0 {
			runtime.Gosched()
		}
		require.NoError(t, room.Release(t.Context()))
		_, err = s.AcquireAt(0)
		assert.ErrorIs(t, err, budget.ErrNoSlot)
		_, err = s.Acquire()
		assert.ErrorIs(t, err, budget.ErrNoSlot)
		if room = <-served; t.Failed() {
			return
		}
		require.NoError(t, room.Release(t.Context()))
	}
	assert.Equal(t, 1, s.Available())
	require.NoError(t, b.Close())
}
