package conformance

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/tests/conformance/bindings"
)

// frameModel is several linear arenas, one of them current.
type frameModel struct {
	buffers []linearModel
	turns   int
}

func (m *frameModel) now() *linearModel { return &m.buffers[m.turns%len(m.buffers)] }

func (m *frameModel) alloc(size, align uint64) (at, got uint64, a answer) {
	return m.now().alloc(size, align)
}

func (m *frameModel) live(at, size uint64) bool {
	for _, b := range m.buffers {
		if at >= b.start && b.live(at, size) {
			return true
		}
	}
	return false
}

// reset is Next.
func (m *frameModel) reset() {
	m.turns++
	m.now().reset()
}

func (m *frameModel) room() uint64        { return m.now().room() }
func (m *frameModel) release(uint64) bool { return false }
func (m *frameModel) mark() uint64        { return 0 }
func (m *frameModel) rewind(uint64) bool  { return false }

// openFrame's machine resets by Next, so that the suite sees the blocks that live on.
func openFrame(buffers int) opener {
	return func(block []byte) (machine, model, error) {
		f, err := arena.NewFrame(block, buffers)
		if err != nil {
			return machine{}, nil, err
		}
		start, _ := bounds(block)
		front := uint64(2 * arena_c.LineSize)
		size := (uint64(len(block)) - front) / uint64(buffers) / arena_c.LineSize * arena_c.LineSize
		m := &frameModel{}
		for i := range uint64(buffers) {
			from := start + front + i*size
			m.buffers = append(m.buffers, linearModel{start: from, cursor: from, end: from + size})
		}
		return machine{alloc: f.Alloc, reset: f.Next}, m, nil
	}
}

func FuzzFrame(f *testing.F) { fuzz(f, openFrame(3), 1024) }

func TestFramesRefuse(t *testing.T) {
	window := heapBlock(t, 4096, 64)
	for _, c := range []struct {
		block   []byte
		buffers int
		want    string
	}{
		{window, 0, "arena: a Frame has 1 to 8 buffers, not 0"},
		{window, 9, "arena: a Frame has 1 to 8 buffers, not 9"},
		{window, -1, "arena: a Frame has 1 to 8 buffers, not -1"},
		{nil, 2, "arena: a Frame of 2 buffers needs a block of at least 256 bytes, this one has 0"},
		{window[:255], 2, "arena: a Frame of 2 buffers needs a block of at least 256 bytes, this one has 255"},
	} {
		_, err := arena.NewFrame(c.block, c.buffers)
		assert.EqualError(t, err, c.want)
	}
	_, err := arena.NewFrame(window[8:], 2)
	assert.ErrorContains(t, err, "a Frame's block must begin at a multiple of 64")
	assert.Equal(t, make([]byte, 4096), window, "a refusal changes nothing")
	f, err := arena.NewFrame(window[:256], 2)
	require.NoError(t, err)
	assert.EqualValues(t, 64, f.Stats().Size)
	assert.Panics(t, func() { f.Alloc(8, 3) })
}

func TestHandlesOfAFrame(t *testing.T) {
	for buffers := 1; buffers <= 8; buffers++ {
		f, err := arena.NewFrame(heapBlock(t, 4096, 64), buffers)
		require.NoError(t, err)
		var handles []arena.FrameHandle
		for turn := range 3 * buffers {
			assert.Equal(t, turn%buffers, f.Current())
			now := f.Now()
			assert.NotNil(t, now.Alloc(40, 8))
			assert.NotNil(t, f.Alloc(2, 1))
			assert.Nil(t, now.Alloc(f.Stats().Size, 1))
			assert.EqualValues(t, 42, f.Stats().Used)
			handles = append(handles, now)
			for i, h := range handles {
				assert.Equal(t, turn-i < buffers, h.Live())
				assert.Equal(t, turn == i, h.Alloc(0, 1) != nil, "only the current frame allocates")
			}
			f.Next()
			assert.Zero(t, f.Stats().Used)
			assert.EqualValues(t, 42, f.Stats().Peak)
		}
		assert.Equal(t, buffers, f.Buffers())
	}
	assert.False(t, arena.FrameHandle{}.Live())
}

func TestRaceBuildsOverwriteWhatATurnEnds(t *testing.T) {
	if !arena_c.Race {
		t.Skip("only race builds do: go test -race ./tests/conformance runs it")
	}
	f, err := arena.NewFrame(heapBlock(t, 1024, 64), 2)
	require.NoError(t, err)
	made := unsafe.Slice((*byte)(f.Alloc(100, 16)), 100)
	clear(made)
	f.Next()
	assert.Equal(t, make([]byte, 100), made, "still there in the next frame")
	f.Next()
	assert.Equal(t, bytes.Repeat([]byte{0xDB}, 100), made)
}

func TestGoAndCAgreeOnFrame(t *testing.T) {
	w := newTwins(t, 4096, 2*arena_c.LineSize)
	a, b := arena_c.FrameInit(arena_c.RoomOf(arena_c.RoomFrame, at(w.a), w.size()), 3),
		arena_c.FrameInit(arena_c.RoomOf(arena_c.RoomFrame, at(w.b), w.size()), 3)
	for range rounds() {
		if w.random.IntN(20) == 0 {
			a.Next()
			b.Next()
			w.sameBytes("Next")
			continue
		}
		gen, size, mask := w.gen(a.Gen), w.amount(), w.mask()
		w.same("Push", a.Push(gen, size, mask), bindings.FrameBump(b, gen, size, mask))
		require.Equal(t, bindings.FramePeak(b), a.Peak())
	}
}
