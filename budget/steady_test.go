package budget_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/scope"
)

// TestSteadyStateAllocatesNothing holds the promise of a program at play: not one Go allocation.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate for themselves")
	}
	b := open(t, small())
	level := mustLoad(t, b, "level", func(s scope.Scope) { frogs.Slice(s, 100) })
	reader, scratch := b.Region("level").Reader("a worker"), b.Scratch(0, 0)
	work := func(s scope.Scope) error { frogs.New(s); return nil }
	for what, fn := range map[string]func(){
		"NextFrame":    func() { _ = b.NextFrame() },
		"frame":        func() { frogs.TryNew(b.Frame()); frogs.TrySlice(b.Frame(), 2); _ = b.NextFrame() },
		"frame, marks": func() { marks.TryNew(b.Frame()); ran = ran[:0]; _ = b.NextFrame() },
		"frame, scope": func() { s := b.Frame().Open("x"); frogs.New(s); _ = s.Close() },
		"scratch": func() {
			s := scratch.Open("x")
			frogs.New(s)
			t := s.Open("y")
			frogs.Slice(t, 5)
			_ = t.Close()
			_ = s.Close()
		},
		"scratch, temp":  func() { s := scratch.Open("x"); s.Temp(100).Bytes(100); _ = s.Close() },
		"scratch, marks": func() { s := scratch.Open("x"); marks.New(s); marks.Slice(s, 3); _ = s.Close(); ran = ran[:0] },
		"scratch, pool":  func() { s := scratch.Open("x"); p := frogs.Pool(s, 9); p.Put(p.Get()); _ = s.Close() },
		"scratch, Do":    func() { _ = scratch.Do("x", work) },
		"Loaded, Pin":    func() { reader.Pin(); level.Get(); reader.Unpin() },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, fn), what)
	}
}

// TestLoadersHotPathAllocatesNothing looks inside a load: what a loader does a million times.
func TestLoadersHotPathAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate for themselves")
	}
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) {
		pool, objects := frogs.Pool(s, 10), marks.Pool(s, 10)
		ran = make([]int64, 0, 4096)
		for what, fn := range map[string]func(){
			"New":    func() { frogs.New(s); frogs.TryNew(s); frogs.Slice(s, 2); s.Bytes(8); s.AllocUnzeroed(8, 8) },
			"marks":  func() { marks.New(s); marks.Slice(s, 2) },
			"pools":  func() { pool.Put(pool.Get()); _ = objects.Put(objects.Get()) },
			"scopes": func() { x := s.Open("x"); frogs.New(x); _ = x.Close() },
			"temp":   func() { temp := s.Temp(72); frogs.New(temp); frogs.Slice(temp, 2); _ = temp.Close() },
		} {
			assert.Zero(t, testing.AllocsPerRun(100, fn), what)
		}
	})
}

// TestRewindKeepsNothing loads and rewinds for a while: figures and ranges are those of the first time.
func TestRewindKeepsNothing(t *testing.T) {
	b := open(t, small())
	var first string
	for range 100 {
		mustLoad(t, b, "systems", fill)
		mustLoad(t, b, "level", fill)
		r := b.Report()
		for i := range r.Regions {
			r.Regions[i].Finalizers = 0
		}
		if first == "" {
			first = r.String()
		}
		require.Equal(t, first, r.String())
		require.NoError(t, b.Region("systems").Rewind(background))
		requireEmpty(t, b, "systems")
		requireEmpty(t, b, "level")
	}
}
