package conformance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
)

// ringModel is a queue of blocks between two addresses. It keeps no cursor: the place of the next
// block follows from the oldest and the newest.
type ringModel struct {
	start, end uint64
	blocks     [][3]uint64 // its word, its first byte, its size; the oldest first
}

// pieces returns the free ranges, the one to try first in front.
func (m *ringModel) pieces() [][2]uint64 {
	n := len(m.blocks)
	if n == 0 {
		return [][2]uint64{{m.start, m.end}}
	}
	oldest, newest := m.blocks[0], m.blocks[n-1]
	after := newest[1] + newest[2]
	if newest[0] < oldest[0] {
		return [][2]uint64{{after, oldest[0]}}
	}
	return [][2]uint64{{after, m.end}, {m.start, oldest[0]}}
}

func (m *ringModel) alloc(size, align uint64) (at, got uint64, a answer) {
	if badAlign(align) {
		return 0, 0, refused
	}
	for _, piece := range m.pieces() {
		word := up(piece[0], 8)
		if at = up(word+8, max(align, 8)); at <= piece[1] && size <= piece[1]-at {
			m.blocks = append(m.blocks, [3]uint64{word, at, size})
			return at, size, given
		}
	}
	return 0, 0, full
}

func (m *ringModel) release(at uint64) bool {
	if len(m.blocks) == 0 || m.blocks[0][1] != at {
		return false
	}
	m.blocks = m.blocks[1:]
	return true
}

func (m *ringModel) live(at, size uint64) bool {
	for _, b := range m.blocks {
		if b[1] == at && b[2] == size {
			return true
		}
	}
	return false
}

func (m *ringModel) room() (most uint64) {
	for _, piece := range m.pieces() {
		if at := up(piece[0], 8) + 8; at <= piece[1] {
			most = max(most, piece[1]-at)
		}
	}
	return most
}

// used returns the size less the free bytes; the skipped tail isn't free.
func (m *ringModel) used() uint64 {
	used := m.end - m.start
	for _, piece := range m.pieces() {
		used -= piece[1] - piece[0]
	}
	return used
}

func (m *ringModel) mark() uint64       { return 0 }
func (m *ringModel) rewind(uint64) bool { return false }
func (m *ringModel) reset()             { m.blocks = nil }

// openRing's check compares all results of the ring with the model.
func openRing(block []byte) (machine, model, error) {
	r, err := arena.NewRing(block)
	if err != nil {
		return machine{}, nil, err
	}
	start, end := bounds(block)
	m := &ringModel{start: start + 2*arena_c.LineSize, end: end}
	peak := uint64(0)
	check := func() error {
		p, size := r.Oldest()
		oldest := [2]uint64{address(p), size}
		want := [2]uint64{}
		if len(m.blocks) > 0 {
			want = [2]uint64{m.blocks[0][1], m.blocks[0][2]}
		}
		peak = max(peak, m.used())
		if oldest != want || r.Len() != len(m.blocks) || r.Room() != m.room() || r.Stats().Used != m.used() ||
			r.Stats().Peak != peak {
			return fmt.Errorf("oldest %v, want %v; len %d, room %d, used %d, peak %d; want %d, %d, %d, %d",
				oldest, want, r.Len(), r.Room(), r.Stats().Used, r.Stats().Peak, len(m.blocks), m.room(),
				m.used(), peak)
		}
		return nil
	}
	return machine{fifo: true, alloc: r.Alloc, release: r.Free, reset: r.Reset, check: check}, m, nil
}

func FuzzRing(f *testing.F) { fuzz(f, openRing, 512) }

func TestRingsRefuse(t *testing.T) {
	window := heapBlock(t, 4096, 64)
	for _, block := range [][]byte{nil, {}, window[:64], window[:191], window[8:]} {
		_, err := arena.NewRing(block)
		assert.ErrorContains(t, err, "Ring")
	}
	r, err := arena.NewRing(window)
	require.NoError(t, err)
	a, b := r.Alloc(10, 1), r.Alloc(20, 1)
	assert.EqualError(t, r.Free(nil), "arena: BUG: Ring.Free: bad argument")
	assert.EqualError(t, r.Free(b), "arena: BUG: Ring.Free: out of order: a Ring frees its oldest block first")
	assert.EqualError(t, r.Free(unsafe.Pointer(new(int))), "arena: BUG: Ring.Free: not a block of this arena")
	assert.EqualValues(t, 2, r.Len())
	require.NoError(t, r.Free(a))
	assert.EqualError(t, r.Free(a), "arena: BUG: Ring.Free: not a block of this arena")
	require.NoError(t, r.Free(b))
	assert.EqualError(t, r.Free(b), "arena: BUG: Ring.Free: not a block of this arena")
	assert.Panics(t, func() { r.Alloc(8, 3) })
	assert.EqualValues(t, 4096-128, r.Stats().Size)
}

// TestRingsSourceHadAFault: the scratch allocator of Bitsquid's foundation, which Crown uses,
// checked only that the new cursor isn't in live memory. In this program it returned a block that
// begins before the live memory and ends after it.
func TestRingsSourceHadAFault(t *testing.T) {
	r, err := arena.NewRing(heapBlock(t, 128+1024, 64))
	require.NoError(t, err)
	first, second := r.Alloc(896, 1), r.Alloc(96, 1)
	require.NotNil(t, second)
	require.NoError(t, r.Free(first))
	assert.Nil(t, r.Alloc(996, 1))
	assert.EqualValues(t, 896, r.Room())
}

func TestRingOverwrites(t *testing.T) {
	m := &ringModel{}
	block := heapBlock(t, 128+300, 64)
	r, err := arena.NewRing(block)
	require.NoError(t, err)
	m.start, m.end = bounds(block)
	m.start += 128
	random := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		size, align := random.Uint64N(310), uint64(1)<<random.IntN(5)
		empty := ringModel{start: m.start, end: m.end}
		_, _, fits := empty.alloc(size, align)
		at, _, a := m.alloc(size, align)
		for ; a == full && fits == given; at, _, a = m.alloc(size, align) {
			m.blocks = m.blocks[1:]
		}
		p := r.Overwrite(size, align)
		require.Equal(t, fits == given, p != nil, "what doesn't fit frees nothing")
		if p != nil {
			require.Equal(t, at, address(p))
		}
		require.Equal(t, len(m.blocks), r.Len())
	}
}

func TestRaceBuildsOverwriteWhatARingFrees(t *testing.T) {
	if !arena_c.Race {
		t.Skip("only race builds do: go test -race ./tests/conformance runs it")
	}
	dead := bytes.Repeat([]byte{0xDB}, 100)
	r, err := arena.NewRing(heapBlock(t, 1024, 64))
	require.NoError(t, err)
	for _, end := range []func(p unsafe.Pointer){
		func(p unsafe.Pointer) { require.NoError(t, r.Free(p)) },
		func(unsafe.Pointer) { r.Reset() },
	} {
		p := r.Alloc(100, 16)
		clear(unsafe.Slice((*byte)(p), 100))
		end(p)
		assert.Equal(t, dead, unsafe.Slice((*byte)(p), 100))
	}
}

func TestGoAndCAgreeOnRing(t *testing.T) {
	w := newTwins(t, 2048, 128)
	a, b := arena_c.RingInit(arena_c.RoomOf(arena_c.RoomRing, at(w.a), w.size())),
		arena_c.RingInit(arena_c.RoomOf(arena_c.RoomRing, at(w.b), w.size()))
	for range rounds() {
		ringStep(w, a, b)
		require.Equal(w.t, a.Used(), b.Used())
		require.Equal(w.t, a.Room(), b.Room())
	}
	require.Equal(t, arena_c.OK, a.Reset(a.Gen))
	require.Equal(t, arena_c.OK, b.Reset(b.Gen))
	w.sameBytes("Reset")
}

// ringStep runs a fast path, or its slow path, on both rings.
func ringStep(w *twins, a, b *arena_c.Ring) {
	gen, size, mask := w.gen(a.Gen), w.amount(), w.mask()|7
	p, sizeA := a.Front()
	q, sizeB := bindings.RingFront(b)
	w.same("Front", p, q)
	require.Equal(w.t, sizeA, sizeB)
	switch w.random.IntN(8) {
	case 0, 1, 2:
		p, q = a.Push(gen, size, mask), bindings.RingPush(b, gen, size, mask)
		if w.same("Push", p, q); p == nil {
			w.same("Wrap", a.Wrap(gen, size, mask), b.Wrap(gen, size, mask))
		}
	case 3: // any address in the block
		offset := w.random.Uint64N(w.size())
		p, q = unsafe.Add(at(w.a), offset), unsafe.Add(at(w.b), offset)
		fallthrough
	default:
		require.Equal(w.t, bindings.RingPop(b, gen, q), a.Pop(gen, p), "seed %d, step %d", w.seed, w.step)
		require.Equal(w.t, b.Find(gen, q), a.Find(gen, p))
		w.sameBytes("Pop")
	}
}
