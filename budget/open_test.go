package budget_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

func TestOpenRefuses(t *testing.T) {
	b, err := budget.Open(budget.Plan{Name: "A", Scratch: budget.ScratchPlan{Each: 9}, GoHeap: 1})
	assert.Nil(t, b)
	assert.Regexp(t, `^plan "A": name: .*\nplan "A": scratch\.each: .*\nplan "A": go_heap: .*$`, err.Error(),
		"every fault")

	before := debug.SetMemoryLimit(-1)
	if strconv.IntSize == 32 { // Check has the bound of 64 bits
		const most = 2*budget.GiB - 64*budget.KiB
		one, size := []budget.RegionPlan{{Name: "a", Size: 1}},
			budget.FramePlan{Buffers: 2, Size: most/2 - 64*budget.KiB}
		for key, plan := range map[string]budget.Plan{
			"regions[0].size": {Name: "large", Regions: []budget.RegionPlan{{Name: "a", Size: most}},
				GoHeap: budget.GiB},
			"frame.size": {Name: "large", Regions: one, Frame: size, GoHeap: budget.GiB},
			"size":       {Name: "large", Regions: one, Size: most, GoHeap: budget.GiB},
		} {
			require.NoError(t, plan.Check())
			_, err := budget.Open(plan)
			assert.ErrorContains(t, err, `budget "large": the plan and its tables need 2097088KiB or more; lower `+key+
				" (")
		}
	}
	assert.Equal(t, before, debug.SetMemoryLimit(-1), "the collector is as it was")

	plan := small()
	plan.Regions[1].Size = 64 * budget.MiB
	fresh(t, plan)
	restore := platform.InjectFault("map", 1)
	_, err = budget.Open(plan)
	assert.ErrorContains(t, err, "injected fault: cannot allocate memory; lower regions[1].size (64MiB) or limits")
	assert.True(t, restore())
}

func TestCallersBugsPanic(t *testing.T) {
	b := open(t, small())
	assert.Equal(t, `budget: BUG: plan "small" has no region "lvel"; it has init, systems, level`,
		panics(t, func() { b.Region("lvel") }))
	for _, c := range [][2]int{{-1, 0}, {2, 0}, {0, -1}, {0, 2}, {math.MinInt, math.MaxInt}} {
		want := fmt.Sprintf(`budget: BUG: scratch of worker %d: plan "small" has scratch for 2 workers`, c[0])
		if c[0] == 0 {
			want = fmt.Sprintf(`scope: BUG: scratch %d: each worker has 2, from 0`, c[1])
		}
		assert.Equal(t, want, panics(t, func() { b.Scratch(c[0], c[1]) }))
	}
	bare := open(t, budget.Plan{Name: "bare", Regions: []budget.RegionPlan{{Name: "all", Size: 1}}})
	assert.Equal(t, `budget: BUG: plan "bare" has no frame; give it frame.buffers and frame.size`,
		panics(t, func() { bare.Frame() }))
	assert.Contains(t, panics(t, func() { bare.Scratch(0, 0) }), "has scratch for 0 workers")
	assert.NoError(t, bare.NextFrame(), "a budget without a frame turns, too")
}

func TestWhatIsOpened(t *testing.T) {
	plan := small()
	plan.Size = 10 * budget.MiB
	plan.Limits = budget.Limits{}
	b := open(t, plan)
	plan.Regions[0].Name = "changed"
	assert.Equal(t, "init", b.Plan().Regions[0].Name, "the plan is the budget's own")
	assert.Equal(t, budget.Limits{Scopes: 64, Pools: 64, Owned: 256, Labels: 32}, b.Plan().Limits)
	assert.Equal(t, "level", b.Region("level").Name())
	assert.EqualValues(t, 512*budget.KiB+100, len(b.Region("level").Base().Bytes()))
	assert.EqualValues(t, b.Size(), len(b.Base().Bytes()))
	assert.Zero(t, addressOf(&b.Base().Bytes()[0])%(64*budget.KiB))
	for _, name := range []string{"init", "systems", "level"} {
		assert.Zero(t, addressOf(&b.Region(name).Base().Bytes()[0])%(64*budget.KiB), name)
	}
	var scratches []string
	for _, r := range beside(b.Report()) {
		scratches = append(scratches, r.Name)
		assert.EqualValues(t, 64*budget.KiB, r.Size)
	}
	assert.Equal(t, []string{"frame 0", "frame 1", "scratch 0.0", "scratch 0.1", "scratch 1.0", "scratch 1.1"},
		scratches)
	assert.EqualValues(t, b.Size(), b.Report().Size)
	assert.Equal(t, "small", b.Report().Name)
}

func TestGoShare(t *testing.T) {
	limit := debug.SetMemoryLimit(-1)
	percent := debug.SetGCPercent(100)
	defer debug.SetGCPercent(percent)
	plan := small()
	plan.GoHeap = 512 * budget.MiB
	b := open(t, plan)
	now := debug.SetMemoryLimit(-1)
	assert.EqualValues(t, -1, debug.SetGCPercent(-1), "nothing else starts a collection")
	if platform.GoBacked {
		assert.GreaterOrEqual(t, now, int64(plan.GoHeap+b.Size()), "the budget counts as heap, too")
	} else {
		assert.EqualValues(t, plan.GoHeap+budget.SitesOf(plan), now, "in checked builds the call sites come on top")
	}
	other := small()
	other.Name, other.GoHeap = "other", budget.GiB
	_, err := budget.Open(other)
	assert.EqualError(t, err,
		`budget "other": go_heap: budget "small", which is open, has set the limit of the Go heap; `+
			`set go_heap to 0 here`)
	other.GoHeap = 0
	require.NoError(t, open(t, other).Close())
	assert.Equal(t, now, debug.SetMemoryLimit(-1))

	require.NoError(t, b.Close())
	assert.Equal(t, limit, debug.SetMemoryLimit(-1))
	assert.Equal(t, 100, debug.SetGCPercent(100))
	other.GoHeap = budget.GiB
	require.NoError(t, open(t, other).Close(), "now it may")
	assert.Equal(t, limit, debug.SetMemoryLimit(-1))
}

// TestManyBudgetsInOneRange: each budget returns all that it held, its tables on the Go heap
// included.
func TestManyBudgetsInOneRange(t *testing.T) {
	plan := small()
	plan.Pages.Prefault = budget.Off
	fresh(t, plan)
	ranges := map[uintptr]bool{}
	var before, after runtime.MemStats
	for i := range step.Pick(200, 1000, 1000) {
		if i == 50 {
			runtime.GC()
			runtime.ReadMemStats(&before)
		}
		b, err := budget.Open(plan)
		require.NoError(t, err)
		ranges[addressOf(&b.Base().Bytes()[0])] = true
		_, err = load(b, "level", nil)
		require.NoError(t, err)
		if i%3 == 0 {
			_, err = load(b, "level", func(scope.Scope) error { return errLoader })
			require.ErrorIs(t, err, errLoader)
		}
		require.NoError(t, b.Close())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	assert.Len(t, ranges, 1)
	if !instrumented { // these allocate more
		assert.Less(t, after.HeapAlloc, before.HeapAlloc+64*budget.KiB)
	}
}

// TestReportSaysWhatThePagesCost: with Prefault the whole plan is resident, else only its used
// pages.
func TestReportSaysWhatThePagesCost(t *testing.T) {
	if platform.GoBacked {
		t.Skip("with -race the pages are the Go heap's, which says nothing of them: run it without, " +
			"go test -run WhatThePagesCost ./budget")
	}
	step.Machine(t, step.PlentyOfAddresses()) // else a range has exactly the plan's size
	plan := paged()
	b := open(t, demanding(plan, "prefault", budget.Required))
	r := b.Report()
	resident := b.PartBytes()
	if _, measured := b.Missing(); !measured {
		resident = 0
	}
	assert.Equal(t, [3]uint64{8 * budget.MiB, b.Size(), resident}, [3]uint64{r.Reserved, r.Committed, r.Resident})
	require.NoError(t, b.Close())
	assert.Equal(t, r.Resident, b.Report().Resident, "after Close as before")

	b = open(t, demanding(plan, "guards", budget.Required))
	r = b.Report()
	assert.Equal(t, [2]uint64{8 * budget.MiB, b.Size() - 3*64*budget.KiB}, [2]uint64{r.Reserved, r.Committed})
	if _, measured := b.Missing(); measured {
		assert.Less(t, r.Resident, uint64(2*budget.MiB), "the tables")
		assert.NotZero(t, r.Resident)
	}
	require.NoError(t, b.Close())

	b, err := budget.OpenIn(block[:], small())
	require.NoError(t, err)
	r = b.Report()
	assert.Equal(t, [3]uint64{b.Size(), b.Size(), 0}, [3]uint64{r.Reserved, r.Committed, r.Resident},
		"its pages are its owner's")
	require.NoError(t, b.Close())
}

func TestReportIsDrawn(t *testing.T) {
	b := open(t, small())
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(256 * budget.KiB) })
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(128 * budget.KiB) })
	lines := strings.Split(strings.TrimSpace(quiet(b).String()), "\n")
	for i, line := range lines {
		lines[i] = strings.Replace(line, " in 2 objects", "", 1) // of checked builds
	}
	assert.Regexp(t, "^  memory: [0-9]+KiB reserved, 1408KiB committed, [0-9]+KiB resident$", lines[1])
	lines = slices.Delete(lines, 1, 2)
	goHeap := "192KiB"
	if strconv.IntSize == 32 {
		goHeap = "128KiB"
	}
	assert.Equal(t, []string{"budget small: 1408KiB",
		"  cost: 1408KiB of addresses, 1304KiB resident at most (pages of 64 KiB: 1408KiB), Go heap " + goHeap,
		"  Go heap: no limit (the plan has no go_heap)",
		"  init                   [................................] used       0KiB  peak       0KiB  of     128KiB",
		"  systems                [................................] used       0KiB  peak       0KiB  of     256KiB",
		"  level                  [########++++++++................] used     129KiB  peak     257KiB  of     513KiB",
		"  frame 0 and 1 more     [................................] used       0KiB  peak       0KiB  of      64KiB",
		"  scratch 0.0 and 3 more [................................] used       0KiB  peak       0KiB  of      64KiB",
		`  level: scope "level" used 129KiB, peak 257KiB`,
		"  leaks: 0 scopes, 0 owned values, 0 finalizers failed, 0 slots, 0 leases of scratch"}, lines)
	s := b.Scratch(1, 0).Open("used")
	s.Bytes(1000)
	assert.Regexp(t,
		`(?m)^  scratch 0\.0 and 2 more \[\.{32}\] .*\n  scratch 1\.0 +\[#\.+\] used       1KiB .*\n  level`,
		b.Report().String(), "one that isn't alike has a line of its own")
	require.NoError(t, s.Close())
	mustFill := attempt(func() error {
		_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(int(s.Free())); return errLoader })
		return err
	})
	assert.True(t, errors.Is(mustFill.err, errLoader))
	assert.Contains(t, b.Report().String(), "[++++++++++++++++++++++++++++++++]",
		"a region that was full to the last byte")
}
