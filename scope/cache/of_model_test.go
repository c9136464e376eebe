package cache_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/cache"
	"github.com/upfront-mem/upfront/tests/step"
)

// chunk is a value that knows its key.
type chunk struct {
	At   int64
	Made uint64 // counts the values
	_    [3]uint64
}

// ended has the values whose finalizer ran, for the test that runs.
var ended []chunk

var (
	places     = scope.Plain[int64]()
	chunks     = scope.Plain[chunk]()
	mortals    = scope.Object(func(x *chunk) error { ended = append(ended, *x); return nil })
	background = context.Background()
	errLoad    = errors.New("no such chunk")
)

var plan = budget.Plan{Name: "test", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB}},
	Scratch: budget.ScratchPlan{Workers: 2, Size: 256 * budget.KiB}}

func open(t testing.TB) *budget.Budget {
	ended = nil
	return budgettest.Open(t, plan)
}

// entry is a value in the model.
type entry struct {
	key           int64
	made          uint64
	pins, reads   int
	aside, inMain bool
	deleted       bool
	x             *chunk
	h             arena.Handle[chunk]
}

// model is S3-FIFO over slices, the oldest entry first.
type model struct {
	n, limit    int
	small, main []*entry
	has         map[int64]*entry
	deleted     int     // entries without a key that are pinned
	ghosts      []int64 // -1: a key that came back
	ring        int
	ended       []chunk
	stats       cache.OfStats
}

func newModel(n int) *model {
	m := &model{n: n, limit: n, has: map[int64]*entry{}, ghosts: make([]int64, n)}
	for i := range m.ghosts {
		m.ghosts[i] = -1
	}
	return m
}

func (m *model) pinned() (n int) {
	n = m.deleted
	for _, e := range m.has {
		if e.pins > 0 {
			n++
		}
	}
	return n
}

// choose is the policy, in the words of the paper.
func (m *model) choose() (victim *entry, isNew bool) {
	examined := uint64(0)
	defer func() {
		m.stats.Examined += examined
		m.stats.MaxExamined = max(m.stats.MaxExamined, examined)
	}()
	for len(m.small)+len(m.main) > 0 {
		fromSmall := len(m.main) == 0 || len(m.small) >= max(m.limit/10, 1)
		var e *entry
		if fromSmall {
			e, m.small = m.small[0], m.small[1:]
		} else {
			e, m.main = m.main[0], m.main[1:]
		}
		examined++
		wanted := e.reads > 0 && examined <= 32
		if fromSmall {
			e.reads = 0
		} else {
			e.reads = max(e.reads-1, 0)
		}
		switch {
		case e.pins > 0:
			e.aside = true
		case wanted:
			e.inMain = true
			m.main = append(m.main, e)
		default:
			return e, fromSmall
		}
	}
	return nil, false
}

func (m *model) evict() bool {
	e, isNew := m.choose()
	if e == nil {
		return false
	}
	m.stats.Evictions++
	m.end(e)
	if isNew {
		m.ghosts[m.ring] = e.key
		m.ring = (m.ring + 1) % m.n
	}
	return true
}

func (m *model) end(e *entry) {
	delete(m.has, e.key)
	m.ended = append(m.ended, chunk{At: e.key, Made: e.made})
}

// enter makes room for a key, and forgets that it was remembered.
func (m *model) enter(key int64) (ok, returns bool) {
	for m.used() >= m.limit {
		if !m.evict() {
			return false, false
		}
	}
	if i := slices.Index(m.ghosts, key); i >= 0 {
		m.ghosts[i] = -1
		return true, true
	}
	return true, false
}

// used is the number of entries, also of deleted ones.
func (m *model) used() int { return len(m.has) + m.deleted }

func (m *model) add(e *entry, returns bool) {
	e.pins, e.inMain = 1, returns
	if returns {
		m.main = append(m.main, e)
	} else {
		m.small = append(m.small, e)
	}
	m.has[e.key] = e
}

func (m *model) read(e *entry) {
	e.pins++
	e.reads = min(e.reads+1, 3)
	m.stats.Hits++
}

func (m *model) unpin(e *entry) {
	e.pins--
	switch {
	case e.pins > 0:
	case e.deleted:
		m.deleted--
	case e.aside:
		e.aside = false
		m.main = append(m.main, e)
	}
}

func (m *model) remove(e *entry) {
	is := func(o *entry) bool { return o == e }
	m.small, m.main = slices.DeleteFunc(m.small, is), slices.DeleteFunc(m.main, is)
	if e.pins == 0 {
		m.end(e)
		return
	}
	delete(m.has, e.key)
	e.deleted = true
	m.deleted++
}

// TestTheModelAgrees: after each of many random operations on caches of several sizes, the cache
// and the model have the same values, and evicted the same in the same order.
func TestTheModelAgrees(t *testing.T) {
	operations := step.Pick(200_000, 1_000_000, 10_000_000)
	if (arena_c.Crossing || arena_c.Race) && step.Now() < step.Gate {
		operations = step.Pick(20_000, 50_000, 0)
	}
	for _, objects := range []bool{true, false} {
		for i, n := range []int{1, 2, 3, 10, 11, 64} {
			t.Run(fmt.Sprintf("%d objects %v", n, objects), func(t *testing.T) {
				s := open(t).Scratch(0, 0).Open("world")
				stats := play(t, s, n, objects, operations/12, rand.NewPCG(uint64(i), 46))
				require.NotZero(t, stats.Evictions)
				require.NoError(t, s.Close())
			})
		}
	}
}

// play does random operations with a cache of n values, and compares it with the model.
func play(t testing.TB, s scope.Scope, n int, objects bool, operations int, source rand.Source) cache.OfStats {
	random := rand.New(source)
	m, made := newModel(n), uint64(0)
	c := cache.New(s, places, chunks, n)
	if objects {
		c = cache.NewObjects(s, places, mortals, n)
	}
	var pins []*entry
	var stale []arena.Handle[chunk]
	keyOf := func() int64 { // most keys are few; scans and a hot set that moves
		switch at := int64(made / 1000); random.IntN(4) {
		case 0:
			return int64(random.IntN(n*4)) + 100000
		case 1:
			return int64(made)
		default:
			return at + int64(random.IntN(n+1))
		}
	}
	pinned := func(e *entry, x *chunk) {
		require.Equal(t, chunk{At: e.key, Made: e.made}, *x)
		require.True(t, e.x == nil || e.x == x, "a value moved")
		e.x, e.h = x, c.Handle(x)
		pins = append(pins, e)
	}
	unpin := func() {
		if len(pins) > 0 {
			i := random.IntN(len(pins))
			c.Unpin(pins[i].x)
			m.unpin(pins[i])
			pins = slices.Delete(pins, i, i+1)
		}
	}
	full := func(err error, ok bool) bool {
		if ok {
			require.NoError(t, err)
			return false
		}
		var full *cache.InUseError
		m.stats.Refused++
		require.ErrorIs(t, err, scope.ErrFull)
		require.ErrorAs(t, err, &full)
		require.Equal(t, [3]int{n, m.limit, m.pinned()}, [3]int{full.N, full.Limit, full.Pinned})
		return true
	}
	for range operations {
		k := keyOf()
		e := m.has[k]
		switch op := random.IntN(100); {
		case op < 40:
			x := c.Get(k)
			require.Equal(t, e != nil, x != nil, "Get of %d", k)
			if e == nil {
				m.stats.Misses++
			} else {
				m.read(e)
				pinned(e, x)
			}
		case op < 65:
			fails, deletes := random.IntN(8) == 0, random.IntN(8) == 0
			called := false
			x, err := c.GetOrLoad(background, k, func(_ context.Context, x *chunk) error {
				called = true
				require.Equal(t, chunk{}, *x)
				*x = chunk{At: k, Made: made + 1}
				if deletes {
					require.Equal(t, objects, c.Delete(k) != nil)
					require.Nil(t, c.Get(k))
					m.stats.Misses++
				}
				if fails {
					return errLoad
				}
				return nil
			})
			if e != nil {
				require.False(t, called)
				require.NoError(t, err)
				m.read(e)
				pinned(e, x)
				break
			}
			ok, returns := m.enter(k)
			require.Equal(t, ok, called)
			if ok {
				m.stats.Misses++
				m.stats.Loads++
			}
			if ok && fails {
				m.stats.Failed++
				require.Nil(t, x)
				require.Equal(t, errLoad, err)
			} else if !full(err, ok) {
				made++
				e := &entry{key: k, made: made}
				m.add(e, returns)
				if deletes && !objects {
					m.remove(e)
				}
				pinned(e, x)
			}
		case op < 70:
			x, err := c.Add(k)
			if e != nil {
				require.ErrorIs(t, err, cache.ErrPresent)
				break
			}
			if ok, returns := m.enter(k); !full(err, ok) {
				require.Equal(t, chunk{}, *x)
				made++
				*x = chunk{At: k, Made: made}
				e := &entry{key: k, made: made}
				m.add(e, returns)
				pinned(e, x)
			}
		case op < 94:
			unpin()
			if len(pins) > random.IntN(n)+1 {
				unpin()
			}
		case op < 96:
			err := c.Delete(k)
			refused := objects && e != nil && e.pins > 0
			require.Equal(t, refused, err != nil)
			if e != nil && !refused {
				stale = append(stale, e.h)
				m.remove(e)
			}
		case op < 99:
			if len(m.has) > 0 {
				e := m.has[slices.Sorted(maps.Keys(m.has))[random.IntN(len(m.has))]]
				x := c.At(e.h)
				require.NotNil(t, x)
				m.read(e)
				pinned(e, x)
			}
			if n := len(stale); n > 0 {
				require.Nil(t, c.At(stale[n-1]))
				m.stats.Misses++
				stale = stale[:n-1]
			}
		case random.IntN(10) > 0:
			to := random.IntN(n) + 1
			err := c.Resize(to)
			if m.pinned() > to {
				full(err, false)
				break
			}
			m.limit = to
			for m.used() > to {
				require.True(t, m.evict())
			}
			require.NoError(t, err)
		default:
			err := c.Clear()
			require.Equal(t, m.pinned() > 0, errors.Is(err, scope.ErrFull))
			if err != nil {
				m.stats.Refused++
			}
			for k, e := range m.has {
				if e.pins == 0 {
					m.remove(m.has[k])
				}
			}
			m.ring = 0
			for i := range m.ghosts {
				m.ghosts[i] = -1
			}
			slices.SortFunc(m.ended, byMade)
			slices.SortFunc(ended, byMade)
		}
		if objects {
			require.True(t, slices.Equal(m.ended, ended), "evicted %v, want %v", ended, m.ended)
		}
		ended, m.ended = ended[:0], m.ended[:0]
		m.stats.Len, m.stats.Limit, m.stats.Pinned = m.used(), m.limit, m.pinned()
		require.Equal(t, m.stats, c.Stats())
	}
	require.LessOrEqual(t, m.stats.MaxExamined, uint64(32+n))
	for k, e := range m.has {
		e.x = nil
		x := c.Get(k)
		require.NotNil(t, x)
		require.Equal(t, chunk{At: k, Made: e.made}, *x)
	}
	return m.stats
}

func byMade(a, b chunk) int { return int(a.Made) - int(b.Made) }

// instrumented is true where a sanitizer's runtime allocates for itself.
const instrumented = arena_c.Race || arena_c.Asan
