package scope_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
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
		assert.ErrorContains(t, panicsWith(func() { a.BytesUnzeroed(1, bad) }), "an align is a power of two up to 1 MiB")
	}
	assert.EqualError(t, panicsWith(func() { a.BytesUnzeroed(-1, 8) }), "scope: BUG: a slice of -1 bytes")
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
		zeros   = []func(){func() { points.New(s) }, func() { points.TryNew(s) }, func() { points.Slice(s, 1) }, func() { s.AllocUnzeroed(1, 1) },
			func() { s.Bytes(1) }, func() { s.BytesUnzeroed(1, 64) }, func() { s.Open("a") }, func() { _ = s.Close() }, func() { _ = s.Err() },
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
