package scope_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

func labels(b *budget.Budget) (held []scope.Usage) {
	for _, u := range b.Report().Arenas[0].Labels {
		if u.Bytes != 0 || u.Peak == 0 {
			held = append(held, scope.Usage{Name: u.Name, Bytes: u.Bytes})
		}
	}
	return held
}

func inLevel(t *testing.T, b *budget.Budget, fn func(s scope.Scope) error) error {
	t.Helper()
	type nothing struct{}
	_, err := budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*nothing, error) { return nil, fn(s) })
	return err
}

func TestLabelOfAScopeThatCloses(t *testing.T) {
	outer := open(t).Scratch(0, 0).Open("outer")
	require.NoError(t, scope.Label(outer, "a", func() error {
		s := outer.Open("s")
		assert.PanicsWithError(t,
			`scope: BUG: Label of scope "outer" of scratch 0.0 while scope "s", opened in it, is open; close "s" first`,
			func() { _ = scope.Label(outer, "c", func() error { panic("it ran") }) })
		require.NoError(t, scope.Label(s, "b", func() error { s.Bytes(8); return s.Close() }))
		outer.Bytes(5)
		return nil
	}))
	err := outer.Do("full", func(s scope.Scope) error { s.Bytes(1 << 20); return nil })
	var full *scope.FullError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, []scope.Usage{{Name: "outer", Bytes: 40, Objects: counted(2)}, {Name: "a", Bytes: 5}}, full.Top)
	require.NoError(t, outer.Close())
	assert.PanicsWithError(t, "scope: BUG: Label of a closed scope of scratch 0.0", func() {
		_ = scope.Label(outer, "c", func() error { panic("it ran") })
	})
}

func TestTooManyLabels(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "few", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Limits: budget.Limits{Labels: 2}})
	ran := 0
	err := inLevel(t, b, func(s scope.Scope) error {
		for i := range 3 {
			for range 2 { // a name in the table needs no place
				if err := scope.Label(s, fmt.Sprint(i), func() error { ran++; return nil }); err != nil {
					return err
				}
			}
		}
		return nil
	})
	assert.EqualError(t, err,
		`budget "few": region level: all 2 places for labels are taken: scope "level" asked for one more; `+
			`raise limits.labels in the plan to 3 or more`)
	assert.Equal(t, 4, ran)
}

// booked models random labels and their bytes.
type booked struct {
	t      *testing.T
	b      *budget.Budget
	random *rand.Rand
	want   map[string]uint64
	ever   map[string]uint64 // all bytes ever allocated under a name
	making int               // running constructors: their bytes are booked meanwhile
}

// back returns a function that takes back the bytes booked since the call.
func (k *booked) back() func() {
	before := maps.Clone(k.want)
	return func() { k.want = before }
}

// book does random work under a name: it allocates and opens labels, in the same scope, in a scope
// inside, and in constructors that fail. It ends in each way that a function can.
func (k *booked) book(s scope.Scope, depth int) {
	defer func() { _ = recover() }()
	name := string(rune('a' + k.random.IntN(5)))
	_ = scope.Label(s, name, func() error {
		if _, there := k.want[name]; !there {
			k.want[name] = 0
		}
		for range k.random.IntN(6) {
			n := k.random.Uint64N(100)
			switch what := k.random.IntN(8); {
			case what == 0 && depth < 4:
				k.book(s, depth+1)
			case what == 1 && depth < 4:
				_ = s.Do("inner", func(inner scope.Scope) error {
					defer k.back()()
					k.book(inner, depth+1)
					k.compare()
					return nil
				})
			case what == 2: // leaves no bytes
				k.fail(s, n, depth)
			default:
				s.AllocUnzeroed(n, 1)
				k.want[name] += n
				k.ever[name] += n
			}
		}
		k.compare()
		if depth == 4 && k.random.IntN(2) == 0 {
			panic("boom")
		}
		return errMark
	})
}

// fail runs a constructor that fails, which may end the goroutine.
func (k *booked) fail(s scope.Scope, n uint64, depth int) {
	defer k.back()()
	k.making++
	defer func() { k.making-- }()
	_, _ = marks.Make(s, func(*mark) error {
		s.AllocUnzeroed(n, 1)
		if depth < 4 {
			k.book(s, depth+1)
		}
		if k.random.IntN(20) == 0 {
			s.Defer(runtime.Goexit)
		}
		return errMark
	})
}

func (k *booked) compare() {
	if k.t.Failed() || k.making > 0 {
		return
	}
	got := map[string]uint64{}
	for _, u := range labels(k.b) {
		got[u.Name] = u.Bytes
	}
	for name, bytes := range k.want {
		assert.Equal(k.t, bytes, got[name], name)
		delete(got, name)
	}
	for name, bytes := range got {
		assert.Zero(k.t, bytes, name)
	}
}

// TestLabelsModel books at random and compares with sums.
func TestLabelsModel(t *testing.T) {
	b := budgettest.Open(t,
		budget.Plan{Name: "model", Regions: []budget.RegionPlan{{Name: "level", Size: 8 * budget.MiB}}})
	k := booked{t: t, b: b, random: rand.New(rand.NewPCG(7, 8)), ever: map[string]uint64{}}
	for range 20 {
		k.want = map[string]uint64{}
		require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
			s.Bytes(1000) // under no label
			for range 50 {
				done := make(chan struct{})
				go func() {
					defer close(done)
					k.book(s, 0)
				}()
				<-done
				k.compare()
			}
			return nil
		}))
		k.compare() // the region keeps its labels
		require.NoError(t, b.Region("level").Rewind(t.Context()))
		assert.Empty(t, labels(b))
		for _, u := range b.Report().Arenas[0].Labels {
			assert.GreaterOrEqual(t, u.Allocated, max(u.Peak, k.ever[u.Name]),
				"%s: constructors that fail take nodes, too", u.Name)
			assert.Less(t, u.Allocated, 2*k.ever[u.Name], u.Name)
		}
	}
}

func byName(b *budget.Budget) []scope.Usage { return b.Region("level").Report().Scopes }

func TestScopesAreCountedByName(t *testing.T) {
	b := open(t)
	assert.Empty(t, byName(b), "nothing was loaded")
	require.NoError(t, b.Scratch(0, 0).Do("x", func(s scope.Scope) error { s.AllocUnzeroed(7, 1); return nil }))
	assert.Empty(t, b.Report().Arena("scratch 0.0").Scopes, "scratch doesn't count them")
	assert.EqualValues(t, 7, b.Report().Arena("scratch 0.0").Peak)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		s.AllocUnzeroed(100, 1)
		for n := uint64(1); n <= 3; n++ {
			mesh := s.Open("mesh")
			mesh.AllocUnzeroed(10*n, 1)
			inner := mesh.Open("texture")
			inner.AllocUnzeroed(5, 1)
			inner.AllocUnzeroed(6, 1)
			again := inner.Open("mesh") // two with one name at once
			again.AllocUnzeroed(7, 1)
			require.NoError(t, again.Close())
			require.NoError(t, inner.Close())
			mesh.AllocUnzeroed(1, 1)
			require.NoError(t, mesh.Close())
		}
		mesh := s.Open("mesh")
		mesh.AllocUnzeroed(2, 1)
		assert.Equal(t, []scope.Usage{
			{Name: "level", Bytes: 100, Objects: counted(1), Peak: 100, PeakObjects: counted(1), Allocated: 100,
				AllocatedObjects: counted(1)},
			{Name: "mesh", Bytes: 2, Objects: counted(1), Peak: 37, PeakObjects: counted(2), Allocated: 86,
				AllocatedObjects: counted(10)},
			{Name: "texture", Peak: 11, PeakObjects: counted(2), Allocated: 33, AllocatedObjects: counted(6)},
		}, byName(b), "what is open counts too")
		require.NoError(t, mesh.Close())
		s.Temp(64).AllocUnzeroed(64, 1)
		return nil
	}))
	gone := []scope.Usage{{Name: "mesh", Peak: 37, PeakObjects: counted(2), Allocated: 86,
		AllocatedObjects: counted(10)},
		{Name: "texture", Peak: 11, PeakObjects: counted(2), Allocated: 33, AllocatedObjects: counted(6)},
		{Name: "temp", Peak: 64, Allocated: 64}}
	level := scope.Usage{Name: "level", Bytes: 120, Objects: counted(2), Peak: 120, PeakObjects: counted(2),
		Allocated: 120, AllocatedObjects: counted(2)}
	assert.Equal(t, append([]scope.Usage{level}, gone...), byName(b))
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error { s.AllocUnzeroed(7, 1); return nil }))
	level.Bytes, level.Objects, level.Allocated, level.AllocatedObjects = 7, counted(1), 127, counted(3)
	assert.Equal(t, append([]scope.Usage{level}, gone...), byName(b), "since Open")
}

func TestMoreNamesThanPlacesAreOthers(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "few", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Limits: budget.Limits{Labels: 2}})
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		for n, name := range []string{"a", "b", "c"} { // level and a take all places
			x := s.Open(name)
			x.AllocUnzeroed(uint64(n+1), 1)
			y := x.Open("d")
			y.AllocUnzeroed(10, 1)
			require.NoError(t, y.Close())
			require.NoError(t, x.Close())
		}
		x := s.Open("e")
		x.AllocUnzeroed(2, 1)
		require.NoError(t, scope.Label(x, "sound", func() error { x.AllocUnzeroed(3, 1); return nil }))
		require.NoError(t, scope.Label(x, "music", func() error { x.AllocUnzeroed(4, 1); return nil }))
		require.NoError(t, x.Close())
		for _, name := range []string{"sound", "more", "most"} {
			x := s.Open("f")
			require.NoError(t, scope.Label(x, name, func() error { x.AllocUnzeroed(1, 1); return nil }))
			held := slices.DeleteFunc(b.Region("level").Report().Labels, func(u scope.Usage) bool {
				return u.Bytes == 0
			})
			require.Len(t, held, 1)
			assert.Equal(t, name, held[0].Name, "what is live has its name")
			assert.EqualValues(t, 1, held[0].Bytes)
			require.NoError(t, x.Close())
		}
		return nil
	}))
	r := b.Region("level").Report()
	assert.Equal(t, []scope.Usage{{Name: "level"}, {Name: "a", Peak: 1, PeakObjects: counted(1), Allocated: 1,
		AllocatedObjects: counted(1)},
		{Name: "others", Peak: 100, PeakObjects: counted(5), Allocated: 258, AllocatedObjects: counted(16)}}, r.Scopes)
	assert.Equal(t, []scope.Usage{{Name: "sound", Peak: 3, Allocated: 4}, {Name: "music", Peak: 4, Allocated: 4},
		{Name: "others", Peak: 1, Allocated: 2}}, r.Labels)
}

// TestNamesOfScopesThatGoAnotherWay: a constructor that fails, a goroutine that ends, a scope of C,
// a name in the block.
func TestNamesOfScopesThatGoAnotherWay(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		x := s.Open("x")
		_, err := marks.Make(x, func(m *mark) error { x.AllocUnzeroed(84, 1); return errMark })
		require.ErrorIs(t, err, errMark)
		x.AllocUnzeroed(1, 1)
		require.NoError(t, x.Close())

		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = s.Do("ends", func(s scope.Scope) error {
				s.AllocUnzeroed(40, 1)
				s.Defer(func() { runtime.Goexit() })
				return nil
			})
		}()
		<-done

		bytes := s.Bytes(4)
		copy(bytes, "Ring")
		ring := s.Open(unsafe.String(unsafe.SliceData(bytes), 4))
		ring.AllocUnzeroed(3, 1)
		require.NoError(t, ring.Close())
		copy(bytes, "Wing")

		header, _ := s.C()
		h := (*arena_c.Scopes)(header)
		h.Bump(h.Open(), 9, 0) // as C does it
		assert.Equal(t, scope.Usage{Name: "C", Bytes: 9, Objects: counted(1), Peak: 9, PeakObjects: counted(1),
			Allocated: 9, AllocatedObjects: counted(1)}, byName(b)[4])
		h.Close(h.Top())
		return nil
	}))
	assert.Equal(t, []scope.Usage{
		{Name: "level", Bytes: 4, Objects: counted(1), Peak: 4, PeakObjects: counted(1), Allocated: 4,
			AllocatedObjects: counted(1)},
		{Name: "x", Peak: 108, PeakObjects: counted(2), Allocated: 109, AllocatedObjects: counted(3)},
		{Name: "ends", Peak: 56, PeakObjects: counted(2), Allocated: 56, AllocatedObjects: counted(2)},
		{Name: "Ring", Peak: 3, PeakObjects: counted(1), Allocated: 3, AllocatedObjects: counted(1)},
		{Name: "C", Peak: 9, PeakObjects: counted(1), Allocated: 9, AllocatedObjects: counted(1)}}, byName(b))
}

func TestLabelPeaks(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		return scope.Label(s, "a", func() error {
			s.AllocUnzeroed(10, 1)
			inner := s.Open("inner")
			require.NoError(t, scope.Label(inner, "a", func() error { inner.AllocUnzeroed(20, 1); return nil }))
			require.NoError(t, inner.Close()) // 30 at once
			s.AllocUnzeroed(5, 1)
			_, err := marks.Make(s, func(m *mark) error {
				return scope.Label(s, "b", func() error { s.AllocUnzeroed(500, 1); return errMark })
			})
			require.ErrorIs(t, err, errMark)
			return nil
		})
	}))
	want := []scope.Usage{{Name: "a", Bytes: 15, Peak: 40, Allocated: 60}, {Name: "b", Peak: 500, Allocated: 500}}
	assert.Equal(t, want, b.Region("level").Report().Labels)
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	want[0].Bytes = 0
	assert.Equal(t, want, b.Region("level").Report().Labels)
	require.NoError(t, b.Close())
	assert.Equal(t, want, b.Report().Arenas[0].Labels)
}

func TestCountingNamesAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector and AddressSanitizer allocate for themselves: go test ./scope runs it")
	}
	b := open(t)
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		i := 0
		assert.Zero(t, testing.AllocsPerRun(90, func() {
			x := s.Open(names[i])
			i++
			x.AllocUnzeroed(8, 8)
			x.Temp(8).AllocUnzeroed(8, 8)
			_ = x.Close()
		}), "also with names that are new, and more of them than places")
		return nil
	}))
}

type openCounts = struct{ Scopes, Pools, Owned, Labels int }

func TestMostOpen(t *testing.T) {
	for range 2 { // the second budget is in the first one's range, and finds its generations
		b := open(t)
		scratch := b.Scratch(0, 0)
		assert.Zero(t, scratch.Stats().MostOpen)
		s := scratch.Open("a")
		assert.Equal(t, openCounts{Scopes: 1}, scratch.Stats().MostOpen, "while it is open")
		require.NoError(t, s.Open("b").Close())
		held := s.Keep(1)
		assert.True(t, held.Cancel())
		s.Keep(2)
		s.Keep(3)
		points.Pool(s, 3)
		assert.Equal(t, openCounts{Scopes: 2, Pools: 1, Owned: 2}, scratch.Stats().MostOpen)
		inner := s.Open("c")
		points.Pool(inner, 1)
		for _, name := range []string{"x", "y", "x"} {
			require.NoError(t, scope.Label(inner, name, func() error { return nil }))
		}
		require.NoError(t, inner.Close())
		require.NoError(t, s.Close())
		want := openCounts{Scopes: 2, Pools: 2, Owned: 2, Labels: 2}
		assert.Equal(t, want, scratch.Stats().MostOpen, "nobody looked while they were open")
		require.NoError(t, scratch.Open("d").Close())
		assert.Equal(t, want, scratch.Stats().MostOpen)
		assert.EqualValues(t, want, b.Report().Arena("scratch 0.0").MostOpen)
		require.NoError(t, b.Close())
	}
}

func TestMostOpenCountsWhatCOpens(t *testing.T) {
	scratch, s := opened(t, "a")
	header, _ := s.C()
	h := (*arena_c.Scopes)(header)
	h.Open()
	pool, code := h.PoolOpen(h.Open(), 8, 8, 1, 0, false)
	require.Equal(t, arena_c.OK, code)
	pool.Close()
	h.Chain = h.Top().Chain
	h.Close(h.Top())
	h.Close(h.Top())
	require.NoError(t, s.Close())
	assert.Equal(t, openCounts{Scopes: 3, Pools: 1}, scratch.Stats().MostOpen)
	assert.Zero(t, scratch.Stats().Pools)
}
