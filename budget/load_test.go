package budget_test

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// failure is a way for a load to fail: the last step of fn, and the outcome of Load.
type failure struct {
	end      func(*budget.Budget, scope.Scope) error
	text     string // in the error; "" for no error
	full     bool
	panicked string // in the panic; "" for no panic
	exited   bool
}

const ignored = `region level is full: scope "level" asked for 25165824 bytes`

var failures = map[string]failure{
	"error":  {end: func(*budget.Budget, scope.Scope) error { return errLoader }, text: "loader failed"},
	"panic":  {end: func(*budget.Budget, scope.Scope) error { panic("boom") }, panicked: "boom"},
	"Goexit": {end: func(*budget.Budget, scope.Scope) error { runtime.Goexit(); return nil }, exited: true},
	"New": {full: true, text: `region level is full: scope "level" asked for 24 bytes`,
		end: func(_ *budget.Budget, s scope.Scope) error {
			for {
				frogs.New(s)
			}
		}},
	"Slice": {full: true, text: ignored, end: func(_ *budget.Budget, s scope.Scope) error {
		frogs.Slice(s, 1<<20)
		return nil
	}},
	"Pool": {full: true, text: "raise regions[2].size",
		end: func(_ *budget.Budget, s scope.Scope) error { frogs.Pool(s, 1<<20); return nil }},
	"inner scope": {full: true, text: `scope "inner" asked for`,
		end: func(_ *budget.Budget, s scope.Scope) error { frogs.Slice(s.Open("inner"), 1<<20); return nil }},
	"a scratch": {full: true, text: `scratch 1.0 is full: scope "query" asked for 25165824 bytes`,
		end: func(b *budget.Budget, _ scope.Scope) error {
			return b.Scratch(1, 0).Do("query", func(s scope.Scope) error { frogs.Slice(s, 1<<20); return nil })
		}},
	"the frame": {full: true, text: "frame 0 is full",
		end: func(b *budget.Budget, _ scope.Scope) error { frogs.Slice(b.Frame(), 1<<20); return nil }},
	"ignored": {full: true, text: ignored,
		end: func(_ *budget.Budget, s scope.Scope) error { frogs.TrySlice(s, 1<<20); return nil }},
	"ignored, an inner scope left open": {full: true, text: ignored,
		end: func(_ *budget.Budget, s scope.Scope) error { frogs.TrySlice(s, 1<<20); s.Open("inner"); return nil }},
	"ignored in an inner scope": {full: true, text: `scope "inner" asked for`,
		end: func(_ *budget.Budget, s scope.Scope) error { frogs.TrySlice(s.Open("inner"), 1<<20); return nil }},
	"ignored two scopes down": {full: true, text: `scope "inner" asked for`,
		end: func(_ *budget.Budget, s scope.Scope) error {
			inner := s.Open("inner")
			frogs.TrySlice(inner, 1<<20)
			inner.Open("innermost")
			return nil
		}},
	"ignored in temp": {full: true, text: `temporaries "temp" are full: asked for`,
		end: func(_ *budget.Budget, s scope.Scope) error { frogs.TrySlice(s.Temp(100), 1<<20); return nil }},
	"ignored in temp, with others beside it": {full: true, text: `temporaries "temp" are full: asked for`,
		end: func(_ *budget.Budget, s scope.Scope) error {
			frogs.TrySlice(s.Temp(100), 1<<20)
			s.Temp(100_000).Bytes(100_000)
			s.Temp(100).Defer(func() {})
			return nil
		}},
	"panic after it": {full: true, text: "; then: panic: runtime error: index out of range [0] with length 0",
		end: func(_ *budget.Budget, s scope.Scope) error { _ = frogs.TrySlice(s, 1<<20)[0]; return nil }},
	"panic after it in temp": {full: true, text: "; then: panic: runtime error: index out of range [0] with length 0",
		end: func(_ *budget.Budget, s scope.Scope) error { _ = frogs.TrySlice(s.Temp(100), 1<<20)[0]; return nil }},
	"scopes": {full: true,
		text: `scope "deep" asked for one more; all open scopes are named "deep": is a Close missing?`,
		end: func(_ *budget.Budget, s scope.Scope) error {
			for {
				s = s.Open("deep")
			}
		}},
	"pools": {full: true,
		text: `all 2 places for pools are taken: scope "level" asked for one more; raise limits.pools in the plan`,
		end: func(_ *budget.Budget, s scope.Scope) error {
			for {
				frogs.Pool(s, 1)
			}
		}},
	"owned": {full: true,
		text: `all 16 places for owned values are taken: scope "level" asked for one more; raise limits.owned in the plan`,
		end: func(_ *budget.Budget, s scope.Scope) error {
			for {
				s.Defer(func() {})
			}
		}},
	"misuse": {panicked: `scope: BUG: allocation in scope "level" of region level while scope "x", opened in it, is open; close "x" first`,
		end: func(_ *budget.Budget, s scope.Scope) error { s.Open("x"); frogs.New(s); return nil }},
	"misuse, after a full": {panicked: "scope: BUG: allocation in a closed scope of region level",
		end: func(_ *budget.Budget, s scope.Scope) error {
			x := s.Open("x")
			frogs.TrySlice(x, 1<<20)
			_ = x.Close()
			frogs.New(x)
			return nil
		}},
	"an undeclared Maker": {panicked: "scope: BUG: a Maker that was never declared",
		end: func(_ *budget.Budget, s scope.Scope) error { scope.Maker[frog]{}.New(s); return nil }},
}

func (f failure) ended(t *testing.T, o outcome) {
	t.Helper()
	assert.Contains(t, fmt.Sprint(o.panicked), cmp.Or(f.panicked, "<nil>"))
	assert.Equal(t, f.exited, o.exited)
	assert.Equal(t, f.text != "", o.err != nil)
	var full *scope.FullError
	assert.Equal(t, f.full, errors.As(o.err, &full))
	assert.Equal(t, f.full, errors.Is(o.err, budget.ErrFull))
}

// fill makes an object with each kind of finalizer; they run in the order of filled.
func fill(s scope.Scope) {
	newMark(s, 11, 0)
	s.Own(&closer{12})
	newMark(s.Temp(100), 15, 0)
	s.Defer(func() { ran = append(ran, 13) })
	pool := marks.Pool(s, 3)
	pool.Get().ID = 14
}

var filled = []int64{14, 13, 15, 12, 11}

func TestLoadFails(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			before := mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 1, 0) })
			address := placeOf(b, before.Get())
			o := attempt(func() error {
				_, err := load(b, "level", func(s scope.Scope) error {
					assert.Equal(t, []int64{1}, ran, "the old contents are gone before fn runs")
					assert.Nil(t, before.Get())
					fill(s)
					return f.end(b, s)
				})
				return err
			})
			f.ended(t, o)
			if o.err != nil {
				assert.ErrorContains(t, o.err, f.text)
			}
			if full := (*scope.FullError)(nil); errors.As(o.err, &full) {
				assert.Equal(t, strings.Contains(f.text, "; then: "), full.Cause != nil,
					"the error, or panic, that came of the full")
			}
			assert.Equal(t, append([]int64{1}, filled...), ran, "newest first, once")
			requireEmpty(t, b, "level")
			assert.Nil(t, before.Get())
			again := mustLoad(t, b, "level", nil)
			if !instrumented {
				assert.Equal(t, address, placeOf(b, again.Get()), "the next load gives the same addresses")
			}
		})
	}
}

// TestLoadsInsideFail makes a load fail inside another, and then the outer load fail with a load
// inside.
func TestLoadsInsideFail(t *testing.T) {
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			b := open(t, small())
			var kept budget.Region
			var level budget.Loaded[frog]
			want := []int64{2, 1}
			o := attempt(func() error {
				_, err := load(b, "systems", func(s scope.Scope) error {
					newMark(s, 1, 0)
					kept = b.Region("level").In(s)
					_, err := loadRegion(kept, func(s scope.Scope) error {
						newMark(s, 2, 0)
						return f.end(b, s)
					})
					assert.ErrorContains(t, err, f.text, "it is the inner verdict, no more")
					requireEmpty(t, b, "level")
					newMark(s, 3, 0)
					level = mustLoadRegion(t, kept, func(s scope.Scope) { newMark(s, 4, 0) })
					want = []int64{2, 4, 3, 1}
					return f.end(b, s)
				})
				return err
			})
			f.ended(t, o)
			assert.Equal(t, want, ran, "what level points to dies after it")
			assert.Nil(t, level.Get())
			requireEmpty(t, b, "systems")
			requireEmpty(t, b, "level")
			mustLoad(t, b, "systems", nil)
			for _, err := range refused(b, kept)[:2] {
				assert.ErrorIs(t, err, budget.ErrLoading)
				assert.ErrorContains(t, err, "refused: In needs the scope that a running Load passed to its function")
			}
		})
	}
}

func TestLoadSucceeds(t *testing.T) {
	b := open(t, small())
	l := mustLoad(t, b, "level", func(s scope.Scope) {
		fill(s)
		assert.Positive(t, regionReport(b, "level").Used)
	})
	assert.Equal(t, []int64{15}, ran, "temporaries are gone, with their finalizers; the rest stays")
	assert.Equal(t, counted(7), regionReport(b, "level").Objects,
		"frog, mark, pool, and a node for each of temporaries, pool and other finalizers")
	assert.Less(t, regionReport(b, "level").Used, uint64(1000))
	assert.GreaterOrEqual(t, regionReport(b, "level").Peak, regionReport(b, "level").Used+100, "temporaries included")
	assert.NotNil(t, l.Get())
	for _, r := range requireWalk(t, b) {
		assert.NotEqual(t, "temp", r.What)
	}
	require.NoError(t, b.Region("level").Rewind(background))
	assert.Equal(t, []int64{15, 14, 13, 12, 11}, ran)
	requireEmpty(t, b, "level")
}

// TestWhatWouldBeGoneIsNotLoaded: a load's value must outlive it, and the scopes that fn opened
// must not.
func TestWhatWouldBeGoneIsNotLoaded(t *testing.T) {
	b := open(t, small())
	level := b.Region("level")
	gone := "BUG: Load of region level returns a value in its temporaries or in a closed scope"
	for what, c := range map[string]struct {
		fn   func(scope.Scope) (*frog, error)
		want string
	}{
		//upfront:keeps it is refused
		"temporary": {func(s scope.Scope) (*frog, error) { return frogs.New(s.Temp(100)), nil }, gone},
		"closed": {func(s scope.Scope) (f *frog, err error) {
			//upfront:keeps it is refused
			return f, s.Do("inner", func(s scope.Scope) error { f = frogs.New(s); return nil })
		}, gone},
		"left open": {func(s scope.Scope) (*frog, error) { return frogs.New(s.Open("inner")), nil },
			`scope: BUG: scope "inner" of region level was left open; close it in the function that opens it`},
		"covered": {func(s scope.Scope) (*frog, error) {
			inner := s.Open("inner")
			assert.Nil(t, frogs.TryNew(s))
			require.NoError(t, inner.Close())
			return frogs.New(s), nil
		},
			`scope: BUG: allocation in scope "level" of region level while scope "inner", opened in it, is open; close "inner" first`},
	} {
		l, err := budget.Load(background, level, c.fn)
		assert.ErrorContains(t, err, c.want, what)
		assert.NotErrorIs(t, err, budget.ErrFull, what)
		assert.Nil(t, l.Get(), what)
		requireEmpty(t, b, "level")
	}
	l, err := budget.Load(background, level, func(scope.Scope) (*frog, error) { return &frog{X: 3}, nil })
	require.NoError(t, err, "a value on the Go heap outlives everything")
	assert.EqualValues(t, 3, l.Get().X)
	l, err = budget.Load(background, level, func(scope.Scope) (*frog, error) { return nil, nil })
	require.NoError(t, err, "a load without a value")
	assert.Nil(t, l.Get())
	assert.Nil(t, budget.Loaded[frog]{}.Get(), "of no load")
	type empty struct{}
	empties := scope.Plain[empty]()
	none, err := budget.Load(background, level, func(s scope.Scope) (*empty, error) { return empties.New(s), nil })
	require.NoError(t, err)
	assert.NotNil(t, none.Get(), "of no bytes")
}

func TestLoadedIsFrozen(t *testing.T) {
	b := open(t, small())
	var s, temp scope.Scope
	l := mustLoad(t, b, "level", func(in scope.Scope) { s, temp = in, in.Temp(100) })
	before := quiet(b)
	assert.Nil(t, frogs.TryNew(s))
	assert.Nil(t, frogs.TrySlice(s, 3))
	assert.Nil(t, s.TryAllocUnzeroed(8, 8))
	assert.Zero(t, s.Free())
	const frozen = `scope "level" of region level, which is frozen since its load returned`
	closed := &closer{7}
	for what, use := range map[string]func(){
		"allocation in": func() { frogs.New(s) },
		"Open in":       func() { s.Open("x") },
		"Temp of":       func() { s.Temp(9) },
		"Pool in":       func() { frogs.Pool(s, 1) },
		"Make in":       func() { _, _ = marks.Make(s, func(*mark) error { return nil }) },
		"Own in":        func() { s.Own(closed) },
	} {
		assert.Contains(t, panics(t, use), "scope: BUG: "+what+" "+frozen)
	}
	_ = s.Err()
	assert.Equal(t, "scope: BUG: allocation in "+frozen, panics(t, func() { frogs.Slice(s, 1) }),
		"whoever asked for Err before")
	assert.Equal(t, []int64{7}, ran, "what is owned is never lost")
	assert.EqualError(t, s.Close(), "scope: BUG: Close of "+frozen)
	assert.Equal(t, "scope: BUG: allocation in a closed scope of region level",
		panics(t, func() { frogs.Slice(temp, 1) }))
	assert.Equal(t, before, quiet(b), "nothing changed")
	assert.NotNil(t, l.Get())
	assert.Nil(t, frogs.TryNew(s))
	assert.ErrorContains(t, b.Region("level").Rewind(background), "in "+frozen, "what a Try met is told then")
}

// TestTempNamesASizeThatIsEnough: the size in the error suffices at the first try, and is at most
// two lines too large.
func TestTempNamesASizeThatIsEnough(t *testing.T) {
	try := func(size uint64, near, n int) error {
		b := open(t, budget.Plan{Name: "exact", Regions: []budget.RegionPlan{{Name: "level", Size: size}}})
		defer b.Close()
		_, err := budget.Load(background, b.Region("level"), func(s scope.Scope) (*frog, error) {
			s.Bytes(near)
			s.Temp(n).Bytes(n)
			return nil, nil
		})
		return err
	}
	for _, near := range []int{0, 1, 8, 40, 47, 48, 56, 64} {
		for _, n := range []int{0, 1, 63, 64, 1000} {
			var full *scope.FullError
			require.ErrorAs(t, try(uint64(near)+1, near, n), &full, "%d, %d", near, n)
			assert.NoError(t, try(full.Need, near, n), "%d, %d: %v", near, n, full)
			assert.ErrorIs(t, try(full.Need-min(128, full.Need-1), near, n), budget.ErrFull, "%d, %d: %v",
				near, n, full)
		}
	}
}

func TestErrorsOfOldContentsGoToReportAndHookOnly(t *testing.T) {
	var told []error
	plan := small()
	plan.OnError = func(err error) { told = append(told, err) }
	b := open(t, plan)
	mustLoad(t, b, "systems", func(s scope.Scope) { newMark(s, 1, doFail) })
	mustLoad(t, b, "level", func(s scope.Scope) {
		newMark(s, 2, doPanic)
		newMark(s, 3, 0)
		newMark(s, 4, doFail)
	})
	mustLoad(t, b, "systems", nil)
	assert.Equal(t, []int64{4, 3, 2, 1}, ran)
	require.Len(t, told, 1)
	assert.ErrorIs(t, told[0], errMark)
	text := "budget \"small\": region level, scope \"level\": finalizer of budget_test.mark: mark failed\n" +
		"budget \"small\": region level, scope \"level\": finalizer of budget_test.mark panicked: mark panics\n" +
		"budget \"small\": region systems, scope \"systems\": finalizer of budget_test.mark: mark failed"
	assert.EqualError(t, told[0], text)
	r := b.Report()
	assert.Equal(t, []string{text}, r.Errors)
	assert.Equal(t, 1, r.ErrorCount)
	assert.Equal(t, budget.Leaks{Finalizers: 3}, r.Leaks)

	mustLoad(t, b, "systems", func(s scope.Scope) { newMark(s.Temp(100), 5, doFail) })
	assert.Len(t, told, 2, "temporaries are no reason to fail")

	mustLoad(t, b, "systems", func(s scope.Scope) { newMark(s, 7, doFail) })
	err := b.Region("init").Rewind(background)
	assert.ErrorIs(t, err, errMark, "Rewind returns them")
	assert.Len(t, told, 2)
	assert.Equal(t, 2, b.Report().ErrorCount)

	mustLoad(t, b, "level", func(s scope.Scope) { newMark(s, 8, doFail) })
	_, err = load(b, "level", func(scope.Scope) error { return errLoader })
	assert.EqualError(t, err, errLoader.Error(), "also in a load that fails")
	assert.Equal(t, 3, b.Report().ErrorCount)
}

// TestLoadThatDoesntReturnTellsOfFinalizers: after a panic or Goexit no caller gets Load's error,
// so the report has it.
func TestLoadThatDoesntReturnTellsOfFinalizers(t *testing.T) {
	const text = `budget "small": region level, scope "level": finalizer of budget_test.mark: mark failed`
	b := open(t, small())
	assert.PanicsWithValue(t, "loader", func() {
		_, _ = load(b, "level", func(s scope.Scope) error {
			newMark(s, 1, doFail)
			panic("loader")
		})
	})
	assert.Equal(t, []string{text}, b.Report().Errors)
	done := make(chan bool)
	go func() {
		defer close(done)
		_, _ = load(b, "level", func(s scope.Scope) error {
			newMark(s, 2, doFail)
			runtime.Goexit()
			return nil
		})
	}()
	<-done
	assert.Equal(t, []string{text, text}, b.Report().Errors)
	_, err := load(b, "level", func(s scope.Scope) error {
		newMark(s, 3, doFail)
		return errLoader
	})
	assert.ErrorIs(t, err, errMark, "a load that returns tells its caller")
	assert.Len(t, b.Report().Errors, 2)
}

func TestReportKeepsTheLast16Errors(t *testing.T) {
	b := open(t, small())
	for i := range 20 {
		mustLoad(t, b, "level", func(s scope.Scope) { s.Defer(func() { panic(i) }) })
	}
	r := b.Report()
	assert.Equal(t, 19, r.ErrorCount)
	require.Len(t, r.Errors, 16)
	for i, text := range r.Errors {
		assert.Equal(t, fmt.Sprintf(`budget "small": region level, scope "level": a deferred function panicked: %d`,
			i+3), unsited(errors.New(text)))
	}
}

func TestOnErrorMayPanic(t *testing.T) {
	plan := small()
	plan.OnError = func(error) { panic("hook") }
	b := open(t, plan)
	bad := func(s scope.Scope) error { newMark(s, 1, doFail); return nil }
	_, err := load(b, "level", bad)
	require.NoError(t, err)
	assert.Equal(t, "hook", attempt(func() error { _, err := load(b, "level", bad); return err }).panicked)
	requireEmpty(t, b, "level")
	ran = nil
	temporaries := func(s scope.Scope) error { newMark(s, 2, 0); return bad(s.Temp(100)) }
	assert.Equal(t, "hook", attempt(func() error { _, err := load(b, "level", temporaries); return err }).panicked)
	requireEmpty(t, b, "level")
	assert.Equal(t, []int64{1, 2}, ran, "the panic unwinds the load")
	mustLoad(t, b, "level", nil)
}

// TestGoexitInFinalizers: Goexit in the finalizers of a Rewind or a Close. All regions of the call
// end. tests/model has the other calls.
func TestGoexitInFinalizers(t *testing.T) {
	b := open(t, small())
	exit := func(s scope.Scope, id int64) {
		newMark(s, id, 0)
		s.Defer(func() { runtime.Goexit() })
	}
	fillBoth := func() {
		ran = nil
		mustLoad(t, b, "init", func(s scope.Scope) { exit(s, 1) })
		mustLoad(t, b, "level", func(s scope.Scope) { exit(s, 2) })
	}
	fillBoth()
	assert.True(t, attempt(func() error { return b.Region("init").Rewind(background) }).exited)
	assert.Equal(t, []int64{2, 1}, ran)
	requireEmpty(t, b, "init")
	fillBoth()
	exit(b.Frame(), 3)
	newMark(b.Scratch(1, 1).Open("scratch"), 4, 0)
	assert.True(t, attempt(b.Close).exited)
	assert.Equal(t, []int64{2, 1, 3, 4}, ran)
	assert.ErrorIs(t, b.Close(), budget.ErrClosed)
}

func TestTemporariesThatAreGoneOrGoing(t *testing.T) {
	b := open(t, small())
	var temp scope.Scope
	uses := map[string]func(s scope.Scope){
		"allocation": func(s scope.Scope) { frogs.Slice(s, 1) },
		"Defer":      func(s scope.Scope) { s.Defer(func() {}) },
		"Pool":       func(s scope.Scope) { frogs.Pool(s, 1) },
		"Make":       func(s scope.Scope) { _, _ = marks.Make(s, func(*mark) error { return nil }) },
	}
	for what, use := range uses {
		mustLoad(t, b, "level", func(s scope.Scope) {
			temp = s.Temp(1000)
			temp.Defer(func() { use(temp) })
			temp.Defer(func() { use(s.Temp(100)) })
		})
		r := b.Report()
		for _, text := range r.Errors[len(r.Errors)-1:] {
			assert.Regexp(t, `(?s)Temp of scope "level" of region level, which is frozen since its load returned.*`+
				what+`.* scope "temp" of region level while its finalizers run`, text)
		}
		text := panics(t, func() { use(temp) })
		assert.Contains(t, text, "a closed scope of region level", "closed is not full")
	}
	requireWalk(t, b)
}

// TestStateRegion: a load of a state region always begins with zeros; a load of another region need
// not.
func TestStateRegion(t *testing.T) {
	b := open(t,
		budget.Plan{Name: "x", Regions: []budget.RegionPlan{{Name: "level", Size: 64 * budget.KiB, State: true}}})
	region := b.Region("level")
	for range 3 {
		mustLoad(t, b, "level", func(s scope.Scope) {
			all := region.Base().Bytes()
			require.Equal(t, make([]byte, len(all)), all)
			for i := range s.Bytes(1000) {
				all[i] = 1
			}
		})
	}
}
