package budgettest_test

import (
	"fmt"
	"regexp"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/budgettest"
)

// recorder is a test that records its output and its cleanups.
type recorder struct {
	testing.TB
	said    []string
	logged  []string
	fatal   bool
	cleanup []func()
}

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(fn func()) { r.cleanup = append(r.cleanup, fn) }

// sites are the lines that checked builds add for the calls.
var sites = regexp.MustCompile(`\n\t.*`)

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, sites.ReplaceAllString(fmt.Sprintf(format, args...), ""))
}

func (r *recorder) Logf(format string, args ...any) {
	r.logged = append(r.logged, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	r.fatal = true
	runtime.Goexit()
}

// watch runs fn as a test with its cleanups, and returns the output.
func watch(t *testing.T, fn func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(r)
	}()
	<-done
	for i := range r.cleanup {
		r.cleanup[len(r.cleanup)-1-i]()
	}
	return r
}

func plan() budget.Plan {
	return budget.Plan{Name: "watched", Regions: []budget.RegionPlan{{Name: "level", Size: budget.KiB}},
		Frame:   budget.FramePlan{Buffers: 2, Size: budget.KiB},
		Scratch: budget.ScratchPlan{Workers: 1, Size: budget.KiB}}
}

func TestOpenClosesAtTheEnd(t *testing.T) {
	var b *budget.Budget
	r := watch(t, func(t testing.TB) {
		b = budgettest.Open(t, plan())
		require.NoError(t, b.NextFrame())
		require.NoError(t, b.Scratch(0, 0).Open("a").Close())
	})
	assert.Empty(t, r.said)
	assert.Len(t, r.cleanup, 1)
	assert.ErrorIs(t, b.Close(), budget.ErrClosed)
}

func TestOpenStopsATestWithABadPlan(t *testing.T) {
	r := watch(t, func(t testing.TB) {
		budgettest.Open(t, budget.Plan{Name: "watched", Size: 1, Scratch: budget.ScratchPlan{Workers: 1}})
		t.Errorf("it went on")
	})
	assert.True(t, r.fatal)
	assert.Equal(t, []string{`budgettest: plan "watched": ` +
		`scratch.size: 0 bytes; give a size`}, r.said)
	assert.Empty(t, r.cleanup)
}

const leaked = ": left open at NextFrame, Release or Close: scope "

func TestOpenFailsATest(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*budget.Budget)
		said []string
	}{
		"scratch scope": {
			func(b *budget.Budget) { b.Scratch(0, 1).Open("left open") },
			[]string{`budgettest: Close: budget "watched": scratch 0.1` + leaked +
				`"left open"; close each where it is opened`,
				"budgettest: leaks: {Scopes:1 Owned:0 Finalizers:0 Slots:0 Scratch:0 Blocks:0 Quotas:0}"},
		},
		"scratch scope at NextFrame": {
			func(b *budget.Budget) {
				s := b.Scratch(0, 0).Open("open")
				_ = b.NextFrame()
				_ = s.Close()
			},
			[]string{`budgettest: Close: budget "watched": scratch 0.0` + leaked +
				`"open"; close each where it is opened`,
				"budgettest: leaks: {Scopes:1 Owned:0 Finalizers:0 Slots:0 Scratch:0 Blocks:0 Quotas:0}"},
		},
		"finalizer": {
			func(b *budget.Budget) { b.Frame().Defer(func() { panic("boom") }) },
			[]string{"budgettest: Close: budget \"watched\": frame 0, scope \"frame\": a deferred function " +
				"panicked: boom",
				"budgettest: leaks: {Scopes:0 Owned:0 Finalizers:1 Slots:0 Scratch:0 Blocks:0 Quotas:0}"},
		},
		"stray write": {
			func(b *budget.Budget) { mapOf(b).Row(1).End++ },
			[]string{`budgettest: at the end: budget "watched": the control words of frame 0 contradict each other: ` +
				"a stray write has overwritten them"},
		},
		"owned value that is lost": {
			func(b *budget.Budget) {
				b.Frame().Defer(func() { panic("it ran") })
				mapOf(b).Row(1).Arena.Chain = 0 // a stray write
			},
			[]string{`budgettest: Close: budget "watched": frame 0: 1 owned values outlived their scopes, as a stray write has overwritten the chain of finalizers: a deferred function`,
				"budgettest: leaks: {Scopes:0 Owned:1 Finalizers:0 Slots:0 Scratch:0 Blocks:0 Quotas:0}"},
		},
		"closed by the test": {
			func(b *budget.Budget) { _ = b.Close() },
			[]string{`budgettest: at the end: budget "watched": Walk: upfront: closed`,
				`budgettest: Close: budget "watched": Close: upfront: closed`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := watch(t, func(t testing.TB) { c.do(budgettest.Open(t, plan())) })
			assert.Equal(t, c.said, r.said)
			assert.False(t, r.fatal)
		})
	}
}

func mapOf(b *budget.Budget) *arena_c.Map {
	return (*arena_c.Map)(unsafe.Pointer(unsafe.SliceData(b.Base().Bytes())))
}
