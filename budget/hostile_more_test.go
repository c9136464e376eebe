package budget_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

func TestScopeLeftOpenInTheFrameLeaks(t *testing.T) {
	b := open(t, small())
	b.Frame().Open("at the end of it")
	assert.ErrorContains(t, b.NextFrame(), `scope "at the end of it" of frame 0 was left open`)
	require.NoError(t, b.NextFrame())
	assert.Equal(t, budget.Leaks{Scopes: 1}, b.Report().Leaks)
	b.Frame().Open("at the end").Open("inside")
	err := b.Close()
	assert.ErrorContains(t, err,
		`frame 0: left open at NextFrame, Release or Close: scope "at the end of it", "at the end", "inside"; close each`)
	assert.Equal(t, budget.Leaks{Scopes: 3}, b.Report().Leaks)
}

// Who leaks at each NextFrame is counted, and named as often as somebody reads.
func TestLeaksDontFillTheGoHeap(t *testing.T) {
	if instrumented {
		t.Skip("instrumented builds allocate more")
	}
	b := open(t, small())
	leak := func() {
		s := b.Scratch(0, 0).Open("job")
		require.NoError(t, b.NextFrame())
		require.NoError(t, s.Close())
	}
	for range 20 {
		leak()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 100_000 {
		leak()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.HeapAlloc, before.HeapAlloc+budget.MiB)
	assert.Equal(t, 100_020, b.Report().Leaks.Scopes)
	assert.ErrorContains(t, b.Close(), `"job" and 100004 more; close each where it is opened`)
}

// A slot whose Release returned, or has the budget to itself, is no leak for a Close beside it.
func TestReleaseBesideClose(t *testing.T) {
	plan := budget.Plan{Name: "p", Regions: []budget.RegionPlan{{Name: "match", Size: 64 * budget.KiB, Slots: 1}},
		Pages: budget.Pages{Prefault: budget.Off}}
	for range 500 {
		b, err := budget.Open(plan)
		require.NoError(t, err)
		match, err := b.Slots("match").Acquire()
		require.NoError(t, err)
		released := make(chan error, 1)
		go func() { released <- match.Release(background) }()
		for err = b.Close(); errors.Is(err, budget.ErrLoading); err = b.Close() {
			runtime.Gosched()
		}
		if gone := <-released; gone == nil {
			require.NoError(t, err)
		} else {
			require.True(t, errors.Is(gone, budget.ErrClosed) || errors.Is(gone, budget.ErrLoading), "%v", gone)
			require.ErrorContains(t, err, `never released: slot "match 0"`)
		}
	}
}

func TestHeadroomOfTheRest(t *testing.T) {
	plan := budget.Plan{Name: "r", Size: 20 * 64 * budget.KiB}
	for i := range 10 {
		plan.Regions = append(plan.Regions, budget.RegionPlan{Name: fmt.Sprintf("r%d", i), Size: 64 * budget.KiB})
	}
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "rest", Size: budget.Rest})
	for _, percent := range []int{0, 1, 10, 200} { // at 1 each of ten parts is rounded up by an edge
		more := plan.Headroom(percent)
		require.NoError(t, more.Check())
		assert.GreaterOrEqual(t, open(t, more).Plan().Regions[10].Size, uint64(10*64*budget.KiB*(100+percent)/100))
	}
	plan.Size = 11 * 64 * budget.KiB // the least: the rest has one edge
	assert.NoError(t, plan.Headroom(1).Check())
}

// Fulls that only NextFrame and Close would tell, of the frame and of temporaries, widen what is measured, too.
func TestMeasureSeesWhatTheFrameTells(t *testing.T) {
	narrowMachine(t)
	fn := func(b *budget.Budget) error {
		b.Frame().Bytes(3000)
		for range 6 {
			frogs.TrySlice(b.Frame().Temp(200*24), 200)
		}
		frogs.TrySlice(b.Frame(), 100)
		return nil
	}
	r, err := budget.Measure(measured(), fn)
	require.NoError(t, err)
	b := open(t, r.Plan)
	require.NoError(t, fn(b))
	assert.NoError(t, b.NextFrame())
}

// What a scope met last may be asked for after its budget is closed; a block of Go memory that it was opened in goes all
// the same.
func TestClosedBudgetKeepsNoBlock(t *testing.T) {
	plan := small()
	need, err := plan.Need()
	require.NoError(t, err)
	var kept weak.Pointer[byte]
	func() {
		block := make([]byte, need)
		kept = weak.Make(&block[0])
		b, err := budget.OpenIn(block, plan)
		require.NoError(t, err)
		_, err = load(b, "level", func(s scope.Scope) error { s.TryAllocUnzeroed(1<<30, 8); return nil })
		require.ErrorIs(t, err, budget.ErrFull)
		require.NoError(t, b.Close())
	}()
	runtime.GC()
	assert.Nil(t, kept.Value())
}

// Each budget gives its arenas' places back: a thousand in turn take no more than one.
func TestClosedBudgetsGiveTheirPlacesBack(t *testing.T) {
	if instrumented {
		t.Skip("instrumented builds allocate more")
	}
	plan := small()
	plan.Pages.Prefault = budget.Off
	var before, after runtime.MemStats
	for i := range 1000 {
		if i == 100 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		b, err := budget.Open(plan)
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.HeapAlloc, before.HeapAlloc+64*budget.KiB)
}

func TestScopeWithoutANameIsLogged(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) {
		require.NoError(t, s.Do("", func(s scope.Scope) error { s.Bytes(8); return nil }))
	})
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "r", b.Report().Regions[2])
	assert.Regexp(t, `"\\"\\"":{"bytes":0,"peak":8[,}]`, out.String())
}
