package conformance

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// openBuddy's check walks, and compares every block and every count with the model.
func openBuddy(smallest uint64) opener {
	return func(block []byte) (machine, model, error) {
		a, err := arena.NewBuddy(block, smallest)
		if err != nil {
			return machine{}, nil, err
		}
		start, end := bounds(block)
		m, b := newBuddyModel(start, end, smallest), (*arena_c.Buddy)(at(block))
		b.SetPlain()
		walked := make([]arena_c.Block, uint64(len(block))/smallest)
		check := func() error {
			pieces := m.pieces()
			count, code := b.Walk(walked)
			if code != arena_c.OK || count != uint64(len(pieces)) {
				return fmt.Errorf("the walk says %v of %d blocks, want %d", code, count,
					len(pieces))
			}
			for i, p := range pieces {
				want := arena_c.Block{Offset: p.at - start, Size: p.size}
				if p.live {
					want.Live = 1
				}
				if walked[i] != want {
					return fmt.Errorf("block %d is %+v, want %+v", i, walked[i], want)
				}
			}
			have, want := [8]uint64{b.Used, b.Peak, b.Live, b.Given, b.Asked, b.Failed, b.Scattered,
				b.Largest()},
				[8]uint64{m.used, m.peak, uint64(len(m.lives)), m.given, m.asked, m.failed,
					m.scattered, m.largest()}
			if have != want {
				return fmt.Errorf("used, peak, live, given, asked, failed, scattered, largest are %d, want %d",
					have, want)
			}
			return nil
		}
		return machine{alloc: a.Alloc, release: a.Free, reset: a.Reset, resize: a.Realloc,
			check: check}, m, nil
	}
}

func FuzzBuddy(f *testing.F) { fuzz(f, openBuddy(64), 4096) }

// wrongBuddy uses a model with a bug as the machine.
func wrongBuddy(bug string) opener {
	return func(block []byte) (machine, model, error) {
		start, end := bounds(block)
		wrong := newBuddyModel(start, end, 64)
		wrong.wrong = bug
		return modelled(block, wrong, func(at uint64) uint64 { return wrong.lives[wrong.index(at)].size }),
			newBuddyModel(start, end, 64), nil
	}
}

// TestPagesOf64KiB: of 256 pages in 16 MiB, a heap has 127 at multiples of their size, and a buddy
// all but the one with its header.
func TestPagesOf64KiB(t *testing.T) {
	const page, all = 64 << 10, 16 << 20
	fill := func(a arena.Allocator) (n int) {
		for p := a.Alloc(page, page); p != nil; p = a.Alloc(page, page) {
			require.Zero(t, uintptr(p)%page)
			n++
		}
		return n
	}
	// In the last case the header is before a page.
	for place, least := range map[int]int{0: 252, 64: 252, 3 * page: 252, page - 512: 251} {
		block := heapBlock(t, all+arena_c.AlignMax, arena_c.AlignMax)[place:][:all]
		buddy, err := arena.NewBuddy(block, page)
		require.NoError(t, err)
		(*arena_c.Buddy)(at(block)).SetPlain()
		assert.Equal(t, 255, fill(buddy), "at %d", place)
		buddy, err = arena.NewBuddy(block, 64) // its table takes 4 pages
		require.NoError(t, err)
		(*arena_c.Buddy)(at(block)).SetPlain()
		assert.Equal(t, least, fill(buddy), "at %d", place)
	}
	heap, err := arena.NewHeap(heapBlock(t, all, arena_c.AlignMax), 0)
	require.NoError(t, err)
	assert.Equal(t, 127, fill(heap))
}

// TestBuddyOffsets runs a random program on two blocks at equal addresses modulo 1 MiB. In every
// build and on every target the offsets are the recorded ones.
func TestBuddyOffsets(t *testing.T) {
	const size = 300_000
	memory := heapBlock(t, 3*arena_c.AlignMax, arena_c.AlignMax)
	for _, from := range []int{1 << 14, 1<<14 + arena_c.AlignMax} {
		b, err := arena.NewBuddy(memory[from:][:size], 256)
		require.NoError(t, err)
		(*arena_c.Buddy)(at(memory[from:])).SetPlain()
		p := pinning{t: t}
		hash := fnv.New64a()
		live := make([]unsafe.Pointer, 100)
		for range 5000 {
			i := p.random(len(live))
			if p.random(3) == 0 {
				require.NoError(t, b.Free(live[i]))
				live[i] = nil
				continue
			}
			q, err := b.Realloc(live[i], uint64(p.random(256<<p.random(8))))
			require.NoError(t, err)
			if q != nil {
				live[i] = q
				_ = binary.Write(hash, binary.LittleEndian,
					address(q)-address(at(memory))-uint64(from))
			}
		}
		s := b.Stats()
		assert.Equal(t, []uint64{0xf19cff02c67978d, 236544, 449, 449},
			[]uint64{hash.Sum64(), s.Peak, s.Failed, s.Scattered})
	}
}
