package budget_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// unsited returns an error's text without the calls that checked builds add.
func unsited(err error) string {
	if err == nil {
		return ""
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if !strings.HasPrefix(line, "\t") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSuffix(strings.Join(lines, ""), "\n")
}

func TestSlotsThatNobodyReleased(t *testing.T) {
	b := open(t, rooms(true))
	first, second, third := acquire(t, b), acquire(t, b), acquire(t, b)
	mustFill(t, third, 3)
	require.NoError(t, second.Release(background))
	assert.Zero(t, b.Report().Leaks, "they may still come back")
	var released error
	mustLoad(t, b, "systems", func(s scope.Scope) { s.Defer(func() { released = first.Release(background) }) })
	mustFill(t, third, 4)
	ran = nil
	assert.Equal(t, `budget "rooms": never released: slot "room 0", slot "room 2"; call Release on each acquired slot`,
		unsited(b.Close()))
	assert.EqualError(t, released,
		`budget "rooms": Release of region room 0 refused during a Close; call it when that has returned: upfront: a load, rewind or close is at work`)
	assert.Equal(t, []int64{4}, ran, "they are emptied all the same")
	assert.Equal(t, budget.Leaks{Slots: 2}, b.Report().Leaks)
	_, err := b.Slots("room").Acquire()
	assert.EqualError(t, err, `budget "rooms": Acquire of a slot of region room: upfront: closed`)
	assert.ErrorIs(t, first.Release(background), budget.ErrClosed)
	assert.Equal(t, budget.Leaks{Slots: 2}, b.Report().Leaks)
}

// TestCloseThatIsRefusedCountsNothing: after a Close that was refused, a lease may still be
// released.
func TestCloseThatIsRefusedCountsNothing(t *testing.T) {
	b := open(t, rooms(false))
	room := acquire(t, b)
	reader := room.Reader("worker")
	require.True(t, reader.Pin())
	require.ErrorContains(t, b.Close(), `"worker" has pinned region room 0`)
	reader.Unpin()
	acquired := acquire(t, b)
	require.NoError(t, acquired.Release(background))
	require.NoError(t, room.Release(background))
	require.NoError(t, b.Close())
	assert.Zero(t, b.Report().Leaks)
}

// TestManyLeaks: the error names the first sixteen.
func TestManyLeaks(t *testing.T) {
	plan := rooms(false)
	plan.Regions[1].Slots, plan.Regions[1].Size = 30, budget.KiB
	b := open(t, plan)
	var names []string
	for i := range 19 {
		names = append(names, fmt.Sprintf("slot %q", acquire(t, b).Name()))
		b.Scratch(0, 0).Open(fmt.Sprint(i))
	}
	text := unsited(b.Close())
	assert.Contains(t, text, strings.Join(names[:16], ", ")+" and 3 more; call Release")
	assert.Contains(t, text, `"14", "15" and 3 more; close each`)
	assert.Equal(t, budget.Leaks{Scopes: 19, Slots: 19}, b.Report().Leaks)
}

func TestOwnedValuesThatAreLostAreNamed(t *testing.T) {
	b := open(t, small())
	scratch := b.Scratch(0, 0).Open("a")
	scratch.Own(&closer{1})
	gone := scratch.Defer(func() { t.Error("it was cancelled") })
	scratch.Keep(new(int))
	scratch.Defer(func() { t.Error("it was lost") })
	require.True(t, gone.Cancel())
	assert.Zero(t, b.Report().Leaks.Owned, "what is owned is no leak")
	tableOf(b).Row(5).Arena.Chain = 0 // a stray write: the chain is lost
	require.NoError(t, scratch.Close())
	assert.Equal(t,
		`budget "small": scratch 0.0: 3 owned values outlived their scopes, as a stray write has overwritten the chain of finalizers: Close of *budget_test.closer, a value of *int, `+`a deferred function`,
		unsited(b.Close()))
	assert.Equal(t, budget.Leaks{Owned: 3}, b.Report().Leaks)
}

// TestLoadedIsWhatItLoaded makes a rewind begin where the load ends, before Load returns. The
// result is dead when Load returns.
func TestLoadedIsWhatItLoaded(t *testing.T) {
	defer onOneProcessor()()
	b := open(t, small())
	level := b.Region("level")
	rewound := make(chan error)
	for range 3 {
		loaded := mustLoadAndRewind(t, b, level, rewound)
		require.NoError(t, <-rewound)
		assert.Nil(t, loaded.Get(), "of what was rewound since")
	}
}

// mustLoadAndRewind loads while another goroutine waits for the end of the load, and then rewinds
// at once.
func mustLoadAndRewind(t *testing.T, b *budget.Budget, level budget.Region, rewound chan error) budget.Loaded[frog] {
	t.Helper()
	loaded, err := budget.Load(background, level, func(s scope.Scope) (*frog, error) {
		// from here on the load waits for no goroutine
		s.Temp(64).Defer(func() {
			resume := b.Stop()
			go func() {
				untilLocking(t, 1)
				go func() { rewound <- level.Rewind(background) }() // waits second
				untilLocking(t, 2)
				resume()
			}()
		})
		return frogs.New(s), nil
	})
	require.NoError(t, err)
	return loaded
}

// Leaks at each NextFrame are counted, and named at each read.
func TestLeaksDontFillTheGoHeap(t *testing.T) {
	if instrumented {
		t.Skip("race, asan and checked builds put things of their own on the Go heap: run it without, " +
			"go test -run DontFillTheGoHeap ./budget")
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

// TestSitesCostNothing: call sites take no memory outside checked builds.
func TestSitesCostNothing(t *testing.T) {
	var site arena_c.Site
	if site.Note(); !arena_c.Checked {
		assert.Zero(t, unsafe.Sizeof(site))
		assert.Empty(t, site.Tell("opened"))
	}
}
