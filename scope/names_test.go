package scope_test

import (
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
	"github.com/upfront-mem/upfront/scope"
)

// byName is what scopes of the region level hold and held.
func byName(b *budget.Budget) []scope.Usage { return b.Region("level").Report().Scopes }

func TestScopesAreCountedByName(t *testing.T) {
	b := open(t)
	assert.Empty(t, byName(b), "nothing was loaded")
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		s.AllocUnzeroed(100, 1)
		for n := uint64(1); n <= 3; n++ {
			mesh := s.Open("mesh")
			mesh.AllocUnzeroed(10*n, 1)
			inner := mesh.Open("texture")
			inner.AllocUnzeroed(5, 1)
			inner.AllocUnzeroed(6, 1)
			again := inner.Open("mesh") // two of a name at once
			again.AllocUnzeroed(7, 1)
			require.NoError(t, again.Close())
			require.NoError(t, inner.Close())
			mesh.AllocUnzeroed(1, 1)
			require.NoError(t, mesh.Close())
		}
		mesh := s.Open("mesh")
		mesh.AllocUnzeroed(2, 1)
		assert.Equal(t, []scope.Usage{
			{Name: "level", Bytes: 100, Objects: counted(1), Peak: 100, PeakObjects: counted(1)},
			{Name: "mesh", Bytes: 2, Objects: counted(1), Peak: 37, PeakObjects: counted(2)},
			{Name: "texture", Peak: 11, PeakObjects: counted(2)},
		}, byName(b), "what is open counts too")
		require.NoError(t, mesh.Close())
		s.Temp(64).AllocUnzeroed(64, 1)
		return nil
	}))
	temp := scope.Usage{Name: "temp", Peak: 64}
	assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 120, Objects: counted(2), Peak: 120, PeakObjects: counted(2)},
		{Name: "mesh", Peak: 37, PeakObjects: counted(2)}, {Name: "texture", Peak: 11, PeakObjects: counted(2)}, temp}, byName(b))
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error { s.AllocUnzeroed(7, 1); return nil }))
	assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 7, Objects: counted(1), Peak: 120, PeakObjects: counted(2)},
		{Name: "mesh", Peak: 37, PeakObjects: counted(2)}, {Name: "texture", Peak: 11, PeakObjects: counted(2)}, temp},
		byName(b), "since Open")
}

func TestScratchDoNotCountNames(t *testing.T) {
	b := open(t)
	require.NoError(t, b.Scratch(0, 0).Do("x", func(s scope.Scope) error { s.AllocUnzeroed(7, 1); return nil }))
	assert.Empty(t, b.Report().Beside[0].Scopes)
	assert.EqualValues(t, 7, b.Report().Beside[0].Peak)
}

func TestMoreNamesThanPlacesAreOthers(t *testing.T) {
	b := budgettest.Open(t, budget.Plan{Name: "few", Regions: []budget.RegionPlan{{Name: "level", Size: budget.MiB}},
		Limits: budget.Limits{Labels: 2}})
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		for n, name := range []string{"a", "b", "c"} { // level and a have the places
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
			assert.Equal(t, name, b.Region("level").Report().Labels[0].Name, "what is live has its name")
			assert.EqualValues(t, 1, b.Region("level").Report().Labels[0].Bytes)
			require.NoError(t, x.Close())
		}
		return nil
	}))
	r := b.Region("level").Report()
	assert.Equal(t, []scope.Usage{{Name: "level"}, {Name: "a", Peak: 1, PeakObjects: counted(1)},
		{Name: "others", Peak: 100, PeakObjects: counted(5)}}, r.Scopes)
	assert.Equal(t, []scope.Usage{{Name: "sound", Peak: 3}, {Name: "music", Peak: 4},
		{Name: "others", Peak: 1}}, r.Labels)
}

// TestNamesOfScopesThatGoAnotherWay: a constructor that fails, a goroutine that ends, a scope of C, a name in the block.
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
		assert.Equal(t, scope.Usage{Name: "C", Bytes: 9, Objects: counted(1), Peak: 9, PeakObjects: counted(1)}, byName(b)[4])
		h.Close(h.Top())
		return nil
	}))
	assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 4, Objects: counted(1), Peak: 4, PeakObjects: counted(1)},
		{Name: "x", Peak: 108, PeakObjects: counted(2)},
		{Name: "ends", Peak: 56, PeakObjects: counted(2)}, {Name: "Ring", Peak: 3, PeakObjects: counted(1)},
		{Name: "C", Peak: 9, PeakObjects: counted(1)}}, byName(b))
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
	want := []scope.Usage{{Name: "a", Bytes: 15, Peak: 40}, {Name: "b", Peak: 500}}
	assert.Equal(t, want, b.Region("level").Report().Labels)
	require.NoError(t, b.Region("level").Rewind(t.Context()))
	want[0].Bytes = 0
	assert.Equal(t, want, b.Region("level").Report().Labels)
	require.NoError(t, b.Close())
	assert.Equal(t, want, b.Report().Regions[0].Labels)
}

func TestCountingNamesAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector and AddressSanitizer allocate for themselves")
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
