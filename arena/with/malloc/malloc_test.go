package malloc_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena/with/malloc"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/tests/step"
)

// A process begins once, so each test does it in a process of its own.
const childVariable = "UPFRONT_MALLOC_CHILD"

// defined reports whether this build has the package's malloc.
const defined = runtime.GOOS == "linux" && !arena_c.Asan

// inChild runs the rest of the test in a process of its own, and returns false in this one.
func inChild(t *testing.T) bool {
	t.Helper()
	if !defined {
		t.Skip("this build has another malloc: on Linux, go test ./arena/with/malloc runs it")
	}
	if os.Getenv(childVariable) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"="+t.Name(), "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

func begin(p arena_c.ProcessPlan) error {
	_, err := arena_c.ProcessHeapOf().Begin(p)
	return err
}

func TestBegin(t *testing.T) {
	if !inChild(t) {
		return
	}
	before := malloc.ReadStats()
	assert.Equal(t, uint64(0), before.Size)
	assert.Equal(t, uint64(1<<20), before.Static)
	assert.NotZero(t, before.StaticUsed, "of libc, which allocates before main")
	assert.Zero(t, malloc.Trim())

	plan := arena_c.ProcessPlan{Size: 16, Runtime: 4, Reserve: 64 << 10, Trim: 3600e9, Prefault: true}
	assert.EqualError(t, begin(plan), "size 16: C code has "+number(malloc.ReadStats().StaticUsed)+" bytes already")
	plan.Size = 64 << 10
	assert.EqualError(t, begin(plan), "size 65536 is out of range for a heap", "4 bytes for Go's runtime hold none")
	plan.Runtime = 0
	assert.EqualError(t, begin(plan), "size 65536 is too small: at most half of it may be for Go's runtime, and "+
		"that takes 65536 bytes")
	plan.Profile = 1
	assert.EqualError(t, begin(plan), "profile 1: its samples take 167774208 bytes, more than half of the size 65536")
	plan.Profile = 0
	plan.Size = 1 << 60
	assert.ErrorContains(t, begin(plan), "the system refuses 1152921504606846976 bytes of addresses: ")
	assert.Zero(t, malloc.ReadStats().Size, "a refused plan changes nothing")

	plan.Size = 2 << 20
	require.NoError(t, begin(plan))
	stats := malloc.ReadStats()
	assert.Equal(t, uint64(2<<20), stats.Size)
	assert.Equal(t, uint64(64<<10), stats.Reserve)
	require.NoError(t, begin(plan), "an equal plan changes nothing")
	plan.Fronts = 4
	require.NoError(t, begin(plan), "4 is the default")
	plan.Prefault = false
	require.NoError(t, begin(plan), "its pages are present all the same")

	for _, c := range []struct {
		change func(p *arena_c.ProcessPlan)
		says   string
	}{
		{func(p *arena_c.ProcessPlan) { p.Size++ }, "size 2097153: the process began with 2097152, and keeps it " +
			"until its end"},
		{func(p *arena_c.ProcessPlan) { p.Reserve = 0 }, "reserve 0: the process began with 65536, and keeps it " +
			"until its end"},
		{func(p *arena_c.ProcessPlan) { p.Runtime = 4096 }, "runtime 4096: the process began with 65536, and keeps " +
			"it until its end"},
		{func(p *arena_c.ProcessPlan) {
			p.Fronts = 7
		}, "fronts 7: the process began with 4, and keeps it until its end"},
		{func(p *arena_c.ProcessPlan) { p.Trim = 1e9 }, "trim 1s: the process began with 1h0m0s, and keeps it until " +
			"its end"},
		{func(p *arena_c.ProcessPlan) { p.Profile = 32 << 10 }, "profile 32768: the process began with 0, and " +
			"keeps it until its end"},
		{func(p *arena_c.ProcessPlan) { p.Lock = true }, "the system refuses to keep 2097152 bytes present: the " +
			"process began without it"},
	} {
		other := plan
		c.change(&other)
		assert.EqualError(t, begin(other), c.says)
	}
	assert.Equal(t, stats.Size, malloc.ReadStats().Size)
}

func number(n uint64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return number(n/10) + number(n%10)
}

// TestBeginLocked: locked pages aren't trimmed.
func TestBeginLocked(t *testing.T) {
	step.Machine(t, step.LockedMemory(2<<20))
	if !inChild(t) {
		return
	}
	require.NoError(t, begin(arena_c.ProcessPlan{Size: 1 << 20, Lock: true}))
	assert.Zero(t, malloc.Trim())
}

// TestBeginAnySize: a size may be any number of bytes, and so may the part for Go's runtime.
func TestBeginAnySize(t *testing.T) {
	if !inChild(t) {
		return
	}
	plan := budget.Plan{Name: "pond", CHeap: budget.CHeapPlan{Size: 21782753, Runtime: 5001, Reserve: 77}}
	b, err := budget.Open(plan)
	require.NoError(t, err)
	stats := malloc.ReadStats()
	assert.Equal(t, uint64(21782753), stats.Size)
	assert.InDelta(t, 5001, stats.Runtime, 128)
	require.NoError(t, b.Close())
}

// TestReopen: the heap outlives its budget, and the next one takes it.
func TestReopen(t *testing.T) {
	if !inChild(t) {
		return
	}
	plan := budget.Plan{Name: "pond", CHeap: budget.CHeapPlan{Size: 4 * budget.MiB}}
	for range 3 {
		b, err := budget.Open(plan)
		require.NoError(t, err)
		assert.Equal(t, uint64(4*budget.MiB), malloc.ReadStats().Size)
		require.NoError(t, b.Close())
	}
	plan.CHeap.Size *= 2
	_, err := budget.Open(plan)
	assert.EqualError(t, err,
		`budget "pond": c_heap: size 8388608: the process began with 4194304, and keeps it until its end`)
}

func TestCleanUp(t *testing.T) {
	if !inChild(t) {
		return
	}
	failure := errors.New("of the function")
	assert.NoError(t, malloc.CleanUp(func() error { return nil }), "before Open, too")
	require.NoError(t, begin(arena_c.ProcessPlan{Size: 1 << 20, Reserve: 1 << 18}))
	assert.Equal(t, failure, malloc.CleanUp(func() error { return failure }))
	assert.Panics(t, func() { _ = malloc.CleanUp(func() error { panic(failure) }) })
	assert.Equal(t, uint64(1<<18), malloc.ReadStats().Reserve)
}

// TestUnsupported: in a build without the package's malloc Open works, and the report says why
// c_heap bounds nothing.
func TestUnsupported(t *testing.T) {
	if defined {
		t.Skip("only a build with another malloc refuses: go test -asan ./arena/with/malloc runs it")
	}
	err := begin(arena_c.ProcessPlan{Size: 1 << 20})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	want := "package arena/with/malloc defines malloc on Linux alone; on " + runtime.GOOS + " c_heap bounds nothing"
	if arena_c.Asan {
		want = "an asan build has AddressSanitizer's malloc, so c_heap isn't used and bounds nothing"
	}
	assert.EqualError(t, err, want)
	assert.Equal(t, malloc.Stats{}, malloc.ReadStats())
	assert.Zero(t, malloc.Trim())
	assert.NoError(t, malloc.CleanUp(func() error { return nil }))
}

func TestReadStatsDoesntAllocate(t *testing.T) {
	if arena_c.Race {
		t.Skip("the race detector allocates: go test ./arena/with/malloc runs it")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { malloc.ReadStats() }))
}
