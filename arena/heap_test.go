package arena_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

type frog struct {
	X, Y float64
	Size uint64
}

var closed []uint64

var (
	frogs  = arena.HeapOf[frog](nil)
	closer = arena.HeapOf(func(f *frog) error {
		closed = append(closed, f.Size)
		if f.Size == 0 {
			return errors.New("nothing to close")
		}
		return nil
	})
)

func newHeap(t *testing.T, size int) arena.Heap {
	block := arena.NewBlock(size, 64)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(size)) })
	h, err := arena.NewHeap(block, 0)
	require.NoError(t, err)
	keepHeap(block)
	return h
}

// keepHeap makes a checked heap reuse freed blocks at once, as other builds do.
func keepHeap(block []byte) { (*arena_c.Heap)(unsafe.Pointer(unsafe.SliceData(block))).SetPlain() }

// saysWhyNot passes a Reallocator every wrong address; its block of 100 bytes has the size `has`.
func saysWhyNot(t *testing.T, name string, a arena.Reallocator, has uint64) {
	t.Helper()
	p := a.Alloc(100, 8)
	size, err := a.SizeOf(p)
	require.NoError(t, err)
	assert.Equal(t, has, size)
	_, err = a.SizeOf(unsafe.Add(p, 16))
	assert.EqualError(t, err, "arena: BUG: "+name+".SizeOf: inside a block, not at its start")
	_, err = a.Realloc(unsafe.Add(p, 64), 10)
	assert.EqualError(t, err, "arena: BUG: "+name+".Realloc: inside a block, not at its start")
	q, err := a.Realloc(p, 1<<30)
	assert.True(t, q == nil && err == nil, "full is an answer")
	assert.PanicsWithValue(t, "arena: BUG: "+name+".Alloc of 1 bytes aligned to 3: "+
		"the alignment must be a power of two up to 1 MiB",
		func() { a.Alloc(1, 3) })
	require.NoError(t, a.Free(p))
	require.NoError(t, a.Free(nil))
	assert.EqualError(t, a.Free(p), "arena: BUG: "+name+".Free: freed already")
	assert.EqualError(t, a.Free(unsafe.Pointer(t)), "arena: BUG: "+name+".Free: not a block of this arena")
}

func TestHeapSaysWhyNot(t *testing.T) {
	_, err := arena.NewHeap(arena.NewBlock(256, 64), 0)
	assert.EqualError(t, err, "arena: a Heap needs a block of at least 496 bytes, this one has 256")
	_, err = arena.NewHeap(arena.NewBlock(512, 64)[8:], 0)
	assert.ErrorContains(t, err, "a Heap's block must begin at a multiple of 64")
	h := newHeap(t, 4096)
	saysWhyNot(t, "Heap", h, 100)
	s := h.Stats()
	assert.Equal(t, arena.HeapStats{Stats: arena.Stats{Size: s.Size, Free: s.Size, Peak: 128}, Failed: 1}, s)
	assert.Equal(t, s.Size-16, h.LargestFree())
	p, err := h.Realloc(nil, 0)
	require.NoError(t, err)
	h.Reset()
	assert.Error(t, h.Free(p), "from before the reset")
}

// Parked blocks wait for a request of their size, count as free, and merge before a refusal.
func TestHeapParks(t *testing.T) {
	block := arena.NewBlock(8192, 64)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), 8192) })
	_, err := arena.NewHeap(block[:900], 2)
	assert.EqualError(t, err, "arena: a Heap needs a block of at least 1008 bytes, this one has 900")
	h, err := arena.NewHeap(block, 2)
	require.NoError(t, err)
	keepHeap(block)
	empty := h.LargestFree()
	p, q := h.Alloc(100, 8), h.Alloc(100, 8)
	require.NoError(t, h.Free(p))
	require.NoError(t, h.Free(q))
	assert.ErrorContains(t, h.Free(q), "freed already")
	s := h.Stats()
	assert.Equal(t, arena.HeapStats{Stats: arena.Stats{Size: s.Size, Free: s.Size, Peak: 256}, Parked: 2}, s)
	assert.Equal(t, empty, h.LargestFree())
	assert.Equal(t, q, h.Alloc(97, 8), "of its size")
	assert.EqualValues(t, 1, h.Stats().Parked)
	h.Flush()
	assert.Zero(t, h.Stats().Parked)
	require.NoError(t, h.Free(q))
	assert.NotNil(t, h.Alloc(empty, 8), "all, though one is parked")
	assert.Zero(t, h.Stats().Failed)
}

func TestHeapReserves(t *testing.T) {
	h := newHeap(t, 4096)
	size := h.Stats().Size
	h.Reserve(1000)
	assert.Nil(t, h.Alloc(size-1000, 8))
	p := h.Alloc(size-1000-32, 8)
	assert.NotNil(t, p)
	assert.EqualValues(t, 1000, h.Stats().Reserve)
	grown, err := h.Realloc(p, size-900)
	assert.True(t, grown == nil && err == nil, "full is an answer")
	h.Reserve(0)
	assert.NotNil(t, h.Alloc(900, 8))
	h.Reserve(1 << 60)
	assert.Equal(t, size, h.Stats().Reserve, "all there is")
	require.NoError(t, h.Free(p))
	assert.Nil(t, h.Alloc(1, 1))
}

func TestHeapPhases(t *testing.T) {
	h := newHeap(t, 4096)
	p := h.Alloc(1008, 8)
	q := h.Alloc(16, 8)
	require.NoError(t, h.Free(p))
	assert.EqualValues(t, 1056, h.Phase())
	assert.EqualValues(t, 32, h.Phase(), "it began with what was live")
	require.NoError(t, h.Free(q))
	h.Phase()
	assert.Zero(t, h.Phase())
	assert.EqualValues(t, 1056, h.Stats().Peak, "of all phases")
}

func TestHeapMakers(t *testing.T) {
	assert.PanicsWithValue(t, "arena: pet.Name (string) holds a Go pointer; use arena.String, "+
		"or arena.Inline for a short text", func() {
		type pet struct{ Name string }
		arena.HeapOf[pet](nil) //upfront:keeps it is refused
	})
	h := newHeap(t, 1024)
	empty := h.Stats().Free
	f := frogs.New(h)
	*f = frog{1, 2, 3}
	require.NoError(t, frogs.Delete(h, f))
	assert.Error(t, frogs.Delete(h, f))
	f = frogs.New(h)
	assert.Equal(t, frog{}, *f, "zeroed where another was")
	require.NoError(t, frogs.Delete(h, f))

	closed = nil
	f, err := closer.Make(h, func(f *frog) error { f.Size = 7; return nil })
	require.NoError(t, err)
	require.NoError(t, closer.Delete(h, f))
	assert.Error(t, closer.Delete(h, f), "and finalizes once")
	assert.ErrorContains(t, closer.Delete(h, closer.New(h)), "nothing to close")
	assert.Equal(t, []uint64{7, 0}, closed)
	_, err = closer.Make(h, func(*frog) error { return errors.ErrUnsupported })
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.Panics(t, func() { _, _ = closer.Make(h, func(*frog) error { panic("no") }) })
	assert.Equal(t, empty, h.Stats().Free, "what could not be made is given back, and what could not be closed too")
	assert.Len(t, closed, 2)

	other := arena.HeapOf[uint64](nil).New(h)
	assert.ErrorContains(t, closer.Delete(h, (*frog)(unsafe.Pointer(other))), "the block has 8 bytes, the value 24")
	for frogs.New(h) != nil {
	}
	f, err = frogs.Make(h, func(*frog) error { return nil })
	assert.True(t, f == nil && err == nil)
}

// TestWhoComesSecondIsTold: in checked builds a call fails while another call is inside. Later a
// full heap returns nil again.
func TestWhoComesSecondIsTold(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build sees two calls at once: go test -tags checked ./arena does")
	}
	const inside = "another goroutine or thread is in a call"
	refuses := func(t *testing.T, a arena.Reallocator, busy *uint64, others ...func()) {
		p := a.Alloc(64, 16)
		*busy = 1
		assert.PanicsWithValue(t, fmt.Sprintf("arena: BUG: %s.Alloc: %s: put one lock around every call",
			reflect.TypeOf(a).Name(), inside), func() { a.Alloc(64, 16) })
		for _, f := range others {
			assert.Panics(t, f)
		}
		assert.ErrorContains(t, a.Free(p), inside)
		_, err := a.SizeOf(p)
		assert.ErrorContains(t, err, inside)
		for _, q := range []unsafe.Pointer{p, nil} {
			_, err = a.Realloc(q, 128)
			assert.ErrorContains(t, err, inside)
		}
		*busy = 0
		assert.Nil(t, a.Alloc(1<<30, 16), "full")
		q, err := a.Realloc(p, 1<<30)
		assert.True(t, q == nil && err == nil, "full")
		require.NoError(t, a.Free(p))
	}
	block := arena.NewBlock(4096, 64)
	h, err := arena.NewHeap(block, 8)
	require.NoError(t, err)
	refuses(t, h, &(*arena_c.Heap)(unsafe.Pointer(&block[0])).Busy, h.Reset, h.Flush, func() { h.LargestFree() })
	b, err := arena.NewBuddy(block, 64)
	require.NoError(t, err)
	refuses(t, b, &(*arena_c.Buddy)(unsafe.Pointer(&block[0])).Busy, b.Reset)
}

// TestHeapTellsDamage: a stray write costs the block that it hit, is reported by the next call
// there, and changes nothing else.
func TestHeapTellsDamage(t *testing.T) {
	if arena_c.Asan {
		t.Skip("AddressSanitizer ends the program at the write: go test ./arena goes on")
	}
	block := arena.NewBlock(8192, 64)
	h, err := arena.NewHeap(block, 0)
	require.NoError(t, err)
	keepHeap(block)
	p, q, r := h.Alloc(100, 16), h.Alloc(100, 16), h.Alloc(100, 16)
	require.NoError(t, h.Free(q))
	require.NoError(t, h.Err())
	copy(unsafe.Slice((*byte)(q), 16), "a stray write...")
	err = h.Free(p)
	require.ErrorContains(t, err, "arena: BUG: Heap.Free: Heap: "+
		"a write past a block or into freed memory was found once, "+
		fmt.Sprintf("the last at %p, offset %d; 128 bytes are out of service", q,
			uintptr(q)-uintptr(unsafe.Pointer(&block[0]))))
	require.Error(t, h.Free(p), "it was freed all the same")
	s := h.Stats()
	assert.Equal(t, []uint64{1, s.Size - 2*128}, []uint64{s.Live, s.Free})
	assert.ErrorContains(t, h.Err(), "found once")
	assert.ErrorContains(t, h.Free(q), "a write past a block")
	walked := make([]arena_c.Block, 8)
	n, code := (*arena_c.Heap)(h.Block()).Walk(walked)
	assert.Equal(t, arena_c.OK, code)
	lost := func(b arena_c.Block) bool { return b.Live == arena_c.HeapLost && b.Size == 128 }
	assert.True(t, slices.ContainsFunc(walked[:n], lost))
	assert.Equal(t, p, h.Alloc(100, 16))
	shared, err := h.Shared()
	require.NoError(t, err)
	assert.ErrorContains(t, shared.Err(), "Heap: a write past a block or into freed memory was found once")
	require.NoError(t, h.Free(r))
	h.Reset()
	assert.Equal(t, s.Size, h.Stats().Free)
	assert.Error(t, h.Err(), "for good")
}

// TestCheckedHeapTellsWhose: the report names the lines that allocated and freed the overwritten
// block.
func TestCheckedHeapTellsWhose(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build notes the line that made a block: go test -tags checked ./arena does")
	}
	heap, err := arena.NewHeap(arena.NewBlock(8192, 64), 16)
	require.NoError(t, err)
	buddy, err := arena.NewBuddy(arena.NewBlock(8192, 64), 64)
	require.NoError(t, err)
	for name, a := range map[string]interface {
		arena.Reallocator
		Reset()
	}{"Heap": heap, "Buddy": buddy} {
		p, q := a.Alloc(100, 16), a.Alloc(64, 16)
		unsafe.Slice((*byte)(p), 101)[100] = 7
		assert.ErrorContains(t, a.Free(p), "made at:", name)
		unsafe.Slice((*byte)(q), 65)[64] = 7
		assert.ErrorContains(t, a.Free(q), name+": a write past a block", name)
		unsafe.Slice((*byte)(p), 101)[50] = 7
		func() {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), "freed at:", name) }()
			a.Reset()
		}()
	}
}

// TestCheckedTellsAtOnce: an Alloc or Realloc that takes overwritten bytes panics, though it has a
// block.
func TestCheckedTellsAtOnce(t *testing.T) {
	if !arena_c.Checked {
		t.Skip("only a checked build checks the bytes that it allocates: go test -tags checked ./arena does")
	}
	write := func(p unsafe.Pointer) { unsafe.Slice((*byte)(p), 1100)[1099] = 7 }
	for _, test := range []struct {
		call, how string
		do        func(h arena.Heap, b arena.Buddy)
	}{
		{"Heap.Alloc", "", func(h arena.Heap, _ arena.Buddy) { write(h.Alloc(64, 16)); h.Alloc(2000, 16) }},
		{"Heap.Realloc", "moves", func(h arena.Heap, _ arena.Buddy) {
			p := h.Alloc(64, 16)
			write(h.Alloc(64, 16))
			_, _ = h.Realloc(p, 2000)
		}},
		{"Heap.Realloc", "grows", func(h arena.Heap, _ arena.Buddy) {
			p := h.Alloc(64, 16)
			write(p)
			_, _ = h.Realloc(p, 2000)
		}},
		{"Heap.Realloc", "grows down", func(h arena.Heap, _ arena.Buddy) {
			p, q := h.Alloc(2000, 16), h.Alloc(4000, 16)
			for h.Alloc(100, 16) != nil {
			}
			require.NoError(t, h.Free(p))
			h.Flush()
			write(p)
			_, _ = h.Realloc(q, 5000)
		}},
		{"Buddy.Alloc", "", func(_ arena.Heap, b arena.Buddy) {
			p := b.Alloc(1000, 16)
			require.NoError(t, b.Free(b.Alloc(1000, 16)))
			write(p)
			b.Alloc(1000, 16)
		}},
		{"Buddy.Realloc", "grows", func(_ arena.Heap, b arena.Buddy) {
			p := b.Alloc(1000, 16)
			for uintptr(p)%2048 != 0 {
				p = b.Alloc(1000, 16)
			}
			write(p)
			_, _ = b.Realloc(p, 2000)
		}},
	} {
		t.Run(test.call+" "+test.how, func(t *testing.T) {
			h, err := arena.NewHeap(arena.NewBlock(8192, 64), 0)
			require.NoError(t, err)
			b, err := arena.NewBuddy(arena.NewBlock(16384, 4096), 64)
			require.NoError(t, err)
			defer func() { assert.Contains(t, fmt.Sprint(recover()), "arena: BUG: "+test.call+": ") }()
			test.do(h, b)
		})
	}
}
