package budget_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
)

func TestGoHeapBesideTheRegions(t *testing.T) {
	used := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.Sys - m.HeapReleased // what debug.SetMemoryLimit says that it counts
	}
	before := used()
	plan := small()
	plan.GoHeap, plan.Regions[0].Size = 512*budget.MiB, 96*budget.MiB
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
	for _, got := range []budget.GoHeap{b.Report().GoHeap, b.Snapshot().GoHeap} {
		assert.GreaterOrEqual(t, got.Collections, heap.Collections+2)
		assert.LessOrEqual(t, got.Collections, heap.Collections+cycles()-begun, "the runtime may have run one of its own")
	}

	block := make([]byte, 64*budget.MiB)
	more := b.Snapshot().GoHeap
	assert.Greater(t, more.Used, heap.Used+16*budget.MiB)
	runtime.KeepAlive(block)
	text := b.Report().String()
	assert.Regexp(t, `(?m)^  go heap    \[#+\.*\] used +\d+  collections +\d+  of    536870912$`, text)
	require.NoError(t, b.Close())
	last := b.Report().GoHeap
	runtime.GC()
	assert.Equal(t, last, b.Report().GoHeap, "as of Close")
	assert.Equal(t, last, b.Snapshot().GoHeap)
}

func TestGoHeapThatIsNotGoverned(t *testing.T) {
	b := open(t, small())
	heap := b.Report().GoHeap
	assert.Zero(t, heap.Limit)
	assert.NotZero(t, heap.Used)
	assert.False(t, strings.Contains(b.Report().String(), "go heap"), "there is nothing to draw it against")
}
