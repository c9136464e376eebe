package arena_test

import (
	"cmp"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/arena_c"
)

// aligned returns a block for an arena out of 4096 bytes at any address.
func aligned(b []byte) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+4032]
}

// kept has a maker for each kind of arena. Nothing but the arena refers to its block; state reads
// the arena. The makers are called by name, because a call through a variable keeps any block
// alive.
var kept = map[string]func() (state func() any, err error){
	"Linear": func() (func() any, error) {
		a, err := arena.NewLinear(aligned(make([]byte, 4096)))
		return func() any { return a.Stats() }, err
	},
	"Stack": func() (func() any, error) {
		a, err := arena.NewStack(aligned(make([]byte, 4096)))
		return func() any { return a.Stats() }, err
	},
	"Frame": func() (func() any, error) {
		a, err := arena.NewFrame(aligned(make([]byte, 4096)), 2)
		return func() any { return a.Stats() }, err
	},
	"Ring": func() (func() any, error) {
		a, err := arena.NewRing(aligned(make([]byte, 4096)))
		return func() any { return a.Stats() }, err
	},
	"Heap": func() (func() any, error) {
		a, err := arena.NewHeap(aligned(make([]byte, 4096)), 0)
		return func() any { return a.Stats() }, err
	},
	"Buddy": func() (func() any, error) {
		a, err := arena.NewBuddy(aligned(make([]byte, 4096)), 64)
		return func() any { return a.Stats() }, err
	},
	"BlockPool": func() (func() any, error) {
		a, err := arena.NewBlockPool[int64](aligned(make([]byte, 4096)))
		return func() any { return a.Cap() }, err
	},
}

// overwrite uses as much stack as the makers.
//
//go:noinline
func overwrite(n int) (sum byte) {
	var bytes [512]byte
	for i := range bytes {
		bytes[i] = byte(n | 1)
	}
	if n > 0 {
		sum = overwrite(n - 1)
	}
	return sum + bytes[n%len(bytes)]
}

// TestAnArenaKeepsItsBlock: the arena is the block's only reference, at any size.
func TestAnArenaKeepsItsBlock(t *testing.T) {
	for name, maker := range kept {
		state, err := maker()
		require.NoError(t, err, name)
		before := state()
		overwrite(200)
		assert.Equal(t, before, state(), name)
	}
}

func neighbours(t *testing.T) (first, second []byte) {
	at := func(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
	blocks := make([][]byte, 256)
	for i := range blocks {
		blocks[i] = make([]byte, 1<<17)
	}
	slices.SortFunc(blocks, func(a, b []byte) int { return cmp.Compare(at(a), at(b)) })
	for i := range blocks[1:] {
		if at(blocks[i])+1<<17 == at(blocks[i+1]) {
			return blocks[i], blocks[i+1]
		}
	}
	require.Fail(t, "no neighbours")
	return nil, nil
}

// TestABlockBeforeAnother: in a race build, an address past the block would crash the test.
func TestABlockBeforeAnother(t *testing.T) {
	if !arena_c.Race {
		t.Skip("only a race build checks the target of an address: go test -race ./arena does")
	}
	block, behind := neighbours(t)
	l, err := arena.NewLinear(block)
	require.NoError(t, err)
	mark, p := l.Mark(), l.Alloc(8, 8)
	_, err = l.Resize(p, 8, 16)
	require.NoError(t, err)
	require.NoError(t, l.Rewind(mark))
	l.Far().Alloc(8, 8)
	l.Far().Reset()
	l.Far().Reset()
	l.Reset()

	s, err := arena.NewStack(block)
	require.NoError(t, err)
	require.NoError(t, s.Free(s.Alloc(8, 8)))
	require.NoError(t, s.Rewind(s.Mark()))
	require.NoError(t, s.Far().Free(s.Far().Alloc(8, 8)))
	s.Far().Reset()
	s.Reset()

	f, err := arena.NewFrame(block, 2)
	require.NoError(t, err)
	for range 3 {
		f.Alloc(8, 8)
		f.Next()
	}
	assert.Zero(t, behind[0])
}

// TestBlockTooLarge: a block has one byte too many, and none of them is read.
func TestBlockTooLarge(t *testing.T) {
	const size = arena_c.OffsetMax - arena_c.AlignMax
	block := arena.NewBlock(4096, 64)
	header := struct {
		at       *byte
		len, cap int
	}{unsafe.SliceData(block), size, size}
	_, err := arena.NewLinear(*(*[]byte)(unsafe.Pointer(&header)))
	assert.EqualError(t, err, "arena: a Linear's block must be below 274876858368 bytes, this one has 274876858368")
}
