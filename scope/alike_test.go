package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// What is used, and what is full, is the same in every build.

// TestAppendLeavesAnOldPiece: a list ends where its piece of the temporaries does, and in the next piece there is nothing yet.
func TestAppendLeavesAnOldPiece(t *testing.T) {
	s := open(t).Pad(0, 0).Open("s")
	temp := s.Temp(20480)
	list := count(0, int(temp.Free()-512)/8)
	list = longs.Clone(temp, list)
	require.Less(t, temp.Free(), uint64(1024), "the next Temp takes a new piece")
	longer := longs.Append(s.Temp(20480), list, 7)
	assert.NotEqual(t, at(list), at(longer))
	assert.Equal(t, 2*len(list), cap(longer), "it moved")
	require.NoError(t, s.Close())
}

// TestBlocksPadAlike: an arena on a block pads by the addresses that it has.
func TestBlocksPadAlike(t *testing.T) {
	s := open(t).Pad(0, 0).Open("s")
	used := func(in func() scope.Scope) (used []uint64) {
		for i := range 6 {
			in().Bytes(1 + 37*i)
			l, err := arena.NewLinear(in().Block(4096))
			require.NoError(t, err)
			for align := uint64(8); align <= 4096 && l.Alloc(8, align) != nil; align *= 2 {
			}
			used = append(used, l.Used())
		}
		return used
	}
	assert.Equal(t, []uint64{0xf48, 0xf08, 0xe88, 0xe08, 0xd48, 0xc88}, used(func() scope.Scope { return s }))
	assert.Equal(t, []uint64{0xe88, 0xe48, 0xc48, 0xa88, 0xb08, 0x788}, used(func() scope.Scope { return s.Temp(20480) }))
	require.NoError(t, s.Close())
}
