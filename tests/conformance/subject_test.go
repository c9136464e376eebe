package conformance

import (
	"errors"
	"math"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/platform"
	"github.com/upfront-mem/upfront/scope"
	"github.com/upfront-mem/upfront/scope/stack"
)

// subject is a kind of arena that the suite runs over. Adding one is a line in subjects.
type subject struct {
	name  string
	least int // bytes of its smallest useful block
	open  opener
}

var subjects = []subject{
	{"Linear", 192, openLinear},
	{"Stack", 192, openStack},
	{"BlockPool of 1 byte", 128, openPool[byte]},
	{"BlockPool of 8 bytes", 128, openPool[uint64]},
	{"BlockPool of 24 bytes", 128, openPool[[3]uint64]},
	{"BlockPool of 100 bytes", 256, openPool[[100]byte]},
	{"Scope", 3 * arena_c.Edge, openScope},
	{"Ring", 128, openRing},
	{"Frame of 2", 320, openFrame(2)},
	{"Frame of 5", 704, openFrame(5)},
	{"far end of a Linear", 192, openLinearFar},
	{"far end of a Stack", 192, openStackFar},
	{"pool with handles, of 24 bytes", 192, openHandles[[3]uint64]},
	{"pool with handles, of 1 byte", 192, openHandles[byte]},
	{"Linear's both ends", 256, openLinearEnds},
	{"Stack's both ends", 256, openStackEnds},
	{"Heap", 500, openHeap},
	{"Heap with front lists", 1200, openParkingHeap},
	{"Heap of edges", 9 * arena_c.Edge / 4, openHeap},
	{"Buddy of 64 bytes", 512, openBuddy(64)},
	{"Buddy of 1 KiB", 8 << 10, openBuddy(1 << 10)},
}

func bounds(block []byte) (start, end uint64) {
	start = address(unsafe.Pointer(unsafe.SliceData(block)))
	return start, start + uint64(len(block))
}

func openPool[T any](block []byte) (machine, model, error) {
	p, err := arena.NewBlockPool[T](block)
	if err != nil {
		return machine{}, nil, err
	}
	var zero T
	start, end := bounds(block)
	return machine{
		alloc:   func(uint64, uint64) unsafe.Pointer { return unsafe.Pointer(p.Get()) },
		release: func(at unsafe.Pointer) error { return p.Put((*T)(at)) },
		zeroes:  true,
	}, newPoolModel(start+64, end, uint64(unsafe.Sizeof(zero)), uint64(unsafe.Alignof(zero)), besideChunk), nil
}

// openScope is package scope's raw Alloc, on a map of one region in the block.
func openScope(block []byte) (machine, model, error) {
	st, from, size := scopeStack(block)
	s := scope.At(st.Open(0, "suite"))
	m := &linearModel{from + arena_c.Edge, from + arena_c.Edge, from + arena_c.Edge + size}
	return machine{
		alloc: func(size, align uint64) unsafe.Pointer { return allocIn(s, size, align) },
		reset: func() {
			_ = s.Close() // it returns the fulls of the suite
			s = scope.At(st.Open(0, "suite"))
		},
	}, m, nil
}

// allocIn returns nil when s is full, and panics for an invalid request, as the other arenas do.
func allocIn(s scope.Scope, size, align uint64) (p unsafe.Pointer) {
	defer fullIsNil()
	if align > arena_c.LineSize || badAlign(align) {
		return unsafe.Pointer(unsafe.SliceData(s.BytesUnzeroed(int(min(size, math.MaxInt)), align)))
	}
	if p = s.TryAllocUnzeroed(size, align); p == nil {
		p = s.AllocUnzeroed(size, align)
	}
	return p
}

func fullIsNil() {
	if v := recover(); v != nil {
		if err, _ := v.(error); !errors.Is(err, scope.ErrFull) {
			panic(v)
		}
	}
}

// scopeStack returns a map of one region in the block, with its start and its size.
func scopeStack(block []byte) (st *stack.Stack, from, size uint64) {
	start, end := bounds(block)
	from = up(start, arena_c.Edge)
	skip := from - start
	size = (uint64(len(block))-skip)/arena_c.Edge*arena_c.Edge - arena_c.Edge - 24
	arenas := []arena_c.Arena{{Kind: arena_c.KindRegion, Size: size}}
	table := arena_c.MapInit(unsafe.Pointer(&block[skip]), end-from, arenas, 4, 4, 0)
	st = stack.Start(stack.Config{Budget: "suite", Arena: "region", Key: "size", Owned: 8}, table.Row(0))
	return st, from, size
}

// blocks are places for an arena's block. Each is zeroed, and ordinary memory again afterwards.
var blocks = []struct {
	name string
	take func(t testing.TB, size int) []byte
}{
	{"Go heap, 64", func(t testing.TB, size int) []byte { return heapBlock(t, size, 64) }},
	{"Go heap, 64 KiB", func(t testing.TB, size int) []byte { return heapBlock(t, size, 65536) }},
	{"inside a window", func(t testing.TB, size int) []byte { return heapBlock(t, size+640, 65536)[640:] }},
	{"odd size", func(t testing.TB, size int) []byte { return heapBlock(t, size+5, 64) }},
	{"mapped", mappedBlock},
	{"static", staticBlock},
	{"inside a Linear", func(t testing.TB, size int) []byte { return insideBlock(t, size, openLinearAllocator) }},
	{"inside the far end of a Stack", func(t testing.TB, size int) []byte {
		return insideBlock(t, size, openStackAllocator)
	}},
	{"inside a scope", scopeBlock},
}

func heapBlock(t testing.TB, size, align int) []byte {
	block := arena.NewBlock(size, align)
	t.Cleanup(func() { arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(size)) })
	return block
}

func mappedBlock(t testing.TB, size int) []byte {
	page := uint64(os.Getpagesize())
	r, err := platform.Reserve(0, up(uint64(size), page), platform.Head{})
	require.NoError(t, err)
	require.NoError(t, r.Commit())
	t.Cleanup(func() {
		arena_c.Unpoison(r.Base(), r.Size())
		require.NoError(t, r.Release())
	})
	return unsafe.Slice((*byte)(r.Base()), size)
}
