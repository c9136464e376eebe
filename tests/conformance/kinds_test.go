package conformance

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
	"github.com/upfront-mem/upfront/scope"
)

func unpoison(block []byte) {
	arena_c.Unpoison(unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
}

// static is memory that isn't allocated.
var static [8 * arena_c.Edge]byte

func staticBlock(t testing.TB, size int) []byte {
	from := up(address(unsafe.Pointer(&static)), 64) - address(unsafe.Pointer(&static))
	block := static[from:][:size]
	clear(block)
	t.Cleanup(func() { unpoison(block) })
	return block
}

func openLinearAllocator(block []byte) (arena.Allocator, error) { return arena.NewLinear(block) }

func openStackAllocator(block []byte) (arena.Allocator, error) {
	s, err := arena.NewStack(block)
	return s.Far(), err
}

func blockFrom(a arena.Allocator, size int) []byte {
	return unsafe.Slice((*byte)(a.Alloc(uint64(size), 64)), size)
}

// insideBlock is a block from another arena. Its neighbours must keep their contents.
func insideBlock(t testing.TB, size int, open func([]byte) (arena.Allocator, error)) []byte {
	outer, err := open(heapBlock(t, size+1024, 64))
	require.NoError(t, err)
	var guards [2][]byte
	guards[0] = blockFrom(outer, 100)
	block := blockFrom(outer, size)
	guards[1] = blockFrom(outer, 100)
	require.NotNil(t, guards[1])
	clear(block)
	for _, g := range guards {
		for i := range g {
			g[i] = 0x5A
		}
	}
	t.Cleanup(func() {
		for _, g := range guards {
			for _, b := range g {
				assert.EqualValues(t, 0x5A, b, "an arena wrote beside its block")
			}
		}
	})
	return block
}

func scopeBlock(t testing.TB, size int) []byte {
	st, _, _ := scopeStack(heapBlock(t, int(up(uint64(size), arena_c.Edge))+4*arena_c.Edge, 64))
	s := scope.At(st.Open(0, "blocks"))
	require.NotNil(t, s.Bytes(1), "the next is not aligned by chance")
	block := s.BytesUnzeroed(size, 64)
	clear(block)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return block
}

func TestBlocksFromArenas(t *testing.T) {
	l, err := arena.NewLinear(heapBlock(t, 1024, 64))
	require.NoError(t, err)
	l.Alloc(1, 1)
	block := blockFrom(l, 512)
	assert.Equal(t, []int{512, 512}, []int{len(block), cap(block)})
	assert.Zero(t, address(unsafe.Pointer(&block[0]))%64)
	assert.True(t, l.Alloc(512, 64) == nil, "full")
	inner, err := arena.NewStack(block)
	require.NoError(t, err)
	innermost, err := arena.NewBlockPool[uint64](blockFrom(inner, 200))
	require.NoError(t, err)
	*innermost.Get() = 7
	assert.Equal(t, 1, innermost.Live())
	l.Reset()
}

func TestBlocksFromScopes(t *testing.T) {
	st, _, size := scopeStack(heapBlock(t, 4*arena_c.Edge, 64))
	s := scope.At(st.Open(0, "blocks"))
	require.NotNil(t, s.Bytes(1))
	for _, from := range []scope.Scope{s, s.Temp(2000)} {
		block := from.BytesUnzeroed(1000, 64)
		assert.Equal(t, []int{1000, 1000}, []int{len(block), cap(block)})
		assert.Zero(t, address(unsafe.Pointer(&block[0]))%64)
		_, err := arena.NewLinear(block)
		require.NoError(t, err)
		assert.Panics(t, func() { from.BytesUnzeroed(int(size), 64) }, "full unwinds")
		assert.Panics(t, func() { from.BytesUnzeroed(-1, 64) })
	}
	assert.Len(t, s.Temp(int(size)/2).BytesUnzeroed(int(size)/2, 64), int(size)/2, "exactly what was asked for")
	assert.ErrorContains(t, s.Close(), "full")
}

// openHandles is a pool whose chunks are put by handle. Its check also looks up every stale handle.
func openHandles[T any](block []byte) (machine, model, error) {
	var zero T
	room := arena_c.RoomOf(arena_c.RoomPool, unsafe.Pointer(unsafe.SliceData(block)), uint64(len(block)))
	p := arena_c.PoolMake(room, uint64(unsafe.Sizeof(zero)), arena_c.AlignOf[T](), true)
	if p == nil {
		return machine{}, nil, errors.New("no room")
	}
	first, numbers := p.Bases()
	names, dead := map[unsafe.Pointer]uint64{}, []uint64{0}
	start, end := bounds(block)
	return machine{
		alloc: func(uint64, uint64) unsafe.Pointer {
			x, h := arena_c.GetHandle[T](p, p.Gen, first, numbers)
			if x == nil {
				return nil
			}
			names[unsafe.Pointer(x)] = h
			for _, old := range dead {
				if old == h || p.At(p.Gen, old) != nil {
					panic("a dead handle lives")
				}
			}
			if p.At(p.Gen, h) != unsafe.Pointer(x) {
				panic("a new handle is of something else")
			}
			return unsafe.Pointer(x)
		},
		release: func(at unsafe.Pointer) error {
			h, known := names[at]
			if !known {
				return errors.New("no chunk")
			}
			if code := p.PutHandle(p.Gen, h); code != arena_c.OK {
				return errors.New(code.String())
			}
			if len(dead) < 50 {
				dead = append(dead, h)
			}
			return nil
		},
		zeroes: true,
	}, newPoolModel(start+64, end, uint64(unsafe.Sizeof(zero)), uint64(unsafe.Alignof(zero)), besideHandle), nil
}

func TestPoolOfNothing(t *testing.T) {
	_, err := arena.NewBlockPool[struct{}](heapBlock(t, 1024, 64))
	assert.ErrorContains(t, err, "no bytes")
}

func TestWalkOverAPool(t *testing.T) {
	p, err := arena.NewBlockPool[uint64](heapBlock(t, 1024, 64))
	require.NoError(t, err)
	var taken []*uint64
	for i := range 5 {
		x := p.Get()
		*x = uint64(i)
		taken = append(taken, x)
	}
	require.NoError(t, p.Put(taken[1]))
	var got []int
	for i, x := range p.All() {
		assert.EqualValues(t, i, *x)
		index, err := p.Index(x)
		require.NoError(t, err)
		assert.Equal(t, i, index)
		got = append(got, i)
		require.NoError(t, p.Put(x), "the current one may go")
	}
	assert.Equal(t, []int{0, 2, 3, 4}, got)
	for range p.All() {
		t.Fatal("nothing is live")
	}
	_, err = p.Index(taken[0])
	assert.ErrorContains(t, err, "put already")
	assert.Nil(t, p.At(-1))
	assert.Nil(t, p.At(p.Cap()))
	assert.Nil(t, p.At(0))
}
