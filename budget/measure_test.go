package budget_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/tests/step"
)

// narrowMachine limits Measure's widest plan to 16 MiB: some builds touch all of it.
func narrowMachine(t testing.TB) {
	t.Cleanup(budget.SetLimits(platform.Limit{Name: "test", Bytes: 32 * budget.MiB}))
}

func measured() budget.Plan {
	return budget.Plan{
		Name: "measured",
		Regions: []budget.RegionPlan{{Name: "init", Size: 1000}, {Name: "match", Size: 1000, Slots: 3},
			{Name: "level", Size: 1000, Note: "kept"}, {Name: "spare", Size: 1 << 20}},
		Frame:   budget.FramePlan{Buffers: 2, Size: 1000},
		Scratch: budget.ScratchPlan{Workers: 2, Size: 1000},
		Limits:  budget.Limits{Scopes: 4, Pools: 1, Owned: 1, Labels: 1},
	}
}

func runs(t testing.TB, plan budget.Plan, fn func(b *budget.Budget) error) bool {
	t.Helper()
	plan.Pages.Prefault = budget.Off
	b, err := budget.Open(plan)
	require.NoError(t, err)
	defer b.Close()
	o := attempt(func() error { return fn(b) })
	if o.panicked != nil {
		o.err = o.panicked.(error)
	}
	if o.err != nil {
		require.ErrorIs(t, o.err, budget.ErrFull)
	}
	return o.err == nil
}

// Everything but sizes stays, and the Rest gets a size.
func TestMeasureKeepsThePlan(t *testing.T) {
	narrowMachine(t)
	told := 0
	plan := small()
	plan.Size, plan.Base, plan.GoHeap, plan.OnError = 4*budget.MiB, 1<<40, 8*budget.MiB, func(error) { told++ }
	plan.Pages = budget.Pages{Lock: budget.Required, Guards: budget.Wished}
	plan.Regions[2].Size = budget.Rest
	governor := open(t, budget.Plan{Name: "governor", Regions: plan.Regions[:1], GoHeap: 8 * budget.MiB})
	report, err := budget.Measure(plan, func(b *budget.Budget) error {
		assert.Zero(t, b.Plan().GoHeap)
		assert.Equal(t, budget.Pages{Prefault: budget.Off, Lock: budget.Off, Huge: budget.Off, Guards: budget.Off,
			Base: budget.Off},
			b.Plan().Pages)
		return errors.Join(replaceFailing(b), b.Region("level").Rewind(background))
	})
	require.NoError(t, err)
	require.NoError(t, governor.Close())
	assert.Equal(t, 2, told, "once in each run")
	got := report.Plan
	assert.EqualValues(t, 24, got.Regions[2].Size, "the mark and its finalizer")
	assert.Equal(t, []any{"small", uint64(0), plan.Base, plan.GoHeap}, []any{got.Name, got.Size, got.Base, got.GoHeap})
	assert.Equal(t, budget.Pages{Prefault: budget.Wished, Lock: budget.Required, Huge: budget.Off,
		Guards: budget.Wished,
		Base:   budget.Wished}, got.Pages)
	assert.NotNil(t, got.OnError)
}

func replaceFailing(b *budget.Budget) error {
	for _, do := range []int64{doFail, 0} {
		_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*mark, error) {
			return newMark(s, 1, do), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func TestMeasureLimits(t *testing.T) {
	narrowMachine(t)
	report, err := budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error {
			for range 5000 { // more than the wide plan's first limit
				s.Defer(func() {})
			}
			for i := range 7 {
				require.NoError(t, scope.Label(s, fmt.Sprint(i), func() error {
					frogs.Pool(s, 1)
					frogs.Pool(s, 1)
					return nil
				}))
			}
			for range 4 {
				s = s.Open("deeper")
				defer s.Close()
			}
			return nil
		})
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, 5000, report.Plan.Limits.Owned)
	assert.Equal(t, 5, report.Plan.Limits.Scopes)
	assert.Equal(t, 14, report.Plan.Limits.Pools)
	assert.Equal(t, 7, report.Plan.Limits.Labels)
}

func TestMeasureErrors(t *testing.T) {
	narrowMachine(t)
	bad := errors.New("bad map")
	_, err := budget.Measure(measured(), func(b *budget.Budget) error { return bad })
	assert.Equal(t, bad, err)
	assert.PanicsWithValue(t, "oops", func() {
		_, _ = budget.Measure(measured(), func(b *budget.Budget) error { panic("oops") })
	})
	var last *budget.Budget
	exited := attempt(func() error {
		_, err := budget.Measure(measured(), func(b *budget.Budget) error { last = b; runtime.Goexit(); return nil })
		return err
	})
	assert.True(t, exited.exited)
	assert.ErrorIs(t, last.Close(), budget.ErrClosed, "closed by Measure")

	_, err = budget.Measure(budget.Plan{}, nil)
	assert.ErrorContains(t, err, "plan \"\": name")
	_, err = budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(1 << 30); return nil })
		return err
	})
	assert.ErrorIs(t, err, budget.ErrFull)
	assert.ErrorContains(t, err,
		`budget "measured": Measure: full even in a plan that is far wider: budget "measured": region level `)
	_, err = budget.Measure(measured(), func(b *budget.Budget) error { b.Scratch(0, 0).Open("left"); return nil })
	assert.ErrorContains(t, err, `scratch 0.0: left open at NextFrame, Release or Close: scope "left"`)
	report, err := budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", nil)
		return errors.Join(err, b.Close())
	})
	require.NoError(t, err, "fn may close the budget")
	assert.EqualValues(t, 24, report.Plan.Regions[2].Size)
}

// A full that fn ignores widens the plan, as one that it returns does. For a program that differs
// each time, Measure ends with an error.
func TestMeasureHiddenFull(t *testing.T) {
	narrowMachine(t)
	first, calls := true, 0
	report, err := budget.Measure(measured(), func(b *budget.Budget) error {
		size := 100
		if !first {
			size = 300
		}
		first = false
		_, _ = load(b, "level", func(s scope.Scope) error { s.Bytes(size); return nil })
		scratch := b.Scratch(1, 1).Open("scratch")
		if found := frogs.TrySlice(scratch, size); found != nil {
			found[99].X = 1
		}
		_ = scratch.Close()
		calls++
		return nil
	})
	require.NoError(t, err)
	assert.EqualValues(t, 24+300, report.Plan.Regions[2].Size)
	assert.EqualValues(t, 300*24, report.Plan.Scratch.Size)
	assert.Equal(t, 4, calls)

	_, err = budget.Measure(measured(), func(b *budget.Budget) error {
		_, err := load(b, "level", func(s scope.Scope) error {
			s.Bytes(int(b.Region("level").Report().Size) + 1)
			return nil
		})
		return err
	})
	assert.ErrorIs(t, err, budget.ErrFull, "a program that wants more than it gets")
}

// A program needs more from the second run on: Measure raises the part that is full in a run, and
// no further.
func TestMeasureRaises(t *testing.T) {
	narrowMachine(t)
	onScratch := func(work func(s scope.Scope) error) func(b *budget.Budget, more bool) error {
		return func(b *budget.Budget, more bool) error {
			s := b.Scratch(1, 0).Open("scratch")
			defer s.Close()
			if more {
				return work(s)
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		work func(b *budget.Budget, more bool) error
		want uint64 // of level, or the scratch arenas
	}{
		"alignment": {func(b *budget.Budget, more bool) error {
			_, err := load(b, "level", func(s scope.Scope) error {
				if more {
					s.BytesUnzeroed(8, 4096)
				}
				return nil
			})
			return err
		}, 4096 + 8},
		"panic outside of Load": {onScratch(func(s scope.Scope) error { frogs.Slice(s, 10); return nil }), 240},
		"panic after a full": {onScratch(func(s scope.Scope) error { frogs.TrySlice(s, 20)[19].X = 1; return nil }),
			480},
		"error after a full": {onScratch(func(s scope.Scope) error {
			if frogs.TrySlice(s, 30) == nil {
				return errors.New("no room for frogs")
			}
			return nil
		}), 720},
	} {
		calls := 0
		report, err := budget.Measure(measured(), func(b *budget.Budget) error {
			calls++
			return test.work(b, calls > 1)
		})
		require.NoError(t, err, name)
		assert.Equal(t, test.want, max(report.Plan.Regions[2].Size, report.Plan.Scratch.Size), name)
	}
	calls := 0
	_, err := budget.Measure(measured(), func(b *budget.Budget) error {
		calls++
		_, err := load(b, "level", func(s scope.Scope) error {
			s.Bytes(min(calls/2, 7) * 256 * budget.MiB)
			return nil
		})
		return err
	})
	assert.ErrorContains(t, err,
		`budget "measured": Measure: full with sizes that sufficed before; fn must do the same each time: budget "mea`)
}

// A full that no plan's sizes can avoid is fn's own error, at once.
func TestMeasureOthersFull(t *testing.T) {
	narrowMachine(t)
	other := small()
	other.Regions[2].Size = 100
	for want, fn := range map[string]func(b *budget.Budget) error{
		`budget "small": region level is full: scope "level" asked for 101 bytes`: func(*budget.Budget) error {
			b, err := budget.Open(other)
			require.NoError(t, err)
			defer b.Close()
			_, err = load(b, "level", func(s scope.Scope) error { s.Bytes(101); return nil })
			return err
		},
		`budget "measured": region level: temporaries "temp" are full: asked for 11 bytes, 10 of Temp's 10 are free; ` +
			`ask Temp for 11 or more`: func(b *budget.Budget) error {
			_, err := load(b, "level", func(s scope.Scope) error { s.Temp(10).Bytes(11); return nil })
			return err
		},
		`budget "measured": region match: all 3 slots are acquired; Release one, or raise regions[1].slots in the plan to 4 or more`: func(
			b *budget.Budget) error {
			for {
				if _, err := b.Slots("match").Acquire(); err != nil {
					return err
				}
			}
		},
	} {
		calls := 0
		_, err := budget.Measure(measured(), func(b *budget.Budget) error { calls++; return fn(b) })
		require.ErrorContains(t, err, want)
		assert.Equal(t, 0, strings.Index(err.Error(), want))
		assert.Equal(t, 1, calls)
	}
}

// On a machine with little memory, the wide plan is no narrower than the original.
func TestMeasureWithoutRoom(t *testing.T) {
	defer budget.SetLimits(platform.Limit{Name: "test", Bytes: 4 * budget.MiB})()
	plan := measured()
	var sizes []uint64
	_, err := budget.Measure(plan, func(b *budget.Budget) error {
		assert.LessOrEqual(t, b.Size(), uint64(4*budget.MiB))
		sizes = append(sizes, b.Plan().Regions[3].Size)
		return nil
	})
	assert.NoError(t, err)
	assert.Equal(t, []uint64{1 << 20, 1}, sizes, "as planned; then what is used")
	plan.Regions[0].Size = 8 * budget.MiB
	_, err = budget.Measure(plan, func(*budget.Budget) error { return nil })
	assert.ErrorContains(t, err, "and test leaves 4096KiB of 4096KiB")
}

// randomWork allocates in a scope and in scopes inside it; with temps, in temporaries too.
func randomWork(s scope.Scope, r *rand.Rand, temps bool) {
	for range 1 + r.IntN(8) {
		switch k := r.IntN(10); {
		case k < 6:
			s.BytesUnzeroed(r.IntN(3000), 1<<r.IntN(8))
		case k < 7:
			frogs.Pool(s, r.IntN(20))
		case k < 8 && temps:
			temp := s.Temp(r.IntN(20000))
			temp.Bytes(int(temp.Free()))
		default:
			child := s.Open("child")
			child.AllocUnzeroed(uint64(r.IntN(9000)), 16)
			_ = child.Close()
		}
	}
}

// randomProgram does the same each time: loads, slots, ticks and scratch arenas.
func randomProgram(seed uint64, temps bool) func(b *budget.Budget) error {
	return func(b *budget.Budget) error {
		r := rand.New(rand.NewPCG(seed, 1))
		var taken []budget.Region
		for range 1 + r.IntN(3) {
			for _, name := range []string{"init", "level"}[r.IntN(2):] {
				if _, err := load(b, name, func(s scope.Scope) error {
					randomWork(s, r, temps)
					return nil
				}); err != nil {
					return err
				}
			}
			slot, err := b.Slots("match").Acquire()
			if err != nil {
				return err
			}
			taken = append(taken, slot)
			_, err = budget.Load(background, slot, func(s scope.Scope) (*frog, error) {
				randomWork(s, r, temps)
				return nil, nil
			})
			if err != nil {
				return err
			}
			for range r.IntN(4) {
				randomWork(b.Frame(), r, false)
				scratch := b.Scratch(r.IntN(2), r.IntN(2)).Open("scratch")
				randomWork(scratch, r, false)
				if err := errors.Join(scratch.Close(), b.NextFrame()); err != nil {
					return err
				}
			}
		}
		var errs []error
		for _, slot := range taken {
			errs = append(errs, slot.Release(background))
		}
		return errors.Join(errs...)
	}
}

func sizesOf(p *budget.Plan) (sizes []*uint64) {
	for i := range p.Regions {
		sizes = append(sizes, &p.Regions[i].Size)
	}
	return append(sizes, &p.Frame.Size, &p.Scratch.Size)
}

func TestMeasureToTheByte(t *testing.T) {
	narrowMachine(t)
	for seed := range step.Pick[uint64](5, 25, 25) {
		for _, temps := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, temps), func(t *testing.T) {
				calls := 0
				fn := randomProgram(seed, temps)
				report, err := budget.Measure(measured(), func(b *budget.Budget) error { calls++; return fn(b) })
				require.NoError(t, err)
				if !temps {
					assert.Equal(t, 2, calls, "the peaks of the wide plan are what is needed")
				}
				assert.LessOrEqual(t, calls, 2+3, "the regions that have temporaries")
				checkMeasured(t, report, temps)
				assert.True(t, runs(t, report.Plan, fn))
				less := uint64(1)
				if temps {
					less = 64
				}
				for i, size := range sizesOf(&report.Plan) {
					if was := *size; was > less {
						*size -= less
						assert.False(t, runs(t, report.Plan, fn), "part %d with %d less than %d", i, less, was)
						*size = was
					}
				}
			})
		}
	}
}

// checkMeasured checks that each used part is full to its last byte, and that each limit is the
// highest number open at once.
func checkMeasured(t *testing.T, r budget.Report, temps bool) {
	t.Helper()
	most, limits := map[string]uint64{}, budget.Limits{Scopes: 1, Pools: 1, Owned: 1, Labels: 1}
	slots := limits
	for i, row := range r.Arenas {
		part := []string{"init", "match", "match", "match", "level", "spare", "frame", "frame",
			"scratch", "scratch", "scratch", "scratch"}[i]
		most[part] = max(most[part], row.Peak)
		of := &limits
		if part == "match" {
			of = &slots
		}
		of.Scopes, of.Pools = max(of.Scopes, row.MostOpen.Scopes), max(of.Pools, row.MostOpen.Pools)
	}
	for part, size := range map[string]uint64{"init": r.Plan.Regions[0].Size, "match": r.Plan.Regions[1].Size,
		"level": r.Plan.Regions[2].Size, "spare": r.Plan.Regions[3].Size, "frame": r.Plan.Frame.Size,
		"scratch": r.Plan.Scratch.Size} {
		if most[part] == 0 {
			assert.EqualValues(t, 1, size, "%s was not used", part)
		} else if !temps {
			assert.Equal(t, most[part], size, part)
		}
		assert.LessOrEqual(t, most[part], size, part)
	}
	assert.Equal(t, limits, r.Plan.Limits)
	assert.Equal(t, slots, r.Plan.Regions[1].Limits, "each slot pays for its own")
	assert.Zero(t, r.Plan.Regions[2].Limits)
	assert.Equal(t, "kept", r.Plan.Regions[2].Note)
	requireNoFault(t, r.Plan)
	suggested, err := budget.Suggest(r)
	require.NoError(t, err)
	for i, size := range sizesOf(&suggested) {
		assert.LessOrEqual(t, *size, *sizesOf(&r.Plan)[i], "Suggest says the same")
	}
}

// Fulls of the frame and of temporaries that only NextFrame and Close report also widen the plan.
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

// TestMeasureWidens: if fn is full in a checked build's first plan, it runs in a wider one.
func TestMeasureWidens(t *testing.T) {
	narrowMachine(t)
	measure := func(size int) (budget.Report, int, error) {
		runs := 0
		report, err := budget.Measure(small(), func(b *budget.Budget) error {
			runs++
			_, err := load(b, "level", func(s scope.Scope) error { s.Bytes(size); return nil })
			return err
		})
		return report, runs, err
	}
	defer budget.SetWideFirst(2 * budget.MiB)()
	for _, test := range []struct{ size, runs int }{{100, 2}, {budget.MiB, 3}} {
		report, runs, err := measure(test.size)
		require.NoError(t, err)
		assert.Equal(t, test.runs, runs)
		assert.Equal(t, uint64(test.size)+uint64(unsafe.Sizeof(frog{})), report.Plan.Regions[2].Size)
	}
	_, runs, err := measure(32 * budget.MiB)
	assert.ErrorContains(t, err, "full even in a plan that is far wider")
	assert.Equal(t, 2, runs)
}
