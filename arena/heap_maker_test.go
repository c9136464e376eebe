package arena_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

type odd struct{ A, B, C int16 }

var (
	odds   = arena.HeapOf[odd](nil)
	octets = arena.HeapOf[byte](nil)
)

func makers(t *testing.T, size int) map[string]arena.Reallocator {
	parking, err := arena.NewHeap(arena.NewBlock(size, 64), 8)
	require.NoError(t, err)
	buddy, err := arena.NewBuddy(arena.NewBlock(size, 1<<16), 64)
	require.NoError(t, err)
	shared, err := newHeap(t, size).Shared()
	require.NoError(t, err)
	pages, err := buddy.Shared()
	require.NoError(t, err)
	return map[string]arena.Reallocator{"heap": newHeap(t, size), "parking heap": parking, "buddy": pages,
		"shared": shared, "proxy": arena.NewProxy("a", newHeap(t, size))}
}

// TestSlicesAreGosSlices makes, grows, cuts and frees slices at random, in parallel with Go slices,
// on heaps that are often full.
func TestSlicesAreGosSlices(t *testing.T) {
	for name, h := range makers(t, 16<<10) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(41, 5))
			type pair struct{ has, want []odd }
			var live []pair
			fulls := 0
			for step := range 6000 {
				switch at := rng.IntN(len(live) + 1); {
				case at == len(live) || rng.IntN(4) == 0:
					n := rng.IntN(1 + rng.IntN(300))
					has := odds.Slice(h, n)
					if has == nil {
						fulls++
						break
					}
					require.Len(t, has, n)
					require.Equal(t, n, cap(has))
					live = append(live, pair{has, make([]odd, n)})
				case rng.IntN(3) == 0:
					require.NoError(t, odds.DeleteSlice(h, live[at].has))
					live = slices.Delete(live, at, at+1)
				default:
					p := &live[at]
					used := rng.IntN(len(p.has) + 1)
					n := used + rng.IntN(1+rng.IntN(200))
					has, err := odds.Grow(h, p.has[:used], n)
					require.NoError(t, err)
					if has == nil {
						fulls++
						break
					}
					require.Equal(t, n, cap(has))
					p.has, p.want = has, append(slices.Clone(p.want[:used]), make([]odd, n-used)...)
				}
				for i := range live {
					require.True(t, slices.Equal(live[i].want, live[i].has), "step %d: slice %d", step, i)
					if n := len(live[i].has); n != 0 {
						x, at := odd{int16(step), int16(i), int16(rng.Int())}, rng.IntN(n)
						live[i].has[at], live[i].want[at] = x, x
					}
				}
			}
			assert.NotZero(t, fulls, "a heap that is never full shows nothing")
			for _, p := range live {
				require.NoError(t, odds.DeleteSlice(h, p.has))
			}
			if h, ok := h.(arena.Heap); ok {
				assert.Zero(t, h.Stats().Live)
			}
		})
	}
}

// TestSlicesSayWhyNot: a slice that isn't all of a live block is refused without a change.
func TestSlicesSayWhyNot(t *testing.T) {
	h, other := newHeap(t, 8192), newHeap(t, 8192)
	s := odds.Slice(h, 10)
	refuses := func(s []odd, says string) {
		t.Helper()
		assert.ErrorContains(t, odds.DeleteSlice(h, s), says)
		longer, err := odds.Grow(h, s, 2*cap(s))
		assert.ErrorContains(t, err, says)
		assert.Nil(t, longer)
	}
	const cut = " of a []arena_test.odd: the block has 60 bytes, the value 30: the slice was cut, " +
		"or Grow has replaced it"
	refuses(s[:5:5], cut)
	refuses(s[8:], "inside a block, not at its start")
	refuses(make([]odd, 10), "not a block of this arena")
	refuses(odds.Slice(other, 10), "not a block of this arena")
	assert.EqualValues(t, 1, h.Stats().Live)

	odds.Slice(h, 10) // so that s moves
	longer, err := odds.Grow(h, s, 40)
	require.NoError(t, err)
	refuses(s, "freed already")
	cutAgain := longer[:10:10]
	refuses(cutAgain, "the block has 240 bytes, the value 60: the slice was cut, or Grow has replaced it")
	require.NoError(t, odds.DeleteSlice(h, longer[:3]), "the cap says which block")
	refuses(longer, "freed already")

	require.NoError(t, odds.DeleteSlice(h, nil))
	words, most := arena.HeapOf[uint64](nil), math.MaxInt/4+1 // n for which n*8 is 2^64 on 64 bits
	assert.Nil(t, words.Slice(h, most), "full, as what no block has is")
	list := words.Slice(h, 3)
	more, err := words.Grow(h, list, most)
	assert.True(t, more == nil && err == nil, "full is an answer")
	assert.Len(t, list, 3)
	require.NoError(t, words.DeleteSlice(h, list))
	s, err = odds.Grow(h, nil, 2)
	require.NoError(t, err)
	assert.Equal(t, make([]odd, 2), s)
	assert.PanicsWithValue(t, "arena: BUG: HeapMaker.Slice of []arena_test.odd, to -1 elements: give 0 or more",
		func() { odds.Slice(h, -1) })
	assert.PanicsWithValue(t, "arena: BUG: HeapMaker.Grow of []arena_test.odd, to 1 elements: give 2 or more",
		func() { _, _ = odds.Grow(h, s, 1) })
}

// TestASliceTakesWhatAppendGives: Grow keeps the elements that append wrote, and zeros the room
// after them.
func TestASliceTakesWhatAppendGives(t *testing.T) {
	h := newHeap(t, 8192)
	list := octets.Slice(h, 4)[:0]
	for i := range byte(100) {
		if len(list) == cap(list) {
			longer, err := octets.Grow(h, list, 2*cap(list))
			require.NoError(t, err)
			list = longer[:len(list)]
		}
		list = append(list, i+1)
	}
	for i, x := range list {
		require.EqualValues(t, i+1, x)
	}
	all := list[:cap(list)]
	all[120] = 7
	longer, err := octets.Grow(h, list, 125)
	require.NoError(t, err)
	assert.Zero(t, longer[120], "behind len is nobody's")
	short, err := octets.Grow(h, longer[:100], 100)
	require.NoError(t, err)
	assert.Equal(t, list[:100], short)
	size, err := h.SizeOf(unsafe.Pointer(&short[0]))
	require.NoError(t, err)
	assert.EqualValues(t, 100, size)
}

func TestSlicesOfNoBytes(t *testing.T) {
	h := newHeap(t, 4096)
	none := arena.HeapOf[struct{}](nil)
	s, e := none.Slice(h, 5), odds.Slice(h, 0)
	assert.Len(t, s, 5)
	assert.NotNil(t, e)
	assert.EqualValues(t, 2, h.Stats().Live)
	e, err := odds.Grow(h, e, 2)
	require.NoError(t, err)
	assert.Equal(t, make([]odd, 2), e)
	s, err = none.Grow(h, s, 9)
	require.NoError(t, err)
	require.NoError(t, none.DeleteSlice(h, s))
	require.NoError(t, odds.DeleteSlice(h, e))
	assert.Zero(t, h.Stats().Live)
}

// TestDeleteSliceFinalizesEach: each element is finalized once, the last one first, even if a
// finalizer panics. Grow moves elements without finalizing.
func TestDeleteSliceFinalizesEach(t *testing.T) {
	h := newHeap(t, 4096)
	fill := func() []frog {
		s := closer.Slice(h, 2)
		closer.Slice(h, 1) // so that s moves
		s, err := closer.Grow(h, s, 3)
		require.NoError(t, err)
		for i := range s {
			s[i].Size = uint64(i + 1)
		}
		return s
	}
	closed = nil
	s := fill()
	require.NoError(t, closer.DeleteSlice(h, s))
	assert.Equal(t, []uint64{3, 2, 1}, closed)
	require.Error(t, closer.DeleteSlice(h, s))
	assert.Len(t, closed, 3, "and once")
	s = fill()
	s[1].Size = 0
	assert.ErrorContains(t, closer.DeleteSlice(h, s), "nothing to close")
	assert.Equal(t, []uint64{3, 2, 1, 3, 0, 1}, closed)

	var ran []int
	panicking := arena.HeapOf(func(x *int64) error {
		ran = append(ran, int(*x))
		if *x%2 == 1 {
			panic("no")
		}
		return errors.ErrUnsupported
	})
	live := h.Stats().Live
	numbers := panicking.Slice(h, 5)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	assert.PanicsWithValue(t, "no", func() { _ = panicking.DeleteSlice(h, numbers) })
	assert.Equal(t, []int{4, 3, 2, 1, 0}, ran)
	assert.Equal(t, live, h.Stats().Live, "freed all the same")
}

func TestStringsOnAHeap(t *testing.T) {
	block := arena.NewBlock(4096, 64)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), 4096) })
	h, err := arena.NewHeap(block, 0)
	require.NoError(t, err)
	keepHeap(block)
	base := arena.BaseOf(block)
	text := []byte("ada")
	name, ok := arena.NewString(h, base, text)
	require.True(t, ok)
	text[0] = 'x'
	assert.Equal(t, "ada", name.Get(base), "a copy")
	same, ok := arena.NewString(h, base, "a longer one")
	require.True(t, ok)
	assert.Equal(t, "a longer one", same.Get(base))
	assert.EqualValues(t, 2, h.Stats().Live)
	empty, ok := arena.NewString(h, base, "")
	assert.True(t, ok)
	require.NoError(t, arena.DeleteString(h, base, empty))
	require.NoError(t, arena.DeleteString(h, base, name))
	assert.EqualError(t, arena.DeleteString(h, base, name),
		"arena: HeapMaker.DeleteSlice of a []uint8: arena: BUG: Heap.SizeOf: freed already")
	assert.ErrorContains(t, arena.DeleteString(h, base, arena.StringOf(base, block[4000:4010])), "not at its start")
	assert.EqualError(t, arena.DeleteString(h, arena.BaseOf(block[:8]), same),
		"arena: BUG: DeleteString of 12 bytes that aren't in the base of 8 bytes")
	require.NoError(t, arena.DeleteString(h, base, same))
	assert.Zero(t, h.Stats().Live)
	_, ok = arena.NewString(h, base, make([]byte, 5000))
	assert.False(t, ok, "full")
	assert.Panics(t, func() { arena.NewString(newHeap(t, 1024), base, "elsewhere") })
}

// TestHeapWordsUseNoGoHeap: a game calls New, Slice and Grow in each frame.
func TestHeapWordsUseNoGoHeap(t *testing.T) {
	if arena_c.Checked || arena_c.Race {
		t.Skip("other builds keep the lines that made each block: go test ./arena runs it")
	}
	block := arena.NewBlock(4096, 64)
	h, err := arena.NewHeap(block, 8)
	require.NoError(t, err)
	base, text := arena.BaseOf(block), []byte("ada")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		s := odds.Slice(h, 10)
		s, _ = odds.Grow(h, s, 100)
		name, _ := arena.NewString(h, base, text)
		if odds.DeleteSlice(h, s) != nil || arena.DeleteString(h, base, name) != nil {
			panic("refused")
		}
	}))
}

// TestOneCall: a maker without a finalizer frees and resizes a block in one call into C.
func TestOneCall(t *testing.T) {
	if arena_c.Race {
		t.Skip("a race build reads the size of a block first: go test ./arena runs it")
	}
	words, all := arena.HeapOf[uint64](nil), makers(t, 1<<16)
	delete(all, "proxy")
	buddy, err := arena.NewBuddy(arena.NewBlock(1<<17, 1<<16), 64)
	require.NoError(t, err)
	all["buddy without a lock"] = buddy
	for name, h := range all {
		// of Grow, DeleteSlice and Delete; the least, because other tests call C as well
		calls := [3]int64{1 << 60, 1 << 60, 1 << 60}
		for range 100 {
			list, one := octets.Slice(h, 100), words.New(h)
			from := runtime.NumCgoCall()
			list, err := octets.Grow(h, list, 200)
			grown := runtime.NumCgoCall()
			err = errors.Join(err, octets.DeleteSlice(h, list))
			deleted := runtime.NumCgoCall()
			err = errors.Join(err, words.Delete(h, one))
			require.NoError(t, err)
			for i, n := range []int64{grown - from, deleted - grown, runtime.NumCgoCall() - deleted} {
				calls[i] = min(calls[i], n)
			}
		}
		assert.Equal(t, [3]int64{1, 1, 1}, calls, name)
	}
}
