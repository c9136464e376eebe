package scope_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/scope"
)

// TestAppendIsTheBuiltIn compares all small lists with the built-in: last in the scope or not, with and without spare
// capacity, and with every part of their own capacity as what is appended.
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
	scratch := open(t).Scratch(0, 0)
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

// TestAppendNeverTouchesAnEnclosingScope: neither the spare capacity of a list there, nor the bytes behind one that ends where
// the inner scope begins.
func TestAppendNeverTouchesAnEnclosingScope(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	outer := scratch.Open("outer")
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

// TestAppendToADeadList: a list of a scope that closed lies behind the cursor, and its capacity is nobody's.
func TestAppendToADeadList(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	outer := scratch.Open("outer")
	longs.Slice(outer, 1)
	inner := outer.Open("inner")
	dead := longs.SliceCap(inner, 0, 4)
	require.NoError(t, inner.Close())
	list := longs.Append(outer, dead, 1)
	assert.Equal(t, 1, cap(list))
	assert.EqualValues(t, 16, scratch.Stats().Used, "its place was taken")
	assert.Equal(t, count(1, 2), longs.Append(outer, list, 2))
	assert.EqualValues(t, 24, scratch.Stats().Used)
	require.NoError(t, outer.Close())
}

// TestAppendTakesJustWhatItNeeds counts bytes and things.
func TestAppendTakesJustWhatItNeeds(t *testing.T) {
	scratch := open(t).Scratch(0, 0)
	s := scratch.Open("s")
	var list []uint64
	for i := range 100 {
		list = longs.Append(s, list, uint64(i))
		require.EqualValues(t, 8*(i+1), scratch.Stats().Used)
		require.Equal(t, i+1, cap(list))
	}
	assert.Equal(t, counted(1), scratch.Stats().Objects, "it is one thing")
	list = longs.Append(s, list[:98], count(98, 5)...)
	assert.Equal(t, count(0, 103), list)
	assert.EqualValues(t, 8*103, scratch.Stats().Used)
	assert.Equal(t, counted(1), scratch.Stats().Objects)
	s.Bytes(1)
	list = longs.Append(s, list, count(103, 1)...)
	assert.Equal(t, count(0, 104), list)
	assert.Equal(t, 206, cap(list))
	assert.EqualValues(t, 8*(103+1+206), scratch.Stats().Used)
	assert.Equal(t, counted(3), scratch.Stats().Objects)
	list = longs.Append(s, list, count(104, 400)...)
	assert.Equal(t, count(0, 504), list, "last again")
	assert.EqualValues(t, 8*(103+1+504), scratch.Stats().Used)
	s.Bytes(1)
	list = longs.Append(s, list, count(504, 1000)...)
	assert.Equal(t, 1504, cap(list), "what it needs, when that is more than twice")
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
			assert.PanicsWithError(t, fmt.Sprintf(`budget "test": scratch 0.0 is full: scope "s" asked for %d bytes, 0 of 65536 are free; `+
				`held by "s" 65536; raise scratch.size in the plan to %d or more`, more*8, scratchSize+more*8),
				func() { list = longs.Append(s, list, count(0, more)...) })
			assert.True(t, slices.Equal(want, list), "the list is unchanged")
		}
		assert.Equal(t, counted(1), scratch.Stats().Objects)
		assert.PanicsWithError(t, `budget "test": scratch 0.0 is full: scope "s" asked for 16 bytes, 0 of 65536 are free; `+
			`held by "s" 65536; raise scratch.size in the plan to 65552 or more`, func() { longs.Append(s, []uint64{1}, 2) })
		list = longs.Append(s, list, 1)
		return nil
	})
	assert.ErrorIs(t, err, scope.ErrFull)
	assert.ErrorContains(t, err, "asked for 8 bytes")
}

// TestAppendToAScopeThatMayNot: a covered, closed or frozen scope refuses, also where the list has spare capacity.
func TestAppendToAScopeThatMayNot(t *testing.T) {
	b := open(t)
	scratch := b.Scratch(0, 0)
	outer := scratch.Open("outer")
	list := longs.SliceCap(outer, 1, 4)
	refused := func(want string, s scope.Scope, list []uint64) {
		t.Helper()
		used := scratch.Stats().Used
		for n := range 6 {
			assert.PanicsWithError(t, want, func() { longs.Append(s, list, count(7, n)...) })
		}
		assert.PanicsWithError(t, want, func() { longs.Append(s, nil, 7) })
		assert.PanicsWithError(t, want, func() { longs.Append(s, nil) })
		assert.PanicsWithError(t, want, func() { longs.Clone(s, nil) })
		assert.PanicsWithError(t, want, func() { longs.Clone(s, []uint64{1}) })
		assert.PanicsWithError(t, want, func() { longs.SliceCap(s, 0, 1) })
		assert.PanicsWithError(t, want, func() { longs.SliceAligned(s, 1, 64) })
		assert.Equal(t, used, scratch.Stats().Used)
	}
	inner := outer.Open("inner")
	refused(`scope: BUG: allocation in scope "outer" of scratch 0.0 while scope "inner", opened in it, is open`, outer, list)
	assert.Equal(t, make([]uint64, 4), list[:4])
	mine := longs.SliceCap(inner, 1, 4)
	require.NoError(t, inner.Close())
	stale := "scope: BUG: allocation in a scope of scratch 0.0 that is closed"
	refused(stale, inner, mine[:0])
	again := outer.Open("again")
	refused(stale, inner, longs.SliceCap(again, 1, 4))
	require.NoError(t, again.Close())

	region := b.Region("level")
	var level scope.Scope
	_, err := budget.Load(context.Background(), region, func(s scope.Scope) (*point, error) {
		level, mine = s, longs.SliceCap(s, 1, 4)
		return nil, nil
	})
	require.NoError(t, err)
	frozen := `scope: BUG: allocation in scope "level" of region level, which is frozen since its load returned`
	refused(frozen, level, mine)
	assert.Equal(t, make([]uint64, 4), mine[:4])

	assert.Error(t, b.Close())
	want := "scope: BUG: use of a scope whose budget is closed"
	assert.PanicsWithError(t, want, func() { longs.Append(outer, nil, 1) })
	assert.PanicsWithError(t, want, func() { longs.Append(level, nil, 1) })
}
