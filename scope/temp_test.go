package scope_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

func TestTempIsExact(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for n := range 200 {
		s := scratch.Open("s")
		temp := s.Temp(n)
		assert.Equal(t, make([]byte, n), temp.Bytes(n))
		assert.Nil(t, temp.TryAllocUnzeroed(1, 1), "not a byte more")
		assert.EqualError(t, temp.Err(),
			fmt.Sprintf(`budget "test": scratch 0.0: temporaries "temp" are full: asked for 1 bytes, `+
				`0 of Temp's %d are free; ask Temp for %d or more`, n, (n+7)&^7+1))
		assert.ErrorIs(t, s.Close(), scope.ErrFull, "nobody else is asked what temporaries remember")
	}
	s := scratch.Open("s")
	temp := s.Temp(1000)
	temp.Bytes(900)
	var full *scope.FullError
	require.ErrorAs(t, recovered(func() { longs.Slice(temp, 100) }), &full)
	enough := s.Temp(int(full.Need))
	enough.Bytes(900)
	assert.Len(t, longs.Slice(enough, 100), 100, "what the error names would do")
	assert.ErrorIs(t, s.Close(), scope.ErrFull)
}

func TestTempsNest(t *testing.T) {
	scratch, s := opened(t, "s")
	older := s.Temp(1000)
	kept := older.Bytes(500)
	newer := older.Temp(2000)
	assert.EqualValues(t, 2000, newer.Free())
	for i := range newer.Bytes(2000) {
		kept[i%500] = 7
	}
	inner := s.Open("inner") // the near end still nests
	points.New(inner)
	newest := inner.Temp(64)
	const covered = ` scope "temp" of scratch 0.0, which isn't the newest of the temporaries`
	assert.EqualError(t, recovered(func() { points.New(newer) }), "scope: BUG: allocation in"+covered)
	assert.EqualError(t, recovered(func() { newer.Temp(1) }), "scope: BUG: Temp of"+covered)
	assert.EqualError(t, newer.Close(), "scope: BUG: Close of"+covered)
	assert.ErrorContains(t, recovered(func() { newest.Open("x") }),
		`Open in scope "temp" of scratch 0.0, which holds temporaries: open or label a scope in the one that called Temp`)
	assert.ErrorContains(t, recovered(func() { s.Temp(1) }),
		`while scope "inner", opened in it, is open; close "inner" first`)
	points.New(newest)
	require.NoError(t, inner.Close())
	assert.ErrorIs(t, newest.Close(), scope.ErrClosed, "it has ended with inner")
	assert.ErrorContains(t, newer.Err(), covered, "its own misuse, not the newest's")
	assert.NoError(t, older.Err())
	assert.ErrorContains(t, newer.Close(), covered)
	assert.EqualValues(t, 1000-500-4-16, older.Free(), "it allocates again, behind a node of 16 bytes")
	assert.Equal(t, bytes.Repeat([]byte{7}, 500), kept)
	points.New(older)
	require.NoError(t, s.Close())
	assert.Zero(t, scratch.Stats().Used)
}

// TestTempEndsInItsPlace: temporaries end in order with their scope's finalizers; Close ends the
// newest earlier.
func TestTempEndsInItsPlace(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	newMark(s, 1, 0)
	temp := s.Temp(1000)
	newMark(temp, 2, 0)
	newMark(s, 3, 0)
	early := temp.Temp(100)
	newMark(early, 4, doFail)
	assert.ErrorIs(t, early.Close(), errMark)
	assert.ErrorIs(t, early.Close(), scope.ErrClosed)
	assert.ErrorIs(t, early.Err(), scope.ErrClosed)
	newMark(temp.Temp(100), 5, doPanic)
	newMark(s, 6, 0)
	assert.ErrorContains(t, s.Close(), `scratch 0.0, scope "temp": finalizer of scope_test.mark panicked: mark panics`)
	assert.Equal(t, []int64{4, 6, 3, 5, 2, 1}, closed)
}

func TestTempThatDoesNotFit(t *testing.T) {
	scratch, s := opened(t, "s")
	s.Bytes(100)
	near := `budget "test": scratch 0.0 is full: scope "%s" asked for %d bytes, %d of 65536 are free; ` +
		`held by %s; raise scratch.size in the plan to %d or more`
	assert.EqualError(t, recovered(func() { s.Temp(scratchSize) }), fmt.Sprintf(near, "s", 65564, scratchSize-100,
		`"s" (100 bytes)`, 104+65564))
	assert.Equal(t, counted(1), scratch.Stats().Objects, "nothing is left of it")
	assert.Equal(t, arena_c.Checked, scratch.Stats().Counted)
	assert.EqualValues(t, 100, scratch.Stats().Used)
	temp := s.Temp(1000)
	assert.EqualError(t, recovered(func() { temp.Temp(scratchSize) }),
		fmt.Sprintf(near, "temp", 65600, scratchSize-120-1024, `"temp" (1024 bytes), "s" (120 bytes)`,
			120+8+1024+65600), "it is the scratch that is full")
	temp.Bytes(990)
	assert.EqualError(t, recovered(func() { temp.Temp(1) }),
		`budget "test": scratch 0.0: temporaries "temp" are full: asked for 16 bytes, `+
			`10 of Temp's 1000 are free; ask Temp for 1008 or more`, "it is the temporaries that are")
	for _, n := range []int{math.MaxInt, math.MaxInt - 63, 1 << 30} {
		assert.ErrorIs(t, recovered(func() { s.Temp(n) }), scope.ErrFull, "%d", n)
	}
	assert.EqualError(t, recovered(func() { s.Temp(-1) }), "scope: BUG: Temp of -1 bytes")
	_ = s.Close()

	s = scratch.Open("s")
	for range 8 {
		s.Temp(8)
	}
	assert.EqualError(t, recovered(func() { s.Temp(8) }),
		`budget "test": scratch 0.0: all 8 places for scopes are taken: scope "temp" asked for one more; `+
			`raise limits.scopes in the plan to 9 or more`)
	require.NoError(t, s.Close())
}

// TestTempRefuses: calls that aren't allowed, and allocations by a finalizer of temporaries.
func TestTempRefuses(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	s := scratch.Open("s")
	temp := s.Temp(100)
	_, err := points.Make(temp, func(*point) error {
		temp.Defer(func() {
			assert.EqualError(t, recovered(func() { s.Temp(1) }),
				`scope: BUG: Temp next to scope "temp" of scratch 0.0 while its finalizers run`)
		})
		return errMark
	})
	require.ErrorIs(t, err, errMark)
	s.Defer(func() {
		assert.EqualError(t, recovered(func() { s.Temp(1) }),
			`scope: BUG: Temp of scope "s" of scratch 0.0 while its finalizers run`)
	})
	require.NoError(t, s.Close())
	assert.ErrorIs(t, recovered(func() { s.Temp(1) }), scope.ErrClosed)
	var level scope.Scope
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error { level = s; return nil }))
	assert.EqualError(t, recovered(func() { level.Temp(1) }),
		`scope: BUG: Temp of scope "level" of region level, which is frozen since its load returned`)
}

// TestTempsRememberEachForItself: the call that ends the temporaries returns the refusals of all.
func TestTempsRememberEachForItself(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	first := s.Temp(8)
	assert.Nil(t, first.TryAllocUnzeroed(101, 1))
	second := s.Temp(8)
	assert.Nil(t, second.TryAllocUnzeroed(102, 1))
	third := s.Temp(8)
	assert.Nil(t, second.TryAllocUnzeroed(8, 1))
	assert.NoError(t, third.Err())
	assert.ErrorContains(t, second.Err(), "isn't the newest")
	assert.ErrorContains(t, first.Err(), "asked for 101 bytes")
	assert.NoError(t, third.Close())
	assert.NoError(t, s.Err(), "s was refused nothing")
	err := s.Close()
	assert.ErrorContains(t, err, "asked for 101 bytes")
	assert.ErrorContains(t, err, "isn't the newest")

	s = open(t).Scratch(0, 0).Open("s")
	temp := s.Temp(100)
	assert.Panics(t, func() {
		_, _ = points.Make(temp, func(*point) error { newMark(temp, 1, doFail); panic("boom") })
	})
	assert.ErrorIs(t, s.Close(), errMark, "what the parts of a constructor said")
}

// TestAppendInTemporaries: the newest list grows where it is; near end and far end are apart.
func TestAppendInTemporaries(t *testing.T) {
	scratch, s := opened(t, "s")
	near := longs.SliceCap(s, 1, 2)
	temp := s.Temp(8 * 100)
	assert.NotEqual(t, at(near), at(longs.Append(temp, near, 7)))
	assert.Zero(t, near[:2][1])
	var list []uint64
	for i := range 98 {
		list = longs.Append(temp, list, uint64(i))
	}
	assert.Equal(t, count(0, 98), list)
	assert.Zero(t, temp.Free(), "exact")
	assert.EqualError(t, recovered(func() { longs.Append(temp, list, 98) }),
		`budget "test": scratch 0.0: temporaries "temp" are full: asked for `+
			`8 bytes, 0 of Temp's 800 are free; ask Temp for 808 or more`)
	moved := longs.Append(s, list[:1:1], 7)
	assert.NotEqual(t, at(list), at(moved))
	assert.EqualValues(t, 1, list[1])
	newer := s.Temp(8 * 4)
	assert.NotEqual(t, at(list), at(longs.Append(newer, list[:1], 7)), "nor in another one of them")
	assert.EqualValues(t, 1, list[1])
	require.ErrorIs(t, s.Close(), scope.ErrFull)

	s = scratch.Open("again")
	temp = s.Temp(8 * 100) // in the place of the dead list
	longs.Slice(temp, 1)
	assert.NotEqual(t, at(list), at(longs.Append(temp, list[:0], 7)))
	require.NoError(t, s.Close())
}

// TestFullPastADeferredCloseOfTemporaries: the full has the figures of its request, not those after
// temporaries were freed.
func TestFullPastADeferredCloseOfTemporaries(t *testing.T) {
	err := open(t).Scratch(0, 0).Do("file", func(s scope.Scope) error {
		temp := s.Temp(scratchSize / 2)
		defer temp.Close()
		s.Bytes(scratchSize * 3 / 4)
		return nil
	})
	full := new(scope.FullError)
	assert.ErrorAs(t, err, &full)
	assert.Less(t, full.Free, uint64(scratchSize/2))
	assert.Equal(t, uint64(scratchSize*5/4+64), full.Need)
}

// TestTempsTellWhatTheyMetFirst: their refusals come before the errors of finalizers, and once.
func TestTempsTellWhatTheyMetFirst(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("a")
	temp := s.Temp(64)
	newMark(temp, 1, doFail)
	require.Nil(t, points.TrySlice(temp, 100))
	err := s.Close()
	require.Error(t, err)
	told := strings.Split(err.Error(), "\n")
	require.Len(t, told, 2)
	assert.Contains(t, told[0], "asked for 800")
	assert.Contains(t, told[1], "mark failed")
}
