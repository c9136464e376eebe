package platform

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpareTakesBestFit(t *testing.T) {
	ground := make([]byte, 1<<20)
	start := -uint64(uintptr(unsafe.Pointer(&ground[0]))) & (1<<16 - 1)
	at := func(offset uint64) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(&ground[0]), start+offset) }

	var s spares
	s.put(block{base: at(0), size: 900})
	s.put(block{base: at(4096), size: 500, head: Head{Size: 100}})
	s.put(block{base: at(8192), size: 500, head: Head{Size: 100}})
	s.put(block{base: at(12288), size: 700, head: Head{200, "tables"}})

	_, found := s.take(901, 1, Head{})
	assert.False(t, found, "too small")
	_, found = s.take(600, 1<<13, Head{200, "tables"})
	require.True(t, found, "head 0 fits every owner")
	s.put(block{base: at(0), size: 900})

	for _, c := range []struct {
		size, align uint64
		head        Head
		found       bool
		base        unsafe.Pointer
	}{
		{400, 8192, Head{Size: 100}, true, at(8192)},      // the other is not aligned
		{400, 4096, Head{Size: 100}, true, at(4096)},      // the smallest
		{400, 4096, Head{200, "tables"}, true, at(12288)}, // the same head
		{400, 4096, Head{Size: 200}, true, at(0)},         // none of this kind: one without a head
		{400, 4096, Head{Size: 200}, false, nil},
	} {
		b, found := s.take(c.size, c.align, c.head)
		assert.Equal(t, c.found, found, "%+v", c)
		assert.Equal(t, c.base, b.base, "%+v", c)
	}
}

// TestSpareNeverSharesABlock plays random owners against a plain set.
func TestSpareNeverSharesABlock(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ground := make([]byte, 64)
	var s spares
	var owned []block
	for i := range ground {
		s.put(block{base: unsafe.Pointer(&ground[i]), size: uint64(1 + random.IntN(8))})
	}
	for range 2_000 {
		if len(owned) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(owned))
			s.put(owned[i])
			owned = append(owned[:i], owned[i+1:]...)
		} else if b, found := s.take(uint64(1+random.IntN(8)), 1, Head{}); found {
			owned = append(owned, b)
		}
		seen := map[unsafe.Pointer]bool{}
		for _, b := range append(owned, s.blocks...) {
			require.False(t, seen[b.base])
			seen[b.base] = true
		}
		require.Len(t, seen, len(ground), "none is lost")
	}
}
