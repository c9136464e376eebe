package scope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/upfront-mem/upfront/arena"
	"github.com/upfront-mem/upfront/scope"
)

// What is used, and what is full, is the same in every build.

// TestBlocksPadAlike: an arena on a block scratch arenas by the addresses that it has.
func TestBlocksPadAlike(t *testing.T) {
	s := open(t).Scratch(0, 0).Open("s")
	used := func(in scope.Scope) (used []uint64) {
		for i := range 6 {
			in.Bytes(1 + 37*i)
			l, err := arena.NewLinear(in.BytesUnzeroed(4096, 64))
			require.NoError(t, err)
			for align := uint64(8); align <= 4096 && l.Alloc(8, align) != nil; align *= 2 {
			}
			used = append(used, l.Stats().Used)
		}
		return used
	}
	assert.Equal(t, []uint64{0xf48, 0xf08, 0xe88, 0xe08, 0xd48, 0xc88}, used(s))
	assert.Equal(t, []uint64{0xc88, 0xc48, 0xbc8, 0xb48, 0xa88, 0x9c8}, used(s.Temp(30_000)))
	require.NoError(t, s.Close())
}
