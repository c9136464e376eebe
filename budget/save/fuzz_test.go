package save_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/budget/save"
)

// FuzzApply: any bytes as a delta, also after a correct header, make a snapshot that passes, or
// none. Play that goes on from a snapshot harms the game alone.
func FuzzApply(f *testing.F) {
	const good = 1<<64 - 3 // the first of three; another snapshot takes the fourth place
	p := newPond(f, open(f, pondPlan()), "level", 4)
	for n := range uint64(3) {
		require.NoError(f, p.ring.Take(good+n))
		p.step(n)
		delta, err := p.ring.Delta(nil, good, good+n)
		require.NoError(f, err)
		f.Add(delta)
		f.Add(delta[save.DeltaHeader:])
	}
	f.Add([]byte{0, 1, 1})
	f.Add([]byte{200, 1, 100, 1})
	l := newLinked(f)
	for _, at := range []int{l.lamps, l.name, l.first, l.tail, l.up} {
		f.Add(append(binary.AppendUvarint(nil, uint64(at)), 2, 3, 1))
		f.Add(append(binary.AppendUvarint(nil, uint64(at)), 1, 200))
	}
	r, packed := newHostileRooms(f), newHostilePacked(f)
	f.Fuzz(func(t *testing.T, changes []byte) {
		packed.tryDelta(t, changes)
		if _, err := l.ring.Apply(save.Sealed(l.ring, 1, 2, changes)); err == nil {
			l.plays(t, 2)
		}
		r.tryDelta(t, changes)
		for _, delta := range [][]byte{changes, save.Sealed(p.ring, good, 7, changes)} {
			before := holding(t, p, good, good+1, good+2)
			number, err := p.ring.Apply(delta)
			if err != nil {
				require.ErrorContains(t, err, "save: a delta for region level, byte ")
				require.Equal(t, before, holding(t, p, good, good+1, good+2))
				continue
			}
			require.NoError(t, save.Hold(p.ring, number, save.Image(p.ring, number)))
			if number >= good {
				require.NoError(t, save.Hold(p.ring, number, before[number-good]))
			}
		}
	})
}

// FuzzImage: if an image of any bytes passes, play goes on from it, and the pools hold.
func FuzzImage(f *testing.F) {
	h := newHostile(f)
	c := save.ControlOf(h.ring)
	f.Add([]byte{7})
	for _, pool := range c.Pools {
		for _, at := range []int{pool.Numbers, pool.States, pool.Chunks, pool.Chunks - 1} {
			f.Add([]byte{5, byte(at), byte(at >> 8), 1})
		}
	}
	f.Add(bytes.Repeat([]byte{6, byte(c.Words[0]), 0}, 3))
	r, packed := newHostileRooms(f), newHostilePacked(f)
	for _, at := range append(r.headers, packed.place()) {
		f.Add([]byte{1, byte(at + 8), byte((at + 8) >> 8), 16})
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		h.try(t, program)
		packed.try(t, program)
		r.try(t, program)
	})
}

// FuzzReadRooms is FuzzRead for a state with an allocator of each kind and a graph's instances.
// Play goes on from a file that Read takes.
func FuzzReadRooms(f *testing.F) {
	r := newHostileRooms(f)
	file := written(f, r.ring, 1)
	image := len(file) - len(r.good)
	for _, at := range r.headers {
		f.Add(uint32(image+at), []byte{0xff})
		f.Add(uint32(image+at+48), []byte{0xff, 0, 0, 0, 1})
	}
	f.Fuzz(func(t *testing.T, at uint32, change []byte) {
		damaged := bytes.Clone(file)
		copy(damaged[image+int(at)%len(r.good):], change)
		binary.LittleEndian.PutUint64(damaged[24:], 3)
		resum(damaged)
		if number, err := r.ring.Read(bytes.NewReader(damaged)); err == nil {
			require.NoError(t, save.Hold(r.ring, number, save.Image(r.ring, number)))
			r.playOn(t, number)
		}
	})
}

// FuzzReadPacked: a file of a state with packed heaps, with any bytes and a correct sum, is refused
// or is as a ring writes it. Play goes on from it.
func FuzzReadPacked(f *testing.F) {
	h := newHostilePacked(f)
	file, image := written(f, h.ring, 1), save.Image(h.ring, 1)
	fixed := save.Fixed(h.ring)
	heaps, runs := runsOf(image, fixed)
	for _, at := range slices.Concat(heaps, runs[0], runs[1]) {
		f.Add(uint32(at-fixed), []byte{16}, uint32(0))
		f.Add(uint32(at-fixed+8), []byte{0xff, 0xff}, uint32(16))
	}
	f.Fuzz(func(t *testing.T, at uint32, change []byte, short uint32) {
		changed := bytes.Clone(image[:len(image)-int(short)%(len(image)-fixed)])
		if len(changed) != fixed {
			copy(changed[fixed+int(at)%(len(changed)-fixed):], change)
		}
		hostile := withImage(file, len(image), changed)
		binary.LittleEndian.PutUint64(hostile[24:], 3)
		resum(hostile)
		_ = save.Show(io.Discard, bytes.NewReader(hostile))
		if number, err := h.ring.Read(bytes.NewReader(hostile)); err == nil {
			require.Equal(t, changed, save.Image(h.ring, number))
			require.True(t, save.SpareIsClean(h.ring))
			h.playOn(t, number)
		}
		require.NoError(t, readAgain(h.ring, file))
	})
}

// hostilePacked plays from hostile snapshots of a state with two packed heaps.
type hostilePacked struct {
	*packing
	list []*packing
	flat []byte
}

func newHostilePacked(t testing.TB) *hostilePacked {
	list := played(t, packedHeap{100, 4 << 10, 4 << 10}, packedHeap{0, 8 << 10, 8 << 10})
	return &hostilePacked{list[0], list, save.Flat(list[0].ring, 1)}
}

// try is hostile.try.
func (h *hostilePacked) try(t testing.TB, program []byte) {
	flat := bytes.Clone(h.flat)
	for program = program[min(1, len(program)):]; len(program) >= 3; program = program[3:] {
		flat[int(binary.LittleEndian.Uint16(program))%len(flat)] ^= program[2]
	}
	if save.Hold(h.ring, 3, flat) == nil {
		h.playOn(t, 3)
	}
}

func (h *hostilePacked) tryDelta(t testing.TB, changes []byte) {
	if number, err := h.ring.Apply(save.Sealed(h.ring, 1, 3, changes)); err == nil {
		require.True(t, save.SpareIsClean(h.ring))
		h.playOn(t, number)
	}
}

// playOn plays from a snapshot, and restores the earlier state.
func (h *hostilePacked) playOn(t testing.TB, number uint64) {
	require.NoError(t, h.ring.Restore(background, number))
	for _, p := range h.list {
		var live []unsafe.Pointer
		for i := range uint64(20) {
			if at := p.heap.Alloc(i*30, 16); at != nil {
				clear(unsafe.Slice((*byte)(at), i*30))
				live = append(live, at)
			}
			if len(live) > 5 {
				require.NoError(t, p.heap.Free(live[0]))
				live = live[1:]
			}
		}
	}
	require.NoError(t, h.ring.Take(2))
	require.NoError(t, readAgain(h.ring, written(t, h.ring, 2)), "what play leaves passes")
	require.NoError(t, h.ring.Restore(background, 1))
}

// hostileRooms plays from hostile snapshots of a state with an allocator of each kind.
type hostileRooms struct {
	*rooms
	good    []byte
	headers []int // of the allocators, in the image
}

func newHostileRooms(t testing.TB) *hostileRooms {
	h := &hostileRooms{rooms: newRooms(t, 4, nil)}
	for n := range uint64(40) {
		h.step(n * 5)
	}
	require.NoError(t, h.ring.Take(1))
	h.good = save.Image(h.ring, 1)
	first := save.ControlOf(h.ring).From
	for _, block := range h.blocks {
		h.headers = append(h.headers, first+int(arena_c.Place(unsafe.Pointer(&block[0]), unsafe.Pointer(h.root))))
	}
	slices.Sort(h.headers)
	return h
}

// try is hostile.try.
func (h *hostileRooms) try(t testing.TB, program []byte) {
	image := bytes.Clone(h.good)
	for program = program[min(1, len(program)):]; len(program) >= 3; program = program[3:] {
		image[int(binary.LittleEndian.Uint16(program))%len(image)] ^= program[2]
	}
	if save.Hold(h.ring, 3, image) == nil {
		h.playOn(t, 3)
	}
}

func (h *hostileRooms) tryDelta(t testing.TB, changes []byte) {
	if number, err := h.ring.Apply(save.Sealed(h.ring, 1, 3, changes)); err == nil {
		h.playOn(t, number)
	}
}

// playOn plays from a snapshot, and restores the earlier state.
func (h *hostileRooms) playOn(t testing.TB, number uint64) {
	require.NoError(t, h.ring.Restore(t.Context(), number))
	for n := range uint64(20) {
		h.step(n)
	}
	require.NoError(t, h.ring.Take(2))
	require.NoError(t, save.Hold(h.ring, 3, save.Image(h.ring, 2)), "what play leaves passes")
	require.NoError(t, h.ring.Restore(t.Context(), 1))
}

// FuzzContainers: if an image with any bytes in its containers passes, play goes on from it, stays
// in the containers' bytes, and leaves a state that passes.
func FuzzContainers(f *testing.F) {
	x := newShelf(f, open(f, pondPlan()), 4)
	r := rand.New(rand.NewPCG(5, 5))
	h := newHeld()
	for range 200 {
		x.step(f, r, &h)
	}
	require.NoError(f, x.ring.Take(1))
	good := save.Image(x.ring, 1)
	for _, t := range save.Tenants(x.ring) {
		for _, at := range []int{t[0], t[0] + 16, t[0] + 24, t[1] - 4} {
			f.Add([]byte{byte(at), byte(at >> 8), 1})
		}
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		image := bytes.Clone(good)
		for ; len(program) >= 3; program = program[3:] {
			image[int(binary.LittleEndian.Uint16(program))%len(image)] ^= program[2]
		}
		if save.Hold(x.ring, 2, image) != nil {
			return
		}
		require.NoError(t, x.ring.Restore(t.Context(), 2))
		x.survives(t, rand.New(rand.NewPCG(1, 2)))
	})
}
