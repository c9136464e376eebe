package arena_test

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

func bytesOf(p unsafe.Pointer, size int) []byte { return unsafe.Slice((*byte)(p), size) }

func TestProxyTellsWhatIsItsOwn(t *testing.T) {
	h := newHeap(t, 16384)
	sound, music := arena.NewProxy("sound", h), arena.NewProxy("music", h)
	front := arena.NewProxy("ogg", sound)
	wall := h.Alloc(1, 1)
	p, q, r, s := sound.Alloc(96, 16), music.Alloc(96, 16), h.Alloc(96, 16), front.Alloc(96, 16)
	before := [...]arena.ProxyStats{sound.Stats(), music.Stats(), front.Stats()}
	used := h.Stats()

	const (
		another = "a block of another proxy"
		heaps   = "a block of the heap itself, or written past its end"
	)
	for _, bad := range []struct {
		p    unsafe.Pointer
		says string
	}{
		{nil, "not from here"},
		{unsafe.Pointer(t), "not from here"},
		{unsafe.Add(p, 16), "inside a chunk, not at its start"},
		{unsafe.Add(p, 1), "inside a chunk, not at its start"},
		{unsafe.Add(p, -16), "inside a chunk, not at its start"},
		{q, another},
		{r, heaps},
		{s, another},
	} {
		assert.EqualError(t, sound.Free(bad.p), `arena: BUG: proxy "sound": Free: `+bad.says)
		assert.PanicsWithValue(t, `arena: BUG: proxy "sound": SizeOf: `+bad.says, func() { sound.SizeOf(bad.p) })
		if bad.p != nil {
			moved, err := sound.Realloc(bad.p, 8)
			assert.EqualError(t, err, `arena: BUG: proxy "sound": Realloc: `+bad.says)
			assert.Nil(t, moved)
		}
	}
	assert.EqualError(t, front.Free(p), `arena: BUG: proxy "ogg": Free: `+another)
	assert.EqualError(t, music.Free(s), `arena: BUG: proxy "music": Free: `+another)
	assert.Equal(t, before, [...]arena.ProxyStats{sound.Stats(), music.Stats(), front.Stats()}, "what is refused changes nothing")
	assert.Equal(t, used, h.Stats())
	assert.EqualValues(t, 96, sound.SizeOf(p))

	require.NoError(t, sound.Free(p))
	assert.EqualError(t, sound.Free(p), `arena: BUG: proxy "sound": Free: put twice`)
	assert.EqualError(t, sound.Close(), `arena: BUG: proxy "sound": Close: proxy "ogg" before it is open`)
	require.NoError(t, front.Free(s))
	require.NoError(t, front.Close())
	require.NoError(t, sound.Close())
	require.NoError(t, music.Free(q))
	require.NoError(t, music.Close())
	require.NoError(t, h.Free(r))
	require.NoError(t, h.Free(wall))
	assert.Zero(t, h.Stats().Live)
}

func TestProxyRefusesAfterClose(t *testing.T) {
	h := newHeap(t, 4096)
	x := arena.NewProxy("sound", h)
	p := x.Alloc(10, 1)
	assert.ErrorContains(t, x.Close(), "1 block of 10 bytes was never freed: 10 bytes at offset 0x")
	stats := x.Stats()
	assert.EqualError(t, x.Close(), `arena: BUG: proxy "sound": Close: closed already`)
	assert.EqualError(t, x.Free(p), `arena: BUG: proxy "sound": Free: closed already`)
	_, err := x.Realloc(p, 20)
	assert.EqualError(t, err, `arena: BUG: proxy "sound": Realloc: closed already`)
	_, err = x.Realloc(nil, 20)
	assert.EqualError(t, err, `arena: BUG: proxy "sound": Realloc: closed already`)
	assert.PanicsWithValue(t, `arena: BUG: proxy "sound": Alloc: closed already`, func() { x.Alloc(1, 1) })
	assert.PanicsWithValue(t, `arena: BUG: proxy "sound": SizeOf: closed already`, func() { x.SizeOf(p) })
	assert.PanicsWithValue(t, `arena: BUG: proxy "ogg" before proxy "sound", which is closed`, func() { arena.NewProxy("ogg", x) })
	assert.PanicsWithValue(t, `arena: BUG: proxy "ogg" before a Heap that NewHeap didn't make`,
		func() { arena.NewProxy("ogg", arena.Heap{}) })
	assert.Equal(t, stats, x.Stats())
	assert.Equal(t, arena.ProxyStats{Live: 1, Asked: 10, Used: 48, Peak: 48, Total: 1}, stats)
	require.NoError(t, h.Free(p), "what leaked is the heap's")
	assert.Equal(t, "sound", x.Name())
	assert.NoError(t, arena.NewProxy("sound", h).Close(), "it never had anything")
}

func TestProxyNamesItsLeaks(t *testing.T) {
	block := arena.NewBlock(1<<16, 4096) // so that the places are the same in each run
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), 1<<16) })
	h, err := arena.NewHeap(block)
	require.NoError(t, err)
	h.Alloc(100, 16) // not a proxy's
	x := arena.NewProxy("sound", h)
	front := arena.NewProxy("ogg", x)
	base := unsafe.Pointer(unsafe.SliceData(block))
	at := func(p unsafe.Pointer) string { return fmt.Sprintf("%#x", uintptr(p)-uintptr(base)) }

	p, q, r := x.Alloc(96, 16), front.Alloc(0, 1), x.Alloc(5, 256)
	assert.EqualError(t, front.Close(), `arena: proxy "ogg": 1 block of 0 bytes was never freed: 0 bytes at offset `+at(q))
	leaks := "96 bytes at offset " + at(p) + ", 0 bytes at offset " + at(q) + ` by proxy "ogg", 5 bytes at offset ` + at(r)
	gone, torn := x.Alloc(64, 16), x.Alloc(16, 16)
	require.NoError(t, h.Free(gone), "the heap can't tell")
	assert.EqualError(t, x.Free(gone), `arena: BUG: proxy "sound": Free: put twice`)
	arena_c.Unpoison(unsafe.Add(torn, 16), 16) // the write is reported otherwise
	*(*byte)(unsafe.Add(torn, 16)) ^= 1
	assert.EqualError(t, x.Free(torn), `arena: BUG: proxy "sound": Free: a block of the heap itself, or written past its end`)
	assert.EqualError(t, x.Close(), `arena: proxy "sound": 3 blocks of 101 bytes were never freed: `+leaks+
		"; 2 blocks of 80 bytes were not found: freed by the heap itself, or written past the end")
}

func TestProxyNamesTheFirstLeaks(t *testing.T) {
	h := newHeap(t, 1<<16)
	for count, says := range map[int]string{8: `\w$`, 9: ` and 1 more$`, 20: ` and 12 more$`} {
		x := arena.NewProxy("many", h)
		for range count {
			x.Alloc(24, 16)
		}
		assert.Regexp(t, `^arena: proxy "many": \d+ blocks of \d+ bytes were never freed: (24 bytes at offset 0x\w+(, )?){8}`+says,
			x.Close())
		h.Reset()
	}
}

func TestProxyOfAHeapThatWasReset(t *testing.T) {
	h := newHeap(t, 8192)
	x := arena.NewProxy("sound", h)
	p := x.Alloc(96, 16)
	h.Reset()
	assert.Error(t, x.Free(p))
	require.Equal(t, p, h.Alloc(96+16, 16), "where its words may lie still")
	assert.ErrorContains(t, x.Free(p), "a block of the heap itself")
	require.NoError(t, h.Free(p))
	q := x.Alloc(96, 16)
	require.Equal(t, p, q)
	require.NoError(t, x.Free(q))
	assert.EqualError(t, x.Close(),
		`arena: proxy "sound": 1 block of 96 bytes was not found: freed by the heap itself, or written past the end`)
}

// TestProxyLeavesNoWordsBehind: a block of the heap itself where a proxy's lay, of the same size, is not taken for it.
func TestProxyLeavesNoWordsBehind(t *testing.T) {
	h := newHeap(t, 8192)
	x := arena.NewProxy("sound", h)
	p := x.Alloc(96, 16)
	require.NoError(t, x.Free(p))
	require.Equal(t, p, h.Alloc(96+16, 16))
	assert.ErrorContains(t, x.Free(p), "a block of the heap itself")
	require.NoError(t, h.Free(p))

	p = x.Alloc(96, 16)
	wall := x.Alloc(16, 16)
	q, err := x.Realloc(p, 1000)
	require.NoError(t, err)
	require.NotEqual(t, p, q, "it moved")
	require.Equal(t, p, h.Alloc(96+16, 16))
	assert.ErrorContains(t, x.Free(p), "a block of the heap itself")
	assert.NoError(t, x.Free(q))
	assert.NoError(t, x.Free(wall))
	assert.NoError(t, x.Close())
}

func TestProxySizes(t *testing.T) {
	h := newHeap(t, 1<<18)
	x := arena.NewProxy("sizes", h)
	for align := uint64(1); align <= 1<<16; align *= 2 {
		for size := range uint64(40) {
			p := x.Alloc(size, align)
			require.NotNil(t, p)
			require.Zero(t, uintptr(p)%uintptr(align))
			require.Equal(t, size, x.SizeOf(p))
			for i := range bytesOf(p, int(size)) {
				bytesOf(p, int(size))[i] = byte(i) // all of it may be written
			}
			q, err := x.Realloc(p, size+align)
			require.NoError(t, err)
			require.Zero(t, uintptr(q)%uintptr(align), "the alignment is kept")
			for i, b := range bytesOf(q, int(size)) {
				require.Equal(t, byte(i), b)
			}
			require.NoError(t, x.Free(q))
		}
	}
	for _, size := range []uint64{1 << 18, 1<<38 - 1, 1<<38 - 24} {
		assert.Nil(t, x.Alloc(size, 16))
	}
	assert.EqualValues(t, 3, x.Stats().Failed)
	assert.Panics(t, func() { x.Alloc(1<<38, 1) })
	assert.Panics(t, func() { x.Alloc(1<<64-1, 1) })
	assert.Panics(t, func() { x.Alloc(1, 0) })
	assert.Panics(t, func() { x.Alloc(1, 3) })
	assert.Panics(t, func() { x.Alloc(1, 1<<21) })
	assert.Panics(t, func() { _, _ = x.Realloc(nil, 1<<38) })
	assert.NoError(t, x.Close())
}

// TestProxyIsAReallocator: makers and Sized work by a proxy as they do on the heap.
func TestProxyIsAReallocator(t *testing.T) {
	h := newHeap(t, 4096)
	x, other := arena.NewProxy("frogs", h), arena.NewProxy("other", h)
	f := frogs.New(x)
	require.NotNil(t, f)
	assert.Equal(t, frog{}, *f)
	assert.EqualValues(t, 24, x.Stats().Asked)
	assert.EqualError(t, frogs.Delete(other, f), "arena: BUG: HeapMaker.Delete of a arena_test.frog: a block of another proxy")
	assert.ErrorContains(t, frogs.Delete(h, f), "its block has 40 bytes, not 24", "by the heap itself")
	require.NoError(t, frogs.Delete(x, f))
	sized := arena.SizedFree(x)
	p := sized.Alloc(100, 64)
	assert.EqualValues(t, 100, sized.SizeOf(p))
	assert.NoError(t, sized.Free(p))
	assert.NoError(t, x.Close())
	assert.NoError(t, other.Close())
}

func TestProxyMakesNoGoAllocations(t *testing.T) {
	if instrumented {
		t.Skip("the instrumented build allocates on its own")
	}
	h := newHeap(t, 1<<14)
	back := arena.NewProxy("back", h)
	x := arena.NewProxy("front", back)
	p := x.Alloc(64, 16)
	allocations := testing.AllocsPerRun(100, func() {
		q := x.Alloc(100, 64)
		q, _ = x.Realloc(q, 3000)
		_ = x.SizeOf(q)
		_ = x.Free(q)
		_ = x.Stats()
		if x.Alloc(1<<20, 16) != nil {
			panic("not full")
		}
	})
	assert.Zero(t, allocations)
	assert.NoError(t, x.Free(p))
	assert.NoError(t, x.Close())
	assert.NoError(t, back.Close())
}
