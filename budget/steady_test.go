package budget_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestSteadyStateAllocatesNothing: the frames of a program, and a loader that repeats a step a
// million times, make no Go allocation.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate: go test ./budget runs it")
	}
	allocatesNothing := func(works map[string]func()) {
		for what, fn := range works {
			assert.Zero(t, testing.AllocsPerRun(100, fn), what)
		}
	}
	plan := small()
	plan.Scratch.Workers = 3
	b := open(t, plan)
	mustLoad(t, b, "level", func(s scope.Scope) {
		pool, objects := frogs.Pool(s, 10), marks.Pool(s, 10)
		ran = make([]int64, 0, 4096)
		allocatesNothing(map[string]func(){
			"New":    func() { frogs.New(s); frogs.TryNew(s); frogs.Slice(s, 2); s.Bytes(8); s.AllocUnzeroed(8, 8) },
			"marks":  func() { marks.New(s); marks.Slice(s, 2) },
			"pools":  func() { pool.Put(pool.Get()); _ = objects.Put(objects.Get()) },
			"scopes": func() { x := s.Open("x"); frogs.New(x); _ = x.Close() },
			"temp":   func() { temp := s.Temp(72); frogs.New(temp); frogs.Slice(temp, 2); _ = temp.Close() },
			"beside": func() { _ = b.Scratch(1, 0).Open("work").Close() },
			"label":  func() { _ = scope.Label(s, "sound", func() error { s.Bytes(8); return nil }) },
		})
	})
	level := mustLoad(t, b, "level", func(s scope.Scope) { frogs.Slice(s, 100) })
	reader, scratch := b.Region("level").Reader("a worker"), b.Scratch(0, 0)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	work := func(s scope.Scope) error { frogs.New(s); return nil }
	label := func() error { return nil }
	allocatesNothing(map[string]func(){
		"NextFrame":    func() { _ = b.NextFrame() },
		"frame":        func() { frogs.TryNew(b.Frame()); frogs.TrySlice(b.Frame(), 2); _ = b.NextFrame() },
		"frame, marks": func() { marks.TryNew(b.Frame()); ran = ran[:0]; _ = b.NextFrame() },
		"frame, labels and scopes": func() {
			f := b.Frame()
			_ = scope.Label(f, "a", label)
			x := f.Open("x")
			y := x.Open("y")
			frogs.New(y)
			_, _ = y.Close(), x.Close()
			_ = b.NextFrame()
		},
		"scratch": func() {
			s := scratch.Open("x")
			_ = scope.Label(s, "b", label)
			frogs.New(s)
			t := s.Open("y")
			frogs.Slice(t, 5)
			_ = t.Close()
			_ = s.Close()
			_ = b.NextFrame()
		},
		"scratch, temp": func() { s := scratch.Open("x"); s.Temp(100).Bytes(100); _ = s.Close() },
		"scratch, marks": func() {
			s := scratch.Open("x")
			marks.New(s)
			marks.Slice(s, 3)
			_ = s.Close()
			ran = ran[:0]
		},
		"scratch, pool":  func() { s := scratch.Open("x"); p := frogs.Pool(s, 9); p.Put(p.Get()); _ = s.Close() },
		"scratch, Do":    func() { _ = scratch.Do("x", work) },
		"by number":      func() { b.Scratches(0); b.Scratch(0, 1) },
		"Lease, Release": func() { lent, _ := b.Lease(ctx); _ = lent.Release() },
		"Lease, in use": func() {
			lent, _ := b.Lease(background)
			s := lent.Pick().Open("s")
			u := lent.Pick(s).Open("u")
			frogs.New(u)
			_ = lent.Scratch(1).Do("use", work)
			_ = u.Close()
			_ = s.Close()
			_ = lent.Release()
		},
		"Loaded, Pin":     func() { reader.Pin(); level.Get(); reader.Unpin() },
		"regions' report": func() { b.PublishRegions() },
	})
	one := take(t, b)
	waits, next := make(chan budget.Lease), make(chan bool)
	go func() {
		for range next {
			lent, _ := b.Lease(ctx)
			waits <- lent
		}
	}()
	allocatesNothing(map[string]func(){"who waits for a Lease": func() {
		next <- true
		runtime.Gosched() // so that it mostly waits
		_ = one.Release()
		one = <-waits
	}})
	close(next)
	require.NoError(t, one.Release())
}

// TestRewindKeepsNothing loads and rewinds for a while: figures and ranges stay as after the first
// load.
func TestRewindKeepsNothing(t *testing.T) {
	b := open(t, small())
	var first string
	for range 100 {
		mustLoad(t, b, "systems", fill)
		mustLoad(t, b, "level", fill)
		r := quiet(b)
		for i := range r.Arenas {
			r.Arenas[i].Finalizers = 0
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
