package scope_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

func TestNestedScopesRewindToWhereTheyBegan(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	a := scratch.Open("a")
	first := points.New(a)
	first.X = 1
	b := a.Open("b")
	second := points.New(b)
	second.X = 2
	require.NoError(t, b.Close())
	third := points.New(a)
	assert.Equal(t, accounted(a, unsafe.Pointer(second)), accounted(a, unsafe.Pointer(third)), "the parent goes on where the child began")
	assert.Zero(t, third.X, "New zeroes what a rewind left")
	assert.EqualValues(t, 1, first.X)
	require.NoError(t, a.Close())
	assert.Zero(t, scratch.Stats().Used)
	assert.EqualValues(t, 2*unsafe.Sizeof(point{}), scratch.Stats().Peak)
}

func TestRefusalsChangeNothing(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	a := scratch.Open("a")
	b := a.Open("b")
	before := scratch.Stats()
	covered := `scope: BUG: allocation in scope "a" of scratch 0.0 while scope "b", opened in it, is open`
	assert.PanicsWithError(t, covered, func() { points.New(a) })
	assert.PanicsWithError(t, covered, func() { a.AllocUnzeroed(8, 8) })
	assert.PanicsWithError(t, covered, func() { points.Slice(a, 3) })
	assert.Nil(t, points.TryNew(a))
	assert.Nil(t, points.TrySlice(a, 2))
	assert.Nil(t, a.TryAllocUnzeroed(8, 8))
	assert.Zero(t, a.Free())
	assert.PanicsWithError(t, `scope: BUG: Open in scope "a" of scratch 0.0 while scope "b", opened in it, is open`, func() { a.Open("c") })
	assert.PanicsWithError(t, `scope: BUG: Temp of scope "a" of scratch 0.0 while scope "b", opened in it, is open`, func() { a.Temp(1) })
	assert.EqualError(t, a.Close(), `scope: BUG: Close of scope "a" of scratch 0.0 while scope "b", opened in it, is open`)
	assert.Equal(t, before, scratch.Stats())
	require.NoError(t, b.Close())
	stale := `scope: BUG: allocation in a scope of scratch 0.0 that is closed`
	assert.PanicsWithError(t, stale, func() { points.New(b) })
	assert.ErrorIs(t, b.Close(), scope.ErrClosed)
	c := a.Open("c") // the slot of b
	assert.PanicsWithError(t, stale, func() { points.New(b) })
	assert.Nil(t, points.TryNew(b))
	assert.ErrorIs(t, b.Close(), scope.ErrClosed)
	assert.NotNil(t, points.TryNew(c))
	assert.NoError(t, c.Close(), "what others were refused is not c's")
}

func TestUndeclaredMakerIsRefused(t *testing.T) {
	a := open(t).Scratch(0, 0).Open("a")
	var m scope.Maker[point]
	want := "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object"
	assert.PanicsWithError(t, want, func() { m.New(a) })
	assert.Nil(t, m.TryNew(a))
	assert.Panics(t, func() { m.Slice(a, 1) })
	assert.Panics(t, func() { m.Pool(a, 1) })
	assert.EqualError(t, a.Close(), want, "TryNew's too")
}

func TestSlices(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	a := scratch.Open("a")
	s := points.Slice(a, 5)
	assert.Len(t, s, 5)
	assert.Equal(t, 5, cap(s))
	empty := points.TrySlice(a, 0)
	assert.NotNil(t, empty)
	assert.Empty(t, empty)
	assert.Panics(t, func() { points.Slice(a, -1) })
	rest := int(a.Free())
	assert.Nil(t, points.TrySlice(a, math.MaxInt/8+1), "a size that overflows is full, not small")
	assert.Nil(t, a.TryAllocUnzeroed(uint64(rest)+1, 1))
	assert.NotNil(t, a.Bytes(rest), "the last byte can be had")
	assert.Zero(t, a.Free())
	assert.ErrorIs(t, a.Err(), scope.ErrFull)
	assert.ErrorIs(t, a.Close(), scope.ErrFull, "Close returns what the scope remembers")
}

func TestAllocBounds(t *testing.T) {
	const text = "scope: BUG: AllocUnzeroed: an align is a power of two up to 64; BytesUnzeroed goes on to 1 MiB"
	scratch := open(t).Scratch(0, 0)
	a := scratch.Open("a")
	for align := uint64(1); align <= 64; align *= 2 {
		p := a.AllocUnzeroed(1, align)
		assert.Zero(t, uintptr(p)&uintptr(align-1))
	}
	for align := uint64(1); align <= 1<<14; align *= 2 {
		b := a.BytesUnzeroed(1, align)
		assert.Zero(t, uintptr(unsafe.Pointer(&b[0]))&uintptr(align-1))
		assert.Equal(t, 1, cap(b))
	}
	for _, bad := range []uint64{0, 3, 1<<20 + 1, 1 << 21} {
		assert.ErrorContains(t, recovered(func() { a.BytesUnzeroed(1, bad) }), "an align is a power of two up to 1 MiB")
	}
	assert.EqualError(t, recovered(func() { a.BytesUnzeroed(-1, 8) }), "scope: BUG: a slice of -1 bytes")
	assert.ErrorIs(t, scratch.Do("do", func(s scope.Scope) error { s.BytesUnzeroed(scratchSize, 1); return nil }), scope.ErrFull)
	for i := range 64 {
		for j := range 64 {
			for _, align := range []uint64{1<<i + 1<<j, 1<<i - 1<<j} {
				if align&(align-1) != 0 || align > 64 {
					require.Nil(t, a.TryAllocUnzeroed(8, align), "%#x", align)
				}
			}
		}
	}
	require.Error(t, a.Close())
	for _, size := range []uint64{1 << 38, 1<<38 + 1, 1<<40 - 8, 1 << 40, 1<<63 - 1, math.MaxUint64 - 7} {
		a := scratch.Open("a")
		assert.Nil(t, a.TryAllocUnzeroed(size, 8))
		assert.ErrorContains(t, a.Close(), "65536 of 65536 are free; no plan has as much", size)
	}
	a = scratch.Open("a")
	assert.Nil(t, a.TryAllocUnzeroed(8, 3))
	inner := a.Open("inner")
	assert.NoError(t, inner.Close(), "it is a's")
	assert.EqualError(t, a.Close(), text)
	for _, bad := range [][2]uint64{{8, 3}, {8, 24}, {8, 1<<20 + 1}, {8, 1<<42 + 1}} {
		ask := fmt.Sprintf("%#x aligned to %#x", bad[0], bad[1])
		a := scratch.Open("a")
		for what, s := range map[string]scope.Scope{"scope": a, "temporaries": a.Temp(64)} {
			assert.Nil(t, s.TryAllocUnzeroed(bad[0], bad[1]), "%s, %s", ask, what)
			assert.EqualError(t, s.Err(), text, "%s, %s", ask, what)
		}
		require.EqualError(t, a.Close(), text+"\n"+text, ask)
		a = scratch.Open("a")
		assert.PanicsWithError(t, text, func() { a.AllocUnzeroed(bad[0], bad[1]) }, ask)
		assert.PanicsWithError(t, text, func() {
			_ = a.Do("inside", func(s scope.Scope) error { s.AllocUnzeroed(bad[0], bad[1]); return nil })
		}, "a bug, which is no full, goes on: %s", ask)
		assert.PanicsWithError(t, text, func() {
			s := a.Open("closed on the way")
			defer s.Close()
			s.Temp(64).AllocUnzeroed(bad[0], bad[1])
		}, ask)
		require.EqualError(t, a.Close(), text, ask)
	}
}

func TestTooManyScopes(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("outer", func(s scope.Scope) error {
		for {
			s = s.Open("inner")
		}
	})
	require.ErrorIs(t, err, scope.ErrFull)
	assert.EqualError(t, err, `budget "test": scratch 0.0 is full: scope "inner" asked for one more of 8 scopes; `+
		`raise limits.scopes in the plan to 9 or more`)
	assert.Zero(t, scratch.Depth())
}

func TestFullNamesEverything(t *testing.T) {
	scratch := open(t).Scratch(1, 0)
	err := scratch.Do("query", func(s scope.Scope) error {
		s.Bytes(1000)
		t := s.Open("cells")
		points.Slice(t, 6000)
		points.Slice(t, 3000)
		return nil
	})
	assert.EqualError(t, err, `budget "test": scratch 1.0 is full: scope "cells" asked for 24000 bytes, 16536 of 65536 are free; `+
		`held by "cells" 48000, "query" 1000; raise scratch.size in the plan to 73000 or more`)
}

func TestUncaughtFullPanicsWithTheSameText(t *testing.T) {
	b := open(t)
	a := b.Scratch(0, 0).Open("a")
	var text string
	func() {
		defer func() { text = recover().(error).Error() }()
		defer a.Close() // the text is asked for after the scope closed
		for {
			points.New(a)
		}
	}()
	assert.Equal(t, `budget "test": scratch 0.0 is full: scope "a" asked for 8 bytes, 0 of 65536 are free; held by "a" 65536; `+
		`raise scratch.size in the plan to 65544 or more`, text)
}

// TestTryOnACoveredScope: what a covered scope refused is a bug to be told, not a full, and not the child's.
func TestTryOnACoveredScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	a := scratch.Open("a")
	b := a.Open("b")
	assert.Nil(t, points.TryNew(a))
	want := `scope: BUG: allocation in scope "a" of scratch 0.0 while scope "b", opened in it, is open`
	assert.EqualError(t, a.Err(), want)
	assert.NoError(t, b.Err())
	require.NoError(t, b.Close())
	assert.NotNil(t, points.TryNew(a))
	assert.EqualError(t, a.Close(), want)

	a = scratch.Open("a")
	b = a.Open("b")
	assert.Nil(t, points.TryNew(a))
	require.NoError(t, b.Close())
	assert.EqualError(t, a.Close(), want, "also when nobody asked meanwhile")

	a = scratch.Open("a")
	assert.Nil(t, a.TryAllocUnzeroed(scratchSize+1, 1))
	require.NoError(t, a.Open("b").Close())
	assert.ErrorIs(t, a.Err(), scope.ErrFull, "a full from before the child is remembered")
	assert.ErrorIs(t, a.Close(), scope.ErrFull)
}

func TestDoTellsOfScopesLeftOpen(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error { s.Open("b").Open("c"); return nil })
	assert.EqualError(t, err, `scope: BUG: scope "b", "c" of scratch 0.0 was left open: close it where it is opened`)
	err = scratch.Do("a", func(scope.Scope) error {
		left := scratch.Open("left")
		newMark(left, 1, doFail)
		points.TrySlice(left, 1<<20)
		return nil
	})
	assert.ErrorContains(t, err, "was left open")
	assert.ErrorIs(t, err, scope.ErrFull, "what it met is told")
	assert.ErrorIs(t, err, errMark)
	assert.Zero(t, scratch.Depth())
}

func TestReadFile(t *testing.T) {
	a := open(t).Scratch(0, 0).Open("a")
	name := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name, []byte("frogs"), 0o600))
	data, err := scope.ReadFile(a, name)
	require.NoError(t, err)
	assert.Equal(t, "frogs", string(data))
	_, err = scope.ReadFile(a, filepath.Dir(name))
	assert.ErrorContains(t, err, "not a regular file")
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = scope.ReadFile(a, "/proc/self/status")
	assert.EqualError(t, err, `scope: "/proc/self/status" has more than the 0 bytes that its size says; read it by ReadAt`)
	_, err = scope.ReadAt(a, f, 3, 5)
	assert.EqualError(t, err, "scope: read 2 of 5 bytes at offset 3: unexpected EOF")
	require.NoError(t, os.Truncate(name, 4<<30+5), "of which nothing is on the disk")
	assert.ErrorIs(t, recovered(func() { _, _ = scope.ReadFile(a, name) }), scope.ErrFull, "also where an int has 32 bits")
	assert.ErrorIs(t, a.Close(), scope.ErrFull)
}

// TestReadFileErrors: a name that lies in the scope may die before the error does.
func TestReadFileErrors(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error {
		_, err := scope.ReadFile(s, scope.Sprintf(s, "no/such/%s", "file"))
		return err
	})
	_ = scratch.Do("b", func(s scope.Scope) error { clear(s.Bytes(1024)); return nil })
	assert.EqualError(t, err, "open no/such/file: no such file or directory")
}

func TestPlainRefusesGoPointers(t *testing.T) {
	type named struct {
		A struct{ Name string }
	}
	assert.PanicsWithValue(t, "scope: named.A.Name (string) holds a Go pointer; use arena.String", func() { scope.Plain[named]() })
	assert.PanicsWithValue(t, "scope: [3][]int[0] ([]int) holds a Go pointer; use arena.Slice", func() { scope.Plain[[3][]int]() })
	assert.PanicsWithValue(t, "scope: func() (func()) holds a Go pointer; use scope.Owned, which Scope.Keep gives",
		func() { scope.Plain[func()]() })
	assert.Panics(t, func() { scope.Plain[map[int]int]() })
	assert.Panics(t, func() { scope.Plain[chan int]() })
	assert.Panics(t, func() { scope.Plain[any]() })
	assert.Panics(t, func() { scope.Plain[unsafe.Pointer]() })
	assert.PanicsWithValue(t, "scope: Text (scope.Text) holds a Go pointer; use scope.Owned, which Scope.Keep gives",
		func() { scope.Plain[scope.Text]() })
	assert.NotPanics(t, func() { scope.Plain[[0]string]() })
	assert.NotPanics(t, func() { scope.Plain[arena.Slice[arena.String]]() })
	assert.NotPanics(t, func() { scope.Plain[struct{}]() })
}

func TestZeroSizeAndOveraligned(t *testing.T) {
	a := open(t).Scratch(0, 0).Open("a")
	empties := scope.Plain[struct{}]()
	assert.NotNil(t, empties.New(a))
	assert.Len(t, empties.Slice(a, math.MaxInt), math.MaxInt, "nothing, very often")
	a.AllocUnzeroed(1, 1)
	wide := scope.Plain[[3]complex128]()
	assert.Zero(t, uintptr(unsafe.Pointer(wide.New(a)))%unsafe.Alignof(complex128(0)))
	require.NoError(t, a.Close())
}

// TestZeroHandles: what was never opened is a nil dereference that a program can recover from, in each build.
func TestZeroHandles(t *testing.T) {
	var (
		s       scope.Scope
		pool    scope.Pool[point]
		scratch scope.Scratch
		zeros   = []func(){func() { points.New(s) }, func() { points.TryNew(s) }, func() { points.Slice(s, 1) },
			func() { s.AllocUnzeroed(1, 1) }, func() { s.Bytes(1) }, func() { s.BytesUnzeroed(1, 64) },
			func() { s.Open("a") }, func() { _ = s.Close() }, func() { _ = s.Err() },
			func() { s.Free() }, func() { s.Temp(1) }, func() { s.Own(&closer{}) }, func() { newMark(s, 1, 0) },
			func() { _, _ = marks.Make(s, func(*mark) error { return nil }) }, func() { points.Pool(s, 1) }, func() { pool.Get() },
			func() { pool.Put(nil) }, func() { pool.Put(new(point)) }, func() { pool.Index(nil) }, func() { scratch.Open("a") }}
	)
	for i, zero := range zeros {
		assert.Panics(t, zero, "%d", i)
	}
}

func TestUseAfterTheBudgetClosed(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("a")
	pool := points.Pool(s, 2)
	x := pool.Get()
	temp := s.Temp(64)
	assert.ErrorContains(t, b.Close(), `scratch 0.0: left open at NextFrame, Release or Close: scope "a"`)
	closed := "scope: BUG: use of a scope whose budget is closed"
	assert.PanicsWithError(t, closed, func() { points.New(s) })
	assert.PanicsWithError(t, closed, func() { points.New(temp) })
	assert.PanicsWithError(t, closed, func() { points.Slice(s, 2) })
	assert.Nil(t, points.TryNew(s))
	assert.Nil(t, pool.Get())
	assert.Nil(t, pool.At(0))
	assert.Panics(t, func() { pool.Put(x) })
	assert.Panics(t, func() { s.Defer(func() {}) })
	assert.ErrorIs(t, s.Close(), scope.ErrClosed)
	assert.ErrorIs(t, s.Err(), scope.ErrClosed)
	assert.Zero(t, s.Free())
	assert.PanicsWithError(t, "scope: BUG: Open on scratch 0.0, whose budget is closed", func() { scratch.Open("b") })
	assert.Zero(t, scratch.Depth())
}

func TestPickLeavesTheCallersScratchAlone(t *testing.T) {
	b := open(t)
	scratches := b.Scratches(0)
	first, second := scratches.Scratch(0), scratches.Scratch(1)
	assert.Equal(t, b.Scratch(0, 0), first)
	assert.Equal(t, b.Scratch(0, 1), second)
	assert.Equal(t, first, scratches.Pick())
	a := first.Open("a")
	inA := a.Open("in a")
	other := b.Scratch(1, 0).Open("another worker's")
	assert.Equal(t, second, scratches.Pick(a))
	assert.Equal(t, second, scratches.Pick(inA))
	assert.Equal(t, second, scratches.Pick(inA.Temp(64)))
	assert.Equal(t, first, scratches.Pick(other), "of another arena")
	assert.Equal(t, second, scratches.Pick(other, a, inA, a))
	c := second.Open("c")
	assert.Equal(t, first, scratches.Pick(c))
	assert.Equal(t, first, scratches.Pick(other, c))
	assert.PanicsWithError(t, "scope: BUG: Pick: each of scratch 0.0 to scratch 0.1 holds a scope that it should avoid",
		func() { scratches.Pick(c, a) })
	require.NoError(t, c.Close())
	for _, conflicts := range [][]scope.Scope{{c}, {a, c}} {
		err := recovered(func() { scratches.Pick(conflicts...) })
		assert.EqualError(t, err, "scope: BUG: Pick beside a scope of scratch 0.1 that is closed")
		assert.ErrorIs(t, err, scope.ErrClosed)
	}
	for _, which := range []int{-1, 2} {
		assert.Panics(t, func() { scratches.Scratch(which) })
	}
}

func TestScratchThatWasGivenBackRefuses(t *testing.T) {
	b := open(t)
	lent, err := b.Lease(t.Context())
	require.NoError(t, err)
	scratch := lent.Scratch(1)
	s := scratch.Open("s")
	require.NoError(t, s.Close())
	require.NoError(t, lent.Release())
	for what, fn := range map[string]func(){
		"Open on":  func() { scratch.Open("x") },
		"Do on":    func() { _ = scratch.Do("x", nil) },
		"Depth of": func() { scratch.Depth() },
		"Stats of": func() { scratch.Stats() },
	} {
		err := recovered(fn)
		assert.EqualError(t, err, "scope: BUG: "+what+" scratch 1.1, which was given back")
		assert.True(t, errors.Is(err, scope.ErrClosed))
	}
	assert.PanicsWithError(t, "scope: BUG: Pick of scratch 1.0, which was given back", func() { lent.Pick() })
	for range 2 { // both pairs
		again, err := b.Lease(t.Context())
		require.NoError(t, err)
		assert.Panics(t, func() { scratch.Open("x") }, "it is another's now")
		defer func() { assert.NoError(t, again.Release()) }()
	}
}

func TestScratchAllocateNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' checks allocate")
	}
	scratches := open(t).Scratches(0)
	sum := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		out := scratches.Pick().Open("out")
		scratch := scratches.Pick(out).Open("scratch")
		_ = scratches.Scratch(1).Do("do", func(s scope.Scope) error { sum += len(s.Bytes(100)); return nil })
		_ = errors.Join(scratch.Close(), out.Close())
	}))
}

// One scope too many: Do returns it, on a goroutine where nothing would catch it, and Open unwinds to the Do around it.
func TestDoReturnsOneScopeTooMany(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	ran, reached := false, false
	inner := func(scope.Scope) error { ran = true; return nil }
	const text = `scratch 0.0 is full: scope "inner" asked for one more of 8 scopes; raise limits.scopes in the plan to 9 or more`
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

// Programs that a hostile reader of this package wrote. Each broke a promise once.

var bytesOnly = scope.Plain[byte]()

// TestScopeClosesOnce, though a part's finalizer in its temporaries closes it while its own finalizers run.
func TestScopeClosesOnce(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	outer := scratch.Open("outer")
	newMark(outer, 1, 0)
	temp := outer.Temp(20480)
	s := outer.Open("s")
	var inside error
	s.Defer(func() {
		_, _ = points.Make(temp, func(*point) error {
			temp.Defer(func() { inside = s.Close() })
			return errMark
		})
	})
	require.NoError(t, s.Close())
	assert.EqualError(t, inside, `scope: BUG: Close of scope "s" of scratch 0.0 while its finalizers run`)
	assert.Equal(t, 1, scratch.Depth())
	require.NoError(t, outer.Close())
	assert.Equal(t, []int64{1}, closed)
}

// TestDoLeavesOthersScopesAlone: when fn closed the scope of Do, what is open afterwards is somebody else's.
func TestDoLeavesOthersScopesAlone(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	var kept scope.Scope
	require.NoError(t, scratch.Do("a", func(s scope.Scope) error {
		require.NoError(t, s.Close())
		kept = scratch.Open("kept")
		newMark(kept, 1, 0)
		return nil
	}))
	assert.Empty(t, closed)
	require.NoError(t, kept.Close())
	assert.Equal(t, []int64{1}, closed)
}

func TestLabelsInAFailedConstructor(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		return scope.Label(s, "level", func() error {
			s.Bytes(5)
			_, err := points.Make(s, func(*point) error {
				return scope.Label(s, "sound", func() error { s.Bytes(1000); return errMark })
			})
			require.ErrorIs(t, err, errMark)
			s.Bytes(10)
			return nil
		})
	}))
	assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 15}}, labels(b))
}

// TestPanicAfterAnOldTry: what a scope around a Do remembers has nothing to do with a panic in it.
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

func TestFullInAConstructorTellsWhatWasFree(t *testing.T) {
	err := open(t).Scratch(0, 0).Do("do", func(s scope.Scope) error {
		_, err := points.Make(s, func(*point) error { s.Bytes(60000); s.Bytes(10000); return nil })
		return err
	})
	assert.EqualError(t, err, `budget "test": scratch 0.0 is full: scope "do" asked for 10000 bytes, 5528 of 65536 are free; `+
		`held by "do" 60008; raise scratch.size in the plan to 70008 or more`)
}

// TestMisuseIsNotAnOldFull: an ignored Try... doesn't hide that a covered scope was used.
func TestMisuseIsNotAnOldFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	covered := `scope: BUG: allocation in scope "do" of scratch 0.0 while scope "child", opened in it, is open`
	assert.PanicsWithError(t, covered, func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			bytesOnly.TrySlice(s, 1<<20)
			child := s.Open("child")
			defer child.Close()
			points.New(s)
			return nil
		})
	})
	assert.Zero(t, scratch.Depth())
}

// TestTryInAFinalizer is told by Close, since nobody else could.
func TestTryInAFinalizer(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	s.Defer(func() { points.TryNew(s) })
	assert.EqualError(t, s.Close(), `scope: BUG: allocation in scope "s" of scratch 0.0 while its finalizers run`)
}

// TestNamesOutliveWhatTheyLieIn: a name may be one of Sprintf.
func TestNamesOutliveWhatTheyLieIn(t *testing.T) {
	b := open(t)
	names := b.Scratch(1, 0)
	var err error
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		_ = names.Do("names", func(n scope.Scope) error {
			_ = scope.Label(s, scope.Sprintf(n, "sound %d", 1), func() error { s.Bytes(100); return nil })
			err = b.Scratch(0, 0).Do(scope.Sprintf(n, "query %d", 2), func(q scope.Scope) error { q.Bytes(1 << 20); return nil })
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

// TestTextOfAPanicAfterItsScopesClosed: deferred Closes run before anybody asks for the text.
func TestTextOfAPanicAfterItsScopesClosed(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	misuse := func(fn func(out scope.Scope)) error {
		return recovered(func() {
			out := scratch.Open("out")
			defer out.Close()
			inner := out.Open("inner")
			defer inner.Close()
			fn(out)
		})
	}
	assert.EqualError(t, misuse(func(out scope.Scope) { points.New(out) }),
		`scope: BUG: allocation in scope "out" of scratch 0.0 while scope "inner", opened in it, is open`)
	var undeclared scope.Maker[point]
	assert.EqualError(t, recovered(func() {
		out := scratch.Open("out")
		defer out.Close()
		undeclared.New(out)
	}), "scope: BUG: a Maker that was never declared: make it with scope.Plain or scope.Object")
	b := open(t)
	err := scratch.Do("a bug is no full", func(scope.Scope) error { return nil })
	require.NoError(t, err)
	assert.ErrorContains(t, recovered(func() {
		defer func() { _ = b.Region("level").Rewind(t.Context()) }()
		var frozen scope.Scope
		_ = inLevel(t, b, func(s scope.Scope) error { frozen = s; return nil })
		points.New(frozen)
	}), `allocation in scope "level" of region level, which is frozen since its load returned`)
}

func TestAppendInAConstructorToAnOlderList(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	list := points.Append(s, nil, point{1, 1})
	_, _ = points.Make(s, func(*point) error {
		err := recovered(func() { points.Append(s, list, point{2, 2}) })
		assert.ErrorContains(t, err, "Append inside a constructor to a list that is older")
		own := points.Append(s, nil, point{3, 3})
		own = points.Append(s, points.Append(s, own, point{4, 4}), point{5, 5})
		assert.Len(t, own, 3)
		assert.Len(t, points.Append(s, points.Clone(s, list), point{6, 6}), 2)
		return errMark
	})
	assert.Equal(t, []point{{1, 1}, {2, 2}}, points.Append(s, list, point{2, 2}))
	require.NoError(t, s.Close())
}

// What a second hostile reader found in the mends of what the first one had found.

// TestFullInADoWhoseScopeIsClosed is an error all the same.
func TestFullInADoWhoseScopeIsClosed(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error {
		defer s.Close()
		s.Bytes(1 << 20)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.PanicsWithValue(t, "boom", func() {
		_ = scratch.Do("a", func(s scope.Scope) error { _ = s.Close(); panic("boom") })
	})
	assert.Zero(t, scratch.Depth())
}

// TestLabelsWhenAPartEndsTheGoroutine go back.
func TestLabelsWhenAPartEndsTheGoroutine(t *testing.T) {
	b := open(t)
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = scope.Label(s, "level", func() error {
				s.Bytes(5)
				_, err := points.Make(s, func(*point) error {
					_ = scope.Label(s, "sound", func() error { s.Bytes(1000); return nil })
					s.Defer(runtime.Goexit)
					return errMark
				})
				return err
			})
		}()
		<-done
		assert.Equal(t, make([]point, 20), points.Slice(s, 20))
		assert.Equal(t, []scope.Usage{{Name: "level", Bytes: 5}}, labels(b))
		return nil
	}))
}

// TestMisuseOfACoveredScopeIsNoFull, also when a panic or a constructor's end comes between.
func TestMisuseOfACoveredScopeIsNoFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	assert.PanicsWithValue(t, "boom", func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			s.Open("child")
			points.TryNew(s)
			panic("boom")
		})
	})
	assert.PanicsWithValue(t, "boom", func() {
		_ = scratch.Do("do", func(s scope.Scope) error {
			_, _ = points.Make(s, func(*point) error { s.Open("left open"); points.TryNew(s); return errMark })
			panic("boom")
		})
	})
	assert.Zero(t, scratch.Depth())
	s := scratch.Open("s")
	child := s.Open("child")
	var undeclared scope.Maker[point]
	assert.Nil(t, undeclared.TryNew(s))
	require.NoError(t, child.Close())
	assert.ErrorContains(t, s.Close(), "never declared")
}

// TestFullBelowManyThatRemember: each scope remembers its own, however many there are.
func TestFullBelowManyThatRemember(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("do", func(s scope.Scope) error {
		for range 6 {
			s = s.Open("remembers")
			defer func() { _ = s.Close() }()
			bytesOnly.TrySlice(s, 1<<20)
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

// TestZeroSizeConstructor: what is older never ends where it begins.
func TestZeroSizeConstructor(t *testing.T) {
	empties := scope.Plain[struct{}]()
	s := open(t).Scratch(0, 0).Open("s")
	list := points.Append(s, nil, point{1, 1})
	_, err := empties.Make(s, func(*struct{}) error {
		return recovered(func() { list = points.Append(s, list, point{2, 2}) })
	})
	assert.ErrorContains(t, err, "Append inside a constructor to a list that is older")
	points.New(s).X = 99
	assert.Equal(t, []point{{1, 1}}, list)
	require.NoError(t, s.Close())
}

// TestScopeInThePlaceOfAConstructors: it has nothing to do with the constructor.
func TestScopeInThePlaceOfAConstructors(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	s.Bytes(1000)
	reached := false
	assert.Panics(t, func() {
		_, _ = points.Make(s, func(*point) error {
			require.NoError(t, s.Close())
			other := scratch.Open("other")
			x := points.New(other)
			assert.Same(t, x, scope.RefTo(other, x).Get())
			list := points.Append(other, nil, point{1, 1})
			points.New(other)
			assert.Len(t, points.Append(other, list, point{2, 2}), 2)
			_, err := marks.Make(other, func(*mark) error { points.New(other); return nil })
			assert.NoError(t, err)
			reached = true
			return nil
		})
	})
	assert.True(t, reached, "the panic is Make's, whose scope is closed")
	assert.Equal(t, 1, scratch.Depth())
}

// TestFailedConstructorsCostNothing that stays: a million of them, and the Go heap is as before.
func TestFailedConstructorsCostNothing(t *testing.T) {
	if instrumented {
		t.Skip("the sanitizers' runtimes allocate")
	}
	s := open(t).Scratch(0, 0).Open("s")
	fails := func(*point) error { return errMark }
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50_000 {
		_, _ = points.Make(s, fails)
	}
	runtime.ReadMemStats(&after)
	// In bytes: a list that grows takes a megabyte, and the runtime may take an object of its own meanwhile.
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
	require.NoError(t, s.Close())
}
