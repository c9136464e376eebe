package arena_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
)

type node struct {
	ID       uint32
	Name     arena.String
	Parent   arena.Ptr[node]
	Children arena.Slice[node]
}

func plant(block []byte) *node {
	base := arena.BaseOf(block)
	nodes := unsafe.Slice((*node)(unsafe.Pointer(&block[0])), 3)
	text := block[1024:]
	root := &nodes[0]
	root.Children = arena.SliceOf(base, nodes[1:3])
	for i := range nodes {
		nodes[i].ID = uint32(i)
		nodes[i].Name = arena.StringOf(base, append(text[i*8:i*8:i*8+8], "node "+string(rune('0'+i))...))
		if i > 0 {
			nodes[i].Parent = arena.PtrTo(base, root)
		}
	}
	return root
}

func check(t *testing.T, block []byte) {
	t.Helper()
	base := arena.BaseOf(block)
	root := (*node)(unsafe.Pointer(&block[0]))
	assert.True(t, root.Parent.IsNil())
	assert.Nil(t, root.Parent.Get(base))
	children := root.Children.Get(base)
	require.Len(t, children, 2)
	assert.Equal(t, 2, root.Children.Len())
	assert.Equal(t, 2, cap(children))
	for i := range children {
		assert.Same(t, root, children[i].Parent.Get(base))
		assert.Equal(t, "node "+string(rune('1'+i)), children[i].Name.Get(base))
		assert.Equal(t, 6, children[i].Name.Len())
	}
}

func TestABlockCanBeCopied(t *testing.T) {
	block := arena.NewBlock(4096, 64)
	plant(block)
	check(t, block)
	moved := arena.NewBlock(8192, 4096)
	copy(moved, block)
	clear(block)
	check(t, moved)
}

func TestOutsideTheBase(t *testing.T) {
	block := arena.NewBlock(256, 64)
	base := arena.BaseOf(block)
	var outside uint64
	want := "arena: BUG: the target of a Ptr is outside its base of 256 bytes: copy it there first"
	assert.PanicsWithValue(t, want, func() { arena.PtrTo(base, &outside) })
	last := (*uint64)(unsafe.Pointer(&block[248]))
	assert.Same(t, last, arena.PtrTo(base, last).Get(base))
	assert.Panics(t, func() { arena.PtrTo(arena.BaseOf(block[:255]), last) }, "the last byte is outside")
	assert.Nil(t, arena.PtrTo(base, last).Get(arena.BaseOf(block[:255])), "a smaller block, read back")
	assert.Nil(t, arena.PtrTo(base, last).Get(arena.Base{}))
}

// TestHostileOffsets reads references as a file could hold them: each is nil or leads to bytes
// inside the base.
func TestHostileOffsets(t *testing.T) {
	block := arena.NewBlock(256, 64)
	base := arena.BaseOf(block)
	for _, stored := range []uint64{0, 1, 2, 9, 249, 250, 256, 257, 1 << 38, math.MaxInt64, math.MaxUint64 - 7,
		math.MaxUint64} {
		for _, count := range []uint64{0, 1, 31, 32, 33, 1 << 31, 1 << 61, 1 << 62, math.MaxUint64} {
			raw := [2]uint64{stored, count}
			s := (*arena.Slice[uint64])(unsafe.Pointer(&raw)).Get(base)
			if s != nil {
				assert.EqualValues(t, count, len(s))
				assert.LessOrEqual(t, stored-1+8*count, uint64(256))
			}
			if nothing := (*arena.Slice[struct{}])(unsafe.Pointer(&raw)).Get(base); nothing != nil {
				assert.EqualValues(t, count, len(nothing))
			}
		}
		p := (*arena.Ptr[uint64])(unsafe.Pointer(&stored)).Get(base)
		assert.Equal(t, stored >= 1 && stored <= 249 && stored%8 == 1, p != nil, "stored %d", stored)
	}
}

func TestEmptyReferences(t *testing.T) {
	base := arena.BaseOf(arena.NewBlock(64, 64))
	assert.Nil(t, arena.SliceOf(base, []int32{}).Get(base))
	assert.Empty(t, arena.StringOf(base, nil).Get(base))
	assert.True(t, arena.PtrTo[int32](base, nil).IsNil())
}

// TestEmptySlicesLeadToTheirBlock: the slice is the only way to free its block.
func TestEmptySlicesLeadToTheirBlock(t *testing.T) {
	block := arena.NewBlock(4096, 64)
	base := arena.BaseOf(block)
	h, err := arena.NewHeap(block[1024:], 0)
	require.NoError(t, err)
	of := func(p unsafe.Pointer) []byte { return unsafe.Slice((*byte)(p), 0) }
	list := arena.SliceOf(base, of(h.Alloc(0, 1)))
	text := arena.StringOf(base, of(h.Alloc(0, 1)))
	require.EqualValues(t, 2, h.Stats().Live)
	assert.Zero(t, list.Len()+text.Len())
	assert.NoError(t, h.Free(unsafe.Pointer(unsafe.SliceData(list.Get(base)))))
	assert.NoError(t, h.Free(unsafe.Pointer(unsafe.StringData(text.Get(base)))))
	assert.Zero(t, h.Stats().Live)

	end := block[len(block):]
	assert.NotNil(t, arena.SliceOf(base, end).Get(base))
	assert.Nil(t, arena.SliceOf(arena.BaseOf(block[:1024]), of(h.Alloc(0, 1))).Get(base), "outside of the base")
}
