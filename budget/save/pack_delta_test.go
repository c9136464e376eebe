package save_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget"
	"github.com/upfront-mem/upfront/budget/save"
	"github.com/upfront-mem/upfront/tests/step"
)

// place returns the offset of the heap in a flat image.
func (p *packing) place() int {
	return save.ControlOf(p.ring).From + p.state.OffsetOf(unsafe.Pointer(p.header()))
}

// zeroed returns a copy of a flat image of a program whose heap isn't packed, with zeros in the
// bytes of the heap that have no meaning.
func (p *packing) zeroed(t *testing.T, image []byte) []byte {
	image = slices.Clone(image)
	heap := image[p.place():]
	ranges := make([]arena_c.Block, 10000)
	count, code := p.header().Walk(ranges)
	require.Equal(t, arena_c.OK, code)
	for _, x := range ranges[:count] {
		block := heap[x.Offset:][:x.Size]
		switch x.Live {
		case 1:
			clear(block[16+x.Asked:])
		case arena_c.HeapParked:
			clear(block[24:])
		default:
			clear(block[32:])
		}
	}
	return image
}

// TestPackedPages: a program that goes back has the page hashes of a flat image with zeros in free
// bytes. One that copies its heap whole and never goes back makes that image. Deltas between any
// two snapshots make the same ones in it.
func TestPackedPages(t *testing.T) {
	for _, before := range []uint64{0, 5000} {
		heaps := []packedHeap{{before, 20 << 10, 20 << 10}, {0, 64 << 10, 50 << 10}, {4000, 8 << 10, 8 << 10}}
		whole := slices.Clone(heaps)
		for i := range whole {
			whole[i].most = 0
		}
		a, b, far := newPackings(t, nil, heaps...), newPackings(t, nil, whole...), newPackings(t, nil, heaps...)
		r, other := rand.New(rand.NewPCG(1, before)), rand.New(rand.NewPCG(3, 4))
		deltas := 0
		for tick := range uint64(step.Pick(20, 100, 100)) {
			seed := r.Uint64()
			for _, program := range [][]*packing{a, b} {
				in := rand.New(rand.NewPCG(seed, 1))
				for range in.IntN(20) {
					program[in.IntN(len(program))].step(t, in)
				}
				require.NoError(t, program[0].ring.Take(tick))
			}
			kept := [][]packedBlock{slices.Clone(a[0].live), slices.Clone(a[1].live), slices.Clone(a[2].live)}
			for range other.IntN(30) {
				a[other.IntN(3)].step(t, other)
			}
			require.NoError(t, a[0].ring.Restore(background, tick))
			require.NoError(t, a[0].ring.Take(tick))
			for i := range a {
				a[i].live = kept[i]
				a[i].check(t)
			}
			image := save.Image(b[0].ring, tick)
			for _, p := range b {
				image = p.zeroed(t, image)
			}
			require.Equal(t, image, save.Flat(a[0].ring, tick))
			var sums []uint32
			for at := 0; at < len(image); at += save.PageSize {
				sums = append(sums, save.SumOf(image[at:min(at+save.PageSize, len(image))]))
			}
			pages, err := a[0].ring.PageHashes([]uint32{7}, tick)
			require.NoError(t, err)
			require.Equal(t, append([]uint32{7}, sums...), pages)

			base, number := tick-r.Uint64N(min(tick+1, 4)), tick-r.Uint64N(min(tick+1, 4))
			delta, err := a[0].ring.Delta([]byte("abc"), base, number)
			require.NoError(t, err)
			require.Equal(t, "abc", string(delta[:3]))
			if tick == 0 {
				require.NoError(t, save.Hold(far[0].ring, 0, image))
			}
			if far[0].ring.Has(base) {
				got, err := far[0].ring.Apply(delta[3:])
				require.NoError(t, err)
				require.Equal(t, number, got)
				require.True(t, save.SpareIsClean(far[0].ring))
				deltas++
			} else {
				_, err := far[0].ring.Apply(delta[3:])
				require.ErrorContains(t, err,
					"byte 24: its base: save: region room: the ring of 4 doesn't hold snapshot")
				require.NoError(t, readAgain(far[0].ring, written(t, a[0].ring, number)))
			}
			require.Equal(t, hash(t, a[0].ring, number), hash(t, far[0].ring, number))
			require.Equal(t, save.Image(a[0].ring, number), save.Image(far[0].ring, number))
			require.Equal(t, a[0].ring.Used(number), far[0].ring.Used(number))
			require.Equal(t, written(t, a[0].ring, number), written(t, far[0].ring, number))
			require.NoError(t, far[0].ring.Restore(background, number))
			require.NoError(t, far[0].ring.Take(number))
			require.Equal(t, hash(t, a[0].ring, number), hash(t, far[0].ring, number))
		}
		assert.Greater(t, deltas, 3)
	}
}

// TestPackedDeltaSize: a delta follows the changes, not the heap's size or its free bytes.
func TestPackedDeltaSize(t *testing.T) {
	p := newPackings(t, nil, packedHeap{100, 1 << 20, 1 << 20})[0]
	var blocks []*[100]byte
	for range 1000 {
		blocks = append(blocks, (*[100]byte)(p.heap.Alloc(100, 16)))
		clear(blocks[len(blocks)-1][:])
	}
	require.NoError(t, p.ring.Take(0))
	for _, changes := range []int{0, 1, 10, 500} {
		for i := range changes {
			blocks[i][7] ^= 0xFF
		}
		require.NoError(t, p.ring.Take(1))
		delta, err := p.ring.Delta(nil, 0, 1)
		require.NoError(t, err)
		require.LessOrEqual(t, len(delta), save.DeltaHeader+4*changes)
		require.GreaterOrEqual(t, len(delta), save.DeltaHeader+changes)
		require.NoError(t, p.ring.Restore(background, 0))
	}
	large := unsafe.Slice((*byte)(p.heap.Alloc(300_000, 16)), 300_000)
	for i := range large {
		large[i] = byte(i) | 1
	}
	require.NoError(t, p.ring.Take(1))
	require.NoError(t, p.heap.Free(unsafe.Pointer(&large[0])))
	require.NoError(t, p.ring.Take(2))
	for _, test := range []struct {
		from, to    uint64
		least, most int
	}{{0, 1, 300_000, 300_400}, {1, 0, 300_000, 300_400}, {0, 2, save.DeltaHeader, 700}, {2, 2, 64, 64}} {
		delta, err := p.ring.Delta(nil, test.from, test.to)
		require.NoError(t, err)
		assert.True(t, len(delta) >= test.least && len(delta) <= test.most, "%v: %d bytes", test, len(delta))
	}
}

// TestPackedDamagedDeltas: Apply refuses a damaged delta at each byte and names the byte. Then a
// good one still applies.
func TestPackedDamagedDeltas(t *testing.T) {
	a, b := newPackings(t, nil, packedHeap{100, 20 << 10, 20 << 10})[0],
		newPackings(t, nil, packedHeap{100, 20 << 10, 20 << 10})[0]
	for _, p := range []*packing{a, b} {
		r := rand.New(rand.NewPCG(1, 2))
		for n := range uint64(2) {
			for range 40 {
				p.step(t, r)
			}
			require.NoError(t, p.ring.Take(n))
		}
	}
	delta, err := a.ring.Delta(nil, 0, 1)
	require.NoError(t, err)
	before := heldBy(t, b.ring)
	r := rand.New(rand.NewPCG(3, 4))
	for at := 0; at < len(delta); at += 1 + at/100 {
		for _, damage := range []func(d []byte) []byte{
			func(d []byte) []byte { d[at] ^= 1 << r.IntN(8); return d },
			func(d []byte) []byte { d[at] += byte(1 + r.IntN(255)); return d },
			func(d []byte) []byte { return d[:at] },
			func(d []byte) []byte { return slices.Insert(d, at, byte(r.Uint32())) },
		} {
			_, err := b.ring.Apply(damage(slices.Clone(delta)))
			require.ErrorContains(t, err, "save: a delta for region room, byte ", "byte %d", at)
			require.Equal(t, before, heldBy(t, b.ring))
			if at%7 == 0 {
				number, err := b.ring.Apply(delta)
				require.NoError(t, err)
				require.EqualValues(t, 1, number)
				require.True(t, save.SpareIsClean(b.ring))
			}
		}
	}
}

// change returns changes of a delta that add a number to each word at a position, in order.
func changesAt(flat []byte, words map[int]uint64) (changes []byte) {
	at := 0
	for _, to := range slices.Sorted(maps.Keys(words)) {
		changes = binary.AppendUvarint(changes, uint64(to-at))
		changes = binary.AppendUvarint(changes, 8)
		changes = binary.LittleEndian.AppendUint64(changes, words[to]^binary.LittleEndian.Uint64(flat[to:]))
		at = to + 8
	}
	return changes
}

// TestPackedHostileDeltas: a delta with a correct hash that writes into free bytes is refused.
// Nothing of it is in a later snapshot.
func TestPackedHostileDeltas(t *testing.T) {
	p := newPackings(t, nil, packedHeap{100, 20 << 10, 20 << 10})[0]
	r := rand.New(rand.NewPCG(1, 2))
	for n := range uint64(2) {
		for range 40 {
			p.step(t, r)
		}
		require.NoError(t, p.ring.Take(n))
	}
	good, err := p.ring.Delta(nil, 0, 1)
	require.NoError(t, err)
	flat := save.Flat(p.ring, 0)
	require.NoError(t, p.ring.Restore(background, 0))
	heap, h := p.place(), p.header()
	ranges := make([]arena_c.Block, 1000)
	count, _ := h.Walk(ranges)
	passed, refused := 0, 0
	for _, x := range ranges[:count] {
		for at := x.Offset; at < x.Offset+x.Size; at += 8 {
			_, err := p.ring.Apply(good)
			require.NoError(t, err)
			changes := changesAt(flat, map[int]uint64{heap + int(at): r.Uint64() | 1})
			_, err = p.ring.Apply(save.Sealed(p.ring, 0, 2, changes))
			require.True(t, save.SpareIsClean(p.ring))
			isHeader, isFree := at < x.Offset+16, x.Live != 1 && at >= x.Offset+32
			switch {
			case isHeader:
				require.Error(t, err, "a header at %#x", at)
			case isFree:
				require.ErrorContains(t, err,
					"save: a delta for region room, byte 64: it is damaged: it leaves bytes in the free part of a heap")
				refused++
			}
			if err == nil {
				passed++
				require.NoError(t, p.ring.Restore(background, 2))
				_, code := h.Walk(nil)
				require.Equal(t, arena_c.OK, code)
			}
			_, err = p.ring.Apply(good)
			require.NoError(t, err, "after a change at %#x", at)
		}
	}
	assert.Greater(t, passed, 100)
	assert.Greater(t, refused, 100)
	// a delta that makes a block free and leaves its bytes
	require.NoError(t, p.ring.Restore(background, 0))
	big := unsafe.Slice((*byte)(p.heap.Alloc(3000, 16)), 3000)
	for i := range big {
		big[i] = 1
	}
	require.NoError(t, p.ring.Take(2))
	require.NoError(t, p.heap.Free(unsafe.Pointer(&big[0])))
	require.NoError(t, p.ring.Take(3))
	frees, err := p.ring.Delta(nil, 2, 3)
	require.NoError(t, err)
	_, err = p.ring.Apply(frees)
	require.NoError(t, err)
	flat, freed := save.Flat(p.ring, 2), save.Flat(p.ring, 3)
	words, block := map[int]uint64{}, heap+int(uintptr(unsafe.Pointer(&big[0]))-p.first())
	for at := 0; at < len(flat); at += 8 {
		left := at >= block+16 && at < block+3000 // after its links
		if !left && wordOf(flat, uint64(at)) != wordOf(freed, uint64(at)) {
			words[at] = wordOf(freed, uint64(at))
		}
	}
	_, err = p.ring.Apply(save.Sealed(p.ring, 2, 4, changesAt(flat, words)))
	require.ErrorContains(t, err, "it leaves bytes in the free part of a heap")
	_, err = p.ring.Apply(frees)
	require.NoError(t, err)
	require.True(t, save.SpareIsClean(p.ring))
}

// TestPackedAllocations: no call of play makes a Go allocation.
func TestPackedAllocations(t *testing.T) {
	for _, tracked := range []bool{false, true} {
		p := newPackings(t, func(r *budget.RegionPlan) { r.Track = tracked }, packedHeap{100, 256 << 10, 256 << 10},
			packedHeap{100, 64 << 10, 64 << 10})
		r := rand.New(rand.NewPCG(1, 2))
		for _, x := range p {
			for range 200 {
				x.step(t, r)
			}
		}
		ring := p[0].ring
		require.NoError(t, ring.Take(0))
		delta, pages := make([]byte, 0, 1<<20), make([]uint32, 0, 1<<10)
		n := uint64(0)
		allocs := testing.AllocsPerRun(20, func() {
			n++
			p[0].live[0].bytes[0]++
			p[0].root.Tick++
			var errs [6]error
			errs[0] = ring.Take(n)
			_, errs[1] = ring.Hash(n)
			pages, errs[2] = ring.PageHashes(pages[:0], n)
			delta, errs[3] = ring.Delta(delta[:0], n-1, n)
			_, errs[4] = ring.Apply(delta)
			errs[5] = ring.Restore(background, n)
			for _, err := range errs {
				if err != nil {
					t.Error(err)
				}
			}
		})
		if !arena_c.Race && !arena_c.Asan { // these builds inline less, so more escapes
			assert.Zero(t, allocs)
		}
	}
}
