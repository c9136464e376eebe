package budget_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// modelQuota is the rules of a quota, in lists. Tenant 0 is the quota itself.
type modelQuota struct {
	size, tenant uint64
	waiters      int
	held         []uint64
	wait         [][]*modelCall // of each tenant, first in first
	turns        []int          // tenants that wait for the whole, in turn
}

// modelCall is a Reserve of a schedule.
type modelCall struct {
	tenant  int
	n       uint64
	r       budget.Reservation
	err     error
	done    bool // Reserve has returned
	granted bool // by the model
	cancel  context.CancelFunc
}

func newModelQuota(size, tenant uint64, tenants, waiters int) *modelQuota {
	return &modelQuota{size: size, tenant: tenant, waiters: waiters, held: make([]uint64, tenants+1),
		wait: make([][]*modelCall, tenants+1)}
}

func (m *modelQuota) limit(t int) uint64 {
	if t == 0 {
		return m.size
	}
	return m.tenant
}

func (m *modelQuota) sum() (sum uint64) {
	for _, held := range m.held {
		sum += held
	}
	return sum
}

func (m *modelQuota) waiting() (n int) {
	for _, list := range m.wait {
		n += len(list)
	}
	return n
}

// reserve reports whether the call is refused; else it is granted or waits.
func (m *modelQuota) reserve(c *modelCall) (full bool) {
	root, own := m.sum()+c.n <= m.size, m.held[c.tenant]+c.n <= m.limit(c.tenant)
	switch {
	case c.n > m.limit(c.tenant):
		return true
	case c.n == 0 || len(m.turns) == 0 && len(m.wait[c.tenant]) == 0 && root && own:
		m.held[c.tenant] += c.n
		c.granted = true
		return false
	}
	kept := 0 // places of tenants that don't wait
	for t, list := range m.wait {
		if len(list) == 0 && t != c.tenant {
			kept++
		}
	}
	if m.waiting()+kept >= m.waiters {
		return true
	}
	if m.wait[c.tenant] = append(m.wait[c.tenant], c); len(m.wait[c.tenant]) == 1 && (len(m.turns) > 0 || !root) {
		m.turns = append(m.turns, c.tenant)
	}
	return false
}

func (m *modelQuota) grow(t int, n uint64) (full bool) {
	if m.sum()+n > m.size || m.held[t]+n > m.limit(t) {
		return true
	}
	m.held[t] += n
	return false
}

func (m *modelQuota) give(t int, n uint64) {
	m.held[t] -= n
	m.serve(t)
}

func (m *modelQuota) cancel(c *modelCall) {
	t := c.tenant
	if m.wait[t] = slices.DeleteFunc(m.wait[t], func(w *modelCall) bool { return w == c }); len(m.wait[t]) == 0 {
		m.turns = slices.DeleteFunc(m.turns, func(of int) bool { return of == t })
	}
	m.serve(t)
}

// serve gives turns until the first that waits for the whole doesn't fit.
func (m *modelQuota) serve(changed int) {
	fits := func(t int) bool { return m.held[t]+m.wait[t][0].n <= m.limit(t) }
	if len(m.wait[changed]) > 0 && !slices.Contains(m.turns, changed) && fits(changed) {
		m.turns = append(m.turns, changed)
	}
	for len(m.turns) > 0 {
		t := m.turns[0]
		c := m.wait[t][0]
		if m.sum()+c.n > m.size {
			return
		}
		m.turns = m.turns[1:]
		if !fits(t) {
			continue
		}
		m.wait[t], m.held[t], c.granted = m.wait[t][1:], m.held[t]+c.n, true
		if len(m.wait[t]) > 0 {
			m.turns = append(m.turns, t)
		}
	}
}

// TestQuotaModel compares random schedules of a quota with the model, each call in a goroutine of a
// bubble. At its end, nothing is left of a schedule.
func TestQuotaModel(t *testing.T) {
	schedules := step.Pick(400, 4000, 1_000_000)
	if arena_c.Race || arena_c.Checked || arena_c.Asan { // they take ten times as long
		schedules = step.Pick(400, 4000, 50_000)
	}
	const each = 200 // schedules of a budget
	for first := 0; first < schedules; first += each {
		synctest.Test(t, func(t *testing.T) { modelSchedules(t, uint64(first), min(each, schedules-first)) })
		if t.Failed() {
			return
		}
	}
}

func modelSchedules(t *testing.T, seed uint64, count int) {
	r := rand.New(rand.NewPCG(seed, 68))
	tenants, size := r.IntN(4), 1+r.Uint64N(12)
	plan := budget.QuotaPlan{Name: "query", Size: size, Tenants: tenants, Waiters: tenants + 1 + r.IntN(4)}
	if tenants > 0 {
		plan.Tenant = 1 + r.Uint64N(size)
	}
	b, err := budget.Open(budget.Plan{Name: "model", Quotas: []budget.QuotaPlan{plan}})
	require.NoError(t, err)
	of := []*budget.Quota{b.Quota("query")}
	for i := range tenants {
		tenant, err := of[0].Tenant(fmt.Sprint(i))
		require.NoError(t, err)
		of = append(of, tenant)
	}
	for i := range count {
		s := modelSchedule{t: t, r: r, of: of, m: newModelQuota(size, plan.Tenant, tenants, plan.Waiters)}
		s.play(5 + r.IntN(20))
		if t.Failed() {
			t.Logf("seed %d, schedule %d: %+v", seed, i, plan)
			for _, c := range s.calls {
				c.cancel()
			}
			break
		}
	}
	if !t.Failed() {
		require.NoError(t, b.Close())
	}
}

type modelSchedule struct {
	t     *testing.T
	r     *rand.Rand
	of    []*budget.Quota
	m     *modelQuota
	calls []*modelCall // that wait or hold
}

func (s *modelSchedule) play(steps int) {
	for range steps {
		s.step()
		if s.agree(); s.t.Failed() {
			return
		}
	}
	for len(s.calls) > 0 && !s.t.Failed() {
		s.end(s.calls[s.r.IntN(len(s.calls))])
		s.agree()
	}
	assert.Zero(s.t, budget.QuotaReport(s.of[0]).Used)
}

func (s *modelSchedule) step() {
	if s.r.IntN(2) == 0 || len(s.calls) == 0 {
		s.reserve()
		return
	}
	c := s.calls[s.r.IntN(len(s.calls))]
	switch n := s.r.Uint64N(4); {
	case !c.granted || s.r.IntN(2) == 0:
		s.end(c)
	case s.r.IntN(2) == 0:
		err := c.r.Grow(n)
		full := s.m.grow(c.tenant, n)
		if assert.Equal(s.t, full, errors.Is(err, budget.ErrFull), "Grow: %v", err); !full {
			c.n += n
		}
	default:
		n = min(n, c.n)
		c.r.Shrink(n)
		c.n -= n
		s.m.give(c.tenant, n)
	}
}

func (s *modelSchedule) reserve() {
	ctx, cancel := context.WithCancel(s.t.Context())
	c := &modelCall{tenant: s.r.IntN(len(s.of)), n: s.r.Uint64N(s.m.size + 2), cancel: cancel}
	go func() {
		c.r, c.err = s.of[c.tenant].Reserve(ctx, c.n)
		c.done = true
	}()
	synctest.Wait()
	if full := s.m.reserve(c); full {
		assert.True(s.t, c.done && errors.Is(c.err, budget.ErrFull), "refused by the model, but %v", c.err)
		cancel()
		return
	}
	s.calls = append(s.calls, c)
}

// end releases the call's bytes, or ends its wait.
func (s *modelSchedule) end(c *modelCall) {
	s.calls = slices.DeleteFunc(s.calls, func(other *modelCall) bool { return other == c })
	if c.granted {
		c.r.Release()
		s.m.give(c.tenant, c.n)
	}
	c.cancel()
	if !c.granted {
		synctest.Wait()
		s.m.cancel(c)
		assert.True(s.t, c.done && errors.Is(c.err, context.Canceled), "ended, but %v", c.err)
	}
}

func (s *modelSchedule) agree() {
	synctest.Wait()
	for _, c := range s.calls {
		assert.Equal(s.t, c.granted, c.done, "%d bytes of tenant %d", c.n, c.tenant)
		assert.NoError(s.t, c.err)
	}
	q := budget.QuotaReport(s.of[0])
	assert.Equal(s.t, s.m.sum(), q.Used)
	assert.Equal(s.t, s.m.waiting(), q.Waits.Waiting)
	assert.LessOrEqual(s.t, q.Peak, q.Size)
}
