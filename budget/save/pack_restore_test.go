package save_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/step"
)

func (p *packing) header() *arena_c.Heap { return *(**arena_c.Heap)(unsafe.Pointer(&p.heap)) }

// word returns a word of the heap, in a header or a block.
func (p *packing) word(at uint64) *uint64 {
	word := unsafe.Add(unsafe.Pointer(p.header()), at)
	arena_c.Unpoison(word, 8)
	return (*uint64)(word)
}

// holdsOnly requires that the heap has the live blocks, and that it refuses each other address.
func (p *packing) holdsOnly(t *testing.T) {
	p.check(t)
	h := p.header()
	_, code := h.Walk(nil)
	require.Equal(t, arena_c.OK, code)
	require.LessOrEqual(t, p.heap.LargestFree(), p.heap.Stats().Free)
	live := map[uint64]bool{}
	for _, x := range p.live {
		live[uint64(x.offset)] = true
	}
	for at := h.First; at <= h.End+arena_c.HeapAlign; at += 16 {
		block := unsafe.Add(unsafe.Pointer(h), at)
		_, err := p.heap.SizeOf(block)
		require.Equal(t, live[at], err == nil, "the address at %#x", at)
		if err != nil {
			require.Error(t, p.heap.Free(block))
		}
	}
	p.check(t)
}

const smallHeap = 16 << 10

// TestPackedRestore goes to any snapshot of the ring, older or newer, over parked blocks, merged
// ones, a reserve and resets. The heap then has the blocks of that tick and refuses each other
// address.
func TestPackedRestore(t *testing.T) {
	p, r := newPackings(t, nil, packedHeap{100, smallHeap, smallHeap})[0], rand.New(rand.NewPCG(1, 2))
	kept, sums := map[uint64][]packedBlock{}, map[uint64]uint64{}
	number, resets := uint64(0), 0
	take := func() {
		number++
		require.NoError(t, p.ring.Take(number))
		kept[number], sums[number] = slices.Clone(p.live), hash(t, p.ring, number)
	}
	for range step.Pick(60, 300, 300) {
		for range r.IntN(40) {
			p.step(t, r)
		}
		switch r.IntN(6) {
		case 0:
			p.heap.Reset()
			p.live = nil
			resets++
		case 1:
			p.heap.Flush()
		case 2:
			p.heap.Reserve(r.Uint64N(smallHeap))
		case 3:
			p.heap.Phase()
		}
		if r.IntN(2) == 0 {
			take()
		}
		for range r.IntN(3) {
			to := number - r.Uint64N(4)
			if !p.ring.Has(to) {
				continue
			}
			require.NoError(t, p.ring.Restore(background, to))
			p.live = slices.Clone(kept[to])
			p.holdsOnly(t)
			number++
			require.NoError(t, p.ring.Take(number))
			require.Equal(t, sums[to], hash(t, p.ring, number))
			kept[number], sums[number] = kept[to], sums[to]
		}
	}
	require.NotZero(t, resets)
}

// heldBy returns the hashes of the ring's snapshots, and the bytes of each.
func heldBy(t testing.TB, r *save.Ring) (all []string) {
	for number := range uint64(9) {
		if r.Has(number) {
			pages, err := r.PageHashes(nil, number)
			require.NoError(t, err)
			all = append(all, fmt.Sprint(number, r.Used(number), hash(t, r, number), pages))
		}
	}
	return all
}

// TestPackedMost: a Take of more than a heap's most is a full that says how many bytes are enough.
// It changes nothing: the ring still holds the snapshot that Take would have replaced.
func TestPackedMost(t *testing.T) {
	fill := func(p *packing) {
		for range 10 {
			clear(unsafe.Slice((*byte)(p.heap.Alloc(1500, 64)), 1500))
		}
	}
	p := newPacking(t, 10000, nil)
	for n := range uint64(4) {
		require.NoError(t, p.ring.Take(n))
		p.step(t, rand.New(rand.NewPCG(n, 1)))
	}
	before := heldBy(t, p.ring)
	fill(p)
	var needs uint64
	for _, number := range []uint64{0, 2, 8} {
		err := p.ring.Take(number)
		require.ErrorIs(t, err, budget.ErrFull)
		text := err.Error()
		_, err = fmt.Sscanf(text[strings.Index(text, "raise its most to "):], "raise its most to %d or more: ", &needs)
		require.NoError(t, err, text)
		used := p.heap.Stats().Used
		require.Equal(t, fmt.Sprintf("save: Take of snapshot %d of region room of budget %q: the arena.Heap at byte "+
			"0x80 of the state has %d bytes in use and needs %d in a snapshot, and State.Heap permits 10000: raise "+
			"its most to %[4]d or more: upfront: full", number, "match", used, needs), text)
		require.Equal(t, before, heldBy(t, p.ring))
	}
	for most, fits := range map[uint64]bool{needs - 17: false, needs - 16: false, needs - 15: true, needs: true,
		1 << 63: true} {
		q := newPacking(t, most, nil)
		require.NoError(t, q.ring.Take(0))
		for n := range uint64(4) {
			q.step(t, rand.New(rand.NewPCG(n, 1)))
		}
		fill(q)
		err := q.ring.Take(1)
		require.Equal(t, fits, err == nil, "most %d of %d: %v", most, needs, err)
		require.Equal(t, fits, q.ring.Has(1))
		require.Equal(t, fits, q.ring.Used(1) != 0)
		require.LessOrEqual(t, q.ring.Used(1), q.ring.Size())
		require.True(t, q.ring.Has(0))
	}
}

// TestPackedWholeBlock: the size of a heap's block is enough for any use. State.Heap's doc
// has a bound for less.
func TestPackedWholeBlock(t *testing.T) {
	const size = 8 << 10
	for _, block := range []uint64{16, 32, 33, 48, 500, 5000} {
		for gap := range 3 {
			p := newPackings(t, nil, packedHeap{100, size, size})[0]
			for {
				at := p.heap.Alloc(block, 16)
				if at == nil {
					break
				}
				x := unsafe.Slice((*byte)(at), block)
				clear(x)
				p.live = append(p.live, packedBlock{uintptr(at) - p.first(), x, 0})
			}
			if block == 16 {
				for at := p.heap.Alloc(0, 16); at != nil; at = p.heap.Alloc(0, 16) {
					p.live = append(p.live, packedBlock{uintptr(at) - p.first(), unsafe.Slice((*byte)(at), 0), 0})
				}
			}
			if gap != 0 {
				for i := range p.live {
					if i%(gap+1) == 0 {
						require.NoError(t, p.heap.Free(unsafe.Pointer(unsafe.SliceData(p.live[i].bytes))))
					}
				}
				p.live = slices.Collect(func(yield func(packedBlock) bool) {
					for i, x := range p.live {
						if i%(gap+1) != 0 && !yield(x) {
							return
						}
					}
				})
				p.heap.Flush()
			}
			require.NoError(t, p.ring.Take(1), "blocks of %d, every %d freed", block, gap+1)
			p.check(t)
			count, _ := p.header().Walk(nil)
			frees := count - p.heap.Stats().Live
			packed, code := p.header().Pack(nil)
			require.Equal(t, arena_c.Full, code)
			require.LessOrEqual(t, packed, p.heap.Stats().Used+5<<10+48*frees)
		}
	}
}

// TestPackedDamage: after a stray write, Take is an error and changes nothing. Restore puts the
// heap back.
func TestPackedDamage(t *testing.T) {
	p := newPackings(t, nil, packedHeap{100, smallHeap, smallHeap})[0]
	r := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		p.step(t, r)
	}
	require.NoError(t, p.ring.Take(1))
	before, kept := heldBy(t, p.ring), slices.Clone(p.live)
	h := p.header()
	var headers []uint64
	ranges := make([]arena_c.Block, 1000)
	count, code := h.Walk(ranges)
	require.Equal(t, arena_c.OK, code)
	for _, x := range ranges[:count] {
		headers = append(headers, x.Offset, x.Offset+8)
	}
	headers = append(headers, h.End, h.End+8)
	first := func(of uintptr) uint64 { return uint64(of) }
	words := append(headers, first(unsafe.Offsetof(h.First)), first(unsafe.Offsetof(h.End)),
		first(unsafe.Offsetof(h.Lists)), first(unsafe.Offsetof(h.Plain)), first(unsafe.Offsetof(h.Epoch)))
	for _, at := range words {
		for _, value := range []uint64{0, 1 << 63, math.MaxUint64, *p.word(at) ^ 1<<5, *p.word(at) + 16, r.Uint64()} {
			was := *p.word(at)
			if *p.word(at) = value; value == was || at == first(unsafe.Offsetof(h.Lists)) && value != 0 {
				continue
			}
			err := p.ring.Take(2)
			require.ErrorContains(t, err, "save: Take of snapshot 2 of region room of budget \"match\": the ",
				"word at %#x is %#x", at, value)
			says := "the arena.Heap at byte 0x80 of the state is damaged: a header of a block was overwritten"
			if fixed := uint64(unsafe.Sizeof(*h)); at < fixed && at != first(unsafe.Offsetof(h.Epoch)) &&
				at != first(unsafe.Offsetof(h.Lists)) {
				says = "the words of the arena.Heap at byte 0x80 of the state aren't those of the heap that " +
					"State.Heap named"
			}
			require.ErrorContains(t, err, says, "word at %#x is %#x", at, value)
			require.False(t, p.ring.Has(2))
			require.Equal(t, before, heldBy(t, p.ring))
			require.NoError(t, p.ring.Restore(background, 1))
			p.live = slices.Clone(kept)
			p.check(t)
			for range 5 { // play
				p.step(t, r)
			}
			require.NoError(t, p.ring.Restore(background, 1))
			p.live = slices.Clone(kept)
		}
	}
	p.holdsOnly(t)
}

func wordOf(b []byte, at uint64) uint64 { return binary.NativeEndian.Uint64(b[at:]) }

// TestPackedTrim: free pages that went back to the system change no image.
func TestPackedTrim(t *testing.T) {
	p, r := newPacking(t, packedSize, nil), rand.New(rand.NewPCG(1, 2))
	for range 100 {
		p.step(t, r)
	}
	p.heap.Flush()
	require.NoError(t, p.ring.Take(1))
	_, err := p.heap.Trim()
	require.NoError(t, err)
	require.NoError(t, p.ring.Take(2))
	require.Equal(t, hash(t, p.ring, 1), hash(t, p.ring, 2))
	kept := slices.Clone(p.live)
	for range 100 {
		p.step(t, r)
	}
	_, err = p.heap.Trim()
	require.NoError(t, err)
	require.NoError(t, p.ring.Restore(background, 1))
	p.live = kept
	p.check(t)
	require.NoError(t, p.ring.Take(3))
	require.Equal(t, hash(t, p.ring, 1), hash(t, p.ring, 3))
}
