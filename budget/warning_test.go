package budget_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/timeline"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
	"github.com/upfront-mem/upfront/tests/model/clib"
)

// warned opens a budget whose region "level", and slots "room" above it, warn at a share.
func warned(t testing.TB, share budget.Percent, tell func(budget.Warning)) *budget.Budget {
	t.Helper()
	return open(t, budget.Plan{
		Name: "warned", Regions: []budget.RegionPlan{{Name: "init", Size: 64 * budget.KiB},
			{Name: "level", Size: 10_000, Warn: share}, {Name: "room", Size: 10_000, Slots: 3, Warn: share}},
		Frame:  budget.FramePlan{Buffers: 2, Size: 64 * budget.KiB},
		Limits: budget.Limits{Scopes: 8, Pools: 2, Owned: 16}, OnWarn: tell})
}

// useOf returns the bytes in use of the arena of a scope, without a look of the ledger.
func useOf(s scope.Scope) uint64 {
	header, _ := s.C()
	return (*arena_c.Scopes)(header).Row().Used()
}

// crossings counts the crossings of one arena, from its use after each single step.
type crossings struct {
	share, size uint64
	over        bool
	want, got   int
}

func (c *crossings) saw(used uint64) {
	if share := c.share * c.size; !c.over && 100*used >= share {
		c.over = true
		c.want++
	} else if 1000*used < 9*share {
		c.over = false
	}
}

// TestWarningsAreOfEachCrossing fills and rewinds a region at random: each crossing makes a
// warning, at the latest when the next scope opens or closes.
func TestWarningsAreOfEachCrossing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	all := 0
	for _, share := range []budget.Percent{1, 30, 50, 80, 99} {
		c := crossings{share: uint64(share), size: 10_000}
		b := warned(t, share, func(w budget.Warning) {
			c.got++
			assert.Equal(t, budget.Warning{Arena: "level", Key: "regions[1].size", Used: w.Used, Size: c.size,
				Share: share, Labels: w.Labels}, w)
			assert.GreaterOrEqual(t, 100*w.Used, c.share*c.size)
			sum := uint64(0)
			for i, u := range w.Labels {
				sum += u.Bytes
				assert.Equal(t, u.Bytes != 0, u.Name != "")
				assert.GreaterOrEqual(t, w.Labels[max(0, i-1)].Bytes, u.Bytes)
			}
			assert.LessOrEqual(t, sum, w.Used)
		})
		for range 60 {
			l, err := load(b, "level", func(s scope.Scope) error { fillAtRandom(t, random, s, &c); return nil })
			require.NoError(t, err)
			require.NotNil(t, l.Get())
			require.Equal(t, c.want, c.got, "after the load")
			require.Equal(t, c.want, regionReport(b, "level").Warnings)
			c.saw(0) // the next load empties it
		}
		all += c.want
		require.NoError(t, b.Close())
		require.Equal(t, c.want, c.got, "after Close")
	}
	assert.Greater(t, all, 500)
}

func fillAtRandom(t *testing.T, random *rand.Rand, level scope.Scope, c *crossings) {
	scopes, temps := []scope.Scope{level}, []scope.Scope(nil)
	top := func() scope.Scope { return scopes[len(scopes)-1] }
	saw := func() { c.saw(useOf(level)) }
	take := func(s scope.Scope) {
		s.AllocUnzeroed(min(s.Free(), random.Uint64N(3000)), 1)
		saw()
	}
	told := func() { require.Equal(t, c.want, c.got) }
	saw()
	for range 80 {
		switch random.IntN(9) {
		default:
			take(top())
		case 0:
			if len(scopes) < 7 {
				scopes = append(scopes, top().Open("inner"))
				told()
			}
		case 1, 2:
			if s := top(); len(scopes) > 1 && len(temps) == 0 {
				_ = s.Close()
				scopes = scopes[:len(scopes)-1]
				told()
				saw()
			}
		case 3:
			if n := random.IntN(2000); top().Free() > uint64(n)+200 && len(temps) < 6 {
				before := c.want
				temps = append(temps, top().Temp(n))
				require.Equal(t, before, c.got)
				saw()
			}
		case 4:
			if n := len(temps); n > 0 {
				_ = temps[n-1].Close()
				temps = temps[:n-1]
				told()
				saw()
			}
		case 5:
			if top().Free() > 100 {
				_, err := frogs.Make(top(), func(*frog) error { saw(); take(top()); return errMark })
				require.ErrorIs(t, err, errMark)
				told()
				saw()
			}
		case 6:
			if len(scopes) < 7 && len(temps) == 0 {
				require.NoError(t, top().Do("do", func(s scope.Scope) error { take(s); return nil }))
				told()
				saw()
			}
		}
	}
	for n := len(temps); n > 0; n-- {
		_ = temps[n-1].Close()
		saw()
	}
	for n := len(scopes) - 1; n > 0; n-- {
		_ = scopes[n].Close()
		saw()
	}
}

// The names of a warning are those of a full, without the bytes of labels counted twice.
func TestWarningNamesTheLargest(t *testing.T) {
	var list []budget.Warning
	b := warned(t, 60, func(w budget.Warning) { list = append(list, w) })
	mustLoad(t, b, "level", func(s scope.Scope) {
		require.NoError(t, scope.Label(s, "sound", func() error { s.Bytes(4000); return nil }))
		require.NoError(t, scope.Label(s, "map", func() error { s.Bytes(1000); return nil }))
		s.Temp(1500)
		assert.Empty(t, list)
		inner := s.Open("inner")
		assert.Len(t, list, 1, "before it opens")
		require.NoError(t, inner.Close())
	})
	names := func(w budget.Warning) (names []string) {
		for _, u := range w.Labels {
			names = append(names, u.Name)
		}
		return names
	}
	require.Len(t, list, 1)
	assert.Equal(t, []string{"sound", "temp", "map"}, names(list[0]))
	assert.EqualValues(t, 4000, list[0].Labels[0].Bytes)
	assert.Equal(t, list[0].Used, regionReport(b, "level").LastWarning)
}

// A slot warns for itself, and so does a region whose load runs inside another.
func TestWarningsOfSlotsAndNestedLoads(t *testing.T) {
	var list []string
	b := warned(t, 70, func(w budget.Warning) { list = append(list, w.Arena+" "+w.Key) })
	var rooms [3]budget.Region
	for i := range rooms {
		rooms[i], _ = b.Slots("room").Acquire()
	}
	fill := func(n int) func(scope.Scope) { return func(s scope.Scope) { s.Bytes(n) } }
	mustLoadRegion(t, rooms[0], fill(6000))
	mustLoadRegion(t, rooms[2], fill(8000))
	assert.Equal(t, []string{"room 2 regions[2].size"}, list)
	mustLoadRegion(t, rooms[2], fill(9000))
	mustLoadRegion(t, rooms[1], fill(9000))
	assert.Equal(t, []string{"room 2 regions[2].size", "room 2 regions[2].size", "room 1 regions[2].size"}, list)
	list = nil
	mustLoad(t, b, "level", func(s scope.Scope) {
		s.Bytes(8000)
		mustLoadRegion(t, rooms[1].In(s), fill(8000))
		assert.Equal(t, []string{"room 1 regions[2].size"}, list, "level is told by its own next scope, or its end")
	})
	assert.Equal(t, []string{"room 1 regions[2].size", "level regions[1].size"}, list)
	parts := b.Published().Parts()
	assert.EqualValues(t, 1, parts[1].Value("warnings"))
	assert.EqualValues(t, 4, parts[2].Value("warnings"))
	assert.Zero(t, parts[0].Value("warnings")+parts[3].Value("warnings"))
}

// A load that fails or panics warns too.
func TestWarningsOfFailedLoads(t *testing.T) {
	count := 0
	b := warned(t, 50, func(budget.Warning) { count++ })
	_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(6000); return errLoader })
	require.ErrorIs(t, err, errLoader)
	assert.Equal(t, 1, count)
	assert.Equal(t, "level panics", panics(t, func() {
		_, _ = load(b, "level", func(s scope.Scope) error {
			return s.Do("inner", func(s scope.Scope) error { s.Bytes(7000); panic("level panics") })
		})
	}))
	assert.Equal(t, 2, count)
	_, err = load(b, "level", func(s scope.Scope) error { s.Bytes(20_000); return nil })
	require.ErrorIs(t, err, budget.ErrFull)
	assert.Equal(t, 2, count, "a full isn't a warning")
}

// A report counts the crossing that it finds; OnWarn gets it with the next scope. Inside OnWarn the
// region is still the load's; published figures can be read.
func TestOnWarnDuringTheLoad(t *testing.T) {
	var b *budget.Budget
	var errs []error
	b = warned(t, 50, func(budget.Warning) {
		errs = append(errs, b.Region("level").Rewind(background))
		assert.Zero(t, b.Published().Arena("level").LastWarning)
	})
	mustLoad(t, b, "level", func(s scope.Scope) {
		s.Bytes(6000)
		assert.Equal(t, 1, regionReport(b, "level").Warnings)
		require.Empty(t, errs)
		inner := s.Open("inner")
		require.Len(t, errs, 1)
		require.NoError(t, inner.Close())
	})
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], budget.ErrLoading)
	assert.Greater(t, b.Published().Arena("level").LastWarning, uint64(6000))
}

// The plan counts the tables that warnings take.
func TestWarningsAreInTheGoShare(t *testing.T) {
	plan := budget.Plan{Name: "share", Regions: []budget.RegionPlan{{Name: "room", Size: 1, Slots: 4096}}}
	without := budget.GoTables(plan)
	plan.Regions[0].Warn = 80
	each := (budget.GoTables(plan) - without) / 4096
	assert.True(t, 200 < each && each < 500, "%d", each)
}

// A scope that C opened and closed between two looks counts if the region was never so full, also
// of a region with an arena that is no heap.
func TestWarningsOfC(t *testing.T) {
	var used []uint64
	b := warned(t, 50, func(w budget.Warning) { used = append(used, w.Used) })
	mustLoad(t, b, "level", func(s scope.Scope) {
		_, err := arena.NewStack(s.BytesUnzeroed(192, 64))
		require.NoError(t, err)
		header, _ := s.C()
		for _, size := range []uint64{1000, 7000, 6000, 8000} {
			inner := clib.Open(header)
			require.True(t, clib.Alloc(header, inner, size))
			require.Equal(t, arena_c.OK, clib.Close(header, inner))
			require.NoError(t, s.Open("look").Close())
		}
		inner := clib.Open(header)
		require.True(t, clib.Alloc(header, inner, 6000))
		regionReport(b, "level") // looks
		require.Equal(t, arena_c.OK, clib.Close(header, inner))
	})
	require.Len(t, used, 3)
	for i, size := range []uint64{7000, 8000, 6000} {
		assert.InDelta(t, size, used[i], 300)
	}
}

// A panic or Goexit of OnWarn passes through the call that found the crossing. No scope stays open,
// and no finalizer runs twice.
func TestOnWarnThatDoesNotReturn(t *testing.T) {
	does := map[string]func(){"panic": func() { panic("warned") }, "goexit": runtime.Goexit}
	steps := map[string]func(s scope.Scope) error{
		"at the end": func(s scope.Scope) error { newMark(s, 1, 0); s.Bytes(7000); return nil },
		"failed":     func(s scope.Scope) error { newMark(s, 1, 0); s.Bytes(7000); return errLoader },
		"open":       func(s scope.Scope) error { newMark(s, 1, 0); s.Bytes(7000); s.Open("inner"); return nil },
		"close": func(s scope.Scope) error {
			inner := s.Open("inner")
			newMark(inner, 1, 0)
			inner.Bytes(7000)
			return inner.Close()
		},
		"do": func(s scope.Scope) error {
			return s.Do("inner", func(s scope.Scope) error { newMark(s, 1, 0); s.Bytes(7000); return nil })
		},
		"temp": func(s scope.Scope) error { newMark(s, 1, 0); s.Bytes(7000); s.Temp(100); return nil },
		"make": func(s scope.Scope) error {
			_, err := frogs.Make(s, func(*frog) error { newMark(s, 1, 0); s.Bytes(7000); return errMark })
			return err
		},
	}
	for how, do := range does {
		for at, step := range steps {
			t.Run(how+" "+at, func(t *testing.T) {
				off := false
				b := warned(t, 50, func(budget.Warning) {
					if !off {
						do()
					}
				})
				returned, v := make(chan bool, 1), make(chan any, 1)
				go func() {
					ok := false
					defer func() { v <- recover(); returned <- ok }()
					_, _ = load(b, "level", step)
					ok = true
				}()
				value := <-v
				assert.False(t, <-returned)
				if how == "panic" {
					assert.Equal(t, "warned", value)
				}
				assert.Equal(t, []int64{1}, ran)
				requireEmpty(t, b, "level")
				off = true
				mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(7000) })
				assert.Equal(t, 2, regionReport(b, "level").Warnings)
				requireWalk(t, b)
				require.NoError(t, b.Close())
			})
		}
	}
}

func TestWarningsAllocateNothing(t *testing.T) {
	if instrumented {
		t.Skip("the race detector, AddressSanitizer and checked builds allocate: go test ./budget runs it")
	}
	var last budget.Warning
	count := 0
	b := warned(t, 50, func(w budget.Warning) { last, count = w, count+1 })
	level := b.Region("level")
	fill := func(s scope.Scope) (*frog, error) {
		s.Temp(1000)
		for range 3 {
			inner := s.Open("inner")
			inner.Bytes(5000)
			if err := inner.Close(); err != nil {
				return nil, err
			}
		}
		return frogs.New(s), nil
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := budget.Load(background, level, fill); err != nil {
			panic(err)
		}
	}))
	assert.Equal(t, 3*101, count)
	assert.Equal(t, "inner", last.Labels[0].Name)
}

// The mark of a warning is in the tick of its load, as a peak is.
func TestWarningsOverTime(t *testing.T) {
	b := warned(t, 50, nil) // counted all the same
	line := timeline.Start(b, 0)
	for _, n := range []int{1000, 6000, 1000, 1000, 8000} {
		mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(n) })
		line.Sample()
		require.NoError(t, b.NextFrame())
	}
	const load, warn = timeline.MarkLoad, timeline.MarkLoad | timeline.MarkWarn
	assert.Equal(t, []timeline.Mark{load, warn, load, load, warn}, line.Read().Arenas[1].Marks)
	assert.Equal(t, "load, warning", warn.String())
	assert.Equal(t, 2, b.Published().Arenas[1].Warnings)
}

// Reconfigure keeps the share, of the new size.
func TestWarningsAfterReconfigure(t *testing.T) {
	var list []budget.Warning
	b := open(t, budget.Plan{Name: "moved", OnWarn: func(w budget.Warning) { list = append(list, w) },
		Regions: []budget.RegionPlan{
			{Name: "low", Size: 64 * budget.KiB, Warn: 50}, {Name: "high", Size: 192 * budget.KiB, Warn: 50}}})
	half := func(s scope.Scope) { s.Bytes(40 * budget.KiB) }
	mustLoad(t, b, "low", half)
	mustLoad(t, b, "high", half)
	require.Len(t, list, 1)
	require.NoError(t, b.Region("low").Rewind(background))
	plan := b.Plan()
	plan.Regions[0].Size, plan.Regions[1].Size = plan.Regions[1].Size, plan.Regions[0].Size
	other := plan
	other.Regions = append([]budget.RegionPlan(nil), plan.Regions...)
	other.Regions[1].Warn = 0
	assert.EqualError(t, b.Reconfigure(background, other),
		`budget "moved": Reconfigure: regions[1].warn is 50% and can't change; the plan has 0%`)
	require.NoError(t, b.Reconfigure(background, plan))
	mustLoad(t, b, "low", half)
	mustLoad(t, b, "high", half)
	require.Len(t, list, 2)
	assert.Equal(t, "high", list[1].Arena)
	assert.EqualValues(t, 64*budget.KiB, list[1].Size)
	assert.Equal(t, 1, regionReport(b, "low").Warnings, "since Open")
}

// Dry arenas and Measure don't warn: their plans fit, or are far too wide.
func TestNoWarningsWithoutARun(t *testing.T) {
	plan := budget.Plan{Name: "dry", Regions: []budget.RegionPlan{{Name: "level", Size: 10_000, Warn: 50}},
		OnWarn: func(budget.Warning) { t.Error("warned") }}
	dry, err := openDry(plan)
	require.NoError(t, err)
	for _, e := range []stack.Event{{Kind: stack.EventOpen, Name: "level"}, {Kind: stack.EventGrow, Size: 9000},
		{Kind: stack.EventClose}} {
		require.NoError(t, stacks(dry)[0].Play(e))
	}
	assert.Zero(t, dryReport(dry).Arenas[0].Warnings)
	report, err := budget.Measure(plan, func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(3000); return nil })
		return err
	})
	require.NoError(t, err)
	assert.Zero(t, report.Arenas[0].Warnings)
	assert.EqualValues(t, 50, report.Plan.Regions[0].Warn)
	assert.NotNil(t, report.Plan.OnWarn)
	suggested, err := budget.Suggest(report)
	require.NoError(t, err)
	assert.EqualValues(t, 50, suggested.Regions[0].Warn)
	assert.NotNil(t, suggested.OnWarn)
}

// Without the key, no warning is counted.
func TestNoWarningsWithoutAShare(t *testing.T) {
	b := warned(t, 0, func(budget.Warning) { t.Error("warned") })
	mustLoad(t, b, "level", func(s scope.Scope) { s.Bytes(9900) })
	assert.Zero(t, regionReport(b, "level").Warnings)
	assert.False(t, errors.Is(b.Close(), budget.ErrFull))
}

// TestHeapsWarnOfTheirUse: two heaps that are full at different moments are never full together.
func TestHeapsWarnOfTheirUse(t *testing.T) {
	warnings := 0
	b := open(t,
		budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: 256 * budget.KiB, Warn: 75}},
			OnWarn: func(budget.Warning) { warnings++ }})
	_, err := load(b, "level", func(s scope.Scope) error {
		for range 2 {
			h, err := arena.NewHeap(s.BytesUnzeroed(112*budget.KiB, 64), 0)
			if err != nil {
				return err
			}
			if err := h.Free(h.Alloc(108*budget.KiB, 16)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	assert.Zero(t, warnings)
	require.NoError(t, b.Close())
}

// crossAndFall fills and empties h until a warning comes. The use of a moment may pass unseen.
func crossAndFall(t *testing.T, h arena.Reallocator, warnings chan budget.Warning) (w budget.Warning) {
	t.Helper()
	for range 1000 {
		var blocks []unsafe.Pointer
		for range 34 {
			blocks = append(blocks, h.Alloc(3100, 16))
		}
		select {
		case w = <-warnings:
		case <-time.After(200 * time.Millisecond):
		}
		for _, p := range blocks {
			require.NoError(t, h.Free(p))
		}
		time.Sleep(100 * time.Millisecond)
		if w.Used != 0 {
			return w
		}
	}
	require.Fail(t, "no warning")
	return w
}

// TestHeapsWarn: of a heap in a region the blocks in use count. A region warns of them without a
// scope or a load, and again after they fell.
func TestHeapsWarn(t *testing.T) {
	for _, kind := range []string{"heap", "shared", "buddy"} {
		t.Run(kind, func(t *testing.T) {
			warnings := make(chan budget.Warning, 8)
			const size = 128 * budget.KiB
			b := open(t, budget.Plan{Name: "pond", Regions: []budget.RegionPlan{{Name: "level", Size: size, Warn: 75}},
				OnWarn: func(w budget.Warning) { warnings <- w }})
			var h arena.Reallocator
			_, err := load(b, "level", func(s scope.Scope) error {
				return scope.Label(s, "blocks", func() (err error) {
					block := s.BytesUnzeroed(112*budget.KiB, 64)
					if kind == "buddy" {
						h, err = arena.NewBuddy(block, 64)
						return err
					}
					heap, err := arena.NewHeap(block, 0)
					if h = heap; err == nil && kind == "shared" {
						h, err = heap.Shared()
					}
					return err
				})
			})
			require.NoError(t, err)
			assert.Empty(t, warnings, "a heap isn't in use as a whole")
			for round := range 2 {
				got := crossAndFall(t, h, warnings)
				assert.Greater(t, got.Used, uint64(size*3/4))
				assert.Equal(t, budget.Warning{Arena: "level", Key: "regions[0].size", Used: got.Used, Size: size,
					Share: 75, Labels: got.Labels}, got)
				assert.Equal(t, "blocks", got.Labels[0].Name)
				assert.Equal(t, round+1, b.Published().Arena("level").Warnings)
			}
			require.NoError(t, b.Region("level").Rewind(t.Context()))
			require.NoError(t, b.Close())
			assert.Empty(t, warnings)
		})
	}
}
