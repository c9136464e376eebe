package budget_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// requireRoundTrip checks that a report comes back from JSON unchanged, except OnError, which isn't
// written.
func requireRoundTrip(t *testing.T, r budget.Report) {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	var back budget.Report
	require.NoError(t, json.Unmarshal(text, &back), string(text))
	r.Plan.OnError = nil
	require.Equal(t, r, back)
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
}

func TestReportComesBackFromJSON(t *testing.T) {
	rest := small()
	rest.Size, rest.Regions[1].Size, rest.Regions[2].Note = 3*budget.MiB+1, budget.Rest,
		"so \"large\"\nbecause <of> the 3rd"
	rest.Pages = budget.Pages{Lock: budget.Wished, Guards: budget.Wished, Prefault: budget.Off}
	plain := budget.Plan{Name: "plain", Regions: []budget.RegionPlan{{Name: "only", Size: 1}}, GoHeap: 4*budget.GiB + 1}
	based := reportPlan()
	based.Base, based.Pages.Base, based.OnError = 0x250000000000, budget.Wished, func(error) {}
	for _, plan := range []budget.Plan{small(), rest, plain, based} {
		b := open(t, plan)
		requireRoundTrip(t, b.Report())
		requireRoundTrip(t, b.Published())
		require.NoError(t, b.Close())
		requireRoundTrip(t, b.Report())
	}

	b := open(t, reportPlan())
	mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 1, doFail)
		newMark(s, 2, doPanic)
		frogs.Pool(s, 10).Get()
		s.Keep(1)
		require.NoError(t, scope.Label(s, `"sound" <&> \u2028`, func() error { s.Bytes(8); return nil }))
		require.NoError(t, s.Do("mesh", func(s scope.Scope) error { s.Bytes(1); return nil }))
	})
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Temp(1) })
	b.Scratch(1, 0).Open("left")
	require.NoError(t, b.NextFrame())
	r := b.Report()
	assert.Equal(t, budget.Leaks{Scopes: 1, Finalizers: 2}, r.Leaks)
	assert.Len(t, r.Errors, 1)
	assert.Len(t, r.Arenas[0].Scopes, 3)
	assert.Equal(t, budget.Limits{Scopes: 2, Pools: 1, Owned: 1, Labels: 1}, r.Arenas[0].MostOpen)
	requireRoundTrip(t, r)
	requireRoundTrip(t, b.Published())
	plan := b.Plan()
	plan.Regions[0].Size, plan.Regions[2].Size = 64*budget.KiB, 448*budget.KiB
	require.NoError(t, b.Region("systems").Rewind(background))
	require.NoError(t, b.Reconfigure(background, plan))
	requireRoundTrip(t, b.Report())
	_ = b.Close()
	requireRoundTrip(t, b.Report())
}

// TestReportOfAFaultyPlan: a report written by hand is read as strictly as a plan.
func TestReportOfAFaultyPlan(t *testing.T) {
	var r budget.Report
	err := json.Unmarshal([]byte(`{"name": "x", "plan": {"name": "x", "regions": [{"name": "a", "sise": "1KiB"}]}}`),
		&r)
	assert.ErrorContains(t, err, "sise")
	text := `{"arenas": [{"name": "a", "used": 7, "peak": 9}], "go_heap": {"limit": 1, "used": 2}}`
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	for _, line := range []string{"a          [................................] used     0.1KiB  peak     0.1KiB  " +
		"of       0KiB",
		"go heap    [################################] used     0.1KiB  collections     0  of     0.1KiB"} {
		assert.Contains(t, r.String(), "\n  "+line+"\n", "whatever is drawn, nothing panics")
	}
}

// TestErrorsAreTextsAtOnce: a later reader doesn't run the error's own code.
func TestErrorsAreTextsAtOnce(t *testing.T) {
	b := open(t, small())
	text := "as it was"
	mustLoad(t, b, "level", func(s scope.Scope) { s.Own(failing{&text}) })
	mustLoad(t, b, "level", nil)
	text = "as it is"
	require.Len(t, b.Report().Errors, 1)
	assert.Contains(t, b.Report().Errors[0], "as it was")
	assert.Contains(t, b.Published().Errors[0], "as it was")
}

// failing is a closer with an error that changes its text.
type failing struct{ text *string }

func (f failing) Close() error  { return errors.Join(f) }
func (f failing) Error() string { return *f.text }

func logged(t *testing.T, value any) map[string]any {
	t.Helper()
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", value)
	var record map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &record))
	v, _ := record["v"].(map[string]any)
	return v
}

func TestReportIsLogged(t *testing.T) {
	plan := reportPlan()
	plan.Pages.Lock = budget.Off
	b := open(t, plan)
	assert.NotContains(t, logged(t, b.Report()), "arenas", "none was used")
	mustLoad(t, b, "systems", func(s scope.Scope) {
		newMark(s, 1, doFail)
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
	})
	mustLoad(t, b, "systems", nil)
	frogs.New(b.Frame())
	r := b.Report()
	v := logged(t, r)
	assert.Equal(t, map[string]any{"scopes": 0.0, "owned": 0.0, "finalizers": 1.0, "slots": 0.0, "scratch": 0.0},
		v["leaks"])
	assert.Equal(t, 1.0, v["error_count"])
	assert.Len(t, v["errors"], 1)
	heap := map[string]any{"limit": 0.0, "used": float64(r.GoHeap.Used), "collections": float64(r.GoHeap.Collections)}
	assert.Equal(t, heap, v["go_heap"])
	assert.EqualValues(t, r.Size, v["size"])
	arenas := v["arenas"].(map[string]any)
	assert.Len(t, arenas, 2, "those that were used")
	systems := arenas["systems"].(map[string]any)
	assert.Equal(t, systems, logged(t, r.Arenas[0]))

	// A log has every figure of the JSON, under the same key, except the sites.
	text, err := json.Marshal(r.Arenas[0])
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(text, &want))
	for _, key := range []string{"sites", "part", "index", "kind"} {
		delete(want, key)
	}
	for key, figure := range want {
		switch key {
		case "name":
			continue
		case "scopes", "labels":
			byName := map[string]any{}
			for _, line := range figure.([]any) {
				usage := line.(map[string]any)
				byName[usage["name"].(string)] = usage
				delete(usage, "name")
			}
			figure = byName
		}
		assert.Equal(t, figure, systems[key], key)
	}
	assert.Len(t, systems, len(want)-1)
	assert.Contains(t, arenas, "frame.0")
	assert.NotContains(t, arenas, "scratch.0.0")
}

func TestGoHeapBesideTheRegions(t *testing.T) {
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased // as debug.SetMemoryLimit counts
	}
	debug.FreeOSMemory() // the tests before this one left some
	before := used()
	plan := small()
	plan.GoHeap, plan.Regions[0].Size = 512*budget.MiB, 96*budget.MiB
	plan = fresh(t, plan) // in a race build a kept range would count before
	b := open(t, plan)
	cycles := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return uint64(m.NumGC)
	}
	begun := cycles()
	heap := b.Report().GoHeap
	assert.EqualValues(t, 512*budget.MiB, heap.Limit)
	assert.InDelta(t, before, heap.Used, 24*budget.MiB, "without the budget, also where that is Go's")
	runtime.GC()
	runtime.GC()
	for _, got := range []budget.GoHeap{b.Report().GoHeap, b.Published().GoHeap} {
		assert.GreaterOrEqual(t, got.Collections, heap.Collections+2)
		assert.LessOrEqual(t, got.Collections, heap.Collections+cycles()-begun,
			"the runtime may have run one of its own")
	}

	percent := debug.SetGCPercent(-1)
	restore := budget.DuringOpen(func() { runtime.GC(); begun = cycles() })
	other := open(t, small())
	assert.LessOrEqual(t, other.Published().GoHeap.Collections, cycles()-begun, "one of Open itself doesn't count")
	restore()
	debug.SetGCPercent(percent)
	require.NoError(t, other.Close())

	debug.FreeOSMemory() // else the block may reuse memory of the tests before this one
	least := b.Published().GoHeap
	block := make([]byte, 64*budget.MiB)
	more := b.Published().GoHeap
	assert.Greater(t, more.Used, least.Used+16*budget.MiB)
	runtime.KeepAlive(block)
	text := b.Report().String()
	assert.Regexp(t, `(?m)^  go heap +\[#+\.*\] used +\d+KiB  collections +\d+  of  524288KiB$`, text)
	require.NoError(t, b.Close())
	last := b.Report().GoHeap
	runtime.GC()
	assert.Equal(t, last, b.Report().GoHeap, "as of Close")
	assert.Equal(t, last, b.Published().GoHeap)
}

func TestGoHeapThatIsNotGoverned(t *testing.T) {
	b := open(t, small())
	heap := b.Report().GoHeap
	assert.Zero(t, heap.Limit)
	assert.NotZero(t, heap.Used)
	assert.NotContains(t, b.Report().String(), "go heap  ", "there is nothing to draw it against")
	assert.Contains(t, b.Report().String(), "\n  Go heap: no limit (the plan has no go_heap)\n")
}

func reportPlan() budget.Plan {
	plan := small()
	plan.Regions = []budget.RegionPlan{{Name: "systems", Size: 256 * budget.KiB},
		{Name: "match", Size: 64 * budget.KiB, Slots: 3}, {Name: "level", Size: 256 * budget.KiB}}
	return plan
}

// requirePublished checks that the published figures equal the arenas' own.
func requirePublished(t *testing.T, b *budget.Budget, when ...any) {
	t.Helper()
	require.Equal(t, quiet(b), planned(b.Published()), when...)
}

func TestPublishedByWhatEnds(t *testing.T) {
	b := open(t, reportPlan())
	requirePublished(t, b)
	assert.Len(t, b.Published().Arenas, 5+6)
	mustLoad(t, b, "systems", func(s scope.Scope) {
		s.Bytes(1000)
		assert.Zero(t, b.Published().Arenas[0].Used, "as of before the load")
		assert.NotZero(t, b.Report().Arenas[0].Used)
		mustLoadRegion(t, b.Region("level").In(s), func(s scope.Scope) {
			require.NoError(t, s.Do("x", func(s scope.Scope) error { s.Bytes(5); return nil }))
		})
		assert.NotZero(t, b.Published().Arenas[4].Used, "that load is over")
		assert.Zero(t, b.Published().Arenas[0].Used)
	})
	requirePublished(t, b)
	_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(5000); return errLoader })
	require.ErrorIs(t, err, errLoader)
	requirePublished(t, b)

	slot, err := b.Slots("match").Acquire()
	require.NoError(t, err)
	_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) {
		newMark(s, 1, doFail)
		return frogs.New(s), nil
	})
	require.NoError(t, err)
	requirePublished(t, b)
	require.ErrorIs(t, slot.Release(background), errMark)
	requirePublished(t, b)
	require.NoError(t, b.Region("systems").Rewind(background))
	requirePublished(t, b)

	plan := b.Plan()
	plan.Regions[0].Size, plan.Regions[2].Size = 64*budget.KiB, 448*budget.KiB
	require.NoError(t, b.Reconfigure(background, plan))
	requirePublished(t, b)
	assert.Equal(t, plan, b.Published().Plan)
	require.NoError(t, b.Close())
	requirePublished(t, b)
	assert.Equal(t, b.Report(), b.Published(), "the last figures, of the Go heap too")
}

// TestNextFramePublishesAll: after any work in a frame, in any order, NextFrame makes Published
// equal Report.
func TestNextFramePublishesAll(t *testing.T) {
	works := map[string]func(s scope.Scope){
		"nothing": func(scope.Scope) {},
		"bytes":   func(s scope.Scope) { s.Bytes(1000) },
		"more":    func(s scope.Scope) { s.Bytes(3000) },
		"scope":   func(s scope.Scope) { x := s.Open("x"); x.Bytes(5000); _ = x.Close() },
		"full":    func(s scope.Scope) { frogs.TrySlice(s, 1<<20) },
		"mark":    func(s scope.Scope) { newMark(s, 1, 0) },
		"failing": func(s scope.Scope) { newMark(s, 1, doFail) },
		"pool":    func(s scope.Scope) { frogs.Pool(s, 9).Get() },
		"temp":    func(s scope.Scope) { s.Temp(4000) },
		"label":   func(s scope.Scope) { _ = scope.Label(s, "sound", func() error { s.Bytes(8); return nil }) },
		"owned":   func(s scope.Scope) { s.Defer(func() {}).Cancel() },
		"leak":    func(s scope.Scope) { s.Open("left open") },
		"unwound": func(s scope.Scope) {
			_, _ = marks.Make(s, func(*mark) error { frogs.Pool(s, 99); return errMark })
		},
		"misuse": func(s scope.Scope) { x := s.Open("x"); frogs.TryNew(s); _ = x.Close() },
	}
	for first, one := range works {
		for second, other := range works {
			b := open(t, small())
			for i := range 12 {
				switch i {
				case 3, 6:
					one(b.Frame())
				case 4, 7, 8:
					other(b.Frame())
				}
				_ = b.NextFrame()
				requirePublished(t, b, "%s, then %s: frame %d", first, second, i)
			}
		}
	}
}

func TestPublishedOfFrameAndScratch(t *testing.T) {
	b := open(t, small())
	fixed, lender := b.Scratch(0, 0), b
	frogs.New(b.Frame())
	assert.Zero(t, beside(b.Published())[0].Used)
	require.NoError(t, b.NextFrame())
	requirePublished(t, b)
	assert.NotZero(t, beside(b.Published())[0].Used, "the frame that ended")

	s := fixed.Open("a")
	frogs.New(s)
	require.NoError(t, b.NextFrame())
	assert.EqualValues(t, 24, beside(b.Published())[2].Used, "left open")
	assert.Equal(t, 1, b.Published().Leaks.Scopes)
	frogs.New(s)
	require.NoError(t, b.NextFrame())
	assert.EqualValues(t, 48, beside(b.Published())[2].Used, "and still open")
	require.NoError(t, s.Close())
	require.NoError(t, b.NextFrame())
	requirePublished(t, b)
	assert.Zero(t, beside(b.Published())[2].Used)
	assert.EqualValues(t, 48, beside(b.Published())[2].Peak)

	lent, err := lender.Lease(background)
	require.NoError(t, err)
	require.NoError(t, lent.Scratch(1).Do("x", func(s scope.Scope) error { frogs.New(s); return nil }))
	require.NoError(t, b.NextFrame())
	requirePublished(t, b)
	assert.Zero(t, beside(b.Published())[5].Peak, "it is its borrower's")
	require.NoError(t, lent.Release())
	requirePublished(t, b)
	assert.EqualValues(t, 24, beside(b.Published())[5].Peak)
	lent, err = lender.Lease(background)
	require.NoError(t, err)
	newMark(lent.Scratch(1).Open("left"), 3, doFail)
	require.ErrorIs(t, lent.Release(), errMark)
	requirePublished(t, b)
	assert.EqualValues(t, 1, beside(b.Published())[5].Finalizers)
	assert.Equal(t, 1, b.Published().Leaks.Finalizers)

	_, err = lender.Lease(background)
	require.NoError(t, err)
	_ = b.Close()
	assert.Equal(t, b.Report(), b.Published())
}

// TestReportsShareNothing: a caller may write to its report.
func TestReportsShareNothing(t *testing.T) {
	plan := small()
	plan.Pages.Lock = budget.Wished
	b := open(t, plan)
	mustLoad(t, b, "level", func(s scope.Scope) {
		newMark(s, 1, doFail)
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
	})
	mustLoad(t, b, "level", nil)
	spoil := func(r budget.Report) {
		r.Arenas[2].Scopes[0].Name, r.Arenas[2].Labels[0].Peak = "spoiled", 1
		r.Arenas[0].Name, beside(r)[0].Name, r.Plan.Regions[0].Name, r.Errors[0] = "spoiled", "spoiled",
			"spoiled", "spoiled"
		for i := range r.NotGranted {
			r.NotGranted[i] = "spoiled"
		}
	}
	for range 2 { // before and after Close
		for _, read := range []func() budget.Report{b.Report, b.Published} {
			spoil(read())
			assert.NotContains(t, read().String(), "spoiled")
			assert.NotContains(t, read().Errors, "spoiled")
			assert.NotContains(t, read().NotGranted, "spoiled")
			assert.Equal(t, "init", read().Plan.Regions[0].Name)
		}
		r := b.Region("level").Report()
		r.Scopes[0].Name = "spoiled"
		assert.Equal(t, "level", b.Region("level").Report().Scopes[0].Name)
		_ = b.Close() // the second is refused
	}
}

// TestAllBesideEachOther reads published figures, borrows scratch and runs frames and loads, on
// different goroutines, with a worker during some loads. Under the race detector it proves that
// Published reads no arena, that NextFrame leaves lent scratch alone, and that a failed load
// touches no scratch, even scratch that its function once held and another goroutine holds now.
func TestAllBesideEachOther(t *testing.T) {
	plan := reportPlan()
	plan.Scratch.Workers = 3
	for range 3 {
		b := open(t, plan)
		b.Scratch(0, 0)
		b.Scratches(1)
		var readers, workers sync.WaitGroup
		var played, over atomic.Bool
		for range 2 {
			readers.Go(func() {
				for !over.Load() {
					r := b.Published()
					for _, x := range r.Arenas {
						if x.Used+x.Free != x.Size || x.Peak < x.Used || len(x.Scopes) > 0 && x.Scopes[0].Name == "" {
							t.Error("torn", x)
						}
					}
					_ = r.String()
					runtime.Gosched() // for a single processor
				}
			})
			workers.Go(func() {
				for !played.Load() {
					borrow(t, b)
				}
			})
		}
		playBeside(t, b)
		played.Store(true)
		workers.Wait()
		_ = b.Close() // during the reads
		over.Store(true)
		readers.Wait()
	}
}

// borrow uses lent scratch, perhaps for longer than a frame.
func borrow(t *testing.T, b *budget.Budget) {
	lent := take(t, b)
	assert.NoError(t, lent.Scratch(0).Do("x", func(s scope.Scope) error {
		s.Defer(func() { runtime.Gosched() })
		frogs.New(s)
		runtime.Gosched()
		return nil
	}))
	assert.NoError(t, lent.Release())
}

func playBeside(t *testing.T, b *budget.Budget) {
	for i := range 60 {
		for range 3 {
			frogs.TryNew(b.Frame())
			s := b.Scratch(0, 0).Open("x")
			frogs.New(s)
			require.NoError(t, s.Close())
			require.NoError(t, b.NextFrame())
		}
		mustLoad(t, b, "level", func(s scope.Scope) {
			s.Temp(10)
			require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(8); return nil }))
		})
		var worker sync.WaitGroup
		worker.Go(func() {
			s := b.Scratch(1, 0).Open("work")
			inner := s.Open("deeper")
			frogs.Slice(inner, 10)[9].X = 7
			assert.NoError(t, inner.Close())
			frogs.New(s)
			assert.NoError(t, s.Close())
		})
		_, err := load(b, "level", func(scope.Scope) error {
			borrow(t, b)
			return b.Scratch(0, 1).Do("in fn", func(scope.Scope) error { return errLoader })
		})
		require.ErrorIs(t, err, errLoader)
		worker.Wait()
		_ = b.Report() // while other goroutines borrow
		slot, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) {
			newMark(s, 1, doFail)
			return frogs.New(s), nil
		})
		require.NoError(t, err)
		_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) { return frogs.New(s), nil })
		require.NoError(t, err)
		require.NoError(t, slot.Release(context.Background()))
		if i%10 == 0 {
			require.NoError(t, b.Region("systems").Rewind(background))
			plan := b.Plan()
			plan.Regions[0].Size, plan.Regions[2].Size = plan.Regions[2].Size-64*budget.KiB,
				plan.Regions[0].Size+64*budget.KiB
			require.NoError(t, b.Reconfigure(background, plan))
		}
	}
}

func TestScopeWithoutANameIsLogged(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) {
		require.NoError(t, s.Do("", func(s scope.Scope) error { s.Bytes(8); return nil }))
	})
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "r", b.Report().Arenas[2])
	assert.Regexp(t, `"\\"\\"":{"bytes":0,"peak":8[,}]`, out.String())
}

// TestInnerArenasAreLogged: heaps and caches have no names, so a log counts them.
func TestInnerArenasAreLogged(t *testing.T) {
	r := budget.ArenaReport{Name: "level", Inner: []stack.Inner{{Kind: "heap", Used: 8},
		{Kind: "cache", CacheCounts: stack.CacheCounts{Hits: 2}}}}
	inner := logged(t, r)["inner"].(map[string]any)
	assert.InDelta(t, 8, inner["0"].(map[string]any)["used"], 0)
	assert.InDelta(t, 2, inner["1"].(map[string]any)["hits"], 0)
}

// TestReportFoldsSiblings: equal text of many slots appears once, wherever they are; a region has
// no siblings, and JSON has every slot.
func TestReportFoldsSiblings(t *testing.T) {
	r := budget.Report{Name: "many", Arenas: []budget.ArenaReport{{Name: "room", Part: "room"},
		{Name: "hall", Part: "hall"}}}
	for i := range 4096 {
		r.Arenas = append(r.Arenas, budget.ArenaReport{Name: fmt.Sprintf("match %d", i), Part: "match",
			Size: budget.MiB, Used: uint64(i%2) * budget.KiB,
			Labels: []scope.Usage{{Name: "ai", Bytes: 500, Peak: 1000, Objects: 3}}})
	}
	text := strings.ReplaceAll(r.String(), " in 3 objects", "") // from checked builds
	assert.Equal(t, `budget many: 0KiB
  memory: 0KiB reserved, 0KiB committed, 0KiB resident
  room                  [................................] used       0KiB  peak       0KiB  of       0KiB
  hall                  [................................] used       0KiB  peak       0KiB  of       0KiB
  match 0 and 2047 more [................................] used       0KiB  peak       0KiB  of    1024KiB
  match 1 and 2047 more [#...............................] used       1KiB  peak       0KiB  of    1024KiB
  match 0 and 4095 more: label "ai" used 0.5KiB, peak 1KiB
  leaks: 0 scopes, 0 owned values, 0 finalizers failed, 0 slots, 0 leases of scratch
`, text)
	whole, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Equal(t, 4096, strings.Count(string(whole), `"name":"match `))
}

// FuzzReport: a report from outside is either refused, or it is drawn, logged, written unchanged,
// and made into a plan, without a panic.
func FuzzReport(f *testing.F) {
	b := open(f, small())
	mustLoad(f, b, "level", func(s scope.Scope) { s.Bytes(1000) })
	whole, err := json.Marshal(b.Report())
	require.NoError(f, err)
	for _, seed := range []string{string(whole), `{}`, `null`, `[]`,
		`{"arenas": [{"name": "a", "used": 7, "peak": 9}], "go_heap": {"limit": 1, "used": 2}}`,
		`{"name": "x", "plan": {"name": "x", "regions": [{"name": "a", "size": "1KiB"}]}, "regions": [{"name": "a", "peak": 18446744073709551615}]}`,
		`{"regions": [{"name": "a 1", "labels": [{"name": "\u0000", "bytes": 1}]}, {"name": "a 2", "labels": [{}]}], "beside": [{"size": 1}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, again budget.Report
		if json.Unmarshal(data, &r) != nil {
			return
		}
		_ = r.String()
		slog.New(slog.DiscardHandler).Info("report", "budget", r)
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, nil)).Info("report", "budget", r)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		// a plan that can't be laid out isn't read
		if err := json.Unmarshal(text, &again); err == nil {
			text2, err := json.Marshal(again)
			require.NoError(t, err)
			assert.Equal(t, string(text), string(text2))
			if plan, err := budget.Suggest(r, again); err == nil {
				assert.NoError(t, json.Unmarshal(must(json.Marshal(plan)), new(budget.Plan)))
			}
		}
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
