package scope_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/inside"
	"github.com/upfront-mem/upfront/budget/view"
	"github.com/upfront-mem/upfront/scope"
)

// fullIn returns the full of fn in a level of size bytes.
func fullIn(t *testing.T, size uint64, fn func(scope.Scope)) *scope.FullError {
	b, err := budget.Open(budget.Plan{Name: "advice", Regions: []budget.RegionPlan{{Name: "level", Size: size}}})
	require.NoError(t, err)
	defer b.Close()
	_, err = budget.Load(t.Context(), b.Region("level"), func(s scope.Scope) (*point, error) {
		s.Bytes(100)
		fn(s)
		return nil, nil
	})
	var full *scope.FullError
	if !errors.As(err, &full) {
		require.NoError(t, err)
	}
	return full
}

// TestNeedOfAPoolIsEnough: a refused pool leaves no bytes, and the size in its error is enough at
// once.
func TestNeedOfAPoolIsEnough(t *testing.T) {
	for name, fn := range map[string]func(scope.Scope, int){
		"plain":   func(s scope.Scope, n int) { points.Pool(s, n) },
		"objects": func(s scope.Scope, n int) { marks.Pool(s, n) },
		"handles": func(s scope.Scope, n int) { points.HandlePool(s, n) },
	} {
		for _, n := range []int{6000, 7000, 12_000, 100_001} {
			full := fullIn(t, 64*budget.KiB, func(s scope.Scope) {
				free, done := s.Free(), false
				defer func() { assert.True(t, done || s.Free() == free, "what is refused leaves nothing") }()
				fn(s, n)
				done = true
			})
			if full == nil {
				continue
			}
			assert.Nil(t, fullIn(t, full.Need, func(s scope.Scope) { fn(s, n) }), "%s of %d: %d bytes",
				name, n, full.Need)
		}
	}
}

// TestNeedBesideTemporariesIsEnough: the size is also enough where temporaries take more than their
// n.
func TestNeedBesideTemporariesIsEnough(t *testing.T) {
	for temp := 1; temp < 200; temp += 7 {
		asks := map[string]func(scope.Scope){
			"slice": func(s scope.Scope) { s.Temp(temp).Bytes(temp); points.Slice(s, 500) },
			"pool":  func(s scope.Scope) { s.Temp(temp); s.Temp(2 * temp); points.Pool(s, 500) },
			"temp":  func(s scope.Scope) { s.Temp(temp); s.Temp(5000) },
		}
		for name, fn := range asks {
			full := fullIn(t, 4*budget.KiB, fn)
			require.NotNil(t, full, name)
			assert.Nil(t, fullIn(t, full.Need, fn), "%s beside %d: %d bytes", name, temp, full.Need)
		}
	}
}

// TestNeedOfAnAlignmentIsEnough: the size is enough for each request, and the least up to a line.
func TestNeedOfAnAlignmentIsEnough(t *testing.T) {
	for align := uint64(1); align <= arena_c.AlignMax; align *= 2 {
		asks := map[string]func(s scope.Scope, n int){
			"slice": func(s scope.Scope, n int) { chars.SliceAligned(s, n, align) },
			"bytes": func(s scope.Scope, n int) { s.BytesUnzeroed(n, align) },
		}
		if align <= arena_c.LineSize {
			asks["alloc"] = func(s scope.Scope, n int) { s.AllocUnzeroed(uint64(n), align) }
			asks["try"] = func(s scope.Scope, n int) { s.TryAllocUnzeroed(uint64(n), align) }
		}
		if align <= 256 { // above a line AllocUnzeroedAs aligns to less
			asks["as"] = func(s scope.Scope, n int) { s.AllocUnzeroedAs(uint64(n), scope.AlignMask(align-1)) }
		}
		for name, ask := range asks {
			for _, before := range []int{0, 8, 27, 28} {
				for _, n := range []int{4000, 2000 + int(align)} {
					fn := func(s scope.Scope) { s.Bytes(before); ask(s, n) }
					full := fullIn(t, 4*budget.KiB, fn)
					if full == nil {
						continue
					}
					assert.EqualValues(t, n, full.Asked)
					what := fmt.Sprintf("%s of %d bytes aligned to %d behind %d", name, n, align, 100+before)
					require.Nil(t, fullIn(t, full.Need, fn), "%s: %d are enough", what, full.Need)
					if align >= 8 && align <= arena_c.LineSize {
						require.NotNil(t, fullIn(t, full.Need-1, fn), "%s: %d are the least", what, full.Need)
					}
				}
			}
		}
	}
}

// TestNeedOfAnAlignmentInTemporaries: the size that is advised for Temp is enough, too.
func TestNeedOfAnAlignmentInTemporaries(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for align := uint64(1); align <= 4096; align *= 2 {
		for _, before := range []int{0, 3, 60} {
			s := scratch.Open("s")
			fill := func(n int) {
				temp := s.Temp(n)
				temp.Bytes(before)
				temp.BytesUnzeroed(5000, align)
			}
			var full *scope.FullError
			require.ErrorAs(t, recovered(func() { fill(5000 + before - 1) }), &full)
			fill(int(full.Need))
			assert.ErrorIs(t, s.Close(), scope.ErrFull)
		}
	}
}

// TestWhatNoPlanHas: the full of a request that overflows advises no size.
func TestWhatNoPlanHas(t *testing.T) {
	const many = math.MaxInt / 4
	asks := map[string]func(scope.Scope){
		"bytes": func(s scope.Scope) { s.AllocUnzeroed(1<<63, 8) },
		"slice": func(s scope.Scope) { points.Slice(s, many) },
		"pool":  func(s scope.Scope) { points.Pool(s, many) },
		"temp":  func(s scope.Scope) { s.Temp(many) },
		"inner": func(s scope.Scope) { s.Temp(100).Bytes(many) },
	}
	for name, fn := range asks {
		if name != "bytes" && uint64(many) < arena_c.OffsetMax {
			continue // an int of 32 bits: a plan can be that large
		}
		full := fullIn(t, 64*budget.KiB, fn)
		require.NotNil(t, full, name)
		assert.Zero(t, full.Need, name)
		assert.ErrorContains(t, full, "no plan has as much", name)
		assert.NotContains(t, full.Error(), "or more", name)
	}
}

// TestNamesForgeNoLines: a name with a line break is quoted in each message.
func TestNamesForgeNoLines(t *testing.T) {
	const name = "tick\nERROR: all is lost\x1b[31m"
	b := open(t)
	err := inLevel(t, b, func(s scope.Scope) error {
		return scope.Label(s, name, func() error {
			return s.Do(name, func(s scope.Scope) error { s.Bytes(1000); s.Bytes(1 << 20); return nil })
		})
	})
	scratch := b.Scratch(0, 0)
	s := scratch.Open(name)
	newMark(s, 1, doFail)
	errs := []error{err, s.Do(name, func(s scope.Scope) error { s.Open(name); return nil }), s.Close(),
		s.Close(), s.Err()}
	for range 8 {
		s = scratch.Open(name)
	}
	errs = append(errs, s.Do(name, nil))
	for _, err := range errs {
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "\nERROR")
		assert.NotContains(t, err.Error(), "\x1b")
	}
	assert.ErrorContains(t, errs[5], ": is a Close missing? If not, raise limits.scopes")
}

// TestDoReturnsOneScopeTooMany: as an error, on another goroutine too; Open unwinds to the Do
// around it.
func TestDoReturnsOneScopeTooMany(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	ran, reached := false, false
	inner := func(scope.Scope) error { ran = true; return nil }
	const text = `scratch 0.0: all 8 places for scopes are taken: scope "inner" asked for one more; raise limits.scopes in the plan to 9 or more`
	var nest func(s scope.Scope) error
	depth := 1
	nest = func(s scope.Scope) error {
		if depth++; depth <= 8 {
			return s.Do("nest", nest)
		}
		assert.ErrorContains(t, s.Do("inner", inner), text)
		assert.ErrorContains(t, scratch.Do("inner", inner), text)
		require.NoError(t, s.Err(), "who is told needn't be told again")
		reached = true
		s.Open("inner")
		return nil
	}
	assert.ErrorContains(t, scratch.Do("nest", nest), text)
	assert.False(t, ran)
	assert.True(t, reached, "nothing unwound before")
	assert.Zero(t, scratch.Depth())
}

// TestTextOfAPanicAfterItsScopesClosed: deferred Closes run before the text is made.
func TestTextOfAPanicAfterItsScopesClosed(t *testing.T) {
	b := open(t)
	var undeclared scope.Maker[point]
	for want, fn := range map[string]func(out scope.Scope){
		`budget "test": scratch 0.0 is full: scope "out" asked for 8 bytes, 0 of 65536 are free; held by "out" (65536 bytes); ` +
			`raise scratch.size in the plan to 65544 or more`: func(out scope.Scope) {
			for {
				points.New(out)
			}
		},
		`scope: BUG: allocation in scope "out" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first`: func(out scope.Scope) {
			inner := out.Open("inner")
			defer inner.Close()
			points.New(out)
		},
		"scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object": func(out scope.Scope) {
			undeclared.New(out)
		},
	} {
		assert.EqualError(t, recovered(func() {
			out := b.Scratch(0, 0).Open("out")
			defer out.Close()
			fn(out)
		}), want)
	}
	assert.ErrorContains(t, recovered(func() {
		defer func() { _ = b.Region("level").Rewind(t.Context()) }()
		var frozen scope.Scope
		_ = inLevel(t, b, func(s scope.Scope) error { frozen = s; return nil })
		points.New(frozen)
	}), `allocation in scope "level" of region level, which is frozen since its load returned`)
}

func TestFullInAConstructorTellsWhatWasFree(t *testing.T) {
	err := open(t).Scratch(0, 0).Do("do", func(s scope.Scope) error {
		_, err := points.Make(s, func(*point) error { s.Bytes(60000); s.Bytes(10000); return nil })
		return err
	})
	assert.EqualError(t, err,
		`budget "test": scratch 0.0 is full: scope "do" asked for 10000 bytes, 5528 of 65536 are free; `+
			`held by "do" (60008 bytes); raise scratch.size in the plan to 70008 or more`)
}

// TestTryOnACoveredScope: the refusal is a misuse of the covered scope, not a full, and not the
// child's.
func TestTryOnACoveredScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for _, asked := range []bool{true, false} {
		a := scratch.Open("a")
		b := a.Open("b")
		assert.Nil(t, points.TryNew(a))
		want := `scope: BUG: allocation in scope "a" of scratch 0.0 while scope "b", opened in it, is open; close "b" first`
		if asked {
			assert.EqualError(t, a.Err(), want)
			assert.NoError(t, b.Err())
		}
		require.NoError(t, b.Close())
		assert.EqualError(t, a.Close(), want, "also when nobody asked meanwhile")
	}
	a := scratch.Open("a")
	assert.Nil(t, a.TryAllocUnzeroed(scratchSize+1, 1))
	require.NoError(t, a.Open("b").Close())
	assert.ErrorIs(t, a.Err(), scope.ErrFull, "a full from before the child is remembered")
	assert.ErrorIs(t, a.Close(), scope.ErrFull)
}

// TestMisuseIsNoFull: a full that was ignored doesn't hide the use of a covered scope, and a later
// panic isn't taken for that use, even with the end of a constructor between.
func TestMisuseIsNoFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	covered := `scope: BUG: allocation in scope "do" of scratch 0.0 while scope "child", opened in it, is open; close "child" first`
	assert.PanicsWithError(t, covered, func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			chars.TrySlice(s, 1<<20)
			child := s.Open("child")
			defer child.Close()
			points.New(s)
			return nil
		})
	})
	for _, use := range []func(s scope.Scope){
		func(s scope.Scope) { s.Open("child"); points.TryNew(s) },
		func(s scope.Scope) {
			_, _ = points.Make(s, func(*point) error { s.Open("left open"); points.TryNew(s); return errMark })
		},
	} {
		assert.PanicsWithValue(t, "boom", func() {
			_ = scratch.Do("do", func(s scope.Scope) error { use(s); panic("boom") })
		})
	}
	assert.Zero(t, scratch.Depth())
	s := scratch.Open("s")
	child := s.Open("child")
	var undeclared scope.Maker[point]
	assert.Nil(t, undeclared.TryNew(s))
	require.NoError(t, child.Close())
	assert.ErrorContains(t, s.Close(), "never declared")
}

// TestPanicAfterAnOldTry: a full that a scope around a Do remembers isn't the cause of a panic in
// the Do.
func TestPanicAfterAnOldTry(t *testing.T) {
	tick := open(t).Scratch(0, 0).Open("tick")
	points.TrySlice(tick, 1<<20)
	met := tick.Err().Error()
	assert.PanicsWithValue(t, "boom", func() { _ = tick.Do("later", func(scope.Scope) error { panic("boom") }) })
	err := tick.Do("inner", func(s scope.Scope) error {
		points.TrySlice(s, 1<<20)
		panic("boom")
	})
	assert.ErrorContains(t, err, "then: panic: boom")
	assert.EqualError(t, tick.Err(), met)
	assert.ErrorIs(t, tick.Close(), scope.ErrFull)
}

// TestAFullThatDoReturnedIsToldOnce: even if the full scope is in another arena and stays open.
func TestAFullThatDoReturnedIsToldOnce(t *testing.T) {
	b := open(t)
	other := b.Scratch(0, 1).Open("other")
	assert.ErrorIs(t, b.Scratch(0, 0).Do("do", func(scope.Scope) error {
		other.Bytes(1 << 20)
		return nil
	}), scope.ErrFull)
	assert.NoError(t, other.Close())
}

// TestFullBelowManyThatRemember: each scope remembers its own full, however many there are.
func TestFullBelowManyThatRemember(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("do", func(s scope.Scope) error {
		for range 6 {
			s = s.Open("remembers")
			defer func() { _ = s.Close() }()
			chars.TrySlice(s, 1<<20)
		}
		inner := s.Open("inner")
		defer inner.Close()
		inner.Bytes(1 << 19)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, `scope "inner" asked for 524288 bytes`)
	assert.Zero(t, scratch.Depth())
}

func TestNamesOutliveWhatTheyLieIn(t *testing.T) {
	b := open(t)
	names := b.Scratch(1, 0)
	var err error
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		_ = names.Do("names", func(n scope.Scope) error {
			_ = scope.Label(s, scope.Sprintf(n, "sound %d", 1), func() error { s.Bytes(100); return nil })
			err = b.Scratch(0, 0).Do(scope.Sprintf(n, "query %d", 2), func(q scope.Scope) error {
				q.Bytes(1 << 20)
				return nil
			})
			return nil
		})
		_ = names.Do("junk", func(n scope.Scope) error {
			for i, junk := 0, n.Bytes(1000); i < len(junk); i++ {
				junk[i] = '#'
			}
			return nil
		})
		return nil
	}))
	assert.ErrorContains(t, err, `scope "query 2" asked`)
	assert.Equal(t, "sound 1", labels(b)[0].Name)
}

// TestLongNames: a name has any length, and messages show only its beginning.
func TestLongNames(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	name := strings.Repeat("frog\u00e4", 20_000)
	s := scratch.Open(name)
	err := scope.Label(s, name, func() error {
		points.TrySlice(s, 1<<20)
		return s.Err()
	})
	require.ErrorIs(t, err, scope.ErrFull)
	child := s.Open(name)
	misuse := said(t, func() { points.New(s) })
	require.ErrorContains(t, misuse, `while scope "frogäfrog`)
	inside, err1 := inside.Of(b, "scratch 0.0")
	require.NoError(t, err1)
	var drawn strings.Builder
	require.NoError(t, view.Inside(&drawn, inside))
	require.NoError(t, child.Close())
	for what, text := range map[string]string{"a full": err.Error(), "a misuse": misuse.Error(),
		"a picture": drawn.String(),
		"a report":  b.Report().String(), "a leak": b.Close().Error()} {
		require.Less(t, len(text), 5000, what)
		require.NotContains(t, text, `\x`, what)
	}
}

func said(t *testing.T, fn func()) (err error) {
	t.Helper()
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}

func TestFullByAlignmentAlone(t *testing.T) {
	full := fullIn(t, 64<<10, func(s scope.Scope) {
		s.BytesUnzeroed(28, 64)
		s.Bytes(64<<10 - 128 - 28 - 50)
		s.BytesUnzeroed(24, 64)
	})
	assert.ErrorContains(t, full, `region level is full: scope "level" asked for 24 bytes at a multiple of 64, `+
		`50 of 65536 are free, but not from such an address; held by "level" (65486 bytes); raise regions[0].size in the plan to `)
}
