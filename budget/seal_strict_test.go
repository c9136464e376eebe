//go:build checked

package budget_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/scope"
)

// strict opens a strict budget. after calls NextFrame, fn and NextFrame, and returns the panic of
// the last call.
func strict(t testing.TB) (b *budget.Budget, after func(fn func()) string) {
	t.Helper()
	plan := small()
	plan.Regions = append(plan.Regions, budget.RegionPlan{Name: "room", Size: 64 * budget.KiB, Slots: 2})
	b = open(t, plan)
	timelineOf = timeline.Start(b, 8)
	require.NoError(t, b.SealStrict())
	return b, func(fn func()) string {
		turn(b)
		fn()
		return turn(b)
	}
}

var timelineOf *timeline.Timeline

// turn returns the panic of NextFrame. It allocates nothing itself.
func turn(b *budget.Budget) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = v.(string)
		}
	}()
	if err := b.NextFrame(); err != nil {
		return err.Error()
	}
	return ""
}

func TestStrictNextFramePanics(t *testing.T) {
	b, after := strict(t)
	require.Empty(t, after(func() { frogs.New(b.Frame()) }))
	var before, failed, turned scope.Scope
	var again string
	said := after(func() { escape(); before = b.Frame() })
	after(func() {
		escape()
		before = b.Frame()
		_ = turn(b)
		failed = b.Frame()
		again = turn(b)
		turned = b.Frame()
	})
	lines := strings.Split(said, "\n")
	assert.Equal(t,
		`budget "small": BUG: Strict: 1 Go allocation, 64 bytes, between frames; allocate at set-up or in a load:`,
		lines[0])
	assert.Equal(t, `  1 object, 64 bytes:`, lines[1])
	assert.Contains(t, lines[2], "    github.com/upfront-mem/upfront/budget_test.escape (")
	assert.Contains(t, lines[2], lineOf(t, "escape"))
	assert.Equal(t, before, failed, "it did not turn")
	assert.Empty(t, again, "it is told once")
	assert.NotEqual(t, before, turned)

	said = after(tiny)
	assert.Contains(t, said, lineOf(t, "tiny"))
}

func TestStrictCountsFromTheFirstFrameToTheEndOfTheMode(t *testing.T) {
	b := open(t, small())
	for range 2 {
		require.NoError(t, b.SealStrict())
		escape()
		require.Empty(t, turn(b), "the first")
		escape()
		require.Contains(t, turn(b), lineOf(t, "escape"))
		require.NoError(t, b.Seal())
		escape()
		require.Empty(t, turn(b), "play is over")
	}
	other := small()
	other.Name = "other"
	beside := open(t, other)
	require.NoError(t, b.SealStrict())
	require.Empty(t, turn(b))
	escape()
	require.Empty(t, turn(beside), "it isn't Strict")
	require.Contains(t, turn(b), lineOf(t, "escape"))
	rate := runtime.MemProfileRate
	require.NoError(t, b.Close())
	assert.Equal(t, 1, rate)
	assert.NotEqual(t, 1, runtime.MemProfileRate, "Close gives it back")
}

func TestStrictForgivesTheBudgetsOwnCalls(t *testing.T) {
	b, after := strict(t)
	level, systems, slots := b.Region("level"), b.Region("systems"), b.Slots("room")
	plan, back := moved(b), b.Plan()
	other := small()
	other.Name = "other"
	var opened *budget.Budget
	var room budget.Region
	var err error
	loader := func(s scope.Scope) (*frog, error) { escape(); fillMap(); return frogs.New(s), nil }
	openOther := func() {
		if opened, err = budget.Open(other); err == nil {
			err = opened.Close()
		}
	}
	useRoom := func() {
		if room, err = slots.Acquire(); err == nil {
			_, err = budget.Load(background, room, loader)
			_ = room.Release(background)
		}
	}
	useAll := func() {
		var rooms [3]budget.Region
		for i := range rooms {
			rooms[i], err = slots.Acquire()
		}
		if errors.Is(err, budget.ErrFull) {
			err = errors.Join(rooms[0].Release(background), rooms[1].Release(background))
		}
	}
	for what, call := range map[string]func(){
		"Load":          func() { _, err = budget.Load(background, level, loader) },
		"Rewind":        func() { err = systems.Rewind(background) },
		"Reconfigure":   func() { err = b.Reconfigure(background, plan); plan, back = back, plan },
		"slots":         useRoom,
		"no slot":       func() { assert.Error(t, level.Release(background)) },
		"no free slot":  useAll,
		"inside.Of":     func() { _, err = inside.Of(b, "frame 0") },
		"OfRegion":      func() { _, err = inside.OfRegion(level) },
		"Timeline.Read": func() { timelineOf.Read() },
		"Report":        func() { b.Report() },
		"Region.Report": func() { level.Report() },
		"Published":     func() { b.Published() },
		"Walk":          func() { _, err = b.Walk() },
		"Missing":       func() { b.Missing() },
		"Open, Close":   openOther,
		"NoHeap":        func() { _ = b.NoHeap(escape) },
	} {
		if what == "Reconfigure" {
			require.NoError(t, systems.Rewind(background))
		}
		keptMap = map[int]int{}
		require.Empty(t, after(call), what)
		require.NoError(t, err, what)
		said := after(func() { escape(); call() })
		assert.Contains(t, said, "1 Go allocation, 64 bytes, between", "%s: what came before it counts", what)
		assert.Contains(t, said, lineOf(t, "escape"))
		said = after(func() { call(); escape() })
		assert.Contains(t, said, "1 Go allocation, 64 bytes, between", "%s: and what comes after it", what)
		assert.Contains(t, said, lineOf(t, "escape"))
		assert.Contains(t, after(func() { escape(); call(); escape(); call(); escape() }),
			"3 Go allocations, 192 bytes, between", what)
		require.NoError(t, err, what)
	}
}

// TestStrictForgivesWhatIsNotedOfLeaks: the note that NextFrame makes of an open scope on scratch
// doesn't count.
func TestStrictForgivesWhatIsNotedOfLeaks(t *testing.T) {
	b, after := strict(t)
	assert.Empty(t, after(func() { b.Scratch(0, 0).Open("left open") }))
	assert.Empty(t, turn(b))
	assert.Equal(t, 1, b.Report().Leaks.Scopes)
}

func TestStrictForgivesARefusal(t *testing.T) {
	b, after := strict(t)
	ended, cancel := context.WithCancel(background)
	cancel()
	level := b.Region("level")
	fails := func(scope.Scope) (*frog, error) { return nil, errLoader }
	exits := func(scope.Scope) (*frog, error) { runtime.Goexit(); return nil, nil }
	var refused, failed error
	require.Empty(t, after(func() {
		_, refused = budget.Load(ended, level, fails)
		_, failed = budget.Load(background, level, fails)
	}))
	require.ErrorIs(t, refused, context.Canceled)
	require.ErrorIs(t, failed, errLoader)
	require.True(t, attempt(func() error { _, err := budget.Load(background, level, exits); return err }).exited)
	assert.Contains(t, after(escape), lineOf(t, "escape"), "a load that ended its goroutine is over")
}

func TestStrictForgivesAFull(t *testing.T) {
	b, after := strict(t)
	said := after(func() {
		require.Nil(t, b.Frame().TryAllocUnzeroed(1<<30, 8))
		escape() // like a caller that wraps the error
		require.ErrorIs(t, b.Frame().Err(), budget.ErrFull)
	})
	assert.Contains(t, said, "is full")
	assert.NotContains(t, said, "Strict")
	assert.Contains(t, after(escape), lineOf(t, "escape"), "the next frame counts")
}

func TestStrictCountsOtherGoroutines(t *testing.T) {
	do := elsewhere(t)
	_, after := strict(t)
	require.Empty(t, after(func() {
		for range 50 {
			do(nothing)
		}
	}), "who waits is no matter")
	said := after(func() { do(escape) })
	assert.Contains(t, said, lineOf(t, "escape"))
	assert.Contains(t, said, "budget_test.elsewhere.func")
}

func TestStrictCountsFinalizersOfTheFrame(t *testing.T) {
	b, after := strict(t)
	var first, second string
	after(func() {
		// it runs at the end of the next frame, and counts for the one after that
		b.Frame().Defer(escape)
		first, second = turn(b), turn(b)
	})
	assert.Empty(t, first+second)
	b.Frame().Defer(escape)
	turn(b)
	turn(b)
	assert.Contains(t, turn(b), lineOf(t, "escape"))
}

// TestStrictIsSilent runs frames with collections, sleeps and reports between them.
func TestStrictIsSilent(t *testing.T) {
	b, after := strict(t)
	scratch := b.Scratch(0, 0)
	play := func() {
		for i := range 50 {
			frogs.New(b.Frame())
			s := scratch.Open("scratch")
			frogs.Slice(s, 3)
			_ = s.Close()
			switch i % 10 {
			case 3:
				runtime.GC()
			case 5:
				time.Sleep(time.Microsecond)
			case 7:
				b.Report()
			}
			if err := b.NextFrame(); err != nil {
				panic(err)
			}
		}
	}
	for _, processors := range []int{1, 2} {
		before := runtime.GOMAXPROCS(processors)
		require.Empty(t, after(play))
		runtime.GOMAXPROCS(before)
	}
}

// TestStrictWhileOthersLoad: during a load only the goroutine that calls NextFrame counts, however
// deep the load's calls are, and on however many goroutines.
func TestStrictWhileOthersLoad(t *testing.T) {
	b, after := strict(t)
	do := elsewhere(t)
	level := b.Region("level")
	deep := func(s scope.Scope) (*frog, error) { nest(64); do(escape); return frogs.New(s), nil }
	var err error
	require.Empty(t, after(func() { _, err = budget.Load(background, level, deep) }))
	require.NoError(t, err)

	inside, leave, done := make(chan bool), make(chan bool), make(chan error, 1)
	load := func() {
		_, err := budget.Load(background, level, func(s scope.Scope) (*frog, error) {
			inside <- true
			<-leave
			return frogs.New(s), nil
		})
		done <- err
		inside <- true
	}
	go func() { load() }()
	<-inside
	require.Empty(t, after(func() { do(escape) }))
	require.Empty(t, after(func() { do(escape) }), "it is still at work")
	said := after(func() { do(escape); escape() })
	require.Contains(t, said, "1 Go allocation, 64 bytes, between")
	require.Contains(t, said, lineOf(t, "escape"))
	leave <- true
	<-inside
	require.NoError(t, <-done)
	turn(b)
	require.Contains(t, after(func() { do(escape) }), lineOf(t, "escape"), "it is over")
}
