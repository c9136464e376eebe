package scope_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

var (
	longs   = scope.Plain[uint64]()
	empties = scope.Plain[struct{}]()
	chars   = scope.Plain[byte]()
)

func count(from, n int) (list []uint64) {
	for i := range n {
		list = append(list, uint64(from+i))
	}
	return list
}

func at[T any](list []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(list)) }

func TestMisusedSlices(t *testing.T) {
	scratch, s := opened(t, "s")
	const half = math.MaxInt/2 + 1
	most := empties.Slice(s, math.MaxInt)
	for _, misuse := range []struct {
		want string
		do   func()
	}{
		{"a slice of 5 elements with room for 4", func() { longs.SliceCap(s, 5, 4) }},
		{"a slice of -1 elements with room for 4", func() { longs.SliceCap(s, -1, 4) }},
		{"a slice of -2 elements with room for -1", func() { longs.SliceCap(s, -2, -1) }},
		{"a slice of -1 elements", func() { longs.SliceAligned(s, -1, 8) }},
		{"a slice of -1 elements", func() { longs.TrySlice(s, -1) }},
		{"a slice of -1 elements", func() { s.Bytes(-1) }},
		{fmt.Sprintf("a slice of %d elements", math.MinInt), func() { s.Bytes(math.MinInt) }},
		{"a slice aligned to 0: the alignment must be a power of two up to 1 MiB", func() {
			longs.SliceAligned(s, 1, 0)
		}},
		{"a slice aligned to 24: the alignment must be a power of two up to 1 MiB", func() {
			longs.SliceAligned(s, 1, 24)
		}},
		{"a slice aligned to 2097152: the alignment must be a power of two up to 1 MiB", func() {
			longs.SliceAligned(s, 1, 1<<21)
		}},
		{fmt.Sprintf("a slice of %d and 1 more elements", math.MaxInt), func() { empties.Append(s, most, struct{}{}) }},
		{fmt.Sprintf("a slice of %d and %[1]d more elements", half), func() {
			empties.Append(s, most[:half], most[:half]...)
		}},
	} {
		used := scratch.Stats()
		assert.PanicsWithError(t, "scope: BUG: "+misuse.want, misuse.do)
		assert.Equal(t, used, scratch.Stats())
	}
	_ = s.Close()
}

func TestHugeSlicesAreFull(t *testing.T) {
	scratch, s := opened(t, "s")
	used := scratch.Stats().Used
	for _, count := range []uint64{1 << 28, 1 << 30, 1 << 35, 1 << 37, 1 << 38, 1 << 60, 1<<61 - 1, 1 << 61,
		math.MaxInt} {
		n := int(min(count, math.MaxInt))
		for _, do := range []func(){
			func() { longs.SliceCap(s, 1, n) },
			func() { longs.SliceAligned(s, n, 64) },
			func() { longs.Slice(s, n) },
		} {
			err := recovered(do)
			assert.ErrorIs(t, err, scope.ErrFull, "%d", n)
			assert.Equal(t, used, scratch.Stats().Used)
		}
	}
	// checkptr refuses the false length
	if length := uint64(1) << 40; !instrumented && length <= math.MaxInt {
		var b byte
		lie := unsafe.Slice(&b, length)
		for _, list := range [][]byte{nil, chars.Slice(s, 1)} {
			err := recovered(func() { chars.Append(s, list, lie...) })
			assert.ErrorContains(t, err, "asked for 274877906944 bytes",
				"also what is longer than a generation is wide")
		}
	}
	_ = s.Close()
}

func TestSliceCap(t *testing.T) {
	s := dirty(t).Open("s")
	list := longs.SliceCap(s, 2, 5)
	assert.Equal(t, make([]uint64, 5), list[:5])
	longer := append(list, 1, 2, 3)
	assert.Equal(t, at(list), at(longer), "the built-in stays inside, up to the capacity")
	assert.NotEqual(t, at(list), at(append(longer, 4))) //upfront:keeps it leaves
	none := longs.SliceCap(s, 0, 0)
	assert.NotNil(t, none)
	assert.Empty(t, none)
	assert.Len(t, empties.SliceCap(s, 3, math.MaxInt), 3)
	require.NoError(t, s.Close())
}

func TestClone(t *testing.T) {
	scratch, s := opened(t, "s")
	clone := longs.Clone(s, count(1, 5)[:4])
	assert.Equal(t, count(1, 4), clone)
	assert.Equal(t, 4, cap(clone))
	assert.EqualValues(t, 32, scratch.Stats().Used)
	assert.NotEqual(t, at(clone), at(longs.Clone(s, clone)))
	assert.Nil(t, longs.Clone(s, nil))
	empty := longs.Clone(s, []uint64{})
	assert.NotNil(t, empty)
	assert.Empty(t, empty)
	assert.EqualValues(t, 64, scratch.Stats().Used)
	assert.ErrorIs(t, recovered(func() { longs.Clone(s, make([]uint64, scratchSize/8)) }), scope.ErrFull)
	assert.Empty(t, longs.SliceAligned(s, 0, 64))
	_ = s.Close()
}

// TestAppendIsTheBuiltIn compares all small lists with the built-in: newest in the scope or not,
// with and without spare capacity, and appending every part of their own capacity.
func TestAppendIsTheBuiltIn(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	for _, last := range []bool{true, false} {
		for room := range 6 {
			for length := range room + 1 {
				for to := range room + 1 {
					for from := range to + 1 {
						s := scratch.Open("s")
						list := longs.SliceCap(s, length, room)
						copy(list[:room], count(1, room))
						if !last {
							s.Bytes(1)
						}
						want := append(count(1, length), count(1, room)[from:to]...)
						got := longs.Append(s, list, list[:room][from:to]...)
						name := fmt.Sprintf("last %v: %d of %d, %d:%d", last, length, room, from, to)
						require.Equal(t, len(want), len(got), name)
						require.True(t, slices.Equal(want, got), name)
						inPlace := len(want) <= room || last
						require.Equal(t, inPlace || room == 0, at(got) == at(list) || room == 0, name)
						require.NoError(t, s.Close())
					}
				}
			}
		}
	}
}

func TestAppendOfWhatLiesElsewhere(t *testing.T) {
	scratch := dirty(t)
	s := scratch.Open("s")
	heap := append(make([]uint64, 0, 8), 1, 2)
	list := longs.Append(s, heap, 3)
	assert.Equal(t, count(1, 3), list)
	assert.Equal(t, []uint64{0, 0, 0, 4}, append(make([]uint64, 3), longs.Append(s, nil, 4)...))
	assert.Equal(t, count(1, 3), list)
	assert.Zero(t, heap[:3][2], "the Go heap's capacity is not ours to write to")
	assert.Equal(t, 4, cap(list), "twice its length")
	assert.Zero(t, list[:4][3], "spare capacity is zeroed")

	assert.Nil(t, longs.Append(s, nil))
	used := scratch.Stats().Used
	assert.Equal(t, count(1, 3), longs.Append(s, list), "nothing is appended")
	assert.Equal(t, used, scratch.Stats().Used)
	clone := longs.Append(s, heap)
	assert.Equal(t, count(1, 2), clone)
	assert.NotEqual(t, at(heap), at(clone), "what it gives lies in s")
	require.NoError(t, s.Close())
}

// TestAppendNeverTouchesAnEnclosingScope: neither a list's spare capacity there, nor the bytes
// after a list that ends where the inner scope begins.
func TestAppendNeverTouchesAnEnclosingScope(t *testing.T) {
	outer := open(t).Scratch(0, 0).Open("outer")
	for _, length := range []int{0, 1, 4} {
		list := longs.SliceCap(outer, length, 4)
		copy(list, count(1, length))
		inner := outer.Open("inner")
		longer := longs.Append(inner, list, 9)
		assert.Equal(t, append(count(1, length), 9), longer)
		assert.NotEqual(t, at(list), at(longer))
		assert.Equal(t, append(count(1, length), make([]uint64, 4-length)...), list[:4])
		require.NoError(t, inner.Close())
		longer = longs.Append(outer, list, 9)
		assert.Equal(t, at(list), at(longer), "its own scope may")
	}
	require.NoError(t, outer.Close())
}

// TestAppendAsksForTheMaker: an undeclared Maker is refused, even for the newest allocation of the
// scope.
func TestAppendAsksForTheMaker(t *testing.T) {
	scratch, s := opened(t, "s")
	list := longs.Append(s, nil, 1, 2)
	var undeclared scope.Maker[uint64]
	was := scratch.Stats()
	for _, misuse := range []func(){
		func() { undeclared.Append(s, list, 3) }, func() {
			undeclared.Append(s, list)
		}, func() { undeclared.Append(s, nil, 3, 4) },
	} {
		assert.ErrorContains(t, recovered(misuse), "never declared")
	}
	assert.Equal(t, was, scratch.Stats())
	assert.NoError(t, s.Err())
	assert.Equal(t, count(1, 3), longs.Append(s, list, 3))
	require.NoError(t, s.Close())
	var zero scope.Scope
	assert.ErrorContains(t, recovered(func() { longs.Append(zero, nil, 1, 2) }), "a zero Scope")
	assert.ErrorContains(t, recovered(func() { longs.Append(zero, nil) }), "a zero Scope")
}

// TestAppendToAListOfTheNextScope: a closed scope refuses, also where the list is the newest
// allocation of the next scope.
func TestAppendToAListOfTheNextScope(t *testing.T) {
	scratch, stale := opened(t, "stale")
	require.NoError(t, stale.Close())
	s := scratch.Open("s")
	list := longs.Append(s, nil, 1)
	assert.ErrorIs(t, recovered(func() { longs.Append(stale, list, 2) }), scope.ErrClosed)
	assert.EqualValues(t, 8, scratch.Stats().Used)
	require.NoError(t, s.Close())
}

// TestBytes: results are zeros where other bytes were, adjoin without padding, and use the last
// byte.
func TestBytes(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("dirt")
	for i, all := 0, s.BytesUnzeroed(scratchSize, 1); i < len(all); i++ {
		all[i] = 0xDB
	}
	require.NoError(t, s.Close())
	s = scratch.Open("s")
	used := 0
	for n := range 300 {
		list := s.Bytes(n)
		assert.Equal(t, make([]byte, n), list)
		assert.NotNil(t, list)
		assert.Equal(t, n, cap(list))
		used += n
		assert.EqualValues(t, used, scratch.Stats().Used)
		for i := range list {
			list[i] = byte(n)
		}
	}
	inner := s.Open("inner")
	assert.ErrorContains(t, recovered(func() { s.Bytes(0) }), "allocation in scope")
	assert.ErrorIs(t, recovered(func() { inner.Bytes(scratchSize - used + 1) }), scope.ErrFull)
	assert.ErrorIs(t, recovered(func() { inner.Bytes(math.MaxInt) }), scope.ErrFull)
	assert.Len(t, inner.Bytes(scratchSize-used), scratchSize-used)
	assert.Empty(t, inner.Bytes(0))
	assert.ErrorIs(t, recovered(func() { inner.Bytes(1) }), scope.ErrFull)
	assert.ErrorIs(t, inner.Close(), scope.ErrFull)
	_ = s.Close()
	assert.ErrorIs(t, recovered(func() { s.Bytes(1) }), scope.ErrClosed)
	assert.ErrorContains(t, recovered(func() { scope.Scope{}.Bytes(1) }), "a zero Scope")
}

// TestAppendToADeadList: a list of a closed scope is beyond the cursor, and its capacity isn't
// used.
func TestAppendToADeadList(t *testing.T) {
	scratch, outer := opened(t, "outer")
	longs.Slice(outer, 1)
	inner := outer.Open("inner")
	dead := longs.SliceCap(inner, 0, 4)
	require.NoError(t, inner.Close())
	list := longs.Append(outer, dead, 1) //upfront:keeps a dead list
	assert.Equal(t, 1, cap(list))
	assert.EqualValues(t, 16, scratch.Stats().Used, "its place was taken")
	assert.Equal(t, count(1, 2), longs.Append(outer, list, 2))
	assert.EqualValues(t, 24, scratch.Stats().Used)
	require.NoError(t, outer.Close())
}

func TestAppendMakesOneThing(t *testing.T) {
	scratch, s := opened(t, "s")
	var list []uint64
	for i := range 100 {
		list = longs.Append(s, list, uint64(i))
		require.EqualValues(t, 8*(i+1), scratch.Stats().Used)
		require.Equal(t, counted(1), scratch.Stats().Objects)
	}
	list = longs.Append(s, list[:98], count(98, 5)...)
	assert.Equal(t, count(0, 103), list)
	assert.Equal(t, counted(1), scratch.Stats().Objects)
	s.Bytes(1)
	longs.Append(s, list, count(103, 1)...)
	assert.EqualValues(t, 8*(103+1+206), scratch.Stats().Used)
	assert.Equal(t, counted(3), scratch.Stats().Objects)
	require.NoError(t, s.Close())
}

func TestAppendThatIsFull(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	var list []uint64
	err := scratch.Do("s", func(s scope.Scope) error {
		list = longs.Append(s, nil, count(0, scratchSize/8-1)...)
		require.EqualValues(t, 8, s.Free())
		list = longs.Append(s, list, 1)
		require.Zero(t, s.Free(), "the last byte can be had")
		want := slices.Clone(list)
		for _, more := range []int{1, 2, 1000} {
			assert.PanicsWithError(t,
				fmt.Sprintf(`budget "test": scratch 0.0 is full: scope "s" asked for %d bytes, 0 of 65536 are free; `+
					`held by "s" (65536 bytes); raise scratch.size in the plan to %d or more`,
					more*8, scratchSize+more*8),
				func() { list = longs.Append(s, list, count(0, more)...) })
			assert.True(t, slices.Equal(want, list), "the list is unchanged")
		}
		assert.Equal(t, counted(1), scratch.Stats().Objects)
		assert.PanicsWithError(t,
			`budget "test": scratch 0.0 is full: scope "s" asked for 16 bytes, 0 of 65536 are free; `+
				`held by "s" (65536 bytes); raise scratch.size in the plan to 65552 or more`, func() {
				longs.Append(s, []uint64{1}, 2)
			})
		list = longs.Append(s, list, 1)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, "asked for 8 bytes")
}

// TestAppendToAScopeThatMayNot: a covered, closed or frozen scope refuses, also where the list has
// spare capacity.
func TestAppendToAScopeThatMayNot(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	refused := func(want string, s scope.Scope, list []uint64) {
		t.Helper()
		used := scratch.Stats().Used
		for n := range 6 {
			assert.PanicsWithError(t, want, func() { longs.Append(s, list, count(7, n)...) })
		}
		for _, do := range []func(){
			func() { longs.Append(s, nil, 7) }, func() { longs.Append(s, nil) },
			func() { longs.Clone(s, nil) }, func() { longs.Clone(s, []uint64{1}) },
			func() { longs.SliceCap(s, 0, 1) }, func() { longs.SliceAligned(s, 1, 64) },
		} {
			assert.PanicsWithError(t, want, do)
		}
		assert.Equal(t, used, scratch.Stats().Used)
		assert.Equal(t, make([]uint64, 4), list[:4], "nothing was written")
	}
	outer := scratch.Open("outer")
	list := longs.SliceCap(outer, 1, 4)
	inner := outer.Open("inner")
	refused(`scope: BUG: allocation in scope "outer" of scratch 0.0 while scope "inner", opened in it, is open; close "inner" first`,
		outer, list)
	require.NoError(t, inner.Close())
	again := outer.Open("again")
	refused("scope: BUG: allocation in a closed scope of scratch 0.0", inner, longs.SliceCap(again, 1, 4))
	require.NoError(t, again.Close())

	var level scope.Scope
	require.NoError(t, inLevel(t, b, func(s scope.Scope) error {
		level, list = s, longs.SliceCap(s, 1, 4)
		return nil
	}))
	refused(`scope: BUG: allocation in scope "level" of region level, which is frozen since its load returned`,
		level, list)

	assert.Error(t, b.Close())
	want := "scope: BUG: use of a scope whose budget is closed"
	assert.PanicsWithError(t, want, func() { longs.Append(outer, nil, 1) })
	assert.PanicsWithError(t, want, func() { longs.Append(level, nil, 1) })
}

// TestBlocksPadAlike: the padding of an arena on a block depends on its address, alike in every
// build.
func TestBlocksPadAlike(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	used := func(in scope.Scope) (used []uint64) {
		for i := range 6 {
			in.Bytes(1 + 37*i)
			l, err := arena.NewLinear(in.BytesUnzeroed(4096, 64))
			require.NoError(t, err)
			for align := uint64(8); align <= 4096 && l.Alloc(8, align) != nil; align *= 2 {
			}
			used = append(used, l.Stats().Used)
		}
		return used
	}
	assert.Equal(t, []uint64{0xf48, 0xf08, 0xe88, 0xe08, 0xd48, 0xc88}, used(s))
	assert.Equal(t, []uint64{0xc88, 0xc48, 0xbc8, 0xb48, 0xa88, 0x9c8}, used(s.Temp(30_000)))
	require.NoError(t, s.Close())
}

func TestTrySlice(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	empty := points.TrySlice(s, 0)
	assert.NotNil(t, empty)
	assert.Empty(t, empty)
	rest := int(s.Free())
	assert.Nil(t, points.TrySlice(s, math.MaxInt/8+1), "a size that overflows is full, not small")
	assert.Nil(t, s.TryAllocUnzeroed(uint64(rest)+1, 1))
	assert.NotNil(t, s.Bytes(rest), "the last byte can be had")
	assert.ErrorIs(t, s.Err(), scope.ErrFull)
	assert.ErrorIs(t, s.Close(), scope.ErrFull, "Close returns what the scope remembers")
}

func TestAllocBounds(t *testing.T) {
	const text = "scope: BUG: AllocUnzeroed: the alignment must be a power of two up to 64 (BytesUnzeroed: up to 1 MiB)"
	scratch, a := opened(t, "a")
	for _, bad := range []uint64{0, 3, 1<<20 + 1, 1 << 21} {
		assert.ErrorContains(t, recovered(func() { a.BytesUnzeroed(1, bad) }),
			"the alignment must be a power of two up to 1 MiB")
	}
	assert.EqualError(t, recovered(func() { a.BytesUnzeroed(-1, 8) }), "scope: BUG: a slice of -1 bytes")
	assert.ErrorIs(t, scratch.Do("do", func(s scope.Scope) error { s.BytesUnzeroed(scratchSize+1, 1); return nil }),
		scope.ErrFull)
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

// TestBadAlignOfAnother: only the scope of the request reports a bad align, and no scope if that is
// closed.
func TestBadAlignOfAnother(t *testing.T) {
	const text = "scope: BUG: AllocUnzeroed: the alignment must be a power of two up to 64 " +
		"(BytesUnzeroed: up to 1 MiB)"
	for _, bad := range []uint64{0, 3, 128, 1<<20 + 1, 1<<31 - 1, 1<<42 + 1, 1 << 62} {
		scratch, a := opened(t, "a")
		b := a.Open("b")
		c := b.Open("c")
		closed := c.Open("closed")
		require.NoError(t, closed.Close())
		assert.Nil(t, closed.TryAllocUnzeroed(8, bad))
		assert.NoError(t, c.Err(), "%#x: another asked", bad)
		assert.PanicsWithError(t, text, func() { closed.AllocUnzeroed(8, bad) })
		assert.NoError(t, c.Err(), "%#x: another asked", bad)
		assert.Nil(t, b.TryAllocUnzeroed(8, bad))
		assert.NoError(t, c.Err(), "%#x: b asked", bad)
		assert.NoError(t, c.Close(), "%#x: b asked", bad)
		assert.EqualError(t, b.Err(), text, "%#x", bad)
		assert.EqualError(t, b.Close(), text, "%#x", bad)
		assert.NoError(t, a.Close())
		assert.NoError(t, scratch.Do("after", func(scope.Scope) error { return nil }))
	}
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
	if runtime.GOOS == "linux" {
		_, err = scope.ReadFile(a, "/proc/self/status")
		assert.EqualError(t, err,
			`scope: "/proc/self/status" has more bytes than its size, which is 0; read it with ReadAt`)
	}
	_, err = scope.ReadAt(a, f, 3, 5)
	assert.EqualError(t, err, "scope: read 2 of 5 bytes at offset 3: unexpected EOF")
	require.NoError(t, os.Truncate(name, 4<<30+5), "of which nothing is on the disk")
	assert.ErrorIs(t, recovered(func() { _, _ = scope.ReadFile(a, name) }), scope.ErrFull,
		"also where an int has 32 bits")
	assert.ErrorIs(t, a.Close(), scope.ErrFull)
}

// TestReadFileErrors: a name in the scope may be freed before the error.
func TestReadFileErrors(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	err := scratch.Do("a", func(s scope.Scope) error {
		_, err := scope.ReadFile(s, scope.Sprintf(s, "no/such/%s", "file"))
		return err
	})
	_ = scratch.Do("b", func(s scope.Scope) error { clear(s.Bytes(1024)); return nil })
	_, want := os.Open("no/such/file")
	assert.EqualError(t, err, want.Error())
}
